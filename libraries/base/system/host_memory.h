// How much memory the host has left. A system that has none ends the process that asks for it, with no word; so what
// allocates much asks here first, and gets an error with sizes (expect_memory of cancel.h does both).
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace rndn {

// Bytes that the process may have at all, the limit of its control group included.
uint64_t memory_of_host();
// Bytes that can be had without taking any from others: of the machine, and of the process's control group. root: where
// the system's files lie. UINT64_MAX: the system does not say. Cost: some 60 us.
uint64_t memory_available(const std::string& root = "");

// Throws Cancelled (fault world) where so many more bytes would leave less than a 32nd of the host's memory. Less than
// 32 MiB is not asked for: what many small ones take is seen by the next large one.
void expect_host_memory(uint64_t bytes);

// For tests: what the host is said to have, in this thread, and asked for any number of bytes.
class HostMemoryScope {
 public:
  explicit HostMemoryScope(std::function<uint64_t()> available);
  ~HostMemoryScope();
  HostMemoryScope(const HostMemoryScope&) = delete;

 private:
  const std::function<uint64_t()> available_;
  const std::function<uint64_t()>* const before_;
};

}  // namespace rndn
