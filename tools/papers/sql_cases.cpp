#include "tools/papers/sql_cases.h"

#include <algorithm>
#include <chrono>

#include "libraries/base/system/parallel.h"
#include "runtime/print_sql.h"
#include "tools/compare_results.h"
#include "tools/duckdb_tables.h"

namespace rndn::tools::papers {

std::vector<std::string> sql_names(std::string_view suite) {
  std::vector<std::string> names;
  for (const EmbeddedText& t : embedded_texts())
    if (t.benchmark == suite && t.kind == "sql") names.emplace_back(t.name);
  return names;
}

Result<std::vector<std::string>> sql_chosen(const std::vector<std::string>& names,
                                            const std::vector<std::string>& list) {
  if (list.empty()) return names;
  auto number_of = [](const std::string& name) {
    return name.substr(std::min(name.find_first_not_of("q0"), name.size()));
  };
  auto find = [&](const std::string& number) {
    return std::find_if(names.begin(), names.end(),
                        [&](const std::string& name) { return number_of(name) == number_of(number); });
  };
  std::vector<std::string> chosen;
  for (const std::string& item : list) {
    const size_t dash = item.find('-');
    const auto from = find(item.substr(0, dash)), to = dash == item.npos ? from : find(item.substr(dash + 1));
    if (from == names.end() || to == names.end() || to < from)
      return usage_error("there is no query {} (there are: {})", item, fmt::join(names, ", "));
    chosen.insert(chosen.end(), from, to + 1);
  }
  return chosen;
}

Result<std::unique_ptr<SqlCases>> SqlCases::open(Harness& harness, std::string_view suite, double scale,
                                                 const std::vector<std::string>& names) {
  auto made = std::make_unique<SqlCases>();
  made->suite_ = suite;
  const Flags& flags = harness.settings().flags;
  ASSIGN_OR_RETURN(made->source_, open_data({.data = fmt::format("{}:{}", suite, scale)}, flags));
  made->session_ = harness.session(made->source_);
  ASSIGN_OR_RETURN(made->duckdb_, planner::Duckdb::open(planner::Options::of_environment(), hardware_threads()));
  TablesRead reads;
  for (const EmbeddedText& t : embedded_texts()) {
    if (t.benchmark != suite || t.kind != "sql" || std::find(names.begin(), names.end(), t.name) == names.end())
      continue;
    for (NamedSource& query : split_sql(std::string(t.name), std::string(t.name), std::string(t.text))) {
      Timings ignored;
      ASSIGN_OR_RETURN(const auto prepared,
                       made->session_->prepare_sql(query, runtime::SqlQueries::Until::program, ignored));
      for (const auto& [table, columns] : prepared->planned.reads) reads[table].insert(columns.begin(), columns.end());
      made->queries_.push_back(std::move(query));
    }
  }
  RETURN_IF_ERROR(load_tables(*made->duckdb_, made->session_->queries().catalog(), *made->source_, reads));
  ASSIGN_OR_RETURN(made->rows_, made->source_->rows(suite == "ssb" ? "lineorder" : "lineitem"));
  return made;
}

Result<void> SqlCases::each(Progress& progress, const std::function<Result<void>(const SqlCase&)>& body) {
  for (const NamedSource& query : queries_) {
    progress.advance(1);
    const NamedSource::Statement& sql = *query.sql;
    const std::string text = sql.text->substr(sql.begin, sql.end - sql.begin);
    ASSIGN_OR_RETURN(const planner::Duckdb::Answer answer, duckdb_->run(text));
    RETURN_IF_ERROR(
        body({.query = query,
              .name = fmt::format("{} {}", suite_, query.name),
              .rows = rows_,
              .check = [&](const Session::Outcome& outcome) -> Result<std::string> {
                ASSIGN_OR_RETURN(const runtime::Grid grid, runtime::sql_grid(outcome.results.at(0), outcome.columns));
                uint64_t reordered = 0;
                return tools::difference(grid, {answer.names, answer.rows}, reordered, 1e-12);
              },
              .duckdb = [&]() -> Result<double> {
                const auto begin = std::chrono::steady_clock::now();
                RETURN_IF_ERROR(duckdb_->run(text));
                return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
              }}));
  }
  return {};
}

}  // namespace rndn::tools::papers
