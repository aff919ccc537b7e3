// What the rules of the builtins (type_rules.cpp) and the walk over functions (check_types.cpp) share; private.
//
// A type that could not be found out is `no_type` once the reason was reported: it silences everything that depends on it. The
// wildcard `?` as a type means not known *yet*: in a loop a later assignment may still tell.
#pragma once
#include <span>
#include <string>

#include "frontend/builtins.h"
#include "frontend/frontend.h"

namespace rndn::hir {

inline constexpr TypeId no_type = none<TypeId>();

struct Argument {
  TypeId type = no_type;
  Span span;
  const Literal* literal = nullptr;    // when the argument is one
  const Variable* variable = nullptr;  // when it is one: for notes
};

// What is known of the columns of a table-valued variable.
struct TableFact {
  enum Kind : uint8_t { unset, loaded, built, unknown } kind = unset;
  std::string_view name;             // loaded: of the table in the schema
  const Literal* columns = nullptr;  // built: the names given to `table`
  TypeId cells{};                    // built: the type of its list
  bool operator==(const TableFact&) const = default;
};

class TypeChecker;

// One application of a builtin: the call itself, or a function applied to cells by an each-form (then `outer` names the form).
struct Call {
  TypeChecker& checker;
  Builtin builtin;
  Span span;  // of the callee
  std::span<const Argument> arguments;
  std::string_view outer;
  const TableFact* table = nullptr;  // facts on argument 0 of column_value and column_valid

  size_t size() const { return arguments.size(); }
  const Argument& operator[](size_t i) const { return arguments[i]; }
};

// Services of the walk that rules use.
class TypeChecker {
 public:
  TypeChecker(Program& p, const Options& o, DiagnosticSink& s) : program(p), types(*p.types), options(o), sink(&s) {}

  Program& program;
  TypeTable& types;
  const Options& options;
  DiagnosticSink* sink;  // of the current walk: the real one, or a scratch one while loops settle

  // The result of a builtin, no_type after a report. Requires: arity checked, no argument of type no_type or `?`.
  TypeId apply(const Call& call);
  // The single result of `f` on arguments of these types, in an each-form.
  TypeId apply_function(const Call& outer, const FunctionRef& f, std::span<const Argument> arguments);
  // The results of a primitive of the module GPU, which may be none or several; false after a report (gpu_rules.cpp).
  bool apply_primitive(const Call& call, std::vector<TypeId>& results);
  // True if the number of arguments fits; otherwise reports.
  bool check_arity(const Call& call);
  // "`lt` expects <expected>, got i32 and date", marking the arguments. Returns no_type.
  TypeId mismatch(const Call& call, const std::string& expected);
  // Result types of a user function called with `arguments`; empty optional-like flag `ok` false after a report.
  virtual bool call_user(FunctionId callee, Span span, std::span<const Argument> arguments, std::string_view outer,
                         std::vector<TypeId>& results) = 0;
  // May a value of type `from` be assigned to a place of type `to` (docs/horseir.md, "Assignment")?
  bool assignable(TypeId to, TypeId from) const;

 protected:
  ~TypeChecker() = default;
};

// The table of docs/horseir.md, "check_cast".
bool castable(BasicType from, BasicType to);

}  // namespace rndn::hir
