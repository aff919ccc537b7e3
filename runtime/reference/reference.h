// The reference interpreter: every builtin with its plain meaning on the CPU. Oracle of the tests, device `cpu`, and
// fallback for what has no GPU code.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/builtins.h"
#include "frontend/ir.h"
#include "libraries/base/errors/result.h"
#include "libraries/base/errors/source.h"
#include "runtime/data/column.h"
#include "runtime/data/tables.h"
#include "runtime/data/value.h"

namespace rndn::reference {

// Values, as the interpreter's files name them.
using data::column_of, data::dict, data::enumeration, data::enumeration_of, data::from_column, data::from_literal, data::functions,
    data::ktable, data::length, data::list, data::names_of, data::rows_of, data::table, data::Tables, data::Value, data::vector_from_bytes,
    data::vector_of, data::vector_of_codes, data::vector_of_texts, data::with_columns;

// What the builtins of one run of a program share. A run starts with a fresh one.
struct RunState {
  uint64_t random = 16807;  // the last number drawn by rand and randk, or the seed
  std::vector<Value> globals;          // of the program, by GlobalId; none: as the program declares it
  std::vector<hir::FunctionId> calls;  // of user functions that are open, the innermost last
  // Bounds, so that a wrong program is an error and not an exhausted machine.
  uint64_t longest = data::longest_vector;  // elements of one vector, cells of one list
  uint64_t steps = UINT64_MAX;              // calls and rounds of loops that are left
};

// Executes main and returns its results. `printed` (may be null) receives what @print writes.
// Run-time errors (division by zero, lengths, indices, an unknown column) are the input's fault; their message starts
// with the position of the statement, as SourceManager::describe gives it.
// `state` (may be null: a fresh one): what the run starts from and leaves.
Result<std::vector<Value>> run(const hir::Program& program, const Tables& tables, const SourceManager& sources,
                               std::string* printed, RunState* state = nullptr);

// One builtin on given arguments. `program` gives meaning to function literals of users among the arguments (may be
// null). Messages carry no position: the caller knows the statement. `expected` (may be null): static type of the result.
// `state` (may be null: a fresh one): of the run that the call belongs to.
Result<std::vector<Value>> call(hir::Builtin builtin, const std::vector<Value>& arguments, const hir::Program* program,
                                const Tables& tables, std::string* printed, const hir::BasicType* expected = nullptr,
                                RunState* state = nullptr);

// A function of the program, such as an outlined kernel, on given arguments. Messages carry positions as those of run do.
Result<std::vector<Value>> call(hir::FunctionId function, std::vector<Value> arguments, const hir::Program& program,
                                const Tables& tables, const SourceManager& sources, std::string* printed,
                                RunState* state = nullptr);

// The value as a variable of that type holds it: numbers are converted to the variable's type, fields of a file are read as that,
// everything else stays.
Result<Value> as_assigned(Value value, const hir::TypeTable& types, hir::TypeId type);

// check_cast(value, type) in the lenient or strict mode of docs/horseir.md, "check_cast". `types`
// owns `type`.
Result<Value> check_cast(const Value& value, const hir::TypeTable& types, hir::TypeId type, bool strict);

}  // namespace rndn::reference
