// What kernels run on. Implemented by runtime/cuda (the CUDA driver) and by the simulator's adapter in runtime/.
//
// All work of a device is in one stream: operations happen in the order of the calls. Calls are not thread-safe, except
// where said.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libraries/base/errors/result.h"

namespace rndn::device {

using Address = uint64_t;  // in device memory; 0 = none
enum class ModuleHandle : uint64_t {};
enum class KernelHandle : uint64_t {};
enum class GraphHandle : uint64_t {};

struct Info {
  std::string name;    // "NVIDIA H200", "simulator"
  std::string target;  // "sm_90"; for GPUs the cubin target to assemble for (sm_89 runs sm_89 cubins)
  std::string driver;  // version, or empty
  uint32_t multiprocessors = 1;
  uint64_t memory_bytes = 0;
  bool is_simulator = false;
};

struct KernelInfo {
  uint32_t registers = 0, shared_bytes = 0, local_bytes = 0, max_threads = 1024;
};

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
};

struct LaunchCounters {  // simulator only; zeros elsewhere
  uint64_t warp_instructions = 0, thread_instructions = 0, load_sectors = 0, store_sectors = 0;
  uint64_t mapped_load_sectors = 0;  // of load_sectors, of mapped memory
};

// Pinned host memory that kernels reach at a device address: small results arrive in it without a copy, and copies from it read it when they happen.
struct Mapped {
  void* host = nullptr;
  Address address = 0;
};

// What memory is filled with: a byte, or words of 4 bytes, where there are whole ones.
struct Filling {
  uint32_t word = 0;
  constexpr Filling(uint8_t byte) : word(0x01010101u * byte) {}
  static constexpr Filling words(uint32_t word) {
    Filling f(0);
    f.word = word;
    return f;
  }
  constexpr uint8_t byte() const { return static_cast<uint8_t>(word); }
  constexpr bool is_byte() const { return word == 0x01010101u * byte(); }
  friend constexpr bool operator==(const Filling&, const Filling&) = default;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const Info& info() const = 0;

  virtual Result<Address> allocate(uint64_t bytes) = 0;  // 256-byte aligned; contents undefined
  virtual Result<void> free(Address address) = 0;
  virtual Result<void> copy_to_device(Address to, const void* from, uint64_t bytes) = 0;
  virtual Result<void> copy_to_host(void* to, Address from, uint64_t bytes) = 0;  // waits
  virtual Result<void> copy(Address to, Address from, uint64_t bytes) = 0;        // on the device; no overlap
  virtual Result<void> fill(Address to, Filling value, uint64_t bytes) = 0;

  // Zeroed, 256-byte aligned. What kernels wrote is there after synchronize.
  virtual Result<Mapped> allocate_mapped(uint64_t bytes) = 0;
  virtual Result<void> free_mapped(const Mapped& memory) = 0;

  // Fails (fault world) for a cubin of another target, and (fault input) for one that is no cubin.
  virtual Result<ModuleHandle> load_module(std::span<const std::byte> cubin) = 0;
  // Compiles PTX text with the driver's own compiler; level: 0..4 as ptxas counts.
  virtual Result<ModuleHandle> load_ptx(const std::string& ptx, int level);
  virtual Result<void> unload_module(ModuleHandle module) = 0;
  virtual Result<KernelHandle> find_kernel(ModuleHandle module, const std::string& name) = 0;
  virtual Result<KernelInfo> kernel_info(KernelHandle kernel) = 0;
  // Blocks of this kernel that fit on one multiprocessor at once; >= 1.
  virtual Result<uint32_t> blocks_per_multiprocessor(KernelHandle kernel, uint32_t block_size,
                                                     uint32_t dynamic_shared) = 0;

  // parameters: the kernel's parameter area (all our kernels take u64s, 8 bytes each, in order). Asynchronous.
  // A fault of the kernel may be reported by a later call.
  virtual Result<void> launch(KernelHandle kernel, Dim3 grid, Dim3 block, uint32_t dynamic_shared,
                              std::span<const std::byte> parameters) = 0;
  virtual Result<void> synchronize() = 0;

  // Work that repeats. What is queued between begin_graph and end_graph (launches, copies and fills on the device) does not run but is kept, with its
  // addresses and parameters; every launch_graph queues all of it. Meanwhile, what a graph cannot hold fails (fault internal): copies from and to the
  // host, waits, marks.
  virtual bool has_graphs() const { return false; }
  virtual Result<void> begin_graph();
  virtual Result<GraphHandle> end_graph();
  virtual Result<void> launch_graph(GraphHandle graph);
  virtual Result<void> free_graph(GraphHandle graph);
  // How many calls there have been that a graph cannot hold, and allocations.
  virtual uint64_t host_calls() const { return 0; }

  // Device time of the last launches: marks are recorded in the stream; elapsed waits for both. At least the last 1024
  // marks are kept.
  virtual Result<uint32_t> record_mark() = 0;
  virtual Result<uint64_t> elapsed_ns(uint32_t from_mark, uint32_t to_mark) = 0;
  virtual LaunchCounters last_launch() const { return {}; }
};

}  // namespace rndn::device
