// Whole files and standard streams, with errors that say what was tried.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "libraries/base/errors/result.h"

namespace rndn {

// Source positions and the formats of our inputs count in 32 bits.
inline constexpr size_t max_file_bytes = UINT32_MAX;
// The contents of `path` ("-" = stdin). A file that cannot be read or is longer than `limit` bytes is the input's fault (exit 1).
Result<std::string> read_file(const std::string& path, size_t limit = max_file_bytes);
// Writes `path` ("-" = stdout) whole, as a NewFile. Failure is the world's fault (exit 3): never lose output silently.
Result<void> write_file(const std::string& path, std::string_view contents);

// A file that is written beside its place and takes it when it is complete: until then, and whatever fails, `path` is as
// it was. Links are followed; mode and owner of a file that was there stay.
//
// Written in place are what is no regular file (devices, pipes), the process's own descriptors by name (/dev/stdout,
// /dev/fd/3), and a file in a folder where none can be made.
class NewFile {
 public:
  static Result<NewFile> create(const std::string& path);
  NewFile(NewFile&& other) noexcept { *this = std::move(other); }
  NewFile& operator=(NewFile&& other) noexcept;
  ~NewFile();  // not committed: gone

  int descriptor();  // to write to from its start
  Result<void> write(std::string_view bytes);
  Result<void> commit();

 private:
  NewFile() = default;
  Result<void> fail(int error);

  std::string path_;       // as the user calls it
  std::string target_;     // where it goes
  std::string temporary_;  // where it is; empty: in place
  int descriptor_ = -1;
  bool to_empty_ = false;  // what is written in place loses its contents when it is written, not before
};

}  // namespace rndn
