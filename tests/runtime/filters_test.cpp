// Filters in front of tables of rows by key (ptx/lookup/lookup.h): what is looked up through them is what the reference interpreter finds, with
// one and without, whatever the keys are and however many rows were selected; and few rows let few keys read the table.
#include <gtest/gtest.h>

#include <limits>

#include "runtime/engine.h"
#include "runtime/print_result.h"
#include "runtime/simulator/simulator_device.h"
#include "tests/runtime/forwarding_device.h"
#include "tests/runtime/on_reference.h"
#include "tests/support/made_tables.h"

namespace rndn::runtime::filters_test {
namespace {

using hir::BasicType;
using rndn::test::MadeTables;

constexpr uint64_t always = 1, never = UINT64_MAX;  // EngineOptions::filtered_rows

// What the kernels that look up read, which are those of most sectors; the library's are small.
class ReadsOfDevice final : public runtime::test::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  device::LaunchCounters most;
  Result<void> launch(device::KernelHandle k, device::Dim3 grid, device::Dim3 block, uint32_t shared,
                      std::span<const std::byte> parameters) override {
    RETURN_IF_ERROR(to_.launch(k, grid, block, shared, parameters));
    if (const device::LaunchCounters c = to_.last_launch(); c.load_sectors > most.load_sectors) most = c;
    return {};
  }
};

struct Looked {
  std::string result;
  device::LaunchCounters most;
  size_t filtered = 0;  // look-ups that the forecast has filters for
  size_t late = 0;      // kernels that the forecast was wrong about
  size_t launches = 0;
  std::string told;
};

Result<Looked> look(const char* target, const std::string& text, const reference::Tables& tables, uint64_t filtered_rows, int runs = 1) {
  SourceManager sources;
  DiagnosticSink sink;
  Timings timings;
  CompileOptions options;
  options.target = target;
  options.verify_passes = true;
  sim::Options checks;
  checks.check_memory = checks.check_uninitialised = checks.check_hazards = checks.check_races = true;
  ASSIGN_OR_RETURN(const auto simulator, open_simulator(target, checks));
  ReadsOfDevice device(*simulator);
  Engine engine(device, tables);
  EngineOptions how;
  how.allow_fallback = false;
  how.filtered_rows = filtered_rows;
  Looked out;
  options.forecast = [&](const Compiled& c) {
    DataChoices choices;
    Forecast found = engine.forecast(c, sources, how, tables, &choices);
    out.filtered = 0;
    for (const codegen::KernelEncodings& form : found.forms)
      out.filtered += static_cast<size_t>(std::count(form.lookups.begin(), form.lookups.end(), codegen::KernelEncodings::filtered));
    out.told = fmt::format("{}\n", fmt::join(choices.kept, "\n"));
    return found;
  };
  auto compiled = compile(sources.add("t.hir", text), sources, options, sink, timings);
  if (!compiled) return input_error("{}{}", compiled.error().message, render(sink, sources));
  ASSIGN_OR_RETURN(const auto plan, engine.plan(*compiled, sources, how, timings));
  for (int run = 0; run < runs; ++run) {
    std::vector<KernelReport> kernels;
    ASSIGN_OR_RETURN(const auto results, engine.run(*plan, timings, nullptr, &kernels));
    ASSIGN_OR_RETURN(std::string shown, print_result(results, Format::json));
    if (run && shown != out.result) return input_error("run {} gives something else", run);
    out.result = std::move(shown);
    out.launches = 0;
    for (const KernelReport& k : kernels) {
      out.launches += k.launches;
      if (run == 0 && k.kind == "outlined") out.late += k.late;
    }
  }
  out.most = device.most;
  return out;
}

// Where those of the keys are that the selector leaves, among as many facts.
std::string find_all(const char* type, int64_t below) {
  return fmt::format(
      "module m {{ import Builtin.*; def main() : i64, i64 {{ f:? = @load_table(`f:sym); d:? = @load_table(`d:sym);\n"
      "fk:{0} = check_cast(@column_value(f, `k:sym), {0}); fv:i64 = check_cast(@column_value(f, `v:sym), i64);\n"
      "dk:{0} = check_cast(@column_value(d, `k:sym), {0}); ds:i64 = check_cast(@column_value(d, `s:sym), i64);\n"
      "m:? = @lt(ds, {1}:i64); k:? = @compress(m, dk); at:? = @index_of(fk, k); here:? = @member(fk, k); v:? = @compress(here, fv);\n"
      "return at, v; }} }}\n",
      type, below);
}

struct Keys {
  const char* what;
  BasicType type;
  const char* name;
  std::vector<int64_t> keys, asked;  // asked: besides the keys
};

std::vector<int64_t> series(int64_t first, int64_t step, int64_t count) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(first + i * step);
  return out;
}
Keys with(Keys keys, std::initializer_list<int64_t> more) {
  keys.keys.insert(keys.keys.end(), more);
  return keys;
}

