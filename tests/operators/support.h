// Operators on the simulator, with its checks on: vectors go in from the host and come back. With RNDN_OPERATORS_DEVICE=cuda, on the first GPU: the
// tests that run on all targets then run there, and skip where there is none (gpu.cpp). With RNDN_OPERATORS_UNKNOWN=N memory takes results of unknown
// lengths of at most N bytes.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "assembler/assemble.h"
#include "assembler/isa/isa.h"
#include "libraries/operators/api.h"
#include "ptx/sums/exact_sum.h"
#include "runtime/simulator/simulator_device.h"

namespace rndn::operators::test {

inline bool on_gpu() {
  const char* device = std::getenv("RNDN_OPERATORS_DEVICE");
  return device && std::string_view(device) == "cuda";
}
// The targets that the tests of operators run on: one per set of encodings; or the GPU, whatever it is.
inline const std::vector<const char*> targets =
    on_gpu() ? std::vector<const char*>{"cuda"} : std::vector<const char*>{"sm_61", "sm_86", "sm_90", "sm_75"};
// gpu.cpp: a device of its own on the first GPU.
Result<std::unique_ptr<device::Device>> open_gpu();

// Frees everything at its end.
class TestMemory final : public Memory {
 public:
  explicit TestMemory(device::Device& device) : device_(device) {}
  ~TestMemory() override {
    for (Address a : addresses_) (void)device_.free(a);
    for (const auto& [a, bytes] : results_) (void)device_.free(a);
    for (const device::Mapped& m : mapped_) (void)device_.free_mapped(m);
  }
  Result<Address> temporary(uint64_t bytes) override {
    ASSIGN_OR_RETURN(Address a, device_.allocate(bytes));
    addresses_.push_back(a);
    return a;
  }
  Result<Address> result(uint64_t bytes) override {
    if (bytes > most_result) return world_error("a result of {} bytes", bytes).as(Cause::device_full);
    ASSIGN_OR_RETURN(Address a, device_.allocate(bytes));
    results_.emplace(a, bytes);
    return a;
  }
  void give_back(Address result) override {
    EXPECT_EQ(results_.erase(result), 1u);
    EXPECT_TRUE(device_.free(result).ok());
  }
  Result<device::Mapped> mapped(uint64_t bytes) override {
    ASSIGN_OR_RETURN(device::Mapped m, device_.allocate_mapped(bytes));
    mapped_.push_back(m);
    return m;
  }
  uint64_t most_unknown() const override { return most_without_length; }

  uint64_t result_bytes() const {
    uint64_t all = 0;
    for (const auto& [a, bytes] : results_) all += bytes;
    return all;
  }
  uint64_t most_result = UINT64_MAX;  // larger ones do not fit
  uint64_t most_without_length = [] {
    const char* const most = std::getenv("RNDN_OPERATORS_UNKNOWN");
    return most ? std::strtoull(most, nullptr, 10) : UINT64_MAX;
  }();

 private:
  device::Device& device_;
  std::vector<Address> addresses_;
  std::map<Address, uint64_t> results_;
  std::vector<device::Mapped> mapped_;
};

// A device, its operators and their memory.
struct Bench {
  std::unique_ptr<device::Device> device;
  std::unique_ptr<Operators> sql;
  std::unique_ptr<TestMemory> memory;
  device::Mapped sum_flags{};  // ptx/sums/exact_sum.h

