// The cost model: its formulas, its file, and that what it says of kernels' work is what the simulator counts of them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "runtime/data/tables.h"
#include "runtime/device/forwarding_device.h"
#include "runtime/engine.h"
#include "runtime/model/cost.h"
#include "runtime/session/decisions.h"
#include "runtime/simulator/simulator_device.h"
#include "tools/model/model.h"
#include "tools/rndn.h"

namespace rndn::test::model_test {
namespace {

using namespace model;
using ::testing::HasSubstr;

// A device of round numbers.
Calibration made_up() {
  Calibration c;
  c.facts = {{"device", "none \"of\" these"}};
  const auto set = [&](Rate r, std::vector<std::pair<double, double>> points) {
    for (const auto& [at, value] : points) c.of(r).push_back({at, value, value * 0.9, value * 1.1});
  };
  set(Rate::read, {{1e6, 1e12}, {1e9, 4e12}});  // a million bytes in 1 us, 1e9 in 250 us
  set(Rate::copy, {{1e6, 1e12}});
  set(Rate::launch, {{0, 2000}});
  set(Rate::graph_node, {{0, 1000}});
  set(Rate::wait, {{0, 7000}});
  for (Rate r : {Rate::gather_1, Rate::gather_4, Rate::gather_8}) set(r, {{1e4, 1e13}, {1e8, 1e11}});
  set(Rate::add_global, {{1, 1e9}, {1e4, 1e11}});
  set(Rate::add_shared, {{1, 1e10}, {1e4, 1e12}});
  set(Rate::host_pinned, {{0, 5e10}});
  set(Rate::host_staged, {{0, 4e10}});
  set(Rate::unpack, {{8, 1e12}});
  set(Rate::issue, {{0, 1e13}});
  set(Rate::overlap, {{0, 0.15}});
  return c;
}

TEST(Model, SectorsOfWhatIsWanted) {
  EXPECT_DOUBLE_EQ(bytes_of(Work::Stream{1000, 32, 1}), 4000);
  EXPECT_DOUBLE_EQ(bytes_of(Work::Stream{1000, 12, 1}), 1500);
  EXPECT_DOUBLE_EQ(bytes_of(Work::Stream{1000, 0, 1}), 0);
  EXPECT_DOUBLE_EQ(bytes_of(Work::Stream{1000, 64, 0}), 0);
  // Of four elements a sector: 1 - (1/2)^4 of them.
  EXPECT_DOUBLE_EQ(bytes_of(Work::Stream{1000, 64, 0.5}), 8000 * 15.0 / 16);
  EXPECT_DOUBLE_EQ(bytes_of(Work::Stream{1000, 128, 0.5}), 16000 * 3.0 / 4);
}

TEST(Model, TransfersByHand) {
  Calibration c = made_up();  // copies at 5e10
  const Work whole{.name = "a", .streams = {{1e6, 32, 1, 0}, {1e6, 64, 1, 1}}};
  const Work few{.name = "b", .streams = {{1e6, 32, 1e-6, 2}}, .gathers = {{1000, 1e6, 4, 3}, {1000, 1e6, 4, 0}}};
  const Work works[] = {whole, few};
  // All of it: at 0.95 of the speed of copies, where nothing was measured; and 1,000 sectors more, at 0.4.
  const Transfer all = transfer_of(works, 0, 4e6, c);
  EXPECT_DOUBLE_EQ(all.sent_ns, 4e6 / 5e10 * 1e9);
  EXPECT_DOUBLE_EQ(all.read_bytes, 4e6 + 32e3);
  EXPECT_NEAR(all.read_ns, all.sent_ns / 0.95 + 32e3 / (0.4 * 5e10) * 1e9, 1e-6);
  EXPECT_FALSE(all.is_better_read());
  // One sector, whatever the elements.
  const Transfer one = transfer_of(works, 2, 4e6, c);
  EXPECT_NEAR(one.read_bytes, 32, 1e-3);
  EXPECT_NEAR(one.read_ns, 32 / (0.4 * 5e10) * 1e9, 1e-4);
  EXPECT_TRUE(one.is_better_read());
  EXPECT_DOUBLE_EQ(transfer_of(works, 3, 4e6, c).read_bytes, 32e3);
  EXPECT_EQ(transfer_of(works, 4, 4e6, c).read_bytes, 0) << "nothing reads it";
  // As it was measured: twice as fast in pieces as by the sector.
  c.of(Rate::host_mapped) = {{32, 2e10, 2e10, 2e10}, {1024, 4e10, 4e10, 4e10}};
  EXPECT_NEAR(transfer_of(works, 0, 4e6, c).read_ns, 4e6 / 4e10 * 1e9 + 32e3 / 2e10 * 1e9, 1e-6);
  // Half of the sectors of a piece: between both, by the logarithm.
  const Work half{.name = "c", .streams = {{1e6, 256, 0.5, 0}}};
  EXPECT_NEAR(transfer_of({&half, 1}, 0, 32e6, c).read_ns, 16e6 / (2e10 * std::pow(2.0, 4.0 / 5)) * 1e9, 1e-3);
}

// A file from before kernels' reads were measured.
TEST(Model, ReadsOfTheHostMayLack) {
  Calibration c = made_up();
  EXPECT_TRUE(parse_calibration(to_json(c), "old.json"));
  c.of(Rate::host_mapped) = {{32, 2e10, 1e10, 3e10}};
  const auto read = parse_calibration(to_json(c), "new.json");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->value(Rate::host_mapped, 64), 2e10);
  c.of(Rate::host_pinned).clear();
  EXPECT_FALSE(parse_calibration(to_json(c), "cut.json"));
}

TEST(Model, TimesByHand) {
  const Calibration c = made_up();
  Work w{.name = "w", .rows = 1e6};
  w.streams = {{250000, 32, 1}};
  Cost cost = cost_of(w, c);
  EXPECT_DOUBLE_EQ(cost.stream_ns, 1000);  // a million bytes
  EXPECT_DOUBLE_EQ(cost.ns, 3000);
  EXPECT_EQ(cost.bound, "launch");
  w.streams = {{500'500'000 / 4, 32, 1}};  // half of the way from 1e6 to 1e9: of time
  EXPECT_NEAR(cost_of(w, c).stream_ns, (1000 + 250000) / 2.0, 1);
  w.streams = {{500'000'000, 32, 1}};
  EXPECT_DOUBLE_EQ(cost_of(w, c).stream_ns, 500000);  // beyond the last point, at its bandwidth
  w.gathers = {{1e6, 1e6, 4}};                        // half of the way of the logarithms: 1e12 a second
  w.adds = {{1e5, 100, false}, {1e5, 100, true}};     // 1e10 and 1e11 a second
  w.instructions = 4e8;
  cost = cost_of(w, c);
  EXPECT_NEAR(cost.gather_ns, 1000, 1e-6);
  EXPECT_NEAR(cost.add_ns, 10000 + 1000, 1e-6);
  EXPECT_DOUBLE_EQ(cost.issue_ns, 40000);
  EXPECT_EQ(cost.bound, "memory");
  EXPECT_NEAR(cost.ns, 500000 + 0.15 * (11000 + 40000) + 2000, 1e-6);
  w.instructions = 4e10;
  EXPECT_EQ(cost_of(w, c).bound, "instructions");
  EXPECT_NEAR(cost_of(w, c).ns, 4e6 + 0.15 * (11000 + 500000) + 2000, 1e-6);
  // What is read in order and at computed places comes through one cache: neither alone takes as long as both.
  const double rate = c.value(Rate::gather_4, 4 << 20);
  Work both_ways{.name = "both", .rows = 1e8, .streams = {{250'000'000, 32, 1}}, .gathers = {{1e8, 4 << 20, 4}}};
  cost = cost_of(both_ways, c);
  EXPECT_EQ(cost.bound, "second cache");
  EXPECT_NEAR(cost.ns, (1e9 / 32 + 1e8) / rate * 1e9 + 2000, 1e-3);
  EXPECT_GT(cost.ns - 2000, std::max(cost.stream_ns, cost.gather_ns));
  both_ways.gathers = {{1e8, 1e4, 4}};  // a table in the first cache: a twentieth of them comes from the second
  EXPECT_EQ(cost_of(both_ways, c).bound, "memory");
  const Work operator_of_the_library{.name = "sort", .is_kernel = false, .rows = 1e9};
  const Work both[] = {operator_of_the_library, w};
  EXPECT_DOUBLE_EQ(kernels_ns(both, c), cost_of(w, c).ns);
  EXPECT_DOUBLE_EQ(run_ns(both, c), cost_of(w, c).ns - 2000 + 1000 + 7000);
}

TEST(Model, MoreIsNeverCheaper) {
  Calibration c = made_up();
  c.of(Rate::read) = {
      {1e3, 1e10, 1e10, 1e10}, {1e5, 9e12, 9e12, 9e12}, {1e6, 1e12, 1e12, 1e12}, {2e6, 8e12, 8e12, 8e12}};
  std::mt19937_64 random(7);
  const auto any = [&](double most) { return std::uniform_real_distribution<double>(0, most)(random); };
  for (int k = 0; k < 2000; ++k) {
    const double bits = 1 + std::floor(any(64)), alive = any(1), per_row = any(4), table = 1e3 + any(1e9),
                 places = 1 + any(1e5);
    const auto work = [&](double rows, double share) {
      Work w{.name = "w", .rows = rows};
      w.streams = {{rows, bits, share}, {rows, 8, 1}};
      w.gathers = {{rows * share, table, 4}};
      w.adds = {{rows * per_row, places, true}};
      w.instructions = 20 * rows;
      return cost_of(w, c).ns;
    };
    const double rows = std::exp(any(20)), more = rows * (1 + any(10));
    EXPECT_LE(work(rows, alive), work(more, alive) * (1 + 1e-12)) << rows << " " << more;
    EXPECT_LE(work(rows, alive * any(1)), work(rows, alive) * (1 + 1e-12)) << alive;
  }
}

TEST(Model, ItsFileIsReadAsItWasWritten) {
  const Calibration c = made_up();
  const auto read = parse_calibration(to_json(c), "cal.json");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->facts, c.facts);
  EXPECT_EQ(to_json(*read), to_json(c));
}

