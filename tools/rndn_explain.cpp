// `rndn explain`: what the outliner made of a program, and why; of a SQL query also its plan and its program.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "assembler/isa/isa.h"
#include "libraries/base/system/files.h"
#include "runtime/data/schema.h"
#include "runtime/session/program_text.h"
#include "tools/model/model.h"
#include "tools/rndn.h"
#include "tools/session.h"
#include "tpch/source.h"

namespace rndn::tools {
namespace {

using runtime::ExplainForm, runtime::explain_program;

class ExplainCommand final : public Command {
 public:
  explicit ExplainCommand(CLI::App& program) {
    app = program.add_subcommand("explain",
                                 "shapes, dependences and kernels of a program: what each holds, why, and the bytes "
                                 "that it must move; what falls back");
    app->add_option("program", paths_, "HorseIR or SQL files, - for HorseIR from stdin")->required()->type_name("PROGRAM.hir|QUERY.sql");
    add_data_flags(*app, flags_);
    app->add_flag("--dot", dot_, "the dependence graph with its kernels, for Graphviz");
    app->add_flag("--counts", counts_, "only the numbers of kernels with --outline none, flow and full");
    app->add_option("--outline", flags_.outline,
                    "kernels: none = one per statement, flow = pipelines, full = all fusions")
        ->check(CLI::IsMember({"none", "flow", "full"}))
        ->type_name("MODE");
    app->add_option("-o", flags_.output, "the file to write, - for stdout")->type_name("FILE");
    app->add_option("--model", model_, "what `rndn devices --calibrate` wrote: also the time that kernels are predicted to take")
        ->type_name("FILE");
    app->add_flag("--json", json_, "then: that, and what else could be decided and what it would take, as JSON and alone");
    add_encode_flag(*app, flags_);
    add_language_flags(*app, flags_);
  }
  int execute() override {
    auto options = compile_options(flags_);
    if (!options) return fail(options.error());
    options->until = runtime::Stage::typed;
    auto source = open_data(source_names(flags_), flags_);
    if (!source) return fail(source.error());
    auto named = *source ? Result<data::Schema>((*source)->schema()) : open_schema(flags_);
    if (!named) return fail(named.error());
    const data::Schema schema = *std::move(named);
    std::optional<model::Calibration> calibration;
    if (!model_.empty()) {
      if (!*source || counts_) return fail(usage_error("--model wants --data, and not --counts"));
      auto read = read_calibration(model_);
      if (!read) return fail(read.error());
      calibration = *std::move(read);
      for (const auto& [name, value] : calibration->facts)
        if (name == "target" && isa::find_target(value)) options->target = value;
    }
    if (json_ && (model_.empty() || dot_)) return fail(usage_error("--json wants --model, and not --dot"));
    options->schema = &schema;
    auto files = read_programs(paths_);
    if (!files) return fail(files.error());
    // Statements of SQL stand in a session, which plans them.
    std::vector<NamedSource> programs;
    for (size_t i = 0; i < paths_.size(); ++i) {
      if (!paths_[i].ends_with(".sql")) {
        programs.push_back(std::move((*files)[i]));
        continue;
      }
      for (NamedSource& s : split_sql((*files)[i].name, (*files)[i].file, (*files)[i].text))
        programs.push_back(std::move(s));
    }
    Flags on_the_host = flags_;
    on_the_host.device = "cpu";  // none is opened
    auto device = DeviceChoice::start(on_the_host);
    if (!device) return fail(device.error());
    Session session(*source, *std::move(device), file_cache(flags_));
    const ExplainForm form{.dot = dot_,
                           .counts = counts_,
                           .named = programs.size() > 1,
                           .json = json_,
                           .encode = *runtime::find_encode(flags_.encode),
                           .model = calibration ? &*calibration : nullptr};
    std::string out = counts_ ? fmt::format("{:<12} {:>5} {:>5} {:>5}\n", "kernels", "none", "flow", "full") : "";
    for (const NamedSource& p : programs) {
      auto text = explain(session, p, *options, *source, form);
      if (!text) return fail(text.error());
      if (json_) out += out.empty() ? "[\n" : ",\n";
      out += *text;
    }
    if (json_) out += "\n]\n";
    if (auto written = write_file(flags_.output, out); !written) return fail(written.error());
    return 0;
  }

 private:
  Result<std::string> explain(Session& session, const NamedSource& p, const runtime::CompileOptions& options,
                              const std::shared_ptr<data::Source>& source, ExplainForm form) const {
    if (!p.sql) return explain_program(p, options, source, form, runtime::say_to_stderr);
    if (!dot_ && !counts_ && !form.model) {
      ASSIGN_OR_RETURN(std::string text, session.explain(p, flags_));
      return form.named ? p.name + "\n" + text : text;
    }
    Timings timings;
    ASSIGN_OR_RETURN(const runtime::SqlQuery* query,
                     session.prepare_sql(p, runtime::SqlQueries::Until::program, timings));
    runtime::CompileOptions with_files = options;
    with_files.numbers_as_parameters = true;
    if (session.source()) with_files.schema = &session.source()->schema();
    return explain_program({p.name, "<program of " + p.file + ">", query->translation->program}, with_files,
                           session.source(), form, runtime::say_to_stderr);
  }

  std::vector<std::string> paths_;
  std::string model_;
  bool dot_ = false, counts_ = false, json_ = false;
  Flags flags_;
};

}  // namespace

std::unique_ptr<Command> explain_command(CLI::App& program) { return std::make_unique<ExplainCommand>(program); }

}  // namespace rndn::tools
