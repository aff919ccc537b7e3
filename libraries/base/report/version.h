// The version that every program's --version prints.
#pragma once
#include <string_view>

namespace rndn {
std::string_view version();  // such as "0.1.0"
std::string_view commit();   // of the checkout that was configured, abbreviated; "unknown" outside one
}  // namespace rndn
