// What must hold for every text: shared by the fuzz target and by the tests with seeded mutations.
#pragma once
#include <string>

namespace rndn::hir {

// Runs the whole frontend on `text` in every mode, renders the diagnostics, and checks that
//   - a program without errors prints to a text that parses to a program that prints the same;
//   - every diagnostic lies inside of the file;
//   - what passed the checks is fully resolved and typed.
// Returns what does not hold, or nothing.
std::string check_robust(const std::string& text);

}  // namespace rndn::hir
