// Executes HorseIR programs statement by statement: control flow, user functions, globals, builtins.
//
// The plainest meaning of the language (horseir.md sections 2 to 4): values are immutable, a variable holds one, an
// unassigned variable is the empty vector of its type. Calls nest at most `max_depth` deep, so that endless recursion
// is an error and not a crash.
#include "runtime/reference/builtins.h"

namespace rndn::reference {

using hir::BasicType;
using hir::Expression;
using hir::Function;
using hir::Operand;
using hir::Program;
using hir::Statement;

namespace {

constexpr uint32_t max_depth = 1000;

// How a block was left.
enum class Flow : uint8_t { next, break_, continue_, return_ };

class Interpreter {
 public:
  Interpreter(const Program& program, const Tables& tables, const SourceManager* sources, std::string* printed,
              RunState& state, uint32_t depth)
      : program_(program),
        tables_(tables),
        sources_(sources),
        printed_(printed),
        state_(state),
        depth_(depth),
        globals_(program.globals.size()) {}

  Result<std::vector<Value>> call(hir::FunctionId id, std::vector<Value> arguments) {
    const Function& f = program_.functions[id];
    RETURN_IF_ERROR(take_step(state_));
    if (depth_ >= max_depth)
      return input_error("`{}` calls itself more than {} times deep", program_.text(f.name), max_depth);
    if (arguments.size() != f.parameters.size())
      return input_error("`{}` expects {} arguments, got {}", program_.text(f.name), f.parameters.size(),
                         arguments.size());
    ++depth_;
    Frame frame{f, IdVector<hir::VariableId, Value>(f.variables.size()), {}};
    for (size_t i = 0; i < arguments.size(); ++i) frame.variables[f.parameters[i]] = std::move(arguments[i]);
    Flow flow = Flow::next;
    Result<void> done = run_block(frame, f.body, flow);
    --depth_;
    if (!done) return done.error();
    if (flow != Flow::return_ && !f.result_types.empty()) {
      std::vector<Value> empty;
      for (hir::TypeId t : f.result_types) empty.push_back(default_value(t));
      return empty;
    }
    return std::move(frame.results);
  }

 private:
  struct Frame {
    const Function& function;
    IdVector<hir::VariableId, Value> variables;
    std::vector<Value> results;
  };

  Value default_value(hir::TypeId type) const {
    const hir::TypeTable& types = *program_.types;
    if (types.is_basic(type)) return empty_vector(types.basic_of(type));
    if (types[type].kind == hir::TypeKind::list) return list({});
    return Value{};
  }

  // Puts the position of the statement in front of a message that has none yet.
  Error located(const Error& error, Span span) const {
    if (!sources_ || !span.known() || error.fault != Fault::input) return error;
    if (error.message.find(": error: ") != std::string::npos) return error;
    return {error.fault, fmt::format("{}: error: {}", sources_->describe(span), error.message)};
  }

  Result<Value> evaluate(Frame& frame, const Operand& operand) {
    switch (operand.kind) {
      case Operand::variable: {
        const Value& v = frame.variables[operand.variable_id()];
        return v.kind == Value::none ? default_value(frame.function.variables[operand.variable_id()].type) : v;
      }
      case Operand::literal: return from_literal(program_, program_.literals[operand.literal_id()]);
      case Operand::global: {
        Value& v = globals_[operand.global_id()];
        if (v.kind == Value::none) {
          ASSIGN_OR_RETURN(Value initial, evaluate(frame, program_.globals[operand.global_id()].value));
          v = std::move(initial);
        }
        return v;
      }
      case Operand::unresolved: break;
    }
    return Error{Fault::internal, fmt::format("unresolved operand `{}`", program_.text(operand.name))};
  }

