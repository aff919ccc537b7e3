// Reads simple statements without scanner and grammar: labels, locations, declarations of registers, and instructions whose operands are names,
// constants, addresses and vectors; and simple parameters of functions.
//
// The grammar (parser.y) says what a statement is and what is done about it. This is the same for the statements that nearly all lines are made
// of: one pass over the bytes writes the operands where they belong in the function and asks of each whether its place in the mnemonic's form
// takes it, which is remembered from the last time (mnemonic.h). Registers of ranges are found by prefix and number as they are read.
// When something is unusual (directives, comments inside, expressions, calls, octal numbers) or wrong, the statement is taken back and left to the
// grammar, from its beginning on. Nothing is reported here but by what is done about statements that are not instructions, as the grammar does it.
// Cost: linear, a few operations per character.
#include <array>
#include <cstring>

#include "ptx/reader.h"

namespace rndn::ptx {
namespace {

enum CharClass : uint8_t { letter = 1, digit = 2, hex_digit = 4, blank = 8, suffix_next = 16, dot = 32 };
constexpr uint8_t name_next = letter | digit;
constexpr std::array<uint8_t, 256> classes = [] {
  std::array<uint8_t, 256> t{};
  for (int c = 'a'; c <= 'z'; ++c) t[c] = t[c - 32] = letter | suffix_next;
  t['_'] = letter | suffix_next;
  t['$'] = letter;
  for (int c = '0'; c <= '9'; ++c) t[c] = digit | hex_digit | suffix_next;
  for (int c = 'a'; c <= 'f'; ++c) t[c] |= hex_digit, t[c - 32] |= hex_digit;
  for (int c : {' ', '\t', '\r', '\n', '\f', '\v'}) t[c] = blank;
  t['.'] = dot;
  return t;
}();
bool is(char c, uint8_t set) { return classes[static_cast<uint8_t>(c)] & set; }

// {IDENT}{SUFFIX}* of lexer.l, of a text that begins with a letter.
bool is_mnemonic(std::string_view text) {
  size_t at = 0;
  const auto word = [&](uint8_t set) {
    const size_t begin = at;
    while (at < text.size() && is(text[at], set)) ++at;
    return at > begin;
  };
  bool good = word(name_next), suffix = false;
  while (good && at < text.size()) {
    const size_t separator = text[at] == '.' ? 1 : suffix && text.substr(at).starts_with("::") ? 2 : 0;
    at += separator;
    good = separator != 0 && word(suffix_next);
    suffix = true;
  }
  return good;
}

}  // namespace

// A place in the text. What returns false may leave it anywhere.
struct Reader::Cursor {
  const char* text;  // of the file; a NUL follows it
  const char* p;
  uint32_t line;

