// Bytes of a column or vector: on the heap, in memory that another object owns (a mapped file, a
// buffer of a caller), which is kept for as long, or still to come: made when somebody first reads
// them. Moved, never copied. What is on the heap is charged to the work that makes it
// (libraries/base/system/cancel.h).
#pragma once
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libraries/base/system/cancel.h"

namespace rndn::data {

// Where a cache keeps these bytes in other forms (cache.h). `origin`: the version of a column that has these bytes and no
// others; or only where they come from, which may have others each time.
struct FormsKept {
  std::string directory, name, origin;
  bool is_version = false;
};

class Bytes {
 public:
  Bytes() = default;
  explicit Bytes(size_t size, std::byte value = std::byte{0})
      : charge_(size), own_(size, value), bytes_(own_) {}
  Bytes(std::vector<std::byte> own)
      : charge_(own.capacity()), own_(std::move(own)), bytes_(own_) {}
  // `owner` keeps the memory.
  Bytes(std::span<std::byte> borrowed, std::shared_ptr<const void> owner)
      : owner_(std::move(owner)), bytes_(borrowed) {}
  // make(0, size) is called once, by the thread that reads them first; what it throws leaves them still to come. And
  // make(first, bytes), at any time, by any thread, for a part of them.
  using Make = std::function<std::shared_ptr<Bytes>(size_t first, size_t bytes)>;
  Bytes(size_t size, Make make) : later_(std::make_shared<Later>(size, std::move(make))) {}
  // These of them. Where they are still to come, so is the part, which then is made alone.
  static std::shared_ptr<Bytes> part(const std::shared_ptr<Bytes>& of, size_t first, size_t bytes) {
    if (of->are_here()) return std::make_shared<Bytes>(std::span(of->data() + first, bytes), of);
    return std::make_shared<Bytes>(bytes, [later = of->later_, first](size_t at, size_t n) { return later->make(first + at, n); });
  }
  static Bytes of(std::string text) {
    auto kept = std::make_shared<std::string>(std::move(text));
    Bytes bytes(std::as_writable_bytes(std::span(*kept)), kept);
    bytes.charge_ = MemoryCharge(kept->capacity());
    return bytes;
  }

  // The elements of a moved vector stay where they are.
  Bytes(Bytes&& other) noexcept
      : charge_(std::move(other.charge_)),
        own_(std::move(other.own_)),
        owner_(std::move(other.owner_)),
        bytes_(std::exchange(other.bytes_, {})),
        later_(std::move(other.later_)),
        forms_(std::move(other.forms_)) {}
  Bytes& operator=(Bytes&& other) noexcept {
    charge_ = std::move(other.charge_);
    own_ = std::move(other.own_);
    owner_ = std::move(other.owner_);
    bytes_ = std::exchange(other.bytes_, {});
    later_ = std::move(other.later_);
    forms_ = std::move(other.forms_);
    return *this;
  }

  std::byte* data() { return later_ ? later_->bytes().data() : bytes_.data(); }
  const std::byte* data() const { return later_ ? later_->bytes().data() : bytes_.data(); }
  size_t size() const { return later_ ? later_->size : bytes_.size(); }
  bool empty() const { return size() == 0; }
  // Made when somebody first reads them, which may have been; and whether they are there.
  bool is_on_demand() const { return later_ != nullptr; }
  bool are_here() const { return !later_ || later_->here; }
  std::byte& operator[](size_t i) { return data()[i]; }
  std::byte operator[](size_t i) const { return data()[i]; }
  const std::byte* begin() const { return data(); }
  const std::byte* end() const { return data() + size(); }
  std::string_view text() const { return {reinterpret_cast<const char*>(data()), size()}; }
  bool operator==(const Bytes& other) const { return text() == other.text(); }
  // Of bytes that do not change any more; null: nowhere. A part of them, or a copy, has none of its own.
  const FormsKept* forms() const { return forms_.get(); }
  void keep_forms(FormsKept where) { forms_ = std::make_shared<const FormsKept>(std::move(where)); }

 private:
  struct Later {
    Later(size_t s, Make m) : size(s), make(std::move(m)) {}
    Bytes& bytes() {
      std::call_once(once, [&] {
        made = make(0, size);
        here = true;
      });
      return *made;
    }
    const size_t size;
    std::once_flag once;
    const Make make;
    std::shared_ptr<Bytes> made;
    std::atomic<bool> here = false;
  };
  MemoryCharge charge_;
  std::vector<std::byte> own_;
  std::shared_ptr<const void> owner_;
  std::span<std::byte> bytes_;
  std::shared_ptr<Later> later_;  // null: they are here
  std::shared_ptr<const FormsKept> forms_;
};

}  // namespace rndn::data
