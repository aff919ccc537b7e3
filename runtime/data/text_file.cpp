// Mapping a file and finding its rows.
//
// The file is cut into pieces of equal size, and every piece counts, in parallel, the line ends that follow an even and an odd number
// of quotes in it; how many quotes came before then says which of the two ended rows. (A quote within a quoted field is doubled,
// which leaves the parity alone.) A block of rows is what begins behind the first such line end of a piece. A line end counts
// where a row begins behind it: an empty line is none, and no quote stands in it, so that its parity is that of the line end.
#include "runtime/data/text_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "libraries/base/containers/byte_mask.h"
#include "libraries/base/system/parallel.h"

namespace rndn::data {

namespace {

std::string version_by(const struct stat& s) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);  // what the kernel stamps files with
  constexpr int64_t second = 1'000'000'000;
  const int64_t age = (now.tv_sec - s.st_ctim.tv_sec) * second + now.tv_nsec - s.st_ctim.tv_nsec;
  if (age <= 0 && age > -second) return "";  // further ahead is another machine's clock
  return fmt::format("{} {} {} {}.{:09} {}.{:09}", s.st_dev, s.st_ino, s.st_size, s.st_mtim.tv_sec, s.st_mtim.tv_nsec,
                     s.st_ctim.tv_sec, s.st_ctim.tv_nsec);
}

}  // namespace

std::string version_of(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 ? version_by(status) : "";
}

Result<std::unique_ptr<TextFile>> TextFile::map(const std::string& path) {
  auto cannot = [&](std::string_view why) { return input_error("cannot read `{}`: {}", path, why); };
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe must not hold us up
  if (descriptor < 0) return cannot(std::strerror(errno));
  struct stat status {};
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(descriptor);
    return cannot("it is no regular file");
  }
  std::unique_ptr<TextFile> file(new TextFile);
  file->path_ = path;
  file->version_ = version_by(status);
  size_t size = static_cast<size_t>(status.st_size);
  if (size) {
    void* memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    int error = errno;
    close(descriptor);
    if (memory == MAP_FAILED) return cannot(std::strerror(error));
    file->mapped_ = {static_cast<const char*>(memory), size};
  } else {
    close(descriptor);
  }
  std::string_view& text = file->text_ = file->mapped_;
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) return cannot("it is UTF-16; expected UTF-8");
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  if (text.find('\n') == text.npos && text.find('\r') != text.npos) file->format_.line_end = '\r';
  // Of the empty lines at the end only the line end of the last row stays.
  const char last = file->format_.line_end;
  size_t end = text.size();
  for (size_t line = end; line > 0 && text[line - 1] == last;) {
    end = line--;
    if (line > 0 && last == '\n' && text[line - 1] == '\r') --line;
    if (line == 0) end = 0;
  }
  text = text.substr(0, end);
  return file;
}

Result<std::unique_ptr<TextFile>> TextFile::open(const std::string& path, const TextFormat& format, unsigned threads,
                                                 size_t block_size) {
  ASSIGN_OR_RETURN(std::unique_ptr<TextFile> file, map(path));
  file->cut(format, threads, block_size);
  return file;
}

TextFile::~TextFile() {
  if (!mapped_.empty()) munmap(const_cast<char*>(mapped_.data()), mapped_.size());
}

void TextFile::release(size_t begin, size_t end) const {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE)), before = text_.data() - mapped_.data();
  const size_t first = (begin + before + page - 1) / page * page, last = (end + before) / page * page;
  if (first < last) madvise(const_cast<char*>(mapped_.data()) + first, last - first, MADV_DONTNEED);
}

bool TextFile::is_empty_line(size_t at) const {
  if (at < text_.size() && text_[at] == '\r' && format_.line_end == '\n') ++at;
  return at >= text_.size() || text_[at] == format_.line_end;
}

namespace {

// Masks of up to 64 bytes; those behind the end equal nothing.
class Marks {
 public:
  Marks(const char* bytes, const char* end) : bytes_(bytes) {
    if (end - bytes >= 64) return;
    const size_t there = end - bytes;
    std::memcpy(copy_, bytes, there);
    std::memset(copy_ + there, 0, sizeof copy_ - there);
    bytes_ = copy_;
    there_ = (uint64_t{1} << there) - 1;
  }
  uint64_t of(char c) const { return equal_bytes(bytes_, c) & there_; }

 private:
  const char* bytes_;
  uint64_t there_ = ~uint64_t{0};
  char copy_[64];
};

}  // namespace

