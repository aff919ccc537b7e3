// Loops that ptx/transform/unroll.cpp unrolls, and loops that it must leave: the module before against the module behind in the PTX interpreter, our code on every
// target against both.
#include "ptx/transform/unroll.h"

#include <map>

#include "tests/assembler/three_ways.h"
#include "tests/support/every_case.h"

namespace rndn::assembler::testing::unroll_test {
namespace {

constexpr size_t all_threads = size_t{blocks} * threads;

struct Start {
  uint64_t counter, bound;
};

// How a loop counts. `goes_on` is the comparison that lets it go on.
struct Count {
  const char* type;  // "u32"
  const char* goes_on;
  int64_t step;
  uint32_t bits() const { return type[1] == '6' ? 64 : 32; }
  bool is_signed() const { return type[0] == 's'; }
  uint64_t cut(uint64_t v) const { return bits() == 64 ? v : v & 0xffffffff; }
  uint64_t least() const { return is_signed() ? uint64_t{1} << (bits() - 1) : 0; }
  uint64_t most() const { return cut(least() - 1); }
  bool holds(uint64_t a, uint64_t b) const {
    const std::string c = goes_on;
    if (c == "ne") return a != b;
    // The order of signed numbers is that of unsigned ones from the least on.
    a = cut(a - least()), b = cut(b - least());
    if (c == "lt" || c == "lo") return a < b;
    if (c == "le" || c == "ls") return a <= b;
    if (c == "gt" || c == "hi") return a > b;
    return a >= b;
  }
  // Iterations from there; most + 1: more than `most`.
  uint32_t trips(Start s, uint32_t limit) const {
    uint32_t n = 0;
    uint64_t i = s.counter;
    do i = cut(i + static_cast<uint64_t>(step));
    while (++n <= limit && holds(i, s.bound));
    return n;
  }
  // Whether the counter leaves the type's numbers on so many steps.
  bool wraps(Start s, uint32_t n) const {
    const uint64_t room = step > 0 ? cut(most() - s.counter) : cut(s.counter - least());
    return room / static_cast<uint64_t>(std::abs(step)) < n;
  }
  std::string opposite() const {
    static const std::map<std::string, std::string> table = {{"ne", "eq"}, {"lt", "ge"}, {"le", "gt"},
                                                             {"gt", "le"}, {"ge", "lt"}, {"lo", "hs"},
                                                             {"ls", "hi"}, {"hi", "ls"}, {"hs", "lo"}};
    return table.at(goes_on);
  }
  std::string mirrored() const {
    static const std::map<std::string, std::string> table = {{"ne", "ne"}, {"lt", "gt"}, {"le", "ge"},
                                                             {"gt", "lt"}, {"ge", "le"}, {"lo", "hi"},
                                                             {"ls", "hs"}, {"hi", "lo"}, {"hs", "ls"}};
    return table.at(goes_on);
  }
};

// A kernel of the tests' shape: %u and %v are the thread's counter and bound in 64 bits, %a and %b in 32, %w and %c a number, %in and %out pointers to what the
// thread may read (1,500 bytes) and write. What the body leaves in %x, %y, %z, %f and the counters is stored.
std::string kernel(const std::string& body) {
  return ".version 7.0\n.target sm_60\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
         ".reg .b32 %a, %b, %c, %i<4>, %x, %y, %t<12>;\n.reg .b64 %d<8>, %u, %v, %w, %z, %s<12>, %in, %out;\n"
         ".reg .b16 %h<6>;\n.reg .f32 %f<6>;\n.reg .pred %p, %q, %r, %k;\n.shared .align 8 .b8 words[12288];\n"
         "ld.param.u64 %d1, [in];\nld.param.u64 %d2, [out];\nmov.u32 %i1, %tid.x;\nmov.u32 %i2, %ctaid.x;\n"
         "mad.lo.u32 %i3, %i2, 96, %i1;\nmad.wide.u32 %d3, %i3, 24, %d1;\nmad.wide.u32 %out, %i3, 768, %d2;\n"
         "mad.wide.u32 %in, %i1, 8, %d1;\n"
         "ld.global.u64 %u, [%d3];\nld.global.u64 %v, [%d3+8];\nld.global.u64 %w, [%d3+16];\n"
         "cvt.u32.u64 %a, %u;\ncvt.u32.u64 %b, %v;\ncvt.u32.u64 %c, %w;\n"
         "mov.u32 %x, 7;\nmov.u32 %y, 9;\nmov.u64 %z, 11;\nmov.f32 %f1, 0f3f800000;\nmov.u16 %h1, 5;\n"
         "setp.ne.u32 %q, %c, 0;\nsetp.ne.u32 %p, %c, 1;\n" +
         body +
         "st.global.u32 [%out], %x;\nst.global.u32 [%out+4], %y;\nst.global.u64 [%out+8], %z;\nst.global.u64 "
         "[%out+16], %u;\n"
         "st.global.u32 [%out+24], %a;\nst.global.f32 [%out+28], %f1;\nselp.u32 %x, 1, 0, %p;\nst.global.u32 "
         "[%out+32], %x;\n"
         "cvt.u32.u16 %y, %h1;\nst.global.u32 [%out+36], %y;\nret;\n}\n";
}

enum Form { plain, opposite, mirrored, by_copy, literal_bound, forms };

// `body` in a loop that counts in such a form. TOP, its label, may be given a body of its own before.
std::string loop(const Count& c, const std::string& body, Form form, uint64_t bound = 0) {
  const bool wide = c.bits() == 64;
  const std::string i = wide ? "%u" : "%a", t = wide ? "%s11" : "%t11",
                    n = form == literal_bound ? std::to_string(static_cast<int64_t>(bound))
                        : wide                ? "%v"
                                              : "%b";
  std::string text = "TOP:\n" + body;
  const std::string add_type = wide ? "s64" : "s32";
  if (form == by_copy) {
    text += fmt::format("add.{} {}, {}, {};\nsetp.{}.{} %p, {}, {};\nmov.b{} {}, {};\n", add_type, t, i, c.step,
                        c.goes_on, c.type, t, n, c.bits(), i, t);
    return text + "@%p bra TOP;\n";
  }
  text += fmt::format("add.{} {}, {}, {};\n", add_type, i, i, c.step);
  if (form == opposite)
    return text + fmt::format("setp.{}.{} %p, {}, {};\n@!%p bra TOP;\n", c.opposite(), c.type, i, n);
  if (form == mirrored) return text + fmt::format("setp.{}.{} %p, {}, {};\n@%p bra TOP;\n", c.mirrored(), c.type, n, i);
  return text + fmt::format("setp.{}.{} %p, {}, {};\n@%p bra TOP;\n", c.goes_on, c.type, i, n);
}

// Every read tells; nothing may get lost, be done twice or in another order.
const std::string accumulate =
    "ld.global.u32 %t1, [%in];\nmad.lo.u32 %x, %x, 31, %t1;\nxor.b32 %x, %x, %a;\ncvt.u32.u64 %t2, %u;\n"
    "xor.b32 %x, %x, %t2;\nadd.u32 %y, %y, 1;\nadd.s64 %in, %in, 4;\n";

std::vector<uint64_t> words_of(const std::vector<Start>& starts) {
  std::vector<uint64_t> words = input_words();
  for (size_t k = 0; k < all_threads; ++k) {
    words[3 * k] = starts[k % starts.size()].counter;
    words[3 * k + 1] = starts[k % starts.size()].bound;
  }
  return words;
}

struct Ran {
  std::vector<uint64_t> out;
  uint64_t instructions = 0;
};
Ran interpret(const ptx::Module& module, const std::vector<uint64_t>& in) {
  ptx::Memory memory;
  uint64_t args[2] = {memory.allocate(in.size() * 8), memory.allocate(out_words * 8)};
  memory.write(args[0], std::as_bytes(std::span(in)));
  ptx::Launch launch;
  launch.grid = {blocks, 1, 1};
  launch.block = {threads, 1, 1};
  launch.parameters = std::as_bytes(std::span(args));
  const auto stats = ptx::interpret(module, "k", launch, memory);
  EXPECT_TRUE(stats.ok()) << stats.error().message;
  Ran ran{std::vector<uint64_t>(out_words), stats.ok() ? stats->instructions : 0};
  memory.read(args[1], std::as_writable_bytes(std::span(ran.out)));
  return ran;
}

// None where there is nothing to unroll.
std::optional<ptx::Module> unrolled_of(const ptx::Module& module) {
  auto made = unroll(module);
  EXPECT_TRUE(made.ok());
  return made.ok() ? *std::move(made) : std::nullopt;
}

// The module unrolled, right as PTX and with the same results; on_targets: our code, too.
void same(const std::string& text, const std::vector<uint64_t>& in, bool on_targets, uint64_t* saved = nullptr) {
  const ptx::Module module = parse_text("loop.ptx", text);
  const auto unrolled = unrolled_of(module);
  ASSERT_TRUE(unrolled) << text;
  const auto problems = ptx::verify(*unrolled);
  ASSERT_TRUE(problems.empty()) << problems[0] << "\n" << ptx::print(*unrolled);
  EXPECT_EQ(ptx::print(parse_text("printed.ptx", ptx::print(*unrolled))), ptx::print(*unrolled));
  const Ran expected = interpret(module, in), got = interpret(*unrolled, in);
  ASSERT_EQ(difference(expected.out, got.out, 96), "") << text << ptx::print(*unrolled);
  if (saved) *saved = expected.instructions - std::min(expected.instructions, got.instructions);
  if (on_targets) our_code(module, both_families, {3}, in, expected.out);
}

// Counters and bounds near each other, near both ends of the type and around zero, as far as the loop ends in time.
std::vector<Start> starts(const Count& c, uint32_t limit, std::map<uint32_t, uint32_t>& trips) {
  std::vector<Start> all;
  const uint64_t places[] = {0,
                             c.least(),
                             c.most(),
                             c.cut(c.least() + 7),
                             c.cut(c.most() - 7),
                             c.cut(c.most() - 40),
                             c.cut(c.least() + 40),
                             1000,
                             c.cut(0x80000000),
                             c.cut(uint64_t{0} - 20)};
  for (const uint64_t place : places)
    for (int64_t apart = -40; apart <= 90; ++apart)
      for (const bool at_bound : {false, true}) {
        const uint64_t other = c.cut(place + static_cast<uint64_t>(apart));
        const Start s = at_bound ? Start{other, place} : Start{place, other};
        if (const uint32_t n = c.trips(s, limit); n <= limit) all.push_back(s), ++trips[n];
      }
  // Some of every kind, in an order in which neighbours differ.
  std::mt19937_64 random(1);
  std::ranges::shuffle(all, random);
  return all;
}

const Count counts[] = {{"u32", "ne", 1},  {"u32", "ne", -1}, {"s32", "ne", 3},  {"b32", "ne", -4}, {"u64", "ne", -4},
                        {"b64", "ne", 3},  {"s64", "ne", 1},  {"u32", "lt", 1},  {"u32", "lo", 3},  {"u32", "le", 3},
                        {"u32", "ls", 1},  {"s32", "lt", 1},  {"s32", "lt", 3},  {"s32", "le", 3},  {"s32", "le", 1},
                        {"u32", "gt", -1}, {"u32", "hi", -4}, {"u32", "ge", -4}, {"u32", "hs", -1}, {"s32", "gt", -4},
                        {"s32", "gt", -1}, {"s32", "ge", -4}, {"s32", "ge", -1}, {"u64", "lt", 3},  {"u64", "le", 1},
                        {"s64", "lt", 1},  {"s64", "le", 3},  {"u64", "gt", -4}, {"u64", "hs", -1}, {"s64", "gt", -1},
                        {"s64", "ge", -4}};

TEST(Unroll, EveryComparisonSignAndEdge) {
  size_t kernels = 0;
  rndn::test::Sample sample(3);
  for (const Count& c : counts) {
    std::map<uint32_t, uint32_t> trips;
    std::vector<Start> all = starts(c, 40, trips);
    ASSERT_GE(all.size(), all_threads) << c.type << c.goes_on << c.step;
    for (uint32_t n = 1; n <= 12; ++n) EXPECT_GT(trips[n], 0u) << c.type << c.goes_on << c.step << ": " << n;
    for (Form form : {plain, opposite, mirrored, by_copy}) {
      ++kernels;
      if (!sample.has_next()) continue;
      SCOPED_TRACE(fmt::format("{} {} {}, form {}", c.goes_on, c.type, c.step, static_cast<int>(form)));
      uint64_t saved = 0;
      for (size_t first = 0; first < all.size(); first += all_threads) {
        std::vector<Start> part(all.begin() + static_cast<ptrdiff_t>(first),
                                all.begin() + static_cast<ptrdiff_t>(std::min(first + all_threads, all.size())));
        uint64_t here = 0;
        same(kernel(loop(c, accumulate, form)), words_of(part), first == 0 && form == plain, &here);
        saved += here;
      }
      EXPECT_GT(saved, 0u) << "no thread ran iterations without a test";
    }
  }
  EXPECT_EQ(kernels, 4 * std::size(counts));
}

// Steps so large that a counter goes round the type: the tests between iterations say what nobody could tell from the ends.
TEST(Unroll, CountersThatWrap) {
  const Count wrapping[] = {{"u32", "ne", 1 << 23},       {"u32", "ne", -(1 << 23)},     {"s32", "ne", 5 << 20},
                            {"u32", "lt", (1 << 23) + 5}, {"s32", "lt", (1 << 23) + 5},  {"u32", "le", 16777215},
                            {"s32", "le", 16777213},      {"u32", "gt", -(1 << 23) - 3}, {"s32", "ge", -16777213},
                            {"u32", "ge", -16777211},     {"s32", "gt", -16777215}};
  for (const Count& c : wrapping) {
    SCOPED_TRACE(fmt::format("{} {} {}", c.goes_on, c.type, c.step));
    std::vector<Start> all;
    size_t round = 0;
    std::mt19937_64 random(3);
    while (all.size() < all_threads) {
      // Long ones begin so many steps before one of the few numbers that end the loop; the others anywhere.
      const bool is_long = all.size() % 16 == 0;
      const uint64_t step = static_cast<uint64_t>(std::abs(c.step)), near = random() % (is_long ? step / 4 : 2 * step);
      Start s{c.cut(random()), c.cut(c.step > 0 ? c.most() - near : c.least() + near)};
      if (is_long)
        s.counter = c.cut((c.step > 0 ? c.most() : c.least()) - static_cast<uint64_t>(c.step) * (310 + random() % 290));
      if (!is_long && random() % 4 == 0) s.bound = c.cut(c.step > 0 ? c.least() + near : c.most() - near);
      if (!is_long && random() % 3 == 0) s.counter = c.cut(s.bound + near - step);
      if (std::string(c.goes_on) == "ne") s.bound = c.cut(s.counter + static_cast<uint64_t>(c.step) * (random() % 600));
      const uint32_t n = c.trips(s, 600);
      if (n > 600 || (n > 300) != (all.size() % 16 == 0)) continue;  // few long ones, which wrap
      if (n > 300 && !c.wraps(s, n)) continue;
      all.push_back(s), round += c.wraps(s, n);
    }
    EXPECT_GE(round, all_threads / 16);
    same(kernel(loop(c, "xor.b32 %t1, %a, %c;\nmad.lo.u32 %x, %x, 31, %t1;\nadd.u32 %y, %y, 1;\n", plain)),
         words_of(all), true);
  }
}

// Bounds that are literals, with those where the question has no answer in the type: such loops stay.
TEST(Unroll, LiteralBounds) {
  for (const Count& c : counts) {
    size_t unrolled = 0, left = 0;
    for (const uint64_t bound :
         {uint64_t{0}, uint64_t{1}, uint64_t{5}, uint64_t{12}, uint64_t{100}, uint64_t(-1), uint64_t(-9),
          uint64_t(-100), c.most(), c.least(), c.most() - 2, c.least() + 3, c.most() - 12, c.least() + 12}) {
      std::vector<Start> all;
      for (int64_t k = -60; k <= 60; ++k) {
        const Start s{c.cut(bound + static_cast<uint64_t>(k)), c.cut(bound)};
        if (c.trips(s, 60) <= 60) all.push_back(s);
      }
      if (all.empty()) continue;
      const uint64_t as_literal = c.bits() == 32 ? static_cast<uint64_t>(static_cast<int32_t>(bound)) : bound;
      const std::string text = kernel(loop(c, accumulate, literal_bound, as_literal));
      SCOPED_TRACE(fmt::format("{} {} {} to {}", c.goes_on, c.type, c.step, static_cast<int64_t>(as_literal)));
      if (!unrolled_of(parse_text("loop.ptx", text))) {
        ++left;
        continue;
      }
      ++unrolled;
      same(text, words_of(all), bound == 5);
    }
    EXPECT_GT(unrolled, 4u) << c.goes_on << c.type << c.step;
    if (std::string(c.goes_on) != "ne") {
      EXPECT_GT(left, 0u) << c.goes_on << c.type << c.step;
    }
  }
}

struct Case {
  const char* name;
  const char* body;
  const char* before = "";
  const char* after = "";
};
const Case cases[] = {
    {"values read behind the loop", "ld.global.u32 %t1, [%in+8];\nadd.u32 %t2, %t1, %a;\nadd.s64 %in, %in, 4;\n", "",
     "xor.b32 %x, %t1, %t2;\nadd.u32 %y, %y, %a;\nsub.s64 %z, %in, %d1;\n"},
    {"a step read behind the loop",
     "add.s64 %s1, %in, 8;\nld.global.u32 %t1, [%s1];\nadd.u32 %x, %x, %t1;\nadd.s32 %t3, %a, 7;\nmov.b64 %in, %s1;\n",
     "", "sub.s64 %z, %s1, %d1;\nadd.u32 %y, %t3, 1;\n"},
    {"a step before the pointer's own",
     "add.s64 %s1, %in, 4;\nld.global.u32 %t1, [%in];\nld.global.u32 %t2, [%s1+4];\nmad.lo.u32 %x, %x, 7, "
     "%t1;\nxor.b32 %x, %x, %t2;\nadd.s64 %in, "
     "%in, 4;\nld.global.u32 %t3, [%in+4];\nadd.u32 %y, %y, %t3;\n"},
    {"the value of the iteration before", "mad.lo.u32 %x, %x, 5, %t1;\nmov.u32 %t1, %a;\nxor.b32 %y, %y, %t1;\n",
     "mov.u32 %t1, 3;\n", "add.u32 %y, %y, %t1;\n"},
    {"two that change places", "mad.lo.u32 %x, %x, 5, %t1;\nmov.u32 %t3, %t1;\nmov.u32 %t1, %t2;\nmov.u32 %t2, %t3;\n",
     "mov.u32 %t1, 3;\nmov.u32 %t2, 8;\n"},
    {"two counters that change places",
     "mad.lo.u32 %x, %x, 5, %t1;\nadd.u32 %t3, %t1, 1;\nadd.u32 %t1, %t2, 2;\nmov.u32 %t2, %t3;\n",
     "mov.u32 %t1, 3;\nmov.u32 %t2, 8;\n", "add.u32 %y, %t1, %t2;\n"},
    {"there and back", "add.u32 %t1, %t1, 9;\nmad.lo.u32 %x, %x, 5, %t1;\nsub.u32 %t1, %t1, 9;\nxor.b32 %y, %y, %t1;\n",
     "mov.u32 %t1, 3;\n"},
    {"a guarded write",
     "ld.global.u32 %t1, [%in];\nsetp.gt.s32 %r, %t1, 0;\n@%r mov.u32 %y, %t1;\n@!%r add.u32 %x, %x, %a;\nadd.s64 %in, "
     "%in, 4;\n"},
    {"a guarded write read behind",
     "ld.global.u32 %t1, [%in];\nsetp.gt.s32 %r, %t1, 0;\n@%r mov.u32 %t2, %t1;\nadd.s64 %in, %in, 8;\n",
     "mov.u32 %t2, 5;\n", "add.u32 %x, %x, %t2;\n"},
    {"a write, then a guarded one",
     "ld.global.u32 %t1, [%in];\nsetp.gt.s32 %r, %t1, 0;\nmov.u32 %t2, 6;\n@%r mov.u32 %t2, %t1;\nmad.lo.u32 %x, %x, "
     "3, %t2;\nadd.s64 %in, %in, 8;\n",
     "", "xor.b32 %y, %t2, %t1;\n"},
    {"a step, then a guarded write",
     "ld.global.u32 %t1, [%in];\nsetp.gt.s32 %r, %t1, 0;\nadd.s32 %t2, %a, 3;\n@%r mov.u32 %t2, 5;\nmad.lo.u32 %x, %x, "
     "3, %t2;\nadd.s64 %in, %in, 8;\n",
     "", "xor.b32 %y, %t2, %t1;\n"},
    {"a guarded step",
     "ld.global.u32 %t1, [%in];\nsetp.gt.s32 %r, %t1, 0;\n@%r add.s32 %t2, %t2, 3;\nmad.lo.u32 %x, %x, 3, "
     "%t2;\nadd.s64 %in, %in, 8;\n",
     "mov.u32 %t2, 1;\n", "xor.b32 %y, %t2, %t1;\n"},
    {"a guarded load at a step",
     "and.b32 %t1, %a, 1;\nsetp.ne.u32 %r, %t1, 0;\n@%r ld.global.u32 %y, [%in+4];\n@!%r ld.global.u32 %y, "
     "[%in];\nmad.lo.u32 %x, %x, 3, %y;\nadd.s64 %in, %in, 8;\n"},
    {"a predicate of the iteration before", "@%k add.u32 %x, %x, %a;\nand.b32 %t1, %a, 3;\nsetp.eq.u32 %k, %t1, 1;\n",
     "setp.eq.u32 %k, %c, 3;\n", "@%k add.u32 %y, %y, 1;\n"},
    {"an arm",
     "ld.global.u32 %t1, [%in];\nsetp.gt.s32 %r, %t1, 0;\n@%r bra SKIP;\nmad.lo.u32 %x, %x, 3, %t1;\nadd.u32 %t2, %a, "
     "5;\nxor.b32 %x, %x, %t2;\nSKIP:\nadd.u32 %y, %y, %t1;\nadd.s64 %in, %in, 4;\n"},
    {"two arms",
     "ld.global.u32 %t1, [%in];\nsetp.gt.s32 %r, %t1, 0;\n@%r bra ELSE;\nadd.u32 %t2, %t1, 3;\nadd.u32 %t4, %a, "
     "1;\nmad.lo.u32 %x, %x, %t4, 1;\nbra SKIP;\nELSE:\nmul.lo.u32 %t2, %t1, 5;\n"
     "add.u32 %t5, %a, 1;\nxor.b32 %x, %x, %t5;\nSKIP:\nadd.u32 %t6, %a, 1;\nadd.u32 %y, %y, %t6;\nmad.lo.u32 %x, %x, "
     "3, %t2;\nadd.s64 %in, %in, 4;\n",
     "", "add.u32 %y, %y, %t2;\n"},
    {"an arm that writes what is read behind",
     "ld.global.u32 %t1, [%in];\nsetp.gt.s32 %r, %t1, 0;\n@%r bra SKIP;\nmov.u32 %t2, %t1;\nSKIP:\nadd.s64 %in, %in, "
     "4;\n",
     "mov.u32 %t2, 1;\n", "xor.b32 %x, %x, %t2;\n"},
    {"an arm that steps",
     "ld.global.u32 %t1, [%in];\nsetp.gt.s32 %r, %t1, 0;\n@%r bra SKIP;\nadd.u32 %t2, %t2, 3;\nSKIP:\nmad.lo.u32 %x, "
     "%x, 3, %t2;\nadd.s64 %in, %in, 4;\n",
     "mov.u32 %t2, 1;\n"},
    {"an arm at the end",
     "ld.global.u32 %t1, [%in];\nadd.s64 %in, %in, 4;\nadd.u32 %t2, %t2, 3;\nxor.b32 %x, %x, %t2;\nsetp.gt.s32 %r, "
     "%t1, 0;\n@%r bra SKIP;\nmad.lo.u32 %x, %x, 3, %t1;\nSKIP:\n",
     "mov.u32 %t2, 1;\n", "add.u32 %y, %y, %t2;\n"},
    {"stores",
     "st.global.u32 [%s1], %a;\nld.global.u32 %t1, [%s1+-4];\nadd.u32 %x, %x, %t1;\nst.global.u32 [%s1+4], "
     "%x;\nadd.s64 %s1, %s1, 4;\n",
     "add.s64 %s1, %out, 64;\nst.global.u32 [%s1+-4], %c;\n", "sub.s64 %z, %s1, %out;\n"},
    {"stores backwards in shared memory",
     "st.shared.u32 [%t1+8], %a;\nld.shared.u32 %t2, [%t1+12];\nmad.lo.u32 %x, %x, 3, %t2;\nsub.u32 %t1, %t1, 4;\n",
     "mov.u32 %t1, words;\nmad.lo.u32 %t1, %i1, 128, %t1;\nadd.u32 %t1, %t1, 100;\nst.shared.u32 [%t1+12], %c;\n",
     "mov.u32 %t3, words;\nsub.u32 %y, %t1, %t3;\n"},
    {"vectors",
     "ld.global.v2.u32 {%t1, %t2}, [%in];\nmad.lo.u32 %x, %x, %t1, %t2;\nst.global.v2.u32 [%s1], {%x, %a};\nadd.s64 "
     "%in, %in, 8;\nadd.s64 %s1, %s1, 8;\n",
     "add.s64 %s1, %out, 64;\n"},
    {"carries", "add.cc.u32 %t1, %x, %c;\naddc.u32 %t2, %y, %a;\nmov.u32 %x, %t1;\nmov.u32 %y, %t2;\n"},
    {"halves",
     "ld.global.u16 %h2, [%in];\nadd.s16 %h1, %h1, 160;\nmul.wide.u16 %t1, %h1, %h2;\nxor.b32 %x, %x, %t1;\nadd.s64 "
     "%in, %in, 2;\n"},
    {"floats",
     "ld.global.u8 %t1, [%in];\ncvt.rn.f32.u32 %f2, %t1;\nfma.rn.f32 %f1, %f2, 0f3f400000, %f1;\nmov.b32 %t2, "
     "%f1;\nxor.b32 %x, %x, %t2;\nadd.s64 %in, %in, 1;\n"},
    {"atomics",
     "red.global.add.u32 [%s1], %a;\natom.global.add.u32 %t1, [%s1+4], 3;\nmad.lo.u32 %x, %x, 3, %t1;\nadd.s64 %s1, "
     "%s1, 4;\n",
     "add.s64 %s1, %out, 64;\n"},
    {"multiples of the counter",
     "mul.lo.u32 %t1, %a, 12;\nand.b32 %t1, %t1, 255;\ncvt.u64.u32 %s1, %t1;\nadd.s64 %s2, %in, %s1;\nld.global.u32 "
     "%t2, [%s2];\nadd.u32 %x, %x, %t2;\n"},
    {"far addresses", "ld.global.u32 %t1, [%s1+8388604];\nadd.u32 %x, %x, %t1;\nadd.s64 %s1, %s1, 4;\n",
     "sub.s64 %s1, %in, 8388604;\n"},
    {"steps as long as the type",
     "add.s64 %s1, %s1, 0x7fffffffffffff11;\nxor.b64 %z, %z, %s1;\nmul.lo.u64 %z, %z, 77;\nsub.s64 %s2, %s2, "
     "0x8000000000000000;\nxor.b64 %z, %z, %s2;\nadd.u32 %t1, %t1, 0x80000000;\nxor.b32 %x, %x, %t1;\nmul.lo.u32 %x, "
     "%x, 5;\n",
     "mov.u64 %s1, 1;\nmov.u64 %s2, 2;\nmov.u32 %t1, 3;\n", "xor.b64 %z, %z, %s1;\nadd.u32 %y, %t1, 1;\n"},
    {"a step that is the result", "sub.u32 %t1, %t1, -5;\nmad.lo.u32 %x, %x, 3, %t1;\nadd.u32 %t1, 2, %t1;\n",
     "mov.u32 %t1, 3;\n", "xor.b32 %y, %t1, %y;\n"},
    {"what only the next iteration reads under a guard",
     "@%k add.u32 %t1, %t2, 1;\nmov.u32 %t2, %a;\nadd.u32 %x, %x, %t1;\nsetp.lt.s32 %k, %x, 0;\n",
     "setp.eq.u32 %k, %c, 3;\nmov.u32 %t1, 4;\nmov.u32 %t2, 6;\n"},
};

// Trip counts of 1 to 20, differing from thread to thread.
std::vector<Start> few(const Count& c) {
  std::vector<Start> all;
  std::mt19937_64 random(5);
  while (all.size() < all_threads) {
    const uint64_t at = random() % 3 ? c.cut(random()) : random() % 200;
    const Start s{at, c.cut(at + static_cast<uint64_t>(c.step) * (1 + random() % 20))};
    if (c.trips(s, 20) <= 20) all.push_back(s);
  }
  return all;
}

TEST(Unroll, BodiesOfEveryKind) {
  const Count ways[] = {{"u32", "ne", -1}, {"s32", "lt", 3}, {"u64", "ne", 4}, {"s64", "gt", -2}};
  for (const Case& t : cases)
    for (const Count& c : ways) {
      SCOPED_TRACE(fmt::format("{}, {} {} {}", t.name, c.goes_on, c.type, c.step));
      same(kernel(t.before + loop(c, t.body, &c == ways + 1 ? by_copy : plain) + t.after), words_of(few(c)), true);
    }
}

// The test between two parts of the body, in an entry with other loops around and behind.
TEST(Unroll, LoopsAmongLoops) {
  const std::string inner =
      "ld.global.u32 %t1, [%s1];\nmad.lo.u32 %x, %x, 31, %t1;\nadd.s64 %s1, %s1, 4;\nadd.u32 %t2, %t2, 1;\nsetp.lt.u32 "
      "%p, %t2, %t4;\n";
  const std::string outer =
      "mov.u32 %t3, 0;\nand.b32 %t4, %c, 15;\nOUTER:\nmov.b64 %s1, %in;\nmov.u32 %t2, 0;\nINNER:\n" + inner +
      "@%p bra INNER;\nadd.u32 %t3, %t3, 1;\nadd.u32 %t4, %t4, 1;\nsetp.ne.u32 %p, %t3, 9;\n@%p bra OUTER;\n"
      "mov.u32 %t5, 30;\nTHIRD:\nxor.b32 %y, %y, %t5;\nsub.u32 %t5, %t5, 3;\nmul.lo.u32 %y, %y, 5;\nsetp.gt.s32 %p, "
      "%t5, 4;\n@%p bra THIRD;\n"
      "mov.u32 %t6, 3;\nFOURTH:\nsub.u32 %t6, %t6, 1;\nsetp.ne.u32 %p, %t6, 0;\nmad.lo.u32 %y, %y, 3, %t6;\n@%p bra "
      "FOURTH;\nadd.u32 %y, %y, %t6;\n";
  same(kernel(outer), words_of({{0, 0}}), true);
  const ptx::Module module = parse_text("loop.ptx", kernel(outer));
  const auto unrolled = unrolled_of(module);
  ASSERT_TRUE(unrolled);
  // Each of the three innermost loops has two branches back behind it, and four times its multiplications beside its own.
  size_t back = 0, products = 0;
  const ptx::Function& f = unrolled->functions[0];
  for (uint32_t k = 0; k < f.instructions.size(); ++k) {
    const ptx::Instruction& i = f.instructions[k];
    back += i.op == ptx::Opcode::bra && f.labels[f.operand(i, 0).label_id()].at <= k;
    products += i.op == ptx::Opcode::mad && i.type == ptx::Type::u32 && i.mods.part == ptx::MulPart::lo;
  }
  EXPECT_EQ(back, 7u);
  EXPECT_EQ(products, 1 + 5 * 2u);
  // Two loops with one top: the outer one's branch back comes to the guard.
  same(kernel("and.b32 %t4, %c, 15;\nmov.u32 %t3, 0;\nmov.u32 %t2, 0;\nINNER:\nmad.lo.u32 %x, %x, 31, %t2;\nadd.u32 "
              "%t2, %t2, 1;\nsetp.le.u32 %p, %t2, %t4;\n@%p bra INNER;\n"
              "mov.u32 %t2, 1;\nadd.u32 %t3, %t3, 1;\nshr.u32 %t1, %c, 4;\nand.b32 %t1, %t1, 7;\nsetp.lt.u32 %p, %t3, "
              "%t1;\n@%p bra INNER;\n"),
       words_of({{0, 0}}), true);
}

// As wide as the loop is deep in an entry, a function that is inlined has it, too; a function that nobody calls stays.
TEST(Unroll, LinesAndLabelsOfCopies) {
  const std::string text = kernel(
      "TOP:\nld.global.u32 %t1, [%in];\nadd.u32 %x, %x, %t1;\nadd.s64 %in, %in, 4;\nadd.s32 %a, %a, -1;\nsetp.ne.s32 "
      "%p, %a, 0;\n@%p bra TOP;\n");
  const ptx::Module module = parse_text("loop.ptx", text);
  const auto unrolled = unrolled_of(module);
  ASSERT_TRUE(unrolled);
  uint32_t line = 0;
  for (const ptx::Instruction& i : module.functions[0].instructions)
    if (i.op == ptx::Opcode::ld && i.type == ptx::Type::u32) line = i.line;
  std::vector<int64_t> offsets;
  const ptx::Function& f = unrolled->functions[0];
  size_t steps = 0;
  for (const ptx::Instruction& i : f.instructions) {
    if (i.op == ptx::Opcode::ld && i.type == ptx::Type::u32) {
      EXPECT_EQ(i.line, line);
      offsets.push_back(f.operand(i, 1).value);
    }
    steps += i.op == ptx::Opcode::add && i.type == ptx::Type::s64;
  }
  EXPECT_EQ(offsets, (std::vector<int64_t>{0, 4, 8, 12, 0}));
  EXPECT_EQ(steps, 2u);  // one of 16, one of the loop for the rest
}

TEST(Unroll, WhatIsLeftAlone) {
  const char* head = "TOP:\n";
  const char* body = "ld.global.u32 %t1, [%in];\nadd.u32 %x, %x, %t1;\nadd.s64 %in, %in, 4;\n";
  const char* tail = "add.s32 %a, %a, -1;\nsetp.ne.s32 %p, %a, 0;\n@%p bra TOP;\n";
  const auto unrolls = [](const std::string& statements, const char* in_front = "") {
    std::string text = kernel(statements);
    text.replace(text.find(".version 7.0\n.target sm_60"), 26, ".version 7.8\n.target sm_80");
    text.insert(text.find(".visible"), in_front);
    const ptx::Module module = parse_text("loop.ptx", text);
    const auto unrolled = unrolled_of(module);
    if (unrolled) {
      EXPECT_NE(ptx::print(*unrolled), ptx::print(module));
    }
    return unrolled.has_value();
  };
  EXPECT_TRUE(unrolls(std::string(head) + body + tail));
  for (const char* statement : {"bar.sync 0;\n",
                                "@%q bar.sync 0;\n",
                                "barrier.sync 0;\n",
                                "bar.warp.sync -1;\n",
                                "vote.sync.any.pred %k, %q, -1;\n",
                                "shfl.sync.idx.b32 %t2, %t1, 0, 31, -1;\n",
                                "match.any.sync.b32 %t2, %t1, -1;\n",
                                "activemask.b32 %t2;\n",
                                "redux.sync.add.s32 %t2, %t1, -1;\n",
                                "mov.u32 %t2, %clock;\n",
                                "mov.u64 %s1, %globaltimer;\n",
                                "@%q exit;\n",
                                "@%q ret;\n",
                                "@%q trap;\n",
                                "nanosleep.u32 20;\n",
                                "membar.cta;\n",
                                ".pragma \"nounroll\";\n",
                                "@%q bra OUT;\n",
                                "mov.u32 %a, %c;\n",
                                "@%q add.s32 %a, %a, 1;\n",
                                "@%p add.s32 %x, %x, 1;\n",
                                "setp.ne.s32 %p, %c, 0;\n",
                                "mul.lo.s32 %a, %a, 3;\n"}) {
    const std::string s = statement;
    EXPECT_FALSE(unrolls(std::string(head) + s + body + tail + "OUT:\n")) << s;
  }
  EXPECT_FALSE(unrolls(std::string("bra MIDDLE;\n") + head + body + "MIDDLE:\n" + tail));
  EXPECT_TRUE(unrolls(std::string("bra TOP;\n") + head + body + "MIDDLE:\n" + tail));
  EXPECT_FALSE(unrolls(std::string(head) + body + "@%q bra TOP;\n" + tail)) << "two branches back";
  EXPECT_FALSE(unrolls(std::string(head) + body + tail, ".pragma \"nounroll\";\n")) << "of the module";
  EXPECT_TRUE(unrolls(std::string(".pragma \"nounroll\";\nmov.u32 %t2, 1;\n") + head + body + tail))
      << "of another block";
  // Tests that say nothing of the iterations between.
  for (const char* other : {"add.s32 %a, %a, %c;\nsetp.ne.s32 %p, %a, 0;\n@%p bra TOP;\n",
                            "add.s32 %a, %a, 1;\nsetp.gt.s32 %p, %a, 0;\n@%p bra TOP;\n",
                            "add.s32 %a, %a, -1;\nsetp.lt.u32 %p, %a, %b;\n@%p bra TOP;\n",
                            "add.s32 %a, %a, -1;\nsetp.eq.s32 %p, %a, 0;\n@%p bra TOP;\n",
                            "setp.ne.s32 %p, %a, 0;\nadd.s32 %a, %a, -1;\n@%p bra TOP;\n",
                            "add.s32 %a, %a, -1;\nxor.b32 %b, %b, 1;\nsetp.ne.s32 %p, %a, %b;\n@%p bra TOP;\n",
                            "add.s32 %a, %a, -1;\nsetp.ne.and.s32 %p, %a, 0, %q;\n@%p bra TOP;\n",
                            "add.s32 %a, %a, -1;\n@%q setp.ne.s32 %p, %a, 0;\n@%p bra TOP;\n",
                            "add.sat.s32 %a, %a, 1;\nsetp.ne.s32 %p, %a, 0;\n@%p bra TOP;\n",
                            "add.s32 %a, %a, -1;\nsetp.ne.s32 %p, %a, 0;\nbra TOP;\n",
                            "add.s32 %a, %a, 0;\nsetp.ne.s32 %p, %a, 0;\n@%p bra TOP;\n",
                            "add.s32 %a, %a, 20000000;\nsetp.ne.s32 %p, %a, 0;\n@%p bra TOP;\n",
                            "add.s32 %t2, %a, -1;\nsetp.ne.s32 %p, %t2, 0;\nadd.s32 %a, %a, -2;\n@%p bra TOP;\n",
                            "add.s32 %a, %a, 1;\nsetp.lt.u32 %p, %a, 2;\n@%p bra TOP;\n"})
    EXPECT_FALSE(unrolls(std::string(head) + body + other)) << other;
  // Long loops, and shorter ones that write memory.
  std::string sums, stores;
  for (int k = 0; k < 44; ++k) sums += "add.u32 %x, %x, %t1;\n";
  for (int k = 0; k < 32; ++k) stores += "st.global.u32 [%out+64], %x;\n";
  EXPECT_FALSE(unrolls(head + sums + body + tail));
  EXPECT_TRUE(unrolls(head + sums.substr(sums.size() / 4) + body + tail));
  EXPECT_FALSE(unrolls(head + stores + body + tail));
  EXPECT_TRUE(unrolls(head + stores.substr(stores.size() / 4) + body + tail));
}

// Lanes of one iteration count agree to go on, but where a counter wraps in one of them, they come to the loop for the rest at different times.
TEST(Unroll, AgreementEndsWithTheIteration) {
  const std::string text = kernel(
      "TOP:\nand.b32 %t1, %y, 3;\nadd.u32 %y, %y, 1;\nsetp.eq.u32 %r, %t1, 3;\n@%r bra.uni SKIP;\nadd.u32 %x, %x, "
      "1;\nbra.uni SKIP;\nSKIP:\nmad.lo.u32 %x, %x, 5, %b;\nadd.u32 %a, %a, 3;\nsetp.lt.u32 %p, %a, %b;\n@%p bra.uni "
      "TOP;\nsetp.ne.u32 %r, %y, 19;\n@%r bra.uni END;\nadd.u32 %x, %x, 1;\nEND:\n");
  // Ten iterations each; where the counter passes the end of the type, all of them by the loop for the rest. The interpreter sees lanes that do not agree.
  same(text, words_of({{1, 31}, {0xfffffffe, 27}, {2, 32}, {0xfffffffd, 26}}), true);
  const auto unrolled = unrolled_of(parse_text("loop.ptx", text));
  ASSERT_TRUE(unrolled);
  size_t agreed = 0, with_guard = 0;
  for (const ptx::Instruction& i : unrolled->functions[0].instructions) {
    agreed += i.op == ptx::Opcode::bra && i.mods.uni;
    with_guard += i.op == ptx::Opcode::bra && i.mods.uni && !is_none(i.guard);
  }
  EXPECT_EQ(agreed, 6u);      // without guards in the five copies, and the one behind the loop
  EXPECT_EQ(with_guard, 1u);  // behind the loop
}

// The pass is on from -O2 on, and can be switched off.
TEST(Unroll, Options) {
  const ptx::Module module =
      parse_text("loop.ptx", kernel("TOP:\nld.global.u32 %t1, [%in];\nadd.u32 %x, %x, %t1;\nadd.s64 %in, %in, "
                                    "4;\nadd.s32 %a, %a, -1;\nsetp.ne.s32 %p, %a, 0;\n@%p bra TOP;\n"));
  const auto size = [&](int level, bool unrolling) {
    Options o;
    o.target = isa::find_target("sm_90"), o.level = level, o.unrolling = unrolling;
    Timings timings;
    const auto made = assemble(module, o, timings);
    EXPECT_TRUE(made.ok());
    return made.ok() ? made->kernels[0].instructions : 0;
  };
  EXPECT_GT(size(3, true), size(3, false) + 6);
  EXPECT_GT(size(2, true), size(2, false) + 6);
  EXPECT_EQ(size(1, true), size(1, false));
}

}  // namespace
}  // namespace rndn::assembler::testing::unroll_test
