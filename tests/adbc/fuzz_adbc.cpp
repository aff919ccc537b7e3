// libFuzzer target for the ADBC driver: the bytes decide which of its functions are called with what,
// in which order (random_calls.h), six bytes a call.
#include <algorithm>
#include <cstdlib>
#include <span>

#include "tests/adbc/random_calls.h"

extern "C" AdbcDriverInitFunc AdbcDriverInit;

namespace {
AdbcDriver driver{};
}

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  GTEST_FLAG_SET(throw_on_failure, true);  // which ends the fuzzer
  if (AdbcDriverInit(ADBC_VERSION_1_1_0, &driver, nullptr) != ADBC_STATUS_OK) std::abort();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  rndn::testing::Choices choices(std::span(bytes, size));
  rndn::testing::Calls(driver, choices).run(static_cast<int>(std::min<size_t>(size / 6, 200)));
  return 0;
}
