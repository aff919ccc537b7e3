// Loads and stores of neighbouring words become one. See join_words.cpp.
#pragma once
#include "libraries/base/result.h"
#include "ptx/ir.h"

namespace rndn::assembler {

// True when some accesses of an entry are to be joined.
bool has_words_to_join(const ptx::Module& module);

// The module with all of them joined.
Result<ptx::Module> join_words(const ptx::Module& module);

}  // namespace rndn::assembler
