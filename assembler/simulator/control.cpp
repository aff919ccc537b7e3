// Control flow: divergence and reconvergence of the lanes of a warp, barriers between the warps of a block.
//
// Volta and later (docs/sass.md, section 5): every lane has its own pc; lanes with one pc run as a group. A divergent branch splits the
// group; BSYNC makes a group wait for the lanes that BSSY recorded and that have neither left (BREAK) nor exited, and joins them. A lane that
// went on behind a BSYNC, or that opened the region anew, is waited for no more by groups that it opened it with earlier (programs in
// which lanes come to one region at different times, made by us and by ptxas, end on an H200).
// Groups at the same pc are joined only there, at WARPSYNC and at BAR, as nothing else promises it.
// Nor does BSYNC wait for lanes that stand at a WARPSYNC of any kind and mask (measured on an H200; ptxas's code for sm_86 ends only so, too: for lanes on
// the way to a WARPSYNC it leaves out BREAK where a branch leaves a region, `for (..) { if (a) { ..; if (b) break; } } __syncthreads();`).
// Options::joins_wait_for_all takes that back: our code needs none of it.
// On sm_90 lanes at WARPSYNCs of different places do not meet: one waits for its lanes at its own address (measured on an H200 for all lanes, for those of
// a register and for .EXCLUSIVE; it hangs otherwise). Before sm_90, where nothing was measured, they meet here; ptxas keeps one place in a
// function of its own for masks of some lanes, and none for all lanes. Each lane waits for those of its own mask.
// Lanes are gathered in two more ways (seen on an H200; before sm_90 there is the first alone, and ptxas's code relies on it). WARPSYNC.EXCLUSIVE splits the
// group by the lanes' masks; each part goes on with the lanes of its mask and no others, and no other group of the warp runs before its next wait.
// WARPSYNC.COLLECTIVE does the same, but lanes may come from different places: those of the last group to arrive are where all of them go on, as
// one, until ENDCOLLECTIVE sends every lane to the target that its own WARPSYNC named. They must name the mask by one register: with two an
// H200 hangs. WARPSYNC.COLLECTIVE.ALL waits for all lanes (those of two places meet on an H100).
// Pascal (docs/sass.md, section 5): a stack per warp. SSY, PBK, PCNT, CAL and PRET push a target with the active lanes; a divergent branch
// pushes its other side. Lanes that SYNC, BRK, CONT or RET wait; when none is active, the top entry is resumed with those of its lanes
// that have not left it.
#include <algorithm>

#include "assembler/simulator/driver_calls.h"
#include "assembler/simulator/lanes.h"
#include "assembler/simulator/races.h"
#include "assembler/simulator/select.h"

