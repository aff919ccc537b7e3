// The types of the builtins' results: one function per TypeRule, chosen by the row of the builtin
// (docs/horseir.md). A rule looks at argument types and, where a literal decides (a scalar, a
// column name, a unit), at its value; it returns the result type or reports what it expected and
// what it got. Arity is checked before, from the row.
#include <algorithm>
#include <array>

#include "frontend/check_types.h"
#include "frontend/text_functions.h"
#include "libraries/base/numbers/sum_parts.h"

namespace rndn::hir {

bool castable(BasicType from, BasicType to) {
  if (from == to) return true;
  if (is_text(to)) return is_text(from);
  if (to == BasicType::boolean) return is_integer(from) || is_wide(from);
  if (is_wide(from)) return is_integer(to) || is_float(to);
  if (is_wide(to)) return is_real(from);
  if (is_integer(to)) return from == BasicType::boolean || (is_real(from) && row(from).bits <= row(to).bits);
  if (is_float(to)) return is_integer(from) || is_float(from);
  return false;
}

namespace {

using B = BasicType;

// --- Helpers -------------------------------------------------------------------------------------

TypeId basic(const Call& c, B type) { return c.checker.types.basic(type); }
TypeId list_of(const Call& c, TypeId cell) { return c.checker.types.list(cell); }
const Type& type_of(const Call& c, size_t i) { return c.checker.types[c[i].type]; }
bool is_basic(const Call& c, size_t i) { return c.checker.types.is_basic(c[i].type); }
B basic_of(const Call& c, size_t i) { return c.checker.types.basic_of(c[i].type); }
bool is_list(const Type& t) { return t.kind == TypeKind::list || t.kind == TypeKind::tuple; }
bool is_any(const Call& c, size_t i, bool (*test)(B)) { return is_basic(c, i) && test(basic_of(c, i)); }
bool is_exactly(const Call& c, size_t i, B type) { return is_basic(c, i) && basic_of(c, i) == type; }
B float_for(B type) { return is_extended(type) ? B::f64 : B::f32; }

// A literal where one value is wanted must hold one; other arguments are checked when they run.
bool scalar(const Call& c, size_t i) {
  if (!c[i].literal || c[i].literal->size() == 1) return true;
  c.checker.sink->error("expected-scalar", c[i].span, "`{}` expects one value here, got {}", row(c.builtin).name,
                        c[i].literal->size());
  return false;
}

const std::string* literal_text(const Argument& a) {
  if (!a.literal) return nullptr;
  const auto* texts = std::get_if<std::vector<std::string>>(&a.literal->values);
  return texts && texts->size() == 1 ? &(*texts)[0] : nullptr;
}

bool same_text_or_equal(const Call& c, size_t a, size_t b) {
  return c[a].type == c[b].type || (is_any(c, a, is_text) && is_any(c, b, is_text));
}

// The type of the cells of a list: one for all, or no_type when they differ.
TypeId common_cell(const Type& list) {
  for (TypeId cell : list.components)
    if (cell != list.components[0]) return no_type;
  return list.components[0];
}

TypeId not_inferable(const Call& c, size_t i) {
  c.checker.sink->error("cannot-infer", c[i].span,
                        "the type of `{}`'s result does not follow from {}; expected an argument of known cell types",
                        row(c.builtin).name, c.checker.types.text(c[i].type));
  return no_type;
}

// --- Unary element by element --------------------------------------------------------------------

TypeId real_same(const Call& c) { return is_any(c, 0, is_ordered_number) ? c[0].type : c.checker.mismatch(c, "real numbers"); }

TypeId neg(const Call& c) {
  if (is_exactly(c, 0, B::boolean)) return basic(c, B::i16);
  return real_same(c);
}

TypeId complex_same(const Call& c) {
  return is_exactly(c, 0, B::complex) ? c[0].type : c.checker.mismatch(c, "complex numbers");
}

TypeId real_to_float(const Call& c) {
  return is_any(c, 0, is_real) ? basic(c, float_for(basic_of(c, 0))) : c.checker.mismatch(c, "real numbers");
}

TypeId real_to_i16(const Call& c) {
  return is_any(c, 0, is_real) ? basic(c, B::i16) : c.checker.mismatch(c, "real numbers");
}

TypeId pi(const Call& c) {
  if (is_exactly(c, 0, B::complex)) return c[0].type;
  return is_any(c, 0, is_real) ? real_to_float(c) : c.checker.mismatch(c, "numbers");
}

TypeId bool_unary(const Call& c) { return is_exactly(c, 0, B::boolean) ? c[0].type : c.checker.mismatch(c, "bool"); }

TypeId one_of(const Call& c, std::initializer_list<B> accepted, B result) {
  std::string names;
  for (B b : accepted) {
    if (is_exactly(c, 0, b)) return basic(c, result);
    if (!names.empty()) names += b == *(accepted.end() - 1) ? " or " : ", ";
    names += basic_type_name(b);
  }
  return c.checker.mismatch(c, names);
}

TypeId date_of(const Call& c) { return one_of(c, {B::dt}, B::date); }
TypeId date_year_month(const Call& c) { return one_of(c, {B::date, B::month, B::dt}, B::i16); }
TypeId date_day(const Call& c) { return one_of(c, {B::date, B::dt}, B::i16); }
TypeId time_of(const Call& c) { return one_of(c, {B::dt}, B::time); }
TypeId time_hour_minute(const Call& c) { return one_of(c, {B::minute, B::second, B::time, B::dt}, B::i16); }
TypeId time_second(const Call& c) { return one_of(c, {B::second, B::time, B::dt}, B::i16); }
TypeId time_mill(const Call& c) { return one_of(c, {B::time, B::dt}, B::i16); }

// --- Binary element by element -------------------------------------------------------------------

bool both(const Call& c, bool (*test)(B)) { return is_any(c, 0, test) && is_any(c, 1, test); }

TypeId compare_order(const Call& c) {
  bool same = c[0].type == c[1].type;
  if (both(c, is_ordered_number) || (same && (is_any(c, 0, is_text) || is_any(c, 0, is_calendar)))) return basic(c, B::boolean);
  return c.checker.mismatch(c, "two real numbers, two texts or two calendar values of one type");
}

TypeId compare_equal(const Call& c) {
  bool same = c[0].type == c[1].type;
  bool texts = c.checker.options.strict ? same && is_any(c, 0, is_text) : both(c, is_text);
  if (both(c, is_numeric) || both(c, is_ordered_number) || texts || (same && is_any(c, 0, is_calendar))) return basic(c, B::boolean);
  return c.checker.mismatch(c, "two numbers, two texts or two calendar values of one type");
}

// The widest of two numbers; two bools make i16.
TypeId arithmetic(const Call& c) {
  if (is_exactly(c, 0, B::boolean) && is_exactly(c, 1, B::boolean)) return basic(c, B::i16);
  return basic(c, widest(basic_of(c, 0), basic_of(c, 1)));
}

TypeId plus(const Call& c) {
  if (both(c, is_ordered_number)) return arithmetic(c);
  if (is_any(c, 0, is_calendar) && is_any(c, 1, is_integer)) return c[0].type;
  if (is_any(c, 1, is_calendar) && is_any(c, 0, is_integer)) return c[1].type;
  return c.checker.mismatch(c, "two real numbers, or a calendar value and an integer");
}

TypeId calendar_difference(const Call& c) { return basic(c, basic_of(c, 0) == B::dt ? B::i64 : B::i32); }

TypeId minus(const Call& c) {
  if (both(c, is_ordered_number)) return arithmetic(c);
  if (is_any(c, 0, is_calendar) && is_any(c, 1, is_integer)) return c[0].type;
  if (is_any(c, 0, is_calendar) && c[0].type == c[1].type) return calendar_difference(c);
  return c.checker.mismatch(c, "two real numbers, a calendar value and an integer, or two calendar values of one type");
}

TypeId numeric_binary(const Call& c) {
  return both(c, is_numeric) || both(c, is_ordered_number) ? arithmetic(c) : c.checker.mismatch(c, "two numbers");
}
TypeId real_binary(const Call& c) {
  return both(c, is_real) ? arithmetic(c) : c.checker.mismatch(c, "two real numbers");
}

TypeId real_binary_to_float(const Call& c) {
  if (!both(c, is_real)) return c.checker.mismatch(c, "two real numbers");
  return basic(c, float_for(widest(basic_of(c, 0), basic_of(c, 1))));
}

TypeId bool_binary(const Call& c) {
  return is_exactly(c, 0, B::boolean) && is_exactly(c, 1, B::boolean) ? c[0].type
                                                                      : c.checker.mismatch(c, "bool and bool");
}

TypeId datetime_diff(const Call& c) {
  if (is_any(c, 0, is_calendar) && c[0].type == c[1].type) return calendar_difference(c);
  return c.checker.mismatch(c, "two calendar values of one type");
}

TypeId select(const Call& c) {
  if (!is_exactly(c, 0, B::boolean) || !is_basic(c, 1) || c[2].type != c[1].type)
    return c.checker.mismatch(c, "a bool vector and two vectors of one type");
  return c[1].type;
}

TypeId require(const Call& c) {
  if (!is_exactly(c, 0, B::boolean) || !is_basic(c, 1) || !is_exactly(c, 2, B::sym))
    return c.checker.mismatch(c, "a bool vector, a vector and a message such as `` `\"too large\":sym ``");
  return scalar(c, 2) ? c[1].type : no_type;
}

TypeId datetime_shift(const Call& c) {
  if (!is_any(c, 0, is_calendar) || !is_any(c, 1, is_integer) || !is_exactly(c, 2, B::sym))
    return c.checker.mismatch(c, "a calendar value, an integer and a unit such as `` `day:sym ``");
  if (!scalar(c, 2)) return no_type;
  const std::string* unit = literal_text(c[2]);
  if (!unit) return c[0].type;
  static const std::vector<std::string_view> units = {"year", "month", "day", "hour", "minute", "second", "mill"};
  size_t at = static_cast<size_t>(std::find(units.begin(), units.end(), *unit) - units.begin());
  if (at == units.size()) {
    std::string_view near = did_you_mean(*unit, units);
    c.checker.sink->error("unknown-unit", c[2].span, "expected a unit from `year` to `mill`, got `{}`{}", *unit,
                          near.empty() ? "" : fmt::format("; did you mean `{}`?", near));
    return no_type;
  }
  // First and last unit that each calendar type has.
  struct Range {
    size_t first, last;
  };
  Range has = {0, 6};
  switch (basic_of(c, 0)) {
    case B::date: has = {0, 2}; break;
    case B::month: has = {0, 1}; break;
    case B::minute: has = {3, 4}; break;
    case B::second: has = {3, 5}; break;
    case B::time: has = {3, 6}; break;
    default: break;
  }
  if (at >= has.first && at <= has.last) return c[0].type;
  c.checker.sink->error("unknown-unit", c[2].span, "a {} has no {}; expected a unit from `{}` to `{}`",
                        basic_type_name(basic_of(c, 0)), *unit, units[has.first], units[has.last]);
  return no_type;
}

// --- Making and choosing elements, sorting, grouping and searching -------------------------------

TypeId unique(const Call& c) { return is_basic(c, 0) ? basic(c, B::i64) : c.checker.mismatch(c, "a vector"); }

TypeId range(const Call& c) {
  if (!is_any(c, 0, is_integer)) return c.checker.mismatch(c, "an integer");
  return scalar(c, 0) ? basic(c, B::i64) : no_type;
}

TypeId fact(const Call& c) { return is_any(c, 0, is_integer) ? basic(c, B::i64) : c.checker.mismatch(c, "integers"); }
TypeId rand(const Call& c) { return range(c); }

TypeId randk(const Call& c) {
  if (!is_any(c, 0, is_integer) || !is_any(c, 1, is_integer)) return c.checker.mismatch(c, "two integers");
  return scalar(c, 0) && scalar(c, 1) ? basic(c, B::i64) : no_type;
}

// Reversed cells: a tuple's types reverse with them.
TypeId flip(const Call& c) {
  const Type& list = type_of(c, 0);
  if (!is_list(list)) return c.checker.mismatch(c, "a list");
  if (list.kind == TypeKind::list) return c[0].type;
  std::vector<TypeId> cells(list.components.rbegin(), list.components.rend());
  return c.checker.types.tuple(cells);
}

TypeId basic_same(const Call& c) { return is_basic(c, 0) ? c[0].type : c.checker.mismatch(c, "a vector"); }
TypeId where(const Call& c) { return is_exactly(c, 0, B::boolean) ? basic(c, B::i64) : c.checker.mismatch(c, "bool"); }

// A vector, or a list whose cells all pass `test`; `?` cells pass, they are checked when they run.
bool columns(const Call& c, size_t i, bool (*test)(B)) {
  if (is_basic(c, i)) return test(basic_of(c, i));
  const Type& list = type_of(c, i);
  if (!is_list(list)) return false;
  for (TypeId cell : list.components)
    if (!c.checker.types.is_wildcard(cell) && !(c.checker.types.is_basic(cell) && test(c.checker.types.basic_of(cell))))
      return false;
  return true;
}

TypeId group(const Call& c) {
  if (!columns(c, 0, [](B) { return true; })) return c.checker.mismatch(c, "a vector or a list of vectors");
  return c.checker.types.dict(basic(c, B::i64), basic(c, B::i64));
}

TypeId append(const Call& c) {
  TypeTable& types = c.checker.types;
  if (both(c, is_ordered_number)) return basic(c, widest(basic_of(c, 0), basic_of(c, 1)));
  if (is_basic(c, 0) && c[0].type == c[1].type) return c[0].type;
  const Type x = type_of(c, 0), y = type_of(c, 1);
  if (x.kind == TypeKind::enumeration && (x.components[0] == c[1].type || types.is_wildcard(x.components[0])) &&
      !is_list(y))
    return c[0].type;
  if (!is_list(x) && !is_list(y))
    return c.checker.mismatch(c, "two real numbers, two vectors of one type, a list, or an enum and its key type");
  auto usable = [](const Type& t) {
    return is_list(t) || t.kind == TypeKind::basic || t.kind == TypeKind::enumeration;
  };
  if (!usable(x) || !usable(y)) return c.checker.mismatch(c, "lists or vectors");
  bool counted = true;  // the number of cells is known: the result is a tuple
  std::vector<TypeId> cells;
  auto add = [&](const Type& t, TypeId id) {
    if (t.kind == TypeKind::list) counted = false;
    if (is_list(t))
      cells.insert(cells.end(), t.components.begin(), t.components.end());
    else
      cells.push_back(id);
  };
  add(x, c[0].type);
  add(y, c[1].type);
  bool alike = std::all_of(cells.begin(), cells.end(), [&](TypeId t) { return t == cells[0]; });
  if (alike) return types.list(cells[0]);
  return counted ? types.tuple(cells) : types.list(types.wildcard());
}

TypeId replicate(const Call& c) {
  const Type& value = type_of(c, 1);
  if (!is_any(c, 0, is_integer) || (!is_basic(c, 1) && !is_list(value)))
    return c.checker.mismatch(c, "an integer and a vector or list");
  if (!scalar(c, 0)) return no_type;
  if (is_basic(c, 1)) return list_of(c, c[1].type);
  return value.kind == TypeKind::list ? c[1].type : list_of(c, c.checker.types.wildcard());
}

TypeId like(const Call& c) {
  if (!both(c, is_text)) return c.checker.mismatch(c, "text and a text pattern");
  return scalar(c, 1) ? basic(c, B::boolean) : no_type;
}

TypeId compress(const Call& c) {
  bool values = is_basic(c, 1) || type_of(c, 1).kind == TypeKind::enumeration;
  return is_exactly(c, 0, B::boolean) && values ? c[1].type : c.checker.mismatch(c, "a bool mask and a vector");
}

bool searchable(const Call& c) { return both(c, is_ordered_number) || (is_basic(c, 0) && same_text_or_equal(c, 0, 1)); }

TypeId index_of(const Call& c) {
  return searchable(c) ? basic(c, B::i64) : c.checker.mismatch(c, "two vectors of comparable types");
}
TypeId member(const Call& c) {
  return searchable(c) ? basic(c, B::boolean) : c.checker.mismatch(c, "two vectors of comparable types");
}

TypeId take(const Call& c) {  // take, drop, vector
  if (!is_any(c, 0, is_integer) || !is_basic(c, 1)) return c.checker.mismatch(c, "an integer and a vector");
  return scalar(c, 0) ? c[1].type : no_type;
}

TypeId order(const Call& c) {
  if (!columns(c, 0, [](B b) { return b != B::complex; }) || !is_exactly(c, 1, B::boolean))
    return c.checker.mismatch(c, "a vector or list of vectors that can be ordered, and bool");
  const Type& keys = type_of(c, 0);
  size_t wanted = keys.kind == TypeKind::tuple ? keys.components.size() : 1;
  if (c[1].literal && keys.kind != TypeKind::list && c[1].literal->size() != wanted && c[1].literal->size() != 1) {
    c.checker.sink->error("expected-scalar", c[1].span,
                          "`order` expects one direction, or one per column; got {} for {} column{}",
                          c[1].literal->size(), wanted, wanted == 1 ? "" : "s");
    return no_type;
  }
  return basic(c, B::i64);
}

// --- Reductions ----------------------------------------------------------------------------------

TypeId len(const Call& c) { return basic(c, B::i64); }

TypeId sum(const Call& c) {
  if (!is_any(c, 0, is_ordered_number)) return c.checker.mismatch(c, "real numbers");
  B type = basic_of(c, 0);
  return basic(c, is_float(type) || is_extended(type) ? type : B::i32);
}

TypeId minimum(const Call& c) {
  return is_any(c, 0, is_ordered_number) || is_any(c, 0, is_calendar) ? c[0].type
                                                            : c.checker.mismatch(c, "real numbers or calendar values");
}

TypeId scan_sum(const Call& c) {
  if (!is_any(c, 0, is_ordered_number) || !is_exactly(c, 1, B::boolean))
    return c.checker.mismatch(c, "real numbers and a bool for each");
  const B type = basic_of(c, 0);
  return basic(c, is_float(type) || is_wide(type) ? type : B::i64);
}

TypeId scan_extreme(const Call& c) {
  const bool ordered = is_any(c, 0, is_ordered_number) || is_any(c, 0, is_calendar);
  return ordered && is_exactly(c, 1, B::boolean)
             ? c[0].type
             : c.checker.mismatch(c, "real numbers or calendar values, and a bool for each");
}

// --- Indexing ------------------------------------------------------------------------------------

TypeId index(const Call& c) {
  const Type& x = type_of(c, 0);
  bool source = is_basic(c, 0) || is_list(x) || x.kind == TypeKind::enumeration;
  if (!source || !is_any(c, 1, is_integer)) return c.checker.mismatch(c, "a vector or list, and integers");
  if (!is_list(x)) return c[0].type;
  if (!scalar(c, 1)) return no_type;
  const auto* at = c[1].literal ? std::get_if<std::vector<int64_t>>(&c[1].literal->values) : nullptr;
  if (x.kind == TypeKind::tuple && at) {
    if ((*at)[0] >= 0 && static_cast<size_t>((*at)[0]) < x.components.size())
      return x.components[static_cast<size_t>((*at)[0])];
    c.checker.sink->error("index-range", c[1].span, "expected an index from 0 to {}, got {}", x.components.size() - 1,
                          (*at)[0]);
    return no_type;
  }
  TypeId cell = common_cell(x);
  return cell == no_type || c.checker.types.is_wildcard(cell) ? not_inferable(c, 0) : cell;
}

TypeId index_or(const Call& c) {
  if (!is_basic(c, 0) || !is_any(c, 1, is_integer) || c[2].type != c[0].type)
    return c.checker.mismatch(c, "a vector, integers, and a scalar of the vector's type");
  return scalar(c, 2) ? c[0].type : no_type;
}

TypeId index_a(const Call& c) {
  bool values = c[2].type == c[0].type ||
                (is_any(c, 0, is_numeric) && is_any(c, 2, is_numeric) && row(basic_of(c, 2)).rank < row(basic_of(c, 0)).rank);
  if (!is_basic(c, 0) || !is_any(c, 1, is_integer) || !values)
    return c.checker.mismatch(c, "a vector, integers, and values of the vector's type or a smaller number type");
  return c[0].type;
}

// --- Lists ---------------------------------------------------------------------------------------

TypeId list(const Call& c) {
  TypeTable& types = c.checker.types;
  if (c.size() == 0) return types.list(types.wildcard());
  std::vector<TypeId> cells;
  for (const Argument& a : c.arguments) {
    if (a.type == types.function()) return c.checker.mismatch(c, "values, no functions");
    cells.push_back(a.type);
  }
  bool alike = std::all_of(cells.begin(), cells.end(), [&](TypeId t) { return t == cells[0]; });
  return alike ? types.list(cells[0]) : types.tuple(cells);
}

TypeId raze(const Call& c) {
  if (is_basic(c, 0)) return c[0].type;
  const Type& x = type_of(c, 0);
  if (!is_list(x)) return c.checker.mismatch(c, "a list of vectors of one type");
  if (x.kind == TypeKind::list && c.checker.types.is_wildcard(x.components[0])) return not_inferable(c, 0);
  TypeId result = x.components[0];
  for (TypeId cell : x.components) {
    if (!c.checker.types.is_basic(cell)) return c.checker.mismatch(c, "a list of vectors of one type");
    B a = c.checker.types.basic_of(result), b = c.checker.types.basic_of(cell);
    if (cell != result && !(is_ordered_number(a) && is_ordered_number(b))) return c.checker.mismatch(c, "a list of vectors of one type");
    if (cell != result) result = basic(c, widest(a, b));
  }
  return result;
}

TypeId tolist(const Call& c) { return is_basic(c, 0) ? list_of(c, c[0].type) : c.checker.mismatch(c, "a vector"); }

// The each family: `f` on cells of the arguments for which `split` says so. When no argument that should be a list is one, the
// form applies `f` once (a leniency that published programs need).
TypeId each_form(const Call& c, std::initializer_list<bool> split) {
  TypeTable& types = c.checker.types;
  const auto* functions = c[0].literal ? std::get_if<std::vector<FunctionRef>>(&c[0].literal->values) : nullptr;
  if (!functions || functions->size() != 1) {
    c.checker.sink->error("type-mismatch", c[0].span, "`{}` expects a function such as `@len` first, got {}",
                          row(c.builtin).name, types.text(c[0].type));
    return no_type;
  }
  size_t cells = 1;
  bool any_list = false, tuple = false;
  std::vector<bool> per_cell;
  size_t i = 1;
  for (bool wanted : split) {
    const Type& t = type_of(c, i);
    per_cell.push_back(wanted && is_list(t));
    if (per_cell.back()) {
      any_list = true;
      if (t.kind == TypeKind::list && types.is_wildcard(t.components[0])) return not_inferable(c, i);
      if (t.kind == TypeKind::tuple) {
        if (tuple && cells != t.components.size()) {
          c.checker.sink->error("type-mismatch", c[i].span, "`{}` expects lists of equally many cells, got {} and {}",
                                row(c.builtin).name, cells, t.components.size());
          return no_type;
        }
        tuple = true;
        cells = t.components.size();
      }
    }
    ++i;
  }
  std::vector<TypeId> results;
  for (size_t k = 0; k < cells; ++k) {
    std::vector<Argument> applied;
    for (size_t a = 1; a < c.size(); ++a) {
      Argument argument = c[a];
      if (per_cell[a - 1]) {
        const Type& t = type_of(c, a);
        argument.type = t.components[t.kind == TypeKind::tuple ? k : 0];
        argument.literal = nullptr;
        argument.variable = nullptr;
        if (types.is_wildcard(argument.type)) return not_inferable(c, a);
      }
      applied.push_back(argument);
    }
    TypeId result = c.checker.apply_function(c, (*functions)[0], applied);
    if (result == no_type) return no_type;
    results.push_back(result);
  }
  if (!any_list) return results[0];
  bool alike = std::all_of(results.begin(), results.end(), [&](TypeId t) { return t == results[0]; });
  return alike ? types.list(results[0]) : types.tuple(results);
}

TypeId each(const Call& c) { return each_form(c, {true}); }
TypeId each_item(const Call& c) { return each_form(c, {true, true}); }
TypeId each_left(const Call& c) { return each_form(c, {true, false}); }
TypeId each_right(const Call& c) { return each_form(c, {false, true}); }

TypeId match(const Call& c) {
  bool comparable =
      both(c, is_real) || c.checker.assignable(c[0].type, c[1].type) || c.checker.assignable(c[1].type, c[0].type);
  return comparable ? basic(c, B::boolean) : c.checker.mismatch(c, "two values of one type or two real numbers");
}

// --- Tables and text -----------------------------------------------------------------------------

// What follows "there is no x".
std::string others(std::string_view name, const std::vector<std::string_view>& known) {
  return alternatives(name, known, "it has");
}

TypeId load_table(const Call& c) {
  TypeTable& types = c.checker.types;
  if (!is_exactly(c, 0, B::sym)) return c.checker.mismatch(c, "the name of a table such as `` `orders:sym ``");
  if (!scalar(c, 0)) return no_type;
  const SchemaView* schema = c.checker.options.schema;
  const std::string* name = literal_text(c[0]);
  if (!schema || !name || schema->has_table(*name)) return types.table();
  auto report = c.checker.sink->error("unknown-table", c[0].span, "the schema has no table `{}`{}", *name,
                                      others(*name, schema->table_names()));
  if (!schema->origin().empty()) report.note({}, "{}", schema->origin());
  return no_type;
}

// The type of one column of what is known of the table: its type, `?` when nothing is known, no_type after a report.
TypeId column_type(const Call& c, const std::string& name) {
  TypeTable& types = c.checker.types;
  const SchemaView* schema = c.checker.options.schema;
  if (!c.table) return types.wildcard();
  std::vector<std::string_view> known;
  std::string where;
  if (c.table->kind == TableFact::loaded && schema) {
    SchemaView::Column column;
    if (schema->find_column(c.table->name, name, column)) {
      TypeId type = types.basic(column.type);
      return column.is_foreign_key ? types.enumeration(type) : type;
    }
    if (!schema->has_table(c.table->name)) return no_type;  // reported where it is loaded
    known = schema->column_names(c.table->name);
    where = fmt::format("table `{}`", c.table->name);
  } else if (c.table->kind == TableFact::built && c.table->columns) {
    const auto& names = std::get<std::vector<std::string>>(c.table->columns->values);
    const Type& cells = types[c.table->cells];
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == name)
        return cells.components[cells.kind == TypeKind::tuple && i < cells.components.size() ? i : 0];
      known.push_back(names[i]);
    }
    where = "the table";
  } else {
    return types.wildcard();
  }
  auto report = c.checker.sink->error("unknown-column", c[1].span, "{} has no column `{}`{}", where, name, others(name, known));
  if (c.table->kind == TableFact::loaded && !schema->origin().empty()) report.note({}, "{}", schema->origin());
  return no_type;
}

