// What writers of other languages write, and what HorseIR has for it: the words of syntax errors.
//
//   habit({.text = "a:i64 = b + 1;", .last = {8, 9}, .at = {10, 11}, ..})
//       // "`+` is a call in HorseIR: `@plus(b, 1:i64)`"
//   foreign_type("int");      // "i32"
//   foreign_builtin("mean");  // "avg"
//   foreign_value("true");    // "1:bool"
//
// In: the text around the token that the grammar does not expect. Out: a message, or nothing where
// no habit is known and the grammar's own words say more. A row of a table for each word or sign.
// Only told, never guessed from: the program stays in error. Cost: a few characters back and forth.
#pragma once
#include <string>
#include <string_view>

#include "frontend/parse.h"

namespace rndn::hir {

struct Habit {
  std::string_view text;  // of the program
  Location last, at;      // the token before the one in error, and that one
  bool last_is_name = false, last_is_value = false, at_is_name = false;
  std::string_view condition;  // the `if`, `while` or `repeat` whose parenthesis is open; empty: none
};
std::string habit(const Habit& habit);
// A header in parentheses, of which nothing can be read: `for (a; b; c)`.
bool has_foreign_header(std::string_view word);
// `2+3` where a complex number cannot stand. Empty: it may be meant as one.
std::string sum_for_complex(std::string_view token);

// HorseIR's word for one of other languages. Empty: none.
std::string_view foreign_type(std::string_view word);
std::string_view foreign_builtin(std::string_view word);
std::string_view foreign_value(std::string_view word);

}  // namespace rndn::hir
