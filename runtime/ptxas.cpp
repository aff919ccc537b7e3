#include "runtime/ptxas.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "libraries/base/files.h"

extern char** environ;

namespace rndn::runtime {
namespace {

// A folder that is gone with the object.
struct TemporaryFolder {
  std::string path;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path.empty()) std::filesystem::remove_all(path, ignored);
  }
};

}  // namespace

Result<std::vector<std::byte>> run_ptxas(const std::string& program, const std::string& ptx, const std::string& target,
                                         int level, uint32_t max_registers) {
  const char* base = std::getenv("TMPDIR");
  std::string pattern = fmt::format("{}/rndn-XXXXXX", base && *base ? base : "/tmp");
  if (!mkdtemp(pattern.data()))
    return world_error("cannot make a temporary folder {}: {}", pattern, std::strerror(errno));
  TemporaryFolder folder{pattern};
  std::string input = folder.path + "/module.ptx", output = folder.path + "/module.cubin",
              messages = folder.path + "/messages";
  RETURN_IF_ERROR(write_file(input, ptx));

  std::vector<std::string> arguments = {program, "-arch=" + target, fmt::format("-O{}", level), input, "-o", output};
  if (max_registers) arguments.push_back(fmt::format("--maxrregcount={}", max_registers));
  std::vector<char*> argv;
  for (std::string& a : arguments) argv.push_back(a.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, messages.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  int failed = posix_spawnp(&child, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed) return world_error("cannot run `{}`: {}", program, std::strerror(failed));
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return world_error("cannot wait for `{}`: {}", program, std::strerror(errno));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    auto said = read_file(messages);
    std::string text = said ? *said : std::string();
    while (!text.empty() && text.back() == '\n') text.pop_back();
    std::string how = WIFEXITED(status) ? fmt::format("exit code {}", WEXITSTATUS(status))
                                        : fmt::format("signal {}", WTERMSIG(status));
    return world_error("`{}` failed with {}{}{}", program, how, text.empty() ? "" : ":\n", text);
  }
  Result<std::string> read = read_file(output);
  if (!read.ok() || read->empty()) return world_error("`{}` ended well but wrote no cubin", program);
  const std::string& bytes = *read;
  const auto* from = reinterpret_cast<const std::byte*>(bytes.data());
  return std::vector<std::byte>(from, from + bytes.size());
}

}  // namespace rndn::runtime
