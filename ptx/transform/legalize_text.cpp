// The texts of the expansions, by family. Each says in PTX what the manual says of the instruction (PTX ISA 8.x, chapter 9.7).
//
//   16-bit atomics      a loop of compare-and-swap on the word around the half; no lane waits for another
//   bf16                through f32, whose upper half it is; results are rounded once: what does not fit f32 first becomes odd there, so that the
//                       second rounding sees on which side of a tie it lies (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums:
//                       proved algorithms using rounding to odd", 2008)
//   mbarrier            a 64-bit object: arrivals still to come in bits 0..19, expected ones in 20..39, bytes still to come in 40..61, as two's
//                       complement, the phase's parity in bit 63. Tokens are the object before the arrival. Arrivals for copies of
//                       cp.async wait for them first
//   cp.async.bulk       complete at once, too
//   fns                 the manual's loop
//   8-bit floats, relu, pack   conversions that only some targets have, in integers and in f16
//   ldmatrix, stmatrix  addresses of rows are shuffled, each lane reads or writes its two elements of each matrix
//   createpolicy        any value: accesses leave their policies out
//   pairs and SIMD video  part by part in 32 bits; scalar video in 64 bits
#include "ptx/transform/legalize_text.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <tuple>

#include "libraries/base/errors/check.h"
#include "ptx/opcodes.h"

