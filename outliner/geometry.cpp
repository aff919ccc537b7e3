// Where a statement runs and with how many threads (horseir.md, 5.4 and 5.5).
//
// A statement can be part of a kernel when its builtin's row says `gpu`, code generation has a template for it on these types, and its
// operands fit the thread of one element: each is a scalar or has one element per thread. Everything else stays in the host program,
// with the reason why. Geometry is a shape: vector<size> has a thread per element of a vector of that size.
// Cost: O(1) per statement. Leaves out: list geometries (the each family), scatters, sizes that only exist as run-time
// values (`range` and `vector` of an unknown count).
#include "outliner/analysis.h"

namespace rndn::outliner {
namespace {

using hir::BasicType;
using hir::Builtin;
using hir::GeometryRule;
using hir::ShapeRule;

// Builtins that ptx/codegen has a template for, apart from types. tests/codegen generates a kernel for every one of them.
bool has_template(Builtin b) {
  switch (b) {
    case Builtin::abs:
    case Builtin::neg:
    case Builtin::ceil:
    case Builtin::floor:
    case Builtin::round:
    case Builtin::recip:
    case Builtin::signum:
    case Builtin::pi:
    case Builtin::not_:
    case Builtin::sqrt:
    case Builtin::date:
    case Builtin::time:
    case Builtin::date_year:
    case Builtin::date_month:
    case Builtin::date_day:
    case Builtin::time_hour:
    case Builtin::time_minute:
    case Builtin::time_second:
    case Builtin::time_mill:
    case Builtin::lt:
    case Builtin::gt:
    case Builtin::leq:
    case Builtin::geq:
    case Builtin::eq:
    case Builtin::neq:
    case Builtin::plus:
    case Builtin::minus:
    case Builtin::mul:
    case Builtin::div:
    case Builtin::mod:
    case Builtin::and_:
    case Builtin::or_:
    case Builtin::nand:
    case Builtin::nor:
    case Builtin::xor_:
    case Builtin::range:
    case Builtin::vector:
    case Builtin::where:
    case Builtin::compress:
    case Builtin::index:
    case Builtin::len:
    case Builtin::sum:
    case Builtin::avg:
    case Builtin::min:
    case Builtin::max:
    case Builtin::any:
    case Builtin::all: return true;
    default: return false;
  }
}

bool moves_only(Builtin b) {
  return b == Builtin::eq || b == Builtin::neq || b == Builtin::compress || b == Builtin::vector || b == Builtin::len ||
         b == Builtin::index;
}

std::string_view check_type(Builtin b, BasicType t, bool text_codes) {
  if (hir::is_text(t) && !text_codes) return "text is not on the GPU";
  if (t == BasicType::complex) return "complex values have no GPU code";
  if (hir::is_text(t) && !moves_only(b)) return "text order has no GPU code";
  if (hir::is_calendar(t) && (b == Builtin::sum || b == Builtin::avg)) return "calendar values have no sum";
  if (hir::is_float(t) && b == Builtin::mod) return "the remainder of floats has no GPU code";
  return {};
}

}  // namespace

bool is_compression_of(const ShapeTable& table, SizeId inner, SizeId outer) {
  while (inner != outer) {
    if (is_none(inner) || table[inner].kind != Size::compressed) return false;
    inner = table[inner].base;
  }
  return true;
}

std::string_view place_statement(const hir::Program& program, const hir::Function& function,
                                 const StatementFacts& facts, ShapeTable& table, bool text_codes, Node& node) {
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
  if (!types.is_basic(function.variables[s.targets[0].variable_id()].type)) return "its value is not a vector";

  std::vector<BasicType> argument_types;
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
    if (!types.is_basic(type)) return "its operands are not vectors";
    argument_types.push_back(types.basic_of(type));
    const ShapeId shape = facts.operands[k].shape;
    if (is_none(shape) || table[shape].kind != Shape::vector) return "the shape of its operands is unknown";
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
    if (!hir::is_real(source) || !hir::is_real(target)) return "its cast is checked at run time";
    converts = true;
  }

  if (e.kind == hir::Expression::operand) {
    if (e.operands[0].kind == hir::Operand::literal) return "a literal";
    if (hir::is_text(argument_types[0]) && !text_codes) return "text is not on the GPU";
    if (argument_types[0] == BasicType::complex) return "complex values have no GPU code";
    node.place = converts ? Place::gpu : Place::neutral;
    node.elementwise = true;
    node.geometry = facts.operands[0].shape;
    return {};
  }

  const Builtin builtin = e.callee.builtin_id;
  const hir::BuiltinRow& row = hir::row(builtin);
  if (!has_template(builtin)) return "it has no GPU code yet";
  for (BasicType t : argument_types)
    if (const auto why = check_type(builtin, t, text_codes); !why.empty()) return why;
  if (row.reduction && e.operands[0].kind != hir::Operand::variable) return "a literal";
  if (types.basic_of(e.types[0]) == BasicType::complex) return "complex values have no GPU code";

  const auto size_of = [&](size_t k) { return table[facts.operands[k].shape].size; };
  switch (row.shape_rule) {
    case ShapeRule::broadcast:
      if (size_of(0) != size_of(1) && !is_scalar(table, facts.operands[0].shape) &&
          !is_scalar(table, facts.operands[1].shape))
        return "its operands' sizes are only known at run time";
      node.elementwise = true;
      break;
    case ShapeRule::argument0: node.elementwise = true; break;
    case ShapeRule::compress:
      if (size_of(0) != size_of(1)) return "its operands' sizes are only known at run time";
      break;
    case ShapeRule::where: node.positional = true; break;
    case ShapeRule::index:
      if (e.operands[0].kind != hir::Operand::variable) return "a literal";
      node.elementwise = true;
      break;
    case ShapeRule::count0:
      if (!facts.operands[0].constant) return "its length is only known at run time";
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
  node.sync_in = row.sync_in;
  node.sync_out = row.sync_out;
  node.reduction = row.reduction;
  return {};
}

}  // namespace rndn::outliner
