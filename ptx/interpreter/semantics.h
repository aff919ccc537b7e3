// What each instruction computes from its operands' bits; no memory, no threads.
//
// Where the PTX manual leaves a choice, this one is taken: quotient and remainder of integers by zero are all ones; f32
// and f16 NaNs are canonical (0x7fffffff, 0x7fff), f64 keeps the payload of its first NaN operand; .approx and .full operations are
// the host's double-precision result rounded to the type (compare them with the tolerance of the manual); mul24.hi and friends follow
// the manual's formulas.
#pragma once
#include <cstdint>

#include "ptx/ir.h"

namespace rndn::ptx {

struct Computed {
  uint64_t value = 0;
  uint64_t second = 0;  // setp's second predicate
};

// Sign- or zero-extends the low bits that `type` has to 64.
uint64_t extend(uint64_t bits, Type type);

// Computes instruction `i` from its sources' bits (as many as it has, in order). `carry` is the thread's CC.CF. False when the
// instruction is no computation (memory, control, cooperation) or has no meaning here.
bool compute(const Instruction& i, const uint64_t* sources, uint32_t source_count, bool& carry, Computed& out);

// New value of a location that holds `old`, for atom, red and redux.
uint64_t atomic_result(AtomicOp op, Type type, uint64_t old, uint64_t a, uint64_t b, bool flush_subnormals);

}  // namespace rndn::ptx
