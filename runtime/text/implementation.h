// What the files of this folder share: the arguments and the result of a call, and one function
// per row of text_functions.def. Private.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "runtime/text/text_functions.h"

namespace rndn::text {

struct Call {
  std::span<const TextArgument> in;
  TextResult& out;
  Patterns& patterns;

  size_t size() const { return in.size(); }
  std::string_view text(size_t k) const { return in[k].text; }
  __int128 integer(size_t k) const { return in[k].integer; }
  int64_t number(size_t k) const;  // clipped to 64 bits
  bool give(std::string_view text) { return out.text.assign(text), true; }
  bool give(std::string&& text) { return out.text = std::move(text), true; }
  bool give_integer(__int128 value) { return out.integer = value, true; }
  bool give_real(double value) { return out.real = value, true; }
};

inline constexpr std::string_view day_names[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                          "Thursday", "Friday", "Saturday"};
inline constexpr std::string_view month_names[] = {"January", "February", "March",     "April",   "May",      "June",
                                            "July",    "August",   "September", "October", "November", "December"};

#define TEXT_FUNCTION(id, arguments, result, why) bool call_##id(Call& c);
#include "frontend/text_functions.def"
#undef TEXT_FUNCTION

}  // namespace rndn::text