TEST(Model, DamagedFilesAreTold) {
  const std::string good = to_json(made_up());
  const auto said = [](const std::string& text) {
    const auto read = parse_calibration(text, "cal.json");
    if (read) return std::string("nothing");
    EXPECT_EQ(read.error().fault, Fault::input);
    return read.error().message;
  };
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, text.npos) << from;
    return at == text.npos ? text : text.replace(at, from.size(), to);
  };
  EXPECT_THAT(said(""),
              HasSubstr("cal.json:1:1: expected the JSON that `rndn devices --calibrate` writes, found its end"));
  EXPECT_THAT(said("{\n \"form\": x"), HasSubstr("cal.json:2:10: expected"));
  EXPECT_THAT(said("[]"), HasSubstr("found none"));
  EXPECT_THAT(said(good.substr(0, good.size() / 2)), HasSubstr("cal.json:"));
  EXPECT_THAT(said(changed("calibration 1", "calibration 9")),
              HasSubstr("expected \"form\": \"rndn calibration 1\", as `rndn devices --calibrate` writes it, found "
                        "\"rndn calibration 9\""));
  EXPECT_THAT(said(changed("\"wait\"", "\"weight\"")), HasSubstr("`wait`: expected points of it, found none"));
  EXPECT_THAT(said(changed("\"at\": 1000000000", "\"at\": 1")),
              HasSubstr("`read`: expected ascending bytes, found 1 behind 1000000"));
  EXPECT_THAT(said(changed("\"at\": 1000000,", "\"at\": 0,")), HasSubstr("expected bytes above 0, found 0"));
  EXPECT_THAT(said(changed("\"median\": 2000", "\"median\": -2000")),
              HasSubstr("`launch`: expected a median above 0, found -2000"));
  EXPECT_THAT(said(changed("\"median\": 2000", "\"median\": \"2000\"")),
              HasSubstr("expected a number as `median`, found \"2000\""));
  EXPECT_THAT(said(changed("\"low\": 1800", "\"low\": 2800")),
              HasSubstr("expected low <= median <= high, found 2800, 2000"));
  EXPECT_THAT(said(changed("\"median\": 0.15", "\"median\": 1.5")),
              HasSubstr("`overlap`: expected a share of at most 1, found 1.5"));
}

