// What the rows of ptx/opcodes.def allow, as settings of an instruction's modifiers: for tests that make instructions from the table.
#pragma once
#include <vector>

#include "ptx/opcodes.h"

namespace rndn::testing {

// All concrete settings of one bit of a ModifierSet.
inline std::vector<ptx::Modifiers> settings(uint32_t bit) {
  using namespace ptx;
  std::vector<Modifiers> out;
  auto add = [&](auto set) {
    Modifiers m;
    set(m);
    out.push_back(m);
  };
  using namespace modifier;
  if (bit < to_integer)
    add([&](Modifiers& m) { m.rounding = static_cast<Rounding>(bit - rn + 1); });
  else if (bit == to_integer)
    for (auto r : {Rounding::rni, Rounding::rzi, Rounding::rmi, Rounding::rpi})
      add([&](Modifiers& m) { m.rounding = r; });
  else if (bit == approx)
    add([](Modifiers& m) { m.approx = true; });
  else if (bit == full)
    add([](Modifiers& m) { m.full = true; });
  else if (bit == ftz)
    add([](Modifiers& m) { m.ftz = true; });
  else if (bit == sat)
    add([](Modifiers& m) { m.sat = true; });
  else if (bit == cc)
    add([](Modifiers& m) { m.carry_out = true; });
  else if (bit == modifier::sync)
    add([](Modifiers& m) { m.sync = true; });
  else if (bit == uni)
    add([](Modifiers& m) { m.uni = true; });
  else if (bit == to)
    add([](Modifiers& m) { m.to = true; });
  else if (bit == cmp_eq)
    for (auto c : {Compare::eq, Compare::ne}) add([&](Modifiers& m) { m.compare = c; });
  else if (bit == cmp_order)
    for (auto c : {Compare::lt, Compare::le, Compare::gt, Compare::ge}) add([&](Modifiers& m) { m.compare = c; });
  else if (bit == cmp_unsigned)
    for (auto c : {Compare::lo, Compare::ls, Compare::hi, Compare::hs}) add([&](Modifiers& m) { m.compare = c; });
  else if (bit == cmp_float)
    for (auto c : {Compare::equ, Compare::neu, Compare::ltu, Compare::leu, Compare::gtu, Compare::geu, Compare::num,
                   Compare::nan})
      add([&](Modifiers& m) { m.compare = c; });
  else if (bit == combine)
    for (auto c : {Combine::and_, Combine::or_, Combine::xor_}) add([&](Modifiers& m) { m.combine = c; });
  else if (bit >= lo && bit <= wide)
    add([&](Modifiers& m) { m.part = static_cast<MulPart>(bit - lo + 1); });
  else if (bit >= param && bit <= constant)
    add([&](Modifiers& m) { m.space = static_cast<Space>(bit - param + static_cast<uint32_t>(Space::param)); });
  else if (bit >= ca && bit <= cs)
    add([&](Modifiers& m) { m.cache = static_cast<Cache>(bit - ca + 1); });
  else if (bit == lu_cv)
    for (auto c : {Cache::lu, Cache::cv}) add([&](Modifiers& m) { m.cache = c; });
  else if (bit == wb_wt)
    for (auto c : {Cache::wb, Cache::wt}) add([&](Modifiers& m) { m.cache = c; });
  else if (bit == nc)
    add([](Modifiers& m) { m.cache = Cache::nc; });
  else if (bit >= weak && bit <= volatile_)
    add([&](Modifiers& m) { m.semantics = static_cast<Semantics>(bit - weak + 1); });
  else if (bit == cta)
    add([](Modifiers& m) { m.scope = Scope::cta; });
  else if (bit == gpu)
    add([](Modifiers& m) { m.scope = Scope::gpu; });
  else if (bit == sys)
    add([](Modifiers& m) { m.scope = Scope::sys; });
  else if (bit == atomic_add)
    add([](Modifiers& m) { m.atomic = AtomicOp::add; });
  else if (bit == atomic_minmax)
    for (auto c : {AtomicOp::min, AtomicOp::max}) add([&](Modifiers& m) { m.atomic = c; });
  else if (bit == atomic_incdec)
    for (auto c : {AtomicOp::inc, AtomicOp::dec}) add([&](Modifiers& m) { m.atomic = c; });
  else if (bit == atomic_logic)
    for (auto c : {AtomicOp::and_, AtomicOp::or_, AtomicOp::xor_}) add([&](Modifiers& m) { m.atomic = c; });
  else if (bit == atomic_exch)
    add([](Modifiers& m) { m.atomic = AtomicOp::exch; });
  else if (bit == atomic_cas)
    add([](Modifiers& m) { m.atomic = AtomicOp::cas; });
  else if (bit == modifier::shuffle)
    for (auto c : {ShuffleMode::up, ShuffleMode::down, ShuffleMode::bfly, ShuffleMode::idx})
      add([&](Modifiers& m) { m.shuffle = c; });
  else if (bit == vote_pred)
    for (auto c : {VoteMode::all, VoteMode::any, VoteMode::uni}) add([&](Modifiers& m) { m.vote = c; });
  else if (bit == vote_ballot)
    add([](Modifiers& m) { m.vote = VoteMode::ballot; });
  else if (bit == wrap)
    add([](Modifiers& m) { m.shift = ShiftMode::wrap; });
  else if (bit == clamp)
    add([](Modifiers& m) { m.shift = ShiftMode::clamp; });
  else if (bit == v2)
    add([](Modifiers& m) { m.vector = 2; });
  else if (bit == v4)
    add([](Modifiers& m) { m.vector = 4; });
  return out;
}

// The modifiers of b laid over a (their groups are disjoint).
inline ptx::Modifiers merged(ptx::Modifiers a, const ptx::Modifiers& b) {
  using namespace ptx;
  const Modifiers d;
#define TAKE(field) \
  if (b.field != d.field) a.field = b.field
  TAKE(rounding);
  TAKE(compare);
  TAKE(combine);
  TAKE(part);
  TAKE(space);
  TAKE(cache);
  TAKE(semantics);
  TAKE(scope);
  TAKE(atomic);
  TAKE(shuffle);
  TAKE(vote);
  TAKE(shift);
  TAKE(vector);
  TAKE(ftz);
  TAKE(sat);
  TAKE(approx);
  TAKE(full);
  TAKE(carry_out);
  TAKE(sync);
  TAKE(uni);
  TAKE(to);
  TAKE(mode);
#undef TAKE
  return a;
}

// All settings of one bit for one opcode: the modes of an opcode are its own.
inline std::vector<ptx::Modifiers> settings(ptx::Opcode op, uint32_t bit) {
  using namespace ptx;
  if (bit < modifier::mode0) return settings(bit);
  std::vector<Modifiers> out;
  for (const Mode& m : modes(op))
    if (m.value / 32u == bit - modifier::mode0) {
      Modifiers x;
      x.mode = m.value;
      out.push_back(x);
    }
  return out;
}

}  // namespace rndn::testing
