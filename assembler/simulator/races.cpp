// Races in shared memory: a happens-before check with vector clocks.
//
// Time is counted in memory instructions of the block. A thread knows, for every thread of the block, the time before which that one's accesses are
// ordered before its own (`known_`); accesses before that time are no race. Threads that leave a barrier know what all that had arrived knew, and
// that they arrived; they share one vector, so that most joins are copies of one. Of every word is kept: its last store, and the loads and atomic
// operations since then that no later one of the same kind is ordered after (as FastTrack does for loads: Flanagan and Freund, PLDI 2009). Those that
// lanes of one warp make by one instruction between two of the warp's barriers are one entry: nothing is ordered between them. A word is split into
// bytes by its first access that covers less. So the check is exact for the order in which the block ran, but for stores of what is there: of several, the
// first stands for all.
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
// asynchronous copy counts as a store of its thread when it is issued (its bytes arrive later, semantics_memory.cpp); memory of other blocks of a cluster.
// Cost: O(threads of the block) per barrier and warp; per lane and word O(entries), and O(lanes) for each that it conflicts with.
#include "assembler/simulator/races.h"

#include <algorithm>
#include <bit>
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
constexpr uint16_t bit(Races::Kind kind) { return static_cast<uint16_t>(1u << static_cast<size_t>(kind)); }
// Per kind: the bits of those that it conflicts with.
constexpr auto conflicting = [] {
  std::array<uint16_t, 4> bits{};
  for (size_t a = 0; a < 4; ++a)
    for (size_t b = 0; b < 4; ++b) bits[a] |= static_cast<uint16_t>(conflict[a][b] << b);
  return bits;
}();

}  // namespace

void Races::start(const Block& block, uint32_t shared_bytes) {
  block_ = &block;
  lockstep_ = block.warps[0].launch->program->target->family == isa::Family::pascal;
  now_ = 1;
  const size_t threads = block.warps.size() * lanes;
  known_.assign(threads, std::make_shared<const Clocks>(Clocks{std::vector<uint32_t>(threads), 0}));
  since_.assign(block.warps.size(), 0);
  arrived_ = {};
  for (const uint32_t k : used_) {  // with their memory
    Place& place = places_[k];
    place.whole.others.clear();
    place = {.whole = {.others = std::move(place.whole.others)}};
  }
  used_.clear();
  places_.resize((shared_bytes + 3) / 4);
}

// An access of `thread` at `stamp` is ordered before what `reader` does at the moment.
bool Races::is_before(uint32_t thread, uint32_t stamp, uint32_t reader) const {
  if (thread == reader || stamp < known_[reader]->of[thread]) return true;
  return lockstep_ && thread / lanes == reader / lanes && stamp < now_;
}

