// Questions about rows and instructions: operand access and width, modifiers; and make(), which finds the row for a mnemonic and operands.
#include "assembler/isa/index.h"

namespace rndn::isa {

const Form& form_row(FormId id) {
  auto volta = volta_forms();
  size_t i = index(id);
  CHECK(i < form_count(), "form {}", i);
  return i < volta.size() ? volta[i] : pascal_forms()[i - volta.size()];
}

size_t form_count() { return volta_forms().size() + pascal_forms().size(); }
Family form_family(FormId form) { return form_row(form).pascal ? Family::pascal : Family::volta; }
uint32_t form_targets(FormId form) { return form_row(form).targets; }
Provenance provenance(FormId form) { return form_row(form).provenance; }
std::string_view form_name(FormId form) { return form_row(form).name; }
bool guard_is_uniform(FormId form) { return form_row(form).uniform_guard; }
uint32_t slot_count(FormId form) { return form_row(form).slot_count; }

std::string_view mnemonic_name(Mnemonic m) {
  static constexpr std::string_view names[] = {
#define MNEMONIC(name) #name,
#include "assembler/isa/mnemonics.def"
#undef MNEMONIC
  };
  return names[static_cast<size_t>(m)];
}

LatencyClass latency_class(const Instruction& instruction) {
  const Form& form = form_row(instruction.form);
  if (form.latency == LatencyClass::cs2r && modifier(instruction, ModifierKind::Wide) == 0)
    return LatencyClass::alu;  // CS2R.32
  return form.latency;
}

// --- Operands -------------------------------------------------------------------------------------------------------------------
Access access(const Instruction& instruction, uint32_t k) {
  const Form& form = form_row(instruction.form);
  return k < form.slot_count && form.slots[k].kind != SlotKind::none ? form.slots[k].access : Access::none;
}

RegisterFile register_file(const Instruction& instruction, uint32_t k) {
  const Form& form = form_row(instruction.form);
  if (k >= form.slot_count) return RegisterFile::none;
  switch (form.slots[k].kind) {
    case SlotKind::gpr:
    case SlotKind::address:
    case SlotKind::constant_indexed:
    case SlotKind::constant_ldc: return RegisterFile::gpr;
    case SlotKind::predicate:
    case SlotKind::predicate_inverted: return RegisterFile::predicate;
    case SlotKind::uniform: return RegisterFile::uniform;
    case SlotKind::uniform_predicate: return RegisterFile::uniform_predicate;
    case SlotKind::barrier: return RegisterFile::barrier;
    default: return RegisterFile::none;
  }
}

namespace {
uint32_t atom_registers(const Form& form, uint8_t type) {
  switch (form.mnemonic) {
    case Mnemonic::ATOMG:
    case Mnemonic::ATOM:
    case Mnemonic::RED:
      if (form.targets == sm_90) return type == 4 ? 4 : type == 2 || type == 3 ? 2 : 1;
      return type == 2 || type == 5 || type == 6 ? 2 : 1;
    default:  // shared memory and compare-and-swap
      return type == 2 || type == 3 ? 2 : 1;
  }
}
uint32_t vector_registers(uint8_t type) {  // sm_90 float atomics
  switch (type) {
    case 1:
    case 4:
    case 10:
    case 13:
    case 15: return 2;
    case 2:
    case 5:
    case 11:
    case 14: return 4;
    default: return 1;
  }
}
}  // namespace

uint32_t register_count(const Instruction& instruction, uint32_t k) {
  if (register_file(instruction, k) == RegisterFile::none) return 0;
  const Form& form = form_row(instruction.form);
  const Slot& slot = form.slots[k];
  auto value = [&](ModifierKind kind) { return modifier(instruction, kind); };
  if (slot.kind == SlotKind::address && slot.span == Span_::one) return value(ModifierKind::E) ? 2 : 1;
  switch (slot.span) {
    case Span_::one: return 1;
    case Span_::two: return 2;
    case Span_::four: return 4;
    case Span_::size: return value(ModifierKind::Size) >= 6 ? 4 : value(ModifierKind::Size) == 5 ? 2 : 1;
    case Span_::atom: return atom_registers(form, value(ModifierKind::AtomType));
    case Span_::vector: return vector_registers(value(ModifierKind::AtomType));
    case Span_::dest: return value(ModifierKind::DestSize) == 3 ? 2 : 1;
    case Span_::source: return value(ModifierKind::SourceSize) == 3 ? 2 : 1;
    case Span_::f64_dest: return value(ModifierKind::DestFormat) == 3 ? 2 : 1;
    case Span_::f64_source: return value(ModifierKind::SourceFormat) == 3 ? 2 : 1;
    case Span_::wide: return value(ModifierKind::Wide) ? 2 : 1;
    case Span_::cas_result: return value(ModifierKind::AtomType) || (value(ModifierKind::CasMode) & 1) ? 2 : 1;
    case Span_::cas: return value(ModifierKind::AtomType) || (value(ModifierKind::CasMode) & 1) ? 4 : 2;
  }
  return 1;
}

bool reads_carry(const Instruction& instruction) {
  const Form& form = form_row(instruction.form);
  if (!form.pascal) return false;
  if (modifier(instruction, ModifierKind::X)) return true;
  if (form.mnemonic == Mnemonic::P2R) return modifier(instruction, ModifierKind::FromCC) != 0;
  if (form.mnemonic == Mnemonic::CSETP || form.mnemonic == Mnemonic::CSET) return true;
  uint8_t extended = modifier(instruction, ModifierKind::Extended);
  if (extended && form.mnemonic == Mnemonic::IMNMX)
    return extended == 1 || extended == 2;  // XLO, XMED read what XHI recorded
  if (extended) return extended >= 2;       // .X, .XHI of the shifts
  if (has_modifier(instruction.form, ModifierKind::Condition))
    return modifier(instruction, ModifierKind::Condition) != 15;
  return false;
}

bool writes_carry(const Instruction& instruction) {
  const Form& form = form_row(instruction.form);
  if (form.mnemonic == Mnemonic::R2P) return modifier(instruction, ModifierKind::FromCC) != 0;
  return form.pascal && modifier(instruction, ModifierKind::CC) != 0;
}

uint8_t implicit_predicate_writes(const Instruction& instruction) {
  if (instruction.mnemonic != Mnemonic::R2P) return 0;
  if (modifier(instruction, ModifierKind::FromCC)) return 0;
  const Operand& mask = instruction.operands[1];
  return mask.kind == OperandKind::immediate ? static_cast<uint8_t>(mask.value & 0x7f) : 0x7f;
}
uint8_t implicit_predicate_reads(const Instruction& instruction) {
  if (instruction.mnemonic != Mnemonic::P2R || modifier(instruction, ModifierKind::FromCC)) return 0;
  const Operand& mask = instruction.operands[2];
  return mask.kind == OperandKind::immediate ? static_cast<uint8_t>(mask.value & 0x7f) : 0x7f;
}

// --- Modifiers ------------------------------------------------------------------------------------------------------------------
bool has_modifier(FormId id, ModifierKind kind) {
  const Form& form = form_row(id);
  for (uint32_t i = 0; i < form.mod_count; ++i)
    if (form.mods[i].kind == kind) return true;
  return false;
}
uint8_t modifier(const Instruction& instruction, ModifierKind kind) {
  const Form& form = form_row(instruction.form);
  for (uint32_t i = 0; i < form.mod_count; ++i)
    if (form.mods[i].kind == kind) return instruction.modifiers[i];
  return 0;
}
namespace {
// Volta's conversions have two opcodes, one for 64-bit operands (12 above the other): takes the one that the formats ask for.
void choose_conversion(Instruction& instruction) {
  const Form& form = form_row(instruction.form);
  switch (form.mnemonic) {
    case Mnemonic::F2F:
    case Mnemonic::F2I:
    case Mnemonic::I2F:
    case Mnemonic::FRND: break;
    default: return;
  }
  if (form.pascal) return;
  bool wide = false;
  for (ModifierKind k :
       {ModifierKind::DestFormat, ModifierKind::SourceFormat, ModifierKind::DestSize, ModifierKind::SourceSize})
    wide |= modifier(instruction, k) == 3;
  uint64_t opcode = form.match.lo & 0xfff;
  bool is_wide = (opcode & 0x10) != 0;
  if (wide == is_wide) return;
  opcode = wide ? opcode + 12 : opcode - 12;
  for (uint32_t id : form_index().by_word(Family::volta, opcode))
    if (form_row(static_cast<FormId>(id)).targets == form.targets) instruction.form = static_cast<FormId>(id);
}
}  // namespace

void set_modifier(Instruction& instruction, ModifierKind kind, uint8_t value) {
  const Form& form = form_row(instruction.form);
  for (uint32_t i = 0; i < form.mod_count; ++i)
    if (form.mods[i].kind == kind) {
      instruction.modifiers[i] = value;
      choose_conversion(instruction);
      return;
    }
  CHECK(false, "{} has no modifier {}", form.name, static_cast<int>(kind));
}

// --- make -----------------------------------------------------------------------------------------------------------------------
namespace {

// Whether the slot can hold the operand: kind, sign and size of an immediate.
bool accepts(const Slot& slot, const Operand& o) {
  if (o.kind != OperandKind::address && o.kind != OperandKind::predicate && o.kind != OperandKind::uniform_predicate) {
    if (o.negated && slot.neg == no_bit) return false;
    if (o.absolute && slot.abs == no_bit) return false;
  }
  if (o.part && slot.part == no_bit) return false;
  switch (o.kind) {
    case OperandKind::none: return slot.show != Show::always || slot.initial != 255 || slot.kind == SlotKind::none;
    case OperandKind::gpr: return slot.kind == SlotKind::gpr || slot.style == Style::repeat;
    case OperandKind::predicate:
      return (slot.kind == SlotKind::predicate || slot.kind == SlotKind::predicate_inverted) &&
             (!o.negated || slot.neg != no_bit);
    case OperandKind::uniform: return slot.kind == SlotKind::uniform;
    case OperandKind::uniform_predicate:
      return slot.kind == SlotKind::uniform_predicate && (!o.negated || slot.neg != no_bit);
    case OperandKind::barrier: return slot.kind == SlotKind::barrier;
    case OperandKind::immediate:
      switch (slot.kind) {
        case SlotKind::immediate:
        case SlotKind::immediate_signed:
        case SlotKind::immediate_split:
        case SlotKind::immediate_20:
        case SlotKind::float_20: {
          Word ignored;
          return encode_immediate(slot, o.value, ignored);
        }
        default: return false;
      }
    case OperandKind::constant:
      switch (slot.kind) {
        case SlotKind::constant:
        case SlotKind::constant_20: return o.reg == RZ && (o.value & 3) == 0;
        case SlotKind::constant_bytes: return o.reg == RZ;
        case SlotKind::constant_indexed:
        case SlotKind::constant_ldc: return true;
        default: return false;
      }
    case OperandKind::special: return slot.kind == SlotKind::special;
    case OperandKind::label:
      return slot.kind == SlotKind::label || slot.kind == SlotKind::label_split || slot.kind == SlotKind::label_short ||
             slot.kind == SlotKind::label_pascal || slot.kind == SlotKind::label_absolute;
    case OperandKind::address: {
      if (slot.kind != SlotKind::address) return false;
      bool uniform = o.uniform != URZ || o.descriptor;
      if (uniform != (slot.uniform != no_bit)) return false;
      return !o.descriptor || slot.flag != no_bit;
    }
    case OperandKind::scoreboard: return slot.kind == SlotKind::scoreboard;
  }
  return false;
}

Operand default_operand(const Slot& slot) {
  Operand o;
  switch (slot.kind) {
    case SlotKind::gpr:
      o.kind = OperandKind::gpr;
      o.reg = RZ;
      break;
    case SlotKind::predicate:
    case SlotKind::predicate_inverted:
      o.kind = OperandKind::predicate;
      o.reg = slot.initial == 255 ? PT : slot.initial;
      break;
    case SlotKind::uniform:
      o.kind = OperandKind::uniform;
      o.reg = URZ;
      break;
    case SlotKind::uniform_predicate:
      o.kind = OperandKind::uniform_predicate;
      o.reg = slot.initial == 255 ? PT : slot.initial;
      break;
    case SlotKind::address: o.kind = OperandKind::address; break;
    case SlotKind::none: return o;
    default:
      o.kind = OperandKind::immediate;
      o.value = 0;
      break;
  }
  o.negated = slot.initial_negated;
  return o;
}

// Aligns the operands with the slots, left to right; slots that are not always printed may be skipped.
bool align(const Form& form, std::span<const Operand> operands, Instruction& out) {
  size_t next = 0;
  for (uint32_t k = 0; k < form.slot_count; ++k) {
    const Slot& slot = form.slots[k];
    bool optional = slot.show != Show::always || slot.initial != 255 || slot.kind == SlotKind::none;
    // An optional slot is skipped when the rest would not fit otherwise: fewer operands than slots that must have one.
    if (next < operands.size() && operands[next].kind == OperandKind::none && optional) {
      out.operands[k] = default_operand(slot);
      ++next;
      continue;
    }
    if (next < operands.size() && accepts(slot, operands[next])) {
      size_t must = 0;  // operands needed by the mandatory slots from here on, this one included
      for (uint32_t j = k; j < form.slot_count; ++j)
        must += form.slots[j].show == Show::always && !(form.slots[j].initial != 255) &&
                form.slots[j].kind != SlotKind::none;
      bool mandatory = slot.show == Show::always && slot.initial == 255;
      if (mandatory || operands.size() - next > must) {
        out.operands[k] = operands[next++];
        if (slot.style == Style::repeat) out.operands[k] = {};  // no field: the register is the operand before it
        continue;
      }
    }
    if (!optional) return false;
    out.operands[k] = default_operand(slot);
  }
  return next == operands.size();
}

}  // namespace

bool make(const Target& target, Mnemonic mnemonic, std::span<const Operand> operands, Instruction& instruction) {
  for (uint32_t id : form_index().by_mnemonic(target.family, mnemonic)) {
    const Form& form = form_row(static_cast<FormId>(id));
    if (!(form.targets & target.bit)) continue;
    Instruction made;
    made.form = static_cast<FormId>(id);
    made.mnemonic = mnemonic;
    made.operand_count = form.slot_count;
    for (uint32_t i = 0; i < form.mod_count; ++i) made.modifiers[i] = form.mods[i].initial;
    if (!align(form, operands, made)) continue;
    instruction = made;
    return true;
  }
  return false;
}

// --- Index ----------------------------------------------------------------------------------------------------------------------
const FormIndex& form_index() {
  static const FormIndex index;
  return index;
}

FormIndex::FormIndex() {
  size_t n = form_count();
  mnemonics_.resize(2);
  for (auto& family : mnemonics_) family.resize(mnemonic_count);
  volta_.resize(4096);
  pascal_.resize(256);
  for (uint32_t i = 0; i < n; ++i) {
    const Form& f = form_row(static_cast<FormId>(i));
    mnemonics_[f.pascal][static_cast<size_t>(f.mnemonic)].push_back(i);
    if (f.pascal) {
      for (uint64_t top = 0; top < 256; ++top)
        if ((((top << 56) ^ f.match.lo) & f.mask.lo & (uint64_t{0xff} << 56)) == 0) pascal_[top].push_back(i);
    } else {
      volta_[f.match.lo & 0xfff].push_back(i);
    }
  }
}

}  // namespace rndn::isa
