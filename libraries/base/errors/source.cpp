#include "libraries/base/errors/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace rndn {

FileId SourceManager::add(std::string name, std::string text) {
  auto file = std::make_shared<File>();
  file->name = std::move(name);
  file->text = std::move(text);
  if (file->text.starts_with("\xef\xbb\xbf")) file->text.erase(0, 3);  // a byte order mark, which no editor shows
  file->line_starts.push_back(0);
  const char *begin = file->text.data(), *end = begin + file->text.size();
  file->line_starts.reserve(file->text.size() / 32 + 1);
  for (const char* at = begin; at < end;) {
    at = static_cast<const char*>(std::memchr(at, '\n', static_cast<size_t>(end - at)));
    if (!at) break;
    file->line_starts.push_back(static_cast<uint32_t>(++at - begin));
  }
  return files_.add(std::move(file));
}

LineColumn SourceManager::position(FileId file, uint32_t offset) const {
  const auto& starts = files_[file]->line_starts;
  auto next = std::upper_bound(starts.begin(), starts.end(), offset);
  uint32_t line = static_cast<uint32_t>(next - starts.begin());
  return {line, offset - starts[line - 1] + 1};
}

std::string_view SourceManager::line(FileId file, uint32_t number) const {
  const File& f = *files_[file];
  uint32_t begin = f.line_starts[number - 1];
  uint32_t end = number < f.line_starts.size() ? f.line_starts[number] - 1 : static_cast<uint32_t>(f.text.size());
  std::string_view text = std::string_view(f.text).substr(begin, end - begin);
  while (!text.empty() && (text.back() == '\r' || text.back() == '\n')) text.remove_suffix(1);
  return text;
}

std::string SourceManager::describe(Span span) const {
  if (!span.known()) return "<built-in>";
  LineColumn at = position(span);
  return fmt::format("{}:{}:{}", name(span.file), at.line, at.column);
}

}  // namespace rndn
