// Definite assignment (docs/horseir.md, "Variables"): a use that no assignment reaches is an error,
// one that some path reaches unassigned a warning (at run time the variable is then the empty
// vector of its type). Also warns where a function can end without `return`.
//
// Two sets per program point: `may` (assigned on some path) and `must` (assigned on every path). Both only grow along a path, so
// at the head of a loop must is what it was before the loop, and may adds what any path through the body that comes back can
// assign: a constant set per loop (`back`), found bottom-up by a first walk of the same transfer function. Each statement is
// visited twice; joins cost O(variables / 64).
#include "frontend/passes.h"
#include "libraries/base/containers/bitset.h"

namespace rndn::hir {

namespace {

struct State {
  Bitset may, must;
  bool reachable = true;
};

struct Assignments {
  const Program& program;
  const Function& function;
  DiagnosticSink& sink;
  bool report = false;
  std::vector<std::vector<uint32_t>> back;  // by StatementId of a loop: what its body may assign before it repeats
  std::vector<bool> back_known;
  std::vector<bool> told;  // by VariableId: one report per variable

  struct Loop {
    State leave, repeat;  // joined states of `break` and of `continue`; unreachable until one is seen
  };
  std::vector<Loop> loops;

  State nothing() const {
    State s{Bitset(function.variables.size()), Bitset(function.variables.size()), false};
    return s;
  }

  static void join(State& into, const State& other) {
    if (!other.reachable) return;
    if (!into.reachable) {
      into = other;
      return;
    }
    into.may.merge(other.may);
    into.must.intersect(other.must);
  }

  void use(const Operand& o, const State& s) {
    if (!report || o.kind != Operand::variable || !s.reachable) return;
    uint32_t v = o.id;
    if (s.must.test(v) || told[v]) return;
    const Variable& variable = function.variables[o.variable_id()];
    std::string_view name = program.text(variable.name);
    if (!s.may.test(v))
      sink.error("unassigned", o.span, "`{}` is used, but nothing is assigned to it before", name)
          .note(variable.span, "`{}` is declared here", name);
    else
      sink.warning("maybe-unassigned", o.span, "`{}` is not assigned on every path to this use; it would be empty",
                   name)
          .note(variable.span, "`{}` is declared here", name);
    told[v] = true;
  }

  void expression(ExpressionId id, const State& s) {
    const Expression& e = function.expressions[id];
    if (e.kind == Expression::cast) return expression(e.inner, s);
    for (const Operand& o : e.operands) use(o, s);
  }

  void block(BlockId id, State& s) {
    for (StatementId statement_id : function.blocks[id].statements) statement(statement_id, s);
  }

  void statement(StatementId id, State& s) {
    const Statement& st = function.statements[id];
    switch (st.kind) {
      case Statement::assign:
        expression(st.value, s);
        for (const Target& t : st.targets)
          if (t.kind == Target::variable) {
            s.may.set(t.id);
            s.must.set(t.id);
          }
        break;
      case Statement::expression: expression(st.value, s); break;
      case Statement::declare: break;
      case Statement::if_else: {
        use(st.condition, s);
        State other = s;
        block(st.body, s);
        if (!is_none(st.otherwise)) block(st.otherwise, other);
        join(s, other);
        break;
      }
      case Statement::while_loop:
      case Statement::repeat: loop(id, st, s); break;
      case Statement::block: block(st.body, s); break;
      case Statement::return_:
        for (const Operand& o : st.results) use(o, s);
        s.reachable = false;
        break;
      case Statement::break_:
      case Statement::continue_:
        if (loops.empty()) {
          if (report)
            sink.error("outside-loop", st.span, "`{}` stands outside of a loop; expected `while` or `repeat` around it",
                       st.kind == Statement::break_ ? "break" : "continue");
        } else {
          join(st.kind == Statement::break_ ? loops.back().leave : loops.back().repeat, s);
        }
        s.reachable = false;
        break;
    }
  }

  // A literal condition that is true: the loop ends by `break` or `return` only.
  bool always(const Operand& o) const {
    if (o.kind != Operand::literal) return false;
    const auto* values = std::get_if<std::vector<int64_t>>(&program.literals[o.literal_id()].values);
    return values && values->size() == 1 && (*values)[0] != 0;
  }

  void loop(StatementId id, const Statement& st, State& s) {
    if (st.kind == Statement::repeat) use(st.condition, s);  // the count is read once, at entry
    for (uint32_t v : back[index(id)]) s.may.set(v);
    if (st.kind == Statement::while_loop) use(st.condition, s);
    State exit = s;  // the condition fails at the head
    if (st.kind == Statement::while_loop && always(st.condition)) exit.reachable = false;
    loops.push_back({nothing(), nothing()});
    block(st.body, s);
    join(s, loops.back().repeat);
    if (!back_known[index(id)]) {
      back_known[index(id)] = true;
      if (s.reachable) {
        Bitset added = s.may;
        added.subtract(exit.may);
        added.for_each([&](size_t v) { back[index(id)].push_back(static_cast<uint32_t>(v)); });
        exit.may.merge(s.may);
      }
    }
    State left = std::move(loops.back().leave);
    loops.pop_back();
    join(exit, left);
    s = std::move(exit);
  }

  void run() {
    size_t n = function.variables.size();
    back.assign(function.statements.size(), {});
    back_known.assign(function.statements.size(), false);
    told.assign(n, false);
    State start{Bitset(n), Bitset(n), true};
    for (VariableId v : function.parameters) {
      start.may.set(index(v));
      start.must.set(index(v));
    }
    bool loops_inside = false;
    for (const Statement& st : function.statements)
      loops_inside = loops_inside || st.kind == Statement::while_loop || st.kind == Statement::repeat;
    State s = start;
    if (loops_inside) block(function.body, s);
    report = true;
    s = start;
    block(function.body, s);
    if (s.reachable && !function.result_types.empty())
      sink.warning("missing-return", function.name_span, "`{}` can end without the `return` of its {} result{}",
                   program.text(function.name), function.result_types.size(),
                   function.result_types.size() == 1 ? "" : "s");
  }
};

}  // namespace

void check_assignments(const Program& program, DiagnosticSink& sink) {
  for (const Function& f : program.functions) Assignments{program, f, sink, false, {}, {}, {}, {}}.run();
}

}  // namespace rndn::hir
