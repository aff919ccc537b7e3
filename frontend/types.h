// HorseIR types: small interned values. Two types are equal exactly when their TypeIds are.
#pragma once
#include <complex>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libraries/base/containers/id.h"

namespace rndn::hir {

// A value of a basic type is always a vector; a scalar is a vector of length 1.
enum class BasicType : uint8_t {
#define BASIC_TYPE(id, ...) id,
#include "frontend/types.def"
#undef BASIC_TYPE
};

// wide: integers beyond 64 bits, which few builtins know; those take them by name.
enum class Family : uint8_t { integer, wide, floating, complex, text, calendar };

// The columns of types.def that every pass reads.
struct BasicTypeRow {
  std::string_view name, letters;
  Family family;
  uint8_t rank;
  uint8_t bits;
  uint8_t width;         // bytes of an element on the host
  uint8_t device_width;  // on the device: the same, but for codes of text
  std::string_view wanted, expected;
};
inline constexpr uint8_t text_code_width = 4;
inline constexpr BasicTypeRow basic_type_rows[] = {
#define BASIC_TYPE(id, name, letters, family, rank, bits, stored, rep, operators, tokens, wanted, expected) \
  {name, letters, Family::family, rank, bits, sizeof(stored),                                               \
   Family::family == Family::text ? text_code_width : sizeof(stored), wanted, expected},
#include "frontend/types.def"
#undef BASIC_TYPE
};
inline constexpr size_t basic_type_count = std::size(basic_type_rows);
constexpr const BasicTypeRow& row(BasicType type) { return basic_type_rows[static_cast<size_t>(type)]; }

// Calls f.operator()<T>() with the C++ type of an element on the host.
template <class F>
constexpr decltype(auto) with_stored(BasicType type, F&& f) {
  switch (type) {
#define BASIC_TYPE(id, name, letters, family, rank, bits, stored, ...) \
  case BasicType::id: return f.template operator()<stored>();
#include "frontend/types.def"
#undef BASIC_TYPE
  }
  __builtin_unreachable();
}

enum class TypeKind : uint8_t {
  wildcard,  // `?`: to be inferred
  basic,
  list,      // any number of cells of components[0]; `list<?>` has a wildcard component
  tuple,     // list<T1,...,Tk>, k > 1: exactly k cells (also the type of a k-column table's list)
  dict,      // components: key, value
  enumeration,  // component: the key type
  table,
  ktable,
  function,
};

enum class TypeId : uint32_t {};

struct Type {
  TypeKind kind = TypeKind::wildcard;
  BasicType basic = BasicType::boolean;  // kind basic
  std::vector<TypeId> components;        // list, tuple, dict, enumeration
  bool operator==(const Type&) const = default;
};

std::string_view basic_type_name(BasicType type);
// Accepts the type words and the legacy aliases d m z u w v t. Returns false when `word` names no basic type.
bool parse_basic_type(std::string_view word, BasicType& type);

// Includes bool and char (docs/horseir.md, "Types").
inline bool is_integer(BasicType t) { return row(t).family == Family::integer; }
inline bool is_float(BasicType t) { return row(t).family == Family::floating; }
inline bool is_real(BasicType t) { return is_integer(t) || is_float(t); }
inline bool is_numeric(BasicType t) { return is_real(t) || row(t).family == Family::complex; }
inline bool is_text(BasicType t) { return row(t).family == Family::text; }
inline bool is_wide(BasicType t) { return row(t).family == Family::wide; }
// Numbers that are ordered: real ones, and wide integers.
inline bool is_ordered_number(BasicType t) { return is_real(t) || is_wide(t); }
inline bool is_calendar(BasicType t) { return row(t).family == Family::calendar; }
inline bool is_extended(BasicType t) { return t == BasicType::i64 || t == BasicType::f64 || is_wide(t); }

// Of two numbers the type that holds both (docs/horseir.md, "Types"); else the first.
inline BasicType widest(BasicType a, BasicType b) { return row(a).rank >= row(b).rank ? a : b; }

// Owns and interns types. The first ids are the basic types in enum order.
class TypeTable {
 public:
  TypeTable();
  TypeId intern(Type type);
  const Type& operator[](TypeId id) const { return types_[id]; }

  TypeId basic(BasicType t) const { return static_cast<TypeId>(t); }
  TypeId wildcard() const { return wildcard_; }
  TypeId table() const { return table_; }
  TypeId ktable() const { return ktable_; }
  TypeId function() const { return function_; }
  TypeId list(TypeId cell);
  TypeId tuple(std::span<const TypeId> cells);  // at least one cell; one cell: the same as list(cell)
  TypeId dict(TypeId key, TypeId value);
  TypeId enumeration(TypeId key);

  bool is_wildcard(TypeId t) const { return t == wildcard_; }
  bool contains_wildcard(TypeId t) const;
  // Passes recurse over types and print them, and types share their parts: `@dict(x, x)` again and again doubles the text. What
  // is larger than this is refused where it would arise.
  bool too_large(TypeId t) const { return extents_[t].depth > 32 || extents_[t].nodes > 20000; }
  bool is_basic(TypeId t) const { return index(t) < basic_type_count; }
  BasicType basic_of(TypeId t) const { return types_[t].basic; }  // requires is_basic
  std::string text(TypeId t) const;                               // as written in HorseIR

 private:
  struct Extent {
    uint32_t depth;  // levels of components, 1 for a basic type
    uint32_t nodes;  // types in its text, saturating
  };
  IdVector<TypeId, Type> types_;
  IdVector<TypeId, Extent> extents_;
  std::vector<uint32_t> slots_;  // hash table of type ids, a power of two in size; UINT32_MAX: free
  TypeId wildcard_, table_, ktable_, function_;
};

}  // namespace rndn::hir
