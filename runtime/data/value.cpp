#include "runtime/data/value.h"

#include <algorithm>

namespace rndn::data {

using hir::BasicType;

Value vector_from_bytes(BasicType type, uint64_t size, std::shared_ptr<const Bytes> bytes) {
  CHECK(!hir::is_text(type));
  CHECK(size == 0 || bytes->size() >= size * data::plain_width(type));
  Value v;
  v.kind = Value::vector;
  v.type = type;
  v.size = size;
  v.bytes = std::move(bytes);
  return v;
}

Value vector_from_bytes(BasicType type, uint64_t size, std::vector<std::byte> bytes) {
  return vector_from_bytes(type, size, std::make_shared<const Bytes>(std::move(bytes)));
}

namespace {

// Texts that are charged to the work that makes them.
std::shared_ptr<const std::vector<std::string>> held(std::vector<std::string> texts) {
  if (!is_memory_limited()) return std::make_shared<const std::vector<std::string>>(std::move(texts));
  uint64_t bytes = texts.capacity() * sizeof(std::string);
  const size_t within = std::string().capacity();  // of the object itself
  for (const std::string& text : texts) bytes += text.capacity() > within ? text.capacity() + 1 : 0;
  struct Held {
    MemoryCharge charge;
    std::vector<std::string> texts;
  };
  auto all = std::make_shared<const Held>(Held{MemoryCharge(bytes), std::move(texts)});
  return {all, &all->texts};
}

}  // namespace

Value vector_of_texts(BasicType type, std::vector<std::string> texts) {
  CHECK(hir::is_text(type));
  Value v;
  v.kind = Value::vector;
  v.type = type;
  v.size = texts.size();
  v.texts = held(std::move(texts));
  return v;
}

Value vector_of_codes(BasicType type, std::shared_ptr<const std::vector<std::string>> texts,
                      std::vector<uint32_t> codes) {
  CHECK(hir::is_text(type));
  Value v;
  v.kind = Value::vector;
  v.type = type;
  v.size = codes.size();
  v.texts = std::move(texts);
  v.codes = std::make_shared<const std::vector<uint32_t>>(std::move(codes));
  return v;
}

std::shared_ptr<const std::vector<std::string>> Value::plain_texts() const {
  if (!codes) return texts;
  std::vector<std::string> out(size);
  for (uint64_t i = 0; i < size; ++i) out[i] = text(i);
  return held(std::move(out));
}

namespace {
Value with_cells(Value::Kind kind, std::vector<Value> cells) {
  Value v;
  v.kind = kind;
  v.depth = 1;
  for (const Value& cell : cells) v.depth = std::max(v.depth, cell.depth + 1);
  v.cells = std::make_shared<const std::vector<Value>>(std::move(cells));
  return v;
}
}  // namespace

Value list(std::vector<Value> cells) { return with_cells(Value::list, std::move(cells)); }
Value dict(Value keys, Value values) { return with_cells(Value::dict, {std::move(keys), std::move(values)}); }
Value enumeration(Value keys, Value rows) { return with_cells(Value::enumeration, {std::move(keys), std::move(rows)}); }
Value ktable(Value keys, Value values) { return with_cells(Value::ktable, {std::move(keys), std::move(values)}); }

Value table(std::vector<std::string> names, std::vector<Value> columns) {
  CHECK(names.size() == columns.size());
  Value v = with_cells(Value::table, std::move(columns));
  v.names = std::make_shared<const std::vector<std::string>>(std::move(names));
  return v;
}

Value functions(std::vector<hir::FunctionRef> refs) {
  Value v;
  v.kind = Value::functions;
  v.functions_ = std::move(refs);
  return v;
}

namespace {
template <class T, class From>
Value narrowed(BasicType type, const std::vector<From>& from) {
  std::vector<T> to(from.size());
  for (size_t i = 0; i < from.size(); ++i) to[i] = static_cast<T>(from[i]);
  return vector_of<T>(type, std::span<const T>(to));
}
}  // namespace

Value from_literal(const hir::Program& program, const hir::Literal& literal) {
  if (const auto* refs = std::get_if<std::vector<hir::FunctionRef>>(&literal.values)) return functions(*refs);
  if (!program.types->is_basic(literal.type)) {  // an untyped list of symbols: one cell per symbol
    std::vector<Value> cells;
    for (const std::string& text : std::get<std::vector<std::string>>(literal.values))
      cells.push_back(vector_of_texts(BasicType::sym, {text}));
    return list(std::move(cells));
  }
  BasicType type = program.types->basic_of(literal.type);
  if (const auto* texts = std::get_if<std::vector<std::string>>(&literal.values)) return vector_of_texts(type, *texts);
  if (const auto* complexes = std::get_if<std::vector<std::complex<double>>>(&literal.values))
    return vector_of<std::complex<double>>(type, std::span<const std::complex<double>>(*complexes));
  if (const auto* wide = std::get_if<std::vector<__int128>>(&literal.values))
    return vector_of<__int128>(type, std::span<const __int128>(*wide));
  if (const auto* floats = std::get_if<std::vector<double>>(&literal.values))
    return type == BasicType::f32 ? narrowed<float>(type, *floats) : narrowed<double>(type, *floats);
  const auto& integers = std::get<std::vector<int64_t>>(literal.values);
  switch (data::plain_width(type)) {
    case 1: return narrowed<int8_t>(type, integers);
    case 2: return narrowed<int16_t>(type, integers);
    case 4: return type == BasicType::f32 ? narrowed<float>(type, integers) : narrowed<int32_t>(type, integers);
    case 8: return type == BasicType::f64 ? narrowed<double>(type, integers) : narrowed<int64_t>(type, integers);
  }
  CHECK(false, "literal of type {}", hir::basic_type_name(type));
}

Result<std::shared_ptr<const Column>> FileColumn::read(std::optional<BasicType> as) const {
  return file->part(file->schema().tables[0].name, column, part, as);
}

Result<Value> FileColumn::value(std::optional<BasicType> as) const {
  ASSIGN_OR_RETURN(std::shared_ptr<const Column> loaded, read(as));
  Value v = from_column(*loaded);
  if (part != ColumnPart::validity) v.fields = std::make_shared<const FileColumn>(*this);
  return v;
}

Value from_column(const data::Column& column) {
  if (column.encoding == data::Encoding::dictionary) {
    std::vector<uint32_t> codes(column.rows);
    for (uint64_t i = 0; i < column.rows; ++i) codes[i] = column.code_at(i);
    const std::shared_ptr<const data::Dictionary> dictionary = column.dictionary;
    return vector_of_codes(column.type, {dictionary, &dictionary->values}, std::move(codes));
  }
  if (hir::is_text(column.type)) {
    std::vector<std::string> texts(column.rows);
    for (uint64_t i = 0; i < column.rows; ++i) texts[i] = std::string(column.text_at(i));
    return vector_of_texts(column.type, std::move(texts));
  }
  CHECK(column.encoding == data::Encoding::plain);
  return vector_from_bytes(column.type, column.rows, column.data);
}

Value enumeration_of(const data::Column& foreign, const data::Column& key) {
  std::vector<int64_t> rows(foreign.rows);
  bool narrow = foreign.rows == 0 || foreign.foreign_rows->size() / foreign.rows == 4;
  for (uint64_t i = 0; i < foreign.rows; ++i)
    rows[i] = narrow ? reinterpret_cast<const int32_t*>(foreign.foreign_rows->data())[i]
                     : reinterpret_cast<const int64_t*>(foreign.foreign_rows->data())[i];
  return enumeration(from_column(key), vector_of<int64_t>(BasicType::i64, std::span<const int64_t>(rows)));
}

uint64_t length(const Value& value) {
  switch (value.kind) {
    case Value::vector: return value.size;
    case Value::list: return value.parts().size();
    case Value::enumeration: return value.parts()[1].size;
    case Value::dict: {
      const Value& keys = value.parts()[0];
      return keys.kind == Value::vector || keys.kind == Value::list ? length(keys) : 1;
    }
    case Value::table: return !value.cells || value.parts().empty() ? 0 : length(value.parts()[0]);
    case Value::ktable: return length(value.parts()[0]);
    case Value::functions: return value.functions_.size();
    case Value::none: return 0;
  }
  return 0;
}

}  // namespace rndn::data
