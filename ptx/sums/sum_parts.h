// Sums of doubles that are made of sums of integers, so that threads may add to one place in any order: code for kernels.
// What the parts of a number are: libraries/base/numbers/sum_parts.h.
// Cost: 15 instructions in f64 for the three parts of a number; 30 for a sum.
#pragma once
#include "ptx/sums/exact_sum.h"

namespace rndn::sums {

// Part 0, 1 or 2 of x. Where it `checks`, as one part of each number must, it reports to `flags` where x has no such parts and `counts` holds (not
// valid: always). The last part does at the least cost.
ptx::Reg<ptx::S64> sum_part(ptx::Builder& b, ptx::Reg<ptx::F64> x, size_t part, bool checks, ptx::ParameterOf<ptx::U64> flags,
                            ptx::Reg<ptx::Pred> counts = {});
// The nearest double to the sum of which x are the sums of parts 0, 1 and 2. Reports to `flags` as `rounded` does.
ptx::Reg<ptx::F64> sum_of_parts(ptx::Builder& b, const ptx::Reg<ptx::S64> (&x)[3], ptx::Reg<ptx::U64> flags,
                                ptx::Reg<ptx::Pred> counts = {});

}  // namespace rndn::sums
