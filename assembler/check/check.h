// Checkers of what the passes made, independent of them: they see machine/ and isa/ only.
#pragma once
#include <string>
#include <vector>

#include "assembler/machine/ir.h"

namespace rndn::assembler {

// --- independent checkers: one message per violation, empty when all is well
std::vector<std::string> check_allocation(const Function& before, const Function& after);
std::vector<std::string> check_schedule(const isa::Target& target, const std::vector<isa::Instruction>& code,
                                        const std::vector<uint64_t>& addresses);
// Every region is opened and joined once on every path (SSY and SYNC, BSSY and BSYNC).
std::vector<std::string> check_regions(const isa::Target& target, const std::vector<isa::Instruction>& code,
                                       const std::vector<uint64_t>& addresses);
// The same instructions in each block, and each reads what it read before.
std::vector<std::string> check_order(const Function& before, const Function& after);
// The distance that check_schedule demands from a producer to a reader of its result (file none: Pascal's condition code); 0: none.
uint32_t checked_distance(const isa::Target& target, const isa::Instruction& producer, const isa::Instruction& consumer,
                          uint32_t reg, isa::RegisterFile file, bool guard);

}  // namespace rndn::assembler
