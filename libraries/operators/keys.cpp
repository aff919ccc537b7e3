// From columns to parts of keys, their bounds, and the words that they share.
//
// bounds: reads every column whose bounds are unknown once. Threads keep the largest s, the largest ~s (so the smallest s), the bits that
// are set in some s and those that are clear in some s; warps and blocks combine them by shuffles and shared memory, then one atomic per
// block and figure; the last block hands them to the host and leaves the memory zero. Zero is the neutral value of all four.
#include "libraries/operators/keys.h"

#include <algorithm>
#include <bit>

#include "libraries/operators/emit.h"
#include "libraries/operators/ready.h"

namespace rndn::operators {

using ptx::AtomicOp;

namespace {

constexpr uint32_t bounds_block = 256, bounds_parts = 16, bounds_unroll = 4;

uint64_t type_mask(uint32_t bytes) { return bytes == 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * bytes) - 1; }

struct Extremes {
  Bits high, low, set, clear;  // largest s, largest ~s, or of s, or of ~s
};

template <class T>
void note(Builder& b, Reg<T> s, Reg<T> high, Reg<T> low, Reg<T> set, Reg<T> clear) {
  Reg<T> inverse = b.not_(s);
  b.max(high, s, high);
  b.max(low, inverse, low);
  b.or_(set, s, set);
  b.or_(clear, inverse, clear);
}

uint32_t build_bounds(ptx::Module& module, std::string_view name, std::span<const Source> sources) {
  KernelBuilder b(module, name);
  Param p_n = b.parameter<U64>("n"), p_slot = b.parameter<U64>("slot"), p_scratch = b.parameter<U64>("scratch");
  const Answer answer = answer_parameters(b, 1 + 4 * sources.size());
  std::vector<PartCode> parts;
  for (size_t k = 0; k < sources.size(); ++k) parts.push_back(declare_part(b, sources[k], static_cast<uint32_t>(k)));
  b.set_block_size(bounds_block);
  const uint32_t figures = 4 * static_cast<uint32_t>(sources.size()), warps = bounds_block / 32;
  auto shared = b.shared<U64>(std::string(name) + "_shared", figures * warps + 2, 16);
  const Thread t = thread_of(b);
  Reg<U32> ctaid = b.special(ptx::SpecialRegister::ctaid_x), nctaid = b.special(ptx::SpecialRegister::nctaid_x);

  Reg<U64> n = b.ld_param(p_n), slot = b.ld_param(p_slot);
  load_if<U64>(b, b.setp(Is::ne, slot, 0), Space::global, At(slot), n);
  std::vector<Extremes> all(sources.size());
  for (size_t k = 0; k < sources.size(); ++k)
    for (Bits Extremes::*m : {&Extremes::high, &Extremes::low, &Extremes::set, &Extremes::clear})
      if (is_wide(sources[k]))
        (all[k].*m).wide = b.constant<U64>(0);
      else
        (all[k].*m).narrow = b.constant<U32>(0u);

  // Rows beyond the end are the last row once more.
  Reg<U64> last = b.sub(n, 1);
  Reg<U64> row = b.mad_wide(ctaid, bounds_block * bounds_unroll, b.cvt<U64>(t.tid));
  Reg<U64> step = b.mul_wide(nctaid, bounds_block * bounds_unroll);
  const ptx::LabelId loop = b.label(), done = b.label();
  // Uniform in the block: a tile is left as a whole.
  Reg<U64> tile = b.mul_wide(ctaid, bounds_block * bounds_unroll);
  b.bind(loop);
  b.when(b.setp(Is::ge, tile, n)).bra_uni(done);
  for (uint32_t u = 0; u < bounds_unroll; ++u) {
    Reg<U32> here = b.cvt<U32>(b.min(u ? b.add(row, bounds_block * u) : row, last));
    for (size_t k = 0; k < sources.size(); ++k) {
      const Bits s = load_bits(b, parts[k], here);
      Extremes& e = all[k];
      if (s.is_wide())
        note(b, s.wide, e.high.wide, e.low.wide, e.set.wide, e.clear.wide);
      else
        note(b, s.narrow, e.high.narrow, e.low.narrow, e.set.narrow, e.clear.narrow);
    }
  }
  b.add(row, step, row);
  b.add(tile, step, tile);
  b.bra(loop);
  b.bind(done);

  // Warp, then block: thread f combines figure f of all warps.
  Reg<Pred> lane0 = b.setp(Is::eq, t.lane, 0u);
  Reg<U32> base = b.address_of_32(shared);
  for (uint32_t f = 0; f < figures; ++f) {
    const bool sum_max = f % 4 < 2;
    constexpr Bits Extremes::*members[] = {&Extremes::high, &Extremes::low, &Extremes::set, &Extremes::clear};
    Bits x = all[f / 4].*members[f % 4];
    for (uint32_t distance = 16; distance > 0; distance /= 2) {
      if (x.is_wide()) {
        Reg<U64> other = b.shfl_sync_64(ShuffleMode::bfly, x.wide, distance, 31u);
        sum_max ? b.max(x.wide, other, x.wide) : b.or_(x.wide, other, x.wide);
      } else {
        Reg<U32> other = b.shfl_sync(ShuffleMode::bfly, x.narrow, distance, 31u);
        sum_max ? b.max(x.narrow, other, x.narrow) : b.or_(x.narrow, other, x.narrow);
      }
    }
    if (!x.is_wide()) x.wide = b.cvt<U64>(x.narrow);
    store_if<U64>(b, lane0, Space::shared, At(b.add(base, b.shl(t.warp, 3u)), 8 * warps * f), x.wide);
  }
  b.bar_sync();
  Reg<U64> words = b.add(b.ld_param(p_scratch), 8);
  if (figures > 0) {
    const ptx::LabelId skip = b.label();
    b.when(b.setp(Is::ge, t.tid, figures)).bra(skip);
    Reg<U64> high = b.constant<U64>(0), set = b.constant<U64>(0);
    Reg<U32> from = b.add(base, b.mul_lo(t.tid, 8 * warps));
    for (uint32_t w = 0; w < warps; ++w) {
      Reg<U64> x = b.ld<U64>(Space::shared, At(from, 8 * w));
      b.max(high, x, high);
      b.or_(set, x, set);
    }
    Reg<Pred> is_max = b.setp(Is::lt, b.and_(t.tid, 3u), 2u);
    Reg<U64> at = element_address(b, words, t.tid, 8);
    b.when(is_max).red<U64>(AtomicOp::max, Space::global, At(at), high);
    b.unless(is_max).red<U64>(AtomicOp::or_, Space::global, At(at), set);
    b.membar(ptx::Scope::gpu);
    b.bind(skip);
  }
  b.bar_sync();
  // The last block to arrive.
  Reg<Pred> thread0 = b.setp(Is::eq, t.tid, 0u);
  const ptx::LabelId arrived = b.label(), leave = b.label();
  const int64_t ticket_at = 8 * figures * warps;
  b.unless(thread0).bra(arrived);
  b.membar(ptx::Scope::gpu);
  b.st<U32>(Space::shared, At(shared, ticket_at),
            b.atom<U32>(AtomicOp::add, Space::global, At(b.ld_param(p_scratch)), 1u));
  b.bind(arrived);
  b.bar_sync();
  Reg<U32> ticket = b.ld<U32>(Space::shared, At(shared, ticket_at));
  b.when(b.setp(Is::ne, ticket, b.sub(nctaid, 1u))).bra_uni(leave);
  b.membar(ptx::Scope::gpu);
  if (figures > 0) {
    Reg<Pred> mine = b.setp(Is::lt, t.tid, figures);
    Reg<U64> at = element_address(b, words, t.tid, 8);
    Reg<U64> x = b.constant<U64>(0);
    load_if<U64>(b, mine, Space::global, At(at), x, volatile_access);
    store_if<U64>(b, mine, Space::global, At(element_address(b, b.ld_param(answer.found), t.tid, 8), 8), x);
    store_if<U64>(b, mine, Space::global, At(at), 0);
    Reg<U64> foreseen = b.constant<U64>(0);
    for (uint32_t f = 0; f < figures; ++f) {
      Reg<U64> word = b.ld_param(answer.foreseen[1 + f]);
      b.when(b.setp(Is::eq, t.tid, f)).mov(word, foreseen);
    }
    compare_told(b, answer, mine, x, foreseen);
  }
  tell(b, answer, 0, thread0, n);
  store_if<U32>(b, thread0, Space::global, At(b.ld_param(p_scratch)), 0u);
  b.bind(leave);
  b.ret();
  b.finish();
  return bounds_block;
}

}  // namespace

