// SQL in a session: queries, and the statements that are answered beside the planner.
#include <fmt/format.h>

#include "frontend/sql/plan.h"
#include "runtime/planner/database.h"
#include "runtime/print_sql.h"
#include "tools/session.h"

namespace rndn::tools {
namespace {

using SqlCommand = planner::Command;
using Until = runtime::SqlQueries::Until;

// A text of its own, named as the one that it was made for.
NamedSource statement_of(const NamedSource& of, std::string text) {
  const auto shared = std::make_shared<const std::string>(std::move(text));
  return {of.name, of.file, "", NamedSource::Statement{shared, 0, shared->size()}};
}
// The rest of a statement, from a place in its file.
NamedSource rest_of(const NamedSource& statement, uint32_t begin) {
  NamedSource rest = statement;
  rest.sql->begin = begin;
  return rest;
}

runtime::Grid text_grid(std::vector<std::string> names,
                        const std::vector<std::vector<std::string>>& rows) {
  runtime::Grid grid;
  grid.rows = rows.size();
  for (size_t c = 0; c < names.size(); ++c) {
    std::vector<std::string> cells;
    for (const std::vector<std::string>& row : rows) cells.push_back(row[c]);
    grid.columns.push_back(data::vector_of_texts(hir::BasicType::str, std::move(cells)));
    grid.types.emplace_back("VARCHAR");
  }
  grid.names = std::move(names);
  return grid;
}

}  // namespace

Result<Session::Outcome> Session::run_sql(const NamedSource& statement, const Flags& flags,
                                          bool want_reports) {
  DiagnosticSink sink;
  auto read = planner::read_command(span_of(statement), sources(), sink);
  print_diagnostics(sink, sources());
  if (!read) return read.error();
  const SqlCommand& command = *read;
  Outcome outcome;
  switch (command.kind) {
    case SqlCommand::query:
    case SqlCommand::copy:
    case SqlCommand::create_table:
    case SqlCommand::drop_table: return run_query(statement, flags, want_reports);
    case SqlCommand::show_tables: {
      std::vector<std::vector<std::string>> rows;
      for (const sql::Table& table : queries().catalog().tables) {
        const auto known = source()->rows_at_hand(table.name);
        rows.push_back({table.name, std::to_string(table.columns.size()),
                        known ? std::to_string(*known) : ""});
      }
      outcome.grid = text_grid({"name", "columns", "rows"}, rows);
      return outcome;
    }
    case SqlCommand::describe: return describe(statement, command);
    case SqlCommand::summarize: return summarize(command, flags);
    case SqlCommand::explain: {
      ASSIGN_OR_RETURN(outcome.text, explain(rest_of(statement, command.rest), flags));
      return outcome;
    }
    case SqlCommand::explain_analyze: {
      const NamedSource query = rest_of(statement, command.rest);
      ASSIGN_OR_RETURN(std::string text, plan_section(query));
      ASSIGN_OR_RETURN(Outcome ran, run_query(query, flags, true));
      outcome.text = text + "\n-- run\n" + runtime::report(ran.reports, runtime::TimeFormat::text);
      if (want_reports) outcome.reports = std::move(ran.reports);
      return outcome;
    }
    case SqlCommand::prepare:
    case SqlCommand::execute:
    case SqlCommand::deallocate: return execute(statement, command, flags, want_reports);
  }
  return outcome;
}

Result<Session::Outcome> Session::execute(const NamedSource& statement, const SqlCommand& command,
                                          const Flags& flags, bool want_reports) {
  Outcome nothing;
  nothing.text = "";
  if (command.kind == SqlCommand::prepare) {
    const NamedSource rest = rest_of(statement, command.rest);
    const std::string text =
        rest.sql->text->substr(rest.sql->begin, rest.sql->end - rest.sql->begin);
    if (!planner::has_parameters(text)) {  // what is wrong is said at once where it can be
      Timings timings;
      if (auto planned = prepare_sql(rest, Until::program, timings); !planned)
        return planned.error();
    }
    prepared_[command.name] = text;
    return nothing;
  }
  auto refused = [&](const std::string& why) {
    DiagnosticSink sink;
    sink.error("sql-prepared", command.name_place, "{}", why);
    print_diagnostics(sink, sources());
    return Error{Fault::input, ""};
  };
  const auto known = prepared_.find(command.name);
  if (known == prepared_.end()) {
    std::vector<std::string_view> names;
    for (const auto& [name, text] : prepared_) names.push_back(name);
    const std::string_view near = did_you_mean(command.name, names);
    return refused(fmt::format("there is no prepared statement `{}`{}", command.name,
                               near.empty() ? "" : fmt::format("; did you mean `{}`?", near)));
  }
  if (command.kind == SqlCommand::deallocate) {
    prepared_.erase(known);
    return nothing;
  }
  auto text = planner::with_values(known->second, command.values);
  if (!text) return refused(text.error().message);
  NamedSource query = statement_of(statement, *std::move(text));
  query.file = "<" + command.name + ">";
  return run_query(query, flags, want_reports);
}

Result<const sql::Table*> Session::find_table(const SqlCommand& command) {
  std::vector<std::string_view> names;
  for (const sql::Table& table : queries().catalog().tables) {
    if (table.name == command.name) return &table;
    names.push_back(table.name);
  }
  const std::string_view near = did_you_mean(command.name, names);
  DiagnosticSink sink;
  sink.error("sql-table", command.name_place, "there is no table `{}`{}", command.name,
             near.empty() ? "" : fmt::format("; did you mean `{}`?", near));
  print_diagnostics(sink, sources());
  return Error{Fault::input, ""};
}

Result<Session::Outcome> Session::describe(const NamedSource& statement,
                                           const SqlCommand& command) {
  std::vector<std::vector<std::string>> rows;
  if (command.name.empty()) {
    Timings timings;
    ASSIGN_OR_RETURN(const runtime::SqlQuery* query,
                     prepare_sql(rest_of(statement, command.rest), Until::plan, timings));
    for (const planner::ResultColumn& c : query->planned.columns)
      rows.push_back({c.name, c.type, ""});
  } else {
    ASSIGN_OR_RETURN(const sql::Table* table, find_table(command));
    for (const sql::Column& c : table->columns) {
      const bool is_key =
          std::find(table->primary.begin(), table->primary.end(), c.name) != table->primary.end();
      std::string key = is_key ? "primary" : "";
      if (!c.foreign_table.empty())
        key += fmt::format("{}{}.{}", key.empty() ? "" : ", ", c.foreign_table, c.foreign_key);
      rows.push_back({c.name, sql::type_name(c.type), key});
    }
    for (const auto& [name, stored] : table->refused)
      rows.push_back({name, fmt::format("none: it holds {}", stored), ""});
  }
  Outcome outcome;
  outcome.grid = text_grid({"column_name", "column_type", "key"}, rows);
  return outcome;
}

// Two queries per column, so that what is summed up is what queries see. (In one, DISTINCT would
// make sums of sums of the others, whose bounds are wider.)
Result<Session::Outcome> Session::summarize(const SqlCommand& command, const Flags& flags) {
  ASSIGN_OR_RETURN(const sql::Table* table, find_table(command));
  Flags once = flags;
  once.repeat = 1;
  std::vector<std::vector<std::string>> rows;
  const std::vector<sql::Column> columns = table->columns;  // queries change the catalog
  const std::string from = " from " + planner::quote_name(table->name);
  for (const sql::Column& c : columns) {
    std::vector<std::string> row = {c.name, sql::type_name(c.type)};
    auto ask = [&](const std::string& cells) -> Result<void> {
      ASSIGN_OR_RETURN(const Outcome outcome,
                       run_query(statement_of({c.name, "<summary of " + c.name + ">", ""},
                                              "select " + cells + from),
                                 once, false));
      ASSIGN_OR_RETURN(const runtime::Grid grid,
                       runtime::sql_grid(outcome.results[0], outcome.columns));
      for (size_t k = 0; k < grid.columns.size(); ++k) {
        const bool is_there = !grid.sql[k].valid || grid.sql[k].valid->as<uint8_t>()[0];
        row.push_back(is_there ? runtime::sql_text(grid.sql[k].type, grid.columns[k], 0) : "");
      }
      return {};
    };
    const std::string name = planner::quote_name(c.name);
    const bool has_order = c.type.id != sql::TypeId::boolean;
    const bool is_number = has_order && c.type.id < sql::TypeId::varchar;
    std::string cells = fmt::format("count(*), count({})", name);
    if (has_order) cells += fmt::format(", min({0}), max({0})", name);
    if (is_number) cells += fmt::format(", avg({})", name);
    RETURN_IF_ERROR(ask(cells));
    row.resize(7);
    RETURN_IF_ERROR(ask(fmt::format("count(distinct {})", name)));
    rows.push_back(std::move(row));
  }
  Outcome outcome;
  outcome.grid = text_grid(
      {"column_name", "column_type", "rows", "values", "min", "max", "avg", "distinct"}, rows);
  return outcome;
}

Result<std::string> Session::plan_section(const NamedSource& statement) {
  Timings timings;
  ASSIGN_OR_RETURN(const runtime::SqlQuery* query, prepare_sql(statement, Until::program, timings));
  ASSIGN_OR_RETURN(const sql::Plan plan, sql::read_plan(query->planned.plan));
  return "-- plan\n" + sql::plan_text(plan);
}

Result<std::string> Session::explain(const NamedSource& statement, const Flags& flags) {
  const auto& [text, begin, end] = *statement.sql;
  ASSIGN_OR_RETURN(const std::string plan, plan_section(statement));
  Timings timings;
  ASSIGN_OR_RETURN(const runtime::SqlQuery* query, prepare_sql(statement, Until::program, timings));
  ASSIGN_OR_RETURN(runtime::CompileOptions options, compile_options(flags));
  const data::Schema schema = source() ? source()->schema() : data::Schema();
  options.schema = &schema;
  options.until = runtime::Stage::typed;
  options.numbers_as_parameters = true;
  const NamedSource program{statement.name, "<program of " + statement.file + ">",
                            query->translation->program};
  ASSIGN_OR_RETURN(const std::string kernels, explain_program(program, options, source(), {}));
  return "-- SQL\n" + text->substr(begin, end - begin) + "\n\n" + plan + "\n-- program\n" +
         program.text + "\n-- kernels\n" + kernels;
}

}  // namespace rndn::tools
