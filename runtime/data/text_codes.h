// Numbers of distinct texts, and their order.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
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

// The places of distinct texts in byte order. Most are told apart by their first eight bytes.
template <class Texts>
std::vector<uint32_t> places_of(const Texts& texts) {
  std::vector<std::pair<uint64_t, uint32_t>> order(texts.size());
  for (uint32_t k = 0; k < order.size(); ++k) {
    uint64_t first = 0;
    for (size_t i = 0; i < sizeof first; ++i)
      first = first << 8 | (i < texts[k].size() ? static_cast<uint8_t>(texts[k][i]) : 0);
    order[k] = {first, k};
  }
  std::sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : texts[a.second] < texts[b.second];
  });
  std::vector<uint32_t> places(order.size());
  for (uint32_t place = 0; place < order.size(); ++place) places[order[place].second] = place;
  return places;
}

// Puts these texts at these places.
template <class Texts>
std::vector<std::string> at_places(const Texts& texts, const std::vector<uint32_t>& places) {
  std::vector<std::string> sorted(places.size());
  for (size_t k = 0; k < places.size(); ++k) sorted[places[k]] = std::string(texts[k]);
  return sorted;
}

}  // namespace rndn::data
