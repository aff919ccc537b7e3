#include "runtime/memory/result_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "runtime/device/sharing.h"

namespace rndn::runtime {

using device::Address;

namespace {
thread_local ResultMemory* current_ = nullptr;
thread_local bool stay_ = false;
}  // namespace

ResultMemory::Scope::Scope(ResultMemory* memory, bool results_stay)
    : memory_(current_), stay_(runtime::stay_) {
  current_ = memory;
  runtime::stay_ = results_stay;
}
ResultMemory::Scope::~Scope() {
  current_ = memory_;
  runtime::stay_ = stay_;
}
ResultMemory* ResultMemory::current() { return current_; }
ResultMemory* ResultMemory::for_results() { return stay_ ? current_ : nullptr; }

// --- The memory

bool ResultMemory::takes(const device::Device& device, uint64_t bytes) const {
  return bytes != 0 && bytes >= options_.least_bytes &&
         (options_.simulated || !device.info().is_simulator);
}

Result<Address> ResultMemory::allocate(device::Device& device, uint64_t bytes) {
  collect();
  while (true) {
    auto made = device.allocate(bytes);
    if (made) {
      bytes_.fetch_add(bytes, std::memory_order_relaxed);
      return made;
    }
    if (made.error().cause != Cause::device_full || !give_up()) return made.error();
  }
}

std::shared_ptr<const data::Bytes> ResultMemory::keep(device::Device& device, Address from,
                                                      uint64_t bytes) {
  void* host = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (host == MAP_FAILED) return nullptr;
  std::shared_ptr<DeviceVector> vector(new DeviceVector(shared_from_this(), device, bytes));
  vector->host_ = static_cast<std::byte*>(host);
  auto address = allocate(device, bytes);
  if (!address) return nullptr;
  vector->address_ = *address;
  if (!device.copy(vector->address_, from, bytes)) return nullptr;  // the copy to the host says why
  {
    std::lock_guard lock(lists_);
    vectors_[vector->host_] = vector;
  }
  return std::make_shared<const data::Bytes>(std::span<std::byte>(vector->host_, bytes), vector);
}

Result<std::shared_ptr<DeviceVector>> ResultMemory::send(device::Device& device, const void* from,
                                                         uint64_t bytes) {
  std::lock_guard lock(in_use_);
  RETURN_IF_ERROR(device::attach(device));
  std::shared_ptr<DeviceVector> vector(new DeviceVector(shared_from_this(), device, bytes));
  ASSIGN_OR_RETURN(vector->address_, allocate(device, bytes));
  vector->pinned_ = true;
  RETURN_IF_ERROR(device.copy_to_device(vector->address_, from, bytes));
  RETURN_IF_ERROR(device.synchronize());
  return vector;
}

std::shared_ptr<DeviceVector> ResultMemory::find(const data::Value& value) {
  if (!value.is_vector() || !value.bytes) return nullptr;
  std::lock_guard lock(lists_);
  const auto at = vectors_.find(value.bytes->data());
  return at == vectors_.end() ? nullptr : at->second.lock();
}

bool ResultMemory::give_up() {
  std::vector<std::shared_ptr<DeviceVector>> all;
  {
    std::lock_guard lock(lists_);
    for (const auto& [host, vector] : vectors_)
      if (auto kept = vector.lock()) all.push_back(std::move(kept));
  }
  for (const auto& vector : all)
    if (vector->give_up()) return true;
  return false;
}

void ResultMemory::collect() {
  std::vector<Returned> gone;
  {
    std::lock_guard lock(lists_);
    gone.swap(returned_);
  }
  for (const Returned& r : gone) {
    (void)device::attach(*r.device);
    (void)r.device->free(r.address);
    bytes_.fetch_sub(r.bytes, std::memory_order_relaxed);
  }
}

// --- A vector

DeviceVector::~DeviceVector() {
  {
    std::lock_guard lock(memory_->lists_);
    if (host_) memory_->vectors_.erase(host_);
    if (address_) memory_->returned_.push_back({&device_, address_, bytes_});
  }
  if (host_) munmap(host_, bytes_);
  if (address_ && memory_->in_use_.try_lock()) {
    memory_->collect();
    memory_->in_use_.unlock();
  }
}

Result<void> DeviceVector::fetch() {
  if (is_fetched()) return {};
  std::lock_guard lock(memory_->in_use_);
  if (is_fetched()) return {};
  if (mprotect(host_, bytes_, PROT_READ | PROT_WRITE) != 0)
    return world_error("no memory for {} bytes of a result: {}", bytes_, std::strerror(errno));
  auto copied = read(host_, bytes_);
  if (!copied) {
    (void)mprotect(host_, bytes_, PROT_NONE);
    return copied;
  }
  (void)mprotect(host_, bytes_, PROT_READ);
  fetched_.store(true, std::memory_order_release);
  return {};
}

Result<void> DeviceVector::read(void* to, uint64_t bytes) {
  std::lock_guard lock(memory_->in_use_);
  if (is_fetched()) {
    std::memcpy(to, host_, bytes);
    return {};
  }
  RETURN_IF_ERROR(device::attach(device_));
  return device_.copy_to_host(to, address_, bytes);
}

Result<Address> DeviceVector::pin() {
  std::lock_guard lock(memory_->in_use_);
  if (!address_) {
    RETURN_IF_ERROR(device::attach(device_));
    ASSIGN_OR_RETURN(address_, memory_->allocate(device_, bytes_));
    auto sent = device_.copy_to_device(address_, host_, bytes_);
    if (sent) sent = device_.synchronize();
    if (!sent) {
      (void)device_.free(std::exchange(address_, 0));
      memory_->bytes_.fetch_sub(bytes_, std::memory_order_relaxed);
      return sent.error();
    }
  }
  pinned_ = true;
  return address_;
}

bool DeviceVector::give_up() {
  if (pinned_ || !address_ || !host_ || !fetch()) return false;
  (void)device_.free(std::exchange(address_, 0));
  memory_->bytes_.fetch_sub(bytes_, std::memory_order_relaxed);
  return true;
}

}  // namespace rndn::runtime
