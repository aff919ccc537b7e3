// Tables, columns and keys: schema.json, and the built-in TPC-H schema.
//
//   {"tables": [{"name": "lineitem", "file": "lineitem.tbl", "delimiter": "|", "header": false,
//                "columns": [{"name": "l_orderkey", "type": "i32"}, ...],
//                "primary": ["o_orderkey"],
//                "foreign": [{"column": "l_orderkey", "table": "orders", "key": "o_orderkey"}]}]}
//
// `file` defaults to NAME.tbl, `delimiter` to | (to , for a file that ends in .csv), `header` to false; `primary` and
// `foreign` may be left out. Types are HorseIR's basic types. A foreign key is a single column with at most one target.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "frontend/frontend.h"
#include "libraries/base/errors/result.h"

namespace rndn::data {

struct ColumnSchema {
  std::string name;
  hir::BasicType type{};      // foreign keys: of the key
  std::string foreign_table;  // empty: no foreign key
  std::string foreign_key;
  bool is_foreign_key() const { return !foreign_table.empty(); }
};

struct TableSchema {
  std::string name;
  std::string file;
  char delimiter = '|';
  bool header = false;
  std::vector<ColumnSchema> columns;
  std::vector<std::string> primary;

  const ColumnSchema* find(std::string_view column) const;  // null: none
  size_t position(const ColumnSchema& column) const { return &column - columns.data(); }
};

class Schema : public hir::SchemaView {
 public:
  std::vector<TableSchema> tables;

  const TableSchema* find(std::string_view table) const;  // null: none
  // The same with an input error that names what exists.
  Result<const TableSchema*> table(std::string_view table) const;
  Result<const ColumnSchema*> column(const TableSchema& table, std::string_view column) const;

  bool has_table(std::string_view table) const override { return find(table) != nullptr; }
  bool find_column(std::string_view table, std::string_view column, Column& out) const override;
  std::vector<std::string_view> table_names() const override;
  std::vector<std::string_view> column_names(std::string_view table) const override;
};

// Reads the text of a schema.json; `name` is its name in messages. Checks everything: types, repeated names, keys that
// exist and agree in type.
Result<Schema> parse_schema(std::string_view json, std::string_view name);
// The text that parse_schema reads back to the same schema.
std::string schema_text(const Schema& schema);
// TPC-H as HorseIR programs load it (names, types and foreign keys of the language's specification, section 6.2).
Schema tpch_schema();

}  // namespace rndn::data
