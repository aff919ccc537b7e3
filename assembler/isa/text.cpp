// Instructions as nvdisasm 11.8 prints them. Rows give names, modifier texts and operand order; the exceptions are collected in name_of()
// (names that are built from operands or from several modifiers) and in float_text().
#include <bit>
#include <cmath>
#include <cstdio>

#include "assembler/isa/form.h"

namespace rndn::isa {
namespace {

using K = ModifierKind;
using M = Mnemonic;

std::string hex(uint64_t v) { return fmt::format("0x{:x}", v); }
std::string signed_hex(int64_t v) {
  return v < 0 ? "-" + hex(static_cast<uint64_t>(-v)) : hex(static_cast<uint64_t>(v));
}

// Twenty significant digits without trailing zeros; whole numbers from 10^9 on, and everything huge, in scientific notation with all zeros.
// Infinities and NaNs end with a blank, as there.
std::string number(double v, const char* nan) {
  if (std::isnan(v)) return nan;
  if (std::isinf(v)) return v < 0 ? "-INF " : "+INF ";
  if (v == 0 && std::signbit(v)) return "-0.0 ";
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, std::fabs(v) >= 1e9 ? "%.20e" : "%.20g", v);
  return buffer;
}
std::string float_text(Style style, uint32_t bits) {
  if (style == Style::f32) return number(std::bit_cast<float>(bits), bits >> 31 ? "-QNAN " : "+QNAN ");
  uint64_t wide = static_cast<uint64_t>(bits) << 32;
  bool quiet = bits & 0x80000;
  return number(std::bit_cast<double>(wide),
                bits >> 31 ? (quiet ? "-QNAN " : "-SNAN ") : (quiet ? "+QNAN " : "+SNAN "));
}
std::string half_text(uint16_t bits) {
  int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  double v = exponent == 0    ? std::ldexp(mantissa, -24)
             : exponent == 31 ? (mantissa ? NAN : INFINITY)
                              : std::ldexp(1024 + mantissa, exponent - 25);
  if (bits >> 15) v = -v;
  return number(v, bits >> 15 ? "-QNAN " : "+QNAN ");
}

struct Printer {
  const Target& target;
  const Instruction& in;
  const Form& form;
  const std::string& label;
  uint64_t address;

  uint8_t mod(K kind) const { return modifier(in, kind); }

  static std::string gpr(uint32_t reg) { return reg == RZ ? "RZ" : fmt::format("R{}", reg); }
  // The operand-cache flag of slot k's register: 0 to 2 as the operands A, B, C. They go by field, but for B in C's field beside a C that is no
  // register, and for the half-precision instructions whose second operand is
  // numbered as the third, as that of additions is.
  const char* reuse(uint32_t k) const {
    const uint8_t lo = form.slots[k].lo;
    int slot = form.pascal ? (lo == 8    ? 0
                              : lo == 20 ? 1
                              : lo == 39 ? 2
                                         : -1)
                           : (lo == 24   ? 0
                              : lo == 32 ? 1
                              : lo == 64 ? 2
                                         : -1);
    if (slot == 2 && k > 0 && k + 1 < form.slot_count && form.slots[k - 1].kind == SlotKind::gpr &&
        form.slots[k - 1].access == Access::read) {
      const SlotKind next = form.slots[k + 1].kind;
      const uint8_t before = form.slots[k - 1].lo;
      if (before == (form.pascal ? 8 : 24) &&
          (next == SlotKind::constant || next == SlotKind::constant_20 || next == SlotKind::uniform ||
           next == SlotKind::immediate || next == SlotKind::immediate_signed))
        slot = 1;
    }
    if (slot == 1) {
      switch (form.mnemonic) {
        case M::FADD:
        case M::DADD:
        case M::HADD2: slot = 2; break;
        case M::DSETP:
        case M::HSET2:
        case M::HSETP2: slot = form.pascal ? 1 : 2; break;
        default: break;
      }
    }
    return slot >= 0 && (in.control.reuse >> slot & 1) ? ".reuse" : "";
  }
  static std::string uniform(uint32_t reg) { return reg == URZ ? "URZ" : fmt::format("UR{}", reg); }

