// Subroutines: long code that stands once in a kernel, behind it, and is called by all places that need it (selection, both families).
//
// What is called, where several places need it: the slow paths of division and square root (division.cpp), and division of 64-bit integers
// (division_integer.cpp). All of it is straight code, so that whatever lanes come, from wherever, run it together and return together: no region, no
// loop, nothing else is called. Pieces may be passed over where all lanes that came together agree on it (where_any).
//
// Convention: a subroutine works on registers of its own, which are the same for all subroutines of a kernel: pairs of operands (words: halves of one), of which
// the first takes the result; on Volta and later a pair for the place to return to (the caller writes the low word, the subroutine the high one, zero;
// Pascal's stack keeps it); and as many pairs and predicates as its temporaries need, whose lives in straight code tell which can share one. They are
// ordinary virtual registers that are never spilled. As a register has one place in the whole function, the allocator chooses the convention itself: the call
// reads and writes those registers (Subroutine::reads, writes; machine/inst_facts.cpp lists them), so that what lives across it is elsewhere, and between calls they
// are free.
// The call and the return are blocks of their own, before which everything in flight is waited for (backend/scoreboards.cpp). To all passes the block
// behind the call is what follows it; the subroutine is code that no block leads to.
// They need no frame: they are no calls by the target's ABI.
// Cost: linear in the code; a call costs its place up to seven moves, on a path that is rare but for integers.
//
// Left out: that places wait only for what the subroutine touches.
#include "assembler/select/select.h"

