// SQL statements as HorseIR programs: planned, translated, and kept for the next time.
//
//   SqlQueries queries(source, planner::Options::of_environment());
//   ASSIGN_OR_RETURN(const SqlQuery* q, queries.prepare(statement, sources,
//   SqlQueries::Until::program, sink, timings)); q->translation->program;      // HorseIR
//
// A text is planned once with what is known of the tables. Then the columns that it reads are
// loaded, since it is about to be run, and it is planned again if its joins depend on what was new:
// join orders come from the data. A text that comes again costs a look-up, unless it depends on the
// clock or on chance (planner/statements.h): then it is planned anew. The planner opens with the
// first text (0.1 s). A view is known by its text alone, which is planned when a query names it:
// what it reads may come, go and change until then. Of large tables of files a query may read those
// ranges of rows alone that its filters leave (row_ranges.h). Not thread-safe.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/sql/translate.h"
#include "libraries/base/errors/diagnostic.h"
#include "libraries/base/report/timing.h"
#include "runtime/data/tables.h"
#include "runtime/planner/planner.h"
#include "runtime/planner/statements.h"
#include "runtime/sql/catalog.h"
#include "runtime/sql/row_ranges.h"

namespace rndn::runtime {

struct SqlQuery {
  std::string text;
  planner::Planned planned;
  std::optional<sql::Translation> translation;  // with Until::program
  // Tables of which the query is to read some ranges of rows alone, as sources of their own; null:
  // none.
  std::shared_ptr<const data::OverlaidTables::Sources> ranges;
};

class SqlQueries {
 public:
  // No source: queries without tables.
  // `open` is asked for what a query names that is no table, and for calls of functions that read
  // files (of these names): the source with it and all that was there, or null.
  using OpenTable =
      std::function<Result<std::shared_ptr<data::Source>>(const std::string& name, const planner::FileCall* call)>;
  SqlQueries(std::shared_ptr<data::Source> source, planner::Options options, OpenTable open = {},
             std::span<const std::string_view> readers = {}, uint64_t least_saved = least_saved_bytes)
      : catalog_(std::move(source)),
        range_reads_(least_saved),
        options_(std::move(options)),
        open_(std::move(open)),
        readers_(readers) {}

  // Drops the plans, for measurements; what is known of the tables stays.
  void forget() { kept_.clear(); }
  // The next text opens a planner anew.
  void reopen() {
    forget();
    planner_.reset();
  }
  // Another source with some of the tables.
  Result<void> set_source(std::shared_ptr<data::Source> source, std::string_view renewed = {});
  // Who hears of the columns of the queries to come while others are loaded.
  void show(data::Shown shown) { shown_ = std::move(shown); }
  planner::Planner::Counts planner_counts() const {
    return planner_ ? planner_->counts() : planner::Planner::Counts();
  }
  // The tables that queries may name.
  const sql::Catalog& catalog() const { return catalog_.catalog(); }

  // Views, in the order that they were made. `query` is its text; the name is none of a view.
  Result<void> add_view(std::string name, std::vector<std::string> columns, Span query, const SourceManager& sources);
  Result<void> drop_view(std::string_view name);
  const planner::Views& views() const { return views_; }
  // Types that statements have made.
  Result<void> set_types(std::vector<planner::NamedType> types);
  const std::vector<planner::NamedType>& types() const { return types_; }
  // Where a byte of a statement's plan is: in the statement, or in a view's text.
  Span place_of(Span statement, uint32_t at, uint32_t length) const {
    return planner::place_of(statement, views_, at, length);
  }

  enum class Until : uint8_t { columns, plan, program };  // columns: no data is read
  // One statement of a file; valid until the next call. What is wrong with it goes to `sink`; the
  // error is empty then. `as`: what is planned in its place, in which the parts that are the
  // statement's stand where they do there.
  Result<const SqlQuery*> prepare(Span statement, const SourceManager& sources, Until until, DiagnosticSink& sink,
                                  Timings& timings, std::string_view as = {});

 private:
  static constexpr size_t most_kept = 256;

  Result<void> forget_views();
  Result<planner::Planned> plan(std::string_view text, Span statement, Until until, DiagnosticSink& sink,
                                Timings& timings, std::shared_ptr<const data::OverlaidTables::Sources>& ranges);
  // Takes the tables of which some ranges are read out of `reads`.
  Result<data::OverlaidTables::Sources> choose_ranges(
      const std::optional<sql::Plan>& plan, std::map<std::string, std::set<std::string>>& reads,
      Timings& timings);
  // Whether all that a query would read of such tables is in memory by now.
  bool is_all_loaded(const SqlQuery& query) const;

  SqlCatalog catalog_;
  RangeReads range_reads_;
  planner::Options options_;
  OpenTable open_;
  data::Shown shown_;
  std::span<const std::string_view> readers_;
  std::map<std::string, std::string, std::less<>> opened_by_;  // tables of files: the function, empty: the path alone
  std::unique_ptr<planner::Planner> planner_;
  planner::Views views_;                              // the planner makes one when a query names it
  uint32_t first_place_ = planner::first_view_place;  // of the views' texts: no statement was as long
  planner::FileCalls view_calls_;                     // in their texts
  std::vector<planner::NamedType> types_;
  std::vector<std::unique_ptr<SqlQuery>> kept_;       // the one that was used last at the end
  std::unique_ptr<SqlQuery> passing_;                 // not to be kept
};

}  // namespace rndn::runtime