  std::string constant(const Operand& o, const Slot& slot) const {
    const std::string offset = signed_hex(static_cast<int16_t>(o.value));  // nvdisasm prints the upper half as negative
    if (slot.kind == SlotKind::constant_indexed || slot.kind == SlotKind::constant_ldc ||
        slot.kind == SlotKind::constant_uniform) {
      std::string inside;
      if (o.reg != RZ) inside = gpr(o.reg);
      if (slot.kind == SlotKind::constant_uniform) inside = uniform(o.uniform);
      if (o.value != 0) inside += inside.empty() ? offset : "+" + offset;
      if (inside.empty()) inside = form.pascal ? "0x0" : "RZ";
      return fmt::format("c[{}][{}]", hex(o.bank), inside);
    }
    // A blank where a part of the constant can be chosen.
    const bool half_source = !form.pascal && (mod(K::SourceFormat) == 1 || mod(K::SourceFormat) == 4) &&
                             (form.mnemonic == M::F2F || form.mnemonic == M::F2I || form.mnemonic == M::FRND);
    const bool half_function = !form.pascal && ((form.mnemonic == M::MUFU && mod(K::HalfFormat)) ||
                                                (form.mnemonic == M::I2F && mod(K::SourceSize) < 2));
    const bool converts = (form.mnemonic == M::F2F && mod(K::SourceFormat) == 1) || form.mnemonic == M::F2I ||
                          form.mnemonic == M::I2F || form.mnemonic == M::I2I;
    const bool parts = form.pascal ? slot.part != no_bit || converts
                                   : slot.style == Style::sign || (slot.part != no_bit && slot.part_base == 3);
    return fmt::format("c[{}]{}[{}]", hex(o.bank), parts || half_source || half_function ? " " : "", offset);
  }

  // The high word of a double where the operation takes one, whatever the row says.
  Style literal_style(const Slot& slot) const {
    if (form.mnemonic == M::MUFU) return mod(K::Function) == 6 || mod(K::Function) == 7 ? Style::f64 : slot.style;
    if (form.mnemonic == M::F2F || (form.mnemonic == M::F2I && form.pascal)) {
      const uint32_t source = mod(K::SourceFormat);
      return source == 3 ? Style::f64 : source == 1 && form.pascal ? Style::f16 : Style::f32;
    }
    return slot.style;
  }

  std::string memory(const Operand& o, const Slot& slot) const {
    std::string s;
    bool has_uniform = slot.uniform != no_bit && !o.descriptor && !(slot.style == Style::no_urz && o.uniform == URZ);
    if (o.reg != RZ || ((form.mnemonic == M::QSPC || form.mnemonic == M::LDGMC) && slot.style == Style::base_32) ||
        (o.wide && slot.uniform != no_bit && form.mnemonic != M::LDGSTS && form.mnemonic != M::QSPC &&
         target.descriptor_offset)) {
      s = gpr(o.reg);
      if (slot.uniform != no_bit && o.wide) s += ".64";
      if (slot.style == Style::base_32) s += ".U32";
      static constexpr const char* scale[] = {"", ".X4", ".X8", ".X16"};
      s += scale[mod(K::AddressScale) & 3];
    }
    if (has_uniform) s += (s.empty() ? "" : "+") + uniform(o.uniform);
    if (o.value != 0)
      s += s.empty() ? hex(static_cast<uint64_t>(o.value) & bits_mask(slot.width + slot.scale))
                     : "+" + signed_hex(o.value);
    if (s.empty()) s = "RZ";
    return "[" + s + "]";
  }

  // Whether a part of the operand is chosen: bits of a wider source mean nothing.
  bool has_parts() const {
    switch (form.mnemonic) {
      case M::MUFU: return mod(K::HalfFormat) != 0;
      case M::F2I:
        if (form.pascal) return true;
        [[fallthrough]];
      case M::F2F:
      case M::FRND: return mod(K::SourceFormat) == 1;
      case M::I2F: return form.pascal || mod(K::SourceSize) < 2;
      default: return true;
    }
  }

