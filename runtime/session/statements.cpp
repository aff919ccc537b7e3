// Statements of SQL in a session: queries, and what is answered beside the planner, a row of a table
// for each kind. Tables that statements make are kept in Arrow's form, as the chunks that came; a
// table that rows are added to is opened anew from them, and its columns are converted again when a
// query reads them. Views are texts (runtime/sql/queries.h). Not there: changes of single rows.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "frontend/sql/plan.h"
#include "libraries/base/errors/diagnostic.h"
#include "runtime/arrow_result.h"
#include "runtime/data/arrow.h"
#include "runtime/files/files.h"
#include "runtime/memory/result_memory.h"
#include "runtime/planner/database.h"
#include "runtime/planner/recursive.h"
#include "runtime/print_sql.h"
#include "runtime/session/program_text.h"
#include "runtime/session/session.h"

namespace rndn::runtime {

using planner::Command, planner::is_same_name, planner::quote_name;
using Until = SqlQueries::Until;

static constexpr const char* explain_column = "explain";

struct Session::MadeTable {
  std::string name;
  // The rows as results; none: they came from elsewhere, and are in `source` alone.
  std::vector<std::shared_ptr<const ArrowResult>> chunks;
  std::shared_ptr<data::Source> source;
};

namespace {

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
std::string text_of(const NamedSource& statement) {
  return statement.sql->text->substr(statement.sql->begin,
                                     statement.sql->end - statement.sql->begin);
}

Grid text_grid(std::vector<std::string> names, const std::vector<std::vector<std::string>>& rows) {
  Grid grid;
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

uint64_t physical_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGE_SIZE);
  return pages > 0 && size > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(size) : uint64_t{1} << 33;
}

Session::Outcome nothing() {
  Session::Outcome outcome;
  outcome.has_result = false;
  return outcome;
}

std::string suggestion(std::string_view name, const std::vector<std::string_view>& names) {
  const std::string_view near = did_you_mean(name, names);
  return near.empty() ? "" : fmt::format("; did you mean `{}`?", near);
}

// Rows of a query, as a table keeps them: texts of any length beside each other.
Result<std::shared_ptr<const ArrowResult>> chunk_of(const Session::Outcome& outcome) {
  if (outcome.results.size() != 1)
    return Error{Fault::internal, "the program of a query has no result"};
  ASSIGN_OR_RETURN(const Grid grid, sql_grid(outcome.results[0], outcome.columns));
  return ArrowResult::make(grid, ArrowResult::Texts::large);
}

}  // namespace

Session::Answer Session::answer_to(Command::Kind kind) {
  struct Row {
    Command::Kind kind;
    Answer answer;
  };
  static constexpr Row rows[] = {
      {Command::query, &Session::query},
      {Command::show_tables, &Session::show_tables},
      {Command::describe, &Session::describe},
      {Command::summarize, &Session::summarize},
      {Command::explain, &Session::explain_query},
      {Command::explain_analyze, &Session::explain_run},
      {Command::prepare, &Session::prepare_named},
      {Command::execute, &Session::execute_named},
      {Command::deallocate, &Session::deallocate},
      {Command::copy, &Session::copy},
      {Command::create_table, &Session::create_table},
      {Command::create_view, &Session::create_view},
      {Command::insert, &Session::insert},
      {Command::drop_table, &Session::drop},
      {Command::drop_view, &Session::drop},
      {Command::create_type, &Session::create_type},
      {Command::drop_type, &Session::drop_type},
  };
  static_assert(std::size(rows) == Command::drop_type + 1);
  return std::find_if(std::begin(rows), std::end(rows),
                      [&](const Row& row) { return row.kind == kind; })
      ->answer;
}

Result<Session::Outcome> Session::run_statement(const NamedSource& statement,
                                                const RunOptions& options) {
  DiagnosticSink sink;
  auto command = planner::read_command(span_of(statement), sources_, sink);
  say(render(sink, sources_));
  if (!command) return command.error();
  std::optional<ResultMemory::OnHost> read_here;
  if (command->kind != Command::query && command->kind != Command::execute) read_here.emplace();
  return (this->*answer_to(command->kind))(statement, *command, options);
}

Error Session::refused(std::string_view kind, Span place, const std::string& why) {
  DiagnosticSink sink;
  sink.error(kind, place, "{}", why);
  say(render(sink, sources_));
  return {Fault::input, ""};
}

Result<Session::Outcome> Session::query(const NamedSource& statement, const Command&,
                                        const RunOptions& options) {
  const std::string text = statement.sql->as.empty() ? text_of(statement) : statement.sql->as;
  if (const auto recursive = planner::read_recursive(text)) return run_recursive(statement, *recursive, options);
  return run_query(statement, options);
}

