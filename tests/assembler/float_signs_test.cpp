// Signs, magnitudes and saturation that become part of the instructions that read or make a float, and what else an instruction is chosen by: loads of what
// nothing writes, conversions by the ALU, shared sums that ask whether they swapped. Our code against the PTX interpreter, on every target, and that it is what was meant.
#include "assembler/isa/isa.h"
#include "tests/assembler/three_ways.h"

namespace rndn::assembler::testing::float_signs_test {
namespace {

using isa::Mnemonic;

// A kernel of the tests' shape with floats of all kinds: %f0 .. %f7 are zeros, infinities, NaN, subnormal and other numbers, by the thread, %e0 .. %e3 of f64;
// %p tells of the thread's lowest bit. What the body leaves in %x0 .. %x3, %y0, %y1 and %t is stored.
std::string kernel(const std::string& body) {
  std::string text =
      ".version 7.0\n.target sm_60\n.address_size 64\n"
      ".global .align 8 .b32 numbers[16] = {0, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0x00000001, 0x807fffff, 0x00800000, 0x3f800000, 0xbf800000, "
      "0x3f000000, 0x40490fdb, 0xc2c80000, 0x7f7fffff, 0x3e99999a, 0xbdcccccd};\n"
      ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n.reg .b64 %d<8>;\n.reg .b32 %i<8>, %t, %u;\n.reg .f32 %f<8>, %g<12>, %x<4>;\n.reg .f64 %e<4>, "
      "%h<12>, %y<2>;\n.reg .pred %p, %q, %r;\n"
      "ld.param.u64 %d1, [in];\nld.param.u64 %d2, [out];\nmov.u32 %i1, %tid.x;\nmov.u32 %i2, %ctaid.x;\nmad.lo.u32 %i3, %i2, 96, %i1;\n"
      "mad.wide.u32 %d3, %i3, 24, %d1;\nmad.wide.u32 %d4, %i3, 768, %d2;\nmov.u64 %d5, numbers;\nand.b32 %i4, %i1, 1;\nsetp.eq.u32 %p, %i4, 0;\nmov.u32 %t, 0;\n"
      "mov.f32 %x0, 0f00000000; mov.f32 %x1, %x0; mov.f32 %x2, %x0; mov.f32 %x3, %x0;\nmov.f64 %y0, 0d0000000000000000; mov.f64 %y1, %y0;\n";
  for (int k = 0; k < 8; ++k)
    text += fmt::format("mad.lo.u32 %i5, %i1, {}, {};\nshr.u32 %i6, %i5, {};\nand.b32 %i5, %i6, 15;\nmad.wide.u32 %d6, %i5, 4, %d5;\nld.global.f32 %f{}, [%d6];\n", 7 * k + 1,
                        3 * k, k / 2, k);
  for (int k = 0; k < 4; ++k) text += fmt::format("cvt.f64.f32 %e{}, %f{};\n", k, 7 - k);
  text += body;
  for (int k = 0; k < 4; ++k) text += fmt::format("st.global.f32 [%d4+{}], %x{};\n", 8 * k, k);
  for (int k = 0; k < 2; ++k)  // PTX leaves open which NaN a double is
    text += fmt::format("setp.nan.f64 %r, %y{0}, %y{0};\n@%r mov.f64 %y{0}, 0d7FF8000000000000;\n", k);
  return text + "st.global.f64 [%d4+32], %y0;\nst.global.f64 [%d4+40], %y1;\nst.global.u32 [%d4+48], %t;\nret;\n}\n";
}

struct Case {
  const char* name;
  const char* body;
  int additions = -1;  // FADD, on Volta and later at -O3; -1: not counted
};
const Case cases[] = {
    {"sums", "neg.f32 %g0, %f0;\nabs.f32 %g1, %f1;\nadd.f32 %x0, %g0, %f2;\nsub.f32 %x1, %f3, %g0;\nadd.f32 %x2, %g1, %g0;\nsub.f32 %x3, %g1, %f4;\n", 4},
    {"products", "neg.f32 %g0, %f0;\nneg.f32 %g1, %f1;\nmul.f32 %x0, %g0, %f2;\nmul.f32 %x1, %g0, %g1;\nmul.f32 %x2, %g0, %g0;\nmul.f32 %x3, %g0, 0f40400000;\n", 0},
    {"products and sums",
     "neg.f32 %g0, %f0;\nneg.f32 %g1, %f1;\nfma.rn.f32 %x0, %g0, %f2, %f3;\nfma.rn.f32 %x1, %g0, %g1, %g0;\nfma.rn.f32 %x2, %f2, %g0, 0f3F800000;\nfma.rn.f32 %x3, %g0, "
     "0f40400000, %g1;\n", 0},
    {"magnitudes stay before products", "abs.f32 %g0, %f0;\nmul.f32 %x0, %g0, %f1;\nfma.rn.f32 %x1, %g0, %f2, %g0;\n", 1},
    {"signs of signs",
     "neg.f32 %g0, %f0;\nneg.f32 %g1, %g0;\nabs.f32 %g2, %g0;\nneg.f32 %g3, %g2;\nabs.f32 %g4, %g3;\nadd.f32 %x0, %g1, %f1;\nadd.f32 %x1, %g2, %f1;\nadd.f32 %x2, %g3, "
     "%f1;\nadd.f32 %x3, %g4, %f1;\n", 4},
    {"comparisons",
     "neg.f32 %g0, %f0;\nabs.f32 %g1, %f1;\nsetp.lt.f32 %q, %g0, %g1;\n@%q add.u32 %t, %t, 1;\nsetp.geu.f32 %q, %f2, %g0;\n@%q add.u32 %t, %t, 2;\nsetp.eq.f32 %q, %g1, "
     "0f7F800000;\n@%q add.u32 %t, %t, 4;\nsetp.nan.f32 %q, %g0, %f3;\n@%q add.u32 %t, %t, 8;\n", 0},
    {"extremes", "neg.f32 %g0, %f0;\nabs.f32 %g1, %f1;\nmin.f32 %x0, %g0, %f2;\nmax.f32 %x1, %g1, %g0;\nmin.f32 %x2, %f3, %g1;\nmax.f32 %x3, %g0, 0f00000000;\n", 0},
    // A sign that flushes may join only what flushes.
    {"flushing signs",
     "neg.ftz.f32 %g0, %f0;\nabs.ftz.f32 %g1, %f1;\nadd.f32 %x0, %g0, %f2;\nadd.ftz.f32 %x1, %g1, %f2;\nmul.ftz.f32 %x2, %g0, %f3;\nfma.rn.f32 %x3, %g0, %f3, %f2;\n"
     "setp.lt.f32 %q, %g0, %f4;\n@%q add.u32 %t, %t, 1;\nsetp.lt.ftz.f32 %q, %g1, %f4;\n@%q add.u32 %t, %t, 2;\n"},
    {"flushing readers", "neg.f32 %g0, %f0;\nabs.f32 %g1, %f1;\nadd.ftz.f32 %x0, %g0, %f2;\nmul.ftz.f32 %x1, %g0, %g1;\nmin.ftz.f32 %x2, %g1, %f3;\n"},
    {"a chain of which one flushes", "neg.f32 %g0, %f0;\nabs.ftz.f32 %g1, %g0;\nneg.f32 %g2, %g1;\nadd.f32 %x0, %g2, %f1;\nadd.ftz.f32 %x1, %g2, %f1;\n"},
    // What has several values, or one of the round before, is what it is.
    {"the source changes", "mov.f32 %g0, %f0;\nneg.f32 %g1, %g0;\nadd.f32 %g0, %g0, %f1;\nadd.f32 %x0, %g1, %f2;\nadd.f32 %x1, %g0, %g1;\n"},
    {"the sign is written twice", "neg.f32 %g1, %f0;\n@%p neg.f32 %g1, %f1;\nadd.f32 %x0, %g1, %f2;\nmul.f32 %x1, %g1, %f3;\n"},
    {"under a guard", "mov.f32 %g1, %f2;\n@%p neg.f32 %g1, %f0;\nadd.f32 %x0, %g1, %f2;\n"},
    {"of the round before",
     "mov.u32 %u, 0;\nmov.f32 %g1, %f3;\nAGAIN:\nsetp.eq.u32 %q, %u, 0;\n@%q bra FIRST;\nadd.f32 %x0, %x0, %g2;\nfma.rn.f32 %x1, %g2, %f1, %x1;\nFIRST:\nmul.f32 %g1, %g1, 0f3F400000;\nneg.f32 %g2, %g1;\nadd.u32 %u, %u, "
     "1;\nsetp.lt.u32 %q, %u, 5;\n@%q bra AGAIN;\n"},
    // Its definition stands in an arm that only the first round runs.
    {"of an earlier round, the arm left out",
     "mov.u32 %u, 0;\nAGAIN:\nadd.u32 %i5, %u, %i1;\nand.b32 %i5, %i5, 7;\nmad.wide.u32 %d6, %i5, 4, %d5;\nld.global.f32 %g0, [%d6+32];\nsetp.ne.u32 %q, %u, 0;\n@%q bra "
     "SKIP;\nneg.f32 %g1, %g0;\nabs.f32 %g3, %g0;\nbar.sync 0;\nSKIP:\nadd.f32 %x0, %x0, %g1;\nfma.rn.f32 %x1, %x1, 0f3F000000, %g1;\nadd.f32 %x2, %x2, %g3;\nadd.u32 %u, "
     "%u, 1;\nsetp.lt.u32 %q, %u, 5;\n@%q bra AGAIN;\n"},
    {"a copy of an earlier round, and an address",
     "mov.u32 %u, 0;\nAGAIN:\nadd.u32 %i5, %u, %i1;\nand.b32 %i5, %i5, 7;\nmad.wide.u32 %d6, %i5, 4, %d5;\nld.global.f32 %g0, [%d6+32];\nsetp.ne.u32 %q, %u, 0;\n@%q bra "
     "SKIP;\nmov.f32 %g1, %g0;\nadd.u64 %d7, %d6, 4;\nbar.sync 0;\nSKIP:\nadd.f32 %x0, %x0, %g1;\nld.global.f32 %g2, [%d7];\nadd.f32 %x1, %x1, %g2;\nadd.u32 %u, %u, "
     "1;\nsetp.lt.u32 %q, %u, 5;\n@%q bra AGAIN;\n"},
    {"through bits", "neg.f32 %g0, %f0;\nmov.b32 %u, %g0;\nmov.b32 %g1, %u;\nadd.f32 %x0, %g1, %f1;\nxor.b32 %t, %u, 1;\n"},
    {"of doubles",
     "neg.f64 %h0, %e0;\nabs.f64 %h1, %e1;\nadd.f64 %h2, %h0, %h1;\nmul.f64 %h3, %h0, %e2;\nfma.rn.f64 %y0, %h0, %h3, %h2;\nsub.f64 %y1, %e3, %h0;\nsetp.gt.f64 %q, %h1, "
     "%h0;\n@%q add.u32 %t, %t, 1;\nmul.f64 %h4, %h0, 0d4008000000000000;\nsetp.eq.f64 %q, %h4, %h3;\n@%q add.u32 %t, %t, 2;\n"},
    {"a sign that copysign takes", "neg.f32 %g0, %f0;\ncopysign.f32 %x0, %f1, %g0;\ncopysign.f32 %x1, %g0, %f2;\nabs.f32 %g1, %f3;\ncopysign.f32 %x2, %g1, %f4;\n"},
    {"and saturation", "neg.f32 %g0, %f0;\nadd.sat.f32 %x0, %g0, %f1;\nmul.sat.f32 %x1, %g0, %f2;\nfma.rn.sat.f32 %x2, %g0, %f2, %f3;\n", 1},
    {"saturation of what is made",
     "add.f32 %g0, %f0, %f1;\ncvt.sat.f32.f32 %x0, %g0;\nmul.rz.f32 %g1, %f2, %f3;\ncvt.sat.f32.f32 %x1, %g1;\nfma.rn.f32 %g2, %f4, %f5, %f6;\ncvt.sat.f32.f32 %x2, %g2;\n", 1},
    {"saturation that stays",  // another reader, another flushing, another guard, a changed source
     "add.f32 %g0, %f0, %f1;\ncvt.sat.f32.f32 %x0, %g0;\nmul.f32 %x1, %g0, %f2;\nmul.f32 %g2, %f2, %f3;\ncvt.sat.ftz.f32.f32 %x2, %g2;\nmov.f32 %g3, %f4;\nmul.f32 %g4, %g3, "
     "%f5;\nadd.f32 %g3, %g3, 0f3F800000;\n@%p cvt.sat.f32.f32 %x3, %g4;\n@!%p mov.f32 %x3, %g3;\n"},
    {"saturation of a saturated sum", "add.sat.f32 %g0, %f0, %f1;\ncvt.sat.f32.f32 %x0, %g0;\nneg.f32 %g1, %f2;\ncvt.sat.f32.f32 %x1, %g1;\nabs.f32 %g2, %f3;\ncvt.sat.f32.f32 %x2, %g2;\n"},
};

std::vector<isa::Instruction> code_of(const std::string& text, const std::string& name) {
  auto made = assemble_for(parse_text("signs.ptx", text), name);
  EXPECT_TRUE(made.ok()) << made.error().message;
  return made.ok() ? instructions_of(made->cubin, name) : std::vector<isa::Instruction>();
}
int count(const std::vector<isa::Instruction>& code, Mnemonic m) { return static_cast<int>(std::ranges::count(code, m, &isa::Instruction::mnemonic)); }

TEST(FloatSigns, MeanWhatTheyMeant) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    our_code_agrees(kernel(c.body), targets, {0, 1, 3});
  }
}

