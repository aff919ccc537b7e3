// Cubins of the reference assembler, run on the simulator for every target, against plain C++; hazard checks must stay silent on them.
#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <random>

#include "tests/simulator/support.h"

namespace rndn::sim::compiled_test {
namespace {

struct Mode {
  const char* name;
  Options options;
};
std::vector<Mode> modes() {
  Options parallel;
  parallel.max_warp_instructions = 50'000'000;
  Options checked = parallel;
  checked.deterministic = checked.check_hazards = true;
  checked.seed = 7;
  return {{"parallel", parallel}, {"checked", checked}};
}

class Compiled : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::string why;
    const std::string ptxas = find_ptxas(why);
    if (ptxas.empty()) GTEST_SKIP() << "skipped: " << why;
    const auto source = read_file(std::string(RNDN_SOURCE_DIR) + "/tests/simulator/kernels.ptx");
    ASSERT_TRUE(source.ok()) << source.error().message;
    // One assembly per target for all tests of this process.
    static std::map<std::string, std::vector<std::byte>> cache;
    auto& cubin = cache[GetParam()];
    if (cubin.empty()) cubin = assemble_with_ptxas(ptxas, *source, GetParam());
    ASSERT_FALSE(cubin.empty());
    cubin_ = &cubin;
  }
  // Loads the cubin on a fresh machine and calls f once per mode.
  void each_mode(const std::function<void(Machine&, ModuleId, const Options&)>& f) {
    for (const Mode& mode : modes()) {
      SCOPED_TRACE(mode.name);
      Machine machine(GetParam(), 64 << 20);
      const auto module = machine.load(*cubin_);
      ASSERT_TRUE(module.ok()) << module.error().message;
      f(machine, *module, mode.options);
    }
  }
  // Launches; every report is a failure.
  static bool run(Machine& machine, ModuleId module, const char* kernel, Dim3 grid, Dim3 block, uint32_t dynamic,
                  const Parameters& parameters, const Options& options, Counters* counters = nullptr) {
    std::vector<Report> reports;
    const auto result = machine.launch(module, kernel, grid, block, dynamic, parameters.bytes(), options, &reports);
    for (const Report& r : reports) ADD_FAILURE() << r.text();
    if (!result) ADD_FAILURE() << result.error().message;
    if (result && counters) *counters = *result;
    return result.ok();
  }
  const std::vector<std::byte>* cubin_ = nullptr;
};
INSTANTIATE_TEST_SUITE_P(Targets, Compiled, testing::ValuesIn(all_targets),
                         [](const auto& info) { return info.param; });

std::vector<uint32_t> random_words(size_t n, uint32_t seed) {
  std::mt19937 engine(seed);
  std::vector<uint32_t> v(n);
  for (uint32_t& x : v) x = static_cast<uint32_t>(engine());
  return v;
}

TEST_P(Compiled, BlockSum) {
  const uint32_t n = 1000;
  const auto in = random_words(n, 1);
  std::vector<uint32_t> expected(4);
  for (uint32_t i = 0; i < n; ++i) expected[i / 256] += in[i];
  each_mode([&](Machine& m, ModuleId module, const Options& options) {
    const uint64_t a = upload(m, in), b = upload(m, std::vector<uint32_t>(4, 99));
    if (run(m, module, "block_sum", {4, 1, 1}, {256, 1, 1}, 0, Parameters().add(a).add(b).add(n), options)) {
      EXPECT_EQ(download<uint32_t>(m, b, 4), expected);
    }
  });
}

TEST_P(Compiled, DivergentLoops) {
  const uint32_t n = 333;
  std::vector<uint32_t> in(n), expected(n);
  for (uint32_t i = 0; i < n; ++i) in[i] = i * 7 % 97 + 1;
  for (uint32_t i = 0; i < n; ++i) {
    uint32_t x = in[i], steps = 0, mix = 0;
    while (x > 1 && steps < 1000) {
      if (x % 2 == 0) {
        x >>= 1;
      } else {
        x = 3 * x + 1;
        if ((x & 7) == 4) {
          uint32_t t = x ^ steps;
          t *= t;
          t = ((t ^ mix) + x) * steps;
          mix ^= t;
          mix ^= mix << 3;
          mix ^= mix >> 5;
          mix *= 7;
        }
      }
      ++steps;
    }
    expected[i] = steps + mix;
  }
  each_mode([&](Machine& m, ModuleId module, const Options& options) {
    const uint64_t a = upload(m, in), b = upload(m, std::vector<uint32_t>(n));
    Counters counters;
    if (run(m, module, "collatz", {6, 1, 1}, {64, 1, 1}, 0, Parameters().add(a).add(b).add(n), options, &counters)) {
      EXPECT_EQ(download<uint32_t>(m, b, n), expected);
      EXPECT_GT(counters.divergent_branches, 10u);
    }
  });
}

