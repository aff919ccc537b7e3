// Reading a delimited file of unknown columns, one pass for the fields and one per column for its type.
#include "runtime/data/csv.h"

#include <algorithm>
#include <set>

#include "runtime/data/column.h"
#include "runtime/data/parse_value.h"
#include "runtime/data/text_file.h"

namespace rndn::data {

using hir::BasicType;

namespace {

// Types in the order in which they are tried.
constexpr BasicType candidates[] = {BasicType::i64,    BasicType::f64,   BasicType::boolean,
                                    BasicType::date,   BasicType::month, BasicType::minute,
                                    BasicType::second, BasicType::time,  BasicType::dt};

bool fits(BasicType type, std::string_view field) {
  alignas(16) std::byte ignored[16];
  if (hir::is_real(type) && type != BasicType::boolean) {
    size_t digits = field.find_first_not_of(" \t+-");
    if (digits != field.npos && field[digits] == '0' && digits + 1 < field.size() && field[digits + 1] >= '0' &&
        field[digits + 1] <= '9')
      return false;
  }
  return parse_value(type, field, ignored) == ParseStatus::ok;
}

BasicType infer(const std::vector<std::string>& fields) {
  if (std::all_of(fields.begin(), fields.end(), [](const std::string& f) { return f.empty(); })) return BasicType::sym;
  for (BasicType type : candidates)
    if (std::all_of(fields.begin(), fields.end(), [&](const std::string& f) { return f.empty() || fits(type, f); }))
      return type;
  return BasicType::sym;
}

bool is_value(std::string_view field) {
  bool digit = field.find_first_of("0123456789") != field.npos;
  return std::any_of(std::begin(candidates), std::end(candidates),
                     [&](BasicType t) { return (digit || t == BasicType::boolean) && fits(t, field); });
}

char delimiter_of(std::string_view text) {
  constexpr std::string_view choices = ",;\t|";
  size_t counts[choices.size()] = {};
  bool quoted = false;
  for (char c : text) {
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '\n') break;
    if (size_t at = choices.find(c); at != choices.npos) ++counts[at];
  }
  return choices[static_cast<size_t>(std::max_element(counts, counts + choices.size()) - counts)];
}

}  // namespace

Result<CsvTable> read_csv(const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<TextFile> file, TextFile::open(path, {.delimiter = ',', .quoted = true}, 1));
  std::string_view text = file->text();
  if (text.empty()) return input_error("cannot read `{}` as a table: the file is empty", path);
  size_t start = text.starts_with("\xef\xbb\xbf") ? 3 : 0;  // a byte order mark
  TextFormat format{.delimiter = delimiter_of(text.substr(start)), .quoted = true};

  std::vector<std::vector<std::string>> rows;
  FieldReader reader(text, start, format);
  while (!reader.at_end()) {
    const size_t row_start = reader.offset();
    std::vector<std::string> row;
    for (bool more = true; more;) {
      FieldReader::Field field = reader.next();
      if (field.broken_quote)
        return input_error("{}: the quotes of this field do not match", file->describe(field.offset));
      row.emplace_back(field.text);
      more = field.after == FieldReader::After::delimiter;
      if (more && reader.at_end()) row.emplace_back(), more = false;  // the file ends with a delimiter
    }
    if (row.size() == 1 && row[0].empty() && (rows.empty() || rows[0].size() > 1)) continue;
    if (!rows.empty() && row.size() != rows[0].size())
      return input_error("{}: expected {} columns as in the first row, found {}", file->describe(row_start),
                         rows[0].size(), row.size());
    rows.push_back(std::move(row));
  }
  if (rows.empty()) return input_error("cannot read `{}` as a table: it has empty lines only", path);

  size_t columns = rows[0].size();
  // A delimiter that ends every row.
  if (columns > 1 && std::all_of(rows.begin(), rows.end(), [](const auto& row) { return row.back().empty(); }))
    --columns;
  std::set<std::string_view> distinct(rows[0].begin(), rows[0].begin() + static_cast<ptrdiff_t>(columns));
  bool header = distinct.size() == columns && !distinct.count("") &&
                std::none_of(distinct.begin(), distinct.end(), [](std::string_view f) { return is_value(f); });
  CsvTable table;
  for (size_t c = 0; c < columns; ++c) {
    CsvColumn column;
    column.name = header ? rows[0][c] : fmt::format("c{}", c);
    for (size_t r = header; r < rows.size(); ++r) column.fields.push_back(std::move(rows[r][c]));
    column.type = infer(column.fields);
    table.columns.push_back(std::move(column));
  }
  return table;
}

Result<std::vector<std::byte>> parse_fields(BasicType type, const std::vector<std::string>& fields) {
  const size_t width = plain_width(type);
  std::vector<std::byte> bytes(fields.size() * width);
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].empty()) continue;
    if (parse_value(type, fields[i], bytes.data() + i * width) != ParseStatus::ok)
      return input_error("element {} is `{}`: expected {}", i, fields[i].substr(0, 40), expectation(type));
  }
  return bytes;
}

}  // namespace rndn::data
