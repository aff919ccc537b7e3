// What clang and Triton write that nvcc does not, and what older PTX was written in: each statement by our code, by ptxas's code and by the PTX
// interpreter.
#include <gmock/gmock.h>

#include "tests/assembler/three_ways.h"

namespace rndn::assembler::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

// The message of the first diagnostic of a kernel with the statements.
std::string refused(const std::string& body, const std::string& head = ".version 7.8\n.target sm_80\n") {
  return refusal(head + ".address_size 64\n.entry k()\n{\n.reg .b32 %r<4>; .reg .b64 %d<4>; .reg .pred %p<4>;\n" + body + "\n}\n");
}

// Both halves are compared, each with a result of its own.
std::vector<std::string> comparisons(const char* type, const std::vector<std::string>& ftz) {
  std::vector<std::string> s;
  for (const char* c : {"eq", "lt", "ge", "neu", "leu", "num", "nan"})
    for (const std::string& f : ftz) {
      s.push_back(
          fmt::format("mov.u32 %r0, 0; setp.{}{}.{} %p2|%p0, %r1, %r2; selp.u32 %r4, 1, 0, %p2; selp.u32 %r5, 2, 0, "
                      "%p0; or.b32 %r0, %r4, %r5",
                      c, f, type));
      s.push_back(
          fmt::format("mov.u32 %r0, 0; mov.pred %p2, %p1; and.b32 %r4, %r1, 0x8000ffff; setp.{}.xor{}.{} %p2|%p0, "
                      "%r1, %r4, %p2; selp.u32 %r4, 1, 0, %p2; selp.u32 %r5, 2, 0, %p0; or.b32 %r0, %r4, %r5",
                      c, f, type));
    }
  s.push_back(fmt::format("setp.lt.and.{} _|%p2, %r1, %r2, !%p1; selp.u32 %r0, 1, 0, %p2", type));
  s.back() = "mov.u32 %r0, 0; " + s.back();
  return s;
}

TEST(Dialects, HalvesAreComparedInPairs) {
  EXPECT_THAT(three_ways(kernel("6.0", "sm_60", comparisons("f16x2", {"", ".ftz"})), both_families, true),
              AnyOf(-1, 3));
  EXPECT_THAT(three_ways(kernel("7.8", "sm_90", comparisons("bf16x2", {""})), {"sm_90"}, true), AnyOf(-1, 1));
}

TEST(Dialects, ExtremesWithSigns) {
  std::vector<std::string> floats, statements;
  for (const char* op : {"min", "max"})
    for (const char* nan : {"", ".NaN"}) {
      for (const char* ftz : {"", ".ftz"}) {
        for (const char* x : {"%r1", "0x7fc12345", "0x80000000", "0xff800000", "0x80000001"})
          floats.push_back(
              fmt::format("mov.u32 %r0, 0; mov.b32 %f2, {}; mov.b32 %f3, %r2; {}{}{}.xorsign.abs.f32 %f2, "
                          "%f2, %f3; mov.b32 %r0, %f2",
                          x, op, ftz, nan));
        statements.push_back(fmt::format("{}{}{}.xorsign.abs.f16 %h0, %h1, %h2", op, ftz, nan));
        statements.push_back(fmt::format("{}{}{}.xorsign.abs.f16x2 %r0, %r1, %r2", op, ftz, nan));
      }
      for (const char* y : {"%r2", "0x7fff8000", "0xffc17f80"})
        statements.push_back(
            fmt::format("mov.u32 %r0, 0; mov.u32 %r4, {}; {}{}.xorsign.abs.bf16x2 %r0, %r1, %r4", y, op, nan));
      statements.push_back(fmt::format("{}{}.xorsign.abs.bf16 %h0, %h1, %h2", op, nan));
    }
  const std::vector<std::string> on = {"sm_86", "sm_89", "sm_90"};
  EXPECT_THAT(three_ways(with(kernel("7.8", "sm_86", floats), ".reg .f32 %f2, %f3;"), on, true), AnyOf(-1, 3));
  three_ways(kernel("7.8", "sm_86", statements), on, true);  // not all of these HMNMX2 are rows
  std::vector<std::string> brain;
  for (const char* op : {"min", "max", "min.NaN", "max.NaN"}) {
    brain.push_back(fmt::format("{}.xorsign.abs.bf16x2 %r0, %r1, %r2", op));
    brain.push_back(fmt::format("{}.xorsign.abs.bf16 %h0, %h1, %h2", op));
  }
  EXPECT_THAT(three_ways(kernel("7.8", "sm_86", brain), {"sm_90"}, true), AnyOf(-1, 1));
}

