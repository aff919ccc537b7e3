// Faults seeded into one run of a TPC-H query, and what --prove says of them: into its machine code,
// its PTX, its program, what is sent to the device, what kernels are launched with and what they
// store; of the operators' kernels also into both paths at once. Counted are those that change the
// answer. One that ends the run by itself, or changes nothing, is not. Where --prove then fails with an error it is noticed; where it
// runs out of time it is not, and counted apart. The reference interpreter gets
// a sample of what is not small, as it does of large tables. $RNDN_PROVE_FAULTS: how many that count, at scale
// $RNDN_PROVE_SCALE or 0.1 (else a few, at 0.002); with RNDN_RECORD=1 the table goes to docs/measurements/prove.tsv.
//
// $RNDN_PROVE_FOLDER keeps what came of each fault, which is not tried again, below it by the number of kinds of faults. There several processes may each try
// their share first, $RNDN_PROVE_SHARD=i/n; one without it makes the table (tools/prove-faults does all this), with $RNDN_PROVE_KEPT of what is kept
// alone, as where the others were stopped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <numeric>
#include <random>
#include <regex>
#include <sstream>
#include <tuple>

#include "assembler/assemble.h"
#include "assembler/cubin/cubin.h"
#include "assembler/isa/isa.h"
#include "libraries/base/system/cancel.h"
#include "libraries/base/system/files.h"
#include "ptx/parse.h"
#include "runtime/session/session.h"
#include "runtime/simulator/simulator_device.h"
#include "tests/session/wrong_device.h"
#include "tpch/source.h"