TypeId column_value(const Call& c) {
  TypeTable& types = c.checker.types;
  TypeKind kind = type_of(c, 0).kind;
  if ((kind != TypeKind::table && kind != TypeKind::ktable) || !is_exactly(c, 1, B::sym))
    return c.checker.mismatch(c, "a table and the name of a column such as `` `o_orderdate:sym ``");
  if (c.size() == 3 && !(is_exactly(c, 2, B::boolean) && c[2].literal))
    return c.checker.mismatch(c, "a table, the name of a column, and 1:bool or 0:bool");
  if (c.size() == 3 && !scalar(c, 2)) return no_type;
  const bool with_zeros = c.size() == 3 && std::get<std::vector<int64_t>>(c[2].literal->values)[0];
  if (!c[1].literal) return types.wildcard();
  const auto& names = std::get<std::vector<std::string>>(c[1].literal->values);
  const auto type_of_column = [&](const std::string& name) {
    const TypeId type = column_type(c, name);
    const bool refers = with_zeros && type != no_type && types[type].kind == TypeKind::enumeration;
    return refers ? types[type].components[0] : type;
  };
  if (names.size() == 1) return type_of_column(names[0]);
  std::vector<TypeId> cells;  // several names: a list of columns
  for (const std::string& name : names) {
    cells.push_back(type_of_column(name));
    if (cells.back() == no_type) return no_type;
  }
  bool alike = std::all_of(cells.begin(), cells.end(), [&](TypeId t) { return t == cells[0]; });
  return alike ? types.list(cells[0]) : types.tuple(cells);
}

