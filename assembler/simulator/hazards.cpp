// Hazard checks; the model is described in hazards.h.
//
// The distances are the smallest that the vendor's assembler uses (mined from its output) or that were measured on an H200, whichever is
// smaller, written down here on their own: nothing is shared with the scheduler that this checks. Cost: O(operands) per instruction.
#include "assembler/simulator/hazards.h"

#include <algorithm>

#include "assembler/simulator/lanes.h"
#include "assembler/simulator/select.h"

namespace rndn::sim {

using isa::Mnemonic;

namespace {

enum Producer : uint8_t {
  p_alu,
  p_fma,
  p_wide,
  p_half,
  p_half_mma,
  p_fp64,
  p_cs2r,
  p_uniform,
  p_uniform_move,
  p_queued,
  p_pascal
};
enum Role : uint8_t {
  r_alu,
  r_fma,
  r_half,
  r_wide,
  r_fp64,
  r_memory,
  r_shared,
  r_queued,
  r_uniform,
  r_descriptor,
  r_control,  // register sources
  r_guard,
  r_predicate_alu,
  r_predicate_fma,
  r_predicate_fp64,
  r_predicate_uniform,
  r_carry
};

// Volta and later: general registers, rows producer, columns r_alu .. r_control.
constexpr uint8_t volta_distance[][11] = {
    //        alu fma half wide fp64 mem shared queued uniform desc control
    /* alu  */ {4, 5, 5, 3, 6, 5, 5, 4, 4, 4, 4},
    /* fma  */ {5, 4, 4, 2, 6, 5, 5, 4, 4, 4, 4},
    /* wide */ {3, 4, 4, 2, 6, 5, 5, 4, 4, 4, 4},
    /* half */ {4, 4, 4, 4, 6, 5, 5, 4, 4, 4, 4},
    /* mma  */ {9, 9, 9, 9, 6, 7, 7, 6, 6, 6, 6},
    /* fp64 */ {8, 8, 8, 8, 6, 7, 7, 6, 6, 6, 6},
    /* cs2r */ {5, 5, 5, 5, 6, 5, 5, 4, 4, 4, 4},
    /* unif */ {6, 6, 6, 6, 6, 9, 9, 9, 4, 9, 9},
    /* umov */ {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2},
};
// The same for sm_75, which has no HFMA2.MMA and no doubles of fixed latency.
constexpr uint8_t turing_distance[][11] = {
    //        alu fma half wide fp64 mem shared queued uniform desc control
    /* alu  */ {4, 5, 6, 5, 6, 8, 8, 6, 8, 8, 6},
    /* fma  */ {5, 4, 6, 4, 6, 8, 8, 6, 8, 8, 6},
    /* wide */ {5, 4, 6, 6, 6, 8, 8, 6, 8, 8, 6},
    /* half */ {8, 8, 6, 8, 8, 8, 8, 8, 8, 8, 8},
    /* mma  */ {8, 8, 6, 8, 8, 8, 8, 8, 8, 8, 8},
    /* fp64 */ {9, 9, 9, 9, 8, 9, 9, 9, 9, 9, 9},
    /* cs2r */ {6, 6, 6, 6, 6, 8, 8, 6, 8, 8, 6},
    /* unif */ {6, 6, 6, 6, 6, 9, 9, 9, 4, 9, 9},
    /* umov */ {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 11},
};
const uint8_t* distances_from(Producer p, const isa::Target& target) {
  return target.has(isa::Feature::turing_latencies) ? turing_distance[p] : volta_distance[p];
}

struct Unit {
  uint8_t number;
  bool in_order, late_sources;
};
// sm_75, sm_90: instructions on global, local and shared memory read their sources in the order of issue (ptxas gives a store no read scoreboard where a
// later access to another memory has one). Only on sm_75 does ptxas let a load write what a store to another memory before it reads.
constexpr uint8_t ordered_memory = 11;
// Units that take instructions from a queue. Results within an in-order unit arrive in issue order.
Unit unit_of(Mnemonic m, bool volta) {
  switch (m) {
    case Mnemonic::LDG:
    case Mnemonic::LD:
    case Mnemonic::ATOM:
    case Mnemonic::ATOMG:
    case Mnemonic::ATOM_CAS:
    case Mnemonic::ATOMG_CAS:
    case Mnemonic::ATOMG_FLOAT:
    case Mnemonic::ATOM_FLOAT:
    case Mnemonic::LDL: return {1, !volta, true};
    case Mnemonic::QSPC: return {8, true, true};  // ptxas announces several by the scoreboard of the last
    case Mnemonic::STG:
    case Mnemonic::ST:
    case Mnemonic::STL:
    case Mnemonic::RED:
    case Mnemonic::RED_FLOAT:
    case Mnemonic::LDGSTS:
    case Mnemonic::CCTL: return {1, false, true};
    // Done when all copies before it are: what went before them has been read by then (ptxas: no read barrier for the data of a STG before them).
    case Mnemonic::LDGDEPBAR: return {1, true, false};
    case Mnemonic::LDS:
    case Mnemonic::ATOMS:
    case Mnemonic::ATOMS_CAS:
    case Mnemonic::ATOMS_POPC:
    case Mnemonic::STS:
    case Mnemonic::LDSM:
    case Mnemonic::STSM:
    case Mnemonic::SHFL:
    case Mnemonic::MATCH: return {2, true, true};
    case Mnemonic::MUFU:
    case Mnemonic::F2F:
    case Mnemonic::F2I:
    case Mnemonic::I2F:
    case Mnemonic::FRND:
    case Mnemonic::POPC:
    case Mnemonic::FLO:
    case Mnemonic::BREV:
    case Mnemonic::FCHK: return m == Mnemonic::FCHK && !volta ? Unit{0, false, false} : Unit{3, true, true};
    case Mnemonic::I2I: return volta ? Unit{0, false, false} : Unit{3, true, true};
    case Mnemonic::DADD:
    case Mnemonic::DMUL:
    case Mnemonic::DFMA:
    case Mnemonic::DSETP:
    case Mnemonic::DMNMX:
    case Mnemonic::DSET: return {4, true, true};
    case Mnemonic::S2R: return {5, false, false};
    case Mnemonic::S2UR: return {10, true, false};  // likewise
    case Mnemonic::B2R: return {9, true, false};    // likewise
    case Mnemonic::LDC: return {6, false, true};
    case Mnemonic::REDUX:
    case Mnemonic::R2UR: return {7, false, true};
    default: return {0, false, false};
  }
}

bool is_uniform_alu(Mnemonic m) {
  switch (m) {
    case Mnemonic::UIADD3:
    case Mnemonic::UIMAD:
    case Mnemonic::UIMAD_WIDE:
    case Mnemonic::ULEA:
    case Mnemonic::ULEA_HI:
    case Mnemonic::ULOP3:
    case Mnemonic::UPLOP3:
    case Mnemonic::USHF:
    case Mnemonic::UISETP:
    case Mnemonic::USEL:
    case Mnemonic::UPRMT:
    case Mnemonic::USGXT:
    case Mnemonic::UBMSK:
    case Mnemonic::UFLO:
    case Mnemonic::UPOPC:
    case Mnemonic::UBREV:
    case Mnemonic::UP2UR:
    case Mnemonic::UR2UP: return true;
    default: return false;
  }
}

Producer producer_of(const isa::Instruction& in, const isa::Target& target) {
  const bool volta = target.family == isa::Family::volta;
  const Unit unit = unit_of(in.mnemonic, volta);
  if (!volta) return unit.number ? p_queued : p_pascal;
  switch (in.mnemonic) {
    case Mnemonic::FADD:
    case Mnemonic::FMUL:
    case Mnemonic::FFMA:
    case Mnemonic::IMAD:
    case Mnemonic::IMAD_HI:
    case Mnemonic::VIADD:
    case Mnemonic::IDP: return p_fma;
    case Mnemonic::IMAD_WIDE: return p_wide;
    case Mnemonic::HADD2:
    case Mnemonic::HMUL2:
    case Mnemonic::HMNMX2:
    case Mnemonic::HSET2:
    case Mnemonic::HSETP2:
    case Mnemonic::HFMA2: return p_half;
    case Mnemonic::HFMA2_MMA: return p_half_mma;
    case Mnemonic::ULDC:
    case Mnemonic::UMOV:
    case Mnemonic::VOTEU: return p_uniform_move;
    case Mnemonic::CS2R: return isa::modifier(in, isa::ModifierKind::Wide) ? p_cs2r : p_alu;
    case Mnemonic::R2UR: return target.has(isa::Feature::r2ur_scoreboard) ? p_queued : p_uniform;  // sm_90: never carries a barrier
    default: break;
  }
  if (unit.number == 4) return target.has(isa::Feature::fp64_scoreboard) ? p_queued : p_fp64;
  if (unit.number) return p_queued;
  return is_uniform_alu(in.mnemonic) ? p_uniform : p_alu;
}

// How the instruction reads registers and predicates.
Role register_role(const isa::Instruction& in, const isa::Target& target, uint32_t k) {
  const bool volta = target.family == isa::Family::volta;
  const Unit unit = unit_of(in.mnemonic, volta);
  if (in.operands[k].kind == isa::OperandKind::address && in.operands[k].descriptor) return r_memory;
  if (in.mnemonic == Mnemonic::R2UR)
    return target.has(isa::Feature::turing_latencies) ? r_memory : r_alu;  // reads as these do, whatever its result takes
  switch (unit.number) {
    case 1: return volta || in.mnemonic != Mnemonic::ST ? r_memory : r_shared;
    case 6: return volta ? r_queued : r_shared;
    case 2: return in.mnemonic == Mnemonic::MATCH ? r_queued : r_shared;  // ptxas: 4 cycles before MATCH
    case 8: return r_memory;
    case 3:
    case 5:
    case 7:
    case 9:
    case 10: return r_queued;
    case 4: return r_fp64;
    default: break;
  }
  switch (in.mnemonic) {
    case Mnemonic::IMAD_HI: return isa::register_count(in, k) == 2 ? r_wide : r_fma;  // the addend comes late
    case Mnemonic::FADD:
    case Mnemonic::FMUL:
    case Mnemonic::FFMA:
    case Mnemonic::IMAD:
    case Mnemonic::VIADD:
    case Mnemonic::IDP: return r_fma;
    case Mnemonic::HADD2:
    case Mnemonic::HMUL2:
    case Mnemonic::HMNMX2:
    case Mnemonic::HSET2:
    case Mnemonic::HSETP2:
    case Mnemonic::HFMA2:
    case Mnemonic::HFMA2_MMA: return r_half;
    case Mnemonic::IMAD_WIDE: return r_wide;
    case Mnemonic::BAR: return r_memory;
    case Mnemonic::BRX:
    case Mnemonic::BRXU:
    case Mnemonic::JMX:
    case Mnemonic::CALL_REL_R:
    case Mnemonic::CALL_ABS_R:
    case Mnemonic::RET_REL:
    case Mnemonic::WARPSYNC:
    case Mnemonic::BRA_DIV:
    case Mnemonic::BRA_CONV:
    case Mnemonic::NANOSLEEP:
    case Mnemonic::BMOV: return r_control;
    default: break;
  }
  return is_uniform_alu(in.mnemonic) || in.mnemonic == Mnemonic::UMOV ? r_uniform : r_alu;
}
Role predicate_role(const isa::Instruction& in, const isa::Target& target) {
  if (target.family == isa::Family::pascal) return r_guard;
  switch (in.mnemonic) {
    case Mnemonic::IMAD:
    case Mnemonic::IMAD_WIDE:
    case Mnemonic::IMAD_HI: return r_predicate_fma;
    case Mnemonic::DSETP: return r_predicate_fp64;
    case Mnemonic::VOTE:
    case Mnemonic::VOTEU:
    case Mnemonic::BAR:
    case Mnemonic::BRA:
    case Mnemonic::EXIT:
    case Mnemonic::BREAK:
    case Mnemonic::LDG:
    case Mnemonic::CALL_REL:
    case Mnemonic::LDGSTS: return r_guard;
    default: return is_uniform_alu(in.mnemonic) ? r_predicate_uniform : r_predicate_alu;
  }
}

uint32_t distance(Producer p, Role role, uint32_t row, const isa::Target& target) {
  if (p == p_queued) return 0;
  const bool predicate = row >= row_predicate;
  if (target.family == isa::Family::pascal) {
    if (row == row_carry) return 6;
    if (predicate) return 13;
    switch (role) {
      case r_memory:
      case r_queued: return 2;
      case r_shared: return 4;
      default: return 6;
    }
  }
  if (predicate) {
    if (p == p_uniform_move) return role == r_guard ? 5 : 2;
    if (p == p_uniform) return role == r_guard ? 9 : role == r_predicate_uniform ? 4 : 6;
    const bool double_result = p == p_fp64, turing = target.has(isa::Feature::turing_latencies);
    switch (role) {
      case r_guard: return turing ? (p == p_half ? 14 : 12) : double_result ? 14 : 13;
      case r_predicate_fma: return double_result ? 6 : p == p_wide || p == p_fma ? 4 : 5;
      case r_predicate_alu:
        if (turing) return p == p_fma || p == p_wide ? 5 : p == p_half ? 6 : 4;
        return double_result ? 6 : 4;
      default: return double_result ? 6 : 4;
    }
  }
  // IMAD.WIDE's addend comes late; sm_90 is shorter there than sm_8x.
  return distances_from(p, target)[role];
}

// Cycles between writes of one general register by two kinds of fixed latency, so that the second stays: the H200 keeps the double of
// `DADD R28, ..; HFMA2 R28, ..` (one cycle apart). The quickest results are there for the ALU after 4 cycles, the low half of IMAD.WIDE after 3.
uint32_t overtaking(Producer first, Producer second, uint32_t row, const isa::Target& target) {
  if (row >= row_uniform || first == second || first == p_queued || first == p_pascal || second == p_queued) return 0;
  const uint32_t arrives = distances_from(first, target)[r_alu];
  return arrives > 5 ? arrives - (second == p_wide ? 2 : 3)
                     : 0;  // ptxas writes behind IMAD, which takes 5, in the next cycle
}

}  // namespace

void make_footprints(Program& program) {
  const isa::Target& target = *program.target;
  program.footprints.resize(program.instructions.size());
  auto undecodable = program.undecodable.begin();
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    if (undecodable != program.undecodable.end() && undecodable->first == i) {
      ++undecodable;  // no form, so nothing to ask about; executing it is an error
      continue;
    }
    const isa::Instruction& in = program.instructions[i];
    Footprint& f = program.footprints[i];
    const bool turing = target.has(isa::Feature::turing_latencies);
    // sm_75: QSPC keeps the order of accesses to shared memory, for which ptxas waits by its scoreboard.
    const Unit unit = unit_of(turing && in.mnemonic == Mnemonic::QSPC ? Mnemonic::LDS : in.mnemonic,
                              target.family == isa::Family::volta);
    f.control = in.control;
    f.producer = producer_of(in, target);
    // A generic atomic without a result register tells by its predicate whether it was done: ptxas announces that by the read scoreboard on sm_90.
    if (target.has(isa::Feature::atomics_tell_by_read_scoreboard) && (in.mnemonic == Mnemonic::ATOM || in.mnemonic == Mnemonic::ATOM_FLOAT) &&
        in.operands[1].reg == isa::RZ && f.control.write_barrier > 5)
      f.control.write_barrier = f.control.read_barrier;
    f.unit = unit.number;
    f.reads_in = target.has(isa::Feature::reads_in_order) && (unit.number == 1 || unit.number == 2) ? ordered_memory : unit.number;
    f.writes_behind = turing ? f.reads_in : f.unit;
    f.in_order = unit.in_order;
    f.late_sources = unit.late_sources && f.producer != p_fp64 && f.producer != p_uniform;
    const auto add = [&](bool write, uint32_t first, uint32_t count, uint8_t role) {
      // A wide access at the end of a register file does not run into the next one.
      const uint32_t end = first < row_uniform             ? row_uniform
                           : first < row_predicate         ? row_predicate
                           : first < row_uniform_predicate ? row_uniform_predicate
                           : first < row_carry             ? row_carry
                                                           : row_count;
      if (first >= row_count) return;
      count = std::min(count, end - first);
      auto& list = write ? f.writes : f.reads;
      uint8_t& n = write ? f.write_count : f.read_count;
      if (n < list.size() && count) list[n++] = {static_cast<uint16_t>(first), static_cast<uint8_t>(count), role};
    };
    const bool uniform_guard = isa::guard_is_uniform(in.form);
    if (in.guard < isa::PT) {
      add(false, (uniform_guard ? row_uniform_predicate : row_predicate) + in.guard, 1, r_guard);
      f.reads[0].guard = true;
    }
    for (uint32_t k = 0; k < in.operand_count; ++k) {
      const isa::Operand& o = in.operands[k];
      const isa::Access access = isa::access(in, k);
      const bool reads = access == isa::Access::read || access == isa::Access::read_write;
      const bool writes = access == isa::Access::write || access == isa::Access::read_write;
      if (o.kind == isa::OperandKind::address || o.kind == isa::OperandKind::constant) {
        const Role role = register_role(in, target, k);
        if (o.reg < isa::RZ) add(false, o.reg, o.wide ? 2 : 1, role);
        if (o.uniform < isa::URZ) add(false, row_uniform + o.uniform, o.descriptor || o.wide ? 2 : 1, role);
        continue;
      }
      const uint32_t count = isa::register_count(in, k);
      switch (o.kind) {
        case isa::OperandKind::gpr:
          if (o.reg >= isa::RZ) break;
          if (reads) add(false, o.reg, count, register_role(in, target, k));
          if (writes) add(true, o.reg, count, 0);
          break;
        case isa::OperandKind::uniform:
          if (o.reg >= isa::URZ) break;
          if (reads) add(false, row_uniform + o.reg, count, register_role(in, target, k));
          if (writes) add(true, row_uniform + o.reg, count, 0);
          break;
        case isa::OperandKind::predicate:
        case isa::OperandKind::uniform_predicate: {
          if (o.reg >= isa::PT) break;
          // Only BAR.RED looks at its predicate.
          if (in.mnemonic == Mnemonic::BAR && isa::modifier(in, isa::ModifierKind::BarMode) != 2) break;
          const uint32_t row = (o.kind == isa::OperandKind::predicate ? row_predicate : row_uniform_predicate) + o.reg;
          if (reads) add(false, row, 1, predicate_role(in, target));
          if (writes) add(true, row, 1, 0);
          break;
        }
        default: break;
      }
    }
    // P2R and R2P touch the predicates of their mask, as runs of consecutive ones.
    const auto add_mask = [&](bool write, uint32_t bits) {
      for (uint32_t p = 0; p < 7; ++p) {
        uint32_t n = 0;
        while (bits >> (p + n) & 1) ++n;
        if (n) add(write, row_predicate + p, n, r_predicate_alu);
        p += n;
      }
    };
    add_mask(false, isa::implicit_predicate_reads(in) & 0x7fu);
    add_mask(true, isa::implicit_predicate_writes(in) & 0x7fu);
    // Pascal's compare-and-swap reads the register after the compare value as well; register_count knows the size of one.
    if (target.family == isa::Family::pascal &&
        (in.mnemonic == Mnemonic::ATOM_CAS || in.mnemonic == Mnemonic::ATOMS_CAS)) {
      const isa::Operand& o = in.operands[2];
      const uint32_t count = isa::register_count(in, 2);
      if (o.reg < isa::RZ && count == 1 && o.reg + count < row_uniform)
        add(false, o.reg + count, count, register_role(in, target, 2));
    }
    if (isa::reads_carry(in)) add(false, row_carry, 1, r_carry);
    if (isa::writes_carry(in)) add(true, row_carry, 1, 0);
    if (in.mnemonic == Mnemonic::DEPBAR) f.depbar_mask = static_cast<uint8_t>(in.operands[2].value & 0x3f);
    if (in.mnemonic == Mnemonic::DEPBAR && isa::modifier(in, isa::ModifierKind::LessEqual)) {
      f.depbar = static_cast<int16_t>(in.operands[0].value);
      if (f.depbar > 5) f.depbar = -1;
      f.depbar_count = static_cast<uint16_t>(in.operands[1].value);
    }
  }
}

