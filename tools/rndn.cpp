// The command line of rndn, which compiles and runs HorseIR programs. The commands are in rndn_*.cpp, the flags that they share in rndn_flags.cpp.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <sstream>

#include "assembler/isa/isa.h"
#include "libraries/base/report/version.h"
#include "libraries/base/system/files.h"
#include "libraries/base/system/interrupt.h"
#include "tools/papers/papers.h"
#include "tools/rndn.h"

namespace {

std::string targets() {
  std::string names;
  for (const rndn::isa::Target& t : rndn::isa::targets()) names += (names.empty() ? "" : " ") + std::string(t.name);
  return names;
}

// What is wrong with the arguments when one of them names nothing: the flag or command, and the one that was meant; else empty.
std::string unknown_argument(const CLI::App& program, int argc, char** argv) {
  const CLI::App* command = &program;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  auto nearest = [](const std::string& word, const std::vector<std::string>& known) {
    std::string_view near = rndn::did_you_mean(word, {known.begin(), known.end()});
    return near.empty() ? std::string() : fmt::format("; did you mean `{}`?", near);
  };
  std::vector<std::string> flags, commands;
  for (const CLI::Option* option : command->get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
    for (const std::string& name : option->get_snames()) flags.push_back("-" + name);
  }
  for (const CLI::App* sub : command->get_subcommands([](const CLI::App*) { return true; }))
    commands.push_back(sub->get_name());
  auto commands_or_nearest = [&](const std::string& word) {
    std::string near = nearest(word, commands);
    if (!near.empty()) return near;
    std::string all;
    for (const std::string& name : commands) all += (all.empty() ? "; it has " : ", ") + name;
    return all;
  };
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    word.resize(std::min(word.find('='), word.size()));
    if (!word.starts_with("--") || word == "--") {
      if (word.starts_with('-') || commands.empty()) continue;
      bool known = word == command->get_name() || std::find(commands.begin(), commands.end(), word) != commands.end();
      if (!known && command->get_subcommands().empty())
        return fmt::format("`{}` has no command `{}`{}", command->get_name(), word, commands_or_nearest(word));
      continue;
    }
    if (std::find(flags.begin(), flags.end(), word) == flags.end())
      return fmt::format("`{}` has no flag `{}`{}", command->get_name(), word, nearest(word, flags));
  }
  return {};
}

}  // namespace

int rndn::tools::run_command_line(int argc, char** argv) {
  CLI::App program(
      "Compiles SQL queries and HorseIR programs for NVIDIA GPUs and runs them: on a GPU, on the SASS simulator, or on the reference "
      "interpreter.",
      "rndn");
  program.set_version_flag("--version", fmt::format("rndn {} (commit {}; {})", version(), commit(), targets()));
  program.require_subcommand(1);
  program.get_formatter()->column_width(36);
  program.footer(
      "Exit codes: 0 success; 1 the input is at fault; 2 wrong usage; 3 device, driver, memory or output at fault, or a limit met; 70 "
      "internal error\n"
      "or a failed --verify or --prove; 130 ended by Ctrl-C or SIGTERM. Results go to stdout, everything else to stderr.");

  std::vector<std::unique_ptr<tools::Command>> commands;
  commands.push_back(tools::run_command(program));
  commands.push_back(tools::sql_command(program));
  commands.push_back(tools::shell_command(program));
  commands.push_back(tools::check_command(program));
  commands.push_back(tools::compile_command(program));
  commands.push_back(tools::explain_command(program));
  commands.push_back(tools::schema_command(program));
  for (const tools::Benchmark& benchmark : tools::benchmarks()) {
    CLI::App* command = program.add_subcommand(
        std::string(benchmark.name), fmt::format("{}: generate its data, run its queries", benchmark.title));
    command->require_subcommand(1);
    commands.push_back(tools::generate_command(*command, benchmark));
    commands.push_back(tools::run_benchmark_command(*command, benchmark));
  }
  CLI::App* bench = program.add_subcommand("bench", "measure: the evaluation by one command");
  bench->require_subcommand(1);
  for (const tools::Benchmark& benchmark : tools::benchmarks())
    commands.push_back(tools::bench_command(*bench, benchmark));
  commands.push_back(tools::bench_sql_command(*bench));
  commands.push_back(tools::bench_kernel_weaver_command(*bench));
  commands.push_back(tools::bench_multi_bsp_command(*bench));
  commands.push_back(tools::bench_horseqc_command(*bench));
  commands.push_back(tools::bench_yin_yang_command(*bench));
  commands.push_back(tools::devices_command(program));
  commands.push_back(tools::help_command(program));

  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& done) {  // --help, --version
    std::ostringstream text;
    program.exit(done, text);
    const Result<void> written = write_file("-", text.str());  // checked, unlike std::cout
    if (written) return 0;
    std::fprintf(stderr, "error: %s\n", written.error().message.c_str());
    return written.error().exit_code();
  } catch (const CLI::ParseError& e) {
    std::string unknown = unknown_argument(program, argc, argv);
    const CLI::App* command = &program;
    std::string help = "rndn";
    while (!command->get_subcommands().empty()) {
      command = command->get_subcommands().front();
      help += " " + command->get_name();
    }
    std::fprintf(stderr, "error: %s\n(see %s --help)\n", unknown.empty() ? e.what() : unknown.c_str(), help.c_str());
    return static_cast<int>(Fault::usage);
  }
  InterruptScope interrupts;
  const CancelScope scope(interrupts.token());
  for (auto& command : commands) {
    if (!command->app->parsed()) continue;
    command->interrupts = &interrupts.token();
    return command->execute();
  }
  return static_cast<int>(Fault::usage);
}
