// Reads the planner's JSON into records (plan.h).
//
// In: the text that DuckDB 2.0.1's json_serialize_plan gives with skip_null, skip_empty and
// skip_default, so that a field that is not there has its default. Out: a plan in which every
// function, operator and type is one that the tables know, ranges are in bounds, and nesting is at
// most `depth_limit`. What refers to columns is checked by the translator, which knows their
// number. The first thing that is not known is the error, by its name in the plan. Any text gives a
// plan or an error. Cost: linear in the text, beside nlohmann's parser. Left out: extra information of
// other planners' versions.
#include "frontend/sql/plan.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace rndn::sql {
namespace {

using Json = nlohmann::json;

constexpr size_t depth_limit = 400;  // levels of operators and expressions together

struct OperatorRow {
  std::string_view name;
  size_t least, most;
};
constexpr OperatorRow operators[] = {
#define SQL_OPERATOR(id, name, least, most) {name, least, most},
#include "frontend/sql/operators.def"
#undef SQL_OPERATOR
};

struct FunctionRow {
  std::string_view name;
  size_t least, most;
};
constexpr FunctionRow functions[] = {
#define SQL_FUNCTION(id, name, least, most, rule, builtin) {name, least, most},
#define SQL_AGGREGATE(id, name, least, most)
#include "frontend/sql/functions.def"
#undef SQL_FUNCTION
#undef SQL_AGGREGATE
};
constexpr FunctionRow aggregates[] = {
#define SQL_FUNCTION(id, name, least, most, rule, builtin)
#define SQL_AGGREGATE(id, name, least, most) {name, least, most},
#include "frontend/sql/functions.def"
#undef SQL_FUNCTION
#undef SQL_AGGREGATE
};
constexpr FunctionRow window_functions[] = {
#define SQL_WINDOW(id, name, least, most) {name, least, most},
#include "frontend/sql/windows.def"
#undef SQL_WINDOW
};
struct FrameEndRow {
  std::string_view name;
  FrameEnd::Kind kind;
  bool following, has_offset;
};
constexpr FrameEndRow frame_ends[] = {
    {"UNBOUNDED_PRECEDING", FrameEnd::unbounded, false, false},
    {"UNBOUNDED_FOLLOWING", FrameEnd::unbounded, true, false},
    {"CURRENT_ROW_ROWS", FrameEnd::rows, false, false},
    {"CURRENT_ROW_RANGE", FrameEnd::peers, false, false},
    {"CURRENT_ROW_GROUPS", FrameEnd::peers, false, false},
    {"EXPR_PRECEDING_ROWS", FrameEnd::rows, false, true},
    {"EXPR_FOLLOWING_ROWS", FrameEnd::rows, true, true},
    {"EXPR_PRECEDING_RANGE", FrameEnd::values, false, true},
    {"EXPR_FOLLOWING_RANGE", FrameEnd::values, true, true},
    {"EXPR_PRECEDING_GROUPS", FrameEnd::peers, false, true},
    {"EXPR_FOLLOWING_GROUPS", FrameEnd::peers, true, true},
};
constexpr std::string_view type_names[] = {
#define SQL_TYPE(id, name, horseir) name,
#include "frontend/sql/types.def"
#undef SQL_TYPE
};
struct JoinRow {
  std::string_view name;
  JoinType type;
};
constexpr JoinRow joins[] = {
    {"INNER", JoinType::inner},
    {"LEFT", JoinType::left},
    {"RIGHT", JoinType::right},
    {"OUTER", JoinType::full},
    {"FULL", JoinType::full},
    {"SEMI", JoinType::semi},
    {"ANTI", JoinType::anti},
    {"MARK", JoinType::mark},
    {"RIGHT_SEMI", JoinType::right_semi},
    {"RIGHT_ANTI", JoinType::right_anti},
    {"SINGLE", JoinType::single},
};

// The place of the row with this name, or the number of rows.
template <class Row, size_t n>
size_t find_row(const Row (&rows)[n], std::string_view name) {
  size_t at = 0;
  while (at < n && rows[at].name != name) ++at;
  return at;
}

class Reader {
 public:
  Place failed_at() const { return failed_at_; }
  Result<Plan> read(std::string_view text) {
    const Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded()) return input_error("the planner's answer is not JSON");
    if (boolean(json, "error"))
      return input_error("{}", text_of(json, "error_message", "the planner refuses the statement"));
    const Json& plans = list(json, "plans");
    if (plans.size() != 1)
      return input_error("the planner gives {} plans; one statement at a time is translated",
                         plans.size());
    const Json* plan = field(plans[0], "plan");
    plan_.root = node(plan ? *plan : plans[0], 0);
    if (error_) return *error_;
    return std::move(plan_);
  }

 private:
  // Keeps the first error; what is read after it does not matter.
  template <class... Args>
  void fail(fmt::format_string<Args...> format, Args&&... args) {
    if (error_) return;
    error_ = input_error("{}", fmt::format(format, std::forward<Args>(args)...));
    failed_at_ = place_;
  }

  static const Json* field(const Json& object, const char* name) {
    if (!object.is_object()) return nullptr;
    const auto at = object.find(name);
    return at == object.end() || at->is_null() ? nullptr : &*at;
  }
  const Json& list(const Json& object, const char* name) {
    static const Json nothing = Json::array();
    const Json* at = field(object, name);
    if (!at) return nothing;
    if (at->is_array()) return *at;
    fail("the plan's field `{}` is no list", name);
    return nothing;
  }
  std::string text_of(const Json& object, const char* name, std::string_view missing = "") {
    const Json* at = field(object, name);
    if (!at) return std::string(missing);
    if (at->is_string()) return at->get<std::string>();
    fail("the plan's field `{}` is no text", name);
    return std::string(missing);
  }
  bool boolean(const Json& object, const char* name, bool missing = false) {
    const Json* at = field(object, name);
    if (!at) return missing;
    if (at->is_boolean()) return at->get<bool>();
    fail("the plan's field `{}` is neither true nor false", name);
    return missing;
  }
  uint64_t number_of(const Json& value, const char* name) {
    if (value.is_number_unsigned()) return value.get<uint64_t>();
    if (value.is_number_integer() && value.get<int64_t>() >= 0)
      return static_cast<uint64_t>(value.get<int64_t>());
    fail("the plan's field `{}` is no number of a column or row", name);
    return 0;
  }
  uint64_t number(const Json& object, const char* name, uint64_t missing = 0) {
    const Json* at = field(object, name);
    return at ? number_of(*at, name) : missing;
  }
  // Positions are below 2^32 in every plan; what is not is the planner's mark of "no column".
  uint32_t position(const Json& object, const char* name) {
    return static_cast<uint32_t>(std::min<uint64_t>(number(object, name), UINT32_MAX));
  }

