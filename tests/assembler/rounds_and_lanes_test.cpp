// What holds for one round of a loop, or for the lanes that run at one place, and not for the next: our code against the PTX interpreter.
#include "tests/assembler/three_ways.h"

namespace rndn::assembler::testing::rounds_and_lanes_test {
namespace {

// %t: the thread's number; %a: a word of its input; %at: its 96 words of the output, %all: those of the block.
std::string kernel(const std::string& body) {
  return ".version 7.0\n.target sm_60\n.address_size 64\n.shared .align 8 .b8 tile[1024];\n.visible .entry k(.param "
         ".u64 in, .param .u64 out)\n{\n"
         ".reg .b32 %a, %t, %c, %n, %s, %r<20>; .reg .b64 %in, %at, %all, %d<8>; .reg .pred %p<8>;\n"
         "ld.param.u64 %in, [in]; ld.param.u64 %at, [out]; mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mad.lo.u32 %n, "
         "%c, 96, %t;\n"
         "mad.wide.u32 %in, %n, 24, %in; mad.wide.u32 %all, %c, 73728, %at; mad.wide.u32 %at, %n, 768, %at; "
         "ld.global.u32 %a, [%in];\n"
         "mov.u32 %s, tile; mad.lo.u32 %s, %t, 8, %s;\n" +
         body + "\nret;\n}\n";
}

struct Case {
  const char* name;
  const char* body;
};
const Case cases[] = {
    {"a copy that is read before it is written, in the next round",
     "mov.u32 %r1, 0; mov.u32 %r9, 0; setp.ne.u32 %p1, %r1, 0;\nT: ld.global.u32 %r3, [%in]; @%p1 add.u32 %r9, %r9, "
     "%r4; setp.eq.u32 %p1, %r1, %r1;\n"
     "mov.b32 %r4, %r3; add.u32 %r1, %r1, 1; add.u64 %in, %in, 4; setp.lt.u32 %p2, %r1, 5; @%p2 bra T;\nst.global.u32 "
     "[%at], %r9;\n"},
    {"a copy of what is written behind it",
     "mov.u32 %r1, 0; mov.u32 %r9, 0;\nT: setp.ne.u32 %p1, %r1, 0; @%p1 mov.b32 %r5, %r3; ld.global.u32 %r3, [%in]; "
     "@%p1 add.u32 %r9, %r9, %r5;\n"
     "add.u32 %r1, %r1, 1; add.u64 %in, %in, 4; setp.lt.u32 %p2, %r1, 5; @%p2 bra T;\nst.global.u32 [%at], %r9;\n"},
    {"a sum of the round before as an address",
     "mov.u32 %r1, 0; mov.u64 %d1, %at; setp.ne.u32 %p1, %r1, 0;\nT: @%p1 st.global.u32 [%d2+8], %r1; setp.eq.u32 %p1, "
     "%r1, %r1; mov.b64 %d3, %d1; add.u64 %d2, %d3, 16;\n"
     "add.u64 %d1, %d1, 24; add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 7; @%p2 bra T;\n"},
    {"a counter that is something else within the round",
     "and.b32 %r9, %a, 15; add.u32 %r8, %a, 1; mov.u32 %r2, 0;\nT: mov.b32 %r3, %r2; add.u32 %r2, %r8, 7; "
     "st.global.u32 [%at], %r2; add.u32 %r2, %r3, 1; add.u64 %at, %at, 8;\n"
     "setp.lt.u32 %p1, %r2, %r9; @%p1 bra T;\n"},
    {"a register that is one counter, then another",
     "and.b32 %r9, %a, 15; mov.u32 %r2, 0; mov.u32 %r5, 100;\nT: add.u32 %r5, %r2, 3; st.global.u32 [%at], %r5; "
     "add.u32 %r5, %r5, 2; st.global.u32 [%at+4], %r5; add.u64 %at, %at, 8;\n"
     "add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, %r9; @%p1 bra T;\nst.global.u32 [%at], %r5;\n"},
    {"lanes leave between two atomics",
     "setp.gt.u32 %p1, %t, 13; red.global.add.u32 [%all], 1; @%p1 exit; red.global.add.u32 [%all+8], 1; "
     "red.global.add.u32 [%all+16], %a;\n"
     "atom.global.add.u32 %r1, [%all+24], 2; mad.wide.u32 %d1, %r1, 8, %all; st.global.u32 [%d1+128], 7;\n"},
    {"lanes come between two atomics",
     "and.b32 %r12, %t, 31; setp.lt.u32 %p1, %r12, 16; @%p1 bra A; bar.warp.sync 0xffff0000; mad.lo.u32 %r5, %t, 3, 7; "
     "mad.lo.u32 %r5, %r5, %r5, 7; mad.lo.u32 %r5, %r5, %r5, 7;\n"
     "bar.warp.sync -1; st.global.u32 [%at+512], %r5; bra B;\nA: mad.lo.u32 %r5, %t, 3, 9; mad.lo.u32 %r5, %r5, %r5, "
     "9; mad.lo.u32 %r5, %r5, %r5, 9; bar.warp.sync -1; st.global.u32 [%at+512], %r5;\n"
     "B: red.global.add.u32 [%all], 1; bar.sync 0; red.global.add.u32 [%all+8], %t; red.global.add.u32 [%all+16], 1; "
     "red.global.max.u32 [%all+24], %t;\n"},
    {"accesses on both sides of a meeting",
     "st.shared.u32 [%s], 77; bar.sync 0; setp.gt.u32 %p1, %t, 1000; @%p1 bra B;\nshfl.sync.bfly.b32 %r10, %a, 0, 31, "
     "-1; mul.lo.u32 %r11, %r10, %r10; mad.lo.u32 %r11, %r11, %r10, %a;\n"
     "and.b32 %r12, %t, 31; st.shared.u32 [%s], %r11; bar.warp.sync -1; setp.lt.u32 %p2, %r12, 31; @%p2 ld.shared.u32 "
     "%r9, [%s+8]; @%p2 st.global.u32 [%at], %r9;\nB: bar.sync 0;\n"},
    {"accesses on both sides of a meeting of all",
     "and.b32 %r12, %t, 31; setp.lt.u32 %p2, %r12, 31; st.shared.u32 [%s], %a; bar.warp.sync -1; @%p2 ld.shared.u32 "
     "%r9, [%s+8]; @%p2 st.global.u32 [%at], %r9;\n"},
    {"lanes do something each at the end of a round of votes",
     "mov.u32 %r1, 0; mov.u32 %r9, 0; and.b32 %r12, %t, 31; setp.ne.u32 %p1, %r12, 1; setp.lt.u32 %p3, %r1, 5; "
     "rem.u32 %r13, %t, 5;\n"
     "T: vote.sync.ballot.b32 %r2, %p3, -1; setp.eq.u32 %p4, %r2, 0; @%p4 bra E; shfl.sync.idx.b32 %r3, %a, %r1, 31, -1; "
     "add.u32 %r9, %r9, %r3; add.u32 %r1, %r1, 1; add.u32 %r14, %r13, 3; setp.lt.u32 %p3, %r1, %r14;\n"
     "setp.eq.u32 %p5, %r13, 2; @%p5 bra F; @%p1 bra T;\nld.global.u32 %r5, [%in]; st.global.u32 [%at+8], %r5; red.global.add.u32 "
     "[%all+16], 1; bra T;\n"
     "F: setp.lt.u32 %p6, %r3, %a; @%p6 bra T; shl.b32 %r7, 1, %r12; shfl.sync.idx.b32 %r6, %r9, %r12, 31, %r7; mad.lo.u32 %r9, %r9, 3, 1; bra T;\n"
     "E: st.global.u32 [%at], %r9;\n"},
    {"lanes meet in a round of a loop around a loop of votes",
     "mov.u32 %r1, 0; mov.u32 %r9, 0; and.b32 %r12, %t, 31;\nT: mov.u32 %r2, 0;\nU: add.u32 %r3, %r12, %r2; setp.lt.u32 %p1, %r3, 33; "
     "vote.sync.all.pred %p2, %p1, -1; add.u32 %r2, %r2, 1; @%p2 bra U;\n"
     "add.u32 %r9, %r9, %r2; add.u32 %r1, %r1, 1; setp.gt.u32 %p3, %r1, 3; shfl.sync.idx.b32 %r5, %r9, 3, 31, -1; @%p3 bra E; "
     "setp.lt.u32 %p4, %r12, 7; @%p4 bra T; xor.b32 %r9, %r9, %r5; setp.lt.u32 %p4, %r12, 11; @%p4 bra T; st.global.u32 [%at+8], %r1; bra T;\n"
     "E: st.global.u32 [%at], %r9;\n"},
    {"branches to one head of which none gets a region",
     "and.b32 %r1, %t, 3; mov.u32 %r3, 0;\nT: setp.gt.u32 %p0, %r1, 3; @%p0 bra X; setp.eq.u32 %p1, %r1, 1; @%p1 bra X; setp.eq.u32 %p2, "
     "%r1, 2; add.u32 %r1, %r1, 3; @%p2 bra T;\nX: add.u32 %r1, %r1, 1; add.u32 %r3, %r3, 1; activemask.b32 %r4; setp.lt.u32 %p3, %r3, 7; "
     "@%p3 bra T; st.global.u32 [%at], %r1;\n"},
};

TEST(RoundsAndLanes, AreThoseOfThePtx) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    our_code_agrees(kernel(c.body), both_families, {0, 1, 2, 3});
  }
}

