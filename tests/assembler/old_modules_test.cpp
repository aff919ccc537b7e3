// What old PTX says otherwise, or leaves unsaid: modules of sm_1x to sm_5x and of versions before 6, and what was in the language from the
// beginning but no compiler writes. Each statement by our code, by ptxas's code and by the PTX interpreter; printed and read again it is the same.
#include <gmock/gmock.h>

#include "tests/assembler/three_ways.h"

namespace rndn::assembler::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

// A statement of f32 on a subnormal number %f2 (or zero), a number around the least normal one %f3, and a number %f4 of any size.
std::string with_subnormals(const std::string& operation) {
  return "mov.u32 %r0, 0; and.b32 %r4, %r1, 0x807fffff; mov.b32 %f2, %r4; and.b32 %r4, %r2, 0x80ffffff; "
         "or.b32 %r4, %r4, 0x00800000; mov.b32 %f3, %r4; mov.b32 %f4, %r3; mov.b64 %d0, 0; mov.b64 %e2, %d0; mov.f32 "
         "%f5, 0f00000000; " +
         operation;
}

const std::vector<std::string> arithmetic = {"add.f32 %f5, %f2, %f3",
                                             "sub.rz.f32 %f5, %f2, %f3",
                                             "mul.f32 %f5, %f2, %f4",
                                             "mad.f32 %f5, %f2, %f4, %f3",
                                             "mad.sat.f32 %f5, %f2, %f4, %f3",
                                             "min.f32 %f5, %f2, %f4",
                                             "abs.f32 %f5, %f2",
                                             "neg.f32 %f5, %f2",
                                             "cvt.f32.f32 %f5, %f2",
                                             "cvt.sat.f32.f32 %f5, %f2",
                                             "cvt.rpi.f32.f32 %f5, %f2",
                                             "rcp.approx.f32 %f5, %f2",
                                             "rsqrt.approx.f32 %f5, %f2",
                                             "slct.f32.f32 %f5, %f3, %f4, %f2",
                                             "set.lt.f32.f32 %f5, %f2, 0f00000000"};

TEST(OldModules, Sm1xHasNoSubnormalNumbers) {
  std::vector<std::string> statements;
  for (const std::string& a : arithmetic) statements.push_back(with_subnormals(a + "; mov.b32 %r0, %f5"));
  for (const char* s : {"setp.gt.f32 %p2, %f2, 0f00000000; selp.u32 %r0, 1, 2, %p2", "cvt.rpi.s32.f32 %r0, %f2",
                        "cvt.rpi.u16.f32 %u, %f2; cvt.u32.u16 %r0, %u"})
    statements.push_back(with_subnormals(s));
  statements.push_back(
      "mov.u64 %d0, 0; and.b32 %r4, %r1, 0x807fffff; mov.b32 %f2, %r4; cvt.f64.f32 %e2, %f2; mov.b64 %d0, %e2");
  const std::string more = ".reg .f32 %f2, %f3, %f4, %f5; .reg .f64 %e2;";
  EXPECT_THAT(three_ways(with(kernel("3.1", "sm_13", statements), more), both_families, true), AnyOf(-1, 3));
  // PTX 1.4 keeps them where it converts to 64 bits.
  const size_t narrow = statements.size() - 1;
  statements.push_back(with_subnormals("cvt.rpi.s64.f32 %d0, %f2; cvt.u32.u64 %r0, %d0"));
  std::string of_then = with(kernel("1.4", "sm_13", statements), more);
  of_then.replace(of_then.find(".address_size 64\n"), 17, "");
  EXPECT_THAT(three_ways(of_then, both_families, true), AnyOf(-1, 3));
  const std::string of_now = with(kernel("3.1", "sm_13", statements), more);
  our_code_agrees(of_now, both_families, {0, 3});  // ptxas does not flush before it converts to s64
  const std::vector<uint64_t> in = input_words();
  const auto flushed = run_interpreter(parse_text("a.ptx", of_now), "k", in),
             kept = run_interpreter(parse_text("b.ptx", of_then), "k", in);
  ASSERT_TRUE(flushed.ok() && kept.ok());
  std::vector<size_t> differ(96);
  for (size_t k = 0; k < flushed->size(); ++k) differ[k % 96] += (*flushed)[k] != (*kept)[k];
  for (size_t k = 0; k < narrow; ++k) EXPECT_EQ(differ[k], 0u) << statements[k];
  EXPECT_GT(differ[narrow], 100u);
  EXPECT_GT(differ[narrow + 1], 50u);
  // sm_20 has them.
  std::vector<std::string> newer_statements;
  for (const std::string& a : arithmetic)
    if (a.find("approx") == std::string::npos) newer_statements.push_back(with_subnormals(a + "; mov.b32 %r0, %f5"));
  EXPECT_THAT(three_ways(with(kernel("3.1", "sm_20", newer_statements), more), both_families, true), AnyOf(-1, 3));
}

