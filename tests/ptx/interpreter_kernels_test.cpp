// Whole kernels on the interpreter: many blocks, divergence, what threads do together. Expected values are computed here, on the host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <numeric>

#include "ptx/builder.h"
#include "ptx/interpreter/interpreter.h"
#include "ptx/parse.h"

namespace rndn::ptx::interpreter_kernels_test {
namespace {

using ::testing::HasSubstr;

Module parsed(const std::string& body, const std::string& before = "") {
  std::string text = ".version 7.8\n.target sm_80\n.address_size 64\n" + before +
                     ".visible .entry k(.param .u64 in, .param .u64 out, .param .u32 n)\n{\n" + body + "\n}\n";
  SourceManager sources;
  DiagnosticSink sink;
  Module m = parse(sources.add("k.ptx", text), sources, sink);
  EXPECT_FALSE(sink.has_errors()) << render(sink, sources);
  return m;
}

struct Arguments {
  uint64_t in, out;
  uint32_t n;
};

// Runs kernel `k` of the module and returns `count` words from `out`.
template <class T>
Result<std::vector<T>> run(const Module& m, const std::vector<T>& in, size_t count, uint32_t n, Launch launch) {
  Memory memory;
  Arguments a{memory.allocate(in.size() * sizeof(T)), memory.allocate(count * sizeof(T)), n};
  memory.write(a.in, std::as_bytes(std::span(in)));
  std::byte bytes[20];
  std::memcpy(bytes, &a, 20);
  launch.parameters = bytes;
  launch.max_instructions = 50'000'000;
  Result<InterpreterStats> r = interpret(m, "k", launch, memory);
  if (!r) return r.error();
  std::vector<T> out(count);
  memory.read(a.out, std::as_writable_bytes(std::span(out)));
  return out;
}

// Sum of n doubles: a grid-stride loop, a tree in shared memory, per-block partials, and the last block adds them in order.
Module reduction() {
  Module m;
  m.variables.add({Space::global, Type::u32, "ticket", 0, 0, false, false, {}, UINT32_MAX});
  m.variables.add({Space::global, Type::f64, "partials", 0, 64, false, false, {}, UINT32_MAX});
  Builder b(m, "k");
  auto in = b.parameter<U64>("in"), out = b.parameter<U64>("out");
  auto n = b.parameter<U32>("n");
  SharedVariable tree = b.shared<F64>("tree", 64), last = b.shared<U32>("last");
  SharedVariable ticket{static_cast<VariableId>(0)}, partials{static_cast<VariableId>(1)};
  Reg<U32> tid = b.special(SpecialRegister::tid_x), block = b.special(SpecialRegister::ctaid_x),
           size = b.special(SpecialRegister::ntid_x);
  Reg<U32> blocks = b.special(SpecialRegister::nctaid_x), count = b.ld_param(n);
  Reg<U64> data = b.ld_param(in);
  Reg<U32> i = b.mad_lo(block, size, tid);
  Reg<F64> sum = b.constant<F64>(0.0);
  LabelId loop = b.label(), done = b.label();
  b.bind(loop);
  b.when(b.setp(Compare::ge, i, count)).bra(done);
  b.add(sum, b.ld<F64>(Space::global, Address(b.add(data, b.mul_wide(i, 8)))), sum);
  b.mad_lo(blocks, size, i, i);
  b.bra(loop);
  b.bind(done);
  Reg<U32> slot = b.mad_lo(tid, 8, b.address_of_32(tree));
  b.st<F64>(Space::shared, Address(slot), sum);
  for (uint32_t half = 32; half >= 1; half /= 2) {  // 64 threads
    b.bar_sync();
    LabelId skip = b.label();
    b.when(b.setp(Compare::ge, tid, half)).bra(skip);
    Reg<F64> other = b.ld<F64>(Space::shared, Address(slot, 8 * half)), mine = b.ld<F64>(Space::shared, Address(slot));
    b.st<F64>(Space::shared, Address(slot), b.add(mine, other));
    b.bind(skip);
  }
  LabelId end = b.label();
  Reg<Pred> first = b.setp(Compare::eq, tid, 0), others = b.setp(Compare::ne, tid, 0);
  b.when(others).bra(end);
  Reg<U64> mine = b.add(b.address_of(partials), b.mul_wide(block, 8));
  b.st<F64>(Space::global, Address(mine), b.ld<F64>(Space::shared, Address(tree)));
  b.membar(Scope::gpu);
  Reg<U32> order = b.atom<U32>(AtomicOp::inc, Space::global, Address(ticket), b.sub(blocks, 1));
  b.when(b.setp(Compare::ne, order, Value<U32>(b.sub(blocks, 1)))).bra(end);
  Reg<U32> k = b.constant<U32>(0);
  Reg<F64> total = b.constant<F64>(0.0);
  LabelId each = b.here();
  b.add(total, b.ld<F64>(Space::global, Address(b.add(b.address_of(partials), b.mul_wide(k, 8)))), total);
  b.add(k, 1, k);
  b.when(b.setp(Compare::lt, k, blocks)).bra(each);
  b.st<F64>(Space::global, Address(b.ld_param(out)), total);
  b.bind(end);
  b.ret();
  b.finish();
  (void)first, (void)last;
  return m;
}

TEST(Kernels, MultiBlockReduction) {
  Module m = reduction();
  EXPECT_THAT(verify(m), ::testing::IsEmpty());
  for (uint32_t n : {0u, 1u, 63u, 64u, 65u, 1000u})
    for (uint32_t blocks : {1u, 3u, 7u})
      for (uint64_t seed : {0, 1, 2}) {
        std::vector<double> in(n);
        for (uint32_t k = 0; k < n; ++k) in[k] = 0.25 * k - 7;  // sums of quarters are exact in any order
        Launch launch{.grid = {blocks, 1, 1}, .block = {64, 1, 1}, .seed = seed};
        auto out = run<double>(m, in, 1, n, launch);
        ASSERT_TRUE(out) << out.error().message;
        EXPECT_EQ((*out)[0], std::accumulate(in.begin(), in.end(), 0.0))
            << n << " elements, " << blocks << " blocks, seed " << seed;
      }
}

TEST(Kernels, PrintedAndParsedAgainItDoesTheSame) {
  Module m = reduction();
  SourceManager sources;
  DiagnosticSink sink;
  Module again = parse(sources.add("r.ptx", print(m)), sources, sink);
  ASSERT_FALSE(sink.has_errors()) << render(sink, sources);
  EXPECT_EQ(print(again), print(m));
  std::vector<double> in = {1, 2, 3, 4.5};
  auto out = run<double>(again, in, 1, 4, {.grid = {2, 1, 1}, .block = {64, 1, 1}});
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_EQ((*out)[0], 10.5);
}

constexpr const char* prologue = R"(
  .reg .b64 %in, %out, %at; .reg .b32 %tid, %v, %w, %x; .reg .pred %p, %q;
  ld.param.u64 %in, [in]; ld.param.u64 %out, [out];
  mov.u32 %tid, %tid.x;
  mul.wide.u32 %at, %tid, 4; add.s64 %out, %out, %at; add.s64 %in, %in, %at;
)";

// Each thread computes one word from its number; `of` says which.
void expect_words(const std::string& body, uint32_t threads, const std::function<uint32_t(uint32_t)>& of) {
  Module m = parsed(prologue + body + "\n st.global.u32 [%out], %v; ret;");
  std::vector<uint32_t> in(threads);
  for (uint32_t k = 0; k < threads; ++k) in[k] = k * k + 3;
  for (uint64_t seed : {0, 5, 9}) {
    auto out = run<uint32_t>(m, in, threads, 0, {.block = {threads, 1, 1}, .seed = seed});
    ASSERT_TRUE(out) << body << ": " << out.error().message;
    for (uint32_t k = 0; k < threads; ++k) ASSERT_EQ((*out)[k], of(k)) << body << ", thread " << k << ", seed " << seed;
  }
}

TEST(Kernels, Shuffles) {
  auto in = [](uint32_t k) { return k * k + 3; };
  expect_words("ld.global.u32 %w, [%in]; shfl.sync.down.b32 %v, %w, 5, 31, -1;", 64,
               [&](uint32_t k) { return k % 32 + 5 < 32 ? in(k + 5) : in(k); });
  expect_words("ld.global.u32 %w, [%in]; shfl.sync.up.b32 %v, %w, 3, 0, -1;", 64,
               [&](uint32_t k) { return k % 32 >= 3 ? in(k - 3) : in(k); });
  expect_words("ld.global.u32 %w, [%in]; shfl.sync.bfly.b32 %v, %w, 16, 31, -1;", 64,
               [&](uint32_t k) { return in(k ^ 16); });
  expect_words("ld.global.u32 %w, [%in]; shfl.sync.idx.b32 %v, %w, 7, 31, -1;", 64,
               [&](uint32_t k) { return in(k / 32 * 32 + 7); });
  // Segments of 8: clamp 0x181F = mask 0b11000 for segments, width 8.
  expect_words("ld.global.u32 %w, [%in]; shfl.sync.idx.b32 %v, %w, 2, 0x181F, -1;", 32,
               [&](uint32_t k) { return in(k / 8 * 8 + 2); });
  expect_words("ld.global.u32 %w, [%in]; shfl.sync.down.b32 %v|%p, %w, 1, 0x181F, -1; selp.b32 %v, 1, 0, %p;", 32,
               [&](uint32_t k) { return k % 8 != 7 ? 1u : 0u; });
}

TEST(Kernels, VotesAndMatches) {
  expect_words("and.b32 %w, %tid, 1; setp.eq.u32 %p, %w, 0; vote.sync.ballot.b32 %v, %p, -1;", 64,
               [](uint32_t) { return 0x55555555u; });
  expect_words("setp.lt.u32 %p, %tid, 40; vote.sync.all.pred %q, %p, -1; selp.b32 %v, 1, 0, %q;", 64,
               [](uint32_t k) { return k < 32 ? 1u : 0u; });
  expect_words("setp.eq.u32 %p, %tid, 40; vote.sync.any.pred %q, %p, -1; selp.b32 %v, 1, 0, %q;", 64,
               [](uint32_t k) { return k < 32 ? 0u : 1u; });
  expect_words("setp.eq.u32 %p, %tid, 40; vote.sync.uni.pred %q, !%p, -1; selp.b32 %v, 1, 0, %q;", 64,
               [](uint32_t k) { return k < 32 ? 1u : 0u; });
  expect_words("shr.u32 %w, %tid, 2; match.any.sync.b32 %v, %w, -1;", 32,
               [](uint32_t k) { return 0xFu << (k / 4 * 4); });
  expect_words("shr.u32 %w, %tid, 5; match.all.sync.b32 %v|%p, %w, -1; selp.b32 %v, %v, 0, %p;", 64,
               [](uint32_t) { return 0xFFFFFFFFu; });
  expect_words("match.all.sync.b32 %v|%p, %tid, -1; selp.b32 %x, 1, 0, %p; add.u32 %v, %v, %x;", 32,
               [](uint32_t) { return 0u; });
  expect_words("redux.sync.add.u32 %v, %tid, -1;", 64, [](uint32_t k) { return k < 32 ? 496u : 496u + 1024; });
  expect_words("sub.s32 %w, 5, %tid; redux.sync.min.s32 %v, %w, -1;", 32,
               [](uint32_t) { return static_cast<uint32_t>(5 - 31); });
  expect_words("redux.sync.xor.b32 %v, %tid, -1;", 32, [](uint32_t) { return 0u; });
  expect_words("activemask.b32 %v;", 32, [](uint32_t) { return 0xFFFFFFFFu; });
  expect_words("mov.u32 %v, 0; setp.lt.u32 %p, %tid, 8; @%p activemask.b32 %v;", 32,
               [](uint32_t k) { return k < 8 ? 0xFFu : 0u; });
  // Half a warp votes for itself, in two branches.
  expect_words(
      "setp.lt.u32 %p, %tid, 16; setp.ne.u32 %q, %tid, 3; @%p bra A; vote.sync.ballot.b32 %v, %q, 0xFFFF0000; bra B;"
      "A: vote.sync.ballot.b32 %v, %q, 0xFFFF; B:",
      32, [](uint32_t k) { return k < 16 ? 0xFFF7u : 0xFFFF0000u; });
  expect_words("mov.u32 %v, %lanemask_lt; popc.b32 %v, %v;", 40, [](uint32_t k) { return k % 32; });
  expect_words("mov.u32 %v, %warpid; mov.u32 %w, %laneid; mad.lo.u32 %v, %v, 32, %w;", 70,
               [](uint32_t k) { return k; });
}

TEST(Kernels, Barriers) {
  // Each thread reads what its neighbour in another warp wrote.
  expect_words(
      ".shared .align 4 .b8 s[512]; { .reg .b32 a, b; mov.u32 a, s; mad.lo.u32 b, %tid, 4, a; st.shared.u32 [b], %tid;"
      "bar.sync 0; xor.b32 b, %tid, 64; mad.lo.u32 b, b, 4, a; ld.shared.u32 %v, [b]; }",
      128, [](uint32_t k) { return k ^ 64; });
  // Divergent paths to one barrier; threads that have exited are not waited for.
  expect_words(
      ".shared .align 4 .b8 s[512]; { .reg .b32 a, b; mov.u32 a, s; mad.lo.u32 b, %tid, 4, a; mov.u32 %v, 7;"
      "setp.ge.u32 %p, %tid, 64; @%p st.global.u32 [%out], %v; @%p exit; st.shared.u32 [b], %tid; setp.lt.u32 %p, "
      "%tid, 32; @%p bra W;"
      "bar.sync 1; bra D; W: add.u32 %v, %v, 1; bar.sync 1; D: xor.b32 b, %tid, 33; mad.lo.u32 b, b, 4, a; "
      "ld.shared.u32 %v, [b]; }",
      128, [](uint32_t k) { return k >= 64 ? 7 : k ^ 33; });
  expect_words("setp.lt.u32 %p, %tid, 20; bar.red.popc.u32 %v, 0, %p;", 96, [](uint32_t) { return 20u; });
  expect_words("setp.lt.u32 %p, %tid, 20; bar.red.and.pred %q, 0, %p; selp.b32 %v, 1, 2, %q;", 96,
               [](uint32_t) { return 2u; });
  expect_words("setp.lt.u32 %p, %tid, 20; bar.red.or.pred %q, 0, %p; selp.b32 %v, 1, 2, %q;", 96,
               [](uint32_t) { return 1u; });
  // Producer and consumer: one warp arrives, the other waits for both.
  expect_words(
      ".shared .align 4 .b8 s[4]; setp.lt.u32 %p, %tid, 32; @!%p bra C; st.shared.u32 [s], 99; bar.arrive 2, 64; "
      "mov.u32 %v, 1; bra E;"
      "C: bar.sync 2, 64; ld.shared.u32 %v, [s]; E:",
      64, [](uint32_t k) { return k < 32 ? 1u : 99u; });
  // A spin loop on another warp's flag, whichever runs first.
  expect_words(
      ".shared .align 4 .b8 s[4]; st.shared.u32 [s], 0; bar.sync 0; setp.eq.u32 %p, %tid, 40; @%p "
      "st.volatile.shared.u32 [s], 5;"
      "S: ld.volatile.shared.u32 %v, [s]; setp.eq.u32 %q, %v, 0; @%q bra S;",
      64, [](uint32_t) { return 5u; });
  expect_words("bar.warp.sync -1; mov.u32 %v, 3;", 48, [](uint32_t) { return 3u; });
}

TEST(Kernels, BranchesOfUniAreTakenByAllOrNone) {
  auto runs = [](const std::string& body) {
    auto out = run<uint32_t>(parsed(prologue + body + " ret;"), {}, 1, 0, {.block = {64, 1, 1}});
    return out ? "" : out.error().message;
  };
  const std::string differs = "threads of the warp that have come here together go different ways, against .uni";
  EXPECT_THAT(runs("setp.eq.u32 %p, %tid, 37; @%p bra.uni L; mov.u32 %v, 1; L:"),
              ::testing::AllOf(HasSubstr("thread (37,0,0)"), HasSubstr("`@%p bra.uni L;`"), HasSubstr(differs)));
  EXPECT_EQ(runs("setp.lt.u32 %p, %tid, 32; @%p bra.uni L; mov.u32 %v, 1; L:"), "");
  // Those of odd number come by another way: nothing says that they are together with the others, until all have met.
  const std::string apart = "and.b32 %v, %tid, 1; setp.eq.u32 %p, %v, 0; @%p bra A; add.u32 %v, %v, 1; A: ",
                    branch = "@%p bra.uni L; mov.u32 %v, 1; L:";
  EXPECT_EQ(runs(apart + branch), "");
  for (const char* meeting : {"bar.sync 0;", "bar.warp.sync -1;", "vote.sync.ballot.b32 %w, %p, -1;"})
    EXPECT_THAT(runs(apart + meeting + branch), HasSubstr(differs)) << meeting;
  // A loop that each thread leaves in a round of its own; a uniform loop.
  const std::string loop = "mov.u32 %v, 0; B: add.u32 %v, %v, 1; setp.lt.u32 %p, %v, ";
  EXPECT_THAT(runs(loop + "%tid; @%p bra.uni B;"), HasSubstr(differs));
  EXPECT_EQ(runs(loop + "%tid; @%p bra B; setp.lt.u32 %p, %tid, 30; @%p bra.uni C; C:"), "");
  EXPECT_EQ(runs(loop + "70; @%p bra.uni B;"), "");
}

TEST(Kernels, DeadlocksAreErrors) {
  Module m = parsed(std::string(prologue) + "setp.eq.u32 %p, %tid, 0; @%p bra L; bar.sync 1; L: bar.sync 2; ret;");
  auto out = run<uint32_t>(m, {}, 1, 0, {.block = {2, 1, 1}});
  ASSERT_FALSE(out);
  EXPECT_THAT(out.error().message, HasSubstr("deadlock"));
  Module w = parsed(std::string(prologue) + "setp.eq.u32 %p, %tid, 0; @%p bra L; bar.sync 1; L: bar.warp.sync 3; ret;");
  out = run<uint32_t>(w, {}, 1, 0, {.block = {2, 1, 1}});
  ASSERT_FALSE(out);
  EXPECT_THAT(out.error().message, HasSubstr("deadlock"));
  Module own = parsed(std::string(prologue) + "bar.warp.sync 2; ret;");
  out = run<uint32_t>(own, {}, 1, 0, {.block = {1, 1, 1}});
  ASSERT_FALSE(out);
  EXPECT_THAT(out.error().message, HasSubstr("not in its own member mask"));
}

TEST(Kernels, GridsInThreeDimensionsAndOrders) {
  Module m = parsed(R"(
    .reg .b64 %o, %at; .reg .b32 %i, %a, %b; ld.param.u64 %o, [out];
    mov.u32 %i, %ctaid.z; mov.u32 %a, %nctaid.y; mov.u32 %b, %ctaid.y; mad.lo.u32 %i, %i, %a, %b;
    mov.u32 %a, %nctaid.x; mov.u32 %b, %ctaid.x; mad.lo.u32 %i, %i, %a, %b;
    mov.u32 %a, %ntid.y; mov.u32 %b, %tid.y; mad.lo.u32 %i, %i, %a, %b;
    mov.u32 %a, %ntid.x; mov.u32 %b, %tid.x; mad.lo.u32 %i, %i, %a, %b;
    mul.wide.u32 %at, %i, 4; add.s64 %at, %at, %o; red.global.add.u32 [%at], 1; ret;)");
  for (uint64_t seed : {0, 3, 11}) {
    auto out = run<uint32_t>(m, {}, 2 * 3 * 4 * 5 * 6, 0, {.grid = {4, 3, 2}, .block = {6, 5, 1}, .seed = seed});
    ASSERT_TRUE(out) << out.error().message;
    for (uint32_t v : *out) ASSERT_EQ(v, 1u);  // every thread of every block exactly once
  }
}

TEST(Kernels, CallsWithResultsAndLocals) {
  Module m = parsed(R"(
    .reg .b64 %o; .reg .b32 %v; ld.param.u64 %o, [out];
    { .param .b32 x; .param .b32 r; st.param.b32 [x], 6; call.uni (r), factorial, (x); ld.param.b32 %v, [r]; }
    st.global.u32 [%o], %v; ret;)",
                    R"(
.func (.param .b32 result) factorial(.param .b32 n)
{
  .local .align 4 .b8 keep[4];
  .reg .b32 %n, %m; .reg .pred %p;
  ld.param.b32 %n, [n];
  setp.lt.u32 %p, %n, 2;
  @%p bra ONE;
  st.local.u32 [keep], %n;
  sub.u32 %m, %n, 1;
  { .param .b32 x; .param .b32 r; st.param.b32 [x], %m; call.uni (r), factorial, (x); ld.param.b32 %m, [r]; }
  ld.local.u32 %n, [keep];
  mul.lo.u32 %m, %m, %n;
  st.param.b32 [result], %m;
  ret;
ONE: st.param.b32 [result], 1;
  ret;
}
)");
  auto out = run<uint32_t>(m, {}, 1, 0, {});
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_EQ((*out)[0], 720u);
}

