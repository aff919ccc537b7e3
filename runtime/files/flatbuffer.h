// Reading of FlatBuffers (flatbuffers.dev/internals) of unknown origin. Private to this folder.
//
//   Flat flat(bytes);
//   FlatTable message = flat.root();
//   int64_t length = message.number<int64_t>(3, 0);     // its field 3; 0 where it has none
//   if (flat.is_bad()) ...                              // something lay beyond the bytes
//
// What lies beyond the bytes is zero or empty, and is remembered.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace rndn::files {

class FlatTable;

class Flat {
 public:
  explicit Flat(std::span<const std::byte> bytes) : bytes_(bytes) {}
  Flat(const Flat&) = delete;
  FlatTable root();
  bool is_bad() const { return is_bad_; }

  template <class T>
  T get(uint64_t at) {
    T value{};
    if (at > bytes_.size() || bytes_.size() - at < sizeof(T))
      is_bad_ = true;
    else
      std::memcpy(&value, bytes_.data() + at, sizeof(T));
    return value;
  }
  std::string_view text(uint64_t at, uint64_t size) {
    if (at > bytes_.size() || bytes_.size() - at < size) return is_bad_ = true, std::string_view();
    return {reinterpret_cast<const char*>(bytes_.data()) + at, size};
  }

 private:
  std::span<const std::byte> bytes_;
  bool is_bad_ = false;
};

struct FlatVector {
  Flat* flat = nullptr;
  uint64_t at = 0, count = 0;
  // Element i, of structs of `size` bytes: the field at `offset`.
  template <class T>
  T number(uint64_t i, uint64_t size = sizeof(T), uint64_t offset = 0) const {
    return flat->get<T>(at + i * size + offset);
  }
  FlatTable table(uint64_t i) const;
};

class FlatTable {
 public:
  FlatTable() = default;
  FlatTable(Flat* flat, uint64_t at) : flat_(flat), at_(at) {}
  bool is_there() const { return flat_ != nullptr; }

  template <class T>
  T number(unsigned field, T otherwise) const {
    const uint64_t at = place(field);
    return at ? flat_->get<T>(at) : otherwise;
  }
  FlatTable table(unsigned field) const {
    const uint64_t at = target(field);
    return at ? FlatTable(flat_, at) : FlatTable();
  }
  std::string_view text(unsigned field) const {
    const uint64_t at = target(field);
    return at ? flat_->text(at + 4, flat_->get<uint32_t>(at)) : std::string_view();
  }
  // `size`: bytes of an element.
  FlatVector vector(unsigned field, uint64_t size) const {
    const uint64_t at = target(field);
    if (!at) return {flat_, 0, 0};
    const uint64_t count = flat_->get<uint32_t>(at);
    (void)flat_->text(at + 4, count * size);  // they must all be there
    return {flat_, at + 4, flat_->is_bad() ? 0 : count};
  }

 private:
  uint64_t place(unsigned field) const {
    if (!flat_) return 0;
    const uint64_t table = at_ - static_cast<uint64_t>(int64_t{flat_->get<int32_t>(at_)});
    if (4 + field * 2 + 2 > flat_->get<uint16_t>(table)) return 0;
    const uint16_t offset = flat_->get<uint16_t>(table + 4 + field * 2);
    return offset ? at_ + offset : 0;
  }
  uint64_t target(unsigned field) const {
    const uint64_t at = place(field);
    return at ? at + flat_->get<uint32_t>(at) : 0;
  }

  Flat* flat_ = nullptr;
  uint64_t at_ = 0;
};

inline FlatTable Flat::root() { return {this, get<uint32_t>(0)}; }
inline FlatTable FlatVector::table(uint64_t i) const {
  const uint64_t element = at + i * 4;
  return {flat, element + flat->get<uint32_t>(element)};
}

}  // namespace rndn::files
