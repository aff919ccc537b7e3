// Semi-join reduction: rows of groups that a join drops are not grouped (P. A. Bernstein, D. W. Chiu,
// "Using semi-joins to solve relational queries", JACM 1981).
//
// Where one side of an inner join, or the right side of a LEFT join, is groups and an equality of the
// join is about a key of theirs, only groups count whose key the other side has. If the other side is
// filtered and its key is picked from a table's unique key, the rows that it has mark rows of that
// table; if it is that table, its mask is the marks. The groups' side is translated once more, and what
// it groups is filtered by the marks, a gather per row. Groups stay whole, as rows of one group have
// one key. Of several keys the one of the largest table marks.
// `reduce_by` does so to rows that are yet to be grouped: of EXISTS (exists.cpp) and below an outer join
// (grouped_joins.cpp).
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

// Does it lack rows of the table that it is about?
bool Translator::is_filtered(const Relation& r) const {
  return !is_none(r.mask) || g_[r.space].parent != one_row;
}

// The table of whose unique key that column of `of` takes values, and which of its rows `of` has; none: not known.
std::optional<Translator::Marked> Translator::marked(const Cell& key, const Relation& of) {
  VectorId rows = nothing;
  const VectorId base = base_key(key.value, rows);
  if (is_none(base) || g_[base].space == one_row) return std::nullopt;
  const SpaceId table = g_[base].space;
  if (!is_none(rows)) return Marked{base, marks(table, of.space, of.mask, rows)};
  if (is_none(of.mask) || of.space != table) return std::nullopt;
  return Marked{base, g_.spread(of.mask, table)};
}

// Which of two marks leaves out more: that of the larger table.
bool Translator::is_larger(const Marked& a, const std::optional<Marked>& b) const {
  return !b || g_[g_[a.base].space].most_rows > g_[g_[b->base].space].most_rows;
}

// Translates `side`, which is that of `node`, again if what `other` has for a key reduces it.
void Translator::reduce_groups(Relation& side, NodeId node, const Relation& other, const On& on, bool of_left) {
  if (!is_filtered(other)) return;
  GroupKey of;
  std::optional<Marked> best;
  for (const Condition& c : on.conditions) {
    if (c.comparison != Function::equal) continue;
    const std::optional<GroupKey> key = group_key(node, of_left ? c.left : c.right);
    if (!key) continue;
    const Cell theirs = evaluate(of_left ? c.right : c.left, other);
    if (error_) return;
    const std::optional<Marked> m = marked(theirs, other);
    if (!m || !is_larger(*m, best)) continue;
    best = m;
    of = *key;
  }
  if (!best || ++reduced_ > most_reduced) return;
  reductions_.push_back({of, *best});
  side = relation(node);
  reductions_.pop_back();
}

// Leaves in `in` rows alone whose key is marked.
void Translator::keep_marked(Relation& in, const Cell& key, const Marked& by) {
  const std::optional<Lookup> at = rows_of_key(key.value, by.base);
  if (!at) return;
  const VectorId there = is_none(at->rows) ? by.marks : g_.pick(by.marks, at->rows);
  in.mask = g_.and_(in.mask, g_.and_(g_.and_(at->matched, key.valid), there));
}

// Leaves in `in`, whose keys are those on the right, rows alone that those of `left` may meet.
void Translator::reduce_by(Relation& in, const Relation& left, const std::vector<Key>& keys) {
  if (!is_filtered(left) || in.space == one_row) return;
  std::optional<Marked> best;
  Cell key;
  for (const Key& k : keys) {
    const std::optional<Marked> m = marked(k.left, left);
    if (!m || !is_larger(*m, best)) continue;
    best = m;
    key = k.right;
  }
  if (best) keep_marked(in, key, *best);
}

// Filters what is grouped by what reduces it.
void Translator::reduce_rows(Relation& in, const Node& groups) {
  for (const Reduction& r : reductions_) {
    if (&plan_[r.of.groups] != &groups || in.space == one_row) continue;
    const Cell key = evaluate(plan_.of(groups.groups)[r.of.key], in);
    if (error_) return;
    keep_marked(in, key, r.by);
  }
}

}  // namespace rndn::sql