  template <class T>
  static Range<T> append(std::vector<T>& all, const std::vector<T>& items) {
    Range<T> range{static_cast<uint32_t>(all.size()), static_cast<uint32_t>(items.size())};
    all.insert(all.end(), items.begin(), items.end());
    return range;
  }

  Type enumeration(const Json& json) {
    const Json* info = field(json, "type_info");
    std::vector<std::string> texts;
    if (info)
      for (const Json& value : list(*info, "values"))
        if (value.is_string()) texts.push_back(value.get<std::string>());
    if (texts.empty()) fail("an ENUM of the plan has no values");
    auto at = std::find(plan_.enums.begin(), plan_.enums.end(), texts);
    if (at == plan_.enums.end()) at = plan_.enums.insert(at, std::move(texts));
    const auto place = at - plan_.enums.begin();
    if (place > UINT16_MAX) fail("a plan with more than {} ENUMs has no translation", UINT16_MAX);
    Type type{TypeId::enumeration};
    type.list = static_cast<uint16_t>(place);
    return type;
  }

  Type type(const Json* json) {
    Type type;
    if (!json) return fail("an expression of the plan has no type"), type;
    const std::string id = text_of(*json, "id");
    size_t at = 0;
    while (at < std::size(type_names) && type_names[at] != id) ++at;
    if (id == "SQLNULL" || id == "\"NULL\"" || id == "NULL") return {TypeId::integer};
    if (id == "ENUM") return enumeration(*json);
    if (at == std::size(type_names))
      return fail("the type {} has no translation", id.empty() ? "?" : id), type;
    type.id = static_cast<TypeId>(at);
    if (type.id != TypeId::decimal) return type;
    const Json* info = field(*json, "type_info");
    const uint64_t width = info ? number(*info, "width") : 0,
                   scale = info ? number(*info, "scale") : 0;
    if (width == 0 || width > 38 || scale > width)
      return fail("DECIMAL({},{}) has no translation", width, scale), type;
    type.width = static_cast<uint8_t>(width);
    type.scale = static_cast<uint8_t>(scale);
    return type;
  }
  Range<Type> types(const Json& object, const char* name) {
    std::vector<Type> out;
    for (const Json& t : list(object, name)) out.push_back(type(&t));
    return append(plan_.types, out);
  }

  __int128 integer(const Json& value) {
    if (value.is_number_unsigned()) return value.get<uint64_t>();
    if (value.is_number_integer()) return value.get<int64_t>();
    if (value.is_boolean()) return value.get<bool>();
    const Json *upper = field(value, "upper"), *lower = field(value, "lower");
    if (value.is_object() && (!upper || upper->is_number_integer()) &&
        (!lower || lower->is_number_integer())) {
      const __int128 high = upper ? upper->get<int64_t>() : 0;
      return static_cast<__int128>(static_cast<unsigned __int128>(high) << 64 |
                                   (lower ? lower->get<uint64_t>() : 0));
    }
    fail("a constant of the plan is no integer");
    return 0;
  }

  // Parts that are zero do not stand there.
  void interval(const Json* value, Constant& c) {
    const auto part = [&](const char* name) -> int64_t {
      const Json* at = value ? field(*value, name) : nullptr;
      if (at && !at->is_number_integer()) fail("an interval of the plan is none");
      return at && at->is_number_integer() ? at->get<int64_t>() : 0;
    };
    c.integer = part("months");
    c.days = part("days");
    c.micros = part("micros");
  }

  ExpressionId constant(const Json* value) {
    Constant c;
    if (!value) return fail("a constant of the plan has no value"), ExpressionId{};
    const Json* type_json = field(*value, "type");
    c.type = type(type_json);
    c.is_null = boolean(*value, "is_null");
    const Json* v = field(*value, "value");
    if (!c.is_null) {
      if (c.type.id == TypeId::interval)
        interval(v, c);
      else if (!v)
        fail("a constant of the plan has no value");
      else if (c.type.id == TypeId::varchar) {
        if (v->is_string())
          c.text = v->get<std::string>();
        else
          fail("a text of the plan holds bytes that are no text");
      } else if (c.type.id == TypeId::real || c.type.id == TypeId::double_) {
        if (v->is_number())
          c.real = v->get<double>();
        else if (*v == "NAN" || *v == "NaN")
          c.real = std::numeric_limits<double>::quiet_NaN();
        else if (*v == "Infinity" || *v == "-Infinity")
          c.real = std::numeric_limits<double>::infinity() * (*v == "Infinity" ? 1 : -1);
        else
          fail("a constant of type {} is no number", type_name(c.type));
      } else {
        c.integer = integer(*v);
        if (c.type.id == TypeId::boolean && c.integer != 0 && c.integer != 1) fail("a constant of type {} is no truth value", type_name(c.type));
      }
    }
    Expression e;
    e.kind = Expression::constant;
    e.type = c.type;
    e.index = static_cast<uint32_t>(plan_.constants.size());
    plan_.constants.push_back(std::move(c));
    return plan_.expressions.add(e);
  }

  ExpressionId column(uint32_t at, Type type) {
    Expression e;
    e.kind = Expression::column;
    e.type = type;
    e.index = at;
    return plan_.expressions.add(e);
  }

