// The passes of the frontend, in order (private; pipeline.cpp calls them). Each reports to the sink; a pass runs only when those
// before it found no error.
#pragma once
#include "frontend/frontend.h"

namespace rndn::hir {

// Binds every name: modules and imports, functions, globals, variables and their scopes, `main`. Also brings calls of builtins to
// their canonical form (aliases, order of arguments of older dialects).
void resolve_names(FileId file, Program& program, const Options& options, DiagnosticSink& sink);

// Infers and checks every type: fills Expression::types, Variable::type, Function::result_types, Global::type.
void check_types(Program& program, const Options& options, DiagnosticSink& sink);

// Definite assignment: an error where no assignment can reach a use, a warning where some path has none; paths without `return`.
void check_assignments(const Program& program, DiagnosticSink& sink);

}  // namespace rndn::hir
