// What assembler/flow/dead_code.cpp leaves out, and what it must keep: the code is as long as without the dead statements, and does what the PTX interpreter
// does with them.
#include "tests/assembler/three_ways.h"

namespace rndn::assembler::testing::dead_code_test {
namespace {

// %t: the thread's number; %a, %b, %e: words of its input; %in: where they are; %at: its 96 words of the output; %all: those of the block.
std::string kernel(const std::string& body) {
  return ".version 7.0\n.target sm_60\n.address_size 64\n.shared .align 8 .b8 tile[1024];\n"
         ".func (.reg .b32 %to) twice(.reg .b32 %from, .reg .b64 %word) { .reg .b64 %x; .reg .b32 %y; rem.u64 %x, "
         "%word, 1021; cvt.u32.u64 %y, %x; "
         "mad.lo.u32 %to, %from, 2, %y; ret; }\n"
         ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
         ".reg .b32 %a, %b, %t, %c, %n, %s, %r<20>; .reg .b64 %in, %at, %all, %e, %d<12>; .reg .f32 %f<4>; .reg .f64 "
         "%g<4>; .reg .pred %p<8>;\n"
         "ld.param.u64 %in, [in]; ld.param.u64 %at, [out]; mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mad.lo.u32 %n, "
         "%c, 96, %t;\n"
         "mad.wide.u32 %in, %n, 24, %in; mad.wide.u32 %all, %c, 73728, %at; mad.wide.u32 %at, %n, 768, %at;\n"
         "ld.global.u32 %a, [%in]; ld.global.u32 %b, [%in+8]; ld.global.u64 %e, [%in+16]; and.b32 %n, %a, 7; add.u32 "
         "%n, %n, 2;\n"
         "mov.u32 %s, tile; mad.lo.u32 %s, %t, 8, %s;\n" +
         body + "\nret;\n}\n";
}

struct Case {
  const char* name;
  const char* body;  // dead: what stands between < and >
};
const Case cases[] = {
    {"written over", "<mul.lo.u32 %r1, %a, %b;> mov.u32 %r1, 7; st.global.u32 [%at], %r1;"},
    {"behind its last reader",
     "add.u32 %r1, %a, %b; st.global.u32 [%at], %r1; <ld.global.u32 %r1, [%in+4]; rem.u32 %r1, %r1, %b;>"},
    {"a chain through one register",
     "<mov.u32 %r1, %a; mad.lo.u32 %r1, %r1, %b, 7; rem.u32 %r1, %r1, %b; div.u32 %r1, %r1, 7;> xor.b32 %r1, %a, %b; "
     "st.global.u32 [%at], %r1;"},
    {"blocks of an expansion",
     "<rem.u64 %d1, %e, %at; rem.s64 %d2, %e, %d1; mov.b32 %f1, %a; div.rn.f32 %f1, %f1, %f1; mov.b64 %g1, %e; "
     "sqrt.rn.f64 %g1, %g1;> mov.u64 %d1, 5; st.global.u64 [%at], %d1;"},
    {"several of a subroutine's places",
     "<rem.u64 %d1, %e, %all; rem.u64 %d2, %all, %e; rem.u64 %d3, %d1, %d2; xor.b64 %d3, %d3, %d2;> mov.u64 %d3, %e; "
     "st.global.u64 [%at], %d3; "
     "add.u64 %d3, %d3, 1; st.global.u64 [%at+8], %d3;"},
    {"a result of a call", "<call (%r1), twice, (%a, %e);> mov.u32 %r1, 3; st.global.u32 [%at], %r1;"},
    {"on every way",
     "<mul.lo.u32 %r1, %a, %b;> setp.lt.u32 %p1, %a, %b; @%p1 bra A; mov.u32 %r1, 1; st.global.u32 [%at], %r1; bra B; "
     "A: mov.u32 %r1, 2; st.global.u32 "
     "[%at+8], %r1; B: st.global.u32 [%at+16], %r1;"},
    {"a counter",
     "mov.u32 %r1, 0; <mov.u32 %r2, 0;> T: add.u32 %r1, %r1, 1; <add.u32 %r2, %r2, %a;> st.global.u32 [%at], %r1; "
     "add.u64 %at, %at, 8; setp.lt.u32 %p1, "
     "%r1, %n; @%p1 bra T;"},
    {"values that go round",
     "mov.u32 %r1, 0; <mov.u32 %r2, 0; mov.u32 %r3, 1; mov.u64 %d1, %e;> T: .pragma \"nounroll\"; add.u32 %r1, %r1, 1; "
     "<add.u32 %r4, %r2, %r3; rem.u32 %r2, %r3, %b; mov.u32 "
     "%r3, %r4; cvt.u64.u32 %d2, %r3; mad.lo.u64 %d1, %d1, %d2, %e; ld.global.u32 %r5, [%in]; add.u32 %r2, %r2, %r5;> "
     "st.global.u32 [%at], %r1; add.u64 "
     "%at, %at, 8; setp.lt.u32 %p1, %r1, %n; @%p1 bra T;"},
    {"round a loop, in a register that is needed elsewhere",
     "mov.u32 %r2, %a; st.global.u32 [%at], %r2; mov.u32 %r1, 0; <mov.u32 %r2, 0;> T: add.u32 %r1, %r1, 1; <mad.lo.u32 "
     "%r2, %r2, %b, 3;> add.u64 %at, %at, "
     "8; st.global.u32 [%at], %r1; setp.lt.u32 %p1, %r1, %n; @%p1 bra T; mov.u32 %r2, %b; st.global.u32 [%at+8], %r2;"},
    {"round two loops",
     "mov.u32 %r1, 0; <mov.u32 %r5, 0;> T: mov.u32 %r2, 0; U: add.u32 %r2, %r2, 1; <mad.lo.u32 %r5, %r5, 3, %r2; "
     "mul.wide.u32 %d5, %r5, 7;> setp.lt.u32 "
     "%p1, %r2, %n; st.global.u32 [%at], %r2; @%p1 bra U; add.u64 %at, %at, 8; add.u32 %r1, %r1, 1; <mov.u32 %r5, "
     "%r1;> setp.lt.u32 %p2, %r1, 3; @%p2 bra "
     "T; st.global.u32 [%at], %r1;"},
    {"under a guard",
     "setp.lt.u32 %p1, %a, %b; <@%p1 mul.lo.u32 %r1, %a, %b; @!%p1 ld.global.u32 %r1, [%in+4];> mov.u32 %r1, %a; @%p1 "
     "add.u32 %r1, %r1, 1; "
     "st.global.u32 [%at], %r1;"},
    {"a predicate",
     "<setp.lt.u32 %p1, %a, %b; setp.gt.and.s32 %p2, %a, 7, %p1;> setp.eq.u32 %p1, %a, %b; setp.ne.u32 %p2, %t, 3; "
     "@%p1 st.global.u32 [%at], %a; @%p2 "
     "st.global.u32 [%at+8], %b;"},
    {"an arm of a branch, then the branch",
     "mov.u32 %r1, %a; <setp.lt.u32 %p1, %a, %b; @%p1 bra A; rem.u64 %d1, %e, 77; mad.lo.u64 %d1, %d1, %e, 7; bra B; "
     "A: ld.global.u64 %d1, [%in]; "
     "rem.u64 %d1, %e, 13; B: add.u64 %d2, %d1, %e;> st.global.u32 [%at], %r1; mov.u64 %d1, 1; mov.u64 %d2, 2; add.u64 "
     "%d1, %d1, %e; add.u64 %d2, %d2, %e; "
     "st.global.u64 [%at+8], %d1; st.global.u64 [%at+16], %d2;"},
    {"the value that decides about a dead arm",
     "<ld.global.u32 %r3, [%in+4]; rem.u32 %r3, %r3, %b; setp.eq.u32 %p1, %r3, 1; @%p1 bra A; mov.u32 %r4, 7; bra B; "
     "A: mov.u32 %r4, %a; B: setp.eq.u32 "
     "%p2, %r4, 1; @%p2 bra C; rem.u32 %r5, %a, %b; C:> mov.u32 %r5, 3; mov.u32 %r4, %a; st.global.u32 [%at], %r5; "
     "st.global.u32 [%at+8], %r4;"},
    {"pairs and vectors",
     "<ld.global.v2.u64 {%d1, %d2}, [%at]; mov.b64 {%r1, %r2}, %d1; mov.b64 %d3, {%r2, %r1};> mov.b64 {%r1, %r2}, %e; "
     "mov.b64 %d3, {%r2, %r1}; mov.u64 %d1, 3; "
     "st.global.u64 [%at], %d3; st.global.u64 [%at+8], %d1; mov.u64 %d2, %e; st.global.u64 [%at+16], %d2;"},
    {"sums with carries",
     "<add.cc.u32 %r1, %a, %b; addc.cc.u32 %r2, %a, 7; addc.u32 %r3, 0, 0;> add.cc.u32 %r1, %b, %b; addc.u32 %r2, %a, "
     "0; mov.u32 %r3, 5; st.global.u32 "
     "[%at], %r1; st.global.u32 [%at+8], %r2; st.global.u32 [%at+16], %r3;"},
    {"shared memory", "st.shared.u32 [%s], %a; <ld.shared.u32 %r1, [%s];> mov.u32 %r1, %b; st.global.u32 [%at], %r1;"},
};
// With the statements that are dead, or without.
std::string text_of(const Case& c, bool with_dead) {
  std::string text;
  bool dead = false;
  for (const char* p = c.body; *p; ++p)
    if (*p == '<' || *p == '>')
      dead = *p == '<';
    else if (!dead || with_dead)
      text += *p;
  return kernel(text);
}

TEST(DeadCode, TakesNoInstructions) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const std::string full = text_of(c, true);
    our_code_agrees(full, both_families, {0, 1, 3});
    for (const std::string& target : both_families) {
      const auto with = assemble_for(parse_text("full.ptx", full), target),
                 without = assemble_for(parse_text("lean.ptx", text_of(c, false)), target);
      ASSERT_TRUE(with.ok() && without.ok()) << target;
      EXPECT_EQ(with->kernels[0].instructions, without->kernels[0].instructions) << target;
    }
  }
}

