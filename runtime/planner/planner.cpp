#include "runtime/planner/planner.h"

#include <algorithm>
#include <future>
#include <nlohmann/json.hpp>

#include "frontend/sql/estimates.h"
#include "libraries/base/report/utf8.h"
#include "libraries/base/system/cancel.h"
#include "runtime/planner/problem.h"
#include "runtime/planner/scanner.h"
#include "runtime/planner/statements.h"

namespace rndn::planner {
namespace {

using Json = nlohmann::json;

// Optimizers that are off, and why. An unknown name is an error, so that another version shows at
// once.
constexpr const char* profile[] = {
    "compressed_materialization",  // functions of its own: __internal_compress_..
    "statistics_propagation",      // conclusions from the shadows' values: filters that are always
                                   // true, empty results
    "grouping_sets",               // states of aggregates as values
    "partial_aggregate_pushdown",  // the same
    "aggregate_reuse",             // the same
    "in_clause",                   // IN lists stay IN, and become no joins with constants
    // Rewritings for its own way to run a plan; each is undone at a cost, or not at all.
    "late_materialization",
    "join_filter_pushdown",
    "row_group_pruner",
    "top_n_window_elimination",
    "window_self_join",
    "self_join_aggregate",
    "reorder_filter",  // by cost: what can fail goes before its guard
};

std::string settings() {
  std::string off;
  for (const char* name : profile) off += (off.empty() ? "" : ",") + std::string(name);
  return fmt::format(
      "SET threads = 1; SET disabled_optimizers = '{}'; SET autoinstall_known_extensions = false; "
      "SET autoload_known_extensions = false; SET enable_external_access = false; SET "
      "lock_configuration = true;",
      off);
}

// What we ask for ourselves is refused only when this file is wrong about DuckDB.
Error unexpected(std::string_view what, const Error& why) {
  if (why.fault != Fault::input) return why;
  return {Fault::internal, fmt::format("the planner of SQL did not {}: {}", what, why.message)};
}

// What this file looks for in a plan; the rest is frontend/sql's.
struct Found {
  Planner::Columns reads;  // tables and columns of scans
  bool has_parameter = false;
  struct {
    size_t offset = 0, length = 0;
  } parameter;  // the first `$1` or `?`
};

Planner::Columns reads_of(const sql::Plan& plan) {
  Planner::Columns reads;
  for (const sql::Node& n : plan.nodes) {
    if (n.op != sql::Operator::scan || n.table.empty()) continue;
    std::set<std::string>& columns = reads[n.table];
    for (uint32_t c : plan.of(n.columns))
      if (c < n.names.count) columns.insert(plan.of(n.names)[c]);
  }
  return reads;
}

void look_through(const Json& json, Found& found) {
  if (json.is_object()) {
    auto is = [&](const char* key, const char* value) {
      return json.contains(key) && json[key] == value;
    };
    if (is("expression_class", "BOUND_PARAMETER") && !found.has_parameter) {
      found.has_parameter = true;
      found.parameter = {json.value("query_location", size_t{0}),
                         json.value("query_location_length", size_t{0})};
    }
    if (is("type", "LOGICAL_GET") && json.contains("function_data") &&
        json["function_data"].contains("table")) {
      std::set<std::string>& columns =
          found.reads[json["function_data"]["table"].get<std::string>()];
      const Json names = json.value("names", Json::array());
      for (const Json& column : json.value("column_indexes", Json::array())) {
        const size_t at = column.value("index", size_t{0});  // a default is left out
        if (at < names.size()) columns.insert(names[at].get<std::string>());
      }
    }
  }
  if (json.is_structured())
    for (const Json& part : json) look_through(part, found);
}

// The same of a plan that has something without a translation.
Result<void> look_through_text(const std::string& plan, Found& found) {
  const Json json = Json::parse(plan, nullptr, false);
  if (!json.is_object() || !json.contains("plans") || json["plans"].size() != 1)
    return unexpected("give one plan", Error{Fault::input, plan.substr(0, 200)});
  try {
    look_through(json["plans"][0], found);
  } catch (const Json::exception& wrong) {  // a field of another type than it had when this was
                                            // written
    return unexpected("give a plan of the form that is known", Error{Fault::input, wrong.what()});
  }
  return {};
}

// DuckDB writes NaN and Infinity, of which JSON knows nothing: as strings.
std::string with_quoted_numbers(std::string json) {
  const auto has = [&](const char* word) { return json.find(word) != json.npos; };
  if (!has("NAN") && !has("NaN") && !has("Infinity")) return json;
  std::string out;
  bool in_string = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_string && c == '\\') {
      out += c;
      if (++i < json.size()) out += json[i];
      continue;
    }
    if (c == '"') in_string = !in_string;
    const bool begins = !in_string && (c == 'N' || c == 'I' || (c == '-' && i + 1 < json.size() && json[i + 1] == 'I'));
    if (!begins) {
      out += c;
      continue;
    }
    const size_t end = std::min(json.find_first_of(",]}", i), json.size());
    out += '"' + json.substr(i, end - i) + '"';
    i = end - 1;
  }
  return out;
}

