// Atomics of a warp at one address (Selector::atomic_of_warp): our code against the PTX interpreter, which lets every lane do its own, and how many it takes.
#include "tests/assembler/three_ways.h"

namespace rndn::assembler::testing::atomics_of_warps_test {
namespace {

// A kernel of the tests' shape. The block's first threads set its cells to a pattern; then every thread runs the body. %at: the cells, [cells] the same in
// shared memory, copied behind them at the end; %a, %b: words of the thread's input, %t its number, %p: a is odd.
// `note(r)` of the body marks what an atomic gave.
std::string kernel(std::string body) {
  for (size_t at; (at = body.find("note(")) != std::string::npos;) {
    const size_t end = body.find(')', at);
    const std::string what = body.substr(at + 5, end - at - 5);
    body.replace(
        at, end - at + 1,
        fmt::format("and.b32 %place, {0}, 8191; mad.wide.u32 %mark, %place, 8, %at; st.global.u64 [%mark+2048], 77",
                    what));
  }
  return ".version 7.0\n.target sm_60\n.address_size 64\n.shared .align 8 .b8 cells[128];\n"
         ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
         ".reg .b32 %a, %b, %t, %c, %n, %i, %o, %r<6>, %place; .reg .b64 %in, %at, %x, %m, %k, %mark, %d<6>; .reg "
         ".pred %p, %q, "
         "%s; .reg .f32 %f;\n"
         "ld.param.u64 %in, [in]; ld.param.u64 %at, [out]; mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x;\n"
         "mad.lo.u32 %n, %c, 96, %t; mad.wide.u32 %in, %n, 24, %in; mad.wide.u32 %at, %c, 73728, %at;\n"
         "ld.global.u32 %a, [%in]; ld.global.u32 %b, [%in+8]; and.b32 %n, %a, 1; setp.ne.u32 %p, %n, 0;\n"
         "mov.u64 %x, 0x40000000; setp.lt.u32 %q, %t, 16; mul.wide.u32 %k, %t, 8; add.u64 %m, %at, %k; mov.u32 %o, "
         "cells; mad.lo.u32 %o, %t, 8, %o;\n"
         "@%q st.global.u64 [%m], %x; @%q st.shared.u64 [%o], %x;\nbar.sync 0;\n" +
         body + "\nbar.sync 0;\n@%q ld.shared.u64 %x, [%o]; @%q st.global.u64 [%m+1024], %x;\nret;\n}\n";
}

struct Case {
  const char* name;
  const char* body;
};
const Case cases[] = {
    {"literals",
     "red.global.add.u32 [%at], 3; red.global.add.s32 [%at+8], -5; red.global.add.u64 [%at+16], 1000000007; "
     "red.shared.add.u32 [cells], 1;\n"
     "red.shared.add.u32 [cells+8], 0x80000001; red.global.add.u64 [%at+24], -1; red.global.add.u64 [%at+32], "
     "0x80000000; red.global.add.u32 [%at+40], 0;\n"},
    {"values",
     "red.global.add.u32 [%at], %a; red.global.min.s32 [%at+8], %a; red.global.max.s32 [%at+16], %a; "
     "red.global.min.u32 [%at+24], %a;\n"
     "red.global.max.u32 [%at+32], %a; or.b32 %r1, %a, 0xffff0; red.global.and.b32 [%at+40], %r1; red.global.or.b32 "
     "[%at+48], %a; red.global.xor.b32 [%at+56], %a;\n"
     "red.shared.add.u32 [cells], %b; red.shared.min.s32 [cells+8], %b; red.shared.max.s32 [cells+16], %b; "
     "red.shared.min.u32 [cells+24], %b;\n"
     "red.shared.max.u32 [cells+32], %b; or.b32 %r2, %b, 0xfffff; red.shared.and.b32 [cells+40], %r2; "
     "red.shared.or.b32 [cells+48], %b; red.shared.xor.b32 [cells+56], %b;\n"},
    {"values under a guard",
     "@%p red.global.add.u32 [%at], %a; @%p red.global.min.s32 [%at+8], %a; @%p red.global.max.s32 [%at+16], %a; @%p "
     "red.global.min.u32 [%at+24], %a;\n"
     "@!%p red.global.max.u32 [%at+32], %a; or.b32 %r1, %a, 0xffff0; @%p red.global.and.b32 [%at+40], %r1; @!%p "
     "red.global.or.b32 [%at+48], %a; @%p red.global.xor.b32 [%at+56], %a;\n"
     "@%p red.shared.max.s32 [cells+16], %b; @!%p red.shared.min.u32 [cells+24], %b; setp.gt.u32 %s, %t, 1000; @%s "
     "red.global.and.b32 [%at+64], %a; @%s red.global.min.s32 [%at+72], %a;\n"},
    {"values that only the guarded lanes have",
     "@%p bra GO; bra ON; GO: mul.lo.u32 %r1, %a, 7; red.global.add.u32 [%at], %r1; red.global.add.u32 [%at+8], 5; "
     "ON:\n"},
    {"negated values",
     "neg.s32 %r1, %a; red.global.add.s32 [%at], %r1; @%p red.global.add.s32 [%at+8], %r1; @%p red.global.max.s32 "
     "[%at+16], %r1;\n"},
    {"the results nobody reads",
     "atom.global.add.u32 %r1, [%at], %a; atom.global.exch.b32 %r2, [%at+8], 5; atom.global.cas.b32 %r3, [%at+16], "
     "0x40000000, 9; atom.global.inc.u32 %r4, [%at+24], 1000;\n"
     "atom.shared.add.u32 %r5, [cells], %b; atom.shared.exch.b32 %r5, [cells+8], 7; atom.global.min.u64 %d1, [%at+40], "
     "5;\n"},
    {"results", "atom.global.add.u32 %r1, [%at], 3; note(%r1);\n"},
    {"results of pairs",
     "atom.global.add.u64 %d1, [%at], 5; cvt.u32.u64 %r1, %d1; note(%r1); shr.u64 %d1, %d1, 32; cvt.u32.u64 %r1, %d1; "
     "note(%r1);\n"},
    {"results in shared memory", "atom.shared.add.u32 %r1, [cells], 1; note(%r1);\n"},
    {"results less than before", "atom.global.add.s32 %r1, [%at], -2; sub.u32 %r1, 0x40000000, %r1; note(%r1);\n"},
    {"results under a guard",
     "mov.u32 %r1, 4000; @%p atom.global.add.u32 %r1, [%at], 3; note(%r1); mov.u64 %d1, 5000; @!%p atom.global.add.u64 "
     "%d1, [%at+8], 7; cvt.u32.u64 %r2, %d1; note(%r2);\n"},
    {"results in an arm",
     "@%p bra ON; atom.global.add.u32 %r1, [%at], 2; note(%r1); ON: atom.global.add.u32 %r2, [%at+8], 9; note(%r2);\n"},
    {"round a loop that lanes leave",
     "and.b32 %i, %a, 7; AGAIN: red.global.add.u32 [%at], %i; atom.global.add.u32 %r1, [%at+8], 1; note(%r1); sub.u32 "
     "%i, %i, 1; setp.gt.s32 %s, %i, 0; @%s bra AGAIN;\n"},
    {"behind lanes that have gone",
     "setp.gt.u32 %s, %t, 40; @%s bra OUT; red.global.add.u32 [%at], %a; atom.global.add.u32 %r1, [%at+8], 1; "
     "note(%r1); OUT:\n"},
    {"an address of its own",
     "and.b32 %r1, %t, 7; mad.wide.u32 %d1, %r1, 8, %at; red.global.add.u32 [%d1], %a; red.global.add.u32 [%d1], 3; "
     "selp.b64 %d2, %at, %d1, %p; red.global.max.u32 [%d2+64], %a;\n"},
    {"an address that lanes chose apart",
     "mov.u64 %d1, %at; @%p bra ON; add.u64 %d1, %d1, 8; ON: red.global.add.u32 [%d1], 3; red.global.or.b32 [%d1+64], "
     "%b;\n"},
    {"an address that moves in a loop",
     "mov.u64 %d1, %at; and.b32 %i, %a, 3; AGAIN: red.global.add.u32 [%d1], 2; red.global.add.u32 [%d1+64], %a; "
     "add.u64 %d1, %d1, 8; sub.u32 %i, %i, 1; setp.gt.s32 %s, %i, 0; @%s bra AGAIN; red.global.add.u32 [%d1+32], 7;\n"},
    {"others stay",
     "and.b32 %n, %a, 255; cvt.rn.f32.u32 %f, %n; red.global.add.f32 [%at], %f; red.global.inc.u32 [%at+8], 5; "
     "red.global.dec.u32 [%at+16], 5; cvt.u64.u32 %d1, %a; red.global.max.u64 [%at+24], %d1; red.global.add.u64 "
     "[%at+32], %d1;\n"},
};

TEST(AtomicsOfWarps, AreThoseOfEveryLane) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    our_code_agrees(kernel(c.body), both_families, {0, 2, 3});
  }
}

