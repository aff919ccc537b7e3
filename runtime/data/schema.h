// Tables, columns and keys: schema.json.
//
//   {"tables": [{"name": "lineitem", "file": "lineitem.tbl", "delimiter": "|", "header": false, "quoted": false,
//                "columns": [{"name": "l_orderkey", "type": "i32"},
//                            {"name": "l_shipdate", "type": "date", "format": "%d.%m.%Y"}, ...],
//                "primary": ["o_orderkey"],
//                "foreign": [{"column": "l_orderkey", "table": "orders", "key": "o_orderkey"}]}]}
//
// `file` defaults to NAME.tbl. What is said of the file defaults by its name: .csv has commas and quoted fields, .tsv tabs,
// all others | ; no file has a header. `primary` and `foreign` may be left out. Types are HorseIR's basic types; `format`
// (date and dt) is how dates are written (date_format.h). A foreign key is a single column with at most one target.
// "decimal(p,s)" with at most 15 digits is stored as f64, which is what HorseIR sees; SQL computes with it exactly.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/frontend.h"
#include "libraries/base/errors/result.h"
#include "runtime/data/date_format.h"

namespace rndn::data {

// The value is a whole number of 10^-scale, of at most `precision` digits.
struct Decimal {
  uint8_t precision = 0, scale = 0;
  bool operator==(const Decimal&) const = default;
  // Whether the float is the one that stands for such a number.
  bool holds(double value) const;
};

// What integers of a column stand for in SQL, if not for signed ones of their width. Times are
// microseconds, of the day or since 1970.
enum class Meaning : uint8_t { number, u8, u16, u32, hugeint, time, timestamp, timestamp_utc, u64 };

struct ColumnSchema {
  std::string name;
  hir::BasicType type{};           // foreign keys: of the key
  std::optional<Decimal> decimal;  // of f64, and of i64, which is the value times 10^scale
  std::string foreign_table;       // empty: no foreign key
  std::string foreign_key;
  DateFormat format;  // date and dt
  Meaning meaning = Meaning::number;
  bool is_foreign_key() const { return !foreign_table.empty(); }
};

struct TableSchema {
  std::string name;
  std::string file;
  char delimiter = '|';
  bool header = false;
  bool quoted = false;  // fields may stand in quotes
  std::vector<ColumnSchema> columns;
  std::vector<std::string> primary;
  struct Refused {
    std::string name, type;
  };
  std::vector<Refused> refused;  // further columns, of types that nothing here can hold

  const ColumnSchema* find(std::string_view column) const;  // null: none
  // Sets the file, and what its name says of it.
  void set_file(std::string_view name);
  size_t position(const ColumnSchema& column) const { return &column - columns.data(); }
};

class Schema : public hir::SchemaView {
 public:
  std::vector<TableSchema> tables;
  std::string assumed;  // what is said of it where nobody named it (origin)

  const TableSchema* find(std::string_view table) const;  // null: none
  // The same with an input error that names what exists.
  Result<const TableSchema*> table(std::string_view table) const;
  Result<const ColumnSchema*> column(const TableSchema& table, std::string_view column) const;

  bool has_table(std::string_view table) const override { return find(table) != nullptr; }
  bool find_column(std::string_view table, std::string_view column, Column& out) const override;
  std::vector<std::string_view> table_names() const override;
  std::vector<std::string_view> column_names(std::string_view table) const override;
  std::string_view origin() const override { return assumed; }
};

// The column's type as schema.json has it: "i32", "decimal(15,2)".
std::string type_text(const ColumnSchema& column);

// Reads the text of a schema.json; `name` is its name in messages. Checks everything: types, repeated names, keys that
// exist and agree in type.
Result<Schema> parse_schema(std::string_view json, std::string_view name);
// The text that parse_schema reads back to the same schema.
std::string schema_text(const Schema& schema);

}  // namespace rndn::data
