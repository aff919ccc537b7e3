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
  cells,         // as many cells as there are lengths
  pick,          // as many cells as argument 0 has elements
  cell_numbers,  // that of argument 1, or unknown
  fold,   // as many as the keys of GPU.fold have different values
  flip,
  dynamic_table,
  dynamic_vector,
};
// Threads of a statement (outliner: geometry.cpp).
enum class GeometryRule : uint8_t { none, result, uncompressed, argument0, argument1, each, list0, list_result };
// Bounds and order of the elements of a result, from those of the arguments (runtime/memory/bounds.cpp).
enum class BoundsRule : uint8_t {
  unknown,
  argument0,
  argument1,
  either01,
  either02,
  either12,     // in one of two arguments
  compress,     // in argument 1, as ordered as that
  index,        // in argument 0, ordered where both arguments are
  where,        // rows, ascending
  range,        // below argument 0, ascending
  count,        // a number of rows
  row_or_none,  // a row, or -1
  order_key,    // of a float, minus infinity to infinity
  year,
  month,
  day,
  plus,
  minus,
  mul,
  div,
  mod,
};
// Where a call runs by default.
enum class Device : uint8_t { gpu, library, cpu };
// What carries a call out that stands outside of kernels (runtime/plan/plan.cpp); none: the reference interpreter.
enum class Operator : uint8_t {
  none,
  load_table,
  column_value,
  column_valid,
  list,
  table,
  keys,
  values,
  fetch,
  len,
  index_list,
  order,
  group,
  unique,
  member,
  index_of,
  take,
  drop,
  append,
  tolist,
  scan,
  like,
  sub_string,
  text_map,
  join,
  each,  // `unique` of cells, exact sums of them
  exact_sum,
  raze,
  cells,
  pick,
  cell_begins,
  cell_numbers,
};
// Types of arguments for which kernels have code, as a set. Text is there as codes of a domain.
namespace kernel_types {
enum : uint8_t { no_code = 0, real = 1, wide = 2, complex = 4, codes = 8, every = real | wide | complex | codes };
}
namespace traits {
enum Trait : uint16_t {
  complete = 1,            // the result is there only after the kernel
  reduction = 2,           // a complete result that a following `raze` does not wait for
  fails = 4,               // some values of its arguments are an error
  fails_in_integers = 8,   // the same, where the result is an integer
  ordered = 16,            // it has an effect: it stays in the order of the program
  third_literal = 32,      // code in kernels is made for argument 2 (a unit of time, a message), which must be a literal there
  math = 64,               // a function of libdevice on the GPU
  math_of_floats = 128,    // the same, where the result is a float
  passes_numbers = 256,    // code in kernels is the same for every number: it may be a parameter (outliner::Options)
};
}

struct BuiltinRow {
  std::string_view name;
  uint8_t min_arity;
  uint8_t max_arity;  // 255: any number
  TypeRule type_rule;
  ShapeRule shape_rule;
  GeometryRule geometry;
  BoundsRule bounds_rule;
  Device device;
  Operator operation;
  uint8_t kernel;   // of kernel_types
  uint8_t sync_in;  // bit k: argument k is read whole: it must be complete before the call (kernel boundary on that edge)
  uint16_t traits;  // of Trait

  bool has(traits::Trait t) const { return (traits & t) != 0; }
};
const BuiltinRow& row(Builtin builtin);
// Is the builtin with results of that type a function of libdevice on the GPU?
bool needs_math(Builtin builtin, BasicType result);
// Can a call with results of that type be an error of the program?
bool can_fail(Builtin builtin, BasicType result);
// The operand that code in kernels is made for, so that it must be a literal there: a unit of time, a message. -1: none.
int literal_operand(Builtin builtin);
// each, each_item, each_left, each_right: their first operand is a function.
bool is_each(Builtin builtin);
size_t builtin_count();
// False when no builtin (or alias: enlist, index_assign) has that name. Those of the module GPU are found as "GPU.order_lib".
bool find_builtin(std::string_view name, Builtin& builtin);
std::vector<std::string_view> builtin_names();  // of the module Builtin
std::vector<std::string_view> gpu_names();      // of the module GPU, without "GPU."

}  // namespace rndn::hir