namespace rndn::runtime::prove_faults_test {
namespace {

using test::WrongDevice;
using Bytes = std::vector<std::byte>;

constexpr const char* target = "sm_86";

struct Query {
  std::string name, text;
  std::string right;                             // the answer
  size_t modules = 0, copies = 0, launches = 0;  // of a run
  std::vector<std::string> library;              // kernels of operators that it ran
  double seconds = 0;                            // that it took, the compiler among them
};

size_t below(std::mt19937& random, size_t n) { return n ? random() % n : 0; }

// A word of a random kernel with a fault of that kind; what it was, or nothing where there is no such word.
std::optional<Bytes> with_wrong_word(std::span<const std::byte> cubin, const std::string& kind, std::mt19937& random) {
  const isa::Target& t = *isa::find_target(target);
  auto image = cubin::read(Bytes(cubin.begin(), cubin.end()));
  if (!image || image->kernels.empty()) return std::nullopt;
  cubin::Kernel& kernel = image->kernels[below(random, image->kernels.size())];
  std::vector<isa::Located> located = isa::unpack(t, kernel.code);
  std::vector<isa::Word> words;
  for (const isa::Located& l : located) words.push_back(l.word);
  for (int attempt = 0; attempt < 200; ++attempt) {
    const size_t at = below(random, words.size());
    isa::Instruction i;
    if (!isa::decode(t, words[at], located[at].address, i)) continue;
    isa::Word changed = words[at];
    if (kind == "bit") {
      (random() % 2 ? changed.lo : changed.hi) ^= uint64_t{1} << below(random, random() % 2 ? 41 : 64);
      changed.hi =
          (changed.hi & ((uint64_t{1} << 41) - 1)) | (words[at].hi & ~((uint64_t{1} << 41) - 1));  // the schedule stays
      isa::Instruction other;
      if (changed == words[at] || !isa::decode(t, changed, located[at].address, other)) continue;
    } else {
      if (kind == "guard") {
        if (i.guard == isa::PT) continue;
        i.guard_negated = !i.guard_negated;
      } else {
        const size_t o = below(random, i.operand_count);
        isa::Operand& operand = i.operands[o];
        if (kind == "immediate") {
          if (operand.kind != isa::OperandKind::immediate) continue;
          operand.value += random() % 2 ? 1 : -1;
        } else {
          if (operand.kind != isa::OperandKind::gpr || operand.reg == isa::RZ) continue;
          operand.reg = operand.reg > 0 && random() % 2 ? operand.reg - 1 : operand.reg + 1;
        }
      }
      if (!isa::encode(t, i, located[at].address, changed) || changed == words[at]) continue;
    }
    words[at] = changed;
    kernel.code = isa::pack(t, words);
    return cubin::write(*image);
  }
  return std::nullopt;
}

// A line of the text with one of these words changed into its partner; else the text.
std::string with_other_word(std::string text, std::span<const std::pair<const char*, const char*>> words,
                            std::mt19937& random) {
  std::vector<std::pair<size_t, size_t>> places;
  for (size_t w = 0; w < words.size(); ++w)
    for (size_t at = text.find(words[w].first); at != text.npos; at = text.find(words[w].first, at + 1))
      places.push_back({at, w});
  if (places.empty()) return text;
  const auto [at, w] = places[below(random, places.size())];
  return text.replace(at, std::string(words[w].first).size(), words[w].second);
}

// One match of the pattern, of which group 1 is replaced.
std::string with_match(std::string text, const char* pattern, std::mt19937& random,
                       const std::function<std::string(const std::string&)>& replacement) {
  const std::regex expression(pattern);
  std::vector<std::pair<size_t, size_t>> places;
  for (std::sregex_iterator m(text.begin(), text.end(), expression), end; m != end; ++m)
    places.push_back({static_cast<size_t>(m->position(1)), static_cast<size_t>(m->length(1))});
  if (places.empty()) return text;
  const auto [at, length] = places[below(random, places.size())];
  return text.replace(at, length, replacement(text.substr(at, length)));
}

std::string next_number(const std::string& digits, std::mt19937& random) {
  const uint64_t n = std::strtoull(digits.c_str(), nullptr, 10);
  return std::to_string(n > 0 && random() % 2 ? n - 1 : n + 1);
}

const std::pair<const char*, const char*> ptx_operators[] = {
    {"add.", "sub."},        {"sub.", "add."},        {"mul.rn", "add.rn"},   {"setp.lt", "setp.le"},
    {"setp.ge", "setp.gt"},  {"setp.eq", "setp.ne"},  {"setp.ne", "setp.eq"}, {"setp.le", "setp.lt"},
    {"and.pred", "or.pred"}, {"or.pred", "and.pred"}, {"and.b", "or.b"},      {"shl.", "shr."},
    {"min.", "max."},        {"max.", "min."}};
const std::pair<const char*, const char*> program_operators[] = {
    {"@lt(", "@leq("},  {"@gt(", "@geq("},  {"@leq(", "@lt("},   {"@geq(", "@gt("},     {"@eq(", "@neq("},
    {"@and(", "@or("},  {"@or(", "@and("},  {"@mul(", "@plus("}, {"@minus(", "@plus("}, {"@plus(", "@minus("},
    {"@sum,", "@max,"}, {"@sum(", "@max("}, {"@min,", "@max,"}};

Result<Bytes> assembled(const std::string& ptx) {
  SourceManager sources;
  DiagnosticSink sink;
  const ptx::Module module = ptx::parse(sources.add("k.ptx", ptx), sources, sink);
  if (sink.has_errors()) return input_error("no PTX");
  Timings timings;
  ASSIGN_OR_RETURN(assembler::Assembled made,
                   assembler::assemble(module, {.target = isa::find_target(target)}, timings));
  return made.cubin;
}

class ProveFaults : public ::testing::Test {
 protected:
  enum class Came : uint8_t { none, failed, same, noticed, missed, noticed_by_error, out_of_time };
  static constexpr const char* kinds[] = {"machine code: an immediate",
                                          "machine code: a register",
                                          "machine code: a guard",
                                          "machine code: a bit",
                                          "PTX: an operator",
                                          "PTX: a number",
                                          "PTX: a guard",
                                          "PTX: a register",
                                          "program: an operator",
                                          "program: a number",
                                          "program: a column",
                                          "data: an element",
                                          "data: the last rows",
                                          "launch: a parameter",
                                          "launch: a block",
                                          "stored: two swapped",
                                          "stored: one lost",
                                          "operators of both paths: a word",
                                          "operators of both paths: two swapped",
                                          "operators of both paths: one lost"};

