// PTX text to IR (flex and bison), with diagnostics; then the verifier.
#pragma once
#include "libraries/base/errors/diagnostic.h"
#include "ptx/ir.h"

namespace rndn::ptx {

// The version of PTX that CUDA 13.0 brought, as 10 * major + minor; newer ones are read as far as the rows of opcodes.def go.
inline constexpr uint32_t current_version = 90;

// Parses `file`. Problems go to `sink`; the module is usable only if sink has no errors.
Module parse(FileId file, const SourceManager& sources, DiagnosticSink& sink);

// Checks every instruction against its row of opcodes.def: types, modifiers, operand count and kinds, defined labels.
// Returns one message per problem, empty when the module is right. Run after the builder in debug builds and tests.
std::vector<std::string> verify(const Module& module);

}  // namespace rndn::ptx