std::vector<Keys> all_keys() {
  constexpr int64_t least32 = std::numeric_limits<int32_t>::min(), most32 = std::numeric_limits<int32_t>::max();
  constexpr int64_t least64 = std::numeric_limits<int64_t>::min(), most64 = std::numeric_limits<int64_t>::max();
  constexpr int64_t n = 1300;
  return {
      // The filter has 1024 bits at least: the last of them, the first bit that is shared, and keys beyond both ends.
      {"each number, some below 0", BasicType::i32, "i32", series(-500, 1, n), {-501, 800, 801, least32, most32, 823, 524}},
      {"as many as there are bits", BasicType::i64, "i64", series(7, 1, 1024), {6, 1030, 1031, 1031 + 1024, 7 - 1024, least64, most64}},
      {"gaps, low bits alike", BasicType::i32, "i32", series(0, 32, n), {1, 31, 32 * n, 32 * n - 1, 33 * n, -32}},
      {"repeating", BasicType::i64, "i64", [] {
         std::vector<int64_t> out = series(0, 3, 700);
         for (int64_t i = 0; i < 600; ++i) out.push_back(out[static_cast<size_t>(i * 7 % 700)]);
         return out;
       }(), {1, 2, 2100, -1}},
      with({"the type's ends", BasicType::i32, "i32", series(-9999, 3331, n), {least32 + 1, most32 - 1, 0}}, {least32, most32}),
      {"from the type's least number on", BasicType::i32, "i32", series(least32, 1, n), {least32 + n, most32, 0}},
      with({"beyond 32 bits", BasicType::i64, "i64", series(5, int64_t{1} << 33, n), {6, int64_t{1} << 32}}, {least64, most64}),
      {"small type", BasicType::i16, "i16", series(-32768, 50, n), {32767, -32767, 0}},
  };
}

// Tables of these keys, of which the first `few` come with the selector 0, others with 1, in an order of their own.
void put_tables(MadeTables& tables, const Keys& keys, size_t few) {
  std::vector<int64_t> order, selector;
  const size_t n = keys.keys.size();
  for (size_t i = 0; i < n; ++i) {
    const size_t at = i * 619 % n;  // 619 is prime and divides none of the sizes
    order.push_back(keys.keys[at]);
    // The last key is among the first that are selected.
    selector.push_back((at + 1) % n < few ? 0 : 1);
  }
  std::vector<int64_t> asked = keys.keys, values;
  asked.insert(asked.end(), keys.asked.begin(), keys.asked.end());
  for (size_t i = 0; i < asked.size(); ++i) values.push_back(static_cast<int64_t>(i));
  tables.put("d", "k", keys.type, order);
  tables.put("d", "s", BasicType::i64, selector);
  tables.put("f", "k", keys.type, asked);
  tables.put("f", "v", BasicType::i64, values);
}

TEST(Filters, FindWhatIsThere) {
  static constexpr const char* targets[] = {"sm_90", "sm_61", "sm_75"};
  size_t turn = 0;
  for (const Keys& keys : all_keys()) {
    const size_t n = keys.keys.size();
    for (const size_t few : {size_t{0}, size_t{1}, size_t{33}, n / 4, n / 4 + 1, n}) {  // up to a fourth has a filter
      SCOPED_TRACE(fmt::format("{}, {} of {} on {}", keys.what, few, n, targets[turn % 3]));
      MadeTables tables;
      put_tables(tables, keys, few);
      const std::string text = find_all(keys.name, 1);
      const auto want = run_on_reference(text, tables);
      ASSERT_TRUE(want.ok()) << want.error().message;
      const auto with = look(targets[turn++ % 3], text, tables, always, few == 33 ? 2 : 1);
      ASSERT_TRUE(with.ok()) << with.error().message;
      EXPECT_EQ(with->result, *want);
      EXPECT_EQ(with->filtered, 2u);
      EXPECT_EQ(with->late, 0u);
      if (few != 33) continue;
      const auto without = look(targets[turn % 3], text, tables, never);
      ASSERT_TRUE(without.ok()) << without.error().message;
      EXPECT_EQ(without->result, *want);
      EXPECT_EQ(without->filtered, 0u);
      EXPECT_EQ(without->launches, with->launches);
    }
  }
}

