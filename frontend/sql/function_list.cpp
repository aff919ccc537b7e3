#include "frontend/sql/function_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "frontend/text_functions.h"

namespace rndn::sql {
namespace {

struct Row {
  std::string_view name;
  unsigned least, most;
  std::string_view rule, builtin;
};
constexpr Row functions[] = {
#define SQL_FUNCTION(id, name, least, most, rule, builtin) {name, least, most, #rule, builtin},
#define SQL_AGGREGATE(id, name, least, most)
#include "frontend/sql/functions.def"
#undef SQL_FUNCTION
#undef SQL_AGGREGATE
};
constexpr Row aggregates[] = {
#define SQL_FUNCTION(id, name, least, most, rule, builtin)
#define SQL_AGGREGATE(id, name, least, most) {name, least, most, "aggregate", ""},
#include "frontend/sql/functions.def"
#undef SQL_FUNCTION
#undef SQL_AGGREGATE
};
constexpr Row window_functions[] = {
#define SQL_WINDOW(id, name, least, most) {#id, least, most, "window", ""},
#include "frontend/sql/windows.def"
#undef SQL_WINDOW
};

// What queries have for a name of the plan. Empty: no query has it.
struct Spelling {
  std::string_view name, written;
};
constexpr Spelling spellings[] = {
    {"COMPARE_EQUAL", "="},
    {"COMPARE_NOTEQUAL", "<>"},
    {"COMPARE_LESSTHAN", "<"},
    {"COMPARE_GREATERTHAN", ">"},
    {"COMPARE_LESSTHANOREQUALTO", "<="},
    {"COMPARE_GREATERTHANOREQUALTO", ">="},
    {"COMPARE_DISTINCT_FROM", "IS DISTINCT FROM"},
    {"COMPARE_NOT_DISTINCT_FROM", "IS NOT DISTINCT FROM"},
    {"COMPARE_BETWEEN", "BETWEEN"},
    {"COMPARE_IN", "IN"},
    {"COMPARE_NOT_IN", "NOT IN"},
    {"CONJUNCTION_AND", "AND"},
    {"CONJUNCTION_OR", "OR"},
    {"OPERATOR_NOT", "NOT"},
    {"OPERATOR_IS_NULL", "IS NULL"},
    {"OPERATOR_IS_NOT_NULL", "IS NOT NULL"},
    {"OPERATOR_COALESCE", "COALESCE"},
    {"constant_or_null", ""},
    {"CASE_EXPR", "CASE"},
    {"OPERATOR_CAST", "CAST"},
    {"!__postfix", "!"},
    {"~~", "LIKE"},
    {"!~~", "NOT LIKE"},
    {"~~*", "ILIKE"},
    {"!~~*", "NOT ILIKE"},
    {"~~~", "GLOB"},
    {"count_star", "count(*)"},
    {"array_extract(string_split)", "split_part"},
};
std::string_view written(std::string_view name) {
  const auto* at =
      std::find_if(std::begin(spellings), std::end(spellings), [&](const Spelling& s) { return s.name == name; });
  return at == std::end(spellings) ? name : at->written;
}

// The kinds in their order, each with the translator's rules that are of it.
struct Kind {
  std::string_view name, rules;  // the rules with a blank around each
};
constexpr Kind kinds[] = {
    {"comparison", " compare distinct_from not_distinct_from between in not_in "},
    {"condition", " and_all or_any negation is_null is_not_null coalesce constant_or_null case_of raised cast "},
    {"number",
     " arithmetic divide integer_division magnitude rounding sign extreme real_function logarithm "
     "real_formula angle float_class bits bits_set "},
    {"date or time",
     " date_part julian truncation difference interval normalized age bucket last_day make_date "
     "make_time make_timestamp moment_of_seconds zoned parsed formatted "},
    {"text",
     " like not_like text_function not_text_function contains prefix suffix concat concat_ws digits "
     "formatted_text text_or_null "},
    {"aggregate", " aggregate "},
    {"window", " window "},
};
std::string_view kind_of(const Row& row) {
  // Some steps of numbers run where those of texts do.
  hir::TextFunctionId id;
  if (row.rule == "text_function" && hir::find_text_function(row.builtin, id) &&
      hir::row(id).arguments.find('t') == std::string_view::npos)
    return hir::is_text(hir::row(id).result) ? "text" : "number";
  const std::string wanted = fmt::format(" {} ", row.rule);
  for (const Kind& kind : kinds)
    if (kind.rules.find(wanted) != std::string_view::npos) return kind.name;
  return {};
}

std::string arguments_of(const Row& row) {
  constexpr unsigned unbounded = 255;  // and above
  if (row.most >= unbounded) return fmt::format("{} or more", row.least);
  return row.least == row.most ? fmt::format("{}", row.least) : fmt::format("{} to {}", row.least, row.most);
}

}  // namespace

std::vector<ListedFunction> listed_functions() {
  std::vector<ListedFunction> all;
  auto add = [&](std::span<const Row> rows) {
    for (const Row& row : rows)
      if (const std::string_view name = written(row.name); !name.empty())
        all.push_back({name, arguments_of(row), kind_of(row)});
  };
  add(functions);
  add(aggregates);
  add(window_functions);
  const auto place = [](const ListedFunction& f) {
    return std::find_if(std::begin(kinds), std::end(kinds), [&](const Kind& kind) { return kind.name == f.kind; }) -
           std::begin(kinds);
  };
  std::stable_sort(all.begin(), all.end(),
                   [&](const ListedFunction& a, const ListedFunction& b) { return place(a) < place(b); });
  return all;
}

}  // namespace rndn::sql
