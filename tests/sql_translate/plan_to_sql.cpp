// Renders plans back to SQL: what the reader has kept of a plan (plan.h) is the whole of it if the
// text made of that alone answers as the statement did (tests/sql_random/render_back.py).
//
//   plan_to_sql < PLANS     a plan's JSON per line; for each a line: {"sql": .., "with": .., "joins": ..}
//                           or {"error": ..}
//
// `with` is the statement without its SELECT, and `joins` names the entries that are joins: how many
// rows each has judges the order of joins (tests/sql_random/join_orders.py).
//
// An operator is one entry of WITH, whose columns are c0, c1, ..; expressions are written with the
// types that the plan gives, constants as casts of texts. Nothing is left out: what has no rendering
// is an error.
#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "frontend/sql/plan.h"

namespace rndn::sql {
namespace {

using Texts = std::vector<std::string>;

std::string joined(const Texts& texts, std::string_view between = ", ") {
  std::string out;
  for (size_t i = 0; i < texts.size(); ++i) out += (i ? std::string(between) : "") + texts[i];
  return out;
}

std::string in_marks(std::string_view text, char mark) {
  std::string out(1, mark);
  for (char c : text) out += c == mark ? std::string(2, mark) : std::string(1, c);
  return out + mark;
}

std::string digits_of(__int128 value) {
  std::string out;
  unsigned __int128 rest = value < 0 ? -static_cast<unsigned __int128>(value) : value;
  do out.insert(out.begin(), static_cast<char>('0' + static_cast<int>(rest % 10)));
  while (rest /= 10);
  return (value < 0 ? "-" : "") + out;
}

std::string all_of(const Texts& conjuncts) { return conjuncts.empty() ? "true" : joined(conjuncts, " AND "); }

class Renderer {
 public:
  explicit Renderer(const Plan& plan) : plan_(plan) {}

  nlohmann::json render() {
    const Relation root = relation(plan_.root);
    const std::string with = "WITH " + joined(entries_);
    return {{"sql", fmt::format("{} SELECT * FROM {}", with, root.name)}, {"with", with}, {"joins", joins_}};
  }

 private:
  struct Relation {
    std::string name;
    size_t width;
  };

  // `values` become columns c0, c1, ..; `rest` is what follows them.
  Relation add(const Texts& values, const std::string& rest, std::string_view after_select = "") {
    Relation out{fmt::format("n{}", entries_.size()), values.size()};
    Texts columns;
    for (size_t i = 0; i < values.size(); ++i) columns.push_back(fmt::format("{} AS c{}", values[i], i));
    if (columns.empty()) columns.push_back("0 AS c0");
    entries_.push_back(fmt::format("{} AS (SELECT {} {} {})", out.name, after_select, joined(columns), rest));
    return out;
  }

  static Texts columns(size_t width, std::string_view of = "") {
    Texts out;
    for (size_t i = 0; i < width; ++i) out.push_back(fmt::format("{}c{}", of, i));
    return out;
  }
  Texts projected(const Texts& in, bool projects, Range<uint32_t> map) const {
    if (!projects) return in;
    Texts out;
    for (uint32_t i : plan_.of(map)) out.push_back(in.at(i));
    return out;
  }

  std::string name_of_type(Type type) const {
    if (type.id != TypeId::enumeration) return type_name(type);
    Texts texts;
    for (const std::string& text : plan_.enums.at(type.list)) texts.push_back(in_marks(text, '\''));
    return fmt::format("ENUM({})", joined(texts));
  }

  std::string constant(const Constant& c) const {
    const std::string type = name_of_type(c.type);
    if (c.is_null) return fmt::format("CAST(NULL AS {})", type);
    const auto cast = [&](std::string_view text) { return fmt::format("CAST({} AS {})", in_marks(text, '\''), type); };
    switch (c.type.id) {
      case TypeId::varchar: return cast(c.text);
      case TypeId::real:
      case TypeId::double_: return cast(std::isnan(c.real) ? "nan" : fmt::format("{}", c.real));
      case TypeId::boolean: return c.integer ? "true" : "false";
      case TypeId::decimal: {
        std::string digits = digits_of(c.integer);
        const size_t sign = c.integer < 0;
        if (digits.size() - sign <= c.type.scale) digits.insert(sign, c.type.scale + 1 - (digits.size() - sign), '0');
        if (c.type.scale) digits.insert(digits.size() - c.type.scale, ".");
        return cast(digits);
      }
      case TypeId::date: return fmt::format("(DATE '1970-01-01' + CAST({} AS INTEGER))", digits_of(c.integer));
      case TypeId::enumeration: return cast(plan_.enums.at(c.type.list).at(static_cast<size_t>(c.integer)));
      case TypeId::interval:
        return fmt::format("(to_months({}) + to_days({}) + to_microseconds({}))", digits_of(c.integer), c.days,
                           c.micros);
      case TypeId::time: return fmt::format("CAST(make_timestamp({}) AS TIME)", digits_of(c.integer));
      case TypeId::timestamp:
      case TypeId::timestamptz: return fmt::format("CAST(make_timestamp({}) AS {})", digits_of(c.integer), type);
      default: return cast(digits_of(c.integer));
    }
  }

