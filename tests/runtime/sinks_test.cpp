// Groups inside kernels (outliner/sinks.cpp, ptx/codegen/sink.cpp): programs that group give on the simulator what the
// reference interpreter gives, whatever the keys, the values and the number of groups are, and whether the groups are
// part of a kernel or of the library. RNDN_RANDOM_SEEDS=N: so many random programs, each on all targets. RNDN_SINKS_BITS=N or M-N: 2^M (1) to 2^N groups on six.
#include <bit>
#include <cstdlib>
#include <numeric>

#include "tests/runtime/sinks.h"

namespace rndn::runtime::sinks_test {
namespace {

using namespace sinks;
using ::testing::Contains;
using ::testing::Not;
using ::testing::StartsWith;

// From tables in shared memory with many copies to atomics in global memory.
TEST(Sinks, AnyNumberOfGroupsGivesWhatTheInterpreterGives) {
  std::vector<const char*> targets{"sm_61", "sm_86", "sm_90"};
  std::vector<uint64_t> counts{1, 2, 7, 64, 300, 1000, 5000, 30000};
  if (const char* most = std::getenv("RNDN_SINKS_BITS")) {
    targets.insert(targets.end(), {"sm_75", "sm_80", "sm_89"});
    counts.clear();
    char* end = nullptr;
    const uint64_t first = std::strtoull(most, &end, 10), last = *end == '-' ? std::strtoull(end + 1, nullptr, 10) : first;
    for (uint64_t bits = *end == '-' ? first : 0; bits <= last; ++bits) counts.insert(counts.end(), targets.size(), uint64_t{1} << bits);
  }
  size_t turn = 0;
  for (const uint64_t groups : counts) {
    MadeTables tables;
    const uint64_t rows = std::max<uint64_t>(700, groups / 2);
    put_numbers(tables, rows, groups, groups);
    const std::string lines = number_loads() + "  m:? = @gt(f_n, -500000000:i32);\n";
    const std::string text = grouped(lines, {"f_k"}, {"f_n", "f_w", "f_d", "f_x", "f_h"}, groups % 2 ? "m" : "");
    auto want = run_on_reference(text, tables);
    ASSERT_TRUE(want.ok()) << want.error().message << text;
    const char* target = targets[turn++ % targets.size()];
    auto got = run_on(target, text, tables, 2);
    ASSERT_TRUE(got.ok()) << groups << " on " << target << ": " << got.error().message << text;
    EXPECT_TRUE(got->result == *want) << groups << " on " << target;  // too long to be printed
    EXPECT_THAT(got->library, Not(Contains(StartsWith("few")))) << groups;
    EXPECT_THAT(got->library, Not(Contains(StartsWith("segment")))) << groups;
    if (groups > 1 << 16) continue;  // the library sorts, whatever the groups are
    auto plain = run_on(target, text, tables, 1, outliner::Mode::full, false);
    ASSERT_TRUE(plain.ok()) << plain.error().message;
    EXPECT_TRUE(plain->result == *want) << groups << " on " << target;
  }
}

// More entries than the usual 24 KB hold, and rows enough: they lie in what a block may have; with fewer rows in global memory.
TEST(Sinks, ManyGroupsOfManyRowsHaveLargeTables) {
  for (const auto& [target, rows, is_large] : {std::tuple("sm_86", uint64_t{60000}, true), {"sm_86", 20000, false}, {"sm_61", 50000, true}}) {
    MadeTables tables;
    constexpr uint64_t groups = 750;
    put_numbers(tables, rows, groups, rows);
    const std::string lines = number_loads() + "  m:? = @gt(f_n, -500000000:i32);\n";
    for (const char* mask : {"", "m"}) {
      const std::string text = grouped(lines, {"f_k"}, {"f_n", "f_w", *mask ? "f_h" : "f_d"}, mask);
      auto want = run_on_reference(text, tables);
      ASSERT_TRUE(want.ok()) << want.error().message << text;
      auto got = run_on(target, text, tables, 3);
      ASSERT_TRUE(got.ok()) << target << ": " << got.error().message << text;
      EXPECT_EQ(got->result, *want) << target << " " << rows;
      EXPECT_EQ(got->shared_bytes > 24 << 10, is_large) << target << " " << rows << ": " << got->shared_bytes;
    }
  }
}

// Few keys of a wide range: those that a block meets first have copies in shared memory, those beyond its slots have none.
TEST(Sinks, FewGroupsOfAWideRangeHaveHotSlots) {
  for (const auto& [target, occurring] : {std::pair("sm_90", 1u), {"sm_86", 5u}, {"sm_80", 60u}}) {
    MadeTables tables;
    constexpr uint64_t rows = 30000;
    put_numbers(tables, rows, 180, occurring);
    std::mt19937_64 random(occurring);
    std::vector<int64_t> keys;
    for (uint64_t i = 0; i < rows; ++i)  // the whole range in the last rows
      keys.push_back(i + 2 < rows ? static_cast<int64_t>(random() % occurring) * 3 : i + 1 < rows ? -3 : 176);
    tables.put("f", "k", BasicType::i32, keys);
    const std::string lines = number_loads() + "  m:? = @gt(f_n, -500000000:i32);\n";
    for (const std::vector<std::string>& folded : {std::vector<std::string>{"f_w", "f_n", "f_d"}, {"f_d", "f_w"}, {"f_h", "f_x"}}) {
      const std::string text = grouped(lines, {"f_k"}, folded, occurring > 1 ? "m" : "");
      auto want = run_on_reference(text, tables);
      ASSERT_TRUE(want.ok()) << want.error().message << text;
      auto got = run_on(target, text, tables, 3);
      ASSERT_TRUE(got.ok()) << target << ": " << got.error().message << text;
      EXPECT_EQ(got->result, *want) << target << " " << occurring;
      EXPECT_GT(got->shared_bytes, 24u << 10) << target << " " << occurring;
    }
  }
}

TEST(Sinks, NoRowsAndRowsThatAreAllRemoved) {
  for (const uint64_t rows : {0u, 1u, 5u, 3000u})
    for (const char* mask : {"", "m", "none"}) {
      MadeTables tables;
      put_numbers(tables, rows, 10, 1);
      const std::string lines = number_loads() + "  m:? = @gt(f_k, 2:i32);\n  none:? = @gt(f_k, 100:i32);\n";
      const std::string text = grouped(lines, {"f_k", "f_d"}, {"f_n", "f_w"}, mask);
      auto want = run_on_reference(text, tables);
      auto got = run_on("sm_86", text, tables, 2);
      ASSERT_TRUE(want.ok() && got.ok()) << got.error().message << text;
      EXPECT_EQ(got->result, *want) << rows << " " << mask;
    }
}

// A scan, its filter, its sums and the groups are one kernel; what drops empty entries and takes the keys is another. Nothing waits before the results,
// so that the third run becomes a graph.
TEST(Sinks, GroupsAreTwoKernels) {
  MadeTables tables;
  put_numbers(tables, 5000, 50, 3);
  std::string lines =
      number_loads() +
      "  m:? = @gt(f_n, 0:i32);\n  k:? = @compress(m, f_k);\n  g:? = @group(k);\n  first:? = @keys(g);\n"
      "  rows:? = @values(g);\n  v:? = @compress(m, f_w);\n  c:? = @each_right(@index, v, rows);\n"
      "  e:? = @each(@sum, c);\n  s:? = @raze(e);\n  x:? = @index(k, first);\n";
  const std::string text = program(lines, {"x", "s"});
  auto want = run_on_reference(text, tables);
  auto got = run_on("sm_90", text, tables, 5);
  ASSERT_TRUE(want.ok() && got.ok()) << got.error().message;
  EXPECT_EQ(got->result, *want);
  EXPECT_EQ(got->launches, 2u);
  EXPECT_THAT(got->library, ::testing::IsEmpty());
}

// The bounds of dates are those of their years, in whatever type they are grouped.
// Rows that look-ups select are folded by the kernel that finds them where they are few; of many a kernel of its own folds what is left. A mask of the
// columns alone does not count.
TEST(Sinks, ManyRowsThatLookUpsSelectAreFoldedByAKernelOfTheirOwn) {
  MadeTables tables;
  put_numbers(tables, 3000, 50, 5);
  const std::string lines = number_loads() +
                            "  few:? = @gt(f_n, 0:i32);\n  a:? = @abs(f_k); p:? = @index(f_k, a);\n  met:? = @gt(p, 20:i32);\n  m:? = @and(few, met);\n";
  for (const char* mask : {"few", "m"}) {
    const std::string text = grouped(lines, {"f_k"}, {"f_n"}, mask);
    auto want = run_on_reference(text, tables);
    ASSERT_TRUE(want.ok()) << want.error().message << text;
    for (const uint64_t most : {uint64_t{4000}, uint64_t{2999}}) {
      auto got = run_on("sm_90", text, tables, 2, outliner::Mode::full, true, most);
      ASSERT_TRUE(got.ok()) << got.error().message << text;
      EXPECT_EQ(got->result, *want) << mask << most;
      EXPECT_TRUE(folds(*got)) << mask << most;
      const bool apart = most != 4000 && std::string_view(mask) != "few";
      EXPECT_EQ(got->launches, apart ? 3u : 2u) << mask << most;
    }
  }
}

// There are no more groups of rows that a look-up finds than its table has rows.
TEST(Sinks, RowsOfALookUpHaveEntriesForItsTable) {
  constexpr uint64_t rows = 20000, table = 50;
  MadeTables tables;
  put_numbers(tables, rows, 90, 8);
  std::vector<int64_t> keys(table);
  std::iota(keys.begin(), keys.end(), 7);
  tables.put("d", "k", BasicType::i32, keys);
  const std::string text = program(
      number_loads() +
          "  d:? = @load_table(`d:sym);\n  d_k:i32 = check_cast(@column_value(d, `k:sym), i32);\n"
          "  pairs:? = @join_index(@eq, d_k, f_k);\n  l:? = @index(pairs, 0:i64);\n  r:? = @index(pairs, 1:i64);\n"
          "  n:? = @index(f_n, r);\n  g:? = @group(l);\n  rows:? = @values(g);\n  c:? = @each_right(@index, n, rows);\n"
          "  e:? = @each(@max, c);\n  s:? = @raze(e);\n",
      {"s"});
  auto want = run_on_reference(text, tables);
  auto got = run_on("sm_90", text, tables);
  ASSERT_TRUE(want.ok() && got.ok()) << got.error().message << text;
  EXPECT_EQ(got->result, *want);
  ASSERT_TRUE(folds(*got));
  ASSERT_EQ(got->bytes.size(), 2u);
  EXPECT_LE(got->bytes[1], 3 * 8 * (table + 2));
}

TEST(Sinks, KeysThatAreConverted) {
  MadeTables tables;
  put_numbers(tables, 3000, 50, 4);
  const std::string lines =
      number_loads() + "  y:i64 = check_cast(@date_year(f_d), i64);\n  z:i64 = check_cast(f_k, i64);\n";
  const std::string text = grouped(lines, {"y", "z"}, {"f_n"}, "");
  auto want = run_on_reference(text, tables);
  auto got = run_on("sm_86", text, tables, 2);
  ASSERT_TRUE(want.ok() && got.ok()) << got.error().message << text;
  EXPECT_EQ(got->result, *want);
  EXPECT_THAT(got->library, Not(Contains(StartsWith("segment"))));
  EXPECT_THAT(got->library, Not(Contains(StartsWith("few"))));
}

// No group and no sum of the library.
// Keys of which nothing is known, of too wide a range, and extremes that an empty entry could hold: by the library, from the first run on.
TEST(Sinks, WhatDoesNotFitIsDoneByTheLibrary) {
  MadeTables tables;
  put_numbers(tables, 2000, 20, 5);
  const std::string unknown = "  u:? = @abs(f_k);\n";
  for (const char* key : {"u", "f_w", "f_k"}) {
    std::string lines = number_loads() + unknown + "  z:? = @abs(f_w);\n";
    const std::string text = grouped(lines, {key}, {std::string(key) == "f_k" ? "z" : "f_n"}, "");
    auto want = run_on_reference(text, tables);
    auto got = run_on("sm_86", text, tables, 2);
    ASSERT_TRUE(want.ok() && got.ok()) << got.error().message << text;
    EXPECT_EQ(got->result, *want) << key;
    EXPECT_FALSE(folds(*got)) << key;
  }
}

// One word of 64 bits, several, words that share keys, a text beside them: from tables of a block to global ones.
TEST(Sinks, WideKeysAreHashed) {
  constexpr const char* targets[] = {"sm_61", "sm_86", "sm_90"};
  const std::vector<std::vector<std::string>> keys = {
      {"f_a"}, {"f_a", "f_b"}, {"f_t", "f_a"}, {"f_b", "f_t", "f_a"}, {"f_a", "f_t", "f_b", "f_a"}};
  size_t turn = 0;
  rndn::test::Sample sample(2);
  for (const uint64_t groups : {2u, 40u, 900u})
    for (const auto& of : keys) {
      if (!sample.has_next()) continue;
      MadeTables tables;
      put_wide(tables, 3000, groups, groups + of.size());
      const std::string text = grouped(wide_loads(), of, {"f_n", "f_w", "f_x", "f_h"}, turn % 2 ? "m" : "");
      auto want = run_on_reference(text, tables);
      ASSERT_TRUE(want.ok()) << want.error().message << text;
      const char* target = targets[turn++ % 3];
      auto got = run_on(target, text, tables, 3);
      ASSERT_TRUE(got.ok()) << groups << " on " << target << ": " << got.error().message << text;
      EXPECT_EQ(got->result, *want) << groups << " on " << target << text;
      EXPECT_TRUE(is_hashed(*got)) << groups << " " << of.size() << " " << fmt::format("{}", fmt::join(got->library, " "));
    }
}

// The first guess is too small: the kernel runs again, and later runs know.
TEST(Sinks, TablesOfHashedKeysGrow) {
  MadeTables tables;
  put_wide(tables, 9000, 3000, 1);
  const std::string text = grouped(wide_loads(), {"f_b", "f_a"}, {"f_n"}, "m");
  auto want = run_on_reference(text, tables);
  How how{.runs = 3};
  how.engine.fold_slots = 256;
  auto got = run_so("sm_86", text, tables, how);
  ASSERT_TRUE(want.ok() && got.ok()) << got.error().message;
  EXPECT_EQ(got->result, *want);
  EXPECT_TRUE(is_hashed(*got));
  EXPECT_GT(got->by_run[0], got->by_run[1]);
  EXPECT_EQ(got->by_run[1], got->by_run[2]);
}

// Few groups, known from the run before: nothing waits before the results, and the runs become a graph. A table that has become too
// small is noticed with the results.
TEST(Sinks, FewHashedGroupsWaitForNothing) {
  MadeTables tables;
  put_wide(tables, 3000, 30, 2);
  const std::string text = grouped(wide_loads(), {"f_a"}, {"f_n"}, "");
  auto want = run_on_reference(text, tables);
  How how{.runs = 5};
  how.engine.measure_kernels = false;
  auto got = run_so("sm_90", text, tables, how);
  ASSERT_TRUE(want.ok() && got.ok()) << got.error().message;
  EXPECT_EQ(got->result, *want);
  EXPECT_TRUE(is_hashed(*got));
  EXPECT_LT(got->host_calls[2], got->host_calls[0]);

  how.same_results = false;
  how.engine.measure_kernels = true;  // no graph, which has the columns of its runs
  how.before_run = [&](int run) {
    if (run == 3) put_wide(tables, 3000, 1500, 3);
  };
  got = run_so("sm_90", text, tables, how);
  want = run_on_reference(text, tables);
  ASSERT_TRUE(want.ok() && got.ok()) << got.error().message;
  EXPECT_EQ(got->result, *want);
}

// A key that is the mark of a free slot, more groups than a table is worth, few rows, groups that are to be sorted: by the library.
TEST(Sinks, WhatIsNotHashedIsDoneByTheLibrary) {
  struct Case {
    uint64_t rows, groups;
    bool all_bits, sorts;
  };
  for (const Case& c : {Case{3000, 20, true, false}, Case{12000, 12000, false, false}, Case{2000, 20, false, false},
                        Case{3000, 20, false, true}}) {
    MadeTables tables;
    put_wide(tables, c.rows, c.groups, 4, c.all_bits);
    const std::string text = grouped(wide_loads(), {"f_a"}, {"f_n"}, "");
    auto want = run_on_reference(text, tables);
    How how{.runs = 2};
    if (c.sorts) how.engine.operators.group = operators::Options::Group::sort;
    auto got = run_so("sm_86", text, tables, how);
    ASSERT_TRUE(want.ok() && got.ok()) << got.error().message;
    EXPECT_EQ(got->result, *want) << c.rows << " " << c.groups;
    EXPECT_FALSE(is_hashed(*got)) << c.rows << " " << c.groups;
  }
}

// Columns of every type of key, selections of selections, dimensions behind them, several groups of one program.
class Grouping {
 public:
  // by_look_ups: selections follow from a dimension.
  explicit Grouping(uint64_t seed, bool by_look_ups = false) : random_(seed) {
    static constexpr uint64_t sizes[] = {0, 1, 40, 700, 6000};
    const uint64_t rows = sizes[pick(8) ? 2 + pick(3) : pick(2)];
    lines_ = "  f:? = @load_table(`f:sym);\n  d:? = @load_table(`d:sym);\n";
    const uint64_t dimension = 1 + pick(30);
    column("d", "a", dimension);
    column("d", "b", dimension);
    for (const char* name : {"p", "q", "r"}) column("f", name, rows);
    put("f", "n", BasicType::i64, rows, 1'000'000);
    put("f", "w", BasicType::i32, rows, 100);
    put("f", "row", BasicType::i64, rows, dimension);
    std::vector<int64_t> floats;
    for (uint64_t i = 0; i < rows; ++i) floats.push_back(std::bit_cast<int64_t>(static_cast<double>(pick(1'000'000)) / 64 - 5000));
    tables.put("f", "x", BasicType::f64, floats);
    load_column("f", "x", "f64");
    std::vector<int64_t> turn(rows);
    for (int64_t& t : turn) t = static_cast<int64_t>(pick(40));
    for (const bool single : {false, true}) {
      tables.put("f", single ? "h" : "z", single ? BasicType::f32 : BasicType::f64, special_floats(turn, single, seed));
      load_column("f", single ? "h" : "z", single ? "f32" : "f64");
    }
    std::vector<std::string> keys{"f_p", "f_q", "f_r"}, values{"f_n", "f_w", "f_x", "f_z", "f_h"};
    std::string at = "f_row";
    if (by_look_ups) put("d", "w", BasicType::i32, dimension, 100);
    for (uint64_t depth = by_look_ups ? 1 + pick(2) : pick(3); depth-- > 0;) {
      const std::string mask = fmt::format("m{}", depth);
      lines_ += fmt::format("  {}:? = @lt({}, {}:i32);\n", mask,
                            by_look_ups ? made(fmt::format("@index(d_w, {})", at)) : values[1], pick(110));
      for (auto* names : {&keys, &values})
        for (std::string& name : *names) name = made(fmt::format("@compress({}, {})", mask, name));
      at = made(fmt::format("@compress({}, {})", mask, at));
    }
    for (std::string* x : {&special_[1], &special_[0], &x_}) {
      *x = values.back();
      values.pop_back();
    }
    keys.push_back(made(fmt::format("@index(d_a, {})", at)));
    keys.push_back(made(fmt::format("@index(d_b, {})", at)));
    values.push_back(made(fmt::format("@plus({}, {})", values[0], values[0])));
    std::vector<std::string> results;
    for (uint64_t groups = 1 + pick(2); groups-- > 0;) group(keys, values, results);
    // Groups of one program differ in number: a list, and no table.
    text = fmt::format(
        "module m {{\n import Builtin.*;\n def main() : list<?> {{\n{}  all:? = @list({});\n  return all;\n }}\n}}\n",
        lines_, fmt::join(results, ", "));
  }
  std::string text;
  MadeTables tables;

