#include "runtime/planner/commands.h"

#include <algorithm>
#include <charconv>

#include "runtime/planner/database.h"
#include "runtime/planner/scanner.h"

namespace rndn::planner {
namespace {

std::vector<Token> tokens_of(std::string_view text) {
  std::vector<Token> tokens;
  Scanner scanner(text);
  for (Token token; scanner.next(token);) tokens.push_back(token);
  return tokens;
}

// Reads one statement's tokens from left to right.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text), tokens_(tokens_of(text)) {}

  bool word(std::string_view wanted) {
    if (done() || tokens_[at_].kind != Token::word || lower(here()) != wanted) return false;
    ++at_;
    return true;
  }
  bool symbol(char c) {
    if (done() || tokens_[at_].kind != Token::symbol || here() != std::string_view(&c, 1))
      return false;
    ++at_;
    return true;
  }
  // A name, quoted or not; empty: there is none.
  std::string name() {
    if (done() || !(tokens_[at_].kind == Token::word || here().front() == '"')) return {};
    std::string text(here());
    ++at_;
    if (text.front() != '"') return text;
    std::string out;
    for (size_t i = 1; i + 1 < text.size(); ++i) {
      out += text[i];
      if (text[i] == '"') ++i;
    }
    return out;
  }
  // The text up to a comma or a closing parenthesis that is the caller's.
  std::string value() {
    const size_t first = at_;
    int depth = 0;
    for (; !done(); ++at_) {
      const std::string_view t = here();
      if (depth == 0 && (t == "," || t == ")")) break;
      depth += (t == "(") - (t == ")");
    }
    return at_ == first ? ""
                        : std::string(text_.substr(tokens_[first].begin,
                                                   tokens_[at_ - 1].end - tokens_[first].begin));
  }
  // The content of a quoted text; empty: there is none.
  std::string text() {
    if (done() || here().front() != '\'') return {};
    const std::string_view quoted = here();
    std::string out;
    for (size_t i = 1; i + 1 < quoted.size(); ++i) {
      out += quoted[i];
      i += quoted[i] == '\'';
    }
    ++at_;
    return out;
  }
  // Up to the parenthesis that closes the one before here, which comes next; false: none does.
  bool to_close() {
    for (int depth = 0; !done(); ++at_) {
      depth += (here() == "(") - (here() == ")");
      if (depth < 0) return true;
    }
    return false;
  }
  // Whether a query begins here, perhaps in parentheses.
  bool at_query() const {
    size_t at = at_;
    while (at < tokens_.size() && text_[tokens_[at].begin] == '(') ++at;
    static constexpr std::string_view words[] = {"select", "with", "from", "values", "table"};
    return at < tokens_.size() && tokens_[at].kind == Token::word &&
           std::find(std::begin(words), std::end(words),
                     lower(text_.substr(tokens_[at].begin, tokens_[at].end - tokens_[at].begin))) !=
               std::end(words);
  }
  bool done() const { return at_ >= tokens_.size(); }
  // Of the next token, or of the end.
  size_t begin() const { return done() ? text_.size() : tokens_[at_].begin; }
  size_t end() const { return done() ? text_.size() : tokens_[at_].end; }
  size_t last_end() const { return at_ ? tokens_[at_ - 1].end : 0; }

