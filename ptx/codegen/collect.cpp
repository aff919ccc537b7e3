// Collecting: where few elements count, as conditions say that follow from their columns alone, warps evaluate those
// conditions for all elements and the rest for those that are left, with all lanes, and not where one lane in many has one.
//
//   1. What all effects of a loop are selected by (guards.cpp), and follows from loaded elements, is evaluated for eight
//      elements of each thread, whose loads are all in flight. A ballot tells every lane where it puts its element, in
//      shared memory of its warp's own: the elements stay in order.
//   2. The rest - look-ups, what is read at computed places, columns that no condition reads - is evaluated for one of
//      these or several per lane, the conditions being known to hold. Loads of columns are of the element's own number.
// Kernels that store selections do both tile by tile, so that these keep their order; the positions that they note take
// the place of collected ones, which have been read. Kernels that reduce keep what is less than a warp takes for the
// next tile. (Compare Y. Yuan, R. Lee, X. Zhang, "The yin and yang of processing data warehousing queries on GPU
// devices", VLDB 2013; H. Funke, J. Teubner, "Data-parallel query processing on non-uniform data", VLDB 2020.)
// Whether it pays hangs on how few are left: KernelCode::collected says which conditions those are, the run estimates the share
// (runtime/run/estimate.h) and asks for such code by KernelEncodings::collects. Without tables and places to read
// at there is nothing to gain: the loads of the rest would be no fewer. Where two plain gathers are all of the rest,
// there was nothing either (docs/measurements/limits.tsv, H100): what is saved are the instructions of lanes without one.
// What is read at computed places may be an error of any row, so that rows are collected only where bounds of columns keep all
// positions inside, as those of SQL's foreign keys that count rows.
// Cost: per element a ballot, a count and a guarded store. Left out: lists; loops that store a vector; folds of kernels
// that store no selection, whose entries need the shared memory; conditions that follow from gathers.
#include <algorithm>

#include "ptx/codegen/emitter.h"

namespace rndn::codegen {

Conditions find_collected(Emitter& e, const Marks& wanted) {
  if (e.kernel.list || !e.cell_reductions.empty() || (e.accumulators.empty() && e.scans.empty())) return {};
  if (e.scans.empty() && !e.sinks.empty()) return {};
  if (!e.scans.empty() &&
      std::all_of(e.scans.begin(), e.scans.end(), [](const Scan& s) { return s.early || s.evaluate; }))
    return {};
  if (std::any_of(e.definitions.begin(), e.definitions.end(), [](uint8_t n) { return n > 1; })) return {};
  for (const Output& out : e.outputs)
    if (out.kind == Output::vector || out.kind == Output::scattered || out.kind == Output::cells ||
        out.kind == Output::rows)
      return {};
  bool waits = false;
  for (size_t k = 0; k < e.steps.size(); ++k)
    waits |= wanted[k] && e.steps[k].call &&
             (e.steps[k].builtin == Builtin::gpu_probe || e.steps[k].builtin == Builtin::index);
  if (!waits) return {};
  const Conditions found = conditions_of_all(e, wanted, early_steps(e, wanted));
  if (found.empty()) return {};
  e.code.collected = found;
  return found;
}

void collect_items(Emitter& e, const Conditions& conditions, const Marks& steps, Reg<U32> first, uint32_t unit,
                   Reg<U32> cursor) {
  Builder& b = e.b;
  note_reads(e, steps, std::nullopt);
  load_items(e);
  const ItemPlan plan = start_items(e, steps, marks(e.steps.size()));
  for (e.item = 0; e.item < e.items; ++e.item) {
    evaluate_item(e, plan);
    Reg<Pred> holds;
    for (hir::VariableId v : conditions) holds = both(e, holds, reg<Pred>(in_register(e, e.values[index(v)])));
    holds = active(e, holds);
    Reg<U32> votes = b.ballot(holds), own = e.item ? b.add(first, e.local_offset(e.item)) : first;
    Reg<U32> to = b.mad_lo(b.popc(b.and_(votes, e.lanes_below)), unit, cursor);
    b.when(holds);
    if (unit == 4)
      b.st<U32>(Space::shared, Address(to), own);
    else
      b.emit(ptx::Opcode::st, ptx::Type::u16, {.space = Space::shared}, {}, {Address(to).operand, Builder::use(own)});
    b.mad_lo(b.popc(votes), unit, cursor, cursor);
  }
  e.within.clear();
}

void take_collected(Emitter& e, uint32_t unit, Reg<U32> at, Reg<U32> tile_begin) {
  Builder& b = e.b;
  e.within.clear();
  e.numbers.clear();
  e.places.clear();
  for (uint32_t item = 0; item < e.items; ++item) {
    Reg<Pred> inside = within(e, item);
    e.within.push_back(inside);
    Reg<U32> x = b.constant<U32>(0);
    b.when(inside);
    const Address from(at, int64_t{e.local_offset(item)} * unit);
    if (unit == 4)
      b.ld<U32>(Space::shared, from, x);
    else
      b.emit(ptx::Opcode::ld, ptx::Type::u16, {.space = Space::shared}, {Builder::use(x)}, {from.operand});
    if (unit != 4) e.places.push_back(x);
    e.numbers.push_back(unit == 4 ? x : b.add(tile_begin, x));
  }
  // Other lanes put positions where these were.
  if (unit != 4) b.bar_warp_sync();
}

void end_collected(Emitter& e) {
  e.given.clear();
  e.numbers.clear();
  e.places.clear();
  e.within.clear();
}

}  // namespace rndn::codegen
