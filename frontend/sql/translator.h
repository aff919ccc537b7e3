// The translator's state and its parts; private to frontend/sql.
//
// A cell is a vector of values and, where nulls may be, a vector of bool that is false for them;
// values under false are zeros, so that pairs compare, group and join as they are. A relation is
// columns of one space, and the mask of the rows that belong to it, which is applied only where
// rows must stand close (groups, sorts, joins by value): filters cost one mask. The first error
// stays; what is made after it is not used.
#pragma once
#include <fmt/format.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "frontend/sql/graph.h"
#include "frontend/sql/plan.h"
#include "frontend/sql/translate.h"
#include "frontend/sql/values.h"

namespace rndn::sql {

inline constexpr std::string_view several_rows =
    "a subquery in the place of a value gives several rows";

inline constexpr VectorId nothing = none<VectorId>();

// The types that translations name most, stored and of SQL.
inline constexpr hir::BasicType whole = hir::BasicType::i64, wide = hir::BasicType::i128, real = hir::BasicType::f64,
                                truth = hir::BasicType::boolean;
inline constexpr Type boolean_type{TypeId::boolean};

inline bool is_equality(Function f) { return f == Function::equal || f == Function::not_distinct_from; }

struct Interval {  // all of i64
  VectorId months = nothing, days = nothing, micros = nothing;
};

struct Cell {
  VectorId value = nothing;
  VectorId valid = nothing;  // none: never null
  Type type{};
  Interval parts{};  // INTERVAL: what `value` is made of, where that is known
};

// How long a unit of time is: months or microseconds.
struct Span {
  int64_t months, micros;
};
std::optional<Span> span_of(std::string_view unit);

// What a function without a value for its arguments gives.
enum class Undefined : uint8_t { is_error, is_null };

struct Relation {
  SpaceId space = one_row;
  VectorId mask = nothing;  // none: every row
  std::vector<Cell> columns;
};

// For each row of one relation the row of another that it belongs to.
struct Lookup {
  VectorId rows = nothing;     // none: the same row
  VectorId matched = nothing;  // none: all of them
};

class Translator {
 public:
  Translator(const Plan& plan, const Catalog& catalog) : plan_(plan), catalog_(catalog) {}
  Result<Translation> run(const std::vector<std::string>& names);
  Place failed_at() const { return failed_at_; }

 private:
  template <class... Args>
  void fail(fmt::format_string<Args...> format, Args&&... args) {
    if (error_) return;
    error_ = input_error("{}", fmt::format(format, std::forward<Args>(args)...));
    failed_at_ = place_;
  }
  Cell failed(Type type);

  // translate.cpp: operators, and what all need of relations
  Relation relation(NodeId node);
  Relation compact(const Relation& r);
  void filter(Relation& r, const Cell& condition);
  // Of conjuncts over columns of its rows; `counted` as residual() has it.
  void filter(Relation& r, std::span<const ExpressionId> conjuncts, std::span<const Cell> columns,
              VectorId counted = nothing);
  void project(Relation& r, bool projects, Range<uint32_t> map);
  Relation side_by_side(const Relation& left, const Relation& right);
  void pick(Relation& r, VectorId rows);  // of a compact relation
  Cell pick(const Cell& c, VectorId rows);
  Cell keep(const Cell& c, SpaceId space);
  Cell spread(const Cell& c, SpaceId space);
  Cell null_of(Type type);
  VectorId valid_of(const Cell& c) {
    return is_none(c.valid) ? g_.integer(hir::BasicType::boolean, 1) : c.valid;
  }
  void unify(Cell& a, Cell& b);  // to one HorseIR type

  // scans.cpp
  Relation scan(const Node& n);
  Relation series(const Node& n);
  Relation no_rows(std::span<const Type> types);
  Relation values(const Node& n);
  Cell column(const Table& table, const Column& column, SpaceId space);
  Cell values_of(const Table& table, const Column& column, SpaceId space);
  VectorId loaded_table(const Table& table);
  SpaceId table_space(const Table& table);
  VectorId referred_rows(VectorId enumeration, const Table& to);
  VectorId key_vector(const Table& table, const Column& column);

