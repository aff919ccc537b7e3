// The table of PTX opcodes that are compared one by one, and kernels and operands for them. Operands come from memory and results go there, so that
// nothing is folded. NaNs are made canonical in the kernel, since PTX leaves their payload open.
#pragma once
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/support/every_case.h"

namespace rndn::sim {
inline constexpr uint32_t block_threads = 128;
inline const uint32_t operand_blocks = static_cast<uint32_t>(test::in_the_gate(12, 36)),  // all pairs of special operands in both
    operand_count = block_threads * operand_blocks;

struct Opcode {
  std::string name;
  std::string in, out;   // types of %a %b %c, and of %d
  std::string text;      // may use %t of the type of %a, predicates %p and %q, and %w of .b32
  uint32_t target = 60;  // lowest
  double error = 0;      // relative, of approximations
  double absolute = 0;   // or absolute
};

inline std::string replaced(std::string s, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = s.find(from, at)) != std::string::npos; at += to.size()) s.replace(at, from.size(), to);
  return s;
}

inline std::vector<Opcode> opcodes() {
  std::vector<Opcode> all;
  std::set<std::string> names;
  auto add = [&](const std::string& text, const std::string& in, const std::string& out, uint32_t target = 60,
                 double error = 0, double absolute = 0) {
    std::string name;
    for (char c : text.substr(0, text.find(' '))) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    if (name.rfind("cvt", 0) != 0 && text.find(in) == std::string::npos) name += "_" + in;
    while (!names.insert(name).second) name += "x";
    all.push_back({name, in, out, text, target, error, absolute});
  };
  auto each = [&](std::initializer_list<const char*> types, const std::string& text, uint32_t target = 60) {
    for (const char* t : types) add(replaced(text, "$", t), t, t, target);
  };
  // Integers
  for (const char* op : {"add", "sub", "mul.lo", "mul.hi", "min", "max"})
    each({"u16", "s16", "u32", "s32", "u64", "s64"}, std::string(op) + ".$ %d, %a, %b;");
  each({"u16", "s16", "u32", "s32", "u64", "s64"}, "mad.lo.$ %d, %a, %b, %c;");
  each({"u16", "s16", "u32", "s32", "u64", "s64"}, "mad.hi.$ %d, %a, %b, %c;");
  each({"u16", "s16", "u32", "s32", "u64", "s64"}, "sad.$ %d, %a, %b, %c;");
  // A divisor of zero or one less than that is left open by PTX.
  for (const char* op : {"div", "rem"}) {
    for (const char* t : {"u16", "u32", "u64"})
      add(fmt::format("{0}.{1} %d, %a, %t;", op, t), t, t),
          all.back().text = fmt::format("or.b{0} %t, %b, 1; {1}", t + 1, all.back().text);
    for (const char* t : {"s16", "s32", "s64"})
      add(fmt::format("{0}.{1} %d, %a, %t;", op, t), t, t),
          all.back().text = fmt::format("and.b{0} %t, %b, -2; or.b{0} %t, %t, 2; {1}", t + 1, all.back().text);
  }
  for (const char* t : {"u16", "s16"}) {
    const std::string wide = t[0] == 'u' ? "u32" : "s32";
    add(fmt::format("mul.wide.{} %d, %a, %b;", t), t, wide);
  }
  for (const char* t : {"u32", "s32"}) {
    const std::string wide = t[0] == 'u' ? "u64" : "s64";
    add(fmt::format("mul.wide.{} %d, %a, %b;", t), t, wide);
    for (const char* op : {"mul24.lo", "mul24.hi"}) add(fmt::format("{}.{} %d, %a, %b;", op, t), t, t);
    for (const char* op : {"mad24.lo", "mad24.hi"}) add(fmt::format("{}.{} %d, %a, %b, %c;", op, t), t, t);
  }
  each({"s16", "s32", "s64"}, "abs.$ %d, %a;");
  each({"s16", "s32", "s64"}, "neg.$ %d, %a;");
  for (const char* op : {"and", "or", "xor"}) each({"b16", "b32", "b64"}, std::string(op) + ".$ %d, %a, %b;");
  each({"b16", "b32", "b64"}, "not.$ %d, %a;");
  each({"b16", "b32", "b64"}, "cnot.$ %d, %a;");
  for (const char* t : {"b16", "b32", "b64", "u16", "s16", "u32", "s32", "u64", "s64"})
    for (const char* limit : {"", "and.b32 %w, %w, 127; "}) {
      add(fmt::format("{}.{} %d, %a, %w;", t[0] == 'b' ? "shl" : "shr", t), t, t);
      all.back().text = fmt::format("cvt.u32.u64 %w, %lb; {}{}", limit, all.back().text);
    }
  for (const char* d : {"l", "r"})
    for (const char* m : {"clamp", "wrap"}) add(fmt::format("shf.{}.{}.b32 %d, %a, %b, %c;", d, m), "b32", "b32");
  for (const char* op : {"popc", "clz"})
    each({"b32"}, std::string(op) + ".$ %d, %a;"), add(std::string(op) + ".b64 %d, %a;", "b64", "u32");
  each({"b32", "b64"}, "brev.$ %d, %a;");
  for (const char* s : {"", "shiftamt."}) {
    each({"u32", "s32"}, fmt::format("bfind.{}$ %d, %a;", s));
    for (const char* t : {"u64", "s64"}) add(fmt::format("bfind.{}{} %d, %a;", s, t), t, "u32");
  }
  // Positions and lengths beyond 255 are left open: ptxas takes all 32 bits of them for 64-bit fields.
  for (const char* t : {"u32", "s32", "u64", "s64"}) {
    add(fmt::format("bfe.{} %d, %a, %w, %v;", t), t, t);
    all.back().text =
        "cvt.u32.u64 %w, %lb; cvt.u32.u64 %v, %lc; and.b32 %w, %w, 255; and.b32 %v, %v, 255; " + all.back().text;
  }
  for (const char* t : {"b32", "b64"}) {
    add(fmt::format("bfi.{} %d, %a, %b, %w, %v;", t), t, t);
    all.back().text =
        "cvt.u32.u64 %w, %lc; shr.u32 %v, %w, 8; and.b32 %w, %w, 255; and.b32 %v, %v, 255; " + all.back().text;
  }
  for (const char* m : {"", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"})
    add(fmt::format("prmt.b32{} %d, %a, %b, %c;", m), "b32", "b32");
  for (const char* l : {"0x96", "0xe8", "0x1d", "0x80", "0xca"})
    add(fmt::format("lop3.b32 %d, %a, %b, %c, {};", l), "b32", "b32");
  for (const char* a : {"u32", "s32"})
    for (const char* b : {"u32", "s32"})
      for (const char* op : {"dp4a", "dp2a.lo", "dp2a.hi"}) {
        if (std::string_view(op) == "dp4a")
          add(fmt::format("dp4a.{}.{} %d, %a, %b, %c;", a, b), a, "s32", 61);
        else
          add(fmt::format("{}.{}.{} %d, %a, %b, %c;", op, a, b), a, "s32", 61);
      }
  for (const char* t : {"u16", "s16", "u32", "s32", "u64", "s64"})
    for (const char* c : {"eq", "ne", "lt", "le", "gt", "ge"})
      add(fmt::format("setp.{}.{} %p, %a, %b; selp.u32 %d, 3, 5, %p;", c, t), t, "u32");
  for (const char* c : {"and", "or", "xor"})
    add(fmt::format(
            "setp.lt.{}.s32 %p|%q, %a, %b, %q; selp.u32 %d, 3, 5, %p; selp.u32 %w, 16, 0, %q; add.u32 %d, %d, %w;", c),
        "s32", "u32"),
        all.back().text = "setp.ne.s32 %q, %c, 0; " + all.back().text;
  each({"u32", "s32"}, "set.gt.u32.$ %d, %a, %b;");
  add("set.le.f32.s32 %d, %a, %b;", "s32", "f32");
  for (const char* t : {"u16", "u32", "u64", "s32", "b64"}) {
    add(fmt::format("slct.{}.s32 %d, %a, %b, %w;", t), t, t);
    all.back().text = "cvt.u32.u64 %w, %lc; " + all.back().text;
  }
  for (const char* t : {"u32", "s32", "u64", "s64"}) {
    add(fmt::format("add.cc.{0} %t, %a, %b; addc.cc.{0} %d, %a, %c; addc.{0} %d, %d, %t;", t), t, t);
    add(fmt::format("sub.cc.{0} %t, %a, %b; subc.cc.{0} %d, %a, %c; subc.{0} %d, %d, %t;", t), t, t);
    add(fmt::format("mad.lo.cc.{0} %t, %a, %b, %c; madc.hi.{0} %d, %a, %b, %c;", t), t, t);
  }
  // f32, f64
  for (const char* f : {"f32", "f64"}) {
    const bool single = f[1] == '3';
    for (const char* r : {"rn", "rz", "rm", "rp"})
      for (const char* z : {"", ".ftz", ".sat", ".ftz.sat"}) {
        if (!single && *z) continue;
        for (const char* op : {"add", "sub", "mul"}) add(fmt::format("{}.{}{}.{} %d, %a, %b;", op, r, z, f), f, f);
        add(fmt::format("fma.{}{}.{} %d, %a, %b, %c;", r, z, f), f, f);
        if (std::string_view(z).find("sat") != std::string_view::npos) continue;
        add(fmt::format("div.{}{}.{} %d, %a, %b;", r, z, f), f, f);
        add(fmt::format("rcp.{}{}.{} %d, %a;", r, z, f), f, f);
        add(fmt::format("sqrt.{}{}.{} %d, %a;", r, z, f), f, f);
      }
    for (const char* z : {"", ".ftz"}) {
      if (!single && *z) continue;
      for (const char* op : {"min", "max"}) {
        add(fmt::format("{}{}.{} %d, %a, %b;", op, z, f), f, f);
        if (single) add(fmt::format("{}{}.NaN.{} %d, %a, %b;", op, z, f), f, f, 80);
      }
      for (const char* op : {"abs", "neg"}) add(fmt::format("{}{}.{} %d, %a;", op, z, f), f, f);
      for (const char* c : {"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"})
        add(fmt::format("setp.{}{}.{} %p, %a, %b; selp.u32 %d, 3, 5, %p;", c, z, f), f, "u32");
    }
    for (const char* k : {"finite", "infinite", "number", "notanumber", "normal", "subnormal"})
      add(fmt::format("testp.{}.{} %p, %a; selp.u32 %d, 3, 5, %p;", k, f), f, "u32");
    add(fmt::format("copysign.{} %d, %a, %b;", f), f, f);
    add(fmt::format("set.gt.f32.{} %d, %a, %b;", f), f, "f32");
    for (const char* k : {"rni", "rzi", "rmi", "rpi"}) {
      add(fmt::format("cvt.{0}.{1}.{1} %d, %a;", k, f), f, f);
      for (const char* t : {"u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"}) {
        // What a NaN becomes in fewer than 32 bits is open: ptxas saturates the 32-bit result.
        if (!single && (std::string_view(t) == "u8" || std::string_view(t) == "u16")) continue;
        const bool byte = t[1] == '8';
        add(fmt::format("cvt.{}.{}.{} {}, %a;{}", k, t, f, byte ? "%w" : "%d", byte ? " mov.b32 %d, %w;" : ""), f,
            byte ? (t[0] == 'u' ? "u32" : "s32") : t);
        if (single && std::string_view(t) == "s32") add(fmt::format("cvt.{}.ftz.{}.{} %d, %a;", k, t, f), f, t);
      }
    }
    for (const char* r : {"rn", "rz", "rm", "rp"})
      for (const char* t : {"u16", "s16", "u32", "s32", "u64", "s64"})
        add(fmt::format("cvt.{}.{}.{} %d, %a;", r, f, t), t, f);
  }
  for (const char* r : {"rn", "rz", "rm", "rp"})
    for (const char* z : {"", ".ftz", ".sat"}) add(fmt::format("cvt.{}{}.f32.f64 %d, %a;", r, z), "f64", "f32");
  add("cvt.f64.f32 %d, %a;", "f32", "f64");
  add("cvt.sat.f32.f32 %d, %a;", "f32", "f32");
  add("cvt.ftz.f64.f32 %d, %a;", "f32", "f64");
  // Approximations: errors as the PTX manual gives them
  for (const char* z : {"", ".ftz"}) {
    add(fmt::format("rcp.approx{}.f32 %d, %a;", z), "f32", "f32", 60, 0x1p-22);
    add(fmt::format("sqrt.approx{}.f32 %d, %a;", z), "f32", "f32", 60, 0x1p-21);
    add(fmt::format("rsqrt.approx{}.f32 %d, %a;", z), "f32", "f32", 60, 0x1p-21);
    add(fmt::format("ex2.approx{}.f32 %d, %a;", z), "f32", "f32", 60, 0x1p-20);
    add(fmt::format("div.full{}.f32 %d, %a, %b;", z), "f32", "f32", 60, 0x1p-21);
  }
  add("lg2.approx.f32 %d, %a;", "f32", "f32", 60, 0x1p-20, 0x1p-20);
  add("tanh.approx.f32 %d, %a;", "f32", "f32", 75, 0x1p-10);
  // Integer conversions
  const char* ints[] = {"u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"};
  for (const char* to : ints)
    for (const char* from : ints)
      for (const char* sat : {"", ".sat"}) {
        if (from[1] == '8' || std::string_view(to) == from) continue;
        // Nothing to saturate where every value fits: not PTX.
        const int to_bits = std::atoi(to + 1), from_bits = std::atoi(from + 1);
        if (*sat && (to[0] == from[0] || from[0] == 'u') && to_bits >= from_bits + (to[0] != from[0])) continue;
        const bool byte = to[1] == '8';
        add(fmt::format("cvt{}.{}.{} {}, %a;{}", sat, to, from, byte ? "%w" : "%d", byte ? " mov.b32 %d, %w;" : ""),
            from, byte ? (to[0] == 'u' ? "u32" : "s32") : to);
      }
  // Halves
  for (const char* h : {"f16", "f16x2", "bf16", "bf16x2"}) {
    const bool brain = h[0] == 'b';
    const uint32_t least = brain ? 80 : 60;
    for (const char* z : {"", ".ftz", ".sat", ".ftz.sat"}) {
      if (brain && *z) continue;
      if (!brain)
        for (const char* op : {"add", "sub", "mul"}) add(fmt::format("{}.rn{}.{} %d, %a, %b;", op, z, h), h, h, least);
      add(fmt::format("fma.rn{}.{} %d, %a, %b, %c;", z, h), h, h, least);
      if (std::string_view(z).find("sat") != std::string_view::npos) continue;
      add(fmt::format("fma.rn{}.relu.{} %d, %a, %b, %c;", z, h), h, h, 80);
      for (const char* op : {"min", "max"}) {
        add(fmt::format("{}{}.{} %d, %a, %b;", op, z, h), h, h, 80);
        add(fmt::format("{}{}.NaN.{} %d, %a, %b;", op, z, h), h, h, 80);
      }
      for (const char* op : {"neg", "abs"}) add(fmt::format("{}{}.{} %d, %a;", op, z, h), h, h, least);
    }
  }
  for (const char* c : {"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"}) {
    add(fmt::format("setp.{}.f16 %p, %a, %b; selp.u32 %d, 3, 5, %p;", c), "f16", "u32");
    add(fmt::format("set.{}.f16x2.f16x2 %d, %a, %b;", c), "f16x2", "b32");
  }
  add("ex2.approx.f16 %d, %a;", "f16", "f16", 75, 0x1p-9);
  add("tanh.approx.f16 %d, %a;", "f16", "f16", 75, 0x1p-9);
  add("cvt.f32.f16 %d, %a;", "f16", "f32");
  add("cvt.f64.f16 %d, %a;", "f16", "f64");
  for (const char* r : {"rn", "rz", "rm", "rp"}) {
    add(fmt::format("cvt.{}.f16.f32 %d, %a;", r), "f32", "f16");
    add(fmt::format("cvt.{}.f16.f64 %d, %a;", r), "f64", "f16");
    for (const char* t : {"u16", "s16", "u32", "s32", "u64", "s64"})
      add(fmt::format("cvt.{}.f16.{} %d, %a;", r, t), t, "f16");
  }
  for (const char* k : {"rni", "rzi", "rmi", "rpi"}) {
    add(fmt::format("cvt.{}.f16.f16 %d, %a;", k), "f16", "f16");
    for (const char* t : {"u16", "s16", "u32", "s32", "u64", "s64"})
      add(fmt::format("cvt.{}.{}.f16 %d, %a;", k, t), "f16", t);
  }
  for (const char* r : {"rn", "rz"}) add(fmt::format("cvt.{}.bf16.f32 %d, %a;", r), "f32", "bf16", 80);
  for (const char* r : {"rn", "rz"})
    for (const char* to : {"f16x2", "bf16x2"}) add(fmt::format("cvt.{}.{}.f32 %d, %a, %b;", r, to), "f32", to, 80);
  return all;
}

struct Kind {
  uint32_t bits;
  char prefix;  // b, f
  bool half, brain, floating;
};
inline Kind kind_of(const std::string& type) {
  if (type == "f16") return {16, 'b', true, false, true};
  if (type == "bf16") return {16, 'b', true, true, true};
  if (type == "f16x2") return {32, 'b', true, false, true};
  if (type == "bf16x2") return {32, 'b', true, true, true};
  return {static_cast<uint32_t>(std::stoul(type.substr(1))), type[0] == 'f' ? 'f' : 'b', false, false, type[0] == 'f'};
}

// One opcode in a scope of its own: %a %b %c from three words of 64 bits at %x, one word out at %y + `offset`.
inline std::string scope_text(const Opcode& o, uint64_t offset) {
  const Kind in = kind_of(o.in), out = kind_of(o.out);
  std::string s = "  {\n";
  s += fmt::format(
      "  .reg .{}{} %a, %b, %c, %t; .reg .{}{} %d; .reg .pred %p, %q; .reg .b64 %la, %lb, %lc, %ld;\n"
      "  .reg .b32 %w, %v, %ra; .reg .b16 %h0, %h1, %g;\n",
      in.prefix, in.bits, out.prefix, out.bits);
  for (int k = 0; k < 3; ++k) {
    const char n = "abc"[k];
    s += fmt::format("  ld.global.b64 %l{}, [%x+{}];\n", n, 8 * k);
    if (in.bits == 16) s += fmt::format("  cvt.u16.u64 %{0}, %l{0};\n", n);
    if (in.bits == 32 && in.prefix == 'b') s += fmt::format("  cvt.u32.u64 %{0}, %l{0};\n", n);
    if (in.bits == 32 && in.prefix == 'f') s += fmt::format("  cvt.u32.u64 %ra, %l{0}; mov.b32 %{0}, %ra;\n", n);
    if (in.bits == 64) s += fmt::format("  mov.b64 %{0}, %l{0};\n", n);
  }
  s += "  " + o.text + "\n";
  // A NaN becomes the canonical one, by its bits.
  auto canonical = [&](const std::string& h) {
    return fmt::format("  and.b16 %g, {0}, 0x7fff; setp.gt.u16 %p, %g, {1}; selp.b16 {0}, 0x7fff, {0}, %p;\n", h,
                       out.brain ? "0x7f80" : "0x7c00");
  };
  // Approximations are compared as numbers. (ptxas takes the sign of a half's tanh for zero where its bits are looked at.)
  const bool exact = o.error == 0;
  if (exact && out.half && out.bits == 16) s += canonical("%d");
  if (out.half && out.bits == 32)
    s += "  mov.b32 {%h0, %h1}, %d;\n" + canonical("%h0") + canonical("%h1") + "  mov.b32 %d, {%h0, %h1};\n";
  if (out.prefix == 'f')
    s += fmt::format("  setp.nan.f{0} %p, %d, %d; selp.f{0} %d, {1}, %d, %p;\n", out.bits,
                     out.bits == 64 ? "0d7FF8000000000000" : "0f7FC00000");
  if (out.bits == 16) s += "  cvt.u64.u16 %ld, %d;\n";
  if (out.bits == 32)
    s += out.prefix == 'f' ? "  mov.b32 %ra, %d; cvt.u64.u32 %ld, %ra;\n" : "  cvt.u64.u32 %ld, %d;\n";
  if (out.bits == 64) s += "  mov.b64 %ld, %d;\n";
  return s + fmt::format("  st.global.b64 [%y+{}], %ld;\n  }}\n", offset);
}

// .entry NAME(in, out) with the opcodes one after the other, each with an array of results of its own.
inline std::string kernel_text(const std::string& name, const std::vector<Opcode>& several) {
  std::string s = fmt::format(".visible .entry {}(.param .u64 in, .param .u64 out)\n{{\n", name);
  s += "  .reg .b64 %x, %y; .reg .b32 %i, %n, %k;\n"
       "  ld.param.u64 %x, [in]; ld.param.u64 %y, [out]; mov.u32 %i, %ctaid.x; mov.u32 %n, %ntid.x; mov.u32 %k, "
       "%tid.x;\n"
       "  mad.lo.u32 %i, %i, %n, %k; mad.wide.u32 %x, %i, 24, %x; mad.wide.u32 %y, %i, 8, %y;\n";
  for (size_t k = 0; k < several.size(); ++k) s += scope_text(several[k], k * operand_count * 8);
  return s + "  ret;\n}\n";
}

inline std::vector<uint64_t> operands(const std::string& type) {
  const Kind kind = kind_of(type);
  std::mt19937_64 random(std::hash<std::string>{}(type)&0xffff);
  std::vector<uint64_t> special;
  if (kind.half)
    special = {0,      0x8000, 1,      0x8001, 0x03ff, 0x0400, 0x8400, 0x7bff, 0xfbff, 0x7c00,
               0xfc00, 0x7e00, 0x7c01, 0x3c00, 0xbc00, 0x3bff, 0x3c01, 0x4000, 0x3f80, 0xbf80,
               0x7f80, 0xff80, 0x7fc0, 0x0080, 0x007f, 0x7f7f, 0x3555, 0x0001};
  else if (type == "f32")
    for (float f : {0.0f,          -0.0f,           1.0f,     -1.0f,    0.5f,          3.0f,      1e-40f,
                    -1e-45f,       1.17549435e-38f, 3.4e38f,  -3.4e38f, INFINITY,      -INFINITY, NAN,
                    2147483648.0f, 0.49999997f,     65520.0f, 6e-8f,    4294967296.0f, 2.5f,      -127.5f,
                    255.5f,        1.8446744e19f})
      special.push_back(std::bit_cast<uint32_t>(f));
  else if (type == "f64")
    for (double f : {0.0,
                     -0.0,
                     1.0,
                     -1.0,
                     0.5,
                     3.0,
                     1e-310,
                     -4.9e-324,
                     2.2250738585072014e-308,
                     1.7e308,
                     -1.7e308,
                     double{INFINITY},
                     -double{INFINITY},
                     double{NAN},
                     2147483647.5,
                     9.3e18,
                     1.5,
                     2.5,
                     1e20,
                     1e-45,
                     65519.999,
                     3.4028235677973366e38})
      special.push_back(std::bit_cast<uint64_t>(f));
  else
    special = {0,
               1,
               2,
               3,
               5,
               7,
               31,
               32,
               33,
               63,
               64,
               0x7f,
               0x80,
               0xff,
               0x7fff,
               0x8000,
               0xffff,
               0x10000,
               0x7fffffff,
               0x80000000,
               0xffffffff,
               0x100000000,
               0x7fffffffffffffff,
               0x8000000000000000,
               0xffffffffffffffff};
  auto value = [&]() -> uint64_t {
    const uint64_t r = random();
    if (r % 8 == 0) return special[random() % special.size()];
    if (type == "f32" && r % 8 < 5)
      return std::bit_cast<uint32_t>(static_cast<float>(static_cast<double>(static_cast<int64_t>(random())) * 0x1p-40));
    if (type == "f64" && r % 8 < 5)
      return std::bit_cast<uint64_t>(static_cast<double>(static_cast<int64_t>(random())) * 0x1p-40);
    return r % 8 < 3 ? random() >> random() % 64 : random();
  };
  const uint64_t mask = kind.bits == 64 ? ~uint64_t{0} : (uint64_t{1} << kind.bits) - 1;
  std::vector<uint64_t> v(3 * operand_count);
  for (size_t i = 0; i < operand_count; ++i)
    for (size_t k = 0; k < 3; ++k) {
      uint64_t& x = v[3 * i + k];
      x = i < special.size() * special.size() && k < 2 ? special[k == 0 ? i % special.size() : i / special.size()]
                                                       : value();
      if (kind.half && kind.bits == 32) x = (x & 0xffff) | value() << 16;
      x &= mask;
    }
  return v;
}

inline std::string module_head(uint32_t target) {
  return fmt::format(".version 7.8\n.target sm_{}\n.address_size 64\n", target);
}
inline uint32_t module_target(uint32_t sm) { return sm >= 80 ? 80 : sm >= 75 ? 75 : sm >= 61 ? 61 : 60; }

}  // namespace rndn::sim
