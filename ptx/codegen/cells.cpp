// Reductions of the cells of a list: sum, avg, min, max, any, all, len, over the elements of a list parameter and what element-wise
// functions and gathers make of them.
//
// Work is shared by merge path (Merrill and Garland, "Merge-based Parallel Sparse Matrix-Vector Multiplication", SC 2016): elements and
// cell ends form one sequence, in which the end of cell i stands at P(i) = offsets[i + 1] + i. Every block takes an equal, contiguous range of it
// and walks it in tiles of block_size * 8, so that neither a giant cell nor millions of empty ones unbalance anything.
// Two kinds of tile:
//   without a cell end   threads accumulate in registers, across tiles; this is all that a giant cell costs
//   with cell ends       the ends are marked in shared memory (P strictly rises: each end has a byte of its own); reduction by reduction, the
//                        elements' values are staged in shared memory, every thread consumes the elements and ends of its 8 places in order,
//                        and a segmented scan (threads -> warp -> block) brings each thread the part of its first cell that lies before it
// A block keeps the part of its open cell from tile to tile. What began before the block and what is open at its end goes to scratch memory; the last
// block combines these in order. Every combination has a fixed order: results repeat bit for bit with the same grid.
// Scratch per block: first cell that ended in it, plus one (0: none); per accumulator the part of that cell (head) and of the open one (tail).
// Cost: one read of the inputs and the offsets. Bytes in shared memory: 20 KB, and 9 KB where selected elements are counted.
// Leaves out: combining the lists' element-wise results with this walk: those are stored by a loop of their own.
#include <algorithm>
#include <bit>

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
constexpr Access volatile_access{.semantics = Semantics::volatile_};

bool reduces(const CellReduction& r) { return !r.accumulators.empty(); }

uint32_t slot_count(const Emitter& e) {
  uint32_t count = 0;
  for (const CellReduction& r : e.cell_reductions) count += static_cast<uint32_t>(r.accumulators.size());
  return count;
}

Element identity(const Accumulator& a) { return constant_element(partial_type(a), identity_bits(a.kind, a.type)); }

// The state of the walk.
struct Walk {
  Emitter& e;
  Builder& b;
  uint32_t slots = 0;
  bool counts_selected = false;
  Reg<U64> place, end;           // of the sequence: where the tile begins, where the block's range ends
  Reg<U64> cell, element;        // the open cell, the next element
  Reg<U64> first_cell;           // the cell that was open when the block began
  Reg<U64> next_end;             // P(cell)
  Reg<S32> dirty;                // the threads' registers hold something
  std::vector<RegisterId> sums;  // per slot: of the thread, tiles without ends
  Reg<U32> lane, warp;
  Reg<U32> shared;                      // base address
  Reg<U32> stage_values, stage_counts;  // where this thread stages, less the areas' offsets
  // Byte offsets in shared memory.
  int64_t flags = 0, counts = 0, partials = 0, carry = 0, values = 0, counted = 0;

  // What is rarely used is computed anew: registers that live across tiles cost loads in flight.
  Reg<U64> offsets() { return b.add(b.ld_param(e.offsets), 8); }  // address of offsets[1]: the ends of cells
  Reg<U64> all_scratch() { return b.add(b.ld_param(e.scratch), scratch_fixed_bytes); }
  Reg<U64> own_scratch() { return b.add(all_scratch(), b.mul_wide(e.ctaid, cell_scratch_bytes(e))); }
  // The block's part of the open cell lies in shared memory.
  Address carry_at(uint32_t slot) { return Address(shared, carry + 8 * int64_t{slot}); }
};

// Stores the finished reduction of `cell`. `guard` holds wherever this is reached: it keeps the assembler from making guarded instructions of a short
// arm, whose temporaries would then count as live around the loop.
void store_cell(Walk& w, const CellReduction& r, const std::vector<Element>& totals, Reg<U64> cell, Reg<Pred> guard) {
  Emitter& e = w.e;
  Builder& b = w.b;
  Element count;
  if (r.count >= 0) {
    count = totals[r.count];
  } else if (r.builtin == Builtin::avg) {  // offsets[cell + 1] - offsets[cell]
    Reg<U64> at = b.add(w.offsets(), b.shl(cell, 3));
    Reg<U64> begin = b.ld<U64>(Space::global, Address(at, -8)), end = b.ld<U64>(Space::global, Address(at));
    count = element(BasicType::i64, Builder::as<S64>(b.sub(end, begin)));
  }
  // A bool is accumulated as the 0 or 1 that is stored.
  const bool boolean = r.type == BasicType::boolean;
  const Element x =
      boolean ? totals[r.value] : finish_reduction(e, r.builtin, r.type, r.value >= 0 ? totals[r.value] : count, count);
  for (const CellReduction::Store& s : r.stores) {
    Element y = x;
    const Output& out = e.outputs[s.output];
    const uint32_t shift = static_cast<uint32_t>(std::countr_zero(width_of(out.type)));
    for (BasicType type : s.conversions)
      if (!boolean || type != BasicType::boolean) y = convert(e, y, type);
    const Element stored = storable(e, y);
    store_element(e, {out.type, stored.value, {}}, b.add(b.ld_param(out.data), shift ? b.shl(cell, shift) : cell), 0,
                  guard);
  }
}

