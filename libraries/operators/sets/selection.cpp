// Selection: the rows of a relation that a mask keeps, four columns in a pass.
//
// Reduce, then scan (Blelloch, "Prefix Sums and Their Applications", 1990), in two launches of as many blocks as run at once, without a barrier while rows
// are read: every warp has a range of its own. The first launch packs the mask into bits and counts them. In the second a block sums the counts of earlier
// blocks, and its warps walk their ranges, 32 words of bits at a time: lane i of word w has row 32 w + i, whose place is the number of set bits before it.
// It reads the element where its bit is set and writes it there; the warp's writes of one word are neighbours.
// Bytes per row: the mask once, its bits twice, every column once, and what is kept of it once.
// On an H200, half of 100 million rows of one column of 8 bytes kept, a look-back over the tiles took 0.44 ms: docs/measurements/relations.tsv.
// Room is made for all rows, since the count is not waited for; where memory does not allow that, the host sums the counts of the blocks first.
#include <algorithm>
#include <numeric>

#include "libraries/operators/fragments.h"
#include "libraries/operators/operators.h"

namespace rndn::operators {

namespace {

constexpr uint32_t selection_warps = block_threads / 32;
constexpr uint32_t range_unit = 256;                  // ranges begin at multiples of it: whole words of bits
constexpr uint32_t step_rows = 1024;                  // of a warp at a time: a word of bits per lane
constexpr size_t most_columns = 4;                    // of a launch: more streams of reads and writes take longer together than apart
constexpr uint32_t selection_unroll = 16;                       // elements of a column that a lane has on their way at once
constexpr uint64_t most_selected = max_rows - (1 << 15);  // so that places a step behind the last row do not wrap around

// The rows of this warp: [begin, end). Empty ones begin and end at n.
struct SelectionRange {
  Reg<U32> begin, end;
};
SelectionRange selection_range_of(Builder& b, Reg<U32> n, Reg<U32> warp) {
  Reg<U32> units = tiles_of(b, n, range_unit), all = b.mul_lo(b.special(ptx::SpecialRegister::nctaid_x), selection_warps);
  Reg<U32> each = b.div(units, all), more = b.sub(units, b.mul_lo(each, all));
  const auto bound = [&](Reg<U32> k) {
    Reg<U32> unit = b.mad_lo(k, each, b.min(k, more));
    return b.min(b.mul_lo(unit, range_unit), n);
  };
  return {bound(warp), bound(b.add(warp, 1))};
}
Reg<U32> warp_of_all(Builder& b, const Thread& t) {
  return b.mad_lo(b.special(ptx::SpecialRegister::ctaid_x), selection_warps, t.warp);
}

// Four bytes of a mask as four bits: whether anything is set in each.
Reg<U32> bits_of(Builder& b, Reg<U32> bytes) {
  Reg<U32> carried = b.add(b.and_(bytes, 0x7F7F7F7Fu), 0x7F7F7F7Fu);  // a byte's top bit
  // Bits 7, 15, 23 and 31 go to 28 to 31, and nothing else does.
  return b.shr(b.mul_lo(b.and_(b.or_(carried, bytes), 0x80808080u), 0x00204081u), 28u);
}

// bits: a word per 32 rows. blocks[block]: how many rows of the block's warps are kept. firsts[warp]: how many of the block's before that warp's.
uint32_t build_selection_pack(ptx::Module& module, std::string_view name) {
  KernelBuilder b(module, name);
  b.set_block_size(block_threads);
  const Parameter n_at = b.parameter<U64>("n"), mask_at = b.parameter<U64>("mask"), bits_at = b.parameter<U64>("bits"),
                  blocks_at = b.parameter<U64>("blocks"), firsts_at = b.parameter<U64>("firsts");
  const ptx::SharedVariable shared = b.shared<U64>(std::string(name) + "_shared", selection_warps / 2, 16);
  const Thread t = thread_of(b);
  Reg<U32> warp = warp_of_all(b, t);
  const SelectionRange range = selection_range_of(b, b.cvt<U32>(b.ld_param(n_at)), warp);
  Reg<U64> mask = b.ld_param(mask_at), bits = b.ld_param(bits_at);
  Reg<U32> own = b.constant<U32>(0), row = b.mov(range.begin);
  // 16 rows of a lane at a time, where the mask lies at a multiple of as many bytes.
  {
    constexpr uint32_t at_once = 2, group = 16;
    const LabelId next = b.label(), done = b.label();
    Reg<U32> whole = b.and_(range.end, ~31u);
    Reg<Pred> aligned = b.setp(Is::eq, b.and_(b.cvt<U32>(mask), group - 1), 0);
    whole = b.selp(whole, row, aligned);
    Reg<U32> first = b.mad_lo(t.lane, group, row);
    b.bind(next);
    b.when(b.setp(Is::ge, row, whole)).bra_uni(done);
    Reg<U64> from = b.add(mask, b.cvt<U64>(first)), to = b.add(bits, b.cvt<U64>(b.shr(first, 3u)));
    std::vector<Reg<Pred>> exists;
    std::vector<std::array<Reg<U32>, 4>> words;
    for (uint32_t k = 0; k < at_once; ++k) {
      exists.push_back(b.setp(Is::lt, b.add(first, 32 * group * k), whole));
      std::array<Reg<U32>, 4> word;
      for (Reg<U32>& w : word) w = b.constant<U32>(0);
      b.when(exists[k]).emit(
          ptx::Opcode::ld, U32::type, {.space = Space::global, .cache = ptx::Cache::nc, .vector = 4},
          {b.vector({b.use(word[0]), b.use(word[1]), b.use(word[2]), b.use(word[3])})},
          {At(from, int64_t{32} * group * k).operand});
      words.push_back(word);
    }
    for (uint32_t k = 0; k < at_once; ++k) {
      Reg<U32> packed = bits_of(b, words[k][3]);
      for (uint32_t w = 3; w-- > 0;) packed = b.mad_lo(packed, 16u, bits_of(b, words[k][w]));
      b.add(own, b.popc(packed), own);
      store_if<U16>(b, exists[k], Space::global, At(to, int64_t{4} * group * k), b.cvt<U16>(packed));
    }
    b.add(first, 32 * group * at_once, first);
    b.add(row, 32 * group * at_once, row);
    b.bra(next);
    b.bind(done);
    b.max(range.begin, whole, row);
  }
  // What is left, 32 rows at a time.
  const LabelId next = b.label(), done = b.label();
  b.bind(next);
  b.when(b.setp(Is::ge, row, range.end)).bra_uni(done);
  Reg<U32> at = b.add(row, t.lane);
  Reg<U16> flag = b.constant<U16>(0);
  const At flag_at = element_at(b, mask, at, 1);
  load_if<U8>(b, b.setp(Is::lt, at, range.end), Space::global, flag_at, flag);
  Reg<U32> word = b.ballot(b.setp(Is::ne, b.cvt<U32>(flag), 0));
  Reg<Pred> lane0 = b.setp(Is::eq, t.lane, 0);
  const At word_at = element_at(b, bits, b.shr(row, 5u), 4);
  store_if<U32>(b, lane0, Space::global, word_at, word);
  Reg<U32> kept = b.popc(word);
  b.when(lane0).add(own, kept, own);
  b.add(row, 32, row);
  b.bra(next);
  b.bind(done);
  const BlockSum sum = block_sum(b, t, warp_sum(b, t, own), selection_warps, shared, 0);
  const At first_at = element_at(b, b.ld_param(firsts_at), warp, 4);
  store_if<U32>(b, b.setp(Is::eq, t.lane, 0), Space::global, first_at, sum.before);
  const At block_at = element_at(b, b.ld_param(blocks_at), b.special(ptx::SpecialRegister::ctaid_x), 4);
  store_if<U32>(b, b.setp(Is::eq, t.tid, 0), Space::global, block_at, sum.total);
  b.ret();
  b.finish();
  return block_threads;
}

// Of all threads: the sum of the counts of earlier blocks.
Reg<U32> sum_of_earlier(Builder& b, const Thread& t, Reg<U64> counts, ptx::SharedVariable shared) {
  Reg<U32> block = b.special(ptx::SpecialRegister::ctaid_x), at = b.mov(t.tid), own = b.constant<U32>(0);
  const LabelId next = b.label(), done = b.label();
  b.bind(next);
  b.when(b.setp(Is::ge, at, block)).bra(done);
  b.add(own, b.ld<U32>(Space::global, element_at(b, counts, at, 4)), own);
  b.add(at, block_threads, at);
  b.bra(next);
  b.bind(done);
  return block_sum(b, t, warp_sum(b, t, own), selection_warps, shared, 0).total;
}

uint32_t build_select(ptx::Module& module, std::string_view name, std::span<const uint32_t> widths) {
  KernelBuilder b(module, name);
  b.set_block_size(block_threads);
  const Parameter n_at = b.parameter<U64>("n"), bits_at = b.parameter<U64>("bits");
  const Parameter blocks_at = b.parameter<U64>("blocks"), firsts_at = b.parameter<U64>("firsts");
  const Parameter total_at = b.parameter<U64>("total");
  std::vector<Parameter> from_at, to_at;
  for (size_t c = 0; c < widths.size(); ++c) {
    from_at.push_back(b.parameter<U64>("from" + std::to_string(c)));
    to_at.push_back(b.parameter<U64>("to" + std::to_string(c)));
  }
  const ptx::SharedVariable shared = b.shared<U64>(std::string(name) + "_shared", selection_warps / 2, 16);
  const Thread t = thread_of(b);
  Reg<U32> warp = warp_of_all(b, t);
  const SelectionRange range = selection_range_of(b, b.cvt<U32>(b.ld_param(n_at)), warp);
  Reg<U32> earlier = sum_of_earlier(b, t, b.ld_param(blocks_at), shared);
  Reg<U32> before = b.add(earlier, b.ld<U32>(Space::global, element_at(b, b.ld_param(firsts_at), warp, 4)));
  Reg<U32> lane_bit = b.shl(b.constant<U32>(1), t.lane), below = b.sub(lane_bit, 1);
  Reg<U64> bits = b.ld_param(bits_at);
  Reg<U32> row = b.add(range.begin, t.lane), end = b.add(range.end, t.lane);
  const LabelId next = b.label(), done = b.label();
  b.bind(next);
  b.when(b.setp(Is::ge, row, end)).bra_uni(done);
  // A word per lane, and the places of their first rows.
  Reg<U32> words_end = b.shr(b.add(range.end, 31), 5u), word_at = b.add(b.shr(row, 5u), t.lane);
  Reg<U32> word = b.constant<U32>(0);
  const At bits_from = element_at(b, bits, word_at, 4);
  load_if<U32>(b, b.setp(Is::lt, word_at, words_end), Space::global, bits_from, word, {.cache = ptx::Cache::nc});
  Reg<U32> count = b.popc(word), inclusive = warp_sum(b, t, count);
  Reg<U32> first = b.add(before, b.sub(inclusive, count));
  Reg<U32> kept = b.shfl_sync(ShuffleMode::idx, inclusive, 31, 31);
  Reg<U32> source = b.constant<U32>(0), step_end = b.min(b.add(row, step_rows), end);
  const LabelId copy = b.label();
  b.bind(copy);
  {
    std::vector<Reg<Pred>> keeps;
    std::vector<Reg<U32>> place;
    for (uint32_t u = 0; u < selection_unroll; ++u) {
      Reg<U32> lane = u ? b.add(source, u) : source;
      Reg<U32> w = b.shfl_sync(ShuffleMode::idx, word, lane, 31);
      Reg<U32> to = b.shfl_sync(ShuffleMode::idx, first, lane, 31);
      place.push_back(b.add(to, b.popc(b.and_(w, below))));
      keeps.push_back(b.setp(Is::ne, b.and_(w, lane_bit), 0));
    }
    for (size_t c = 0; c < widths.size(); ++c) {
      with_width(widths[c], [&]<class T>() {
        std::vector<Reg<ptx::RegisterTag<T>>> values;
        Reg<U64> from = element_address(b, b.ld_param(from_at[c]), row, widths[c]);
        for (uint32_t u = 0; u < selection_unroll; ++u) {
          values.push_back(b.template constant<ptx::RegisterTag<T>>(0));
          load_if<T>(b, keeps[u], Space::global, At(from, int64_t{32} * u * widths[c]), values[u], {.cache = ptx::Cache::nc});
        }
        for (uint32_t u = 0; u < selection_unroll; ++u) {
          const At to = element_at(b, b.ld_param(to_at[c]), place[u], widths[c]);
          store_if<T>(b, keeps[u], Space::global, to, values[u]);
        }
      });
    }
    b.add(source, selection_unroll, source);
    b.add(row, 32 * selection_unroll, row);
    b.when(b.setp(Is::lt, row, step_end)).bra_uni(copy);
  }
  b.add(before, kept, before);
  b.bra(next);
  b.bind(done);
  Reg<U32> blocks = b.special(ptx::SpecialRegister::nctaid_x);
  Reg<Pred> last = b.setp(Is::eq, b.add(warp, 1), b.mul_lo(blocks, selection_warps));
  b.setp(Is::eq, ptx::Combine::and_, t.lane, 0, last, last);
  Reg<U64> total_to = b.ld_param(total_at);
  store_if<U64>(b, last, Space::global, At(total_to), b.cvt<U64>(before));
  b.ret();
  b.finish();
  return block_threads;
}

}  // namespace

Result<Relation> select(Library& library, const Relation& relation, const Vector& mask, Memory& memory) {
  ASSIGN_OR_RETURN(Relation out, exact(library, relation));
  ASSIGN_OR_RETURN(const Relation m, exact(library, {mask}));
  const uint64_t n = out[0].capacity;
  if (mask.type != Type::u8 || m[0].capacity != n)
    return input_error("select expects a bool for each of {} rows, got {} of {}", n, type_name(mask.type),
                       m[0].capacity);
  if (n > most_selected) return input_error("select takes at most {} rows, got {}", most_selected, n);
  ASSIGN_OR_RETURN(device::Mapped total, memory.mapped(8));
  Address bits = 0, blocks = 0, firsts = 0;
  uint32_t grid = 0;  // of all launches, which have the same ranges
  uint64_t room = n;
  for (size_t first = 0; first < out.size(); first += most_columns) {
    const std::span<Vector> some = std::span(out).subspan(first, std::min(most_columns, out.size() - first));
    if (n == 0) {
      for (Vector& v : some) {
        ASSIGN_OR_RETURN(v.data, memory.result(0));
      }
      continue;
    }
    std::vector<uint32_t> widths;
    std::string name = "relation_select";
    uint64_t row_bytes = 0;
    for (const Vector& v : some) {
      widths.push_back(width(v.type));
      row_bytes += widths.back();
      name += fmt::format("_{}", widths.back());
    }
    ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel(name, [&](ptx::Module& module, std::string_view called) {
      return build_select(module, called, widths);
    }));
    if (first == 0) {
      grid = library.grid(*kernel, tiles_for(n, selection_warps * range_unit));
      ASSIGN_OR_RETURN(bits, memory.temporary(4 * tiles_for(n, 32)));
      ASSIGN_OR_RETURN(blocks, memory.temporary(uint64_t{grid} * 4));
      ASSIGN_OR_RETURN(firsts, memory.temporary(uint64_t{grid} * selection_warps * 4));
      ASSIGN_OR_RETURN(const Kernel* pack, library.kernel("select_pack", build_selection_pack));
      Arguments p;
      p.add(n).add(m[0].data).add(bits).add(blocks).add(firsts);
      RETURN_IF_ERROR(library.launch(*pack, grid, p, n));
      if (std::any_of(out.begin(), out.end(),
                      [&](const Vector& v) { return memory.counts_first(n * width(v.type)); })) {
        std::vector<uint32_t> counts(grid);
        RETURN_IF_ERROR(library.device().copy_to_host(counts.data(), blocks, uint64_t{grid} * 4));
        room = std::accumulate(counts.begin(), counts.end(), uint64_t{0});
      }
    }
    Arguments a;
    a.add(n).add(bits).add(blocks).add(firsts).add(total.address);
    for (Vector& v : some) {
      const Address from = v.data;
      ASSIGN_OR_RETURN(v.data, memory.result(room * width(v.type)));
      a.add(from).add(v.data);
    }
    RETURN_IF_ERROR(library.launch(*kernel, grid, a, n * row_bytes));
  }
  if (n == 0) return out;
  RETURN_IF_ERROR(library.wait(memory));
  for (Vector& v : out) v.capacity = *static_cast<const volatile uint64_t*>(total.host);
  return out;
}

}  // namespace rndn::operators
