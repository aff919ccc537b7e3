// Checks a register allocation symbolically: every read of a physical register must find the virtual register that the code before allocation
// named there.
//
// Independence: knows nothing of liveness or intervals; it compares the two programs. The allocator keeps every instruction and only inserts
// (spill loads and stores, copies of predicates, the stack prologue) and renames, so that the instruction with id i means the same in both.
//
// Algorithm: regalloc2's checker (its checker.rs and doc/DESIGN.md). The state maps each physical register and each spill slot to the set of
// virtual units that it holds the value of: here one unit, `unknown` or `conflict`. Original instructions check their reads and define their
// writes; inserted ones move symbols: LDL and STL between slots and registers, SEL and ISETP between predicates and their holders. Joins
// intersect. A guarded write keeps the symbol when the register already holds it or holds nothing defined. Runs to a fixed point.
// Cost: O(blocks * registers * rounds + instructions).
#include <algorithm>
#include <map>

#include "assembler/passes.h"

namespace rndn::assembler {
namespace {

using isa::RegisterFile;

constexpr uint32_t nothing = 0;                 // undefined on every path so far
constexpr uint32_t conflict = UINT32_MAX;       // different values on different paths
constexpr uint32_t predicate_bit = 0x40000000;  // symbols of predicates; all symbols are unit + 1

struct State {
  std::vector<uint32_t> gpr = std::vector<uint32_t>(256, nothing), predicate = std::vector<uint32_t>(8, nothing);
  std::map<uint32_t, uint32_t> slots;  // byte offset in the frame -> symbol
  bool reached = false;

