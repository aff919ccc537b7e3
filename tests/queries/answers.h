// Answers of the queries: programs on the reference interpreter as rows, and their comparison with the rows of SQLite.
#pragma once
#include <string>
#include <vector>

#include "runtime/data/schema.h"
#include "runtime/reference/reference.h"
#include "tests/queries/sqlite_oracle.h"

namespace rndn::testing {

// Equal, numbers to 1e-9 relative.
bool same(const Cell& a, const Cell& b);
std::string text(const std::vector<Cell>& row);

// Compiles the program strictly and runs it. A warning is an error too.
Result<Rows> run_program(const std::string& text, const data::Schema& schema, const reference::Tables& tables);

// How `got` differs from the answer of `sql`; empty when it does not. The order of rows counts as far as the ORDER BY at the end of
// the text decides it.
std::string difference(const Rows& got, const Rows& wanted, const std::string& sql);

}  // namespace rndn::testing
