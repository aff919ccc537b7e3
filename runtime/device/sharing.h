// What other libraries of the process, and other threads, need to use a device's memory.
//
//   if (device::Sharing* sharing = device::sharing_of(device)) sharing->attach();
//
// A GPU's context belongs to a thread until another one attaches itself; what is in the memory stays
// where it is. One thread at a time may call the device, as before.
#pragma once
#include "runtime/device/device.h"

namespace rndn::device {

class Sharing {
 public:
  virtual ~Sharing() = default;
  // The calling thread may use the device from now on.
  virtual Result<void> attach() = 0;
  // The driver's number of the GPU, from 0.
  virtual int ordinal() const = 0;
};

// Null: the device's memory is of no use to other libraries (the simulator), and any thread may call.
inline Sharing* sharing_of(Device& device) { return dynamic_cast<Sharing*>(&device); }
inline Result<void> attach(Device& device) {
  Sharing* sharing = sharing_of(device);
  return sharing ? sharing->attach() : Result<void>();
}

}  // namespace rndn::device
