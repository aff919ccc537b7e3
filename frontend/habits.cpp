#include "frontend/habits.h"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/builtins.h"
#include "frontend/types.h"

namespace rndn::hir {
namespace {

struct Pair {
  std::string_view theirs, ours;
};

constexpr Pair types[] = {
    {"boolean", "bool"}, {"byte", "i8"},     {"int8", "i8"},     {"short", "i16"},  {"int16", "i16"},
    {"int", "i32"},      {"integer", "i32"}, {"int32", "i32"},   {"long", "i64"},   {"int64", "i64"},
    {"bigint", "i64"},   {"float", "f32"},   {"float32", "f32"}, {"double", "f64"}, {"float64", "f64"},
    {"string", "str"},   {"text", "str"},    {"varchar", "str"}, {"symbol", "sym"}, {"datetime", "dt"},
    {"timestamp", "dt"},
};

constexpr Pair builtins[] = {
    {"add", "plus"},       {"subtract", "minus"},  {"sub", "minus"},       {"multiply", "mul"},  {"times", "mul"},
    {"divide", "div"},     {"modulo", "mod"},      {"pow", "power"},       {"equal", "eq"},      {"equals", "eq"},
    {"less", "lt"},        {"greater", "gt"},      {"count", "len"},       {"length", "len"},    {"size", "len"},
    {"mean", "avg"},       {"average", "avg"},     {"filter", "compress"}, {"sort", "order"},    {"sort_by", "order"},
    {"argsort", "order"},  {"distinct", "unique"}, {"concat", "append"},   {"head", "take"},     {"limit", "take"},
    {"group_by", "group"}, {"map", "each"},        {"iff", "select"},      {"ifelse", "select"}, {"cumsum", "scan_sum"},
    {"gather", "index"},   {"join", "join_index"}, {"in", "member"},       {"isin", "member"},
};

constexpr Pair values[] = {{"true", "1:bool"}, {"false", "0:bool"}, {"True", "1:bool"}, {"False", "0:bool"}};

// Signs between two operands, the longest first.
constexpr Pair operators[] = {
    {"==", "eq"}, {"!=", "neq"},   {"<>", "neq"}, {"<=", "leq"},  {">=", "geq"}, {"&&", "and"},
    {"||", "or"}, {"**", "power"}, {"+", "plus"}, {"-", "minus"}, {"*", "mul"},  {"/", "div"},
    {"%", "mod"}, {"<", "lt"},     {">", "gt"},   {"&", "and"},   {"|", "or"},
};

// Words that begin a statement elsewhere. {}: the name behind the word.
constexpr Pair statements[] = {
    {"for", "builtins work on whole vectors; loops are `while (more) {` and `repeat (n) {`"},
    {"foreach", "builtins work on whole vectors; loops are `while (more) {` and `repeat (n) {`"},
    {"do", "loops are `while (more) {` and `repeat (n) {`"},
    {"switch", "choices are `if (c) {` and `else if (d) {`, or `@select(c, x, y)` of vectors"},
    {"elif", "it is `else if (c) {`"},
    {"elseif", "it is `else if (c) {`"},
    {"elsif", "it is `else if (c) {`"},
    {"function", "it is `def f(x:i64) : i64 {`, beside `main`"},
    {"func", "it is `def f(x:i64) : i64 {`, beside `main`"},
    {"fn", "it is `def f(x:i64) : i64 {`, beside `main`"},
    {"fun", "it is `def f(x:i64) : i64 {`, beside `main`"},
    {"void", "it is `def f(x:i64) {`, beside `main`"},
    {"let", "its first assignment declares a variable: `x:? = ..;`"},
    {"const", "its first assignment declares a variable: `x:? = ..;`"},
    {"auto", "its first assignment declares a variable: `x:? = ..;`"},
    {"val", "its first assignment declares a variable: `x:? = ..;`"},
};

template <size_t n>
std::string_view find(const Pair (&pairs)[n], std::string_view word) {
  const auto* at = std::find_if(std::begin(pairs), std::end(pairs), [&](const Pair& p) { return p.theirs == word; });
  return at == std::end(pairs) ? std::string_view() : at->ours;
}

bool is_decimal(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_decimal(c); }
bool is_blank(char c) { return c == ' ' || c == '\t'; }

std::string_view word_before(std::string_view text, size_t end) {
  size_t begin = end;
  while (begin > 0 && is_word(text[begin - 1])) --begin;
  return text.substr(begin, end - begin);
}
size_t skip_blanks(std::string_view text, size_t at) {
  while (at < text.size() && is_blank(text[at])) ++at;
  return at;
}

// A name, or a number with or without its type: all that is written again in a message.
bool is_operand(std::string_view s) {
  return !s.empty() && std::all_of(s.begin(), s.end(), [](char c) { return is_word(c) || c == '.' || c == ':'; }) &&
         is_word(s.front()) && is_word(s.back());
}
std::string with_type(std::string_view operand) {
  const size_t colon = operand.find(':');
  if (!is_decimal(operand.front())) return std::string(operand.substr(0, colon));
  if (colon != operand.npos) return std::string(operand);
  return fmt::format("{}:{}", operand, operand.find('.') == operand.npos ? "i64" : "f64");
}
std::string_view operand_before(std::string_view text, size_t end) {
  size_t begin = end;
  while (begin > 0 && (is_word(text[begin - 1]) || text[begin - 1] == '.' || text[begin - 1] == ':')) --begin;
  return text.substr(begin, end - begin);
}
std::string_view operand_after(std::string_view text, size_t begin) {
  size_t end = begin = skip_blanks(text, begin);
  while (end < text.size() && (is_word(text[end]) || text[end] == '.' || text[end] == ':')) ++end;
  return text.substr(begin, end - begin);
}

// `@name(a, b)`, with x and y for what is more than an operand.
std::string call_of(std::string_view name, std::string_view left, std::string_view right) {
  const bool plain = is_operand(left) && is_operand(right);
  return fmt::format("@{}({}, {})", name, plain ? with_type(left) : "x", plain ? with_type(right) : "y");
}

// The call that begins with the name before its parenthesis at `open`, on one line.
std::string call_at(std::string_view text, size_t open) {
  const std::string_view name = word_before(text, open);
  constexpr size_t most = 60;
  size_t depth = 0;
  for (size_t at = open; at < std::min(text.size(), open + most) && text[at] != '\n'; ++at) {
    depth += text[at] == '(';
    depth -= text[at] == ')';
    if (depth == 0) return fmt::format("@{}{}", name, text.substr(open, at + 1 - open));
  }
  return fmt::format("@{}(..)", name);
}

// A call where `if`, `while` or `repeat` have a variable.
std::string for_condition(std::string_view word, std::string_view call) {
  return fmt::format("`{0}` takes a variable: `c:? = {1};` first, then `{0} (c)`", word, call);
}

}  // namespace

std::string_view foreign_type(std::string_view word) { return find(types, word); }
std::string_view foreign_builtin(std::string_view word) { return find(builtins, word); }
std::string_view foreign_value(std::string_view word) { return find(values, word); }

bool has_foreign_header(std::string_view word) { return word == "for" || word == "foreach"; }

std::string sum_for_complex(std::string_view token) {
  const size_t sign = token.find_first_of("+-", 1);
  if (token.ends_with('i') || sign == token.npos) return {};
  return fmt::format("`{}` is a call in HorseIR: `{}`", token[sign],
                     call_of(find(operators, token.substr(sign, 1)), token.substr(0, sign), token.substr(sign + 1)));
}

std::string habit(const Habit& h) {
  const std::string_view text = h.text;
  const std::string_view last = text.substr(h.last.begin, h.last.end - h.last.begin);
  const std::string_view rest = text.substr(std::min<size_t>(h.at.begin, text.size()));
  const char first = rest.empty() ? '\0' : rest[0];
  if (h.last_is_name) {
    if (const std::string_view ours = find(statements, last); !ours.empty())
      return fmt::format("HorseIR has no `{}`: {}", last, ours);
    BasicType basic;
    const std::string_view type = parse_basic_type(last, basic) ? last : foreign_type(last);
    const bool is_suffix = h.last.begin > 0 && text[h.last.begin - 1] == ':';  // of a literal
    if (h.at_is_name && !type.empty() && !is_suffix)
      return fmt::format("a type stands behind its name: `{}:{}`", text.substr(h.at.begin, h.at.end - h.at.begin),
                         type);
    if (first == '(') {
      const bool is_call = h.last.begin > 0 && text[h.last.begin - 1] == '@';
      if (!h.condition.empty()) return for_condition(h.condition, call_at(text, h.at.begin));
      if (is_call) return {};
      if (h.last.begin > 0 && text[h.last.begin - 1] == '.')
        return fmt::format("there are no methods: `@{}({})`", last, word_before(text, h.last.begin - 1));
      return fmt::format("a call begins with `@`: `{}`", call_at(text, h.at.begin));
    }
  }
  if (first == '#') return "comments begin with `//`";
  if (first == '[')
    return h.last_is_name ? fmt::format("elements are taken by a call: `@index({}, 0:i64)`", last)
                          : "vectors stand in parentheses: `(1, 2, 3):i64`";
  if (first == '=' && last == ":") return "a variable is declared by its type, or `?`: `x:? = ..`";
  if (rest.starts_with("!") && !rest.starts_with("!="))
    return fmt::format("`!` is a call in HorseIR: `@not({})`",
                       is_operand(operand_after(rest, 1)) ? operand_after(rest, 1) : "x");
  if (last == "-" && h.at_is_name)
    return fmt::format("`-` of a variable is a call in HorseIR: `@neg({})`",
                       text.substr(h.at.begin, h.at.end - h.at.begin));
  if (last == "(" && h.at_is_name && h.condition.empty())
    return "parentheses hold literals, no expressions: assign what is in them to a variable first";
  // What follows an operand, or `2 +3`, where the sign is read as one of the number.
  const bool after_operand = h.last_is_name || h.last_is_value || last == ")";
  if (!after_operand) return {};
  if (first == '?') return "a choice is a call in HorseIR: `@select(c, x, y)`";
  for (const Pair& sign : operators) {
    if (!rest.starts_with(sign.theirs)) continue;
    const std::string_view left = operand_before(text, h.last.end);
    const std::string_view behind = rest.substr(sign.theirs.size());
    const bool one_more = sign.theirs.size() == 1 && behind.starts_with(first);  // `i++`
    if (one_more || (sign.theirs.size() == 1 && behind.starts_with('='))) {
      const std::string_view right = one_more ? "1" : operand_after(behind, 1);
      return fmt::format("a variable changes by an assignment: `{} = {};`", left, call_of(sign.ours, left, right));
    }
    const std::string call = call_of(sign.ours, left, operand_after(behind, 0));
    if (!h.condition.empty()) return for_condition(h.condition, call);
    return fmt::format("`{}` is a call in HorseIR: `{}`", sign.theirs, call);
  }
  return {};
}

}  // namespace rndn::hir
