// Constant expressions of PTX: 64-bit integers (PTX ISA, "Integer Constant Expression Evaluation"); of floats only the sign.
// Left out: operators on floats; that a suffix U makes a number below 2^63 unsigned.
#include <algorithm>

#include "ptx/reader.h"

namespace rndn::ptx {

Token Reader::negate(Token a) {
  if (a.constant == Token::integer)
    a.value = static_cast<int64_t>(-static_cast<uint64_t>(a.value)), a.huge = false;
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
  a.huge = to == Type::u64 && a.value < 0;
  return a;
}

Token Reader::invert(Token a, Range at) {
  if (a.constant != Token::integer) error("bad-operand", at, "only an integer has a logical complement");
  a.value = a.value == 0, a.huge = false, a.constant = Token::integer;
  return a;
}

Token Reader::offset(const Token& name, const Token& by, bool minus, Range at) {
  Token r = fold({.value = name.value}, minus ? "-" : "+", by, at);
  r.begin = name.begin;
  r.length = name.length;
  return r;
}

// In 64 bits, without a sign where one of the two is 2^63 and more (PTX ISA, "Integer Constant Expression Evaluation").
Token Reader::fold(const Token& a, std::string_view op, const Token& b, Range at) {
  Token r = a;
  if (a.constant != Token::integer || b.constant != Token::integer) {
    error("unsupported", at, "unsupported constant expression of floating constants");
    return r;
  }
  const uint64_t x = static_cast<uint64_t>(a.value), y = static_cast<uint64_t>(b.value);
  const bool is_unsigned = a.huge || b.huge, less = is_unsigned ? x < y : a.value < b.value;
  uint64_t v = 0;
  bool number = true;  // else true or false
  if (op == "+")
    v = x + y;
  else if (op == "-")
    v = x - y;
  else if (op == "*")
    v = x * y;
  else if (op == "&")
    v = x & y;
  else if (op == "|")
    v = x | y;
  else if (op == "^")
    v = x ^ y;
  else if (op == "<<")
    v = y < 64 ? x << y : 0;
  else if (op == ">>")
    v = a.huge ? (y < 64 ? x >> y : 0) : static_cast<uint64_t>(a.value >> std::min<uint64_t>(y, 63));
  else if (op == "/" || op == "%") {
    if (y == 0) {
      error("bad-operand", at, "a constant is divided by zero");
      return r;
    }
    const bool divides = op == "/", negates = !is_unsigned && y == UINT64_MAX;  // by -1: the quotient may not fit
    if (negates)
      v = divides ? 0 - x : 0;
    else if (is_unsigned)
      v = divides ? x / y : x % y;
    else
      v = static_cast<uint64_t>(divides ? a.value / b.value : a.value % b.value);
  } else {
    number = false;
    v = op == "=="   ? x == y
        : op == "!=" ? x != y
        : op == "<"  ? less
        : op == ">=" ? !less
        : op == ">"  ? !less && x != y
        : op == "<=" ? less || x == y
        : op == "&&" ? x && y
                     : x || y;
  }
  r.value = static_cast<int64_t>(v);
  r.huge = number && is_unsigned && r.value < 0;
  return r;
}

}  // namespace rndn::ptx
