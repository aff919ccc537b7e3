// ASOF JOIN: for each row on the left, of the rows on the right with equal keys, the one whose last
// key is nearest to its own on one side.
//
// The keys of both sides stand in one order, in which the place of the last row of the right up to
// each row is a running maximum within rows of equal keys: O((n + m) log (n + m)). Rows with a null
// among their keys meet nothing. Left out: RIGHT, FULL, SEMI and ANTI, further conditions.
#include "frontend/sql/translator.h"

namespace rndn::sql {

using hir::BasicType;

Relation Translator::asof(const Node& n) {
  constexpr BasicType whole = BasicType::i64, truth = BasicType::boolean;
  const std::span<const NodeId> children = plan_.of(n.children);
  Relation left = rows_of_one(compact(relation(children[0]))), right = rows_of_one(compact(relation(children[1])));
  if (error_) return left;
  struct Side {
    Relation keys;
    VectorId usable = nothing;
  };
  Side sides[2];
  bool is_strict = false, is_above = false;  // the nearest lies strictly beyond; above it
  size_t inequalities = 0;
  std::vector<Condition> ordered;
  for (const Condition& c : plan_.of(n.conditions)) {
    const bool less = c.comparison == Function::less || c.comparison == Function::at_most;
    const bool more = c.comparison == Function::greater || c.comparison == Function::at_least;
    if (less || more) {
      ++inequalities;
      is_above = less;
      is_strict = c.comparison == Function::less || c.comparison == Function::greater;
      ordered.push_back(c);
    } else if (c.comparison == Function::equal) {
      ordered.insert(ordered.begin(), c);
    } else {
      inequalities = 2;
    }
  }
  if ((n.join != JoinType::inner && n.join != JoinType::left) || inequalities != 1 || n.expressions.count > 0) {
    fail("an ASOF JOIN other than INNER or LEFT, or with other conditions than = and one of order, has no translation");
    return left;
  }
  for (int side = 0; side < 2; ++side) {
    const Relation& from = side ? right : left;
    Side& to = sides[side];
    to.keys.space = from.space;
    for (const Condition& c : ordered) {
      const Cell key = comparable(evaluate(side ? c.right : c.left, from));
      if (error_) return left;
      to.usable = g_.and_(to.usable, key.valid);
      to.keys.columns.push_back({g_.spread(key.value, from.space), nothing, key.type});
    }
    to.keys.columns.push_back({g_.integer(truth, side), nothing, {TypeId::boolean}});
    to.keys.columns.push_back({g_.rows(from.space), nothing, {TypeId::bigint}});
    to.keys.columns.push_back({is_none(to.usable) ? g_.integer(truth, 1) : to.usable, nothing, {TypeId::boolean}});
  }
  Relation both = append({sides[0].keys, sides[1].keys});
  if (error_) return left;
  const size_t equal = ordered.size() - 1;
  const Cell usable = both.columns[equal + 3];
  std::vector<SortKey> keys{{usable}};
  std::vector<Cell> alike{usable};
  for (size_t k = 0; k < equal; ++k) {
    keys.push_back({both.columns[k]});
    alike.push_back(both.columns[k]);
  }
  keys.push_back({both.columns[equal], is_above});
  keys.push_back({both.columns[equal + 1], !is_strict});
  const VectorId order = permutation(both.space, keys);
  const SpaceId sorted = g_[order].space;
  for (Cell& c : alike) c = pick(c, order);
  const Run run = run_of(sorted, alike, nothing);
  const Bounds places = Bounds::of(-1, static_cast<__int128>(g_[both.space].most_rows));
  const VectorId none = g_.integer(whole, -1), position = g_.rows(sorted);
  const VectorId is_right = g_.and_(g_.pick(both.columns[equal + 1].value, order), alike[0].value);
  const VectorId last = scan("max", g_.select(is_right, position, none), run.head, places);
  const VectorId row = at_or(g_.pick(both.columns[equal + 2].value, order), last, none);
  const VectorId place = g_.call("@index_a(", {g_.spread(g_.integer(whole, 0), both.space), order, position}, whole,
                                 both.space, "place", places);
  VectorId found = g_.pick(row, g_.pick(place, g_.rows(left.space)));
  if (!is_none(sides[0].usable)) found = g_.select(sides[0].usable, found, none);
  g_.change(found).bounds = Bounds::of(-1, static_cast<__int128>(g_[right.space].most_rows));
  const VectorId has = g_.map("geq", {found, g_.integer(whole, 0)}, truth);
  project(right, n.right_projects, n.right_projection);
  Relation out = left;
  project(out, n.projects, n.projection);
  for (const Cell& given : right.columns) {
    const Cell c = spread(given, right.space);
    const auto there = [&](VectorId v) { return at_or(v, found, g_.zero(g_[v].type)); };
    out.columns.push_back({there(c.value), is_none(c.valid) ? has : there(c.valid), c.type});
  }
  if (n.join == JoinType::inner) out.mask = has;
  return out;
}

}  // namespace rndn::sql
