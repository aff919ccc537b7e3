// Which branches split a warp: those around which lanes have to be brought together have a region (BSSY, SSY), and no others.
#include "tests/assembler/three_ways.h"
#include "tests/support/every_case.h"

namespace rndn::assembler::testing::divergence_test {
namespace {

// %t: the thread's number; %a: a word of its input; %u: a number that is the same for all, up to 7; %x is stored.
std::string kernel(const std::string& body) {
  return ".version 7.0\n.target sm_60\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
         ".reg .b32 %a, %t, %c, %n, %u, %x, %i, %j, %k, %r<9>; .reg .b64 %in, %at; .reg .pred %p<64>;\n"
         "ld.param.u64 %in, [in]; ld.param.u64 %at, [out]; mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mad.lo.u32 %n, "
         "%c, 96, %t;\n"
         "mad.wide.u32 %in, %n, 24, %in; mad.wide.u32 %at, %n, 768, %at; ld.global.u32 %a, [%in]; and.b32 %a, %a, "
         "0xffff;\n"
         "mov.u32 %u, %nctaid.x; add.u32 %u, %u, 4; mov.u32 %x, %t; mov.u32 %i, %t; mov.u32 %j, 3; mov.u32 %k, 0;\n" +
         body + "st.global.u32 [%at], %x;\nret;\n}\n";
}
// A loop that lanes leave at different times around the body, which may change %x, %k and %r.
std::string strided(const std::string& body, const std::string& way_out = "", const std::string& behind = "") {
  return "ROUND:\n" + body + "add.u32 %i, %i, 13;\nsetp.lt.u32 %p0, %i, 200;\n" + way_out + "@%p0 bra ROUND;\n" +
         behind;
}
// Code that no branch around it becomes a guard for.
const std::string work =
    "mad.lo.u32 %x, %x, 31, %a; st.global.u32 [%at+8], %x; mad.lo.u32 %x, %x, 17, %j; st.global.u32 [%at+16], %x; "
    "shr.u32 %r8, %x, 3;"
    " xor.b32 %x, %x, %r8; st.global.u32 [%at+24], %x; mad.lo.u32 %x, %x, 5, 7;\n";

size_t regions_of(const Assembled& made, const std::string& target) {
  const std::vector<isa::Instruction> code = instructions_of(made.cubin, target);
  return static_cast<size_t>(std::ranges::count_if(code, [](const isa::Instruction& i) {
    return i.mnemonic == isa::Mnemonic::BSSY || i.mnemonic == isa::Mnemonic::SSY;
  }));
}

struct Case {
  const char* name;
  std::string body;
  size_t regions;
};
const std::vector<Case> cases = {
    {"a loop of as many rounds for all",
     strided("mov.u32 %j, 0;\nINNER:\n" + work + "add.u32 %j, %j, 1; setp.lt.u32 %p1, %j, %u;\n@%p1 bra INNER;\n"), 1},
    {"a count of rounds",
     strided("and.b32 %r1, %k, 1; setp.eq.u32 %p1, %r1, 0;\n@%p1 bra SKIP;\n" + work + "SKIP:\nadd.u32 %k, %k, 1;\n"),
     1},
    {"a count of rounds, behind the loop",
     strided("add.u32 %k, %k, 1;\n" + work, "",
             "and.b32 %r1, %k, 1; setp.eq.u32 %p1, %r1, 0;\n@%p1 bra SKIP;\n" + work + "SKIP:\n"),
     2},
    {"what the round before has left",
     strided("setp.gt.u32 %p1, %k, 2;\n@%p1 bra SKIP;\n" + work +
             "SKIP:\nmul.lo.u32 %k, %k, 3; add.u32 %k, %k, 1; and.b32 %k, %k, 7;\n"),
     1},
    {"what some lanes have changed",
     strided("setp.gt.u32 %p1, %a, 0x7fff;\n@%p1 bra ARM;\n" + work +
             "add.u32 %k, %k, 1;\nARM:\nsetp.gt.u32 %p2, %k, 2;\n@%p2 bra SKIP;\n" + work + "SKIP:\n"),
     3},
    {"what some lanes have changed under a guard",
     strided("setp.gt.u32 %p1, %a, 0x7fff;\n@%p1 add.u32 %k, %k, 1;\nsetp.gt.u32 %p2, %k, 2;\n@%p2 bra SKIP;\n" + work +
             "SKIP:\n"),
     2},
    {"rounds of an inner loop that differ, counted for the outer one",
     strided("and.b32 %j, %a, 3;\nINNER:\n" + work +
             "add.u32 %k, %k, 1; add.u32 %j, %j, 1; setp.lt.u32 %p1, %j, 5;\n@%p1 bra INNER;\nand.b32 %r1, %k, 1;\n"
             "setp.eq.u32 %p2, %r1, 0;\n@%p2 bra SKIP;\n" +
             work + "SKIP:\n"),
     3},
    {"rounds of an inner loop that differ, counted for itself",
     strided("and.b32 %j, %a, 3; mov.u32 %k, 0;\nINNER:\nadd.u32 %k, %k, 1; and.b32 %r1, %k, 1; setp.eq.u32 %p2, %r1, "
             "0;\n@%p2 bra SKIP;\n" +
             work + "SKIP:\nadd.u32 %j, %j, 1; setp.lt.u32 %p1, %j, 5;\n@%p1 bra INNER;\n"),
     3},  // 2 would do: the loop runs again, and that nothing is left of its last run is not asked
    {"rounds of an inner loop that differ, brought into its next run",
     strided("and.b32 %j, %a, 3;\nINNER:\nadd.u32 %k, %k, 1; and.b32 %r1, %k, 1; setp.eq.u32 %p2, %r1, 0;\n@%p2 bra "
             "SKIP;\n" +
             work + "SKIP:\nadd.u32 %j, %j, 1; setp.lt.u32 %p1, %j, 5;\n@%p1 bra INNER;\n"),
     3},
    {"the same in a loop of as many rounds for all",
     "mov.u32 %r6, 0;\nOUTER:\nand.b32 %j, %t, 3;\nINNER:\nadd.u32 %k, %k, 1; and.b32 %r1, %k, 1; setp.eq.u32 %p2, "
     "%r1, "
     "0;\n@%p2 bra SKIP;\n" +
         work + "SKIP:\nadd.u32 %j, %j, 1; setp.lt.u32 %p1, %j, 5;\n@%p1 bra INNER;\n" +
         "add.u32 %r6, %r6, 1; setp.lt.u32 %p0, %r6, %u;\n@%p0 bra OUTER;\n",
     2},
    {"an arm out of the middle of which some leave, and what it has changed",
     strided("setp.gt.u32 %p1, %a, 0x7fff;\n@%p1 bra ARM;\n" + work +
             "add.u32 %k, %k, 1; setp.eq.u32 %p3, %r8, 5;\n@%p3 bra OUT;\n" + work +
             "ARM:\nsetp.gt.u32 %p2, %k, 2;\n@%p2 bra SKIP;\n" + work + "SKIP:\n") +
         "OUT:\n",
     2},  // the arm's lanes meet the others behind the loop
    {"set on the way out",
     strided("mov.u32 %r2, 1; setp.eq.u32 %p3, %i, 60;\n@%p3 bra LEFT;\n" + work) + "bra OUT;\nLEFT:\n" + work + work +
         "mov.u32 %r2, 2;\nOUT:\n" + "setp.eq.u32 %p1, %r2, 1;\n@%p1 bra SKIP;\n" + work + "SKIP:\n",
     2},
};

TEST(Divergence, RegionsWhereLanesMayPart) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const std::string text = kernel(c.body);
    our_code_agrees(text, targets, {0, 1, 3});
    for (const std::string target : {"sm_61", "sm_90"}) {
      Options o;
      o.target = isa::find_target(target);
      o.unrolling = false;
      o.verify_passes = true;
      Timings timings;
      auto made = assemble(parse_text("kernel.ptx", text), o, timings);
      ASSERT_TRUE(made.ok()) << made.error().message;
      EXPECT_EQ(regions_of(*made, target), c.regions) << target;
    }
  }
}

