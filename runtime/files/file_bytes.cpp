#include "runtime/files/file_bytes.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace rndn::files {

OpenFile::OpenFile(const std::string& path)
    : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
OpenFile::~OpenFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

bool OpenFile::read(uint64_t at, std::span<std::byte> to) const {
  while (!to.empty()) {
    const ssize_t got = pread(descriptor_, to.data(), to.size(), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to = to.subspan(static_cast<size_t>(got));
    at += static_cast<uint64_t>(got);
  }
  return true;
}

std::byte* Buffer::make(size_t size) {
  if (size + buffer_slack > capacity_) {
    bytes_.reset();
    capacity_ = size + buffer_slack;
    bytes_ = std::make_unique_for_overwrite<std::byte[]>(capacity_);
  }
  return bytes_.get();
}

}  // namespace rndn::files
