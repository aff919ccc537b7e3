// The tokens of a SQL text, as far as statements.h and commands.h need them.
#pragma once
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace rndn::planner {

inline bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

struct Token {
  enum Kind : char { word, quoted, symbol, semicolon } kind;
  size_t begin, end;
};

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  // False at the end of the text.
  bool next(Token& token) {
    if (!skip_blanks()) return false;
    const size_t begin = at_;
    const char c = text_[at_];
    Token::Kind kind = Token::symbol;
    if (c == ';') {
      kind = Token::semicolon;
      ++at_;
    } else if (c == '\'' || c == '"') {
      kind = Token::quoted;
      quote(c, false);
    } else if ((c == 'e' || c == 'E') && peek(1) == '\'') {
      kind = Token::quoted;
      ++at_;
      quote('\'', true);
    } else if (c == '$' && dollar_tag() > 0) {
      kind = Token::quoted;
      dollar_quote();
    } else if (is_letter(c)) {
      kind = Token::word;
      while (at_ < text_.size() &&
             (is_letter(text_[at_]) || is_digit(text_[at_]) || text_[at_] == '$'))
        ++at_;
    } else if (is_digit(c)) {  // 1e5 is no word e5
      while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    } else {
      ++at_;
    }
    token = {kind, begin, at_};
    return true;
  }
  bool is_open() const { return open_; }

 private:
  char peek(size_t further) const {
    return at_ + further < text_.size() ? text_[at_ + further] : '\0';
  }

  // Moves to the next token; false when there is none.
  bool skip_blanks() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ' ' || (c >= '\t' && c <= '\r')) {
        ++at_;
      } else if (c == '-' && peek(1) == '-') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == '/' && peek(1) == '*') {
        int depth = 0;
        do {
          const bool opens = peek(0) == '/' && peek(1) == '*',
                     closes = peek(0) == '*' && peek(1) == '/';
          depth += opens - closes;
          at_ += opens || closes ? 2 : 1;
        } while (depth > 0 && at_ < text_.size());
        open_ |= depth > 0;
      } else {
        return true;
      }
    }
    at_ = text_.size();
    return false;
  }

  // at_ is at the opening quote.
  void quote(char mark, bool backslashes) {
    for (++at_; at_ < text_.size(); ++at_) {
      if (backslashes && text_[at_] == '\\') {
        ++at_;
      } else if (text_[at_] == mark) {
        if (peek(1) != mark) {
          ++at_;
          return;
        }
        ++at_;
      }
    }
    at_ = text_.size();
    open_ = true;
  }

  // The length of $tag$ at at_; 0: this is none, such as the parameter $1.
  size_t dollar_tag() const {
    size_t end = at_ + 1;
    while (end < text_.size() && (is_letter(text_[end]) || (is_digit(text_[end]) && end > at_ + 1)))
      ++end;
    return end < text_.size() && text_[end] == '$' ? end + 1 - at_ : 0;
  }
  void dollar_quote() {
    const std::string_view tag = text_.substr(at_, dollar_tag());
    const size_t close = text_.find(tag, at_ + tag.size());
    open_ |= close == text_.npos;
    at_ = close == text_.npos ? text_.size() : close + tag.size();
  }

  std::string_view text_;
  size_t at_ = 0;
  bool open_ = false;  // a quote or a comment had no end
};

// Words of SQL are the same in either case.
inline std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 'a' - 'A');
  return out;
}

}  // namespace rndn::planner
