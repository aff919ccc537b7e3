#include "runtime/data/arrow_types.h"

#include <fmt/format.h>

#include <cstdio>

namespace rndn::data {
namespace {

using hir::BasicType;
using enum ArrowLayout;

constexpr int64_t microseconds = 1'000'000, day = 86'400'000;  // of a second; milliseconds of a day

constexpr ArrowFormat formats[] = {
    {"n", "null", none, 0, BasicType::i32},
    {"b", "bool", bits, 0, BasicType::boolean},
    {"c", "int8", signed_, 1, BasicType::i8},
    {"s", "int16", signed_, 2, BasicType::i16},
    {"i", "int32", signed_, 4, BasicType::i32},
    {"l", "int64", signed_, 8, BasicType::i64},
    {"C", "uint8", unsigned_, 1, BasicType::i16, Meaning::u8},
    {"S", "uint16", unsigned_, 2, BasicType::i32, Meaning::u16},
    {"I", "uint32", unsigned_, 4, BasicType::i64, Meaning::u32},
    {"L", "uint64", unsigned_, 8, BasicType::i64, Meaning::u64},
    {"f", "float", floats, 4, BasicType::f32},
    {"g", "double", floats, 8, BasicType::f64},
    {"d:", "decimal", decimal, 16, BasicType::i64},
    {"u", "utf8", text, 4, BasicType::str},
    {"U", "large_utf8", text, 8, BasicType::str},
    {"vu", "utf8_view", view, 16, BasicType::str},
    {"tdD", "date32", signed_, 4, BasicType::date},
    {"tdm", "date64", signed_, 8, BasicType::date, Meaning::number, 1, day},
    {"tts", "time32[s]", signed_, 4, BasicType::i64, Meaning::time, microseconds},
    {"ttm", "time32[ms]", signed_, 4, BasicType::i64, Meaning::time, 1'000},
    {"ttu", "time64[us]", signed_, 8, BasicType::i64, Meaning::time},
    {"ttn", "time64[ns]", signed_, 8, BasicType::i64, Meaning::time, 1, 1'000},
    {"tss:", "timestamp[s]", signed_, 8, BasicType::i64, Meaning::timestamp, microseconds},
    {"tsm:", "timestamp[ms]", signed_, 8, BasicType::i64, Meaning::timestamp, 1'000},
    {"tsu:", "timestamp[us]", signed_, 8, BasicType::i64, Meaning::timestamp},
    {"tsn:", "timestamp[ns]", signed_, 8, BasicType::i64, Meaning::timestamp, 1, 1'000},
};
// The same of timestamps with a zone, which count in UTC.
constexpr ArrowFormat zoned[] = {
    {"tss:", "timestamp[s, tz]", signed_, 8, BasicType::i64, Meaning::timestamp_utc, microseconds},
    {"tsm:", "timestamp[ms, tz]", signed_, 8, BasicType::i64, Meaning::timestamp_utc, 1'000},
    {"tsu:", "timestamp[us, tz]", signed_, 8, BasicType::i64, Meaning::timestamp_utc},
    {"tsn:", "timestamp[ns, tz]", signed_, 8, BasicType::i64, Meaning::timestamp_utc, 1, 1'000},
};
// Decimals of other widths than 16 bytes.
constexpr ArrowFormat decimals[] = {
    {"d:", "decimal32", decimal, 4, BasicType::i64},
    {"d:", "decimal64", decimal, 8, BasicType::i64},
    {"d:", "decimal256", decimal, 32, BasicType::i64},
};

// Formats whose values may be beyond 64 bits: in 64 bits, and in 128.
struct WideRow {
  ArrowFormat narrow, wide;
};
constexpr WideRow wide_rows[] = {
    {{"L", "UBIGINT", unsigned_, 8, BasicType::i64, Meaning::u64},
     {"L", "UBIGINT", unsigned_, 8, BasicType::i128, Meaning::u64}},
    {{"d:38,0", "HUGEINT", decimal, 16, BasicType::i64, Meaning::hugeint},
     {"d:38,0", "HUGEINT", decimal, 16, BasicType::i128, Meaning::hugeint}},
    {{"d:", "DECIMAL", decimal, 16, BasicType::i64},
     {"d:", "DECIMAL", decimal, 16, BasicType::i128}},
    {{"d:", "DECIMAL", decimal, 32, BasicType::i64},
     {"d:", "DECIMAL", decimal, 32, BasicType::i128}},
};
const WideRow* wide_row(const ArrowFormat& format) {
  for (const WideRow& row : wide_rows)
    if (row.wide.layout == format.layout && row.wide.bytes == format.bytes &&
        row.wide.meaning == format.meaning)
      return &row;
  return nullptr;
}

// Names of what has no row above, by what its format begins with.
struct Refused {
  std::string_view begins, name;
};
constexpr Refused other_formats[] = {
    {"e", "halffloat"},
    {"z", "binary"},
    {"Z", "large_binary"},
    {"vz", "binary_view"},
    {"w:", "fixed_size_binary"},
    {"tD", "duration"},
    {"ti", "interval"},
    {"+l", "list"},
    {"+L", "large_list"},
    {"+vl", "list_view"},
    {"+vL", "large_list_view"},
    {"+w:", "fixed_size_list"},
    {"+s", "struct"},
    {"+m", "map"},
    {"+u", "union"},
    {"+r", "run_end_encoded"},
};

const ArrowFormat* find(std::string_view text) {
  for (const ArrowFormat& format : formats) {
    const bool open = format.text.ends_with(':');
    if (open ? text.starts_with(format.text) : text == format.text) {
      if (format.meaning == Meaning::timestamp && text.size() > format.text.size())
        for (const ArrowFormat& with_zone : zoned)
          if (with_zone.text == format.text) return &with_zone;
      return &format;
    }
  }
  return nullptr;
}

}  // namespace

const ArrowFormat* narrow_format(const ArrowFormat& format) {
  const WideRow* row = wide_row(format);
  return row ? &row->narrow : nullptr;
}
const ArrowFormat* wide_format(const ArrowFormat& format) {
  const WideRow* row = wide_row(format);
  return row ? &row->wide : nullptr;
}

std::optional<ArrowType> arrow_type(const ArrowSchema& schema, std::string& refused) {
  const std::string_view text = schema.format ? schema.format : "";
  ArrowType type;
  if (schema.dictionary) {
    type.codes = find(text);
    const bool integers =
        type.codes && (type.codes->layout == signed_ || type.codes->layout == unsigned_);
    if (!integers || schema.dictionary->dictionary) {
      refused = fmt::format("dictionary with indices `{}`", text);
      return std::nullopt;
    }
    const std::optional<ArrowType> values = arrow_type(*schema.dictionary, refused);
    if (!values) {
      refused = "dictionary of " + refused;
      return std::nullopt;
    }
    type.format = values->format;
    type.decimal = values->decimal;
    return type;
  }
  type.format = find(text);
  if (!type.format) {
    refused = fmt::format("`{}`", text);
    for (const Refused& other : other_formats)
      if (text.starts_with(other.begins)) refused = other.name;
    return std::nullopt;
  }
  if (type.format->layout == decimal) {
    int precision = 0, scale = 0, width = 128;
    const int found = std::sscanf(schema.format, "d:%d,%d,%d", &precision, &scale, &width);
    for (const ArrowFormat& other : decimals)
      if (width == other.bytes * 8) type.format = &other;
    if (found < 2 || width != type.format->bytes * 8 || precision < 1 || precision > 38 ||
        scale < 0 || scale > precision) {
      refused = fmt::format("decimal{}({}, {})", width, precision, scale);
      return std::nullopt;
    }
    type.decimal = Decimal{static_cast<uint8_t>(precision), static_cast<uint8_t>(scale)};
  }
  return type;
}

}  // namespace rndn::data
