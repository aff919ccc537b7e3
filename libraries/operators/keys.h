// Sort keys: what a column becomes before it is sorted, and how several columns become one word. Private to this folder.
//
// A column's elements map to *sortable bits*: unsigned numbers in the order that is wanted.
//   integers  x xor flip, where flip turns the sign bit (signed types) and, for descending columns, every bit of the type
//   floats    -0 as 0; negative: ~x, else x xor sign; descending: complemented; NaN: all ones, in either direction
//   text      rank[code] xor flip, or the code itself; strings: eight bytes at a time, big-endian, zero-padded; then the length
// Columns whose bounds are known become value = (bits >> shift) - (low >> shift), where the `shift` low bits are equal in all rows, with
// 0 <= value < range. Neighbouring columns are packed into one word by mixed radix: word = value[0] * range[1] * range[2] + ... while
// the product of the ranges fits in 64 bits; 32-bit words where it fits in those. Constant columns vanish.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "libraries/operators/library.h"

namespace rndn::operators {

// Where the bits of a part come from. The letters name kernels.
enum class Source : char {
  u8 = 'a',
  u16 = 'b',
  u32 = 'c',
  u64 = 'd',  // integers by width, and codes in order
  f32 = 'e',
  f64 = 'f',
  rank8 = 'g',
  rank32 = 'h',  // codes through a table of u32 ranks
  cell = 'i',    // the number of the cell that an element belongs to
  word = 'j',
  rank16 = 'l',
  length = 'k',  // of a string: bytes 8 * number .. 8 * number + 7; bytes in all
};
inline constexpr Source all_sources[] = {Source::u8,    Source::u16,    Source::u32,  Source::u64,  Source::f32,    Source::f64,
                                     Source::rank8, Source::rank16, Source::rank32, Source::cell, Source::word, Source::length};

// One column, or a part of one, as it takes part in keys.
struct Part {
  Source source{};
  Address data = 0;     // elements; cell: u64 offsets; word, length: handles
  uint64_t extra = 0;   // ranks; cell: how many; word: the pad
  uint64_t number = 0;  // word: which
  uint64_t flip = 0;
  uint64_t low = 1, high = 0;  // bounds of the sortable bits; low > high: not known
  uint32_t shift = 0;
  bool known() const { return low <= high; }
  uint64_t span() const { return (high >> shift) - (low >> shift); }  // range - 1
};

Part make_part(const Vector& column, bool ascending);

// The columns of one operator: equally long.
struct Rows {
  uint64_t capacity = 0;  // rows at most
  Address size_slot = 0;  // 0: `capacity` rows
};
inline constexpr uint64_t most_rows = 0xFFFFFFFEu;  // row numbers have 32 bits
Rows rows_of(std::span<const Vector> columns);
// Refuses what row numbers of 32 bits cannot tell apart.
Result<void> check_rows(const Rows& rows);

// Learns the number of rows and the bounds of the parts that have none, where there is something to learn: one wait.
Result<uint64_t> find_bounds(Library& library, const Rows& rows, std::vector<Part>& parts, Memory& memory);

// Parts that share a word, most significant first.
struct Word {
  std::vector<Part> parts;
  std::vector<uint64_t> factors;  // value[k] * factors[k] are added up
  uint32_t bits = 0;              // significant bits of the word; at least 1
  bool wide() const { return bits > 32; }
  uint32_t digits() const { return (bits + 7) / 8; }
};
// Words, least significant first; at least one. Every part must be known.
std::vector<Word> pack_words(std::span<const Part> parts);

// --- In kernels -------------------------------------------------------------------------------------------------------------------

// Sortable bits in a register: 32 where the source has no more.
struct Bits {
  ptx::Reg<ptx::U32> narrow;
  ptx::Reg<ptx::U64> wide;
  bool is_wide() const { return wide.valid(); }
};
bool is_wide(Source source);

// A part's parameters as a kernel sees them, and what is passed for them.
struct PartCode {
  Source source{};
  ptx::ParameterOf<ptx::U64> data, extra, number, flip;
};
PartCode declare_part(ptx::Builder& b, Source source, uint32_t k);
void add_part(Arguments& arguments, const Part& part);
// The sortable bits of a row. Uniform control flow.
Bits load_bits(ptx::Builder& b, const PartCode& part, ptx::Reg<ptx::U32> row);
// The same with what is passed in registers: those that the source looks at.
struct PartValues {
  ptx::Reg<ptx::U64> data, extra, number, flip;
};
Bits load_bits(ptx::Builder& b, Source source, const PartValues& part, ptx::Reg<ptx::U32> row);
// Eight bytes of a string as a little-endian word, zero-padded: from its byte `first` on, which lies `at`. Reads whole words of the memory.
ptx::Reg<ptx::U64> load_bytes(ptx::Builder& b, ptx::Reg<ptx::U64> at, ptx::Reg<ptx::U32> first,
                              ptx::Reg<ptx::U32> length);
// Eight bytes of a string as a big-endian word, zero-padded: from its byte `first` on, which lies `at`.
ptx::Reg<ptx::U64> load_text_word(ptx::Builder& b, ptx::Reg<ptx::U64> at, ptx::Reg<ptx::U32> first,
                                  ptx::Reg<ptx::U32> length);
std::string source_letters(std::span<const Part> parts);
std::string source_letters(std::span<const Source> sources);

}  // namespace rndn::operators
