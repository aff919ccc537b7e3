// Numbers of distinct texts.
#pragma once
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace rndn::data {

// Distinct texts, numbered in the order of their first occurrence. Open addressing: 8 bytes per slot, at most half of them taken.
class TextCodes {
 public:
  uint32_t add(std::string_view text) {
    return add(text, [](std::string_view same) { return same; });
  }
  // The same, where what is new is kept as `keep` gives it.
  template <class Keep>
  uint32_t add(std::string_view text, Keep&& keep) {
    const auto hash = static_cast<uint32_t>(hash_of(text));
    for (size_t at = hash & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
      Slot& slot = slots_[at];
      if (slot.code == free) {
        const auto code = static_cast<uint32_t>(texts_.size());
        slot = {hash, code};
        texts_.push_back(keep(text));
        if (texts_.size() * 2 > slots_.size()) grow();
        return code;
      }
      if (slot.hash == hash && texts_[slot.code] == text) return slot.code;
    }
  }
  const std::vector<std::string_view>& texts() const { return texts_; }

 private:
  static constexpr uint32_t free = UINT32_MAX;
  struct Slot {
    uint32_t hash = 0, code = free;
  };

  static uint64_t hash_of(std::string_view text) {
    constexpr uint64_t odd = 0x9e3779b97f4a7c15;
    auto mix = [](uint64_t h, uint64_t word) {
      h = (h ^ word) * odd;
      return h ^ h >> 32;
    };
    uint64_t h = text.size() * odd, word = 0;
    for (; text.size() > 8; text.remove_prefix(8)) {
      std::memcpy(&word, text.data(), 8);
      h = mix(h, word);
    }
    word = 0;
    for (char c : text) word = word << 8 | static_cast<uint8_t>(c);
    return mix(h, word);
  }

  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.code == free) continue;
      size_t at = slot.hash & (slots_.size() - 1);
      while (slots_[at].code != free) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = slot;
    }
  }

  std::vector<Slot> slots_ = std::vector<Slot>(64);
  std::vector<std::string_view> texts_;
};

}  // namespace rndn::data