Result<std::vector<ResultColumn>> describe(Database& database, std::string_view text) {
  ASSIGN_OR_RETURN(
      std::string answer,
      database.ask(fmt::format(
          "SELECT to_json(list([column_name, column_type])) FROM (DESCRIBE {}\n)", text)));
  const Json json = Json::parse(answer, nullptr, false);
  if (!json.is_array()) return unexpected("describe a query", Error{Fault::input, answer});
  std::vector<ResultColumn> columns;
  for (const Json& pair : json)
    columns.push_back({pair.at(0).get<std::string>(), pair.at(1).get<std::string>()});
  return columns;
}

}  // namespace

Planner::Planner(std::unique_ptr<Database> database)
    : database_(std::move(database)), beside_(database_->another()), names_(std::make_unique<Names>()) {}
Planner::~Planner() = default;

Result<std::unique_ptr<Planner>> Planner::open(const Options& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<Database> database, open_database(options));
  if (auto set = database->ask(settings()); !set)
    return unexpected("take its settings", set.error());
  return std::unique_ptr<Planner>(new Planner(std::move(database)));
}

Result<void> Planner::set_catalog(const sql::Catalog& catalog) {
  std::map<std::string, std::string> names;  // without case, as the planner looks for tables
  for (const sql::Table& table : catalog.tables)
    if (const auto [at, fresh] = names.emplace(lower(table.name), table.name); !fresh)
      return input_error(
          "the tables `{}` and `{}` have one name in SQL, where upper and lower case are equal; --table NAME=FILE "
          "gives "
          "one another name",
          at->second, table.name);
  std::map<std::string, Shadow> shadows;
  std::string changes;
  *names_ = {};
  for (const sql::Table& table : catalog.tables) {
    if (table.columns.empty()) {
      names_->without_columns.insert(table.name);
      continue;
    }
    Shadow empty = shadow_of(table, 1);
    empty.rows = 0;
    const auto known = shadows_.find(table.name);
    const bool stays = known != shadows_.end() && known->second.has_columns_of(empty);
    if (!stays) changes += statements_of(table.name, empty);
    shadows.emplace(table.name, stays ? known->second : std::move(empty));
    names_->tables.push_back(table.name);
    for (const auto& [name, stored] : table.refused) names_->refused.emplace(name, stored);
  }
  for (const auto& [name, made] : shadows_)
    if (!shadows.contains(name)) changes += fmt::format("DROP TABLE {};\n", quote_name(name));
  catalog_ = catalog;
  return change(changes, std::move(shadows));
}

