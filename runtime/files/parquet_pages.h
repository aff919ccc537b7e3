// The values of a column chunk of a Parquet file, batch by batch. Private to this folder.
//
//   decode_chunk(bytes, leaf, codec, first, rows, sink)     // sink sees all rows once, in order
//
// Pages of both versions, whose values lie side by side (PLAIN), by their first bytes, their second,
// .. (BYTE_STREAM_SPLIT), are numbers of values in the chunk's dictionary (RLE_DICTIONARY), or are
// booleans in runs (RLE); of columns that are not nested. All other pages are refused: another
// reader takes them. Bytes are not trusted: whatever they are, nothing beyond them is used. Cost:
// about 1 ns per coded value, copies of plain ones, and what decompression costs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/files/file_bytes.h"
#include "runtime/files/parquet_footer.h"

namespace rndn::files {

// Rows of a batch. Values are there for those that are not missing, and for no others.
struct BatchRows {
  uint64_t first;  // row of the column
  uint32_t rows, present;
  const uint8_t* valid;  // 1 or 0 per row; null: all are there
};
inline constexpr uint32_t batch_rows = 4096;  // at most

// What becomes of the values; false: they are damaged, or not such as it takes.
class PageSink {
 public:
  virtual ~PageSink() = default;
  // `count` plain values, before all that are coded.
  virtual bool dictionary(std::span<const std::byte> values, uint64_t count) = 0;
  // Those of `page` from number `at` on; 0 begins another page.
  virtual bool plain(const BatchRows& rows, std::span<const std::byte> page, uint64_t at) = 0;
  // Numbers below the dictionary's `count`.
  virtual bool coded(const BatchRows& rows, const uint32_t* codes) = 0;
};

// How a chunk's bytes are to be read.
struct ChunkForm {
  Physical type;
  uint32_t length;  // bytes of a value of type `fixed`
  bool may_miss;
  int64_t codec;
};
// `bytes` has buffer_slack behind it; `scratch` is for what is decompressed. Null: all rows were
// given to the sink; else what is wrong.
const char* decode_chunk(std::span<const std::byte> bytes, const ChunkForm& form, uint64_t first,
                         uint64_t rows, Buffer& scratch, PageSink& sink);

}  // namespace rndn::files
