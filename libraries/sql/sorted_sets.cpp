// Set operations on two ascending columns, without a table.
//
// A tile of 4096 elements of the left column meets the stretch of the right one that lies between its bounds (a first kernel finds the bounds of all
// tiles by binary search). The stretch goes to shared memory when it fits. A warp looks for its elements 32 at a time: its lanes first find where each such
// step begins, then search between there and where the next begins, in a few probes when the columns are about equally dense; the probes of eight steps
// are under way at once. A longer stretch is searched where it lies, so that skewed arguments cost O(shorter * log longer). Elements that are kept go out in order at positions from a look-back over the tiles.
//   intersection  the first of every run of equal elements, when it is in the other column
//   difference    the first of every run, when it is not
//   union         the distinct elements of the left column, then the difference of the right one and it
// Bytes: either column once, the left one of a union twice, the result once. For the balanced division of work that this approximates see Green, McColl
// and Bader, "GPU Merge Path" (ICS 2012).
// Leaves out: more than one column, integers of 8 and 16 bits, text and floats, 2^31 elements and more; those go through a table (relations.cpp).
#include "libraries/sql/fragments.h"
#include "libraries/sql/operators.h"

namespace rndn::sql {

namespace {

// Tiles are large because the look-back takes some 16 ns per tile on an H200, however large it is.
constexpr uint32_t items = 16, tile_rows = block_threads * items, warps = block_threads / 32;
constexpr uint32_t window = 5632;  // elements of the right column in shared memory: 44 KiB of 48 at 8 bytes
constexpr uint32_t at_once = 8;    // steps of 32 elements that a warp searches for side by side
constexpr int64_t sums_at = 16, window_at = 64;  // in shared memory
constexpr uint64_t zero_at = 8, words_at = 256;  // in zeroed memory, behind the ticket
enum class Keep : uint8_t { distinct, present, absent };
constexpr const char* keep_names[] = {"distinct", "present", "absent"};

template <class F>
decltype(auto) with_set_type(Type type, F&& f) {
  switch (type) {
    case Type::i32: return f.template operator()<S32>();
    case Type::u32: return f.template operator()<U32>();
    default: return f.template operator()<S64>();
  }
}

// Narrows [lo, hi) down to the first element that is not less than the value: lo. load(at): an element.
template <class T, class Load>
void lower_bound(Builder& b, Reg<U32> lo, Reg<U32> hi, Reg<T> value, Load&& load) {
  const LabelId again = b.label(), found = b.label();
  b.bind(again);
  b.when(b.setp(Is::ge, lo, hi)).bra(found);
  Reg<U32> middle = b.add(lo, b.shr(b.sub(hi, lo), 1)), behind = b.add(middle, 1);
  Reg<Pred> less = b.setp(Is::lt, load(middle), value);
  b.when(less).mov(behind, lo);
  b.unless(less).mov(middle, hi);
  b.bra(again);
  b.bind(found);
}

// Moves every position to the first element from there on that is not less than its value, or behind `end`, the last element to be looked at. At most
// `longest` elements, at least one, are between a position and its end, which included; the same for all lanes.
template <class T, class Load>
void descend(Builder& b, std::span<const Reg<U32>> positions, std::span<const Reg<U32>> ends,
             std::span<const Reg<T>> values, Reg<U32> longest, Load&& load) {
  Reg<U32> half = b.shl(b.constant<U32>(1), b.sub(b.constant<U32>(31), b.clz(longest)));
  const LabelId again = b.label();
  b.bind(again);
  std::vector<Reg<T>> seen;
  // Where the end is less than the value, it does not matter how far behind it the position comes to lie.
  for (size_t k = 0; k < positions.size(); ++k)
    seen.push_back(load(b.min(b.sub(b.add(positions[k], half), 1), ends[k])));
  for (size_t k = 0; k < positions.size(); ++k)
    b.when(b.setp(Is::lt, seen[k], values[k])).add(positions[k], half, positions[k]);
  b.shr(half, 1, half);
  b.when(b.setp(Is::ne, half, 0)).bra(again);
}

// bounds[t]: elements of `right` that are less than the first of tile t of `left`; bounds[tiles]: all.
template <class T>
uint32_t build_bounds(ptx::Module& module, std::string_view name) {
  Builder b(module, std::string(name));
  b.set_block_size(block_threads);
  const Parameter n_at = b.parameter<U64>("n"), left_at = b.parameter<U64>("left"), m_at = b.parameter<U64>("m");
  const Parameter right_at = b.parameter<U64>("right"), bounds_at = b.parameter<U64>("bounds");
  const Thread t = thread_of(b);
  Reg<U32> n = b.cvt<U32>(b.ld_param(n_at)), m = b.cvt<U32>(b.ld_param(m_at)), tiles = tiles_of(b, n, tile_rows);
  Reg<U64> left = b.ld_param(left_at), right = b.ld_param(right_at), bounds = b.ld_param(bounds_at);
  const LabelId done = b.label(), store = b.label();
  Reg<U32> tile = b.mad_lo(b.special(ptx::SpecialRegister::ctaid_x), block_threads, t.tid);
  b.when(b.setp(Is::gt, tile, tiles)).bra(done);
  Reg<U32> lo = b.mov(m), hi = b.mov(m);
  b.when(b.setp(Is::eq, tile, tiles)).bra(store);
  b.constant<U32>(0, lo);
  auto value = b.ld_nc<T>(element_at(b, left, b.mul_lo(tile, tile_rows), T::size));
  lower_bound(b, lo, hi, value, [&](Reg<U32> at) { return b.ld_nc<T>(element_at(b, right, at, T::size)); });
  b.bind(store);
  b.st<U32>(Space::global, element_at(b, bounds, tile, 4), lo);
  b.bind(done);
  b.ret();
  b.finish();
  return block_threads;
}

template <class T>
uint32_t build_keep(ptx::Module& module, std::string_view name, Keep keep) {
  Builder b(module, std::string(name));
  b.set_block_size(block_threads);
  const Parameter n_at = b.parameter<U64>("n"), left_at = b.parameter<U64>("left"), m_at = b.parameter<U64>("m");
  const Parameter right_at = b.parameter<U64>("right"), bounds_at = b.parameter<U64>("bounds");
  const Parameter ticket_at = b.parameter<U64>("ticket"), look_at = b.parameter<U64>("words");
  const Parameter base_at = b.parameter<U64>("base"), total_at = b.parameter<U64>("total"),
                  out_at = b.parameter<U64>("out");
  const uint32_t shared_bytes = window_at + (keep == Keep::distinct ? 0 : window * T::size);
  const ptx::SharedVariable shared = b.shared<U64>(std::string(name) + "_shared", shared_bytes / 8, 16);
  const Thread t = thread_of(b);
  Reg<U32> n = b.cvt<U32>(b.ld_param(n_at)), m = b.cvt<U32>(b.ld_param(m_at)), tiles = tiles_of(b, n, tile_rows);
  Reg<U32> last = b.sub(n, 1), window_start = b.address_of_32(shared, window_at);
  Reg<U64> left = b.ld_param(left_at), right = b.ld_param(right_at), bounds = b.ld_param(bounds_at);
  Reg<U64> base_from = b.ld_param(base_at), total_to = b.ld_param(total_at);
  Reg<U64> base = b.ld<U64>(Space::global, At(base_from));
  Reg<U32> within = b.mad_lo(t.warp, 32 * items, t.lane);
  const LabelId next = b.label(), done = b.label();
  b.bind(next);
  Reg<U32> tile = take_tile(b, shared, b.ld_param(ticket_at), t);
  b.when(b.setp(Is::ge, tile, tiles)).bra(done);
  Reg<U32> row = b.add(b.mul_lo(tile, tile_rows), within), warp_row = b.sub(row, t.lane);
  std::vector<Reg<T>> values, previous;
  std::vector<Reg<U32>> kept;
  for (uint32_t k = 0; k < items; ++k) {
    Reg<U32> at = b.min(b.add(row, 32 * k), last), before = b.sub(b.max(at, 1), 1);
    values.push_back(b.ld_nc<T>(element_at(b, left, at, T::size)));
    previous.push_back(b.ld_nc<T>(element_at(b, left, before, T::size)));
  }
  for (uint32_t k = 0; k < items; ++k) {
    Reg<U32> at = b.add(row, 32 * k);
    Reg<Pred> differs = b.setp(Is::ne, values[k], previous[k]);
    Reg<Pred> starts = b.or_(differs, b.setp(Is::eq, at, 0));
    kept.push_back(b.ballot(b.setp(Is::lt, ptx::Combine::and_, at, n, starts)));
  }
  if (keep != Keep::distinct) {
    // One more than there is below the next tile: the last of this tile's may be equal to it.
    Reg<U64> bound = element_address(b, bounds, tile, 4);
    Reg<U32> first = b.ld<U32>(Space::global, At(bound));
    Reg<U32> end = b.min(b.add(b.ld<U32>(Space::global, At(bound, 4)), 1), m);
    Reg<U32> size = b.sub(end, first);
    Reg<U64> stretch = element_address(b, right, first, T::size);
    Reg<Pred> fits = b.setp(Is::le, size, window);
    std::vector<Reg<U32>> hits;
    for (uint32_t k = 0; k < items; ++k) hits.push_back(b.constant<U32>(0));
    const auto search = [&](auto&& load) {
      // Every lane finds where the elements of one step begin; a step's elements are between there and where the next begins.
      Reg<U32> start_row = b.min(b.mad_lo(t.lane, 32, warp_row), last);
      std::vector<Reg<T>> start = {b.ld_nc<T>(element_at(b, left, start_row, T::size))};
      std::vector<Reg<U32>> bound = {b.constant<U32>(0)}, ends = {b.sub(size, 1)};
      descend<T>(b, bound, ends, start, size, load);
      Reg<U32> begin = b.min(bound[0], ends[0]), next_begin = b.shfl_sync(ShuffleMode::down, begin, 1u, 31u);
      Reg<U32> longest = b.add(b.sub(next_begin, begin), 1);
      for (uint32_t distance = 16; distance > 0; distance /= 2)
        longest = b.max(longest, b.shfl_sync(ShuffleMode::bfly, longest, distance, 31u));
      for (uint32_t first_step = 0; first_step < items; first_step += at_once) {
        std::vector<Reg<U32>> position, end;
        for (uint32_t k = first_step; k < first_step + at_once; ++k) {
          position.push_back(b.shfl_sync(ShuffleMode::idx, begin, k, 31u));
          end.push_back(b.shfl_sync(ShuffleMode::idx, next_begin, k, 31u));
        }
        const std::span<const Reg<T>> wanted(values.data() + first_step, at_once);
        descend<T>(b, position, end, wanted, longest, load);
        for (uint32_t k = 0; k < at_once; ++k) {
          Reg<Pred> equal = b.setp(Is::eq, load(b.min(position[k], end[k])), wanted[k]);
          b.mov(b.ballot(equal), hits[first_step + k]);
        }
      }
    };
    const LabelId copied = b.label(), searched = b.label(), far = b.label();
    b.unless(fits).bra(copied);
    Reg<U32> i = b.mov(t.tid);
    const LabelId copy = b.label();
    b.bind(copy);
    b.when(b.setp(Is::ge, i, size)).bra(copied);
    auto element = b.ld_nc<T>(element_at(b, stretch, i, T::size));
    b.st<T>(Space::shared, At(b.mad_lo(i, T::size, window_start)), element);
    b.add(i, block_threads, i);
    b.bra(copy);
    b.bind(copied);
    b.bar_sync();
    b.when(b.setp(Is::eq, size, 0)).bra(searched);
    b.unless(fits).bra(far);
    search([&](Reg<U32> at) { return b.ld<T>(Space::shared, At(b.mad_lo(at, T::size, window_start))); });
    b.bra(searched);
    b.bind(far);
    search([&](Reg<U32> at) { return b.ld_nc<T>(element_at(b, stretch, at, T::size)); });
    b.bind(searched);
    for (uint32_t k = 0; k < items; ++k) b.and_(kept[k], keep == Keep::present ? hits[k] : b.not_(hits[k]), kept[k]);
  }
  const BlockSum sum = count_kept(b, t, kept, warps, shared, sums_at);
  Reg<U64> before = look_back(b, t, tile, tiles, sum.total, b.ld_param(look_at), total_to, At(shared, 8));
  Reg<U64> place = b.add(b.add(base, before), b.cvt<U64>(sum.before));
  Reg<U64> out = b.mad_lo(place, b.constant<U64>(T::size), b.ld_param(out_at));
  for_kept(b, t, kept, b.constant<U32>(0), [&](size_t k, Reg<U32> position, Reg<Pred> writes) {
    const At to = element_at(b, out, position, T::size);
    store_if<T>(b, writes, Space::global, to, values[k]);
  });
  b.bra(next);
  b.bind(done);
  b.ret();
  b.finish();
  return block_threads;
}

// Queues: what `keep` says of the left column, to out[*base ..]; *total becomes their number.
Result<void> keep_elements(Library& library, Keep keep, const Vector& left, const Vector* right, Address base,
                           Address total, Address out, Memory& memory) {
  const uint64_t n = left.capacity, m = right ? right->capacity : 0, tiles = tiles_for(n, tile_rows);
  if (n == 0) return {};  // the total is zero already
  const uint64_t zero_bytes = words_at + tiles * 8;
  ASSIGN_OR_RETURN(const Address zeroed, memory.temporary(zero_bytes));
  RETURN_IF_ERROR(library.device().fill(zeroed, 0, zero_bytes));
  Address bounds = 0;
  const std::string suffix = type_name(left.type);
  if (right) {
    ASSIGN_OR_RETURN(bounds, memory.temporary((tiles + 1) * 4));
    ASSIGN_OR_RETURN(const Kernel* kernel,
                     library.kernel("sorted_bounds_" + suffix, [&](ptx::Module& to, std::string_view called) {
                       return with_set_type(left.type, [&]<class T>() { return build_bounds<T>(to, called); });
                     }));
    Arguments a;
    a.add(n).add(left.data).add(m).add(right->data).add(bounds);
    RETURN_IF_ERROR(library.launch(*kernel, static_cast<uint32_t>(tiles_for(tiles + 1, block_threads)), a, tiles * 4));
  }
  const std::string name = std::string("sorted_") + keep_names[static_cast<size_t>(keep)] + "_" + suffix;
  ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel(name, [&](ptx::Module& to, std::string_view called) {
    return with_set_type(left.type, [&]<class T>() { return build_keep<T>(to, called, keep); });
  }));
  Arguments a;
  a.add(n).add(left.data).add(m).add(right ? right->data : 0).add(bounds).add(zeroed).add(zeroed + words_at);
  a.add(base ? base : zeroed + zero_at).add(total).add(out);
  return library.launch(*kernel, library.grid(*kernel, tiles), a, (n + m) * width(left.type));
}

}  // namespace

