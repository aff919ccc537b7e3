// Code made of stencils (assembler/stencils/stencils.h): most kernels are, what is made does not depend on what was made before, and it does what the PTX
// interpreter does where stencils are put together: literals of every size, values alive around loops and in more places than there are registers,
// results under way. Every other test at -O0 runs such code, too (stencils_of), with the checkers of schedules and regions on.
#include <gmock/gmock.h>

#include "tests/assembler/three_ways.h"
#include "tests/support/corpus.h"
#include "tests/support/every_case.h"

namespace rndn::assembler::testing::stencil_test {
namespace {

using ::testing::AnyOf;

Assembled by_stencils(const std::string& text, const std::string& target, Workspace* workspace = nullptr) {
  const ptx::Module module = parse_text("stencils.ptx", text);
  Options o;
  o.target = isa::find_target(target);
  o.level = 0;
  o.stencils = Stencils::always;
  o.workspace = workspace;
  Timings timings;
  auto made = assemble(module, o, timings);
  EXPECT_TRUE(made.ok()) << made.error().message;
  return made.ok() ? *std::move(made) : Assembled{};
}
bool all_of_stencils(const std::string& text, const std::string& target) {
  const Assembled made = by_stencils(text, target);
  return !made.kernels.empty() && std::ranges::all_of(made.kernels, &KernelReport::of_stencils);
}
// Three ways, and by stencils indeed.
void agrees(const std::string& text, const std::vector<std::string>& on = both_families) {
  for (const std::string& target : on) EXPECT_TRUE(all_of_stencils(text, target)) << target;
  EXPECT_THAT(three_ways(text, on, true), AnyOf(-1, static_cast<int>(on.size())));
}

// Those of the corpus that are not are recorded by name: none may come to them, and whoever makes fewer records it (RNDN_RECORD=1), so that they stay made.
TEST(Stencils, MostKernelsAreMadeOfThem) {
  const std::string path = RNDN_SOURCE_DIR "/tests/assembler/without_stencils.txt";
  std::string without =
      "# Kernels of the corpus that are not made of stencils (target, file, kernel): `test_assembler "
      "--gtest_filter=Stencils.MostKernels*` with RNDN_RECORD=1 writes them anew.\n";
  for (const std::string& target : both_families) {
    size_t kernels = 0, made = 0;
    const uint32_t sm = isa::find_target(target)->sm;
    for (const rndn::testing::CorpusFile& f : rndn::testing::corpus()) {
      if (f.target > sm) continue;
      for (const KernelReport& k : by_stencils(f.text, target).kernels) {
        ++kernels, made += k.of_stencils;
        if (!k.of_stencils) without += fmt::format("{} {} {}\n", target, f.name, k.name);
      }
    }
    std::printf("%s: %zu of %zu kernels of the corpus are made of stencils\n", target.c_str(), made, kernels);
    EXPECT_GT(made, 100u) << target;
  }
  if (std::getenv("RNDN_RECORD")) {
    ASSERT_TRUE(write_file(path, without).ok());
  }
  const Result<std::string> recorded = read_file(path);
  ASSERT_TRUE(recorded.ok());
  EXPECT_EQ(*recorded, without);
}

// Among them whatever is common.
TEST(Stencils, WhatIsCommonHasStencils) {
  const std::vector<std::string> statements = {"add.u32 %r0, %r1, %r2",
                                               "mad.lo.u64 %d0, %d1, %d2, %d3",
                                               "mul.wide.u32 %d0, %r1, %r2",
                                               "div.u32 %r0, %r1, %r2",
                                               "fma.rn.f64 %e1, %e1, %e1, %e1",
                                               "setp.lt.and.s64 %p2, %d1, %d2, %p1",
                                               "selp.b64 %d0, %d1, %d2, %p1",
                                               "shfl.sync.bfly.b32 %r0, %r1, 1, 31, -1",
                                               "vote.sync.ballot.b32 %r0, %p1, -1",
                                               "@%p1 mov.b32 %r1, 3",
                                               "popc.b64 %r0, %d1",
                                               "bfe.u32 %r0, %r1, 3, 5",
                                               "cvt.rni.s32.f32 %r0, %f1",
                                               "mov.b32 %r0, 1; cvt.rn.f32.u64 %f1, %d1",
                                               "mov.b32 %r0, 1; rsqrt.approx.f32 %f1, %f1",
                                               "mov.b64 {%r0, %r3}, %d1",
                                               "ld.global.v2.u32 {%r0, %r3}, [%in]",
                                               "prmt.b32 %r0, %r1, %r2, 0x5140"};
  for (const std::string& target : both_families)
    for (const std::string& s : statements)
      EXPECT_TRUE(all_of_stencils(kernel("6.0", "sm_60", {s}), target)) << target << ": " << s;
  for (const std::string target : {"sm_86", "sm_90"})  // code with branches
    for (const std::string s :
         {"div.rn.f64 %e1, %e1, %e1", "rem.u64 %d0, %d1, %d2", "mov.b32 %r0, 1; div.rn.f32 %f1, %f1, %f1"})
      EXPECT_TRUE(all_of_stencils(kernel("6.0", "sm_60", {s}), target)) << target << ": " << s;
}

// What is made of a module is the same whatever the workspace has seen before.
TEST(Stencils, WhatWasMadeBeforeChangesNothing) {
  const std::vector<rndn::testing::CorpusFile> files = rndn::testing::corpus();
  for (const std::string& target : both_families) {
    const uint32_t sm = isa::find_target(target)->sm;
    Workspace workspace;
    for (size_t k = 0; k < files.size(); k += 3) {
      const rndn::testing::CorpusFile &f = files[k], &other = files[files.size() - 1 - k];
      if (f.target > sm || other.target > sm) continue;
      const std::vector<std::byte> alone = by_stencils(f.text, target).cubin;
      by_stencils(other.text, target, &workspace);
      EXPECT_EQ(by_stencils(f.text, target, &workspace).cubin, alone) << f.name << " " << target;
      EXPECT_EQ(by_stencils(f.text, target, &workspace).cubin, alone) << f.name << " " << target << ", again";
    }
  }
}

// One stencil for many literals: those of which nothing is known, and those that selection would have taken another way.
TEST(Stencils, LiteralsOfEverySize) {
  rndn::test::Sample sample(3);
  std::vector<std::string> statements;
  const auto agree = [&](size_t least) {
    if (statements.size() < least) return;
    agrees(kernel("6.0", "sm_60", statements));
    statements.clear();
  };
  const std::vector<int64_t> words = {0,     1,       -1,      2,        -2,         7,           16,
                                      31,    32,      255,     256,      4095,       -5,          65535,
                                      65536, 0x7ffff, 0x80000, -0x80000, 0x7fffffff, -2147483648, 0x12345677};
  for (const char* op :
       {"add.u32 %r0, %r1, {}", "sub.s32 %r0, %r1, {}", "mul.lo.s32 %r0, %r1, {}", "mad.lo.u32 %r0, %r1, {}, %r2",
        "and.b32 %r0, %r1, {}", "xor.b32 %r0, %r1, {}", "setp.lt.s32 %p2, %r1, {}", "setp.ge.u32 %p2, %r1, {}",
        "selp.b32 %r0, %r1, {}, %p1", "mov.u32 %r0, {}", "@%p1 add.s32 %r3, %r3, {}", "shl.b32 %r0, %r1, {}",
        "mul.wide.s32 %d0, %r1, {}", "sub.u32 %r0, {}, %r1"}) {
    for (const int64_t w : words)
      if (sample.has_next()) statements.push_back(fmt::format(fmt::runtime(op), w));
    agree(14);
  }
  agree(1);
  const std::vector<int64_t> longs = {0,          1,          -1,          8,           -8,          0x7fffffff,
                                      0x80000000, 0xffffffff, 0x100000000, -0x80000000, -0x80000001, 0x123456789abcdef,
                                      INT64_MAX,  INT64_MIN};
  for (const char* op : {"add.s64 %d0, %d1, {}", "sub.u64 %d0, %d1, {}", "and.b64 %d0, %d1, {}", "or.b64 %d0, %d1, {}",
                         "mov.b64 %d0, {}", "mul.lo.s64 %d0, %d1, {}", "setp.lt.s64 %p2, %d1, {}",
                         "setp.gt.u64 %p2, %d1, {}", "@!%p1 xor.b64 %d3, %d3, {}"}) {
    for (const int64_t w : longs)
      if (sample.has_next()) statements.push_back(fmt::format(fmt::runtime(op), w));
    agree(14);
  }
  agree(1);
  // Doubles, some with a low word: literals of the constant bank, those of several stencils side by side.
  std::vector<std::string> doubles;
  for (const char* d :
       {"0d0000000000000000", "0d3ff0000000000000", "0dbff0000000000001", "0d400921fb54442d18", "0d3fd5555555555555"})
    for (const char* op :
         {"add.rn.f64 %e1, %e1, {}", "fma.rn.f64 %e1, %e1, {}, %e1", "mov.f64 %e1, {}", "mul.rn.f64 %e1, %e1, {}"})
      doubles.push_back(fmt::format(fmt::runtime(op), d));
  agrees(kernel("6.0", "sm_60", doubles));
}

// The same register several times in a statement, as its result, too.
TEST(Stencils, OneRegisterInSeveralPlaces) {
  agrees(kernel(
      "6.0", "sm_60",
      {"add.u32 %r1, %r1, %r1", "mad.lo.u32 %r2, %r2, %r2, %r2", "mul.lo.u64 %d1, %d1, %d1",
       "mad.lo.u64 %d2, %d2, %d1, %d2", "mul.hi.u64 %d2, %d2, %d2", "div.u64 %d1, %d1, %d2", "rem.s64 %d2, %d1, %d2",
       "mul.wide.u32 %d1, %r1, %r1", "shf.l.wrap.b32 %r1, %r1, %r2, %r1", "setp.lt.and.u32 %p1, %r1, %r1, %p1",
       "@%p1 not.pred %p1, %p1", "max.s64 %d3, %d3, %d1", "shr.s64 %d3, %d3, %r2"}));
}

// More values than there are predicates: they lie in general registers, under guards, too. And wide values where they leave gaps.
TEST(Stencils, MorePredicatesThanThereAre) {
  std::vector<std::string> statements;
  std::string declared = ".reg .pred %q<40>;";
  for (int k = 0; k < 40; ++k)
    statements.push_back(fmt::format("mov.u32 %r0, {0}; setp.gt.u32 %q{0}, %r1, {1}", k, k * 53687091));
  for (int k = 0; k < 36; ++k)
    statements.push_back(fmt::format(
        fmt::runtime(k % 3 == 0 ? "xor.pred %p2, %q{}, %q{}"
                     : k % 3 == 1
                         ? "mov.u32 %r0, 1; @%q{} mov.u32 %r0, 2; @!%q{} add.u32 %r0, %r0, 5"
                         : "mov.pred %p2, %q{}; @%q{} setp.lt.and.u32 %q39, %r2, %r1, %p2; xor.pred %p2, %p2, %q39"),
        k, 39 - k));
  agrees(with(kernel("6.0", "sm_60", statements), declared));
}

// In loops: what one arm writes and another reads in the next round, counters, and what lives around all of it.
TEST(Stencils, ValuesAliveAroundLoops) {
  const std::string head =
      ".version 6.0\n.target sm_60\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
      ".reg .b32 %t, %c, %n, %a, %b, %i, %x, %y, %z<9>, %w<60>; .reg .b64 %in, %out, %d<4>; .reg .pred %p<6>;\n"
      "ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mov.u32 %n, "
      "%ntid.x;\n"
      "mad.lo.u32 %n, %c, %n, %t; mad.wide.u32 %in, %n, 24, %in; mad.wide.u32 %out, %n, 768, %out;\n"
      "ld.global.u32 %a, [%in]; ld.global.u32 %b, [%in+8];\n";
  const std::string cases[] = {
      // The only definition of %x stands behind its reader, and in another arm.
      "mov.u32 %i, 0; mov.u32 %y, 0;\nL: and.b32 %z0, %i, 1; setp.eq.u32 %p1, %z0, 0; @%p1 bra A;\nadd.u32 %y, %y, %x; "
      "bra J;\n"
      "A: mad.lo.u32 %x, %i, 7, %a;\nJ: add.u32 %i, %i, 1; setp.lt.u32 %p2, %i, 9; @%p2 bra L;\nst.global.u32 [%out], "
      "%y;\n",
      // Values of an outer loop behind an inner one that needs registers of its own, with loads under way over the branches.
      "mov.u32 %i, 0; mov.u32 %y, %b; and.b32 %a, %a, 7;\nO: ld.global.u32 %z1, [%in]; mov.u32 %x, 0; mul.lo.u32 %z2, "
      "%i, 3;\n"
      "I: ld.global.u32 %z3, [%in+8]; add.u32 %z4, %z3, %x; xor.b32 %y, %y, %z4; add.u32 %x, %x, 1; setp.le.u32 %p1, "
      "%x, %a; @%p1 bra I;\n"
      "add.u32 %y, %y, %z2; add.u32 %y, %y, %z1; add.u32 %i, %i, 1; setp.lt.u32 %p2, %i, 4; @%p2 bra O;\nst.global.u32 "
      "[%out], %y;\n",
      // Sources of stores and addresses of loads are written again at once.
      "mov.u32 %i, 0;\nS: st.global.u32 [%out], %a; add.u32 %a, %a, %b; add.u64 %out, %out, 8; ld.global.u32 %b, "
      "[%in]; add.u64 %in, %in, 0; "
      "add.u32 %i, %i, 1; setp.lt.u32 %p1, %i, 8; @%p1 bra S;\n",
      // A result that nobody has waited for is overwritten.
      "ld.global.u32 %x, [%in]; mov.u32 %x, 3; st.global.u32 [%out], %x; ld.global.u64 %d1, [%in]; @%p0 bra E; mov.u64 "
      "%d1, 5;\nE: st.global.u64 [%out+8], %d1;\n"};
  for (const std::string& c : cases) {
    std::string text = head + c + "ret;\n}\n";
    if (const size_t at = text.find("@%p0"); at != std::string::npos)
      text.insert(text.find("ld.global.u32 %a"), "setp.lt.u32 %p0, %t, 40; ");
    agrees(text);
  }
}

// A branch of all lanes out of a loop to the end is an exit under a predicate that takes its time.
TEST(Stencils, ExitsWaitForTheirPredicates) {
  agrees(
      ".version 7.0\n.target sm_60\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
      ".reg .b32 %t, %c, %n; .reg .b64 %out; .reg .f64 %f; .reg .pred %p;\nld.param.u64 %out, [out]; mov.u32 %t, "
      "%tid.x; "
      "mov.u32 %c, %ctaid.x; mov.u32 %n, %ntid.x; mad.lo.u32 %n, %c, %n, %t; mad.wide.u32 %out, %n, 768, %out;\n"
      "mov.f64 %f, 0d0000000000000000;\nL: st.global.f64 [%out], %f; add.f64 %f, %f, 0d3ff0000000000000; add.u64 %out, "
      "%out, 8; "
      "setp.gt.f64 %p, %f, 0d4014000000000000;\n@%p bra E;\nbra L;\nE: ret;\n}\n");
}

// Variables in local memory by name, by address and by generic address, in a loop, too.
TEST(Stencils, LocalVariables) {
  const std::string head =
      ".version 7.0\n.target sm_60\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
      ".local .align 16 .b8 depot[48]; .local .align 4 .b32 one; .local .align 8 .b64 far[512];\n"
      ".reg .b32 %t, %c, %n, %r<4>, %s; .reg .b64 %in, %out, %d<6>; .reg .pred %p;\n";
  const std::string tail =
      "ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mov.u32 %n, "
      "%ntid.x; "
      "mad.lo.u32 %n, %c, %n, %t; mad.wide.u32 %in, %n, 24, %in; mad.wide.u32 %out, %n, 768, %out;\n"
      "ld.global.u32 %r0, [%in]; ld.global.u32 %r1, [%in+4];\n"
      "st.local.u32 [one], %r0; st.local.v2.u32 [depot+8], {%r0, %r1}; mov.b64 %d0, depot; st.local.u32 [%d0+4], %r1;\n"
      "cvta.local.u64 %d1, %d0; st.u32 [%d1], %n; mov.u64 %d2, far+16; cvta.local.u64 %d2, %d2; st.u64 [%d2+24], %d0;\n"
      "and.b32 %r2, %r0, 3; mul.wide.u32 %d3, %r2, 4; add.u64 %d3, %d0, %d3; ld.local.u32 %r3, [%d3];\n"
      "ld.local.u32 %r0, [one]; ld.local.v4.u32 {%r0, %r1, %r2, %c}, [depot]; add.u32 %r3, %r3, %r0; ld.local.u32 %r0, "
      "[one];\nsub.u64 %d4, %d2, %d1; ld.local.u64 %d5, [far+40]; sub.u64 %d5, %d5, %d0; add.u64 %d4, %d4, %d5;\n"
      "st.global.v4.u32 [%out], {%r0, %r1, %r2, %r3}; st.global.u32 [%out+16], %c;\n";
  agrees(head + tail + "ret;\n}\n");
  agrees(head + "mov.u32 %s, 0;\nL:\n" + tail + "add.u32 %s, %s, 1; setp.lt.u32 %p, %s, 3;\n@%p bra L;\nret;\n}\n");
}

// .const variables, the same ways.
TEST(Stencils, ConstantVariables) {
  agrees(
      ".version 7.0\n.target sm_60\n.address_size 64\n.const .align 4 .b32 first = 77; .const .align 8 .b8 "
      "table[24] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24};\n"
      ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
      ".reg .b32 %t, %c, %n, %r<6>; .reg .b64 %out, %d<5>;\n"
      "ld.param.u64 %out, [out]; mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mov.u32 %n, %ntid.x; "
      "mad.lo.u32 %n, %c, %n, %t; mad.wide.u32 %out, %n, 768, %out;\n"
      "ld.const.u32 %r0, [first]; ld.const.v2.u32 {%r1, %r2}, [table+8]; mov.u64 %d0, table; and.b32 %r3, %t, 3; "
      "mul.wide.u32 %d1, %r3, 4; add.u64 %d1, %d0, %d1; ld.const.u32 %r3, [%d1+4]; ld.const.u8 %r4, [table+5];\n"
      "mov.u64 %d2, table+16; cvta.const.u64 %d3, %d2; ld.u32 %r5, [%d3+4]; sub.u64 %d4, %d2, %d0;\n"
      "st.global.v4.u32 [%out], {%r0, %r1, %r2, %r3}; st.global.v2.u32 [%out+16], {%r4, %r5}; st.global.u64 [%out+24], "
      "%d4;\nret;\n}\n");
}

// Barriers have a predicate that only a reduction reads: none of those that are under way.
TEST(Stencils, BarriersAwaitNoPredicate) {
  agrees(
      ".version 7.0\n.target sm_60\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
      ".reg .b32 %t, %c, %n, %r<4>; .reg .b64 %out; .reg .pred %p<6>;\n"
      "ld.param.u64 %out, [out]; mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mov.u32 %n, %ntid.x; "
      "mad.lo.u32 %n, %c, %n, %t; mad.wide.u32 %out, %n, 768, %out;\n"
      "setp.gt.u32 %p0, %t, 3; setp.gt.u32 %p1, %t, 70; setp.lt.u32 %p2, %t, 9; mov.pred %p4, 0;\n"
      "bar.red.or.pred %p5, 0, !%p1; bar.sync 0; bar.red.and.pred %p3, 0, %p2; bar.sync 1; barrier.sync 0;\n"
      "selp.b32 %r0, 1, 0, %p0; selp.b32 %r1, 1, 0, %p5; selp.b32 %r2, 1, 0, %p3; selp.b32 %r3, 1, 0, %p4;\n"
      "st.global.v4.u32 [%out], {%r0, %r1, %r2, %r3};\nret;\n}\n",
      {"sm_86", "sm_90"});
}

// The constant bank has 64 KB, for stencils, too: they are not asked to make what does not fit.
TEST(Stencils, MoreLiteralsThanTheConstantBankHolds) {
  const auto kernel = [](uint32_t literals) {
    std::string text =
        ".version 7.0\n.target sm_60\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n.reg "
        ".b64 %out; .reg .f64 %f;\n"
        "ld.param.u64 %out, [out]; mov.f64 %f, 0d3ff0000000000000;\n";
    for (uint32_t k = 0; k < literals; ++k) text += fmt::format("add.rn.f64 %f, %f, 0d3ff{:013x};\n", k * 7919 + 1);
    return text + "st.global.f64 [%out], %f;\nret;\n}\n";
  };
  const ptx::Module fits = parse_text("fits.ptx", kernel(8192)), too_many = parse_text("too_many.ptx", kernel(8193));
  const std::vector<uint64_t> in = input_words();
  const auto expected = run_interpreter(fits, "k", in);
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  for (const std::string target : {"sm_61", "sm_86", "sm_90"}) {
    const auto made = assemble_for(fits, target, 0);
    ASSERT_TRUE(made.ok()) << made.error().message;
    EXPECT_TRUE(made->kernels[0].of_stencils);
    const auto got = run_simulator(target, made->cubin, "k", in);  // every literal, those of the bank's upper half too
    ASSERT_TRUE(got.ok()) << target << ": " << got.error().message;
    EXPECT_EQ(difference(*expected, *got, 96), "") << target;
    const auto refused = assemble_for(too_many, target, 0);
    EXPECT_FALSE(refused.ok()) << target;
  }
}

// Addresses that are literals of 64 bits keep their high word.
TEST(Stencils, LiteralAddresses) {
  const std::string text =
      ".version 7.0\n.target sm_60\n.address_size 64\n.visible .entry k()\n{\n.reg .b32 %r;\nst.global.u32 "
      "[0x7f0012345678], 5;\n"
      "ld.global.u32 %r, [0x7f0112345678]; st.global.u32 [0x7f0212345678], %r;\nret;\n}\n";
  for (const std::string& target : both_families) {
    const Assembled made = by_stencils(text, target);
    EXPECT_TRUE(made.kernels.at(0).of_stencils);
    for (const int64_t high : {0x7f00, 0x7f01, 0x7f02}) {
      size_t found = 0;
      for (const isa::Instruction& i : instructions_of(made.cubin, target))
        for (uint32_t k = 0; k < i.operand_count; ++k)
          found += i.operands[k].kind == isa::OperandKind::immediate && i.operands[k].value == high;
      EXPECT_EQ(found, 1u) << target << " " << high;
    }
  }
}

// Offsets of either sign, where they are part of the instruction and where they are added before (generic atomics).
TEST(Stencils, OffsetsOfBothSigns) {
  std::string text =
      ".version 7.0\n.target sm_60\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
      ".reg .b32 %t, %c, %n, %r; .reg .b64 %out, %far, %near, %old, %value;\n"
      "mov.u32 %t, %tid.x; mov.b64 %value, {%t, %t}; ld.param.u64 %out, [out]; mov.u32 %c, %ctaid.x; mov.u32 %n, "
      "%ntid.x; "
      "mad.lo.u32 %n, %c, %n, %t; mad.wide.u32 %out, %n, 768, %out; add.u64 %far, %out, 1048576; sub.u64 %near, %out, "
      "1048576;\nst.global.u32 [%out], %n; st.global.u32 [%out+4], %n; st.global.u32 [%far+-1048568], %t; "
      "st.global.u32 [%near+1048588], %c;\n";
  for (const std::string place : {"%near+1048576", "%far+-1048576", "%out+8", "%out", "%far+-1048568"})
    text += "atom.add.u32 %r, [" + place + "], 3; red.max.u32 [" + place + "], %t; st.global.u32 [%out+16], %r;\n" +
            "atom.exch.b64 %old, [" + place + "], %value; st.global.u64 [%out+24], %old;\n";
  agrees(text + "ret;\n}\n", {"sm_86"});
}

// Where there are more values than registers the other passes spill.
TEST(Stencils, MoreValuesThanRegisters) {
  std::string text =
      ".version 6.0\n.target sm_60\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
      ".reg .b32 %t, %c, %n; .reg .b64 %in, %out, %v<160>;\nld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u32 "
      "%t, %tid.x; "
      "mov.u32 %c, %ctaid.x; mov.u32 %n, %ntid.x; mad.lo.u32 %n, %c, %n, %t; mad.wide.u32 %in, %n, 24, %in; "
      "mad.wide.u32 %out, %n, 768, %out;\n";
  for (int k = 0; k < 160; ++k)
    text += fmt::format("ld.global.u64 %v{0}, [%in+{1}]; add.u64 %v{0}, %v{0}, {0};\n", k, k % 3 * 8);
  for (int k = 1; k < 160; ++k) text += fmt::format("xor.b64 %v0, %v0, %v{0};\n", k);
  text += "st.global.u64 [%out], %v0;\nret;\n}\n";
  for (const std::string& target : both_families) EXPECT_FALSE(all_of_stencils(text, target));
  EXPECT_THAT(three_ways(text, both_families, true), AnyOf(-1, 3));
}

}  // namespace
}  // namespace rndn::assembler::testing::stencil_test
