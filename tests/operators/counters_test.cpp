// Counters that repeat exactly: launches, warp instructions and sectors of the sorting operators on the deterministic simulator. Ratchets:
// they may fall, and are lowered here when they do.
#include <random>

#include "tests/operators/counting_device.h"
#include "tests/operators/sort_support.h"
#include "tests/support/every_case.h"

namespace rndn::operators {
namespace {

using test::Column;
using test::CountingDevice;
using test::Shape;

struct Most {
  uint64_t launches, waits;
  double instructions, sectors;  // per row: warp instructions * 32, 32-byte sectors
};

// Counts the second of two calls: the first assembles and loads.
template <class Call>
void expect_at_most(const char* name, const char* target, size_t rows, const Most& most, Call&& call) {
  SCOPED_TRACE(fmt::format("{} on {}", name, target));
  sim::Options options;
  options.deterministic = true;
  auto opened = runtime::open_simulator(target, options);
  ASSERT_TRUE(opened.ok());
  test::Bench bench(target);
  auto counting = std::make_unique<CountingDevice>(std::move(*opened));
  CountingDevice& device = *counting;
  bench.use(std::move(counting));
  call(bench);
  device.start();
  call(bench);
  const double n = static_cast<double>(rows);
  const double instructions = 32 * static_cast<double>(device.instructions) / n,
               sectors = static_cast<double>(device.sectors) / n;
  std::printf("%-24s %-6s launches %2llu waits %llu instructions/row %7.1f sectors/row %6.3f\n", name, target,
              static_cast<unsigned long long>(device.launches), static_cast<unsigned long long>(device.waits),
              instructions, sectors);
  EXPECT_LE(device.launches, most.launches);
  EXPECT_LE(device.waits, most.waits);
  EXPECT_LE(instructions, most.instructions);
  EXPECT_LE(sectors, most.sectors);
  EXPECT_EQ(device.spills, 0u);
  EXPECT_LE(device.registers, 65536u) << "a block must fit";
}

TEST(SortCounters, LaunchesInstructionsAndSectors) {
  const bool up[] = {true};
  rndn::test::Sample sample(2);
  for (const char* target : {"sm_90", "sm_61"}) {
    if (!sample.has_next()) continue;
    Column wide = test::make(Type::i64, Shape::random, 100000, 1),
           narrow = test::make(Type::i32, Shape::random, 100000, 2), few = test::make(Type::i32, Shape::zipf, 1000, 3),
           tiny = test::make(Type::i32, Shape::distinct, 20, 4);
    const auto order = [&](const Column& c, uint64_t spare) {
      return [&, spare](test::Bench& bench) {
        const Vector v = c.put(bench, spare);
        ASSERT_TRUE(bench.sql->order({&v, 1}, up, *bench.memory).ok());
      };
    };
    const auto group = [&](const Column& c, uint64_t spare) {
      return [&, spare](test::Bench& bench) {
        const Vector v = c.put(bench, spare);
        ASSERT_TRUE(bench.sql->group({&v, 1}, *bench.memory).ok());
      };
    };
    // Launches: bounds, pack, one per digit; group: the runs as well. Instructions leave a little room for the assembler. Of sm_90's larger shared memory
    // more blocks of pack are resident, each of which adds its own counts of digits to those in global memory.
    const bool pascal = std::string(target) == "sm_61";
    const double room = 1.02;
    expect_at_most("order 64 bits", target, 100000, {10, 1, room * (pascal ? 1152.5 : 985.2), pascal ? 8.56 : 8.58},
                   order(wide, 0));
    expect_at_most("order 32 bits", target, 100000, {6, 1, room * (pascal ? 548.6 : 466.4), 3.10},
                   order(narrow, 0));
    expect_at_most("group 32 bits", target, 100000, {7, 2, room * (pascal ? 627.0 : 522.5), 4.45}, group(narrow, 0));
    const auto top = [&](const Column& c, uint64_t most) {
      return [&, most](test::Bench& bench) {
        const Vector v = c.put(bench);
        ASSERT_TRUE(bench.sql->top({&v, 1}, up, most, *bench.memory).ok());
      };
    };
    // The sample in order, a filter, what is left in order. Every block reads the sample: 64 KB from the cache of the device, and a fifth of the time that
    // blocks of one thread per entry take.
    expect_at_most("top 10, 64 bits", target, 100000, {3, 1, room * (pascal ? 826.6 : 636.3), 3.14}, top(wide, 10));
    expect_at_most("top 100, 32 bits", target, 100000, {3, 1, room * (pascal ? 739.3 : 545.2), 3.01}, top(narrow, 100));
    expect_at_most("order 1000 of 5000", target, 1000, {1, 1, room * (pascal ? 448.5 : 393.3), 0.42}, order(few, 4000));
    expect_at_most("group 1000", target, 1000, {1, 1, room * (pascal ? 599.2 : 507.0), 0.57}, group(few, 0));
    expect_at_most("order 20 of 1000", target, 20, {1, 0, room * (pascal ? 11100 : 9080), 2.20}, order(tiny, 980));
  }
}

// Groups of an ascending key: of 1 to 7 rows, as orders have lines, and one of all rows. Columns are loaded in vectors of 16 bytes, half a sector per lane
// and load; results are stored next to each other.
TEST(AggregateCounters, InstructionsAndSectors) {
  constexpr size_t n = 100000;
  std::mt19937 random(5);
  Column lines{.type = Type::i32}, one{.type = Type::i32}, price{.type = Type::f64}, day{.type = Type::i32};
  for (int32_t order = 0; lines.integers.size() < n; ++order)
    for (uint32_t left = random() % 7 + 1; left > 0 && lines.integers.size() < n; --left)
      lines.integers.push_back(order);
  for (size_t i = 0; i < n; ++i) {
    one.integers.push_back(3);
    price.floats.push_back(static_cast<double>(random() % 10000000) * 0.01);
    day.integers.push_back(static_cast<int64_t>(random() % 2500));
  }
  for (const char* target : {"sm_90", "sm_61"}) {
    const auto group = [&](const Column& by, const Column& values, std::initializer_list<Reduce> reductions) {
      return [&, by, values, reductions = std::vector(reductions)](test::Bench& bench) {
        Vector key = by.put(bench);
        key.ascending = true;
        const Vector vector = values.put(bench);
        std::vector<Aggregate> wanted;
        for (const Reduce reduce : reductions) wanted.push_back({reduce, vector, vector.type});
        ASSERT_TRUE(bench.sql->aggregate({&key, 1}, wanted, bench.sum_flags.address, *bench.memory).ok());
      };
    };
    const bool pascal = std::string(target) == "sm_61";
    const double room = 1.02;
    expect_at_most("sums of lines", target, n, {3, 1, room * (pascal ? 99.1 : 85.0), 0.94},
                   group(lines, price, {Reduce::sum}));
    expect_at_most("bounds of lines", target, n, {3, 1, room * (pascal ? 58.3 : 49.8), 0.70},
                   group(lines, day, {Reduce::min, Reduce::max}));
    expect_at_most("sum of all", target, n, {3, 1, room * (pascal ? 115.6 : 98.4), 0.79},
                   group(one, price, {Reduce::sum}));
    expect_at_most("bounds of all", target, n, {3, 1, room * (pascal ? 56.5 : 50.4), 0.55},
                   group(one, day, {Reduce::min, Reduce::max}));
  }
}

}  // namespace
}  // namespace rndn::operators
