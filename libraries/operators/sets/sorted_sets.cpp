// Set operations on two ascending columns, without a table: one merge (merge.h).
//
// An element of the merged sequence is kept when it differs from the one before it, and
//   union         always
//   intersection  when it is the left column's and equal to the right column's next
//   difference    when it is the left column's and not equal to that
// The left column's elements come first among equal ones, so that those of the right one that are equal are still to come. Kept elements go to their
// places in shared memory, and from there out as one piece, at positions from a look-back over the tiles. Results ascend.
// Bytes: either column once, the result once. For set operations by merge path see Baxter, "Modern GPU" (2013).
// Leaves out: more than one column; those go through a table (relations.cpp).
#include "libraries/operators/joins/merge.h"
#include "libraries/operators/operators.h"

namespace rndn::operators {

namespace {

constexpr uint32_t set_warps = block_threads / 32;
constexpr int64_t set_sums_at = 32, set_slots_at = 64;  // in shared memory, behind the header of a merge
constexpr uint32_t set_items = 19;

const char* operation_name(SetOperation operation) {
  static constexpr const char* names[] = {"union", "intersection", "difference"};
  return names[static_cast<size_t>(operation)];
}

template <class T>
uint32_t build_set_set(ptx::Module& module, std::string_view name, SetOperation operation, bool counts) {
  KernelBuilder b(module, name);
  b.set_block_size(block_threads);
  MergeCode<T, set_items> merge;
  merge.declare(b);
  const Parameter total_at = b.parameter<U64>("total"), out_at = b.parameter<U64>("out");
  const ptx::SharedVariable shared =
      b.shared<U64>(std::string(name) + "_shared", (set_slots_at + MergeCode<T, set_items>::shared_bytes + 7) / 8, 16);
  const Thread t = thread_of(b);
  merge.start(b, shared, set_slots_at);
  const auto merge_tile_of = [&] {
    std::vector<Reg<T>> keys;
    Reg<U32> kept = b.constant<U32>(0);
    for (uint32_t k = 0; k < set_items; ++k) {
      Reg<Pred> from_left = merge.takes_left(b);
      keys.push_back(b.selp(merge.left_value, merge.right_value, from_left));
      Reg<Pred> keeps;
      if (operation != SetOperation::unite)
        keeps = b.setp(operation == SetOperation::intersect ? Is::eq : Is::ne, ptx::Combine::and_, merge.left_value,
                       merge.right_value, from_left);
      if (k == 0) {
        Reg<Pred> differs = b.setp(Is::ne, ptx::Combine::or_, keys[0], merge.previous, merge.is_first);
        keeps = keeps.valid() ? b.and_(keeps, differs) : differs;
      } else {
        keeps = keeps.valid() ? b.setp(Is::ne, ptx::Combine::and_, keys[k], keys[k - 1], keeps)
                              : b.setp(Is::ne, keys[k], keys[k - 1]);
      }
      b.when(keeps).or_(kept, 1u << k, kept);
      if (k + 1 < set_items) merge.advance(b, from_left);
    }
    b.and_(kept, b.sub(b.shl(b.constant<U32>(1), merge.own), 1), kept);
    Reg<U32> number = b.popc(kept), inclusive = warp_sum(b, t, number);
    merge.pass_ticket(b, t, shared);
    const BlockSum sum = block_sum(b, t, inclusive, set_warps, shared, set_sums_at);  // and everything has been read
    merge.announce(b, t, b.cvt<U64>(sum.total));
    Reg<U32> to = b.mad_lo(b.add(sum.before, b.sub(inclusive, number)), T::size, merge.slots);
    for (uint32_t k = 0; k < set_items; ++k) {
      Reg<Pred> keeps = b.setp(Is::ne, b.and_(kept, 1u << k), 0);
      store_if<T>(b, keeps, Space::shared, At(to), keys[k]);
      b.when(keeps).add(to, T::size, to);
    }
  };
  // Element i of the tile's result by thread i modulo their number.
  const auto write_tile = [&](Reg<U64> before, Reg<U32> results) {
    if (counts) return;
    Reg<U64> place = b.add(before, b.cvt<U64>(t.tid));
    Reg<U64> out = b.mad_lo(place, b.constant<U64>(T::size), b.ld_param(out_at));
    merge.template for_results<T>(
        b, t, results,
        [&](uint32_t u, Reg<Pred> exists, Reg<T> element) {
          store_if<T>(b, exists, Space::global, At(out, int64_t{u} * block_threads * T::size), element);
        },
        [&](uint64_t n) { b.add(out, n * T::size, out); });
  };
  merge.for_all_tiles(b, t, shared, total_at, merge_tile_of, write_tile);
  b.ret();
  b.finish();
  module.functions.back().max_registers = merge_registers;
  return block_threads;
}

}  // namespace

bool is_sorted_set(const Relation& relation) { return relation.size() == 1 && is_mergeable(relation[0]); }

Result<Relation> sorted_set(Library& library, SetOperation operation, const Relation& left, const Relation& right,
                            Memory& memory) {
  const Vector &l = left[0], &r = right[0];
  const bool both = operation == SetOperation::unite;
  Vector out{.type = l.type, .capacity = both ? l.capacity + r.capacity : l.capacity, .ascending = true};
  RETURN_IF_ERROR(check_rows({&out, 1}));
  out.min = l.min, out.max = l.max;
  if (both) {
    out.min = std::min(l.min, r.min), out.max = std::max(l.max, r.max);
    if (!l.known() || !r.known()) out.min = 1, out.max = 0;
  }
  const bool nothing = out.capacity == 0 || (operation == SetOperation::intersect && r.capacity == 0);
  if (nothing) out.capacity = 0;
  if (nothing) {
    ASSIGN_OR_RETURN(out.data, memory.result(0));
    return Relation{out};
  }
  // The difference with nothing is the union with nothing: there is no element of the right column that could be compared.
  if (r.capacity == 0) operation = SetOperation::unite;
  ASSIGN_OR_RETURN(const device::Mapped total, memory.mapped(8));
  ASSIGN_OR_RETURN(const MergePlan plan, find_splits(library, l, r, MergeTile<set_items>::tile, memory));
  for (const bool counts : {true, false}) {  // counts: nothing but how many elements there are
    if (counts && !memory.counts_first(out.capacity * width(l.type))) continue;
    if (!counts) {
      ASSIGN_OR_RETURN(out.data, memory.result(out.capacity * width(l.type)));
    }
    const std::string name =
        std::string(counts ? "sorted_count_" : "sorted_") + operation_name(operation) + "_" + type_name(l.type);
    ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel(name, [&](ptx::Module& to, std::string_view called) {
      return with_merge_type(l.type, [&]<class T>() { return build_set_set<T>(to, called, operation, counts); });
    }));
    Arguments a;
    add(a, l, r, plan);
    a.add(total.address).add(out.data);
    RETURN_IF_ERROR(
        library.launch(*kernel, library.grid(*kernel, plan.tiles), a, (l.capacity + r.capacity) * width(l.type)));
    RETURN_IF_ERROR(library.wait(memory));
    out.capacity = *static_cast<const volatile uint64_t*>(total.host);
    if (counts) RETURN_IF_ERROR(clear_merge(library, plan));
  }
  return Relation{out};
}

}  // namespace rndn::operators
