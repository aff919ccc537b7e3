// A map from names to 32-bit numbers for the parser's hot path: open addressing, power-of-two size, keys are views into the source
// text, whose owner must live longer. No erase: a value of UINT32_MAX means "gone".
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "libraries/base/containers/text_hash.h"

namespace rndn::ptx {

class StringTable {
 public:
  // The value of `key`; inserted as UINT32_MAX when new. The reference holds until the next call.
  uint32_t& operator[](std::string_view key) {
    const uint32_t hash = text_hash(key);
    Slot* s = &find(key, hash);
    if (s->key.data()) return s->value;
    if (2 * ++used_ > slots_.size()) {
      grow();
      s = &find(key, hash);
    }
    *s = {key, hash, UINT32_MAX};
    return s->value;
  }
  uint32_t get(std::string_view key) const { return const_cast<StringTable*>(this)->find(key, text_hash(key)).value; }
  void clear() {
    if (used_ > 0) *this = StringTable();
  }

 private:
  struct Slot {
    std::string_view key;  // data() null: free
    uint32_t hash = 0;     // so that few texts are compared
    uint32_t value = UINT32_MAX;
  };
  Slot& find(std::string_view key, uint32_t hash) {
    const size_t mask = slots_.size() - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
      Slot& s = slots_[i];
      if ((s.hash == hash && same_text(s.key, key)) || s.key.data() == nullptr) return s;
    }
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& s : old)
      if (s.key.data()) find(s.key, s.hash) = s;
  }

  std::vector<Slot> slots_ = std::vector<Slot>(64);
  size_t used_ = 0;
};

}  // namespace rndn::ptx
