// Where elements lie: the index of the current item, and elements read as far from the end as the item is from the beginning, of a vector or of a
// cell. The cell of an item is found by binary search in the offsets: the last one that begins at or before it, since empty cells begin where the
// next one does. All threads take the same number of steps. Cost: two loads and one per doubling of the number of cells, per item.
#include "ptx/codegen/emitter.h"

namespace rndn::codegen {

using ptx::Compare;

Element item_index(Emitter& e) {
  if (!e.numbers.empty()) return element(BasicType::i64, e.b.cvt<S64>(e.numbers[e.item]));
  const uint32_t offset = e.local_offset(e.item);
  Reg<S64> first = Builder::as<S64>(e.first_index);
  return element(BasicType::i64, offset ? e.b.add(first, offset) : first);
}

Element mirrored(Emitter& e, hir::VariableId v) {
  Reg<S64> last = e.b.sub(Builder::as<S64>(e.gathered.at(v).size), 1);
  if (e.in_loop) last = e.b.sub(last, reg<S64>(item_index(e)));
  Reg<Pred> outside;  // not reported: only items beyond the end are
  const Element x = gather(e, v, element(BasicType::i64, last), 0, &outside);
  return convert(e, x, e.type_of(v));
}

Element mirrored_in_cell(Emitter& e, hir::VariableId v) {
  Builder& b = e.b;
  Reg<U64> item = Builder::as<U64>(reg<S64>(item_index(e)));
  Reg<U64> offsets = b.ld_param(e.offsets);
  Reg<U32> cells = b.cvt<U32>(e.cells);
  Reg<U32> cell = b.constant<U32>(0), step = b.shl(b.constant<U32>(1), b.bfind(cells));
  const ptx::LabelId loop = b.here();
  Reg<U32> probe = b.add(cell, step);
  Reg<U64> begin = b.constant<U64>(UINT64_MAX);
  Reg<U64> begin_at = b.mad_wide(probe, 8u, offsets);
  b.when(b.setp(Compare::lt, probe, cells)).ld<U64>(Space::global, Address(begin_at), begin);
  b.when(b.setp(Compare::le, begin, item)).mov(probe, cell);
  b.shr(step, 1, step);
  b.when(b.setp(Compare::ne, step, 0)).bra_uni(loop);
  Reg<U64> at = b.mad_wide(cell, 8u, offsets);
  Reg<U64> both_ends = b.add(b.ld<U64>(Space::global, Address(at)), b.ld<U64>(Space::global, Address(at, 8)));
  Reg<U32> row = b.cvt<U32>(b.sub(b.sub(both_ends, 1), item));
  const BasicType type = e.type_of(v);
  const Gathered& from = e.gathered.at(v);
  return load_where(e, type, from.stored, from.data, row, active(e, {}));
}

}  // namespace rndn::codegen
