// Random programs three ways: our code at -O0 and -O3 and, where ptxas 11.8 is found, its code, both in the simulator with its checks on, against the PTX
// interpreter.
//
//   RNDN_PROGRAMS=2000 RNDN_PROGRAMS_FIRST=0 build/bin/test_random_programs      a longer run; its totals are printed
//   RNDN_PROGRAMS_TARGETS=sm_61,sm_90                                            these targets only
//   RNDN_PROGRAMS_REDUCE=0                                                       seconds for each reduction (60)
//
// A program that fails is reduced, and its PTX printed. What ptxas is not asked about: ptxas_faults.h.
#include <chrono>
#include <map>
#include <memory>
#include <optional>

#include "ptx/transform/unroll.h"
#include "ptx/verify.h"
#include "tests/assembler/ptxas_faults.h"
#include "tests/assembler/random_programs.h"
#include "tests/assembler/reduce_program.h"
#include "tests/assembler/stress_kernels.h"
#include "tests/assembler/support.h"
#include "tests/support/ptxas.h"
#include "tests/support/status.h"

namespace rndn::assembler::testing::random_test {
namespace {

using namespace rndn::testing;

using Words = std::vector<uint64_t>;

// One simulated GPU for all programs of a module.
class Bench {
 public:
  Bench(const std::string& target, const Words& in) : machine_(target, 16 << 20) {
    in_ = *machine_.allocate(program_in_bytes);
    out_ = *machine_.allocate(program_out_bytes);
    EXPECT_TRUE(machine_.write(in_, in.data(), program_in_bytes).ok());
  }
  Result<void> load(std::span<const std::byte> cubin) {
    ASSIGN_OR_RETURN(module_, machine_.load(cubin));
    return {};
  }
  Result<Words> run(const std::string& kernel, bool ours, bool hazards = true) {
    RETURN_IF_ERROR(machine_.fill(out_, 0, program_out_bytes));
    sim::Options o;
    o.check_memory = true;
    o.check_hazards = hazards;
    o.check_uninitialised = ours;  // ptxas merges halves into registers that it has never written
    o.deterministic = true;
    o.max_warp_instructions = 2'000'000;
    const auto parameters = program_parameters(in_, out_);
    RETURN_IF_ERROR(machine_.launch(module_, kernel, {program_blocks, 1, 1}, {program_threads, 1, 1}, 0,
                                    std::as_bytes(std::span(parameters)), o));
    Words out(program_out_bytes / 8);
    RETURN_IF_ERROR(machine_.read(out_, out.data(), program_out_bytes));
    return out;
  }

 private:
  sim::Machine machine_;
  sim::ModuleId module_{};
  uint64_t in_ = 0, out_ = 0;
};

std::string where(const Words& expected, const Words& got) {
  constexpr size_t row = program_row_bytes / 8;
  for (size_t k = 0; k < expected.size(); ++k)
    if (expected[k] != got[k]) {
      const size_t thread = k / row;
      return thread < program_blocks * program_threads
                 ? fmt::format("thread {}, byte {} of its row: expected {:#x}, got {:#x}", thread, k % row * 8,
                               expected[k], got[k])
                 : fmt::format("counter {}: expected {:#x}, got {:#x}", k % row, expected[k], got[k]);
    }
  return "";
}

struct Variant {
  std::string name;  // "-O3", "-O0", "ptxas"; -O0 by stencils unless said
  int level = 0;
  uint32_t registers = 0;
  bool ptxas = false;
  Stencils stencils = Stencils::always;
};

// What all runs share.
struct Setting {
  std::string ptxas;  // empty: not there
  std::string target;
  Words in;
};

Result<std::vector<std::byte>> code(const Variant& v, const ptx::Module& module, const Setting& s) {
  if (v.ptxas) return rndn::test::ptxas_cubin(s.ptxas, ptx::print(module), s.target);
  ASSIGN_OR_RETURN(Assembled made, assemble_for(module, s.target, v.level, v.registers, false, v.stencils));
  return made.cubin;
}

// "" when all is well, else what is wrong; `kind` tells apart ways to fail that are not the same fault.
std::string failure_of(const ptx::Module& module, const std::string& kernel, const Variant& v, const Setting& s,
                       std::string& kind) {
  kind = "interpreter";
  auto expected = interpreted(module, kernel, s.in);
  if (!expected.ok()) return expected.error().message;
  kind = "assembler";
  auto made = code(v, module, s);
  if (!made.ok()) return made.error().message;
  Bench bench(s.target, s.in);
  kind = "simulator";
  if (auto loaded = bench.load(*made); !loaded.ok()) return loaded.error().message;
  auto got = bench.run(kernel, !v.ptxas, !v.ptxas);
  if (!got.ok()) return got.error().message;
  kind = "difference";
  const std::string difference = where(*expected, *got);
  if (difference.empty()) return "";
  // A fault shows in one place of a thread's row: another place is most likely another fault.
  if (const size_t at = difference.find("byte"); at != std::string::npos)
    kind += " at " + difference.substr(at, difference.find(':') - at);
  auto again = interpreted(module, kernel, s.in, 1);
  if (!again.ok()) return again.error().message;
  if (*again != *expected) {
    kind = "race";
    return "the result depends on the order of threads";
  }
  return difference;
}

std::string environment(const char* name, const std::string& otherwise) {
  const char* v = std::getenv(name);
  return v ? v : otherwise;
}

struct Totals {
  size_t programs = 0, ours = 0, theirs = 0, refused = 0, skipped = 0, unknown = 0, hazards = 0, wrong = 0,
         theirs_wrong = 0;
  std::map<std::string, size_t> reasons;  // of what was refused, skipped or unknown
};

// Programs of one module: those of number first..first+n of what a target has.
struct Programs {
  uint64_t first = 0, n = 0;
  uint32_t sm = 0;
  ptx::Module module;
  std::vector<std::optional<Words>> expected;  // by the interpreter; none when it failed

