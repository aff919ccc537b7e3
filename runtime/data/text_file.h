// A delimited text file in memory (mapped, not read), cut into blocks of whole rows for parallel reading.
#pragma once
#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libraries/base/errors/result.h"

namespace rndn::data {

struct TextFormat {
  char delimiter = '|';
  bool quoted = false;      // fields may be quoted, as RFC 4180 says
  bool header = false;      // the first row is no data
  bool one_column = false;  // an empty line is a row; else it is none. Those at the end of a file never are
  char line_end = '\n';     // or '\r'; a \r before \n is part of the line end
};

// Names the contents of a file by what the system says of it: device, inode, size, times of writing and of change. A file
// that takes its place with the same size and time of writing (cp -p, rsync -t, tar) has another inode or another time of
// change. Empty when there is no such file, and in the clock tick of its change: it may change again without a trace.
std::string version_of(const std::string& path);

class TextFile {
 public:
  // Maps the file. A byte order mark is no part of the text, UTF-16 an error. Where there is no \n, lines end with \r.
  static Result<std::unique_ptr<TextFile>> map(const std::string& path);
  // Finds the rows; format.line_end is the file's own.
  void cut(const TextFormat& format, unsigned threads, size_t block_size = 4 << 20);
  // Both.
  static Result<std::unique_ptr<TextFile>> open(const std::string& path, const TextFormat& format, unsigned threads,
                                                size_t block_size = 4 << 20);
  ~TextFile();
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;

  // Rows [first_row, first_row + rows) are the text [begin, end), maybe with empty lines between. The header is row -1.
  struct Block {
    size_t begin = 0, end = 0;
    int64_t first_row = 0;
    int64_t rows = 0;
  };
  const std::string& path() const { return path_; }
  const std::string& version() const { return version_; }  // when it was opened
  const TextFormat& format() const { return format_; }
  std::string_view text() const { return text_; }
  const std::vector<Block>& blocks() const { return blocks_; }
  uint64_t rows() const { return rows_; }
  bool has_empty_lines_only() const { return text_.empty() && mapped_.find_first_of("\r\n") != mapped_.npos; }

  // "data/lineitem.tbl:12:5" for an offset in the text.
  std::string describe(size_t offset) const;
  // Where the field stands; the file must have it.
  size_t offset_of(int64_t row, size_t column) const;
  // Nobody reads this part soon: the memory of its pages may go.
  void release(size_t begin, size_t end) const;

 private:
  TextFile() = default;
  bool is_empty_line(size_t at) const;

  std::string path_, version_;
  TextFormat format_;
  std::string_view mapped_, text_;
  std::vector<Block> blocks_;
  uint64_t rows_ = 0;
};

// Steps through the fields of rows from some row's start. Text is looked at by blocks of 64 bytes, whose bit masks tell where fields end and where
// quotes stand; a line end or delimiter behind an odd number of quotes ends nothing.
class FieldReader {
 public:
  FieldReader(std::string_view text, size_t at, const TextFormat& format)
      : begin_(text.data()),
        end_(text.data() + text.size()),
        at_(text.data() + at),
        block_(at_),
        delimiter_(format.delimiter),
        line_end_(format.line_end),
        quoted_(format.quoted),
        skips_(!format.one_column) {
    mark_block();
  }

  enum class After : uint8_t { delimiter, row };  // what ended the field
  struct Field {
    std::string_view text;
    size_t offset;  // of the field in the file, its quote included
    After after;
    bool broken_quote = false;  // no closing quote, text behind it, or a quote within a field that is not quoted
  };
  // The next field, and past what ends it. The text of a quoted field with quotes in it lives until the next call.
  Field next() {
    const char* start = at_;
    int quotes = 0;
    for (; !ends_; mark_block()) {
      if (quotes_) quotes += std::popcount(quotes_);
      if (end_ - block_ <= block_size) {  // the text ends, and the field with it
        at_ = block_ = end_;
        quotes_ = 0;
        return finish(start, end_, After::row, quotes);
      }
      block_ += block_size;
    }
    const uint64_t end = ends_ & -ends_, here = quotes_ & (end - 1);
    const char* stop = block_ + std::countr_zero(end);
    quotes_ &= -end;
    ends_ ^= end;
    at_ = stop + 1;
    const After after = *stop == line_end_ ? After::row : After::delimiter;
    // The common quoted field: it begins and ends with its only quotes.
    if (here && start >= block_ && !quotes && stop - start >= 2 && here == (uint64_t{1} << (start - block_) | end >> 1))
      return {{start + 1, static_cast<size_t>(stop - start - 2)}, static_cast<size_t>(start - begin_), after};
    return finish(start, stop, after, here ? quotes + std::popcount(here) : quotes);
  }
  bool at_end() const { return at_ == end_; }
  size_t offset() const { return at_ - begin_; }
  // Whether nothing but the end of the row is left; then goes past it.
  bool skip_end_of_row();
  // At the start of a row: goes past the empty lines before it, where they are no rows.
  void skip_empty_lines() {
    while (skips_ && at_ < end_ && (*at_ == line_end_ || *at_ == '\r') && skip_end_of_row()) {
    }
  }

 private:
  static constexpr int block_size = 64;

  void mark_block();
  Field finish(const char* start, const char* stop, After after, int quotes) {
    if (after == After::row && stop > start && stop[-1] == '\r') --stop;
    Field field{{start, static_cast<size_t>(stop - start)}, static_cast<size_t>(start - begin_), after};
    if (quotes) unquote(field, quotes);
    return field;
  }
  void unquote(Field& field, int quotes);

  const char *begin_, *end_;
  const char* at_;          // the next field
  const char* block_;       // what the masks are of; at_ is in it or behind its end
  uint64_t ends_ = 0;       // delimiters and line ends at or behind at_ that end a field
  uint64_t quotes_ = 0;     // quotes at or behind at_
  uint64_t in_quotes_ = 0;  // behind the block: all ones within quotes
  const char delimiter_, line_end_;
  const bool quoted_, skips_;
  std::string unquoted_;
};

}  // namespace rndn::data
