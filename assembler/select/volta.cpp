// Instruction selection for Volta and later: the primitives of select.h as 128-bit SASS.
//
// Sources of the sequences: what ptxas 11.8 emits (docs/isa notes on lowering), with constant-bank operands on sm_90 too, which run there.
// One operand of an ALU instruction may be an immediate or a constant; which one is decided here, the rest go to registers.
#include "assembler/select/select.h"

namespace rndn::assembler {
namespace {

using ptx::Type;
// Codes of the memory order; sm_75 has its own.
struct Orders {
  uint32_t weak, constant, cta, gpu, sys;
};
constexpr Orders orders_75 = {7, 3, 8, 10, 11}, orders_from_80 = {0, 4, 5, 7, 10};

class VoltaSelector final : public Selector {
 public:
  using Selector::Selector;

 private:
  bool has(isa::Feature f) const { return t_.has(f); }
  const Orders& orders_ = t_.has(isa::Feature::orders_since_ampere) ? orders_from_80 : orders_75;

  // The carry that a sum without one names. Operands that the row would fill in itself are given where an instruction is common: that is quicker.
  const Op no_carry = predicate(isa::PT, true);

  void mov(uint32_t d, Op a) override {
    if (a.negated || a.absolute) return add(d, a, rz);
    emit(Mnemonic::MOV, {gpr(d), a});
  }
  void mov64(uint32_t d, Wide a) override {
    constexpr uint32_t wide = 5, parameter_bank = 0;
    const auto zero = [](Op o) { return is_register(o) && o.reg == isa::RZ && !o.negated; };
    const auto parameter = [](Op o) {
      return o.kind == isa::OperandKind::constant && o.bank == parameter_bank && o.reg == isa::RZ && !o.negated &&
             !o.absolute;
    };
    if (zero(a.lo) && zero(a.hi)) {
      emit(Mnemonic::CS2R, {gpr(d), special(0xff)});
    } else if (has(isa::Feature::wide_parameter_loads) && parameter(a.lo) && parameter(a.hi) && a.lo.value % 8 == 0 &&
               a.hi.value == a.lo.value + 4) {
      load_constant(d, parameter_bank, static_cast<uint32_t>(a.lo.value), rz, wide);
    } else {
      Selector::mov64(d, a);
    }
  }
  void add3(uint32_t d, Op a, Op b, Op c) { emit(Mnemonic::IADD3, {gpr(d), pt(), pt(), a, b, c, no_carry, no_carry}); }
  void add(uint32_t d, Op a, Op b) override {
    a = plain(a), b = plain(b);
    if (!is_register(a)) std::swap(a, b);
    add3(d, as_register(a), b, rz);
  }
  void add64(uint32_t d, Wide a, Wide b, bool subtract) override {
    if (subtract && is_immediate_pair(b)) b = negated_immediate(b), subtract = false;
    if (!subtract && !(is_register(a.lo) && is_register(a.hi))) std::swap(a, b);
    Op alo = a.lo, ahi = a.hi, blo = b.lo, bhi = b.hi;
    if (subtract) {
      blo = negate(blo), bhi = negate(bhi);
      if (!(is_register(alo) && is_register(ahi)) && is_register(b.lo) && is_register(b.hi))
        std::swap(alo, blo), std::swap(ahi, bhi);
    }
    alo = keep_register(alo), ahi = keep_register(ahi);
    uint32_t carry = temp_predicate();
    // d's low word may be a source's low word only, so that writing it first is harmless.
    emit(Mnemonic::IADD3, {gpr(d), predicate(carry), pt(), alo, blo, rz, no_carry, no_carry});
    emit(Mnemonic::IADD3, {gpr(d + 1), pt(), pt(), ahi, bhi, rz, predicate(carry), no_carry}).mod(ModifierKind::X, 1);
  }
  static bool is_immediate_pair(Wide w) {
    auto literal = [](Op o) { return is_immediate(o) || (is_register(o) && o.reg == isa::RZ); };
    return literal(w.lo) && literal(w.hi);
  }
  static Wide negated_immediate(Wide w) {
    auto value = [](Op o) { return is_immediate(o) ? static_cast<uint32_t>(o.value) : 0u; };
    uint64_t v = -((uint64_t{value(w.hi)} << 32) | value(w.lo));
    auto half = [](uint32_t x) { return x ? immediate(static_cast<int32_t>(x)) : gpr(isa::RZ); };
    return {half(static_cast<uint32_t>(v)), half(static_cast<uint32_t>(v >> 32))};
  }
  void mad(uint32_t d, Op a, Op b, Op c) override {
    a = plain(a), b = plain(b), c = plain(c);
    if (is_immediate(a) && is_immediate(b)) {
      int32_t v = static_cast<int32_t>(static_cast<uint32_t>(a.value) * static_cast<uint32_t>(b.value));
      return add(d, v ? immediate(v) : rz, c);
    }
    if (is_zero(a) || is_zero(b)) return mov(d, c);
    if (!is_register(a)) std::swap(a, b);
    a = as_register(a);
    if (!is_register(b) && !is_register(c)) c = as_register(c);
    emit(Mnemonic::IMAD, {gpr(d), a, b, c, no_carry});
  }
  void mad_wide(uint32_t d, Op a, Op b, Wide c, bool is_signed) override {
    a = plain(a), b = plain(b);
    if (!is_register(a)) std::swap(a, b);
    a = as_register(a);
    Op addend = rz;
    if (!(is_register(c.lo) && c.lo.reg == isa::RZ && is_register(c.hi) && c.hi.reg == isa::RZ)) {
      if (c.lo.kind == isa::OperandKind::constant && is_register(b))
        addend = c.lo;  // a 64-bit constant
      else
        addend = pair_register(c);
    }
    emit(Mnemonic::IMAD_WIDE, {gpr(d), pt(), a, b, addend, no_carry}).mod(ModifierKind::Signed, is_signed);
  }
  void multiply_words(uint32_t d, Wide a, Wide b) override {
    a.lo = as_register(a.lo);
    mad_wide(d, a.lo, b.lo, {rz, rz}, false);
    if (!is_zero(a.hi)) mad(d + 1, as_register(a.hi), b.lo, gpr(d + 1));
    if (!is_zero(b.hi)) mad(d + 1, a.lo, b.hi, gpr(d + 1));
  }
  void mul_hi(uint32_t d, Op a, Op b, bool is_signed) override {
    a = plain(a), b = plain(b);
    if (!is_register(a)) std::swap(a, b);
    emit(Mnemonic::IMAD_HI, {gpr(d), none(), as_register(a), b, rz, none()}).mod(ModifierKind::Signed, is_signed);
  }
  void logic(uint32_t d, Op a, Op b, uint8_t lut) override {
    a = plain(a), b = plain(b);
    if (!is_register(a)) std::swap(a, b);  // and, or, xor commute
    emit(Mnemonic::LOP3, {pt(), gpr(d), as_register(a), b, rz, immediate(lut), pt(true)});
  }
  void logic3(uint32_t d, Op a, Op b, Op c, uint8_t lut) override {
    a = as_register(plain(a)), c = as_register(plain(c));
    emit(Mnemonic::LOP3, {none(), gpr(d), a, plain(b), c, immediate(lut), none()});
  }
  void invert(uint32_t d, Op a) override {
    emit(Mnemonic::LOP3, {none(), gpr(d), rz, plain(a), rz, immediate(0x33), none()});
  }

