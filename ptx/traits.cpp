#include "ptx/traits.h"

namespace rndn::ptx {

bool expands_to_branches(const Instruction& i) {
  switch (i.op) {
    case Opcode::atom:
    case Opcode::red: {
      if (i.mods.space == Space::generic) return true;
      if (i.mods.space != Space::shared) return false;
      bool wide = type_bytes(i.type) == 8;
      if (i.mods.atomic == AtomicOp::exch || i.mods.atomic == AtomicOp::cas) return false;
      return wide || is_floating(i.type);
    }
    case Opcode::div: return is_floating(i.type) ? !i.mods.approx && !i.mods.full : type_bytes(i.type) == 8;
    case Opcode::rem: return type_bytes(i.type) == 8;
    case Opcode::sqrt:
    case Opcode::rcp: return !i.mods.approx;
    case Opcode::rsqrt: return i.type == Type::f64 && !i.mods.ftz;
    case Opcode::match:
    case Opcode::redux: return true;
    case Opcode::bar:
    case Opcode::barrier: return true;  // a guarded barrier
    case Opcode::call: return true;
    default: return false;
  }
}

}  // namespace rndn::ptx
