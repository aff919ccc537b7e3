// `rndn bench tpch`, `rndn bench ssb`: the evaluation of a benchmark's queries by one command; both sides of every comparison are measured in one run.
//
// Tables, chosen by --tables:
//   compile    HorseIR text to loaded cubin: rndn beside NVIDIA's compilers (in process, in the driver, ptxas as a process) on the same PTX
//   phases     where rndn's compile time goes
//   execute    cached (columns on the device, compiled), uncached (columns on the host), kernels, and the bytes that must move at copy speed
//   outline    kernels, execution and compile time by --outline none, flow, full
//   switches   cached time with one switch changed
//   loops      cached time with --join loop and --member loop, at a scale of at most 0.1: loops read both sides for every row
//   registers  per kernel, beside ptxas
// With --model, in place of these: what kernels are predicted to take, written before the first launch, and what they take.
// Per value: warm-up runs that do not count, then the runs, of which highest and lowest are dropped (tools/bench_samples.h).
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <thread>

#include "libraries/base/system/files.h"
#include "libraries/base/system/parallel.h"
#include "libraries/base/report/progress.h"
#include "libraries/base/report/version.h"
#include "runtime/engine.h"
#include "runtime/data/tables.h"
#include "tools/bench_samples.h"
#include "tools/copy_speed.h"
#include "tools/model/model.h"
#include "tools/nvidia_linker.h"
#include "tools/rndn.h"

namespace rndn::tools {
namespace {

constexpr BenchTable bench_tables[] = {
    {"compile", "Compile time: HorseIR text to a cubin that is loaded, by who makes the cubin", "ms", "rndn"},
    {"phases", "Compile time by phase: rndn at -O3, one thread; last column: all of it, kernels assembled side by side",
     "ms", ""},
    {"execute",
     "Execution: cached is a repeated run, uncached brings the columns to the device, total also compiles the text, on "
     "all "
     "cores; kernels and library are parts of cached; floor is the bytes that both must move at the speed of a copy on "
     "the "
     "device",
     "ms", "cached"},
    {"kernel counts", "Outlined kernels: by --outline, library kernels apart", "", ""},
    {"outline", "Cached execution by fusion: --outline none, flow, full", "ms", "full"},
    {"outline compile", "Compile time by fusion: --outline none, flow, full, one thread", "ms", "full"},
    {"backends", "Kernel time by compiler: outlined kernels, the same PTX", "ms", "rndn"},
    {"switches", "Cached execution with one switch changed", "ms", "default"},
    {"loops", "Loops instead of hash tables: cached execution, at a scale of at most 0.1", "ms", "default"},
    {"registers", "Registers per thread: of outlined kernels", "", "ptxas", false, true},
};

double milliseconds(uint64_t ns) { return static_cast<double>(ns) * 1e-6; }

template <class F>
auto timed(double& ms, F&& f) {
  const auto start = std::chrono::steady_clock::now();
  auto result = f();
  ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return result;
}

class BenchCommand final : public Command {
 public:
  BenchCommand(CLI::App& bench, const Benchmark& benchmark) : benchmark_(benchmark) {
    app = bench.add_subcommand(std::string(benchmark.name),
                               fmt::format("the evaluation: compile and execution times of {}'s queries, side by side", benchmark.title));
    CLI::Option* scale = app->add_option("--scale", scale_, "scale factor (default 0.01)")->type_name("SF");
    app->add_option("--queries", queries_, fmt::format("such as {} (default: all)", benchmark.list))->type_name("LIST");
    add_form_flag(*app, benchmark, form_name_);
    app->add_option("--tables", wanted_, "of compile, phases, execute, outline, backends, switches, loops, registers")
        ->delimiter(',')
        ->check(
            CLI::IsMember({"compile", "phases", "execute", "outline", "backends", "switches", "loops", "registers"}))
        ->type_name("LIST");
    app->add_option("--warm-up", warm_up_, "runs that do not count (default 5)")->check(CLI::Range(0u, 1000u));
    app->add_option("--runs", runs_, "runs that count (default 10)")->check(CLI::Range(1u, 1000u));
    app->add_option("--data", flags_.data, "tables from elsewhere: " + data::source_forms(schemes(), source_options()))->excludes(scale);
    app->add_option("--device", flags_.device, "auto, cuda[:N] or sim")->type_name("D");
    app->add_option("--arch", flags_.arch, "target of the simulator")->type_name("A");
    app->add_option("--ptxas", ptxas_, "ptxas to compare with (default: on PATH)")->type_name("PATH");
    app->add_option("--nvjitlink", linker_path_, "libnvJitLink.so to compare with (default: where the loader finds it)")
        ->type_name("PATH");
    add_encode_flag(*app, flags_);
    add_limit_flags(*app, flags_);
    app->add_option("-o", flags_.output, "folder for evaluation.md, .json and .html (default: Markdown on stdout)")
        ->type_name("DIR");
    app->add_option("--model", model_,
                    "what `rndn devices --calibrate` wrote: predicts the kernels' times, writes model.json, then measures "
                    "them and writes model.tsv, in the folder of -o")
        ->type_name("FILE");
    app->add_option("--measured", measured_,
                    "then: no run, but what this table (docs/measurements/model.tsv) says was measured of this benchmark and scale")
        ->type_name("FILE.tsv");
    app->add_option("--cache", flags_.cache, "keep columns in this folder, ready to be loaded again")->type_name("DIR");
    app->add_option("--compare", compare_, "an earlier evaluation.json: slower values are listed, exit code 70")
        ->type_name("FILE");
  }