void Timing::start(const Program& program) {
  const size_t words = static_cast<size_t>(program.registers + program.uniform_registers) * lanes;
  std::vector<uint32_t> buffer = std::move(old);
  *this = Timing{};
  buffer.assign(words, 0xcdcdcdcd);
  old = std::move(buffer);
}

namespace {

uint32_t* row_value(Warp& w, uint32_t row) {
  if (row < row_uniform) return w.rows[0] + first_register_row + row * lanes;
  return w.rows[0] + first_register_row + (w.launch->program->registers + row - row_uniform) * lanes;
}
uint32_t* old_value(Warp& w, uint32_t row) {
  const uint32_t index = row < row_uniform ? row : w.launch->program->registers + row - row_uniform;
  return w.timing->old.data() + static_cast<size_t>(index) * lanes;
}
uint32_t* mask_value(Warp& w, uint32_t row) {
  if (row == row_carry) return &w.carry;
  return &w.pred[row - row_predicate];  // uniform predicates follow in both numberings
}
std::string row_name(uint32_t row) {
  if (row < row_uniform) return fmt::format("R{}", row);
  if (row < row_predicate) return fmt::format("UR{}", row - row_uniform);
  if (row < row_uniform_predicate) return fmt::format("P{}", row - row_predicate);
  if (row < row_carry) return fmt::format("UP{}", row - row_uniform_predicate);
  return "CC";
}

void exchange_old(Warp& w, uint32_t row) {
  if (row >= row_predicate)
    std::swap(*mask_value(w, row), w.timing->old_mask[row]);
  else
    std::swap_ranges(row_value(w, row), row_value(w, row) + lanes, old_value(w, row));
}

void complete(Timing& t, uint32_t sb, uint32_t sequence) {
  t.done[sb] = std::max(t.done[sb], sequence);
  for (uint32_t u = 0; u < units; ++u)
    if (t.last_of_unit[sb][u] <= sequence) t.unit_done[u] = std::max(t.unit_done[u], t.last_of_unit[sb][u]);
}

}  // namespace

