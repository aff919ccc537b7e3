// Executes HorseIR programs statement by statement: control flow, user functions, globals, builtins.
//
// The plainest meaning of the language (docs/horseir.md): values are immutable, a variable holds
// one, an unassigned variable is the empty vector of its type.
//
// Calls nest at most `max_depth` deep, so that endless recursion is an error and not a crash. Only calls recurse here:
// nested blocks stand on a stack of their own, casts around casts are a loop. A call that finds little of its thread's
// stack left goes on in a thread that has enough for all of them, so that the limit holds in any thread.
#include <algorithm>

#include "libraries/base/system/deep_stack.h"
#include "runtime/reference/builtins.h"

namespace rndn::reference {

using hir::BasicType;
using hir::Expression;
using hir::Function;
using hir::Operand;
using hir::Program;
using hir::Statement;

namespace {

constexpr size_t max_depth = 1000;
// Stack of one call, through `each` and with the checks of sanitizers, and what a builtin that calls nothing may need.
constexpr size_t stack_of_call = 64 << 10, stack_of_builtin = 256 << 10;
// Parts of parts of a value: what visits or destroys them recurses.
constexpr uint32_t deepest_value = 200;

class Interpreter {
 public:
  Interpreter(const Program& program, const Tables& tables, const SourceManager* sources, std::string* printed,
              RunState& state)
      : program_(program), tables_(tables), sources_(sources), printed_(printed), state_(state) {
    state_.globals.resize(program.globals.size());
  }

  Result<std::vector<Value>> call(hir::FunctionId id, std::vector<Value> arguments) {
    RETURN_IF_ERROR(take_step(state_));
    if (state_.calls.size() >= max_depth) return too_deep(id);
    if (stack_left() >= stack_of_builtin + stack_of_call) return enter(id, std::move(arguments));
    Result<std::vector<Value>> results = std::vector<Value>();
    RETURN_IF_ERROR(on_own_stack(max_depth * stack_of_call, [&] { results = enter(id, std::move(arguments)); }));
    return results;
  }

 private:
  struct Frame {
    const Function& function;
    IdVector<hir::VariableId, Value> variables;
    std::vector<Value> results;
    bool returned = false;
  };
  // A block that is being executed.
  struct Open {
    hir::BlockId block;
    size_t next = 0;                  // of its statements
    const Statement* loop = nullptr;  // whose body it is
    int64_t rounds = 0;               // of a `repeat` that are left
  };
  // One call among those that are open.
  class OpenCall {
   public:
    OpenCall(RunState& state, hir::FunctionId id) : calls_(state.calls) { calls_.push_back(id); }
    ~OpenCall() { calls_.pop_back(); }
    OpenCall(const OpenCall&) = delete;
    OpenCall& operator=(const OpenCall&) = delete;

   private:
    std::vector<hir::FunctionId>& calls_;
  };

  std::string_view name_of(hir::FunctionId id) const { return program_.text(program_.functions[id].name); }

  Error too_deep(hir::FunctionId id) const {
    const std::vector<hir::FunctionId>& calls = state_.calls;
    const auto own = static_cast<size_t>(std::count(calls.begin(), calls.end(), id));
    if (own + 1 >= calls.size())
      return input_error("`{}` calls itself more than {} times deep", name_of(id), max_depth);
    return input_error("calls are nested more than {} deep: the last are `{}` and `{}`, which it calls", max_depth,
                       name_of(calls.back()), name_of(id));
  }

  Result<std::vector<Value>> enter(hir::FunctionId id, std::vector<Value> arguments) {
    const Function& f = program_.functions[id];
    if (arguments.size() != f.parameters.size())
      return input_error("`{}` expects {} arguments, got {}", name_of(id), f.parameters.size(), arguments.size());
    const OpenCall open(state_, id);
    Frame frame{f, IdVector<hir::VariableId, Value>(f.variables.size()), {}};
    for (size_t i = 0; i < arguments.size(); ++i) frame.variables[f.parameters[i]] = std::move(arguments[i]);
    RETURN_IF_ERROR(run_blocks(frame));
    if (!frame.returned && !f.result_types.empty()) {
      std::vector<Value> empty;
      for (hir::TypeId t : f.result_types) empty.push_back(default_value(t));
      return empty;
    }
    return std::move(frame.results);
  }

