// Kernels that are run very often: a single-pass scan whose blocks wait for each other, and one with more live values than registers.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

namespace rndn::assembler::stress {

// Single-pass scan of u32: tiles of 256 by ticket, states {epoch, status, value} in words of 64 bits, so that runs need no clearing.
// Every run has its epoch (from 1). scan(in, out, states, ticket, epoch, blocks).
inline constexpr const char* scan_text = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry scan(.param .u64 in, .param .u64 out, .param .u64 states, .param .u64 ticket, .param .u64 epoch, .param .u64 blocks)
{
  .reg .pred %p<8>;
  .reg .b32 %r<40>;
  .reg .b64 %d<24>;
  .shared .align 4 .b32 tile;
  .shared .align 4 .b32 before;
  .shared .align 4 .b32 sums[8];
  ld.param.u64 %d1, [in];
  ld.param.u64 %d2, [out];
  ld.param.u64 %d3, [states];
  ld.param.u64 %d4, [ticket];
  ld.param.u32 %r1, [epoch];
  ld.param.u32 %r2, [blocks];
  mov.u32 %r3, %tid.x;
  setp.ne.u32 %p1, %r3, 0;
  @%p1 bra TAKEN;
  atom.global.add.u32 %r4, [%d4], 1;
  sub.u32 %r5, %r1, 1;
  mul.lo.u32 %r5, %r5, %r2;
  sub.u32 %r4, %r4, %r5;
  st.shared.u32 [tile], %r4;
TAKEN:
  bar.sync 0;
  ld.shared.u32 %r6, [tile];
  shl.b32 %r7, %r6, 8;
  add.u32 %r7, %r7, %r3;
  mad.wide.u32 %d5, %r7, 4, %d1;
  mad.wide.u32 %d6, %r7, 4, %d2;
  ld.global.u32 %r8, [%d5];
  and.b32 %r9, %r3, 31;
  shr.u32 %r10, %r3, 5;
  mov.u32 %r11, %r8;
  mov.u32 %r12, 1;
STEP:
  shfl.sync.up.b32 %r13, %r11, %r12, 0, 0xffffffff;
  setp.ge.u32 %p2, %r9, %r12;
  @%p2 add.u32 %r11, %r11, %r13;
  shl.b32 %r12, %r12, 1;
  setp.lt.u32 %p3, %r12, 32;
  @%p3 bra STEP;
  setp.ne.u32 %p4, %r9, 31;
  mov.u32 %r14, sums;
  mad.lo.u32 %r15, %r10, 4, %r14;
  @!%p4 st.shared.u32 [%r15], %r11;
  bar.sync 0;
  mov.u32 %r16, 0;
  mov.u32 %r17, 0;
  mov.u32 %r18, 0;
SUM:
  mad.lo.u32 %r19, %r18, 4, %r14;
  ld.shared.u32 %r20, [%r19];
  setp.lt.u32 %p5, %r18, %r10;
  @%p5 add.u32 %r16, %r16, %r20;
  add.u32 %r17, %r17, %r20;
  add.u32 %r18, %r18, 1;
  setp.lt.u32 %p5, %r18, 8;
  @%p5 bra SUM;
  add.u32 %r11, %r11, %r16;
  @%p1 bra KNOWN;
  mad.wide.u32 %d7, %r6, 8, %d3;
  shl.b32 %r21, %r1, 2;
  mov.u32 %r22, 0;
  setp.eq.u32 %p6, %r6, 0;
  @%p6 bra PREFIX;
  or.b32 %r23, %r21, 1;
  mov.b64 %d8, {%r17, %r23};
  st.release.gpu.global.u64 [%d7], %d8;
  mov.u64 %d9, %d7;
LOOK:
  sub.u64 %d9, %d9, 8;
POLL:
  ld.acquire.gpu.global.u64 %d10, [%d9];
  mov.b64 {%r24, %r25}, %d10;
  shr.u32 %r26, %r25, 2;
  setp.ne.u32 %p7, %r26, %r1;
  @%p7 bra POLL;
  add.u32 %r22, %r22, %r24;
  and.b32 %r27, %r25, 3;
  setp.eq.u32 %p7, %r27, 1;
  @%p7 bra LOOK;
PREFIX:
  or.b32 %r23, %r21, 2;
  add.u32 %r28, %r22, %r17;
  mov.b64 %d8, {%r28, %r23};
  st.release.gpu.global.u64 [%d7], %d8;
  st.shared.u32 [before], %r22;
KNOWN:
  bar.sync 0;
  ld.shared.u32 %r29, [before];
  add.u32 %r30, %r11, %r29;
  st.global.u32 [%d6], %r30;
  ret;
}
.visible .entry check(.param .u64 got, .param .u64 expected, .param .u64 wrong)
{
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  .reg .b64 %d<8>;
  ld.param.u64 %d1, [got];
  ld.param.u64 %d2, [expected];
  ld.param.u64 %d3, [wrong];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mad.lo.u32 %r3, %r2, 256, %r1;
  mad.wide.u32 %d4, %r3, 4, %d1;
  mad.wide.u32 %d5, %r3, 4, %d2;
  ld.global.u32 %r4, [%d4];
  ld.global.u32 %r5, [%d5];
  st.global.u32 [%d4], 0;
  setp.ne.u32 %p1, %r4, %r5;
  @%p1 red.global.add.u32 [%d3], 1;
  ret;
}
)";

