// The reader of delimited text: columns of a file whose schema is known. Private to this folder.
#pragma once
#include <span>
#include <vector>

#include "runtime/data/source.h"
#include "runtime/data/text_file.h"

namespace rndn::data {

struct WantedColumn {
  size_t position;      // in the table's schema
  hir::BasicType type;  // may be another than the schema's
};

// The columns, in the order asked, with statistics and validity. The file is cut. Throws
// std::bad_alloc.
Result<std::vector<Column>> read_columns(const TextFile& file, const TableSchema& table,
                                         std::span<const WantedColumn> wanted,
                                         const SourceOptions& options);

// What a table's columns are called by the fields of a header row: blanks around a name go, bytes
// that are no UTF-8 become U+FFFD, the empty name of column 3 is `c3`, and a name that stands there
// already gets _2, _3, ...
std::vector<std::string> column_names(std::vector<std::string> fields);
// The names in the file's first row, of which `columns` are expected.
Result<std::vector<std::string>> read_header(const TextFile& file, size_t columns);
// An error where the file's header is not the schema's.
Result<void> check_header(const TextFile& file, const TableSchema& table);

}  // namespace rndn::data
