// Programs that nobody wrote on the reference interpreter, within bounds of size and time: shared by the fuzz target and the tests.
#pragma once
#include <string>

#include "frontend/frontend.h"
#include "runtime/reference/reference.h"

namespace rndn::reference::testing {

struct Ran {
  bool typed = false;      // the frontend found no error
  bool finished = false;   // and the program ended without a run-time error
  std::string results;     // in the notation of tests/reference/notation.h
  std::string error;       // of the run, without position
  std::string place;       // its position: "r.hir:7:9"
  std::string complaint;   // what must not be: a result that is not of the type that the frontend inferred
  std::string typed_text;  // the program printed with all types
};

// Runs `text` with the schema of tests/frontend/schema.h on tiny tables with so many rows.
Ran run_bounded(const std::string& text, uint64_t rows = 5);

// What is wrong with the value as one of that type; empty when it conforms.
std::string conforms(const Value& value, const hir::TypeTable& types, hir::TypeId type);

}  // namespace rndn::reference::testing
