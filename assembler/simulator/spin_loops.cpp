// Loops that only wait for memory to change, so that their iterations can be counted apart: how often a warp looks depends on when others run.
//
// A loop is the code from the target of a direct backward branch to that branch. It waits when nothing goes from one iteration to the next but through
// memory: no register or predicate that it writes is read earlier in it, it stores nothing, and it loads. Then an iteration that goes back leaves the
// warp as it found it. A compare-and-swap may take the place of a load, as it changes nothing when it fails. A register written under
// a guard counts as written when the loop leaves the guard alone and every write of the register has it: other lanes keep what they had.
// What a branch inside of the loop jumps over counts as guarded by what the branch leaves.
// Left out: waits that count their tries or lengthen their pauses; nested branches; calls.
// Cost: O(instructions of the loop x registers that it names), once per kernel of a module.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "assembler/simulator/hazards.h"
#include "assembler/simulator/select.h"

namespace rndn::sim {

namespace {

constexpr uint32_t longest = 64;  // instructions

using isa::LatencyClass;
using isa::Mnemonic;

int64_t label_of(const isa::Instruction& in) {
  for (const isa::Operand& o : in.operands)
    if (o.kind == isa::OperandKind::label) return o.value;
  return -1;
}

std::optional<uint32_t> branch_target(const Program& program, uint32_t i) {
  const isa::Instruction& in = program.instructions[i];
  if (in.mnemonic != Mnemonic::BRA) return {};
  return program.index_of(static_cast<uint64_t>(label_of(in)));
}

bool is_swap(Mnemonic m) { return m == Mnemonic::ATOM_CAS || m == Mnemonic::ATOMG_CAS || m == Mnemonic::ATOMS_CAS; }

// When an instruction of a loop runs: under its guard, or where a branch inside the loop jumps over it, under what the branch leaves.
struct Guard {
  uint8_t predicate = isa::PT;
  bool negated = false, unknown = false;
  bool operator==(const Guard&) const = default;
  bool always() const { return predicate == isa::PT && !negated && !unknown; }
};

// The guards of first..last; nothing when the loop is none that this understands.
std::optional<std::vector<Guard>> guards_of(const Program& program, uint32_t first, uint32_t last) {
  std::vector<Guard> guards(last - first + 1);
  bool loads = false;
  uint32_t joined = 0;  // where Pascal's SYNC goes
  for (uint32_t i = first; i <= last; ++i) {
    const isa::Instruction& in = program.instructions[i];
    Guard& mine = guards[i - first];
    const Guard own{static_cast<uint8_t>(in.guard), in.guard_negated,
                    in.guard != isa::PT && isa::guard_is_uniform(in.form)};
    if (!own.always()) mine = mine.always() ? own : Guard{.unknown = true};
    switch (static_cast<LatencyClass>(program.classes[i])) {
      case LatencyClass::global_load:
      case LatencyClass::shared_load: loads = true; break;
      case LatencyClass::global_atomic:
      case LatencyClass::shared_atomic:
        if (!is_swap(in.mnemonic)) return {};
        loads = true;
        break;
      case LatencyClass::global_store:
      case LatencyClass::shared_store:
      case LatencyClass::local_store:
      case LatencyClass::async_copy:
      case LatencyClass::barrier: return {};
      default: break;
    }
    std::optional<uint32_t> target = branch_target(program, i);
    if (in.mnemonic == Mnemonic::SSY) joined = program.index_of(static_cast<uint64_t>(label_of(in)));
    if (in.mnemonic == Mnemonic::SYNC && !own.always()) target = joined;
    const bool leaves = in.mnemonic == Mnemonic::EXIT || (target && *target > last);
    const bool known = target || leaves || in.mnemonic == Mnemonic::BSYNC || in.mnemonic == Mnemonic::SYNC;
    if (static_cast<LatencyClass>(program.classes[i]) == LatencyClass::branch && !known) return {};
    if (i == last || leaves || !target) continue;
    if (*target <= i) return {};
    const Guard rest = mine.unknown || own.always() ? Guard{.unknown = true} : Guard{own.predicate, !own.negated};
    for (uint32_t k = i + 1; k < *target; ++k)
      guards[k - first] = guards[k - first].always() ? rest : Guard{.unknown = true};
  }
  if (!loads) return {};
  return guards;
}

bool waits(const Program& program, uint32_t first, uint32_t last) {
  const auto guards = guards_of(program, first, last);
  if (!guards) return false;
  const auto rows = [&](const auto& list, uint8_t count, auto&& f) {
    for (uint32_t k = 0; k < count; ++k)
      for (uint32_t r = 0; r < list[k].count; ++r) f(uint32_t{list[k].first} + r);
  };
  std::map<uint32_t, std::vector<Guard>> writes;  // by row
  for (uint32_t i = first; i <= last; ++i) {
    const Footprint& f = program.footprints[i];
    rows(f.writes, f.write_count, [&](uint32_t row) { writes[row].push_back((*guards)[i - first]); });
  }
  // Rows that every iteration has written by now, in the lanes that ever write them; and in those of a guard.
  std::set<uint32_t> fresh;
  std::set<std::tuple<uint32_t, uint8_t, bool>> fresh_under;
  bool carried = false;
  for (uint32_t i = first; i <= last; ++i) {
    const Footprint& f = program.footprints[i];
    const Guard mine = (*guards)[i - first];
    const bool constant = !mine.unknown && !writes.contains(row_predicate + mine.predicate);
    rows(f.reads, f.read_count, [&](uint32_t row) {
      carried |= writes.contains(row) && !fresh.contains(row) &&
                 !(constant && fresh_under.contains({row, mine.predicate, mine.negated}));
    });
    rows(f.writes, f.write_count, [&](uint32_t row) {
      const auto& all = writes[row];
      if (constant) fresh_under.emplace(row, mine.predicate, mine.negated);
      if (mine.always() || (constant && std::all_of(all.begin(), all.end(), [&](const Guard& g) { return g == mine; })))
        fresh.insert(row);
    });
  }
  return !carried;
}

}  // namespace

void find_spin_loops(Program& program) {
  program.spin_loops.clear();
  std::vector<uint32_t> head_of(program.size() + 1, Program::no_loop);
  for (uint32_t i = 0; i < program.size(); ++i) {
    const auto target = branch_target(program, i);
    if (!target || *target > i || i - *target >= longest || *target == i) continue;
    if (!waits(program, *target, i)) continue;
    for (uint32_t k = *target; k <= i; ++k) head_of[k] = *target;
    program.spin_loops.push_back({*target, i});
  }
  if (!program.spin_loops.empty()) program.spin_head = std::move(head_of);
}

}  // namespace rndn::sim