// One run of a statement that is made here, in the place of `of`.
Result<Session::Outcome> Session::run_alone(const NamedSource& of, const std::string& text,
                                            const RunOptions& options) {
  RunOptions once = options;
  once.repeat = 1;
  return run_query(statement_of(of, text), once);
}

// ---- what is there

const sql::Table* Session::find_table(std::string_view name) {
  for (const sql::Table& table : queries().catalog().tables)
    if (is_same_name(table.name, name)) return &table;
  return nullptr;
}
const planner::View* Session::find_view(std::string_view name) {
  for (const planner::View& view : queries().views())
    if (is_same_name(view.name, name)) return &view;
  return nullptr;
}
bool Session::has_table(std::string_view name) { return find_table(name) || find_view(name); }

std::vector<std::string> Session::made_names() {
  std::vector<std::string> names;
  for (const NamedFile& file : files_)
    if (file.made) names.push_back(file.name);
  for (const planner::View& view : queries().views()) names.push_back(view.name);
  return names;
}

Result<Session::Outcome> Session::show_tables(const NamedSource&, const Command&,
                                              const RunOptions&) {
  std::vector<std::vector<std::string>> rows;
  for (const sql::Table& table : queries().catalog().tables) {
    const auto known = source_->rows_at_hand(table.name);
    rows.push_back({table.name, std::to_string(table.columns.size()),
                    known ? std::to_string(*known) : ""});
  }
  for (const planner::View& view : queries().views()) rows.push_back({view.name, "", ""});
  Outcome outcome;
  outcome.grid = text_grid({"name", "columns", "rows"}, rows);
  return outcome;
}

Result<std::vector<planner::ResultColumn>> Session::columns_of(const Command& command) {
  std::vector<planner::ResultColumn> columns;
  if (const sql::Table* table = find_table(command.name)) {
    for (const sql::Column& c : table->columns) columns.push_back({c.name, sql::type_name(c.type)});
    return columns;
  }
  if (find_view(command.name)) {
    Timings timings;
    ASSIGN_OR_RETURN(const SqlQuery* query,
                     prepare_sql(statement_of({command.name, "<" + command.name + ">", ""},
                                              "SELECT * FROM " + quote_name(command.name)),
                                 Until::plan, timings));
    return query->planned.columns;
  }
  std::vector<std::string_view> names;
  for (const sql::Table& table : queries().catalog().tables) names.push_back(table.name);
  for (const planner::View& view : queries().views()) names.push_back(view.name);
  return refused("sql-table", command.name_place,
                 fmt::format("there is no table `{}`{}", command.name,
                             suggestion(command.name, names)));
}

// A file becomes a table when a query names it: one that stands where the name does.
Result<void> Session::open_named(const NamedSource& statement, const Command& command) {
  constexpr std::string_view from = "FROM ";
  NamedSource query = statement;
  const size_t begin = command.name_place.begin - statement.sql->begin;
  query.sql->as = std::string(begin - from.size(), ' ') + std::string(from) + planner::quote_text(command.name);
  Timings timings;
  RETURN_IF_ERROR(prepare_sql(query, Until::columns, timings));
  return {};
}

