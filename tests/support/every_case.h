// How much of a long test runs in the gate: a sample of its cases, and all of them where RNDN_EVERY_CASE
// is set, as in the slow tests `<component>.every_case`.
#pragma once
#include <cstdint>
#include <cstdlib>

namespace rndn::test {

inline bool every_case() { return std::getenv("RNDN_EVERY_CASE") != nullptr; }

// How many of something: `few` in the gate.
inline uint64_t in_the_gate(uint64_t few, uint64_t all) { return every_case() ? all : few; }

// Of a row of cases the first and each `step`-th after it.
class Sample {
 public:
  explicit Sample(uint64_t step) : step_(step) {}
  bool has_next() { return next_++ % step_ == 0 || every_case(); }

 private:
  uint64_t step_, next_ = 0;
};

}  // namespace rndn::test