  void shf(uint32_t d, Op lo, Op n, Op hi, bool right, uint32_t type, bool high, bool wrap = false) {
    lo = as_register(lo), hi = as_register(hi);
    emit(Mnemonic::SHF, {gpr(d), lo, plain(n), hi})
        .mod(ModifierKind::Right, right)
        .mod(ModifierKind::ShiftType, type)
        .mod(ModifierKind::High, high)
        .mod(ModifierKind::Wrap, wrap);
  }
  void shift_left(uint32_t d, Op a, Op n) override {
    if (literal(n) && amount(n) > 31) return mov(d, rz);
    shf(d, a, n, rz, false, 3, false);
  }
  void shift_right(uint32_t d, Op a, Op n, bool is_signed) override {
    if (literal(n) && amount(n) > 31) {
      if (!is_signed) return mov(d, rz);
      n = immediate(31);
    }
    shf(d, rz, n, a, true, is_signed ? 2 : 3, true);
  }
  void shift_left64(uint32_t d, Wide a, Op n) override {
    if (shift_left_words(d, a, n)) return;
    Op lo = as_register(a.lo);
    shf(d + 1, lo, n, a.hi, false, 1, true);
    shf(d, lo, n, rz, false, 3, false);
  }
  void shift_right64(uint32_t d, Wide a, Op n, bool is_signed) override {
    if (shift_right_words(d, a, n, is_signed)) return;
    Op hi = as_register(a.hi);
    shf(d, a.lo, n, hi, true, is_signed ? 0 : 1, false);
    shf(d + 1, rz, n, hi, true, is_signed ? 2 : 3, true);
  }
  void funnel(uint32_t d, Op lo, Op hi, Op n, bool right, bool wrap) override {
    // shf.l gives the high word of {hi, lo} << n, shf.r the low word of {hi, lo} >> n. The 32-bit forms clamp at 32.
    if (right)
      shf(d, lo, n, hi, true, 3, false, wrap);
    else
      shf(d, lo, n, hi, false, 3, true, wrap);
  }
  void setp(uint32_t p, uint32_t q, Cmp c, Op a, Op b, bool is_signed, uint32_t combine, Op with) override {
    a = plain(a), b = plain(b);
    if (!is_register(a) && is_register(b)) std::swap(a, b), c = mirrored(c);
    emit(Mnemonic::ISETP, {predicate(p), predicate(q), as_register(a), b, with, pt()})
        .mod(ModifierKind::Compare, static_cast<uint32_t>(c))
        .mod(ModifierKind::Signed, is_signed)
        .mod(ModifierKind::Bool, combine);
  }
  void setp64(uint32_t p, uint32_t q, Cmp c, Wide a, Wide b, bool is_signed, uint32_t combine, Op with) override {
    if ((!is_register(a.lo) || !is_register(a.hi)) && is_register(b.lo) && is_register(b.hi))
      std::swap(a, b), c = mirrored(c);
    if (is_sign(c, b, is_signed)) return setp(p, q, c, a.hi, rz, true, combine, with);
    uint32_t low = temp_predicate();
    setp(low, isa::PT, c, as_register(a.lo), b.lo, false, 0, pt());
    emit(Mnemonic::ISETP, {predicate(p), predicate(q), as_register(a.hi), plain(b.hi), with, predicate(low)})
        .mod(ModifierKind::Compare, static_cast<uint32_t>(c))
        .mod(ModifierKind::Signed, is_signed)
        .mod(ModifierKind::Bool, combine)
        .mod(ModifierKind::EX, 1);
  }
  void select(uint32_t d, Op a, Op b, Op p) override {
    a = plain(a), b = plain(b);
    if (a == b) return mov(d, a);
    if (!is_register(a)) std::swap(a, b), p = negate(p);
    emit(Mnemonic::SEL, {gpr(d), as_register(a), b, p});
  }
  void min_max(uint32_t d, Op a, Op b, bool max, bool is_signed) override {
    a = plain(a), b = plain(b);
    if (!is_register(a)) std::swap(a, b);
    a = as_register(a);
    const bool vector = has(isa::Feature::vector_extremes);
    if (vector && b.kind == isa::OperandKind::constant) b = as_register(b);
    emit(vector ? Mnemonic::VIMNMX : Mnemonic::IMNMX, {gpr(d), a, b, pt(max)}).mod(ModifierKind::Signed, is_signed);
  }
  void abs32(uint32_t d, Op a) override { emit(Mnemonic::IABS, {gpr(d), as_register(a)}); }
  void predicate_logic(uint32_t p, Op a, Op b, char op) override {
    const uint32_t lut = op == '&' ? 0xc0 : op == '|' ? 0xfc : 0x3c;
    emit(Mnemonic::PLOP3, {predicate(p), predicate(isa::PT), a, b, pt(), immediate(lut), immediate(0)});
  }
  void popc(uint32_t d, Op a) override { emit(Mnemonic::POPC, {gpr(d), as_register(a)}); }
  void find_leading(uint32_t d, Op a, bool is_signed, bool shift_amount) override {
    emit(Mnemonic::FLO, {gpr(d), none(), as_register(a)})
        .mod(ModifierKind::Signed, is_signed)
        .mod(ModifierKind::ShiftAmount, shift_amount);
  }
  void reverse(uint32_t d, Op a) override { emit(Mnemonic::BREV, {gpr(d), as_register(a)}); }
  void permute(uint32_t d, Op a, Op b, Op selector, uint32_t mode) override {
    a = as_register(plain(a));
    if (!is_register(selector) && !is_register(b)) b = as_register(plain(b));
    emit(Mnemonic::PRMT, {gpr(d), a, plain(selector), plain(b)}).mod(ModifierKind::PermuteMode, mode);
  }
  void bit_extract(uint32_t d, Op a, Op position, Op length, bool is_signed) override {
    Op s = temp();
    if (literal(position) && literal(length)) {
      uint32_t from = amount(position) & 0xff, n = amount(length) & 0xff;
      if (n == 0) return mov(d, rz);
      if (from > 31 && !is_signed) return mov(d, rz);
      shift_right(s.reg, as_register(a), immediate(from), is_signed);
      if (n > 31) return mov(d, s);
      emit(Mnemonic::SGXT, {gpr(d), s, immediate(n)}).mod(ModifierKind::Signed, is_signed);
      return;
    }
    Op from = temp(), n = temp();
    logic(from.reg, position, immediate(0xff), 0xc0);
    logic(n.reg, length, immediate(0xff), 0xc0);
    shift_right(s.reg, as_register(a), from, is_signed);
    emit(Mnemonic::SGXT, {gpr(d), s, n}).mod(ModifierKind::Signed, is_signed);
  }
  void bit_insert(uint32_t d, Op value, Op base, Op position, Op length) override {
    Op from = temp(), n = temp(), mask = temp(), v = temp();
    if (literal(position))
      from = literal(position) && amount(position) == 0 ? rz : as_register(immediate(amount(position) & 0xff));
    else
      logic(from.reg, position, immediate(0xff), 0xc0);
    if (literal(length))
      n = as_register(amount(length) & 0xff ? immediate(amount(length) & 0xff) : rz);
    else
      logic(n.reg, length, immediate(0xff), 0xc0);
    emit(Mnemonic::BMSK, {mask, from, n});
    shift_left(v.reg, as_register(value), from);
    emit(Mnemonic::LOP3, {none(), gpr(d), v, mask, as_register(base), immediate(0xe2), none()});
  }
  void extend(uint32_t d, Op a, uint32_t bits, bool is_signed) override {
    if (!is_signed) return logic(d, a, immediate(bits == 8 ? 0xff : 0xffff), 0xc0);
    emit(Mnemonic::PRMT, {gpr(d), as_register(a), immediate(bits == 8 ? 0x8880 : 0x9910), rz});
  }

