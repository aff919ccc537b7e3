// One PTX text to a cubin with ptxas's options and logs: what both of NVIDIA's interfaces need.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "assembler/machine/options.h"

namespace rndn::nvidia {

enum class Status : uint8_t {
  ok,
  bad_option,  // unknown, or a value that it cannot have
  unknown_target,
  bad_text,             // the PTX is at fault
  unsupported_version,  // the PTX is of a newer release
  internal,
  out_of_memory,
};

struct Settings {
  assembler::Options options;
  std::string arch;          // "sm_90"; empty: what the text's .target says
  bool parses_only = false;  // of compute_NN
  bool verbose = false, quiet = false, strict = false;
  bool warns_of_spills = false, warns_of_local_memory = false;
  std::string warnings;  // of options, a line each
};

// ptxas's options, as programs write them: `-arch=sm_90`, `--gpu-name`, `sm_90`, `-O3`. `errors`
// gets a line that says what is wrong.
Status read_options(const std::vector<std::string>& given, Settings& settings, std::string& errors);

struct Compiled {
  Status status = Status::ok;
  std::vector<std::byte> cubin;
  std::string errors, info;  // lines; what a compilation that went well has to say is information
};

// No exception leaves it. Reentrant.
Compiled compile(std::string_view text, const std::string& name, const Settings& settings) noexcept;

}  // namespace rndn::nvidia
