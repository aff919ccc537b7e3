#include "tools/sql_help.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "frontend/sql/function_list.h"
#include "runtime/files/files.h"
#include "runtime/planner/commands.h"

namespace rndn::tools {
namespace {

struct Line {
  std::string kind, name, arguments, meaning;
};

std::vector<Line> lines() {
  std::vector<Line> all;
  for (const sql::ListedFunction& f : sql::listed_functions())
    all.push_back({std::string(f.kind), std::string(f.name), f.arguments, ""});
  for (const planner::StatementForm& s : planner::statement_forms())
    all.push_back({"statement", std::string(s.form), "", std::string(s.answer)});
  for (const files::FileOption& o : files::file_options())
    all.push_back({fmt::format("option of {}", o.of), std::string(o.value), "", std::string(o.meaning)});
  return all;
}

}  // namespace

std::string sql_help() {
  constexpr size_t widest = 44;  // names beyond it have what they mean on a line of its own
  std::string out, kind;
  for (const Line& line : lines()) {
    if (line.kind != kind) out += fmt::format("{}{}:\n", out.empty() ? "" : "\n", line.kind);
    kind = line.kind;
    const std::string what = line.meaning.empty()
                                 ? fmt::format("{} argument{}", line.arguments, line.arguments == "1" ? "" : "s")
                                 : line.meaning;
    if (line.name.size() > widest)
      out += fmt::format("  {}\n  {:{}}  {}\n", line.name, "", widest, what);
    else
      out += fmt::format("  {:{}}  {}\n", line.name, line.meaning.empty() ? 26 : widest, what);
  }
  return out +
         "\nAlso what DuckDB 2.0.1 makes of these, such as nullif, ifnull, date_part and extract, and "
         "in FROM:\nrange, generate_series, unnest. docs/sql.md has the rest.\n";
}

std::string sql_help_tsv() {
  std::string out = "kind\tname\targuments\tmeaning\n";
  for (const Line& line : lines())
    out += fmt::format("{}\t{}\t{}\t{}\n", line.kind, line.name, line.arguments, line.meaning);
  return out;
}

}  // namespace rndn::tools
