// Values of HorseIR on the host: what the reference interpreter computes with and what every device's results are
// printed from.
//
//   Value price = vector_of<double>(hir::BasicType::f64, {1.5, 2});
//   price.as<double>()[1];                       // 2
//   Value t = table({"price"}, {price});
//
// Values are immutable and share their storage: a copy costs a few reference counts, whatever it holds.
#pragma once
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/ir.h"
#include "frontend/types.h"
#include "libraries/base/errors/result.h"
#include "runtime/data/source.h"

namespace rndn::data {

struct Value;

// Where a column of load_csv has its fields.
struct FileColumn {
  std::shared_ptr<Source> file;  // of one table
  std::string column;
  ColumnPart part = ColumnPart::values;
  // As the type that its fields show, or another.
  Result<std::shared_ptr<const Column>> read(std::optional<hir::BasicType> as) const;
  Result<Value> value(std::optional<hir::BasicType> as) const;
};

struct Value {
  enum Kind : uint8_t {
    none,         // no value: an unassigned variable before its type is known
    vector,       // `size` elements of `type`
    list,         // cells
    dict,         // cells[0]: keys, cells[1]: values
    enumeration,  // cells[0]: key vector of the referenced table, cells[1]: i64 vector of row numbers into it (=
                  // |keys|: missing)
    table,      // columns `names`; cells[k] = column k, a vector or an enumeration. With `source`: loaded on demand, no
                // cells
    ktable,     // cells[0], cells[1]: key table and value table, of equal row counts
    functions,  // function literals, as arguments of the each family and of join_index
  } kind = none;

  // vector
  hir::BasicType type{};
  uint64_t size = 0;  // elements
  std::shared_ptr<const data::Bytes>
      bytes;  // at least size * data::plain_width(type); may be null when size = 0. Not text
  std::shared_ptr<const std::vector<std::string>> texts;  // sym, str: at least size texts; may be null when size = 0
  std::shared_ptr<const std::vector<uint32_t>> codes;     // sym, str: if there, element i is texts[codes[i]]
  std::shared_ptr<const FileColumn> fields;               // a column of load_csv: a cast reads them anew

  // everything else
  std::shared_ptr<const std::vector<Value>> cells;  // never null for list, dict, enumeration, ktable and made tables
  uint32_t depth = 0;                               // levels of cells
  std::shared_ptr<const std::vector<std::string>> names;  // table: the columns' names
  std::string source;  // table: name in `Tables`, or path of `file`, whose columns are loaded when asked for
  std::shared_ptr<data::Source> file;        // table: of load_csv
  std::vector<hir::FunctionRef> functions_;  // functions

  // Elements of a vector. T: int8_t or uint8_t (bool, char, i8), int16_t, int32_t (also date, month, minute, second),
  // int64_t (also time, dt), float, double, std::complex<double>. Encodings of calendar types:
  // docs/horseir.md, "Calendar values".
  template <class T>
  const T* as() const {
    DCHECK(kind == vector && sizeof(T) == data::plain_width(type));
    return bytes ? reinterpret_cast<const T*>(bytes->data()) : nullptr;
  }
  const std::string& text(uint64_t i) const { return (*texts)[codes ? (*codes)[i] : i]; }
  std::shared_ptr<const std::vector<std::string>> plain_texts() const;  // without codes; null when there are none
  const std::vector<Value>& parts() const { return *cells; }

  bool is_vector() const { return kind == vector; }
  bool is_text_vector() const { return kind == vector && hir::is_text(type); }
};

// A vector over existing storage, without a copy.
Value vector_from_bytes(hir::BasicType type, uint64_t size, std::shared_ptr<const Bytes> bytes);
Value vector_from_bytes(hir::BasicType type, uint64_t size, std::vector<std::byte> bytes);
Value vector_of_texts(hir::BasicType type, std::vector<std::string> texts);
// codes: below texts->size().
Value vector_of_codes(hir::BasicType type, std::shared_ptr<const std::vector<std::string>> texts,
                      std::vector<uint32_t> codes);

template <class T>
Value vector_of(hir::BasicType type, std::span<const T> elements) {
  static_assert(std::is_trivially_copyable_v<T>);
  CHECK(sizeof(T) == data::plain_width(type) && !hir::is_text(type));
  expect_memory(elements.size_bytes());
  std::vector<std::byte> bytes(elements.size_bytes());
  if (!elements.empty()) std::memcpy(bytes.data(), elements.data(), bytes.size());
  return vector_from_bytes(type, elements.size(), std::move(bytes));
}
template <class T>
Value vector_of(hir::BasicType type, std::initializer_list<T> elements) {
  return vector_of<T>(type, std::span<const T>(elements.begin(), elements.size()));
}

Value list(std::vector<Value> cells);
Value dict(Value keys, Value values);
Value enumeration(Value keys, Value rows);
Value table(std::vector<std::string> names, std::vector<Value> columns);
Value ktable(Value keys, Value values);
Value functions(std::vector<hir::FunctionRef> refs);

// A literal of a program as a value: vector, or functions.
Value from_literal(const hir::Program& program, const hir::Literal& literal);

// The value of a column: a vector of its logical type (numbers share the column's storage, texts are decoded).
// Foreign keys give the vector of their key values; `enumeration_of` makes the enumeration from column and referenced
// key column.
Value from_column(const data::Column& column);
Value enumeration_of(const data::Column& foreign, const data::Column& key);

// Rows of a table, cells of a list, entries of a dict, elements of a vector or an enumeration. A lazily loaded table:
// 0.
uint64_t length(const Value& value);

}  // namespace rndn::data