  void open(double scale) {
    auto source = tpch::open_source(fmt::format("tpch:{}", scale));
    ASSERT_TRUE(source) << source.error().message;
    source_ = *source;
    for (int q = 1; q <= 22; ++q) {
      Query query{.name = fmt::format("q{:02}", q)};
      query.text = *read_file(fmt::format("{}/tpch/queries/{}.hir", RNDN_SOURCE_DIR, query.name));
      WrongDevice* device = nullptr;
      auto session = session_of(device);
      device->on_module = [&](std::span<const std::byte> cubin) {
        return ++query.modules, Bytes(cubin.begin(), cubin.end());
      };
      device->on_copy = [&](Bytes&) { ++query.copies; };
      device->on_launch = [&](const std::string&, device::Dim3&, Bytes&) { ++query.launches; };
      RunOptions options = options_();
      options.reports = true;
      const auto begin = std::chrono::steady_clock::now();
      auto ran = session->run({query.name, query.name + ".hir", query.text}, options);
      ASSERT_TRUE(ran) << ran.error().message;
      query.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      for (const KernelReport& k : ran->reports[0].kernels)
        if (k.kind != "outlined") query.library.push_back(k.name);
      query.right = *print(*ran, Format::csv);
      queries_.push_back(std::move(query));
    }
  }

  std::unique_ptr<Session> session_of(WrongDevice*& device) {
    auto simulator = open_simulator(target);
    EXPECT_TRUE(simulator);
    simulator_ = *std::move(simulator);
    auto own = std::make_unique<WrongDevice>(*simulator_);
    device = own.get();
    return std::make_unique<Session>(source_, std::make_shared<DeviceChoice>(DeviceChoice::of(std::move(own))),
                                     SessionOptions{.say = [this](const std::string& text) { said_ += text; }});
  }
  RunOptions options_() const {
    RunOptions options;
    options.cache = false;
    options.threads = 1;
    options.engine.measure_kernels = false;
    options.prove_elements = most_on_reference_;
    options.limits.seconds = 600;
    return options;
  }

  // What comes of a fault; each of its numbers may be noticed by several.
  struct Outcome {
    Came came = Came::none;
    std::string query, fault;
    size_t second = 0, operators = 0, reference = 0;  // sentences of each that notice it
  };
  // Of a fault that changed the answer.
  static Came came_of(const Result<void>& proved, size_t differences) {
    if (!proved) return proved.error().cause == Cause::cancelled ? Came::out_of_time : Came::noticed_by_error;
    return differences ? Came::noticed : Came::missed;
  }
  // The same from where it is kept, if it is.
  Outcome outcome_of(size_t kind, uint32_t number) {
    const auto at = std::pair(number, kind);
    if (const auto kept = kept_.find(at); kept != kept_.end()) return kept->second;
    by_second_ = by_operators_ = by_reference_ = 0;
    Outcome made{.came = seed(kind, number), .fault = fault_};
    made.query = fault_.substr(0, fault_.find(' '));
    std::tie(made.second, made.operators, made.reference) = std::tuple(by_second_, by_operators_, by_reference_);
    if (made.came == Came::missed) std::printf("missed: %s\n%s", fault_.c_str(), said_.c_str());
    if (keeps_) {
      fmt::print(keeps_.get(), "{}\t{}\t{}\t{}\t{}\t{}\t{}\n", number, kind, static_cast<int>(made.came), made.query,
                 made.second, made.operators, made.reference);
      std::fflush(keeps_.get());
    }
    return made;
  }
  // What processes have tried before; a line that one of them did not end is none. A number means another fault where there are other kinds.
  void keep_in(const std::string& above, const std::string& shard) {
    const std::string folder = fmt::format("{}/{}-kinds", above, std::size(kinds));
    std::filesystem::create_directories(folder);
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      const std::string text = *read_file(file.path().string());
      for (size_t at = 0, end; (end = text.find('\n', at)) != text.npos; at = end + 1) {
        std::istringstream line(text.substr(at, end - at));
        uint32_t number;
        size_t kind;
        int came;
        Outcome o;
        if (!(line >> number >> kind >> came >> o.query >> o.second >> o.operators >> o.reference)) continue;
        o.came = static_cast<Came>(came);
        o.fault = fmt::format("{} {} {}", o.query, kinds[kind], number);
        kept_[{number, kind}] = std::move(o);
      }
    }
    keeps_.reset(std::fopen(fmt::format("{}/{}.tsv", folder, shard).c_str(), "a"));
    ASSERT_TRUE(keeps_) << folder;
    std::fputc('\n', keeps_.get());  // after a line that was not ended
  }