TEST(OldModules, InstructionsThatBeganEarly) {
  const std::vector<std::string> statements = {
      "mov.u32 %r0, 0; add.cc.u32 %r4, %r1, %r2; addc.u32 %r0, %r3, 0",
      "mov.u32 %r0, 0; sub.cc.u32 %r4, %r1, %r2; subc.cc.u32 %r5, %r3, 0; subc.u32 %r0, %r1, 5",
      "mov.u32 %r0, 0; mad.lo.cc.u32 %r4, %r1, %r2, %r3; madc.hi.u32 %r0, %r1, %r2, 0",
      "mov.u32 %r0, 0; mov.u32 %r4, 7; st.shared.u32 [cell], %r4; bar.sync 0; red.shared.add.u32 [cell], %r1; bar.sync "
      "0; "
      "ld.shared.u32 %r0, [cell]; bar.sync 0",
      "mov.u32 %r0, 0; mov.f32 %f2, 0f00000000; st.shared.f32 [cell], %f2; bar.sync 0; mov.f32 %f2, 0f3F800000; "
      "atom.shared.add.f32 %f3, [cell], %f2; bar.sync 0; ld.shared.u32 %r0, [cell]; bar.sync 0",
      "mov.u64 %d0, 0; st.shared.u64 [wide], %d0; bar.sync 0; atom.shared.add.u64 %d4, [wide], %d1; bar.sync 0; "
      "ld.shared.u64 %d0, [wide]; bar.sync 0",
      "vote.ballot.b32 %r0, %p1",
      "mov.u32 %r0, 0; vote.any.pred %p2, %p1; selp.u32 %r0, 1, 2, %p2",
      "cvt.rn.f16.s32 %h0, %r1",
      "mad.f32 %f2, %f1, %f1, %f1; mov.b32 %r0, %f2"};
  std::vector<std::string> first_named = statements;
  first_named.back() = "mov.u32 %r0, 0; " + first_named.back();
  const std::string text =
      with(kernel("3.1", "sm_20", first_named), ".reg .f32 %f2, %f3; .shared .u32 cell; .shared .u64 wide; ");
  EXPECT_THAT(three_ways(text, both_families, true), AnyOf(-1, 3));
}

TEST(OldModules, SpecialRegistersThatAreConverted) {
  const std::vector<std::string> statements = {"cvt.s32.u32 %r0, %tid.x",  "cvt.u64.u32 %d0, %ctaid.x",
                                               "cvt.u32.u16 %r0, %ntid.x", "cvt.s64.s8 %d0, %tid.x",
                                               "mov.u16 %h0, %tid.x",      "@%p1 cvt.u32.u16 %r0, %laneid",
                                               "mov.b16 %h0, %ctaid.x",    "@!%p1 mov.u16 %h0, %tid.x"};
  EXPECT_THAT(three_ways(kernel("3.0", "sm_13", statements), both_families, true), AnyOf(-1, 3));
  for (const char* s :
       {"mov.u64 %d0, %tid.x", "mov.u32 %r0, %clock64", "cvt.u32.u64 %r0, %tid.x", "add.u32 %r0, %tid.x, 1"})
    EXPECT_NE(refusal(kernel("7.8", "sm_80", {s})), "") << s;
}

TEST(OldModules, NamesTellTheirSpace) {
  std::string text = kernel("7.8", "sm_60",
                            {"mov.u32 %r0, 0; mad.lo.u32 %r4, %t, 0, 3; st.u32 [cell+4], %r4; bar.sync 0; "
                             "atom.add.u32 %r5, [cell+4], 2; bar.sync 0; ld.u32 %r0, [cell+4]; bar.sync 0",
                             "ld.u32 %r0, [table+8]", "mov.u32 %r0, 0; st.u32 [own], %r1; ld.volatile.u32 %r0, [own]"});
  text = with(text, ".shared .u32 cell[2]; .local .u32 own;");
  text.insert(text.find(".visible"), ".global .u32 table[3] = {1, 2, 3};\n");
  EXPECT_THAT(three_ways(text, both_families, true), AnyOf(-1, 3));
}

TEST(OldModules, NamesOfOtherSpacesAreRefused) {
  for (const char* s : {"ld.u32 %r0, [c]", "mov.u32 %r0, 0; st.u32 [c], %r0", "atom.add.u32 %r0, [c], 1",
                        "mov.u32 %r0, 0; { .param .b32 q; st.b32 [q], %r0; }"}) {
    std::string text = kernel("7.8", "sm_60", {s});
    text.insert(text.find(".visible"), ".const .u32 c = 9;\n");
    EXPECT_THAT(refusal(text), HasSubstr("which the instruction does not name")) << s;
  }
}