// Tables of 32,768 rows and as many facts. Where 64 rows are selected, the filter has 4,096 bits, 16 sectors, of which a warp reads no more.
TEST(Filters, KeepKeysFromTheTable) {
  constexpr int64_t rows = 1 << 15;
  for (const bool hashed : {false, true}) {
    SCOPED_TRACE(hashed ? "hashed" : "direct");
    Keys keys{"", BasicType::i64, "i64", {}, {}};
    for (int64_t i = 0; i < rows; ++i) keys.keys.push_back(i * 40503 % rows * (hashed ? 1 << 14 : 1));
    const auto read = [&](size_t few, uint64_t filtered_rows) {
      MadeTables tables;
      put_tables(tables, keys, few);
      auto ran = look("sm_90", find_all("i64", 1), tables, filtered_rows);
      EXPECT_TRUE(ran.ok()) << ran.error().message;
      if (!ran.ok()) return uint64_t{0};
      std::printf("%s, %zu rows, %s filter: %llu sectors, %llu warp instructions\n", hashed ? "hashed" : "direct", few,
                  filtered_rows == never ? "no" : "a", static_cast<unsigned long long>(ran->most.load_sectors),
                  static_cast<unsigned long long>(ran->most.warp_instructions));
      return ran->most.load_sectors;
    };
    const uint64_t few = read(64, always), few_without = read(64, never), many = read(rows, always), many_without = read(rows, never);
    EXPECT_LT(few, few_without / 2);
    EXPECT_GE(many, many_without);
    EXPECT_LT(many, many_without + 2048);  // each block looks whether there is a filter
  }
}

// What counts only where all conditions hold, of which a look-up behind a filter is the first and a gather the next, is read where that one holds.
TEST(Filters, ColumnsWaitForThem) {
  constexpr int64_t rows = 1 << 16;
  Keys keys{"", BasicType::i64, "i64", {}, {}};
  for (int64_t i = 0; i < rows; ++i) keys.keys.push_back(i * 40503 % rows);
  MadeTables tables;
  put_tables(tables, keys, 64);
  const auto read = [&](const char* counted, uint64_t filtered_rows) {
    const std::string text = fmt::format(
        "module m {{ import Builtin.*; def main() : i64 {{ f:? = @load_table(`f:sym); d:? = @load_table(`d:sym);\n"
        "fk:i64 = check_cast(@column_value(f, `k:sym), i64); fv:i64 = check_cast(@column_value(f, `v:sym), i64);\n"
        "dk:i64 = check_cast(@column_value(d, `k:sym), i64); ds:i64 = check_cast(@column_value(d, `s:sym), i64);\n"
        "m:? = @lt(ds, 1:i64); k:? = @compress(m, dk); h:? = @member(fk, k); o:? = @index(ds, fk); l:? = @lt(o, 2:i64);\n"
        "b:? = @and(h, l); x:? = @compress(b, {}); s:i64 = @sum(x); return s; }} }}\n",
        counted);
    const auto want = run_on_reference(text, tables);
    const auto ran = look("sm_90", text, tables, filtered_rows, 2);
    EXPECT_TRUE(want.ok() && ran.ok()) << ran.error().message;
    if (!want.ok() || !ran.ok()) return uint64_t{0};
    EXPECT_EQ(ran->result, *want);
    return ran->most.load_sectors;
  };
  const auto of_values = [&](uint64_t filtered_rows) { return read("fv", filtered_rows) - read("fk", filtered_rows); };
  EXPECT_GT(of_values(never), rows * 8 / 32 - 64u);
  EXPECT_LT(of_values(always), 4096u);
}

// What `rndn explain --data` says: that there is one, and why not.
TEST(Filters, AreTold) {
  Keys keys{"", BasicType::i32, "i32", series(0, 1, 1300), {}};
  MadeTables tables;
  put_tables(tables, keys, 20);
  const auto told = look("sm_90", find_all("i32", 1), tables, always);
  ASSERT_TRUE(told.ok()) << told.error().message;
  EXPECT_NE(told->told.find("t.hir:4:47: a look-up of 1300 keys: a bit is read before the table, if no more than 325 of the 1300 rows that there "
                            "may be are selected\n"),
            std::string::npos)
      << told->told;
  tables.put("f", "k", BasicType::i32, series(0, 1, 1299));
  tables.put("f", "v", BasicType::i64, series(0, 1, 1299));
  const auto fewer = look("sm_90", find_all("i32", 1), tables, always);
  ASSERT_TRUE(fewer.ok()) << fewer.error().message;
  EXPECT_NE(fewer->told.find("a look-up of 1299 keys: no bits before the table, since that may have 1300 rows\n"), std::string::npos) << fewer->told;
  EXPECT_EQ(fewer->filtered, 0u);
  EXPECT_EQ(fewer->late, 0u);
}

}  // namespace
}  // namespace rndn::runtime::filters_test
