// Copies that assembler/optimize/coalesce_copies.cpp joins, and copies that it must leave: our code against the PTX interpreter, on every target.
#include "tests/assembler/three_ways.h"

namespace rndn::assembler::testing::coalesce_copies_test {
namespace {

// A kernel of the tests' shape: %a, %b, %c are words of the thread's input, %p and %q tell of their lowest bits; what the body leaves in %x and %y is
// stored. The values are loaded, so that nothing folds.
std::string kernel(const std::string& body) {
  return ".version 7.0\n.target sm_60\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
         ".reg .b32 %a, %b, %c, %x, %y, %z, %t<4>;\n.reg .b32 %i<4>;\n.reg .b64 %d<8>, %w;\n.reg .pred %p, %q, %g;\n"
         "ld.param.u64 %d1, [in];\nld.param.u64 %d2, [out];\nmov.u32 %i1, %tid.x;\nmov.u32 %i2, %ctaid.x;\n"
         "mad.lo.u32 %i3, %i2, 96, %i1;\nmad.wide.u32 %d3, %i3, 24, %d1;\nmad.wide.u32 %d4, %i3, 768, %d2;\n"
         "ld.global.u32 %a, [%d3];\nld.global.u32 %b, [%d3+8];\nld.global.u32 %c, [%d3+16];\n"
         "and.b32 %t0, %a, 1;\nsetp.ne.u32 %p, %t0, 0;\nand.b32 %t0, %b, 1;\nsetp.ne.u32 %q, %t0, 0;\n"
         "mov.u32 %x, 7;\nmov.u32 %y, 9;\n" +
         body + "st.global.u32 [%d4], %x;\nst.global.u32 [%d4+8], %y;\nret;\n}\n";
}

struct Case {
  const char* name;
  const char* body;
};
const Case cases[] = {
    {"into the definition", "add.u32 %t1, %a, %b;\nmov.b32 %x, %t1;\n"},
    {"into the readers", "add.u32 %t1, %a, %b;\nmov.b32 %t2, %t1;\nxor.b32 %x, %t2, %c;\nadd.u32 %y, %t1, %t2;\n"},
    {"the destination is read in between", "add.u32 %t1, %a, %b;\nadd.u32 %y, %x, %c;\nmov.b32 %x, %t1;\n"},
    {"the destination is written in between",
     "add.u32 %t1, %a, %b;\nadd.u32 %x, %c, 1;\nadd.u32 %y, %x, 2;\nmov.b32 %x, %t1;\n"},
    {"the source changes before the reader",
     "add.u32 %t1, %a, %b;\nmov.b32 %t2, %t1;\nadd.u32 %t1, %t1, %c;\nxor.b32 %x, %t2, %t1;\n"},
    {"a guarded copy", "add.u32 %t1, %a, %b;\n@%p mov.b32 %x, %t1;\n"},
    {"a guarded definition, a copy without", "mov.u32 %t1, 3;\n@%p add.u32 %t1, %a, %b;\nmov.b32 %x, %t1;\n"},
    {"one guard for both", "mov.u32 %t1, 3;\n@%p add.u32 %t2, %a, %b;\n@%p mov.b32 %x, %t2;\n"},
    {"opposite guards", "mov.u32 %t1, 3;\n@%p add.u32 %t1, %a, %b;\n@!%p mov.b32 %x, %t1;\n"},
    {"the guard changes in between",
     "mov.u32 %t1, 3;\n@%p add.u32 %t1, %a, %b;\nsetp.lt.u32 %p, %b, %c;\n@%p mov.b32 %x, %t1;\n"},
    {"the destination is written, and not read, in between",
     "add.u32 %t1, %a, %b;\nshfl.sync.down.b32 %x|%g, %c, 1, 31, -1;\nmov.b32 %x, %t1;\n@%g add.u32 %y, %y, %c;\n"},
    {"the guard of both becomes narrower in between",
     "@%p add.u32 %t1, %a, %b;\nsetp.lt.and.u32 %p, %b, %c, %p;\n@%p mov.b32 %x, %t1;\n"},
    {"two copies change places",
     "add.u32 %t1, %a, 1;\nadd.u32 %t2, %b, 1;\nmov.b32 %t3, %t1;\nmov.b32 %t1, %t2;\nmov.b32 %t2, %t3;\n"
     "mov.b32 %x, %t1;\nmov.b32 %y, %t2;\n"},
    {"halves of a pair",
     "add.u32 %t1, %a, %b;\nmov.b64 %w, {%t1, %c};\nadd.u64 %w, %w, 77;\nmov.b64 {%x, %y}, %w;\nadd.u32 %y, %y, "
     "%t1;\n"},
    {"a reader in a branch",
     "add.u32 %t1, %a, %b;\nmov.b32 %t2, %t1;\n@%p bra SKIP;\nadd.u32 %t1, %t1, 5;\nadd.u32 %x, %t2, "
     "1;\nSKIP:\nadd.u32 %y, %t2, %t1;\n"},
    {"round a loop",
     "mov.b32 %t1, %a;\nmov.u32 %t2, 0;\nAGAIN:\nmov.b32 %z, %t1;\nadd.u32 %t1, %t1, %b;\nxor.b32 %x, %x, %z;\nadd.u32 "
     "%t2, %t2, 1;\n"
     "setp.lt.u32 %g, %t2, 5;\n@%g bra AGAIN;\nmov.b32 %y, %z;\n"},
    {"a copy that its own reader overwrites",
     "add.u32 %t1, %a, %b;\nmov.b32 %t2, %t1;\nadd.u32 %t2, %t2, %c;\nmov.b32 %x, %t2;\nmov.b32 %y, %t1;\n"},
};

TEST(Copies, MeanWhatTheyMeant) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    our_code_agrees(kernel(c.body), targets, {1, 3});
  }
}

