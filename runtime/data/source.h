// A source of tables: what `--data` names. Columns load on first use and stay for as long as the source lives.
//
//   Result<std::shared_ptr<Source>> source = open_folder("data/");      // or open_source (sources.h), which takes all that is known
//   Result<std::shared_ptr<const Column>> price = (*source)->column("lineitem", "l_extendedprice");
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "libraries/base/errors/result.h"
#include "runtime/data/column.h"
#include "runtime/data/schema.h"

namespace rndn::data {

class TableLoader;
struct SourceOptions;

// A kind of file that is a table, by the end of its name.
struct FileFormat {
  std::string_view extension;  // ".parquet"
  Result<std::unique_ptr<TableLoader>> (*open)(const std::string& path, const std::string& table,
                                               const SourceOptions& options);
};

struct SourceOptions {
  unsigned threads = 0;  // 0: all cores
  bool progress = true;  // a line on stderr when a load takes longer than a second
  std::string cache;     // folder for columns in binary form (runtime/data/cache.h); empty: none
  // Kinds of files beside delimited text. A folder of such files, or a pattern (`x/*.parquet`), is one table, too.
  std::span<const FileFormat> formats;
  // Hears what was chosen for a file that does not say it; nobody: a line on stderr.
  std::function<void(const std::string&)> note;

  void tell(const std::string& message) const;
};

// What is known of a column in some rows before they are read. Bounds need not be values.
struct ColumnFacts {
  uint64_t bytes = 0;  // that are read for them
  std::optional<uint64_t> nulls;
  // Of the values that are there: integers as they are stored, floats beside which NaN may be, texts
  // in the order of their bytes.
  std::optional<std::pair<__int128, __int128>> integers;
  std::optional<std::pair<double, double>> floats;
  std::optional<std::pair<std::string, std::string>> texts;
};
// Rows of a table that can be read without the others: a row group of a Parquet file.
struct RowRange {
  uint64_t rows = 0;
  std::vector<ColumnFacts> columns;  // of those that were asked for
};

// Hears of a column that is complete.
using Shown = std::function<void(const Column&)>;

// Where a Source gets its columns from. Tables and columns are positions in the schema.
class TableLoader {
 public:
  virtual ~TableLoader() = default;
  virtual const Schema& schema() const = 0;
  virtual Result<uint64_t> rows(size_t table) = 0;
  // The same where it costs nothing: no file is read for it.
  virtual std::optional<uint64_t> rows_at_hand(size_t) const { return std::nullopt; }
  // The columns whole, in the order asked, with their statistics; nothing is kept when one of them cannot be had. Foreign keys may
  // come without foreign_rows: Source finds them.
  virtual Result<std::vector<Column>> load(size_t table, std::span<const size_t> columns) = 0;
  // The same, with each column shown when it is complete, while others may not be: by the calling
  // thread, and by its bytes, which stay where they are. Loaders that have all at once show none.
  virtual Result<std::vector<Column>> load(size_t table, std::span<const size_t> columns, const Shown&) {
    return load(table, columns);
  }
  // Names the data of a column so that a cache can tell it from any other and from older contents; empty: not to be cached.
  virtual std::string fingerprint(size_t table, size_t column) const = 0;
  // A column with its fields read as another type than the schema's; an error where there are no fields.
  virtual Result<Column> load_as(size_t table, size_t column, hir::BasicType type);
  // The ranges of rows that can be read alone, in their order, with what is known of the columns; none:
  // they are read whole only.
  virtual std::vector<RowRange> ranges(size_t, std::span<const size_t>) const { return {}; }
  // The table with these of its ranges as all of its rows; null where there are none.
  virtual std::unique_ptr<TableLoader> of_ranges(size_t, std::span<const size_t>) const {
    return nullptr;
  }
  // Whether primary keys are what they are called by construction.
  virtual bool keys_hold(size_t table) const { return (void)table, false; }
  // Where a value stands, for messages, such as "data/lineitem.tbl:12:5"; of a column that came from a cache, too.
  virtual std::string describe(size_t table, size_t column, uint64_t row) = 0;
};

// Thread-safe; one load at a time. Errors are of fault input (no such table, a value that does not fit) or world (memory).
class Source {
 public:
  explicit Source(std::unique_ptr<TableLoader> loader) : loader_(std::move(loader)) {}

