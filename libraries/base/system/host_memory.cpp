#include "libraries/base/system/host_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string_view>
#include <utility>

#include "libraries/base/report/sizes.h"
#include "libraries/base/system/cancel.h"

namespace rndn {

namespace {

constexpr uint64_t least_asked = 32 << 20;
constexpr uint64_t stays_free = 32;  // this part of the host's memory

thread_local const std::function<uint64_t()>* said = nullptr;  // of HostMemoryScope

// The number behind `name`; UINT64_MAX: there is none.
uint64_t number_in(const std::string& file, std::string_view name) {
  std::ifstream in(file);
  std::string word;
  while (in >> word)
    if (uint64_t number; word == name && in >> number) return number;
  return UINT64_MAX;
}

}  // namespace

uint64_t memory_of_host() {
  const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGE_SIZE);
  uint64_t most = pages > 0 && size > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(size) : uint64_t{4} << 30;
  for (const char* file : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"})
    if (uint64_t limit; std::ifstream(file) >> limit) most = std::min(most, limit);
  return most;
}

uint64_t memory_available(const std::string& root) {
  const uint64_t kib = number_in(root + "/proc/meminfo", "MemAvailable:");
  uint64_t most = kib == UINT64_MAX ? kib : kib << 10;
  struct Group {
    const char *limit, *used, *parts;
  };
  const std::string groups = root + "/sys/fs/cgroup/";
  for (const Group& g : {Group{"memory.max", "memory.current", "memory.stat"},
                         Group{"memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat"}}) {
    uint64_t limit, used;
    if (!(std::ifstream(groups + g.limit) >> limit) || !(std::ifstream(groups + g.used) >> used)) continue;
    for (const char* part : {"inactive_file", "active_file"})  // pages of files go back when others need them
      if (const uint64_t bytes = number_in(groups + g.parts, part); bytes != UINT64_MAX) used -= std::min(used, bytes);
    most = std::min(most, limit - std::min(limit, used));
  }
  return most;
}

void expect_host_memory(uint64_t bytes) {
  if (!said && bytes < least_asked) [[likely]]
    return;
  static const uint64_t all = memory_of_host();
  const uint64_t available = said ? (*said)() : memory_available(), free = said ? 0 : all / stays_free;
  if (available == UINT64_MAX || (available >= free && bytes <= available - free)) return;
  throw Cancelled{world_error("the host has {} of memory left, and {} more would leave less than the {} that stay free",
                              size_text(available), size_text(bytes), size_text(free))
                      .as(Cause::cancelled)};
}

HostMemoryScope::HostMemoryScope(std::function<uint64_t()> available)
    : available_(std::move(available)), before_(std::exchange(said, &available_)) {}
HostMemoryScope::~HostMemoryScope() { said = before_; }

}  // namespace rndn
