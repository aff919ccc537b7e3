// Weak memory: a scan that looks back and a message between two blocks are right under every order of stores as long as their fences are there; without
// a fence, some order gives a wrong result. Without weak memory nothing of that shows.
#include <algorithm>

#include "tests/simulator/support.h"

namespace rndn::sim::weak_test {
namespace {

std::string without(std::string text, const std::string& what) {
  for (size_t at; (at = text.find(what)) != std::string::npos;) text.erase(at, what.size());
  return text;
}

// Tile t (a ticket) has the value t + 1; out[t] gets the sum of the tiles before. Value and state are apart, so that the fence between them is needed.
// state: 0 nothing, 1 the tile's own value, 2 the sum up to it.
const char* const scan = R"(.version 7.4
.target sm_60
.address_size 64
.visible .entry scan(.param .u64 state, .param .u64 value, .param .u64 out, .param .u64 ticket)
{
  .reg .pred %p; .reg .b32 %t, %s, %own, %sum, %v, %x; .reg .b64 %state, %value, %out, %ticket, %a, %b;
  ld.param.u64 %state, [state]; ld.param.u64 %value, [value]; ld.param.u64 %out, [out]; ld.param.u64 %ticket, [ticket];
  mov.u32 %x, %tid.x; setp.ne.u32 %p, %x, 0; @%p bra done;
  atom.global.add.u32 %t, [%ticket], 1;
  mul.wide.u32 %a, %t, 4; add.u64 %state, %state, %a; add.u64 %value, %value, %a; add.u64 %out, %out, %a;
  add.u32 %own, %t, 1; mov.u32 %sum, 0;
  st.volatile.global.u32 [%value], %own;
  membar.gl; /* publish */
  st.volatile.global.u32 [%state], 1;
  mov.u64 %a, %state; mov.u64 %b, %value; mov.u32 %x, %t;
back:
  setp.eq.u32 %p, %x, 0; @%p bra found;
  sub.u64 %a, %a, 4; sub.u64 %b, %b, 4; sub.u32 %x, %x, 1;
wait:
  ld.volatile.global.u32 %s, [%a];
  setp.eq.u32 %p, %s, 0; @%p bra wait;
  membar.gl; /* take */
  ld.volatile.global.u32 %v, [%b];
  add.u32 %sum, %sum, %v;
  setp.eq.u32 %p, %s, 1; @%p bra back;
found:
  st.global.u32 [%out], %sum;
done:
  ret;
})";

// Sums of the tiles before: all right?
bool scan_is_right(const std::string& target, std::span<const std::byte> cubin, uint64_t seed, bool weak) {
  constexpr uint32_t tiles = 24;
  Machine machine(target, 1 << 20);
  const auto module = machine.load(cubin);
  EXPECT_TRUE(module.ok()) << module.error().message;
  const std::vector<uint32_t> zeros(tiles, 0);
  const uint64_t state = upload(machine, zeros), value = upload(machine, zeros), out = upload(machine, zeros),
                 ticket = upload(machine, zeros);
  Options options;
  options.weak_memory = weak;
  options.deterministic = true;
  options.seed = seed;
  options.max_warp_instructions = 1'000'000;
  const auto done = machine.launch(*module, "scan", {tiles, 1, 1}, {32, 1, 1}, 0,
                                   Parameters().add(state).add(value).add(out).add(ticket).bytes(), options);
  EXPECT_TRUE(done.ok()) << done.error().message;
  const auto sums = download<uint32_t>(machine, out, tiles);
  for (uint32_t t = 0; t < tiles; ++t)
    if (sums[t] != t * (t + 1) / 2) return false;
  return true;
}

// Block 0 reads the message, waits for the flag, reads the message again; block 1 writes message and flag.
const char* const message = R"(.version 7.4
.target sm_70
.address_size 64
.visible .entry message(.param .u64 words, .param .u64 out)
{
  .reg .pred %p; .reg .b32 %c, %x, %y; .reg .b64 %words, %out;
  ld.param.u64 %words, [words]; ld.param.u64 %out, [out];
  mov.u32 %x, %tid.x; setp.ne.u32 %p, %x, 0; @%p bra done;
  mov.u32 %c, %ctaid.x; setp.eq.u32 %p, %c, 1; @%p bra writer;
  ld.global.u32 %x, [%words];
wait:
  ld.relaxed.gpu.global.u32 %y, [%words+128];
  setp.eq.u32 %p, %y, 0; @%p bra wait;
  fence.acq_rel.gpu; /* take */
  ld.global.u32 %y, [%words];
  st.global.u32 [%out], %x; st.global.u32 [%out+4], %y;
  bra done;
writer:
  st.global.u32 [%words], 7;
  fence.acq_rel.gpu; /* publish */
  st.relaxed.gpu.global.u32 [%words+128], 1;
done:
  ret;
})";

