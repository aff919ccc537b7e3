// Memory of a simulated GPU: one reserved range of host memory stands for the device's, so that translating an address is a subtraction.
//
// Address map (the simulator's own choice; a driver's differs from run to run):
//   device_base ..          allocations. It starts 4 MiB below a 4 GiB boundary, so that address arithmetic that loses carries shows
//   mapped_base ..          host memory made visible by map()
//   shared_window, local_window, constant_window, parameter_window   16 MiB each: generic addresses of shared and local memory and of the
//                                 constant banks 3 and 0
// Each 256-byte granule belongs to at most one allocation (guard gaps of 256 bytes and more between them); `valid_` holds how many of its
// bytes are allocated, so that a bounds check is one table look-up.
//
// Which bytes were ever written (check_uninitialised): one bit per byte, kept only while `tracked_`, that is from a launch that checks until one
// that does not. Before the first such launch, what the host writes is noted as ranges per allocation (`fresh_`), which costs next to
// nothing; a launch that does not check makes every allocation count as written, since nobody knows what it wrote.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "libraries/base/errors/result.h"

namespace rndn::sim {

inline constexpr uint64_t device_base = 0x2'ffc0'0000;
inline constexpr uint64_t mapped_base = 0x6000'0000'0000;
// Its lower word is zero: for sm_90 ptxas 12.9 puts SR_SWINHI above an address in shared memory, and adds nothing.
inline constexpr uint64_t shared_window = 0x7f01'0000'0000;
inline constexpr uint64_t local_window = 0x7f01'0200'0000;
inline constexpr uint64_t constant_window = 0x7f01'0300'0000;
inline constexpr uint64_t parameter_window = 0x7f01'0400'0000;
inline constexpr uint64_t window_bytes = 0x100'0000;

class Memory {
 public:
  explicit Memory(uint64_t bytes);
  ~Memory();
  Memory(const Memory&) = delete;

  Result<uint64_t> allocate(uint64_t bytes, uint64_t alignment);
  Result<void> free(uint64_t address);
  Result<uint64_t> map(void* host, uint64_t bytes);
  Result<void> unmap(uint64_t address);

  // Host address of `size` bytes at `address` (which the caller has found aligned to size, size <= 16); null when they are not accessible:
  // with `checked`, not wholly inside a live allocation; without, outside the reserved range.
  std::byte* translate(uint64_t address, uint32_t size, bool checked) const {
    const uint64_t offset = address - device_base;
    if (offset < size_) [[likely]] {
      if (checked && (offset & 255) + size > valid_[offset >> 8]) [[unlikely]]
        return nullptr;
      return arena_ + offset;
    }
    return translate_mapped(address, size);
  }
  // The same for a range of any length and alignment.
  std::byte* translate_range(uint64_t address, uint64_t bytes, bool checked) const;

  // The host writes the range (which it may access); not while a launch runs.
  void note_written(uint64_t address, uint64_t bytes);
  // Before a launch that notes what it writes, or before one that does not. False when there is no memory for the bits.
  bool track();
  void distrust();
  // The written bits of the 16 bytes around `address`, bit i for byte i; null when they are not kept (mapped memory).
  uint16_t* written_bits(uint64_t address) const {
    const uint64_t offset = address - device_base;
    return tracked_ && offset < size_ ? written_ + (offset >> 4) : nullptr;
  }

  // Why an access is refused: "... is 8 bytes beyond the allocation of 64 bytes at 0x...".
  std::string describe(uint64_t address) const;

 private:
  std::byte* translate_mapped(uint64_t address, uint64_t bytes) const;
  void set_valid(uint64_t offset, uint64_t bytes, bool live);
  void set_written(uint64_t offset, uint64_t bytes, bool written);

  struct Range {
    uint64_t address, bytes;
    std::byte* host;
  };
  uint64_t size_ = 0;      // bytes that allocations may use; 0 when the reservation failed
  uint64_t reserved_ = 0;  // size of the host reservation
  uint64_t top_ = 0;       // offset above the highest allocation ever made
  std::byte* arena_ = nullptr;
  uint16_t* valid_ = nullptr;           // per granule
  std::map<uint64_t, uint64_t> live_;   // offset -> bytes
  std::map<uint64_t, uint64_t> freed_;  // the same of allocations that were freed and not yet reused
  std::vector<Range> mapped_;
  uint64_t mapped_top_ = mapped_base;
  bool tracked_ = false;
  uint16_t* written_ = nullptr;  // a bit per byte; reserved by the first track()
  // Allocations since the last launch that did not check: what the host wrote into each, as (offset, bytes).
  std::map<uint64_t, std::vector<std::pair<uint64_t, uint64_t>>> fresh_;
};

}  // namespace rndn::sim
