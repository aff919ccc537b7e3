// How much of a long test runs in the gate: a sample of its cases, and all of them where RNDN_EVERY_CASE
// is set, as in the slow tests `<component>.every_case`.
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>

namespace rndn::test {

inline bool every_case() { return std::getenv("RNDN_EVERY_CASE") != nullptr; }

// How many of something: `few` in the gate.
inline uint64_t in_the_gate(uint64_t few, uint64_t all) { return every_case() ? all : few; }

// Of each `step` cases in a row one, the first of all among them: which one it is changes, so that of no loop within others the same cases are left out each time.
class Sample {
 public:
  explicit Sample(uint64_t step) : step_(step) {}
  Sample(const Sample&) = delete;
  ~Sample() { EXPECT_GT(taken_, 0u) << "a sample without a case"; }

  bool has_next() {
    const uint64_t row = next_ / step_, place = next_ % step_;
    ++next_;
    if (!every_case() && place != (row * 0x9e3779b97f4a7c15 >> 32) % step_) return false;
    ++taken_;
    return true;
  }

 private:
  uint64_t step_, next_ = 0, taken_ = 0;
};

}  // namespace rndn::test
