// See latency.h.
#include "assembler/latency.h"

#include <algorithm>

namespace rndn::assembler {

using L = isa::LatencyClass;
using isa::Family;
using isa::RegisterFile;

using isa::Role;

bool sets_write_barrier(const isa::Target& target, const Inst& inst) {
  if (!isa::scoreboards(target, inst.latency).write) return false;
  bool result = false;
  for_each_register(inst, [&](uint32_t, uint32_t, RegisterFile, bool write, bool) { result |= write; });
  return result;
}

bool reads_late(const isa::Target& target, const Inst& inst) {
  return isa::scoreboards(target, inst.latency).read || inst.latency == L::fence;  // CCTL has an address
}

namespace {
// FP64 on sm_8x keeps a distance besides its scoreboard; other announced results need none.
bool only_scoreboard(const isa::Target& t, const Inst& producer) {
  if (producer.latency == L::fp64 && t.family == Family::volta) return false;
  return sets_write_barrier(t, producer);
}
// A predicate that decides whether something happens is read earlier than one that is data.
bool decides(L consumer) {
  switch (consumer) {
    case L::branch:
    case L::vote:
    case L::barrier:
    case L::convergence: return true;
    default: return false;
  }
}
Role role_of(RegisterFile file, L consumer, bool guard) {
  switch (file) {
    case RegisterFile::gpr: return Role::gpr;
    case RegisterFile::predicate: return guard || decides(consumer) ? Role::guard : Role::predicate;
    case RegisterFile::uniform: return Role::uniform;
    case RegisterFile::uniform_predicate: return guard ? Role::uniform_guard : Role::uniform_predicate;
    default: return Role::carry;
  }
}
}  // namespace

uint32_t Distances::look_up(L producer, L consumer, Role role) {
  uint8_t& known = known_[(static_cast<size_t>(producer) * classes + static_cast<size_t>(consumer)) * roles +
                          static_cast<size_t>(role)];
  if (known == 0) known = isa::issue_distance(t_, producer, consumer, role).cycles;
  return known;
}

uint32_t Distances::read_after_write(const Inst& producer, RegisterFile file, const Inst& consumer, bool guard) {
  if (only_scoreboard(t_, producer)) return 0;
  if (file == RegisterFile::none)  // exceptions within classes
    return isa::issue_distance(t_, producer.sass, consumer.sass, Role::carry).cycles;
  return look_up(producer.latency, consumer.latency, role_of(file, consumer.latency, guard));
}

uint32_t Distances::settled(const Inst& producer, RegisterFile file, uint64_t consumers) {
  if (only_scoreboard(t_, producer)) return 0;
  if (file == RegisterFile::none) return 13;
  uint32_t most = 1;
  for (uint32_t c = 0; c < classes; ++c)
    if (consumers >> c & 1)
      most = std::max(most, look_up(producer.latency, static_cast<L>(c), role_of(file, static_cast<L>(c), true)));
  return most;
}

// The later of two writes must arrive later: the difference of their distances to a common reader.
uint32_t Distances::write_after_write(const Inst& first, const Inst& second, RegisterFile file) {
  if (sets_write_barrier(t_, first)) return 1;  // the second waits for the first's scoreboard
  const Role role = role_of(file, L::alu, true);
  const uint32_t a = look_up(first.latency, L::alu, role);
  if (sets_write_barrier(t_, second)) return a;
  const uint32_t b = look_up(second.latency, L::alu, role);
  return a > b ? a - b + 1 : 1;
}

uint32_t least_stall(const isa::Target& target, const Inst& inst) {
  if (target.family == Family::volta && inst.latency == L::convergence)
    return inst.sass.mnemonic == isa::Mnemonic::BSSY ? 2 : 12;
  return isa::minimum_stall(target, inst.sass);
}

uint32_t expected_latency(const isa::Target& target, const Inst& inst) {
  switch (inst.latency) {
    case L::global_load:
    case L::local_load: return 400;
    case L::global_atomic: return 500;
    case L::shared_load:
    case L::shared_atomic: return 30;
    case L::shuffle: return 25;
    case L::constant_load: return 40;
    case L::special:
    case L::sfu:
    case L::space_query: return 20;
    case L::fp64: return target.sm == 80 || target.sm == 60 || target.sm == 90 ? 10 : 48;
    default: return target.family == Family::pascal ? 6 : 5;
  }
}

}  // namespace rndn::assembler