  int execute() override {
    setenv("CUDA_CACHE_DISABLE", "1", 1);  // else NVIDIA's compilers are measured once and read from disk afterwards
    // What can fail without a measurement fails before the first.
    if (!model_.empty()) {
      if (!compare_.empty() || !wanted_.empty()) return fail(usage_error("--model excludes --tables and --compare"));
      if (flags_.output == "-") return fail(usage_error("--model wants -o DIR, where its two files go"));
      auto read = read_calibration(model_);
      if (!read) return fail(read.error());
      calibration_ = *std::move(read);
    }
    if (!measured_.empty()) {
      if (model_.empty()) return fail(usage_error("--measured wants --model"));
      auto read = read_measured(measured_, std::string(benchmark_.name), fmt::format("{}", scale_));
      if (!read) return fail(read.error());
      known_ = *std::move(read);
    }
    std::optional<Samples> before;
    if (!compare_.empty()) {
      auto text = read_file(compare_);
      if (!text) return fail(text.error());
      auto parsed = Samples::parse(*text, compare_, &facts_before_);
      if (!parsed) return fail(parsed.error());
      before = *std::move(parsed);
    }
    if (flags_.output != "-") {
      std::error_code error;
      std::filesystem::create_directories(flags_.output, error);
      if (error) return fail(world_error("cannot make folder `{}`: {}", flags_.output, error.message()));
      const std::string stem = flags_.output + (calibration_ ? "/model" : "/evaluation");
      for (const char* name : {"md", "json", "html", "tsv"})
        if (calibration_ ? name[0] != 'm' && name[0] != 'h' : name[0] != 't')
          if (auto writable = check_writable(fmt::format("{}.{}", stem, name)); !writable)
            return fail(writable.error());
    }
    const CancelToken token(flags_.limits, CancelToken::current());  // of all of it
    const CancelScope scope(token);
    auto done = errors_of([&] { return measure(); });
    if (!done) return fail(done.error());
    if (calibration_) return 0;
    const std::string markdown = samples_.markdown(fmt::format("rndn bench {}", benchmark_.name), bench_tables, facts_);
    if (flags_.output == "-") {
      if (auto written = write_file("-", markdown); !written) return fail(written.error());
    } else {
      for (const auto& [name, text] : {std::pair{"md", markdown}, std::pair{"json", samples_.json(facts_)},
                                       std::pair{"html", samples_.html(bench_tables, facts_)}})
        if (auto written = write_file(fmt::format("{}/evaluation.{}", flags_.output, name), text); !written)
          return fail(written.error());
    }
    if (!before) return 0;
    const std::string worse = samples_.regressions(*before);
    if (worse.empty()) {
      note("nothing is slower than in " + compare_);
      return 0;
    }
    return fail(Error{Fault::internal, "verify against " + compare_ + ":\n" + worse}.as(Cause::finding));
  }

