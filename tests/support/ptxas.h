// PTX to a cubin by the vendor's assembler.
#pragma once
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "libraries/base/system/files.h"
#include "libraries/base/system/process.h"

namespace rndn::test {

// At its default level, -O3, without contraction. Several threads may do so at once when `tag` differs.
inline Result<std::vector<std::byte>> ptxas_cubin(const std::string& ptxas, const std::string& text,
                                                  const std::string& target, uint64_t tag = 0) {
  const std::string base =
      (std::filesystem::temp_directory_path() / fmt::format("rndn_ptxas_{}_{}", getpid(), tag)).string();
  const std::string in = base + ".ptx", out = base + ".cubin", messages = base + ".txt";
  RETURN_IF_ERROR(write_file(in, text));
  const Result<void> ran = run_program({ptxas, "--fmad=false", "-arch=" + target, "-o", out, in}, messages);
  Result<std::string> contents = ran.ok() ? read_file(out) : Result<std::string>(ran.error());
  for (const std::string& path : {in, out, messages}) unlink(path.c_str());
  if (!contents.ok()) return contents.error();
  std::vector<std::byte> bytes(contents->size());
  std::memcpy(bytes.data(), contents->data(), bytes.size());
  return bytes;
}

}  // namespace rndn::test
