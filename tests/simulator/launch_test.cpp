// rndn-launch as its users see it: exit codes, and a kernel whose output file is compared.
#include <sys/wait.h>

#include "tests/simulator/support.h"

namespace rndn::sim::launch_test {
namespace {

const std::string program = std::string(RNDN_BIN_DIR) + "/rndn-launch";

int exit_code(const std::string& arguments) {
  const int status = std::system(("'" + program + "' " + arguments + " >/dev/null 2>&1").c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Launch, ExitCodes) {
  EXPECT_EQ(exit_code("--help"), 0);
  EXPECT_EQ(exit_code("--version"), 0);
  EXPECT_EQ(exit_code(""), 2);
  EXPECT_EQ(exit_code("--nonsense x.cubin"), 2);
  EXPECT_EQ(exit_code("--grid 0 x.cubin"), 2);
  EXPECT_EQ(exit_code("--arg i32:x x.cubin"), 2);
  EXPECT_EQ(exit_code("--device gpu x.cubin"), 2);
  EXPECT_EQ(exit_code("/nonexistent/file.cubin"), 1);
  EXPECT_EQ(exit_code("/dev/null"), 1);
}

TEST(Launch, RunsAKernelOnFiles) {
  std::string why;
  const std::string ptxas = find_ptxas(why);
  if (ptxas.empty()) GTEST_SKIP() << "skipped: " << why;
  const auto source = read_file(std::string(RNDN_SOURCE_DIR) + "/tests/simulator/kernels.ptx");
  ASSERT_TRUE(source.ok());
  const auto cubin = assemble_with_ptxas(ptxas, *source, "sm_86");
  ASSERT_FALSE(cubin.empty());
  const std::string base = testing::TempDir() + "rndn_launch_" + std::to_string(getpid());
  ASSERT_TRUE(write_file(base + ".cubin", {reinterpret_cast<const char*>(cubin.data()), cubin.size()}).ok());
  const std::string common = base + ".cubin --kernel block_sum --grid 2 --block 256 ";
  EXPECT_EQ(exit_code(common + "--check --arg buf:2048:iota --arg out:8:" + base + ".out --arg u32:512"), 0);
  const auto out = read_file(base + ".out");
  ASSERT_TRUE(out.ok());
  ASSERT_EQ(out->size(), 8u);
  uint32_t sums[2];
  std::memcpy(sums, out->data(), 8);
  EXPECT_EQ(sums[0], 255u * 256 / 2);
  EXPECT_EQ(sums[1], 255u * 256 / 2 + 256 * 256);
  EXPECT_EQ(exit_code(common + "--arg buf:1024:iota --arg buf:8:zero --arg u32:512"), 1);  // reads beyond its input
  EXPECT_EQ(exit_code(common + "--arg buf:2048:iota --arg buf:8:zero"), 2);                // a parameter is missing
  EXPECT_EQ(exit_code(common + "--arg buf:2048:iota --arg out:8:/nonexistent/x --arg u32:512"), 3);
  for (const char* extension : {".cubin", ".out"}) std::filesystem::remove(base + extension);
}

}  // namespace
}  // namespace rndn::sim::launch_test
