#include "runtime/simulator/simulator_device.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "assembler/isa/isa.h"

namespace rndn::runtime {
namespace {

using device::Address;
using device::Dim3;
using device::KernelHandle;
using device::ModuleHandle;

// What the host has; half of it where the process may not reserve address space freely (ulimit -v), since the simulator reserves its memory and its
// maps of what is valid in one piece each.
uint64_t host_memory() {
  rlimit limit{};
  uint64_t most = UINT64_MAX;
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) most = limit.rlim_cur / 2;
  long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGE_SIZE);
  return std::min(
      most, pages > 0 && size > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(size) : uint64_t{4} << 30);
}

class SimulatorDevice final : public device::Device {
 public:
  SimulatorDevice(const isa::Target& target, const sim::Options& options)
      : target_(target), options_(options), machine_(target.name, host_memory()) {
    info_ = {"simulator", std::string(target.name), "", simulated_multiprocessors, host_memory(), true};
  }
  ~SimulatorDevice() override {
    for (const device::Mapped& m : mapped_) std::free(m.host);
  }

  const device::Info& info() const override { return info_; }

  Result<Address> allocate(uint64_t bytes) override {
    ++host_calls_;
    return machine_.allocate(std::max<uint64_t>(bytes, 1));
  }
  Result<void> free(Address address) override { return machine_.free(address); }
  Result<void> copy_to_device(Address to, const void* from, uint64_t bytes) override {
    if (bytes) RETURN_IF_ERROR(host_call("a copy to the device"));
    return bytes ? machine_.write(to, from, bytes) : Result<void>();
  }
  Result<void> copy_to_host(void* to, Address from, uint64_t bytes) override {
    if (bytes) RETURN_IF_ERROR(host_call("a copy to the host"));
    return bytes ? machine_.read(from, to, bytes) : Result<void>();
  }
  Result<void> copy(Address to, Address from, uint64_t bytes) override {
    if (recorded_) {
      recorded_->push_back([this, to, from, bytes] { return copy(to, from, bytes); });
      return {};
    }
    std::vector<std::byte> block(std::min<uint64_t>(bytes, 4 << 20));
    for (uint64_t done = 0; done < bytes; done += block.size()) {
      const uint64_t part = std::min<uint64_t>(block.size(), bytes - done);
      RETURN_IF_ERROR(machine_.read(from + done, block.data(), part));
      RETURN_IF_ERROR(machine_.write(to + done, block.data(), part));
    }
    return {};
  }
  Result<void> fill(Address to, device::Filling value, uint64_t bytes) override {
    if (recorded_) {
      recorded_->push_back([this, to, value, bytes] { return fill(to, value, bytes); });
      return {};
    }
    return value.is_byte() ? machine_.fill(to, value.byte(), bytes) : machine_.fill_words(to, value.word, bytes / 4);
  }

  Result<device::Mapped> allocate_mapped(uint64_t bytes) override {
    bytes = (std::max<uint64_t>(bytes, 1) + 255) / 256 * 256;
    device::Mapped m;
    m.host = std::aligned_alloc(256, bytes);
    if (!m.host) return world_error("cannot allocate {} bytes of host memory", bytes);
    std::memset(m.host, 0, bytes);
    auto address = machine_.map(m.host, bytes);
    if (!address) {
      std::free(m.host);
      return address.error();
    }
    m.address = *address;
    mapped_.push_back(m);
    return m;
  }
  Result<void> free_mapped(const device::Mapped& memory) override {
    auto at =
        std::find_if(mapped_.begin(), mapped_.end(), [&](const device::Mapped& m) { return m.host == memory.host; });
    CHECK(at != mapped_.end());
    RETURN_IF_ERROR(machine_.unmap(memory.address));
    std::free(memory.host);
    mapped_.erase(at);
    return {};
  }

  Result<ModuleHandle> load_module(std::span<const std::byte> cubin) override {
    ASSIGN_OR_RETURN(sim::ModuleId id, machine_.load(cubin));
    return static_cast<ModuleHandle>(index(id));
  }
  Result<void> unload_module(ModuleHandle module) override {
    std::erase_if(kernels_, [&](const auto& k) { return k.second.module == static_cast<sim::ModuleId>(module); });
    return machine_.unload(static_cast<sim::ModuleId>(module));
  }
  Result<KernelHandle> find_kernel(ModuleHandle module, const std::string& name) override {
    ASSIGN_OR_RETURN(sim::KernelInfo info, machine_.kernel(static_cast<sim::ModuleId>(module), name));
    kernels_.emplace(next_kernel_, Kernel{static_cast<sim::ModuleId>(module), std::move(info)});
    return static_cast<KernelHandle>(next_kernel_++);
  }
  Result<device::KernelInfo> kernel_info(KernelHandle kernel) override {
    const sim::KernelInfo& k = get(kernel).info;
    return device::KernelInfo{k.registers, k.shared_bytes, k.local_bytes, 1024};
  }
  Result<uint32_t> blocks_per_multiprocessor(KernelHandle kernel, uint32_t block_size,
                                             uint32_t dynamic_shared) override {
    return sim::resident_blocks(target_, get(kernel).info, block_size, dynamic_shared);
  }

