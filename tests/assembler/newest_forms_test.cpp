// Forms of PTX 8 and what older PTX has beside them: each statement by our code, by ptxas's code where that of CUDA 11.8 knows the form, and by the PTX
// interpreter.
#include <gmock/gmock.h>

#include "tests/assembler/three_ways.h"

namespace rndn::assembler::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

std::string refused_statement(const std::string& body, const std::string& version, const std::string& target) {
  return refusal(".version " + version + "\n.target " + target +
                 "\n.address_size 64\n.entry k()\n{\n.reg .b32 %r<4>; .reg .b64 %d<4>;\n" + body + "\n}\n");
}

// A register of 128 bits is two of 64.
TEST(Newest, RegistersOf128Bits) {
  const std::vector<std::string> statements = {
      "mov.b64 %d0, 0; mov.b128 %q0, {%d1, %d2}; mov.b128 {%d4, %d5}, %q0; sub.u64 %d0, %d4, %d5",
      "mov.b64 %d0, 0; ld.global.b128 %q0, [%out+0]; mov.b128 {_, %d0}, %q0",
      "mov.b64 %d0, 0; and.b64 %d4, %out, -16; mov.b128 %q1, {%d3, %d1}; st.global.b128 [%d4+512], %q1; "
      "ld.relaxed.gpu.global.b128 %q2, [%d4+512]; mov.b128 %q3, %q2; mov.b128 {%d0, _}, %q3",
      "mov.b32 %r0, 0; mov.b128 %q0, {%r1, %r2, %r3, %r1}; mov.b128 {%r4, %r5, %r6, %r7}, %q0; sub.u32 %r0, %r5, %r6; "
      "add.u32 %r0, %r0, %r7; xor.b32 %r0, %r0, %r4",
      "mov.b64 %d0, 0; mov.b128 %q0, {7, %d3}; @%p1 mov.b128 %q0, {%d2, 9}; mov.b128 {%d4, %d5}, %q0; add.u64 %d0, "
      "%d4, %d5",
      "mov.b64 %d0, 0; mov.b64 %d4, cell; mad.wide.u32 %d4, %t, 16, %d4; mov.b128 %q0, {%d1, %d2}; st.shared.b128 "
      "[%d4], %q0; "
      "ld.volatile.shared.b128 %q1, [%d4]; mov.b128 {%d5, %d0}, %q1; sub.u64 %d0, %d0, %d5",
      "mov.b64 %d0, 0; st.local.b128 [own], %q0; ld.local.b64 %d0, [own+8]",
      "mov.b64 %d0, 0; mov.b128 %q1, -3; st.local.b128 [own], 5; mov.b128 {%d4, %d5}, %q1; ld.local.b64 %d0, [own]; "
      "sub.u64 %d0, %d0, %d4; ld.local.b64 %d4, [own+8]; xor.b64 %d4, %d4, %d5; add.u64 %d0, %d0, %d4",
  };
  three_ways(with(kernel("8.3", "sm_70", statements), ".reg .b128 %q<4>; .shared .b128 cell[96]; .local .b128 own;"),
             newer, false);
}

TEST(Newest, ConstantsHave64Bits) {
  const ptx::Module module = parse_text(
      "constant.ptx",
      ".version 8.3\n.target sm_80\n.address_size 64\n.entry k()\n{\n.reg .b128 %q;\nmov.b128 %q, -3;\nret;\n}\n");
  EXPECT_THAT(ptx::print(module), HasSubstr("mov.b64 %q_high, 0;"));
}

