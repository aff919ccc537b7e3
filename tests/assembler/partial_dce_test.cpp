// What assembler/optimize/partial_dce.cpp puts under guards, and what it must leave: our code against the PTX interpreter, on every target.
#include "tests/assembler/three_ways.h"

namespace rndn::assembler::testing::partial_dce_test {
namespace {

// More than the 32 registers with which all warps are resident, if all are alive at once; sm_75 has 64 for each thread of its 32 warps.
constexpr int values = 48, values_of_64 = 96;

// A kernel of the tests' shape: a loop of six iterations, %i counts them, with the guards %p0 to %p3 of which some hold, around `body`, once for each
// value: {0} is its number, {1} that of its guard, {2} a constant, {3} the value before with the same guard, {4} the number of another guard,
// {5} an offset. The %v are set under guards; %x, %y and %z are stored after the loop and `behind`.
std::string kernel(const std::string& body, const std::string& at_the_end = "", const std::string& behind = "", int count = values) {
  std::string zeros, text;
  for (int k = 0; k < count; ++k) {
    zeros += fmt::format("mov.u32 %v{0}, {0};\nmov.u64 %e{0}, {0};\n", k);
    text += fmt::format(fmt::runtime(body), k, k % 4, 2 * k + 3, k < 4 ? k : k - 4, (k + 1) % 4, 8 * k + 24);
  }
  std::string guards;
  for (int g = 0; g < 4; ++g) guards += fmt::format("shr.u32 %n, %n, 1;\nand.b32 %m, %n, 1;\nsetp.ne.u32 %p{}, %m, 0;\n", g);
  return ".version 7.0\n.target sm_60\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
         ".reg .b32 %a, %b, %c, %x, %y, %z, %i, %n, %m, %t<4>, %v<96>, %w<96>, %u<96>;\n.reg .b64 %d<8>, %e<96>, %g<96>;\n"
         ".reg .pred %p<4>, %q<96>, %l, %s;\n"
         "ld.param.u64 %d1, [in];\nld.param.u64 %d2, [out];\nmov.u32 %t1, %tid.x;\nmov.u32 %t2, %ctaid.x;\n"
         "mad.lo.u32 %t3, %t2, 96, %t1;\nmad.wide.u32 %d3, %t3, 24, %d1;\nmad.wide.u32 %d4, %t3, 768, %d2;\n"
         "ld.global.u32 %a, [%d3];\nld.global.u32 %b, [%d3+8];\nld.global.u32 %c, [%d3+16];\n"
         "mov.u32 %x, 7;\nmov.u32 %y, 9;\nmov.u32 %z, 0;\nmov.u32 %i, 0;\n" +
         zeros + "AGAIN:\nmad.lo.u32 %n, %i, 77, %a;\n" + guards + text + at_the_end +
         "add.u32 %i, %i, 1;\nsetp.lt.u32 %l, %i, 6;\n@%l bra AGAIN;\n" + behind +
         "st.global.u32 [%d4], %x;\nst.global.u32 [%d4+8], %y;\nst.global.u32 [%d4+16], %z;\nret;\n}\n";
}

struct Case {
  const char* name;
  std::string body, at_the_end, behind;
  std::string text(int count = values) const { return kernel(body, at_the_end, behind, count); }
};
const std::string set = "@%p{1} mad.lo.u32 %v{0}, %b, {2}, %i;\n";
const std::string sum = "mad.lo.u32 %w{0}, %v{0}, {2}, %c;\n";
const std::string used = "@%p{1} xor.b32 %x, %x, %w{0};\n@%p{1} mad.lo.u32 %x, %x, 5, %y;\n";
const Case cases[] = {
    {"a sum", set + sum + used},
    {"a negated guard", "@!%p{1} mad.lo.u32 %v{0}, %b, {2}, %i;\n" + sum + "@!%p{1} xor.b32 %x, %x, %w{0};\n"},
    {"the opposite guard", set + sum + "@!%p{1} xor.b32 %x, %x, %w{0};\n"},
    {"another guard", set + sum + "@%p{4} xor.b32 %x, %x, %w{0};\n"},
    {"the guard and another", set + sum + used + "@%p{4} xor.b32 %y, %y, %w{0};\n"},
    {"a reader without guard", set + sum + used + "xor.b32 %y, %y, %v{0};\n"},
    {"through predicates", set + "setp.ne.u32 %q{0}, %v{0}, %c;\nsetp.lt.and.u32 %s, %v{0}, %a, %q{0};\nselp.b32 %w{0}, 3, {2}, %s;\n" + used},
    {"a guard made of the value", set + "setp.lt.u32 %s, %v{0}, %a;\n@%s add.u32 %x, %x, {2};\n"},
    {"a branch on the value", set + "setp.lt.u32 %s, %v{0}, %a;\n@%s bra OVER{0};\nmad.lo.u32 %x, %x, 3, %v{0};\nmul.lo.u32 %x, %x, %y;\n"
                                           "add.u32 %y, %x, 1;\nxor.b32 %y, %y, %b;\nOVER{0}:\n"},
    {"the guard changes in between", set + sum + "setp.lt.u32 %p{1}, %y, %b;\n" + used},
    {"the guard changes by the value", set + sum + "setp.lt.u32 %p{1}, %w{0}, %b;\n" + used},
    {"the guard changes behind", set + sum + used + "setp.lt.u32 %p{1}, %x, %b;\n"},
    {"the guard changes under itself", set + sum + "@%p{1} setp.lt.u32 %p{1}, %w{0}, %b;\n" + used},
    {"the last iteration's value", sum + used + set},
    {"the value before", set + "mad.lo.u32 %w{0}, %v{0}, {2}, %v{3};\n" + used},
    {"after the loop", set + sum + used, "", "xor.b32 %y, %v7, %v11;\nxor.b32 %z, %w12, %v47;\n"},
    {"two writes under the guard", set + sum + used + "@%p{1} xor.b32 %v{0}, %v{0}, %x;\nadd.u32 %u{0}, %v{0}, {2};\n"
                                                           "@%p{1} add.u32 %x, %x, %u{0};\n"},
    {"two writes under two guards", set + "@%p{4} add.u32 %v{0}, %a, {2};\n" + sum + used},
    {"both guards", set + "@!%p{1} add.u32 %v{0}, %a, {2};\n" + sum + "xor.b32 %x, %x, %w{0};\n"},
    {"a result set before", set + "mov.u32 %w{0}, {2};\n@%p{4} add.u32 %w{0}, %v{0}, 1;\n" + used},
    {"an update", "@%p{1} mad.lo.u32 %v{0}, %v{0}, {2}, %i;\n" + sum + used},
    {"an update that nobody reads", "@%p{1} mad.lo.u32 %v{0}, %v{0}, {2}, %i;\nadd.u32 %x, %x, {2};\n"},
    {"pairs", "@%p{1} mul.wide.u32 %e{0}, %b, {2};\nshr.u64 %g{0}, %e{0}, 9;\nadd.s64 %g{0}, %g{0}, %e{0};\ncvt.u32.u64 %w{0}, %g{0};\n" + used},
    {"pairs, one half under the guard alone",
     "@%p{1} mul.wide.u32 %e{0}, %b, {2};\nmov.b64 {{%u{0}, %w{0}}}, %e{0};\nxor.b32 %y, %y, %u{0};\n" + used},
    {"carries", set + "add.cc.u32 %u{0}, %v{0}, %b;\naddc.u32 %w{0}, %v{0}, {2};\nadd.u32 %w{0}, %w{0}, %u{0};\n" + used},
    {"loads", "@%p{1} ld.global.u32 %v{0}, [%d3+4];\n" + sum + "@%p{1} st.global.u32 [%d4+{5}], %w{0};\n" + used},
    {"quotients", set + "div.u32 %w{0}, %v{0}, {2};\n" + used},
    {"other lanes", set + "shfl.sync.bfly.b32 %u{0}, %v{0}, 1, 31, -1;\nadd.u32 %w{0}, %v{0}, %u{0};\n" + used},
};

TEST(PartlyDeadCode, MeansTheSame) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    our_code_agrees(c.text(), targets, {0, 3});
  }
}

