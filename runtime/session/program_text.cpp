#include "runtime/session/program_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "outliner/explain.h"
#include "runtime/data/tables.h"
#include "runtime/engine.h"
#include "runtime/memory/vector_bounds.h"
#include "runtime/plan/fallbacks.h"
#include "runtime/session/decisions.h"
#include "runtime/simulator/simulator_device.h"

namespace rndn::runtime {
namespace {

// What has no device code: told by code generation, the assembler and the runtime's plan.
void explain_fallbacks(const Compiled& compiled, const SourceManager& sources, std::string& out) {
  const hir::Program& program = compiled.outlined.program;
  const hir::Function& main = program.functions[program.main];
  if (!compiled.fusions.groups.empty()) out += "fused operators\n";
  for (const outliner::FusedGroup& g : compiled.fusions.groups) {
    out += fmt::format("  {}: a group and {} reductions of its rows, instead of",
                       sources.describe(main.statements[g.group].span), g.reductions.size());
    for (size_t k = 0; k < compiled.outlined.kernels.size(); ++k)
      for (hir::StatementId launch : g.launches) {
        const hir::Expression& e = main.expressions[main.statements[launch].value];
        if (e.kind == hir::Expression::call && e.callee.kind == hir::FunctionRef::user &&
            e.callee.function == compiled.outlined.kernels[k].function)
          out += fmt::format(" `{}`", program.text(program.functions[e.callee.function].name));
      }
    out += "\n";
  }
  const std::vector<std::string> fallbacks = fallbacks_of(compiled, sources);
  out += "fallbacks to the reference interpreter\n";
  for (const std::string& f : fallbacks) out += fmt::format("  {}\n", f);
  if (fallbacks.empty()) out += "  none\n";
}

// Columns that a program reads, as they lie on the device.
class Columns {
 public:
  Columns(std::shared_ptr<data::Source> source, Encode encode)
      : tables_(std::move(source)), encode_(encode) {}

  // Loads them. What cannot be had is not listed: running the program says why.
  void find(const hir::ColumnReads& reads) {
    for (const hir::ColumnRead& c : reads.columns)
      if (!reads.tables[c.table].is_file) (void)form(reads.tables[c.table].name, c);
  }

  std::optional<uint32_t> bits(std::string_view table, const hir::ColumnRead& c) {
    const Known* known = form(table, c);
    return known ? std::optional(known->bits) : std::nullopt;
  }

  const reference::Tables& tables() const { return tables_; }

  std::string text() const {
    std::string out = "columns\n";
    for (const auto& [name, k] : known_) {
      const std::string ratio =
          k.bits == 0 ? "none left"
                      : fmt::format("{:.1f} times fewer", static_cast<double>(k.plain_bits) / k.bits);
      out += fmt::format("  {:<28} {:<6} {:>3} of {:>3} bits{}: {}\n", name, k.encoding, k.bits, k.plain_bits,
                         k.bits == k.plain_bits ? "" : ", " + ratio, k.reason);
    }
    if (known_.empty()) out += "  none\n";
    return out;
  }

 private:
  struct Known {
    std::string_view encoding;
    uint32_t bits, plain_bits;
    std::string reason;
  };

  const Known* form(std::string_view table, const hir::ColumnRead& c) {
    const std::string name = fmt::format("{}.{}{}", table, c.column, c.validity ? " is there" : "");
    if (const auto at = known_.find(name); at != known_.end()) return &at->second;
    auto column = tables_.part(table, c.column, c.validity ? data::ColumnPart::validity : data::ColumnPart::values);
    if (!column) column = tables_.part(table, c.column, data::ColumnPart::values_with_zeros);
    if (!column) return nullptr;
    RowsReferred rows_of;
    if ((*column)->is_foreign_key && (*column)->foreign_rows) {
      const auto rows = tables_.rows((*column)->foreign_table);
      if (!rows) return nullptr;
      rows_of = *rows;
    }
    const ColumnForm f = form_of(**column, rows_of, encode_, nullptr);
    const hir::BasicType type = element_type(**column, rows_of);
    std::string reason = f.reason;
    if (!rows_of && (*column)->rows >= least_bounded_rows)
      if (const Spanned spanned = spanned_of(**column); !spanned.reason.empty()) reason += "; " + spanned.reason;
    return &known_
                .try_emplace(name, Known{encodings::find(f.stored).name(), encodings::bits_of(type, f.stored),
                                         8 * encodings::plain_bytes(type), std::move(reason)})
                .first->second;
  }

