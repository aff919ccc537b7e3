#include "runtime/session/decisions.h"

#include <algorithm>

#include "runtime/data/tables.h"
#include "runtime/simulator/simulator_device.h"

namespace rndn::runtime {

std::span<const Decision> decisions() {
  using O = EngineOptions;
  static const std::vector<Decision> rows = {
      {"how columns lie",
       "--encode",
       {{"as types have them", [](O& o) { o.encode = Encode::plain; }},
        {"in few bytes", [](O& o) { o.encode = Encode::narrow; }},
        {"in bits", [](O& o) { o.encode = Encode::packed; }}}},
      {"rows collected before tables are asked",
       "the share that conditions leave, of enough rows",
       {{"none", [](O& o) { o.collected_rows = UINT64_MAX; }},
        {"wherever they can be", [](O& o) { o.collected_rows = 0, o.most_collected = 1; }}}},
      {"tables of rows by key",
       "the keys' bounds and how many rows there may be",
       {{"all hashed", [](O& o) { o.hashed_lookups = true; }}, {"a slot for each key, where these are few", [](O& o) { o.hashed_lookups = false; }}}},
      {"a bit before a table of selected rows",
       "the rows that the table may have",
       {{"none", [](O& o) { o.filtered_rows = UINT64_MAX; }}, {"wherever there can be", [](O& o) { o.filtered_rows = 1; }}}},
      {"groups of rows that look-ups select",
       "the rows of the kernel that looks up",
       {{"folded there", [](O& o) { o.most_rows_of_selective_folds = UINT64_MAX; }},
        {"folded by a kernel of their own", [](O& o) { o.most_rows_of_selective_folds = 0; }}}},
      {"groups",
       "the rows, and the keys' bounds",
       {{"sorted", [](O& o) { o.operators.group = operators::Options::Group::sort; }},
        {"hashed", [](O& o) { o.operators.group = operators::Options::Group::hash; }}}},
  };
  return rows;
}

Result<Compiled> compile_for(const NamedSource& program, CompileOptions options, SourceManager& sources, const reference::Tables* tables,
                             const EngineOptions& how, DataChoices& choices) {
  DiagnosticSink said_already;
  Timings timings;
  const FileId file = sources.add(program.file, program.text);
  options.until = Stage::cubin;
  options.notes_work = true;
  if (!tables) return compile(file, sources, options, said_already, timings);
  ASSIGN_OR_RETURN(const auto device, open_simulator(options.target));
  Engine engine(*device, *tables);
  options.forecast = [&](const Compiled& c) { return engine.forecast(c, sources, how, *tables, &choices); };
  auto compiled = compile(file, sources, options, said_already, timings);
  if (!compiled) return compiled;
  compiled->options.forecast = nullptr;
  DataChoices of_code;  // now that there is code for what they decided
  (void)engine.forecast(*compiled, sources, how, *tables, &of_code);
  choices.work = std::move(of_code.work);
  choices.columns = std::move(of_code.columns);
  return compiled;
}

namespace {

Predicted predicted_of(const DataChoices& choices, const model::Calibration& c) {
  Predicted out{.ns = model::kernels_ns(choices.work, c)};
  for (const model::Work& w : choices.work) ++(w.is_kernel ? out.kernels : out.operators);
  return out;
}

}  // namespace

bool Weighed::differs(const Decision& d) const {
  return std::any_of(others.begin(), others.end(), [&](const Other& o) { return o.decision == &d; });
}

const Way* Weighed::chosen_way(const Decision& d) const {
  const auto is_other = [&](const Way& way) {
    return std::any_of(others.begin(), others.end(), [&](const Other& o) { return o.way == &way; });
  };
  const auto at = std::find_if_not(d.ways.begin(), d.ways.end(), is_other);
  return at == d.ways.end() ? nullptr : &*at;
}

double Weighed::regret(const Decision& d) const {
  double best = chosen.ns;
  for (const Other& o : others)
    if (o.decision == &d && o.is_comparable) best = std::min(best, o.predicted.ns);
  return best > 0 ? chosen.ns / best : 1;
}

Result<Weighed> weigh(const DataChoices& chosen, const NamedSource& program, const CompileOptions& options, const reference::Tables& tables,
                      const EngineOptions& how, const model::Calibration& calibration) {
  Weighed out{.chosen = predicted_of(chosen, calibration), .others = {}};
  for (const Decision& d : decisions())
    for (const Way& way : d.ways) {
      EngineOptions forced = how;
      way.force(forced);
      SourceManager sources;
      DataChoices choices;
      if (auto compiled = compile_for(program, options, sources, &tables, forced, choices); !compiled) continue;
      const Predicted of = predicted_of(choices, calibration);
      if (of.ns == out.chosen.ns && of.kernels == out.chosen.kernels && of.operators == out.chosen.operators) continue;
      out.others.push_back({&d, &way, of, of.operators == out.chosen.operators});
    }
  return out;
}

}  // namespace rndn::runtime
