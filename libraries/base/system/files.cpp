#include "libraries/base/system/files.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace rndn {

Result<std::string> read_file(const std::string& path, size_t limit) {
  bool standard = path == "-";
  struct stat status {};
  if (!standard && stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode))
    return input_error("cannot read `{}`: it is a directory", path);
  std::FILE* f = standard ? stdin : std::fopen(path.c_str(), "rb");
  if (!f) return input_error("cannot read `{}`: {}", path, std::strerror(errno));
  std::string text;
  char buffer[1 << 16];
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> closes(standard ? nullptr : f,
                                                         std::fclose);  // when memory runs out, too
  if (S_ISREG(status.st_mode) && static_cast<uint64_t>(status.st_size) <= limit)
    text.reserve(static_cast<size_t>(status.st_size));
  for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, f)) > 0;) {
    if (n > limit - text.size()) {
      if (limit == max_file_bytes) return input_error("cannot read `{}`: it is larger than 4 GiB", path);
      return input_error("cannot read `{}`: it is larger than {} bytes", path, limit);
    }
    text.append(buffer, n);
  }
  bool failed = std::ferror(f) != 0;
  int error = errno;
  if (failed) return input_error("cannot read `{}`: {}", path, std::strerror(error));
  return text;
}

Result<void> write_file(const std::string& path, std::string_view contents) {
  bool standard = path == "-";
  std::FILE* f = standard ? stdout : std::fopen(path.c_str(), "wb");
  if (!f) return world_error("cannot write `{}`: {}", path, std::strerror(errno));
  bool failed = std::fwrite(contents.data(), 1, contents.size(), f) != contents.size();
  failed |= standard ? std::fflush(f) != 0 : std::fclose(f) != 0;
  if (failed) return world_error("cannot write `{}`: {}", standard ? "stdout" : path, std::strerror(errno));
  return {};
}

}  // namespace rndn