 private:
  std::string_view here() const {
    return text_.substr(tokens_[at_].begin, tokens_[at_].end - tokens_[at_].begin);
  }
  std::string_view text_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

// First words of statements that there is no answer to. No query begins with one.
bool is_refused(std::string_view word) {
  static constexpr std::string_view words[] = {
      "abort",  "alter",    "analyze",  "attach", "begin",  "call",    "checkpoint", "comment",
      "commit", "delete",   "detach",   "export", "force",  "grant",   "import",     "install",
      "load",   "lock",     "merge",    "pragma", "reset",  "revoke",  "rollback",   "savepoint",
      "set",    "start",    "truncate", "update", "use",    "vacuum"};
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

struct Parameter {
  size_t begin, end, number;  // from 1
};
std::vector<Parameter> parameters_of(std::string_view text) {
  std::vector<Parameter> found;
  const std::vector<Token> tokens = tokens_of(text);
  size_t marks = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const Token& t = tokens[i];
    if (t.kind != Token::symbol) continue;
    if (text[t.begin] == '?') {
      found.push_back({t.begin, t.end, ++marks});
    } else if (text[t.begin] == '$' && i + 1 < tokens.size() && tokens[i + 1].begin == t.end &&
               is_digit(text[t.end])) {
      size_t number = 0;
      std::from_chars(text.data() + t.end, text.data() + tokens[i + 1].end, number);
      found.push_back({t.begin, tokens[i + 1].end, number});
    }
  }
  return found;
}

}  // namespace

std::span<const StatementForm> statement_forms() {
  static constexpr StatementForm forms[] = {
      {"SELECT .., WITH .., VALUES .., FROM ..", "a query; FROM takes tables, 'file', 'folder' and 'pattern'"},
      {"SHOW TABLES", "names, numbers of columns, rows where they are known"},
      {"DESCRIBE table, 'file' or query", "columns and types; no data is read"},
      {"SUMMARIZE table or 'file'", "per column: rows, values, ends, average, distinct values"},
      {"EXPLAIN query", "its plan, program and kernels"},
      {"EXPLAIN ANALYZE query", "its plan, and where the time of a run went"},
      {"COPY table or (query) TO 'file' (options)", "a file, by its suffix or FORMAT"},
      {"CREATE [OR REPLACE] [TEMP] TABLE [IF NOT EXISTS] t [(columns)] AS query", "a table of this session"},
      {"CREATE [OR REPLACE] [TEMP] VIEW [IF NOT EXISTS] t [(columns)] AS query",
       "a view, planned where it is named"},
      {"CREATE [OR REPLACE] TYPE [IF NOT EXISTS] t AS ENUM ('a', ..)", "texts in an order, for casts"},
      {"INSERT INTO t [(columns)] query", "rows of a table that a statement made, cast to its types"},
      {"DROP TABLE, VIEW or TYPE [IF EXISTS] t", "what a statement made is gone"},
      {"PREPARE name AS query", "a query with ? or $1 where values will stand"},
      {"EXECUTE name(value, ..)", "the query with the values"},
      {"DEALLOCATE name", "the prepared query is gone"},
  };
  return forms;
}

Result<Command> read_command(Span statement, const SourceManager& sources, DiagnosticSink& sink) {
  const std::string_view text = sources.text(statement);
  Reader in(text);
  Command command;
  auto place = [&](size_t begin, size_t end) {
    return Span{statement.file, static_cast<uint32_t>(statement.begin + begin),
                static_cast<uint32_t>(statement.begin + end)};
  };
  auto expected = [&](std::string_view what) {
    sink.error("sql-command", place(in.begin(), in.end()), "expected {} here", what);
    return Error{Fault::input, ""};
  };
  auto read_name = [&] {
    const size_t begin = in.begin(), end = in.end();
    command.name = in.name();
    command.name_place = place(begin, end);
    return !command.name.empty();
  };
  auto read_name_or_path = [&] {
    if (read_name()) return true;
    command.name = in.text();
    command.is_path = !command.name.empty();
    return command.is_path;
  };
  // The names up to the closing parenthesis.
  auto read_columns = [&] {
    do {
      command.columns.push_back(in.name());
      if (command.columns.back().empty()) return false;
    } while (in.symbol(','));
    return in.symbol(')');
  };
  auto rest = [&] { command.rest = static_cast<uint32_t>(statement.begin + in.begin()); };

  if (in.word("show")) {
    command.kind = Command::show_tables;
    if (!in.word("tables")) return expected("TABLES");
  } else if (in.word("describe") || in.word("desc")) {
    command.kind = Command::describe;
    rest();
    if (in.word("select") || in.word("with") || in.word("from") || in.word("values"))
      return command;
    if (!read_name_or_path()) return expected("a table, a file in quotes or a query");
  } else if (in.word("summarize")) {
    command.kind = Command::summarize;
    if (!read_name_or_path()) return expected("a table or a file in quotes");
  } else if (in.word("explain")) {
    command.kind = in.word("analyze") ? Command::explain_analyze : Command::explain;
    rest();
    if (in.done()) return expected("a query");
    return command;
  } else if (in.word("prepare")) {
    command.kind = Command::prepare;
    if (!read_name()) return expected("a name");
    if (!in.word("as")) return expected("AS");
    rest();
    if (in.done()) return expected("a query");
    return command;
  } else if (in.word("execute")) {
    command.kind = Command::execute;
    if (!read_name()) return expected("the name of a prepared statement");
    if (in.symbol('(') && !in.symbol(')')) {
      do {
        command.values.push_back(in.value());
        if (command.values.back().empty()) return expected("a value");
      } while (in.symbol(','));
      if (!in.symbol(')')) return expected("`)`");
    }
  } else if (in.word("copy")) {
    command.kind = Command::copy;
    if (in.symbol('(')) {
      rest();
      if (!in.to_close()) return expected("`)`");
      command.rest_end = static_cast<uint32_t>(statement.begin + in.last_end());
      in.symbol(')');
    } else if (!read_name()) {
      return expected("a table or a query in parentheses");
    }
    if (!in.word("to")) return expected("TO");
    command.path = in.text();
    if (command.path.empty()) return expected("the name of a file in quotes");
    if (in.symbol('(')) {
      const size_t begin = in.begin();
      if (!in.to_close()) return expected("`)`");
      command.options = text.substr(begin, in.last_end() - begin);
      in.symbol(')');
    }
  } else if (in.word("create")) {
    if (in.word("or")) {
      command.replace = in.word("replace");
      if (!command.replace) return expected("REPLACE");
    }
    if (!in.word("temp")) in.word("temporary");
    if (in.word("table"))
      command.kind = Command::create_table;
    else if (in.word("view"))
      command.kind = Command::create_view;
    else if (in.word("type"))
      command.kind = Command::create_type;
    else
      return expected("TABLE, VIEW or TYPE");
    if (in.word("if")) {
      command.if_needed = in.word("not") && in.word("exists");
      if (!command.if_needed) return expected("IF NOT EXISTS");
    }
    if (!read_name()) return expected("a name");
    if (command.kind == Command::create_type) {
      if (!in.word("as") || !in.word("enum") || !in.symbol('(')) return expected("AS ENUM (");
      do {
        command.values.push_back(in.value());
        if (!command.values.back().starts_with('\'')) return expected("a text in quotes");
      } while (in.symbol(','));
      if (!in.symbol(')') || !in.done()) return expected("`)` and the end of the statement");
      return command;
    }
    if (in.symbol('(') && !read_columns())
      return expected("`,` or `)` (types are those of the query)");
    if (!in.word("as")) return expected("AS and a query");
    rest();
    if (in.done()) return expected("a query");
    return command;
  } else if (in.word("insert")) {
    command.kind = Command::insert;
    if (!in.word("into")) return expected("INTO");
    if (!read_name()) return expected("a table");
    if (!in.at_query() && in.symbol('(') && !read_columns())
      return expected("`,` or `)`");
    rest();
    if (!in.at_query()) return expected("a query or VALUES");
    return command;
  } else if (in.word("drop")) {
    if (in.word("table"))
      command.kind = Command::drop_table;
    else if (in.word("view"))
      command.kind = Command::drop_view;
    else if (in.word("type"))
      command.kind = Command::drop_type;
    else
      return expected("TABLE, VIEW or TYPE");
    if (in.word("if")) {
      command.if_needed = in.word("exists");
      if (!command.if_needed) return expected("EXISTS");
    }
    if (!read_name()) return expected("a name");
  } else if (in.word("deallocate")) {
    command.kind = Command::deallocate;
    in.word("prepare");
    if (!read_name()) return expected("the name of a prepared statement");
  } else {
    const size_t begin = in.begin(), end = in.end();
    if (const std::string first = lower(text.substr(begin, end - begin)); is_refused(first)) {
      sink.error("sql-statement", place(begin, end),
                 "`{}` is not supported: statements are queries, CREATE TABLE or VIEW .. AS, "
                 "INSERT, DROP, COPY .. TO, DESCRIBE, SHOW TABLES, SUMMARIZE, EXPLAIN, PREPARE and "
                 "EXECUTE",
                 text.substr(begin, end - begin));
      return Error{Fault::input, ""};
    }
    command.rest = statement.begin;
    return command;
  }
  if (!in.done()) return expected("the end of the statement");
  return command;
}

bool begins_sql(std::string_view text) {
  static constexpr std::string_view words[] = {
      "select",  "with",    "from",    "values",     "table", "show",    "describe",  "desc",
      "explain", "prepare", "execute", "deallocate", "pivot", "unpivot", "summarize", "create",
      "insert",  "update",  "delete",  "drop",       "alter", "set",     "copy",      "attach"};
  const std::vector<Token> tokens = tokens_of(text);
  if (tokens.empty()) return false;
  const std::string first = lower(text.substr(tokens[0].begin, tokens[0].end - tokens[0].begin));
  return first == "(" || std::find(std::begin(words), std::end(words), first) != std::end(words);
}

std::string_view insert_of_parameters(std::string_view statement) {
  Reader in(statement);
  if (!in.word("insert") || !in.word("into") || in.name().empty()) return {};
  if (in.symbol('('))
    do
      if (in.name().empty()) return {};
    while (in.symbol(','));
  in.symbol(')');
  const size_t end = in.begin();
  if (!in.word("values") || !in.symbol('(')) return {};
  size_t number = 0;
  do {
    ++number;
    if (!in.symbol('?') && !(in.symbol('$') && in.value() == std::to_string(number))) return {};
  } while (in.symbol(','));
  return in.symbol(')') && in.done() ? statement.substr(0, end) : std::string_view();
}

size_t count_parameters(std::string_view statement) {
  size_t count = 0;
  for (const Parameter& p : parameters_of(statement)) count = std::max(count, p.number);
  return count;
}

Result<std::string> with_values(std::string_view statement, std::span<const std::string> values) {
  const std::vector<Parameter> parameters = parameters_of(statement);
  const size_t wanted = count_parameters(statement);
  for (const Parameter& p : parameters)
    if (p.number == 0) return usage_error("parameters count from $1");
  if (wanted != values.size())
    return usage_error("the statement has {} parameter{}, and {} value{} given", wanted,
                       wanted == 1 ? "" : "s", values.size(), values.size() == 1 ? " is" : "s are");
  std::string out;
  size_t at = 0;
  for (const Parameter& p : parameters) {
    out += statement.substr(at, p.begin - at);
    out += "(" + values[p.number - 1] + ")";
    at = p.end;
  }
  return out + std::string(statement.substr(at));
}

std::string quote_value(std::string_view value) {
  // [-]digits[.digits][e[-]digits]: what SQL reads as a number.
  size_t at = value.starts_with('-');
  auto digits = [&] {
    const size_t from = at;
    while (at < value.size() && is_digit(value[at])) ++at;
    return at > from;
  };
  bool is_number = digits();
  if (is_number && at < value.size() && value[at] == '.') ++at, is_number = digits();
  if (is_number && at < value.size() && (value[at] == 'e' || value[at] == 'E')) {
    ++at;
    if (at < value.size() && (value[at] == '-' || value[at] == '+')) ++at;
    is_number = digits();
  }
  return is_number && at == value.size() ? std::string(value) : quote_text(value);
}

}  // namespace rndn::planner
