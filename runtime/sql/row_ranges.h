// Which ranges of a table's rows a query needs, by what is known of them before they are read.
//
//   const auto ranges = source.ranges("sales", columns);        // footers of a Parquet file
//   const std::vector<size_t> some = ranges_needed(plan, "sales", columns, *ranges);
//
// A range is needed if a scan of the table may let a row of it through: the scan's own filters and
// one right above it are looked at, whose parts are comparisons of a column with constants, IN,
// BETWEEN and IS [NOT] NULL, joined by AND and OR. All else may hold. Small materialized aggregates
// (Moerkotte, VLDB 1998). Cost: ranges x comparisons.
// Left out: filters of joins, LIKE, casts of columns; NaN is above all numbers and no bound tells
// of it, so that lower bounds of floats exclude nothing.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/sql/plan.h"
#include "runtime/data/source.h"

namespace rndn::runtime {

// Positions among `ranges`, ascending; all of them where a scan numbers the table's rows.
// `columns`: those whose facts the ranges have, by name.
std::vector<size_t> ranges_needed(const sql::Plan& plan, std::string_view table,
                                  std::span<const std::string> columns,
                                  std::span<const data::RowRange> ranges);

// Reads so few bytes less are not worth a version of the table of its own: decoding them takes
// about as long as to compile a query (10 ms on 16 cores).
inline constexpr uint64_t least_saved_bytes = 32 << 20;

// Whether a query reads some ranges of a table or the whole, which the queries after it will find
// in memory: rent or buy. Some are read while no column of the query is there and at least
// `least_saved` bytes less are read, until what was read in this way is as much as the whole
// table's columns are. So all reading is at most twice that of who knows the queries to come. What
// is read of some ranges is a table of its own, which only queries of that text see.
class RangeReads {
 public:
  explicit RangeReads(uint64_t least_saved) : least_saved_(least_saved) {}

  struct Choice {
    std::shared_ptr<data::Source> some;  // the table with its ranges that are needed
    std::vector<data::RowRange> ranges;  // all
    size_t needed = 0;
  };
  // None: the whole is read.
  Result<std::optional<Choice>> choose(const data::Source& source, const sql::Plan& plan,
                                       const std::string& table,
                                       std::span<const std::string> columns);
  // Whether there is something to choose, which needs the plan.
  static bool has_choice(const data::Source& source, const std::string& table,
                         std::span<const std::string> columns);
  void forget() { spent_.clear(); }

 private:
  const uint64_t least_saved_;
  std::map<std::string, uint64_t> spent_;  // bytes, by table
};

}  // namespace rndn::runtime
