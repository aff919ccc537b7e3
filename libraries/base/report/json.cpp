#include "libraries/base/report/json.h"

#include <fmt/format.h>

#include "libraries/base/report/utf8.h"

namespace rndn {

std::string json_string(std::string_view s) {
  std::string out = "\"";
  for (size_t i = 0; i < s.size();) {
    size_t n = utf8_length(s.substr(i));
    char c = s[i];
    if (n == 0) {
      out += "\xef\xbf\xbd";
      ++i;
    } else if (n > 1) {
      out += s.substr(i, n);
      i += n;
    } else {
      ++i;
      if (c == '"' || c == '\\') {
        out += '\\';
        out += c;
      } else if (c == '\n') {
        out += "\\n";
      } else if (static_cast<unsigned char>(c) < 32) {
        out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
      } else {
        out += c;
      }
    }
  }
  return out + '"';
}

}  // namespace rndn
