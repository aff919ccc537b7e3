// SQL operators on the device: order, group, unique, join_index, member, like
// (docs/horseir.md, "Builtins: sorting, grouping and searching").
//
//   Operators sql(device, assemble);                       // kernels are assembled and loaded on first use, once per object
//   Result<Vector> permutation = sql.order(columns, ascending, memory);
//
// An operator is its kernels and its host driver side by side in one file. Work is queued on the device's stream; an operator may wait for
// the device once, unless Memory::foreseen knows the answer, to learn the sizes that decide what comes next. Its temporary memory may be reused by whatever is queued after it.
//
// A result whose length is found while it is made has room for as many elements as it can have. Where that is more than the memory allows
// (Memory::most_unknown) its elements are counted in a pass of their own, and it is made as long as it is.
//
// Every result is deterministic and, but for the order of groups that a hash table finds, the specification's choice: stable order, groups
// ascending, pairs by right row and then left row.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libraries/base/errors/result.h"
#include "ptx/encodings/encodings.h"
#include "ptx/ir.h"
#include "runtime/device/device.h"

namespace rndn::operators {

using device::Address;

// How the elements of a vector lie in memory. bool, char and text codes are unsigned, everything else is signed.
enum class Type : uint8_t { u8, i8, i16, i32, u32, i64, f32, f64, u16 };
uint32_t width(Type type);  // bytes
bool is_unsigned(Type type);
// The type whose elements lie in memory as those of `type` do with that encoding; none: operators know no such type, and take the elements `decoded`.
std::optional<Type> type_of(hir::BasicType type, const encodings::Stored& stored);
// How elements of `type` lie that an operator gave as `form`.
encodings::Stored stored_of(hir::BasicType type, Type form);
// `member` takes such types on its two sides.
bool are_comparable(Type x, Type y);

// A vector in device memory.
struct Vector {
  Type type{};
  Address data = 0;
  Address size_slot = 0;  // of a u64 in device memory: how many elements there are; 0: `capacity` of them
  uint64_t capacity = 0;  // elements at most
  // Every element lies in min..max (a bound that need not be tight); nothing is known when min > max. Not for floats.
  int64_t min = 1, max = 0;
  bool known() const { return min <= max; }
  bool ascending = false;  // integers: no element is less than the one before it. Saves `group` and `unique` the sort, `join` a table
  // Text codes that are to be ordered: u32 per code, its place in byte order. 0: the codes themselves are in order, or order does not matter.
  Address ranks = 0;
};

// Cells of a list in one piece: cell j has the elements offsets[j] .. offsets[j + 1] - 1 of `elements`.
struct Cells {
  Vector elements;      // exact: capacity is the size
  Address offsets = 0;  // u64[count + 1], the first is 0
  uint64_t count = 0;
};

// Strings in device memory: `handles[i]` is offset << 24 | length into `pad` (runtime/data/column.h, Encoding::text).
struct Strings {
  Address handles = 0;  // u64[count]
  Address pad = 0;      // bytes, in whole words of eight: 0 behind the last
  uint64_t count = 0;
  uint64_t pad_bytes = 0;
};

// What equals one of some literals has one number.
struct Same {
  Vector numbers;    // u32 per string: the first one that equals the same literal; of others their own number
  Address literals;  // u32 per literal: the first string that equals it, or UINT32_MAX
};

// Texts in another case. Letters that are not ASCII stay as they are.
struct Cased {
  Strings strings;
  Vector others;  // i64, ascending: the strings with bytes that are not ASCII
};

// Equal strings have one number, which ascend with the first strings that have them.
struct DistinctStrings {
  Vector of;     // u32 per string
  Vector first;  // u32 per distinct string: the first one that is equal
};

struct Ranks {
  Vector of;     // u32 per string: its place among the distinct strings in byte order; equal strings, equal ranks
  Vector first;  // i64 per distinct string, in byte order: the first one that is equal
};

// Where operators get memory from. Owned by the caller; addresses are 256-byte aligned.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual Result<Address> temporary(uint64_t bytes) = 0;      // until the operator returns; contents undefined
  virtual Result<Address> result(uint64_t bytes) = 0;         // belongs to the operator's result; contents undefined
  virtual Result<device::Mapped> mapped(uint64_t bytes) = 0;  // for sizes and flags, until the operator returns; zeroed
  // What kernels will write to `found`, which `mapped` gave, where an earlier run of the same operator on the same vectors tells it; null: wait for it.
  // Where they write something else, all later kernels do nothing (Operators::differs), and whoever told it notices. `what` names the question.
  virtual const uint64_t* foreseen([[maybe_unused]] std::string_view what, [[maybe_unused]] const device::Mapped& found,
                                   [[maybe_unused]] size_t words) {
    return nullptr;
  }
  // The device was waited for. An error ends the operator: what it went on with was not so.
  virtual Result<void> waited() { return {}; }
  // What `result` gave belongs to none after all, once the work so far is done. It may stay until the operator returns.
  virtual void give_back(Address) {}
  // The most bytes that are taken where fewer may turn out to be needed. What might be longer is counted first.
  virtual uint64_t most_unknown() const { return UINT64_MAX; }
  bool counts_first(uint64_t bytes) const { return bytes > most_unknown(); }
};

