// What the planner says is wrong with a statement, as a diagnostic of ours.
#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "libraries/base/errors/diagnostic.h"
#include "libraries/base/errors/source.h"
#include "runtime/planner/planner.h"

namespace rndn::planner {

// `answer`: the JSON that json_serialize_plan gives in place of a plan: error_type, error_message,
// and where known the bytes that are at fault ("location"), the name that was not found and names
// like it. `names`: what the catalog has.
struct Names {
  std::vector<std::string> tables;
  std::map<std::string, std::string>
      refused;  // columns of types that SQL does not have, with the type
  std::set<std::string> without_columns;  // tables that have no others
};
// The table that the answer says is not there, or the file that it must not read; empty: neither.
std::string missing_table(const std::string& answer);
void report_problem(const std::string& answer, Span statement, const Views& views,
                    const Names& names, DiagnosticSink& sink);
// The same for the message of an error that is no JSON: "Parser Error: syntax error at or near ..".
void report_message(std::string_view message, Span statement, DiagnosticSink& sink);

}  // namespace rndn::planner