// What lanes do where they meet is for lanes of other places, too: of a vote that nobody reads, these need the result.
TEST(PartlyDeadCode, LeavesWhatOtherLanesNeed) {
  our_code_agrees(kernel(set + sum + used,
                         "and.b32 %m, %t1, 1;\nsetp.ne.u32 %s, %m, 0;\nsetp.lt.u32 %l, %a, %b;\n@%s bra ARM;\nvote.sync.ballot.b32 %w63, %p0, -1;\n"
                         "mul.lo.u32 %y, %y, 3;\nbra OUT;\nARM:\nvote.sync.ballot.b32 %n, %l, -1;\nxor.b32 %y, %y, %n;\nOUT:\n"),
                  {"sm_90"}, {0, 3});
}

// What the pass is for: elements that are set under guards take no registers around the loop, nor instructions that set them before it.
TEST(PartlyDeadCode, TakesNoRegisterAroundTheLoop) {
  for (const char* name : {"a sum", "a negated guard", "through predicates", "two writes under the guard", "pairs", "quotients"}) {
    const Case& c = *std::ranges::find(cases, std::string_view(name), [](const Case& x) { return std::string_view(x.name); });
    for (const std::string& target : targets) {
      const uint32_t free = full_occupancy_registers(*isa::find_target(target));
      auto made = assemble_for(parse_text("partly_dead.ptx", c.text(free == 64 ? values_of_64 : values)), target);
      ASSERT_TRUE(made.ok()) << made.error().message;
      EXPECT_LE(made->kernels[0].registers, free == 64 ? 64u : 32u) << name << " " << target;
      EXPECT_EQ(made->kernels[0].spill_bytes, 0u) << name << " " << target;
    }
  }
}

}  // namespace
}  // namespace rndn::assembler::testing::partial_dce_test
