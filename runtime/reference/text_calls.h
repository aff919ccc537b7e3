// Calls of functions of texts over vectors: once per distinct combination of their arguments.
#pragma once
#include <span>

#include "frontend/text_functions.h"
#include "libraries/base/errors/result.h"
#include "runtime/data/value.h"
#include "runtime/text/text_functions.h"

namespace rndn::reference {

// Element i of a vector as argument number `k` of the function; it refers to the vector.
text::TextArgument text_argument(const hir::TextFunctionRow& row, size_t k, const data::Value& v,
                                 uint64_t i);
// A result as an element of `type`, which is not text.
template <class T>
T text_result(const text::TextResult& from) {
  if constexpr (std::is_floating_point_v<T>) return static_cast<T>(from.real);
  if constexpr (std::is_integral_v<T> || std::is_same_v<T, __int128>) return static_cast<T>(from.integer);
  return T{};
}
hir::BasicType text_result_type(const hir::TextFunctionRow& row, std::span<const data::Value> arguments);

// The function's values, zeros where it has none; with `validity`, where it has one. Arguments of
// one element repeat.
Result<data::Value> call_text_function(hir::TextFunctionId id, std::span<const data::Value> arguments,
                                       bool validity);
// The function that the first argument of `text_map` and `text_valid` names.
Result<hir::TextFunctionId> named_text_function(const data::Value& name);

}  // namespace rndn::reference
