#include "libraries/operators/library.h"

#include <algorithm>
#include <utility>

#include "libraries/base/errors/check.h"

namespace rndn::operators {

Library::~Library() {
  for (device::ModuleHandle module : modules_) (void)device_.unload_module(module);
  for (Address memory : {zeroed_, kept_})
    if (memory) (void)device_.free(memory);
}

ptx::Module Library::new_module() {
  ptx::Module module;
  module.version = 60;
  module.target = 60;
  return module;
}

Result<const Kernel*> Library::kernel(std::string_view name, const Build& build) {
  if (auto known = kernels_.find(name); known != kernels_.end()) return &known->second;
  Kernel made;
  made.name = name;
  std::vector<std::byte> own;
  std::span<const std::byte> cubin;
  if (const auto ready = find_ ? find_(name) : std::nullopt) {
    made.block_size = ready->block_size;
    cubin = ready->cubin;
  } else {
    ptx::Module module = new_module();
    made.block_size = build(module, name);
    made.is_late = true;
    ASSIGN_OR_RETURN(own, assemble_(module));
    cubin = own;
  }
  ASSIGN_OR_RETURN(device::ModuleHandle loaded, device_.load_module(cubin));
  modules_.push_back(loaded);
  ASSIGN_OR_RETURN(made.handle, device_.find_kernel(loaded, made.name));
  ASSIGN_OR_RETURN(made.info, device_.kernel_info(made.handle));
  ASSIGN_OR_RETURN(uint32_t blocks, device_.blocks_per_multiprocessor(made.handle, made.block_size, 0));
  made.resident_blocks = std::max(1u, blocks * device_.info().multiprocessors);
  return &kernels_.emplace(std::string(name), std::move(made)).first->second;
}

// Behind the counters: what Operators::differs says, and a word that kernels write and none reads.
static constexpr uint64_t differs_at = Library::zeroed_bytes, unread_at = differs_at + 8, all_zeroed_bytes = unread_at + 8;

Result<Question> Library::ask(std::string_view what, size_t words, Memory& memory) {
  Question question{.words = words};
  ASSIGN_OR_RETURN(question.found, memory.mapped(8 * words));
  question.foreseen = memory.foreseen(what, question.found, words);
  ASSIGN_OR_RETURN(const Address zeros, zeroed());
  question.differs = zeros + (question.foreseen ? differs_at : unread_at);
  return question;
}

void add(Arguments& a, const Question& question, size_t first, size_t count) {
  a.add(question.found.address + 8 * first).add(question.differs);
  for (size_t k = first; k < first + count; ++k) a.add(question.foreseen ? question.foreseen[k] : 0);
}

Result<const uint64_t*> Library::learn(const Question& question, Memory& memory) {
  if (question.foreseen) return question.foreseen;
  RETURN_IF_ERROR(wait(memory));
  return static_cast<const uint64_t*>(question.found.host);
}

Result<void> Library::wait(Memory& memory) {
  RETURN_IF_ERROR(device_.synchronize());
  return memory.waited();
}

Result<Address> Library::zeroed() {
  if (!zeroed_) {
    ASSIGN_OR_RETURN(zeroed_, device_.allocate(all_zeroed_bytes));
  }
  if (!is_zero_) RETURN_IF_ERROR(device_.fill(zeroed_, 0, all_zeroed_bytes));
  is_zero_ = true;
  return zeroed_;
}

Result<Address> Library::differs() {
  ASSIGN_OR_RETURN(const Address zeros, zeroed());
  return zeros + differs_at;
}

Result<Address> Library::kept(std::span<const std::byte> bytes) {
  const std::string_view key(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (const auto known = kept_at_.find(key); known != kept_at_.end()) return known->second;
  if (bytes.size() > kept_bytes - kept_used_) return Address{0};
  if (!kept_) {
    ASSIGN_OR_RETURN(kept_, device_.allocate(kept_bytes));
  }
  const Address at = kept_ + kept_used_;
  RETURN_IF_ERROR(device_.copy_to_device(at, bytes.data(), bytes.size()));
  kept_used_ = std::min((kept_used_ + bytes.size() + 15) / 16 * 16, kept_bytes);
  kept_at_.emplace(key, at);
  return at;
}

uint32_t Library::grid(const Kernel& kernel, uint64_t tiles) const {
  return static_cast<uint32_t>(std::clamp<uint64_t>(tiles, 1, kernel.resident_blocks));
}

Result<void> Library::launch(const Kernel& kernel, uint32_t grid, const Arguments& arguments, uint64_t floor_bytes,
                             uint32_t dynamic_shared) {
  const auto known = kernels_.find(kernel.name);
  Launch report{.kernel = kernel.name,
                .floor_bytes = floor_bytes,
                .registers = kernel.info.registers,
                .shared_bytes = kernel.info.shared_bytes + dynamic_shared,
                .is_late = std::exchange(known->second.is_late, false)};
  std::vector<uint64_t> words{0};
  ASSIGN_OR_RETURN(words[0], differs());
  words.insert(words.end(), arguments.words.begin(), arguments.words.end());
  if (measure) {
    ASSIGN_OR_RETURN(report.first_mark, device_.record_mark());
  }
  auto queued = device_.launch(kernel.handle, {grid, 1, 1}, {kernel.block_size, 1, 1}, dynamic_shared,
                               std::as_bytes(std::span(words)));
  if (!queued) {  // on the simulator a fault of a kernel is known at once, and the kernel is ours
    Error e = queued.error();
    if (e.cause == Cause::cancelled) return e;
    if (device_.info().is_simulator && e.fault == Fault::world) e.fault = Fault::internal;
    e.message = fmt::format("kernel `{}`: {}", kernel.name, e.message);
    return e;
  }
  if (measure) {
    ASSIGN_OR_RETURN(report.last_mark, device_.record_mark());
  }
  launches.push_back(report);
  return {};
}

}  // namespace rndn::operators