  Value default_value(hir::TypeId type) const {
    const hir::TypeTable& types = *program_.types;
    if (types.is_basic(type)) return empty_vector(types.basic_of(type));
    if (types[type].kind == hir::TypeKind::list) return list({});
    return Value{};
  }

  // Puts the position of the statement in front of a message that has none yet.
  Error located(const Error& error, Span span) const {
    if (!sources_ || !span.known() || error.fault != Fault::input) return error;
    if (error.placed) return error;
    Error placed = error;
    placed.placed = true;
    placed.message = fmt::format("{}: error: {}", sources_->describe(span), error.message);
    placed.line = sources_->position(span).line;
    return placed;
  }

  Result<Value> evaluate(Frame& frame, const Operand& operand) {
    switch (operand.kind) {
      case Operand::variable: {
        const Value& v = frame.variables[operand.variable_id()];
        return v.kind == Value::none ? default_value(frame.function.variables[operand.variable_id()].type) : v;
      }
      case Operand::literal: return from_literal(program_, program_.literals[operand.literal_id()]);
      case Operand::global: {
        Value& v = state_.globals[operand.id];
        if (v.kind == Value::none) {
          const Operand* initial = &operand;  // a literal in the end: check_types has refused circles
          while (initial->kind == Operand::global) initial = &program_.globals[initial->global_id()].value;
          ASSIGN_OR_RETURN(v, evaluate(frame, *initial));
        }
        return v;
      }
      case Operand::unresolved: break;
    }
    return Error{Fault::internal, fmt::format("unresolved operand `{}`", program_.text(operand.name))};
  }

  // `asked`: the type that a declaration asks for, which columns of files are read as; a cast asks for its own.
  Result<std::vector<Value>> evaluate(Frame& frame, hir::ExpressionId id, const hir::TypeId* asked = nullptr) {
    std::vector<const Expression*> casts;  // the outermost first
    const Expression* e = &frame.function.expressions[id];
    for (; e->kind == Expression::cast; e = &frame.function.expressions[e->inner]) casts.push_back(e);
    ASSIGN_OR_RETURN(std::vector<Value> values, evaluate_inner(frame, *e, casts.empty() ? asked : &casts.back()->cast_type));
    // A cast of a table's column names its type and keeps its values
    // (docs/horseir.md, "check_cast"); any other cast converts.
    bool column = e->kind == Expression::call && e->callee.kind == hir::FunctionRef::builtin &&
                  e->callee.builtin_id == hir::Builtin::column_value;
    for (auto cast = casts.rbegin(); cast != casts.rend(); ++cast, column = false) {
      if (values.size() != 1) return input_error("`check_cast` expects one value, got {}", values.size());
      const Expression& c = **cast;
      hir::TypeId type = c.types.size() == 1 && !program_.types->is_wildcard(c.types[0]) ? c.types[0] : c.cast_type;
      ASSIGN_OR_RETURN(values[0], check_cast(values[0], *program_.types, type, !column));
    }
    return values;
  }