  // expressions.cpp
  Cell evaluate(ExpressionId e, std::span<const Cell> columns);
  // Of the rows that belong to the relation, and that `counted` keeps, if it is given: others cannot fail.
  Cell evaluate(ExpressionId e, const Relation& r, VectorId counted = nothing);
  // A value that must be within the type, or the query ends with an error; `what` gives it.
  // `fits`: where what made it has not left 128 bits; none: everywhere.
  VectorId checked(VectorId v, Bounds bounds, std::span<const Cell> arguments, Type type,
                   std::string_view what, VectorId fits = nothing);
  // Where a value with these bounds is within others; none: everywhere.
  VectorId within(VectorId v, Bounds bounds, Bounds wanted);
  // Where a sum, difference or product of 128 bits is what it is without an end.
  VectorId unwrapped(std::string_view builtin, VectorId x, VectorId y, VectorId result);
  // Bounds of the value, or those of its type.
  Bounds known_bounds(const Cell& c) const;
  void failing_last(std::span<const ExpressionId> parts, const std::function<Cell(ExpressionId)>& value,
                    const std::function<void(size_t, const Cell&)>& take);
  std::vector<Cell> evaluate_arguments(const Expression& e, std::span<const Cell> columns, bool is_case,
                                       bool is_coalesce, bool is_and, bool is_or);
  VectorId demanded(VectorId value, VectorId holds, std::span<const Cell> arguments,
                    std::string_view message, Bounds bounds = {});
  Cell raised_as(Type type, const Cell& message);
  void no_rule(const Expression& e, std::span<const Cell> a);
  Cell constant(const Constant& c);
  Cell strict(Type type, VectorId value,
              std::span<const Cell> arguments);  // null where an argument is
  Cell canonical(Type type, VectorId value, VectorId valid);
  Cell compare_cells(std::string_view builtin, Cell a, Cell b);
  Cell equal_cells(const Cell& a, const Cell& b);  // nulls are equal
  std::vector<VectorId> words_of(VectorId v);
  VectorId date_literal(__int128 days);
  VectorId end_of(hir::BasicType type, bool greatest);
  VectorId is_nan(VectorId v);                     // none: never
  VectorId compare_floats(std::string_view builtin, VectorId a, VectorId b);
  Cell select_cells(const Cell& condition, Cell a, Cell b, Type type);
  Cell compare_character(std::string_view builtin, const Cell& c, const Cell& literal);
  Cell membership(std::span<const Cell> a);
  Cell all_of(std::vector<Cell> parts, bool is_and);
  Cell both(const Cell& a, const Cell& b, bool is_and);

  // casts.cpp
  Cell cast_cell(const Cell& c, Type to, bool tries = false);
  Cell cast_to_text(const Cell& c, Type to);
  Cell enum_text(const Cell& c);
  Cell enum_of(const Cell& c, Type to, bool tries);
  Cell cast_from_text(const Cell& c, Type to, bool tries);
  Cell decimal_down(const Cell& c, unsigned digits, Type to, bool tries = false);
  VectorId rescaled(const Cell& c, unsigned scale, VectorId* fits = nullptr);
  Cell to_float(const Cell& c);
  Cell to_real(const Cell& c, bool tries);
  VectorId to_even(VectorId x);
  Cell whole_of(const Cell& c, VectorId rounded, Type to, double least, double most, bool tries);
  Cell in_range(Cell c, Bounds known, bool tries, const Cell& from, VectorId fits = nothing);
  static Bounds within_type(Bounds bounds, Type type);

  // texts.cpp
  Cell text_cell(Type type, std::string_view function, std::span<const Cell> a,
                 Undefined undefined = Undefined::is_error);
  Cell text_cell(Type type, std::string_view function, std::initializer_list<Cell> a,
                 Undefined undefined = Undefined::is_error) {
    return text_cell(type, function, std::span(a.begin(), a.size()), undefined);
  }
  Cell text_or_empty(const Cell& c);
  Cell like_cell(std::span<const Cell> a, bool quote, std::string_view before,
                 std::string_view behind, std::string_view function);

