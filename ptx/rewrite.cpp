// Writes what has another form of the same meaning in that form while it is read, so that nothing behind the parser knows of it:
//
//   shfl, vote without .sync (before PTX 6.4)   .sync of the lanes that are there: activemask
//   cp.async with a predicate, ignore-src       a source of no bytes where it is true
//   ldmatrix, stmatrix                          the elements of their vector are operands of their own
//   mov.v4 of %tid, %ntid, %ctaid, %nctaid      a move per component, of which the fourth is 0
#include "ptx/reader.h"

namespace rndn::ptx {

Operand Reader::fresh_register(Type type) {
  return {.kind = Operand::reg, .id = index(f_.add_register(type, unique("%rewritten")))};
}

// An instruction with one result before the one being read, under its guard.
void Reader::add_before(Instruction i, std::initializer_list<Operand> operands) {
  i.operand_count = static_cast<uint8_t>(operands.size());
  i.destination_count = 1;
  i.first_operand = static_cast<uint32_t>(f_.operands.size());
  i.guard = guard_;
  i.guard_negated = guard_negated_;
  i.line = line(opcode_at_.begin);
  f_.operands.append({operands.begin(), operands.size()});
  f_.instructions.push_back(i);
}

// Changes the operands of the statement being read, whose mnemonic is marked.
bool Reader::rewrite(const Instruction& i) {
  if (i.op == Opcode::shfl || i.op == Opcode::vote) {
    if (module_.version >= 64 && module_.target >= 70) {
      error("bad-instruction", opcode_at_, "`{}` without .sync needs .version below 6.4 or .target below sm_70",
            opcode_name(i.op));
      return false;
    }
    module_.version = std::max(module_.version, 62u);  // which has activemask
    const Operand lanes = fresh_register(Type::b32);
    add_before({.op = Opcode::activemask, .type = Type::b32}, {lanes});
    raw_.push_back({.operand = lanes, .at = opcode_at_});
  } else if (i.op == Opcode::cp && raw_.size() == 4) {
    const Operand ignore = raw_[3].operand;
    if (ignore.kind != Operand::reg || f_.registers[ignore.reg_id()].type != Type::pred) return true;
    const Operand bytes = fresh_register(Type::b32);
    add_before(
        {.op = Opcode::selp, .type = Type::b32},
        {bytes, {.kind = Operand::immediate}, {.kind = Operand::immediate, .value = raw_[2].operand.value}, ignore});
    raw_[3].operand = bytes;
  } else if (moves_matrices(i)) {
    const size_t at = i.op == Opcode::ldmatrix ? 0 : 1;
    if (raw_.size() != 2 || raw_[at].operand.kind != Operand::vector || raw_[at].operand.count != matrix_count(i)) {
      error("bad-operand", opcode_at_, "expected a vector of {} and an address", matrix_count(i));
      return false;
    }
    const auto first = vector_raw_.begin() + raw_[at].operand.id;
    raw_.erase(raw_.begin() + static_cast<ptrdiff_t>(at));
    raw_.insert(raw_.begin() + static_cast<ptrdiff_t>(at), first, first + matrix_count(i));
  } else if (i.op == Opcode::mov) {
    using S = SpecialRegister;
    const auto has_components = [&](const RawOperand& x) {  // and is named without one
      if (x.operand.kind != Operand::special || text_.substr(x.at.begin, x.at.end - x.at.begin).find('.') != text_.npos)
        return false;
      const S r = static_cast<S>(x.operand.id);
      return r == S::tid_x || r == S::ntid_x || r == S::ctaid_x || r == S::nctaid_x;
    };
    const auto takes_word = [&](const Operand& to) {
      return to.kind == Operand::sink ||
             (to.kind == Operand::reg && type_bytes(f_.registers[to.reg_id()].type) == 4);
    };
    if (raw_.size() != 2 || raw_[0].operand.kind != Operand::vector || raw_[0].operand.count != 4 ||
        type_bytes(i.type) != 4 || !has_components(raw_[1])) {
      error("unsupported", opcode_at_, "unsupported mov.v4 of what is no special register of four components");
      return false;
    }
    for (uint32_t k = 0; k < 4; ++k)
      if (const RawOperand& to = vector_raw_[raw_[0].operand.id + k]; !takes_word(to.operand)) {
        error("bad-operand", to.at, "expected a register of 32 bits");
        return false;
      }
    const uint32_t first = raw_[0].operand.id;
    for (uint32_t k = 0; k < 3; ++k)
      if (const Operand& to = vector_raw_[first + k].operand; to.kind == Operand::reg)
        add_before({.op = Opcode::mov, .type = i.type}, {to, {.kind = Operand::special, .id = raw_[1].operand.id + k}});
    raw_[0] = vector_raw_[first + 3];
    raw_[1] = {.operand = {.kind = Operand::immediate}, .literal = true, .at = raw_[1].at};
  }
  return true;
}

}  // namespace rndn::ptx
