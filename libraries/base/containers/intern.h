// Interning: equal strings get equal ids, so that names compare in one instruction and print without copies.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libraries/base/containers/arena.h"
#include "libraries/base/containers/id.h"
#include "libraries/base/containers/text_hash.h"

namespace rndn {

enum class NameId : uint32_t {};

// Owns its texts (in an arena); views stay valid as long as the interner. Not thread-safe: one per compilation.
class Interner {
 public:
  NameId intern(std::string_view text) {
    if (2 * (texts_.size() + 1) > slots_.size()) grow();
    const uint32_t hash = text_hash(text);
    size_t at = hash & (slots_.size() - 1);
    for (; slots_[at].id != UINT32_MAX; at = (at + 1) & (slots_.size() - 1))
      if (slots_[at].hash == hash && same_text(texts_[static_cast<NameId>(slots_[at].id)], text))
        return static_cast<NameId>(slots_[at].id);
    const NameId id = texts_.add(arena_.copy(text));
    slots_[at] = {index(id), hash};
    return id;
  }
  std::string_view text(NameId id) const { return texts_[id]; }
  size_t size() const { return texts_.size(); }

 private:
  struct Slot {
    uint32_t id = UINT32_MAX;  // UINT32_MAX: free
    uint32_t hash = 0;         // so that few texts are compared, and none when the table grows
  };
  void grow() {
    const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(slots_.empty() ? 512 : 2 * slots_.size()));
    texts_.raw().reserve(slots_.size() / 2);
    for (const Slot& slot : old) {
      if (slot.id == UINT32_MAX) continue;
      size_t at = slot.hash & (slots_.size() - 1);
      while (slots_[at].id != UINT32_MAX) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = slot;
    }
  }

  Arena arena_;
  IdVector<NameId, std::string_view> texts_;
  std::vector<Slot> slots_;  // open addressing with linear probing, at most half full; a power of two in size
};

}  // namespace rndn
