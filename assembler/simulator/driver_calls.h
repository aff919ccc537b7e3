// Calls of functions that the driver gives to kernels (driver_calls.cpp).
#pragma once
#include <optional>
#include <string_view>

#include "assembler/simulator/warp.h"

namespace rndn::sim {

std::optional<uint32_t> driver_function(std::string_view name);  // Op::x of driver_call; nothing: unknown
Status driver_call(Warp& w, const Op& op, uint32_t mask);
// Where tables of addresses have the function: no place in memory.
uint64_t driver_function_address(uint32_t function);
// A call of what the register pair `a` says, by the lanes with `ps`: such addresses only.
Status call_address(Warp& w, const Op& op, uint32_t mask);
// Pascal: of what the register `a` says, their lower words.
Status call_short_address(Warp& w, const Op& op, uint32_t mask);

}  // namespace rndn::sim
