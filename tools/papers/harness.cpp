#include "tools/papers/harness.h"

#include <CLI/CLI.hpp>
#include <cmath>

#include "assembler/assemble.h"
#include "assembler/isa/isa.h"
#include "libraries/base/report/version.h"
#include "libraries/base/system/parallel.h"
#include "libraries/operators/machine_code/code.h"
#include "tools/copy_speed.h"

namespace rndn::tools::papers {

bool Settings::wants(std::string_view figure) const {
  return figures.empty() || std::find(figures.begin(), figures.end(), figure) != figures.end();
}

void add_paper_flags(CLI::App& command, Settings& settings, const std::vector<std::string>& figures) {
  settings.flags.limits.seconds = 60;
  command
      .add_option("--figures", settings.figures,
                  "of " + fmt::format("{}", fmt::join(figures, ", ")) + " (default: all)")
      ->delimiter(',')
      ->check(CLI::IsMember(figures))
      ->type_name("LIST");
  command.add_option("--warm-up", settings.warm_up, "runs that do not count (default 1)")->check(CLI::Range(0u, 1000u));
  command.add_option("--runs", settings.runs, "runs that count (default 5)")->check(CLI::Range(1u, 1000u));
  command.add_option("--device", settings.flags.device, "auto, cuda[:N] or sim")->type_name("D");
  command.add_option("--arch", settings.flags.arch, "target of the simulator")->type_name("A");
  add_limit_flags(command, settings.flags);
  command.add_option("-o", settings.flags.output, "folder for the table, as .tsv and .json (default: .tsv on stdout)")
      ->type_name("DIR");
}

std::string difference(const std::vector<data::Value>& results, const std::vector<Answer>& expected) {
  if (results.size() != expected.size())
    return fmt::format("{} results in place of {}", results.size(), expected.size());
  for (size_t r = 0; r < results.size(); ++r) {
    const data::Value& got = results[r];
    const Answer& want = expected[r];
    const size_t n = want.is_float ? want.floats.size() : want.integers.size();
    if (!got.is_vector() || got.is_text_vector()) return fmt::format("result {} is no vector of numbers", r);
    if (got.size != n) return fmt::format("result {} has {} rows in place of {}", r, got.size, n);
    if ((got.type == hir::BasicType::f64) != want.is_float) return fmt::format("result {} is of another type", r);
    for (size_t i = 0; i < n; ++i) {
      if (want.is_float) {
        const double x = got.as<double>()[i], y = want.floats[i];
        if (!(std::abs(x - y) <= 1e-12 * std::abs(y)))
          return fmt::format("result {}, row {}: {} in place of {}", r, i, x, y);
        continue;
      }
      const bool is_wide = data::plain_width(got.type) == 8;
      const int64_t x = is_wide ? got.as<int64_t>()[i] : got.as<int32_t>()[i];
      if (x != want.integers[i]) return fmt::format("result {}, row {}: {} in place of {}", r, i, x, want.integers[i]);
    }
  }
  return "";
}

Result<std::unique_ptr<Harness>> Harness::open(DeviceChoice choice, Settings settings) {
  if (choice.is_cpu()) return usage_error("--device is auto, cuda or sim: the reference interpreter launches nothing");
  std::unique_ptr<Harness> harness(new Harness(std::move(choice), std::move(settings)));
  ASSIGN_OR_RETURN(harness->device_, harness->choice_.open());
  if (device::streams_of(*harness->device_))
    harness->meter_ = std::make_unique<device::WithStreams<Meter>>(*harness->device_);
  else
    harness->meter_ = std::make_unique<Meter>(*harness->device_);
  return harness;
}

Figures::Facts Harness::facts(const std::string& command, const std::string& data) const {
  return {{"rndn bench", command},
          {"device", fmt::format("{}, {}", info().name, info().target)},
          {"driver", info().driver.empty() ? "none" : info().driver},
          {"rndn", fmt::format("{} ({})", version(), commit())},
          {"host", fmt::format("{} cores", hardware_threads())},
          {"data", data},
          {"runs", fmt::format("{} after {} that do not count, sides in turns: {}", settings_.runs, settings_.warm_up,
                               settings_.runs < 5 ? "median (lowest to highest)"
                                                  : "median (lowest to highest), highest and lowest dropped before")}};
}

Result<std::vector<Spread>> Harness::in_turns(std::span<const Body> bodies) {
  std::vector<std::vector<double>> ms(bodies.size());
  for (unsigned i = 0; i < settings_.warm_up + settings_.runs; ++i)
    for (size_t b = 0; b < bodies.size(); ++b) {
      ASSIGN_OR_RETURN(const double took, limited(bodies[b]));
      if (i >= settings_.warm_up && has_clock()) ms[b].push_back(took);
    }
  std::vector<Spread> spreads;
  for (std::vector<double>& of : ms) spreads.push_back(spread_of(std::move(of)));
  return spreads;
}

Result<double> Harness::timed(const std::function<Result<void>()>& work) {
  RETURN_IF_ERROR(meter_->synchronize());
  ASSIGN_OR_RETURN(const uint32_t from, meter_->record_mark());
  RETURN_IF_ERROR(work());
  ASSIGN_OR_RETURN(const uint32_t to, meter_->record_mark());
  ASSIGN_OR_RETURN(const uint64_t ns, meter_->elapsed_ns(from, to));
  return static_cast<double>(ns) * 1e-6;
}

Result<std::unique_ptr<operators::Operators>> Harness::operators() {
  const isa::Target* const target = isa::find_target(info().target);
  if (!target) return world_error("{} is of a target that is not supported: {}", info().name, info().target);
  auto assemble = [target](const ptx::Module& module) -> Result<std::vector<std::byte>> {
    Timings timings;
    assembler::Options options;
    options.target = target;
    ASSIGN_OR_RETURN(assembler::Assembled made, assembler::assemble(module, options, timings));
    return std::move(made.cubin);
  };
  auto find = [target](std::string_view name) -> std::optional<operators::KernelCode> {
    const auto code = operators::find_code(target->name, name);
    if (!code) return std::nullopt;
    return operators::KernelCode{code->block_size, code->cubin};
  };
  return std::make_unique<operators::Operators>(*meter_, assemble, operators::Options{}, find);
}

std::unique_ptr<Session> Harness::session(std::shared_ptr<data::Source> source) {
  device::Device& metered = *meter_;
  DeviceChoice choice{runtime::DeviceChoice::of(std::make_unique<device::ForwardingDevice>(metered))};
  return std::make_unique<Session>(std::move(source), std::move(choice), "");
}

Result<std::unique_ptr<Session>> Harness::whole_session(std::shared_ptr<data::Source> source, uint64_t memory) {
  device::Device& metered = *meter_;
  std::unique_ptr<device::Device> device;
  if (device::streams_of(metered))
    device = std::make_unique<device::WithStreams<device::ForwardingDevice>>(metered);
  else
    device = std::make_unique<device::ForwardingDevice>(metered);
  DeviceChoice choice{runtime::DeviceChoice::of(std::move(device))};
  if (memory != UINT64_MAX) RETURN_IF_ERROR(choice.limit_memory(memory));
  return std::make_unique<Session>(std::move(source), std::move(choice), "");
}

Result<Wholes> Harness::whole_runs(std::span<const Way> ways, const Check& check, std::span<const Body> others) {
  Wholes out{.ways = std::vector<Whole>(ways.size()), .others = std::vector<Spread>(others.size())};
  std::vector<std::vector<double>> kernels(ways.size());
  std::vector<Body> bodies;
  for (size_t w = 0; w < ways.size(); ++w)
    bodies.push_back([&, w]() -> Result<double> {
      const Way& way = ways[w];
      Whole& whole = out.ways[w];
      Flags flags = way.flags;
      flags.no_cache = true, flags.repeat = 2;
      ASSIGN_OR_RETURN(runtime::RunOptions options, run_options(flags, true));
      options.engine.range_rows = way.range_rows;
      meter_->forget_peak();
      ASSIGN_OR_RETURN(const Session::Outcome outcome, way.session->runtime::Session::run(way.program, options));
      whole.memory_bytes = meter_->peak();
      ASSIGN_OR_RETURN(std::string differs, check(outcome));
      if (whole.wrong.empty()) whole.wrong = std::move(differs);
      const runtime::RunReport& run = outcome.reports.back();
      if (whole.wrong.empty() && !run.fallbacks.empty()) whole.wrong = "on the host: " + run.fallbacks[0];
      whole.sent_bytes = run.column_bytes;
      uint64_t ns = 0;
      for (const runtime::KernelReport& k : run.kernels) ns += k.ns;
      kernels[w].push_back(static_cast<double>(ns) * 1e-6);
      return static_cast<double>(run.timings.total_ns(PhaseGroup::execute)) * 1e-6;
    });
  bodies.insert(bodies.end(), others.begin(), others.end());
  const Result<void> done = errors_of([&]() -> Result<void> {
    ASSIGN_OR_RETURN(const std::vector<Spread> spreads, in_turns(bodies));
    for (size_t w = 0; w < ways.size(); ++w) {
      out.ways[w].ms = spreads[w];
      kernels[w].erase(kernels[w].begin(), kernels[w].begin() + settings_.warm_up);
      if (has_clock()) out.ways[w].kernels_ms = spread_of(std::move(kernels[w]));
    }
    out.others.assign(spreads.begin() + static_cast<std::ptrdiff_t>(ways.size()), spreads.end());
    return {};
  });
  std::vector<std::pair<std::string, std::string>> wrong;
  for (size_t w = 0; w < ways.size(); ++w) wrong.emplace_back(ways[w].name, out.ways[w].wrong);
  out.wrong = named(wrong);
  RETURN_IF_ERROR(keep_failure(done, out.failed));
  return out;
}

Result<uint64_t> Harness::sent_bytes(Session& session, Side side) {
  side.flags.no_cache = true;  // its columns leave the device after each run
  RETURN_IF_ERROR(session.run(side.program, side.flags, false));
  meter_->counts = {};
  RETURN_IF_ERROR(session.run(side.program, side.flags, false));
  return meter_->counts.sent;
}

Result<Compared> Harness::compare(Session& session, std::span<const Side> sides, const Check& check,
                                  std::span<const Body> others) {
  Compared out{.sides = std::vector<Measured>(sides.size()), .others = std::vector<Spread>(others.size())};
  const Result<void> done = errors_of([&] { return compare_to(out, session, sides, check, others); });
  std::vector<std::pair<std::string, std::string>> wrong;
  for (size_t s = 0; s < sides.size(); ++s) wrong.emplace_back(sides[s].name, out.sides[s].wrong);
  out.wrong = named(wrong);
  RETURN_IF_ERROR(keep_failure(done, out.failed));
  return out;
}

Result<void> Harness::compare_to(Compared& out, Session& session, std::span<const Side> sides, const Check& check,
                                 std::span<const Body> others) {
  auto checked = [&](Measured& m, const Session::Outcome& outcome) -> Result<void> {
    ASSIGN_OR_RETURN(std::string differs, check(outcome));
    if (m.wrong.empty()) m.wrong = std::move(differs);
    return {};
  };
  for (size_t s = 0; s < sides.size(); ++s) {
    const Side& side = sides[s];
    Measured& m = out.sides[s];
    meter_->counts = {};
    ASSIGN_OR_RETURN(const Session::Outcome first, session.run(side.program, side.flags, true));
    RETURN_IF_ERROR(checked(m, first));
    m.kernels = first.reports.at(0).kernels;
    if (m.wrong.empty() && first.fallbacks)
      m.wrong = fmt::format("on the host: {}", first.reports.at(0).fallbacks.at(0));
    m.sectors_bytes = meter_->counts.sectors * 32;
    m.warps = UINT64_MAX;
    for (const runtime::KernelReport& k : m.kernels) {
      m.launches += k.launches;
      m.registers = std::max<uint64_t>(m.registers, k.registers);
      if (const uint32_t warps = meter_->resident_warps(k.name)) m.warps = std::min<uint64_t>(m.warps, warps);
      m.floor_bytes += k.all_floor_bytes;
    }
    if (m.warps == UINT64_MAX) m.warps = 0;
    // Every buffer from the driver: what is in use is what is needed.
    Flags exact = side.flags;
    exact.alloc = "driver";
    const uint64_t before = meter_->in_use();
    meter_->forget_peak();
    RETURN_IF_ERROR(session.run(side.program, exact, false));
    m.memory_bytes = meter_->peak() - before;
  }
  std::vector<Body> bodies;
  std::vector<Session::Outcome> last(sides.size());
  for (size_t s = 0; s < sides.size(); ++s)
    bodies.push_back([&, s]() -> Result<double> {
      ASSIGN_OR_RETURN(last[s], session.run(sides[s].program, sides[s].flags, true));
      uint64_t ns = 0;
      for (const runtime::KernelReport& k : last[s].reports.at(0).kernels) ns += k.ns;
      return static_cast<double>(ns) * 1e-6;
    });
  bodies.insert(bodies.end(), others.begin(), others.end());
  ASSIGN_OR_RETURN(const std::vector<Spread> spreads, in_turns(bodies));
  out.others.assign(spreads.begin() + static_cast<std::ptrdiff_t>(sides.size()), spreads.end());
  for (size_t s = 0; s < sides.size(); ++s) {
    out.sides[s].ms = spreads[s];
    RETURN_IF_ERROR(checked(out.sides[s], last[s]));
  }
  return {};
}

Result<double> Harness::copy_speed() { return tools::copy_speed(*meter_); }

Result<double> Harness::transfer_speed() {
  constexpr uint64_t bytes = uint64_t{256} << 20;
  if (!has_clock()) return 0;
  ASSIGN_OR_RETURN(const device::Mapped from, meter_->allocate_mapped(bytes));
  ASSIGN_OR_RETURN(const device::Address to, meter_->allocate(bytes));
  ASSIGN_OR_RETURN(const double speed,
                   speed_of(*meter_, bytes, [&] { return meter_->copy_to_device(to, from.host, bytes); }));
  RETURN_IF_ERROR(meter_->free(to));
  RETURN_IF_ERROR(meter_->free_mapped(from));
  return speed;
}

Result<void> keep_failure(const Result<void>& done, std::string& failed) {
  if (done) return {};
  const Error& error = done.error();
  failed = error.message.empty() ? "the program does not compile" : error.message;
  if (error.cause == Cause::device_lost || error.fault == Fault::interrupted) return error;
  return {};
}

Result<void> keep_failure(const Result<void>& done, Figures& figures, FigureRow row) {
  if (done) return {};
  const Result<void> goes_on = keep_failure(done, row.failed);
  figures.add(std::move(row));
  return goes_on;
}

std::string named(const std::vector<std::pair<std::string, std::string>>& wrong) {
  std::string out;
  for (const auto& [name, what] : wrong)
    if (!what.empty()) out += fmt::format("{}{}: {}", out.empty() ? "" : "; ", name, what);
  return out;
}

Flags fused(Flags flags) { return flags; }
Flags unfused(Flags flags) {
  flags.outline = "none";
  flags.fuse_operators = "off";
  return flags;
}

Result<int> finish(const Figures& figures, const Settings& settings, const Figures::Facts& facts,
                   const Result<void>& done) {
  if (!done && figures.rows().empty()) return done.error();
  RETURN_IF_ERROR(figures.write(settings.flags.output, facts));
  for (const FigureRow& r : figures.rows()) {
    if (!r.wrong.empty()) note(fmt::format("{}, {}: wrong answer: {}", r.figure, r.what, r.wrong));
    if (!r.failed.empty()) note(fmt::format("{}, {}: failed: {}", r.figure, r.what, r.failed));
  }
  if (!figures.all_right()) {
    if (!done) note(done.error().message);
    return static_cast<int>(Fault::internal);
  }
  if (!done) return done.error();
  return figures.all_measured() ? 0 : static_cast<int>(Fault::world);
}

}  // namespace rndn::tools::papers