  Texts texts(Range<ExpressionId> range, const Texts& in) const {
    Texts out;
    for (ExpressionId id : plan_.of(range)) out.push_back(text(id, in));
    return out;
  }

  static std::string comparison(Function f) {
    switch (f) {
      case Function::equal: return "=";
      case Function::not_equal: return "<>";
      case Function::less: return "<";
      case Function::greater: return ">";
      case Function::at_most: return "<=";
      case Function::at_least: return ">=";
      case Function::distinct_from: return "IS DISTINCT FROM";
      case Function::not_distinct_from: return "IS NOT DISTINCT FROM";
      case Function::and_: return "AND";
      case Function::or_: return "OR";
      default: return "";
    }
  }

  std::string call(const Expression& e, const Texts& in) const {
    Texts a = texts(e.arguments, in);
    if (const std::string sign = comparison(e.function); !sign.empty())
      return fmt::format("({})", joined(a, fmt::format(" {} ", sign)));
    switch (e.function) {
      case Function::between:
        return fmt::format("({0} {3} {1} AND {0} {4} {2})", a[0], a[1], a[2], e.lower_inclusive ? ">=" : ">",
                           e.upper_inclusive ? "<=" : "<");
      case Function::in:
      case Function::not_in: {
        const std::string value = a[0];
        a.erase(a.begin());
        return fmt::format("({} {} ({}))", value, e.function == Function::in ? "IN" : "NOT IN", joined(a));
      }
      case Function::not_: return fmt::format("(NOT {})", a[0]);
      case Function::is_null: return fmt::format("({} IS NULL)", a[0]);
      case Function::is_not_null: return fmt::format("({} IS NOT NULL)", a[0]);
      case Function::coalesce: return fmt::format("coalesce({})", joined(a));
      case Function::split_element: return fmt::format("array_extract(string_split({}, {}), {})", a[0], a[1], a[2]);
      case Function::position: return fmt::format("instr({}, {})", a[0], a[1]);
      case Function::cast: return fmt::format("{}({} AS {})", e.tries ? "TRY_CAST" : "CAST", a[0], name_of_type(e.type));
      case Function::case_: {
        std::string out = "CASE";
        size_t i = 0;
        for (; i + 1 < a.size(); i += 2) out += fmt::format(" WHEN {} THEN {}", a[i], a[i + 1]);
        return fmt::format("{} ELSE {} END", out, a.at(i));
      }
      default: break;
    }
    const std::string_view name = name_of(e.function);
    const bool is_sign = !std::isalpha(static_cast<unsigned char>(name[0]));
    // A sum of decimals has a digit more than the plan's, whose arguments have it already.
    if (is_sign && a.size() == 2 && e.type.id == TypeId::decimal)
      return fmt::format("CAST({} {} {} AS {})", a[0], name, a[1], name_of_type(e.type));
    if (is_sign && a.size() == 2) return fmt::format("({} {} {})", a[0], name, a[1]);
    if (is_sign) return fmt::format("({} {})", name, a[0]);
    return fmt::format("{}({})", in_marks(name, '"'), joined(a));
  }