// One launch of a library kernel, for reports.
struct Launch {
  std::string_view kernel;                 // lives as long as the Operators
  uint32_t first_mark = 0, last_mark = 0;  // Device::record_mark, around the launch
  uint64_t floor_bytes = 0;                // bytes that it must move at least
  uint32_t registers = 0, shared_bytes = 0;
  bool is_late = false;  // its code was made for it, and not before
};

// A kernel whose code can be made before there is a device, for any target.
struct ReadyKernel {
  std::string name;  // tells everything that it is built for
  uint32_t block_size = 0;
  ptx::Module module;  // of it alone
};
std::vector<ReadyKernel> ready_kernels();
struct KernelCode {
  uint32_t block_size = 0;
  std::span<const std::byte> cubin;
};

enum class Compare : uint8_t { eq, neq, lt, gt, leq, geq };

struct Groups {
  Vector
      keys;  // i64: the smallest row of every group; groups in ascending order of their values, or of these rows (Options::Group)
  Cells rows;  // i64: the rows of every group, ascending
};

// What is made of the values of a group's rows. `values` is as long as the keys (len: not looked at).
// distinct: how many different values, as `unique` tells them apart; of one column per call.
enum class Reduce : uint8_t { len, sum, avg, min, max, distinct };
struct Aggregate {
  Reduce reduce{};
  Vector values;
  Type result{};  // see can_aggregate
};
// Integer sums wrap in 64 bits and are cut to the result; those of floats are exact and rounded once; averages are divided in f64; minima and maxima pass over NaN.
bool can_aggregate(Reduce reduce, Type values, Type result);
struct Aggregates {
  Vector keys;                  // as Groups::keys
  std::vector<Vector> results;  // per Aggregate, one element per group
};

// What a kernel folded into tables of hashed keys (ptx/codegen/sink_hash.cpp).
struct FoldedColumn {
  Address data = 0;  // an entry per slot of the last table
  uint32_t bytes = 8;  // 4 or 8 per entry
  bool flip = false;   // its sign bits are to be turned
};
struct Folded {
  Address tables = 0;  // u64[slots] each
  uint64_t slots = 0;
  std::vector<uint64_t> greatest;  // that each word of a key can be, at most eight
  Address state = 0;               // u32: all ones where the tables were large enough
  std::vector<FoldedColumn> columns;
  // Of two u64 in mapped memory, for the number of groups and the state: then nothing waits, for tables of at most most_unwaited slots.
  Address report = 0;
  static constexpr uint64_t most_unwaited = 2048;
};
struct FoldedGroups {
  uint64_t groups = 0;    // with a report: at most, and `size_slot` has the number
  Address size_slot = 0;
  uint32_t state = UINT32_MAX;
  std::vector<Address> columns;  // an element per group, ascending by their keys; none unless the tables were large enough
};

// Running reductions. Sums of integers are i64 and wrap, those of floats are made in f64; minima and maxima pass over NaN.
enum class Scan : uint8_t { sum, min, max };

struct Pairs {
  Vector left, right;  // i64, equally long
};

// A relation: columns of equal length. Its rows are equal as `join` has it: a NaN equals nothing, not even itself.
using Relation = std::vector<Vector>;

// A table of rows by key for kernels that ask it (ptx/lookup/lookup.h): the words that they get. None: its keys have
// more than 64 bits and no more columns than lookup::most_shifted.
struct Lookup {
  std::vector<uint64_t> words;
  bool filters = false;  // a filter may stand in front of it
};

