// What a delimited file without a schema says of itself: delimiter, header, quotes, names, types.
//
//   Result<Guess> g = guess_table("orders.csv", options);
//   g->table.columns[0];     // {"o_orderkey", i64}
//
// Private to this folder; docs of the rules for users are in sources.h.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/data/source.h"
#include "runtime/data/text_file.h"

namespace rndn::data {

struct Guess {
  TableSchema table;               // without the table's name
  std::vector<std::string> notes;  // what the user should hear of it
  std::unique_ptr<TextFile> file;  // cut as the table says
};

// Reads the whole file. Errors are the input's fault and name file, line and column.
Result<Guess> guess_table(const std::string& path, const SourceOptions& options);

// How a file of that table is cut.
TextFormat format_of(const TableSchema& table);

}  // namespace rndn::data
