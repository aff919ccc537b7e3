// Semi-join reduction: rows of groups that a join drops are not grouped (P. A. Bernstein, D. W. Chiu,
// "Using semi-joins to solve relational queries", JACM 1981).
//
// Where one side of an inner join, or the right side of a LEFT join, is groups and an equality of the
// join is about a key of theirs, only groups count whose key the other side has. If the other side is
// filtered and its key is picked from a table's unique key, the rows that it has mark rows of that
// table; if it is that table, its mask is the marks. The groups' side is translated once more, and what
// it groups is filtered by the marks, a gather per row. Groups stay whole, as rows of one group have
// one key. Of several keys the one of the largest table marks.
// Left out: grouping sets, keys that are found by a search, limits and windows between join and
// groups; how many rows the filter leaves is not
// asked; at most 16 sides of a query are reduced.
#include "frontend/sql/translator.h"

namespace rndn::sql {

// The groups of whose keys this is one, seen through projections and filters.
std::optional<Translator::GroupKey> Translator::group_key(NodeId node, ExpressionId e) const {
  if (plan_[e].kind != Expression::column) return std::nullopt;
  size_t column = plan_[e].index;
  for (;;) {
    const Node& n = plan_[node];
    switch (n.op) {
      case Operator::project: {
        const std::span<const ExpressionId> columns = plan_.of(n.expressions);
        if (column >= columns.size() || plan_[columns[column]].kind != Expression::column) return std::nullopt;
        column = plan_[columns[column]].index;
        break;
      }
      case Operator::filter:
        if (n.projects && column >= n.projection.count) return std::nullopt;
        if (n.projects) column = plan_.of(n.projection)[column];
        break;
      case Operator::aggregate:
        if (n.set_count != 0 || column >= n.groups.count) return std::nullopt;
        return GroupKey{node, static_cast<uint32_t>(column)};
      default: return std::nullopt;
    }
    node = plan_.of(n.children)[0];
  }
}

// Translates `side`, which is that of `node`, again if what `other` has for a key reduces it.
void Translator::reduce_groups(Relation& side, NodeId node, const Relation& other, const On& on, bool of_left) {
  constexpr size_t most = 16;  // sides, as one may lie within another
  if (is_none(other.mask) && g_[other.space].parent == one_row) return;
  std::optional<Reduction> best;
  for (const Condition& c : on.conditions) {
    if (c.comparison != Function::equal) continue;
    const std::optional<GroupKey> key = group_key(node, of_left ? c.left : c.right);
    if (!key) continue;
    VectorId rows = nothing;
    const Cell theirs = evaluate(of_left ? c.right : c.left, other);
    if (error_) return;
    const VectorId base = base_key(theirs.value, rows);
    if (is_none(base) || g_[base].space == one_row) continue;
    const SpaceId table = g_[base].space;
    if (is_none(rows) && (is_none(other.mask) || other.space != table)) continue;
    if (best && g_[table].most_rows <= g_[g_[best->base].space].most_rows) continue;
    if (is_none(rows)) {
      best = Reduction{*key, base, g_.spread(other.mask, table)};
      continue;
    }
    best = Reduction{*key, base, marks(table, other.space, other.mask, rows)};
  }
  if (!best || ++reduced_ > most) return;
  reductions_.push_back(*best);
  side = relation(node);
  reductions_.pop_back();
}

// Filters what is grouped by what reduces it.
void Translator::reduce_rows(Relation& in, const Node& groups) {
  for (const Reduction& r : reductions_) {
    if (&plan_[r.of.groups] != &groups || in.space == one_row) continue;
    const Cell key = evaluate(plan_.of(groups.groups)[r.of.key], in);
    if (error_) return;
    const std::optional<Lookup> at = rows_of_key(key.value, r.base);
    if (!at) continue;
    const VectorId there = is_none(at->rows) ? r.marks : g_.pick(r.marks, at->rows);
    in.mask = g_.and_(in.mask, g_.and_(g_.and_(at->matched, key.valid), there));
  }
}

}  // namespace rndn::sql
