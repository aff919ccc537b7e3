// Sums, shifts and moves that assembler/backend/balance_pipes.cpp makes products of: our code against the PTX interpreter, and that there are such.
#include "tests/assembler/three_ways.h"

namespace rndn::assembler::testing::balance_pipes_test {
namespace {

// Chains of each form, each instruction on what the one before made, so that half of them are products: %a, %b are words of the thread's input, %u, %v
// pairs of them.
std::string kernel() {
  std::string s =
      ".version 7.0\n.target sm_60\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
      ".reg .b32 %a, %b, %t, %c, %n, %r<90>;\n.reg .b64 %in, %out, %u, %v, %w<40>;\n.reg .pred %p;\n"
      "ld.param.u64 %in, [in];\nld.param.u64 %out, [out];\nmov.u32 %t, %tid.x;\nmov.u32 %c, %ctaid.x;\nmad.lo.u32 %n, %c, 96, %t;\n"
      "mad.wide.u32 %in, %n, 24, %in;\nmad.wide.u32 %out, %n, 768, %out;\nld.global.u64 %u, [%in];\nld.global.u64 %v, [%in+8];\n"
      "cvt.u32.u64 %a, %u;\ncvt.u32.u64 %b, %v;\nsetp.lt.s32 %p, %a, %b;\n";
  int stored = 0;
  const auto store = [&](const std::string& type, const std::string& value) {
    s += fmt::format("st.global.{} [%out+{}], {};\n", type, 8 * stored++, value);
  };
  const auto chain = [&](int first, int count, const std::string& statement) {
    s += fmt::format("mov.u32 %r{}, %a;\n", first);
    for (int k = first + 1; k < first + count; ++k) s += fmt::format(fmt::runtime(statement), k, k - 1);
    store("u32", fmt::format("%r{}", first + count - 1));
  };
  chain(0, 8, "xor.b32 %n, %r{1}, 5;\nsub.s32 %r{0}, %n, %b;\n");
  chain(10, 8, "xor.b32 %n, %r{1}, %b;\nadd.s32 %r{0}, %n, %a;\n");
  chain(20, 8, "xor.b32 %n, %r{1}, %a;\nneg.s32 %r{0}, %n;\n");
  chain(30, 8, "xor.b32 %n, %r{1}, %b;\nshl.b32 %r{0}, %n, 3;\nxor.b32 %r{0}, %r{0}, %n;\n");
  chain(40, 8, "xor.b32 %n, %r{1}, %b;\nshl.b32 %r{0}, %n, 31;\nxor.b32 %r{0}, %r{0}, %n;\n");
  chain(50, 8, "xor.b32 %n, %r{1}, %b;\nshl.b32 %n, %n, 5;\nadd.u32 %r{0}, %n, %a;\n");
  chain(60, 8, "mov.b32 %r{0}, %r{1};\n@%p add.s32 %r{0}, %r{0}, %b;\n@!%p sub.s32 %r{0}, %a, %r{0};\nxor.b32 %r{0}, %r{0}, %b;\n");
  const auto wide = [&](int first, const std::string& statement) {
    s += fmt::format("mov.b64 %w{}, %u;\n", first);
    for (int k = first + 1; k < first + 8; ++k) s += fmt::format(fmt::runtime(statement), k, k - 1);
    store("u64", fmt::format("%w{}", first + 7));
  };
  wide(0, "xor.b64 %w{0}, %w{1}, %v;\nsub.s64 %w{0}, %w{0}, %u;\n");
  wide(8, "xor.b64 %w{0}, %w{1}, %u;\nadd.s64 %w{0}, %w{0}, %v;\n");
  wide(16, "xor.b64 %w{0}, %w{1}, %v;\nneg.s64 %w{0}, %w{0};\n");
  wide(24, "xor.b64 %w{0}, %w{1}, %v;\n@%p sub.s64 %w{0}, %w{0}, %u;\n@!%p add.s64 %w{0}, %w{0}, 77;\n");
  return s + "ret;\n}\n";
}

TEST(BalancePipes, ProductsMeanTheSame) {
  const ptx::Module module = parse_text("pipes.ptx", kernel());
  our_code_agrees(kernel(), targets, {1, 2, 3});
  const auto products = [&](const std::string& target, int level) {
    auto made = assemble_for(module, target, level);
    EXPECT_TRUE(made.ok()) << made.error().message;
    size_t n = 0;
    if (!made.ok()) return n;
    auto image = cubin::read(made->cubin);
    EXPECT_TRUE(image.ok()) << image.error().message;
    if (!image.ok()) return n;
    constexpr uint32_t imad = 0x024;
    const auto& code = image->kernels[0].code;
    for (size_t at = 0; at + 16 <= code.size(); at += 16)
      n += (std::to_integer<uint32_t>(code[at]) | (std::to_integer<uint32_t>(code[at + 1]) & 1) << 8) == imad;
    return n;
  };
  for (const std::string target : {"sm_86", "sm_90"}) EXPECT_GE(products(target, 3), products(target, 1) + 30) << target;  // from -O2 on
}

}  // namespace
}  // namespace rndn::assembler::testing::balance_pipes_test