Part make_part(const Vector& column, bool ascending) {
  Part p;
  p.data = column.data;
  const uint32_t bytes = width(column.type);
  const uint64_t mask = type_mask(bytes);
  switch (column.type) {
    case Type::f32: p.source = Source::f32, p.flip = ascending ? 0 : mask; return p;
    case Type::f64: p.source = Source::f64, p.flip = ascending ? 0 : mask; return p;
    case Type::u8:
    case Type::i8: p.source = Source::u8; break;
    case Type::u16:
    case Type::i16: p.source = Source::u16; break;
    case Type::i32:
    case Type::u32: p.source = Source::u32; break;
    case Type::i64: p.source = Source::u64; break;
  }
  if (column.ranks) {
    p.source = bytes == 1 ? Source::rank8 : bytes == 2 ? Source::rank16 : Source::rank32;
    p.extra = column.ranks;
    p.flip = ascending ? 0 : 0xFFFFFFFFu;
    return p;
  }
  const bool is_signed = !is_unsigned(column.type);
  const uint64_t sign = is_signed ? uint64_t{1} << (8 * bytes - 1) : 0;
  p.flip = sign ^ (ascending ? 0 : mask);
  if (column.known()) {
    // A bound may lie outside of the type.
    const int64_t least = is_signed ? static_cast<int64_t>(~uint64_t{0} << (8 * bytes - 1)) : 0;
    const int64_t most = static_cast<int64_t>(is_signed ? mask >> 1 : mask);
    const uint64_t a = (static_cast<uint64_t>(std::clamp(column.min, least, most)) & mask) ^ p.flip;
    const uint64_t z = (static_cast<uint64_t>(std::clamp(column.max, least, most)) & mask) ^ p.flip;
    p.low = std::min(a, z), p.high = std::max(a, z);
  }
  return p;
}

