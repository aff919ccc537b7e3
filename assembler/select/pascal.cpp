// Instruction selection for Pascal: the primitives of select.h as 64-bit SASS.
//
// Sources of the sequences: what ptxas 11.8 emits for sm_61 (docs/isa notes, section 3). 32-bit products are made of 16-bit ones (XMAD), 64-bit
// arithmetic goes through the condition code (.CC, .X), which scheduling keeps in order. Immediates have 20 bits, or 32 in the 32I forms.
#include <bit>

#include "assembler/select/select.h"

namespace rndn::assembler {
namespace {

using ptx::Type;

class PascalSelector final : public Selector {
 public:
  using Selector::Selector;

 private:
  static bool small(const Op& o) { return is_immediate(o) && o.value >= -0x80000 && o.value < 0x80000; }
  static Op half(Op o) {
    o.part = 1;
    return o;
  }
  // A source in B's place: registers, constants, 20-bit immediates.
  Op source_b(Op o) {
    o = plain(o);
    return is_immediate(o) && !small(o) ? as_register(o) : o;
  }

  void mov(uint32_t d, Op a) override {
    if (a.negated || a.absolute) return add(d, rz, a);
    if (is_immediate(a) && !small(a))
      emit(Mnemonic::MOV32I, {gpr(d), immediate(static_cast<uint32_t>(a.value))});
    else
      emit(Mnemonic::MOV, {gpr(d), a});
  }
  Emitted iadd(Op d, Op a, Op b) {
    b = plain(b);
    if (is_immediate(b) && !small(b)) return emit(Mnemonic::IADD32I, {d, a, immediate(static_cast<int32_t>(b.value))});
    return emit(Mnemonic::IADD, {d, a, b});
  }
  void add(uint32_t d, Op a, Op b) override {
    a = plain(a), b = plain(b);
    if (!is_register(a)) std::swap(a, b);
    if (a.negated && b.negated) {
      Op t = temp();
      iadd(t, rz, a);
      a = t;
    }
    iadd(gpr(d), keep_register(a), b);
  }
  static uint64_t value64(Wide w) {
    auto value = [](Op o) { return is_immediate(o) ? static_cast<uint32_t>(o.value) : 0u; };
    return (uint64_t{value(w.hi)} << 32) | value(w.lo);
  }
  void add64(uint32_t d, Wide a, Wide b, bool subtract) override {
    if (literal(a.lo) && literal(a.hi) && !subtract) std::swap(a, b);
    if (literal(b.lo) && literal(b.hi) && !(is_register(b.lo) && is_register(b.hi))) {
      uint64_t v = subtract ? -value64(b) : value64(b);
      b = {immediate(static_cast<int32_t>(v)), immediate(static_cast<int32_t>(v >> 32))};
      subtract = false;
    }
    if (subtract) b = {negate(b.lo), negate(b.hi)};
    if (!(is_register(a.lo) && is_register(a.hi)) && is_register(b.lo) && is_register(b.hi)) std::swap(a, b);
    Op alo = keep_register(a.lo), ahi = keep_register(a.hi);
    iadd(gpr(d), alo, b.lo).mod(ModifierKind::CC, 1);
    iadd(gpr(d + 1), ahi, b.hi).mod(ModifierKind::X, 1);
  }
  void mad(uint32_t d, Op a, Op b, Op c) override {
    a = plain(a), b = plain(b);
    if (is_zero(a) || is_zero(b)) return mov(d, c);
    if (!is_register(a)) std::swap(a, b);
    a = as_register(a);
    if (is_power_of_two(b)) {
      Op t = is_zero(c) ? gpr(d) : temp();
      shift_left(t.reg, a, immediate(std::countr_zero(amount(b))));
      return is_zero(c) ? void() : add(d, t, c);
    }
    c = as_register(c);
    if (is_short(b)) {
      Op t = temp();
      emit(Mnemonic::XMAD, {t, a, b, c});
      emit(Mnemonic::XMAD, {gpr(d), half(a), b, t}).mod(ModifierKind::PSL, 1);
      return;
    }
    b = as_register(b);
    Op low = temp();
    emit(Mnemonic::XMAD, {low, a, b, c});
    low_product(d, a, b, low);
  }
  void mul_hi(uint32_t d, Op a, Op b, bool is_signed) override {
    a = plain(a), b = plain(b);
    if (!is_register(a)) std::swap(a, b);
    a = as_register(a);
    Op low = temp();
    if (is_short(b)) {
      emit(Mnemonic::XMAD, {low, a, b, rz});
      shift_right(d, upper_product(a, b, low, is_signed), immediate(16), is_signed);
      return;
    }
    b = as_register(b);
    emit(Mnemonic::XMAD, {low, a, b, rz});
    high_product(d, a, b, low, is_signed);
  }
  static bool is_power_of_two(Op b) { return is_immediate(b) && std::has_single_bit(amount(b)); }
  // In B's place of an XMAD.
  static bool is_short(Op b) { return is_immediate(b) && b.value >= 0 && b.value < 0x10000; }
  // Of the 48 bits of a * b, b short, the upper 32. low: the product of the low halves.
  Op upper_product(Op a, Op b, Op low, bool is_signed) {
    Op upper = temp();
    emit(Mnemonic::XMAD, {upper, half(a), b, low}).mod(ModifierKind::SignedA, is_signed).mod(ModifierKind::XmadC, 2);
    return upper;
  }
  // The low word of a * b.
  void low_product(uint32_t d, Op a, Op b, Op low) {
    Op cross = temp();
    emit(Mnemonic::XMAD, {cross, a, half(b), rz}).mod(ModifierKind::MRG, 1);
    emit(Mnemonic::XMAD, {gpr(d), half(a), half(cross), low}).mod(ModifierKind::PSL, 1).mod(ModifierKind::XmadC, 4);
  }
  // The high word of a * b.
  void high_product(uint32_t d, Op a, Op b, Op low, bool is_signed) {
    Op t1 = temp(), t2 = temp(), t3 = temp();
    emit(Mnemonic::XMAD, {t1, a, half(b), rz}).mod(ModifierKind::SignedB, is_signed);
    emit(Mnemonic::XMAD, {t2, half(a), half(b), rz})
        .mod(ModifierKind::SignedA, is_signed)
        .mod(ModifierKind::SignedB, is_signed)
        .mod(ModifierKind::XmadC, is_signed ? 3 : 0);
    emit(Mnemonic::XMAD, {t3, half(a), b, low}).mod(ModifierKind::SignedA, is_signed).mod(ModifierKind::XmadC, 2);
    emit(Mnemonic::IADD3, {gpr(d), t3, t1, t2}).mod(ModifierKind::Add3Shift, 1);
  }
  // Both words of a * b, into registers that neither is.
  void product_words(uint32_t d, uint32_t high, Op a, Op b, bool is_signed) {
    if (is_power_of_two(b) && amount(b) < 0x80000000u) {  // as in addresses
      const int shift = std::countr_zero(amount(b));
      if (shift == 0) {
        mov(d, a);
        is_signed ? shift_right(high, a, immediate(31), true) : mov(high, rz);
      } else {
        shift_right(high, a, immediate(32 - shift), is_signed);
        shift_left(d, a, immediate(shift));
      }
    } else if (is_short(b)) {
      Op low = temp();
      emit(Mnemonic::XMAD, {low, a, b, rz});
      Op upper = upper_product(a, b, low, is_signed);
      emit(Mnemonic::XMAD, {gpr(d), half(a), b, low}).mod(ModifierKind::PSL, 1);
      shift_right(high, upper, immediate(16), is_signed);
    } else {
      b = as_register(b);
      Op low = temp();
      emit(Mnemonic::XMAD, {low, a, b, rz});
      low_product(d, a, b, low);
      high_product(high, a, b, low, is_signed);
    }
  }
  void multiply_words(uint32_t d, Wide a, Wide b) override {
    a.lo = as_register(a.lo);
    if (!is_short(b.lo)) b.lo = as_register(b.lo);
    const bool by_a = !is_zero(a.hi), by_b = !is_zero(b.hi);
    Op high = by_a || by_b ? temp() : gpr(d + 1);
    product_words(d, high.reg, a.lo, b.lo, false);
    if (by_a) {
      const Op sum = by_b ? temp() : gpr(d + 1);
      mad(sum.reg, a.hi, b.lo, high);
      high = sum;
    }
    if (!by_b) return;
    if (is_immediate(b.hi) && amount(b.hi) == UINT32_MAX)
      add(d + 1, high, negate(a.lo));
    else
      mad(d + 1, a.lo, b.hi, high);
  }
  void mad_wide(uint32_t d, Op a, Op b, Wide c, bool is_signed) override {
    a = plain(a), b = plain(b);
    if (!is_register(a)) std::swap(a, b);
    a = as_register(a);
    const bool addend = !(is_register(c.lo) && c.lo.reg == isa::RZ && is_register(c.hi) && c.hi.reg == isa::RZ);
    const auto of_d = [&](Op o) { return is_register(o) && (o.reg == d || o.reg == d + 1); };
    Op product = addend || of_d(a) || of_d(b) ? temp(2) : gpr(d);
    product_words(product.reg, product.reg + 1, a, b, is_signed);
    const Wide made{product, gpr(product.reg + 1)};
    if (addend) return add64(d, made, c, false);
    if (product.reg == d) return;
    mov(d, made.lo);
    mov(d + 1, made.hi);
  }
  void logic(uint32_t d, Op a, Op b, uint8_t lut) override {
    a = plain(a), b = plain(b);
    if (!is_register(a)) std::swap(a, b);
    a = as_register(a);
    const uint32_t op = lut == 0xc0 ? 0 : lut == 0xfc ? 1 : 2;
    if (is_immediate(b) && !small(b))
      emit(Mnemonic::LOP32I, {gpr(d), a, immediate(static_cast<uint32_t>(b.value))}).mod(ModifierKind::LogicOp, op);
    else
      emit(Mnemonic::LOP, {none(), gpr(d), a, b}).mod(ModifierKind::LogicOp, op);
  }
  void logic3(uint32_t d, Op a, Op b, Op c, uint8_t lut) override {
    emit(Mnemonic::LOP3,
         {none(), gpr(d), as_register(plain(a)), as_register(plain(b)), as_register(plain(c)), immediate(lut)});
  }
  void invert(uint32_t d, Op a) override {
    a = as_register(plain(a));
    emit(Mnemonic::LOP, {none(), gpr(d), rz, negate(a)}).mod(ModifierKind::LogicOp, 3);
  }
  void shift_left(uint32_t d, Op a, Op n) override {
    if (literal(n) && amount(n) > 31) return mov(d, rz);
    emit(Mnemonic::SHL, {gpr(d), as_register(a), source_b(n)});
  }
  void shift_right(uint32_t d, Op a, Op n, bool is_signed) override {
    if (literal(n) && amount(n) > 31) {
      if (!is_signed) return mov(d, rz);
      n = immediate(31);
    }
    emit(Mnemonic::SHR, {gpr(d), as_register(a), source_b(n)}).mod(ModifierKind::Signed, is_signed);
  }
  // Funnel shifts take the amount as a register or 6 bits.
  Op funnel_amount(Op n) { return is_immediate(n) && amount(n) < 64 ? n : as_register(n); }
  void shift_left64(uint32_t d, Wide a, Op n) override {
    if (shift_left_words(d, a, n)) return;
    Op lo = as_register(a.lo), hi = as_register(a.hi);
    n = funnel_amount(n);
    emit(Mnemonic::SHF_L, {gpr(d + 1), lo, n, hi}).mod(ModifierKind::ShiftType, 2);
    shift_left(d, lo, n);
  }
  void shift_right64(uint32_t d, Wide a, Op n, bool is_signed) override {
    if (shift_right_words(d, a, n, is_signed)) return;
    Op lo = as_register(a.lo), hi = as_register(a.hi);
    n = funnel_amount(n);
    emit(Mnemonic::SHF_R, {gpr(d), lo, n, hi}).mod(ModifierKind::ShiftType, is_signed ? 3 : 2);
    shift_right(d + 1, hi, n, is_signed);
  }
  void funnel(uint32_t d, Op lo, Op hi, Op n, bool right, bool wrap) override {
    emit(right ? Mnemonic::SHF_R : Mnemonic::SHF_L, {gpr(d), as_register(lo), funnel_amount(n), as_register(hi)})
        .mod(ModifierKind::Wrap, wrap);
  }
  void setp(uint32_t p, uint32_t q, Cmp c, Op a, Op b, bool is_signed, uint32_t combine, Op with) override {
    a = plain(a), b = plain(b);
    if (!is_register(a) && is_register(b)) std::swap(a, b), c = mirrored(c);
    a = as_register(a), b = source_b(b);
    auto compare = [&](uint32_t pd, uint32_t pq, Op ps) {
      emit(Mnemonic::ISETP, {predicate(pd), predicate(pq), a, b, ps})
          .mod(ModifierKind::Compare, static_cast<uint32_t>(c))
          .mod(ModifierKind::Signed, is_signed)
          .mod(ModifierKind::Bool, combine);
    };
    compare(p, q, with);
  }
  void setp64(uint32_t p, uint32_t q, Cmp c, Wide a, Wide b, bool is_signed, uint32_t combine, Op with) override {
    if ((!is_register(a.lo) || !is_register(a.hi)) && is_register(b.lo) && is_register(b.hi))
      std::swap(a, b), c = mirrored(c);
    if (is_sign(c, b, is_signed)) return setp(p, q, c, a.hi, rz, true, combine, with);
    Op alo = as_register(a.lo), ahi = as_register(a.hi);
    Op blo = is_immediate(b.lo) ? as_register(b.lo) : b.lo, bhi = source_b(b.hi);
    emit(Mnemonic::IADD, {rz, alo, negate(blo)}).mod(ModifierKind::CC, 1);
    emit(Mnemonic::ISETP, {predicate(p), predicate(q), ahi, bhi, with})
        .mod(ModifierKind::Compare, static_cast<uint32_t>(c))
        .mod(ModifierKind::Signed, is_signed)
        .mod(ModifierKind::Bool, combine)
        .mod(ModifierKind::X, 1);
  }
  void select(uint32_t d, Op a, Op b, Op p) override {
    a = plain(a), b = plain(b);
    if (a == b) return mov(d, a);
    if (!is_register(a)) std::swap(a, b), p = negate(p);
    emit(Mnemonic::SEL, {gpr(d), as_register(a), source_b(b), p});
  }
  void min_max(uint32_t d, Op a, Op b, bool max, bool is_signed) override {
    a = plain(a), b = plain(b);
    if (!is_register(a)) std::swap(a, b);
    emit(Mnemonic::IMNMX, {gpr(d), as_register(a), source_b(b), pt(max)}).mod(ModifierKind::Signed, is_signed);
  }
  void abs32(uint32_t d, Op a) override {
    Op x = as_register(a), n = temp();
    add(n.reg, rz, negate(x));
    min_max(d, x, n, true, true);
  }
  void predicate_logic(uint32_t p, Op a, Op b, char op) override {
    emit(Mnemonic::PSETP, {predicate(p), predicate(isa::PT), a, b, pt()})
        .mod(ModifierKind::Bool2, op == '&'   ? 0
                                  : op == '|' ? 1
                                              : 2);
  }
  void popc(uint32_t d, Op a) override { emit(Mnemonic::POPC, {gpr(d), as_register(a)}); }
  void find_leading(uint32_t d, Op a, bool is_signed, bool shift_amount) override {
    emit(Mnemonic::FLO, {gpr(d), as_register(a)})
        .mod(ModifierKind::Signed, is_signed)
        .mod(ModifierKind::ShiftAmount, shift_amount);
  }
  void reverse(uint32_t d, Op a) override {
    emit(Mnemonic::BFE, {gpr(d), as_register(a), immediate(0x2000)})
        .mod(ModifierKind::Brev, 1)
        .mod(ModifierKind::Signed, 0);
  }
  void permute(uint32_t d, Op a, Op b, Op selector, uint32_t mode) override {
    selector = source_b(selector);
    emit(Mnemonic::PRMT, {gpr(d), as_register(plain(a)), selector, as_register(plain(b))})
        .mod(ModifierKind::PermuteMode, mode);
  }
  Op field(Op position, Op length) {  // position | length << 8
    if (literal(position) && literal(length))
      return immediate((amount(position) & 0xff) | (amount(length) & 0xff) << 8);
    Op t = temp();
    emit(Mnemonic::BFI, {t, as_register(length), immediate(0x808), as_register(position)});
    return t;
  }
  void bit_extract(uint32_t d, Op a, Op position, Op length, bool is_signed) override {
    emit(Mnemonic::BFE, {gpr(d), as_register(a), field(position, length)}).mod(ModifierKind::Signed, is_signed);
  }
  void bit_insert(uint32_t d, Op value, Op base, Op position, Op length) override {
    emit(Mnemonic::BFI, {gpr(d), as_register(value), field(position, length), as_register(base)});
  }
  void extend(uint32_t d, Op a, uint32_t bits, bool is_signed) override {
    if (!is_signed) return logic(d, a, immediate(bits == 8 ? 0xff : 0xffff), 0xc0);
    emit(Mnemonic::BFE, {gpr(d), as_register(a), immediate(bits << 8)}).mod(ModifierKind::Signed, 1);
  }

