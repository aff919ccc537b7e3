// Long code that stands once in a kernel: division and roots called from many places, by any lanes, in loops, functions and with few registers.
#include <gmock/gmock.h>

#include "assembler/assemble.h"
#include "assembler/backend/backend.h"
#include "assembler/check/check.h"
#include "assembler/flow/structurize.h"
#include "tests/assembler/three_ways.h"
#include "tests/support/every_case.h"

namespace rndn::assembler::testing {
namespace {

using ::testing::AnyOf;

struct Long {
  std::string type, text;  // of the result; %0, %1 the operands
};
const std::vector<Long> long_code = {
    {"f64", "div.rn.f64 {0}, {1}, {2};"},     {"f64", "sqrt.rn.f64 {0}, {1};"},       {"f64", "rsqrt.approx.f64 {0}, {1};"},
    {"f32", "div.rn.f32 {0}, {1}, {2};"},     {"f32", "div.rn.ftz.f32 {0}, {1}, {2};"}, {"f32", "sqrt.rn.f32 {0}, {1};"},
    {"f32", "sqrt.rn.ftz.f32 {0}, {1};"},     {"f32", "div.rz.ftz.f32 {0}, {1}, {2};"}, {"b64", "div.u64 {0}, {1}, {2};"},
    {"b64", "div.s64 {0}, {1}, {2};"},        {"b64", "rem.u64 {0}, {1}, {2};"},      {"b64", "rem.s64 {0}, {1}, {2};"},
};

// %sum += what the statement makes of two registers; what is no number counts as one.
std::string use(const Long& x, const std::string& a, const std::string& b) {
  const bool wide = x.type != "f32", integer = x.type == "b64";
  std::string t = "{\n.reg .b64 %a, %b, %x; .reg .b32 %s; .reg .f64 %dx, %da, %db; .reg .f32 %fx, %fa, %fb; .reg .pred %n;\n";
  const std::string divisor = integer ? "or.b64 %b, " + b + ", 1;" : "mov.b64 %b, " + b + ";";
  t += fmt::format("mov.b64 %a, {}; {}\n", a, divisor);
  if (integer) return t + fmt::format(fmt::runtime(x.text), "%x", "%a", "%b") + "\nadd.u64 %sum, %sum, %x;\n}\n";
  if (wide)
    return t + "mov.b64 %da, %a; mov.b64 %db, %b;\n" + fmt::format(fmt::runtime(x.text), "%dx", "%da", "%db") +
           "\nsetp.nan.f64 %n, %dx, %dx; mov.b64 %x, %dx; selp.b64 %x, 1, %x, %n; xor.b64 %sum, %sum, %x;\n}\n";
  return t + "cvt.u32.u64 %s, %a; mov.b32 %fa, %s; cvt.u32.u64 %s, %b; mov.b32 %fb, %s;\n" +
         fmt::format(fmt::runtime(x.text), "%fx", "%fa", "%fb") +
         "\nsetp.nan.f32 %n, %fx, %fx; mov.b32 %s, %fx; selp.b32 %s, 1, %s, %n; cvt.u64.u32 %x, %s; xor.b64 %sum, %sum, %x;\n}\n";
}

// A kernel that adds up in %sum; %d1..3 and %r1..3 are the lane's words, %t its number.
std::string summing(const std::string& body, const std::string& functions = "", const std::string& name = "k") {
  return functions + ".visible .entry " + name +
         "(.param .u64 in, .param .u64 out)\n{\n.reg .b64 %d<4>, %in, %out, %sum; .reg .b32 %n, %c, %t, %i, %r<4>; .reg .pred %p<4>;\n"
         "ld.param.u64 %in, [in]; ld.param.u64 %out, [out];\nmov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x;\n"
         "mov.u32 %n, %ntid.x; mad.lo.u32 %n, %c, %n, %t; mad.wide.u32 %in, %n, 24, %in;\nmad.wide.u32 %out, %n, 768, %out;\n"
         "ld.global.b64 %d1, [%in]; ld.global.b64 %d2, [%in+8]; ld.global.b64 %d3, [%in+16];\n"
         "cvt.u32.u64 %r1, %d1; cvt.u32.u64 %r2, %d2; cvt.u32.u64 %r3, %d3; mov.b64 %sum, 0;\n" +
         body + "st.global.b64 [%out], %sum;\nret;\n}\n";
}
const std::string head = ".version 7.8\n.target sm_60\n.address_size 64\n";

// The same with so few registers that values lie in memory.
void with_registers(const std::string& text, std::initializer_list<uint32_t> limits) {
  const ptx::Module module = parse_text("few.ptx", text);
  const std::vector<uint64_t> in = input_words();
  auto expected = run_interpreter(module, "k", in);
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  for (const std::string& target : both_families)
    for (uint32_t limit : limits) {
      auto made = assemble_for(module, target, 3, limit);
      ASSERT_TRUE(made.ok()) << target << ": " << made.error().message;
      auto got = run_simulator(target, made->cubin, "k", in);
      ASSERT_TRUE(got.ok()) << target << ": " << got.error().message;
      EXPECT_EQ(difference(*expected, *got, 96), "") << target << " with " << limit << " registers";
    }
}

// Lanes take either arm, and each arm as often as their words say; all arms call the same code with operands of their own.
std::string in_arms_and_loops(const Long& x) {
  return summing("and.b32 %i, %r1, 3;\nouter:\nand.b32 %c, %r2, 1; setp.eq.u32 %p0, %c, 0;\n@%p0 bra other;\n" + use(x, "%d1", "%d2") +
                 "add.u64 %d1, %d1, %sum;\nand.b32 %c, %t, 1; setp.eq.u32 %p1, %c, 0;\n@%p1 bra both;\n" + use(x, "%d3", "%d1") +
                 "bra both;\nother:\n" + use(x, "%d2", "%d3") + "and.b32 %n, %r3, 3;\ninner:\n" + use(x, "%d3", "%d2") +
                 "xor.b64 %d2, %d2, %sum;\nsub.u32 %n, %n, 1; setp.ge.s32 %p2, %n, 0;\n@%p2 bra inner;\nboth:\n" + use(x, "%d2", "%d1") +
                 "sub.u32 %i, %i, 1; setp.ge.s32 %p3, %i, 0;\n@%p3 bra outer;\n");
}

TEST(Subroutines, AnyLanesCallThemFromArmsAndLoops) {
  rndn::test::Sample by_ptxas(3), sample(3);
  for (const Long& x : long_code) {
    SCOPED_TRACE(x.text);
    const std::string text = head + in_arms_and_loops(x);
    EXPECT_THAT(three_ways(text, both_families, by_ptxas.has_next() && x.text.find("rsqrt") == std::string::npos), AnyOf(-1, 2, 3));
    for (const uint32_t limit : {16u, 24u, 32u})
      if (sample.has_next()) with_registers(text, {limit});
  }
}

TEST(Subroutines, SeveralOfThemInOneKernelAndInSeveralKernels) {
  std::string body;
  for (int round = 0; round < 2; ++round)
    for (size_t k = 0; k < long_code.size(); ++k) {
      body += fmt::format("shr.u32 %c, %r{}, {}; and.b32 %c, %c, 1; setp.eq.u32 %p1, %c, 0;\n@%p1 bra skip{}_{};\n", k % 3 + 1, k, round, k);
      body += use(long_code[k], round ? "%d2" : "%d1", round ? "%d3" : "%sum") + fmt::format("skip{}_{}:\n", round, k);
    }
  const std::string text = head + summing(body) + summing(body, "", "second");
  EXPECT_EQ(three_ways(text, both_families, false), -1);
  with_registers(text, {16, 24, 32, 40});
}

// Functions that are inlined, and one with a stack of its own, because it calls itself.
TEST(Subroutines, FunctionsCallThemToo) {
  const std::string functions =
      ".func (.param .b64 r) f(.param .b64 a, .param .b64 b)\n{\n.reg .b64 %d1, %d2, %sum; mov.b64 %sum, 5;\n"
      "ld.param.b64 %d1, [a]; ld.param.b64 %d2, [b];\n" +
      use(long_code[0], "%d1", "%d2") + use(long_code[8], "%d2", "%d1") +
      "st.param.b64 [r], %sum;\nret;\n}\n"
      ".func (.param .b64 r) g(.param .b64 a, .param .b32 n)\n{\n.reg .b64 %d1, %d2, %sum; .reg .b32 %n; .reg .pred %p;\n"
      "ld.param.b64 %d1, [a]; ld.param.b32 %n, [n]; mov.b64 %sum, %d1;\nsetp.eq.u32 %p, %n, 0;\n@%p bra end;\n"
      "sub.u32 %n, %n, 1; add.u64 %d2, %d1, %sum;\n{\n.param .b64 x; .param .b32 y; .param .b64 z;\n"
      "st.param.b64 [x], %d2; st.param.b32 [y], %n;\ncall (z), g, (x, y);\nld.param.b64 %d2, [z];\n}\n" +
      use(long_code[0], "%d2", "%d1") + use(long_code[8], "%d1", "%d2") + "end:\nst.param.b64 [r], %sum;\nret;\n}\n";
  const auto call = [](const char* f, const char* second, const char* type) {
    return fmt::format("{{\n.param .b64 x; .param .{2} y; .param .b64 z;\nst.param.b64 [x], %d1; st.param.{2} [y], {1};\n"
                       "call (z), {0}, (x, y);\nld.param.b64 %d1, [z]; xor.b64 %sum, %sum, %d1;\n}}\n",
                       f, second, type);
  };
  const std::string text = head + summing("and.b32 %i, %r2, 3;\n" + call("f", "%d2", "b64") + "setp.lt.s32 %p0, %r3, 0;\n@%p0 bra on;\n" +
                                              call("g", "%i", "b32") + "on:\n" + call("f", "%d3", "b64"),
                                          functions);
  EXPECT_THAT(three_ways(text, both_families, true), AnyOf(-1, 3));
  with_registers(text, {24, 32});
}

// What is called stands once: more places add what calls it.
TEST(Subroutines, StandOnce) {
  using M = isa::Mnemonic;
  for (const std::string& target : both_families)
    for (const Long& x : long_code) {
      std::array<size_t, 2> calls{}, returns{};
      for (const size_t places : {1, 4}) {
        std::string body;
        for (size_t k = 0; k < places; ++k) body += use(x, "%d1", "%d2") + "add.u64 %d1, %d1, %sum;\n";
        auto made = assemble_for(parse_text("once.ptx", head + summing(body)), target);
        ASSERT_TRUE(made.ok()) << made.error().message;
        for (const isa::Instruction& i : instructions_of(made->cubin, target)) {
          calls[places > 1] += i.mnemonic == M::CALL_REL || i.mnemonic == M::CAL;
          returns[places > 1] += i.mnemonic == M::RET_REL || i.mnemonic == M::RET;
        }
      }
      const size_t both = x.text.find("rsqrt") == std::string::npos ? 1 : 2;  // a root and a division
      EXPECT_EQ(calls, (std::array<size_t, 2>{0, 4 * both})) << target << " " << x.text;
      EXPECT_EQ(returns, (std::array<size_t, 2>{0, both})) << target << " " << x.text;
    }
}

// Zeros, which are what slow paths meet most, pass over all that other operands need, unless a lane beside them has such.
TEST(Subroutines, ZerosPassOverTheRest) {
  struct Case {
    size_t code;             // of long_code
    uint64_t zero, other, divisor;  // operands on slow paths
    uint64_t passed;         // instructions at least
  };
  const uint64_t least = 1, one = 0x3ff0000000000000, one_f32 = 0x3f800000;
  for (const Case& x : {Case{0, 0, least, one, 40}, Case{1, 0, least, one, 10}, Case{3, 0, least, one_f32, 10}, Case{4, 0, 0x7f7fffff, 0x00800000, 10}})
    for (const size_t places : {1, 3})
      for (const std::string& target : both_families) {
        SCOPED_TRACE(fmt::format("{} {}, {} places", target, long_code[x.code].text, places));
        std::string body;
        for (size_t k = 0; k < places; ++k) body += use(long_code[x.code], "%d1", "%d2");
        const ptx::Module module = parse_text("zeros.ptx", head + summing(body));
        auto made = assemble_for(module, target);
        ASSERT_TRUE(made.ok()) << made.error().message;
        enum { zeros, others, one_other };
        std::array<uint64_t, 3> executed{};
        for (const int what : {zeros, others, one_other}) {
          std::vector<uint64_t> in(blocks * threads * 3, x.divisor);
          for (size_t lane = 0; lane < blocks * threads; ++lane)
            in[3 * lane] = what == others || (what == one_other && lane % 32 == 7) ? x.other : x.zero;
          auto expected = run_interpreter(module, "k", in);
          sim::Counters counters;
          auto got = run_simulator(target, made->cubin, "k", in, true, &counters);
          ASSERT_TRUE(expected.ok() && got.ok());
          EXPECT_EQ(difference(*expected, *got, 96), "");
          executed[what] = counters.warp_instructions;
        }
        const uint64_t warps = blocks * threads / 32;
        EXPECT_LE(executed[zeros] + x.passed * places * warps, executed[others]);
        EXPECT_EQ(executed[one_other], executed[others]);
      }
}

// A call that does not say where it returns to, code that does not return, branches in it on which lanes may differ, that go back or too far, and waits
// that its code lacks are noticed.
TEST(Subroutines, CheckersCatchFaults) {
  using M = isa::Mnemonic;
  for (const std::string& name : both_families) {
    const isa::Target& target = *isa::find_target(name);
    auto made = assemble_for(parse_text("faults.ptx", head + in_arms_and_loops(long_code[0])), name);
    ASSERT_TRUE(made.ok()) << made.error().message;
    auto image = cubin::read(made->cubin);
    ASSERT_TRUE(image.ok());
    const std::vector<isa::Instruction> code = instructions_of(made->cubin, name);
    std::vector<uint64_t> addresses;
    for (const isa::Located& l : isa::unpack(target, image->kernels[0].code)) addresses.push_back(l.address);
    ASSERT_TRUE(check_regions(target, code, addresses).empty());
    ASSERT_TRUE(check_schedule(target, code, addresses).empty());
    const auto find = [&](auto&& is) {
      std::vector<size_t> at;
      for (size_t k = 0; k < code.size(); ++k)
        if (is(code[k])) at.push_back(k);
      return at;
    };
    const auto calls = find([](const isa::Instruction& i) { return i.mnemonic == M::CALL_REL || i.mnemonic == M::CAL; }),
               returns = find([](const isa::Instruction& i) { return i.mnemonic == M::RET_REL || i.mnemonic == M::RET; }),
               plain = find([](const isa::Instruction& i) { return i.mnemonic == M::NOP; });
    ASSERT_EQ(calls.size(), 5u) << name;
    ASSERT_EQ(returns.size(), 1u) << name;
    ASSERT_FALSE(plain.empty()) << name;
    const auto noticed = [&](size_t at, const isa::Instruction& instead) {
      std::vector<isa::Instruction> faulty = code;
      faulty[at] = instead;
      return !check_regions(target, faulty, addresses).empty();
    };
    EXPECT_TRUE(noticed(returns[0], code[plain[0]])) << name;
    EXPECT_TRUE(noticed(returns[0] - 5, code[calls[0]])) << name;
    size_t branch = returns[0];
    while (code[branch].mnemonic != M::BRA) --branch;
    size_t vote = branch;
    while (code[vote].mnemonic != M::VOTE) --vote;
    EXPECT_TRUE(noticed(vote, code[plain[0]])) << name;
    const size_t label_of_branch = code[branch].operand_count - 1u;
    for (const uint64_t to : {addresses[branch], addresses[returns[0]] + (addresses[1] - addresses[0])}) {
      isa::Instruction elsewhere = code[branch];
      elsewhere.operands[label_of_branch].value = static_cast<int64_t>(to);
      EXPECT_TRUE(noticed(branch, elsewhere)) << name << fmt::format(" {:#x}", to);
    }
    if (target.family == isa::Family::volta)
      for (size_t call : calls) {
        size_t move = call;
        while (code[move].mnemonic != M::MOV || code[move].operands[1].value != static_cast<int64_t>(addresses[call] + 16)) --move;
        isa::Instruction elsewhere = code[move];
        elsewhere.operands[1].value += 16;
        EXPECT_TRUE(noticed(move, elsewhere)) << name;
        EXPECT_TRUE(noticed(move, code[plain[0]])) << name;
      }
    const isa::Operand& label = code[calls[0]].operands[code[calls[0]].operand_count - 1u];
    size_t waits = 0, k = 0;
    while (addresses[k] != static_cast<uint64_t>(label.value)) ++k;
    for (; k < returns[0]; ++k) {
      if (!code[k].control.wait_mask) continue;
      std::vector<isa::Instruction> faulty = code;
      faulty[k].control.wait_mask = 0;
      EXPECT_FALSE(check_schedule(target, faulty, addresses).empty()) << name << fmt::format(" {:#x}", addresses[k]);
      ++waits;
    }
    EXPECT_GT(waits, 0u) << name;
  }
}

}  // namespace
}  // namespace rndn::assembler::testing