  std::string operand(uint32_t k) const {
    const Slot& slot = form.slots[k];
    const Operand& o = in.operands[k];
    std::string s;
    switch (o.kind) {
      case OperandKind::none: return slot.style == Style::repeat && k > 0 ? operand(k - 1) : "";
      case OperandKind::gpr: s = gpr(o.reg); break;
      case OperandKind::predicate: s = o.reg == PT ? "PT" : fmt::format("P{}", o.reg); break;
      case OperandKind::uniform_predicate: s = o.reg == PT ? "UPT" : fmt::format("UP{}", o.reg); break;
      case OperandKind::uniform: s = uniform(o.reg); break;
      case OperandKind::barrier: s = fmt::format("B{}", o.reg); break;
      case OperandKind::immediate:
        switch (slot.style) {
          case Style::f32:
          case Style::f64: {
            // Of a half, Pascal's conversions have the bits where the upper bits of a float begin.
            const Style style = literal_style(slot);
            s = style == Style::f16 ? half_text(static_cast<uint16_t>(o.value >> 12))
                                    : float_text(style, static_cast<uint32_t>(o.value));
            break;
          }
          case Style::f16:
            s = mod(K::Pack) ? float_text(Style::f32, static_cast<uint32_t>(o.value) << 16)
                             : half_text(static_cast<uint16_t>(o.value));
            break;
          case Style::rpc_half: s = o.value ? "Rpc.HI" : "Rpc.LO"; break;
          case Style::hex20: s = hex(static_cast<uint64_t>(o.value) & 0xfffff); break;
          default:
            s = slot.kind == SlotKind::immediate ? hex(static_cast<uint64_t>(o.value) & bits_mask(slot.width))
                                                 : signed_hex(o.value);
            break;
        }
        break;
      case OperandKind::constant: s = constant(o, slot); break;
      case OperandKind::special: {
        std::string_view name = special_register_name(target, static_cast<uint32_t>(o.value));
        s = name.empty() ? fmt::format("SR{}", o.value) : std::string(name);
        break;
      }
      case OperandKind::label:
        if (slot.style == Style::relative)
          return signed_hex(o.value - static_cast<int64_t>(address + (form.pascal ? 8 : 16)));
        return label.empty() ? signed_hex(o.value) : label;
      case OperandKind::address: return memory(o, slot);
      case OperandKind::scoreboard: return fmt::format("SB{}", o.value);
    }
    if (slot.style == Style::sign) return s + ".SIGN";
    if (slot.style == Style::bracket) return "[" + s + "]";
    if (slot.style == Style::policy) return "desc[" + s + "]";
    if (slot.style == Style::matrix) {
      const uint32_t flags = o.part << (3 - slot.part_width);  // the highest is the negation in each row
      return "gdesc[" + s + "]" + (o.negated ? ".negA" : "") + (flags & 4 ? ".negB" : "") +
             (flags & 1 ? ".tnspA" : "") + (flags & 2 ? ".tnspB" : "");
    }
    std::string part;
    if (o.part && slot.part_width && has_parts()) {
      static constexpr const char* half[] = {"", ".H1", ".H2", ".H3"};
      static constexpr const char* word_half[] = {"", ".H0", ".H1", ".H1"};
      static constexpr const char* bytes[] = {"", ".B1", ".B2", ".B3"};
      static constexpr const char* above[] = {"", ".H1", ".24", ".28"};  // I2IP: how many bits of C there is room for
      static constexpr const char* pair[] = {"", ".F32", ".H0_H0", ".H1_H1"};
      part = slot.part_base == 3                              ? pair[o.part & 3]
             : slot.part_base == 4                            ? above[o.part & 3]
             : slot.part_base == 2 && mod(K::SourceSize) == 1 ? std::array{"", ".H1", ".H1", ".H1"}[o.part & 3]
             : slot.part_base == 0                            ? half[o.part & 3]
             : slot.part_base == 1                            ? word_half[o.part & 3]
                                                              : bytes[o.part & 3];
    }
    if (slot.kind == SlotKind::predicate || slot.kind == SlotKind::predicate_inverted ||
        slot.kind == SlotKind::uniform_predicate || slot.kind == SlotKind::uniform_predicate_inverted)
      return o.negated ? "!" + s : s;
    // A half of a pair comes last on Volta and later, but inside the bars for a uniform register.
    const bool last = slot.part_base == 3 && !form.pascal && o.kind != OperandKind::uniform;
    if (!last) s += part;
    if (o.absolute) s = "|" + s + "|";
    if (o.kind == OperandKind::gpr) s += reuse(k);
    if (last) s += part;
    if (slot.style == Style::row) s += ".ROW";
    if (slot.style == Style::column) s += ".COL";
    if (o.negated && !(k == 2 && (form.mnemonic == M::IADD || form.mnemonic == M::ISCADD) && in.operands[1].negated) &&
        !(k == 1 && (form.mnemonic == M::IADD || form.mnemonic == M::ISCADD) && in.operands[2].negated)) {
      bool invert = slot.style == Style::invert || (slot.style == Style::invert_by_x && mod(K::X));
      if (invert && o.kind == OperandKind::immediate) return s + ".INV";
      if (slot.kind == SlotKind::float_20) return s + ".NEG";  // beside the number's own sign
      s = (invert ? "~" : "-") + s;
    }
    return s;
  }