// Brings every thread, per accumulator, what precedes it of the cell that is open where it starts: `tails` are the threads' open parts, `ended` says
// which threads saw a cell end. `carry`: of the block, before and after; none: starts from the identities and is not wanted after.
// One barrier; the partials' area must be free before and is in use until the caller's next barrier.
std::vector<Element> parts_before(Walk& w, const CellReduction& r, const std::vector<Element>& tails, Reg<Pred> ended,
                                  bool with_carry) {
  Builder& b = w.b;
  Reg<U32> ends = b.ballot(ended);
  Reg<U32> one = b.constant<U32>(1);
  Reg<U32> own_bit = b.shl(one, w.lane);
  Reg<U32> below = b.and_(ends, b.sub(own_bit, 1));  // lanes before this one
  Reg<U32> upto = b.or_(b.or_(below, b.and_(ends, own_bit)), 1);
  Reg<S32> segment = b.sub(b.constant<S32>(31), Builder::as<S32>(b.clz(upto)));  // lane where the open cell began, or 0
  Reg<S32> from_segment = b.sub(Builder::as<S32>(w.lane), segment);
  Reg<Pred> last_lane = b.setp(Compare::eq, w.lane, 31);
  Reg<Pred> first_lane = b.setp(Compare::eq, w.lane, 0);
  Reg<U32> warp_address_8 = b.add(w.shared, b.shl(w.warp, 3)), warp_address_4 = b.add(w.shared, b.shl(w.warp, 2));
  std::vector<RegisterId> sums, before, carries;
  for (size_t k = 0; k < r.accumulators.size(); ++k)
    with_partial(r.accumulators[k], [&]<class P>() {
      if (with_carry) carries.push_back(b.ld<P>(Space::shared, w.carry_at(r.slot + static_cast<uint32_t>(k))).id);
      sums.push_back(b.mov(reg<P>(tails[k])).id);
    });
  {
    Reg<U32> distance = b.constant<U32>(1);
    const LabelId loop = b.label();
    b.bind(loop);
    Reg<Pred> inside = b.setp(Compare::ge, from_segment, Builder::as<S32>(distance));
    for (size_t k = 0; k < r.accumulators.size(); ++k)
      with_partial(r.accumulators[k], [&]<class P>() {
        const Reg<P> x{sums[k]};
        Reg<P> other = shuffle(b, ShuffleMode::up, x, distance, 0);
        b.when(inside);
        combine(b, r.accumulators[k].kind, other, x, x);
      });
    b.shl(distance, 1, distance);
    b.when(b.setp(Compare::lt, distance, 32)).bra(loop);
  }
  for (size_t k = 0; k < r.accumulators.size(); ++k)
    with_partial(r.accumulators[k], [&]<class P>() {
      const Reg<P> x{sums[k]};
      b.when(last_lane).st<P>(Space::shared, Address(warp_address_8, w.partials + 64 * int64_t(k)), x);
      Reg<P> previous = shuffle(b, ShuffleMode::up, x, 1, 0);
      b.when(first_lane).constant<P>(immediate<P>(identity(r.accumulators[k])), previous);
      before.push_back(previous.id);
    });
  Reg<U32> any = b.select<U32>(1, 0, b.setp(Compare::ne, ends, 0));
  b.when(last_lane).st<U32>(Space::shared, Address(warp_address_4, w.partials + 128), any);
  b.bar_sync();
  Reg<Pred> whole = b.setp(Compare::eq, below, 0);  // the open cell began before the warp
  Reg<Pred> first_thread = b.setp(Compare::eq, w.e.tid, 0);
  std::vector<RegisterId> mine;
  for (size_t k = 0; k < r.accumulators.size(); ++k)
    with_partial(r.accumulators[k], [&]<class P>() {
      if (!with_carry) carries.push_back(b.constant<P>(immediate<P>(identity(r.accumulators[k]))).id);
      mine.push_back(b.mov(Reg<P>{carries[k]}).id);
    });
  {  // the warps' parts, in their order
    Reg<U32> v = b.constant<U32>(0);
    Reg<U32> at_4 = b.mov(w.shared), at_8 = b.mov(w.shared);
    const LabelId loop = b.label();
    b.bind(loop);
    Reg<Pred> fresh = b.setp(Compare::ne, b.ld<U32>(Space::shared, Address(at_4, w.partials + 128)), 0);
    b.add(v, 1, v);
    Reg<Pred> own = b.setp(Compare::eq, w.warp, v);
    for (size_t k = 0; k < r.accumulators.size(); ++k)
      with_partial(r.accumulators[k], [&]<class P>() {
        const Reg<P> carry{carries[k]};
        Reg<P> part = b.ld<P>(Space::shared, Address(at_8, w.partials + 64 * int64_t(k)));
        combine(b, r.accumulators[k].kind, carry, part, carry);
        b.when(fresh).mov(part, carry);
        b.when(own).mov(carry, Reg<P>{mine[k]});
      });
    b.add(at_4, 4, at_4);
    b.add(at_8, 8, at_8);
    b.when(b.setp(Compare::ne, v, warps)).bra(loop);
  }
  std::vector<Element> result;
  for (size_t k = 0; k < r.accumulators.size(); ++k)
    with_partial(r.accumulators[k], [&]<class P>() {
      const Accumulator& a = r.accumulators[k];
      if (with_carry)  // everyone has read the old one before the barrier
        b.when(first_thread).st<P>(Space::shared, w.carry_at(r.slot + static_cast<uint32_t>(k)), Reg<P>{carries[k]});
      Reg<P> previous{before[k]};
      b.when(whole);
      combine(b, a.kind, Reg<P>{mine[k]}, previous, previous);
      result.push_back(element(partial_type(a), previous));
    });
  return result;
}

