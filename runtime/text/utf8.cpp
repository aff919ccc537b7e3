// Case of characters, and which of them may be composed, by the tables of the C library
// (C.UTF-8, which every glibc from 2.35 on has built in).
#include "runtime/text/utf8.h"

#include <locale.h>
#include <wctype.h>

namespace rndn::text {
namespace {

locale_t unicode() {
  static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", static_cast<locale_t>(nullptr));
  return locale;
}

uint32_t mapped(uint32_t code, bool upper) {
  if (code < 0x80) {
    const uint32_t first = upper ? 'a' : 'A';
    return code >= first && code < first + 26 ? code ^ 0x20 : code;
  }
  if (upper && code == 0xdf) return 0x1e9e;  // capital sharp s, as the planner's engine maps it
  if (!unicode()) return code;
  return upper ? towupper_l(code, unicode()) : towlower_l(code, unicode());
}

}  // namespace

std::string to_case(std::string_view text, bool upper) {
  std::string out;
  out.reserve(text.size());
  for_characters(text, [&](std::string_view c) {
    const uint32_t code = code_point(c);
    if (c.size() == 1 && code >= 0x80)
      out += c;  // no character
    else
      append_code_point(out, mapped(code, upper));
  });
  return out;
}

bool may_compose(uint32_t code) {
  if (code < 0x300) return false;
  if ((code >= 0x1100 && code < 0x1200) || (code >= 0xa960 && code < 0xa980) || (code >= 0xd7b0 && code < 0xd800))
    return true;                                              // Hangul by parts
  if (code == 0x200d || code == 0x200c) return true;          // joiners
  if (code >= 0xfe00 && code <= 0xfe0f) return true;          // variation selectors
  if (code >= 0x1f1e6 && code <= 0x1f1ff) return true;        // halves of flags
  if (code >= 0x1f3fb && code <= 0x1f3ff) return true;        // tones of emoji
  if (code >= 0xe0000) return true;                           // tags
  return !unicode() || iswctype_l(code, wctype_l("combining", unicode()), unicode());
}

}  // namespace rndn::text
