#include "runtime/planner/recursive.h"

#include <algorithm>

#include "runtime/planner/database.h"
#include "runtime/planner/scanner.h"

namespace rndn::planner {
namespace {

class RecursiveReader {
 public:
  explicit RecursiveReader(std::string_view text) : text_(text) {
    Scanner scanner(text);
    for (Token token; scanner.next(token);) tokens_.push_back(token);
  }

  std::optional<RecursiveQuery> read() {
    RecursiveQuery out;
    if (!word("with") || !word("recursive")) return std::nullopt;
    do {
      RecursiveQuery::Table table;
      if (!name(table.name)) return std::nullopt;
      if (symbol("(")) {
        do {
          std::string column;
          if (!name(column)) return std::nullopt;
          table.columns.push_back(std::move(column));
        } while (symbol(","));
        if (!symbol(")")) return std::nullopt;
      }
      if (!word("as")) return std::nullopt;
      if (word("not")) {
        if (!word("materialized")) return std::nullopt;
      } else {
        word("materialized");
      }
      if (!symbol("(")) return std::nullopt;
      const size_t first = at_;
      for (int depth = 0; at_ < tokens_.size(); ++at_) {
        depth += (here() == "(") - (here() == ")");
        if (depth < 0) break;
      }
      if (at_ == tokens_.size() || at_ == first) return std::nullopt;
      table.body = part(first, at_);
      if (names(table.name, first, at_) && !cut(table, first, at_)) return std::nullopt;
      ++at_;
      out.tables.push_back(std::move(table));
    } while (symbol(","));
    if (at_ == tokens_.size()) return std::nullopt;
    out.rest = part(at_, tokens_.size());
    const bool any = std::any_of(out.tables.begin(), out.tables.end(), [](const auto& t) { return t.is_recursive; });
    return any ? std::optional(std::move(out)) : std::nullopt;
  }

 private:
  std::string_view token(size_t k) const { return text_.substr(tokens_[k].begin, tokens_[k].end - tokens_[k].begin); }
  std::string_view here() const { return token(at_); }
  std::string part(size_t begin, size_t end) const {
    return std::string(text_.substr(tokens_[begin].begin, tokens_[end - 1].end - tokens_[begin].begin));
  }
  bool is_word(size_t k, std::string_view wanted) const {
    return k < tokens_.size() && tokens_[k].kind == Token::word && lower(token(k)) == wanted;
  }
  bool word(std::string_view wanted) { return is_word(at_, wanted) && ++at_; }
  bool symbol(std::string_view wanted) { return at_ < tokens_.size() && here() == wanted && ++at_; }
  std::optional<std::string> name_at(size_t k) const {
    if (k >= tokens_.size()) return std::nullopt;
    if (tokens_[k].kind == Token::word) return std::string(token(k));
    if (tokens_[k].kind != Token::quoted || token(k).front() != '"') return std::nullopt;
    std::string out;
    for (size_t i = 1; i + 1 < token(k).size(); ++i) {
      out += token(k)[i];
      i += token(k)[i] == '"';
    }
    return out;
  }
  bool name(std::string& out) {
    std::optional<std::string> found = name_at(at_);
    if (!found) return false;
    out = *std::move(found);
    return ++at_;
  }
  // Whether the table stands where tables do: an alias or a column may have its name.
  bool names(std::string_view table, size_t begin, size_t end) const {
    for (size_t k = begin + 1; k < end; ++k)
      if (is_word(k - 1, "from") || is_word(k - 1, "join") || token(k - 1) == "," || token(k - 1) == "(")
        if (const auto found = name_at(k); found && is_same_name(*found, table)) return true;
    return false;
  }
  // At the last UNION outside of parentheses, before which the table is not named.
  bool cut(RecursiveQuery::Table& table, size_t begin, size_t end) {
    size_t at = end;
    int depth = 0;
    for (size_t k = begin; k < end; ++k) {
      depth += (token(k) == "(") - (token(k) == ")");
      if (depth == 0 && is_word(k, "union")) at = k;
    }
    if (at == end || at == begin || names(table.name, begin, at)) return false;
    table.all = is_word(at + 1, "all");
    const size_t next = at + 1 + (table.all || is_word(at + 1, "distinct"));
    if (next >= end || is_word(next, "by")) return false;
    if (!names(table.name, next, end)) return false;
    // DuckDB refuses what would stand for all steps at once, and a set operation behind.
    depth = 0;
    for (size_t k = next; k < end; ++k) {
      depth += (token(k) == "(") - (token(k) == ")");
      for (const char* word : {"order", "limit", "offset", "except", "intersect"})
        if (depth == 0 && is_word(k, word)) return false;
    }
    table.first = part(begin, at);
    table.next = part(next, end);
    return table.is_recursive = true;
  }

  std::string_view text_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

}  // namespace

std::optional<RecursiveQuery> read_recursive(std::string_view statement) { return RecursiveReader(statement).read(); }

}  // namespace rndn::planner
