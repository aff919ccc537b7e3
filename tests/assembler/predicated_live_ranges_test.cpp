// Values that assembler/optimize/predicated_live_ranges.cpp takes for temporaries, and values that it must leave: our code against the PTX interpreter, on every target.
#include "tests/assembler/three_ways.h"

namespace rndn::assembler::testing::predicated_live_ranges_test {
namespace {

// A kernel of the tests' shape: a loop of seven iterations, %i counts them, around the body. %a, %b, %c are words of the thread's input; the results
// are in %x and %y. What follows the body takes registers that a value which dies too early would lose.
std::string kernel(const std::string& body) {
  std::string many;
  for (int k = 1; k < 16; ++k) many += fmt::format("mad.lo.u32 %n{}, %x, {}, %b;\n", k, 2 * k + 1);
  for (int k = 1; k < 15; ++k) many += fmt::format("mad.lo.u32 %n{}, %n{}, %n{}, %n15;\n", k, k, k + 1);
  for (int k = 1; k < 15; ++k) many += fmt::format("xor.b32 %y, %y, %n{};\n", k);
  return ".version 7.0\n.target sm_60\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
         ".reg .b32 %a, %b, %c, %x, %y, %z, %i, %t<8>, %n<20>;\n.reg .b32 %j<4>;\n.reg .b64 %d<8>, %w;\n.reg .pred %p, "
         "%q, %g, %h, %l, %o<6>;\n"
         "ld.param.u64 %d1, [in];\nld.param.u64 %d2, [out];\nmov.u32 %j1, %tid.x;\nmov.u32 %j2, %ctaid.x;\n"
         "mad.lo.u32 %j3, %j2, 96, %j1;\nmad.wide.u32 %d3, %j3, 24, %d1;\nmad.wide.u32 %d4, %j3, 768, %d2;\n"
         "ld.global.u32 %a, [%d3];\nld.global.u32 %b, [%d3+8];\nld.global.u32 %c, [%d3+16];\n"
         "mov.u32 %x, 7;\nmov.u32 %y, 9;\nmov.u32 %z, 0;\nmov.u32 %i, 0;\n"
         "AGAIN:\nadd.u32 %n0, %a, %i;\nand.b32 %n0, %n0, 3;\nsetp.eq.u32 %p, %n0, 0;\nsetp.eq.u32 %q, %i, 0;\n" +
         body + many +
         "add.u32 %i, %i, 1;\nsetp.lt.u32 %l, %i, 7;\n@%l bra AGAIN;\n"
         "st.global.u32 [%d4], %x;\nst.global.u32 [%d4+8], %y;\nst.global.u32 [%d4+16], %z;\nret;\n}\n";
}

// Takes registers for a while.
const std::string busy = [] {
  std::string text;
  for (int k = 1; k < 12; ++k) text += fmt::format("mad.lo.u32 %n{}, %x, {}, %c;\n", k, 3 * k + 1);
  for (int k = 1; k < 12; ++k) text += fmt::format("xor.b32 %y, %y, %n{};\n", k);
  return text;
}();

// Takes predicates.
const std::string busy_predicates = [] {
  std::string text;
  for (int k = 0; k < 6; ++k) text += fmt::format("setp.lt.u32 %o{0}, %c, {1};\n", k, 77777 * k + 5);
  for (int k = 0; k < 6; ++k) text += fmt::format("selp.u32 %t7, %y, {1}, %o{0};\nadd.u32 %y, %y, %t7;\n", k, k);
  return text;
}();

struct Case {
  const char* name;
  std::string body;
};
const Case cases[] = {
    {"one guard", "@%p add.u32 %t1, %a, %b;\n@%p xor.b32 %x, %x, %t1;\n"},
    {"one guard, negated", "@!%p add.u32 %t1, %a, %b;\n@!%p xor.b32 %x, %x, %t1;\n"},
    {"an arm that is predicated",
     "@!%p bra SKIP;\nadd.u32 %t1, %a, %b;\nmul.lo.u32 %t2, %t1, %c;\nxor.b32 %x, %t2, %t1;\nSKIP:\n"},
    {"both arms",
     "@%p bra ELSE;\nadd.u32 %t1, %a, %i;\nxor.b32 %x, %x, %t1;\nbra JOIN;\n"
     "ELSE:\nmul.lo.u32 %t2, %b, %i;\nadd.u32 %x, %x, %t2;\nJOIN:\n"},
    // The same of predicates. What takes seven of them would lose one that dies too early.
    {"a predicate under one guard", "@%p setp.lt.u32 %g, %a, %b;\n@%p selp.u32 %x, %x, 5, %g;\n" + busy_predicates},
    {"a predicate of an arm, in a loop",
     "@%p bra SKIP;\nsetp.lt.u32 %g, %a, %b;\nselp.u32 %t1, %a, %c, %g;\nsetp.gt.u32 %h, %t1, %i;\nselp.u32 %x, %x, %t1, %h;\nSKIP:\n" +
         busy_predicates},
    {"a predicate with a reader without guard", "@%q setp.lt.u32 %g, %a, %b;\n" + busy_predicates + "selp.u32 %x, %x, 5, %g;\n"},
    {"a predicate with a reader under the opposite guard",
     "@%q setp.lt.u32 %g, %a, %b;\n" + busy_predicates + "@!%q selp.u32 %x, %x, 5, %g;\n"},
    {"a predicate that is another's guard", "@%q setp.lt.u32 %g, %a, %b;\n" + busy_predicates + "@%g add.u32 %x, %x, %i;\n"},
    {"a predicate that a branch reads",
     "@%q setp.lt.u32 %g, %a, %b;\n" + busy_predicates + "@%g bra OVER;\n" + busy + "OVER:\n"},
    {"a predicate whose guard changes",
     "setp.eq.u32 %h, %i, 0;\n@%h setp.lt.u32 %g, %a, %b;\n" + busy_predicates + "setp.ne.u32 %h, %i, 1;\n@%h selp.u32 %x, %x, 5, %g;\n"},
    // What an earlier iteration wrote is read in a later one.
    {"a reader without guard", "@%q add.u32 %t1, %a, %b;\nadd.u32 %x, %x, %t1;\n"},
    {"a reader under the opposite guard", "@%q add.u32 %t1, %a, %b;\n@!%q add.u32 %x, %x, %t1;\n"},
    {"a reader under another guard", "@%q add.u32 %t1, %a, %b;\nsetp.ne.u32 %g, %i, 1;\n@%g add.u32 %x, %x, %t1;\n"},
    {"a reader with the guard, one without",
     "@%q add.u32 %t1, %a, %b;\n@%q add.u32 %x, %x, %t1;\nxor.b32 %x, %x, %t1;\n"},
    {"the guard changes in between",
     "setp.eq.u32 %g, %i, 0;\n@%g add.u32 %t1, %a, %b;\nsetp.ne.u32 %g, %i, 1;\n@%g add.u32 %x, %x, %t1;\n"},
    {"the guard changes in between, and in another block",
     "setp.eq.u32 %g, %i, 0;\n@%g add.u32 %t1, %a, %b;\nsetp.ne.u32 %g, %i, 1;\n@%g add.u32 %x, %x, %t1;\nsetp.lt.u32 "
     "%l, %a, %c;\n"
     "@%l bra OVER;\n" +
         busy + "setp.eq.u32 %g, %i, 9;\nOVER:\n"},
    {"a second write, under another guard",
     "@%p add.u32 %t1, %a, %b;\n@%p xor.b32 %x, %x, %t1;\n@!%p add.u32 %t1, %b, %c;\n@!%p add.u32 %x, %x, %t1;\n"},
    {"a write before, under another guard", "@%q add.u32 %t1, %a, %b;\n@%p add.u32 %x, %x, %t1;\n" + busy +
                                                "@%p add.u32 %t1, %b, %c;\n@%p xor.b32 %x, %x, %t1;\n"},
    {"a reader in another block, of what an earlier iteration wrote",
     "setp.eq.u32 %g, %z, 0;\n@%g bra OVER;\n@%p add.u32 %x, %x, %t1;\n" + busy +
         "OVER:\n@%p add.u32 %t1, %a, %i;\n"
         "@%p mov.u32 %z, 1;\n"},
    {"halves of a pair, one with readers without guard",
     "@%q mad.wide.u32 %w, %a, %b, 5;\n@%q cvt.u32.u64 %t3, %w;\n@%q add.u32 %x, %x, %t3;\nshr.u64 %d5, "
     "%w, 32;\ncvt.u32.u64 %t4, %d5;\nxor.b32 %x, %x, %t4;\n"},
    {"a pair whose halves are read apart",
     "@%p mov.b64 %w, {%a, %b};\n@%p mov.b64 {%t1, %t2}, %w;\n@%p add.u32 %x, %x, %t1;\n@!%p add.u32 %x, %x, %i;\n@%p "
     "xor.b32 %x, %x, %t2;\n"},
};

TEST(GuardedValues, MeanWhatTheyMeant) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    our_code_agrees(kernel(c.body), targets, {0, 1, 3});
  }
}

// What the pass is for: values of predicated arms take no register around the loop.
TEST(GuardedValues, TakeNoRegisterAroundTheLoop) {
  const auto arms = [](int n) {
    std::string body;
    for (int k = 1; k <= n; ++k)
      body += fmt::format("@%p mul.lo.u32 %t{}, %a, {};\n@%p xor.b32 %x, %x, %t{};\n", k, 2 * k + 3, k);
    return kernel(body);
  };
  for (const std::string& target : targets) {
    auto one = assemble_for(parse_text("guarded.ptx", arms(1)), target),
         seven = assemble_for(parse_text("guarded.ptx", arms(7)), target);
    ASSERT_TRUE(one.ok() && seven.ok());
    EXPECT_LE(seven->kernels[0].registers, one->kernels[0].registers + 2) << target;
  }
}

}  // namespace
}  // namespace rndn::assembler::testing::predicated_live_ranges_test
