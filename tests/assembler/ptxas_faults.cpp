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
  Seen when;  // nothing: ptxas always is wrong; else only where that was seen, as the rule takes more than it need
  bool (*matches)(const Function& f, const Instruction& i);
};

// Whether ptxas can compute the instruction's result in the uniform datapath: integers, made from parameters, constants and special registers of the
// block. What memory holds is uniform to it at a variable's own address only (seen of .global in random program 25582).
bool in_uniform_datapath(const Instruction& i) {
  if (is_floating(i.type) || is_floating(i.type2)) return false;
  switch (i.op) {
    case Opcode::ld: return i.mods.space == Space::param || i.mods.space == Space::constant || i.mods.space == Space::global;
    case Opcode::ldu:
    case Opcode::atom:
    case Opcode::shfl:
    case Opcode::match: return false;
    default: return true;
  }
}

// Registers that may be the same in all lanes: reached by nothing but what the uniform datapath makes. Over-approximates what ptxas takes for uniform.
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
      bool all = in_uniform_datapath(i);
      const auto each = [&](uint32_t from, uint32_t to, const auto& use) {
        for (uint32_t k = from; k < to; ++k) {
          const Operand& o = f.operand(i, k);
          if (o.kind == Operand::vector)
            for (uint32_t e = 0; e < o.count; ++e) use(f.vector_elements[o.id + e]);
          else
            use(o);
        }
      };
      const bool from_memory = i.op == Opcode::ld && i.mods.space == Space::global;
      each(i.destination_count, i.operand_count,
           [&](const Operand& o) { all &= source_is(o) && !(from_memory && o.kind == Operand::address_reg); });
      if (all) continue;
      each(0, i.destination_count, [&](const Operand& o) {
        if (o.kind == Operand::reg && same[o.id]) same[o.id] = false, changed = true;
      });
    }
  }
  return same;
}

// Whether an instruction that writes the register, or what is moved to it, is one of these.
template <class Which>
bool made_by(const Function& f, const Operand& o, const Which& which, uint32_t moves = 8) {
  if (o.kind != Operand::reg) return false;
  for (const Instruction& i : f.instructions) {
    if (i.destination_count == 0 || f.operand(i, 0).kind != Operand::reg || f.operand(i, 0).id != o.id) continue;
    if (which(i)) return true;
    if (i.op == Opcode::mov && moves > 0 && made_by(f, f.operand(i, 1), which, moves - 1)) return true;
  }
  return false;
}

// Whether both registers are loaded from one place.
bool one_load(const Function& f, const Operand& a, const Operand& b) {
  return made_by(f, a, [&](const Instruction& x) {
    return x.op == Opcode::ld && made_by(f, b, [&](const Instruction& y) {
             const Operand &from = f.operand(x, 1), &other = f.operand(y, 1);
             return y.op == Opcode::ld && from.kind == other.kind && from.id == other.id && from.value == other.value;
           });
  });
}
bool is_negation(const Function& f, const Instruction& i) {
  return i.op == Opcode::neg ||
         (i.op == Opcode::sub && f.operand(i, 1).kind == Operand::immediate && f.operand(i, 1).value == 0);
}
bool is_integer_sum(const Instruction& i) {
  return (i.op == Opcode::add || i.op == Opcode::sub) && !is_floating(i.type) && type_bytes(i.type) == 4;
}
// (x - y) - x, where x is loaded twice: ptxas sees late that both are one.
bool is_cancelling_difference(const Function& f, const Instruction& i) {
  return i.op == Opcode::sub && is_integer_sum(i) && made_by(f, f.operand(i, 1), [&](const Instruction& first) {
           return is_integer_sum(first) && one_load(f, f.operand(first, 1), f.operand(i, 2));
         });
}

// Whether anything reads the register.
bool is_read(const Function& f, const Operand& r) {
  for (const Instruction& i : f.instructions)
    for (uint32_t k = i.destination_count; k < i.operand_count; ++k) {
      const Operand& o = f.operand(i, k);
      if ((o.kind == Operand::reg || o.kind == Operand::address_reg) && o.id == r.id) return true;
      if (o.kind == Operand::vector)
        for (uint32_t e = 0; e < o.count; ++e)
          if (f.vector_elements[o.id + e].id == r.id) return true;
    }
  return false;
}

