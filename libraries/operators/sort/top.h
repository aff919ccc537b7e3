// The first rows of an order without sorting the others. Private to this folder.
#pragma once
#include <optional>
#include <span>

#include "libraries/operators/keys.h"

namespace rndn::operators {

inline constexpr uint64_t most_candidates = 2048;  // that one launch puts in order at once
inline constexpr uint64_t most_ranked = 8192;      // and that it puts in order where another round would not leave fewer

// Row numbers (i64[most]) of the first `most` of n > most rows, or nothing where sorting all is better, or where the samples misled. Waits.
Result<std::optional<Address>> select_top(Library& library, std::span<const Part> parts, uint64_t n, uint64_t most,
                                          Memory& memory);

}  // namespace rndn::operators
