// A random program that fails, made small: chunks of instructions go away or become moves of zero, halves first, as long as the failure stays
// (delta debugging, Zeller and Hildebrandt 2002). What makes a program's results defined stays.
#pragma once
#include <chrono>
#include <functional>
#include <string>

#include "ptx/ir.h"

namespace rndn::testing {

// Whether some way through the function reads a register that it has not set. (A guarded instruction sets nothing for sure.)
bool reads_unset(const ptx::Function& f);

// `fails` says whether a module still fails as the first one does; it is called until nothing more can go or the time is over.
ptx::Module reduced(ptx::Module module, const std::string& kernel, const std::function<bool(const ptx::Module&)>& fails,
                    std::chrono::seconds limit);

// The kernel with few and short names of registers, and its text without labels that nothing jumps to.
ptx::Module tidy(const ptx::Module& module, const std::string& kernel);
std::string text_of(const ptx::Module& module);

}  // namespace rndn::testing
