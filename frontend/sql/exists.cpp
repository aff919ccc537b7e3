// EXISTS and its kin with a comparison beside the equalities.
//
// The planner joins the subquery's rows with the distinct values that the outer rows refer to, and
// then the outer rows with that, nulls equal:
//
//   semi(L, join(A, distinct k.. of L, conditions of A and k..), k.. IS NOT DISTINCT FROM k..)
//
// 1. `direct` gives back what was written: semi(L, A, conditions of A and L) (the inverse of
//    T. Neumann, A. Kemper, "Unnesting arbitrary queries", BTW 2015). It is made where every
//    distinct value is bound to the outer row's own, so that a pair of the small join is one of the
//    large, and where A reads nothing of L.
// 2. `met_by_another`: whether a row of the right has the same keys and another value y than x.
//    Then its group's least or greatest y is not x: a lookup of two numbers, where the rows' keys
//    are those of a table (joins.cpp, 1 and 2). Only rows whose key the left has are grouped
//    (reductions.cpp).
//
// Cost: 1. O(size of the two joins); 2. a grouping of the right by its keys. Left out: several
// comparisons that are no equalities, other comparisons than <> and IS DISTINCT FROM, values of floats,
// text and 128 bits.
#include <algorithm>

#include "frontend/sql/translator.h"