 private:
  bool wanted(std::string_view table) const {
    return wanted_.empty() || std::find(wanted_.begin(), wanted_.end(), table) != wanted_.end();
  }

  struct Query {
    std::string name;
    NamedSource source;
  };

  struct Planned {
    std::unique_ptr<runtime::Compiled> compiled;
    std::unique_ptr<SourceManager> sources;
    std::unique_ptr<runtime::Engine::Plan> plan;
    double compile_ms = 0;
    Timings timings;
  };
  struct Switch {
    const char* name;
    void (*change)(Flags&);
  };

  // Compiles and plans once; compile_ms: text to loaded cubin.
  enum class Forecasts : uint8_t { none, taken };  // taken: for the columns, which are loaded
  Result<Planned> plan(runtime::Engine& engine, const NamedSource& query, const Flags& flags, bool marks,
                       ThreadPool* pool = nullptr, Forecasts forecasts = Forecasts::none) {
    Planned p;
    p.sources = std::make_unique<SourceManager>();
    DiagnosticSink sink;
    ASSIGN_OR_RETURN(runtime::CompileOptions options, compile_options(flags));
    options.schema = &source_->schema();
    options.target = target_;
    options.pool = pool;
    options.workspace = &workspace_;
    runtime::DataChoices choices;
    options.notes_work = forecasts == Forecasts::taken;
    if (forecasts == Forecasts::taken)
      options.forecast = [&](const runtime::Compiled& c) {
        data::prefetch(data::columns_read(c.outlined.program), *tables_);
        return engine.forecast(c, *p.sources, engine_options(flags), *tables_, &choices);
      };
    auto compiled = runtime::compile(p.sources->add(query.file, query.text), *p.sources, options, sink, p.timings);
    if (!compiled) {
      print_diagnostics(sink, *p.sources);
      return compiled.error();
    }
    compiled->options.forecast = nullptr;
    p.compiled = std::make_unique<runtime::Compiled>(*std::move(compiled));
    runtime::EngineOptions engine_options = this->engine_options(flags);
    engine_options.measure_kernels = marks;
    ASSIGN_OR_RETURN(p.plan, engine.plan(*p.compiled, *p.sources, engine_options, p.timings));
    p.compile_ms = milliseconds(p.timings.total_ns(PhaseGroup::compile));
    return p;
  }
  runtime::EngineOptions engine_options(const Flags& flags) const { return tools::engine_options(flags, false); }

  // Runs the plan; adds one value per run that counts. `value` turns a run into it.
  using Value = std::function<double(const Timings&, const std::vector<runtime::KernelReport>&, double wall_ms)>;
  Result<void> run(runtime::Engine& engine, Planned& p, std::string_view table, std::string_view row,
                   std::span<const std::pair<std::string, Value>> columns) {
    for (unsigned i = 0; i < warm_up_ + runs_; ++i) {
      Timings timings;
      std::vector<runtime::KernelReport> kernels;
      double wall = 0;
      auto results = timed(wall, [&] { return engine.run(*p.plan, timings, nullptr, &kernels); });
      if (!results) return results.error();
      if (i < warm_up_) continue;
      for (const auto& [column, value] : columns) samples_.add(table, row, column, value(timings, kernels, wall));
    }
    return {};
  }

  static double wall(const Timings&, const std::vector<runtime::KernelReport>&, double ms) { return ms; }
  static double outlined_ms(const Timings&, const std::vector<runtime::KernelReport>& kernels, double) {
    uint64_t ns = 0;
    for (const runtime::KernelReport& k : kernels)
      if (k.kind == "outlined") ns += k.ns;
    return milliseconds(ns);
  }
  static double library_ms(const Timings&, const std::vector<runtime::KernelReport>& kernels, double) {
    uint64_t ns = 0;
    for (const runtime::KernelReport& k : kernels)
      if (k.kind != "outlined") ns += k.ns;  // fused operators are made of the library's kernels
    return milliseconds(ns);
  }

