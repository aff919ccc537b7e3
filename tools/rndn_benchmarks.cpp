// The benchmarks, a row each, and their commands: `rndn tpch generate`, `rndn tpch run`, the same of SSB.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "libraries/base/system/files.h"
#include "ssb/source.h"
#include "tools/compare_results.h"
#include "tools/rndn.h"
#include "tpch/generate.h"

namespace rndn::tools {
namespace {

std::string positive(const std::string& text) {
  char* end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  return *end == 0 && value > 0 && value <= 1e6 ? "" : "expected a positive scale factor, got `" + text + "`";
}

class GenerateCommand final : public Command {
 public:
  GenerateCommand(CLI::App& parent, const Benchmark& benchmark) : benchmark_(benchmark) {
    app = parent.add_subcommand(
        "generate", fmt::format("write the {} as .tbl files, byte-identical to the official generator's{}", benchmark.tables,
                                benchmark.identical));
    app->add_option("--scale", scale_, "scale factor, such as 0.01 or 1")->required()->check(positive)->type_name("SF");
    app->add_option("-o", folder_, "folder to write into, made if need be")->required()->type_name("DIR");
  }
  int execute() override {
    auto written = benchmark_.write(scale_, folder_, 0, true);
    return written ? 0 : fail(written.error());
  }

 private:
  const Benchmark& benchmark_;
  double scale_ = 0;
  std::string folder_;
};

// Compares results with the reference interpreter's or with files.
class Verifier final : public Check {
 public:
  explicit Verifier(std::string folder) : folder_(std::move(folder)) {}

  Result<void> check(const NamedSource& program, const hir::Program& typed, const SourceManager& sources,
                     const std::vector<reference::Value>& results, const reference::Tables& tables) override {
    if (results.size() != 1)
      return Error{Fault::internal, fmt::format("{}: {} results, expected one table", program.name, results.size())};
    ASSIGN_OR_RETURN(runtime::Grid grid, runtime::to_grid(results[0]));
    Expected expected;
    if (folder_.empty()) {
      ASSIGN_OR_RETURN(std::vector<reference::Value> values, reference::run(typed, tables, sources, nullptr));
      ASSIGN_OR_RETURN(runtime::Grid right, runtime::to_grid(values.at(0)));
      expected = expected_of(right);
    } else {
      std::string path = fmt::format("{}/{}.csv", folder_, program.name);
      ASSIGN_OR_RETURN(std::string text, read_file(path));
      ASSIGN_OR_RETURN(expected, parse_expected(text, path));
    }
    uint64_t reordered = 0;
    std::string what = difference(grid, expected, reordered);
    if (!what.empty())
      return Error{Fault::internal, fmt::format("verify {}: {}", program.name, what)}.as(Cause::finding);
    std::string order = reordered ? fmt::format(", in another order from row {} on", reordered) : "";
    std::fprintf(stderr, "verify %s: ok, %llu row%s as %s%s\n", program.name.c_str(),
                 static_cast<unsigned long long>(grid.rows), grid.rows == 1 ? "" : "s",
                 folder_.empty() ? "the reference interpreter has them" : "expected", order.c_str());
    return {};
  }

 private:
  std::string folder_;
};

class RunBenchmarkCommand final : public Command {
 public:
  RunBenchmarkCommand(CLI::App& parent, const Benchmark& benchmark) : benchmark_(benchmark) {
    app = parent.add_subcommand("run", fmt::format("run {} queries, on data generated in memory", benchmark.title));
    CLI::Option* scale =
        app->add_option("--scale", scale_, "scale factor (default 0.01)")->check(positive)->type_name("SF");
    app->add_option("--queries", queries_, fmt::format("such as {} (default: all there are)", benchmark.list))
        ->type_name("LIST");
    add_form_flag(*app, benchmark, form_);
    app->add_flag("--verify{reference}", verify_, "compare with the reference interpreter, or with DIR/QUERY.csv")
        ->type_name("[=reference|DIR]");
    app->add_option("--data", flags_.data, "tables from elsewhere: " + data::source_forms(schemes(), source_options()))
        ->excludes(scale)
        ->type_name("SRC");
    add_run_flags(*app, flags_);
    add_cache_flags(*app, flags_);
    add_compiler_flags(*app, flags_);
    add_language_flags(*app, flags_);
  }
  int execute() override {
    const Benchmark::Form& form = benchmark_.form(form_);
    auto selected = benchmark_.programs(form, queries_);
    if (!selected) return fail(selected.error());
    const std::vector<NamedSource>& programs = *selected;
    if (!verify_.empty() && verify_ != "reference") {
      std::error_code error;
      if (!std::filesystem::is_directory(verify_, error))
        return fail(input_error("--verify={0}: there is no folder `{0}`", verify_));
      for (const NamedSource& p : programs)
        if (std::string file = fmt::format("{}/{}.csv", verify_, p.name); !std::filesystem::exists(file, error))
          return fail(input_error("--verify={}: there is no file `{}`", verify_, file));
    }
    auto device = DeviceChoice::start(flags_);
    if (!device) return fail(device.error());
    auto source =
        open_data({.data = flags_.data.empty() ? fmt::format("{}:{}", form.source, scale_) : flags_.data}, flags_);
    if (!source) return fail(source.error());
    std::optional<Verifier> verifier;
    if (!verify_.empty()) verifier.emplace(verify_ == "reference" ? "" : verify_);
    return run_programs(programs, flags_, *source, *std::move(device), verifier ? &*verifier : nullptr);
  }