  std::string text(ExpressionId id, const Texts& in) const {
    const Expression& e = plan_[id];
    switch (e.kind) {
      case Expression::column: return in.at(e.index);
      case Expression::constant: return constant(plan_.constants[e.index]);
      case Expression::call: return call(e, in);
      case Expression::aggregate:
      case Expression::window: break;
    }
    const Window* w = e.kind == Expression::window ? &plan_.windows[e.index] : nullptr;
    Texts a = texts(e.arguments, in);
    std::string name;
    if (w && w->function != WindowFunction::aggregate) {
      name = name_of(w->function).substr(std::string_view("WINDOW_").size());
      if (w->function == WindowFunction::dense_rank) name = "dense_rank";
    } else {
      name = name_of(e.aggregate_function);
      if (e.aggregate_function == Aggregate::count_star) name = "count", a = {"*"};
      if (e.aggregate_function == Aggregate::quantile_cont || e.aggregate_function == Aggregate::quantile_disc ||
          e.aggregate_function == Aggregate::quantile)
        a.resize(1), a.push_back(fmt::format("{}", e.quantile));
    }
    std::string out = fmt::format("{}({}{}{})", name, e.distinct ? "DISTINCT " : "", joined(a),
                                  w && w->ignores_nulls ? " IGNORE NULLS" : "");
    if (!is_none(e.filter)) out += fmt::format(" FILTER (WHERE {})", text(e.filter, in));
    return w ? fmt::format("{} OVER ({})", out, window(*w, in)) : out;
  }

  std::string frame_end(const FrameEnd& end, const Texts& in) const {
    const char* side = end.following ? "FOLLOWING" : "PRECEDING";
    if (end.kind == FrameEnd::unbounded) return fmt::format("UNBOUNDED {}", side);
    return is_none(end.offset) ? "CURRENT ROW" : fmt::format("{} {}", text(end.offset, in), side);
  }
  // An end of values says where the frame ends; SQL says how far that is from the row's own value.
  std::string value_end(const FrameEnd& end, const std::string& own, bool descending, const Texts& in) const {
    if (end.kind != FrameEnd::values) return frame_end(end, in);
    const std::string to = text(end.offset, in);
    const bool ahead = end.following != descending;
    return fmt::format("({}) {}", ahead ? to + " - " + own : own + " - " + to,
                       end.following ? "FOLLOWING" : "PRECEDING");
  }
  std::string window(const Window& w, const Texts& in) const {
    std::string out;
    if (w.partitions.count) out += fmt::format("PARTITION BY {} ", joined(texts(w.partitions, in)));
    if (w.orders.count) out += fmt::format("ORDER BY {} ", keys(w.orders, in));
    FrameEnd::Kind unit = FrameEnd::unbounded;
    for (const FrameEnd& end : {w.start, w.end})
      if (end.kind == FrameEnd::rows || end.kind == FrameEnd::values ||
          (end.kind == FrameEnd::peers && unit == FrameEnd::unbounded))
        unit = end.kind;
    if (unit == FrameEnd::values) {
      const OrderKey& key = plan_.of(w.orders)[0];
      const std::string own = text(key.expression, in);
      return fmt::format("{}RANGE BETWEEN {} AND {}{}", out, value_end(w.start, own, key.descending, in),
                         value_end(w.end, own, key.descending, in), exclude(w.exclude));
    }
    const bool counts = !is_none(w.start.offset) || !is_none(w.end.offset);
    const char* mode = unit == FrameEnd::rows ? "ROWS" : unit == FrameEnd::peers && counts ? "GROUPS" : "RANGE";
    return fmt::format("{}{} BETWEEN {} AND {}{}", out, mode, frame_end(w.start, in), frame_end(w.end, in),
                       exclude(w.exclude));
  }
  static std::string_view exclude(Window::Exclude e) {
    switch (e) {
      case Window::no_others: return "";
      case Window::current_row: return " EXCLUDE CURRENT ROW";
      case Window::group: return " EXCLUDE GROUP";
      case Window::ties: return " EXCLUDE TIES";
    }
    return "";
  }
  std::string keys(Range<OrderKey> orders, const Texts& in) const {
    Texts out;
    for (const OrderKey& k : plan_.of(orders))
      out.push_back(fmt::format("{} {} NULLS {}", text(k.expression, in), k.descending ? "DESC" : "ASC",
                                k.nulls_first ? "FIRST" : "LAST"));
    return joined(out);
  }
  static std::string limit(const Node& n) {
    return (n.has_limit ? fmt::format(" LIMIT {}", n.limit) : "") + fmt::format(" OFFSET {}", n.offset);
  }