  // intervals.cpp
  Cell interval_cell(Interval p, std::span<const Cell> arguments);
  Interval parts_of(const Cell& c);
  Interval normal_parts(const Cell& c);
  Cell comparable(const Cell& c);
  Cell time_between(std::span<const Cell> a);
  std::optional<Cell> of_intervals(const Expression& e, std::span<const Cell> a, std::string_view builtin);
  VectorId grown(std::string_view builtin, VectorId x, VectorId y);
  VectorId in_word(VectorId v, VectorId& holds);
  VectorId part_of_interval(const Cell& c, std::string_view part);
  VectorId infinite_any(std::span<const Cell> a);

  // made_dates.cpp
  VectorId is_between(VectorId v, VectorId least, VectorId most);
  VectorId days_of_parts(VectorId year, VectorId month, VectorId day, VectorId& holds);
  VectorId micros_of_parts(VectorId hour, VectorId minute, const Cell& seconds, VectorId& holds);

  // dates.cpp: all of i64
  struct Civil {
    VectorId year, month, day;
  };
  VectorId whole_map(std::string_view builtin, VectorId x, int64_t y, Bounds bounds = {});
  VectorId rounded_at(VectorId x, double factor, bool behind_point);
  VectorId floor_div(VectorId x, int64_t by);
  VectorId floor_mod(VectorId x, int64_t by);
  VectorId days_of(const Cell& c);
  VectorId micros_of(const Cell& c);
  VectorId time_of_day(const Cell& c);
  VectorId date_of(VectorId days);
  Civil civil_of(VectorId date);
  Civil civil_far(VectorId days);
  VectorId infinite(const Cell& c);
  VectorId moment_of(VectorId days, VectorId time, std::span<const Cell> arguments);
  VectorId moved_date(const Cell& date, const Cell& by, bool back);
  Civil civil_of(const Cell& c);
  VectorId months_of(const Civil& c);
  VectorId first_of_month(VectorId months);
  VectorId first_of_year(VectorId year);
  VectorId monday_of(VectorId days);
  VectorId whole_months(const Cell& from, const Cell& to);
  Cell shifted(Type type, const Cell& moment, const Cell& by, bool back);

  // The rules of functions.def: `a` are the arguments.
#define SQL_RULE(rule) \
  Cell rule(const Expression& e, std::span<const Cell> a, std::string_view builtin);
  SQL_RULE(compare)
  SQL_RULE(distinct_from)
  SQL_RULE(not_distinct_from)
  SQL_RULE(between)
  SQL_RULE(in)
  SQL_RULE(not_in)
  SQL_RULE(and_all)
  SQL_RULE(or_any)
  SQL_RULE(negation)
  SQL_RULE(is_null)
  SQL_RULE(is_not_null)
  SQL_RULE(coalesce)
  SQL_RULE(constant_or_null)
  SQL_RULE(case_of)
  SQL_RULE(cast)
  SQL_RULE(raised)
  SQL_RULE(arithmetic)
  SQL_RULE(divide)
  SQL_RULE(integer_division)
  SQL_RULE(magnitude)
  SQL_RULE(rounding)
  SQL_RULE(sign)
  SQL_RULE(extreme)
  SQL_RULE(real_function)
  SQL_RULE(logarithm)
  SQL_RULE(angle)
  SQL_RULE(real_formula)
  SQL_RULE(bits_set)
  SQL_RULE(float_class)
  SQL_RULE(bits)
  SQL_RULE(date_part)
  SQL_RULE(truncation)
  SQL_RULE(difference)
  SQL_RULE(interval)
  SQL_RULE(normalized)
  SQL_RULE(age)
  SQL_RULE(bucket)
  SQL_RULE(last_day)
  SQL_RULE(make_date)
  SQL_RULE(make_time)
  SQL_RULE(make_timestamp)
  SQL_RULE(moment_of_seconds)
  SQL_RULE(julian)
  SQL_RULE(zoned)
  SQL_RULE(parsed)
  SQL_RULE(formatted)
  SQL_RULE(like)
  SQL_RULE(not_like)
  SQL_RULE(contains)
  SQL_RULE(prefix)
  SQL_RULE(suffix)
  SQL_RULE(text_function)
  SQL_RULE(not_text_function)
  SQL_RULE(text_or_null)
  SQL_RULE(digits)
  SQL_RULE(formatted_text)
  SQL_RULE(concat)
  SQL_RULE(concat_ws)
#undef SQL_RULE
  VectorId of_bits(std::span<const Cell> operands,
                   const std::function<VectorId(std::span<const VectorId>)>& of_bit);

