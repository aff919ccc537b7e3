// Groups below an outer join: where each row that a LEFT or RIGHT join keeps is a group of its own,
// the other side's rows are grouped by the join's key, and the kept rows look their group up
// (W. P. Yan, P.-A. Larson, "Eager aggregation and lazy aggregation", VLDB 1995).
//
//   aggregate(left join(L, R, l = r), by what tells the rows of L apart, f(R's columns) ..)
//   = left join(L, aggregate(R, by r, f ..), l = r), count 0 in place of null
//
// In: an aggregation whose input, below projections of columns, is an outer join with one equality,
// of a key that is unique among the kept rows and that a table has (joins.cpp, 1 and 2). Out: no
// pair of rows is made, and R's filters are masks of the kernel that reduces. R's rows that no kept
// row may meet are left out before (reductions.cpp).
// Cost: a grouping of R and a lookup per kept row.
// Left out: COUNT(*), which counts rows that met none, FILTER, arguments that are no columns of R,
// sums that may overflow (of a group that no row meets, too), aggregates that depend on an order of
// rows, further conditions of the join; at most 16 sides of a query are reduced in either way.
#include <algorithm>

#include "frontend/sql/translator.h"

namespace rndn::sql {

namespace {

// Null, or 0 of COUNT, where all values are null, and in any order of rows the same.
bool is_of_values(Aggregate f) {
  switch (f) {
    case Aggregate::count:
    case Aggregate::sum:
    case Aggregate::sum_no_overflow:
    case Aggregate::avg:
    case Aggregate::mean:
    case Aggregate::min:
    case Aggregate::max:
    case Aggregate::bool_and:
    case Aggregate::bool_or: return true;
    default: return false;
  }
}

bool is_sum(Aggregate f) {
  return f == Aggregate::sum || f == Aggregate::sum_no_overflow || f == Aggregate::avg ||
         f == Aggregate::mean;
}

}  // namespace

// None: it is not of that form.
std::optional<Relation> Translator::grouped_below_join(const Node& n) {
  if (n.set_count != 0 || n.grouping_count != 0 || n.groups.count == 0) return std::nullopt;
  const auto reduces = [&](const Reduction& r) { return &plan_[r.of.groups] == &n; };
  if (std::any_of(reductions_.begin(), reductions_.end(), reduces)) return std::nullopt;
  // The columns of the join that are read.
  const NodeId child = plan_.of(n.children)[0];
  NodeId below = child;
  while (plan_[below].op == Operator::project) below = plan_.of(plan_[below].children)[0];
  const Node& j = plan_[below];
  const bool is_right = j.join == JoinType::right;
  if (j.op != Operator::join || !(is_right || j.join == JoinType::left) ||
      j.expressions.count != 0 || j.conditions.count != 1)
    return std::nullopt;
  const Condition& condition = plan_.of(j.conditions)[0];
  if (condition.comparison != Function::equal) return std::nullopt;
  const auto of_join = [&](ExpressionId e) -> std::optional<uint32_t> {
    if (plan_[e].kind != Expression::column) return std::nullopt;
    NodeId node = child;
    uint32_t at = plan_[e].index;
    if (!column_below(node, at) || node != below) return std::nullopt;
    return at;
  };
  std::vector<uint32_t> keys, values;
  for (ExpressionId e : plan_.of(n.groups)) {
    const std::optional<uint32_t> at = of_join(e);
    if (!at) return std::nullopt;
    keys.push_back(*at);
  }
  for (ExpressionId e : plan_.of(n.expressions)) {
    const Expression& x = plan_[e];
    if (x.kind != Expression::aggregate || !is_of_values(x.aggregate_function) ||
        !is_none(x.filter) || x.orders.count != 0 || x.arguments.count != 1)
      return std::nullopt;
    const std::optional<uint32_t> at = of_join(plan_.of(x.arguments)[0]);
    if (!at) return std::nullopt;
    values.push_back(*at);
  }
  if (++reduced_ > most_reduced) return std::nullopt;
  const std::span<const NodeId> children = plan_.of(j.children);
  const Relation sides[] = {relation(children[0]), relation(children[1])};
  if (error_) return std::nullopt;
  const Relation &kept = sides[is_right ? 1 : 0], &other = sides[is_right ? 0 : 1];
  if (kept.space == one_row || other.space == one_row) return std::nullopt;
  // A column that leaves the join, if it is one of that side's.
  const auto projected = [](const Relation& r, bool projects, std::span<const uint32_t> map) {
    if (!projects) return r.columns;
    std::vector<Cell> out;
    for (uint32_t at : map) out.push_back(r.columns[at]);
    return out;
  };
  const std::vector<Cell> left = projected(sides[0], j.projects, plan_.of(j.projection));
  const std::vector<Cell> right =
      projected(sides[1], j.right_projects, plan_.of(j.right_projection));
  const auto cell = [&](uint32_t at, bool of_kept) -> std::optional<Cell> {
    const bool is_of_right = at >= left.size();
    if (is_of_right) at -= static_cast<uint32_t>(left.size());
    const std::vector<Cell>& side = is_of_right ? right : left;
    if ((is_of_right == is_right) != of_kept || at >= side.size()) return std::nullopt;
    return side[at];
  };
  Relation out{kept.space, kept.mask, {}}, in{other.space, other.mask, {}};
  for (uint32_t at : keys) {
    const std::optional<Cell> key = cell(at, true);
    if (!key) return std::nullopt;
    out.columns.push_back(*key);
  }
  if (!tell_apart(kept.space, out.columns)) return std::nullopt;
  for (size_t i = 0; i < values.size(); ++i) {
    const std::optional<Cell> value = cell(values[i], false);
    if (!value) return std::nullopt;
    const Expression& x = plan_[plan_.of(n.expressions)[i]];
    if (is_sum(x.aggregate_function) && !hir::is_float(g_[value->value].type) &&
        !(rndn::sql::join(g_[value->value].bounds, Bounds::of(0, 0)) *
          Bounds::of(0, static_cast<__int128>(g_[other.space].most_rows)))
             .fits_i64())
      return std::nullopt;
    const size_t place = plan_[plan_.of(x.arguments)[0]].index;  // in what is grouped in the plan
    if (place >= in.columns.size()) in.columns.resize(place + 1);
    in.columns[place] = *value;
  }
  On on;
  on.conditions = {condition};
  std::vector<Key> joined = keys_of(is_right ? swapped(on) : on, kept, other);
  if (error_ || joined.size() != 1) return std::nullopt;
  const Key key = joined[0];
  if (!is_none(key.left.valid) || !g_[key.left.value].unique || g_[key.right.value].unique)
    return std::nullopt;
  reduce_by(in, kept, joined);
  in.mask = g_.and_(in.mask, key.right.valid);
  const SpaceId rows = is_none(in.mask) ? in.space : g_.kept(in.space, in.mask);
  const Cell grouped{rows == in.space ? g_.spread(key.right.value, rows)
                                      : g_.keep(rows, key.right.value),
                     nothing, key.right.type};
  const Groups g = group(rows, {grouped});
  Relation found{g.space, nothing, {pick(grouped, g.first)}};
  for (ExpressionId e : plan_.of(n.expressions)) {
    found.columns.push_back(aggregate_cell(plan_[e], in, g));
    if (error_) return std::nullopt;
  }
  joined[0].right = found.columns[0];
  size_t at = 0;
  bool is_found = false;
  for (const bool lifting : {false, true})
    is_found = is_found || look_up_any(found, joined, false, lifting, at);
  if (!is_found) return std::nullopt;
  const VectorId met = is_none(found.mask) ? nothing : g_.spread(found.mask, kept.space);
  for (size_t i = 0; i < values.size(); ++i) {
    const Expression& x = plan_[plan_.of(n.expressions)[i]];
    const Cell& c = found.columns[i + 1];
    const VectorId valid = g_.and_(c.valid, met);
    Cell value = is_none(valid) ? c : canonical(c.type, c.value, valid);
    if (x.aggregate_function == Aggregate::count) value.valid = nothing;
    out.columns.push_back(value);
  }
  return out;
}

}  // namespace rndn::sql
