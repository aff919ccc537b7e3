// A plan's operators, one by one, and the program around the vectors that they make (translate.h,
// translator.h).
#include "frontend/sql/translate.h"

#include <set>

#include "frontend/sql/translator.h"

namespace rndn::sql {

using hir::BasicType;

Cell Translator::pick(const Cell& c, VectorId rows) {
  return {g_.pick(c.value, rows), is_none(c.valid) ? nothing : g_.pick(c.valid, rows), c.type};
}
Cell Translator::keep(const Cell& c, SpaceId space) {
  return {g_.keep(space, c.value), is_none(c.valid) ? nothing : g_.keep(space, c.valid), c.type};
}
Cell Translator::spread(const Cell& c, SpaceId space) {
  return {g_.spread(c.value, space), is_none(c.valid) ? nothing : g_.spread(c.valid, space),
          c.type};
}

// The rows that belong to a relation as all rows of a space.
Relation Translator::compact(const Relation& r) {
  if (is_none(r.mask)) return r;
  Relation out;
  out.space = g_.kept(r.space, r.mask);
  for (const Cell& c : r.columns) out.columns.push_back(keep(c, out.space));
  return out;
}

void Translator::filter(Relation& r, const Cell& condition) {
  if (!g_.is_true(condition.value)) r.mask = g_.and_(r.mask, condition.value);
}

void Translator::filter(Relation& r, std::span<const ExpressionId> conjuncts, std::span<const Cell> columns,
                        VectorId counted) {
  failing_last(
      conjuncts,
      [&](ExpressionId e) {
        return evaluate(e, Relation{r.space, r.mask, {columns.begin(), columns.end()}}, counted);
      },
      [&](size_t, const Cell& condition) { filter(r, condition); });
}

void Translator::project(Relation& r, bool projects, Range<uint32_t> map) {
  if (!projects) return;
  std::vector<Cell> columns;
  for (uint32_t c : plan_.of(map)) {
    if (c < r.columns.size())
      columns.push_back(r.columns[c]);
    else
      fail("the plan names column {} of {}", c, r.columns.size());
  }
  r.columns = std::move(columns);
}

void Translator::pick(Relation& r, VectorId rows) {
  for (Cell& c : r.columns) c = pick(c, rows);
  r.space = g_[rows].space;
}

// Columns of both; they are of one space, or one of them is a single row.
Relation Translator::side_by_side(const Relation& left, const Relation& right) {
  Relation out = left;
  if (left.space == one_row) out.space = right.space;
  out.mask = g_.and_(left.mask, right.mask);
  out.columns.insert(out.columns.end(), right.columns.begin(), right.columns.end());
  return out;
}

Relation Translator::relation(NodeId id) {
  if (error_) return {};
  const Node& n = plan_[id];
  const std::span<const NodeId> children = plan_.of(n.children);
  switch (n.op) {
    case Operator::scan: return scan(n);
    case Operator::filter: {
      Relation r = relation(children[0]);
      filter(r, plan_.of(n.expressions), r.columns);
      project(r, n.projects, n.projection);
      return r;
    }
    case Operator::project: {
      Relation r = relation(children[0]);
      std::vector<Cell> columns;
      for (ExpressionId e : plan_.of(n.expressions)) {
        const PlaceScope scope(place_, plan_[e].place);
        columns.push_back(evaluate(e, r));
      }
      r.columns = std::move(columns);
      return r;
    }
    case Operator::aggregate: return aggregate(n);
    case Operator::window: return window(n);
    case Operator::join:
    case Operator::any_join: return join(n);
    case Operator::cross: {
      const Relation left = relation(children[0]);
      return cross(left, relation(children[1]));
    }
    case Operator::asof_join: return asof(n);
    case Operator::positional: return side_by_number(n);
    case Operator::unnest: return unnest(n);
    case Operator::order:
    case Operator::top: return order(n);
    case Operator::limit: return limit(n);
    case Operator::distinct: return distinct(n);
    case Operator::union_:
    case Operator::except:
    case Operator::intersect: return set_operation(n);
    case Operator::cte: return cte(n);
    case Operator::cte_ref: return cte_ref(n);
    case Operator::one_row: {  // with the column that the planner counts and nothing reads
      Relation out;
      out.columns.push_back(null_of({TypeId::boolean}));
      return out;
    }
    case Operator::no_rows: return no_rows(plan_.of(n.types));
    case Operator::values: return values(n);
  }
  return {};
}

Result<Translation> Translator::run(const std::vector<std::string>& names) {
  Relation r = compact(relation(plan_.root));
  if (r.columns.empty()) fail("the plan has no result column");
  if (error_) return *error_;

  Translation out;
  std::vector<VectorId> columns;
  std::vector<std::string> titles;
  std::set<std::string> taken;
  const auto add = [&](VectorId v, std::string title) {
    while (!taken.insert(title).second) title += "_";
    columns.push_back(g_.spread(v, r.space));
    titles.push_back(std::move(title));
    return static_cast<uint32_t>(columns.size() - 1);
  };
  for (size_t i = 0; i < r.columns.size(); ++i) {
    Cell c = r.columns[i];
    if (c.type.id == TypeId::enumeration) c = cast_cell(c, {TypeId::varchar});
    ResultColumn column{i < names.size() ? names[i] : fmt::format("column{}", i), c.type, 0,
                        std::nullopt};
    column.values = add(c.value, column.name);
    if (!is_none(c.valid)) column.valid = add(c.valid, column.name + "?");
    out.columns.push_back(std::move(column));
  }
  std::vector<VectorId> symbols;
  for (const std::string& title : titles) symbols.push_back(g_.text(BasicType::sym, title));
  const VectorId list = g_.call("@list(", columns, BasicType::i64, r.space, "result_columns");
  const VectorId table = g_.call("@table(", {g_.list_literal(BasicType::sym, symbols), list},
                                 BasicType::i64, r.space, "result");
  if (error_) return *error_;
  const std::string statements = g_.print({table});
  out.program = fmt::format(
      "module query {{\n    import Builtin.*;\n    def main() : table {{\n{}        return {};\n   "
      " }}\n}}\n",
      statements, g_.name_of(table));
  for (const auto& [line, place] : g_.places()) out.places.emplace_back(line + 4, place);
  return out;
}

Result<Translation> translate(const Plan& plan, const Catalog& catalog,
                              const std::vector<std::string>& names, Place* place) {
  Translator translator(plan, catalog);
  Result<Translation> translation = translator.run(names);
  if (place) *place = translator.failed_at();
  return translation;
}

}  // namespace rndn::sql