  // --- conversions
  static uint32_t format(uint32_t bits) { return bits == 16 ? 1 : bits == 32 ? 2 : 3; }
  static uint32_t integer_size(uint32_t bits) { return bits == 8 ? 0 : format(bits); }
  void int_to_float(uint32_t d, uint32_t float_bits, Op a, uint32_t int_bits, bool is_signed,
                    uint32_t rounding) override {
    if (float_bits == 16) {  // exact in f32 wherever f16 has a finite value
      Op t = temp();
      int_to_float(t.reg, 32, a, int_bits, is_signed, rounding);
      return float_to_float(d, 16, t, 32, rounding, false);
    }
    emit(Mnemonic::I2F, {gpr(d), a})
        .mod(ModifierKind::DestFormat, format(float_bits))
        .mod(ModifierKind::SourceSize, int_bits == 64 ? 3 : 2)
        .mod(ModifierKind::SourceSigned, is_signed)
        .mod(ModifierKind::Rounding, rounding);
  }
  // As ptxas 11.8 selects: bytes, and shorts of doubles, through words.
  bool converts_to_narrow(uint32_t int_bits, uint32_t float_bits) const override {
    return int_bits == 16 && float_bits != 64;
  }
  void float_to_int(uint32_t d, uint32_t int_bits, bool is_signed, Op a, uint32_t float_bits, uint32_t rounding,
                    bool ftz) override {
    emit(Mnemonic::F2I, {gpr(d), a})
        .mod(ModifierKind::DestSize, integer_size(int_bits))
        .mod(ModifierKind::DestSigned, is_signed)
        .mod(ModifierKind::SourceFormat, format(float_bits))
        .mod(ModifierKind::Rounding, rounding)
        .mod(ModifierKind::FTZ, ftz);
  }
  void float_to_float(uint32_t d, uint32_t to_bits, Op a, uint32_t from_bits, uint32_t rounding, bool ftz) override {
    if (from_bits == 16 && to_bits == 64) {
      Op t = temp();
      float_to_float(t.reg, 32, a, 16, 0, false);
      return float_to_float(d, 64, t, 32, 0, false);
    }
    if (from_bits == 64 && to_bits == 16) {  // through f32, rounded to odd: the last bit remembers what was lost
      Op t = temp(), back = temp(2), odd = temp(), once = temp();
      uint32_t inexact = temp_predicate();
      float_to_float(t.reg, 32, a, 64, 3, false);
      float_to_float(back.reg, 64, t, 32, 0, false);
      emit(Mnemonic::DSETP, {predicate(inexact), pt(), back, a, pt()}).mod(ModifierKind::FloatCompare, 5);
      logic(odd.reg, t, immediate(1), 0xfc);
      select(once.reg, odd, t, predicate(inexact));
      return float_to_float(d, 16, once, 32, rounding, false);
    }
    emit(Mnemonic::F2F, {gpr(d), a})
        .mod(ModifierKind::DestFormat, format(to_bits))
        .mod(ModifierKind::SourceFormat, format(from_bits))
        .mod(ModifierKind::Rounding, rounding)
        .mod(ModifierKind::FTZ, ftz);
  }
  void round_to_integral(uint32_t d, Op a, uint32_t bits, uint32_t rounding, bool ftz) override {
    emit(Mnemonic::F2F, {gpr(d), a})
        .mod(ModifierKind::DestFormat, format(bits))
        .mod(ModifierKind::SourceFormat, format(bits))
        .mod(ModifierKind::Integral, 1)
        .mod(ModifierKind::Rounding, rounding)
        .mod(ModifierKind::FTZ, ftz);
  }
  void min_max_f64(uint32_t d, Op a, Op b, bool max) override { emit(Mnemonic::DMNMX, {gpr(d), a, b, pt(max)}); }
  Op mufu_argument(Op a, uint32_t function) override {
    if (function > 2) return a;
    Op t = temp();
    emit(Mnemonic::RRO, {t, a}).mod(ModifierKind::Function, function == 2 ? 1 : 0);
    return t;
  }