TEST(Newest, RegistersOf128BitsAreRefusedWhereTheyDoNotGo) {
  const auto said = [](const std::string& body) {
    return refused_statement(".reg .b128 %q<3>;\n" + body, "8.3", "sm_90");
  };
  EXPECT_EQ(said("mov.b128 %q0, %q1;"), "");
  EXPECT_THAT(said("mov.b128 %d0, %q1;"), HasSubstr("expected a register of type .b128"));
  EXPECT_THAT(said("mov.b128 %d0, %d1;"), HasSubstr("expected a register of type .b128"));
  EXPECT_THAT(said("mov.b128 {%d0, %r1}, %q1;"), HasSubstr("expected .b64"));
  EXPECT_THAT(said("ld.global.b64 %q0, [%d0];"), HasSubstr("`%q0` is a .b128 register"));
  EXPECT_THAT(said("and.b128 %q0, %q1, %q2;"), HasSubstr("no type .b128"));
  EXPECT_THAT(said("ld.global.v2.b128 {%q0, %q1}, [%d0];"), HasSubstr("at most 128 bits"));
  EXPECT_THAT(said("atom.global.exch.b128 %q0, [%d0], %q1;"), HasSubstr("unsupported type .b128 of `atom`"));
  EXPECT_THAT(refused_statement(".reg .b128 %q;", "8.2", "sm_90"), HasSubstr("needs .version 8.3"));
}

TEST(Newest, ConversionsThatStayFinite) {
  std::vector<std::string> statements;
  const std::string sizes =
      "and.b32 %r4, %r1, 0x8fffffff; or.b32 %r4, %r4, 0x40000000; mov.b32 %f2, %r4; mov.b32 %f3, %r2; ";
  for (const char* r : {"rn", "rz"})
    for (const char* m : {"satfinite", "satfinite.relu", "relu.satfinite"}) {
      for (const char* t : {"f16", "bf16"})
        for (const char* from : {"%f1", "%f2", "%f3"})
          statements.push_back(fmt::format("mov.b16 %h0, 0; {}cvt.{}.{}.{}.f32 %h0, {}", sizes, r, m, t, from));
      for (const char* t : {"f16x2", "bf16x2"})
        statements.push_back(fmt::format("mov.b32 %r0, 0; {}cvt.{}.{}.{}.f32 %r0, %f2, %f1", sizes, r, m, t));
    }
  three_ways(with(kernel("8.1", "sm_80", statements), ".reg .f32 %f2, %f3;"), newer, false);
}

TEST(Newest, ConversionsToTensorFloats) {
  const std::string values = "mov.b32 %r0, 0; mov.b32 %f2, %r2; ";
  std::vector<std::string> statements = {values + "cvt.rna.satfinite.tf32.f32 %r0, %f1",
                                         values + "cvt.rna.satfinite.tf32.f32 %r0, %f2"};
  for (const char* from :
       {"0f7F800001", "0fFF801FFF", "0f7F802000", "0f7FC00000", "0fFF800000", "0f7F7FEFFF", "0fFF7FF000"})
    statements.push_back(values + fmt::format("cvt.rna.satfinite.tf32.f32 %r0, {}", from));
  three_ways(with(kernel("8.1", "sm_80", statements), ".reg .f32 %f2;"), newer, false);
  statements.clear();
  for (const char* r : {"rn", "rz"})
    for (const char* relu : {"", ".relu"})
      for (const char* from : {"%f1", "%f2", "0f3F801000", "0f3F803000", "0f7F7FFFFF"})
        statements.push_back(values + fmt::format("cvt.{}{}.tf32.f32 %r0, {}", r, relu, from));
  three_ways(with(kernel("7.8", "sm_90", statements), ".reg .f32 %f2;"), {"sm_90"}, true);
}

