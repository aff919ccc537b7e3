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

// How the result types follow from the argument types (check_types.cpp has one function per rule).
enum class TypeRule : uint8_t {
  real_same, neg, complex_same, real_to_float, real_to_i16, pi, bool_unary, date_of, date_year_month, date_day,
  time_of, time_hour_minute, time_second, time_mill, compare_order, compare_equal, plus, minus, numeric_binary,
  real_binary, real_binary_to_float, bool_binary, datetime_diff, datetime_shift, unique, range, fact, rand, randk,
  flip, basic_same, where, group, append, replicate, like, compress, index_of, take, order, member, len, sum, minimum,
  index, index_a, list, raze, tolist, each, each_item, each_left, each_right, match, load_table, column_value, table,
  ktable, enumeration, dict, keys, values, fetch, meta, join_index, load_csv, print, str, sub_string,
};
// Shape of the result (horseir.md 5.3; outliner/shapes.cpp has one function per rule).
enum class ShapeRule : uint8_t {
  none,            // nothing to say: void, or unknown
  argument0, argument1, argument2,  // the shape of that argument
  broadcast,       // binary element-wise, table 5.2
  scalar,          // Const 1
  compress,        // Comp(mask, n)
  where,           // Comp(mask, n) of the mask itself
  new_compression, // unique: Comp(new mask, n)
  count0,          // vector of a length given by argument 0: range, vector, randk
  take, drop, append, replicate, index, index_a, order, group, list, tolist, raze,
  each, each_item, each_left, each_right,
  keys, values, fetch, load_table, column_value, table, ktable, dict, enumeration, join_index, member, flip, dynamic_table,
};
// Threads of a statement (horseir.md 5.5).
enum class GeometryRule : uint8_t { none, result, uncompressed, argument0, argument1, each, list0, list_result };
// Where a call runs by default.
enum class Device : uint8_t { gpu, library, cpu };

struct BuiltinRow {
  std::string_view name;
  uint8_t min_arity;
  uint8_t max_arity;       // 255: any number
  TypeRule type_rule;
  ShapeRule shape_rule;
  GeometryRule geometry;
  Device device;
  uint8_t sync_in;         // bit k: argument k must be complete before the call (kernel boundary on that edge)
  bool sync_out;           // the result is complete only after the kernel
  bool reduction;          // sync_out of a reduction: a following raze is not synchronised
};
const BuiltinRow& row(Builtin builtin);
size_t builtin_count();
// False when no builtin (or alias: enlist, index_assign) has that name.
bool find_builtin(std::string_view name, Builtin& builtin);
std::vector<std::string_view> builtin_names();

}  // namespace rndn::hir
