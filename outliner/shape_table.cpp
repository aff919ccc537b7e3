// Shapes and sizes by number: equal ones have equal ids. And their text.
#include <algorithm>

#include "outliner/analysis.h"

namespace rndn::outliner {

namespace {

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 29;
}
uint64_t hash_of(const Size& s) {
  uint64_t h = mix(static_cast<uint64_t>(s.kind), static_cast<uint64_t>(s.value));
  for (uint32_t part : {index(s.name), index(s.object), s.tag, index(s.base)}) h = mix(h, part);
  return h;
}
uint64_t hash_of(const Shape& s) {
  uint64_t h = mix(mix(static_cast<uint64_t>(s.kind), index(s.size)), index(s.size2));
  for (ShapeId part : s.parts) h = mix(h, index(part));
  return h;
}

// Open addressing with linear probing, at most half full.
template <class Id, class T>
Id intern_in(IdVector<Id, T>& values, std::vector<uint32_t>& slots, const T& value) {
  if (2 * (values.size() + 1) > slots.size()) {
    slots.assign(std::max<size_t>(64, 2 * slots.size()), UINT32_MAX);
    for (uint32_t i = 0; i < values.size(); ++i) {
      size_t at = hash_of(values[static_cast<Id>(i)]) & (slots.size() - 1);
      while (slots[at] != UINT32_MAX) at = (at + 1) & (slots.size() - 1);
      slots[at] = i;
    }
  }
  size_t at = hash_of(value) & (slots.size() - 1);
  for (; slots[at] != UINT32_MAX; at = (at + 1) & (slots.size() - 1))
    if (values[static_cast<Id>(slots[at])] == value) return static_cast<Id>(slots[at]);
  slots[at] = static_cast<uint32_t>(values.size());
  return values.add(value);
}

}  // namespace

SizeId ShapeTable::intern(const Size& size) { return intern_in(sizes_, size_slots_, size); }
ShapeId ShapeTable::intern(const Shape& shape) { return intern_in(shapes_, shape_slots_, shape); }
ShapeId ShapeTable::intern_vector(SizeId size) {
  const ShapeId id = intern(Shape{.kind = Shape::vector, .size = size, .parts = {}});
  if (is_none(size)) return id;
  if (index(size) >= vectors_.size()) vectors_.resize(std::max<size_t>(64, 2 * index(size)), none<ShapeId>());
  return vectors_[size] = id;
}

std::string ShapeTable::text(SizeId id, const hir::Program& program) const {
  if (is_none(id)) return "unassigned";
  const Size& s = sizes_[id];
  const auto object = [&] {
    const NameId name = objects_[s.object];
    return is_none(name) ? fmt::format("#{}", index(s.object)) : std::string(program.text(name));
  };
  switch (s.kind) {
    case Size::init: return "unassigned";
    case Size::constant: return fmt::format("{}", s.value);
    case Size::symbol: return std::string(program.text(s.name));
    case Size::compressed: return fmt::format("comp({}, {})", object(), text(s.base, program));
    case Size::dynamic: return s.tag ? fmt::format("dyn({}.{})", object(), s.tag) : fmt::format("dyn({})", object());
  }
  return "?";
}

std::string ShapeTable::text(ShapeId id, const hir::Program& program) const {
  if (is_none(id)) return "unassigned";
  const Shape& s = shapes_[id];
  std::string parts;
  for (ShapeId part : s.parts) parts += (parts.empty() ? "" : ", ") + text(part, program);
  switch (s.kind) {
    case Shape::wild: return "?";
    case Shape::vector: return fmt::format("vector<{}>", text(s.size, program));
    case Shape::list: return fmt::format("list<{}, {{{}}}>", text(s.size, program), parts);
    case Shape::table: return fmt::format("table<{}, {}>", text(s.size2, program), text(s.size, program));
    case Shape::dict: return fmt::format("dict<{}>", parts);
    case Shape::enumeration: return fmt::format("enum<{}>", parts);
    case Shape::ktable: return fmt::format("ktable<{}>", parts);
  }
  return "?";
}

}  // namespace rndn::outliner
