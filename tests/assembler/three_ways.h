// Statements of PTX in a kernel of the tests' shape, run by our code, by ptxas's code where the simulator knows it, and by the PTX interpreter.
#pragma once
#include "tests/assembler/support.h"

namespace rndn::assembler::testing {

inline const std::vector<std::string> newer = isa::tested_targets(80), since_turing = isa::tested_targets(75);
inline const std::vector<std::string> both_families = {"sm_61", "sm_86", "sm_90"};

// A kernel of the tests' shape. Each statement reads %r1..3, %d1..3, %h1..3 (low halves), %f1, %e1 and sets the register that it names first.
inline std::string kernel(const std::string& version, const std::string& target,
                          const std::vector<std::string>& statements) {
  std::string text =
      fmt::format(".version {}\n.target {}\n", version, target) +
      ".address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
      ".reg .b32 %r<8>; .reg .b64 %d<8>; .reg .b16 %h<4>; .reg .f32 %f1; .reg .f64 %e1; .reg .pred %p<3>;\n"
      ".reg .b64 %in, %out, %x; .reg .b32 %n, %c, %t; .reg .b16 %u;\n"
      "ld.param.u64 %in, [in]; ld.param.u64 %out, [out];\nmov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x;\n"
      "mov.u32 %n, %ntid.x; mad.lo.u32 %n, %c, %n, %t; mad.wide.u32 %in, %n, 24, %in;\n"
      "mad.wide.u32 %out, %n, 768, %out;\n"
      "ld.global.b64 %d1, [%in]; ld.global.b64 %d2, [%in+8]; ld.global.b64 %d3, [%in+16];\n";
  for (int k = 1; k <= 3; ++k) text += fmt::format("cvt.u32.u64 %r{0}, %d{0}; cvt.u16.u64 %h{0}, %d{0};\n", k);
  text += "mov.b64 %e1, %d1; mov.b32 %f1, %r1; setp.lt.s32 %p1, %r2, 0;\n";
  for (size_t k = 0; k < statements.size(); ++k) {
    const std::string& s = statements[k];
    const size_t at = s.find('%', s[0] == '@' ? s.find(' ') : 0);
    const std::string to = s.substr(at, s.find_first_of(",|}", at) - at);
    text += s + ";\n";
    const std::string value = to[1] == 'r' || to[1] == 'c' ? fmt::format("cvt.u64.u32 %x, {};", to)
                              : to[1] == 'h'               ? fmt::format("cvt.u64.u16 %x, {};", to)
                              : to[1] == 'p'               ? fmt::format("selp.b64 %x, 1, 2, {};", to)
                                                           : fmt::format("mov.b64 %x, {};", to);
    text += value + fmt::format(" st.global.b64 [%out+{}], %x;\n", 8 * k);
  }
  return text + "ret;\n}\n";
}

// The kernel with more registers.
inline std::string with(std::string text, const std::string& more) {
  return text.insert(text.find(".reg .b16 %u;"), more + " ");
}

// The message of the first diagnostic of the module; empty: it is taken.
inline std::string refusal(const std::string& text) {
  SourceManager sources;
  DiagnosticSink sink;
  (void)ptx::parse(sources.add("refused.ptx", text), sources, sink);
  return sink.diagnostics().empty() ? "" : sink.diagnostics().front().message;
}

// Our code at these levels against what the interpreter gives.
inline void our_code(const ptx::Module& module, const std::vector<std::string>& on, const std::vector<int>& levels,
                     const std::vector<uint64_t>& in, const std::vector<uint64_t>& expected) {
  for (const std::string& target : on)
    for (const int level : levels) {
      auto made = assemble_for(module, target, level);
      EXPECT_TRUE(made.ok()) << target << ": " << made.error().message;
      if (!made.ok()) continue;
      auto got = run_simulator(target, made->cubin, "k", in);
      EXPECT_TRUE(got.ok()) << target << ": " << got.error().message;
      if (got.ok()) {
        EXPECT_EQ(difference(expected, *got, 96), "") << target << " -O" << level;
      }
    }
}

// The same from the kernel's text on.
inline void our_code_agrees(const std::string& text, const std::vector<std::string>& on, const std::vector<int>& levels) {
  const ptx::Module module = parse_text("kernel.ptx", text);
  const std::vector<uint64_t> in = input_words();
  auto expected = run_interpreter(module, "k", in);
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  our_code(module, on, levels, in, *expected);
}

// Returns on how many of the targets the vendor's code was compared; -1: there is no ptxas.
inline int three_ways(const std::string& text, const std::vector<std::string>& on, bool with_ptxas) {
  const ptx::Module module = parse_text("expand.ptx", text);
  EXPECT_EQ(ptx::print(parse_text("printed.ptx", ptx::print(module))), ptx::print(module));
  const std::vector<uint64_t> in = input_words();
  auto expected = run_interpreter(module, "k", in);
  EXPECT_TRUE(expected.ok()) << expected.error().message;
  if (!expected.ok()) return 0;
  std::string why;
  const std::string ptxas = with_ptxas ? reference_tool("ptxas", why) : "", path = temporary(".ptx");
  EXPECT_TRUE(write_file(path, text).ok());
  int vendor = ptxas.empty() ? -1 : 0;
  our_code(module, on, {0, 3}, in, *expected);
  for (const std::string& target : on) {
    if (ptxas.empty()) continue;
    std::string said;
    const std::vector<std::byte> cubin = assemble_with_ptxas(ptxas, path, target, said);
    EXPECT_FALSE(cubin.empty()) << said;
    auto theirs = run_simulator(target, cubin, "k", in, true, nullptr, false);
    if (!theirs.ok()) {
      std::printf("%s: ptxas's code: %s\n", target.c_str(), theirs.error().message.c_str());
      continue;
    }
    ++vendor;
    EXPECT_EQ(difference(*expected, *theirs, 96), "") << target << " (ptxas)";
  }
  unlink(path.c_str());
  return vendor;
}

}  // namespace rndn::assembler::testing
