// Functions of the driver, recursion and calls through registers: what the three-way tests over tests/assembler/ptx do not see.
#include "tests/assembler/three_ways.h"

namespace rndn::assembler::testing {
namespace {

constexpr const char* path = RNDN_SOURCE_DIR "/tests/assembler/ptx/driver_calls.ptx";

std::string sorted_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  std::sort(lines.begin(), lines.end());
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

Result<std::string> printed(const std::string& target, std::span<const std::byte> cubin,
                            const std::vector<uint64_t>& in) {
  std::string text;
  sim::Options o;
  o.check_hazards = true;
  o.deterministic = true;
  o.output = &text;
  ASSIGN_OR_RETURN(auto out, run_simulator(target, cubin, "k", in, o, 64 << 20));
  (void)out;
  return text;
}

TEST(Calls, WhatIsPrintedIsWhatPtxasCodePrints) {
  const ptx::Module module = parse_file(path);
  const std::vector<uint64_t> in = input_words();
  ptx::Memory memory;
  uint64_t args[2] = {memory.allocate(in.size() * 8), memory.allocate(out_words * 8)};
  memory.write(args[0], std::as_bytes(std::span(in)));
  std::string text;
  ptx::Launch launch;
  launch.grid = {blocks, 1, 1}, launch.block = {threads, 1, 1};
  launch.parameters = std::as_bytes(std::span(args));
  launch.output = &text;
  ASSERT_TRUE(ptx::interpret(module, "k", launch, memory).ok());
  const std::string expected = sorted_lines(text);
  EXPECT_GT(expected.size(), 1000u);
  EXPECT_NE(expected.find("\n5 "), std::string::npos);
  std::string why, ptxas = reference_tool("ptxas", why);
  for (const std::string& target : targets) {
    auto ours = assemble_for(module, target);
    ASSERT_TRUE(ours.ok()) << ours.error().message;
    auto got = printed(target, ours->cubin, in);
    ASSERT_TRUE(got.ok()) << target << ": " << got.error().message;
    EXPECT_EQ(sorted_lines(*got), expected) << target;
    if (ptxas.empty()) continue;
    std::string said;
    auto theirs = printed(target, assemble_with_ptxas(ptxas, path, target, said), in);
    ASSERT_TRUE(theirs.ok()) << target << ": " << theirs.error().message;
    EXPECT_EQ(sorted_lines(*theirs), expected) << target;
  }
}

// What can be read anew, or made of such, before a call and behind it is not kept across it: nobody saves it.
TEST(Calls, WhatIsReadAgainBehindACall) {
  std::string body;
  for (int k = 0; k < 12; ++k)
    body += fmt::format(
        "div.u32 %q, %n, {0}; xor.b32 %x, %x, %q; rem.u64 %d5, %d4, {1}; cvt.u32.u64 %q, %d5; add.u32 %x, %x, %q;\n",
        "%c" + std::to_string(k % 3), "%e" + std::to_string(k % 3));
  const std::string constants =
      "mov.u32 %n, %ntid.x; mov.u32 %c0, %nctaid.x; mov.u32 %c1, %tid.x; add.u32 %c1, %c1, 1; mov.u32 %c2, %ctaid.x; "
      "add.u32 %c2, %c2, 7;\n"
      "cvt.u64.u32 %d4, %n; mul.lo.u64 %d4, %d4, %d4; cvt.u64.u32 %e0, %c0; cvt.u64.u32 %e1, %c1; cvt.u64.u32 %e2, "
      "%c2;\n";
  std::string other = constants + body;  // the same of registers of its own
  for (const char* r : {"%n", "%c", "%d4", "%e", "%q", "%d5"})
    for (size_t at = 0; (at = other.find(r, at)) != std::string::npos; at += 3)
      if (!std::isalpha(static_cast<unsigned char>(other[at + 2]))) other.insert(at + 1, "z");
  const std::string text =
      ".version 7.1\n.target sm_61\n.address_size 64\n.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 "
      "b);\n"
      ".global .align 1 .b8 text[3] = {104, 10, 0};\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
      ".reg .b32 %t, %s, %n, %c<3>, %q, %x, %y, %r, %zn, %zc<3>, %zq; .reg .b64 %p, %o, %d<8>, %e<3>, %zd<8>, %ze<3>; "
      ".reg .pred %g;\n"
      "mov.u32 %t, %tid.x; setp.ne.u32 %g, %t, 33; mov.u32 %x, 0;\n" +
      constants + body +
      "mov.u32 %y, %x; @%g bra BEHIND;\n"
      "mov.u64 %p, text; { .param .b64 a; .param .b64 b; .param .b32 c; st.param.b64 [a], %p; st.param.b64 [b], 0;\n"
      "call.uni (c), vprintf, (a, b); ld.param.b32 %r, [c]; }\nBEHIND:\n" +
      other +
      "mov.u32 %s, %tid.x; mov.u32 %r, %ctaid.x; mad.lo.u32 %r, %r, 96, %s; ld.param.u64 %o, [out];\n"
      "mad.wide.u32 %o, %r, 768, %o; st.global.u32 [%o], %s; st.global.u32 [%o+8], %x; st.global.u32 [%o+16], "
      "%y;\nret;\n}\n";
  three_ways(text, {"sm_61", "sm_86", "sm_90"}, true);
}

// The tables that the driver resolves calls by are those of ptxas: names, kinds and order.
TEST(Calls, CubinNamesItsExterns) {
  const ptx::Module module = parse_file(path);
  std::string why, ptxas = reference_tool("ptxas", why);
  for (const std::string& target : targets) {
    auto ours = assemble_for(module, target);
    ASSERT_TRUE(ours.ok());
    auto image = cubin::read(ours->cubin);
    ASSERT_TRUE(image.ok()) << image.error().message;
    const std::vector<std::string> externs = {"vprintf", "malloc", "free", "__assertfail"};
    EXPECT_EQ(image->kernels[0].externs, externs);
    size_t calls = 0, returns = 0;
    for (const cubin::Relocation& r : image->kernels[0].relocations) {
      calls += r.kind == cubin::Relocation::call;
      returns += r.symbol == "k" && r.addend > 0;
    }
    EXPECT_EQ(calls, 4u) << target;
    EXPECT_EQ(returns, isa::find_target(target)->family == isa::Family::volta ? 8u : 0u) << target;
    if (ptxas.empty()) continue;
    std::string said;
    auto theirs = cubin::read(assemble_with_ptxas(ptxas, path, target, said));
    ASSERT_TRUE(theirs.ok()) << theirs.error().message;
    EXPECT_EQ(theirs->kernels[0].externs, externs);
  }
}

TEST(Calls, AnAssertionThatFailsEndsTheLaunchWithItsText) {
  const std::string text =
      ".version 7.0\n.target sm_60\n.address_size 64\n"
      ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);\n"
      ".global .align 1 .b8 what[6] = {120, 32, 62, 32, 48, 0};\n.global .align 1 .b8 file[5] = {97, 46, 99, 117, 0};\n"
      ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n.reg .b64 %d<3>;\n.reg .b32 %r;\n.reg .pred %p;\n"
      "mov.u32 %r, %tid.x;\nsetp.ne.u32 %p, %r, 70;\n@%p bra END;\nmov.u64 %d0, what;\nmov.u64 %d1, file;\n"
      "{\n.param .b64 a;\n.param .b64 b;\n.param .b32 c;\n.param .b64 d;\n.param .b64 e;\nst.param.b64 [a], %d0;\n"
      "st.param.b64 [b], %d1;\nst.param.b32 [c], 42;\nst.param.b64 [d], %d1;\nst.param.b64 [e], 1;\n"
      "call.uni __assertfail, (a, b, c, d, e);\n}\nEND:\nret;\n}\n";
  const ptx::Module module = parse_text("assert.ptx", text);
  const std::vector<uint64_t> in = input_words();
  const std::string words = "a.cu:42: a.cu: assertion `x > 0` failed";
  auto interpreted = run_interpreter(module, "k", in);
  ASSERT_FALSE(interpreted.ok());
  EXPECT_NE(interpreted.error().message.find(words), std::string::npos) << interpreted.error().message;
  for (const std::string& target : targets) {
    auto ours = assemble_for(module, target);
    ASSERT_TRUE(ours.ok()) << ours.error().message;
    auto got = run_simulator(target, ours->cubin, "k", in);
    ASSERT_FALSE(got.ok()) << target;
    EXPECT_NE(got.error().message.find(words), std::string::npos) << got.error().message;
    EXPECT_NE(got.error().message.find("thread 70,0,0"), std::string::npos) << got.error().message;
  }
}

// Found by fuzzing: the symbols of a cubin had the names of the PTX, and the first of a name was taken.
TEST(Calls, VariablesOfOneNameInSeveralScopes) {
  const ptx::Module module = parse_text(
      "scopes.ptx",
      ".version 7.0\n.target sm_60\n.address_size 64\n.global .u64 x = 5;\n"
      ".func (.param .b64 r) outer()\n{\n.reg .b64 %d;\nld.global.u64 %d, [x];\nst.param.b64 [r], %d;\nret;\n}\n"
      ".func (.param .b64 r) inner()\n{\n.reg .b64 %d;\n.global .u64 x = 70;\nld.global.u64 %d, [x];\n"
      "st.param.b64 [r], %d;\nret;\n}\n"
      ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n.reg .b64 %d<4>;\n.global .u64 x = 900;\n"
      "{\n.param .b64 a;\ncall (a), outer, ();\nld.param.b64 %d0, [a];\n}\n"
      "{\n.param .b64 a;\ncall (a), inner, ();\nld.param.b64 %d1, [a];\n}\n"
      "ld.global.u64 %d2, [x];\nadd.u64 %d0, %d0, %d1;\nadd.u64 %d0, %d0, %d2;\nld.param.u64 %d3, [out];\n"
      "st.global.u64 [%d3], %d0;\nret;\n}\n");
  const std::vector<uint64_t> in = input_words();
  auto interpreted = run_interpreter(module, "k", in);
  ASSERT_TRUE(interpreted.ok()) << interpreted.error().message;
  EXPECT_EQ((*interpreted)[0], 975u);
  for (const std::string& target : targets) {
    auto ours = assemble_for(module, target);
    ASSERT_TRUE(ours.ok()) << ours.error().message;
    auto got = run_simulator(target, ours->cubin, "k", in);
    ASSERT_TRUE(got.ok()) << got.error().message;
    EXPECT_EQ((*got)[0], 975u) << target;
  }
}

// A call deeper than the stack has frames, or of a number that is no function, traps and changes nothing else.
TEST(Calls, WhatCannotBeCalledTraps) {
  const std::string head = ".version 7.0\n.target sm_60\n.address_size 64\n";
  const std::string deep =
      head +
      ".func (.param .b32 r) f(.param .b32 n)\n{\n.reg .b32 %r<3>;\nld.param.u32 %r0, [n];\nadd.u32 %r1, %r0, 1;\n"
      "{\n.param .b32 a;\n.param .b32 b;\nst.param.b32 [a], %r1;\ncall (b), f, (a);\nld.param.b32 %r2, [b];\n}\n"
      "st.param.b32 [r], %r2;\nret;\n}\n"
      ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n.reg .b32 %r;\n{\n.param .b32 a;\n.param .b32 b;\n"
      "st.param.b32 [a], 0;\ncall (b), f, (a);\nld.param.b32 %r, [b];\n}\nret;\n}\n";
  const std::string nowhere =
      head +
      ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n.reg .b64 %d;\nmov.u64 %d, 12345;\n"
      "p : .callprototype () _ ();\ncall %d, (), p;\nret;\n}\n";
  for (const std::string& text : {deep, nowhere})
    for (const std::string& target : targets) {
      auto ours = assemble_for(parse_text("trap.ptx", text), target);
      ASSERT_TRUE(ours.ok()) << ours.error().message;
      auto got = run_simulator(target, ours->cubin, "k", input_words());
      ASSERT_FALSE(got.ok()) << target;
      EXPECT_NE(got.error().message.find("trap"), std::string::npos) << got.error().message;
    }
}

TEST(Calls, AListOfTargetsIsASignature) {
  std::string text =
      kernel("7.8", "sm_60",
             {"mov.b32 %r0, 0; and.b32 %r4, %r1, 1; setp.eq.u32 %p2, %r4, 0; mov.u64 %d4, twice; mov.u64 %d5, less; "
              "selp.b64 %d4, %d4, %d5, "
              "%p2; T: .calltargets twice, less;\n{\n.param .b32 a; .param .b32 r;\nst.param.b32 [a], %r2;\n"
              "call (r), %d4, (a), T;\nld.param.b32 %r0, [r];\n}\nmov.b32 %r4, %r0"});
  text.insert(
      text.find(".visible .entry"),
      ".func (.param .b32 r) twice(.param .b32 a)\n{\n.reg .b32 %r;\nld.param.b32 %r, [a];\nadd.u32 %r, %r, %r;\n"
      "st.param.b32 [r], %r;\nret;\n}\n"
      ".func (.param .b32 r) less(.param .b32 a)\n{\n.reg .b32 %r;\nld.param.b32 %r, [a];\nsub.u32 %r, %r, 9;\n"
      "st.param.b32 [r], %r;\nret;\n}\n");
  three_ways(text, {"sm_61", "sm_86", "sm_90"}, true);
}

TEST(Calls, AFunctionHasAnotherName) {
  std::string text =
      kernel("7.8", "sm_60",
             {"mov.b32 %r0, 0;\n{\n.param .b32 a; .param .b32 r;\nst.param.b32 [a], %r2;\n"
              "call.uni (r), also, (a);\nld.param.b32 %r0, [r];\n}\nmov.b32 %r4, %r0",
              "mov.b32 %r0, 0; ld.global.u64 %d4, [place];\np: .callprototype (.param .b32 _) _ (.param .b32 "
              "_);\n{\n.param .b32 a; .param .b32 r;\nst.param.b32 [a], %r3;\ncall (r), %d4, (a), p;\n"
              "ld.param.b32 %r0, [r];\n}\nmov.b32 %r4, %r0"});
  text.insert(
      text.find(".visible .entry"),
      ".visible .func (.param .b32 r) less(.param .b32 a)\n{\n.reg .b32 %r;\nld.param.b32 %r, [a];\n"
      "sub.u32 %r, %r, 9;\nst.param.b32 [r], %r;\nret;\n}\n.visible .func (.param .b32 r) also(.param .b32 a);\n"
      ".alias also, less;\n.global .u64 place = also;\n");
  three_ways(text, {"sm_61", "sm_86", "sm_90"}, true);
}

TEST(Calls, OtherExternalFunctionsAreRefusedByName) {
  const ptx::Module module =
      parse_text("extern.ptx",
                 ".version 7.0\n.target sm_60\n.address_size 64\n.extern .func other(.param .b32 a);\n"
                 ".visible .entry k()\n{\n{\n.param .b32 a;\nst.param.b32 [a], 1;\ncall other, (a);\n}\nret;\n}\n");
  auto result = assemble_for(module, "sm_86");
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("line 10: unsupported call of `other`"), std::string::npos)
      << result.error().message;
}

}  // namespace
}  // namespace rndn::assembler::testing
