// Checks a register allocation symbolically: every read of a physical register must find the virtual register that the code before allocation
// named there.
//
// Independence: knows nothing of liveness or intervals; it compares the two programs. The allocator keeps every instruction and only inserts
// (spill loads and stores, copies of predicates, the stack prologue) and renames, so that the instruction with id i means the same in both.
//
// Algorithm: regalloc2's checker (its checker.rs and design document). The state maps each physical register and each spill slot to the set of
// virtual units that it holds the value of. Original instructions check their reads and define their writes; inserted ones move symbols: LDL
// and STL between slots and registers, SEL and ISETP between predicates and their holders. Joins intersect, but a value that nothing on the
// way through a predecessor has written is undefined there, so that any register will do for it. Runs to a fixed point.
// Cost: O(blocks * registers * rounds + instructions).
// Left out: a register that holds more than four live values that are undefined on different paths is taken to hold none of them.
#include <algorithm>
#include <array>
#include <map>
#include <span>

#include "assembler/check/check.h"
#include "assembler/machine/liveness.h"
#include "libraries/base/containers/bitset.h"

namespace rndn::assembler {
namespace {

using isa::RegisterFile;

constexpr uint32_t predicate_bit = 0x40000000;  // symbols of predicates; all symbols are unit + 1

// The values that a register may be read as.
struct Cell {
  std::array<uint32_t, 4> symbols{};
  uint8_t count = 0;
  bool nothing = true;  // undefined on every path so far

  bool operator==(const Cell&) const = default;
  bool has(uint32_t symbol) const {
    return std::find(symbols.begin(), symbols.begin() + count, symbol) != symbols.begin() + count;
  }
  void add(uint32_t symbol) {
    if (count < symbols.size() && !has(symbol)) symbols[count++] = symbol;
    nothing = false;
  }
  void remove(uint32_t symbol) {
    if (!has(symbol)) return;
    const auto end = std::remove(symbols.begin(), symbols.begin() + count, symbol);
    std::fill(end, symbols.end(), 0);
    count = static_cast<uint8_t>(end - symbols.begin());
  }
  static Cell of(uint32_t symbol) { return {{symbol}, 1, false}; }
  static Cell garbage() { return {{}, 0, false}; }
};

struct State {
  std::vector<Cell> gpr, predicate = std::vector<Cell>(8);  // general registers: those that the code names
  std::map<uint32_t, Cell> slots;                           // byte offset in the frame
  Bitset written = {};                                      // values that some way to here has defined: units, then predicates
  bool reached = false;

