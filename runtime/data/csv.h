// A delimited text file without a schema, as `load_csv` reads it: names, fields and inferred types of its columns.
//
//   Result<CsvTable> t = read_csv("orders.csv");
//   t->columns[0].name;     // "o_orderkey"
//   t->columns[0].type;     // i64
#pragma once
#include <string>
#include <vector>

#include "frontend/types.h"
#include "libraries/base/errors/result.h"

namespace rndn::data {

struct CsvColumn {
  std::string name;
  hir::BasicType type{};            // inferred
  std::vector<std::string> fields;  // as they stand in the file, unquoted
};
struct CsvTable {
  std::vector<CsvColumn> columns;  // of equal length
};

// Reads a file as RFC 4180 says (quoted fields, CRLF or LF). What the file does not tell is chosen so:
//   delimiter  of `,` `;` tab and `|` the one that occurs most often in the first row, outside of quotes; it may also end every row
//   header     the first row, when its fields are distinct, none is empty and none is a number, a bool or a calendar value; without
//              one the columns are called c0, c1, ...
//   types      the first of i64, f64, bool (true, false), date, month, minute, second, time, dt that fits every field that is not
//              empty, else sym. Digits after a leading 0 are text (007). A column of empty fields is sym.
//   rows       a line without any character is none, unless there is one column
// Errors are the input's fault and name file, line and column.
Result<CsvTable> read_csv(const std::string& path);

// The fields as stored elements of `type` (any but sym and str); an empty field is zero. An error names the field.
Result<std::vector<std::byte>> parse_fields(hir::BasicType type, const std::vector<std::string>& fields);

}  // namespace rndn::data
