// Numbers of bytes as people write and read them: powers of 1024.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "libraries/base/errors/result.h"

namespace rndn {

// "1.5 GiB"
std::string size_text(uint64_t bytes);
// "512M", "4G", "1.5GiB", "1000000": bytes, or with K, M, G or T behind, also KB and KiB. At least 1.
// `what` names the number in the message (fault usage).
Result<uint64_t> parse_size(std::string_view text, std::string_view what);

}  // namespace rndn
