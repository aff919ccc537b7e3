// Tables of a source for DuckDB, which computes what answers are compared with. It gets the columns
// that queries read, in place, by data chunks; all others are NULL there.
#pragma once
#include <map>
#include <set>
#include <string>

#include "libraries/base/errors/result.h"
#include "runtime/data/source.h"
#include "runtime/planner/duckdb.h"
#include "runtime/sql/catalog.h"

namespace rndn::tools {

using TablesRead = std::map<std::string, std::set<std::string>>;  // columns by their tables
Result<void> load_tables(planner::Duckdb& duckdb, const sql::Catalog& catalog, data::Source& source,
                         const TablesRead& reads);

}  // namespace rndn::tools
