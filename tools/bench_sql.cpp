// `rndn bench sql`: a suite of SQL queries on rndn and on DuckDB, the same data, in one run.
//
// One table: whether the answer is DuckDB's, kernels, what fell back to the interpreter, texts that
// the host read (functions of text are its work), and milliseconds: planning (planner and translation, with the tables known), compiling (HorseIR to
// code on the device), cached (a repeated text: columns on the device, rows back on the host),
// DuckDB's for the same text on its own tables. Loading is not timed on either side. The code cache
// is an empty folder, so that compiling is measured. Of the runs the median counts, highest and
// lowest dropped from five on.
//
// Answers agree when their rows do, in any order (one that differs is said): exact numbers
// exactly, floats to 1e-12. What is refused or wrong says why in its row.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "libraries/base/report/json.h"
#include "libraries/base/report/version.h"
#include "libraries/base/system/files.h"
#include "libraries/base/system/parallel.h"
#include "runtime/planner/duckdb.h"
#include "runtime/print_sql.h"
#include "runtime/sql/catalog.h"
#include "tools/bench_samples.h"
#include "tools/compare_results.h"
#include "tools/duckdb_tables.h"
#include "tools/rndn.h"
#include "tools/session.h"

namespace rndn::tools {
namespace {

namespace fs = std::filesystem;
using planner::Duckdb;

// An empty folder for the code cache, until the measurement is over.
class EmptyCache {
 public:
  static Result<EmptyCache> make() {
    std::string name = (fs::temp_directory_path() / "rndn-bench-XXXXXX").string();
    if (!mkdtemp(name.data())) return world_error("cannot make a folder like `{}`", name);
    setenv("RNDN_CACHE_DIR", name.c_str(), 1);
    return EmptyCache(name);
  }
  EmptyCache(EmptyCache&& other) noexcept : name_(std::exchange(other.name_, "")) {}
  EmptyCache& operator=(EmptyCache&&) = delete;
  ~EmptyCache() {
    std::error_code ignored;
    if (!name_.empty()) fs::remove_all(name_, ignored);
  }

 private:
  explicit EmptyCache(std::string name) : name_(std::move(name)) {}
  std::string name_;
};

struct Row {
  std::string query, right;
  bool agrees = false;
  size_t kernels = 0, library = 0, fallbacks = 0, texts = 0;
  double planning = 0, compile = 0;
  Spread again, cached, duckdb;  // again: planning, of a text that is new, on tables that are known
};

class BenchSqlCommand final : public Command {
 public:
  explicit BenchSqlCommand(CLI::App& bench) {
    app = bench.add_subcommand("sql",
                               "SQL queries side by side with DuckDB: answers, planning, compile and cached times");
    app->add_option("--queries", queries_, "tpch, ssb, or a folder of .sql files (default: the suite of --data)")
        ->type_name("DIR|tpch|ssb");
    app->add_option("--warm-up", warm_up_, "runs that do not count (default 1)")->check(CLI::Range(0u, 1000u));
    app->add_option("--runs", runs_, "runs that count (default 5)")->check(CLI::Range(1u, 1000u));
    app->add_option("--threads", flags_.threads, "of DuckDB, and of rndn on the host (default: all cores)")
        ->check(CLI::Range(1u, 1024u));
    add_data_flags(*app, flags_);
    app->add_option("--device", flags_.device, "auto, cuda[:N], sim or cpu")->type_name("D");
    app->add_option("--arch", flags_.arch, "target of the simulator")->type_name("A");
    add_encode_flag(*app, flags_);
    add_limit_flags(*app, flags_);
    app->add_option("-o", flags_.output, "folder for sql.md and sql.json (default: Markdown on stdout)")
        ->type_name("DIR");
  }

  int execute() override {
    auto done = errors_of([&] { return measure(); });
    if (!done) return fail(done.error());
    return *done;
  }

 private:
  std::string path(const char* name) const { return fmt::format("{}/{}", flags_.output, name); }

  Result<std::vector<NamedSource>> read_queries() const {
    const std::string suite = queries_.empty() ? flags_.data.substr(0, flags_.data.find(':')) : queries_;
    std::vector<NamedSource> queries;
    auto add = [&](const std::string& name, const std::string& file, std::string text) {
      for (NamedSource& s : split_sql(name, file, std::move(text))) queries.push_back(std::move(s));
    };
    for (const EmbeddedText& t : embedded_texts())
      if (t.benchmark == suite && t.kind == "sql")
        add(std::string(t.name), fmt::format("{}/{}.sql", t.benchmark, t.name), std::string(t.text));
    if (!queries.empty()) return queries;
    if (queries_.empty()) return usage_error("--queries names the queries: tpch, ssb, or a folder");
    std::error_code error;
    std::set<std::string> files;
    for (fs::directory_iterator at(queries_, error), end; !error && at != end; at.increment(error))
      if (at->path().extension() == ".sql") files.insert(at->path().string());
    if (error) return input_error("cannot read folder `{}`: {}", queries_, error.message());
    for (const std::string& file : files) {
      ASSIGN_OR_RETURN(std::string text, read_file(file));
      add(fs::path(file).stem().string(), file, std::move(text));
    }
    if (queries.empty()) return input_error("folder `{}` has no .sql files", queries_);
    return queries;
  }

