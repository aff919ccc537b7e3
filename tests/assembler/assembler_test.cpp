// The assembler against its witnesses, on the PTX texts of ptx/: the PTX interpreter, the simulator on ptxas's code, nvdisasm's reading.
#include <regex>

#include "assembler/assemble.h"
#include "assembler/backend/backend.h"
#include "assembler/check/check.h"
#include "assembler/flow/structurize.h"
#include "assembler/isa/latencies.h"
#include "libraries/base/system/parallel.h"
#include "tests/assembler/support.h"
#include "tests/support/every_case.h"

namespace rndn::assembler::testing {
namespace {

// Files whose kernels have the shape of support.h.
bool has_test_shape(const ptx::Function& f) {
  return f.parameters.size() == 2 && f.parameters[0].name == "in" && f.parameters[1].name == "out";
}

TEST(Assembler, AssemblesEveryFileForEveryTargetAtEveryLevel) {
  for (const std::string& path : ptx_files()) {
    ptx::Module module = parse_file(path);
    for (const std::string& target : targets)
      for (int level = 0; level <= 3; ++level) {
        auto result = assemble_for(module, target, level);
        EXPECT_TRUE(result.ok()) << path << " " << target << " -O" << level << ": " << result.error().message;
      }
  }
}

// Our code in the simulator gives what the PTX means, without a hazard.
TEST(Assembler, CodeDoesWhatThePtxMeans) {
  const std::vector<uint64_t> in = input_words();
  for (const std::string& path : ptx_files()) {
    ptx::Module module = parse_file(path);
    for (const ptx::Function& f : module.functions) {
      if (!has_test_shape(f)) continue;
      auto expected = run_interpreter(module, f.name, in);
      ASSERT_TRUE(expected.ok()) << f.name << ": " << expected.error().message;
      for (const std::string& target : targets) {
        auto ours = assemble_for(module, target);
        ASSERT_TRUE(ours.ok()) << f.name << " " << target << ": " << ours.error().message;
        auto got = run_simulator(target, ours->cubin, f.name, in);
        if (!got.ok()) {
          ADD_FAILURE() << f.name << " " << target << ": " << got.error().message;
          continue;
        }
        EXPECT_EQ(difference(*expected, *got, 0), "") << f.name << " " << target;
      }
    }
  }
}

TEST(Assembler, CubinIsTheSameWithAnyNumberOfThreads) {
  ThreadPool pool(4);
  int modules = 0;
  for (const std::string& path : ptx_files()) {
    ptx::Module module = parse_file(path);
    if (module.functions.size() < 3) continue;
    Options o;
    o.target = isa::find_target("sm_90");
    Timings timings;
    auto alone = assemble(module, o, timings);
    ASSERT_TRUE(alone.ok()) << alone.error().message;
    o.pool = &pool;
    Timings beside;
    auto together = assemble(module, o, beside);
    ASSERT_TRUE(together.ok()) << together.error().message;
    EXPECT_TRUE(alone->cubin == together->cubin);
    ASSERT_EQ(alone->kernels.size(), together->kernels.size());
    for (size_t i = 0; i < alone->kernels.size(); ++i) {
      EXPECT_EQ(alone->kernels[i].name, together->kernels[i].name);
      EXPECT_EQ(alone->kernels[i].registers, together->kernels[i].registers);
    }
    EXPECT_GT(beside.exclusive_ns(Phase::schedule), 0u);
    ++modules;
  }
  EXPECT_GE(modules, 3);
}

// The first word of a cubin that is not in the tables.
std::string unknown_word(const std::string& name, std::span<const std::byte> cubin) {
  const isa::Target& target = *isa::find_target(name);
  auto image = cubin::read(cubin);
  if (!image.ok()) return image.error().message;
  for (const cubin::Kernel& k : image->kernels)
    for (const isa::Located& l : isa::unpack(target, k.code)) {
      isa::Instruction i;
      if (!isa::decode(target, l.word, l.address, i))
        return fmt::format("{} {:#x}: {:016x} {:016x}", k.name, l.address, l.word.hi, l.word.lo);
    }
  return {};
}

// Whether functions that are called save convergence barriers.
bool saves_barriers_in_calls(const std::string& name, std::span<const std::byte> cubin) {
  const isa::Target& target = *isa::find_target(name);
  bool saves = false, calls = false;
  const cubin::Image image = *cubin::read(cubin);
  for (const cubin::Kernel& k : image.kernels)
    for (const isa::Located& l : isa::unpack(target, k.code)) {
      isa::Instruction i;
      if (!isa::decode(target, l.word, l.address, i)) continue;
      saves |= i.mnemonic == isa::Mnemonic::BMOV;
      calls |= i.mnemonic == isa::Mnemonic::CALL_REL || i.mnemonic == isa::Mnemonic::CALL_REL_R ||
               i.mnemonic == isa::Mnemonic::CALL_ABS_R;
    }
  return saves && calls;
}

// Nothing of a compilation, failed ones among them, is left in the memory that the next one takes.
TEST(Assembler, CubinIsTheSameInMemoryUsedBefore) {
  Workspace workspace;
  const std::vector<std::string> paths = ptx_files();
  size_t compared = 0;
  for (const char* target : {"sm_90", "sm_61", "sm_86"})
    for (const std::string& path : paths) {
      const ptx::Module module = parse_file(path);
      Options o;
      o.target = isa::find_target(target);
      Timings timings;
      const Result<Assembled> alone = assemble(module, o, timings);
      o.workspace = &workspace;
      const Result<Assembled> again = assemble(module, o, timings);
      ASSERT_EQ(alone.ok(), again.ok()) << path;
      if (alone.ok()) {
        EXPECT_TRUE(alone->cubin == again->cubin) << path << " " << target;
        ++compared;
      }
      o.max_registers = 24;
      (void)assemble(module, o, timings);
    }
  EXPECT_GT(compared, paths.size());
}

TEST(Assembler, SameResultsAsPtxas) {
  std::string why, ptxas = reference_tool("ptxas", why);
  if (ptxas.empty()) GTEST_SKIP() << "skipped: " << why;
  const std::vector<uint64_t> in = input_words();
  rndn::test::Sample sample(2);
  for (const std::string& path : ptx_files()) {
    ptx::Module module = parse_file(path);
    for (const std::string& target : targets) {
      if (!sample.has_next()) continue;
      std::string said;
      std::vector<std::byte> theirs = assemble_with_ptxas(ptxas, path, target, said);
      ASSERT_FALSE(theirs.empty()) << path << " " << target << ": " << said;
      auto ours = assemble_for(module, target);
      ASSERT_TRUE(ours.ok()) << path;
      if (std::string word = unknown_word(target, theirs); !word.empty()) {
        if (word.ends_with("245")) {  // I2FP in other roundings than to nearest
          std::printf("skipped: %s on %s: ptxas uses a form that the tables lack: %s\n", path.c_str(), target.c_str(),
                      word.c_str());
          continue;
        }
        ADD_FAILURE() << path << " " << target << ": ptxas's code has a word that no form matches: " << word;
        continue;
      }
      // Not known: what BMOV does while lanes at other depths of calls wait at the barrier that it saves.
      if (saves_barriers_in_calls(target, theirs)) {
        std::printf("skipped: %s on %s: ptxas saves convergence barriers around calls\n", path.c_str(), target.c_str());
        continue;
      }
      for (const ptx::Function& f : module.functions) {
        if (!has_test_shape(f)) continue;
        // ptxas merges halves into registers that it has never written, and ignores what that gives.
        auto a = run_simulator(target, theirs, f.name, in, true, nullptr, false),
             b = run_simulator(target, ours->cubin, f.name, in);
        if (!a.ok())
          ADD_FAILURE() << f.name << " " << target << " (ptxas): " << a.error().message;
        else if (!b.ok())
          ADD_FAILURE() << f.name << " " << target << " (ours): " << b.error().message;
        else
          EXPECT_EQ(difference(*a, *b, 0), "") << f.name << " " << target;
      }
    }
  }
}

// Spilling: the same results with few registers.
TEST(Assembler, SpillsWithinTheLimit) {
  const std::vector<uint64_t> in = input_words();
  ptx::Module module = parse_file(RNDN_SOURCE_DIR "/tests/assembler/ptx/pressure.ptx");
  auto expected = run_interpreter(module, "pressure", in);
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  for (const std::string& target : targets)
    for (uint32_t limit : {24u, 40u, 64u, 128u}) {
      auto ours = assemble_for(module, target, 3, limit);
      ASSERT_TRUE(ours.ok()) << target << ": " << ours.error().message;
      EXPECT_LE(ours->kernels[0].registers, limit);
      if (limit < 128) {
        EXPECT_GT(ours->kernels[0].spill_bytes, 0u);
      }
      auto got = run_simulator(target, ours->cubin, "pressure", in);
      ASSERT_TRUE(got.ok()) << target << " " << limit << ": " << got.error().message;
      EXPECT_EQ(difference(*expected, *got, 0), "") << target << " " << limit;
    }
}

// --- Seeded faults. What a lowered stall breaks, found by walking: from each producer along every path until its results are old or overwritten.
struct Walk {
  const isa::Target& target;
  const std::vector<isa::Instruction>& code;
  std::map<uint64_t, uint32_t> at;