  Result<void> launch(KernelHandle kernel, Dim3 grid, Dim3 block, uint32_t dynamic_shared,
                      std::span<const std::byte> parameters) override {
    if (recorded_) {
      recorded_->push_back(
          [this, kernel, grid, block, dynamic_shared, area = std::vector(parameters.begin(), parameters.end())] {
            return launch(kernel, grid, block, dynamic_shared, area);
          });
      return {};
    }
    const Kernel& k = get(kernel);
    std::vector<sim::Report> reports;
    auto counters = machine_.launch(k.module, k.info.name, {grid.x, grid.y, grid.z}, {block.x, block.y, block.z},
                                    dynamic_shared, parameters, options_, &reports);
    if (!counters) return counters.error();
    if (counters->hazards)
      return world_error("the simulator found {} scheduling hazards in kernel `{}`{}", counters->hazards, k.info.name,
                         reports.empty() ? std::string() : ", the first: " + reports.front().message);
    last_ = {counters->warp_instructions, counters->thread_instructions, counters->global_load_sectors,
             counters->global_store_sectors, counters->mapped_load_sectors};
    return {};
  }
  Result<void> synchronize() override { return host_call("a wait"); }

  bool has_graphs() const override { return true; }
  Result<void> begin_graph() override {
    recorded_.emplace();
    return {};
  }
  Result<device::GraphHandle> end_graph() override {
    if (!recorded_) return Error{Fault::internal, "no graph is recorded"};
    graphs_.emplace(++last_graph_, *std::move(recorded_));
    recorded_.reset();
    return static_cast<device::GraphHandle>(last_graph_);
  }
  Result<void> launch_graph(device::GraphHandle graph) override {
    for (const auto& work : graphs_.at(static_cast<uint64_t>(graph))) RETURN_IF_ERROR(work());
    return {};
  }
  Result<void> free_graph(device::GraphHandle graph) override {
    graphs_.erase(static_cast<uint64_t>(graph));
    return {};
  }
  uint64_t host_calls() const override { return host_calls_; }

  Result<uint32_t> record_mark() override {
    RETURN_IF_ERROR(host_call("a mark"));
    marks_[next_mark_ % marks_.size()] = std::chrono::steady_clock::now();
    return next_mark_++;
  }
  Result<uint64_t> elapsed_ns(uint32_t from, uint32_t to) override {
    if (next_mark_ - from > marks_.size() || next_mark_ - to > marks_.size() || from >= next_mark_ || to >= next_mark_)
      return Error{Fault::internal, fmt::format("marks {} and {} are not among the last {}", from, to, marks_.size())};
    const auto passed = marks_[to % marks_.size()] - marks_[from % marks_.size()];
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(passed).count());
  }
  device::LaunchCounters last_launch() const override { return last_; }

 private:
  Result<void> host_call(const char* what) {
    ++host_calls_;
    if (recorded_) return Error{Fault::internal, fmt::format("{} while a graph is recorded", what)};
    return {};
  }
  struct Kernel {
    sim::ModuleId module;
    sim::KernelInfo info;
  };
  const Kernel& get(KernelHandle kernel) const { return kernels_.at(static_cast<uint64_t>(kernel)); }

  const isa::Target& target_;
  sim::Options options_;
  sim::Machine machine_;
  device::Info info_;
  std::map<uint64_t, Kernel> kernels_;  // by handle, of the modules that are loaded
  uint64_t next_kernel_ = 1;
  std::vector<device::Mapped> mapped_;
  std::array<std::chrono::steady_clock::time_point, 2048> marks_{};
  uint32_t next_mark_ = 0;
  device::LaunchCounters last_;
  using Work = std::vector<std::function<Result<void>()>>;
  std::optional<Work> recorded_;  // while a graph is recorded
  std::map<uint64_t, Work> graphs_;
  uint64_t last_graph_ = 0, host_calls_ = 0;
};

}  // namespace

Result<std::unique_ptr<device::Device>> open_simulator(const std::string& target, const sim::Options& options) {
  const isa::Target* found = isa::find_target(target);
  if (!found) {
    std::string known;
    for (const isa::Target& t : isa::targets()) known += fmt::format("{}{}", known.empty() ? "" : " ", t.name);
    return usage_error("there is no target `{}`; targets are {}", target, known);
  }
  return std::unique_ptr<device::Device>(std::make_unique<SimulatorDevice>(*found, options));
}

}  // namespace rndn::runtime