TEST(Model, CalibrationMeasuresEveryRow) {
  for (const char* target : {"sm_61", "sm_90"}) {
    auto device = runtime::open_simulator(target);
    ASSERT_TRUE(device);
    const auto c = tools::calibrate(**device);
    ASSERT_TRUE(c) << c.error().message;
    for (const RateRow& row : rate_rows) EXPECT_EQ(c->of(row.rate).size() > 1, !row.by.empty()) << row.name;
    EXPECT_EQ(c->of(Rate::add_global).size(), 4u);
    EXPECT_EQ(c->of(Rate::add_global).front().at, 1);
    EXPECT_EQ(c->of(Rate::add_shared).back().at, 8192);
    const auto read = parse_calibration(to_json(*c), "cal.json");
    EXPECT_TRUE(read) << read.error().message;
  }
}

// What launches of each kernel did.
class Counter final : public device::ForwardingDevice {
 public:
  struct Counts {
    double bytes = 0, instructions = 0, launches = 0;
  };
  explicit Counter(device::Device& to) : ForwardingDevice(to) {}
  Result<device::KernelHandle> find_kernel(device::ModuleHandle m, const std::string& name) override {
    auto found = to_.find_kernel(m, name);
    if (found) names_[*found] = name;
    return found;
  }
  Result<void> launch(device::KernelHandle k, device::Dim3 grid, device::Dim3 block, uint32_t shared,
                      std::span<const std::byte> parameters) override {
    RETURN_IF_ERROR(to_.launch(k, grid, block, shared, parameters));
    const device::LaunchCounters c = to_.last_launch();
    Counts& of = counts[names_[k]];
    of.bytes += 32.0 * static_cast<double>(c.load_sectors + c.store_sectors);
    of.instructions += 32.0 * static_cast<double>(c.warp_instructions);
    ++of.launches;
    return {};
  }
  std::map<std::string, Counts> counts;