  template <class F>
  static void registers(const isa::Instruction& i, F&& f) {  // f(register, file, write, guard)
    using isa::Access;
    using isa::RegisterFile;
    for (uint32_t k = 0; k < i.operand_count; ++k) {
      const isa::Operand& o = i.operands[k];
      Access a = isa::access(i, k);
      RegisterFile file = isa::register_file(i, k);
      if (a == Access::none) continue;
      if (o.kind == isa::OperandKind::address && o.uniform != isa::URZ)
        for (uint32_t w = 0; w < (o.descriptor ? 2u : 1u); ++w) f(o.uniform + w, RegisterFile::uniform, false, false);
      if (file == RegisterFile::gpr         ? o.reg == isa::RZ
          : file == RegisterFile::predicate ? o.reg == isa::PT
                                            : file != RegisterFile::uniform || o.reg == isa::URZ)
        continue;
      for (uint32_t w = 0; w < isa::register_count(i, k); ++w) f(o.reg + w, file, a != Access::read, false);
    }
    if (i.guard != isa::PT) f(i.guard, RegisterFile::predicate, false, true);
    if (isa::reads_carry(i)) f(0, RegisterFile::none, false, false);
    if (isa::writes_carry(i)) f(0, RegisterFile::none, true, false);
  }
  // Some reader of instruction `producer`'s result `reg` issues too early. `k`: an instruction reached after `cycles`.
  bool early(uint32_t producer, uint32_t reg, isa::RegisterFile file, uint32_t k, uint32_t cycles) const {
    while (k < code.size() && cycles < 16) {
      const isa::Instruction& i = code[k];
      bool found = false, overwritten = false;
      registers(i, [&](uint32_t r, isa::RegisterFile f, bool write, bool guard) {
        if (r != reg || f != file) return;
        if (write)
          overwritten |= i.guard == isa::PT;
        else
          found |= cycles < checked_distance(target, code[producer], i, reg, file, guard);
      });
      if (found) return true;
      if (overwritten) return false;
      const uint32_t next = cycles + i.control.stall;
      using M = isa::Mnemonic;
      if (i.mnemonic == M::BRA)
        for (uint32_t o = 0; o < i.operand_count; ++o)
          if (i.operands[o].kind == isa::OperandKind::label)
            if (auto it = at.find(static_cast<uint64_t>(i.operands[o].value)); it != at.end() && it->second != k)
              if (early(producer, reg, file, it->second, next)) return true;
      if (i.mnemonic == M::SYNC)  // Pascal: to the landing of the innermost region around it
        for (uint32_t s = k; s-- > 0;) {
          if (code[s].mnemonic != M::SSY) continue;
          auto it = at.find(static_cast<uint64_t>(code[s].operands[0].value));
          if (it == at.end() || it->second <= k) continue;
          if (early(producer, reg, file, it->second, next)) return true;
          break;
        }
      if (i.guard == isa::PT && (i.mnemonic == M::BRA || i.mnemonic == M::EXIT || i.mnemonic == M::SYNC)) return false;
      ++k, cycles = next;
    }
    return false;
  }
  bool broken() const {
    for (uint32_t p = 0; p < code.size(); ++p) {
      const isa::Instruction& i = code[p];
      const isa::Control& c = i.control;
      const uint32_t set =
          (c.write_barrier != 7 ? 1u << c.write_barrier : 0) | (c.read_barrier != 7 ? 1u << c.read_barrier : 0);
      if (c.stall < 2 && p + 1 < code.size() && (set & code[p + 1].control.wait_mask)) return true;
      bool any = false;
      registers(i, [&](uint32_t r, isa::RegisterFile f, bool write, bool) {
        any = any || (write && early(p, r, f, p + 1, c.stall));
      });
      if (any) return true;
    }
    if (target.family == isa::Family::pascal) {  // 49 cycles before the first exit or barrier
      uint32_t cycles = 0;
      for (const isa::Instruction& i : code) {
        using M = isa::Mnemonic;
        if ((i.mnemonic == M::EXIT || i.mnemonic == M::BAR) && cycles < 49) return true;
        if (i.mnemonic == M::BRA || i.mnemonic == M::EXIT || i.mnemonic == M::SYNC || leader(i)) break;
        cycles += i.control.stall;
      }
    }
    return false;
  }
  bool leader(const isa::Instruction& i) const {
    for (const isa::Instruction& b : code)
      for (uint32_t o = 0; o < b.operand_count; ++o)
        if (b.operands[o].kind == isa::OperandKind::label)
          if (auto it = at.find(static_cast<uint64_t>(b.operands[o].value)); it != at.end() && &code[it->second] == &i)
            return true;
    return false;
  }
};

// The schedule checker notices faults put in on purpose: every wait removed, every lowered stall that brings a reader closer to its producer
// than the checker's table allows. The other stalls that are lowered are harmless: no result is read within its distance on any path.
TEST(Assembler, CheckerCatchesSeededFaults) {
  size_t waits = 0, stalls = 0, harmful = 0;
  for (const std::string& name : targets) {
    const isa::Target& target = *isa::find_target(name);
    for (const char* file : {"assembler/ptx/query6.ptx", "assembler/ptx/integer.ptx", "assembler/ptx/floating.ptx",
                             "assembler/ptx/control.ptx", "corpus/program_invariants.ptx"}) {
      auto result = assemble_for(parse_file(std::string(RNDN_SOURCE_DIR "/tests/") + file), name);
      ASSERT_TRUE(result.ok());
      auto image = cubin::read(result->cubin);
      ASSERT_TRUE(image.ok());
      const cubin::Kernel& k = image->kernels[0];
      std::vector<isa::Instruction> code;
      std::vector<uint64_t> addresses;
      std::map<uint64_t, uint32_t> at;
      for (const isa::Located& l : isa::unpack(target, k.code)) {
        isa::Instruction i;
        ASSERT_TRUE(isa::decode(target, l.word, l.address, i));
        at[l.address] = static_cast<uint32_t>(code.size());
        code.push_back(i);
        addresses.push_back(l.address);
      }
      ASSERT_TRUE(check_schedule(target, code, addresses).empty()) << file << " " << name;
      std::mt19937 random(7);
      for (int round = 0; round < 60; ++round) {
        std::vector<isa::Instruction> faulty = code;
        const uint32_t where = static_cast<uint32_t>(random() % code.size());
        isa::Control& c = faulty[where].control;
        if (c.wait_mask) {
          c.wait_mask &= static_cast<uint8_t>(c.wait_mask - 1);
          ++waits;
          EXPECT_FALSE(check_schedule(target, faulty, addresses).empty())
              << "a wait removed: " << file << " " << name << " "
              << addresses[where];  // every wait of ours has a reason
        } else if (c.stall >= 4) {
          c.stall = 1;
          ++stalls;
          const bool broken = Walk{target, faulty, at}.broken();
          harmful += broken;
          std::vector<std::string> problems = check_schedule(target, faulty, addresses);
          EXPECT_EQ(broken, !problems.empty())
              << "a stall lowered: " << file << " " << name << fmt::format(" {:#x} ", addresses[where])
              << isa::text(target, code[where]) << (problems.empty() ? "" : problems[0]);
        }
      }
    }
  }
  std::printf("waits removed: %zu; stalls lowered: %zu, of which harmful: %zu\n", waits, stalls, harmful);
  EXPECT_GT(waits, 100u);
  EXPECT_GT(harmful, 100u);
}

// The scheduler's distances are nowhere below the checker's, which were written from the mined tables independently: for every pair of latency
// classes that a target has.
TEST(Assembler, DistancesAreNeverBelowTheCheckers) {
  using isa::RegisterFile;
  using isa::Role;
  size_t compared = 0;
  for (const std::string& name : targets) {
    const isa::Target& target = *isa::find_target(name);
    std::map<isa::LatencyClass, isa::Instruction> of_class;
    for (uint32_t f = 0; f < isa::form_count(); ++f) {
      const isa::FormId form = static_cast<isa::FormId>(f);
      if (isa::form_family(form) != target.family || !(isa::form_targets(form) & target.bit)) continue;
      isa::Instruction i = isa::random_instruction(form, 1);
      of_class.try_emplace(isa::latency_class(i), i);
    }
    EXPECT_GT(of_class.size(), 15u) << name;
    for (const auto& [p, producer] : of_class)
      for (const auto& [c, consumer] : of_class)
        for (auto [file, role, guard] : {std::tuple{RegisterFile::gpr, Role::gpr, false},
                                         std::tuple{RegisterFile::predicate, Role::predicate, false},
                                         std::tuple{RegisterFile::predicate, Role::guard, true},
                                         std::tuple{RegisterFile::uniform, Role::uniform, false}}) {
          if (file == RegisterFile::uniform && target.family == isa::Family::pascal) continue;
          const bool decides = c == isa::LatencyClass::vote || c == isa::LatencyClass::branch ||
                               c == isa::LatencyClass::barrier || c == isa::LatencyClass::convergence;
          const Role asked = role == Role::predicate && decides ? Role::guard : role;
          const uint32_t ours = isa::issue_distance(target, p, c, asked).cycles;
          const uint32_t theirs = checked_distance(target, producer, consumer, 0, file, guard);
          EXPECT_GE(ours, theirs) << name << " class " << static_cast<int>(p) << " to " << static_cast<int>(c)
                                  << " role " << static_cast<int>(role);
          ++compared;
        }
  }
  EXPECT_GT(compared, 5000u);
}

// The defect itself, put back: the load of the descriptor behind an instruction that needs it.
TEST(Assembler, CheckerCatchesAReadBeforeItsDefinition) {
  ptx::Module module = parse_file(RNDN_SOURCE_DIR "/tests/assembler/ptx/descriptor_read_before_its_load.ptx");
  for (const std::string& name : targets) {
    const isa::Target& target = *isa::find_target(name);
    if (target.descriptor_offset == 0) continue;
    auto result = assemble_for(module, name);
    ASSERT_TRUE(result.ok()) << result.error().message;
    auto image = cubin::read(result->cubin);
    ASSERT_TRUE(image.ok());
    std::vector<isa::Instruction> code;
    std::vector<uint64_t> addresses;
    size_t load = SIZE_MAX, reader = SIZE_MAX;
    for (const isa::Located& l : isa::unpack(target, image->kernels[0].code)) {
      isa::Instruction i;
      ASSERT_TRUE(isa::decode(target, l.word, l.address, i));
      if (i.mnemonic == isa::Mnemonic::ULDC) load = code.size();
      if (i.mnemonic == isa::Mnemonic::LDG && reader == SIZE_MAX) reader = code.size();
      code.push_back(i);
      addresses.push_back(l.address);
    }
    ASSERT_LT(load, reader) << name;
    std::rotate(code.begin() + static_cast<ptrdiff_t>(load), code.begin() + static_cast<ptrdiff_t>(load) + 1,
                code.begin() + static_cast<ptrdiff_t>(reader) + 1);
    std::vector<std::string> problems = check_schedule(target, code, addresses);
    bool named = false;
    for (const std::string& p : problems)
      named |= p.find("reads UR4, which is not written before") != std::string::npos;
    EXPECT_TRUE(named) << name;
  }
}

// A guarded write may leave what an earlier, slower instruction wrote: who reads the register waits for both. The checker of schedules knows.
TEST(Assembler, GuardedWritesLeaveOlderOnesInFlight) {
  std::string text =
      ".version 6.0\n.target sm_60\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n .reg .b64 %rd<2>;\n"
      " .reg .f64 %fd<8>;\n .reg .b32 %r<2>;\n .reg .pred %p<3>;\n ld.param.u64 %rd0, [p];\n mov.u32 %r0, %tid.x;\n"
      " ld.global.f64 %fd0, [%rd0];\n ld.global.f64 %fd1, [%rd0+8];\n setp.gt.u32 %p0, %r0, 1;\n"
      " setp.gt.u32 %p1, %r0, 2;\n mov.f64 %fd2, %fd0;\n mov.f64 %fd3, %fd0;\n";
  for (int k = 0; k < 6; ++k)
    text += " add.rn.f64 %fd2, %fd2, %fd1;\n @%p0 mov.f64 %fd2, %fd1;\n @%p1 mov.f64 %fd3, %fd2;\n";
  text += " st.global.f64 [%rd0+16], %fd3;\n st.global.f64 [%rd0+24], %fd2;\n ret;\n}\n";
  for (const std::string& name : targets) {
    auto result = assemble_for(parse_text("x.ptx", text), name);
    EXPECT_TRUE(result.ok()) << name << ": " << result.error().message;
  }
}

// What is not supported is an error that names function, line and instruction; nothing crashes.
TEST(Assembler, UnsupportedInstructionsAreNamed) {
  ptx::Module module = parse_text("x.ptx",
                                  ".version 6.0\n.target sm_60\n.address_size 64\n.extern .func outside;\n"
                                  ".visible .entry k(.param .u64 p)\n{\n call outside;\n ret;\n}\n");
  for (const std::string& target : targets) {
    auto result = assemble_for(module, target);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().fault, Fault::input);
    EXPECT_NE(result.error().message.find("function k, line 7: unsupported call of `outside`"), std::string::npos)
        << result.error().message;
  }
}

// A word of a constant bank that no instruction can name: its move has no form, nor has the move to the register that would take its place.
TEST(Assembler, WordsThatNoMoveReadsAreRefusedWithAReason) {
  const std::pair<const char*, const char*> cases[] = {
      {"ld.param.u64 %rd0, [2]", "a parameter is addressed by its name"},
      {"ld.param.u32 %r0, [8]", "a parameter is addressed by its name"},
      {"ld.param.u32 %r0, [p+2]", "the address is no multiple of 4"},
      {"ld.param.u64 %rd0, [p+6]", "the address is no multiple of 4"},
      {"ld.param.u16 %r0, [p+1]", "the address is no multiple of 2"},
      {"ld.param.u32 %r0, [p+70000]", "address outside the bank"},
      {"ld.const.u32 %r0, [c+1]", "the address is no multiple of 4"},
      {"ld.const.u32 %r0, [3]", "the address is no multiple of 4"},
  };
  for (const auto& [load, reason] : cases) {
    const ptx::Module module =
        parse_text("x.ptx", fmt::format(".version 6.0\n.target sm_60\n.address_size 64\n.const .align 4 .b8 c[8];\n"
                                        ".visible .entry k(.param .u64 p)\n{{\n .reg .b64 %rd<2>;\n .reg .b32 %r<2>;\n"
                                        " mov.u32 %r0, 0;\n mov.u64 %rd0, 0;\n ld.param.u64 %rd1, [p];\n {};\n"
                                        " st.global.u64 [%rd1], %rd0;\n st.global.u32 [%rd1], %r0;\n ret;\n}}\n",
                                        load));
    for (const std::string& target : targets)
      for (const int level : {0, 3}) {
        auto result = assemble_for(module, target, level);
        ASSERT_FALSE(result.ok()) << target << ": " << load;
        EXPECT_EQ(result.error().fault, Fault::input);
        EXPECT_NE(result.error().message.find(fmt::format("line 12: unsupported instruction `{};`: {}", load, reason)),
                  std::string::npos)
            << result.error().message;
      }
  }
}

// How releases since 12 print what 11.8 prints otherwise: of what they print, what takes its place.
const std::pair<std::regex, const char*> newer_print[] = {
    {std::regex(R"(desc\[UR\d+\]\[)"), "["},  // sm_90: the descriptor of global memory, which 11.8 leaves out
    {std::regex(R"(\.reuse\.SIGN)"), ".SIGN"},
    // Two names for products that are none.
    {std::regex(R"(IMAD\.MOV (R\d+, R\d+, 0x1, RZ))"), "IMAD.IADD $1"},
    {std::regex(R"(IMAD (R\d+, R\d+, 0x[1248]0*, RZ))"), "IMAD.SHL $1"},
};

// nvdisasm reads every word that we emit of these files, as we mean it; no form is a guess.
void nvdisasm_reads(const std::string& nvdisasm, const std::vector<std::string>& on,
                    const std::vector<std::string>& paths, bool newer) {
  for (const std::string& name : on) {
    const isa::Target& target = *isa::find_target(name);
    // All code of the target in one flat file: the tool starts once.
    std::vector<std::byte> code;
    for (const std::string& path : paths) {
      const ptx::Module module = parse_file(path);
      if (module.target > target.sm) continue;
      auto result = assemble_for(module, name);
      ASSERT_TRUE(result.ok()) << path;
      auto image = cubin::read(result->cubin);
      ASSERT_TRUE(image.ok()) << image.error().message;
      for (const cubin::Kernel& k : image->kernels) code.insert(code.end(), k.code.begin(), k.code.end());
    }
    std::string file = temporary(".bin");
    ASSERT_TRUE(write_file(file, {reinterpret_cast<const char*>(code.data()), code.size()}).ok());
    int status = 0;
    std::string said = run_command("'" + nvdisasm + "' -ndf -b SM" + name.substr(3) + " " + file, status);
    unlink(file.c_str());
    ASSERT_EQ(status, 0) << name << ": " << said.substr(0, 400);
    std::map<uint64_t, std::string> texts;  // by address; our code has no dual issue, so one instruction a line
    for (size_t at = 0; at < said.size();) {
      size_t end = std::min(said.find('\n', at), said.size());
      std::string line = said.substr(at, end - at);
      at = end + 1;
      size_t open = line.find("/*"), close = line.find("*/"), semicolon = line.find(';');
      if (open == std::string::npos || close == std::string::npos || semicolon == std::string::npos ||
          line.find_first_not_of("0123456789abcdef", open + 2) != close)
        continue;
      std::string text = line.substr(close + 2, semicolon - close - 2);
      size_t from = text.find_first_not_of(" \t"), to = text.find_last_not_of(" \t");
      if (from != std::string::npos)
        texts[std::stoull(line.substr(open + 2, close - open - 2), nullptr, 16)] = text.substr(from, to - from + 1);
    }
    size_t compared = 0, differ = 0;
    for (const isa::Located& l : isa::unpack(target, code)) {
      isa::Instruction i;
      ASSERT_TRUE(isa::decode(target, l.word, l.address, i)) << name << " at " << l.address;
      EXPECT_NE(isa::provenance(i.form), isa::Provenance::inferred) << isa::text(target, i) << " on " << name;
      auto it = texts.find(l.address);
      if (it == texts.end()) {  // nvdisasm 11.8 hides one instruction of sm_90
        EXPECT_TRUE(i.mnemonic == isa::Mnemonic::VIMNMX && !newer)
            << name << " at " << fmt::format("{:#x}", l.address) << ": " << isa::text(target, i);
        continue;
      }
      auto squeeze = [](const std::string& s) {
        std::string out;
        for (char c : s)
          if (!(c == ' ' && !out.empty() && out.back() == ' ')) out += c;
        return out;
      };
      std::string ours = squeeze(isa::text(target, i)), theirs = squeeze(it->second);
      if (newer)
        for (const auto& [what, other] : newer_print) theirs = std::regex_replace(theirs, what, other);
      bool label = false;
      for (uint32_t o = 0; o < i.operand_count; ++o) label |= i.operands[o].kind == isa::OperandKind::label;
      if (label) {  // the target is spelled in several ways; the simulator's results tell whether it is right
        auto head = [](const std::string& s) {
          return s.substr(0, std::min({s.find(" 0x"), s.find(" `("), s.find(" ("), s.size()}));
        };
        ours = head(ours), theirs = head(theirs);
      }
      if (ours != theirs && ++differ <= 20)
        ADD_FAILURE() << name << " at " << fmt::format("{:#x}", l.address) << ": `" << ours << "` is read as `"
                      << theirs << "`";
      ++compared;
    }
    EXPECT_EQ(differ, 0u);
    EXPECT_GT(compared, 1000u);
  }
}

TEST(Assembler, NvdisasmReadsWhatWeMean) {
  std::string why, nvdisasm = reference_tool("nvdisasm", why);
  if (nvdisasm.empty()) GTEST_SKIP() << "skipped: " << why;
  nvdisasm_reads(nvdisasm, targets, ptx_files(), false);
}

// A second witness, of today, for the targets that it has.
TEST(Assembler, NewerNvdisasmReadsWhatWeMean) {
  std::string why, nvdisasm = test::newer_tool("nvdisasm", why);
  if (nvdisasm.empty()) GTEST_SKIP() << "skipped: " << why;
  std::vector<std::string> on, paths = ptx_files();
  for (const std::string& name : targets)
    if (name >= "sm_75") on.push_back(name);
  for (const auto& e : std::filesystem::directory_iterator(RNDN_SOURCE_DIR "/tests/corpus"))
    if (e.path().extension() == ".ptx") paths.push_back(e.path().string());
  nvdisasm_reads(nvdisasm, on, paths, true);
}

// .minnctapersm asks for no more than a multiprocessor can hold: beyond, it says nothing, as with ptxas.
TEST(Assembler, MoreBlocksThanThereCanBeLimitNoRegisters) {
  const auto registers = [](const std::string& target, uint32_t threads, uint32_t blocks) {
    std::string text = fmt::format(
        ".version 7.8\n.target sm_61\n.address_size 64\n.visible .entry k(.param .u64 p)\n.maxntid {}, 1, "
        "1\n.minnctapersm {}\n{{\n"
        ".reg .b64 %d; .reg .f32 %f<101>;\nld.param.u64 %d, [p];\n",
        threads, blocks);
    for (int k = 0; k < 100; ++k) text += fmt::format("ld.volatile.global.f32 %f{}, [%d+{}];\n", k, 4 * k);
    for (int k = 0; k < 100; ++k) text += fmt::format("st.volatile.global.f32 [%d+{}], %f{};\n", 4 * k, 99 - k);
    auto made = assemble_for(parse_text("bounds.ptx", text + "ret;\n}\n"), target);
    EXPECT_TRUE(made.ok());
    return made.ok() ? made->kernels[0].registers : 0;
  };
  struct Bounds {
    uint32_t threads, blocks;
    std::array<uint32_t, 3> most;  // of sm_61, sm_86, sm_90; 255: no limit of its own
  };
  for (const Bounds& b : {Bounds{1024, 2, {32, 64, 32}},
                          {256, 8, {32, 255, 32}},
                          {256, 6, {40, 40, 40}},
                          {640, 3, {32, 96, 32}},
                          {32, 16, {128, 128, 128}},
                          {32, 24, {80, 255, 80}},
                          {32, 33, {255, 255, 255}}}) {
    const std::array<std::string, 3> on = {"sm_61", "sm_86", "sm_90"};
    for (size_t k = 0; k < on.size(); ++k) {
      const uint32_t used = registers(on[k], b.threads, b.blocks);
      EXPECT_LE(used, b.most[k]) << on[k] << " " << b.threads << " " << b.blocks;
      EXPECT_GE(used, std::min(b.most[k], 101u) - 3) << on[k] << " " << b.threads << " " << b.blocks;
    }
  }
}

}  // namespace
}  // namespace rndn::assembler::testing