// One lane's atomic for others is for those that have the same address whatever round they are in.
TEST(Divergence, AtomicsOfDifferentRoundsStayApart) {
  for (const std::string target : {"sm_61", "sm_90"})
    for (const bool strides : {false, true}) {
      const std::string add =
          "and.b32 %r1, %k, 3; mul.wide.u32 %in, %r1, 4; ld.param.u64 %at, [out]; add.u64 %at, %at, %in; "
          "red.global.add.u32 [%at], 1;\n"
          "add.u32 %k, %k, 1;\n";
      const std::string body =
          strides ? strided(add) : "ROUND:\n" + add + "setp.lt.u32 %p0, %k, %u;\n@%p0 bra ROUND;\n";
      auto made = assemble_for(parse_text("kernel.ptx", kernel(body)), target);
      ASSERT_TRUE(made.ok()) << made.error().message;
      const std::vector<isa::Instruction> code = instructions_of(made->cubin, target);
      const bool votes =
          std::ranges::any_of(code, [](const isa::Instruction& i) { return i.mnemonic == isa::Mnemonic::VOTE; });
      EXPECT_EQ(votes, !strides) << target;
    }
}

// Nests of loops and arms by values that are the same for all lanes, for those of a round, or for none, with ways out of one loop or two, and back to a head.
class Nest {
 public:
  explicit Nest(uint32_t seed) : random_(seed) {}
  // apart: to the analysis, all branches split the warp.
  std::string run(bool apart = false) {
    std::string text = ".reg .b32 %v<30>, %w<4>, %m<64>, %h<64>, %y<400>, %zero; .reg .pred %q<400>;\n";
    text += apart ? "ld.global.u32 %zero, [%at+760];\n" : "mov.u32 %zero, %nctaid.y; sub.u32 %zero, %zero, 1;\n";
    for (uint32_t k = 0; k < 30; ++k) text += fmt::format("mov.u32 %v{}, {};\n", k, k);
    text += "mov.u32 %w0, %t; mov.u32 %w1, %a; and.b32 %w2, %t, 3; shr.u32 %w3, %a, 5;\n";
    text += block(3, 6);
    for (int k = 0; k < 30; ++k)
      text += fmt::format("st.global.u32 [%at+{}], %v{};\nmad.lo.u32 %x, %x, 31, %v{};\n", 8 * k + 8, k, k);
    return text;
  }

