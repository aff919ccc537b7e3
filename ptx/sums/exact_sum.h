// Sums of floats that are the exact sum, rounded once: code for kernels.
//
//   ExactSum s = zero_sum(b);
//   add(b, s, x); add(b, s, y);          // in any order, by any threads
//   Reg<F64> total = rounded(b, s, flags, always);
//
// A sum is high + low, where low gathers what additions to high round away (TwoSum: D. E. Knuth,
// "The Art of Computer Programming", vol. 2, 4.2.2; as a compensated sum: T. Ogita, S. M. Rump,
// S. Oishi, "Accurate sum and dot product", SIAM J. Sci. Comput. 26, 2005). What additions to low
// round away is found in the same way, and `error` adds its magnitudes up: the exact sum is no
// farther from high + low, and is it where error is 0, as it is of a few numbers or of whole ones.
// Where that leaves one choice of the nearest double, this is the result, and neither order nor grid
// has a say in it. Where it leaves two, or sums became infinite and might not have, the words that
// the host reads with the results say so, and the program runs again with sums in integers
// (libraries/operators/exact_sums.cpp). Of sums of n doubles of one sign that is less than n in 2^50.
//
// Cost per number: 13 additions in f64. f32 is added up in f64, and rounded once to f32.
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
  no_parts,  // a number is not what its parts add up to (sum_parts.h): such sums are wrong
  flags
};
inline constexpr uint64_t flag_bytes = 4 * flags + 4;
// Whether results may be wrong. Infinite ones are what numbers in any order give, but for overflow.
inline bool must_run_again(const uint32_t* words) {
  return words[unsure] != 0 || (words[infinite] != 0 && words[huge] != 0);
}

ExactSum zero_sum(ptx::Builder& b);
// Whose errors `error` has: those of several sums stay numbers when one of the sums is none.
enum class Errors : uint8_t { of_sum, of_many };
// sum += x. Not valid `when`: always.
void add(ptx::Builder& b, const ExactSum& sum, ptx::Reg<ptx::F64> x, ptx::Reg<ptx::Pred> when = {},
         Errors errors = Errors::of_sum);
ExactSum sum_of(ptx::Builder& b, const ExactSum& x, const ExactSum& y);
ExactSum sum_of(ptx::Builder& b, const ExactSum& sum, ptx::Reg<ptx::F64> x, Errors errors = Errors::of_sum);
ExactSum sum_of(ptx::Builder& b, const ExactSum& sum, ptx::Reg<ptx::S64> x);
// into = x + y, where `when` holds. `into` may be x or y.
void add(ptx::Builder& b, const ExactSum& x, const ExactSum& y, const ExactSum& into,
         ptx::Reg<ptx::Pred> when = {});
// sum += x, of more bits than a double has.
void add(ptx::Builder& b, const ExactSum& sum, ptx::Reg<ptx::S64> x, ptx::Reg<ptx::Pred> when = {},
         Errors errors = Errors::of_sum);
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
// The same, for kernels with many results: of most sums `error` is 0, and those take three instructions and a branch.
ptx::Reg<ptx::F64> rounded_if_needed(ptx::Builder& b, const ExactSum& sum, Round round, ptx::Reg<ptx::U64> flags,
                                     ptx::Reg<ptx::Pred> counts = {});

}  // namespace rndn::sums
