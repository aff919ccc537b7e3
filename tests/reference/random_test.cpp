// Random programs: what the frontend infers is what the interpreter gives, and a program printed with its types gives the same.
#include <gtest/gtest.h>

#include "tests/frontend/random_program.h"
#include "tests/reference/random_run.h"
#include "tests/support/every_case.h"

namespace rndn::reference::testing {
namespace {

TEST(RandomPrograms, GiveValuesOfTheirTypes) {
  size_t finished = 0, results = 0;
  const uint64_t programs = rndn::test::in_the_gate(60, 150);
  for (uint32_t seed = 1; seed <= programs; ++seed) {
    std::string complaint, culprit;
    auto accept = [&](const std::string& text) {
      Ran ran = run_bounded(text);
      if (!ran.complaint.empty() && complaint.empty()) complaint = ran.complaint, culprit = text;
      return ran.finished;  // statements that fail when they run are drawn again
    };
    std::string text = hir::random_program(seed, 30, accept);
    ASSERT_EQ(complaint, "") << "seed " << seed << ":\n" << culprit;
    Ran ran = run_bounded(text);
    finished += ran.finished;
    results += !ran.results.empty();
    Ran again = run_bounded(ran.typed_text);
    EXPECT_TRUE(again.typed) << ran.typed_text;
    EXPECT_EQ(again.results, ran.results) << text;
    EXPECT_EQ(again.error, ran.error) << text;
  }
  EXPECT_GT(finished, programs * 14 / 15);
  EXPECT_GT(results, programs * 2 / 3);
}

}  // namespace
}  // namespace rndn::reference::testing
