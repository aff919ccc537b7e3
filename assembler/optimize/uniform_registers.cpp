// Moves values that are the same in all lanes, computed before a loop and read inside, to uniform registers (Volta and later): general registers
// limit how many warps are resident, uniform ones do not.
//
// Input and output: functions over virtual registers. Candidates are single GPR units with one definition, unguarded, outside loops, in a block
// that all live lanes of the warp run together, made of uniform sources only (literals, constant bank, block numbers, loads through uniform
// addresses, and what is computed from them). R2UR follows the definition; readers in other blocks take the uniform register as their operand
// where the instruction has a form for it, or a copy of it in front of them. A candidate is moved when some loop reads it, most of those readers
// take the operand, and every path to a reader passes the definition.
// Uniform registers are written once and never reused: UR4, UR5 hold the memory descriptor, candidates take UR6 and up.
// Cost: O(instructions + blocks * rounds).
//
// Left out: uniform arithmetic, values that change in loops, pairs as operands.
#include <algorithm>
#include <bit>

#include "assembler/isa/make.h"
#include "assembler/machine/operands.h"
#include "assembler/optimize/optimize.h"

namespace rndn::assembler {
namespace {

using isa::LatencyClass;
using isa::Mnemonic;
using isa::ModifierKind;

constexpr uint32_t first_uniform = scratch_uniform + 2, most_candidates = 48;

bool is_uniform_operation(const Facts& x, const isa::Instruction& s) {
  if (x.guarded || x.pinned || x.cooperative || x.writes_elsewhere) return false;
  switch (x.latency) {
    case LatencyClass::alu:
    case LatencyClass::fma:
    case LatencyClass::wide:
    case LatencyClass::constant_load:
    case LatencyClass::global_load: return true;
    case LatencyClass::special:
      return s.mnemonic == Mnemonic::S2R && s.operands[1].value >= 0x25 &&
             s.operands[1].value <= 0x27;  // block numbers
    default: return false;
  }
}

uint8_t mirrored(uint8_t compare) {  // ISETP: LT 1, LE 3, GT 4, GE 6
  switch (compare) {
    case 1: return 4;
    case 4: return 1;
    case 3: return 6;
    case 6: return 3;
    default: return compare;
  }
}

// The instruction with GPR operand k replaced by a uniform register; false when there is no such form.
bool with_uniform(const isa::Target& target, isa::FormCache& forms, const isa::Instruction& s, uint32_t k,
                  uint32_t uniform, isa::Instruction& made) {
  std::array<isa::Operand, isa::max_operands> operands = s.operands;
  operands[k].kind = isa::OperandKind::uniform;
  operands[k].reg = uniform;
  bool mirror = false;
  const std::span<const isa::Operand> list(operands.data(), s.operand_count);
  auto make = [&] { return isa::make(target, s.mnemonic, list, made, forms) != nullptr; };
  bool found = make();
  if (!found) {
    // The other source of a sum, product or comparison.
    uint32_t other = 0;
    switch (s.mnemonic) {
      case Mnemonic::IADD3: other = k == 3 ? 4 : 0; break;
      case Mnemonic::IMAD: other = k == 1 ? 2 : 0; break;
      case Mnemonic::ISETP: other = k == 2 ? 3 : 0, mirror = true; break;
      default: break;
    }
    if (other == 0 || operands[other].kind != isa::OperandKind::gpr) return false;
    if (mirror && (!isa::has_modifier(s.form, ModifierKind::Compare) || operands[k].negated || operands[other].negated))
      return false;
    std::swap(operands[k], operands[other]);
    if (!make()) return false;
  } else {
    mirror = false;
  }
  if (!isa::copy_modifiers(s, made)) return false;
  if (mirror) isa::set_modifier(made, ModifierKind::Compare, mirrored(isa::modifier(made, ModifierKind::Compare)));
  return isa::provenance(made.form) != isa::Provenance::inferred;
}

// What is known of a unit: not uniform, uniform, or the number of its candidate.
constexpr uint8_t not_uniform = 255, no_candidate = 254;
static_assert(most_candidates < no_candidate);

// An instruction that reads a candidate outside the candidate's block.
struct Reader {
  uint32_t inst, block;
};

struct Candidate {
  uint32_t unit;
  uint32_t taken = 0, copied = 0;  // readers in loops by how they would be served
  bool bad = false;
};

struct Mover {
  Function& f;
  std::span<UnitUse> definitions;  // by unit
  isa::FormCache& forms;
  const isa::Target& t = *f.target;
  Arena& arena = *f.arena;
  const uint32_t gprs = static_cast<uint32_t>(f.gprs.size());  // of the program: the others are copies
  std::span<uint8_t> units = arena.make_span<uint8_t>(definitions.size(), not_uniform);
  ArenaList<Candidate> candidates{arena, most_candidates};
  ArenaList<Reader> readers{arena, 256};  // in the order of the code