  static std::string name(uint64_t k) { return fmt::format("k{}", k); }
  ptx::Module of(const std::vector<uint64_t>& which) const {
    ptx::Module m = program_module(sm);
    for (uint64_t k : which) add_random_kernel(m, (first + k) * 100 + sm, name(k));
    return m;
  }
  std::string title(uint64_t k) const { return fmt::format("program {} (of sm_{})", first + k, sm); }
};

// The programs `which` as machine code: in one cubin; where that cannot be made, a cubin for each.
class Code {
 public:
  Code(const Programs& programs, const std::vector<uint64_t>& which, const Variant& v, const Setting& s)
      : programs_(programs), v_(v), s_(s), all_(s.target, s.in) {
    const auto made = code(v, which.size() == programs.n ? programs.module : programs.of(which), s);
    if (!made.ok()) return;
    const auto loaded = all_.load(*made);
    EXPECT_TRUE(loaded.ok()) << programs.first << " " << s.target << " " << v.name << ": " << loaded.error().message;
    whole_ = loaded.ok();
  }
  // Fails when the program alone cannot be made.
  Result<Bench*> of(uint64_t k) {
    if (whole_) return &all_;
    ASSIGN_OR_RETURN(const std::vector<std::byte> made, code(v_, programs_.of({k}), s_));
    alone_ = std::make_unique<Bench>(s_.target, s_.in);
    RETURN_IF_ERROR(alone_->load(made));
    return alone_.get();
  }