void Races::merge(std::shared_ptr<const Clocks>& into, const Warp& w, uint32_t mask) {
  const uint32_t first = w.number * lanes;
  auto joined = std::make_shared<Clocks>(into ? *into : Clocks{std::vector<uint32_t>(known_.size()), 0});
  std::vector<uint32_t>& clocks = joined->of;
  const Clocks* last = nullptr;
  for_lanes(mask, [&](uint32_t l) {
    const Clocks* mine = known_[first + l].get();
    if (mine != last)
      for (size_t t = 0; t < clocks.size(); ++t) clocks[t] = std::max(clocks[t], mine->of[t]);
    last = mine;
  });
  for_lanes(mask, [&](uint32_t l) { clocks[first + l] = now_ + 1; });
  joined->all = *std::min_element(clocks.begin(), clocks.end());
  since_[w.number] = now_ + 1;
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
    if (!place.used) {
      place.used = true;
      used_.push_back(at / 4);
    }
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
  const uint32_t all = known_[thread]->all;  // most accesses are older than the block's last barrier
  if (cell.stamp >= all && cell.stamp && conflicts(kind, Kind::write) &&
      !is_before(cell.thread, cell.stamp, thread)) {
    const bool same =
        kind == Kind::write && cell.others.empty() && std::memcmp(w.block->shared_memory() + offset, value, size) == 0;
    if (same) return;
    complain(w, op, lane, offset, kind, cell.thread, cell.pc, Kind::write);
  }
  const auto unordered = [&](const Entry& e) {
    uint32_t lanes_of_it = 0;
    for_lanes(e.mask,
              [&](uint32_t l) { lanes_of_it |= (is_before(e.warp * lanes + l, e.stamp, thread) ? 0u : 1u) << l; });
    return lanes_of_it;
  };
  if (cell.kinds & conflicting[static_cast<size_t>(kind)])
    for (const Entry& e : cell.others)
      if (e.stamp >= all && conflicts(kind, e.kind))
        if (const uint32_t of = unordered(e))
          complain(w, op, lane, offset, kind, e.warp * lanes + static_cast<uint32_t>(std::countr_zero(of)), e.pc,
                   e.kind);
  const uint32_t pc = w.pc - 1;
  if (kind == Kind::write) {
    cell.others.clear();
    cell.kinds = 0;
    cell.stamp = now_, cell.pc = pc, cell.thread = static_cast<uint16_t>(thread);
    return;
  }
  const auto add_lane = [&](Entry& e) {
    if (e.warp != w.number || e.pc != pc || e.kind != kind || e.stamp < since_[w.number]) return false;
    e.mask |= 1u << lane;
    e.stamp = now_;
    cell.latest = static_cast<uint32_t>(&e - cell.others.data());
    return true;
  };
  if (cell.latest < cell.others.size() && add_lane(cell.others[cell.latest])) return;  // lanes of one load
  for (Entry& e : cell.others)
    if (add_lane(e)) return;
  const Entry entry{now_, 1u << lane, pc, static_cast<uint16_t>(w.number), kind};
  cell.kinds |= bit(kind);
  for (Entry& e : cell.others)
    if (e.stamp < all && e.kind == kind) {
      e = entry;
      cell.latest = static_cast<uint32_t>(&e - cell.others.data());
      return;
    }
  if (cell.others.size() >= 32 && std::has_single_bit(cell.others.size()))
    std::erase_if(cell.others, [&](Entry& e) { return e.kind == kind && (e.mask = unordered(e)) == 0; });
  cell.latest = static_cast<uint32_t>(cell.others.size());
  cell.others.push_back(entry);
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

// Generic loads that say so (LD.STRONG; Pascal's LD.CV), and loads that a compare-and-swap of the same address soon follows, with no barrier and no other
// value of the address between. On sm_90 ptxas loads from a uniform address and swaps at a copy of it: the same offset, and what was loaded is compared.
std::vector<bool> relaxed_loads(const Program& program) {
  using isa::Mnemonic;
  constexpr size_t window = 40;  // instructions
  const auto address = [](const isa::Instruction& in) -> const isa::Operand* {
    for (const isa::Operand& o : in.operands)
      if (o.kind == isa::OperandKind::address) return &o;
    return nullptr;
  };
  const auto writes = [](const isa::Instruction& in, uint32_t reg) {
    for (uint32_t k = 0; k < in.operand_count; ++k) {
      const isa::Operand& o = in.operands[k];
      if (isa::register_file(in, k) != isa::RegisterFile::gpr || o.reg == isa::RZ) continue;
      const isa::Access a = isa::access(in, k);
      if (a != isa::Access::none && a != isa::Access::read && o.reg <= reg && reg < o.reg + isa::register_count(in, k))
        return true;
    }
    return false;
  };
  const size_t n = program.instructions.size();
  std::vector<bool> relaxed(n + 1);
  for (size_t i = 0; i < n; ++i) {
    const isa::Instruction& load = program.instructions[i];
    if (load.mnemonic != Mnemonic::LDS && load.mnemonic != Mnemonic::LD) continue;
    using K = isa::ModifierKind;
    if (load.mnemonic == Mnemonic::LD) {
      const K kind = program.target->family == isa::Family::pascal ? K::Cache : K::Order;
      const uint8_t weaker = kind == K::Cache ? 2 : program.target->has(isa::Feature::orders_since_ampere) ? 4 : 7;  // the last that is not volatile
      relaxed[i] = isa::has_modifier(load.form, kind) && isa::modifier(load, kind) > weaker;
    }
    const isa::Operand* from = address(load);
    if (!from) continue;
    bool moved = writes(load, from->reg), loaded = true;
    for (size_t j = i + 1; !relaxed[i] && (loaded || !moved) && j < std::min(n, i + window); ++j) {
      const isa::Instruction& in = program.instructions[j];
      if (in.mnemonic == Mnemonic::BAR) break;
      const isa::Operand* to = address(in);
      if ((in.mnemonic == Mnemonic::ATOMS_CAS || in.mnemonic == Mnemonic::ATOM_CAS) && to && to->value == from->value) {
        const isa::Operand& compare = *(to + 1);
        relaxed[i] = (!moved && to->reg == from->reg && to->uniform == from->uniform) ||
                     (loaded && compare.kind == isa::OperandKind::gpr && compare.reg == load.operands[0].reg);
      }
      moved |= writes(in, from->reg);
      loaded &= !writes(in, load.operands[0].reg);
    }
  }
  return relaxed;
}

}  // namespace rndn::sim
