#include "runtime/reference/builtins.h"

namespace rndn::reference {

// Joins the files' tables, by name, to the rows of builtins.def. Built once, on first use.
BuiltinFunction find_function(hir::Builtin builtin) {
  static const std::vector<BuiltinFunction> functions = [] {
    std::vector<BuiltinFunction> out(hir::builtin_count());
    for (auto entries : {elementwise_builtins(), selection_builtins(), reduction_builtins(), relational_builtins(),
                         text_builtins(), text_call_builtins(), list_builtins(), database_builtins(), gpu_library_builtins()})
      for (const BuiltinEntry& entry : entries) {
        hir::Builtin id;
        CHECK(hir::find_builtin(entry.name, id), "no row for `{}`", entry.name);
        out[static_cast<size_t>(id)] = entry.function;
      }
    return out;
  }();
  return functions[static_cast<size_t>(builtin)];
}

}  // namespace rndn::reference