 private:
  const Programs& programs_;
  const Variant& v_;
  const Setting& s_;
  Bench all_;
  bool whole_ = false;
  std::unique_ptr<Bench> alone_;
};

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// One way to compile and run the programs, and its comparison with the interpreter.
void run_variant(const Programs& p, const Variant& v, const Setting& s, Totals& t, size_t& shown) {
  const auto report = [&](uint64_t k, const std::string& what) {
    ++(v.ptxas ? t.theirs_wrong : t.wrong);
    const std::chrono::seconds limit(std::stoi(environment("RNDN_PROGRAMS_REDUCE", "60")));
    std::string text;
    if (++shown <= 4 && limit.count() > 0) {
      std::string kind, now;
      const ptx::Module whole = p.of({k});
      failure_of(whole, p.name(k), v, s, kind);
      const auto fails = [&](const ptx::Module& m) {
        if (v.ptxas && ptxas_fault(m, p.name(k), isa::find_target(s.target)->sm, Seen::difference)) return false;
        return !failure_of(m, p.name(k), v, s, now).empty() && now == kind;
      };
      const ptx::Module least = tidy(reduced(whole, p.name(k), fails, limit), p.name(k));
      const std::string again = failure_of(least, p.name(k), v, s, kind);
      // ptxas looks at labels that nothing jumps to, too: they go when the failure stays without them.
      const std::string bare = text_of(least);
      const bool same = fails(parse_text("reduced.ptx", bare));
      text = "\nreduced: " + kind + ": " + again + "\n" + (same ? bare : ptx::print(least));
    }
    ADD_FAILURE() << p.title(k) << " " << s.target << " " << v.name << ": " << what << text;
  };
  const uint32_t sm = isa::find_target(s.target)->sm;
  const auto skip = [&](uint64_t k, Seen seen) {
    const char* fault = v.ptxas ? ptxas_fault(p.module, p.name(k), sm, seen) : nullptr;
    if (!fault) return false;
    ++t.skipped, ++t.reasons[fmt::format("ptxas: {}", fault)];
    return true;
  };
  std::vector<uint64_t> which;
  for (uint64_t k = 0; k < p.n; ++k) {
    if (!p.expected[k]) continue;
    if (!skip(k, Seen::nothing)) which.push_back(k);
  }
  Code made(p, which, v, s);
  for (uint64_t k : which) {
    const Result<Bench*> bench = made.of(k);
    if (!bench.ok()) {
      const std::string& what = bench.error().message;
      if (!v.ptxas && contains(what, "unsupported")) {
        ++t.refused;
        ++t.reasons[what.substr(what.find("unsupported"), 60)];
      } else if (v.ptxas && contains(what, "signal")) {
        ++t.skipped;
        ++t.reasons["ptxas ended by a signal: " + p.title(k)];
      } else {
        report(k, what);
      }
      continue;
    }
    Result<Words> got = (*bench)->run(p.name(k), !v.ptxas);
    // The simulator is stricter than ptxas in places: counted, and run without the check.
    if (!got.ok() && v.ptxas && contains(got.error().message, "hazard:")) {
      ++t.hazards;
      ++t.reasons[fmt::format("{}: {}", p.title(k), got.error().message.substr(0, 200))];
      got = (*bench)->run(p.name(k), false, false);
    }
    if (!got.ok() && v.ptxas && contains(got.error().message, "is no known instruction")) {
      if (skip(k, Seen::unknown_word)) continue;
      ++t.unknown;
      ++t.reasons[got.error().message.substr(0, 200)];
      continue;
    }
    const std::string difference = got.ok() ? where(*p.expected[k], *got) : got.error().message;
    if (!difference.empty() && skip(k, Seen::difference)) continue;
    (v.ptxas ? t.theirs : t.ours) += 1;
    if (!difference.empty()) report(k, difference);
  }
}

// `count` programs from `first` on, of what the lowest target has; on each of the targets.
void run_programs(uint64_t first, uint64_t count, uint32_t sm, const std::vector<std::string>& on,
                  const std::string& ptxas, std::map<std::string, Totals>& totals, size_t& unrolled) {
  constexpr uint64_t per_module = 100;
  const Words in = program_input(77);
  size_t shown = 0;
  for (uint64_t at = first; at < first + count; at += per_module) {
    Programs p{.first = at, .n = std::min(per_module, first + count - at), .sm = sm};
    std::vector<uint64_t> all(p.n);
    for (uint64_t k = 0; k < p.n; ++k) all[k] = k;
    const ptx::Module made = p.of(all);
    p.module = parse_text("programs.ptx", ptx::print(made));
    if (auto problems = ptx::verify(made); !problems.empty()) {
      ADD_FAILURE() << at << ": " << problems[0];
      return;
    }
    for (const ptx::Function& f : p.module.functions) EXPECT_FALSE(reads_unset(f)) << at << " " << f.name;
    for (uint64_t k = 0; k < p.n; ++k) {
      unrolled += unroll(p.of({k}))->has_value();
      auto out = interpreted(p.module, p.name(k), in);
      if (!out.ok()) ADD_FAILURE() << p.title(k) << ": " << out.error().message;
      p.expected.push_back(out.ok() ? std::optional(*std::move(out)) : std::nullopt);
    }
    for (const std::string& target : on) {
      totals[target].programs += p.n;
      std::vector<Variant> variants = {{"-O3", 3}, {"-O0", 0}};
      if (at / per_module % 2 == 0)
        variants.push_back({"-O3 with 24 registers", 3, 24});
      else
        variants.push_back({"-O0 without stencils", 0, 0, false, Stencils::off});
      if (!ptxas.empty()) variants.push_back({"ptxas", 3, 0, true});
      for (const Variant& v : variants) run_variant(p, v, {ptxas, target, in}, totals[target], shown);
    }
  }
}

TEST(RandomPrograms, DoWhatThePtxMeans) {
  const uint64_t count = std::stoull(environment("RNDN_PROGRAMS", "30")),
                 first = std::stoull(environment("RNDN_PROGRAMS_FIRST", "0"));
  const std::string only = environment("RNDN_PROGRAMS_TARGETS", "sm_61,sm_86,sm_90");
  std::string why;
  const std::string ptxas = reference_tool("ptxas", why);
  if (ptxas.empty()) std::printf("our code and the PTX interpreter only: %s\n", why.c_str());
  std::map<std::string, Totals> totals;
  size_t unrolled = 0;
  // A third of the programs each of what every target has, of sm_80's and of sm_90's operations.
  for (uint32_t sm : {61u, 80u, 90u}) {
    std::vector<std::string> on;
    for (const isa::Target& t : isa::targets())
      if (contains(only, t.name) && t.sm >= sm) on.emplace_back(t.name);
    if (!on.empty()) run_programs(first, count / 3, sm, on, ptxas, totals, unrolled);
  }
  std::printf("%zu of %zu programs have loops that are unrolled\n", unrolled, size_t{count} / 3 * 3);
  if (count >= 60) {
    EXPECT_GT(unrolled, count / 20);
  }
  for (const auto& [target, t] : totals) {
    std::printf(
        "%s: %zu programs, %zu runs of our code, %zu of ptxas's; %zu refused, %zu not ptxas's, %zu with instructions "
        "unknown to the simulator, %zu with hazards that it suspects, %zu of ours fail, %zu of ptxas's\n",
        target.c_str(), t.programs, t.ours, t.theirs, t.refused, t.skipped, t.unknown, t.hazards, t.wrong,
        t.theirs_wrong);
    for (const auto& [what, n] : t.reasons) std::printf("  %zu %s\n", n, what.c_str());
    if (HasFailure()) continue;
    rndn::testing::record_status("count", "random programs whose results agree with the PTX interpreter", target,
                                 std::to_string(t.programs));
    if (!ptxas.empty())
      rndn::testing::record_status("count",
                                   "random programs whose results agree with ptxas's code and the PTX interpreter",
                                   target, std::to_string(t.theirs));
  }
}

// Longer stalls than the schedule asks for change nothing: a scan whose blocks wait for each other, and a kernel that spills.
TEST(Stalls, LongerOnesChangeNothing) {
  for (const std::string target : {"sm_80", "sm_90"})
    for (bool scan : {true, false})
      for (uint64_t variant = 0; variant < 4; ++variant) {
        const ptx::Module module = parse_text("stress.ptx", scan ? stress::scan_text : stress::spill_text());
        Options o;
        o.target = isa::find_target(target);
        o.max_registers = scan ? 0 : 24;
        o.verify_passes = true;
        o.stalls = static_cast<Stalls>(std::min<uint64_t>(variant, 2));
        o.stall_seed = variant;
        Timings timings;
        auto made = assemble(module, o, timings);
        ASSERT_TRUE(made.ok()) << made.error().message;
        EXPECT_TRUE(scan || made->kernels[0].spill_bytes > 0);
        constexpr uint32_t blocks = 5, n = blocks * 256;
        std::vector<uint32_t> in(stress::spill_mask + 1), expected(n), got(n);
        uint32_t sum = 0, state = 1;
        for (uint32_t& x : in) x = state = state * 1664525 + 1013904223;
        for (uint32_t k = 0; k < n; ++k) expected[k] = scan ? (sum += in[k]) : stress::spilled(in, k);
        sim::Machine machine(target, 16 << 20);
        auto loaded = machine.load(made->cubin);
        ASSERT_TRUE(loaded.ok());
        const uint64_t in_at = *machine.allocate(in.size() * 4), out_at = *machine.allocate(n * 4),
                       states = *machine.allocate(blocks * 8), ticket = *machine.allocate(8);
        ASSERT_TRUE(machine.write(in_at, in.data(), in.size() * 4).ok() && machine.fill(states, 0, blocks * 8).ok() &&
                    machine.fill(ticket, 0, 8).ok());
        sim::Options so;
        so.check_hazards = so.check_uninitialised = so.deterministic = true;
        so.max_warp_instructions = 1'000'000;
        for (uint64_t epoch = 1; epoch <= 2; ++epoch) {
          const uint64_t parameters[6] = {in_at, out_at, states, ticket, epoch, blocks};
          auto ran = machine.launch(*loaded, scan ? "scan" : "spill", {blocks, 1, 1}, {256, 1, 1}, 0,
                                    std::as_bytes(std::span(parameters)).first(scan ? 48 : 16), so);
          ASSERT_TRUE(ran.ok()) << target << " " << scan << " " << variant << ": " << ran.error().message;
          ASSERT_TRUE(machine.read(out_at, got.data(), n * 4).ok());
          EXPECT_EQ(got, expected) << target << " " << scan << " " << variant;
        }
      }
}

}  // namespace
}  // namespace rndn::assembler::testing::random_test
