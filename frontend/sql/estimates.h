// What a plan's estimates of rows come from: the planner chooses the order of joins by the rows of
// tables, and by the distinct values and nulls of some of their columns.
//
//   for (const auto& [table, columns] : estimated_by(plan)) ..  // {"orders": {"o_orderkey"}}
#pragma once
#include <map>
#include <set>
#include <string>

#include "frontend/sql/plan.h"

namespace rndn::sql {

// The tables that the plan joins, each with those of its columns that conditions of joins speak of,
// and, below joins, keys of groups and filters. Filters by order, IN, pattern, OR or NOT do not
// count, since they leave a fixed part of the rows in any case.
std::map<std::string, std::set<std::string>> estimated_by(const Plan& plan);

}  // namespace rndn::sql
