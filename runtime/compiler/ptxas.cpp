#include "runtime/compiler/ptxas.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "libraries/base/system/files.h"
#include "libraries/base/system/process.h"

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
  RETURN_IF_ERROR(run_program(std::move(arguments), messages));
  Result<std::string> read = read_file(output);
  if (!read.ok() || read->empty()) return world_error("`{}` ended well but wrote no cubin", program);
  const std::string& bytes = *read;
  const auto* from = reinterpret_cast<const std::byte*>(bytes.data());
  return std::vector<std::byte>(from, from + bytes.size());
}

}  // namespace rndn::runtime
