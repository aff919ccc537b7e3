// Slots and helpers that the rows of the 128-bit family share. Private to this folder.
#pragma once
#include "assembler/isa/form.h"

namespace rndn::isa::fields {

using enum SlotKind;
using K = ModifierKind;
using M = Mnemonic;
using L = LatencyClass;

inline constexpr const char* t_sat[] = {"", ".SAT"};
inline constexpr const char* t_clear[] =  // a bit that must be clear
    {"", nullptr};
inline constexpr const char* t_atoms_type[] = {"", ".S32", ".64", nullptr};
inline constexpr const char* t_size_async[] = {nullptr, nullptr, nullptr, nullptr, "", ".64", ".128", nullptr};
inline constexpr const char* t_u8s8[] = {".U8", ".S8"};

constexpr Mod m(K kind, uint8_t lo, uint8_t width, const char* const* texts, uint8_t initial = 0) {
  return {kind, lo, width, initial, texts};
}

// --- Common slots ------------------------------------------------------------------------------------------------------------------
inline constexpr Access W = Access::write, R = Access::read;
inline constexpr Slot Rd = make_slot(gpr, 16, W);
inline constexpr Slot A = make_slot(gpr, 24, R);
inline constexpr Slot B = make_slot(gpr, 32, R);
inline constexpr Slot C = make_slot(gpr, 64, R);
constexpr Slot pred(uint8_t lo, uint8_t neg) { return make_slot(predicate, lo, R).n(neg).def(PT); }
constexpr Slot pred_out(uint8_t lo) { return make_slot(predicate, lo, W).def(PT); }
inline constexpr Slot Pu = pred_out(81).opt(PT), Pv = pred_out(84).opt(PT);  // optional results, such as carries out
inline constexpr Slot Pd = pred_out(81), Pq = pred_out(84);
inline constexpr Slot Ps = pred(87, 90);
inline constexpr Slot Px = pred(87, 90).opt(PT);
inline constexpr Slot carry1 = pred(87, 90).def(PT, true).when(Show::with_x),
                      carry2 = pred(77, 80).def(PT, true).when(Show::with_x);
inline constexpr Slot URd = make_slot(uniform, 16, W), UA = make_slot(uniform, 24, R), UB = make_slot(uniform, 32, R),
                      UC = make_slot(uniform, 64, R);
constexpr Slot upred(uint8_t lo, uint8_t neg) { return make_slot(uniform_predicate, lo, R).n(neg).def(PT); }
constexpr Slot upred_out(uint8_t lo) { return make_slot(uniform_predicate, lo, W).def(PT); }
constexpr Slot imm(uint8_t lo, uint8_t width, SlotKind kind = immediate) {
  Slot s = make_slot(kind, lo, R);
  s.width = width;
  return s;
}
inline constexpr Slot I32 = imm(32, 32), S32 = imm(32, 32, immediate_signed);
inline constexpr Slot F32 = I32.as(Style::f32), F64 = I32.as(Style::f64);
inline constexpr Slot Cb = make_slot(constant, 40, R);
inline constexpr Slot special_register = make_slot(special, 72, R);
// [register + UR + offset]; flag: descriptor bit
constexpr Slot memory(uint8_t offset, uint8_t width, uint8_t ur = no_bit, uint8_t flag = no_bit) {
  Slot s = make_slot(address, 24, R);
  s.second = offset;
  s.width = width;
  s.uniform = ur;
  s.flag = flag;
  return s;
}

constexpr Builder op(M mnemonic, const char* name, unsigned opcode, L latency, uint32_t targets = volta) {
  Builder b;
  b.f.mnemonic = mnemonic;
  b.f.name = name;
  b.f.latency = latency;
  b.f.targets = targets;
  return b.fix(0, 12, opcode);
}

}  // namespace rndn::isa::fields
