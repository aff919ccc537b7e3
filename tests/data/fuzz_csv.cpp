// libFuzzer target for what reads data: schema.json, delimited files by a schema, and files without one. Up to the first byte 0x1e
// the input is a schema (when empty: one with every type), behind it the text of its files. Never a crash or a hang; a schema that
// is accepted reads back from its text, and a table that is read reads back from what is written of it.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "libraries/base/system/files.h"
#include "runtime/data/sources.h"

namespace {

using namespace rndn;

const std::string& folder() {
  static const std::string path = [] {
    const char* temporary = std::getenv("TMPDIR");  // best in memory, such as /dev/shm
    std::string made = std::string(temporary ? temporary : "/tmp") + "/rndn_fuzz_XXXXXX";
    if (!mkdtemp(made.data())) std::abort();
    return made;
  }();
  return path;
}

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

const char* every_type = R"({"tables":[{"name":"t","file":"t.csv","header":false,"delimiter":",","columns":[
  {"name":"a","type":"i32"},{"name":"b","type":"f64"},{"name":"c","type":"sym"},{"name":"d","type":"date"}],"primary":["a"]},
  {"name":"u","file":"u.tbl","columns":[{"name":"k","type":"i64"},{"name":"p","type":"i32"},{"name":"x","type":"str"},
  {"name":"y","type":"bool"},{"name":"z","type":"dt"}],"foreign":[{"column":"p","table":"t","key":"a"}]}]})";

std::string csv_field(const std::string& text) {
  std::string out = "\"";
  for (char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + '"';
}

// What was read as text, written with every field quoted, reads back the same, and as the same types.
void check_round_trip(data::Source& source) {
  const data::TableSchema& table = source.schema().tables[0];
  std::vector<std::shared_ptr<const data::Column>> fields;
  for (const data::ColumnSchema& column : table.columns) {
    auto read = source.column_as(table.name, column.name, hir::BasicType::str);
    require(read.ok(), "a column is no text");
    fields.push_back(*read);
    require(source.column(table.name, column.name).ok(), "the type that was found does not fit");
  }
  std::string text;
  for (size_t c = 0; c < fields.size(); ++c) text += (c ? "," : "") + csv_field(table.columns[c].name);
  text += "\r\n";
  for (uint64_t r = 0; r < fields[0]->rows; ++r) {
    for (size_t c = 0; c < fields.size(); ++c) text += (c ? "," : "") + csv_field(std::string(fields[c]->text_at(r)));
    text += "\r\n";
  }
  // Whether a row of names is one may be another question when it is quoted and no delimiter ends the rows: the schema tells.
  data::Schema schema;
  schema.tables.push_back(table);
  schema.tables[0].set_file("again.csv");
  schema.tables[0].header = true;
  require(write_file(folder() + "/again.csv", text).ok(), "cannot write");
  require(write_file(folder() + "/schema.json", data::schema_text(schema)).ok(), "cannot write");
  auto again = data::open_folder(folder(), {.threads = 1, .progress = false});
  require(again.ok(), "the written schema does not read");
  for (size_t c = 0; c < fields.size(); ++c) {
    const std::string& name = table.columns[c].name;
    require((*again)->column(table.name, name).ok(), "the written column does not read");
    auto read = (*again)->column_as(table.name, name, hir::BasicType::str);
    require(read.ok() && (*read)->rows == fields[c]->rows, "the written column has other rows");
    for (uint64_t r = 0; r < fields[c]->rows; ++r)
      require((*read)->text_at(r) == fields[c]->text_at(r), "the written column has other fields");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  std::string input(reinterpret_cast<const char*>(bytes), size);
  size_t cut = std::min(input.find('\x1e'), input.size());
  std::string schema = input.substr(0, cut), text = cut < input.size() ? input.substr(cut + 1) : "";
  if (schema.empty()) schema = every_type;
  auto parsed = data::parse_schema(schema, "schema.json");
  if (parsed) {
    std::string once = data::schema_text(*parsed);
    auto again = data::parse_schema(once, "again.json");
    require(again.ok() && data::schema_text(*again) == once, "the schema does not read back");
  }
  require(write_file(folder() + "/schema.json", schema).ok(), "cannot write");
  for (const char* name : {"/t.csv", "/u.tbl"}) require(write_file(folder() + name, text).ok(), "cannot write");
  data::SourceOptions options{.threads = 1, .progress = false, .cache = ""};
  auto source = data::open_folder(folder(), options);
  require(!source || parsed, "a schema that does not parse opens");
  if (source)
    for (const data::TableSchema& table : (*source)->schema().tables)
      for (const data::ColumnSchema& column : table.columns) {
        auto loaded = (*source)->column(table.name, column.name);
        if (!loaded) continue;
        require((*loaded)->data->size() == (*loaded)->rows * (*loaded)->width, "a column of another size");
        require(!(*loaded)->validity || (*loaded)->validity->size() == (*loaded)->rows, "a validity of another size");
        for (uint64_t row = 0; row < (*loaded)->rows; ++row) {
          if (hir::is_text((*loaded)->type)) (void)(*loaded)->text_at(row);
          if ((*loaded)->is_foreign_key) (void)(*loaded)->foreign_row(row);
        }
      }
  options.note = [](const std::string&) {};
  for (const char* name : {"/t.csv", "/u.tbl"})
    if (auto table = data::open_source({.data = folder() + name}, {}, options)) check_round_trip(**table);
  return 0;
}