void pass_time(Warp& w) {
  if (w.timing) w.timing->now += 32;
}

void before_issue(Warp& w, const Op& op, const Footprint& f, uint32_t mask, Swapped& swapped) {
  Timing& t = *w.timing;
  swapped.count = 0;
  const auto hazard = [&](std::string message) {
    ++w.tally->counters.hazards;
    report(w, op, std::countr_zero(mask ? mask : 1), "hazard: " + std::move(message));
  };
  for (uint32_t bits = f.control.wait_mask | f.depbar_mask; bits; bits &= bits - 1) {
    const uint32_t sb = std::countr_zero(bits);
    if (sb > 5) break;
    // A counter that was raised in the cycle before still reads as free; not so to sm_75's DEPBAR (ptxas).
    const isa::Target& on = *w.launch->program->target;
    if (t.last_set[sb] > t.done[sb] && t.now - t.set_time[sb] < 2 && on.family == isa::Family::volta &&
        (!on.has(isa::Feature::turing_latencies) || (f.control.wait_mask >> sb & 1))) {
      hazard(fmt::format("waits for SB{} one cycle after it was set", sb));
      continue;
    }
    complete(t, sb, t.last_set[sb]);
    t.outstanding[sb].clear();
  }
  if (f.depbar >= 0) {
    auto& list = t.outstanding[static_cast<size_t>(f.depbar)];
    if (list.size() > f.depbar_count) {
      // Any of them may be among those that are still out, unless their unit keeps the order.
      size_t finished = 0;
      while (finished < list.size() - f.depbar_count && (list[finished].in_order || f.depbar_count == 0)) ++finished;
      for (size_t i = 0; i < finished; ++i)
        t.unit_done[list[i].unit] = std::max(t.unit_done[list[i].unit], list[i].sequence);
      if (finished) complete(t, static_cast<uint32_t>(f.depbar), list[finished - 1].sequence);
      list.erase(list.begin(), list.begin() + static_cast<ptrdiff_t>(finished));
    }
  }
  const uint32_t affected = op.full ? all_lanes : mask;
  const isa::Target& target = *w.launch->program->target;
  for (uint32_t i = 0; i < f.read_count; ++i) {
    const Footprint::Rows& r = f.reads[i];
    for (uint32_t number = r.first; number < static_cast<uint32_t>(r.first) + r.count && number < row_count; ++number) {
      Timing::Row& row = t.rows[number];
      // The guard is read for all active lanes.
      const uint32_t wanted = r.guard ? (r.first >= row_uniform_predicate ? all_lanes : w.active) : affected;
      if (!(row.written & wanted)) continue;
      if (number < row_uniform && number >= w.launch->program->registers) continue;
      const uint64_t age = t.now - row.time;
      const uint32_t needed = distance(static_cast<Producer>(row.producer), static_cast<Role>(r.role), number, target);
      if (row.pending) {
        const bool done = (row.scoreboard < 6 && row.sequence <= t.done[row.scoreboard]) ||
                          (row.in_order && row.sequence <= t.unit_done[row.unit]);
        if (done) {
          row.written = 0;
          continue;
        }
        hazard(row.scoreboard < 6 ? fmt::format("reads {} without waiting for SB{}", row_name(number), row.scoreboard)
                                  : fmt::format("reads {}, whose result no scoreboard announced", row_name(number)));
      } else if (age < needed) {
        hazard(fmt::format("reads {} {} cycles after the instruction that writes it was issued; it takes {}",
                           row_name(number), age, needed));
      } else {
        if (age > 32) row.written = 0;
        continue;
      }
      if (swapped.count < swapped.rows.size()) {
        swapped.rows[swapped.count++] = static_cast<uint16_t>(number);
        exchange_old(w, number);
      }
      row.written = 0;  // reported once
    }
  }
  for (uint32_t i = 0; i < f.write_count; ++i) {
    const Footprint::Rows& r = f.writes[i];
    for (uint32_t number = r.first; number < static_cast<uint32_t>(r.first) + r.count && number < row_count; ++number) {
      Timing::Row& row = t.rows[number];
      if (row.reading & affected) {
        if (row.read_sequence <= t.unit_done[row.read_unit] || t.now - row.read_time >= 20) {
          row.reading = 0;
        } else if (row.reader != f.writes_behind) {
          hazard(fmt::format("overwrites {}, which a queued instruction may not have read yet", row_name(number)));
          row.reading = 0;
        }
      }
      if (!row.pending && number < row_predicate && (row.written & affected) &&
          t.now < row.time + overtaking(static_cast<Producer>(row.producer), static_cast<Producer>(f.producer), number,
                                        target)) {
        hazard(fmt::format("overwrites {}, whose earlier result arrives later", row_name(number)));
        row.written = 0;
      }
      if (row.pending && (row.written & affected)) {
        const bool done = (row.scoreboard < 6 && row.sequence <= t.done[row.scoreboard]) ||
                          (row.in_order && row.sequence <= t.unit_done[row.unit]);
        if (!done && f.unit != row.unit)
          hazard(fmt::format("overwrites {}, whose earlier result is still on its way", row_name(number)));
        row.written = 0;
      }
    }
  }
  // The old values of what this writes.
  for (uint32_t i = 0; i < f.write_count; ++i) {
    const Footprint::Rows& r = f.writes[i];
    for (uint32_t number = r.first; number < static_cast<uint32_t>(r.first) + r.count && number < row_count; ++number) {
      if (number >= row_predicate)
        t.old_mask[number] = *mask_value(w, number);
      else if (number >= row_uniform || number < w.launch->program->registers)
        std::memcpy(old_value(w, number), row_value(w, number), lanes * 4);
    }
  }
}

