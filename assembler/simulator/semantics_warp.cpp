// What lanes and warps do together: shuffles, votes, matches, reductions, barriers; and special registers.
// Source: PTX ISA, sections 9.7.8.6 (shfl), 9.7.12 (barriers, votes, match, redux); numbers of special registers from the notes on the ISA.
#include <chrono>

#include "assembler/simulator/lanes.h"
#include "assembler/simulator/select.h"

namespace rndn::sim {

using isa::Mnemonic;
using isa::ModifierKind;

namespace {

// x mode: 0 IDX, 1 UP, 2 DOWN, 3 BFLY; b lane, c clamp and segment mask.
Status shfl(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t *a = row(w, op.a), *b = row(w, op.b), *c = row(w, op.c);
  uint32_t r[lanes] = {}, in_range = 0;
  for (uint32_t l = 0; l < lanes; ++l) {
    const uint32_t delta = b[l] & 31, clamp = c[l] & 31, segment = c[l] >> 8 & 31;
    const uint32_t last = (l & segment) | (clamp & ~segment), first = l & segment;
    int32_t j;
    bool p;
    switch (op.x) {
      case 0:
        j = static_cast<int32_t>(first | (delta & ~segment));
        p = j <= static_cast<int32_t>(last);
        break;
      case 1:
        j = static_cast<int32_t>(l) - static_cast<int32_t>(delta);
        p = j >= static_cast<int32_t>(last);
        break;
      case 2:
        j = static_cast<int32_t>(l + delta);
        p = j <= static_cast<int32_t>(last);
        break;
      default:
        j = static_cast<int32_t>(l ^ delta);
        p = j <= static_cast<int32_t>(last);
        break;
    }
    if (!p) j = static_cast<int32_t>(l);
    r[l] = a[j & 31];
    in_range |= (p ? 1u : 0u) << l;
  }
  commit(row(w, op.d), r, mask);
  commit_predicate(w, op.pd, in_range, mask);
  return Status::go;
}

// x mode: 0 ALL, 1 ANY, 2 EQ. The uniform form acts for the active lanes, whatever its guard's mask.
template <bool uniform>
Status vote(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t voters = uniform ? w.active : mask, p = lane_mask(w, op.ps) & voters;
  const bool result = op.x == 0 ? p == voters : op.x == 1 ? p != 0 : p == voters || p == 0;
  uint32_t r[lanes];
  for (uint32_t& v : r) v = p;
  commit(row(w, op.d), r, uniform ? all_lanes : mask);
  commit_predicate(w, op.pd, result ? all_lanes : 0, uniform ? all_lanes : mask);
  return Status::go;
}

// x: 1 ANY, 0 ALL; y: 64-bit values.
Status match(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t* a = row(w, op.a);
  const auto value_of = [&](uint32_t l) { return op.y ? pair(a[l], a[l + lanes]) : a[l]; };
  uint32_t r[lanes] = {};
  bool all_equal = true;
  for_lanes(mask, [&](uint32_t l) {
    for_lanes(mask, [&](uint32_t other) { r[l] |= (value_of(l) == value_of(other) ? 1u : 0u) << other; });
    all_equal &= r[l] == mask;
  });
  if (op.x == 0)
    for (uint32_t& v : r) v = all_equal ? mask : 0;
  commit(row(w, op.d), r, mask);
  commit_predicate(w, op.pd, all_equal ? all_lanes : 0, mask);
  return Status::go;
}

// x: 0 AND, 1 OR, 2 XOR, 3 SUM, 4 MIN, 5 MAX; y signed. The result is uniform.
Status redux(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t* a = row(w, op.a);
  const uint32_t bias = op.y ? 0x80000000 : 0;
  uint32_t r = 0;
  bool first = true;
  for_lanes(mask, [&](uint32_t l) {
    const uint32_t v = a[l];
    if (first) {
      r = v;
    } else {
      switch (op.x) {
        case 0: r &= v; break;
        case 1: r |= v; break;
        case 2: r ^= v; break;
        case 3: r += v; break;
        case 4: r = (v ^ bias) < (r ^ bias) ? v : r; break;
        default: r = (v ^ bias) > (r ^ bias) ? v : r; break;
      }
    }
    first = false;
  });
  uint32_t* d = row(w, op.d);
  for (uint32_t l = 0; l < lanes; ++l) d[l] = r;
  return Status::go;
}

// a id, b count (one register may hold both: z), x mode: 0 SYNC, 1 ARV, 2 RED, 4 SYNCALL, y reduction.
Status bar(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t first = std::countr_zero(mask);
  uint32_t id = value(w, op.a, first), threads = value(w, op.b, first);
  if (op.z) threads = id >> 16 & 0xfff, id &= 0xffff;
  if (id > 15) return fail(w, op, first, fmt::format("barrier {} of 16", id));
  if (threads % lanes)
    return fail(w, op, first, fmt::format("barrier {} for {} threads, no multiple of the warp size", id, threads));
  if (threads > w.block->warps.size() * lanes)
    return fail(w, op, first, fmt::format("barrier {} for {} threads, more than the block has", id, threads));
  if (op.x == 2) w.block->barriers[id].reduction = op.y;
  arrive(w, id, threads, mask, lane_mask(w, op.ps));
  if (op.x == 1) return Status::go;
  return wait_group(w, Wait::barrier, id, mask, w.pc);
}
Status b2r(Warp& w, const Op& op, uint32_t mask) {
  uint32_t r[lanes];
  for (uint32_t& v : r) v = w.barrier_count;
  commit(row(w, op.d), r, mask);
  commit_predicate(w, op.pd, w.barrier_predicate ? all_lanes : 0, mask);
  return Status::go;
}

// A special register's value in a lane. 64-bit forms take the counter's upper half as well.
uint64_t special(Warp& w, uint32_t number, uint32_t l) {
  const Launch& launch = *w.launch;
  switch (number) {
    case 0x00: return l;
    case 0x02: return w.block->warps.size();
    case 0x03: return w.number << 8;
    case 0x20: return w.tid[0][l] | w.tid[1][l] << 16 | w.tid[2][l] << 26;
    case 0x21: return w.tid[0][l];
    case 0x22: return w.tid[1][l];
    case 0x23: return w.tid[2][l];
    case 0x25: return w.block->ctaid[0];
    case 0x26: return w.block->ctaid[1];
    case 0x27: return w.block->ctaid[2];
    case 0x28: return launch.block.x | launch.block.y << 16 | launch.block.z << 26;
    case 0x2e: return local_window >> 32;
    case 0x2f: return shared_window >> 32;
    case 0x30: return shared_window & 0xffffffff;
    case 0x31: return window_bytes;
    case 0x32: return launch.shared_bytes;
    case 0x34: return local_window & 0xffffffff;
    case 0x35: return window_bytes;
    case 0x37: return 0;  // what the stack does not go below: ptxas's code at -O0 traps there
    case 0x38: return 1u << l;
    case 0x39: return (1u << l) - 1;
    case 0x3a: return (2u << l) - 1;
    case 0x3b: return ~((2u << l) - 1);
    case 0x3c: return ~((1u << l) - 1);
    case 0x43: return 0;  // one multiprocessor
    case 0x88: return 0;  // rank in the cluster
    case 0xff: return 0;
    // Clocks count instructions of the warp's thread of execution; they rise, and nothing else is promised.
    case 0x01:
    case 0x50:
    case 0x52: return w.tally->counters.issue_cycles;
    case 0x51:
    case 0x53: return w.tally->counters.issue_cycles >> 32;
    default: return ~uint64_t{0};
  }
}
bool known_special(uint32_t n) {
  switch (n) {
    case 0x00:
    case 0x01:
    case 0x02:
    case 0x03:
    case 0x20:
    case 0x21:
    case 0x22:
    case 0x23:
    case 0x25:
    case 0x26:
    case 0x27:
    case 0x28:
    case 0x2e:
    case 0x2f:
    case 0x30:
    case 0x31:
    case 0x32:
    case 0x34:
    case 0x35:
    case 0x37:
    case 0x38:
    case 0x39:
    case 0x3a:
    case 0x3b:
    case 0x3c:
    case 0x43:
    case 0x50:
    case 0x51:
    case 0x52:
    case 0x53:
    case 0x88:
    case 0xff: return true;
    default: return false;
  }
}
// x number, y: 64-bit, z: uniform.
Status s2r(Warp& w, const Op& op, uint32_t mask) {
  uint64_t r[lanes];
  const uint32_t first = std::countr_zero(w.active);
  for (uint32_t l = 0; l < lanes; ++l) r[l] = special(w, op.x, op.z ? first : l);
  if (op.y) {
    commit_pairs(w, op.d, r, mask);
    return Status::go;
  }
  uint32_t low[lanes];
  for (uint32_t l = 0; l < lanes; ++l) low[l] = static_cast<uint32_t>(r[l]);
  commit(row(w, op.d), low, mask);
  return Status::go;
}

}  // namespace

bool select_warp(Selector& s, Op& op) {
  using K = ModifierKind;
  const auto m = [&](K kind) -> uint32_t { return isa::has_modifier(s.in->form, kind) ? s.modifier(kind) : 0; };
  const auto with = [&](Handler run) {
    op.run = run;
    return true;
  };
  switch (s.in->mnemonic) {
    case Mnemonic::SHFL:
      op.pd = s.predicate_destination(0);
      op.d = s.destination(1);
      op.a = s.source(2, 1), op.b = s.source(3, 1), op.c = s.source(4, 1);
      op.x = m(K::ShuffleMode);
      return with(shfl);
    case Mnemonic::VOTE:
      op.d = s.destination(0);
      op.pd = s.predicate_destination(1);
      op.ps = s.predicate(2);
      op.x = m(K::VoteMode);
      return with(vote<false>);
    case Mnemonic::VOTEU:
      op.full = all_lanes;
      op.d = s.destination(0);
      op.pd = s.predicate_destination(1);
      op.ps = s.predicate(2);
      op.x = m(K::VoteMode);
      return with(vote<true>);
    case Mnemonic::MATCH:
      op.pd = s.predicate_destination(0);
      op.d = s.destination(1);
      op.a = s.source(2, 2);
      op.x = m(K::MatchMode), op.y = m(K::Wide);
      return with(match);
    case Mnemonic::REDUX:
      op.d = s.destination(0);
      op.a = s.source(1, 1);
      op.x = m(K::ReduceOp), op.y = m(K::Signed);
      return with(redux);
    case Mnemonic::BAR: {
      op.a = s.source(0, 1);
      op.b = s.source(1, 1);
      op.ps = s.predicate(2);
      op.x = m(K::BarMode), op.y = m(K::BarReduction);
      if (op.x == 3) return s.unsupported("BAR.SCAN");
      // The form with two registers prints one register twice: it holds count << 16 | id.
      op.z = s.operand(0).kind == isa::OperandKind::gpr && s.operand(1).kind == isa::OperandKind::gpr &&
             s.operand(0).reg == s.operand(1).reg;
      return with(bar);
    }
    case Mnemonic::B2R:
      op.d = s.destination(0);
      op.pd = s.predicate_destination(1);
      if (m(K::ResultMode) != 1) return s.unsupported("B2R of another kind than .RESULT");
      return with(b2r);
    case Mnemonic::S2R:
    case Mnemonic::CS2R:
    case Mnemonic::S2UR:
      op.d = s.destination(0);
      op.x = static_cast<uint32_t>(s.operand(1).value);
      op.y = s.in->mnemonic == Mnemonic::CS2R && m(K::Wide);
      op.z = s.in->mnemonic == Mnemonic::S2UR;
      op.full = op.z ? all_lanes : 0;
      if (!known_special(op.x)) return s.unsupported(fmt::format("special register {:#x}", op.x));
      return with(s2r);
    default: return false;
  }
}

}  // namespace rndn::sim
