// `rndn check` and `rndn compile`: the compiler without a device. They read only the schema of --data, by default TPC-H's.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "libraries/base/system/files.h"
#include "runtime/session/program_text.h"
#include "tools/rndn.h"

namespace rndn::tools {
namespace {

class CheckCommand final : public Command {
 public:
  explicit CheckCommand(CLI::App& program) {
    app = program.add_subcommand(
        "check", "parse, resolve and type programs and compare their shapes; print what is wrong with them");
    app->add_option("program", paths_, "HorseIR files, - for stdin")->required()->type_name("PROGRAM.hir");
    add_data_flags(*app, flags_);
    add_language_flags(*app, flags_);
  }
  int execute() override {
    auto options = compile_options(flags_);
    if (!options) return fail(options.error());
    auto schema = open_schema(flags_);
    if (!schema) return fail(schema.error());
    options->schema = &*schema;
    options->until = runtime::Stage::outline;  // the outliner knows shapes that cannot go together
    int exit_code = 0;
    for (const std::string& path : paths_) {
      auto programs = read_programs({path});
      if (!programs) {
        exit_code = std::max(exit_code, fail(programs.error()));
        continue;
      }
      SourceManager sources;
      DiagnosticSink sink;
      Timings timings;
      const NamedSource& p = programs->front();
      auto compiled = runtime::compile(sources.add(p.file, p.text), sources, *options, sink, timings);
      sink.sort_by_position();
      print_diagnostics(sink, sources);
      if (!compiled) exit_code = std::max(exit_code, fail(compiled.error()));
    }
    return exit_code;
  }

 private:
  std::vector<std::string> paths_;
  Flags flags_;
};

class CompileCommand final : public Command {
 public:
  explicit CompileCommand(CLI::App& program) {
    app = program.add_subcommand("compile", "compile a program; any stage of it as a file");
    app->add_option("program", path_, "a HorseIR file, - for stdin")->required()->type_name("PROGRAM.hir");
    add_data_flags(*app, flags_);
    app->add_option("--emit", emit_, "hir (as parsed), typed, outline, ptx, sass, cubin (default)")
        ->check(CLI::IsMember({"hir", "typed", "outline", "ptx", "sass", "cubin"}))
        ->type_name("STAGE");
    app->add_option("-o", flags_.output, "the file to write, - for stdout")->type_name("FILE");
    add_compiler_flags(*app, flags_);
    add_language_flags(*app, flags_);
  }
  int execute() override {
    auto programs = read_programs({path_});
    if (!programs) return fail(programs.error());
    auto schema = open_schema(flags_);
    if (!schema) return fail(schema.error());
    auto text = emit_program(programs->front(), flags_, emit_, *schema);
    if (!text) return fail(text.error());
    if (auto written = write_file(flags_.output, *text); !written) return fail(written.error());
    return 0;
  }

 private:
  std::string path_, emit_ = "cubin";
  Flags flags_;
};

}  // namespace

Result<std::string> emit_program(const NamedSource& program, const Flags& flags, const std::string& stage,
                                 const data::Schema& schema, bool of_query) {
  ASSIGN_OR_RETURN(runtime::CompileOptions options, compile_options(flags));
  options.numbers_as_parameters = of_query;
  if (options.backend.kind == runtime::Backend::driver)
    return usage_error("--backend driver compiles on a GPU only: use it with `rndn run`");
  runtime::find_stage(stage, options.until);
  if (options.until >= runtime::Stage::sass && flags.arch.empty()) return usage_error("--emit {} needs --arch", stage);
  if (options.until == runtime::Stage::cubin && flags.output == "-" && isatty(STDOUT_FILENO))
    return usage_error("a cubin is not for a terminal: -o FILE writes it, --emit sass shows its instructions");
  if (flags.arch.empty()) options.target = "sm_60";  // PTX that every target takes
  const runtime::Stage until = options.until;
  ASSIGN_OR_RETURN(std::string text, runtime::emit_program(program, std::move(options), &schema, flags.threads,
                                                           runtime::say_to_stderr));
  if (until >= runtime::Stage::ptx && text.empty())
    return input_error("{}: the program has no kernels: there is no {} to write (--emit outline shows what it has)",
                       program.file, stage);
  return text;
}

std::unique_ptr<Command> check_command(CLI::App& program) { return std::make_unique<CheckCommand>(program); }
std::unique_ptr<Command> compile_command(CLI::App& program) { return std::make_unique<CompileCommand>(program); }

}  // namespace rndn::tools
