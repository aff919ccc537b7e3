// Sums of doubles that are made of sums of integers, so that threads may add to one place in any order: code for kernels.
// What the parts of a number are: libraries/base/numbers/sum_parts.h.
// Cost: 12 additions in f64 for the four parts of a number, 30 for a sum.
#pragma once
#include <span>

#include "libraries/base/numbers/sum_parts.h"
#include "ptx/sums/exact_sum.h"

namespace rndn::sums {

// Part `part` of a number of which `rest` is what the parts before it leave: afterwards what this one leaves, too.
ptx::Reg<ptx::S32> take_part(ptx::Builder& b, size_t part, ptx::Reg<ptx::F64>& rest);
// seen = seen or part 0 may be other than 0, as of what is no number.
void note_first_part(ptx::Builder& b, ptx::Reg<ptx::F64> x, ptx::Reg<ptx::Pred> seen);
// A number has parts unless it is large or the last part leaves a rest: seen = seen or that is so.
void note_large(ptx::Builder& b, ptx::Reg<ptx::F64> x, ptx::Reg<ptx::Pred> seen);
void note_rest(ptx::Builder& b, ptx::Reg<ptx::F64> rest, ptx::Reg<ptx::Pred> seen);
void report_no_parts(ptx::Builder& b, ptx::Reg<ptx::Pred> seen, ptx::ParameterOf<ptx::U64> flags);

// The nearest double to the sum of which x are the sums of the parts. Reports to `flags` as `rounded` does.
ptx::Reg<ptx::F64> sum_of_parts(ptx::Builder& b, std::span<const ptx::Reg<ptx::S64>, sum_parts::count> x, ptx::Reg<ptx::U64> flags,
                                ptx::Reg<ptx::Pred> counts = {});

}  // namespace rndn::sums
