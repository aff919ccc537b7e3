// Aggregates over few groups, without a sort. Private to this folder.
#pragma once
#include <span>

#include "libraries/operators/groups/accumulate.h"
#include "libraries/operators/keys.h"

namespace rndn::operators {

inline constexpr uint64_t most_few_keys = 1024;  // different keys that there may be

// Can the rows' keys be told apart by a number below most_few_keys? All parts must be known, and share the word.
bool may_be_few(std::span<const Word> words);

// Which of the possible keys occur.
struct FewKeys {
  uint64_t rows = 0;    // exact
  uint64_t groups = 0;  // keys that occur
  Address numbers = 0;  // u32 per possible key: the group's number, ascending with the key; ~0: the key does not occur
};
// Waits.
Result<FewKeys> number_keys(Library& library, const Rows& rows, const Word& word, Memory& memory);

// Do tables for so many groups fit into shared memory?
bool fits_few(const Library& library, const AggregateInput& input, const Word& word, uint64_t groups);

// Per group, ascending by key: its first row (i64) and its accumulators. Does not wait.
Result<void> reduce_few(Library& library, const AggregateInput& input, const Word& word, const FewKeys& keys,
                        Address first, std::span<const Address> accumulators, Memory& memory);

}  // namespace rndn::operators