Rows rows_of(std::span<const Vector> columns) {
  Rows rows;
  if (columns.empty()) return rows;
  rows = {columns[0].capacity, columns[0].size_slot};
  for (const Vector& c : columns) {
    if (rows.size_slot && !c.size_slot) rows.size_slot = 0, rows.capacity = c.capacity;  // an exact size decides
    if (rows.size_slot) rows.capacity = std::min(rows.capacity, c.capacity);
  }
  return rows;
}

Result<void> check_rows(const Rows& rows) {
  if (!rows.size_slot && rows.capacity > most_rows)
    return input_error("sorting takes at most {} rows, got {}", most_rows, rows.capacity);
  return {};
}

static Library::Row bounds_kernel(const std::vector<Source>& sources) {
  return {"bounds_" + source_letters(sources),
          [sources](ptx::Module& m, std::string_view entry) { return build_bounds(m, entry, sources); }};
}

// Of how many rows there are alone, and of one column.
void add_bounds(KernelRows& rows) {
  rows.push_back(bounds_kernel({}));
  for (Source source : all_sources) rows.push_back(bounds_kernel({source}));
}

Result<uint64_t> find_bounds(Library& library, const Rows& rows, std::vector<Part>& parts, Memory& memory) {
  std::vector<Part*> unknown;
  for (Part& p : parts)
    if (!p.known()) unknown.push_back(&p);
  uint64_t n = rows.capacity;
  if (n == 0) return n;
  if (!rows.size_slot && unknown.empty()) return n;
  const size_t batches = std::max<size_t>(1, (unknown.size() + bounds_parts - 1) / bounds_parts);
  ASSIGN_OR_RETURN(const Question question, library.ask("bounds", batches + 4 * unknown.size(), memory));
  ASSIGN_OR_RETURN(Address scratch, library.zeroed());
  size_t word = 0;
  for (size_t batch = 0; batch < batches; ++batch) {
    const size_t first = batch * bounds_parts, count = std::min<size_t>(bounds_parts, unknown.size() - first);
    std::vector<Source> sources;
    Arguments a;
    a.add(rows.capacity).add(rows.size_slot).add(scratch);
    add(a, question, word, 1 + 4 * count);
    uint64_t bytes = 0;
    for (size_t k = 0; k < count; ++k) {
      const Part& p = *unknown[first + k];
      sources.push_back(p.source);
      add_part(a, p);
      bytes += is_wide(p.source) ? 8 : 4;
    }
    ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel(bounds_kernel(sources)));
    const uint64_t tile = bounds_block * bounds_unroll;
    const uint32_t grid = count ? library.grid(*kernel, (rows.capacity + tile - 1) / tile) : 1;
    RETURN_IF_ERROR(library.launch(*kernel, grid, a, rows.capacity * bytes));
    word += 1 + 4 * count;
  }
  ASSIGN_OR_RETURN(const uint64_t* found, library.learn(question, memory));
  n = found[0];
  RETURN_IF_ERROR(check_rows({n, 0}));
  for (size_t k = 0; k < unknown.size(); ++k) {
    if (k % bounds_parts == 0) ++found;
    Part& p = *unknown[k];
    const uint64_t mask = is_wide(p.source) ? ~uint64_t{0} : 0xFFFFFFFFu;
    p.high = found[0], p.low = found[1] ^ mask;
    const uint64_t varying = found[2] & found[3];
    p.shift = varying ? static_cast<uint32_t>(std::countr_zero(varying)) : 0;
    if (n == 0) p.low = p.high = 0, p.shift = 0;
    found += 4;
  }
  return n;
}

