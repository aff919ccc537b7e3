// Which parameters of a kernel may be given as copies of one element. A vector whose only element the run counts is
// taken to be as long as what it meets (shapes.cpp); where it is not, element-wise work on n copies of the element is
// what the language says of a vector of n and one of 1.
//
// What is made of such parameters alone has one element, too: a variable is `one` when it is such a parameter, or
// element-wise work on `one`s and scalars. It must go into element-wise work only, until that meets a vector of the full
// length: a result, a reduction or a selection that sees a `one` would see its copies.
// In: a kernel and the parameters. Cost: the kernel's statements, once.
// Leaves out: kernels over cells of lists, and those with control flow.
#include "outliner/spread.h"

#include <algorithm>

#include "outliner/analysis.h"

namespace rndn::outliner {

bool may_be_spread(const hir::Program& program, const Kernel& kernel, const ShapeTable& shapes,
                   std::span<const hir::VariableId> single) {
  const hir::Function& f = program.functions[kernel.function];
  std::vector<hir::StatementId> order;
  if (kernel.list || !flatten(f, f.body, order)) return false;
  std::vector<bool> one(f.variables.size());
  for (hir::VariableId v : single) one[index(v)] = true;
  const auto is_one = [&](const hir::Operand& o) { return o.kind == hir::Operand::variable && one[o.id]; };
  const auto is_full = [&](const hir::Operand& o) {
    if (o.kind != hir::Operand::variable || one[o.id]) return false;
    const ShapeId shape = kernel.shapes[o.variable_id()];
    return is_none(shape) || !is_scalar(shapes, shape);
  };
  for (hir::StatementId id : order) {
    const hir::Statement& s = f.statements[id];
    if (std::any_of(s.results.begin(), s.results.end(), is_one)) return false;
    if (is_none(s.value)) continue;
    const hir::Expression& e = f.expressions[innermost(f, s.value)];
    if (std::none_of(e.operands.begin(), e.operands.end(), is_one)) continue;
    if (s.kind != hir::Statement::assign || s.targets.size() != 1 || s.targets[0].kind != hir::Target::variable)
      return false;
    if (e.kind == hir::Expression::call) {
      const bool elementwise =
          e.callee.kind == hir::FunctionRef::builtin && is_elementwise(e.callee.builtin_id) &&
          (e.operands.size() == 1 || hir::row(e.callee.builtin_id).shape_rule == hir::ShapeRule::broadcast);
      if (!elementwise || whole_operands(program, e) != 0) return false;
    } else if (e.kind != hir::Expression::operand) {
      return false;
    }
    one[s.targets[0].id] = std::none_of(e.operands.begin(), e.operands.end(), is_full);
  }
  return true;
}

}  // namespace rndn::outliner