TEST(FloatSigns, TakeNoInstruction) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    if (c.additions >= 0) {
      EXPECT_EQ(count(code_of(kernel(c.body), "sm_86"), Mnemonic::FADD), c.additions);
    }
  }
}

// Integers of 32 bits become f32 on the ALU from sm_86 on, but where PTX rounds up or down.
TEST(Conversions, AreTheAlusWhereItHasThem) {
  const std::string text = kernel(
      "mul.lo.u32 %i3, %i3, 2096287;\nmul.lo.u32 %i5, %i3, 77;\ncvt.rn.f32.s32 %x0, %i3;\ncvt.rz.f32.u32 %x1, %i5;\ncvt.rn.f32.u32 %x2, %i5;\ncvt.rz.f32.s32 %x3, %i3;\n");
  our_code_agrees(text, targets, {0, 3});
  for (const std::string name : {"sm_86", "sm_89", "sm_90"}) {
    EXPECT_EQ(count(code_of(text, name), Mnemonic::I2FP), 4) << name;
  }
  EXPECT_EQ(count(code_of(text, "sm_80"), Mnemonic::I2F), 4);
  const std::string others = kernel("cvt.rp.f32.s32 %x0, %i3;\ncvt.rm.f32.u32 %x1, %i3;\ncvt.rn.f64.s32 %y0, %i3;\n");
  our_code_agrees(others, targets, {0, 3});
  EXPECT_EQ(count(code_of(others, "sm_90"), Mnemonic::I2FP), 0);
}

