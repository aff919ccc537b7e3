#include "libraries/base/system/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "libraries/base/system/cancel.h"
#include "libraries/base/system/files.h"

extern char** environ;

namespace rndn {

Result<void> run_program(std::vector<std::string> arguments, const std::string& messages) {
  const std::string program = arguments[0];
  std::vector<char*> argv;
  for (std::string& a : arguments) argv.push_back(a.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (!messages.empty()) {
    posix_spawn_file_actions_addopen(&actions, 1, messages.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
  }
  pid_t child = 0;
  const int failed = posix_spawnp(&child, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed) return world_error("cannot run `{}`: {}", program, std::strerror(failed));
  int status = 0;
  {
    const CancelWatch watch([child] { kill(child, SIGKILL); });
    while (waitpid(child, &status, 0) < 0)
      if (errno != EINTR) return world_error("cannot wait for `{}`: {}", program, std::strerror(errno));
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  RETURN_IF_ERROR(check_cancelled());
  std::string text;
  if (!messages.empty())
    if (auto said = read_file(messages)) text = *std::move(said);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const std::string how =
      WIFEXITED(status) ? fmt::format("exit code {}", WEXITSTATUS(status)) : fmt::format("signal {}", WTERMSIG(status));
  return world_error("`{}` failed with {}{}{}", program, how, text.empty() ? "" : ":\n", text);
}

}  // namespace rndn
