// Accesses that encodings with an address per element share: one instruction of the element's
// width; 16 bytes are a vector of two.
#include "ptx/encodings/encodings.h"

namespace rndn::encodings {

using ptx::Address;
using ptx::Modifiers;
using ptx::Opcode;
using ptx::Operand;

namespace {

Operand in_memory(Builder& b, const Words& w) {
  const auto use = [](ptx::RegisterId id) { return Builder::use(Reg<U32>{id}); };
  return is_none(w.at[1]) ? use(w.at[0]) : b.vector({use(w.at[0]), use(w.at[1])});
}

Modifiers access(Space space, const Words& w) {
  return {.space = space, .vector = static_cast<uint8_t>(is_none(w.at[1]) ? 1 : 2)};
}

}  // namespace

Cursor Addressed::place(Builder& b, BasicType type, const Stored& s, Reg<U64> base,
                        Reg<U32> row) const {
  return {b.mad_wide(row, width(type, s), base), {}};
}

void Addressed::advance(Builder& b, BasicType type, const Stored& s, Cursor& at,
                        uint32_t rows) const {
  b.add(at.pointer, uint64_t{rows} * width(type, s), at.pointer);
}

void Addressed::clear(Builder& b, BasicType type, const Stored& s, const Words& w) const {
  const ptx::Type memory_type = memory(type, s);
  for (ptx::RegisterId id : w.at) {
    if (is_none(id)) continue;
    if (memory_type == ptx::Type::f32)
      b.assign(Reg<ptx::F32>{id}, 0.0);
    else if (memory_type == ptx::Type::f64)
      b.assign(Reg<ptx::F64>{id}, 0.0);
    else if (memory_type == ptx::Type::s64)
      b.assign(Reg<ptx::S64>{id}, 0);
    else
      b.assign(Reg<ptx::S32>{id}, 0);
  }
}

void Addressed::load(Builder& b, BasicType type, const Stored& s, const Cursor& at, int64_t beyond,
                     Reg<Pred> guard, Words& into) const {
  load(b, type, s, Space::global, Address(at.pointer, beyond * width(type, s)), guard, into);
}

void Addressed::load(Builder& b, BasicType type, const Stored& s, Space space, Address at,
                     Reg<Pred> guard, const Words& into) const {
  const Operand to = in_memory(b, into);
  if (guard.valid()) b.when(guard);
  b.emit(Opcode::ld, memory(type, s), access(space, into), {to}, {at.operand});
}

void Addressed::store(Builder& b, BasicType type, const Stored& s, Space space, Address at,
                      Reg<Pred> guard, const Words& from) const {
  const Operand value = in_memory(b, from);
  if (guard.valid()) b.when(guard);
  b.emit(Opcode::st, memory(type, s), access(space, from), {}, {at.operand, value});
}

}  // namespace rndn::encodings
