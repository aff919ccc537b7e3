// Queries of SSB and TPC-H in SQL, beside DuckDB, which has the same tables and says what is right.
//
//   ASSIGN_OR_RETURN(const auto cases, SqlCases::open(harness, "ssb", 10, {"q1.1"}));
//   cases->each(progress, [&](const SqlCase& c) { .. harness.compare(cases->session(), .., c.check) .. });
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/planner/duckdb.h"
#include "tools/papers/harness.h"

namespace rndn::tools::papers {

// The names of a suite's queries, such as q06, q1.1.
std::vector<std::string> sql_names(std::string_view suite);
// Those that a list such as 1.1,q06,17-19 has of them; an empty list: all. Fails (fault usage) for what there is not.
Result<std::vector<std::string>> sql_chosen(const std::vector<std::string>& names,
                                            const std::vector<std::string>& list);

struct SqlCase {
  NamedSource query;
  std::string name;      // "ssb q1.1"
  uint64_t rows = 0;     // of the table of facts
  Harness::Check check;  // against DuckDB's answer; floats to 1e-12
  Harness::Body duckdb;  // a run of it there, on all cores: milliseconds
};

class SqlCases {
 public:
  // The columns that the queries read are loaded, here and in DuckDB.
  static Result<std::unique_ptr<SqlCases>> open(Harness& harness, std::string_view suite, double scale,
                                                const std::vector<std::string>& names);
  const std::shared_ptr<data::Source>& source() const { return source_; }
  Session& session() { return *session_; }  // Harness::session over the source
  Result<void> each(Progress& progress, const std::function<Result<void>(const SqlCase&)>& body);

 private:
  std::string suite_;
  std::shared_ptr<data::Source> source_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<planner::Duckdb> duckdb_;
  std::vector<NamedSource> queries_;
  uint64_t rows_ = 0;
};

}  // namespace rndn::tools::papers
