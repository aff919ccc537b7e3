// What threads do together (selection, both families): fences, barriers, shuffles, votes.
//
// In code that may be divergent every .sync operation carries its own WARPSYNC on Volta and later; Pascal's lanes meet only where the stack says so.
#include "assembler/select.h"

namespace rndn::assembler {

using ptx::Opcode;
using ptx::Type;
using OperandKind = ptx::Operand;

void Selector::cooperate(const ptx::Instruction& i) {
  switch (i.op) {
    case Opcode::membar: return fence(i.mods.scope, true);
    case Opcode::fence: return fence(i.mods.scope, i.mods.semantics == ptx::Semantics::sc);
    case Opcode::bar:
    case Opcode::barrier: {
      if (i.op == Opcode::bar && i.mods.mode == 32) {  // bar.warp.sync
        if (!convergent_) converge(source(p_.operand(i, 0), Type::u32));
        return;
      }
      if (i.mods.mode > 1 || (i.mods.mode == 1 && i.op == Opcode::bar)) return unsupported(i);
      Op id = source(p_.operand(i, 0), Type::u32);
      Op count = i.operand_count > 1 ? source(p_.operand(i, 1), Type::u32) : Op{};
      if (is_register(id) && id.reg == isa::RZ) id = immediate(0);
      if (!is_immediate(id)) return unsupported(i, "barrier number in a register");
      if (i.operand_count > 1 && !is_immediate(count)) return unsupported(i, "thread count in a register");
      f_.barriers = std::max(f_.barriers, static_cast<uint32_t>(id.value) + 1);
      if (f_.barriers > 16) return unsupported(i, "there are 16 barriers");
      barrier(id, count);
      return;
    }
    case Opcode::shfl: {
      const uint32_t d = destination(p_.operand(i, 0));
      uint32_t p = isa::PT, first = i.destination_count;
      if (i.destination_count > 1 && p_.operand(i, 1).kind == OperandKind::reg) p = registers_[p_.operand(i, 1).id];
      Op a = as_register(source(p_.operand(i, first), Type::b32));
      Op lane = source(p_.operand(i, first + 1), Type::u32), clamp = source(p_.operand(i, first + 2), Type::u32);
      if (is_zero(lane)) lane = immediate(0);
      if (is_zero(clamp)) clamp = immediate(0);
      if (lane.kind == isa::OperandKind::constant) lane = as_register(lane);
      if (clamp.kind == isa::OperandKind::constant) clamp = as_register(clamp);
      if (is_immediate(lane)) lane.value &= 31;
      if (is_immediate(clamp)) clamp.value &= 0x1fff;
      if (!convergent_) converge(source(p_.operand(i, first + 3), Type::u32));
      using S = ptx::ShuffleMode;
      const uint32_t mode = i.mods.shuffle == S::idx    ? 0
                            : i.mods.shuffle == S::up   ? 1
                            : i.mods.shuffle == S::down ? 2
                                                        : 3;
      shuffle(d, p, a, lane, clamp, mode);
      f_.insts.back().cooperative = true;
      return;
    }
    case Opcode::vote: {
      const uint32_t d = destination(p_.operand(i, 0));
      Op p = source_predicate(p_.operand(i, 1));
      if (!convergent_ && i.operand_count > 2) converge(source(p_.operand(i, 2), Type::u32));
      return vote(i, d, p);
    }
    case Opcode::activemask: return vote(i, destination(p_.operand(i, 0)), predicate(isa::PT));
    default: unsupported(i);
  }
}

void Selector::shuffle(uint32_t d, uint32_t p, Op a, Op lane, Op clamp, uint32_t mode) {
  emit(Mnemonic::SHFL, {predicate(p), gpr(d), a, lane, clamp}).mod(ModifierKind::ShuffleMode, mode);
}

void Selector::vote(const ptx::Instruction& i, uint32_t d, Op p) {
  using V = ptx::VoteMode;
  switch (i.op == Opcode::activemask ? V::ballot : i.mods.vote) {
    case V::ballot: emit(Mnemonic::VOTE, {gpr(d), pt(), p}).mod(ModifierKind::VoteMode, 1); break;
    case V::all: emit(Mnemonic::VOTE, {none(), predicate(d), p}).mod(ModifierKind::VoteMode, 0); break;
    case V::any: emit(Mnemonic::VOTE, {none(), predicate(d), p}).mod(ModifierKind::VoteMode, 1); break;
    case V::uni: emit(Mnemonic::VOTE, {none(), predicate(d), p}).mod(ModifierKind::VoteMode, 2); break;
    default: return unsupported(i);
  }
  if (error_.empty()) f_.insts.back().cooperative = true;
}

void Selector::special_register(uint32_t d, ptx::SpecialRegister r) {
  using S = ptx::SpecialRegister;
  auto s2r = [&](uint32_t number) { emit(Mnemonic::S2R, {gpr(d), special(number)}); };
  auto bank = [&](uint32_t offset) { mov(d, constant(0, offset)); };
  switch (r) {
    case S::tid_x: return s2r(0x21);
    case S::tid_y: return s2r(0x22);
    case S::tid_z: return s2r(0x23);
    case S::ctaid_x: return s2r(0x25);
    case S::ctaid_y: return s2r(0x26);
    case S::ctaid_z: f_.uses_ctaid_z = true; return s2r(0x27);
    case S::ntid_x: return bank(t_.ntid_offset);
    case S::ntid_y: return bank(t_.ntid_offset + 4);
    case S::ntid_z: return bank(t_.ntid_offset + 8);
    case S::nctaid_x: return bank(t_.nctaid_offset);
    case S::nctaid_y: return bank(t_.nctaid_offset + 4);
    case S::nctaid_z: return bank(t_.nctaid_offset + 8);
    case S::laneid: return s2r(0x00);
    case S::lanemask_eq: return s2r(0x38);
    case S::lanemask_lt: return s2r(0x39);
    case S::lanemask_le: return s2r(0x3a);
    case S::lanemask_gt: return s2r(0x3b);
    case S::lanemask_ge: return s2r(0x3c);
    default: return family_register(d, r);
  }
}

}  // namespace rndn::assembler
