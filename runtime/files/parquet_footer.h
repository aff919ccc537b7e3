// What a Parquet file says of itself: its columns and where their pages are (Apache Parquet,
// parquet.thrift; Thrift's compact protocol). Private to this folder.
//
//   std::optional<Footer> footer = read_footer(bytes);     // none: damaged
//
// Only what reading plain columns needs is kept. Nothing is believed: places and sizes are checked
// by who reads there.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rndn::files {

enum class Physical : uint8_t { boolean, int32, int64, int96, float_, double_, bytes, fixed };
enum class Encoding : uint8_t {
  plain = 0,
  plain_dictionary = 2,
  rle = 3,
  rle_dictionary = 8,
  byte_stream_split = 9
};
enum class Codec : uint8_t { none = 0, snappy = 1, zstd = 6 };
enum class PageKind : uint8_t { data = 0, index = 1, dictionary = 2, data_v2 = 3 };

// What is written in the file may be none of the values above.
struct SchemaElement {
  std::string name;
  std::optional<int64_t> type, converted;
  int64_t type_length = 0, repetition = 0, children = 0, scale = 0, precision = 0;
  // Of the logical type: which, and what it says; 0: none.
  int64_t logical = 0, bits = 0, unit = 0;
  bool is_signed = false, is_utc = false;
};
struct Chunk {
  std::string path;  // of the column
  int64_t type = -1, codec = -1, values = -1, uncompressed = -1, compressed = -1, data_at = -1;
  std::optional<int64_t> dictionary_at, nulls;
  // The bytes of a least and a greatest value, as a plain page has them: bounds, which need not be
  // values of the column. In the order of the column's logical type.
  std::optional<std::string> least, greatest;
  uint64_t encodings = 0;     // a bit each
  bool is_elsewhere = false;  // in another file, or encrypted
};
struct RowGroup {
  int64_t rows = -1;
  uint64_t first = 0;   // row of the file
  size_t number = 0;    // in the file
  std::vector<Chunk> chunks;
};
struct Footer {
  std::vector<SchemaElement> schema;  // the tree's nodes, each before its children
  std::vector<RowGroup> groups;
  int64_t rows = -1;
};
std::optional<Footer> read_footer(std::span<const std::byte> bytes);

struct PageHeader {
  int64_t kind = -1, uncompressed = -1, compressed = -1, values = -1, encoding = -1;
  int64_t levels = 0;  // bytes of definition levels before the values (v2)
  int64_t repeats = 0, level_encoding = 3;
  bool is_compressed = true;
  size_t bytes = 0;  // of the header itself
};
std::optional<PageHeader> read_page_header(std::span<const std::byte> bytes);

}  // namespace rndn::files
