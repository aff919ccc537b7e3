// DuckDB as a database of its own, apart from the planner's: the other side of a comparison, and the
// reader and writer of files.
//
//   ASSIGN_OR_RETURN(auto duckdb, Duckdb::open(Options::of_environment(), 2));     // threads
//   RETURN_IF_ERROR(duckdb->load("lineitem", {{"l_tax", type, rows, cell}, ..}));
//   ASSIGN_OR_RETURN(Answer a, duckdb->run("select sum(l_tax) from lineitem"));
//   RETURN_IF_ERROR(duckdb->read("file_row_number, l_tax", "read_parquet('l.parquet')", take));
//
// `rndn sql` never runs a query of the user's here. Columns go in by the C API's data chunks, which
// are filled in place. They come out through a function of SQL that is ours: it sees the vectors of
// each chunk on the thread that made them, so that nothing is copied and all cores take part.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/sql/catalog.h"
#include "libraries/base/errors/result.h"
#include "runtime/planner/database.h"

struct ArrowArrayStream;

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

  // A vector of a chunk: values side by side as DuckDB keeps them (a text is a record of 16 bytes:
  // its length, and itself, or 4 bytes of it and where it lies), and a bit per value that is there.
  struct Vector {
    const void* values;
    const uint64_t* validity;  // null: all are there
  };
  // Rows of what is read, valid during the call; the calls come from several threads at once.
  using Take = std::function<Result<void>(uint64_t rows, std::span<const Vector> columns)>;

  enum class Access : bool { tables, files };  // whether the file system may be read and written

  // Only where the planner is a library: a Python takes no chunks.
  static Result<std::unique_ptr<Duckdb>> open(const Options& options, unsigned threads,
                                              Access access = Access::tables);
  virtual ~Duckdb() = default;
  virtual Result<void> load(const std::string& table, uint64_t rows,
                            const std::vector<Column>& columns) = 0;
  virtual Result<Answer> run(const std::string& query) = 0;
  // Gives all rows of `columns` (expressions) of `from`, in no order. The first failure of `take`
  // ends the reading and is the result.
  virtual Result<void> read(const std::string& columns, const std::string& from,
                            const Take& take) = 0;
  // Runs a statement in which `name` is an Arrow stream, which it may read once; one at a time.
  virtual Result<void> run_over(const std::string& name, ArrowArrayStream* stream,
                                const std::string& statement) = 0;
};

}  // namespace rndn::planner