// PTX 8.2; ptxas 11.8 knows 7.8.
TEST(Dialects, LogicWithAPredicate) {
  std::vector<std::string> statements;
  for (const char* op : {"or", "and"})
    for (const char* table : {"0xc0", "0x96", "0"})
      statements.push_back(fmt::format(
          "mov.u32 %r0, 0; mov.u32 %r4, %r1; lop3.{}.b32 %r4|%p2, %r4, %r2, %r3, {}, !%p1; selp.u32 %r0, %r4, 77, %p2",
          op, table));
  three_ways(kernel("8.2", "sm_80", statements), newer, false);
}

// clang's names of __syncthreads_count and so on.
TEST(Dialects, BarriersByTheirOtherName) {
  const std::vector<std::string> statements = {
      "mov.u32 %r0, 0; barrier.cta.sync.aligned 0; barrier.cta.red.popc.aligned.u32 %r0, 0, %p1",
      "barrier.cta.red.and.aligned.pred %p2, 0, !%p1",
      "barrier.cta.red.or.aligned.pred %p2, 1, 96, %p1",
      "mov.u32 %r0, 3; barrier.cta.red.popc.u32 %r0, 0, %p1",
      "mov.u32 %r0, 3; barrier.red.popc.u32 %r0, %r0, 96, %p1",
      "barrier.red.or.pred %p2, 2, %p1",
  };
  EXPECT_THAT(three_ways(kernel("7.8", "sm_60", statements), both_families, true), AnyOf(-1, 3));
  EXPECT_EQ(refused("barrier.cta.arrive.aligned 3, 64; bar.cta.red.popc.u32 %r0, 0, %p1;"), "");
  EXPECT_THAT(refused("barrier.cluster.arrive.aligned;"), HasSubstr("unsupported"));
}

TEST(Dialects, OrderWithinAClusterIsThatOfTheGpu) {
  const std::vector<std::string> statements = {
      "fence.acquire.cta; fence.release.gpu; fence.acq_rel.cluster; fence.sc.cluster; mov.u32 %r0, 1",
      "fence.proxy.async; fence.proxy.async.global; fence.proxy.async.shared::cta; "
      "fence.mbarrier_init.release.cluster; "
      "mov.u32 %r0, 2",
      "mov.u32 %r0, 0; st.release.cluster.global.u32 [%out+512], %r1; ld.acquire.cluster.global.u32 %r0, [%out+512]",
      "mov.u32 %r0, 0; atom.global.acq_rel.cluster.add.u32 %r0, [%out+512], 5",
      // A block's own shared memory is all of the cluster's that it has the address of.
      "mov.u32 %r0, 0; mov.u32 %r4, cells; mad.lo.u32 %r4, %t, 4, %r4; st.shared::cluster.u32 [%r4], %r1; "
      "red.release.cluster.shared::cluster.add.u32 [%r4], 3; ld.acquire.cluster.shared::cluster.u32 %r0, [%r4]",
  };
  three_ways(with(kernel("8.6", "sm_90", statements), ".shared .b32 cells[96];"), {"sm_90"}, false);
}

// Before Volta, lanes exchanged values with those that happened to be there.
TEST(Dialects, ShufflesAndVotesWithoutAMask) {
  std::vector<std::string> statements = {
      "shfl.bfly.b32 %r0, %r1, 3, 31",
      "shfl.down.b32 %r0|%p2, %r1, 5, 0x1c1f",
      "mov.u32 %r0, 0; shfl.idx.b32 %r4|%p2, %r1, %r2, 31; selp.u32 %r0, %r4, 7, %p2",
      "shfl.up.b32 %r0, %r1, 1, 0",
      "vote.all.pred %p2, %p1",
      "vote.any.pred %p2, !%p1",
      "vote.uni.pred %p2, %p1",
      "vote.ballot.b32 %r0, %p1",
  };
  EXPECT_THAT(three_ways(kernel("6.0", "sm_60", statements), {"sm_61", "sm_86"}, true), AnyOf(-1, 2));
  EXPECT_THAT(refused("shfl.bfly.b32 %r0, %r1, 3, 31;"), HasSubstr("without .sync"));
}

