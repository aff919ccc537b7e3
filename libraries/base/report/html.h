// Text inside HTML and SVG.
#pragma once
#include <string>
#include <string_view>

namespace rndn {

// The characters that have a meaning there, as entities; for element content and quoted attributes.
inline std::string html_escape(std::string_view s) {
  std::string out;
  for (char c : s) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

}  // namespace rndn