 private:
  std::map<device::KernelHandle, std::string> names_;
};

struct Pair {
  std::string kernel;
  Work work;
  Counter::Counts counted;
  // With the sectors that the gathers of a warp touch: each one of its own, but for those that meet in a small table.
  double bytes() const {
    double all = bytes_of(work);
    const auto scattered = [&](double count, double table_bytes) {
      const double sectors = std::max(1.0, table_bytes / 32), of_warp = 32 * count / std::max(1.0, work.rows);
      return work.rows / 32 * sectors * (1 - std::pow(1 - 1 / sectors, of_warp)) * 32;
    };
    for (const Work::Gather& g : work.gathers) all += scattered(g.count, g.table_bytes);
    for (const Work::Add& a : work.adds) all += a.is_shared ? 0 : scattered(a.count, 4 * a.places);
    return all;
  }
};

// Every kernel of the program that was predicted and launched once.
std::vector<Pair> pairs_of(const std::string& name, const std::string& text,
                           const std::shared_ptr<data::Source>& source) {
  auto opened = runtime::open_simulator("sm_90");
  EXPECT_TRUE(opened);
  Counter device(**opened);
  const data::SourceTables tables(source);
  runtime::Engine engine(device, tables);
  SourceManager sources;
  DiagnosticSink sink;
  Timings timings;
  runtime::CompileOptions options;
  options.notes_work = true;
  options.target = "sm_90";
  options.schema = &source->schema();
  runtime::DataChoices choices;
  options.forecast = [&](const runtime::Compiled& c) {
    data::prefetch(data::columns_read(c.outlined.program), tables);
    return engine.forecast(c, sources, {}, tables, &choices);
  };
  auto compiled = runtime::compile(sources.add(name, text), sources, options, sink, timings);
  EXPECT_TRUE(compiled) << name << render(sink, sources);
  if (!compiled) return {};
  compiled->options.forecast = nullptr;
  (void)engine.forecast(*compiled, sources, {}, tables, &choices);
  EXPECT_TRUE(device.counts.empty()) << "predicted before the first launch";
  auto plan = engine.plan(*compiled, sources, {}, timings);
  EXPECT_TRUE(plan);
  if (!plan) return {};
  auto ran = engine.run(**plan, timings);
  EXPECT_TRUE(ran) << (ran ? "" : ran.error().message);
  std::vector<Pair> out;
  if (&(*plan)->compiled() != &*compiled) return out;  // compiled again
  for (const Work& w : choices.work)
    if (const auto at = device.counts.find(w.name);
        w.is_kernel && at != device.counts.end() && at->second.launches == 1)
      out.push_back({name + " " + w.name, w, at->second});
  return out;
}

