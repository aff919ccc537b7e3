// Tables of rows by key: what the kernels that fill them (libraries/operators/joins) and the kernels
// that ask them (there, and ptx/codegen) agree on.
//
// A table has one row per key, the smallest, in one of four forms:
//   direct    slots: u32 per key: ~row, or 0
//   exact     slots: u64, {tag, ~row} with the tag in the high half, or 0; from
//             place_of(hash(key), count) on, at most half of them taken. Keys are below 2^32 and
//             their own tags
//   compared  the same for wider keys, which are compared through the columns where tags agree
//   ascending no slots: the key of a row is its number, for one column whose elements ascend by one
// A key of several columns is their contributions, element - least: up to three are shifted together,
// of more the key is a hash, and the table is compared. An element whose contribution exceeds the
// column's span is in no row.
// Open addressing with linear probing: Knuth, "The Art of Computer Programming", vol. 3, 6.4.
//
// In front of it there may be a filter: a bit for each key that is in the table, others share it. A key whose bit is not set is in no row.
// It has 2^(32 - shift) bits, at least 8 for each row, in u32 words; the bit of a key is its low bits in a direct table, so that neighbours
// have neighbouring bits, and the high bits of its hash in the others. (B. Bloom, "Space/time trade-offs in hash coding with allowable errors",
// CACM 1970, with one hash function, since each is a read.)
#pragma once
#include <cstdint>

#include "ptx/builder.h"

namespace rndn::lookup {

enum Form : uint64_t { direct, exact, compared, ascending };

// What a kernel that asks a table gets: these words, then three per column of the key.
enum Word : uint32_t { slots, control, form, columns };
enum ColumnWord : uint32_t { least, span, shift, per_column };

inline constexpr size_t most_shifted = 3;

// In the table's control memory: u32, how many slots are in use by the scheme.
inline constexpr int64_t control_slots = 4;
// There, u32: the filter's shift, or no_filter; and behind the control memory, its words.
inline constexpr int64_t control_shift = 12, filter_words = 256;
inline constexpr uint32_t no_filter = 32;

// Hashes of 32 and 64 bits whose high bits are good (place_of uses those). Equal for equal keys.
ptx::Reg<ptx::U32> hash(ptx::Builder& b, ptx::Reg<ptx::U32> key);
ptx::Reg<ptx::U32> hash(ptx::Builder& b, ptx::Reg<ptx::U64> key);
// A hash of the contributions of several columns, one after the other; key: of those before, not valid for the first.
ptx::Reg<ptx::U64> mix(ptx::Builder& b, ptx::Reg<ptx::U64> key, ptx::Reg<ptx::U64> contribution);
// What stands beside the row: a key below 2^32 itself, of others another hash.
ptx::Reg<ptx::U32> tag(ptx::Builder& b, ptx::Reg<ptx::U64> key);
// hash * slots / 2^32
ptx::Reg<ptx::U32> place_of(ptx::Builder& b, ptx::Reg<ptx::U32> hash, ptx::Reg<ptx::U32> slots);
// The bit of the filter, of a key of a direct table and of a hash.
ptx::Reg<ptx::U32> filter_bit_of_key(ptx::Builder& b, ptx::Reg<ptx::U32> key, ptx::Reg<ptx::U32> shift);
ptx::Reg<ptx::U32> filter_bit_of_hash(ptx::Builder& b, ptx::Reg<ptx::U32> hash, ptx::Reg<ptx::U32> shift);
// place = place + 1 == slots ? 0 : place + 1
void next_place(ptx::Builder& b, ptx::Reg<ptx::U32> place, ptx::Reg<ptx::U32> slots);

}  // namespace rndn::lookup