 private:
  const Benchmark& benchmark_;
  double scale_ = 0.01;
  std::string queries_, form_, verify_;
  Flags flags_;
};

}  // namespace

std::span<const Benchmark> benchmarks() {
  static const Benchmark rows[] = {
      {"tpch", "TPC-H", "eight tables", "", "1,6,10-14", tpch::write_tables, {{"", "queries", "tpch"}}},
      {"ssb",
       "SSB",
       "five tables",
       " at scale 1",
       "1.1,2.1-2.3",
       ssb::write_tables,
       {{"keys", "queries/keys", "ssb"}, {"joins", "queries/joins", "ssb-joins"}}},
  };
  return rows;
}

void add_form_flag(CLI::App& command, const Benchmark& benchmark, std::string& form) {
  if (benchmark.forms.size() == 1) return;
  std::vector<std::string> names;
  for (const Benchmark::Form& f : benchmark.forms) names.emplace_back(f.name);
  command.add_option("--form", form, "programs that use declared foreign keys (default), or that join by keys")
      ->check(CLI::IsMember(names))
      ->type_name("FORM");
}

const Benchmark::Form& Benchmark::form(const std::string& name) const {
  auto found = std::find_if(forms.begin(), forms.end(), [&](const Form& f) { return f.name == name; });
  return found == forms.end() ? forms[0] : *found;
}

Result<std::vector<NamedSource>> Benchmark::programs(const Form& form, const std::string& list) const {
  std::vector<NamedSource> all, wanted;
  for (const EmbeddedText& text : embedded_texts())
    if (text.benchmark == name && text.kind == form.kind)
      all.push_back({std::string(text.name), fmt::format("{}.hir", text.name), std::string(text.text)});
  if (list.empty()) return all;
  // Queries are called q06 and q1.1, in a list 6 and 1.1.
  auto number_of = [](const NamedSource& program) { return program.name.substr(program.name.find_first_not_of("q0")); };
  auto find = [&](const std::string& number) {
    return std::find_if(all.begin(), all.end(), [&](const NamedSource& p) { return number_of(p) == number; });
  };
  size_t at = 0;
  auto number = [&](std::string& text) {
    const size_t end = std::min(list.find_first_not_of("0123456789.", at), list.size());
    text = list.substr(at, end - at);
    at = end;
    return !text.empty();
  };
  while (true) {
    std::string from, to;
    if (!number(from)) break;
    to = from;
    if (at < list.size() && list[at] == '-') {
      ++at;
      if (!number(to)) break;
    }
    for (const std::string& n : {from, to})
      if (find(n) == all.end()) {
        std::string known;
        for (const NamedSource& p : all) known += fmt::format("{}{}", known.empty() ? "" : ", ", number_of(p));
        return usage_error("there is no query {} (there are: {})", n, known);
      }
    if (find(to) < find(from)) break;
    wanted.insert(wanted.end(), find(from), find(to) + 1);
    if (at == list.size()) return wanted;
    if (list[at++] != ',') break;
  }
  return usage_error("--queries is a list such as {}, not `{}`", this->list, list);
}

std::unique_ptr<Command> generate_command(CLI::App& parent, const Benchmark& benchmark) {
  return std::make_unique<GenerateCommand>(parent, benchmark);
}
std::unique_ptr<Command> run_benchmark_command(CLI::App& parent, const Benchmark& benchmark) {
  return std::make_unique<RunBenchmarkCommand>(parent, benchmark);
}

}  // namespace rndn::tools