// Lanes of Volta and later make progress each for itself: none waits at the head of a loop for one that spins on what it does behind it.
TEST(RoundsAndLanes, DoNotWaitForOneThatSpins) {
  our_code_agrees(
      kernel("and.b32 %r2, %t, 31; shr.u32 %r8, %t, 5; mad.wide.u32 %d1, %r8, 24576, %all; mov.u32 %r1, 0;\n"
             "T: setp.gt.u32 %p1, %r1, 3; @%p1 bra E; add.u32 %r1, %r1, 1; setp.eq.u32 %p5, %r2, 1; @%p5 red.global.add.u32 [%d1+8], 1;\n"
             "setp.gt.u32 %p2, %r2, 15; @%p2 bra H; setp.ne.u32 %p3, %r2, 0; @%p3 bra T; add.u32 %r7, %r1, 1; min.u32 %r7, %r7, 4;\n"
             "S: ld.volatile.global.u32 %r4, [%d1+8]; setp.lt.u32 %p4, %r4, %r7; @%p4 bra S; bra T;\n"
             "H: shfl.sync.bfly.b32 %r5, %r1, 1, 31, 0xffff0000; bra T;\nE: st.global.u32 [%at], %r1;\n"),
      {"sm_75", "sm_86", "sm_90"}, {0, 1, 2, 3});
}

