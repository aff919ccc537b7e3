#include "libraries/base/system/files.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "libraries/base/system/cancel.h"

namespace rndn {

namespace {

Error cannot_write(const std::string& path, int error) {
  return world_error("cannot write `{}`: {}", path, std::strerror(error));
}

// The process's own descriptor that a path names: opening /dev/stdout anew would begin a file that stdout is in once more.
std::optional<int> own_descriptor(std::string_view path) {
  if (path == "/dev/stdout") return 1;
  if (path == "/dev/stderr") return 2;
  for (std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    int number = -1;
    const char* end = path.data() + path.size();
    if (path.starts_with(folder))
      if (auto read = std::from_chars(path.data() + folder.size(), end, number);
          read.ec == std::errc() && read.ptr == end && number >= 0)
        return number;
  }
  return std::nullopt;
}

// What the path's last part names when links are followed, whether it is there or not.
std::string follow_links(std::string path) {
  for (int links = 0; links < 40; ++links) {
    char target[PATH_MAX];
    const ssize_t length = readlink(path.c_str(), target, sizeof target);
    if (length <= 0 || length == sizeof target) break;
    const std::string next(target, static_cast<size_t>(length));
    const size_t slash = path.rfind('/');
    path = next[0] == '/' || slash == std::string::npos ? next : path.substr(0, slash + 1) + next;
  }
  return path;
}

}  // namespace

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
    RETURN_IF_ERROR(check_cancelled());
    if (n > limit - text.size()) {
      if (limit == max_file_bytes) return input_error("cannot read `{}`: it is larger than 4 GiB", path);
      return input_error("cannot read `{}`: it is larger than {} bytes", path, limit);
    }
    text.append(buffer, n);
  }
  bool failed = std::ferror(f) != 0;
  int error = errno;
  if (failed) {
    RETURN_IF_ERROR(check_cancelled());
    return input_error("cannot read `{}`: {}", path, std::strerror(error));
  }
  return text;
}

Result<NewFile> NewFile::create(const std::string& path) {
  NewFile file;
  file.path_ = path;
  if (const auto own = own_descriptor(path)) {
    std::fflush(nullptr);  // what was printed comes first
    file.descriptor_ = fcntl(*own, F_DUPFD_CLOEXEC, 0);
    if (file.descriptor_ < 0) return cannot_write(path, errno);
    return file;
  }
  file.target_ = follow_links(path);
  struct stat old {};
  const bool exists = stat(file.target_.c_str(), &old) == 0;
  bool beside = !exists || S_ISREG(old.st_mode);
  if (exists && beside && access(file.target_.c_str(), W_OK) != 0) return cannot_write(path, errno);
  if (beside) {
    static std::atomic<uint64_t> files{0};  // names only
    const std::string folder = file.target_.substr(0, file.target_.rfind('/') + 1);
    do {
      file.temporary_ = fmt::format("{}.rndn.{}.{}", folder, getpid(), files++);
      file.descriptor_ = open(file.temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    } while (file.descriptor_ < 0 && errno == EEXIST);
    if (file.descriptor_ < 0) {
      file.temporary_.clear();
      if (!exists) return cannot_write(path, errno);
      beside = false;
    }
  }
  if (!beside) {
    file.descriptor_ = open(file.target_.c_str(), O_WRONLY | O_CLOEXEC);
    if (file.descriptor_ < 0) return cannot_write(path, errno);
    file.to_empty_ = S_ISREG(old.st_mode);
  }
  if (beside && exists) {
    // The owner first, since a change of it clears bits of the mode. Only root can give files away: others have their own.
    (void)!fchown(file.descriptor_, old.st_uid, old.st_gid);
    (void)!fchmod(file.descriptor_, old.st_mode & 07777);
  }
  return file;
}

NewFile& NewFile::operator=(NewFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(target_, other.target_);
  std::swap(temporary_, other.temporary_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(to_empty_, other.to_empty_);
  return *this;
}

NewFile::~NewFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

int NewFile::descriptor() {
  if (std::exchange(to_empty_, false)) (void)!ftruncate(descriptor_, 0);
  return descriptor_;
}

Result<void> NewFile::fail(int error) { return cannot_write(path_, error); }

Result<void> NewFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return fail(n < 0 ? errno : EIO);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

Result<void> NewFile::commit() {
  (void)descriptor();  // empty when nothing was written
  if (close(std::exchange(descriptor_, -1)) != 0) return fail(errno);
  if (temporary_.empty()) return {};
  if (rename(temporary_.c_str(), target_.c_str()) != 0) return fail(errno);
  temporary_.clear();
  return {};
}

Result<void> write_file(const std::string& path, std::string_view contents) {
  if (path == "-") {
    const bool failed =
        std::fwrite(contents.data(), 1, contents.size(), stdout) != contents.size() || std::fflush(stdout) != 0;
    if (failed) {
      const Error error = cannot_write("stdout", errno);
      RETURN_IF_ERROR(check_cancelled());  // Ctrl-C ends a call that waits
      return error;
    }
    return {};
  }
  ASSIGN_OR_RETURN(NewFile file, NewFile::create(path));
  RETURN_IF_ERROR(file.write(contents));
  return file.commit();
}

}  // namespace rndn