  // An operand or a call.
  Result<std::vector<Value>> evaluate_inner(Frame& frame, const Expression& e, const hir::TypeId* asked) {
    std::vector<Value> arguments;
    for (const Operand& operand : e.operands) {
      ASSIGN_OR_RETURN(Value v, evaluate(frame, operand));
      arguments.push_back(std::move(v));
    }
    if (e.kind == Expression::operand) return arguments;
    if (e.callee.kind == hir::FunctionRef::user) return call(e.callee.function, std::move(arguments));
    if (e.callee.kind != hir::FunctionRef::builtin) return Error{Fault::internal, "unresolved call"};
    BasicType expected{};
    Context context{&program_, tables_, printed_, nullptr, &state_};
    const hir::TypeId* type = e.types.size() == 1 ? &e.types[0] : nullptr;
    if (type && asked && e.callee.builtin_id == hir::Builtin::column_value && program_.types->is_wildcard(*type))
      type = asked;
    if (type && program_.types->is_basic(*type)) {
      expected = program_.types->basic_of(*type);
      context.expected = &expected;
    }
    ASSIGN_OR_RETURN(Value v, invoke(context, e.callee.builtin_id, arguments));
    return std::vector<Value>{std::move(v)};
  }

  Result<bool> condition(Frame& frame, const Operand& operand) {
    ASSIGN_OR_RETURN(Value v, evaluate(frame, operand));
    ASSIGN_OR_RETURN(int64_t x, integer_scalar("condition", v));
    return x != 0;
  }

  Result<void> assign(Frame& frame, const Statement& s) {
    const bool declared = s.targets.size() == 1 && s.targets[0].kind == hir::Target::variable;
    ASSIGN_OR_RETURN(
        std::vector<Value> values,
        evaluate(frame, s.value, declared ? &frame.function.variables[s.targets[0].variable_id()].type : nullptr));
    if (values.empty() && s.targets.size() == 1) return {};  // a function without results: the target stays unassigned
    if (values.size() != s.targets.size())
      return input_error("{} targets for {} values", s.targets.size(), values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      const hir::Target& target = s.targets[i];
      hir::TypeId type{};
      if (target.kind == hir::Target::variable)
        type = frame.function.variables[target.variable_id()].type;
      else if (target.kind == hir::Target::global)
        type = program_.globals[static_cast<hir::GlobalId>(target.id)].type;
      else
        continue;
      ASSIGN_OR_RETURN(Value v, as_assigned(std::move(values[i]), *program_.types, type));
      if (target.kind == hir::Target::variable)
        frame.variables[target.variable_id()] = std::move(v);
      else
        state_.globals[target.id] = std::move(v);
    }
    return {};
  }

  // The body of a function, block by block.
  Result<void> run_blocks(Frame& frame) {
    std::vector<Open> open{{frame.function.body}};
    while (!open.empty() && !frame.returned) {
      Open& here = open.back();
      const std::vector<hir::StatementId>& statements = frame.function.blocks[here.block].statements;
      const bool ended = here.next == statements.size();
      if (ended && !here.loop) {
        open.pop_back();
        continue;
      }
      const Statement& s = ended ? *here.loop : frame.function.statements[statements[here.next++]];
      Result<void> done = ended ? next_round(frame, open) : run(frame, s, open);
      if (!done) return located(done.error(), s.span);
    }
    return {};
  }

  // Begins the next round of the innermost loop, or leaves it.
  Result<void> next_round(Frame& frame, std::vector<Open>& open) {
    Open& here = open.back();
    bool again = here.rounds-- > 0;
    if (here.loop->kind == Statement::while_loop) {
      ASSIGN_OR_RETURN(again, condition(frame, here.loop->condition));
    }
    if (!again) {
      open.pop_back();
      return {};
    }
    here.next = 0;
    return take_step(state_);
  }

