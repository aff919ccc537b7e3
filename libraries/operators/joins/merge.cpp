// Where the tiles of two merged columns begin in either: a thread per tile searches along its diagonal.
//
// A search is a chain of loads that miss every cache, each of a sector of its own: their number costs more than their depth. So it starts from a guess and
// goes on by interpolation (four steps of both elements on either side of the guess, which lie in one sector or two of either column): what they differ by,
// and how fast keys rise, says how far off the guess is. All lanes of a warp find the split of their middle tile first, from where it would be if the columns
// alternated evenly, with the rise of whole columns; what is left is searched by all of them, 32 elements at a time. Their own splits lie about as far from
// it as their tiles do, and between the two keys rise as evenly as can be known. What is left of those is searched around the last guess at distances that
// grow 32-fold, and then in quarters.
// The launch also clears the counters of the kernel that comes after it.
#include "libraries/operators/joins/merge.h"

#include <algorithm>
#include <type_traits>

namespace rndn::operators {

namespace {

constexpr uint64_t words_at = 256;  // in the counters, behind the ticket

constexpr uint32_t split_threads = 256;  // of a block: neighbouring tiles lie in the same pages of memory, which an SM finds once

// Moves lo to the first of lo .. hi whose element of left is greater than the one of right that it meets on the diagonal, hi if there is none before.
// Starts at `guess`, which may be anything, looking `distance` around it.
template <class T>
void search_diagonal(Builder& b, Reg<U64> left, Reg<U64> right, Reg<U32> diagonal, Reg<U32> lo, Reg<U32> hi,
                     Reg<U32> guess, Reg<U32> distance) {
  const LabelId again = b.label(), found = b.label();
  Reg<U32> last = b.sub(diagonal, 1);
  b.bind(again);
  b.when(b.setp(Is::ge, lo, hi)).bra(found);
  Reg<U32> open = b.sub(hi, lo), quarter = b.shr(open, 2), most = b.sub(hi, 1);
  Reg<Pred> guesses = b.setp(Is::lt, distance, quarter);
  Reg<U32> step = b.min(distance, quarter);
  Reg<U32> middle = b.selp(b.min(b.max(guess, lo), most), b.add(lo, b.shr(open, 1)), guesses);
  b.shl(b.min(distance, 1u << 26), 5, distance);
  const Reg<U32> at[] = {b.sub(middle, b.min(b.sub(middle, lo), step)), middle,
                         b.add(middle, b.min(b.sub(most, middle), step))};
  std::vector<Reg<T>> x, y;
  for (Reg<U32> k : at) {
    x.push_back(b.ld_nc<T>(element_at(b, left, k, T::size)));
    y.push_back(b.ld_nc<T>(element_at(b, right, b.sub(last, k), T::size)));
  }
  std::vector<Reg<Pred>> before;
  for (size_t k = 0; k < 3; ++k) before.push_back(b.setp(Is::le, x[k], y[k]));
  for (size_t k = 0; k < 3; ++k) b.when(before[k]).add(at[k], 1, lo);
  for (size_t k = 3; k-- > 0;) b.unless(before[k]).mov(at[k], hi);
  b.bra(again);
  b.bind(found);
}

// x - y as a number with a sign, whatever the type; wrong where it is larger than half of the type's range, which costs time only.
template <class T>
Reg<F32> signed_difference(Builder& b, Reg<T> x, Reg<T> y) {
  using Signed = std::conditional_t<T::size == 8, S64, S32>;
  return b.cvt<F32>(Builder::as<Signed>(b.sub(x, y)));
}

// The same in at most so many steps by interpolation, each of the elements on both sides of the guess; what is left lies between lo and hi, and next to the
// guess if keys rise evenly. `per_key`: how much further the split is for each by which the element of right exceeds that of left, about.
template <class T>
void interpolate(Builder& b, Reg<U64> left, Reg<U64> right, Reg<U32> diagonal, Reg<U32> lo, Reg<U32> hi,
                 Reg<U32> guess, Reg<F32> per_key, uint32_t steps) {
  const LabelId again = b.label(), over = b.label();
  Reg<U32> last = b.sub(diagonal, 1), step = b.constant<U32>(0);
  b.bind(again);
  b.when(b.setp(Is::ge, lo, hi)).bra(over);
  b.when(b.setp(Is::ge, step, steps)).bra(over);
  // Two neighbours, but where the guess is the first or the last one.
  const Reg<U32> at[] = {b.sub(b.max(guess, b.add(lo, 1)), 1), b.min(guess, b.sub(hi, 1))};
  std::vector<Reg<T>> x, y;
  for (Reg<U32> k : at) {
    x.push_back(b.ld_nc<T>(element_at(b, left, k, T::size)));
    y.push_back(b.ld_nc<T>(element_at(b, right, b.sub(last, k), T::size)));
  }
  const Reg<Pred> before[] = {b.setp(Is::le, x[0], y[0]), b.setp(Is::le, x[1], y[1])};
  for (size_t k = 0; k < 2; ++k) b.when(before[k]).add(at[k], 1, lo);
  for (size_t k = 2; k-- > 0;) b.unless(before[k]).mov(at[k], hi);
  Reg<F32> distance = b.mul(signed_difference(b, y[1], x[1]), per_key);
  Reg<S32> further = b.cvt<S32>(ptx::Rounding::rni, distance);
  const auto to = [&](Reg<U32> end) { return Builder::as<S32>(b.sub(end, at[1])); };
  Reg<S32> within = b.max(b.min(further, to(hi)), to(lo));
  b.add(at[1], Builder::as<U32>(within), guess);
  b.add(step, 1, step);
  b.bra(again);
  b.bind(over);
}

// Of all lanes: the split of one diagonal between lo and hi, `guess` or near it. They look at the elements next to the guess, then at some that lie further
// apart, then at 32 of those that are left.
template <class T>
Reg<U32> search_together(Builder& b, const Thread& t, Reg<U64> left, Reg<U64> right, Reg<U32> diagonal, Reg<U32> lo,
                         Reg<U32> hi, Reg<U32> guess) {
  constexpr uint32_t far = 2048;
  const LabelId again = b.label(), found = b.label();
  Reg<U32> last = b.sub(diagonal, 1);
  Reg<U32> step = b.constant<U32>(1), middle = b.min(b.max(guess, lo), hi);
  Reg<U32> base = b.max(b.sub(middle, b.min(middle, 16)), lo), next_base = b.sub(middle, b.min(middle, 16 * far));
  Reg<U32> next_step = b.constant<U32>(far);
  b.bind(again);
  b.when(b.setp(Is::ge, lo, hi)).bra_uni(found);
  Reg<U32> at = b.mad_lo(t.lane, step, base);
  Reg<Pred> exists = b.setp(Is::lt, at, hi);
  Reg<T> x = b.template constant<T>(1), y = b.template constant<T>(0);
  const At left_at = element_at(b, left, at, T::size), right_at = element_at(b, right, b.sub(last, at), T::size);
  load_if<T>(b, exists, Space::global, left_at, x, {.cache = ptx::Cache::nc});
  load_if<T>(b, exists, Space::global, right_at, y, {.cache = ptx::Cache::nc});
  Reg<U32> before = b.popc(b.ballot(b.setp(Is::le, x, y)));  // of the elements looked at, the first ones
  Reg<U32> end = b.mad_lo(before, step, base), last_before = b.sub(end, step);
  b.when(b.setp(Is::ne, before, 0)).add(last_before, 1, lo);
  b.when(b.setp(Is::ne, before, 32)).min(hi, end, hi);
  // The second time far apart; from the third on from lo, a 32nd of what is left at a time.
  Reg<U32> fraction = b.add(b.shr(b.sub(hi, b.min(lo, hi)), 5u), 1);
  b.selp(next_step, fraction, b.setp(Is::ne, next_step, 0), step);
  b.max(next_base, lo, base);
  b.constant<U32>(0, next_step), b.constant<U32>(0, next_base);
  b.bra(again);
  b.bind(found);
  return lo;
}

template <class T>
uint32_t build_splits(ptx::Module& module, std::string_view name) {
  KernelBuilder b(module, name);
  b.set_block_size(split_threads);
  const Parameter n_at = b.parameter<U64>("n"), left_at = b.parameter<U64>("left"), m_at = b.parameter<U64>("m");
  const Parameter right_at = b.parameter<U64>("right"), splits_at = b.parameter<U64>("splits");
  const Parameter ticket_at = b.parameter<U64>("ticket"), look_at = b.parameter<U64>("words");
  const Parameter tiles_at = b.parameter<U64>("tiles"), share_at = b.parameter<U64>("share");
  const Parameter tile_at = b.parameter<U64>("elements");
  const Thread t = thread_of(b);
  Reg<U32> n = b.cvt<U32>(b.ld_param(n_at)), m = b.cvt<U32>(b.ld_param(m_at)), total = b.add(n, m);
  Reg<U32> tiles = b.cvt<U32>(b.ld_param(tiles_at));
  Reg<U64> left = b.ld_param(left_at), right = b.ld_param(right_at), words = b.ld_param(look_at);
  Reg<U32> elements = b.cvt<U32>(b.ld_param(tile_at)), share = b.cvt<U32>(b.ld_param(share_at));
  const LabelId done = b.label();
  Reg<U32> tile = b.mad_lo(b.special(ptx::SpecialRegister::ctaid_x), split_threads, t.tid);
  const auto diagonal_of = [&](Reg<U32> k) { return b.selp(b.mul_lo(k, elements), total, b.setp(Is::lt, k, tiles)); };
  const auto lowest = [&](Reg<U32> diagonal) { return b.sub(diagonal, b.min(diagonal, m)); };
  // `share`: the part of the left column in both, in units of 2^-32.
  Reg<U32> middle = diagonal_of(b.add(b.sub(tile, t.lane), 16));
  Reg<U32> even = b.mul_hi(middle, share);
  const auto key_at = [&](Reg<U64> column, Reg<U32> k, Reg<U32> size) {
    Reg<T> key = b.template constant<T>(0);
    const At at = element_at(b, column, b.min(k, b.sub(b.max(size, 1), 1)), T::size);
    load_if<T>(b, b.setp(Is::ne, size, 0), Space::global, at, key, {.cache = ptx::Cache::nc});
    return key;
  };
  // By how much a key of the column exceeds the one before it, about.
  const auto rise_of = [&](Reg<U64> column, Reg<U32> size) {
    Reg<T> rise = b.sub(key_at(column, b.sub(size, 1), size), key_at(column, b.constant<U32>(0), size));
    using Unsigned = std::conditional_t<T::size == 8, U64, U32>;  // keys ascend
    return b.mul(b.cvt<F32>(Builder::as<Unsigned>(rise)), b.rcp_rn(b.cvt<F32>(size)));
  };
  Reg<U32> found = lowest(middle), most = b.min(middle, n), near = b.min(b.max(even, found), most);
  interpolate<T>(b, left, right, middle, found, most, near, b.rcp_rn(b.add(rise_of(left, n), rise_of(right, m))), 4);
  found = search_together<T>(b, t, left, right, middle, found, most, near);
  b.when(b.setp(Is::gt, tile, tiles)).bra(done);
  Reg<Pred> is_tile = b.setp(Is::lt, tile, tiles);
  const At word = element_at(b, words, tile, 8), ticket(b.ld_param(ticket_at));
  store_if<U64>(b, is_tile, Space::global, word, 0);
  store_if<U64>(b, b.setp(Is::eq, tile, 0), Space::global, ticket, 0);
  Reg<U32> diagonal = diagonal_of(tile), lo = lowest(diagonal), hi = b.min(diagonal, n);
  Reg<U32> behind = b.add(found, b.mul_hi(b.sub(diagonal, middle), share));
  Reg<U32> in_front = b.sub(found, b.min(found, b.mul_hi(b.sub(middle, diagonal), share)));
  Reg<U32> guess = b.selp(behind, in_front, b.setp(Is::ge, diagonal, middle));
  b.min(b.max(guess, lo), hi, guess);
  // From the middle to here the keys rise by `rise` in so many elements of left, and so many others of right.
  Reg<F32> here = signed_difference(b, guess, found), all = signed_difference(b, diagonal, middle);
  Reg<F32> rise = signed_difference(b, key_at(left, guess, n), key_at(left, found, n));
  Reg<F32> per_key = b.mul(b.mul(here, b.sub(all, here)), b.rcp_rn(b.mul(all, rise)));
  interpolate<T>(b, left, right, diagonal, lo, hi, guess, per_key, 4);
  search_diagonal<T>(b, left, right, diagonal, lo, hi, guess, b.constant<U32>(8));
  b.st<U32>(Space::global, element_at(b, b.ld_param(splits_at), tile, 4), lo);
  b.bind(done);
  b.ret();
  b.finish();
  return split_threads;
}

}  // namespace

bool is_mergeable(const Vector& column) {
  const Type type = column.type;
  return column.ascending && column.ranks == 0 && column.size_slot == 0 && column.capacity < uint64_t{1} << 31 &&
         (type == Type::i32 || type == Type::u32 || type == Type::i64);
}

Result<MergePlan> find_splits(Library& library, const Vector& left, const Vector& right, uint32_t tile,
                              Memory& memory) {
  const uint64_t tiles = tiles_for(left.capacity + right.capacity, tile);
  MergePlan plan;
  plan.tiles = tiles;
  ASSIGN_OR_RETURN(plan.splits, memory.temporary((tiles + 1) * 4));
  ASSIGN_OR_RETURN(plan.ticket, memory.temporary(words_at + tiles * 8));
  plan.words = plan.ticket + words_at;
  ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel(std::string("merge_splits_") + type_name(left.type),
                                                        [&](ptx::Module& to, std::string_view called) {
                                                          return with_merge_type(left.type, [&]<class T>() {
                                                            return build_splits<T>(to, called);
                                                          });
                                                        }));
  Arguments a;
  add(a, left, right, plan);
  const uint64_t share = (left.capacity << 32) / (left.capacity + right.capacity);
  a.add(tiles).add(std::min<uint64_t>(share, UINT32_MAX)).add(tile);
  RETURN_IF_ERROR(library.launch(*kernel, static_cast<uint32_t>(tiles_for(tiles + 1, split_threads)), a, tiles * 12));
  return plan;
}

Result<void> clear_merge(Library& library, const MergePlan& plan) {
  return library.device().fill(plan.ticket, 0, words_at + plan.tiles * 8);
}

void add(Arguments& a, const Vector& left, const Vector& right, const MergePlan& plan) {
  a.add(left.capacity).add(left.data).add(right.capacity).add(right.data);
  a.add(plan.splits).add(plan.ticket).add(plan.words);
}

}  // namespace rndn::operators
