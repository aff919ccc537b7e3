// Random Arrow streams, right ones and wrong ones (random_stream.h), of some thousand seeds.
#include "tests/data/random_stream.h"
#include "tests/support/random_seeds.h"

namespace rndn::data::random_arrow_test {
namespace {

TEST(RandomArrow, StreamsAreReadOrRefused) {
  uint64_t right = 0, refused = 0;
  const unsigned rounds = rndn::testing::random_seeds(3000);
  for (unsigned seed = 0; seed < rounds && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    rndn::testing::Choices random(seed);
    const StreamRun run = read_random_stream(random, seed % 2);
    right += run.right;
    refused += run.refused;
  }
  EXPECT_GT(right, rounds / 3);
  EXPECT_GT(refused, rounds / 4);
}

}  // namespace
}  // namespace rndn::data::random_arrow_test
