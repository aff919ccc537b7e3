// Shadow tables: what the planner sees in place of the user's.
//
// A shadow has the table's columns with their SQL types, and rows made from numbers, such that the
// planner's own statistics (rows, and distinct values per column by a sketch) have the proportions
// of the real ones. All tables are scaled by one factor, so that the largest has 50,000 rows;
// a column that has nulls, or of which nothing is known, ends with one;
// nothing that counts at most 1,000 is scaled, and nothing is scaled below 1,000: rows or distinct
// values. Columns that nothing is known of are NULL: the catalog knows those that a query reads.
// No keys are declared, since rows of composite keys would collide.
#pragma once
#include <string>

#include "frontend/sql/catalog.h"

namespace rndn::planner {

inline constexpr uint64_t shadow_rows = 50000;  // of the largest table
inline constexpr uint64_t shadow_floor = 1000;

// What rows are multiplied by; at most 1.
double shadow_factor(const sql::Catalog& catalog);
// `count`, scaled.
uint64_t scaled(uint64_t count, double factor);
// The statements that make (or replace) the table.
std::string shadow_statements(const sql::Table& table, double factor);

}  // namespace rndn::planner