// Lanes that do something of their own at the end of a round are waited for before the next one, where shuffles would have to bring all together again.
TEST(RoundsAndLanes, MeetBeforeTheNextRound) {
  const ptx::Module module = parse_text(
      "rounds.ptx",
      kernel("mov.u32 %r1, 0; mov.u32 %r5, -1; and.b32 %r12, %t, 31; setp.ne.u32 %p1, %r12, 1;\n"
             "T: activemask.b32 %r4; and.b32 %r5, %r5, %r4; shfl.sync.idx.b32 %r2, %r1, 3, 31, -1; setp.gt.u32 %p4, %r2, 4; "
             "@%p4 bra E; add.u32 %r1, %r1, 1; setp.eq.u32 %p3, %r2, 3; @%p3 bra T; shfl.sync.idx.b32 %r3, %r1, 5, 31, -1; @%p1 bra "
             "T; red.global.add.u32 [%all+16], 1; ld.global.u32 %r6, [%in]; "
             "ld.global.u32 %r7, [%in+4]; ld.global.u32 %r8, [%in+8]; mad.lo.u32 %r6, %r6, %r7, %r8; rem.u32 %r6, %r6, %r8; "
             "st.global.u32 [%at+8], %r6; bra T;\nE: st.global.u32 [%at], %r5;\n"));
  for (const std::string target : {"sm_75", "sm_86", "sm_90"}) {
    auto made = assemble_for(module, target);
    ASSERT_TRUE(made.ok()) << made.error().message;
    auto got = run_simulator(target, made->cubin, "k", input_words());
    ASSERT_TRUE(got.ok()) << got.error().message;
    for (size_t thread = 0; thread < 96; ++thread) EXPECT_EQ((*got)[thread * 96] & 0xffffffff, 0xffffffffu) << target << ", thread " << thread;
  }
}

}  // namespace
}  // namespace rndn::assembler::testing::rounds_and_lanes_test
