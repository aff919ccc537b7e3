// One pass over the statements with intervals, O(statements). What is not listed is unknown. Arithmetic is
// computed in whole numbers and known only where they lie within the type that the elements are computed in; what is
// within a type is not changed by a conversion to it.
#include "runtime/memory/bounds.h"

#include <algorithm>
#include <limits>

#include "frontend/builtins.h"

namespace rndn::runtime {

using hir::BasicType;
using hir::Builtin;

namespace {

bool within(const Bounds& b, const Bounds& outer) { return b.known() && b.min >= outer.min && b.max <= outer.max; }
Bounds join(const Bounds& a, const Bounds& b) {
  if (!a.known() || !b.known()) return {};
  return {std::min(a.min, b.min), std::max(a.max, b.max)};
}

Bounds sum(const Bounds& x, const Bounds& y) {
  Bounds r;
  if (!x.known() || !y.known() || __builtin_add_overflow(x.min, y.min, &r.min) ||
      __builtin_add_overflow(x.max, y.max, &r.max))
    return {};
  return r;
}
Bounds difference(const Bounds& x, const Bounds& y) {
  Bounds r;
  if (!x.known() || !y.known() || __builtin_sub_overflow(x.min, y.max, &r.min) ||
      __builtin_sub_overflow(x.max, y.min, &r.max))
    return {};
  return r;
}

Bounds product(const Bounds& x, const Bounds& y) {
  if (!x.known() || !y.known()) return {};
  int64_t p[4];
  if (__builtin_mul_overflow(x.min, y.min, &p[0]) || __builtin_mul_overflow(x.min, y.max, &p[1]) ||
      __builtin_mul_overflow(x.max, y.min, &p[2]) || __builtin_mul_overflow(x.max, y.max, &p[3]))
    return {};
  return {*std::min_element(p, p + 4), *std::max_element(p, p + 4)};
}
// Cut towards zero. By a divisor of one sign, which leaves the corners as extremes.
Bounds quotient(const Bounds& x, const Bounds& y) {
  constexpr int64_t least = std::numeric_limits<int64_t>::min();
  if (!x.known() || !y.known() || (y.min <= 0 && y.max >= 0) || (x.min == least && y.max == -1)) return {};
  const int64_t q[] = {x.min / y.min, x.min / y.max, x.max / y.min, x.max / y.max};
  return {*std::min_element(q, q + 4), *std::max_element(q, q + 4)};
}
// With the sign of x, and nearer to 0 than the divisor and than x.
Bounds remainder(const Bounds& x, const Bounds& y) {
  if (!x.known() || !y.known() || y.min == std::numeric_limits<int64_t>::min()) return {};
  const int64_t below = std::max(y.max, -y.min) - 1;
  if (below < 0) return {};
  return {x.min < 0 ? std::max(x.min, -below) : 0, x.max > 0 ? std::min(x.max, below) : 0};
}

// Civil year of a day since 1970-01-01 (H. Hinnant, "chrono-compatible low-level date algorithms", civil_from_days).
int64_t year_of_day(int64_t day) {
  day += 719468;
  const int64_t era = (day >= 0 ? day : day - 146096) / 146097;
  const int64_t of_era = day - era * 146097;
  const int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  const int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
  return year + era * 400 + ((5 * of_year + 2) / 153 >= 10 ? 1 : 0);
}

}  // namespace

Bounds limits(BasicType type) {
  if (type == BasicType::boolean) return {0, 1};
  if (!hir::is_integer(type) && !hir::is_calendar(type)) return {};
  return hir::with_stored(type, []<class T>() -> Bounds {
    if constexpr (std::is_signed_v<T> && std::is_integral_v<T> && sizeof(T) <= 8)
      return {std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
    return {};
  });
}

Bounds bounds_of_call(Builtin builtin, BasicType type, std::span<const Interval> a, uint64_t longest) {
  using hir::BoundsRule;
  auto of = [&](size_t k) { return k < a.size() ? a[k].bounds : Bounds{}; };
  const int64_t rows = static_cast<int64_t>(longest);
  Bounds result;
  switch (hir::row(builtin).bounds_rule) {
    case BoundsRule::unknown: break;
    case BoundsRule::argument0:
    case BoundsRule::index: result = of(0); break;
    case BoundsRule::argument1:
    case BoundsRule::compress: result = of(1); break;
    case BoundsRule::either01: result = join(of(0), of(1)); break;
    case BoundsRule::either02: result = join(of(0), of(2)); break;
    case BoundsRule::either12: result = join(of(1), of(2)); break;
    case BoundsRule::range:
      if (const Bounds x = of(0); x.known()) result = {0, x.max > 0 ? x.max - 1 : 0};
      break;
    case BoundsRule::row_or_none: result = {-1, rows}; break;
    case BoundsRule::order_key: {
      const int64_t infinity = type == BasicType::i32 ? 0x7F800000 : 0x7FF0000000000000;  // its bits
      result = {-infinity - 1, infinity};
      break;
    }
    case BoundsRule::where:
    case BoundsRule::count: result = {0, rows}; break;
    case BoundsRule::year:
      if (const Bounds x = of(0); x.known() && a[0].type == BasicType::date)
        result = {year_of_day(x.min), year_of_day(x.max)};
      break;
    case BoundsRule::month: result = {1, 12}; break;
    case BoundsRule::day: result = {1, 31}; break;
    case BoundsRule::plus:
      if (hir::is_integer(type)) result = sum(of(0), of(1));
      break;
    case BoundsRule::mul:
      if (hir::is_integer(type)) result = product(of(0), of(1));
      break;
    case BoundsRule::div:
      if (hir::is_integer(type)) result = quotient(of(0), of(1));
      break;
    case BoundsRule::mod:
      if (hir::is_integer(type)) result = remainder(of(0), of(1));
      break;
    case BoundsRule::minus:
      if (hir::is_integer(type)) result = difference(of(0), of(1));
      if (result.known() && a[0].type == BasicType::minute) result = {result.min / 60, result.max / 60};  // of seconds
      break;
  }
  if (hir::is_text(type)) return result;  // of codes
  return within(result, limits(type)) ? result : Bounds{};
}

namespace {

// Does the result ascend where `ascends(k)` says whether argument k does?
template <class F>
bool ascends_after(hir::BoundsRule rule, F&& ascends, bool known) {
  using hir::BoundsRule;
  switch (rule) {
    case BoundsRule::compress: return ascends(1);
    case BoundsRule::index: return ascends(0) && ascends(1);
    case BoundsRule::where:
    case BoundsRule::range: return true;
    case BoundsRule::year: return ascends(0) && known;  // they wrap in 16 bits
    case BoundsRule::unknown:
    case BoundsRule::argument0:
    case BoundsRule::argument1:
    case BoundsRule::either01:
    case BoundsRule::either02:
    case BoundsRule::either12:
    case BoundsRule::count:
    case BoundsRule::row_or_none:
    case BoundsRule::order_key:
    case BoundsRule::month:
    case BoundsRule::day:
    case BoundsRule::plus:
    case BoundsRule::minus:
    case BoundsRule::mul:
    case BoundsRule::div:
    case BoundsRule::mod: return false;
  }
  return false;
}

// Of all entries, empty ones of extremes apart, which hold what nobody is to see.
Bounds bounds_of_fold(const hir::Program& program, const hir::Expression& e, const Bounds& values, uint64_t rows) {
  const auto* functions =
      e.operands[1].kind == hir::Operand::literal
          ? std::get_if<std::vector<hir::FunctionRef>>(&program.literals[e.operands[1].literal_id()].values)
          : nullptr;
  if (!functions || functions->size() != 1) return {};
  const auto n = static_cast<int64_t>(rows);
  if (functions->front().builtin_id == Builtin::len) return {0, n};
  Bounds r;
  if (functions->front().builtin_id != Builtin::sum || !values.known() ||
      __builtin_mul_overflow(std::min<int64_t>(0, values.min), n, &r.min) ||
      __builtin_mul_overflow(std::max<int64_t>(0, values.max), n, &r.max))
    return {};
  return r;
}

}  // namespace

std::vector<VariableBounds> bounds_in(const hir::Program& program, const hir::Function& f,
                                      uint64_t elements_of_geometry, const std::vector<ItemPtr>& inputs) {
  std::vector<VariableBounds> known(f.variables.size());
  auto elements = [](const Item& v) -> const Item& { return v.kind == Item::cells ? *v.parts[0] : v; };
  auto element_of = [&](hir::TypeId type) {
    while (!program.types->is_basic(type) && !(*program.types)[type].components.empty())
      type = (*program.types)[type].components[0];
    return program.types->is_basic(type) ? program.types->basic_of(type) : BasicType::complex;
  };
  auto type_of = [&](hir::VariableId v) { return element_of(f.variables[v].type); };
  // What is stored in elements of a type lies within it; else the bounds are of something else.
  auto stored = [](const Bounds& b, BasicType type) {
    return hir::is_text(type) || within(b, limits(type)) ? b : Bounds{};
  };
  for (size_t i = 0; i < inputs.size() && i < f.parameters.size(); ++i) {
    const hir::VariableId v = f.parameters[i];
    known[index(v)] = {stored(elements(*inputs[i]).bounds, type_of(v)),
                       inputs[i]->kind == Item::vector && inputs[i]->ascending};
  }
  uint64_t longest = std::max<uint64_t>(1, elements_of_geometry);
  for (const ItemPtr& v : inputs) longest = std::max(longest, elements(*v).capacity);
  auto interval = [&](const hir::Operand& o) -> Interval {
    if (o.kind == hir::Operand::variable) return {type_of(o.variable_id()), known[o.id].bounds};
    if (o.kind != hir::Operand::literal) return {BasicType::complex, {}};
    const hir::Literal& literal = program.literals[o.literal_id()];
    const BasicType type = element_of(literal.type);
    const auto* values = std::get_if<std::vector<int64_t>>(&literal.values);
    if (!values || values->empty() || hir::is_float(type)) return {type, {}};
    const auto [low, high] = std::minmax_element(values->begin(), values->end());
    return {type, stored({*low, *high}, type)};
  };
  auto of = [&](const hir::Operand& o) { return interval(o).bounds; };
  auto ascends = [&](const hir::Operand& o) { return o.kind == hir::Operand::variable && known[o.id].ascending; };
  for (const hir::Statement& s : f.statements) {
    if (s.kind != hir::Statement::assign || s.targets.size() != 1 || s.targets[0].kind != hir::Target::variable)
      continue;
    InlineVector<BasicType, 4> casts;  // outermost first
    hir::ExpressionId inner = s.value;
    for (; f.expressions[inner].kind == hir::Expression::cast; inner = f.expressions[inner].inner)
      casts.push_back(element_of(f.expressions[inner].cast_type));
    const hir::Expression& e = f.expressions[inner];
    Bounds result;
    bool up = false;
    // The value is made in its own type, then converted by casts and to the type of the variable.
    const BasicType type = type_of(s.targets[0].variable_id()),
                    own = e.types.size() == 1 ? element_of(e.types[0]) : BasicType::complex;
    if (e.kind == hir::Expression::operand) {
      result = of(e.operands[0]);
      up = ascends(e.operands[0]);
    } else if (e.kind == hir::Expression::call && e.callee.kind == hir::FunctionRef::builtin) {
      Builtin b = e.callee.builtin_id;
      std::span<const hir::Operand> a = e.operands;
      if (hir::is_each(b) && a[0].kind == hir::Operand::literal) {
        const auto* functions = std::get_if<std::vector<hir::FunctionRef>>(&program.literals[a[0].literal_id()].values);
        if (!functions || functions->size() != 1 || functions->front().kind != hir::FunctionRef::builtin) continue;
        b = functions->front().builtin_id;
        a = a.subspan(1);
      }
      std::vector<Interval> arguments;
      for (const hir::Operand& o : a) arguments.push_back(interval(o));
      // Rows of a look-up are those of its table.
      uint64_t rows = longest;
      if (b == Builtin::gpu_probe && a[1].kind == hir::Operand::variable)
        if (const auto p = std::find(f.parameters.begin(), f.parameters.end(), a[1].variable_id());
            p != f.parameters.end() && static_cast<size_t>(p - f.parameters.begin()) < inputs.size())
          rows = elements(*inputs[static_cast<size_t>(p - f.parameters.begin())]).capacity;
      result = b == Builtin::gpu_fold ? bounds_of_fold(program, e, arguments[0].bounds, elements_of_geometry)
                                      : bounds_of_call(b, own, arguments, rows);
      if (b == e.callee.builtin_id)  // of vectors, not of cells
        up = ascends_after(
            hir::row(b).bounds_rule, [&](size_t k) { return ascends(a[k]); }, result.known());
    }
    bool kept = own == type && casts.empty();  // no element can have changed
    if (!casts.empty()) {
      result = stored(result, own);
      for (size_t k = casts.size(); k-- > 0;) result = stored(result, casts[k]);
      kept = stored(result, type).known();
    }
    known[s.targets[0].id] = {stored(result, type), up && kept && !hir::is_text(type) && !hir::is_float(type)};
  }
  return known;
}

const std::vector<VariableBounds>& bounds_in(KeptBounds& kept, const hir::Program& program, const hir::Function& f,
                                             uint64_t elements_of_geometry, const std::vector<ItemPtr>& inputs) {
  bool is_same = !kept.found.empty() && kept.elements == elements_of_geometry && kept.arguments.size() == inputs.size();
  kept.arguments.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Item& elements = inputs[i]->kind == Item::cells ? *inputs[i]->parts[0] : *inputs[i];
    const KeptBounds::Argument now{elements.bounds, elements.capacity,
                                   inputs[i]->kind == Item::vector && inputs[i]->ascending};
    is_same = is_same && kept.arguments[i] == now;
    kept.arguments[i] = now;
  }
  if (!is_same) kept.found = bounds_in(program, f, elements_of_geometry, inputs);
  kept.elements = elements_of_geometry;
  return kept.found;
}

void set_bounds(const hir::Function& f, std::span<const VariableBounds> known, const std::vector<ItemPtr>& outputs) {
  for (const hir::Statement& s : f.statements)
    if (s.kind == hir::Statement::return_)
      for (size_t i = 0; i < outputs.size() && i < s.results.size(); ++i) {
        Item& v = outputs[i]->kind == Item::cells ? *outputs[i]->parts[0] : *outputs[i];
        if (s.results[i].kind != hir::Operand::variable) continue;
        v.bounds = known[s.results[i].id].bounds;
        v.ascending = outputs[i]->kind == Item::vector && known[s.results[i].id].ascending;
      }
}

}  // namespace rndn::runtime