// Nothing of these is dead.
const Case needed[] = {
    {"what a guarded write leaves",
     "mul.lo.u32 %r1, %a, %b; setp.lt.u32 %p1, %a, %b; @%p1 mov.u32 %r1, 7; st.global.u32 [%at], %r1;"},
    {"what a guarded write leaves to the next round",
     "mov.u32 %r1, 0; mov.u32 %r2, 5; T: setp.eq.u32 %p1, %r1, 2; st.global.u32 [%at], %r2; add.u64 %at, %at, 8; @%p1 "
     "mad.lo.u32 %r2, %r2, %a, 1; add.u32 "
     "%r1, %r1, 1; setp.lt.u32 %p2, %r1, %n; @%p2 bra T;"},
    {"what the next round reads first",
     "mov.u32 %r1, 0; mov.u32 %r2, %a; mov.u32 %r3, 0; T: add.u32 %r3, %r3, %r2; add.u32 %r1, %r1, 1; mad.lo.u32 %r2, "
     "%r1, %b, 5; setp.lt.u32 %p2, %r1, %n; "
     "@%p2 bra T; mov.u32 %r2, 1; st.global.u32 [%at], %r3; st.global.u32 [%at+8], %r2;"},
    {"a write for one of two ways",
     "mov.u32 %r1, %a; setp.lt.u32 %p1, %a, %b; @%p1 bra A; mov.u32 %r1, 1; st.global.u32 [%at+8], %r1; A: "
     "st.global.u32 [%at], %r1;"},
    {"a predicate of the round before",
     "mov.u32 %r1, 0; setp.ne.u32 %p1, %r1, 0; T: @%p1 st.global.u32 [%at], %r1; setp.lt.u32 %p1, %r1, %n; add.u64 "
     "%at, %at, 8; add.u32 %r1, %r1, 1; setp.lt.u32 "
     "%p2, %r1, 12; @%p2 bra T;"},
    {"a carry over other instructions",
     "add.cc.u32 %r1, %a, %b; mad.lo.u32 %r2, %a, %b, %t; addc.u32 %r3, %r2, %a; st.global.u32 [%at], %r3; add.cc.u32 "
     "%r1, %r3, %r3; addc.cc.u32 %r2, %b, %b; "
     "addc.u32 %r1, 0, 0; st.global.u32 [%at+8], %r1;"},
    {"a part of a vector",
     "ld.global.v2.u64 {%d1, %d2}, [%at]; add.u64 %d2, %d2, %e; st.global.u64 [%at+16], %d2; mov.u64 %d2, 3; "
     "st.global.u64 [%at], %d2;"},
    {"one of two predicates",
     "setp.lt.u32 %p1|%p2, %a, %b; @%p2 st.global.u32 [%at], %a; setp.eq.u32 %p1|%p2, %t, 5; @%p1 st.global.u32 "
     "[%at+8], %b;"},
    {"an address, a guard and a branch",
     "add.u64 %d1, %at, 64; setp.lt.u32 %p1, %a, %b; @%p1 st.global.u32 [%d1], %a; add.u64 %d1, %at, 128; setp.gt.u32 "
     "%p1, %a, 100; @%p1 bra A; st.global.u32 "
     "[%d1+8], %b; A: setp.gt.u32 %p1, %a, 7; @%p1 rem.u64 %d2, %e, 7; @!%p1 mov.u64 %d2, 1; st.global.u64 [%d1+16], "
     "%d2;"},
    {"results of atomics and of operations of the warp",
     "st.shared.u32 [%s], %t; setp.eq.u32 %p2, %t, 7; atom.global.add.u32 %r1, [%all], 3; mov.u32 %r1, 1; "
     "atom.shared.add.u32 %r2, [%s], 7; mov.u32 %r2, 5; shfl.sync.bfly.b32 %r3, %a, 1, 31, -1; mov.u32 %r3, "
     "%a; vote.sync.any.pred %p1, %p2, -1; bar.sync 0; bar.red.popc.u32 %r4, 0, %p2; mov.u32 %r4, 2; st.global.u32 "
     "[%at+16], %r4;"},
};