  data::SourceTables tables_;
  Encode encode_;
  std::map<std::string, Known> known_;
};

// Where columns do not stay on the device: what each costs the bus, sent or read by kernels.
std::string transfers_in_words(const DataChoices& choices, const model::Calibration& c) {
  std::string out = "transfer, where columns do not stay on the device\n";
  for (size_t i = 0; i < choices.columns.size(); ++i) {
    const DataChoices::Column& column = choices.columns[i];
    const model::Transfer of = choices.transfer(i, c);
    const std::string sent = fmt::format("sent {:.2f} us ({:.3f} MB)", of.sent_ns * 1e-3, of.sent_bytes * 1e-6),
                      read = column.is_read_whole ? "a step reads all of it"
                                                  : fmt::format("read by kernels {:.2f} us ({:.3f} MB)", of.read_ns * 1e-3, of.read_bytes * 1e-6);
    const bool maps = choices.maps(i, c);
    out += fmt::format("  {}{}: {}; {}\n", column.name.empty() ? "a column" : column.name, column.of_rows ? ", its rows" : "",
                       maps ? read : sent, maps ? sent : read);
  }
  if (choices.columns.empty()) out += "  no columns of numbers\n";
  if (c.of(model::Rate::host_mapped).empty())
    out += "  this calibration has no such reads: single sectors are taken to come at 0.4 of the speed of copies\n";
  return out;
}

// Of a run by ranges of rows, which sends all columns of numbers while kernels work; 0: there are none, or copies were not measured.
double ranges_ns(const DataChoices& choices, const Weighed& all, const model::Calibration& c) {
  if (c.of(model::Rate::host_pinned).empty()) return 0;
  double sent = 0;
  for (size_t i = 0; i < choices.columns.size(); ++i) sent += choices.transfer(i, c).sent_ns;
  return sent > 0 ? std::max(sent, all.chosen.ns) : 0;
}

// What each kernel is predicted to take, and for each decision what else could be done, with what all kernels are predicted to take then.
std::string costs_in_words(const DataChoices& choices, const Weighed& all, const model::Calibration& c) {
  std::string text = "predicted\n";
  if (choices.work.empty()) text += "  nothing is foreseen of this program\n";
  for (const model::Work& w : choices.work) {
    if (!w.is_kernel) {
      text += fmt::format("  {:<12} not predicted\n", w.name);
      continue;
    }
    const model::Cost cost = model::cost_of(w, c);
    text += fmt::format("  {:<12} {:>10.2f} us, by {}: {:.0f} rows; memory {:.2f} us ({:.3f} MB), gathers {:.2f}, adds {:.2f}, "
                        "instructions {:.2f}, launch {:.2f}\n",
                        w.name, cost.ns * 1e-3, cost.bound, w.rows, cost.stream_ns * 1e-3, model::bytes_of(w) * 1e-6,
                        cost.gather_ns * 1e-3, cost.add_ns * 1e-3, cost.issue_ns * 1e-3, cost.launch_ns * 1e-3);
  }
  text += fmt::format("  {:<12} {:>10.2f} us\ndecisions, and what all kernels are predicted to take\n", "kernels", all.chosen.ns * 1e-3);
  for (const Decision& d : decisions()) {
    const Way* way = all.chosen_way(d);
    text += fmt::format("  {}, by {}: ", d.name, d.by);
    text += all.differs(d) ? fmt::format("{}, {:.2f} us", way ? way->name : "some of each", all.chosen.ns * 1e-3) : "nothing hangs on it here";
    for (const Weighed::Other& o : all.others)
      if (o.decision == &d)
        text += o.is_comparable ? fmt::format("; {}, {:.2f}", o.way->name, o.predicted.ns * 1e-3)
                                : fmt::format("; {}, not predicted, since operators take part", o.way->name);
    text += "\n";
  }
  if (const double ranges = ranges_ns(choices, all, c); ranges > 0)
    text += fmt::format("  where columns lie, by whether they fit the device's memory: all on it, {:.2f} us; a range of rows after the other, {:.2f}\n",
                        all.chosen.ns * 1e-3, ranges * 1e-3);
  return text + transfers_in_words(choices, c);
}

// The same as a value of JSON. null: that is not predicted.
std::string costs_as_json(const std::string& name, const DataChoices& choices, const Weighed& all, const model::Calibration& c) {
  using Json = nlohmann::ordered_json;
  Json out = {{"program", name}, {"kernels", Json::array()}, {"us", all.chosen.ns * 1e-3}, {"decisions", Json::array()}, {"transfers", Json::array()}};
  for (const model::Work& w : choices.work) {
    const model::Cost cost = model::cost_of(w, c);
    out["kernels"].push_back(w.is_kernel ? Json{{"name", w.name}, {"us", cost.ns * 1e-3}, {"bound", std::string(cost.bound)}}
                                         : Json{{"name", w.name}, {"us", nullptr}});
  }
  for (const Decision& d : decisions()) {
    const Way* way = all.chosen_way(d);
    Json of = {{"name", std::string(d.name)}, {"by", std::string(d.by)}, {"chosen", nullptr}, {"us", all.chosen.ns * 1e-3}, {"others", Json::array()}};
    if (way && all.differs(d)) of["chosen"] = std::string(way->name);
    for (const Weighed::Other& o : all.others)
      if (o.decision == &d)
        of["others"].push_back({{"name", std::string(o.way->name)}, {"us", o.is_comparable ? Json(o.predicted.ns * 1e-3) : Json()}});
    out["decisions"].push_back(std::move(of));
  }
  if (const double ranges = ranges_ns(choices, all, c); ranges > 0)
    out["decisions"].push_back({{"name", "where columns lie"},
                                {"by", "whether they fit the device's memory"},
                                {"chosen", "all on it"},
                                {"us", all.chosen.ns * 1e-3},
                                {"others", Json::array({Json{{"name", "a range of rows after the other"}, {"us", ranges * 1e-3}}})}});
  for (size_t i = 0; i < choices.columns.size(); ++i) {
    const DataChoices::Column& column = choices.columns[i];
    const model::Transfer of = choices.transfer(i, c);
    out["transfers"].push_back({{"column", column.name},
                                {"rows", column.of_rows},
                                {"chosen", choices.maps(i, c) ? "mapped" : "copied"},
                                {"copied us", of.sent_ns * 1e-3},
                                {"mapped us", column.is_read_whole ? Json() : Json(of.read_ns * 1e-3)}});
  }
  return out.dump(1, ' ', false, Json::error_handler_t::replace);
}

// A note in the graph.
void add_note(const std::string& text, std::string& graph) {
  std::string label;  // lines end on the left
  for (char ch : text)
    if (ch == '\n')
      label += "\\l";
    else
      label += ch;
  const size_t end = graph.rfind('}');
  CHECK(end != graph.npos, "a graph does not end");
  graph.insert(end, fmt::format("  decisions [shape=note, label=\"{}\"];\n", label));
}

}  // namespace

Result<std::string> explain_program(const NamedSource& p, const CompileOptions& options,
                                    const std::shared_ptr<data::Source>& source, ExplainForm form, const Say& say) {
  std::string out;
  SourceManager sources;
  DiagnosticSink sink;
  Timings timings;
  auto compiled = compile(sources.add(p.file, p.text), sources, options, sink, timings);
  outliner::Options outline{.mode = options.outline,
                                  .text_codes = options.text_codes,
                                  .math = !compiled || compiled->no_math.empty(),
                                  .beside_cells = form.counts || !options.fuse_operators,
                                  .tops = !form.counts && options.fuse_operators,
                                  .joins = !form.counts && options.fuse_operators && options.fuse_joins,
                                  .numbers_as_parameters = options.numbers_as_parameters,
                                  .sinks = !form.counts && options.fuse_operators && options.fuse_groups};
  Result<void> done;
  if (compiled) {
    if (form.counts) {
      auto counts = outliner::count_kernels(compiled->program, outline, sink);
      if (counts)
        out += fmt::format("{:<12} {:>5} {:>5} {:>5}\n", p.name, counts->none, counts->flow, counts->full);
      else
        done = counts.error();
    } else {
      outliner::ExplainOptions how{.dot = form.dot, .rows = {}, .bits = {}};
      if (source)
        how.rows = [&](std::string_view table) -> std::optional<uint64_t> {
          auto rows = source->rows(table);
          return rows ? std::optional(*rows) : std::nullopt;
        };
      std::optional<Columns> columns;
      if (source) {
        columns.emplace(source, form.encode);
        columns->find(hir::column_reads(compiled->program));
        data::prefetch(data::columns_read(compiled->program), columns->tables());
        how.bits = [&](std::string_view table, const hir::ColumnRead& c) { return columns->bits(table, c); };
      }
      DataChoices choices;
      SourceManager as_run;
      EngineOptions engine;
      engine.encode = form.encode;
      auto run = compile_for(p, options, as_run, columns ? &columns->tables() : nullptr, engine, choices);
      if (run) {
        outline.not_unique = run->not_unique, outline.not_whole = run->not_whole;
        outline.not_folded = run->not_folded, outline.folds_apart = run->folds_apart;
      }
      auto text = outliner::explain(compiled->program, sources, outline, how, sink);
      if (text && run) {
        std::optional<Weighed> weighed;
        if (columns && form.model) {
          auto all = weigh(choices, p, options, columns->tables(), engine, *form.model);
          if (all)
            weighed = *std::move(all);
          else
            done = all.error();
        }
        const std::string costs = weighed && !form.json ? costs_in_words(choices, *weighed, *form.model) : "";
        if (weighed && form.json) {
          out = costs_as_json(p.name, choices, *weighed, *form.model);
        } else if (form.dot) {
          out += *text;
          if (weighed) add_note(costs, out);
        } else {
          if (form.named) out += p.name + "\n";
          if (columns) {
            out += columns->text() + "by these columns\n";
            for (const std::vector<std::string>* lines : {&choices.again, &choices.kept})
              for (const std::string& line : *lines) out += fmt::format("  {}\n", line);
            if (choices.again.empty() && choices.kept.empty()) out += "  nothing\n";
          }
          out += costs + *text;
          explain_fallbacks(*run, as_run, out);
        }
      } else {
        done = text ? run.error() : text.error();
      }
    }
  } else {
    done = compiled.error();
  }
  sink.sort_by_position();
  if (const std::string said = render(sink, sources); !said.empty()) say(said);
  if (!done) return done.error();
  return out;
}

Result<std::string> emit_program(const NamedSource& program, CompileOptions options,
                                 const data::Schema* schema, unsigned threads, const Say& say) {
  ThreadPool pool(threads);
  options.pool = &pool;
  options.schema = schema;
  SourceManager sources;
  DiagnosticSink sink;
  Timings timings;
  auto compiled = compile(sources.add(program.file, program.text), sources, options, sink, timings);
  sink.sort_by_position();
  if (const std::string said = render(sink, sources); !said.empty()) say(said);
  if (!compiled) return compiled.error();
  ASSIGN_OR_RETURN(std::string text, emit(*compiled, options.until));
  for (const codegen::KernelCode& k : compiled->code.kernels)
    if (!k.refused.empty())
      say(fmt::format("note: kernel `{}` has no code: {}\n", k.name, k.refused));
  return text;
}

}  // namespace rndn::runtime
