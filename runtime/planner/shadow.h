// Shadow tables: what the planner sees in place of the user's.
//
// A shadow has the table's columns with their SQL types, and rows made from numbers, such that the
// planner's own statistics (rows, and distinct values per column by a sketch) have the proportions
// of the real ones. All tables are scaled by one factor, so that the largest has 50,000 rows;
// a column that has nulls, or of which nothing is known, ends with one;
// nothing that counts at most 1,000 is scaled, and nothing is scaled below 1,000: rows or distinct
// values. Columns that nothing is known of are NULL, and so are those that no order of joins has
// depended on yet: a table's cells are what a shadow costs, 10 ns each, twice that where they have
// values.
// No keys are declared, since rows of composite keys would collide.
#pragma once
#include <string>
#include <vector>

#include "frontend/sql/catalog.h"

namespace rndn::planner {

inline constexpr uint64_t shadow_rows = 50000;  // of the largest table
inline constexpr uint64_t shadow_floor = 1000;

// What rows are multiplied by; at most 1.
double shadow_factor(const sql::Catalog& catalog);
// `count`, scaled.
uint64_t scaled(uint64_t count, double factor);
struct Shadow {
  struct Column {
    std::string name, type;  // as CREATE TABLE has them
    std::string values;      // made of the row's number, which is `#`; empty: NULL
    bool ends_null = false;  // the last row has none
    bool operator==(const Column&) const = default;
  };
  std::vector<Column> columns;
  uint64_t rows = 0;
  bool operator==(const Shadow&) const = default;
  bool has_columns_of(const Shadow& other) const;  // by name and type
};
// With all that is known of the table.
Shadow shadow_of(const sql::Table& table, double factor);
// The statements that make (or replace) the table.
std::string statements_of(const std::string& table, const Shadow& shadow);
// The same where it is there as `made`: a few columns are changed alone. What the planner knows of
// the table is the same either way.
std::string statements_of(const std::string& table, const Shadow& shadow, const Shadow& made);

}  // namespace rndn::planner