std::vector<Word> pack_words(std::span<const Part> parts) {
  std::vector<Word> words;
  unsigned __int128 product = 0;  // of the ranges of the current word
  for (size_t k = parts.size(); k-- > 0;) {
    const Part& p = parts[k];
    if (p.span() == 0) continue;
    const unsigned __int128 range = static_cast<unsigned __int128>(p.span()) + 1;
    const unsigned __int128 all = static_cast<unsigned __int128>(1) << 64;
    if (words.empty() || product > all / range) {
      words.emplace_back();
      product = 1;
    }
    words.back().parts.insert(words.back().parts.begin(), p);
    words.back().factors.insert(words.back().factors.begin(), static_cast<uint64_t>(product));
    product *= range;
    const uint64_t most = static_cast<uint64_t>(product - 1);
    words.back().bits = static_cast<uint32_t>(std::bit_width(most));
  }
  if (words.empty()) words.push_back({{}, {}, 1});
  return words;
}

bool is_wide(Source source) { return source == Source::u64 || source == Source::f64 || source == Source::word; }

std::string source_letters(std::span<const Part> parts) {
  std::string s;
  for (const Part& p : parts) s += static_cast<char>(p.source);
  return s;
}
std::string source_letters(std::span<const Source> sources) {
  std::string s;
  for (Source source : sources) s += static_cast<char>(source);
  return s;
}

PartCode declare_part(Builder& b, Source source, uint32_t k) {
  PartCode p{.source = source};
  const std::string number = std::to_string(k);
  p.data = b.parameter<U64>("data" + number);
  p.extra = b.parameter<U64>("extra" + number);
  p.number = b.parameter<U64>("number" + number);
  p.flip = b.parameter<U64>("flip" + number);
  return p;
}

void add_part(Arguments& a, const Part& p) { a.add(p.data).add(p.extra).add(p.number).add(p.flip); }

Reg<U64> load_bytes(Builder& b, Reg<U64> at, Reg<U32> first, Reg<U32> length) {
  // The aligned words that have its bytes, moved together and cut.
  Reg<S32> left = Builder::as<S32>(b.sub(length, first));
  Reg<U32> skipped = b.and_(b.cvt<U32>(at), 7u);
  Reg<U64> aligned = b.sub(at, b.cvt<U64>(skipped));
  Reg<U64> low = b.constant<U64>(0), high = b.constant<U64>(0);
  load_if<U64>(b, b.setp(Is::gt, left, 0), Space::global, At(aligned), low);
  Reg<S32> in_low = Builder::as<S32>(b.sub(b.constant<U32>(8), skipped));
  load_if<U64>(b, b.setp(Is::gt, left, in_low), Space::global, At(aligned, 8), high);
  Reg<U32> moved = b.shl(skipped, 3u);
  Reg<U64> bytes = b.or_(b.shr(low, moved), b.shl(high, b.sub(b.constant<U32>(64), moved)));
  Reg<U32> unused = b.shl(b.sub(b.constant<U32>(8), Builder::as<U32>(b.min(b.max(left, 0), 8))), 3u);
  return b.shr(b.shl(bytes, unused), unused);
}

Reg<U64> load_text_word(Builder& b, Reg<U64> at, Reg<U32> first, Reg<U32> length) {
  auto [early, late] = b.unpack(load_bytes(b, at, first, length));
  return b.pack<U64>(b.prmt(late, 0u, 0x0123u), b.prmt(early, 0u, 0x0123u));
}

Bits load_bits(Builder& b, const PartCode& part, Reg<U32> row) {
  PartValues values{.data = b.ld_param(part.data)};
  const bool has_ranks = part.source == Source::rank8 || part.source == Source::rank16 || part.source == Source::rank32;
  const bool is_string = part.source == Source::word || part.source == Source::length;
  if (has_ranks || part.source == Source::cell || part.source == Source::word) values.extra = b.ld_param(part.extra);
  if (part.source == Source::word) values.number = b.ld_param(part.number);
  if (!is_string && part.source != Source::cell) values.flip = b.ld_param(part.flip);
  return load_bits(b, part.source, values, row);
}