bool is_short(const Instruction& i) { return type_bytes(i.type) == 2 && !is_floating(i.type); }

constexpr Rule rules[] = {
    {"ends with a segmentation fault at a guarded setp of 16 bits whose first result is a sink", 80, 90, Seen::nothing,
     [](const Function& f, const Instruction& i) {
       return i.op == Opcode::setp && is_short(i) && !is_none(i.guard) && f.operand(i, 0).kind == Operand::sink;
     }},
    {"takes the low 16 bits of a shift amount of 16-bit shifts that is a constant, so that 65536 shifts by nothing", 60,
     90, Seen::nothing,
     [](const Function& f, const Instruction& i) {
       return (i.op == Opcode::shl || i.op == Opcode::shr) && is_short(i) &&
              f.operand(i, 2).kind == Operand::immediate && static_cast<uint32_t>(f.operand(i, 2).value) > 0xffff;
     }},
    {"loses the amount of 16-bit shifts that a cnot makes: reads a register that nothing has set", 60, 90,
     Seen::nothing,
     [](const Function& f, const Instruction& i) {
       return (i.op == Opcode::shl || i.op == Opcode::shr) && is_short(i) &&
              made_by(f, f.operand(i, 2), [](const Instruction& by) { return by.op == Opcode::cnot; });
     }},
    {"takes the last five bits of the length of a bfi.b32 whose position and length are constants", 80, 90,
     Seen::nothing,
     [](const Function& f, const Instruction& i) {
       return i.op == Opcode::bfi && type_bytes(i.type) == 4 && f.operand(i, 3).kind == Operand::immediate &&
              f.operand(i, 4).kind == Operand::immediate && f.operand(i, 4).value > 31;
     }},
    {"gives -1 for every bfe.s32 whose position is a constant above 31", 60, 90, Seen::nothing,
     [](const Function& f, const Instruction& i) {
       return i.op == Opcode::bfe && i.type == Type::s32 && f.operand(i, 2).kind == Operand::immediate &&
              f.operand(i, 2).value > 31;
     }},
    {"takes negations into saturating sums: one of two is lost, and the least number is its own negation", 80, 90,
     Seen::nothing,
     [](const Function& f, const Instruction& i) {
       const auto negated = [&](uint32_t k) {
         return made_by(f, f.operand(i, k), [&](const Instruction& by) { return is_negation(f, by); });
       };
       return is_integer_sum(i) && i.mods.sat && (negated(1) || negated(2));
     }},
    {"ignores .ftz of conversions from f32 to f16, so that subnormal numbers round away from zero", 60, 90,
     Seen::nothing,
     [](const Function&, const Instruction& i) {
       return i.op == Opcode::cvt && i.type == Type::f16 && i.type2 == Type::f32 && i.mods.ftz &&
              (i.mods.rounding == Rounding::rm || i.mods.rounding == Rounding::rp);
     }},
    {"gives REDUX a register that nothing has set for (x - y) - x, where x is loaded twice", 80, 90, Seen::nothing,
     [](const Function& f, const Instruction& i) {
       const bool all_lanes = i.op == Opcode::red || i.op == Opcode::atom || i.op == Opcode::redux;
       return all_lanes && made_by(f,
                                   f.operand(i, i.op == Opcode::red    ? 1u
                                                : i.op == Opcode::atom ? 2u
                                                                       : 1u),
                                   [&](const Instruction& by) { return is_cancelling_difference(f, by); });
     }},
    {"negates (x - y) - x twice as a factor of a product that is added with a carry (random program 70186)", 60, 61,
     Seen::nothing,
     [](const Function& f, const Instruction& i) {
       const auto cancels = [&](uint32_t k) {
         return made_by(f, f.operand(i, k), [&](const Instruction& by) {
           return by.op == Opcode::sub && is_integer_sum(by) &&
                  made_by(f, f.operand(by, 1), [&](const Instruction& first) {
                    return first.op == Opcode::sub && is_integer_sum(first) && f.operand(first, 1) == f.operand(by, 2);
                  });
         });
       };
       return i.op == Opcode::madc && i.mods.part == MulPart::lo && i.mods.carry_out && (cancels(1) || cancels(2));
     }},
    {"gives the high word of a product for its low word, where the high word gives a carry and is not used itself", 80,
     90, Seen::nothing,
     [](const Function& f, const Instruction& i) {
       const Instruction* low = &i == f.instructions.data() ? nullptr : &i - 1;
       return low && i.op == Opcode::madc && i.mods.part == MulPart::hi && i.mods.carry_out && low->op == Opcode::mad &&
              low->mods.part == MulPart::lo && !is_read(f, f.operand(i, 0));
     }},
    {"writes SGXT with the amount of an szext as the number of a constant bank, when the amount is known", 80, 89,
     Seen::unknown_word, [](const Function&, const Instruction& i) { return i.op == Opcode::szext; }},
    {"loses the amount of 16-bit shifts that it finds out late, as cnot's", 60, 90, Seen::difference,
     [](const Function& f, const Instruction& i) {
       return (i.op == Opcode::shl || i.op == Opcode::shr) && is_short(i) && f.operand(i, 2).kind == Operand::reg;
     }},
    {"takes a uniform value for its own field, unshifted, where the position is a lane's", 80, 90, Seen::difference,
     [](const Function& f, const Instruction& i) {
       if (i.op != Opcode::bfe || type_bytes(i.type) != 4) return false;
       const std::vector<bool> same = maybe_uniform(f);
       const auto is = [&](uint32_t k) { return f.operand(i, k).kind != Operand::reg || same[f.operand(i, k).id]; };
       return is(1) && !is(2);
     }},
    {"writes the number of a uniform register into VABSDIFF4 as that of a plain one", 75, 89, Seen::difference,
     [](const Function& f, const Instruction& i) {
       if (i.op != Opcode::vabsdiff4) return false;
       const std::vector<bool> same = maybe_uniform(f);
       for (uint32_t k = 1; k < i.operand_count; ++k)
         if (f.operand(i, k).kind != Operand::reg || same[f.operand(i, k).id]) return true;
       return false;
     }},
    {"takes the ballot of each tile of a warp for that of all of them, in a uniform register", 80, 90, Seen::difference,
     [](const Function& f, const Instruction& i) {
       return i.op == Opcode::vote && i.operand_count > 2 && f.operand(i, 2).kind == Operand::reg;
     }},
    {"takes the lanes of each tile of a warp for those of all of them, where all match a uniform value (random program "
     "70127)",
     80, 90, Seen::difference,
     [](const Function& f, const Instruction& i) {
       if (i.op != Opcode::match || f.operand(i, i.operand_count - 1u).kind != Operand::reg) return false;
       const Operand& value = f.operand(i, i.operand_count - 2u);
       return value.kind != Operand::reg || maybe_uniform(f)[value.id];
     }},
    {"gives 0xff or 0xffff for a NaN of 64 bits as an unsigned number of 8 or 16, where the manual says 0x80 and "
     "0x8000",
     60, 61, Seen::nothing,
     [](const Function&, const Instruction& i) {
       return i.op == Opcode::cvt && i.type2 == Type::f64 && is_unsigned(i.type) && type_bytes(i.type) < 4;
     }},
};

}  // namespace

const char* ptxas_fault(const Module& module, const std::string& kernel, uint32_t sm, Seen seen) {
  for (const Function& f : module.functions) {
    if (f.name != kernel && !f.name.starts_with(kernel + "_")) continue;
    for (const Instruction& i : f.instructions)
      for (const Rule& r : rules)
        if (r.from <= sm && sm <= r.to && (r.when == Seen::nothing || r.when == seen) && r.matches(f, i))
          return r.reason;
  }
  return nullptr;
}

}  // namespace rndn::testing