TEST_P(Compiled, Shuffles) {
  const uint32_t n = 128;
  const auto in = random_words(n, 3);
  std::vector<uint32_t> expected(5 * n);
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t warp = i & ~31u, lane = i & 31;
    uint32_t sum = 0, ballot = 0;
    for (uint32_t l = 0; l <= lane; ++l) sum += in[warp + l];
    for (uint32_t l = 0; l < 32; ++l) ballot |= (in[warp + l] & 1) << l;
    expected[5 * i] = sum;
    expected[5 * i + 1] = ballot;
    expected[5 * i + 2] = in[warp + (lane ^ 31)];
    expected[5 * i + 3] = in[(i & ~7u) + 2];
    expected[5 * i + 4] = lane + 3 < 32 ? in[i + 3] : in[i];
  }
  each_mode([&](Machine& m, ModuleId module, const Options& options) {
    const uint64_t a = upload(m, in), b = upload(m, std::vector<uint32_t>(5 * n));
    if (run(m, module, "shuffles", {2, 1, 1}, {64, 1, 1}, 0, Parameters().add(a).add(b), options)) {
      EXPECT_EQ(download<uint32_t>(m, b, 5 * n), expected);
    }
  });
}

TEST_P(Compiled, Atomics) {
  const uint32_t n = 2000;
  const auto in = random_words(n, 4);
  std::vector<uint32_t> histogram(16);
  struct Totals {
    int32_t minimum = INT32_MAX;
    uint32_t maximum = 0;
    uint64_t sum = 0;
    float floats = 0;
    uint32_t exclusive = 0;
    double doubles = 0;
    uint32_t product = 1;
    uint32_t increments = 0;
    uint64_t maximum64 = 0;
  } expected;
  static_assert(sizeof(Totals) == 48);
  for (uint32_t x : in) {
    ++histogram[x & 15];
    expected.minimum = std::min(expected.minimum, static_cast<int32_t>(x));
    expected.maximum = std::max(expected.maximum, x);
    expected.sum += x;
    expected.floats += static_cast<float>(x & 255);  // integers below 2^24: exact in any order
    expected.exclusive ^= x;
    expected.doubles += x;
    expected.product *= x | 1;
    expected.increments = expected.increments >= 99 ? 0 : expected.increments + 1;
    expected.maximum64 = std::max<uint64_t>(expected.maximum64, x);
  }
  each_mode([&](Machine& m, ModuleId module, const Options& options) {
    const uint64_t a = upload(m, in), b = upload(m, std::vector<uint32_t>(16)), c = upload(m, std::vector<Totals>(1));
    if (!run(m, module, "atomics", {8, 1, 1}, {256, 1, 1}, 0, Parameters().add(a).add(b).add(c).add(n), options))
      return;
    EXPECT_EQ(download<uint32_t>(m, b, 16), histogram);
    const Totals got = download<Totals>(m, c, 1)[0];
    EXPECT_EQ(got.minimum, expected.minimum);
    EXPECT_EQ(got.maximum, expected.maximum);
    EXPECT_EQ(got.sum, expected.sum);
    EXPECT_EQ(got.floats, expected.floats);
    EXPECT_EQ(got.exclusive, expected.exclusive);
    EXPECT_EQ(got.doubles, expected.doubles);
    EXPECT_EQ(got.product, expected.product);
    EXPECT_EQ(got.increments, expected.increments);
    EXPECT_EQ(got.maximum64, expected.maximum64);
  });
}

TEST_P(Compiled, SpacesAndCalls) {
  const uint32_t n = 64;
  const auto in = random_words(n, 5);
  std::vector<uint32_t> expected(n);
  const uint32_t table[8] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t x = in[i];
    uint32_t v = (x + (x & 15)) * (x + (x & 15)) + table[x & 7];
    v ^= 0x5a5a;
    if (x & 1) {
      uint32_t t1 = 0, t2 = v;
      for (uint32_t k = (x & 3) + 1; k; --k) {
        t1 = t1 * 31 + t2;
        t2 ^= t1;
      }
      v += t1;
    }
    switch (x & 3) {
      case 0: v += 17; break;
      case 1: v *= 5; break;
      case 2: v = ~v; break;
      default: v >>= 3; break;
    }
    expected[i] = v;
  }
  each_mode([&](Machine& m, ModuleId module, const Options& options) {
    const uint64_t a = upload(m, in), b = upload(m, std::vector<uint32_t>(n));
    if (run(m, module, "spaces", {1, 1, 1}, {n, 1, 1}, 0, Parameters().add(a).add(b), options)) {
      EXPECT_EQ(download<uint32_t>(m, b, n), expected);
    }
  });
}