  Result<void> measure() {
    form_ = &benchmark_.form(form_name_);
    ASSIGN_OR_RETURN(const std::vector<NamedSource> queries, benchmark_.programs(*form_, queries_));
    if (flags_.device == "cpu")
      return usage_error("--device is auto, cuda or sim: the reference interpreter compiles nothing");
    ASSIGN_OR_RETURN(DeviceChoice choice, DeviceChoice::start(flags_));
    ASSIGN_OR_RETURN(source_,
                     open_data({.data = flags_.data.empty() ? fmt::format("{}:{}", form_->source, scale_) : flags_.data}, flags_));
    ASSIGN_OR_RETURN(device_, choice.open());
    target_ = flags_.arch.empty() ? device_->info().target : flags_.arch;
    tables_ = std::make_unique<data::SourceTables>(source_);
    const bool gpu = !device_->info().is_simulator;
    std::unique_ptr<NvidiaLinker> linker;
    if (wanted("compile") && !calibration_) {
      auto opened = NvidiaLinker::open(linker_path_);
      if (opened)
        linker = *std::move(opened);
      else
        note(opened.error().message);
    }
    const bool has_ptxas = !calibration_ && check_ptxas();
    ASSIGN_OR_RETURN(copy_speed_, copy_speed(*device_));

    facts_.emplace_back("rndn", fmt::format("{} (commit {})", version(), commit()));
    facts_.emplace_back(
        "device", fmt::format("{}{}, {}", device_->info().name,
                              device_->info().driver.empty() ? "" : ", driver " + device_->info().driver, target_));
    facts_.emplace_back("host", fmt::format("{} cores", std::thread::hardware_concurrency()));
    facts_.emplace_back("data", flags_.data.empty() ? fmt::format("{}, scale {}", benchmark_.title, scale_) : flags_.data);
    if (!form_->name.empty()) facts_.emplace_back("form", form_->name);
    facts_.emplace_back("runs",
                        fmt::format("{} after {} that do not count; highest and lowest dropped", runs_, warm_up_));
    if (!compare_.empty()) RETURN_IF_ERROR(check_comparable());
    if (copy_speed_ > 0)
      facts_.emplace_back("copy on the device", fmt::format("{:.0f} GB/s, read and written", copy_speed_ * 1e-9));
    if (linker) facts_.emplace_back("NVIDIA's compiler in process", linker->name());
    if (has_ptxas)
      facts_.emplace_back("ptxas", ptxas_version_);
    else if (!calibration_)
      note(fmt::format("no `{}`: the columns of ptxas are left out", ptxas_));

    if (calibration_) return predict_and_measure(queries);
    RETURN_IF_ERROR(measure(queries, linker.get(), has_ptxas, gpu));
    if (!wanted("loops")) return {};
    if (flags_.data.empty()) return loops(queries);
    note("loops: left out, with --data there is no smaller scale");
    return {};
  }

  // Times are those of one device and of so many rows; another driver is what somebody may want to compare.
  Result<void> check_comparable() const {
    const auto fact = [](const Samples::Facts& facts, std::string_view name) {
      for (const auto& [key, value] : facts)
        if (key == name) {
          const size_t driver = value.find(", driver "), end = value.find(", ", driver + 2);
          return driver == value.npos || end == value.npos ? value : value.substr(0, driver) + value.substr(end);
        }
      return std::string("unknown");
    };
    for (const char* name : {"data", "form", "device"})
      if (const std::string then = fact(facts_before_, name), now = fact(facts_, name); then != now)
        return input_error("{} was measured with another {}: {} there, {} here", compare_, name, then, now);
    return {};
  }

