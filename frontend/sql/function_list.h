// The functions of SQL that have a translation, for people: the rows of functions.def and
// windows.def under the names that queries have for them.
//
//   for (const ListedFunction& f : listed_functions())
//     f.name, f.arguments, f.kind;   // "round", "1 to 2", "number"
//
// What the planner makes for itself is left out (constant_or_null). Cost: one pass over the rows.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace rndn::sql {

struct ListedFunction {
  std::string_view name;
  std::string arguments;  // how many: "2", "1 to 2", "1 or more"
  std::string_view kind;  // "comparison", "number", .., "aggregate", "window"
};
std::vector<ListedFunction> listed_functions();  // by kind, in the order of the rows

}  // namespace rndn::sql