TEST_P(Compiled, LastBlockFinishes) {
  const uint32_t blocks = 100;
  uint32_t expected = 0;
  for (uint32_t b = 0; b < blocks; ++b) expected += b * b + 3;
  each_mode([&](Machine& m, ModuleId module, const Options& options) {
    const uint64_t a = upload(m, std::vector<uint32_t>(blocks)), b = upload(m, std::vector<uint32_t>(1));
    // Twice: the ticket must have been reset.
    for (int repeat = 0; repeat < 2; ++repeat) {
      ASSERT_TRUE(m.fill(b, 0, 4).ok());
      if (!run(m, module, "last_block", {blocks, 1, 1}, {64, 1, 1}, 0, Parameters().add(a).add(b), options)) return;
      EXPECT_EQ(download<uint32_t>(m, b, 1)[0], expected);
    }
  });
}

// Blocks wait for others that may not have been started: every seed's order must get through.
TEST_P(Compiled, BlocksWaitForBlocks) {
  const uint32_t blocks = 40;
  std::vector<uint64_t> expected(blocks);
  for (uint32_t b = 0; b < blocks; ++b) expected[b] = ((b ? expected[b - 1] * 3 : 0) + b) | 1;
  each_mode([&](Machine& m, ModuleId module, Options options) {
    for (uint64_t seed : {1, 2, 3}) {
      options.seed = seed;
      const uint64_t a = upload(m, std::vector<uint64_t>(blocks));
      if (!run(m, module, "chain", {blocks, 1, 1}, {32, 1, 1}, 0, Parameters().add(a), options)) return;
      EXPECT_EQ(download<uint64_t>(m, a, blocks), expected);
    }
  });
}

TEST_P(Compiled, DynamicSharedAndVectors) {
  const uint32_t n = 96;
  std::vector<uint8_t> in(16 * n), expected(16 * n);
  std::mt19937 engine(6);
  for (uint8_t& x : in) x = static_cast<uint8_t>(engine());
  for (uint32_t i = 0; i < n; ++i) {
    const uint8_t* from = &in[16 * (n - 1 - i)];
    uint8_t* to = &expected[16 * i];
    std::memcpy(to, from + 8, 8);
    std::memcpy(to + 8, from, 8);
    const uint16_t sum = static_cast<uint16_t>(from[5] + static_cast<int8_t>(from[6]) + (from[8] | from[9] << 8));
    std::memcpy(to + 2, &sum, 2);
    to[0] = from[6];
  }
  each_mode([&](Machine& m, ModuleId module, const Options& options) {
    const uint64_t a = upload(m, in), b = upload(m, std::vector<uint8_t>(16 * n));
    if (run(m, module, "reverse", {1, 1, 1}, {n, 1, 1}, 16 * n, Parameters().add(a).add(b), options)) {
      EXPECT_EQ(download<uint8_t>(m, b, 16 * n), expected);
    }
  });
}

// The .sync operations in divergent code gather the named lanes: in helper functions (WARPSYNC), on sm_90 by WARPSYNC.EXCLUSIVE and .COLLECTIVE.
TEST_P(Compiled, SynchronisingOperationsInDivergentCode) {
  if (GetParam() == "sm_60" || GetParam() == "sm_61") GTEST_SKIP() << "skipped: match.any needs sm_70";
  std::string why;
  const auto source = read_file(std::string(RNDN_SOURCE_DIR) + "/tests/simulator/divergent_sync.ptx");
  ASSERT_TRUE(source.ok());
  const auto cubin = assemble_with_ptxas(find_ptxas(why), *source, GetParam());
  ASSERT_FALSE(cubin.empty());
  std::vector<uint32_t> in(32), expected(32), now;
  for (uint32_t i = 0; i < 32; ++i) in[i] = 2 * (i * 5 % 32) + (i & 1);
  for (uint32_t i = 0; i < 32; i += 2) expected[i] = in[i ^ 4] * 3;
  now = in;
  for (bool more = true; more;) {
    more = false;
    const auto before = now;
    for (uint32_t i = 1; i < 32; i += 2) {
      expected[i] += before[i ^ 2];
      now[i] -= 2;
      more |= static_cast<int32_t>(now[i]) > 40;
    }
  }
  for (const Mode& mode : modes()) {
    Machine m(GetParam(), 1 << 20);
    const auto module = m.load(cubin);
    ASSERT_TRUE(module.ok()) << module.error().message;
    const uint64_t a = upload(m, in), b = upload(m, std::vector<uint32_t>(32));
    if (run(m, *module, "divshfl", {1, 1, 1}, {32, 1, 1}, 0, Parameters().add(a).add(b), mode.options)) {
      EXPECT_EQ(download<uint32_t>(m, b, 32), expected);
    }
  }
}