  Relation scan(const Node& n) {
    Texts read;
    if (n.table.empty()) {
      const std::string step = fmt::format("range({})", n.count);
      const Type of = plan_.of(n.types)[0];
      const std::string number = fmt::format("CAST({}::HUGEINT + range * {}::HUGEINT AS BIGINT)", n.first, n.step);
      for (uint32_t c : plan_.of(n.columns))
        read.push_back(c == 0 ? of.id == TypeId::timestamp ? fmt::format("make_timestamp({})", number) : number
                              : "range");
      return add(projected(read, n.projects, n.projection), "FROM " + step);
    }
    for (uint32_t c : plan_.of(n.columns))
      read.push_back(c == row_id ? "rowid" : c == row_number ? "(rowid + 1)" : in_marks(plan_.of(n.names)[c], '"'));
    return add(projected(read, n.projects, n.projection),
               fmt::format("FROM {} WHERE {}", in_marks(n.table, '"'), all_of(texts(n.expressions, read))));
  }

  Relation aggregate(const Node& n, const Relation& in) {
    // The keys as columns, so that sets can name them.
    Texts before = columns(in.width), names = before;
    for (const std::string& g : texts(n.groups, before)) before.push_back(g);
    const Relation keyed = add(before, "FROM " + in.name);
    Texts groups, out;
    for (size_t i = 0; i < n.groups.count; ++i) groups.push_back(fmt::format("c{}", in.width + i));
    out = groups;
    for (const std::string& a : texts(n.expressions, names)) out.push_back(a);
    const auto lists = [&](Range<uint32_t> flat) {
      Texts all;
      const auto numbers = plan_.of(flat);
      for (size_t at = 0; at < numbers.size();) {
        Texts one;
        const size_t count = numbers[at++];
        for (size_t k = 0; k < count; ++k) one.push_back(groups.at(numbers[at++]));
        all.push_back(fmt::format("({})", joined(one)));
      }
      return all;
    };
    for (const std::string& g : lists(n.groupings)) out.push_back("GROUPING" + g);
    std::string by;
    if (n.set_count)
      by = fmt::format("GROUP BY GROUPING SETS ({})", joined(lists(n.sets)));
    else if (!groups.empty())
      by = "GROUP BY " + joined(groups);
    return add(out, fmt::format("FROM {} {}", keyed.name, by));
  }

  bool is_two_valued(const Node& n) const {
    for (const Condition& c : plan_.of(n.conditions))
      if (c.comparison != Function::not_distinct_from && c.comparison != Function::distinct_from) return false;
    return n.expressions.count == 0;
  }

  Relation join(const Node& n, const Relation& l, const Relation& r) {
    const Texts left = columns(l.width, "l."), right = columns(r.width, "r.");
    Texts both = left, on;
    both.insert(both.end(), right.begin(), right.end());
    for (const Condition& c : plan_.of(n.conditions))
      on.push_back(fmt::format("({} {} {})", text(c.left, left), comparison(c.comparison), text(c.right, right)));
    for (const std::string& e : texts(n.expressions, both)) on.push_back(e);
    const std::string condition = all_of(on);
    const Texts of_left = projected(left, n.projects, n.projection),
                of_right = projected(right, n.right_projects, n.right_projection);
    Texts out = of_left;
    const auto from = [&](const Relation& a, char x, std::string_view kind, const Relation& b, char y) {
      return fmt::format("FROM {} {} {} JOIN {} {} ON {}", a.name, x, kind, b.name, y, condition);
    };
    switch (n.join) {
      case JoinType::semi: return add(of_left, from(l, 'l', "SEMI", r, 'r'));
      case JoinType::anti: return add(of_left, from(l, 'l', "ANTI", r, 'r'));
      case JoinType::right_semi: return add(of_right, from(r, 'r', "SEMI", l, 'l'));
      case JoinType::right_anti: return add(of_right, from(r, 'r', "ANTI", l, 'l'));
      case JoinType::mark:
        out.push_back(fmt::format("EXISTS (SELECT 1 FROM {} r WHERE {})", r.name, condition));
        if (!is_two_valued(n))
          out.back() = fmt::format(
              "CASE WHEN {} THEN true WHEN EXISTS (SELECT 1 FROM {} r WHERE ({}) IS NULL)"
              " THEN NULL ELSE false END",
              out.back(), r.name, condition);
        return add(out, fmt::format("FROM {} l", l.name));
      default: break;
    }
    out.insert(out.end(), of_right.begin(), of_right.end());
    const char* kind = n.join == JoinType::inner   ? "INNER"
                       : n.join == JoinType::right ? "RIGHT"
                       : n.join == JoinType::full  ? "FULL"
                                                   : "LEFT";  // also of a scalar subquery
    return add(out, from(l, 'l', kind, r, 'r'));
  }