TypeId column_valid(const Call& c) {
  if (type_of(c, 0).kind != TypeKind::table || !is_exactly(c, 1, B::sym))
    return c.checker.mismatch(c, "a table and the name of a column such as `` `o_orderdate:sym ``");
  if (!scalar(c, 1)) return no_type;
  const std::string* name = literal_text(c[1]);
  if (name && column_type(c, *name) == no_type) return no_type;
  return basic(c, B::boolean);
}

TypeId table(const Call& c) {
  TypeTable& types = c.checker.types;
  const Type& list = type_of(c, 1);
  bool good = is_exactly(c, 0, B::sym) && is_list(list);
  for (size_t i = 0; good && i < list.components.size(); ++i) {
    TypeKind kind = types[list.components[i]].kind;
    good = kind == TypeKind::basic || kind == TypeKind::enumeration || kind == TypeKind::wildcard;
  }
  if (!good) return c.checker.mismatch(c, "a sym vector of names and a list of vectors");
  if (!c[0].literal) return types.table();
  const auto& names = std::get<std::vector<std::string>>(c[0].literal->values);
  if (list.kind == TypeKind::tuple && names.size() != list.components.size()) {
    c.checker.sink
        ->error("column-count", c[0].span, "`table` expects as many names as columns, got {} name{} for {} columns",
                names.size(), names.size() == 1 ? "" : "s", list.components.size())
        .highlight(c[1].span);
    return no_type;
  }
  std::vector<std::string_view> sorted(names.begin(), names.end());
  std::sort(sorted.begin(), sorted.end());
  auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    c.checker.sink->error("column-count", c[0].span, "`table` expects different names for its columns, got `{}` twice",
                          *twice);
    return no_type;
  }
  return types.table();
}

