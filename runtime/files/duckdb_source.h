// A table that DuckDB reads, as batches. Private to this folder.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/data/batches.h"
#include "runtime/planner/duckdb.h"

namespace rndn::files {

struct Scan {
  std::string place;               // for messages: what the user has written
  std::string from;                // in SQL: "read_parquet(['a.parquet'])"
  std::vector<std::string> paths;  // the files in their order; empty: the scan says itself
  bool is_parquet = false;         // rows know their place in their file
};
Result<std::unique_ptr<data::BatchSource>> open_scan(Scan scan);

// The process's reader, opened by the first who asks; and its writer, which has one thread: of several
// some are ahead, and their rows wait in memory, the more the longer it takes.
Result<std::shared_ptr<planner::Duckdb>> reader();
Result<std::shared_ptr<planner::Duckdb>> writer();
// What the system says of a file; a file that takes its place has another.
std::string stamp_of(const std::string& path);
// An error of DuckDB about a file in our words.
Error of_file(const std::string& place, const Error& error);

}  // namespace rndn::files
