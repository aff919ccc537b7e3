// libFuzzer target for what reads Arrow's C streams: the bytes decide what a stream has and what is wrong
// with it (tests/data/random_stream.h), and the first whether anything is.
#include "tests/data/random_stream.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  GTEST_FLAG_SET(throw_on_failure, true);  // which ends the fuzzer
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size == 0) return 0;
  rndn::testing::Choices choices(std::span(bytes + 1, size - 1));
  rndn::data::read_random_stream(choices, bytes[0] & 1);
  return 0;
}