  const Schema& schema() const { return loader_->schema(); }
  Result<uint64_t> rows(std::string_view table);
  // The same where it costs nothing; none for a table that is not there.
  std::optional<uint64_t> rows_at_hand(std::string_view table) const;
  Result<std::shared_ptr<const Column>> column(std::string_view table, std::string_view column);
  // Several columns of one table, in the order asked: those that are not there yet are loaded in one pass.
  Result<std::vector<std::shared_ptr<const Column>>> columns(std::string_view table,
                                                             std::span<const std::string> columns,
                                                             const Shown& shown = {});
  // The same of one column, but an error where a value is missing, for readers who know no missing values.
  Result<std::shared_ptr<const Column>> complete_column(std::string_view table, std::string_view column);
  // The column of a file with its fields read as that type; complete unless zeros may stand for what is missing.
  Result<std::shared_ptr<const Column>> column_as(std::string_view table, std::string_view column, hir::BasicType type,
                                                  ColumnPart part = ColumnPart::values);
  // A part of a column; values of a file as another type, if one is given.
  Result<std::shared_ptr<const Column>> part(std::string_view table, std::string_view column, ColumnPart part,
                                             std::optional<hir::BasicType> as = {});
  // Whether the column is in memory already.
  bool is_loaded(std::string_view table, std::string_view column) const;
  // Ranges of the table's rows with facts of the columns, and the table with some of these alone, as
  // another source of one table, which shares nothing with this one (TableLoader::ranges, of_ranges).
  Result<std::vector<RowRange>> ranges(std::string_view table, std::span<const std::string> columns) const;
  Result<std::shared_ptr<Source>> of_ranges(std::string_view table, std::span<const size_t> ranges) const;
  // The same by positions in the schema, for a loader over this source.
  std::vector<RowRange> ranges_at(size_t table, std::span<const size_t> columns) const {
    std::lock_guard lock(mutex_);
    return loader_->ranges(table, columns);
  }
  std::unique_ptr<TableLoader> loader_of_ranges(size_t table, std::span<const size_t> ranges) const {
    std::lock_guard lock(mutex_);
    return loader_->of_ranges(table, ranges);
  }
  // All that is in memory.
  std::vector<std::shared_ptr<const Column>> loaded() const;
  // From now on `with` is given for the column, whose elements it has; who holds the column keeps it. False: it is none of this source.
  bool replace(const Column& column, const std::shared_ptr<const Column>& with);
  // Where a value stands, for messages; tables and columns are positions in the schema.
  std::string describe(size_t table, size_t column, uint64_t row) {
    std::lock_guard lock(mutex_);
    return loader_->describe(table, column, row);
  }

 private:
  using Key = std::pair<size_t, size_t>;  // table, column
  Result<void> load(size_t table, std::span<const size_t> columns, const Shown& shown = {});
  Result<void> resolve(size_t table, size_t column, bool with_missing = false);
  Result<void> complete(const Column& column, std::string_view table, std::string_view name) const;
  Result<void> check_primary(size_t table) const;

  std::unique_ptr<TableLoader> loader_;
  mutable std::mutex mutex_;
  std::map<Key, std::shared_ptr<const Column>> columns_;  // as loaded: foreign_rows may be missing
  // What complete_column has found, by table and column: every run of a program asks for its columns.
  std::map<std::string, std::map<std::string, std::shared_ptr<const Column>, std::less<>>, std::less<>> complete_;
  std::map<std::tuple<size_t, size_t, hir::BasicType>, std::shared_ptr<const Column>> columns_as_;
  std::map<Key, std::shared_ptr<const Column>> validities_;
  std::map<size_t, uint64_t> rows_;  // by table
  std::set<size_t> checked_;         // tables whose primary keys repeat nowhere
};

// A folder: the tables of its schema.json, or its delimited files, each a table by its name (sources.h). With a schema.json only that
// is read; a file that is missing is an error once a column of it is asked for.
//
// Files: one row per line, fields apart by the delimiter, which may also end the row. Lines end with LF, CR LF, or, in a file without
// LF, CR; empty lines at the end are no rows, nor are others unless there is one column. In files whose fields are quoted "" stands for
// a quote, and delimiters and line ends within are text. Numbers may have blanks around them; text is taken as it is, but an empty
// field of any other type is a missing value. Text with few distinct values becomes a dictionary.
Result<std::shared_ptr<Source>> open_folder(const std::string& folder, const SourceOptions& options = {});

// For every row of `child` the row of `parent` with the same value, in the form of Column::foreign_rows. When a value is missing
// or stands twice in the parent, an error that `describe` puts a place to: describe(true: in the parent, row).
struct ForeignKeyNames {
  std::string_view child, parent;  // "lineitem.l_orderkey", "orders.o_orderkey"
};
using Describe = std::function<std::string(bool in_parent, uint64_t row)>;
Result<std::shared_ptr<Bytes>> find_foreign_rows(const Column& child, const Column& parent,
                                                                  const ForeignKeyNames& names,
                                                                  const Describe& describe, unsigned threads = 0);

// A column with at most this many distinct values gets a dictionary.
uint64_t dictionary_limit(uint64_t rows);
// Turns a column with encoding `text` into one with a dictionary, if it has at most `limit` distinct values; else leaves it.
void encode_dictionary(Column& column, uint64_t limit, unsigned threads = 0);

}  // namespace rndn::data
