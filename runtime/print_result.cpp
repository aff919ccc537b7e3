#include "runtime/print_result.h"

#include <algorithm>
#include <cmath>

#include "libraries/base/report/json.h"
#include "libraries/base/report/utf8.h"
#include "libraries/base/system/cancel.h"
#include "runtime/print_sql.h"

namespace rndn::runtime {
namespace {

using hir::BasicType;
using data::Value;

// Days since 1970-01-01 to year, month, day in the proleptic Gregorian calendar (Howard Hinnant, "chrono-Compatible
// Low-Level Date Algorithms", civil_from_days).
struct Civil {
  int64_t year;
  unsigned month, day;
};
Civil civil(int64_t days) {
  days += 719468;
  int64_t era = (days >= 0 ? days : days - 146096) / 146097;
  unsigned of_era = static_cast<unsigned>(days - era * 146097);
  unsigned year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  unsigned of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  unsigned shifted = (5 * of_year + 2) / 153;
  unsigned month = shifted < 10 ? shifted + 3 : shifted - 9;
  return {static_cast<int64_t>(year_of_era) + era * 400 + (month <= 2), month, of_year - (153 * shifted + 2) / 5 + 1};
}

int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

std::string time_text(int64_t ms) {
  return fmt::format("{:02}:{:02}:{:02}.{:03}", ms / 3600000, ms / 60000 % 60, ms / 1000 % 60, ms % 1000);
}

std::string float_text(double x, bool is_f32, bool exact) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x < 0 ? "-inf" : "inf";
  auto shortest = [&] { return is_f32 ? fmt::format("{}", static_cast<float>(x)) : fmt::format("{}", x); };
  if (exact) {
    std::string s = shortest();
    return s.ends_with(".0") ? s.substr(0, s.size() - 2) : s;
  }
  double size = std::fabs(x);
  if (size != 0 && (size < 1e-4 || size >= 1e15)) return shortest();
  std::string s = fmt::format("{:.6f}", x);
  while (s.back() == '0') s.pop_back();
  if (s.back() == '.') s.pop_back();
  return s == "-0" ? "0" : s;
}

// A compound value on one line, as an element of the column `value`.
std::string compound_text(const Value& v) {
  std::string out;
  auto join = [&](uint64_t n, auto&& element) {
    for (uint64_t i = 0; i < n; ++i) {
      if (i) out += ", ";
      out += element(i);
    }
  };
  switch (v.kind) {
    case Value::vector:
      if (v.size == 1) return element_text(v, 0, true);
      out = "(";
      join(v.size, [&](uint64_t i) { return element_text(v, i, true); });
      return out + ")";
    case Value::list:
      out = "[";
      join(v.parts().size(), [&](uint64_t i) { return compound_text(v.parts()[i]); });
      return out + "]";
    case Value::dict: return "{" + compound_text(v.parts()[0]) + " -> " + compound_text(v.parts()[1]) + "}";
    case Value::enumeration: return compound_text(v.parts()[1]);
    case Value::table:  // one that loads on demand has no rows yet
      return v.cells ? fmt::format("table of {} rows", length(v)) : "table " + v.source;
    case Value::ktable: return fmt::format("k{}", compound_text(v.parts()[0]));
    case Value::functions: return "function";
    case Value::none: break;
  }
  return "";
}

// The key values that an enumeration stands for; a missing one is the type's zero or the empty text.
Value resolve(const Value& v) {
  const Value& keys = v.parts()[0];
  const Value& rows = v.parts()[1];
  const int64_t* at = rows.as<int64_t>();
  auto valid = [&](uint64_t i) { return at[i] >= 0 && static_cast<uint64_t>(at[i]) < keys.size; };
  if (keys.is_text_vector()) {
    std::vector<std::string> texts(rows.size);
    for (uint64_t i = 0; i < rows.size; ++i)
      if (valid(i)) texts[i] = keys.text(static_cast<uint64_t>(at[i]));
    return data::vector_of_texts(keys.type, std::move(texts));
  }
  uint32_t width = data::plain_width(keys.type);
  std::vector<std::byte> bytes(rows.size * width);
  for (uint64_t i = 0; i < rows.size; ++i)
    if (valid(i))
      std::memcpy(bytes.data() + i * width, keys.bytes->data() + static_cast<uint64_t>(at[i]) * width, width);
  return data::vector_from_bytes(keys.type, rows.size, std::move(bytes));
}

Result<void> add_column(Grid& grid, const std::string& name, const Value& value) {
  Value v = value.kind == Value::enumeration && value.parts()[0].is_vector() ? resolve(value) : value;
  if (!v.is_vector()) {  // cells of a list, entries of a dict, ...: one text each
    std::vector<std::string> texts;
    if (v.kind == Value::list)
      for (const Value& cell : v.parts()) texts.push_back(compound_text(cell));
    else if (v.kind != Value::none)
      texts.push_back(compound_text(v));
    v = data::vector_of_texts(BasicType::str, std::move(texts));
  }
  if (!grid.columns.empty() && v.size != grid.rows)
    return Error{Fault::internal,
                 fmt::format("column `{}` has {} rows, the ones before have {}", name, v.size, grid.rows)};
  grid.rows = v.size;
  grid.names.push_back(name);
  grid.types.emplace_back(hir::basic_type_name(v.type));
  grid.columns.push_back(std::move(v));
  return {};
}

Result<void> add_table(Grid& grid, const Value& table) {
  if (!table.cells) return Error{Fault::internal, fmt::format("table `{}` was not loaded", table.source)};
  for (size_t k = 0; k < table.parts().size(); ++k)
    RETURN_IF_ERROR(add_column(grid, (*table.names)[k], table.parts()[k]));
  return {};
}

bool is_number(BasicType type) { return hir::is_ordered_number(type) && type != BasicType::character; }

bool is_null(const Grid& grid, size_t k, uint64_t i) {
  return !grid.sql.empty() && grid.sql[k].valid && grid.sql[k].valid->as<uint8_t>()[i] == 0;
}
// Not NULL.
std::string cell_text(const Grid& grid, size_t k, uint64_t i) {
  return grid.sql.empty() ? element_text(grid.columns[k], i, true) : sql_text(grid.sql[k].type, grid.columns[k], i);
}
bool has_numbers(const Grid& grid, size_t k) {
  if (grid.sql.empty()) return is_number(grid.columns[k].type);
  const sql::TypeId type = grid.sql[k].type.id;
  return type >= sql::TypeId::tinyint && type <= sql::TypeId::hugeint;
}

// Columns on the terminal: none for combining marks, two for the wide characters of East Asia and for pictographs (Unicode,
// EastAsianWidth.txt, by blocks), one for everything else. Bytes that are no UTF-8 count one each.
size_t display_width(std::string_view s) {
  struct Block {
    uint32_t first, last;
    size_t width;
  };
  static constexpr Block blocks[] = {
      {0x300, 0x36f, 0},   {0x1100, 0x115f, 2}, {0x200b, 0x200f, 0},   {0x20d0, 0x20ff, 0},   {0x2e80, 0x303e, 2},
      {0x3041, 0xa4cf, 2}, {0xac00, 0xd7a3, 2}, {0xf900, 0xfaff, 2},   {0xfe00, 0xfe0f, 0},   {0xfe30, 0xfe6f, 2},
      {0xff00, 0xff60, 2}, {0xffe0, 0xffe6, 2}, {0x1f300, 0x1f64f, 2}, {0x1f900, 0x1f9ff, 2}, {0x20000, 0x3fffd, 2}};
  size_t width = 0;
  for (size_t i = 0; i < s.size();) {
    size_t n = std::max<size_t>(utf8_length(s.substr(i)), 1);
    uint32_t code = n == 1 ? 0x20 : static_cast<unsigned char>(s[i]) & (0xffu >> (n + 1));
    for (size_t k = 1; k < n; ++k) code = code << 6 | (static_cast<unsigned char>(s[i + k]) & 0x3fu);
    size_t columns = 1;
    for (const Block& b : blocks)
      if (code >= b.first && code <= b.last) columns = b.width;
    width += columns;
    i += n;
  }
  return width;
}

// Text on its way to a sink, in pieces of some rows.
class Pieces {
 public:
  explicit Pieces(const TextSink& sink) : sink_(sink) {}
  void add(std::string_view text) { text_ += text; }
  // A place where a piece may end.
  Result<void> end_row() { return text_.size() < least_bytes ? Result<void>() : flush(); }
  Result<void> flush() {
    RETURN_IF_ERROR(check_cancelled());
    if (!text_.empty()) RETURN_IF_ERROR(sink_(text_));
    text_.clear();
    return {};
  }