void after_issue(Warp& w, const Op& op, const Footprint& f, uint32_t mask, const Swapped& swapped) {
  Timing& t = *w.timing;
  const uint32_t affected = op.full ? all_lanes : mask;
  for (uint32_t i = 0; i < swapped.count; ++i) {
    const uint32_t number = swapped.rows[i];
    bool written = false;
    for (uint32_t k = 0; k < f.write_count; ++k)
      written |= number >= f.writes[k].first && number < static_cast<uint32_t>(f.writes[k].first) + f.writes[k].count;
    if (!written) exchange_old(w, number);
  }
  const bool queued =
      f.producer == p_queued || f.late_sources || f.control.write_barrier < 6 || f.control.read_barrier < 6;
  const uint32_t sequence = queued ? ++t.sequence : 0;
  for (uint8_t sb : {f.control.write_barrier, f.control.read_barrier}) {
    if (sb > 5) continue;
    t.last_set[sb] = sequence;
    t.set_time[sb] = t.now;
    t.last_of_unit[sb][f.unit] = t.last_of_unit[sb][f.reads_in] = sequence;
    auto& list = t.outstanding[sb];
    if (list.size() >= 63) list.erase(list.begin());
    list.push_back({sequence, f.unit, f.in_order || f.unit == 0});
  }
  const bool alone = stands_alone(f.control, *w.launch->program->target);
  for (uint32_t i = 0; i < f.write_count; ++i) {
    const Footprint::Rows& r = f.writes[i];
    for (uint32_t number = r.first; number < static_cast<uint32_t>(r.first) + r.count && number < row_count; ++number) {
      Timing::Row& row = t.rows[number];
      if (alone) {
        row.written &= ~affected;
        continue;
      }
      row.time = t.now;
      row.written = affected;
      row.producer = f.producer;
      row.pending = f.producer == p_queued;
      row.scoreboard = f.control.write_barrier;
      row.sequence = sequence;
      row.unit = f.unit;
      row.in_order = f.in_order;
    }
  }
  if (f.late_sources && !alone)
    for (uint32_t i = 0; i < f.read_count; ++i) {
      const Footprint::Rows& r = f.reads[i];
      // Predicates and uniform registers are read at issue: ptxas overwrites them in the next cycle (`LDS R2, [UR4]`, `ULDC UR4, ..`).
      if (r.role == r_guard || r.first >= row_uniform) continue;
      for (uint32_t number = r.first; number < static_cast<uint32_t>(r.first) + r.count && number < row_count;
           ++number) {
        Timing::Row& row = t.rows[number];
        row.reading = affected;
        row.read_sequence = sequence;
        row.read_unit = f.reads_in;
        row.reader = f.writes_behind;
        row.read_time = t.now;
      }
    }
  const bool volta = w.launch->program->target->family == isa::Family::volta;
  t.now += volta && f.control.stall == 0 ? 1 : f.control.stall;  // Pascal: 0 = issued together with the next
}

void check_initialised(Warp& w, const Op& op, const Footprint& f, uint32_t mask) {
  const uint32_t affected = op.full ? all_lanes : mask;
  for (uint32_t i = 0; i < f.read_count; ++i) {
    const Footprint::Rows& r = f.reads[i];
    for (uint32_t number = r.first; number < static_cast<uint32_t>(r.first) + r.count && number < row_count; ++number) {
      // What works for the whole warp reads a register of its live lanes only (R2UR).
      const bool by_lane = op.full ? r.first < row_uniform : r.guard;
      const uint32_t missing = (by_lane ? w.active : affected) & ~w.written[number];
      if (!missing) continue;
      report(w, op, std::countr_zero(missing), fmt::format("reads {}, which was never written", row_name(number)));
      w.written[number] = all_lanes;  // reported once
    }
  }
  for (uint32_t i = 0; i < f.write_count; ++i) {
    const Footprint::Rows& r = f.writes[i];
    for (uint32_t number = r.first; number < static_cast<uint32_t>(r.first) + r.count && number < row_count; ++number)
      w.written[number] |= affected;
  }
}

}  // namespace rndn::sim
