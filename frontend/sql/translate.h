// A plan of SQL as a HorseIR program.
//
//   Result<Translation> t = translate(*read_plan(json), catalog);
//   t->program                      // module with main, which gives one table
//   t->columns[0].values            // which of that table's columns holds the first result column
//
// The table has a column of values for every result column, and a column of bool for those that may
// be null: true where there is a value. docs/sql.md has the table of what becomes of each operator
// and function.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "frontend/sql/catalog.h"
#include "frontend/sql/plan.h"
#include "libraries/base/errors/result.h"

namespace rndn::sql {

struct ResultColumn {
  std::string name;
  Type type;                      // DECIMAL: values are times 10^scale
  uint32_t values = 0;            // column of the program's table
  std::optional<uint32_t> valid;  // column of bool; none: never null
};

struct Translation {
  std::string program;
  std::vector<ResultColumn> columns;
  // Lines of the program (from 1) that may fail while it runs, ascending, and where in the query's
  // text they come from.
  std::vector<std::pair<uint32_t, Place>> places;
};

// `names` are those of the result columns, as the planner describes them; what is missing is called
// column0, column1, .. An error names the operator, function, cast or type that has no translation,
// and why; `place` is where it stands in the text, as far as the plan tells.
Result<Translation> translate(const Plan& plan, const Catalog& catalog,
                              const std::vector<std::string>& names = {}, Place* place = nullptr);

}  // namespace rndn::sql