  explicit Bench(const std::string& target, const Options& options = {}) {
    if (target == "cuda") {
      auto opened = open_gpu();
      EXPECT_TRUE(opened.ok()) << (opened.ok() ? "" : opened.error().message);
      use(std::move(*opened), options);
      return;
    }
    sim::Options checks;
    checks.check_hazards = checks.check_races = true;
    checks.check_uninitialised = true;
    auto opened = runtime::open_simulator(target, checks);
    EXPECT_TRUE(opened.ok()) << (opened.ok() ? "" : opened.error().message);
    use(std::move(*opened), options);
  }
  // Operators on that device.
  void use(std::unique_ptr<device::Device> to, const Options& options = {}) {
    memory.reset();
    sql.reset();
    device = std::move(to);
    const isa::Target* isa_target = isa::find_target(device->info().target);
    sql = std::make_unique<Operators>(
        *device,
        [isa_target](const ptx::Module& module) -> Result<std::vector<std::byte>> {
          Timings timings;
          assembler::Options to;
          to.target = isa_target;
          to.verify_passes = true;
          ASSIGN_OR_RETURN(assembler::Assembled made, assembler::assemble(module, to, timings));
          return std::move(made.cubin);
        },
        options);
    memory = std::make_unique<TestMemory>(*device);
    sum_flags = *memory->mapped(sums::flag_bytes);
  }
  // Of the calls so far.
  bool sums_are_sure() const { return !sums::must_run_again(static_cast<const uint32_t*>(sum_flags.host)); }

  // A vector with these elements. `spare`: room beyond them, the size on the device.
  template <class T>
  Vector put(Type type, const std::vector<T>& elements, uint64_t spare = 0) {
    EXPECT_EQ(width(type), sizeof(T));
    Vector v{.type = type, .capacity = elements.size() + spare};
    v.data = *memory->result(v.capacity * sizeof(T));
    EXPECT_TRUE(device->copy_to_device(v.data, elements.data(), elements.size() * sizeof(T)).ok());
    if (spare) {
      const uint64_t size = elements.size();
      v.size_slot = *memory->result(8);
      EXPECT_TRUE(device->copy_to_device(v.size_slot, &size, 8).ok());
    }
    return v;
  }
  template <class T>
  std::vector<T> get(const Vector& v) {
    EXPECT_EQ(width(v.type), sizeof(T));
    uint64_t size = v.capacity;
    if (v.size_slot) {
      EXPECT_TRUE(device->copy_to_host(&size, v.size_slot, 8).ok());
    }
    EXPECT_LE(size, v.capacity);
    std::vector<T> out(size);
    EXPECT_TRUE(device->copy_to_host(out.data(), v.data, size * sizeof(T)).ok());
    return out;
  }
  std::vector<std::vector<int64_t>> get(const Cells& cells) {
    std::vector<uint64_t> offsets(cells.count + 1);
    EXPECT_TRUE(device->copy_to_host(offsets.data(), cells.offsets, offsets.size() * 8).ok());
    const std::vector<int64_t> flat = get<int64_t>(cells.elements);
    std::vector<std::vector<int64_t>> out;
    EXPECT_EQ(offsets.front(), 0u);
    EXPECT_EQ(offsets.back(), flat.size());
    for (uint64_t j = 0; j < cells.count; ++j) {
      EXPECT_LE(offsets[j], offsets[j + 1]);
      EXPECT_LE(offsets[j + 1], flat.size());
      if (::testing::Test::HasFailure()) break;
      out.emplace_back(flat.begin() + static_cast<int64_t>(offsets[j]),
                       flat.begin() + static_cast<int64_t>(offsets[j + 1]));
    }
    return out;
  }
  Strings put(const std::vector<std::string>& strings) {
    std::string pad;
    std::vector<uint64_t> handles;
    Strings s{.count = strings.size()};
    for (const std::string& text : strings) {
      handles.push_back(pad.size() << 24 | text.size());
      pad += text;
    }
    s.pad_bytes = pad.size();
    pad.resize((pad.size() + 7) / 8 * 8);
    s.handles = *memory->result(handles.size() * 8);
    s.pad = *memory->result(pad.size());
    EXPECT_TRUE(device->copy_to_device(s.handles, handles.data(), handles.size() * 8).ok());
    EXPECT_TRUE(device->copy_to_device(s.pad, pad.data(), pad.size()).ok());
    return s;
  }
};

}  // namespace rndn::operators::test
