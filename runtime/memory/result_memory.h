// Results that stay on the device until somebody reads them on the host, or another library takes
// them where they are.
//
//   auto memory = std::make_shared<ResultMemory>(keeps_the_device, ResultMemory::Options());
//   {
//     const ResultMemory::Scope scope(memory.get(), true);
//     session.run(..);                      // large vectors of numbers in its results stay there
//   }
//   if (DeviceVector* v = memory->find(value)) v->fetch();   // now value.as<T>() may be read
//
// The value of such a vector has addresses of the host from the beginning, which nobody may read
// before `fetch`: the pages are reserved and cannot be read, so that who forgets it stops there and
// gets no wrong numbers. Small vectors arrive with the wait at a run's end and stay on the host.
//
// A vector is a copy in memory of its own (a copy on the device costs a hundredth of one to the
// host), so that runs, plans, engines and sessions may go before it. Its memory goes back to the
// device with its last owner, in whatever thread; where a call uses the device just then, at the end
// of that call. The driver's call that frees memory waits for all work of the device, that of other
// libraries, too. A full device takes back what no other library holds: it goes to the host.
//
// The device has one user at a time: who holds `in_use`.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/data/value.h"
#include "runtime/device/device.h"

namespace rndn::runtime {

class ResultMemory;

class DeviceVector {
 public:
  ~DeviceVector();  // in any thread
  DeviceVector(const DeviceVector&) = delete;

  uint64_t bytes() const { return bytes_; }
  bool is_fetched() const { return fetched_.load(std::memory_order_acquire); }
  // Copies it to the host; once.
  Result<void> fetch();
  // The first bytes, elsewhere.
  Result<void> read(void* to, uint64_t bytes);
  // Where it lies on the device, and stays for as long as this object lives. Complete: no stream has
  // to wait for it.
  Result<device::Address> pin();

 private:
  friend class ResultMemory;
  DeviceVector(std::shared_ptr<ResultMemory> memory, device::Device& device, uint64_t bytes)
      : memory_(std::move(memory)), device_(device), bytes_(bytes) {}
  bool give_up();

  const std::shared_ptr<ResultMemory> memory_;
  device::Device& device_;
  const uint64_t bytes_;
  device::Address address_ = 0;  // 0: given up
  std::byte* host_ = nullptr;    // reserved; null: it has never been a value of the host
  bool pinned_ = false;
  std::atomic<bool> fetched_{false};
};

class ResultMemory : public std::enable_shared_from_this<ResultMemory> {
 public:
  struct Options {
    // Vectors of fewer bytes go to the host at once: a wait and a copy through mapped memory, which
    // is what an allocation of the driver's costs.
    uint64_t least_bytes = 4 << 20;
    bool simulated = false;  // also on the simulator, whose memory is the host's: for tests
  };
  // `keeper` keeps the device.
  ResultMemory(std::shared_ptr<const void> keeper, Options options)
      : keeper_(std::move(keeper)), options_(options) {}
  ~ResultMemory() { collect(); }

  std::recursive_mutex& in_use() { return in_use_; }
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }  // on the device

  // Whether such a vector stays on the device.
  bool takes(const device::Device& device, uint64_t bytes) const;
  // A copy of what lies there, in the device's stream of work. Null: there is no room.
  std::shared_ptr<const data::Bytes> keep(device::Device& device, device::Address from,
                                          uint64_t bytes);
  // A copy of the host's.
  Result<std::shared_ptr<DeviceVector>> send(device::Device& device, const void* from,
                                             uint64_t bytes);
  // What a value's elements are on the device; null: they are on the host.
  std::shared_ptr<DeviceVector> find(const data::Value& value);
  // Brings a vector to the host that no other library holds, and frees it; false: there is none.
  bool give_up();
  // Frees what has no owner any more.
  void collect();

  // What this thread's runs do with their results. Scopes nest.
  class Scope {
   public:
    Scope(ResultMemory* memory, bool results_stay);
    ~Scope();
    Scope(const Scope&) = delete;

   private:
    ResultMemory* const memory_;
    const bool stay_;
  };
  // Results of runs within go to the host: they are not the last of their query.
  class OnHost {
   public:
    OnHost() : scope_(current(), false) {}

   private:
    Scope scope_;
  };
  static ResultMemory* current();   // of this thread; null: none
  static ResultMemory* for_results();  // the same; null as well where results go to the host

 private:
  friend class DeviceVector;
  Result<device::Address> allocate(device::Device& device, uint64_t bytes);

  const std::shared_ptr<const void> keeper_;
  const Options options_;
  std::recursive_mutex in_use_;
  std::atomic<uint64_t> bytes_{0};
  struct Returned {
    device::Device* device;
    device::Address address;
    uint64_t bytes;
  };
  std::mutex lists_;  // of what follows; nothing else is taken while it is held
  std::vector<Returned> returned_;
  std::map<const std::byte*, std::weak_ptr<DeviceVector>> vectors_;  // by their bytes on the host
};

}  // namespace rndn::runtime
