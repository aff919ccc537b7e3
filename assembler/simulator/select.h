// From a decoded instruction to an Op: which handler, which rows. Used once per instruction at load.
// Each select_* function knows a group of mnemonics and returns false for all others; an unknown instruction or modifier becomes an
// error that names it, when it is executed.
#pragma once
#include <map>
#include <string>

#include "assembler/simulator/warp.h"

namespace rndn::sim {

struct Selector {
  const isa::Target& target;
  Program& program;
  std::map<uint64_t, uint32_t> pool_index;  // key of an entry (or of a pair) -> index of its first entry

  // Of the instruction at hand:
  const isa::Instruction* in = nullptr;
  uint32_t index = 0;      // its number
  uint32_t negations = 0;  // integer sources that were negated so far: -x = ~x + 1, and the handler adds the ones
  std::string error;       // why it has no meaning

  bool volta() const { return target.family == isa::Family::volta; }
  const isa::Operand& operand(uint32_t k) const { return in->operands[k]; }
  uint8_t modifier(isa::ModifierKind kind) const { return isa::modifier(*in, kind); }
  bool unsupported(std::string why) {
    error = std::move(why);
    return true;
  }

  Source source(uint32_t k, uint32_t words);  // register, uniform register, immediate or constant; no sign handling
  Source integer(uint32_t k);                 // negated -> complemented, counted in `negations`
  Source f32(uint32_t k);
  Source f64(uint32_t k);
  Source immediate(uint32_t value);
  uint32_t destination(uint32_t k) const;
  uint32_t register_row(uint32_t reg) const;  // as a source
  uint32_t uniform_row(uint32_t reg) const;   // the same of a uniform register
  uint8_t predicate_destination(uint32_t k) const;
  PredicateSource predicate(uint32_t k) const;
  uint32_t label(uint32_t k) const;  // instruction index
  void address(Op& op, uint32_t k);  // a = low, b = high word, c = uniform addend, offset
};

// Whether a load, store or atomic operation promises nothing to other multiprocessors (semantics_memory.cpp).
bool is_of_multiprocessor(const Selector& s);

bool select_integer(Selector& s, Op& op);
bool select_pascal_integer(Selector& s, Op& op);
bool select_float(Selector& s, Op& op);
bool select_conversion(Selector& s, Op& op);
bool select_half(Selector& s, Op& op);
bool select_memory(Selector& s, Op& op);
bool select_atomic(Selector& s, Op& op);
bool select_warp(Selector& s, Op& op);
bool select_control(Selector& s, Op& op);

// Decodes and resolves a kernel's code. Words that are no instruction of the target fail when they are executed.
Result<void> decode_program(const isa::Target& target, std::span<const std::byte> code, Program& program);
void make_footprints(Program& program);  // hazards.cpp
void find_spin_loops(Program& program);  // spin_loops.cpp

}  // namespace rndn::sim