// --- Faults are reported, never executed ------------------------------------------------------------------------------------------
std::string message_of(Machine& m, ModuleId module, const char* kernel, Dim3 grid, Dim3 block,
                       const Parameters& parameters, const Options& options) {
  std::vector<Report> reports;
  const auto result = m.launch(module, kernel, grid, block, 0, parameters.bytes(), options, &reports);
  EXPECT_FALSE(result.ok());
  if (reports.empty()) return result.ok() ? "" : result.error().message;
  EXPECT_EQ(reports[0].kernel, kernel);
  EXPECT_FALSE(reports[0].instruction.empty());
  return reports[0].message;
}

TEST_P(Compiled, FaultsAreNamed) {
  each_mode([&](Machine& m, ModuleId module, const Options& options) {
    const uint64_t a = upload(m, std::vector<uint32_t>(32)), guard = upload(m, std::vector<uint32_t>(64, 5));
    const auto stray = [&](uint64_t offset) {
      return message_of(m, module, "stray", {1, 1, 1}, {32, 1, 1}, Parameters().add(a).add(offset), options);
    };
    EXPECT_NE(stray(4).find("out-of-bounds"), std::string::npos);
    EXPECT_NE(stray(4).find("0 bytes beyond the end of the allocation of 128 bytes"), std::string::npos) << stray(4);
    EXPECT_NE(stray(1).find("misaligned"), std::string::npos);
    EXPECT_NE(stray(uint64_t{1} << 40).find("no allocation is near"), std::string::npos);
    EXPECT_EQ(download<uint32_t>(m, guard, 64), std::vector<uint32_t>(64, 5));
    ASSERT_TRUE(m.free(a).ok());
    EXPECT_NE(stray(0).find("freed"), std::string::npos) << stray(0);
  });
}

TEST_P(Compiled, HangAndDeadlockEnd) {
  each_mode([&](Machine& m, ModuleId module, Options options) {
    options.max_warp_instructions = 100'000;
    const uint64_t a = upload(m, std::vector<uint32_t>(64));
    EXPECT_NE(message_of(m, module, "forever", {3, 1, 1}, {64, 1, 1}, Parameters().add(a), options).find("hang"),
              std::string::npos);
    const std::string stuck = message_of(m, module, "stuck", {1, 1, 1}, {64, 1, 1}, Parameters().add(a), options);
    EXPECT_NE(stuck.find("deadlock"), std::string::npos) << stuck;
    EXPECT_NE(stuck.find("warp 1 lanes 0xffffffff at barrier 2"), std::string::npos) << stuck;
  });
}

TEST_P(Compiled, WrongLaunchesAreRefused) {
  Machine m(GetParam(), 1 << 20);
  const auto module = m.load(*cubin_);
  ASSERT_TRUE(module.ok());
  const Parameters one = Parameters().add(uint64_t{0});
  EXPECT_FALSE(m.launch(*module, "forever", {1, 1, 1}, {1025, 1, 1}, 0, one.bytes(), {}).ok());
  EXPECT_FALSE(m.launch(*module, "forever", {0, 1, 1}, {1, 1, 1}, 0, one.bytes(), {}).ok());
  EXPECT_FALSE(m.launch(*module, "forever", {1, 1, 1}, {1, 1, 1}, 0, {}, {}).ok());
  EXPECT_FALSE(m.launch(*module, "forever", {1, 1, 1}, {1, 1, 1}, 300 << 10, one.bytes(), {}).ok());
  EXPECT_FALSE(m.launch(*module, "nothing", {1, 1, 1}, {1, 1, 1}, 0, one.bytes(), {}).ok());
  EXPECT_FALSE(m.allocate(2 << 20).ok());
}

TEST_P(Compiled, CountersRepeat) {
  const uint32_t n = 2000;
  const auto in = random_words(n, 4);
  Options options;
  options.deterministic = true;
  std::vector<Counters> runs;
  for (int repeat = 0; repeat < 2; ++repeat) {
    Machine m(GetParam(), 1 << 20);
    const auto module = m.load(*cubin_);
    ASSERT_TRUE(module.ok());
    const uint64_t a = upload(m, in), b = upload(m, std::vector<uint32_t>(16)), c = upload(m, std::vector<uint64_t>(6));
    Counters counters;
    ASSERT_TRUE(run(m, *module, "atomics", {8, 1, 1}, {256, 1, 1}, 0, Parameters().add(a).add(b).add(c).add(n), options,
                    &counters));
    runs.push_back(counters);
  }
  EXPECT_EQ(std::memcmp(&runs[0], &runs[1], sizeof(Counters)), 0);
  EXPECT_GT(runs[0].thread_instructions, 20 * runs[0].warp_instructions);
  EXPECT_GE(runs[0].global_load_sectors, n / 8);
}

}  // namespace
}  // namespace rndn::sim::compiled_test