  // Every query is compiled for its columns, and predicted, before any is run.
  Result<void> predict_and_measure(std::span<const NamedSource> queries) {
    facts_.emplace_back("calibration", model_);
    for (const auto& [name, value] : calibration_->facts)
      if (name == "device" || name == "target") facts_.emplace_back("calibrated " + name, value);
    runtime::Engine engine(*device_, *tables_, nullptr, &pool_);
    std::vector<Predicted> predicted;
    std::vector<Planned> plans;
    for (const NamedSource& q : queries) {
      ASSIGN_OR_RETURN(Planned p, plan(engine, q, flags_, true, &pool_, Forecasts::taken));
      runtime::DataChoices choices;
      (void)engine.forecast(*p.compiled, *p.sources, engine_options(flags_), *tables_, &choices);
      predicted.push_back({.query = q.name, .work = std::move(choices.work)});
      if (predicted.back().work.empty()) predicted.back().why_not = "nothing was foreseen";
      plans.push_back(std::move(p));
    }
    RETURN_IF_ERROR(write_file(flags_.output + "/model.json", predictions_json(predicted, *calibration_, facts_)));
    Progress progress("measuring", queries.size());
    for (size_t k = 0; k < plans.size(); ++k) {
      progress.advance(1);
      if (measured_.empty())
        RETURN_IF_ERROR(measure(engine, *plans[k].plan, *plans[k].compiled, predicted[k]));
      else
        take_measured(predicted[k]);
    }
    const std::string table = errors_tsv(std::string(benchmark_.name), fmt::format("{}", scale_), predicted, *calibration_, facts_);
    RETURN_IF_ERROR(write_file(flags_.output + "/model.tsv", table));
    return write_file("-", table);
  }

  // What the table says of it, which is of all kernels: a prediction that lacks one does not count.
  void take_measured(Predicted& p) const {
    if (const auto at = known_.find(p.query); at != known_.end()) p.kernels = spread_of({at->second});
    for (const model::Work& w : p.work)
      if (!w.is_kernel && w.name != "an operator") p.why_not = fmt::format("`{}` was not foreseen", w.name);
  }

  Result<void> measure(runtime::Engine& engine, runtime::Engine::Plan& plan, const runtime::Compiled& compiled, Predicted& p) {
    std::vector<double> kernels_ms, others_ms;
    for (unsigned i = 0; i < warm_up_ + runs_; ++i) {
      Timings timings;
      std::vector<runtime::KernelReport> kernels;
      auto results = engine.run(plan, timings, nullptr, &kernels);
      if (!results) return results.error();
      for (const runtime::KernelReport& k : kernels)
        if (k.late) p.why_not = fmt::format("`{}` met other forms of vectors than were foreseen", k.name);
      if (i < warm_up_) continue;
      double of_kernels = 0, of_others = 0;
      for (const runtime::KernelReport& k : kernels) {
        const bool is_predicted =
            k.kind == "outlined" && std::any_of(p.work.begin(), p.work.end(),
                                                [&](const model::Work& w) { return w.is_kernel && w.name == k.name; });
        (is_predicted ? of_kernels : of_others) += milliseconds(k.ns);
      }
      kernels_ms.push_back(of_kernels), others_ms.push_back(of_others);
    }
    if (&plan.compiled() != &compiled) p.why_not = "compiled again in the run";
    p.kernels = spread_of(std::move(kernels_ms));
    p.others = spread_of(std::move(others_ms));
    return {};
  }

