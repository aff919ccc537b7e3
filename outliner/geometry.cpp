// Where a statement runs and with how many threads.
//
// A statement can be part of a kernel when its builtin's row says `gpu` and that kernels have code for it on these types, and its
// operands fit the thread of one element: each is a scalar or has one element per thread. Everything else stays in the host program,
// with the reason why. Geometry is a shape: vector<size> has a thread per element of a vector of that size; list<cells, {cell}> shares the
// elements of all cells of a list among the threads, and statements in it work on a cell's elements (each forms of element-wise functions and
// of reductions, `index` of a whole vector by every cell) or on the single values of cells (`raze` of what reductions gave).
// Cost: O(1) per statement. Leaves out: lists that are not one piece (`list` of vectors), each forms that select within cells.
#include "outliner/analysis.h"

namespace rndn::outliner {
namespace {

using hir::BasicType;
using hir::Builtin;
using hir::GeometryRule;
using hir::ShapeRule;

bool has_code(Builtin b) { return hir::row(b).kernel != hir::kernel_types::no_code; }
bool has_code(Builtin b, uint8_t types) { return (hir::row(b).kernel & types) != 0; }

// Functions that an each form may apply inside a kernel.
bool has_cell_template(Builtin b) {
  const hir::BuiltinRow& row = hir::row(b);
  if (row.device != hir::Device::gpu || !has_code(b) || row.max_arity > 2) return false;
  return row.has(hir::traits::reduction) || row.shape_rule == ShapeRule::broadcast || row.shape_rule == ShapeRule::argument0;
}

std::string_view check_type(Builtin b, BasicType t, const Options& options) {
  if (hir::is_text(t) && !options.text_codes) return "text is not on the GPU";
  if (t == BasicType::complex && !has_code(b, hir::kernel_types::complex)) return "it has no GPU code for complex numbers";
  if (hir::is_wide(t) && !has_code(b, hir::kernel_types::wide)) return "it has no GPU code for i128";
  if (hir::is_text(t) && !has_code(b, hir::kernel_types::codes)) return "it works on the texts themselves";
  if (hir::is_calendar(t) && (b == Builtin::sum || b == Builtin::avg)) return "calendar values have no sum";
  if (b == Builtin::gpu_probe && !is_probe_key(t)) return "its keys are no integers, dates or texts";
  if (!options.math && hir::needs_math(b, t)) return no_math;
  const bool sums_floats = (b == Builtin::sum && hir::is_float(t)) ||
                           (b == Builtin::avg && (hir::is_float(t) || t == BasicType::i64));
  if (options.exact_sums && sums_floats) return "its sums need more bits than kernels have";
  return {};
}

// The type of the elements of a vector or of the cells of a list.
bool element_type(const hir::TypeTable& types, hir::TypeId type, BasicType& out) {
  if (types[type].kind == hir::TypeKind::list) type = types[type].components[0];
  if (!types.is_basic(type)) return false;
  out = types.basic_of(type);
  return true;
}
bool is_list(const hir::TypeTable& types, hir::TypeId type) { return types[type].kind == hir::TypeKind::list; }

// A list of run-time length whose cells are vectors alike: those lie in one piece on the device.
bool in_one_piece(const ShapeTable& table, ShapeId id) {
  const Shape& s = table[id];
  return s.kind == Shape::list && s.parts.size() == 1 && table[s.parts[0]].kind == Shape::vector &&
         table[s.size].kind != Size::constant;
}

// The each forms. `types`: of the operands' elements.
std::string_view place_each(const hir::Program& program, const hir::Expression& e, const StatementFacts& facts,
                            const ShapeTable& table, std::span<const BasicType> types, const Options& options,
                            Node& node) {
  const std::optional<Builtin> f = applied_builtin(program, e);
  if (!f) return "user functions run on the host";
  const Builtin form = e.callee.builtin_id;
  const bool gathers = form == Builtin::each_right && *f == Builtin::index;
  if (hir::row(*f).device == hir::Device::cpu) return "it runs on the CPU";
  if (hir::row(*f).device == hir::Device::library) return "it is an operator of the library";
  if (!gathers && !has_cell_template(*f)) return "its function has no GPU code for cells";
  const unsigned cellwise = form == Builtin::each_item ? 0b110 : form == Builtin::each_right ? 0b100 : 0b010;
  for (size_t k = 1; k < e.operands.size(); ++k) {
    if (const auto why = check_type(*f, types[k], options); !why.empty()) return why;
    const ShapeId shape = facts.operands[k].shape;
    if (cellwise >> k & 1) {
      if (!in_one_piece(table, shape)) return "its list is not in one piece";
      if (has_scalar_cells(table, shape)) return "its cells are single values";
      if (!is_none(node.geometry) && node.geometry != shape) return "its operands' sizes are only known at run time";
      node.geometry = shape;
    } else if (gathers) {
      if (table[shape].kind != Shape::vector) return "the shape of its operands is unknown";
      if (e.operands[k].kind != hir::Operand::variable) return "a literal";
    } else if (!is_scalar(table, shape)) {
      return "its operands' sizes are only known at run time";
    }
  }
  const hir::BuiltinRow& row = hir::row(*f);
  node.place = Place::gpu;
  node.sync_in = static_cast<uint8_t>(row.sync_in << 1);
  node.sync_out = row.has(hir::traits::complete);
  node.reduction = row.has(hir::traits::reduction);
  node.positional = *f == Builtin::reverse;
  return {};
}

}  // namespace

bool is_probe_key(hir::BasicType type) {
  return hir::is_text(type) || hir::is_calendar(type) || (hir::is_integer(type) && !hir::is_wide(type));
}

uint32_t element_width(const hir::TypeTable& types, hir::TypeId type) {
  BasicType basic{};
  if (!element_type(types, type, basic)) return 0;
  return hir::row(basic).device_width;
}

bool has_scalar_cells(const ShapeTable& table, ShapeId id) {
  const Shape& s = table[id];
  return s.kind == Shape::list && s.parts.size() == 1 && is_scalar(table, s.parts[0]);
}

bool runs_within(const ShapeTable& table, ShapeId inner, ShapeId outer) {
  if (inner == outer) return true;
  const Shape &a = table[inner], &b = table[outer];
  if (a.kind != b.kind) return false;
  if (a.kind == Shape::vector) return is_compression_of(table, a.size, b.size);
  return a.kind == Shape::list && a.size == b.size && has_scalar_cells(table, inner);
}

bool runs_beside_cells(const ShapeTable& table, const Node& node, ShapeId list) {
  if (!node.elementwise || node.reduction || node.positional) return false;
  const Shape &own = table[node.geometry], &cells = table[list];
  return cells.kind == Shape::list && own.kind == Shape::vector && own.size == cells.size;
}

bool is_compression_of(const ShapeTable& table, SizeId inner, SizeId outer) {
  while (inner != outer) {
    if (is_none(inner) || table[inner].kind != Size::compressed) return false;
    inner = table[inner].base;
  }
  return true;
}

std::string_view place_statement(const hir::Program& program, const hir::Function& function,
                                 const StatementFacts& facts, ShapeTable& table, const Options& options, Node& node) {
  const hir::Statement& s = function.statements[node.statement];
  if (s.kind != hir::Statement::assign || s.targets.size() != 1 || s.targets[0].kind != hir::Target::variable)
    return "not an assignment to one variable";
  const hir::TypeTable& types = *program.types;
  const hir::ExpressionId inner = innermost(function, s.value);
  const hir::Expression& e = function.expressions[inner];
  if (e.kind == hir::Expression::call) {
    if (e.callee.kind != hir::FunctionRef::builtin) return "user functions run on the host";
    if (hir::row(e.callee.builtin_id).device == hir::Device::cpu) return "it runs on the CPU";
    if (hir::row(e.callee.builtin_id).device == hir::Device::library) return "it is an operator of the library";
  }
  BasicType result_type{};
  if (!element_type(types, function.variables[s.targets[0].variable_id()].type, result_type))
    return "its value is not a vector";

  bool lists = is_list(types, function.variables[s.targets[0].variable_id()].type);
  InlineVector<BasicType, 8> argument_types;
  for (size_t k = 0; k < e.operands.size(); ++k) {
    const hir::Operand& operand = e.operands[k];
    hir::TypeId type;
    if (operand.kind == hir::Operand::variable) {
      type = function.variables[operand.variable_id()].type;
    } else if (operand.kind == hir::Operand::literal) {
      type = program.literals[operand.literal_id()].type;
    } else {
      return "it reads a global";
    }
    argument_types.emplace_back();
    if (types[type].kind == hir::TypeKind::function) continue;
    if (!element_type(types, type, argument_types.back())) return "its operands are not vectors";
    lists |= is_list(types, type);
    const ShapeId shape = facts.operands[k].shape;
    if (is_none(shape) || (table[shape].kind != Shape::vector && table[shape].kind != Shape::list))
      return "the shape of its operands is unknown";
    if ((table[shape].kind == Shape::list) != is_list(types, type)) return "the shape of its operands is unknown";
  }
  if (lists) {
    if (s.value != inner) return "its cast is checked at run time";
    if (e.kind == hir::Expression::operand) return "a list under another name";
    const hir::BuiltinRow& row = hir::row(e.callee.builtin_id);
    if (row.geometry == GeometryRule::each) return place_each(program, e, facts, table, argument_types, options, node);
    if (e.callee.builtin_id != Builtin::raze) return "it works on a list";
    if (!has_scalar_cells(table, facts.operands[0].shape)) return "its cells lie in one piece";
    if (const auto why = check_type(Builtin::index, result_type, options); !why.empty()) return why;
    node.geometry = facts.operands[0].shape;
    node.place = Place::gpu;
    node.sync_in = row.sync_in;
    node.sync_out = row.has(hir::traits::complete);
    return {};
  }

  // Casts: every one must be a conversion that code generation knows.
  bool converts = false;
  for (hir::ExpressionId c = s.value; c != inner; c = function.expressions[c].inner) {
    const hir::Expression& cast = function.expressions[c];
    const hir::Expression& from = function.expressions[cast.inner];
    if (from.types.empty() || !types.is_basic(from.types[0]) || !types.is_basic(cast.cast_type))
      return "its cast is checked at run time";
    const BasicType source = types.basic_of(from.types[0]), target = types.basic_of(cast.cast_type);
    if (source == target || (hir::is_text(source) && hir::is_text(target))) continue;
    if (!hir::is_ordered_number(source) || !hir::is_ordered_number(target)) return "its cast is checked at run time";
    converts = true;
  }

  if (e.kind == hir::Expression::operand) {
    if (e.operands[0].kind == hir::Operand::literal) return "a literal";
    if (hir::is_text(argument_types[0]) && !options.text_codes) return "text is not on the GPU";
    node.place = converts ? Place::gpu : Place::neutral;
    node.elementwise = true;
    node.geometry = facts.operands[0].shape;
    return {};
  }

  const Builtin builtin = e.callee.builtin_id;
  const hir::BuiltinRow& row = hir::row(builtin);
  if (!has_code(builtin)) return "it has no GPU code yet";
  const int literal = hir::literal_operand(builtin);
  if (literal >= 0 && e.operands[static_cast<size_t>(literal)].kind != hir::Operand::literal)
    return builtin == Builtin::require ? "its message is only known at run time" : "its unit is only known at run time";
  for (size_t k = 0; k < argument_types.size(); ++k)
    if (const auto why = static_cast<int>(k) == literal ? std::string_view{}
                                                        : check_type(builtin, argument_types[k], options);
        !why.empty())
      return why;
  const auto size_of = [&](size_t k) { return table[facts.operands[k].shape].size; };
  switch (row.shape_rule) {
    case ShapeRule::broadcast:
      for (size_t k = 0; k < facts.operands.size(); ++k)
        if (!is_scalar(table, facts.operands[k].shape) && size_of(k) != table[facts.results[0].shape].size)
          return "its operands' sizes are only known at run time";
      node.elementwise = true;
      break;
    case ShapeRule::argument0:
      if (builtin == Builtin::reverse) {
        if (e.operands[0].kind != hir::Operand::variable) return "a literal";
        node.positional = true;
      } else {
        node.elementwise = true;
      }
      break;
    case ShapeRule::compress:
      if (size_of(0) != size_of(1)) return "its operands' sizes are only known at run time";
      break;
    case ShapeRule::where: node.positional = true; break;
    case ShapeRule::probe: {
      const size_t left = e.operands.size() / 2;  // the last operand of the left side
      if (is_scalar(table, facts.results[0].shape)) return "a single row is looked up";
      for (size_t k = 1; k < e.operands.size(); ++k) {
        if (e.operands[k].kind != hir::Operand::variable) return "a literal";
        if (facts.operands[k].shape != (k <= left ? facts.operands[1].shape : facts.results[0].shape))
          return "its operands' sizes are only known at run time";
      }
      node.sync_in = static_cast<uint8_t>(whole_operands(program, e));
      break;
    }
    case ShapeRule::fold: {
      const std::optional<Builtin> reduce = folded_builtin(program, e);
      if (!reduce || e.operands[2].kind != hir::Operand::literal) return "its function is only known at run time";
      if (!is_fold_value(*reduce, argument_types[0])) return "it reduces other values than integers";
      for (size_t k = 0; k < e.operands.size(); ++k) {
        if (k == 1 || k == 2) continue;
        if (e.operands[k].kind != hir::Operand::variable) return "a literal";
        if (facts.operands[k].shape != facts.operands[0].shape || is_scalar(table, facts.operands[k].shape))
          return "its operands' sizes are only known at run time";
        if (k > 0 && !is_probe_key(argument_types[k])) return "its keys are no integers, dates or texts";
      }
      break;
    }
    case ShapeRule::index:
      if (e.operands[0].kind != hir::Operand::variable) return "a literal";
      node.elementwise = true;
      break;
    case ShapeRule::index_a:
      if (e.operands[0].kind != hir::Operand::variable) return "a literal";
      if (size_of(1) != size_of(2) && !is_scalar(table, facts.operands[2].shape))
        return "its operands' sizes are only known at run time";
      break;
    case ShapeRule::count0:
      if (!facts.operands[0].constant && is_none(facts.operands[0].size)) return "its length is only known at run time";
      if (e.operands[0].kind != hir::Operand::variable && !facts.operands[0].constant)
        return "its length is only known at run time";
      if (builtin == Builtin::vector && !is_scalar(table, facts.operands[1].shape))
        return "a pattern of several elements has no GPU code yet";
      (is_scalar(table, facts.results[0].shape) ? node.elementwise : node.positional) = true;
      break;
    default: break;
  }

  switch (row.geometry) {
    case GeometryRule::result: node.geometry = facts.results[0].shape; break;
    case GeometryRule::argument0:
    case GeometryRule::uncompressed: node.geometry = facts.operands[0].shape; break;
    case GeometryRule::argument1: node.geometry = facts.operands[1].shape; break;
    default: return "its geometry is not that of a vector";
  }
  node.place = Place::gpu;
  // An operand whose length is compared at the launch must be there by then.
  node.sync_in |= row.sync_in | facts.assumed;
  node.sync_out = row.has(hir::traits::complete);
  node.reduction = row.has(hir::traits::reduction);
  return {};
}

}  // namespace rndn::outliner
