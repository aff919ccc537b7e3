// Statements of main that passes before the outliner read and write (joins.cpp, sinks.cpp ..): their order, calls, fresh
// variables, what stands before or behind a statement, what nothing reads any more, and the shapes of what was written.
// Private to this folder.
// Cost: inserting and dropping are linear in main.
#pragma once
#include <algorithm>
#include <set>
#include <vector>

#include "outliner/analysis.h"

namespace rndn::outliner {

class Editing {
 protected:
  Editing(hir::Program& program, Shapes& shapes, ShapeTable& table)
      : program_(program), shapes_(shapes), table_(table) {}

  // Main's statements as they run. False: it has parameters or control flow, and is left alone.
  bool read_main(const hir::Function& main) {
    order_.clear();
    order_.reserve(main.statements.size());
    if (!main.parameters.empty() || !flatten(main, main.body, order_)) return false;
    writers_.assign(main.variables.size(), 0);
    for (hir::StatementId id : order_)
      for (const hir::Target& t : main.statements[id].targets)
        if (t.kind == hir::Target::variable) ++writers_[t.id];
    return true;
  }
  // How many statements give the variable a value; those made since have one.
  uint32_t writers_of(hir::VariableId v) const { return index(v) < writers_.size() ? writers_[index(v)] : 1; }
  // After main was rewritten: `first` is the place of the first statement that is not what it was.
  void analyse_written(const hir::Function& own, size_t first, DiagnosticSink& sink) {
    order_.clear();
    (void)flatten(own, own.body, order_);
    shapes_.statements.raw().resize(own.statements.size());
    analyse_again(program_, own, table_, sink, order_, first, shapes_);
  }

  static hir::Operand operand(const hir::Function& f, hir::VariableId v) {
    return {.kind = hir::Operand::variable, .id = index(v), .name = f.variables[v].name};
  }
  hir::Operand integer(int64_t value) {
    const hir::LiteralId literal = program_.literals.add(
        {.type = program_.types->basic(hir::BasicType::i64), .values = std::vector<int64_t>{value}});
    return {.kind = hir::Operand::literal, .id = index(literal)};
  }
  hir::Operand literal(hir::Literal l) {
    return {.kind = hir::Operand::literal, .id = index(program_.literals.add(std::move(l)))};
  }
  // What an each form applies.
  hir::Operand function(hir::Builtin b) {
    const hir::FunctionRef f{.kind = hir::FunctionRef::builtin,
                             .name = program_.names->intern(hir::row(b).name),
                             .builtin_id = b};
    return literal({.type = program_.types->function(), .values = std::vector<hir::FunctionRef>{f}});
  }
  // To be called once, before `fresh`.
  void note_names(const hir::Function& f) {
    for (const hir::Variable& v : f.variables) names_.insert(v.name);
  }
  hir::VariableId fresh(hir::Function& f, std::string_view stem, hir::TypeId type) {
    for (;;) {
      const NameId name = program_.names->intern(fmt::format("{}_{}", stem, ++fresh_));
      if (!names_.insert(name).second) continue;
      return f.variables.add({.name = name, .type = type});
    }
  }
  hir::VariableId fresh(hir::Function& f, std::string_view stem, hir::BasicType type) {
    return fresh(f, stem, program_.types->basic(type));
  }
  using Operands = InlineVector<hir::Operand, 2>;
  // Makes the expression a call of that builtin, its type staying what it is.
  void becomes(hir::Expression& e, hir::Builtin builtin, Operands operands) {
    const std::string_view name = hir::row(builtin).name;
    const size_t dot = name.find('.');
    const bool of_module = dot != std::string_view::npos;
    e.kind = hir::Expression::call;
    e.callee = {.kind = hir::FunctionRef::builtin,
                .module = of_module ? program_.names->intern(name.substr(0, dot)) : none<NameId>(),
                .name = program_.names->intern(of_module ? name.substr(dot + 1) : name),
                .builtin_id = builtin,
                .span = e.callee.span};
    e.operands = std::move(operands);
  }
  // v = that expression
  static void assign(hir::Function& f, hir::Statement& s, hir::VariableId v, hir::ExpressionId value) {
    s.kind = hir::Statement::assign;
    s.value = value;
    hir::Target t{.kind = hir::Target::variable, .id = index(v), .name = f.variables[v].name, .declares = true};
    t.declared_type = f.variables[v].type;
    t.span = s.span;
    s.targets.clear();
    s.targets.push_back(t);
  }
  // v = builtin(operands)
  void assign(hir::Function& f, hir::Statement& s, hir::VariableId v, hir::Builtin builtin, Operands operands) {
    hir::Expression e{.kind = hir::Expression::call, .span = s.span};
    e.types.push_back(f.variables[v].type);
    becomes(e, builtin, std::move(operands));
    assign(f, s, v, f.expressions.add(std::move(e)));
  }
  hir::StatementId add(hir::Function& f, Span span, hir::VariableId v, hir::Builtin builtin, Operands operands) {
    hir::Statement s{.span = span};
    assign(f, s, v, builtin, std::move(operands));
    return f.statements.add(std::move(s));
  }
  static void insert(hir::Function& f, hir::StatementId at, bool behind, const std::vector<hir::StatementId>& more) {
    for (hir::Block& block : f.blocks) {
      auto& list = block.statements;
      const auto found = std::find(list.begin(), list.end(), at);
      if (found == list.end()) continue;
      list.insert(found + (behind ? 1 : 0), more.begin(), more.end());
      return;
    }
  }
  // Takes the statement out when nothing reads the variable that it gives a value.
  static void drop_unread(hir::Function& f, hir::StatementId id) {
    const uint32_t v = f.statements[id].targets[0].id;
    const auto reads = [&](const hir::Operand& o) { return o.kind == hir::Operand::variable && o.id == v; };
    for (const hir::Block& block : f.blocks)
      for (hir::StatementId at : block.statements) {
        const hir::Statement& s = f.statements[at];
        if (at != id && std::any_of(s.targets.begin(), s.targets.end(), [&](const hir::Target& t) {
              return t.kind == hir::Target::variable && t.id == v;
            }))
          return;  // which may be declared here
        if (!is_none(s.value)) {
          const auto& operands = f.expressions[innermost(f, s.value)].operands;
          if (std::any_of(operands.begin(), operands.end(), reads)) return;
        }
        if (std::any_of(s.results.begin(), s.results.end(), reads)) return;
      }
    for (hir::Block& block : f.blocks) std::erase(block.statements, id);
  }

  hir::Program& program_;
  Shapes& shapes_;
  ShapeTable& table_;
  std::vector<hir::StatementId> order_;

 private:
  std::vector<uint32_t> writers_;
  std::set<NameId> names_;
  uint32_t fresh_ = 0;
};

}  // namespace rndn::outliner
