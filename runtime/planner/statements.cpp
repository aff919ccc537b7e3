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
    std::string word(statement.substr(token.begin, token.end - token.begin));
    if (word.front() == '"') word = word.substr(1, word.size() - 2);
    for (char& c : word)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 'a' - 'A');
    if (std::binary_search(names.begin(), names.end(), word)) return false;
  }
  return true;
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
