// The operators as free functions over the library of kernels, one file each. Private to this folder; api.h says what they do.
#pragma once
#include "libraries/operators/library.h"
#include "libraries/operators/api.h"

namespace rndn::operators {

// order.cpp
Result<Vector> order(Library& library, std::span<const Vector> columns, std::span<const bool> ascending,
                     Memory& memory);
Result<Vector> top(Library& library, std::span<const Vector> columns, std::span<const bool> ascending, uint64_t most,
                   Memory& memory);
Result<Groups> group(Library& library, std::span<const Vector> columns, Memory& memory);
Result<Vector> unique(Library& library, const Vector& column, Memory& memory);
// aggregate.cpp
Result<Aggregates> aggregate(Library& library, std::span<const Vector> keys, std::span<const Aggregate> wanted,
                             Address sum_flags, Memory& memory);
// folded_groups.cpp
Result<FoldedGroups> folded_groups(Library& library, const Folded& from, Memory& memory);
// exact_sums.cpp
Result<Vector> exact_sums(Library& library, const Cells& cells, bool average, Type result, Memory& memory);
// sorted_cells.cpp
Result<Cells> unique_cells(Library& library, const Cells& cells, Memory& memory);

// join_probe.cpp, member.cpp, like.cpp, rank.cpp, text/translate_codes.cpp
Result<Pairs> join(Library& library, const Options& options, std::span<const Compare> compare,
                   std::span<const Vector> left, std::span<const Vector> right, Memory& memory);
// join_table.cpp
Result<Lookup> lookup_table(Library& library, std::span<const Vector> columns, Address duplicates, bool filters,
                            bool hashed, Memory& memory);
// records.cpp
Result<void> put_records(Library& library, const Field& keys, uint64_t rows, int64_t least, std::span<const Field> fields, Address records);
Result<Vector> member(Library& library, const Options& options, const Vector& x, const Vector& y, Memory& memory);
Result<Vector> like(Library& library, const Strings& strings, std::string_view pattern, std::optional<char> escape,
                    Memory& memory);
Result<Ranks> rank(Library& library, const Strings& strings, Memory& memory);
Result<Vector> translate(Library& library, const Vector& codes, Address table, uint64_t entries, Memory& memory);
// text/distinct.cpp
Result<DistinctStrings> distinct_strings(Library& library, const Strings& strings, uint64_t most, Memory& memory);
// text/literals.cpp
Result<Same> same_as(Library& library, const Strings& strings, const Strings& literals, Memory& memory);
Result<Vector> places_among(Library& library, const Strings& strings, const Strings& literals, Memory& memory);
// text/strings.cpp
Result<Vector> numbers(Library& library, uint64_t first, uint64_t count, Memory& memory);
Result<Strings> cut(Library& library, const Strings& strings, uint64_t first, uint64_t most, bool characters,
                    Memory& memory);
Result<Strings> concatenate(Library& library, std::span<const Strings> parts, Memory& memory);
Result<Vector> lengths(Library& library, const Strings& strings, bool characters, Memory& memory);
Result<Cased> to_case(Library& library, const Strings& strings, bool upper, Memory& memory);
Result<Strings> replace(Library& library, const Strings& strings, const Vector& at, const Strings& others,
                        Memory& memory);
Result<Vector> not_ascii(Library& library, const Strings& strings, Memory& memory);
// text/parts.cpp
Result<Strings> trimmed(Library& library, const Strings& strings, std::string_view set, bool front, bool back,
                        Memory& memory);
Result<Strings> part_between(Library& library, const Strings& strings, std::string_view separator, uint64_t number,
                             Memory& memory);
Result<Strings> tail(Library& library, const Strings& strings, uint64_t characters, bool without, Memory& memory);
Result<Vector> positions(Library& library, const Strings& strings, std::string_view wanted, Memory& memory);
Result<void> put_bytes(Library& library, const Vector& at, const Vector& bytes, Address into);
// text/edit.cpp
Result<Strings> integer_texts(Library& library, const Vector& integers, uint64_t count, Memory& memory);
Result<Strings> join_strings(Library& library, std::span<const Strings> parts, uint64_t count, Memory& memory);
Result<Strings> replace_parts(Library& library, const Strings& strings, std::string_view what, std::string_view by,
                              Memory& memory);
Result<Strings> pad_strings(Library& library, const Strings& strings, uint64_t wanted, std::string_view by, bool front,
                            Memory& memory);
Result<Strings> reversed(Library& library, const Strings& strings, Memory& memory);
// elements.cpp
Result<Vector> gather(Library& library, const Vector& codes, Type type, Address table, uint64_t entries,
                      Memory& memory);
Result<Vector> convert(Library& library, const Vector& from, Type type, Memory& memory);
Result<Vector> decode(Library& library, const Vector& from, hir::BasicType type, const encodings::Stored& stored,
                      Memory& memory);
Result<Vector> complex_part(Library& library, const Vector& complex, bool imaginary, Memory& memory);
Result<Vector> to_complex(Library& library, const Vector& reals, Memory& memory);
Result<Vector> pair(Library& library, const Vector& high, const Vector& low, uint64_t radix, int64_t nowhere,
                    Memory& memory);

// cells.cpp
Result<Vector> offsets(Library& library, const Vector& lengths, Memory& memory);
Result<Vector> cell_numbers(Library& library, const Vector& lengths, const Vector& offsets, const Vector* like,
                            Memory& memory);

// scan.cpp
// The running sums of integers, where `starts` is not 0 anew, into `out`, whose memory is there: i64s.
Result<void> scan_sums(Library& library, const Vector& x, const Vector& starts, const Vector& out, Memory& memory);
Result<Vector> scan(Library& library, Scan operation, const Vector& x, const Vector& starts, Memory& memory);
// select.cpp
Result<Relation> select(Library& library, const Relation& relation, const Vector& mask, Memory& memory);
// sorted_sets.cpp
enum class SetOperation : uint8_t { unite, intersect, subtract };
// Whether it is one ascending column of integers that `sorted_set` takes; its size is exact.
bool is_sorted_set(const Relation& relation);
Result<Relation> sorted_set(Library& library, SetOperation operation, const Relation& left, const Relation& right,
                            Memory& memory);
// relations.cpp
// The relation with sizes that the host knows. A size on the device costs a wait.
Result<Relation> exact(Library& library, const Relation& relation);
Result<Relation> project(const Relation& relation, std::span<const uint32_t> columns);
Result<Vector> index_of(Library& library, const Vector& x, const Vector& y, Memory& memory);
Result<Relation> distinct(Library& library, const Relation& relation, Memory& memory);
Result<Relation> product(Library& library, const Relation& left, const Relation& right, Memory& memory);
Result<Relation> join_relations(Library& library, const Options& options, std::span<const JoinCondition> conditions,
                                const Relation& left, const Relation& right, Memory& memory);
Result<Relation> unite(Library& library, const Relation& left, const Relation& right, Memory& memory);
Result<Relation> intersect(Library& library, const Relation& left, const Relation& right, Memory& memory);
Result<Relation> subtract(Library& library, const Relation& left, const Relation& right, Memory& memory);

}  // namespace rndn::operators
