// Results of SQL queries: columns with SQL's names, types, ways of writing values, and NULL.
//
// DECIMAL has its scale's digits (12.30), BOOLEAN is true or false, TIMESTAMP 2024-02-29 10:00:00,
// with microseconds where there are some; NULL is NULL in tables, nothing in csv (an empty text is
// "" there), null in json. Everything else is written as print_result.h says.
#pragma once
#include <span>
#include <string>

#include "frontend/sql/translate.h"
#include "runtime/print_result.h"

namespace rndn::runtime {

// The grid of the table that a translated program returns: a column of it per result column, with
// its validity.
Result<Grid> sql_grid(const data::Value& table, std::span<const sql::ResultColumn> columns);

// One value as text.
std::string sql_text(sql::Type type, const data::Value& values, uint64_t i);

}  // namespace rndn::runtime