  uint32_t offset(const char* at) const { return static_cast<uint32_t>(at - text); }
  Range from(const char* begin) const { return {offset(begin), offset(p)}; }
  void blanks() {
    const char* at = p;
    for (; is(*at, blank); ++at) line += *at == '\n';
    p = at;
  }
  void blanks_and_comments() {  // to the ends of lines
    for (blanks(); p[0] == '/' && p[1] == '/'; blanks())
      while (*p != '\n' && *p != '\0') ++p;
  }
  // That directive and the white space behind it.
  bool word(std::string_view directive) {
    for (char c : directive)
      if (*p++ != c) return false;
    const char* const end = p;
    blanks();
    return p > end;
  }
  // The same of a type.
  bool type(Type& t) {
    if (*p++ != '.') return false;
    const char* const begin = p;
    while (is(*p, name_next)) ++p;
    t = type_named({begin, p});
    const char* const end = p;
    blanks();
    return t != Type::none && p > end;
  }
  // A register, special register, label, variable or parameter.
  bool name(Token& t) {
    std::string_view text;
    if (!name(text)) return false;
    t.begin = text.data(), t.length = static_cast<uint32_t>(text.size());
    return true;
  }
  bool name(std::string_view& t) {
    const char* begin = p;
    const bool percent = *p == '%';
    p += percent;
    if (!is(*p, letter)) return false;
    while (is(*p, name_next)) ++p;
    if (*p == '.') {
      if (!percent || p[1] < 'w' || p[1] > 'z') return false;
      p += 2;
      if (is(*p, name_next | dot)) return false;
    }
    t = {begin, p};
    return true;
  }
  bool constant(Token& t) {
    const bool minus = *p == '-';
    p += minus;
    const char* number = p;
    if (!is(*p, digit)) return false;
    uint64_t v = 0;
    t.constant = Token::integer;
    if (*p == '0' && is(p[1], name_next)) {
      const char kind = p[1] | 32;
      const ptrdiff_t most = kind == 'f' ? 8 : 16;
      if (kind != 'x' && kind != 'f' && kind != 'd') return false;
      p += 2;
      const char* first = p;
      for (; is(*p, hex_digit); ++p) v = v << 4 | static_cast<uint64_t>(*p <= '9' ? *p - '0' : (*p | 32) - 'a' + 10);
      if (p == first || p - first > most || (kind != 'x' && p - first != most)) return false;
      if (kind != 'x') t.constant = kind == 'f' ? Token::single : Token::real;
    } else {
      const char* at = p;
      for (; is(*at, digit); ++at) v = v * 10 + static_cast<uint64_t>(*at - '0');
      p = at;
      if (p - number > 18) return false;
    }
    if (is(*p, name_next | dot)) return false;
    t.value = static_cast<int64_t>(v);
    t.is_unsigned = t.constant == Token::integer && v > INT64_MAX;
    t.begin = number, t.length = static_cast<uint32_t>(p - number);
    if (minus) t = negate(t);
    return true;
  }
};

// A register of a range whose prefix is short, such as %r12. The name is left where it is when it is none.
inline const Reader::RegisterRange* Reader::simple_register(const char*& p, uint32_t& id) const {
  const char* at = p;
  if (*at != '%' || range_shadowed_) return nullptr;
  uint64_t key = '%';
  while (is(*++at, letter)) key = key << 8 | static_cast<unsigned char>(*at);
  const char* const digits = at;
  uint32_t number = 0;
  for (; is(*at, digit); ++at) number = number * 10 + static_cast<uint32_t>(*at - '0');
  const size_t more = static_cast<size_t>(at - digits) - 1;  // than one digit
  if (is(*at, letter | dot) || more > 6 || (*digits == '0' && more > 0)) return nullptr;
  const RegisterRange* range = last_range(key);
  while (range && (range->key != key || number >= range->count)) range = outer_range(*range);
  if (!range) return nullptr;
  id = range->first + number;
  p = at;
  return range;
}

uint32_t Reader::statements(uint32_t from) {
  // The braces of a vector are within a statement.
  if (self_ == UINT32_MAX || in_vector_ || !raw_.empty() || sink_.error_count() != errors_before_) return from;
  Cursor s{text_.data(), text_.data() + from, line(from)};
  while (true) {
    s.blanks_and_comments();
    if (!(*s.p != '.' ? simple_statement(s) : s.p[1] == 'r' ? simple_registers(s) : simple_location(s))) return from;
    from = line_at_ = s.offset(s.p);
    line_ = s.line;
    if (sink_.error_count() != errors_before_) return from;
  }
}

// .param .u64 a, and so on: all but the last, so that a parameter is left for the grammar.
uint32_t Reader::parameters(uint32_t from) {
  if (sink_.error_count() != errors_before_) return from;
  Cursor s{text_.data(), text_.data() + from, line(from)};
  while (true) {
    s.blanks();
    Type type;
    Token name;
    if (!s.word(".param") || !s.type(type) || !s.name(name)) return from;
    const Range at = s.from(name.begin);
    s.blanks();
    if (*s.p++ != ',') return from;
    s.blanks();
    if (Cursor next = s; !next.word(".param")) return from;
    parameter(type, name, at);
    from = line_at_ = s.offset(s.p);
    line_ = s.line;
    if (sink_.error_count() != errors_before_) return from;
  }
}

// .reg .b32 %r<10>; and .reg .pred p;
bool Reader::simple_registers(Cursor& s) {
  Type type;
  Token name, count;
  if (!s.word(".reg") || !s.type(type) || !s.name(name)) return false;
  const Range at = s.from(name.begin);
  s.blanks();
  const bool range = *s.p == '<';
  if (range) {
    ++s.p, s.blanks();
    if (*s.p == '-' || !s.constant(count)) return false;
    s.blanks();
    if (*s.p++ != '>') return false;
    s.blanks();
  }
  if (*s.p++ != ';') return false;
  attributes.type = type;
  if (range)
    register_range(type, name, count, at);
  else
    register_name(type, name, at);
  return true;
}

// .loc 1 23 4; what tells of inlined functions is the grammar's.
bool Reader::simple_location(Cursor& s) {
  const char* const begin = s.p;
  if (!s.word(".loc")) return false;
  std::array<Token, 3> numbers;
  const char* end = s.p;
  for (Token& t : numbers) {
    s.blanks();
    if (!s.constant(t) || t.constant != Token::integer || t.value < 0) return false;
    end = s.p;
  }
  Cursor after = s;
  after.blanks_and_comments();
  if (*after.p == ',' || *after.p == '/') return false;
  location(numbers[0], numbers[1], numbers[2], {s.offset(begin), s.offset(end)});
  return true;
}

// `plain` turns false where check_operands shall look.
inline bool Reader::simple_operands(Cursor& s, const Mnemonic& m, Operand* o, bool& plain) {
  const char* p = s.p;
  const auto blanks = [&] {
    for (; is(*p, blank); ++p) s.line += *p == '\n';
  };
  for (uint32_t k = 0; k < m.operand_count; ++k, ++o) {
    if (k > 0) {
      if (*p != ',' && *p != '|') return false;
      ++p;
      blanks();
    }
    if (uint32_t id; const RegisterRange* range = simple_register(p, id)) {  // nearly all
      *o = {.kind = Operand::reg, .id = id};
      plain &= (m.plain.at[k].registers & range->types) != 0;
    } else {
      s.p = p;
      if (!simple_operand(s, m, k, *o, plain)) return false;
      p = s.p;
    }
    blanks();
  }
  s.p = p;
  return true;
}

// Writes the operands, to the semicolon, and an instruction that has them.
inline bool Reader::simple_instruction(Cursor& s, const Mnemonic& m) {
  const size_t first = f_.operands.size(), first_element = f_.vector_elements.size();
  Instruction& i = f_.instructions.push() = m.instruction;
  i.first_operand = static_cast<uint32_t>(first);
  i.operand_count = static_cast<uint8_t>(m.operand_count);
  i.destination_count = m.places.destinations;
  Operand* const operands = f_.operands.extend(m.operand_count);
  bool plain = true;
  if (simple_operands(s, m, operands, plain) && *s.p++ == ';' &&
      (plain || check_operands(module_, f_, i, *m.form, m.places).empty()))
    return true;
  f_.instructions.pop_back();
  f_.operands.resize(first);
  f_.vector_elements.resize(first_element);
  return false;
}

bool Reader::simple_statement(Cursor& s) {
  RegisterId guard = none<RegisterId>();
  bool guard_negated = false;
  const bool guarded = *s.p == '@';
  if (guarded) {
    guard_negated = *++s.p == '!';
    s.p += guard_negated;
    if (!simple_guard(s, guard)) return false;
    s.blanks();
  }
  const char *const begin = s.p, *p = begin;
  const uint32_t line = s.line;
  if (!is(*p, letter)) return false;
  while (is(*p, name_next | dot) || (p[0] == ':' && p[1] == ':' && ++p)) ++p;
  const std::string_view text(begin, p);
  s.p = p;
  s.blanks();
  if (*s.p == ':') return !guarded && simple_label(s, text);
  uint32_t& known = mnemonic_index_[text];
  if (known == UINT32_MAX && is_mnemonic(text)) known = add_mnemonic(text);
  if (known == UINT32_MAX || !mnemonics_[known].simple) return false;
  Mnemonic& m = mnemonics_[known];
  const Cursor operands = s;
  bool ready = m.operand_count != UINT32_MAX;
  while (!ready || !simple_instruction(s, m)) {  // a mnemonic that is new, or may have another number of operands
    s = operands;
    const uint32_t n = simple_count(s);
    if (n == m.operand_count || !expect(m, n).empty()) return false;
    ready = true;
  }
  Instruction& i = f_.instructions.back();
  i.guard = guard;
  i.guard_negated = guard_negated;
  i.line = line;
  current_ = known;
  return true;
}

bool Reader::simple_guard(Cursor& s, RegisterId& guard) const {
  Operand o;
  if (const RegisterRange* range = simple_register(s.p, o.id)) {
    guard = o.reg_id();
    return range->types == type_bit(Type::pred);
  }
  std::string_view name;
  if (!s.name(name) || !lookup(name, o) || o.kind != Operand::reg) return false;
  guard = o.reg_id();
  return f_.registers[guard].type == Type::pred;
}

bool Reader::simple_label(Cursor& s, std::string_view name) {
  if (name.find_first_of(".:") != std::string_view::npos) return false;
  Cursor after = s;
  ++after.p;
  after.blanks_and_comments();
  // .callprototype, .branchtargets, .calltargets; or one behind a comment
  if (*after.p == '/' || (*after.p == '.' && (after.p[1] == 'c' || after.p[1] == 'b'))) return false;
  ++s.p;
  Token t;
  t.begin = name.data(), t.length = static_cast<uint32_t>(name.size());
  label(t, {s.offset(name.data()), s.offset(name.data() + name.size())});
  return true;
}

// How many operands stand before the semicolon, if they are simple.
uint32_t Reader::simple_count(Cursor s) {
  if (*s.p == ';') return 0;
  uint32_t n = 1;
  for (bool inside = false; *s.p && *s.p != ';'; ++s.p) {
    if (*s.p == '{' || *s.p == '}') inside = *s.p == '{';
    n += !inside && (*s.p == ',' || *s.p == '|');
  }
  return std::min(n, 255u);
}

bool Reader::simple_operand(Cursor& s, const Mnemonic& m, uint32_t k, Operand& o, bool& plain) {
  const PlainOperands::Place& place = m.plain.at[k];
  if (m.instruction.op == Opcode::bra) return simple_target(s, o);
  if (*s.p == '[') return simple_address(s, place, o, plain);
  if (*s.p != '{') return simple_value(s, place, o, plain);
  // A vector. The elements of one that mov packs or unpacks have parts of its type: constants there are the grammar's.
  const bool packed = m.places.at[k].kind == 'm';
  if (!packed && m.places.at[k].kind != 'v') return false;
  const PlainOperands::Place& part = packed ? place : m.plain.element;
  const uint32_t first = static_cast<uint32_t>(f_.vector_elements.size());
  uint32_t count = 0;
  do {
    ++s.p, s.blanks();
    Operand element;
    if (++count > 8 || !simple_value(s, part, element, plain) || (packed && element.kind == Operand::immediate))
      return false;
    f_.vector_elements.push_back(element);
    s.blanks();
  } while (*s.p == ',');
  if (*s.p++ != '}') return false;
  plain = plain && !packed && m.instruction.mods.vector == count;
  o = {.kind = Operand::vector, .count = static_cast<uint8_t>(count), .id = first};
  if (count > 1) return true;
  o = f_.vector_elements[first];  // a single one is no vector: see end_vector()
  f_.vector_elements.resize(first);
  return m.instruction.op == Opcode::ld || m.instruction.op == Opcode::ldu || m.instruction.op == Opcode::st;
}

// A name or a constant.
bool Reader::simple_value(Cursor& s, const PlainOperands::Place& place, Operand& o, bool& plain) const {
  uint32_t id;
  if (const RegisterRange* range = simple_register(s.p, id)) {
    o = {.kind = Operand::reg, .id = id};
    plain &= (place.registers & range->types) != 0;
    return true;
  }
  if (is(*s.p, digit) || *s.p == '-') {
    Token t;
    if (!s.constant(t) || !fit(t.value, t.constant, place.type)) return false;
    o = {.kind = Operand::immediate, .value = t.value};
  } else {
    const bool negated = *s.p == '!';
    s.p += negated;
    std::string_view name;
    if (!s.name(name)) return false;
    o = {.kind = Operand::sink};
    if (name != "_" && (!lookup(name, o) || o.kind == Operand::vector)) return false;
    o.negated = negated;
  }
  plain = plain && place.takes(module_, f_, o);
  return true;
}

// [name], [name+4], [16]
bool Reader::simple_address(Cursor& s, const PlainOperands::Place& place, Operand& o, bool& plain) const {
  ++s.p;
  s.blanks();
  uint32_t id;
  const RegisterRange* const range = simple_register(s.p, id);
  const bool named = range || !(is(*s.p, digit) || *s.p == '-');
  if (range) {
    o = {.kind = Operand::address_reg, .id = id};
    plain &= (place.addresses & range->types) != 0;
  } else if (named) {
    o = {};
    std::string_view name;
    if (!s.name(name) || !lookup(name, o)) return false;
    if (o.kind == Operand::reg || o.kind == Operand::variable)
      o.kind = o.kind == Operand::reg ? Operand::address_reg : Operand::address_var;
    else if (o.kind != Operand::parameter)
      return false;
    if (o.kind == Operand::address_var && place.space == Space::generic) return false;  // it tells the space
    plain = plain && place.takes(module_, f_, o);
  } else {
    o = {.kind = Operand::address_imm};
    plain = plain && place.takes(module_, f_, o);
  }
  s.blanks();
  if (!named || *s.p == '+' || *s.p == '-') {
    const bool minus = named && *s.p == '-';
    if (named) ++s.p, s.blanks();
    Token t;
    if (!s.constant(t) || t.constant != Token::integer) return false;
    o.value = minus ? static_cast<int64_t>(-static_cast<uint64_t>(t.value)) : t.value;
    s.blanks();
  }
  return *s.p++ == ']';
}

// The label of a branch, which is made when it is new: so nothing but the semicolon may follow.
bool Reader::simple_target(Cursor& s, Operand& o) {
  const char* const begin = s.p;
  std::string_view name;
  if (!s.name(name) || name == "_") return false;
  const Range at = s.from(begin);
  s.blanks();
  if (*s.p != ';') return false;
  const uint32_t known = find(name);
  if (known != UINT32_MAX && symbols_[known].depth == depth()) {
    o = {.kind = Operand::label, .id = symbols_[known].id};
    return symbols_[known].kind == Kind::label;
  }
  uint32_t number;
  if (const RegisterRange* r = find_range(name, number); r && r->depth == depth()) return false;
  o = {.kind = Operand::label, .id = label_id(name, at)};
  return true;
}

}  // namespace rndn::ptx
