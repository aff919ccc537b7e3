// Reads simple statements without scanner and grammar: one variable gets the value of a call of names, literals and functions, perhaps under one
// check_cast. Nearly all statements of a program are of that form.
//
// The grammar (parser.y) says what a statement is and what is done about it. This is the same: a statement is first split into words, without any
// effect; when something is unusual (comments inside, control flow, escapes, calendar values of times, anything wrong) it is left to the grammar,
// else the actions of the grammar run in the order in which it runs them. Only where a statement begins and none is open: the grammar must have
// seen the end of an `if` before its next statement is made. After the first error everything is the grammar's.
// Cost: linear, a few operations per character.
#include <array>

#include "frontend/parse.h"
#include "frontend/parser.hpp"

namespace rndn::hir {
namespace {

using token = Parser::token;

enum CharClass : uint8_t { name_first = 1, name_next = 2, digit = 4, blank = 8 };
constexpr std::array<uint8_t, 256> classes = [] {
  std::array<uint8_t, 256> t{};
  for (int c = 'a'; c <= 'z'; ++c) t[c] = t[c - 32] = name_first | name_next;
  t['_'] = name_first | name_next;
  for (int c = '0'; c <= '9'; ++c) t[c] = name_next | digit;
  for (int c : {' ', '\t', '\r', '\n', '\v', '\f'}) t[c] = blank;
  return t;
}();
bool is(char c, uint8_t set) { return classes[static_cast<uint8_t>(c)] & set; }

constexpr std::string_view keywords[] = {"module", "import", "global", "def", "kernel", "check_cast", "if",
                                         "else",   "while",  "repeat", "var", "return", "break",      "continue"};
bool is_keyword(std::string_view word) {
  for (std::string_view k : keywords)
    if (k == word) return true;
  return false;
}

template <class T, size_t most>
struct Words {  // as many as fit
  std::array<T, most> items;
  uint32_t count = 0;
  T* add() { return count < most ? &items[count++] : nullptr; }
};

// A type: `?`, a name, or a name with one component.
struct TypeWords {
  Location name, component, all;
  bool wildcard = false, has_component = false, component_wildcard = false;
};
struct OperandWords {
  enum Kind : uint8_t { variable, function, literal } kind = variable;
  Location name, all;              // function: with its `@`
  uint32_t first = 0, values = 0;  // literal: of StatementWords::values
  TypeWords type;
};
struct StatementWords {
  Location target, callee, callee_name, call, cast, all;
  bool declares = false, casts = false;
  TypeWords type, cast_type;
  Words<OperandWords, 8> operands;
  Words<ValueToken, 12> values;
};

// Reads from p on; every function returns false, with p anywhere, when the grammar must look at it. The text ends with a NUL.
struct Splitter {
  std::string_view text;
  uint32_t p;

  char peek() const { return p < text.size() ? text[p] : '\0'; }
  char peek(uint32_t ahead) const { return p + ahead < text.size() ? text[p + ahead] : '\0'; }
  void blanks() {
    while (is(peek(), blank)) ++p;
  }
  bool symbol(char c) {
    blanks();
    if (peek() != c) return false;
    ++p;
    return true;
  }
  std::string_view word(Location at) const { return text.substr(at.begin, at.end - at.begin); }
  bool name(Location& at) {
    if (!is(peek(), name_first)) return false;
    at.begin = p;
    while (is(peek(), name_next)) ++p;
    at.end = p;
    return !is_keyword(word(at));
  }
  bool type(TypeWords& t) {
    blanks();
    t.all.begin = p;
    if (peek() == '?') {
      t.wildcard = true;
      t.all.end = ++p;
      return true;
    }
    if (!name(t.name)) return false;
    t.all.end = p;
    blanks();
    if (peek() != '<') return true;
    ++p;
    blanks();
    t.has_component = true;
    t.component = {p, p + 1};
    t.component_wildcard = peek() == '?';
    if (t.component_wildcard)
      ++p;
    else if (!name(t.component))
      return false;
    if (!symbol('>')) return false;
    t.all.end = p;
    return true;
  }
  // A string or symbol, from its first character on.
  bool quoted() {
    for (++p; peek() != '"'; ++p)
      if (p >= text.size() || peek() == '\\' || peek() == '\n') return false;
    ++p;
    return true;
  }
  bool value(StatementWords& s) {
    ValueToken* v = s.values.add();
    if (!v) return false;
    v->location.begin = p;
    v->sign = 0;
    if (peek() == '`') {
      v->kind = token::SYMBOL;
      ++p;
      Location at;
      if (peek() == '"') {
        if (!quoted()) return false;
      } else if (!is(peek(), name_first)) {
        return false;
      } else {
        (void)name(at);  // keywords are symbols like others
      }
    } else if (peek() == '"') {
      v->kind = token::STRING;
      if (!quoted()) return false;
    } else {
      if (!number(*v)) return false;
    }
    v->location.end = p;
    return true;
  }
  // An integer, a decimal fraction, or a date; what follows must not make another token of it.
  bool number(ValueToken& v) {
    const bool sign = peek() == '-' || peek() == '+';
    p += sign;
    const uint32_t first = p;
    while (is(peek(), digit)) ++p;
    if (p == first) return false;
    const uint32_t digits = p - first;
    v.kind = token::INT;
    const auto two = [&](uint32_t at) { return is(peek(at), digit) && is(peek(at + 1), digit); };
    if (!sign && digits == 4 && peek() == '-' && two(1) && peek(3) == '-' && two(4)) {
      v.kind = token::DATE;
      p += 6;
    } else {
      if (digits > 1 && text[first] == '0') return false;
      if (peek() == '.') {
        v.kind = token::FLOAT;
        ++p;
        while (is(peek(), digit)) ++p;
      }
    }
    const char next = peek();
    if (next == ':') return !is(peek(1), digit);
    return next == ',' || next == ')' || is(next, blank);
  }
  bool literal(StatementWords& s, OperandWords& o) {
    o.kind = OperandWords::literal;
    o.first = s.values.count;
    if (peek() == '(') {
      ++p;
      do {
        blanks();
        if (!value(s)) return false;
      } while (symbol(','));
      if (!symbol(')')) return false;
    } else {
      const bool symbols = peek() == '`';
      do {
        if (!value(s)) return false;
        blanks();
      } while (symbols && peek() == '`');
    }
    o.values = s.values.count - o.first;
    if (!symbol(':') || !type(o.type)) return false;
    o.all.end = o.type.all.end;
    return true;
  }
  bool operand(StatementWords& s, OperandWords& o) {
    blanks();
    o.all.begin = p;
    if (peek() == '@') {
      ++p;
      o.kind = OperandWords::function;
      if (!name(o.name)) return false;
    } else if (is(peek(), name_first)) {
      if (!name(o.name)) return false;
    } else {
      return literal(s, o);
    }
    o.all.end = p;
    return true;
  }
  bool call(StatementWords& s) {
    blanks();
    s.callee.begin = s.call.begin = p;
    if (peek() != '@') return false;
    ++p;
    if (!name(s.callee_name)) return false;
    s.callee.end = p;
    if (!symbol('(')) return false;
    do {  // a call without arguments is left to the grammar
      OperandWords* o = s.operands.add();
      if (!o) return false;
      *o = {};
      if (!operand(s, *o)) return false;
    } while (symbol(','));
    if (!symbol(')')) return false;
    s.call.end = p;
    return true;
  }
  bool statement(StatementWords& s) {
    s.all.begin = p;
    if (!name(s.target)) return false;
    blanks();
    if (peek() == ':') {
      ++p;
      s.declares = true;
      if (!type(s.type)) return false;
    }
    if (!symbol('=')) return false;
    blanks();
    constexpr std::string_view cast = "check_cast";
    s.cast.begin = p;
    if (text.substr(p, cast.size()) == cast && !is(peek(cast.size()), name_next)) {
      p += cast.size();
      s.casts = true;
      if (!symbol('(') || !call(s) || !symbol(',') || !type(s.cast_type) || !symbol(')')) return false;
      s.cast.end = p;
    } else if (!call(s)) {
      return false;
    }
    if (!symbol(';')) return false;
    s.all.end = p;
    return true;
  }
};

// The actions of parser.y for a statement that was split.
struct Actions {
  ParseContext& context;
  std::string_view text;

