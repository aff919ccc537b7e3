// Memory that a thread takes on its stack while it runs: alloca, stacksave, stackrestore.
#include <gmock/gmock.h>

#include "tests/assembler/three_ways.h"

namespace rndn::assembler::testing {
namespace {

const std::vector<std::string> on = {"sm_61", "sm_86", "sm_90"};

constexpr const char* declarations = ".reg .b64 %s, %p1_, %p2_, %q, %z; .reg .b32 %a, %b, %w;";

std::string with_declarations(std::string text, const std::string& functions = "") {
  const std::string place = ".reg .b16 %u;";
  text.replace(text.find(place), place.size(), place + " " + declarations);
  return functions.empty() ? text : text.insert(text.find(".visible .entry"), functions);
}

TEST(Stack, AllocationsLieApartAlignedAndAreGivenBack) {
  const std::vector<std::string> statements = {
      // Two allocations of a size that only the thread knows do not overlap.
      "mov.b32 %r0, 0; stacksave.u64 %s; and.b32 %a, %r1, 15; add.u32 %a, %a, 5; cvt.u64.u32 %z, %a; alloca.u64 %p1_, "
      "%z; "
      "alloca.u64 %p2_, %z; st.local.u32 [%p1_], %r2; st.local.u32 [%p2_], %r3; st.local.b8 [%p1_+4], %h1; "
      "ld.local.u32 %a, [%p1_]; ld.local.u32 %b, [%p2_]; sub.u32 %r0, %a, %b; stackrestore.u64 %s",
      // As far as asked, else to 8.
      "mov.b32 %r0, 0; stacksave.u64 %s; alloca.u64 %p1_, 3; alloca.u64 %p2_, 3, 128; or.b64 %q, %p1_, 0; and.b64 "
      "%p1_, %p1_, 7; "
      "and.b64 %p2_, %p2_, 127; or.b64 %q, %p1_, %p2_; cvt.u32.u64 %r0, %q; stackrestore.u64 %s",
      // By generic addresses too.
      "mov.b64 %d0, 0; stacksave.u64 %s; alloca.u64 %p1_, 16, 16; cvta.local.u64 %q, %p1_; st.v2.b64 [%q], {%d1, %d2}; "
      "ld.local.b64 %z, [%p1_+8]; ld.b64 %q, [%q]; sub.u64 %d0, %z, %q; stackrestore.u64 %s",
      // In 32 bits.
      "mov.b32 %r0, 0; stacksave.u32 %w; alloca.u32 %a, 8; st.local.b64 [%a], %d3; ld.local.u32 %b, [%a+4]; "
      "add.u32 %r0, %b, 1; stackrestore.u32 %w",
      // More in all than a stack has.
      "mov.b32 %r0, 0; mov.u32 %b, 0; LOOP: stacksave.u64 %s; alloca.u64 %p1_, 200; st.local.u32 [%p1_+196], %b; "
      "ld.local.u32 %a, [%p1_+196]; add.u32 %r0, %r0, %a; stackrestore.u64 %s; add.u32 %b, %b, 1; setp.lt.u32 %p2, %b, "
      "40; "
      "@%p2 bra LOOP",
      // Under a guard.
      "mov.b32 %r0, %r2; mov.b64 %p1_, 0; stacksave.u64 %s; @%p1 alloca.u64 %p1_, 24; @%p1 st.local.u32 [%p1_+20], "
      "%r1; "
      "@%p1 ld.local.u32 %r0, [%p1_+20]; stackrestore.u64 %s",
  };
  EXPECT_THAT(three_ways(with_declarations(kernel("7.3", "sm_60", statements)), on, true), ::testing::AnyOf(-1, 3));
}

TEST(Stack, AFunctionGivesBackWhatItTook) {
  const std::string functions =
      ".func (.param .b32 r) taken(.param .b32 x)\n{\n.reg .b32 %x, %y; .reg .b64 %p; .reg .pred %q;\n"
      "ld.param.u32 %x, [x]; alloca.u64 %p, 160; st.local.u32 [%p+156], %x; st.param.b32 [r], 7; setp.eq.u32 %q, %x, "
      "9;\n"
      "@%q ret;\nld.local.u32 %y, [%p+156]; add.u32 %y, %y, 3; st.param.b32 [r], %y; ret;\n}\n"
      // fall(n) = n + fall(n - 1), each activation with its own copy of n.
      ".func (.param .b32 r) fall(.param .b32 x);\n"
      ".func (.param .b32 r) fall(.param .b32 x)\n{\n.reg .b32 %x, %y, %z; .reg .b64 %p; .reg .pred %q;\n.param .b32 "
      "n; .param .b32 o;\n"
      "ld.param.u32 %x, [x]; alloca.u64 %p, 32; st.local.u32 [%p+28], %x; mov.u32 %z, 0; setp.eq.u32 %q, %x, 0;\n@%q "
      "bra END;\n"
      "sub.u32 %y, %x, 1; st.param.b32 [n], %y; call.uni (o), fall, (n); ld.param.b32 %z, [o];\n"
      "END: ld.local.u32 %y, [%p+28]; add.u32 %z, %z, %y; st.param.b32 [r], %z; ret;\n}\n";
  const std::vector<std::string> statements = {
      "mov.b32 %r0, 0; mov.u32 %b, 0; LOOP: { .param .b32 n; .param .b32 o; st.param.b32 [n], %b; call.uni (o), taken, "
      "(n); "
      "ld.param.b32 %a, [o]; } add.u32 %r0, %r0, %a; add.u32 %b, %b, 1; setp.lt.u32 %p2, %b, 40; @%p2 bra LOOP",
      "mov.b32 %r0, 0; stacksave.u64 %s; alloca.u64 %p1_, 16; st.local.u32 [%p1_], %r3; and.b32 %b, %r1, 7; { .param "
      ".b32 n; "
      ".param .b32 o; st.param.b32 [n], %b; call.uni (o), fall, (n); ld.param.b32 %a, [o]; } ld.local.u32 %b, [%p1_]; "
      "add.u32 %r0, %a, %b; stackrestore.u64 %s",
  };
  // A recursive call of ptxas's code goes through what the simulator does not know on sm_61.
  three_ways(with_declarations(kernel("7.3", "sm_60", statements), functions), on, true);
}

// A function of the driver has its frame below what the thread has taken.
TEST(Stack, FunctionsOfTheDriverLeaveItAlone) {
  const std::string functions =
      ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n.global .align 1 .b8 words[4] = {37, 117, "
      "10, 0};\n";
  const std::vector<std::string> statements = {
      "mov.b32 %r0, 0; alloca.u64 %p1_, 64; st.local.u32 [%p1_], %r3; st.local.u32 [%p1_+60], %r2; mov.u64 %q, words; "
      "cvta.global.u64 %q, %q; cvta.local.u64 %z, %p1_; { .param .b64 f; .param .b64 a; .param .b32 n; st.param.b64 "
      "[f], %q; "
      "st.param.b64 [a], %z; call.uni (n), vprintf, (f, a); ld.param.b32 %a, [n]; } ld.local.u32 %b, [%p1_+60]; "
      "ld.local.u32 %w, [%p1_]; sub.u32 %r0, %b, %w",
  };
  EXPECT_THAT(three_ways(with_declarations(kernel("7.3", "sm_60", statements), functions), on, true),
              ::testing::AnyOf(-1, 3));
}

// What the driver is told: no least stack, so that it gives a thread what the context has.
TEST(Stack, CubinSaysThatTheStackIsUnknown) {
  const std::string text = with_declarations(kernel("7.3", "sm_60", {"mov.b32 %r0, 0; alloca.u64 %p1_, 16"})) +
                           ".visible .entry plain(.param .u64 in)\n{\nret;\n}\n";
  const ptx::Module module = parse_text("stack.ptx", text);
  std::string why;
  const std::string ptxas = reference_tool("ptxas", why), path = temporary(".ptx");
  ASSERT_TRUE(write_file(path, text).ok());
  for (const std::string& target : targets) {
    auto made = assemble_for(module, target);
    ASSERT_TRUE(made.ok()) << made.error().message;
    std::vector<std::vector<std::byte>> cubins = {made->cubin};
    std::string said;
    if (!ptxas.empty()) cubins.push_back(assemble_with_ptxas(ptxas, path, target, said));
    for (const std::vector<std::byte>& bytes : cubins) {
      auto image = cubin::read(bytes);
      ASSERT_TRUE(image.ok()) << image.error().message;
      for (const cubin::Kernel& k : image->kernels)
        EXPECT_EQ(k.dynamic_stack, k.name == "k") << target << " " << k.name;
    }
  }
  unlink(path.c_str());
}

}  // namespace
}  // namespace rndn::assembler::testing
