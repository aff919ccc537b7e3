// Sums of floats that are the exact sum, rounded once: code for kernels.
//
//   ExactSum s = zero_sum(b);
//   add(b, s, x); add(b, s, y);          // in any order, by any threads
//   Reg<F64> total = rounded(b, s, flags, always);
//
// A sum is high + low, where low gathers what additions to high round away (TwoSum: D. E. Knuth,
// "The Art of Computer Programming", vol. 2, 4.2.2; as a compensated sum: T. Ogita, S. M. Rump,
// S. Oishi, "Accurate sum and dot product", SIAM J. Sci. Comput. 26, 2005). What additions to low
// round away is bounded: each loses at most 2^-53 of its result, and `error` adds these results up,
// so that the exact sum lies within 2^-53 error of high + low. Where that leaves one choice of the
// nearest double, this is the result, and neither order nor grid has a say in it. Where it leaves
// two, or sums became infinite and might not have, the words that the host reads with the results
// say so, and the program runs again with sums in integers (libraries/operators/exact_sums.cpp).
// Of n doubles of one sign that is about one sum in 2^55 / n, and none where low is exact.
//
// Cost per number: 8 additions in f64. f32 is added up in f64, and rounded once to f32.
// Leaves out: numbers of more than 53 bits; those are added in parts.
#pragma once
#include "ptx/builder.h"

namespace rndn::sums {

// Three registers, changed in place. Zero: three zeros.
struct ExactSum {
  ptx::Reg<ptx::F64> high, low, error;
};
inline constexpr uint32_t parts = 3;

// What the host reads when the results are there: u32 each, 0 or 1. A program has one such place.
enum Flag : uint32_t {
  unsure,    // a result is one of two neighbours
  infinite,  // a result is infinite or NaN
  huge,      // a finite number was added that is large enough for sums to overflow
  flags
};
inline constexpr uint64_t flag_bytes = 4 * flags + 4;
// Whether results may be wrong. Infinite ones are what numbers in any order give, but for overflow.
inline bool must_run_again(const uint32_t* words) {
  return words[unsure] != 0 || (words[infinite] != 0 && words[huge] != 0);
}

ExactSum zero_sum(ptx::Builder& b);
// sum += x. Not valid `when`: always.
void add(ptx::Builder& b, const ExactSum& sum, ptx::Reg<ptx::F64> x, ptx::Reg<ptx::Pred> when = {});
ExactSum sum_of(ptx::Builder& b, const ExactSum& x, const ExactSum& y);
// into = x + y, where `when` holds. `into` may be x or y.
void add(ptx::Builder& b, const ExactSum& x, const ExactSum& y, const ExactSum& into,
         ptx::Reg<ptx::Pred> when = {});
// sum += x, of more bits than a double has.
void add(ptx::Builder& b, const ExactSum& sum, ptx::Reg<ptx::S64> x, ptx::Reg<ptx::Pred> when = {});
// seen = seen or x is finite and at least 2^991: 2^32 smaller ones cannot overflow.
void note_huge(ptx::Builder& b, ptx::Reg<ptx::F64> x, ptx::Reg<ptx::Pred> seen);
void report_huge(ptx::Builder& b, ptx::Reg<ptx::Pred> seen, ptx::Reg<ptx::U64> flags);

// nearest: the nearest double. odd: of more bits than a double has, the one of the two neighbours
// whose last bit is 1: its nearest f32 is that of the exact sum (S. Boldo, G. Melquiond, "Emulation
// of a FMA and correctly rounded sums: proved algorithms using rounding to odd", IEEE Trans.
// Computers 57, 2008).
enum class Round : uint8_t { nearest, odd };
// Reports to `flags` where `counts` holds (not valid: always).
ptx::Reg<ptx::F64> rounded(ptx::Builder& b, const ExactSum& sum, Round round,
                           ptx::Reg<ptx::U64> flags, ptx::Reg<ptx::Pred> counts = {});

}  // namespace rndn::sums