// Adds what the threads' registers hold to the block's open cell, and clears them.
void flush(Walk& w) {
  Emitter& e = w.e;
  Builder& b = w.b;
  const LabelId clean = b.label();
  b.when(b.setp(Compare::eq, w.dirty, 0)).bra(clean);
  Reg<U32> warp_address = b.add(w.shared, b.shl(w.warp, 3));
  Reg<U32> lane_address = b.add(w.shared, b.shl(b.and_(e.tid, warps - 1), 3));
  Reg<Pred> lane0 = b.setp(Compare::eq, w.lane, 0), thread0 = b.setp(Compare::eq, e.tid, 0);
  std::vector<Accumulator> all;  // by slot
  for (const CellReduction& r : e.cell_reductions) all.insert(all.end(), r.accumulators.begin(), r.accumulators.end());
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
  for (size_t k = 0; k < all.size(); ++k)
    with_partial(all[k], [&]<class P>() {
      const Address at = w.carry_at(static_cast<uint32_t>(k));
      Reg<P> carry = combine(b, all[k].kind, b.ld<P>(Space::shared, at), Reg<P>{parts[k]});
      b.when(thread0).st<P>(Space::shared, at, carry);
      b.constant<P>(immediate<P>(identity(all[k])), Reg<P>{w.sums[k]});
    });
  b.constant<S32>(0, w.dirty);
  b.bar_sync();
  b.bind(clean);
}

// The steps that the variable's elements hang on.
std::vector<bool> steps_of_argument(const Emitter& e, VariableId v) {
  std::vector<bool> needed(e.function.variables.size()), wanted(e.steps.size());
  needed[index(v)] = true;
  for (size_t s = e.steps.size(); s-- > 0;) {
    const Step& step = e.steps[s];
    if (step.scalar || step.reduction || !needed[index(step.target)]) continue;
    wanted[s] = true;
    for (size_t k = 0; k < step.operands.size(); ++k)
      if (step.operands[k].kind == hir::Operand::variable && !reads_whole(step, k)) needed[step.operands[k].id] = true;
  }
  return wanted;
}

// Points the inputs at this thread's first element of the tile: elements lie a block apart.
void point_inputs(Walk& w) {
  Builder& b = w.b;
  Reg<U64> first = b.add(w.element, b.cvt<U64>(w.e.tid));
  for (Input& in : w.e.inputs) {
    if (!in.wanted) continue;
    const uint32_t shift = static_cast<uint32_t>(std::countr_zero(width_of(in.type)));
    in.pointer = b.add(b.ld_param(in.data), shift ? b.shl(first, shift) : first);
  }
}

// The next end at or after the open cell's; beyond everything when there is none.
void load_next_end(Walk& w) {
  Builder& b = w.b;
  b.constant<U64>(UINT64_MAX, w.next_end);
  Reg<U64> at = b.add(w.offsets(), b.shl(w.cell, 3));
  Reg<Pred> exists = b.setp(Compare::lt, w.cell, w.e.cells);
  b.when(exists).ld<U64>(Space::global, Address(at), w.next_end);
  b.when(exists).add(w.next_end, w.cell, w.next_end);
}

// Addresses and sizes of the vectors that the steps gather from: loaded where they are used.
void load_gathered(Emitter& e, const std::vector<bool>& wanted) {
  for (size_t s = 0; s < e.steps.size(); ++s) {
    if (!wanted[s]) continue;
    for (size_t k = 0; k < e.steps[s].operands.size(); ++k)
      if (reads_whole(e.steps[s], k)) e.gathered.at(e.steps[s].operands[k].variable_id()).load(e.b);
  }
}

// The reductions by argument, so that its elements are evaluated once.
std::vector<std::vector<const CellReduction*>> by_argument(const Emitter& e) {
  std::vector<std::vector<const CellReduction*>> groups;
  for (const CellReduction& r : e.cell_reductions) {
    if (!reduces(r)) continue;
    auto at = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g[0]->argument == r.argument; });
    if (at == groups.end()) at = groups.emplace(at);
    at->push_back(&r);
  }
  return groups;
}