  void family_register(uint32_t d, ptx::SpecialRegister r) override {
    using S = ptx::SpecialRegister;
    auto s2r = [&](uint32_t number) { emit(Mnemonic::S2R, {gpr(d), special(number)}); };
    auto bank = [&](uint32_t offset) { mov(d, constant(0, offset)); };
    auto field_of = [&](uint32_t number, uint32_t bits) {
      Op t = temp();
      emit(Mnemonic::S2R, {t, special(number)});
      emit(Mnemonic::BFE, {gpr(d), t, immediate(bits)}).mod(ModifierKind::Signed, 0);
    };
    switch (r) {
      case S::warpid: return field_of(0x03, 0x708);
      case S::smid: return field_of(0x03, 0x914);
      case S::nsmid: return field_of(0x02, 0x914);
      case S::dynamic_smem_size: return bank(0xfc);
      case S::total_smem_size: return s2r(0x32);
      case S::clock:
        emit(Mnemonic::CS2R, {gpr(d), special(0x50)});
        f_.insts.back().pinned = true;
        return;
      case S::clock_hi:
        emit(Mnemonic::CS2R, {gpr(d), special(0x51)});
        f_.insts.back().pinned = true;
        return;
      case S::nwarpid: return mov(d, immediate(t_.warps_per_sm));
      case S::gridid:
        mov(d, constant(0, 0x28));
        if (ptx::type_bytes(current_->type) == 8) mov(d + 1, constant(0, 0x2c));
        return;
      case S::clock64: return wide_counter(d, 0x50);
      case S::globaltimer: return wide_counter(d, 0x52);
      case S::globaltimer_lo:
      case S::globaltimer_hi:
        emit(Mnemonic::CS2R, {gpr(d), special(r == S::globaltimer_lo ? 0x52 : 0x53)});
        f_.insts.back().pinned = true;
        return;
      default:
        if (r >= S::envreg0 && r <= S::envreg31)
          return bank(0x30 + 4 * (static_cast<uint32_t>(r) - static_cast<uint32_t>(S::envreg0)));
        return unsupported_here("special register");
    }
  }

