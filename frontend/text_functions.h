// The functions of texts as data: what the type checker and whoever runs them read
// (text_functions.def).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/types.h"

namespace rndn::hir {

enum class TextFunctionId : uint8_t {
#define TEXT_FUNCTION(id, arguments, result, why) id,
#include "frontend/text_functions.def"
#undef TEXT_FUNCTION
};

struct TextFunctionRow {
  std::string_view name;
  std::string_view arguments;  // as text_functions.def tells
  BasicType result;
  std::string_view why;

  // How many arguments there may be: from `least()` to `most()`; the letter of each.
  size_t least() const;
  size_t most() const;
  char letter(size_t argument) const;
};
const TextFunctionRow& row(TextFunctionId id);
bool find_text_function(std::string_view name, TextFunctionId& id);
std::vector<std::string_view> text_function_names();

}  // namespace rndn::hir
