// scan against a plain loop: every type and operation, sizes around the ranges of warps, starts
// anywhere. Offsets of cells and the cells' numbers likewise, of sizes around the tiles.
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "libraries/base/numbers/running_sums.h"
#include "tests/operators/support.h"

namespace rndn::operators::scan_test {
namespace {

constexpr size_t range = 512;  // rows of a warp (scan.cpp)

template <class T>
T combined(Scan operation, T total, T x) {
  switch (operation) {
    case Scan::sum: return static_cast<T>(total + x);
    case Scan::min: return x < total ? x : total;
    case Scan::max: break;
  }
  return x > total ? x : total;
}

template <class T, class R>
std::vector<R> expected_scan(Scan operation, const std::vector<T>& x,
                             const std::vector<uint8_t>& starts) {
  std::vector<R> out;
  R total{};
  for (size_t i = 0; i < x.size(); ++i) {
    total = i == 0 || starts[i] ? static_cast<R>(x[i])
                                : combined(operation, total, static_cast<R>(x[i]));
    out.push_back(total);
  }
  return out;
}

template <class T, class R>
void check(test::Bench& bench, Type type, Scan operation, const std::vector<T>& x,
           const std::vector<uint8_t>& starts, uint64_t spare) {
  const Vector values = bench.put(type, x, spare), begins = bench.put(Type::u8, starts, spare);
  auto got = bench.sql->scan(operation, values, begins, *bench.memory);
  ASSERT_TRUE(got.ok()) << got.error().message;
  const std::vector<R> is = bench.get<R>(*got),
                       expected = expected_scan<T, R>(operation, x, starts);
  ASSERT_EQ(is.size(), expected.size());
  for (size_t i = 0; i < is.size(); ++i)
    ASSERT_EQ(is[i], expected[i]) << "row " << i << " of " << x.size() << ", type "
                                  << static_cast<int>(type) << ", operation "
                                  << static_cast<int>(operation);
}

// Values whose sums are exact in every order.
template <class T>
void sizes(test::Bench& bench, Type type) {
  using Sum = std::conditional_t<std::is_integral_v<T>, int64_t, T>;
  std::mt19937_64 random(7);
  for (size_t n : {size_t{0}, size_t{1}, size_t{33}, range - 1, range, range + 1, 9 * range + 77})
    for (uint64_t distance : {uint64_t{1}, uint64_t{40}, uint64_t{3000}, uint64_t{1} << 60}) {
      std::vector<T> x(n);
      std::vector<uint8_t> starts(n);
      for (T& v : x)
        v = static_cast<T>(static_cast<int64_t>(random() % 200) - (std::is_signed_v<T> ? 100 : 0));
      for (uint8_t& s : starts) s = random() % distance == 0;
      const uint64_t spare = distance == 40 ? 100 : 0;  // the size is on the device
      check<T, Sum>(bench, type, Scan::sum, x, starts, spare);
      check<T, T>(bench, type, Scan::min, x, starts, spare);
      check<T, T>(bench, type, Scan::max, x, starts, spare);
      if (testing::Test::HasFatalFailure()) return;
    }
}

template <class T>
void offsets(test::Bench& bench, Type type) {
  constexpr size_t tile = 4096;  // lengths of a block (cells.cpp)
  std::mt19937_64 random(11);
  for (size_t n : {size_t{0}, size_t{1}, size_t{33}, tile - 1, tile, tile + 1, 3 * tile + 77})
    for (uint64_t spare : {0, 100, 5000}) {  // the size is on the device, tiles may be empty
      std::vector<T> lengths(n);
      for (T& v : lengths) v = static_cast<T>(random() % 7 == 0 ? random() % 100 : random() % 3);
      std::vector<int64_t> begins{0}, numbers;
      for (size_t k = 0; k < n; ++k) {
        begins.push_back(begins.back() + static_cast<int64_t>(lengths[k]));
        numbers.insert(numbers.end(), static_cast<size_t>(lengths[k]), static_cast<int64_t>(k));
      }
      const Vector given = bench.put(type, lengths, spare);
      auto got = bench.sql->offsets(given, *bench.memory);
      ASSERT_TRUE(got.ok()) << got.error().message;
      ASSERT_EQ(got->capacity, n + spare + 1);
      std::vector<int64_t> is(n + 1);
      ASSERT_TRUE(bench.device->copy_to_host(is.data(), got->data, 8 * is.size()).ok());
      ASSERT_EQ(is, begins) << n << " lengths and room for " << spare;
      auto made = bench.sql->cell_numbers(given, *got, nullptr, *bench.memory);
      ASSERT_TRUE(made.ok()) << made.error().message;
      const std::vector<int32_t> cells = bench.get<int32_t>(*made);
      ASSERT_EQ(std::vector<int64_t>(cells.begin(), cells.end()), numbers);
    }
}

class ScanTest : public testing::TestWithParam<const char*> {};

TEST_P(ScanTest, OffsetsOfCells) {
  test::Bench bench(GetParam());
  offsets<int64_t>(bench, Type::i64);
  offsets<int32_t>(bench, Type::i32);
}

TEST_P(ScanTest, EveryTypeAndSize) {
  test::Bench bench(GetParam());
  sizes<uint8_t>(bench, Type::u8);
  sizes<int8_t>(bench, Type::i8);
  sizes<int16_t>(bench, Type::i16);
  sizes<int32_t>(bench, Type::i32);
  sizes<uint32_t>(bench, Type::u32);
  sizes<int64_t>(bench, Type::i64);
  sizes<float>(bench, Type::f32);
  sizes<double>(bench, Type::f64);
}

// More ranges than one warp scans: three levels.
TEST_P(ScanTest, ManyRanges) {
  test::Bench bench(GetParam());
  const size_t n = range * (range + 3) + 5;
  std::vector<int32_t> x(n);
  std::vector<uint8_t> starts(n);
  for (size_t i = 0; i < n; ++i) x[i] = static_cast<int32_t>(i % 7) - 2, starts[i] = i == n / 3;
  check<int32_t, int64_t>(bench, Type::i32, Scan::sum, x, starts, 0);
}

TEST_P(ScanTest, NaNIsPassedOverAndSumsWrap) {
  test::Bench bench(GetParam());
  const double nan = std::numeric_limits<double>::quiet_NaN(),
               infinity = std::numeric_limits<double>::infinity();
  const std::vector<uint8_t> starts = {0, 0, 0, 1, 0};
  const Vector begins = bench.put(Type::u8, starts);
  const Vector x = bench.put(Type::f64, std::vector<double>{nan, 4, nan, nan, 1});
  EXPECT_EQ(bench.get<double>(*bench.sql->scan(Scan::min, x, begins, *bench.memory)),
            (std::vector<double>{infinity, 4, 4, infinity, 1}));
  const int64_t most = std::numeric_limits<int64_t>::max();
  const Vector y = bench.put(Type::i64, std::vector<int64_t>{most, 1, 0, 2, most});
  EXPECT_EQ(bench.get<int64_t>(*bench.sql->scan(Scan::sum, y, begins, *bench.memory)),
            (std::vector<int64_t>{most, -most - 1, -most - 1, 2, -most}));
}

// Bit for bit the host's running sums, and as near to the exact ones as those promise: among them
// sums that cancel, and such as overflow.
TEST_P(ScanTest, FloatsAreAddedInTheOrderOfTheHost) {
  test::Bench bench(GetParam());
  std::mt19937_64 random(11);
  const double choices[] = {1e16, -1e16, 1, -1, 0.1, 3e-9, 1e308, -1e308, -0.0, 5e-324};
  for (const size_t n : {size_t{5}, range, 3 * range + 40, range * (range + 1) + 9})
    for (const size_t of : {size_t{6}, std::size(choices)})
      for (const uint64_t distance : {uint64_t{50}, uint64_t{1} << 60}) {
        std::vector<double> x(n);
        std::vector<uint8_t> starts(n);
        for (double& v : x) v = choices[random() % of] * static_cast<double>(1 + random() % 3);
        for (uint8_t& s : starts) s = random() % distance == 0;
        std::vector<double> expected = x;
        running_sums(expected, starts);
        // By a few rows at a time, from starts of their own, and these put together.
        std::vector<uint8_t> more = starts;
        for (size_t i = 0; i < n; i += 32) more[i] = 1;
        std::vector<double> parts;
        const size_t rows = 32 * (1 + random() % 40);
        for (size_t from = 0; from < n; from += rows) {
          const auto part = [&](const auto& of) {
            return std::vector(of.begin() + static_cast<ptrdiff_t>(from),
                               of.begin() + static_cast<ptrdiff_t>(std::min(n, from + rows)));
          };
          auto made = bench.sql->scan(Scan::sum, bench.put(Type::f64, part(x)),
                                      bench.put(Type::u8, part(more)), *bench.memory);
          ASSERT_TRUE(made.ok()) << made.error().message;
          const std::vector<double> sums = bench.get<double>(*made);
          parts.insert(parts.end(), sums.begin(), sums.end());
        }
        running_sums(parts, starts, false);
        for (size_t i = 0; i < n; ++i)
          ASSERT_EQ(std::bit_cast<uint64_t>(parts[i]), std::bit_cast<uint64_t>(expected[i]))
              << "row " << i << " of " << n << ", " << rows << " at a time";
        const Vector values = bench.put(Type::f64, x), begins = bench.put(Type::u8, starts);
        auto got = bench.sql->scan(Scan::sum, values, begins, *bench.memory);
        ASSERT_TRUE(got.ok()) << got.error().message;
        const std::vector<double> is = bench.get<double>(*got);
        ASSERT_EQ(is.size(), n);
        const double levels = n <= range ? 1 : n <= range * range ? 2 : 3;
        double high = 0, low = 0, size = 0;  // the exact sum but for 2^-100 of `size`
        for (size_t i = 0; i < n; ++i) {
          ASSERT_EQ(std::bit_cast<uint64_t>(is[i]), std::bit_cast<uint64_t>(expected[i]))
              << "row " << i << " of " << n << ": " << is[i] << ", " << expected[i];
          if (starts[i]) high = low = size = 0;
          const double sum = high + x[i], part = sum - high;
          low += (high - (sum - part)) + (x[i] - part);
          high = sum;
          size += std::abs(x[i]);
          if (std::isfinite(size)) {
            ASSERT_LE(std::abs((is[i] - high) - low), std::ldexp(size, -47) * levels) << "row " << i;
          }
        }
      }
}

INSTANTIATE_TEST_SUITE_P(Targets, ScanTest, testing::ValuesIn(test::targets));

}  // namespace
}  // namespace rndn::operators::scan_test