Bits load_bits(Builder& b, Source source, const PartValues& part, Reg<U32> row) {
  Bits out;
  Reg<U64> data = part.data;
  const auto flip32 = [&] { return b.cvt<U32>(part.flip); };
  const auto byte = [&] { return b.cvt<U32>(b.ld<U8>(Space::global, At(element_address(b, data, row, 1)))); };
  const auto half = [&] { return b.cvt<U32>(b.ld<U16>(Space::global, At(element_address(b, data, row, 2)))); };
  switch (source) {
    case Source::u8: out.narrow = b.xor_(byte(), flip32()); return out;
    case Source::u16: out.narrow = b.xor_(half(), flip32()); return out;
    case Source::u32:
      out.narrow = b.xor_(b.ld<U32>(Space::global, At(element_address(b, data, row, 4))), flip32());
      return out;
    case Source::u64:
      out.wide = b.xor_(b.ld<U64>(Space::global, At(element_address(b, data, row, 8))), part.flip);
      return out;
    case Source::f32: {
      Reg<U32> x = b.ld<U32>(Space::global, At(element_address(b, data, row, 4)));
      b.when(b.setp(Is::eq, x, 0x80000000u)).constant<U32>(0u, x);
      Reg<Pred> nan = b.setp(Is::gt, b.and_(x, 0x7FFFFFFFu), 0x7F800000u);
      Reg<U32> sign = Builder::as<U32>(b.shr(Builder::as<S32>(x), 31u));
      out.narrow = b.xor_(b.xor_(x, b.or_(sign, 0x80000000u)), flip32());
      b.when(nan).constant<U32>(0xFFFFFFFFu, out.narrow);
      return out;
    }
    case Source::f64: {
      constexpr uint64_t sign_bit = uint64_t{1} << 63;
      Reg<U64> x = b.ld<U64>(Space::global, At(element_address(b, data, row, 8)));
      b.when(b.setp(Is::eq, x, sign_bit)).constant<U64>(0, x);
      Reg<Pred> nan = b.setp(Is::gt, b.and_(x, ~sign_bit), 0x7FF0000000000000u);
      Reg<U64> sign = Builder::as<U64>(b.shr(Builder::as<S64>(x), 63u));
      out.wide = b.xor_(b.xor_(x, b.or_(sign, sign_bit)), part.flip);
      b.when(nan).constant<U64>(~uint64_t{0}, out.wide);
      return out;
    }
    case Source::rank8:
    case Source::rank16:
    case Source::rank32: {
      Reg<U32> code = source == Source::rank8    ? byte()
                      : source == Source::rank16 ? half()
                                                      : b.ld<U32>(Space::global, At(element_address(b, data, row, 4)));
      Reg<U64> ranks = part.extra;
      out.narrow = b.xor_(b.ld<U32>(Space::global, At(element_address(b, ranks, code, 4))), flip32());
      return out;
    }
    case Source::cell: {
      // The last cell that does not begin behind the row, by bisection: the same steps in all lanes.
      Reg<U32> cell = b.constant<U32>(0u), size = b.cvt<U32>(part.extra);
      Reg<U64> row64 = b.cvt<U64>(row);
      const ptx::LabelId loop = b.label(), found = b.label();
      b.bind(loop);
      b.when(b.setp(Is::le, size, 1u)).bra(found);
      Reg<U32> half = b.shr(size, 1u);
      Reg<U32> middle = b.add(cell, half);
      Reg<U64> start = b.ld<U64>(Space::global, At(element_address(b, data, middle, 8)));
      b.when(b.setp(Is::le, start, row64)).mov(middle, cell);
      b.sub(size, half, size);
      b.bra(loop);
      b.bind(found);
      out.narrow = cell;
      return out;
    }
    case Source::word:
    case Source::length: {
      Reg<U64> handle = b.ld<U64>(Space::global, At(element_address(b, data, row, 8)));
      Reg<U32> length = b.and_(b.cvt<U32>(handle), 0xFFFFFFu);
      if (source == Source::length) {
        out.narrow = length;
        return out;
      }
      Reg<U32> first = b.shl(b.cvt<U32>(part.number), 3u);
      Reg<U64> at = b.add(b.add(part.extra, b.shr(handle, 24u)), b.cvt<U64>(first));
      out.wide = load_text_word(b, at, first, length);
      return out;
    }
  }
  return out;
}

}  // namespace rndn::operators