  bool is_default(uint32_t k) const {
    const Slot& slot = form.slots[k];
    const Operand& o = in.operands[k];
    switch (o.kind) {
      case OperandKind::gpr: return o.reg == RZ;
      case OperandKind::uniform: return o.reg == URZ;
      case OperandKind::predicate:
      case OperandKind::uniform_predicate:
        return o.reg == (slot.initial == 255 ? PT : slot.initial) && o.negated == slot.initial_negated;
      case OperandKind::immediate: return o.value == 0;
      case OperandKind::address: return o.reg == RZ && o.value == 0;
      case OperandKind::none: return slot.style != Style::repeat;
      default: return false;
    }
  }
  bool shown(uint32_t k) const {
    if ((form.mnemonic == M::BRX || form.mnemonic == M::BRXU) && k == 1)
      return in.operands[k].value != static_cast<int64_t>(address + (form.pascal ? 8 : 16));
    if (form.mnemonic == M::BAR && !form.pascal && mod(K::BarMode) == 4) return false;
    if (form.mnemonic == M::BAR && target.has(Feature::bar_hides_no_threads) && k == 1 &&
        in.operands[k].kind == OperandKind::gpr && in.operands[k].reg == RZ)
      return false;
    if (form.mnemonic == M::BAR && !form.pascal && mod(K::BarMode) == 1 && k == 1) return true;
    if (!form.pascal && (form.mnemonic == M::R2P || form.mnemonic == M::UR2UP) && k == 1)
      return in.operands[k].value != 0xff;
    if (form.mnemonic == M::MATCH && k == 0) return mod(K::MatchMode) == 0;
    if (form.mnemonic == M::B2R && k == 1 && !form.pascal && mod(K::ResultMode) != 1) return false;
    if (form.mnemonic == M::DEPBAR && !mod(K::LessEqual))
      return k == 2 && in.operands[k].value;  // waits for a set of scoreboards
    switch (form.slots[k].show) {
      case Show::always: return !(in.operands[k].kind == OperandKind::none && form.slots[k].style != Style::repeat);
      case Show::optional: return !is_default(k);
      case Show::with_x: return mod(K::X) != 0;
      case Show::with_ex:
        return mod(K::EX) != 0 ||
               (target.has(Feature::isetp_shows_carry) && form.mnemonic == M::ISETP && !is_default(k));
      case Show::with_bar_red: return mod(K::BarMode) == 2;
      case Show::unless_sx32: return mod(K::SX32) == 0;
      case Show::never: return false;
    }
    return true;
  }

  static const char* int_name(bool is_signed, uint8_t size) {
    static constexpr const char* names[2][4] = {{".U8", ".U16", ".U32", ".U64"}, {".S8", ".S16", ".S32", ".S64"}};
    return names[is_signed][size & 3];
  }
  static const char* float_name(uint8_t format) {
    static constexpr const char* names[] = {".F8", ".F16", ".F32", ".F64", ".BF16", "", "", ""};
    return names[format & 7];
  }

