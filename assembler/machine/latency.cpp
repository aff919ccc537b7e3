// See latency.h.
#include "assembler/machine/latency.h"

#include <algorithm>
#include <bit>

namespace rndn::assembler {

using L = isa::LatencyClass;
using isa::Family;
using isa::Role;

Distances::Distances(const isa::Target& target)
    : cycles_(isa::issue_cycles(target)), volta_(target.family == Family::volta) {}

uint8_t Distances::settle(L producer, Range::File file, uint64_t consumers) const {
  uint32_t most = 1;
  for (uint64_t rest = consumers; rest; rest &= rest - 1) {
    const L c = static_cast<L>(std::countr_zero(rest));
    most = std::max(most, look_up(producer, c, role_of(file, c, true)));
  }
  return static_cast<uint8_t>(most);
}

ExpectedLatencies::ExpectedLatencies(const isa::Target& target) {
  cycles.fill(target.family == Family::pascal ? 6 : 5);
  auto set = [&](L c, uint16_t n) { cycles[static_cast<size_t>(c)] = n; };
  for (L c : {L::global_load, L::local_load}) set(c, 400);
  set(L::global_atomic, 500);
  for (L c : {L::shared_load, L::shared_atomic}) set(c, 30);
  set(L::shuffle, 25);
  set(L::constant_load, 40);
  for (L c : {L::special, L::sfu, L::space_query}) set(c, 20);
  set(L::fp64, target.has(isa::Feature::fast_fp64) ? 10 : 48);
}

}  // namespace rndn::assembler