namespace rndn::ptx {
namespace {

using ptx::Instruction;
using ptx::Opcode;
using ptx::Type;

bool is_bfloat(Type t) { return t == Type::bf16 || t == Type::bf16x2; }
// But the differences of bytes that there are instructions for.
bool video(const Instruction& i) {
  if (!ptx::is_video(i.op)) return false;
  const ptx::VideoSuffix v = ptx::video_suffix(i);
  return i.op != Opcode::vabsdiff4 || v.sat || v.is_signed != v.a_signed || v.a_signed != v.b_signed;
}

std::string_view space_suffix(const Instruction& i) {
  return i.mods.space == ptx::Space::global ? ".global" : i.mods.space == ptx::Space::shared ? ".shared" : "";
}
// Registers of these names.
std::string declare(std::string_view type, std::string_view names) {
  return fmt::format(".reg .{} {};\n", type, names);
}

// ---- 16-bit atomics, and bf16x2

std::string small_atomic(const Instruction& i, Type address) {
  const bool wide = address == Type::b64, half = ptx::type_bytes(i.type) == 2;
  const bool swaps = i.mods.atomic == ptx::AtomicOp::cas, result = i.destination_count > 0;
  const std::string space(space_suffix(i));
  const ptx::Semantics order = i.mods.semantics;
  using S = ptx::Semantics;
  const std::string fence =
      fmt::format("fence.acq_rel.{};\n", i.mods.scope == ptx::Scope::none ? "gpu" : ptx::name(i.mods.scope));
  std::string t = declare(wide ? "b64" : "b32", "%word") + declare("b32", "%low, %shift, %mask, %old, %new, %seen") +
                  declare("b16", "%had, %next") + declare("pred", "%p");
  if (order == S::release || order == S::acq_rel) t += fence;
  t += wide ? "and.b64 %word, %at, -4;\ncvt.u32.u64 %low, %at;\n" : "and.b32 %word, %at, -4;\nmov.b32 %low, %at;\n";
  t += "and.b32 %low, %low, 2;\nshl.b32 %shift, %low, 3;\nmov.b32 %mask, 65535;\nshl.b32 %mask, %mask, %shift;\n";
  t += fmt::format("ld.volatile{}.b32 %old, [%word];\nL0:\n", space);
  if (half) {
    t += "shr.u32 %new, %old, %shift;\ncvt.u16.u32 %had, %new;\n";
    t += swaps ? "setp.ne.b16 %p, %had, %s0;\n@%p bra L1;\nmov.b16 %next, %s1;\n"
               : fmt::format("add.rn.{} %next, %had, %s0;\n", ptx::type_name(i.type));
    t += "cvt.u32.u16 %new, %next;\nshl.b32 %new, %new, %shift;\nlop3.b32 %new, %new, %old, %mask, 0xf4;\n";
  } else {
    t += fmt::format("add.rn.{} %new, %old, %s0;\n", ptx::type_name(i.type));
  }
  t += fmt::format("atom{}.cas.b32 %seen, [%word], %old, %new;\n", space);
  t += "setp.ne.b32 %p, %seen, %old;\nmov.b32 %old, %seen;\n@%p bra L0;\nL1:\n";
  if (order == S::acquire || order == S::acq_rel) t += fence;
  if (result) t += half ? "mov.b16 %d0, %had;\n" : "mov.b32 %d0, %old;\n";
  return t;
}

// ---- bf16

std::string widen(std::string_view to, std::string_view from) {  // f32 of a bf16
  return fmt::format("mov.b32 {}, {{%zero, {}}};\n", to, from);
}

// %f, a b32 with the bits of an f32 that is odd where it is not exact, to bf16.
std::string round_to_bfloat(ptx::Rounding r) {
  using R = ptx::Rounding;
  if (r == R::none || r == R::rn || r == R::rz)
    return fmt::format("cvt.{}.bf16.f32 %d0, %f;\n", r == R::rz ? "rz" : "rn");
  // Away from zero where the direction and the sign agree and something is cut off; NaN is canonical.
  return declare("b32", "%bits, %cut, %up") + declare("pred", "%p, %q, %r") + declare("b16", "%low, %high, %nan") +
         fmt::format(
             "mov.b32 %bits, %f;\nand.b32 %cut, %bits, 65535;\nsetp.ne.b32 %p, %cut, 0;\n"
             "setp.{}.s32 %q, %bits, 0;\nand.pred %p, %p, %q;\nselp.b32 %up, 65536, 0, %p;\n"
             "add.u32 %bits, %bits, %up;\nmov.b32 {{%low, %high}}, %bits;\nsetp.nan.f32 %r, %f, %f;\n"
             "mov.b16 %nan, 0x7fff;\nselp.b16 %d0, %nan, %high, %r;\n",
             r == R::rp ? "ge" : "lt");
}

std::string bfloat_convert(const Instruction& i) {
  const Type to = i.type, from = i.type2;
  const std::string_view rounding = ptx::name(i.mods.rounding);
  const std::string dot = rounding.empty() ? "" : "." + std::string(rounding);
  std::string t = declare("f32", "%f, %g") + declare("b16", "%zero, %rest") + "mov.b16 %zero, 0;\n";
  if (from == Type::bf16) {
    t += widen("%f", "%s0");
    if (to == Type::f32) return t + fmt::format("cvt{}.f32.f32 %d0, %f;\n", i.mods.ftz ? ".ftz" : "");
    if (to == Type::bf16) return t + fmt::format("cvt{}.f32.f32 %g, %f;\nmov.b32 {{%rest, %d0}}, %g;\n", dot);
    if (to == Type::f64) return t + "cvt.f64.f32 %d0, %f;\n";
    if (to == Type::f16) return t + fmt::format("cvt{}.f16.f32 %d0, %f;\n", dot.empty() ? ".rn" : dot);
    return t + fmt::format("cvt{}.{}.f32 %d0, %f;\n", dot, ptx::type_name(to));
  }
  const std::string_view name = ptx::type_name(from);
  if (from == Type::f32)
    t += i.mods.ftz ? "cvt.ftz.f32.f32 %f, %s0;\n" : "mov.b32 %f, %s0;\n";
  else if (from == Type::f16)
    t += "cvt.f32.f16 %f, %s0;\n";
  else if (ptx::type_bytes(from) <= 2)
    t += fmt::format("cvt.rn.f32.{} %f, %s0;\n", name);
  else {
    const std::string back = from == Type::f64 ? "cvt.f64.f32" : fmt::format("cvt.rzi.{}.f32", name);
    t += declare(name, "%back") + declare("pred", "%inexact") + declare("b32", "%odd, %sum") +
         fmt::format(
             "cvt.rz.f32.{} %g, %s0;\n{} %back, %g;\nsetp.ne.{} %inexact, %back, %s0;\n"
             "selp.b32 %odd, 1, 0, %inexact;\nmov.b32 %sum, %g;\nor.b32 %sum, %sum, %odd;\nmov.b32 %f, %sum;\n",
             name, back, name);
  }
  return t + round_to_bfloat(i.mods.rounding);
}

// %f and %g to their function, in f32.
std::string bfloat_approximation(const Instruction& i) {
  const std::string_view name = i.op == Opcode::tanh ? "tanh.approx.f32" : "ex2.approx.ftz.f32";
  std::string t = declare("f32", "%f, %g") + declare("b16", "%zero, %a, %b") + "mov.b16 %zero, 0;\n";
  if (i.type == Type::bf16) return t + widen("%f", "%s0") + fmt::format("{} %g, %f;\ncvt.rn.bf16.f32 %d0, %g;\n", name);
  return t + "mov.b32 {%a, %b}, %s0;\n" + widen("%f", "%a") + widen("%g", "%b") +
         fmt::format("{0} %f, %f;\n{0} %g, %g;\ncvt.rn.bf16x2.f32 %d0, %g, %f;\n", name);
}

// ---- other conversions

// cvt.relu: what is negative becomes 0, NaN canonical. cvt.satfinite: what is beyond the largest number becomes that before it is rounded.
std::string convert_within_bounds(const Instruction& i) {
  const bool pair = i.type == Type::f16x2 || i.type == Type::bf16x2, relu = i.mods.mode & 1, finite = i.mods.mode >= 96;
  const uint32_t most = is_bfloat(i.type) ? 0x7f7f0000 : 0x477fe000;
  std::string t = declare(pair ? "b32" : "b16", "%x, %none") + declare("f32", "%f, %g");
  for (const auto& [to, from] : {std::pair{"%f", "%s0"}, {"%g", "%s1"}}) {
    if (to[1] == 'g' && !pair) continue;
    t += fmt::format("mov.b32 {}, {};\n", to, from);
    if (finite)
      t += fmt::format("min.NaN.f32 {0}, {0}, 0f{1:08X};\nmax.NaN.f32 {0}, {0}, 0f{2:08X};\n", to, most,
                       most | 1u << 31);
  }
  t += fmt::format("cvt.{}.{}.f32 %x, %f{};\n", ptx::name(i.mods.rounding), ptx::type_name(i.type), pair ? ", %g" : "");
  const char* bits = pair ? "b32" : "b16";
  return t + (relu ? fmt::format("mov.{} %none, 0;\nmax.NaN.{} %d0, %x, %none;\n", bits, ptx::type_name(i.type))
                   : fmt::format("mov.{} %d0, %x;\n", bits));
}

// Two numbers of 8 bits: e4m3 (bias 7, no infinity) or e5m2 (bias 15). To them: those below the least normal number are rounded by adding
// the power of two whose last place is their step, the others in their bits, to even; what is too large becomes the largest.
std::string small_float_convert(const Instruction& i) {
  const bool e5m2 = i.mods.mode & 1, relu = i.mods.mode & 2;
  if (i.mods.mode >= 96) {
    std::string t = declare("b32", "%x, %sign, %half, %sum") + declare("pred", "%p") + declare("b16", "%a, %b") +
                    declare("b32", "%none, %scale") + "cvt.u32.u16 %x, %s0;\nmov.b32 %sum, 0;\n";
    for (const int at : {0, 8}) {
      t += fmt::format("bfe.u32 %half, %x, {}, 7;\nbfe.u32 %sign, %x, {}, 1;\nsetp.{} %p, %half, 0x{};\n", at, at + 7,
                       e5m2 ? "gt.u32" : "eq.u32", e5m2 ? "7c" : "7f");
      t += fmt::format("shl.b32 %half, %half, {};\nbfi.b32 %half, %sign, %half, 15, 1;\n", e5m2 ? 8 : 7);
      if (!e5m2)  // the exponent's bias is 8 less
        t += "cvt.u16.u32 %a, %half;\nmov.b16 %b, 0x5c00;\nmul.rn.f16 %a, %a, %b;\ncvt.u32.u16 %half, %a;\n";
      t += fmt::format("selp.b32 %half, 0x7fff, %half, %p;\nbfi.b32 %sum, %half, %sum, {}, 16;\n", 2 * at);
    }
    return t + (relu ? "mov.b32 %none, 0;\nmax.NaN.f16x2 %d0, %sum, %none;\n" : "mov.b32 %d0, %sum;\n");
  }
  std::string t = declare("f32", "%f, %g, %small") + declare("b32", "%x, %abs, %step, %y, %sign, %sum") +
                  declare("b16", "%a, %b") + declare("pred", "%p") + "mov.b32 %sum, 0;\n";
  t += i.mods.mode < 64 ? "mov.b32 %f, %s0;\nmov.b32 %g, %s1;\n"
                        : "mov.b32 {%b, %a}, %s0;\ncvt.f32.f16 %f, %a;\ncvt.f32.f16 %g, %b;\n";
  const uint32_t cut = e5m2 ? 21 : 20, magic = e5m2 ? 0x43000000 : 0x46800000;
  for (const char* from : {"%f", "%g"}) {
    t += fmt::format("mov.b32 %x, {};\nand.b32 %abs, %x, 0x7fffffff;\nshr.u32 %sign, %x, 31;\n", from);
    t += fmt::format(
        "mov.b32 %small, %abs;\nadd.rn.f32 %small, %small, 0f{:08X};\nmov.b32 %step, %small;\n"
        "sub.u32 %step, %step, {};\n",
        magic, magic);
    t += fmt::format(
        "bfe.u32 %y, %abs, {0}, 1;\nadd.u32 %y, %y, %abs;\nadd.u32 %y, %y, {1};\nshr.u32 %y, %y, {0};\n"
        "sub.u32 %y, %y, {2};\n",
        cut, (1u << (cut - 1)) - 1, e5m2 ? 112 << 2 : 120 << 3);
    t += fmt::format(
        "setp.lt.u32 %p, %abs, {};\nselp.b32 %y, %step, %y, %p;\nmin.u32 %y, %y, {};\n"
        "setp.gt.u32 %p, %abs, 0x7f800000;\n",
        e5m2 ? 0x38800000u : 0x3c800000u, e5m2 ? 0x7b : 0x7e);
    t += relu ? "setp.lt.s32 %q, %x, 0;\nselp.b32 %y, 0, %y, %q;\n" : "bfi.b32 %y, %sign, %y, 7, 1;\n";
    t += "selp.b32 %y, 0x7f, %y, %p;\nshl.b32 %sum, %sum, 8;\nor.b32 %sum, %sum, %y;\n";
  }
  return (relu ? declare("pred", "%q") : "") + t + "cvt.u16.u32 %d0, %sum;\n";
}

// cvt.pack.sat: a and b clamped, b below a, and c above them.
std::string pack_saturated(const Instruction& i) {
  const bool is_signed = i.mods.mode & 1;
  const int bits = i.mods.mode < 160 ? 16 : 8 >> (i.mods.mode - 160) / 2,
            most = (1 << (is_signed ? bits - 1 : bits)) - 1, least = is_signed ? -most - 1 : 0;
  std::string t = declare("b32", "%x, %y");
  for (const auto& [to, from] : {std::pair{"%x", "%s0"}, {"%y", "%s1"}})
    t += fmt::format("max.s32 {0}, {1}, {2};\nmin.s32 {0}, {0}, {3};\n", to, from, least, most);
  if (bits == 16) return t + "bfi.b32 %d0, %x, %y, 16, 16;\n";
  return t + fmt::format("bfi.b32 %y, %x, %y, {}, {};\nbfi.b32 %d0, %s2, %y, {}, {};\n", bits, bits, 2 * bits,
                         32 - 2 * bits);
}

// ---- elect.sync: the lowest lane of the mask

std::string elect_lane() {
  return declare("b32", "%mask, %low, %lane") +
         "mov.b32 %mask, %s0;\nbar.warp.sync %mask;\nbrev.b32 %low, %mask;\nclz.b32 %low, %low;\n"
         "mov.u32 %lane, %laneid;\nsetp.eq.u32 %d1, %lane, %low;\nmov.b32 %d0, %low;\n";
}

// ---- matrices: of each, a lane has two elements beside each other in a row or, transposed, in a column

std::string move_matrices(const Instruction& i, Type address) {
  const bool loads = i.op == Opcode::ldmatrix, transposed = i.mods.mode % 32 != (i.mods.mode < 32 ? 1 : 0);
  const bool wide = address == Type::b64, generic = i.mods.space != ptx::Space::shared;
  std::string t = declare("b32", "%row, %lane, %four, %rest, %from, %here, %next, %x0, %x1, %x2, %x3") +
                  declare("b16", "%low, %high") + declare("b64", "%shared");
  if (!wide)
    t += "mov.b32 %row, %at;\n";
  else
    t += (generic ? "cvta.to.shared.u64 %shared, %at;\n" : "mov.b64 %shared, %at;\n") +
         std::string("cvt.u32.u64 %row, %shared;\n");
  t += "mov.u32 %lane, %laneid;\nshr.u32 %four, %lane, 2;\nand.b32 %rest, %lane, 3;\n";
  for (uint32_t m = 0; m < ptx::matrix_count(i); ++m) {
    if (!loads) t += fmt::format("mov.b32 %x{0}, %s{0};\n", m);
    if (!transposed) {
      t += fmt::format(
          "add.u32 %from, %four, {};\nshfl.sync.idx.b32 %here, %row, %from, 31, -1;\nmad.lo.u32 %here, %rest, 4, "
          "%here;\n",
          8 * m);
      t += loads ? fmt::format("ld.shared.b32 %x{}, [%here];\n", m) : fmt::format("st.shared.b32 [%here], %x{};\n", m);
      continue;
    }
    t += fmt::format("mad.lo.u32 %from, %rest, 2, {};\nshfl.sync.idx.b32 %here, %row, %from, 31, -1;\n", 8 * m);
    t += "add.u32 %from, %from, 1;\nshfl.sync.idx.b32 %next, %row, %from, 31, -1;\n"
         "mad.lo.u32 %here, %four, 2, %here;\nmad.lo.u32 %next, %four, 2, %next;\n";
    t += loads
             ? fmt::format(
                   "ld.shared.b16 %low, [%here];\nld.shared.b16 %high, [%next];\nmov.b32 %x{}, {{%low, %high}};\n", m)
             : fmt::format(
                   "mov.b32 {{%low, %high}}, %x{};\nst.shared.b16 [%here], %low;\nst.shared.b16 [%next], %high;\n", m);
  }
  for (uint32_t m = 0; loads && m < ptx::matrix_count(i); ++m) t += fmt::format("mov.b32 %d{0}, %x{0};\n", m);
  return t;
}

// ---- mbarrier

std::string memory_barrier(const Instruction& i) {
  using S = ptx::BarrierStep;
  const S step = ptx::barrier_step(i);
  const std::string space(space_suffix(i));
  // Copies are there before their arrival.
  const std::string fence = std::string(i.op == Opcode::cp ? "cp.async.wait_all;\n" : "") +
                            (i.mods.scope == ptx::Scope::gpu ? "membar.gl;\n" : "membar.cta;\n");
  if (i.op == Opcode::cp && i.mods.mode == 96) return fence;  // expected and arrived at once
  std::string t =
      declare("b64", "%old, %new, %count, %left") + declare("b64", "%seen, %expected") + declare("pred", "%p");
  switch (step.what) {
    case S::init:
      return t + fmt::format(
                     "cvt.u64.u32 %count, %s0;\nshl.b64 %new, %count, 20;\nor.b64 %new, %new, %count;\n"
                     "st{}.b64 [%at], %new;\n",
                     space);
    case S::invalidate: return t + fmt::format("mov.b64 %new, 0;\nst{}.b64 [%at], %new;\n", space);
    case S::test:
      t += fmt::format("ld.volatile{}.b64 %old, [%at];\n", space);
      t += step.parity ? "cvt.u64.u32 %seen, %s0;\nshl.b64 %seen, %seen, 63;\n" : "mov.b64 %seen, %s0;\n";
      return t + "xor.b64 %new, %old, %seen;\n" + fence + "setp.lt.s64 %d0, %new, 0;\n";
    case S::nothing:
    case S::arrive:
    case S::count_bytes: break;
  }
  const bool bytes = step.expects || step.completes, arrives = step.what == S::arrive;
  // Pending and expected arrivals less by the count; the last one, when no bytes are to come either, starts the next phase with those that are
  // expected then.
  const bool counted = !bytes && i.operand_count > i.destination_count + 1;
  t += counted ? "cvt.u64.u32 %count, %s0;\n" : arrives ? "mov.b64 %count, 1;\n" : "mov.b64 %count, 0;\n";
  if (bytes) {
    t += declare("b64", "%bytes, %come") + "cvt.u64.u32 %bytes, %s0;\n";
    if (step.completes) t += "neg.s64 %bytes, %bytes;\n";
  }
  t += fmt::format("{}ld.volatile{}.b64 %old, [%at];\nL0:\nsub.u64 %new, %old, %count;\n", fence, space);
  if (step.drops) t += "shl.b64 %left, %count, 20;\nsub.u64 %new, %new, %left;\n";
  if (bytes) t += "shr.u64 %come, %new, 40;\nadd.u64 %come, %come, %bytes;\nbfi.b64 %new, %come, %new, 40, 22;\n";
  t += "and.b64 %left, %new, 0x3fffff00000fffff;\nsetp.ne.u64 %p, %left, 0;\n@%p bra L1;\n"
       "shr.u64 %expected, %new, 20;\nand.b64 %expected, %expected, 0xfffff;\nor.b64 %new, %new, %expected;\n"
       "xor.b64 %new, %new, 0x8000000000000000;\nL1:\n";
  t += fmt::format(
      "atom{}.cas.b64 %seen, [%at], %old, %new;\nsetp.ne.u64 %p, %seen, %old;\nmov.b64 %old, %seen;\n"
      "@%p bra L0;\n",
      space);
  return i.destination_count ? t + "mov.b64 %d0, %old;\n" : t;
}

// ---- cp.async.bulk: one lane copies 16 bytes at a time, then tells the barrier object

std::string copy_in_bulk(const Instruction& i, std::span<const Type> types) {
  if (i.mods.mode >= 64) return "membar.cta;\n";
  const bool to_shared = i.mods.mode < 32;
  std::string t = declare("b32", "%x, %y, %z, %w, %rest") + declare("pred", "%end") + "mov.b32 %rest, %s0;\n";
  for (const auto& [name, from, type] : {std::tuple{"%to", "%at", types[0]}, {"%from", "%at1", types[1]}})
    t += declare(ptx::type_name(type), name) + fmt::format("mov.{} {}, {};\n", ptx::type_name(type), name, from);
  t += fmt::format(
      "L0:\nsetp.eq.u32 %end, %rest, 0;\n@%end bra L1;\nld.{}.v4.b32 {{%x, %y, %z, %w}}, [%from];\n"
      "st.{}.v4.b32 [%to], {{%x, %y, %z, %w}};\nadd.u{} %to, %to, 16;\nadd.u{} %from, %from, 16;\n"
      "sub.u32 %rest, %rest, 16;\nbra L0;\nL1:\n",
      to_shared ? "global" : "shared", to_shared ? "shared" : "global", 8 * ptx::type_bytes(types[0]),
      8 * ptx::type_bytes(types[1]));
  if (!to_shared) return t;
  std::string told = memory_barrier({.op = Opcode::mbarrier_complete_tx,
                                     .type = Type::b64,
                                     .operand_count = 2,
                                     .mods = {.space = ptx::Space::shared}});
  for (const auto& [name, other] : {std::pair{"%at", "%at2"}, {"L0", "L2"}, {"L1", "L3"}})
    for (size_t at = 0; (at = told.find(name, at)) != std::string::npos; at += std::strlen(other))
      told.replace(at, std::strlen(name), other);
  return t + told;
}

// ---- fns: the manual's loop from bit %s1 on, up or down

std::string find_set_bit() {
  return declare("b32", "%at, %left, %step, %bit, %found") + declare("pred", "%p, %up") +
         "mov.b32 %at, %s1;\nabs.s32 %left, %s2;\nsetp.gt.s32 %up, %s2, 0;\n"
         "selp.b32 %step, 1, -1, %up;\nsetp.ne.s32 %p, %s2, 0;\n@%p bra L0;\nmov.b32 %step, 64;\nmov.b32 %left, 1;\n"
         "L0:\nsetp.gt.u32 %p, %at, 31;\n@%p bra L1;\nshr.u32 %bit, %s0, %at;\nand.b32 %bit, %bit, 1;\n"
         "sub.u32 %left, %left, %bit;\nmov.b32 %found, %at;\nsetp.eq.u32 %p, %left, 0;\n@%p bra L2;\n"
         "add.u32 %at, %at, %step;\nbra L0;\nL1:\nmov.b32 %found, -1;\nL2:\nmov.b32 %d0, %found;\n";
}

// ---- comparisons of pairs; logic with a predicate

// set to halves, or of them with another predicate: a mask or 1.0 for each half.
std::string set_halves(const Instruction& i) {
  const Type part = i.type2 == Type::f16x2 ? Type::f16 : i.type2 == Type::bf16x2 ? Type::bf16 : i.type2;
  const bool pair = part != i.type2, word = !pair && ptx::type_bytes(i.type) == 4;
  const int yes = is_bfloat(i.type) ? 0x3f80 : ptx::is_floating(i.type) ? 0x3c00 : -1;
  const std::string_view combined = ptx::name(i.mods.combine);
  std::string t = declare("b16", "%a, %b, %c, %d, %x, %y") + declare("pred", "%p");
  if (pair) t += "mov.b32 {%a, %b}, %s0;\nmov.b32 {%c, %d}, %s1;\n";
  const auto one = [&](std::string_view a, std::string_view b, std::string_view to) {
    t += fmt::format("setp.{}{}{}{}.{} %p, {}, {}{};\nselp.b{} {}, {}, 0, %p;\n", ptx::name(i.mods.compare),
                     combined.empty() ? "" : ".", combined, i.mods.ftz ? ".ftz" : "", ptx::type_name(part), a, b,
                     combined.empty() ? "" : ", %s2", word ? 32 : 16, to, yes);
  };
  if (!pair)
    one("%s0", "%s1", "%d0");
  else
    one("%a", "%c", "%x"), one("%b", "%d", "%y"), t += "mov.b32 %d0, {%x, %y};\n";
  return t;
}

std::string compare_pairs(const Instruction& i) {
  const bool combined = i.operand_count > i.destination_count + 2;
  std::string t =
      declare("b16", "%a, %b, %c, %d") + declare("pred", "%p, %q") + "mov.b32 {%a, %b}, %s0;\nmov.b32 {%c, %d}, %s1;\n";
  for (const char* half : {"%p, %a, %c", "%q, %b, %d"})
    t += fmt::format("setp.{}{}{}{}.{} {}{};\n", ptx::name(i.mods.compare), combined ? "." : "",
                     ptx::name(i.mods.combine), i.mods.ftz ? ".ftz" : "", i.type == Type::f16x2 ? "f16" : "bf16", half,
                     combined ? ", %s2" : "");
  return t + "mov.pred %d0, %p;\nmov.pred %d1, %q;\n";
}

std::string logic_with_predicate(const Instruction& i) {
  return declare("b32", "%x") + declare("pred", "%p") +
         fmt::format(
             "lop3.b32 %x, %s0, %s1, %s2, %constant;\nsetp.ne.{}.b32 %p, %x, 0, %s3;\nmov.b32 %d0, %x;\n"
             "mov.pred %d1, %p;\n",
             i.mods.mode == 1 ? "or" : "and");
}

// ---- minimum and maximum of absolute values, with the sign of the product; no number is canonical

std::string extreme_with_signs(const Instruction& i) {
  const bool pair = i.type == Type::f16x2 || i.type == Type::bf16x2, half = ptx::type_bytes(i.type) == 2;
  const std::string_view type = ptx::type_name(i.type), bits = half ? "b16" : "b32";
  const uint32_t sign = half ? 0x8000 : pair ? 0x80008000 : 0x80000000;
  std::string t = declare(bits, "%a, %b, %signs, %x") +
                  fmt::format("xor.{0} %signs, %s0, %s1;\nand.{0} %a, %s0, {1};\nand.{0} %b, %s1, {1};\n", bits,
                              half ? 0x7fff : ~sign);
  t += fmt::format("{}{}{}.{} %x, %a, %b;\n", ptx::opcode_name(i.op), i.mods.ftz ? ".ftz" : "",
                   i.mods.mode == 97 ? ".NaN" : "", type);
  // Canonical ones, which keep their bits, are the only results above infinity.
  const bool bfloat = is_bfloat(i.type);
  if (pair) {
    t += declare("b16", "%l, %h") + declare("pred", "%p, %q") + declare("b32", "%m") + declare("b16", "%sl, %sh") +
         "mov.b32 {%l, %h}, %x;\nand.b32 %signs, %signs, 0x80008000;\nmov.b32 {%sl, %sh}, %signs;\n" +
         fmt::format("setp.gt.u16 %p, %l, {0};\nsetp.gt.u16 %q, %h, {0};\n", bfloat ? 0x7f80 : 0x7c00) +
         "selp.b16 %sl, 0, %sl, %p;\nselp.b16 %sh, 0, %sh, %q;\nmov.b32 %m, {%sl, %sh};\nor.b32 %d0, %x, %m;\n";
    return t;
  }
  t += declare("pred", "%p") +
       fmt::format("and.{} %signs, %signs, {};\n", bits, half ? -0x8000 : static_cast<int32_t>(sign)) +
       fmt::format("setp.gt.u{} %p, %x, {};\nselp.{} %signs, 0, %signs, %p;\nor.{} %d0, %x, %signs;\n", half ? 16 : 32,
                   half ? (bfloat ? 0x7f80u : 0x7c00u) : 0x7f800000u, bits, bits);
  return t;
}

// ---- pairs of 16-bit integers, minimum and maximum with relu

std::string short_pairs(const Instruction& i) {
  if (i.mods.mode == 64)
    return declare("s32", "%x") + fmt::format("{}.s32 %x, %s0, %s1;\nmax.s32 %d0, %x, 0;\n", ptx::opcode_name(i.op));
  if (i.op == Opcode::add)  // the top bits apart, so that no carry leaves a half
    return declare("b32", "%x, %y, %z") +
           "and.b32 %x, %s0, 0x7fff7fff;\nand.b32 %y, %s1, 0x7fff7fff;\nxor.b32 %z, %s0, %s1;\n"
           "and.b32 %z, %z, 0x80008000;\nadd.u32 %x, %x, %y;\nxor.b32 %d0, %x, %z;\n";
  const std::string_view type = i.mods.mode == 32 ? "u16" : "s16";
  std::string t = declare("b16", "%a, %b, %c, %d, %x, %y, %zero") +
                  "mov.b32 {%a, %b}, %s0;\nmov.b32 {%c, %d}, %s1;\nmov.b16 %zero, 0;\n";
  t += fmt::format("{0}.{1} %x, %a, %c;\n{0}.{1} %y, %b, %d;\n", ptx::opcode_name(i.op), type);
  if (i.mods.mode == 34) t += "max.s16 %x, %x, %zero;\nmax.s16 %y, %y, %zero;\n";
  return t + "mov.b32 %d0, {%x, %y};\n";
}

// ---- video

std::string simd_video_text(const ptx::VideoSuffix& v) {
  const int bits = static_cast<int>(32 / v.parts);
  const bool add = !v.second.empty();
  std::string t =
      declare("b32", "%a, %b, %x, %y, %z") + declare("pred", "%p") + (add ? "mov.b32 %z, %s2;\n" : "mov.b32 %z, 0;\n");
  const int most = (1 << (v.is_signed ? bits - 1 : bits)) - 1, least = v.is_signed ? -most - 1 : 0;
  for (int k = 0; k < 32; k += bits) {
    t += fmt::format("bfe.{} %a, %s0, {}, {};\nbfe.{} %b, %s1, {}, {};\n", v.a_signed ? "s32" : "u32", k, bits,
                     v.b_signed ? "s32" : "u32", k, bits);
    if (v.what == "avrg")  // halves away from zero
      t += "add.s32 %x, %a, %b;\nshr.s32 %y, %x, 31;\nadd.s32 %y, %y, 1;\nadd.s32 %x, %x, %y;\nshr.s32 %x, %x, 1;\n";
    else if (v.what == "absdiff")
      t += "sub.s32 %x, %a, %b;\nabs.s32 %x, %x;\n";
    else if (v.what == "set")
      t += fmt::format("setp.{}.s32 %p, %a, %b;\nselp.b32 %x, 1, 0, %p;\n", v.compare);
    else
      t += fmt::format("{}.s32 %x, %a, %b;\n", v.what);
    if (v.sat) t += fmt::format("max.s32 %x, %x, {};\nmin.s32 %x, %x, {};\n", least, most);
    t += add ? "add.s32 %z, %z, %x;\n" : fmt::format("bfi.b32 %z, %x, %z, {}, {};\n", k, bits);
  }
  return t + "mov.b32 %d0, %z;\n";
}

// In 64 bits, by the rules at the head of ptx/video.cpp.
std::string product_text(const ptx::VideoSuffix& v) {
  std::string t = declare("b64", "%x, %c") + declare("b32", "%m, %n, %z") +
                  "mov.b32 %m, %s0;\nmov.b32 %n, %s1;\nmov.b32 %z, %s2;\nmul.wide.s32 %x, %m, %n;\ncvt.s64.s32 %c, "
                  "%z;\nadd.s64 %x, %x, %c;\n";
  if (v.plus_one) t += "add.s64 %x, %x, 1;\n";
  if (v.shift) t += fmt::format("shr.{} %x, %x, {};\n", v.is_signed ? "s64" : "u64", v.shift);
  if (v.sat)
    t += fmt::format("max.s64 %x, %x, {};\nmin.s64 %x, %x, {};\n", v.is_signed ? INT32_MIN : 0,
                     v.is_signed ? int64_t{INT32_MAX} : int64_t{UINT32_MAX});
  return t + "cvt.u32.u64 %d0, %x;\n";
}

std::string video_text(const Instruction& i) {
  const ptx::VideoSuffix v = ptx::video_suffix(i);
  if (v.parts > 1) return simd_video_text(v);
  if (v.what == "mad") return product_text(v);
  std::string t =
      declare("b64", "%a, %b, %x") + declare("b32", "%m, %n, %z") + declare("pred", "%p") +
      "mov.b32 %m, %s0;\nmov.b32 %n, %s1;\n" +
      fmt::format("cvt.s64.{} %a, %m;\ncvt.s64.{} %b, %n;\n", v.a_signed ? "s32" : "u32", v.b_signed ? "s32" : "u32");
  const bool left = v.what == "shl", shifts = left || v.what == "shr";
  if (shifts)
    t += fmt::format("{}.{} %n, %n, {};\n{}.{} %x, %a, %n;\n", v.wrap ? "and" : "min", v.wrap ? "b32" : "u32",
                     v.wrap ? 31 : 32, v.what, left ? "b64" : "s64");
  else if (v.what == "absdiff")
    t += "sub.s64 %x, %a, %b;\nabs.s64 %x, %x;\n";
  else if (v.what == "set")
    t += fmt::format("setp.{}.s64 %p, %a, %b;\nselp.b64 %x, 1, 0, %p;\n", v.compare);
  else
    t += fmt::format("{}.s64 %x, %a, %b;\n", v.what);
  if (v.sat && left) t += "shl.b64 %x, %x, 30;\nshr.s64 %x, %x, 30;\n";
  if (v.sat) t += fmt::format("max.s64 %x, %x, {};\n", v.is_signed ? INT32_MIN : 0);
  if (v.sat && (v.is_signed || left))
    t += fmt::format("min.s64 %x, %x, {};\n", v.is_signed ? int64_t{INT32_MAX} : int64_t{UINT32_MAX});
  t += "cvt.u32.u64 %z, %x;\n";
  if (v.second.empty()) return t + "mov.b32 %d0, %z;\n";
  if (v.second == "add") return t + "add.u32 %d0, %z, %s2;\n";
  if (v.what == "add" || v.what == "sub" || (v.sat && shifts)) t += "cvt.s64.s32 %x, %z;\n";
  return t + "mov.b32 %m, %s2;\n" + (v.is_signed ? "cvt.s64.s32" : "cvt.u64.u32") +
         fmt::format(" %b, %m;\n{}.{} %x, %x, %b;\ncvt.u32.u64 %d0, %x;\n", v.second, v.is_signed ? "s64" : "u64");
}

// A float's upper 19 bits. Ties away from zero: what is infinite or no number is cut off; else, or where infinities become finite, what is no number is canonical.
std::string tensor_float(const Instruction& i) {
  const bool finite = i.op == Opcode::cvt_rna_satfinite_tf32, away = i.op == Opcode::cvt_rna_tf32 || finite;
  const bool zero = i.op == Opcode::cvt_rz_tf32 || i.op == Opcode::cvt_rz_relu_tf32;
  const bool relu = i.op == Opcode::cvt_rn_relu_tf32 || i.op == Opcode::cvt_rz_relu_tf32;
  std::string t = declare("b32", "%a, %b") + declare("pred", "%p, %q") +
                  "mov.b32 %a, %s0;\nand.b32 %b, %a, 0x7fffffff;\nsetp.lt.u32 %p, %b, 0x7f800000;\n"
                  "setp.gt.u32 %q, %b, 0x7f800000;\n";
  if (away)
    t += "add.u32 %b, %a, 0x1000;\n";
  else if (!zero)  // to even
    t += "bfe.u32 %b, %a, 13, 1;\nadd.u32 %b, %b, %a;\nadd.u32 %b, %b, 0xfff;\n";
  if (!zero) t += "selp.b32 %a, %b, %a, %p;\n";
  t += "and.b32 %a, %a, 0xffffe000;\n";
  if (finite)
    t += "and.b32 %b, %a, 0x7fffffff;\nsetp.eq.u32 %p, %b, 0x7f800000;\nsub.u32 %b, %a, 0x2000;\nselp.b32 %a, %b, %a, "
         "%p;\n";
  if (relu) t += "max.s32 %a, %a, 0;\n";
  if (!away || finite) t += "selp.b32 %a, 0x7fffffff, %a, %q;\n";
  return t + "mov.b32 %d0, %a;\n";
}

// Of which types instructions of an opcode may be expanded: of nearly all there are none, and is_expanded() has no more to ask.
constexpr auto types_to_ask = [] {
  using O = Opcode;
  std::array<ptx::TypeSet, ptx::opcode_count> table{};
  const auto set = [&](std::initializer_list<Type> types, std::initializer_list<O> opcodes) {
    for (O op : opcodes)
      for (Type t : types) table[static_cast<size_t>(op)] |= ptx::type_bit(t);
  };
  set({Type::none}, {O::add});
  set({Type::f16x2, Type::bf16x2}, {O::setp});
  set({Type::bf16, Type::bf16x2}, {O::tanh, O::ex2});
  set({Type::b16, Type::u16, Type::s16, Type::f16, Type::bf16, Type::bf16x2}, {O::atom, O::red});
  for (O op : {O::createpolicy,
               O::cvt_rna_tf32,
               O::cvt_rna_satfinite_tf32,
               O::cvt_rn_tf32,
               O::cvt_rz_tf32,
               O::cvt_rn_relu_tf32,
               O::cvt_rz_relu_tf32,
               O::mbarrier_pending_count,
               O::ldmatrix,
               O::stmatrix,
               O::cp_async_bulk,
               O::elect,
               O::mad24,
               O::cvt,
               O::set,
               O::lop3,
               O::min,
               O::max,
               O::fns,
               O::mbarrier,
               O::mbarrier_try_wait,
               O::mbarrier_expect_tx,
               O::mbarrier_complete_tx,
               O::mbarrier_arrive_expect_tx,
               O::mbarrier_drop_expect_tx,
               O::cp})
    table[static_cast<size_t>(op)] = ~ptx::TypeSet{0};
  for (size_t op = 0; op < table.size(); ++op)
    if (ptx::is_video(static_cast<O>(op))) table[op] = ~ptx::TypeSet{0};
  return table;
}();
bool may_be_expanded(const Instruction& i) { return types_to_ask[static_cast<size_t>(i.op)] & ptx::type_bit(i.type); }

}  // namespace

bool has_expansions(const ptx::Function& f) {
  for (const Instruction& i : f.instructions)
    if (may_be_expanded(i) && is_expanded(i)) return true;
  return false;
}
bool is_expanded(const Instruction& i) {
  if (!may_be_expanded(i)) return false;
  switch (i.op) {
    case Opcode::createpolicy:
    case Opcode::cvt_rna_tf32:
    case Opcode::cvt_rna_satfinite_tf32:
    case Opcode::cvt_rn_tf32:
    case Opcode::cvt_rz_tf32:
    case Opcode::cvt_rn_relu_tf32:
    case Opcode::cvt_rz_relu_tf32:
    case Opcode::mbarrier_pending_count:
    case Opcode::ldmatrix:
    case Opcode::stmatrix:
    case Opcode::cp_async_bulk:
    case Opcode::elect: return true;
    case Opcode::mad24: return i.mods.sat;
    case Opcode::tanh:
    case Opcode::ex2: return is_bfloat(i.type);
    case Opcode::atom:
    case Opcode::red: return ptx::type_bytes(i.type) == 2 || is_bfloat(i.type);
    case Opcode::cvt:
      if (i.type == Type::none || i.mods.mode != 0) return true;
      if (i.type == Type::bf16)
        return i.type2 != Type::f32 || i.mods.ftz ||
               (i.mods.rounding != ptx::Rounding::rn && i.mods.rounding != ptx::Rounding::rz);
      return i.type2 == Type::bf16 && (i.type != Type::f32 || i.mods.ftz);
    case Opcode::set:
      return is_bfloat(i.type2) || is_bfloat(i.type) || i.type == Type::u16 || i.type == Type::s16 ||
             (i.type == Type::f16 && i.type2 != Type::f16) ||
             ((i.type2 == Type::f16 || i.type2 == Type::f16x2) && i.mods.combine != ptx::Combine::none);
    case Opcode::setp: return i.type == Type::f16x2 || i.type == Type::bf16x2;
    case Opcode::lop3: return i.mods.mode != 0;
    case Opcode::add: return i.type == Type::none;
    case Opcode::min:
    case Opcode::max: return i.mods.mode >= 32;
    case Opcode::fns: return true;
    default: return video(i) || ptx::is_barrier_object(i);
  }
}

std::string expansion(const Instruction& i, std::span<const Type> types) {
  const Type address = types.size() > i.destination_count ? types[i.destination_count] : Type::none;
  switch (i.op) {
    case Opcode::atom:
    case Opcode::red: return small_atomic(i, address);
    case Opcode::createpolicy: return "mov.b64 %d0, 0;\n";  // what uses it leaves it out
    case Opcode::elect: return elect_lane();
    case Opcode::ldmatrix:
    case Opcode::stmatrix: return move_matrices(i, address);
    case Opcode::cp_async_bulk: return copy_in_bulk(i, types);
    case Opcode::cvt_rna_tf32:
    case Opcode::cvt_rna_satfinite_tf32:
    case Opcode::cvt_rn_tf32:
    case Opcode::cvt_rz_tf32:
    case Opcode::cvt_rn_relu_tf32:
    case Opcode::cvt_rz_relu_tf32: return tensor_float(i);
    case Opcode::mbarrier_pending_count:  // of the token
      return declare("b32", "%low") + "cvt.u32.u64 %low, %s0;\nand.b32 %d0, %low, 0xfffff;\n";
    case Opcode::mad24: return declare("b32", "%x") + "mul24.hi.s32 %x, %s0, %s1;\nadd.sat.s32 %d0, %x, %s2;\n";
    case Opcode::tanh:
    case Opcode::ex2: return bfloat_approximation(i);
    case Opcode::cvt:
      if (i.type == Type::none) return i.mods.mode < 128 ? small_float_convert(i) : pack_saturated(i);
      return i.mods.mode ? convert_within_bounds(i) : bfloat_convert(i);
    case Opcode::set: return set_halves(i);
    case Opcode::setp: return compare_pairs(i);
    case Opcode::lop3: return logic_with_predicate(i);
    case Opcode::min:
    case Opcode::max:
      if (i.mods.mode >= 96) return extreme_with_signs(i);
      [[fallthrough]];
    case Opcode::add: return short_pairs(i);
    case Opcode::fns: return find_set_bit();
    default: return ptx::is_video(i.op) ? video_text(i) : ptx::is_barrier_object(i) ? memory_barrier(i) : std::string();
  }
}

}  // namespace rndn::ptx