  Result<void> run(Frame& frame, const Statement& s, std::vector<Open>& open) {
    auto begin_loop = [&](int64_t rounds) {
      open.push_back({s.body, frame.function.blocks[s.body].statements.size(), &s, rounds});
    };
    switch (s.kind) {
      case Statement::assign: return assign(frame, s);
      case Statement::expression: {
        ASSIGN_OR_RETURN(std::vector<Value> dropped, evaluate(frame, s.value));
        return {};
      }
      case Statement::declare: return {};
      case Statement::block: open.push_back({s.body}); return {};
      case Statement::if_else: {
        ASSIGN_OR_RETURN(bool taken, condition(frame, s.condition));
        if (taken || !is_none(s.otherwise)) open.push_back({taken ? s.body : s.otherwise});
        return {};
      }
      case Statement::while_loop: begin_loop(0); return {};
      case Statement::repeat: {
        ASSIGN_OR_RETURN(Value count, evaluate(frame, s.condition));
        ASSIGN_OR_RETURN(int64_t n, integer_scalar("repeat", count));
        begin_loop(n);
        return {};
      }
      case Statement::return_:
        frame.results.clear();
        for (const Operand& operand : s.results) {
          ASSIGN_OR_RETURN(Value v, evaluate(frame, operand));
          frame.results.push_back(std::move(v));
        }
        frame.returned = true;
        return {};
      case Statement::break_:
      case Statement::continue_:
        while (!open.empty() && !open.back().loop) open.pop_back();
        if (open.empty()) return {};
        if (s.kind == Statement::break_)
          open.pop_back();
        else
          open.back().next = frame.function.blocks[open.back().block].statements.size();
        return {};
    }
    return Error{Fault::internal, "unknown statement"};
  }

