// HorseIR types: names, interning, text. Interning is a hash table over the structure (open addressing, linear
// probing), so that equality is equality of ids; a lookup costs O(number of components).
#include "frontend/types.h"

#include <algorithm>

namespace rndn::hir {

namespace {

size_t hash(const Type& type) {
  size_t h = static_cast<size_t>(type.kind) * 31 + static_cast<size_t>(type.basic) * 131;
  for (TypeId c : type.components) h = (h ^ index(c)) * 0x9E3779B97F4A7C15u;
  return h ^ (h >> 29);
}

}  // namespace

std::string_view basic_type_name(BasicType type) { return row(type).name; }

bool parse_basic_type(std::string_view word, BasicType& type) {
  for (size_t i = 0; i < basic_type_count; ++i) {
    const BasicTypeRow& r = basic_type_rows[i];
    if (r.name == word || (word.size() == 1 && r.letters.find(word) != r.letters.npos))
      return type = static_cast<BasicType>(i), true;
  }
  return false;
}

TypeTable::TypeTable() {
  slots_.assign(64, UINT32_MAX);
  types_.raw().reserve(32);
  extents_.raw().reserve(32);
  for (size_t i = 0; i < basic_type_count; ++i) intern({TypeKind::basic, static_cast<BasicType>(i), {}});
  wildcard_ = intern({TypeKind::wildcard, BasicType::boolean, {}});
  table_ = intern({TypeKind::table, BasicType::boolean, {}});
  ktable_ = intern({TypeKind::ktable, BasicType::boolean, {}});
  function_ = intern({TypeKind::function, BasicType::boolean, {}});
}

TypeId TypeTable::intern(Type type) {
  // One cell type repeated is a list only when it is written once: list<T> and list<T,T> differ, tuple(T) is list(T).
  if (type.kind == TypeKind::tuple && type.components.size() == 1) type.kind = TypeKind::list;
  // The two published spellings of what `group` returns are one type: dict<i64,list<i64>> is dict<i64,i64>.
  if (type.kind == TypeKind::dict && type.components.size() == 2 && type.components[0] == basic(BasicType::i64)) {
    const Type& value = types_[type.components[1]];
    if (value.kind == TypeKind::list && value.components[0] == basic(BasicType::i64))
      type.components[1] = basic(BasicType::i64);
  }
  size_t mask = slots_.size() - 1;
  size_t at = hash(type) & mask;
  for (; slots_[at] != UINT32_MAX; at = (at + 1) & mask)
    if (types_[static_cast<TypeId>(slots_[at])] == type) return static_cast<TypeId>(slots_[at]);
  Extent extent{1, 1};
  for (TypeId c : type.components) {
    extent.depth = std::max(extent.depth, extents_[c].depth + 1);
    extent.nodes = std::min<uint32_t>(extent.nodes + extents_[c].nodes, 1u << 30);
  }
  extents_.add(extent);
  TypeId id = types_.add(std::move(type));
  slots_[at] = index(id);
  if (types_.size() * 2 > slots_.size()) {
    slots_.assign(slots_.size() * 2, UINT32_MAX);
    mask = slots_.size() - 1;
    for (uint32_t i = 0; i < types_.size(); ++i) {
      at = hash(types_[static_cast<TypeId>(i)]) & mask;
      while (slots_[at] != UINT32_MAX) at = (at + 1) & mask;
      slots_[at] = i;
    }
  }
  return id;
}

TypeId TypeTable::list(TypeId cell) { return intern({TypeKind::list, BasicType::boolean, {cell}}); }

TypeId TypeTable::tuple(std::span<const TypeId> cells) {
  return intern({TypeKind::tuple, BasicType::boolean, {cells.begin(), cells.end()}});
}

TypeId TypeTable::dict(TypeId key, TypeId value) { return intern({TypeKind::dict, BasicType::boolean, {key, value}}); }

TypeId TypeTable::enumeration(TypeId key) { return intern({TypeKind::enumeration, BasicType::boolean, {key}}); }

bool TypeTable::contains_wildcard(TypeId t) const {
  if (t == wildcard_) return true;
  for (TypeId c : types_[t].components)
    if (contains_wildcard(c)) return true;
  return false;
}

std::string TypeTable::text(TypeId t) const {
  const Type& type = types_[t];
  std::string out;
  switch (type.kind) {
    case TypeKind::wildcard: return "?";
    case TypeKind::basic: return std::string(basic_type_name(type.basic));
    case TypeKind::table: return "table";
    case TypeKind::ktable: return "ktable";
    case TypeKind::function: return "func";
    case TypeKind::list:
    case TypeKind::tuple: out = "list"; break;
    case TypeKind::dict: out = "dict"; break;
    case TypeKind::enumeration: out = "enum"; break;
  }
  for (size_t i = 0; i < type.components.size(); ++i) {
    out += i == 0 ? '<' : ',';
    out += text(type.components[i]);
  }
  out += '>';
  return out;
}

}  // namespace rndn::hir
