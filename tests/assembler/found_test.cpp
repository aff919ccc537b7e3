// What random programs found, each reduced to a few instructions: faults of our code, of the simulator and of the PTX interpreter, which must not come
// back, and those of ptxas, which the rules of ptxas_faults.cpp must know and which must still be there.
#include "tests/assembler/ptxas_faults.h"
#include "tests/assembler/support.h"
#include "tests/support/ptxas.h"

namespace rndn::assembler::testing::found_test {
namespace {

using namespace rndn::testing;

using Words = std::vector<uint64_t>;

// A kernel k(in, out): its body with %v0 to %v63 of the thread's input, and where to store.
std::string with_values(const std::string& registers, const std::string& body, uint32_t values) {
  std::string s =
      ".version 7.0\n.target sm_60\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
      ".reg .b32 %v<64>;\n.reg .b32 %r<16>;\n.reg .b64 %d<8>;\n" +
      registers +
      "ld.param.u64 %d1, [in];\nld.param.u64 %d2, [out];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\n"
      "mad.lo.u32 %r3, %r2, 96, %r1;\nmad.wide.u32 %d3, %r3, 24, %d1;\nmad.wide.u32 %d4, %r3, 768, %d2;\n"
      "ld.global.u32 %v0, [%d3];\nld.global.u32 %r4, [%d3+8];\n";
  for (uint32_t k = 1; k < values; ++k)
    s += fmt::format("mad.lo.u32 %v{0}, %v{1}, 1664525, %r4;\nshr.u32 %r5, %v{1}, 7;\nxor.b32 %v{0}, %v{0}, %r5;\n", k,
                     k - 1);
  return s + body + "ret;\n}\n";
}

// Whether the first kernel has such an instruction.
bool holds(std::span<const std::byte> cubin, const std::string& target, isa::Mnemonic mnemonic) {
  const auto image = cubin::read(cubin);
  if (!image.ok()) return false;
  const isa::Target& t = *isa::find_target(target);
  for (const isa::Located& l : isa::unpack(t, image->kernels[0].code)) {
    isa::Instruction i;
    if (isa::decode(t, l.word, l.address, i) && i.mnemonic == mnemonic) return true;
  }
  return false;
}

void agree(std::string text, const std::vector<std::string>& on, isa::Mnemonic present = isa::Mnemonic::NOP) {
  const Words in = input_words();
  const ptx::Module module = parse_text("found.ptx", text);
  auto expected = run_interpreter(module, "k", in);
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  for (const std::string& target : on)
    for (auto [level, registers] : {std::pair{3, 0u}, {0, 0u}, {3, 24u}}) {
      auto made = assemble_for(module, target, level, registers);
      ASSERT_TRUE(made.ok()) << made.error().message;
      auto got = run_simulator(target, made->cubin, "k", in);
      ASSERT_TRUE(got.ok()) << target << " -O" << level << " " << registers << ": " << got.error().message;
      EXPECT_EQ(difference(*expected, *got, 96), "") << target << " -O" << level << " " << registers;
      if (present == isa::Mnemonic::NOP || level == 0 || registers == 24) continue;
      EXPECT_TRUE(holds(made->cubin, target, present)) << target << " does not come to what this test is about";
    }
}

// More predicates than there are, each of which guards its own next definition.
TEST(FoundByRandomPrograms, SpilledPredicateGuardsItsOwnDefinition) {
  std::string body;
  for (int k = 0; k < 20; ++k) body += fmt::format("setp.lt.s32 %p{}, %v{}, 0;\n", k, k);
  for (int k = 0; k < 20; ++k)
    body += fmt::format("@{}%p{} setp.lt.s32 %p{}, %v{}, 77;\n", k % 2 ? "!" : "", k, k, (k + 7) % 20);
  for (int k = 0; k < 20; ++k)
    body += fmt::format("@%p{} setp.lt.s32 %p{}|%p{}, %v{}, 1234567;\n", k, k, (k + 5) % 20, (k + 11) % 20);
  for (int k = 0; k < 20; ++k)
    body += fmt::format("selp.u32 %r6, {}, 0, %p{};\nst.global.u32 [%d4+{}], %r6;\n", k + 1, k, 4 * k);
  agree(with_values(".reg .pred %p<24>;\n", body, 20), {"sm_61", "sm_86", "sm_90"});
}

// The uniform register of REDUX is none of those that hold values across a loop.
TEST(FoundByRandomPrograms, ReductionOfAWarpBesideUniformValues) {
  std::string body =
      "ld.param.u32 %r6, [in];\nmad.lo.u32 %r7, %r2, 77, 5;\nmul.lo.u32 %r10, %r7, 31;\nxor.b32 %r11, %r10, "
      "12345;\nmov.u32 %r8, 0;\nLOOP:\nredux.sync.add.u32 %r9, %v3, 0xffffffff;\n";
  for (int k = 0; k < 50; ++k)
    body += fmt::format("mad.lo.u32 %v{0}, %v{0}, {1}, %r9;\nadd.u32 %v{0}, %v{0}, {2};\n", k, 2 * k + 3,
                        k % 3 == 0   ? "%r7"
                        : k % 3 == 1 ? "%r10"
                                     : "%r11");
  body += "add.u32 %r8, %r8, 1;\nsetp.lt.u32 %p1, %r8, 3;\n@%p1 bra LOOP;\n";
  for (int k = 0; k < 50; ++k) body += fmt::format("st.global.u32 [%d4+{}], %v{};\n", 4 * k, k);
  std::string text = with_values(".reg .pred %p<2>;\n", body, 50);
  text.replace(text.find("sm_60"), 5, "sm_80");
  agree(text, {"sm_86", "sm_90"}, isa::Mnemonic::R2UR);
}

// A double NaN becomes the top bit alone, in our code and, from sm_80 on, in ptxas's.
TEST(FoundByRandomPrograms, NanToAShortUnsignedNumber) {
  std::string body =
      "ld.global.f64 %f1, [%d3];\nmov.b64 %f2, 0x7ff8000000000000;\nmov.b64 %f3, 0xfff0000000000001;\nsetp.lt.u32 "
      "%p1, %r1, 48;\nselp.f64 %f4, %f2, %f3, %p1;\n";
  uint32_t at = 0;
  for (const char* to : {"u8", "u16", "s8", "s16"})
    for (const char* from : {"%f1", "%f4"}) {
      body += fmt::format("cvt.rzi.{}.f64 %r6, {};\nst.global.u32 [%d4+{}], %r6;\n", to, from, at);
      at += 4;
    }
  agree(with_values(".reg .f64 %f<5>;\n.reg .pred %p<2>;\n", body, 1), {"sm_61", "sm_86", "sm_90"});
}

// What ptxas makes of operations that it seldom meets: packed differences, dot products with constants, saturating sums and products, halves of
// parameters, spaces of shared addresses, tables of labels.
TEST(FoundByRandomPrograms, RareInstructionsOfPtxas) {
  std::string why;
  const std::string ptxas = reference_tool("ptxas", why);
  if (ptxas.empty()) GTEST_SKIP() << "skipped: " << why;
  static constexpr const char* operations[] = {
      "vabsdiff4.u32.u32.u32 %r6, %v0, %v1, %v2",
      "vabsdiff4.u32.u32.u32.add %r6, %v0, %v1, %v2",
      "vabsdiff4.u32.u32.u32.add %r6, %v0, %r2, %v2",
      "vabsdiff4.s32.s32.s32.add %r6, %v0, %v1, %v2",
      "sad.u32 %r6, %v0, 6, %v1",
      "sad.s32 %r6, %v0, 6, %v1",
      "add.sat.s32 %r6, %v0, %v1",
      "sub.sat.s32 %r6, %v0, %v1",
      "sub.sat.s32 %r6, 77, %v0",
      "add.sat.s32 %r6, %v0, %r7",
      "mad.hi.sat.s32 %r6, %v0, %v1, %v2",
      "dp4a.u32.s32 %r6, %v0, 0x81027f03, %v1",
      "dp4a.s32.s32 %r6, %v0, %r7, %v1",
      "dp2a.hi.s32.u32 %r6, %v0, 0x81f27f03, %v1",
      "mov.b32 %r8, 0x3c004100;\nfma.rn.f16x2 %r6, %v0, %r8, %v0",
      "mov.b32 %r8, 0x3c003100;\nmul.sat.f16x2 %r6, %v0, %r8",
      "mov.b32 %r8, 0x3c003100;\nfma.rn.ftz.f16x2 %r6, %v0, %r8, %v0",
      "cvt.u16.u32 %h1, %v0;\nmov.b16 %h2, 24796;\nsub.rn.f16 %h3, %h1, %h2;\ncvt.u32.u16 %r6, %h3",
  };
  std::string body = "ld.param.u32 %r7, [out];\nmul.lo.u32 %r7, %r7, 0x12345677;\n";
  uint32_t at = 0;
  for (const char* o : operations) body += fmt::format("{};\nst.global.u32 [%d4+{}], %r6;\n", o, 4 * at++);
  body += "isspacep.global %p1, %d1;\nselp.u32 %r6, 1, 0, %p1;\nst.global.u32 [%d4+380], %r6;\n";
  std::string text = with_values(".reg .pred %p<2>;\n.reg .b16 %h<4>;\n", body, 3);
  text.replace(text.find("sm_60"), 5, "sm_61");
  // The address of the output is not the same everywhere: a number takes its place.
  text.replace(text.find("ld.param.u32 %r7, [out]"), 23, "mov.u32 %r7, %nctaid.x");
  const Words in = input_words();
  const ptx::Module module = parse_text("rare.ptx", text);
  auto expected = run_interpreter(module, "k", in);
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  for (const std::string target : {"sm_61", "sm_86", "sm_90"}) {
    auto made = rndn::test::ptxas_cubin(ptxas, text, target);
    ASSERT_TRUE(made.ok()) << made.error().message;
    auto got = run_simulator(target, *made, "k", in, false, nullptr, false);
    ASSERT_TRUE(got.ok()) << target << ": " << got.error().message;
    EXPECT_EQ(difference(*expected, *got, 96), "") << target;
  }
}

// Conversions of bfloat16, which are formats of their own on sm_90: ptxas's code against the PTX interpreter.
TEST(FoundByRandomPrograms, ConversionsOfBfloat) {
  std::string why;
  const std::string ptxas = reference_tool("ptxas", why);
  if (ptxas.empty()) GTEST_SKIP() << "skipped: " << why;
  std::string body = "cvt.u16.u32 %h1, %v0;\nmov.b32 %f1, %v0;\nmov.b64 %d5, {%r4, %v0};\nmov.b64 %e1, %d5;\n";
  uint32_t at = 0;
  const auto all = [&](const char* format, const char* type, uint32_t bytes, const char* result) {
    for (const char* rounding : {"n", "z", "m", "p"}) {
      body += fmt::format(fmt::runtime(format), rounding);
      body += fmt::format("st.global.{} [%d4+{}], {};\n", type, at, result);
      at += bytes;
    }
  };
  all("cvt.r{}i.s64.bf16 %d6, %h1;\n", "b64", 8, "%d6");
  all("cvt.r{}i.u32.bf16 %r6, %h1;\n", "b32", 4, "%r6");
  all("cvt.r{}i.bf16.bf16 %h2, %h1;\n", "b16", 2, "%h2");
  all("cvt.r{}.bf16.f32 %h2, %f1;\n", "b16", 2, "%h2");
  all("cvt.r{}.bf16.f64 %h2, %e1;\n", "b16", 2, "%h2");
  all("cvt.r{}.bf16.f16 %h2, %h1;\n", "b16", 2, "%h2");
  all("cvt.r{}.f16.bf16 %h2, %h1;\n", "b16", 2, "%h2");
  all("cvt.r{}.bf16.s32 %h2, %v0;\n", "b16", 2, "%h2");
  all("cvt.r{}.bf16.u64 %h2, %d5;\n", "b16", 2, "%h2");
  all("cvt.r{}.bf16.s64 %h2, %d5;\n", "b16", 2, "%h2");
  std::string text = with_values(".reg .b16 %h<4>;\n.reg .f32 %f<2>;\n.reg .f64 %e<2>;\n", body, 1);
  text.replace(text.find("sm_60"), 5, "sm_90");
  text.replace(text.find("7.0"), 3, "7.8");
  const Words in = input_words();
  const ptx::Module module = parse_text("bfloat.ptx", text);
  auto expected = run_interpreter(module, "k", in);
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  auto made = rndn::test::ptxas_cubin(ptxas, text, "sm_90");
  ASSERT_TRUE(made.ok()) << made.error().message;
  auto got = run_simulator("sm_90", *made, "k", in, false, nullptr, false);
  ASSERT_TRUE(got.ok()) << got.error().message;
  EXPECT_EQ(difference(*expected, *got, 96), "");
}

// Two floats of a constant bank, packed by two F2FP.MERGE_C, the second of which moves the first half up.
TEST(FoundByRandomPrograms, HalvesPackedOneByOne) {
  std::string why;
  const std::string ptxas = reference_tool("ptxas", why);
  if (ptxas.empty()) GTEST_SKIP() << "skipped: " << why;
  std::string text = with_values(
      ".reg .f16 %h<4>;\n.reg .f32 %f<4>;\n.reg .pred %p<2>;\n",
      "ld.const.f32 %f1, [table];\nld.const.f32 %f2, [table+4];\ncvt.rn.f16.f32 %h1, %f1;\ncvt.rn.f16.f32 %h2, %f2;\n"
      "st.global.b16 [%d4], %h1;\nst.global.b16 [%d4+8], %h2;\nneg.f16 %h3, %h1;\nst.global.b16 [%d4+12], %h3;\n",
      1);
  text.replace(text.find("sm_60"), 5, "sm_61");
  text.insert(text.find(".visible"), ".const .align 4 .f32 table[2] = {0f3fc00000, 0fc0200000};\n");
  const Words in = input_words();
  const ptx::Module module = parse_text("halves.ptx", text);
  auto expected = run_interpreter(module, "k", in);
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  auto made = rndn::test::ptxas_cubin(ptxas, text, "sm_86");
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_TRUE(holds(*made, "sm_86", isa::Mnemonic::F2FP_MERGE_C));
  auto got = run_simulator("sm_86", *made, "k", in, false, nullptr, false);
  ASSERT_TRUE(got.ok()) << got.error().message;
  EXPECT_EQ(difference(*expected, *got, 96), "");
}

// Pascal's half-precision instructions take an f32 from a constant bank, and a literal half in F2F.
TEST(FoundByRandomPrograms, ConstantHalvesOnPascal) {
  std::string why;
  const std::string ptxas = reference_tool("ptxas", why);
  if (ptxas.empty()) GTEST_SKIP() << "skipped: " << why;
  const std::string text =
      with_values(".reg .f16 %h<8>;\n.reg .b16 %s<2>;\n.reg .f32 %f<2>;\n.reg .pred %p<2>;\n",
                  "cvt.u16.u32 %s1, %v0;\nmov.b16 %h1, %s1;\nmov.b16 %h2, 0x2baa;\nmul.rn.f16 %h3, %h1, "
                  "%h2;\nst.global.b16 [%d4], %h3;\n"
                  "fma.rn.f16 %h3, %h1, %h2, %h1;\nst.global.b16 [%d4+4], %h3;\n"
                  "fma.rn.f16 %h3, %h1, %h1, %h2;\nst.global.b16 [%d4+8], %h3;\n"
                  "setp.lt.f16 %p1, %h1, %h2;\nselp.u32 %r6, 1, 0, %p1;\nst.global.u32 [%d4+12], %r6;\n"
                  "mov.b16 %h4, 0x387d;\ncvt.sat.f16.f16 %h3, %h4;\nst.global.b16 [%d4+16], %h3;\n"
                  "cvt.f32.f16 %f1, %h4;\nst.global.f32 [%d4+20], %f1;\n",
                  1);
  Words in = input_words();
  for (uint64_t& w : in)  // no NaNs: their bits are the hardware's
    if ((w & 0x7c00) == 0x7c00) w ^= 0x400;
  const ptx::Module module = parse_text("halves.ptx", text);
  auto expected = run_interpreter(module, "k", in);
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  auto made = rndn::test::ptxas_cubin(ptxas, text, "sm_61");
  ASSERT_TRUE(made.ok()) << made.error().message;
  auto got = run_simulator("sm_61", *made, "k", in, false, nullptr, false);
  ASSERT_TRUE(got.ok()) << got.error().message;
  EXPECT_EQ(difference(*expected, *got, 96), "");
}

// A fault of ptxas, and code as like it as can be that it gets right.
struct Fault {
  const char* name;
  std::vector<std::string> targets;
  const char* wrong;
  const char* right;
};
const Fault faults[] = {
    {"a shift amount that cnot makes",
     {"sm_61", "sm_86", "sm_90"},
     "cvt.u16.u32 %h1, %v0;\ncnot.b32 %r6, %r2;\nshl.b16 %h2, %h1, %r6;\nst.global.u16 [%d4], %h2;\n",
     "cvt.u16.u32 %h1, %v0;\npopc.b32 %r6, %r2;\nshl.b16 %h2, %h1, %r6;\nst.global.u16 [%d4], %h2;\n"},
    {"a constant shift amount of more than 16 bits",
     {"sm_61", "sm_86", "sm_90"},
     "cvt.u16.u32 %h1, %v0;\nshl.b16 %h2, %h1, 65536;\nst.global.u16 [%d4], %h2;\n",
     "cvt.u16.u32 %h1, %v0;\nshl.b16 %h2, %h1, 65535;\nst.global.u16 [%d4], %h2;\n"},
    {"a field of more than 31 bits put in at a constant place",
     {"sm_86", "sm_90"},
     "bfi.b32 %r6, %v0, %r4, 2, 32;\nst.global.u32 [%d4], %r6;\n",
     "bfi.b32 %r6, %v0, %r4, 2, 31;\nst.global.u32 [%d4], %r6;\n"},
    {"a field of signed numbers beyond the last bit",
     {"sm_61", "sm_86", "sm_90"},
     "bfe.s32 %r6, %v0, 38, 25;\nst.global.u32 [%d4], %r6;\n",
     "bfe.s32 %r6, %v0, 31, 25;\nst.global.u32 [%d4], %r6;\n"},
    {"the difference of two numbers, one of them negated, saturated",
     {"sm_86", "sm_90"},
     "neg.s32 %r6, %v0;\nsub.sat.s32 %r6, %r6, %r4;\nst.global.u32 [%d4], %r6;\n",
     "not.b32 %r6, %v0;\nsub.sat.s32 %r6, %r6, %r4;\nst.global.u32 [%d4], %r6;\n"},
    {"subnormal numbers rounded up to halves",
     {"sm_61", "sm_86", "sm_90"},
     "mov.b32 %f1, %r1;\ncvt.rp.ftz.f16.f32 %h1, %f1;\nst.global.u16 [%d4], %h1;\n",
     "mov.b32 %f1, %r1;\ncvt.rz.ftz.f16.f32 %h1, %f1;\nst.global.u16 [%d4], %h1;\n"},
    {"a sum over the warp of differences that cancel",
     {"sm_86"},
     "ld.global.u32 %r6, [%d3];\nsub.u32 %r7, %v0, %r1;\nsub.u32 %r8, %r7, %r6;\nst.global.u32 [%d4], %r7;\n"
     "redux.sync.add.s32 %r8, %r8, -1;\nst.global.u32 [%d4+4], %r8;\n",
     "sub.u32 %r7, %v0, %r1;\nsub.u32 %r8, %r7, %r4;\nst.global.u32 [%d4], %r7;\n"
     "redux.sync.add.s32 %r8, %r8, -1;\nst.global.u32 [%d4+4], %r8;\n"},
    {"a product with a difference that cancels, added with a carry",
     {"sm_61"},
     "sub.u32 %r6, %v0, %r1;\nsub.u32 %r7, %r6, %v0;\nadd.cc.u32 %r8, %r4, %r2;\nmadc.lo.cc.s32 %r8, 16777216, %r7, 65535;\n"
     "st.global.u32 [%d4], %r8;\n",
     "sub.u32 %r6, %v0, %r1;\nsub.u32 %r7, %r6, %r4;\nadd.cc.u32 %r8, %r4, %r2;\nmadc.lo.cc.s32 %r8, 16777216, %r7, 65535;\n"
     "st.global.u32 [%d4], %r8;\n"},
    {"a product's low word whose high word gives a carry",
     {"sm_86", "sm_90"},
     "mad.lo.cc.u32 %r6, %v0, %r4, %r1;\nmadc.hi.cc.u32 %r7, %v0, %r4, %r2;\naddc.u32 %r8, %r1, %r2;\n"
     "st.global.u32 [%d4], %r6;\nst.global.u32 [%d4+4], %r8;\n",
     "mad.lo.cc.u32 %r6, %v0, %r4, %r1;\nmadc.hi.cc.u32 %r7, %v0, %r4, %r2;\naddc.u32 %r8, %r1, %r2;\n"
     "st.global.u32 [%d4], %r6;\nst.global.u32 [%d4+4], %r8;\nst.global.u32 [%d4+8], %r7;\n"},
    {"a NaN of 64 bits as an unsigned byte",
     {"sm_61"},
     "mov.b64 %e1, 0x7ff8000000000000;\ncvt.rzi.u8.f64 %r6, %e1;\nst.global.u32 [%d4], %r6;\n",
     "mov.b64 %e1, 0x7ff8000000000000;\ncvt.rzi.s8.f64 %r6, %e1;\nst.global.u32 [%d4], %r6;\n"},
};

// The second web of %e0 is written by halves, and last under a guard. That write counted as none, so the web began behind the first write of its low
// half, and this half had no life: its register was another's.
TEST(FoundByRandomPrograms, GuardedWritesBelongToTheWebOfTheWritesBefore) {
  const ptx::Module module = parse_text(
      "web.ptx",
      ".version 7.8\n.target sm_61\n.visible .entry k( .param .u64 b, .param .align 8 .b8 f[16] ) { .reg .u64 %d<25>; .reg .u32 %r<46>;\n"
      ".reg .u16 %h<6>; .reg .b32 %x<18>; .reg .b64 %e<4>; .reg .pred %p<19>; .reg .b16 %g<17>; .reg .s32 %s<5>; .local .align 16 .b8 array[64];\n"
      "ld.param.u64 %d2, [b]; mad.wide.u32 %d5, %r4, 1024, %d4; and.b32 %x0, %r4, 127; mad.wide.u32 %d6, %x0, 32, %d3; ld.global.u32 %r5, [%d6+28];\n"
      "mov.b32 %r6, 0; mov.b64 %e0, 0; ld.global.u16 %h1, [%d6+26]; cvt.u16.u32 %h2, %r6; cvt.u16.u32 %h3, %r6; setp.gt.s32 %p0, %r6, 512;\n"
      "st.local.b64 [array+8], %e0; mov.b32 %r6, 0; cvt.sat.u64.s8 %e0, %r5; @!%p1 dp2a.hi.u32.s32 %r10, %r6, %r7, %s2;\n"
      "@%p0 and.b64 %e0, 16850275037885158, %d2; ld.shared.u64 %d9, [%d7+24]; st.global.b16 [%d5+12], %h1; cvt.u32.u16 %r17, %h2;\n"
      "mad.lo.u32 %r18, %r16, 31, %r17; mov.b32 %r19, %r18; mov.b32 %r20, %r19; cvt.u32.u16 %r21, %h3; mad.lo.u32 %r22, %r20, 31, %r21;\n"
      "mov.b32 %r23, %r22; mad.lo.u32 %r24, %r23, 31, %r3; mad.lo.u32 %r25, %r24, 31, %r2; mad.lo.u32 %r26, %r25, 31, %r5; mov.b32 %r27, %r26;\n"
      "st.global.b32 [%d5+24], %r8; mad.lo.u32 %r28, %r27, 31, %r9; st.global.b32 [%d5+28], %r10; mov.b32 %r29, %r28; st.global.b32 [%d5+32], %s0;\n"
      "st.global.b32 [%d5+36], %s1; mov.b32 %r30, %r29; st.global.b32 [%d5+44], %x4; mov.b32 %r31, %r30; st.global.b32 [%d5+48], %r14;\n"
      "st.global.b32 [%d5+52], %x5; mul.hi.u64 %d12, %d8, 11400714819323198485; cvt.u32.u64 %r32, %d12; mad.lo.u32 %r33, %r31, 31, %r32;\n"
      "st.global.b64 [%d5+64], %d9; mov.b32 %r34, %r33; mov.b32 %x7, { %g3, %g5}; mad.lo.u32 %r35, %r34, 31, %x7; mov.b32 %r36, %r35;\n"
      "mov.b32 %r37, %r36; mul.hi.u64 %d13, %e2, 11400714819323198485; cvt.u32.u64 %r38, %d13; mad.lo.u32 %r39, %r37, 31, %r38;\n"
      "st.global.b32 [%d5+636], %r39; }\n");
  const Result<Assembled> made = assemble_for(module, "sm_90");
  EXPECT_TRUE(made.ok()) << made.error().message;
}

// Each rule is needed, and is no wider than it must be: ptxas gets the one piece of code wrong and the other one right.
TEST(PtxasFaults, AreThereAndNoMore) {
  std::string why;
  const std::string ptxas = reference_tool("ptxas", why);
  if (ptxas.empty()) GTEST_SKIP() << "skipped: " << why;
  const Words in = input_words();
  for (const Fault& fault : faults)
    for (const bool wrong : {true, false}) {
      std::string text =
          with_values(".reg .b16 %h<4>;\n.reg .f32 %f<4>;\n.reg .f64 %e<4>;\n", wrong ? fault.wrong : fault.right, 1);
      text.replace(text.find("sm_60"), 5, fault.targets[0] == "sm_86" ? "sm_80" : "sm_61");
      const ptx::Module module = parse_text("fault.ptx", text);
      auto expected = run_interpreter(module, "k", in);
      ASSERT_TRUE(expected.ok()) << fault.name << ": " << expected.error().message;
      for (const std::string& target : fault.targets) {
        EXPECT_EQ(ptxas_fault(module, "k", isa::find_target(target)->sm) != nullptr, wrong)
            << fault.name << " " << target;
        auto made = rndn::test::ptxas_cubin(ptxas, text, target);
        ASSERT_TRUE(made.ok()) << made.error().message;
        auto got = run_simulator(target, *made, "k", in, false, nullptr, false);
        ASSERT_TRUE(got.ok()) << target << ": " << got.error().message;
        EXPECT_EQ(difference(*expected, *got, 96) != "", wrong) << fault.name << " " << target;
      }
    }
}

}  // namespace
}  // namespace rndn::assembler::testing::found_test