  uint32_t unit_of(Range r) const { return f.units.of(r.file(), r.reg()); }
  // Whether the register is a GPR of the program.
  bool is_gpr(Range r) const { return r.file() == Range::gpr && r.reg() - isa::first_virtual < gprs; }

  void find_uniform() {
    for (BlockId b : f.layout) {
      const Block& block = f.blocks[b];
      if (!block.convergent || block.loop_depth != 0) continue;
      for (InstId i : block.code) {
        const Facts& x = f.facts[index(i)];
        if (!is_uniform_operation(x, f[i].sass)) continue;
        bool uniform = true;
        for (Range r : x.reads()) {
          if (!r.allocated()) continue;  // uniform registers
          if (r.reg() < isa::first_virtual) uniform = false;
          for (uint32_t w = 0; uniform && w < r.width(); ++w) uniform = units[unit_of(r) + w] != not_uniform;
        }
        if (!uniform) continue;
        for (Range r : x.writes())
          for (uint32_t w = 0; w < r.width(); ++w)
            if (const uint32_t u = unit_of(r) + w; !definitions[u].several) units[u] = no_candidate;
      }
    }
  }

  // Candidates, and how many of their readers in loops take a uniform operand.
  void find_candidates() {
    for (BlockId b : f.layout) {
      const Block& block = f.blocks[b];
      for (InstId i : block.code) {
        const Facts& x = f.facts[index(i)];
        if (!x.crosses) continue;
        bool noted = false;
        for (Range r : x.reads()) {
          if (!is_gpr(r)) continue;
          const uint32_t first = unit_of(r);
          for (uint32_t w = 0; w < r.width(); ++w) {
            uint8_t& u = units[first + w];
            if (u == not_uniform || definitions[first + w].block == index(b)) continue;
            if (!noted) readers.push({index(i), index(b)}), noted = true;
            if (u == no_candidate) {
              if (candidates.size() == most_candidates || block.loop_depth == 0) continue;
              u = static_cast<uint8_t>(candidates.push({first + w}));
            }
            if (block.loop_depth == 0) continue;
            isa::Instruction made;
            Candidate& c = candidates[u];
            if (r.width() == 1 && with_uniform(t, forms, f[i].sass, r.operand(), first_uniform, made))
              ++c.taken;
            else
              ++c.copied;
          }
        }
      }
    }
    for (Candidate& c : candidates.all()) c.bad = c.taken < 2 * c.copied;
  }

  // Candidates with a reader that some path reaches without the definition.
  void check_paths() {
    std::span<uint64_t> defined = arena.make_span<uint64_t>(f.blocks.size()),
                        in = arena.make_span<uint64_t>(f.blocks.size(), ~uint64_t{0});
    for (uint32_t c = 0; c < candidates.size(); ++c) defined[definitions[candidates[c].unit].block] |= uint64_t{1} << c;
    in[index(f.layout[0])] = 0;
    for (bool changed = true; changed;) {
      changed = false;
      for (BlockId b : f.layout)
        for_each_successor(f.blocks[b], [&](BlockId s) {
          const uint64_t next = in[index(s)] & (in[index(b)] | defined[index(b)]);
          changed |= next != in[index(s)];
          in[index(s)] = next;
        });
    }
    for (const Reader& x : readers.all())
      for (Range r : f.facts[x.inst].reads())
        if (is_gpr(r))
          for (uint32_t w = 0; w < r.width(); ++w)
            if (const uint8_t c = units[unit_of(r) + w];
                c < no_candidate && definitions[unit_of(r) + w].block != x.block)
              candidates[c].bad |= !(in[x.block] >> c & 1);
  }

