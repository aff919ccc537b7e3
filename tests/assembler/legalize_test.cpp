// Expanded instructions: our code, ptxas's code where the simulator knows it, and the PTX interpreter, which knows nothing of expansions.
#include <gmock/gmock.h>

#include "tests/assembler/three_ways.h"

namespace rndn::assembler::testing {
namespace {

using ::testing::AnyOf;

TEST(Expand, SimdVideoInstructionsAndFns) {
  std::vector<std::string> statements;
  for (const char* op :
       {"vadd2", "vsub2", "vavrg2", "vabsdiff2", "vmin2", "vmax2", "vadd4", "vsub4", "vavrg4", "vmin4", "vmax4"})
    for (const char* type : {"u32", "s32"})
      for (const char* more : {"", ".sat", ".add"})
        statements.push_back(fmt::format("{0}.{1}.{1}.{1}{2} %r0, %r1, %r2, %r3", op, type, more));
  statements.push_back("fns.b32 %r0, %r1, 0, 3");
  statements.push_back("fns.b32 %r0, %r1, 31, -2");
  statements.push_back("and.b32 %r4, %r2, 31; fns.b32 %r0, %r1, %r4, 0");
  statements.push_back("and.b32 %r4, %r2, 31; and.b32 %r5, %r3, 15; sub.s32 %r5, %r5, 8; fns.b32 %r0, %r1, %r4, %r5");
  statements.push_back("vadd2.u32.u32.u32 %r2, %r2, %r2, %r2");  // its own operands
  statements.push_back("@%p1 vsub4.s32.s32.s32.sat %r2, %r1, %r2, %r3");
  for (std::string& s : statements)
    if (s.find(';') != std::string::npos) s = "mov.b32 %r0, 0; " + s;
  EXPECT_THAT(three_ways(kernel("6.0", "sm_60", statements), {"sm_61", "sm_86", "sm_90"}, true), AnyOf(-1, 3));
}

// No more statements than a thread has room for at once. ptxas has video instructions of whole words for Pascal, which the simulator does not know.
void video_three_ways(std::vector<std::string> statements, bool with_ptxas = true) {
  while (!statements.empty()) {
    const size_t n = std::min<size_t>(statements.size(), 90);
    const std::string text = kernel("6.0", "sm_60", {statements.end() - static_cast<ptrdiff_t>(n), statements.end()});
    EXPECT_THAT(three_ways(text, {"sm_86"}, with_ptxas), AnyOf(-1, 1));
    our_code_agrees(text, {"sm_61"}, {1});
    statements.resize(statements.size() - n);
  }
}
const char* const video_types[] = {"u32", "s32"};
const char* const video_compares[] = {"eq", "ne", "lt", "le", "gt", "ge"};

TEST(Expand, VideoInstructionsOfWords) {
  std::vector<std::string> statements;
  for (const char* d : video_types)
    for (const char* a : video_types)
      for (const char* second : {"", ".add", ".min", ".max"}) {
        const char* c = second[0] ? ", %r3" : "";
        for (const char* sat : {"", ".sat"}) {
          for (const char* b : video_types)
            for (const char* op : {"vadd", "vsub", "vabsdiff", "vmin", "vmax"})
              statements.push_back(fmt::format("{}.{}.{}.{}{}{} %r0, %r1, %r2{}", op, d, a, b, sat, second, c));
          for (const char* op : {"vshl", "vshr"})
            for (const char* mode : {"clamp", "wrap"})
              statements.push_back(
                  fmt::format("mov.b32 %r0, 0; and.b32 %r4, %r2, 63; {}.{}.{}.u32{}.{}{} %r0, %r1, %r4{}", op, d, a,
                              sat, mode, second, c));
        }
        for (const char* compare : video_compares)
          statements.push_back(fmt::format("vset.{}.{}.{}{} %r0, %r1, %r2{}", d, a, compare, second, c));
      }
  video_three_ways(statements);
}

TEST(Expand, VideoProducts) {
  std::vector<std::string> statements;
  for (const char* a : video_types)
    for (const char* b : video_types)
      for (const char* sat : {"", ".sat"})
        for (const char* shift : {"", ".shr7", ".shr15"})
          for (const char* form :
               {"vmad.{} %r0, %r1, %r2, %r3", "vmad.po.{} %r0, %r1, %r2.h1, %r3", "vmad.{} %r0, -%r1, %r2, %r3",
                "vmad.{} %r0, %r1.b1, -%r2, %r3", "vmad.{} %r0, -%r1, -%r2.h0, %r3", "vmad.{} %r0, %r1, %r2, -%r3"})
            statements.push_back(fmt::format(fmt::runtime(form), fmt::format("u32.{}.{}{}{}", a, b, sat, shift)));
  statements.push_back("@%p1 vmad.s32.s32.s32.sat %r0, %r0, -%r0, %r0");
  statements.push_back("vmad.s32.s32.u32.sat %r0, %r1, -7, %r3");
  for (std::string& s : statements) s = "mov.b32 %r0, %r3; " + s;
  video_three_ways(statements);
  for (const char* wrong : {"vmad.s32.s32.s32 %r0, -%r1, %r2, -%r3", "vmad.po.s32.s32.s32 %r0, %r1, %r2, -%r3"})
    EXPECT_THAT(refusal(kernel("6.0", "sm_60", {std::string("mov.b32 %r0, 0; ") + wrong})),
                ::testing::HasSubstr("the product or c is negated"));
  EXPECT_THAT(refusal(kernel("6.0", "sm_60", {"mov.b32 %r0, 0; vmad.s32.s32.s32 -%r0, %r1, %r2, %r3"})),
              ::testing::HasSubstr("what vmad writes is not negated"));
  EXPECT_THAT(refusal(kernel("6.0", "sm_60", {"mov.b32 %r0, 0; add.s32 %r0, -%r1, %r2"})),
              ::testing::HasSubstr("only operands of vmad may be negated"));
}

TEST(Expand, VideoInstructionsOfParts) {
  std::vector<std::string> statements;
  for (const char* d : video_types)
    for (const char* a : video_types) {
      for (const char* op : {"vadd2", "vsub2", "vavrg2", "vabsdiff2", "vmin2", "vmax2", "vadd4", "vsub4", "vavrg4",
                             "vabsdiff4", "vmin4", "vmax4"})
        for (const char* more : {"", ".sat", ".add"})
          statements.push_back(fmt::format("{}.{}.{}.{}{} %r0, %r1, %r2, %r3", op, d, a, d == a ? "s32" : "u32", more));
      for (const char* op : {"vset2", "vset4"})
        for (const char* compare : video_compares)
          statements.push_back(
              fmt::format("{}.{}.{}.{}{} %r0, %r1, %r2, %r3", op, d, a, compare, d == a ? ".add" : ""));
    }
  video_three_ways(statements);
}

TEST(Expand, VideoInstructionsOfSelectedParts) {
  std::vector<std::string> statements, upper;
  const auto add = [&](const std::string& s) {
    const bool is_upper = s.find("%r0.h1, ") != std::string::npos && !std::isdigit(s[s.find('.') - 1]);
    (is_upper ? upper : statements).push_back("mov.b32 %r0, %r3; " + s);
  };
  for (const char* types : {"u32.u32.u32", "s32.s32.s32", "u32.s32.u32", "s32.u32.s32"})
    for (const char* op : {"vadd", "vsub", "vabsdiff", "vmin", "vmax"}) {
      const char* const parts[] = {"b0", "b1", "b2", "b3", "h0", "h1"};
      const char* part = parts[statements.size() % 6];
      add(fmt::format("{}.{} %r0, %r1.{}, %r2", op, types, part));
      add(fmt::format("{}.{}.sat.add %r0, %r1, %r2.{}, %r3", op, types, part));
      for (const char* to : parts) {
        add(fmt::format("{}.{} %r0.{}, %r1, %r2.h1, %r3", op, types, to));
        add(fmt::format("{}.{}.sat %r0.{}, %r1.{}, %r2, %r3", op, types, to, part));
      }
      add(fmt::format("@%p1 {}.{}.sat %r0.b1, %r0.h0, %r0.b3, %r0", op, types));
    }
  for (const char* op : {"vshl", "vshr"})
    for (const char* mode : {"clamp", "wrap"}) {
      add(fmt::format("{}.s32.s32.u32.{} %r0, %r1.h1, %r2.b0", op, mode));
      add(fmt::format("{}.u32.s32.u32.sat.{} %r0.h0, %r1, %r2.b1, %r3", op, mode));
      add(fmt::format("{}.u32.u32.u32.sat.{} %r0.b1, %r1, 17, %r3", op, mode));
      add(fmt::format("{}.u32.s32.u32.{} %r0.h1, %r1, %r2.b1, %r3", op, mode));
    }
  for (const char* compare : {"eq", "lt", "ge"}) {
    add(fmt::format("vset.s32.u32.{} %r0.b2, %r1.h1, %r2.b1, %r3", compare));
    add(fmt::format("vset.u32.s32.{}.max %r0, %r1.b0, %r2.b1, %r3", compare));
  }
  for (const char* op : {"vadd2.s32.u32.s32", "vsub2.u32.u32.s32.sat", "vavrg2.s32.s32.s32.add", "vset2.s32.s32.eq",
                         "vset2.u32.s32.le.add", "vset2.u32.u32.ge.add", "vset2.s32.s32.lt.add"}) {
    add(fmt::format("{} %r0.h0, %r1.h10, %r2.h32, %r3", op));
    add(fmt::format("{} %r0.h1, %r1.h23, %r2.h11, %r3", op));
    add(fmt::format("{} %r0.h10, %r1, %r2, %r3", op));
  }
  for (const char* op : {"vadd4.s32.u32.s32", "vabsdiff4.u32.u32.u32.sat", "vmin4.s32.s32.s32.add", "vset4.s32.s32.ne",
                         "vset4.u32.s32.eq.add", "vset4.u32.u32.le.add", "vset4.s32.s32.gt.add"}) {
    add(fmt::format("{} %r0.b0, %r1.b3210, %r2.b7654, %r3", op));
    add(fmt::format("{} %r0.b31, %r1.b7531, %r2.b0246, %r3", op));
    add(fmt::format("{} %r0.b3210, %r1, %r2.b1111, %r3", op));
  }
  video_three_ways(statements);
  EXPECT_EQ(upper.size(), 44u);
  video_three_ways(upper, false);  // ptxas 11.8 takes the upper half of the result; 13.5 and the manual the lower
}

// What ptxas's code gives where the manual as we read it says otherwise, and what the manual says of d.h1: numbers, for machines without ptxas.
TEST(Expand, VideoInstructionsAsPtxasHasThem) {
  struct Case {
    const char* statement;
    uint32_t a, b, c, result;
  };
  const Case cases[] = {
      {"vadd.u32.u32.u32.sat %r0, %r1, %r2", 1, 0xFFFFFFFF, 0, 0},
      {"vadd.s32.u32.u32.sat %r0, %r1, %r2", 1, 0xFFFFFFFF, 0, 0x7FFFFFFF},
      {"vshl.u32.u32.u32.sat.clamp %r0, %r1, %r2", 3, 31, 0, 0xFFFFFFFF},
      {"vshl.u32.u32.u32.sat.clamp %r0, %r1, %r2", 0x10, 30, 0, 0},
      {"vshl.u32.u32.u32.sat.clamp %r0, %r1, %r2", 2, 32, 0, 0},
      {"vadd.u32.u32.u32.min %r0, %r1, %r2, %r3", 0, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFF},
      {"vmin.u32.u32.u32.min %r0, %r1, %r2, %r3", 0x80000000, 0x80000001, 0xFFFFFFFF, 0x80000000},
      {"vshl.u32.u32.u32.clamp.min %r0, %r1, %r2, %r3", 1, 32, 1, 1},
      {"vset.s32.u32.lt.min %r0, %r1, %r2, %r3", 0, 1, 0x80000000, 0x80000000},
      {"vset.u32.s32.lt.min %r0, %r1, %r2, %r3", 0, 1, 0x80000000, 1},
      {"vsub.u32.u32.u32.sat %r0.b1, %r1, %r2, %r3", 0, 1, 0x12345678, 0x1234FF78},
      {"vadd.s32.s32.s32.sat %r0.b1, %r1, %r2, %r3", 0xFFFFFFFF, 0, 0x12345678, 0x12347F78},
      {"vadd.u32.u32.u32 %r0.h1, %r1, %r2, %r3", 0x10001, 2, 0x12345678, 0x00035678},
      {"vmad.u32.u32.u32.sat %r0, %r1, %r2, %r3", 0, 1, 0x80000000, 0},
      {"vmad.u32.u32.u32.sat.shr7 %r0, %r1, %r2, %r3", 0, 1, 0x80000000, 0xFFFFFFFF},
  };
  for (const Case& k : cases) {
    const std::string text =
        kernel("6.0", "sm_60",
               {fmt::format("mov.b32 %r0, 0; mov.b32 %r1, {}; mov.b32 %r2, {}; mov.b32 %r3, {}; {}", k.a, k.b, k.c,
                            k.statement)});
    auto out = run_interpreter(parse_text("video.ptx", text), "k", input_words());
    ASSERT_TRUE(out.ok()) << out.error().message;
    EXPECT_EQ((*out)[0], k.result) << k.statement;
  }
}

TEST(Expand, SuffixesInOtherOrders) {
  const std::string statements[] = {"vadd.add.s32.sat.u32.s32 %r0, %r1, %r2, %r3",
                                    "vshl.u32.sat.add.u32.clamp.u32 %r0, %r1, %r2, %r3",
                                    "vset.add.s32.lt.s32 %r0, %r1, %r2, %r3", "bar.red.u32.popc %r0, 0, %p1",
                                    "bar.red.pred.and %p1, 0, %p1; selp.u32 %r0, 5, 6, %p1"};
  video_three_ways({std::begin(statements), std::end(statements)});
  EXPECT_THAT(three_ways(kernel("7.0", "sm_80", {"cvt.pack.u8.s32.sat.b32 %r0, %r1, %r2, %r3"}), newer, true),
              AnyOf(-1, static_cast<int>(newer.size())));
}

// As ptxas takes them; state spaces and types it tells apart by their order.
TEST(Expand, ModesInOtherOrders) {
  const auto read = [](const std::string& statement) {
    const std::string text = ".version 7.8\n.target sm_80\n.address_size 64\n.entry k()\n{\n.reg .b32 %r<4>; .reg .b64 "
                             "%d<4>; .reg .pred %p; .shared .align 16 .b8 cells[64];\n" +
                             statement + ";\nret;\n}\n";
    const std::string refused = refusal(text);
    return refused.empty() ? ptx::print(parse_text("order.ptx", text)) : refused;
  };
  const std::vector<std::vector<std::string>> rows = {
      {"cp.async.ca.shared.global [cells], [%d1], 8", "cp.async.shared.global.ca [cells], [%d1], 8",
       "cp.async.shared.ca.global [cells], [%d1], 8"},
      {"cp.async.cg.shared.global.L2::cache_hint [cells], [%d1], 16, %d2",
       "cp.async.L2::cache_hint.shared.global.cg [cells], [%d1], 16, %d2"},
      {"cp.async.mbarrier.arrive.noinc.shared.b64 [cells]", "cp.async.mbarrier.arrive.shared.b64.noinc [cells]"},
      {"ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r1, %r2}, [cells]",
       "ldmatrix.aligned.m8n8.sync.trans.x2.shared.b16 {%r1, %r2}, [cells]",
       "ldmatrix.sync.aligned.x2.shared.b16.m8n8.trans {%r1, %r2}, [cells]"},
      {"mbarrier.arrive.noComplete.shared.b64 %d1, [cells], 1", "mbarrier.arrive.b64.shared.noComplete %d1, [cells], 1"},
      {"bar.red.and.pred %p, 0, %p", "bar.red.pred.and %p, 0, %p", "barrier.cta.red.aligned.pred.and %p, 0, %p"},
      {"cvt.pack.sat.u8.s32.b32 %r1, %r2, %r3, %r1", "cvt.pack.u8.s32.sat.b32 %r1, %r2, %r3, %r1"},
  };
  for (const auto& row : rows)
    for (const std::string& other : row) EXPECT_EQ(read(other), read(row[0])) << other;
  EXPECT_THAT(read("cp.async.ca.global.shared [cells], [%d1], 8"), ::testing::HasSubstr("unsupported modifier"));
  EXPECT_THAT(read("cvt.pack.sat.s32.u8.b32 %r1, %r2, %r3, %r1"), ::testing::HasSubstr("unsupported modifier"));
}

TEST(Expand, SelectorsThatSelectNothing) {
  for (const char* wrong : {"vadd.s32.s32.s32 %r0, %r1.b4, %r2", "vadd.s32.s32.s32 %r0, %r1.b10, %r2",
                            "vadd2.s32.s32.s32 %r0, %r1.b10, %r2, %r3", "vadd4.s32.s32.s32 %r0.b02, %r1, %r2, %r3",
                            "vadd.s32.s32.s32.add %r0.b0, %r1, %r2, %r3", "vadd2.s32.s32.s32 %r0, %r1.h1, %r2, %r3"})
    EXPECT_THAT(refusal(kernel("6.0", "sm_60", {std::string("mov.b32 %r0, 0; ") + wrong})),
                ::testing::HasSubstr("selects no part here"))
        << wrong;
}

// Pascal makes products of 16-bit ones, and of fewer where a factor is short.
TEST(Expand, ProductsByConstants) {
  std::vector<std::string> statements;
  for (const char* factor :
       {"0", "1", "3", "24", "768", "65535", "65536", "65537", "2147483647", "-1", "-768", "-65537"}) {
    for (const char* type : {"u32", "s32"}) {
      if (type[0] == 'u' && factor[0] == '-') continue;
      statements.push_back(fmt::format("mul.wide.{} %d4, %r1, {}", type, factor));
      statements.push_back(fmt::format("mad.wide.{} %d4, %r2, {}, %d3", type, factor));
      statements.push_back(fmt::format("mul.hi.{} %r4, %r1, {}", type, factor));
    }
    statements.push_back(fmt::format("mul.lo.u32 %r4, %r1, {}", factor));
  }
  statements.push_back("mul.wide.s32 %d4, %r1, %r2");
  statements.push_back("mul.wide.u32 %d4, %r1, %r2");
  statements.push_back("mul.lo.u64 %d4, %d1, %d2");
  EXPECT_LE(statements.size(), 96u);
  EXPECT_THAT(three_ways(kernel("6.0", "sm_60", statements), {"sm_61", "sm_86", "sm_90"}, true), AnyOf(-1, 3));
}

TEST(Expand, PairsOfShorts) {
  std::vector<std::string> statements;
  for (const char* op : {"add.u16x2", "add.s16x2", "min.u16x2", "min.s16x2", "max.u16x2", "max.s16x2", "min.s16x2.relu",
                         "max.relu.s16x2", "min.s32.relu", "max.relu.s32"})
    statements.push_back(fmt::format("{} %r0, %r1, %r2", op));
  three_ways(kernel("8.0", "sm_90", statements), {"sm_90"}, false);
}

TEST(Expand, Bfloats) {
  std::vector<std::string> statements;
  for (const char* r : {"rni", "rzi", "rmi", "rpi"}) {
    for (const char* to : {"s16", "u16"}) statements.push_back(fmt::format("cvt.{}.{}.bf16 %h0, %h1", r, to));
    for (const char* to : {"s32", "u32"}) statements.push_back(fmt::format("cvt.{}.{}.bf16 %r0, %h1", r, to));
    for (const char* to : {"s64", "u64"}) statements.push_back(fmt::format("cvt.{}.{}.bf16 %d0, %h1", r, to));
    statements.push_back(fmt::format("cvt.{}.bf16.bf16 %h0, %h1", r));
  }
  for (const char* r : {"rn", "rz", "rm", "rp"}) {
    for (const char* from : {"s16", "u16", "f16"})
      statements.push_back(fmt::format("cvt.{}.bf16.{} %h0, %h1", r, from));
    for (const char* from : {"s32", "u32"}) statements.push_back(fmt::format("cvt.{}.bf16.{} %h0, %r1", r, from));
    for (const char* from : {"s64", "u64"}) statements.push_back(fmt::format("cvt.{}.bf16.{} %h0, %d1", r, from));
    statements.push_back(fmt::format("cvt.{}.bf16.f32 %h0, %f1", r));
    statements.push_back(fmt::format("cvt.{}.bf16.f64 %h0, %e1", r));
    statements.push_back(fmt::format("cvt.{}.f16.bf16 %h0, %h1", r));
    statements.push_back(fmt::format("cvt.{}.ftz.bf16.f32 %h0, %f1", r));
    statements.push_back(
        fmt::format("mov.b16 %h0, 0; and.b16 %h3, %h1, 0x80ff; cvt.{}.ftz.f32.bf16 %f2, %h3; mov.b32 %r4, %f2; "
                    "cvt.u16.u32 %h0, %r4; shr.u32 %r4, %r4, 16; cvt.u16.u32 %h3, %r4; xor.b16 %h0, %h0, %h3",
                    r));
    statements.push_back(
        fmt::format("mov.b16 %h0, 0; and.b32 %r4, %r1, 0x80ffffff; mov.b32 %f2, %r4; cvt.{}.ftz.bf16.f32 %h0, %f2", r));
  }
  statements.push_back("cvt.f16.bf16 %h0, %h1");
  statements.push_back("cvt.bf16.f16 %h0, %h1");
  // PTX leaves open which NaN of 64 bits comes out.
  statements.push_back(
      "mov.b64 %d0, 0; cvt.f64.bf16 %d4, %h1; testp.notanumber.f64 %p2, %d4; selp.b64 %d0, 5, %d4, %p2");
  // ptxas's code for these has conversions that the simulator does not know, as its barrier objects below.
  std::string text = kernel("7.8", "sm_90", statements);
  three_ways(text.insert(text.find(".reg .pred"), ".reg .f32 %f2; "), {"sm_90"}, false);
  statements.clear();
  for (const char* c : {"eq", "ne", "lt", "ge", "equ", "ltu", "geu", "num", "nan"}) {
    for (const char* to : {"u32", "s32"}) {
      statements.push_back(fmt::format("set.{}.{}.bf16 %r0, %h1, %h2", c, to));
      statements.push_back(fmt::format("set.{}.{}.bf16x2 %r0, %r1, %r2", c, to));
    }
    statements.push_back(fmt::format("set.{}.bf16.bf16 %h0, %h1, %h2", c));
    statements.push_back(fmt::format("set.{}.bf16x2.bf16x2 %r0, %r1, %r2", c));
    statements.push_back(fmt::format("setp.{}.and.bf16 %p2, %h1, %h2, %p1", c));
  }
  EXPECT_THAT(three_ways(kernel("7.8", "sm_90", statements), {"sm_90"}, true), AnyOf(-1, 1));
}

// Of every operand, and with another predicate.
TEST(Expand, SetOfHalves) {
  struct Source {
    const char *type, *operands, *compares[2];
  };
  const Source sources[] = {{"b16", "%h1, %h2", {"eq", "ne"}},
                            {"u32", "%r1, 77", {"lo", "ge"}},
                            {"s64", "%d1, %d2", {"lt", "ne"}},
                            {"f32", "%f1, %f2", {"ltu", "num"}},
                            {"f64", "%e1, 0d3FF0000000000000", {"gt", "nan"}}};
  std::vector<std::string> halves, bfloats;
  for (const char* combined : {"", ".and", ".or", ".xor"}) {
    const std::string end = combined[0] ? ", !%p1" : "";
    for (const Source& s : sources)
      for (const char* c : s.compares) {
        const bool single = std::string(s.type) == "f32";
        const std::string before = "mov.b16 %h0, 0; mov.b32 %f2, %r2; ";
        halves.push_back(fmt::format("{}set.{}{}{}.f16.{} %h0, {}{}", before, c, combined, single ? ".ftz" : "", s.type,
                                     s.operands, end));
        bfloats.push_back(fmt::format("{}set.{}{}.bf16.{} %h0, {}{}", before, c, combined, s.type, s.operands, end));
      }
    for (const char* to : {"u16", "s16", "f16"})
      halves.push_back(fmt::format("set.le{}.ftz.{}.f16 %h0, %h1, %h2{}", combined, to, end));
    for (const char* to : {"u32", "s32"})
      for (const char* from : {"f16 %r0, %h1, %h2", "f16x2 %r0, %r1, %r2"})
        halves.push_back(fmt::format("set.neu{}.{}.{}{}", combined, to, from, end));
    halves.push_back(fmt::format("set.lt{}.f16x2.f16x2 %r0, %r1, %r2{}", combined, end));
    for (const char* to : {"u16", "s16", "bf16"})
      bfloats.push_back(fmt::format("set.le{}.{}.bf16 %h0, %h1, %h2{}", combined, to, end));
    bfloats.push_back(fmt::format("set.ne{}.bf16.f16 %h0, %h1, %h2{}", combined, end));
    for (const char* from : {"bf16 %r0, %h1, %h2", "bf16x2 %r0, %r1, %r2"})
      bfloats.push_back(fmt::format("set.geu{}.u32.{}{}", combined, from, end));
    bfloats.push_back(fmt::format("set.lt{}.bf16x2.bf16x2 %r0, %r1, %r2{}", combined, end));
  }
  const auto with_float = [](std::string text) { return text.insert(text.find(".reg .pred"), ".reg .f32 %f2; "); };
  while (!halves.empty()) {  // no more than a thread has room for
    const size_t n = std::min<size_t>(halves.size(), 40);
    EXPECT_THAT(three_ways(with_float(kernel("6.5", "sm_60", {halves.end() - static_cast<ptrdiff_t>(n), halves.end()})),
                           {"sm_61", "sm_86", "sm_90"}, true),
                AnyOf(-1, 3));
    halves.resize(halves.size() - n);
  }
  EXPECT_THAT(three_ways(with_float(kernel("7.8", "sm_90", bfloats)), {"sm_90"}, true), AnyOf(-1, 1));
}

TEST(Expand, PacksOfFewBits) {
  std::vector<std::string> statements;
  for (const char* t : {"u8", "s8", "u4", "s4", "u2", "s2"})
    for (const char* operands : {"%r1, %r2, %r3", "%r4, %r5, %r3", "%r4, -1, %r0", "1, %r5, 0"})
      statements.push_back(
          fmt::format("mov.b32 %r0, %r2; shr.s32 %r4, %r1, 28; shr.s32 %r5, %r2, 27; cvt.pack.sat.{}.s32.b32 %r0, {}",
                      t, operands));
  EXPECT_THAT(three_ways(kernel("7.0", "sm_80", statements), newer, true), AnyOf(-1, static_cast<int>(newer.size())));
}

// Halves that all threads of a block add to, in shared and global memory and by generic addresses; and swaps of neighbouring halves.
TEST(Expand, SmallAtomics) {
  std::string text =
      ".version 7.8\n.target {}\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
      ".reg .b32 %r<8>; .reg .b64 %d<8>; .reg .b16 %h<8>; .reg .pred %p;\n.shared .align 4 .b8 s[16];\n"
      "ld.param.u64 %d1, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mul.wide.u32 %d2, %r1, 73728;\n"
      "add.u64 %d1, %d1, %d2; mov.u32 %r5, s;\nsetp.ne.u32 %p, %r0, 0; @%p bra GO;\n"
      "st.shared.v4.b32 [%r5], {0, 0, 0, 0};\nGO: bar.sync 0;\n"
      "and.b32 %r2, %r0, 1; shl.b32 %r2, %r2, 1; add.u32 %r3, %r5, %r2; cvt.u64.u32 %d3, %r2; add.u64 %d4, %d1, %d3;\n"
      "mov.b16 %h1, 0x3c00; mov.b16 %h2, 0x3f80; mov.b32 %r4, {%h2, %h2}; cvta.shared.u64 %d5, %d6;\n";
  text.replace(text.find("cvta.shared.u64 %d5, %d6"), 24, "cvt.u64.u32 %d6, %r3; cvta.shared.u64 %d5, %d6");
  const std::string halves =
      "atom.shared.add.noftz.f16 %h3, [%r3], %h1;\nred.add.noftz.f16 [%d5], %h1;\n"
      "atom.global.add.noftz.f16 %h4, [%d4+8], %h1;\n@%p red.global.add.noftz.f16 [%d4+8], %h1;\n"
      "atom.add.noftz.f16 %h3, [s+4], %h1;\n"
      // Every thread takes one of 96 halves with a swap from 0; the value that it saw is 0 once.
      "mul.wide.u32 %d6, %r0, 2; add.u64 %d6, %d6, %d1; cvt.u16.u32 %h5, %r0; mov.b16 %h6, 0;\n"
      "atom.acq_rel.gpu.global.cas.b16 %h7, [%d6+64], %h6, %h5;\natom.global.cas.b16 %h6, [%d6+64], %h5, 0x1234;\n"
      "mul.wide.u32 %d7, %r0, 768; add.u64 %d7, %d7, %d1; cvt.u32.u16 %r6, %h7; st.global.b32 [%d7+512], %r6;\n"
      "cvt.u32.u16 %r6, %h6; st.global.b32 [%d7+520], %r6;\n";
  const std::string bfloats =
      "atom.shared.add.noftz.bf16 %h3, [%r3+8], %h2;\natom.global.add.noftz.bf16 %h3, [%d4+16], %h2;\n"
      "red.global.add.noftz.bf16x2 [%d1+20], %r4;\natom.shared.add.noftz.bf16x2 %r6, [%r5+12], %r4;\n";
  const std::string end =
      "bar.sync 0;\n@%p bra END;\nld.shared.v4.b32 {%r0, %r1, %r2, %r3}, [%r5];\nst.global.v4.b32 [%d1+32], {%r0, %r1, "
      "%r2, "
      "%r3};\nEND: ret;\n}\n";
  auto with = [&](const std::string& target, const std::string& body) {
    std::string t = text + body + end;
    return t.replace(t.find("{}"), 2, target);
  };
  EXPECT_THAT(three_ways(with("sm_80", halves), newer, true), AnyOf(-1, static_cast<int>(newer.size())));
  three_ways(with("sm_90", halves + bfloats), {"sm_90"}, false);
}

// Rounds of an exchange through shared memory, with barrier objects in the place of bar.sync: by token, by parity, with fewer threads after a
// drop, with counts, and after copies of cp.async.
TEST(Expand, BarrierObjects) {
  const std::string text =
      ".version 7.1\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
      ".reg .b32 %r<16>; .reg .b64 %d<8>; .reg .pred %p<4>;\n.shared .align 8 .b64 a[3];\n.shared .align 16 .b8 "
      "s[384];\n"
      "ld.param.u64 %d0, [in]; ld.param.u64 %d1, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x;\n"
      "mov.u32 %r2, %ntid.x; mad.lo.u32 %r3, %r1, %r2, %r0; mad.wide.u32 %d2, %r3, 24, %d0; mad.wide.u32 %d3, %r3, "
      "768, %d1;\n"
      "mov.u32 %r4, a; mov.u32 %r5, s; shl.b32 %r6, %r0, 2; add.u32 %r6, %r6, %r5; setp.ne.u32 %p0, %r0, 0;\n@%p0 bra "
      "READY;\n"
      "mbarrier.init.shared.b64 [%r4], %r2;\nmbarrier.init.shared.b64 [a+8], 192;\nmbarrier.init.shared.b64 [%r4+16], "
      "%r2;\n"
      "READY:\nbar.sync 0;\n"
      // By token: the neighbour's number of this round.
      "mov.u32 %r7, 0; mov.u32 %r8, 0;\nROUND:\nmad.lo.u32 %r9, %r0, 17, %r7; st.shared.b32 [%r6], %r9;\n"
      "mbarrier.arrive.shared.b64 %d4, [%r4];\nWAIT:\nmbarrier.test_wait.shared.b64 %p1, [%r4], %d4;\n@!%p1 bra WAIT;\n"
      "add.u32 %r9, %r0, 1; setp.eq.u32 %p2, %r9, %r2; selp.b32 %r9, 0, %r9, %p2; shl.b32 %r9, %r9, 2; add.u32 %r9, "
      "%r9, %r5;\n"
      "ld.shared.b32 %r10, [%r9]; mad.lo.u32 %r8, %r8, 31, %r10;\n"
      // The second arrival of the round, by generic address; waited for by parity. It expects two of each thread.
      "cvt.u64.u32 %d5, %r4; cvta.shared.u64 %d5, %d5;\n"
      "mbarrier.arrive.noComplete.b64 %d6, [%d5+8], 1;\nmbarrier.arrive.b64 %d6, [%d5+8];\nand.b32 %r11, %r7, "
      "1;\nAGAIN:\n"
      "mbarrier.test_wait.parity.shared.b64 %p1, [%r4+8], %r11;\n@!%p1 bra AGAIN;\n"
      "add.u32 %r7, %r7, 1; setp.lt.u32 %p1, %r7, 5;\n@%p1 bra ROUND;\nst.global.u32 [%d3], %r8;\n"
      // Copies, then a third of the threads leaves.
      "cp.async.ca.shared.global [%r6], [%d2], 4;\ncp.async.mbarrier.arrive.noinc.shared.b64 [%r4+16];\n"
      "cp.async.mbarrier.arrive.shared.b64 [%r4+16];\nCOPIED:\nmbarrier.test_wait.parity.shared.b64 %p1, [%r4+16], 0;\n"
      "@!%p1 bra COPIED;\nld.shared.b32 %r10, [%r9]; st.global.u32 [%d3+8], %r10;\n"
      "setp.lt.u32 %p3, %r0, 32;\n@!%p3 bra STAY;\nmbarrier.arrive_drop.shared.b64 %d4, [%r4];\nbra.uni LEFT;\nSTAY:\n"
      "mbarrier.arrive.shared.b64 %d4, [%r4];\nLEFT:\nmbarrier.test_wait.shared.b64 %p1, [%r4], %d4;\n@!%p1 bra LEFT;\n"
      "@%p3 bra DONE;\nst.shared.b32 [%r6], %r8;\nmbarrier.arrive.shared.b64 %d4, [%r4];\nLAST:\n"
      "mbarrier.test_wait.shared.b64 %p1, [%r4], %d4;\n@!%p1 bra LAST;\nxor.b32 %r12, %r6, 4;\nld.shared.b32 %r10, "
      "[%r12];\n"
      "st.global.u32 [%d3+16], %r10;\nDONE:\nbar.sync 0;\n@%p0 bra END;\nmbarrier.inval.shared.b64 "
      "[%r4];\nEND:\nret;\n}\n";
  three_ways(text, newer, false);
}

TEST(Expand, ArrivalsWithCountsAndTryWait) {
  const std::string text =
      ".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
      ".reg .b32 %r<8>; .reg .b64 %d<4>; .reg .pred %p<3>;\n.shared .align 8 .b64 a;\n"
      "ld.param.u64 %d1, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x;\n"
      "mad.lo.u32 %r3, %r1, %r2, %r0; mad.wide.u32 %d1, %r3, 768, %d1; setp.ne.u32 %p0, %r0, 0;\n"
      "@!%p0 mbarrier.init.shared::cta.b64 [a], 288;\nbar.sync 0;\nmov.u32 %r4, 0;\nROUND:\n"
      "mbarrier.arrive.shared.b64 %d2, [a], 3;\nmbarrier.try_wait.shared.b64 %p1, [a], %d2;\nW: @%p1 bra NEXT;\n"
      "mbarrier.try_wait.parity.shared.b64 %p1, [a], %r4, 100;\nbra W;\nNEXT:\nxor.b32 %r4, %r4, 1; add.u32 %r5, %r5, "
      "1;\n"
      "setp.eq.u32 %p2, %r4, 1;\n@%p2 bra ROUND;\nst.global.u32 [%d1], %r4;\nret;\n}\n";
  std::string t = text;
  t.replace(t.find("add.u32 %r5, %r5, 1;"), 20, "");
  three_ways(t, {"sm_90"}, false);
}

// Bytes that are to come hold a phase open, whoever tells of them first: threads of one half complete what those of the other half expect. Their
// copies are plain stores here. With order and scope, as libcu++ writes it.
TEST(Expand, PhasesWaitForBytes) {
  const std::string text =
      ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
      ".reg .b32 %r<12>; .reg .b64 %d<6>; .reg .pred %p<4>;\n.shared .align 8 .b64 a;\n.shared .b32 s[96];\n"
      "ld.param.u64 %d1, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x;\n"
      "mad.lo.u32 %r3, %r1, %r2, %r0; mad.wide.u32 %d1, %r3, 768, %d1; setp.ne.u32 %p0, %r0, 0;\n"
      "mov.u32 %r5, s; mad.lo.u32 %r6, %r0, 4, %r5; sub.u32 %r7, %r2, 1; sub.u32 %r7, %r7, %r0;\n"
      "mad.lo.u32 %r7, %r7, 4, %r5; shr.u32 %r8, %r2, 1; setp.lt.u32 %p1, %r0, %r8;\n"
      "@!%p0 mbarrier.init.shared::cta.b64 [a], %r8;\nbar.sync 0;\nmov.u32 %r4, 0; mov.u32 %r9, 0;\nROUND:\n"
      "@%p1 bra EXPECT;\nmad.lo.u32 %r10, %r0, 3, %r4; st.shared.b32 [%r6], %r10;\n"
      "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [a], 1000;\n"
      "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [a], 996;\nbra WAIT;\n"
      "EXPECT: mad.lo.u32 %r10, %r0, 5, %r4; st.shared.b32 [%r6], %r10;\n"
      "mbarrier.arrive.expect_tx.release.cluster.shared::cta.b64 %d2, [a], 4;\n"
      "WAIT: and.b32 %r11, %r4, 1;\n"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [a], %r11;\n@!%p2 bra WAIT;\n"
      "ld.shared.b32 %r10, [%r7]; mad.lo.u32 %r9, %r9, 31, %r10; bar.sync 0;\n"
      "add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 4;\n@%p2 bra ROUND;\nst.global.u32 [%d1], %r9;\n"
      // A third of those that arrive leave for good, bytes and all; the others' next phase needs them no more.
      "@!%p1 bra OUT;\nsetp.lt.u32 %p3, %r0, 16;\n@%p3 mbarrier.arrive_drop.expect_tx.release.cta.shared::cta.b64 %d2, "
      "[a], "
      "8;\n"
      "@%p3 mbarrier.complete_tx.shared.b64 [a], 8;\n@%p3 bra OUT;\n"
      "mbarrier.arrive.release.cta.shared::cta.b64 %d2, [a];\n"
      "W2: mbarrier.test_wait.acquire.cta.shared::cta.b64 %p2, [a], %d2;\n@!%p2 bra W2;\n"
      "mbarrier.arrive.relaxed.cta.shared.b64 %d2, [a], 1;\n"
      "W3: mbarrier.test_wait.parity.shared::cta.b64 %p2, [a], 1;\n@!%p2 bra W3;\n"
      "st.global.u32 [%d1+8], %r0;\nOUT: ret;\n}\n";
  three_ways(text, {"sm_90"}, false);
}

// Copies in bulk, from global memory and back; a barrier object counts the bytes of the former.
TEST(Expand, CopiesInBulk) {
  const std::string text =
      ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
      ".reg .b32 %r<12>; .reg .b64 %d<6>; .reg .pred %p<4>;\n.shared .align 8 .b64 a;\n.shared .align 128 .b8 "
      "s[4096];\n"
      "ld.param.u64 %d0, [in]; ld.param.u64 %d1, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, "
      "%ntid.x;\n"
      "mad.lo.u32 %r3, %r1, %r2, %r0; mad.wide.u32 %d3, %r3, 768, %d1; setp.ne.u32 %p0, %r0, 0;\n"
      "mul.lo.u32 %r4, %r1, %r2; mad.wide.u32 %d2, %r4, 24, %d0;\n"
      "@!%p0 mbarrier.init.shared.b64 [a], 1;\nbar.sync 0;\nmov.u32 %r5, a; mov.u32 %r6, s; mov.u32 %r8, 512;\n"
      "@%p0 bra WAIT;\n"
      "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %d4, [%r5], 1024;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r6], [%d2], %r8, [%r5];\n"
      "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s+512], [%d2+512], 512, [a];\n"
      "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [a], 0;\n@!%p2 bra WAIT;\n"
      "mad.lo.u32 %r7, %r0, 8, %r6; ld.shared.b64 %d5, [%r7]; st.global.b64 [%d3], %d5; ld.shared.b32 %r9, [%r7+4];\n"
      "add.u32 %r9, %r9, 1; st.shared.b32 [%r7+4], %r9; fence.proxy.async.shared::cta; bar.sync 0; mul.lo.u32 %r10, "
      "%r0, 16; "
      "add.u32 %r10, %r10, %r6;\n"
      "setp.lt.u32 %p3, %r0, 40;\n@%p3 cp.async.bulk.global.shared::cta.bulk_group [%d3+16], [%r10], 16;\n"
      "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; cp.async.bulk.wait_group 0;\nret;\n}\n";
  three_ways(text, {"sm_90"}, false);
}

}  // namespace
}  // namespace rndn::assembler::testing