void tile_without_ends(Walk& w) {
  Emitter& e = w.e;
  Builder& b = w.b;
  e.all_valid = true;
  point_inputs(w);
  start_input_items(e, false);
  load_all_items(e);
  for (const auto& group : by_argument(e)) {
    const std::vector<bool> wanted = steps_of_argument(e, group[0]->argument);
    load_gathered(e, wanted);
    const ItemPlan plan = start_items(e, wanted);
    for (e.item = 0; e.item < items; ++e.item) {
      evaluate_item(e, plan);
      const Element& value = e.values[index(group[0]->argument)];
      for (const CellReduction* r : group)
        for (size_t k = 0; k < r->accumulators.size(); ++k) {
          const Accumulator& a = r->accumulators[k];
          with_partial(a, [&]<class P>() {
            Reg<P> into{w.sums[r->slot + k]};
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
  }
  b.constant<S32>(1, w.dirty);
  b.add(w.place, places, w.place);
  b.add(w.element, places, w.element);
}

// Shared address of the staged value of the tile's element `at`: one slot in nine stays free, so that threads that read 8 apart use all banks.
Reg<U32> staged(Walk& w, Reg<U32> at, uint32_t shift) {
  return w.b.add(w.shared, w.b.shl(w.b.add(at, w.b.shr(at, 3)), shift));
}

// Stages the current item's values of one reduction, as staged_values makes them.
void stage(Walk& w, const CellReduction& r, uint32_t item, const std::vector<Element>& values) {
  Builder& b = w.b;
  const int64_t at = int64_t{item} * (threads + threads / 8);
  for (size_t k = 0; k < r.accumulators.size(); ++k) {
    if (r.accumulators[k].count) {
      b.st<U32>(Space::shared, Address(w.stage_counts, w.counted + at * 4), reg<U32>(values[k]));
    } else {
      with_partial(r.accumulators[k], [&]<class P>() {
        b.st<P>(Space::shared, Address(w.stage_values, w.values + at * 8), reg<P>(values[k]));
      });
    }
  }
}

// The item's value as it is staged for each accumulator: the identity where it does not count.
std::vector<Element> staged_values(Walk& w, const CellReduction& r) {
  Emitter& e = w.e;
  Builder& b = w.b;
  const Element& value = e.values[index(r.argument)];
  Reg<Pred> counts = active(e, value.mask);
  std::vector<Element> out;
  for (const Accumulator& a : r.accumulators) {
    if (a.count) {
      out.push_back(element(BasicType::i32, b.select<U32>(1, 0, counts)));
      continue;
    }
    with_partial(a, [&]<class P>() {
      const Element x = in_register(e, convert(e, value, partial_type(a)));
      Reg<P> y = b.constant<P>(immediate<P>(identity(a)));
      b.when(counts).mov(reg<P>(x), y);
      out.push_back(element(partial_type(a), y));
    });
  }
  return out;
}

struct Share {     // of a thread in a tile with ends
  Reg<U64> marks;  // byte k: place k is an end
  Reg<U32> first;  // of its elements, within the tile
  Reg<U64> cell;   // open where it starts
};

// Consumes the staged values of one reduction, stores the cells that end, and moves the block's carry on.
void consume(Walk& w, const CellReduction& r, const Share& share) {
  Builder& b = w.b;
  Reg<U64> marks = b.mov(share.marks);
  Reg<U32> at = b.mov(share.first);
  Reg<U64> cell = b.mov(share.cell);
  Reg<U32> left = b.constant<U32>(items);
  Reg<U32> seen = b.constant<U32>(0);
  std::vector<Element> open, heads;
  for (const Accumulator& a : r.accumulators)
    with_partial(a, [&]<class P>() {
      open.push_back(element(partial_type(a), b.constant<P>(immediate<P>(identity(a)))));
      heads.push_back(element(partial_type(a), b.constant<P>(immediate<P>(identity(a)))));
    });
  const LabelId loop = b.label(), ends = b.label(), stored = b.label(), next = b.label(), first = b.label();
  b.bind(loop);
  b.when(b.setp(Compare::ne, b.and_(b.cvt<U32>(marks), 1), 0)).bra(ends);
  for (size_t k = 0; k < r.accumulators.size(); ++k)
    with_partial(r.accumulators[k], [&]<class P>() {
      const Accumulator& a = r.accumulators[k];
      Reg<P> value;
      if constexpr (std::is_same_v<P, S64>) {
        if (a.count)
          value = b.cvt<S64>(b.ld<S32>(Space::shared, Address(staged(w, at, 2), w.counted)));
        else
          value = b.ld<P>(Space::shared, Address(staged(w, at, 3), w.values));
      } else {
        value = b.ld<P>(Space::shared, Address(staged(w, at, 3), w.values));
      }
      combine<P>(b, a.kind, reg<P>(open[k]), value, reg<P>(open[k]));
    });
  b.add(at, 1, at);
  b.bra(next);
  b.bind(ends);
  Reg<Pred> known = b.setp(Compare::ne, seen, 0);
  b.unless(known).bra(first);
  store_cell(w, r, open, cell, known);
  b.bra(stored);
  b.bind(first);  // its part before this thread is not known yet
  for (size_t k = 0; k < r.accumulators.size(); ++k)
    with_partial(r.accumulators[k], [&]<class P>() { b.mov(reg<P>(open[k]), reg<P>(heads[k])); });
  b.constant<U32>(1, seen);
  b.bind(stored);
  for (size_t k = 0; k < r.accumulators.size(); ++k)
    with_partial(r.accumulators[k],
                 [&]<class P>() { b.constant<P>(immediate<P>(identity(r.accumulators[k])), reg<P>(open[k])); });
  b.add(cell, 1, cell);
  b.bind(next);
  b.shr(marks, 8, marks);
  b.sub(left, 1, left);
  b.when(b.setp(Compare::ne, left, 0)).bra(loop);

  Reg<Pred> ended = b.setp(Compare::ne, seen, 0);
  std::vector<Element> before = parts_before(w, r, open, ended, true);
  const LabelId done = b.label(), inside = b.label();
  b.unless(ended).bra(done);
  for (size_t k = 0; k < r.accumulators.size(); ++k)
    with_partial(r.accumulators[k], [&]<class P>() {
      combine<P>(b, r.accumulators[k].kind, reg<P>(before[k]), reg<P>(heads[k]), reg<P>(heads[k]));
    });
  b.when(b.setp(Compare::ne, share.cell, w.first_cell)).bra(inside);
  Reg<U64> scratch = w.own_scratch();
  for (size_t k = 0; k < r.accumulators.size(); ++k)
    with_partial(r.accumulators[k], [&]<class P>() {
      b.when(ended).st<P>(Space::global, Address(scratch, 8 + 16 * int64_t(r.slot + k)), reg<P>(heads[k]));
    });
  b.bra(done);
  b.bind(inside);
  store_cell(w, r, heads, share.cell, ended);
  b.bind(done);
}

void tile_with_ends(Walk& w) {
  Emitter& e = w.e;
  Builder& b = w.b;
  e.all_valid = false;
  flush(w);
  // Mark the ends.
  Reg<U32> own = b.add(w.shared, b.shl(e.tid, 3));
  b.st_v2<U32>(Space::shared, Address(own, w.flags), b.constant<U32>(0), b.constant<U32>(0));
  b.bar_sync();
  {
    const LabelId mark = b.label(), marked = b.label();
    Reg<U64> cell = b.add(w.cell, b.cvt<U64>(e.tid));
    Reg<U64> from = b.add(w.offsets(), b.shl(cell, 3));
    Reg<U64> shift = b.sub(cell, w.place);
    b.bind(mark);
    b.when(b.setp(Compare::ge, cell, e.cells)).bra(marked);
    Reg<U64> at = b.add(b.ld<U64>(Space::global, Address(from)), shift);
    b.when(b.setp(Compare::ge, at, uint64_t{places})).bra(marked);
    b.st<ptx::U8>(Space::shared, Address(b.add(w.shared, b.cvt<U32>(at)), w.flags), 1);
    b.add(cell, threads, cell);
    b.add(from, 8 * threads, from);
    b.add(shift, threads, shift);
    b.bra(mark);
    b.bind(marked);
  }
  b.bar_sync();
  // Every thread's share: its marks, and the ends before it.
  const auto words = b.ld_v2<U32>(Space::shared, Address(own, w.flags));
  Share share;
  share.marks = b.pack<U64>(words[0], words[1]);
  Reg<U32> ends = b.add(b.popc(words[0]), b.popc(words[1]));
  Reg<U32> sum = b.mov(ends);
  for (uint32_t distance = 1; distance < 32; distance *= 2) {
    Reg<U32> other = b.shfl_sync(ShuffleMode::up, sum, distance, 0);
    b.when(b.setp(Compare::ge, w.lane, distance)).add(sum, other, sum);
  }
  Reg<U32> warp_address = b.add(w.shared, b.shl(w.warp, 2));
  b.when(b.setp(Compare::eq, w.lane, 31)).st<U32>(Space::shared, Address(warp_address, w.counts), sum);
  b.bar_sync();
  Reg<U32> before = b.sub(sum, ends), total = b.constant<U32>(0);
  for (uint32_t half = 0; half < 2; ++half) {
    const auto counts = b.ld_v4<U32>(Space::shared, Address(w.shared, w.counts + 16 * half));
    for (uint32_t v = 0; v < 4; ++v) {
      b.when(b.setp(Compare::gt, w.warp, 4 * half + v)).add(before, counts[v], before);
      b.add(total, counts[v], total);
    }
  }
  share.first = b.sub(b.shl(e.tid, 3), before);
  share.cell = b.add(w.cell, b.cvt<U64>(before));
  Reg<U64> rest = b.sub(b.add(e.n, e.cells), w.place);
  Reg<U32> elements = b.sub(b.cvt<U32>(b.min(rest, uint64_t{places})), total);
  // Elements, a block apart.
  e.room = b.sub(Builder::as<S32>(elements), Builder::as<S32>(e.tid));
  point_inputs(w);
  start_input_items(e, true);
  load_items(e);
  w.stage_values = staged(w, e.tid, 3);
  if (w.counts_selected) w.stage_counts = staged(w, e.tid, 2);
  for (const auto& group : by_argument(e)) {
    const std::vector<bool> wanted = steps_of_argument(e, group[0]->argument);
    load_gathered(e, wanted);
    const ItemPlan plan = start_items(e, wanted);
    // Staged at once for the first reduction, later for the others of the same argument.
    std::vector<std::vector<std::vector<Element>>> values(group.size());
    for (e.item = 0; e.item < items; ++e.item) {
      evaluate_item(e, plan);
      stage(w, *group[0], e.item, staged_values(w, *group[0]));
      for (size_t r = 1; r < group.size(); ++r) values[r].push_back(staged_values(w, *group[r]));
    }
    for (size_t r = 0; r < group.size(); ++r) {
      for (uint32_t i = 0; r > 0 && i < items; ++i) stage(w, *group[r], i, values[r][i]);
      b.bar_sync();
      consume(w, *group[r], share);
    }
  }
  b.add(w.cell, b.cvt<U64>(total), w.cell);
  b.add(w.element, b.cvt<U64>(elements), w.element);
  b.add(w.place, places, w.place);
  load_next_end(w);
}

// cell = number of cells whose end stands before `place`: 256 probes at a time.
void find_first_cell(Walk& w) {
  Emitter& e = w.e;
  Builder& b = w.b;
  const LabelId search = b.label(), found = b.label();
  Reg<U64> high = b.mov(e.cells);
  b.constant<U64>(0, w.cell);
  b.when(b.setp(Compare::eq, w.place, 0)).bra(found);
  b.bind(search);
  b.when(b.setp(Compare::ge, w.cell, high)).bra(found);
  Reg<U64> step = b.shr(b.add(b.sub(high, w.cell), threads - 1), 8);
  Reg<U64> probe = b.add(w.cell, b.mul_lo(step, b.cvt<U64>(e.tid)));
  Reg<U64> at = b.constant<U64>(UINT64_MAX);
  Reg<U64> from = b.add(w.offsets(), b.shl(probe, 3));
  Reg<Pred> exists = b.setp(Compare::lt, probe, high);
  b.when(exists).ld<U64>(Space::global, Address(from), at);
  b.when(exists).add(at, probe, at);
  Reg<U32> count = b.popc(b.ballot(b.setp(Compare::lt, at, w.place)));
  Reg<U32> warp_address = b.add(w.shared, b.shl(w.warp, 2));
  b.when(b.setp(Compare::eq, w.lane, 0)).st<U32>(Space::shared, Address(warp_address, w.counts), count);
  b.bar_sync();
  Reg<U32> total = b.constant<U32>(0);
  for (uint32_t half = 0; half < 2; ++half)
    for (Reg<U32> x : b.ld_v4<U32>(Space::shared, Address(w.shared, w.counts + 16 * half))) b.add(total, x, total);
  b.bar_sync();
  b.when(b.setp(Compare::eq, total, 0)).bra(found);  // not even the first probe: the end of `cell` is not before
  Reg<U64> wide = b.cvt<U64>(total);
  b.min(high, b.add(w.cell, b.mul_lo(step, wide)), high);
  b.add(w.cell, b.add(b.mul_lo(step, b.sub(wide, 1)), 1), w.cell);
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
  Reg<U64> start = b.add(all_scratch, b.mul_wide(from, stride));
  for (const CellReduction& r : e.cell_reductions) {
    if (!reduces(r)) continue;
    std::vector<Element> open;
    for (const Accumulator& a : r.accumulators)
      with_partial(
          a, [&]<class P>() { open.push_back(element(partial_type(a), b.constant<P>(immediate<P>(identity(a))))); });
    const auto field = [&](size_t k, bool tail) { return 8 + 16 * int64_t(r.slot + k) + (tail ? 8 : 0); };
    Reg<U32> seen = b.constant<U32>(0);
    {
      const LabelId loop = b.label(), done = b.label();
      Reg<U32> left = b.mov(count);
      Reg<U64> at = b.mov(start);
      b.bind(loop);
      b.when(b.setp(Compare::eq, left, 0)).bra(done);
      Reg<U64> word = b.ld<U64>(Space::global, volatile_access, Address(at));
      Reg<Pred> ended = b.setp(Compare::ne, word, 0);
      b.when(ended).constant<U32>(1, seen);
      for (size_t k = 0; k < r.accumulators.size(); ++k)
        with_partial(r.accumulators[k], [&]<class P>() {
          Reg<P> tail = b.ld<P>(Space::global, volatile_access, Address(at, field(k, true)));
          combine<P>(b, r.accumulators[k].kind, reg<P>(open[k]), tail, reg<P>(open[k]));
          b.when(ended).mov(tail, reg<P>(open[k]));
        });
      b.add(at, stride, at);
      b.sub(left, 1, left);
      b.bra(loop);
      b.bind(done);
    }
    b.bar_sync();  // the partials' area is free
    std::vector<Element> run = parts_before(w, r, open, b.setp(Compare::ne, seen, 0), false);
    {
      const LabelId loop = b.label(), done = b.label(), unended = b.label();
      Reg<U32> left = b.mov(count);
      Reg<U64> at = b.mov(start);
      b.bind(loop);
      b.when(b.setp(Compare::eq, left, 0)).bra(done);
      Reg<U64> word = b.ld<U64>(Space::global, volatile_access, Address(at));
      std::vector<RegisterId> tails;
      std::vector<Element> heads;
      for (size_t k = 0; k < r.accumulators.size(); ++k)
        with_partial(r.accumulators[k], [&]<class P>() {
          heads.push_back(element(partial_type(r.accumulators[k]),
                                  b.ld<P>(Space::global, volatile_access, Address(at, field(k, false)))));
          tails.push_back(b.ld<P>(Space::global, volatile_access, Address(at, field(k, true))).id);
          b.st<U64>(Space::global, Address(at, field(k, false)), 0);
          b.st<U64>(Space::global, Address(at, field(k, true)), 0);
        });
      Reg<Pred> ended = b.setp(Compare::ne, word, 0);
      b.unless(ended).bra(unended);
      for (size_t k = 0; k < r.accumulators.size(); ++k)
        with_partial(r.accumulators[k], [&]<class P>() {
          combine<P>(b, r.accumulators[k].kind, reg<P>(run[k]), reg<P>(heads[k]), reg<P>(heads[k]));
        });
      store_cell(w, r, heads, b.sub(word, 1), ended);
      for (size_t k = 0; k < r.accumulators.size(); ++k)  // the next cell starts anew
        with_partial(r.accumulators[k],
                     [&]<class P>() { b.constant<P>(immediate<P>(identity(r.accumulators[k])), reg<P>(run[k])); });
      b.bind(unended);
      for (size_t k = 0; k < r.accumulators.size(); ++k)
        with_partial(r.accumulators[k], [&]<class P>() {
          combine<P>(b, r.accumulators[k].kind, reg<P>(run[k]), Reg<P>{tails[k]}, reg<P>(run[k]));
        });
      b.add(at, stride, at);
      b.sub(left, 1, left);
      b.bra(loop);
      b.bind(done);
    }
  }
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

void plan_cells(Emitter& e) {
  struct Origin {
    size_t reduction = SIZE_MAX;
    std::vector<BasicType> conversions;
  };
  std::vector<Origin> origins(e.function.variables.size());
  for (const Step& s : e.steps) {
    if (e.form(s.target) != Form::cell) continue;
    Origin o;
    if (s.reduction) {
      const VariableId argument = s.operands[0].variable_id();
      CellReduction r{.result = s.target, .argument = argument, .builtin = s.builtin, .type = s.result};
      const bool selected = e.form(argument) == Form::selected;
      const AccumulatorPlan plan = accumulators_of(s.builtin, e.type_of(argument), selected);
      if (plan.value) {
        r.value = static_cast<int>(r.accumulators.size());
        r.accumulators.push_back({.kind = plan.kind, .type = plan.type, .argument = argument});
      }
      if (plan.count) {
        r.count = static_cast<int>(r.accumulators.size());
        r.accumulators.push_back(
            {.kind = Accumulator::add, .type = BasicType::i32, .count = true, .argument = argument});
      }
      o.reduction = e.cell_reductions.size();
      e.cell_reductions.push_back(std::move(r));
    } else {
      o = origins[s.operands[0].id];
    }
    o.conversions.insert(o.conversions.end(), s.casts.begin(), s.casts.end());
    o.conversions.push_back(e.type_of(s.target));
    origins[index(s.target)] = std::move(o);
  }
  for (uint32_t k = 0; k < e.outputs.size(); ++k) {
    const Origin& o = origins[index(e.outputs[k].variable)];
    if (e.outputs[k].kind != Output::cells || o.reduction == SIZE_MAX) continue;
    e.cell_reductions[o.reduction].stores.push_back({k, o.conversions});
  }
  std::erase_if(e.cell_reductions, [](const CellReduction& r) { return r.stores.empty(); });
  uint32_t slot = 0;
  for (CellReduction& r : e.cell_reductions) {
    r.slot = slot;
    slot += static_cast<uint32_t>(r.accumulators.size());
  }
}

uint32_t cell_scratch_bytes(const Emitter& e) {
  const uint32_t slots = slot_count(e);
  return slots ? 8 + 16 * slots : 0;
}

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
                    b.add(b.ld_param(out.data), shift ? b.shl(cell, shift) : cell), 0, {});
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
  w.slots = slot_count(e);
  const uint32_t stride = cell_scratch_bytes(e);
  for (const CellReduction& r : e.cell_reductions) w.counts_selected |= r.count >= 0;
  e.items = items;

  // Inputs that some reduction reads.
  std::vector<bool> read(e.function.variables.size());
  for (const CellReduction& r : e.cell_reductions) {
    if (!reduces(r)) continue;
    read[index(r.argument)] = true;
    const std::vector<bool> wanted = steps_of_argument(e, r.argument);
    for (size_t s = 0; s < e.steps.size(); ++s)
      for (const hir::Operand& o : e.steps[s].operands)
        if (wanted[s] && o.kind == hir::Operand::variable) read[o.id] = true;
  }
  for (Input& in : e.inputs) in.wanted = read[index(in.variable)];

  // Shared memory: marks of places, counts of warps, partial results of warps, staged values.
  w.flags = 0;
  w.counts = places;
  w.partials = w.counts + 4 * warps;
  w.carry = w.partials + 128 + 4 * warps;
  w.values = w.carry + 8 * int64_t{w.slots};
  w.counted = w.values + std::max<int64_t>(8 * (places + places / 8), 64 * int64_t{w.slots});
  const int64_t bytes = w.counted + (w.counts_selected ? 4 * (places + places / 8) : 0);
  SharedVariable shared = b.shared<U64>(e.code.name + "_cells", static_cast<uint64_t>(bytes + 7) / 8 + 1, 16);
  w.shared = b.address_of_32(shared);
  w.lane = b.and_(e.tid, 31);
  w.warp = b.shr(e.tid, 5);

  // This block's range.
  Reg<U64> total = b.add(e.n, e.cells);
  Reg<U32> tiles = b.cvt<U32>(b.shr(b.add(total, places - 1), std::countr_zero(places)));
  Reg<U32> each = b.div(b.add(tiles, b.sub(e.nctaid, 1)), e.nctaid);
  w.place = b.shl(b.cvt<U64>(b.mul_lo(e.ctaid, each)), std::countr_zero(places));
  w.end = b.min(b.add(w.place, b.shl(b.cvt<U64>(each), std::countr_zero(places))), total);
  w.cell = b.constant<U64>(0);
  w.element = b.constant<U64>(0);
  w.first_cell = b.constant<U64>(0);
  w.next_end = b.constant<U64>(0);
  w.dirty = b.constant<S32>(0);
  for (const CellReduction& r : e.cell_reductions)
    for (const Accumulator& a : r.accumulators)
      with_partial(a, [&]<class P>() {
        w.sums.push_back(b.constant<P>(immediate<P>(identity(a))).id);
        // Every thread stores the same.
        b.st<P>(Space::shared, w.carry_at(static_cast<uint32_t>(w.sums.size()) - 1), Reg<P>{w.sums.back()});
      });
  b.bar_sync();
  const LabelId loop = b.label(), with_ends = b.label(), walked = b.label();
  b.when(b.setp(Compare::ge, w.place, w.end)).bra(walked);
  find_first_cell(w);
  b.mov(w.cell, w.first_cell);
  b.sub(w.place, w.cell, w.element);
  load_next_end(w);

  e.in_loop = true;
  b.bind(loop);
  b.when(b.setp(Compare::ge, w.place, w.end)).bra(walked);
  b.when(b.setp(Compare::lt, w.next_end, b.add(w.place, places))).bra(with_ends);
  tile_without_ends(w);
  b.bra(loop);
  b.bind(with_ends);
  tile_with_ends(w);
  b.bra(loop);
  b.bind(walked);
  e.in_loop = false;
  flush(w);

  // Publish, take a ticket (as in reduce.cpp).
  const LabelId waiting = b.label(), done = b.label();
  Reg<Pred> thread0 = b.setp(Compare::eq, e.tid, 0);
  b.bar_sync();
  b.unless(thread0).bra(waiting);
  Reg<U64> word = b.select<U64>(0, 1, b.setp(Compare::eq, w.cell, w.first_cell));
  b.when(b.setp(Compare::ne, w.cell, w.first_cell)).add(w.first_cell, 1, word);
  Reg<U64> own = w.own_scratch();
  b.st<U64>(Space::global, Address(own), word);
  for (const CellReduction& r : e.cell_reductions)
    for (size_t k = 0; k < r.accumulators.size(); ++k)
      with_partial(r.accumulators[k], [&]<class P>() {
        b.st<P>(Space::global, Address(own, 16 + 16 * int64_t(r.slot + k)),
                b.ld<P>(Space::shared, w.carry_at(r.slot + static_cast<uint32_t>(k))));
      });
  b.membar(ptx::Scope::gpu);
  Reg<U32> ticket = b.atom<U32>(ptx::AtomicOp::add, Space::global, Address(b.ld_param(e.scratch), finished_counter), 1);
  b.st<U32>(Space::shared, Address(w.shared, w.counts), ticket);
  b.bind(waiting);
  b.bar_sync();
  Reg<U32> mine = b.ld<U32>(Space::shared, Address(w.shared, w.counts));
  b.when(b.setp(Compare::ne, mine, b.sub(e.nctaid, 1))).bra(done);
  b.membar(ptx::Scope::gpu);
  combine_blocks(w, w.all_scratch(), stride);
  Reg<U64> scratch = b.ld_param(e.scratch);
  b.when(thread0).st<U32>(Space::global, Address(scratch, finished_counter), 0);
  b.bind(done);
}

}  // namespace rndn::codegen
