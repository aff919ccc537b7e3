// What decides about a random input: a seed, or the bytes that a fuzzer gives (two a number), and
// behind these the same numbers each time.
#pragma once
#include <cstdint>
#include <random>
#include <span>

namespace rndn::testing {

class Choices {
 public:
  explicit Choices(unsigned seed) : random_(seed) {}
  explicit Choices(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  uint32_t operator()() {
    if (bytes_.size() < 2) {
      bytes_ = {};
      return static_cast<uint32_t>(random_());
    }
    const uint32_t number = bytes_[0] | static_cast<uint32_t>(bytes_[1]) << 8;
    bytes_ = bytes_.subspan(2);
    return number;
  }

 private:
  std::span<const uint8_t> bytes_;
  std::mt19937 random_;
};

}  // namespace rndn::testing
