// Interning: equal strings get equal ids, so that names compare in one instruction and print without copies.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "libraries/base/arena.h"
#include "libraries/base/id.h"

namespace rndn {

enum class NameId : uint32_t {};

// Owns its texts (in an arena); views stay valid as long as the interner. Not thread-safe: one per compilation.
class Interner {
 public:
  NameId intern(std::string_view text) {
    if (2 * (texts_.size() + 1) > slots_.size()) grow();
    const uint64_t hash = hash_of(text);
    size_t at = hash & (slots_.size() - 1);
    for (; slots_[at].id != UINT32_MAX; at = (at + 1) & (slots_.size() - 1))
      if (slots_[at].hash == static_cast<uint32_t>(hash >> 32) && texts_[static_cast<NameId>(slots_[at].id)] == text)
        return static_cast<NameId>(slots_[at].id);
    const NameId id = texts_.add(arena_.copy(text));
    slots_[at] = {index(id), static_cast<uint32_t>(hash >> 32)};
    return id;
  }
  std::string_view text(NameId id) const { return texts_[id]; }
  size_t size() const { return texts_.size(); }

 private:
  struct Slot {
    uint32_t id = UINT32_MAX;  // UINT32_MAX: free
    uint32_t hash = 0;         // the upper half, so that few texts are compared
  };
  // FNV-1a (Fowler, Noll, Vo), with a last step that brings the upper bits down to the slot's number.
  static uint64_t hash_of(std::string_view text) {
    uint64_t h = 0xcbf29ce484222325;
    for (char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return h ^ h >> 32;
  }
  void grow() {
    slots_.assign(slots_.empty() ? 256 : 2 * slots_.size(), {});
    for (uint32_t i = 0; i < texts_.size(); ++i) {
      const uint64_t hash = hash_of(texts_[static_cast<NameId>(i)]);
      size_t at = hash & (slots_.size() - 1);
      while (slots_[at].id != UINT32_MAX) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = {i, static_cast<uint32_t>(hash >> 32)};
    }
  }

  Arena arena_;
  IdVector<NameId, std::string_view> texts_;
  std::vector<Slot> slots_;  // open addressing with linear probing, at most half full; a power of two in size
};

}  // namespace rndn