  std::string text_of_mods() const {
    std::string s;
    for (uint32_t i = 0; i < form.mod_count; ++i)
      if (form.mods[i].kind != K::CC && form.mods[i].kind != K::Group) s += form.mods[i].texts[in.modifiers[i]];
    return s;
  }

  static const char* condition(uint8_t test) {
    static constexpr const char* names[] = {
        "F",   "LT",  "EQ",     "LE",     "GT",     "NE",      "GE",      "NUM",     "NAN", "LTU", "EQU",
        "LEU", "GTU", "NEU",    "GEU",    "T",      "OFF",     "LO",      "SFF",     "LS",  "HI",  "SFT",
        "HS",  "OFT", "CSM_TA", "CSM_TR", "CSM_MX", "FCSM_TA", "FCSM_TR", "FCSM_MX", "RLE", "RGT"};
    return names[test & 31];
  }

  // Name and modifiers.
  std::string name() const {
    std::string s = form.name;
    if (!form.pascal) {
      switch (form.mnemonic) {
        case M::IMAD: {
          const Operand &a = in.operands[1], &b = in.operands[2], &c = in.operands[3];
          bool x = mod(K::X);
          auto zero = [](const Operand& o) { return o.kind == OperandKind::gpr && o.reg == RZ; };
          bool power = b.kind == OperandKind::immediate && std::has_single_bit(static_cast<uint32_t>(b.value));
          if (!x && (zero(a) || zero(b) || (b.kind == OperandKind::immediate && b.value == 0)) &&
              b.kind != OperandKind::uniform && c.kind != OperandKind::uniform)
            s += ".MOV";
          else if (!x && b.kind == OperandKind::immediate && b.value == 1)
            s += ".IADD";
          else if (!x && power && zero(c) && (mod(K::Signed) || b.value != 0x10000))
            s += ".SHL";
          break;
        }
        case M::IDP:
          s += form.mods[0].texts[mod(K::DotMode)];
          s += std::string(mod(K::SignedA) ? ".S" : ".U") + (mod(K::DotMode) ? "16" : "8");
          return s + (mod(K::SignedB) ? ".S8" : ".U8");
        // Conversions print only what is not 32-bit: the formats of their operands make the name.
        case M::F2I: {
          uint8_t source = mod(K::SourceFormat), size = mod(K::DestSize);
          bool sign = mod(K::Signed);
          if (mod(K::FTZ)) s += ".FTZ";
          if (!sign || size != 2) s += int_name(sign, size);
          if (source != 2) s += float_name(source);
          s += form.mods[4].texts[mod(K::Rounding)];
          if (mod(K::NTZ)) s += ".NTZ";
          return s;
        }
        case M::I2F: {
          uint8_t dest = mod(K::DestFormat), size = mod(K::SourceSize);
          bool sign = mod(K::Signed);
          if (dest != 2) s += float_name(dest);
          if (!sign || size != 2) s += int_name(sign, size);
          return s + form.mods[3].texts[mod(K::Rounding)];
        }
        case M::I2FP: return s + int_name(mod(K::Signed), 2) + form.mods[1].texts[mod(K::Rounding)];
        case M::F2F:
          if (mod(K::FTZ)) s += ".FTZ";
          return s + float_name(mod(K::DestFormat)) + float_name(mod(K::SourceFormat)) +
                 form.mods[3].texts[mod(K::Rounding)];
        case M::FRND: {
          uint8_t format = mod(K::DestFormat);
          if (mod(K::FTZ)) s += ".FTZ";
          if (format != 2) s += float_name(format);
          return s + form.mods[3].texts[mod(K::Rounding)];
        }
        case M::I2I: return s + int_name(mod(K::DestSigned), mod(K::DestSize)) + ".S32.SAT";
        case M::BAR:
          s += form.mods[0].texts[mod(K::BarMode)];
          if (mod(K::BarMode) == 2) s += std::array{".POPC", ".AND", ".OR", ""}[mod(K::BarReduction) & 3];
          return s + form.mods[2].texts[mod(K::Deferred)];
        case M::MATCH:
        case M::REDUX:
        default: break;
      }
    } else {
      switch (form.mnemonic) {
        case M::F2F: {
          uint8_t dest = mod(K::DestFormat), source = mod(K::SourceFormat), r = mod(K::Rounding);
          if (mod(K::FTZ)) s += ".FTZ";
          s += float_name(dest);
          s += float_name(source);
          if (mod(K::Integral))
            s += std::array{".ROUND", ".FLOOR", ".CEIL", ".TRUNC"}[r & 3];
          else if (dest == source)
            s += r ? ".PASS" : "";
          else
            s += std::array{"", ".RM", ".RP", ".RZ"}[r & 3];
          if (mod(K::SAT)) s += ".SAT";
          return s;
        }
        case M::F2I:
          if (mod(K::FTZ)) s += ".FTZ";
          s += int_name(mod(K::DestSigned), mod(K::DestSize));
          s += float_name(mod(K::SourceFormat));
          return s + std::array{"", ".FLOOR", ".CEIL", ".TRUNC"}[mod(K::Rounding) & 3];
        case M::I2F:
          s += float_name(mod(K::DestFormat));
          s += int_name(mod(K::SourceSigned), mod(K::SourceSize));
          return s + std::array{"", ".RM", ".RP", ".RZ"}[mod(K::Rounding) & 3];
        case M::I2I:
          s += int_name(mod(K::DestSigned), mod(K::DestSize));
          s += int_name(mod(K::SourceSigned), mod(K::SourceSize));
          return s + (mod(K::SAT) ? ".SAT" : "");
        case M::XMAD: {
          bool a = mod(K::SignedA), b = mod(K::SignedB);
          if (a || b) s += std::string(a ? ".S16" : ".U16") + (b ? ".S16" : ".U16");
          if (mod(K::PSL)) s += ".PSL";
          s += std::array{"", ".CLO", ".CHI", ".CSFU", ".CBCC", "", "", ""}[mod(K::XmadC) & 7];
          if (mod(K::MRG)) s += ".MRG";
          if (mod(K::X)) s += ".X";
          return s;
        }
        case M::IADD:
        case M::ISCADD:
          if (in.operands[1].negated && in.operands[2].negated) s += ".PO";
          break;
        case M::IMUL:
        case M::IMUL32I:
        case M::IMAD: {
          bool a = mod(K::SignedA), b = mod(K::SignedB);
          if (!a || !b) s += std::string(a ? ".S32" : ".U32") + (b ? ".S32" : ".U32");
          return s + (mod(K::High) ? ".HI" : "") + (mod(K::SAT) ? ".SAT" : "") + (mod(K::X) ? ".X" : "");
        }
        case M::IDP: {
          bool two = mod(K::DotMode);
          s += two ? (mod(K::High) ? ".2A.HI" : ".2A.LO") : ".4A";
          s += std::string(mod(K::SignedA) ? ".S" : ".U") + (two ? "16" : "8");
          return s + (mod(K::SignedB) ? ".S8" : ".U8");
        }
        case M::LDS:
          return s + (mod(K::UniformAddress) ? ".U" : "") +
                 (mod(K::UniformAddress) && mod(K::Size) == 4 ? ".32" : form.mods[1].texts[mod(K::Size)]);
        case M::BAR:
          s += form.mods[0].texts[mod(K::BarMode)];
          return s + (mod(K::BarMode) == 2 ? std::array{".POPC", ".AND", ".OR", ""}[mod(K::BarReduction) & 3] : "");
        case M::ATOM_CAS: return s + (mod(K::E) ? ".E" : "") + ".CAS" + (mod(K::AtomType) ? ".64" : "");
        default: break;
      }
    }
    return s + text_of_mods();
  }

