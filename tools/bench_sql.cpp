// `rndn bench sql`: a suite of SQL queries on rndn and on DuckDB, the same data, in one run.
//
// One table: whether the answer is DuckDB's, kernels, what fell back to the interpreter, and
// milliseconds: planning (planner and translation, with the tables known), compiling (HorseIR to
// code on the device), cached (a repeated text: columns on the device, rows back on the host),
// DuckDB's for the same text on its own tables. Loading is not timed on either side. The code cache
// is an empty folder, so that compiling is measured. Of the runs the median counts, highest and
// lowest dropped from five on.
//
// DuckDB gets the columns that the queries read, in place, by data chunks; all others are NULL
// there. Answers agree when their rows do, in any order (one that differs is said): exact numbers
// exactly, floats to 1e-9.
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

// Stored values as DuckDB holds them: integers times a unit, or decimals kept as floats.
template <class To, class From>
void convert(const From* from, uint64_t count, double scale, int64_t unit, void* to) {
  To* out = static_cast<To*>(to);
  for (uint64_t i = 0; i < count; ++i) {
    if constexpr (std::is_floating_point_v<From>)
      out[i] =
          scale == 1 ? static_cast<To>(from[i]) : static_cast<To>(std::llround(from[i] * scale));
    else
      out[i] = static_cast<To>(from[i] * unit);
  }
}

Duckdb::Column duckdb_column(const sql::Column& column, std::shared_ptr<const data::Column> data) {
  using hir::BasicType;
  Duckdb::Column out{.name = column.name, .type = column.type};
  if (data->validity) out.validity = data->validity->data();
  if (hir::is_text(data->type)) {
    out.text = [data](uint64_t row) { return data->text_at(row); };
    return out;
  }
  if (data->type == BasicType::character) {
    out.text = [data](uint64_t row) { return std::string_view(data->as<char>() + row, 1); };
    return out;
  }
  const double scale =
      column.type.id == sql::TypeId::decimal ? std::pow(10.0, column.type.scale) : 1;
  const int digits = column.type.width;
  const int64_t unit = runtime::sql_unit(data->type);
  out.numbers = [=](uint64_t first, uint64_t count, void* to) {
    switch (data->type) {
      case BasicType::boolean:
      case BasicType::i8: return convert<int8_t>(data->as<int8_t>() + first, count, 1, 1, to);
      case BasicType::i16: return convert<int16_t>(data->as<int16_t>() + first, count, 1, 1, to);
      case BasicType::f32: return convert<float>(data->as<float>() + first, count, 1, 1, to);
      case BasicType::f64: {
        const double* from = data->as<double>() + first;
        if (column.type.id != sql::TypeId::decimal) return convert<double>(from, count, 1, 1, to);
        if (digits <= 4) return convert<int16_t>(from, count, scale, 1, to);
        if (digits <= 9) return convert<int32_t>(from, count, scale, 1, to);
        return convert<int64_t>(from, count, scale, 1, to);
      }
      default:
        if (data->width == 8)
          return convert<int64_t>(data->as<int64_t>() + first, count, 1, unit, to);
        if (unit == 1) return convert<int32_t>(data->as<int32_t>() + first, count, 1, 1, to);
        return convert<int64_t>(data->as<int32_t>() + first, count, 1, unit, to);
    }
  };
  return out;
}

struct Row {
  std::string query, right;
  bool agrees = false;
  size_t kernels = 0, library = 0, fallbacks = 0;
  double planning = 0, compile = 0;
  Spread cached, duckdb;
};

