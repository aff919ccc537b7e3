// Values in one line of text, for tables of test cases:
//
//   "i32 1 2 3"   "f64 1.5 nan -inf"   "sym a b"   "bool 1 0"   "date -1"   "complex 1+2i"   (nothing after the type:
//   empty vector)
//   "[i64 1 2; i64 3]"   a list          "[]"  the empty list
//   "@plus"             a function       "{i64 1; [i64 1 2]}"  a dict      "<i32 10 20; i64 1 0>"  an enumeration
//   "|a=i64 1 2; b=f64 3 4|"  a table    a symbol written '' is the empty text; ~ stands for a blank inside a text
#pragma once
#include <string>
#include <string_view>

#include "runtime/reference/reference.h"

namespace rndn::reference::testing {

Value parse(std::string_view text);
// Canonical text of a value in the same notation; floats with all digits.
std::string show(const Value& value);

}  // namespace rndn::reference::testing
