// Expressions: value and validity of every function (the table of docs/sql.md).
//
// In: an expression of the plan, and the cells of the columns that it may name. Out: a cell; every
// rule keeps the promise of cells that values under false are zeros. Constants of text take the
// type of what they meet. Decimals are integers times a power of ten, in 64 bits; where a result of
// more than 18 digits is not proved to fit by the bounds of what it is made of, in 128 bits; where
// these do not do either, it is refused by name. Results that bounds do not keep within their type
// are required to be (DuckDB raises an error there, too): of rows that a filter, an arm of CASE, or
// an operand of AND, OR or COALESCE before them leaves out, nothing is required. Left out: bytes of
// a text are its characters.
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
// The type that holds integers of `type` and within the bounds.
BasicType holding(BasicType type, Bounds bounds) {
  return bounds.known && !bounds.fits_i64() ? BasicType::i128 : type;
}
bool is_floating(Type t) { return t.id == TypeId::real || t.id == TypeId::double_; }
bool is_integral(Type t) { return t.id >= TypeId::tinyint && t.id <= TypeId::uinteger; }
bool is_exact(Type t) {
  return is_integral(t) || t.id == TypeId::hugeint || t.id == TypeId::decimal;
}
unsigned scale_of(Type t) { return t.id == TypeId::decimal ? t.scale : 0; }

__int128 power_of_ten(unsigned n) {
  __int128 p = 1;
  while (n-- > 0) p *= 10;
  return p;
}

std::string_view mirrored(std::string_view comparison) {
  if (comparison == "lt") return "gt";
  if (comparison == "gt") return "lt";
  if (comparison == "leq") return "geq";
  if (comparison == "geq") return "leq";
  return comparison;
}

}  // namespace

BasicType basic_of(Type type) { return basics[static_cast<size_t>(type.id)]; }

Bounds bounds_of(Type t) {
  switch (t.id) {
    case TypeId::tinyint: return Bounds::of(INT8_MIN, INT8_MAX);
    case TypeId::smallint: return Bounds::of(INT16_MIN, INT16_MAX);
    case TypeId::integer: return Bounds::of(INT32_MIN, INT32_MAX);
    case TypeId::bigint: return Bounds::of(INT64_MIN, INT64_MAX);
    case TypeId::utinyint: return Bounds::of(0, UINT8_MAX);
    case TypeId::usmallint: return Bounds::of(0, UINT16_MAX);
    case TypeId::uinteger: return Bounds::of(0, UINT32_MAX);
    case TypeId::decimal:
      return t.width <= 18 ? Bounds::of(1 - power_of_ten(t.width), power_of_ten(t.width) - 1)
                           : Bounds{};
    default: return {};
  }
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

Cell Translator::evaluate(ExpressionId id, const Relation& r, VectorId counted) {
  const VectorId outer = guard_;
  guard_ = g_.and_(r.mask, counted);
  Cell c = evaluate(id, r.columns);
  guard_ = outer;
  return c;
}

// Each argument under the guard of those that decide whether it counts.
std::vector<Cell> Translator::evaluate_arguments(const Expression& e, std::span<const Cell> columns,
                                                 bool is_case, bool is_coalesce, bool is_and,
                                                 bool is_or) {
  std::vector<Cell> out;
  const VectorId outer = guard_;
  const std::span<const ExpressionId> arguments = plan_.of(e.arguments);
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
    } else if (is_and) {
      guard_ = g_.and_(guard_, is_none(c.valid) ? c.value : g_.or_(c.value, g_.not_(c.valid)));
    } else if (is_or) {
      guard_ = g_.and_(guard_, g_.not_(c.value));
    }
  }
  guard_ = outer;
  return out;
}

Bounds Translator::known_bounds(const Cell& c) const {
  const Bounds b = g_[c.value].bounds;
  return b.known ? b : bounds_of(c.type);
}

VectorId Translator::checked(VectorId v, Bounds bounds, Type type, std::string_view what) {
  const Bounds all = bounds_of(type);
  if (!all.known || bounds.within(all.least, all.most)) return v;
  const BasicType made = g_[v].type;
  VectorId fits = nothing;
  if (!bounds.known || bounds.least < all.least)
    fits = g_.map("geq", {v, g_.integer(made, all.least)}, BasicType::boolean);
  if (!bounds.known || bounds.most > all.most)
    fits = g_.and_(fits, g_.map("leq", {v, g_.integer(made, all.most)}, BasicType::boolean));
  VectorId required = fits;
  if (!is_none(guard_)) {  // what is left out becomes zero, so that the bounds hold for all
    v = g_.select(fits, v, g_.zero(made));
    required = g_.or_(g_.not_(guard_), fits);
  }
  v = g_.require(required, v, fmt::format("{} does not fit {}", what, type_name(type)), place_);
  g_.change(v).bounds = all;
  return made == BasicType::i128 ? g_.cast(v, BasicType::i64) : v;
}

