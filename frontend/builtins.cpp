// The rows of builtins.def and their look-up by name: a sorted index over the names, made at compile time.
#include "frontend/builtins.h"

#include <algorithm>
#include <array>

namespace rndn::hir {

namespace {

using namespace kernel_types;
using namespace traits;

constexpr BuiltinRow rows[] = {
#define BUILTIN(id, text, min, max, type, shape, geometry, bounds, device, operation, kernel, in, traits)              \
  {text,           min,                   max,    TypeRule::type, ShapeRule::shape, GeometryRule::geometry,            \
   BoundsRule::bounds, Device::device, Operator::operation, kernel, in, traits},
#include "frontend/builtins.def"
#undef BUILTIN
};
constexpr size_t count = std::size(rows);

constexpr auto by_name = [] {
  std::array<uint16_t, count> order{};
  for (size_t i = 0; i < count; ++i) order[i] = static_cast<uint16_t>(i);
  std::sort(order.begin(), order.end(), [](uint16_t a, uint16_t b) { return rows[a].name < rows[b].name; });
  return order;
}();
static_assert(
    [] {
      for (size_t i = 1; i < count; ++i)
        if (rows[by_name[i - 1]].name == rows[by_name[i]].name) return false;
      return true;
    }(),
    "two builtins of one name");

}  // namespace

const BuiltinRow& row(Builtin builtin) { return rows[static_cast<size_t>(builtin)]; }
bool needs_math(Builtin builtin, BasicType result) {
  const BuiltinRow& r = row(builtin);
  return r.has(traits::math) || (r.has(traits::math_of_floats) && is_float(result));
}
bool can_fail(Builtin builtin, BasicType result) {
  const BuiltinRow& r = row(builtin);
  return r.has(traits::fails) || (r.has(traits::fails_in_integers) && (is_integer(result) || is_wide(result)));
}
int literal_operand(Builtin builtin) { return row(builtin).has(traits::third_literal) ? 2 : -1; }
bool is_each(Builtin builtin) { return row(builtin).geometry == GeometryRule::each; }
size_t builtin_count() { return count; }

bool find_builtin(std::string_view name, Builtin& builtin) {
  if (name == "enlist") return builtin = Builtin::list, true;
  if (name == "index_assign") return builtin = Builtin::index_a, true;
  auto at = std::lower_bound(by_name.begin(), by_name.end(), name,
                             [](uint16_t row, std::string_view word) { return rows[row].name < word; });
  if (at == by_name.end() || rows[*at].name != name) return false;
  builtin = static_cast<Builtin>(*at);
  return true;
}

constexpr std::string_view gpu_prefix = "GPU.";

std::vector<std::string_view> builtin_names() {
  std::vector<std::string_view> names;
  names.reserve(count);
  for (uint16_t i : by_name)
    if (!rows[i].name.starts_with(gpu_prefix)) names.push_back(rows[i].name);
  return names;
}

std::vector<std::string_view> gpu_names() {
  std::vector<std::string_view> names;
  for (uint16_t i : by_name)
    if (rows[i].name.starts_with(gpu_prefix)) names.push_back(rows[i].name.substr(gpu_prefix.size()));
  return names;
}

}  // namespace rndn::hir
