#include "tools/duckdb_tables.h"

#include <cmath>

#include "runtime/print_sql.h"

namespace rndn::tools {
namespace {

using planner::Duckdb;

// Stored values as DuckDB holds them: integers times a unit, or decimals kept as floats times 10^s.
struct Conversion {
  double scale = 1;
  int64_t unit = 1;

  template <class From, class To>
  void run(const From* from, uint64_t count, To* to) const {
    for (uint64_t i = 0; i < count; ++i) {
      if constexpr (std::is_floating_point_v<From>)
        to[i] =
            scale == 1 ? static_cast<To>(from[i]) : static_cast<To>(std::llround(static_cast<double>(from[i]) * scale));
      else
        to[i] = static_cast<To>(from[i] * unit);
    }
  }
  template <class To>
  void of(const data::Column& column, uint64_t first, uint64_t count, To* to) const {
    using hir::BasicType;
    auto from = [&]<class From>(From) { run(column.as<From>() + first, count, to); };
    switch (column.type) {
      case BasicType::boolean:
      case BasicType::i8: return from(int8_t{});
      case BasicType::i16: return from(int16_t{});
      case BasicType::f32: return from(float{});
      case BasicType::f64: return from(double{});
      default: return column.width == 8 ? from(int64_t{}) : from(int32_t{});
    }
  }
  // DuckDB keeps a decimal in the fewest bytes for its digits.
  void to_type(const sql::Type& type, const data::Column& column, uint64_t first, uint64_t count, void* out) const {
    auto to = [&]<class To>(To) { of(column, first, count, static_cast<To*>(out)); };
    switch (type.id) {
      case sql::TypeId::boolean:
      case sql::TypeId::tinyint: return to(int8_t{});
      case sql::TypeId::utinyint: return to(uint8_t{});
      case sql::TypeId::smallint: return to(int16_t{});
      case sql::TypeId::usmallint: return to(uint16_t{});
      case sql::TypeId::integer:
      case sql::TypeId::date: return to(int32_t{});
      case sql::TypeId::uinteger: return to(uint32_t{});
      case sql::TypeId::real: return to(float{});
      case sql::TypeId::double_: return to(double{});
      case sql::TypeId::hugeint: return to(__int128{});
      case sql::TypeId::decimal:
        if (type.width <= 4) return to(int16_t{});
        if (type.width <= 9) return to(int32_t{});
        return type.width <= 18 ? to(int64_t{}) : to(__int128{});
      default: return to(int64_t{});
    }
  }
};

Duckdb::Column duckdb_column(const sql::Column& column, std::shared_ptr<const data::Column> data) {
  using hir::BasicType;
  Duckdb::Column out{.name = column.name, .type = column.type};
  if (data->validity) out.validity = data->validity->data();
  if (hir::is_text(data->type)) {
    out.text = [data](uint64_t row) { return data->text_at(row); };
    return out;
  }
  if (data->type == BasicType::character) {
    out.text = [data](uint64_t row) { return std::string_view(data->as<char>() + row, 1); };
    return out;
  }
  const Conversion conversion{.scale = column.type.id == sql::TypeId::decimal ? std::pow(10.0, column.type.scale) : 1,
                              .unit = runtime::sql_unit(data->type)};
  out.numbers = [=, type = column.type](uint64_t first, uint64_t count, void* to) {
    conversion.to_type(type, *data, first, count, to);
  };
  return out;
}

}  // namespace

Result<void> load_tables(Duckdb& duckdb, const sql::Catalog& catalog, data::Source& source, const TablesRead& reads) {
  for (const sql::Table& table : catalog.tables) {
    const auto read = reads.find(table.name);
    if (read == reads.end()) continue;
    std::vector<Duckdb::Column> columns;
    for (const sql::Column& c : table.columns) {
      if (read->second.contains(c.name)) {
        ASSIGN_OR_RETURN(auto data, source.column(table.name, c.name));
        columns.push_back(duckdb_column(c, std::move(data)));
      } else {
        columns.push_back({.name = c.name, .type = c.type});
      }
    }
    ASSIGN_OR_RETURN(const uint64_t rows, source.rows(table.name));
    RETURN_IF_ERROR(duckdb.load(table.name, rows, columns));
  }
  return {};
}

}  // namespace rndn::tools
