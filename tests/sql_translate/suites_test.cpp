// The queries of TPC-H and SSB in our own words of SQL (tpch/sql, ssb/sql), planned (plans/, by
// DuckDB 2.0.1 with the profile of runtime/planner), translated and run: the rows are those of
// SQLite, which reads the specification's wording of TPC-H, and our texts of SSB, on the same
// generated data.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

#include "assembler/isa/isa.h"
#include "assembler/simulator/simulator.h"
#include "libraries/base/system/files.h"
#include "runtime/compiler/code_cache.h"
#include "runtime/data/sources.h"
#include "runtime/data/tables.h"
#include "runtime/simulator/simulator_device.h"
#include "ssb/source.h"
#include "tests/queries/answers.h"
#include "tests/sql_translate/translated.h"
#include "tests/support/every_case.h"
#include "tests/support/status.h"
#include "tpch/source.h"

namespace rndn::testing::suites_test {
namespace {

struct Suite {
  const data::Scheme& scheme;
  const char* texts;                 // folder of the oracle's
  std::vector<std::string> indexes;  // of the oracle; TPC-H has its own
  double factor = 1;                 // of the scale: SSB's dimensions are small
  // SQLite's tables, made with the first query.
  std::shared_ptr<data::Source> source = nullptr;
  std::unique_ptr<SqliteOracle> oracle = nullptr;

  static double scale() {
    const char* text = std::getenv("RNDN_QUERY_SCALE");
    return text ? std::strtod(text, nullptr) : 0.01;
  }
  void open() {
    if (source) return;
    auto opened = data::open_source({.data = fmt::format("{}:{}", scheme.name, scale() * factor)},
                                    {&scheme, 1}, {.progress = false});
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    source = *opened;
    oracle = indexes.empty() ? std::make_unique<SqliteOracle>(scale())
                             : std::make_unique<SqliteOracle>(*source, indexes);
  }
};
Suite suites[] = {
    {tpch::scheme, "tests/queries/sql", {}},
    {ssb::scheme,
     "ssb/sql",
     {"customer(c_custkey)", "supplier(s_suppkey)", "part(p_partkey)", "date(d_datekey)"},
     5}};

// What a run costs beside its bytes: a ratchet, of kernels that one must not notice to have become
// worse. RNDN_RECORD=1 test_sql_translate --gtest_filter=*OnTheSimulator* writes the table anew.
struct Cost {
  uint32_t launches = 0;
  uint32_t registers = 0;  // the most of an outlined kernel
  uint32_t warps = 64;     // the fewest of one on a multiprocessor
};
using Costs = std::map<std::string, Cost>;

std::string costs_file() { return RNDN_SOURCE_DIR "/tests/sql_translate/costs.tsv"; }

Costs read_costs() {
  Costs costs;
  std::ifstream in(costs_file());
  std::string line;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string query;
    Cost c;
    if (words >> query >> c.launches >> c.registers >> c.warps) costs[query] = c;
  }
  return costs;
}
void write_costs(const Costs& costs) {
  std::ofstream out(costs_file(), std::ios::binary);
  out << "query\tlaunches\tregisters\twarps\n";
  for (const auto& [query, c] : costs)
    out << query << '\t' << c.launches << '\t' << c.registers << '\t' << c.warps << '\n';
}

Cost cost_of(const std::vector<runtime::KernelReport>& kernels, const char* target) {
  Cost c;
  for (const runtime::KernelReport& k : kernels) {
    c.launches += static_cast<uint32_t>(k.launches);
    if (k.kind != "outlined" || k.launches == 0) continue;
    constexpr uint32_t threads = 256;
    const sim::KernelInfo info{.registers = k.registers, .shared_bytes = k.shared_bytes};
    const uint32_t blocks = sim::resident_blocks(*isa::find_target(target), info, threads, 0);
    c.registers = std::max(c.registers, k.registers);
    c.warps = std::min(c.warps, blocks * threads / 32);
  }
  return c;
}

struct Query {
  Suite* suite;
  std::string name;
  bool may_be_empty = false;  // below scale 1
};

Result<std::string> file_of(const Query& query, const std::string& folder, const char* ending) {
  return read_file(fmt::format("{}/{}/{}.{}", RNDN_SOURCE_DIR, folder, query.name, ending));
}

Result<sql::Translation> translation_of(const Query& query, const std::vector<std::string>& names) {
  ASSIGN_OR_RETURN(const std::string json, file_of(query, "tests/sql_translate/plans", "json"));
  ASSIGN_OR_RETURN(const sql::Plan plan, sql::read_plan(json));
  ASSIGN_OR_RETURN(const sql::Catalog catalog, catalog_of(*query.suite->source, plan));
  return sql::translate(plan, catalog, names);
}

class Translated : public ::testing::TestWithParam<Query> {
 protected:
  static void TearDownTestSuite() {
    for (Suite& suite : suites) suite.oracle.reset(), suite.source.reset();
  }
  Result<sql::Translation> translation() { return translation_of(GetParam(), wanted_.names); }
  data::Source& source() { return *GetParam().suite->source; }
  void proven(const char* target, const char* witness) const {
    record_status("sql", fmt::format("{} {}", GetParam().suite->scheme.name, GetParam().name), target,
                  witness);
  }
  void SetUp() override {
    Suite& suite = *GetParam().suite;
    suite.open();
    const Result<std::string> text = file_of(GetParam(), suite.texts, "sql");
    ASSERT_TRUE(text.ok()) << text.error().message;
    oracle_text_ = *text;
    wanted_ = suite.oracle->query(oracle_text_);
    if (!GetParam().may_be_empty) {
      ASSERT_GT(wanted_.rows.size(), 0u) << "an empty answer proves little";
    }
  }

