// Races in shared memory: a happens-before check with vector clocks.
//
// Time is counted in memory instructions of the block. A thread knows, for every thread of the block, the time before which that one's accesses are
// ordered before its own (`known_`); accesses before that time are no race. Threads that leave a barrier know what all that had arrived knew, and
// that they arrived; they share one vector, so that most joins are copies of one. Of every word is kept: its last store, and the loads and atomic
// operations since then that no later one of the same kind is ordered after (as FastTrack does for loads: Flanagan and Freund, PLDI 2009). A word is
// split into bytes by its first access that covers less. So the check is exact for the order in which the block ran.
//
// What orders: BAR.SYNC and BAR.RED, with or without a count (those who arrived before those who leave), BAR.ARV for the others; WARPSYNC of all kinds, and
// NOP, which ptxas writes for bar.warp.sync where the lanes are together, among the lanes of a warp. Lanes that only happen to run together, or
// met at BSYNC, a shuffle or a vote, are not ordered (PTX ISA, bar.warp.sync and section 8, memory consistency model). Pascal's warps
// run in lock step and ptxas leaves nothing of bar.warp.sync there: an instruction is ordered after all that its warp issued earlier.
//
// What is no race: atomic operations among themselves; loads of a compare-and-swap loop and atomic operations (ptxas makes such loops of float
// and of 64-bit atomics); stores that write what is there (threads that set one flag).
// What is volatile in the generic space keeps that in SASS (LD.STRONG, LD.CV), and counts like the loads of such a loop.
// Left out: locks and flags in shared memory order nothing (SASS does not tell ld.volatile.shared from ld.shared), so what they guard is reported; an
// asynchronous copy counts as a store of its thread when it is issued; memory of other blocks of a cluster.
// Cost: O(threads of the block) per barrier and warp, O(accesses that are not ordered) per lane and word.
#include "assembler/simulator/races.h"

#include <algorithm>
#include <cstring>

#include "assembler/simulator/lanes.h"