  // The tables that need the data at the wanted scale.
  Result<void> measure(std::span<const NamedSource> queries, const NvidiaLinker* linker, bool has_ptxas, bool gpu) {
    runtime::Engine engine(*device_, *tables_, nullptr, &pool_);
    Progress progress("measuring", queries.size());
    for (const NamedSource& q : queries) {
      progress.advance(1);
      RETURN_IF_ERROR(warm(engine, q));
      if (wanted("compile") || wanted("phases")) RETURN_IF_ERROR(compile_times(engine, q, linker, has_ptxas, gpu));
      if (wanted("execute")) RETURN_IF_ERROR(execution(engine, q));
      if (wanted("outline")) {
        for (const char* mode : {"none", "flow", "full"}) {
          Flags flags = flags_;
          flags.outline = mode;
          ASSIGN_OR_RETURN(Planned p, plan(engine, q, flags, false));
          samples_.add("kernel counts", q.name, mode, static_cast<double>(p.compiled->outlined.kernels.size()));
          const std::pair<std::string, Value> columns[] = {{mode, wall}};
          RETURN_IF_ERROR(run(engine, p, "outline", q.name, columns));
          for (unsigned i = 0; i < warm_up_ + runs_; ++i) {
            ASSIGN_OR_RETURN(Planned again, plan(engine, q, flags, false));
            if (i >= warm_up_) samples_.add("outline compile", q.name, mode, again.compile_ms);
          }
        }
      }
      if (wanted("backends")) {
        std::vector<std::string> backends = {"rndn"};
        if (has_ptxas) backends.push_back("ptxas:" + ptxas_);
        if (gpu) backends.push_back("driver");
        for (const std::string& backend : backends) {
          Flags flags = flags_;
          flags.backend = backend;
          ASSIGN_OR_RETURN(Planned p, plan(engine, q, flags, true));
          const std::pair<std::string, Value> columns[] = {{backend.substr(0, backend.find(':')), outlined_ms}};
          RETURN_IF_ERROR(run(engine, p, "backends", q.name, columns));
        }
      }
      if (wanted("switches")) {
        static const Switch switches[] = {
            {"default", [](Flags&) {}},
            {"-O0", [](Flags& f) { f.level = 0; }},
            {"--scheduler linear", [](Flags& f) { f.scheduler = "linear"; }},
            {"--fuse-operators off", [](Flags& f) { f.fuse_operators = "off"; }},
            {"--group hash", [](Flags& f) { f.group = "hash"; }},
            {"--branch-inlining off", [](Flags& f) { f.branch_inlining = "off"; }},
            {"--sort bitonic", [](Flags& f) { f.sort = "bitonic"; }},
            {"--top sort", [](Flags& f) { f.top = "sort"; }},
            {"--like gpu", [](Flags& f) { f.like = "gpu"; }},
            {"--like cpu", [](Flags& f) { f.like = "cpu"; }},
            {"--encode plain", [](Flags& f) { f.encode = "plain"; }},
            {"--encode packed", [](Flags& f) { f.encode = "packed"; }},
            {"--alloc driver", [](Flags& f) { f.alloc = "driver"; }},
        };
        RETURN_IF_ERROR(switched(engine, q, "switches", switches));
      }
      if (wanted("registers")) RETURN_IF_ERROR(registers(engine, q, has_ptxas));
    }
    return {};
  }

  // Columns on the host, columns on the device and library modules ready: what repeats is what counts.
  Result<void> warm(runtime::Engine& engine, const NamedSource& q) {
    ASSIGN_OR_RETURN(Planned first, plan(engine, q, flags_, false));
    Timings timings;
    auto ran = engine.run(*first.plan, timings);
    if (!ran) return ran.error();
    return {};
  }

  // Cached runs with one switch changed.
  Result<void> switched(runtime::Engine& engine, const NamedSource& q, std::string_view table,
                        std::span<const Switch> switches) {
    for (const Switch& s : switches) {
      Flags flags = flags_;
      s.change(flags);
      ASSIGN_OR_RETURN(Planned p, plan(engine, q, flags, false));
      const std::pair<std::string, Value> columns[] = {{s.name, wall}};
      RETURN_IF_ERROR(run(engine, p, table, q.name, columns));
    }
    return {};
  }

  Result<void> loops(std::span<const NamedSource> queries) {
    constexpr double largest_scale = 0.1;
    static const Switch switches[] = {
        {"default", [](Flags&) {}},
        {"--join loop", [](Flags& f) { f.join = "loop"; }},
        {"--member loop", [](Flags& f) { f.member = "loop"; }},
    };
    ASSIGN_OR_RETURN(source_, open_data({.data = fmt::format("{}:{}", form_->source, std::min(scale_, largest_scale))}, flags_));
    tables_ = std::make_unique<data::SourceTables>(source_);
    runtime::Engine engine(*device_, *tables_, nullptr, &pool_);
    Progress progress("measuring loops", queries.size());
    for (const NamedSource& q : queries) {
      progress.advance(1);
      RETURN_IF_ERROR(warm(engine, q));
      RETURN_IF_ERROR(switched(engine, q, "loops", switches));
    }
    return {};
  }