// What the pass is for: neither copy is left.
TEST(Copies, AreGone) {
  for (const std::string target : {"sm_80", "sm_90"}) {
    const auto size = [&](const char* body) {
      auto made = assemble_for(parse_text("copies.ptx", kernel(body)), target);
      EXPECT_TRUE(made.ok()) << made.error().message;
      return made.ok() ? made->kernels[0].instructions : 0;
    };
    EXPECT_EQ(size("add.u32 %t1, %a, %b;\nmov.b64 %w, {%t1, %c};\nmov.b64 {%x, %z}, %w;\n"),
              size("add.u32 %x, %a, %b;\n"))
        << target;
    EXPECT_EQ(size("add.u32 %t1, %a, %b;\nmov.b32 %t2, %t1;\nxor.b32 %x, %t2, %c;\nadd.u32 %y, %t1, %t2;\n"),
              size("add.u32 %t1, %a, %b;\nxor.b32 %x, %t1, %c;\nadd.u32 %y, %t1, %t1;\n"))
        << target;
  }
}

// Words that are zero: by a move that always runs they are RZ, by others they are registers.
TEST(Copies, ZeroWords) {
  const std::string sums =
      "add.s64 %d6, %d3, %w;\nld.global.u8 %t1, [%d6];\nadd.s64 %d7, %d4, %w;\nst.global.u8 [%d7+16], %t1;\n"
      "shl.b64 %d5, %w, 3;\nsub.s64 %d5, %d5, %w;\nmov.b64 {%x, %y}, %d5;\n";
  const Case zeros[] = {
      {"extended", "and.b32 %t1, %a, 7;\ncvt.u64.u32 %w, %t1;\n"},
      {"a part", "cvt.u64.u32 %w, %a;\nand.b64 %w, %w, 7;\n"},
      {"written twice", "and.b32 %t1, %a, 7;\ncvt.u64.u32 %w, %t1;\n@%p mov.b64 %w, {%t1, %t1};\nand.b64 %w, %w, 7;\n"},
      {"guarded", "mov.b64 %w, {%i1, %a};\n@%p mov.u64 %w, 0;\nand.b64 %w, %w, 5;\n"},
      {"round a loop",
       "mov.u64 %w, 0;\nmov.u32 %t2, 0;\nAGAIN:\nadd.u64 %w, %w, 1;\nadd.u32 %t2, %t2, 1;\nsetp.lt.u32 %g, %t2, "
       "5;\n@%g bra AGAIN;\n"}};
  for (const Case& c : zeros) {
    SCOPED_TRACE(c.name);
    our_code_agrees(kernel(c.body + sums), targets, {0, 1, 3});
  }
  for (const std::string target : {"sm_61", "sm_90"}) {
    auto made = assemble_for(parse_text("zeros.ptx", kernel(zeros[1].body + sums.substr(0, sums.find("shl")))), target);
    ASSERT_TRUE(made.ok()) << made.error().message;
    EXPECT_TRUE(std::ranges::none_of(instructions_of(made->cubin, target), [](const isa::Instruction& i) {
      return i.mnemonic == isa::Mnemonic::MOV && i.operands[1].kind == isa::OperandKind::gpr &&
             i.operands[1].reg == isa::RZ;
    })) << target;
  }
}

}  // namespace
}  // namespace rndn::assembler::testing::coalesce_copies_test