TEST(Dialects, SpecialRegistersInFours) {
  const std::vector<std::string> statements = {
      "mov.v4.u32 {%r0, %r4, %r5, %r6}, %tid; add.u32 %r0, %r0, %r4; mad.lo.u32 %r0, %r0, 5, %r5; sub.u32 %r0, %r0, "
      "%r6",
      "mov.v4.u32 {%r0, %r4, %r5, %r6}, %ntid; mad.lo.u32 %r0, %r0, %r4, %r6",
      "mov.u32 %r0, 7; @%p1 mov.v4.u32 {%r0, %r4, %r5, %r6}, %nctaid",
      "mov.u32 %r0, %ctaid.w; mov.u32 %r4, %nctaid.w; add.u32 %r0, %r0, %r4",
  };
  EXPECT_THAT(three_ways(kernel("6.0", "sm_60", statements), both_families, true), AnyOf(-1, 3));
}

// Matrices of 8 x 8 halves, from rows that lanes name in any order; also written out here: the element of row r and column c is 8 * r + c + 64 * matrix.
TEST(Dialects, MatricesMoveBetweenSharedMemoryAndLanes) {
  const std::string fill =
      ".shared .align 16 .b8 cells[3072];\nand.b32 %r4, %t, 31; sub.u32 %r5, %t, %r4; mad.lo.u32 %r5, %r5, 32, 0;\n"
      "mov.u32 %r6, cells; add.u32 %r5, %r5, %r6; xor.b32 %r6, %r4, 5; mad.lo.u32 %r5, %r6, 16, %r5;\n"
      "mad.lo.u32 %r6, %r4, 0x00080008, 0x00010000;\n";  // the row's first two elements; the next two are 0x20002 more
  std::string rows;
  for (int k = 0; k < 4; ++k)
    rows += fmt::format("st.shared.b32 [%r5+{}], %r6; add.u32 %r6, %r6, 0x00020002;\n", 4 * k);
  for (const bool transposed : {false, true})
    for (const uint32_t count : {1u, 2u, 4u}) {
      const std::string to = count == 1 ? "{%r0}" : count == 2 ? "{%r0, %r4}" : "{%r0, %r4, %r6, %r7}";
      const std::string mode = fmt::format("sync.aligned.m8n8.x{}{}.shared.b16", count, transposed ? ".trans" : "");
      std::string text = kernel("7.8", "sm_90", {"mov.u32 %r0, 0; mov.u32 %r4, 0; mov.u32 %r6, 0; mov.u32 %r7, 0"});
      text.replace(
          text.find("ret;"), 4,
          fill + rows + "bar.sync 0;\nldmatrix." + mode + " " + to +
              ", [%r5];\nst.global.v2.b32 [%out+16], {%r0, %r4}; st.global.v2.b32 [%out+24], {%r6, %r7};\n"
              "bar.sync 0;\nxor.b32 %r0, %r0, 0x5a5a5a5a; xor.b32 %r4, %r4, 0x5a5a5a5a; xor.b32 %r6, %r6, 0x5a5a5a5a;\n"
              "xor.b32 %r7, %r7, 0x5a5a5a5a;\nstmatrix." +
              mode + " [%r5], " + to +
              ";\nbar.sync 0;\nld.shared.v2.b64 {%d0, %d4}, [%r5]; st.global.v2.b64 [%out+32], {%d0, %d4};\nret;");
      EXPECT_THAT(three_ways(text, {"sm_90"}, true), AnyOf(-1, 1));
      // Stored, every element comes back to its place, changed.
      const auto stored = run_interpreter(parse_text("matrices.ptx", text), "k", input_words());
      ASSERT_TRUE(stored.ok()) << stored.error().message;
      for (uint32_t lane = 0; lane < 32; ++lane)
        for (uint32_t c = 0; c < 8; ++c)
          EXPECT_EQ(static_cast<uint16_t>((*stored)[96 * lane + 4 + c / 4] >> (c % 4 * 16)),
                    (8 * lane + c) ^ (lane < 8 * count ? 0x5a5a : 0))
              << lane << " " << c;
      text.replace(text.find("stmatrix."), text.find(";", text.find("stmatrix.")) - text.find("stmatrix."),
                   "bar.sync 0");
      text.replace(text.find(".target sm_90"), 13, ".target sm_80");
      EXPECT_THAT(three_ways(text, newer, true), AnyOf(-1, static_cast<int>(newer.size())));
      const auto got = run_interpreter(parse_text("matrices.ptx", text), "k", input_words());
      ASSERT_TRUE(got.ok()) << got.error().message;
      for (uint32_t lane = 0; lane < 32; ++lane)
        for (uint32_t m = 0; m < count; ++m) {
          const uint32_t along = 2 * (lane % 4), across = lane / 4;
          uint32_t expected = 0;
          for (uint32_t e = 0; e < 2; ++e) {
            const uint32_t row = transposed ? along + e : across, column = transposed ? across : along + e;
            expected |= (8 * (8 * m + row) + column) << (16 * e);
          }
          EXPECT_EQ(static_cast<uint32_t>((*got)[96 * lane + 2 + m / 2] >> (m % 2 * 32)), expected) << lane << " " << m;
        }
    }
}

