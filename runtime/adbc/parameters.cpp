#include "runtime/adbc/parameters.h"

#include <fmt/format.h>

#include "runtime/planner/database.h"
#include "runtime/print_sql.h"
#include "runtime/sql/catalog.h"

namespace rndn::adbc {

Result<Parameters> Parameters::take(data::ArrowStream rows) {
  const std::string name = "parameters";
  ASSIGN_OR_RETURN(auto loader, data::open_arrow(name, std::move(rows), data::ArrowNames::places));
  for (const auto& [column, type] : loader->schema().tables[0].refused)
    return input_error("parameter {} is {}, which SQL has no type for here", column.substr(1),
                       type);
  const auto source = std::make_shared<data::Source>(std::move(loader));
  const runtime::SqlCatalog types(source);
  Parameters parameters;
  ASSIGN_OR_RETURN(parameters.rows_, source->rows(name));
  for (const sql::Column& c : types.catalog().tables[0].columns) {
    ASSIGN_OR_RETURN(const auto column, source->column(name, c.name));
    parameters.columns_.push_back({c.type, data::from_column(*column), column->validity});
  }
  return parameters;
}

std::vector<std::string> Parameters::literals(uint64_t row) const {
  std::vector<std::string> all;
  for (const Column& c : columns_) {
    const bool is_there = !c.validity || (*c.validity)[row] == std::byte{1};
    const std::string text =
        is_there ? planner::quote_text(runtime::sql_text(c.type, c.values, row)) : "NULL";
    all.push_back(is_there && c.type.id == sql::TypeId::varchar
                      ? text
                      : fmt::format("CAST({} AS {})", text, sql::type_name(c.type)));
  }
  return all;
}

std::vector<std::string> Parameters::nulls() const {
  std::vector<std::string> all;
  for (const Column& c : columns_)
    all.push_back(fmt::format("CAST(NULL AS {})", sql::type_name(c.type)));
  return all;
}

}  // namespace rndn::adbc