  Result<std::vector<Value>> evaluate(Frame& frame, hir::ExpressionId id) {
    const Expression& e = frame.function.expressions[id];
    switch (e.kind) {
      case Expression::operand: {
        ASSIGN_OR_RETURN(Value v, evaluate(frame, e.operands[0]));
        return std::vector<Value>{std::move(v)};
      }
      case Expression::cast: {
        ASSIGN_OR_RETURN(std::vector<Value> inner, evaluate(frame, e.inner));
        if (inner.size() != 1) return input_error("`check_cast` expects one value, got {}", inner.size());
        // A cast of a table's column names its type and keeps its values (horseir.md 3.5); any other cast converts.
        const Expression& of = frame.function.expressions[e.inner];
        bool column = of.kind == Expression::call && of.callee.kind == hir::FunctionRef::builtin &&
                      hir::row(of.callee.builtin_id).name == "column_value";
        hir::TypeId type = e.types.size() == 1 && !program_.types->is_wildcard(e.types[0]) ? e.types[0] : e.cast_type;
        ASSIGN_OR_RETURN(Value v, check_cast(inner[0], *program_.types, type, !column));
        return std::vector<Value>{std::move(v)};
      }
      case Expression::call: {
        std::vector<Value> arguments;
        for (const Operand& operand : e.operands) {
          ASSIGN_OR_RETURN(Value v, evaluate(frame, operand));
          arguments.push_back(std::move(v));
        }
        if (e.callee.kind == hir::FunctionRef::user) return call(e.callee.function, std::move(arguments));
        if (e.callee.kind != hir::FunctionRef::builtin) return Error{Fault::internal, "unresolved call"};
        BasicType expected{};
        Context context = make_context();
        if (e.types.size() == 1 && program_.types->is_basic(e.types[0])) {
          expected = program_.types->basic_of(e.types[0]);
          context.expected = &expected;
        }
        ASSIGN_OR_RETURN(Value v, invoke(context, e.callee.builtin_id, arguments));
        return std::vector<Value>{std::move(v)};
      }
    }
    return Error{Fault::internal, "unknown expression"};
  }

  Context make_context() { return Context{&program_, tables_, printed_, nullptr, depth_, &state_}; }

  Result<bool> condition(Frame& frame, const Operand& operand) {
    ASSIGN_OR_RETURN(Value v, evaluate(frame, operand));
    ASSIGN_OR_RETURN(int64_t x, integer_scalar("condition", v));
    return x != 0;
  }

  Result<void> assign(Frame& frame, const Statement& s) {
    ASSIGN_OR_RETURN(std::vector<Value> values, evaluate(frame, s.value));
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
      Value v;
      if (values[i].from_file && program_.types->is_basic(type)) {
        ASSIGN_OR_RETURN(v, as_type(values[i], program_.types->basic_of(type)));
      } else {
        v = as_assigned(std::move(values[i]), *program_.types, type);
      }
      if (target.kind == hir::Target::variable)
        frame.variables[target.variable_id()] = std::move(v);
      else
        globals_[static_cast<hir::GlobalId>(target.id)] = std::move(v);
    }
    return {};
  }

  Result<void> run_block(Frame& frame, hir::BlockId id, Flow& flow) {
    for (hir::StatementId sid : frame.function.blocks[id].statements) {
      const Statement& s = frame.function.statements[sid];
      Result<void> done = run(frame, s, flow);
      if (!done) return located(done.error(), s.span);
      if (flow != Flow::next) return {};
    }
    return {};
  }

  // Runs a loop body; tells whether the loop goes on.
  Result<bool> run_body(Frame& frame, hir::BlockId body, Flow& flow) {
    RETURN_IF_ERROR(run_block(frame, body, flow));
    if (flow == Flow::return_) return false;
    bool leave = flow == Flow::break_;
    flow = Flow::next;
    return !leave;
  }