  Result<int> measure() {
    ASSIGN_OR_RETURN(const std::vector<NamedSource> queries, read_queries());
    ASSIGN_OR_RETURN(DeviceChoice device, DeviceChoice::start(flags_));
    if (flags_.data.empty() && flags_.tables.empty()) return usage_error("--data names the tables");
    if (flags_.output != "-") {
      std::error_code error;
      fs::create_directories(flags_.output, error);
      if (error) return world_error("cannot make folder `{}`: {}", flags_.output, error.message());
      for (const char* name : {"sql.md", "sql.json"}) RETURN_IF_ERROR(check_writable(path(name)));
    }
    ASSIGN_OR_RETURN(auto source, open_data(source_names(flags_), flags_));
    ASSIGN_OR_RETURN(const EmptyCache cache, EmptyCache::make());
    threads_ = flags_.threads ? flags_.threads : hardware_threads();
    ASSIGN_OR_RETURN(duckdb_, Duckdb::open(planner::Options::of_environment(), threads_));
    const bool is_cpu = device.is_cpu();
    std::string said;  // the first error of a statement
    Session session(source, std::move(device), file_cache(flags_), [&](const std::string& text) {
      runtime::say_to_stderr(text);
      const size_t at = text.find("error: ");
      if (at == std::string::npos || !said.empty()) return;
      said = text.substr(at + 7, text.find('\n', at) - at - 7);
    });

    // Tables are known to both before anything is measured.
    std::vector<std::string> refused(queries.size());
    TablesRead reads;
    for (size_t i = 0; i < queries.size(); ++i) {
      Timings ignored;
      auto query = session.prepare_sql(queries[i], runtime::SqlQueries::Until::program, ignored);
      if (!query && query.error().fault != Fault::input) return query.error();
      if (!query) {
        refused[i] = std::exchange(said, "");
        if (refused[i].empty()) refused[i] = query.error().message;
        continue;
      }
      for (const auto& [table, columns] : (*query)->planned.reads) reads[table].insert(columns.begin(), columns.end());
    }
    RETURN_IF_ERROR(load_tables(*duckdb_, session.queries().catalog(), *source, reads));
    session.queries().forget();

    std::string device_name = "the reference interpreter";
    if (!is_cpu) {
      ASSIGN_OR_RETURN(device::Device * opened, session.device());
      device_name = opened->info().name;
    }
    std::vector<Row> rows;
    for (size_t i = 0; i < queries.size(); ++i) {
      Row row{.query = queries[i].name, .right = "refused: " + refused[i]};
      if (refused[i].empty()) {
        said.clear();
        auto measured = query(session, queries[i], row);
        if (!measured && measured.error().fault != Fault::input) return measured.error();
        if (!measured) {
          fail(measured.error());
          row.right = "no: " + (said.empty() ? measured.error().message : said);
        }
      }
      rows.push_back(std::move(row));
    }
    const Samples::Facts facts = {
        {"data", flags_.data.empty() ? "--table" : flags_.data},
        {"device", device_name},
        {"DuckDB", fmt::format("{}, {} threads", planner::pinned_version.substr(1), threads_)},
        {"rndn", fmt::format("{} ({})", version(), commit())},
        {"runs", fmt::format("{} after {}", runs_, warm_up_)}};
    if (flags_.output == "-") {
      RETURN_IF_ERROR(write_file("-", markdown(rows, facts)));
    } else {
      RETURN_IF_ERROR(write_file(path("sql.md"), markdown(rows, facts)));
      RETURN_IF_ERROR(write_file(path("sql.json"), json(rows, facts)));
    }
    const bool all = std::all_of(rows.begin(), rows.end(), [](const Row& r) { return r.agrees; });
    return all ? 0 : static_cast<int>(Fault::internal);
  }

