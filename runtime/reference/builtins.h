// Private: what the files of the reference interpreter share. One function per builtin, registered by name in a table
// per file.
#pragma once
#include <cmath>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/reference/reference.h"

namespace rndn::reference {

struct Context {
  const hir::Program* program = nullptr;  // for user functions among function literals; may be null
  const Tables& tables;
  std::string* printed = nullptr;
  const hir::BasicType* expected =
      nullptr;  // type of the result: widens an accumulator (sum, avg), types an empty raze, reads a file's column
  RunState* state = nullptr;  // never null in a builtin
};

using Arguments = std::span<const Value>;
using BuiltinFunction = Result<Value> (*)(Context&, Arguments);

struct BuiltinEntry {
  std::string_view name;
  BuiltinFunction function;
};

// One table per file.
std::span<const BuiltinEntry> elementwise_builtins();  // elementwise.cpp
std::span<const BuiltinEntry> selection_builtins();    // selection.cpp
std::span<const BuiltinEntry> reduction_builtins();    // reductions.cpp
std::span<const BuiltinEntry> relational_builtins();   // relational.cpp
std::span<const BuiltinEntry> text_builtins();         // text.cpp
std::span<const BuiltinEntry> text_call_builtins();    // text_calls.cpp
std::span<const BuiltinEntry> list_builtins();         // lists.cpp
std::span<const BuiltinEntry> database_builtins();     // database.cpp
std::span<const BuiltinEntry> gpu_library_builtins();  // gpu_library.cpp

// null when the builtin has no meaning here.
BuiltinFunction find_function(hir::Builtin builtin);

// One builtin within the bounds of the run's state (interpreter.cpp).
Result<Value> invoke(Context& context, hir::Builtin builtin, Arguments arguments);
// An error when the run has no step left, or its work is cancelled; takes one.
Result<void> take_step(RunState& state);

// Applies a builtin or a user function with one result (interpreter.cpp).
Result<Value> apply(Context& context, const hir::FunctionRef& function, std::vector<Value> arguments);

// A column of load_csv with its fields read as that type.
Result<Value> as_type(const Value& column, hir::BasicType type);

// --- Elements
// ------------------------------------------------------------------------------------------------------------------

// Calls f with a value of the C++ type that stores `type` (bool: uint8_t). Not for text and complex.
template <class F>
auto with_type(hir::BasicType type, F&& f) {
  CHECK(hir::is_ordered_number(type) || hir::is_calendar(type), "elements of {}", hir::basic_type_name(type));
  return hir::with_stored(type, [&]<class T>() {
    using Number = std::conditional_t<std::is_arithmetic_v<T>, T, int32_t>;
    return f(std::conditional_t<std::is_same_v<Number, uint64_t>, int64_t, Number>{});
  });
}

// One element converted as check_cast and implicit conversions do: integers wrap, floats to integers truncate and
// saturate (NaN: 0), anything to bool is `!= 0`.
template <class To, class From>
To convert(From x) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (std::isnan(x)) return 0;
    double low = static_cast<double>(std::numeric_limits<To>::min()),
           high = static_cast<double>(std::numeric_limits<To>::max());
    if (static_cast<double>(x) <= low) return std::numeric_limits<To>::min();
    if (static_cast<double>(x) >= high) return std::numeric_limits<To>::max();
    return static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

// Of a value that grows by pieces of any size: called before each with its bytes, looks whether the
// work may go on and has room for all of them. Charges nothing.
class GrowthTicker {
 public:
  void operator()(uint64_t bytes) {
    if (bytes < left_) [[likely]] {
      left_ -= bytes;
      return;
    }
    grown_ += step - left_ + bytes;
    left_ = step;
    throw_if_cancelled();
    expect_memory(grown_);
  }

 private:
  static constexpr uint64_t step = uint64_t{1} << 20;
  uint64_t grown_ = 0, left_ = step;
};

// `count` texts, text(i) each.
template <class Text>
Value make_texts(hir::BasicType type, uint64_t count, Text&& text) {
  expect_memory(count * sizeof(std::string));
  std::vector<std::string> texts;
  texts.reserve(count);
  GrowthTicker grown;
  for (uint64_t i = 0; i < count; ++i) {
    const std::string_view made = text(i);
    grown(sizeof(std::string) + made.size());
    texts.emplace_back(made);
  }
  return vector_of_texts(type, std::move(texts));
}

// The elements of a vector that is neither text nor complex, converted to T.
template <class T>
std::vector<T> elements(const Value& v) {
  return with_type(v.type, [&](auto from) {
    using From = decltype(from);
    expect_memory(v.size * sizeof(T));
    std::vector<T> out(v.size);
    const From* in = v.as<From>();
    for (uint64_t i = 0; i < v.size; ++i) out[i] = convert<T>(in[i]);
    return out;
  });
}

// The elements of a vector of numbers, as complex ones.
inline std::vector<std::complex<double>> complexes(const Value& v) {
  if (v.type == hir::BasicType::complex) return {v.as<std::complex<double>>(), v.as<std::complex<double>>() + v.size};
  std::vector<double> real = elements<double>(v);
  return {real.begin(), real.end()};
}

template <class T>
Value make(hir::BasicType type, const std::vector<T>& elements) {
  return vector_of<T>(type, std::span<const T>(elements));
}
Value make_bool(const std::vector<uint8_t>& elements);
Value scalar_i64(int64_t x);

// The rows x[index[i]] of a vector or enumeration; indexes must be in range.
Value gather(const Value& x, const std::vector<int64_t>& rows);
// The values that an enumeration stands for; an error when one is not among its keys, or the keys are no vector.
Result<Value> enumerated_values(std::string_view function, const Value& enumeration);
// A vector of `type` without elements.
Value empty_vector(hir::BasicType type);
// A number that is one element of an Integer vector.
Result<int64_t> integer_scalar(std::string_view function, const Value& v);
// "f64[12]", "list[3]": for messages.
std::string describe(const Value& v);

// --- Keys (keys.cpp): equality and order of elements, whatever their type
// ---------------------------------------------------------

// Three-way comparison of a[i] and b[j]: numbers after conversion to the widest type, NaN equal to itself and above
// everything; texts by bytes; calendar values by their storage.
int compare_elements(const Value& a, uint64_t i, const Value& b, uint64_t j);
// One string per row, equal exactly when the rows are equal in every column. `as` gives the type in which each column
// is compared. NaN rows: with `nan_equal`, all NaN are one key; without, `*has_nan` marks rows that equal nothing.
std::vector<std::string> row_keys(std::span<const Value> columns, std::span<const hir::BasicType> as,
                                  std::vector<uint8_t>* has_nan);
// The columns of a vector (itself) or a list of vectors of one length.
Result<std::vector<Value>> key_columns(std::string_view function, const Value& v);

}  // namespace rndn::reference