 private:
  uint32_t pick(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  // Numbers that differ by what lanes do at most, and those that do anyway.
  std::string alike() { return fmt::format("%v{}", pick(30)); }
  std::string unlike() { return fmt::format("%w{}", pick(4)); }
  std::string any() { return pick(4) ? alike() : unlike(); }
  // A question of its own: what one register is in several places would be one to the analysis.
  std::string test() {
    static constexpr std::array compare = {"lt.u32", "eq.u32", "ne.s32", "gt.s32", "ge.u32"};
    q_ = fmt::format("%q{}", ++tests_);
    return fmt::format("and.b32 %y{0}, {1}, 7; add.u32 %y{0}, %y{0}, %zero; setp.{2} {3}, %y{0}, {4};\n", tests_, any(),
                       compare[pick(compare.size())], q_, pick(6));
  }
  std::string assign(const std::string& guard) {
    static constexpr std::array op = {"add.u32", "xor.b32", "and.b32", "min.u32", "mul.lo.u32", "sub.u32"};
    const bool differs = pick(5) == 0;
    return fmt::format("{}{} {}, {}, {};\n", guard, op[pick(op.size())], differs ? unlike() : alike(),
                       differs ? any() : alike(), pick(2) ? alike() : fmt::format("{}", pick(7)));
  }
  std::string block(uint32_t depth, uint32_t most) {
    std::string text;
    for (uint32_t n = 1 + pick(most); n > 0; --n) text += statement(depth);
    return text;
  }
  std::string statement(uint32_t depth) {
    switch (pick(depth ? 10 : 5)) {
      case 0: {
        const std::string text = test();
        return text + assign("@" + q_ + " ");
      }
      case 1:
      case 2: return assign("");
      case 3: return fmt::format("st.global.u32 [%at+{}], {};\n", 320 + 8 * pick(8), any());
      case 4: {  // out of a loop, or back to where it counts
        if (loops_.empty()) return assign("");
        const uint32_t l =
            loops_[loops_.size() - 1 - pick(std::min<uint32_t>(2, static_cast<uint32_t>(loops_.size())))];
        const std::string text = test();
        return text + fmt::format("@{}{} bra {}{};\n", pick(2) ? "!" : "", q_, pick(2) ? "OUT" : "COUNT", l);
      }
      case 5:
      case 6:
      case 7: {
        const uint32_t l = labels_++;
        std::string text = test();
        text += fmt::format("@{} bra ELSE{};\n", q_, l);
        text += block(depth - 1, 3);
        if (pick(2)) {
          text += fmt::format("bra END{};\nELSE{}:\n", l, l);
          text += block(depth - 1, 3) + fmt::format("END{}:\n", l);
        } else
          text += fmt::format("ELSE{}:\n", l);
        return text;
      }
      default: {
        const uint32_t l = labels_++;
        if (l >= 64) return assign("");
        std::string text = fmt::format("mov.u32 %m{0}, 0; and.b32 %h{0}, {1}, 3;\nTOP{0}:\n", l,
                                       pick(3) ? any() : fmt::format("{}", pick(4)));
        loops_.push_back(l);
        text += block(depth - 1, 4);
        loops_.pop_back();
        return text + fmt::format(
                          "COUNT{0}:\nadd.u32 %m{0}, %m{0}, 1; setp.le.u32 %p{0}, %m{0}, %h{0};\n@%p{0} bra "
                          "TOP{0};\nOUT{0}:\n",
                          l);
      }
    }
  }

  std::mt19937 random_;
  uint32_t labels_ = 0, tests_ = 0;
  std::string q_;  // of the last test
  std::vector<uint32_t> loops_;
};

TEST(Divergence, NestsMeanTheSame) {
  const char* count = std::getenv("RNDN_NESTS");  // more of them than each time
  const uint32_t last = count ? static_cast<uint32_t>(std::atoi(count)) : static_cast<uint32_t>(rndn::test::in_the_gate(24, 60));
  std::array<size_t, 2> regions{};
  for (uint32_t seed = 0; seed < last; ++seed) {
    const std::string text = kernel(Nest(seed).run());
    SCOPED_TRACE(fmt::format("nest {}\n{}", seed, text));
    our_code_agrees(text, {"sm_61", "sm_90"}, {0, 3});
    // Where lanes part without a region for it, they make the stores behind one after the other: more than with a region for every branch.
    for (const std::string target : {"sm_61", "sm_90"}) {
      std::array<uint64_t, 2> stores{};
      for (const bool apart : {false, true}) {
        auto made = assemble_for(parse_text("nest.ptx", kernel(Nest(seed).run(apart))), target);
        ASSERT_TRUE(made.ok()) << made.error().message;
        sim::Options o;
        o.deterministic = o.count_classes = true;
        sim::Counters counters;
        ASSERT_TRUE(run_simulator(target, made->cubin, "k", input_words(), o, 64 << 20, &counters).ok());
        regions[apart] += regions_of(*made, target);
        stores[apart] = counters.warp_by_class[static_cast<size_t>(isa::LatencyClass::global_store)];
        EXPECT_EQ(counters.partial_exits, 0u) << target;
      }
      EXPECT_EQ(stores[0], stores[1]) << target;
    }
    if (HasFailure()) return;
  }
  EXPECT_LT(10 * regions[0], 9 * regions[1]);
}

}  // namespace
}  // namespace rndn::assembler::testing::divergence_test