  // A counter whose halves are read apart: when the high half changed in between, its new value with a low half of zero is a time between the reads.
  void wide_counter(uint32_t d, uint32_t number) {
    Op first = temp(), low = temp(), second = temp();
    for (auto [t, which] : {std::pair{first, number + 1}, {low, number}, {second, number + 1}}) {
      emit(Mnemonic::CS2R, {t, special(which)});
      f_.insts.back().pinned = true;
    }
    uint32_t same = temp_predicate();
    setp(same, isa::PT, Cmp::EQ, first, second, false, 0, pt());
    select(d, low, rz, predicate(same));
    mov(d + 1, second);
  }

  // --- memory
  void load(const ptx::Instruction& i, uint32_t d, uint32_t size, Op at) override {
    using ptx::Cache;
    using ptx::Semantics;
    switch (i.mods.space) {
      case ptx::Space::shared: emit(Mnemonic::LDS, {gpr(d), at}).mod(ModifierKind::Size, size); break;
      case ptx::Space::local: emit(Mnemonic::LDL, {gpr(d), at}).mod(ModifierKind::Size, size); return;
      case ptx::Space::global: {
        uint32_t cache = 0;
        if (i.mods.cache == Cache::nc) cache = 2;
        if (i.mods.cache == Cache::cg || i.mods.cache == Cache::lu) cache = 1;
        if (i.mods.cache == Cache::cv || i.mods.semantics == Semantics::volatile_) cache = 3;
        emit(Mnemonic::LDG, {gpr(d), at}).mod(ModifierKind::Size, size).mod(ModifierKind::Cache, cache);
        break;
      }
      case ptx::Space::generic: {
        uint32_t p = isa::PT, cache = i.mods.cache == Cache::cg || i.mods.cache == Cache::lu ? 1 : 0;
        if (i.mods.cache == Cache::cv || i.mods.semantics == Semantics::volatile_) cache = 3;
        Op from = generic_address(at, p);
        emit(Mnemonic::LD, {gpr(d), from, predicate(p)}).mod(ModifierKind::Size, size).mod(ModifierKind::Cache, cache);
        break;
      }
      default: return unsupported(i);
    }
    if (i.mods.semantics == Semantics::acquire || i.mods.semantics == Semantics::relaxed) return unsupported(i);
    if (error_.empty()) {
      f_.insts.back().pinned = i.mods.semantics == Semantics::volatile_;
      f_.insts.back().read_only = i.mods.cache == Cache::nc;
    }
  }
  void store(const ptx::Instruction& i, Op at, Op data, uint32_t size) override {
    using ptx::Cache;
    using ptx::Semantics;
    if (i.mods.semantics == Semantics::release || i.mods.semantics == Semantics::relaxed) return unsupported(i);
    switch (i.mods.space) {
      case ptx::Space::shared: emit(Mnemonic::STS, {at, data}).mod(ModifierKind::Size, size); return;
      case ptx::Space::local: emit(Mnemonic::STL, {at, data}).mod(ModifierKind::Size, size); return;
      case ptx::Space::global: {
        uint32_t cache = 0;
        if (i.mods.cache == Cache::cg) cache = 1;
        if (i.mods.cache == Cache::cs) cache = 2;
        if (i.mods.cache == Cache::wt || i.mods.semantics == Semantics::volatile_) cache = 3;
        emit(Mnemonic::STG, {at, data}).mod(ModifierKind::Size, size).mod(ModifierKind::Cache, cache);
        return;
      }
      case ptx::Space::generic: {
        uint32_t p = isa::PT, cache = i.mods.cache == Cache::cg ? 1 : i.mods.cache == Cache::cs ? 2 : 0;
        if (i.mods.cache == Cache::wt || i.mods.semantics == Semantics::volatile_) cache = 3;
        Op to = generic_address(at, p);
        emit(Mnemonic::ST, {to, data, predicate(p)}).mod(ModifierKind::Size, size).mod(ModifierKind::Cache, cache);
        return;
      }
      default: return unsupported(i);
    }
  }
  // Atomic instructions have 20-bit offsets.
  Op near(Op at) {
    if (at.value >= -0x80000 && at.value < 0x80000) return at;
    Op t = temp(2);
    add64(t.reg, {gpr(at.reg), gpr(at.reg + 1)},
          {immediate(static_cast<int32_t>(at.value)), at.value < 0 ? immediate(-1) : rz}, false);
    at.reg = t.reg, at.value = 0;
    return at;
  }
  void atomic(const ptx::Instruction& i, uint32_t d, Op at, Op data, Op swap) override {
    const bool wide = ptx::type_bytes(i.type) == 8;
    using A = ptx::AtomicOp;
    if (i.mods.semantics != ptx::Semantics::none && i.mods.semantics != ptx::Semantics::relaxed) return unsupported(i);
    if (i.mods.space == ptx::Space::shared) {
      if (i.mods.atomic == A::cas) return shared_compare_and_swap(d, at, data, swap, wide);
      if (i.mods.atomic == A::exch || !(wide || ptx::is_floating(i.type))) {
        emit(Mnemonic::ATOMS, {gpr(d), at, data})
            .mod(ModifierKind::AtomOp, atom_op(i.mods.atomic))
            .mod(ModifierKind::AtomType, wide                     ? 2
                                         : ptx::is_signed(i.type) ? 1
                                                                  : 0);
        return;
      }
      return compare_and_swap_loop(i, d, at, data);
    }
    if (i.mods.space != ptx::Space::global) return unsupported(i);
    if (i.type == Type::f16x2) return unsupported(i);
    at = near(at);
    if (i.mods.atomic == A::cas) {
      emit(Mnemonic::ATOM_CAS, {gpr(d), at, compare_and_swap_data(data, swap, wide)}).mod(ModifierKind::AtomType, wide);
      return;
    }
    uint32_t type = wide ? 2 : 0;
    if (ptx::is_signed(i.type)) type = wide ? 5 : 1;
    if (i.type == Type::f32) type = 3;
    if (i.type == Type::f64) type = 6;
    const bool reduce =
        d == isa::RZ && i.mods.atomic != A::exch && !(wide && !ptx::is_floating(i.type) && i.mods.atomic != A::add);
    if (reduce)
      emit(Mnemonic::RED, {at, data})
          .mod(ModifierKind::AtomOp, atom_op(i.mods.atomic))
          .mod(ModifierKind::AtomType, type);
    else
      emit(Mnemonic::ATOM, {gpr(d), at, data})
          .mod(ModifierKind::AtomOp, atom_op(i.mods.atomic))
          .mod(ModifierKind::AtomType, type);
  }
  void shared_compare_and_swap(uint32_t d, Op at, Op compare, Op swap, bool wide) override {
    emit(Mnemonic::ATOMS_CAS, {gpr(d), at, compare_and_swap_data(compare, swap, wide)})
        .mod(ModifierKind::CasMode, wide ? 5 : 4);
  }
  void fence(ptx::Scope scope, bool) override {
    const uint32_t code = scope == ptx::Scope::cta ? 0 : scope == ptx::Scope::sys ? 2 : 1;
    emit(Mnemonic::MEMBAR).mod(ModifierKind::Scope, code).mod(ModifierKind::Fence, code ? 1 : 0);
  }
  void barrier(Op id, Op count) override {
    if (count.kind == isa::OperandKind::none)
      emit(Mnemonic::BAR, {id});
    else
      emit(Mnemonic::BAR, {id, count});
    emit(Mnemonic::MEMBAR).mod(ModifierKind::Scope, 0);
  }
  void barrier_arrive(Op id, Op count) override {
    emit(Mnemonic::BAR, {id, count}).mod(ModifierKind::BarMode, 1);
    emit(Mnemonic::MEMBAR).mod(ModifierKind::Scope, 0);
  }
  void barrier_reduce(uint32_t d, uint32_t p, Op id, Op count, Op value, uint32_t reduction) override {
    Emitted e = count.kind == isa::OperandKind::none ? emit(Mnemonic::BAR, {id, none(), value})
                                                     : emit(Mnemonic::BAR, {id, count, value});
    e.mod(ModifierKind::BarMode, 2).mod(ModifierKind::BarReduction, reduction);
    emit(Mnemonic::MEMBAR).mod(ModifierKind::Scope, 0);
    emit(Mnemonic::B2R, {gpr(d), predicate(p)});
    if (error_.empty()) f_.insts.back().pinned = true;  // before the next barrier
  }
  void call_absolute() override {
    emit(Mnemonic::JCAL, {Op{.kind = isa::OperandKind::label, .value = 0}}).mod(ModifierKind::NoInc, 1);
  }
  void call_subroutine() override {
    emit(Mnemonic::CAL, {Op{.kind = isa::OperandKind::label}}).mod(ModifierKind::NoInc, 1);
  }
  void return_from_subroutine(Op) override { emit(Mnemonic::RET); }
  void mov_symbol(uint32_t d) override { emit(Mnemonic::MOV32I, {gpr(d), immediate(0)}); }
  void family_cvta_base(ptx::Space space, Wide& base) override {
    const int64_t at = space == ptx::Space::local ? 4 : 0;
    base = {constant(0, at), constant(0, 0x100 + at)};
  }
  void is_space(uint32_t p, Wide a, ptx::Space space) override {
    Op lo = as_register(a.lo), hi = as_register(a.hi), window = temp();
    logic(window.reg, lo, immediate(static_cast<int32_t>(0xff000000)), 0xc0);
    auto inside = [&](uint32_t to, int64_t at) {
      uint32_t low = temp_predicate();
      setp(low, isa::PT, Cmp::EQ, window, constant(0, at), false, 0, pt());
      setp(to, isa::PT, Cmp::EQ, hi, constant(0, 0x100 + at), false, 0, predicate(low));
    };
    if (space != ptx::Space::global) return inside(p, space == ptx::Space::local ? 4 : 0);
    uint32_t shared = temp_predicate(), local = temp_predicate();
    inside(shared, 0);
    inside(local, 4);
    predicate_logic(p, predicate(shared, true), predicate(local, true), '&');
  }
  void generic_atomic(const ptx::Instruction& i, uint32_t d, Op at, Op data, Op swap) override {
    split_atomic(i, d, at, data, swap);
  }
  // A generic access: the 64-bit address, and a predicate that it is in no window.
  Op generic_address(Op at, uint32_t& p) {
    Op pair = gpr(at.reg);
    if (at.value) {
      Op t = temp(2);
      add64(t.reg, {pair, high_word(pair)}, source64({ptx::Operand::immediate, false, 0, 0, at.value}), false);
      pair = t;
    }
    Op t = temp(2);
    p = temp_predicate();
    emit(Mnemonic::LEA, {none(), t, pair, rz}).mod(ModifierKind::CC, 1);
    emit(Mnemonic::LEA_HI, {predicate(p), gpr(t.reg + 1), pair, rz, gpr(pair.reg == isa::RZ ? isa::RZ : pair.reg + 1)})
        .mod(ModifierKind::X, 1);
    return address(t.reg, 0, true, false);
  }
  void converge(Op) override {}  // lanes of a split warp meet only where the stack says so
};

}  // namespace

Result<Function> select_pascal(const ptx::Module& m, const ptx::Function& p, const Flow& flow,
                               const ptx::SharedLayout& shared, const Options& o, isa::FormCache& forms, Arena& arena,
                               SelectionRoom& room) {
  return PascalSelector(m, p, flow, shared, o, forms, arena).run(room);
}

}  // namespace rndn::assembler
