#include "runtime/planner/statements.h"

#include <algorithm>
#include <string>

#include "runtime/planner/scanner.h"

namespace rndn::planner {

std::vector<Statement> split_statements(std::string_view text) {
  std::vector<Statement> statements;
  bool fresh = true;
  Scanner scanner(text);
  for (Token token; scanner.next(token);) {
    if (token.kind == Token::semicolon) {
      if (!fresh) statements.back().ended = true;
      fresh = true;
      continue;
    }
    if (fresh) statements.push_back({token.begin, token.end});
    statements.back().end = token.end;
    fresh = false;
  }
  return statements;
}

bool is_open(std::string_view text) {
  Scanner scanner(text);
  for (Token token; scanner.next(token);) {
  }
  return scanner.is_open();
}

bool is_repeatable(std::string_view statement) {
  const std::vector<std::string_view>& names = unrepeatable_names();
  Scanner scanner(statement);
  for (Token token; scanner.next(token);) {
    if (token.kind != Token::word && token.kind != Token::quoted) continue;
    std::string word = lower(statement.substr(token.begin, token.end - token.begin));
    if (word.front() == '"') word = word.substr(1, word.size() - 2);
    if (std::binary_search(names.begin(), names.end(), word)) return false;
  }
  return true;
}

std::string name_file_calls(std::string_view statement, std::span<const std::string_view> functions,
                            FileCalls& calls) {
  std::string text(statement);
  std::vector<Token> tokens;
  Scanner scanner(statement);
  for (Token token; scanner.next(token);) tokens.push_back(token);
  auto is = [&](const Token& t, char c) {
    return t.kind == Token::symbol && statement[t.begin] == c;
  };
  for (size_t i = 0; i + 2 < tokens.size(); ++i) {
    const std::string function =
        lower(statement.substr(tokens[i].begin, tokens[i].end - tokens[i].begin));
    if (tokens[i].kind != Token::word || !is(tokens[i + 1], '(') ||
        std::find(functions.begin(), functions.end(), function) == functions.end())
      continue;
    size_t close = i + 2;
    for (int depth = 1; close < tokens.size(); ++close) {
      depth += is(tokens[close], '(') - is(tokens[close], ')');
      if (depth == 0) break;
    }
    if (close >= tokens.size() || close == i + 2) continue;  // the planner says what is wrong
    const size_t begin = tokens[i + 2].begin, end = tokens[close - 1].end;
    const std::string arguments(statement.substr(begin, end - begin));
    const bool is_path = close == i + 3 && arguments.front() == '\'' && arguments.size() > 2;
    std::string name = is_path ? "" : arguments;
    for (size_t at = 1; is_path && at + 1 < arguments.size(); ++at) {
      name += arguments[at];
      at += arguments[at] == '\'';
    }
    if (name.find('"') != name.npos) continue;  // no room for a second quote
    const size_t length = tokens[close].end - tokens[i].begin;
    std::string replaced = '"' + name + '"';
    replaced.resize(length, ' ');
    text.replace(tokens[i].begin, length, replaced);
    calls.insert_or_assign(name, FileCall{function, arguments, is_path});
    i = close;
  }
  return text;
}

const std::vector<std::string_view>& unrepeatable_names() {
  // `age` of one argument counts from today. `setting` and `variable` functions read the
  // connection.
  static const std::vector<std::string_view> names = {"age",
                                                      "current_connection_id",
                                                      "current_date",
                                                      "current_localtime",
                                                      "current_localtimestamp",
                                                      "current_query",
                                                      "current_query_id",
                                                      "current_setting",
                                                      "current_time",
                                                      "current_timestamp",
                                                      "current_transaction_id",
                                                      "currval",
                                                      "error",
                                                      "gen_random_uuid",
                                                      "get_current_time",
                                                      "get_current_timestamp",
                                                      "getvariable",
                                                      "localtime",
                                                      "localtimestamp",
                                                      "nextval",
                                                      "now",
                                                      "random",
                                                      "setseed",
                                                      "setval",
                                                      "sleep_ms",
                                                      "stats",
                                                      "today",
                                                      "transaction_timestamp",
                                                      "txid_current",
                                                      "uuid",
                                                      "uuidv4",
                                                      "uuidv7",
                                                      "vector_type",
                                                      "write_log"};
  return names;
}

}  // namespace rndn::planner