namespace rndn::sql {

using hir::BasicType;

namespace {

bool is_semi(JoinType t) {
  return t == JoinType::semi || t == JoinType::anti || t == JoinType::mark || t == JoinType::right_semi ||
         t == JoinType::right_anti;
}

}  // namespace

// The column of the node that is column `at` of what leaves it, below projections; `node` becomes
// that node. False: it is computed.
bool Translator::column_below(NodeId& node, uint32_t& at) const {
  while (plan_[node].op == Operator::project) {
    const Node& n = plan_[node];
    const std::span<const uint32_t> projection = plan_.of(n.projection);
    const std::span<const ExpressionId> expressions = plan_.of(n.expressions);
    if (n.projects && at >= projection.size()) return false;  // no column: said where it is read
    if (n.projects) at = projection[at];
    if (at >= expressions.size()) return false;
    const Expression& e = plan_[expressions[at]];
    if (e.kind != Expression::column) return false;
    at = e.index;
    node = plan_.of(n.children)[0];
  }
  return true;
}

// Does the plan below `node` read that common table expression?
bool Translator::reads_cte(NodeId node, uint32_t cte) const {
  const Node& n = plan_[node];
  if (n.op == Operator::cte_ref && n.cte == cte) return true;
  const std::span<const NodeId> children = plan_.of(n.children);
  return std::any_of(children.begin(), children.end(), [&](NodeId child) { return reads_cte(child, cte); });
}

std::optional<Translator::Direct> Translator::direct(const Node& n) const {
  if (!is_semi(n.join) || n.expressions.count > 0) return std::nullopt;
  const bool is_swapped = n.join == JoinType::right_semi || n.join == JoinType::right_anti;
  const NodeId outer = plan_.of(n.children)[is_swapped ? 1 : 0];
  const NodeId subquery = plan_.of(n.children)[is_swapped ? 0 : 1];
  if (plan_[outer].op != Operator::cte_ref || plan_[outer].projects) return std::nullopt;
  NodeId below = subquery;
  while (plan_[below].op == Operator::project) below = plan_.of(plan_[below].children)[0];
  const Node& pairs = plan_[below];
  if (pairs.op != Operator::join || pairs.join != JoinType::inner || pairs.expressions.count > 0) return std::nullopt;
  // Which side holds the distinct values.
  const auto is_distinct = [&](NodeId id) {
    const Node& d = plan_[id];
    if (d.op != Operator::aggregate || d.projects || d.expressions.count > 0 || d.set_count > 0 || d.grouping_count > 0)
      return false;
    const Node& from = plan_[plan_.of(d.children)[0]];
    return from.op == Operator::cte_ref && from.cte == plan_[outer].cte && !from.projects;
  };
  const std::span<const NodeId> sides = plan_.of(pairs.children);
  const size_t side = is_distinct(sides[1]) ? 1 : 0;
  if (!is_distinct(sides[side]) || reads_cte(sides[1 - side], plan_[outer].cte)) return std::nullopt;
  const std::span<const ExpressionId> values = plan_.of(plan_[sides[side]].groups);
  const auto column = [&](ExpressionId e) -> std::optional<uint32_t> {
    if (plan_[e].kind != Expression::column) return std::nullopt;
    return plan_[e].index;
  };
  const auto of_distinct = [&](const Condition& c) { return column(side == 1 ? c.right : c.left); };
  const auto of_rows = [&](const Condition& c) { return side == 1 ? c.left : c.right; };
  // The column of a side of the join that is column `at` of what leaves it.
  const auto side_of = [&](uint32_t at, size_t& from) -> std::optional<uint32_t> {
    const auto listed = [&](bool projects, Range<uint32_t> map) -> std::optional<std::span<const uint32_t>> {
      if (!projects) return std::nullopt;
      return plan_.of(map);
    };
    const auto left = listed(pairs.projects, pairs.projection);
    if (!left) return std::nullopt;  // its width is not told
    if (at < left->size()) {
      from = 0;
      return (*left)[at];
    }
    at -= static_cast<uint32_t>(left->size());
    from = 1;
    if (const auto right = listed(pairs.right_projects, pairs.right_projection)) {
      if (at >= right->size()) return std::nullopt;
      return (*right)[at];
    }
    return at;
  };
  std::vector<ExpressionId> bound(values.size(), none<ExpressionId>());  // of L, for each value
  for (const Condition& c : plan_.of(n.conditions)) {
    if (!is_equality(c.comparison)) return std::nullopt;
    const ExpressionId of_outer = is_swapped ? c.right : c.left;
    const std::optional<uint32_t> own = column(of_outer);
    std::optional<uint32_t> at = column(is_swapped ? c.left : c.right);
    if (!own || !at) return std::nullopt;
    NodeId node = subquery;
    if (!column_below(node, *at) || node != below) return std::nullopt;
    size_t from = 0;
    at = side_of(*at, from);
    if (!at) return std::nullopt;
    std::optional<uint32_t> value;
    if (from == side) {
      value = at;
    } else {
      for (const Condition& inner : plan_.of(pairs.conditions))
        if (inner.comparison == Function::equal && column(of_rows(inner)) == at && of_distinct(inner))
          value = of_distinct(inner);
    }
    if (!value || *value >= values.size() || column(values[*value]) != own) return std::nullopt;
    bound[*value] = of_outer;
  }
  if (std::any_of(bound.begin(), bound.end(), [](ExpressionId e) { return is_none(e); })) return std::nullopt;
  Direct out{sides[1 - side], {}};
  for (const Condition& c : plan_.of(pairs.conditions)) {
    const std::optional<uint32_t> value = of_distinct(c);
    if (!value || *value >= bound.size()) return std::nullopt;
    const Condition outer_first{side == 1 ? mirror_of(c.comparison) : c.comparison, bound[*value], of_rows(c)};
    out.conditions.push_back(outer_first);
  }
  return out;
}

// For each row on the left whether the right has one with the same keys and another value. None: the
// condition is another, or the keys are not looked up.
VectorId Translator::met_by_another(const Relation& left, const Relation& right, const std::vector<Key>& keys,
                                    const On& on) {
  const auto differs = std::find_if(on.conditions.begin(), on.conditions.end(), [](const Condition& c) {
    return c.comparison == Function::not_equal || c.comparison == Function::distinct_from;
  });
  if (!on.others.empty() || on.every_column || keys.empty() || differs == on.conditions.end() ||
      keys.size() + 1 != on.conditions.size() || left.space == one_row || right.space == one_row)
    return nothing;
  Cell x = evaluate(differs->left, left), y = evaluate(differs->right, right);
  if (error_) return nothing;
  unify(x, y);
  const BasicType type = g_[y.value].type;
  if (error_ || type == BasicType::boolean || hir::is_wide(type) || !limit_of(type, true))
    return nothing;
  const bool nulls_differ = differs->comparison == Function::distinct_from;
  Relation counted{right.space, right.mask, {}};
  for (const Key& k : keys) {
    if (k.nulls_equal && !(is_none(k.left.valid) && is_none(k.right.valid))) return nothing;
    counted.mask = g_.and_(counted.mask, k.right.valid);
    counted.columns.push_back({k.right.value, nothing, k.right.type});
  }
  if (!nulls_differ) counted.mask = g_.and_(counted.mask, y.valid);
  reduce_by(counted, left, keys);
  counted.columns.push_back({g_.spread(y.value, right.space), nulls_differ ? y.valid : nothing, y.type});
  const Relation rows = compact(counted);
  const Cell value = rows.columns.back();
  const Groups g = group(rows.space, {rows.columns.begin(), rows.columns.end() - 1});
  // Of each group its key, the least and the greatest value, and whether there are values and nulls.
  Relation ends{g.space, nothing, {}};
  std::vector<Key> own = keys;
  for (size_t k = 0; k < keys.size(); ++k) {
    own[k].right = pick(rows.columns[k], g.first);
    ends.columns.push_back(own[k].right);
  }
  for (const bool is_greatest : {false, true}) {
    const VectorId there =
        is_none(value.valid) ? value.value
                             : g_.select(value.valid, value.value, end_of(type, !is_greatest));
    ends.columns.push_back({reduce(g, is_greatest ? "max" : "min", there, g_[there].bounds), nothing, y.type});
  }
  if (!is_none(value.valid))
    for (const VectorId v : {value.valid, g_.not_(value.valid)})
      ends.columns.push_back({reduce(g, "any", v, Bounds::of(0, 1)), nothing, boolean_type});
  size_t at = 0;
  bool found = false;
  for (const bool lifting : {false, true}) found = found || look_up_any(ends, own, false, lifting, at);
  if (!found) return nothing;
  VectorId met = ends.mask;
  for (size_t k = 0; k < keys.size(); ++k) {
    if (k == at) continue;
    const Cell same = compare_cells("eq", keys[k].left, ends.columns[k]);
    met = g_.and_(met, g_.and_(same.value, same.valid));
  }
  const std::span<const Cell> parts = std::span<const Cell>(ends.columns).subspan(keys.size());
  const auto other_than = [&](const Cell& end) { return g_.map("neq", {x.value, end.value}, BasicType::boolean); };
  VectorId another = g_.or_(other_than(parts[0]), other_than(parts[1]));
  if (parts.size() > 2) another = g_.or_(g_.and_(parts[2].value, another), parts[3].value);
  if (is_none(x.valid)) return g_.and_(met, another);
  if (!nulls_differ) return g_.and_(met, g_.and_(another, x.valid));
  const VectorId any_value = parts.size() > 2 ? parts[2].value : g_.integer(BasicType::boolean, 1);
  return g_.and_(met, g_.select(x.valid, another, any_value));
}

}  // namespace rndn::sql
