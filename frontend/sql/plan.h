// The planner's logical plan as records: what the translator reads.
//
//   Result<Plan> plan = read_plan(json);      // text of json_serialize_plan(sql, optimize := true,
//   ..)
//
// Records are contiguous and refer to each other by index; lists are ranges of shared arrays.
// Filters that the planner pushed into scans are expressions here, and all comparisons,
// conjunctions, casts and CASE are calls of functions (functions.def).
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/sql/catalog.h"
#include "libraries/base/containers/id.h"
#include "libraries/base/errors/result.h"

namespace rndn::sql {

enum class Operator : uint8_t {
#define SQL_OPERATOR(id, name, least, most) id,
#include "frontend/sql/operators.def"
#undef SQL_OPERATOR
};

enum class Function : uint8_t {
#define SQL_FUNCTION(id, name, least, most, rule, builtin) id,
#define SQL_AGGREGATE(id, name, least, most)
#include "frontend/sql/functions.def"
#undef SQL_FUNCTION
#undef SQL_AGGREGATE
};

enum class Aggregate : uint8_t {
#define SQL_FUNCTION(id, name, least, most, rule, builtin)
#define SQL_AGGREGATE(id, name, least, most) id,
#include "frontend/sql/functions.def"
#undef SQL_FUNCTION
#undef SQL_AGGREGATE
};

enum class WindowFunction : uint8_t {
#define SQL_WINDOW(id, name, least, most) id,
#include "frontend/sql/windows.def"
#undef SQL_WINDOW
  aggregate
};

enum class JoinType : uint8_t {
  inner,
  left,
  right,
  full,
  semi,
  anti,
  right_semi,
  right_anti,
  mark,
  single
};

enum class NodeId : uint32_t {};
enum class ExpressionId : uint32_t {};

// Part of one of the plan's arrays.
template <class T>
struct Range {
  uint32_t begin = 0, count = 0;
};

// Part of the statement's text, in bytes.
struct Place {
  uint32_t offset = UINT32_MAX, length = 0;  // UINT32_MAX: not known
  bool known() const { return offset != UINT32_MAX; }
};

// Columns of a scan that its table has not: a row's number, from 0 and from 1.
inline constexpr uint32_t row_id = UINT32_MAX, row_number = UINT32_MAX - 2;

// What is read or translated at the moment, for errors: an inner part hides the one around it.
class PlaceScope {
 public:
  PlaceScope(Place& current, Place inner) : current_(current), outer_(current) {
    if (inner.known()) current = inner;
  }
  ~PlaceScope() { current_ = outer_; }
  PlaceScope(const PlaceScope&) = delete;
  PlaceScope& operator=(const PlaceScope&) = delete;

