// Merging two ascending columns of integers: what set operations and joins of such columns share. Private to this folder.
//
// The merged sequence (of equal elements, the left column's first) is cut into tiles of as many elements each, and a tile into as many per thread, so that
// no input is out of balance: Green, McColl and Bader, "GPU Merge Path" (ICS 2012). `find_splits` finds by searches in global memory where the tiles
// begin in either column. A block takes a tile's elements to shared memory, and with them the one before and the one behind on either side; its threads
// search there for where they begin, and then merge step by step.
// Cost: per element some 30 instructions, of which the merge itself is half; bytes: either column once.
// Leaves out: integers of 8 and 16 bits, floats, text in an order other than its codes', 2^31 elements and more.
#pragma once
#include <limits>
#include <span>
#include <vector>

#include "libraries/operators/fragments.h"

namespace rndn::operators {

// A kernel's tiles, by how many elements are a thread's: an odd number, so that threads that advance evenly through a column read from different banks.
// The more, the fewer tiles look back, which is a quarter of the time; as many as leave room for four blocks (`merge_registers`).
template <uint32_t elements>
struct MergeTile {
  static constexpr uint32_t items = elements;
  static constexpr uint32_t slots = block_threads * items;  // elements in shared memory
  // Without those before and behind: of pieces of 16 bytes, so that they are up to four elements.
  static constexpr uint32_t tile = slots - 16;
  // A thread with fewer elements than others steps on behind the last one, where something must be.
  static constexpr uint32_t spare = items + 1;
};
inline constexpr uint32_t merge_registers = 64;

// Whether a column can be merged; its size is exact.
bool is_mergeable(const Vector& column);
// Calls f.operator()<T>() with the type of a mergeable column.
template <class F>
decltype(auto) with_merge_type(Type type, F&& f) {
  switch (type) {
    case Type::i32: return f.template operator()<S32>();
    case Type::u32: return f.template operator()<U32>();
    default: return f.template operator()<S64>();
  }
}

// What tells a merging kernel where to work, made for it in device memory.
struct MergePlan {
  Address splits = 0;  // u32 per tile and one more: elements of the left column before the tile
  Address ticket = 0;  // of the tiles; zero
  Address words = 0;   // of the look-back, one per tile; zero
  uint64_t tiles = 0;
};
// `tile`: elements of both columns in one.
Result<MergePlan> find_splits(Library& library, const Vector& left, const Vector& right, uint32_t tile, Memory& memory);
// For another kernel with the same plan: ticket and words as they were.
Result<void> clear_merge(Library& library, const MergePlan& plan);
void add(Arguments& a, const Vector& left, const Vector& right, const MergePlan& plan);

// In a kernel: the parameters, what the whole kernel keeps, a tile, and one thread's way through it.
template <class T, uint32_t elements_of_thread>
struct MergeCode {
  using Shape = MergeTile<elements_of_thread>;
  Parameter n_at, left_at, m_at, right_at, splits_at, ticket_at, words_at;

  // start(): how many tiles there are, and the first slot's shared address.
  Reg<U32> tiles, slots;

  // locate(): number of the tile's first element of left; shared addresses of the tile's first elements and behind the last slot of each column; elements
  // of left, and of both.
  Reg<U32> first_left, tile_left, left_end, tile_right, right_end, left_count, count;

  // for_all_tiles(): the tile that is being merged, or whose results are to be written; how many these are.
  Reg<U32> pending;
  Reg<U64> pending_count;

  // seek(): shared addresses of the thread's next elements, their values, those before them and the last of these in the merged sequence (`is_first`:
  // there is none; has_left: there is one of left), and how many elements are the thread's.
  Reg<U32> l, r, own;
  Reg<T> left_value, right_value, previous_left, previous_right, previous;
  Reg<Pred> is_first, has_left;

  void declare(Builder& b) {
    n_at = b.parameter<U64>("n"), left_at = b.parameter<U64>("left"), m_at = b.parameter<U64>("m");
    right_at = b.parameter<U64>("right"), splits_at = b.parameter<U64>("splits");
    ticket_at = b.parameter<U64>("ticket"), words_at = b.parameter<U64>("words");
  }
  static constexpr uint64_t shared_bytes = (Shape::slots + Shape::spare) * T::size;

  // Parameters are read where they are needed: that costs nothing, and a register would be held while tiles are merged.
  Reg<U32> n(Builder& b) const { return b.cvt<U32>(b.ld_param(n_at)); }
  Reg<U32> m(Builder& b) const { return b.cvt<U32>(b.ld_param(m_at)); }

