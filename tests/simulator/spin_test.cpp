// Iterations that only wait are counted apart: what is left repeats whatever the order of blocks and however long they wait.
#include <set>

#include "tests/simulator/support.h"

namespace rndn::sim::spin_test {
namespace {

// Block 0 works for a while and then sets a flag; the others wait for it. `poll` is the loop that waits, of label WAIT.
std::string kernel(const std::string& poll) {
  return R"(.version 6.0
.target sm_60
.address_size 64
.visible .entry k(.param .u64 flag, .param .u64 out)
{
  .reg .pred %p, %q, %lane; .reg .b32 %c, %t, %x, %tries; .reg .b64 %flag, %out, %y;
  ld.param.u64 %flag, [flag]; ld.param.u64 %out, [out];
  mov.u32 %c, %ctaid.x; mov.u32 %t, %tid.x; setp.ne.u32 %p, %c, 0; mov.u32 %tries, 0; setp.lt.u32 %lane, %t, 7;
  mov.u64 %y, 1; mov.u32 %x, 0;
  @%p bra WAIT;
WORK:
  add.u32 %x, %x, 3; mul.lo.u32 %x, %x, %x; st.global.u32 [%out], %x; add.u32 %tries, %tries, 1;
  setp.lt.u32 %q, %tries, 200; @%q bra WORK;
  membar.gl; setp.eq.u32 %q, %t, 0; @%q st.volatile.global.u64 [%flag], 7;
  bra DONE;
)" + poll +
         R"(
  cvt.u32.u64 %x, %y; add.u32 %x, %x, %tries; st.global.u32 [%out+4], %x;
DONE:
  ret;
})";
}

struct Poll {
  const char* name;
  const char* text;
  bool counted;
};
const Poll polls[] = {
    {"Load", "WAIT: ld.volatile.global.u64 %y, [%flag]; setp.eq.u64 %q, %y, 0; @%q bra WAIT;", true},
    // As single-pass scans look back: some lanes load, all wait.
    {"VoteOfSomeLanes",
     "WAIT: @%lane ld.volatile.global.u64 %y, [%flag]; setp.ne.u64 %q, %y, 0; vote.sync.all.pred %q, %q, 0xffffffff; "
     "@!%q bra WAIT;",
     true},
    {"CompareAndSwap", "WAIT: atom.global.cas.b64 %y, [%flag], 7, 7; setp.eq.u64 %q, %y, 0; @%q bra WAIT;", true},
    // These leave something behind.
    {"Tries",
     "WAIT: ld.volatile.global.u64 %y, [%flag]; add.u32 %tries, %tries, 1; setp.eq.u64 %q, %y, 0; @%q bra WAIT;",
     false},
    {"Store",
     "WAIT: ld.volatile.global.u64 %y, [%flag]; st.volatile.global.u32 [%out+8], %t; setp.eq.u64 %q, %y, 0; @%q bra "
     "WAIT;",
     false},
    {"Addition",
     "WAIT: atom.global.add.u64 %y, [%flag+8], 1; ld.volatile.global.u64 %y, [%flag]; setp.eq.u64 %q, %y, 0; @%q bra "
     "WAIT;",
     false},
};

class Spin : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Targets, Spin, ::testing::Values("sm_61", "sm_75", "sm_86", "sm_90"),
                         [](const auto& info) { return info.param; });

TEST_P(Spin, WaitingIsCountedApart) {
  std::string why;
  const std::string ptxas = find_ptxas(why);
  if (ptxas.empty()) GTEST_SKIP() << "skipped: " << why;
  for (const Poll& poll : polls) {
    SCOPED_TRACE(poll.name);
    const auto cubin = assemble_with_ptxas(ptxas, kernel(poll.text), GetParam());
    ASSERT_FALSE(cubin.empty());
    std::set<std::string> counts;
    std::set<uint64_t> waited, all;
    for (uint64_t run = 1; run <= 24; ++run) {
      Machine machine(GetParam(), 1 << 20);
      const auto module = machine.load(cubin);
      ASSERT_TRUE(module.ok()) << module.error().message;
      const uint64_t flag = upload(machine, std::vector<uint64_t>(2, 0)),
                     out = upload(machine, std::vector<uint32_t>(4, 0));
      Options options;
      options.deterministic = run <= 20;
      options.weak_memory = run % 2;
      options.check_hazards = run % 3 == 0;
      options.count_classes = true;
      options.seed = run;
      options.max_warp_instructions = 10'000'000;
      const auto c =
          machine.launch(*module, "k", {6, 1, 1}, {64, 1, 1}, 0, Parameters().add(flag).add(out).bytes(), options);
      ASSERT_TRUE(c.ok()) << c.error().message;
      std::string text = fmt::format("{} {} {} {} {} {} {} {}", c->warp_instructions, c->thread_instructions,
                                     c->issue_cycles, c->global_load_sectors, c->global_load_bytes,
                                     c->global_store_sectors, c->global_store_bytes, c->divergent_branches);
      uint64_t by_class = 0, spinning_by_class = 0;
      for (size_t k = 0; k < instruction_classes; ++k) {
        text += fmt::format(" {} {}", c->warp_by_class[k], c->thread_by_class[k]);
        by_class += c->warp_by_class[k], spinning_by_class += c->spinning.warp_by_class[k];
      }
      EXPECT_EQ(by_class, c->warp_instructions);
      EXPECT_EQ(spinning_by_class, c->spinning.warp_instructions);
      EXPECT_EQ(c->spin_iterations == 0, c->spinning.warp_instructions == 0);
      if (run <= 20) waited.insert(c->spin_iterations);
      counts.insert(text);
      if (run <= 20) all.insert(c->warp_instructions + c->spinning.warp_instructions);
    }
    EXPECT_GT(all.size(), 1u) << "every order waits equally long: nothing is tested";
    if (poll.counted) {
      EXPECT_EQ(counts.size(), 1u) << *counts.begin() << "\n" << *counts.rbegin();
      EXPECT_GT(waited.size(), 1u);
    } else {
      EXPECT_EQ(waited, std::set<uint64_t>{0});
      EXPECT_GT(counts.size(), 1u);
    }
  }
}

}  // namespace
}  // namespace rndn::sim::spin_test