// A vector, and where its elements lie in records (ptx/encodings/record.cpp).
struct Field {
  hir::BasicType type{};
  encodings::Stored from, to;
  Address data = 0;
};

// A filter is made where at most one in so many of the rows that there may be is there: of more, too many keys would pass it.
inline constexpr uint64_t least_absent = 4;
// log2 of its bits, of a table with so many rows and so many possible keys; keys 0: any number.
uint32_t filter_bits_log2(uint64_t rows, uint64_t keys);

// Possible keys of so many rows up to which a table of rows by key has a slot for each.
uint64_t most_direct_slots(uint64_t rows);

struct JoinCondition {  // left[`left`] compare right[`right`]
  Compare compare{};
  uint32_t left = 0, right = 0;
};

// The alternatives of the evaluation; `automatic` picks by size.
struct Options {
  enum class Sort : uint8_t { automatic, radix, bitonic } sort = Sort::automatic;
  // sort: by the keys; hash: by a hash table, groups in order of their first rows; automatic: sort, and tables of few groups where they fit
  enum class Group : uint8_t { automatic, sort, hash } group = Group::automatic;
  uint64_t hash_slots = uint64_t{1} << 22;  // of the first table for groups: what a cache holds
  uint32_t text_hash_bits = 64;             // of the hashes of strings that are looked at: tests make them collide
  bool ordered = false;                     // groups ascend in any case; join pairs always come by right row
  // sort: all rows are sorted; select: samples tell which rows can be among the first, where that pays; automatic: select
  enum class Top : uint8_t { automatic, select, sort } top = Top::automatic;
  enum class Join : uint8_t { automatic, hash, loop } join = Join::automatic;
  enum class Member : uint8_t { automatic, hash, loop } member = Member::automatic;
  bool operator==(const Options&) const = default;
};

// Not thread-safe; one per device. Columns of one call are equally long. Errors: what the device reports (fault world), memory, and vectors that
// are longer than 2^32 - 2 elements (fault input).
class Operators {
 public:
  // Turns a module into a cubin for the device's target.
  using Assemble = std::function<Result<std::vector<std::byte>>(const ptx::Module& module)>;
  // Looks for the code of one of ready_kernels(), which lives as long as the object.
  using FindCode = std::function<std::optional<KernelCode>(std::string_view name)>;
  Operators(device::Device& device, Assemble assemble, const Options& options = {}, FindCode find = nullptr);
  ~Operators();
  Operators(const Operators&) = delete;