  std::string oracle_text_;
  Rows wanted_;
};

TEST_P(Translated, AgreesWithSqliteOnTheReferenceInterpreter) {
  const Result<sql::Translation> t = translation();
  ASSERT_TRUE(t.ok()) << t.error().message;
  const Result<Rows> got =
      run_on_reference(*t, source().schema(), data::SourceTables(GetParam().suite->source));
  ASSERT_TRUE(got.ok()) << got.error().message << t->program;
  ASSERT_EQ(difference(*got, wanted_, oracle_text_), "") << t->program;
  proven("any", "cpu");
}

// A column without nulls has no mask: no query of the suites reads one, and its program, and with it
// each kernel, is the same whatever nulls are in columns that it does not read. A mask comes with
// nulls in a column that it reads, and with nothing else.
TEST_P(Translated, HasAMaskOnlyForAColumnWithNulls) {
  const Result<std::string> json = file_of(GetParam(), "tests/sql_translate/plans", "json");
  ASSERT_TRUE(json.ok()) << json.error().message;
  const Result<sql::Plan> plan = sql::read_plan(*json);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  Result<sql::Catalog> catalog = catalog_of(source(), *plan);
  ASSERT_TRUE(catalog.ok()) << catalog.error().message;
  const auto program = [&] {
    const Result<sql::Translation> t = sql::translate(*plan, *catalog, wanted_.names);
    EXPECT_TRUE(t.ok()) << t.error().message;
    return t.ok() ? t->program : "";
  };
  EXPECT_EQ(program().find("@column_valid("), std::string::npos);
  size_t masks = 0;
  for (sql::Table& table : catalog->tables)
    for (sql::Column& column : table.columns) {
      const sql::Column before = column;
      if (std::find(table.primary.begin(), table.primary.end(), column.name) != table.primary.end())
        continue;
      column.unique = false;  // what has nulls is not
      const std::string without = program();
      column.has_nulls = true;
      const std::string with = program();
      const bool has_mask = with.find("@column_valid(") != std::string::npos;
      EXPECT_EQ(with == without, !has_mask) << table.name << '.' << column.name << '\n' << with;
      masks += has_mask;
      column = before;
    }
  EXPECT_GT(masks, 0u);
}

TEST_P(Translated, AgreesWithSqliteOnTheSimulator) {
  if (Suite::scale() > 0.01) GTEST_SKIP() << "skipped: the simulator at scale 0.01 only";
  const Result<sql::Translation> t = translation();
  ASSERT_TRUE(t.ok()) << t.error().message;
  uint64_t walked_again = 0;
  std::vector<runtime::KernelReport> kernels;
  const Result<Rows> got =
      run_on_simulator(*t, source().schema(), data::SourceTables(GetParam().suite->source), "sm_90",
                       0.0, &walked_again, &kernels);
  ASSERT_TRUE(got.ok()) << got.error().message << t->program;
  ASSERT_EQ(difference(*got, wanted_, oracle_text_), "") << t->program;
  // What a query needs of its text columns is made once, and kept.
  EXPECT_EQ(walked_again, 0u) << t->program;
  Costs costs = read_costs();
  const Cost cost = cost_of(kernels, "sm_90");
  if (std::getenv("RNDN_RECORD")) {
    costs[GetParam().name] = cost;
    write_costs(costs);
  }
  ASSERT_TRUE(costs.contains(GetParam().name)) << "not in " << costs_file();
  const Cost& known = costs[GetParam().name];
  EXPECT_LE(cost.launches, known.launches);
  EXPECT_LE(cost.registers, known.registers);
  EXPECT_GE(cost.warps, known.warps);
  proven("sm_90", "simulator");
}

std::vector<Query> tpch_queries() {
  std::vector<Query> queries;
  for (int i = 1; i <= 22; ++i) queries.push_back({&suites[0], fmt::format("q{:02}", i)});
  return queries;
}
// 3.3 and 3.4 select fewer than one line of 10,000: tests/ssb shows that they select some.
std::vector<Query> ssb_queries() {
  std::vector<Query> queries;
  for (const char* name : {"1.1", "1.2", "1.3", "2.1", "2.2", "2.3", "3.1", "3.2", "3.3", "3.4",
                           "4.1", "4.2", "4.3"}) {
    const bool is_rare = std::string_view("3.3 3.4").find(name) != std::string_view::npos;
    queries.push_back({&suites[1], fmt::format("q{}", name), is_rare});
  }
  return queries;
}

// --- Columns in every encoding ---

// Bytes that kernels must move, those of the library too.
uint64_t bytes_of(const std::vector<runtime::KernelReport>& kernels) {
  uint64_t bytes = 0;
  for (const runtime::KernelReport& k : kernels)
    bytes += k.floor_bytes * (k.kind == "library" ? 1 : k.launches);
  return bytes;
}

bool same_bytes(const Rows& a, const Rows& b) {
  const auto same = [](const Cell& x, const Cell& y) {
    const auto *p = std::get_if<double>(&x), *q = std::get_if<double>(&y);
    return p && q ? std::bit_cast<uint64_t>(*p) == std::bit_cast<uint64_t>(*q) : x == y;
  };
  return a.names == b.names &&
         std::equal(a.rows.begin(), a.rows.end(), b.rows.begin(), b.rows.end(),
                    [&](const std::vector<Cell>& x, const std::vector<Cell>& y) {
                      return std::equal(x.begin(), x.end(), y.begin(), y.end(), same);
                    });
}

// The rows of every query are the same bytes whatever the columns' encoding is, and kernels move
// at most `most` of the bytes that they move of plain columns.
void answers_alike(const std::vector<Query>& queries, double most) {
  std::map<runtime::Encode, uint64_t> moved, moved_plain;
  rndn::test::Sample sample(2);  // in the gate half of the queries narrow, half of them packed
  for (const Query& query : queries) {
    SCOPED_TRACE(query.name);
    query.suite->open();
    std::optional<Rows> plain;
    uint64_t bytes_plain = 0;
    for (runtime::Encode encode :
         {runtime::Encode::plain, runtime::Encode::narrow, runtime::Encode::packed}) {
      if (encode != runtime::Encode::plain && !sample.has_next()) continue;
      const Result<sql::Translation> t = translation_of(query, {});
      ASSERT_TRUE(t.ok()) << t.error().message;
      std::vector<runtime::KernelReport> kernels;
      const Result<Rows> got =
          run_on_simulator(*t, query.suite->source->schema(), data::SourceTables(query.suite->source),
                           "sm_90", 0.0, nullptr, &kernels, encode);
      ASSERT_TRUE(got.ok()) << got.error().message << t->program;
      if (encode == runtime::Encode::plain) plain = *got, bytes_plain = bytes_of(kernels);
      EXPECT_TRUE(same_bytes(*got, *plain)) << static_cast<int>(encode) << "\n" << t->program;
      moved[encode] += bytes_of(kernels);
      moved_plain[encode] += bytes_plain;
    }
  }
  for (runtime::Encode encode : {runtime::Encode::narrow, runtime::Encode::packed}) {
    EXPECT_GT(moved[encode], 0u);
    EXPECT_LE(static_cast<double>(moved[encode]), most * static_cast<double>(moved_plain[encode]));
  }
}

TEST(Encodings, TpchAnswersAlikeAndMovesFewerBytes) { answers_alike(tpch_queries(), 0.85); }
TEST(Encodings, SsbAnswersAlikeAndMovesFewerBytes) { answers_alike(ssb_queries(), 0.85); }

// What a run over the source decides for a program of SQL, and what it answers. collected_rows: as rows are few here.
struct Decided {
  std::string told;
  Rows rows;
  uint64_t assembled_ns = 0;
};
Result<Decided> decided(const sql::Translation& t, const std::shared_ptr<data::Source>& source,
                        runtime::CodeCache& code) {
  const data::SourceTables tables(source);
  SourceManager sources;
  DiagnosticSink sink;
  Timings timings;
  ASSIGN_OR_RETURN(const auto device, runtime::open_simulator("sm_90"));
  runtime::Engine engine(*device, tables, &code);
  runtime::EngineOptions options;
  options.collected_rows = 10'000;
  Decided out;
  runtime::CompileOptions compile_options;
  compile_options.target = "sm_90";
  compile_options.schema = &source->schema();
  compile_options.numbers_as_parameters = true;
  compile_options.code_cache = &code;
  compile_options.forecast = [&](const runtime::Compiled& c) {
    runtime::DataChoices choices;
    runtime::Forecast found = engine.forecast(c, sources, options, tables, &choices);
    for (const std::string& line : choices.kept) out.told += line + "\n";
    return found;
  };
  ASSIGN_OR_RETURN(const runtime::Compiled compiled,
                   runtime::compile(sources.add("query.hir", t.program), sources, compile_options, sink, timings));
  ASSIGN_OR_RETURN(const auto plan, engine.plan(compiled, sources, options, timings));
  ASSIGN_OR_RETURN(const std::vector<reference::Value> results, engine.run(*plan, timings));
  out.rows = rows_of(t, results[0], 0.0);
  out.assembled_ns = timings.exclusive_ns(Phase::select);
  return out;
}

// How many rows are left follows from a query's own constants. Others on the same side of what is collected compile nothing.
TEST(Collecting, FollowsFromTheConstantsOfAQuery) {
  Suite suite{tpch::scheme, "", {}};
  const auto opened = data::open_source({.data = "tpch:0.01"}, {&tpch::scheme, 1}, {.progress = false});
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  suite.source = *opened;
  const Result<sql::Translation> translated = translation_of({&suite, "q14"}, {});
  ASSERT_TRUE(translated.ok()) << translated.error().message;
  runtime::CodeCache code("");
  struct Case {
    const char* from;
    bool collects, compiles;
  };
  for (const Case& c : {Case{"1995-09-01", true, true}, Case{"1995-08-01", true, false}, Case{"1992-01-01", false, true},
                        Case{"1992-02-01", false, false}, Case{"1995-09-02", true, false}}) {
    SCOPED_TRACE(c.from);
    sql::Translation t = *translated;
    const std::string before = "1995-09-01:date";
    const size_t at = t.program.find(before);
    ASSERT_NE(at, std::string::npos) << t.program;
    t.program.replace(at, before.size(), std::string(c.from) + ":date");
    const Result<Decided> got = decided(t, suite.source, code);
    ASSERT_TRUE(got.ok()) << got.error().message;
    EXPECT_EQ(got->told.find("warps collect them") != std::string::npos, c.collects) << got->told;
    EXPECT_EQ(got->told.find("evaluated where they lie") != std::string::npos, !c.collects) << got->told;
    EXPECT_EQ(got->assembled_ns > 0, c.compiles);
    const Result<Rows> wanted = run_on_reference(t, suite.source->schema(), data::SourceTables(suite.source));
    ASSERT_TRUE(wanted.ok()) << wanted.error().message;
    EXPECT_EQ(difference(got->rows, *wanted, t.program), "");
  }
}

std::string case_name(const ::testing::TestParamInfo<Query>& info) {
  std::string name = info.param.name;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Tpch, Translated, ::testing::ValuesIn(tpch_queries()), case_name);
INSTANTIATE_TEST_SUITE_P(Ssb, Translated, ::testing::ValuesIn(ssb_queries()), case_name);

}  // namespace
}  // namespace rndn::testing::suites_test