uint32_t received(const std::string& target, std::span<const std::byte> cubin, uint64_t seed) {
  Machine machine(target, 1 << 20);
  const auto module = machine.load(cubin);
  EXPECT_TRUE(module.ok()) << module.error().message;
  const uint64_t words = upload(machine, std::vector<uint32_t>(64, 0)),
                 out = upload(machine, std::vector<uint32_t>(2, 0));
  Options options;
  options.weak_memory = true;
  options.seed = seed;
  options.max_warp_instructions = 1'000'000;
  const auto done =
      machine.launch(*module, "message", {2, 1, 1}, {32, 1, 1}, 0, Parameters().add(words).add(out).bytes(), options);
  EXPECT_TRUE(done.ok()) << done.error().message;
  return download<uint32_t>(machine, out, 2)[1];
}

class WeakMemory : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Targets, WeakMemory, ::testing::Values("sm_61", "sm_75", "sm_86", "sm_90"),
                         [](const auto& info) { return info.param; });

constexpr uint64_t seeds = 40;

TEST_P(WeakMemory, AScanWithoutItsFenceIsNoticed) {
  std::string why;
  const std::string ptxas = find_ptxas(why);
  if (ptxas.empty()) GTEST_SKIP() << "skipped: " << why;
  const auto fenced = assemble_with_ptxas(ptxas, scan, GetParam());
  const auto bare = assemble_with_ptxas(ptxas, without(scan, "membar.gl; /* publish */"), GetParam());
  ASSERT_FALSE(fenced.empty() || bare.empty());
  size_t wrong = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    EXPECT_TRUE(scan_is_right(GetParam(), fenced, seed, true)) << "seed " << seed;
    EXPECT_TRUE(scan_is_right(GetParam(), bare, seed, false)) << "seed " << seed;
    wrong += !scan_is_right(GetParam(), bare, seed, true);
  }
  EXPECT_GT(wrong, seeds / 10) << "of " << seeds << " orders";
}

TEST_P(WeakMemory, AMessageWithoutAFenceIsNoticed) {
  if (GetParam() == "sm_61") GTEST_SKIP() << "skipped: fence.acq_rel needs sm_70";
  std::string why;
  const std::string ptxas = find_ptxas(why);
  if (ptxas.empty()) GTEST_SKIP() << "skipped: " << why;
  const auto fenced = assemble_with_ptxas(ptxas, message, GetParam());
  ASSERT_FALSE(fenced.empty());
  for (uint64_t seed = 1; seed <= seeds; ++seed) EXPECT_EQ(received(GetParam(), fenced, seed), 7u) << "seed " << seed;
  for (const char* fence : {"fence.acq_rel.gpu; /* take */", "fence.acq_rel.gpu; /* publish */"}) {
    const auto bare = assemble_with_ptxas(ptxas, without(message, fence), GetParam());
    size_t wrong = 0;
    for (uint64_t seed = 1; seed <= seeds; ++seed) wrong += received(GetParam(), bare, seed) != 7;
    EXPECT_GT(wrong, seeds / 10) << "without " << fence;
  }
}

