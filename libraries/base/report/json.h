// Text inside JSON. What the programs write has its strings from here, since bytes of names need not
// be UTF-8.
#pragma once
#include <string>
#include <string_view>

namespace rndn {

// With quotes; a byte that belongs to no UTF-8 sequence becomes U+FFFD.
std::string json_string(std::string_view s);

}  // namespace rndn