  NameId intern(Location at) { return context.intern(text.substr(at.begin, at.end - at.begin)); }
  TypeId type(const TypeWords& t) {
    if (t.wildcard) return context.wildcard();
    const NameId name = intern(t.name);
    uint32_t arguments = UINT32_MAX;
    if (t.has_component)
      arguments = context.push_type(t.component_wildcard
                                        ? context.wildcard()
                                        : context.type(intern(t.component), t.component, UINT32_MAX, t.component));
    return context.type(name, t.name, arguments, t.all);
  }
  void operand(const StatementWords& s, const OperandWords& o) {
    SemanticValue value;
    if (o.kind == OperandWords::variable) {
      value.name = intern(o.name);
    } else if (o.kind == OperandWords::function) {
      SemanticValue reference;
      reference.name = intern(o.name);
      value = context.function_literal(context.push_reference(reference, o.all), o.all);
    } else {
      uint32_t first = 0;
      for (uint32_t k = 0; k < o.values; ++k) {
        const ValueToken& v = s.values.items[o.first + k];
        const uint32_t at = context.push_value(v.kind, v.location, v.sign);
        if (k == 0) first = at;
      }
      const TypeId of = type(o.type);
      value = context.literal(first, of, o.type.all, o.all);
    }
    context.push_operand(value, o.all);
  }
  void statement(const StatementWords& s) {
    SemanticValue target, callee;
    target.name = intern(s.target);
    const TypeId declared = s.declares ? type(s.type) : TypeId{};
    const uint32_t targets = context.push_target(target, s.target, s.declares, declared);
    callee.name = intern(s.callee_name);
    const uint32_t operands = context.mark_operands();
    for (uint32_t k = 0; k < s.operands.count; ++k) operand(s, s.operands.items[k]);
    auto value = static_cast<ExpressionId>(context.call(callee, s.callee, operands, s.call));
    if (s.casts) {
      const TypeId to = type(s.cast_type);
      value = static_cast<ExpressionId>(context.cast(value, to, s.cast));
    }
    context.push_statement(static_cast<StatementId>(context.assign(targets, value, s.all)), true);
  }
};

}  // namespace

uint32_t ParseContext::simple_statements() {
  if (recovering_ || quiet_ || skip_block_ || sink_.error_count() > 0) return offset;
  for (;;) {
    Splitter split{text_, offset};
    for (;;) {  // comments to the end of the line, and blanks
      split.blanks();
      if (split.peek() != '/' || split.peek(1) != '/') break;
      while (split.p < text_.size() && split.peek() != '\n') ++split.p;
    }
    StatementWords words;
    if (!split.statement(words)) break;
    Actions{*this, text_}.statement(words);
    offset = split.p;
    token_kind_ = ';';
    token_ = {split.p - 1, split.p};
    if (sink_.error_count() > 0) break;
  }
  return offset;
}

}  // namespace rndn::hir
