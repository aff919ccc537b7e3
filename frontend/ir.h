// HorseIR programs: one representation from parser to outliner. The parser fills in names and spans, resolve_names.cpp the
// resolved ids, check_types.cpp the types; the outliner makes new programs of the same form (kernels included), which print as
// valid HorseIR.
//
// Storage: a Program owns flat vectors; entities name each other by typed ids; nothing is deleted before the program is.
#pragma once
#include <complex>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "frontend/types.h"
#include "libraries/base/containers/id.h"
#include "libraries/base/containers/inline_vector.h"
#include "libraries/base/containers/intern.h"
#include "libraries/base/errors/source.h"

namespace rndn::hir {

// Levels of statements in statements, and of check_casts in check_casts, that a program may have: passes recurse.
inline constexpr uint32_t most_nested = 200;

enum class ModuleId : uint32_t {};
enum class FunctionId : uint32_t {};
enum class GlobalId : uint32_t {};
enum class LiteralId : uint32_t {};
enum class VariableId : uint32_t {};    // within its function
enum class StatementId : uint32_t {};   // within its function
enum class ExpressionId : uint32_t {};  // within its function
enum class BlockId : uint32_t {};       // within its function
enum class Builtin : uint16_t;          // builtins.h: one per row of builtins.def

// What a call or a function literal names. The parser leaves `kind` unresolved.
struct FunctionRef {
  enum Kind : uint8_t { unresolved, builtin, user } kind = unresolved;
  NameId module = none<NameId>();  // `@M.f`; none for `@f`
  NameId name = none<NameId>();
  Builtin builtin_id{};
  FunctionId function = none<FunctionId>();
  Span span;
};

// A vector of values of one basic type, or function references (`@f`, `@f@g`).
struct Literal {
  TypeId type{};  // basic (sym and str also for the untyped literals of old programs), or function
  // Integers of any width, booleans, characters and calendar values (encoded as
  // docs/horseir.md, "Calendar values") | floats | complex | text | functions | i128
  std::variant<std::vector<int64_t>, std::vector<double>, std::vector<std::complex<double>>, std::vector<std::string>,
               std::vector<FunctionRef>, std::vector<__int128>>
      values;
  Span span;
  size_t size() const {
    return std::visit([](const auto& v) { return v.size(); }, values);
  }
};

struct Operand {
  enum Kind : uint8_t { unresolved, variable, global, literal } kind = unresolved;
  uint32_t id = 0;                 // VariableId, GlobalId or LiteralId, as `kind` says
  NameId module = none<NameId>();  // the names as written; for printing and resolution
  NameId name = none<NameId>();
  Span span;
  VariableId variable_id() const { return static_cast<VariableId>(id); }
  GlobalId global_id() const { return static_cast<GlobalId>(id); }
  LiteralId literal_id() const { return static_cast<LiteralId>(id); }
};

struct Expression {
  enum Kind : uint8_t { operand, call, cast } kind = operand;
  Span span;
  InlineVector<Operand, 2> operands;  // operand: exactly one; call: the arguments (function literals are operands too)
  FunctionRef callee;                 // call
  ExpressionId inner = none<ExpressionId>();  // cast
  TypeId cast_type{};                         // cast
  InlineVector<TypeId, 1> types;              // results, after type inference; a void call has none
};

// Left side of an assignment.
struct Target {
  enum Kind : uint8_t { unresolved, variable, global, sink } kind = unresolved;
  uint32_t id = 0;  // VariableId or GlobalId
  NameId module = none<NameId>();
  NameId name = none<NameId>();
  bool declares = false;   // `x:T = ...`
  TypeId declared_type{};  // with declares; may be `?`
  Span span;
  VariableId variable_id() const { return static_cast<VariableId>(id); }
};

struct Statement {
  enum Kind : uint8_t {
    assign,
    expression,
    declare,
    if_else,
    while_loop,
    repeat,
    block,
    return_,
    break_,
    continue_
  } kind = expression;
  Span span;
  ExpressionId value = none<ExpressionId>();  // assign, expression
  InlineVector<Target, 1> targets;            // assign; declare: the variables (declares = true)
  Operand condition;                          // if_else, while_loop; repeat: the count
  BlockId body = none<BlockId>();             // if_else, while_loop, repeat, block
  BlockId otherwise = none<BlockId>();        // if_else: else-part or none
  std::vector<Operand> results;               // return_
};

struct Block {
  std::vector<StatementId> statements;
  Span span;
};

struct Variable {
  NameId name{};
  TypeId type{};  // declared, then inferred; `?` only until check_types has run
  bool is_parameter = false;
  Span span;  // of its declaration
};

struct Function {
  NameId name{};
  ModuleId module{};
  bool is_kernel = false;  // `kernel` instead of `def`
  Span name_span;
  Span span;
  std::vector<VariableId> parameters;
  std::vector<TypeId> result_types;
  BlockId body = none<BlockId>();  // the outermost block
  IdVector<VariableId, Variable> variables;
  IdVector<StatementId, Statement> statements;
  IdVector<ExpressionId, Expression> expressions;
  IdVector<BlockId, Block> blocks;
};

struct Global {
  NameId name{};
  ModuleId module{};
  TypeId type{};
  Operand value;
  Span span;
};

struct Import {
  NameId module{};
  bool wildcard = false;
  std::vector<NameId> names;
  Span span;
};

struct Module {
  NameId name = none<NameId>();  // none: the anonymous module of v0/v1 files
  std::vector<Import> imports;
  std::vector<FunctionId> functions;
  std::vector<GlobalId> globals;
  Span span;
};

struct Program {
  std::shared_ptr<Interner> names = std::make_shared<Interner>();
  std::shared_ptr<TypeTable> types = std::make_shared<TypeTable>();
  IdVector<ModuleId, Module> modules;
  IdVector<FunctionId, Function> functions;
  IdVector<GlobalId, Global> globals;
  IdVector<LiteralId, Literal> literals;
  FunctionId main = none<FunctionId>();  // set by resolve_names

  std::string_view text(NameId id) const { return names->text(id); }
};

// Prints the program as HorseIR that parses to the same program. `typed`: every declaration carries its inferred type.
std::string print(const Program& program, bool typed);
std::string print(const Program& program, const Function& function, bool typed);

}  // namespace rndn::hir