// One for the warp, and where it must not be, one for each lane: how many lanes run atomics and stores to global
// memory, without those of the kernel (3 warps of 32 in each of 3 blocks).
TEST(AtomicsOfWarps, AreOneForAllLanes) {
  struct Count {
    const char* body;
    uint64_t lanes[3];  // sm_61, sm_86, sm_90
  };
  const Count counts[] = {
      {"red.global.add.u32 [%at], 3;\n", {9, 9, 9}},
      {"red.shared.add.u32 [cells], 3;\n", {9, 9, 9}},
      {"red.global.add.u64 [%at], 3;\n", {9, 9, 9}},
      {"red.global.add.u32 [%at], %a;\n", {288, 9, 9}},
      {"red.global.xor.b32 [%at], %a;\n", {288, 9, 9}},
      {"setp.ge.u32 %s, %t, 33; @%s red.global.add.u32 [%at], 3;\n", {6, 6, 6}},
      {"setp.ge.u32 %s, %t, 33; @%s red.global.add.u32 [%at], %a;\n", {189, 6, 6}},
      {"atom.global.add.u32 %r1, [%at], 3; st.global.u32 [%at+8], %r1;\n", {297, 297, 297}},
      {"atom.global.add.u32 %r1, [%at], %a; st.global.u32 [%at+8], %r1;\n", {576, 576, 576}},
      {"atom.global.add.u32 %r1, [%at], %a;\n", {288, 9, 9}},
      {"atom.global.exch.b32 %r1, [%at], %a;\n", {288, 288, 288}},
      {"setp.eq.u32 %s, %t, 33; @%s red.global.add.u32 [%at], 3;\n", {3, 3, 3}},
      {"mad.wide.u32 %d1, %t, 8, %at; red.global.add.u32 [%d1], 3;\n", {288, 288, 288}},
      {"red.global.add.f32 [%at], 0f3F800000;\n", {288, 288, 288}},
  };
  const std::vector<uint64_t> in = input_words();
  for (const Count& c : counts)
    for (size_t t = 0; t < both_families.size(); ++t) {
      SCOPED_TRACE(both_families[t] + ": " + c.body);
      auto made = assemble_for(parse_text("atomics.ptx", kernel(c.body)), both_families[t]);
      ASSERT_TRUE(made.ok()) << made.error().message;
      sim::Counters counters;
      sim::Options options;
      options.count_classes = true;
      auto ran = run_simulator(both_families[t], made->cubin, "k", in, options, 64 << 20, &counters);
      ASSERT_TRUE(ran.ok()) << ran.error().message;
      const auto lanes = [&](isa::LatencyClass x) { return counters.thread_by_class[static_cast<size_t>(x)]; };
      using L = isa::LatencyClass;
      constexpr uint64_t own_stores = 2 * 16 * 3;
      EXPECT_EQ(lanes(L::global_atomic) + lanes(L::shared_atomic) + lanes(L::global_store) - own_stores, c.lanes[t]);
    }
}

// Results that nobody reads do not come back: shuffles do not wait for each other's predicate.
TEST(AtomicsOfWarps, WhatNobodyReadsIsNotWritten) {
  std::string body;
  for (int k = 0; k < 8; ++k) body += fmt::format("shfl.sync.bfly.b32 %r{}|%s, %a, {}, 31, -1;\n", k % 4, k + 1);
  std::string without = body;
  for (size_t at; (at = without.find("|%s")) != std::string::npos;) without.erase(at, 3);
  for (const std::string& target : both_families) {
    uint64_t cycles[2];
    for (int k = 0; k < 2; ++k) {
      auto made = assemble_for(parse_text("shuffles.ptx", kernel(k ? without : body)), target);
      ASSERT_TRUE(made.ok()) << made.error().message;
      sim::Counters counters;
      auto ran = run_simulator(target, made->cubin, "k", input_words(), true, &counters);
      ASSERT_TRUE(ran.ok()) << ran.error().message;
      cycles[k] = counters.issue_cycles;
    }
    EXPECT_EQ(cycles[0], cycles[1]) << target;
  }
}

}  // namespace
}  // namespace rndn::assembler::testing::atomics_of_warps_test
