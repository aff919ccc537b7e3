// ORDER BY, LIMIT, OFFSET and the first rows of an order.
//
// The first k rows are written as the cut that the outliner knows (outliner/top.cpp): positions
// below k of the permutation. Where nulls may be, whether there is a value is a key before it.
// Constant keys order nothing.
#include "frontend/sql/translator.h"

namespace rndn::sql {

using hir::BasicType;

VectorId Translator::permutation(const Relation& r, std::span<const OrderKey> keys) {
  return permutation(r.space, sort_keys(r, keys));
}

std::vector<Translator::SortKey> Translator::sort_keys(const Relation& r,
                                                       std::span<const OrderKey> keys) {
  std::vector<SortKey> out;
  for (const OrderKey& key : keys)
    out.push_back({evaluate(key.expression, r), key.descending, key.nulls_first});
  return out;
}

VectorId Translator::permutation(SpaceId space, std::span<const SortKey> keys) {
  std::vector<VectorId> columns;
  std::string ascending;
  const auto add = [&](VectorId v, bool up) {
    if (g_[v].space == one_row) return;
    columns.push_back(v);
    ascending += fmt::format("{}{}", ascending.empty() ? "" : ",", up ? 1 : 0);
  };
  for (const SortKey& key : keys) {
    if (!is_none(key.cell.valid)) add(key.cell.valid, key.nulls_first);
    // NaN is the greatest number, which `order` has last in both directions.
    const VectorId v = comparable(key.cell).value;
    if (key.descending && hir::is_float(g_[v].type))
      add(g_.map("neq", {v, v}, BasicType::boolean), false);
    for (VectorId word : words_of(v)) add(word, !key.descending);
  }
  if (columns.empty()) return nothing;
  const VectorId list = columns.size() == 1
                            ? columns[0]
                            : g_.call("@list(", columns, BasicType::i64, space, "keys");
  const SpaceId sorted = g_.space(g_[space].most_rows);
  const VectorId o = g_.call("@order(", {list}, BasicType::i64, sorted, "order",
                             Bounds::of(0, static_cast<__int128>(g_[space].most_rows)),
                             columns.size() == 1 ? fmt::format(", {}:bool)", ascending)
                                                 : fmt::format(", ({}):bool)", ascending));
  g_.change(o).unique = true;
  g_.set_witness(g_[o].space, o);
  return o;
}

// The row numbers that LIMIT and OFFSET leave of a vector of them.
VectorId Translator::first_rows(VectorId rows, uint64_t limit, bool has_limit, uint64_t offset) {
  const uint64_t most = INT64_MAX;
  if (has_limit && limit < most - std::min(offset, most)) {
    const VectorId n = g_.call("@len(", {rows}, BasicType::i64, one_row, "count");
    const VectorId positions = g_.call("@range(", {n}, BasicType::i64, g_[rows].space, "position");
    const VectorId within =
        g_.map("lt", {positions, g_.integer(BasicType::i64, limit + offset)}, BasicType::boolean);
    const SpaceId top = g_.space(static_cast<double>(limit + offset));
    const VectorId where = g_.call("@where(", {within}, BasicType::i64, top, "within");
    g_.change(where).unique = true;
    rows = g_.pick(rows, where);
    g_.name(rows, "top");
    g_.set_witness(g_[where].space, rows);
  }
  if (offset > 0) {
    const SpaceId left = g_.space(g_[g_[rows].space].most_rows);
    const Vector before = g_[rows];
    rows = g_.call("@drop(", {g_.integer(BasicType::i64, std::min(offset, most)), rows},
                   BasicType::i64, left, "rest", before.bounds);
    g_.change(rows).unique = before.unique;
    g_.set_witness(g_[rows].space, rows);
  }
  return rows;
}

Relation Translator::order(const Node& n) {
  Relation r = compact(relation(plan_.of(n.children)[0]));
  VectorId rows = permutation(r, plan_.of(n.orders));
  if (n.op == Operator::top || !is_none(rows)) {
    if (is_none(rows)) rows = g_.spread(g_.rows(r.space), r.space);
    if (n.op == Operator::top) rows = first_rows(rows, n.limit, true, n.offset);
    pick(r, rows);
  }
  project(r, n.projects, n.projection);
  return r;
}

Relation Translator::limit(const Node& n) {
  Relation r = compact(relation(plan_.of(n.children)[0]));
  VectorId rows = g_.rows(r.space);
  if (r.space == one_row) {
    // One row: kept or not.
    const bool stays = n.offset == 0 && (!n.has_limit || (n.is_percent ? n.percent >= 100 : n.limit > 0));
    if (!stays) r.mask = g_.integer(BasicType::boolean, 0);
    return r;
  }
  const uint64_t most = INT64_MAX;
  if (n.is_percent) {  // rounded down
    const BasicType real = BasicType::f64;
    const VectorId share = g_.map("mul", {g_.map("div", {g_.cast(g_.count(r.space), real), g_.real(real, 100)}, real),
                                          g_.real(real, n.percent)}, real);
    VectorId end = g_.cast(g_.map("floor", {share}, real), BasicType::i64);
    if (n.offset > 0)
      end = g_.map("plus", {end, g_.integer(BasicType::i64, std::min(n.offset, most / 2))}, BasicType::i64);
    r.mask = g_.map("lt", {rows, end}, BasicType::boolean);
  } else if (n.has_limit && n.limit < most - std::min(n.offset, most))
    r.mask =
        g_.map("lt", {rows, g_.integer(BasicType::i64, n.limit + n.offset)}, BasicType::boolean);
  if (n.offset > 0)
    r.mask =
        g_.and_(r.mask, g_.map("geq", {rows, g_.integer(BasicType::i64, std::min(n.offset, most))},
                               BasicType::boolean));
  return r;
}

}  // namespace rndn::sql