namespace rndn::assembler {

void Selector::write_code(Shared what, Op result, Op a, Op b) {
  switch (what) {
    case Shared::divide_f64: return divide_f64_slow(result, a, b);
    case Shared::root_f64: return root_f64_slow(result, a);
    case Shared::divide_f32: return divide_f32_slow(result, a, b, false);
    case Shared::divide_f32_ftz: return divide_f32_slow(result, a, b, true);
    case Shared::root_f32: return root_f32_slow(result, a, false);
    case Shared::root_f32_ftz: return root_f32_slow(result, a, true);
    case Shared::quotient_u64: return divide64(result, a, b, false, false);
    case Shared::quotient_s64: return divide64(result, a, b, false, true);
    case Shared::remainder_u64: return divide64(result, a, b, true, false);
    case Shared::remainder_s64: return divide64(result, a, b, true, true);
    case Shared::none: break;
  }
}

Op Selector::fixed_pair(uint32_t k) {
  while (fixed_pairs_.size() <= k) {
    const uint32_t r = new_gpr(f_, 2, false);
    for (uint32_t w = 0; w < 2; ++w) f_.gprs[r - isa::first_virtual + w].unspillable = true;
    fixed_pairs_.push_back(r);
  }
  return gpr(fixed_pairs_[k]);
}

// Counts the places of each. What one place alone needs stands there, and so does all where so few registers are allowed that the convention's would hardly
// leave one.
void Selector::find_shared_code() {
  using O = ptx::Opcode;
  constexpr uint32_t fewest_registers = 24;
  if (f_.max_registers + t_.reported_registers_extra < fewest_registers) return;
  const auto count = [&](Shared what) { ++shared_code_[static_cast<size_t>(what)].places; };
  for (BlockId b : flow_.layout)
    for (const FlowItem& item : flow_.blocks[b].items) {
      const ptx::Instruction& i = p_.instructions[item.inst];
      if (i.op != O::div && i.op != O::rem && i.op != O::rcp && i.op != O::sqrt && i.op != O::rsqrt) continue;
      if (!expands_to_branches(i)) continue;
      const bool root = i.op == O::sqrt || i.op == O::rsqrt, is_signed = ptx::is_signed(i.type);
      if (i.type == ptx::Type::f32)
        count(is_flushing(i) ? root ? Shared::root_f32_ftz : Shared::divide_f32_ftz
              : root         ? Shared::root_f32
                             : Shared::divide_f32);
      else if (i.type != ptx::Type::f64)
        count(integer_division(i.op == O::rem, is_signed));
      else if (root)
        count(Shared::root_f64);
      if (i.type == ptx::Type::f64 && i.op != O::sqrt) count(Shared::divide_f64);
    }
}

namespace {
constexpr uint32_t place_pair = 2;  // of the fixed pairs; the operands are in 0 and 1
}

// Words are in the halves of one pair.
Op Selector::operand_register(Shared what, uint32_t k) {
  if (shape(what).words == 2) return fixed_pair(k);
  return gpr(fixed_pair(0).reg + k);
}

// result = what it does of a and b, there or by a call; then the current block becomes the one behind the call.
void Selector::shared_code(Shared what, Op result, Op a, Op b) {
  SharedCode& code = shared_code_[static_cast<size_t>(what)];
  if (code.places <= 1) return write_code(what, result, a, b);
  const bool wide = shape(what).words == 2;
  if (code.subroutine == UINT32_MAX) {
    code.subroutine = static_cast<uint32_t>(f_.subroutines.size());
    code.first = current_;
    f_.subroutines.push_back({.body = new_block(), .reads = {}, .writes = {}, .results = {}});
  }
  const RegionId region = f_.blocks[block_].innermost;
  const auto bring = [&](Op to, Op o) {
    mov(to.reg, o);
    if (wide) mov(to.reg + 1, high_word(o));
  };
  bring(operand_register(what, 0), a);
  if (shape(what).operands == 2) bring(operand_register(what, 1), b);
  if (t_.family == isa::Family::volta) {
    mov_symbol(fixed_pair(place_pair).reg);
    f_.insts.back().call = Call::behind;
    f_.insts.back().callee = code.subroutine;
    f_.insts.back().pinned = true;
  }
  const auto next = [&] {
    const BlockId b = new_block();
    seal(b);
    start(b, region);
  };
  next();
  call_subroutine();
  f_.insts.back().call = Call::subroutine;
  f_.insts.back().callee = code.subroutine;
  f_.insts.back().pinned = true;
  next();
  mov(result.reg, fixed_pair(0));
  if (wide) mov(result.reg + 1, high_word(fixed_pair(0)));
}

// The code of all that is called.
void Selector::make_subroutines() {
  for (size_t k = 0; k < shared_code_.size(); ++k) {
    const SharedCode& code = shared_code_[k];
    if (code.subroutine == UINT32_MAX) continue;
    const Shared what = static_cast<Shared>(k);
    const bool volta = t_.family == isa::Family::volta;
    current_ = code.first;
    const uint32_t width = shape(what).words;
    const Op a = operand_register(what, 0), b = operand_register(what, 1), place = fixed_pair(place_pair);
    const BlockId body = f_.subroutines[code.subroutine].body, back = new_block();
    for (BlockId x : {body, back}) f_.blocks[x].loop_depth = 0;
    start(body, rndn::none<RegionId>());
    const size_t inst = f_.insts.size(), gprs = f_.gprs.size(), predicates = f_.predicates.size(),
                 blocks = f_.blocks.size();
    const Op result = temp(width);
    write_code(what, result, a, b);
    mov(a.reg, result);  // all else is dead by now
    if (width == 2) mov(a.reg + 1, high_word(result));
    if (volta) mov(place.reg + 1, rz);
    Subroutine& s = f_.subroutines[code.subroutine];
    const auto range = [&](Op o) { return Range(o.reg, width, Range::gpr, 0); };
    s.results = {range(a)};
    s.reads = {range(a)};
    if (shape(what).operands == 2) s.reads.push_back(range(b));
    if (volta) s.reads.push_back(Range(place.reg, 1, Range::gpr, 0));
    share_registers(inst, gprs, predicates, blocks, s);
    seal(back);
    start(back, rndn::none<RegionId>());
    return_from_subroutine(place);
    f_.insts.back().call = Call::back;
    f_.insts.back().callee = code.subroutine;
    f_.insts.back().pinned = true;
  }
}

// Gives what the straight code from `inst` on has of its own the fixed registers, and lists what it writes: linear scan, in which half a pair goes before a
// whole one. Operands give up theirs when they have been read for the last time, but not the place to return to. Ways that pass over a piece are no
// others: a life goes from the first instruction to the last that names it, or to the end of a block whose branch it decides. `blocks`: its blocks, but for
// the body's first, from there on.
void Selector::share_registers(size_t inst, size_t gprs, size_t predicates, size_t blocks, Subroutine& s) {
  struct Value {
    size_t last = 0;              // instruction that names it
    uint32_t place = UINT32_MAX;  // 2 * pair + half; number of a predicate
  };
  std::vector<Value> values(f_.gprs.size() - gprs), bits(f_.predicates.size() - predicates);
  const auto value_of = [&](Range r) -> Value* {
    if (!r.allocated() || r.reg() < isa::first_virtual) return nullptr;
    const size_t unit = r.reg() - isa::first_virtual;
    if (r.file() == Range::predicate) return unit < predicates ? nullptr : &bits[unit - predicates];
    return unit < gprs ? nullptr : &values[f_.gprs[unit].first - gprs];
  };
  std::vector<Facts> facts;
  std::vector<size_t> last_read(2 * fixed_pairs_.size(), 0);        // of operands, by half
  std::vector<uint8_t> pairs(fixed_pairs_.size(), 0), used, taken;  // halves that are taken; predicates
  const auto fixed_half = [&](uint32_t reg) {
    const size_t k =
        static_cast<size_t>(std::find(fixed_pairs_.begin(), fixed_pairs_.end(), reg & ~1u) - fixed_pairs_.begin());
    return 2 * k + (reg & 1);
  };
  for (Range r : s.reads)
    for (uint32_t w = 0; w < r.width(); ++w)
      pairs[fixed_half(r.reg() + w) / 2] |= static_cast<uint8_t>(1 << ((r.reg() + w) & 1));
  used = pairs;
  for (size_t i = inst; i < f_.insts.size(); ++i) {
    facts.push_back(facts_of(t_, f_.insts[i]));
    for (Range r : facts.back().all())
      if (Value* v = value_of(r)) v->last = i;
    for (Range r : facts.back().reads())
      if (r.file() == Range::gpr && r.reg() >= isa::first_virtual && !value_of(r))
        for (uint32_t w = 0; w < r.width(); ++w) last_read[fixed_half(r.reg() + w)] = i;
  }
  const auto each_block = [&](auto&& use) {
    use(f_.blocks[s.body]);
    for (size_t b = blocks; b < f_.blocks.size(); ++b) use(f_.blocks.raw()[b]);
  };
  each_block([&](const Block& b) {
    if (Value* v = b.predicate == isa::PT ? nullptr : value_of(Range(b.predicate, 1, Range::predicate, 0)))
      v->last = std::max<size_t>(v->last, index(b.code.back()));
  });
  const auto find = [](std::vector<uint8_t>& list, auto&& suits) {
    const size_t k = static_cast<size_t>(std::find_if(list.begin(), list.end(), suits) - list.begin());
    if (k == list.size()) list.push_back(0);
    return static_cast<uint32_t>(k);
  };
  const auto is_free = [](uint8_t x) { return x == 0; };
  const auto take = [&](Range r) -> uint32_t {
    if (r.file() == Range::predicate) {
      const uint32_t k = find(taken, is_free);
      return taken[k] = 1, k;
    }
    const bool wide = f_.gprs[r.reg() - isa::first_virtual].width == 2;
    const auto is_half = [](uint8_t x) { return x == 1 || x == 2; };
    const bool half = !wide && std::any_of(pairs.begin(), pairs.end(), is_half);
    const uint32_t k = half ? find(pairs, is_half) : find(pairs, is_free), side = pairs[k] & 1;
    const uint8_t halves = wide ? 3 : static_cast<uint8_t>(1 << side);
    used.resize(pairs.size(), 0);
    pairs[k] |= halves, used[k] |= halves;
    return 2 * k + side;
  };
  const auto release = [&](Range r, const Value& v) {
    if (r.file() == Range::predicate)
      taken[v.place] = 0;
    else
      pairs[v.place / 2] &=
          f_.gprs[r.reg() - isa::first_virtual].width == 2 ? uint8_t{0} : static_cast<uint8_t>(~(1 << v.place % 2));
  };
  for (size_t i = inst; i < f_.insts.size(); ++i) {
    const Facts& x = facts[i - inst];
    for (Range r : x.reads())
      if (Value* v = value_of(r)) {
        if (v->last == i) release(r, *v);
      } else if (r.file() == Range::gpr && r.reg() >= isa::first_virtual) {
        for (uint32_t w = 0; w < r.width(); ++w)
          if (const size_t h = fixed_half(r.reg() + w); last_read[h] == i)
            pairs[h / 2] &= static_cast<uint8_t>(~(1 << h % 2));
      }
    for (Range r : x.writes())
      if (Value* v = value_of(r); v && v->place == UINT32_MAX) v->place = take(r);
    for (Range r : x.writes())
      if (Value* v = value_of(r); v && v->last == i) release(r, *v);
  }
  std::vector<uint32_t> first(f_.gprs.size() - gprs);  // unit -> the value's first unit
  for (size_t unit = gprs; unit < f_.gprs.size(); ++unit) first[unit - gprs] = f_.gprs[unit].first;
  f_.gprs.resize(gprs), f_.predicates.resize(predicates);
  for (Range r : s.results)
    for (uint32_t w = 0; w < r.width(); ++w)
      used[fixed_half(r.reg() + w) / 2] |= static_cast<uint8_t>(1 << ((r.reg() + w) & 1));
  if (t_.family == isa::Family::volta) used[place_pair] = 3;
  for (uint32_t k = 0; k < used.size(); ++k)
    for (uint32_t w = 0; w < 2; ++w)
      if (used[k] >> w & 1) s.writes.emplace_back(fixed_pair(k).reg + w, 1, Range::gpr, 0);
  while (fixed_predicates_.size() < taken.size()) {
    fixed_predicates_.push_back(new_predicate(f_, false));
    f_.predicates.back().unspillable = true;
  }
  for (uint32_t k = 0; k < taken.size(); ++k) s.writes.emplace_back(fixed_predicates_[k], 1, Range::predicate, 0);
  const auto fix_predicate = [&](uint32_t& reg) {
    if (reg >= isa::first_virtual && reg - isa::first_virtual >= predicates)
      reg = fixed_predicates_[bits[reg - isa::first_virtual - predicates].place];
  };
  each_block([&](Block& b) { fix_predicate(b.predicate); });
  for (size_t i = inst; i < f_.insts.size(); ++i) {
    isa::Instruction& sass = f_.insts[i].sass;
    for (Range r : facts[i - inst].all()) {
      if (!r.allocated() || r.reg() < isa::first_virtual) continue;
      const size_t unit = r.reg() - isa::first_virtual;
      uint32_t& reg = r.guard() ? sass.guard : sass.operands[r.operand()].reg;
      if (r.file() == Range::predicate) {
        fix_predicate(reg);
      } else if (unit >= gprs) {
        const uint32_t value = first[unit - gprs], place = values[value - gprs].place;
        reg = fixed_pairs_[place / 2] + place % 2 + static_cast<uint32_t>(unit - value);
      }
    }
  }
}

}  // namespace rndn::assembler