  // joins.cpp
  struct Key {
    Cell left, right;
    bool nulls_equal = false;
  };
  struct On {  // the condition of a join
    std::vector<Condition> conditions;
    std::span<const ExpressionId> others;  // over left's columns, then right's
    size_t left = 0, right = 0;            // how many columns each side has
    bool swapped = false;                  // the plan's left side is the right one here
    bool every_column = false;             // of a set operation: all columns equal, nulls too
    bool is_mark = false;
    bool two_valued = false;  // what is not known is not found
  };
  struct Pairs {
    VectorId left = nothing, right = nothing;  // row numbers in the compact sides
    SpaceId space = one_row;
  };
  // reductions.cpp
  struct GroupKey {
    NodeId groups{};
    uint32_t key = 0;
  };
  struct Marked {
    VectorId base = nothing, marks = nothing;  // a table's unique key, and which of its rows count
  };
  struct Reduction {
    GroupKey of;
    Marked by;
  };
  std::optional<GroupKey> group_key(NodeId node, ExpressionId e) const;
  void reduce_groups(Relation& side, NodeId node, const Relation& other, const On& on, bool of_left);
  bool is_filtered(const Relation& r) const;
  std::optional<Marked> marked(const Cell& key, const Relation& of);
  bool is_larger(const Marked& a, const std::optional<Marked>& b) const;
  void keep_marked(Relation& in, const Cell& key, const Marked& by);
  void reduce_by(Relation& in, const Relation& left, const std::vector<Key>& keys);
  void reduce_rows(Relation& in, const Node& groups);
  // grouped_joins.cpp
  std::optional<Relation> grouped_below_join(const Node& n);

  Relation join(const Node& n);
  Relation cross(const Relation& left, const Relation& right);
  Relation inner(const Relation& left, const Relation& right, std::vector<Key> keys, const On& on);
  Relation outer(const Relation& left, const Relation& right, std::vector<Key> keys, const On& on,
                 bool keeps_right, bool is_single);
  VectorId once_each(VectorId rows, SpaceId of);
  Cell mark(const Relation& left, const Relation& right, std::vector<Key> keys, const On& on);
  VectorId left_open(const Relation& left, const Relation& right, const On& on);
  VectorId left_open_by_keys(const Relation& left, const Relation& p, const Relation& q,
                             const std::vector<Key>& always, const std::vector<Key>& nullable);
  VectorId rows_met(const Relation& left, const Relation& p, const Relation& joined, const Pairs& pair);
  // exists.cpp
  struct Direct {  // a subquery's own rows, and their conditions with the outer ones
    NodeId rows{};
    std::vector<Condition> conditions;
  };
  bool column_below(NodeId& node, uint32_t& at) const;
  bool reads_cte(NodeId node, uint32_t cte) const;
  std::optional<Direct> direct(const Node& n) const;
  VectorId met_by_another(const Relation& left, const Relation& right, const std::vector<Key>& keys,
                          const On& on);
  static Function mirror_of(Function f);
  static On swapped(const On& on);
  VectorId has_rows(const Relation& r);
  std::pair<Cell, Cell> compared(const Condition& c, const Relation& left, const Relation& right);
  std::vector<Key> keys_of(const On& on, const Relation& left, const Relation& right);
  void residual(Relation& joined, const On& on, size_t but, bool paired, VectorId counted = nothing);
  VectorId narrow(VectorId value) const;
  VectorId own_mask(VectorId x, VectorId set) const;
  VectorId base_key(VectorId value, VectorId& rows) const;
  VectorId common_base(VectorId x, VectorId y, Lookup& x_rows, Lookup& y_rows);
  std::optional<Lookup> rows_of_key(VectorId value, VectorId key);
  std::optional<Lookup> look_up(const Cell& key, const Cell& to_key);
  bool look_up_any(Relation& to, std::vector<Key>& keys, bool swapped, bool lifting, size_t& at);
  bool lift(Relation& to, Cell& key, const Cell& from_key);
  VectorId scatter(SpaceId table, VectorId rows, VectorId value);
  VectorId marks(SpaceId table, SpaceId space, VectorId mask, VectorId rows);
  void looked_up(Relation& to, const Lookup& l);
  Pairs pairs(const Relation& left, const Relation& right, const std::vector<Key>& keys,
              const On& on);

