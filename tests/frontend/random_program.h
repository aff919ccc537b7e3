// Random HorseIR programs over the whole grammar and all builtins.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace rndn::hir {

// A program of about `statements` statements: literals of every type, calls of every builtin and of its own functions, the each
// family, casts, globals, if, while, repeat, several results. Each statement is drawn at random and kept when `accept` takes the
// program that ends with it; so what is valid is the judgement of `accept` and not of the generator. The same seed and the same
// judgements give the same program.
// `idioms`: so many of a hundred statements are the first of several that go together, which statements drawn one by one hardly ever form: vectors whose
// lengths only the run knows, combined element by element; groups, reductions of their cells, and work on vectors with an element per group.
std::string random_program(uint32_t seed, size_t statements, const std::function<bool(const std::string&)>& accept,
                           size_t idioms = 0);

// The same program with one more statement somewhere, at which it ends: a division by zero, an index out of range, the factorial of a negative number,
// lengths that differ in the run, or any other that `fails` takes. What `accept` took finished, and the new statement assigns to a name of its own: so
// it is the only one that can fail. The program as it was when `fails` took nothing.
std::string random_failure(uint32_t seed, size_t statements, const std::function<bool(const std::string&)>& accept,
                           size_t idioms, const std::function<bool(const std::string&)>& fails);

}  // namespace rndn::hir