  // A function by its row, with the number of arguments that it takes.
  ExpressionId call(std::string_view name, const std::vector<ExpressionId>& arguments, Type type,
                    const Json& from) {
    const size_t row = find_row(functions, name);
    if (row == std::size(functions))
      return fail("the function {} has no translation", name), ExpressionId{};
    if (arguments.size() < functions[row].least || arguments.size() > functions[row].most)
      return fail("the function {} with {} arguments has no translation", name, arguments.size()),
             ExpressionId{};
    Expression e;
    e.kind = Expression::call;
    e.function = static_cast<Function>(row);
    e.type = type;
    e.arguments = append(plan_.expression_lists, arguments);
    e.place = place_of(from);
    if (e.function == Function::between) {
      const Json* data = field(from, "function_data");
      e.lower_inclusive = data && boolean(*data, "lower_inclusive");
      e.upper_inclusive = data && boolean(*data, "upper_inclusive");
    }
    if (e.function == Function::cast) {
      const Json* data = field(from, "function_data");
      e.tries = data && boolean(*data, "try_cast");
    }
    return plan_.expressions.add(e);
  }

  std::vector<ExpressionId> expressions(const Json& object, const char* name, size_t depth) {
    std::vector<ExpressionId> out;
    for (const Json& child : list(object, name)) out.push_back(expression(child, depth));
    return out;
  }

  static std::string last_name(const Json& json) {
    const Json* name = field(json, "qname");
    const Json* path = name ? field(*name, "path") : nullptr;
    return path && path->is_array() && !path->empty() && path->back().is_string()
               ? path->back().get<std::string>()
               : std::string();
  }

  // What the planner made itself has none, or one beyond 32 bits.
  Place place_of(const Json& json) {
    const uint64_t offset = number(json, "query_location", UINT32_MAX);
    const uint64_t length = number(json, "query_location_length");
    if (offset >= UINT32_MAX || length >= UINT32_MAX) return {};
    return {static_cast<uint32_t>(offset), static_cast<uint32_t>(length)};
  }

  ExpressionId expression(const Json& json, size_t depth) {
    if (error_) return {};
    const PlaceScope scope(place_, place_of(json));
    if (depth > depth_limit)
      return fail("the plan is nested more than {} levels deep", depth_limit), ExpressionId{};
    const std::string kind = text_of(json, "expression_class");
    if (kind == "BOUND_REF")
      return column(position(json, "index"), type(field(json, "return_type")));
    if (kind == "BOUND_CONSTANT") return constant(field(json, "value"));
    const std::string id = text_of(json, "type");
    static const Type truth{TypeId::boolean};
    if (kind == "BOUND_CONJUNCTION")
      return call(id, expressions(json, "children", depth + 1), truth, json);
    if (kind == "BOUND_OPERATOR")
      return call(id, expressions(json, "children", depth + 1), type(field(json, "return_type")),
                  json);
    if (kind == "BOUND_FUNCTION" && last_name(json) == "array_extract")
      if (const Json& children = list(json, "children"); children.size() == 2)
        if (const std::string inner = last_name(children[0]);
            inner == "string_split" || inner == "split" || inner == "str_split" ||
            inner == "string_to_array") {
          std::vector<ExpressionId> parts = expressions(children[0], "children", depth + 1);
          parts.push_back(expression(children[1], depth + 1));
          return call("array_extract(string_split)", parts, type(field(json, "return_type")), json);
        }
    if (kind == "BOUND_FUNCTION")
      return call(id == "BOUND_FUNCTION" ? last_name(json) : id,
                  expressions(json, "children", depth + 1), type(field(json, "return_type")), json);
    if (kind == "BOUND_CASE") {
      std::vector<ExpressionId> parts;
      for (const Json& check : list(json, "case_checks"))
        for (const char* part : {"when_expr", "then_expr"})
          parts.push_back(member(check, part, depth));
      parts.push_back(member(json, "else_expr", depth));
      return call("CASE_EXPR", parts, type(field(json, "return_type")), json);
    }
    if (kind == "BOUND_AGGREGATE") return aggregate(json, depth);
    if (kind == "BOUND_WINDOW") return window(json, id, depth);
    fail("the expression {} has no translation", kind.empty() ? "without a class" : kind);
    return {};
  }

  ExpressionId member(const Json& json, const char* name, size_t depth) {
    const Json* at = field(json, name);
    if (at) return expression(*at, depth + 1);
    fail("an expression of the plan has no `{}`", name);
    return {};
  }

  // The row of a function's table, and its arguments.
  template <size_t n>
  size_t applied(const FunctionRow (&rows)[n], std::string_view what, std::string_view name,
                 const Json& json, size_t depth, Expression& e) {
    const size_t row = find_row(rows, name);
    if (row == n) return fail("the {} {} has no translation", what, name), 0;
    const std::vector<ExpressionId> arguments = expressions(json, "children", depth + 1);
    if (arguments.size() < rows[row].least || arguments.size() > rows[row].most)
      return fail("the {} {} with {} arguments has no translation", what, name, arguments.size()), 0;
    e.type = type(field(json, "return_type"));
    e.arguments = append(plan_.expression_lists, arguments);
    e.place = place_of(json);
    return row;
  }

  FrameEnd frame_end(const Json& json, const char* name, const char* offset, size_t depth) {
    const std::string kind = text_of(json, name);
    const size_t row = find_row(frame_ends, kind);
    if (row == std::size(frame_ends))
      return fail("the frame of a window with {} has no translation", kind), FrameEnd{};
    FrameEnd end{frame_ends[row].kind, frame_ends[row].following};
    if (frame_ends[row].has_offset) end.offset = member(json, offset, depth);
    return end;
  }