TypeId ktable(const Call& c) {
  TypeTable& types = c.checker.types;
  return c[0].type == types.table() && c[1].type == types.table() ? types.ktable()
                                                                  : c.checker.mismatch(c, "two tables");
}

TypeId enumeration(const Call& c) {
  const Type& key = type_of(c, 0);
  bool basic_key =
      key.kind == TypeKind::basic || (key.kind == TypeKind::list && c.checker.types.is_basic(key.components[0]));
  if (!basic_key || c[0].type != c[1].type) return c.checker.mismatch(c, "keys and values of one type");
  return c.checker.types.enumeration(c[0].type);
}

TypeId dict(const Call& c) {
  TypeId function = c.checker.types.function();
  if (c[0].type == function || c[1].type == function) return c.checker.mismatch(c, "two values, no functions");
  return c.checker.types.dict(c[0].type, c[1].type);
}

TypeId keys(const Call& c) {
  TypeTable& types = c.checker.types;
  const Type& x = type_of(c, 0);
  switch (x.kind) {
    case TypeKind::table: return types.basic(B::sym);
    case TypeKind::ktable: return types.table();
    case TypeKind::enumeration: return types.is_wildcard(x.components[0]) ? not_inferable(c, 0) : x.components[0];
    case TypeKind::dict: {
      TypeId key = x.components[0];
      if (types.is_wildcard(key)) return not_inferable(c, 0);
      return types.is_basic(key) || is_list(types[key]) ? key : types.list(key);
    }
    default: return c.checker.mismatch(c, "a dict, table, ktable or enum");
  }
}

