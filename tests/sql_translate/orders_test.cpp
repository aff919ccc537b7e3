// An answer does not depend on the order of joins: the planner takes tables for empty, for what they
// are, and for each other, and the rows are the same.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "libraries/base/system/files.h"
#include "runtime/data/sources.h"
#include "runtime/data/tables.h"
#include "runtime/planner/planner.h"
#include "runtime/planner/statements.h"
#include "runtime/sql/catalog.h"
#include "ssb/source.h"
#include "tests/sql_translate/translated.h"
#include "tpch/source.h"

namespace rndn::testing::orders_test {
namespace {

// Every table as long as another: the longest has the rows of the shortest.
sql::Catalog swapped(sql::Catalog catalog) {
  std::vector<sql::Table*> by_rows;
  for (sql::Table& table : catalog.tables) by_rows.push_back(&table);
  std::sort(by_rows.begin(), by_rows.end(), [](auto* a, auto* b) { return a->rows < b->rows; });
  for (size_t i = 0; i < by_rows.size() / 2; ++i) std::swap(by_rows[i]->rows, by_rows[by_rows.size() - 1 - i]->rows);
  return catalog;
}

std::string text_of(Rows rows) {
  std::vector<std::string> lines;
  for (const auto& row : rows.rows) {
    std::string& line = lines.emplace_back();
    for (const Cell& cell : row)
      line += std::visit(
          [](const auto& x) {
            if constexpr (std::is_same_v<std::decay_t<decltype(x)>, double>)
              return fmt::format("{:.9g}|", x);
            else
              return fmt::format("{}|", x);
          },
          cell);
  }
  std::sort(lines.begin(), lines.end());  // rows of equal order come in any
  return fmt::format("{}", fmt::join(lines, "\n"));
}

TEST(Orders, OfJoinsChangeNoAnswer) {
  planner::Options options = planner::Options::of_environment();
  options.folders = {RNDN_BIN_DIR "/../share/duckdb", RNDN_BIN_DIR "/../../share/duckdb"};
  if (planner::library_path(options).empty())
    GTEST_SKIP() << "skipped: the planner of SQL is not installed (tools/sql-planner does that)";
  auto opened = planner::Planner::open(options);
  ASSERT_TRUE(opened) << opened.error().message;
  planner::Planner& planner = **opened;
  size_t queries = 0, other_plans = 0;
  for (const data::Scheme* scheme : {&tpch::scheme, &ssb::scheme}) {
    auto source = data::open_source({.data = fmt::format("{}:0.01", scheme->name)}, {scheme, 1}, {.progress = false});
    ASSERT_TRUE(source) << source.error().message;
    const data::SourceTables tables(*source);
    runtime::SqlCatalog known(*source);
    sql::Catalog empty = known.catalog();
    for (sql::Table& table : empty.tables) table.rows = 0;
    for (const auto& file :
         std::filesystem::directory_iterator(fmt::format("{}/{}/sql", RNDN_SOURCE_DIR, scheme->name))) {
      const auto text = read_file(file.path().string());
      ASSERT_TRUE(text);
      SourceManager sources;
      DiagnosticSink sink;
      const auto statement = planner::split_statements(*text).at(0);
      const Span span{sources.add(file.path().filename().string(), *text), static_cast<uint32_t>(statement.begin),
                      static_cast<uint32_t>(statement.end)};
      std::vector<std::string> plans, answers;
      for (int round = 0; round < 3; ++round) {
        ASSERT_TRUE(planner.set_catalog(round == 0 ? empty : round == 1 ? known.catalog() : swapped(known.catalog())));
        auto planned = planner.plan(span, sources, sink);
        ASSERT_TRUE(planned && planned->tree) << render(sink, sources);
        if (round == 0) ASSERT_TRUE(known.learn(planned->reads));
        const auto translation = sql::translate(*planned->tree, known.catalog());
        ASSERT_TRUE(translation) << translation.error().message;
        const auto rows = run_on_reference(*translation, (*source)->schema(), tables);
        ASSERT_TRUE(rows) << rows.error().message;
        plans.push_back(std::move(planned->plan));
        answers.push_back(text_of(*rows));
      }
      EXPECT_EQ(answers[1], answers[0]) << file.path();
      EXPECT_EQ(answers[2], answers[0]) << file.path();
      ++queries;
      other_plans += plans[2] != plans[1];
    }
  }
  EXPECT_EQ(queries, 35u);
  EXPECT_GE(other_plans, 15u);
}

}  // namespace
}  // namespace rndn::testing::orders_test