  // i64 permutation that sorts the rows, first column first. Stable, descending columns too. Floats: NaN after everything when ascending; -0 equals 0.
  Result<Vector> order(std::span<const Vector> columns, std::span<const bool> ascending, Memory& memory);
  // The first `most` of that permutation, or all of it where there are fewer rows.
  Result<Vector> top(std::span<const Vector> columns, std::span<const bool> ascending, uint64_t most, Memory& memory);
  Result<Groups> group(std::span<const Vector> columns, Memory& memory);
  // The same groups, and aggregates over their rows instead of the rows themselves: group, gathers and reductions as one.
  // sum_flags: where floats are summed, of flags (ptx/sums/exact_sum.h) that are set where results are not sure.
  Result<Aggregates> aggregate(std::span<const Vector> keys, std::span<const Aggregate> wanted, Address sum_flags,
                               Memory& memory);
  // Waits, unless there is a report.
  Result<FoldedGroups> folded_groups(const Folded& from, Memory& memory);
  // Per cell its exact sum, rounded once to `result`, f32 or f64, or that sum in f64 by the number of elements; of floats, averages of i64 too. Slower
  // than kernels, and always sure. Without offsets, one cell of all elements.
  Result<Vector> exact_sums(const Cells& cells, bool average, Type result, Memory& memory);
  // i64, ascending: the first row of every distinct value.
  Result<Vector> unique(const Vector& column, Memory& memory);
  // The same in every cell: positions within their cell.
  Result<Cells> unique_cells(const Cells& cells, Memory& memory);
  // Rows i of left and j of right with compare[k](left[k][i], right[k][j]) for all k. A column of one element stands for as many as there are
  // rows. The two columns of a predicate have the same type; text codes of one dictionary. Two ascending columns of integers whose keys repeat on
  // both sides may give 2^32 - 2 pairs; Join::hash has no such limit.
  Result<Pairs> join(std::span<const Compare> compare, std::span<const Vector> left, std::span<const Vector> right,
                     Memory& memory);
  // The first row of every key of these columns of integers and codes, in temporary memory. duplicates: of a u32 that becomes 1 when a key
  // occurs more than once. filters: with a filter where few of the rows that there may be are there. hashed: even where
  // there are few possible keys. Waits for nothing.
  Result<Lookup> lookup_table(std::span<const Vector> columns, Address duplicates, bool filters, bool hashed, Memory& memory);
  // Into `records`: of each of so many rows the fields, in the record whose number its key is above `least`. Keys are integers, each of
  // least .. least + rows - 1 once; `to` of all fields is of records of the same bytes.
  Result<void> put_records(const Field& keys, uint64_t rows, int64_t least, std::span<const Field> fields, Address records);
  // bool (u8) per element of x: does it occur in y. Types that are comparable.
  Result<Vector> member(const Vector& x, const Vector& y, Memory& memory);
  // i64 per element of x: the first place in y where it occurs, or the length of y. Same types.
  Result<Vector> index_of(const Vector& x, const Vector& y, Memory& memory);
  // Per element of x: its reduction with those before it, from the last one whose u8 of `starts` is not 0. Equally long. Floats are combined in an
  // order that depends on the places of the elements alone.
  Result<Vector> scan(Scan operation, const Vector& x, const Vector& starts, Memory& memory);
  // i64, one more than there are lengths of cells: where each cell begins when they lie one behind the other, then their end.
  Result<Vector> offsets(const Vector& lengths, Memory& memory);
  // i64 per element of these cells, which begin at `offsets`: the number of its cell. There are as many as `like` has; without it that number
  // costs a wait.
  Result<Vector> cell_numbers(const Vector& lengths, const Vector& offsets, const Vector* like, Memory& memory);
  // bool (u8) per string: the whole string matches (`%`: any run of bytes, `_`: one byte, what the escape character precedes: itself).
  Result<Vector> like(const Strings& strings, std::string_view pattern, Memory& memory,
                      std::optional<char> escape = std::nullopt);
  Result<Ranks> rank(const Strings& strings, Memory& memory);
  // Without elements in `first`, unless there are no strings: some more than `most` are distinct. Waits.
  Result<DistinctStrings> distinct_strings(const Strings& strings, uint64_t most, Memory& memory);
  // u32: `count` numbers from `first` on.
  Result<Vector> numbers(uint64_t first, uint64_t count, Memory& memory);
  // `literals` are distinct and in byte order, at least one.
  Result<Same> same_as(const Strings& strings, const Strings& literals, Memory& memory);
  // u32 per string: twice the number of the literals before it, and 1 more where it equals one of them. Literals as above.
  Result<Vector> places_among(const Strings& strings, const Strings& literals, Memory& memory);
  // Of every string at most `most` bytes, or characters, from number `first` on. They lie where they lay.
  Result<Strings> cut(const Strings& strings, uint64_t first, uint64_t most, bool characters, Memory& memory);
  // One after the other, in one pad.
  Result<Strings> concatenate(std::span<const Strings> parts, Memory& memory);
  // i64 per string.
  Result<Vector> lengths(const Strings& strings, bool characters, Memory& memory);
  Result<Cased> to_case(const Strings& strings, bool upper, Memory& memory);
  // i64, ascending: the strings with bytes that are not ASCII.
  Result<Vector> not_ascii(const Strings& strings, Memory& memory);
  // Without the characters of `set`, which are ASCII, at the front and at the back. They lie where they lay, and so do the next two.
  Result<Strings> trimmed(const Strings& strings, std::string_view set, bool front, bool back, Memory& memory);
  // What stands before the separator, which is not empty, behind `number` others; nothing where there are fewer.
  Result<Strings> part_between(const Strings& strings, std::string_view separator, uint64_t number, Memory& memory);
  // The last characters, or what stands before them.
  Result<Strings> tail(const Strings& strings, uint64_t characters, bool without, Memory& memory);
  // i64: the number of the character, from 1 on, where these bytes first stand; 0: nowhere.
  Result<Vector> positions(const Strings& strings, std::string_view wanted, Memory& memory);
  // The decimal digits of the first `count` integers, with their sign where they are negative.
  Result<Strings> integer_texts(const Vector& integers, uint64_t count, Memory& memory);
  // One text of every part, one after the other, `count` times; a part of one string stands for as many.
  Result<Strings> join_strings(std::span<const Strings> parts, uint64_t count, Memory& memory);
  // `by` for every `what`, which is not empty, from the left.
  Result<Strings> replace_parts(const Strings& strings, std::string_view what, std::string_view by, Memory& memory);
  // Of as many characters: cut, or padded with those of `by`, which are ASCII, at the front or at the back.
  Result<Strings> pad_strings(const Strings& strings, uint64_t wanted, std::string_view by, bool front, Memory& memory);
  // The bytes from the last to the first; nothing of a string with "\r\n", which are one character.
  Result<Strings> reversed(const Strings& strings, Memory& memory);
  // into[at[k]] = bytes[k], of i64 and u8.
  Result<void> put_bytes(const Vector& at, const Vector& bytes, Address into);
  // The same strings but those numbered `at` (i64), which `others` has in that order.
  Result<Strings> replace(const Strings& strings, const Vector& at, const Strings& others, Memory& memory);
  // to[k] = table[codes[k]]: codes of u8, u16 or u32 through a u32 table of `entries`; codes beyond it (a text that is missing) stay as they are.
  Result<Vector> translate(const Vector& codes, Address table, uint64_t entries, Memory& memory);
  // to[k] = table[codes[k]]: the same codes through a table of integers of that type; zero for codes beyond its `entries`.
  Result<Vector> gather(const Vector& codes, Type type, Address table, uint64_t entries, Memory& memory);
  // The same numbers in another type, converted as PTX's cvt does: integers wrap, floats are truncated.
  Result<Vector> convert(const Vector& from, Type type, Memory& memory);
  // The elements of `from`, which lie encoded at from.data, in the plain form of their type.
  Result<Vector> decode(const Vector& from, hir::BasicType type, const encodings::Stored& stored, Memory& memory);
  // Complex numbers are pairs of f64: the real part, then the imaginary one; the type of their Vector is f64, its elements are 16 bytes.
  Result<Vector> complex_part(const Vector& complex, bool imaginary, Memory& memory);  // f64
  Result<Vector> to_complex(const Vector& reals, Memory& memory);                      // of f64s; imaginary parts are 0
  // i64: high[k] * radix + low[k] of i64s in 0 .. radix - 1; `nowhere` where either is radix - 1, unless that is 0. Equally long.
  Result<Vector> pair(const Vector& high, const Vector& low, uint64_t radix, int64_t nowhere, Memory& memory);

