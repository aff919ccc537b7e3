// Shape analysis: the shape of every value of a function, as far as it follows from the program text.
//
// In: a type-checked function. Out: per statement the shapes, data objects and known scalars of its operands and results.
// Algorithm: one forward walk with an environment variable -> Value; `if` walks both arms and merges; loops walk their body until the
// environment at their head is stable, at most three times, after which what still changes becomes Wild. A value made in a loop
// body gets a new object at the loop's head, since equal objects of two iterations are different values.
// One rule function per hir::ShapeRule (horseir.md, 5.3); the binary rule is the table of 5.2.
// Sizes that are unknown but that a statement needs to be equal are assumed equal (`assume_equal`): the statement's facts mark the operand, and
// whoever computes it must compare the lengths at run time. Only sizes known to differ are errors here.
// Cost: O(statements x nesting depth). Leaves out: shapes across user functions (their results are dynamic).
#include <algorithm>
#include <map>
#include <span>

#include "libraries/base/check.h"
#include "outliner/analysis.h"

namespace rndn::outliner {
namespace {

using hir::Builtin;
using hir::ExpressionId;
using hir::ShapeRule;
using hir::StatementId;
using hir::VariableId;

using Environment = std::vector<Value>;  // by variable

struct Analysis {
  const hir::Program& program;
  const hir::Function& function;
  ShapeTable& table;
  DiagnosticSink& sink;
  Shapes& out;
  // Objects are stable over repeated walks: by statement the first few that it makes, all others by (statement or use of a global, number).
  IdVector<StatementId, InlineVector<ObjectId, 2>> objects;
  std::map<std::pair<uint64_t, uint32_t>, ObjectId> more_objects;
  bool report = true;          // only in the last walk of a loop body
  std::vector<SizeId> unseen;  // few
  struct Loop {
    std::vector<Environment> breaks, continues;
  };
  std::vector<Loop> loops;
};

// A call as a rule sees it. `made` numbers the objects that the call creates.
struct Call {
  Analysis& a;
  StatementId statement;
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

ShapeId make_wild(ShapeTable& t) { return t.intern(Shape{}); }
// A size that is that of a single value as likely as any other: what the analysis cannot see into gave it.
ShapeId unseen_vector(Call& c) {
  const SizeId size = c.dynamic();
  c.a.unseen.push_back(size);
  return c.a.table.vector(size);
}
using Parts = InlineVector<ShapeId, 2>;
ShapeId make_list(ShapeTable& t, SizeId size, Parts parts) {
  return t.intern(Shape{.kind = Shape::list, .size = size, .parts = std::move(parts)});
}

// -1: not known.
int64_t constant_size(const ShapeTable& t, SizeId id) {
  if (is_none(id) || t[id].kind != Size::constant) return -1;
  return t[id].value;
}

// --- Merging ------------------------------------------------------------------------------------------------------------------

SizeId merge_sizes(Call& c, SizeId x, SizeId y) {
  if (x == y) return x;
  if (is_none(x)) return y;
  if (is_none(y)) return x;
  const Size sx = c.a.table[x], sy = c.a.table[y];
  if (sx.kind == Size::compressed && sy.kind == Size::compressed && sx.base == sy.base)
    return c.a.table.intern(Size{.kind = Size::compressed, .object = c.object(), .base = sx.base});
  const SizeId merged = c.dynamic();
  c.a.unseen.push_back(merged);
  return merged;
}

ShapeId merge_shapes(Call& c, ShapeId x, ShapeId y) {
  if (x == y) return x;
  if (is_none(x)) return y;
  if (is_none(y)) return x;
  const Shape sx = c.a.table[x], sy = c.a.table[y];
  if (sx.kind != sy.kind) return make_wild(c.a.table);
  Shape merged{.kind = sx.kind, .size = merge_sizes(c, sx.size, sy.size), .size2 = merge_sizes(c, sx.size2, sy.size2)};
  if (sx.parts.size() == sy.parts.size()) {
    for (size_t i = 0; i < sx.parts.size(); ++i) merged.parts.push_back(merge_shapes(c, sx.parts[i], sy.parts[i]));
  } else {
    merged.parts.push_back(make_wild(c.a.table));
  }
  return c.a.table.intern(merged);
}

// All cells of a list as one.
ShapeId cell_shape(Call& c, const Shape& list) {
  ShapeId cell = none<ShapeId>();
  for (ShapeId part : list.parts) cell = merge_shapes(c, cell, part);
  return is_none(cell) ? make_wild(c.a.table) : cell;
}

// --- Rules --------------------------------------------------------------------------------------------------------------------

using Rule = ShapeId (*)(Call&);
ShapeId apply(Call& c, Builtin builtin);

ShapeId argument(Call& c, size_t k) {
  return k < c.args.size() && !is_none(c.args[k].shape) ? c.args[k].shape : make_wild(c.a.table);
}
ShapeId rule_wild(Call& c) { return make_wild(c.a.table); }
ShapeId rule_argument0(Call& c) { return argument(c, 0); }
ShapeId rule_argument1(Call& c) { return argument(c, 1); }
ShapeId rule_argument2(Call& c) { return argument(c, 2); }
ShapeId rule_scalar(Call& c) { return c.a.table.scalar(); }
ShapeId rule_dynamic_vector(Call& c) { return c.a.table.vector(c.dynamic()); }

std::string elements(int64_t n) { return n == 1 ? "1 element" : fmt::format("{} elements", n); }

void report_sizes(Call& c, size_t j, size_t k, int64_t n, int64_t m) {
  if (!c.a.report) return;
  auto builder =
      c.a.sink.error("shape-mismatch", c.span, "`{}` expects operands of one shape, got vector<{}> and vector<{}>",
                     c.a.program.text(c.expression.callee.name), n, m);
  const auto note = [&](size_t at, int64_t count) {
    if (at >= c.expression.operands.size()) return;
    const hir::Operand& operand = c.expression.operands[at];
    builder.highlight(operand.span);
    if (operand.kind == hir::Operand::variable)
      builder.note(c.args[at].origin, "`{}` has {}",
                   c.a.program.text(c.a.function.variables[operand.variable_id()].name), elements(count));
    else
      builder.note(operand.span, "this has {}", elements(count));
  };
  note(j, n);
  note(k, m);
}

// Operands j and k are vectors whose sizes differ as far as the analysis knows, and which the statement needs to be equally long: takes the one with
// the later size to be as long as the other. A known size wins. False: nothing may be assumed.
bool assume_equal(Call& c, size_t j, size_t k) {
  const SizeId x = c.shape(c.args[j]).size, y = c.shape(c.args[k]).size;
  const auto unseen = [&](SizeId size) { return std::count(c.a.unseen.begin(), c.a.unseen.end(), size) > 0; };
  const int64_t n = constant_size(c.a.table, x), m = constant_size(c.a.table, y);
  if (c.in_cells || unseen(x) || unseen(y) || n == 1 || m == 1) return false;
  const bool known_x = n >= 0, known_y = m >= 0;
  const bool keeps_x = known_x != known_y ? known_x : index(x) < index(y);
  c.assumed |= static_cast<uint8_t>(1u << (keeps_x ? k : j));
  c.args[keeps_x ? k : j].shape = c.args[keeps_x ? j : k].shape;
  return true;
}

// Table 5.2. A scalar repeats; equal sizes stay; sizes known to differ are an error; all else is assumed equal.
ShapeId rule_broadcast(Call& c) {
  const Shape x = c.shape(c.args[0]), y = c.shape(c.args[1]);
  if (x.kind != Shape::vector || y.kind != Shape::vector) return make_wild(c.a.table);
  const auto n = constant_size(c.a.table, x.size), m = constant_size(c.a.table, y.size);
  if (n == 1) return c.args[1].shape;
  if (m == 1 || x.size == y.size) return c.args[0].shape;
  if (n >= 0 && m >= 0)
    report_sizes(c, 0, 1, n, m);
  else if (assume_equal(c, 0, 1))
    return c.args[0].shape;
  return rule_dynamic_vector(c);
}

ShapeId compressed(Call& c, ObjectId mask, SizeId base) {
  return c.a.table.vector(c.a.table.intern(Size{.kind = Size::compressed, .object = mask, .base = base}));
}
ObjectId mask_object(Call& c, const Value& mask) { return is_none(mask.object) ? c.object() : mask.object; }

ShapeId rule_compress(Call& c) {
  const Shape mask = c.shape(c.args[0]), data = c.shape(c.args[1]);
  if (mask.kind != Shape::vector) return make_wild(c.a.table);
  if (data.kind == Shape::enumeration) {
    const Shape values = c.a.table[data.parts[1]];
    const ShapeId selected = compressed(c, mask_object(c, c.args[0]), values.size);
    return c.a.table.intern(Shape{.kind = Shape::enumeration, .parts = {data.parts[0], selected}});
  }
  if (data.kind != Shape::vector) return make_wild(c.a.table);
  const auto n = constant_size(c.a.table, mask.size), m = constant_size(c.a.table, data.size);
  if (n >= 0 && m >= 0 && n != m) report_sizes(c, 0, 1, n, m);
  if (mask.size != data.size && (n < 0 || m < 0)) assume_equal(c, 0, 1);
  return compressed(c, mask_object(c, c.args[0]), c.shape(c.args[1]).size);
}
ShapeId rule_index_a(Call& c) {
  const Shape at = c.shape(c.args[1]), values = c.shape(c.args[2]);
  if (at.kind == Shape::vector && values.kind == Shape::vector && at.size != values.size &&
      constant_size(c.a.table, values.size) != 1 &&
      (constant_size(c.a.table, at.size) < 0 || constant_size(c.a.table, values.size) < 0))
    assume_equal(c, 1, 2);
  return rule_argument0(c);
}
ShapeId rule_where(Call& c) {
  const Shape mask = c.shape(c.args[0]);
  if (mask.kind != Shape::vector) return rule_dynamic_vector(c);
  return compressed(c, mask_object(c, c.args[0]), mask.size);
}
ShapeId rule_new_compression(Call& c) {
  const Shape data = c.shape(c.args[0]);
  if (data.kind != Shape::vector) return rule_dynamic_vector(c);
  return compressed(c, c.object(), data.size);
}
ShapeId rule_count0(Call& c) {
  // A range of negative length is empty. That of a vector stays: it is an error of the run, which the kernel's launch finds by it.
  if (const auto n = c.args[0].constant)
    return c.a.table.vector(
        c.a.table.constant(c.expression.callee.builtin_id == hir::Builtin::vector ? *n : std::max<int64_t>(*n, 0)));
  if (!is_none(c.args[0].size)) return c.a.table.vector(c.args[0].size);
  return rule_dynamic_vector(c);
}
ShapeId rule_take(Call& c) {
  const int64_t n = c.args[0].constant.value_or(INT64_MIN);
  if (n != INT64_MIN) return c.a.table.vector(c.a.table.constant(std::abs(n)));
  return rule_dynamic_vector(c);
}
ShapeId rule_drop(Call& c) {
  const Shape data = c.shape(c.args[1]);
  const auto n = constant_size(c.a.table, data.size);
  const int64_t k = c.args[0].constant.value_or(INT64_MIN);
  if (k != INT64_MIN && n >= 0) return c.a.table.vector(c.a.table.constant(std::max<int64_t>(0, n - std::abs(k))));
  return rule_dynamic_vector(c);
}
ShapeId rule_append(Call& c) {
  const Shape x = c.shape(c.args[0]), y = c.shape(c.args[1]);
  const auto sum = [&](SizeId a, SizeId b) {
    const auto n = constant_size(c.a.table, a), m = constant_size(c.a.table, b);
    int64_t total;
    return n >= 0 && m >= 0 && !__builtin_add_overflow(n, m, &total) ? c.a.table.constant(total) : c.dynamic();
  };
  if (x.kind == Shape::vector && y.kind == Shape::vector) return c.a.table.vector(sum(x.size, y.size));
  if (x.kind == Shape::list || y.kind == Shape::list) {
    const SizeId one = c.a.table.constant(1);
    const SizeId size = sum(x.kind == Shape::list ? x.size : one, y.kind == Shape::list ? y.size : one);
    Parts parts;
    const auto add = [&](const Shape& s, const Value& v) {
      if (s.kind == Shape::list) {
        parts.insert(parts.end(), s.parts.begin(), s.parts.end());
      } else {
        parts.push_back(is_none(v.shape) ? make_wild(c.a.table) : v.shape);
      }
    };
    add(x, c.args[0]);
    add(y, c.args[1]);
    if (c.a.table[size].kind == Size::constant && static_cast<size_t>(c.a.table[size].value) == parts.size())
      return make_list(c.a.table, size, std::move(parts));
    ShapeId cell = none<ShapeId>();
    for (ShapeId part : parts) cell = merge_shapes(c, cell, part);
    return make_list(c.a.table, size, {cell});
  }
  if (x.kind == Shape::enumeration && y.kind == Shape::vector)
    return c.a.table.intern(Shape{.kind = Shape::enumeration, .parts = {x.parts[0], c.a.table.vector(c.dynamic())}});
  return make_wild(c.a.table);
}
ShapeId rule_replicate(Call& c) {
  const int64_t k = c.args[0].constant ? std::max<int64_t>(0, *c.args[0].constant) : -1;
  const Shape x = c.shape(c.args[1]);
  if (x.kind == Shape::list) {
    const int64_t m = constant_size(c.a.table, x.size);
    int64_t total;
    const bool known = k >= 0 && m >= 0 && !__builtin_mul_overflow(k, m, &total);
    return make_list(c.a.table, known ? c.a.table.constant(total) : c.dynamic(), {cell_shape(c, x)});
  }
  return make_list(c.a.table, k >= 0 ? c.a.table.constant(k) : c.dynamic(), {argument(c, 1)});
}
ShapeId rule_index(Call& c) {
  const Shape x = c.shape(c.args[0]);
  if (x.kind == Shape::vector) return argument(c, 1);
  if (x.kind == Shape::list) {
    const int64_t n = constant_size(c.a.table, x.size), k = c.args[1].constant.value_or(-1);
    if (k >= 0 && k < n && x.parts.size() == static_cast<size_t>(n)) return x.parts[static_cast<size_t>(k)];
    const ShapeId cell = cell_shape(c, x);
    // The cells of a list of run-time length, such as the rows of groups, have one shape but not one length.
    const Shape& one = c.a.table[cell];
    if (n < 0 && one.kind == Shape::vector && constant_size(c.a.table, one.size) < 0) return rule_dynamic_vector(c);
    return cell;
  }
  if (x.kind == Shape::enumeration)
    return c.a.table.intern(Shape{.kind = Shape::enumeration, .parts = {x.parts[0], argument(c, 1)}});
  return make_wild(c.a.table);
}
ShapeId rule_order(Call& c) {
  const Shape x = c.shape(c.args[0]);
  if (x.kind == Shape::list) return cell_shape(c, x);
  return argument(c, 0);
}
ShapeId rule_group(Call& c) {
  const SizeId groups = c.dynamic(0), rows = c.dynamic(1);
  return c.a.table.intern(Shape{.kind = Shape::dict, .parts = {c.a.table.vector(groups), c.a.table.vector(rows)}});
}
ShapeId rule_list(Call& c) {
  Parts parts;
  for (size_t k = 0; k < c.args.size(); ++k) parts.push_back(argument(c, k));
  const SizeId size = c.a.table.constant(static_cast<int64_t>(parts.size()));
  return make_list(c.a.table, size, std::move(parts));
}
ShapeId rule_tolist(Call& c) {
  const Shape x = c.shape(c.args[0]);
  return make_list(c.a.table, x.kind == Shape::vector ? x.size : c.dynamic(), {c.a.table.scalar()});
}
ShapeId rule_raze(Call& c) {
  const Shape x = c.shape(c.args[0]);
  if (x.kind == Shape::vector) return argument(c, 0);
  if (x.kind != Shape::list) return rule_dynamic_vector(c);
  const int64_t cells = constant_size(c.a.table, x.size);
  int64_t sum = 0;
  bool known = cells >= 0, scalars = !x.parts.empty();
  for (ShapeId part : x.parts) {
    const Shape& cell = c.a.table[part];
    const int64_t n = cell.kind == Shape::vector ? constant_size(c.a.table, cell.size) : -1;
    known = known && n >= 0 && !__builtin_add_overflow(sum, n, &sum);
    scalars = scalars && n == 1;
  }
  if (scalars) return c.a.table.vector(x.size);
  if (known && x.parts.size() == static_cast<size_t>(cells)) return c.a.table.vector(c.a.table.constant(sum));
  if (known && x.parts.size() == 1 && !__builtin_mul_overflow(sum, cells, &sum))
    return c.a.table.vector(c.a.table.constant(sum));
  return rule_dynamic_vector(c);
}

// each(@f, x), each_item(@f, x, y), each_left, each_right: f on the cells of the arguments that `cellwise` marks.
ShapeId each(Call& c, unsigned cellwise) {
  SizeId size = none<SizeId>();
  size_t cells = 1;
  for (size_t k = 1; k < c.args.size(); ++k) {
    if (!(cellwise >> k & 1)) continue;
    const Shape x = c.shape(c.args[k]);
    if (x.kind != Shape::list) continue;  // a lone vector is reused for every cell
    if (is_none(size) || constant_size(c.a.table, size) == 1) size = x.size;
    cells = std::max(cells, x.parts.size());
  }
  if (is_none(size)) size = c.dynamic();
  const std::optional<Builtin> f = applied_builtin(c.a.program, c.expression);
  Parts parts;
  for (size_t i = 0; i < cells; ++i) {
    if (!f) {
      parts.push_back(make_wild(c.a.table));
      continue;
    }
    InlineVector<Value, 2> args;
    for (size_t k = 1; k < c.args.size(); ++k) {
      Value v = c.args[k];
      if (const Shape x = c.shape(v); (cellwise >> k & 1) && x.kind == Shape::list)
        v = Value{.shape = x.parts.empty() ? make_wild(c.a.table)
                                           : x.parts[x.parts.size() == 1 ? 0 : std::min(i, x.parts.size() - 1)]};
      v.constant.reset();
      v.size = none<SizeId>();
      args.push_back(v);
    }
    Call cell{c.a, c.statement, c.name, c.span, c.expression, args, c.made, true};
    parts.push_back(apply(cell, *f));
    c.made = cell.made;
  }
  return make_list(c.a.table, size, std::move(parts));
}
ShapeId rule_each(Call& c) { return each(c, 1u << 1); }
ShapeId rule_each_item(Call& c) { return each(c, 1u << 1 | 1u << 2); }
ShapeId rule_each_left(Call& c) { return each(c, 1u << 1); }
ShapeId rule_each_right(Call& c) { return each(c, 1u << 2); }

ShapeId rule_keys(Call& c) {
  const Shape x = c.shape(c.args[0]);
  if (x.kind == Shape::dict || x.kind == Shape::enumeration || x.kind == Shape::ktable)
    return x.parts.empty() ? make_wild(c.a.table) : x.parts[0];
  if (x.kind == Shape::table) return c.a.table.vector(x.size2);
  return make_wild(c.a.table);
}
ShapeId rule_values(Call& c) {
  const Shape x = c.shape(c.args[0]);
  if (x.kind == Shape::dict && x.parts.size() == 2) {
    const Shape keys =
        c.a.table[x.parts[0]];  // as many cells as keys: lets index(col, keys) and razed aggregates form one table
    return make_list(c.a.table, keys.kind == Shape::vector || keys.kind == Shape::list ? keys.size : c.dynamic(),
                     {x.parts[1]});
  }
  if ((x.kind == Shape::enumeration || x.kind == Shape::ktable) && x.parts.size() == 2) return x.parts[1];
  if (x.kind == Shape::table) return make_list(c.a.table, x.size2, {c.a.table.vector(x.size)});
  return make_wild(c.a.table);
}
ShapeId rule_fetch(Call& c) {
  const Shape x = c.shape(c.args[0]);
  return x.kind == Shape::enumeration ? x.parts[1] : argument(c, 0);
}

// "data.NAME.WHAT"
SizeId symbol(Call& c, NameId of, std::string_view what) {
  const std::string_view name = c.a.program.text(of);
  std::string text;
  text.reserve(6 + name.size() + what.size());
  text.append("data.").append(name).append(".").append(what);
  return c.a.table.intern(Size{.kind = Size::symbol, .name = c.a.program.names->intern(text)});
}
ShapeId rule_load_table(Call& c) {
  if (is_none(c.args[0].text))
    return c.a.table.intern(Shape{.kind = Shape::table, .size = c.dynamic(0), .size2 = c.dynamic(1)});
  return c.a.table.intern(Shape{
      .kind = Shape::table, .size = symbol(c, c.args[0].text, "rows"), .size2 = symbol(c, c.args[0].text, "columns")});
}
ShapeId rule_column_value(Call& c) {
  const Shape x = c.shape(c.args[0]);
  const ShapeId rows = c.a.table.vector(x.kind == Shape::table ? x.size : c.dynamic());
  // A foreign key is recognised by its type: that of an enclosing cast or of the target.
  const auto is_enum = [&](hir::TypeId t) { return (*c.a.program.types)[t].kind == hir::TypeKind::enumeration; };
  const hir::Statement& s = c.a.function.statements[c.statement];
  bool enumeration = !c.expression.types.empty() && is_enum(c.expression.types[0]);
  for (ExpressionId e = s.value; !is_none(e); e = c.a.function.expressions[e].inner)
    if (c.a.function.expressions[e].kind == hir::Expression::cast)
      enumeration |= is_enum(c.a.function.expressions[e].cast_type);
  if (!enumeration) return rows;
  const NameId column = c.args[1].text;
  const bool named = !is_none(column) && !c.a.program.text(column).empty();
  const SizeId keys = named ? symbol(c, column, "keys") : c.dynamic();
  return c.a.table.intern(Shape{.kind = Shape::enumeration, .parts = {c.a.table.vector(keys), rows}});
}
ShapeId rule_table(Call& c) {
  const Shape names = c.shape(c.args[0]), columns = c.shape(c.args[1]);
  SizeId rows = none<SizeId>();
  if (columns.kind == Shape::list) {
    const int64_t n = names.kind == Shape::vector ? constant_size(c.a.table, names.size) : -1;
    const int64_t m = constant_size(c.a.table, columns.size);
    if (n >= 0 && m >= 0 && n != m && c.a.report)
      c.a.sink.error("shape-mismatch", c.span, "`table` expects a name for every column, got {} and {}",
                     n == 1 ? std::string("1 name") : fmt::format("{} names", n),
                     m == 1 ? std::string("1 column") : fmt::format("{} columns", m));
    int64_t known = -1;
    for (ShapeId part : columns.parts) {
      const Shape& cell = c.a.table[part];
      SizeId size = none<SizeId>();
      if (cell.kind == Shape::vector) size = cell.size;
      if (cell.kind == Shape::enumeration && c.a.table[cell.parts[1]].kind == Shape::vector)
        size = c.a.table[cell.parts[1]].size;
      if (is_none(size)) continue;
      const int64_t k = constant_size(c.a.table, size);
      if (k >= 0 && known >= 0 && k != known && c.a.report)
        c.a.sink.error("shape-mismatch", c.span, "`table` expects columns of one length, got {} and {}",
                       elements(known), elements(k));
      if (k >= 0) known = k;
      if (is_none(rows) || k >= 0) rows = size;
    }
  }
  return c.a.table.intern(Shape{.kind = Shape::table,
                                .size = is_none(rows) ? c.dynamic(0) : rows,
                                .size2 = names.kind == Shape::vector ? names.size : c.dynamic(1)});
}
ShapeId rule_pair(Call& c, Shape::Kind kind) {
  return c.a.table.intern(Shape{.kind = kind, .parts = {argument(c, 0), argument(c, 1)}});
}
ShapeId rule_ktable(Call& c) { return rule_pair(c, Shape::ktable); }
ShapeId rule_dict(Call& c) { return rule_pair(c, Shape::dict); }
ShapeId rule_enumeration(Call& c) { return rule_pair(c, Shape::enumeration); }
ShapeId rule_join_index(Call& c) { return make_list(c.a.table, c.a.table.constant(2), {rule_dynamic_vector(c)}); }
ShapeId rule_dynamic_table(Call& c) {
  return c.a.table.intern(Shape{.kind = Shape::table, .size = c.dynamic(0), .size2 = c.dynamic(1)});
}

Rule rule_of(ShapeRule rule) {
  switch (rule) {
    case ShapeRule::none: return rule_wild;
    case ShapeRule::argument0: return rule_argument0;
    case ShapeRule::argument1: return rule_argument1;
    case ShapeRule::argument2: return rule_argument2;
    case ShapeRule::broadcast: return rule_broadcast;
    case ShapeRule::scalar: return rule_scalar;
    case ShapeRule::compress: return rule_compress;
    case ShapeRule::where: return rule_where;
    case ShapeRule::new_compression: return rule_new_compression;
    case ShapeRule::count0: return rule_count0;
    case ShapeRule::take: return rule_take;
    case ShapeRule::drop: return rule_drop;
    case ShapeRule::append: return rule_append;
    case ShapeRule::replicate: return rule_replicate;
    case ShapeRule::index: return rule_index;
    case ShapeRule::index_a: return rule_index_a;
    case ShapeRule::order: return rule_order;
    case ShapeRule::group: return rule_group;
    case ShapeRule::list: return rule_list;
    case ShapeRule::tolist: return rule_tolist;
    case ShapeRule::raze: return rule_raze;
    case ShapeRule::each: return rule_each;
    case ShapeRule::each_item: return rule_each_item;
    case ShapeRule::each_left: return rule_each_left;
    case ShapeRule::each_right: return rule_each_right;
    case ShapeRule::keys: return rule_keys;
    case ShapeRule::values: return rule_values;
    case ShapeRule::fetch: return rule_fetch;
    case ShapeRule::load_table: return rule_load_table;
    case ShapeRule::column_value: return rule_column_value;
    case ShapeRule::table: return rule_table;
    case ShapeRule::ktable: return rule_ktable;
    case ShapeRule::dict: return rule_dict;
    case ShapeRule::enumeration: return rule_enumeration;
    case ShapeRule::join_index: return rule_join_index;
    case ShapeRule::member: return rule_argument0;
    case ShapeRule::flip: return rule_argument0;
    case ShapeRule::dynamic_table: return rule_dynamic_table;
    case ShapeRule::dynamic_vector: return rule_dynamic_vector;
  }
  return rule_wild;
}

ShapeId apply(Call& c, Builtin builtin) {
  const hir::BuiltinRow& row = hir::row(builtin);
  if (c.args.size() < row.min_arity)
    return make_wild(c.a.table);  // a wrong function under `each`; the type checker's business
  return rule_of(row.shape_rule)(c);
}

// --- Walking ------------------------------------------------------------------------------------------------------------------

Value literal_value(Analysis& a, hir::LiteralId id) {
  const hir::Literal& literal = a.program.literals[id];
  Value v{.shape = a.table.vector(a.table.constant(static_cast<int64_t>(literal.size()))), .origin = literal.span};
  if (literal.size() != 1) return v;
  if (const auto* n = std::get_if<std::vector<int64_t>>(&literal.values)) v.constant = n->front();
  if (const auto* s = std::get_if<std::vector<std::string>>(&literal.values))
    v.text = a.program.names->intern(s->front());
  return v;
}

// What `len` of such a value is, or none.
SizeId length_of(const ShapeTable& table, ShapeId id) {
  if (is_none(id)) return none<SizeId>();
  const Shape& s = table[id];
  switch (s.kind) {
    case Shape::vector:
    case Shape::list:
    case Shape::table: return s.size;
    case Shape::enumeration: return length_of(table, s.parts[1]);
    default: return none<SizeId>();
  }
}

Value operand_value(Analysis& a, const Environment& env, const hir::Operand& operand) {
  switch (operand.kind) {
    case hir::Operand::variable: return env[operand.id];
    case hir::Operand::literal: return literal_value(a, operand.literal_id());
    case hir::Operand::global: {
      // Globals may be assigned by any function: a new dynamic size each time one is read.
      const hir::Global& global = a.program.globals[operand.global_id()];
      if (!a.program.types->is_basic(global.type)) return Value{.shape = make_wild(a.table), .origin = global.span};
      auto [it, fresh] = a.more_objects.try_emplace({(uint64_t{1} << 40) + a.more_objects.size(), 0}, none<ObjectId>());
      if (fresh) it->second = a.table.add_object(global.name);
      const SizeId size = a.table.intern(Size{.kind = Size::dynamic, .object = it->second});
      a.unseen.push_back(size);
      return Value{.shape = a.table.vector(size), .object = it->second, .origin = global.span};
    }
    case hir::Operand::unresolved: break;
  }
  return Value{.shape = make_wild(a.table)};
}

void walk(Analysis& a, hir::BlockId block, Environment& env, bool& reachable);

void walk_assignment(Analysis& a, StatementId id, const hir::Statement& s, Environment& env) {
  StatementFacts& facts = a.out.statements[id];
  facts = {};
  NameId name = s.targets.empty() ? none<NameId>() : s.targets[0].name;
  const ExpressionId inner = innermost(a.function, s.value);
  const hir::Expression& e = a.function.expressions[inner];
  for (const hir::Operand& operand : e.operands) facts.operands.push_back(operand_value(a, env, operand));
  Call call{a, id, name, e.span, e, facts.operands, 0};
  const size_t results = std::max<size_t>(1, s.targets.size());
  for (size_t k = 0; k < results; ++k) {
    Value v;
    if (e.kind == hir::Expression::operand) {
      v = facts.operands[0];
      if (s.value != inner) v.object = call.object();  // a cast makes a new value of the same shape
    } else if (e.callee.kind == hir::FunctionRef::builtin) {
      v = Value{.shape = apply(call, e.callee.builtin_id)};
      v.object = call.object();
      if (e.callee.builtin_id == Builtin::len) {
        v.size = length_of(a.table, facts.operands[0].shape);
        if (const int64_t n = constant_size(a.table, v.size); n >= 0) v.constant = n;
      }
    } else {
      const bool basic = k < e.types.size() && a.program.types->is_basic(e.types[k]);
      v = Value{.shape = basic ? unseen_vector(call) : make_wild(a.table)};
      v.object = call.object();
    }
    v.origin = k < s.targets.size() ? s.targets[k].span : s.span;
    facts.results.push_back(v);
    if (k < s.targets.size() && s.targets[k].kind == hir::Target::variable) env[s.targets[k].id] = v;
  }
  facts.assumed = call.assumed;
}

// Merges `from` into `into`, values that differ becoming new objects of statement `at`. True when `into` changed.
bool merge(Analysis& a, StatementId at, Environment& into, const Environment& from) {
  bool changed = false;
  static const hir::Expression nothing;
  for (size_t v = 0; v < into.size(); ++v) {
    if (into[v] == from[v]) continue;
    if (is_none(from[v].shape)) continue;
    if (is_none(into[v].shape)) {
      into[v] = from[v];
      changed = true;
      continue;
    }
    const NameId name = a.function.variables[static_cast<VariableId>(v)].name;
    Call call{a, at, name, {}, nothing, {}, static_cast<uint32_t>(1000 + v * 16)};
    Value merged{.origin = into[v].origin};
    merged.object = call.object();
    merged.shape = merge_shapes(call, into[v].shape, from[v].shape);
    if (merged == into[v]) continue;
    into[v] = merged;
    changed = true;
  }
  return changed;
}

void assigned_in(const hir::Function& f, hir::BlockId block, std::vector<bool>& assigned) {
  if (is_none(block)) return;
  for (StatementId id : f.blocks[block].statements) {
    const hir::Statement& s = f.statements[id];
    for (const hir::Target& t : s.targets)
      if (t.kind == hir::Target::variable) assigned[t.id] = true;
    assigned_in(f, s.body, assigned);
    assigned_in(f, s.otherwise, assigned);
  }
}

bool size_is_fixed(const ShapeTable& t, SizeId id) {
  return is_none(id) || t[id].kind == Size::constant || t[id].kind == Size::symbol;
}
bool shape_is_fixed(const ShapeTable& t, ShapeId id) {
  if (is_none(id)) return true;
  const Shape& s = t[id];
  return size_is_fixed(t, s.size) && size_is_fixed(t, s.size2) &&
         std::all_of(s.parts.begin(), s.parts.end(), [&](ShapeId p) { return shape_is_fixed(t, p); });
}

void walk_loop(Analysis& a, StatementId id, const hir::Statement& s, Environment& env) {
  std::vector<bool> assigned(env.size());
  assigned_in(a.function, s.body, assigned);
  const bool outer_report = a.report;
  Environment head = env;
  Environment exit;
  for (int round = 0;; ++round) {
    // What the body assigns is a new value in every iteration: at the head its shape is kept only as far as it cannot change.
    for (size_t v = 0; v < head.size(); ++v) {
      if (!assigned[v] || is_none(head[v].shape)) continue;
      const NameId name = a.function.variables[static_cast<VariableId>(v)].name;
      static const hir::Expression nothing;
      Call call{a, id, name, {}, nothing, {}, static_cast<uint32_t>(500000 + v * 2)};
      const bool vector = a.table[head[v].shape].kind == Shape::vector;
      Value value{.shape = head[v].shape, .origin = head[v].origin};
      value.object = call.object();
      if (round == 2) {
        value.shape = vector ? unseen_vector(call) : make_wild(a.table);
      } else if (!shape_is_fixed(a.table, value.shape)) {
        value.shape = vector ? unseen_vector(call) : make_wild(a.table);
      }
      head[v] = value;
    }
    a.report = outer_report && round == 2;
    a.loops.emplace_back();
    Environment body = head;
    bool falls_through = true;
    walk(a, s.body, body, falls_through);
    Analysis::Loop loop = std::move(a.loops.back());
    a.loops.pop_back();
    exit = head;
    for (const Environment& e : loop.breaks) merge(a, id, exit, e);
    if (round == 2) break;
    if (falls_through) merge(a, id, head, body);
    for (const Environment& e : loop.continues) merge(a, id, head, e);
  }
  a.report = outer_report;
  env = exit;
}

void walk_statement(Analysis& a, StatementId id, Environment& env, bool& reachable) {
  const hir::Statement& s = a.function.statements[id];
  const auto record_condition = [&] { a.out.statements[id].operands = {operand_value(a, env, s.condition)}; };
  switch (s.kind) {
    case hir::Statement::assign:
    case hir::Statement::expression: walk_assignment(a, id, s, env); break;
    case hir::Statement::declare: break;
    case hir::Statement::block: walk(a, s.body, env, reachable); break;
    case hir::Statement::if_else: {
      record_condition();
      Environment other = env;
      bool then_reaches = true, else_reaches = true;
      walk(a, s.body, env, then_reaches);
      if (!is_none(s.otherwise)) walk(a, s.otherwise, other, else_reaches);
      if (then_reaches && else_reaches) {
        merge(a, id, env, other);
      } else if (else_reaches) {
        env = std::move(other);
      }
      reachable = then_reaches || else_reaches;
      break;
    }
    case hir::Statement::while_loop:
    case hir::Statement::repeat:
      record_condition();
      walk_loop(a, id, s, env);
      break;
    case hir::Statement::return_:
      a.out.statements[id].operands.clear();
      for (const hir::Operand& o : s.results) a.out.statements[id].operands.push_back(operand_value(a, env, o));
      reachable = false;
      break;
    case hir::Statement::break_:
      if (!a.loops.empty()) a.loops.back().breaks.push_back(env);
      reachable = false;
      break;
    case hir::Statement::continue_:
      if (!a.loops.empty()) a.loops.back().continues.push_back(env);
      reachable = false;
      break;
  }
}

void walk(Analysis& a, hir::BlockId block, Environment& env, bool& reachable) {
  for (StatementId id : a.function.blocks[block].statements) walk_statement(a, id, env, reachable);
}

}  // namespace

hir::ExpressionId innermost(const hir::Function& function, hir::ExpressionId id) {
  while (function.expressions[id].kind == hir::Expression::cast) id = function.expressions[id].inner;
  return id;
}

std::optional<Builtin> called_builtin(const hir::Function& function, const hir::Statement& statement) {
  if (is_none(statement.value)) return {};
  const hir::Expression& e = function.expressions[innermost(function, statement.value)];
  if (e.kind != hir::Expression::call || e.callee.kind != hir::FunctionRef::builtin) return {};
  return e.callee.builtin_id;
}

std::optional<Builtin> applied_builtin(const hir::Program& program, const hir::Expression& call) {
  if (call.operands.empty() || call.operands[0].kind != hir::Operand::literal) return {};
  const auto* functions =
      std::get_if<std::vector<hir::FunctionRef>>(&program.literals[call.operands[0].literal_id()].values);
  if (!functions || functions->size() != 1 || functions->front().kind != hir::FunctionRef::builtin) return {};
  return functions->front().builtin_id;
}

int whole_operand(const hir::Program& program, const hir::Expression& e) {
  if (e.kind != hir::Expression::call || e.callee.kind != hir::FunctionRef::builtin) return -1;
  switch (e.callee.builtin_id) {
    case Builtin::index:
    case Builtin::index_a:
    case Builtin::reverse: return 0;
    case Builtin::each: return applied_builtin(program, e) == Builtin::reverse ? 1 : -1;
    case Builtin::each_right: return applied_builtin(program, e) == Builtin::index ? 1 : -1;
    default: return -1;
  }
}

Shapes analyse_shapes(const hir::Program& program, const hir::Function& function, ShapeTable& table,
                      DiagnosticSink& sink) {
  Shapes out;
  out.statements.resize(function.statements.size());
  Analysis a{program, function, table, sink, out, {}, {}, true, {}, {}};
  a.objects.resize(function.statements.size());
  Environment env(function.variables.size());
  for (VariableId p : function.parameters) {
    const hir::Variable& v = function.variables[p];
    Value value{.origin = v.span};
    value.object = table.add_object(v.name);
    value.shape =
        program.types->is_basic(v.type)
            ? table.vector(table.intern(Size{
                  .kind = Size::symbol, .name = program.names->intern("param." + std::string(program.text(v.name)))}))
            : make_wild(table);
    env[index(p)] = value;
  }
  bool reachable = true;
  if (!is_none(function.body)) walk(a, function.body, env, reachable);
  return out;
}

// --- ShapeTable ---------------------------------------------------------------------------------------------------------------

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