  ExpressionId window(const Json& json, std::string_view kind, size_t depth) {
    Expression e;
    e.kind = Expression::window;
    e.index = static_cast<uint32_t>(plan_.windows.size());
    Window w;
    if (kind == "WINDOW_AGGREGATE") {
      w.function = WindowFunction::aggregate;
      // COUNT(*) is `count` of nothing here.
      const std::string name = last_name(json);
      const bool counts_rows = name == "count" && list(json, "children").empty();
      e.aggregate_function = static_cast<Aggregate>(
          applied(aggregates, "aggregate", counts_rows ? "count_star" : name, json, depth, e));
      if (is_of_extreme(e.aggregate_function) && e.arguments.count == 1)
        fail("the aggregate {} with 1 argument has no translation", name);
      e.quantile = quantile(json);
    } else {
      w.function =
          static_cast<WindowFunction>(applied(window_functions, "function", kind, json, depth, e));
    }
    plan_.windows.push_back(w);
    if (!list(json, "arg_orders").empty())
      fail("ORDER BY within the arguments of a window has no translation");
    constexpr std::string_view excluded[] = {"NO_OTHER", "CURRENT_ROW", "GROUP", "TIES"};
    const std::string exclude = text_of(json, "exclude_clause", "NO_OTHER");
    const size_t at = static_cast<size_t>(std::find(std::begin(excluded), std::end(excluded), exclude) - excluded);
    if (at == std::size(excluded))
      fail("EXCLUDE {} in the frame of a window has no translation", exclude);
    else
      w.exclude = static_cast<Window::Exclude>(at);
    e.distinct = boolean(json, "distinct");
    w.ignores_nulls = boolean(json, "ignore_nulls");
    w.partitions = append(plan_.expression_lists, expressions(json, "partitions", depth + 1));
    w.orders = orders(json, "orders", depth);
    w.start = frame_end(json, "start", "start_expr", depth);
    w.end = frame_end(json, "end", "end_expr", depth);
    for (const FrameEnd& end : {w.start, w.end})
      if (end.kind == FrameEnd::values && w.orders.count != 1)
        fail("the frame of a window between values has {} orders", w.orders.count);
    if (const Json* filter = field(json, "filters")) e.filter = expression(*filter, depth + 1);
    plan_.windows[e.index] = w;
    return plan_.expressions.add(e);
  }

  // The one quantile of an aggregate, from 0 to 1, from least to greatest; 0 of other aggregates.
  double quantile(const Json& json) {
    const Json* function_data = field(json, "function_data");
    if (!function_data || !field(*function_data, "quantiles")) return 0;
    const Json& data = *function_data;
    const Json& all = list(data, "quantiles");
    if (all.size() != 1 || boolean(data, "desc"))
      return fail("quantiles in descending order, or several at once, have no translation"), 0;
    const Type as = type(field(all[0], "type"));
    const Json* value = field(all[0], "value");
    const double number = value && value->is_number() ? value->get<double>() : -1;
    double unit = 1;
    for (unsigned k = 0; as.id == TypeId::decimal && k < as.scale; ++k) unit *= 10;
    if (number < 0 || number > unit) return fail("a quantile below 0 or beyond 1 has no translation"), 0;
    return number / unit;
  }

  static bool is_of_extreme(Aggregate f) {
    switch (f) {
      case Aggregate::arg_min:
      case Aggregate::arg_max:
      case Aggregate::argmin:
      case Aggregate::argmax:
      case Aggregate::min_by:
      case Aggregate::max_by:
      case Aggregate::arg_min_null:
      case Aggregate::arg_max_null: return true;
      default: return false;
    }
  }
  static bool joins_texts(Aggregate f) {
    return f == Aggregate::string_agg || f == Aggregate::group_concat || f == Aggregate::listagg;
  }

  // The orders of a sort key: expressions, each before its direction and where its nulls are.
  Range<OrderKey> sort_key(const Json& key, size_t depth) {
    std::vector<OrderKey> out;
    const Json& parts = list(key, "children");
    for (size_t k = 0; k + 1 < parts.size(); k += 2) {
      const Json* value = field(parts[k + 1], "value");
      const std::string how = value ? text_of(*value, "value") : "";
      const bool descending = how.starts_with("DESC"), nulls_first = how.ends_with("NULLS FIRST");
      if (!descending && !how.starts_with("ASC")) fail("the order {} has no translation", how);
      out.push_back({expression(parts[k], depth + 1), descending, nulls_first});
    }
    return append(plan_.orders, out);
  }

  ExpressionId aggregate(const Json& json, size_t depth) {
    const std::string name = last_name(json);
    Expression e;
    e.kind = Expression::aggregate;
    // first, last and any_value with ORDER BY: arg_min or arg_max by a key made of their orders.
    const Json& children = list(json, "children");
    const bool by_orders = children.size() == 2 && field(children[1], "qname") &&
                           last_name(children[1]) == "create_sort_key";
    Json of_one;
    if (by_orders) {
      of_one = json;
      of_one["children"].erase(1);
    }
    const Aggregate f = static_cast<Aggregate>(
        applied(aggregates, "aggregate", name, by_orders ? of_one : json, depth, e));
    e.aggregate_function = f;
    if (by_orders) e.orders = sort_key(children[1], depth + 1);
    if (is_of_extreme(f) && e.arguments.count == 1 && !e.orders.count)
      fail("the aggregate {} with 1 argument has no translation", name);
    if (const Json* order = field(json, "order_bys")) {
      if (!joins_texts(f)) fail("the aggregate {} with ORDER BY has no translation", name);
      e.orders = orders(*order, "orders", depth);
    }
    e.distinct = text_of(json, "aggregate_type") == "DISTINCT";
    e.quantile = quantile(json);
    if (joins_texts(f) && e.arguments.count == 2) separator(json, e);
    if (const Json* filter = field(json, "filter")) e.filter = expression(*filter, depth + 1);
    return plan_.expressions.add(e);
  }

  // Where the planner has taken the separator of texts out of the arguments, it stands beside them.
  void separator(const Json& json, const Expression& e) {
    const Json* data = field(json, "function_data");
    if (!data || !field(*data, "separator")) return;
    Expression constant;
    constant.kind = Expression::constant;
    constant.type = {TypeId::varchar};
    constant.index = static_cast<uint32_t>(plan_.constants.size());
    constant.place = e.place;
    plan_.constants.push_back({.type = constant.type, .text = text_of(*data, "separator")});
    plan_.expression_lists[e.arguments.begin + 1] = plan_.expressions.add(constant);
  }