TypeId values(const Call& c) {
  TypeTable& types = c.checker.types;
  const Type& x = type_of(c, 0);
  switch (x.kind) {
    case TypeKind::table: return types.list(types.wildcard());
    case TypeKind::ktable: return types.table();
    case TypeKind::enumeration: return types.basic(B::i64);
    case TypeKind::dict: {
      TypeId value = x.components[1];
      return is_list(types[value]) ? value : types.list(value);
    }
    default: return c.checker.mismatch(c, "a dict, table, ktable or enum");
  }
}

TypeId fetch(const Call& c) {
  const Type& x = type_of(c, 0);
  if (x.kind != TypeKind::enumeration) return c.checker.mismatch(c, "an enum");
  return c.checker.types.is_wildcard(x.components[0]) ? not_inferable(c, 0) : x.components[0];
}

TypeId meta(const Call& c) {
  TypeKind kind = type_of(c, 0).kind;
  return kind == TypeKind::table || kind == TypeKind::ktable ? c.checker.types.table()
                                                             : c.checker.mismatch(c, "a table or ktable");
}

bool is_comparison(Builtin b) {
  TypeRule rule = row(b).type_rule;
  return rule == TypeRule::compare_order || rule == TypeRule::compare_equal;
}

// m predicates, then two vectors (m = 1) or two lists of k columns (m = 1 or k).
TypeId join_index(const Call& c) {
  TypeTable& types = c.checker.types;
  size_t m = c.size() - 2;
  std::vector<const FunctionRef*> predicates;
  for (size_t i = 0; i < m; ++i) {
    const auto* f = c[i].literal ? std::get_if<std::vector<FunctionRef>>(&c[i].literal->values) : nullptr;
    if (!f || f->size() != 1 || (*f)[0].kind != FunctionRef::builtin || !is_comparison((*f)[0].builtin_id)) {
      c.checker.sink->error(
          "type-mismatch", c[i].span, "`join_index` expects one of @eq @neq @lt @gt @leq @geq here, got {}",
          f && f->size() == 1 ? fmt::format("`@{}`", c.checker.program.text((*f)[0].name)) : types.text(c[i].type));
      return no_type;
    }
    predicates.push_back(&(*f)[0]);
  }
  auto cells = [&](size_t i) { return is_basic(c, i) ? std::vector<TypeId>{c[i].type} : type_of(c, i).components; };
  for (size_t i : {m, m + 1})
    if (!columns(c, i, [](B) { return true; })) {
      c.checker.sink->error("type-mismatch", c[i].span, "`join_index` expects vectors or lists of vectors, got {}",
                            types.text(c[i].type));
      return no_type;
    }
  std::vector<TypeId> left = cells(m), right = cells(m + 1);
  // list<T> stands for any number of columns of type T.
  bool left_open = type_of(c, m).kind == TypeKind::list, right_open = type_of(c, m + 1).kind == TypeKind::list;
  size_t k = std::max({left.size(), right.size(), size_t{1}});
  bool counts = (left.size() == right.size() || left.size() == 1 || right.size() == 1) &&
                (m == 1 || m == k || (left_open && right_open));
  if (!counts) {
    c.checker.sink
        ->error("column-count", c.span,
                "`join_index` expects equally many columns on both sides and one function for all or one for each, got "
                "{} function{} for {} and {} columns",
                m, m == 1 ? "" : "s", left.size(), right.size())
        .highlight(c[m].span)
        .highlight(c[m + 1].span);
    return no_type;
  }
  for (size_t i = 0; i < std::max(k, m); ++i) {
    Argument pair[2] = {c[m], c[m + 1]};
    pair[0].type = left[std::min(i, left.size() - 1)];
    pair[1].type = right[std::min(i, right.size() - 1)];
    if (types.is_wildcard(pair[0].type) || types.is_wildcard(pair[1].type)) continue;
    if (c.checker.apply_function(c, *predicates[std::min(i, m - 1)], pair) == no_type) return no_type;
  }
  return types.list(types.basic(B::i64));
}