// An operation per element; the values are those from before the first.
TEST(Newest, AtomicsOfVectors) {
  const std::vector<std::string> statements = {
      "mov.b32 %r0, 0; mov.f32 %f2, 0f3FC00000; mov.f32 %f3, 0f40100000; st.global.v4.f32 [%out+512], {%f2, %f3, %f2, "
      "%f3}; "
      "atom.global.v2.f32.add {%f2, %f3}, [%out+516], {%f3, %f2}; mov.b32 %r4, %f2; ld.global.b32 %r5, [%out+516]; "
      "add.u32 %r0, %r4, "
      "%r5; mov.b32 %r4, %f3; ld.global.b32 %r5, [%out+520]; xor.b32 %r0, %r0, %r4; add.u32 %r0, %r0, %r5",
      "mov.b32 %r0, 0; red.relaxed.gpu.global.v4.f32.add [%out+512], {%f2, 1.0, %f3, 0f40000000}; ld.global.b32 %r0, "
      "[%out+524]",
      "mov.b32 %r0, 0; mov.b32 %r4, 0x3c004000; st.global.b64 [%out+536], 0; @%p1 atom.add.noftz.v2.f16x2 {_, %r0}, "
      "[%out+536], {%r4, "
      "%r4}; @%p1 red.global.add.noftz.v2.bf16 [%out+536], {%h1, %h2}; ld.global.b32 %r4, [%out+536]; and.b32 %r4, "
      "%r4, 0x7fff7fff; "
      "add.u32 %r0, %r0, %r4",
  };
  std::string text = kernel("8.1", "sm_90", statements);
  three_ways(text.insert(text.find(".reg .pred"), ".reg .f32 %f2, %f3; "), {"sm_90"}, false);
  EXPECT_THAT(refused_statement("red.global.v2.f32.add [%d0], {%r1, %r1};", "8.0", "sm_90"),
              HasSubstr("needs .version 8.1"));
  EXPECT_THAT(refused_statement("red.global.v4.f32.add [%d0], {%r1, %r1};", "8.1", "sm_90"), HasSubstr("vectors of 4"));
}

// What cooperative groups keep for tiles of several warps; the kernel's own memory lies beside it.
TEST(Newest, ReservedSharedMemory) {
  const std::vector<std::string> statements = {
      "mov.u32 %r0, 0; mov.u32 %r4, cells; mad.lo.u32 %r4, %t, 4, %r4; st.shared.u32 [%r4], %r1; mov.u32 %r5, "
      "%reserved_smem_offset_1; "
      "cvt.u64.u32 %d4, %r5; cvta.shared.u64 %d4, %d4; mad.wide.u32 %d4, %t, 4, %d4; st.u32 [%d4], %r2; bar.sync 0; "
      "xor.b32 %r6, %t, 32; "
      "mad.lo.u32 %r5, %r6, 4, %r5; setp.lt.u32 %p2, %r6, 96; @%p2 ld.shared.u32 %r0, [%r5]; atom.add.u32 %r6, [%d4], "
      "0; ld.shared.u32 %r4, "
      "[%r4]; sub.u32 %r0, %r0, %r4",
      "mov.u32 %r0, %total_smem_size"};
  for (const std::string cells : {".shared .b32 cells[96];", ".shared .b32 cells[100];"})
    three_ways(with(kernel("7.6", "sm_80", statements), cells), newer, true);
  EXPECT_THAT(refused_statement("mov.u32 %r0, %reserved_smem_offset_end;", "7.8", "sm_80"),
              HasSubstr("unsupported special register"));
}

TEST(Newest, PendingArrivalsOfAToken) {
  const std::string text =
      ".version 7.1\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
      ".reg .b32 %r<8>; .reg .b64 %d<4>; .reg .pred %p<3>;\n.shared .align 8 .b64 a[96];\n"
      "ld.param.u64 %d1, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x;\n"
      "mad.lo.u32 %r3, %r1, %r2, %r0; mad.wide.u32 %d1, %r3, 768, %d1; mov.u32 %r4, a; mad.lo.u32 %r4, %r0, 8, %r4;\n"
      "add.u32 %r5, %r0, 3; mbarrier.init.shared.b64 [%r4], %r5;\nmbarrier.arrive.shared.b64 %d2, [%r4];\n"
      "mbarrier.pending_count.b64 %r6, %d2; st.global.u32 [%d1], %r6;\n"
      "mbarrier.arrive.noComplete.shared.b64 %d2, [%r4], 1;\nmbarrier.pending_count.b64 %r6, %d2; st.global.u32 "
      "[%d1+8], %r6;\n"
      "mbarrier.arrive_drop.shared.b64 %d2, [%r4];\nmbarrier.pending_count.b64 %r6, %d2; st.global.u32 [%d1+16], "
      "%r6;\nret;\n}\n";
  three_ways(text, newer, true);
}

