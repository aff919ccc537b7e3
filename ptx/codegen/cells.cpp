// Reductions of the cells of a list: sum, avg, min, max, any, all, len, over the elements of a list parameter and what element-wise
// functions and gathers make of them.
//
// Work is shared by merge path (Merrill and Garland, "Merge-based Parallel Sparse Matrix-Vector Multiplication", SC 2016): elements and
// cell ends form one sequence, in which the end of cell i stands at P(i) = offsets[i + 1] + i. Every block takes an equal, contiguous range of it
// and walks it in tiles of block_size * 8, so that neither a giant cell nor millions of empty ones unbalance anything.
// Two kinds of tile:
//   without a cell end   threads accumulate in registers, across tiles; this is all that a giant cell costs
//   with cell ends       the ends are marked in shared memory (P strictly rises: each end has a byte of its own); argument by argument, the
//                        elements' values are staged in shared memory, every thread consumes the elements and ends of its 8 places in order,
//                        and a segmented scan (threads -> warp -> block) brings each thread the part of its first cell that lies before it
// A block keeps the part of its open cell from tile to tile. What began before the block and what is open at its end goes to scratch memory; the last
// block combines these in order.
// All reductions of one argument make a bundle, whose values are staged and consumed once. Bundles that differ only in their argument and in where
// their results go make a family, whose code exists once: a loop over its members, with a branch where their values are evaluated.
// Scratch per block: first cell that ended in it, plus one (0: none); per accumulator the part of that cell (head) and of the open one (tail).
// Places of the sequence are numbered in 32 bits: elements and cells together are at most data::longest_vector.
// Cost: one read of the inputs and the offsets. Bytes in shared memory: 12 KB to 21 KB, and 9 KB where elements are selected.
// Leaves out: combining the lists' element-wise results with this walk: those are stored by a loop of their own.
#include <algorithm>
#include <bit>

#include "ptx/codegen/cells.h"
#include "ptx/codegen/accumulate.h"

namespace rndn::codegen {

using hir::VariableId;
using ptx::Access;
using ptx::Compare;
using ptx::LabelId;
using ptx::Semantics;
using ptx::SharedVariable;
using ptx::ShuffleMode;

namespace {

constexpr uint32_t items = 8;  // places of the sequence per thread and tile
constexpr uint32_t threads = 256, warps = threads / 32;
constexpr uint32_t places = threads * items;
constexpr uint32_t padded = threads + threads / 8;  // staged values of an item: one slot in nine stays free

Element identity(const Accumulator& a) { return constant_element(partial_type(a), identity_bits(a.kind, a.type)); }

// The state of the walk.
struct Walk {
  Emitter& e;
  Builder& b;
  std::vector<Family> families;
  uint32_t slots = 0;
  Reg<U32> place, end;           // of the sequence: where the tile begins, where the block's range ends
  Reg<U32> cell, element;        // the open cell, the next element
  Reg<U32> first_cell;           // the cell that was open when the block began
  Reg<U32> next_end;             // P(cell)
  Reg<U32> cells, total;         // of the list; and its elements
  Reg<S32> dirty;                // the threads' registers hold something
  std::vector<RegisterId> sums;  // per slot: of the thread, tiles without ends
  Reg<U32> lane, warp;
  Reg<U32> shared;  // base address
  // The family's member that the code is working on; not valid in families of one.
  Reg<U32> member;
  // Byte offsets in shared memory.
  int64_t flags = 0, counts = 0, partials = 0, carry = 0, pointers = 0, values = 0, counted = 0;