 private:
  uint64_t pick(uint64_t n) { return random_() % n; }
  std::string made(const std::string& call) {
    const std::string name = fmt::format("t{}", made_++);
    lines_ += fmt::format("  {}:? = {};\n", name, call);
    return name;
  }
  void put(const std::string& table, const std::string& name, BasicType type, uint64_t rows, uint64_t below) {
    std::vector<int64_t> values;
    for (uint64_t i = 0; i < rows; ++i) values.push_back(static_cast<int64_t>(pick(below)));
    tables.put(table, name, type, values);
    load_column(table, name, hir::basic_type_name(type));
  }
  void load_column(const std::string& table, const std::string& name, std::string_view type) {
    lines_ += fmt::format("  {0}_{1}:{2} = check_cast(@column_value({0}, `{1}:sym), {2});\n", table, name, type);
  }
  void column(const std::string& table, const std::string& name, uint64_t rows) {
    static constexpr BasicType types[] = {BasicType::boolean, BasicType::i8,   BasicType::i16,   BasicType::i32,
                                          BasicType::i64,     BasicType::date, BasicType::minute};
    const uint64_t kind = pick(std::size(types) + 2), below = 1 + pick(pick(4) ? 6 : 60);
    if (kind < std::size(types))
      return put(table, name, types[kind], rows, types[kind] == BasicType::boolean ? 2 : below);
    std::vector<std::string> texts;
    for (uint64_t i = 0; i < rows; ++i) texts.push_back(pick(9) ? fmt::format("text {}", pick(below)) : std::string());
    const bool dictionary = kind == std::size(types);
    tables.put(table, name, dictionary, texts);
    load_column(table, name, dictionary ? "sym" : "str");
  }
  // The results' sums, and a few of them in the order of the keys.
  void group(const std::vector<std::string>& keys, const std::vector<std::string>& values,
             std::vector<std::string>& out) {
    std::vector<std::string> own = keys;
    std::shuffle(own.begin(), own.end(), random_);
    own.resize(1 + pick(3));
    const std::string g =
        made(fmt::format("@group({})", own.size() > 1 ? made(fmt::format("@list({})", fmt::join(own, ", "))) : own[0]));
    const std::string first = made(fmt::format("@keys({})", g)), rows = made(fmt::format("@values({})", g));
    std::vector<std::string> at, results;
    for (const std::string& k : own) at.push_back(made(fmt::format("@index({}, {})", k, first)));
    for (uint64_t n = 1 + pick(4); n-- > 0;) {
      if (pick(4) == 0) {
        const std::string cells = made(fmt::format("@each_right(@index, {}, {})", x_, rows));
        results.push_back(made(fmt::format("@raze({})", made(fmt::format("@each(@{}, {})", pick(3) ? "avg" : "sum", cells)))));
        continue;
      }
      if (pick(4) == 0) {  // NaN, infinity and -0 among them; nearly all groups have a NaN
        const std::string cells = made(fmt::format("@each_right(@index, {}, {})", pick(4) ? special_[pick(2)] : x_, rows));
        results.push_back(made(fmt::format("@raze({})", made(fmt::format("@each(@{}, {})", pick(2) ? "min" : "max", cells)))));
        continue;
      }
      const char* f = integer_functions[pick(4)];
      const std::string cells =
          std::string_view(f) == "len"
              ? rows
              : made(fmt::format("@each_right(@index, {}, {})", values[pick(values.size())], rows));
      results.push_back(made(fmt::format("@raze({})", made(fmt::format("@each(@{}, {})", f, cells)))));
    }
    std::string up = "1";
    for (size_t k = 1; k < at.size(); ++k) up += ", 1";
    const std::string o =
        at.size() > 1
            ? made(fmt::format("@order({}, ({}):bool)", made(fmt::format("@list({})", fmt::join(at, ", "))), up))
            : made(fmt::format("@order({}, 1:bool)", at[0]));
    for (const auto* of : {&at, &results})
      for (const std::string& r : *of) out.push_back(made(fmt::format("@index({}, {})", r, o)));
    if (pick(2))
      out.push_back(made(fmt::format("@index({}, {})", own[0], made(fmt::format("@index({}, {})", first, o)))));
  }

