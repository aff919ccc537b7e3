// Questions about rows and instructions: operand access and width, modifiers; and make(), which finds the row for a mnemonic and operands.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <utility>

#include "assembler/isa/index.h"

namespace rndn::isa {

namespace {
constexpr uint8_t no_position = 255;
}

const Form& form_row(FormId id) {
  static const std::span<const Form> volta = volta_forms(), pascal = pascal_forms();
  const size_t i = index(id);
  CHECK(i < volta.size() + pascal.size(), "form {}", i);
  return i < volta.size() ? volta[i] : pascal[i - volta.size()];
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

namespace {
RegisterFile register_file(const Form& form, uint32_t k) {
  if (k >= form.slot_count) return RegisterFile::none;
  switch (form.slots[k].kind) {
    case SlotKind::gpr:
    case SlotKind::address:
    case SlotKind::constant_indexed:
    case SlotKind::constant_ldc: return RegisterFile::gpr;
    case SlotKind::predicate:
    case SlotKind::predicate_inverted: return RegisterFile::predicate;
    case SlotKind::uniform: return RegisterFile::uniform;
    case SlotKind::uniform_predicate:
    case SlotKind::uniform_predicate_inverted: return RegisterFile::uniform_predicate;
    case SlotKind::barrier: return RegisterFile::barrier;
    default: return RegisterFile::none;
  }
}
}  // namespace
RegisterFile register_file(const Instruction& instruction, uint32_t k) {
  return register_file(form_row(instruction.form), k);
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
// A tile of 64 rows in the registers of 128 threads: half as many each as it has columns.
uint32_t tile_registers(const Form& form, uint8_t shape) {
  const bool steps_of_16 = form.mnemonic == Mnemonic::IGMMA || form.mnemonic == Mnemonic::BGMMA;
  const uint32_t i = form.mnemonic == Mnemonic::IGMMA ? shape / 3u : shape;
  return (steps_of_16 && i > 3 ? 16 * (i - 1) : 8 * (i + 1)) / 2;
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

namespace {
// How many registers a slot names, by the value of one modifier (0 where the row has none).
struct Count {
  ModifierKind by;
  uint32_t (*of)(const Form& form, uint8_t value);
};
Count count_of(const Slot& slot) {
  using K = ModifierKind;
  constexpr auto two_if_3 = [](const Form&, uint8_t v) { return v == 3 ? 2u : 1u; };
  if (slot.style == Style::base_32) return {K::E, [](const Form&, uint8_t) { return 1u; }};
  switch (slot.span) {
    case Span_::one:
      if (slot.kind == SlotKind::address) return {K::E, [](const Form&, uint8_t v) { return v ? 2u : 1u; }};
      break;
    case Span_::two: return {K::E, [](const Form&, uint8_t) { return 2u; }};
    case Span_::four: return {K::E, [](const Form&, uint8_t) { return 4u; }};
    case Span_::size: return {K::Size, [](const Form&, uint8_t v) { return v >= 6 ? 4u : v == 5 ? 2u : 1u; }};
    case Span_::atom: return {K::AtomType, atom_registers};
    case Span_::vector: return {K::AtomType, [](const Form&, uint8_t v) { return vector_registers(v); }};
    case Span_::dest: return {K::DestSize, two_if_3};
    case Span_::source: return {K::SourceSize, two_if_3};
    case Span_::f64_dest: return {K::DestFormat, two_if_3};
    case Span_::f64_source: return {K::SourceFormat, two_if_3};
    case Span_::wide: return {K::Wide, [](const Form&, uint8_t v) { return v ? 2u : 1u; }};
    case Span_::matrices: return {K::Matrices, [](const Form&, uint8_t v) { return 1u << v; }};
    case Span_::tile: return {K::Shape, tile_registers};
    case Span_::half_tile: return {K::Shape, [](const Form& f, uint8_t v) { return tile_registers(f, v) / 2; }};
    case Span_::cas_result: return {K::AtomType, [](const Form&, uint8_t v) { return v ? 2u : 1u; }};
    case Span_::cas: return {K::AtomType, [](const Form&, uint8_t v) { return v ? 4u : 2u; }};
  }
  return {K::E, [](const Form&, uint8_t) { return 1u; }};
}
// Compare-and-swap is of 64 bits by its mode, too.
bool also_by_mode(const Slot& slot) { return slot.span == Span_::cas_result || slot.span == Span_::cas; }
}  // namespace

bool takes_rz(const Instruction& instruction, uint32_t k) {
  const Form& form = form_row(instruction.form);
  return k >= form.slot_count || form.slots[k].style != Style::not_rz;
}

uint32_t register_count(const Instruction& instruction, uint32_t k) {
  const Form& form = form_row(instruction.form);
  if (register_file(form, k) == RegisterFile::none) return 0;
  const Slot& slot = form.slots[k];
  const Count count = count_of(slot);
  uint8_t value = modifier(instruction, count.by);
  if (also_by_mode(slot)) value |= modifier(instruction, ModifierKind::CasMode) & 1;
  return count.of(form, value);
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
  return form_index().plan(id).position[static_cast<size_t>(kind)] != no_position;
}
uint8_t modifier(const Instruction& instruction, ModifierKind kind) {
  const uint8_t at = form_index().plan(instruction.form).position[static_cast<size_t>(kind)];
  return at == no_position ? 0 : instruction.modifiers[at];
}
namespace {
// Volta's conversions have two opcodes, one for 64-bit operands (12 above the other): takes the one that the formats ask for.
void choose_conversion(Instruction& instruction, const Plan& plan) {
  bool wide = false;
  for (ModifierKind k :
       {ModifierKind::DestFormat, ModifierKind::SourceFormat, ModifierKind::DestSize, ModifierKind::SourceSize})
    if (uint8_t at = plan.position[static_cast<size_t>(k)]; at != no_position) wide |= instruction.modifiers[at] == 3;
  if (wide != plan.wide) instruction.form = plan.other_width;
}
// Apart from set_modifier, which needs no room for the message.
[[gnu::noinline, gnu::cold]] void has_no_modifier(const Instruction& instruction, ModifierKind kind) {
  CHECK(false, "{} has no modifier {}", form_row(instruction.form).name, static_cast<int>(kind));
}
}  // namespace

void set_modifier(Instruction& instruction, ModifierKind kind, uint8_t value) {
  const Plan& plan = form_index().plan(instruction.form);
  const uint8_t at = plan.position[static_cast<size_t>(kind)];
  if (at == no_position) [[unlikely]]
    return has_no_modifier(instruction, kind);
  instruction.modifiers[at] = value;
  if (!is_none(plan.other_width)) [[unlikely]]
    choose_conversion(instruction, plan);
}

bool copy_modifiers(const Instruction& from, Instruction& to) {
  const Form& form = form_row(from.form);
  const Plan& plan = form_index().plan(to.form);
  for (uint32_t k = 0; k < form.mod_count; ++k) {
    const uint8_t at = plan.position[static_cast<size_t>(form.mods[k].kind)];
    if (at == no_position) return false;
    to.modifiers[at] = from.modifiers[k];
  }
  to.guard = from.guard, to.guard_negated = from.guard_negated;
  if (!is_none(plan.other_width)) choose_conversion(to, plan);
  return true;
}

const RowFacts& row_facts(FormId form) { return form_index().facts(form); }

// --- make -----------------------------------------------------------------------------------------------------------------------
namespace {

constexpr uint32_t kind_bit(OperandKind k) { return 1u << static_cast<unsigned>(k); }

// The kinds of operand that the slot takes; `none` stands for the slot's default.
uint32_t accepted_kinds(const Slot& slot, bool optional) {
  uint32_t kinds = optional ? kind_bit(OperandKind::none) : 0;
  switch (slot.kind) {
    case SlotKind::none: kinds |= slot.style == Style::repeat ? kind_bit(OperandKind::gpr) : 0; break;
    case SlotKind::gpr: kinds |= kind_bit(OperandKind::gpr); break;
    case SlotKind::predicate:
    case SlotKind::predicate_inverted: kinds |= kind_bit(OperandKind::predicate); break;
    case SlotKind::uniform: kinds |= kind_bit(OperandKind::uniform); break;
    case SlotKind::uniform_predicate:
    case SlotKind::uniform_predicate_inverted: kinds |= kind_bit(OperandKind::uniform_predicate); break;
    case SlotKind::barrier: kinds |= kind_bit(OperandKind::barrier); break;
    case SlotKind::immediate:
    case SlotKind::immediate_signed:
    case SlotKind::immediate_split:
    case SlotKind::half_20:
    case SlotKind::immediate_20:
    case SlotKind::float_20: kinds |= kind_bit(OperandKind::immediate); break;
    case SlotKind::constant:
    case SlotKind::constant_20:
    case SlotKind::constant_bytes:
    case SlotKind::constant_uniform:
    case SlotKind::constant_indexed:
    case SlotKind::constant_ldc: kinds |= kind_bit(OperandKind::constant); break;
    case SlotKind::special: kinds |= kind_bit(OperandKind::special); break;
    case SlotKind::label:
    case SlotKind::label_split:
    case SlotKind::label_short:
    case SlotKind::label_bytes:
    case SlotKind::label_pascal:
    case SlotKind::label_absolute: kinds |= kind_bit(OperandKind::label); break;
    case SlotKind::address: kinds |= kind_bit(OperandKind::address); break;
    case SlotKind::scoreboard: kinds |= kind_bit(OperandKind::scoreboard); break;
  }
  return kinds;
}

// Whether the slot, which takes operands of this kind, can hold the value.
bool takes_value(const Plan::Slot& plan, const Slot& slot, const Operand& o) {
  switch (o.kind) {
    case OperandKind::immediate: {
      if (plan.ranged) return o.value >= plan.least && o.value <= plan.most;
      Word ignored;
      return encode_immediate(slot, o.value, ignored);
    }
    case OperandKind::constant:
      if (slot.kind == SlotKind::constant || slot.kind == SlotKind::constant_20)
        return o.reg == RZ && (o.value & 3) == 0;
      return (slot.kind != SlotKind::constant_bytes && slot.kind != SlotKind::constant_uniform) ||
             (o.reg == RZ && (o.uniform == URZ) == (slot.kind == SlotKind::constant_bytes));
    case OperandKind::address:
      return (o.uniform != URZ || o.descriptor) == plan.has_uniform && (!o.descriptor || plan.has_descriptor);
    default: return true;
  }
}

// Whether the slot can hold the operand: kind, sign and size of an immediate.
bool accepts(const Plan::Slot& plan, const Slot& slot, const Operand& o) {
  if (!(plan.kinds & kind_bit(o.kind))) return false;
  if (o.negated && !plan.negatable && o.kind != OperandKind::address) return false;
  if (o.absolute && !plan.absolute &&
      !(kind_bit(o.kind) &
        (kind_bit(OperandKind::address) | kind_bit(OperandKind::predicate) | kind_bit(OperandKind::uniform_predicate))))
    return false;
  if (o.part && !plan.part) return false;
  return takes_value(plan, slot, o);
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
    case SlotKind::uniform_predicate_inverted:
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
bool align(const Form& form, const Plan& plan, std::span<const Operand> operands, Instruction& out) {
  size_t next = 0;
  for (uint32_t k = 0; k < form.slot_count; ++k) {
    const Plan::Slot& slot = plan.slots[k];
    if (next < operands.size()) {
      const Operand& o = operands[next];
      if (o.kind == OperandKind::none && slot.optional) {
        out.operands[k] = plan.initial.operands[k];
        ++next;
        continue;
      }
      // An optional slot is skipped when the rest would not fit otherwise: fewer operands than slots that must have one.
      if ((slot.mandatory || operands.size() - next > slot.must) && accepts(slot, form.slots[k], o)) {
        out.operands[k] = o;
        if (form.slots[k].style == Style::repeat)
          out.operands[k] = {};  // no field: the register is the operand before it
        ++next;
        continue;
      }
    }
    if (!slot.optional) return false;
    out.operands[k] = plan.initial.operands[k];
  }
  return next == operands.size();
}

Plan plan_of(const Form& form, FormId id) {
  Plan plan;
  plan.form = &form;
  plan.initial.form = id;
  plan.initial.mnemonic = form.mnemonic;
  plan.initial.operand_count = form.slot_count;
  for (uint32_t k = form.slot_count; k-- > 0;) {
    const Slot& slot = form.slots[k];
    Plan::Slot& p = plan.slots[k];
    p.optional = slot.show != Show::always || slot.initial != 255 || slot.kind == SlotKind::none;
    p.mandatory = slot.show == Show::always && slot.initial == 255;
    p.must = static_cast<uint8_t>((p.mandatory && slot.kind != SlotKind::none) +
                                  (k + 1 < form.slot_count ? plan.slots[k + 1].must : 0));
    p.kinds = accepted_kinds(slot, p.optional);
    p.negatable = slot.neg != no_bit;
    p.absolute = slot.abs != no_bit;
    p.part = slot.part != no_bit;
    p.has_uniform = slot.uniform != no_bit;
    p.has_descriptor = slot.flag != no_bit;
    if (slot.kind == SlotKind::immediate || slot.kind == SlotKind::immediate_signed) {  // as encode() has it
      p.ranged = true;
      const int64_t power = int64_t{1} << slot.width;
      p.least = slot.width == 32 || slot.kind == SlotKind::immediate_signed ? -power / 2 : 0;
      p.most = slot.width == 32 || slot.kind == SlotKind::immediate ? power - 1 : power / 2 - 1;
    }
    plan.initial.operands[k] = default_operand(slot);
  }
  plan.position.fill(no_position);
  for (uint32_t i = form.mod_count; i-- > 0;) {
    plan.initial.modifiers[i] = form.mods[i].initial;
    plan.position[static_cast<size_t>(form.mods[i].kind)] = static_cast<uint8_t>(i);
  }
  return plan;
}

FormEncoding encoding_of(const Form& form) {
  FormEncoding e{.form = &form,
                 .targets = form.targets,
                 .slot_count = form.slot_count,
                 .mod_count = form.mod_count,
                 .pascal = form.pascal,
                 .no_guard = form.no_guard,
                 .bits = form.match};
  for (uint32_t i = 0; i < form.mod_count; ++i) {
    const Mod& m = form.mods[i];
    CHECK(m.initial <= bits_mask(m.width + (m.second != no_bit)) && m.texts[m.initial],
          "{} begins with a modifier that it lacks", form.name);
    e.modifiers[i] = m.initial;
    set_bits(e.bits, m.lo, m.width, m.initial);
    if (m.second != no_bit) set_bits(e.bits, m.second, 1, m.initial >> m.width);
  }
  for (uint32_t k = 0; k < form.slot_count; ++k) {
    const Slot& slot = form.slots[k];
    const auto set = [&](OperandKind kind, uint32_t highest, uint8_t flip) {
      FormEncoding::Register& r = e.registers[k];
      r.head = head_of({.kind = kind});
      if (slot.neg != no_bit) r.sign = head_of({.negated = true}), r.negation = slot.neg;
      r.lo = slot.lo;
      r.highest = static_cast<uint8_t>(highest), r.flip = flip;
    };
    switch (slot.kind) {
      case SlotKind::gpr:
        set(OperandKind::gpr, slot.style == Style::not_rz ? RZ - 1 : RZ, 0);
        break;
      case SlotKind::predicate: set(OperandKind::predicate, PT, 0); break;
      case SlotKind::predicate_inverted: set(OperandKind::predicate, PT, 7); break;
      case SlotKind::uniform: set(OperandKind::uniform, URZ, 0); break;
      case SlotKind::uniform_predicate: set(OperandKind::uniform_predicate, PT, 0); break;
      case SlotKind::uniform_predicate_inverted: set(OperandKind::uniform_predicate, PT, 7); break;
      default: break;
    }
  }
  return e;
}

// Volta's conversions: another row has their other operand width.
bool has_two_widths(const Form& f) {
  return !f.pascal && (f.mnemonic == Mnemonic::F2F || f.mnemonic == Mnemonic::F2I || f.mnemonic == Mnemonic::I2F ||
                       f.mnemonic == Mnemonic::FRND);
}

RowFacts facts_of(FormId id) {
  const Form& form = form_row(id);
  RowFacts facts;
  facts.modifier_places.fill(RowFacts::ask);
  if (!has_two_widths(form))
    for (uint32_t i = form.mod_count; i-- > 0;)
      facts.modifier_places[static_cast<size_t>(form.mods[i].kind)] = static_cast<uint8_t>(i);
  Instruction probe;
  probe.form = id;
  for (uint32_t k = 0; k < form.slot_count; ++k) {
    const uint8_t bit = static_cast<uint8_t>(1u << k);
    switch (register_file(probe, k)) {
      case RegisterFile::gpr: facts.gprs |= bit; break;
      case RegisterFile::predicate: facts.predicates |= bit; break;
      case RegisterFile::uniform: facts.uniforms |= bit; break;
      case RegisterFile::uniform_predicate: facts.uniform_predicates |= bit; break;
      case RegisterFile::barrier: facts.other_files |= bit; break;
      case RegisterFile::none: break;
    }
    if (form.slots[k].kind == SlotKind::address) facts.addresses |= bit;
    const Access a = access(probe, k);
    if (a == Access::read || a == Access::read_write) facts.reads |= bit;
    if (a == Access::write || a == Access::read_write) facts.writes |= bit;
    const Count count = count_of(form.slots[k]);
    RowFacts::Width& width = facts.widths[k];
    uint32_t place = 0;
    while (place < form.mod_count && form.mods[place].kind != count.by) ++place;
    const bool depends = place < form.mod_count;
    if (depends) width.modifier = static_cast<uint8_t>(place);
    width.ask = also_by_mode(form.slots[k]) || count.by == ModifierKind::Shape;
    for (uint8_t v = 0; v < 16 && !width.ask; ++v) width.by_value |= (count.of(form, depends ? v : 0) - 1) << 2 * v;
    width.varies = width.ask || width.by_value != (width.by_value & 3) * 0x55555555u;
  }
  for (const bool writes : {false, true}) {
    if (writes) facts.named_reads = facts.named_count;
    const uint8_t set = writes ? facts.writes : facts.reads;
    for (uint8_t k = 0; k < form.slot_count; ++k) {
      const uint8_t bit = static_cast<uint8_t>(1u << k);
      if (!(set & bit & (facts.gprs | facts.predicates | facts.uniforms | facts.uniform_predicates))) continue;
      facts.named[facts.named_count++] = {k, static_cast<uint8_t>(facts.gprs & bit         ? 0
                                                                  : facts.predicates & bit ? 1
                                                                  : facts.uniforms & bit   ? 2
                                                                                           : 3)};
    }
  }
  facts.mnemonic = form.mnemonic;
  facts.latency = form.latency;
  facts.uniform_guard = form.uniform_guard;
  facts.carry = form.pascal || form.mnemonic == Mnemonic::R2P;
  CHECK(facts.named_count + std::popcount(facts.addresses) <= 10, "{} names too many registers", form.name);
  return facts;
}

}  // namespace

bool make(const Target& target, Mnemonic mnemonic, std::span<const Operand> operands, Instruction& instruction) {
  const FormIndex& index = form_index();
  for (uint32_t id : index.by_mnemonic(target.family, mnemonic)) {
    const Plan& plan = index.plan(static_cast<FormId>(id));
    const Form& form = *plan.form;
    if (!(form.targets & target.bit)) continue;
    Instruction made = plan.initial;
    if (!align(form, plan, operands, made)) continue;
    instruction = made;
    return true;
  }
  return false;
}

const RowFacts* make_anew(const Target& target, Mnemonic mnemonic, std::span<const Operand> operands,
                          Instruction& instruction) {
  return make(target, mnemonic, operands, instruction) ? &row_facts(instruction.form) : nullptr;
}

namespace {
bool decided_by_value(OperandKind k) { return k == OperandKind::immediate || k == OperandKind::constant; }
}  // namespace

// Notes the first row that takes operands of these kinds. It is the one that make() finds when it takes their values too: all earlier rows are out for
// the kinds of operand alone, and for whether an address names a uniform register, which the row that is noted asks again. That there is no such
// row is noted, too. Nothing is noted when a value can lead elsewhere.
bool remember(const Target& target, Mnemonic mnemonic, std::span<const Operand> operands, const uint64_t (&kinds)[2],
              FormCache::Entry& e) {
  const FormIndex& index = form_index();
  const auto takes_kind = [](const Plan::Slot& plan, const Slot& slot, const Operand& o) {
    if (!decided_by_value(o.kind)) return accepts(plan, slot, o);
    return (plan.kinds & kind_bit(o.kind)) && (!o.negated || plan.negatable) && (!o.absolute || plan.absolute) &&
           (!o.part || plan.part);
  };
  const auto note = [&](const RowFacts* row) {
    e.kinds[0] = kinds[0], e.kinds[1] = kinds[1], e.row = row;
    e.mnemonic = static_cast<uint16_t>(mnemonic), e.count = static_cast<uint8_t>(operands.size());
    return true;
  };
  e.mnemonic = FormCache::none;
  for (uint32_t id : index.by_mnemonic(target.family, mnemonic)) {
    const Plan& plan = index.plan(static_cast<FormId>(id));
    const Form& form = *plan.form;
    if (!(form.targets & target.bit)) continue;
    // As align() does it, values apart. Where a value refuses a slot that may be left out, the next slot could take the operand.
    size_t next = 0;
    bool fits = true, in_order = true;
    std::array<uint8_t, max_operands> source{};
    uint8_t by_value = 0, defaults = 0;
    for (uint32_t k = 0; k < std::min<uint32_t>(form.slot_count, max_operands) && fits; ++k) {
      const Plan::Slot& slot = plan.slots[k];
      const uint8_t bit = static_cast<uint8_t>(1u << k);
      defaults |= bit;
      if (next < operands.size()) {
        const Operand& o = operands[next];
        if (o.kind == OperandKind::none && slot.optional) {
          ++next;
          continue;
        }
        if ((slot.mandatory || operands.size() - next > slot.must) && takes_kind(slot, form.slots[k], o)) {
          if (form.slots[k].style != Style::repeat) {
            source[k] = static_cast<uint8_t>(next), defaults &= static_cast<uint8_t>(~bit);
            in_order &= next == k;
          }
          if (decided_by_value(o.kind)) {
            if (slot.optional) return false;
            by_value |= bit;
          }
          if (o.kind == OperandKind::address && !o.descriptor) by_value |= bit;  // by its uniform register
          ++next;
          continue;
        }
      }
      fits = slot.optional;
    }
    if (!fits || next != operands.size()) continue;
    e.plan = &plan, e.initial = &plan.initial;
    e.source = source, e.by_value = by_value, e.defaults = defaults, e.in_order = in_order;
    return note(&index.facts(static_cast<FormId>(id)));
  }
  const auto by_value = [](const Operand& o) { return o.kind == OperandKind::address && !o.descriptor; };
  e.by_value = 0;
  return std::none_of(operands.begin(), operands.end(), by_value) && note(nullptr);
}

bool takes_values(const FormCache::Entry& e, const Operand* operands) {
  for (uint32_t set = e.by_value; set; set &= set - 1) {
    const uint32_t k = static_cast<uint32_t>(std::countr_zero(set));
    if (!takes_value(e.plan->slots[k], e.plan->form->slots[k], operands[e.source[k]])) [[unlikely]]
      return false;
  }
  return true;
}

// --- Index ----------------------------------------------------------------------------------------------------------------------
namespace {
// Makes counts of groups their beginnings; returns how many there are in all.
template <class Families>
uint32_t begin_groups(Families& families) {
  uint32_t at = 0;
  for (auto& family : families)
    for (uint32_t& x : family) at += std::exchange(x, at);
  return at;
}
}  // namespace

FormIndex::FormIndex() : made_(form_count()) {
  const uint32_t n = static_cast<uint32_t>(form_count());
  rows_.resize(n);
  // Rows by mnemonic, sorted by counting.
  for (uint32_t i = 0; i < n; ++i) {
    const Form& f = form_row(static_cast<FormId>(i));
    ++first_row_[f.pascal][static_cast<size_t>(f.mnemonic)];
  }
  begin_groups(first_row_);
  auto next_row = first_row_;
  for (uint32_t i = 0; i < n; ++i) {
    const Form& f = form_row(static_cast<FormId>(i));
    rows_[next_row[f.pascal][static_cast<size_t>(f.mnemonic)]++] = i;
  }
}

FormIndex::Row FormIndex::make(FormId id) const {
  const Form& f = form_row(id);
  Row row{plan_of(f, id), facts_of(id), encoding_of(f)};
  if (has_two_widths(f)) {
    const uint64_t opcode = f.match.lo & 0xfff;
    row.plan.wide = (opcode & 0x10) != 0;
    row.plan.other_width = id;
    for (uint32_t other : by_mnemonic(Family::volta, f.mnemonic))
      if (const Form& o = form_row(static_cast<FormId>(other));
          o.targets == f.targets && (o.match.lo & 0xfff) == (row.plan.wide ? opcode - 12 : opcode + 12))
        row.plan.other_width = static_cast<FormId>(other);
  }
  return row;
}

WordIndex::WordIndex() {
  const uint32_t n = static_cast<uint32_t>(form_count());
  // Calls use(opcode) for all values of the bits that the row leaves open, of the 12 bits that decide first.
  const auto for_each_opcode = [](const Form& f, auto&& use) {
    const uint64_t shift = f.pascal ? 52 : 0, open = ~(f.mask.lo >> shift) & 0xfff, fixed = f.match.lo >> shift & 0xfff;
    uint64_t bits = 0;
    do {
      use(fixed | bits);
      bits = (bits - open) & open;
    } while (bits);
  };
  for (uint32_t i = 0; i < n; ++i) {
    const Form& f = form_row(static_cast<FormId>(i));
    for_each_opcode(f, [&](uint64_t opcode) { ++first_[f.pascal][opcode]; });
  }
  candidates_.resize(begin_groups(first_));
  auto next = first_;
  for (uint32_t i = 0; i < n; ++i) {
    const Form& f = form_row(static_cast<FormId>(i));
    for_each_opcode(f, [&](uint64_t opcode) {
      candidates_[next[f.pascal][opcode]++] = {f.match, f.mask, f.targets, static_cast<FormId>(i)};
    });
  }
}

}  // namespace rndn::isa
