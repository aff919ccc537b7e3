#include "tests/assembler/ptxas_faults.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace rndn::testing {
namespace {

using namespace ptx;

struct Rule {
  const char* reason;
  uint32_t from, to;  // targets
  bool always;        // else only where its code has words that are no instructions
  bool (*matches)(const Function& f, const Instruction& i);
};

// Registers that may be the same in all lanes: not reached by what tells lanes apart. Over-approximates what ptxas takes for uniform.
std::vector<bool> maybe_uniform(const Function& f) {
  std::vector<bool> same(f.registers.size(), true);
  const auto source_is = [&](const Operand& o) {
    switch (o.kind) {
      case Operand::reg:
      case Operand::address_reg: return static_cast<bool>(same[o.id]);
      case Operand::special: {
        const auto s = static_cast<SpecialRegister>(o.id);
        return s >= SpecialRegister::ntid_x && s != SpecialRegister::laneid &&
               !(s >= SpecialRegister::lanemask_eq && s <= SpecialRegister::lanemask_gt);
      }
      default: return true;
    }
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (const Instruction& i : f.instructions) {
      bool all = i.op != Opcode::atom && i.op != Opcode::shfl && i.op != Opcode::match;
      const auto each = [&](uint32_t from, uint32_t to, const auto& use) {
        for (uint32_t k = from; k < to; ++k) {
          const Operand& o = f.operand(i, k);
          if (o.kind == Operand::vector)
            for (uint32_t e = 0; e < o.count; ++e) use(f.vector_elements[o.id + e]);
          else
            use(o);
        }
      };
      each(i.destination_count, i.operand_count, [&](const Operand& o) { all &= source_is(o); });
      if (all) continue;
      each(0, i.destination_count, [&](const Operand& o) {
        if (o.kind == Operand::reg && same[o.id]) same[o.id] = false, changed = true;
      });
    }
  }
  return same;
}

bool is_short(const Instruction& i) { return type_bytes(i.type) == 2 && !is_floating(i.type); }

constexpr Rule rules[] = {
    {"ends with a segmentation fault at a guarded setp of 16 bits whose first result is a sink", 80, 90, true,
     [](const Function& f, const Instruction& i) {
       return i.op == Opcode::setp && is_short(i) && !is_none(i.guard) && f.operand(i, 0).kind == Operand::sink;
     }},
    {"takes the low 16 bits of a shift amount of 16-bit shifts that is a constant, so that 65536 shifts by nothing", 60,
     90, true,
     [](const Function& f, const Instruction& i) {
       return (i.op == Opcode::shl || i.op == Opcode::shr) && is_short(i) &&
              f.operand(i, 2).kind == Operand::immediate && static_cast<uint32_t>(f.operand(i, 2).value) > 0xffff;
     }},
    {"writes SGXT with the amount of an szext as the number of a constant bank, when the amount is known", 80, 89,
     false, [](const Function&, const Instruction& i) { return i.op == Opcode::szext; }},
    {"takes the field of a uniform value for uniform where only the length is, and the position is a lane's", 80, 90,
     true,
     [](const Function& f, const Instruction& i) {
       if (i.op != Opcode::bfe || type_bytes(i.type) != 4) return false;
       const std::vector<bool> same = maybe_uniform(f);
       const auto is = [&](uint32_t k) { return f.operand(i, k).kind != Operand::reg || same[f.operand(i, k).id]; };
       return is(1) && is(3) && !is(2);
     }},
    {"writes the number of a uniform register into VABSDIFF4 as that of a plain one", 80, 89, true,
     [](const Function& f, const Instruction& i) {
       if (i.op != Opcode::vabsdiff4) return false;
       const std::vector<bool> same = maybe_uniform(f);
       for (uint32_t k = 1; k < i.operand_count; ++k)
         if (f.operand(i, k).kind != Operand::reg || same[f.operand(i, k).id]) return true;
       return false;
     }},
    {"gives 0xff or 0xffff for a NaN of 64 bits as an unsigned number of 8 or 16, where the manual says 0x80 and "
     "0x8000",
     60, 61, true,
     [](const Function&, const Instruction& i) {
       return i.op == Opcode::cvt && i.type2 == Type::f64 && is_unsigned(i.type) && type_bytes(i.type) < 4;
     }},
};

}  // namespace

const char* ptxas_fault(const Function& f, uint32_t sm, bool unknown) {
  for (const Instruction& i : f.instructions)
    for (const Rule& r : rules)
      if (r.from <= sm && sm <= r.to && (r.always || unknown) && r.matches(f, i)) return r.reason;
  return nullptr;
}

}  // namespace rndn::testing