  // --- conversions -----------------------------------------------------------------------------------------------------------
  static uint32_t format(uint32_t bits) { return bits == 16 ? 1 : bits == 32 ? 2 : 3; }
  static uint32_t integer_size(uint32_t bits) { return bits == 8 ? 0 : format(bits); }
  void int_to_float(uint32_t d, uint32_t float_bits, Op a, uint32_t int_bits, bool is_signed,
                    uint32_t rounding) override {
    // From sm_86 on the ALU has this one, of nearest and towards zero; the others are the function unit's.
    if (has(isa::Feature::float_of_int_by_alu) && float_bits == 32 && int_bits != 64 && (rounding == 0 || rounding == 3)) {
      emit(Mnemonic::I2FP, {gpr(d), a}).mod(ModifierKind::Signed, is_signed).mod(ModifierKind::Rounding, rounding);
      return;
    }
    Emitted e = emit(Mnemonic::I2F, {gpr(d), a});
    e.mod(ModifierKind::DestFormat, format(float_bits))
        .mod(ModifierKind::SourceSize, int_bits == 64 ? 3 : 2)
        .mod(ModifierKind::Signed, is_signed)
        .mod(ModifierKind::Rounding, rounding);
  }
  bool converts_to_narrow(uint32_t, uint32_t) const override { return true; }
  void float_to_int(uint32_t d, uint32_t int_bits, bool is_signed, Op a, uint32_t float_bits, uint32_t rounding,
                    bool ftz) override {
    const bool wide = float_bits == 64 || int_bits == 64;
    Emitted e = emit(Mnemonic::F2I, {gpr(d), a});
    e.mod(ModifierKind::DestSize, integer_size(int_bits))
        .mod(ModifierKind::SourceFormat, format(float_bits))
        .mod(ModifierKind::Signed, is_signed)
        .mod(ModifierKind::Rounding, rounding)
        .mod(ModifierKind::NTZ, !wide)
        .mod(ModifierKind::FTZ, ftz);
  }
  void float_to_float(uint32_t d, uint32_t to_bits, Op a, uint32_t from_bits, uint32_t rounding, bool ftz) override {
    if (from_bits == 16 && to_bits == 32) {
      Op zero = negate(rz), half = a;
      half.part = 2;
      emit(Mnemonic::HADD2, {gpr(d), zero, half}).mod(ModifierKind::HalfFormat, 1);
      return;
    }
    if (to_bits == 16 && from_bits == 32 && rounding == 0 && !ftz && has(isa::Feature::half_of_float)) {
      emit(Mnemonic::F2FP, {gpr(d), rz, a});
      return;
    }
    Emitted e = emit(Mnemonic::F2F, {gpr(d), a});
    e.mod(ModifierKind::DestFormat, format(to_bits))
        .mod(ModifierKind::SourceFormat, format(from_bits))
        .mod(ModifierKind::Rounding, rounding)
        .mod(ModifierKind::FTZ, ftz);
  }
  void round_to_integral(uint32_t d, Op a, uint32_t bits, uint32_t rounding, bool ftz) override {
    Emitted e = emit(Mnemonic::FRND, {gpr(d), a});
    e.mod(ModifierKind::DestFormat, format(bits))
        .mod(ModifierKind::SourceFormat, format(bits))
        .mod(ModifierKind::Rounding, rounding)
        .mod(ModifierKind::FTZ, ftz);
  }
  void min_max_f64(uint32_t d, Op a, Op b, bool max) override {
    // The first predicate chooses a; the second says that the result is b's NaN, which is made quiet.
    uint32_t choose = temp_predicate(), quiet = temp_predicate();
    Op h = temp(), n = temp();
    const auto high = [](const Op& o) { return gpr(o.reg == isa::RZ ? isa::RZ : o.reg + 1); };
    emit(Mnemonic::DSETP, {predicate(choose), predicate(quiet), a, b, pt()})
        .mod(ModifierKind::FloatCompare, max ? 15 : 0);
    select(d, gpr(a.reg), gpr(b.reg), predicate(choose));
    select(h.reg, high(a), high(b), predicate(choose));
    logic(n.reg, high(b), immediate(0x80000), 0xfc);
    select(d + 1, n, h, predicate(quiet));
  }
  Op mufu_argument(Op a, uint32_t function) override {
    if (function > 1) return a;
    Op t = temp();  // SIN and COS take turns
    emit(Mnemonic::FMUL, {t, a, immediate(0x3e22f983)}).mod(ModifierKind::Rounding, 3);
    return t;
  }

