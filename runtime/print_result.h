// Results as text: table (for people), csv (RFC 4180), json (design of the command line: objects of columns and rows).
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/sql/catalog.h"
#include "frontend/types.h"
#include "libraries/base/errors/result.h"
#include "runtime/data/value.h"

namespace rndn::runtime {

enum class Format : uint8_t { table, csv, json };
bool find_format(std::string_view name, Format& format);

// What the cells of a SQL query's column are.
struct SqlCells {
  sql::Type type;
  std::optional<data::Value> valid;  // bool per row: false is NULL; none: there is no NULL
};

// A result as columns of plain vectors: tables as they are, enumerations as their key values, anything else as one
// column `value` whose cells are values, or texts of compound cells.
struct Grid {
  std::vector<std::string> names;
  std::vector<std::string> types;         // as written in HorseIR, such as "f64", or in SQL
  std::vector<data::Value> columns;  // vectors of equal length
  uint64_t rows = 0;
  std::vector<SqlCells> sql;  // of a SQL query, per column; else empty
};
// Fails (fault internal) for a table whose columns differ in length or were never loaded.
Result<Grid> to_grid(const data::Value& value);

// One program's results (what main returned; normally one table), complete with the final end of line.
//   csv     header line, CRLF line ends, fields quoted where needed; a program with several results: one after the
//   other with an empty
//           line between
//   json    {"columns":[{"name","type"}...],"rows":[[...]...]}; several results: an array of such objects
// Floats: csv and json print the shortest text that reads back to the same value, table at most 6 decimals.
// A table has the first `most_rows` rows only, and says how many there are.
// To a sink in pieces of some rows, so that no more of the text is in memory, or as one text.
using TextSink = std::function<Result<void>(std::string_view piece)>;
Result<void> print_result(std::span<const data::Value> results, Format format, uint64_t most_rows, const TextSink& sink);
Result<std::string> print_result(std::span<const data::Value> results, Format format, uint64_t most_rows = UINT64_MAX);
// One result in the same form.
Result<void> print_grid(const Grid& grid, Format format, uint64_t most_rows, const TextSink& sink);
Result<std::string> print_grid(const Grid& grid, Format format, uint64_t most_rows = UINT64_MAX);

// One element of whole numbers or calendar values.
int64_t integer_at(const data::Value& vector, uint64_t i);
// One element as text. `exact`: as csv prints it; else as a table shows it.
std::string element_text(const data::Value& vector, uint64_t i, bool exact);

// Calendar values in ISO form (docs/horseir.md, "Calendar values"): 1994-01-01, 1994-01, 20:15,
// 17:06:20, 11:22:33.001, 2019-01-02T17:10:21.001.
std::string calendar_text(hir::BasicType type, int64_t value);

}  // namespace rndn::runtime
