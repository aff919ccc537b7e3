// Decompression of Snappy's raw format (google/snappy, format_description.txt), without a frame.
#pragma once
#include <cstddef>
#include <span>

namespace rndn::files {

// Fills `to`, which is as long as the text says it is; false where the bytes are damaged. Up to
// `snappy_slack` bytes behind either span are read, and behind `to` written.
inline constexpr size_t snappy_slack = 64;
bool decompress_snappy(std::span<const std::byte> from, std::span<std::byte> to);

}  // namespace rndn::files
