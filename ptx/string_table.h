// A map from names to 32-bit numbers for the parser's hot path: open addressing, power-of-two size, keys are views into the source
// text, whose owner must live longer. No erase: a value of UINT32_MAX means "gone".
#pragma once
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace rndn::ptx {

class StringTable {
 public:
  StringTable() : slots_(64) {}

  // The value of `key`; inserted as UINT32_MAX when new. The reference holds until the next call.
  uint32_t& operator[](std::string_view key) {
    if (2 * (used_ + 1) > slots_.size()) grow();
    Slot& s = find(key, hash(key));
    if (s.key.data() == nullptr) {
      s = {key, hash(key), UINT32_MAX};
      ++used_;
    }
    return s.value;
  }
  uint32_t get(std::string_view key) const {
    const Slot& s = const_cast<StringTable*>(this)->find(key, hash(key));
    return s.key.data() ? s.value : UINT32_MAX;
  }

 private:
  struct Slot {
    std::string_view key;  // data() null: free
    uint32_t hash = 0;
    uint32_t value = UINT32_MAX;
  };
  // Eight bytes a step with a multiply (the constant is 2^64 / golden ratio), the last of which overlap those before; good enough for names, not
  // for enemies: a flood of colliding names costs time quadratic in their number, as in any table without a secret.
  static uint32_t hash(std::string_view s) {
    const char* const p = s.data();
    const size_t n = s.size();
    uint64_t h = n;
    const auto mix = [&](uint64_t w) {
      h = (h ^ w) * 0x9E3779B97F4A7C15ull;
      h ^= h >> 29;
    };
    const auto load = [&]<class T>(T, size_t at) {
      T w;
      std::memcpy(&w, p + at, sizeof w);
      return uint64_t{w};
    };
    if (n >= 8) {
      for (size_t at = 0; at + 8 < n; at += 8) mix(load(uint64_t{}, at));
      mix(load(uint64_t{}, n - 8));
    } else if (n >= 4) {
      mix(load(uint32_t{}, 0) << 32 | load(uint32_t{}, n - 4));
    } else if (n > 0) {
      mix(load(uint8_t{}, 0) << 16 | load(uint8_t{}, n / 2) << 8 | load(uint8_t{}, n - 1));
    }
    return static_cast<uint32_t>(h >> 32);
  }
  Slot& find(std::string_view key, uint32_t h) {
    size_t mask = slots_.size() - 1;
    for (size_t i = h & mask;; i = (i + 1) & mask) {
      Slot& s = slots_[i];
      if (s.key.data() == nullptr || (s.hash == h && s.key == key)) return s;
    }
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& s : old)
      if (s.key.data()) find(s.key, s.hash) = s;
  }

  std::vector<Slot> slots_;
  size_t used_ = 0;
};

}  // namespace rndn::ptx