TEST(Newest, NumberOfTheGridInAWordAndSeveralEventsAtOnce) {
  const std::string grid = "mov.u32 %r0, %gridid; mov.u64 %d4, %gridid; cvt.u32.u64 %r4, %d4; sub.u32 %r0, %r0, %r4";
  EXPECT_THAT(three_ways(kernel("6.0", "sm_60", {grid}), both_families, true), AnyOf(-1, 3));
  // The simulator does not know what ptxas makes of events on sm_61; ours leaves them out there.
  const std::string events = "mov.u32 %r0, 5; pmevent.mask 0x8005; pmevent 15; pmevent.mask 0";
  EXPECT_THAT(three_ways(kernel("6.0", "sm_60", {events}), both_families, true), AnyOf(-1, 2));
  EXPECT_THAT(refused_statement("pmevent 16;", "7.8", "sm_80"), HasSubstr("from 0 to 15"));
  EXPECT_THAT(refused_statement("pmevent.mask 65536;", "7.8", "sm_80"), HasSubstr("from 0 to 65535"));
}

// PTX of compilers without a stack names registers as parameters.
TEST(Newest, ParametersInRegisters) {
  const std::string functions =
      ".func (.reg .u32 %r) twice(.reg .u32 %a, .reg .b64 %b);\n"
      ".func (.reg .u32 %r) twice(.reg .u32 %a, .reg .b64 %b)\n{\n.reg .pred %p; .reg .b32 %x;\n"
      "setp.lt.s32 %p, %a, 0; mov.u32 %r, 77; @%p ret; cvt.u32.u64 %x, %b; add.u32 %r, %a, %x; add.u32 %a, %a, 1;\n@%p "
      "bra L; ret;\n"
      "L: mov.u32 %r, 0;\n}\n"
      ".func (.reg .u32 %r, .reg .f32 %s) both(.reg .u32 %a)\n{\ncvt.rn.f32.s32 %s, %a; call (%r), twice, (%a, 3); "
      "ret;\n}\n"
      ".func nothing(.reg .u32 %a)\n{\nret;\n}\n";
  const std::vector<std::string> statements = {
      "mov.u32 %r0, 0; call (%r0), twice, (%r1, %d2)",
      "mov.u32 %r0, 0; call (%r0), twice, (-5, 7); call nothing, (5); call nothing, (%r0)",
      "mov.u32 %r0, 0; call (%r0, %f2), both, (%r3); mov.b32 %r4, %f2; xor.b32 %r0, %r0, %r4",
      "mov.u32 %r0, 9; @%p1 call (%r0), twice, (%r2, %d1)",
  };
  std::string text = with(kernel("6.0", "sm_60", statements), ".reg .f32 %f2;");
  EXPECT_THAT(three_ways(text.insert(text.find(".visible .entry"), functions), both_families, true),
              AnyOf(-1, 0, 1, 2, 3));
  // Halves, each half of a pair at its place.
  text = with(kernel("6.0", "sm_60",
                     {"mov.u32 %r0, 0; mov.b32 {%a1, %a2}, %r1; mov.b32 %v1, %r2; call (%a1), half, (%a2, %v1); "
                      "mov.b32 %r0, {%a1, "
                      "%a2}",
                      "mov.u32 %r0, 0; mov.b32 {%a1, %a2}, %r1; call (%v1), pair, (%a2, %r2); mov.b32 %r0, %v1"}),
              ".reg .f16 %a<3>; .reg .f16x2 %v1;");
  EXPECT_THAT(three_ways(text.insert(text.find(".visible .entry"),
                                     ".func (.reg .f16 %o) half(.reg .f16 %a, .reg .f16x2 %b)\n{\n.reg .f16 %l, %h;\n"
                                     "mov.b32 {%l, %h}, %b; fma.rn.f16 %o, %a, %h, %l; ret;\n}\n"
                                     ".func (.reg .f16x2 %o) pair(.reg .f16 %a, .reg .b32 %b)\n{\n"
                                     "mov.b32 %o, {%a, %a}; fma.rn.f16x2 %o, %o, %b, %b; ret;\n}\n"),
                         both_families, true),
              AnyOf(-1, 3));
  // Of a call through a register, a constant alone in parentheses.
  text = kernel(
      "6.0", "sm_60",
      {"mov.u32 %r0, 0; mov.u64 %d4, more; P: .callprototype (.param .b32 _) _ (.param .b32 _); call (%r0), %d4, (4), "
       "P; add.u32 %r0, %r0, %r1"});
  three_ways(text.insert(
                 text.find(".visible .entry"),
                 ".func (.param .b32 r) more(.param .b32 a)\n{\n.reg .b32 %a; ld.param.b32 %a, [a]; add.u32 %a, %a, 3; "
                 "st.param.b32 [r], %a; ret;\n}\n"),
             both_families, true);
  EXPECT_THAT(refusal(".version 7.8\n.target sm_80\n.address_size 64\n.entry k(.reg .u32 %a)\n{\nret;\n}\n"),
              HasSubstr("of an entry cannot be a register"));
  EXPECT_THAT(
      refusal(
          ".version 7.8\n.target sm_80\n.address_size 64\n.func f(.reg .u32 %a)\n{\nret;\n}\n.entry k()\n{\ncall f, "
          "5;\nret;\n}\n"),
      HasSubstr("unsupported form of `call`"));
  EXPECT_THAT(refusal(".version 7.8\n.target sm_80\n.address_size 64\n.extern .local .b32 a[4];\n"),
              HasSubstr("`a` in .local cannot be .extern"));
  EXPECT_THAT(
      refusal(".version 7.8\n.target sm_80\n.address_size 64\n.extern .func f(.param .b32 a, .param .b8 b[]);\n"),
      HasSubstr("any number of arguments"));
}