std::string with(std::string text, const std::string& what, const std::string& instead) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += instead.size())
    text.replace(at, what.size(), instead);
  return text;
}

// A fence of the block's scope orders nothing for another block.
TEST_P(WeakMemory, AFenceOfTheBlockPublishesNothing) {
  std::string why;
  const std::string ptxas = find_ptxas(why);
  if (ptxas.empty()) GTEST_SKIP() << "skipped: " << why;
  const auto narrow =
      assemble_with_ptxas(ptxas, with(scan, "membar.gl; /* publish */", "membar.cta; /* publish */"), GetParam());
  const auto system = assemble_with_ptxas(ptxas, with(scan, "membar.gl;", "membar.sys;"), GetParam());
  ASSERT_FALSE(narrow.empty() || system.empty());
  size_t wrong = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    wrong += !scan_is_right(GetParam(), narrow, seed, true);
    EXPECT_TRUE(scan_is_right(GetParam(), system, seed, true)) << "seed " << seed;
    EXPECT_TRUE(scan_is_right(GetParam(), narrow, seed, false)) << "seed " << seed;
  }
  EXPECT_GT(wrong, 0u) << "of " << seeds << " orders";
}

// The message by release and acquire of each scope; a wider one on one side does not help.
TEST_P(WeakMemory, ReleaseAndAcquireHoldInTheirScope) {
  if (GetParam() == "sm_61") GTEST_SKIP() << "skipped: scopes need sm_70";
  std::string why;
  const std::string ptxas = find_ptxas(why);
  if (ptxas.empty()) GTEST_SKIP() << "skipped: " << why;
  const auto scoped = [&](const std::string& release, const std::string& acquire) {
    std::string text = without(without(message, "fence.acq_rel.gpu; /* take */"), "fence.acq_rel.gpu; /* publish */");
    text = with(text, "st.relaxed.gpu", "st.release." + release);
    return assemble_with_ptxas(ptxas, with(text, "ld.relaxed.gpu", "ld.acquire." + acquire), GetParam());
  };
  for (const char* release : {"cta", "gpu", "sys"})
    for (const char* acquire : {"cta", "gpu", "sys"}) {
      SCOPED_TRACE(std::string(release) + " " + acquire);
      const auto cubin = scoped(release, acquire);
      ASSERT_FALSE(cubin.empty());
      size_t wrong = 0;
      for (uint64_t seed = 1; seed <= seeds; ++seed) wrong += received(GetParam(), cubin, seed) != 7;
      if (*release == 'c' || *acquire == 'c')
        EXPECT_GT(wrong, 0u);
      else
        EXPECT_EQ(wrong, 0u);
    }
}

// 16 blocks of 32 threads count, each thread four times: the sum by operations of the scope, in one place for all blocks or one for each.
uint64_t counted(const std::string& target, std::span<const std::byte> cubin, uint64_t seed, uint32_t stride) {
  Machine machine(target, 1 << 20);
  const auto module = machine.load(cubin);
  EXPECT_TRUE(module.ok()) << module.error().message;
  const uint64_t cells = upload(machine, std::vector<uint32_t>(16 * 8, 0));
  Options options;
  options.weak_memory = true;
  options.seed = seed;
  options.max_warp_instructions = 1'000'000;
  const auto done =
      machine.launch(*module, "count", {16, 1, 1}, {32, 1, 1}, 0, Parameters().add(cells).add(stride).bytes(), options);
  EXPECT_TRUE(done.ok()) << done.error().message;
  uint64_t sum = 0;
  for (uint32_t v : download<uint32_t>(machine, cells, 16 * 8)) sum += v;
  return sum;
}

