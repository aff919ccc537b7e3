// DuckDB as the other side of a comparison: the planner's library, given the data and the query.
//
//   ASSIGN_OR_RETURN(auto duckdb, Duckdb::open(Options::of_environment(), 2));     // threads
//   RETURN_IF_ERROR(duckdb->load("lineitem", {{"l_tax", type, rows, cell}, ..}));
//   ASSIGN_OR_RETURN(Answer a, duckdb->run("select sum(l_tax) from lineitem"));
//
// For measurements alone: `rndn sql` never runs a query here. Columns go in by the C API's data
// chunks, which are filled in place. Its database is apart from the planner's.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/sql/catalog.h"
#include "libraries/base/errors/result.h"
#include "runtime/planner/database.h"

namespace rndn::planner {

class Duckdb {
 public:
  // A column as it is loaded. Cells are made 2,048 at a time: `numbers` writes those from `first`
  // as the type holds them (DECIMAL: an integer of 2, 4 or 8 bytes by its digits), `text` gives
  // one. With neither, all are NULL.
  struct Column {
    std::string name;
    sql::Type type;
    std::function<void(uint64_t first, uint64_t count, void* to)> numbers = {};
    std::function<std::string_view(uint64_t row)> text = {};
    const std::byte* validity = nullptr;  // one byte per row; null: all are there
  };
  struct Answer {
    std::vector<std::string> names;
    std::vector<std::vector<std::string>> rows;  // NULL is the text NULL
    double ms = 0;                               // of the query alone
  };
  static constexpr uint64_t chunk_rows = 2048;

  // Only where the planner is a library: a Python takes no chunks.
  static Result<std::unique_ptr<Duckdb>> open(const Options& options, unsigned threads);
  virtual ~Duckdb() = default;
  virtual Result<void> load(const std::string& table, uint64_t rows,
                            const std::vector<Column>& columns) = 0;
  virtual Result<Answer> run(const std::string& query) = 0;
};

}  // namespace rndn::planner
