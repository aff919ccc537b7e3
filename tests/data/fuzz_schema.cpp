// libFuzzer target for schema.json alone, in memory: any bytes give a schema or an error that begins with the file's name. What is
// accepted keeps its promises: names that are found again, references that exist and agree in type, and a text that reads back to it.
// Build with the `fuzz` preset; start it on tests/data/schemas.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "runtime/data/schema.h"

namespace {

using namespace rndn;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  auto schema = data::parse_schema({reinterpret_cast<const char*>(bytes), size}, "schema.json");
  if (!schema) {
    require(schema.error().fault == Fault::input, "an error that is not the input's");
    require(schema.error().message.starts_with("schema.json:"), "an error without the file's name");
    return 0;
  }
  for (const data::TableSchema& table : schema->tables) {
    require(schema->find(table.name) == &table, "a table hides another");
    require(!table.columns.empty(), "a table without columns");
    for (const std::string& key : table.primary) require(table.find(key), "a primary key without a column");
    for (const data::ColumnSchema& column : table.columns) {
      require(table.find(column.name) == &column, "a column hides another");
      data::Schema::Column seen;
      require(schema->find_column(table.name, column.name, seen) && seen.type == column.type &&
                  seen.is_foreign_key == column.is_foreign_key() && seen.foreign_table == column.foreign_table,
              "the frontend sees another column");
      if (!column.is_foreign_key()) continue;
      const data::TableSchema* target = schema->find(column.foreign_table);
      const data::ColumnSchema* key = target ? target->find(column.foreign_key) : nullptr;
      require(key && key->type == column.type, "a foreign key without its key");
    }
  }
  std::string text = data::schema_text(*schema);
  auto again = data::parse_schema(text, "again.json");
  require(again.ok() && data::schema_text(*again) == text, "the schema does not read back");
  return 0;
}
