// Times of a program's kernels, for tools/bench-programs, which compiles this with the toolkit's CUPTI and lets the driver load it
// (CUDA_INJECTION64_PATH). When the program ends, the file that RNDN_KERNEL_TIMES names has a line per kernel: launches, nanoseconds of all, of the
// shortest, and the name as compiled, with tabs between.
#include <cupti.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

namespace {

struct Times {
  uint64_t launches = 0, total = 0, shortest = UINT64_MAX;
};
std::map<std::string, Times>& times() {  // lives until the process ends: buffers may come at any time
  static auto* all = new std::map<std::string, Times>;
  return *all;
}
std::mutex lock;

void CUPTIAPI give_buffer(uint8_t** buffer, size_t* size, size_t* records) {
  *size = size_t{8} << 20;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, *size));
  *records = 0;  // as many as there is room for
}

void CUPTIAPI take_buffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  const std::lock_guard guard(lock);
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) continue;
    const auto* kernel = reinterpret_cast<const CUpti_ActivityKernel9*>(record);
    Times& x = times()[kernel->name];
    const uint64_t time = kernel->end - kernel->start;
    ++x.launches, x.total += time, x.shortest = std::min(x.shortest, time);
  }
  std::free(buffer);
}

void write_times() {
  cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  const char* path = std::getenv("RNDN_KERNEL_TIMES");
  FILE* out = path ? std::fopen(path, "w") : nullptr;
  if (!out) return;
  const std::lock_guard guard(lock);
  for (const auto& [name, x] : times())
    std::fprintf(out, "%llu\t%llu\t%llu\t%s\n", static_cast<unsigned long long>(x.launches), static_cast<unsigned long long>(x.total),
                 static_cast<unsigned long long>(x.shortest), name.c_str());
  std::fclose(out);
}

}  // namespace

extern "C" int InitializeInjection() {
  cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
  cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  std::atexit(write_times);
  return 1;
}
