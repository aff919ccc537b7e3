// Bitonic merge sort (Batcher, "Sorting networks and their applications", 1968), the alternative of the evaluation to radix_sort.cpp.
//
// Words are sorted one after the other, the least significant first, as pairs (key, position in the order so far): pairs are all
// different, which makes the network's result stable. The array is padded to a power of two by pairs behind all others.
//   fill    positions; keys beyond the end have all bits set
//   block   sorts, or finishes merging, 1,024 neighbours in shared memory
//   step    one compare-exchange at a distance of 1,024 or more, in global memory
//   follow  rows in the new order
// Cost: log2(n) * (log2(n) + 1) / 2 rounds of compare-exchanges, of which all at short distances share one launch per merge.
#include "libraries/operators/sort/bitonic_sort.h"

#include <bit>

#include "libraries/operators/emit.h"

namespace rndn::operators {

namespace {

constexpr uint32_t bitonic_block = 512, bitonic_tile_size = 2 * bitonic_block;

struct Pair {
  Reg<U64> wide;
  Reg<U32> narrow, position;
};

// a, z in the wanted order when `up`, else the other way round.
void exchange(Builder& b, Pair& a, Pair& z, Reg<Pred> up) {
  const bool wide = a.wide.valid();
  Reg<Pred> same = wide ? b.setp(Is::eq, a.wide, z.wide) : b.setp(Is::eq, a.narrow, z.narrow);
  Reg<Pred> later = b.setp(Is::gt, ptx::Combine::and_, a.position, z.position, same);
  Reg<Pred> above = wide ? b.setp(Is::gt, ptx::Combine::or_, a.wide, z.wide, later)
                         : b.setp(Is::gt, ptx::Combine::or_, a.narrow, z.narrow, later);
  Reg<Pred> swap = b.not_(b.xor_(above, up));
  const Pair x = a, y = z;
  if (wide) {
    a.wide = b.selp(y.wide, x.wide, swap);
    z.wide = b.selp(x.wide, y.wide, swap);
  } else {
    a.narrow = b.selp(y.narrow, x.narrow, swap);
    z.narrow = b.selp(x.narrow, y.narrow, swap);
  }
  a.position = b.selp(y.position, x.position, swap);
  z.position = b.selp(x.position, y.position, swap);
}

struct Place {
  At key, position;
};
Pair load(Builder& b, bool wide, Space space, const Place& at) {
  Pair p;
  if (wide)
    p.wide = b.ld<U64>(space, at.key);
  else
    p.narrow = b.ld<U32>(space, at.key);
  p.position = b.ld<U32>(space, at.position);
  return p;
}
void store(Builder& b, Space space, const Place& at, const Pair& p) {
  if (p.wide.valid())
    b.st<U64>(space, at.key, p.wide);
  else
    b.st<U32>(space, at.key, p.narrow);
  b.st<U32>(space, at.position, p.position);
}

// Parameters of all kernels here: keys, positions, n, first size of the sorted runs that are merged, last size, distance.
struct Parameters {
  Param keys, positions, n, first, last, distance;
  explicit Parameters(Builder& b)
      : keys(b.parameter<U64>("keys")),
        positions(b.parameter<U64>("positions")),
        n(b.parameter<U64>("n")),
        first(b.parameter<U64>("first")),
        last(b.parameter<U64>("last")),
        distance(b.parameter<U64>("distance")) {}
};

// The lower of the two places that pair number k of a round compares, `distance` (a power of two) apart.
Reg<U32> lower_place(Builder& b, Reg<U32> k, Reg<U32> distance) {
  return b.add(k, b.and_(k, b.not_(b.sub(distance, 1u))));
}

uint32_t build_step(ptx::Module& module, std::string_view name, bool wide) {
  KernelBuilder b(module, name);
  Parameters p(b);
  b.set_block_size(bitonic_block);
  const uint32_t bytes = wide ? 8 : 4;
  Reg<U32> k = b.mad_lo(b.special(ptx::SpecialRegister::ctaid_x), bitonic_block, b.special(ptx::SpecialRegister::tid_x));
  Reg<U32> distance = b.cvt<U32>(b.ld_param(p.distance)), size = b.cvt<U32>(b.ld_param(p.last));
  Reg<U32> low = lower_place(b, k, distance), high = b.add(low, distance);
  Reg<U64> keys = b.ld_param(p.keys), positions = b.ld_param(p.positions);
  const Place at_low{At(element_address(b, keys, low, bytes)), At(element_address(b, positions, low, 4))};
  const Place at_high{At(element_address(b, keys, high, bytes)), At(element_address(b, positions, high, 4))};
  Pair a = load(b, wide, Space::global, at_low), z = load(b, wide, Space::global, at_high);
  exchange(b, a, z, b.setp(Is::eq, b.and_(low, size), 0u));
  store(b, Space::global, at_low, a);
  store(b, Space::global, at_high, z);
  b.ret();
  b.finish();
  return bitonic_block;
}

uint32_t build_block(ptx::Module& module, std::string_view name, bool wide) {
  KernelBuilder b(module, name);
  Parameters p(b);
  b.set_block_size(bitonic_block);
  const uint32_t bytes = wide ? 8 : 4;
  auto shared = b.shared<U32>(std::string(name) + "_shared", bitonic_tile_size * (bytes + 4) / 4, 16);
  Reg<U32> base = b.address_of_32(shared);
  Reg<U32> tid = b.special(ptx::SpecialRegister::tid_x);
  Reg<U32> start = b.mul_lo(b.special(ptx::SpecialRegister::ctaid_x), bitonic_tile_size);
  Reg<U64> keys = b.ld_param(p.keys), positions = b.ld_param(p.positions);
  const auto global = [&](uint32_t half) {
    Reg<U32> i = b.add(b.add(start, tid), bitonic_block * half);
    return Place{At(element_address(b, keys, i, bytes)), At(element_address(b, positions, i, 4))};
  };
  const auto local = [&](Reg<U32> i) {
    return Place{At(b.mad_lo(i, bytes, base)), At(b.mad_lo(i, 4u, base), bitonic_tile_size * bytes)};
  };
  for (uint32_t half = 0; half < 2; ++half) {
    const Place from = global(half);
    const Pair pair = load(b, wide, Space::global, from);
    store(b, Space::shared, local(b.add(tid, bitonic_block * half)), pair);
  }
  Reg<U32> size = b.cvt<U32>(b.ld_param(p.first)), last = b.cvt<U32>(b.ld_param(p.last));
  Reg<U32> distance = b.min(b.shr(size, 1u), bitonic_block);
  const ptx::LabelId merge = b.label(), round = b.label(), done = b.label();
  b.bind(merge);
  b.bind(round);
  b.bar_sync();
  {
    Reg<U32> low = lower_place(b, tid, distance);
    const Place at_low = local(low), at_high = local(b.add(low, distance));
    Pair a = load(b, wide, Space::shared, at_low), z = load(b, wide, Space::shared, at_high);
    exchange(b, a, z, b.setp(Is::eq, b.and_(b.add(start, low), size), 0u));
    store(b, Space::shared, at_low, a);
    store(b, Space::shared, at_high, z);
  }
  b.shr(distance, 1u, distance);
  b.when(b.setp(Is::ne, distance, 0u)).bra_uni(round);
  b.when(b.setp(Is::ge, size, last)).bra_uni(done);
  b.shl(size, 1u, size);
  b.min(b.shr(size, 1u), bitonic_block, distance);
  b.bra(merge);
  b.bind(done);
  b.bar_sync();
  for (uint32_t half = 0; half < 2; ++half) {
    const Pair pair = load(b, wide, Space::shared, local(b.add(tid, bitonic_block * half)));
    store(b, Space::global, global(half), pair);
  }
  b.ret();
  b.finish();
  return bitonic_block;
}

uint32_t build_fill(ptx::Module& module, std::string_view name, bool wide) {
  KernelBuilder b(module, name);
  Parameters p(b);
  b.set_block_size(bitonic_block);
  Reg<U32> i = b.mad_lo(b.special(ptx::SpecialRegister::ctaid_x), bitonic_block, b.special(ptx::SpecialRegister::tid_x));
  b.st<U32>(Space::global, At(element_address(b, b.ld_param(p.positions), i, 4)), i);
  Reg<Pred> beyond = b.setp(Is::ge, i, b.cvt<U32>(b.ld_param(p.n)));
  Reg<U64> at = element_address(b, b.ld_param(p.keys), i, wide ? 8 : 4);
  if (wide)
    store_if<U64>(b, beyond, Space::global, At(at), ~uint64_t{0});
  else
    store_if<U32>(b, beyond, Space::global, At(at), 0xFFFFFFFFu);
  b.ret();
  b.finish();
  return bitonic_block;
}

// to[i] = from[positions[i]], or positions[i] themselves when `from` is 0. to64: as i64.
uint32_t build_follow(ptx::Module& module, std::string_view name, bool first, bool to64) {
  KernelBuilder b(module, name);
  Param p_n = b.parameter<U64>("n"), p_positions = b.parameter<U64>("positions"), p_from = b.parameter<U64>("from"),
        p_to = b.parameter<U64>("to");
  b.set_block_size(bitonic_block);
  Reg<U32> i = b.mad_lo(b.special(ptx::SpecialRegister::ctaid_x), bitonic_block, b.special(ptx::SpecialRegister::tid_x));
  const ptx::LabelId leave = b.label();
  b.when(b.setp(Is::ge, i, b.cvt<U32>(b.ld_param(p_n)))).bra(leave);
  Reg<U32> row = b.ld<U32>(Space::global, At(element_address(b, b.ld_param(p_positions), i, 4)));
  if (!first) row = b.ld<U32>(Space::global, At(element_address(b, b.ld_param(p_from), row, 4)));
  Reg<U64> at = element_address(b, b.ld_param(p_to), i, to64 ? 8 : 4);
  if (to64)
    b.st<U64>(Space::global, At(at), b.cvt<U64>(row));
  else
    b.st<U32>(Space::global, At(at), row);
  b.bind(leave);
  b.ret();
  b.finish();
  return bitonic_block;
}

}  // namespace

uint64_t bitonic_rows(uint64_t n) { return std::max<uint64_t>(bitonic_tile_size, std::bit_ceil(n)); }

Result<void> bitonic_sort_word(Library& library, bool wide, uint64_t n, Address keys, Address positions) {
  const uint64_t padded = bitonic_rows(n);
  const auto launch = [&](const char* what, auto build, uint64_t threads, uint64_t first, uint64_t last,
                          uint64_t distance) -> Result<void> {
    const std::string name = fmt::format("bitonic_{}{}", what, wide ? 64 : 32);
    ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel(name, [&](ptx::Module& m, std::string_view entry) {
      return build(m, entry, wide);
    }));
    Arguments a;
    a.add(keys).add(positions).add(n).add(first).add(last).add(distance);
    return library.launch(*kernel, static_cast<uint32_t>(threads / bitonic_block), a, threads * 2 * (wide ? 12 : 8));
  };
  RETURN_IF_ERROR(launch("fill", build_fill, padded, 0, 0, 0));
  RETURN_IF_ERROR(launch("block", build_block, padded / 2, 2, bitonic_tile_size, 0));
  for (uint64_t size = 2 * bitonic_tile_size; size <= padded; size *= 2) {
    for (uint64_t distance = size / 2; distance >= bitonic_tile_size; distance /= 2)
      RETURN_IF_ERROR(launch("step", build_step, padded / 2, 0, size, distance));
    RETURN_IF_ERROR(launch("block", build_block, padded / 2, size, size, 0));
  }
  return {};
}

Result<void> bitonic_follow(Library& library, uint64_t n, Address positions, Address from, Address to, bool to64) {
  const std::string name = fmt::format("bitonic_follow{}{}", from ? "" : "_first", to64 ? "_rows64" : "");
  ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel(name, [&](ptx::Module& m, std::string_view entry) {
    return build_follow(m, entry, from == 0, to64);
  }));
  Arguments a;
  a.add(n).add(positions).add(from).add(to);
  return library.launch(*kernel, static_cast<uint32_t>((n + bitonic_block - 1) / bitonic_block), a,
                        n * (4 + (from ? 4 : 0) + (to64 ? 8 : 4)));
}

}  // namespace rndn::operators