std::shared_ptr<data::Source> tables_of(const std::string& name) {
  auto opened = tools::open_data({.data = name}, {});
  EXPECT_TRUE(opened);
  return *opened;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

TEST(Model, WorkOfQueriesIsWhatTheSimulatorCounts) {
  std::vector<double> bytes, instructions;
  size_t kernels = 0;
  for (const char* scheme : {"tpch", "ssb"}) {
    const auto source = tables_of(fmt::format("{}:0.01", scheme));
    for (const tools::EmbeddedText& t : tools::embedded_texts()) {
      if (t.benchmark != scheme || t.kind.find("queries") == t.kind.npos || t.kind.find("joins") != t.kind.npos)
        continue;
      for (const Pair& p : pairs_of(std::string(t.name), std::string(t.text), source)) {
        ++kernels;
        if (p.work.rows < 10000) continue;  // of few rows most is beside the rows
        const double of_bytes = p.bytes() / p.counted.bytes,
                     of_instructions = p.work.instructions / p.counted.instructions;
        bytes.push_back(std::abs(std::log2(of_bytes)));
        instructions.push_back(std::abs(std::log2(of_instructions)));
        EXPECT_LT(bytes.back(), 2) << p.kernel << ": " << of_bytes << " of the bytes";
        EXPECT_LT(instructions.back(), 1.5) << p.kernel << ": " << of_instructions << " of the instructions";
      }
    }
  }
  EXPECT_GT(kernels, 150u);
  EXPECT_GT(bytes.size(), 38u) << "of many rows";
  EXPECT_LT(median(bytes), 0.2) << "13 % off";
  EXPECT_LT(median(instructions), 0.5) << "a third off";
}

TEST(Model, RegretIsTheChosenOverTheBest) {
  const std::span<const runtime::Decision> all = runtime::decisions();
  ASSERT_GT(all.size(), 1u);
  runtime::Weighed w;
  w.chosen.ns = 120;
  EXPECT_DOUBLE_EQ(w.regret(all[0]), 1) << "there is nothing else";
  EXPECT_FALSE(w.differs(all[0]));
  w.others.push_back({&all[0], &all[0].ways[0], {.ns = 150}});
  EXPECT_DOUBLE_EQ(w.regret(all[0]), 1);
  EXPECT_TRUE(w.differs(all[0]));
  EXPECT_EQ(w.chosen_way(all[0]), &all[0].ways[1]) << "the first that does the same";
  w.others.push_back({&all[0], &all[0].ways[1], {.ns = 100}});
  EXPECT_DOUBLE_EQ(w.regret(all[0]), 1.2);
  EXPECT_DOUBLE_EQ(w.regret(all[1]), 1) << "of another decision";
  for (const runtime::Way& way : all[1].ways) w.others.push_back({&all[1], &way, {.ns = 10}, false});
  EXPECT_DOUBLE_EQ(w.regret(all[1]), 1) << "of other operators";
  EXPECT_EQ(w.chosen_way(all[1]), nullptr) << "what was chosen is none of them all through";
}

}  // namespace
}  // namespace rndn::test::model_test