  // --- special registers -------------------------------------------------------------------------------------------------------
  void family_register(uint32_t d, ptx::SpecialRegister r) override {
    using S = ptx::SpecialRegister;
    auto s2r = [&](uint32_t number) { emit(Mnemonic::S2R, {gpr(d), special(number)}); };
    auto bank = [&](uint32_t offset) { mov(d, constant(0, offset)); };
    switch (r) {
      case S::smid: return s2r(0x43);
      case S::nsmid: return bank(0x10c);
      case S::dynamic_smem_size: return bank(0x2c);
      case S::reserved_smem_offset_1: return bank(t_.reserved_shared_offset);
      case S::warpid: {
        Op t = temp();
        emit(Mnemonic::S2R, {t, special(0x03)});
        return bit_extract(d, t, immediate(8), immediate(7), false);
      }
      case S::clock:
        emit(Mnemonic::CS2R, {gpr(d), special(0x50)}).mod(ModifierKind::Wide, 0);
        f_.insts.back().pinned = true;
        return;
      case S::clock64:
        emit(Mnemonic::CS2R, {gpr(d), special(0x50)});
        f_.insts.back().pinned = true;
        return;
      case S::globaltimer:
        emit(Mnemonic::CS2R, {gpr(d), special(0x52)});
        f_.insts.back().pinned = true;
        return;
      case S::nwarpid: return mov(d, immediate(t_.warps_per_sm));
      case S::gridid:
        mov(d, constant(0, 0x30));
        if (ptx::type_bytes(current_->type) == 8) mov(d + 1, constant(0, 0x34));
        return;
      case S::clock_hi:
      case S::globaltimer_hi:
        emit(Mnemonic::CS2R, {gpr(d), special(r == S::clock_hi ? 0x51 : 0x53)}).mod(ModifierKind::Wide, 0);
        f_.insts.back().pinned = true;
        return;
      case S::globaltimer_lo: {
        Op t = temp(2);
        emit(Mnemonic::CS2R, {t, special(0x52)});
        f_.insts.back().pinned = true;
        return mov(d, t);
      }
      case S::total_smem_size: {
        Op t = temp();
        emit(Mnemonic::S2R, {t, special(0x32)});
        if (!has(isa::Feature::reserves_shared)) return mov(d, t);  // nothing is reserved
        Op reserved = as_register(constant(0, 0x114));
        return add(d, t, negate(reserved));
      }
      default:
        if (r >= S::envreg0 && r <= S::envreg31)
          return bank(t_.environment_offset + 4 * (static_cast<uint32_t>(r) - static_cast<uint32_t>(S::envreg0)));
        return unsupported_here("special register");
    }
  }