TypeId load_csv(const Call& c) {
  if (!is_any(c, 0, is_text)) return c.checker.mismatch(c, "the name of a file");
  return scalar(c, 0) ? c.checker.types.table() : no_type;
}

TypeId print(const Call& c) {
  return c[0].type == c.checker.types.function() ? c.checker.mismatch(c, "a value") : basic(c, B::i64);
}

TypeId str(const Call& c) {
  return c[0].type == c.checker.types.function() ? c.checker.mismatch(c, "a value") : basic(c, B::str);
}

TypeId sub_string(const Call& c) {
  if (!is_any(c, 0, is_text) || !is_any(c, 1, is_integer))
    return c.checker.mismatch(c, "text, and a start and length such as `(1,2):i64`");
  if (c[1].literal && c[1].literal->size() != 2) {
    c.checker.sink->error("expected-scalar", c[1].span, "`sub_string` expects a start and a length, got {} value{}",
                          c[1].literal->size(), c[1].literal->size() == 1 ? "" : "s");
    return no_type;
  }
  return c[0].type;
}

// The result of the function that the first argument names, after its row in text_functions.def.
TypeId text_map(const Call& c) {
  const std::string* name = is_any(c, 0, is_text) ? literal_text(c[0]) : nullptr;
  if (!name) return c.checker.mismatch(c, "the name of a function such as `` `upper:sym `` and its arguments");
  TextFunctionId id;
  if (!find_text_function(*name, id)) {
    const std::string_view near = did_you_mean(*name, text_function_names());
    c.checker.sink->error("unknown-function", c[0].span, "expected a function of texts, got `{}`{}", *name,
                          near.empty() ? "" : fmt::format("; did you mean `{}`?", near));
    return no_type;
  }
  const TextFunctionRow& f = row(id);
  const auto takes = [&](size_t i) {
    if (!is_basic(c, i)) return false;
    const B type = basic_of(c, i);
    switch (f.letter(i - 1)) {
      case 't': return is_text(type) || type == B::character;
      case 'f': return is_float(type);
      default: return (is_integer(type) || is_wide(type) || is_calendar(type)) && type != B::character;
    }
  };
  bool fits = c.size() - 1 >= f.least() && c.size() - 1 <= f.most();
  for (size_t i = 1; fits && i < c.size(); ++i) fits = takes(i);
  if (!fits) {
    std::string wanted;
    for (char letter : f.arguments) {
      const char* word = letter == 't'   ? "text"
                         : letter == 'i' ? "integers"
                         : letter == 'f' ? "floats"
                         : letter == '/' ? "and if wanted"
                                         : "and more";
      wanted += fmt::format("{}{}", wanted.empty() ? "" : ", ", word);
    }
    return c.checker.mismatch(c, fmt::format("for `{}` {}", f.name, wanted));
  }
  if (f.result != B::str) return basic(c, f.result);
  for (size_t i = 1; i < c.size(); ++i)
    if (is_any(c, i, is_text)) return c[i].type;
  return basic(c, B::str);
}