namespace rndn::sim {

using isa::Mnemonic;
using isa::ModifierKind;

bool pick_group(Warp& w) {
  for (size_t i = w.groups.size(); i-- > 0;) {
    if (w.groups[i].wait != Wait::ready) continue;
    w.pc = w.groups[i].pc;
    w.active = w.groups[i].mask;
    w.alone = w.groups[i].sync != 0;
    w.groups.erase(w.groups.begin() + static_cast<ptrdiff_t>(i));
    return true;
  }
  return false;
}

namespace {

bool on_stack(const Warp& w) { return w.launch->program->target->family == isa::Family::pascal; }

void leave_barrier(Warp& w, uint32_t barrier, uint32_t mask) {
  for (uint32_t& members : w.barriers[barrier]) members &= ~mask;
}

// Whether the group stands at a WARPSYNC of any kind, and BSYNC does not wait for it.
bool waits_for_others(const Warp& w, const Group& g) {
  return (g.wait == Wait::warpsync || g.wait == Wait::collective || g.wait == Wait::exclusive) &&
         !w.launch->options.joins_wait_for_all;
}

bool goes_on_alone(Wait wait) { return wait == Wait::exclusive || wait == Wait::collective; }

// Joins waiting groups whose condition holds; called whenever lanes arrive, break or exit.
void join_groups(Warp& w) {
  const bool one_place = w.launch->program->target->has(isa::Feature::meets_at_one_place);
  const auto mask_of = [&](const Group& g) { return w.launch->program->ops[g.pc - 1].a.offset; };  // of its register
  for (bool changed = true; changed;) {
    changed = false;
    for (const Group& g : w.groups) {
      if (g.wait == Wait::ready || g.wait == Wait::barrier) continue;
      const bool convergence = g.wait == Wait::convergence, collective = g.wait == Wait::collective;
      const auto together = [&](const Group& other, const Group& with) {
        if (other.wait != with.wait) return false;
        const bool here = other.pc == with.pc;
        if (other.sync != with.sync) return false;
        return here || (!convergence && (collective ? mask_of(other) == mask_of(with) : !one_place));
      };
      uint32_t arrived = 0;
      for (const Group& other : w.groups)
        if (together(other, g) || (convergence && waits_for_others(w, other))) arrived |= other.mask;
      const uint32_t needed = (convergence ? w.barriers[g.sync][std::countr_zero(g.mask)] : g.sync) & w.alive;
      if ((needed & ~arrived) != 0) continue;
      // All have come. Groups that stand at one pc go on as one.
      const Group key = g;
      std::vector<Group> ready, rest;
      for (const Group& other : w.groups) {
        if (!together(other, key)) {
          rest.push_back(other);
          continue;
        }
        const auto same =
            std::find_if(ready.begin(), ready.end(), [&](const Group& r) { return collective || r.pc == other.pc; });
        if (same == ready.end()) {
          ready.push_back({other.pc, other.mask, Wait::ready, goes_on_alone(key.wait)});
        } else {
          same->mask |= other.mask;
          same->pc = other.pc;  // groups stand in the order in which they came
        }
      }
      rest.insert(rest.end(), ready.begin(), ready.end());
      w.groups = std::move(rest);
      uint32_t joined = 0;
      for (const Group& r : ready) {
        if (convergence) leave_barrier(w, key.sync, r.mask);
        joined |= r.mask;
      }
      if (!convergence && w.block->races) w.block->races->synchronise(w, joined);
      changed = true;
      break;
    }
  }
}

}  // namespace

Status wait_group(Warp& w, Wait wait, uint32_t sync, uint32_t mask, uint32_t pc) {
  w.groups.push_back({pc, mask, wait, sync});
  w.active &= ~mask;
  if (wait != Wait::barrier) {
    // Usually everybody is here: go on at once.
    if (w.groups.size() == 1 && w.active == 0) {
      const uint32_t needed = (wait == Wait::convergence ? w.barriers[sync][std::countr_zero(mask)] : sync) & w.alive;
      if ((needed & ~mask) == 0) {
        w.groups.clear();
        if (wait == Wait::convergence)
          leave_barrier(w, sync, mask);
        else if (w.block->races)
          w.block->races->synchronise(w, mask);
        w.active = mask;
        w.pc = pc;
        w.alone = goes_on_alone(wait);
        return Status::go;
      }
    }
    join_groups(w);
  }
  return w.active ? Status::go : Status::reschedule;
}

void exit_lanes(Warp& w, uint32_t mask) {
  w.alive &= ~mask;
  w.active &= ~mask;
  for (StackEntry& e : w.stack) e.mask &= ~mask;
  if (!w.groups.empty()) join_groups(w);
  // A warp arrives at a barrier when all lanes that are left have.
  for (Barrier& b : w.block->barriers) {
    uint32_t& arrived = b.arrived[w.number];
    if (arrived && w.alive && (w.alive & ~arrived) == 0) {
      arrived = 0;
      b.count += lanes;
    }
  }
}

void arrive(Warp& w, uint32_t id, uint32_t threads, uint32_t mask, uint32_t votes) {
  Barrier& b = w.block->barriers[id];
  if (on_stack(w)) mask = w.alive;
  b.expected = threads;
  b.votes += std::popcount(votes & mask);
  b.red_and &= (mask & ~votes) == 0;
  b.red_or |= (mask & votes) != 0;
  if (w.block->races) w.block->races->arrive(w, mask, id);
  uint32_t& arrived = b.arrived[w.number];
  arrived |= mask;
  if ((w.alive & ~arrived) == 0) {
    arrived = 0;
    b.count += lanes;
  }
}

void release_barriers(Block& block) {
  uint32_t live = 0;
  for (const Warp& w : block.warps) live += w.alive != 0;
  for (uint32_t id = 0; id < block.barriers.size(); ++id) {
    Barrier& b = block.barriers[id];
    if (b.count == 0) continue;
    const uint32_t needed = b.expected ? b.expected : live * lanes;
    if (b.count < needed) continue;
    b.count = 0;
    const bool whole_warps = on_stack(block.warps[0]);
    for (Warp& w : block.warps) {
      std::vector<Group> kept;
      for (const Group& g : w.groups) {
        Group next = g;
        if (g.wait == Wait::barrier && g.sync == id) {
          w.barrier_count = b.votes;
          w.barrier_predicate = b.reduction == 2 ? b.red_or : b.red_and;
          next.wait = Wait::ready;
          if (block.races) block.races->leave(w, whole_warps ? w.alive : g.mask, id);
          const auto same = std::find_if(kept.begin(), kept.end(),
                                         [&](const Group& k) { return k.wait == Wait::ready && k.pc == next.pc; });
          if (same != kept.end()) {
            same->mask |= next.mask;
            continue;
          }
        }
        kept.push_back(next);
      }
      w.groups = std::move(kept);
    }
    if (block.races) block.races->open(id);
    b.votes = 0, b.red_and = 1, b.red_or = 0;
  }
}

Status pop_stack(Warp& w) {
  while (w.active == 0 && !w.stack.empty()) {
    w.active = w.stack.back().mask & w.alive;
    w.pc = w.stack.back().pc;
    w.stack.pop_back();
  }
  return w.active ? Status::go : Status::reschedule;
}

namespace {

Status jump(Warp& w, const Op& op, uint32_t taken, uint32_t target) {
  if (target >= w.launch->program->size())
    return fail(w, op, std::countr_zero(taken), "branch to an address that holds no instruction");
  const uint32_t rest = w.active & ~taken;
  if (rest) {
    ++w.tally->counters.divergent_branches;
    if (on_stack(w)) {
      if (w.stack.size() > 4096) return fail(w, op, std::countr_zero(taken), "the divergence stack overflows");
      w.stack.push_back({Push::divergence, w.pc, rest});
    } else {
      w.groups.push_back({w.pc, rest, Wait::ready, 0});
    }
    w.active = taken;
  }
  w.pc = target;
  return Status::go;
}

Status bra(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t taken = mask & lane_mask(w, op.ps);
  return taken ? jump(w, op, taken, op.target) : Status::go;
}

// BRA.U: all active lanes go or none. ptxas jumps over whole regions so, before their BSSY, in code where the lanes are together and must stay so.
Status bra_unanimous(Warp& w, const Op& op, uint32_t mask) {
  return (mask & lane_mask(w, op.ps)) == w.active ? jump(w, op, w.active, op.target) : Status::go;
}

// BRA.DIV, BRA.CONV: the uniform register holds the lanes that ought to be here. All active lanes go, those too that fail the guard; but the
// lanes that fail it count as absent, and when all fail it nothing happens (H200: `R2UR P0, URZ, R` finds the lanes whose mask is not
// the first lane's, and `@!P0 BRA.DIV` leaves when there are such lanes or some are missing). More lanes than named are no reason to leave.
template <bool when_together>
Status bra_mask(Warp& w, const Op& op, uint32_t mask) {
  return ((value(w, op.a, 0) & ~mask) == 0) == when_together ? jump(w, op, w.active, op.target) : Status::go;
}

// The same without a mask: all lanes that have not left.
template <bool when_together>
Status bra_all(Warp& w, const Op& op, uint32_t mask) {
  return ((w.alive & ~mask) == 0) == when_together ? jump(w, op, w.active, op.target) : Status::go;
}

// Jumps to register + base, which may differ from lane to lane.
Status indirect(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t* a = row(w, op.a);
  uint32_t todo = mask & lane_mask(w, op.ps);
  while (todo) {
    const uint32_t first = std::countr_zero(todo);
    uint32_t same = 0;
    for_lanes(todo, [&](uint32_t l) { same |= (a[l] == a[first] ? 1u : 0u) << l; });
    const uint64_t high = op.x ? static_cast<uint64_t>(a[first + lanes]) << 32 : 0;
    const uint64_t address = (high | a[first]) + static_cast<uint64_t>(op.offset);
    const uint32_t target = w.launch->program->index_of(address);
    if (target >= w.launch->program->size())
      return fail(w, op, first, fmt::format("jump to {:#x}, which holds no instruction", address));
    todo &= ~same;
    if (!todo) return jump(w, op, same, target);
    if (on_stack(w))
      w.stack.push_back({Push::divergence, target, same});
    else
      w.groups.push_back({target, same, Wait::ready, 0});
    w.active &= ~same;
  }
  return Status::go;
}

// A call of an address: of functions of the module, whose addresses are small, but not 0, or of the driver.
Status call_pair(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t going = mask & lane_mask(w, op.ps);
  const uint32_t* a = row(w, op.a);
  uint32_t own = 0;
  for_lanes(going, [&](uint32_t l) { own |= (a[l] != 0 && a[l + lanes] == 0 ? 1u : 0u) << l; });
  if (own && own != going)
    return fail(w, op, std::countr_zero(own), "lanes call functions of the module and of the driver at once");
  return own ? indirect(w, op, mask) : call_address(w, op, mask);
}

Status exit_(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t leaving = mask & lane_mask(w, op.ps);
  if (!leaving) return Status::go;
  w.tally->counters.partial_exits += leaving != w.alive;
  exit_lanes(w, leaving);
  if (w.active) return Status::go;
  return on_stack(w) ? pop_stack(w) : Status::reschedule;
}

Status bssy(Warp& w, const Op& op, uint32_t mask) {
  leave_barrier(w, op.x, mask);
  for_lanes(mask, [&](uint32_t l) { w.barriers[op.x][l] = mask; });
  return Status::go;
}
Status bsync(Warp& w, const Op& op, uint32_t mask) { return wait_group(w, Wait::convergence, op.x, mask, w.pc); }
Status break_(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t leaving = mask & lane_mask(w, op.ps);
  if (!leaving) return Status::go;
  const uint32_t members = w.barriers[op.x][std::countr_zero(leaving)];
  for_lanes(members, [&](uint32_t l) { w.barriers[op.x][l] &= ~leaving; });
  if (!w.groups.empty()) join_groups(w);
  return Status::go;
}
// Waits apart for each mask among the lanes.
Status wait_by_mask(Warp& w, const Op& op, uint32_t mask, Wait wait) {
  const uint32_t* wanted = row(w, op.a);
  const uint32_t pc = w.pc;
  Status status = Status::go;
  while (mask) {
    const uint32_t key = wanted[std::countr_zero(mask)];
    uint32_t same = 0;
    for_lanes(mask, [&](uint32_t l) { same |= (wanted[l] == key ? 1u : 0u) << l; });
    mask &= ~same;
    status = wait_group(w, wait, key, same, pc);
  }
  return status;
}
Status warpsync(Warp& w, const Op& op, uint32_t mask) {
  uint32_t strangers = 0, waiting = 0;  // a lane whose mask is all here goes on, with others like it
  for_lanes(mask, [&](uint32_t l) {
    const uint32_t members = value(w, op.a, l);
    strangers |= ~members & 1u << l;
    if (members & w.alive & ~mask) waiting |= 1u << l;
  });
  if (strangers)  // as an H200
    return fail(w, op, std::countr_zero(strangers), "illegal instruction: the mask does not name the lane itself");
  return wait_by_mask(w, op, waiting, Wait::warpsync);
}
Status warpsync_all(Warp& w, const Op&, uint32_t mask) { return wait_group(w, Wait::warpsync, all_lanes, mask, w.pc); }
Status warpsync_exclusive(Warp& w, const Op& op, uint32_t mask) { return wait_by_mask(w, op, mask, Wait::exclusive); }
Status enter_collective(Warp& w, const Op& op, uint32_t mask) {
  if (op.target >= w.launch->program->size())
    return fail(w, op, std::countr_zero(mask), "the region ends at an address that holds no instruction");
  for_lanes(mask, [&](uint32_t l) { w.collective[l] = op.target; });
  return Status::go;
}
Status warpsync_collective(Warp& w, const Op& op, uint32_t mask) {
  const Status entered = enter_collective(w, op, mask);
  return entered == Status::go ? wait_by_mask(w, op, mask, Wait::collective) : entered;
}
Status warpsync_collective_all(Warp& w, const Op& op, uint32_t mask) {
  const Status entered = enter_collective(w, op, mask);
  return entered == Status::go ? wait_group(w, Wait::collective, all_lanes, mask, w.pc) : entered;
}
Status end_collective(Warp& w, const Op& op, uint32_t mask) {
  while (mask) {
    const uint32_t first = std::countr_zero(mask), target = w.collective[first];
    if (target == all_lanes) return fail(w, op, first, "ENDCOLLECTIVE outside of a region of WARPSYNC.COLLECTIVE");
    uint32_t same = 0;
    for_lanes(mask, [&](uint32_t l) { same |= (w.collective[l] == target ? 1u : 0u) << l; });
    for_lanes(same, [&](uint32_t l) { w.collective[l] = all_lanes; });
    mask &= ~same;
    w.groups.push_back({target, same, Wait::ready, 0});
    w.active &= ~same;
  }
  return w.active ? Status::go : Status::reschedule;
}
Status barrier_to_register(Warp& w, const Op& op, uint32_t mask) {
  commit(row(w, op.d), w.barriers[op.x], mask);
  return Status::go;
}
Status register_to_barrier(Warp& w, const Op& op, uint32_t mask) {
  commit(w.barriers[op.x], row(w, op.a), mask);
  return Status::go;
}
Status yield(Warp&, const Op&, uint32_t) { return Status::yield; }
Status nop(Warp& w, const Op&, uint32_t mask) {
  if (w.block->races) w.block->races->synchronise(w, mask);
  return Status::go;
}
Status trap(Warp& w, const Op& op, uint32_t mask) { return fail(w, op, std::countr_zero(mask), "trap"); }

// --- Pascal
Status push(Warp& w, const Op& op, uint32_t) {
  if (w.stack.size() > 4096) return fail(w, op, std::countr_zero(w.active), "the divergence stack overflows");
  w.stack.push_back({static_cast<Push>(op.x), op.target, w.active});
  return Status::go;
}

// Which lanes a condition-code test selects (docs/sass.md, section 2).
uint32_t condition(const Warp& w, uint32_t test) {
  const uint32_t n = w.negative, z = w.zero, v = w.overflow, c = w.carry;
  if (test < 16) {  // LT EQ GT as sets; integers have no unordered case
    uint32_t bits = 0;
    if (test & 1) bits |= (n ^ v) & ~z;
    if (test & 2) bits |= z;
    if (test & 4) bits |= ~(n ^ v) & ~z;
    return bits;
  }
  switch (test) {
    case 16: return ~v;
    case 17: return ~c;
    case 18: return ~n;
    case 19: return ~c | z;
    case 20: return c & ~z;
    case 21: return n;
    case 22: return c;
    case 23: return v;
    default: return 0;
  }
}
uint32_t passing(const Warp& w, const Op& op, uint32_t mask) { return op.y == 15 ? mask : mask & condition(w, op.y); }

// Lanes leave for the innermost entry of the given kind; entries above it lose them.
Status leave(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t leaving = passing(w, op, mask);
  if (!leaving) return Status::go;
  size_t entry = w.stack.size();
  while (entry > 0 && w.stack[entry - 1].kind != static_cast<Push>(op.x)) --entry;
  if (entry == 0) return fail(w, op, std::countr_zero(leaving), "nothing on the divergence stack to go to");
  for (size_t i = entry; i < w.stack.size(); ++i) w.stack[i].mask &= ~leaving;
  w.active &= ~leaving;
  return w.active ? Status::go : pop_stack(w);
}
// Functions return to the innermost entry of PRET; those of the driver at once.
Status jump_to_address(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t going = passing(w, op, mask);
  const uint32_t* a = row(w, op.a);
  uint32_t own = 0;
  for_lanes(going, [&](uint32_t l) { own |= (a[l] != 0 && a[l] < 0x7ffe'0000u ? 1u : 0u) << l; });
  if (own && own != going)
    return fail(w, op, std::countr_zero(own), "lanes call functions of the module and of the driver at once");
  if (own) {
    Op jump_there = op;
    jump_there.x = 0, jump_there.offset = 0;
    return indirect(w, jump_there, going);
  }
  const Status called = call_short_address(w, op, going);
  return called == Status::go ? leave(w, op, going) : called;
}
Status branch_on_condition(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t taken = passing(w, op, mask);
  return taken ? jump(w, op, taken, op.target) : Status::go;
}
Status exit_on_condition(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t leaving = passing(w, op, mask);
  return leaving ? exit_(w, op, leaving) : Status::go;
}
Status call(Warp& w, const Op& op, uint32_t mask) {
  if (w.stack.size() > 4096) return fail(w, op, std::countr_zero(mask), "the call stack overflows");
  const uint32_t rest = w.active & ~mask;
  if (rest) w.stack.push_back({Push::divergence, w.pc, rest});
  w.stack.push_back({Push::call, w.pc, mask});
  w.active = mask;
  return jump(w, op, mask, op.target);
}
Status condition_to_predicates(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t test = op.y == 15 ? all_lanes : condition(w, op.y), p = lane_mask(w, op.ps);
  const auto combine = [&](uint32_t t) { return op.x == 0 ? t & p : op.x == 1 ? t | p : t ^ p; };
  commit_predicate(w, op.pd, combine(test), mask);
  commit_predicate(w, op.pq, combine(~test), mask);
  return Status::go;
}
Status condition_to_register(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t test = op.y == 15 ? all_lanes : condition(w, op.y), p = lane_mask(w, op.ps);
  uint32_t r[lanes];
  expand(op.x == 0 ? test & p : op.x == 1 ? test | p : test ^ p, r);
  if (op.z)
    for (uint32_t& v : r) v &= 0x3f800000;
  commit(row(w, op.d), r, mask);
  return Status::go;
}

}  // namespace

bool select_control(Selector& s, Op& op) {
  const auto has = [&](ModifierKind kind) { return isa::has_modifier(s.in->form, kind); };
  const auto with = [&](Handler run) {
    // Pascal's control instructions test the condition code; 15 = always.
    if (!s.volta()) op.y = has(ModifierKind::Condition) ? s.modifier(ModifierKind::Condition) : 15;
    op.run = run;
    return true;
  };
  // Forms differ in where their operands stand, but no two of them are of one kind.
  const auto find = [&](auto... kinds) {
    for (uint32_t k = 0; k < s.in->operand_count; ++k)
      if (((s.operand(k).kind == kinds) || ...)) return k;
    return static_cast<uint32_t>(isa::max_operands - 1);  // kind none
  };
  using Kind = isa::OperandKind;
  const auto predicate = [&] { return s.predicate(find(Kind::predicate, Kind::uniform_predicate)); };
  const auto target = [&] { return s.label(find(Kind::label)); };
  const auto convergence_barrier = [&] {
    op.x = s.operand(find(Kind::barrier)).reg;
    if (op.x > 15) s.error = "convergence barrier out of range";
  };
  const Mnemonic mnemonic = s.in->mnemonic;
  const auto entry = [&] {
    switch (mnemonic) {
      case Mnemonic::SSY:
      case Mnemonic::SYNC: return static_cast<uint32_t>(Push::ssy);
      case Mnemonic::PBK:
      case Mnemonic::BRK: return static_cast<uint32_t>(Push::pbk);
      case Mnemonic::PCNT:
      case Mnemonic::CONT: return static_cast<uint32_t>(Push::pcnt);
      default: return static_cast<uint32_t>(Push::call);
    }
  };
  switch (mnemonic) {
    case Mnemonic::NOP:
    case Mnemonic::PMTRIG: return with(nop);
    case Mnemonic::BRA:
    case Mnemonic::JMP:
    case Mnemonic::CALL_REL:
      if (find(Kind::label) == isa::max_operands - 1) return s.unsupported("a branch without a direct target");
      op.target = target();
      if (!s.volta()) return with(branch_on_condition);
      op.ps = predicate();
      return with(has(ModifierKind::BranchUniform) && s.modifier(ModifierKind::BranchUniform) ? bra_unanimous : bra);
    case Mnemonic::BRA_DIV:
    case Mnemonic::BRA_CONV:
      op.target = target();
      if (s.operand(find(Kind::uniform)).kind != Kind::uniform)  // sm_75
        return with(mnemonic == Mnemonic::BRA_DIV ? bra_all<false> : bra_all<true>);
      op.a = s.source(find(Kind::uniform), 1);
      if (s.operand(find(Kind::uniform)).negated) op.a.flip ^= all_lanes;  // ~URZ: all lanes
      return with(mnemonic == Mnemonic::BRA_DIV ? bra_mask<false> : bra_mask<true>);
    case Mnemonic::CALL_ABS_R:
      op.a = s.source(find(Kind::gpr), 2);
      op.ps = predicate();
      op.x = 1;
      return with(call_pair);
    case Mnemonic::CALL_ABS:  // machine.cpp puts in the target that a relocation names
      op.target = UINT32_MAX;
      op.ps = predicate();
      return with(bra);
    case Mnemonic::BRX:
    case Mnemonic::BRXU:
    case Mnemonic::CALL_REL_R:
    case Mnemonic::RET_REL:
      op.ps = predicate();
      op.a = s.source(find(Kind::gpr, Kind::uniform), 2);
      op.x = s.volta();
      op.offset = s.operand(find(Kind::label)).value;
      return with(indirect);
    case Mnemonic::RET_ABS:
      op.ps = predicate();
      op.a = s.source(find(Kind::gpr), 2);
      op.x = 1;
      op.offset = 0;
      return with(indirect);
    case Mnemonic::EXIT:
      if (!s.volta()) return with(exit_on_condition);
      op.ps = predicate();
      return with(exit_);
    case Mnemonic::BSSY:
    case Mnemonic::BSYNC:
    case Mnemonic::BREAK:
      convergence_barrier();
      op.ps = predicate();
      if (mnemonic != Mnemonic::BREAK && (op.ps.index != true_predicate || op.ps.flip))
        return s.unsupported("a second predicate");
      return with(mnemonic == Mnemonic::BSSY ? bssy : mnemonic == Mnemonic::BSYNC ? bsync : break_);
    case Mnemonic::BMOV: {
      convergence_barrier();
      const bool to_register = s.operand(0).kind == Kind::gpr;
      if (to_register)
        op.d = s.destination(0);
      else
        op.a = s.source(find(Kind::gpr, Kind::immediate), 1);
      return with(to_register ? barrier_to_register : register_to_barrier);
    }
    case Mnemonic::WARPSYNC:
      op.a = s.source(find(Kind::gpr, Kind::immediate), 1);
      return with(s.modifier(ModifierKind::Exclusive) ? warpsync_exclusive : warpsync);
    case Mnemonic::WARPSYNC_COLLECTIVE:
      op.a = s.source(find(Kind::gpr), 1);
      op.target = target();
      return with(warpsync_collective);
    case Mnemonic::WARPSYNC_COLLECTIVE_ALL:
      op.a.offset = all_lanes;  // of no register, so that it meets its like alone
      op.target = target();
      return with(warpsync_collective_all);
    case Mnemonic::ENDCOLLECTIVE: return with(end_collective);
    case Mnemonic::WARPSYNC_ALL: return with(warpsync_all);
    case Mnemonic::YIELD:
    case Mnemonic::NANOSLEEP: return with(yield);
    case Mnemonic::BPT: return with(trap);
    case Mnemonic::SSY:
    case Mnemonic::PBK:
    case Mnemonic::PCNT:
    case Mnemonic::PRET:
      op.x = entry();
      op.target = target();
      return with(push);
    case Mnemonic::SYNC:
    case Mnemonic::BRK:
    case Mnemonic::CONT:
    case Mnemonic::RET: op.x = entry(); return with(leave);
    case Mnemonic::JMX:
      op.a = s.source(find(Kind::gpr), 1);
      op.ps = predicate();
      op.x = entry();
      return with(jump_to_address);
    case Mnemonic::CAL:
    case Mnemonic::JCAL: op.target = target(); return with(call);
    case Mnemonic::CSETP:
      op.pd = s.predicate_destination(0), op.pq = s.predicate_destination(1);
      op.ps = s.predicate(2);
      op.x = s.modifier(ModifierKind::Bool);
      return with(condition_to_predicates);
    case Mnemonic::CSET:
      op.d = s.destination(0);
      op.ps = s.predicate(1);
      op.x = s.modifier(ModifierKind::Bool), op.z = s.modifier(ModifierKind::BF);
      return with(condition_to_register);
    default: return false;
  }
}

}  // namespace rndn::sim
