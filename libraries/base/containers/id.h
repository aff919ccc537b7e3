// Typed indices: an entity is named by its position in the vector that owns it.
//
//   enum class BlockId : uint32_t {};
//   IdVector<BlockId, Block> blocks;
//   BlockId b = blocks.add({});
//   blocks[b].first = ...;
//
// Ids are 32-bit, print as numbers, survive reallocation of the vector, and do not mix with other ids.
// `none<Id>()` is the sentinel for "no entity".
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <type_traits>
#include <utility>
#include <vector>

namespace rndn {

template <class Id>
concept IdType = std::is_enum_v<Id> && std::is_same_v<std::underlying_type_t<Id>, uint32_t>;

template <IdType Id>
constexpr uint32_t index(Id id) {
  return static_cast<uint32_t>(id);
}

template <IdType Id>
constexpr Id none() {
  return static_cast<Id>(UINT32_MAX);
}

template <IdType Id>
constexpr bool is_none(Id id) {
  return index(id) == UINT32_MAX;
}

// A vector whose elements are named by `Id`. Also serves as a dense side table: `IdVector<BlockId, Fact>
// facts(blocks.size())`.
template <IdType Id, class T, class Items = std::vector<T>>
class IdVector {
 public:
  IdVector() = default;
  explicit IdVector(size_t n, const T& value = T()) : items_(n, value) {}

  Id add(T&& value) {
    items_.push_back(std::move(value));
    return static_cast<Id>(items_.size() - 1);
  }
  Id add(const T& value) {
    items_.push_back(value);
    return static_cast<Id>(items_.size() - 1);
  }
  typename Items::reference operator[](Id id) { return items_[index(id)]; }
  typename Items::const_reference operator[](Id id) const { return items_[index(id)]; }

  size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  void resize(size_t n, const T& value = T()) { items_.resize(n, value); }
  void clear() { items_.clear(); }
  Id next_id() const { return static_cast<Id>(items_.size()); }

  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  Items& raw() { return items_; }
  const Items& raw() const { return items_; }

 private:
  Items items_;
};

// Elements stay where they are when others are added: references to them may be held meanwhile.
template <IdType Id, class T>
using StableIdVector = IdVector<Id, T, std::deque<T>>;

}  // namespace rndn
