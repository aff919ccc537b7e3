// Blocks that assembler/backend/schedule_for_pressure.cpp puts into another order: what it is for, and that what must stay in order does.
#include "tests/assembler/three_ways.h"
#include "tests/support/every_case.h"

namespace rndn::assembler::testing::schedule_for_pressure_test {
namespace {

// A kernel with 64 values %v that are all made before any is used: by loads when `made` is empty, else by that statement. `use` follows, then %y is stored.
std::string kernel(const std::string& made, const std::string& use) {
  std::string body;
  for (int k = 0; k < 64; ++k)
    body += made.empty() ? fmt::format("ld.global.nc.u32 %v{}, [%d3+{}];\n", k, k % 6 * 4)
                         : fmt::format(fmt::runtime(made), k, 2 * k + 3);
  return ".version 7.0\n.target sm_60\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
         ".reg .b32 %a, %b, %t, %n, %y, %e0_, %v<64>, %w<64>;\n.reg .b64 %d<8>, %e<64>, %g<64>;\n.reg .pred %p, %q<64>;\n"
         ".shared .align 8 .b8 tile[768];\n"
         "ld.param.u64 %d1, [in];\nld.param.u64 %d2, [out];\nmov.u32 %t, %tid.x;\nmov.u32 %a, %ctaid.x;\n"
         "mad.lo.u32 %n, %a, 96, %t;\nmad.wide.u32 %d3, %n, 24, %d1;\nmad.wide.u32 %d4, %n, 768, %d2;\n"
         "ld.global.u32 %a, [%d3];\nld.global.u32 %b, [%d3+8];\nsetp.lt.s32 %p, %a, 0;\nmov.u32 %y, 1;\n" +
         body + use + "st.global.u32 [%d4+760], %y;\nret;\n}\n";
}
std::string for_all(const std::string& use, int count = 64) {
  std::string text;
  for (int k = 0; k < count; ++k) text += fmt::format(fmt::runtime(use), k, 8 * k, k + 1 < count ? k + 1 : 0);
  return text;
}

struct Case {
  const char* name;
  std::string text;
};
// Forty values, each made of the one before, taken in pairs from both ends: an order for few registers goes the other way as soon as the second half is
// made, which the registers of `use`, written again for every pair {0}, {1}, do not allow.
std::string from_both_ends(const std::string& use) {
  std::string text = "mov.u32 %v0, %b;\n";
  for (int k = 1; k < 40; ++k) text += fmt::format("{0} %v{1}, %v{2}, {3};\n", k % 2 ? "add.u32" : "xor.b32", k, k - 1, k % 3 ? "%a" : "11");
  for (int k = 0; k < 20; ++k) text += fmt::format(fmt::runtime(use), k, 39 - k);
  return kernel("xor.b32 %w{0}, %a, {1};\n", text);
}
const std::string computed = "mad.lo.u32 %v{0}, %a, {1}, %b;\n";
const Case cases[] = {
    {"loads", kernel("", for_all("mad.lo.u32 %y, %y, 3, %v{0};\n"))},
    {"sums", kernel(computed, for_all("xor.b32 %y, %y, %v{0};\n"))},
    {"each is used twice", kernel(computed, for_all("sub.u32 %w{0}, %v{0}, %v{2};\n") + for_all("mad.lo.u32 %y, %y, 5, %w{0};\n"))},
    {"pairs", kernel(computed, for_all("mul.wide.u32 %e{0}, %v{0}, %v{2};\n") +
                                   for_all("shr.u64 %g{0}, %e{0}, 7;\ncvt.u32.u64 %w{0}, %g{0};\nxor.b32 %y, %y, %w{0};\n"))},
    {"predicates", kernel(computed, for_all("setp.lt.u32 %q{0}, %v{0}, %b;\n") + for_all("@%q{0} add.u32 %y, %y, %v{0};\n"))},
    {"guarded writes", kernel(computed, for_all("mov.u32 %w{0}, %v{2};\n@%p add.u32 %w{0}, %v{0}, 9;\n") +
                                            for_all("mad.lo.u32 %y, %y, 3, %w{0};\n"))},
    {"carries", kernel(computed, for_all("add.cc.u32 %w{0}, %v{0}, %v{2};\naddc.u32 %y, %y, %w{0};\n"))},
    {"one register for many values", from_both_ends("xor.b32 %n, %v{0}, %v{1};\nadd.u32 %y, %y, %n;\n")},
    {"one register, updated", from_both_ends("xor.b32 %n, %v{0}, %v{1};\nadd.u32 %n, %n, 5;\nand.b32 %t, %n, 15;\nxor.b32 %n, %n, %t;\nadd.u32 %y, %y, %n;\n")},
    {"one register, updated under a guard", from_both_ends("xor.b32 %n, %v{0}, %v{1};\n@%p add.u32 %n, %n, 9;\nadd.u32 %y, %y, %n;\n")},
    {"one register, alive at the end", from_both_ends("xor.b32 %n, %v{0}, %v{1};\nadd.u32 %y, %y, %n;\n@%p bra OVER{0};\nadd.u32 %y, %y, %n;\nOVER{0}:\n")},
    {"one pair", from_both_ends("mov.b64 %e0, {{%v{0}, %v{1}}};\nshr.u64 %e0, %e0, 5;\ncvt.u32.u64 %n, %e0;\nadd.u32 %y, %y, %n;\n")},
    {"one pair, in halves",
     from_both_ends("mov.b64 %e0, {{%v{0}, %v{1}}};\nadd.s64 %e1, %e0, 7;\nmov.b64 {{%n, %t}}, %e1;\nxor.b32 %y, %y, %n;\nadd.u32 %y, %y, %t;\n")},
    // Values that could come late, and accesses whose order they must not change: each load sees the store before it, each store follows the load of the last.
    {"loads and stores", kernel(computed, for_all("st.global.u32 [%d4+8], %v{0};\nld.global.u32 %w{0}, [%d4+8];\nst.global.u32 [%d4+8], %a;\n"
                                                  "ld.volatile.global.u32 %e0_, [%d4+8];\nmad.lo.u32 %y, %y, %e0_, %w{0};\n"))},
    {"shared memory and barriers",
     kernel("mad.lo.u32 %v{0}, %a, {1}, %b;\n",
                 "mov.u32 %n, tile;\nmad.lo.u32 %n, %t, 8, %n;\n" +
                     for_all("st.shared.u32 [%n], %v{0};\nbar.sync 0;\nld.shared.u32 %w{0}, [%n];\nbar.sync 0;\nadd.u32 %y, %y, %w{0};\n", 6) +
                     for_all("mad.lo.u32 %y, %y, 3, %v{0};\n"))},
};

TEST(OrderForRegisters, MeansTheSame) {
  rndn::test::Sample sample(3);
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    three_ways(c.text, targets, sample.has_next());
  }
}

// Values that are used one by one need not be alive together: a multiprocessor holds as many warps as it can. Not for products on Pascal, whose parts
// are written into one register one after the other.
TEST(OrderForRegisters, FullOccupancy) {
  for (const std::string& target : targets)
    for (const Case& c : cases) {
      const isa::Target& t = *isa::find_target(target);
      if (t.family == isa::Family::pascal && std::string_view(c.name) == "pairs") continue;
      if (std::string_view(c.name).starts_with("shared memory")) continue;  // all values are made in front of the barriers
      if (std::string_view(c.name).starts_with("one pair")) continue;        // both halves wait for the shift, or the sum
      if (std::string_view(c.name).ends_with("alive at the end")) continue;  // a block each
      auto made = assemble_for(parse_text("order.ptx", c.text), target);
      ASSERT_TRUE(made.ok()) << made.error().message;
      EXPECT_LE(made->kernels[0].registers, t.registers_per_sm / (32 * t.warps_per_sm)) << c.name << ", " << target;
      EXPECT_EQ(made->kernels[0].spill_bytes, 0u);
    }
}

}  // namespace
}  // namespace rndn::assembler::testing::schedule_for_pressure_test
