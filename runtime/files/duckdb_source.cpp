// Rows of files as batches, and what DuckDB's types are to a column.
//
// A row of a Parquet file knows its file and its number in it, which is its place in the table: the
// order in which threads give them does not matter. Text has no such numbers; its columns go
// through a table of DuckDB's, whose rows are numbered as they stand in the files, and which is
// dropped once they are read.
#include "runtime/files/duckdb_source.h"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstring>
#include <mutex>

#include "libraries/base/system/cancel.h"
#include "libraries/base/system/parallel.h"
#include "runtime/data/sources.h"
#include "runtime/planner/database.h"

namespace rndn::files {
namespace {

using data::ArrowFormat;
using data::Meaning;
using hir::BasicType;
using planner::Duckdb;
using planner::quote_name;
using planner::quote_text;
using enum data::ArrowLayout;

constexpr int64_t microseconds = 1'000'000;  // of a second

// A type as DESCRIBE names it, how its vectors lie, and the expression that makes such a vector.
struct TypeRow {
  ArrowFormat format;  // its name is the type's
  const char* expression = "{}";
};
constexpr TypeRow types[] = {
    {{"", "BOOLEAN", bytes, 1, BasicType::boolean}},
    {{"", "TINYINT", signed_, 1, BasicType::i8}},
    {{"", "SMALLINT", signed_, 2, BasicType::i16}},
    {{"", "INTEGER", signed_, 4, BasicType::i32}},
    {{"", "BIGINT", signed_, 8, BasicType::i64}},
    {{"", "UTINYINT", unsigned_, 1, BasicType::i16, Meaning::u8}},
    {{"", "USMALLINT", unsigned_, 2, BasicType::i32, Meaning::u16}},
    {{"", "UINTEGER", unsigned_, 4, BasicType::i64, Meaning::u32}},
    {{"", "UBIGINT", unsigned_, 8, BasicType::i128, Meaning::u64}},
    {{"", "HUGEINT", decimal, 16, BasicType::i128, Meaning::hugeint}},
    {{"", "FLOAT", floats, 4, BasicType::f32}},
    {{"", "DOUBLE", floats, 8, BasicType::f64}},
    {{"", "VARCHAR", pointers, 16, BasicType::str}},
    {{"", "JSON", pointers, 16, BasicType::str}, "CAST({} AS VARCHAR)"},
    {{"", "DATE", signed_, 4, BasicType::date}},
    {{"", "TIME", signed_, 8, BasicType::i64, Meaning::time}},
    {{"", "TIME_NS", signed_, 8, BasicType::i64, Meaning::time, 1, 1'000}},
    {{"", "TIMESTAMP", signed_, 8, BasicType::i64, Meaning::timestamp}},
    {{"", "TIMESTAMP_S", signed_, 8, BasicType::i64, Meaning::timestamp, microseconds}},
    {{"", "TIMESTAMP_MS", signed_, 8, BasicType::i64, Meaning::timestamp, 1'000}},
    {{"", "TIMESTAMP_NS", signed_, 8, BasicType::i64, Meaning::timestamp, 1, 1'000}},
    {{"", "TIMESTAMP WITH TIME ZONE", signed_, 8, BasicType::i64, Meaning::timestamp_utc}},
};
// A column without a value in any row.
constexpr TypeRow null_type = {{"", "NULL", signed_, 4, BasicType::i32}, "CAST({} AS INTEGER)"};
constexpr TypeRow enum_type = {{"", "ENUM", pointers, 16, BasicType::str}, "CAST({} AS VARCHAR)"};
// By the digits that fit.
struct DecimalRow {
  unsigned most_digits;
  TypeRow row;
};
constexpr DecimalRow decimals[] = {
    {4, {{"", "DECIMAL", decimal, 2, BasicType::i64}}},
    {9, {{"", "DECIMAL", decimal, 4, BasicType::i64}}},
    {18, {{"", "DECIMAL", decimal, 8, BasicType::i64}}},
    {38, {{"", "DECIMAL", decimal, 16, BasicType::i128}}},
};

// Null: SQL has no such type.
const TypeRow* type_of(const std::string& name, std::optional<data::Decimal>& digits) {
  unsigned precision = 0, scale = 0;
  if (std::sscanf(name.c_str(), "DECIMAL(%u,%u)", &precision, &scale) == 2 && name.ends_with(')')) {
    digits = data::Decimal{static_cast<uint8_t>(precision), static_cast<uint8_t>(scale)};
    for (const DecimalRow& d : decimals)
      if (precision <= d.most_digits) return &d.row;
  }
  if (name.starts_with("ENUM(") && name.ends_with(')')) return &enum_type;
  if (name == "\"NULL\"") return &null_type;
  for (const TypeRow& row : types)
    if (row.format.name == name) return &row;
  return nullptr;
}

uint64_t number_in(const std::string& cell) {
  uint64_t number = 0;
  std::from_chars(cell.data(), cell.data() + cell.size(), number);
  return number;
}

constexpr std::string_view said_by_duckdb = "DuckDB: ";

class ScanSource final : public data::BatchSource {
 public:
  ScanSource(std::shared_ptr<Duckdb> duckdb, Scan scan)
      : duckdb_(std::move(duckdb)), scan_(std::move(scan)) {
    place = scan_.place;
    for (const std::string& path : scan_.paths) files_.push_back({path, stamp_of(path), 0, 0});
  }

  Result<void> open() {
    ASSIGN_OR_RETURN(
        const Duckdb::Answer described,
        ask("SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM " + scan_.from + ")"));
    for (const auto& row : described.rows) {
      std::optional<data::Decimal> digits;
      const TypeRow* type = type_of(row[1], digits);
      if (!type) {
        refused.push_back({row[0], row[1]});
        continue;
      }
      columns.push_back({row[0], {.format = &type->format, .decimal = digits}});
      expressions_.push_back(fmt::format(fmt::runtime(type->expression), quote_name(row[0])));
      // A name that the file has hides the number that DuckDB gives its rows.
      for (const char* number : {"file_index", "file_row_number"})
        if (row[0] == number) scan_.is_parquet = false;
    }
    return scan_.is_parquet ? count_rows() : Result<void>();
  }

  Result<uint64_t> rows() override {
    if (!rows_) {
      ASSIGN_OR_RETURN(const Duckdb::Answer counted, ask("SELECT count(*) FROM " + scan_.from));
      rows_ = number_in(counted.rows[0][0]);
    }
    return *rows_;
  }
  std::optional<uint64_t> rows_at_hand() const override { return rows_; }

  Result<void> read(std::span<const size_t> wanted, const Begin& begin, const Take& take) override {
    Result<void> done =
        scan_.is_parquet ? read_parquet(wanted, begin, take) : read_by_table(wanted, begin, take);
    RETURN_IF_ERROR(check_unchanged());
    if (done || !done.error().message.starts_with(said_by_duckdb)) return done;
    return scan_.is_parquet ? locate(wanted, done.error()) : of_file(place, done.error());
  }

  std::string describe(uint64_t row) override {
    for (const File& file : files_)
      if (scan_.is_parquet && row >= file.first && row - file.first < file.rows)
        return fmt::format("{}: row {}", file.path, row - file.first + 1);
    return fmt::format("{}: row {}", place, row + 1);
  }

  std::string fingerprint() const override {
    if (scan_.is_parquet || files_.empty()) return "";
    std::string all = scan_.from;
    for (const File& file : files_) {
      // What has just been written may change again without a sign.
      if (file.stamp.empty() || data::version_of(file.path).empty()) return "";
      all += "\n" + file.stamp;
    }
    return all;
  }

 private:
  struct File {
    std::string path, stamp;
    uint64_t first, rows;
  };

  Result<Duckdb::Answer> ask(const std::string& statement) {
    auto answer = duckdb_->run(statement);
    if (!answer) return of_file(place, answer.error());
    return answer;
  }

  // Of each file, from its footer.
  Result<void> count_rows() {
    if (files_.empty()) {  // a call of SQL: the scan itself tells its files
      ASSIGN_OR_RETURN(const Duckdb::Answer found,
                       ask("SELECT any_value(filename), count(*) FROM " + scan_.from +
                           " GROUP BY file_index ORDER BY file_index"));
      for (const auto& row : found.rows)
        files_.push_back({row[0], stamp_of(row[0]), 0, number_in(row[1])});
    } else {
      std::string list;
      for (const File& file : files_) list += (list.empty() ? "" : ", ") + quote_text(file.path);
      ASSIGN_OR_RETURN(
          const Duckdb::Answer found,
          ask(fmt::format("SELECT file_name, num_rows FROM parquet_file_metadata([{}])", list)));
      if (found.rows.size() != files_.size()) return changed();
      for (size_t i = 0; i < files_.size(); ++i) {
        if (found.rows[i][0] != files_[i].path) return changed();
        files_[i].rows = number_in(found.rows[i][1]);
      }
    }
    uint64_t rows = 0;
    for (File& file : files_) {
      file.first = rows;
      rows += file.rows;
    }
    rows_ = rows;
    return {};
  }

  Error changed() const { return input_error("{}: it has changed since it was opened", place); }
  Result<void> check_unchanged() const {
    for (const File& file : files_)
      if (stamp_of(file.path) != file.stamp)
        return input_error("{}: it has changed since it was opened", file.path);
    return {};
  }

  std::string list_of(std::span<const size_t> wanted) const {
    std::string list;
    for (size_t c : wanted) list += ", " + expressions_[c];
    return list;
  }

  // Batches whose first vectors are their rows' places, which `first_of` reads.
  template <class FirstOf>
  Duckdb::Take to_batches(size_t places, const Take& take, FirstOf&& first_of) const {
    return [this, places, &take, first_of](
               uint64_t rows, std::span<const Duckdb::Vector> vectors) -> Result<void> {
      if (rows == 0) return {};
      const std::optional<uint64_t> first = first_of(rows, vectors);
      if (!first) return changed();
      std::vector<data::BatchVector> columns;
      for (const Duckdb::Vector& v : vectors.subspan(places))
        columns.push_back({v.values, v.validity});
      return take({*first, rows, columns});
    };
  }
  // The first of numbers that ascend by one; none: they do not.
  static std::optional<uint64_t> first_in_row(const void* values, uint64_t rows) {
    const auto* numbers = static_cast<const int64_t*>(values);
    if (numbers[0] < 0 || numbers[rows - 1] - numbers[0] != static_cast<int64_t>(rows - 1))
      return std::nullopt;
    return static_cast<uint64_t>(numbers[0]);
  }

  Result<void> read_parquet(std::span<const size_t> wanted, const Begin& begin, const Take& take) {
    RETURN_IF_ERROR(begin(*rows_));
    auto first_of = [this](uint64_t rows,
                           std::span<const Duckdb::Vector> v) -> std::optional<uint64_t> {
      const auto* files = static_cast<const uint64_t*>(v[0].values);
      const std::optional<uint64_t> first = first_in_row(v[1].values, rows);
      if (!first || files[0] != files[rows - 1] || files[0] >= files_.size()) return std::nullopt;
      const File& file = files_[files[0]];
      if (*first + rows > file.rows) return std::nullopt;
      return file.first + *first;
    };
    return duckdb_->read("file_index, file_row_number" + list_of(wanted), scan_.from,
                         to_batches(2, take, first_of));
  }

  Result<void> read_by_table(std::span<const size_t> wanted, const Begin& begin, const Take& take) {
    static std::atomic<uint64_t> tables{0};
    const std::string table = quote_name(fmt::format("rows {}", tables++));
    std::string made;
    for (size_t i = 0; i < wanted.size(); ++i)
      made += fmt::format("{}{} AS c{}", i ? ", " : "", expressions_[wanted[i]], i);
    auto loaded =
        duckdb_->run("CREATE TEMP TABLE " + table + " AS SELECT " + made + " FROM " + scan_.from);
    if (!loaded) return loaded.error();
    Result<void> done = [&]() -> Result<void> {
      ASSIGN_OR_RETURN(const Duckdb::Answer counted, duckdb_->run("SELECT count(*) FROM " + table));
      const uint64_t count = number_in(counted.rows[0][0]);
      if (rows_ && count != *rows_) return changed();
      rows_ = count;
      RETURN_IF_ERROR(begin(count));
      std::string list = "rowid";
      for (size_t i = 0; i < wanted.size(); ++i) list += fmt::format(", c{}", i);
      auto first_of = [](uint64_t rows, std::span<const Duckdb::Vector> v) {
        return first_in_row(v[0].values, rows);
      };
      return duckdb_->read(list, table, to_batches(1, take, first_of));
    }();
    const CancelScope in_any_case(nullptr);
    auto dropped = duckdb_->run("DROP TABLE " + table);
    if (done && !dropped) return dropped.error();
    return done;
  }

  // Which file, column and row group cannot be read: each is tried alone.
  Error locate(std::span<const size_t> wanted, const Error& error) {
    if (error.cause == Cause::cancelled) return error;
    const auto nobody = [](uint64_t, std::span<const Duckdb::Vector>) { return Result<void>(); };
    for (const File& file : files_) {
      const std::string scan = fmt::format("read_parquet({})", quote_text(file.path));
      for (size_t c : wanted) {
        auto read = duckdb_->read(expressions_[c], scan, nobody);
        if (read) continue;
        std::string where = fmt::format("{}: column `{}`", file.path, columns[c].name);
        auto groups =
            duckdb_->run(fmt::format("SELECT DISTINCT row_group_id, row_group_num_rows FROM "
                                     "parquet_metadata({}) ORDER BY 1",
                                     quote_text(file.path)));
        uint64_t first = 0;
        for (size_t g = 0; groups && g < groups->rows.size(); ++g) {
          const uint64_t rows = number_in(groups->rows[g][1]);
          if (auto part = duckdb_->read(expressions_[c],
                                        fmt::format("{} WHERE file_row_number BETWEEN {} AND {}",
                                                    scan, first, first + rows - 1),
                                        nobody);
              !part)
            return of_file(where + fmt::format(", row group {}", g), part.error());
          first += rows;
        }
        return of_file(where, read.error());
      }
    }
    return of_file(place, error);
  }

  const std::shared_ptr<Duckdb> duckdb_;
  Scan scan_;
  std::vector<File> files_;
  std::vector<std::string> expressions_;  // of the columns
  std::optional<uint64_t> rows_;
};

}  // namespace

std::string stamp_of(const std::string& path) {
  struct stat s {};
  if (stat(path.c_str(), &s) != 0) return "";
  return fmt::format("{} {} {} {}.{:09} {}.{:09}", s.st_dev, s.st_ino, s.st_size, s.st_mtim.tv_sec,
                     s.st_mtim.tv_nsec, s.st_ctim.tv_sec, s.st_ctim.tv_nsec);
}

namespace {

struct Shared {
  std::mutex mutex;
  std::shared_ptr<Duckdb> opened;
};
Result<std::shared_ptr<Duckdb>> open_once(Shared& shared, unsigned threads) {
  std::lock_guard lock(shared.mutex);
  if (!shared.opened) {
    ASSIGN_OR_RETURN(shared.opened, Duckdb::open(planner::Options::of_environment(), threads,
                                                 Duckdb::Access::files));
  }
  return shared.opened;
}

}  // namespace

// Never closed: when a process ends, the library may be gone before it.
Result<std::shared_ptr<Duckdb>> reader() {
  static auto& shared = *new Shared;
  return open_once(shared, hardware_threads());
}
Result<std::shared_ptr<Duckdb>> writer() {
  static auto& shared = *new Shared;
  return open_once(shared, 1);
}

Error of_file(const std::string& place, const Error& error) {
  std::string_view message = error.message;
  if (!message.starts_with(said_by_duckdb)) return error;
  message.remove_prefix(said_by_duckdb.size());
  if (message.starts_with("Out of Memory"))
    return world_error("{}: there is not enough memory to read it", place);
  if (const size_t kind = message.find("Error: "); kind != message.npos && kind < 32)
    message.remove_prefix(kind + 7);
  message = message.substr(0, message.find('\n'));
  for (const std::string_view prefix : {"Failed to read file \"", "Failed to read Parquet file \""})
    if (message.starts_with(prefix))
      if (const size_t end = message.find("\": "); end != message.npos)
        message.remove_prefix(end + 3);
  std::string text(message);
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  while (text.ends_with('.') || text.ends_with(' ')) text.pop_back();
  return input_error("{}: {}", place, text);
}

Result<std::unique_ptr<data::BatchSource>> open_scan(Scan scan) {
  for (const std::string& path : scan.paths) {
    struct stat s {};
    if (stat(path.c_str(), &s) != 0)
      return input_error("cannot read `{}`: {}", path, std::strerror(errno));
    if (!S_ISREG(s.st_mode)) return input_error("cannot read `{}`: it is no regular file", path);
  }
  ASSIGN_OR_RETURN(auto duckdb, reader());
  auto source = std::make_unique<ScanSource>(std::move(duckdb), std::move(scan));
  RETURN_IF_ERROR(source->open());
  return std::unique_ptr<data::BatchSource>(std::move(source));
}

}  // namespace rndn::files
