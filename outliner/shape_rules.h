// The state of the shape analysis (shapes.cpp) and a call as its rules (shape_rules.cpp) see it. Private to this folder.
#pragma once
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "outliner/analysis.h"

namespace rndn::outliner {

using Environment = std::vector<Value>;  // by variable

struct Analysis {
  const hir::Program& program;
  const hir::Function& function;
  ShapeTable& table;
  DiagnosticSink& sink;
  Shapes& out;
  // Objects are stable over repeated walks: by statement the first few that it makes, all others by (statement or use of a global, number).
  IdVector<hir::StatementId, InlineVector<ObjectId, 2>> objects;
  std::map<std::pair<uint64_t, uint32_t>, ObjectId> more_objects;
  bool report = true;          // only in the last walk of a loop body
  struct Loop {
    std::vector<Environment> breaks, continues;
  };
  std::vector<Loop> loops;
  std::map<std::pair<SizeId, SizeId>, SizeId> sums = {};  // of two sizes, the lesser id first
};

// A call as a rule sees it. `made` numbers the objects that the call creates.
struct Call {
  Analysis& a;
  hir::StatementId statement;
  NameId name;  // of the first target, for printing
  Span span;
  const hir::Expression& expression;
  std::span<Value> args;  // an assumption about a size changes them
  uint32_t made = 0;
  bool in_cells = false;  // of an each form: lengths within cells are no sizes
  uint8_t assumed = 0;    // bit k: operand k is assumed to be as long as the one that it must match

  ObjectId object() {
    ObjectId& known = place_of(made++);
    if (is_none(known)) known = a.table.add_object(name);
    return known;
  }
  ObjectId& place_of(uint32_t number) {
    constexpr uint32_t few = 8;
    if (number >= few || is_none(statement))
      return a.more_objects.try_emplace({index(statement), number}, none<ObjectId>()).first->second;
    auto& own = a.objects[statement];
    while (number >= own.size()) own.push_back(none<ObjectId>());
    return own[number];
  }
  SizeId dynamic(uint32_t tag = 0) {
    return a.table.intern(Size{.kind = Size::dynamic, .object = object(), .tag = tag});
  }
  const Shape& shape(const Value& v) const {
    static const Shape wild;
    return is_none(v.shape) ? wild : a.table[v.shape];
  }
};

inline ShapeId make_wild(ShapeTable& t) { return t.intern(Shape{}); }
// A size that is that of a single value as likely as any other: what the analysis cannot see into gave it.
inline ShapeId unseen_vector(Call& c) {
  const SizeId size = c.dynamic();
  c.a.out.unseen.push_back(size);
  return c.a.table.vector(size);
}
using Parts = InlineVector<ShapeId, 2>;
inline ShapeId make_list(ShapeTable& t, SizeId size, Parts parts) {
  return t.intern(Shape{.kind = Shape::list, .size = size, .parts = std::move(parts)});
}

// -1: not known.
inline int64_t constant_size(const ShapeTable& t, SizeId id) {
  if (is_none(id) || t[id].kind != Size::constant) return -1;
  return t[id].value;
}

// --- shape_rules.cpp ----------------------------------------------------------------------------------------------------------

// The shape of what is one or the other.
ShapeId merge_shapes(Call& c, ShapeId x, ShapeId y);

// The shape of the call's result; sets c.assumed, and reports sizes that are known to differ.
ShapeId apply(Call& c, hir::Builtin builtin);

}  // namespace rndn::outliner
