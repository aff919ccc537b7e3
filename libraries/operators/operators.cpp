// The object behind api.h. Each operator is a free function of its own file; this one only passes the library on.
#include "libraries/operators/operators.h"

#include <utility>

namespace rndn::operators {

uint32_t width(Type type) {
  switch (type) {
    case Type::u8:
    case Type::i8: return 1;
    case Type::u16:
    case Type::i16: return 2;
    case Type::i32:
    case Type::u32:
    case Type::f32: return 4;
    case Type::i64:
    case Type::f64: break;
  }
  return 8;
}

bool is_unsigned(Type type) { return type == Type::u8 || type == Type::u16 || type == Type::u32; }

std::optional<Type> type_of(hir::BasicType type, const encodings::Stored& stored) {
  const encodings::Addressed* form = encodings::find(stored).addressed();
  if (!form || stored.reference) return std::nullopt;
  if (stored.kind == encodings::Kind::plain) switch (type) {
#define BASIC_TYPE(id, name, letters, family, rank, bits, stored_, rep, operators_, ...) \
  case hir::BasicType::id: return Type::operators_;
#include "frontend/types.def"
#undef BASIC_TYPE
    }
  switch (form->memory(type, stored)) {
    case ptx::Type::u8: return Type::u8;
    case ptx::Type::s8: return Type::i8;
    case ptx::Type::u16: return Type::u16;
    case ptx::Type::s16: return Type::i16;
    case ptx::Type::u32: return Type::u32;
    case ptx::Type::s32: return Type::i32;
    default: return std::nullopt;
  }
}

encodings::Stored stored_of(hir::BasicType type, Type form) {
  if (form == type_of(type, {})) return {};
  return {.kind = encodings::Kind::narrow,
          .bytes = static_cast<uint8_t>(width(form)),
          .is_signed = !is_unsigned(form)};
}

bool are_comparable(Type x, Type y) {
  const auto fits = [](Type t) { return width(t) <= 4 && t != Type::f32; };
  return x == y || (fits(x) && fits(y) && is_unsigned(x) == is_unsigned(y));
}

struct Operators::State {
  Library library;
  Options options;
};

Operators::Operators(device::Device& device, Assemble assemble, const Options& options, FindCode find)
    : state_(new State{Library(device, std::move(assemble), std::move(find)), options}) {
  state_->library.options = options;
}
Operators::~Operators() = default;

Result<Vector> Operators::order(std::span<const Vector> columns, std::span<const bool> ascending, Memory& memory) {
  return operators::order(state_->library, columns, ascending, memory);
}
Result<Vector> Operators::top(std::span<const Vector> columns, std::span<const bool> ascending, uint64_t most,
                              Memory& memory) {
  return operators::top(state_->library, columns, ascending, most, memory);
}
Result<Groups> Operators::group(std::span<const Vector> columns, Memory& memory) {
  return operators::group(state_->library, columns, memory);
}
Result<Aggregates> Operators::aggregate(std::span<const Vector> keys, std::span<const Aggregate> wanted,
                                        Address sum_flags, Memory& memory) {
  return operators::aggregate(state_->library, keys, wanted, sum_flags, memory);
}
Result<FoldedGroups> Operators::folded_groups(const Folded& from, Memory& memory) {
  return operators::folded_groups(state_->library, from, memory);
}
Result<Vector> Operators::exact_sums(const Cells& cells, bool average, Type result, Memory& memory) {
  return operators::exact_sums(state_->library, cells, average, result, memory);
}
Result<Vector> Operators::unique(const Vector& column, Memory& memory) {
  return operators::unique(state_->library, column, memory);
}
Result<Pairs> Operators::join(std::span<const Compare> compare, std::span<const Vector> left,
                              std::span<const Vector> right, Memory& memory) {
  return operators::join(state_->library, state_->options, compare, left, right, memory);
}
Result<Lookup> Operators::lookup_table(std::span<const Vector> columns, Address duplicates, bool filters, bool hashed, Memory& memory) {
  return operators::lookup_table(state_->library, columns, duplicates, filters, hashed, memory);
}
Result<void> Operators::put_records(const Field& keys, uint64_t rows, int64_t least, std::span<const Field> fields, Address records) {
  return operators::put_records(state_->library, keys, rows, least, fields, records);
}
Result<Vector> Operators::member(const Vector& x, const Vector& y, Memory& memory) {
  return operators::member(state_->library, state_->options, x, y, memory);
}
Result<Vector> Operators::index_of(const Vector& x, const Vector& y, Memory& memory) {
  return operators::index_of(state_->library, x, y, memory);
}
Result<Vector> Operators::like(const Strings& strings, std::string_view pattern, Memory& memory,
                               std::optional<char> escape) {
  return operators::like(state_->library, strings, pattern, escape, memory);
}
Result<Vector> Operators::translate(const Vector& codes, Address table, uint64_t entries, Memory& memory) {
  return operators::translate(state_->library, codes, table, entries, memory);
}
Result<Vector> Operators::gather(const Vector& codes, Type type, Address table, uint64_t entries, Memory& memory) {
  return operators::gather(state_->library, codes, type, table, entries, memory);
}
Result<Vector> Operators::convert(const Vector& from, Type type, Memory& memory) {
  return operators::convert(state_->library, from, type, memory);
}
Result<Vector> Operators::decode(const Vector& from, hir::BasicType type, const encodings::Stored& stored,
                                 Memory& memory) {
  return operators::decode(state_->library, from, type, stored, memory);
}
Result<Vector> Operators::complex_part(const Vector& complex, bool imaginary, Memory& memory) {
  return operators::complex_part(state_->library, complex, imaginary, memory);
}
Result<Vector> Operators::to_complex(const Vector& reals, Memory& memory) {
  return operators::to_complex(state_->library, reals, memory);
}
Result<Vector> Operators::pair(const Vector& high, const Vector& low, uint64_t radix, int64_t nowhere, Memory& memory) {
  return operators::pair(state_->library, high, low, radix, nowhere, memory);
}

Result<Vector> Operators::scan(Scan operation, const Vector& x, const Vector& starts, Memory& memory) {
  return operators::scan(state_->library, operation, x, starts, memory);
}

Result<Vector> Operators::offsets(const Vector& lengths, Memory& memory) {
  return operators::offsets(state_->library, lengths, memory);
}
Result<Vector> Operators::cell_numbers(const Vector& lengths, const Vector& offsets, const Vector* like,
                                       Memory& memory) {
  return operators::cell_numbers(state_->library, lengths, offsets, like, memory);
}
Result<Cells> Operators::unique_cells(const Cells& cells, Memory& memory) {
  return operators::unique_cells(state_->library, cells, memory);
}
Result<Ranks> Operators::rank(const Strings& strings, Memory& memory) {
  return operators::rank(state_->library, strings, memory);
}
Result<DistinctStrings> Operators::distinct_strings(const Strings& strings, uint64_t most, Memory& memory) {
  return operators::distinct_strings(state_->library, strings, most, memory);
}
Result<Vector> Operators::numbers(uint64_t first, uint64_t count, Memory& memory) {
  return operators::numbers(state_->library, first, count, memory);
}
Result<Same> Operators::same_as(const Strings& strings, const Strings& literals, Memory& memory) {
  return operators::same_as(state_->library, strings, literals, memory);
}
Result<Vector> Operators::places_among(const Strings& strings, const Strings& literals, Memory& memory) {
  return operators::places_among(state_->library, strings, literals, memory);
}
Result<Strings> Operators::cut(const Strings& strings, uint64_t first, uint64_t most, bool characters,
                               Memory& memory) {
  return operators::cut(state_->library, strings, first, most, characters, memory);
}
Result<Strings> Operators::concatenate(std::span<const Strings> parts, Memory& memory) {
  return operators::concatenate(state_->library, parts, memory);
}
Result<Vector> Operators::lengths(const Strings& strings, bool characters, Memory& memory) {
  return operators::lengths(state_->library, strings, characters, memory);
}
Result<Cased> Operators::to_case(const Strings& strings, bool upper, Memory& memory) {
  return operators::to_case(state_->library, strings, upper, memory);
}
Result<Vector> Operators::not_ascii(const Strings& strings, Memory& memory) {
  return operators::not_ascii(state_->library, strings, memory);
}
Result<Strings> Operators::trimmed(const Strings& strings, std::string_view set, bool front, bool back, Memory& memory) {
  return operators::trimmed(state_->library, strings, set, front, back, memory);
}
Result<Strings> Operators::part_between(const Strings& strings, std::string_view separator, uint64_t number, Memory& memory) {
  return operators::part_between(state_->library, strings, separator, number, memory);
}
Result<Strings> Operators::tail(const Strings& strings, uint64_t characters, bool without, Memory& memory) {
  return operators::tail(state_->library, strings, characters, without, memory);
}
Result<Vector> Operators::positions(const Strings& strings, std::string_view wanted, Memory& memory) {
  return operators::positions(state_->library, strings, wanted, memory);
}
Result<Strings> Operators::integer_texts(const Vector& integers, uint64_t count, Memory& memory) {
  return operators::integer_texts(state_->library, integers, count, memory);
}
Result<Strings> Operators::join_strings(std::span<const Strings> parts, uint64_t count, Memory& memory) {
  return operators::join_strings(state_->library, parts, count, memory);
}
Result<Strings> Operators::replace_parts(const Strings& strings, std::string_view what, std::string_view by, Memory& memory) {
  return operators::replace_parts(state_->library, strings, what, by, memory);
}
Result<Strings> Operators::pad_strings(const Strings& strings, uint64_t wanted, std::string_view by, bool front, Memory& memory) {
  return operators::pad_strings(state_->library, strings, wanted, by, front, memory);
}
Result<Strings> Operators::reversed(const Strings& strings, Memory& memory) {
  return operators::reversed(state_->library, strings, memory);
}
Result<void> Operators::put_bytes(const Vector& at, const Vector& bytes, Address into) {
  return operators::put_bytes(state_->library, at, bytes, into);
}
Result<Strings> Operators::replace(const Strings& strings, const Vector& at, const Strings& others, Memory& memory) {
  return operators::replace(state_->library, strings, at, others, memory);
}

Result<Relation> Operators::select(const Relation& relation, const Vector& mask, Memory& memory) {
  return operators::select(state_->library, relation, mask, memory);
}
Result<Relation> Operators::project(const Relation& relation, std::span<const uint32_t> columns) {
  return operators::project(relation, columns);
}
Result<Relation> Operators::distinct(const Relation& relation, Memory& memory) {
  return operators::distinct(state_->library, relation, memory);
}
Result<Relation> Operators::product(const Relation& left, const Relation& right, Memory& memory) {
  return operators::product(state_->library, left, right, memory);
}
Result<Relation> Operators::join_relations(std::span<const JoinCondition> conditions, const Relation& left,
                                           const Relation& right, Memory& memory) {
  return operators::join_relations(state_->library, state_->options, conditions, left, right, memory);
}
Result<Relation> Operators::unite(const Relation& left, const Relation& right, Memory& memory) {
  return operators::unite(state_->library, left, right, memory);
}
Result<Relation> Operators::intersect(const Relation& left, const Relation& right, Memory& memory) {
  return operators::intersect(state_->library, left, right, memory);
}
Result<Relation> Operators::subtract(const Relation& left, const Relation& right, Memory& memory) {
  return operators::subtract(state_->library, left, right, memory);
}

void Operators::recover() { state_->library.zero_again(); }
Result<Address> Operators::differs() { return state_->library.differs(); }
void Operators::measure(bool on) { state_->library.measure = on; }
std::vector<Launch> Operators::take_launches() { return std::exchange(state_->library.launches, {}); }

}  // namespace rndn::operators