  void start(Builder& b, ptx::SharedVariable shared, int64_t offset) {
    tiles = tiles_of_merge(b, b.add(n(b), m(b)));
    slots = b.address_of_32(shared, offset);
  }

  // All tiles that the block takes. merge(): counts the results of a tile, with the thread at its first element; calls announce() when it knows their
  // number, after the first barrier, and leaves them in the slots. write(before, count): writes them out; there are `before` of them in earlier tiles.
  // While a tile waits for the counts of all earlier ones, the next one's elements are under way.
  template <class MergeTile, class WriteTile>
  void for_all_tiles(Builder& b, const Thread& t, ptx::SharedVariable shared, Parameter total_at, MergeTile&& merge,
                     WriteTile&& write) {
    constexpr uint32_t none = 0xFFFFFFFF;
    const LabelId next = b.label(), done = b.label(), nothing_yet = b.label();
    number = b.constant<U32>(0), next_first = b.constant<U32>(0), next_end = b.constant<U32>(0);
    pending = b.constant<U32>(none), pending_count = b.constant<U64>(0);
    take_ticket(b, t);
    // What threads with fewer elements than others read behind the last one.
    const At behind(b.mad_lo(t.tid, T::size, slots), int64_t{Shape::tile} * T::size);
    Reg<T> filler = load_filler(b);
    store_if<T>(b, b.setp(Is::lt, t.tid, Shape::slots + Shape::spare - Shape::tile), Space::shared, behind, filler);
    read_splits(b, t);
    pass_ticket(b, t, shared);
    b.bar_sync();
    b.bind(next);
    Reg<U32> tile = b.ld<U32>(Space::shared, At(shared));
    first_left = b.ld<U32>(Space::shared, At(shared, 4)), next_left = b.ld<U32>(Space::shared, At(shared, 16));
    locate(b, b.min(tile, b.sub(tiles, 1)));
    fetch(b, t);
    b.when(b.setp(Is::eq, pending, none)).bra_uni(nothing_yet);
    Reg<U64> before = sum_before(b, t, pending, pending_count, b.ld_param(words_at), At(shared, 8));
    Reg<Pred> first_thread = b.setp(Is::eq, t.tid, 0);
    Reg<Pred> last = b.setp(Is::eq, ptx::Combine::and_, b.add(pending, 1), tiles, first_thread);
    Reg<U64> all = b.add(before, pending_count), total_to = b.ld_param(total_at);
    store_if<U64>(b, last, Space::global, At(total_to), all);
    write(before, b.cvt<U32>(pending_count));
    b.bind(nothing_yet);
    b.when(b.setp(Is::ge, tile, tiles)).bra_uni(done);
    b.mov(tile, pending);
    b.bar_sync();
    locate(b, tile);
    place(b, t);
    take_ticket(b, t);
    b.bar_sync();
    seek(b, t);
    read_splits(b, t);
    merge();
    b.bra(next);
    b.bind(done);
  }
  // Before merge()'s first barrier, so that it reaches all threads. The first `header` bytes of `shared` but those from 8 to 15, the look-back's.
  static constexpr int64_t header = 32;
  void pass_ticket(Builder& b, const Thread& t, ptx::SharedVariable shared) {
    Reg<Pred> first_thread = b.setp(Is::eq, t.tid, 0);
    store_if<U32>(b, first_thread, Space::shared, At(shared), number);
    store_if<U32>(b, first_thread, Space::shared, At(shared, 4), next_first);
    store_if<U32>(b, first_thread, Space::shared, At(shared, 16), next_end);
  }
  void announce(Builder& b, const Thread& t, Reg<U64> results) {
    b.mov(results, pending_count);
    publish_count(b, t, pending, pending_count, b.ld_param(words_at));
  }

  // In write(): thread i copies results i, i + block_threads, .. from the slots, two at a time. store(u, exists, result): the u-th of them goes out;
  // advance(n): what store() writes to lies n results further on.
  template <class Result, class Store, class Advance>
  void for_results(Builder& b, const Thread& t, Reg<U32> results, Store&& store, Advance&& advance) const {
    constexpr uint32_t unroll = 2;
    Reg<U32> from = b.mad_lo(t.tid, Result::size, slots);
    Reg<S32> left_over = Builder::as<S32>(b.sub(results, t.tid));
    const LabelId copy = b.label(), copied = b.label();
    b.bind(copy);
    b.when(b.setp(Is::le, left_over, 0)).bra(copied);
    std::vector<Reg<Pred>> exists;
    std::vector<Reg<Result>> loaded;
    for (uint32_t u = 0; u < unroll; ++u) {
      exists.push_back(b.setp(Is::gt, left_over, static_cast<int32_t>(u * block_threads)));
      loaded.push_back(b.template constant<Result>(0));
      load_if<Result>(b, exists[u], Space::shared, At(from, int64_t{u} * block_threads * Result::size), loaded[u]);
    }
    for (uint32_t u = 0; u < unroll; ++u) store(u, exists[u], loaded[u]);
    b.add(from, unroll * block_threads * Result::size, from);
    advance(uint64_t{unroll} * block_threads);
    b.sub(left_over, static_cast<int32_t>(unroll * block_threads), left_over);
    b.bra(copy);
    b.bind(copied);
  }

