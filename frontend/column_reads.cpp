#include "frontend/column_reads.h"

#include <map>
#include <variant>

#include "frontend/builtins.h"

namespace rndn::hir {

ColumnReads column_reads(const Program& program) {
  ColumnReads out;
  if (is_none(program.main)) return out;
  const Function& main = program.functions[program.main];
  std::map<uint32_t, uint32_t> tables;  // by variable: the last table loaded there
  const auto literal = [&](const Operand& operand) -> const std::string* {
    if (operand.kind != Operand::literal) return nullptr;
    const auto* texts =
        std::get_if<std::vector<std::string>>(&program.literals[operand.literal_id()].values);
    return texts && texts->size() == 1 ? &texts->front() : nullptr;
  };
  for (const Statement& s : main.statements) {
    if (s.kind != Statement::assign) continue;
    ExpressionId id = s.value;
    while (main.expressions[id].kind == Expression::cast) id = main.expressions[id].inner;
    const Expression& e = main.expressions[id];
    if (e.kind != Expression::call || e.callee.kind != FunctionRef::builtin) continue;
    if (s.targets.size() != 1 || s.targets[0].kind != Target::variable) continue;
    const Builtin builtin = e.callee.builtin_id;
    if ((builtin == Builtin::load_table || builtin == Builtin::load_csv) &&
        e.operands.size() == 1) {
      if (const std::string* name = literal(e.operands[0])) {
        tables[s.targets[0].id] = static_cast<uint32_t>(out.tables.size());
        out.tables.push_back({*name, builtin == Builtin::load_csv});
      }
    } else if ((builtin == Builtin::column_value || builtin == Builtin::column_valid) &&
               e.operands.size() >= 2 && e.operands[0].kind == Operand::variable) {
      const auto table = tables.find(e.operands[0].id);
      const std::string* name = literal(e.operands[1]);
      if (table != tables.end() && name)
        out.columns.push_back(
            {s.targets[0].variable_id(), builtin == Builtin::column_valid, table->second, *name});
    }
  }
  return out;
}

}  // namespace rndn::hir
