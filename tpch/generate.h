// The TPC-H data generator, byte-identical to the official one, for any scale factor and any number of threads.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libraries/base/errors/result.h"
#include "runtime/data/column.h"

namespace rndn::tpch {

enum class Table : uint8_t { region, nation, supplier, part, partsupp, customer, orders, lineitem };
std::string_view table_name(Table table);
bool find_table(std::string_view name, Table& table);
// Rows at this scale; lineitem: the exact count (costs a pass over the orders' line counts).
uint64_t row_count(Table table, double scale);

// Writes <directory>/<table>.tbl for all eight tables and schema.json, creating the directory. Progress on stderr when it takes longer
// than a second.
Result<void> write_tables(double scale, const std::string& directory, unsigned threads = 0, bool progress = true);
Result<void> write_table(Table table, double scale, const std::string& path, unsigned threads = 0,
                         bool progress = true);

// Generates only the named columns, straight into memory (comment text is built only when asked for). Columns in the
// order asked. Unknown names are an input error. Foreign keys carry their referenced rows.
Result<std::vector<data::Column>> generate_columns(Table table, std::span<const std::string> columns, double scale,
                                                   unsigned threads = 0, bool progress = true);

}  // namespace rndn::tpch