  // A filter that the planner pushed into a scan, of one column. False: it only repeats what stands
  // above the scan.
  bool scan_filter(const Json& json, ExpressionId column_id, size_t depth,
                   std::vector<ExpressionId>& out) {
    static const Type truth{TypeId::boolean};
    if (depth > depth_limit)
      return fail("the plan is nested more than {} levels deep", depth_limit), false;
    const std::string kind = text_of(json, "filter_type");
    if (kind == "LEGACY_OPTIONAL_FILTER" || kind == "OPTIONAL_FILTER") return false;
    if (kind == "LEGACY_CONSTANT_COMPARISON") {
      out.push_back(call(text_of(json, "comparison_type"),
                         {column_id, constant(field(json, "constant"))}, truth, json));
    } else if (kind == "LEGACY_IS_NULL") {
      out.push_back(call("OPERATOR_IS_NULL", {column_id}, truth, json));
    } else if (kind == "LEGACY_IS_NOT_NULL") {
      out.push_back(call("OPERATOR_IS_NOT_NULL", {column_id}, truth, json));
    } else if (kind == "LEGACY_CONJUNCTION_AND") {
      bool whole = true;
      for (const Json& child : list(json, "child_filters"))
        whole = scan_filter(child, column_id, depth + 1, out) && whole;
      return whole;
    } else if (kind == "LEGACY_CONJUNCTION_OR") {
      std::vector<ExpressionId> parts;
      for (const Json& child : list(json, "child_filters")) {
        std::vector<ExpressionId> conjuncts;
        if (!scan_filter(child, column_id, depth + 1, conjuncts) || conjuncts.empty())
          return fail("a filter of a scan that is a part of OR has no translation"), false;
        parts.push_back(conjuncts.size() == 1 ? conjuncts[0]
                                              : call("CONJUNCTION_AND", conjuncts, truth, json));
      }
      out.push_back(call("CONJUNCTION_OR", parts, truth, json));
    } else if (kind == "LEGACY_IN_FILTER") {
      std::vector<ExpressionId> parts{column_id};
      for (const Json& value : list(json, "values")) parts.push_back(constant(&value));
      out.push_back(call("COMPARE_IN", parts, truth, json));
    } else if (kind == "EXPRESSION_FILTER") {
      // Over one column, which is number 0 in it.
      const Json* e = field(json, "expr");
      const size_t first = plan_.expressions.size();
      if (e)
        out.push_back(expression(*e, depth + 1));
      else
        fail("a filter of the plan has no expression");
      for (size_t i = first; i < plan_.expressions.size(); ++i) {
        Expression& added = plan_.expressions[static_cast<ExpressionId>(i)];
        if (added.kind == Expression::column) added.index = plan_[column_id].index;
      }
    } else {
      fail("the filter {} of a scan has no translation", kind.empty() ? "without a type" : kind);
    }
    return true;
  }

  Range<uint32_t> numbers(const Json& object, const char* name) {
    std::vector<uint32_t> out;
    for (const Json& n : list(object, name))
      out.push_back(static_cast<uint32_t>(std::min<uint64_t>(number_of(n, name), UINT32_MAX)));
    return append(plan_.numbers, out);
  }

  // A projection map: an empty one lets everything pass.
  void projection(const Json& json, const char* name, Range<uint32_t>& range, bool& projects) {
    range = numbers(json, name);
    projects = range.count > 0;
  }

  Range<OrderKey> orders(const Json& object, const char* name, size_t depth) {
    std::vector<OrderKey> out;
    for (const Json& order : list(object, name)) {
      OrderKey key;
      key.expression = member(order, "expression", depth);
      const std::string direction = text_of(order, "type"), nulls = text_of(order, "null_order");
      key.descending = direction == "DESCENDING";
      key.nulls_first = nulls == "NULLS FIRST" || nulls == "NULLS_FIRST";
      if (!key.descending && direction != "ASCENDING")
        fail("the order {} has no translation", direction);
      if (!key.nulls_first && nulls != "NULLS LAST" && nulls != "NULLS_LAST")
        fail("the order of nulls {} has no translation", nulls);
      out.push_back(key);
    }
    return append(plan_.orders, out);
  }

  // A limit or offset; false: none.
  bool limit(const Json* json, uint64_t& value, Node* n = nullptr) {
    if (!json) return false;
    const std::string kind = text_of(*json, "type", "UNSET");
    if (kind == "UNSET") return false;
    if (kind == "CONSTANT_PERCENTAGE" && n) {
      const Json* percent = field(*json, "constant_percentage");
      n->percent = percent && percent->is_number() ? percent->get<double>() : 100;
      if (!(n->percent >= 0 && n->percent <= 100)) fail("a LIMIT of {}% has no translation", n->percent);
      return n->is_percent = true;
    }
    if (kind != "CONSTANT_VALUE")
      return fail("a LIMIT or OFFSET that is {} has no translation",
                  kind.ends_with("PERCENTAGE") ? "a percentage" : "no constant"),
             false;
    value = number(*json, "constant_integer");
    return true;
  }