 private:
  Place& current_;
  Place outer_;
};

struct Constant {
  Type type;
  bool is_null = false;
  __int128 integer =
      0;  // integers, BOOLEAN, DECIMAL (scaled), DATE (days), TIME and TIMESTAMP (microseconds)
  int64_t days = 0, micros = 0;  // INTERVAL, with months in `integer`
  double real = 0;   // FLOAT, DOUBLE
  std::string text;  // VARCHAR
};

struct OrderKey {
  ExpressionId expression{};
  bool descending = false, nulls_first = false;
};

struct Expression {
  enum Kind : uint8_t { column, constant, call, aggregate, window };
  Kind kind = column;
  Function function{};                                  // call
  Aggregate aggregate_function{};                       // aggregate, and window of one
  bool distinct = false;                                // the same: of distinct values
  bool lower_inclusive = true, upper_inclusive = true;  // BETWEEN
  bool tries = false;                                   // TRY_CAST: null in place of an error
  double quantile = 0;                                  // aggregates of quantiles
  Type type;
  // column: of the child's columns (left's, then right's); constant: in Plan::constants; window: in
  // Plan::windows
  uint32_t index = 0;
  Range<ExpressionId> arguments;  // not of columns; CASE: when, then, when, then, .., else
  ExpressionId filter = none<ExpressionId>();  // aggregate, window: FILTER (WHERE ..)
  Range<OrderKey> orders;                      // aggregate: ORDER BY within its arguments
  Place place;                                 // where it stands in the text
};

// What the list of an UNNEST is: its elements; a text and what parts it; begin, end and step of a
// series, which may reach its end or not.
enum class Unnested : uint32_t { elements, parts, range, series };

struct Condition {  // of a join: left `comparison` right, each over its own side's columns
  Function comparison{};
  ExpressionId left{}, right{};
};

// One end of a window's frame. `offset`: that many rows, or groups of peers, before or behind; of
// values: the one up to which rows belong to the frame.
struct FrameEnd {
  enum Kind : uint8_t { unbounded, rows, peers, values };
  Kind kind = unbounded;
  bool following = false;
  ExpressionId offset = none<ExpressionId>();  // none: the row itself, or its peers
};

struct Window {
  // Rows that are left out of a frame: the row itself, its peers, or its peers without itself.
  enum Exclude : uint8_t { no_others, current_row, group, ties };
  Exclude exclude = no_others;
  WindowFunction function{};
  bool ignores_nulls = false;
  Range<ExpressionId> partitions;
  Range<OrderKey> orders;
  FrameEnd start, end;
};

struct Node {
  Operator op{};
  Range<NodeId> children;
  // filter, scan: conjuncts; project: columns; aggregate: aggregates; window: what it adds; join:
  // further conjuncts over left and right columns; values: cells, row by row; unnest: what its
  // lists are made of
  Range<ExpressionId> expressions;
  Range<ExpressionId> groups;   // aggregate: keys; distinct: DISTINCT ON's keys
  Range<Condition> conditions;  // join
  Range<OrderKey> orders;       // order, top; distinct: which row of a key
  // Columns that leave, by position among those that enter (scan: among `columns`); everything when
  // `projects` is false.
  Range<uint32_t> projection;
  bool projects = false;
  Range<uint32_t> right_projection;  // join: of the right side
  bool right_projects = false;
  Range<uint32_t> columns;   // scan: columns that are read, by position in Plan::names of `names`
  Range<std::string> names;  // scan: the table's columns
  // no_rows, values, cte_ref: what leaves; scan: the table's columns, or the type of the numbers
  Range<Type> types;
  Range<uint32_t>
      sets;  // aggregate: with several grouping sets, for each its length and then its keys
  uint32_t set_count = 0;  // aggregate: grouping sets; 0: one of all keys
  Range<uint32_t> groupings;  // aggregate: of each GROUPING its number of keys, and then these
  uint32_t grouping_count = 0;
  JoinType join{};
  bool all = false;  // union, except, intersect: ALL
  bool distinct_on = false;
  bool has_limit = false, is_percent = false;  // limit: `percent` of the rows in place of `limit`
  double percent = 0;
  uint64_t limit = 0, offset = 0;
  uint32_t cte = 0;   // cte, cte_ref
  Range<uint32_t> lists;  // unnest: of each list its kind (Unnested), and how many expressions it has
  std::string table;  // scan; empty: `count` numbers (or microseconds) from `first` on
  int64_t first = 0, step = 1;
  uint64_t count = 0;
};

struct Plan {
  NodeId root{};
  IdVector<NodeId, Node> nodes;
  IdVector<ExpressionId, Expression> expressions;
  std::vector<Constant> constants;
  std::vector<NodeId> node_lists;
  std::vector<ExpressionId> expression_lists;
  std::vector<Condition> conditions;
  std::vector<OrderKey> orders;
  std::vector<Window> windows;
  std::vector<uint32_t> numbers;
  std::vector<std::string> names;
  std::vector<Type> types;
  std::vector<std::vector<std::string>> enums;  // the texts of each ENUM, in its order

  const Node& operator[](NodeId id) const { return nodes[id]; }
  const Expression& operator[](ExpressionId id) const { return expressions[id]; }
  std::span<const NodeId> of(Range<NodeId> r) const { return part(node_lists, r); }
  std::span<const ExpressionId> of(Range<ExpressionId> r) const {
    return part(expression_lists, r);
  }
  std::span<const Condition> of(Range<Condition> r) const { return part(conditions, r); }
  std::span<const OrderKey> of(Range<OrderKey> r) const { return part(orders, r); }
  std::span<const uint32_t> of(Range<uint32_t> r) const { return part(numbers, r); }
  std::span<const std::string> of(Range<std::string> r) const { return part(names, r); }
  std::span<const Type> of(Range<Type> r) const { return part(types, r); }

 private:
  template <class T>
  static std::span<const T> part(const std::vector<T>& all, Range<T> r) {
    return std::span(all).subspan(r.begin, r.count);
  }
};

// Reads the text of json_serialize_plan. An error names the operator, function, type or field that
// is not known, or gives the planner's own message where the text is one.
// `place`: where in the text the part is that an error names, as far as the plan tells.
Result<Plan> read_plan(std::string_view json, Place* place = nullptr);

// For people: an operator per line, what it reads below it.
std::string plan_text(const Plan& plan);

std::string_view name_of(Operator op);
std::string_view name_of(Function function);
std::string_view name_of(Aggregate aggregate);
std::string_view name_of(WindowFunction function);  // not of aggregates

}  // namespace rndn::sql
