// The parser: texts as compilers write them, print and parse as inverses, every diagnostic, and seeded damage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <set>

#include "libraries/base/system/files.h"
#include "ptx/parse.h"
#include "tests/ptx/reference_ptxas.h"

namespace rndn::ptx::parser_test {
namespace {

using ::testing::HasSubstr;

const char* const files[] = {"nvcc_style", "nvcc_lines", "clang_style", "triton_style"};

std::string text_of(const std::string& name) {
  auto text = read_file(std::string(RNDN_SOURCE_DIR) + "/tests/ptx/accept/" + name + ".ptx");
  EXPECT_TRUE(text) << text.error().message;
  return text ? *text : "";
}

struct Parsed {
  SourceManager sources;
  DiagnosticSink sink;
  Module module;
  explicit Parsed(const std::string& text) { module = parse(sources.add("test.ptx", text), sources, sink); }
  std::string errors() const { return render(sink, sources); }
};

// A text with `body` in a kernel that has some registers.
std::string kernel(const std::string& body) {
  return ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 a)\n{\n"
         ".reg .b32 %r<8>; .reg .f32 %f<4>; .reg .b64 %rd<4>; .reg .pred %p<4>; .reg .b16 %rs<4>;\n" +
         body + "\nret;\n}\n";
}

std::string printed_body(const std::string& body) {
  Parsed p(kernel(body));
  EXPECT_FALSE(p.sink.has_errors()) << p.errors();
  std::string out;
  if (p.module.functions.empty()) return out;
  for (const Instruction& i : p.module.functions[0].instructions)
    out += print(p.module, p.module.functions[0], i) + "\n";
  return out.substr(0, out.rfind("ret;"));
}

TEST(Parser, PrintIsAFixedPoint) {
  for (const char* name : files) {
    Parsed first(text_of(name));
    ASSERT_FALSE(first.sink.has_errors()) << first.errors();
    EXPECT_THAT(verify(first.module), ::testing::IsEmpty());
    std::string once = print(first.module);
    Parsed second(once);
    ASSERT_FALSE(second.sink.has_errors()) << second.errors();
    EXPECT_EQ(print(second.module), once) << name;
    // The two modules have the same instructions, not just the same text.
    ASSERT_EQ(first.module.functions.size(), second.module.functions.size());
    for (size_t f = 0; f < first.module.functions.size(); ++f) {
      const Function &x = first.module.functions[f], &y = second.module.functions[f];
      ASSERT_EQ(x.instructions.size(), y.instructions.size());
      for (size_t k = 0; k < x.instructions.size(); ++k) {
        EXPECT_TRUE(x.instructions[k].op == y.instructions[k].op && x.instructions[k].mods == y.instructions[k].mods);
        EXPECT_EQ(print(first.module, x, x.instructions[k]), print(second.module, y, y.instructions[k]));
      }
      EXPECT_TRUE(x.locations == y.locations) << name;
    }
    EXPECT_TRUE(first.module.files == second.module.files) << name;
    EXPECT_EQ(first.module.inlined, second.module.inlined) << name;
  }
}

// A point, whatever the locale of the process has; what no double holds is infinite or 0.
TEST(Parser, DecimalsAreReadAsStrtodReadsThem) {
  const std::string zeros(400, '0');
  std::vector<std::string> texts = {"1" + zeros + ".0", "0." + zeros + "1", "0." + zeros + "1e401",
                                    "1" + zeros + "e-400", "1" + zeros + ".e-1000"};
  for (const char* text :
       {"0.0", "1.", "1.5", "0.1", "2E3", "1.25e-3", "17e+4", "4.9e-324", "1.7976931348623157e308", "1e309", "1e-400",
        "1e99999999999999999999", "1e-99999999999999999999", "0e99999999999999999999"})
    texts.push_back(text);
  for (const std::string& text : texts) {
    Parsed p(".version 7.8\n.target sm_80\n.global .f64 v = " + text + ";\n");
    ASSERT_FALSE(p.sink.has_errors()) << text << p.errors();
    double value = -1;
    const auto& initial = p.module.variables[VariableId{0}].initial;
    ASSERT_EQ(initial.size(), sizeof value) << text;
    std::memcpy(&value, initial.data(), sizeof value);
    EXPECT_EQ(value, std::strtod(text.c_str(), nullptr)) << text;
  }
}

TEST(Parser, ReferenceAssemblerAcceptsBothSides) {
  std::string why, ptxas = test::find_ptxas(why);
  if (ptxas.empty()) GTEST_SKIP() << "skipped: " << why;
  for (const char* name : files) {
    std::string text = text_of(name), messages;
    EXPECT_TRUE(test::ptxas_accepts(ptxas + "' -c '-v", text, "sm_80", messages))
        << "the test's own text: " << messages;
    EXPECT_TRUE(test::ptxas_accepts(ptxas + "' -c '-v", print(Parsed(text).module), "sm_80", messages))
        << name << messages;
  }
}

// The text with a comment in front of every `mark`: what is read by hand else (statements.cpp) goes through the grammar.
std::string through_grammar(const std::string& text, char mark) {
  std::string out;
  for (size_t k = 0; k < text.size(); ++k) {
    const bool qualifier = text.substr(k, 2) == "::" || (k > 0 && text.substr(k - 1, 2) == "::");  // .L1::evict_last
    if (text[k] == mark && !qualifier) out += "/**/";
    out += text[k];
  }
  return out;
}

TEST(Parser, StatementsReadByHandMeanWhatTheGrammarSays) {
  std::vector<std::string> texts;
  for (const char* name : files) texts.push_back(text_of(name));
  texts.push_back(kernel(
      "mov.b32 %r1, -5; mov.b32 %r2, 0xfFfFffff;mov.f32 %f1,0f3F800000; mov.f32 %f1, 0d3FF0000000000000; mov.b64 %rd0, "
      "9223372036854775808;\nL: @%p1 bra L; @!%p1 bra L;mov.u32 %r1, %tid.x; mov.u32 %r1, WARP_SZ; setp.lt.s32 "
      "%p0|%p1, "
      "%r1, %r2;\n setp.eq.and.s32 %p0|_, %r1, -7, !%p2; ld.global.v2.b32 {%r1, _}, [%rd1+-8]; ld.global.b32 %r1, [ "
      "%rd1 "
      "- 0x10 ]; ld.param.u64 %rd1, [a]; st.global.v4.b32 [%rd1], {%r1,%r2,3,-4};\n ld.global.b32 %r1, [64]; $1x: // a "
      "label\n\tbra.uni $1x; mov.b64 {%r1, %r2}, %rd1; mov.b32 %r1, 017; mov.b32 %r1, 0b101; mov.b64 %rd1, a; bar.sync "
      "0;"));
  // Declarations in scopes, names that are no registers of ranges, other numbers of operands, what a place takes beside registers.
  texts.push_back(
      kernel(".reg .pred q; .reg .b32 n ; .reg .f32 %long_prefix_<3>,%r1x, x<2>;.shared .b32 s[4];\n{\t.reg .b64 %r < "
             "2 >; .reg .b32 %r3; mov.u64 %r1, %r0; "
             "mov.u32 %r2, %r3; }\n"
             "bar.sync 0; bar.sync 1, 64; bar.sync n; bar.sync 2, %r1; @q ret; @!q bra $2; atom.shared.add.u32 _, [s], "
             "1; mov.f32 x1, %long_prefix_2;\n"
             "mov.f32 %r1x, x0;$2:\nmov.u32 n, s; mov.b64 %rd1, s; mov.u64 %rd1, %globaltimer; cvta.shared.u64 %rd1, "
             "%rd2; ld.shared.f32 %f1, [s + 4];"
             "ld.shared.v2.b32 {%r1,n},[s+8]; st.shared.b32 [s-0], {5}; ld.global.f32 {%f1}, [%rd1+0]; mov.b64 {n, "
             "%r2}, %rd1; mov.b32 %r1, {%rs1, %rs2};\n"
             "and.pred %p1, !%p0, 1; mov.pred q, !0; selp.b32 %r1, 1, 2, !q; shfl.sync.idx.b32 %r1|q, %r2, 0, 31, "
             "-1;\n\nadd.u64 %rd1, %rd1,\n -1;"
             "st.global.v2.f32 [%rd1], {0f3F800000, %f1}; mov.u16 %rs1, 0xFFFF; mov.b32 %r1, 0f3F800000; add.f64 %fd, "
             "%fd, 0d3FF0000000000000;\n"
             "cvt.u32.u16 %r1, %rs1; st.global.u8 [%rd1], %r2; prmt.b32 %r1, %r2, %r3, 0x5410; ld.param.b32 %r1, "
             "[a+4]; .loc 1 2 3 // a.cu:2\n .loc 1 3 1 ret; $3: // one\n// two\n ret; .loc 1 4 1\n//"));
  texts.back().insert(texts.back().find("{\n") + 2, ".reg .f64 %fd;\n");
  texts.push_back(
      ".version 7.8\n.target sm_80\n.address_size 64\n.func (.param .b32 r) f(.param .u32 a, .param .align 8 .b8 "
      "b[16],\n\n.param .f64 "
      "c , .param .u8 d)\n{\nret;\n}\n.entry k(.param.u64 a,.param .u64 .ptr .global .align 8 b, .param\n.u64 "
      "c)\n.reqntid 32, 1, "
      "1\n{\nret;\n}\n");
  for (const std::string& text : texts)
    for (const char mark : {';', ':', ','}) {
      Parsed fast(text), slow(through_grammar(text, mark));
      ASSERT_FALSE(slow.sink.has_errors()) << slow.errors();
      ASSERT_FALSE(fast.sink.has_errors()) << fast.errors();
      EXPECT_EQ(print(fast.module), print(slow.module));
      EXPECT_THAT(verify(fast.module), ::testing::IsEmpty());
      for (size_t f = 0; f < fast.module.functions.size(); ++f) {
        const auto &x = fast.module.functions[f].instructions, &y = slow.module.functions[f].instructions;
        ASSERT_EQ(x.size(), y.size());
        for (size_t k = 0; k < x.size(); ++k) EXPECT_EQ(x[k].line, y[k].line);
        EXPECT_TRUE(fast.module.functions[f].locations == slow.module.functions[f].locations);
      }
    }
  // What is wrong is told in the same words at the same place.
  for (const char* wrong : {"add.u32 %r1, %r2, %r9",
                            "add.u32 %r1, %r2, %f1",
                            "@%r1 add.u32 %r1, %r2, %r3",
                            "addd.u32 %r1, %r2",
                            "add.u32 %r1",
                            "ld.global.b32 %r1, [%p1]",
                            "ld.global.b32 %r1, [nothing+4]",
                            "add.u32 %r1, , %r2",
                            "add.u32 %r1 %r2",
                            "add.u32 %r1, %r2, 1.5",
                            "mov.u32 %r1, %laneid.w",
                            "mov.u32 %r1, %clusterid.x",
                            "add.u32. %r1, %r2, %r3",
                            "add.u32 %r1, %r2, 08",
                            "%r1",
                            "bra %r1",
                            "st.global.v2.b32 [%rd1], {%r1, %r2, %r3}",
                            "mov.f32 %f1, 1",
                            "add.u32 %r1, %r2, !%r3",
                            "tex.2d %r1, %r2",
                            "bra %r1, %r2",
                            "%r2: ret",
                            "L: L: ret",
                            "L: .reg .b32 L",
                            "foo.bar: ret",
                            "ret 5",
                            "bar.sync",
                            "@%p5 ret",
                            "@5 ret",
                            "add.u32 %r1, %r01, 1",
                            "add.u32 %r1, %r2.x, 1",
                            "add.u32 %r1, %r99999999999, 1",
                            "add.u32 _, %r1, 1",
                            "add.u32 %r1, %r2, [%rd1]",
                            "mov.u16 %rs1, %globaltimer",
                            "cvt.u32.u64 %r1, %tid.x",
                            "add.u32 %r1 + 1, %r2, 3",
                            "add.u32 %r1, %r2 + 1.5, 3",
                            ".reg .v2 .u32 v; mov.u32 %r1, v",
                            ".reg .v2 .u32 v; ld.global.u32 %r1, [v]",
                            ".reg .v2 .u32 v; mov.u32 %r1, v.z",
                            ".reg .v2 .u32 v; @v bra L; L: ret",
                            ".reg .v3 .u32 v",
                            "mov.u64 %rd1, %laneid",
                            "mov.u32 %r1, %globaltimer",
                            "mov.u32 %tid.x, %r1",
                            "mov.pred %p1, !a",
                            "mov.u32 %r1, !%r2",
                            "setp.lt.s32 !%p1, %r1, 3",
                            ".shared .b32 s; ld.global.b32 %r1, [s]",
                            ".shared .b32 s; cvta.global.u64 %rd1, s",
                            ".shared .b32 s; mov.u16 %rs1, s",
                            "ld.global.b32 %r1, [a]",
                            "ld.global.b32 %r1, [%rd1+1.5]",
                            "ld.global.v2.b32 %r1, [%rd1]",
                            "ld.global.v2.b32 {%r1}, [%rd1]",
                            "ld.global.v2.b32 {%r1, 5}, [%rd1]",
                            "ld.global.b32 {%r1, %r2}, [%rd1]",
                            "st.global.v2.b32 [%rd1], {%r1, 1.5}",
                            "st.global.v2.b32 [%rd1], {%r1, _}",
                            "st.global.v2.b32 [%rd1], {%r1, %rs1}",
                            "mov.b64 {%r1, 5}, %rd1",
                            "ld.global.v2.b32 {%r1, %r2} ret",
                            ".global .b32 g[2] = {1, 2} ret",
                            ".global .b32 g[2] = {1 ret 2}",
                            "add.u32 {%r1}, %r2, %r3",
                            "add.u32 %r1, {%r2 %r3}",
                            ".reg .b128 x",
                            ".reg .b33 x",
                            ".reg .u32 %r<3>",
                            ".reg .u32 %r2",
                            ".reg .u32 x<1.5>",
                            ".reg .u32 x<-1>",
                            ".reg .u32 x<3 4>"}) {
    Parsed fast(kernel(std::string(wrong) + ";")), slow(kernel(std::string(wrong) + "/**/;"));
    ASSERT_TRUE(slow.sink.has_errors()) << wrong;
    ASSERT_EQ(fast.sink.diagnostics().size(), slow.sink.diagnostics().size()) << wrong << fast.errors();
    for (size_t k = 0; k < slow.sink.diagnostics().size(); ++k) {
      const auto &x = fast.sink.diagnostics()[k], &y = slow.sink.diagnostics()[k];
      EXPECT_EQ(x.message, y.message) << wrong;
      EXPECT_EQ(x.kind, y.kind) << wrong;
      EXPECT_EQ(x.span.begin, y.span.begin) << wrong;
    }
  }
  for (const char* wrong :
       {".entry k(.param .pred p, .param .u32 q) { ret; }",
        ".entry k(.param .u32 p, .param .b128 q, .param .u32 p) { ret; }",
        ".entry k(.param .u33 p, .param .u32 q) { ret; }", ".entry k(.param .u32 p, ) { ret; }",
        ".entry k(.param .u32 p, .param .u32 q, .param .u33 r) { ret; }",
        ".entry k(.param .u32 p, .param .u32 q, .param) { ret; }",
        ".entry k(.param .u32 p, .param .u32 p, .param .u32 q) { ret; }",
        ".entry k .reqntid 32, .param .pred p, (.param .pred q, .param .u32 r) { ret; }",
        ".entry k(.param .attribute(.param .u32 p, .param .u32 q) .u32 r) { ret; }",
        ".global .u64 g[2] = {generic(k), .param .pred p, 5};",
        ".func f(.param .u32 a, .param .u32 b); .func f(.param .u32 a) { call f, (.param .pred p, .param .u32 q); }"}) {
    const std::string text = std::string(".version 7.8\n.target sm_80\n") + wrong;
    Parsed fast(text), slow(through_grammar(text, ','));
    ASSERT_TRUE(slow.sink.has_errors()) << wrong;
    ASSERT_EQ(fast.sink.diagnostics().size(), slow.sink.diagnostics().size()) << wrong << fast.errors();
    for (size_t k = 0; k < slow.sink.diagnostics().size(); ++k) {
      const auto &x = fast.sink.diagnostics()[k], &y = slow.sink.diagnostics()[k];
      EXPECT_EQ(x.message, y.message) << wrong;
      EXPECT_EQ(fast.sources.text(x.span), slow.sources.text(y.span)) << wrong;
    }
  }
}

TEST(Parser, KeepsWhatTheTextSays) {
  Parsed p(text_of("nvcc_style"));
  const Module& m = p.module;
  EXPECT_EQ(m.version, 78u);
  EXPECT_EQ(m.target, 75u);
  ASSERT_EQ(m.functions.size(), 2u);
  EXPECT_TRUE(m.functions[0].external);
  EXPECT_EQ(m.functions[0].name, "vprintf");
  const Function& f = m.functions[1];
  EXPECT_TRUE(f.is_entry);
  EXPECT_THAT(f.max_threads, ::testing::ElementsAre(256, 1, 1));
  EXPECT_EQ(f.min_blocks, 2u);
  ASSERT_EQ(f.parameters.size(), 4u);
  EXPECT_EQ(f.parameters[3].align, 8u);
  EXPECT_EQ(f.parameters[3].count, 24u);
  EXPECT_EQ(f.parameters[1].align, 0u) << "the alignment of what .ptr points to is not the parameter's";
  // Variables: string, table, dynamic shared; then those of the body.
  EXPECT_EQ(m.variables[static_cast<VariableId>(0)].initial.size(), 14u);
  const Variable& weights = m.variables[static_cast<VariableId>(1)];
  EXPECT_EQ(weights.initial.size(), 12u);
  float second;
  std::memcpy(&second, weights.initial.data() + 4, 4);
  EXPECT_EQ(second, -0.5f);
  EXPECT_EQ(m.variables[static_cast<VariableId>(2)].count, UINT64_MAX);
  // Registers of ranges, and those of blocks under names of their own.
  std::set<std::string> names;
  for (uint32_t r = 0; r < f.registers.size(); ++r) {
    const std::string name = register_name(f, RegisterId{r});
    EXPECT_TRUE(names.insert(name).second) << name;
  }
  EXPECT_EQ(names.size(), f.registers.size());
  EXPECT_TRUE(names.count("p") && names.count("p_1"));
  // The line of the call's opcode.
  size_t calls = 0;
  for (const Instruction& i : f.instructions)
    if (i.op == Opcode::call) {
      ++calls;
      EXPECT_THAT(std::string(p.sources.line(static_cast<FileId>(0), i.line)), HasSubstr("call.uni (retval0)"));
    }
  EXPECT_EQ(calls, 1u);
}

TEST(Parser, LocationsHoldForWhatFollows) {
  Parsed p(".file 7 \"c.cu\", 12, 34\n" +
           kernel("L:\n.loc 7 3 1\nmov.u32 %r1, 1;\n.loc 7 4 1 mov.u32 %r1, 2;\nmov.u32 %r1, 3;\n"
                  ".loc 8 9 2, function_name names+2, inlined_at 7 4 1\n{ mov.u32 %r1, 4; .loc 7 5 1\n}") +
           ".file 8 \"d.h\"\n.section .debug_info { .b32 1 }\n.section .debug_str { .b8 65, 0 // A\nnames: .b16 0x42, "
           "67\n.b8 68,0 }\n");
  ASSERT_FALSE(p.sink.has_errors()) << p.errors();
  EXPECT_TRUE(p.module.files == (std::vector<SourceFile>{{7, "c.cu", 12, 34}, {8, "d.h", 0, 0}}));
  EXPECT_EQ(p.module.inlined, std::vector<std::string>{"C"});
  const Function& f = p.module.functions[0];
  EXPECT_EQ(f.instructions.size(), 5u);
  EXPECT_TRUE(f.locations == (std::vector<Location>{{0, 7, 3, 1, Location::not_inlined, 0, 0, 0},
                                                    {1, 7, 4, 1, Location::not_inlined, 0, 0, 0},
                                                    {3, 8, 9, 2, 0, 7, 4, 1},
                                                    {4, 7, 5, 1, Location::not_inlined, 0, 0, 0}}))
      << print(p.module);
}

// Of the loop whose first block holds it, of a function's loops, or of a module's.
TEST(Parser, NounrollBelongsToLoops) {
  const auto marked = [](const std::string& text) {
    Parsed p(text);
    EXPECT_FALSE(p.sink.has_errors()) << p.errors();
    std::string names;
    for (const Function& f : p.module.functions)
      for (const Label& l : f.labels)
        if (l.nounroll) names += l.name + " ";
    EXPECT_EQ(print(Parsed(print(p.module)).module), print(p.module));
    return names;
  };
  const std::string pragma = ".pragma \"nounroll\";\n", other = ".pragma \"something\";\n",
                    loop = "add.u32 %r1, %r1, 1;\n";
  EXPECT_EQ(marked(kernel("A:\n" + pragma + loop + "B:\n" + loop)), "A ");
  EXPECT_EQ(marked(kernel("A:\nB:\n" + pragma + loop + "C:\n" + loop)), "A B ");
  EXPECT_EQ(marked(kernel("A:\n" + loop + pragma + "B:\n" + loop)), "");
  EXPECT_EQ(marked(kernel("A:\n" + other + loop)), "");
  EXPECT_EQ(marked(kernel("A:\n.pragma \"something\", \"nounroll\";\n" + loop)), "A ");
  std::string two = kernel("A:\n" + loop);
  two += ".visible .entry second()\n" + pragma + "{\n.reg .b32 %r<2>;\nB:\n" + loop +
         "ret;\n}\n.visible .entry third()\n{\n.reg .b32 %r<2>;\nC:\n" + loop + "ret;\n}\n";
  EXPECT_EQ(marked(two), "B ");
  EXPECT_EQ(marked(two.insert(two.find(".visible"), pragma)), "A B C ");
}

TEST(Parser, ConstantsInAllBases) {
  EXPECT_EQ(printed_body("mov.u32 %r1, 0x1F;"), "mov.u32 %r1, 31;\n");
  EXPECT_EQ(printed_body("mov.u32 %r1, 0b101;"), "mov.u32 %r1, 5;\n");
  EXPECT_EQ(printed_body("mov.u32 %r1, 017;"), "mov.u32 %r1, 15;\n");
  EXPECT_EQ(printed_body("mov.u32 %r1, 4294967295U;"), "mov.u32 %r1, 4294967295;\n");
  EXPECT_EQ(printed_body("mov.u32 %r1, -1;"), "mov.u32 %r1, 4294967295;\n");
  EXPECT_EQ(printed_body("mov.s32 %r1, 4294967295;"), "mov.s32 %r1, -1;\n");
  EXPECT_EQ(printed_body("mov.u64 %rd1, 18446744073709551615;"), "mov.u64 %rd1, 18446744073709551615;\n");
  EXPECT_EQ(printed_body("mov.s64 %rd1, -0x8000000000000000;"), "mov.s64 %rd1, -9223372036854775808;\n");
  EXPECT_EQ(printed_body("mov.f32 %f1, 0f3f800000;"), "mov.f32 %f1, 0f3F800000;\n");
  EXPECT_EQ(printed_body("mov.f32 %f1, 0.1;"), "mov.f32 %f1, 0f3DCCCCCD;\n");
  EXPECT_EQ(printed_body("mov.f32 %f1, -2e3;"), "mov.f32 %f1, 0fC4FA0000;\n");
  EXPECT_EQ(printed_body("mov.f32 %f1, 0d3FF8000000000000;"), "mov.f32 %f1, 0f3FC00000;\n");
  EXPECT_EQ(printed_body("mov.b32 %r1, 0fBF800000;"), "mov.b32 %r1, 3212836864;\n");
  EXPECT_EQ(printed_body("add.s32 %r1, %r2, 4+8-1;"), "add.s32 %r1, %r2, 11;\n");
  EXPECT_EQ(printed_body("add.u16 %rs1, %rs2, -1;"), "add.u16 %rs1, %rs2, 65535;\n");
  EXPECT_EQ(printed_body("mov.u32 %r1, WARP_SZ;"), "mov.u32 %r1, 32;\n");
}

TEST(Parser, ConstantExpressions) {
  const auto value = [](const std::string& text) { return printed_body("mov.s64 %rd1, " + text + ";"); };
  const auto is = [](int64_t v) { return "mov.s64 %rd1, " + std::to_string(v) + ";\n"; };
  EXPECT_EQ(value("(1==1)"), is(1));
  EXPECT_EQ(value("(1 == 1) + (2 != 2) + (3 >= 3) * 4"), is(5));
  EXPECT_EQ(value("2 + 3 * 4 - 20 / 6 % 2"), is(13));
  EXPECT_EQ(value("1 << 4 | 3 & 6 ^ 1"), is(1 << 4 | ((3 & 6) ^ 1)));
  EXPECT_EQ(value("-8 >> 1"), is(-4));
  EXPECT_EQ(value("0xFFFFFFFFFFFFFFF8 >> 1"), is(0x7FFFFFFFFFFFFFFC));
  EXPECT_EQ(value("-7 / 2 + -(3) + ~0"), is(-7));
  EXPECT_EQ(value("(1 << 63) / -1"), is(INT64_MIN));
  // As ptxas evaluates them: 2^63 and more, a suffix U and ~ have no sign, nor has a remainder; a shift is by six bits.
  EXPECT_EQ(value("-0x8000000000000000 / -1"), is(0));
  EXPECT_EQ(value("-7 % 3"), is(0));
  EXPECT_EQ(value("(-7 % -3) < 0"), is(0));
  EXPECT_EQ(value("-7U / 2"), is(0x7FFFFFFFFFFFFFFC));
  EXPECT_EQ(value("-7 >> 1U"), is(-4));
  EXPECT_EQ(value("-7U >> 1"), is(0x7FFFFFFFFFFFFFFC));
  EXPECT_EQ(value("~0 >> 1"), is(INT64_MAX));
  EXPECT_EQ(value("(-1 & 1U - 2) >> 1"), is(INT64_MAX));
  EXPECT_EQ(value("3 - 5U > 0"), is(1));
  EXPECT_EQ(value("-1 < 1U"), is(0));
  EXPECT_EQ(value("(0 ? -1U : -1) >> 1"), is(-1));
  EXPECT_EQ(value("(1U < 2) - 2 >> 1"), is(-1));
  EXPECT_EQ(value("(1 << 64) + (-8 >> 65)"), is(-3));
  EXPECT_EQ(value("2 * WARP_SZ + -WARP_SZ / 3"), is(54));
  EXPECT_EQ(value("(1.0 < 2.0) + 1"), is(2));
  EXPECT_EQ(printed_body("mov.f64 %rd1, 1.5 * 3.0 - 0d3FF0000000000000 / (4.0 + 4e0);"),
            "mov.f64 %rd1, 0d4011800000000000;\n");
  EXPECT_EQ(printed_body("mov.f32 %f1, 1.0 / 3.0;"), "mov.f32 %f1, 0f3EAAAAAB;\n");
  // An integer's lowest bits are taken.
  EXPECT_EQ(printed_body("and.b32 %r1, %r1, 0x1FFFFFFFE; and.b32 %r1, %r1, 18446744073709551615;"),
            "and.b32 %r1, %r1, 4294967294;\nand.b32 %r1, %r1, 4294967295;\n");
  EXPECT_EQ(value("1 > 2 ? 3 : 4 <= 4 ? 5 : 6"), is(5));
  EXPECT_EQ(value("!(7 && 0 || 3)"), is(0));
  EXPECT_EQ(value("-1 < 1"), is(1));
  EXPECT_EQ(value("(.u64)-1 < 1"), is(0));
  EXPECT_EQ(value("(.s64)0xFFFFFFFFFFFFFFFF < (1)"), is(1));
  EXPECT_EQ(value("0xFFFFFFFFFFFFFFFF < 1"), is(0));
  EXPECT_EQ(printed_body("ld.global.u32 %r1, [%rd1+4*2];"), "ld.global.u32 %r1, [%rd1+8];\n");
  EXPECT_EQ(printed_body("ld.global.u32 %r1, [%rd1+(2+2)-2*4];"), "ld.global.u32 %r1, [%rd1+-4];\n");
  EXPECT_EQ(printed_body("selp.b32 %r1, %r2, (1==2), (1==1);"), "selp.b32 %r1, %r2, 0, 1;\n");
  EXPECT_EQ(printed_body("mov.f32 %f1, (1.0);"), "mov.f32 %f1, 0f3F800000;\n");
}

// A label or a function may have the name of an instruction.
TEST(Parser, LocationsBehindTheNameCall) {
  Parsed p(
      ".file 7 \"c.cu\"\n.version 7.8\n.target sm_80\n.address_size 64\n.func call()\n{\n.loc 7 3 1\nret;\n}\n"
      ".visible .entry k()\n{\ncall:\n.loc 7 4 1\nbra call;\n.loc 7 5 1\nret;\n}\n");
  ASSERT_FALSE(p.sink.has_errors()) << p.errors();
  std::vector<uint32_t> lines;
  for (const Function& f : p.module.functions)
    for (const Location& l : f.locations) lines.push_back(l.line);
  EXPECT_EQ(lines, (std::vector<uint32_t>{3, 4, 5}));
}

TEST(Parser, ConstantPredicates) {
  EXPECT_EQ(printed_body("selp.b32 %r1, %r2, %r3, -2;"), "selp.b32 %r1, %r2, %r3, 1;\n");
  EXPECT_EQ(printed_body("selp.b32 %r1, %r2, %r3, !0x100000000;"), "selp.b32 %r1, %r2, %r3, 0;\n");
  EXPECT_EQ(printed_body("vote.sync.ballot.b32 %r1, 1, -1;"), "vote.sync.ballot.b32 %r1, 1, 4294967295;\n");
  EXPECT_EQ(printed_body("mov.pred %p1, !0;"), "mov.pred %p1, 1;\n");
  EXPECT_EQ(printed_body("and.pred %p1, !%p0, 0;"), "and.pred %p1, !%p0, 0;\n");
  EXPECT_EQ(printed_body("mov.u32 %r1, !7;"), "mov.u32 %r1, 0;\n");
}

TEST(Parser, Addresses) {
  EXPECT_EQ(printed_body("ld.global.u32 %r1, [%rd1];"), "ld.global.u32 %r1, [%rd1];\n");
  EXPECT_EQ(printed_body("ld.global.u32 %r1, [%rd1+8];"), "ld.global.u32 %r1, [%rd1+8];\n");
  EXPECT_EQ(printed_body("ld.global.u32 %r1, [%rd1+-8];"), "ld.global.u32 %r1, [%rd1+-8];\n");
  EXPECT_EQ(printed_body("ld.global.u32 %r1, [%rd1 - 8];"), "ld.global.u32 %r1, [%rd1+-8];\n");
  EXPECT_EQ(printed_body("ld.global.u32 %r1, [0x100];"), "ld.global.u32 %r1, [256];\n");
  EXPECT_EQ(printed_body("ld.param.u32 %r1, [a+4];"), "ld.param.u32 %r1, [a+4];\n");
  EXPECT_EQ(printed_body(".shared .b8 s[8]; ld.shared.u8 %r1, [s+4+1];"), "ld.shared.u8 %r1, [s+5];\n");
  EXPECT_EQ(printed_body(".shared .b8 s[8]; mov.u32 %r1, s+4;"), "mov.u32 %r1, s+4;\n");
}

TEST(Parser, ModifiersInAnyOrderAndHints) {
  EXPECT_EQ(printed_body("atom.global.gpu.relaxed.add.u32 %r1, [%rd1], 1;"),
            "atom.relaxed.gpu.global.add.u32 %r1, [%rd1], 1;\n");
  EXPECT_EQ(printed_body("atom.add.release.gpu.u32 %r1, [%rd1], 1;"), "atom.release.gpu.add.u32 %r1, [%rd1], 1;\n");
  EXPECT_EQ(printed_body("ld.global.L2::128B.u32 %r1, [%rd1];"), "ld.global.u32 %r1, [%rd1];\n");
  EXPECT_EQ(printed_body(".shared .b8 s[16]; cp.async.cg.shared.global.L2::128B [s], [%rd1], 16;"),
            "cp.async.cg.shared.global.L2::128B [s], [%rd1], 16;\n");
  EXPECT_EQ(printed_body(".shared .b8 s[16]; cp.async.ca.shared::cta.global.L2::256B [s], [%rd1], 8;"),
            "cp.async.ca.shared.global.L2::256B [s], [%rd1], 8;\n");
  EXPECT_EQ(printed_body(".shared .b8 s[16]; cp.async.ca.shared.global.L2::cache_hint.L2::64B [s], [%rd1], 8, %rd1;"),
            "cp.async.ca.shared.global.L2::64B [s], [%rd1], 8;\n");
  EXPECT_EQ(printed_body("vote.ballot.sync.b32 %r1, %p1, -1;"), "vote.sync.ballot.b32 %r1, %p1, 4294967295;\n");
  EXPECT_EQ(printed_body("ld.shared::cta.u32 %r1, [%r2];"), "ld.shared.u32 %r1, [%r2];\n");
  EXPECT_EQ(printed_body("fence.gpu; fence.sys.sc;"), "fence.acq_rel.gpu;\nfence.sc.sys;\n");
  EXPECT_EQ(printed_body("ld.weak.param.u32 %r1, [a]; ld.const.ca.u32 %r1, [%rd1]; prefetch.L2::evict_last [%rd1];"),
            "ld.weak.param.u32 %r1, [a];\nld.const.ca.u32 %r1, [%rd1];\nprefetch.L2::evict_last [%rd1];\n");
}

TEST(Parser, ScopesRenameAndMergeLabels) {
  // Inner p hides outer p; the label OUT is the outer one, IN is the block's own, twice.
  std::string body = printed_body(R"(
    .reg .pred p; setp.eq.s32 p, %r1, 0;
    { .reg .pred p; setp.eq.s32 p, %r1, 1; @p bra IN; @p bra OUT; IN: }
    { .reg .pred p; setp.eq.s32 p, %r1, 2; @p bra IN; { @p bra OUT; } IN: }
    @p bra OUT;
    OUT: mov.u32 %r1, 1;)");
  EXPECT_EQ(body,
            "setp.eq.s32 p, %r1, 0;\nsetp.eq.s32 p_1, %r1, 1;\n@p_1 bra IN;\n@p_1 bra OUT;\nsetp.eq.s32 p_2, %r1, "
            "2;\n@p_2 bra IN_1;\n"
            "@p_2 bra OUT;\n@p bra OUT;\nmov.u32 %r1, 1;\n");
  // A range of an inner block hides the outer one.
  EXPECT_EQ(printed_body("{ .reg .b64 %r<2>; mov.u64 %r1, 5; mov.u32 %r5, 6; } mov.u32 %r1, 7;"),
            "mov.u64 %r_1_1, 5;\nmov.u32 %r5, 6;\nmov.u32 %r1, 7;\n");
  // A single register of an inner block hides one of an outer range.
  EXPECT_EQ(printed_body("{ .reg .b64 %r1; mov.u64 %r1, 5; } mov.u32 %r1, 7;"), "mov.u64 %r1_1, 5;\nmov.u32 %r1, 7;\n");
  // A range does not print as a single register of an earlier block does.
  EXPECT_EQ(printed_body("{ .reg .b32 %q1, %q7; mov.u32 %q1, 5; mov.u32 %q7, 6; } .reg .b32 %q<3>; mov.u32 %q1, 7;"),
            "mov.u32 %q1, 5;\nmov.u32 %q7, 6;\nmov.u32 %q_1_1, 7;\n");
  Parsed undefined(kernel("{ bra NOWHERE; }"));
  EXPECT_THAT(undefined.errors(), HasSubstr("the label `NOWHERE` is not defined in `k`"));
}

// What is refused, the message, and where the caret stands (the source text that it underlines).
struct Refusal {
  const char* body;
  const char* kind;
  const char* message;
  const char* underlined;
};

const Refusal refusals[] = {
    {"add.s32 %r1, %f1, 2;", "bad-operand", "add: `%f1` is a .f32 register, expected .s32", "%f1"},
    {"add.s32 %r1, %rd1, 2;", "bad-operand", "add: `%rd1` is a .b64 register, expected .s32", "%rd1"},
    {"mov.u16 %r1, 3;", "bad-operand", "mov: `%r1` is a .b32 register, expected .u16", "%r1"},
    {"ad.s32 %r1, %r1, 2;", "unknown-opcode", "unknown opcode `ad`, did you mean `add`?", "ad.s32"},
    {"frobnicate %r1;", "unknown-opcode", "unknown opcode `frobnicate`", "frobnicate"},
    {"tex.2d.v4.f32.f32 {%f1, %f1, %f1, %f1}, [%rd1];", "unsupported", "unsupported opcode `tex`", "tex.2d.v4.f32.f32"},
    {"wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 %r1;", "unsupported", "unsupported opcode `wmma`",
     "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32"},
    {"add.s32.foo %r1, %r1, 2;", "unsupported", "unsupported modifier `.foo` of `add`", "add.s32.foo"},
    {"fma.rn.f32x2 %rd1, %rd1, %rd1, %rd1;", "unsupported",
     "unsupported `fma.f32x2`, which needs .target sm_100 or higher", "fma.rn.f32x2"},
    {"max.NaN.f32 %f1, %f1, %f1, %f1;", "unsupported",
     "unsupported `max.f32` of three values, which needs .target sm_100 or higher", "max.NaN.f32"},
    {"ld.relaxed.cluster.global.u32 %r1, [%rd1];", "unsupported", "unsupported modifier `.cluster` of `ld`",
     "ld.relaxed.cluster.global.u32"},
    {"add.rn.rz.f32 %f1, %f1, %f1;", "bad-modifier", "`.rz` does not go with the other modifiers of `add.rn.rz.f32`",
     "add.rn.rz.f32"},
    {"add.s32.s32.s32 %r1, %r1, 2;", "bad-modifier", "`add.s32.s32.s32` has more than two types", "add.s32.s32.s32"},
    {"add.s32 %r1, %r1;", "bad-instruction", "`add` cannot have 2 operands", "add.s32"},
    {"add %r1, %r1, 1;", "bad-instruction", "`add` needs a type", "add"},
    {"add.s8 %r1, %r1, 1;", "bad-instruction", "`add` has no type .s8", "add.s8"},
    {"cvt.u32 %r1, %r1;", "bad-instruction", "`cvt.u32` needs a second type", "cvt.u32"},
    {"mul.s32 %r1, %r1, %r1;", "bad-instruction", "the modifiers of `mul` do not go with each other and with .s32",
     "mul.s32"},
    {"tanh.approx.f32 %f1, %f1; cvt.rn.bf16.u32 %rs1, %r1;", "bad-instruction",
     "needs .target sm_90, the module has sm_80", "cvt.rn.bf16.u32"},
    {".loc 1 99999999999 3", "bad-directive", "expected file, line and column, got `99999999999`",
     ".loc 1 99999999999 3"},
    {".loc 1 2 3, function_name X, inlined_at 1 2 3\n", "undefined", "section .debug_str has no label `X`",
     ".loc 1 2 3, function_name X, inlined_at 1 2 3"},
    {".loc 1 2 3, name X, at 1 2 3\n", "bad-directive",
     "expected `function_name` and `inlined_at`, got `name` and `at`", ".loc 1 2 3, name X, at 1 2 3"},
    {"add.s32 %r1, %r9, 2;", "undefined", "`%r9` is not defined", "%r9"},
    {"bra NOWHERE;", "undefined", "the label `NOWHERE` is not defined in `k`", "NOWHERE"},
    {"mov.u32 %r1, %pm3;", "unsupported", "unsupported special register `%pm3`", "%pm3"},
    {"mov.v4.u32 {%r1, %r1, %r1, %r1}, %laneid;", "unsupported",
     "unsupported mov.v4 of what is no special register of four components", "mov.v4.u32"},
    {"mov.v4.u32 {%r1, %r1, %r1, %r1}, %tid.z;", "unsupported",
     "unsupported mov.v4 of what is no special register of four components", "mov.v4.u32"},
    {"mov.v4.u32 {%r1, %rd1, %r1, %r1}, %tid;", "bad-operand", "expected a register of 32 bits", "%rd1"},
    {"mov.v4.u32 {%r1, %r1, 5, %r1}, %tid;", "bad-operand", "expected a register of 32 bits", "5"},
    {"add.u32 %r1, %r1, %tid.w;", "undefined", "`%tid.w` is not defined", "%tid.w"},
    {"@%r1 bra L; L:", "bad-operand", "the guard `%r1` is no predicate register", "%r1"},
    {"mov.f32 %f1, 1;", "bad-operand", "expected a .f32 constant such as 1.0 or 0f.., got an integer", "1"},
    {"mov.u32 %r1, 1.0;", "bad-operand", "expected a .u32 constant, got one of .f64", "1.0"},
    {"mov.u32 %r1, 0f3F800000;", "bad-operand", "expected a .u32 constant, got one of .f32", "0f3F800000"},
    {"mov.f64 %rd1, 1.0 + 1;", "unsupported", "expected two integers or two .f64 constants", "1"},
    {"mov.f64 %rd1, 1.0 / (1.0 - 1.0);", "bad-operand", "a constant is divided by zero", "(1.0 - 1.0)"},
    {"mov.f64 %rd1, 1.0 % 2.0;", "bad-operand", "`%` takes integers", "2.0"},
    {"mov.u32 %r1, 1 ? 2 : 3 / 0;", "bad-operand", "a constant is divided by zero", "0"},
    {"and.b32 %r1, %r1, 99999999999999999999;", "syntax",
     "the constant has more than 64 bits or a digit that its base lacks", "99999999999999999999"},
    {"and.b32 %r1, %r1, 08;", "syntax", "the constant has more than 64 bits or a digit that its base lacks", "08"},
    {"setp.lt.s32 %p1, !%p0, 3;", "bad-operand", "setp: only a predicate that is read can be negated", "%p0"},
    {"setp.lt.s32 !%p1, %r1, 3;", "bad-operand", "setp: only a predicate that is read can be negated", "%p1"},
    {"mov.pred 1, %p1;", "bad-operand", "mov: expected a register", "1"},
    {"selp.b32 %r1, %r1, %r1, 1.0;", "bad-operand", "expected a .pred constant, got one of .f64", "1.0"},
    {"mov.b32 %r1, !1.0;", "bad-operand", "only an integer has a logical complement", "1.0"},
    {"ld.global.f32 %f1, [%f2];", "bad-operand", "ld: `%f2` is a .f32 register, expected an address of 32 or 64 bits",
     "%f2"},
    {"ld.global.f32 %f1, [a];", "bad-operand", "ld: a parameter needs .param", "a"},
    {"ld.global.f32 %f1, %rd1;", "bad-operand", "ld: expected an address", "%rd1"},
    {"ld.global.v2.f32 %f1, [%rd1];", "bad-operand", "ld: expected a vector of 2", "%f1"},
    {"ld.global.v2.f32 {%f1, %rs1}, [%rd1];", "bad-operand", "ld: element 2: `%rs1` is a .b16 register, expected .f32",
     ""},
    {"ld.global.v4.f64 {%rd1, %rd1, %rd1, %rd1}, [%rd1];", "bad-instruction", "a vector has at most 128 bits",
     "ld.global.v4.f64"},
    {"add.s32 %r1, (%r1), 2;", "bad-operand", "only a call has operands in parentheses", ""},
    {"add.s32 %r1+4, %r1, 2;", "bad-operand",
     "an offset needs brackets, a variable or a register of integers that is read", "%r1+4"},
    {"ld.global.u32 %r1, [L]; L:", "undefined", "`L` is not defined", "L"},
    {"ld.global.u32 %r1, [1.5];", "bad-operand", "`1.5` cannot be an address", "1.5"},
    {"call %rd1;", "bad-operand", "expected a .callprototype after the operands", ""},
    {"call k;", "bad-operand", "call: `k` is an entry and cannot be called", "call"},
    {"call (%r1), (%r2);", "unsupported", "unsupported form of `call`: expected (results), function, (arguments)",
     "call"},
    {"mov.b32 %r1, {%rs1, %rs2, %rs3, %rs1, %rs1, %rs1, %rs1, %rs1, %rs1};", "unsupported",
     "unsupported vector of 9 elements", ""},
    {"L: L:", "redefined", "the label `L` is defined twice", "L"},
    {".reg .u32 x; .reg .u64 x;", "redefined", "`x` is defined twice", "x"},
    {".reg .u32 %r2;", "redefined", "`%r2` is a register already", "%r2"},
    {".reg .u32 %r<3>;", "redefined", "`%r<..>` is defined twice", "%r"},
    {".reg .u32 q1; .reg .u32 q<3>;", "redefined", "`q1` is defined already", "q"},
    {".reg .b128 x;", "bad-type", "a register of type .b128 needs .version 8.3 and .target sm_70", "x"},
    {"mov.u32 %r1, 5/0;", "bad-operand", "a constant is divided by zero", "0"},
    {"mov.u32 %r1, (5;", "syntax", "syntax error", ";"},
    {"mov.v4.u32 {%r1, %p1, %r1, %r1}, %tid;", "bad-operand", "expected a register of 32 bits", "%p1"},
    {"mov.v4.f32 {%r1, %r1, %r1, %r1}, %tid;", "bad-operand",
     "mov: operand 2: `%tid.x` has 32 bits, the instruction .f32", "mov.v4.f32"},
    {".reg .u32 x<99999999999>;", "unsupported", "unsupported module of more than", "x"},
    {".reg .u32 x<1.5>;", "bad-directive", "expected a number of registers, got `1.5`", "x"},
    {".shared .align 3 .b8 s[4];", "bad-directive", "expected a power of two up to 2^31, got `3`", "3"},
    {".shared .b8 s[0];", "bad-directive", "expected a number of elements from 1 to", "0"},
    {".shared .b8 s[70000][70000];", "bad-directive", "expected a number of elements from 1 to", "70000"},
    {".shared .b8 s[];", "bad-directive", "`s` needs a size: only .extern arrays may go without", "s"},
    {".shared .u32 s = 5;", "bad-directive", "`s` in .shared cannot have an initial value", "s"},
    {".shared .pred s;", "bad-type", "a variable cannot be .pred", "s"},
    {".global .u32 g[2] = {1, 2, 3};", "bad-directive", "`g` has 2 elements, its initial value 3", "g"},
    {".global .u64 g = other;", "undefined", "`other` is not defined", "other"},
    {".shared .v3 .f32 s;", "unsupported", "unsupported directive `.v3`", ".v3"},
    {".shared .v4 .f64 s;", "bad-type", "a vector of 4 .f64 cannot be a variable", "s"},
    {".shared .attribute(.managed) .f32 s;", "unsupported", "unsupported directive `.attribute(.managed)`",
     ".attribute"},
    {"T: .calltargets f;", "undefined", "`f` is not defined", "T"},
    {"tex.2d.v4.f32.f32 {%f1, %f1, %f1, %f1}, [%rd1, {%f1, %f1}];", "unsupported", "unsupported opcode `tex`",
     "tex.2d.v4.f32.f32"},
    {"ld.global.b32 %r1, [%rd1, {%r1, %r1}];", "unsupported", "unsupported address with coordinates",
     "[%rd1, {%r1, %r1}]"},
    {".global .texref t;", "unsupported", "unsupported directive `.texref`", ".texref"},
    {"griddepcontrol;", "bad-instruction", "the modifiers of `griddepcontrol` do not go", "griddepcontrol"},
    {"T: .branchtargets A, B;", "undefined", "the label `A` is not defined", "A"},
    {"add.s32 %r1 %r1, %r2;", "syntax", "syntax error, unexpected name, expecting ';'", "%r1"},
    {"add.s32 %r1, %r1, #;", "syntax", "`#` is no PTX", "#"},
    {"/* ", "syntax", "the comment has no end", ""},
    {".section .debug { ", "syntax", "", ""},
};

TEST(Parser, LocationsMayStandWithinACall) {
  Parsed p(
      ".version 7.8\n.target sm_60\n.address_size 64\n.file 1 \"a.cu\"\n.func (.param .b32 r) f(.param .b32 a) { ret; "
      "}\n"
      ".entry k()\n{\n.reg .b32 %r;\n.loc 1 2 3\n{\n.param .b32 x, y;\ncall.uni (x),\n.loc 1 5 0\nf,\n.loc 1 6 0\n(\n"
      ".loc 1 7 0, function_name $L1, inlined_at 1 2 3\ny\n.loc 1 8 0\n);\n.loc 1 9 0\n}\nret;\n}\n");
  EXPECT_FALSE(p.sink.has_errors()) << p.errors();
  ASSERT_EQ(p.module.functions.size(), 2u);
  ASSERT_EQ(p.module.functions[1].locations.size(), 2u);
  EXPECT_EQ(p.module.functions[1].locations[0].line, 2u);
  EXPECT_EQ(p.module.functions[1].locations[1].line, 9u);
}

TEST(Parser, RefusesWithAPosition) {
  for (const Refusal& r : refusals) {
    Parsed p(kernel(r.body));
    ASSERT_TRUE(p.sink.has_errors()) << r.body;
    const Diagnostic& d = p.sink.diagnostics().front();
    EXPECT_EQ(d.kind, r.kind) << r.body << "\n" << p.errors();
    EXPECT_THAT(d.message, HasSubstr(r.message)) << r.body;
    if (*r.underlined) {
      EXPECT_EQ(p.sources.text(d.span), r.underlined) << r.body << "\n" << p.errors();
    }
  }
}

TEST(Parser, RefusesAroundFunctions) {
  auto error = [](const std::string& text) {
    Parsed p(text);
    return p.sink.diagnostics().empty() ? std::string("no error") : p.sink.diagnostics().front().message;
  };
  EXPECT_THAT(error(".version x"), HasSubstr("syntax error"));
  EXPECT_THAT(error(".version 78"), HasSubstr("expected a version such as 7.8"));
  EXPECT_THAT(error(".target compute_80"), HasSubstr("unsupported target `compute_80`"));
  EXPECT_THAT(error(".address_size 32"), HasSubstr("unsupported address size `32`"));
  EXPECT_THAT(error(".entry k() .maxclusterrank 8 { ret; }"), HasSubstr("unsupported directive `.maxclusterrank`"));
  EXPECT_THAT(error(".entry k() .reqntid 0 { ret; }"), HasSubstr("expected a number from 1 to 65536"));
  EXPECT_THAT(error(".entry k() .reqntid 1,1,1,1 { ret; }"), HasSubstr("expected one to three numbers"));
  EXPECT_THAT(error(".entry k() { ret; } .entry k() { ret; }"), HasSubstr("`k` has a body already"));
  EXPECT_THAT(error(".func f(.param .u32 a); .func f() { ret; }"), HasSubstr("declared differently"));
  EXPECT_THAT(error(".entry k();"), HasSubstr("has no body"));
  const std::string two = ".func f() { ret; }\n.func g();\n";
  EXPECT_THAT(error(two + ".alias f, g;"),
              HasSubstr("expected a function without a body and one with it, got `f` and `g`"));
  EXPECT_THAT(error(two + ".alias h, f;"), HasSubstr("`h` is not defined"));
  EXPECT_THAT(error(two + ".entry k() { ret; }\n.alias g, k;"), HasSubstr("`g` and `k` are not both functions"));
  EXPECT_THAT(error(two + ".func h(.param .b32 a);\n.alias h, f;"), HasSubstr("`h` and `f` are declared differently"));
  EXPECT_THAT(error(".tex .u64 t;"), HasSubstr("unsupported directive `.tex`"));
  EXPECT_THAT(error(".global .texref t;"), HasSubstr("unsupported directive `.texref`"));
  EXPECT_THAT(error(".entry k(.param .pred p) { ret; }"), HasSubstr("a parameter cannot be .pred"));
  EXPECT_THAT(error(".entry k(.param .b8 p[70000]) { ret; }"), HasSubstr("more than 64 KiB"));
  EXPECT_THAT(error(".entry k(.param .u32 p, .param .u32 p) { ret; }"), HasSubstr("`p` is defined twice"));
  EXPECT_THAT(error(".func f(.param .u32 a) { ret; } .entry k() { call f; ret; }"),
              HasSubstr("1 parameters, the call 0"));
  EXPECT_THAT(error(".entry k() {"), HasSubstr("unexpected end of file"));
  EXPECT_EQ(error(".version 7.8 .target sm_80"), "no error");
}

TEST(Parser, ReportsSeveralAndGoesOn) {
  Parsed p(kernel("add.s32 %r1, %f1, 2;\nfoo %r1;\nadd.s32 %r1 %r2;\nmov.u32 %r9, 1;") + kernel("bar.u32;").substr(44));
  EXPECT_EQ(p.sink.error_count(), 5u + 1u) << p.errors();  // the second kernel's name is taken, too
}

// Seeded damage: bytes changed, removed, doubled, lines moved. Any outcome is fine but a crash, a hang, or a module that passes the parser
// and then fails the verifier or does not print to a fixed point.
TEST(Parser, SurvivesDamage) {
  uint64_t state = 20240611;
  auto random = [&](uint64_t below) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state % below;
  };
  size_t accepted = 0;
  for (const char* name : files) {
    const std::string original = text_of(name);
    for (int round = 0; round < 400; ++round) {
      std::string text = original;
      for (uint64_t k = 1 + random(3); k-- > 0;) {
        size_t at = random(text.size());
        static const char interesting[] = "{}[]()<>@!,;:|+-=.%_$0x9af\"/*\n \0";
        switch (random(6)) {
          case 0: text[at] = interesting[random(sizeof interesting)]; break;
          case 1: text.erase(at, 1 + random(8)); break;
          case 2: text.insert(at, text.substr(random(text.size()), 1 + random(20))); break;
          case 3: {  // a digit or letter becomes another: other registers, types, opcodes
            if (std::isalnum(static_cast<unsigned char>(text[at]))) text[at] = "0123456789abcdfnprsuv"[random(21)];
            break;
          }
          case 4: {  // two lines change places
            size_t a = text.find('\n', at), b = text.find('\n', random(text.size()));
            if (a == text.npos || b == text.npos || a == b) break;
            size_t ae = text.find('\n', a + 1), be = text.find('\n', b + 1);
            if (ae == text.npos || be == text.npos) break;
            std::string line = text.substr(b, be - b);
            text.insert(a, line);
            break;
          }
          default: text.resize(at); break;
        }
        if (text.empty()) text = " ";
      }
      Parsed p(text);
      (void)p.errors();
      if (p.sink.has_errors()) continue;
      ++accepted;
      ASSERT_THAT(verify(p.module), ::testing::IsEmpty()) << text;
      std::string once = print(p.module);
      Parsed again(once);
      ASSERT_FALSE(again.sink.has_errors()) << again.errors() << "\nfrom\n" << text;
      ASSERT_EQ(print(again.module), once) << text;
    }
  }
  EXPECT_GT(accepted, 50u) << "too little of the damage stays PTX to test much";
}

TEST(Parser, LongInputsStayLinear) {
  std::string body;
  for (int k = 0; k < 20000; ++k)
    body += "{ .reg .pred p; setp.eq.s32 p, %r1, " + std::to_string(k) + "; @p bra L; L: }\n";
  Parsed p(kernel(body));
  EXPECT_FALSE(p.sink.has_errors()) << p.errors();
  // Registers `c_0`, `c_1`, ... are beside the names that a hidden `c` could get; blocks rename their registers from a count of their own.
  body = "{ .reg .b32 c; mov.u32 c, 1; }\n.reg .f64 c_<100000>;\n";
  for (int k = 0; k < 2000; ++k) body += "{ .reg .b32 c, %t<2>, %r1; mov.u32 c, 1; mov.u32 %t1, %r1; }\n";
  Parsed beside(kernel(body));
  EXPECT_FALSE(beside.sink.has_errors()) << beside.errors();
  EXPECT_THAT(print(beside.module), HasSubstr("mov.u32 c_100000, 1;"));
  EXPECT_THAT(print(beside.module), HasSubstr("mov.u32 c_101998, 1;"));
  EXPECT_LT(print(beside.module).size(), 2 * body.size());  // one range, not name by name
  // Ranges side by side and in each other.
  body = "";
  for (int k = 0; k < 20000; ++k) body += "{ .reg .b32 %t<2>, %u<3>; mov.u32 %t1, %u0; }\n";
  for (int k = 0; k < 20000; ++k) body += "{ .reg .b32 %t<2>;";
  Parsed ranges(kernel(body + "mov.u32 %t1, 5;" + std::string(20000, '}')));
  EXPECT_FALSE(ranges.sink.has_errors()) << ranges.errors();
  EXPECT_THAT(print(ranges.module), HasSubstr("mov.u32 %t_39999_1, 5;"));
  std::string deep = kernel(std::string(5000, '{') + "mov.u32 %r1, 1;" + std::string(5000, '}'));
  EXPECT_FALSE(Parsed(deep).sink.has_errors());
  std::string broken = kernel(std::string(100000, '{'));
  EXPECT_TRUE(Parsed(broken).sink.has_errors());
}

TEST(ParserErrors, AModuleNeedsVersionAndTarget) {
  const std::string version = "test.ptx:1:1: error: expected a `.version` directive, such as `.version 7.8`\n";
  const std::string target = "test.ptx:1:1: error: expected a `.target` directive, such as `.target sm_80`\n";
  EXPECT_EQ(Parsed("").errors(), version + "  \n  ^\n" + target + "  \n  ^\n2 errors generated\n");
  EXPECT_THAT(Parsed("// nothing\n").errors(), HasSubstr(version));
  EXPECT_EQ(Parsed(".version 7.8").errors(), target + "  .version 7.8\n  ^\n");
  EXPECT_EQ(Parsed(".target sm_80").errors(), version + "  .target sm_80\n  ^\n");
  EXPECT_EQ(Parsed(".version 7.8\n.target sm_80\n").errors(), "");
}

TEST(ParserErrors, BytesThatAreNoTextAreNamedOnceAndNotRepeated) {
  const std::string start = ".version 7.8\n.target sm_80\n";
  EXPECT_EQ(Parsed(start + "\xe7").errors(), "test.ptx:3:1: error: byte 0xe7 is no PTX\n  ?\n  ^\n");
  EXPECT_EQ(Parsed(start + std::string(5000, '\x9b')).errors(),
            "test.ptx:3:1: error: byte 0x9b and the 4999 after it are no PTX\n");
  EXPECT_EQ(Parsed(start + std::string(3, '\0')).errors(), "");  // what nvrtc counts as part of its text
  EXPECT_EQ(Parsed(start + std::string("\0\x1b\x7f", 3)).errors(),
            "test.ptx:3:1: error: byte 0x00 and the 2 after it are no PTX\n  ???\n  ^~~\n");
  EXPECT_EQ(Parsed(start + "##'").errors(), "test.ptx:3:1: error: `##'` is no PTX\n  ##'\n  ^~~\n");
  EXPECT_EQ(Parsed(std::string("\x7f" "ELF\2\1\1\0\n\xe7\n\xe8", 12)).errors(),
            "test.ptx:1:1: error: an ELF file, such as a cubin, is no PTX\n  ?ELF????\n  ^\n");
  // Whatever the bytes are, nothing that moves a terminal's cursor comes out.
  std::string every;
  for (int c = 0; c < 256; ++c) every += std::string(1, static_cast<char>(c)) + " x\n";
  for (unsigned char c : Parsed(every).errors()) ASSERT_TRUE(c == '\n' || c == '\t' || (c >= 32 && c < 127)) << int{c};
}

}  // namespace
}  // namespace rndn::ptx::parser_test