class BenchSqlCommand final : public Command {
 public:
  explicit BenchSqlCommand(CLI::App& bench) {
    app = bench.add_subcommand(
        "sql", "SQL queries side by side with DuckDB: answers, planning, compile and cached times");
    app->add_option("--queries", queries_,
                    "tpch, ssb, or a folder of .sql files (default: the suite of --data)")
        ->type_name("DIR|tpch|ssb");
    app->add_option("--warm-up", warm_up_, "runs that do not count (default 1)")
        ->check(CLI::Range(0u, 1000u));
    app->add_option("--runs", runs_, "runs that count (default 5)")->check(CLI::Range(1u, 1000u));
    app->add_option("--threads", flags_.threads,
                    "of DuckDB, and of rndn on the host (default: all cores)")
        ->check(CLI::Range(1u, 1024u));
    add_data_flags(*app, flags_);
    app->add_option("--device", flags_.device, "auto, cuda[:N], sim or cpu")->type_name("D");
    app->add_option("--arch", flags_.arch, "target of the simulator")->type_name("A");
    add_encode_flag(*app, flags_);
    add_limit_flags(*app, flags_);
    app->add_option("-o", flags_.output,
                    "folder for sql.md and sql.json (default: Markdown on stdout)")
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
    const std::string suite =
        queries_.empty() ? flags_.data.substr(0, flags_.data.find(':')) : queries_;
    std::vector<NamedSource> queries;
    auto add = [&](const std::string& name, const std::string& file, std::string text) {
      for (NamedSource& s : split_sql(name, file, std::move(text))) queries.push_back(std::move(s));
    };
    for (const EmbeddedText& t : embedded_texts())
      if (t.suite == suite)
        add(std::string(t.name), fmt::format("{}/{}.sql", t.suite, t.name), std::string(t.text));
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
      for (const char* name : {"sql.md", "sql.json"})
        RETURN_IF_ERROR(check_writable(path(name)));
    }
    ASSIGN_OR_RETURN(auto source, open_data(source_names(flags_), flags_));
    ASSIGN_OR_RETURN(const EmptyCache cache, EmptyCache::make());
    threads_ = flags_.threads ? flags_.threads : hardware_threads();
    ASSIGN_OR_RETURN(duckdb_, Duckdb::open(planner::Options::of_environment(), threads_));
    const bool is_cpu = device.is_cpu();
    Session session(source, std::move(device), file_cache(flags_));

    // Tables are known to both before anything is measured. What is refused has been said.
    std::vector<bool> planned(queries.size());
    std::map<std::string, std::set<std::string>> reads;
    for (size_t i = 0; i < queries.size(); ++i) {
      Timings ignored;
      auto query = session.prepare_sql(queries[i], runtime::SqlQueries::Until::program, ignored);
      if (!query && query.error().fault != Fault::input) return query.error();
      planned[i] = query.ok();
      if (!query) continue;
      for (const auto& [table, columns] : (*query)->planned.reads)
        reads[table].insert(columns.begin(), columns.end());
    }
    RETURN_IF_ERROR(load(session, *source, reads));
    session.queries().forget();