// Vectors in registers, and arrays, as ptxas takes them.
TEST(Newest, ParametersThatAreVectors) {
  const std::string functions =
      ".func (.reg .v2 .u32 %r) turned(.reg .v2 .u32 %a, .reg .u32 %n)\n{\n"
      "mov.u32 %r.x, %a.y; add.u32 %r.y, %a.x, %n; mov.u32 %a.x, 0;\n}\n"
      ".func (.reg .v4 .f32 %r, .reg .u32 %s) spread(.reg .v2 .f32 %a)\n{\n"
      "mov.f32 %r.x, %a.x; mov.f32 %r.y, %a.y; add.f32 %r.z, %a.x, %a.x; mov.f32 %r.w, 0f00000000; mov.b32 %s, %a.y; "
      "ret;\n}\n"
      ".func (.param .align 16 .b8 r[16]) whole(.param .align 8 .u32 a[2])\n{\n.reg .b32 %x, %y;\n"
      "ld.param.v2.u32 {%x, %y}, [a]; st.param.v4.b32 [r], {%y, %x, %x, 7}; ret;\n}\n"
      ".func unused(.reg .pred %a)\n{\nret;\n}\n";
  const std::vector<std::string> statements = {
      "mov.u32 %r0, 0; mov.u32 %v.x, %r1; mov.u32 %v.y, %r2; call (%w), turned, (%v, %r3); mul.lo.u32 %r0, %w.x, 3; "
      "add.u32 %r0, %r0, %w.y; xor.b32 %r0, %r0, %v.x",
      "mov.u32 %r0, 0; mov.u32 %w.x, 5; mov.u32 %w.y, 6; mov.u32 %v.x, %r1; mov.u32 %v.y, %r2; @%p1 call (%w), turned, "
      "(%v, 3); sub.u32 %r0, %w.x, %w.y",
      "mov.u32 %r0, 0; mov.b32 %g.x, %r1; mov.b32 %g.y, %r2; call (%q, %r4), spread, (%g); mov.b32 %r0, %q.z; xor.b32 "
      "%r0, %r0, %r4; mov.b32 %r4, %q.y; sub.u32 %r0, %r0, %r4",
      "mov.u32 %r0, 0; { .param .align 8 .u32 a[2]; .param .align 16 .b8 r[16]; st.param.v2.u32 [a], {%r1, %r2}; call "
      "(r), whole, (a); ld.param.v4.b32 {%r4, %r5, %r6, %r7}, [r]; } mad.lo.u32 %r0, %r4, %r7, %r5",
  };
  std::string text =
      with(kernel("6.0", "sm_60", statements), ".reg .v2 .u32 %v, %w; .reg .v2 .f32 %g; .reg .v4 .f32 %q;");
  EXPECT_THAT(three_ways(text.insert(text.find(".visible .entry"), functions), both_families, true),
              AnyOf(-1, 0, 1, 2, 3));
  const std::string head = ".version 7.8\n.target sm_80\n.address_size 64\n.func f(.reg .v2 .u32 %a)\n{\nret;\n}\n";
  EXPECT_THAT(refusal(head + ".entry k()\n{\n.reg .v4 .u32 %v;\ncall f, (%v);\nret;\n}\n"),
              HasSubstr("a vector of 4, expected 2"));
  const std::string scalar = ".version 7.8\n.target sm_80\n.address_size 64\n.func f(.reg .u32 %a)\n{\nret;\n}\n";
  EXPECT_THAT(refusal(scalar + ".entry k()\n{\n.reg .v2 .u32 %v;\ncall f, (%v);\nret;\n}\n"),
              HasSubstr("a vector of 2, expected one register"));
}