  Result<void> compile_times(runtime::Engine& engine, const NamedSource& q, const NvidiaLinker* linker, bool has_ptxas,
                             bool gpu) {
    for (unsigned i = 0; i < warm_up_ + runs_; ++i) {
      ASSIGN_OR_RETURN(Planned p, plan(engine, q, flags_, false));
      if (i < warm_up_) continue;
      if (wanted("compile")) samples_.add("compile", q.name, "rndn", p.compile_ms);
      if (!wanted("phases")) continue;
      double assembler = 0;
      for (Phase phase :
           {Phase::structure, Phase::select, Phase::allocate, Phase::schedule, Phase::peephole, Phase::encode})
        assembler += milliseconds(p.timings.exclusive_ns(phase));
      samples_.add("phases", q.name, "frontend", milliseconds(p.timings.exclusive_ns(Phase::frontend)));
      samples_.add("phases", q.name, "outliner", milliseconds(p.timings.exclusive_ns(Phase::outliner)));
      samples_.add("phases", q.name, "ptx", milliseconds(p.timings.exclusive_ns(Phase::ptx)));
      samples_.add("phases", q.name, "assembler", assembler);
      samples_.add("phases", q.name, "load", milliseconds(p.timings.exclusive_ns(Phase::load)));
    }
    for (unsigned i = 0; i < warm_up_ + runs_; ++i) {
      ASSIGN_OR_RETURN(Planned p, plan(engine, q, flags_, false, &pool_));
      if (i < warm_up_) continue;
      if (wanted("compile")) samples_.add("compile", q.name, "rndn, all cores", p.compile_ms);
      if (wanted("phases")) samples_.add("phases", q.name, "all, on all cores", p.compile_ms);
    }
    if (!wanted("compile")) return {};
    const unsigned slow_runs = std::min(runs_, 5u);  // NVIDIA's compilers take long and vary little
    if (linker) {
      for (const auto& [column, extra] :
           {std::pair<const char*, std::vector<std::string>>{"NVIDIA in process -O3", {"-O3"}},
            {"NVIDIA in process -O0", {"-O0"}},
            {"NVIDIA in process fast", {"-Xptxas=--Ofast-compile=max"}}}) {
        for (unsigned i = 0; i < slow_runs + 1; ++i) {
          Timings timings;
          SourceManager sources;
          DiagnosticSink sink;
          ASSIGN_OR_RETURN(runtime::CompileOptions options, compile_options(flags_));
          options.schema = &source_->schema();
          options.target = target_;
          options.until = runtime::Stage::ptx;
          auto compiled = runtime::compile(sources.add(q.file, q.text), sources, options, sink, timings);
          if (!compiled) return compiled.error();
          if (compiled->code.module.functions.empty()) break;
          std::vector<std::string> arguments = {"-arch=" + target_, "-no-cache"};
          arguments.insert(arguments.end(), extra.begin(), extra.end());
          double ms = 0, load_ms = 0;
          auto cubin = timed(ms, [&] { return linker->compile(compiled->ptx, arguments); });
          if (!cubin) {
            if (missing_.insert(column).second) note(fmt::format("{}: {}", column, cubin.error().message));
            break;
          }
          if (gpu) {
            auto module = timed(load_ms, [&] { return device_->load_module(*cubin); });
            if (!module) return module.error();
            RETURN_IF_ERROR(device_->unload_module(*module));
          }
          if (i > 0)
            samples_.add("compile", q.name, column, milliseconds(timings.total_ns(PhaseGroup::compile)) + ms + load_ms);
        }
      }
    }
    const struct {
      bool present;
      const char* column;
      std::string backend;
      int level;
    } others[] = {
        {gpu, "driver -O3", "driver", 3},
        {gpu, "driver -O0", "driver", 0},
        {has_ptxas, "ptxas -O3", "ptxas:" + ptxas_, 3},
        {has_ptxas, "ptxas -O0", "ptxas:" + ptxas_, 0},
    };
    for (const auto& other : others)
      for (unsigned i = 0; other.present && i < slow_runs + 1; ++i) {
        Flags flags = flags_;
        flags.backend = other.backend;
        flags.level = other.level;
        ASSIGN_OR_RETURN(Planned p, plan(engine, q, flags, false));
        if (i > 0) samples_.add("compile", q.name, other.column, p.compile_ms);
      }
    return {};
  }