  struct Frame;
  // aggregates.cpp
  Relation aggregate(const Node& n);
  Relation aggregate_set(const Node& n, const Relation& in, std::span<const uint32_t> keys);
  Relation distinct(const Node& n);
  struct Groups {
    bool one = false;  // all rows are one group, also when there are none
    SpaceId rows = one_row, space = one_row;
    VectorId first = nothing, cells = nothing;
    const Frame* frame = nullptr;  // a group for each row: its frame in a window
    VectorId once = nothing;       // of it: the rows that an aggregate of distinct values counts
    bool may_be_empty() const;
    std::vector<VectorId> keys;  // in the rows
  };
  bool tell_apart(SpaceId space, const std::vector<Cell>& cells);
  Groups group(SpaceId rows, const std::vector<Cell>& keys);
  VectorId reduce(const Groups& g, std::string_view builtin, VectorId v, Bounds bounds);
  VectorId of_own_group(const Groups& g, VectorId v);
  VectorId wide_sum(const Groups& g, VectorId v, Bounds each, Bounds counts,
                    VectorId* fits = nullptr);
  Cell aggregate_cell(const Expression& e, const Relation& in, const Groups& g);

  struct SortKey {
    Cell cell;
    bool descending = false, nulls_first = false;
  };

  // statistics.cpp
  struct Counted {
    std::vector<Cell> cells;
    VectorId rows = nothing;    // none: all count
    VectorId number = nothing;  // of those that count, of each group
  };
  struct Ordered {
    // The order, the place of each row in it, and where each group begins.
    VectorId rows = nothing, ranks = nothing, first = nothing;
  };
  Counted counted_of(const Expression& e, const Relation& in, const Groups& g, size_t needed);
  VectorId co_moment(const Groups& g, const Counted& c, const Cell& x, const Cell& y);
  std::vector<SortKey> keys_within(const Expression& e, const Relation& in, const Groups& g);
  Ordered ordered_rows(const Groups& g, VectorId counted, std::span<const SortKey> values);
  VectorId mean_of(const Groups& g, const Counted& c, VectorId v);
  VectorId at_place(const Ordered& o, VectorId v, const Groups& g, VectorId place);
  static Cell (Translator::*statistic(Aggregate f))(const Expression&, const Relation&, const Groups&);
  std::vector<Cell> numbers_of(const Expression& e, const Relation& in, const Groups& g, const Counted& c);
  Cell moments(const Expression& e, const Relation& in, const Groups& g);
  Cell regression(const Expression& e, const Relation& in, const Groups& g);
  Cell bits_of_all(const Expression& e, const Relation& in, const Groups& g);
  Cell quantile(const Expression& e, const Relation& in, const Groups& g);
  Cell argument_at(const Expression& e, const Relation& in, const Groups& g);
  Cell row_at(const Expression& e, const Relation& in, const Groups& g);
  Cell joined_texts(const Expression& e, const Relation& in, const Groups& g);
  Cell count_if(const Expression& e, const Relation& in, const Groups& g);
  Cell product(const Expression& e, const Relation& in, const Groups& g);
  Cell frequency(const Expression& e, const Relation& in, const Groups& g);
  Cell shape(const Expression& e, const Relation& in, const Groups& g);

