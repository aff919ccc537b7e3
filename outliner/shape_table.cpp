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

namespace {

// What is longer is cut in the middle: a chain of selections would be written out anew for each of its vectors.
constexpr size_t most_selections = 4, most_parts = 8, most_shown_levels = 4;

}  // namespace

std::string ShapeTable::text(SizeId id, const hir::Program& program) const {
  const auto object = [&](const Size& s) {
    const NameId name = objects_[s.object];
    return is_none(name) ? fmt::format("#{}", index(s.object)) : std::string(program.text(name));
  };
  const auto selected = [&](SizeId of) { return !is_none(of) && sizes_[of].kind == Size::compressed; };
  std::string out;
  size_t selections = 0, skipped = 0;
  for (; selected(id); id = sizes_[id].base) {
    if (++selections <= most_selections)
      out += fmt::format("comp({}, ", object(sizes_[id]));
    else
      ++skipped;
  }
  if (skipped) out += fmt::format("... {} more ..., ", skipped);
  if (is_none(id)) {
    out += "unassigned";
  } else {
    const Size& s = sizes_[id];
    switch (s.kind) {
      case Size::init: out += "unassigned"; break;
      case Size::constant: out += std::to_string(s.value); break;
      case Size::symbol: out += program.text(s.name); break;
      case Size::dynamic:
        out += s.tag ? fmt::format("dyn({}.{})", object(s), s.tag) : fmt::format("dyn({})", object(s));
        break;
      case Size::compressed: break;  // not at the end of the chain
    }
  }
  return out.append(selections - skipped, ')');
}

std::string ShapeTable::text(ShapeId id, const hir::Program& program, size_t level) const {
  if (is_none(id)) return "unassigned";
  if (level == most_shown_levels) return "...";
  const Shape& s = shapes_[id];
  std::string parts;
  for (size_t k = 0; k < s.parts.size() && k <= most_parts; ++k) {
    if (k) parts += ", ";
    parts += k < most_parts ? text(s.parts[k], program, level + 1) : fmt::format("... {} more", s.parts.size() - k);
  }
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
