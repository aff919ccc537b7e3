// The rules of the shape analysis: one function per hir::ShapeRule (docs/horseir.md, "Shapes"). And
// how shapes merge.
//
// Sizes that are unknown but that a statement needs to be equal are assumed equal (`assume_equal`): the statement's facts mark the operand, and
// whoever computes it must compare the lengths at run time. Only sizes known to differ are errors here.
// Cost: O(1) per call but for lists, O(cells).
#include "outliner/shape_rules.h"

#include <algorithm>

namespace rndn::outliner {

using hir::Builtin;
using hir::ExpressionId;
using hir::ShapeRule;

namespace {

// --- Merging ------------------------------------------------------------------------------------------------------------------

SizeId merge_sizes(Call& c, SizeId x, SizeId y) {
  if (x == y) return x;
  if (is_none(x)) return y;
  if (is_none(y)) return x;
  const Size sx = c.a.table[x], sy = c.a.table[y];
  if (sx.kind == Size::compressed && sy.kind == Size::compressed && sx.base == sy.base)
    return c.a.table.intern(Size{.kind = Size::compressed, .object = c.object(), .base = sx.base});
  const SizeId merged = c.dynamic();
  c.a.out.unseen.push_back(merged);
  return merged;
}

}  // namespace

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

namespace {

// All cells of a list as one.
ShapeId cell_shape(Call& c, const Shape& list) {
  ShapeId cell = none<ShapeId>();
  for (ShapeId part : list.parts) cell = merge_shapes(c, cell, part);
  return is_none(cell) ? make_wild(c.a.table) : cell;
}

// --- Rules --------------------------------------------------------------------------------------------------------------------

using Rule = ShapeId (*)(Call&);

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
  const auto unseen = [&](SizeId size) { return std::count(c.a.out.unseen.begin(), c.a.out.unseen.end(), size) > 0; };
  const int64_t n = constant_size(c.a.table, x), m = constant_size(c.a.table, y);
  if (c.in_cells || unseen(x) || unseen(y) || n == 1 || m == 1) return false;
  const bool known_x = n >= 0, known_y = m >= 0;
  const bool keeps_x = known_x != known_y ? known_x : index(x) < index(y);
  c.assumed |= static_cast<uint8_t>(1u << (keeps_x ? k : j));
  c.args[keeps_x ? k : j].shape = c.args[keeps_x ? j : k].shape;
  return true;
}

// A scalar repeats; equal sizes stay; sizes known to differ are an error; all else is assumed equal.
ShapeId rule_broadcast(Call& c) {
  size_t widest = 0;
  for (size_t k = 1; k < c.args.size(); ++k) {
    const Shape x = c.shape(c.args[widest]), y = c.shape(c.args[k]);
    if (x.kind != Shape::vector || y.kind != Shape::vector) return make_wild(c.a.table);
    const auto n = constant_size(c.a.table, x.size), m = constant_size(c.a.table, y.size);
    if (n == 1) {
      widest = k;
      continue;
    }
    if (m == 1 || x.size == y.size) continue;
    if (n >= 0 && m >= 0)
      report_sizes(c, widest, k, n, m);
    else if (assume_equal(c, widest, k))
      continue;
    return rule_dynamic_vector(c);
  }
  return c.args[widest].shape;
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
    if (n >= 0 && m >= 0 && !__builtin_add_overflow(n, m, &total)) return c.a.table.constant(total);
    // Equal sizes appended to equal ones are equal, in either order.
    const auto [known, is_new] = c.a.sums.try_emplace(std::minmax(a, b), none<SizeId>());
    if (is_new) known->second = c.dynamic();
    return known->second;
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
  if (x.kind != Shape::list) return argument(c, 0);
  for (ShapeId column : x.parts)  // all are as long, or it is an error
    if (c.a.table[column].kind == Shape::vector) return column;
  return make_wild(c.a.table);
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
  return x.kind == Shape::enumeration && x.parts.size() == 2 ? x.parts[1] : argument(c, 0);
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
// Folds of one grouping have one size: it is made of the keys' objects and the number.
ShapeId rule_fold(Call& c) {
  SizeId size = none<SizeId>();
  for (size_t k = 3; k < c.args.size(); ++k) {
    const ObjectId key = is_none(c.args[k].object) ? c.object() : c.args[k].object;
    const auto number = static_cast<uint32_t>(c.args[2].constant.value_or(0));
    size = c.a.table.intern(Size{.kind = Size::dynamic, .object = key, .tag = fold_tag + number, .base = size});
  }
  return c.a.table.vector(size);
}
// Lists that are made of the same lengths have the same cells.
ShapeId rule_cells(Call& c) {
  const Shape lengths = c.shape(c.args[1]);
  const ObjectId made = is_none(c.args[1].object) ? c.object() : c.args[1].object;
  const bool sized = lengths.kind == Shape::vector && constant_size(c.a.table, lengths.size) < 0;
  const SizeId cell = c.a.table.intern(Size{.kind = Size::dynamic, .object = made, .tag = cells_tag});
  return make_list(c.a.table, sized ? lengths.size : c.dynamic(),
                   {c.shape(c.args[0]).kind == Shape::vector ? c.a.table.vector(cell) : make_wild(c.a.table)});
}
ShapeId rule_pick(Call& c) {
  const Shape numbers = c.shape(c.args[0]);
  return make_list(c.a.table, numbers.kind == Shape::vector ? numbers.size : c.dynamic(), {make_wild(c.a.table)});
}
ShapeId rule_cell_numbers(Call& c) { return c.args.size() == 2 ? argument(c, 1) : rule_dynamic_vector(c); }
ShapeId rule_probe(Call& c) { return argument(c, c.args.size() / 2 + 1); }
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
    case ShapeRule::probe: return rule_probe;
    case ShapeRule::cells: return rule_cells;
    case ShapeRule::pick: return rule_pick;
    case ShapeRule::cell_numbers: return rule_cell_numbers;
    case ShapeRule::fold: return rule_fold;
    case ShapeRule::flip: return rule_argument0;
    case ShapeRule::dynamic_table: return rule_dynamic_table;
    case ShapeRule::dynamic_vector: return rule_dynamic_vector;
  }
  return rule_wild;
}

}  // namespace

ShapeId apply(Call& c, Builtin builtin) {
  const hir::BuiltinRow& row = hir::row(builtin);
  if (c.args.size() < row.min_arity)
    return make_wild(c.a.table);  // a wrong function under `each`; the type checker's business
  return rule_of(row.shape_rule)(c);
}

}  // namespace rndn::outliner
