// What the SQL frontend knows of the user's tables: names, SQL types, keys and statistics.
//
// A plain record. The runtime fills it from a data source (rows, bounds, dictionary sizes); the
// planner bridge makes the planner's shadow tables of it; the translator picks encodings, lookups
// and widths of sums by it. Statistics are facts of the data, not estimates, unless they say so.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/types.h"

namespace rndn::sql {

enum class TypeId : uint8_t {
#define SQL_TYPE(id, name, horseir) id,
#include "frontend/sql/types.def"
#undef SQL_TYPE
  enumeration  // of expressions alone: a place among texts
};

struct Type {
  TypeId id = TypeId::integer;
  uint8_t width = 0, scale = 0;  // DECIMAL only
  uint16_t list = 0;             // ENUM only: which of Plan::enums
  bool operator==(const Type&) const = default;
};

// As SQL writes it: "DECIMAL(15,2)", "BIGINT".
std::string type_name(Type type);

struct Column {
  std::string name;
  Type type;
  hir::BasicType stored{};  // the type that HorseIR's column_value gives (sym or str for text)
  // A DECIMAL kept as binary floats (stored f32 or f64): the scaled integer is round(value * 10^s).
  bool has_nulls = false;
  // Rows of the table that this column's rows refer to; empty: no declared foreign key. HorseIR's
  // column_value gives an enumeration then.
  std::string foreign_table, foreign_key;
  // Least and greatest value, scaled as `type` says (dates: days since 1970); unknown: neither.
  std::optional<int64_t> min, max;
  std::optional<__int128> wide_min, wide_max;  // of what is stored as i128
  std::optional<double> float_min, float_max;
  uint64_t distinct = 0;   // distinct values, exact or estimated; 0: unknown
  bool unique = false;     // no value stands twice, and none is null
  bool ascending = false;  // no value is less than the one above it
};

struct Table {
  std::string name;
  uint64_t rows = 0;
  std::vector<Column> columns;
  std::vector<std::string> primary;  // empty: none declared
  struct Refused {
    std::string name, stored;
  };
  std::vector<Refused> refused;  // columns of HorseIR types that SQL has no type for
  const Column* find(std::string_view column) const {
    for (const Column& c : columns)
      if (c.name == column) return &c;
    return nullptr;
  }
};

struct Catalog {
  std::vector<Table> tables;
  const Table* find(std::string_view table) const {
    for (const Table& t : tables)
      if (t.name == table) return &t;
    return nullptr;
  }
};

}  // namespace rndn::sql