// Many values, all alive: spill(in, out, n) with `spill_values` words of each thread, n - 1 a mask.
inline constexpr uint32_t spill_values = 56, spill_rounds = 3, spill_mask = 0xffff;
inline std::string spill_text() {
  std::string s =
      ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry spill(.param .u64 in, .param .u64 out)\n{\n.reg "
      ".b32 %r<8>;\n"
      ".reg .b32 %v<64>;\n.reg .b64 %d<8>;\nld.param.u64 %d1, [in];\nld.param.u64 %d2, [out];\nmov.u32 %r1, %tid.x;\n"
      "mov.u32 %r2, %ctaid.x;\nmad.lo.u32 %r3, %r2, 256, %r1;\nmad.wide.u32 %d3, %r3, 4, %d2;\n";
  for (uint32_t k = 0; k < spill_values; ++k)
    s += fmt::format(
        "mad.lo.u32 %r4, %r3, {}, {};\nand.b32 %r4, %r4, {};\nmad.wide.u32 %d4, %r4, 4, %d1;\nld.global.u32 %v{}, "
        "[%d4];\n",
        2 * k + 1, 977 * k, spill_mask, k);
  for (uint32_t round = 0; round < spill_rounds; ++round)
    for (uint32_t k = 0; k < spill_values; ++k)
      s += fmt::format("mad.lo.u32 %v{0}, %v{0}, 1664525, %v{1};\nxor.b32 %v{0}, %v{0}, %v{2};\n", k,
                       (k + 7) % spill_values, (k + 29) % spill_values);
  s += "mov.u32 %r5, 0;\n";
  for (uint32_t k = 0; k < spill_values; ++k) s += fmt::format("mad.lo.u32 %r5, %r5, 31, %v{};\n", k);
  return s + "st.global.u32 [%d3], %r5;\nret;\n}\n";
}
inline uint32_t spilled(const std::vector<uint32_t>& in, uint32_t thread) {
  uint32_t v[spill_values], sum = 0;
  for (uint32_t k = 0; k < spill_values; ++k) v[k] = in[(thread * (2 * k + 1) + 977 * k) & spill_mask];
  for (uint32_t round = 0; round < spill_rounds; ++round)
    for (uint32_t k = 0; k < spill_values; ++k)
      v[k] = (v[k] * 1664525 + v[(k + 7) % spill_values]) ^ v[(k + 29) % spill_values];
  for (uint32_t x : v) sum = sum * 31 + x;
  return sum;
}

}  // namespace rndn::assembler::stress
