// Operations that selection expands, on tens of thousands of random and special operands: our code in the simulator against the PTX interpreter.
#include <algorithm>

#include "tests/assembler/support.h"

namespace rndn::assembler::testing {
namespace {

// Threads of a launch; each reads three words and writes one word per operation.
constexpr uint32_t operation_blocks = 96, operation_threads = 256, pairs = operation_blocks * operation_threads;

struct Operation {
  const char*
      type;  // f32, f64, u32, u64, ..: of the result; operands %x, %y, %z hold the words' low bits in the type of `operands`
  const char* operands;
  const char* text;  // writes %d; more instructions are allowed
};

// Dot products came with sm_61.
bool has_dot_products(const std::vector<Operation>& operations) {
  return std::any_of(operations.begin(), operations.end(),
                     [](const Operation& o) { return std::string_view(o.text).starts_with("dp"); });
}

std::string kernel_text(const std::vector<Operation>& operations) {
  std::string s = has_dot_products(operations) ? ".version 6.0\n.target sm_61\n" : ".version 6.0\n.target sm_60\n";
  s += ".address_size 64\n.visible .entry operations(.param .u64 in, .param .u64 out)\n{\n"
       ".reg .b32 %i<4>;\n.reg .b64 %a<8>;\n.reg .b64 %w<4>;\n.reg .b32 %v<4>;\n"
       "ld.param.u64 %a0, [in];\nld.param.u64 %a1, [out];\nmov.u32 %i0, %tid.x;\nmov.u32 %i1, %ctaid.x;\nmov.u32 %i2, "
       "%ntid.x;\n"
       "mad.lo.u32 %i3, %i1, %i2, %i0;\nmad.wide.u32 %a2, %i3, 24, %a0;\n";
  s += fmt::format("mad.wide.u32 %a3, %i3, {}, %a1;\n", 8 * operations.size());
  for (int k = 0; k < 3; ++k)
    s += fmt::format("ld.global.u64 %w{0}, [%a2+{1}];\ncvt.u32.u64 %v{0}, %w{0};\n", k, 8 * k);
  for (size_t k = 0; k < operations.size(); ++k) {
    const Operation& o = operations[k];
    const bool wide = std::string_view(o.type).ends_with("64"), floating = o.type[0] == 'f';
    const bool wide_in = std::string_view(o.operands).ends_with("64"), floating_in = o.operands[0] == 'f';
    s += "{\n";
    s += fmt::format(".reg .{} %d;\n.reg .{} %x, %y, %z;\n.reg .pred %p;\n.reg .b32 %t;\n.reg .b64 %u;\n", o.type,
                     o.operands);
    const char* names[] = {"%x", "%y", "%z"};
    for (int w = 0; w < 3; ++w)
      s += fmt::format("mov.b{} {}, %{}{};\n", wide_in ? 64 : 32, names[w], wide_in ? 'w' : 'v', w);
    (void)floating_in;
    s += o.text;
    s += "\n";
    if (floating)
      s += fmt::format("setp.nan.{0} %p, %d, %d;\nselp.{0} %d, {1}, %d, %p;\n", o.type,
                       wide ? "0d7FF8000000000000" : "0f7FC00000");
    if (wide)
      s += "mov.b64 %u, %d;\n";
    else
      s += "mov.b32 %t, %d;\ncvt.u64.u32 %u, %t;\n";
    s += fmt::format("st.global.u64 [%a3+{}], %u;\n}}\n", 8 * k);
  }
  return s + "ret;\n}\n";
}

std::vector<uint64_t> operand_words(bool narrow) {
  std::mt19937_64 random(1990);
  const uint64_t special32[] = {0,          0x80000000, 1,          0x80000001, 0x007fffff, 0x00800000,
                                0x80800000, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000,
                                0x7f800001, 0x3f800000, 0xbf800000, 0x3f7fffff, 0x3f800001, 0x40000000,
                                0x00ffffff, 0x34000000, 0x4b800000, 0x7e800000, 0x40490fdb, 0x00000003};
  const uint64_t special64[] = {0,
                                1,
                                3,
                                0x8000000000000000,
                                0x8000000000000001,
                                0x000fffffffffffff,
                                0x0010000000000000,
                                0x001fffffffffffff,
                                0x7fefffffffffffff,
                                0xffefffffffffffff,
                                0x7ff0000000000000,
                                0xfff0000000000000,
                                0x7ff8000000000000,
                                0x7ff0000000000001,
                                0xfff0000000000001,
                                0x3ff0000000000000,
                                0xbff0000000000000,
                                0x3fefffffffffffff,
                                0x3ff0000000000001,
                                0x4000000000000000,
                                0x7fd0000000000000,
                                0x0008000000000000,
                                0x4008000000000000,
                                0x400921fb54442d18,
                                0x20000000000000,
                                0x3ca0000000000000};
  const int exponent_bits = narrow ? 8 : 11, mantissa_bits = narrow ? 23 : 52;
  auto special = [&] {
    return narrow ? special32[random() % std::size(special32)] : special64[random() % std::size(special64)];
  };
  auto make = [&](int exponent) {
    const int limit = (1 << exponent_bits) - 1;
    exponent = std::clamp(exponent, 0, limit);
    uint64_t mantissa = random() & ((uint64_t{1} << mantissa_bits) - 1);
    if (random() % 4 == 0)
      mantissa &= ~uint64_t{0} << (random() % static_cast<uint64_t>(mantissa_bits));  // short ones: ties
    return (random() & 1) << (mantissa_bits + exponent_bits) | static_cast<uint64_t>(exponent) << mantissa_bits |
           mantissa;
  };
  std::vector<uint64_t> words(pairs * 3);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  for (size_t k = 0; k < pairs; ++k) {
    uint64_t* w = &words[3 * k];
    const int any = static_cast<int>(random() % (1u << exponent_bits));
    switch (random() % 8) {
      case 0: w[0] = special(), w[1] = special(), w[2] = special(); break;
      case 1: w[0] = special(), w[1] = make(any), w[2] = random(); break;
      case 2: w[0] = make(any), w[1] = special(), w[2] = random(); break;
      case 3: w[0] = random(), w[1] = random(), w[2] = random(); break;
      case 4:  // quotients around the subnormal range
        w[0] = make(any),
        w[1] = make(any + bias - static_cast<int>(random() % (static_cast<unsigned>(mantissa_bits) + 6)) + 2),
        w[2] = make(any);
        break;
      case 5: w[0] = make(static_cast<int>(random() % 3)), w[1] = make(any), w[2] = make(any); break;  // subnormal
      case 6:
        w[0] = make(any), w[1] = make(any - bias + static_cast<int>(random() % 4) - 2), w[2] = random();
        break;  // overflow
      default:
        w[0] = make(bias + static_cast<int>(random() % 8)), w[1] = make(bias - static_cast<int>(random() % 8)),
        w[2] = make(any);
    }
    if (narrow)
      for (int j = 0; j < 3; ++j) w[j] = (w[j] & 0xffffffff) | random() << 32;
  }
  return words;
}

void check(const std::vector<Operation>& operations, bool narrow) {
  const std::string text = kernel_text(operations);
  ptx::Module module = parse_text("operations.ptx", text);
  ASSERT_EQ(module.functions.size(), 1u);
  const std::vector<uint64_t> in = operand_words(narrow);
  const size_t n = pairs * operations.size();
  std::vector<uint64_t> expected(n), got(n);
  {
    ptx::Memory memory;
    uint64_t args[2] = {memory.allocate(in.size() * 8), memory.allocate(n * 8)};
    memory.write(args[0], std::as_bytes(std::span(in)));
    ptx::Launch launch;
    launch.grid = {operation_blocks, 1, 1};
    launch.block = {operation_threads, 1, 1};
    launch.parameters = std::as_bytes(std::span(args));
    auto stats = ptx::interpret(module, "operations", launch, memory);
    ASSERT_TRUE(stats.ok()) << stats.error().message;
    memory.read(args[1], std::as_writable_bytes(std::span(expected)));
  }
  if (operations[0].type[0] == 'f') {  // the operands reach every class of results
    const bool wide = std::string_view(operations[0].type) == "f64";
    const uint64_t infinity = wide ? 0x7ff0000000000000 : 0x7f800000, least = wide ? 0x0010000000000000 : 0x00800000;
    const uint64_t magnitude = wide ? ~uint64_t{0} >> 1 : 0x7fffffff;
    size_t zeros = 0, subnormal = 0, infinite = 0, nan = 0, normal = 0;
    for (size_t p = 0; p < pairs; ++p) {
      const uint64_t m = expected[p * operations.size()] & magnitude;
      ++(m == 0 ? zeros : m < least ? subnormal : m < infinity ? normal : m == infinity ? infinite : nan);
    }
    EXPECT_GT(std::min({zeros, subnormal, infinite, nan, normal}), 400u)
        << zeros << " " << subnormal << " " << infinite << " " << nan << " " << normal;
  }
  for (const std::string& target : targets) {
    if (target == "sm_60" && has_dot_products(operations)) continue;
    auto ours = assemble_for(module, target);
    if (!ours.ok()) {
      ADD_FAILURE() << target << ": " << ours.error().message;
      continue;
    }
    sim::Machine machine(target, 64 << 20);
    auto loaded = machine.load(ours->cubin);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    auto in_at = machine.allocate(in.size() * 8), out_at = machine.allocate(n * 8);
    ASSERT_TRUE(in_at.ok() && out_at.ok());
    uint64_t args[2] = {*in_at, *out_at};
    ASSERT_TRUE(machine.write(args[0], in.data(), in.size() * 8).ok());
    sim::Options o;
    o.check_hazards = true;
    auto ran = machine.launch(*loaded, "operations", {operation_blocks, 1, 1}, {operation_threads, 1, 1}, 0,
                              std::as_bytes(std::span(args)), o);
    if (!ran.ok()) {
      ADD_FAILURE() << target << ": " << ran.error().message;
      continue;
    }
    ASSERT_TRUE(machine.read(args[1], got.data(), n * 8).ok());
    for (size_t k = 0; k < operations.size(); ++k) {
      size_t differ = 0, first = 0;
      for (size_t p = pairs; p-- > 0;)
        if (expected[p * operations.size() + k] != got[p * operations.size() + k]) ++differ, first = p;
      EXPECT_EQ(differ, 0u) << target << " `" << operations[k].text
                            << fmt::format("` of {:#x}, {:#x}, {:#x}: expected {:#x}, got {:#x}", in[3 * first],
                                           in[3 * first + 1], in[3 * first + 2],
                                           expected[first * operations.size() + k], got[first * operations.size() + k]);
    }
  }
}

TEST(Operations, DivisionAndRootsOfF64AreRoundedRight) {
  check({{"f64", "f64", "div.rn.f64 %d, %x, %y;"},
         {"f64", "f64", "rcp.rn.f64 %d, %x;"},
         {"f64", "f64", "sqrt.rn.f64 %d, %x;"},
         {"f64", "f64", "div.rz.f64 %d, %x, %y;"},
         {"f64", "f64", "div.rm.f64 %d, %x, %y;"},
         {"f64", "f64", "div.rp.f64 %d, %x, %y;"},
         {"f64", "f64", "rcp.rz.f64 %d, %x;"},
         {"f64", "f64", "rcp.rm.f64 %d, %x;"},
         {"f64", "f64", "rcp.rp.f64 %d, %x;"},
         {"f64", "f64", "sqrt.rz.f64 %d, %x;"},
         {"f64", "f64", "sqrt.rm.f64 %d, %x;"},
         {"f64", "f64", "sqrt.rp.f64 %d, %x;"}},
        false);
}

TEST(Operations, DivisionAndRootsOfF32AreRoundedRight) {
  check({{"f32", "f32", "div.rn.f32 %d, %x, %y;"}, {"f32", "f32", "div.rn.ftz.f32 %d, %x, %y;"},
         {"f32", "f32", "rcp.rn.f32 %d, %x;"},     {"f32", "f32", "rcp.rn.ftz.f32 %d, %x;"},
         {"f32", "f32", "sqrt.rn.f32 %d, %x;"},    {"f32", "f32", "sqrt.rn.ftz.f32 %d, %x;"},
         {"f32", "f32", "div.rz.f32 %d, %x, %y;"}, {"f32", "f32", "div.rz.ftz.f32 %d, %x, %y;"},
         {"f32", "f32", "div.rm.f32 %d, %x, %y;"}, {"f32", "f32", "div.rm.ftz.f32 %d, %x, %y;"},
         {"f32", "f32", "div.rp.f32 %d, %x, %y;"}, {"f32", "f32", "div.rp.ftz.f32 %d, %x, %y;"},
         {"f32", "f32", "rcp.rz.f32 %d, %x;"},     {"f32", "f32", "rcp.rz.ftz.f32 %d, %x;"},
         {"f32", "f32", "rcp.rm.f32 %d, %x;"},     {"f32", "f32", "rcp.rm.ftz.f32 %d, %x;"},
         {"f32", "f32", "rcp.rp.f32 %d, %x;"},     {"f32", "f32", "rcp.rp.ftz.f32 %d, %x;"},
         {"f32", "f32", "sqrt.rz.f32 %d, %x;"},    {"f32", "f32", "sqrt.rz.ftz.f32 %d, %x;"},
         {"f32", "f32", "sqrt.rm.f32 %d, %x;"},    {"f32", "f32", "sqrt.rm.ftz.f32 %d, %x;"},
         {"f32", "f32", "sqrt.rp.f32 %d, %x;"},    {"f32", "f32", "sqrt.rp.ftz.f32 %d, %x;"}},
        true);
}

TEST(Operations, CarryChains) {
  check({{"u32", "u32", "add.cc.u32 %d, %x, %y; addc.u32 %d, %y, %z;"},
         {"u32", "u32", "add.cc.u32 %d, %x, %y; addc.cc.u32 %d, %y, %z; addc.u32 %d, %x, %d;"},
         {"u32", "u32", "sub.cc.u32 %d, %x, %y; subc.u32 %d, %y, %z;"},
         {"s32", "s32", "sub.cc.s32 %d, %x, %y; subc.cc.s32 %d, %y, %z; subc.s32 %d, %x, %d;"},
         {"u32", "u32", "mad.lo.cc.u32 %d, %x, %y, %z; madc.hi.u32 %d, %x, %y, %z;"},
         {"s32", "s32", "mad.hi.cc.s32 %d, %x, %y, %z; madc.lo.cc.s32 %d, %z, %y, %x; addc.s32 %d, %d, 0;"},
         {"u64", "u64", "add.cc.u64 %d, %x, %y; addc.u64 %d, %y, %z;"},
         {"u64", "u64", "sub.cc.u64 %d, %x, %y; subc.cc.u64 %d, %y, %z; subc.u64 %d, %x, %d;"},
         {"u64", "u64", "mad.lo.cc.u64 %d, %x, %y, %z; madc.hi.u64 %d, %x, %y, %z;"},
         {"s64", "s64", "mad.hi.cc.s64 %d, %x, %y, %z; madc.lo.cc.s64 %d, %z, %y, %x; addc.s64 %d, %d, 0;"},
         // A difference leaves no borrow as carry, and takes a carry for no borrow.
         {"u32", "u32", "add.cc.u32 %d, %x, %y; subc.u32 %d, %y, %z;"},
         {"u32", "u32", "sub.cc.u32 %d, %x, %y; addc.u32 %d, %y, %z;"},
         {"u32", "u32", "add.cc.u32 %d, %x, -1; subc.cc.u32 %d, 0, %y; addc.u32 %d, %d, 0;"},
         {"s32", "s32", "mad.lo.cc.s32 %d, %x, %y, %z; subc.cc.s32 %d, %y, %x; madc.hi.s32 %d, %d, %y, %z;"},
         {"u64", "u64", "add.cc.u64 %d, %x, %y; subc.cc.u64 %d, %y, %z; addc.u64 %d, %x, %d;"},
         {"u64", "u64", "sub.cc.u64 %d, %x, %y; addc.cc.u64 %d, %y, %z; subc.u64 %d, %x, %d;"}},
        true);
}

// A constant in a register of 16 bits is extended by the sign of its reader, not by that of the move.
TEST(Operations, ConstantsOfSixteenBitsHaveTheirReadersSign) {
  const char* statements[] = {
      "setp.lt.{0} %p, %h, %k; selp.b32 %d, 1, 2, %p;",
      "setp.lt.{0} %p, 16106, %k; selp.b32 %d, 1, 2, %p;",
      "setp.ge.{0} %p, %k, %h; selp.b32 %d, 1, 2, %p;",
      "set.gt.u32.{0} %d, %h, %k;",
      "max.{0} %h, %h, %k; cvt.u32.u16 %d, %h;",
      "min.{0} %h, %k, 3; cvt.u32.u16 %d, %h;",
      "div.{0} %h, %k, %h; cvt.u32.u16 %d, %h;",
      "rem.{0} %h, %h, %k; cvt.u32.u16 %d, %h;",
      "shr.{0} %h, %k, 3; cvt.u32.u16 %d, %h;",
      "shr.{0} %h, %k, %x; cvt.u32.u16 %d, %h;",
      "mul.hi.{0} %h, %h, %k; cvt.u32.u16 %d, %h;",
      "mul.wide.{0} %d, %h, %k;",
      "mad.wide.{0} %d, %k, %h, %y;",
      "sad.{0} %h, %h, %k, 5; cvt.u32.u16 %d, %h;",
      "cvt.s32.{0} %d, %k;",
      "cvt.rn.f32.{0} %f, %k; mov.b32 %d, %f;",
      "cvt.s64.{0} %l, %k; shr.u64 %l, %l, 8; cvt.u32.u64 %d, %l;",
      "cvt.sat.u8.{0} %d, %k;",
      "setp.eq.{0} %p, %h, %k; @%p mov.b16 %h, 7; cvt.u32.u16 %d, %h;"};
  std::vector<std::string> texts;
  for (const auto& [type, move] : {std::pair{"s16", "mov.b16 %k, 0xffb9;"}, std::pair{"s16", "mov.u16 %k, 0xffb9;"},
                                   std::pair{"u16", "mov.s16 %k, -71;"}, std::pair{"u16", "mov.b16 %k, -32768;"}})
    for (const char* statement : statements)
      texts.push_back(fmt::format(".reg .b16 %h, %k; .reg .b32 %f; .reg .b64 %l; {} cvt.u16.u32 %h, %x; {}", move,
                                  fmt::format(fmt::runtime(statement), type)));
  std::vector<Operation> operations;
  for (const std::string& t : texts) operations.push_back({"b32", "b32", t.c_str()});
  check(operations, true);
}

// All ones, whether the zero is a register's or a literal.
TEST(Operations, DivisionByZero) {
  std::vector<std::string> texts;
  for (const char* op : {"div", "rem"}) {
    for (const char* type : {"u16", "s16"})
      texts.push_back(
          fmt::format(".reg .b16 %h, %k; cvt.u16.u32 %h, %x; cvt.u16.u32 %k, %y; and.b16 %k, %k, 3; {}.{} %h, %h, %k; "
                      "cvt.u32.u16 %d, %h;",
                      op, type));
    for (const char* type : {"u32", "s32"})
      for (const char* divisor : {"%y", "0"})
        texts.push_back(fmt::format("and.b32 %y, %y, 3; {}.{} %d, %x, {};", op, type, divisor));
    texts.push_back(fmt::format("{}.s32 %d, 5, 0;", op));
  }
  const size_t words = texts.size();
  for (const char* op : {"div", "rem"})
    for (const char* type : {"u64", "s64"})
      for (const char* divisor : {"%y", "0"})
        texts.push_back(fmt::format("and.b64 %y, %y, 3; {}.{} %d, %x, {};", op, type, divisor));
  std::vector<Operation> operations;
  for (size_t k = 0; k < texts.size(); ++k) {
    const char* type = k < words ? "b32" : "b64";
    operations.push_back({type, type, texts[k].c_str()});
  }
  check(operations, true);
}

TEST(Operations, SaturatedSums) {
  check({{"s32", "s32", "add.sat.s32 %d, %x, %y;"},
         {"s32", "s32", "sub.sat.s32 %d, %x, %y;"},
         {"s32", "s32", "sub.sat.s32 %d, 7, %y;"},
         {"s32", "s32", "add.sat.s32 %d, %x, -2147483648;"},
         {"s32", "s32", "mad.hi.sat.s32 %d, %x, %y, %z;"}},
        true);
}

TEST(Operations, ProductsDifferencesAndBitFields) {
  check({{"u32", "u32", "mul24.lo.u32 %d, %x, %y;"},
         {"u32", "u32", "mul24.hi.u32 %d, %x, %y;"},
         {"s32", "s32", "mul24.lo.s32 %d, %x, %y;"},
         {"s32", "s32", "mul24.hi.s32 %d, %x, %y;"},
         {"s32", "s32", "mad24.lo.s32 %d, %x, %y, %z;"},
         {"u32", "u32", "mad24.hi.u32 %d, %x, %y, %z;"},
         {"u32", "u32", "sad.u32 %d, %x, %y, %z;"},
         {"s32", "s32", "sad.s32 %d, %x, %y, %z;"},
         {"u64", "u64", "sad.u64 %d, %x, %y, %z;"},
         {"s64", "s64", "sad.s64 %d, %x, %y, %z;"},
         {"b32", "b32", "dp4a.u32.u32 %d, %x, %y, %z;"},
         {"b32", "b32", "dp4a.s32.u32 %d, %x, %y, %z;"},
         {"b32", "b32", "dp4a.u32.s32 %d, %x, %y, %z;"},
         {"b32", "b32", "dp4a.s32.s32 %d, %x, %y, %z;"},
         {"b32", "b32", "dp2a.lo.s32.u32 %d, %x, %y, %z;"},
         {"b32", "b32", "dp2a.hi.u32.s32 %d, %x, %y, %z;"},
         {"u64", "u64", "bfe.u64 %d, %x, %v1, %v2;"},
         {"s64", "s64", "bfe.s64 %d, %x, %v1, %v2;"},
         {"s64", "s64", "and.b32 %v1, %v1, 63; and.b32 %v2, %v2, 127; bfe.s64 %d, %x, %v1, %v2;"},
         {"u64", "u64", "bfe.u64 %d, %x, 7, 40;"},
         {"b64", "b64", "bfi.b64 %d, %x, %y, %v1, %v2;"},
         {"b64", "b64", "bfi.b64 %d, %x, %y, 9, 33;"}},
        true);
}

// What random programs found.
TEST(Operations, RegistersWiderThanTheType) {
  check({{"b64", "b32", "cvt.sat.u32.s8 %d, %x;"},
         {"b32", "b32", "cvt.u16.s8 %d, %x;"},
         {"b64", "b32", "cvt.u16.s8 %d, %x;"},
         {"b32", "b32", "cvt.s16.s8 %d, %x;"},
         {"b64", "b32", "cvt.s16.s8 %d, %x;"},
         {"b64", "b32", "cvt.u32.s8 %d, %x;"},
         {"b64", "b32", "cvt.s16.u8 %d, %x;"},
         {"b64", "b32", "cvt.s64.s8 %d, %x;"},
         {"b64", "b32", "cvt.sat.s8.u32 %d, %x;"},
         {"b64", "b32", "cvt.sat.s16.s32 %d, %x;"},
         {"b64", "f32", "cvt.rzi.s32.f32 %d, %x;"},
         {"b64", "f32", "cvt.rzi.u32.f32 %d, %x;"},
         {"b64", "f32", "cvt.rni.s8.f32 %d, %x;"},
         {"b64", "f32", "cvt.rni.u16.f32 %d, %x;"},
         {"b64", "b32", "ld.global.v2.s32 {%u, %d}, [%a2+8];"},
         {"b64", "b32", "ld.global.v2.u32 {%d, %u}, [%a2];"},
         {"b64", "b32", "ld.global.v4.s16 {%u, %u, %d, %u}, [%a2+8];"},
         {"b64", "b32", "ld.global.v4.u8 {%u, %d, %u, %u}, [%a2+12];"}},
        true);
}

// Also of NaN, for which F2I to words and F2I to fewer bits differ.
TEST(Operations, NarrowIntegersOfFloats) {
  for (const char* from : {"f64", "f32"}) {
    std::vector<std::string> texts;
    for (const char* to : {"u8", "s8", "u16", "s16"})
      for (const char* rounding : {"rni", "rzi", "rmi", "rpi"})
        texts.push_back(fmt::format("cvt.{}.{}.{} %d, %x;", rounding, to, from));
    std::vector<Operation> operations;
    for (const std::string& t : texts) {
      operations.push_back({"b32", from, t.c_str()});
      if (t.starts_with("cvt.rzi")) operations.push_back({"b64", from, t.c_str()});
    }
    check(operations, std::string_view(from) == "f32");
  }
}

TEST(Operations, FieldsOfConstants) {
  check({{"s64", "s64", "bfe.s64 %d, 0, %v1, %v2;"},
         {"s64", "s64", "bfe.s64 %d, -7, %v1, %v2;"},
         {"u64", "u64", "bfe.u64 %d, -1, %v1, %v2;"},
         {"s64", "s64", "bfe.s64 %d, 0, %v1, %v1;"},
         {"b64", "b64", "bfi.b64 %d, -1, 0, %v1, %v2;"},
         {"b64", "b64", "bfi.b64 %d, 0, -1, %v1, %v2;"}},
        true);
}

}  // namespace
}  // namespace rndn::assembler::testing