// ptxas 11.8 takes functions with such, and refuses calls: ours alone, and the interpreter.
TEST(Newest, ParametersThatArePredicates) {
  const std::string functions =
      ".func (.reg .pred %o, .reg .u32 %n) either(.reg .pred %a, .reg .u32 %x, .reg .pred %b)\n{\n"
      "or.pred %o, %a, %b; selp.u32 %n, %x, 9, %a; not.pred %a, %a; ret;\n}\n";
  const std::vector<std::string> statements = {
      "mov.u32 %r0, 0; setp.lt.s32 %k1, %r1, %r2; setp.eq.u32 %k2, %r3, 0; call (%k3, %r4), either, (%k1, %r2, %k2); "
      "selp.u32 %r0, 100, 50, %k3; add.u32 %r0, %r0, %r4; @%k1 add.u32 %r0, %r0, 1",
  };
  std::string text = with(kernel("6.0", "sm_60", statements), ".reg .pred %k<4>;");
  three_ways(text.insert(text.find(".visible .entry"), functions), both_families, false);
  const std::string head =
      ".version 7.8\n.target sm_80\n.address_size 64\n.func f(.reg .pred %a)\n{\nret;\n}\n.func g(.reg .u32 "
      "%a)\n{\nret;\n}\n.entry k()\n{\n.reg .pred %p; .reg .u32 %r;\n";
  EXPECT_EQ(refusal(head + "call f, (%p);\nret;\n}\n"), "");
  EXPECT_THAT(refusal(head + "call f, (%r);\nret;\n}\n"), HasSubstr("expected a predicate"));
  EXPECT_THAT(refusal(head + "call g, (%p);\nret;\n}\n"), HasSubstr("expected .u32"));
}

}  // namespace
}  // namespace rndn::assembler::testing