  const Program& program_;
  const Tables& tables_;
  const SourceManager* sources_;
  std::string* printed_;
  RunState& state_;
};

}  // namespace

Result<std::vector<Value>> run(const Program& program, const Tables& tables, const SourceManager& sources,
                               std::string* printed, RunState* state) {
  if (is_none(program.main)) return input_error("the program has no function `main`");
  RunState fresh;
  ASSIGN_OR_RETURN(std::vector<Value> results,
                   Interpreter(program, tables, &sources, printed, state ? *state : fresh).call(program.main, {}));
  for (Value& v : results) {
    ASSIGN_OR_RETURN(v, with_columns(std::move(v), tables));
  }
  return results;
}

Result<std::vector<Value>> call(hir::FunctionId function, std::vector<Value> arguments, const Program& program,
                                const Tables& tables, const SourceManager& sources, std::string* printed,
                                RunState* state) {
  RunState fresh;
  return Interpreter(program, tables, &sources, printed, state ? *state : fresh).call(function, std::move(arguments));
}

// Where the language lets types differ (sum of small integers into i64, Float results into Integer targets), the target
// decides.
Result<Value> as_assigned(Value v, const hir::TypeTable& types, hir::TypeId type) {
  if (!v.is_vector() || !types.is_basic(type)) return v;
  BasicType to = types.basic_of(type);
  if (v.fields && v.type != to) return as_type(v, to);
  if (!hir::is_ordered_number(v.type) || !hir::is_ordered_number(to) || v.type == to) return v;
  return with_type(to, [&](auto zero) { return make<decltype(zero)>(to, elements<decltype(zero)>(v)); });
}

Result<std::vector<Value>> call(hir::Builtin builtin, const std::vector<Value>& arguments, const Program* program,
                                const Tables& tables, std::string* printed, const BasicType* expected,
                                RunState* state) {
  RunState fresh;
  Context context{program, tables, printed, expected, state ? state : &fresh};
  ASSIGN_OR_RETURN(Value v, invoke(context, builtin, arguments));
  return std::vector<Value>{std::move(v)};
}

Result<void> take_step(RunState& state) {
  RETURN_IF_ERROR(check_cancelled());
  if (state.steps == 0) return input_error("the program takes more steps than it may");
  --state.steps;
  return {};
}

Result<Value> invoke(Context& context, hir::Builtin builtin, Arguments arguments) {
  const hir::BuiltinRow& row = hir::row(builtin);
  BuiltinFunction function = find_function(builtin);
  if (!function) return input_error("`{}` is not implemented by the reference interpreter", row.name);
  if (arguments.size() < row.min_arity || (row.max_arity != 255 && arguments.size() > row.max_arity))
    return input_error("`{}` expects {} arguments, got {}", row.name, row.min_arity, arguments.size());
  RETURN_IF_ERROR(take_step(*context.state));
  ASSIGN_OR_RETURN(Value v, function(context, arguments));
  if ((v.kind == Value::vector || v.kind == Value::list) && length(v) > context.state->longest)
    return input_error("`{}` of {} elements is more than the {} that one vector may have", row.name, length(v),
                       context.state->longest);
  if (v.depth > deepest_value)
    return input_error("`{}` makes a value whose parts are nested more than {} deep", row.name, deepest_value);
  return v;
}

Result<Value> apply(Context& context, const hir::FunctionRef& function, std::vector<Value> arguments) {
  if (function.kind == hir::FunctionRef::builtin) return invoke(context, function.builtin_id, arguments);
  if (function.kind != hir::FunctionRef::user || !context.program)
    return Error{Fault::internal, "unresolved function literal"};
  ASSIGN_OR_RETURN(std::vector<Value> results,
                   Interpreter(*context.program, context.tables, nullptr, context.printed, *context.state)
                       .call(function.function, std::move(arguments)));
  if (results.size() != 1)
    return input_error("a function applied to cells must have one result, `{}` has {}",
                       context.program->text(function.name), results.size());
  return results[0];
}

Result<Value> check_cast(const Value& value, const hir::TypeTable& types, hir::TypeId type, bool strict) {
  const hir::Type& to = types[type];
  auto refuse = [&]() { return input_error("cannot cast {} to {}", describe(value), types.text(type)); };
  auto kind_is = [&](Value::Kind kind) -> Result<Value> {
    if (value.kind != kind) return refuse();
    return value;
  };
  switch (to.kind) {
    case hir::TypeKind::wildcard: return value;
    case hir::TypeKind::table: return kind_is(Value::table);
    case hir::TypeKind::ktable: return kind_is(Value::ktable);
    case hir::TypeKind::function: return kind_is(Value::functions);
    case hir::TypeKind::dict: return kind_is(Value::dict);
    case hir::TypeKind::list:
    case hir::TypeKind::tuple: return kind_is(Value::list);
    case hir::TypeKind::enumeration: {
      if (value.kind != Value::enumeration) return refuse();
      const hir::Type& key = types[to.components[0]];
      if (strict && key.kind == hir::TypeKind::basic && value.parts()[0].type != key.basic) return refuse();
      return value;
    }
    case hir::TypeKind::basic: break;
  }
  if (value.kind == Value::enumeration && !strict) return enumerated_values("check_cast", value);
  if (!value.is_vector()) return refuse();
  BasicType from = value.type, basic = to.basic;
  if (from == basic) return value;
  if (value.fields) return as_type(value, basic);
  if (hir::is_text(from) && hir::is_text(basic)) {
    Value same = value;
    same.type = basic;
    return same;
  }
  if (!strict && (hir::is_text(from) || (hir::is_float(from) && hir::is_integer(basic)))) return value;
  if (!hir::is_ordered_number(from) || !hir::is_ordered_number(basic)) return refuse();
  uint32_t from_bits = from == BasicType::boolean ? 1 : 8 * data::plain_width(from),
           bits = basic == BasicType::boolean ? 1 : 8 * data::plain_width(basic);
  const bool wide = hir::is_wide(from) || hir::is_wide(basic);
  bool fits = wide                                            ? true
              : basic == BasicType::boolean                   ? hir::is_integer(from)
              : hir::is_float(basic) && from_bits > 1         ? true
                                                              : from_bits <= bits;
  if (strict && !fits) return refuse();
  return with_type(basic, [&](auto zero) {
    using T = decltype(zero);
    if (basic == BasicType::boolean)
      return with_type(from, [&](auto f) {
        std::vector<T> out(value.size);
        for (uint64_t i = 0; i < value.size; ++i) out[i] = static_cast<T>(value.as<decltype(f)>()[i] != 0);
        return make<T>(basic, out);
      });
    return make<T>(basic, elements<T>(value));
  });
}

}  // namespace rndn::reference
