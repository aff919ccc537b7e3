// Delimited files without a schema: every file of csv/ is read as `--data FILE` does, and what is
// found beside it in FILE.expected is what is found in it: format, columns with their values, notes,
// or the error. RNDN_UPDATE=1 writes the expectations anew.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "frontend/calendar.h"
#include "libraries/base/system/files.h"
#include "runtime/data/sources.h"

namespace rndn::data::csv_files_test {
namespace {

namespace fs = std::filesystem;
using hir::BasicType;

std::string value_text(const Column& column, uint64_t row) {
  if (column.validity && (*column.validity)[row] == std::byte{0}) return "-";
  switch (column.type) {
    case BasicType::boolean: return column.as<uint8_t>()[row] ? "true" : "false";
    case BasicType::f64: return fmt::format("{}", column.as<double>()[row]);
    case BasicType::date: {
      const auto [year, month, day] = hir::civil_from_days(column.as<int32_t>()[row]);
      return fmt::format("{:04}-{:02}-{:02}", year, month, day);
    }
    case BasicType::sym: {
      std::string out = "`";
      for (char c : column.text_at(row))
        out += c >= ' ' && c <= '~' ? std::string(1, c)
                                    : fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
      return out + "`";
    }
    default:
      return column.width == 4 ? std::to_string(column.as<int32_t>()[row])
                               : std::to_string(column.as<int64_t>()[row]);
  }
}

std::string without(std::string text, const std::string& what) {
  for (size_t at; (at = text.find(what)) != text.npos;) text.erase(at, what.size());
  return text;
}

std::string what_is_in(const fs::path& path) {
  std::string notes, out;
  SourceOptions options{.threads = 2, .progress = false};
  options.note = [&](const std::string& note) { notes += "note: " + note + "\n"; };
  Result<std::shared_ptr<Source>> source = open_source({.data = path.string()}, {}, options);
  if (!source) return "error: " + source.error().message + "\n";
  const TableSchema& table = (*source)->schema().tables[0];
  out = fmt::format("delimiter {}{}{}\n",
                    table.delimiter == '\t' ? "tab" : std::string(1, table.delimiter),
                    table.header ? ", header" : "", table.quoted ? ", quoted" : "");
  for (const ColumnSchema& column : table.columns) {
    out += column.name + " " + std::string(hir::basic_type_name(column.type));
    if (column.format != DateFormat()) out += " " + date_format_text(column.format);
    Result<std::shared_ptr<const Column>> loaded = (*source)->column(table.name, column.name);
    if (!loaded) {
      out += ": error: " + loaded.error().message + "\n";
      continue;
    }
    out += ":";
    for (uint64_t row = 0; row < (*loaded)->rows; ++row) out += " " + value_text(**loaded, row);
    Result<std::shared_ptr<const Column>> complete =
        (*source)->complete_column(table.name, column.name);
    EXPECT_EQ(complete.ok(), !(*loaded)->has_nulls() || hir::is_text(column.type));
    if (!complete) out += "\n  " + complete.error().message;
    out += "\n";
  }
  return out + notes;
}

TEST(CsvFiles, HoldWhatIsExpected) {
  const fs::path folder = fs::path(RNDN_SOURCE_DIR) / "tests/data/csv";
  const bool update = std::getenv("RNDN_UPDATE") != nullptr;
  size_t files = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const fs::path& path = entry.path();
    if (path.extension() == ".expected") {
      EXPECT_TRUE(fs::exists(fs::path(path).replace_extension())) << path;
      continue;
    }
    ++files;
    const std::string found = without(what_is_in(path), folder.string() + "/"),
                      beside = path.string() + ".expected";
    if (update) {
      ASSERT_TRUE(write_file(beside, found).ok());
    }
    Result<std::string> expected = read_file(beside);
    ASSERT_TRUE(expected) << expected.error().message;
    EXPECT_EQ(found, *expected) << path;
  }
  EXPECT_GT(files, 50u);
}

}  // namespace
}  // namespace rndn::data::csv_files_test