  // What is rarely used is computed anew: registers that live across tiles cost loads in flight.
  Reg<U64> offset_at(Reg<U32> of) { return b.mad_wide(of, 8u, b.ld_param(e.offsets)); }  // address of offsets[of]
  Reg<U64> all_scratch() { return b.add(b.ld_param(e.scratch), scratch_fixed_bytes); }
  Reg<U64> own_scratch() { return b.mad_wide(e.ctaid, cell_scratch_bytes(e), all_scratch()); }
  // Where the member's first slot (of `bytes` each) lies, less the offset of the family's.
  Reg<U32> of_member(Reg<U32> from, uint32_t bytes) { return member.valid() ? b.mad_lo(member, bytes, from) : from; }
  Reg<U64> of_member(Reg<U64> from, uint32_t bytes) { return member.valid() ? b.mad_wide(member, bytes, from) : from; }
};

// The parts of a cell's field in a block's scratch memory.
int64_t field(const Family& f, size_t accumulator, bool tail) {
  return 8 + 16 * static_cast<int64_t>(f.first_slot + accumulator) + (tail ? 8 : 0);
}

// Stores the finished reductions of `cell`. `guard` holds wherever this is reached: it keeps the assembler from making guarded instructions of a short
// arm, whose temporaries would then count as live around the loop.
void store_cell(Walk& w, const Family& f, const std::vector<Element>& totals, Reg<U32> cell, Reg<Pred> guard) {
  Emitter& e = w.e;
  Builder& b = w.b;
  Element length;  // offsets[cell + 1] - offsets[cell]
  int64_t store = f.first_store;
  Reg<U32> pointers;
  if (w.member.valid()) pointers = w.of_member(w.shared, 8 * f.stores());
  for (const Store& s : stores_of(f.shape())) {
    const CellReduction& r = *s.reduction;
    Element count;
    if (r.count >= 0) {
      count = totals[static_cast<size_t>(r.count)];
    } else if (r.builtin == Builtin::avg) {
      if (length.type != BasicType::i64) {
        Reg<U64> at = w.offset_at(cell);
        Reg<U64> begin = b.ld<U64>(Space::global, Address(at)), end = b.ld<U64>(Space::global, Address(at, 8));
        length = element(BasicType::i64, Builder::as<S64>(b.sub(end, begin)));
      }
      count = length;
    }
    // A bool is accumulated as the 0 or 1 that is stored.
    const bool boolean = r.type == BasicType::boolean;
    Element value = r.value >= 0 ? totals[static_cast<size_t>(r.value)] : count;
    if (r.value >= 0 && sums_floats(f.shape().accumulators[static_cast<size_t>(r.value)]))
      value = finish_sum(e, r.builtin, r.type, sum_of(ids_of(totals), static_cast<size_t>(r.value)), guard);
    Element x = boolean ? value : finish_reduction(e, r.builtin, r.type, value, count);
    const Output& out = e.outputs[s.store->output];
    for (BasicType type : s.store->conversions)
      if (!boolean || type != BasicType::boolean) x = convert(e, x, type);
    const Element stored = storable(e, x);
    Reg<U64> data =
        w.member.valid() ? b.ld<U64>(Space::shared, Address(pointers, w.pointers + 8 * store)) : b.ld_param(out.data);
    store_element(e, {out.type, stored.value, {}}, b.mad_wide(cell, width_of(out.type), data), guard);
    ++store;
  }
}

std::vector<Element> identities(Walk& w, const Family& f) {
  std::vector<Element> all;
  for (const Accumulator& a : f.shape().accumulators)
    with_partial(
        a, [&]<class P>() { all.push_back(element(partial_type(a), w.b.constant<P>(immediate<P>(identity(a))))); });
  return all;
}
void reset(Walk& w, const Family& f, const std::vector<Element>& to) {
  for (size_t k = 0; k < to.size(); ++k)
    with_partial(f.shape().accumulators[k],
                 [&]<class P>() { w.b.constant<P>(immediate<P>(identity(f.shape().accumulators[k])), reg<P>(to[k])); });
}

// Brings every thread, per accumulator, what precedes it of the cell that is open where it starts: `tails` are the threads' open parts, `ended` says
// which threads saw a cell end. `with_carry`: of the block, before and after; else it starts from the identities and is not wanted after.
// One barrier; the partials' area must be free before and is in use until the caller's next barrier.
std::vector<Element> parts_before(Walk& w, const Family& f, const std::vector<Element>& tails, Reg<Pred> ended,
                                  bool with_carry) {
  Builder& b = w.b;
  const std::vector<Accumulator>& accumulators = f.shape().accumulators;
  const int64_t any_ended = w.partials + 64 * static_cast<int64_t>(accumulators.size());
  Reg<U32> ends = b.ballot(ended);
  Reg<U32> below = b.and_(ends, b.special(ptx::SpecialRegister::lanemask_lt));  // lanes before this one
  Reg<U32> upto = b.or_(b.and_(ends, b.special(ptx::SpecialRegister::lanemask_le)), 1);
  Reg<S32> segment = b.sub(b.constant<S32>(31), Builder::as<S32>(b.clz(upto)));  // lane where the open cell began, or 0
  Reg<S32> from_segment = b.sub(Builder::as<S32>(w.lane), segment);
  Reg<Pred> last_lane = b.setp(Compare::eq, w.lane, 31);
  Reg<U32> warp_address_8 = b.mad_lo(w.warp, 8, w.shared), warp_address_4 = b.mad_lo(w.warp, 4, w.shared);
  Reg<U32> carry_at = w.of_member(w.shared, 8 * f.slots());
  const auto carry = [&](size_t k) { return Address(carry_at, w.carry + 8 * static_cast<int64_t>(f.first_slot + k)); };
  std::vector<RegisterId> sums, before, carries, mine;
  for (size_t k = 0; k < accumulators.size(); ++k)
    with_partial(accumulators[k], [&]<class P>() {
      if (with_carry) carries.push_back(b.ld<P>(Space::shared, carry(k)).id);
      sums.push_back(b.mov(reg<P>(tails[k])).id);
    });
  {
    Reg<U32> distance = b.constant<U32>(1);
    const LabelId loop = b.label();
    b.bind(loop);
    Reg<Pred> inside = b.setp(Compare::ge, from_segment, Builder::as<S32>(distance));
    std::vector<RegisterId> others(sums.size());
    for (size_t k = 0; k < accumulators.size(); ++k) {
      with_partial(accumulators[k], [&]<class P>() {
        others[k] = shuffle(b, ShuffleMode::up, Reg<P>{sums[k]}, distance, 0).id;
      });
      combine(b, accumulators, k, others, sums, sums, inside);
    }
    b.shl(distance, 1, distance);
    b.when(b.setp(Compare::lt, distance, 32)).bra(loop);
  }
  Reg<Pred> first_lane = b.setp(Compare::eq, w.lane, 0);
  for (size_t k = 0; k < accumulators.size(); ++k)
    with_partial(accumulators[k], [&]<class P>() {
      const Reg<P> x{sums[k]};
      b.when(last_lane).st<P>(Space::shared, Address(warp_address_8, w.partials + 64 * int64_t(k)), x);
      Reg<P> previous = shuffle(b, ShuffleMode::up, x, 1, 0);
      b.when(first_lane).constant<P>(immediate<P>(identity(accumulators[k])), previous);
      before.push_back(previous.id);
    });
  b.when(last_lane).st<U32>(Space::shared, Address(warp_address_4, any_ended), ends);
  b.bar_sync();
  Reg<Pred> whole = b.setp(Compare::eq, below, 0);  // the open cell began before the warp
  for (size_t k = 0; k < accumulators.size(); ++k)
    with_partial(accumulators[k], [&]<class P>() {
      if (!with_carry) carries.push_back(b.constant<P>(immediate<P>(identity(accumulators[k]))).id);
      mine.push_back(b.mov(Reg<P>{carries[k]}).id);
    });
  {  // the warps' parts, in their order
    Reg<U32> v = b.constant<U32>(0);
    Reg<U32> at_4 = b.mov(w.shared), at_8 = b.mov(w.shared);
    const LabelId loop = b.label();
    b.bind(loop);
    Reg<Pred> fresh = b.setp(Compare::ne, b.ld<U32>(Space::shared, Address(at_4, any_ended)), 0);
    b.add(v, 1, v);
    Reg<Pred> own = b.setp(Compare::eq, w.warp, v);
    std::vector<RegisterId> parts(carries.size());
    for (size_t k = 0; k < accumulators.size(); ++k) {
      with_partial(accumulators[k], [&]<class P>() {
        parts[k] = b.ld<P>(Space::shared, Address(at_8, w.partials + 64 * int64_t(k))).id;
      });
      combine(b, accumulators, k, carries, parts, carries);
      for_parts(accumulators, k, [&]<class P>(size_t part) {
        const Reg<P> x{carries[part]};
        b.when(fresh).mov(Reg<P>{parts[part]}, x);
        b.when(own).mov(x, Reg<P>{mine[part]});
      });
    }
    b.add(at_4, 4, at_4);
    b.add(at_8, 8, at_8);
    b.when(b.setp(Compare::ne, v, warps)).bra(loop);
  }
  Reg<Pred> first_thread;
  if (with_carry) first_thread = b.setp(Compare::eq, w.e.tid, 0);
  std::vector<Element> result;
  for (size_t k = 0; k < accumulators.size(); ++k) {
    const Accumulator& a = accumulators[k];
    with_partial(a, [&]<class P>() {
      if (with_carry)  // everyone has read the old one before the barrier
        b.when(first_thread).st<P>(Space::shared, carry(k), Reg<P>{carries[k]});
      result.push_back(element(partial_type(a), Reg<P>{before[k]}));
    });
    combine(b, accumulators, k, mine, before, before, whole);
  }
  return result;
}

// The accumulators of all bundles, by slot.
std::vector<Accumulator> all_accumulators(const Walk& w) {
  std::vector<Accumulator> all;
  for (const Family& f : w.families)
    for (const Bundle& m : f.members) all.insert(all.end(), m.accumulators.begin(), m.accumulators.end());
  return all;
}

// Adds what the threads' registers hold to the block's open cell, and clears them.
void flush(Walk& w) {
  Emitter& e = w.e;
  Builder& b = w.b;
  const LabelId clean = b.label();
  b.when(b.setp(Compare::eq, w.dirty, 0)).bra_uni(clean);
  Reg<U32> warp_address = b.mad_lo(w.warp, 8, w.shared);
  Reg<U32> lane_address = b.mad_lo(b.and_(e.tid, warps - 1), 8, w.shared);
  Reg<Pred> lane0 = b.setp(Compare::eq, w.lane, 0), thread0 = b.setp(Compare::eq, e.tid, 0);
  const std::vector<Accumulator> all = all_accumulators(w);
  butterfly(b, all, w.sums, 32);
  for (size_t k = 0; k < all.size(); ++k)
    with_partial(all[k], [&]<class P>() {  // the values' area is free between tiles
      b.when(lane0).st<P>(Space::shared, Address(warp_address, w.values + 64 * int64_t(k)), Reg<P>{w.sums[k]});
    });
  b.bar_sync();
  std::vector<RegisterId> parts;
  for (size_t k = 0; k < all.size(); ++k)
    with_partial(all[k], [&]<class P>() {
      parts.push_back(b.ld<P>(Space::shared, Address(lane_address, w.values + 64 * int64_t(k))).id);
    });
  butterfly(b, all, parts, warps);
  std::vector<RegisterId> carries(all.size());
  const auto at = [&](size_t k) { return Address(w.shared, w.carry + 8 * int64_t(k)); };
  for (size_t k = 0; k < all.size(); ++k) {
    with_partial(all[k], [&]<class P>() {
      carries[k] = b.mov(Reg<P>{parts[k]}).id;
      b.when(thread0).ld<P>(Space::shared, at(k), Reg<P>{carries[k]});  // by nobody else: nothing orders that before the store
    });
    combine_anew(b, all, k, carries, parts, carries);
    for_parts(all, k, [&]<class P>(size_t part) {
      b.when(thread0).st<P>(Space::shared, at(part), Reg<P>{carries[part]});
      b.constant<P>(immediate<P>(identity(all[part])), Reg<P>{w.sums[part]});
    });
  }
  b.constant<S32>(0, w.dirty);
  b.bar_sync();
  b.bind(clean);
}

// Evaluates the elements of the tile that `wanted` makes, e.items of this thread at a time, and has each used. Elements lie a block apart. `whole`: all
// are there. advance: what moves with the elements beside them.
template <class Use, class Advance>
void for_elements(Walk& w, const Marks& wanted, const Marks& needed, bool whole, Use&& use, Advance&& advance) {
  Emitter& e = w.e;
  Builder& b = w.b;
  for (Input& in : e.inputs) in.wanted = needed[index(in.variable)];
  e.items = items_of(e, wanted);
  for (size_t s = 0; s < e.steps.size(); ++s)  // addresses and sizes of gathered vectors are loaded where they are used
    for (size_t k = 0; wanted[s] && k < e.steps[s].operands.size(); ++k)
      if (reads_whole(e.steps[s], k)) e.gathered.at(e.steps[s].operands[k].variable_id()).load(b);
  Reg<U32> first = b.add(w.element, e.tid);
  for (Input& in : e.inputs)
    if (in.wanted) in.at = place(e, in.type, in.stored, b.ld_param(in.data), first);
  const bool positions = reads_positions(e, wanted);
  if (positions) e.first_index = b.cvt<U64>(first);
  start_input_items(e, !whole);
  e.all_valid = whole;
  e.guards_items = false;
  Reg<U32> left = b.constant<U32>(items / e.items);
  const LabelId loop = b.here();
  if (whole) {
    e.within.clear();
    load_all_items(e);
  } else {
    load_items(e);
  }
  const ItemPlan plan = start_items(e, wanted, early_steps(e, wanted));
  for (e.item = 0; e.item < e.items; ++e.item) {
    evaluate_item(e, plan);
    use();
  }
  if (e.items < items) {
    const uint32_t step = e.items * threads;
    for (Input& in : e.inputs)
      if (in.wanted) codegen::advance(e, in.type, in.stored, in.at, step);
    if (positions) b.add(e.first_index, step, e.first_index);
    if (!whole) b.sub(e.room, static_cast<int32_t>(step), e.room);
    advance();
    b.sub(left, 1, left);
    b.when(b.setp(Compare::ne, left, 0)).bra_uni(loop);
  }
  e.within.clear();
}

// The next end at or after the open cell's; beyond everything when there is none.
void load_next_end(Walk& w) {
  Builder& b = w.b;
  b.constant<U32>(UINT32_MAX, w.next_end);
  const LabelId none = b.label();
  b.when(b.setp(Compare::ge, w.cell, w.cells)).bra_uni(none);
  Reg<U64> end = b.ld<U64>(Space::global, Address(w.offset_at(w.cell), 8));
  b.add(b.cvt<U32>(end), w.cell, w.next_end);
  b.bind(none);
}

void tile_without_ends(Walk& w) {
  Emitter& e = w.e;
  Builder& b = w.b;
  Marks wanted = marks(e.steps.size()), needed = marks(e.function.variables.size());
  for (const Family& f : w.families)
    for (const Bundle& m : f.members) {
      for (size_t s = 0; s < wanted.size(); ++s) wanted[s] = wanted[s] || m.wanted[s];
      for (size_t v = 0; v < needed.size(); ++v) needed[v] = needed[v] || m.needed[v];
    }
  const auto use = [&] {
    size_t slot = 0;
    for (const Family& f : w.families)
      for (const Bundle& m : f.members) {
        const Element& value = e.values[index(m.argument)];
        for (const Accumulator& a : m.accumulators) {
          if (sums_floats(a)) {
            if (a.part == 0) add_to_sum(e, sum_of(w.sums, slot), value, value.mask);
            ++slot;
            continue;
          }
          with_partial(a, [&]<class P>() {
            Reg<P> into{w.sums[slot++]};
            if constexpr (std::is_same_v<P, S64>) {
              if (a.count) {
                if (value.mask.valid()) b.when(value.mask);
                b.add(into, 1, into);
                return;
              }
            }
            const Element x = in_register(e, convert(e, value, partial_type(a)));
            if (value.mask.valid()) b.when(value.mask);
            combine<P>(b, a.kind, into, reg<P>(x), into);
          });
        }
      }
  };
  for_elements(w, wanted, needed, true, use, [] {});
  b.constant<S32>(1, w.dirty);
  b.add(w.place, places, w.place);
  b.add(w.element, places, w.element);
}

// The type in which values of an argument are staged.
BasicType staged_type(const Emitter& e, const Bundle& m) { return held_type(e.type_of(m.argument)); }
bool stages_values(const Bundle& m) {
  return std::any_of(m.accumulators.begin(), m.accumulators.end(), [](const Accumulator& a) { return !a.count; });
}

struct Share {     // of a thread in a tile with ends
  Reg<U32> marks;  // bit k: place k is an end; bit 8 is set
  Reg<U32> first;  // of its elements, within the tile
  Reg<U32> cell;   // open where it starts
  Reg<S32> room;   // elements of the tile from the thread's first on
};

// Stages the elements of one argument. Slots are padded, one in nine, so that threads that read 8 apart use all banks.
void stage(Walk& w, const Bundle& m, const Share& share) {
  Emitter& e = w.e;
  Builder& b = w.b;
  const BasicType type = staged_type(e, m);
  const bool values = stages_values(m);
  with_number(rep_of(type), [&]<class T>() {
    Reg<U32> at = b.add(e.tid, b.shr(e.tid, 3)), to, flag_to;
    if (values) to = b.mad_lo(at, T::size, w.shared);
    if (m.selected) flag_to = b.mad_lo(at, 4, w.shared);
    e.room = b.mov(share.room);
    const auto use = [&] {
      const Element& value = e.values[index(m.argument)];
      const int64_t offset = int64_t{e.item} * padded;
      if (values)
        b.st<T>(Space::shared, Address(to, w.values + offset * T::size),
                reg<T>(in_register(e, convert(e, value, type))));
      if (m.selected) {
        Reg<U32> flag = b.select<U32>(1, 0, active(e, value.mask));
        b.st<U32>(Space::shared, Address(flag_to, w.counted + offset * 4), flag);
      }
    };
    const auto advance = [&] {
      if (values) b.add(to, e.items * padded * T::size, to);
      if (m.selected) b.add(flag_to, e.items * padded * 4, flag_to);
    };
    for_elements(w, m.wanted, m.needed, false, use, advance);
  });
}

// Consumes the staged values of a bundle, stores the cells that end, and moves the block's carry on.
void consume(Walk& w, const Family& f, const Share& share) {
  Emitter& e = w.e;
  Builder& b = w.b;
  const Bundle& m = f.shape();
  Reg<U32> marks = b.mov(share.marks);
  Reg<U32> at = b.mov(share.first);
  Reg<U32> cell = b.mov(share.cell);
  Reg<U32> seen = b.constant<U32>(0);
  const std::vector<Element> open = identities(w, f), heads = identities(w, f);
  const LabelId loop = b.label(), ends = b.label(), stored = b.label(), next = b.label(), first = b.label();
  b.bind(loop);
  b.when(b.setp(Compare::ne, b.and_(marks, 1), 0)).bra(ends);
  Reg<U32> slot = b.add(at, b.shr(at, 3));
  const BasicType type = staged_type(e, m);
  Element value;
  Reg<U32> flag;
  Reg<Pred> counts;
  if (stages_values(m))
    with_number(rep_of(type), [&]<class T>() {
      value = element(type, b.ld<T>(Space::shared, Address(b.mad_lo(slot, T::size, w.shared), w.values)));
    });
  if (m.selected) {
    flag = b.ld<U32>(Space::shared, Address(b.mad_lo(slot, 4, w.shared), w.counted));
    counts = b.setp(Compare::ne, flag, 0);
  }
  const std::vector<RegisterId> open_ids = ids_of(open), head_ids = ids_of(heads);
  for (size_t k = 0; k < m.accumulators.size(); ++k)
    with_partial(m.accumulators[k], [&]<class P>() {
      const Accumulator& a = m.accumulators[k];
      if (sums_floats(a)) {
        if (a.part == 0) add_to_sum(e, sum_of(open_ids, k), value, counts);
        return;
      }
      if constexpr (std::is_same_v<P, S64>) {
        if (a.count) {
          b.add(reg<P>(open[k]), Builder::as<S64>(b.cvt<U64>(flag)), reg<P>(open[k]));
          return;
        }
      }
      const Element x = convert(e, value, partial_type(a));
      if (counts.valid()) b.when(counts);
      combine<P>(b, a.kind, reg<P>(open[k]), reg<P>(x), reg<P>(open[k]));
    });
  b.add(at, 1, at);
  b.bra(next);
  b.bind(ends);
  Reg<Pred> known = b.setp(Compare::ne, seen, 0);
  b.unless(known).bra(first);
  store_cell(w, f, open, cell, known);
  b.bra(stored);
  b.bind(first);  // its part before this thread is not known yet
  for (size_t k = 0; k < open.size(); ++k)
    with_partial(m.accumulators[k], [&]<class P>() { b.mov(reg<P>(open[k]), reg<P>(heads[k])); });
  b.constant<U32>(1, seen);
  b.bind(stored);
  reset(w, f, open);
  b.add(cell, 1, cell);
  b.bind(next);
  b.shr(marks, 1, marks);
  b.when(b.setp(Compare::ne, marks, 1)).bra_uni(loop);  // all threads have as many places

  Reg<Pred> ended = b.setp(Compare::ne, seen, 0);
  std::vector<Element> before = parts_before(w, f, open, ended, true);
  const LabelId done = b.label(), inside = b.label();
  b.unless(ended).bra(done);
  for (size_t k = 0; k < heads.size(); ++k) combine(b, m.accumulators, k, ids_of(before), head_ids, head_ids);
  b.when(b.setp(Compare::ne, share.cell, w.first_cell)).bra(inside);
  Reg<U64> scratch = w.of_member(w.own_scratch(), 16 * f.slots());
  for (size_t k = 0; k < heads.size(); ++k)
    with_partial(m.accumulators[k], [&]<class P>() {
      b.when(ended).st<P>(Space::global, Address(scratch, field(f, k, false)), reg<P>(heads[k]));
    });
  b.bra(done);
  b.bind(inside);
  store_cell(w, f, heads, share.cell, ended);
  b.bind(done);
}

// Code for all members of a family, written once: a loop over them.
template <class Body>
void for_members(Walk& w, const Family& f, Body&& body) {
  Builder& b = w.b;
  if (f.members.size() == 1) return body();
  Reg<U32> member = b.constant<U32>(0);
  w.member = member;
  const LabelId loop = b.here();
  body();
  b.add(member, 1, member);
  b.when(b.setp(Compare::lt, member, static_cast<uint32_t>(f.members.size()))).bra_uni(loop);
  w.member = {};
}

void tile_with_ends(Walk& w) {
  Emitter& e = w.e;
  Builder& b = w.b;
  flush(w);
  // Mark the ends.
  Reg<U32> own = b.mad_lo(e.tid, 8, w.shared);
  b.st_v2<U32>(Space::shared, Address(own, w.flags), b.constant<U32>(0), b.constant<U32>(0));
  b.bar_sync();
  {
    const LabelId mark = b.label(), marked = b.label();
    Reg<U32> cell = b.add(w.cell, e.tid);
    Reg<U64> from = w.offset_at(cell);
    b.bind(mark);
    b.when(b.setp(Compare::ge, cell, w.cells)).bra(marked);
    Reg<U64> end = b.ld<U64>(Space::global, Address(from, 8));
    Reg<U32> at = b.sub(b.add(b.cvt<U32>(end), cell), w.place);
    b.when(b.setp(Compare::ge, at, places)).bra(marked);
    b.st<ptx::U8>(Space::shared, Address(b.add(w.shared, at), w.flags), 1);
    b.add(cell, threads, cell);
    b.add(from, 8 * threads, from);
    b.bra(mark);
    b.bind(marked);
  }
  b.bar_sync();
  // Every thread's share: its marks, and the ends before it.
  const auto words = b.ld_v2<U32>(Space::shared, Address(own, w.flags));
  constexpr uint32_t gather_bits = 0x10204080;  // moves the lowest bits of the four bytes to the highest four bits
  Share share;
  Reg<U32> low = b.shr(b.mul_lo(words[0], gather_bits), 28), high = b.shr(b.mul_lo(words[1], gather_bits), 28);
  Reg<U32> own_marks = b.mad_lo(high, 16, low);
  share.marks = b.or_(own_marks, 1u << items);
  Reg<U32> ends = b.popc(own_marks);
  Reg<U32> sum = b.mov(ends);
  for (uint32_t distance = 1; distance < 32; distance *= 2) {
    Reg<U32> other = b.shfl_sync(ShuffleMode::up, sum, distance, 0);
    b.when(b.setp(Compare::ge, w.lane, distance)).add(sum, other, sum);
  }
  Reg<U32> warp_address = b.mad_lo(w.warp, 4, w.shared);
  b.when(b.setp(Compare::eq, w.lane, 31)).st<U32>(Space::shared, Address(warp_address, w.counts), sum);
  b.bar_sync();
  Reg<U32> group = b.and_(w.lane, warps - 1);
  Reg<U32> total = b.ld<U32>(Space::shared, Address(b.mad_lo(group, 4, w.shared), w.counts));
  Reg<U32> earlier = b.select<U32>(total, 0, b.setp(Compare::lt, group, w.warp));
  for (uint32_t distance = warps / 2; distance > 0; distance /= 2) {
    total = b.add(total, b.shfl_sync(ShuffleMode::bfly, total, distance, 31));
    earlier = b.add(earlier, b.shfl_sync(ShuffleMode::bfly, earlier, distance, 31));
  }
  Reg<U32> before = b.add(b.sub(sum, ends), earlier);
  share.first = b.sub(b.shl(e.tid, 3), before);
  share.cell = b.add(w.cell, before);
  Reg<U32> elements = b.sub(b.min(b.sub(w.total, w.place), places), total);
  share.room = b.sub(Builder::as<S32>(elements), Builder::as<S32>(e.tid));
  for (const Family& f : w.families)
    for_members(w, f, [&] {
      const LabelId staged = b.label();
      for (size_t k = 0; k < f.members.size(); ++k) {
        const LabelId other = b.label();
        if (k + 1 < f.members.size()) b.when(b.setp(Compare::ne, w.member, static_cast<uint32_t>(k))).bra_uni(other);
        stage(w, f.members[k], share);
        if (k + 1 < f.members.size()) b.bra(staged);
        b.bind(other);
      }
      b.bind(staged);
      b.bar_sync();
      consume(w, f, share);
    });
  b.add(w.cell, total, w.cell);
  b.add(w.element, elements, w.element);
  b.add(w.place, places, w.place);
  load_next_end(w);
}

// cell = number of cells whose end stands before `place`: 256 probes at a time.
void find_first_cell(Walk& w) {
  Emitter& e = w.e;
  Builder& b = w.b;
  const LabelId search = b.label(), found = b.label();
  Reg<U32> high = b.mov(w.cells);
  b.when(b.setp(Compare::eq, w.place, 0)).bra_uni(found);
  b.bind(search);
  b.when(b.setp(Compare::ge, w.cell, high)).bra_uni(found);
  Reg<U32> step = b.shr(b.add(b.sub(high, w.cell), threads - 1), 8);
  Reg<U32> probe = b.mad_lo(step, e.tid, w.cell);
  Reg<U64> end = b.constant<U64>(UINT32_MAX);
  Reg<U64> from = w.offset_at(probe);
  Reg<Pred> exists = b.setp(Compare::lt, probe, high);
  b.when(exists).ld<U64>(Space::global, Address(from, 8), end);
  Reg<U32> at = b.cvt<U32>(end);
  b.when(exists).add(at, probe, at);
  Reg<U32> count = b.popc(b.ballot(b.setp(Compare::lt, at, w.place)));
  Reg<U32> warp_address = b.mad_lo(w.warp, 4, w.shared);
  b.when(b.setp(Compare::eq, w.lane, 0)).st<U32>(Space::shared, Address(warp_address, w.counts), count);
  b.bar_sync();
  Reg<U32> total = b.ld<U32>(Space::shared, Address(b.mad_lo(b.and_(w.lane, warps - 1), 4, w.shared), w.counts));
  for (uint32_t distance = warps / 2; distance > 0; distance /= 2)
    total = b.add(total, b.shfl_sync(ShuffleMode::bfly, total, distance, 31));
  b.bar_sync();
  b.when(b.setp(Compare::eq, total, 0)).bra_uni(found);  // not even the first probe: the end of `cell` is not before
  b.min(high, b.mad_lo(step, total, w.cell), high);
  b.add(w.cell, b.mad_lo(step, b.sub(total, 1), 1), w.cell);
  b.bra(search);
  b.bind(found);
}

// The last block: the cells that cross blocks, in order of the blocks; leaves the scratch memory zero.
void combine_blocks(Walk& w, Reg<U64> all_scratch, uint32_t stride) {
  Emitter& e = w.e;
  Builder& b = w.b;
  Reg<U32> each = b.shr(b.add(e.nctaid, threads - 1), 8);
  Reg<U32> from = b.min(b.mul_lo(e.tid, each), e.nctaid);
  Reg<U32> count = b.sub(b.min(b.add(from, each), e.nctaid), from);
  Reg<U64> start = b.mad_wide(from, stride, all_scratch);
  for (const Family& f : w.families)
    for_members(w, f, [&] {
      const std::vector<Accumulator>& accumulators = f.shape().accumulators;
      const std::vector<Element> open = identities(w, f);
      Reg<U32> seen = b.constant<U32>(0);
      // Fields lie behind the block's word, which all members read.
      const uint32_t fields = 16 * f.slots();
      {
        const LabelId loop = b.label(), done = b.label();
        Reg<U32> left = b.mov(count);
        Reg<U64> at = b.mov(start);
        b.bind(loop);
        b.when(b.setp(Compare::eq, left, 0)).bra(done);
        Reg<U64> own = w.of_member(at, fields);
        Reg<U64> word = b.ld<U64>(Space::global, volatile_access, Address(at));
        Reg<Pred> ended = b.setp(Compare::ne, word, 0);
        b.when(ended).constant<U32>(1, seen);
        const std::vector<RegisterId> sums = ids_of(open);
        std::vector<RegisterId> tails(sums.size());
        for (size_t k = 0; k < accumulators.size(); ++k) {
          with_partial(accumulators[k], [&]<class P>() {
            tails[k] = b.ld<P>(Space::global, volatile_access, Address(own, field(f, k, true))).id;
          });
          combine(b, accumulators, k, sums, tails, sums);
          for_parts(accumulators, k,
                    [&]<class P>(size_t part) { b.when(ended).mov(Reg<P>{tails[part]}, Reg<P>{sums[part]}); });
        }
        b.add(at, stride, at);
        b.sub(left, 1, left);
        b.bra(loop);
        b.bind(done);
      }
      b.bar_sync();  // the partials' area is free
      std::vector<Element> run = parts_before(w, f, open, b.setp(Compare::ne, seen, 0), false);
      {
        const LabelId loop = b.label(), done = b.label(), unended = b.label();
        Reg<U32> left = b.mov(count);
        Reg<U64> at = b.mov(start);
        b.bind(loop);
        b.when(b.setp(Compare::eq, left, 0)).bra(done);
        Reg<U64> own = w.of_member(at, fields);
        Reg<U64> word = b.ld<U64>(Space::global, volatile_access, Address(at));
        std::vector<RegisterId> tails;
        std::vector<Element> heads;
        for (size_t k = 0; k < accumulators.size(); ++k)
          with_partial(accumulators[k], [&]<class P>() {
            heads.push_back(element(partial_type(accumulators[k]),
                                    b.ld<P>(Space::global, volatile_access, Address(own, field(f, k, false)))));
            tails.push_back(b.ld<P>(Space::global, volatile_access, Address(own, field(f, k, true))).id);
            b.st<U64>(Space::global, Address(own, field(f, k, false)), 0);
            b.st<U64>(Space::global, Address(own, field(f, k, true)), 0);
          });
        Reg<Pred> ended = b.setp(Compare::ne, word, 0);
        b.unless(ended).bra(unended);
        for (size_t k = 0; k < accumulators.size(); ++k)
          combine(b, accumulators, k, ids_of(run), ids_of(heads), ids_of(heads));
        store_cell(w, f, heads, b.sub(b.cvt<U32>(word), 1), ended);
        reset(w, f, run);  // the next cell starts anew
        b.bind(unended);
        for (size_t k = 0; k < accumulators.size(); ++k) combine(b, accumulators, k, ids_of(run), tails, ids_of(run));
        b.add(at, stride, at);
        b.sub(left, 1, left);
        b.bra(loop);
        b.bind(done);
      }
    });
  const LabelId clean = b.label(), cleaned = b.label();
  b.bind(clean);
  b.when(b.setp(Compare::eq, count, 0)).bra(cleaned);
  b.st<U64>(Space::global, Address(start), 0);
  b.add(start, stride, start);
  b.sub(count, 1, count);
  b.bra(clean);
  b.bind(cleaned);
}

}  // namespace

void store_lengths(Emitter& e) {
  if (std::all_of(e.cell_reductions.begin(), e.cell_reductions.end(), reduces)) return;
  Builder& b = e.b;
  const LabelId loop = b.label(), done = b.label();
  Reg<U64> cell = b.cvt<U64>(b.mad_lo(e.ctaid, e.block_size, e.tid));
  Reg<U64> step = b.cvt<U64>(b.mul_lo(e.nctaid, e.block_size));
  Reg<U64> offsets = b.ld_param(e.offsets);
  b.bind(loop);
  b.when(b.setp(Compare::ge, cell, e.cells)).bra(done);
  Reg<U64> at = b.add(offsets, b.shl(cell, 3));
  Reg<U64> begin = b.ld<U64>(Space::global, Address(at)), end = b.ld<U64>(Space::global, Address(at, 8));
  const Element length = element(BasicType::i64, Builder::as<S64>(b.sub(end, begin)));
  for (const CellReduction& r : e.cell_reductions) {
    if (reduces(r)) continue;
    for (const CellReduction::Store& s : r.stores) {
      Element x = convert(e, length, r.type);
      for (BasicType type : s.conversions) x = convert(e, x, type);
      const Output& out = e.outputs[s.output];
      const uint32_t shift = static_cast<uint32_t>(std::countr_zero(width_of(out.type)));
      store_element(e, {out.type, storable(e, x).value, {}},
                    b.add(b.ld_param(out.data), shift ? b.shl(cell, shift) : cell), {});
    }
  }
  b.add(cell, step, cell);
  b.bra(loop);
  b.bind(done);
}

void reduce_cells(Emitter& e) {
  Builder& b = e.b;
  CHECK(e.block_size == threads, "eight warps per block");
  Walk w{e, b};
  w.families = families_of(e);
  const std::vector<Accumulator> all = all_accumulators(w);
  w.slots = static_cast<uint32_t>(all.size());
  const uint32_t stride = cell_scratch_bytes(e);
  e.stride = threads;

  // Shared memory: marks of places, counts of warps, partial results of warps, the open cell's parts, where results go, staged values.
  uint32_t most_slots = 0, stores = 0, staged_bytes = 4;
  bool selected = false;
  for (const Family& f : w.families) {
    most_slots = std::max(most_slots, f.slots());
    stores = f.first_store + f.stores() * static_cast<uint32_t>(f.members.size());
    selected |= f.shape().selected;
    if (stages_values(f.shape()))
      with_number(rep_of(staged_type(e, f.shape())),
                  [&]<class T>() { staged_bytes = std::max<uint32_t>(staged_bytes, T::size); });
  }
  w.flags = 0;
  w.counts = places;
  w.partials = w.counts + 4 * warps;
  w.carry = w.partials + 64 * int64_t{most_slots} + 4 * warps;
  w.pointers = w.carry + 8 * int64_t{w.slots};
  w.values = w.pointers + 8 * int64_t{stores};
  w.counted = w.values + std::max<int64_t>(int64_t{staged_bytes} * items * padded, 64 * int64_t{w.slots});
  const int64_t bytes = w.counted + (selected ? 4 * int64_t{items} * padded : 0);
  SharedVariable shared = b.shared<U64>(e.code.name + "_cells", static_cast<uint64_t>(bytes + 7) / 8 + 1, 16);
  w.shared = b.address_of_32(shared);
  w.lane = b.and_(e.tid, 31);
  w.warp = b.shr(e.tid, 5);

  // This block's range.
  w.cells = b.cvt<U32>(e.cells);
  w.total = b.add(b.cvt<U32>(e.n), w.cells);
  Reg<U32> tiles = b.shr(b.add(w.total, places - 1), std::countr_zero(places));
  Reg<U32> each = b.div(b.add(tiles, b.sub(e.nctaid, 1)), e.nctaid);
  Reg<U32> first_tile = b.min(b.mul_lo(e.ctaid, each), tiles);
  w.place = b.shl(first_tile, std::countr_zero(places));
  w.end = b.min(b.shl(b.min(b.add(first_tile, each), tiles), std::countr_zero(places)), w.total);
  w.cell = b.constant<U32>(0);
  w.element = b.constant<U32>(0);
  w.first_cell = b.constant<U32>(0);
  w.next_end = b.constant<U32>(0);
  w.dirty = b.constant<S32>(0);
  for (const Accumulator& a : all)
    with_partial(a, [&]<class P>() {
      w.sums.push_back(b.constant<P>(immediate<P>(identity(a))).id);
      // Every thread stores the same.
      b.st<P>(Space::shared, Address(w.shared, w.carry + 8 * (static_cast<int64_t>(w.sums.size()) - 1)),
              Reg<P>{w.sums.back()});
    });
  for (const Family& f : w.families) {
    int64_t at = w.pointers + 8 * int64_t{f.first_store};
    for (const Bundle& m : f.members)
      for (const Store& s : stores_of(m)) {
        if (f.members.size() > 1)
          b.st<U64>(Space::shared, Address(w.shared, at), b.ld_param(e.outputs[s.store->output].data));
        at += 8;
      }
  }
  b.bar_sync();
  const LabelId loop = b.label(), with_ends = b.label(), walked = b.label();
  b.when(b.setp(Compare::ge, w.place, w.end)).bra_uni(walked);
  find_first_cell(w);
  b.mov(w.cell, w.first_cell);
  b.sub(w.place, w.cell, w.element);
  load_next_end(w);

  e.in_loop = true;
  b.bind(loop);
  b.when(b.setp(Compare::ge, w.place, w.end)).bra_uni(walked);
  b.when(b.setp(Compare::lt, w.next_end, b.add(w.place, places))).bra_uni(with_ends);
  tile_without_ends(w);
  b.bra(loop);
  b.bind(with_ends);
  tile_with_ends(w);
  b.bra(loop);
  b.bind(walked);
  e.in_loop = false;
  e.all_valid = false;
  flush(w);

  // Publish, take a ticket (as in reduce.cpp).
  const LabelId waiting = b.label(), done = b.label();
  Reg<Pred> thread0 = b.setp(Compare::eq, e.tid, 0);
  b.bar_sync();
  b.unless(thread0).bra(waiting);
  Reg<U32> ended = b.constant<U32>(0);
  b.when(b.setp(Compare::ne, w.cell, w.first_cell)).add(w.first_cell, 1, ended);
  Reg<U64> own = w.own_scratch();
  b.st<U64>(Space::global, Address(own), b.cvt<U64>(ended));
  for (size_t k = 0; k < all.size(); ++k)
    with_partial(all[k], [&]<class P>() {
      b.st<P>(Space::global, Address(own, 16 + 16 * int64_t(k)),
              b.ld<P>(Space::shared, Address(w.shared, w.carry + 8 * int64_t(k))));
    });
  b.membar(ptx::Scope::gpu);
  Reg<U32> ticket = b.atom<U32>(ptx::AtomicOp::add, Space::global, Address(b.ld_param(e.scratch), finished_counter), 1);
  b.st<U32>(Space::shared, Address(w.shared, w.counts), ticket);
  b.bind(waiting);
  b.bar_sync();
  Reg<U32> mine = b.ld<U32>(Space::shared, Address(w.shared, w.counts));
  b.when(b.setp(Compare::ne, mine, b.sub(e.nctaid, 1))).bra_uni(done);
  b.membar(ptx::Scope::gpu);
  combine_blocks(w, w.all_scratch(), stride);
  Reg<U64> scratch = b.ld_param(e.scratch);
  b.when(thread0).st<U32>(Space::global, Address(scratch, finished_counter), 0);
  b.bind(done);
}

}  // namespace rndn::codegen
