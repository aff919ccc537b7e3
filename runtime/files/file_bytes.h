// Bytes of files, read where they are wanted, and memory for them. Private to this folder.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace rndn::files {

// A file for as long as it is open. Any thread reads anywhere.
class OpenFile {
 public:
  explicit OpenFile(const std::string& path);
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  // False: it has fewer bytes, or could not be opened.
  bool read(uint64_t at, std::span<std::byte> to) const;

 private:
  const int descriptor_;
};

// Bytes that are not cleared, with room behind them that may be read and written.
inline constexpr size_t buffer_slack = 64;
class Buffer {
 public:
  std::byte* make(size_t size);  // what was there is lost
  std::byte* data() const { return bytes_.get(); }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  size_t capacity_ = 0;
};

}  // namespace rndn::files
