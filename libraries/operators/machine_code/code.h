// The machine code of operators::ready_kernels(), for every target: made by the build, a part of the program.
//
//   if (const auto code = operators::find_code("sm_90", "small_order")) device.load_module(code->cubin);
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace rndn::operators {

struct MadeCode {
  std::string_view kernel, target;
  uint32_t block_size = 0, instructions = 0;
  std::span<const std::byte> cubin;  // these lie in the program
};
std::optional<MadeCode> find_code(std::string_view target, std::string_view kernel);
size_t code_count();
MadeCode code_at(size_t index);  // ascending by kernel, then target

}  // namespace rndn::operators
