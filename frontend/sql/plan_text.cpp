// A plan as indented text: an operator per line, what it reads below it, names where the plan has
// them.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "frontend/sql/plan.h"

namespace rndn::sql {
namespace {

using Names = std::vector<std::string>;

constexpr std::string_view join_names[] = {"inner", "left",       "right",      "full", "semi",
                                           "anti",  "right semi", "right anti", "mark", "single"};

std::string integer_text(__int128 value) {
  if (value < 0) return "-" + integer_text(-value);
  std::string text(1, static_cast<char>('0' + static_cast<int>(value % 10)));
  return value < 10 ? text : integer_text(value / 10) + text;
}

std::string joined(const Names& names, std::string_view between = ", ") {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) text += (i ? std::string(between) : "") + names[i];
  return text;
}

class Writer {
 public:
  explicit Writer(const Plan& plan) : plan_(plan) {}
  // The node and all below it; gives the names of its columns.
  Names write(NodeId id, size_t depth) {
    const Node& n = plan_[id];
    const size_t line = lines_.size();
    lines_.emplace_back();
    Names in;
    size_t left = 0;  // columns of a join's left side
    for (size_t i = 0; i < n.children.count; ++i) {
      Names names = write(plan_.of(n.children)[i], depth + 1);
      const bool adds =
          n.op == Operator::join || n.op == Operator::any_join || n.op == Operator::cross;
      if (i == 0 || n.op == Operator::cte)
        in = std::move(names);
      else if (adds)
        left = in.size(), in.insert(in.end(), names.begin(), names.end());
    }
    Names out;
    lines_[line] = std::string(2 * depth, ' ') + node_text(n, in, left, out);
    return out;
  }
  std::string text() const { return joined(lines_, "\n") + "\n"; }

 private:
  std::string constant_text(const Expression& e) const {
    const Constant& c = plan_.constants[e.index];
    if (c.is_null) return "NULL";
    switch (c.type.id) {
      case TypeId::varchar: return "'" + c.text + "'";
      case TypeId::real:
      case TypeId::double_: return fmt::format("{}", c.real);
      case TypeId::boolean: return c.integer ? "true" : "false";
      case TypeId::decimal: {
        std::string digits = integer_text(c.integer < 0 ? -c.integer : c.integer);
        if (digits.size() <= c.type.scale) digits.insert(0, c.type.scale + 1 - digits.size(), '0');
        if (c.type.scale) digits.insert(digits.size() - c.type.scale, ".");
        return (c.integer < 0 ? "-" : "") + digits;
      }
      case TypeId::date: return date_text(static_cast<int64_t>(c.integer));
      default: return integer_text(c.integer);
    }
  }
  // Days since 1970-01-01 (Hinnant, "chrono-Compatible Low-Level Date Algorithms").
  static std::string date_text(int64_t days) {
    days += 719468;
    const int64_t era = (days >= 0 ? days : days - 146096) / 146097, of_era = days - era * 146097;
    const int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    const int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    const int64_t month = (5 * of_year + 2) / 153, day = of_year - (153 * month + 2) / 5 + 1;
    return fmt::format("{:04}-{:02}-{:02}", year + era * 400 + (month >= 10),
                       month < 10 ? month + 3 : month - 9, day);
  }

  std::string call_text(const Expression& e, const Names& in) const {
    Names arguments;
    for (ExpressionId a : plan_.of(e.arguments)) arguments.push_back(text_of(a, in));
    auto infix = [&](std::string_view sign) {
      return "(" + joined(arguments, fmt::format(" {} ", sign)) + ")";
    };
    switch (e.function) {
      case Function::equal: return infix("=");
      case Function::not_equal: return infix("<>");
      case Function::less: return infix("<");
      case Function::greater: return infix(">");
      case Function::at_most: return infix("<=");
      case Function::at_least: return infix(">=");
      case Function::distinct_from: return infix("IS DISTINCT FROM");
      case Function::not_distinct_from: return infix("IS NOT DISTINCT FROM");
      case Function::and_: return infix("AND");
      case Function::or_: return infix("OR");
      case Function::like: return infix("LIKE");
      case Function::not_like: return infix("NOT LIKE");
      case Function::between:
        return fmt::format("({} {} {} {} {})", arguments[1], e.lower_inclusive ? "<=" : "<",
                           arguments[0], e.upper_inclusive ? "<=" : "<", arguments[2]);
      case Function::in:
      case Function::not_in: {
        const std::string value = arguments[0];
        arguments.erase(arguments.begin());
        return fmt::format("({} {} ({}))", value, e.function == Function::in ? "IN" : "NOT IN",
                           joined(arguments));
      }
      case Function::not_: return "(NOT " + arguments[0] + ")";
      case Function::is_null: return "(" + arguments[0] + " IS NULL)";
      case Function::is_not_null: return "(" + arguments[0] + " IS NOT NULL)";
      case Function::coalesce: return "COALESCE(" + joined(arguments) + ")";
      case Function::cast: return fmt::format("CAST({} AS {})", arguments[0], type_name(e.type));
      case Function::case_: {
        std::string text = "CASE";
        size_t i = 0;
        for (; i + 1 < arguments.size(); i += 2)
          text += fmt::format(" WHEN {} THEN {}", arguments[i], arguments[i + 1]);
        return text + (i < arguments.size() ? " ELSE " + arguments[i] : "") + " END";
      }
      default: {
        const std::string_view name = name_of(e.function);
        if (arguments.size() == 2 && !std::isalpha(static_cast<unsigned char>(name[0])))
          return infix(name);
        return fmt::format("{}({})", name, joined(arguments));
      }
    }
  }