  // What comes of the fault with that number.
  Came seed(size_t kind, uint32_t number) {
    std::mt19937 random(number * 7919 + static_cast<uint32_t>(kind));
    const Query& query = queries_[below(random, queries_.size())];
    const std::string name = kinds[kind];
    const std::string family = name.substr(0, name.find(':')), what = name.substr(name.rfind(' ') + 1);
    fault_ = fmt::format("{} {} {}", query.name, name, number);
    said_.clear();
    WrongDevice* device = nullptr;
    auto session = session_of(device);
    RunOptions options = options_();
    options.limits.seconds = 4 + 4 * query.seconds;  // some faults make loops endless
    std::string text = query.text;
    bool armed = true, placed = false;
    std::map<Bytes, Bytes> changed_modules;  // of both paths
    size_t left = 0;
    const auto comes = [&] { return armed && left-- == 0; };
    const auto word = [&](const Bytes& cubin, const std::string& of) {
      auto other = with_wrong_word(cubin, of, random);
      placed |= other.has_value();
      return other ? *std::move(other) : cubin;
    };
    std::string watched;
    const auto store = [&](std::vector<uint32_t>& words, const std::vector<size_t>& changed) {
      const size_t k = below(random, changed.size() - 1);
      const uint32_t next = words[changed[k + 1]];
      if (what == "swapped") words[changed[k + 1]] = words[changed[k]];
      words[changed[k]] = next;
      placed = true;
    };
    if (family == "machine code") {
      left = below(random, query.modules);
      device->on_module = [&, what](std::span<const std::byte> cubin) {
        const Bytes bytes(cubin.begin(), cubin.end());
        return comes() ? word(bytes, what) : bytes;
      };
    } else if (family == "PTX") {
      options.compile.backend.kind = Backend::driver;
      device->on_ptx = [&, what](const std::string& ptx) -> Result<Bytes> {
        if (!armed) return assembled(ptx);
        std::string other =
            what == "operator" ? with_other_word(ptx, ptx_operators, random)
            : what == "number"
                ? with_match(ptx, ", ([0-9]+);", random, [&](const auto& n) { return next_number(n, random); })
            : what == "guard" ? with_match(ptx, "\n\t(@!?)%p", random,
                                           [](const auto& g) { return std::string(g == "@" ? "@!" : "@"); })
                              : with_match(ptx, ", %(?:rd|r|fd|p)([0-9]+)[,;\\]]", random,
                                           [&](const auto& n) { return next_number(n, random); });
        placed |= other != ptx;
        armed = false;  // one module
        return assembled(other);
      };
    } else if (family == "program") {
      if (what == "operator") {
        text = with_other_word(text, program_operators, random);
      } else if (what == "number") {
        text = with_match(text, "[ (]([0-9]+):(?:i32|i64|f64)", random,
                          [&](const auto& n) { return next_number(n, random); });
      } else {                                                     // of another statement that gives the same type
        std::vector<std::pair<std::string, std::string>> columns;  // type, the call
        const std::regex read("check_cast\\((@column_value\\([^)]*\\)), ([^)]*)\\)");
        for (std::sregex_iterator m(text.begin(), text.end(), read), end; m != end; ++m)
          columns.push_back({(*m)[2], (*m)[1]});
        if (columns.empty()) return Came::none;
        const auto& [type, call] = columns[below(random, columns.size())];
        for (const auto& [other_type, other] : columns)
          if (other_type == type && other != call &&
              other.substr(0, other.find(',')) == call.substr(0, call.find(','))) {
            text.replace(text.find(call), call.size(), other);
            break;
          }
      }
      placed = text != query.text;
    } else if (family == "data") {
      left = below(random, query.copies);
      device->on_copy = [&, what](Bytes& bytes) {
        if (!comes() || bytes.size() < 64) return;
        placed = true;
        if (what == "element")
          bytes[below(random, bytes.size())] ^= std::byte{1};
        else
          std::fill(bytes.end() - static_cast<ptrdiff_t>(std::min<size_t>(bytes.size(), 1 + below(random, 1024))),
                    bytes.end(), std::byte{0});
      };
    } else if (family == "launch") {
      left = below(random, query.launches);
      device->on_launch = [&, what](const std::string&, device::Dim3& grid, Bytes& parameters) {
        if (!comes()) return;
        placed = true;
        if (what == "block") {
          if (grid.x > 1) --grid.x;
          return;
        }
        const size_t p = below(random, parameters.size() / 8) * 8;
        uint64_t value;
        std::memcpy(&value, parameters.data() + p, 8);
        value += value < (uint64_t{1} << 32) ? (value && random() % 2 ? -1 : 1) : 8;
        std::memcpy(parameters.data() + p, &value, 8);
      };
    } else if (family == "stored") {
      left = below(random, query.launches);
      device->is_watched = [&](const std::string&) { return comes(); };
      device->on_stored = store;
    } else if (query.library.empty()) {
      return Came::none;
    } else if (what == "word") {
      const std::string kernel = query.library[below(random, query.library.size())];
      device->on_module = [&, kernel](std::span<const std::byte> cubin) {
        Bytes bytes(cubin.begin(), cubin.end());
        const auto image = cubin::read(bytes);
        if (!image ||
            std::none_of(image->kernels.begin(), image->kernels.end(), [&](const auto& k) { return k.name == kernel; }))
          return bytes;
        auto [at, is_new] = changed_modules.try_emplace(bytes);
        if (is_new) at->second = word(bytes, random() % 2 ? "register" : "bit");
        return at->second;
      };
    } else {
      watched = query.library[below(random, query.library.size())];
      device->is_watched = [&](const std::string& kernel) { return kernel == watched; };
      device->on_stored = store;
    }
    const bool both = family.starts_with("operators");

    auto ran = session->run({query.name, query.name + ".hir", text}, options);
    if (!both) armed = false;
    if (!placed) return Came::none;
    if (!ran) return Came::failed;
    const auto answer = print(*ran, Format::csv);
    if (!answer) return Came::failed;
    if (*answer == query.right) return Came::same;
    Session::Outcome outcome = *std::move(ran);
    if (text != query.text) {
      std::vector<data::Value> wrong = std::move(outcome.results);
      auto whole = session->run({query.name, query.name + ".hir", query.text}, options);
      if (!whole) return Came::none;
      outcome = *std::move(whole);
      outcome.results = std::move(wrong);
    }
    said_.clear();
    const CancelToken token({.seconds = 60 + 100 * query.seconds});
    const CancelScope scope(token);
    const auto proved = errors_of([&] { return session->prove(query.name, options, outcome); });
    for (const std::string& d : outcome.differences) {
      const bool by_operators = d.find("the result of `") != d.npos;
      by_operators_ += by_operators;
      by_reference_ += d.find("reference interpreter") != d.npos;
      by_second_ += !by_operators && d.starts_with("second path");
    }
    return came_of(proved, outcome.differences.size());
  }