namespace rndn::sim {

namespace {

constexpr const char* past[] = {"read", "read", "wrote", "atomically changed"};
constexpr const char* present[] = {"this load", "this load", "this store", "this atomic operation"};

// Rows and columns: read, relaxed, write, atomic.
constexpr bool conflict[4][4] = {
    {false, false, true, true}, {false, false, true, false}, {true, true, true, true}, {true, false, true, false}};
bool conflicts(Races::Kind a, Races::Kind b) { return conflict[static_cast<size_t>(a)][static_cast<size_t>(b)]; }

}  // namespace

void Races::start(const Block& block, uint32_t shared_bytes) {
  block_ = &block;
  lockstep_ = block.warps[0].launch->program->target->family == isa::Family::pascal;
  now_ = 1;
  const size_t threads = block.warps.size() * lanes;
  known_.assign(threads, std::make_shared<const Clocks>(threads, 0));
  arrived_ = {};
  places_.clear();
  places_.resize((shared_bytes + 3) / 4);
}

// An access of `thread` at `stamp` is ordered before what `reader` does at the moment.
bool Races::is_before(uint32_t thread, uint32_t stamp, uint32_t reader) const {
  if (thread == reader || stamp < (*known_[reader])[thread]) return true;
  return lockstep_ && thread / lanes == reader / lanes && stamp < now_;
}

void Races::merge(std::shared_ptr<const Clocks>& into, const Warp& w, uint32_t mask) {
  const uint32_t first = w.number * lanes;
  auto joined = std::make_shared<Clocks>(into ? *into : Clocks(known_.size(), 0));
  const Clocks* last = nullptr;
  for_lanes(mask, [&](uint32_t l) {
    const Clocks* mine = known_[first + l].get();
    if (mine != last)
      for (size_t t = 0; t < joined->size(); ++t) (*joined)[t] = std::max((*joined)[t], (*mine)[t]);
    last = mine;
  });
  for_lanes(mask, [&](uint32_t l) { (*joined)[first + l] = now_ + 1; });
  into = std::move(joined);
}

void Races::synchronise(const Warp& w, uint32_t mask) {
  std::shared_ptr<const Clocks> all;
  merge(all, w, mask);
  for_lanes(mask, [&](uint32_t l) { known_[w.number * lanes + l] = all; });
}

void Races::arrive(const Warp& w, uint32_t mask, uint32_t barrier) { merge(arrived_[barrier], w, mask); }

// What a thread that waited knows, it knew when it arrived.
void Races::leave(const Warp& w, uint32_t mask, uint32_t barrier) {
  if (arrived_[barrier]) for_lanes(mask, [&](uint32_t l) { known_[w.number * lanes + l] = arrived_[barrier]; });
}

void Races::access(Warp& w, const Op& op, uint32_t lane, uint32_t offset, uint32_t size, Kind kind,
                   const std::byte* value) {
  for (uint32_t at = offset; at < offset + size;) {
    Place& place = places_[at / 4];
    const std::byte* part = value ? value + (at - offset) : nullptr;
    if (size >= 4 && !place.bytes) {
      visit(place.whole, w, op, lane, at, 4, kind, part);
      at += 4;
      continue;
    }
    if (!place.bytes) {
      place.bytes = std::make_unique<std::array<Cell, 4>>();
      place.bytes->fill(place.whole);
    }
    visit((*place.bytes)[at & 3], w, op, lane, at, 1, kind, part);
    ++at;
  }
}

void Races::visit(Cell& cell, Warp& w, const Op& op, uint32_t lane, uint32_t offset, uint32_t size, Kind kind,
                  const std::byte* value) {
  const uint32_t thread = w.number * lanes + lane;
  if (cell.stamp && conflicts(kind, Kind::write) && !is_before(cell.thread, cell.stamp, thread)) {
    const bool same =
        kind == Kind::write && cell.others.empty() && std::memcmp(w.block->shared_memory() + offset, value, size) == 0;
    if (!same) complain(w, op, lane, offset, kind, cell.thread, cell.pc, Kind::write);
  }
  std::erase_if(cell.others, [&](Entry& e) {
    const uint32_t first = e.warp * lanes;
    uint32_t before = 0;
    for_lanes(e.mask, [&](uint32_t l) { before |= (is_before(first + l, e.stamp, thread) ? 1u : 0u) << l; });
    if (before != e.mask && conflicts(kind, e.kind))
      complain(w, op, lane, offset, kind, first + static_cast<uint32_t>(std::countr_zero(e.mask & ~before)), e.pc,
               e.kind);
    if (e.kind == kind) e.mask &= ~before;
    return kind == Kind::write || e.mask == 0;
  });
  const uint32_t pc = w.pc - 1;
  if (kind == Kind::write) {
    cell.stamp = now_, cell.pc = pc, cell.thread = static_cast<uint16_t>(thread);
    return;
  }
  for (Entry& e : cell.others)
    if (e.stamp == now_ && e.kind == kind) {
      e.mask |= 1u << lane;
      return;
    }
  cell.others.push_back({now_, 1u << lane, pc, static_cast<uint16_t>(w.number), kind});
}

void Races::complain(Warp& w, const Op& op, uint32_t lane, uint32_t offset, Kind kind, uint32_t other,
                     uint32_t other_pc, Kind other_kind) {
  Launch& launch = *w.launch;
  {
    const std::lock_guard lock(launch.mutex);  // a pair of instructions is reported once
    if (!launch.races.emplace(w.pc - 1, other_pc).second) return;
  }
  const Program& program = *launch.program;
  const Warp& theirs = block_->warps[other / lanes];
  const uint32_t l = other % lanes;
  report(w, op, lane,
         fmt::format("race in shared memory: thread {},{},{} {} byte {:#x} at {:#x}: `{}`; {} orders {} after it",
                     theirs.tid[0][l], theirs.tid[1][l], theirs.tid[2][l], past[static_cast<size_t>(other_kind)],
                     offset, program.addresses[other_pc], isa::text(*program.target, program.instructions[other_pc]),
                     &theirs == &w ? "neither a barrier nor bar.warp.sync" : "no barrier",
                     present[static_cast<size_t>(kind)]));
}

// Generic loads that say so (LD.STRONG; Pascal's LD.CV), and loads that a
// compare-and-swap soon follows with the same address or with what was loaded.
std::vector<bool> relaxed_loads(const Program& program) {
  constexpr size_t window = 40;  // instructions
  const auto address = [](const isa::Instruction& in) -> const isa::Operand* {
    for (const isa::Operand& o : in.operands)
      if (o.kind == isa::OperandKind::address) return &o;
    return nullptr;
  };
  const size_t n = program.instructions.size();
  std::vector<bool> relaxed(n + 1);
  for (size_t i = 0; i < n; ++i) {
    const isa::Instruction& load = program.instructions[i];
    if (load.mnemonic != isa::Mnemonic::LDS && load.mnemonic != isa::Mnemonic::LD) continue;
    using K = isa::ModifierKind;
    if (load.mnemonic == isa::Mnemonic::LD) {
      const K kind = program.target->family == isa::Family::pascal ? K::Cache : K::Order;
      const uint8_t weaker = kind == K::Cache ? 2 : program.target->sm == 75 ? 7 : 4;  // the last that is not volatile
      relaxed[i] = isa::has_modifier(load.form, kind) && isa::modifier(load, kind) > weaker;
    }
    const isa::Operand* from = address(load);
    for (size_t j = i + 1; from && !relaxed[i] && j < std::min(n, i + window); ++j) {
      const isa::Instruction& swap = program.instructions[j];
      if (swap.mnemonic != isa::Mnemonic::ATOMS_CAS && swap.mnemonic != isa::Mnemonic::ATOM_CAS) continue;
      const isa::Operand* to = address(swap);
      if (!to) continue;
      const isa::Operand& compare = *(to + 1);
      relaxed[i] = (to->reg == from->reg && to->uniform == from->uniform && to->value == from->value) ||
                   (compare.kind == isa::OperandKind::gpr && compare.reg == load.operands[0].reg);
    }
  }
  return relaxed;
}

}  // namespace rndn::sim