TEST(OldModules, ConstantAddressesInInitialValues) {
  std::string text = kernel("7.8", "sm_60",
                            {"ld.const.u64 %d0, [where+8]; ld.const.u32 %d0, [%d0]",
                             "ld.global.u64 %d0, [places]; ld.const.u32 %d0, [%d0+4]"});
  text.insert(text.find(".visible"),
              ".const .u32 first = 9;\n.const .u32 x[3] = {11, 12, 13};\n.const .u64 where[2] = {first, x+8};\n"
              ".global .u64 places[1] = {x};\n");
  EXPECT_THAT(three_ways(text, both_families, true), AnyOf(-1, 3));
  std::string generic = kernel("7.8", "sm_60", {"mov.u32 %r0, 0"});
  generic.insert(generic.find(".visible"), ".const .u32 x = 9;\n.const .u64 where = generic(x);\n");
  EXPECT_THAT(refusal(generic), HasSubstr("unsupported"));
}

TEST(OldModules, RegistersAndConstantsAreAdded) {
  const std::vector<std::string> statements = {
      "add.u32 %r0, %r1 + 5, %r2", "mov.u64 %d0, %d1 + 0x100000000",
      "mov.u32 %r0, 0; st.global.u32 [%out+400], %r1+1; ld.global.u32 %r0, [%out+400]",
      "mad.lo.u16 %h0, %h1+3, %h2, %h3 + 1"};
  EXPECT_THAT(three_ways(kernel("7.8", "sm_60", statements), both_families, true), AnyOf(-1, 3));
  for (const char* s : {"add.u32 %r0 + 1, %r1, %r2", "mov.b32 %f1, %f1 + 1", "selp.u32 %r0, 1, 2, %p1 + 1",
                        "st.global.v2.u32 [%out], {%r1 + 1, %r2}; mov.u32 %r0, 0"})
    EXPECT_THAT(refusal(kernel("7.8", "sm_60", {s})), HasSubstr("an offset needs")) << s;
}

TEST(OldModules, VectorsOfRegisters) {
  const std::vector<std::string> statements = {
      "mov.u32 %r0, 0; ld.global.v2.u32 v, [%in]; mov.u32 %r0, v.y",
      "mov.u32 %r0, 0; mov.v2.u32 v, {v.y, v.x}; sub.u32 %r0, v.r, v.g",
      "mov.b64 %d0, v; mov.b64 v, %d0",
      "mov.u32 %r0, 0; mov.v4.u16 %w, {%h1, %h2, 5, %h3}; mov.v4.u16 {_, %u, _, _}, %w; cvt.u32.u16 %r0, %u",
      "mov.b64 %d0, %w",
      "mov.u32 %r0, 0; mov.u32 z1.x, %r1; mov.u32 z0.y, z1.x; mov.u32 %r0, z0.y",
      "mov.u32 %r0, 0; st.global.v2.u32 [%out+400], v; ld.global.u32 %r0, [%out+404]",
      "mov.u32 %r0, 0; mov.v2.u32 {%r4, %r5}, {%r1, %r2}; mov.v2.u32 {%r4, %r5}, {%r5, %r4}; sub.u32 %r0, %r4, %r5"};
  EXPECT_THAT(three_ways(with(kernel("7.8", "sm_60", statements), ".reg .v2 .u32 v, z<2>; .reg .v4.u16 %w;"),
                         both_families, true),
              AnyOf(-1, 3));
  const auto refused = [&](const char* s) { return refusal(with(kernel("7.8", "sm_60", {s}), ".reg .v2 .u32 v;")); };
  EXPECT_THAT(refused("mov.u32 %r0, v"), HasSubstr("vector"));
  EXPECT_THAT(refused("mov.u32 %r0, v.z"), HasSubstr("`v.z` is not defined"));
  EXPECT_THAT(refused("ld.global.u32 %r0, [v]"), HasSubstr("cannot be an address"));
  EXPECT_THAT(refused("mov.v4.u32 {%r0, %r1, %r2, %r3}, v"), HasSubstr("expected a vector of 4"));
  EXPECT_THAT(refused("mov.v2.u32 {%r0, %r1}, {v, v}"), HasSubstr("is a vector"));
}

// CUDA before 5 ends no prototype with a semicolon.
TEST(OldModules, PrototypesWithoutSemicolonAndResultsThatNobodyReads) {
  std::string text =
      kernel("3.1", "sm_20",
             {"mov.u32 %r0, 0; .param .b32 q; .param .b32 a; st.param.b32 [q], %r1; call (_), twice, (q); "
              "call (a), twice, (q); ld.param.b32 %r0, [a]"});
  text.insert(text.find(".visible"),
              ".visible .func (.param .b32 r) twice (.param .b32 x)\n.file 1 \"x.cu\"\n.visible .func (.param .b32 r) "
              "twice (.param .b32 x)\n{\n"
              ".reg .b32 %r1;\nld.param.b32 %r1, [x];\nadd.u32 %r1, %r1, %r1;\nst.param.b32 [r], %r1;\nret;\n}\n");
  EXPECT_THAT(three_ways(text, both_families, true), AnyOf(-1, 3));
}

}  // namespace
}  // namespace rndn::assembler::testing