  Result<void> execution(runtime::Engine& engine, const NamedSource& q) {
    {
      ASSIGN_OR_RETURN(Planned p, plan(engine, q, flags_, false));
      const std::pair<std::string, Value> columns[] = {{"cached", wall}};
      RETURN_IF_ERROR(run(engine, p, "execute", q.name, columns));
    }
    {  // columns leave the device after each run; code and library modules stay
      Flags flags = flags_;
      flags.no_cache = true;
      ASSIGN_OR_RETURN(Planned p, plan(engine, q, flags, false));
      const std::pair<std::string, Value> columns[] = {{"uncached", wall}};
      RETURN_IF_ERROR(run(engine, p, "execute", q.name, columns));
    }
    for (unsigned i = 0; i < warm_up_ + runs_; ++i) {  // from the text to the rows
      Flags flags = flags_;
      flags.no_cache = true;
      double ms = 0;
      const Result<void> done = timed(ms, [&]() -> Result<void> {
        ASSIGN_OR_RETURN(Planned p, plan(engine, q, flags, false, &pool_));
        Timings timings;
        auto results = engine.run(*p.plan, timings);
        if (!results) return results.error();
        return {};
      });
      if (!done) return done.error();
      if (i >= warm_up_) samples_.add("execute", q.name, "total", ms);
    }
    ASSIGN_OR_RETURN(Planned p, plan(engine, q, flags_, true));
    const std::pair<std::string, Value> columns[] = {
        {"kernels", outlined_ms},
        {"library", library_ms},
        {"host", [](const Timings& t, const auto&, double) { return milliseconds(t.exclusive_ns(Phase::cpu)); }},
        {"floor", [this](const Timings&, const std::vector<runtime::KernelReport>& kernels, double) {
           double bytes = 0;
           for (const runtime::KernelReport& k : kernels)
             bytes += static_cast<double>(k.all_floor_bytes);
           return copy_speed_ > 0 ? bytes / copy_speed_ * 1e3 : 0;
         }}};
    return run(engine, p, "execute", q.name, columns);
  }

  Result<void> registers(runtime::Engine& engine, const NamedSource& q, bool has_ptxas) {
    std::vector<std::string> backends = {"rndn"};
    if (has_ptxas) backends.push_back("ptxas:" + ptxas_);
    for (const std::string& backend : backends) {
      Flags flags = flags_;
      flags.backend = backend;
      ASSIGN_OR_RETURN(Planned p, plan(engine, q, flags, false));
      Timings timings;
      std::vector<runtime::KernelReport> kernels;
      auto results = engine.run(*p.plan, timings, nullptr, &kernels);
      if (!results) return results.error();
      for (const runtime::KernelReport& k : kernels)
        if (k.kind == "outlined")  // fused operators are made of the library's kernels, which are always our code
          samples_.add("registers", q.name + " " + k.name, backend.substr(0, backend.find(':')), k.registers);
    }
    return {};
  }

  bool check_ptxas() {
    FILE* pipe = popen(("'" + ptxas_ + "' --version 2>/dev/null").c_str(), "r");
    if (!pipe) return false;
    char line[256];
    while (std::fgets(line, sizeof line, pipe))
      if (std::string_view(line).find("release") != std::string_view::npos) ptxas_version_ = line;
    while (!ptxas_version_.empty() && ptxas_version_.back() == '\n') ptxas_version_.pop_back();
    return pclose(pipe) == 0 && !ptxas_version_.empty();
  }

  const Benchmark& benchmark_;
  const Benchmark::Form* form_ = nullptr;
  double scale_ = 0.01;
  std::optional<model::Calibration> calibration_;
  std::map<std::string, double> known_;  // by query, ms: of --measured
  std::string model_, measured_, queries_, form_name_, compare_, ptxas_ = "ptxas", linker_path_, ptxas_version_;
  std::vector<std::string> wanted_;
  unsigned warm_up_ = 5, runs_ = 10;
  ThreadPool pool_;
  assembler::Workspace workspace_;
  Flags flags_;
  std::shared_ptr<data::Source> source_;
  std::unique_ptr<data::SourceTables> tables_;
  device::Device* device_ = nullptr;
  std::string target_;
  double copy_speed_ = 0;  // bytes per second, read plus written
  std::set<std::string> missing_;
  Samples samples_;
  Samples::Facts facts_, facts_before_;
};

}  // namespace

std::unique_ptr<Command> bench_command(CLI::App& bench, const Benchmark& benchmark) {
  return std::make_unique<BenchCommand>(bench, benchmark);
}

}  // namespace rndn::tools
