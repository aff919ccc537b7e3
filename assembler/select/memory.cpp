// Loads, stores and atomics (selection, both families): addresses, vectors, parameters, and the loop for atomics that the target lacks.
//
// An address is a register and an offset of 24 bits; larger offsets are added first. Vectors of small elements are one access and shifts.
// Copies to shared memory (cp.async) are asynchronous.
#include <algorithm>
#include <utility>

#include "assembler/select/select.h"

namespace rndn::assembler {

using ptx::Opcode;
using ptx::Type;
using OperandKind = ptx::Operand;

namespace {
uint32_t size_code(Type t) {
  switch (t) {
    case Type::u8:
    case Type::b8: return 0;
    case Type::s8: return 1;
    case Type::u16:
    case Type::b16:
    case Type::f16:
    case Type::bf16: return 2;
    case Type::s16: return 3;
    default: return ptx::type_bytes(t) == 4 ? 4 : ptx::type_bytes(t) == 8 ? 5 : 6;
  }
}
}  // namespace

Op Selector::address_of(const ptx::Instruction& i, const ptx::Operand& o) {
  const bool wide = i.mods.space == ptx::Space::global || i.mods.space == ptx::Space::generic;
  const bool descriptor = wide && t_.descriptor_offset;
  if (descriptor) uses_descriptor_ = true;
  const int64_t reach = (int64_t{1} << 23) - 1;
  switch (o.kind) {
    case OperandKind::address_reg: {
      uint32_t r = o.id;
      int64_t offset = o.value;
      while (wide && !is_none(registers_[r].base) && std::abs(offset + registers_[r].offset) <= reach) {
        offset += registers_[r].offset;
        r = index(registers_[r].base);
      }
      if (wide) {
        Op pair = pair_register(words_of(registers_[r]));
        if (std::abs(offset) > reach) {
          Op t = temp(2);
          add64(t.reg, {pair, high_word(pair)}, source64({OperandKind::immediate, false, 0, 0, offset}), false);
          pair = t, offset = 0;
        }
        return address(pair.reg, offset, true, descriptor);
      }
      if (const Op& lo = registers_[r].lo; is_immediate(lo)) return address(isa::RZ, lo.value + offset, false, false);
      Op base = as_register(registers_[r].lo);
      if (std::abs(offset) > reach) {
        Op t = temp();
        add(t.reg, base, immediate(offset));
        base = t, offset = 0;
      }
      return address(base.reg, offset, false, false);
    }
    case OperandKind::address_var:
    case OperandKind::variable: {
      const ptx::Variable& v = m_.variables[o.variable_id()];
      if (v.space == ptx::Space::shared && i.mods.space == ptx::Space::shared)
        return address(isa::RZ, t_.shared_base + shared_.offsets[o.id] + o.value, false, false);
      if (v.space == ptx::Space::local && i.mods.space == ptx::Space::local)
        return address(stack_register, local_.offsets[o.id] + o.value, false, false);
      if (v.space == ptx::Space::global && wide) {
        const bool far = std::abs(o.value) > reach;
        Wide at = source64({OperandKind::variable, false, 0, o.id, far ? o.value : 0});
        return address(at.lo.reg, far ? 0 : o.value, true, descriptor);
      }
      break;
    }
    case OperandKind::address_imm:
      if (!wide) return address(isa::RZ, o.value, false, false);
      return address(pair_register(source64({OperandKind::immediate, false, 0, 0, o.value})).reg, 0, true, descriptor);
    default: break;
  }
  unsupported(i, "address");
  return address(isa::RZ, 0, wide, descriptor);
}

void Selector::memory(const ptx::Instruction& i) {
  const uint32_t bytes = ptx::type_bytes(i.type);
  if (i.op == Opcode::atom || i.op == Opcode::red) {
    if (bytes == 2) return unsupported(i, "atomics of 16 bits");
    // What nobody reads need not come back; but an acquiring one is to have happened before what follows.
    const bool result = i.op == Opcode::atom && p_.operand(i, 0).kind == OperandKind::reg &&
                        (is_read(p_.operand(i, 0)) || i.mods.semantics == ptx::Semantics::acq_rel ||
                         i.mods.semantics == ptx::Semantics::acquire);
    const uint32_t d = result ? destination(p_.operand(i, 0)) : isa::RZ;
    const uint32_t first = i.op == Opcode::atom ? 1 : 0;
    if (one_address_ && atomic_of_warp(i, d, p_.operand(i, first), p_.operand(i, first + 1))) return;
    auto data = [&](uint32_t k) -> Op {
      if (k >= i.operand_count) return Op{};
      return bytes == 8 ? pair_register(source64(p_.operand(i, k))) : as_register(source(p_.operand(i, k), i.type));
    };
    if (bytes == 2) return unsupported(i, "atomics of 16 bits");
    Op at = address_of(i, p_.operand(i, first));
    Op value = data(first + 1), swap = data(first + 2);
    if (i.mods.space == ptx::Space::generic) return generic_atomic(i, d, at, value, swap);
    return atomic(i, d, at, value, swap);
  }
  if (i.op == Opcode::st) {
    const ptx::Operand& value = p_.operand(i, 1);
    const auto put = [&](Op at, Op data, uint32_t size) {
      store(i, at, data, size);
      using S = ptx::Semantics;
      if (error_.empty()) f_.insts.back().pinned = i.mods.semantics != S::none && i.mods.semantics != S::weak;
    };
    if (i.mods.space == ptx::Space::param || i.mods.space == ptx::Space::constant) return unsupported(i);
    Op at = address_of(i, p_.operand(i, 0));
    if (value.kind != OperandKind::vector) {
      Op data = bytes == 8 ? pair_register(source64(value)) : as_register(source(value, i.type));
      return put(at, data, size_code(i.type));
    }
    const uint32_t total = bytes * value.count;
    if (total > 16) return unsupported(i);
    if (bytes < 4) {  // fields of one word or two
      Op word = temp(total <= 4 ? 1 : 2);
      pack(word.reg, value, total);
      return put(at, word, total == 2 ? 2 : total == 4 ? 4 : 5);
    }
    Op data = temp(total / 4);
    for (uint32_t e = 0; e < value.count; ++e) {
      const ptx::Operand& o = p_.vector_elements[value.id + e];
      if (bytes == 4) {
        mov(data.reg + e, source(o, i.type));
      } else {
        Wide w = source64(o);
        mov(data.reg + 2 * e, w.lo);
        mov(data.reg + 2 * e + 1, w.hi);
      }
    }
    return put(at, data, total == 8 ? 5 : 6);
  }
  // Loads.
  const ptx::Operand &o0 = p_.operand(i, 0), &from = p_.operand(i, 1);
  if (i.mods.space == ptx::Space::param || i.mods.space == ptx::Space::constant) return load_bank(i);
  Op at = address_of(i, from);
  if (o0.kind != OperandKind::vector) {
    const uint32_t register_bytes =
        o0.kind == OperandKind::reg ? ptx::type_bytes(p_.registers[o0.reg_id()].type) : bytes;
    const uint32_t d = o0.kind == OperandKind::reg ? destination(o0) : isa::RZ;
    load(i, d, size_code(i.type), at);
    if (register_bytes == 8 && bytes < 8 && d != isa::RZ) fill_high_word(d, i.type);
    return;
  }
  const uint32_t total = bytes * o0.count;
  if (total > 16) return unsupported(i);
  const ptx::Operand* e = &p_.vector_elements[o0.id];
  if (bytes >= 4) {
    const uint32_t words = bytes / 4, width = total / 4;
    bool grouped = true;  // prepare() gave the results consecutive registers
    for (uint32_t k = 0; k < o0.count; ++k)
      grouped &= e[k].kind == OperandKind::reg && registers_[e[k].id].first == registers_[e[0].id].first + k * words &&
                 ptx::type_bytes(p_.registers[e[k].reg_id()].type) == bytes;
    grouped = grouped && f_.gprs[registers_[e[0].id].first - isa::first_virtual].width == width &&
              (registers_[e[0].id].first - isa::first_virtual) ==
                  f_.gprs[registers_[e[0].id].first - isa::first_virtual].first;
    if (grouped) return load(i, registers_[e[0].id].first, width == 2 ? 5 : 6, at);
    Op t = temp(width);
    load(i, t.reg, width == 2 ? 5 : 6, at);
    for (uint32_t k = 0; k < o0.count; ++k)
      if (e[k].kind == OperandKind::reg) {
        const uint32_t d = destination(e[k]);
        for (uint32_t w = 0; w < words; ++w) mov(d + w, gpr(t.reg + k * words + w));
        if (ptx::type_bytes(p_.registers[e[k].reg_id()].type) > bytes) fill_high_word(d, i.type);
      }
    return;
  }
  // Small elements: one access, then fields.
  Op t = temp(total <= 4 ? 1 : 2);
  load(i, t.reg, total == 2 ? 2 : total == 4 ? 4 : 5, at);
  for (uint32_t k = 0; k < o0.count; ++k) {
    if (e[k].kind != OperandKind::reg) continue;
    const uint32_t bit = k * bytes * 8;
    Op word = gpr(t.reg + bit / 32), field = word;
    if (bit % 32) {
      field = temp();
      shift_right(field.reg, word, immediate(bit % 32), false);
    }
    const uint32_t d = destination(e[k]);
    extend(d, field, bytes * 8, ptx::is_signed(i.type));
    if (ptx::type_bytes(p_.registers[e[k].reg_id()].type) == 8) fill_high_word(d, i.type);
  }
}

// A register of 64 bits whose low word holds a value of the narrower type.
void Selector::fill_high_word(uint32_t d, ptx::Type type) {
  if (ptx::is_signed(type))
    shift_right(d + 1, gpr(d), immediate(31), true);
  else
    mov(d + 1, gpr(isa::RZ));
}

// Parameters (bank 0) and .const variables (bank 3): operands where the place is known, else LDC with an index.
void Selector::load_bank(const ptx::Instruction& i) {
  const ptx::Operand &o0 = p_.operand(i, 0), &from = p_.operand(i, 1);
  const uint32_t bytes = ptx::type_bytes(i.type);
  const bool param = i.mods.space == ptx::Space::param;
  const uint32_t bank = param ? 0 : 3;
  Op index = rz;
  int64_t offset = from.value;
  switch (from.kind) {
    case OperandKind::parameter: offset += t_.parameter_base + parameter_offsets_[from.id]; break;
    case OperandKind::address_var:
    case OperandKind::variable:
      if (m_.variables[from.variable_id()].space != ptx::Space::constant || param) return unsupported(i, "address");
      offset += constants_.offsets[from.id];
      break;
    case OperandKind::address_reg: {
      uint32_t id = from.id;
      for (; !is_none(registers_[id].base); id = rndn::index(registers_[id].base)) offset += registers_[id].offset;
      Op base = source({OperandKind::reg, false, 0, id, 0}, Type::u32);
      if (is_immediate(base))
        offset += base.value;
      else
        index = as_register(base);
      break;
    }
    case OperandKind::address_imm:
      if (param) return unsupported(i, "a parameter is addressed by its name");
      break;
    default: return unsupported(i, "address");
  }
  if (index.reg == isa::RZ && offset % std::min(bytes, 4u) != 0)
    return unsupported(i, fmt::format("the address is no multiple of {}", std::min(bytes, 4u)));
  const bool vector = o0.kind == OperandKind::vector;
  const int64_t last = offset + (vector ? (o0.count - 1) * bytes : 0);
  if (index.reg == isa::RZ) {
    if (offset < 0 || last > 65535) return unsupported(i, "address outside the bank");
  } else if (offset < -0x8000 || last > 0x7fff) {  // beyond the field, which has a sign beside a register
    Op t = temp();
    add(t.reg, index, immediate(offset));
    index = t, offset = 0;
  }
  if (vector && index.reg != isa::RZ) {  // which an element may overwrite before the last is loaded
    const Op t = temp();
    mov(t.reg, index);
    index = t;
  }
  for (uint32_t e = 0; e < (vector ? o0.count : 1u); ++e) {
    const auto is_word = [&](uint32_t k) {
      const ptx::Operand& o = p_.vector_elements[o0.id + k];
      return o.kind == OperandKind::reg && ptx::type_bytes(p_.registers[o.reg_id()].type) == 4;
    };
    if (vector && bytes == 4 && index.reg != isa::RZ && e % 2 == 0 && is_word(e) &&
        is_word(e + 1)) {  // two words at once
      const Op pair = temp(2);
      load_constant(pair.reg, bank, offset + e * bytes, index, 5);
      for (uint32_t w = 0; w < 2; ++w) mov(destination(p_.vector_elements[o0.id + e + w]), gpr(pair.reg + w));
      ++e;
      continue;
    }
    const ptx::Operand& o = vector ? p_.vector_elements[o0.id + e] : o0;
    if (o.kind != OperandKind::reg) continue;
    if (!vector && registers_[o.id].alias != Register::none) return;
    const uint32_t d = destination(o), register_bytes = ptx::type_bytes(p_.registers[o.reg_id()].type);
    const int64_t at = offset + e * bytes;
    Op low = bytes < 4 && register_bytes == 8 ? temp() : gpr(d);
    if (index.reg != isa::RZ && bytes == 8) {
      Op pair = temp(2);
      load_constant(pair.reg, bank, at, index, 5);
      mov(d, pair);
      mov(d + 1, gpr(pair.reg + 1));
      continue;
    }
    if (bytes < 4 || index.reg != isa::RZ) {
      load_constant(low.reg, bank, at, index, size_code(i.type));
    } else if (bytes == 8) {
      mov64(d, {constant(bank, at), constant(bank, at + 4)});
    } else {
      mov(low.reg, constant(bank, at));
    }
    if (register_bytes == 8 && bytes < 8) {
      if (low.reg != d) mov(d, low);
      if (ptx::is_signed(i.type))
        shift_right(d + 1, low, immediate(31), true);
      else
        mov(d + 1, rz);
    }
  }
}

// cp.async: LDGSTS copies, LDGDEPBAR ends a group of copies, DEPBAR.LE waits until at most n groups are under way (scoreboard 0: backend/scoreboards.cpp).
//
// Ends and waits run for all lanes, as ptxas takes branches around them and knows no guards: a group more that ends, or a wait more, only makes what is
// waited for more. Of a copy of n bytes the predicate says whether there are any at all, else all become zero; where n lies in between, .ZFILL
// takes the number of bytes that become zero from the lowest bits of the address, which is a multiple of the size otherwise.
void Selector::copy_to_shared(const ptx::Instruction& i) {
  const uint32_t mode = i.mods.mode;
  if (!is_copy(i)) {
    const Op guard = std::exchange(guard_, predicate(isa::PT));
    constexpr uint32_t commit_group = 32, wait_all = 33, wait_group = 64;
    if (mode == commit_group || (mode == wait_all && copies_since_group())) emit(Mnemonic::LDGDEPBAR);
    if (mode != commit_group) {
      const int64_t groups = mode == wait_group ? std::clamp<int64_t>(p_.operand(i, 0).value, 0, 63) : 0;
      emit(Mnemonic::DEPBAR, {Op{.kind = isa::OperandKind::scoreboard}, immediate(groups), immediate(0)});
    }
    guard_ = guard;
    return;
  }
  const int64_t bytes = p_.operand(i, 2).value;
  if (bytes != 4 && bytes != 8 && bytes != 16) return unsupported(i, "the size is 4, 8 or 16 bytes");
  ptx::Instruction from = i, to = i;
  from.mods.space = ptx::Space::global, to.mods.space = ptx::Space::shared;
  Op at = address_of(from, p_.operand(i, 1)), any = pt();
  bool fills = false;
  if (i.operand_count > 3) {
    if (const ptx::Instruction* choice = choice_for(i)) {
      any = source_predicate(p_.operand(*choice, 3));
      any.negated ^= p_.operand(*choice, 1).value == 0;
    } else if (Op copied = source(p_.operand(i, 3), Type::u32); literal(copied)) {
      any = pt(is_zero(copied));
      fills = !is_zero(copied) && copied.value < bytes;
      if (fills) at.value += bytes - copied.value;
    } else {
      const Op left_out = temp(), pair = temp(2);
      copied = as_register(copied);
      any = predicate(temp_predicate());
      add(left_out.reg, immediate(bytes), negate(copied));
      logic(left_out.reg, left_out, immediate(bytes - 1), 0xc0);
      setp(any.reg, isa::PT, Cmp::NE, copied, immediate(0), false, 0, pt());
      add64(pair.reg, {gpr(at.reg), high_word(gpr(at.reg))}, {left_out, rz}, false);
      at.reg = pair.reg;
      fills = true;
    }
  }
  // The instruction has room for offsets of 12 and of 20 bits.
  if (const int64_t near = ((at.value + 2048) & 4095) - 2048; near != at.value) {
    const Op pair = temp(2);
    add64(pair.reg, {gpr(at.reg), high_word(gpr(at.reg))},
          source64({OperandKind::immediate, false, 0, 0, at.value - near}), false);
    at.reg = pair.reg, at.value = near;
  }
  Op place = address_of(to, p_.operand(i, 0));
  if (std::abs(place.value) >= int64_t{1} << 19) {
    const Op sum = temp();
    add(sum.reg, gpr(place.reg), immediate(place.value));
    place.reg = sum.reg, place.value = 0;
  }
  part_from_shared();
  emit(Mnemonic::LDGSTS, {place, at, any})
      .mod(ModifierKind::Bypass, mode != 2 && (mode < 128 || mode % 2 == 0))  // modes 2, 129, 131, 133: .cg
      .mod(ModifierKind::Prefetch, mode < 128 ? 0 : (mode - 128) / 2 + 1)
      .mod(ModifierKind::Size, size_code(bytes == 4   ? Type::b32
                                         : bytes == 8 ? Type::b64
                                                      : Type::b128))
      .mod(ModifierKind::ZFill, fills);
}

// Whether there may be copies that are in no group yet: none behind one that ended in the block.
bool Selector::copies_since_group() const {
  for (size_t k = f_.insts.size(); k-- > placed_;) {
    const Mnemonic m = f_.insts[k].sass.mnemonic;
    if (m == Mnemonic::LDGSTS || m == Mnemonic::LDGDEPBAR) return m == Mnemonic::LDGSTS;
  }
  return true;
}

// The selp that chooses between no bytes and all of the copy's; null: there may be any number of them.
const ptx::Instruction* Selector::choice_for(const ptx::Instruction& copy) {
  if (!knows_choices_)
    for (BlockId b : flow_.layout)
      for (const FlowItem& item : flow_.blocks[b].items)
        if (p_.instructions[item.inst].op == Opcode::selp) choices_.push_back(&p_.instructions[item.inst]);
  knows_choices_ = true;
  const auto found = std::ranges::find_if(choices_, [&](const ptx::Instruction* x) { return chooses(*x, copy); });
  return found == choices_.end() ? nullptr : *found;
}

// Whether the copy's number of bytes is what the selp has chosen, and none or all.
bool Selector::chooses(const ptx::Instruction& selp, const ptx::Instruction& copy) const {
  const ptx::Operand &bytes = p_.operand(copy, 3), &result = p_.operand(selp, 0), &by = p_.operand(selp, 3);
  if (bytes.kind != OperandKind::reg || result.id != bytes.id || by.kind != OperandKind::reg) return false;
  const ptx::Operand &x = p_.operand(selp, 1), &y = p_.operand(selp, 2);
  if (x.kind != OperandKind::immediate || y.kind != OperandKind::immediate) return false;
  const int64_t all = p_.operand(copy, 2).value;
  if ((x.value != 0 || y.value != all) && (y.value != 0 || x.value != all)) return false;
  // The predicate is still what it was then: it has but one value, or there was no time to change it.
  const Register &r = registers_[result.id], &p = registers_[by.id];
  if (r.definitions != 1 || r.read_early) return false;
  if (p.definitions == 1 && !p.read_early) return true;
  const auto at = static_cast<uint32_t>(&copy - p_.instructions.data());
  return &selp + 1 == &copy && std::ranges::none_of(p_.labels.raw(), [&](const ptx::Label& l) { return l.at == at; });
}

// A copy may pass accesses to shared memory that are under way, of this warp or before a barrier, and write what they are yet to read: ptxas puts three
// loads that no lane does between (sm_90: behind loads of constants, too), unless the copy follows another.
void Selector::part_from_shared() {
  using L = isa::LatencyClass;
  const Block& block = f_.blocks[block_];
  bool parted = block_ == flow_.layout[0] && block.code.empty() && block.loop_depth == 0 &&
                t_.has(isa::Feature::entry_parts_copies);
  for (size_t k = f_.insts.size(); k-- > placed_;) {  // of the block
    const isa::Instruction& before = f_.insts[k].sass;
    if (before.mnemonic == Mnemonic::LDGSTS) return;
    const L x = isa::latency_class(before);
    if (x == L::shared_load || x == L::shared_store || x == L::shared_atomic || x == L::barrier ||
        before.mnemonic == Mnemonic::LD || before.mnemonic == Mnemonic::ST || before.mnemonic == Mnemonic::ATOM) {
      parted = false;
      break;
    }
  }
  if (parted) return;
  const Op guard = std::exchange(guard_, predicate(isa::PT));
  for (uint32_t k = 0; k < 3; ++k) {
    emit(Mnemonic::LDS, {rz, address(isa::RZ, 0, false, false)});
    Inst& none = f_.insts.back();
    none.sass.guard_negated = none.pinned = true;
  }
  guard_ = guard;
}

void Selector::prefetch(const ptx::Instruction& i) {
  if (i.mods.space == ptx::Space::local) return;  // a hint; local memory is cached as it is used
  ptx::Instruction at = i;
  at.mods.space = ptx::Space::global;
  Op address = address_of(at, p_.operand(i, 0));
  address.descriptor = false, address.uniform = isa::URZ;
  emit(Mnemonic::CCTL, {address}).mod(ModifierKind::E, 1).mod(ModifierKind::CacheOp, i.mods.mode == 1 ? 0 : 1);
}

// The last of the lanes that are here and that the guard takes. Without a guard it is the same for all of a straight piece of code.
Selector::Leader Selector::leader_of(Op guard) {
  const bool all = guard.reg == isa::PT;
  if (all && leader_.block == block_) return leader_;
  const auto word = [&] { return gpr(new_gpr(f_, 1, !all)); };
  const Leader x = {block_, word(), word(), new_predicate(f_, !all)};
  const Op own = temp();
  emit(Mnemonic::VOTE, {x.here, pt(), guard}).mod(ModifierKind::VoteMode, 1);
  special_register(own.reg, ptx::SpecialRegister::laneid);
  find_leading(x.lane.reg, x.here, false, false);
  setp(x.leads, isa::PT, Cmp::EQ, own, x.lane, false, 0, pt());
  if (all) leader_ = x;
  return x;
}

// An atomic of all lanes that are here, at one address: one lane does it for all, as in the vendor's code. Sums of one literal are the literal times
// the number of lanes, and a lane's result is the leader's and the literal times the lanes before it; other operands are reduced (REDUX), where
// nobody asks for results. Lanes that a guard leaves out bring nothing. False: each lane for itself. Types, spaces and operations are those of
// joins_lanes (divergence.cpp).
bool Selector::atomic_of_warp(const ptx::Instruction& i, uint32_t d, const ptx::Operand& place,
                              const ptx::Operand& operand) {
  using A = ptx::AtomicOp;
  const bool wide = ptx::type_bytes(i.type) == 8, sums = i.mods.atomic == A::add;
  if (options_.level < 2 || (wide && i.mods.space == ptx::Space::shared)) return false;
  if (i.mods.semantics != ptx::Semantics::none && i.mods.semantics != ptx::Semantics::relaxed) return false;
  const Wide value = wide ? source64(operand) : Wide{source(operand, i.type), rz};
  const bool counts = sums && literal(value.lo) && literal(value.hi) && is_zero(value.hi) &&
                      (!wide || amount(value.lo) < uint32_t{1} << 31);
  const bool reduces = !wide && t_.has(isa::Feature::warp_reductions) && d == isa::RZ;
  if (!counts && !reduces) return false;

  const Op guard = std::exchange(guard_, predicate(isa::PT));
  const Op at = address_of(i, place);
  const Leader x = leader_of(guard);
  const Op total = temp(wide ? 2 : 1);
  const auto times_literal = [&](uint32_t to, Op lanes, const Wide& base) {
    if (wide)
      mad_wide(to, lanes, value.lo, base, false);
    else if (amount(value.lo) == 1)
      is_zero(base.lo) ? mov(to, lanes) : add(to, lanes, base.lo);
    else
      mad(to, lanes, value.lo, base.lo);
  };
  if (counts) {
    const Op lanes = temp();
    popc(lanes.reg, x.here);
    times_literal(total.reg, lanes, {rz, rz});
  } else {
    Op brought = as_register(value.lo);
    if (guard.reg != isa::PT) {
      const bool is_signed = ptx::is_signed(i.type);
      const uint32_t neutral = i.mods.atomic == A::and_  ? UINT32_MAX
                               : i.mods.atomic == A::min ? (is_signed ? INT32_MAX : UINT32_MAX)
                               : i.mods.atomic == A::max ? (is_signed ? uint32_t{1} << 31 : 0)
                                                         : 0;
      const Op own = brought;
      brought = gpr(new_gpr(f_, 1, false));
      mov(brought.reg, neutral ? immediate(static_cast<int32_t>(neutral)) : rz);
      guard_ = guard;
      mov(brought.reg, own);
      guard_ = predicate(isa::PT);
    }
    reduce_lanes(total.reg, brought, i.mods.atomic, ptx::is_signed(i.type));
  }
  const uint32_t width = wide ? 2 : 1;
  const Op old = d == isa::RZ ? rz : gpr(new_gpr(f_, width, false));
  if (d != isa::RZ)
    for (uint32_t w = 0; w < width; ++w) mov(old.reg + w, rz);  // of the lanes that do nothing
  guard_ = predicate(x.leads);
  atomic(i, old.reg, at, total, {});
  guard_ = predicate(isa::PT);
  if (d != isa::RZ) {
    const Op first = temp(width), before = temp(), lanes = temp(), mask = temp();
    for (uint32_t w = 0; w < width; ++w) shuffle(first.reg + w, isa::PT, gpr(old.reg + w), x.lane, immediate(31), 0);
    special_register(mask.reg, ptx::SpecialRegister::lanemask_gt);  // the leader is the last lane
    logic(before.reg, x.here, mask, 0xc0);
    popc(lanes.reg, before);
    guard_ = guard;
    times_literal(d, lanes, {first, wide ? high_word(first) : rz});
  }
  guard_ = guard;
  return true;
}

// An atomic at a generic address: the shared window is tested for, all else is global memory.
void Selector::split_atomic(const ptx::Instruction& i, uint32_t d, Op at, Op data, Op swap) {
  Op pair = gpr(at.reg);
  if (at.value) {
    Op t = temp(2);
    add64(t.reg, {pair, high_word(pair)}, source64({OperandKind::immediate, false, 0, 0, at.value}), false);
    pair = t;
  }
  const uint32_t width = ptx::type_bytes(i.type) == 8 ? 2 : 1;
  pair = lasting(pair, 2);
  data = lasting(data, width);
  if (swap.kind != isa::OperandKind::none) swap = lasting(swap, width);
  const uint32_t shared = new_predicate(f_, false);
  is_space(shared, {pair, high_word(pair)}, ptx::Space::shared);
  const RegionId outer = f_.blocks[block_].innermost;
  BlockId in_global = new_block(), in_shared = new_block(), landing = new_block();
  RegionId region = open_region(landing);
  seal_branch(predicate(shared), in_shared, in_global);
  ptx::Instruction part = i;
  part.mods.space = ptx::Space::global;
  start(in_global, region);
  atomic(part, d, address(pair.reg, 0, true, at.descriptor), data, swap);
  seal(landing);
  start(in_shared, region);
  Op offset = temp();
  logic(offset.reg, pair, immediate(0xffffff), 0xc0);  // windows are aligned to their 16 MiB
  part.mods.space = ptx::Space::shared;
  atomic(part, d, address(offset.reg, 0, false, false), data, swap);
  seal(landing);
  join(landing, region);
  f_.blocks[landing].innermost = outer;
}

uint32_t Selector::atom_op(ptx::AtomicOp op) {
  using A = ptx::AtomicOp;
  switch (op) {
    case A::min: return 1;
    case A::max: return 2;
    case A::inc: return 3;
    case A::dec: return 4;
    case A::and_: return 5;
    case A::or_: return 6;
    case A::xor_: return 7;
    case A::exch: return 8;
    default: return 0;
  }
}

void Selector::load_constant(uint32_t d, uint32_t bank, int64_t offset, Op index, uint32_t size) {
  Op c = constant(bank, offset);
  c.reg = index.reg;
  emit(Mnemonic::LDC, {gpr(d), c}).mod(ModifierKind::Size, size);
}

Op Selector::compare_and_swap_data(Op compare, Op swap, bool wide) {
  const uint32_t n = wide ? 2 : 1;
  Op t = temp(2 * n);
  const auto part = [](const Op& o, uint32_t w) { return gpr(o.reg == isa::RZ ? isa::RZ : o.reg + w); };
  for (uint32_t w = 0; w < n; ++w) mov(t.reg + w, part(compare, w)), mov(t.reg + n + w, part(swap, w));
  return t;
}

// --- atomics that the target lacks ----------------------------------------------------------------------------------------------------------

// do old = [at], new = op(old); while another thread came between. No lane waits for another. From Volta on the swap tells whether it was done
// (ATOMS.CAST.SPIN): all lanes at one address are answered together, where what each of them found (ATOMS.CAS) takes as many steps as there are lanes.
void Selector::compare_and_swap_loop(const ptx::Instruction& i, uint32_t d, Op at, Op data) {
  const bool wide = ptx::type_bytes(i.type) == 8;
  const uint32_t width = wide ? 2 : 1;
  // Values that cross blocks are no temporaries.
  Op old = gpr(new_gpr(f_, width, false)), value = gpr(new_gpr(f_, width, false)), base = gpr(at.reg);
  uint32_t done = new_predicate(f_, false);
  if (at.reg != isa::RZ && at.reg >= isa::first_virtual)
    base = gpr(new_gpr(f_, 1, false)), mov(base.reg, gpr(at.reg)), at.reg = base.reg;
  for (uint32_t w = 0; w < width; ++w) mov(value.reg + w, gpr(data.reg == isa::RZ ? isa::RZ : data.reg + w));
  const bool tells = f_.target->family == isa::Family::volta;
  const auto load = [&] { emit(Mnemonic::LDS, {old, at}).mod(ModifierKind::Size, wide ? 5 : 4); };
  if (!tells) load();
  const RegionId outer = f_.blocks[block_].innermost;
  BlockId loop = new_block(), landing = new_block(), after = landing;
  RegionId region = open_region(landing);
  seal(loop);
  start(loop, region);
  ++f_.blocks[loop].loop_depth;
  Op next = gpr(new_gpr(f_, width, false)), seen = gpr(new_gpr(f_, width, false));
  if (tells) load();
  combine(i, next.reg, old, value);
  shared_compare_and_swap(seen.reg, at, old, next, wide);
  const Op low = tells ? immediate(1) : old,
           high = tells ? gpr(isa::RZ) : gpr(old.reg + 1);  // `seen` of who has swapped
  if (wide)
    setp64(done, isa::PT, Cmp::EQ, {seen, gpr(seen.reg + 1)}, {low, high}, false, 0, predicate(isa::PT));
  else
    setp(done, isa::PT, Cmp::EQ, seen, low, false, 0, predicate(isa::PT));
  for (uint32_t w = 0; w < width && !tells; ++w) mov(old.reg + w, gpr(seen.reg + w));
  seal_branch(predicate(done, true), loop, landing);
  join(landing, region);
  f_.blocks[after].innermost = outer;
  if (d != isa::RZ)
    for (uint32_t w = 0; w < width; ++w) mov(d + w, gpr(old.reg + w));
}
void Selector::combine(const ptx::Instruction& i, uint32_t d, Op a, Op b) {
  using A = ptx::AtomicOp;
  const Wide wa{a, high_word(a)}, wb{b, high_word(b)};
  if (i.type == Type::f64) {
    if (i.mods.atomic == A::add)
      emit(Mnemonic::DADD, {gpr(d), a, b});
    else
      unsupported(i);
    return;
  }
  if (i.type == Type::f16x2) {
    emit(Mnemonic::HADD2, {gpr(d), a, b});
    return;
  }
  if (i.type == Type::f32) {
    if (i.mods.atomic == A::add)
      emit(Mnemonic::FADD, {gpr(d), a, b});
    else
      unsupported(i);
    return;
  }
  switch (i.mods.atomic) {
    case A::add: return add64(d, wa, wb, false);
    case A::min:
    case A::max: return min_max64(d, wa, wb, i.mods.atomic == A::max, ptx::is_signed(i.type));
    case A::and_:
    case A::or_:
    case A::xor_: {
      const uint8_t lut = i.mods.atomic == A::and_ ? 0xc0 : i.mods.atomic == A::or_ ? 0xfc : 0x3c;
      logic(d, wa.lo, wb.lo, lut);
      return logic(d + 1, wa.hi, wb.hi, lut);
    }
    default: return unsupported(i);
  }
}

}  // namespace rndn::assembler
