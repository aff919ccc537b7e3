// How the benchmarks of papers measure: sides of a comparison take turns, run by run, so that a
// drift of the clocks meets all of them; of each the median counts, and the lowest and highest are
// told. Every answer is checked against the host's before its time counts, and again after the last
// run. Every run has a time limit. A case that fails says why in its rows, and the others are measured.
//
//   ASSIGN_OR_RETURN(auto harness, Harness::open(DeviceChoice.., settings));
//   ASSIGN_OR_RETURN(const Compared compared, harness->compare(source, sides, check));
//   compared.sides[0].ms, compared.wrong
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "libraries/base/report/progress.h"
#include "libraries/operators/api.h"
#include "tools/bench_samples.h"
#include "tools/papers/figures.h"
#include "tools/papers/meter.h"
#include "tools/rndn.h"
#include "tools/session.h"

namespace rndn::tools::papers {

// What all commands of papers are told.
struct Settings {
  Flags flags;  // --device, --arch, --timeout, -o
  unsigned warm_up = 1, runs = 5;
  std::vector<std::string> figures;  // --figures; none: all
  bool wants(std::string_view figure) const;
};
// Declares them. `figures`: what there is to choose from.
void add_paper_flags(CLI::App& command, Settings& settings, const std::vector<std::string>& figures);

// The answer of a program as the host has it: a vector of numbers.
struct Answer {
  std::vector<int64_t> integers;
  std::vector<double> floats;  // to 1e-12
  bool is_float = false;
  static Answer of(std::vector<int64_t> values) { return {.integers = std::move(values)}; }
  static Answer of(std::vector<double> values) { return {.floats = std::move(values), .is_float = true}; }
};
// The first difference as a sentence; empty: there is none.
std::string difference(const std::vector<data::Value>& results, const std::vector<Answer>& expected);

struct Side {
  NamedSource program;
  Flags flags;
  std::string name;  // "fused": of what it gets wrong
};
// Of one run.
struct Measured {
  Spread ms;  // of all kernels, by the device's clock
  std::vector<runtime::KernelReport> kernels;
  uint64_t launches = 0, registers = 0;  // registers: the most of a kernel
  uint64_t warps = 0;                    // resident on a multiprocessor: the fewest of a kernel
  uint64_t floor_bytes = 0;              // that kernels must move at least
  uint64_t sectors_bytes = 0;            // that they moved: the simulator's count
  uint64_t memory_bytes = 0;             // of the device beside the columns, at most at once
  std::string wrong;                     // the first difference, or what it left to the host
};
// A side that sends its columns in every run.
struct Way {
  Session* session = nullptr;  // Harness::whole_session
  NamedSource program;
  Flags flags;
  std::string name;
  uint64_t range_rows = 0;  // EngineOptions::range_rows
};
// Of one run.
struct Whole {
  Spread ms;                  // from its begin to its results, by the host's clock
  Spread kernels_ms;          // of all kernels, by the device's
  uint64_t sent_bytes = 0;    // of columns
  uint64_t memory_bytes = 0;  // of the device, at most at once, with what other sessions have
  std::string wrong;          // the first difference
};
struct Wholes {
  std::vector<Whole> ways;
  std::vector<Spread> others;
  std::string wrong;   // of all ways, each after its name
  std::string failed;  // why they were not measured to their end
};
struct Compared {
  std::vector<Measured> sides;
  std::vector<Spread> others;
  uint64_t sent_bytes = 0;  // Harness::sent_bytes, where it was asked
  std::string wrong;        // of all sides, each after its name
  std::string failed;       // why it was not measured to its end
};

class Harness {
 public:
  // The harness owns the device: sessions, operators and memory made with it must be gone before it
  // is.
  static Result<std::unique_ptr<Harness>> open(DeviceChoice choice, Settings settings);

  const Settings& settings() const { return settings_; }
  const device::Info& info() const { return device_->info(); }
  Meter& device() { return *meter_; }
  bool has_clock() const { return !info().is_simulator; }
  // First in every table.
  Figures::Facts facts(const std::string& command, const std::string& data) const;

  // Each body once to warm up, or as often as is wanted, then in turns; what it returns is the time
  // in milliseconds. Without a clock nothing is kept of it.
  using Body = std::function<Result<double>()>;
  // Within the time limit of one run.
  template <class F>
  auto limited(F&& body) -> decltype(body()) {
    const CancelToken token(settings_.flags.limits, CancelToken::current());
    const CancelScope scope(token);
    return errors_of(body);
  }
  Result<std::vector<Spread>> in_turns(std::span<const Body> bodies);

  // Milliseconds from before the work to behind it, on the device.
  Result<double> timed(const std::function<Result<void>()>& work);
  // The library's operators, as an engine has them.
  Result<std::unique_ptr<operators::Operators>> operators();

  // Programs or queries, over the same tables. Fails as keep_failure does.
  using Check = std::function<Result<std::string>(const Session::Outcome&)>;
  // others: what is timed in the same turns.
  Result<Compared> compare(Session& session, std::span<const Side> sides, const Check& check,
                           std::span<const Body> others = {});
  // What a run sends to the device that has nothing: the columns, as they lie there, and little
  // more.
  Result<uint64_t> sent_bytes(Session& session, Side side);
  std::unique_ptr<Session> session(std::shared_ptr<data::Source> source);

  // The same from columns on the host to results there. Of each turn the second of two runs counts, so that nothing is
  // compiled in it. Fails as keep_failure does.
  Result<Wholes> whole_runs(std::span<const Way> ways, const Check& check, std::span<const Body> others = {});
  // With the device's second stream, and with so much of its memory.
  Result<std::unique_ptr<Session>> whole_session(std::shared_ptr<data::Source> source, uint64_t memory = UINT64_MAX);

  // Bytes per second, 0 without a clock: of a copy on the device, read and written, and of one from
  // pinned memory of the host.
  Result<double> copy_speed();
  Result<double> transfer_speed();

 private:
  explicit Harness(DeviceChoice choice, Settings settings)
      : choice_(std::move(choice)), settings_(std::move(settings)) {}
  Result<void> compare_to(Compared& out, Session& session, std::span<const Side> sides, const Check& check,
                          std::span<const Body> others);

  DeviceChoice choice_;
  Settings settings_;
  device::Device* device_ = nullptr;
  std::unique_ptr<Meter> meter_;
};

// Why a case failed, for its rows. An error that ends the whole run is passed on: the device is
// lost, or the user has ended it.
Result<void> keep_failure(const Result<void>& done, std::string& failed);
// The same of several cases, which have one row then.
Result<void> keep_failure(const Result<void>& done, Figures& figures, FigureRow row);
// What is wrong of several, after the name of each; empty: nothing.
std::string named(const std::vector<std::pair<std::string, std::string>>& wrong);

// Fused as the product fuses, and a kernel per statement.
Flags fused(Flags flags);
Flags unfused(Flags flags);

// The end of a command: writes the table, of what was measured where `done` is an error. Exit code
// 70 where an answer was wrong, else 3 where something failed.
Result<int> finish(const Figures& figures, const Settings& settings, const Figures::Facts& facts,
                   const Result<void>& done);

}  // namespace rndn::tools::papers
