// Products of 64 bits by literals and of factors that are 32 bits extended (Selector::multiply): what they are, and what they take.
#include "tests/assembler/three_ways.h"

namespace rndn::assembler::testing::products_test {
namespace {

using M = isa::Mnemonic;

// Statements behind each other, with the registers that they need beside those of every kernel.
std::string products(const std::vector<std::string>& statements) {
  return with(kernel("7.0", "sm_60", statements), ".reg .b64 %x<9>; .reg .b32 %y<4>;");
}

TEST(Products, MeanWhatThePtxMeans) {
  std::vector<std::string> all;
  for (const char* literal : {"0",
                              "1",
                              "2",
                              "8",
                              "3",
                              "100",
                              "65535",
                              "65536",
                              "0x80000000",
                              "0xffffffff",
                              "0x100000000",
                              "0x4000000000000000",
                              "0x8000000000000000",
                              "0x500000003",
                              "-1",
                              "-2",
                              "-3",
                              "-65536",
                              "-0x80000000",
                              "-0x80000001"})
    for (const char* statement : {"mul.lo.u64 %d4, %d1, {};", "mul.lo.s64 %d4, {}, %d2;",
                                  "mad.lo.u64 %d4, %d1, {}, %d2;", "mad.lo.s64 %d4, %d3, {}, %d3;"})
      all.push_back(fmt::format(fmt::runtime(statement), literal));
  for (const char* literal : {"0", "1", "2", "8", "100", "65536", "0x80000000", "-1", "-8"})
    for (const char* statement :
         {"mul.lo.u32 %r4, %r1, {};", "mad.lo.s32 %r4, %r1, {}, %r2;", "mad.lo.u32 %r4, %r1, {}, 77;"})
      all.push_back(fmt::format(fmt::runtime(statement), literal));
  const char* const extensions[] = {
      "cvt.u64.u32 {}, %r1;",       "cvt.s64.s32 {}, %r2;",          "cvt.u64.s32 {}, %r3;",
      "cvt.s64.u32 {}, %r3;",       "cvt.u64.u16 {}, %h1;",          "cvt.s64.s16 {}, %h2;",
      "cvt.u64.s8 {}, %r1;",        "cvt.sat.u64.s32 {}, %r1;",      "shr.u64 {}, %d1, 32;",
      "shr.s64 {}, %d2, 35;",       "shr.u64 {}, %d3, 31;",          "and.b64 {}, %d1, 0xffffffff;",
      "and.b64 {}, %d2, -16;",      "and.b64 {}, %d3, 0x1ffffffff;", "ld.global.u32 {}, [%in+4];",
      "ld.global.s32 {}, [%in+8];", "ld.global.s8 {}, [%in];",       "mov.b64 {}, %d2;"};
  constexpr int count = std::size(extensions);
  for (int a = 0; a < count; ++a)
    for (int b = 0; b <= a; ++b) {
      const std::string x = fmt::format("%a{}_{}", a, b), y = fmt::format("%b{}_{}", a, b);
      // The kernel stores what its statement names first.
      all.push_back(
          fmt::format("{{ .reg .b64 {0}, {1}; {2} {3} mul.lo.s64 %d4, {0}, {1}; mad.lo.u64 %d5, {1}, {0}, %d3; "
                      "mad.lo.s64 %d6, {0}, 48, {1}; "
                      "xor.b64 %d4, %d4, %d5; sub.s64 %d4, %d4, %d6; }} mov.b64 %d4, %d4;",
                      x, y, fmt::format(fmt::runtime(extensions[a]), x), fmt::format(fmt::runtime(extensions[b]), y)));
    }
  for (size_t k = 0; k < all.size(); k += 90) {
    std::vector<std::string> some;
    for (const std::string& s : std::span(all).subspan(k, std::min<size_t>(90, all.size() - k))) {
      // What it sets goes first for kernel().
      some.push_back(s.starts_with("{") ? "mov.b64 %d4, 0; " + s.substr(0, s.size() - 1) : s.substr(0, s.size() - 1));
    }
    EXPECT_NE(three_ways(products(some), both_families, true), 0);
  }
}

// A factor that is written several times, or may be of the round before.
TEST(Products, OfFactorsThatChange) {
  const std::string loop =
      "mov.u32 %y0, 0; mov.u64 %x4, 0; mov.u32 %y2, 5; T: setp.gt.u32 %p2, %y0, 2; @%p2 bra U; cvt.u64.u32 %x1, %y2; "
      "U: mad.lo.u32 %y2, %r1, %y0, 9; mul.lo.u64 %x3, %x1, %x1; "
      "add.u64 %x4, %x4, %x3; add.u32 %y0, %y0, 1; setp.lt.u32 %p2, %y0, 6; @%p2 bra T; mov.b64 %d4, %x4";
  const std::string again =
      "cvt.u64.u32 %x2, %r1; setp.lt.u32 %p2, %r1, %r2; @%p2 mov.b64 %x2, %d2; mul.lo.u64 %x5, %x2, %x2; mov.b64 %d4, "
      "%x5";
  const std::string guarded =
      "mov.b64 %x6, %d1; setp.lt.u32 %p2, %r1, %r2; @%p2 cvt.u64.u32 %x6, %r3; mul.lo.u64 %d4, %x6, 24";
  for (const std::string& s : {loop, again, guarded})
    our_code_agrees(products({"mov.b64 %d4, 0; " + s}), both_families, {0, 1, 3});
}

// Instructions of one of the mnemonics.
TEST(Products, TakeFewInstructions) {
  struct Case {
    const char* statement;
    ptrdiff_t pascal, volta;  // products of words: XMAD; IMAD and IMAD.WIDE
  };
  const Case cases[] = {{"mul.lo.u64 %d4, %d1, 8", 0, 0},
                        {"mul.lo.u64 %d4, 0x100000000, %d1", 0, 0},
                        {"mul.lo.u64 %d4, %d1, 0x500000000", 2, 1},
                        {"mul.lo.u64 %d4, %d1, 100", 5, 2},
                        {"mul.lo.u64 %d4, %d1, %d2", 12, 3},
                        {"cvt.u64.u32 %x1, %r1; cvt.u64.u32 %x2, %r2; mul.lo.s64 %d4, %x1, %x2", 6, 1},
                        {"cvt.s64.s32 %x1, %r1; cvt.s64.s32 %x2, %r2; mul.lo.s64 %d4, %x1, %x2", 6, 1},
                        {"cvt.s64.s32 %x1, %r1; mad.lo.s64 %d4, %x1, 48, %d1", 3, 1},
                        {"cvt.s64.s32 %x1, %r1; mad.lo.s64 %d4, %x1, 16, %d1", 0, 1},
                        {"cvt.u64.u32 %x1, %r1; cvt.s64.s32 %x2, %r2; mul.lo.s64 %d4, %x1, %x2", 12, 3},
                        {"mul.lo.u32 %r4, %r1, 16; cvt.u64.u32 %d4, %r4", 0, 1}};
  for (const std::string& target : both_families) {
    const bool pascal = target == "sm_61";
    const auto count = [&](const std::string& statement) {
      const auto made = assemble_for(parse_text("count.ptx", products({statement})), target, 1);
      EXPECT_TRUE(made.ok()) << statement;
      ptrdiff_t n = 0;
      for (const isa::Instruction& i : instructions_of(made->cubin, target))
        n += i.mnemonic == M::XMAD || ((i.mnemonic == M::IMAD || i.mnemonic == M::IMAD_WIDE) && !pascal);
      return n;
    };
    const ptrdiff_t frame = count("add.u64 %d4, %d1, 5");
    for (const Case& c : cases) {
      EXPECT_EQ(count(std::string("mov.b64 %d4, 0; ") + c.statement) - frame, pascal ? c.pascal : c.volta)
          << target << ": " << c.statement;
    }
  }
}

}  // namespace
}  // namespace rndn::assembler::testing::products_test
