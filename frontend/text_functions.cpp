// Rows of text_functions.def by id and by name.
#include "frontend/text_functions.h"

#include <algorithm>
#include <iterator>

namespace rndn::hir {
namespace {
constexpr TextFunctionRow text_rows[] = {
#define TEXT_FUNCTION(id, arguments, result, why) {#id, arguments, BasicType::result, why},
#include "frontend/text_functions.def"
#undef TEXT_FUNCTION
};
}  // namespace

size_t TextFunctionRow::least() const {
  return static_cast<size_t>(
      std::find_if(arguments.begin(), arguments.end(), [](char c) { return c == '/' || c == '+'; }) -
      arguments.begin());
}
size_t TextFunctionRow::most() const {
  if (arguments.back() == '+') return 255;
  return arguments.size() - (arguments.find('/') != arguments.npos);
}
char TextFunctionRow::letter(size_t argument) const {
  if (arguments.back() == '+') argument = std::min(argument, arguments.size() - 2);
  return arguments[argument + (argument >= arguments.find('/'))];
}

const TextFunctionRow& row(TextFunctionId id) { return text_rows[static_cast<size_t>(id)]; }

bool find_text_function(std::string_view name, TextFunctionId& id) {
  for (size_t i = 0; i < std::size(text_rows); ++i)
    if (text_rows[i].name == name) {
      id = static_cast<TextFunctionId>(i);
      return true;
    }
  return false;
}

std::vector<std::string_view> text_function_names() {
  std::vector<std::string_view> names;
  for (const TextFunctionRow& r : text_rows) names.push_back(r.name);
  return names;
}

}  // namespace rndn::hir
