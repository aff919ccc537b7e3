// Joins: what a build leaves on the device, and the pieces of kernels that look rows up in it. Private to this folder.
//
// Build and probe are apart: a JoinTable is all that a probe needs to know, whether it writes pairs or goes on with the rows it finds.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "libraries/operators/fragments.h"
#include "libraries/operators/library.h"
#include "libraries/operators/api.h"

namespace rndn::operators {

// A test that a pair of rows must pass beside the equality of the keys.
struct Residual {
  Compare compare{};
  Type type{};
  bool ranked = false;  // text codes compared through their ranks
  bool operator==(const Residual&) const = default;
};

// The columns of one side: first the key's, in its order, then those of the residual predicates.
struct Side {
  std::vector<Vector> columns;
  std::vector<bool> single;  // one element that stands for all rows
  uint64_t capacity = 0;     // rows at most
  Address size_slot = 0;     // 0: `capacity` rows
};
// Fails when the columns are not equally long.
Result<Side> make_side(std::vector<Vector> columns);
void add(Arguments& a, const Side& side);

// What join kernels are built for.
struct JoinShape {
  KeyShape key;  // no columns: every pair of rows is a candidate
  std::vector<Residual> rest;
  std::vector<bool> left_single, right_single;
  std::string name() const;
};

// Rows of the left side by key, for rows of the right side to be looked up.
//   direct  slots: u32 per key: ~row, or 0. For narrow keys of a small range.
//   hash    slots: u64, {tag or narrow key, ~row} with the tag in the high half, or 0; from place_of(hash(key), count) on, at most half of
//           them taken. Narrow keys are their own tags; others are compared through the columns when tags agree.
// Only rows with a valid key are in it. Of equal keys the smallest row is in it, and `duplicates` says that there are some.
struct JoinTable {
  enum Kind : uint8_t { direct, hash } kind{};
  KeyLayout layout;
  Address control = 0;  // control_* below
  Address words = 0;    // look-back words that the build's clearing zeroed too: `word_count` of u64
  uint64_t word_count = 0;
  Address slots = 0;
  uint64_t slot_capacity = 0;  // slots at most
};
constexpr int64_t control_duplicates = 0;  // u32: some key occurs more than once
using lookup::control_slots, lookup::control_shift;  // u32: slots in use by the scheme; of the filter
constexpr int64_t control_ticket = 8;      // u32: tiles of the first probe
constexpr int64_t control_bytes = 256;

// Queues the build. word_count: look-back words that the caller will need. duplicates: where a u32 becomes 1 when some key occurs more than
// once; 0: in the control memory. filters: with a filter in front of it where few rows are there; then there are no look-back words.
Result<JoinTable> build_join(Library& library, const JoinShape& shape, const KeyLayout& layout, const Side& left,
                             uint64_t word_count, Memory& memory, Address duplicates = 0, bool filters = false);
void add(Arguments& a, const JoinTable& table);

// ---- in kernels

struct SideCode {
  Parameter slot, capacity;
  std::vector<Parameter> data, ranks;
  std::vector<Type> types;
  std::vector<bool> single;
  // Filled by start().
  Reg<U32> rows;
  std::vector<Reg<U64>> bases;

  void start(Builder& b);
  At at(Builder& b, size_t column, Reg<U32> row) const;
};
SideCode side_code(Builder& b, const std::string& name, const JoinShape& shape, const std::vector<bool>& single);

struct TableCode {
  JoinTable::Kind kind{};
  Parameter control, slots;
  KeyParameters key;
  // Filled by start().
  Reg<U64> control_at, slots_at;
  Reg<U32> count;

  void start(Builder& b);
};
TableCode table_code(Builder& b, const JoinShape& shape, JoinTable::Kind kind);

Key row_key(Builder& b, const JoinShape& shape, const TableCode& table, const SideCode& side, Reg<U32> row,
            Condition exists);

// Looks the keys of some rows up, all at once. Gives per key the row that is in the table (undefined when there is none) and its place.
struct Found {
  Reg<U32> row, place;
  Reg<Pred> hit;
};
std::vector<Found> find_rows(Builder& b, const JoinShape& shape, const TableCode& table, const SideCode& left,
                             const SideCode& probe, std::span<const Reg<U32>> rows, std::span<const Key> keys);

// into = into and all residual predicates hold between the rows.
void test_residuals(Builder& b, const JoinShape& shape, const SideCode& left, Reg<U32> left_row, const SideCode& right,
                    Reg<U32> right_row, Reg<Pred> into);

// ---- join_probe.cpp

Result<Pairs> join_pairs(Library& library, const JoinShape& shape, const KeyLayout& layout, const Side& left,
                         const Side& right, Memory& memory);
// ---- merge_join.cpp
// Rows with equal elements of two mergeable columns (merge.h), which are not empty. Waits.
Result<Pairs> merge_pairs(Library& library, const Vector& left, const Vector& right, Memory& memory);
// ---- join_loop.cpp
Result<Pairs> loop_pairs(Library& library, const JoinShape& shape, const Side& left, const Side& right, Memory& memory);

}  // namespace rndn::operators
