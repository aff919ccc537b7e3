// What legalize.cpp puts in the place of instructions. Private to this folder.
#pragma once
#include <span>
#include <string>

#include "ptx/ir.h"

namespace rndn::ptx {

// True for instructions that are expanded on every target.
bool is_expanded(const ptx::Instruction& i);
bool has_expansions(const ptx::Function& f);

// PTX over %d0, %s0, %s1, .., %at, whose registers have these types (bits of the instruction's registers, operands in order); labels L0, L1, ..
// Empty: there is none for these operands.
std::string expansion(const ptx::Instruction& i, std::span<const ptx::Type> types);

}  // namespace rndn::ptx