  State() = default;
  State(uint32_t registers, size_t symbols) : gpr(registers), written(symbols) {}
  std::vector<Cell>& of(RegisterFile file) { return file == RegisterFile::gpr ? gpr : predicate; }
};

// How one operand is used.
struct Use {
  isa::Access access = isa::Access::none;
  RegisterFile file = RegisterFile::none;
  uint32_t count = 0;  // consecutive registers
  uint32_t width() const { return count; }
  bool reads() const { return access == isa::Access::read || access == isa::Access::read_write; }
  bool writes() const { return access == isa::Access::write || access == isa::Access::read_write; }
};
using Uses = std::array<Use, isa::max_operands>;
Uses uses_of(const isa::Instruction& s) {
  Uses uses;
  for (uint32_t k = 0; k < s.operand_count; ++k) {
    uses[k] = {isa::access(s, k), isa::register_file(s, k), 0};
    if (uses[k].access == isa::Access::none) uses[k].file = RegisterFile::none;
    if (uses[k].file != RegisterFile::none) uses[k].count = isa::register_count(s, k);
  }
  return uses;
}

// The general registers that code names, but for RZ: one more than the number of the highest.
uint32_t registers_of(const Function& f) {
  uint32_t registers = 0;
  for (const Block& block : f.blocks)
    for (InstId id : block.code) {
      const isa::Instruction& sass = f[id].sass;
      for (uint32_t k = 0; k < sass.operand_count; ++k)
        if (isa::register_file(sass, k) == RegisterFile::gpr && sass.operands[k].reg < isa::RZ)
          registers = std::max(registers, std::min<uint32_t>(sass.operands[k].reg + isa::register_count(sass, k), isa::RZ));
    }
  return registers;
}

// Lanes that meet by WARPSYNC.COLLECTIVE run the code of one of their places: it must be the same at all places of one mask, registers too.
void check_meetings(const Function& before, const Function& after, auto&& report) {
  const auto mask = [](const Inst& inst) {
    uint32_t k = 0;
    while (isa::register_file(inst.sass, k) != RegisterFile::gpr) ++k;
    return inst.sass.operands[k].reg;
  };
  std::map<uint32_t, std::string> code;  // by the mask's virtual register
  for (size_t k = 0; k < after.layout.size(); ++k) {
    const std::vector<InstId>& entered = after.blocks[after.layout[k]].code;
    if (entered.empty() || after[entered.back()].sass.mnemonic != isa::Mnemonic::WARPSYNC_COLLECTIVE) continue;
    const InstId enter = entered.back();
    std::string text = fmt::format("R{}:", mask(after[enter]));
    for (bool ended = false; !ended && ++k < after.layout.size();)
      for (InstId id : after.blocks[after.layout[k]].code) {
        if (ended = after[id].sass.mnemonic == isa::Mnemonic::ENDCOLLECTIVE; ended) break;
        text += " " + isa::text(*after.target, after[id].sass) + ";";
      }
    const std::string& first = code.try_emplace(mask(before[enter]), text).first->second;
    if (first != text) report(after[enter], fmt::format("lanes meet to do `{}`, elsewhere `{}`", text, first));
  }
}

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
    return symbol & predicate_bit ? fmt::format("predicate {}", (symbol & ~predicate_bit) - 1)
                                  : fmt::format("value {}", symbol - 1);
  };
  auto content = [&](const Cell& c) {
    return c.nothing ? "nothing" : c.count == 0 ? "different values" : name(c.symbols[0]);
  };
  std::vector<Uses> uses_before(originals);  // of the instructions that blocks hold
  for (const Block& block : before.blocks)
    for (InstId i : block.code) uses_before[index(i)] = uses_of(before[i].sass);
  const size_t units = before.gprs.size() + 2, symbols = units + before.predicates.size() + 2;
  const uint32_t registers = registers_of(after);
  auto position = [&](uint32_t symbol) { return symbol & predicate_bit ? units + (symbol & ~predicate_bit) : symbol; };
  // The branch of a block reads its predicate.
  const auto check_branch = [&](BlockId b, const State& s) {
    if (before.blocks[b].predicate < isa::first_virtual) return;
    const uint32_t want = (before.blocks[b].predicate - isa::first_virtual + 1) | predicate_bit;
    const Cell& have = s.predicate[after.blocks[b].predicate];
    if (!have.has(want) && s.written.test(position(want)))
      problems.push_back(fmt::format("allocation: the branch of a block reads P{}, which holds {}",
                                     after.blocks[b].predicate, content(have)));
  };
  // A register may be read as a value when it may be so behind each of the ways on which, as far as they are known, the value is written. cell(state): null if
  // there is none; wanted(symbol): whether the value is worth following.
  const auto join = [&](std::span<const State* const> ways, auto&& cell, auto&& wanted) {
    Cell all;
    for (const State* way : ways)
      if (const Cell* c = cell(*way); c && !c->nothing) {
        all.nothing = false;
        for (uint32_t k = 0; k < c->count; ++k) {
          bool everywhere = wanted(c->symbols[k]);
          for (const State* w : ways) {
            const Cell* other = cell(*w);
            everywhere &= (other && other->has(c->symbols[k])) || !w->written.test(position(c->symbols[k]));
          }
          if (everywhere) all.add(c->symbols[k]);
        }
      }
    return all;
  };
  const auto join_registers = [&](std::span<const State* const> ways, State& s, auto&& wanted) {
    s.reached = true;
    for (const State* way : ways) s.written.merge(way->written);
    for (uint32_t r = 0; r < s.gpr.size(); ++r)
      s.gpr[r] = join(
          ways, [&](const State& o) { return &o.gpr[r]; }, wanted);
    for (uint32_t r = 0; r < s.predicate.size(); ++r)
      s.predicate[r] = join(
          ways, [&](const State& o) { return &o.predicate[r]; }, wanted);
  };
  // What holds whichever of two ways was taken; neither has touched a slot.
  const auto either = [&](const State& a, const State& b) {
    State s(registers, symbols);
    s.slots = a.slots;
    const State* const ways[] = {&a, &b};
    join_registers(ways, s, [](uint32_t) { return true; });
    return s;
  };
  // A call of a subroutine runs its code: what its places bring, read and need again is followed through it at each of them.
  const auto code_of_subroutine = [](const Function& f, uint32_t subroutine) {  // nothing is passed over
    std::vector<InstId> code;
    for (BlockId b = f.subroutines[subroutine].body; !is_none(b); b = f.blocks[b].next)
      code.insert(code.end(), f.blocks[b].code.begin(), f.blocks[b].code.end());
    return code;
  };
  const auto step = [&](auto&& self, InstId id, State& s, bool reporting) -> void {
    const Inst& now = after[id];
    const isa::Instruction& sass = now.sass;
    if (index(id) < originals) {
      const Inst& was = before[id];
      const Uses& uses = uses_before[index(id)];
      auto check = [&](uint32_t virtual_register, uint32_t physical, uint32_t width, RegisterFile file) {
        if (virtual_register < isa::first_virtual) {
          if (reporting && virtual_register != physical) report(now, "a fixed register was renamed");
          return;
        }
        if (physical + width > s.of(file).size()) {
          if (reporting) report(now, fmt::format("reads register {}, which keeps nothing", physical));
          return;
        }
        for (uint32_t w = 0; w < width; ++w) {
          uint32_t want = virtual_register - isa::first_virtual + w + 1;
          if (file == RegisterFile::predicate) want |= predicate_bit;
          // Before its first definition any register will do.
          const Cell& have = s.of(file)[physical + w];
          if (reporting && !have.has(want) && s.written.test(position(want)))
            report(now, fmt::format("reads {} in {}{}, which holds {}", name(want),
                                    file == RegisterFile::gpr ? "R" : "P", physical + w, content(have)));
        }
      };
      for (uint32_t k = 0; k < sass.operand_count; ++k) {
        RegisterFile file = uses[k].file;
        if (!uses[k].reads() || (file != RegisterFile::gpr && file != RegisterFile::predicate)) continue;
        if (was.sass.operands[k].reg == (file == RegisterFile::gpr ? isa::RZ : isa::PT)) {
          if (reporting && sass.operands[k].reg != was.sass.operands[k].reg)
            report(now, "the zero register was renamed");
          continue;
        }
        check(was.sass.operands[k].reg, sass.operands[k].reg, uses[k].width(), file);
      }
      if (was.sass.guard != isa::PT)
        check(was.sass.guard, sass.guard, 1, RegisterFile::predicate);
      else if (reporting && sass.guard != isa::PT)
        report(now, "got a guard");
      for (uint32_t k = 0; k < sass.operand_count; ++k) {
        RegisterFile file = uses[k].file;
        if (!uses[k].writes() || (file != RegisterFile::gpr && file != RegisterFile::predicate)) continue;
        uint32_t v = was.sass.operands[k].reg, p = sass.operands[k].reg, width = uses[k].width();
        if (v == (file == RegisterFile::gpr ? isa::RZ : isa::PT)) continue;
        if (file == RegisterFile::gpr && reporting && width > 1 && p % width != 0)
          report(now, fmt::format("R{} is not aligned to {} registers", p, width));
        if (p + width > s.of(file).size()) {
          if (reporting) report(now, fmt::format("writes register {}, which keeps nothing", p));
          continue;
        }
        if (v < isa::first_virtual) {  // operands of a call of the driver
          for (uint32_t w = 0; w < width; ++w) s.of(file)[p + w] = Cell::garbage();
          continue;
        }
        for (uint32_t w = 0; w < width; ++w) {
          uint32_t symbol = v - isa::first_virtual + w + 1;
          if (file == RegisterFile::predicate) symbol |= predicate_bit;
          std::vector<Cell>& file_state = s.of(file);
          bool starts = sass.guard == isa::PT;
          if (!starts)
            starts = file == RegisterFile::gpr ? before.gprs[v - isa::first_virtual].temporary
                                               : before.predicates[v - isa::first_virtual].temporary;
          // One place per value: copies elsewhere are stale from here on.
          if (starts)
            for (Cell& other : file_state) other.remove(symbol);
          file_state[p + w] = Cell::of(symbol);
          s.written.set(position(symbol));
        }
      }
      if (was.call == Call::function) {  // it may change every register
        for (Cell& c : s.gpr) c = Cell::garbage();
        for (Cell& c : s.predicate) c = Cell::garbage();
      }
      if (was.call == Call::subroutine) {
        std::map<BlockId, State> passed;  // over pieces: by where that leads
        for (BlockId b = after.subroutines[was.callee].body; !is_none(b); b = after.blocks[b].next) {
          if (const auto it = passed.find(b); it != passed.end()) s = either(s, it->second);
          for (InstId i : after.blocks[b].code) self(self, i, s, reporting);
          if (is_none(after.blocks[b].taken)) continue;
          if (reporting) check_branch(b, s);
          if (const auto [it, first] = passed.try_emplace(after.blocks[b].taken, s); !first)
            it->second = either(it->second, s);
        }
      }
      return;
    }
    // Inserted.
    const Uses uses = uses_of(sass);
    using M = isa::Mnemonic;
    const uint32_t holder = sass.mnemonic == M::STL ? 1 : sass.mnemonic == M::ISETP ? 2 : 0;
    if (sass.operands[holder].reg + uses[holder].width() > s.gpr.size()) {
      if (reporting) report(now, fmt::format("moves register {}, which keeps nothing", sass.operands[holder].reg));
      return;
    }
    switch (sass.mnemonic) {
      case M::LDL:
        for (uint32_t w = 0; w < uses[0].width(); ++w) {
          auto it = s.slots.find(static_cast<uint32_t>(sass.operands[1].value) + 4 * w);
          s.gpr[sass.operands[0].reg + w] = it == s.slots.end() ? Cell{} : it->second;
        }
        break;
      case M::STL:
        for (uint32_t w = 0; w < uses[1].width(); ++w)
          s.slots[static_cast<uint32_t>(sass.operands[0].value) + 4 * w] = s.gpr[sass.operands[1].reg + w];
        break;
      case M::SEL: s.gpr[sass.operands[0].reg] = s.predicate[sass.operands[3].reg]; break;    // holder = predicate
      case M::ISETP: s.predicate[sass.operands[0].reg] = s.gpr[sass.operands[2].reg]; break;  // predicate = holder
      case M::MOV:
      case M::IADD3:
      case M::IADD32I: s.gpr[sass.operands[0].reg] = Cell::garbage(); break;  // the stack pointer
      default:
        if (reporting) report(now, "inserted by the allocator, with a meaning that is not known here");
    }
  };

