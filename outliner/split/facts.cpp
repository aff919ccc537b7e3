// What statements and operands of the program are.
#include "outliner/split/splitter.h"

namespace rndn::outliner::splitting {

bool Splitter::is_scalar_result(StatementId id) {
  const StatementFacts& facts = shapes_.statements[id];
  return !facts.results.empty() && is_scalar(table_, facts.results[0].shape);
}

// Costs nothing to do again.
bool Splitter::is_light(StatementId at) {
  const Expression& e = call_of(at);
  if (e.kind == Expression::operand) return statement(at).value == innermost(main(), statement(at).value);
  if (e.kind != Expression::call) return false;
  switch (e.callee.builtin_id) {
    case Builtin::load_table:
    case Builtin::column_value:
    case Builtin::column_valid:
    case Builtin::list:
    case Builtin::table:
    case Builtin::range:
    case Builtin::len: return true;
    case Builtin::vector: return is_one(at, 1);
    case Builtin::values:
    case Builtin::fetch:
      return e.operands[0].kind == Operand::variable &&
             types()[type_of(e.operands[0].variable_id())].kind == TypeKind::enumeration;
    default: return false;
  }
}

const Expression& Splitter::call_of(StatementId id) {
  return main().expressions[innermost(main(), statement(id).value)];
}

// A copy: what is added to the function moves its expressions.
std::vector<Operand> Splitter::operands_of(StatementId id) {
  const Expression& e = call_of(id);
  return {e.operands.begin(), e.operands.end()};
}

std::optional<BasicType> Splitter::basic_of(VariableId v) {
  if (!types().is_basic(type_of(v))) return std::nullopt;
  return types().basic_of(type_of(v));
}

std::optional<BasicType> Splitter::basic_of(const Operand& o) {
  if (o.kind == Operand::variable) return basic_of(o.variable_id());
  const TypeId type =
      o.kind == Operand::literal ? program_.literals[o.literal_id()].type : program_.globals[o.global_id()].type;
  if (!types().is_basic(type)) return std::nullopt;
  return types().basic_of(type);
}

SizeId Splitter::size_of_result(StatementId id) {
  const StatementFacts& facts = shapes_.statements[id];
  if (facts.results.empty() || is_none(facts.results[0].shape)) return none<SizeId>();
  const Shape& shape = table_[facts.results[0].shape];
  return shape.kind == Shape::vector ? shape.size : none<SizeId>();
}

bool Splitter::is_one(StatementId id, size_t operand) {
  const StatementFacts& facts = shapes_.statements[id];
  return operand < facts.operands.size() && is_scalar(table_, facts.operands[operand].shape);
}

bool Splitter::is_table(const Expression& e) {
  return e.kind == Expression::call && e.callee.builtin_id == Builtin::load_table &&
         text_of(e.operands[0]) == options_.table;
}

std::string Splitter::text_of(const Operand& o) {
  if (o.kind == Operand::literal)
    if (const auto* text = std::get_if<std::vector<std::string>>(&program_.literals[o.literal_id()].values))
      if (text->size() == 1) return text->front();
  return "";
}

std::optional<Builtin> Splitter::function_of(const Operand& o) {
  if (o.kind == Operand::literal)
    if (const auto* f = std::get_if<std::vector<hir::FunctionRef>>(&program_.literals[o.literal_id()].values))
      if (f->size() == 1 && f->front().kind == hir::FunctionRef::builtin) return f->front().builtin_id;
  return std::nullopt;
}

std::optional<int64_t> Splitter::number_of(const Operand& o) {
  if (o.kind == Operand::literal)
    if (const auto* n = std::get_if<std::vector<int64_t>>(&program_.literals[o.literal_id()].values))
      if (n->size() == 1) return n->front();
  return std::nullopt;
}

bool Splitter::is_elementwise(Builtin b) {
  const ShapeRule rule = hir::row(b).shape_rule;
  if (rule == ShapeRule::broadcast) return true;
  if (rule != ShapeRule::argument0 && rule != ShapeRule::member) return false;
  return b != Builtin::reverse && b != Builtin::scan_sum && b != Builtin::scan_min && b != Builtin::scan_max;
}

// The operand of these may be any vector of other rows: a set, a pattern.
bool Splitter::is_set(Builtin b, size_t operand) {
  return operand == 1 &&
         (b == Builtin::member || b == Builtin::index_of || b == Builtin::like || b == Builtin::sub_string);
}

// What is not worth a column of its own: columns as they are, and what is no vector.
bool Splitter::is_cheap(StatementId at) {
  const Expression& e = call_of(at);
  if (statement(at).targets.size() != 1 || !basic_of(statement(at).targets[0].variable_id())) return true;
  if (e.kind == Expression::operand)  // a conversion is work
    return statement(at).value == innermost(main(), statement(at).value);
  switch (e.callee.builtin_id) {
    case Builtin::column_value:
    case Builtin::column_valid: return true;
    case Builtin::values:
    case Builtin::fetch:
      return e.operands[0].kind == Operand::variable &&
             types()[type_of(e.operands[0].variable_id())].kind == TypeKind::enumeration;
    default: return false;
  }
}

}  // namespace rndn::outliner::splitting