  // Where the thread's elements begin: as many of left as are not greater than the element of right that they end before.
  void seek(Builder& b, const Thread& t) {
    Reg<U32> diagonal = b.min(b.mul_lo(t.tid, Shape::items), count);
    own = b.min(b.sub(count, diagonal), Shape::items);
    Reg<U32> least = b.sub(diagonal, b.min(diagonal, b.sub(count, left_count)));
    // Bytes of left that are undecided; l rises and r falls as they are found to come before.
    Reg<U32> open = b.mul_lo(b.sub(b.min(diagonal, left_count), least), T::size);
    l = b.mad_lo(least, T::size, tile_left), r = b.mad_lo(b.sub(diagonal, least), T::size, tile_right);
    Reg<T> x = b.template constant<T>(0), y = b.template constant<T>(0);
    static_assert(Shape::tile / 2 < 1 << 12);  // neither column has more that is undecided
    for (int64_t half = 1 << 11; half > 0; half /= 2) {
      const int64_t bytes = half * T::size;
      Reg<Pred> within = b.setp(Is::ge, open, static_cast<uint32_t>(bytes));
      load_if<T>(b, within, Space::shared, At(l, bytes - T::size), x);
      load_if<T>(b, within, Space::shared, At(r, -bytes), y);
      Reg<Pred> before = b.setp(Is::le, ptx::Combine::and_, x, y, within);
      b.when(before).add(l, static_cast<uint32_t>(bytes), l);
      b.when(before).sub(r, static_cast<uint32_t>(bytes), r);
      b.when(before).sub(open, static_cast<uint32_t>(bytes), open);
    }
    left_value = b.ld<T>(Space::shared, At(l));
    right_value = b.ld<T>(Space::shared, At(r));
    has_left = b.setp(Is::gt, l, slots);
    Reg<Pred> has_right = b.setp(Is::gt, r, left_end);
    const auto least_value = std::numeric_limits<typename T::native>::min();
    previous_left = b.template constant<T>(least_value);
    previous_right = b.template constant<T>(least_value);
    load_if<T>(b, has_left, Space::shared, At(l, -int64_t{T::size}), previous_left);
    load_if<T>(b, has_right, Space::shared, At(r, -int64_t{T::size}), previous_right);
    previous = b.max(previous_left, previous_right);
    is_first = b.not_(b.or_(has_left, has_right));
  }

  // Whether the element before is in a run of equal ones that the left column has some of.
  Reg<Pred> follows_left(Builder& b) {
    return b.setp(Is::ge, ptx::Combine::and_, previous_left, previous_right, has_left);
  }
  // How many elements a shared address is behind another.
  Reg<U32> element_of(Builder& b, Reg<U32> at, Reg<U32> first) const {
    return b.shr(b.sub(at, first), T::size == 8 ? 3 : 2);
  }
  // Whether the next element of the merged sequence is the left column's.
  Reg<Pred> takes_left(Builder& b) {
    Reg<Pred> right_is_over = b.setp(Is::ge, r, right_end);
    Reg<Pred> not_behind = b.setp(Is::le, ptx::Combine::or_, left_value, right_value, right_is_over);
    return b.setp(Is::lt, ptx::Combine::and_, l, left_end, not_behind);
  }
  // One element on.
  void advance(Builder& b, Reg<Pred> takes_left) {
    b.when(takes_left).add(l, T::size, l);
    b.unless(takes_left).add(r, T::size, r);
    load_if<T>(b, takes_left, Space::shared, At(l), left_value);
    load_if<T>(b, !takes_left, Space::shared, At(r), right_value);
  }

