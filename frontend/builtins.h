// The builtins of HorseIR as data: every pass reads builtins.def, none lists builtins by itself.
//
// Builtin::x is the builtin `x`; the words that C++ reserves get an underscore: and_, or_, not_, xor_, enum_.
#pragma once
#include <cstdint>
#include <string_view>

#include "frontend/ir.h"

namespace rndn::hir {

enum class Builtin : uint16_t {
#define BUILTIN(name, ...) name,
#include "frontend/builtins.def"
#undef BUILTIN
};

// How the result types follow from the argument types (type_rules.cpp has one function per rule).
enum class TypeRule : uint8_t {
#define TYPE_RULE(name) name,
#include "frontend/type_rules.def"
#undef TYPE_RULE
};
// Shape of the result (docs/horseir.md, "Shapes"; the outliner has one function per rule).
enum class ShapeRule : uint8_t {
  none,  // nothing to say: void, or unknown
  argument0,
  argument1,
  argument2,        // the shape of that argument
  broadcast,        // binary element-wise
  scalar,           // Const 1
  compress,         // Comp(mask, n)
  where,            // Comp(mask, n) of the mask itself
  new_compression,  // unique: Comp(new mask, n)
  count0,           // vector of a length given by argument 0: range, vector, randk
  take,
  drop,
  append,
  replicate,
  index,
  index_a,
  order,
  group,
  list,
  tolist,
  raze,
  each,
  each_item,
  each_left,
  each_right,
  keys,
  values,
  fetch,
  load_table,
  column_value,
  table,
  ktable,
  dict,
  enumeration,
  join_index,
  member,
  probe,  // that of the first column of the right side
  flip,
  dynamic_table,
  dynamic_vector,
};
// Threads of a statement (outliner: geometry.cpp).
enum class GeometryRule : uint8_t { none, result, uncompressed, argument0, argument1, each, list0, list_result };
// Where a call runs by default.
enum class Device : uint8_t { gpu, library, cpu };

struct BuiltinRow {
  std::string_view name;
  uint8_t min_arity;
  uint8_t max_arity;  // 255: any number
  TypeRule type_rule;
  ShapeRule shape_rule;
  GeometryRule geometry;
  Device device;
  uint8_t sync_in;  // bit k: argument k must be complete before the call (kernel boundary on that edge)
  bool sync_out;    // the result is complete only after the kernel
  bool reduction;   // sync_out of a reduction: a following raze is not synchronised
};
const BuiltinRow& row(Builtin builtin);
// Is the builtin with results of that type a function of libdevice on the GPU? Those that make floats of numbers element by element, apart from sqrt and
// recip, and the remainder of floats.
bool needs_math(Builtin builtin, BasicType result);
// The operand that code in kernels is made for, so that it must be a literal there: a unit of time, a message. -1: none.
constexpr int literal_operand(Builtin builtin) {
  return builtin == Builtin::datetime_add || builtin == Builtin::datetime_sub || builtin == Builtin::require ? 2 : -1;
}
size_t builtin_count();
// False when no builtin (or alias: enlist, index_assign) has that name. Those of the module GPU are found as "GPU.order_lib".
bool find_builtin(std::string_view name, Builtin& builtin);
std::vector<std::string_view> builtin_names();  // of the module Builtin
std::vector<std::string_view> gpu_names();      // of the module GPU, without "GPU."

}  // namespace rndn::hir
