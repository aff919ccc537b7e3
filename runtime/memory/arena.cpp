#include "runtime/memory/arena.h"

#include <algorithm>
#include <utility>

#include "libraries/base/system/cancel.h"
#include "runtime/memory/result_memory.h"

namespace rndn::runtime {

using device::Address;

namespace {
constexpr uint64_t largest_growth = 256 << 20;  // bytes of a page that holds more than one buffer
constexpr uint64_t pages_of_limit = 64;         // such a page has at most this part of the limit
uint64_t rounded(uint64_t bytes) { return (std::max<uint64_t>(bytes, 1) + 255) / 256 * 256; }
}  // namespace

uint64_t DeviceMemory::room() const {
  const ResultMemory* const results = ResultMemory::current();
  const uint64_t most = std::min(limit_, device_.info().memory_bytes), taken = in_use_ + (results ? results->bytes() : 0);
  return most - std::min(most, taken);
}

Result<Address> DeviceMemory::allocate(uint64_t bytes) {
  ResultMemory* const results = ResultMemory::current();  // which take their part of the device
  while (true) {
    const uint64_t taken = in_use_ + (results ? results->bytes() : 0);
    const bool within = taken <= limit_ && bytes <= limit_ - taken;
    Result<Address> made = within ? device_.allocate(bytes)
                                  : world_error("the limit of device memory is {} bytes", limit_).as(Cause::device_full);
    if (made) {
      in_use_ += bytes;
      peak_ = std::max(peak_, in_use_);
      return *made;
    }
    if (made.error().cause != Cause::device_full) return made.error();
    if (!(evict && evict()) && !(results && !spares_results && results->give_up()))
      return world_error("{} more bytes do not fit on {}: {} of its {} bytes are in use by this program ({})", bytes,
                         device_.info().name, in_use_, device_.info().memory_bytes, made.error().message)
          .as(Cause::device_full);
  }
}

void DeviceMemory::free(Address address, uint64_t bytes) {
  (void)device_.free(address);
  in_use_ -= std::min(bytes, in_use_);
}

Buffer::~Buffer() {
  if (owner) owner->release(*this);
}

Arena::~Arena() {
  for (Page& page : pages_) drop_page(page);
}

void Arena::drop_page(Page& page) {
  if (page.bytes == 0) return;
  if (options_.mapped)
    (void)memory_.device().free_mapped(page.memory);
  else
    memory_.free(page.memory.address, page.bytes);
  pages_bytes_ -= page.bytes;
  page.bytes = 0;
  page.free.clear();
}

bool Arena::trim() {
  bool any = false;
  for (Page& page : pages_) {
    const bool free = page.free.size() == 1 && page.free.begin()->second == page.bytes;
    if (free) drop_page(page);
    any |= free;
  }
  return any;
}

void Arena::rest() {
  for (Page& page : pages_)
    if (page.free.size() == 1 && page.free.begin()->second == page.bytes) page.used = 0;
}

Result<size_t> Arena::add_page(uint64_t bytes) {
  Page page;
  page.single = singly_;
  const uint64_t usual = std::clamp(pages_bytes_, options_.page_bytes, std::max(options_.page_bytes, largest_growth));
  const uint64_t most = options_.mapped ? usual : memory_.limit() / pages_of_limit / 256 * 256;
  page.bytes = singly_ ? bytes : std::max(bytes, std::min(usual, most));
  if (options_.mapped) {
    ASSIGN_OR_RETURN(page.memory, memory_.device().allocate_mapped(page.bytes));
  } else {
    auto made = memory_.allocate(page.bytes);
    if (!made && page.bytes > bytes) {  // not even room to grow
      page.bytes = bytes;
      made = memory_.allocate(page.bytes);
    }
    if (!made) return made.error();
    page.memory.address = *made;
  }
  pages_bytes_ += page.bytes;
  page.free.emplace(0, page.bytes);
  auto gap = std::find_if(pages_.begin(), pages_.end(), [](const Page& p) { return p.bytes == 0; });
  if (gap == pages_.end()) gap = pages_.insert(gap, Page{});
  *gap = std::move(page);
  return static_cast<size_t>(gap - pages_.begin());
}

Result<BufferPtr> Arena::allocate(uint64_t bytes) {
  bytes = rounded(bytes);
  auto take = [&](size_t index, std::map<uint64_t, uint64_t>::iterator at) {
    Page& page = pages_[index];
    const auto [offset, room] = *at;
    page.free.erase(at);
    if (room > bytes) page.free.emplace(offset + bytes, room - bytes);
    auto buffer = std::make_shared<Buffer>();
    buffer->address = page.memory.address + offset;
    buffer->bytes = bytes;
    if (options_.mapped) buffer->host = static_cast<char*>(page.memory.host) + offset;
    buffer->owner = this;
    buffer->page = index;
    buffer->used_before = offset < page.used;
    page.used = std::max(page.used, offset + bytes);
    in_use_ += bytes;
    ++allocations_;
    return buffer;
  };
  for (size_t p = singly_ ? pages_.size() : 0; p < pages_.size(); ++p)
    for (auto at = pages_[p].free.begin(); at != pages_[p].free.end(); ++at)
      if (at->second >= bytes) return take(p, at);
  ASSIGN_OR_RETURN(size_t page, add_page(bytes));
  return take(page, pages_[page].free.begin());
}

Result<BufferPtr> Arena::send(const void* from, uint64_t bytes) {
  ASSIGN_OR_RETURN(BufferPtr buffer, allocate(bytes));
  device::Streams* const streams = memory_.streams();
  if (!streams) {
    RETURN_IF_ERROR(memory_.device().copy_to_device(buffer->address, from, bytes));
    return buffer;
  }
  if (buffer->used_before) {
    ASSIGN_OR_RETURN(const device::Event used, streams->record_event(device::Stream::work));
    RETURN_IF_ERROR(streams->wait_event(device::Stream::copies, used));
  }
  // When it fails, or the work is cancelled, pieces of the copy may be on their way: whoever has the memory next waits for them, too.
  const Result<void> sent = errors_of([&] { return streams->send(buffer->address, from, bytes); });
  const Result<device::Event> arrival = streams->record_event(device::Stream::copies);
  if (arrival)
    buffer->arrival = *arrival;
  else
    buffer->owner = nullptr;  // nobody else gets it
  if (!sent) return sent.error();
  if (!arrival) return arrival.error();
  return buffer;
}

Result<void> Arena::arrive(Buffer& buffer) {
  if (buffer.arrival == device::Event::none) return {};
  RETURN_IF_ERROR(memory_.streams()->wait_event(device::Stream::work, buffer.arrival));
  buffer.arrival = device::Event::none;  // where the wait fails the next one waits
  return {};
}

void Arena::release(Buffer& buffer) {
  if (!arrive(buffer)) return;  // the same
  Page& page = pages_[buffer.page];
  in_use_ -= buffer.bytes;
  uint64_t offset = buffer.address - page.memory.address, bytes = buffer.bytes;
  auto after = page.free.lower_bound(offset);
  if (after != page.free.end() && after->first == offset + bytes) {
    bytes += after->second;
    after = page.free.erase(after);
  }
  if (after != page.free.begin()) {
    auto before = std::prev(after);
    if (before->first + before->second == offset) {
      offset = before->first;
      bytes += before->second;
      page.free.erase(before);
    }
  }
  page.free.emplace(offset, bytes);
  if ((page.single || !options_.keep_pages) && bytes == page.bytes) drop_page(page);
}

}  // namespace rndn::runtime