  // range and generate_series: end, or begin, end and step; `closed`: the end is one of them.
  void series(const Json& json, Node& n, bool closed) {
    constexpr uint64_t longest = uint64_t{1} << 32;  // rows of a relation (graph.cpp)
    constexpr int64_t day = int64_t{86400} * 1000000;
    std::vector<int64_t> numbers;
    bool is_null = false;
    Type of{TypeId::bigint};
    for (const Json& parameter : list(json, "parameters")) {
      const Json *type_json = field(parameter, "type"), *value = field(parameter, "value");
      is_null = is_null || boolean(parameter, "is_null");
      if (boolean(parameter, "is_null") || !value) {
        numbers.push_back(1);
      } else if (type_json && text_of(*type_json, "id") == "INTERVAL") {
        if (number(*value, "months")) return fail("a series of dates by months has no translation");
        const Json *days = field(*value, "days"), *micros = field(*value, "micros");
        numbers.push_back(static_cast<int64_t>((days ? integer(*days) : 0) * day +
                                               (micros ? integer(*micros) : 0)));
      } else {
        of = type(type_json);
        if (of.id != TypeId::bigint && of.id != TypeId::timestamp)
          return fail("a series of {} has no translation", type_name(of));
        numbers.push_back(static_cast<int64_t>(integer(*value)));
      }
    }
    if (numbers.empty() || numbers.size() > 3)
      return fail("a series with {} arguments has no translation", numbers.size());
    n.types = append(plan_.types, {of});
    std::vector<uint32_t> columns;
    for (const Json& column_json : list(json, "column_indexes"))
      columns.push_back(position(column_json, "index"));
    for (uint32_t c : columns)
      if (c != 0 && c != UINT32_MAX) return fail("a series has no column {}", c);
    n.columns = append(plan_.numbers, columns);
    projection(json, "projection_ids", n.projection, n.projects);
    if (numbers.size() > 1) n.first = numbers[0];
    if (numbers.size() > 2) n.step = numbers[2];
    const __int128 end = numbers[numbers.size() > 1], way = n.step < 0 ? n.first - end : end - n.first;
    const __int128 stride = n.step < 0 ? -static_cast<__int128>(n.step) : n.step;
    if (stride == 0) return fail("a series with steps of 0 has no translation");
    const __int128 count = is_null || way < (closed ? 0 : 1)
                               ? 0
                               : closed ? way / stride + 1 : (way + stride - 1) / stride;
    if (count > longest) return fail("a series of more than {} rows has no translation", longest);
    n.count = static_cast<uint64_t>(count);
  }

  void refuse_sample() {
    fail("samples (TABLESAMPLE, USING SAMPLE) have no translation: LIMIT takes the first rows");
  }

  void scan(const Json& json, Node& n, size_t depth) {
    const Json* extra = field(json, "extra_info");
    if (extra && field(*extra, "sample_options")) return refuse_sample();
    const Json* data = field(json, "function_data");
    n.table = data ? text_of(*data, "table") : std::string();
    const std::string function = last_name(json);
    if (n.table.empty() && function != "range" && function != "generate_series")
      fail("the table function {} has no translation", function);
    if (n.table.empty()) return series(json, n, function == "generate_series");
    std::vector<std::string> names;
    for (const Json& name : list(json, "names")) {
      if (!name.is_string()) return fail("the plan's field `names` holds what is no text");
      names.push_back(name.get<std::string>());
    }
    n.names = append(plan_.names, names);
    n.types = types(json, "returned_types");
    if (n.types.count != names.size())
      return fail("the scan of {} has a type for not every column", n.table);
    std::vector<uint32_t> columns;
    for (const Json& column_json : list(json, "column_indexes")) {
      const bool is_number = number(column_json, "index") == UINT64_MAX - 2;
      columns.push_back(is_number ? row_number : position(column_json, "index"));
    }
    for (uint32_t c : columns)
      if (c != row_id && c != row_number && c >= names.size())
        return fail("the scan of {} reads column {}", n.table, c);
    n.columns = append(plan_.numbers, columns);
    projection(json, "projection_ids", n.projection, n.projects);
    std::vector<ExpressionId> filters;
    if (const Json* table_filters = field(json, "table_filters"))
      for (const Json& filter : list(*table_filters, "filters")) {
        const uint32_t key = position(filter, "key");
        const Json* value = field(filter, "value");
        if (key >= columns.size() || columns[key] >= n.names.count || !value)
          return fail("a filter of the scan of {} names no column", n.table);
        scan_filter(*value, column(key, plan_.types[n.types.begin + columns[key]]), depth, filters);
      }
    n.expressions = append(plan_.expression_lists, filters);
  }

  void join(const Json& json, Node& n, size_t depth) {
    const std::string kind = text_of(json, "join_type", "INNER");
    const size_t row = find_row(joins, kind);
    if (row == std::size(joins)) return fail("the join {} has no translation", kind);
    n.join = joins[row].type;
    projection(json, "left_projection_map", n.projection, n.projects);
    projection(json, "right_projection_map", n.right_projection, n.right_projects);
    std::vector<Condition> conditions;
    std::vector<ExpressionId> others;
    for (const Json& c : list(json, "conditions")) {
      if (!field(c, "right")) {  // any predicate over both sides
        others.push_back(member(c, "left", depth));
        continue;
      }
      Condition condition;
      const std::string comparison = text_of(c, "comparison");
      const size_t f = find_row(functions, comparison);
      if (f == std::size(functions))
        return fail("the join condition {} has no translation", comparison);
      condition.comparison = static_cast<Function>(f);
      condition.left = member(c, "left", depth);
      condition.right = member(c, "right", depth);
      conditions.push_back(condition);
    }
    for (const char* name : {"condition", "predicate"})
      if (const Json* any = field(json, name)) others.push_back(expression(*any, depth + 1));
    n.conditions = append(plan_.conditions, conditions);
    n.expressions = append(plan_.expression_lists, others);
  }

  // Lists of keys of an aggregation: of each its length, and then the keys.
  Range<uint32_t> key_lists(const Json& json, const char* name, const Node& n) {
    std::vector<uint32_t> flat;
    for (const Json& keys : list(json, name)) {
      if (!keys.is_array()) return fail("the plan's field `{}` holds what is no list", name), Range<uint32_t>{};
      flat.push_back(static_cast<uint32_t>(keys.size()));
      for (const Json& key : keys) {
        const uint64_t k = number_of(key, name);
        if (k >= n.groups.count) fail("a list of `{}` has a key that is not there", name);
        flat.push_back(static_cast<uint32_t>(k));
      }
    }
    return append(plan_.numbers, flat);
  }

  void aggregates_of(const Json& json, Node& n, size_t depth) {
    n.groups = append(plan_.expression_lists, expressions(json, "groups", depth));
    n.expressions = append(plan_.expression_lists, expressions(json, "expressions", depth));
    n.groupings = key_lists(json, "grouping_functions", n);
    n.grouping_count = static_cast<uint32_t>(list(json, "grouping_functions").size());
    const Json& sets = list(json, "grouping_sets");
    if (sets.size() == 1 && sets[0].size() == n.groups.count) return;
    n.sets = key_lists(json, "grouping_sets", n);
    n.set_count = static_cast<uint32_t>(sets.size());
  }

