// What reading Parquet files costs: all columns of each file of a folder, by rndn's reader and by
// DuckDB's through rndn, in turn; the files are in the page cache after a first round, which is not
// counted. Shown are the bytes of the columns as they lie in memory (codes, where a text has a
// dictionary) and, of each side, medians: time by the clock, time of all cores, and bytes per
// second by the clock.
//
// usage: bench_files DIR [ROUNDS] [rndn|duckdb]          one side alone: for a profiler
//        bench_files DIR ROUNDS columns     rndn's reader, column by column: time of all cores per
//                                           value, the least of the rounds
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

#include "libraries/base/system/parallel.h"
#include "frontend/types.h"
#include "runtime/data/sources.h"
#include "runtime/files/files.h"

namespace {

using namespace rndn;
namespace fs = std::filesystem;

struct Read {
  double seconds = 0, of_cores = 0;
  uint64_t bytes = 0, rows = 0;
};

double processor_seconds() {
  rusage used;
  getrusage(RUSAGE_SELF, &used);
  auto seconds = [](const timeval& t) { return double(t.tv_sec) + double(t.tv_usec) / 1e6; };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

// `column`: that one alone; empty: all.
Result<Read> read(const std::string& path, bool by_duckdb, const std::string& column = {}) {
  const data::SourceOptions options{.progress = false, .formats = files::formats()};
  const auto begin = std::chrono::steady_clock::now();
  const double used = processor_seconds();
  auto source = by_duckdb ? files::open_call("read_parquet", "'" + path + "'", "t", options)
                          : data::open_table("t", path, options);
  if (!source) return source.error();
  std::vector<std::string> names;
  for (const auto& c : (*source)->schema().tables[0].columns)
    if (column.empty() || c.name == column) names.push_back(c.name);
  ASSIGN_OR_RETURN(const auto columns, (*source)->columns("t", names));
  Read out;
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  out.of_cores = processor_seconds() - used;
  for (const auto& c : columns) {
    out.rows = c->rows;
    out.bytes +=
        c->data->size() + (c->pad ? c->pad->size() : 0) + (c->validity ? c->validity->size() : 0);
  }
  return out;
}

int by_columns(const std::vector<std::string>& paths, int rounds) {
  fmt::print("{:20} {:20} {:>8} {:>9} {:>9} {:>9}\n", "file", "column", "type", "values", "MB",
             "ns/value");
  for (const std::string& path : paths) {
    auto source = data::open_table("t", path, {.progress = false, .formats = files::formats()});
    if (!source) return fmt::print(stderr, "bench_files: {}\n", source.error().message), 1;
    for (const auto& column : (*source)->schema().tables[0].columns) {
      Read least;
      for (int round = 0; round <= rounds; ++round) {
        auto done = read(path, false, column.name);
        if (!done) return fmt::print(stderr, "bench_files: {}\n", done.error().message), 1;
        if (round == 0 || done->of_cores < least.of_cores) least = *done;
      }
      fmt::print("{:20} {:20} {:>8} {:9} {:9.1f} {:9.2f}\n", fs::path(path).filename().string(),
                 column.name, hir::basic_type_name(column.type), least.rows,
                 static_cast<double>(least.bytes) / 1e6,
                 least.of_cores * 1e9 / static_cast<double>(std::max<uint64_t>(1, least.rows)));
    }
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string_view only = count > 3 ? arguments[3] : "";
  if (count < 2 || count > 4 ||
      (count == 4 && only != "rndn" && only != "duckdb" && only != "columns")) {
    std::fputs("usage: bench_files DIR [ROUNDS] [rndn|duckdb|columns]\n", stderr);
    return 2;
  }
  const int rounds = count > 2 ? std::max(1, std::atoi(arguments[2])) : 3;
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(arguments[1], error))
    if (entry.path().extension() == ".parquet") paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  if (only == "columns") return by_columns(paths, rounds);
  fmt::print("{} cores\n{:20} {:>9} | {:>9} {:>9} {:>6} | {:>9} {:>9} {:>6}\n", hardware_threads(),
             "file", "MB", "rndn ms", "cores ms", "GB/s", "DuckDB ms", "cores ms", "GB/s");
  auto show = [](const std::string& name, const Read* sides) {
    const auto bytes = static_cast<double>(std::max(sides[0].bytes, sides[1].bytes));
    fmt::print("{:20} {:9.1f}", name, bytes / 1e6);
    for (int side = 0; side < 2; ++side) {
      if (sides[side].seconds == 0)
        fmt::print(" | {:>9} {:>9} {:>6}", "", "", "");
      else
        fmt::print(" | {:9.1f} {:9.1f} {:6.2f}", sides[side].seconds * 1e3,
                   sides[side].of_cores * 1e3, bytes / sides[side].seconds / 1e9);
    }
    fmt::print("\n");
  };
  Read sums[2];
  for (const std::string& path : paths) {
    std::vector<Read> reads[2];
    for (int round = 0; round <= rounds; ++round)
      for (const bool by_duckdb : {false, true}) {
        if (only == (by_duckdb ? "rndn" : "duckdb")) continue;
        auto done = read(path, by_duckdb);
        if (!done) {
          fmt::print(stderr, "bench_files: {}\n", done.error().message);
          return done.error().exit_code();
        }
        if (round > 0) reads[by_duckdb].push_back(*done);
      }
    Read medians[2];
    for (int side = 0; side < 2; ++side) {
      if (reads[side].empty()) continue;
      auto median = [&](double Read::* part) {
        std::vector<double> values;
        for (const Read& r : reads[side]) values.push_back(r.*part);
        std::sort(values.begin(), values.end());
        return values[values.size() / 2];
      };
      medians[side] = {median(&Read::seconds), median(&Read::of_cores), reads[side][0].bytes};
      sums[side].seconds += medians[side].seconds;
      sums[side].of_cores += medians[side].of_cores;
      sums[side].bytes += medians[side].bytes;
    }
    show(fs::path(path).filename().string(), medians);
  }
  if (!paths.empty()) show("all", sums);
  return 0;
}