TypeId text_valid(const Call& c) { return text_map(c) == no_type ? no_type : basic(c, B::boolean); }

TypeId text_join(const Call& c) {
  const Type& rows = type_of(c, 2);
  const bool lists = rows.kind == TypeKind::list && c.checker.types.is_basic(rows.components[0]) &&
                     is_integer(c.checker.types.basic_of(rows.components[0]));
  if (!is_any(c, 0, is_text) || !is_exactly(c, 1, B::boolean) || !lists || !is_any(c, 3, is_text))
    return c.checker.mismatch(c, "text, bool, a list of row numbers and a text between");
  return scalar(c, 3) ? c[0].type : no_type;
}

// The kernels first, then what the builtin takes that the call stands for (gpu_rules.cpp has the primitives).
TypeId gpu_library(const Call& c) {
  TypeTable& types = c.checker.types;
  size_t kernels = 0;
  while (kernels < c.size() && c[kernels].type == types.function()) ++kernels;
  auto data = c.arguments.subspan(kernels);
  auto as = [&](Builtin builtin, size_t wanted) {
    if (data.size() != wanted)
      return c.checker.mismatch(c, fmt::format("kernels and {} value{}", wanted, wanted == 1 ? "" : "s"));
    Call plain{c.checker, builtin, c.span, data, {}};
    return c.checker.apply(plain);
  };
  switch (c.builtin) {
    case Builtin::gpu_order_lib:
      if (data.size() == 2) return as(Builtin::order, 2);
      return as(Builtin::group, 1) == no_type ? no_type : basic(c, B::i64);
    case Builtin::gpu_top_lib: {
      if (kernels > 0 || !is_any(c, 2, is_integer))
        return c.checker.mismatch(c, "what `order` takes, and a number of rows");
      if (!scalar(c, 2)) return no_type;
      data = data.first(2);
      return as(Builtin::order, 2);
    }
    case Builtin::gpu_group_lib: return as(Builtin::group, 1);
    case Builtin::gpu_unique_lib: return as(Builtin::unique, 1);
    case Builtin::gpu_hash_member_lib: return as(Builtin::member, 2);
    case Builtin::gpu_like_lib:
    case Builtin::gpu_like_cache_lib: return as(Builtin::like, 2);
    default: break;  // joins: their predicates stand in the kernels
  }
  for (const Argument& a : data)
    if (!types.is_basic(a.type) && !is_list(types[a.type])) return c.checker.mismatch(c, "kernels and two values");
  return data.size() == 2 ? types.list(basic(c, B::i64)) : c.checker.mismatch(c, "kernels and two values");
}

TypeId gpu_probe(const Call& c) {
  const size_t columns = (c.size() - 1) / 2, right = c.size() / 2;
  if (!is_any(c, 0, is_integer) || (right > columns && !is_exactly(c, right, B::boolean)))
    return c.checker.mismatch(c, "a number, and as many columns of the left as of the right side, perhaps a mask between them");
  if (!scalar(c, 0)) return no_type;
  for (size_t k = 1; k <= columns; ++k) {
    const Argument pair[] = {c[k], c[k + right]};
    const Call plain{c.checker, Builtin::index_of, c.span, pair, {}};
    if (c.checker.apply(plain) == no_type) return no_type;
  }
  return basic(c, B::i64);
}

// The reductions that GPU.fold knows; nothing: the function is no literal, or another one.
std::optional<Builtin> fold_function(const Argument& a) {
  const auto* functions = a.literal ? std::get_if<std::vector<FunctionRef>>(&a.literal->values) : nullptr;
  if (!functions || functions->size() != 1 || functions->front().kind != FunctionRef::builtin) return {};
  const Builtin b = functions->front().builtin_id;
  const bool known = b == Builtin::len || b == Builtin::sum || b == Builtin::min || b == Builtin::max;
  return known ? std::optional(b) : std::nullopt;
}

TypeId gpu_fold(const Call& c) {
  const std::optional<Builtin> f = fold_function(c[1]);
  if (!is_basic(c, 0) || !f || !is_any(c, 2, is_integer))
    return c.checker.mismatch(c, "values, one of len, sum, min and max, a number, and columns");
  if (!scalar(c, 2)) return no_type;
  for (size_t k = 3; k < c.size(); ++k)
    if (!is_basic(c, k) || is_float(basic_of(c, k)) || basic_of(c, k) == B::complex)
      return c.checker.mismatch(c, "columns of integers, dates or texts behind its number");
  const Call plain{c.checker, *f, c.span, c.arguments.first(1), {}};
  return c.checker.apply(plain);
}

// A literal of i64 from 0 to `most`.
bool is_number_to(const Call& c, size_t k, int64_t most) {
  const auto* n = c[k].literal ? std::get_if<std::vector<int64_t>>(&c[k].literal->values) : nullptr;
  return is_exactly(c, k, B::i64) && n && n->size() == 1 && n->front() >= 0 && n->front() <= most;
}