  // Relational algebra. Results have sizes that the host knows; an argument whose size is on the device costs a wait. The set operations
  // compare all columns, which have the same types on both sides, and give every row once: its first occurrence, in order. Of two ascending columns of
  // integers all results ascend, the union too.
  Result<Relation> select(const Relation& relation, const Vector& mask, Memory& memory);  // rows whose u8 is not 0
  Result<Relation> project(const Relation& relation,
                           std::span<const uint32_t> columns);  // the columns themselves, no copy
  Result<Relation> distinct(const Relation& relation, Memory& memory);
  // Columns of left, then of right; rows by right row and then left row. A product has at most 2^32 - 2 rows.
  Result<Relation> product(const Relation& left, const Relation& right, Memory& memory);
  Result<Relation> join_relations(std::span<const JoinCondition> conditions, const Relation& left,
                                  const Relation& right, Memory& memory);
  Result<Relation> unite(const Relation& left, const Relation& right, Memory& memory);
  Result<Relation> intersect(const Relation& left, const Relation& right, Memory& memory);
  Result<Relation> subtract(const Relation& left, const Relation& right, Memory& memory);

  // After an error, which may have come between two launches of an operator, or a wrong answer: what they keep zero is made so again.
  void recover();
  // Of a u32 in device memory, which kernels set where they find another answer than was foreseen (Memory::foreseen). All kernels of the operators do
  // nothing then, until recover().
  Result<Address> differs();

  // Launches since the last call; marks are recorded only while `measure` is on.
  void measure(bool on);
  std::vector<Launch> take_launches();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rndn::operators
