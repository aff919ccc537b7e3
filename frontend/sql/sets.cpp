// UNION ALL, EXCEPT, INTERSECT, and common table expressions, which are relations that are made
// once.
//
// UNION appends columns; EXCEPT and INTERSECT ask for each row on the left whether the right has
// its like, nulls equal; the planner's DISTINCT above them makes sets of their rows. With ALL they
// count: both sides' rows in one order, where those alike are neighbours, the left's first.
#include "frontend/sql/translator.h"

namespace rndn::sql {

using hir::BasicType;

Relation Translator::append(std::vector<Relation> parts) {
  if (parts.empty()) return {};
  for (Relation& part : parts) {
    part = compact(part);
    if (part.columns.size() != parts[0].columns.size()) {
      fail("the plan appends rows of {} columns to rows of {}", part.columns.size(),
           parts[0].columns.size());
      return {};
    }
  }
  if (parts.size() == 1) return parts[0];
  Relation out;
  double most_rows = 0;
  for (const Relation& part : parts) most_rows += g_[part.space].most_rows;
  out.space = g_.space(most_rows);
  const auto chain = [&](const std::vector<VectorId>& columns) {
    VectorId all = g_.spread(columns[0], parts[0].space);
    for (size_t i = 1; i < columns.size(); ++i)
      all = g_.call("@append(", {all, g_.spread(columns[i], parts[i].space)}, g_[columns[0]].type,
                    out.space, g_[columns[0]].hint,
                    rndn::sql::join(g_[all].bounds, g_[columns[i]].bounds));
    g_.set_witness(out.space, all);
    return all;
  };
  for (size_t c = 0; c < parts[0].columns.size(); ++c) {
    // To one type: the first with each, until it is the widest; then each with it.
    for (int round = 0; round < 2; ++round)
      for (size_t i = 1; i < parts.size(); ++i) unify(parts[0].columns[c], parts[i].columns[c]);
    std::vector<VectorId> values, valid;
    bool nulls = false;
    for (const Relation& part : parts) {
      values.push_back(part.columns[c].value);
      valid.push_back(valid_of(part.columns[c]));
      nulls = nulls || !is_none(part.columns[c].valid);
    }
    out.columns.push_back(
        {chain(values), nulls ? chain(valid) : nothing, parts[0].columns[c].type});
  }
  return out;
}

Relation Translator::set_operation(const Node& n) {
  std::vector<Relation> parts;
  for (NodeId child : plan_.of(n.children)) parts.push_back(relation(child));
  if (n.op == Operator::union_) return append(std::move(parts));
  Relation &left = parts[0], &right = parts[1];
  if (left.columns.size() != right.columns.size()) {
    fail("the plan compares rows of {} columns with rows of {}", left.columns.size(),
         right.columns.size());
    return left;
  }
  if (n.all) return counted_difference(std::move(left), std::move(right), n.op == Operator::except);
  On on;
  on.every_column = true;
  on.left = on.right = left.columns.size();
  Cell there = mark(left, right, keys_of(on, left, right), on);
  if (n.op == Operator::except) there.value = g_.not_(there.value);
  filter(left, there);
  return left;
}

// EXCEPT ALL, else INTERSECT ALL. Of rows alike, the left's n-th stays where the right has fewer
// than n of them; or at least n.
Relation Translator::counted_difference(Relation left, Relation right, bool except) {
  for (const auto& [side, flag] : {std::pair(&left, 0), std::pair(&right, 1)})
    side->columns.push_back({g_.integer(BasicType::boolean, flag), nothing, {TypeId::boolean}});
  Relation r = append({std::move(left), std::move(right)});
  if (error_) return r;
  std::vector<SortKey> keys;
  for (const Cell& c : r.columns) keys.push_back({c});
  pick(r, permutation(r.space, keys));
  const VectorId of_right = r.columns.back().value;
  r.columns.pop_back();
  Frame f;
  f.rows = r.space;
  f.partition = run_of(r.space, r.columns, nothing);
  f.begin = f.partition.first;
  f.end = f.partition.end;
  f.from_head = f.to_end = true;
  const Bounds counts = Bounds::of(0, static_cast<__int128>(g_[r.space].most_rows));
  const VectorId there = reduce_frame(f, "sum", of_right, counts);
  const VectorId before =
      g_.map("minus", {g_.rows(r.space), f.partition.first}, BasicType::i64, counts);
  r.mask = g_.and_(g_.not_(of_right),
                   g_.map(except ? "geq" : "lt", {before, there}, BasicType::boolean));
  return r;
}

Relation Translator::cte(const Node& n) {
  const std::span<const NodeId> children = plan_.of(n.children);
  Relation body = relation(children[0]);
  ctes_.insert_or_assign(n.cte, std::move(body));
  return relation(children[1]);
}

Relation Translator::cte_ref(const Node& n) {
  const auto at = ctes_.find(n.cte);
  if (at == ctes_.end()) {
    fail("the plan reads common table expression {} before it is made", n.cte);
    return no_rows(plan_.of(n.types));
  }
  return at->second;
}

}  // namespace rndn::sql
