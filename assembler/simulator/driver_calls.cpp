// Functions that the driver gives to kernels: vprintf, malloc, free, __assertfail.
//
// A call by the target's ABI: parameters in R4 and up, each aligned to its size, the result in R4; Volta and later return to R20, R21. Registers that
// a callee may change (R0, R3, R6 to R15) get another value, so that code that relies on them fails here too. What is printed is appended to
// Options::output, one call of one thread after the other. The heap is the machine's memory.
// Left out: the driver's limits on the heap and on the text that fits its buffer.
#include "assembler/simulator/driver_calls.h"

#include "assembler/simulator/lanes.h"
#include "libraries/base/report/device_print.h"

namespace rndn::sim {
namespace {

enum Function : uint32_t { print, allocate, release, assert_failed, count };
constexpr std::array<std::string_view, count> names = {"vprintf", "malloc", "free", "__assertfail"};
constexpr uint64_t first_address = 0x0000'7ffe'7ffe'0000, bytes_between = 256;

uint32_t& reg(Warp& w, uint32_t r, uint32_t lane) { return w.rows[0][first_register_row + r * lanes + lane]; }
uint64_t wide(Warp& w, uint32_t r, uint32_t lane) { return pair(reg(w, r, lane), reg(w, r + 1, lane)); }

// The bytes at a generic address, if a thread may read them.
const std::byte* find(Warp& w, uint32_t lane, uint64_t address, uint32_t size) {
  if (address - local_window < window_bytes) {
    const uint64_t at = address - local_window;
    return at + size <= w.launch->local_bytes ? w.local.data() + uint64_t{lane} * w.launch->local_bytes + at : nullptr;
  }
  if (address - shared_window < window_bytes) {
    const uint64_t at = address - shared_window;
    return at + size <= w.block->shared_bytes ? w.block->shared_memory() + at : nullptr;
  }
  return w.launch->memory->translate(address, size, true);
}
std::string text_at(Warp& w, uint32_t lane, uint64_t address) {
  std::string s;
  for (; s.size() < 4096; ++address) {
    const std::byte* p = find(w, lane, address, 1);
    if (!p || *p == std::byte{0}) break;
    s += static_cast<char>(*p);
  }
  return s;
}

}  // namespace

std::optional<uint32_t> driver_function(std::string_view name) {
  for (uint32_t k = 0; k < count; ++k)
    if (names[k] == name) return k;
  return std::nullopt;
}

uint64_t driver_function_address(uint32_t function) { return first_address + function * bytes_between; }

static Status call_each(Warp& w, const Op& op, uint32_t mask, const uint64_t (&callee)[lanes], uint64_t begin) {
  for (uint32_t todo = mask, same = 0; todo; todo &= ~same) {
    const uint32_t first = static_cast<uint32_t>(std::countr_zero(todo));
    same = 0;
    for_lanes(todo, [&](uint32_t l) { same |= (callee[l] == callee[first] ? 1u : 0u) << l; });
    const uint64_t at = callee[first] - begin;
    if (at % bytes_between || at / bytes_between >= count)
      return fail(w, op, first, fmt::format("a call of {:#x}, where no function of the driver is", callee[first]));
    Op call = op;
    call.x = static_cast<uint32_t>(at / bytes_between);
    if (const Status status = driver_call(w, call, same); status != Status::go) return status;
  }
  return Status::go;
}

Status call_address(Warp& w, const Op& op, uint32_t mask) {
  uint64_t callee[lanes];
  load_pairs(w, op.a, callee);
  return call_each(w, op, mask & lane_mask(w, op.ps), callee, first_address);
}

Status call_short_address(Warp& w, const Op& op, uint32_t mask) {
  uint64_t callee[lanes];
  std::copy_n(row(w, op.a), lanes, callee);
  return call_each(w, op, mask, callee, static_cast<uint32_t>(first_address));
}

Status driver_call(Warp& w, const Op& op, uint32_t mask) {
  Launch& launch = *w.launch;
  const Program& program = *launch.program;
  const bool volta = program.target->family == isa::Family::volta;
  const uint32_t results = op.x == allocate ? 2 : op.x == print ? 1 : 0;
  // R4 and up; on Volta and later the place to return to lies in R20 and R21.
  const uint32_t named = volta ? 22u : op.x == print ? 8u : op.x == allocate || op.x == release ? 6u : 14u;
  if (program.registers < named)
    return fail(w, op, static_cast<uint32_t>(std::countr_zero(mask)), "a call with fewer registers than the ABI names");
  std::array<uint64_t, lanes> result{};
  Status status = Status::go;
  for_lanes(mask, [&](uint32_t l) {
    if (status != Status::go) return;
    if (volta && wide(w, 20, l) != program.addresses[w.pc]) {
      status = fail(w, op, l, fmt::format("the call returns to {:#x}", wide(w, 20, l)));
      return;
    }
    switch (op.x) {
      case print: {
        const uint64_t arguments = wide(w, 6, l);
        const std::string line = device_print(
            text_at(w, l, wide(w, 4, l)),
            [&](uint64_t offset, uint32_t bytes) -> std::optional<uint64_t> {
              const std::byte* p = find(w, l, arguments + offset, bytes);
              if (!p) return std::nullopt;
              uint64_t v = 0;
              std::memcpy(&v, p, bytes);
              return v;
            },
            [&](uint64_t address) { return text_at(w, l, address); });
        const std::lock_guard lock(launch.mutex);
        if (launch.options.output) *launch.options.output += line;
        break;
      }
      case allocate: {
        const std::lock_guard lock(launch.mutex);
        const uint64_t bytes = wide(w, 4, l);
        if (bytes == 0) break;
        Result<uint64_t> place = launch.heap->allocate(bytes, 256);
        result[l] = place ? *place : 0;
        break;
      }
      case release: {
        const std::lock_guard lock(launch.mutex);
        if (const uint64_t at = wide(w, 4, l))
          if (Result<void> done = launch.heap->free(at); !done) {
            launch.mutex.unlock();
            status = fail(w, op, l, "free: " + done.error().message);
            launch.mutex.lock();
          }
        break;
      }
      default:
        status = fail(w, op, l,
                      fmt::format("{}:{}: {}: assertion `{}` failed", text_at(w, l, wide(w, 6, l)), reg(w, 8, l),
                                  text_at(w, l, wide(w, 10, l)), text_at(w, l, wide(w, 4, l))));
    }
  });
  if (status != Status::go) return status;
  for (uint32_t r = 0; r < std::min(16u, program.registers); ++r) {
    if (r == 1 || r == 2 || r == 4 || r == 5) continue;
    for_lanes(mask, [&](uint32_t l) { reg(w, r, l) = 0xdeadbeefu; });
  }
  for_lanes(mask, [&](uint32_t l) {
    reg(w, 4, l) = results ? static_cast<uint32_t>(result[l]) : 0xdeadbeefu;
    reg(w, 5, l) = results == 2 ? static_cast<uint32_t>(result[l] >> 32) : 0xdeadbeefu;
  });
  for (uint32_t r = 4; r < 4 + results; ++r)
    if (r < w.written.size()) w.written[r] |= mask;
  return Status::go;
}

}  // namespace rndn::sim
