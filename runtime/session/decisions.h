// What a run decides by its columns, and what it could do instead: a row per decision, with the ways to force it. Each is
// weighed by what the program's kernels are predicted to take (runtime/model) when it is compiled for it; nothing runs.
//
//   DataChoices choices;
//   ASSIGN_OR_RETURN(Compiled c, compile_for(program, options, sources, &tables, {}, choices));
//   ASSIGN_OR_RETURN(const Weighed all, weigh(choices, program, options, tables, {}, calibration));
//   all.chosen.ns; all.others[k].way->name; all.others[k].predicted.ns;
//
// The choice is made by the rule of the row, whose figures were measured, and not by these predictions: tests hold the
// rules against them and against what the simulator counts (tests/tools/regret_test.cpp). Cost of weighing: the program
// is compiled once for each way.
// Left out, since kernels' cost does not decide it: the order of look-ups, which is the program's; whether a table runs by
// ranges of its rows, which hangs on the device's memory.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "runtime/engine.h"
#include "runtime/model/cost.h"
#include "runtime/session/session.h"

namespace rndn::runtime {

struct Way {
  std::string_view name;
  void (*force)(EngineOptions&);
};
struct Decision {
  std::string_view name, by;  // by: the rule, a phrase
  std::vector<Way> ways;
};
std::span<const Decision> decisions();

// The program as a run over these columns compiles it, as far as they tell; what they decide goes to `choices`. `tables` has the columns that the
// program reads; null: nothing is known. No device is opened: the simulator stands for one.
Result<Compiled> compile_for(const NamedSource& program, CompileOptions options, SourceManager& sources, const reference::Tables* tables,
                             const EngineOptions& how, DataChoices& choices);

// What is predicted of a program compiled one way.
struct Predicted {
  double ns = 0;  // of the kernels
  size_t kernels = 0, operators = 0;  // operators: steps that nothing is predicted of
};

struct Weighed {
  struct Other {
    const Decision* decision;
    const Way* way;
    Predicted predicted;
    bool is_comparable = true;  // false: operators of the library do more or less of the work, of which nothing is predicted
  };
  Predicted chosen;
  std::vector<Other> others;  // those that differ in what kernels do
  // Whether something hangs on it.
  bool differs(const Decision& d) const;
  // The first way that does what was chosen; null: that is none of them all through.
  const Way* chosen_way(const Decision& d) const;
  // How many times what the best comparable way takes; at least 1.
  double regret(const Decision& d) const;
};
// `how`: what is not left to a rule. chosen: of the program compiled so.
Result<Weighed> weigh(const DataChoices& chosen, const NamedSource& program, const CompileOptions& options, const reference::Tables& tables,
                      const EngineOptions& how, const model::Calibration& calibration);

}  // namespace rndn::runtime
