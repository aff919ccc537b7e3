// Messages of DuckDB are sentences in English over several lines, with names in double quotes and
// an end such as "!". Names that are missing and a few messages more are said in our own words; of
// the rest the first sentence becomes the message, and the others a note.
#include "runtime/planner/problem.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace rndn::planner {
namespace {

using Json = nlohmann::json;

std::string text_of(const Json& json, const char* key) {
  auto it = json.find(key);
  return it != json.end() && it->is_string() ? it->get<std::string>() : "";
}

// "[7,9]": the first byte and how many. The whole statement where there is none.
Span place_of(const Json& json, Span statement, const Views& views) {
  unsigned at = 0, length = 0;
  if (std::sscanf(text_of(json, "location").c_str(), "[%u,%u]", &at, &length) != 2 &&
      std::sscanf(text_of(json, "position").c_str(), "%u", &at) != 1)
    return {statement.file, statement.begin, statement.begin};
  return planner::place_of(statement, views, at, length);
}

std::vector<std::string> split(std::string_view text, std::string_view separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = text.find(separator);
    if (end != 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + separator.size());
  }
  return parts;
}

// In the style of our messages: `quoted`, lower case, no full stop.
std::string in_our_style(std::string_view message) {
  std::string text;
  char open = '\0';  // the mark of a quote that has begun
  auto is_letter = [&](size_t at) {
    return at < message.size() && std::isalnum(static_cast<unsigned char>(message[at]));
  };
  for (size_t at = 0; at < message.size(); ++at) {
    const char c = message[at];
    // An apostrophe stands within a word.
    const bool mark = (c == '"' || c == '\'') &&
                      (open ? c == open && !is_letter(at + 1) : at == 0 || !is_letter(at - 1));
    if (mark) open = open ? '\0' : c;
    text += mark ? '`' : c;
  }
  while (!text.empty() && std::string_view(".! :\t").find(text.back()) != std::string_view::npos)
    text.pop_back();
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.erase(0, 1);
  const bool capitals = text.size() > 1 && text[1] >= 'A' && text[1] <= 'Z';  // GROUP BY ..
  if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z' && !capitals) text[0] += 'a' - 'A';
  return text;
}

// What is said in our own words whenever DuckDB's message has such a part.
struct Known {
  std::string_view part, kind, message;
};
constexpr Known known[] = {
    {"parameters need to have a known value", "sql-parameter", "a parameter has no value here"},
    {"file system operations are disabled", "sql-file",
     "files are read by their names, FROM 'x.parquet', and by read_parquet, read_csv and read_json"},
    {"LOGICAL_EXPLAIN", "sql-statement",
     "`EXPLAIN` is no query: `--emit plan` and `rndn explain` show what becomes of one"},
    {"plan statement of type MULTI", "sql-statement",
     "PIVOT needs the values that become columns: PIVOT t ON k IN ('a', 'b') USING sum(v)"},
    {"does not support serialization", "sql-statement",
     "the planner gives no plan for this kind of statement"},
};

// What kind of thing has a name that was not found: "table", "column", "scalar function"; empty:
// nothing of that kind.
std::string missing_thing(const Json& json) {
  const std::string subtype = text_of(json, "error_subtype");
  if (subtype == "COLUMN_NOT_FOUND") return "column";
  if (subtype != "MISSING_ENTRY") return "";
  std::string type = text_of(json, "type");
  std::transform(type.begin(), type.end(), type.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  if (type.ends_with("function")) return "function";
  return type;
}

std::string_view kind_of(std::string_view error_type) {
  if (error_type == "parser") return "sql-syntax";
  if (error_type == "catalog") return "sql-name";
  if (error_type == "binder") return "sql-binding";
  return "sql-planner";
}

}  // namespace

std::string missing_table(const std::string& answer) {
  const Json json = Json::parse(answer, nullptr, false);
  if (!json.is_object()) return "";
  if (missing_thing(json) == "table") return text_of(json, "name");
  std::string message = text_of(json, "error_message");
  constexpr std::string_view begin = "Cannot access file \"", end = "\" - file system operations";
  const size_t at = message.find(begin), to = message.find(end);
  if (at != 0 || to == message.npos) return "";
  return message.substr(begin.size(), to - begin.size());
}

void report_problem(const std::string& answer, Span statement, const Views& views,
                    const Names& names, DiagnosticSink& sink) {
  const Json json = Json::parse(answer, nullptr, false);
  if (!json.is_object()) return report_message(answer, statement, sink);
  const Span place = place_of(json, statement, views);
  const std::string message = text_of(json, "error_message"), name = text_of(json, "name");
  if (const std::string thing = missing_thing(json); !thing.empty() && !name.empty()) {
    const bool is_table = thing == "table";
    const std::vector<std::string> candidates =
        is_table ? names.tables : split(text_of(json, "candidates"), ",");
    const std::vector<std::string_view> views(candidates.begin(), candidates.end());
    // What the planner holds to be near is hardly ever what was meant; of tables there are few.
    const std::string_view near = did_you_mean(name, views);
    std::string others;
    if (is_table)
      others = alternatives(name, views, "there are");
    else if (!near.empty())
      others = fmt::format("; did you mean `{}`?", near);
    auto report = sink.error("sql-name", place, "there is no {} `{}`{}", thing, name, others);
    if (is_table && names.tables.empty())
      report.note({}, "tables are files, FROM 'shop.csv', and what --data names");
    if (thing == "function" && near.empty())
      report.note({}, "`rndn help sql` lists those that there are");
    if (is_table && names.without_columns.contains(name))
      report.note({}, "no column of `{}` has a type that SQL has", name);
    if (auto refused = names.refused.find(name);
        thing == "column" && refused != names.refused.end())
      report.note({}, "a column `{}` is of type {}, which SQL does not have", name,
                  refused->second);
    return;
  }
  for (const Known& k : known)
    if (message.find(k.part) != message.npos) {
      sink.error(k.kind, place, "{}", k.message);
      return;
    }
  // The first sentence, and the others as a note.
  std::vector<std::string> parts;
  for (const std::string& line : split(message, "\n"))
    for (std::string& sentence : split(line, ". ")) parts.push_back(std::move(sentence));
  if (parts.empty()) parts.emplace_back("the planner refuses the statement without a reason");
  auto report =
      sink.error(kind_of(text_of(json, "error_type")), place, "{}", in_our_style(parts[0]));
  std::string rest;
  constexpr size_t most_listed = 4;
  size_t heading = parts.size();
  for (size_t i = 1; i < parts.size(); ++i) {
    const bool is_heading = parts[i].ends_with(':');
    if (is_heading) heading = i;
    if (i > heading + most_listed && parts.size() > heading + most_listed + 2) {
      rest += fmt::format("and {} more", parts.size() - i);
      break;
    }
    std::string part = in_our_style(parts[i]);
    if (const size_t twice = part.find(": : "); twice != part.npos) part.erase(twice, 2);
    rest += part + (is_heading ? ": " : i + 1 < parts.size() ? "; " : "");
  }
  if (!rest.empty()) report.note({}, "{}", rest);
}

void report_message(std::string_view message, Span statement, DiagnosticSink& sink) {
  const std::string first(message.substr(0, message.find('\n')));
  sink.error("sql-planner", {statement.file, statement.begin, statement.begin}, "{}",
             in_our_style(first));
}

}  // namespace rndn::planner
