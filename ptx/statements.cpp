// Reads simple statements without scanner and grammar: labels, and instructions whose operands are names, constants, addresses and vectors.
//
// The grammar (parser.y) says what a statement is and what is done about it. This is the same for the statements that nearly all lines are
// made of: a statement is first split into tokens, without any effect; when something is unusual (directives, comments inside, expressions,
// calls, octal numbers, anything wrong) it is left to the grammar, else the actions of the grammar run in the order in which it runs them.
// Cost: linear, a few operations per character.
#include <array>
#include <cstring>

#include "ptx/reader.h"

namespace rndn::ptx {
namespace {

enum CharClass : uint8_t { name_first = 1, name_next = 2, digit = 4, hex_digit = 8, blank = 16, suffix_next = 32 };
constexpr std::array<uint8_t, 256> classes = [] {
  std::array<uint8_t, 256> t{};
  for (int c = 'a'; c <= 'z'; ++c) t[c] = t[c - 32] = name_first | name_next;
  t['_'] = t['$'] = name_first | name_next;
  for (int c = '0'; c <= '9'; ++c) t[c] = name_next | digit | hex_digit;
  for (int c = 'a'; c <= 'f'; ++c) t[c] |= hex_digit, t[c - 32] |= hex_digit;
  for (uint8_t& c : t) c |= c & name_next ? suffix_next : 0;
  t['$'] &= static_cast<uint8_t>(~suffix_next);
  for (int c : {' ', '\t', '\r', '\n', '\f', '\v'}) t[c] = blank;
  return t;
}();
bool is(char c, uint8_t set) { return classes[static_cast<uint8_t>(c)] & set; }

// Reads tokens from p on; every function returns false, with p anywhere, when the grammar must look at it.
struct Splitter {
  const char* text;  // of the file
  const char* p;
  const char* end;

