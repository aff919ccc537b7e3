// Runs translated plans, and makes catalogs of data sources.
#include "tests/sql_translate/translated.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "frontend/frontend.h"
#include "runtime/compiler/compile.h"
#include "runtime/engine.h"
#include "runtime/print_sql.h"
#include "runtime/simulator/simulator_device.h"

namespace rndn::testing {
namespace {

using hir::BasicType;

sql::Type sql_type(BasicType stored) {
  switch (stored) {
    case BasicType::boolean: return {sql::TypeId::boolean};
    case BasicType::i8: return {sql::TypeId::tinyint};
    case BasicType::i16: return {sql::TypeId::smallint};
    case BasicType::i32: return {sql::TypeId::integer};
    case BasicType::i64: return {sql::TypeId::bigint};
    case BasicType::f32: return {sql::TypeId::real};
    case BasicType::f64: return {sql::TypeId::decimal, 15, 2};
    case BasicType::date: return {sql::TypeId::date};
    default: return {sql::TypeId::varchar};
  }
}

template <class T>
int64_t integer_at(const reference::Value& v, uint64_t i) {
  return static_cast<int64_t>(v.as<T>()[i]);
}

Cell cell(const sql::Type& type, const reference::Value& v, uint64_t i) {
  const double scale = type.id == sql::TypeId::decimal ? std::pow(10.0, type.scale) : 1;
  const auto exact = [&](int64_t x) {
    return scale == 1 ? Cell(x) : Cell(static_cast<double>(x) / scale);
  };
  if (type.id == sql::TypeId::timestamp || type.id == sql::TypeId::timestamptz || type.id == sql::TypeId::time)
    return runtime::sql_text(type, v, i);  // as Python writes it
  switch (v.type) {
    case BasicType::f64: return v.as<double>()[i];
    case BasicType::f32: return static_cast<double>(v.as<float>()[i]);
    case BasicType::boolean: return integer_at<uint8_t>(v, i);
    case BasicType::i8: return integer_at<int8_t>(v, i);
    case BasicType::i16: return integer_at<int16_t>(v, i);
    case BasicType::i32: return exact(integer_at<int32_t>(v, i));
    case BasicType::i64: return exact(integer_at<int64_t>(v, i));
    case BasicType::i128: {  // as text where 64 bits do not hold it (record.py)
      const __int128 x = v.as<__int128>()[i];
      if (x < INT64_MIN || x > INT64_MAX) return runtime::sql_text(type, v, i);
      return exact(static_cast<int64_t>(x));
    }
    case BasicType::date: return iso_date(v.as<int32_t>()[i]);
    case BasicType::character: return std::string(1, static_cast<char>(v.as<int8_t>()[i]));
    default: return v.text(i);
  }
}

}  // namespace

Result<sql::Catalog> catalog_of(data::Source& source, const sql::Plan& plan) {
  std::map<std::string, std::set<std::string>> read;
  for (uint32_t n = 0; n < plan.nodes.size(); ++n) {
    const sql::Node& node = plan.nodes[static_cast<sql::NodeId>(n)];
    if (node.op != sql::Operator::scan || node.table.empty()) continue;
    for (uint32_t c : plan.of(node.columns))
      if (c < node.names.count) read[node.table].insert(plan.of(node.names)[c]);
  }
  sql::Catalog catalog;
  for (const data::TableSchema& from : source.schema().tables) {
    sql::Table table{.name = from.name, .primary = from.primary};
    ASSIGN_OR_RETURN(table.rows, source.rows(from.name));
    for (const data::ColumnSchema& c : from.columns) {
      sql::Column column{.name = c.name,
                         .type = sql_type(c.type),
                         .stored = c.type,
                         .foreign_table = c.foreign_table,
                         .foreign_key = c.foreign_key};
      if (read[from.name].count(c.name)) {
        ASSIGN_OR_RETURN(const std::shared_ptr<const data::Column> data,
                         source.column(from.name, c.name));
        const data::Statistics& s = data->statistics;
        column.has_nulls = data->has_nulls();
        if (s.known && hir::is_float(c.type)) {
          column.float_min = s.float_min;
          column.float_max = s.float_max;
        } else if (s.known && data->encoding == data::Encoding::plain &&
                   c.type != BasicType::character) {
          column.min = s.min;
          column.max = s.max;
          column.ascending = s.sorted;
          column.unique = s.dense && !column.has_nulls;
        }
      }
      table.columns.push_back(std::move(column));
    }
    catalog.tables.push_back(std::move(table));
  }
  return catalog;
}

Rows rows_of(const sql::Translation& translation, const reference::Value& table, const Cell& null) {
  Rows rows;
  const std::vector<reference::Value>& parts = table.parts();
  for (const sql::ResultColumn& c : translation.columns) {
    rows.names.push_back(c.name);
    const reference::Value& values = parts[c.values];
    rows.rows.resize(values.size);
    for (uint64_t i = 0; i < values.size; ++i) {
      const bool valid = !c.valid || parts[*c.valid].as<uint8_t>()[i];
      rows.rows[i].push_back(valid ? cell(c.type, values, i) : null);
    }
  }
  return rows;
}

Result<Rows> run_on_reference(const sql::Translation& translation, const data::Schema& schema,
                              const reference::Tables& tables, const Cell& null) {
  SourceManager sources;
  const FileId file = sources.add("query.hir", translation.program);
  DiagnosticSink sink;
  Timings timings;
  hir::Options options;
  options.schema = &schema;
  options.strict = true;
  const hir::Program program = hir::run(file, sources, options, sink, timings);
  if (!sink.diagnostics().empty()) return input_error("{}", render(sink, sources));
  ASSIGN_OR_RETURN(const std::vector<reference::Value> results,
                   reference::run(program, tables, sources, nullptr));
  return rows_of(translation, results[0], null);
}

Result<Rows> run_on_simulator(const sql::Translation& translation, const data::Schema& schema,
                              const reference::Tables& tables, std::string_view target,
                              const Cell& null, uint64_t* walked_again,
                              std::vector<runtime::KernelReport>* kernels,
                              runtime::Encode encode) {
  SourceManager sources;
  const FileId file = sources.add("query.hir", translation.program);
  DiagnosticSink sink;
  Timings timings;
  runtime::CompileOptions compile_options;
  compile_options.target = target;
  compile_options.schema = &schema;
  compile_options.numbers_as_parameters = true;
  ASSIGN_OR_RETURN(const runtime::Compiled compiled,
                   runtime::compile(file, sources, compile_options, sink, timings));
  if (!sink.diagnostics().empty()) return input_error("{}", render(sink, sources));
  ASSIGN_OR_RETURN(const std::unique_ptr<device::Device> device,
                   runtime::open_simulator(std::string(target)));
  runtime::Engine engine(*device, tables);
  runtime::EngineOptions options;
  options.allow_fallback = false;
  options.encode = encode;
  ASSIGN_OR_RETURN(const std::unique_ptr<runtime::Engine::Plan> plan,
                   engine.plan(compiled, sources, options, timings));
  ASSIGN_OR_RETURN(std::vector<reference::Value> results, engine.run(*plan, timings, nullptr, walked_again ? nullptr : kernels));
  if (walked_again) {
    ASSIGN_OR_RETURN(results, engine.run(*plan, timings, nullptr, kernels, nullptr, walked_again));
  }
  return rows_of(translation, results[0], null);
}

}  // namespace rndn::testing
