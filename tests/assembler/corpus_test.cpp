// Every kernel of the corpus, on every target that can run it: our code in the simulator with the hazard checks on = ptxas's code in the simulator
// = the PTX interpreter. Our code passes the independent checkers after each pass, at every level.
#include "tests/support/corpus.h"
#include "tests/assembler/support.h"
#include "tests/support/every_case.h"
#include "tests/support/status.h"

namespace rndn::assembler::testing {
namespace {

using rndn::testing::CorpusFile;

std::string difference_of(const CorpusFile& f, const std::vector<uint64_t>& expected,
                          const std::vector<uint64_t>& got) {
  for (size_t k = 0; k < expected.size(); ++k)
    if (!rndn::testing::same_word(f, expected[k], got[k]))
      return fmt::format("word {}: expected {:#x}, got {:#x}", k, expected[k], got[k]);
  return {};
}

// Files to look at: all, or those whose names contain $RNDN_CORPUS.
std::vector<CorpusFile> chosen() {
  std::vector<CorpusFile> files = rndn::testing::corpus();
  if (const char* only = std::getenv("RNDN_CORPUS"))
    std::erase_if(files, [&](const CorpusFile& f) { return f.name.find(only) == std::string::npos; });
  return files;
}

std::vector<std::string> entries(const ptx::Module& m) {
  std::vector<std::string> names;
  for (const ptx::Function& f : m.functions)
    if (f.is_entry) names.push_back(f.name);
  return names;
}

TEST(Corpus, OurCodePtxasCodeAndThePtxAgree) {
  std::string why, ptxas = reference_tool("ptxas", why);
  if (ptxas.empty()) std::printf("without ptxas: %s\n", why.c_str());
  const std::vector<uint64_t> in = input_words();
  const std::vector<CorpusFile> files = chosen();
  std::map<std::string, std::vector<uint64_t>> expected;
  std::map<std::string, ptx::Module> modules;
  for (const CorpusFile& f : files) {
    ptx::Module& m = modules[f.name] = parse_text(f.name, f.text);
    for (const std::string& kernel : entries(m)) {
      auto out = run_interpreter(m, kernel, in);
      ASSERT_TRUE(out.ok()) << kernel << ": " << out.error().message;
      EXPECT_NE(*out, std::vector<uint64_t>(out_words)) << kernel << " writes nothing but zeros";
      expected[kernel] = *out;
    }
  }
  for (const std::string& target : targets) {
    const uint32_t sm = isa::find_target(target)->sm;
    std::vector<std::byte> theirs;
    if (!ptxas.empty()) {
      std::string path = temporary(".ptx"), said;
      std::ofstream(path) << rndn::testing::corpus_module(files, sm);
      theirs = assemble_with_ptxas(ptxas, path, target, said);
      EXPECT_FALSE(theirs.empty()) << target << ": " << said;
      unlink(path.c_str());
    }
    size_t kernels = 0, compared = 0;
    rndn::test::Sample sample(3);
    double log_cycles = 0;  // of issue cycles, ours to ptxas's
    for (const CorpusFile& f : files) {
      if (f.target > sm) continue;
      const ptx::Module& m = modules[f.name];
      auto ours = assemble_for(m, target);
      if (!ours.ok()) {
        ADD_FAILURE() << f.name << " " << target << ": " << ours.error().message;
        continue;
      }
      Result<Assembled> few = Error{};
      const bool is_tight = sample.has_next();
      if (is_tight) few = assemble_for(m, target, 3, 24);
      EXPECT_TRUE(few.ok() || !is_tight) << f.name << " " << target << " with 24 registers: " << few.error().message;
      for (const std::string& kernel : entries(m)) {
        ++kernels;
        sim::Counters our_counters, their_counters;
        for (const auto& made : {&ours, &few}) {
          if (!made->ok()) continue;
          auto got = run_simulator(target, (*made)->cubin, kernel, in, true, made == &ours ? &our_counters : nullptr);
          const char* how = made == &few ? " (24 registers)" : "";
          if (!got.ok())
            ADD_FAILURE() << kernel << " " << target << how << ": " << got.error().message;
          else
            EXPECT_EQ(difference_of(f, expected[kernel], *got), "") << kernel << " " << target << how;
        }
        if (theirs.empty()) continue;
        // ptxas merges halves into registers that it has never written, and ignores what that gives.
        auto reference = run_simulator(target, theirs, kernel, in, true, &their_counters, false);
        if (!reference.ok())
          ADD_FAILURE() << kernel << " " << target << " (ptxas): " << reference.error().message;
        else
          EXPECT_EQ(difference_of(f, expected[kernel], *reference), "") << kernel << " " << target << " (ptxas)";
        if (our_counters.issue_cycles == 0 || their_counters.issue_cycles == 0) continue;
        const double ratio =
            static_cast<double>(our_counters.issue_cycles) / static_cast<double>(their_counters.issue_cycles);
        log_cycles += std::log(ratio);
        ++compared;
      }
    }
    std::printf("%s: %zu kernels\n", target.c_str(), kernels);
    if (compared) {
      const double cycles = std::exp(log_cycles / static_cast<double>(compared));
      std::printf("%s: issue cycles against ptxas's, geometric mean of %zu: %.3f\n", target.c_str(), compared, cycles);
      EXPECT_LE(cycles, 1.25) << target;
      rndn::testing::record_status("count", "issue cycles of the corpus against ptxas's, geometric mean", target,
                                   fmt::format("{:.2f}", cycles));
    }
    EXPECT_EQ(compared, theirs.empty() ? 0 : kernels) << target;
    if (!HasFailure())
      rndn::testing::record_status("count",
                                   "corpus kernels whose results agree with ptxas's code and the PTX interpreter",
                                   target, std::to_string(kernels));
  }
}

// The same of later releases: every word of their code is known and written back, and what it does is what the PTX does. ptxas 13's code at -O0
// announces no result and waits for none, so that only its words and results are looked at.
TEST(Corpus, CodeOfNewerPtxasAndThePtxAgree) {
  const std::vector<uint64_t> in = input_words();
  const std::vector<CorpusFile> files = chosen();
  std::map<std::string, std::vector<uint64_t>> expected;
  for (const auto& [program, release, least] :
       {std::tuple{"ptxas-12.9", "12.9", 60u}, std::tuple{"ptxas", "13.", 75u}}) {
    std::string why, ptxas = test::newer_tool(program, why, release);
    if (ptxas.empty()) GTEST_SKIP() << "skipped: " << why;
    for (const std::string& target : targets) {
      const isa::Target& t = *isa::find_target(target);
      if (t.sm < least) continue;
      size_t words = 0, kernels = 0;
      for (const int level : {0, 1, 3}) {
        for (const char* folder : {"tests/corpus", "tests/isa/corpus"}) {
          const bool runs = folder == std::string_view("tests/corpus");
          std::string path = temporary(".ptx"), said;
          std::ofstream(path) << rndn::testing::corpus_module(
              runs ? files : rndn::testing::corpus(fmt::format("{}/{}", RNDN_SOURCE_DIR, folder)), t.sm);
          const std::vector<std::byte> theirs = assemble_with_ptxas(ptxas, path, target, said, level);
          unlink(path.c_str());
          ASSERT_FALSE(theirs.empty()) << program << " " << target << ": " << said;
          const auto image = cubin::read(theirs);
          ASSERT_TRUE(image.ok()) << program << " " << target << ": " << image.error().message;
          for (const cubin::Kernel& k : image->kernels)
            for (const isa::Located& l : isa::unpack(t, k.code)) {
              isa::Instruction i;
              isa::Word back;
              ++words;
              if (!isa::decode(t, l.word, l.address, i) || !isa::encode(t, i, l.address, back) || back != l.word)
                ADD_FAILURE() << fmt::format("{} -O{} {} {} at {:#x}: {:016x}_{:016x}", program, level, target, k.name,
                                             l.address, l.word.hi, l.word.lo);
            }
          for (const CorpusFile& f : files) {
            if (!runs || f.target > t.sm) continue;
            const ptx::Module m = parse_text(f.name, f.text);
            for (const std::string& kernel : entries(m)) {
              auto [right, is_new] = expected.try_emplace(kernel);
              if (is_new) right->second = *run_interpreter(m, kernel, in);
              const auto got = run_simulator(target, theirs, kernel, in, level > 0, nullptr, false);
              ++kernels;
              if (!got.ok())
                ADD_FAILURE() << kernel << " " << target << " -O" << level << " (" << program
                              << "): " << got.error().message;
              else
                EXPECT_EQ(difference_of(f, right->second, *got), "")
                    << kernel << " " << target << " -O" << level << " (" << program << ")";
            }
          }
        }
      }
      std::printf("%s, %s: %zu words, %zu runs of kernels\n", program, target.c_str(), words, kernels);
      if (!HasFailure())
        rndn::testing::record_status("count", fmt::format("words of {} that are known", program), target,
                                     std::to_string(words));
    }
  }
}

TEST(Corpus, AssemblesAtEveryLevelAndWithFewRegisters) {
  for (const CorpusFile& f : chosen()) {
    ptx::Module m = parse_text(f.name, f.text);
    for (const std::string& target : targets) {
      if (f.target > isa::find_target(target)->sm) continue;
      for (auto [level, limit] : {std::pair{0, 0}, {1, 0}, {2, 0}, {3, 32}}) {
        auto result = assemble_for(m, target, level, static_cast<uint32_t>(limit));
        EXPECT_TRUE(result.ok()) << f.name << " " << target << " -O" << level << ": " << result.error().message;
      }
    }
  }
}

}  // namespace
}  // namespace rndn::assembler::testing
