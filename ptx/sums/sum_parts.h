// Sums of doubles that are made of sums of integers, so that threads may add to one place in any order: code for kernels.
// What the parts of a number are: libraries/base/numbers/sum_parts.h.
// Cost: the three narrow parts of a number are 15 instructions in f64, 8 of them conversions; the four wide ones 12 additions. 30 for a sum.
#pragma once
#include <span>

#include "libraries/base/numbers/sum_parts.h"
#include "ptx/sums/exact_sum.h"

namespace rndn::sums {

// Part 0, 1 or 2 of x. Where it `checks`, as one part of each number must, it reports to `flags` where x has no such parts and `counts` holds (not
// valid: always). The last part does at the least cost.
ptx::Reg<ptx::S64> sum_part(ptx::Builder& b, ptx::Reg<ptx::F64> x, size_t part, bool checks, ptx::ParameterOf<ptx::U64> flags,
                            ptx::Reg<ptx::Pred> counts = {});

// Wide part `part` of a number of which `rest` is what the parts before it leave: afterwards what this one leaves, too.
ptx::Reg<ptx::S32> take_wide_part(ptx::Builder& b, size_t part, ptx::Reg<ptx::F64>& rest);
// seen = seen or x has no wide parts, of which the last one leaves `rest`.
void note_no_parts(ptx::Builder& b, ptx::Reg<ptx::F64> x, ptx::Reg<ptx::F64> rest, ptx::Reg<ptx::Pred> seen);
void report_no_parts(ptx::Builder& b, ptx::Reg<ptx::Pred> seen, ptx::ParameterOf<ptx::U64> flags);

// The nearest double to the sum of which x are the sums of the narrow or the wide parts. Reports to `flags` as `rounded` does.
ptx::Reg<ptx::F64> sum_of_parts(ptx::Builder& b, std::span<const ptx::Reg<ptx::S64>> x, ptx::Reg<ptx::U64> flags,
                                ptx::Reg<ptx::Pred> counts = {});

}  // namespace rndn::sums
