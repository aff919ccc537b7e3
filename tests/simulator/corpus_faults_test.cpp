// Faults seeded into ptxas's -O3 code for the kernels of tests/corpus: the simulator's checks notice what would go wrong on a real GPU.
//
// Kinds of faults, each placed at a dependence between instructions of one block:
//   stall      the stall count of a producer of fixed latency lowered to 1, so that its reader comes before the known safe distance
//   wait       one scoreboard less to wait for
//   barrier    a result (or the reading of sources) is not announced any more
//   register   one source register exchanged for its neighbour
//   swap       two neighbours exchanged, the second of which reads what the first writes
// The first three change when things happen: the checks must report them, and where they do not, the result must be the right one. The last two change
// what is computed: a report or another result counts as caught. What is left is told apart: never executed with these inputs, or without effect.
//
// $RNDN_FAULTS is the number of faults per kernel and kind (default 1); with RNDN_RECORD=1 the table goes to docs/measurements/faults.tsv.
#include <map>
#include <set>

#include "assembler/isa/isa.h"
#include "assembler/isa/latencies.h"
#include "tests/assembler/support.h"
#include "tests/support/corpus.h"
#include "tests/support/status.h"
#include "tests/support/targets.h"

namespace rndn::assembler::testing {
namespace {

using rndn::testing::CorpusFile;

struct Fault {
  std::string kind;
  size_t at = 0;  // index of the changed instruction
  std::map<size_t, isa::Instruction> changed;
};

struct Count {
  size_t seeded = 0, caught = 0, not_executed = 0, without_effect = 0, wrong = 0;
};

struct Code {
  const isa::Target* target;
  std::vector<isa::Located> words;
  std::vector<isa::Instruction> code;
  std::vector<bool> starts_block;
};

bool is_control(const isa::Instruction& in) {
  switch (isa::latency_class(in)) {
    case isa::LatencyClass::branch:
    case isa::LatencyClass::convergence:
    case isa::LatencyClass::barrier:
    case isa::LatencyClass::fence:
    case isa::LatencyClass::wait:
    case isa::LatencyClass::nop: return true;
    default: return false;
  }
}

// Calls f(file, register, written).
template <class F>
void registers(const isa::Instruction& in, F&& f) {
  for (uint32_t k = 0; k < isa::slot_count(in.form); ++k) {
    const isa::Operand& o = in.operands[k];
    const isa::RegisterFile file = isa::register_file(in, k);
    const isa::Access a = isa::access(in, k);
    if (file == isa::RegisterFile::gpr && o.reg != isa::RZ)
      for (uint32_t n = 0; n < isa::register_count(in, k); ++n)
        f(file, o.reg + n, a == isa::Access::write || a == isa::Access::read_write);
    if (file == isa::RegisterFile::predicate && o.reg != isa::PT) f(file, o.reg, a == isa::Access::write);
  }
}
bool reads_gpr(const isa::Instruction& in, uint32_t reg) {
  bool found = false;
  registers(in, [&](isa::RegisterFile file, uint32_t r, bool written) {
    found |= file == isa::RegisterFile::gpr && r == reg && !written;
  });
  return found;
}
bool writes_gpr(const isa::Instruction& in, uint32_t reg) {
  bool found = false;
  registers(in, [&](isa::RegisterFile file, uint32_t r, bool written) {
    found |= file == isa::RegisterFile::gpr && r == reg && written;
  });
  return found;
}

// All faults of the code.
std::vector<Fault> faults_of(const Code& c) {
  std::vector<Fault> all;
  auto add = [&](const char* kind, size_t at, std::map<size_t, isa::Instruction> changed) {
    all.push_back({kind, at, std::move(changed)});
  };
  size_t end = 0;  // after the last EXIT comes padding
  for (size_t i = 0; i < c.code.size(); ++i)
    if (c.code[i].mnemonic == isa::Mnemonic::EXIT || c.code[i].mnemonic == isa::Mnemonic::RET ||
        c.code[i].mnemonic == isa::Mnemonic::RET_REL)
      end = i + 1;
  for (size_t i = 0; i < end; ++i) {
    const isa::Instruction& in = c.code[i];
    for (uint32_t bit = 0; bit < 6; ++bit)
      if (in.control.wait_mask >> bit & 1) {
        isa::Instruction x = in;
        x.control.wait_mask &= static_cast<uint8_t>(~(1u << bit));
        add("wait", i, {{i, x}});
      }
    if (in.control.write_barrier < 6) {
      isa::Instruction x = in;
      x.control.write_barrier = 7;
      add("barrier", i, {{i, x}});
    }
    if (in.control.read_barrier < 6) {
      isa::Instruction x = in;
      x.control.read_barrier = 7;
      add("barrier", i, {{i, x}});
    }
    if (is_control(in)) continue;
    for (uint32_t k = 0; k < isa::slot_count(in.form); ++k)
      if (in.operands[k].kind == isa::OperandKind::gpr && isa::access(in, k) == isa::Access::read &&
          in.operands[k].reg < 250 && isa::register_count(in, k) == 1) {
        isa::Instruction x = in;
        x.operands[k].reg ^= 1;
        add("register", i, {{i, x}});
        break;
      }
    if (i + 1 < end && !c.starts_block[i + 1] && !is_control(c.code[i + 1])) {
      bool depends = false;
      registers(in, [&](isa::RegisterFile file, uint32_t r, bool written) {
        depends |= file == isa::RegisterFile::gpr && written && reads_gpr(c.code[i + 1], r);
      });
      if (depends) add("swap", i, {{i, c.code[i + 1]}, {i + 1, in}});
    }
    // The first reader of what is written here.
    if (isa::scoreboards(*c.target, isa::latency_class(in)).write || in.control.stall < 2) continue;
    bool near = false;
    registers(in, [&](isa::RegisterFile file, uint32_t r, bool written) {
      if (file != isa::RegisterFile::gpr || !written) return;
      uint32_t distance = 1;  // with the lowered stall
      for (size_t j = i + 1; j < end && !c.starts_block[j]; ++j) {
        if (reads_gpr(c.code[j], r)) {
          near |= distance < isa::issue_distance(*c.target, in, c.code[j], isa::Role::gpr).cycles;
          break;
        }
        if (writes_gpr(c.code[j], r) || is_control(c.code[j])) break;
        distance += c.code[j].control.stall;
      }
    });
    if (near) {
      isa::Instruction x = in;
      x.control.stall = 1;
      add("stall", i, {{i, x}});
    }
  }
  return all;
}

class CorpusFaults : public ::testing::TestWithParam<std::string> {};

TEST_P(CorpusFaults, AreCaughtOrHarmless) {
  std::string why;
  const std::string ptxas = reference_tool("ptxas", why);
  if (ptxas.empty()) GTEST_SKIP() << "skipped: " << why;
  const isa::Target& target = *isa::find_target(GetParam());
  const size_t per_kernel = std::getenv("RNDN_FAULTS") ? std::stoul(std::getenv("RNDN_FAULTS")) : 1;
  std::vector<CorpusFile> files = rndn::testing::corpus();
  if (const char* only = std::getenv("RNDN_CORPUS"))
    std::erase_if(files, [&](const CorpusFile& f) { return f.name.find(only) == std::string::npos; });
  const std::string path = temporary(".ptx");
  std::string said;
  std::ofstream(path) << rndn::testing::corpus_module(files, target.sm);
  const std::vector<std::byte> cubin = assemble_with_ptxas(ptxas, path, GetParam(), said);
  unlink(path.c_str());
  ASSERT_FALSE(cubin.empty()) << said;
  auto image = cubin::read(cubin);
  ASSERT_TRUE(image.ok()) << image.error().message;
  const std::vector<uint64_t> in = input_words();
  std::map<std::string, Count> table;
  std::mt19937_64 random(4);
  size_t kernels = 0, silent = 0;
  for (const cubin::Kernel& kernel : image->kernels) {
    cubin::Image one = *image;
    one.kernels = {kernel};
    const CorpusFile* file = nullptr;
    for (const CorpusFile& f : files)
      if (f.body.find(".entry " + kernel.name + "(") != std::string::npos) file = &f;
    ASSERT_TRUE(file) << kernel.name;
    Code code{&target, isa::unpack(target, kernel.code), {}, {}};
    code.starts_block.assign(code.words.size() + 1, false);
    std::map<uint64_t, size_t> at_address;
    for (size_t i = 0; i < code.words.size(); ++i) {
      isa::Instruction x;
      ASSERT_TRUE(isa::decode(target, code.words[i].word, code.words[i].address, x)) << kernel.name;
      code.code.push_back(x);
      at_address[code.words[i].address] = i;
    }
    for (size_t i = 0; i < code.code.size(); ++i)
      for (const isa::Operand& o : code.code[i].operands)
        if (o.kind == isa::OperandKind::label)
          if (auto t = at_address.find(static_cast<uint64_t>(o.value)); t != at_address.end())
            code.starts_block[t->second] = true;

    uint64_t limit = 3'000'000;
    auto run = [&](const std::map<size_t, isa::Instruction>& changed, sim::Counters* counters = nullptr) {
      std::vector<isa::Word> plain;
      for (size_t i = 0; i < code.words.size(); ++i) {
        isa::Word w = code.words[i].word;
        if (auto c = changed.find(i); c != changed.end()) {
          EXPECT_TRUE(isa::encode(target, c->second, code.words[i].address, w));
        }
        plain.push_back(w);
      }
      one.kernels[0].code = isa::pack(target, plain);
      sim::Options o;
      o.check_hazards = o.deterministic = true;
      o.max_warp_instructions = limit;
      return run_simulator(GetParam(), cubin::write(one), kernel.name, in, o, 16 << 20, counters);
    };
    sim::Counters counters;
    const auto right = run({}, &counters);
    if (!right.ok()) {
      ADD_FAILURE() << kernel.name << " without a fault: " << right.error().message;
      continue;
    }
    ++kernels;
    limit = 4 * counters.warp_instructions + 10'000;
    auto same = [&](const std::vector<uint64_t>& got) {
      for (size_t k = 0; k < got.size(); ++k)
        if (!rndn::testing::same_word(*file, (*right)[k], got[k])) return false;
      return true;
    };
    std::vector<Fault> faults = faults_of(code);
    std::shuffle(faults.begin(), faults.end(), random);
    std::map<std::string, size_t> taken;
    for (const Fault& f : faults) {
      if (taken[f.kind]++ >= per_kernel) continue;
      Count& count = table[f.kind];
      ++count.seeded;
      const auto got = run(f.changed);
      const bool timing = f.kind == "stall" || f.kind == "wait" || f.kind == "barrier";
      if (!got.ok() || (!timing && !same(*got))) {
        ++count.caught;
        continue;
      }
      if (!same(*got)) {
        ++silent, ++count.wrong;
        ADD_FAILURE() << kernel.name << ": silent wrong result of a fault (" << f.kind << ") at "
                      << isa::text(target, code.code[f.at]);
        continue;
      }
      // Never executed when the warps may as well end there.
      isa::Instruction exit;
      ASSERT_TRUE(isa::make(target, isa::Mnemonic::EXIT, {}, exit));
      exit.control = code.code[f.at].control;
      exit.control.write_barrier = exit.control.read_barrier = 7;
      exit.control.stall = 15;
      const auto ended = run({{f.at, exit}});
      ++(ended.ok() && same(*ended) ? count.not_executed : count.without_effect);
    }
  }
  std::string lines;
  for (const auto& [kind, c] : table) {
    std::printf("%s %-8s %zu seeded, %zu caught, %zu not executed, %zu without effect, %zu silent wrong results\n",
                GetParam().c_str(), kind.c_str(), c.seeded, c.caught, c.not_executed, c.without_effect, c.wrong);
    lines += fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\n", GetParam(), kind, c.seeded, c.caught, c.not_executed,
                         c.without_effect, c.wrong);
    rndn::testing::record_status("count", "faults in ptxas's code of the corpus caught: " + kind, GetParam(),
                                 fmt::format("{} of {}", c.caught, c.seeded));
    EXPECT_GE(2 * c.caught, c.seeded) << kind;
  }
  EXPECT_EQ(silent, 0u);
  if (!std::getenv("RNDN_CORPUS")) {
    EXPECT_GE(kernels, 100u);
  }
  if (std::getenv("RNDN_RECORD")) {
    const std::string record = RNDN_SOURCE_DIR "/docs/measurements/faults.tsv";
    std::string text =
        "# Faults seeded into ptxas's -O3 code of tests/corpus (test_corpus_faults): target, kind, seeded, caught, not "
        "executed, "
        "without effect, silent wrong results\n";
    std::ifstream old(record);
    for (std::string line; std::getline(old, line);)
      if (!line.empty() && line[0] != '#' && line.rfind(GetParam() + "\t", 0) != 0) text += line + "\n";
    old.close();
    std::ofstream(record) << text << lines;
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, CorpusFaults, ::testing::ValuesIn(isa::target_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace rndn::assembler::testing
