// rndn: compiles and runs HorseIR programs. The commands are in rndn_*.cpp, the flags that they share in rndn_flags.cpp.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "assembler/isa/isa.h"
#include "libraries/base/guarded_main.h"
#include "libraries/base/version.h"
#include "tools/rndn.h"

namespace {

std::string targets() {
  std::string names;
  for (const rndn::isa::Target& t : rndn::isa::targets()) names += (names.empty() ? "" : " ") + std::string(t.name);
  return names;
}

int run(int argc, char** argv) {
  using namespace rndn;
  CLI::App program(
      "Compiles HorseIR programs for NVIDIA GPUs and runs them: on a GPU, on the SASS simulator, or on the reference "
      "interpreter.",
      "rndn");
  program.set_version_flag("--version", fmt::format("rndn {} (commit {}; {})", version(), commit(), targets()));
  program.require_subcommand(1);
  program.get_formatter()->column_width(36);
  program.footer(
      "Exit codes: 0 success; 1 the input is at fault; 2 wrong usage; 3 device, driver, memory or output at fault; 70 "
      "internal error\n"
      "or a failed --verify. Results go to stdout, everything else to stderr.");

  std::vector<std::unique_ptr<tools::Command>> commands;
  commands.push_back(tools::run_command(program));
  commands.push_back(tools::shell_command(program));
  commands.push_back(tools::check_command(program));
  commands.push_back(tools::compile_command(program));
  commands.push_back(tools::explain_command(program));
  CLI::App* tpch = program.add_subcommand("tpch", "TPC-H: generate its data, run its queries");
  tpch->require_subcommand(1);
  commands.push_back(tools::tpch_generate_command(*tpch));
  commands.push_back(tools::tpch_run_command(*tpch));
  CLI::App* bench = program.add_subcommand("bench", "measure: the evaluation by one command");
  bench->require_subcommand(1);
  commands.push_back(tools::bench_tpch_command(*bench));
  commands.push_back(tools::devices_command(program));

  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& done) {  // --help, --version
    return program.exit(done);
  } catch (const CLI::ParseError& e) {
    std::fprintf(stderr, "error: %s\n(see rndn --help)\n", e.what());
    return static_cast<int>(Fault::usage);
  }
  for (auto& command : commands)
    if (command->app->parsed()) return command->execute();
  return static_cast<int>(Fault::usage);
}

}  // namespace

int main(int argc, char** argv) { return rndn::guarded_main(run, argc, argv); }
