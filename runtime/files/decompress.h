// Decompression of buffers whose size is known. Private to this folder.
//
// Snappy is in snappy.h; LZ4's frames (its frame format, version 1.6) are read here; ZSTD by the system's
// libzstd.so.1, which is opened when it is first needed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace rndn::files {

// More bytes than so many times its size come out of no buffer: a size beyond it is damaged, and nothing
// is allocated for it. A byte of LZ4's lengths stands for at most 255 (its block format); a block of zstd
// has at most 128 KB and takes at least 4 bytes (RFC 8878, 3.1.1.2).
constexpr uint64_t most_by_lz4 = 255, most_by_zstd = (128 * 1024) / 4;

// Null: `to` is filled; else what is wrong.
const char* decompress_lz4_frame(std::span<const std::byte> from, std::span<std::byte> to);
const char* decompress_zstd(std::span<const std::byte> from, std::span<std::byte> to);

}  // namespace rndn::files
