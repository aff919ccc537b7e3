// A delimited text file in memory (mapped, not read), cut into blocks of whole rows for parallel reading.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libraries/base/result.h"

namespace rndn::data {

struct TextFormat {
  char delimiter = '|';
  bool quoted = false;  // fields may be quoted, as RFC 4180 says
  bool header = false;  // the first row is no data
};

class TextFile {
 public:
  // Maps the file and finds its rows.
  static Result<std::unique_ptr<TextFile>> open(const std::string& path, const TextFormat& format, unsigned threads,
                                                size_t block_size = 4 << 20);
  ~TextFile();
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;

  // Rows [first_row, first_row + rows) are the text [begin, end). The header is row -1.
  struct Block {
    size_t begin = 0, end = 0;
    int64_t first_row = 0;
    int64_t rows = 0;
  };
  const std::string& path() const { return path_; }
  const TextFormat& format() const { return format_; }
  std::string_view text() const { return text_; }
  const std::vector<Block>& blocks() const { return blocks_; }
  uint64_t rows() const { return rows_; }

  // "data/lineitem.tbl:12:5" for an offset in the text.
  std::string describe(size_t offset) const;
  // Where the field stands; the file must have it.
  size_t offset_of(int64_t row, size_t column) const;

 private:
  TextFile() = default;
  void find_rows(unsigned threads, size_t block_size);

  std::string path_;
  TextFormat format_;
  std::string_view text_;
  std::vector<Block> blocks_;
  uint64_t rows_ = 0;
};

// Steps through the fields of rows from some row's start.
class FieldReader {
 public:
  FieldReader(std::string_view text, size_t at, const TextFormat& format)
      : begin_(text.data()), at_(text.data() + at), end_(text.data() + text.size()), format_(format) {}

  enum class After : uint8_t { delimiter, row };  // what ended the field
  struct Field {
    std::string_view text;
    size_t offset;  // of the field in the file, its quote included
    After after;
    bool broken_quote = false;  // no closing quote, text behind it, or a quote within a field that is not quoted
  };
  // The next field, and past what ends it. The text of a quoted field with quotes in it lives until the next call.
  Field next();
  bool at_end() const { return at_ == end_; }
  size_t offset() const { return at_ - begin_; }
  // Whether nothing but the end of the row is left; then goes past it.
  bool skip_end_of_row();

 private:
  Field quoted();

  const char *begin_, *at_, *end_;
  const TextFormat& format_;
  std::string unquoted_;
};

}  // namespace rndn::data
