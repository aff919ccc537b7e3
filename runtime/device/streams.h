// The second stream of a device that has one: columns are copied to it beside its work.
//
//   if (device::Streams* streams = device::streams_of(device)) streams->send(address, bytes, n);
//
// All other calls of device::Device are the work, in the order of the calls. Between the streams
// only events order what happens. Without a second stream everything is work. Calls are not
// thread-safe.
#pragma once
#include <cstdint>

#include "runtime/device/device.h"

namespace rndn::device {

enum class Stream : uint8_t { work, copies };
// That all has happened that was in a stream when it was recorded.
enum class Event : uint64_t { none };

class Streams {
 public:
  virtual ~Streams() = default;
  // As copy_to_device, in the stream of copies: it may happen at any time from now on, whatever the
  // work does. What waits for the work does not wait for it; free_mapped does for copies from there.
  virtual Result<void> send(Address to, const void* from, uint64_t bytes) = 0;
  virtual Result<Event> record_event(Stream stream) = 0;
  // What comes into the stream from now on happens after the event, which is the other stream's. A
  // graph cannot hold it.
  virtual Result<void> wait_event(Stream stream, Event event) = 0;
};

// Null: it has one stream.
inline Streams* streams_of(Device& device) { return dynamic_cast<Streams*>(&device); }

}  // namespace rndn::device
