// Statements that are answered beside the planner, and parameters.
//
//   SHOW TABLES            DESCRIBE t | query    SUMMARIZE t
//   EXPLAIN [ANALYZE] query
//   COPY (query) | t TO 'file' [(options)]
//   CREATE [OR REPLACE] [TEMP] TABLE | VIEW [IF NOT EXISTS] t [(column, ..)] AS query
//   INSERT INTO t [(column, ..)] query        DROP TABLE | VIEW | TYPE [IF EXISTS] t
//   CREATE [OR REPLACE] TYPE [IF NOT EXISTS] t AS ENUM ('text', ..)
//   PREPARE name AS query  EXECUTE name(value, ..)   DEALLOCATE name
//
// Statements of SQL that are none of these, such as UPDATE, are refused by their name. Everything
// else is a query: the planner says what is wrong with it. A parameter is `?` or `$1`.
// Plans depend on values, so a prepared statement is a text, and is planned with its values in it.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libraries/base/errors/diagnostic.h"
#include "libraries/base/errors/result.h"
#include "libraries/base/errors/source.h"

namespace rndn::planner {

struct Command {
  enum Kind : uint8_t {
    query,
    show_tables,
    describe,  // of the table `name`, or of the query at `rest`
    summarize,
    explain,
    explain_analyze,
    prepare,
    execute,
    deallocate,
    copy,  // the table `name`, or the query between rest and rest_end
    create_table,
    create_view,
    insert,
    drop_table,
    drop_view,
    create_type,
    drop_type
  } kind = query;
  std::string name;  // of a table or a prepared statement; empty: none
  bool is_path = false;  // the name is a file's, in quotes
  Span name_place{};
  uint32_t rest = 0, rest_end = 0;  // where the query in it begins and, of COPY, ends, in the file
  std::string path, options;        // COPY
  bool replace = false;             // CREATE OR REPLACE
  bool if_needed = false;           // IF [NOT] EXISTS
  std::vector<std::string> columns;  // of CREATE and INSERT; empty: none are named
  std::vector<std::string> values;  // EXECUTE, CREATE TYPE: as the text has them
};

// The statements, for people: their forms, and what they answer.
struct StatementForm {
  std::string_view form, answer;
};
std::span<const StatementForm> statement_forms();

// One statement of a file. What is wrong with it goes to `sink`; the error is empty then.
Result<Command> read_command(Span statement, const SourceManager& sources, DiagnosticSink& sink);

// Whether the text may begin a statement of SQL, such as a line that is typed: by its first word.
bool begins_sql(std::string_view text);

// The statement with its parameters' values in their places. Numbers of values and parameters that
// differ are wrong usage.
Result<std::string> with_values(std::string_view statement, std::span<const std::string> values);
// INSERT INTO t .. VALUES (?, ?, ..) of one row, each of its values the next parameter: the text
// before VALUES. Empty: the statement is another.
std::string_view insert_of_parameters(std::string_view statement);
size_t count_parameters(std::string_view statement);  // the greatest of their numbers
// A value that came from outside, as SQL writes it: numbers as they are, all else as a text.
std::string quote_value(std::string_view value);

}  // namespace rndn::planner