// Shadows of the tables that the plan joins, with all that is known of the columns that its order of
// joins depends on. True: they are not what they were.
Result<bool> Planner::make_shadows(const Planned& planned) {
  // Of what has no translation nothing is told.
  const Columns decisive = planned.tree ? sql::estimated_by(*planned.tree) : planned.reads;
  const double factor = shadow_factor(catalog_);
  std::map<std::string, Shadow> shadows = shadows_;
  std::string changes;
  for (const auto& [name, columns] : decisive) {
    const sql::Table* table = catalog_.find(name);
    if (!table) continue;
    Shadow wanted = shadow_of(*table, factor);
    Shadow& made = shadows[name];
    const bool stays = wanted.rows == made.rows && wanted.has_columns_of(made);
    uint64_t changed = 0;
    for (size_t c = 0; c < wanted.columns.size(); ++c) {
      Shadow::Column& column = wanted.columns[c];
      if (!columns.contains(table->columns[c].name)) {
        if (stays) {
          column = made.columns[c];
        } else if (c >= made.columns.size() || made.columns[c].values.empty()) {
          column.values.clear();
          column.ends_null = false;
        }
      }
      changed += stays && column != made.columns[c];
    }
    if (wanted == made) continue;
    const std::string change = statements_of(name, wanted, made);
    const bool is_whole = change == statements_of(name, wanted);
    (is_whole ? counts_.shadows : counts_.columns) += is_whole ? 1 : changed;
    changes += change;
    made = std::move(wanted);
  }
  if (changes.empty()) return false;
  RETURN_IF_ERROR(change(changes, std::move(shadows)));
  return true;
}

// Makes the shadows what they are to be.
Result<void> Planner::change(const std::string& changes, std::map<std::string, Shadow> shadows) {
  if (changes.empty()) return {};
  shadows_.clear();  // a failure in the middle leaves an unknown state
  if (auto made = database_->ask(changes); !made)
    return unexpected("make its tables", made.error());
  shadows_ = std::move(shadows);
  return {};
}

Span place_of(Span statement, const Views& views, uint32_t at, uint32_t length) {
  auto within = [&](Span text, uint32_t from) {
    const uint32_t begin = text.begin + at - from;
    return Span{text.file, begin, begin + std::min(length, text.end - begin)};
  };
  for (const View& view : views)
    if (at >= view.place && at - view.place < view.text.size())
      return within(view.span, view.place);
  return at <= statement.end - statement.begin ? within(statement, 0) : statement;
}

Result<void> Planner::make_view(const View& view, DiagnosticSink& sink, const OpenTable& open) {
  RETURN_IF_ERROR(serialize(view.text, view.span, sink, open));
  std::string columns;
  for (const std::string& column : view.columns)
    columns += (columns.empty() ? " (" : ", ") + quote_name(column);
  if (!columns.empty()) columns += ')';
  std::string made = fmt::format("CREATE VIEW {}{} AS ", quote_name(view.name), columns);
  made.resize(std::max<size_t>(view.place, made.size()), ' ');
  if (auto said = database_->ask(made + view.text); !said) {
    if (said.error().fault != Fault::input) return said.error();
    report_message(said.error().message, view.span, sink);
    return Error{Fault::input, ""};
  }
  views_.push_back(view);
  return {};
}

Result<void> Planner::drop_views() {
  std::string changes;
  for (const View& view : views_) changes += fmt::format("DROP VIEW {};\n", quote_name(view.name));
  views_.clear();
  if (changes.empty()) return {};
  if (auto gone = database_->ask(changes); !gone)
    return unexpected("forget its views", gone.error());
  return {};
}

Result<void> Planner::set_types(const std::vector<NamedType>& types) {
  std::string changes;
  for (const std::string& name : types_) changes += fmt::format("DROP TYPE {};\n", quote_name(name));
  types_.clear();
  for (const NamedType& type : types) {
    changes += fmt::format("CREATE TYPE {} AS {};\n", quote_name(type.name), type.definition);
    types_.push_back(type.name);
  }
  if (changes.empty()) return {};
  if (auto made = database_->ask(changes); !made) return unexpected("make its types", made.error());
  return {};
}