bool is_sorted_set(const Relation& relation) {
  const Type type = relation[0].type;
  // A search adds up to as much again to a position as there are elements, in 32 bits.
  return relation.size() == 1 && relation[0].ascending && relation[0].ranks == 0 &&
         relation[0].capacity < uint64_t{1} << 31 && (type == Type::i32 || type == Type::u32 || type == Type::i64);
}

Result<Relation> sorted_set(Library& library, SetOperation operation, const Relation& left, const Relation& right,
                            Memory& memory) {
  const Vector &l = left[0], &r = right[0];
  const bool both = operation == SetOperation::unite;
  Vector out{.type = l.type, .capacity = l.capacity + (both ? r.capacity : 0), .ascending = !both};
  RETURN_IF_ERROR(check_rows({&out, 1}));
  out.min = l.min, out.max = l.max;
  if (both) {
    out.min = std::min(l.min, r.min), out.max = std::max(l.max, r.max);
    if (!l.known() || !r.known()) out.min = 1, out.max = 0;
  }
  ASSIGN_OR_RETURN(out.data, memory.result(out.capacity * width(l.type)));
  ASSIGN_OR_RETURN(const device::Mapped totals, memory.mapped(16));
  if (both) {
    RETURN_IF_ERROR(keep_elements(library, Keep::distinct, l, nullptr, 0, totals.address, out.data, memory));
    RETURN_IF_ERROR(keep_elements(library, Keep::absent, r, &l, totals.address, totals.address + 8, out.data, memory));
  } else {
    const Keep keep = operation == SetOperation::intersect ? Keep::present : Keep::absent;
    RETURN_IF_ERROR(keep_elements(library, keep, l, &r, 0, totals.address, out.data, memory));
  }
  RETURN_IF_ERROR(library.device().synchronize());
  const auto* counted = static_cast<const volatile uint64_t*>(totals.host);
  out.capacity = counted[0] + counted[1];
  return Relation{out};
}

}  // namespace rndn::sql
