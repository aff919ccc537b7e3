// HorseIR types: small interned values. Two types are equal exactly when their TypeIds are.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libraries/base/containers/id.h"

namespace rndn::hir {

// A value of a basic type is always a vector; a scalar is a vector of length 1.
enum class BasicType : uint8_t { boolean, character, i8, i16, i32, i64, f32, f64, complex, sym, str, date, month, minute, second, time, dt };
inline constexpr size_t basic_type_count = 17;

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

inline bool is_integer(BasicType t) { return t <= BasicType::i64; }  // includes bool and char (docs/horseir.md, "Types")
inline bool is_float(BasicType t) { return t == BasicType::f32 || t == BasicType::f64; }
inline bool is_real(BasicType t) { return t <= BasicType::f64; }
inline bool is_numeric(BasicType t) { return t <= BasicType::complex; }
inline bool is_text(BasicType t) { return t == BasicType::sym || t == BasicType::str; }
inline bool is_calendar(BasicType t) { return t >= BasicType::date; }
inline bool is_extended(BasicType t) { return t == BasicType::i64 || t == BasicType::f64; }

// Owns and interns types. Ids 0..16 are the basic types in enum order.
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
