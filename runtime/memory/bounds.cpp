// One pass over the statements with intervals, O(statements). What is not listed is unknown. Sums and differences are
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
  auto of = [&](size_t k) { return k < a.size() ? a[k].bounds : Bounds{}; };
  Bounds result;
  switch (builtin) {
    case Builtin::compress:
    case Builtin::require:
    case Builtin::vector: result = of(1); break;
    case Builtin::index:
    case Builtin::reverse:
    case Builtin::raze: result = of(0); break;
    case Builtin::append: result = join(of(0), of(1)); break;
    case Builtin::index_a:
    case Builtin::index_or: result = join(of(0), of(2)); break;
    case Builtin::select: result = join(of(1), of(2)); break;
    case Builtin::range:
      if (const Bounds x = of(0); x.known()) result = {0, x.max > 0 ? x.max - 1 : 0};
      break;
    case Builtin::gpu_probe: result = {-1, static_cast<int64_t>(longest)}; break;
    case Builtin::where:
    case Builtin::len: result = {0, static_cast<int64_t>(longest)}; break;
    case Builtin::date_year:
      if (const Bounds x = of(0); x.known() && a[0].type == BasicType::date)
        result = {year_of_day(x.min), year_of_day(x.max)};
      break;
    case Builtin::date_month: result = {1, 12}; break;
    case Builtin::date_day: result = {1, 31}; break;
    case Builtin::plus:
      if (hir::is_integer(type)) result = sum(of(0), of(1));
      break;
    case Builtin::minus:
      if (hir::is_integer(type)) result = difference(of(0), of(1));
      if (result.known() && a[0].type == BasicType::minute) result = {result.min / 60, result.max / 60};  // of seconds
      break;
    default: break;
  }
  if (hir::is_text(type)) return result;  // of codes
  return within(result, limits(type)) ? result : Bounds{};
}

void set_bounds(const hir::Program& program, const hir::Function& f, uint64_t elements_of_geometry,
                const std::vector<ItemPtr>& inputs, const std::vector<ItemPtr>& outputs) {
  std::vector<Bounds> bounds(f.variables.size());
  std::vector<uint8_t> ascending(f.variables.size(), 0);  // as Item::ascending
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
    bounds[index(v)] = stored(elements(*inputs[i]).bounds, type_of(v));
    ascending[index(v)] = inputs[i]->kind == Item::vector && inputs[i]->ascending;
  }
  uint64_t longest = std::max<uint64_t>(1, elements_of_geometry);
  for (const ItemPtr& v : inputs) longest = std::max(longest, elements(*v).capacity);
  auto interval = [&](const hir::Operand& o) -> Interval {
    if (o.kind == hir::Operand::variable) return {type_of(o.variable_id()), bounds[o.id]};
    if (o.kind != hir::Operand::literal) return {BasicType::complex, {}};
    const hir::Literal& literal = program.literals[o.literal_id()];
    const BasicType type = element_of(literal.type);
    const auto* values = std::get_if<std::vector<int64_t>>(&literal.values);
    if (!values || values->empty() || hir::is_float(type)) return {type, {}};
    const auto [low, high] = std::minmax_element(values->begin(), values->end());
    return {type, stored({*low, *high}, type)};
  };
  auto of = [&](const hir::Operand& o) { return interval(o).bounds; };
  auto ascends = [&](const hir::Operand& o) { return o.kind == hir::Operand::variable && ascending[o.id] != 0; };
  for (const hir::Statement& s : f.statements) {
    if (s.kind != hir::Statement::assign || s.targets.size() != 1 || s.targets[0].kind != hir::Target::variable)
      continue;
    const hir::Expression& e = f.expressions[s.value];
    Bounds result;
    bool up = false;
    // The value is made in its own type, then converted to that of the variable.
    const BasicType type = type_of(s.targets[0].variable_id()),
                    own = e.types.size() == 1 ? element_of(e.types[0]) : BasicType::complex;
    if (e.kind == hir::Expression::operand) {
      result = of(e.operands[0]);
      up = ascends(e.operands[0]);
    } else if (e.kind == hir::Expression::call && e.callee.kind == hir::FunctionRef::builtin) {
      Builtin b = e.callee.builtin_id;
      std::span<const hir::Operand> a = e.operands;
      if ((b == Builtin::each || b == Builtin::each_item || b == Builtin::each_left || b == Builtin::each_right) &&
          a[0].kind == hir::Operand::literal) {
        const auto* functions = std::get_if<std::vector<hir::FunctionRef>>(&program.literals[a[0].literal_id()].values);
        if (!functions || functions->size() != 1 || functions->front().kind != hir::FunctionRef::builtin) continue;
        b = functions->front().builtin_id;
        a = a.subspan(1);
      }
      std::vector<Interval> arguments;
      for (const hir::Operand& o : a) arguments.push_back(interval(o));
      result = bounds_of_call(b, own, arguments, longest);
      if (b == e.callee.builtin_id) {  // of vectors, not of cells
        if (b == Builtin::compress) up = ascends(a[1]);
        if (b == Builtin::index) up = ascends(a[0]) && ascends(a[1]);
        if (b == Builtin::where || b == Builtin::range) up = true;
        if (b == Builtin::date_year) up = ascends(a[0]) && result.known();  // they wrap in 16 bits
      }
    }
    ascending[s.targets[0].id] = up && own == type && !hir::is_text(type) && !hir::is_float(type);
    bounds[s.targets[0].id] = stored(result, type);
  }
  for (const hir::Statement& s : f.statements)
    if (s.kind == hir::Statement::return_)
      for (size_t i = 0; i < outputs.size() && i < s.results.size(); ++i) {
        Item& v = outputs[i]->kind == Item::cells ? *outputs[i]->parts[0] : *outputs[i];
        v.bounds = of(s.results[i]);
        v.ascending = outputs[i]->kind == Item::vector && ascends(s.results[i]);
      }
}

}  // namespace rndn::runtime
