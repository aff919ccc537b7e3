// Sums of floats and averages of cells by integers that hold every bit: what is asked when the sums
// that kernels make are not sure (ptx/sums/exact_sum.h).
//
// A sum is one fixed-point number wide enough for every double: 68 words of 32 bits, each in 64 so
// that carries wait (R. M. Neal, "Fast exact summation using small and large superaccumulators",
// arXiv:1505.05571, the small one). A number adds to three of them.
// deposit  a warp per piece of a cell; each lane has words of its own in shared memory, and the
//          warp's are added up at the end
// round    a warp per cell: the words of its pieces are added up, one lane passes the carries on
//          and rounds to the nearest double, ties to even, or to the nearest f32
// What is not finite is added up as floats, apart. No order matters: the bits are the same always.
// Costs: the elements are read once, some 40 instructions each; 17 KB of shared memory are cleared
// per piece, so that many small cells take some microseconds per thousand.
#include "libraries/operators/groups/accumulate.h"
#include "libraries/operators/operators.h"

namespace rndn::operators {

namespace {

constexpr uint32_t words = 68, lanes = 32, exact_warps = 2, exact_block = exact_warps * lanes;
constexpr uint32_t word_bytes = 8 * lanes;  // of all lanes
constexpr int32_t lowest = -1074;           // exponent of bit 0: the smallest double
constexpr uint64_t most_pieces = 16384;     // of a launch
constexpr uint64_t parallel_pieces = 1024;  // that large cells are cut into, all together
constexpr uint64_t rows_per_piece = 4096;   // at least, of a cell that is cut

// An element as a number of whole bits: mantissa * 2^(place + lowest).
struct Fixed {
  Reg<U64> mantissa;
  Reg<U32> place;
  Reg<Pred> negative;
};

Fixed fixed_of(Builder& b, const Element& e) {
  if (e.type == Type::i64) {
    Reg<S64> x = Builder::as<S64>(e.u64);
    Reg<Pred> negative = b.setp(Is::lt, x, 0);
    Reg<S64> magnitude = b.selp(b.neg(x), x, negative);
    return {Builder::as<U64>(magnitude), b.constant<U32>(-lowest), negative};
  }
  const auto [low, high] = b.unpack(held_element<F64>(b, e));
  Reg<U32> exponent = b.and_(b.shr(high, 20u), 0x7ffu), fraction = b.and_(high, 0xfffffu);
  Reg<Pred> normal = b.setp(Is::ne, exponent, 0u);
  Reg<U32> top = b.selp(b.or_(fraction, 1u << 20), fraction, normal);
  return {b.pack<U64>(low, top), b.sub(b.max(exponent, 1u), 1u),
          b.setp(Is::ne, b.shr(high, 31u), 0u)};
}

// Cell `cell` of the launch's: begin and end of its elements.
struct ExactRange {
  Reg<U64> begin, end;
};
ExactRange exact_range_of(Builder& b, Param offsets_at, Param n_at, Reg<U64> cell) {
  Reg<U64> offsets = b.ld_param(offsets_at);
  ExactRange range{b.constant<U64>(0), b.ld_param(n_at)};
  Reg<Pred> has_offsets = b.setp(Is::ne, offsets, 0);
  Reg<U64> at = b.add(offsets, b.shl(cell, 3u));
  load_if<U64>(b, has_offsets, Space::global, At(at), range.begin);
  load_if<U64>(b, has_offsets, Space::global, At(at, 8), range.end);
  return range;
}

uint32_t build_deposit(ptx::Module& module, std::string_view name, Type type) {
  KernelBuilder b(module, name);
  Param p_data = b.parameter<U64>("data"), p_offsets = b.parameter<U64>("offsets"),
        p_n = b.parameter<U64>("n"), p_first = b.parameter<U64>("first"),
        p_parts = b.parameter<U64>("parts"), p_pieces = b.parameter<U64>("pieces"),
        p_bins = b.parameter<U64>("bins"), p_specials = b.parameter<U64>("specials");
  b.set_block_size(exact_block);
  auto shared = b.shared<U64>(std::string(name) + "_words", uint64_t{exact_warps} * words * lanes, 16);
  const Thread t = thread_of(b);
  Reg<U32> piece = b.mad_lo(b.special(ptx::SpecialRegister::ctaid_x), exact_warps, t.warp);
  const LabelId done = b.label();
  b.when(b.setp(Is::ge, piece, b.cvt<U32>(b.ld_param(p_pieces)))).bra_uni(done);
  Reg<U32> parts = b.cvt<U32>(b.ld_param(p_parts)), cell = b.div(piece, parts);
  Reg<U64> part = b.cvt<U64>(b.sub(piece, b.mul_lo(cell, parts)));
  const ExactRange range = exact_range_of(b, p_offsets, p_n, b.add(b.ld_param(p_first), b.cvt<U64>(cell)));
  Reg<U64> each =
      b.div(b.add(b.sub(range.end, range.begin), b.sub(b.cvt<U64>(parts), 1)), b.cvt<U64>(parts));
  Reg<U64> from = b.min(b.add(range.begin, b.mul_lo(part, each)), range.end);
  Reg<U64> to = b.min(b.add(from, each), range.end);

  Reg<U32> of_warp = b.mad_lo(t.warp, words * word_bytes, b.address_of_32(shared));
  Reg<U32> own = b.mad_lo(t.lane, 8u, of_warp);
  for (uint32_t w = 0; w < words; ++w)
    b.st<U64>(Space::shared, At(own, int64_t{word_bytes} * w), 0);
  Reg<F64> special = b.constant<F64>(0.0);
  Reg<U64> row = b.add(from, b.cvt<U64>(t.lane));
  const LabelId next = b.label(), added = b.label();
  b.bind(next);
  b.when(b.setp(Is::ge, row, to)).bra(added);
  const Element e =
      load_element(b, type, element_at(b, b.ld_param(p_data), b.cvt<U32>(row), width(type)));
  b.add(row, uint64_t{lanes}, row);
  if (is_float(type)) {
    Reg<F64> x = held_element<F64>(b, e);
    Reg<Pred> is_special = b.setp(Is::ge, b.and_(b.unpack(x).second, 0x7fffffffu), 0x7ff00000u);
    b.when(is_special).add_rn(special, x, special);
    b.when(is_special).bra(next);
  }
  const Fixed fixed = fixed_of(b, e);
  Reg<U32> shift = b.and_(fixed.place, 31u);
  const auto [low, middle] = b.unpack(b.shl(fixed.mantissa, shift));
  Reg<U64> high = b.shr(fixed.mantissa, b.sub(b.constant<U32>(64), shift));
  Reg<U32> at = b.mad_lo(b.shr(fixed.place, 5u), word_bytes, own);
  const Reg<U64> added_words[] = {b.cvt<U64>(low), b.cvt<U64>(middle), high};
  for (int64_t k = 0; k < 3; ++k) {
    Reg<U64> word = b.ld<U64>(Space::shared, At(at, word_bytes * k));
    Reg<U64> more = b.add(word, added_words[k]), less = b.sub(word, added_words[k]);
    b.st<U64>(Space::shared, At(at, word_bytes * k), b.selp(less, more, fixed.negative));
  }
  b.bra(next);
  b.bind(added);
  b.bar_warp_sync();
  // Word by word, the lanes' places one after the other, each lane from another one on.
  Reg<U64> bins = b.mad_wide(piece, words * 8, b.ld_param(p_bins));
  for (uint32_t first = 0; first < words; first += lanes) {
    const LabelId out = b.label(), sum_up = b.label();
    Reg<U32> word = b.add(t.lane, first);
    b.when(b.setp(Is::ge, word, words)).bra(out);
    Reg<U32> row_at = b.mad_lo(word, word_bytes, of_warp), place = b.mov(t.lane);
    Reg<U64> sum = b.constant<U64>(0);
    Reg<U32> left = b.constant<U32>(lanes);
    b.bind(sum_up);
    b.add(sum, b.ld<U64>(Space::shared, At(b.mad_lo(place, 8u, row_at))), sum);
    b.and_(b.add(place, 1u), lanes - 1, place);
    b.sub(left, 1u, left);
    b.when(b.setp(Is::ne, left, 0u)).bra(sum_up);
    b.st<U64>(Space::global, element_at(b, bins, word, 8), sum);
    b.bind(out);
  }
  b.bar_warp_sync();
  combine_warp(b, Accumulator::add, special);
  store_if<F64>(b, b.setp(Is::eq, t.lane, 0u), Space::global,
                element_at(b, b.ld_param(p_specials), piece, 8), special);
  b.bind(done);
  b.ret();
  b.finish();
  return exact_block;
}

// In shared memory, per warp: u64 sums of the words' low halves, then of the high ones, signed; then
// two words of zero and the words of 32 bits.
constexpr int64_t lows = 0, highs = 8 * words, bits = 16 * words + 8;
constexpr uint32_t warp_bytes = 20 * words + 16;

// 2^k, k in -1022 .. 1023
Reg<F64> power_of_2(Builder& b, Reg<S32> k) {
  return b.pack<F64>(b.constant<U32>(0), Builder::as<U32>(b.shl(b.add(k, 1023), 20u)));
}

uint32_t build_round(ptx::Module& module, std::string_view name, bool average, Type result) {
  KernelBuilder b(module, name);
  Param p_offsets = b.parameter<U64>("offsets"), p_n = b.parameter<U64>("n"),
        p_first = b.parameter<U64>("first"), p_cells = b.parameter<U64>("cells"),
        p_parts = b.parameter<U64>("parts"), p_bins = b.parameter<U64>("bins"),
        p_specials = b.parameter<U64>("specials"), p_out = b.parameter<U64>("out");
  b.set_block_size(exact_block);
  auto shared = b.shared<U64>(std::string(name) + "_words", exact_warps * warp_bytes / 8, 16);
  const Thread t = thread_of(b);
  Reg<U32> cell = b.mad_lo(b.special(ptx::SpecialRegister::ctaid_x), exact_warps, t.warp);
  const LabelId done = b.label();
  b.when(b.setp(Is::ge, cell, b.cvt<U32>(b.ld_param(p_cells)))).bra_uni(done);
  Reg<U32> parts = b.cvt<U32>(b.ld_param(p_parts)), first_piece = b.mul_lo(cell, parts);
  Reg<U32> base = b.mad_lo(t.warp, warp_bytes, b.address_of_32(shared));
  for (uint32_t first = 0; first < words; first += lanes) {
    const LabelId out = b.label(), next = b.label();
    Reg<U32> word = b.add(t.lane, first);
    b.when(b.setp(Is::ge, word, words)).bra(out);
    Reg<U64> at =
        element_address(b, b.mad_wide(first_piece, words * 8, b.ld_param(p_bins)), word, 8);
    Reg<S64> low = b.constant<S64>(0), high = b.constant<S64>(0);
    Reg<U32> left = b.mov(parts);
    b.bind(next);
    Reg<S64> x = b.ld<ptx::S64>(Space::global, At(at));
    b.add(low, b.and_(x, 0xffffffff), low);
    b.add(high, b.shr(x, 32u), high);
    b.add(at, uint64_t{words} * 8, at);
    b.sub(left, 1u, left);
    b.when(b.setp(Is::ne, left, 0u)).bra(next);
    Reg<U32> to = b.mad_lo(word, 8u, base);
    b.st<ptx::S64>(Space::shared, At(to, lows), low);
    b.st<ptx::S64>(Space::shared, At(to, highs), high);
    b.bind(out);
  }
  b.bar_warp_sync();
  Reg<F64> special = b.constant<F64>(0.0);
  {
    const LabelId next = b.label(), summed = b.label();
    Reg<U32> part = b.mov(t.lane);
    b.bind(next);
    b.when(b.setp(Is::ge, part, parts)).bra(summed);
    b.add_rn(special,
             b.ld<F64>(Space::global,
                       element_at(b, b.ld_param(p_specials), b.add(first_piece, part), 8)),
             special);
    b.add(part, lanes, part);
    b.bra(next);
    b.bind(summed);
    b.bar_warp_sync();
    combine_warp(b, Accumulator::add, special);
  }
  b.when(b.setp(Is::ne, t.lane, 0u)).bra(done);

  // Carries.
  Reg<U32> word_at = b.mov(base), bits_at = b.add(base, static_cast<uint32_t>(bits)), left;
  b.st<U32>(Space::shared, At(bits_at, -4), 0u);
  b.st<U32>(Space::shared, At(bits_at, -8), 0u);
  Reg<S64> carry = b.constant<S64>(0), from_below = b.constant<S64>(0);
  left = b.constant<U32>(words);
  const LabelId next_word = b.label();
  b.bind(next_word);
  Reg<S64> sum = b.add(b.add(b.ld<ptx::S64>(Space::shared, At(word_at, lows)), from_below), carry);
  b.ld<ptx::S64>(Space::shared, At(word_at, highs), from_below);
  b.st<U32>(Space::shared, At(bits_at), b.unpack(sum).first);
  b.shr(sum, 32u, carry);
  b.add(word_at, 8u, word_at);
  b.add(bits_at, 4u, bits_at);
  b.sub(left, 1u, left);
  b.when(b.setp(Is::ne, left, 0u)).bra(next_word);
  // What is left beyond the last word is the sign.
  Reg<Pred> negative = b.setp(Is::lt, b.add(carry, from_below), 0);
  const LabelId positive = b.label(), negate = b.label();
  b.unless(negative).bra(positive);
  b.add(base, static_cast<uint32_t>(bits), bits_at);
  Reg<U32> plus = b.constant<U32>(1);
  b.constant<U32>(words, left);
  b.bind(negate);
  Reg<U32> inverse = b.not_(b.ld<U32>(Space::shared, At(bits_at)));
  Reg<U32> negated = b.add(inverse, plus);
  b.st<U32>(Space::shared, At(bits_at), negated);
  // A carry goes on where the word became zero.
  b.selp(plus, b.constant<U32>(0), b.setp(Is::eq, negated, 0u), plus);
  b.add(bits_at, 4u, bits_at);
  b.sub(left, 1u, left);
  b.when(b.setp(Is::ne, left, 0u)).bra(negate);
  b.bind(positive);

  // The highest word that is not zero, and two below it; the rest only counts as more than nothing.
  Reg<U32> top = b.constant<U32>(words);
  Reg<U32> highest = b.constant<U32>(0);
  b.add(base, static_cast<uint32_t>(bits) + 4 * words, bits_at);
  const LabelId search = b.label(), found = b.label();
  b.bind(search);
  b.when(b.setp(Is::eq, top, 0u)).bra(found);
  b.sub(top, 1u, top);
  b.sub(bits_at, 4u, bits_at);
  b.ld<U32>(Space::shared, At(bits_at), highest);
  b.when(b.setp(Is::eq, highest, 0u)).bra(search);
  b.bind(found);
  Reg<U32> second = b.ld<U32>(Space::shared, At(bits_at, -4)),
           third = b.ld<U32>(Space::shared, At(bits_at, -8));
  Reg<U32> more = b.constant<U32>(0), below = b.sub(b.max(top, 2u), 2u);
  b.add(base, static_cast<uint32_t>(bits), bits_at);
  const LabelId gather = b.label(), gathered = b.label();
  b.bind(gather);
  b.when(b.setp(Is::eq, below, 0u)).bra(gathered);
  b.or_(more, b.ld<U32>(Space::shared, At(bits_at)), more);
  b.add(bits_at, 4u, bits_at);
  b.sub(below, 1u, below);
  b.bra(gather);
  b.bind(gathered);
  Reg<U32> zeros = b.clz(highest);
  Reg<U64> number = b.or_(b.shl(b.pack<U64>(second, highest), zeros),
                          b.cvt<U64>(b.shr(third, b.sub(b.constant<U32>(32), zeros))));
  b.or_(more, b.shl(third, zeros), more);
  Reg<U32> some = b.selp(b.constant<U32>(1), b.constant<U32>(0), b.setp(Is::ne, more, 0u));
  const bool narrow = result == Type::f32 && !average;
  if (narrow) {  // to odd (ptx/sums/exact_sum.h), and then to f32
    Reg<U64> cut = b.and_(number, 0x7ffu);
    Reg<Pred> inexact = b.setp(Is::ne, b.or_(cut, b.cvt<U64>(some)), 0);
    number = b.and_(number, ~uint64_t{0x7ff});
    number = b.selp(b.or_(number, 0x800u), number, inexact);
  } else {
    number = b.or_(number, b.cvt<U64>(some));
  }
  // Two steps, of which the first stays normal and the second rounds nothing: what is subnormal has
  // no bits to lose.
  Reg<S32> exponent =
      b.sub(b.sub(b.shl(Builder::as<S32>(top), 5u), Builder::as<S32>(zeros)), 32 - lowest);
  Reg<S32> half = b.shr(exponent, 1u);
  Reg<F64> value = b.mul_rn(b.mul_rn(b.cvt<F64>(number), power_of_2(b, half)),
                            power_of_2(b, b.sub(exponent, half)));
  value = b.selp(b.constant<F64>(0.0), value, b.setp(Is::eq, highest, 0u));
  value = b.selp(b.neg(value), value, negative);
  value = b.selp(special, value, b.setp(Is::neu, special, 0.0));
  Reg<U64> place = b.add(b.ld_param(p_first), b.cvt<U64>(cell));
  if (average) {
    const ExactRange range = exact_range_of(b, p_offsets, p_n, place);
    value = b.div_rn(value, b.cvt<F64>(b.sub(range.end, range.begin)));
  }
  const At to = element_at(b, b.ld_param(p_out), b.cvt<U32>(place), width(result));
  if (result == Type::f32)
    b.st<F32>(Space::global, to, b.cvt<F32>(value));
  else
    b.st<F64>(Space::global, to, value);
  b.bind(done);
  b.ret();
  b.finish();
  return exact_block;
}

}  // namespace

Result<Vector> exact_sums(Library& library, const Cells& cells, bool average, Type result,
                          Memory& memory) {
  const Vector& x = cells.elements;
  CHECK(is_float(result) && (is_float(x.type) || (x.type == Type::i64 && average)));
  RETURN_IF_ERROR(check_rows({&x, 1}));
  Vector out{.type = result, .capacity = cells.count};
  ASSIGN_OR_RETURN(out.data, memory.result(std::max<uint64_t>(1, cells.count) * width(result)));
  if (cells.count == 0) return out;
  const uint64_t parts = std::clamp<uint64_t>(x.capacity / cells.count / rows_per_piece, 1,
                                              std::max<uint64_t>(1, parallel_pieces / cells.count));
  const uint64_t at_once = std::min(cells.count, most_pieces / parts);
  ASSIGN_OR_RETURN(const Address bins, memory.temporary(at_once * parts * words * 8));
  ASSIGN_OR_RETURN(const Address specials, memory.temporary(at_once * parts * 8));
  const std::string of = fmt::format("{}", type_name(x.type));
  ASSIGN_OR_RETURN(
      const Kernel* deposit,
      library.kernel("exact_deposit_" + of, [&](ptx::Module& m, std::string_view entry) {
        return build_deposit(m, entry, x.type);
      }));
  const std::string rounding =
      fmt::format("exact_round_{}{}", type_name(result), average ? "_average" : "");
  ASSIGN_OR_RETURN(const Kernel* round,
                   library.kernel(rounding, [&](ptx::Module& m, std::string_view entry) {
                     return build_round(m, entry, average, result);
                   }));
  for (uint64_t first = 0; first < cells.count; first += at_once) {
    const uint64_t now = std::min(at_once, cells.count - first), pieces = now * parts;
    Arguments a;
    a.add(x.data).add(cells.offsets).add(x.capacity).add(first).add(parts).add(pieces).add(bins);
    a.add(specials);
    const auto blocks = [](uint64_t of_warps) {
      return static_cast<uint32_t>((of_warps + exact_warps - 1) / exact_warps);
    };
    RETURN_IF_ERROR(library.launch(*deposit, blocks(pieces), a,
                                   x.capacity * width(x.type) * now / cells.count));
    Arguments c;
    c.add(cells.offsets).add(x.capacity).add(first).add(now).add(parts).add(bins).add(specials);
    c.add(out.data);
    RETURN_IF_ERROR(library.launch(*round, blocks(now), c, pieces * words * 8));
  }
  return out;
}

}  // namespace rndn::operators