  std::mt19937_64 random_;
  std::string lines_, x_, special_[2];  // x_: the floats that have sums
  size_t made_ = 0;
};

TEST(Sinks, RandomProgramsGiveWhatTheInterpreterGives) {
  constexpr const char* targets[] = {"sm_61", "sm_86", "sm_90"};
  const char* seeds = std::getenv("RNDN_RANDOM_SEEDS");
  const uint64_t last = seeds ? std::strtoull(seeds, nullptr, 10) : rndn::test::in_the_gate(24, 60);
  size_t folded = 0;
  for (uint64_t seed = 0; seed < last; ++seed) {
    const Grouping random(seed);
    auto want = run_on_reference(random.text, random.tables);
    ASSERT_TRUE(want.ok()) << want.error().message << "\n" << random.text;
    for (uint64_t turn = seeds ? 0 : seed % 3; turn < (seeds ? 3 : seed % 3 + 1); ++turn) {
      auto got = run_on(targets[turn], random.text, random.tables, 2);
      ASSERT_TRUE(got.ok()) << "seed " << seed << " on " << targets[turn] << ": " << got.error().message << "\n"
                            << random.text;
      ASSERT_EQ(got->result, *want) << "seed " << seed << " on " << targets[turn] << "\n" << random.text;
      folded += std::none_of(got->library.begin(), got->library.end(), [](const std::string& k) {
        return k.starts_with("few") || k.starts_with("segment") || k.starts_with("group_");
      });
    }
  }
  std::printf("%zu runs without groups of the library\n", folded);
  EXPECT_GE(folded, last / 4);
}

// Selections by look-ups, every fold apart.
TEST(Sinks, RandomProgramsWithFoldsApartGiveWhatTheInterpreterGives) {
  constexpr const char* targets[] = {"sm_61", "sm_86", "sm_90"};
  const char* seeds = std::getenv("RNDN_RANDOM_SEEDS");
  const uint64_t last = seeds ? std::strtoull(seeds, nullptr, 10) : 20;
  How how{.runs = 2}, beside{.runs = 1};
  how.engine.most_rows_of_selective_folds = 0;
  size_t apart = 0;
  for (uint64_t seed = 0; seed < last; ++seed) {
    const Grouping random(seed, true);
    auto want = run_on_reference(random.text, random.tables);
    ASSERT_TRUE(want.ok()) << want.error().message << "\n" << random.text;
    auto got = run_so(targets[seed % 3], random.text, random.tables, how);
    ASSERT_TRUE(got.ok()) << "seed " << seed << ": " << got.error().message << "\n" << random.text;
    ASSERT_EQ(got->result, *want) << "seed " << seed << "\n" << random.text;
    if (seed % 4 != 0) continue;
    auto fused = run_so(targets[seed % 3], random.text, random.tables, beside);
    ASSERT_TRUE(fused.ok()) << fused.error().message;
    apart += folds(*got) && folds(*fused) && got->launches > fused->launches;
  }
  EXPECT_GE(apart, last / 8);
}

// --group hash: the same programs, every group that can be hashed in its kernel, however few rows and combinations of keys there are.
TEST(Sinks, RandomProgramsWithHashedGroupsGiveWhatTheInterpreterGives) {
  constexpr const char* targets[] = {"sm_61", "sm_86", "sm_90"};
  const char* seeds = std::getenv("RNDN_RANDOM_SEEDS");
  const uint64_t last = seeds ? std::strtoull(seeds, nullptr, 10) : rndn::test::in_the_gate(15, 40);
  How how{.runs = 2};
  how.engine.operators.group = operators::Options::Group::hash;
  size_t hashed = 0;
  for (uint64_t seed = 0; seed < last; ++seed) {
    const Grouping random(seed);
    auto want = run_on_reference(random.text, random.tables);
    ASSERT_TRUE(want.ok()) << want.error().message << "\n" << random.text;
    auto got = run_so(targets[seed % 3], random.text, random.tables, how);
    ASSERT_TRUE(got.ok()) << "seed " << seed << ": " << got.error().message << "\n" << random.text;
    ASSERT_EQ(got->result, *want) << "seed " << seed << "\n" << random.text;
    hashed += is_hashed(*got);
  }
  std::printf("%zu runs with hashed groups alone\n", hashed);
  EXPECT_GE(hashed, last * 9 / 10);
}

}  // namespace
}  // namespace rndn::runtime::sinks_test
