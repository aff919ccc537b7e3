// The planner as the tests find it, and a catalog that most of them share.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/planner/planner.h"
#include "runtime/planner/statements.h"

namespace rndn::planner {

inline Options installed() {
  Options options = Options::of_environment();
  options.folders = {RNDN_BIN_DIR "/../share/duckdb", RNDN_BIN_DIR "/../../share/duckdb"};
  return options;
}
// The folder of tools/sql-planner; empty: there is none.
inline std::string installed_folder() {
  for (const std::string& folder : installed().folders)
    if (std::filesystem::exists(folder + "/" + wrapper_name)) return folder;
  return "";
}
// Why `python3` cannot import the package in the folder; empty: it can.
inline std::string python_misfit(const std::string& folder) {
  const bool is_311 = std::filesystem::exists(folder + "/_duckdb.cpython-311-x86_64-linux-gnu.so");
  const std::string wanted = is_311 ? "== (3, 11)" : ">= (3, 12)";
  const std::string command =
      "python3 -c 'import sys; sys.exit(not sys.version_info[:2] " + wanted + ")' 2>/dev/null";
  return std::system(command.c_str()) == 0
             ? ""
             : "skipped: the planner's package wants a python3 whose version is " + wanted;
}
// What $RNDN_DUCKDB names counts as installed: the tests then speak of that one.
#define REQUIRE_PLANNER()                                      \
  if (installed_folder().empty() && installed().named.empty()) \
  GTEST_SKIP() << "skipped: the planner of SQL is not installed (tools/sql-planner does that)"

using sql::TypeId;

// A shop: orders of customers of countries.
inline sql::Catalog shop(uint64_t rows = 6'000'000) {
  sql::Catalog c;
  c.tables.push_back(
      {.name = "orders",
       .rows = rows,
       .columns = {
           {.name = "id",
            .type = {TypeId::bigint},
            .min = 1,
            .max = 6'000'000,
            .distinct = rows,
            .unique = true},
           {.name = "customer",
            .type = {TypeId::integer},
            .min = 1,
            .max = 150'000,
            .distinct = 150'000},
           {.name = "price",
            .type = {TypeId::decimal, 15, 2},
            .min = 100,
            .max = 999'999,
            .distinct = 800'000},
           {.name = "state", .type = {TypeId::varchar}, .distinct = 3},
           {.name = "day", .type = {TypeId::date}, .min = 8035, .max = 10591, .distinct = 2557}}});
  c.tables.push_back(
      {.name = "customers",
       .rows = rows / 40,
       .columns =
           {{.name = "id",
             .type = {TypeId::integer},
             .min = 1,
             .max = 150'000,
             .distinct = rows / 40,
             .unique = true},
            {.name = "country", .type = {TypeId::integer}, .min = 0, .max = 24, .distinct = 25},
            {.name = "name", .type = {TypeId::varchar}, .distinct = rows / 40}},
       .refused = {{"month", "month"}}});
  c.tables.push_back(
      {.name = "countries",
       .rows = std::min<uint64_t>(25, rows),
       .columns = {{.name = "id", .type = {TypeId::integer}, .min = 0, .max = 24, .distinct = 25},
                   {.name = "country", .type = {TypeId::varchar}, .distinct = 25}}});
  return c;
}

// A statement planned, with what was said about it.
struct Outcome {
  Result<Planned> planned;
  std::string said;
};
inline Outcome plan_text(Planner& planner, const std::string& text) {
  SourceManager sources;
  DiagnosticSink sink;
  const FileId file = sources.add("q.sql", text);
  Result<Planned> planned =
      planner.plan({file, 0, static_cast<uint32_t>(text.size())}, sources, sink);
  return {std::move(planned), render(sink, sources)};
}

inline std::unique_ptr<Planner> open_shop(const Options& options = installed()) {
  auto planner = Planner::open(options);
  EXPECT_TRUE(planner) << planner.error().message;
  if (!planner) return nullptr;
  auto set = (*planner)->set_catalog(shop());
  EXPECT_TRUE(set) << set.error().message;
  return *std::move(planner);
}

}  // namespace rndn::planner
