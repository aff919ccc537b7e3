// What threads do together (selection, both families): fences, barriers, shuffles, votes.
//
// In code that may be divergent every .sync operation carries its own WARPSYNC on Volta and later; Pascal's lanes meet only where the stack says so.
//
// On sm_90 a WARPSYNC waits for its lanes at its own place (measured), but lanes of one mask may come to operations of one kind at different places (a
// loop of shuffles that lanes leave at different times, and a shuffle behind it). Where such code has several operations of a kind, lanes whose
// mask is not whole meet the others by WARPSYNC.COLLECTIVE: whoever comes last does the operation for all of them, over registers that are the same
// at every place, the mask's too (an H200 hangs otherwise), and ENDCOLLECTIVE sends every lane back to its own. So do all lanes of the warp for barriers
// of the block, which count warps, where they may come to several of them apart. The blocks between are for nothing else, so that no pass puts
// anything there; everything under way is waited for before and behind (backend/scoreboards.cpp), since another place's code runs in between. Several such
// operations in a straight piece of code ask once whether all lanes are here, and stand in it twice (as in the vendor's code): plain, and each with its
// meeting.
// Open: before sm_90, where nothing was measured, each operation waits at its own place.
#include "assembler/select/select.h"

namespace rndn::assembler {

using ptx::Opcode;
using ptx::Type;
using OperandKind = ptx::Operand;

void Selector::find_meetings() {
  if (!t_.has(isa::Feature::warpsync_collective)) return;
  for (BlockId b : flow_.layout) {
    if (flow_.blocks[b].convergent || !flow_.blocks[b].waits) continue;
    const bool split = flow_.blocks[b].split;
    for (const FlowItem& item : flow_.blocks[b].items)
      if (const ptx::Instruction& i = p_.instructions[item.inst];
          ptx::names_members(i) || (split && ptx::is_block_barrier(i) && !ptx::is_aligned_barrier(i))) {
        if (Meeting* m = same_kind(i))
          ++m->places;
        else
          meetings_.push_back({.kind = &i, .places = 1});
      }
  }
}
Selector::Meeting* Selector::same_kind(const ptx::Instruction& i) {
  for (Meeting& m : meetings_)
    if (m.kind->op == i.op && m.kind->type == i.type && m.kind->mods == i.mods) return &m;
  return nullptr;
}
// Of an operation whose lanes may have to meet others elsewhere; null: it waits, if at all, where it is.
Selector::Meeting* Selector::meeting(const ptx::Instruction& i) {
  if (convergent_ || meetings_.empty()) return nullptr;
  Meeting* m = same_kind(i);
  return m && m->places > 1 ? m : nullptr;
}

static bool names_all(const Op& members) {
  return members.kind == isa::OperandKind::immediate && static_cast<uint32_t>(members.value) == 0xffffffffu;
}
// Waits for the lanes of the mask, unless all have come together before in this straight piece of code: nothing takes them apart in it. False: there was
// nothing to wait for.
bool Selector::come_together(Op members) {
  members = plain(members);
  const bool all = names_all(members);
  if (all && together_ == block_) return false;
  converge(members);
  if (all && guard_.reg == isa::PT) together_ = block_;
  return t_.family == isa::Family::volta;
}

// The mask of an operation that names its lanes.
const ptx::Operand& Selector::members_of(const ptx::Instruction& i) const {
  return p_.operand(i, is_warp_barrier(i) ? 0 : i.operand_count - 1);
}

// How many statements from the first on have one test of whether their lanes are all here: the first and the last of them meet others, of one mask, and
// nothing between takes lanes apart. 0: there is no second one.
size_t Selector::meet_as_one(std::span<const FlowItem> items) {
  const ptx::Instruction& first = p_.instructions[items[0].inst];
  if (convergent_ || meetings_.empty() || !ptx::names_members(first) || !meeting(first)) return 0;
  const ptx::Operand& mask = members_of(first);
  if (mask.kind == OperandKind::reg && registers_[mask.id].definitions > 1) return 0;
  size_t last = 0;
  for (size_t k = 1; k < items.size(); ++k) {
    const ptx::Instruction& i = p_.instructions[items[k].inst];
    if (ptx::names_members(i) && meeting(i)) {
      const ptx::Operand& own = members_of(i);
      if (own.kind != mask.kind || own.id != mask.id || own.value != mask.value) break;
      last = k;
    } else if (expands_to_branches(i)) {
      break;
    }
  }
  return last ? last + 1 : 0;
}

// The statements of meet_as_one: where all lanes of the mask are here, as in code that all of them run together, else each with its own meeting.
void Selector::meet_once(std::span<const FlowItem> items) {
  const ptx::Instruction& first = p_.instructions[items[0].inst];
  current_ = &first;
  guard_ = predicate(isa::PT);
  const RegionId region = f_.blocks[block_].innermost;
  const Op members = plain(source(members_of(first), Type::u32));
  const uint32_t apart = absent(members, guard_);
  const BlockId together = new_block(), alone = new_block(), after = new_block();
  seal_branch(predicate(apart), alone, together);
  start(together, region);
  convergent_ = true;
  for (const FlowItem& item : items) statement(item);
  seal(after);
  start(alone, region);
  convergent_ = false;
  for (const FlowItem& item : items) statement(item);
  seal(after);
  start(after, region);
}

// The mask for several blocks: a literal, or a register that stays.
Op Selector::lasting_members(Op members) {
  members = plain(members);
  return is_immediate(members) ? members : lasting(as_register(members), 1);
}
// A predicate of the lanes here that the guard takes: lanes of the mask are elsewhere.
uint32_t Selector::absent(Op members, Op guard) {
  const Op here = temp();
  const uint32_t apart = new_predicate(f_, false);
  emit(Mnemonic::VOTE, {here, pt(), guard}).mod(ModifierKind::VoteMode, 1);
  f_.insts.back().cooperative = true;
  if (names_all(members)) {
    setp(apart, isa::PT, Cmp::NE, here, members, false, 0, guard);
  } else {
    const Op missing = temp();
    logic(missing.reg, here, members, 0x0c);
    setp(apart, isa::PT, Cmp::NE, missing, rz, false, 0, guard);
  }
  return apart;
}

// d, p = operate(d, p, sources, condition), at once where the mask's lanes are all here, else where the last of them is. The operands were
// prepared without the guard, for lanes that it leaves out, too.
template <class F>
void Selector::meet(Meeting& m, Op members, Op guard, const Brought& brought, uint32_t d, uint32_t p, F&& operate) {
  guard_ = predicate(isa::PT);
  const RegionId region = f_.blocks[block_].innermost;
  members = lasting_members(members);
  std::array<Op, 3> own{};
  size_t sources = 0;
  for (const Op& o : brought.sources) own[sources++] = is_register(o) ? lasting(o, brought.width) : o;
  const uint32_t apart = absent(members, guard);
  const BlockId bring = new_block(), alone = new_block(), after = new_block();
  seal_branch(predicate(apart), bring, alone);
  start(alone, region);
  guard_ = guard;
  operate(d, p, own, brought.condition, true);
  guard_ = predicate(isa::PT);
  seal(after);

  const auto fixed = [&](uint32_t width) {
    const uint32_t r = new_gpr(f_, width, false);
    for (uint32_t w = 0; w < width; ++w) f_.gprs[r - isa::first_virtual + w].unspillable = true;
    return r;
  };
  const auto fixed_predicate = [&] {
    const uint32_t r = new_predicate(f_, false);
    f_.predicates[r - isa::first_virtual].unspillable = true;
    return r;
  };
  if (!m.result) {
    m.members = gpr(fixed(1));
    for (size_t k = 0; k < sources; ++k) m.sources[k] = gpr(fixed(brought.width));
    m.result = fixed(1);
  }
  if (!meeting_condition_) meeting_condition_ = fixed_predicate(), meeting_result_ = fixed_predicate();
  start(bring, region);
  mov(m.members.reg, members);
  for (size_t k = 0; k < sources; ++k)
    for (uint32_t w = 0; w < brought.width; ++w) {
      Op word = own[k];
      if (w) word = high_word(word);
      mov(m.sources[k].reg + w, word);
    }
  const bool conditional = brought.condition.kind == isa::OperandKind::predicate;
  if (conditional) predicate_logic(meeting_condition_, brought.condition, pt(), '&');
  const BlockId enter = new_block(), inside = new_block(), leave = new_block(), back = new_block();
  const auto next = [&](BlockId b) { seal(b), start(b, region); };
  next(enter);
  emit(Mnemonic::WARPSYNC_COLLECTIVE, {m.members, {.kind = isa::OperandKind::label, .value = index(back)}});
  next(inside);
  const size_t first = f_.insts.size();
  operate(m.result, meeting_result_, m.sources, conditional ? predicate(meeting_condition_) : none(), false);
  for (size_t i = first; i < f_.insts.size(); ++i)
    f_.insts[i].pinned = true;  // for lanes of other places, whoever needs the result here
  next(leave);
  emit(Mnemonic::ENDCOLLECTIVE);
  next(back);
  if (d != isa::RZ) mov(d, gpr(m.result));
  if (p != isa::PT) predicate_logic(p, predicate(meeting_result_), pt(), '&');
  next(after);
  f_.collective = true;
}

void Selector::cooperate(const ptx::Instruction& i) {
  Meeting* const m = ptx::names_members(i) ? meeting(i) : nullptr;
  const Op guard = guard_;
  if (m) guard_ = predicate(isa::PT);
  using Sources = std::array<Op, 3>;
  switch (i.op) {
    case Opcode::membar: return fence(i.mods.scope, true);
    case Opcode::griddepcontrol: emit(i.mods.mode == 1 ? Mnemonic::PREEXIT : Mnemonic::ACQBULK); return;
    case Opcode::fence:
      if (i.mods.mode == 1) return fence(ptx::Scope::sys, true);  // proxy.alias: ptxas fences likewise
      if (i.mods.mode >= 32) return fence(ptx::Scope::gpu, false);
      return fence(i.mods.scope, i.mods.semantics == ptx::Semantics::sc);
    case Opcode::bar:
    case Opcode::barrier: {
      if (is_warp_barrier(i)) {
        if (m)
          meet(*m, source(p_.operand(i, 0), Type::u32), guard, {}, isa::RZ, isa::PT,
               [&](uint32_t, uint32_t, const Sources&, const Op&, bool) { emit(Mnemonic::NOP); });
        else if (convergent_ || !come_together(source(p_.operand(i, 0), Type::u32)))
          emit(Mnemonic::NOP);  // as ptxas: nothing to wait for, but memory accesses stay on their sides
        return;
      }
      return block_barrier(i);
    }
    case Opcode::shfl: {
      const uint32_t d = destination(p_.operand(i, 0));
      uint32_t p = isa::PT, first = i.destination_count;
      if (i.destination_count > 1 && is_read(p_.operand(i, 1)))  // else shuffles would wait for each other
        p = registers_[p_.operand(i, 1).id].first;
      Op a = as_register(source(p_.operand(i, first), Type::b32));
      Op lane = source(p_.operand(i, first + 1), Type::u32), clamp = source(p_.operand(i, first + 2), Type::u32);
      if (is_zero(lane)) lane = immediate(0);
      if (is_zero(clamp)) clamp = immediate(0);
      if (lane.kind == isa::OperandKind::constant) lane = as_register(lane);
      if (clamp.kind == isa::OperandKind::constant) clamp = as_register(clamp);
      if (is_immediate(lane)) lane.value &= 31;
      if (is_immediate(clamp)) clamp.value &= 0x1fff;
      using S = ptx::ShuffleMode;
      const uint32_t mode = i.mods.shuffle == S::idx    ? 0
                            : i.mods.shuffle == S::up   ? 1
                            : i.mods.shuffle == S::down ? 2
                                                        : 3;
      const auto operate = [&](uint32_t to, uint32_t in_range, const Sources& x, const Op&, bool) {
        shuffle(to, in_range, x[0], x[1], x[2], mode);
        f_.insts.back().cooperative = true;
      };
      if (m) return meet(*m, source(p_.operand(i, first + 3), Type::u32), guard, {{a, lane, clamp}}, d, p, operate);
      if (!convergent_) come_together(source(p_.operand(i, first + 3), Type::u32));
      return operate(d, p, {a, lane, clamp}, {}, true);
    }
    case Opcode::vote: {
      const uint32_t d = destination(p_.operand(i, 0));
      const Op p = source_predicate(p_.operand(i, 1));
      const bool ballot = i.mods.vote == ptx::VoteMode::ballot;
      if (i.operand_count < 3) return vote(i, d, p);
      Op members = plain(source(p_.operand(i, 2), Type::u32));
      if (m) {
        members = lasting_members(members);
        return meet(*m, members, guard, {.sources = {}, .condition = p}, ballot ? d : isa::RZ, ballot ? isa::PT : d,
                    [&](uint32_t to, uint32_t p_to, const Sources&, const Op& condition, bool here) {
                      const uint32_t result = ballot ? to : p_to;
                      here ? vote_of(members, i, result, condition) : vote(i, result, condition);
                    });
      }
      if (!convergent_) come_together(members);
      return vote_of(members, i, d, p);
    }
    case Opcode::activemask: return vote(i, destination(p_.operand(i, 0)), predicate(isa::PT));
    default: unsupported(i);
  }
}

// bar.sync, bar.arrive, bar.red and their barrier forms. Without a mask, all of the block's threads that have not exited.
void Selector::block_barrier(const ptx::Instruction& i) {
  const bool reduce = i.mods.mode >= 64;
  const bool arrive = i.op == Opcode::bar ? i.mods.mode == 1 : i.mods.mode == 32;
  const uint32_t first = i.destination_count;
  const uint32_t numbers = i.operand_count - first - (reduce ? 1 : 0);
  Op id = plain(source(p_.operand(i, first), Type::u32)), count;
  if (is_register(id) && id.reg == isa::RZ) id = immediate(0);
  if (is_immediate(id)) {
    if (id.value < 0 || id.value > 15) return unsupported(i, "there are 16 barriers");
    f_.barriers = std::max(f_.barriers, static_cast<uint32_t>(id.value) + 1);
  } else {
    id = as_register(id);
    f_.barriers = 16;
  }
  if (numbers > 1) {
    count = plain(source(p_.operand(i, first + 1), Type::u32));
    if (is_zero(count)) return unsupported(i, "a barrier for no threads");
    if (!is_immediate(count)) count = as_register(count);
  }
  const auto packed = [&] {  // both in one register
    Op number = id, threads = count.kind == isa::OperandKind::none ? immediate(0) : count;
    if (is_immediate(number) && is_immediate(threads)) return immediate(threads.value << 16 | number.value);
    if (is_register(number)) number = temp(), logic(number.reg, id, immediate(15), 0xc0);
    if (is_immediate(threads))
      threads.value <<= 16;
    else
      threads = temp(), shift_left(threads.reg, count, immediate(16));
    const Op both = temp();
    if (is_register(number))
      logic(both.reg, number, threads, 0xfc);
    else
      logic(both.reg, threads, number, 0xfc);
    return both;
  };
  const uint32_t reduction = !reduce || i.mods.mode == 64 ? 0 : i.mods.mode == 96 ? 1 : 2;
  uint32_t d = isa::RZ, p = isa::PT;
  if (const ptx::Operand& o = p_.operand(i, 0); reduce && o.kind == OperandKind::reg)
    (reduction ? p : d) = registers_[o.id].first;
  const Op value = reduce ? source_predicate(p_.operand(i, i.operand_count - 1)) : Op{};
  const auto run = [&](uint32_t to, uint32_t p_to, Op number, Op threads, const Op& condition) {
    if (arrive)
      barrier_arrive(number, threads);
    else if (reduce)
      barrier_reduce(to, p_to, number, threads, condition, reduction);
    else
      barrier(number, threads);
  };
  // A barrier counts whole warps (ptxas gathers them likewise).
  Meeting* const m = split_ && !ptx::is_aligned_barrier(i) ? meeting(i) : nullptr;
  if (m) {
    const Op number = as_register(packed());
    return meet(*m, immediate(-1), guard_, {.sources = {number}, .condition = value}, d, p,
                [&](uint32_t to, uint32_t p_to, const std::array<Op, 3>& x, const Op& condition, bool here) {
                  const bool fixed = here && is_immediate(id) && !is_register(count);
                  fixed ? run(to, p_to, id, count, condition) : run(to, p_to, x[0], x[0], condition);
                });
  }
  if (is_register(id) && is_register(count)) id = count = packed();
  if (split_) converge(immediate(-1));
  run(d, p, id, count, value);
}

// Runs `body` for the lanes of the mask alone, all of them together. Where the warp is known to be whole, that is all of it. Else the lanes meet at
// WARPSYNC.EXCLUSIVE, and no others of the warp run until the region's end. sm_75 has no such thing: others may be there, too.
template <class F>
void Selector::exclusively(const ptx::Operand& mask, F&& body) {
  Op m = plain(source(mask, Type::u32));
  if (convergent_ && names_all(m)) return body();
  if (!t_.has(isa::Feature::warpsync_exclusive)) {
    if (!convergent_) come_together(m);
    return body();
  }
  const RegionId outer = f_.blocks[block_].innermost;
  m = lasting(as_register(m), 1);
  BlockId alone = new_block(), landing = new_block();
  RegionId region = open_region(landing);
  seal(alone);
  start(alone, region);
  emit(Mnemonic::WARPSYNC, {m}).mod(ModifierKind::Exclusive, 1);
  body();
  seal(landing);
  join(landing, region);
  f_.blocks[landing].innermost = outer;
}

void Selector::match(const ptx::Instruction& i) {
  const uint32_t d = destination(p_.operand(i, 0)), first = i.destination_count;
  const bool wide = is_wide(i.type), all = i.mods.mode == 32;
  const uint32_t p =
      first > 1 && p_.operand(i, 1).kind == OperandKind::reg ? registers_[p_.operand(i, 1).id].first : isa::PT;
  Op a = wide ? pair_register(source64(p_.operand(i, first))) : as_register(source(p_.operand(i, first), Type::b32));
  a = lasting(a, wide ? 2 : 1);
  const ptx::Operand& mask = p_.operand(i, first + 1);
  const bool alone = t_.has(isa::Feature::warpsync_exclusive);  // no other lanes than members run
  const auto of_members = [&](Op lanes) {
    const Op members = plain(source(mask, Type::u32));
    if (alone || names_all(members)) return lanes;
    const Op own = temp();
    logic(own.reg, lanes, members, 0xc0);
    return own;
  };
  const auto find = [&](uint32_t to, uint32_t p_to, Op from) {
    if (all && t_.has(isa::Feature::match_all)) {
      emit(Mnemonic::MATCH, {predicate(p_to), gpr(to), from})
          .mod(ModifierKind::MatchMode, 0)
          .mod(ModifierKind::Wide, wide);
      return;
    }
    if (!all) {
      const Op same = alone ? gpr(to) : temp();
      emit(Mnemonic::MATCH, {none(), same, from}).mod(ModifierKind::MatchMode, 1).mod(ModifierKind::Wide, wide);
      if (!alone) mov(to, of_members(same));
      return;
    }
    Op same = temp(), here = temp();
    uint32_t equal = temp_predicate();
    emit(Mnemonic::VOTE, {here, pt(), pt()}).mod(ModifierKind::VoteMode, 1);
    emit(Mnemonic::MATCH, {none(), same, from}).mod(ModifierKind::MatchMode, 1).mod(ModifierKind::Wide, wide);
    same = of_members(same), here = of_members(here);
    setp(equal, isa::PT, Cmp::EQ, same, here, false, 0, pt());
    select(to, here, rz, predicate(equal));
    if (p_to != isa::PT) predicate_logic(p_to, predicate(equal), pt(), '&');
  };
  Meeting* const m = meeting(i);
  if (!m) return exclusively(mask, [&] { find(d, p, a); });
  meet(*m, source(mask, Type::u32), guard_, {{a}, wide ? 2u : 1u}, d, p,
       [&](uint32_t to, uint32_t p_to, const std::array<Op, 3>& x, const Op&, bool here) {
         here ? exclusively(mask, [&] { find(to, p_to, x[0]); }) : find(to, p_to, x[0]);
       });
}

// Of all lanes that are here (sm_80 and later).
void Selector::reduce_lanes(uint32_t to, Op from, ptx::AtomicOp op, bool is_signed) {
  using A = ptx::AtomicOp;
  uint32_t code = 0;
  switch (op) {
    case A::or_: code = 1; break;
    case A::xor_: code = 2; break;
    case A::add: code = 3; break;
    case A::min: code = 4; break;
    case A::max: code = 5; break;
    default: break;  // and
  }
  const Op result = uniform(scratch_uniform);
  emit(Mnemonic::REDUX, {result, from}).mod(ModifierKind::ReduceOp, code).mod(ModifierKind::Signed, is_signed);
  emit(Mnemonic::MOV, {gpr(to), result});
}

void Selector::reduce_warp(const ptx::Instruction& i) {
  const uint32_t d = destination(p_.operand(i, 0));
  Op a = lasting(as_register(source(p_.operand(i, 1), i.type)), 1);
  const auto reduce = [&](uint32_t to, Op from) { reduce_lanes(to, from, i.mods.atomic, ptx::is_signed(i.type)); };
  const ptx::Operand& mask = p_.operand(i, 2);
  Meeting* const m = meeting(i);
  if (!m) return exclusively(mask, [&] { reduce(d, a); });
  meet(*m, source(mask, Type::u32), guard_, {{a}}, d, isa::PT,
       [&](uint32_t to, uint32_t, const std::array<Op, 3>& x, const Op&, bool here) {
         here ? exclusively(mask, [&] { reduce(to, x[0]); }) : reduce(to, x[0]);
       });
}

void Selector::shuffle(uint32_t d, uint32_t p, Op a, Op lane, Op clamp, uint32_t mode) {
  emit(Mnemonic::SHFL, {predicate(p), gpr(d), a, lane, clamp}).mod(ModifierKind::ShuffleMode, mode);
}

void Selector::vote(const ptx::Instruction& i, uint32_t d, Op p) {
  using V = ptx::VoteMode;
  switch (i.op == Opcode::activemask ? V::ballot : i.mods.vote) {
    case V::ballot: emit(Mnemonic::VOTE, {gpr(d), pt(), p}).mod(ModifierKind::VoteMode, 1); break;
    case V::all: emit(Mnemonic::VOTE, {none(), predicate(d), p}).mod(ModifierKind::VoteMode, 0); break;
    case V::any: emit(Mnemonic::VOTE, {none(), predicate(d), p}).mod(ModifierKind::VoteMode, 1); break;
    case V::uni: emit(Mnemonic::VOTE, {none(), predicate(d), p}).mod(ModifierKind::VoteMode, 2); break;
    default: return unsupported(i);
  }
  if (error_.empty()) f_.insts.back().cooperative = true;
}

// A vote of the lanes that the mask names; VOTE asks all that are here, among them those of other masks (tiles of a warp).
void Selector::vote_of(Op members, const ptx::Instruction& i, uint32_t d, Op p) {
  using V = ptx::VoteMode;
  if (names_all(members)) return vote(i, d, p);
  const auto those_for = [&](Op condition, uint32_t to) {
    const Op here = temp();
    emit(Mnemonic::VOTE, {here, pt(), condition}).mod(ModifierKind::VoteMode, 1);
    f_.insts.back().cooperative = true;
    logic(to, here, members, 0xc0);
    return gpr(to);
  };
  const auto none_for = [&](Op condition, uint32_t to, Cmp compare) {
    setp(to, isa::PT, compare, those_for(condition, temp().reg), rz, false, 0, pt());
    return predicate(to);
  };
  Op against = p;
  against.negated = !against.negated;
  switch (i.mods.vote) {
    case V::ballot: those_for(p, d); return;
    case V::any: none_for(p, d, Cmp::NE); return;
    case V::all: none_for(against, d, Cmp::EQ); return;
    case V::uni: {
      const Op nobody = none_for(p, temp_predicate(), Cmp::EQ);
      return predicate_logic(d, nobody, none_for(against, temp_predicate(), Cmp::EQ), '|');
    }
    default: return unsupported(i);
  }
}

// Where bank 0 has the sizes of block and grid.
uint32_t Selector::bank_of(ptx::SpecialRegister r) const {
  using S = ptx::SpecialRegister;
  switch (r) {
    case S::ntid_x: return t_.ntid_offset;
    case S::ntid_y: return t_.ntid_offset + 4;
    case S::ntid_z: return t_.ntid_offset + 8;
    case S::nctaid_x: return t_.nctaid_offset;
    case S::nctaid_y: return t_.nctaid_offset + 4;
    case S::nctaid_z: return t_.nctaid_offset + 8;
    default: return no_bank;
  }
}

void Selector::special_register(uint32_t d, ptx::SpecialRegister r) {
  using S = ptx::SpecialRegister;
  auto s2r = [&](uint32_t number) { emit(Mnemonic::S2R, {gpr(d), special(number)}); };
  if (const uint32_t at = bank_of(r); at != no_bank) return mov(d, constant(0, at));
  switch (r) {
    case S::tid_x: return s2r(0x21);
    case S::tid_y: return s2r(0x22);
    case S::tid_z: return s2r(0x23);
    case S::ctaid_x: return s2r(0x25);
    case S::ctaid_y: return s2r(0x26);
    case S::ctaid_z: f_.uses_ctaid_z = true; return s2r(0x27);
    case S::laneid: return s2r(0x00);
    case S::lanemask_eq: return s2r(0x38);
    case S::lanemask_lt: return s2r(0x39);
    case S::lanemask_le: return s2r(0x3a);
    case S::lanemask_gt: return s2r(0x3b);
    case S::lanemask_ge: return s2r(0x3c);
    default: return family_register(d, r);
  }
}

}  // namespace rndn::assembler