  char peek() const { return p < end ? *p : '\0'; }
  uint32_t offset(const char* at) const { return static_cast<uint32_t>(at - text); }
  void blanks() {
    while (p < end && is(*p, blank)) ++p;
  }
  void words(Token& t, Range& at, const char* begin) const {
    t.begin = begin, t.length = static_cast<uint32_t>(p - begin);
    at = {offset(begin), offset(p)};
  }
  // A register, special register, label, variable or parameter.
  bool name(Token& t, Range& at) {
    const char* begin = p;
    const bool percent = peek() == '%';
    p += percent;
    if (!is(peek(), name_first)) return false;
    while (p < end && is(*p, name_next)) ++p;
    if (peek() == '.') {
      if (!percent || end - p < 2 || p[1] < 'w' || p[1] > 'z') return false;
      p += 2;
      if (is(peek(), name_next) || peek() == '.') return false;
    }
    words(t, at, begin);
    return true;
  }
  bool mnemonic(Token& t, Range& at) {
    const char* begin = p;
    if (!is(peek(), name_first)) return false;
    while (p < end && is(*p, name_next)) ++p;
    while (peek() == '.') {
      const char* suffix = ++p;
      while (p < end && (is(*p, suffix_next) || (*p == ':' && p + 1 < end && p[1] == ':' && ++p))) ++p;
      if (p == suffix || p[-1] == ':') return false;
    }
    words(t, at, begin);
    return true;
  }
  bool constant(Token& t, Range& at) {
    const char* begin = p;
    const bool minus = peek() == '-';
    p += minus;
    const char* number = p;
    if (!is(peek(), digit)) return false;
    uint64_t v = 0;
    t.constant = Token::integer;
    if (*p == '0' && end - p > 1 && is(p[1], name_next)) {
      const char kind = p[1] | 32;
      const size_t most = kind == 'f' ? 8 : 16;
      if (kind != 'x' && kind != 'f' && kind != 'd') return false;
      p += 2;
      const char* first = p;
      for (; p < end && is(*p, hex_digit); ++p)
        v = v << 4 | static_cast<uint64_t>(*p <= '9' ? *p - '0' : (*p | 32) - 'a' + 10);
      const size_t digits = static_cast<size_t>(p - first);
      if (digits == 0 || digits > most || (kind != 'x' && digits != most)) return false;
      if (kind != 'x') t.constant = kind == 'f' ? Token::single : Token::real;
    } else {
      for (; p < end && is(*p, digit); ++p) v = v * 10 + static_cast<uint64_t>(*p - '0');
      if (p - number > 18) return false;
    }
    if (is(peek(), name_next) || peek() == '.') return false;
    t.value = static_cast<int64_t>(v);
    t.huge = t.constant == Token::integer && v > INT64_MAX;
    words(t, at, number);
    if (minus) t = Reader::negate(t), at.begin = offset(begin);
    return true;
  }
};

struct Piece {
  enum Kind : uint8_t { name, negated, constant, address, address_constant, vector_begin, vector_end } kind = name;
  Token token;
  Range at;
};

}  // namespace

uint32_t Reader::statements(uint32_t from) {
  if (self_ == UINT32_MAX || in_vector_ || sink_.error_count() != errors_before_) return from;
  Splitter s{text_.data(), text_.data() + from, text_.data() + text_.size()};
  std::array<Piece, 24> pieces;
  while (true) {
    s.blanks();
    while (s.end - s.p >= 2 && s.p[0] == '/' && s.p[1] == '/') {
      const void* line = std::memchr(s.p, '\n', static_cast<size_t>(s.end - s.p));
      if (!line) return from;
      s.p = static_cast<const char*>(line);
      s.blanks();
    }
    if (s.peek() == '.') {  // .loc 1 23 4; what tells of inlined functions is the grammar's
      Range at{s.offset(s.p), 0};
      if (s.end - s.p < 5 || std::memcmp(s.p, ".loc", 4) != 0 || !is(s.p[4], blank)) return from;
      s.p += 4;
      std::array<Token, 3> numbers;
      for (Token& t : numbers) {
        s.blanks();
        Range number;
        if (!s.constant(t, number) || t.constant != Token::integer || t.value < 0) return from;
        at.end = number.end;
      }
      s.blanks();
      if (s.peek() == ',') return from;
      location(numbers[0], numbers[1], numbers[2], at);
      if (sink_.error_count() != errors_before_) return s.offset(s.p);
      from = s.offset(s.p);
      continue;
    }
    const uint32_t begin = s.offset(s.p);
    Token guard_name, op;
    Range guard_at, op_at;
    bool guarded = false, guard_negated = false;
    if (s.peek() == '@') {
      guarded = true;
      ++s.p;
      if (s.peek() == '!') guard_negated = true, ++s.p;
      if (!s.name(guard_name, guard_at)) return from;
      s.blanks();
    }
    if (!s.mnemonic(op, op_at)) return from;
    s.blanks();
    if (s.peek() == ':') {
      if (guarded || op.text().find('.') != std::string_view::npos) return from;
      ++s.p;
      Splitter after = s;
      after.blanks();
      if (after.end - after.p >= 2 && *after.p == '.' && (after.p[1] == 'c' || after.p[1] == 'b'))
        return from;  // .callprototype, .branchtargets
      label(op, op_at);
      from = s.offset(s.p);
      if (sink_.error_count() != errors_before_) return from;
      continue;
    }
    // The operands, until the semicolon.
    size_t count = 0;
    bool in_vector = false, ready = s.peek() != ';';
    uint32_t last = op_at.end;
    while (ready) {
      if (count + 2 > pieces.size()) return from;
      Piece& x = pieces[count++];
      x.token = Token();
      const char c = s.peek();
      if (c == '[') {
        if (in_vector) return from;
        ++s.p;
        s.blanks();
        if (is(s.peek(), digit) || s.peek() == '-') {
          x.kind = Piece::address_constant;
          if (!s.constant(x.token, x.at)) return from;
        } else {
          x.kind = Piece::address;
          if (!s.name(x.token, x.at)) return from;
          s.blanks();
          if (s.peek() == '+' || s.peek() == '-') {
            const bool minus = *s.p++ == '-';
            Token by;
            Range by_at;
            if (!s.constant(by, by_at) || by.constant != Token::integer || by.huge) return from;
            x.token.value = minus ? static_cast<int64_t>(-static_cast<uint64_t>(by.value)) : by.value;
            x.at.end = by_at.end;
          }
        }
        s.blanks();
        if (s.peek() != ']') return from;
        last = s.offset(++s.p);
      } else if (c == '{') {
        if (in_vector) return from;
        in_vector = true;
        x.kind = Piece::vector_begin;
        x.at = {s.offset(s.p), 0};
        ++s.p;
        s.blanks();
        continue;
      } else if (is(c, digit) || c == '-') {
        x.kind = Piece::constant;
        if (!s.constant(x.token, x.at)) return from;
        last = x.at.end;
      } else {
        x.kind = c == '!' ? Piece::negated : Piece::name;
        const char* first = s.p;
        s.p += c == '!';
        if (!s.name(x.token, x.at)) return from;
        if (c == '!') x.at.begin = s.offset(first) + 1;
        last = x.at.end;
      }
      s.blanks();
      if (in_vector && s.peek() == '}') {
        in_vector = false;
        last = s.offset(++s.p);
        pieces[count++] = {Piece::vector_end, {}, {0, last}};
        s.blanks();
      }
      ready = s.peek() == ',' || (s.peek() == '|' && !in_vector);
      if (ready) ++s.p, s.blanks();
    }
    if (in_vector || s.peek() != ';') return from;
    ++s.p;
    from = s.offset(s.p);
    // Nothing is unusual: what the grammar does.
    if (guarded) guard(guard_name, guard_negated, guard_at);
    opcode(op, op_at);
    Range vector_at;
    for (size_t k = 0; k < count; ++k) {
      const Piece& x = pieces[k];
      switch (x.kind) {
        case Piece::name: operand_name(x.token, false, 0, x.at); break;
        case Piece::negated: operand_name(x.token, true, 0, x.at); break;
        case Piece::constant: operand_constant(x.token, x.at); break;
        case Piece::address: address_name(x.token, x.token.value, x.at); break;
        case Piece::address_constant: address_constant(x.token, x.at); break;
        case Piece::vector_begin: vector_at = x.at, begin_vector(); break;
        case Piece::vector_end: end_vector({vector_at.begin, x.at.end}); break;
      }
    }
    instruction({begin, last});
    if (sink_.error_count() != errors_before_) return from;
  }
}

}  // namespace rndn::ptx
