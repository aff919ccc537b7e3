// Functions of one value or of few, which give or take text: the rows of
// frontend/text_functions.def.
//
//   TextFunction f(hir::TextFunctionId::upper);
//   TextArgument in{.text = "abc"};
//   TextResult out;
//   if (f({&in, 1}, out)) use(out.text);        // false: there is no value
//
// Whoever runs them calls them once per distinct value. Semantics are those of DuckDB 2.0.1. Texts
// are UTF-8; bytes that are none count as characters of one byte. Regular expressions are RE2's
// and are compiled once per object. An object is for one thread.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "frontend/text_functions.h"
#include "libraries/base/errors/result.h"

namespace rndn::text {

// What the row's letter says is set.
struct TextArgument {
  std::string_view text;
  __int128 integer = 0;
  double real = 0;
  bool is_single = false;  // real: an f32
};
struct TextResult {
  std::string text;
  __int128 integer = 0;  // also bool and date
  double real = 0;
};

// Days since 1970, and microseconds since then or since midnight, as SQL writes them.
std::string date_text(int64_t days);
std::string time_text(int64_t of_day);
std::string timestamp_text(int64_t micros);

// INTERVAL, of one number of 128 bits (frontend/sql/types.def).
struct IntervalParts {
  int32_t months, days;
  int64_t micros;
};
IntervalParts interval_parts(__int128 value);
std::string interval_text(__int128 value);

class Patterns;  // compiled regular expressions

class TextFunction {
 public:
  // An error of the world where the build has no RE2 and the function wants it.
  static Result<TextFunction> make(hir::TextFunctionId id);
  ~TextFunction();
  TextFunction(TextFunction&&) noexcept;
  bool operator()(std::span<const TextArgument> in, TextResult& out);

 private:
  explicit TextFunction(hir::TextFunctionId id);
  hir::TextFunctionId id_;
  std::unique_ptr<Patterns> patterns_;
};

}  // namespace rndn::text