  std::string print() const {
    std::string s;
    if (in.guard != PT || in.guard_negated)
      s = fmt::format("@{}{}{} ", in.guard_negated ? "!" : "", form.uniform_guard ? "UP" : "P",
                      in.guard == PT ? "T" : std::to_string(in.guard));
    s += name();
    if (form.mnemonic == M::WARPGROUP_DEPBAR) s += " gsb0,";  // the only one there is
    bool first = true;
    if (form.pascal && has_modifier(in.form, K::Condition) && mod(K::Condition) != 15 && form.mnemonic != M::CSETP &&
        form.mnemonic != M::CSET) {
      s += std::string(" CC.") + condition(mod(K::Condition));
      first = false;
    }
    bool cc = form.pascal && mod(K::CC);
    for (uint32_t n = 0; n < form.slot_count; ++n) {
      // R2UR's predicate comes first.
      const uint32_t k = form.mnemonic == M::R2UR && n < 2 ? 1 - n : n;
      if (!shown(k)) continue;
      // Calls and indirect branches separate register and target by a blank.
      bool blank = k > 0 &&
                   (form.mnemonic == M::BRX || form.mnemonic == M::BRXU || form.mnemonic == M::CALL_REL_R ||
                    form.mnemonic == M::RET_REL || form.mnemonic == M::RET_ABS) &&
                   (form.slots[k - 1].kind == SlotKind::gpr || form.slots[k - 1].kind == SlotKind::uniform);
      // QRY1's bracket follows at once.
      const bool joined = form.pascal && form.mnemonic == M::CCTL && mod(K::CacheOp) == 0;
      s += joined ? "" : first || blank ? " " : ", ";
      first = false;
      if (form.slots[k].style == Style::pr_before || form.slots[k].style == Style::p_mask)
        s += mod(K::FromCC) ? "CC, " : form.mnemonic == M::UP2UR || form.mnemonic == M::UR2UP ? "UPR, " : "PR, ";
      if (form.slots[k].style == Style::cc_before) s += "CC, ";
      if (form.mnemonic == M::DEPBAR && k == 2) {
        std::string set;
        for (int bit = 5; bit >= 0; --bit)
          if (in.operands[k].value >> bit & 1) set += (set.empty() ? "" : ",") + std::to_string(bit);
        s += "{" + set + "}";
        continue;
      }
      s += operand(k);
      if ((form.mnemonic == M::R2P || form.mnemonic == M::UR2UP) && k == 0)
        s += std::array{"", ".B1", ".B2", ".B3"}[mod(K::Byte) & 3];
      if (form.slots[k].span == Span_::cas)
        s += ", " + gpr(in.operands[k].reg == RZ ? RZ : in.operands[k].reg + register_count(in, k) / 2);
      if (cc && form.slots[k].access != Access::read && form.slots[k].kind == SlotKind::gpr) s += ".CC";
    }
    if (form.pascal && form.slot_count && form.slots[0].access == Access::read_write)
      s += ", " + gpr(in.operands[0].reg);  // FFMA32I, HFMA2_32I: the addend is the destination
    if (has_modifier(in.form, K::Group) && mod(K::Group) == 0) s += ", gsb0";
    if (has_modifier(in.form, K::LaneMask) && mod(K::LaneMask) != 15) s += ", " + hex(mod(K::LaneMask));
    return s;
  }
};

}  // namespace

std::string text(const Target& target, const Instruction& instruction, const std::string& label_of_target,
                 uint64_t address) {
  return Printer{target, instruction, form_row(instruction.form), label_of_target, address}.print();
}

std::string_view special_register_name(const Target& target, uint32_t number) {
  enum Where : uint8_t { everywhere, pascal_only, volta_only, hopper_only };
  struct Special {
    uint32_t number;
    Where where;
    std::string_view name;
  };
#define SPECIAL(number, name) {number, everywhere, name},
#define SPECIAL_PASCAL(number, name) {number, pascal_only, name},
#define SPECIAL_VOLTA(number, name) {number, volta_only, name},
#define SPECIAL_90(number, name) {number, hopper_only, name},
  static constexpr Special registers[] = {
#include "assembler/isa/special_registers.def"
  };
  for (const Special& r : registers) {
    if (r.number != number) continue;
    if (r.where == pascal_only && target.family != Family::pascal) continue;
    if (r.where == volta_only && target.family != Family::volta) continue;
    if (r.where == hopper_only && !target.has(Feature::hopper_special_registers)) continue;
    return r.name;
  }
  return {};
}

}  // namespace rndn::isa