    std::string device_name = "the reference interpreter";
    if (!is_cpu) {
      ASSIGN_OR_RETURN(device::Device * opened, session.device());
      device_name = opened->info().name;
    }
    std::vector<Row> rows;
    for (size_t i = 0; i < queries.size(); ++i) {
      Row row{.query = queries[i].name, .right = "no: refused"};
      if (planned[i]) {
        auto measured = query(session, queries[i], row);
        if (!measured && measured.error().fault != Fault::input) return measured.error();
        if (!measured) {
          row.right = "no: failed";
          fail(measured.error());
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

  Result<void> load(Session& session, data::Source& source,
                    const std::map<std::string, std::set<std::string>>& reads) {
    for (const sql::Table& table : session.queries().catalog().tables) {
      const auto read = reads.find(table.name);
      if (read == reads.end()) continue;
      std::vector<Duckdb::Column> columns;
      for (const sql::Column& c : table.columns) {
        if (read->second.contains(c.name)) {
          ASSIGN_OR_RETURN(auto data, source.column(table.name, c.name));
          columns.push_back(duckdb_column(c, std::move(data)));
        } else {
          columns.push_back({.name = c.name, .type = c.type});
        }
      }
      ASSIGN_OR_RETURN(const uint64_t rows, source.rows(table.name));
      RETURN_IF_ERROR(duckdb_->load(table.name, rows, columns));
    }
    return {};
  }

  Result<void> query(Session& session, const NamedSource& statement, Row& row) {
    ASSIGN_OR_RETURN(const Session::Outcome first, session.run(statement, flags_, true));
    const runtime::RunReport& report = first.reports.at(0);
    const Timings& t = report.timings;
    auto ms = [](uint64_t ns) { return static_cast<double>(ns) * 1e-6; };
    row.planning = ms(t.exclusive_ns(Phase::planner) + t.exclusive_ns(Phase::translate));
    row.compile = ms(t.total_ns(PhaseGroup::compile)) - row.planning;
    row.fallbacks = report.fallbacks.size();
    for (const runtime::KernelReport& k : report.kernels)
      ++(k.kind == "library" ? row.library : row.kernels);
    ASSIGN_OR_RETURN(const runtime::Grid grid,
                     runtime::sql_grid(first.results.at(0), first.columns));

    using Clock = std::chrono::steady_clock;
    std::vector<double> cached, duckdb;
    Duckdb::Answer answer;
    for (unsigned i = 0; i < warm_up_ + runs_; ++i) {
      const auto start = Clock::now();
      RETURN_IF_ERROR(session.run(statement, flags_, false));
      if (i >= warm_up_)
        cached.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
    }
    const auto& [text, begin, end] = *statement.sql;
    for (unsigned i = 0; i < warm_up_ + runs_; ++i) {
      ASSIGN_OR_RETURN(answer, duckdb_->run(text->substr(begin, end - begin)));
      if (i >= warm_up_) duckdb.push_back(answer.ms);
    }
    row.cached = spread_of(std::move(cached));
    row.duckdb = spread_of(std::move(duckdb));
    uint64_t reordered = 0;
    const std::string differs = difference(grid, {answer.names, answer.rows}, reordered);
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
        "| query | right | kernels | fallbacks | planning | compile | cached | DuckDB, {} threads "
        "|\n"
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n",
        threads_);
    size_t right = 0, ratios = 0;
    double planning = 0, compile = 0, cached = 0, duckdb = 0, logs = 0;
    for (const Row& r : rows) {
      right += r.agrees;
      out += fmt::format("| {} | {} | {} + {} | {} | {:.2f} | {:.2f} | {:.3f} | {:.3f} |\n",
                         r.query, r.right, r.kernels, r.library, r.fallbacks, r.planning, r.compile,
                         r.cached.median, r.duckdb.median);
      planning += r.planning, compile += r.compile, cached += r.cached.median,
          duckdb += r.duckdb.median;
      if (r.cached.median > 0 && r.duckdb.median > 0)
        logs += std::log(r.duckdb.median / r.cached.median), ++ratios;
    }
    out += fmt::format("| sum | {} of {} |  |  | {:.2f} | {:.2f} | {:.3f} | {:.3f} |\n", right,
                       rows.size(), planning, compile, cached, duckdb);
    if (ratios)
      out += fmt::format("\nDuckDB / cached, geometric mean: {:.2f}\n",
                         std::exp(logs / static_cast<double>(ratios)));
    return out;
  }

  std::string json(const std::vector<Row>& rows, const Samples::Facts& facts) const {
    std::string out = "{\"facts\":{";
    for (size_t i = 0; i < facts.size(); ++i)
      out += fmt::format("{}{}:{}", i ? "," : "", json_string(facts[i].first),
                         json_string(facts[i].second));
    out += "},\"queries\":[";
    for (size_t i = 0; i < rows.size(); ++i) {
      const Row& r = rows[i];
      out += fmt::format(
          "{}\n{{\"query\":{},\"right\":{},\"answer\":{},\"kernels\":{},\"library_kernels\":{},"
          "\"fallbacks\":{},"
          "\"planning_ms\":{},\"compile_ms\":{},\"cached_ms\":{},\"duckdb_ms\":{},\"duckdb_"
          "threads\":{}}}",
          i ? "," : "", json_string(r.query), r.agrees, json_string(r.right), r.kernels, r.library,
          r.fallbacks, r.planning, r.compile, r.cached.median, r.duckdb.median, threads_);
    }
    return out + "\n]}\n";
  }

  Flags flags_;
  std::string queries_;
  unsigned warm_up_ = 1, runs_ = 5, threads_ = 1;
  std::unique_ptr<Duckdb> duckdb_;
};

}  // namespace

std::unique_ptr<Command> bench_sql_command(CLI::App& bench) {
  return std::make_unique<BenchSqlCommand>(bench);
}

}  // namespace rndn::tools
