// Mapping a file and finding its rows.
//
// The file is cut into pieces of equal size, and every piece counts, in parallel, the line ends that follow an even and an odd number
// of quotes in it; how many quotes came before then says which of the two ended rows. (A quote within a quoted field is doubled,
// which leaves the parity alone.) A block of rows is what begins behind the first such line end of a piece.
#include "runtime/data/text_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "libraries/base/parallel.h"

namespace rndn::data {

Result<std::unique_ptr<TextFile>> TextFile::open(const std::string& path, const TextFormat& format, unsigned threads,
                                                 size_t block_size) {
  auto cannot = [&](int error) { return input_error("cannot read `{}`: {}", path, std::strerror(error)); };
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe must not hold us up
  if (descriptor < 0) return cannot(errno);
  struct stat status {};
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(descriptor);
    return input_error("cannot read `{}`: it is no regular file", path);
  }
  std::unique_ptr<TextFile> file(new TextFile);
  file->path_ = path;
  file->format_ = format;
  size_t size = static_cast<size_t>(status.st_size);
  if (size) {
    void* memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    int error = errno;
    close(descriptor);
    if (memory == MAP_FAILED) return cannot(error);
    file->text_ = {static_cast<const char*>(memory), size};
  } else {
    close(descriptor);
  }
  file->find_rows(threads, block_size);
  return file;
}

TextFile::~TextFile() {
  if (!text_.empty()) munmap(const_cast<char*>(text_.data()), text_.size());
}

void TextFile::find_rows(unsigned threads, size_t block_size) {
  struct Piece {
    int64_t ends[2] = {0, 0};  // row ends, by parity of the quotes before them in the piece
    size_t first_end[2] = {std::string::npos, std::string::npos};  // offset
    bool odd_quotes = false;
  };
  std::vector<Piece> pieces((text_.size() + block_size - 1) / block_size);
  auto count = [&](size_t number) {
    Piece piece;
    size_t begin = number * block_size, end = std::min(begin + block_size, text_.size());
    auto note = [&](size_t at, bool odd) {
      if (at + 1 == text_.size()) return;  // no row follows
      ++piece.ends[odd];
      piece.first_end[odd] = std::min(piece.first_end[odd], at);
    };
    if (format_.quoted) {
      bool odd = false;
      for (size_t at = begin; at < end; ++at) {
        if (text_[at] == '"') odd = !odd;
        if (text_[at] == '\n') note(at, odd);
      }
      piece.odd_quotes = odd;
    } else {
      std::string_view text = text_.substr(0, end);
      for (size_t at = begin; (at = text.find('\n', at)) != text.npos; ++at) note(at, false);
    }
    pieces[number] = piece;
  };
  parallel_for(pieces.size(), count, threads);

  int64_t row = format_.header ? -1 : 0;
  bool odd = false;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    // Within quotes so far: the piece's odd line ends are outside of them.
    int64_t starts = piece.ends[odd] + (i == 0);
    if (starts) {
      size_t begin = i == 0 ? 0 : piece.first_end[odd] + 1;
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
  return fmt::format("{}:{}:{}", path_, 1 + std::count(before.begin(), before.end(), '\n'),
                     offset - (before.rfind('\n') + 1) + 1);
}

size_t TextFile::offset_of(int64_t row, size_t column) const {
  auto block =
      std::upper_bound(blocks_.begin(), blocks_.end(), row, [](int64_t r, const Block& b) { return r < b.first_row; }) -
      1;
  FieldReader reader(text_, block->begin, format_);
  for (int64_t at = block->first_row; at < row; ++at) {
    while (reader.next().after != FieldReader::After::row) {
    }
  }
  for (size_t c = 0; c < column; ++c) reader.next();
  return reader.offset();
}

namespace {

// The first a or b in [at, end), or end; eight bytes at a time. A byte of x that is zero borrows in x - ones: the lowest such bit is
// exact (Mycroft's test).
const char* find_either(const char* at, const char* end, char a, char b) {
  constexpr uint64_t ones = 0x0101010101010101, tops = ones << 7;
  const uint64_t all_a = ones * static_cast<uint8_t>(a), all_b = ones * static_cast<uint8_t>(b);
  for (; end - at >= 8; at += 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    const uint64_t x = word ^ all_a, y = word ^ all_b;
    if (const uint64_t found = (((x - ones) & ~x) | ((y - ones) & ~y)) & tops) return at + std::countr_zero(found) / 8;
  }
  while (at < end && *at != a && *at != b) ++at;
  return at;
}

}  // namespace

FieldReader::Field FieldReader::next() {
  const char* start = at_;
  if (format_.quoted && at_ < end_ && *at_ == '"') return quoted();
  at_ = find_either(at_, end_, format_.delimiter, '\n');
  Field field{{start, static_cast<size_t>(at_ - start)}, static_cast<size_t>(start - begin_), After::row};
  if (at_ < end_ && *at_ == format_.delimiter)
    field.after = After::delimiter;
  else if (field.text.ends_with('\r'))
    field.text.remove_suffix(1);
  if (at_ < end_) ++at_;
  // Such a quote would have put the search for rows out of step.
  if (format_.quoted && field.text.find('"') != field.text.npos) field.broken_quote = true;
  return field;
}

FieldReader::Field FieldReader::quoted() {
  Field field{{}, static_cast<size_t>(at_ - begin_), After::row};
  unquoted_.clear();
  for (++at_;;) {
    const char* quote = static_cast<const char*>(std::memchr(at_, '"', end_ - at_));
    unquoted_.append(at_, quote ? quote : end_);
    at_ = quote ? quote + 1 : end_;
    if (!quote) {
      field.broken_quote = true;
      return field;
    }
    if (at_ == end_ || *at_ != '"') break;
    unquoted_.push_back('"');
    ++at_;
  }
  field.text = unquoted_;
  if (at_ + 1 < end_ && at_[0] == '\r' && at_[1] == '\n') ++at_;
  if (at_ == end_) return field;
  if (*at_ == format_.delimiter)
    field.after = After::delimiter;
  else if (*at_ != '\n')
    field.broken_quote = true;
  ++at_;
  return field;
}

bool FieldReader::skip_end_of_row() {
  if (at_ < end_ && *at_ == '\r') ++at_;
  if (at_ == end_) return true;
  if (*at_ != '\n') return false;
  ++at_;
  return true;
}

}  // namespace rndn::data