  std::shared_ptr<data::Source> source_;
  std::unique_ptr<device::Device> simulator_;
  std::vector<Query> queries_;
  std::string said_, fault_;
  uint64_t most_on_reference_ = 0;
  size_t by_second_ = 0, by_operators_ = 0, by_reference_ = 0;
  std::map<std::pair<uint32_t, size_t>, Outcome> kept_;  // by number and kind
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> keeps_{nullptr, std::fclose};
};

TEST_F(ProveFaults, AProofWithoutAnEndIsNotNoticed) {
  EXPECT_EQ(came_of({}, 1), Came::noticed);
  EXPECT_EQ(came_of({}, 0), Came::missed);
  EXPECT_EQ(came_of(Error{Fault::internal, "a kernel"}, 0), Came::noticed_by_error);
  const CancelToken token({.seconds = 1e-9});
  EXPECT_EQ(came_of(token.check(), 0), Came::out_of_time);
}

TEST_F(ProveFaults, OutcomesOfOtherKindsAreNotTaken) {
  const std::string folder = fmt::format("{}/prove_faults_kept.{}", testing::TempDir(), getpid());
  std::filesystem::remove_all(folder);
  for (const size_t count : {std::size(kinds), std::size(kinds) + 1, size_t{0}}) {
    const std::string of = count ? fmt::format("{}/{}-kinds", folder, count) : folder;
    std::filesystem::create_directories(of);
    ASSERT_TRUE(write_file(of + "/0-of-2.tsv", fmt::format("{}\t2\t3\tq06\t1\t0\t0\n", count)));
  }
  keep_in(folder, "rest");
  ASSERT_EQ(kept_.size(), 1u);
  EXPECT_EQ(kept_.begin()->first.first, std::size(kinds));
  keeps_.reset();
  std::filesystem::remove_all(folder);
}

TEST_F(ProveFaults, AreNoticed) {
  const char* asked = std::getenv("RNDN_PROVE_FAULTS");
  const size_t wanted = asked ? std::strtoull(asked, nullptr, 10) : 12, share = wanted / std::size(kinds) + 1;
  const char* asked_scale = std::getenv("RNDN_PROVE_SCALE");
  const double scale = asked_scale ? std::strtod(asked_scale, nullptr) : asked ? 0.1 : 0.002;
  const bool only_kept = std::getenv("RNDN_PROVE_KEPT") != nullptr;
  most_on_reference_ = static_cast<uint64_t>(scale * 1e7);
  if (!only_kept) open(scale);
  ASSERT_FALSE(HasFatalFailure());
  unsigned shard = 0, shards = 1;
  if (const char* which = std::getenv("RNDN_PROVE_SHARD")) {
    ASSERT_TRUE(std::sscanf(which, "%u/%u", &shard, &shards) == 2 && shard < shards) << which << " is not i/n";
  }
  if (const char* folder = std::getenv("RNDN_PROVE_FOLDER"))
    keep_in(folder, shards > 1 ? fmt::format("{}-of-{}", shard, shards) : "rest");
  ASSERT_FALSE(HasFatalFailure());
  struct Row {
    size_t second = 0, operators = 0, reference = 0;
    size_t failed = 0, same = 0, found = 0, errors = 0, out_of_time = 0;
    std::vector<std::string> missed;
    size_t noticed() const { return found + errors; }
    size_t counted() const { return noticed() + out_of_time + missed.size(); }
  };
  std::vector<Row> rows(std::size(kinds));
  const auto counted = [&] {
    return std::accumulate(rows.begin(), rows.end(), size_t{0}, [](size_t n, const Row& r) { return n + r.counted(); });
  };
  const auto noticed = [&] {
    return std::accumulate(rows.begin(), rows.end(), size_t{0}, [](size_t n, const Row& r) { return n + r.noticed(); });
  };
  const auto by = [&](size_t Row::*way) {
    return std::accumulate(rows.begin(), rows.end(), size_t{0}, [&](size_t n, const Row& r) { return n + r.*way; });
  };
  const auto table = [&] {
    std::string text = fmt::format(
        "# {} faults seeded into runs of the 22 TPC-H queries, scale {}, that change the answer: --prove noticed "
        "{:.1f} %{}; the second path {}, checks of "
        "operators {}, the reference interpreter, on a sample of the largest table where a query reads more than {} "
        "elements, {} (RNDN_RECORD=1 RNDN_PROVE_FAULTS={} RNDN_PROVE_SCALE={} test_session "
        "--gtest_filter=ProveFaults.AreNoticed)\n"
        "fault\tchange the answer\tnoticed\tof these by an error of --prove\t--prove ran out of time, not "
        "noticed\tmissed, in the "
        "queries\tend the run\tchange nothing\n",
        counted(), scale, 100.0 * static_cast<double>(noticed()) / static_cast<double>(std::max<size_t>(counted(), 1)),
        only_kept ? " (stopped before its end)" : "", by(&Row::second), by(&Row::operators), most_on_reference_,
        by(&Row::reference), wanted, scale);
    for (size_t k = 0; k < std::size(kinds); ++k) {
      std::string missed;
      for (const std::string& m : rows[k].missed) missed += (missed.empty() ? "" : " ") + m.substr(0, m.find(' '));
      text +=
          fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", kinds[k], rows[k].counted(), rows[k].noticed(),
                      rows[k].errors, rows[k].out_of_time, missed.empty() ? "-" : missed, rows[k].failed, rows[k].same);
    }
    return text;
  };
  const auto record = [&] {  // as far as it has come
    if (std::getenv("RNDN_RECORD")) EXPECT_TRUE(write_file(RNDN_SOURCE_DIR "/docs/measurements/prove.tsv", table()));
  };
  // Kinds in turn; those whose faults seldom change an answer are not tried for ever. A process of several has each
  // n-th number, and an n-th of what is wanted.
  // (A little more: what these lack is tried by one process, when it makes the table.)
  const size_t tenth = shards > 1 ? wanted / shards / 10 + 1 : 0, own = (wanted + shards - 1) / shards + tenth,
               most = (2 * share + shards - 1) / shards;
  for (uint32_t number = shard; counted() < own && number < 6 * share; number += shards)
    for (size_t k = 0; k < std::size(kinds) && counted() < own; ++k) {
      Row& row = rows[k];
      if (row.counted() >= most || (only_kept && !kept_.contains({number, k}))) continue;
      const Outcome o = outcome_of(k, number);
      switch (o.came) {
        case Came::none: break;
        case Came::failed: ++row.failed; break;
        case Came::same: ++row.same; break;
        case Came::noticed: ++row.found; break;
        case Came::noticed_by_error: ++row.errors; break;
        case Came::out_of_time: ++row.out_of_time; break;
        case Came::missed: row.missed.push_back(o.fault); break;
      }
      row.second += o.second, row.operators += o.operators, row.reference += o.reference;
      if (k + 1 == std::size(kinds) && shards == 1) record();
    }
  if (shards > 1) return;  // the others' are not known
  std::printf("%s", table().c_str());
  if (!only_kept) EXPECT_EQ(counted(), wanted);
  EXPECT_GE(noticed() * 100, counted() * 95);
  record();
}

}  // namespace
}  // namespace rndn::runtime::prove_faults_test