 private:
  static constexpr size_t least_bytes = 1 << 16;
  const TextSink& sink_;
  std::string text_;
};

// Two passes over the cells: one for the widths of the columns.
Result<void> print_table(const Grid& grid, uint64_t most_rows, Pieces& out) {
  const uint64_t shown = std::min(grid.rows, most_rows);
  std::vector<size_t> widths(grid.columns.size());
  auto on_a_line = [](std::string s) {
    for (char& c : s)
      if (static_cast<unsigned char>(c) < 32) c = ' ';
    return s;
  };
  auto cell = [&](size_t k, uint64_t i) { return on_a_line(is_null(grid, k, i) ? "NULL" : cell_text(grid, k, i)); };
  std::vector<std::string> names;
  for (size_t k = 0; k < grid.columns.size(); ++k) {
    names.push_back(on_a_line(grid.names[k]));
    widths[k] = display_width(names[k]);
    for (uint64_t i = 0; i < shown; ++i) widths[k] = std::max(widths[k], display_width(cell(k, i)));
  }
  auto line = [&](auto&& text) {
    std::string row;
    for (size_t k = 0; k < grid.columns.size(); ++k) {
      std::string s = text(k);
      std::string fill(widths[k] - std::min(widths[k], display_width(s)), ' ');
      row += k ? "  " : "";
      row += has_numbers(grid, k) ? fill + s : s + fill;
    }
    while (!row.empty() && row.back() == ' ') row.pop_back();
    out.add(row + '\n');
    return out.end_row();
  };
  RETURN_IF_ERROR(line([&](size_t k) { return names[k]; }));
  RETURN_IF_ERROR(line([&](size_t k) { return std::string(widths[k], '-'); }));
  for (uint64_t i = 0; i < shown; ++i) RETURN_IF_ERROR(line([&](size_t k) { return cell(k, i); }));
  out.add(shown < grid.rows ? fmt::format("({} rows, {} shown; --max-rows 0 shows all)\n", grid.rows, shown)
                            : fmt::format("({} row{})\n", grid.rows, grid.rows == 1 ? "" : "s"));
  return {};
}

std::string csv_field(std::string_view s) {
  if (s.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(s);
  std::string out = "\"";
  for (char c : s) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

Result<void> print_csv(const Grid& grid, Pieces& out) {
  for (size_t k = 0; k < grid.names.size(); ++k) out.add((k ? "," : "") + csv_field(grid.names[k]));
  out.add("\r\n");
  for (uint64_t i = 0; i < grid.rows; ++i) {
    for (size_t k = 0; k < grid.columns.size(); ++k) {
      if (k) out.add(",");
      if (is_null(grid, k, i)) continue;
      const std::string text = cell_text(grid, k, i);
      out.add(text.empty() && !grid.sql.empty() ? "\"\"" : csv_field(text));
    }
    out.add("\r\n");
    RETURN_IF_ERROR(out.end_row());
  }
  return {};
}

std::string json_element(const Grid& grid, size_t k, uint64_t i) {
  if (is_null(grid, k, i)) return "null";
  const Value& v = grid.columns[k];
  if (v.type == BasicType::boolean) return v.as<uint8_t>()[i] ? "true" : "false";
  if (hir::is_float(v.type)) {
    double x = v.type == BasicType::f32 ? v.as<float>()[i] : v.as<double>()[i];
    std::string s = element_text(v, i, true);
    return std::isfinite(x) ? s : json_string(s);
  }
  const std::string text = cell_text(grid, k, i);
  return has_numbers(grid, k) ? text : json_string(text);
}

Result<void> print_json(const Grid& grid, Pieces& out) {
  out.add("{\"columns\":[");
  for (size_t k = 0; k < grid.names.size(); ++k)
    out.add(fmt::format("{}{{\"name\":{},\"type\":\"{}\"}}", k ? "," : "", json_string(grid.names[k]), grid.types[k]));
  out.add("],\"rows\":[");
  for (uint64_t i = 0; i < grid.rows; ++i) {
    out.add(i ? ",\n[" : "\n[");
    for (size_t k = 0; k < grid.columns.size(); ++k) {
      if (k) out.add(",");
      out.add(json_element(grid, k, i));
    }
    out.add("]");
    RETURN_IF_ERROR(out.end_row());
  }
  out.add("]}");
  return {};
}

// The text that `print` gives to a sink.
template <class Print>
Result<std::string> whole_text(Print&& print) {
  std::string text;
  RETURN_IF_ERROR(print([&](std::string_view piece) -> Result<void> {
    text += piece;
    return {};
  }));
  return text;
}

}  // namespace

int64_t integer_at(const Value& v, uint64_t i) {
  switch (data::plain_width(v.type)) {
    case 1: return v.as<int8_t>()[i];
    case 2: return v.as<int16_t>()[i];
    case 4: return v.as<int32_t>()[i];
    default: return v.as<int64_t>()[i];
  }
}

bool find_format(std::string_view name, Format& format) {
  if (name == "table")
    format = Format::table;
  else if (name == "csv")
    format = Format::csv;
  else if (name == "json")
    format = Format::json;
  else
    return false;
  return true;
}

Result<Grid> to_grid(const Value& value) {
  Grid grid;
  if (value.kind == Value::table) {
    RETURN_IF_ERROR(add_table(grid, value));
  } else if (value.kind == Value::ktable) {
    for (const Value& side : value.parts()) RETURN_IF_ERROR(add_table(grid, side));
  } else {
    RETURN_IF_ERROR(add_column(grid, "value", value));
  }
  return grid;
}

Result<void> print_result(std::span<const Value> results, Format format, uint64_t most_rows, const TextSink& sink) {
  Pieces out(sink);
  for (size_t i = 0; i < results.size(); ++i) {
    ASSIGN_OR_RETURN(Grid grid, to_grid(results[i]));
    switch (format) {
      case Format::table:
        out.add(i ? "\n" : "");
        RETURN_IF_ERROR(print_table(grid, most_rows, out));
        break;
      case Format::csv:
        out.add(i ? "\r\n" : "");
        RETURN_IF_ERROR(print_csv(grid, out));
        break;
      case Format::json:
        out.add(i ? ",\n" : results.size() > 1 ? "[" : "");
        RETURN_IF_ERROR(print_json(grid, out));
        break;
    }
  }
  if (format == Format::json) out.add(results.empty() ? "[]\n" : results.size() > 1 ? "]\n" : "\n");
  return out.flush();
}

Result<void> print_grid(const Grid& grid, Format format, uint64_t most_rows, const TextSink& sink) {
  Pieces out(sink);
  switch (format) {
    case Format::table: RETURN_IF_ERROR(print_table(grid, most_rows, out)); break;
    case Format::csv: RETURN_IF_ERROR(print_csv(grid, out)); break;
    case Format::json:
      RETURN_IF_ERROR(print_json(grid, out));
      out.add("\n");
      break;
  }
  return out.flush();
}

Result<std::string> print_result(std::span<const Value> results, Format format, uint64_t most_rows) {
  return whole_text([&](const TextSink& sink) { return print_result(results, format, most_rows, sink); });
}
Result<std::string> print_grid(const Grid& grid, Format format, uint64_t most_rows) {
  return whole_text([&](const TextSink& sink) { return print_grid(grid, format, most_rows, sink); });
}

std::string element_text(const Value& v, uint64_t i, bool exact) {
  switch (hir::row(v.type).family) {
    case hir::Family::integer:
      if (v.type == BasicType::boolean) return v.as<uint8_t>()[i] ? "1" : "0";
      if (v.type == BasicType::character) return std::string(1, static_cast<char>(v.as<int8_t>()[i]));
      return fmt::format("{}", integer_at(v, i));
    case hir::Family::wide: return fmt::format("{}", v.as<__int128>()[i]);
    case hir::Family::floating:
      return v.type == BasicType::f32 ? float_text(v.as<float>()[i], true, exact)
                                      : float_text(v.as<double>()[i], false, exact);
    case hir::Family::complex: {
      std::complex<double> z = v.as<std::complex<double>>()[i];
      std::string imaginary = float_text(z.imag(), false, exact);
      return float_text(z.real(), false, exact) + (imaginary.starts_with('-') ? "" : "+") + imaginary + "i";
    }
    case hir::Family::text: return v.text(i);
    case hir::Family::calendar: return calendar_text(v.type, integer_at(v, i));
  }
  return {};
}

std::string calendar_text(BasicType type, int64_t x) {
  constexpr int64_t day_ms = 86400000;
  // Times of day do not wrap: one before midnight has a sign.
  if (x < 0 && (type == BasicType::minute || type == BasicType::second || type == BasicType::time))
    return "-" + calendar_text(type, -x);
  switch (type) {
    case BasicType::date: {
      Civil c = civil(x);
      return fmt::format("{:04}-{:02}-{:02}", c.year, c.month, c.day);
    }
    case BasicType::month: {
      int64_t year = floor_divide(x, 12);
      return fmt::format("{:04}-{:02}", 1970 + year, x - 12 * year + 1);
    }
    case BasicType::minute: return fmt::format("{:02}:{:02}", x / 3600, x / 60 % 60);
    case BasicType::second: return fmt::format("{:02}:{:02}:{:02}", x / 3600, x / 60 % 60, x % 60);
    case BasicType::time: return time_text(x);
    case BasicType::dt: {
      int64_t days = floor_divide(x, day_ms);
      return calendar_text(BasicType::date, days) + "T" + time_text(x - days * day_ms);
    }
    default: return fmt::format("{}", x);
  }
}

}  // namespace rndn::runtime
