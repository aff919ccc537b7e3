#include "assembler/ptxas/words.h"

#include <fmt/format.h>

#include <algorithm>

namespace rndn::ptxas {

namespace {
std::string info(std::string_view text) { return fmt::format("ptxas info    : {}\n", text); }
const cubin::Kernel& kernel_of(const cubin::Image& image, const assembler::KernelReport& report) {
  return *std::ranges::find(image.kernels, report.name, &cubin::Kernel::name);
}
}  // namespace

std::string resources(const assembler::Assembled& made, const cubin::Image& image, const isa::Target& target,
                      std::string_view arch) {
  uint64_t set = 0, zero = 0, constant = 0;  // bytes of global memory with and without initial
                                             // values, of constant memory
  for (const cubin::Variable& v : image.variables) {
    uint64_t& bytes = v.constant ? constant : v.initial.empty() ? zero : set;
    bytes = std::max(bytes, v.offset + v.size);
  }
  std::string out =
      info(fmt::format("{} bytes gmem{}", set + zero, constant ? fmt::format(", {} bytes cmem[3]", constant) : ""));
  for (const assembler::KernelReport& report : made.kernels) {
    const cubin::Kernel& k = kernel_of(image, report);
    out += info(fmt::format("Compiling entry function '{}' for '{}'", k.name, arch));
    out += info(fmt::format("Function properties for {}", k.name));
    out += fmt::format("    {} bytes stack frame, {} bytes spill stores, {} bytes spill loads\n", k.local_bytes,
                       report.spill_store_bytes, report.spill_load_bytes);
    std::string line = fmt::format("Used {} registers, used {} barriers", k.registers, k.barriers);
    if (const uint32_t shared = k.shared_bytes - (k.uses_shared ? target.shared_base : 0))
      line += fmt::format(", {} bytes smem", shared);
    line += fmt::format(", {} bytes cmem[0]", target.parameter_base + k.parameter_bytes);
    if (!k.constants.empty()) line += fmt::format(", {} bytes cmem[2]", k.constants.size());
    out += info(line);
  }
  return out;
}

std::string usage_warnings(const assembler::Assembled& made, const cubin::Image& image, const Warnings& wanted,
                           size_t& count) {
  std::string out;
  const auto warn = [&](const std::string& text) {
    ++count;
    out += fmt::format("ptxas {} : {}\n", wanted.are_errors ? "error  " : "warning", text);
  };
  for (const assembler::KernelReport& report : made.kernels) {
    const cubin::Kernel& k = kernel_of(image, report);
    if (wanted.of_local_memory && k.local_bytes)
      warn(fmt::format("Local memory used for function '{}', size of stack frame: {} bytes", k.name, k.local_bytes));
    if (wanted.of_spills && (report.spill_store_bytes || report.spill_load_bytes))
      warn(
          fmt::format("Registers are spilled to local memory in function '{}', {} bytes spill "
                      "stores, {} bytes spill loads",
                      k.name, report.spill_store_bytes, report.spill_load_bytes));
  }
  return out;
}

std::string unknown_target(std::string_view arch) {
  return fmt::format("ptxas fatal   : Value '{}' is not defined for option 'gpu-name'\n", arch);
}

}  // namespace rndn::ptxas
