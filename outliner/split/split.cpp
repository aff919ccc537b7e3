// Three passes. `classify` says of each variable what it is in a run of a range; where a group, a
// join or another statement turns out not to be what was hoped, it is forbidden, and all begins
// anew. `need` walks back from the results of main through `after`, and asks `range` for what it
// leaves behind. `finish` makes the three programs, whose functions share variables and statements.
#include <algorithm>

#include "outliner/split/splitter.h"

namespace rndn::outliner::splitting {

Split Splitter::run() {
  Split out;
  (void)inline_calls(program_);
  out.refused = prepare();
  if (!out.refused.empty()) return out;
  if (!options_.by_keys) return attempt(std::move(out));
  out.refused = "nothing groups or orders its rows by columns";
  for (StatementId at : order_) {
    if (!set_keys(at)) continue;
    forbidden_.clear();
    out.refused.clear();
    out = attempt(std::move(out));
    if (!out.refused.empty()) continue;
    if (of(variable(statement(at).targets[0].variable_id())).kind != State::whole) return out;
    out = {.refused = "it needs all rows all the same"};
  }
  return out;
}

Split Splitter::attempt(Split out) {
  do {
    again_ = false;
    reset();
    for (StatementId s : order_) classify(s);
    if (!again_) need_all();
  } while (again_);
  if (!refused_.empty()) {
    out.refused = refused_;
    return out;
  }
  if (range_results_.empty()) {
    out.refused = "no statement works on its rows one by one";
    return out;
  }
  finish(out);
  return out;
}

// Empty, or why the program cannot be split. Every variable gets one assignment.
std::string Splitter::prepare() {
  Function& f = main();
  if (!f.parameters.empty() || !flatten(f, f.body, order_)) return "there is control flow in main";
  std::set<VariableId> assigned;
  for (StatementId id : order_) {
    const Statement& s = f.statements[id];
    const auto known = [&](const Operand& o) {
      return o.kind != Operand::variable || assigned.count(o.variable_id()) != 0;
    };
    bool all = std::all_of(s.results.begin(), s.results.end(), known);
    if (!is_none(s.value)) {
      const std::vector<Operand> operands = operands_of(id);
      all = all && std::all_of(operands.begin(), operands.end(), known);
    }
    if (!all) return "a variable is read that has no value";
    for (const hir::Target& t : s.targets) {
      if (t.kind == hir::Target::global) return "a global is assigned";
      if (t.kind == hir::Target::variable && s.kind == Statement::assign && !assigned.insert(t.variable_id()).second)
        return "a variable is assigned twice";
    }
    if (s.kind == Statement::return_) return_ = id;
    if (is_none(s.value)) continue;
    const Expression& e = call_of(id);
    if (e.kind != Expression::call) continue;
    if (s.kind != Statement::assign) return "a statement has no result";
    if (e.callee.kind != hir::FunctionRef::builtin) return "main calls a function that is not known";
    if (hir::row(e.callee.builtin_id).has(hir::traits::ordered)) return "a statement has effects or draws numbers";
    if (e.callee.builtin_id == Builtin::load_table && text_of(e.operands[0]).empty())
      return "the name of a table is no literal";
  }
  if (is_none(return_)) return "main returns nothing";
  std::erase_if(order_, [&](StatementId id) { return statement(id).kind == Statement::declare || id == return_; });
  DiagnosticSink told;
  shapes_ = analyse_shapes(program_, f, table_, told);
  if (told.has_errors()) return "its shapes are at fault";
  statements_ = f.statements.size();
  literals_ = program_.literals.size();
  variables_ = f.variables.size();
  expressions_ = f.expressions.size();
  return "";
}

void Splitter::reset() {
  Function& f = main();  // what the last attempt added goes
  f.statements.raw().resize(statements_);
  f.variables.raw().resize(variables_);
  f.expressions.raw().resize(expressions_);
  program_.literals.raw().resize(literals_);
  states_.assign(variables_, State{});
  def_.assign(variables_, none<StatementId>());
  in_before_.clear(), in_range_.clear(), in_after_.clear();
  before_made_.clear(), range_made_.clear(), after_made_.clear();
  before_vars_.clear(), range_vars_.clear();
  before_results_.clear(), range_results_.clear();
  gathered_.clear(), merged_.clear(), by_numbers_.clear(), parts_.clear();
  tables_read_.clear(), range_how_.clear(), gathered_result_.clear();
  lengths_.clear(), whole_.clear(), cut_column_.clear();
  float_parts_.clear(), float_sums_.clear();
  cut_used_ = false;
  refused_.clear();
}

hir::Program Splitter::make(const std::vector<StatementId>& statements, std::vector<Operand> results,
                            std::vector<TypeId> types) {
  hir::Program p = program_;
  Function& f = p.functions[p.main];
  f.statements = {};
  f.expressions = {};
  f.blocks = {};
  hir::Block body;
  for (StatementId id : statements) {
    Statement s = main().statements[id];
    if (!is_none(s.value)) s.value = moved(f, s.value);
    body.statements.push_back(f.statements.add(std::move(s)));
  }
  Statement ret;
  ret.kind = Statement::return_;
  ret.results = std::move(results);
  ret.span = main().statements[return_].span;
  f.result_types = std::move(types);
  body.statements.push_back(f.statements.add(std::move(ret)));
  f.body = f.blocks.add(std::move(body));
  return p;
}

hir::ExpressionId Splitter::moved(Function& to, hir::ExpressionId id) {
  Expression e = main().expressions[id];
  if (e.kind == Expression::cast) e.inner = moved(to, e.inner);
  return to.expressions.add(std::move(e));
}

hir::Program Splitter::make(const std::vector<StatementId>& statements, const std::vector<VariableId>& results) {
  std::vector<Operand> operands;
  std::vector<TypeId> result_types;
  for (VariableId v : results) {
    operands.push_back(variable(v));
    result_types.push_back(type_of(v));
  }
  return make(statements, std::move(operands), std::move(result_types));
}

void Splitter::finish(Split& out) {
  for (const auto& [group, merged] : merged_) make_merge(group, out);
  if (!before_results_.empty()) out.before = make(before_made_, before_vars_);
  out.range = make(range_made_, range_vars_);
  out.after = make(after_made_, statement(return_).results, main().result_types);
  out.before_results = std::move(before_results_);
  out.range_results = std::move(range_results_);
  if (cut_used_) out.cut = cut_column_;
  out.keys = keys_;
  out.whole = std::move(whole_);
}

}  // namespace rndn::outliner::splitting

namespace rndn::outliner {

Split split(const hir::Program& program, const SplitOptions& options) {
  return splitting::Splitter(program, options).run();
}

Split divide(const hir::Program& program, const std::string& prefix) {
  return splitting::Splitter(program, {.prefix = prefix}).divide();
}

}  // namespace rndn::outliner