  // UNNEST of lists that are made of each row: how many columns of its child stay, and its lists.
  // What a projection below it makes of columns (UNPIVOT does) is taken up here, in a projection
  // with the elements behind the other columns.
  NodeId unnest_of_columns(const Json& json, size_t depth) {
    Json child = list(json, "children")[0];
    std::vector<Json> made;
    size_t kept = 0;
    const bool is_projection = text_of(child, "type") == "LOGICAL_PROJECTION";
    std::vector<std::pair<Unnested, std::vector<Json>>> lists;
    for (const Json& e : list(json, "expressions")) {
      const Json* of = field(e, "child");
      const bool is_column = of && text_of(*of, "expression_class") == "BOUND_REF";
      if (is_column && is_projection) {
        const Json& columns = list(child, "expressions");
        const uint32_t at = position(*of, "index");
        if (at >= columns.size()) return fail("UNNEST names no column"), NodeId{};
        lists.push_back(list_of(columns[at]));
        const uint32_t first = static_cast<uint32_t>(columns.size() + made.size());
        for (size_t k = 0; k < lists.back().second.size(); ++k) {
          Json& part = lists.back().second[k];
          made.push_back(part);
          const Json type = part.contains("return_type") ? part["return_type"] : part["value"]["type"];
          part = {{"expression_class", "BOUND_REF"}, {"return_type", type}, {"index", first + k}};
        }
      } else if (of) {
        lists.push_back(list_of(*of));
      }
      if (error_) return {};
    }
    if (is_projection) {
      Json& columns = child["expressions"];
      kept = columns.size();
      for (Json& c : columns) {
        const Json* type = c.contains("value") ? field(c["value"], "type") : field(c, "return_type");
        if (type && text_of(*type, "id") == "LIST")
          c = {{"expression_class", "BOUND_CONSTANT"},
               {"value", {{"type", {{"id", "INTEGER"}}}, {"is_null", true}}}};
      }
      for (Json& part : made) columns.push_back(std::move(part));
    }
    Node n;
    n.op = Operator::unnest;
    n.children = append(plan_.node_lists, {node(child, depth + 1)});
    n.projects = is_projection;
    std::vector<uint32_t> map(kept), kinds;
    for (uint32_t k = 0; k < kept; ++k) map[k] = k;
    n.projection = append(plan_.numbers, map);
    std::vector<ExpressionId> parts;
    for (const auto& [kind, of] : lists) {
      kinds.push_back(static_cast<uint32_t>(kind));
      kinds.push_back(static_cast<uint32_t>(of.size()));
      for (const Json& part : of) parts.push_back(expression(part, depth + 1));
    }
    n.expressions = append(plan_.expression_lists, parts);
    n.lists = append(plan_.numbers, kinds);
    return plan_.nodes.add(std::move(n));
  }
  // What makes a list.
  std::pair<Unnested, std::vector<Json>> list_of(const Json& json) {
    const std::string name = last_name(json);
    const Json& children = list(json, "children");
    const std::vector<Json> parts(children.begin(), children.end());
    if (text_of(json, "expression_class") == "BOUND_CONSTANT") {
      const Json* value = field(json, "value");
      const Json* type_json = value ? field(*value, "type") : nullptr;
      const Json* info = type_json ? field(*type_json, "type_info") : nullptr;
      const Json* inner = value ? field(*value, "value") : nullptr;
      std::vector<Json> elements;
      if (info && field(*info, "child_type") && inner)
        for (Json element : list(*inner, "children")) {
          element["type"] = *field(*info, "child_type");
          elements.push_back({{"expression_class", "BOUND_CONSTANT"}, {"value", std::move(element)}});
        }
      if (!elements.empty()) return {Unnested::elements, elements};
    }
    if ((name == "list_value" || name == "unpivot_list" || name == "list_pack") && !parts.empty())
      return {Unnested::elements, parts};
    if ((name == "string_split" || name == "split" || name == "str_split" || name == "string_to_array") && parts.size() == 2)
      return {Unnested::parts, parts};
    if ((name == "range" || name == "generate_series") && !parts.empty() && parts.size() <= 3)
      return {name == "range" ? Unnested::range : Unnested::series, parts};
    fail("UNNEST of {} has no translation", name.empty() ? "a column of lists" : name);
    return {};
  }

  // UNNEST of constant lists is VALUES of their elements, the shorter ones filled up with nulls,
  // joined with each row that it stands over. `lists`: constants; `beside`: a column before theirs,
  // which is that of a row without a table.
  Json values_of(const std::vector<const Json*>& lists, bool beside) {
    const Json integer = {{"id", "INTEGER"}};
    Json types = beside ? Json::array({integer}) : Json::array();
    size_t rows = 0;
    for (const Json* constant : lists) {
      const Json* type_json = constant ? field(*constant, "type") : nullptr;
      const Json* info = type_json ? field(*type_json, "type_info") : nullptr;
      const Json* element = info ? field(*info, "child_type") : nullptr;
      if (!element) return fail("UNNEST of what is no constant list has no translation"), Json();
      types.push_back(*element);
      const Json* value = field(*constant, "value");
      if (value) rows = std::max(rows, list(*value, "children").size());
    }
    const auto cell = [](const Json& of_type, const Json* element) {
      Json value = element ? *element : Json{{"is_null", true}};
      value["type"] = of_type;
      return Json{{"expression_class", "BOUND_CONSTANT"}, {"type", "VALUE_CONSTANT"}, {"value", std::move(value)}};
    };
    Json lines = Json::array();
    for (size_t i = 0; i < rows; ++i) {
      Json line = beside ? Json::array({cell(integer, nullptr)}) : Json::array();
      for (size_t k = 0; k < lists.size(); ++k) {
        const Json* value = field(*lists[k], "value");
        const Json* elements = value ? field(*value, "children") : nullptr;
        line.push_back(cell(types[k + beside], elements && i < elements->size() ? &(*elements)[i] : nullptr));
      }
      lines.push_back(std::move(line));
    }
    return {{"type", "LOGICAL_EXPRESSION_GET"}, {"expr_types", std::move(types)}, {"expressions", std::move(lines)}};
  }
  NodeId unnest(const Json& json, size_t depth) {
    std::vector<const Json*> lists;
    for (const Json& e : list(json, "expressions")) {
      const Json* child = field(e, "child");
      lists.push_back(child ? field(*child, "value") : nullptr);
    }
    if (lists.empty()) lists.push_back(nullptr);
    const Json& children = list(json, "children");
    if (children.size() == 1 && std::find(lists.begin(), lists.end(), nullptr) != lists.end())
      return unnest_of_columns(json, depth);
    const bool alone = children.size() == 1 && text_of(children[0], "type") == "LOGICAL_DUMMY_SCAN";
    Json values = values_of(lists, alone);
    if (error_ || alone) return node(values, depth + 1);
    Json both = children;
    both.push_back(std::move(values));
    return node({{"type", "LOGICAL_CROSS_PRODUCT"}, {"children", std::move(both)}}, depth + 1);
  }
  // The same as a table: `FROM unnest([..])`.
  NodeId unnested_table(const Json& json, size_t depth) {
    const Json &parameters = list(json, "parameters"), &columns = list(json, "column_indexes");
    const Json* filters = field(json, "table_filters");
    if (!list(json, "children").empty())
      return fail("UNNEST in FROM of another table's columns has no translation; it has one in SELECT: SELECT a, "
                  "unnest(..) FROM t"),
             NodeId{};
    if (parameters.size() != 1 || !list(json, "projection_ids").empty() || (filters && !filters->empty()))
      return fail("UNNEST with filters or several lists as a table has no translation"), NodeId{};
    return node(values_of(std::vector<const Json*>(std::max<size_t>(1, columns.size()), &parameters[0]), false), depth + 1);
  }