void TextFile::cut(const TextFormat& format, unsigned threads, size_t block_size) {
  const char line_end = format_.line_end;
  format_ = format;
  format_.line_end = line_end;
  blocks_.clear();
  struct Piece {
    int64_t starts[2] = {0, 0};  // line ends before a row, by parity of the quotes before them in the piece
    size_t first_start[2] = {std::string::npos, std::string::npos};  // offset of a row
    bool odd_quotes = false;
  };
  std::vector<Piece> pieces((text_.size() + block_size - 1) / block_size);
  auto count = [&](size_t number) {
    Piece piece;
    size_t begin = number * block_size, end = std::min(begin + block_size, text_.size());
    auto note = [&](size_t at, bool odd) {
      if (++at == text_.size() || (!format_.one_column && is_empty_line(at))) return;  // no row follows
      ++piece.starts[odd];
      piece.first_start[odd] = std::min(piece.first_start[odd], at);
    };
    if (format_.quoted) {
      uint64_t odd = 0;  // all ones behind an odd number of quotes
      for (size_t at = begin; at < end; at += 64) {
        const Marks marks(text_.data() + at, text_.data() + end);
        const uint64_t lines = marks.of(line_end), quotes = marks.of('"'), inside = odd_so_far(quotes) ^ odd;
        for (uint64_t left = lines; left; left &= left - 1)
          note(at + std::countr_zero(left), inside >> std::countr_zero(left) & 1);
        odd = 0 - (inside >> 63);
      }
      piece.odd_quotes = odd != 0;
    } else {
      std::string_view text = text_.substr(0, end);
      for (size_t at = begin; (at = text.find(line_end, at)) != text.npos; ++at) note(at, false);
    }
    release(begin, end);
    pieces[number] = piece;
  };
  parallel_for(pieces.size(), count, threads);

  int64_t row = format_.header ? -1 : 0;
  bool odd = false;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    // Within quotes so far: the piece's odd line ends are outside of them.
    int64_t starts = piece.starts[odd] + (i == 0 && (format_.one_column || !is_empty_line(0)));
    if (starts) {
      size_t begin = blocks_.empty() ? 0 : piece.first_start[odd];
      if (!blocks_.empty()) blocks_.back().end = begin;
      blocks_.push_back({.begin = begin, .end = text_.size(), .first_row = row, .rows = starts});
      row += starts;
    }
    odd ^= piece.odd_quotes;
  }
  rows_ = static_cast<uint64_t>(std::max<int64_t>(row, 0));
}

std::string TextFile::describe(size_t offset) const {
  std::string_view before = text_.substr(0, offset);
  return fmt::format("{}:{}:{}", path_, 1 + std::count(before.begin(), before.end(), format_.line_end),
                     offset - (before.rfind(format_.line_end) + 1) + 1);
}

size_t TextFile::offset_of(int64_t row, size_t column) const {
  auto block =
      std::upper_bound(blocks_.begin(), blocks_.end(), row, [](int64_t r, const Block& b) { return r < b.first_row; }) -
      1;
  FieldReader reader(text_, block->begin, format_);
  reader.skip_empty_lines();
  for (int64_t at = block->first_row; at < row; ++at) {
    while (reader.next().after != FieldReader::After::row) {
    }
    reader.skip_empty_lines();
  }
  for (size_t c = 0; c < column; ++c) reader.next();
  return reader.offset();
}

void FieldReader::mark_block() {
  const Marks marks(block_, end_);
  ends_ = marks.of(delimiter_) | marks.of(line_end_);
  if (!quoted_) return;
  quotes_ = marks.of('"');
  const uint64_t inside = odd_so_far(quotes_) ^ in_quotes_;
  in_quotes_ = 0 - (inside >> 63);
  ends_ &= ~inside;
}

// Quotes that do not match would have put the search for rows out of step.
void FieldReader::unquote(Field& field, int quotes) {
  std::string_view text = field.text;
  field.broken_quote = text.size() < 2 || text.front() != '"' || text.back() != '"';
  if (field.broken_quote) return;
  field.text = text = text.substr(1, text.size() - 2);
  if (quotes == 2) return;
  unquoted_.clear();
  for (size_t at = 0; at < text.size(); ++at) {
    unquoted_ += text[at];
    if (text[at] == '"' && text.substr(++at, 1) != "\"") field.broken_quote = true;
  }
  field.text = unquoted_;
}

bool FieldReader::skip_end_of_row() {
  const char* at = at_;
  if (at < end_ && *at == '\r' && line_end_ == '\n') ++at;
  if (at < end_ && *at != line_end_) return false;
  if (at_ < end_) next();
  return true;
}

}  // namespace rndn::data
