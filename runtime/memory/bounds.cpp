// One pass over the statements with intervals, O(statements). What is not listed is unknown. Sums and differences are known only where they cannot
// leave the type of their result.
#include "runtime/memory/bounds.h"

#include <algorithm>

#include "frontend/builtins.h"

namespace rndn::runtime {

using hir::BasicType;
using hir::Builtin;

namespace {

Bounds limits(BasicType type) {
  switch (type) {
    case BasicType::boolean: return {0, 1};
    case BasicType::i8: return {INT8_MIN, INT8_MAX};
    case BasicType::i16: return {INT16_MIN, INT16_MAX};
    case BasicType::i64:
    case BasicType::time:
    case BasicType::dt: return {INT64_MIN / 4, INT64_MAX / 4};  // so that no sum of two overflows
    default: return {INT32_MIN, INT32_MAX};
  }
}

bool within(const Bounds& b, const Bounds& outer) { return b.known() && b.min >= outer.min && b.max <= outer.max; }
Bounds join(const Bounds& a, const Bounds& b) {
  if (!a.known() || !b.known()) return {};
  return {std::min(a.min, b.min), std::max(a.max, b.max)};
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

void set_bounds(const hir::Program& program, const hir::Function& f, uint64_t elements_of_geometry,
                const std::vector<ItemPtr>& inputs, const std::vector<ItemPtr>& outputs) {
  std::vector<Bounds> bounds(f.variables.size());
  std::vector<uint8_t> ascending(f.variables.size(), 0);  // as Item::ascending
  auto elements = [](const Item& v) -> const Item& { return v.kind == Item::cells ? *v.parts[0] : v; };
  for (size_t i = 0; i < inputs.size() && i < f.parameters.size(); ++i)
    bounds[index(f.parameters[i])] = elements(*inputs[i]).bounds;
  for (size_t i = 0; i < inputs.size() && i < f.parameters.size(); ++i)
    ascending[index(f.parameters[i])] = inputs[i]->kind == Item::vector && inputs[i]->ascending;
  uint64_t longest = std::max<uint64_t>(1, elements_of_geometry);
  for (const ItemPtr& v : inputs) longest = std::max(longest, elements(*v).capacity);
  auto of = [&](const hir::Operand& o) -> Bounds {
    if (o.kind == hir::Operand::variable) return bounds[o.id];
    if (o.kind != hir::Operand::literal) return {};
    const hir::Literal& literal = program.literals[o.literal_id()];
    const auto* values = std::get_if<std::vector<int64_t>>(&literal.values);
    if (!values || values->empty() || !program.types->is_basic(literal.type) ||
        hir::is_float(program.types->basic_of(literal.type)))
      return {};
    const auto [low, high] = std::minmax_element(values->begin(), values->end());
    return {*low, *high};
  };
  auto ascends = [&](const hir::Operand& o) { return o.kind == hir::Operand::variable && ascending[o.id] != 0; };
  auto element_of = [&](hir::TypeId type) {
    while (!program.types->is_basic(type) && !(*program.types)[type].components.empty())
      type = (*program.types)[type].components[0];
    return program.types->is_basic(type) ? program.types->basic_of(type) : BasicType::complex;
  };
  for (const hir::Statement& s : f.statements) {
    if (s.kind != hir::Statement::assign || s.targets.size() != 1 || s.targets[0].kind != hir::Target::variable)
      continue;
    const hir::Expression& e = f.expressions[s.value];
    Bounds result;
    bool up = false;
    const BasicType type = element_of(f.variables[s.targets[0].variable_id()].type);
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
      if (b == e.callee.builtin_id) {  // of vectors, not of cells
        if (b == Builtin::compress) up = ascends(a[1]);
        if (b == Builtin::index) up = ascends(a[0]) && ascends(a[1]);
        if (b == Builtin::where || b == Builtin::range) up = true;
        if (b == Builtin::date_year) up = ascends(a[0]);
      }
      switch (b) {
        case Builtin::compress: result = of(a[1]); break;
        case Builtin::index:
        case Builtin::reverse:
        case Builtin::raze: result = of(a[0]); break;
        case Builtin::vector: result = of(a[1]); break;
        case Builtin::append: result = join(of(a[0]), of(a[1])); break;
        case Builtin::index_a: result = join(of(a[0]), of(a[2])); break;
        case Builtin::range:
          if (const Bounds x = of(a[0]); x.known()) result = {0, std::max<int64_t>(0, x.max - 1)};
          break;
        case Builtin::where:
        case Builtin::len: result = {0, static_cast<int64_t>(longest)}; break;
        case Builtin::date_year:
          if (const Bounds x = of(a[0]); x.known() && a[0].kind == hir::Operand::variable &&
                                         element_of(f.variables[a[0].variable_id()].type) == BasicType::date)
            result = {year_of_day(x.min), year_of_day(x.max)};
          break;
        case Builtin::date_month: result = {1, 12}; break;
        case Builtin::date_day: result = {1, 31}; break;
        case Builtin::plus:
        case Builtin::minus: {
          const Bounds x = of(a[0]), y = of(a[1]), wide = limits(BasicType::i64);
          if (!hir::is_integer(type) || !within(x, wide) || !within(y, wide)) break;
          result = b == Builtin::plus ? Bounds{x.min + y.min, x.max + y.max} : Bounds{x.min - y.max, x.max - y.min};
          break;
        }
        default: break;
      }
    }
    ascending[s.targets[0].id] = up && !hir::is_text(type) && !hir::is_float(type);
    if (hir::is_text(type)) {
      bounds[s.targets[0].id] = result;
    } else if (type != BasicType::complex && !hir::is_float(type) && within(result, limits(type))) {
      bounds[s.targets[0].id] = result;
    }
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