// Loads through the read-only path go before stores, and stay behind barriers; others stay where they are.
TEST(ReadOnlyLoads, PassStoresAndNoBarrier) {
  const auto text = [](const std::string& load, const std::string& between) {
    std::string body;
    for (int k = 0; k < 3; ++k) body += fmt::format("ld.global{}.u32 %i{}, [%d3+{}];\nst.global.u32 [%d4+{}], %i{};\n{}", load, k + 4, 8 * k, 64 + 8 * k, k + 4, between);
    return kernel(body);
  };
  const auto loads_first = [](const std::vector<isa::Instruction>& code) {
    const auto store = std::ranges::find_if(code, [](const isa::Instruction& i) { return i.mnemonic == Mnemonic::STG; });
    return std::none_of(store, code.end(), [](const isa::Instruction& i) { return i.mnemonic == Mnemonic::LDG; });
  };
  for (const std::string& name : both_families) {
    our_code_agrees(text(".nc", ""), {name}, {0, 3});
    EXPECT_TRUE(loads_first(code_of(text(".nc", ""), name))) << name;
    EXPECT_FALSE(loads_first(code_of(text("", ""), name))) << name;
    EXPECT_FALSE(loads_first(code_of(text(".nc", "bar.sync 0;\n"), name))) << name;
    EXPECT_FALSE(loads_first(code_of(text(".nc", "membar.gl;\n"), name))) << name;
  }
}

