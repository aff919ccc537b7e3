// Atomic operations of every space. Global memory: atomic operations of the host, so that blocks on other threads see them as such.
// Shared memory: plain operations, as a block runs on one thread. Lanes go in ascending order.
// Float addition rounds to nearest; 32-bit forms named FTZ flush denormals. Source: PTX ISA, section 9.7.13.5 (atom).
#include "assembler/simulator/arithmetic.h"
#include "assembler/simulator/lanes.h"
#include "assembler/simulator/races.h"
#include "assembler/simulator/select.h"

namespace rndn::sim {

using isa::Mnemonic;
using isa::ModifierKind;

namespace {

enum Operation : uint32_t { add, minimum, maximum, increment, decrement, bit_and, bit_or, bit_xor, exchange };
enum Type : uint32_t { u32, s32, u64, f32_ftz, f16x2, s64, f64, f32 };

// The new value; the bits of 32-bit types are in the low half.
uint64_t apply(Operation o, Type t, uint64_t old, uint64_t x) {
  const auto integer = [&]<class T>(T a, T b) -> uint64_t {
    using U = std::make_unsigned_t<T>;
    switch (o) {
      case add: return static_cast<U>(static_cast<U>(a) + static_cast<U>(b));
      case minimum: return static_cast<U>(a < b ? a : b);
      case maximum: return static_cast<U>(a > b ? a : b);
      case increment: return static_cast<U>(static_cast<U>(a) >= static_cast<U>(b) ? 0 : static_cast<U>(a) + 1);
      case decrement:
        return static_cast<U>(a == 0 || static_cast<U>(a) > static_cast<U>(b) ? static_cast<U>(b)
                                                                              : static_cast<U>(a) - 1);
      case bit_and: return static_cast<U>(a & b);
      case bit_or: return static_cast<U>(a | b);
      case bit_xor: return static_cast<U>(a ^ b);
      default: return static_cast<U>(b);
    }
  };
  switch (t) {
    case u32: return integer(static_cast<uint32_t>(old), static_cast<uint32_t>(x));
    case s32: return integer(static_cast<int32_t>(old), static_cast<int32_t>(x));
    case u64: return integer(old, x);
    case s64: return integer(static_cast<int64_t>(old), static_cast<int64_t>(x));
    case f64: {
      const double a = as_double(old), b = as_double(x);
      return as_bits(o == add ? a + b : o == minimum ? std::fmin(a, b) : std::fmax(a, b));
    }
    case f16x2: {
      uint32_t r = 0;
      for (uint32_t h = 0; h < 32; h += 16) {
        const double a = static_cast<double>(as_float(half_to_float(static_cast<uint32_t>(old) >> h & 0xffff)));
        const double b = static_cast<double>(as_float(half_to_float(static_cast<uint32_t>(x) >> h & 0xffff)));
        r |= double_to_half(o == add ? a + b : o == minimum ? std::fmin(a, b) : std::fmax(a, b), 0) << h;
      }
      return r;
    }
    default: {
      uint32_t a = static_cast<uint32_t>(old), b = static_cast<uint32_t>(x);
      if (t == f32_ftz) a = flush(a), b = flush(b);
      const uint32_t r = canonical(as_bits(as_float(a) + as_float(b)));
      return t == f32_ftz ? flush(r) : r;
    }
  }
}

template <class T, class F>
T host_atomic(std::byte* at, F f) {
  T* p = reinterpret_cast<T*>(at);
  T old = __atomic_load_n(p, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(p, &old, static_cast<T>(f(old)), true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
  }
  return old;
}

// What an atomic operation acts on: memory, or in weak memory, with a scope narrower than the GPU, what the block sees of it; then others may change the
// place in between, and its new value, if there is one, arrives when the block's stores do.
class Place {
 public:
  Place(Warp& w, std::byte* p, uint32_t size, bool narrow) : w_(w), at_(p), size_(size), narrow_(narrow) {
    if (narrow) w_.launch->weak->load(w_.block, at_, seen_, size_, false);
  }
  std::byte* get() { return narrow_ ? seen_ : at_; }
  void unchanged() { changed_ = false; }
  ~Place() {
    if (narrow_ && changed_) w_.launch->weak->store(w_.block, at_, seen_, size_);
  }

 private:
  Warp& w_;
  std::byte* at_;
  uint32_t size_;
  bool narrow_, changed_ = true;
  alignas(8) std::byte seen_[8];
};

// x: operation | type << 8 | space << 16 | narrow << 24; c holds a uniform addend, d2/y the data, z: shift of the index. pd: performed (generic forms).
uint64_t address_of(const Warp& w, const Op& op, uint32_t l, bool wide) {
  const uint32_t *low = row(w, op.a), *high = row(w, op.b), *uniform = row(w, op.c);
  if (!wide) return (((low[l] << op.z) + uniform[l]) + static_cast<uint64_t>(op.offset)) & 0xffffffff;
  const uint64_t added = op.c.offset != zero_row ? pair(uniform[l], uniform[l + lanes]) : 0;
  return pair(low[l], high[l]) + added + static_cast<uint64_t>(op.offset);
}

template <bool wide_data>
Status atomic(Warp& w, const Op& op, uint32_t mask) {
  const Operation o = static_cast<Operation>(op.x & 255);
  const Type t = static_cast<Type>(op.x >> 8 & 255);
  if (!descriptor_holds(w, op)) return bad_descriptor(w, op, mask);
  const uint32_t space = op.x >> 16 & 255;
  const bool wide_address = space < 2;
  const uint32_t* data = w.rows[op.y & 1] + op.d2;
  uint32_t* d = row(w, op.d);
  uint64_t seen = ~uint64_t{0};
  uint32_t performed = 0;
  if (w.block->races) w.block->races->step();
  for (uint32_t bits = mask; bits; bits &= bits - 1) {
    const uint32_t l = std::countr_zero(bits);
    const uint64_t address = address_of(w, op, l, wide_address);
    // Generic atomics act on shared and local memory only as 32-bit integer operations; callers test the predicate and do the rest.
    if (space == 1 && address - shared_window < 2 * window_bytes && (wide_data || t > s32)) continue;
    const bool narrow = w.launch->weak && op.x >> 24 && address - shared_window >= 2 * window_bytes;
    std::byte* p =
        locate(w, op, l, address, wide_data ? 8 : 4, space, narrow ? Touch::read : Touch::update, "atomic operation");
    if (!p) return Status::fault;
    Place place(w, p, wide_data ? 8 : 4, narrow);
    if (w.block->races) [[unlikely]]
      note_access(w, op, l, p, wide_data ? 8 : 4, Races::Kind::atomic, nullptr);
    p = place.get();
    const uint64_t x = wide_data ? pair(data[l], data[l + lanes]) : data[l];
    if constexpr (wide_data) {
      const uint64_t old = host_atomic<uint64_t>(p, [&](uint64_t v) { return apply(o, t, v, x); });
      d[l] = static_cast<uint32_t>(old), d[l + lanes] = static_cast<uint32_t>(old >> 32);
    } else if (o == add && t <= s32) {
      d[l] = __atomic_fetch_add(reinterpret_cast<uint32_t*>(p), static_cast<uint32_t>(x), __ATOMIC_SEQ_CST);
    } else {
      d[l] = host_atomic<uint32_t>(p, [&](uint32_t v) { return apply(o, t, v, x); });
    }
    performed |= 1u << l;
    if (address >> 5 != seen)
      seen = address >> 5, ++(space == 2 ? w.tally->counters.shared_accesses : w.tally->counters.global_store_sectors);
  }
  if (space != 2)
    w.tally->counters.global_store_bytes += static_cast<uint32_t>(std::popcount(performed)) * (wide_data ? 8 : 4);
  commit_predicate(w, op.pd, performed, mask);
  return Status::go;
}

// Compare in d2, swap in row z; a: address. x: narrow << 24 | space << 16 | pool bits (1 compare, 2 swap).
// Shared CAST (test): the result is 1 when the swap was done, else 0; .64 gives it as a 64-bit number, and the vendor's retry loops compare
// both words with those of 1.
template <bool wide_data, bool test>
Status compare_and_swap(Warp& w, const Op& op, uint32_t mask) {
  if (!descriptor_holds(w, op)) return bad_descriptor(w, op, mask);
  const uint32_t space = op.x >> 16 & 255;
  const uint32_t *compare = w.rows[op.x & 1] + op.d2, *swap = w.rows[op.x >> 1 & 1] + op.target;
  uint32_t* d = row(w, op.d);
  uint32_t performed = 0;
  if (w.block->races) w.block->races->step();
  for (uint32_t bits = mask; bits; bits &= bits - 1) {
    const uint32_t l = std::countr_zero(bits);
    const uint64_t address = address_of(w, op, l, space < 2);
    if (space == 1 && address - shared_window < 2 * window_bytes && wide_data) continue;
    const bool narrow = w.launch->weak && op.x >> 24 && address - shared_window >= 2 * window_bytes;
    std::byte* p =
        locate(w, op, l, address, wide_data ? 8 : 4, space, narrow ? Touch::read : Touch::update, "atomic operation");
    if (!p) return Status::fault;
    Place place(w, p, wide_data ? 8 : 4, narrow);
    if (w.block->races) [[unlikely]]
      note_access(w, op, l, p, wide_data ? 8 : 4, Races::Kind::atomic, nullptr);
    p = place.get();
    bool done;
    if constexpr (wide_data) {
      uint64_t old = pair(compare[l], compare[l + lanes]);
      done = __atomic_compare_exchange_n(reinterpret_cast<uint64_t*>(p), &old, pair(swap[l], swap[l + lanes]), false,
                                         __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
      d[l] = static_cast<uint32_t>(old);
      if (!test) d[l + lanes] = static_cast<uint32_t>(old >> 32);
    } else {
      uint32_t old = compare[l];
      done = __atomic_compare_exchange_n(reinterpret_cast<uint32_t*>(p), &old, swap[l], false, __ATOMIC_SEQ_CST,
                                         __ATOMIC_SEQ_CST);
      d[l] = old;
    }
    if (!done) place.unchanged();
    if (test) {
      d[l] = done;
      if (wide_data) d[l + lanes] = 0;
    }
    performed |= 1u << l;
    ++(space == 2 ? w.tally->counters.shared_accesses : w.tally->counters.global_store_sectors);
  }
  if (space != 2)
    w.tally->counters.global_store_bytes += static_cast<uint32_t>(std::popcount(performed)) * (wide_data ? 8 : 4);
  commit_predicate(w, op.pd, performed, mask);
  return Status::go;
}

}  // namespace

bool select_atomic(Selector& s, Op& op) {
  using K = ModifierKind;
  const auto m = [&](K kind) -> uint32_t { return isa::has_modifier(s.in->form, kind) ? s.modifier(kind) : 0; };
  const auto with = [&](Handler run) {
    op.run = run;
    return true;
  };
  const Mnemonic mnemonic = s.in->mnemonic;
  const bool float_rows = s.target.has(isa::Feature::float_atomics);
  uint32_t space = 0;
  switch (mnemonic) {
    case Mnemonic::ATOM:
    case Mnemonic::ATOM_CAS:
    case Mnemonic::ATOM_FLOAT:
      space = s.volta() ? 1 : 0;  // Pascal: code around it has tested the window
      break;
    case Mnemonic::ATOMG:
    case Mnemonic::ATOMG_CAS:
    case Mnemonic::ATOMG_FLOAT:
    case Mnemonic::RED:
    case Mnemonic::RED_FLOAT: break;
    case Mnemonic::ATOMS:
    case Mnemonic::ATOMS_CAS:
    case Mnemonic::ATOMS_POPC: space = 2; break;
    default: return false;
  }
  const uint32_t narrow = space < 2 && is_of_multiprocessor(s) ? 1 : 0;
  // Slots: [Pd], [Rd], address, data...
  uint32_t k = 0;
  if (s.operand(k).kind == isa::OperandKind::predicate) op.pd = s.predicate_destination(k++);
  if (s.operand(k).kind == isa::OperandKind::gpr) op.d = s.destination(k++);
  if (s.operand(k).kind != isa::OperandKind::address) return s.unsupported("an atomic operation of an unexpected form");
  s.address(op, k++);
  const uint32_t scale = m(K::AddressScale);
  op.z = scale ? scale + 1 : 0;
  if (mnemonic == Mnemonic::ATOMS_POPC) {
    const Source one = s.immediate(1);
    op.x = space << 16, op.d2 = one.offset, op.y = one.pool;
    return with(atomic<false>);
  }
  if (mnemonic == Mnemonic::ATOM_CAS || mnemonic == Mnemonic::ATOMG_CAS || mnemonic == Mnemonic::ATOMS_CAS) {
    bool wide = m(K::AtomType) != 0, test = false;
    const uint32_t mode = m(K::CasMode);
    if (mnemonic == Mnemonic::ATOMS_CAS && !s.volta()) {
      wide = mode & 1;
      test = mode < 4;
    } else {
      test = mode != 0;
    }
    const Source compare = s.source(k, wide ? 2 : 1);
    Source swap;
    if (s.in->operand_count > k + 1) {
      swap = s.source(k + 1, wide ? 2 : 1);
    } else {
      // Pascal, and ATOMG of sm_75: the swap value is in the registers right after the compare value.
      if (s.operand(k).kind != isa::OperandKind::gpr || s.operand(k).reg == isa::RZ)
        return s.unsupported("a compare-and-swap without a register pair");
      swap.offset = compare.offset + (wide ? 2 : 1) * lanes;
    }
    op.d2 = compare.offset, op.target = swap.offset;
    op.x = narrow << 24 | space << 16 | compare.pool | swap.pool << 1;
    return with(wide ? (test ? compare_and_swap<true, true> : compare_and_swap<true, false>)
                     : (test ? compare_and_swap<false, true> : compare_and_swap<false, false>));
  }
  uint32_t operation = m(K::AtomOp);
  const uint32_t code = m(K::AtomType);
  Type type = u32;
  const bool float_form =
      mnemonic == Mnemonic::ATOMG_FLOAT || mnemonic == Mnemonic::ATOM_FLOAT || mnemonic == Mnemonic::RED_FLOAT;
  if (float_form) {
    switch (code) {
      case 0: type = f16x2; break;
      case 9: type = f32_ftz; break;
      case 12: type = f32; break;
      case 15: type = f64; break;
      default: return s.unsupported("a vector float type of an atomic operation");
    }
    if (operation > 2 || ((type == f32 || type == f32_ftz) && operation)) return s.unsupported("this float operation");
  } else if (space == 2) {
    constexpr Type shared_types[] = {u32, s32, u64, s64};
    type = shared_types[code & 3];
  } else {
    constexpr Type before[] = {u32, s32, u64, f32_ftz, f16x2, s64, f64, f64},
                   since_90[] = {u32, s32, u64, s64, f64, f64, f64, f64};
    if (code > (float_rows ? 3u : 6u)) return s.unsupported("this type of an atomic operation");
    type = (float_rows ? since_90 : before)[code];
    if ((type == f32_ftz || type == f16x2 || type == f64) && operation != add)
      return s.unsupported("this float operation");
  }
  if (operation > exchange) return s.unsupported("SAFEADD");
  const bool wide = type == u64 || type == s64 || type == f64;
  const Source data = s.source(k, wide ? 2 : 1);
  op.d2 = data.offset, op.y = data.pool;
  op.x = operation | type << 8 | space << 16 | narrow << 24;
  return with(wide ? atomic<true> : atomic<false>);
}

}  // namespace rndn::sim