  NodeId node(const Json& json, size_t depth) {
    if (error_) return {};
    if (depth > depth_limit)
      return fail("the plan is nested more than {} levels deep", depth_limit), NodeId{};
    const std::string name = text_of(json, "type");
    if (name == "LOGICAL_UNNEST") return unnest(json, depth);
    if (name == "LOGICAL_GET" && field(json, "qname") && last_name(json) == "unnest")
      return unnested_table(json, depth);
    const size_t row = find_row(operators, name);
    if (name == "LOGICAL_SAMPLE") return refuse_sample(), NodeId{};
    if (name == "LOGICAL_RECURSIVE_CTE")
      return fail("WITH RECURSIVE within a query has no translation: it stands where the statement begins"),
             NodeId{};
    if (row == std::size(operators))
      return fail("the operator {} has no translation", name.empty() ? "without a type" : name),
             NodeId{};
    Node n;
    n.op = static_cast<Operator>(row);
    std::vector<NodeId> children;
    for (const Json& child : list(json, "children")) children.push_back(node(child, depth + 1));
    if (children.size() < operators[row].least || children.size() > operators[row].most)
      return fail("the operator {} has {} children", name, children.size()), NodeId{};
    n.children = append(plan_.node_lists, children);
    switch (n.op) {
      case Operator::scan: scan(json, n, depth); break;
      case Operator::filter:
        n.expressions = append(plan_.expression_lists, expressions(json, "expressions", depth));
        projection(json, "projection_map", n.projection, n.projects);
        break;
      case Operator::project:
      case Operator::window:
        n.expressions = append(plan_.expression_lists, expressions(json, "expressions", depth));
        break;
      case Operator::aggregate: aggregates_of(json, n, depth); break;
      case Operator::join:
      case Operator::any_join:
      case Operator::asof_join: join(json, n, depth); break;
      case Operator::order:
        n.orders = orders(json, "orders", depth);
        projection(json, "projections", n.projection, n.projects);
        break;
      case Operator::top:
        n.orders = orders(json, "orders", depth);
        n.has_limit = true;
        n.limit = number(json, "limit");
        n.offset = number(json, "offset");
        break;
      case Operator::limit:
        n.has_limit = limit(field(json, "limit_val"), n.limit, &n);
        limit(field(json, "offset_val"), n.offset);
        break;
      case Operator::distinct:
        n.distinct_on = text_of(json, "distinct_type") == "DISTINCT_ON";
        n.groups = append(plan_.expression_lists, expressions(json, "distinct_targets", depth));
        if (const Json* order = field(json, "order_by")) n.orders = orders(*order, "orders", depth);
        break;
      case Operator::union_:
      case Operator::except:
      case Operator::intersect: n.all = boolean(json, "setop_all", true); break;
      case Operator::cte: n.cte = position(json, "table_index"); break;
      case Operator::cte_ref:
        n.cte = position(json, "cte_index");
        n.types = types(json, "chunk_types");
        break;
      case Operator::no_rows: n.types = types(json, "return_types"); break;
      case Operator::values: {
        n.types = types(json, "expr_types");
        std::vector<ExpressionId> cells;
        for (const Json& line : list(json, "expressions")) {
          if (!line.is_array() || line.size() != n.types.count) {
            fail("a row of VALUES has not {} cells", n.types.count);
            break;
          }
          for (const Json& cell : line) cells.push_back(expression(cell, depth + 1));
        }
        n.expressions = append(plan_.expression_lists, cells);
        break;
      }
      case Operator::cross:
      case Operator::positional:
      case Operator::unnest:
      case Operator::one_row: break;
    }
    return plan_.nodes.add(std::move(n));
  }

  Plan plan_;
  Place place_, failed_at_;
  std::optional<Error> error_;
};

}  // namespace

Result<Plan> read_plan(std::string_view json, Place* place) {
  Reader reader;
  Result<Plan> plan = reader.read(json);
  if (place) *place = reader.failed_at();
  return plan;
}

std::string_view name_of(Operator op) { return operators[static_cast<size_t>(op)].name; }
std::string_view name_of(Function function) {
  return functions[static_cast<size_t>(function)].name;
}
std::string_view name_of(WindowFunction function) {
  return window_functions[static_cast<size_t>(function)].name;
}
std::string_view name_of(Aggregate aggregate) {
  return aggregates[static_cast<size_t>(aggregate)].name;
}

}  // namespace rndn::sql