TEST_P(WeakMemory, AtomicsOfABlockAreNoneAmongBlocks) {
  if (GetParam() == "sm_61") GTEST_SKIP() << "skipped: scopes need sm_70";
  std::string why;
  const std::string ptxas = find_ptxas(why);
  if (ptxas.empty()) GTEST_SKIP() << "skipped: " << why;
  // Compare-and-swap, and an addition whose result is used, once without and once with predicates of other lanes.
  const std::string count = R"(.version 7.4
.target sm_70
.address_size 64
.visible .entry count(.param .u64 cells, .param .u32 stride)
{
  .reg .pred %p; .reg .b32 %c, %t, %x, %y, %z; .reg .b64 %cells, %a;
  ld.param.u64 %cells, [cells]; ld.param.u32 %x, [stride];
  mov.u32 %c, %ctaid.x; mov.u32 %t, %tid.x; mul.lo.u32 %c, %c, %x; mul.wide.u32 %a, %c, 4; add.u64 %cells, %cells, %a;
  atom.relaxed.SCOPE.global.add.u32 %y, [%cells], 1;
  atom.relaxed.SCOPE.global.add.u32 %y, [%cells], 1;
  red.relaxed.SCOPE.global.add.u32 [%cells], 1;
  ld.relaxed.SCOPE.global.u32 %y, [%cells];
again:
  add.u32 %z, %y, 1; mov.u32 %x, %y;
  atom.relaxed.SCOPE.global.cas.b32 %y, [%cells], %x, %z;
  setp.ne.u32 %p, %x, %y; @%p bra again;
  ret;
})";
  const auto narrow = assemble_with_ptxas(ptxas, with(count, "SCOPE", "cta"), GetParam()),
             wide = assemble_with_ptxas(ptxas, with(count, "SCOPE", "gpu"), GetParam());
  ASSERT_FALSE(narrow.empty() || wide.empty());
  constexpr uint64_t all = 16 * 32 * 4;
  size_t lost = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    EXPECT_EQ(counted(GetParam(), wide, seed, 0), all) << "seed " << seed;
    EXPECT_EQ(counted(GetParam(), narrow, seed, 8), all) << "seed " << seed;
    lost += counted(GetParam(), narrow, seed, 0) != all;
  }
  EXPECT_GT(lost, seeds / 10) << "of " << seeds << " orders";
}

// A compare-and-swap that does not swap writes nothing: what another block has stored stays.
TEST_P(WeakMemory, AFailedCompareAndSwapWritesNothing) {
  if (GetParam() == "sm_61") GTEST_SKIP() << "skipped: scopes need sm_70";
  std::string why;
  const std::string ptxas = find_ptxas(why);
  if (ptxas.empty()) GTEST_SKIP() << "skipped: " << why;
  const auto cubin = assemble_with_ptxas(ptxas, R"(.version 7.4
.target sm_70
.address_size 64
.visible .entry k(.param .u64 cell)
{
  .reg .pred %p; .reg .b32 %c, %i, %x; .reg .b64 %a;
  ld.param.u64 %a, [cell]; mov.u32 %c, %ctaid.x; mov.u32 %i, 0; setp.ne.u32 %p, %c, 0; @%p bra other;
again:
  atom.relaxed.cta.global.cas.b32 %x, [%a], 5, 9;
  add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 2000; @%p bra again;
  ret;
other:
  add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 300; @%p bra other;
  st.relaxed.gpu.global.u32 [%a], 1;
  membar.gl;
  ret;
})",
                                         GetParam());
  ASSERT_FALSE(cubin.empty());
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Machine m(GetParam(), 1 << 20);
    const auto module = m.load(cubin);
    ASSERT_TRUE(module.ok()) << module.error().message;
    const uint64_t cell = upload(m, std::vector<uint32_t>(1));
    Options options;
    options.weak_memory = options.deterministic = true;
    options.seed = seed;
    const auto done = m.launch(*module, "k", {2, 1, 1}, {1, 1, 1}, 0, Parameters().add(cell).bytes(), options);
    ASSERT_TRUE(done.ok()) << done.error().message;
    uint32_t value = 0;
    ASSERT_TRUE(m.read(cell, &value, 4).ok());
    EXPECT_EQ(value, 1u) << "seed " << seed;
  }
}

}  // namespace
}  // namespace rndn::sim::weak_test