TypeId gpu_order_key(const Call& c) {
  if (!is_any(c, 0, is_float) || !is_number_to(c, 1, 1)) return c.checker.mismatch(c, "f32 or f64, and 0 or 1 as i64");
  return basic(c, is_exactly(c, 0, B::f64) ? B::i64 : B::i32);
}

TypeId gpu_of_order_key(const Call& c) {
  if (!is_exactly(c, 0, B::i32) && !is_exactly(c, 0, B::i64)) return c.checker.mismatch(c, "i32 or i64");
  return basic(c, is_exactly(c, 0, B::i64) ? B::f64 : B::f32);
}

TypeId gpu_sum_part(const Call& c) {
  if (!is_exactly(c, 0, B::f64) || !is_number_to(c, 1, int64_t{sum_parts::last}))
    return c.checker.mismatch(c, "f64 and a number from 0 to 3 as i64");
  return basic(c, B::i64);
}

TypeId gpu_sum_of_parts(const Call& c) {
  for (size_t k = 0; k < c.size(); ++k)
    if (!is_exactly(c, k, B::i64)) return c.checker.mismatch(c, "four sums as i64");
  return basic(c, B::f64);
}

TypeId gpu_cells(const Call& c) {
  if ((!is_basic(c, 0) && type_of(c, 0).kind != TypeKind::list) || !is_exactly(c, 1, B::i64))
    return c.checker.mismatch(c, "a vector or a list, and the length of each cell as i64");
  return list_of(c, c[0].type);
}

TypeId gpu_pick(const Call& c) {
  if (!is_exactly(c, 0, B::i64)) return c.checker.mismatch(c, "numbers of cells as i64, and lists");
  for (size_t k = 1; k < c.size(); ++k)
    if (!is_list(type_of(c, k))) return c.checker.mismatch(c, "numbers of cells as i64, and lists");
  return list_of(c, c.checker.types.wildcard());
}

TypeId gpu_cell_begins(const Call& c) {
  if (!is_exactly(c, 0, B::i64)) return c.checker.mismatch(c, "the length of each cell as i64");
  return basic(c, B::i64);
}

TypeId gpu_cell_numbers(const Call& c) {
  if (!is_exactly(c, 0, B::i64) || (c.size() == 2 && !is_basic(c, 1)))
    return c.checker.mismatch(c, "the length of each cell as i64, and a vector");
  return basic(c, B::i64);
}

// Several results: TypeChecker::apply_primitive does it.
TypeId gpu_primitive(const Call&) { return no_type; }

using Rule = TypeId (*)(const Call&);
constexpr Rule rules[] = {
#define TYPE_RULE(name) name,
#include "frontend/type_rules.def"
#undef TYPE_RULE
};

}  // namespace

TypeId TypeChecker::apply(const Call& call) { return rules[static_cast<size_t>(row(call.builtin).type_rule)](call); }

bool TypeChecker::check_arity(const Call& c) {
  const BuiltinRow& r = row(c.builtin);
  if (c.size() >= r.min_arity && (r.max_arity == 255 || c.size() <= r.max_arity)) return true;
  std::string wanted = r.max_arity == 255 ? fmt::format("at least {}", r.min_arity) : fmt::format("{}", r.min_arity);
  sink->error("arity", c.span, "`{}` expects {} argument{}, got {}{}", r.name, wanted, r.min_arity == 1 ? "" : "s",
              c.size(), c.outer.empty() ? std::string() : fmt::format(", as `{}` applies it", c.outer));
  return false;
}

TypeId TypeChecker::mismatch(const Call& c, const std::string& expected) {
  std::string got;
  for (size_t i = 0; i < c.size(); ++i) {
    if (i > 0) got += i + 1 == c.size() ? " and " : ", ";
    got += types.text(c[i].type);
  }
  auto report = sink->error("type-mismatch", c.span, "`{}` expects {}, got {}{}", row(c.builtin).name, expected, got,
                            c.outer.empty() ? std::string() : fmt::format(", as `{}` applies it to cells", c.outer));
  const Variable* noted = nullptr;
  for (const Argument& a : c.arguments) report.highlight(a.span);
  for (const Argument& a : c.arguments) {
    if (!a.variable || a.variable == noted) continue;
    noted = a.variable;
    report.note(a.variable->span, "`{}` is {} by its declaration here", program.text(a.variable->name),
                types.text(a.type));
  }
  return no_type;
}

TypeId TypeChecker::apply_function(const Call& outer, const FunctionRef& f, std::span<const Argument> arguments) {
  std::string_view form = row(outer.builtin).name;
  if (f.kind == FunctionRef::builtin) {
    Call call{*this, f.builtin_id, f.span, arguments, form};
    if (!check_arity(call)) return no_type;
    TypeRule rule = row(f.builtin_id).type_rule;
    if (rule == TypeRule::load_table || rule == TypeRule::column_value ||
        rule == TypeRule::column_valid || rule == TypeRule::text_map ||
        rule == TypeRule::text_valid || rule == TypeRule::gpu_library ||
        rule == TypeRule::gpu_primitive) {
      sink->error("unsupported", f.span, "`{}` cannot be applied by `{}`: its type is known for a direct call only",
                  row(f.builtin_id).name, form);
      return no_type;
    }
    return apply(call);
  }
  std::vector<TypeId> results;
  if (!call_user(f.function, f.span, arguments, form, results)) return no_type;
  if (results.size() == 1) return results[0];
  sink->error("result-count", f.span, "`{}` expects a function of one result, got one of {}", form, results.size())
      .note(program.functions[f.function].name_span, "`{}` is declared here", program.text(f.name));
  return no_type;
}

bool TypeChecker::assignable(TypeId to, TypeId from) const {
  if (to == from || types.is_wildcard(to)) return true;
  const Type &t = types[to], &f = types[from];
  if (t.kind == TypeKind::list && f.kind == TypeKind::tuple)
    return std::all_of(f.components.begin(), f.components.end(),
                       [&](TypeId cell) { return assignable(t.components[0], cell); });
  if (t.kind != f.kind || t.components.size() != f.components.size() || t.components.empty()) return false;
  for (size_t i = 0; i < t.components.size(); ++i)
    if (!assignable(t.components[i], f.components[i])) return false;
  return true;
}

}  // namespace rndn::hir