  Result<void> query(Session& session, const NamedSource& statement, Row& row) {
    ASSIGN_OR_RETURN(const Session::Outcome first, session.run(statement, flags_, true));
    const runtime::RunReport& report = first.reports.at(0);
    const Timings& t = report.timings;
    auto ms = [](uint64_t ns) { return static_cast<double>(ns) * 1e-6; };
    row.planning = ms(t.exclusive_ns(Phase::planner) + t.exclusive_ns(Phase::translate));
    row.compile = ms(t.total_ns(PhaseGroup::compile)) - row.planning;
    row.fallbacks = report.fallbacks.size();
    row.texts = report.texts_walked;
    for (const runtime::KernelReport& k : report.kernels) ++(k.kind == "library" ? row.library : row.kernels);
    ASSIGN_OR_RETURN(const runtime::Grid grid, runtime::sql_grid(first.results.at(0), first.columns));

    using Clock = std::chrono::steady_clock;
    std::vector<double> cached, duckdb;
    Duckdb::Answer answer;
    for (unsigned i = 0; i < warm_up_ + runs_; ++i) {
      const auto start = Clock::now();
      RETURN_IF_ERROR(session.run(statement, flags_, false));
      if (i >= warm_up_) cached.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
    }
    std::vector<double> again;
    for (unsigned i = 0; i < warm_up_ + runs_; ++i) {
      session.queries().forget();
      Timings anew;
      RETURN_IF_ERROR(session.prepare_sql(statement, runtime::SqlQueries::Until::program, anew));
      if (i >= warm_up_)
        again.push_back(ms(anew.exclusive_ns(Phase::planner) + anew.exclusive_ns(Phase::translate)));
    }
    row.again = spread_of(std::move(again));
    const runtime::NamedSource::Statement& sql = *statement.sql;
    for (unsigned i = 0; i < warm_up_ + runs_; ++i) {
      ASSIGN_OR_RETURN(answer, duckdb_->run(sql.text->substr(sql.begin, sql.end - sql.begin)));
      if (i >= warm_up_) duckdb.push_back(answer.ms);
    }
    row.cached = spread_of(std::move(cached));
    row.duckdb = spread_of(std::move(duckdb));
    uint64_t reordered = 0;
    const std::string differs = difference(grid, {answer.names, answer.rows}, reordered, 1e-12);
    row.agrees = differs.empty();
    row.right = !differs.empty() ? "no: " + differs
                : reordered      ? fmt::format("yes, row {} elsewhere", reordered)
                                 : "yes";
    return {};
  }

  std::string markdown(const std::vector<Row>& rows, const Samples::Facts& facts) const {
    std::string out = "# SQL queries beside DuckDB\n\n";
    for (const auto& [name, value] : facts) out += fmt::format("- {}: {}\n", name, value);
    out += fmt::format(
        "\nMilliseconds; kernels are outlined + library.\n\n"
        "| query | right | kernels | fallbacks | texts on the host | planning | of a new text | compile | cached | DuckDB, {} threads "
        "|\n"
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
        threads_);
    size_t right = 0, ratios = 0;
    double planning = 0, again = 0, compile = 0, cached = 0, duckdb = 0, logs = 0;
    for (const Row& r : rows) {
      right += r.agrees;
      out += fmt::format("| {} | {} | {} + {} | {} | {} | {:.2f} | {:.2f} | {:.2f} | {:.3f} | {:.3f} |\n", r.query,
                         r.right, r.kernels, r.library, r.fallbacks, r.texts, r.planning, r.again.median, r.compile, r.cached.median,
                         r.duckdb.median);
      planning += r.planning, again += r.again.median, compile += r.compile, cached += r.cached.median, duckdb += r.duckdb.median;
      if (r.cached.median > 0 && r.duckdb.median > 0) logs += std::log(r.duckdb.median / r.cached.median), ++ratios;
    }
    out += fmt::format("| sum | {} of {} |  |  |  | {:.2f} | {:.2f} | {:.2f} | {:.3f} | {:.3f} |\n", right, rows.size(),
                       planning, again, compile, cached, duckdb);
    if (ratios)
      out += fmt::format("\nDuckDB / cached, geometric mean: {:.2f}\n", std::exp(logs / static_cast<double>(ratios)));
    return out;
  }

  std::string json(const std::vector<Row>& rows, const Samples::Facts& facts) const {
    std::string out = "{\"facts\":{";
    for (size_t i = 0; i < facts.size(); ++i)
      out += fmt::format("{}{}:{}", i ? "," : "", json_string(facts[i].first), json_string(facts[i].second));
    out += "},\"queries\":[";
    for (size_t i = 0; i < rows.size(); ++i) {
      const Row& r = rows[i];
      out += fmt::format(
          "{}\n{{\"query\":{},\"right\":{},\"answer\":{},\"kernels\":{},\"library_kernels\":{},"
          "\"fallbacks\":{},\"texts_on_host\":{},"
          "\"planning_ms\":{},\"planning_again_ms\":{},\"compile_ms\":{},\"cached_ms\":{},\"duckdb_ms\":{},\"duckdb_"
          "threads\":{}}}",
          i ? "," : "", json_string(r.query), r.agrees, json_string(r.right), r.kernels, r.library, r.fallbacks,
          r.texts, r.planning, r.again.median, r.compile, r.cached.median, r.duckdb.median, threads_);
    }
    return out + "\n]}\n";
  }

  Flags flags_;
  std::string queries_;
  unsigned warm_up_ = 1, runs_ = 5, threads_ = 1;
  std::unique_ptr<Duckdb> duckdb_;
};

}  // namespace

std::unique_ptr<Command> bench_sql_command(CLI::App& bench) { return std::make_unique<BenchSqlCommand>(bench); }

}  // namespace rndn::tools