TEST(DeadCode, KeepsWhatIsNeeded) {
  for (const Case& c : needed) {
    SCOPED_TRACE(c.name);
    our_code_agrees(kernel(c.body), both_families, {0, 1, 2, 3});
  }
}

// Reads of volatile memory and of clocks, atomics and barriers are there for themselves; at level 0 all is.
TEST(DeadCode, HasEffects) {
  struct Effect {
    const char* statement;
    std::vector<isa::Mnemonic> machine;  // one of them
  };
  using M = isa::Mnemonic;
  const Effect effects[] = {{"ld.volatile.global.u32 %r1, [%in];", {M::LDG}},
                            {"mov.u32 %r1, %clock;", {M::CS2R}},
                            {"mov.u64 %d1, %clock64;", {M::CS2R}},
                            {"bar.sync 0;", {M::BAR}},
                            {"atom.global.cas.b32 %r1, [%all], 0, 1;", {M::ATOM_CAS, M::ATOMG_CAS}}};
  for (const std::string& target : both_families) {
    const auto count = [&](const std::string& body, std::span<const M> machine, int level) {
      const auto made = assemble_for(parse_text("effects.ptx", kernel(body)), target, level);
      EXPECT_TRUE(made.ok()) << target;
      const std::vector<isa::Instruction> code = instructions_of(made->cubin, target);
      return std::ranges::count_if(
          code, [&](const isa::Instruction& i) { return std::ranges::find(machine, i.mnemonic) != machine.end(); });
    };
    const std::string end = " mov.u32 %r1, 0; mov.u64 %d1, 0; st.global.u32 [%at], %r1; st.global.u64 [%at+8], %d1;";
    for (const Effect& e : effects)
      EXPECT_GT(count(e.statement + end, e.machine, 3), count(end, e.machine, 3)) << e.statement;
    const std::vector<M> loads = {M::LDG};
    const std::string dead = "ld.global.u32 %r1, [%in+4]; add.u32 %r1, %r1, 1;";
    EXPECT_EQ(count(dead + end, loads, 0), count(end, loads, 0) + 1) << target;
    EXPECT_EQ(count(dead + end, loads, 1), count(end, loads, 1)) << target;
  }
}

}  // namespace
}  // namespace rndn::assembler::testing::dead_code_test