 private:
  // What is in slots that have no element: the last one of the right column, so that what a thread sees behind that column's end is equal to no element
  // of the left one that is still to come.
  Reg<T> load_filler(Builder& b) {
    Reg<T> filler = b.template constant<T>(0);
    const At last = element_at(b, b.ld_param(right_at), b.sub(m(b), 1), T::size);
    load_if<T>(b, b.setp(Is::ne, m(b), 0), Space::global, last, filler, {.cache = ptx::Cache::nc});
    return filler;
  }

  static constexpr uint32_t piece = 16 / T::size;  // elements

  static constexpr uint32_t rounds = (Shape::items + piece - 1) / piece, last_round = (rounds - 1) * block_threads;

  Reg<U32> number, next_first, next_end;  // of the first thread: the next tile and its splits
  Reg<U64> left_base, right_base;         // of the tile: addresses and numbers of the elements that are loaded
  Reg<U32> next_left, left_size, right_size, left_pieces, last_piece;
  Reg<Pred> whole;  // all of its pieces of 16 bytes are there
  std::vector<Reg<T>> elements;

  // The first thread's work, early enough that others do not wait for it.
  void take_ticket(Builder& b, const Thread& t) {
    Reg<U64> ticket = b.ld_param(ticket_at);
    Reg<Pred> first_thread = b.setp(Is::eq, t.tid, 0);
    b.constant<U32>(0, number);  // so that it needs no register until here
    b.when(first_thread).atom<U32>(ptx::AtomicOp::add, Space::global, At(ticket), 1, {}, number);
  }
  void read_splits(Builder& b, const Thread& t) {
    const At split = element_at(b, b.ld_param(splits_at), b.min(number, b.sub(tiles, 1)), 4);
    Reg<Pred> first_thread = b.setp(Is::eq, t.tid, 0);
    b.constant<U32>(0, next_first), b.constant<U32>(0, next_end);
    load_if<U32>(b, first_thread, Space::global, split, next_first);
    load_if<U32>(b, first_thread, Space::global, split.plus(4), next_end);
  }
  // What follows from the splits. Worked out before the tile is fetched and again before it is merged: registers are rarer than instructions.
  void locate(Builder& b, Reg<U32> tile) {
    Reg<U32> first = b.mul_lo(tile, Shape::tile);
    count = b.min(b.sub(b.add(n(b), m(b)), first), Shape::tile);
    left_count = b.sub(next_left, first_left);
    Reg<U32> first_right = b.sub(first, first_left);
    Reg<U32> next_right = b.add(first_right, b.sub(count, left_count));
    // From the piece of 16 bytes that has the element before to the one that has the one behind; of these only elements that there are.
    const auto down = [&](Reg<U32> x) { return b.and_(x, ~(piece - 1)); };
    const auto before = [&](Reg<U32> x) { return b.sub(x, b.min(x, 1)); };
    Reg<U32> left_begin = down(before(first_left)), right_begin = down(before(first_right));
    Reg<U32> left_stop = down(b.add(next_left, piece)), right_stop = down(b.add(next_right, piece));
    left_size = b.sub(b.min(left_stop, n(b)), left_begin), right_size = b.sub(b.min(right_stop, m(b)), right_begin);
    left_end = b.mad_lo(left_size, T::size, slots), right_end = b.mad_lo(right_size, T::size, left_end);
    tile_left = b.mad_lo(b.sub(first_left, left_begin), T::size, slots);
    tile_right = b.mad_lo(b.sub(first_right, right_begin), T::size, left_end);
    left_base = element_address(b, b.ld_param(left_at), left_begin, T::size);
    right_base = element_address(b, b.ld_param(right_at), right_begin, T::size);
    constexpr uint32_t shift = piece == 2 ? 1 : 2;
    left_pieces = b.shr(left_size, shift);
    last_piece = b.sub(b.add(left_pieces, b.shr(right_size, shift)), 1);
    whole = b.setp(Is::le, left_stop, n(b));
    b.setp(Is::le, ptx::Combine::and_, right_stop, m(b), whole, whole);
    Reg<U32> addresses = b.or_(b.cvt<U32>(b.ld_param(left_at)), b.cvt<U32>(b.ld_param(right_at)));
    b.setp(Is::eq, ptx::Combine::and_, b.and_(addresses, 15), 0, whole, whole);
  }

