// CHECK as the shared library has it: a failure is an exception, which the API answers with RNDN_ASSEMBLER_INTERNAL (memory_test.cpp). That the library
// has this definition and not the one that ends the process is seen from its imports (c_api_test.cpp).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "libraries/base/errors/check.h"

namespace {

TEST(Checks, AFailureIsThrownWithItsPlaceAndMessage) {
  const int two = 2;
  try {
    CHECK(two == 3, "two is {}", two);
    FAIL() << "nothing was thrown";
  } catch (const std::logic_error& e) {
    EXPECT_THAT(e.what(), testing::MatchesRegex(".*checks_test.cpp:[0-9]+: two == 3: two is 2"));
  }
}

}  // namespace
