// The table of a paper: rows of what the paper measures, our figures and its ratio beside them.
//
//   Figures figures({"kernel-weaver", "unfused", "fused"});
//   figures.add({.figure = "Fig 16", .what = "a: selections", .rows = n, .base = .., .ours = .., .unit = "ms",
//                .paper = 2.89, .goal = 2.89});
//   figures.write(folder, facts);       // kernel-weaver.tsv and kernel-weaver.json; "-": the former to stdout
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "libraries/base/errors/result.h"
#include "tools/bench_samples.h"

namespace rndn::tools::papers {

// What the two columns are compared by.
enum class Ratio : uint8_t {
  speedup,  // base / ours: at least the goal
  speed,    // the same in percent: at least
  share,    // ours / base in percent: at most
  error,    // (ours - base) / ours in percent, of a prediction (base): its size at most
};

struct FigureRow {
  std::string figure, what;
  uint64_t rows = 0;  // of the largest input
  Spread base, ours;  // count 0: not measured, as times on the simulator, whose clock is its own
  std::string unit;   // of both
  Ratio by = Ratio::speedup;
  std::string paper = "-";     // the paper's ratio, or what it says in its place
  std::optional<double> goal;  // of the ratio
  std::string wrong;           // what differs from the host's answer; empty: nothing
  std::string failed;          // why it was not measured; empty: it was
  std::string left_out = {};   // why it is not to be measured; empty: it is

  std::optional<double> ratio() const;
  bool meets_goal() const;  // where both are known; else false
};

// A figure that repeats exactly: launches, bytes, registers.
Spread exactly(double value);

class Figures {
 public:
  struct Names {
    std::string command, base, ours;  // "kernel-weaver", and the heads of the two columns
  };
  using Facts = std::vector<std::pair<std::string, std::string>>;
  explicit Figures(Names names) : names_(std::move(names)) {}

  void add(FigureRow row) { rows_.push_back(std::move(row)); }
  const std::vector<FigureRow>& rows() const { return rows_; }
  bool all_right() const;     // nothing is wrong
  bool all_measured() const;  // nothing has failed

  std::string tsv(const Facts& facts) const;
  std::string json(const Facts& facts) const;
  // Fails before anything is measured where the files cannot be written.
  Result<void> check_folder(const std::string& folder) const;
  Result<void> write(const std::string& folder, const Facts& facts) const;

 private:
  std::string path(const std::string& folder, const char* end) const;

  Names names_;
  std::vector<FigureRow> rows_;
};

}  // namespace rndn::tools::papers