  // windows.cpp
  struct Run {  // neighbours of rows in order that belong together: a partition, or peers
    VectorId head = nothing;  // of each row: whether one begins with it
    VectorId number = nothing, first = nothing, end = nothing;
    VectorId heads = nothing;  // the rows where one begins
  };
  struct Frame {
    SpaceId rows = one_row;
    Run partition, peers;
    VectorId begin = nothing, end = nothing;      // of each row: its frame's rows
    VectorId some = nothing;                      // whether there are any; none: always
    bool from_head = false, to_end = false;       // of the partition
    std::optional<std::pair<int64_t, int64_t>> offsets;  // both ends, in rows from the row itself
    // What EXCLUDE leaves of it, one after the other; none: all of it.
    std::vector<Frame> parts;
  };
  struct Candidates {  // rows of which a function like first_value takes one
    VectorId counts = nothing, rows = nothing;  // running numbers and places; none: all rows
  };
  Relation window(const Node& n);
  Cell window_cell(const Expression& e, const Relation& in, Frame frame);
  Cell value_at(const Expression& e, const Relation& in, const Frame& frame, bool ignores_nulls,
                WindowFunction function);
  Run run_of(SpaceId rows, std::span<const Cell> keys, VectorId also);
  void set_frame(Frame& f, const Window& w, const Relation& in);
  void exclude(Frame& f, Window::Exclude what);
  std::optional<int64_t> constant_of(ExpressionId e, std::string_view what, bool& is_null);
  VectorId frame_end(const Frame& f, const Window& w, const Relation& in, bool is_start,
                     std::optional<int64_t>& offset);
  VectorId first_of_their_like(const Expression& e, const Relation& in, const Frame& f);
  VectorId row_at_value(const Frame& f, SortKey key, Cell bound, bool is_start);
  VectorId scan(std::string_view builtin, VectorId v, VectorId starts, Bounds bounds = {});
  VectorId backwards(std::string_view builtin, VectorId v, VectorId heads);
  VectorId at_or(VectorId v, VectorId row, VectorId otherwise);
  VectorId reduce_frame(const Frame& f, std::string_view builtin, VectorId v, Bounds bounds);
  VectorId reduce_ones(const Frame& f, std::string_view builtin, VectorId v);
  VectorId combined(std::string_view builtin, VectorId x, VectorId y);
  VectorId kth_of_frame(const Frame& f, VectorId ranks, VectorId k);
  VectorId reduce_powers(const Frame& f, std::string_view builtin, VectorId v);
  VectorId reduce_sliding(const Frame& f, std::string_view builtin, VectorId v);

  // orders.cpp
  Relation order(const Node& n);
  Relation limit(const Node& n);
  std::vector<SortKey> sort_keys(const Relation& r, std::span<const OrderKey> keys);
  VectorId permutation(const Relation& r, std::span<const OrderKey> keys);
  VectorId permutation(SpaceId space, std::span<const SortKey> keys);  // none: every key is constant
  VectorId first_rows(VectorId rows, uint64_t limit, bool has_limit, uint64_t offset);

  Relation asof(const Node& n);

  // unnest.cpp
  Relation unnest(const Node& n);
  Relation side_by_number(const Node& n);
  Relation rows_of_one(Relation r);
  VectorId numbers_to(VectorId count, double most);
  VectorId repeated(SpaceId space, VectorId counts, Bounds each, VectorId& place);

  // sets.cpp
  Relation append(std::vector<Relation> parts);
  Relation set_operation(const Node& n);
  Relation counted_difference(Relation left, Relation right, bool except);
  Relation cte(const Node& n);
  Relation cte_ref(const Node& n);

  const Plan& plan_;
  const Catalog& catalog_;
  Graph g_;
  std::vector<Reduction> reductions_;  // of what is being translated
  size_t reduced_ = 0;                 // sides so far
  static constexpr size_t most_reduced = 16;  // as one may lie within another
  std::optional<Error> error_;
  Place place_, failed_at_;
  VectorId guard_ = nothing;  // the rows that what is evaluated may fail for; none: all
  size_t demands_ = 0;        // values that may fail, so far
  std::set<ExpressionId> fails_;  // conjuncts and their like that have any
  std::map<uint32_t, Relation> ctes_;
  std::map<const Table*, SpaceId> table_spaces_;
};

hir::BasicType basic_of(Type type);
// The least or greatest value of integers and calendar values.
std::optional<__int128> limit_of(hir::BasicType type, bool greatest);

}  // namespace rndn::sql
