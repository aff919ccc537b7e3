// `rndn tpch generate` and `rndn tpch run`.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "libraries/base/system/files.h"
#include "tools/compare_results.h"
#include "tools/rndn.h"
#include "tpch/generate.h"
#include "tpch/source.h"

namespace rndn::tools {
namespace {

std::string positive(const std::string& text) {
  char* end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  return *end == 0 && value > 0 && value <= 1e6 ? "" : "expected a positive scale factor, got `" + text + "`";
}

class GenerateCommand final : public Command {
 public:
  explicit GenerateCommand(CLI::App& tpch) {
    app = tpch.add_subcommand("generate",
                              "write the eight tables as .tbl files, byte-identical to the official generator's");
    app->add_option("--scale", scale_, "scale factor, such as 0.01 or 1")->required()->check(positive)->type_name("SF");
    app->add_option("-o", folder_, "folder to write into, made if need be")->required()->type_name("DIR");
  }
  int execute() override {
    auto written = tpch::write_tables(scale_, folder_);
    return written ? 0 : fail(written.error());
  }

 private:
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
    if (!what.empty()) return Error{Fault::internal, fmt::format("verify {}: {}", program.name, what)}.as(Cause::finding);
    std::string order = reordered ? fmt::format(", in another order from row {} on", reordered) : "";
    std::fprintf(stderr, "verify %s: ok, %llu row%s as %s%s\n", program.name.c_str(),
                 static_cast<unsigned long long>(grid.rows), grid.rows == 1 ? "" : "s",
                 folder_.empty() ? "the reference interpreter has them" : "expected", order.c_str());
    return {};
  }

 private:
  std::string folder_;
};

class TpchRunCommand final : public Command {
 public:
  explicit TpchRunCommand(CLI::App& tpch) {
    app = tpch.add_subcommand("run", "run TPC-H queries, on data generated in memory");
    CLI::Option* scale =
        app->add_option("--scale", scale_, "scale factor (default 0.01)")->check(positive)->type_name("SF");
    app->add_option("--queries", queries_, "such as 1,6,10-14 (default: all there are)")->type_name("LIST");
    app->add_flag("--verify{reference}", verify_, "compare with the reference interpreter, or with DIR/qNN.csv")
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
    std::vector<NamedSource> programs;
    std::string known;
    for (const EmbeddedQuery& q : embedded_queries()) known += fmt::format("{}{}", known.empty() ? "" : ", ", q.number);
    std::vector<int> numbers;
    if (queries_.empty()) {
      for (const EmbeddedQuery& q : embedded_queries()) numbers.push_back(q.number);
    } else {
      auto parsed = parse_query_list(queries_);
      if (!parsed) return fail(parsed.error());
      numbers = *parsed;
    }
    for (int n : numbers) {
      auto queries = embedded_queries();
      auto q = std::find_if(queries.begin(), queries.end(), [&](const EmbeddedQuery& e) { return e.number == n; });
      if (q == queries.end()) return fail(usage_error("there is no query {} (there are: {})", n, known));
      programs.push_back({fmt::format("q{:02}", n), q->file, q->text});
    }
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
    auto source = open_data({.data = flags_.data.empty() ? fmt::format("tpch:{}", scale_) : flags_.data}, flags_);
    if (!source) return fail(source.error());
    std::optional<Verifier> verifier;
    if (!verify_.empty()) verifier.emplace(verify_ == "reference" ? "" : verify_);
    return run_programs(programs, flags_, *source, *std::move(device), verifier ? &*verifier : nullptr);
  }

 private:
  double scale_ = 0.01;
  std::string queries_, verify_;
  Flags flags_;
};

}  // namespace

Result<std::vector<int>> parse_query_list(const std::string& text) {
  std::vector<int> numbers;
  if (text.empty()) return numbers;
  size_t at = 0;
  auto number = [&](int& n) {
    size_t begin = at;
    n = 0;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9' && at - begin < 3) n = 10 * n + (text[at++] - '0');
    return at > begin;
  };
  while (true) {
    int from = 0, to = 0;
    if (!number(from)) break;
    to = from;
    if (at < text.size() && text[at] == '-') {
      ++at;
      if (!number(to) || to < from) break;
    }
    for (int n = from; n <= to; ++n) numbers.push_back(n);
    if (at == text.size()) return numbers;
    if (text[at++] != ',') break;
  }
  return usage_error("--queries is a list such as 1,6,10-14, not `{}`", text);
}

std::unique_ptr<Command> tpch_generate_command(CLI::App& tpch) { return std::make_unique<GenerateCommand>(tpch); }
std::unique_ptr<Command> tpch_run_command(CLI::App& tpch) { return std::make_unique<TpchRunCommand>(tpch); }

}  // namespace rndn::tools
