// What the tests of the frontend share: running the frontend on a text, golden files.
#pragma once
#include <string>
#include <vector>

#include "frontend/frontend.h"
#include "tests/frontend/schema.h"

namespace rndn::hir {

struct Outcome {
  hir::Program program;
  std::string diagnostics;         // rendered
  std::vector<std::string> kinds;  // of every diagnostic, in order
  bool ok = false;                 // no errors
};

// Runs the frontend on `text`. The first line may hold options: `// test: schema strict v0 parse` (any of them).
Outcome run_text(const std::string& name, const std::string& text);

// Files of tests/frontend/<folder> that end in .hir, sorted.
std::vector<std::string> test_files(const std::string& folder);
std::string read(const std::string& path);
// Compares with the golden file, or writes it when the environment variable RNDN_UPDATE is 1. Empty text: the file must not exist.
void expect_golden(const std::string& path, const std::string& text);

// Everything about the structure of a program but its positions, literal values in full precision: for comparing programs
// without going through the printer.
std::string structure(const Program& program);

}  // namespace rndn::hir