  Result<void> run(Frame& frame, const Statement& s, Flow& flow) {
    switch (s.kind) {
      case Statement::assign: return assign(frame, s);
      case Statement::expression: {
        ASSIGN_OR_RETURN(std::vector<Value> dropped, evaluate(frame, s.value));
        return {};
      }
      case Statement::declare: return {};
      case Statement::block: return run_block(frame, s.body, flow);
      case Statement::if_else: {
        ASSIGN_OR_RETURN(bool taken, condition(frame, s.condition));
        if (taken) return run_block(frame, s.body, flow);
        if (!is_none(s.otherwise)) return run_block(frame, s.otherwise, flow);
        return {};
      }
      case Statement::while_loop:
        while (true) {
          ASSIGN_OR_RETURN(bool go, condition(frame, s.condition));
          if (!go) return {};
          RETURN_IF_ERROR(take_step(state_));
          ASSIGN_OR_RETURN(bool again, run_body(frame, s.body, flow));
          if (!again) return {};
        }
      case Statement::repeat: {
        ASSIGN_OR_RETURN(Value count, evaluate(frame, s.condition));
        ASSIGN_OR_RETURN(int64_t n, integer_scalar("repeat", count));
        for (int64_t i = 0; i < n; ++i) {
          RETURN_IF_ERROR(take_step(state_));
          ASSIGN_OR_RETURN(bool again, run_body(frame, s.body, flow));
          if (!again) return {};
        }
        return {};
      }
      case Statement::return_:
        frame.results.clear();
        for (const Operand& operand : s.results) {
          ASSIGN_OR_RETURN(Value v, evaluate(frame, operand));
          frame.results.push_back(std::move(v));
        }
        flow = Flow::return_;
        return {};
      case Statement::break_: flow = Flow::break_; return {};
      case Statement::continue_: flow = Flow::continue_; return {};
    }
    return Error{Fault::internal, "unknown statement"};
  }

  const Program& program_;
  const Tables& tables_;
  const SourceManager* sources_;
  std::string* printed_;
  RunState& state_;
  uint32_t depth_;
  IdVector<hir::GlobalId, Value> globals_;
};

}  // namespace

Result<std::vector<Value>> run(const Program& program, const Tables& tables, const SourceManager& sources,
                               std::string* printed, RunState* state) {
  if (is_none(program.main)) return input_error("the program has no function `main`");
  RunState fresh;
  return Interpreter(program, tables, &sources, printed, state ? *state : fresh, 0).call(program.main, {});
}

Result<std::vector<Value>> call(hir::FunctionId function, std::vector<Value> arguments, const Program& program,
                                const Tables& tables, const SourceManager& sources, std::string* printed,
                                RunState* state) {
  RunState fresh;
  return Interpreter(program, tables, &sources, printed, state ? *state : fresh, 0)
      .call(function, std::move(arguments));
}

// Where the language lets types differ (sum of small integers into i64, Float results into Integer targets), the target
// decides.
Value as_assigned(Value v, const hir::TypeTable& types, hir::TypeId type) {
  if (!v.is_vector() || !types.is_basic(type)) return v;
  BasicType to = types.basic_of(type);
  if (!hir::is_real(v.type) || !hir::is_real(to) || v.type == to) return v;
  return with_type(to, [&](auto zero) { return make<decltype(zero)>(to, elements<decltype(zero)>(v)); });
}

Result<std::vector<Value>> call(hir::Builtin builtin, const std::vector<Value>& arguments, const Program* program,
                                const Tables& tables, std::string* printed, const BasicType* expected,
                                RunState* state) {
  RunState fresh;
  Context context{program, tables, printed, expected, 0, state ? state : &fresh};
  ASSIGN_OR_RETURN(Value v, invoke(context, builtin, arguments));
  return std::vector<Value>{std::move(v)};
}

Result<void> take_step(RunState& state) {
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
  return v;
}

Result<Value> apply(Context& context, const hir::FunctionRef& function, std::vector<Value> arguments) {
  if (function.kind == hir::FunctionRef::builtin) return invoke(context, function.builtin_id, arguments);
  if (function.kind != hir::FunctionRef::user || !context.program)
    return Error{Fault::internal, "unresolved function literal"};
  ASSIGN_OR_RETURN(std::vector<Value> results, Interpreter(*context.program, context.tables, nullptr, context.printed,
                                                           *context.state, context.depth)
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
  if (value.from_file) return as_type(value, basic);
  if (hir::is_text(from) && hir::is_text(basic))
    return vector_of_texts(basic, value.texts ? *value.texts : std::vector<std::string>());
  if (!strict && (hir::is_text(from) || (hir::is_float(from) && hir::is_integer(basic)))) return value;
  if (!hir::is_real(from) || !hir::is_real(basic)) return refuse();
  uint32_t from_bits = from == BasicType::boolean ? 1 : 8 * data::plain_width(from),
           bits = basic == BasicType::boolean ? 1 : 8 * data::plain_width(basic);
  bool fits = basic == BasicType::boolean                     ? hir::is_integer(from)
              : hir::is_float(basic) && hir::is_integer(from) ? true
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
