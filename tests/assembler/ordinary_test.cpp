// What compilers and people write beside plain arithmetic: packing, hints, conversions of small types.
#include <gmock/gmock.h>

#include <map>

#include "tests/assembler/three_ways.h"

namespace rndn::assembler::testing {
namespace {

using ::testing::AnyOf;

TEST(Ordinary, RegistersArePackedAndUnpackedInEverySize) {
  std::vector<std::string> statements = {
      "mov.b64 %d0, {%h1, %h2, %h3, %h1}",
      "mov.b64 {%h0, %h1, %h2, %h3}, %d1",
      "mov.b64 {_, %h0, _, %h3}, %d2",
      "mov.b64 {_, _, %h0, _}, %d2",
      "mov.b32 {_, %h0}, %r1",
      "mov.b32 %r0, {%h3, 7}",
      "mov.b16 %h0, 0; mov.b16 {%b1, %b2}, %h2; mov.b16 %h0, {%b2, %b1}",
      "mov.b32 %r0, 0; mov.b32 {%b1, %b2, %b3, %b4}, %r2; mov.b32 %r0, {%b4, %b1, %b3, %b2}",
      "mov.b32 %r0, 0; mov.b32 {_, _, %b3, _}, %r3; mov.b32 %r0, {%b3, 0, 255, %b3}",
      "mov.b64 %d0, {%r1, %r2}",
      "mov.b64 {_, %r0}, %d1",
      "@%p1 mov.b32 %r0, {%h1, %h2}",
  };
  std::string text = kernel("7.8", "sm_60", statements);
  // The statements with two parts name their result last.
  text.replace(text.find(".reg .b16 %u;"), 13, ".reg .b16 %u; .reg .b8 %b<5>;");
  EXPECT_THAT(three_ways(text, both_families, true), AnyOf(-1, 3));
}

// Triton's loads and stores name single registers so.
TEST(Ordinary, VectorsOfOneElementAreThatElement) {
  const std::vector<std::string> statements = {
      "mov.u32 %r0, 0x0;\n@%p1 ld.global.b32 { %r0 }, [ %in + 4 ]",
      "mov.u32 %r0, 0; st.global.b32 [ %out + 512 ], { %r2 }; ld.global.b32 {%r0}, [%out+512]",
      "mov.b64 %d0, 0; ld.volatile.global.b64 { %d0 }, [ %in + 0 ]",
      "mov.u32 %r0, %r3; @!%p1 st.global.b32 [ %out + 520 ], { 77 }; @!%p1 ld.global.L1::evict_last.b32 { %r0 }, "
      "[ %out + 520 ]",
  };
  EXPECT_THAT(three_ways(kernel("7.4", "sm_80", statements), newer, true), AnyOf(-1, static_cast<int>(newer.size())));
  EXPECT_THAT(refusal(".version 7.8\n.target sm_80\n.address_size 64\n.entry k()\n{\n.reg .b32 %r<3>;\n"
                      "add.u32 {%r1}, %r2, %r2;\n}\n"),
              ::testing::HasSubstr("expected a register"));
}

TEST(Ordinary, HintsOfTheCacheChangeNoValue) {
  const std::string text =
      ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
      ".reg .b32 %r<8>; .reg .b64 %d<8>; .reg .f32 %f; .reg .pred %p;\n.shared .align 16 .b8 s[1536];\n"
      "ld.param.u64 %d0, [in]; ld.param.u64 %d1, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x;\n"
      "mov.u32 %r2, %ntid.x; mad.lo.u32 %r3, %r1, %r2, %r0; mad.wide.u32 %d2, %r3, 24, %d0; mad.wide.u32 %d3, %r3, "
      "768, %d1;\nmov.f32 %f, 0f3F000000;\n"
      "createpolicy.fractional.L2::evict_last.b64 %d4, 1.0;\n"
      "createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %d4, %f;\n"
      "createpolicy.fractional.L2::evict_first.b64 %d5;\n"
      "createpolicy.range.global.L2::evict_last.L2::evict_first.b64 %d4, [%d2], 16, %r2;\n"
      "ld.global.L1::evict_last.L2::cache_hint.L2::128B.v2.b32 {%r4, %r5}, [%d2], %d4;\n"
      "ld.global.nc.L1::no_allocate.L2::256B.b32 %r6, [%d2+8];\n"
      "st.global.L1::no_allocate.L2::cache_hint.v2.b32 [%d3], {%r4, %r5}, %d5;\n"
      "prefetch.global.L2::evict_last [%d2];\napplypriority.global.L2::evict_normal [%d2], 128;\n"
      "shl.b32 %r7, %r0, 4; cvt.u64.u32 %d6, %r7; mov.u64 %d7, s; add.u64 %d6, %d6, %d7; cvt.u32.u64 %r7, %d6;\n"
      "st.shared.v4.b32 [%r7], {1, 2, 3, 4};\nsetp.gt.u32 %p, %r0, 40;\n"
      "cp.async.ca.shared.global.L2::cache_hint [%r7], [%d2], 8, %d4;\ncp.async.wait_all;\n"
      "ld.shared.b64 %d6, [%r7]; st.global.b64 [%d3+8], %d6;\n"
      "min.u32 %r4, %r0, 8; cp.async.ca.shared.global [%r7], [%d2+8], 8, %r4;\ncp.async.wait_all;\n"
      "ld.shared.b64 %d6, [%r7]; st.global.b64 [%d3+16], %d6;\n"
      "atom.global.add.L2::cache_hint.u32 %r4, [%d3+24], %r6, %d4;\nred.global.or.L2::cache_hint.b32 [%d3+32], %r6, "
      "%d4;\n"
      "ret;\n}\n";
  three_ways(text, newer, true);
  EXPECT_THAT(refusal(".version 7.8\n.target sm_80\n.address_size 64\n.entry k()\n{\n.reg .b32 %r<3>; .reg .b64 %d;\n"
                      "ld.global.L2::cache_hint.b32 %r1, [%d], %r2;\n}\n"),
              ::testing::HasSubstr("expected a cache policy"));
}

TEST(Ordinary, ConversionsToSmallTypes) {
  std::vector<std::string> statements;
  for (const char* r : {"rn", "rz"}) {
    for (const char* t : {"f16", "bf16"}) statements.push_back(fmt::format("cvt.{}.relu.{}.f32 %h0, %f1", r, t));
    for (const char* t : {"f16x2", "bf16x2"})
      statements.push_back(fmt::format("mov.b32 %r0, 0; mov.b32 %f2, %r2; cvt.{}.relu.{}.f32 %r0, %f1, %f2", r, t));
  }
  for (const char* t : {"u16", "s16"}) statements.push_back(fmt::format("cvt.pack.sat.{}.s32 %r0, %r1, %r2", t));
  for (const char* t : {"u8", "s8"}) statements.push_back(fmt::format("cvt.pack.sat.{}.s32.b32 %r0, %r1, %r2, %r3", t));
  statements.push_back("mad24.hi.sat.s32 %r0, %r1, %r2, %r3");
  const auto with_float = [](std::string text) {
    return text.replace(text.find(".reg .b16 %u;"), 13, ".reg .b16 %u; .reg .f32 %f2;");
  };
  EXPECT_THAT(three_ways(with_float(kernel("7.1", "sm_80", statements)), newer, true), AnyOf(-1, static_cast<int>(newer.size())));
  statements.clear();
  for (const char* relu : {"", ".relu"})
    for (const char* t : {"e4m3x2", "e5m2x2"}) {
      statements.push_back(
          fmt::format("mov.b16 %h0, 0; mov.b32 %f2, %r2; cvt.rn.satfinite{}.{}.f32 %h0, %f1, %f2", relu, t));
      // Numbers about the size of the type's own.
      statements.push_back(
          fmt::format("mov.b16 %h0, 0; and.b32 %r4, %r1, 0x87ffffff; or.b32 %r4, %r4, 0x38000000; mov.b32 %f2, %r4; "
                      "and.b32 %r4, %r2, "
                      "0x83ffffff; or.b32 %r4, %r4, 0x40000000; mov.b32 %f3, %r4; "
                      "cvt.rn.satfinite{}.{}.f32 %h0, %f2, %f3",
                      relu, t));
      statements.push_back(fmt::format("cvt.rn.satfinite{}.{}.f16x2 %h0, %r3", relu, t));
      statements.push_back(fmt::format("cvt.rn{}.f16x2.{} %r0, %h1", relu, t));
      // Beside each other in one register: ptxas puts the second above the first, and takes the upper one from where it is.
      statements.push_back(
          fmt::format("mov.b32 %r0, 0; mov.b32 %f2, %r2; cvt.rn.satfinite{0}.{1}.f32 %h2, %f1, %f2; "
                      "cvt.rn.satfinite{0}.{1}.f16x2 %h3, %r2; mov.b32 %r0, {{%h2, %h3}}; cvt.u16.u64 %h2, %d2; "
                      "cvt.u16.u64 %h3, %d3",
                      relu, t));
      statements.push_back(
          fmt::format("mov.b16 %h0, 0; mov.b32 {{%h0, %u}}, %r3; cvt.rn{0}.f16x2.{1} %r0, %u; mov.b32 %f2, 0f3fa00000; "
                      "cvt.rn.satfinite{0}.{1}.f32 %h0, %f1, %f2",
                      relu, t));
    }
  const auto floats = [&](const char* version, const char* target) {
    std::string text = with_float(kernel(version, target, statements));
    return text.replace(text.find("%f2;"), 4, "%f2, %f3;");
  };
  three_ways(floats("8.1", "sm_89"), {"sm_89", "sm_90"}, false);  // ptxas 11.8 has them on sm_90 alone
  EXPECT_THAT(three_ways(floats("7.8", "sm_90"), {"sm_90"}, true), AnyOf(-1, 1));
}

// `if (i >= n) return;` and a loop whose only way out is such a branch: the first opens no region, the second and what lies in it do.
TEST(Ordinary, BranchesToTheEndAreExits) {
  constexpr uint32_t bssy = 0x945;
  const auto regions = [&](const std::string& text) {
    size_t n = 0;
    auto made = assemble_for(parse_text("exits.ptx", text), "sm_86");
    EXPECT_TRUE(made.ok()) << made.error().message;
    auto image = cubin::read(made->cubin);
    EXPECT_TRUE(image.ok()) << image.error().message;
    const auto& code = image->kernels[0].code;
    for (size_t at = 0; at + 16 <= code.size(); at += 16)
      n += (std::to_integer<uint32_t>(code[at]) | (std::to_integer<uint32_t>(code[at + 1]) & 15) << 8) == bssy;
    return n;
  };
  std::string work;
  for (int k = 0; k < 14; ++k) work += fmt::format("mad.lo.u32 %r0, %r0, {}, %r1;\n", 2 * k + 3);
  std::string early = kernel("6.0", "sm_60", {"mov.b32 %r0, 1"}), otherwise = early, loop = early;
  const std::string store = "st.global.u32 [%out+8], %r0;\n";
  early.replace(early.find("ret;"), 4, "setp.gt.u32 %p2, %t, 40;\n@%p2 bra END;\n" + work + store + "END: ret;");
  otherwise.replace(otherwise.find("ret;"), 4,
                    "setp.gt.u32 %p2, %t, 40;\n@!%p2 bra GO;\nret;\nGO: " + work + store + "ret;");
  loop.replace(loop.find("ret;"), 4,
               "mov.u32 %r4, 0;\nL: setp.gt.u32 %p2, %r4, %t;\n@%p2 bra END;\nand.b32 %r5, %r1, 1;\n"
               "setp.eq.u32 %p2, %r5, 0;\n@%p2 bra N;\n" +
                   work + "N: add.u32 %r4, %r4, 7;\n" + store + "bra L;\nEND: ret;");
  for (const std::string& text : {early, otherwise, loop}) three_ways(text, both_families, true);
  EXPECT_EQ(regions(early), 0u);
  EXPECT_EQ(regions(otherwise), 0u);
  EXPECT_EQ(regions(loop), 2u);
}

// Lanes that are done while others of their warp wait at a barrier of the block: they have left, and are not waited for.
TEST(Ordinary, ReturnsInFrontOfBarriers) {
  std::string work = "mov.b32 %r0, %t;\n";
  for (int k = 0; k < 12; ++k) work += fmt::format("mad.lo.u32 %r0, %r0, {}, %t;\n", 2 * k + 3);
  const std::string store = "st.global.u32 [%out+8], %r0;\n";
  const std::string
      before =
          ".shared .b32 cells[96];\nmov.u32 %r5, cells;\nxor.b32 %r6, %t, 9;\nmad.lo.u32 %r6, %r6, 4, %r5;\n"
          "mad.lo.u32 %r5, %t, 4, %r5;\nst.shared.u32 [%r5], %t;\nbar.sync 0;\n",
      barrier = "st.shared.u32 [%r5], %r0;\nbar.sync 0;\nld.shared.u32 %r0, [%r6];\n";
  // The work of those that leave; the exit that all share; a jump to it behind a branch around the jump; those that stay
  // part and meet before the barrier, those that leave stand last.
  const std::string ways[] = {
      "setp.lt.u32 %p2, %t, 40;\n@%p2 bra GO;\n" + work + store + "bra END;\nGO: " + barrier + work + store +
          "END: ret;",
      "setp.gt.u32 %p2, %t, 40;\n@%p2 bra OUT;\n" + barrier + work + store + "bra END;\nOUT: " + work + store +
          "END: ret;",
      "setp.gt.u32 %p2, %t, 40;\n@%p2 bra A;\n" + work +
          "bra B;\nA: setp.gt.u32 %p2, %t, 50;\n@!%p2 bra C;\nbra END;\nC: " + work + "B: " + barrier + store +
          "mov.u32 %r4, 0;\nL: setp.gt.u32 %p2, %r4, %t;\n@%p2 bra END;\nadd.u32 %r4, %r4, 7;\n" + store +
          "bra L;\nEND: ret;",
      "setp.gt.u32 %p2, %t, 63;\n@%p2 bra OUT;\nand.b32 %r4, %t, 1;\nsetp.eq.u32 %p2, %r4, 0;\n@%p2 bra A;\n" + work +
          "bra B;\nA: " + work + "add.u32 %r0, %r0, %t;\nB: " + barrier + store + "bra END;\nOUT: " + work + store +
          "END: ret;",
  };
  for (const std::string& way : ways) {
    std::string text = kernel("6.0", "sm_60", {"mov.b32 %r0, 1"});
    text.replace(text.find("ret;"), 4, before + way);
    three_ways(text, both_families, true);
  }
}

// Lanes that leave a loop with barriers of the block for their end, each in a round of its own: the others meet at the barriers without them.
TEST(Ordinary, EndsInLoopsWithBarriers) {
  std::string work;
  for (int k = 0; k < 12; ++k) work += fmt::format("mad.lo.u32 %r0, %r0, {}, %r1;\n", 2 * k + 3);
  const std::string store = "st.global.u32 [%out+8], %r0;\n", again = "st.global.u32 [%out+16], %r4;\n";
  const std::string before =
      ".shared .b32 cells[96];\nmov.u32 %r5, cells;\nxor.b32 %r6, %t, 9;\nmad.lo.u32 %r6, %r6, 4, %r5;\n"
      "mad.lo.u32 %r5, %t, 4, %r5;\nst.shared.u32 [%r5], %t;\nand.b32 %r7, %t, 7;\nmov.b32 %r0, %t;\n"
      "mov.u32 %r4, 0;\nbar.sync 0;\n";
  const std::string exchange =
      "st.shared.u32 [%r5], %r0;\nbar.sync 0;\nld.shared.u32 %r1, [%r6];\nadd.u32 %r0, %r0, %r1;\nadd.u32 %r4, %r4, "
      "1;\n"
      "bar.sync 0;\n";
  const std::string part = "and.b32 %r2, %r0, 1;\nsetp.eq.u32 %p2, %r2, 0;\n@%p2 bra N;\n" + work + "N: ";
  const std::string done = "setp.gt.u32 %p2, %r4, %r7;\n";
  const std::string ways[] = {
      // At the head and at the foot of the loop.
      "L: setp.gt.u32 %p2, %r4, %r7;\n@%p2 bra OUT;\n" + exchange + "setp.lt.u32 %p2, %r4, 5;\n@%p2 bra L;\n" + store +
          "bra DONE;\nOUT: " + store + again + "DONE: ret;",
      // What is behind the loop has a branch and a loop of its own.
      "L: " + part + exchange + done + "@%p2 bra OUT;\nbra L;\nOUT: setp.gt.u32 %p2, %r7, 3;\n@%p2 bra M;\n" + work +
          "M: " + store + "add.u32 %r4, %r4, 1;\nsetp.lt.u32 %p2, %r4, 9;\n@%p2 bra M;\nret;",
      // No way out but a guarded end; one in an arm, too.
      "L: " + part + exchange + done + "@%p2 st.global.u32 [%out+8], %r0;\n@%p2 ret;\nbra L;\nret;",
      "L: " + part + exchange + store + "setp.gt.u32 %p1, %t, 40;\n@%p1 bra A;\n" + work + done +
          "@%p2 exit;\nbra B;\nA: " + done + "@%p2 exit;\n" + again + "B: bra L;",
      // An arm of a branch that ends there with work of its own, or goes on to the barrier.
      "L: and.b32 %r2, %r0, 1;\nsetp.eq.u32 %p2, %r2, 0;\n@%p2 bra A;\n" + work + "bra B;\nA: " + done +
          "@%p2 bra OUT;\nadd.u32 %r0, %r0, 5;\n" + again + "B: " + exchange + "bra L;\nOUT: " + work + store + "ret;",
      // Where the loop is left some end under a guard, the others come to a barrier.
      "L: " + exchange + "and.b32 %r2, %t, 1;\n" + done + "setp.ne.and.u32 %p2, %r2, 0, %p2;\n@%p2 bra J;\n" + store +
          "setp.gt.u32 %p1, %r4, 10;\n@!%p1 bra L;\nJ: @%p2 ret;\nbar.sync 0;\n" + again + "ret;",
      // The loop lies in an arm, and behind the barriers some do more before they end.
      "setp.gt.u32 %p2, %t, 63;\n@%p2 bra E;\nL: " + part + exchange + done + "@!%p2 bra L;\n" + store +
          "and.b32 %r2, %t, 1;\nsetp.eq.u32 %p2, %r2, 0;\n@%p2 bra E;\n" + work + again + "E: " + work + store + "ret;",
  };
  for (const std::string& way : ways) {
    std::string text = kernel("6.0", "sm_60", {"mov.b32 %r0, 1"});
    text.replace(text.find("ret;"), 4, before + way);
    SCOPED_TRACE(way);
    three_ways(text, both_families, true);
  }
}

// On every target that has bf16 at all.
TEST(Ordinary, BfloatsWiden) {
  std::vector<std::string> statements = {"mov.b32 %r0, 0; cvt.f32.bf16 %f1, %h1; mov.b32 %r0, %f1"};
  for (const char* r : {"rm", "rp"}) statements.push_back(fmt::format("cvt.{}.bf16.f32 %h0, %f1", r));
  EXPECT_THAT(three_ways(kernel("7.8", "sm_80", statements), newer, true), AnyOf(-1, static_cast<int>(newer.size())));
}

TEST(Ordinary, FloatsForTensorCores) {
  std::vector<std::string> statements = {"cvt.rna.tf32.f32 %r0, %f1"};
  for (const char* a : {"0f00000000", "0f80000000", "0f3f800fff", "0f3f801000", "0fbf801fff", "0f7f7fffff",
                        "0f7f800000", "0fff800000", "0f7fc12345", "0f00000fff", "0f80001000"})
    statements.push_back(fmt::format("mov.b32 %r0, 0; mov.b32 %f1, {}; cvt.rna.tf32.f32 %r0, %f1", a));
  EXPECT_THAT(three_ways(kernel("7.8", "sm_80", statements), newer, true), AnyOf(-1, static_cast<int>(newer.size())));
}

TEST(Ordinary, VectorsAreVariables) {
  std::string text = kernel("7.8", "sm_60",
                            {"mov.b32 %r0, 0; ld.global.v2.u32 {%r4, %r5}, [table+8]; add.u32 %r0, %r4, %r5",
                             "mov.b32 %r0, 0; and.b32 %r4, %t, 1; mul.wide.u32 %d4, %r4, 2; mov.u64 %d5, bytes; "
                             "add.u64 %d4, %d4, %d5; ld.const.v2.u8 {%h1, %h2}, [%d4]; mad.lo.u16 %h1, %h2, 256, %h1; "
                             "cvt.u32.u16 %r0, %h1",
                             "mov.b32 %r0, 0; mov.u64 %d4, odd; and.b64 %d4, %d4, 15; cvt.u32.u64 %r0, %d4",
                             "mov.b32 %r0, 0; mov.u32 %r4, s; and.b32 %r0, %r4, 7"});
  text.insert(
      text.find(".visible .entry"),
      ".global .b8 first;\n.global .v4 .u32 table = {11, 22, 33, 44};\n.const .v2 .u8 bytes[2] = {{1, 2}, {3, 4}};\n"
      ".global .b8 second;\n.global .v2 .b64 odd;\n.extern .shared .v2 .f32 s[];\n");
  three_ways(text, both_families, true);
}

// An entry has the shared memory of the variables that it names, not that of all entries of its module, which may be more than a launch can have with what
// it adds; and this begins where the sized variables end, aligned as it says.
TEST(Ordinary, EntriesHaveTheSharedMemoryThatTheyName) {
  const std::string begin = "(.param .u64 in, .param .u64 out)\n{\n.reg .b32 %r<4>;\n.reg .b64 %d;\nld.param.u64 %d, [out];\n";
  const std::string both = "mov.u32 %r0, dynamic;\nmov.u32 %r1, mine;\nmov.u32 %r2, second;\nst.global.v2.u32 [%d], {%r0, %r1};\n"
                           "st.global.u32 [%d+8], %r2;\nret;\n}\n";
  for (const uint32_t align : {4u, 128u, 1024u}) {
    const std::string text =
        fmt::format(".version 7.8\n.target sm_60\n.address_size 64\n.extern .shared .align {} .b8 dynamic[];\n", align) +
        ".shared .b8 first[100];\n.shared .align 4 .b8 second[52];\n.visible .entry k" + begin + ".shared .align 4 .b8 mine[44];\n" + both +
        ".visible .entry large" + begin + ".shared .b8 mine[40000];\nst.shared.u8 [mine+39999], 1;\nret;\n}\n.visible .entry alone" + begin +
        "mov.u32 %r0, dynamic;\nst.global.u32 [%d], %r0;\nret;\n}\n.visible .entry nothing" + begin + "ret;\n}\n";
    const ptx::Module module = parse_text("shared.ptx", text);
    std::string why, said;
    const std::string ptxas = reference_tool("ptxas", why), path = temporary(".ptx");
    ASSERT_TRUE(write_file(path, text).ok());
    for (const std::string& target : targets) {
      auto made = assemble_for(module, target);
      ASSERT_TRUE(made.ok()) << made.error().message;
      const uint32_t base = isa::find_target(target)->shared_base, end = std::max(96u, align);
      const std::map<std::string, uint32_t> expected = {{"k", base + end}, {"large", base + 40000}, {"alone", base}, {"nothing", 0}};
      auto image = cubin::read(made->cubin);
      ASSERT_TRUE(image.ok()) << image.error().message;
      for (const cubin::Kernel& k : image->kernels) EXPECT_EQ(k.shared_bytes, expected.at(k.name)) << target << " " << k.name;
      auto got = run_simulator(target, made->cubin, "k", input_words());
      ASSERT_TRUE(got.ok()) << got.error().message;
      EXPECT_EQ(static_cast<uint32_t>((*got)[0]), base + end);
      EXPECT_EQ((*got)[0] >> 32, base + 52);
      EXPECT_EQ((*got)[1], base);
      if (ptxas.empty()) continue;
      auto theirs = cubin::read(assemble_with_ptxas(ptxas, path, target, said));
      ASSERT_TRUE(theirs.ok()) << said;
      for (const cubin::Kernel& k : theirs->kernels)
        if (k.name == "k" || k.name == "alone") {
          EXPECT_EQ(k.shared_bytes, expected.at(k.name)) << target << " " << k.name << " (ptxas)";
        }
    }
    unlink(path.c_str());
  }
}

// As many predicates as the machine has are needed in loops, others between these: what takes the place of a spilled one at an instruction is not the next
// to be spilled, and again.
TEST(Ordinary, PredicatesBetweenLoopsThatNeedAll) {
  constexpr int hot = 7, all = 11;
  std::string statement = "mov.u64 %d4, %d2;\n";
  for (int k = 0; k < all; ++k) statement += fmt::format("and.b32 %r4, %r1, {};\nsetp.ne.u32 %g{}, %r4, 0;\n", 1 << k, k);
  const auto loops = [&](const std::string& name) {
    std::string text, ends;
    for (int depth = 0; depth < 3; ++depth) {
      text += fmt::format("mov.u32 %i{1}, 0;\n{0}{1}:\n", name, depth);
      ends = fmt::format("add.u32 %i{1}, %i{1}, 1;\nsetp.lt.u32 %p2, %i{1}, 2;\n@%p2 bra {0}{1};\n", name, depth) + ends;
    }
    for (int k = 0; k < hot; ++k) text += fmt::format("@%g{} add.u64 %d4, %d4, %d{};\n", k, 1 + k % 3);
    return text + ends;
  };
  statement += loops("A") + "@%g7 setp.lt.and.s32 %g8|%g9, %r2, %r3, %g10;\n" + loops("B");
  for (int k = 0; k < all; ++k) statement += fmt::format("@%g{} add.u64 %d4, %d4, {};\n", k, 1 << k);
  std::string text = kernel("7.0", "sm_60", {"mov.b32 %r0, 5"});
  text.replace(text.find("ret;"), 4, statement + "st.global.u64 [%out+16], %d4;\nret;");
  text.insert(text.find(".reg .b64 %in"), fmt::format(".reg .pred %g<{}>; .reg .b32 %i<3>;\n", all));
  three_ways(text, both_families, true);
}

// Host and device find such a variable by a bit of its symbol.
TEST(Ordinary, VariablesCanBeManaged) {
  const std::string text =
      ".version 7.8\n.target sm_60\n.address_size 64\n.visible .global .attribute(.managed) .align 8 .b32 ours[3];\n"
      ".global .b32 other;\n.visible .entry k()\n{\nst.global.b32 [ours+4], 1;\nst.global.b32 [other], 2;\nret;\n}\n";
  const ptx::Module module = parse_text("managed.ptx", text);
  EXPECT_EQ(ptx::print(parse_text("printed.ptx", ptx::print(module))), ptx::print(module));
  std::string why, said;
  const std::string ptxas = reference_tool("ptxas", why), path = temporary(".ptx");
  ASSERT_TRUE(write_file(path, text).ok());
  for (const std::string& target : both_families) {
    auto made = assemble_for(module, target);
    ASSERT_TRUE(made.ok()) << made.error().message;
    std::vector<std::vector<std::byte>> cubins = {made->cubin};
    if (!ptxas.empty()) cubins.push_back(assemble_with_ptxas(ptxas, path, target, said));
    for (const auto& bytes : cubins) {
      auto image = cubin::read(bytes);
      ASSERT_TRUE(image.ok()) << image.error().message;
      ASSERT_EQ(image->variables.size(), 2u);
      for (const cubin::Variable& v : image->variables) EXPECT_EQ(v.managed, v.name == "ours") << v.name << said;
    }
  }
  unlink(path.c_str());
}

// What is there for kernels that overlap: instructions of sm_90 that change no value.
TEST(Ordinary, KernelsThatOverlap) {
  const std::string text = kernel("7.8", "sm_90",
                                  {"griddepcontrol.wait;\nfence.proxy.alias;\nadd.u32 %r0, %r1, %r2",
                                   "griddepcontrol.launch_dependents;\nadd.u32 %r0, %r1, %r3"});
  EXPECT_THAT(three_ways(text, {"sm_90"}, true), AnyOf(-1, 1));
}

TEST(Ordinary, OneLaneOfAWarpIsElected) {
  std::string text = kernel("8.0", "sm_90", {"mov.b32 %r0, 5"});
  text.replace(text.find("ret;"), 4,
               "elect.sync %r0|%p2, -1;\nst.global.u32 [%out+16], %r0;\nselp.b32 %r0, 1, 0, %p2;\n"
               "st.global.u32 [%out+24], %r0;\nand.b32 %r4, %t, 4;\nsetp.ne.u32 %p1, %r4, 0;\n@%p1 bra L;\n"
               "elect.sync _|%p2, 0x0f0f0f0f;\nselp.b32 %r0, 1, 0, %p2;\nst.global.u32 [%out+32], %r0;\nL: ret;");
  three_ways(text, {"sm_90"}, false);
}

// Wherever a predicate is read, a constant may stand; true is what is not zero. A kernel for each constant: ptxas takes two setp that differ in nothing
// but such a constant for one.
TEST(Ordinary, PredicatesAreConstants) {
  for (const char* c : {"1", "0"}) {
    std::vector<std::string> statements;
    for (const char* s :
         {"mov.u32 %r0, 0; vote.sync.ballot.b32 %r0, {}, -1", "vote.sync.all.pred %p2, {}, -1",
          "selp.b32 %r0, %r1, %r2, {}", "selp.f64 %e1, 0d3ff0000000000000, 0d4000000000000000, {}",
          "setp.lt.and.u32 %p2, %r1, %r2, {}", "setp.lt.xor.s64 %p2, %d1, %d2, {}", "setp.gt.or.f32 %p2, %f1, %f1, {}",
          "set.lt.xor.u32.s32 %r0, %r1, %r2, {}", "mov.pred %p2, {}", "and.pred %p2, %p1, {}", "or.pred %p2, {}, %p1",
          "xor.pred %p2, !%p1, {}", "not.pred %p2, {}", "bar.red.popc.u32 %r0, 0, {}", "bar.red.or.pred %p2, 0, {}",
          "mov.pred %p2, !%p1", "not.pred %p2, !%p1", "and.pred %p2, !%p1, !%p1"})
      statements.push_back(fmt::format(fmt::runtime(s), c));
    for (const char* other : {"2", "-1", "!1", "!0", "0x100000000"})
      statements.push_back(fmt::format("or.pred %p2, %p1, {}", other));
    EXPECT_THAT(three_ways(kernel("6.0", "sm_60", statements), both_families, true), AnyOf(-1, 3));
  }
}

// Constant variables and parameters by generic address, from a function that does not know where they lie.
TEST(Ordinary, ConstantBanksHaveGenericAddresses) {
  const std::string body =
      "ld.param.u64 %d0, [in]; ld.param.u64 %d1, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x;\n"
      "mov.u32 %r2, %ntid.x; mad.lo.u32 %r3, %r1, %r2, %r0; mad.wide.u32 %d2, %r3, 24, %d0; mad.wide.u32 %d3, %r3, "
      "768, %d1;\nand.b32 %r4, %r0, 3; mul.wide.u32 %d4, %r4, 4;\n"
      "mov.u64 %d5, c; cvta.const.u64 %d5, %d5; add.u64 %d6, %d5, %d4;\n"
      "and.b32 %r5, %r0, 1; setp.eq.u32 %p, %r5, 0; cvta.to.global.u64 %d7, %d2; selp.b64 %d6, %d6, %d7, %p;\n"
      "ld.u32 %r6, [%d6]; st.global.u32 [%d3], %r6;\nisspacep.const %p, %d6; selp.u32 %r6, 1, 2, %p; st.global.u32 "
      "[%d3+8], %r6;\ncvta.to.const.u64 %d6, %d5; add.u64 %d6, %d6, %d4; ld.const.u32 %r6, [%d6+4]; st.global.u32 "
      "[%d3+16], %r6;\n";
  const std::string registers = "{\n.reg .b32 %r<8>; .reg .b64 %d<9>; .reg .pred %p;\n";
  const std::string constants = ".const .align 16 .u32 c[8] = {11, 22, 33, 44, 55, 66, 77, 88};\n";
  EXPECT_THAT(three_ways(".version 6.0\n.target sm_60\n.address_size 64\n" + constants +
                             ".visible .entry k(.param .u64 in, .param .u64 out)\n" + registers + body + "ret;\n}\n",
                         both_families, true),
              AnyOf(-1, 3));
  // The second parameter's own bytes: the low word of `out` differs between the witnesses, its alignment does not.
  const std::string parameters =
      "mov.b64 %d4, in; cvta.param.u64 %d5, %d4; and.b32 %r4, %r0, 1; mul.wide.u32 %d6, %r4, 8; add.u64 %d5, %d5, "
      "%d6;\n"
      "ld.u64 %d7, [%d5]; selp.b64 %d8, %d1, %d0, %p; setp.eq.u32 %p, %r4, 1; selp.b64 %d8, %d1, %d0, %p;\n"
      "sub.u64 %d7, %d7, %d8; st.global.u64 [%d3+24], %d7;\nisspacep.param %p, %d5; selp.u32 %r6, 1, 2, %p;\n"
      "st.global.u32 [%d3+32], %r6;\nisspacep.param %p, %d2; selp.u32 %r6, 1, 2, %p; st.global.u32 [%d3+40], %r6;\n"
      "cvta.to.param.u64 %d5, %d5; ld.param.u64 %d7, [%d5]; sub.u64 %d7, %d7, %d8; st.global.u64 [%d3+48], %d7;\n";
  three_ways(".version 7.8\n.target sm_80\n.address_size 64\n" + constants +
                 ".visible .entry k(.param .u64 in, .param .u64 out)\n" + registers + body + parameters + "ret;\n}\n",
             newer, true);
}

// A variable that fills the bank: by fixed places, which machine code gives in 16 bits without a sign, and beside registers, whose addends have one. An
// H100 reads zero at c[0x3][R4+-0x7000] for R4 = 0: such sums do not wrap.
TEST(Ordinary, ConstantsReachTheEndOfTheirBank) {
  std::string values;
  for (uint32_t k = 0; k < 16384; ++k) values += fmt::format("{}{:#x}", k ? "," : "", k * 2654435761u);
  const std::vector<std::string> loads = {
      "ld.const.u32 %r0, [table+32764]",
      "ld.const.u32 %r0, [table+32768]",
      "ld.const.u32 %r0, [table+65532]",
      "ld.const.u16 %h0, [table+65530]",
      "ld.const.b64 %d0, [table+65520]",
      "ld.const.u32 %r0, [%at]",
      "ld.const.u32 %r0, [%at+28672]",
      "ld.const.u32 %r0, [%up+-16384]",
      "ld.const.u32 %r0, [%up+-32768]",
      "ld.const.b64 %d0, [%at+36864]",
      "ld.const.v2.b64 {%d0, %d4}, [%odd+32760]; xor.b64 %d0, %d0, %d4",
      "add.u32 %r0, %r1, 0;\nld.const.u32 %r4, [table+61440]; xor.b32 %r0, %r0, %r4"};
  std::string text = with(kernel("7.0", "sm_60", loads), ".reg .b64 %at, %odd, %up;");
  text.insert(text.find(".visible"), ".const .align 16 .b32 table[16384] = {" + values + "};\n");
  text.insert(text.find("setp.lt.s32 %p1"),
              "mov.u64 %x, table; and.b64 %at, %d1, 4080; add.u64 %at, %at, %x; add.u64 %odd, %at, 8; "
              "add.u64 %up, %at, 61440;\n");
  EXPECT_THAT(three_ways(text, targets, true), AnyOf(-1, static_cast<int>(targets.size())));
}

// More regions in each other than there are B registers, each with a join of its own; and a long chain of branches to one join.
TEST(Ordinary, DeepNestsAndLongChainsOfBranches) {
  std::string text = kernel("6.0", "sm_60", {"mov.b32 %r0, 1"});
  std::string nest = "xor.b32 %r1, %r1, %t;\n", chain = "mov.b64 %d0, 0;\n";
  for (int k = 0; k < 22; ++k)
    nest +=
        fmt::format("and.b32 %r4, %r1, {};\nsetp.eq.u32 %p2, %r4, 0;\n@%p2 bra J{};\nmad.lo.u32 %r0, %r0, 5, %r4;\n",
                    1 << (k * 7 % 22), k);
  for (int k = 22; k-- > 0;) nest += fmt::format("J{0}: mad.lo.u32 %r0, %r0, 3, {0};\n", k);
  for (int k = 0; k < 40; ++k)
    chain += fmt::format(
        "shr.u64 %d4, %d2, {};\nand.b64 %d4, %d4, 3;\nsetp.eq.u64 %p2, %d4, 3;\n@%p2 bra OUT;\n"
        "add.u64 %d0, %d0, %d4;\n",
        k);
  text.replace(text.find("ret;"), 4,
               nest + "st.global.u32 [%out+8], %r0;\n" + chain + "OUT: st.global.u64 [%out+16], %d0;\nret;");
  EXPECT_THAT(three_ways(text, both_families, true), AnyOf(-1, 3));
}

// The halves of a warp leave the loop at different times: those that are behind it meet the others at another shuffle, not at the loop's end. The
// inner branch is a region all the same.
TEST(Ordinary, LanesThatLeftALoopMeetTheOthersBehindIt) {
  const std::string loop =
      "add.u32 %r5, %r4, %r1; shfl.sync.bfly.b32 %r5, %r5, 1, 31, {0}; add.u32 %r0, %r0, %r5; and.b32 %r5, %r1, 3;\n"
      "setp.ne.u32 %p2, %r5, 0; @%p2 bra N{1}; mul.lo.u32 %r0, %r0, 7; st.global.u32 [%out+512], %r0;\n"
      "ld.global.u32 %r0, [%out+512]; N{1}: add.u32 %r4, %r4, 1; shr.u32 %r6, %t, 4; and.b32 %r6, %r6, 1;\n"
      "mad.lo.u32 %r6, %r6, 3, 2; setp.lt.u32 %p2, %r4, %r6; @%p2 bra L{1};\n"
      "shfl.sync.bfly.b32 %r5, %r0, 1, 31, {0}; add.u32 %r0, %r0, %r5";
  std::vector<std::string> statements;
  for (const char* mask : {"-1", "%r7"})
    statements.push_back(fmt::format("mov.u32 %r0, 0; mov.u32 %r4, 0; mov.u32 %r7, -1;\nL{0}: ", statements.size()) +
                         fmt::format(fmt::runtime(loop), mask, statements.size()));
  three_ways(kernel("7.8", "sm_80", statements), newer, false);
}

// The same with masks of half a warp, whose lanes leave at different times: they meet behind the loop, or those that left end.
TEST(Ordinary, LanesOfAMaskThatLeftALoopMeetTheOthersBehindItOrEnd) {
  const std::string loop =
      "mov.u32 %r0, 0; mov.u32 %r4, 0; and.b32 %r7, %t, 16; mov.u32 %r6, 0xffff; shl.b32 %r7, %r6, %r7;\n"
      "L: add.u32 %r5, %r4, %r1; shfl.sync.bfly.b32 %r5, %r5, 1, 31, %r7; add.u32 %r0, %r0, %r5; add.u32 %r4, %r4, 1;\n"
      "shr.u32 %r6, %t, 3; and.b32 %r6, %r6, 1; mad.lo.u32 %r6, %r6, 3, 2; setp.lt.u32 %p2, %r4, %r6; @%p2 bra L";
  for (const char* behind : {";\nshfl.sync.bfly.b32 %r5, %r0, 1, 31, %r7; add.u32 %r0, %r0, %r5", ""})
    three_ways(kernel("7.8", "sm_80", {loop + behind}), newer, false);
}

// Lanes of one mask come to operations of one kind at different places, and exchange values there: in the arms of a branch, the whole warp, its halves,
// or those that a guard leaves in; with more predicates alive than there are, and where one place alone wants the result. Before sm_90 ours do not
// exchange.
TEST(Ordinary, LanesMeetAtOperationsOfDifferentPlaces) {
  struct Operation {
    std::string text, use, without;  // after it, where its result is wanted; without a result
  };
  const Operation operations[] = {
      {"shfl.sync.bfly.b32 %r0, %r5, 3, 31, %r7;", "", ""},
      {"shfl.sync.idx.b32 %r0|%p0, %r5, 5, %r6, %r7;", "@%p0 add.u32 %r0, %r0, 9;", ""},
      {"vote.sync.ballot.b32 %r0, %p1, %r7;", "and.b32 %r0, %r0, %r7;", ""},
      {"vote.sync.any.pred %p0, %p1, %r7;", "selp.b32 %r0, 5, 6, %p0;", ""},
      {"vote.sync.all.pred %p0, !%p1, %r7;", "selp.b32 %r0, 5, 6, %p0;", ""},
      {"redux.sync.add.s32 %r0, %r5, %r7;", "", ""},
      {"match.any.sync.b32 %r0, %r5, %r7;", "", ""},
      {"match.all.sync.b64 %r0|%p0, %d1, %r7;", "@%p0 add.u32 %r0, %r0, 9;", "match.all.sync.b64 %r0|_, %d1, %r7;"},
      {"bar.warp.sync %r7;", "mov.u32 %r0, %r5;", ""}};
  enum Shape { whole, halves, guarded, pressed, unused, shapes };
  std::vector<std::string> statements;
  for (const Operation& o : operations)
    for (int shape = whole; shape < shapes; ++shape) {
      const size_t k = statements.size();
      std::string first = o.text + " " + o.use, then = first, before, after;
      if (shape == halves) before = "and.b32 %r4, %t, 16; mov.u32 %r7, 0xffff; shl.b32 %r7, %r7, %r4;";
      if (shape == guarded) {
        before = ".reg .pred %g; and.b32 %r4, %t, 4; setp.ne.u32 %g, %r4, 0; mov.u32 %r7, 0xf0f0f0f0; setp.lt.s32 %p0, %r1, 0;";
        first = then = "@%g " + o.text + " " + o.use;
      }
      if (shape == pressed) {
        before = ".reg .pred %q<9>;";
        for (int q = 0; q < 9; ++q) {
          before += fmt::format(" and.b32 %r4, %r1, {}; setp.ne.u32 %q{}, %r4, 0;", 1 << q, q);
          after += fmt::format(" @%q{} mad.lo.u32 %r0, %r0, 5, {};", q, 3 << q);
        }
        after = fmt::format("mov.u32 %r4, 0;\nROUND{0}:{1} add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 5; @%p2 bra ROUND{0};", k, after);
      }
      if (shape == unused) then = (o.without.empty() ? o.text : o.without) + " mov.u32 %r0, 7;";
      statements.push_back(fmt::format(
          "mov.u32 %r0, 0; mov.u32 %r7, -1;\n{{ {1}\nand.b32 %r4, %t, 1; setp.eq.u32 %p2, %r4, 0;\n"
          "and.b32 %r6, %t, 3; mad.lo.u32 %r6, %r6, 0x400, 0x101f; and.b32 %r5, %r1, 1; @%p2 bra ARM{0};\n"
          "add.u32 %r5, %r5, 1; {2} mul.lo.u32 %r0, %r0, 3; bra OUT{0};\n"
          "ARM{0}: add.u32 %r5, %r5, 2; mul.lo.u32 %r4, %r5, %r1; {3} add.u32 %r0, %r0, %r4;\nOUT{0}: {4} }} mov.u32 %r4, 0",
          k, before, first, then, after));
    }
  three_ways(kernel("7.8", "sm_80", statements), {"sm_90"}, true);
}

// Barriers that the lanes of a warp come to by both arms: they meet, since a barrier counts warps. Half of the lanes store before one, the others
// load behind another.
TEST(Ordinary, LanesMeetAtBarriersOfDifferentPlaces) {
  std::vector<std::string> statements;
  for (const std::string operation :
       {"barrier.sync 0;", "barrier.sync 3, 96;", "barrier.sync %r6;", "barrier.sync %r6, %n;", "barrier.sync 2, %n;",
        "barrier.red.popc.u32 %r5, 1, %p1;", "barrier.red.or.pred %p0, %r6, !%p1; selp.b32 %r5, 4, 5, %p0;",
        "barrier.red.and.pred %p0, 4, 96, %p1; selp.b32 %r5, 4, 5, %p0;"}) {
    const size_t k = statements.size();
    statements.push_back(fmt::format(
        "mov.u32 %r0, s; and.b32 %r4, %t, 126; shl.b32 %r4, %r4, 2; add.u32 %r0, %r0, %r4; mov.u32 %r5, 0;\n"
        "mov.u32 %r6, 5; mov.u32 %n, %ntid.x; and.b32 %r4, %t, 1; setp.eq.u32 %p2, %r4, 0; @%p2 bra ARM{0};\n"
        "st.shared.u32 [%r0], %r1; {1} mul.lo.u32 %r0, %r5, 3; bra OUT{0};\n"
        "ARM{0}: {1} ld.shared.u32 %r0, [%r0]; add.u32 %r0, %r0, %r5;\nOUT{0}: bar.sync 0",
        k, operation));
  }
  std::string text = kernel("7.8", "sm_80", statements);
  text.insert(text.find(".reg"), ".shared .b32 s[96];\n");
  three_ways(text, {"sm_90"}, true);
}

// Tiles of a warp vote at once, each for itself: the mask is the lane's own.
TEST(Ordinary, VotesOfTilesCountTheirOwnLanes) {
  std::vector<std::string> statements;
  for (const std::string vote : {"vote.sync.any.pred %p0, %p2, %r7; selp.b32 %r0, 1, 2, %p0",
                                 "vote.sync.all.pred %p0, %p2, %r7; selp.b32 %r0, 1, 2, %p0",
                                 "vote.sync.all.pred %p0, !%p2, %r7; selp.b32 %r0, 1, 2, %p0",
                                 "vote.sync.uni.pred %p0, %p2, %r7; selp.b32 %r0, 1, 2, %p0",
                                 "vote.sync.ballot.b32 %r0, !%p2, %r7", "vote.sync.ballot.b32 %r0, %p2, %r7"})
    for (const int lanes : {4, 8, 16, 32})
      for (const std::string among : {"setp.lt.s32 %p2, %r1, %r2;", "and.b32 %r4, %t, 8; setp.ne.u32 %p2, %r4, 0;"})
        statements.push_back(fmt::format("mov.u32 %r0, 0; mov.u32 %r7, {}; and.b32 %r4, %t, {}; shl.b32 %r7, %r7, %r4; {} {}",
                                         static_cast<int32_t>((uint64_t{1} << lanes) - 1), 32 - lanes, among, vote));
  three_ways(kernel("6.0", "sm_60", statements), {"sm_61", "sm_75", "sm_86", "sm_90"}, true);
}

// Tiles go round a loop as often as their lanes want, and do what tiles do in it.
TEST(Ordinary, TilesOfAWarpInLoopsOfTheirOwn) {
  const std::string in_loop[] = {"shfl.sync.bfly.b32 %r6, %r0, 1, 31, %r7; xor.b32 %r0, %r0, %r6;",
                                 "shfl.sync.bfly.b32 %r6, %r0, 2, 31, %r7; add.u32 %r0, %r0, %r6; bar.warp.sync %r7;",
                                 "and.b32 %r6, %r0, 3; match.any.sync.b32 %r6, %r6, %r7; xor.b32 %r0, %r0, %r6;",
                                 "redux.sync.add.u32 %r6, %r0, %r7; xor.b32 %r0, %r0, %r6;",
                                 "vote.sync.ballot.b32 %r6, %p1, %r7; add.u32 %r0, %r0, %r6;"};
  std::vector<std::string> any, newest;
  for (const std::string& step : in_loop)
    for (const int lanes : {4, 16})
      for (const bool by_lane : {false, true}) {
        const bool young = step.starts_with("redux");
        std::vector<std::string>& to = young ? newest : any;
        const size_t k = to.size();
        to.push_back(fmt::format(
            "mov.u32 %r0, %r1; mov.u32 %r7, {0}; and.b32 %r4, %t, {1}; shl.b32 %r7, %r7, %r4; and.b32 %r5, %r1, 7; {2}\n"
            "AGAIN{3}: {4} sub.u32 %r5, %r5, 1; setp.gt.s32 %p0, %r5, 0; vote.sync.any.pred %p2, %p0, %r7; @%p2 bra AGAIN{3}",
            static_cast<int32_t>((uint64_t{1} << lanes) - 1), 32 - lanes, by_lane ? "" : "shr.u32 %r5, %t, 2;", k, step));
      }
  three_ways(kernel("7.0", "sm_70", any), since_turing, true);
  three_ways(kernel("7.0", "sm_80", newest), newer, true);
}

// Each lane goes round the inner loop as often as it likes, all go round the outer one; both begin at one label.
TEST(Ordinary, TwoLoopsWithOneHead) {
  three_ways(
      kernel(
          "6.0", "sm_60",
          {"mov.u32 %r0, %t; mov.u32 %r4, 0; and.b32 %r7, %t, 3;\nL: mad.lo.u32 %r0, %r0, 5, %r7;\n"
           "sub.u32 %r7, %r7, 1; setp.lt.s32 %p2, %r7, 0; @!%p2 bra L; and.b32 %r5, %r0, 1; setp.ne.u32 %p2, %r5, 0;\n"
           "vote.sync.ballot.b32 %r5, %p2, -1; xor.b32 %r0, %r0, %r5; and.b32 %r7, %r0, 3; bar.sync 0;\n"
           "add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 5; @%p2 bra L"}),
      both_families, true);
}

// All lanes run a shuffle whose mask names half of them, where the warp is not known to be whole: nothing is there to wait for. PTX says nothing of the
// other lanes, so the interpreter is no witness.
TEST(Ordinary, AMaskThatNamesOnlySomeOfTheLanesThatAreHere) {
  const ptx::Module module =
      parse_text("mask.ptx",
                 kernel("7.8", "sm_80",
                        {"mov.u32 %r0, 0; mov.u32 %r4, 0;\nL: shfl.sync.bfly.b32 %r5, %r1, 1, 31, 0xffff;\n"
                         "add.u32 %r0, %r0, %r5; add.u32 %r4, %r4, 1; and.b32 %r6, %r1, 0; setp.lt.u32 %p2, %r4, %r6;\n"
                         "@%p2 bra L"}));
  const std::vector<uint64_t> in = input_words();
  for (const std::string& target : newer)
    for (const int level : {0, 3}) {
      auto made = assemble_for(module, target, level);
      ASSERT_TRUE(made.ok()) << made.error().message;
      auto got = run_simulator(target, made->cubin, "k", in);
      ASSERT_TRUE(got.ok()) << target << " -O" << level << ": " << got.error().message;
      for (size_t lane = 0; lane < 16; ++lane)
        EXPECT_EQ((*got)[96 * lane], in[3 * (lane ^ 1)] & 0xffffffffu) << target << " -O" << level;
    }
}

// Pascal takes the taken side of a branch first and keeps the others on its stack, one more per branch that splits the warp.
TEST(Ordinary, PascalsStackHoldsAChainOfArms) {
  constexpr int arms = 20;
  std::string text = kernel("6.0", "sm_60", {"mov.b32 %r0, 1"}), chain;
  for (int k = 0; k < arms; ++k) {
    chain += fmt::format("N{0}: setp.ne.u32 %p2, %t, {0};\n@%p2 bra N{1};\n", k, k + 1);
    for (int step = 0; step < 14; ++step) chain += fmt::format("mad.lo.u32 %r0, %r0, {}, %r1;\n", 2 * step + 3);
    chain += "bra OUT;\n";
  }
  chain += fmt::format("N{}: mov.b32 %r0, 77;\nOUT: st.global.u32 [%out+8], %r0;\nret;", arms);
  text.replace(text.find("ret;"), 4, chain);
  three_ways(text, both_families, true);
  auto made = assemble_for(parse_text("arms.ptx", text), "sm_61");
  ASSERT_TRUE(made.ok()) << made.error().message;
  auto image = cubin::read(made->cubin);
  ASSERT_TRUE(image.ok()) << image.error().message;
  EXPECT_GE(image->kernels[0].stack_bytes, 16u * (arms + 1));
}

// `__align__(16384)`, as tiles of shared memory have it whose addresses are put together by bits.
TEST(Ordinary, VariablesAlignedToManyPages) {
  std::string text = kernel("6.0", "sm_60", {"mov.u32 %r0, large; and.b32 %r0, %r0, 16383; st.shared.u32 [small], %r0"});
  text.insert(text.find(".reg .b16 %u;"), ".shared .b8 small[4]; .shared .align 16384 .b8 large[8];\n");
  three_ways(text, {"sm_61", "sm_86"}, true);
}

}  // namespace
}  // namespace rndn::assembler::testing
