// The text of one field to one stored value.
#pragma once
#include <cstddef>
#include <string_view>

#include "frontend/types.h"
#include "runtime/data/date_format.h"

namespace rndn::data {

enum class ParseStatus : uint8_t { ok, malformed, out_of_range };

// Writes plain_width(type) bytes at `out` (aligned for the type). Any type but sym and str. Blanks and tabs around
// numbers and calendar values are skipped.
//   numbers   as C writes them. A float is rounded as IEEE 754 says: what is too small is 0. What is too large is
//             out_of_range, and `out` holds the infinity of its sign.
//   bool      0, 1, true, false, t, f, yes, no, in capitals or not
//   char      exactly one byte
//   calendar  the notation of HorseIR literals, dates in `format`, stored as in frontend/calendar.h. A type takes what
//             less precise ones do: `second`, `time` and the time of `dt` need no seconds or fraction, `dt` no time. `dt`
//             has a T or a blank between date and time and may end in Z or an offset (+02, +0200, +02:00), which is taken
//             off: what is left is UTC. A time of day may have a minus, as one before midnight is printed.
ParseStatus parse_value(hir::BasicType type, std::string_view text, std::byte* out, DateFormat format = {});
// The same of a dt in ISO form, as microseconds since 1970 in an i64: up to nine digits of a fraction, those beyond the
// sixth cut off.
ParseStatus parse_timestamp(std::string_view text, std::byte* out);
// Whether a text that is a dt says where it is: Z, or an offset.
bool has_zone(std::string_view text);
// "an i32", "a date such as 1998-09-02", for messages.
std::string expectation(hir::BasicType type, DateFormat format = {});

// Whether nothing but blanks and tabs stands there: a missing value, where the type is not text.
bool is_blank(std::string_view text);

}  // namespace rndn::data
