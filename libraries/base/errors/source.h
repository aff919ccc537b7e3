// Source texts and positions in them.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libraries/base/containers/id.h"

namespace rndn {

enum class FileId : uint32_t {};

// Bytes [begin, end) of a file. `file` none: no position (built by the compiler).
struct Span {
  FileId file = none<FileId>();
  uint32_t begin = 0;
  uint32_t end = 0;
  bool known() const { return !is_none(file); }
};
inline Span join(Span a, Span b) { return {a.file, a.begin, b.end > a.end ? b.end : a.end}; }

struct LineColumn {
  uint32_t line = 1;    // from 1
  uint32_t column = 1;  // from 1, in bytes
};

// Owns the texts of one compilation. Views stay valid as long as the object. Not thread-safe.
class SourceManager {
 public:
  FileId add(std::string name, std::string text);  // a byte order mark at the front is no part of the text
  std::string_view name(FileId file) const { return files_[file]->name; }
  std::string_view text(FileId file) const { return files_[file]->text; }  // a NUL follows it
  std::string_view text(Span span) const { return text(span.file).substr(span.begin, span.end - span.begin); }
  LineColumn position(FileId file, uint32_t offset) const;
  LineColumn position(Span span) const { return position(span.file, span.begin); }
  std::string_view line(FileId file, uint32_t number) const;  // without its end of line
  std::string describe(Span span) const;                      // "q6.hir:9:17", or "<built-in>" without a position

 private:
  struct File {
    std::string name;
    std::string text;
    std::vector<uint32_t> line_starts;  // offset of the first byte of every line
  };
  IdVector<FileId, std::shared_ptr<File>> files_;
};

}  // namespace rndn
