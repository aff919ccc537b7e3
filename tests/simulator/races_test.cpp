// Races in shared memory: kernels that race are caught, by each kind of access and for what is missing; the corpus is silent, ptxas's code and ours.
#include <map>

#include "tests/assembler/support.h"
#include "tests/support/corpus.h"
#include "tests/support/status.h"

namespace rndn::assembler::testing::races_test {
namespace {

using rndn::testing::CorpusFile;

sim::Options race_options() {
  sim::Options o;
  o.check_races = o.deterministic = true;
  o.max_warp_instructions = 3'000'000;
  return o;
}

// The text's code by maker: ours, and ptxas's where it is found.
std::map<std::string, std::vector<std::byte>> code_of(const std::string& text, const std::string& target) {
  std::map<std::string, std::vector<std::byte>> cubins;
  const auto ours = assemble_for(parse_text("races.ptx", text), target);
  EXPECT_TRUE(ours.ok()) << ours.error().message;
  if (ours.ok()) cubins["rndn"] = ours->cubin;
  std::string why;
  const std::string ptxas = reference_tool("ptxas", why);
  if (ptxas.empty()) return cubins;
  const std::string path = temporary(".ptx");
  std::string said;
  std::ofstream(path) << text;
  cubins["ptxas"] = assemble_with_ptxas(ptxas, path, target, said);
  unlink(path.c_str());
  EXPECT_FALSE(cubins["ptxas"].empty()) << said;
  return cubins;
}

class Races : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Targets, Races, ::testing::ValuesIn(isa::target_names()), [](const auto& info) { return info.param; });

TEST_P(Races, CorpusIsSilent) {
  const isa::Target& target = *isa::find_target(GetParam());
  const std::vector<CorpusFile> files = rndn::testing::corpus();
  const std::string text = rndn::testing::corpus_module(files, target.sm);
  const std::vector<uint64_t> in = input_words();
  for (const auto& [maker, cubin] : code_of(text, GetParam())) {
    const auto image = cubin::read(cubin);
    ASSERT_TRUE(image.ok()) << image.error().message;
    size_t silent = 0, shared = 0;
    for (const cubin::Kernel& kernel : image->kernels) {
      const auto got = run_simulator(GetParam(), cubin, kernel.name, in, race_options(), 16 << 20);
      EXPECT_TRUE(got.ok()) << maker << ": " << got.error().message;
      silent += got.ok();
      shared += kernel.shared_bytes != 0;
    }
    EXPECT_GE(silent, 100u) << maker;
    EXPECT_GE(shared, 10u) << maker;
    std::printf("%s %s: %zu of %zu kernels silent, %zu with shared memory\n", GetParam().c_str(), maker.c_str(), silent,
                image->kernels.size(), shared);
    rndn::testing::record_status("count", "corpus kernels without a race in shared memory, code of " + maker,
                                 GetParam(), fmt::format("{} of {}", silent, image->kernels.size()));
  }
}

// Every bar.sync of the corpus taken away in turn. What is left silent is named: barriers that its inputs do not need.
TEST_P(Races, ARemovedBarrierIsNoticed) {
  const isa::Target& target = *isa::find_target(GetParam());
  const std::vector<uint64_t> in = input_words();
  size_t removed = 0, caught = 0;
  std::string silent;
  for (const CorpusFile& file : rndn::testing::corpus()) {
    if (file.target > target.sm) continue;
    for (size_t at = file.text.find("bar.sync"), k = 1; at != std::string::npos;
         at = file.text.find("bar.sync", at + 1), ++k) {
      std::string text = file.text;
      text.erase(at, text.find(';', at) + 1 - at);
      const auto made = assemble_for(parse_text(file.name, text), GetParam());
      ASSERT_TRUE(made.ok()) << made.error().message;
      const auto image = cubin::read(made->cubin);
      ASSERT_TRUE(image.ok());
      const auto got = run_simulator(GetParam(), made->cubin, image->kernels[0].name, in, race_options(), 16 << 20);
      ++removed;
      if (!got.ok() && got.error().message.find("race in shared memory") != std::string::npos)
        ++caught;
      else
        silent += fmt::format(" {}:{}", file.name, k);
    }
  }
  // These order accesses to global memory, or nothing at all: no shared memory, or every thread reads what it wrote itself.
  EXPECT_EQ(
      silent,
      " atomics_global:1 barrier_counts:2 barrier_counts:3 barrier_counts:4 global_variables:1 memory_shared_kinds:1");
  EXPECT_GE(removed, 44u);
  rndn::testing::record_status("count", "corpus barriers whose removal the race check notices", GetParam(),
                               fmt::format("{} of {}", caught, removed));
}

// 96 threads, three warps. %r: the thread; %a: its word of `block`; %i: its value, another for each thread.
std::string kernel(const std::string& body) {
  return ".version 6.0\n.target sm_60\n.address_size 64\n.shared .align 16 .b8 block[1024];\n"
         ".visible .entry k(.param .u64 in, .param .u64 out) {\n"
         ".reg .pred %p, %q; .reg .b32 %r, %a, %i, %x, %y, %w; .reg .b64 %o, %d;\n"
         "mov.u32 %r, %tid.x; mov.u32 %a, block; mad.lo.u32 %a, %r, 4, %a; add.u32 %i, %r, 1000; shr.u32 %w, %r, 5;\n"
         "ld.param.u64 %o, [out]; cvta.to.global.u64 %o, %o; mad.wide.u32 %o, %r, 4, %o; mov.u32 %x, 0;\n" +
         body + "\nst.global.u32 [%o], %x; ret; }\n";
}

struct Case {
  const char* name;
  const char* body;
  const char* volta;               // part of the report; "" when silent
  const char* pascal;              // the same on Pascal, whose warps run in lock step
  const char* ptxas_75 = nullptr;  // of ptxas's code for sm_75, which here lets one lane add for its warp
};
// A race between warps reads the same on both.
constexpr const char *of_warps = "no barrier orders", *of_lanes = "neither a barrier nor bar.warp.sync orders";
const Case cases[] = {
    {"WriteWrite", "and.b32 %x, %r, 31; mov.u32 %a, block; mad.lo.u32 %a, %x, 4, %a; st.shared.u32 [%a], %i;", of_warps,
     of_warps},
    {"WriteWriteOfOneValue", "mov.u32 %y, 7; st.shared.u32 [block], %y; bar.sync 0; ld.shared.u32 %x, [block];", "",
     ""},
    {"WriteWriteOfOneInstruction", "st.shared.u32 [block+512], %i;", of_lanes, of_lanes},
    {"WriteThenReadAcrossWarps", "st.shared.u32 [%a], %i; ld.shared.u32 %x, [%a+128];", of_warps, of_warps},
    {"ReadThenWriteAcrossWarps",
     "st.shared.u32 [%a], %i; bar.sync 0; ld.shared.u32 %x, [%a+128]; st.shared.u32 [%a], %x;", of_warps, of_warps},
    {"ReadThenWriteWithBarriers",
     "st.shared.u32 [%a], %i; bar.sync 0; ld.shared.u32 %x, [%a+128]; bar.sync 0; st.shared.u32 [%a], %x;", "", ""},
    // Within the warp: lane l reads what l ^ 1 wrote.
    {"LanesOfAWarp", "st.shared.u32 [%a], %i; xor.b32 %a, %a, 4; ld.shared.u32 %x, [%a];", of_lanes, ""},
    {"LanesOfAWarpSynchronised", "st.shared.u32 [%a], %i; bar.warp.sync -1; xor.b32 %a, %a, 4; ld.shared.u32 %x, [%a];",
     "", ""},
    // A warp's own synchronisation orders nothing between warps.
    {"WarpSyncIsNoBarrier", "st.shared.u32 [%a], %i; bar.warp.sync -1; ld.shared.u32 %x, [%a+128];", of_warps,
     of_warps},
    // Threads write neighbouring bytes: no race; one that reads the whole word races.
    {"Bytes", "mov.u32 %a, block; add.u32 %a, %a, %r; st.shared.u8 [%a], %i; bar.sync 0; ld.shared.u8 %x, [%a];", "",
     ""},
    {"BytesAndWords",
     "mov.u32 %a, block; add.u32 %a, %a, %r; st.shared.u8 [%a], %i; setp.ne.u32 %p, %r, 95; @%p bra L; "
     "ld.shared.u32 %x, [block+60]; L:",
     of_warps, of_warps},
    {"WordsAndBytes",
     "st.shared.u32 [%a], %i; setp.ne.u32 %p, %r, 95; @%p bra L; ld.shared.u8 %x, [block+61]; L:", of_warps, of_warps},
    {"Atomics", "atom.shared.add.u32 %x, [block], %i; bar.sync 0; ld.shared.u32 %x, [block];", "", ""},
    {"AtomicsAndReads", "red.shared.add.u32 [block], %i; ld.shared.u32 %x, [block];", of_lanes, of_warps},
    {"AtomicsAndWrites",
     "setp.eq.u32 %p, %r, 0; @%p st.shared.u32 [block], %r; red.shared.add.u32 [block], %i; bar.sync 0;", of_lanes,
     of_warps, of_warps},
    // Float atomics become loops of compare-and-swap.
    {"FloatAtomics",
     "setp.eq.u32 %p, %r, 0; @%p st.shared.u32 [block], %r; bar.sync 0; red.shared.add.f32 [block], 0f3f800000; "
     "bar.sync 0; ld.shared.u32 %x, [block];",
     "", ""},
    // Warp 0 hands to warp 1 by barrier 1, and warp 1 to warp 2 by barrier 2: that orders warp 0 before warp 2.
    {"Chain",
     "setp.ne.u32 %p, %w, 0; @%p bra B; st.shared.u32 [%a], %i; membar.cta; bar.arrive 1, 64; bra E; B: setp.ne.u32 "
     "%p, %w, 1; "
     "@%p bra C; bar.sync 1, 64; membar.cta; bar.arrive 2, 64; bra E; C: bar.sync 2, 64; ld.shared.u32 %x, [%a+-256]; "
     "E:",
     "", ""},
    // The same, but what warp 2 waits for has nothing to do with warp 0.
    {"BrokenChain",
     "setp.ne.u32 %p, %w, 0; @%p bra B; st.shared.u32 [%a], %i; membar.cta; bar.arrive 1, 64; bra E; B: setp.ne.u32 "
     "%p, %w, 1; "
     "@%p bra C; bar.arrive 2, 64; bar.sync 1, 64; bra E; C: bar.sync 2, 64; ld.shared.u32 %x, [%a+-256]; E:",
     of_warps, of_warps},
    // An arrival does not make the one who arrives wait: what comes after it is not ordered after the others.
    {"ArrivalDoesNotWait",
     "setp.eq.u32 %p, %w, 2; @%p bra E; setp.ne.u32 %p, %w, 0; @%p bra B; bar.arrive 1, 64; ld.shared.u32 %x, "
     "[%a+128]; bra E; "
     "B: st.shared.u32 [%a], %i; bar.sync 1, 64; E:",
     of_warps, of_warps},
    // A compare-and-swap elsewhere, or behind a barrier, does not make a plain load one of its loop.
    {"LoadBesideACompareAndSwap",
     "setp.ne.u32 %p, %r, 40; @%p bra R; red.shared.add.u32 [block+16], 7; bra E; R: setp.ne.u32 %p, %r, 3; @%p bra E; "
     "ld.shared.u32 %x, [block+16]; add.u32 %y, %x, 1; atom.shared.cas.b32 %x, [block+64], %x, %y; E:",
     of_warps, of_warps},
    {"LoadBeforeABarrierAndACompareAndSwap",
     "setp.eq.u32 %p, %r, 40; @%p bra R; setp.ne.u32 %p, %r, 3; @%p bra M; ld.shared.u32 %x, [block+16]; bra M; "
     "R: red.shared.add.u32 [block+16], 7; M: bar.sync 0; setp.ne.u32 %p, %r, 0; @%p bra E; add.u32 %y, %x, 1; "
     "atom.shared.cas.b32 %x, [block+16], %x, %y; E:",
     of_warps, of_warps},
    // A store of what is there does not stand for the first one: warp 1 hands to warp 2, warp 0 does not.
    {"AValueStoredTwiceAndReplaced",
     "mov.u32 %y, 5; setp.eq.u32 %p, %w, 0; @%p bra A; setp.eq.u32 %p, %w, 1; @%p bra B; bar.sync 1, 64; mov.u32 %y, "
     "6; "
     "setp.eq.u32 %p, %r, 64; @%p st.shared.u32 [block], %y; bra E; A: setp.eq.u32 %p, %r, 0; "
     "@%p st.shared.u32 [block], %y; bra E; B: setp.eq.u32 %p, %r, 32; @%p st.shared.u32 [block], %y; bar.sync 1, 64; "
     "E:",
     of_warps, of_warps},
    {"GenericAddresses", "cvt.u64.u32 %d, %a; cvta.shared.u64 %d, %d; st.u32 [%d], %i; ld.u32 %x, [%d+128];", of_warps,
     of_warps},
};

TEST_P(Races, CasesByPtxasAndByUs) {
  const bool pascal = isa::find_target(GetParam())->family == isa::Family::pascal;
  const std::vector<uint64_t> in = input_words();
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const std::string text = kernel(c.body), of_target = pascal ? c.pascal : c.volta;
    for (const auto& [maker, cubin] : code_of(text, GetParam())) {
      const std::string wanted = c.ptxas_75 && maker == "ptxas" && GetParam() == "sm_75" ? c.ptxas_75 : of_target;
      const auto got = run_simulator(GetParam(), cubin, "k", in, race_options(), 16 << 20);
      const std::string said = got.ok() ? "" : got.error().message;
      EXPECT_EQ(said.empty(), wanted.empty()) << maker << " " << said;
      EXPECT_NE(said.find(wanted), std::string::npos) << maker << " " << said;
      auto unchecked = race_options();
      unchecked.check_races = false;
      EXPECT_TRUE(run_simulator(GetParam(), cubin, "k", in, unchecked, 16 << 20).ok()) << maker;
    }
  }
}

TEST(RaceReports, NameBothSides) {
  const auto made = assemble_for(
      parse_text("k",
                 kernel("st.shared.u32 [%a], %i; setp.ne.u32 %p, %r, 70; @%p bra L; ld.shared.u32 %x, [block+12]; L:")),
      "sm_86");
  ASSERT_TRUE(made.ok()) << made.error().message;
  const auto got = run_simulator("sm_86", made->cubin, "k", input_words(), race_options(), 16 << 20);
  ASSERT_FALSE(got.ok());
  const std::string& said = got.error().message;
  for (const char* part : {"kernel `k` at 0x", "LDS R", "race in shared memory: thread 3,0,0 wrote byte 0xc at 0x",
                           "`STS [R", "no barrier orders this load after it", "thread 70,0,0"})
    EXPECT_NE(said.find(part), std::string::npos) << part << " in " << said;
}

}  // namespace
}  // namespace rndn::assembler::testing::races_test
