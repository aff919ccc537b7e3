// DuckDB in another process: a Python that imports it answers texts over a socket.
//
// Both sides send a length (8 bytes, little end first) and as many bytes; answers begin with `+`,
// or with `-` for an error's message. The first answer, which nobody asked for, is the version. The
// process ends when the socket closes.
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "libraries/base/system/cancel.h"
#include "runtime/planner/database.h"

extern char** environ;

namespace rndn::planner {
namespace {

constexpr const char* script = R"(
import sys
source, sink = sys.stdin.buffer, sys.stdout.buffer
def send(sign, text):
    data = (sign + text).encode('utf-8', 'replace')
    sink.write(len(data).to_bytes(8, 'little') + data)
    sink.flush()
try:
    try:
        import duckdb
    except ImportError:
        sys.path.append(sys.argv[1])
        import duckdb
    connection = duckdb.connect(':memory:')
    send('+', connection.execute('select version()').fetchone()[0])
except Exception as error:
    send('-', str(error))
    sys.exit(1)
while True:
    head = source.read(8)
    if len(head) < 8:
        break
    text = source.read(int.from_bytes(head, 'little')).decode('utf-8', 'surrogateescape')
    try:
        row = connection.execute(text).fetchone()
        send('+', '' if row is None or row[0] is None else str(row[0]))
    except Exception as error:
        send('-', str(error))
)";

class Helper final : public Database {
 public:
  Helper(std::string python, pid_t child, int socket)
      : python_(std::move(python)), child_(child), socket_(socket) {}
  ~Helper() override {
    close(socket_);
    while (waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  Result<std::string> ask(const std::string& statements) override {
    if (statements.find('\0') != statements.npos) return input_error("the text has a byte 0");
    RETURN_IF_ERROR(check_cancelled());
    // Its planner answers to no one until it is done: a new one takes its place (Planner).
    const CancelWatch::Call call(watch_);
    const uint64_t size = statements.size();
    Result<std::string> answer = gone();
    if (send_all(&size, sizeof size) && send_all(statements.data(), size)) answer = receive();
    if (!answer) RETURN_IF_ERROR(check_cancelled());
    return answer;
  }

  Result<std::string> receive() {
    uint64_t size = 0;
    if (!receive_all(&size, sizeof size) || size == 0 || size > most) return gone();
    std::string text(size, '\0');
    if (!receive_all(text.data(), size)) return gone();
    const bool good = text[0] == '+';
    text.erase(0, 1);
    if (!good) return Error{Fault::input, std::move(text)};
    return text;
  }

 private:
  static constexpr uint64_t most = uint64_t{1} << 32;

  Error gone() const {
    return world_error("`{}`, which plans SQL, has ended without an answer", python_);
  }
  bool send_all(const void* bytes, size_t size) {
    for (const char* at = static_cast<const char*>(bytes); size;) {
      const ssize_t n = send(socket_, at, size, MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      at += n;
      size -= static_cast<size_t>(n);
    }
    return true;
  }
  bool receive_all(void* bytes, size_t size) {
    for (char* at = static_cast<char*>(bytes); size;) {
      const ssize_t n = recv(socket_, at, size, 0);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      at += n;
      size -= static_cast<size_t>(n);
    }
    return true;
  }

  std::string python_;
  pid_t child_;
  int socket_;
  CancelWatch watch_{[this] { kill(child_, SIGKILL); }};
};

}  // namespace

Result<std::unique_ptr<Database>> open_helper(const std::string& python,
                                              const std::string& folder) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return world_error("cannot make a socket for `{}`: {}", python, std::strerror(errno));
  std::string arguments[] = {python, "-c", script, folder};
  char* argv[] = {arguments[0].data(), arguments[1].data(), arguments[2].data(),
                  arguments[3].data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  // In a group of its own, so that the terminal's Ctrl-C is ours alone.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, python.c_str(), &actions, &attributes, argv, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (failed) {
    close(ends[0]);
    return world_error("cannot run `{}`: {}", python, std::strerror(failed));
  }
  auto helper = std::make_unique<Helper>(python, child, ends[0]);
  Result<std::string> version = helper->receive();
  if (!version) return world_error("`{}` has no duckdb: {}", python, version.error().message);
  if (*version != pinned_version)
    return world_error("`{}` has DuckDB {}, not {}", python, *version, pinned_version);
  return std::unique_ptr<Database>(std::move(helper));
}

}  // namespace rndn::planner