  // Slot s has element s of left, or element s - left_size of right. Every address but the last round's is one of the thread plus a constant.
  void fetch(Builder& b, const Thread& t) {
    const LabelId one_by_one = b.label(), fetched = b.label();
    if (elements.empty())
      for (uint32_t k = 0; k < rounds * piece; ++k) elements.push_back(b.reg<T>());
    b.unless(whole).bra_uni(one_by_one);
    Reg<U64> right_from = b.sub(right_base, b.mul_wide(left_pieces, 16));
    Reg<U64> from_left = element_address(b, left_base, t.tid, 16),
             from_right = element_address(b, right_from, t.tid, 16);
    Reg<S32> to_right = Builder::as<S32>(b.sub(left_pieces, t.tid));
    for (uint32_t k = 0; k < rounds; ++k) {
      At from(from_left);
      if (k + 1 < rounds) {
        Reg<Pred> in_left = b.setp(Is::gt, to_right, static_cast<int32_t>(k * block_threads));
        from = At(b.selp(from_left, from_right, in_left), int64_t{k} * block_threads * 16);
      } else {  // not all threads have one: some read the last again
        Reg<U32> at = b.min(b.add(t.tid, last_round), last_piece);
        from = element_at(b, b.selp(left_base, right_from, b.setp(Is::lt, at, left_pieces)), at, 16);
      }
      load_piece(b, from, std::span(elements).subspan(k * piece, piece));
    }
    b.bra(fetched);
    b.bind(one_by_one);
    for (Reg<T> e : elements) b.template constant<T>(0, e);  // so that they need no registers while tiles are merged
    b.bind(fetched);
  }
  // What was fetched, to the slots.
  void place(Builder& b, const Thread& t) {
    const LabelId one_by_one = b.label(), placed = b.label();
    b.unless(whole).bra_uni(one_by_one);
    Reg<U32> to = b.mad_lo(t.tid, 16, slots);
    for (uint32_t k = 0; k < rounds; ++k) {
      At at(to, int64_t{k} * block_threads * 16);
      if (k + 1 == rounds) at = At(b.mad_lo(b.min(b.add(t.tid, last_round), last_piece), 16, slots));
      store_piece(b, at, std::span(elements).subspan(k * piece, piece));
    }
    b.bra(placed);
    b.bind(one_by_one);
    load_elements(b, t);
    b.bind(placed);
  }
  static void load_piece(Builder& b, At from, std::span<const Reg<T>> e) {
    const ptx::Modifiers how{.space = Space::global, .cache = ptx::Cache::nc, .vector = piece};
    const auto at = from.operand;
    if constexpr (piece == 2)
      b.emit(ptx::Opcode::ld, T::type, how, {b.vector({b.use(e[0]), b.use(e[1])})}, {at});
    else
      b.emit(ptx::Opcode::ld, T::type, how, {b.vector({b.use(e[0]), b.use(e[1]), b.use(e[2]), b.use(e[3])})}, {at});
  }
  static void store_piece(Builder& b, At to, std::span<const Reg<T>> e) {
    if constexpr (piece == 2)
      b.st_v2<T>(Space::shared, to, e[0], e[1]);
    else
      b.st_v4<T>(Space::shared, to, e[0], e[1], e[2], e[3]);
  }
  // For tiles at the end of a column, and columns that do not lie at multiples of 16 bytes.
  void load_elements(Builder& b, const Thread& t) {
    const LabelId again = b.label(), over = b.label();
    Reg<T> filler = load_filler(b);
    Reg<U32> slot = b.mov(t.tid), total = b.add(left_size, right_size), to = b.mad_lo(t.tid, T::size, slots);
    b.bind(again);
    b.when(b.setp(Is::ge, slot, Shape::slots)).bra(over);
    Reg<Pred> in_left = b.setp(Is::lt, slot, left_size);
    Reg<Pred> in_right = b.setp(Is::lt, ptx::Combine::and_, slot, total, !in_left);
    Reg<T> element = b.mov(filler);
    const At from_left = element_at(b, left_base, slot, T::size);
    const At from_right = element_at(b, right_base, b.sub(slot, left_size), T::size);
    load_if<T>(b, in_left, Space::global, from_left, element, {.cache = ptx::Cache::nc});
    load_if<T>(b, in_right, Space::global, from_right, element, {.cache = ptx::Cache::nc});
    b.st<T>(Space::shared, At(to), element);
    b.add(slot, block_threads, slot);
    b.add(to, block_threads * T::size, to);
    b.bra(again);
    b.bind(over);
  }

  static Reg<U32> tiles_of_merge(Builder& b, Reg<U32> elements) {
    Reg<U32> whole = b.div(elements, Shape::tile);
    Reg<Pred> more = b.setp(Is::ne, b.mul_lo(whole, Shape::tile), elements);
    return b.add(whole, b.select<U32>(1, 0, more));
  }
};

}  // namespace rndn::operators
