// The text of one field to one stored value.
#pragma once
#include <cstddef>
#include <string_view>

#include "frontend/types.h"

namespace rndn::data {

enum class ParseStatus : uint8_t { ok, malformed, out_of_range };

// Writes plain_width(type) bytes at `out` (aligned for the type). Blanks and tabs around numbers and calendar values are skipped. Any
// type but sym and str. Dates and times in the notation of HorseIR literals, stored as in frontend/calendar.h; bool: 0, 1, true,
// false; char: exactly one byte.
ParseStatus parse_value(hir::BasicType type, std::string_view text, std::byte* out);
// "an i32", "a date such as 1998-09-02", for messages.
std::string_view expectation(hir::BasicType type);

}  // namespace rndn::data
