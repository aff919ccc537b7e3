// DuckDB's C API, found in a library at run time: its headers are not needed. Private to this folder.
#pragma once
#include <cstdint>
#include <string>

#include "libraries/base/errors/result.h"

namespace rndn::planner {

// duckdb_result: five words that are deprecated and one that is internal; room for twice as many.
struct DuckdbResult {
  void* words[12] = {};
};

struct DuckdbApi {
#define DUCKDB(result, name, parameters) result(*name) parameters;
#include "runtime/planner/duckdb_functions.def"
#undef DUCKDB
};

// The library stays loaded. An error (fault world) where it cannot be, lacks a function, or is not
// the pinned version.
Result<DuckdbApi> load_duckdb(const std::string& path);

}  // namespace rndn::planner