  // --- memory --------------------------------------------------------------------------------------------------------------------
  uint32_t scope_order(ptx::Scope s) const {
    return s == ptx::Scope::cta ? orders_.cta : s == ptx::Scope::sys ? orders_.sys : orders_.gpu;
  }
  void load(const ptx::Instruction& i, uint32_t d, uint32_t size, Op at) override {
    using ptx::Cache;
    using ptx::Semantics;
    switch (i.mods.space) {
      case ptx::Space::shared: emit(Mnemonic::LDS, {gpr(d), at}).mod(ModifierKind::Size, size); break;
      case ptx::Space::local: emit(Mnemonic::LDL, {gpr(d), at}).mod(ModifierKind::Size, size); return;
      case ptx::Space::global:
      case ptx::Space::generic: {
        uint32_t order = orders_.weak, evict = 1;
        if (i.mods.cache == Cache::nc) order = orders_.constant;
        if (i.mods.cache == Cache::cg) order = orders_.gpu;
        if (i.mods.cache == Cache::cv || i.mods.semantics == Semantics::volatile_) order = orders_.sys;
        if (i.mods.cache == Cache::cs) evict = 0;
        if (i.mods.cache == Cache::lu) evict = 3;
        if (i.mods.semantics == Semantics::relaxed || i.mods.semantics == Semantics::acquire)
          order = scope_order(i.mods.scope);
        emit(i.mods.space == ptx::Space::global ? Mnemonic::LDG : Mnemonic::LD, {gpr(d), at})
            .mod(ModifierKind::Size, size)
            .mod(ModifierKind::Order, order)
            .mod(ModifierKind::Evict, evict);
        break;
      }
      default: return unsupported(i);
    }
    if (error_.empty()) {
      Inst& load = f_.insts.back();
      load.pinned = i.mods.semantics == Semantics::volatile_ || i.mods.semantics == Semantics::acquire ||
                    i.mods.semantics == Semantics::relaxed;
      load.read_only = i.mods.cache == Cache::nc;
    }
    if (i.mods.semantics == Semantics::acquire) {
      if (i.mods.space != ptx::Space::shared && i.mods.scope != ptx::Scope::cta)
        emit(Mnemonic::CCTL).mod(ModifierKind::E, 0).mod(ModifierKind::CacheOp, 4);
    }
  }
  void store(const ptx::Instruction& i, Op at, Op data, uint32_t size) override {
    using ptx::Cache;
    using ptx::Semantics;
    if (i.mods.semantics == Semantics::release) fence(i.mods.scope, false, false);
    switch (i.mods.space) {
      case ptx::Space::shared: emit(Mnemonic::STS, {at, data}).mod(ModifierKind::Size, size); return;
      case ptx::Space::local: emit(Mnemonic::STL, {at, data}).mod(ModifierKind::Size, size); return;
      case ptx::Space::global:
      case ptx::Space::generic: {
        uint32_t order = orders_.weak, evict = 1;
        if (i.mods.cache == Cache::cg) order = orders_.gpu;
        if (i.mods.cache == Cache::cs) evict = 0;
        if (i.mods.cache == Cache::wt || i.mods.semantics == Semantics::volatile_) order = orders_.sys;
        if (i.mods.semantics == Semantics::relaxed || i.mods.semantics == Semantics::release)
          order = scope_order(i.mods.scope);
        emit(i.mods.space == ptx::Space::global ? Mnemonic::STG : Mnemonic::ST, {at, data})
            .mod(ModifierKind::Size, size)
            .mod(ModifierKind::Order, order)
            .mod(ModifierKind::Evict, evict);
        return;
      }
      default: return unsupported(i);
    }
  }
  void atomic(const ptx::Instruction& i, uint32_t d, Op at, Op data, Op swap) override {
    const bool wide = ptx::type_bytes(i.type) == 8, is_float = ptx::is_floating(i.type);
    using A = ptx::AtomicOp;
    if (i.mods.semantics == ptx::Semantics::acq_rel || i.mods.semantics == ptx::Semantics::release)
      fence(i.mods.scope, false, false);
    if (i.mods.space == ptx::Space::shared) return shared_atomic(i, d, at, data, swap);
    if (i.mods.space != ptx::Space::global) return unsupported(i);
    const uint32_t order = scope_order(i.mods.scope);
    if (i.mods.atomic == A::cas) {
      at.descriptor = false, at.uniform = isa::URZ;
      if (!has(isa::Feature::exchange_from_zero) && data.reg == isa::RZ) {  // the row takes no RZ there
        data = temp(wide ? 2 : 1);
        for (uint32_t w = 0; w < (wide ? 2u : 1u); ++w) mov(data.reg + w, gpr(isa::RZ));
      }
      Emitted cas = emit(Mnemonic::ATOMG_CAS, {predicate(isa::PT), gpr(d), at, data, swap});
      cas.mod(ModifierKind::AtomType, wide ? 2 : 0).mod(ModifierKind::Order, order);
    } else {
      const bool own_rows = has(isa::Feature::float_atomics);
      uint32_t type = wide ? 2 : 0;
      if (ptx::is_signed(i.type)) type = wide ? (own_rows ? 3 : 5) : 1;
      if (i.type == Type::f32) type = own_rows ? 12 : 3;
      if (i.type == Type::f64) type = own_rows ? 15 : 6;
      // f32 atomics flush subnormals in global memory.
      if (i.type == Type::f32 && own_rows) type = 9;
      if (i.type == Type::f16x2) type = own_rows ? 0 : 4;
      if (is_float && !(i.type == Type::f32 || i.type == Type::f64 || i.type == Type::f16x2)) return unsupported(i);
      const bool float_form = is_float && own_rows;
      const bool reduce = d == isa::RZ && i.mods.atomic != A::exch && !(wide && !is_float && i.mods.atomic != A::add);
      if (reduce)
        emit(float_form ? Mnemonic::RED_FLOAT : Mnemonic::RED, {at, data})
            .mod(ModifierKind::AtomOp, atom_op(i.mods.atomic))
            .mod(ModifierKind::AtomType, type)
            .mod(ModifierKind::Order, order);
      else
        emit(float_form ? Mnemonic::ATOMG_FLOAT : Mnemonic::ATOMG, {predicate(isa::PT), gpr(d), at, data})
            .mod(ModifierKind::AtomOp, atom_op(i.mods.atomic))
            .mod(ModifierKind::AtomType, type)
            .mod(ModifierKind::Order, order);
    }
    if (i.mods.semantics == ptx::Semantics::acq_rel || i.mods.semantics == ptx::Semantics::acquire)
      emit(Mnemonic::CCTL).mod(ModifierKind::E, 0).mod(ModifierKind::CacheOp, 4);
  }
  void shared_atomic(const ptx::Instruction& i, uint32_t d, Op at, Op data, Op swap) {
    const bool wide = ptx::type_bytes(i.type) == 8;
    using A = ptx::AtomicOp;
    if (i.mods.atomic == A::cas) {
      emit(Mnemonic::ATOMS_CAS, {gpr(d), at, data, swap}).mod(ModifierKind::AtomType, wide ? 2 : 0);
      return;
    }
    if (i.mods.atomic == A::exch || !(wide || ptx::is_floating(i.type))) {
      emit(Mnemonic::ATOMS, {gpr(d), at, data})
          .mod(ModifierKind::AtomOp, atom_op(i.mods.atomic))
          .mod(ModifierKind::AtomType, wide                     ? 2
                                       : ptx::is_signed(i.type) ? 1
                                                                : 0);
      return;
    }
    compare_and_swap_loop(i, d, at, data);
  }
  void shared_compare_and_swap(uint32_t d, Op at, Op compare, Op swap, bool wide) override {
    emit(Mnemonic::ATOMS_CAS, {gpr(d), at, compare, swap})
        .mod(ModifierKind::AtomType, wide ? 2 : 0)
        .mod(ModifierKind::CasMode, 3);
  }
  void fence(ptx::Scope scope, bool sequential) override { fence(scope, sequential, true); }
  void fence(ptx::Scope scope, bool sequential, bool invalidate) {
    const uint32_t kind = sequential ? 0 : 1;
    if (scope == ptx::Scope::cta) {
      emit(Mnemonic::MEMBAR).mod(ModifierKind::Fence, kind).mod(ModifierKind::Scope, 0);
      return;
    }
    if (has(isa::Feature::cluster_fences)) emit(Mnemonic::MEMBAR).mod(ModifierKind::Fence, 2).mod(ModifierKind::Scope, 0);
    emit(Mnemonic::MEMBAR).mod(ModifierKind::Fence, kind).mod(ModifierKind::Scope, scope == ptx::Scope::sys ? 3 : 2);
    emit(Mnemonic::ERRBAR);
    if (has(isa::Feature::cluster_fences)) emit(Mnemonic::CGAERRBAR);
    if (invalidate) emit(Mnemonic::CCTL).mod(ModifierKind::E, 0).mod(ModifierKind::CacheOp, 4);
  }
  void barrier(Op id, Op count) override {
    if (count.kind == isa::OperandKind::none)
      emit(Mnemonic::BAR, {id});
    else
      emit(Mnemonic::BAR, {id, count});
  }
  void barrier_arrive(Op id, Op count) override { emit(Mnemonic::BAR, {id, count}).mod(ModifierKind::BarMode, 1); }
  void barrier_reduce(uint32_t d, uint32_t p, Op id, Op count, Op value, uint32_t reduction) override {
    Emitted e = count.kind == isa::OperandKind::none ? emit(Mnemonic::BAR, {id, none(), value})
                                                     : emit(Mnemonic::BAR, {id, count, value});
    e.mod(ModifierKind::BarMode, 2).mod(ModifierKind::BarReduction, reduction);
    emit(Mnemonic::B2R, {gpr(d), predicate(p)});
    if (error_.empty()) f_.insts.back().pinned = true;  // before the next barrier
  }
  void call_absolute() override { emit(Mnemonic::CALL_ABS, {none(), immediate(0)}).mod(ModifierKind::NoInc, 1); }
  void call_subroutine() override {
    emit(Mnemonic::CALL_REL, {none(), {.kind = isa::OperandKind::label}}).mod(ModifierKind::NoInc, 1);
  }
  void return_from_subroutine(Op place) override {
    emit(Mnemonic::RET_REL, {none(), place, {.kind = isa::OperandKind::label}}).mod(ModifierKind::NoInc, 1);
  }
  void mov_symbol(uint32_t d) override { emit(Mnemonic::MOV, {gpr(d), immediate(0)}); }
  void family_cvta_base(ptx::Space space, Wide& base) override {
    if (space == ptx::Space::local) {
      base = {constant(0, 0x20), constant(0, 0x24)};
    } else if (has(isa::Feature::window_by_special_register)) {
      Op low = temp(), high = temp();
      emit(Mnemonic::S2R, {low, special(0x30)});
      emit(Mnemonic::S2R, {high, special(0x2f)});
      base = {low, high};
    } else {
      base = {constant(0, 0x18), constant(0, 0x1c)};
    }
  }
  void is_space(uint32_t p, Wide a, ptx::Space space) override {
    emit(Mnemonic::QSPC, {predicate(p), rz, address(pair_register(a).reg, 0, true, false)})
        .mod(ModifierKind::AddressSpace, space == ptx::Space::global  ? 0
                                         : space == ptx::Space::local ? 1
                                                                      : 2);
  }
  void generic_atomic(const ptx::Instruction& i, uint32_t d, Op at, Op data, Op swap) override {
    const bool direct = ptx::type_bytes(i.type) == 4 && !ptx::is_floating(i.type) &&
                        i.mods.atomic != ptx::AtomicOp::cas && i.mods.atomic != ptx::AtomicOp::exch;
    if (!direct) return split_atomic(i, d, at, data, swap);
    if (i.mods.semantics == ptx::Semantics::acq_rel || i.mods.semantics == ptx::Semantics::release)
      fence(i.mods.scope, false, false);
    emit(Mnemonic::ATOM, {predicate(isa::PT), gpr(d), at, data})
        .mod(ModifierKind::AtomOp, atom_op(i.mods.atomic))
        .mod(ModifierKind::AtomType, ptx::is_signed(i.type) ? 1 : 0)
        .mod(ModifierKind::Order, scope_order(i.mods.scope));
    if (i.mods.semantics == ptx::Semantics::acq_rel || i.mods.semantics == ptx::Semantics::acquire)
      emit(Mnemonic::CCTL).mod(ModifierKind::E, 0).mod(ModifierKind::CacheOp, 4);
  }
  void converge(Op mask) override {
    mask = plain(mask);
    if (has(isa::Feature::warpsync_all) && is_immediate(mask) &&
        static_cast<uint32_t>(mask.value) == 0xffffffffu) {
      emit(Mnemonic::WARPSYNC_ALL);
      return;
    }
    const Op outer = guard_;
    if (is_immediate(mask) && static_cast<uint32_t>(mask.value) != 0xffffffffu && outer.reg == isa::PT) {
      // Nothing to wait for when all lanes of the mask are here; WARPSYNC is an illegal instruction for a lane that its mask does not name, and
      // programs run such operations with the whole warp (as ptxas, which jumps over the wait by BRA.CONV).
      const Op here = temp(), missing = temp();
      const uint32_t some = temp_predicate();
      emit(Mnemonic::VOTE, {here, pt(), pt()}).mod(ModifierKind::VoteMode, 1);
      f_.insts.back().cooperative = true;
      logic(missing.reg, here, mask, 0x0c);
      setp(some, isa::PT, Cmp::NE, missing, rz, false, 0, pt());
      guard_ = predicate(some);
    }
    if (!is_register(mask) && (has(isa::Feature::warpsync_all) || !is_immediate(mask))) mask = as_register(mask);
    emit(Mnemonic::WARPSYNC, {mask});
    guard_ = outer;
  }
};

}  // namespace

Result<Function> select_volta(const ptx::Module& m, const ptx::Function& p, const Flow& flow,
                              const ptx::SharedLayout& shared, const Options& o, isa::FormCache& forms, Arena& arena,
                              SelectionRoom& room) {
  return VoltaSelector(m, p, flow, shared, o, forms, arena).run(room);
}

}  // namespace rndn::assembler