  std::string text_of(ExpressionId id, const Names& in) const {
    const Expression& e = plan_[id];
    switch (e.kind) {
      case Expression::column:
        return e.index < in.size() ? in[e.index] : fmt::format("#{}", e.index);
      case Expression::constant: return constant_text(e);
      case Expression::call: return call_text(e, in);
      case Expression::aggregate:
      case Expression::window: break;
    }
    const Window* window = e.kind == Expression::window ? &plan_.windows[e.index] : nullptr;
    Names arguments;
    for (ExpressionId a : plan_.of(e.arguments)) arguments.push_back(text_of(a, in));
    const std::string order = e.orders.count ? " ORDER BY " + keys_text(e.orders, in) : "";
    std::string text = fmt::format(
        "{}({}{}{}{})",
        window && window->function != WindowFunction::aggregate ? name_of(window->function)
                                                                : name_of(e.aggregate_function),
        e.distinct ? "DISTINCT " : "", joined(arguments), order,
        window && window->ignores_nulls ? " IGNORE NULLS" : "");
    if (e.filter != none<ExpressionId>()) text += " FILTER (WHERE " + text_of(e.filter, in) + ")";
    return window ? text + " OVER (" + window_text(*window, in) + ")" : text;
  }
  std::string end_text(const FrameEnd& end, const Names& in) const {
    const char* side = end.following ? "FOLLOWING" : "PRECEDING";
    if (end.kind == FrameEnd::unbounded) return fmt::format("UNBOUNDED {}", side);
    if (end.kind == FrameEnd::values) return fmt::format("{} {}", text_of(end.offset, in), side);
    const char* unit = end.kind == FrameEnd::rows ? "ROW" : "GROUP";
    if (end.offset == none<ExpressionId>()) return fmt::format("CURRENT {}", unit);
    return fmt::format("{} {}S {}", text_of(end.offset, in), unit, side);
  }
  std::string window_text(const Window& w, const Names& in) const {
    std::string text;
    if (w.partitions.count) text = "PARTITION BY " + joined(texts(w.partitions, in)) + " ";
    if (w.orders.count) text += "ORDER BY " + keys_text(w.orders, in) + " ";
    return fmt::format("{}BETWEEN {} AND {}", text, end_text(w.start, in), end_text(w.end, in));
  }
  Names texts(Range<ExpressionId> range, const Names& in) const {
    Names out;
    for (ExpressionId id : plan_.of(range)) out.push_back(text_of(id, in));
    return out;
  }
  // A column's name above: its text where that is short.
  static std::string name_of_column(std::string text, const char* kind, size_t at) {
    return text.size() <= 60 ? text : fmt::format("{}#{}", kind, at + 1);
  }
  Names projected(const Names& in, bool projects, Range<uint32_t> map, size_t first,
                  size_t count) const {
    Names out;
    if (!projects)
      return {in.begin() + static_cast<ptrdiff_t>(first),
              in.begin() + static_cast<ptrdiff_t>(first + count)};
    for (uint32_t i : plan_.of(map))
      out.push_back(i < count ? in[first + i] : fmt::format("#{}", i));
    return out;
  }

  std::string keys_text(Range<OrderKey> orders, const Names& in) const {
    Names keys;
    for (const OrderKey& k : plan_.of(orders))
      keys.push_back(text_of(k.expression, in) + (k.descending ? " DESC" : "") +
                     (k.nulls_first ? " NULLS FIRST" : ""));
    return joined(keys);
  }
  std::string limit_text(const Node& n) const {
    std::string text = n.is_percent ? fmt::format(" {}%", n.percent) : n.has_limit ? fmt::format(" {}", n.limit) : "";
    return n.offset ? text + fmt::format(" OFFSET {}", n.offset) : text;
  }