Cell Translator::constant(const Constant& c) {
  if (c.is_null) return null_of(c.type);
  const BasicType type = basic_of(c.type);
  if (type == BasicType::str) return {g_.text(type, c.text), nothing, c.type};
  if (is_floating(c.type)) {
    if (!std::isfinite(c.real)) fail("the constant {} has no translation", c.real);
    return {g_.real(type, c.real), nothing, c.type};
  }
  if (type == BasicType::date && (c.integer < -354285 || c.integer > 2932896)) {
    // No literal has it: days from one that has.
    const VectorId days = g_.integer(BasicType::i32, c.integer);
    return {g_.map("plus", {g_.integer(type, 0), days}, type, Bounds::of(c.integer, c.integer)),
            nothing, c.type};
  }
  return {g_.integer(holding(type, Bounds::of(c.integer, c.integer)), c.integer), nothing, c.type};
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
  if (g_[a.value].type == BasicType::character && g_[b.value].text)
    return compare_character(builtin, a, b);
  if (g_[b.value].type == BasicType::character && g_[a.value].text)
    return compare_character(mirrored(builtin), b, a);
  unify(a, b);
  const Cell both[] = {a, b};
  return strict({TypeId::boolean}, g_.map(builtin, {a.value, b.value}, BasicType::boolean), both);
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
  const Cell x = a[0];
  const BasicType type = g_[x.value].type;
  std::vector<VectorId> set;
  std::vector<Cell> parts;
  bool has_null = false;
  for (const Cell& c : a.subspan(1)) {
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

// --- numbers -------------------------------------------------------------------------------------

// What a result of an exact type can be. Results of more than 18 digits must be proved to fit 128
// bits; of others that do not fit their type DuckDB raises an error.
Bounds Translator::within_type(Bounds bounds, std::string_view what, Type type) {
  const Bounds all = bounds_of(type);
  if (!all.known) {
    if (!bounds.known) fail("{} of type {} may leave 128 bits", what, type_name(type));
    return bounds;
  }
  if (!bounds.known) return all;
  return Bounds::of(std::max(bounds.least, all.least), std::min(bounds.most, all.most));
}

// The integer of an exact value at another, not smaller, scale.
VectorId Translator::rescaled(const Cell& c, unsigned scale) {
  const unsigned from = scale_of(c.type);
  const BasicType own = g_[c.value].type;
  BasicType type = hir::widest(own, BasicType::i64);
  if (scale == from) return g_.cast(c.value, type);
  const __int128 factor = power_of_ten(scale - from);
  const Bounds known = g_[c.value].bounds.known ? g_[c.value].bounds : bounds_of(c.type);
  const Bounds bounds = known * Bounds::of(factor, factor);
  if (!bounds.known)
    fail("a value of type {} with {} digits behind the point may leave 128 bits", type_name(c.type),
         scale);
  if (error_) return g_.zero(BasicType::i64);
  type = holding(holding(type, bounds), Bounds::of(factor, factor));
  const VectorId v = g_.cast(c.value, type);
  if (g_.is_literal(c.value)) return g_.integer(type, bounds.least);
  return g_.map("mul", {v, g_.integer(type, factor)}, type, bounds);
}

// Fewer digits behind the point, half away from zero.
Cell Translator::decimal_down(const Cell& c, unsigned digits, Type to) {
  const __int128 factor = power_of_ten(digits);
  const BasicType type =
      holding(hir::widest(g_[c.value].type, BasicType::i64), Bounds::of(factor, factor));
  const VectorId v = g_.cast(c.value, type);
  const Bounds b = known_bounds(c);
  const VectorId half = g_.integer(type, factor / 2);
  const VectorId negative = g_.map("lt", {v, g_.integer(type, 0)}, BasicType::boolean);
  const VectorId moved =
      g_.select(negative, g_.map("minus", {v, half}, type, b - Bounds::of(factor / 2, factor / 2)),
                g_.map("plus", {v, half}, type, b + Bounds::of(factor / 2, factor / 2)));
  const Bounds out = b.known ? Bounds::of(b.least / factor - 1, b.most / factor + 1) : Bounds{};
  if (!bounds_of(to).known) within_type(out, "a cast", to);
  const VectorId result = g_.map("div", {moved, g_.integer(type, factor)}, type, out);
  return strict(to, checked(result, out, to, "a value of type " + type_name(c.type)), {&c, 1});
}

Cell Translator::cast_cell(const Cell& c, Type to) {
  const Type from = c.type;
  if (from == to) return c;
  const BasicType type = basic_of(to);
  const auto refuse = [&] {
    fail("the cast from {} to {} has no translation", type_name(from), type_name(to));
    return failed(to);
  };
  if (!is_none(c.valid) && g_.is_false(c.valid)) return null_of(to);
  if (from.id == TypeId::boolean) {
    if (is_integral(to) || is_floating(to) || to.id == TypeId::hugeint)
      return {g_.cast(c.value, type), c.valid, to};
    return refuse();
  }
  if (to.id == TypeId::boolean && is_integral(from))
    return {g_.map("neq", {c.value, g_.zero(g_[c.value].type)}, BasicType::boolean), c.valid, to};
  if (is_exact(from) && is_exact(to)) {
    const unsigned less = scale_of(from), more = scale_of(to);
    if (less > more) return decimal_down(c, less - more, to);
    Cell out{c.value, c.valid, to};
    if (to.id == TypeId::decimal) out.value = rescaled(c, more);
    // A narrower type keeps its wider vector.
    else if (g_[c.value].type < type)
      out.value = g_.cast(c.value, type);
    const Bounds bounds = g_[out.value].bounds.known ? g_[out.value].bounds : known_bounds(c);
    out.value = checked(out.value, bounds, to, "a value of type " + type_name(from));
    return out;
  }
  if (is_exact(from) && is_floating(to)) {
    VectorId v = g_.cast(c.value, BasicType::f64);
    const unsigned scale = scale_of(from);
    if (scale > 0)
      v = g_.map("div", {v, g_.real(BasicType::f64, static_cast<double>(power_of_ten(scale)))},
                 BasicType::f64);
    if (type == BasicType::f32) {
      if (scale > 0 || !is_integral(from)) return refuse();
      v = g_.cast(c.value, type);
    }
    return {v, c.valid, to};
  }
  if (from.id == TypeId::real && to.id == TypeId::double_)
    return {g_.cast(c.value, type), c.valid, to};
  if (from.id == TypeId::double_ && to.id == TypeId::decimal && to.width <= 18) {
    const VectorId scaled = g_.map(
        "mul", {c.value, g_.real(BasicType::f64, static_cast<double>(power_of_ten(to.scale)))},
        BasicType::f64);
    const VectorId whole = g_.map("round", {scaled}, BasicType::f64);
    const VectorId v = g_.cast(whole, BasicType::i64);
    g_.change(v).bounds = bounds_of(to);
    return {v, c.valid, to};
  }
  if (from.id == TypeId::date && to.id == TypeId::timestamp) {
    const VectorId days = g_.map("minus", {c.value, g_.integer(BasicType::date, 0)}, BasicType::i32,
                                 g_[c.value].bounds);
    const __int128 day = static_cast<__int128>(86400) * 1000000;
    return strict(to,
                  g_.map("mul", {g_.cast(days, BasicType::i64), g_.integer(BasicType::i64, day)},
                         BasicType::i64),
                  {&c, 1});
  }
  return refuse();
}
Cell Translator::cast(const Expression& e, std::span<const Cell> a, std::string_view) {
  return cast_cell(a[0], e.type);
}

Cell Translator::arithmetic(const Expression& e, std::span<const Cell> a,
                            std::string_view builtin) {
  const BasicType type = basic_of(e.type);
  const auto refuse = [&] {
    std::string types;
    for (const Cell& c : a)
      types += fmt::format("{}{}", types.empty() ? "" : ", ", type_name(c.type));
    fail("the function {} of {} has no translation", name_of(e.function), types);
    return failed(e.type);
  };
  if (a.size() == 1) {
    if (!is_exact(a[0].type) && !is_floating(a[0].type)) return refuse();
    if (builtin == "plus") return a[0];
    if (builtin != "minus") return refuse();
    const Bounds bounds = Bounds::of(0, 0) - known_bounds(a[0]);
    if (!is_exact(e.type))
      return {g_.map("neg", {a[0].value}, g_[a[0].value].type, bounds), a[0].valid, e.type};
    if (!bounds_of(e.type).known) within_type(bounds, "a negation", e.type);
    const BasicType made = hir::widest(g_[a[0].value].type, fitting(bounds));
    return {checked(g_.map("neg", {g_.cast(a[0].value, made)}, made, bounds), bounds, e.type,
                    "the negated value"),
            a[0].valid, e.type};
  }
  const VectorId x = a[0].value, y = a[1].value;
  const Bounds p = known_bounds(a[0]), q = known_bounds(a[1]);
  const Bounds bounds = builtin == "plus" ? p + q : builtin == "minus" ? p - q : p * q;
  if (is_floating(e.type) && is_floating(a[0].type) && is_floating(a[1].type))
    return strict(e.type, g_.map(builtin, {x, y}, type), a);
  const bool dates[] = {a[0].type.id == TypeId::date, a[1].type.id == TypeId::date};
  if (e.type.id == TypeId::date && dates[0] != dates[1] && is_integral(a[dates[0] ? 1 : 0].type))
    return strict(e.type, g_.map(builtin, {x, y}, BasicType::date, bounds), a);
  if (builtin == "minus" && dates[0] && dates[1] && is_integral(e.type))
    return strict(e.type, g_.cast(g_.map("minus", {x, y}, BasicType::i32, bounds), type), a);
  if (!is_exact(e.type) || !is_exact(a[0].type) || !is_exact(a[1].type)) return refuse();
  if (e.type.id == TypeId::decimal && builtin != "mul" &&
      (scale_of(a[0].type) > e.type.scale || scale_of(a[1].type) > e.type.scale))
    return refuse();
  if (e.type.id == TypeId::decimal && builtin == "mul" &&
      scale_of(a[0].type) + scale_of(a[1].type) != e.type.scale)
    return refuse();
  const bool scaled = e.type.id == TypeId::decimal && builtin != "mul";
  const VectorId left = scaled ? rescaled(a[0], e.type.scale) : x;
  const VectorId right = scaled ? rescaled(a[1], e.type.scale) : y;
  const auto of = [&](VectorId v, const Cell& c) { return g_[v].bounds.known ? g_[v].bounds : known_bounds(c); };
  const Bounds l = of(left, a[0]), r = of(right, a[1]);
  const Bounds exact = builtin == "plus" ? l + r : builtin == "minus" ? l - r : l * r;
  // A product of two 64-bit numbers has 127 bits, which is more than bounds tell.
  const bool is_wide_product = builtin == "mul" && l.fits_i64() && r.fits_i64() && bounds_of(e.type).known;
  if (!is_wide_product && !bounds_of(e.type).known)
    within_type(exact, fmt::format("the function {}", name_of(e.function)), e.type);
  const BasicType made =
      hir::widest(hir::widest(type, hir::widest(g_[left].type, g_[right].type)), fitting(exact));
  const VectorId result = g_.map(builtin, {g_.cast(left, made), g_.cast(right, made)}, made, exact);
  return strict(e.type, checked(result, exact, e.type, fmt::format("the result of {}", name_of(e.function))), a);
}

Cell Translator::divide(const Expression& e, std::span<const Cell> a, std::string_view) {
  const BasicType type = basic_of(e.type);
  if (!is_floating(e.type) || !is_floating(a[0].type) || !is_floating(a[1].type)) {
    fail("the function / of {}, {} has no translation", type_name(a[0].type), type_name(a[1].type));
    return failed(e.type);
  }
  return strict(e.type, g_.map("div", {a[0].value, a[1].value}, type), a);
}

// // and %, where the divisor is never zero.
Cell Translator::integer_division(const Expression& e, std::span<const Cell> a,
                                  std::string_view builtin) {
  const Bounds by = g_[a[1].value].bounds;
  if (!is_integral(a[0].type) || !is_integral(a[1].type) || !by.known || !is_none(a[1].valid) ||
      (by.least <= 0 && by.most >= 0)) {
    fail("the function {} of {}, {} has a translation only where no divisor can be zero",
         name_of(e.function), type_name(a[0].type), type_name(a[1].type));
    return failed(e.type);
  }
  const VectorId x = a[0].value, y = a[1].value;
  return strict(e.type,
                g_.map(builtin, {x, y}, std::max(g_[x].type, g_[y].type), bounds_of(e.type)), a);
}

Cell Translator::magnitude(const Expression& e, std::span<const Cell> a, std::string_view builtin) {
  if (!is_exact(e.type) && !is_floating(e.type)) {
    fail("the function {} of {} has no translation", name_of(e.function), type_name(a[0].type));
    return failed(e.type);
  }
  const Bounds b = known_bounds(a[0]);
  const Bounds out = b.known ? Bounds::of(0, std::max(b.most, -b.least)) : Bounds{};
  const BasicType own = g_[a[0].value].type;
  if (!is_exact(e.type) || !b.known)
    return {g_.map(builtin, {a[0].value}, own, out), a[0].valid, e.type};
  const VectorId v = g_.cast(a[0].value, hir::widest(own, fitting(out)));
  return {checked(g_.map(builtin, {v}, g_[v].type, out), out, e.type, "the result of abs"),
          a[0].valid, e.type};
}

Cell Translator::date_part(const Expression& e, std::span<const Cell> a, std::string_view builtin) {
  if (a[0].type.id != TypeId::date) {
    fail("the function {} of {} has no translation", name_of(e.function), type_name(a[0].type));
    return failed(e.type);
  }
  const Bounds bounds =
      builtin == "date_year" ? Bounds::of(INT16_MIN, INT16_MAX) : Bounds::of(1, 31);
  return strict(
      e.type, g_.cast(g_.map(builtin, {a[0].value}, BasicType::i16, bounds), basic_of(e.type)), a);
}

// --- text ----------------------------------------------------------------------------------------

// `like` with a constant pattern; `quote`: the constant's own % and _ stand for themselves, which
// `like` cannot say.
Cell Translator::like_cell(std::span<const Cell> a, bool quote, std::string_view before,
                           std::string_view behind) {
  const std::optional<std::string> pattern = g_[a[1].value].text;
  const Type truth{TypeId::boolean};
  if (!pattern || !is_none(a[1].valid) ||
      (quote && pattern->find_first_of("%_") != std::string::npos)) {
    fail(
        "a pattern of text that is no constant, or a searched text with % or _, has no "
        "translation");
    return failed(truth);
  }
  if (!hir::is_text(g_[a[0].value].type)) {
    fail("LIKE of a text stored as {} has no translation",
         hir::basic_type_name(g_[a[0].value].type));
    return failed(truth);
  }
  const VectorId like = g_.call(
      "@like(",
      {a[0].value, g_.text(BasicType::str, fmt::format("{}{}{}", before, *pattern, behind))},
      BasicType::boolean, g_[a[0].value].space, "like");
  return strict(truth, like, a);
}
Cell Translator::like(const Expression&, std::span<const Cell> a, std::string_view) {
  return like_cell(a, false, "", "");
}
Cell Translator::not_like(const Expression& e, std::span<const Cell> a, std::string_view) {
  const Cell c = like_cell(a, false, "", "");
  return negation(e, {&c, 1}, "");
}
Cell Translator::contains(const Expression&, std::span<const Cell> a, std::string_view) {
  return like_cell(a, true, "%", "%");
}
Cell Translator::prefix(const Expression&, std::span<const Cell> a, std::string_view) {
  return like_cell(a, true, "", "%");
}
Cell Translator::suffix(const Expression&, std::span<const Cell> a, std::string_view) {
  return like_cell(a, true, "%", "");
}

Cell Translator::substring(const Expression& e, std::span<const Cell> a, std::string_view) {
  std::vector<VectorId> range;
  for (const Cell& c : a.subspan(1))
    if (g_.is_literal(c.value) && is_none(c.valid))
      range.push_back(g_.integer(BasicType::i64, g_[c.value].bounds.least));
  if (a.size() == 2) range.push_back(g_.integer(BasicType::i64, INT32_MAX));
  if (range.size() != 2 || g_[range[0]].bounds.least < 1 || g_[range[1]].bounds.least < 0 ||
      !hir::is_text(g_[a[0].value].type)) {
    fail(
        "substring has a translation where start and length are constants from 1 and 0 on, and the "
        "text is no single "
        "byte");
    return failed(e.type);
  }
  const VectorId v = g_.call("@sub_string(", {a[0].value, g_.list_literal(BasicType::i64, range)},
                             g_[a[0].value].type, g_[a[0].value].space, "substring");
  return {v, a[0].valid, e.type};
}

}  // namespace rndn::sql
