#include "runtime/data/tables.h"

#include <algorithm>

#include "frontend/builtins.h"

namespace rndn::data {

Result<void> SourceTables::open(std::string_view table) const {
  RETURN_IF_ERROR(source_->schema().table(table));
  return {};
}

Result<std::vector<std::string>> SourceTables::column_names(std::string_view table) const {
  ASSIGN_OR_RETURN(const TableSchema* schema, source_->schema().table(table));
  std::vector<std::string> names;
  for (const ColumnSchema& c : schema->columns) names.push_back(c.name);
  return names;
}

Result<uint64_t> SourceTables::rows(std::string_view table) const { return source_->rows(table); }

Result<std::shared_ptr<const Column>> SourceTables::column(std::string_view table,
                                                                 std::string_view column) const {
  return source_->column(table, column);
}

Result<std::shared_ptr<const Column>> SourceTables::key_column(std::string_view table) const {
  ASSIGN_OR_RETURN(const TableSchema* schema, source_->schema().table(table));
  if (schema->primary.size() != 1) return input_error("table `{}` has no primary key of one column", table);
  return source_->column(table, schema->primary.front());
}

Result<void> SourceTables::prefetch(std::string_view table, std::span<const std::string> columns) const {
  RETURN_IF_ERROR(source_->columns(table, columns));
  return {};
}

namespace {
Error missing() { return usage_error("this program loads tables: give --data tpch:SF or --data FOLDER"); }
}  // namespace

Result<void> NoTables::open(std::string_view) const { return missing(); }
Result<std::vector<std::string>> NoTables::column_names(std::string_view) const { return missing(); }
Result<uint64_t> NoTables::rows(std::string_view) const { return missing(); }
Result<std::shared_ptr<const Column>> NoTables::column(std::string_view, std::string_view) const {
  return missing();
}
Result<std::shared_ptr<const Column>> NoTables::key_column(std::string_view) const { return missing(); }

Result<uint64_t> TimedTables::rows(std::string_view table) const {
  auto scope = timings_.measure(Phase::data, table);
  return tables_.rows(table);
}
Result<std::shared_ptr<const Column>> TimedTables::column(std::string_view table, std::string_view column) const {
  auto scope = timings_.measure(Phase::data, fmt::format("{}.{}", table, column));
  return tables_.column(table, column);
}
Result<std::shared_ptr<const Column>> TimedTables::key_column(std::string_view table) const {
  auto scope = timings_.measure(Phase::data, table);
  return tables_.key_column(table);
}
Result<void> TimedTables::prefetch(std::string_view table, std::span<const std::string> columns) const {
  auto scope = timings_.measure(Phase::data, table);
  return tables_.prefetch(table, columns);
}

std::map<std::string, std::vector<std::string>> columns_read(const hir::Program& program) {
  std::map<std::string, std::vector<std::string>> columns;
  if (is_none(program.main)) return columns;
  const hir::Function& main = program.functions[program.main];
  std::map<uint32_t, std::string> tables;  // variable -> the table that load_table put there
  auto literal = [&](const hir::Operand& operand) -> const std::string* {
    if (operand.kind != hir::Operand::literal) return nullptr;
    const auto* texts = std::get_if<std::vector<std::string>>(&program.literals[operand.literal_id()].values);
    return texts && texts->size() == 1 ? &texts->front() : nullptr;
  };
  for (const hir::Statement& s : main.statements) {
    if (s.kind != hir::Statement::assign) continue;
    hir::ExpressionId id = s.value;
    while (main.expressions[id].kind == hir::Expression::cast) id = main.expressions[id].inner;
    const hir::Expression& e = main.expressions[id];
    if (e.kind != hir::Expression::call || e.callee.kind != hir::FunctionRef::builtin) continue;
    if (e.callee.builtin_id == hir::Builtin::load_table && e.operands.size() == 1 && s.targets.size() == 1 &&
        s.targets[0].kind == hir::Target::variable) {
      if (const std::string* name = literal(e.operands[0])) tables[s.targets[0].id] = *name;
    } else if (e.callee.builtin_id == hir::Builtin::column_value && e.operands.size() == 2 &&
               e.operands[0].kind == hir::Operand::variable) {
      auto table = tables.find(e.operands[0].id);
      const std::string* name = literal(e.operands[1]);
      if (table == tables.end() || !name) continue;
      std::vector<std::string>& names = columns[table->second];
      if (std::find(names.begin(), names.end(), *name) == names.end()) names.push_back(*name);
    }
  }
  return columns;
}

}  // namespace rndn::data
