// Sorting a few rows in one launch of one block. Private to this folder.
#pragma once
#include <span>

#include "libraries/operators/keys.h"

namespace rndn::operators {

inline constexpr uint64_t small_rows = 2048;  // rows at most
inline constexpr size_t small_parts = 8;      // parts at most

enum class Small : uint8_t {
  order,   // rows
  groups,  // rows, first, offsets
  unique,  // first: the rows that are the first of their value, ascending
  count,   // none: how many groups there are
};

// Results are for at most small_rows rows (rows, first: i64; offsets: u64, one more); those that the kind does not name are 0.
struct SmallResults {
  Address rows = 0, first = 0, offsets = 0;
  Address size_slot = 0;  // of a u64: gets the number of rows; 0: not wanted
  uint64_t most = UINT64_MAX;  // order: rows that are wanted, the first ones; size_slot gets no more
  const Question* question = nullptr;  // of two words: number of rows; number of groups. Null: not wanted
};

// Queues the sort. When the device turns out to have more rows than small_rows, nothing but their number is written.
Result<void> sort_small(Library& library, Small kind, const Rows& rows, std::span<const Part> parts,
                        const SmallResults& results);

// For results that are to be as long as they need to be (Memory::most_unknown). Waits.
struct SmallCount {
  uint64_t rows = 0, groups = 0;  // groups: of at most small_rows rows
};
Result<SmallCount> count_small(Library& library, const Rows& rows, std::span<const Part> parts, Memory& memory);

}  // namespace rndn::operators
