// Making values: literals, columns, compound values.
#include "runtime/reference/value.h"

#include <algorithm>

namespace rndn::reference {
namespace {

Value compound(Value::Kind kind, std::vector<Value> cells) {
  Value v;
  v.kind = kind;
  v.cells = std::make_shared<const std::vector<Value>>(std::move(cells));
  return v;
}

// Stores `value` in the width that vectors of the literal's type have; integers wrap (horseir.md 2.1, rule 7).
template <class From>
std::vector<std::byte> store(hir::BasicType type, const std::vector<From>& values) {
  uint32_t width = data::plain_width(type);
  std::vector<std::byte> bytes(values.size() * width);
  for (size_t i = 0; i < values.size(); ++i) {
    std::byte* to = bytes.data() + i * width;
    auto put = [&](auto x) { std::memcpy(to, &x, sizeof x); };
    switch (type) {
      case hir::BasicType::f32: put(static_cast<float>(values[i])); break;
      case hir::BasicType::f64: put(static_cast<double>(values[i])); break;
      case hir::BasicType::complex: put(std::complex<double>(static_cast<double>(values[i]), 0)); break;
      default: {
        int64_t x = static_cast<int64_t>(values[i]);
        std::memcpy(to, &x, width);  // little endian: the low bytes
      }
    }
  }
  return bytes;
}

}  // namespace

Value vector_from_bytes(hir::BasicType type, uint64_t size, std::shared_ptr<const std::vector<std::byte>> bytes) {
  CHECK(!hir::is_text(type) && (size == 0 || (bytes && bytes->size() / data::plain_width(type) >= size)));
  Value v;
  v.kind = Value::vector;
  v.type = type;
  v.size = size;
  v.bytes = std::move(bytes);
  return v;
}

Value vector_from_bytes(hir::BasicType type, uint64_t size, std::vector<std::byte> bytes) {
  return vector_from_bytes(type, size, std::make_shared<const std::vector<std::byte>>(std::move(bytes)));
}

Value vector_of_texts(hir::BasicType type, std::vector<std::string> texts) {
  CHECK(hir::is_text(type));
  Value v;
  v.kind = Value::vector;
  v.type = type;
  v.size = texts.size();
  v.texts = std::make_shared<const std::vector<std::string>>(std::move(texts));
  return v;
}

Value list(std::vector<Value> cells) { return compound(Value::list, std::move(cells)); }
Value dict(Value keys, Value values) { return compound(Value::dict, {std::move(keys), std::move(values)}); }
Value enumeration(Value keys, Value rows) { return compound(Value::enumeration, {std::move(keys), std::move(rows)}); }
Value ktable(Value keys, Value values) { return compound(Value::ktable, {std::move(keys), std::move(values)}); }

Value table(std::vector<std::string> names, std::vector<Value> columns) {
  CHECK(names.size() == columns.size());
  Value v = compound(Value::table, std::move(columns));
  v.names = std::make_shared<const std::vector<std::string>>(std::move(names));
  return v;
}

Value functions(std::vector<hir::FunctionRef> refs) {
  Value v;
  v.kind = Value::functions;
  v.functions_ = std::move(refs);
  return v;
}

Value from_literal(const hir::Program& program, const hir::Literal& literal) {
  if (const auto* refs = std::get_if<std::vector<hir::FunctionRef>>(&literal.values)) return functions(*refs);
  hir::BasicType type =
      program.types->is_basic(literal.type) ? program.types->basic_of(literal.type) : hir::BasicType::sym;
  if (const auto* texts = std::get_if<std::vector<std::string>>(&literal.values)) return vector_of_texts(type, *texts);
  if (const auto* pairs = std::get_if<std::vector<std::complex<double>>>(&literal.values))
    return vector_of<std::complex<double>>(type, *pairs);
  if (const auto* floats = std::get_if<std::vector<double>>(&literal.values))
    return vector_from_bytes(type, floats->size(), store(type, *floats));
  const auto& integers = std::get<std::vector<int64_t>>(literal.values);
  return vector_from_bytes(type, integers.size(), store(type, integers));
}

Value from_column(const data::Column& column) {
  if (!hir::is_text(column.type)) return vector_from_bytes(column.type, column.rows, column.data);
  std::vector<std::string> texts;
  texts.reserve(column.rows);
  for (uint64_t i = 0; i < column.rows; ++i) texts.emplace_back(column.text_at(i));
  return vector_of_texts(column.type, std::move(texts));
}

Value enumeration_of(const data::Column& foreign, const data::Column& key) {
  CHECK(foreign.is_foreign_key && foreign.foreign_rows);
  std::vector<int64_t> rows(foreign.rows);
  bool wide = foreign.rows != 0 && foreign.foreign_rows->size() / foreign.rows == 8;
  for (uint64_t i = 0; i < foreign.rows; ++i) {
    if (wide) {
      std::memcpy(&rows[i], foreign.foreign_rows->data() + i * 8, 8);
    } else {
      int32_t row;
      std::memcpy(&row, foreign.foreign_rows->data() + i * 4, 4);
      rows[i] = row;
    }
  }
  return enumeration(from_column(key), vector_of<int64_t>(hir::BasicType::i64, rows));
}

uint64_t length(const Value& v) {
  switch (v.kind) {
    case Value::vector: return v.size;
    case Value::list: return v.cells->size();
    case Value::dict: return length(v.parts()[0]);
    case Value::enumeration: return length(v.parts()[1]);
    case Value::table: return v.cells && !v.cells->empty() ? length(v.parts()[0]) : 0;
    case Value::ktable: return length(v.parts()[0]);
    case Value::functions: return v.functions_.size();
    case Value::none: break;
  }
  return 0;
}

}  // namespace rndn::reference