// Sums of floats in shared memory by all threads at once: the swap tells whether it was done.
TEST(SharedAtomics, AskWhetherTheySwapped) {
  const std::string text =
      ".version 7.0\n.target sm_60\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n.shared .align 8 .b64 sum[2];\n.reg .b64 %d<8>;\n.reg .b32 "
      "%i<8>;\n.reg .f32 %f<4>;\n.reg .f64 %e<4>;\n.reg .pred %p;\n"
      "ld.param.u64 %d2, [out];\nmov.u32 %i1, %tid.x;\nmov.u32 %i2, %ctaid.x;\nmad.lo.u32 %i3, %i2, 96, %i1;\nmad.wide.u32 %d4, %i3, 768, %d2;\nsetp.eq.u32 %p, %i1, "
      "0;\n@%p st.shared.u64 [sum], 0;\n@%p st.shared.u64 [sum+8], 0;\nbar.sync 0;\ncvt.rn.f32.u32 %f1, %i1;\ncvt.rn.f64.u32 %e1, %i1;\natom.shared.add.f32 %f2, [sum], "
      "%f1;\natom.shared.add.f64 %e2, [sum+8], %e1;\nbar.sync 0;\nld.shared.f32 %f3, [sum];\nld.shared.f64 %e3, [sum+8];\nst.global.f32 [%d4], %f3;\nst.global.f64 "
      "[%d4+8], %e3;\nret;\n}\n";
  our_code_agrees(text, targets, {0, 3});
  for (const std::string name : {"sm_86", "sm_90"}) {
    int tell = 0;
    for (const isa::Instruction& i : code_of(text, name))
      tell += i.mnemonic == Mnemonic::ATOMS_CAS && isa::modifier(i, isa::ModifierKind::CasMode) == 3;
    EXPECT_EQ(tell, 2) << name;
  }
}

}  // namespace
}  // namespace rndn::assembler::testing::float_signs_test
