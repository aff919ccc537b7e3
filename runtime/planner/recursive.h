// WITH RECURSIVE cut into its parts, for who runs them one after the other.
//
//   if (const auto q = planner::read_recursive(text))
//     for (const auto& t : q->tables) t.is_recursive ? run(t.first, t.next) : define(t.name, t.body)
//
// Only parentheses, names and UNION are read here; what they hold is the planner's. Left out: what
// has another form (USING KEY), which stays one statement.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rndn::planner {

struct RecursiveQuery {
  struct Table {
    std::string name;                  // without quotes
    std::vector<std::string> columns;  // that the text names
    std::string body;                  // between its parentheses
    bool is_recursive = false;         // `body` is `first` UNION [ALL] `next`, which names the table
    bool all = false;
    std::string first, next;
  };
  std::vector<Table> tables;
  std::string rest;  // the query that reads them
};

// None: the statement is another, or no table of it is recursive.
std::optional<RecursiveQuery> read_recursive(std::string_view statement);

}  // namespace rndn::planner
