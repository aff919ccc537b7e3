// One instruction at a time: expected bits from the PTX manual's tables, from arithmetic done by hand, or from well-known constants of
// the formats; none from the interpreter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ptx/interpreter/interpreter.h"
#include "ptx/parse.h"

namespace rndn::ptx::interpreter_opcodes_test {
namespace {

// Inputs a, b, c, e are 64-bit slots; each exists as a register of every width: %a16 %a32 %a64 %af (f32) %ad (f64) %ap (predicate: lowest
// bit). The instructions under test write exactly one of %d16 %d32 %d64 %df %dd %dp.
struct Case {
  const char* text;
  std::vector<uint64_t> inputs;
  uint64_t expected;
};

std::string kernel(const char* text) {
  std::string k =
      ".version 8.1\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n";
  k += ".reg .b64 %in, %out;\nld.param.u64 %in, [in];\nld.param.u64 %out, [out];\n";
  const char* names[] = {"a", "b", "c", "e", "d"};
  for (int n = 0; n < 5; ++n) {
    std::string v = names[n];
    k += ".reg .b16 %" + v + "16; .reg .b32 %" + v + "32; .reg .b64 %" + v + "64; .reg .f32 %" + v + "f; .reg .f64 %" +
         v + "d; .reg .pred %" + v + "p;\n";
    if (n == 4) continue;
    k += "ld.global.b64 %" + v + "64, [%in+" + std::to_string(8 * n) + "];\n";
    k += "cvt.u16.u64 %" + v + "16, %" + v + "64;\ncvt.u32.u64 %" + v + "32, %" + v + "64;\n";
    k += "mov.b32 %" + v + "f, %" + v + "32;\nmov.b64 %" + v + "d, %" + v + "64;\n";
    k += "{ .reg .b64 t; and.b64 t, %" + v + "64, 1; setp.ne.b64 %" + v + "p, t, 0; }\n";
  }
  k += text;
  std::string s = text, store;
  // The result is the first %d register that the text mentions last as a destination: all texts mention one kind only.
  if (s.find("%d16") != s.npos)
    store = "cvt.u64.u16 %d64, %d16;\n";
  else if (s.find("%d32") != s.npos)
    store = "cvt.u64.u32 %d64, %d32;\n";
  else if (s.find("%df") != s.npos)
    store = "mov.b32 %d32, %df;\ncvt.u64.u32 %d64, %d32;\n";
  else if (s.find("%dd") != s.npos)
    store = "mov.b64 %d64, %dd;\n";
  else if (s.find("%dp") != s.npos)
    store = "selp.b64 %d64, 1, 0, %dp;\n";
  return k + "\n" + store + "st.global.b64 [%out], %d64;\nret;\n}\n";
}

Result<uint64_t> run(const char* text, const std::vector<uint64_t>& inputs) {
  SourceManager sources;
  DiagnosticSink sink;
  Module m = parse(sources.add("case.ptx", kernel(text)), sources, sink);
  if (sink.has_errors()) return input_error("{}", render(sink, sources));
  Memory memory;
  uint64_t slots[4] = {};
  std::copy(inputs.begin(), inputs.end(), slots);
  uint64_t parameters[2] = {memory.allocate(32), memory.allocate(8)};
  memory.write(parameters[0], std::as_bytes(std::span(slots)));
  Launch launch;
  launch.max_instructions = 1'000'000;
  launch.parameters = std::as_bytes(std::span(parameters));
  Result<InterpreterStats> r = interpret(m, "k", launch, memory);
  if (!r) return r.error();
  uint64_t result = 0;
  memory.read(parameters[1], std::as_writable_bytes(std::span(&result, 1)));
  return result;
}

void check(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    Result<uint64_t> r = run(c.text, c.inputs);
    ASSERT_TRUE(r) << c.text << ": " << r.error().message;
    EXPECT_EQ(*r, c.expected) << c.text << fmt::format(" gave {:#x}, expected {:#x}", *r, c.expected);
  }
}

constexpr uint64_t ones = ~0ull;

TEST(Opcodes, IntegerArithmetic) {
  check({
      {"add.s32 %d32, %a32, %b32;", {0x7FFFFFFF, 1}, 0x80000000},
      {"add.sat.s32 %d32, %a32, %b32;", {0x7FFFFFFF, 1}, 0x7FFFFFFF},
      {"add.sat.s32 %d32, %a32, %b32;", {0x80000000, 0xFFFFFFFF}, 0x80000000},
      {"add.u16 %d16, %a16, %b16;", {0xFFFF, 2}, 1},
      {"add.u64 %d64, %a64, %b64;", {ones, 1}, 0},
      {"add.u32 %d32, %a32, 4294967295;", {5}, 4},
      {"sub.s32 %d32, %a32, %b32;", {3, 5}, 0xFFFFFFFE},
      {"sub.sat.s32 %d32, %a32, %b32;", {0x80000000, 1}, 0x80000000},
      {"sub.u64 %d64, %a64, %b64;", {0, 1}, ones},
      // 128-bit addition and subtraction with the carry: (2^64 - 1) + 1, high part 0 + 0 + carry; 0 - 1 borrows.
      {"{ .reg .b64 low; add.cc.u64 low, %a64, 1; addc.u64 %d64, 0, 0; }", {ones}, 1},
      {"{ .reg .b64 low; add.cc.u64 low, %a64, 1; addc.u64 %d64, 0, 0; }", {ones - 1}, 0},
      {"{ .reg .b32 low; add.cc.u32 low, %a32, %b32; addc.u32 %d32, 5, 6; }", {0x80000000, 0x80000000}, 12},
      {"{ .reg .b64 low; sub.cc.u64 low, %a64, 1; subc.u64 %d64, 7, 0; }", {0}, 6},
      {"{ .reg .b64 low; sub.cc.u64 low, %a64, 1; subc.u64 %d64, 7, 0; }", {1}, 7},
      {"mul.lo.s32 %d32, %a32, %b32;", {0xFFFFFFFD, 7}, 0xFFFFFFEB},
      {"mul.hi.s32 %d32, %a32, %b32;", {0xFFFFFFFD, 7}, 0xFFFFFFFF},
      {"mul.hi.u32 %d32, %a32, %b32;", {0xFFFFFFFF, 0xFFFFFFFF}, 0xFFFFFFFE},
      {"mul.hi.u64 %d64, %a64, %b64;", {ones, ones}, ones - 1},
      {"mul.hi.s64 %d64, %a64, %b64;", {ones, ones}, 0},
      {"mul.hi.u16 %d16, %a16, %b16;", {0xFFFF, 0xFFFF}, 0xFFFE},
      {"mul.wide.s32 %d64, %a32, %b32;", {0xFFFFFFFF, 2}, ones - 1},
      {"mul.wide.u32 %d64, %a32, %b32;", {0xFFFFFFFF, 2}, 0x1FFFFFFFE},
      {"mul.wide.s16 %d32, %a16, %b16;", {0x8000, 0x8000}, 0x40000000},
      {"mul.wide.u16 %d32, %a16, %b16;", {0xFFFF, 0xFFFF}, 0xFFFE0001},
      {"mad.lo.s32 %d32, %a32, %b32, %c32;", {6, 7, 0xFFFFFFFF}, 41},
      {"mad.hi.u32 %d32, %a32, %b32, %c32;", {0x80000000, 4, 10}, 12},
      {"mad.hi.sat.s32 %d32, %a32, %b32, %c32;", {0x40000000, 4, 0x7FFFFFFF}, 0x7FFFFFFF},
      {"mad.wide.s32 %d64, %a32, %b32, %c64;", {0xFFFFFFFF, 8, 100}, 92},
      {"mad.wide.u32 %d64, %a32, %b32, %c64;", {0xFFFFFFFF, 8, 8}, 0x800000000},
      {"{ .reg .b32 low; mad.lo.cc.u32 low, %a32, %b32, %c32; madc.hi.u32 %d32, %a32, %b32, 0; }",
       {0xFFFFFFFF, 2, 2},
       2},
      {"mul24.lo.u32 %d32, %a32, %b32;", {0xFF000003, 5}, 15},
      {"mul24.lo.s32 %d32, %a32, %b32;", {0x00FFFFFF, 5}, 0xFFFFFFFB},
      {"mul24.hi.u32 %d32, %a32, %b32;", {0x800000, 0x800000}, 0x40000000},
      {"mad24.lo.u32 %d32, %a32, %b32, %c32;", {3, 4, 5}, 17},
      {"sad.u32 %d32, %a32, %b32, %c32;", {3, 10, 100}, 107},
      {"sad.s32 %d32, %a32, %b32, %c32;", {0xFFFFFFFF, 1, 5}, 7},
      {"div.s32 %d32, %a32, %b32;", {0xFFFFFFF9, 2}, 0xFFFFFFFD},  // -7 / 2 = -3
      {"rem.s32 %d32, %a32, %b32;", {0xFFFFFFF9, 2}, 0xFFFFFFFF},  // -1
      {"rem.s32 %d32, %a32, %b32;", {7, 0xFFFFFFFE}, 1},
      {"div.u32 %d32, %a32, %b32;", {0xFFFFFFF9, 2}, 0x7FFFFFFC},
      {"div.s64 %d64, %a64, %b64;", {0x8000000000000000, ones}, 0x8000000000000000},
      {"rem.u64 %d64, %a64, %b64;", {ones, 10}, 5},
      {"div.u16 %d16, %a16, %b16;", {65535, 7}, 9362},
      // By zero: all ones, as in ptxas's code.
      {"div.u16 %d16, %a16, %b16;", {7, 0}, 0xFFFF},
      {"rem.s16 %d16, %a16, %b16;", {7, 0}, 0xFFFF},
      {"div.s32 %d32, %a32, %b32;", {7, 0}, 0xFFFFFFFF},
      {"rem.u32 %d32, %a32, %b32;", {7, 0}, 0xFFFFFFFF},
      {"rem.s32 %d32, %a32, %b32;", {0xFFFFFFF9, 0}, 0xFFFFFFFF},
      {"div.u64 %d64, %a64, %b64;", {7, 0}, ones},
      {"rem.s64 %d64, %a64, %b64;", {7, 0}, ones},
      {"abs.s32 %d32, %a32;", {0xFFFFFFFB}, 5},
      {"abs.s64 %d64, %a64;", {ones}, 1},
      {"neg.s32 %d32, %a32;", {5}, 0xFFFFFFFB},
      {"neg.s16 %d16, %a16;", {1}, 0xFFFF},
      {"min.s32 %d32, %a32, %b32;", {0xFFFFFFFF, 1}, 0xFFFFFFFF},
      {"min.u32 %d32, %a32, %b32;", {0xFFFFFFFF, 1}, 1},
      {"max.s64 %d64, %a64, %b64;", {ones, 1}, 1},
      {"max.u16 %d16, %a16, %b16;", {0xFFFF, 1}, 0xFFFF},
      {"dp4a.s32.s32 %d32, %a32, %b32, %c32;", {0x01FF0203, 0x02030405, 10}, 2 - 3 + 8 + 15 + 10},
      {"dp4a.u32.u32 %d32, %a32, %b32, %c32;", {0xFF000000, 0xFF000000, 1}, 65026},
      {"dp4a.u32.s32 %d32, %a32, %b32, %c32;", {0xFF000000, 0xFF000000, 0}, 0xFFFFFF01},
      {"dp2a.lo.s32.s32 %d32, %a32, %b32, %c32;", {0xFFFF0002, 0x01020304, 0}, 8 - 3},
      {"dp2a.hi.u32.u32 %d32, %a32, %b32, %c32;", {0x00100002, 0x01020304, 1}, 4 + 16 + 1},
  });
}

TEST(Opcodes, Bits) {
  check({
      {"and.b32 %d32, %a32, %b32;", {0xF0F0, 0xFF00}, 0xF000},
      {"or.b64 %d64, %a64, %b64;", {1ull << 63, 1}, 0x8000000000000001},
      {"xor.b16 %d16, %a16, %b16;", {0xFFFF, 0x0F0F}, 0xF0F0},
      {"not.b32 %d32, %a32;", {0xF}, 0xFFFFFFF0},
      {"not.pred %dp, %ap;", {1}, 0},
      {"and.pred %dp, %ap, %bp;", {1, 1}, 1},
      {"xor.pred %dp, %ap, %bp;", {1, 1}, 0},
      {"or.pred %dp, %ap, %bp;", {0, 1}, 1},
      {"cnot.b32 %d32, %a32;", {0}, 1},
      {"cnot.b32 %d32, %a32;", {2}, 0},
      {"lop3.b32 %d32, %a32, %b32, %c32, 0xE8;", {0xC, 0xA, 0x9}, 0x8},              // majority: (a&b)|(a&c)|(b&c)
      {"lop3.b32 %d32, %a32, %b32, %c32, 0xCA;", {0xFF00, 0x1234, 0x5678}, 0x1278},  // a ? b : c
      {"lop3.b32 %d32, %a32, %b32, %c32, 0xF0;", {0x5, 0, 0}, 0x5},
      {"shl.b32 %d32, %a32, %b32;", {3, 31}, 0x80000000},
      {"shl.b32 %d32, %a32, %b32;", {3, 32}, 0},
      {"shl.b64 %d64, %a64, %b32;", {1, 63}, 0x8000000000000000},
      {"shl.b16 %d16, %a16, %b32;", {0xFFFF, 12}, 0xF000},
      {"shr.u32 %d32, %a32, %b32;", {0x80000000, 31}, 1},
      {"shr.u32 %d32, %a32, %b32;", {0x80000000, 40}, 0},
      {"shr.s32 %d32, %a32, %b32;", {0x80000000, 40}, 0xFFFFFFFF},
      {"shr.s32 %d32, %a32, %b32;", {0x80000000, 4}, 0xF8000000},
      {"shr.s64 %d64, %a64, %b32;", {0x8000000000000000, 64}, ones},
      {"shr.s16 %d16, %a16, %b32;", {0x8000, 3}, 0xF000},
      {"shr.b16 %d16, %a16, %b32;", {0x8000, 3}, 0x1000},
      {"shf.l.wrap.b32 %d32, %a32, %b32, %c32;", {0x80000001, 0x00000002, 1}, 0x5},
      {"shf.l.clamp.b32 %d32, %a32, %b32, %c32;", {0x12345678, 0x9ABCDEF0, 40}, 0x12345678},
      {"shf.l.wrap.b32 %d32, %a32, %b32, %c32;", {0x12345678, 0x9ABCDEF0, 40}, 0xBCDEF012},
      {"shf.r.wrap.b32 %d32, %a32, %b32, %c32;", {0x80000001, 0x00000003, 1}, 0xC0000000},
      {"shf.r.clamp.b32 %d32, %a32, %b32, %c32;", {0x12345678, 0x9ABCDEF0, 99}, 0x9ABCDEF0},
      {"prmt.b32 %d32, %a32, %b32, 0x3210;", {0x33221100, 0x77665544}, 0x33221100},
      {"prmt.b32 %d32, %a32, %b32, 0x0167;", {0x33221100, 0x77665544}, 0x00116677},
      {"prmt.b32 %d32, %a32, %b32, 0x8888;", {0x00000080}, 0xFFFFFFFF},  // the sign of byte 0 four times
      {"prmt.b32.f4e %d32, %a32, %b32, 2;", {0x33221100, 0x77665544}, 0x55443322},
      {"prmt.b32.b4e %d32, %a32, %b32, 1;", {0x33221100, 0x77665544}, 0x66770011},
      {"prmt.b32.rc8 %d32, %a32, %b32, 2;", {0x33221100, 0}, 0x22222222},
      {"prmt.b32.ecl %d32, %a32, %b32, 1;", {0x33221100, 0}, 0x33221111},
      {"prmt.b32.ecr %d32, %a32, %b32, 1;", {0x33221100, 0}, 0x11111100},
      {"prmt.b32.rc16 %d32, %a32, %b32, 1;", {0x33221100, 0}, 0x33223322},
      {"popc.b64 %d32, %a64;", {ones}, 64},
      {"popc.b32 %d32, %a32;", {0xFFFFFFFF00000005}, 2},
      {"clz.b32 %d32, %a32;", {0}, 32},
      {"clz.b32 %d32, %a32;", {0x00010000}, 15},
      {"clz.b64 %d32, %a64;", {1}, 63},
      {"brev.b32 %d32, %a32;", {0x00000005}, 0xA0000000},
      {"brev.b64 %d64, %a64;", {1}, 0x8000000000000000},
      {"bfind.u32 %d32, %a32;", {0x00012345}, 16},
      {"bfind.u32 %d32, %a32;", {0}, 0xFFFFFFFF},
      {"bfind.s32 %d32, %a32;", {0xFFFFFFF0}, 3},  // highest bit unlike the sign
      {"bfind.s32 %d32, %a32;", {0xFFFFFFFF}, 0xFFFFFFFF},
      {"bfind.shiftamt.u32 %d32, %a32;", {0x00012345}, 15},
      {"bfind.u64 %d32, %a64;", {1ull << 40}, 40},
      {"fns.b32 %d32, %a32, 0, 2;", {0b101100}, 3},
      {"fns.b32 %d32, %a32, 31, -1;", {0b101100}, 5},
      {"fns.b32 %d32, %a32, 2, 0;", {0b101100}, 2},
      {"fns.b32 %d32, %a32, 0, 9;", {0b101100}, 0xFFFFFFFF},
      {"bfe.u32 %d32, %a32, 4, 8;", {0x12345678}, 0x67},
      {"bfe.s32 %d32, %a32, 4, 8;", {0x00000F80}, 0xFFFFFFF8},
      {"bfe.s32 %d32, %a32, 28, 8;", {0x80000000}, 0xFFFFFFF8},
      {"bfe.u64 %d64, %a64, 60, 10;", {0xABCDEF0123456789}, 0xA},
      {"bfe.u32 %d32, %a32, 4, 0;", {0xFFFFFFFF}, 0},
      {"bfi.b32 %d32, %a32, %b32, 8, 4;", {0xFA, 0x12345678}, 0x12345A78},
      {"bfi.b32 %d32, %a32, %b32, 30, 9;", {0x3, 0}, 0xC0000000},
      {"bfi.b64 %d64, %a64, %b64, 32, 16;", {0xBEEF, 1}, 0xBEEF00000001},
      {"bmsk.clamp.b32 %d32, %a32, %b32;", {4, 8}, 0xFF0},
      {"bmsk.clamp.b32 %d32, %a32, %b32;", {4, 99}, 0xFFFFFFF0},
      {"bmsk.wrap.b32 %d32, %a32, %b32;", {36, 8}, 0xFF0},
      {"szext.wrap.s32 %d32, %a32, 8;", {0x1280}, 0xFFFFFF80},
      {"szext.wrap.u32 %d32, %a32, 8;", {0x1280}, 0x80},
      {"szext.clamp.s32 %d32, %a32, 40;", {0x80001280}, 0x80001280},
  });
}

// Results just below the least normal number, as an H200 gave them: flushed when they stay below it rounded to all digits of the format.
TEST(Opcodes, FlushToZeroLooksBeforeDigitsAreLost) {
  check({
      {"mul.rn.ftz.f32 %df, %af, %bf;", {0x23000000, 0x9CFFFFFF}, 0x80000000},
      {"mul.rn.f32 %df, %af, %bf;", {0x23000000, 0x9CFFFFFF}, 0x80800000},
      {"mul.rn.ftz.f32 %df, %af, %bf;", {0x00FFFFFE, 0xBF000001}, 0x80800000},
      {"mul.rz.ftz.f32 %df, %af, %bf;", {0x00FFFFFE, 0xBF000001}, 0x80000000},
      {"mul.rp.ftz.f32 %df, %af, %bf;", {0x00FFFFFE, 0xBF000001}, 0x80000000},
      {"mul.rn.ftz.f32 %df, %af, %bf;", {0x198C6A74, 0x26695D2E}, 0},
      {"mul.rp.ftz.f32 %df, %af, %bf;", {0x198C6A74, 0x26695D2E}, 0},
      {"mul.rp.ftz.f32 %df, %af, %bf;", {0x917FFFFE, 0xAE800001}, 0x00800000},
      {"mul.rz.ftz.f32 %df, %af, %bf;", {0x917FFFFE, 0xAE800001}, 0},
      {"fma.rn.ftz.f32 %df, %af, %bf, %cf;", {0x23000000, 0x9CFFFFFF, 0}, 0x80000000},
      {"fma.rn.ftz.f32 %df, %af, %bf, %cf;", {0x12C1B77E, 0xAD292778, 0x0056B51F}, 0x80800000},
      {"fma.rn.ftz.f32 %df, %af, %bf, %cf;", {0x30800000, 0x8F7FFFFF, 0x80BDD5CD}, 0x811EEAE6},
      {"mul.rn.ftz.f16 %d16, %a16, %b16;", {0x3BFF, 0x0400}, 0},
      {"mul.rn.ftz.f16 %d16, %a16, %b16;", {0x2800, 0x97FF}, 0x8000},
      {"mul.rn.f16 %d16, %a16, %b16;", {0x2800, 0x97FF}, 0x8400},
      {"mul.rn.ftz.f16 %d16, %a16, %b16;", {0x8A17, 0xB541}, 0x0400},
      {"mul.rn.ftz.sat.f16 %d16, %a16, %b16;", {0x3BFF, 0x0400}, 0},
      {"fma.rn.ftz.f16 %d16, %a16, %b16, %c16;", {0x2D93, 0x97FF, 0x0725}, 0x8000},
      {"fma.rn.f16 %d16, %a16, %b16, %c16;", {0x2D93, 0x97FF, 0x0725}, 0x8400},
      {"fma.rn.ftz.f16 %d16, %a16, %b16, %c16;", {0xBB9B, 0x0435, 0x02A0}, 0x8400},
      {"fma.rn.ftz.f16x2 %d32, %a32, %b32, %c32;", {0xBC003BFF, 0xB3A88400, 0x03DB000B}, 0x33A88000},
  });
}

TEST(Opcodes, FloatArithmetic) {
  // 1.0f = 3F800000, 2^-24 = 33800000, next above 1 = 3F800001, 3.0f = 40400000, 1/3 rounded to nearest = 3EAAAAAB, down 3EAAAAAA.
  check({
      {"add.f32 %df, %af, %bf;", {0x3F800000, 0x33800000}, 0x3F800000},  // a tie goes to even
      {"add.rp.f32 %df, %af, %bf;", {0x3F800000, 0x33800000}, 0x3F800001},
      {"add.rm.f32 %df, %af, %bf;", {0x3F800000, 0xB3000000}, 0x3F7FFFFF},  // 1 - 2^-25 rounds down to 1 - 2^-24
      {"add.rz.f32 %df, %af, %bf;", {0xBF800000, 0xB3800000}, 0xBF800000},
      {"add.rm.f32 %df, %af, %bf;", {0x3F800000, 0xBF800000}, 0x80000000},  // exact zero is -0 downwards
      {"add.sat.f32 %df, %af, %bf;", {0x3F800000, 0x3F800000}, 0x3F800000},
      {"add.sat.f32 %df, %af, %bf;", {0x7FC00000, 0x3F800000}, 0},
      {"add.ftz.f32 %df, %af, %bf;", {0x00000001, 0x00000000}, 0},
      {"add.f32 %df, %af, %bf;", {0x00000001, 0x00000001}, 2},
      {"add.f32 %df, %af, %bf;", {0x7F800000, 0xFF800000}, 0x7FFFFFFF},  // inf - inf
      {"sub.f32 %df, %af, %bf;", {0x40400000, 0x3F800000}, 0x40000000},
      {"mul.f32 %df, %af, %bf;", {0x40400000, 0xC0400000}, 0xC1100000},      // -9
      {"mul.rz.f32 %df, %af, %bf;", {0x7F000000, 0x7F000000}, 0x7F7FFFFF},   // overflow towards zero stays finite
      {"mul.ftz.f32 %df, %af, %bf;", {0x00800000, 0xBF000000}, 0x80000000},  // smallest normal / -2
      {"fma.rn.f32 %df, %af, %bf, %cf;",
       {0x3F800001, 0x3F800001, 0xBF800002},
       0x28800000},  // (1+e)^2 - (1+2e) = e^2 = 2^-46
      {"fma.rz.f32 %df, %af, %bf, %cf;", {0x3F800001, 0x3F800001, 0x33800000}, 0x3F800002},
      {"mad.rp.f32 %df, %af, %bf, %cf;", {0x3F800000, 0x3F800000, 0x00000001}, 0x3F800001},
      {"div.rn.f32 %df, %af, %bf;", {0x3F800000, 0x40400000}, 0x3EAAAAAB},
      {"div.rz.f32 %df, %af, %bf;", {0x3F800000, 0x40400000}, 0x3EAAAAAA},
      {"div.full.f32 %df, %af, %bf;", {0x40C00000, 0x40400000}, 0x40000000},
      {"rcp.rn.f32 %df, %af;", {0x40400000}, 0x3EAAAAAB},
      {"rcp.rm.f32 %df, %af;", {0x40400000}, 0x3EAAAAAA},
      {"rcp.approx.f32 %df, %af;", {0x40800000}, 0x3E800000},
      {"rcp.rn.f32 %df, %af;", {0x80000000}, 0xFF800000},
      {"sqrt.rn.f32 %df, %af;", {0x40000000}, 0x3FB504F3},
      {"sqrt.rp.f32 %df, %af;", {0x40000000}, 0x3FB504F4},
      {"sqrt.rn.f32 %df, %af;", {0xBF800000}, 0x7FFFFFFF},
      {"rsqrt.approx.f32 %df, %af;", {0x40800000}, 0x3F000000},
      {"ex2.approx.f32 %df, %af;", {0xC0400000}, 0x3E000000},
      {"lg2.approx.f32 %df, %af;", {0x41000000}, 0x40400000},
      {"sin.approx.f32 %df, %af;", {0}, 0},
      {"cos.approx.f32 %df, %af;", {0}, 0x3F800000},
      {"tanh.approx.f32 %df, %af;", {0x42000000}, 0x3F800000},
      {"abs.f32 %df, %af;", {0xBF800000}, 0x3F800000},
      {"neg.f32 %df, %af;", {0x00000000}, 0x80000000},
      {"min.f32 %df, %af, %bf;", {0x00000000, 0x80000000}, 0x80000000},
      {"max.f32 %df, %af, %bf;", {0x80000000, 0x00000000}, 0x00000000},
      {"min.f32 %df, %af, %bf;", {0x7FC00000, 0x40400000}, 0x40400000},
      {"min.NaN.f32 %df, %af, %bf;", {0x7FC00000, 0x40400000}, 0x7FFFFFFF},
      {"max.f32 %df, %af, %bf;", {0xFFC00000, 0x7FC00000}, 0x7FFFFFFF},
      {"copysign.f32 %df, %af, %bf;", {0x80000000, 0x40400000}, 0xC0400000},
      {"add.f64 %dd, %ad, %bd;", {0x3FF0000000000000, 0x3CA0000000000000}, 0x3FF0000000000000},  // 1 + 2^-53: tie
      {"add.rp.f64 %dd, %ad, %bd;", {0x3FF0000000000000, 0x3CA0000000000000}, 0x3FF0000000000001},
      {"mul.f64 %dd, %ad, %bd;", {0x4008000000000000, 0xC008000000000000}, 0xC022000000000000},
      {"fma.rn.f64 %dd, %ad, %bd, %cd;",
       {0x3FF0000000000001, 0x3FF0000000000001, 0xBFF0000000000002},
       0x3970000000000000},
      {"div.rn.f64 %dd, %ad, %bd;", {0x3FF0000000000000, 0x4008000000000000}, 0x3FD5555555555555},
      {"div.rp.f64 %dd, %ad, %bd;", {0x3FF0000000000000, 0x4008000000000000}, 0x3FD5555555555556},
      {"sqrt.rn.f64 %dd, %ad;", {0x4000000000000000}, 0x3FF6A09E667F3BCD},
      {"sub.f64 %dd, %ad, 0d3FF0000000000000;", {0x4008000000000000}, 0x4000000000000000},
      {"abs.f64 %dd, %ad;", {0x8000000000000000}, 0},
      {"max.f64 %dd, %ad, %bd;", {0x7FF8000000000000, 0x4008000000000000}, 0x4008000000000000},
      // f16: 1.0 = 3C00, 2.0 = 4000, 65504 = 7BFF, smallest subnormal 0001
      {"add.f16 %d16, %a16, %b16;", {0x3C00, 0x3C00}, 0x4000},
      {"add.f16 %d16, %a16, %b16;", {0x3C00, 0x1000}, 0x3C00},  // 1 + 2^-11: tie to even
      {"add.f16 %d16, %a16, %b16;", {0x3C01, 0x1000}, 0x3C02},  // the other tie
      {"mul.f16 %d16, %a16, %b16;", {0x7BFF, 0x4000}, 0x7C00},
      {"mul.f16 %d16, %a16, %b16;", {0x0001, 0x3800}, 0x0000},                   // 2^-24 / 2: tie to zero
      {"fma.rn.f16 %d16, %a16, %b16, %c16;", {0x3C01, 0x3C01, 0xBC02}, 0x0010},  // (1+e)^2 - (1+2e) = 2^-20
      {"sub.f16 %d16, %a16, %b16;", {0x4000, 0x3C00}, 0x3C00},
      {"add.f16x2 %d32, %a32, %b32;", {0x3C004000, 0x3C003C00}, 0x40004200},
      {"neg.f16x2 %d32, %a32;", {0x3C004000}, 0xBC00C000},
      {"fma.rn.bf16 %d16, %a16, %b16, %c16;", {0x3F81, 0x3F81, 0xBF82}, 0x3880},  // (1+e)^2 - (1+2e) = 2^-14
      {"add.bf16 %d16, %a16, %b16;", {0x3F80, 0x4000}, 0x4040},
      {"mul.bf16x2 %d32, %a32, %b32;", {0x40003F80, 0x40404000}, 0x40C04000},
      {"max.bf16 %d16, %a16, %b16;", {0xBF80, 0x4000}, 0x4000},
      {"min.NaN.f16 %d16, %a16, %b16;", {0x7E00, 0x3C00}, 0x7FFF},
      {"fma.rn.relu.f16 %d16, %a16, %b16, %c16;", {0x3C00, 0xBC00, 0}, 0},
      {"fma.rn.relu.f16 %d16, %a16, %b16, %c16;", {0x3C00, 0x4000, 0x3C00}, 0x4200},
      {"set.gt.f16x2.f16x2 %d32, %a32, %b32;", {0x3C004000, 0x40003C00}, 0x00003C00},
      {"set.eq.f16.f16 %d16, %a16, %b16;", {0x8000, 0x0000}, 0x3C00},
      {"testp.finite.f32 %dp, %af;", {0x7F800000}, 0},
      {"testp.infinite.f32 %dp, %af;", {0xFF800000}, 1},
      {"testp.notanumber.f64 %dp, %ad;", {0x7FF0000000000001}, 1},
      {"testp.number.f32 %dp, %af;", {0x3F800000}, 1},
      {"testp.normal.f32 %dp, %af;", {0}, 1},
      {"testp.normal.f32 %dp, %af;", {0x00800000}, 1},
      {"testp.subnormal.f32 %dp, %af;", {0x007FFFFF}, 1},
  });
}

TEST(Opcodes, CompareAndSelect) {
  check({
      {"setp.lt.s32 %dp, %a32, %b32;", {0xFFFFFFFF, 0}, 1},
      {"setp.lt.u32 %dp, %a32, %b32;", {0xFFFFFFFF, 0}, 0},
      {"setp.hi.u32 %dp, %a32, %b32;", {0xFFFFFFFF, 0}, 1},
      {"setp.ls.u32 %dp, %a32, %b32;", {7, 7}, 1},
      {"setp.ge.s16 %dp, %a16, %b16;", {0x8000, 0x7FFF}, 0},
      {"setp.eq.s64 %dp, %a64, %b64;", {1ull << 40, 1ull << 41}, 0},
      {"setp.ne.b64 %dp, %a64, %b64;", {1ull << 40, 1ull << 41}, 1},
      {"setp.eq.f32 %dp, %af, %bf;", {0x80000000, 0}, 1},
      {"setp.ne.f32 %dp, %af, %bf;", {0x7FC00000, 0}, 0},  // unordered: false
      {"setp.neu.f32 %dp, %af, %bf;", {0x7FC00000, 0}, 1},
      {"setp.ltu.f64 %dp, %ad, %bd;", {0x7FF8000000000000, 0}, 1},
      {"setp.geu.f64 %dp, %ad, %bd;", {0x3FF0000000000000, 0x4000000000000000}, 0},
      {"setp.num.f32 %dp, %af, %bf;", {0x7FC00000, 0}, 0},
      {"setp.nan.f32 %dp, %af, %bf;", {0x7FC00000, 0}, 1},
      {"setp.gt.ftz.f32 %dp, %af, %bf;", {1, 0}, 0},
      {"setp.gt.f32 %dp, %af, %bf;", {1, 0}, 1},
      {"setp.gt.f16 %dp, %a16, %b16;", {0x4000, 0x3C00}, 1},
      {"setp.lt.and.s32 %dp, %a32, %b32, %cp;", {1, 2, 0}, 0},
      {"setp.lt.or.s32 %dp, %a32, %b32, !%cp;", {3, 2, 0}, 1},
      {"setp.lt.xor.s32 %dp, %a32, %b32, %cp;", {1, 2, 1}, 0},
      {"{ .reg .pred q; setp.lt.s32 q|%dp, %a32, %b32; }", {1, 2}, 0},
      {"{ .reg .pred q; setp.lt.and.s32 q|%dp, %a32, %b32, %cp; }", {3, 2, 1}, 1},
      {"set.gt.u32.s32 %d32, %a32, %b32;", {5, 0xFFFFFFFF}, 0xFFFFFFFF},
      {"set.eq.f32.f64 %df, %ad, %bd;", {0, 0x8000000000000000}, 0x3F800000},
      {"set.lt.or.s32.u32 %d32, %a32, %b32, %cp;", {5, 1, 0}, 0},
      {"selp.b32 %d32, %a32, %b32, %cp;", {1, 2, 1}, 1},
      {"selp.f64 %dd, %ad, %bd, %cp;", {1, 2, 0}, 2},
      {"slct.b32.s32 %d32, %a32, %b32, %c32;", {1, 2, 0x80000000}, 2},
      {"slct.u64.f32 %d64, %a64, %b64, %cf;", {1, 2, 0x80000000}, 1},  // -0 >= 0
      {"slct.u64.f32 %d64, %a64, %b64, %cf;", {1, 2, 0x7FC00000}, 2},
  });
}

TEST(Opcodes, Conversions) {
  check({
      {"cvt.s64.s32 %d64, %a32;", {0x80000000}, 0xFFFFFFFF80000000},
      {"cvt.u64.u32 %d64, %a32;", {0x80000000}, 0x80000000},
      {"cvt.s32.s8 %d32, %a32;", {0x1280}, 0xFFFFFF80},
      {"cvt.u32.u8 %d32, %a32;", {0x1280}, 0x80},
      {"cvt.u32.u64 %d32, %a64;", {0x123456789}, 0x23456789},
      {"cvt.s16.s8 %d16, %a16;", {0x80}, 0xFF80},
      {"cvt.sat.u8.s32 %d32, %a32;", {0xFFFFFFFF}, 0},
      {"cvt.sat.u8.s32 %d32, %a32;", {300}, 255},
      {"cvt.sat.s8.s32 %d32, %a32;", {0xFFFFFF00}, 0xFFFFFF80},
      {"cvt.sat.s32.u64 %d32, %a64;", {1ull << 40}, 0x7FFFFFFF},
      {"cvt.rn.f32.s32 %df, %a32;", {0xFFFFFFFF}, 0xBF800000},
      {"cvt.rn.f32.u32 %df, %a32;", {0xFFFFFFFF}, 0x4F800000},
      {"cvt.rz.f32.u32 %df, %a32;", {0xFFFFFFFF}, 0x4F7FFFFF},
      {"cvt.rp.f32.s32 %df, %a32;", {0x01000001}, 0x4B800001},
      {"cvt.rn.f32.s32 %df, %a32;", {0x01000001}, 0x4B800000},
      {"cvt.rn.f64.s64 %dd, %a64;", {0x8000000000000000}, 0xC3E0000000000000},
      {"cvt.rn.f64.u64 %dd, %a64;", {ones}, 0x43F0000000000000},
      {"cvt.rn.f64.u8 %dd, %a32;", {0x1FF}, 0x406FE00000000000},
      {"cvt.rn.f16.s32 %d16, %a32;", {2049}, 0x6800},            // 2048: tie to even
      {"cvt.rzi.s32.f32 %d32, %af;", {0xC0200000}, 0xFFFFFFFE},  // -2.5
      {"cvt.rni.s32.f32 %d32, %af;", {0xC0200000}, 0xFFFFFFFE},
      {"cvt.rmi.s32.f32 %d32, %af;", {0xC0200000}, 0xFFFFFFFD},
      {"cvt.rpi.s32.f32 %d32, %af;", {0x40200000}, 3},
      {"cvt.rzi.s32.f32 %d32, %af;", {0x4F000000}, 0x7FFFFFFF},  // 2^31 clamps
      {"cvt.rzi.u32.f32 %d32, %af;", {0xBF800000}, 0},
      {"cvt.rzi.s32.f32 %d32, %af;", {0x7FC00000}, 0},  // NaN
      {"cvt.rzi.s64.f64 %d64, %ad;", {0x7FF8000000000000}, 0x8000000000000000},
      {"cvt.rzi.s64.f64 %d64, %ad;", {0xC3E0000000000000}, 0x8000000000000000},
      {"cvt.rzi.u64.f64 %d64, %ad;", {0x43E0000000000000}, 0x8000000000000000},
      {"cvt.rni.u16.f32 %d16, %af;", {0x3FC00000}, 2},  // 1.5 ties to 2
      {"cvt.f64.f32 %dd, %af;", {0x40400000}, 0x4008000000000000},
      {"cvt.rn.f32.f64 %df, %ad;", {0x3FF0000010000000}, 0x3F800000},  // tie
      {"cvt.rp.f32.f64 %df, %ad;", {0x3FF0000010000000}, 0x3F800001},
      {"cvt.rn.f32.f64 %df, %ad;", {0x36A0000000000000}, 0x00000001},  // 2^-149
      {"cvt.rn.ftz.f32.f64 %df, %ad;", {0x36A0000000000000}, 0},
      {"cvt.rzi.f32.f32 %df, %af;", {0xBFC00000}, 0xBF800000},
      {"cvt.rmi.f64.f64 %dd, %ad;", {0xBFE0000000000000}, 0xBFF0000000000000},
      {"cvt.rni.f32.f32 %df, %af;", {0xBF000000}, 0x80000000},  // -0.5 to -0
      {"cvt.sat.f32.f32 %df, %af;", {0xC0000000}, 0},
      {"cvt.f32.f16 %df, %a16;", {0x3555}, 0x3EAAA000},
      {"cvt.rn.f16.f32 %d16, %af;", {0x3EAAAAAB}, 0x3555},
      {"cvt.rn.f16.f32 %d16, %af;", {0x477FF000}, 0x7C00},  // 65520 rounds to infinity
      {"cvt.rz.f16.f32 %d16, %af;", {0x477FF000}, 0x7BFF},
      {"cvt.rn.bf16.f32 %d16, %af;", {0x3F808000}, 0x3F80},
      {"cvt.rn.bf16.f32 %d16, %af;", {0x3F818000}, 0x3F82},
      {"cvt.rn.f16x2.f32 %d32, %af, %bf;", {0x3F800000, 0x40000000}, 0x3C004000},
      {"cvt.rn.satfinite.f16.f32 %d16, %af;", {0x477FF000}, 0x7BFF},
      {"cvt.rn.satfinite.f16.f32 %d16, %af;", {0xFF800000}, 0xFBFF},
      {"cvt.rn.satfinite.f16.f32 %d16, %af;", {0x7FC00000}, 0x7FFF},  // NaN
      {"cvt.rz.satfinite.relu.f16.f32 %d16, %af;", {0xC7800000}, 0},
      {"cvt.rn.satfinite.bf16.f32 %d16, %af;", {0x7F7FFFFF}, 0x7F7F},
      {"cvt.rn.satfinite.bf16x2.f32 %d32, %af, %bf;", {0xFF800000, 0x3F800000}, 0xFF7F3F80},
      {"cvt.rn.tf32.f32 %d32, %af;", {0x3F801000}, 0x3F800000},  // ties to even
      {"cvt.rn.tf32.f32 %d32, %af;", {0x3F803000}, 0x3F804000},
      {"cvt.rz.tf32.f32 %d32, %af;", {0xBF803FFF}, 0xBF802000},
      {"cvt.rz.relu.tf32.f32 %d32, %af;", {0xBF803FFF}, 0},
      {"cvt.rna.satfinite.tf32.f32 %d32, %af;", {0x7F7FFFFF}, 0x7F7FE000},
      {"mbarrier.pending_count.b64 %d32, %a64;", {(uint64_t{7} << 20) | 2}, 5},
      {"cvt.f32.bf16 %df, %a16;", {0x4040}, 0x40400000},
      {"mov.b64 %d64, {%a32, %b32};", {0x11111111, 0x22222222}, 0x2222222211111111},
      {"{ .reg .b32 lo; mov.b64 {lo, %d32}, %a64; }", {0x2222222211111111}, 0x22222222},
      {"mov.b32 %d32, {%a16, %b16};", {0x1111, 0x2222}, 0x22221111},
      {"mov.u32 %d32, %ntid.x;", {}, 1},
      {"mov.u32 %d32, WARP_SZ;", {}, 32},
  });
}

TEST(Opcodes, MemoryOfOneThread) {
  check({
      {"st.global.u8 [%out], %a32; ld.global.s8 %d32, [%out];", {0x1F0}, 0xFFFFFFF0},
      {"st.global.u16 [%out], %a16; ld.global.u16 %d32, [%out];", {0x8001}, 0x8001},
      {"st.global.v2.u32 [%out], {%a32, %b32}; ld.global.b64 %d64, [%out];", {1, 2}, 0x200000001},
      {".shared .align 8 .b8 s[16]; st.shared.f64 [s+8], %ad; ld.shared.b64 %d64, [s+8];", {77}, 77},
      {".local .align 8 .b8 l[16]; st.local.u32 [l+4], %a32; ld.local.u32 %d32, [l+4];", {78}, 78},
      // A generic address of a local variable.
      {".local .align 8 .b8 l[16]; { .reg .b64 p; mov.u64 p, l; cvta.local.u64 p, p; st.u32 [p+4], %a32; ld.local.u32 "
       "%d32, [l+4]; }",
       {79},
       79},
      {".shared .align 8 .b8 s[16]; { .reg .b64 p; mov.u64 p, s; cvta.shared.u64 p, p; isspacep.shared %dp, p; }",
       {},
       1},
      {"isspacep.global %dp, %out;", {}, 1},
      {"isspacep.shared %dp, %out;", {}, 0},
      {"st.global.u32 [%out], %a32; { .reg .b32 o; atom.global.add.u32 o, [%out], %b32; ld.global.u32 %d32, [%out]; }",
       {5, 6},
       11},
      {"st.global.u32 [%out], %a32; atom.global.add.u32 %d32, [%out], %b32;", {5, 6}, 5},
      {"st.global.u32 [%out], %a32; red.global.max.s32 [%out], %b32; ld.global.u32 %d32, [%out];", {5, 0xFFFFFFFF}, 5},
      {"st.global.u32 [%out], %a32; red.global.max.u32 [%out], %b32; ld.global.u32 %d32, [%out];",
       {5, 0xFFFFFFFF},
       0xFFFFFFFF},
      {"st.global.u32 [%out], %a32; red.global.inc.u32 [%out], 5; ld.global.u32 %d32, [%out];", {5}, 0},
      {"st.global.u32 [%out], %a32; red.global.inc.u32 [%out], 6; ld.global.u32 %d32, [%out];", {5}, 6},
      {"st.global.u32 [%out], %a32; red.global.dec.u32 [%out], 6; ld.global.u32 %d32, [%out];", {0}, 6},
      {"st.global.u32 [%out], %a32; red.global.dec.u32 [%out], 6; ld.global.u32 %d32, [%out];", {4}, 3},
      {"st.global.u64 [%out], %a64; { .reg .b64 o; atom.global.cas.b64 o, [%out], %a64, %b64; } ld.global.u64 %d64, "
       "[%out];",
       {1, 9},
       9},
      {"st.global.u64 [%out], %a64; { .reg .b64 o; atom.global.cas.b64 o, [%out], 2, %b64; } ld.global.u64 %d64, "
       "[%out];",
       {1, 9},
       1},
      {"st.global.f64 [%out], %ad; red.global.add.f64 [%out], %bd; ld.global.f64 %dd, [%out];",
       {0x3FF0000000000000, 0x3FF0000000000000},
       0x4000000000000000},
      {"st.global.u32 [%out], %a32; red.global.add.noftz.f16x2 [%out], %b32; ld.global.u32 %d32, [%out];",
       {0x3C004000, 0x3C003C00},
       0x40004200},
      {"st.global.u32 [%out], %a32; atom.global.exch.b32 %d32, [%out], 3;", {8}, 8},
      {"st.global.u32 [%out], %a32; red.global.xor.b32 [%out], 3; ld.global.u32 %d32, [%out];", {5}, 6},
      {".shared .align 16 .b8 s[16]; cp.async.ca.shared.global [s], [%in], 8; cp.async.wait_all; ld.shared.u64 %d64, "
       "[s];",
       {4711},
       4711},
  });
}

TEST(Opcodes, FaultsAreNamed) {
  auto message = [](const char* text) {
    Result<uint64_t> r = run(text, {});
    return r ? std::string("no error") : r.error().message;
  };
  EXPECT_THAT(message("ld.global.u32 %d32, [%in+32];").c_str(), ::testing::Not(::testing::StrEq("no error")));
  EXPECT_NE(message("ld.global.u32 %d32, [%in+32];").find("outside every allocation"), std::string::npos);
  EXPECT_NE(message("ld.global.u32 %d32, [%in+2];").find("not a multiple of 4"), std::string::npos);
  EXPECT_NE(message("ld.global.v2.u32 {%d32, %a32}, [%in+4];").find("not a multiple of 8"), std::string::npos);
  EXPECT_NE(message(".shared .b8 s[4]; ld.shared.u32 %d32, [s+4];").find("outside the 4 bytes of shared memory"),
            std::string::npos);
  EXPECT_NE(message("trap;").find("function k, line"), std::string::npos);
  EXPECT_NE(message("trap;").find("thread (0,0,0): `trap;`: trap"), std::string::npos);
  EXPECT_NE(message("L: bra L;").find("more than"), std::string::npos) << "an endless loop must end";
}

}  // namespace
}  // namespace rndn::ptx::interpreter_opcodes_test
