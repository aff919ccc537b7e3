// Decompression of buffers whose size is known. Private to this folder.
//
// Snappy is in snappy.h; LZ4's frames (its frame format, version 1.6) are read here; ZSTD by the system's
// libzstd.so.1, which is opened when it is first needed.
#pragma once
#include <cstddef>
#include <span>

namespace rndn::files {

// Null: `to` is filled; else what is wrong.
const char* decompress_lz4_frame(std::span<const std::byte> from, std::span<std::byte> to);
const char* decompress_zstd(std::span<const std::byte> from, std::span<std::byte> to);

}  // namespace rndn::files