  // Lists the units of an instruction that is new, or has changed, and counts it among their readers.
  void list(InstId i) {
    list_units(f, i);
    for_each_read(i, [](UnitUse& u) { ++u.readers; });
  }
  void list_again(InstId i) {
    for_each_read(i, [](UnitUse& u) { --u.readers; });
    list(i);
  }
  template <class F>
  void for_each_read(InstId i, F&& use) {
    const Units::List list = f.units.of(i);
    for (const uint32_t* u = list.reads; u != list.writes; ++u)
      if (*u < definitions.size()) use(definitions[*u]);
  }

  void replace() {
    std::vector<InstId> code;
    code.reserve(256);
    const std::span<uint32_t> uniform = arena.make_raw<uint32_t>(candidates.size());
    uint32_t next = first_uniform;
    for (size_t c = 0; c < candidates.size(); ++c)
      if (!candidates[c].bad) uniform[c] = next++;
    auto moved = [&](Range r, uint32_t w, uint32_t block) -> uint32_t {
      if (!is_gpr(r)) return nobody;
      const uint8_t c = units[unit_of(r) + w];
      return c < no_candidate && definitions[unit_of(r) + w].block != block && !candidates[c].bad ? uniform[c] : nobody;
    };
    std::span<bool> touched = arena.make_span<bool>(f.blocks.size(), false);
    std::span<bool> concerned = arena.make_span<bool>(f.insts.size(), false);  // readers and definitions
    for (const Reader& x : readers.all()) touched[x.block] = concerned[x.inst] = true;
    for (const Candidate& c : candidates.all())
      touched[definitions[c.unit].block] = concerned[definitions[c.unit].inst] = true;
    for (BlockId b : f.layout) {
      if (!touched[index(b)]) continue;
      code.clear();
      for (InstId i : f.blocks[b].code) {
        if (!concerned[index(i)]) {
          code.push_back(i);
          continue;
        }
        for (uint32_t k = 0; k < f.facts[index(i)].read_count; ++k) {
          const Range r = f.facts[index(i)].ranges[k];
          bool any = false;
          for (uint32_t w = 0; w < r.width(); ++w) any |= moved(r, w, index(b)) != nobody;
          if (!any) continue;
          isa::Instruction made;
          if (r.width() == 1 && with_uniform(t, forms, f[i].sass, r.operand(), moved(r, 0, index(b)), made)) {
            f[i].sass = made;
            f.facts[index(i)] = facts_of(t, f[i]);
            list_again(i);
            k = nobody;  // operands may have moved: once more from the start
            continue;
          }
          const uint32_t copy = new_gpr(f, r.width(), false);
          for (uint32_t w = 0; w < r.width(); ++w) {
            const uint32_t from = moved(r, w, index(b));
            Inst inst =
                make_inst(t, Mnemonic::MOV,
                          {gpr(copy + w), from == nobody ? gpr(r.reg() + w) : rndn::assembler::uniform(from)}, &forms);
            inst.line = f[i].line;
            code.push_back(add_inst(f, inst));
            list(code.back());
          }
          f.facts[index(i)].ranges[k].set_reg(copy);
          f[i].sass.operands[r.operand()].reg = copy;
          list_again(i);
        }
        code.push_back(i);
        for (Range r : f.facts[index(i)].writes())
          for (uint32_t w = 0; w < r.width(); ++w) {
            if (!is_gpr(r)) continue;
            const uint8_t c = units[unit_of(r) + w];
            if (c >= no_candidate || candidates[c].bad) continue;
            Inst inst = make_inst(t, Mnemonic::R2UR,
                                  {rndn::assembler::uniform(uniform[c]), isa::Operand{}, gpr(r.reg() + w)}, &forms);
            inst.line = f[i].line;
            code.push_back(add_inst(f, inst));
            list(code.back());
          }
      }
      if (code.size() != f.blocks[b].code.size()) f.blocks[b].code.assign(code.begin(), code.end());
    }
  }
};

}  // namespace

bool move_uniform_values(Function& f, Survey& survey, isa::FormCache& forms) {
  if (f.target->family != isa::Family::volta) return false;
  ArenaScope scope(*f.arena);
  Mover m{.f = f, .definitions = survey.units, .forms = forms};
  m.find_uniform();
  m.find_candidates();
  m.check_paths();
  if (std::ranges::all_of(m.candidates.all(), [](const Candidate& c) { return c.bad; })) return false;
  m.replace();
  return true;
}

}  // namespace rndn::assembler
