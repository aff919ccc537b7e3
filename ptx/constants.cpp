// Constant expressions of PTX: 64-bit integers and .f64 (PTX ISA, "Constant Expressions"); of .f32 constants only the sign.
// Both sides of ?:, && and || are evaluated, as ptxas does.
#include <bit>
#include <optional>

#include "ptx/reader.h"

namespace rndn::ptx {
namespace {

// Nothing where the operator compares nothing.
template <class T>
std::optional<bool> compare(std::string_view op, T x, T y) {
  if (op == "==") return x == y;
  if (op == "!=") return x != y;
  if (op == "<") return x < y;
  if (op == "<=") return x <= y;
  if (op == ">") return x > y;
  if (op == ">=") return x >= y;
  return {};
}

}  // namespace

Token Reader::negate(Token a) {
  if (a.constant == Token::integer)
    a.value = static_cast<int64_t>(-static_cast<uint64_t>(a.value));
  else if (a.constant == Token::single)
    a.value ^= int64_t{1} << 31;
  else
    a.value = static_cast<int64_t>(static_cast<uint64_t>(a.value) ^ uint64_t{1} << 63);
  return a;
}

bool Reader::truth(const Token& a, Range at) {
  if (a.constant != Token::integer) error("bad-operand", at, "only an integer is true or false");
  return a.value != 0;
}

Token Reader::cast(Type to, Token a, Range at) {
  if (a.constant != Token::integer || (to != Type::u64 && to != Type::s64))
    error("unsupported", at, "unsupported conversion in a constant expression: expected .s64 or .u64 of an integer");
  a.is_unsigned = to == Type::u64;
  return a;
}

Token Reader::invert(Token a, Range at) {
  if (a.constant != Token::integer) error("bad-operand", at, "only an integer has a logical complement");
  a.value = a.value == 0, a.is_unsigned = false, a.constant = Token::integer;
  return a;
}

Token Reader::offset(const Token& name, const Token& by, bool minus, Range at) {
  Token r = fold({.value = name.value}, minus ? "-" : "+", by, at);
  r.begin = name.begin;
  r.length = name.length;
  return r;
}

// Integers in 64 bits, without a sign where one of the two has none. What the manual leaves open is as ptxas has it: a remainder has no sign either,
// and shifts are by the amount's lowest six bits.
Token Reader::fold(const Token& a, std::string_view op, const Token& b, Range at) {
  if (a.constant == Token::real && b.constant == Token::real) return fold_real(a, op, b, at);
  if (a.constant != Token::integer || b.constant != Token::integer) {
    error("unsupported", at, "unsupported constant expression: expected two integers or two .f64 constants");
    return a;
  }
  if ((op == "/" || op == "%") && b.value == 0) {
    error("bad-operand", at, "a constant is divided by zero");
    return a;
  }
  const uint64_t x = static_cast<uint64_t>(a.value), y = static_cast<uint64_t>(b.value);
  const bool no_sign = a.is_unsigned || b.is_unsigned, negates = !no_sign && b.value == -1;  // the quotient may not fit
  const auto number = [&](uint64_t v, bool is_unsigned) {
    return Token{.begin = a.begin, .value = static_cast<int64_t>(v), .length = a.length, .is_unsigned = is_unsigned};
  };
  if (op == "+") return number(x + y, no_sign);
  if (op == "-") return number(x - y, no_sign);
  if (op == "*") return number(x * y, no_sign);
  if (op == "/") return number(negates ? 0 - x : no_sign ? x / y : static_cast<uint64_t>(a.value / b.value), no_sign);
  if (op == "%") return number(x % y, true);
  if (op == "&") return number(x & y, no_sign);
  if (op == "|") return number(x | y, no_sign);
  if (op == "^") return number(x ^ y, no_sign);
  if (op == "<<") return number(x << y % 64, a.is_unsigned);
  if (op == ">>") return number(a.is_unsigned ? x >> y % 64 : static_cast<uint64_t>(a.value >> y % 64), a.is_unsigned);
  if (op == "&&") return number(x && y, false);
  if (op == "||") return number(x || y, false);
  return number(*(no_sign ? compare(op, x, y) : compare(op, a.value, b.value)), false);
}

Token Reader::fold_real(const Token& a, std::string_view op, const Token& b, Range at) {
  const double x = std::bit_cast<double>(a.value), y = std::bit_cast<double>(b.value);
  Token r = a;
  if (const std::optional<bool> holds = compare(op, x, y))
    r.constant = Token::integer, r.value = *holds;
  else if (op == "/" && y == 0)
    error("bad-operand", at, "a constant is divided by zero");
  else if (op == "+" || op == "-" || op == "*" || op == "/")
    r.value = std::bit_cast<int64_t>(op == "+" ? x + y : op == "-" ? x - y : op == "*" ? x * y : x / y);
  else
    error("bad-operand", at, "`{}` takes integers", op);
  return r;
}

}  // namespace rndn::ptx
