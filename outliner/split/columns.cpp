// Statements that are new, and the columns that programs leave for each other.
#include "libraries/base/errors/check.h"
#include "outliner/split/splitter.h"

namespace rndn::outliner::splitting {

// index(x, numbers), where `numbers` are picked out of numbers of rows that the range program
// has: `after` gets x by these, not all of x, and picks from that in the same way. `target`: what
// becomes of it, a new variable where there is none. Nothing: it is not so.
void Splitter::copy(VariableId to, VariableId from) {
  const TypeId type = type_of(to);
  emit(after_made_, to, Builtin::index, {variable(from)}, type);
  Expression& e = main().expressions[main().statements[after_made_.back()].value];
  e.kind = Expression::operand;
  e.callee = {};
}

// A copy of the chain of casts; gives its innermost.
hir::ExpressionId Splitter::copy_expressions(hir::ExpressionId& value) {
  Function& f = main();
  Expression copy = f.expressions[value];
  hir::ExpressionId inner = none<hir::ExpressionId>();
  if (copy.kind == Expression::cast) inner = copy_expressions(copy.inner);
  value = f.expressions.add(std::move(copy));
  return is_none(inner) ? value : inner;
}

Operand Splitter::variable(VariableId v) {
  Operand o;
  o.kind = Operand::variable;
  o.id = static_cast<uint32_t>(index(v));
  o.name = main().variables[v].name;
  return o;
}

Operand Splitter::literal(hir::Literal literal) {
  Operand o;
  o.kind = Operand::literal;
  o.id = static_cast<uint32_t>(index(program_.literals.add(std::move(literal))));
  return o;
}

Operand Splitter::number(int64_t n) {
  return literal({.type = types().basic(BasicType::i64), .values = std::vector<int64_t>{n}, .span = {}});
}

Operand Splitter::symbol(const std::string& text) {
  return literal({.type = types().basic(BasicType::sym), .values = std::vector<std::string>{text}, .span = {}});
}

Operand Splitter::function(Builtin b) {
  hir::FunctionRef f;
  f.kind = hir::FunctionRef::builtin;
  f.builtin_id = b;
  f.name = program_.names->intern(hir::row(b).name);
  return literal({.type = types().function(), .values = std::vector<hir::FunctionRef>{f}, .span = {}});
}

VariableId Splitter::new_variable(TypeId type) {
  Function& f = main();
  const auto id = f.variables.add({});
  f.variables[id].name = program_.names->intern("part_" + options_.prefix + std::to_string(index(id)));
  f.variables[id].type = type;
  states_.push_back({});
  def_.push_back(none<StatementId>());
  return id;
}

void Splitter::emit(std::vector<StatementId>& to, VariableId target, Builtin b, std::vector<Operand> operands,
                    TypeId type, Span span) {
  Function& f = main();
  Expression e;
  e.kind = Expression::call;
  e.span = span;
  for (Operand& o : operands) e.operands.push_back(o);
  e.callee.kind = hir::FunctionRef::builtin;
  e.callee.builtin_id = b;
  e.callee.name = program_.names->intern(hir::row(b).name);
  e.types.push_back(type);
  Statement s;
  s.kind = Statement::assign;
  s.span = span;
  s.value = f.expressions.add(std::move(e));
  hir::Target t;
  t.kind = hir::Target::variable;
  t.id = static_cast<uint32_t>(index(target));
  t.name = f.variables[target].name;
  t.declares = true;
  t.declared_type = f.variables[target].type;
  t.span = span;
  s.targets.push_back(t);
  to.push_back(f.statements.add(std::move(s)));
}

// v = the column
void Splitter::load(std::vector<StatementId>& to, VariableId v, const std::string& table, const std::string& column) {
  auto [at, fresh] = tables_read_[&to].try_emplace(table, VariableId{});
  if (fresh) {
    at->second = new_variable(types().table());
    emit(to, at->second, Builtin::load_table, {symbol(table)}, types().table());
  }
  emit(to, v, Builtin::column_value, {variable(at->second), symbol(column)}, type_of(v));
}

// The table that a vector of that size is a column of: the one that it has a row for each of.
std::string Splitter::table_of(SizeId size, const char* kind) {
  if (table_[size].kind == Size::symbol) {
    const std::string_view name = program_.text(table_[size].name);
    if (name.starts_with("data.") && name.ends_with(".rows")) return std::string(name.substr(5, name.size() - 10));
  }
  return options_.prefix + kind + std::to_string(index(size));
}

// A result of `before`, which the range program reads.
size_t Splitter::before_result(VariableId v, SizeId size, bool one) {
  need_before(v);
  for (size_t i = 0; i < before_vars_.size(); ++i)
    if (before_vars_[i] == v) return i;
  before_vars_.push_back(v);
  before_results_.push_back({.table = one ? options_.prefix + "o" + std::to_string(index(v)) : table_of(size, "b"),
                             .column = column_name(v)});
  return before_results_.size() - 1;
}

void Splitter::read_before(VariableId v) {
  const StatementId at = def_[index(v)];
  const SizeId size = size_of_result(at);
  const bool one = !is_none(size) && table_[size].kind == Size::constant;
  const std::string own = is_none(size) ? options_.prefix + "v" + std::to_string(index(v)) : "";
  const size_t result = before_result(v, size, one || is_none(size));
  const SplitResult& r = before_results_[result];
  if (one && table_[size].value == 1) {
    const VariableId column = new_variable(type_of(v));
    load(range_made_, column, r.table, r.column);
    emit(range_made_, v, Builtin::index, {variable(column), number(0)}, type_of(v));
  } else {
    load(range_made_, v, r.table, r.column);
  }
}

// A result of the range program, which `after` has all of in `to`.
void Splitter::send(VariableId v, const std::string& table, VariableId to) {
  need_range(v);
  const State s = states_[index(v)];
  const std::string column = column_name(v);
  const size_t result = range_results_.size();
  range_vars_.push_back(v);
  range_results_.push_back({.table = table, .column = column});
  load(after_made_, to, table, column);
  if (!s.is_rows() || is_none(s.counts)) return;
  if (s.counts_moved) {
    range_results_[result].merge = SplitResult::place;
    return;
  }
  const size_t rows = length_result(s.counts);
  range_results_[result].merge = SplitResult::rebase;
  range_results_[result].rows = rows;
}

void Splitter::send_rows(VariableId v) {
  need_range(v);
  const State s = states_[index(v)];
  const StatementId at = def_[index(v)];
  if (is_cheap(at)) {  // the column itself
    for (const Operand& o : operands_of(at))
      if (o.kind == Operand::variable) need_after(o.variable_id());
    after_made_.push_back(at);
    return;
  }
  send(v, table_of(s.size, "r"), v);
}

// The result that says how many rows of that size a range has: of a vector of the range.
size_t Splitter::length_result(SizeId size) {
  if (auto known = lengths_.find(size); known != lengths_.end()) return known->second;
  for (VariableId v{}; index(v) < variables_; v = static_cast<VariableId>(index(v) + 1)) {
    if (!states_[index(v)].is_rows() || states_[index(v)].size != size || is_none(def_[index(v)])) continue;
    need_range(v);
    const TypeId i64 = types().basic(BasicType::i64);
    const VariableId length = new_variable(i64);
    emit(range_made_, length, Builtin::len, {variable(v)}, i64);
    range_vars_.push_back(length);
    range_results_.push_back(
        {.table = options_.prefix + "l" + std::to_string(index(size)), .column = column_name(length)});
    return lengths_[size] = range_results_.size() - 1;
  }
  CHECK(false, "rows are counted that no vector has");
  return 0;
}

VariableId Splitter::append_all(std::vector<StatementId>& to, const std::vector<VariableId>& vectors) {
  VariableId all = vectors[0];
  for (size_t i = 1; i < vectors.size(); ++i) {
    const VariableId more = new_variable(type_of(all));
    emit(to, more, Builtin::append, {variable(all), variable(vectors[i])}, type_of(all));
    all = more;
  }
  return all;
}

}  // namespace rndn::outliner::splitting