// Of the logic of 64 bits that is compared with zero ptxas makes LOP.X.NZ for Pascal; of a return under two conditions RET with two predicates.
TEST(Dialects, LogicOf64BitsIsComparedAndReturnsHaveTwoConditions) {
  std::vector<std::string> statements;
  for (const char* o : {"and", "or", "xor"})
    for (const char* c : {"eq", "ne"})
      for (const char* mask : {"%d2", "0xff00000000", "0xff00"})
        statements.push_back(fmt::format(
            "mov.b64 %d0, 0; {}.b64 %d4, %d1, {}; setp.{}.s64 %p0, %d4, 0; selp.b64 %d0, 5, %d3, %p0", o, mask, c));
  std::string text = kernel("6.0", "sm_60", statements);
  EXPECT_THAT(three_ways(text, {"sm_60", "sm_61", "sm_86", "sm_90"}, true), AnyOf(-1, 4));
  text = kernel("6.0", "sm_60",
                {"mov.u32 %r0, 0; call (%r0), f, (%r1, %r2)", "mov.u32 %r0, 0; call (%r0), f, (%r2, %r3)"});
  text.insert(
      text.find(".visible"),
      ".func (.reg .b32 %o) f(.reg .b32 %a, .reg .b32 %b)\n{\n.reg .pred %p, %q; .reg .b32 %x;\nmov.u32 %o, 7;\n"
      "setp.gt.s32 %p, %a, %b; and.b32 %x, %a, 3; setp.lt.and.u32 %q, %x, 2, %p;\n@%q ret;\n"
      "mul.lo.u32 %o, %a, %b; setp.lt.or.u32 %q, %x, 1, %p;\n@%q ret;\nadd.u32 %o, %o, %b;\nret;\n}\n");
  EXPECT_THAT(three_ways(text, {"sm_60", "sm_61", "sm_86", "sm_90"}, true), AnyOf(-1, 4));
}

// cp.async with a predicate: zeros come where it is true.
TEST(Dialects, CopiesThatIgnoreTheirSource) {
  std::string text = kernel("7.8", "sm_80", {"mov.b32 %r0, 5"});
  text.replace(text.find("ret;"), 4,
               ".shared .align 16 .b8 cells[1536];\nmov.u32 %r4, cells; mad.lo.u32 %r4, %t, 16, %r4;\n"
               "st.shared.v4.b32 [%r4], {1, 2, 3, 4};\ncp.async.ca.shared.global [%r4], [%in], 8, %p1;\n"
               "cp.async.wait_all;\nld.shared.b64 %d0, [%r4]; st.global.b64 [%out+16], %d0;\n"
               "@!%p1 cp.async.ca.shared::cta.global.L2::128B [%r4], [%in+8], 4, %p1;\ncp.async.wait_all;\n"
               "ld.shared.v2.b64 {%d0, %d4}, [%r4]; st.global.v2.b64 [%out+32], {%d0, %d4};\nret;");
  three_ways(text, newer, true);
}

}  // namespace
}  // namespace rndn::assembler::testing
