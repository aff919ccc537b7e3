// Expressions: value and validity of every function (the table of docs/sql.md).
//
// In: an expression of the plan, and the cells of the columns that it may name. Out: a cell; every
// rule keeps the promise of cells that values under false are zeros. Constants of text take the
// type of what they meet. Functions of numbers, dates and texts, and casts, have files of their
// own. Results that bounds do not keep within their type are required to be (DuckDB raises an error
// there, too): of rows that a filter, an arm of CASE, or an operand of AND, OR or COALESCE before
// them leaves out, nothing is required.
#include <algorithm>
#include <cmath>

#include "frontend/sql/translator.h"

namespace rndn::sql {

using hir::BasicType;

namespace {

constexpr BasicType basics[] = {
#define SQL_TYPE(id, name, horseir) BasicType::horseir,
#include "frontend/sql/types.def"
#undef SQL_TYPE
};

bool is_number(BasicType t) { return hir::is_ordered_number(t); }
std::string_view mirrored(std::string_view comparison) {
  if (comparison == "lt") return "gt";
  if (comparison == "gt") return "lt";
  if (comparison == "leq") return "geq";
  if (comparison == "geq") return "leq";
  return comparison;
}

}  // namespace

BasicType basic_of(Type type) {
  return type.id == TypeId::enumeration ? BasicType::i64 : basics[static_cast<size_t>(type.id)];
}

Cell Translator::failed(Type type) { return null_of(type); }

Cell Translator::null_of(Type type) {
  return {g_.zero(basic_of(type)), g_.integer(BasicType::boolean, 0), type};
}

Cell Translator::evaluate(ExpressionId id, std::span<const Cell> columns) {
  const Expression& e = plan_[id];
  const PlaceScope scope(place_, e.place);
  switch (e.kind) {
    case Expression::column:
      if (e.index < columns.size()) return columns[e.index];
      fail("the plan names column {} of {}", e.index, columns.size());
      return failed(e.type);
    case Expression::constant: return constant(plan_.constants[e.index]);
    case Expression::aggregate:
      fail("the aggregate {} stands where no groups are", name_of(e.aggregate_function));
      return failed(e.type);
    case Expression::window:
      fail("a window stands where no rows are in order");
      return failed(e.type);
    case Expression::call: break;
  }
  struct Row {
    Cell (Translator::*rule)(const Expression&, std::span<const Cell>, std::string_view);
    std::string_view builtin;
  };
  static constexpr Row rows[] = {
#define SQL_FUNCTION(id, name, least, most, rule, builtin) {&Translator::rule, builtin},
#define SQL_AGGREGATE(id, name, least, most)
#include "frontend/sql/functions.def"
#undef SQL_FUNCTION
#undef SQL_AGGREGATE
  };
  const Row& row = rows[static_cast<size_t>(e.function)];
  const std::vector<Cell> arguments = evaluate_arguments(
      e, columns, row.rule == &Translator::case_of, row.rule == &Translator::coalesce,
      row.rule == &Translator::and_all, row.rule == &Translator::or_any);
  if (error_) return failed(e.type);
  return (this->*row.rule)(e, arguments, row.builtin);
}

void Translator::no_rule(const Expression& e, std::span<const Cell> a) {
  std::string types;
  for (const Cell& c : a) types += fmt::format("{}{}", types.empty() ? "" : ", ", type_name(c.type));
  fail("the function {} of {} has no translation", name_of(e.function), types);
}

Cell Translator::evaluate(ExpressionId id, const Relation& r, VectorId counted) {
  const VectorId outer = guard_;
  guard_ = g_.and_(r.mask, counted);
  Cell c = evaluate(id, r.columns);
  guard_ = outer;
  return c;
}

// Where an expression's text begins, as far as its parts know theirs.
static uint32_t first_place(const Plan& plan, ExpressionId id) {
  uint32_t first = plan[id].place.offset;
  for (ExpressionId a : plan.of(plan[id].arguments)) first = std::min(first, first_place(plan, a));
  return first;
}

// The planner moves conjuncts, so that a guard may stand behind what it guards: what can fail is
// evaluated anew once all else is taken. What fails itself keeps the order of the text.
void Translator::failing_last(std::span<const ExpressionId> parts, const std::function<Cell(ExpressionId)>& value,
                              const std::function<void(size_t, const Cell&)>& take) {
  std::vector<size_t> failing;
  for (size_t k = 0; k < parts.size(); ++k) {
    if (!fails_.contains(parts[k])) {  // once known, at any depth
      const size_t before = demands_;
      const Cell c = value(parts[k]);
      if (demands_ == before) {
        take(k, c);
        continue;
      }
      fails_.insert(parts[k]);
    }
    failing.push_back(k);
  }
  std::stable_sort(failing.begin(), failing.end(),
                   [&](size_t a, size_t b) { return first_place(plan_, parts[a]) < first_place(plan_, parts[b]); });
  for (size_t k : failing) take(k, value(parts[k]));
}

// Each argument under the guard of those that decide whether it counts.
std::vector<Cell> Translator::evaluate_arguments(const Expression& e, std::span<const Cell> columns,
                                                 bool is_case, bool is_coalesce, bool is_and,
                                                 bool is_or) {
  std::vector<Cell> out;
  const VectorId outer = guard_;
  const std::span<const ExpressionId> arguments = plan_.of(e.arguments);
  if (is_and || is_or) {
    out.resize(arguments.size());
    failing_last(
        arguments, [&](ExpressionId a) { return evaluate(a, columns); },
        [&](size_t k, const Cell& c) {
          const VectorId counts = is_or              ? g_.not_(c.value)
                                  : is_none(c.valid) ? c.value
                                                     : g_.or_(c.value, g_.not_(c.valid));
          guard_ = g_.and_(guard_, counts);
          out[k] = c;
        });
    guard_ = outer;
    return out;
  }
  for (size_t k = 0; k < arguments.size(); ++k) {
    out.push_back(evaluate(arguments[k], columns));
    const Cell& c = out.back();
    const bool is_last = k + 1 == arguments.size();
    if (is_case && !is_last) {
      // A condition guards its value; what comes after is for the rows that it does not hold for.
      if (k % 2 == 0) {
        const VectorId before = guard_;
        guard_ = g_.and_(before, c.value);
        out.push_back(evaluate(arguments[++k], columns));
        guard_ = g_.and_(before, g_.not_(out[k - 1].value));
      }
    } else if (is_coalesce) {
      guard_ = g_.and_(guard_, g_.not_(valid_of(c)));
    }
  }
  guard_ = outer;
  return out;
}

Bounds Translator::known_bounds(const Cell& c) const {
  const Bounds b = g_[c.value].bounds;
  return b.known ? b : bounds_of(c.type);
}

VectorId Translator::within(VectorId v, Bounds bounds, Bounds wanted) {
  if (!wanted.known) return nothing;
  const BasicType made = g_[v].type;
  if (!hir::is_wide(made)) {  // what holds it bounds it, too
    const Bounds own = Bounds::of(*limit_of(made, false), *limit_of(made, true));
    bounds = bounds.known ? Bounds::of(std::max(bounds.least, own.least), std::min(bounds.most, own.most)) : own;
  }
  VectorId holds = nothing;
  if (!bounds.known || bounds.least < wanted.least)
    holds = g_.map("geq", {v, g_.integer(made, wanted.least)}, BasicType::boolean);
  if (!bounds.known || bounds.most > wanted.most)
    holds = g_.and_(holds, g_.map("leq", {v, g_.integer(made, wanted.most)}, BasicType::boolean));
  return holds;
}

VectorId Translator::checked(VectorId v, Bounds bounds, std::span<const Cell> arguments, Type type,
                             std::string_view what, VectorId fits) {
  const Bounds all = bounds_of(type);
  fits = g_.and_(fits, within(v, bounds, all));
  if (is_none(fits)) return v;
  const BasicType made = g_[v].type;
  // What does not count becomes zero, so that the bounds hold for all.
  bool all_count = is_none(guard_);
  for (const Cell& a : arguments) all_count = all_count && is_none(a.valid);
  if (!all_count) v = g_.select(fits, v, g_.zero(made));
  v = demanded(v, fits, arguments, fmt::format("{} does not fit {}", what, type_name(type)), all);
  return made == BasicType::i128 && all.fits_i64() ? g_.cast(v, BasicType::i64) : v;
}

// The value; an error with the message where it counts, no argument is null and `holds` is false.
VectorId Translator::demanded(VectorId value, VectorId holds, std::span<const Cell> arguments,
                              std::string_view message, Bounds bounds) {
  VectorId counts = guard_;
  for (const Cell& a : arguments) counts = g_.and_(counts, a.valid);
  if (!is_none(counts)) {
    if (g_[holds].space == one_row && g_[counts].space != one_row)
      counts = g_.call("@any(", {counts}, BasicType::boolean, one_row, "any");
    holds = g_.or_(holds, g_.not_(counts));
  }
  demands_ += !g_.is_true(holds);
  const VectorId v = g_.require(holds, value, message, place_);
  if (bounds.known) g_.change(v).bounds = bounds;
  return v;
}

Cell Translator::constant(const Constant& c) {
  if (c.is_null) return null_of(c.type);
  const BasicType type = basic_of(c.type);
  if (type == BasicType::str) return {g_.text(type, c.text), nothing, c.type};
  if (is_floating(c.type)) {
    if (std::isfinite(c.real)) return {g_.real(type, c.real), nothing, c.type};
    const double of = std::isnan(c.real) ? 0 : c.real > 0 ? 1 : -1;  // which no literal has
    return {g_.map("div", {g_.real(type, of), g_.real(type, 0)}, type), nothing, c.type};
  }
  const auto fits = [](BasicType t, __int128 value) {
    const bool is_counted = t == BasicType::i8 || t == BasicType::i16 || t == BasicType::i32 || t == BasicType::i64;
    return !is_counted || hir::widest(t, fitting(Bounds::of(value, value))) == t;
  };
  const bool is_interval = c.type.id == TypeId::interval;
  const BasicType most = is_interval               ? BasicType::i64
                         : type == BasicType::date ? BasicType::i32
                                                   : holding(type, Bounds::of(c.integer, c.integer));
  if (!fits(most, c.integer) || (is_interval && !(fits(most, c.days) && fits(most, c.micros)))) {
    fail("a constant of the plan is beyond its type {}", type_name(c.type));
    return failed(c.type);
  }
  if (type == BasicType::date) return {date_literal(c.integer), nothing, c.type};
  if (is_interval) {
    const auto part = [&](__int128 value) { return g_.integer(BasicType::i64, value); };
    return interval_cell({part(c.integer), part(c.days), part(c.micros)}, {});
  }
  return {g_.integer(holding(type, Bounds::of(c.integer, c.integer)), c.integer), nothing, c.type};
}

// A day since 1970; days that no literal has are counted from one that has.
VectorId Translator::date_literal(__int128 days) {
  const BasicType type = BasicType::date;
  if (days >= -354285 && days <= 2932896) return g_.integer(type, days);
  const VectorId from = g_.integer(type, 0), by = g_.integer(BasicType::i32, days);
  return g_.map("plus", {from, by}, type, Bounds::of(days, days));
}

// The least or greatest value of a type, of floats infinity; none: it has no such value here.
VectorId Translator::end_of(BasicType type, bool greatest) {
  if (hir::is_float(type))
    return g_.map("div", {g_.real(type, greatest ? 1 : -1), g_.real(type, 0)}, type);
  const std::optional<__int128> limit = limit_of(type, greatest);
  if (!limit) return nothing;
  return type == BasicType::date ? date_literal(*limit) : g_.integer(type, *limit);
}

// A 128-bit integer as integers of 64 bits that are equal, and in the same order, as it is: digits
// to base 2^62, the highest first, all of the number's sign. Others stay as they are.
std::vector<VectorId> Translator::words_of(VectorId v) {
  const BasicType type = g_[v].type;
  if (!hir::is_wide(type)) return {v};
  constexpr __int128 base = __int128{1} << 62, most = ((__int128{1} << 126) - 1) * 2 + 1;
  const Bounds b = g_[v].bounds.known ? g_[v].bounds : Bounds::of(-most - 1, most);
  if (b.fits_i64()) return {g_.cast(v, BasicType::i64)};
  const VectorId by = g_.integer(type, base);
  const VectorId high = g_.map("div", {v, by}, type, Bounds::of(b.least / base, b.most / base));
  const VectorId low = g_.map("minus", {v, g_.map("mul", {high, by}, type)}, type,
                              Bounds::of(b.least < 0 ? 1 - base : 0, b.most > 0 ? base - 1 : 0));
  std::vector<VectorId> words = words_of(high);
  words.push_back(g_.cast(low, BasicType::i64));
  return words;
}

// error(text), which ends the query where it counts.
Cell Translator::raised_as(Type type, const Cell& message) {
  const std::optional<std::string> text = g_[message.value].text;
  if (!text) {
    fail("the function error has a translation with a constant text alone");
    return failed(type);
  }
  const bool of_subquery = text->starts_with("More than one row returned by a subquery");
  const VectorId never = g_.integer(BasicType::boolean, 0);
  return {demanded(g_.zero(basic_of(type)), never, {}, of_subquery ? several_rows : *text), nothing,
          type};
}
Cell Translator::raised(const Expression& e, std::span<const Cell> a, std::string_view) {
  return raised_as(e.type, a[0]);
}

// Zeros where `valid` is false.
Cell Translator::canonical(Type type, VectorId value, VectorId valid) {
  if (is_none(valid) || g_.is_true(valid)) return {value, nothing, type};
  if (g_[value].type == BasicType::boolean) return {g_.and_(value, valid), valid, type};
  return {g_.select(valid, value, g_.zero(g_[value].type)), valid, type};
}

Cell Translator::strict(Type type, VectorId value, std::span<const Cell> arguments) {
  VectorId valid = nothing;
  for (const Cell& a : arguments) valid = g_.and_(valid, a.valid);
  return canonical(type, value, valid);
}

// --- comparisons ---------------------------------------------------------------------------------

// One HorseIR type for both, and one scale.
void Translator::unify(Cell& a, Cell& b) {
  if (a.type.id == TypeId::decimal || b.type.id == TypeId::decimal) {
    const unsigned scale = std::max(scale_of(a.type), scale_of(b.type));
    for (Cell* c : {&a, &b})
      if (is_exact(c->type) && scale_of(c->type) != scale) c->value = rescaled(*c, scale);
  }
  const BasicType x = g_[a.value].type, y = g_[b.value].type;
  if (x == y) return;
  if (is_number(x) && is_number(y) && x != BasicType::character && y != BasicType::character) {
    const BasicType wide = hir::widest(x, y);
    a.value = g_.cast(a.value, wide);
    b.value = g_.cast(b.value, wide);
    return;
  }
  for (auto [c, type] : {std::pair(&b, x), std::pair(&a, y)}) {
    const std::optional<std::string> text = g_[c->value].text;
    if (!text || (type == BasicType::character && text->size() != 1)) continue;
    c->value = g_.text(type, *text);
    return;
  }
  if (hir::is_text(x) && hir::is_text(y)) {
    a.value = g_.cast(a.value, BasicType::str);
    b.value = g_.cast(b.value, BasicType::str);
    return;
  }
  fail("values stored as {} do not meet values stored as {}: {} and {}", hir::basic_type_name(x),
       hir::basic_type_name(y), type_name(a.type), type_name(b.type));
  b.value = g_.zero(x);
}

Cell Translator::compare_cells(std::string_view builtin, Cell a, Cell b) {
  a = comparable(a);
  b = comparable(b);
  if (g_[a.value].type == BasicType::character && g_[b.value].text)
    return compare_character(builtin, a, b);
  if (g_[b.value].type == BasicType::character && g_[a.value].text)
    return compare_character(mirrored(builtin), b, a);
  unify(a, b);
  const Cell both[] = {a, b};
  const VectorId holds = hir::is_float(g_[a.value].type)
                             ? compare_floats(builtin, a.value, b.value)
                             : g_.map(builtin, {a.value, b.value}, BasicType::boolean);
  return strict({TypeId::boolean}, holds, both);
}

VectorId Translator::is_nan(VectorId v) {
  if (g_.is_literal(v)) return nothing;
  const Vector& x = g_[v];
  if (x.head == "check_cast(" && !hir::is_float(g_[x.arguments[0]].type)) return nothing;
  return g_.map("neq", {v, v}, BasicType::boolean);
}

// SQL orders NaN above all numbers, and it equals itself; HorseIR's comparisons are those of IEEE 754.
VectorId Translator::compare_floats(std::string_view builtin, VectorId a, VectorId b) {
  const VectorId plain = g_.map(builtin, {a, b}, BasicType::boolean);
  if (builtin == "gt" || builtin == "geq") std::swap(a, b);  // a is the one that is not above
  const VectorId x = is_nan(a), y = is_nan(b);
  if (builtin == "eq" || builtin == "neq") {
    if (is_none(x) || is_none(y)) return plain;
    const VectorId both = g_.and_(x, y);
    return builtin == "eq" ? g_.or_(plain, both) : g_.and_(plain, g_.not_(both));
  }
  if (is_none(y)) return plain;
  const bool strictly = builtin == "lt" || builtin == "gt";
  return g_.or_(plain, strictly && !is_none(x) ? g_.and_(y, g_.not_(x)) : y);
}

// A byte against a text: the text's first byte decides, and where it is equal, whether there are
// more.
Cell Translator::compare_character(std::string_view builtin, const Cell& c, const Cell& literal) {
  const std::string text = *g_[literal.value].text;
  const Cell both[] = {c, literal};
  const auto always = [&](bool value) {
    return strict({TypeId::boolean}, g_.integer(BasicType::boolean, value), both);
  };
  if (text.empty()) return always(builtin == "neq" || builtin == "gt" || builtin == "geq");
  if (text.size() > 1) {
    if (builtin == "eq" || builtin == "neq") return always(builtin == "neq");
    if (builtin == "lt") builtin = "leq";
    if (builtin == "geq") builtin = "gt";
  }
  const VectorId byte = g_.text(BasicType::character, text.substr(0, 1));
  return strict({TypeId::boolean}, g_.map(builtin, {c.value, byte}, BasicType::boolean), both);
}

Cell Translator::equal_cells(const Cell& a, const Cell& b) {
  const Cell x{a.value, nothing, a.type}, y{b.value, nothing, b.type};
  const VectorId same = compare_cells("eq", x, y).value;
  if (is_none(a.valid) && is_none(b.valid)) return {same, nothing, {TypeId::boolean}};
  const VectorId alike = is_none(a.valid)   ? b.valid
                         : is_none(b.valid) ? a.valid
                                            : g_.map("eq", {a.valid, b.valid}, BasicType::boolean);
  return {g_.and_(same, alike), nothing, {TypeId::boolean}};
}

Cell Translator::compare(const Expression&, std::span<const Cell> a, std::string_view builtin) {
  return compare_cells(builtin, a[0], a[1]);
}
Cell Translator::distinct_from(const Expression& e, std::span<const Cell> a, std::string_view) {
  return {g_.not_(equal_cells(a[0], a[1]).value), nothing, e.type};
}
Cell Translator::not_distinct_from(const Expression&, std::span<const Cell> a, std::string_view) {
  return equal_cells(a[0], a[1]);
}
Cell Translator::between(const Expression& e, std::span<const Cell> a, std::string_view) {
  return both(compare_cells(e.lower_inclusive ? "geq" : "gt", a[0], a[1]),
              compare_cells(e.upper_inclusive ? "leq" : "lt", a[0], a[2]), true);
}

// IN a list: `member` of the constants, `=` with what is none. A null in the list makes what is not
// found null.
Cell Translator::membership(std::span<const Cell> a) {
  const Cell x = comparable(a[0]);
  const BasicType type = g_[x.value].type;
  std::vector<VectorId> set;
  std::vector<Cell> parts;
  bool has_null = false;
  for (const Cell& given : a.subspan(1)) {
    const Cell c = comparable(given);
    if (!is_none(c.valid) && g_.is_false(c.valid)) {
      has_null = true;
      continue;
    }
    const Vector& v = g_[c.value];
    if (v.kind == Vector::literal && is_none(c.valid) && v.text && type != BasicType::boolean) {
      if (type != BasicType::character || v.text->size() == 1)
        set.push_back(g_.text(type, *v.text));
    } else if (v.kind == Vector::literal && is_none(c.valid) && v.bounds.known &&
               hir::is_integer(type) && type != BasicType::boolean &&
               scale_of(c.type) == scale_of(x.type)) {
      set.push_back(g_.integer(std::max(type, v.type), v.bounds.least));
    } else {
      parts.push_back(compare_cells("eq", x, c));
    }
  }
  BasicType set_type = type;
  for (VectorId v : set) set_type = std::max(set_type, g_[v].type);
  if (set_type != type)
    for (VectorId& v : set) v = g_.integer(set_type, g_[v].bounds.least);
  const Type truth{TypeId::boolean};
  if (set.size() == 1) {
    parts.push_back(compare_cells("eq", x, {set[0], nothing, x.type}));
  } else if (!set.empty()) {
    const VectorId in = g_.call("@member(", {x.value, g_.list_literal(set_type, set)},
                                BasicType::boolean, g_[x.value].space, "member");
    parts.push_back(canonical(truth, in, x.valid));
  }
  if (parts.empty()) parts.push_back({g_.integer(BasicType::boolean, 0), nothing, truth});
  if (has_null) parts.push_back(null_of(truth));
  return all_of(std::move(parts), false);
}
Cell Translator::in(const Expression&, std::span<const Cell> a, std::string_view) {
  return membership(a);
}
Cell Translator::not_in(const Expression& e, std::span<const Cell> a, std::string_view) {
  const Cell in = membership(a);
  return negation(e, {&in, 1}, "");
}

// --- three-valued logic --------------------------------------------------------------------------

// AND or OR of two: known where both are, and where one decides.
Cell Translator::both(const Cell& a, const Cell& b, bool is_and) {
  Cell out{
      is_and ? g_.and_(a.value, b.value) : g_.or_(a.value, b.value), nothing, {TypeId::boolean}};
  if (is_none(a.valid) && is_none(b.valid)) return out;
  const auto decides = [&](const Cell& c) {
    return g_.and_(c.valid, is_and ? g_.not_(c.value) : c.value);
  };
  const VectorId known = g_.and_(valid_of(a), valid_of(b));
  out.valid = g_.or_(known, g_.or_(decides(a), decides(b)));
  if (g_.is_true(out.valid)) out.valid = nothing;
  return out;
}

// Of many, pair by pair, so that no expression gets deeper than the logarithm of their number.
Cell Translator::all_of(std::vector<Cell> parts, bool is_and) {
  while (parts.size() > 1) {
    std::vector<Cell> next;
    for (size_t i = 0; i + 1 < parts.size(); i += 2)
      next.push_back(both(parts[i], parts[i + 1], is_and));
    if (parts.size() % 2) next.push_back(parts.back());
    parts = std::move(next);
  }
  return parts[0];
}
Cell Translator::and_all(const Expression&, std::span<const Cell> a, std::string_view) {
  return all_of({a.begin(), a.end()}, true);
}
Cell Translator::or_any(const Expression&, std::span<const Cell> a, std::string_view) {
  return all_of({a.begin(), a.end()}, false);
}
Cell Translator::negation(const Expression&, std::span<const Cell> a, std::string_view) {
  return canonical({TypeId::boolean}, g_.not_(a[0].value), a[0].valid);
}
Cell Translator::is_null(const Expression& e, std::span<const Cell> a, std::string_view) {
  return {g_.not_(valid_of(a[0])), nothing, e.type};
}
Cell Translator::is_not_null(const Expression& e, std::span<const Cell> a, std::string_view) {
  return {valid_of(a[0]), nothing, e.type};
}

Cell Translator::select_cells(const Cell& condition, Cell a, Cell b, Type type) {
  if (g_.is_true(condition.value)) return a;
  if (g_.is_false(condition.value)) return b;
  unify(a, b);
  Cell out{g_.select(condition.value, a.value, b.value), nothing, type};
  if (is_none(a.valid) && is_none(b.valid)) return out;
  out.valid =
      g_.or_(g_.and_(condition.value, valid_of(a)), g_.and_(g_.not_(condition.value), valid_of(b)));
  return out;
}
Cell Translator::case_of(const Expression& e, std::span<const Cell> a, std::string_view) {
  Cell out = a.back();
  for (size_t i = a.size() - 1; i >= 2; i -= 2) out = select_cells(a[i - 2], a[i - 1], out, e.type);
  out.type = e.type;
  return out;
}
Cell Translator::coalesce(const Expression& e, std::span<const Cell> a, std::string_view) {
  Cell out = a.back();
  for (size_t i = a.size() - 1; i-- > 0;)
    out = is_none(a[i].valid)
              ? a[i]
              : select_cells({a[i].valid, nothing, {TypeId::boolean}}, a[i], out, e.type);
  out.type = e.type;
  return out;
}

// What the planner makes of LIKE '%' and its kin: the first, where none of the others is null.
Cell Translator::constant_or_null(const Expression& e, std::span<const Cell> a, std::string_view) {
  return strict(e.type, a[0].value, a);
}

}  // namespace rndn::sql