  Relation relation(NodeId id) {
    const Node& n = plan_[id];
    std::vector<Relation> in;
    for (NodeId child : plan_.of(n.children)) {
      in.push_back(relation(child));
      if (n.op == Operator::cte && in.size() == 1) ctes_[n.cte] = in[0];
    }
    const Texts c = in.empty() ? Texts{} : columns(in[0].width);
    const auto from = [&] { return "FROM " + in[0].name; };
    switch (n.op) {
      case Operator::scan: return scan(n);
      case Operator::filter:
        return add(projected(c, n.projects, n.projection), from() + " WHERE " + all_of(texts(n.expressions, c)));
      case Operator::project: return add(texts(n.expressions, c), from());
      case Operator::aggregate: return aggregate(n, in[0]);
      case Operator::join:
      case Operator::any_join: {
        const Relation out = join(n, in[0], in[1]);
        joins_.push_back(out.name);
        return out;
      }
      case Operator::positional: {
        Texts out = columns(in[0].width, "l.");
        for (const std::string& x : columns(in[1].width, "r.")) out.push_back(x);
        return add(out, fmt::format("FROM {} l POSITIONAL JOIN {} r", in[0].name, in[1].name));
      }
      case Operator::asof_join:
      case Operator::unnest: break;
      case Operator::cross: {
        Texts out = columns(in[0].width, "l.");
        for (const std::string& x : columns(in[1].width, "r.")) out.push_back(x);
        return add(out, fmt::format("FROM {} l CROSS JOIN {} r", in[0].name, in[1].name));
      }
      case Operator::window: {
        Texts out = c;
        for (const std::string& w : texts(n.expressions, c)) out.push_back(w);
        return add(out, from());
      }
      case Operator::order:
        return add(projected(c, n.projects, n.projection), from() + " ORDER BY " + keys(n.orders, c));
      case Operator::top: return add(c, from() + " ORDER BY " + keys(n.orders, c) + limit(n));
      case Operator::limit: return add(c, from() + limit(n));
      case Operator::distinct: {
        const std::string on = joined(texts(n.groups, c));
        return add(c, from() + (n.orders.count ? " ORDER BY " + keys(n.orders, c) : ""),
                   n.distinct_on ? fmt::format("DISTINCT ON ({})", on) : "DISTINCT");
      }
      case Operator::union_:
      case Operator::except:
      case Operator::intersect: {
        const std::string name = n.op == Operator::union_ ? "UNION" : n.op == Operator::except ? "EXCEPT" : "INTERSECT";
        Texts sides;
        for (const Relation& side : in) sides.push_back("(SELECT * FROM " + side.name + ")");
        const std::string all = joined(sides, fmt::format(" {}{} ", name, n.all ? " ALL" : ""));
        return add(c, fmt::format("FROM ({}) sides", all));
      }
      case Operator::cte: return in[1];
      case Operator::cte_ref: return ctes_.at(n.cte);
      case Operator::one_row: return add({"0"}, "");
      case Operator::no_rows: {
        Texts out;
        for (const Type& t : plan_.of(n.types)) out.push_back(fmt::format("CAST(NULL AS {})", name_of_type(t)));
        return add(out, "WHERE false");
      }
      case Operator::values: {
        const Texts cells = texts(n.expressions, c);
        Texts sides;
        for (size_t at = 0; at < cells.size(); at += n.types.count) {
          Texts row;
          for (size_t i = 0; i < n.types.count; ++i) row.push_back(fmt::format("{} AS c{}", cells[at + i], i));
          sides.push_back(fmt::format("(SELECT {}{})", joined(row), in.empty() ? "" : " " + from()));
        }
        return add(columns(n.types.count), fmt::format("FROM ({}) cells", joined(sides, " UNION ALL ")));
      }
    }
    throw std::invalid_argument("an operator without a rendering");
  }

  const Plan& plan_;
  Texts entries_, joins_;
  std::map<uint32_t, Relation> ctes_;
};

}  // namespace
}  // namespace rndn::sql

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    nlohmann::json answer;
    const rndn::Result<rndn::sql::Plan> plan = rndn::sql::read_plan(line);
    if (!plan.ok()) {
      answer["error"] = plan.error().message;
    } else {
      try {
        answer = rndn::sql::Renderer(*plan).render();
      } catch (const std::out_of_range&) {
        answer["error"] = "the plan refers to a column that is not there";
      }
    }
    std::cout << answer.dump() << std::endl;
  }
}