// The plan's JSON, once all tables are there.
Result<std::string> Planner::serialize(std::string_view text, Span statement, DiagnosticSink& sink,
                                       const OpenTable& open) {
  std::set<std::string> opened;
  for (;;) {
    ++counts_.plannings;
    auto answer =
        database_->ask(fmt::format("SELECT json_serialize_plan({}, optimize := true, skip_null := "
                                   "true, skip_empty := true, skip_default := true)",
                                   quote_text(text)));
    if (!answer) {
      if (answer.error().fault != Fault::input) return answer.error();
      report_message(answer.error().message, statement, sink);
      return Error{Fault::input, ""};
    }
    if (!answer->starts_with("{\"error\":true")) return answer;
    const std::string missing = open ? missing_table(*answer) : "";
    if (!missing.empty() && opened.insert(missing).second) {
      auto is_open = open(missing);
      if (is_open && *is_open) continue;
      if (!is_open && is_open.error().fault != Fault::input &&
          is_open.error().fault != Fault::usage)
        return is_open.error();
      if (!is_open && is_open.error().message.empty()) return is_open.error();  // it is said
      if (!is_open) {
        const size_t at = std::min(text.find(missing), text.size());
        const auto begin = static_cast<uint32_t>(statement.begin + at);
        const auto length = static_cast<uint32_t>(at < text.size() ? missing.size() : 0);
        sink.error("sql-file", {statement.file, begin, begin + length}, "{}",
                   is_open.error().message);
        return Error{Fault::input, ""};
      }
    }
    report_problem(*answer, statement, views_, *names_, sink);
    return Error{Fault::input, ""};
  }
}

Result<Planned> Planner::plan(Span statement, const SourceManager& sources, DiagnosticSink& sink) {
  return plan(sources.text(statement), statement, sink, {}, {});
}

Result<Planned> Planner::plan(std::string_view text, Span statement, DiagnosticSink& sink,
                              const OpenTable& open, const Learn& learn) {
  const Error said{Fault::input, ""};
  auto place = [&](size_t at, size_t length) {
    return place_of(statement, views_, static_cast<uint32_t>(at), static_cast<uint32_t>(length));
  };
  if (const size_t at = bad_byte(text); at != text.npos) {
    sink.error("sql-text", place(at, 1), "this byte ({:#04x}) is no part of a text in UTF-8",
               static_cast<unsigned char>(text[at]));
    return said;
  }
  Planned planned;
  // Where there are two connections the columns of the result are asked for meanwhile: they do not
  // depend on what is learnt of the tables.
  struct Described {
    std::future<Result<std::vector<ResultColumn>>> columns;
    ~Described() {
      if (columns.valid()) columns.wait();
    }
  } described;
  if (beside_)
    described.columns = describing_.run([this, text, token = CancelToken::current()] {
      const CancelScope scope(token);
      return errors_of([&] { return describe(*beside_, text); });
    });
  for (bool is_again = false;; is_again = true) {
    ASSIGN_OR_RETURN(std::string answer, serialize(text, statement, sink, open));
    planned.plan = with_quoted_numbers(std::move(answer));
    Found found;
    auto tree = sql::read_plan(planned.plan);
    if (tree) {
      planned.tree = *std::move(tree);
      found.reads = reads_of(*planned.tree);
    } else {
      planned.tree.reset();
      RETURN_IF_ERROR(look_through_text(planned.plan, found));
    }
    if (found.has_parameter) {
      sink.error("sql-parameter", place(found.parameter.offset, found.parameter.length),
                 "a parameter has no value here");
      return said;
    }
    planned.reads = std::move(found.reads);
    if (is_again) break;
    if (learn) RETURN_IF_ERROR(learn(planned));
    ASSIGN_OR_RETURN(const bool changed, make_shadows(planned));
    if (!changed) break;
  }
  // Whatever has a plan and columns is a query: CREATE, INSERT, SET and their like have a plan
  // only.
  Result<std::vector<ResultColumn>> columns = Error{Fault::input, ""};
  if (beside_) columns = described.columns.get();
  // Tables that the statement names may not have been there yet.
  if (!columns && columns.error().fault == Fault::input) columns = describe(*database_, text);
  if (!columns) {
    if (columns.error().fault != Fault::input) return columns.error();
    const size_t word = std::min(text.find_first_of(" \t\r\n("), text.size());
    sink.error("sql-statement", place(0, word), "`{}` is no query: SELECT and its like are",
               text.substr(0, word));
    return said;
  }
  planned.columns = *std::move(columns);
  planned.repeatable =
      is_repeatable(text) && std::all_of(views_.begin(), views_.end(), [](const View& view) {
        return is_repeatable(view.text);
      });
  return planned;
}

}  // namespace rndn::planner
