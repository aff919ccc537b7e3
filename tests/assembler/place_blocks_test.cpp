// The order of blocks in the stream: a program whose blocks stand in any order takes as many instructions as in the order in which they run.
#include <numeric>

#include "tests/assembler/three_ways.h"

namespace rndn::assembler::testing::place_blocks_test {
namespace {

// Pieces of a kernel, each with a label and a way on of its own, in the order `order`.
std::string kernel(const std::vector<std::string>& pieces, const std::vector<size_t>& order) {
  std::string text =
      ".version 7.0\n.target sm_60\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
      ".reg .b32 %a, %b, %t, %c, %n, %x, %i, %r<9>; .reg .b64 %in, %at; .reg .f32 %f<5>; .reg .pred %p<9>;\n"
      "ld.param.u64 %in, [in]; ld.param.u64 %at, [out]; mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mad.lo.u32 %n, %c, "
      "96, %t;\n"
      "mad.wide.u32 %in, %n, 24, %in; mad.wide.u32 %at, %n, 768, %at; ld.global.u32 %a, [%in]; ld.global.u32 %b, "
      "[%in+8]; mov.u32 %x, %t; mov.u32 %i, 0;\n"
      "bra.uni P0;\n";
  for (size_t k : order) text += fmt::format("P{}:\n{}", k, pieces[k]);
  return text + "}\n";
}
std::string work(int k) {
  return fmt::format(
      "mad.lo.u32 %x, %x, {}, %a; st.global.u32 [%at+{}], %x; xor.b32 %r1, %x, %b; mad.lo.u32 %x, %r1, %r1, {}; "
      "st.global.u32 [%at+{}], %x;"
      " shr.u32 %r2, %x, 5; xor.b32 %x, %x, %r2; mad.lo.u32 %x, %x, 5, %r1;\n",
      2 * k + 3, 16 * k + 8, k, 16 * k + 16);
}
// A loop whose common way has three pieces, and arms off it.
const std::vector<std::string> loop = {
    work(1) + "bra.uni P1;\n",
    work(2) + "and.b32 %r3, %i, 3; setp.eq.u32 %p1, %r3, 3;\n@%p1 bra.uni P5;\nbra.uni P2;\n",
    work(3) + "setp.gt.u32 %p2, %a, %b;\n@%p2 bra P6;\nbra.uni P3;\n",
    work(4) + "bra.uni P4;\n",
    "add.u32 %i, %i, 1; setp.lt.u32 %p3, %i, 9;\n@%p3 bra.uni P1;\nbra.uni P7;\n",
    work(5) + "bra.uni P4;\n",
    work(6) + "bra.uni P4;\n",
    "st.global.u32 [%at], %x;\nret;\n",
};

TEST(PlaceBlocks, AnyOrderIsAsGood) {
  std::vector<size_t> order(loop.size());
  std::iota(order.begin(), order.end(), 0u);
  std::mt19937 random(7);
  std::array<uint64_t, 3> least{};  // by target: instructions in the order of the program
  for (int round = 0; round < 12; ++round) {
    const std::string text = kernel(loop, order);
    our_code_agrees(text, targets, {0, 1, 3});
    for (size_t k = 0; k < both_families.size(); ++k) {
      auto made = assemble_for(parse_text("order.ptx", text), both_families[k]);
      ASSERT_TRUE(made.ok()) << made.error().message;
      sim::Counters counters;
      ASSERT_TRUE(run_simulator(both_families[k], made->cubin, "k", input_words(), true, &counters).ok());
      if (round == 0) least[k] = counters.warp_instructions;
      // Of 9 warps, 9 rounds each: one jump more in each round, where arms that are as good as each other stand the other way round.
      EXPECT_LE(counters.warp_instructions, least[k] + 9 * 9 + 9) << both_families[k] << "\n" << text;
    }
    std::shuffle(order.begin() + 1, order.end(), random);
  }
}

}  // namespace
}  // namespace rndn::assembler::testing::place_blocks_test