TEST(Kernels, GlobalsConstantsAndDynamicSharedMemory) {
  Module m = parsed(R"(
    .reg .b64 %o, %p; .reg .b32 %v, %w; ld.param.u64 %o, [out];
    ld.const.u32 %v, [table+8]; ld.global.u32 %w, [counter]; add.u32 %v, %v, %w; st.global.u32 [counter], %v;
    st.shared.u32 [dynamic+12], %v; ld.shared.u32 %v, [dynamic+12]; st.global.u32 [%o], %v;
    mov.u64 %p, table; cvta.const.u64 %p, %p; ld.u32 %v, [%p+4]; st.global.u32 [%o+4], %v; ret;)",
                    ".const .align 4 .u32 table[4] = {10, 20, 30};\n.global .u32 counter = 5;\n.extern .shared .align "
                    "16 .b8 dynamic[];\n");
  auto out = run<uint32_t>(m, {}, 2, 0, {.dynamic_shared = 16});
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_THAT(*out, ::testing::ElementsAre(35, 20));
  out = run<uint32_t>(m, {}, 2, 0, {.dynamic_shared = 12});
  ASSERT_FALSE(out);
  EXPECT_THAT(out.error().message, HasSubstr("outside the 12 bytes of shared memory"));
}

TEST(Kernels, WrongLaunches) {
  Module m = parsed("ret;");
  Memory memory;
  auto message = [&](Launch l, const char* name = "k") {
    auto r = interpret(m, name, l, memory);
    return r ? std::string() : r.error().message;
  };
  std::vector<std::byte> right(20);
  EXPECT_EQ(message({.parameters = right}), "");
  EXPECT_THAT(message({.parameters = right}, "other"), HasSubstr("no kernel `other`"));
  EXPECT_THAT(message({}), HasSubstr("0 bytes of parameters, expected 20"));
  EXPECT_THAT(message({.block = {1025, 1, 1}, .parameters = right}), HasSubstr("1025 threads"));
  EXPECT_THAT(message({.grid = {0, 1, 1}, .parameters = right}), HasSubstr("0 blocks"));
  EXPECT_THAT(message({.dynamic_shared = 300000, .parameters = right}), HasSubstr("shared memory"));
}

}  // namespace
}  // namespace rndn::ptx::interpreter_kernels_test