Result<Session::Outcome> Session::describe(const NamedSource& statement, const Command& command,
                                           const RunOptions&) {
  std::vector<std::vector<std::string>> rows;
  std::vector<planner::ResultColumn> columns;
  if (command.name.empty()) {
    Timings timings;
    ASSIGN_OR_RETURN(const SqlQuery* query,
                     prepare_sql(rest_of(statement, command.rest), Until::columns, timings));
    columns = query->planned.columns;
  } else {
    if (command.is_path) RETURN_IF_ERROR(open_named(statement, command));
    ASSIGN_OR_RETURN(columns, columns_of(command));
  }
  for (const planner::ResultColumn& c : columns) rows.push_back({c.name, c.type, ""});
  if (const sql::Table* table = find_table(command.name)) {
    for (size_t i = 0; i < table->columns.size(); ++i) {
      const sql::Column& c = table->columns[i];
      const bool is_key =
          std::find(table->primary.begin(), table->primary.end(), c.name) != table->primary.end();
      std::string key = is_key ? "primary" : "";
      if (!c.foreign_table.empty())
        key += fmt::format("{}{}.{}", key.empty() ? "" : ", ", c.foreign_table, c.foreign_key);
      rows[i][2] = std::move(key);
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
Result<Session::Outcome> Session::summarize(const NamedSource& statement, const Command& command,
                                            const RunOptions& options) {
  if (command.is_path) RETURN_IF_ERROR(open_named(statement, command));
  ASSIGN_OR_RETURN(const std::vector<planner::ResultColumn> columns, columns_of(command));
  std::vector<std::vector<std::string>> rows;
  const std::string from = " from " + quote_name(command.name);
  for (const planner::ResultColumn& c : columns) {
    std::vector<std::string> row = {c.name, c.type};
    auto ask = [&](const std::string& cells) -> Result<void> {
      ASSIGN_OR_RETURN(const Outcome outcome,
                       run_alone({c.name, "<summary of " + c.name + ">", ""},
                                 "select " + cells + from, options));
      ASSIGN_OR_RETURN(const Grid grid, sql_grid(outcome.results[0], outcome.columns));
      for (size_t k = 0; k < grid.columns.size(); ++k) {
        const bool is_there = !grid.sql[k].valid || grid.sql[k].valid->as<uint8_t>()[0];
        row.push_back(is_there ? sql_text(grid.sql[k].type, grid.columns[k], 0) : "");
      }
      return {};
    };
    const std::string name = quote_name(c.name);
    const bool has_order = c.type != "BOOLEAN";
    const bool is_number = has_order && c.type != "VARCHAR" && c.type != "DATE" &&
                           !c.type.starts_with("TIME");
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
  ASSIGN_OR_RETURN(const SqlQuery* query, prepare_sql(statement, Until::program, timings));
  ASSIGN_OR_RETURN(const sql::Plan plan, sql::read_plan(query->planned.plan));
  return "-- plan\n" + sql::plan_text(plan);
}

Result<std::string> Session::explain(const NamedSource& statement, const RunOptions& run) {
  ASSIGN_OR_RETURN(const std::string plan, plan_section(statement));
  Timings timings;
  ASSIGN_OR_RETURN(const SqlQuery* query, prepare_sql(statement, Until::program, timings));
  CompileOptions options = run.compile;
  const data::Schema schema = source_ ? source_->schema() : data::Schema();
  options.schema = &schema;
  options.until = Stage::typed;
  options.numbers_as_parameters = true;
  const NamedSource program{statement.name, "<program of " + statement.file + ">",
                            query->translation->program};
  ASSIGN_OR_RETURN(const std::string kernels,
                   explain_program(program, options, source_, {.encode = run.engine.encode}, say_));
  return "-- SQL\n" + text_of(statement) + "\n\n" + plan + "\n-- program\n" + program.text +
         "\n-- kernels\n" + kernels;
}

Result<Session::Outcome> Session::explain_query(const NamedSource& statement,
                                                const Command& command, const RunOptions& options) {
  Outcome outcome;
  ASSIGN_OR_RETURN(outcome.text, explain(rest_of(statement, command.rest), options));
  return outcome;
}

Result<Session::Outcome> Session::explain_run(const NamedSource& statement, const Command& command,
                                              const RunOptions& options) {
  const NamedSource query = rest_of(statement, command.rest);
  RunOptions measured = options;
  measured.reports = measured.engine.measure_kernels = true;
  ASSIGN_OR_RETURN(std::string text, plan_section(query));
  ASSIGN_OR_RETURN(Outcome ran, run_query(query, measured));
  Outcome outcome;
  outcome.text = text + "\n-- run\n" + report(ran.reports, TimeFormat::text);
  if (options.reports) outcome.reports = std::move(ran.reports);
  return outcome;
}

// ---- prepared statements

Result<Session::Outcome> Session::prepare_named(const NamedSource& statement,
                                                const Command& command, const RunOptions&) {
  const NamedSource rest = rest_of(statement, command.rest);
  DiagnosticSink sink;
  const auto prepared = planner::read_command(span_of(rest), sources_, sink);
  say(render(sink, sources_));
  if (!prepared) return prepared.error();
  if (prepared->kind != Command::query)
    return refused("sql-prepared", command.name_place, "only queries can be prepared");
  if (planner::count_parameters(text_of(rest)) == 0) {  // what is wrong is said at once where it can be
    Timings timings;
    RETURN_IF_ERROR(prepare_sql(rest, Until::program, timings));
  }
  prepared_[command.name] = text_of(rest);
  return nothing();
}

Result<Session::Outcome> Session::execute_named(const NamedSource& statement,
                                                const Command& command, const RunOptions& options) {
  const auto known = prepared_.find(command.name);
  if (known == prepared_.end()) {
    std::vector<std::string_view> names;
    for (const auto& [name, text] : prepared_) names.push_back(name);
    return refused("sql-prepared", command.name_place,
                   fmt::format("there is no prepared statement `{}`{}", command.name,
                               suggestion(command.name, names)));
  }
  if (command.kind == Command::deallocate) {
    prepared_.erase(known);
    return nothing();
  }
  auto text = planner::with_values(known->second, command.values);
  if (!text) return refused("sql-prepared", command.name_place, text.error().message);
  NamedSource query = statement_of(statement, *std::move(text));
  query.file = "<" + command.name + ">";
  return run_query(query, options);
}

Result<Session::Outcome> Session::deallocate(const NamedSource& statement, const Command& command,
                                             const RunOptions& options) {
  return execute_named(statement, command, options);
}

// ---- files

Result<Session::Outcome> Session::copy(const NamedSource& statement, const Command& command,
                                       const RunOptions& options) {
  NamedSource query = statement;
  if (command.name.empty()) {
    query.sql->begin = command.rest;
    query.sql->end = command.rest_end;
  } else {
    query = statement_of(statement, "SELECT * FROM " + quote_name(command.name));
  }
  ASSIGN_OR_RETURN(Outcome outcome, run_query(query, options));
  RETURN_IF_ERROR(save(outcome, command.path, command.options));
  outcome.results.clear();
  outcome.has_result = false;
  return outcome;
}

// ---- tables and views

// Whether the statement makes something: not where IF NOT EXISTS finds it. What it replaces goes
// when it is made.
Result<bool> Session::make_room(const Command& command) {
  const bool is_view = command.kind == Command::create_view;
  const bool is_made = std::any_of(files_.begin(), files_.end(), [&](const NamedFile& file) {
    return file.made && is_same_name(file.name, command.name);
  });
  const bool is_table = find_table(command.name), is_known_view = find_view(command.name);
  if (!is_table && !is_known_view) return true;
  if (command.if_needed) return false;
  const char* what = is_known_view ? "view" : "table";
  const bool may_replace = is_view ? is_known_view : is_made;
  if (may_replace && command.replace) return true;
  return refused("sql-name", command.name_place,
                 fmt::format("there is a {} `{}` already{}", what, command.name,
                             may_replace ? fmt::format(": CREATE OR REPLACE {} makes another",
                                                       is_view ? "VIEW" : "TABLE")
                                         : ""));
}

// The table as the session has it from now on.
Result<void> Session::keep(std::shared_ptr<MadeTable> table) {
  if (!table->chunks.empty()) {
    ASSIGN_OR_RETURN(auto loader,
                     data::open_arrow(table->name,
                                      data::ArrowStream(ArrowResult::stream(table->chunks))));
    table->source = std::make_shared<data::Source>(std::move(loader));
  }
  std::erase_if(files_, [&](const NamedFile& file) {
    return !file.is_path && is_same_name(file.name, table->name);
  });
  is_joined_ = false;
  const std::string name = table->name;
  files_.push_back({name, false, {}, "", table->source, std::move(table)});
  return join_all(name);
}

Result<Session::Outcome> Session::create_table(const NamedSource& statement,
                                               const Command& command, const RunOptions& options) {
  ASSIGN_OR_RETURN(const bool is_needed, make_room(command));
  if (!is_needed) return nothing();
  ASSIGN_OR_RETURN(Outcome outcome, query(rest_of(statement, command.rest), command, options));
  if (command.columns.size() > outcome.columns.size())
    return refused("sql-columns", command.name_place,
                   fmt::format("{} columns are named, and the query has {}", command.columns.size(),
                               outcome.columns.size()));
  for (size_t c = 0; c < command.columns.size(); ++c) outcome.columns[c].name = command.columns[c];
  auto table = std::make_shared<MadeTable>();
  table->name = command.name;
  ASSIGN_OR_RETURN(auto chunk, chunk_of(outcome));
  outcome.rows_changed = chunk->rows;
  table->chunks.push_back(std::move(chunk));
  outcome.typed = nullptr;
  outcome.results.clear();
  outcome.has_result = false;
  RETURN_IF_ERROR(keep(std::move(table)));
  return outcome;
}

// A view that cannot be translated is refused now, and the old one of its name stays.
Result<Session::Outcome> Session::create_view(const NamedSource& statement, const Command& command,
                                              const RunOptions&) {
  ASSIGN_OR_RETURN(const bool is_needed, make_room(command));
  if (!is_needed) return nothing();
  std::optional<planner::View> old;
  if (const planner::View* known = find_view(command.name)) old = *known;
  if (old) RETURN_IF_ERROR(queries().drop_view(command.name));
  const NamedSource query = rest_of(statement, command.rest);
  Timings timings;
  auto prepared = prepare_sql(query, Until::program, timings);
  Result<void> made;
  if (!prepared)
    made = prepared.error();
  else if (find_table(command.name))  // a file that the query names
    made = refused("sql-name", command.name_place,
                   fmt::format("there is a table `{}` already", command.name));
  else if (const size_t columns = (*prepared)->planned.columns.size();
           command.columns.size() > columns)
    made = refused("sql-columns", command.name_place,
                   fmt::format("{} columns are named, and the query has {}", command.columns.size(),
                               columns));
  else
    made = queries().add_view(command.name, command.columns, span_of(query), sources_);
  if (!made) {
    if (old) RETURN_IF_ERROR(queries().add_view(old->name, old->columns, old->span, sources_));
    return made.error();
  }
  return nothing();
}

Result<Session::Outcome> Session::drop(const NamedSource&, const Command& command,
                                       const RunOptions&) {
  const bool is_view = command.kind == Command::drop_view;
  if (is_view && find_view(command.name)) {
    RETURN_IF_ERROR(queries().drop_view(command.name));
    return nothing();
  }
  if (!is_view && std::erase_if(files_, [&](const NamedFile& file) {
        return file.made && is_same_name(file.name, command.name);
      })) {
    is_joined_ = false;
    RETURN_IF_ERROR(join_all());
    return nothing();
  }
  if (command.if_needed && !has_table(command.name)) return nothing();
  if (is_view)
    return refused("sql-name", command.name_place,
                   fmt::format("there is no view `{}`", command.name));
  return refused("sql-name", command.name_place,
                 fmt::format("there is no table `{}` that a statement has made", command.name));
}

// ---- types

Result<Session::Outcome> Session::create_type(const NamedSource&, const Command& command,
                                              const RunOptions&) {
  std::vector<planner::NamedType> types = queries().types();
  const auto is_it = [&](const planner::NamedType& t) { return is_same_name(t.name, command.name); };
  if (std::any_of(types.begin(), types.end(), is_it)) {
    if (command.if_needed) return nothing();
    if (!command.replace)
      return refused("sql-name", command.name_place,
                     fmt::format("there is a type `{}` already: CREATE OR REPLACE TYPE makes another",
                                 command.name));
    std::erase_if(types, is_it);
  }
  std::set<std::string> texts;
  for (const std::string& text : command.values)
    if (!texts.insert(text).second)
      return refused("sql-type", command.name_place,
                     fmt::format("{} stands there twice", text));
  types.push_back({command.name, fmt::format("ENUM ({})", fmt::join(command.values, ", "))});
  RETURN_IF_ERROR(queries().set_types(std::move(types)));
  return nothing();
}

Result<Session::Outcome> Session::drop_type(const NamedSource&, const Command& command,
                                            const RunOptions&) {
  std::vector<planner::NamedType> types = queries().types();
  const size_t gone = std::erase_if(
      types, [&](const planner::NamedType& t) { return is_same_name(t.name, command.name); });
  if (gone == 0 && !command.if_needed)
    return refused("sql-name", command.name_place,
                   fmt::format("there is no type `{}`", command.name));
  if (gone > 0) RETURN_IF_ERROR(queries().set_types(std::move(types)));
  return nothing();
}

// ---- rows

// The rows get the types of the table's columns, as SQL casts them; columns that are not named are
// NULL.
Result<Session::Outcome> Session::insert(const NamedSource& statement, const Command& command,
                                         const RunOptions& options) {
  const auto found = std::find_if(files_.begin(), files_.end(), [&](const NamedFile& file) {
    return file.made && is_same_name(file.name, command.name);
  });
  if (found == files_.end() && has_table(command.name))
    return refused("sql-name", command.name_place,
                   fmt::format("`{}` is no table that a statement has made: rows are not added to {}",
                               command.name, find_view(command.name) ? "views" : "data"));
  const auto before = found == files_.end() ? nullptr : found->made;
  ASSIGN_OR_RETURN(const std::vector<planner::ResultColumn> columns, columns_of(command));
  // Where in the query a column comes from.
  std::vector<std::optional<size_t>> from(columns.size());
  const std::vector<std::string>& named = command.columns;
  for (size_t i = 0; i < named.size(); ++i) {
    const auto column = std::find_if(columns.begin(), columns.end(), [&](const auto& c) {
      return is_same_name(c.name, named[i]);
    });
    std::vector<std::string_view> names;
    for (const auto& c : columns) names.push_back(c.name);
    if (column == columns.end())
      return refused("sql-columns", command.name_place,
                     fmt::format("`{}` has no column `{}`{}", command.name, named[i],
                                 suggestion(named[i], names)));
    if (std::exchange(from[column - columns.begin()], i))
      return refused("sql-columns", command.name_place,
                     fmt::format("column `{}` is named twice", named[i]));
  }
  if (named.empty())
    for (size_t c = 0; c < columns.size(); ++c) from[c] = c;
  const size_t wanted = named.empty() ? columns.size() : named.size();

  NamedSource query = rest_of(statement, command.rest);
  Timings timings;
  ASSIGN_OR_RETURN(const SqlQuery* planned, prepare_sql(query, Until::plan, timings));
  const std::vector<planner::ResultColumn>& given = planned->planned.columns;
  if (given.size() != wanted) {
    Span place = span_of(query);
    place.end = place.begin;
    return refused("sql-columns", place,
                   fmt::format("the query has {} column{}, and {} {} wanted", given.size(),
                               given.size() == 1 ? "" : "s", wanted, wanted == 1 ? "is" : "are"));
  }
  bool is_same = true;
  std::string cells, names;
  for (size_t c = 0; c < columns.size(); ++c) {
    is_same = is_same && from[c] == c && given[c].type == columns[c].type;
    cells += fmt::format("{}CAST({} AS {})", c ? ", " : "",
                         from[c] ? fmt::format("c{}", *from[c]) : "NULL", columns[c].type);
  }
  for (size_t i = 0; i < wanted; ++i) names += fmt::format("{}c{}", i ? ", " : "", i);
  if (!is_same) {  // the query stays where it stands in the statement
    constexpr std::string_view before = "FROM (";
    const std::string space(command.rest - statement.sql->begin - before.size(), ' ');
    std::string as = fmt::format("{}{}{}\n) AS rows({}) SELECT {}", space, before, text_of(query),
                                 names, cells);
    query = statement;
    query.sql->as = std::move(as);
  }
  RunOptions once = options;
  once.repeat = 1;
  ASSIGN_OR_RETURN(Outcome outcome, run_query(query, once));
  for (size_t c = 0; c < columns.size(); ++c) outcome.columns[c].name = columns[c].name;

  auto table = std::make_shared<MadeTable>(*before);
  if (table->chunks.empty()) {  // rows from elsewhere have types of their own
    ASSIGN_OR_RETURN(const Outcome all,
                     run_alone(statement, "SELECT * FROM " + quote_name(table->name), options));
    ASSIGN_OR_RETURN(auto chunk, chunk_of(all));
    table->chunks.push_back(std::move(chunk));
  }
  ASSIGN_OR_RETURN(auto chunk, chunk_of(outcome));
  Outcome done = nothing();
  done.rows_changed = chunk->rows;
  done.reports = std::move(outcome.reports);
  table->chunks.push_back(std::move(chunk));
  RETURN_IF_ERROR(keep(std::move(table)));
  return done;
}

Result<uint64_t> Session::add_table(const std::string& name, data::ArrowStream rows,
                                    bool replace) {
  RETURN_IF_ERROR(forget_changed_files());
  const bool is_made = std::any_of(files_.begin(), files_.end(), [&](const NamedFile& file) {
    return file.made && is_same_name(file.name, name);
  });
  if (has_table(name) && !(replace && is_made))
    return input_error("there is a table `{}` already", name);
  ASSIGN_OR_RETURN(auto loader, data::open_arrow(name, std::move(rows)));
  return add_opened(name, std::move(loader));
}

Result<uint64_t> Session::add_opened(const std::string& name,
                                     std::unique_ptr<data::TableLoader> loader) {
  for (const auto& [column, type] : loader->schema().tables[0].refused)
    return input_error("column `{}` of `{}` is {}, which SQL has no type for here", column, name,
                       type);
  auto table = std::make_shared<MadeTable>();
  table->name = name;
  table->source = std::make_shared<data::Source>(std::move(loader));
  ASSIGN_OR_RETURN(const uint64_t count, table->source->rows(name));
  RETURN_IF_ERROR(keep(std::move(table)));
  return count;
}

Result<uint64_t> Session::append(const std::string& insert, data::ArrowStream rows,
                                 data::ArrowNames names, const RunOptions& options) {
  RETURN_IF_ERROR(forget_changed_files());
  std::string given = "rows to insert";
  while (has_table(given)) given += " too";
  ASSIGN_OR_RETURN(auto loader, data::open_arrow(given, std::move(rows), names));
  std::string columns;
  for (const data::ColumnSchema& c : loader->schema().tables[0].columns)
    columns += (columns.empty() ? "" : ", ") + quote_name(c.name);
  ASSIGN_OR_RETURN(const uint64_t count, add_opened(given, std::move(loader)));
  const bool by_name = names == data::ArrowNames::given;
  auto added = run(split_sql("insert", "<insert>",
                             fmt::format("{}{} SELECT {} FROM {}", insert,
                                         by_name ? " (" + columns + ")" : "", columns,
                                         quote_name(given)))[0],
                   options);
  std::erase_if(files_, [&](const NamedFile& file) { return file.name == given; });
  is_joined_ = false;
  RETURN_IF_ERROR(join_all());
  if (!added) return added.error();
  return count;
}

Result<std::vector<sql::ResultColumn>> Session::result_columns(const NamedSource& statement,
                                                               const RunOptions& options) {
  DiagnosticSink sink;
  auto command = planner::read_command(span_of(statement), sources_, sink);
  say(render(sink, sources_));
  if (!command) return command.error();
  std::vector<sql::ResultColumn> columns;
  switch (command->kind) {
    case Command::query: {
      Timings timings;
      ASSIGN_OR_RETURN(const SqlQuery* query, prepare_sql(statement, Until::program, timings));
      return query->translation->columns;
    }
    case Command::show_tables:
    case Command::describe:
    case Command::summarize: {
      ASSIGN_OR_RETURN(const Outcome outcome, run(statement, options));
      for (const std::string& name : outcome.grid->names)
        columns.push_back({.name = name, .type = {sql::TypeId::varchar}});
      return columns;
    }
    case Command::explain:
    case Command::explain_analyze:
      columns.push_back({.name = explain_column, .type = {sql::TypeId::varchar}});
      return columns;
    default: return columns;
  }
}

// ---- results

Result<std::optional<Grid>> rows_of(const Session::Outcome& outcome) {
  if (!outcome.has_result) return std::optional<Grid>();
  if (!outcome.grid && !outcome.text) {
    if (outcome.results.size() != 1)
      return Error{Fault::internal, "the program of a query has no result"};
    ASSIGN_OR_RETURN(Grid grid, sql_grid(outcome.results[0], outcome.columns));
    return std::optional(std::move(grid));
  }
  Grid grid;
  if (outcome.grid) {
    grid = *outcome.grid;
  } else {
    std::vector<std::vector<std::string>> lines;
    for (std::string_view rest = *outcome.text; !rest.empty();) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      lines.push_back({std::string(rest.substr(0, end))});
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    grid = text_grid({explain_column}, lines);
  }
  grid.sql.assign(grid.columns.size(), {.type = {sql::TypeId::varchar}, .valid = {}});
  return std::optional(std::move(grid));
}

Result<void> save(const Session::Outcome& outcome, const std::string& path,
                  const std::string& options) {
  if (!outcome.is_sql || outcome.results.size() != 1)
    return usage_error("`{}`: only results of SQL queries are written as such files", path);
  ASSIGN_OR_RETURN(Grid grid, sql_grid(outcome.results[0], outcome.columns));
  ASSIGN_OR_RETURN(ArrowArrayStream stream, ArrowResult::batches({std::move(grid)}));
  return files::write(&stream, path, options);
}

Result<void> print(const Session::Outcome& outcome, Format format, uint64_t most_rows,
                   const TextSink& sink) {
  if (!outcome.has_result) return {};
  if (outcome.text && format != Format::json) return sink(*outcome.text);
  if (outcome.grid) return print_grid(*outcome.grid, format, most_rows, sink);
  if (!outcome.is_sql && !outcome.text)
    return print_result(outcome.results, format, most_rows, sink);
  ASSIGN_OR_RETURN(std::optional<Grid> grid, rows_of(outcome));
  return print_grid(*grid, format, most_rows, sink);
}

Result<std::string> print(const Session::Outcome& outcome, Format format, uint64_t most_rows) {
  std::string text;
  RETURN_IF_ERROR(print(outcome, format, most_rows, [&](std::string_view piece) -> Result<void> {
    text += piece;
    return {};
  }));
  return text;
}

// ---- WITH RECURSIVE

namespace {

// WITH, and what was made of the tables so far.
std::string defined(const std::vector<std::string>& definitions) {
  return definitions.empty() ? "" : fmt::format("WITH {}\n", fmt::join(definitions, ",\n"));
}
std::string names_of(const std::vector<std::string>& columns) {
  std::vector<std::string> quoted;
  for (const std::string& c : columns) quoted.push_back(quote_name(c));
  return fmt::format("{}", fmt::join(quoted, ", "));
}

}  // namespace

// Each recursive table is made of the rows of its first query, and then of those that its next one
// gives over the rows before, until there are none: tables of the session while this goes on. Rows
// of UNION are those that are not there yet. A text of its own is planned in each step.
Result<Session::Outcome> Session::run_recursive(const NamedSource& statement, const planner::RecursiveQuery& query,
                                                const RunOptions& options) {
  const ResultMemory::OnHost read_here;
  struct Drops {  // the tables, in any case
    Session& session;
    std::vector<std::string> names;
    ~Drops() {
      std::erase_if(session.files_, [&](const NamedFile& file) {
        return file.made && std::find(names.begin(), names.end(), file.name) != names.end();
      });
      session.is_joined_ = names.empty() && session.is_joined_;
    }
  } drops{*this, {}};
  const auto fresh_name = [&](const std::string& wanted) {
    std::string name = wanted;
    for (int n = 2; has_table(name); ++n) name = fmt::format("{} {}", wanted, n);
    return drops.names.emplace_back(std::move(name));
  };
  const auto keep_rows = [&](const std::string& name, std::vector<std::shared_ptr<const ArrowResult>> chunks) {
    auto table = std::make_shared<MadeTable>();
    table->name = name;
    table->chunks = std::move(chunks);
    return keep(std::move(table));
  };
  const uint64_t most_bytes = options.limits.bytes ? options.limits.bytes : physical_memory() / 2;
  std::vector<std::string> definitions;
  for (const planner::RecursiveQuery::Table& t : query.tables) {
    const std::string head = quote_name(t.name) + (t.columns.empty() ? "" : "(" + names_of(t.columns) + ")");
    if (!t.is_recursive) {
      definitions.push_back(fmt::format("{} AS (\n{}\n)", head, t.body));
      continue;
    }
    const std::string before = defined(definitions);
    const char* distinct = t.all ? "" : "DISTINCT ";
    ASSIGN_OR_RETURN(Outcome first, run_alone(statement, fmt::format("{}SELECT {}* FROM (\n{}\n) AS first_rows", before,
                                                                     distinct, t.first), options));
    if (!t.columns.empty() && t.columns.size() != first.columns.size())
      return input_error("the table `{}` names {} columns, and its first query has {}", t.name, t.columns.size(),
                         first.columns.size());
    std::vector<std::string> columns = t.columns, casts;
    if (columns.empty())
      for (const sql::ResultColumn& c : first.columns) columns.push_back(c.name);
    for (size_t k = 0; k < columns.size(); ++k) {
      first.columns[k].name = columns[k];
      casts.push_back(fmt::format("CAST({} AS {})", quote_name(columns[k]), sql::type_name(first.columns[k].type)));
    }
    const std::string rows = fresh_name("rows of " + t.name), step = fresh_name("new rows of " + t.name);
    const std::vector<sql::ResultColumn> result_columns = first.columns;
    ASSIGN_OR_RETURN(auto chunk, chunk_of(first));
    std::vector<std::shared_ptr<const ArrowResult>> chunks{chunk};
    uint64_t bytes = chunk->rows * columns.size() * 8;
    const std::string source = fmt::format("{}({}) AS (FROM {})", quote_name(t.name), names_of(columns), quote_name(step));
    std::vector<std::string> with_step = definitions;
    with_step.push_back(source);
    std::string next = fmt::format("{}SELECT {}{} FROM (\n{}\n) AS next_rows({})", defined(with_step), distinct,
                                   fmt::join(casts, ", "), t.next, names_of(columns));
    if (!t.all) next += fmt::format(" EXCEPT FROM {}", quote_name(rows));
    while (chunk->rows > 0) {
      RETURN_IF_ERROR(keep_rows(step, {chunk}));
      if (!t.all) RETURN_IF_ERROR(keep_rows(rows, chunks));
      ASSIGN_OR_RETURN(Outcome more, run_alone(statement, next, options));
      for (size_t k = 0; k < columns.size() && k < more.columns.size(); ++k) more.columns[k].name = columns[k];
      ASSIGN_OR_RETURN(chunk, chunk_of(more));
      if (chunk->rows > 0) chunks.push_back(chunk);
      bytes += chunk->rows * columns.size() * 8;
      if (bytes > most_bytes)
        return input_error("the recursive table `{}` has more than {} bytes of rows{}", t.name, most_bytes,
                           options.limits.bytes ? fmt::format(" ({})", options.limits.bytes_name) : "");
    }
    RETURN_IF_ERROR(keep_rows(rows, std::move(chunks)));
    definitions.push_back(fmt::format("{}({}) AS (FROM {})", quote_name(t.name), names_of(columns), quote_name(rows)));
  }
  ASSIGN_OR_RETURN(Outcome outcome, run_query(statement_of(statement, defined(definitions) + query.rest), options));
  outcome.typed = nullptr;
  return outcome;
}

}  // namespace rndn::runtime