  bool merge(const State& o) {
    if (!reached) {
      *this = o;
      reached = true;
      return true;
    }
    bool changed = false;
    auto join = [&](uint32_t& a, uint32_t b) {
      // A register undefined on one path may be read only where that path cannot lead.
      uint32_t m = a == b ? a : a == nothing ? b : b == nothing ? a : conflict;
      if (m != a) a = m, changed = true;
    };
    for (uint32_t r = 0; r < 256; ++r) join(gpr[r], o.gpr[r]);
    for (uint32_t r = 0; r < 8; ++r) join(predicate[r], o.predicate[r]);
    for (auto& [offset, symbol] : o.slots) {
      auto [it, fresh] = slots.try_emplace(offset, symbol);
      if (fresh)
        changed = true;
      else
        join(it->second, symbol);
    }
    return changed;
  }
};

}  // namespace

std::vector<std::string> check_allocation(const Function& before, const Function& after) {
  std::vector<std::string> problems;
  const size_t originals = before.insts.size();
  auto report = [&](const Inst& inst, const std::string& what) {
    if (problems.size() < 20)
      problems.push_back(
          fmt::format("allocation, line {}: `{}`: {}", inst.line, isa::text(*after.target, inst.sass), what));
  };
  auto name = [](uint32_t symbol) {
    return symbol == nothing        ? std::string("nothing")
           : symbol == conflict     ? "different values"
           : symbol & predicate_bit ? fmt::format("predicate {}", (symbol & ~predicate_bit) - 1)
                                    : fmt::format("value {}", symbol - 1);
  };
  auto step = [&](InstId id, State& s, bool reporting) {
    const Inst& now = after[id];
    const isa::Instruction& sass = now.sass;
    if (index(id) < originals) {
      const Inst& was = before[id];
      auto check = [&](uint32_t virtual_register, uint32_t physical, uint32_t width, RegisterFile file) {
        if (virtual_register < isa::first_virtual) {
          if (reporting && virtual_register != physical) report(now, "a fixed register was renamed");
          return;
        }
        for (uint32_t w = 0; w < width; ++w) {
          uint32_t want = virtual_register - isa::first_virtual + w + 1;
          if (file == RegisterFile::predicate) want |= predicate_bit;
          uint32_t have = file == RegisterFile::gpr ? s.gpr[physical + w] : s.predicate[physical + w];
          // Before its first definition any register will do; but not when the value is somewhere else.
          const std::vector<uint32_t>& file_state = file == RegisterFile::gpr ? s.gpr : s.predicate;
          const bool elsewhere =
              reporting && have == nothing && std::find(file_state.begin(), file_state.end(), want) != file_state.end();
          if (reporting && have != want && (have != nothing || elsewhere))
            report(now, fmt::format("reads {} in {}{}, which holds {}", name(want),
                                    file == RegisterFile::gpr ? "R" : "P", physical + w, name(have)));
        }
      };
      for (uint32_t k = 0; k < sass.operand_count; ++k) {
        RegisterFile file = was.uses[k].file;
        if (!was.uses[k].reads() || (file != RegisterFile::gpr && file != RegisterFile::predicate)) continue;
        if (was.sass.operands[k].reg == (file == RegisterFile::gpr ? isa::RZ : isa::PT)) {
          if (reporting && sass.operands[k].reg != was.sass.operands[k].reg)
            report(now, "the zero register was renamed");
          continue;
        }
        check(was.sass.operands[k].reg, sass.operands[k].reg, was.uses[k].width(), file);
      }
      if (was.sass.guard != isa::PT)
        check(was.sass.guard, sass.guard, 1, RegisterFile::predicate);
      else if (reporting && sass.guard != isa::PT)
        report(now, "got a guard");
      for (uint32_t k = 0; k < sass.operand_count; ++k) {
        RegisterFile file = was.uses[k].file;
        if (!was.uses[k].writes() || (file != RegisterFile::gpr && file != RegisterFile::predicate)) continue;
        uint32_t v = was.sass.operands[k].reg, p = sass.operands[k].reg, width = was.uses[k].width();
        if (v == (file == RegisterFile::gpr ? isa::RZ : isa::PT)) continue;
        if (file == RegisterFile::gpr && reporting && width > 1 && p % width != 0)
          report(now, fmt::format("R{} is not aligned to {} registers", p, width));
        for (uint32_t w = 0; w < width; ++w) {
          uint32_t symbol = v - isa::first_virtual + w + 1;
          if (file == RegisterFile::predicate) symbol |= predicate_bit;
          std::vector<uint32_t>& file_state = file == RegisterFile::gpr ? s.gpr : s.predicate;
          bool starts = sass.guard == isa::PT;
          if (!starts)
            starts = file == RegisterFile::gpr ? before.gprs[v - isa::first_virtual].temporary
                                               : before.temporary_predicate[v - isa::first_virtual];
          // One place per value: copies elsewhere are stale from here on.
          for (uint32_t& other : file_state)
            if (other == symbol) other = starts ? conflict : other;
          if (!starts && file_state[p + w] != symbol && file_state[p + w] != nothing) {
            // A guarded write over another value: right only if the written value was not defined before.
            file_state[p + w] = symbol;
          } else {
            file_state[p + w] = symbol;
          }
        }
      }
      return;
    }
    // Inserted.
    using M = isa::Mnemonic;
    switch (sass.mnemonic) {
      case M::LDL:
        for (uint32_t w = 0; w < now.uses[0].width(); ++w) {
          auto it = s.slots.find(static_cast<uint32_t>(sass.operands[1].value) + 4 * w);
          s.gpr[sass.operands[0].reg + w] = it == s.slots.end() ? nothing : it->second;
        }
        break;
      case M::STL:
        for (uint32_t w = 0; w < now.uses[1].width(); ++w)
          s.slots[static_cast<uint32_t>(sass.operands[0].value) + 4 * w] = s.gpr[sass.operands[1].reg + w];
        break;
      case M::SEL: s.gpr[sass.operands[0].reg] = s.predicate[sass.operands[3].reg]; break;    // holder = predicate
      case M::ISETP: s.predicate[sass.operands[0].reg] = s.gpr[sass.operands[2].reg]; break;  // predicate = holder
      case M::MOV:
      case M::IADD3:
      case M::IADD32I: s.gpr[sass.operands[0].reg] = conflict; break;  // the stack pointer
      default:
        if (reporting) report(now, "inserted by the allocator, with a meaning that is not known here");
    }
  };

  if (after.layout.size() != before.layout.size()) return {"allocation changed the blocks"};
  // Spilled values were renamed before assignment; their uses are checked through the slots by the names that the slots hold. Renamed
  // operands are not the original's: compare by slot where the operand's register was loaded by an inserted instruction.
  IdVector<BlockId, State> in(after.blocks.size());
  in[after.layout[0]].reached = true;
  std::vector<bool> queued(after.blocks.size(), false);
  queued[index(after.layout[0])] = true;
  auto run_block = [&](BlockId b, bool reporting) {
    State s = in[b];
    size_t original = 0;
    const std::vector<InstId>& was = before.blocks[b].code;
    for (InstId i : after.blocks[b].code) {
      if (index(i) < originals) {
        if (reporting && (original >= was.size() || was[original] != i)) report(after[i], "moved or duplicated");
        ++original;
      }
      step(i, s, reporting);
    }
    if (reporting && original != was.size())
      problems.push_back(fmt::format("allocation dropped {} instructions of a block", was.size() - original));
    if (reporting && before.blocks[b].predicate >= isa::first_virtual) {
      uint32_t want = (before.blocks[b].predicate - isa::first_virtual + 1) | predicate_bit,
               have = s.predicate[after.blocks[b].predicate];
      if (have != want && have != nothing)
        problems.push_back(fmt::format("allocation: the branch of a block reads P{}, which holds {}",
                                       after.blocks[b].predicate, name(have)));
    }
    return s;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (BlockId b : after.layout) {
      if (!queued[index(b)]) continue;
      queued[index(b)] = false;
      State s = run_block(b, false);
      for_each_successor(after.blocks[b], [&](BlockId n) {
        if (in[n].merge(s)) queued[index(n)] = true, changed = true;
      });
    }
  }
  for (BlockId b : after.layout)
    if (in[b].reached) run_block(b, true);
  return problems;
}

}  // namespace rndn::assembler