  if (after.layout.size() != before.layout.size()) return {"allocation changed the blocks"};
  // Spilled values were renamed before assignment; their uses are checked through the slots by the names that the slots hold. Renamed
  // operands are not the original's: compare by slot where the operand's register was loaded by an inserted instruction.
  IdVector<BlockId, State> in(after.blocks.size());
  in[after.layout[0]] = State(registers, symbols);
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
      step(step, i, s, reporting);
    }
    if (reporting && original != was.size())
      problems.push_back(fmt::format("allocation dropped {} instructions of a block", was.size() - original));
    if (reporting) check_branch(b, s);
    return s;
  };
  IdVector<BlockId, std::vector<BlockId>> predecessors(after.blocks.size());
  for (BlockId b : after.layout) for_each_successor(after.blocks[b], [&](BlockId n) { predecessors[n].push_back(b); });
  // What each block or some way from it reads before it writes it, and so what is worth following.
  IdVector<BlockId, Bitset> wanted(after.blocks.size());
  auto scan = [&](BlockId b) {  // backwards through the block
    Bitset live(symbols);
    for_each_successor(before.blocks[b], [&](BlockId n) {
      if (wanted[n].size()) live.merge(wanted[n]);
    });
    auto mark = [&](uint32_t v, uint32_t width, RegisterFile file, bool value) {
      if (v < isa::first_virtual || (file != RegisterFile::gpr && file != RegisterFile::predicate)) return;
      for (uint32_t w = 0; w < width; ++w) {
        const size_t at = position((v - isa::first_virtual + w + 1) | (file == RegisterFile::gpr ? 0 : predicate_bit));
        value ? live.set(at) : live.reset(at);
      }
    };
    mark(before.blocks[b].predicate, 1, RegisterFile::predicate, true);
    std::vector<InstId> code;
    for (InstId id : before.blocks[b].code) {
      code.push_back(id);
      if (before[id].call != Call::subroutine) continue;
      const std::vector<InstId> called = code_of_subroutine(before, before[id].callee);
      code.insert(code.end(), called.begin(), called.end());
    }
    for (size_t at = code.size(); at-- > 0;) {
      const Inst& i = before[code[at]];
      const Uses& uses = uses_before[index(code[at])];
      for (int pass = 0; pass < 2; ++pass)
        for (uint32_t k = 0; k < i.sass.operand_count; ++k)
          if (pass == 0 ? uses[k].writes() && i.sass.guard == isa::PT : uses[k].reads())
            mark(i.sass.operands[k].reg, uses[k].width(), uses[k].file, pass == 1);
      mark(i.sass.guard, 1, RegisterFile::predicate, true);
    }
    return live;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t at = after.layout.size(); at-- > 0;) {
      const BlockId b = after.layout[at];
      if (Bitset live = scan(b); live != wanted[b]) wanted[b] = std::move(live), changed = true;
    }
  }
  IdVector<BlockId, State> out(after.blocks.size());
  size_t rounds = 2 * after.layout.size() + 16;
  for (bool changed = true; changed && rounds > 0; --rounds) {
    changed = false;
    for (BlockId b : after.layout) {
      if (!queued[index(b)]) continue;
      queued[index(b)] = false;
      if (!predecessors[b].empty()) {
        State s(registers, symbols);
        std::vector<const State*> ways;
        for (BlockId p : predecessors[b])
          if (out[p].reached) ways.push_back(&out[p]);
        const auto is_wanted = [&](uint32_t symbol) { return wanted[b].test(position(symbol)); };
        join_registers(ways, s, is_wanted);
        for (const State* way : ways)
          for (const auto& [offset, unused] : way->slots)
            s.slots.try_emplace(offset, join(
                                            ways,
                                            [&, at = offset](const State& o) {
                                              auto it = o.slots.find(at);
                                              return it == o.slots.end() ? nullptr : &it->second;
                                            },
                                            is_wanted));
        in[b] = std::move(s);
      }
      State s = run_block(b, false);
      if (out[b].reached && s.gpr == out[b].gpr && s.predicate == out[b].predicate && s.slots == out[b].slots &&
          s.written == out[b].written)
        continue;
      s.reached = changed = true;
      out[b] = std::move(s);
      for_each_successor(after.blocks[b], [&](BlockId n) { queued[index(n)] = true; });
    }
  }
  for (BlockId b : after.layout)
    if (in[b].reached) run_block(b, true);
  if (after.collective) check_meetings(before, after, report);
  return problems;
}

}  // namespace rndn::assembler