  std::string node_text(const Node& n, const Names& in, size_t left, Names& out) {
    out = projected(in, n.projects, n.projection, 0, in.size());
    switch (n.op) {
      case Operator::scan: {
        Names read;
        for (uint32_t c : plan_.of(n.columns))
          read.push_back(c < n.names.count ? plan_.of(n.names)[c] : std::string("row number"));
        out = projected(read, n.projects, n.projection, 0, read.size());
        if (n.table.empty())
          return fmt::format("series of {} from {} by {}", n.count, n.first, n.step);
        const std::string filter = joined(texts(n.expressions, read), " AND ");
        return fmt::format("scan {}: {}{}", n.table, joined(read),
                           filter.empty() ? "" : " where " + filter);
      }
      case Operator::filter: return "filter " + joined(texts(n.expressions, in), " AND ");
      case Operator::project: {
        const Names values = texts(n.expressions, in);
        out.clear();
        for (size_t i = 0; i < values.size(); ++i)
          out.push_back(name_of_column(values[i], "value", i));
        return "project " + joined(values);
      }
      case Operator::aggregate: {
        const Names keys = texts(n.groups, in), values = texts(n.expressions, in);
        out = keys;
        for (size_t i = 0; i < values.size(); ++i)
          out.push_back(name_of_column(values[i], "aggregate", i));
        for (uint32_t i = 0; i < n.grouping_count; ++i)
          out.push_back(fmt::format("grouping#{}", i + 1));
        return fmt::format("aggregate {}{}{}", joined(values),
                           keys.empty() ? "" : " by " + joined(keys),
                           n.set_count ? fmt::format(", {} grouping sets", n.set_count) : "");
      }
      case Operator::join:
      case Operator::any_join:
      case Operator::asof_join: {
        const Names a(in.begin(), in.begin() + static_cast<ptrdiff_t>(left)),
            b(in.begin() + static_cast<ptrdiff_t>(left), in.end());
        Names on;
        for (const Condition& c : plan_.of(n.conditions)) {
          const std::string_view sign = c.comparison == Function::equal       ? "="
                                        : c.comparison == Function::not_equal ? "<>"
                                        : c.comparison == Function::less      ? "<"
                                        : c.comparison == Function::greater   ? ">"
                                        : c.comparison == Function::at_most   ? "<="
                                        : c.comparison == Function::at_least  ? ">="
                                        : c.comparison == Function::not_distinct_from
                                            ? "IS NOT DISTINCT FROM"
                                            : "IS DISTINCT FROM";
          on.push_back(fmt::format("{} {} {}", text_of(c.left, a), sign, text_of(c.right, b)));
        }
        for (const std::string& e : texts(n.expressions, in)) on.push_back(e);
        out = projected(a, n.projects, n.projection, 0, a.size());
        const Names right = projected(b, n.right_projects, n.right_projection, 0, b.size());
        if (n.join == JoinType::mark)
          out.push_back("found");
        else if (n.join == JoinType::right_semi || n.join == JoinType::right_anti)
          out = right;
        else if (n.join != JoinType::semi && n.join != JoinType::anti)
          out.insert(out.end(), right.begin(), right.end());
        return fmt::format("{}{} join on {}", n.op == Operator::asof_join ? "asof " : "",
                           join_names[static_cast<size_t>(n.join)],
                           joined(on, " AND "));
      }
      case Operator::window: {
        const Names values = texts(n.expressions, in);
        for (size_t i = 0; i < values.size(); ++i)
          out.push_back(name_of_column(values[i], "window", i));
        return "window " + joined(values);
      }
      case Operator::positional: return "join by row numbers";
      case Operator::unnest: {
        for (uint32_t k = 0; k < n.lists.count / 2; ++k) out.push_back(fmt::format("unnest#{}", k + 1));
        return "unnest " + joined(texts(n.expressions, in));
      }
      case Operator::cross: return "cross product";
      case Operator::order: return "order by " + keys_text(n.orders, in);
      case Operator::top: return fmt::format("top{} by {}", limit_text(n), keys_text(n.orders, in));
      case Operator::limit: return "limit" + limit_text(n);
      case Operator::distinct: return "distinct";
      case Operator::union_: return n.all ? "union all" : "union";
      case Operator::except: return n.all ? "except all" : "except";
      case Operator::intersect: return n.all ? "intersect all" : "intersect";
      case Operator::cte: return fmt::format("with #{}: the first, used in the second", n.cte);
      case Operator::cte_ref:
        for (size_t i = 0; i < n.types.count; ++i)
          out.push_back(fmt::format("#{}.{}", n.cte, i + 1));
        return fmt::format("read #{}", n.cte);
      case Operator::one_row: return "one row";
      case Operator::no_rows: return "no rows";
      case Operator::values:
        for (size_t i = 0; i < n.types.count; ++i) out.push_back(fmt::format("value#{}", i + 1));
        return "values";
    }
    return "";
  }

  const Plan& plan_;
  Names lines_;
};

}  // namespace

std::string plan_text(const Plan& plan) {
  Writer writer(plan);
  writer.write(plan.root, 0);
  return writer.text();
}

}  // namespace rndn::sql
