// Checks the final stream of a kernel for scheduling hazards, from the control fields alone.
//
// Properties checked, on every path through the code:
//   1. a result of fixed latency is read no earlier than the smallest distance that ptxas uses for that kind of pair;
//   2. a result of variable latency is read, overwritten, or used as a guard only after a wait on the scoreboard that announces it, and every
//      such producer whose result is used has a scoreboard;
//   3. a register that an instruction reads late (memory, function units, FP64 with scoreboards) is overwritten only after a wait on that
//      instruction's read barrier, or on its write barrier;
//   4. two cycles lie between setting a scoreboard and the next instruction, when that waits for it;
//   5. Pascal: an EXIT or BAR keeps 49 cycles from the kernel's start along the straight path;
//   6. of two results of fixed latency for one register the later arrives later;
//   7. the scoreboard of the groups of copies (LDGDEPBAR), which DEPBAR.LE counts down, is set by nothing else;
//   8. a uniform register or the condition code is written on every path before it is read (the assembler alone defines these; general registers
//      and predicates may be undefined in the PTX itself).
// check_order compares the code before and after a reordering: every instruction reads what the same instructions wrote, of every register and
// of memory.
//
// A call of a subroutine of the kernel goes through its code in the state of each place.
//
// Independence: reads isa.h's facts about operands, but neither latency.h nor anything that the assigner computed. The distances below were
// written from distances mined from ptxas's code (docs/sass.md, section 4).
// Algorithm: forward data flow over blocks cut at branches and targets. Per register: the smallest age of a result of each kind, and the set of
// pending scoreboards. Joins take the smallest ages and the union. Ages are kept as times of a clock of the state, so that an instruction costs what
// its own registers do; of the registers only those up to the highest that the code names are looked at.
// Cost: O((blocks + scoreboards waited for) * registers * rounds + instructions * rounds).
#include <algorithm>
#include <array>
#include <map>
#include <span>

#include "assembler/check/check.h"
#include "assembler/machine/liveness.h"

namespace rndn::assembler {
namespace {

using isa::Access;
using isa::RegisterFile;
using L = isa::LatencyClass;

// General registers are behind the others, since their number differs: those that the code does not name are left out.
constexpr uint32_t predicates = 0, carry_flag = 8, uniforms = 16, generals = 80, registers = 336;
constexpr bool is_predicate(uint32_t r) { return r < carry_flag; }
constexpr bool is_uniform(uint32_t r) { return r >= uniforms && r < generals; }
constexpr bool is_general(uint32_t r) { return r >= generals; }
constexpr uint8_t old_age = 31;

bool is_call(isa::Mnemonic m) { return m == isa::Mnemonic::CALL_REL || m == isa::Mnemonic::CAL; }

enum Kind : uint8_t {
  k_alu,
  k_fma,
  k_wide,
  k_fp64,
  k_half,
  k_half_mma,
  k_pair_move,
  k_uniform,
  k_uniform_move,
  k_range,
  kind_count
};

Kind kind_of(L c) {
  switch (c) {
    case L::fma: return k_fma;
    case L::wide: return k_wide;
    case L::fp64: return k_fp64;
    case L::half: return k_half;
    case L::half_mma: return k_half_mma;
    case L::cs2r: return k_pair_move;
    case L::uniform: return k_uniform;
    case L::uniform_move: return k_uniform_move;
    case L::range_reduction: return k_range;
    default: return k_alu;
  }
}

struct ScheduleState {
  using Times = std::array<uint8_t, kind_count>;
  uint32_t used = registers;                         // of them; the rest is as at the start
  uint32_t clock = old_age;                          // between instructions of a block; old_age at its ends
  std::array<Times, registers> written{};            // when the youngest result of the kind was; 0: long ago
  std::array<uint8_t, registers> writes{}, reads{};  // pending scoreboards; bit 6: never announced
  uint8_t set_before = 0;                            // scoreboards that the instruction before set with a stall below 2
  uint64_t uniforms_written = 0;                     // on every path
  bool carry_written = false;
  bool reached = false;

  uint32_t age(uint32_t r, uint32_t kind) const { return std::min<uint32_t>(old_age, clock - written[r][kind]); }
  void pass(uint32_t cycles) {
    clock += cycles;
    if (clock > UINT8_MAX - 32u) set_back();
  }
  void set_back() {
    const uint32_t by = clock - old_age;
    if (by == 0) return;
    for (uint32_t r = 0; r < used; ++r)
      for (uint8_t& t : written[r]) t = static_cast<uint8_t>(t > by ? t - by : 0);
    clock = old_age;
  }
  // Both at the end of a block.
  bool merge(const ScheduleState& o) {
    bool changed = !reached;
    if (!reached) uniforms_written = o.uniforms_written, carry_written = o.carry_written;
    if (uniforms_written & ~o.uniforms_written) uniforms_written &= o.uniforms_written, changed = true;
    if (carry_written && !o.carry_written) carry_written = false, changed = true;
    reached = true;
    uint8_t more = 0;
    for (uint32_t r = 0; r < used; ++r) {
      for (uint32_t k = 0; k < kind_count; ++k) {
        const uint8_t younger = std::max(written[r][k], o.written[r][k]);
        more |= younger ^ written[r][k], written[r][k] = younger;
      }
      more |= (o.writes[r] & ~writes[r]) | (o.reads[r] & ~reads[r]);
      writes[r] |= o.writes[r], reads[r] |= o.reads[r];
    }
    changed |= more != 0;
    if (o.set_before & ~set_before) set_before |= o.set_before, changed = true;
    return changed;
  }
};

struct Checker {
  const isa::Target& t;
  const std::vector<isa::Instruction>& code;
  const std::vector<uint64_t>& addresses;
  bool pascal = t.family == isa::Family::pascal, turing = t.has(isa::Feature::turing_latencies);
  std::vector<std::string> problems;
  bool reporting = false;

  void report(uint32_t k, const std::string& what) {
    if (reporting && problems.size() < 50)
      problems.push_back(fmt::format("{:#06x} `{}`: {}", addresses[k], isa::text(t, code[k]), what));
  }
  static std::string name(uint32_t r) {
    if (is_uniform(r)) return fmt::format("UR{}", r - uniforms);
    if (r == carry_flag) return "CC";
    return is_predicate(r) ? fmt::format("P{}", r - predicates) : fmt::format("R{}", r - generals);
  }

  bool announced(L c) const {  // results come by scoreboard
    switch (c) {
      case L::fp64: return t.has(isa::Feature::fp64_scoreboard);
      case L::register_to_uniform: return t.has(isa::Feature::r2ur_scoreboard);
      case L::sfu:
      case L::special:
      case L::to_uniform:
      case L::constant_load:
      case L::global_load:
      case L::global_atomic:
      case L::shared_load:
      case L::shared_atomic:
      case L::local_load:
      case L::shuffle:
      case L::space_query: return true;
      default: return false;
    }
  }
  bool late(L c) const {
    switch (c) {
      case L::fp64: return t.has(isa::Feature::fp64_scoreboard);
      case L::register_to_uniform: return t.has(isa::Feature::r2ur_scoreboard);
      case L::sfu:
      case L::global_load:
      case L::global_store:
      case L::global_atomic:
      case L::shared_load:
      case L::shared_store:
      case L::shared_atomic:
      case L::local_load:
      case L::local_store:
      case L::shuffle:
      case L::constant_load:
      case L::async_copy: return true;
      default: return false;
    }
  }

  // Smallest distance from a producer of the kind to this use.
  uint32_t needed(Kind p, uint32_t r, L consumer, bool guard) const {
    const bool predicate = is_predicate(r);
    if (pascal) {
      if (p == k_fp64) return 0;
      if (predicate) return 13;
      if (r == carry_flag) return 6;
      switch (consumer) {
        case L::global_load:
        case L::global_store:
        case L::global_atomic:
        case L::local_load:
        case L::local_store:
        case L::sfu: return 2;
        case L::shared_load:
        case L::shared_store:
        case L::shared_atomic:
        case L::constant_load:
        case L::shuffle: return 4;
        case L::fence: return 2;
        default: return p == k_range ? 2 : 6;
      }
    }
    const bool memory = consumer == L::global_load || consumer == L::global_store || consumer == L::global_atomic ||
                        consumer == L::shared_load || consumer == L::shared_store || consumer == L::shared_atomic ||
                        consumer == L::local_load || consumer == L::local_store || consumer == L::async_copy ||
                        consumer == L::shuffle || consumer == L::barrier;
    if (is_uniform(r)) return p != k_uniform ? 2 : memory ? 9 : consumer == L::uniform ? 4 : 6;
    const bool control =
        predicate && (guard || consumer == L::branch || consumer == L::vote || consumer == L::barrier || memory);
    if (turing) return needed_on_turing(p, consumer, predicate, control, memory);
    if (predicate) {
      if (p == k_fp64) return control ? 14 : 6;
      if (control) return 13;
      return consumer == L::fma || consumer == L::wide ? 5 : 4;
    }
    if (consumer == L::register_to_uniform) consumer = L::alu;  // reads as these do
    switch (p) {
      case k_fp64:
        return consumer == L::fp64                                               ? (t.has(isa::Feature::fp64_scoreboard) ? 6 : 8)
               : memory                                                          ? 7
               : consumer == L::alu || consumer == L::fma || consumer == L::wide ? 10
                                                                                 : 6;
      case k_half_mma: return consumer == L::fp64 ? 8 : memory ? 7 : 10;
      case k_pair_move: return memory ? 5 : 6;
      default: break;
    }
    if (consumer == L::fp64) return 6;
    if (memory) return 5;
    const bool multiplier = consumer == L::fma || consumer == L::wide;
    if (p == k_alu || p == k_half) return multiplier ? 5 : 4;
    if (p == k_fma) return consumer == L::alu ? 5 : 4;
    return consumer == L::alu ? 5 : 4;  // IMAD.WIDE
  }

  // The same for general registers and predicates of sm_75. Halves are slower there, and what memory reads has to be there sooner.
  static uint32_t needed_on_turing(Kind p, L consumer, bool predicate, bool control, bool memory) {
    const bool of_halves = consumer == L::half, of_doubles = consumer == L::fp64;
    if (control) return p == k_fp64 ? 15 : p == k_half ? 14 : 12;
    if (predicate) {
      if (p == k_fp64) return of_doubles ? 8 : 9;
      if (p == k_half) return of_halves ? 6 : 8;
      if (of_halves || of_doubles) return 12;
      if (consumer == L::fma || consumer == L::wide) return p == k_alu ? 5 : 4;
      return p == k_alu ? 4 : 5;
    }
    if (memory || consumer == L::register_to_uniform || consumer == L::space_query || consumer == L::fence) return 8;
    switch (p) {
      case k_fp64: return of_doubles ? 8 : 9;
      case k_half: return of_halves ? 6 : 8;
      case k_pair_move: return 6;
      default: break;
    }
    switch (consumer) {
      case L::alu:
      case L::vote: return p == k_alu ? 4 : 5;
      case L::fma: return p == k_alu ? 5 : 4;
      case L::wide: return p == k_alu ? 5 : p == k_wide ? 6 : 4;
      default: return 6;  // function units, doubles, halves, indirect branches
    }
  }

  // Smallest distance from a producer of the kind to another write of the register, so that this one stays: the time that the first takes to the ALU
  // beyond the 4 cycles of the quickest kind, 3 of IMAD.WIDE's low half (mined from ptxas's code). Predicates and uniform registers are not looked at.
  uint32_t overtaking(Kind p, uint32_t r, L second) const {
    if (pascal || !is_general(r) || announced(second) || p == kind_of(second)) return 0;
    const uint32_t sooner = second == L::wide ? 1 : 0;
    switch (p) {
      case k_pair_move: return 3 + sooner;                     // ptxas writes behind IMAD in the next cycle
      case k_fp64: return t.has(isa::Feature::fp64_scoreboard) ? 0 : 7 + sooner;  // else the wait for the scoreboard does
      case k_half: return turing ? 5 + sooner : 0;
      case k_half_mma: return 7 + sooner;
      default: return 0;
    }
  }

  // Of every instruction, found once.
  struct Use {
    uint16_t reg;
    bool write, guard;
  };
  struct Facts {
    L latency{};
    bool announced = false, late = false;
    uint32_t first = 0, end = 0;  // of its uses
  };
  std::vector<Use> uses;
  std::vector<Facts> facts;
  uint32_t used = generals;

  void find_facts() {
    for (const isa::Instruction& i : code) {
      Facts& f = facts.emplace_back();
      f.latency = isa::latency_class(i);
      f.announced = announced(f.latency), f.late = late(f.latency);
      f.first = static_cast<uint32_t>(uses.size());
      each(i, [&](uint32_t r, bool write, bool guard) {
        uses.push_back({static_cast<uint16_t>(r), write, guard});
        used = std::max(used, r + 1);
      });
      f.end = static_cast<uint32_t>(uses.size());
    }
  }

  template <class F>
  void each(const isa::Instruction& i, F&& f) const {  // f(register, write, guard)
    for (uint32_t k = 0; k < i.operand_count; ++k) {
      const isa::Operand& o = i.operands[k];
      Access a = isa::access(i, k);
      if (a == Access::none) continue;
      if (o.kind == isa::OperandKind::address && o.uniform != isa::URZ)
        for (uint32_t w = 0; w < (o.descriptor ? 2u : 1u); ++w) f(uniforms + o.uniform + w, false, false);
      RegisterFile file = isa::register_file(i, k);
      uint32_t base, zero;
      if (file == RegisterFile::gpr)
        base = generals, zero = isa::RZ;
      else if (file == RegisterFile::predicate)
        base = predicates, zero = isa::PT;
      else if (file == RegisterFile::uniform)
        base = uniforms, zero = isa::URZ;
      else
        continue;
      if (o.reg == zero) continue;
      // Only BAR.RED looks at its predicate.
      if (i.mnemonic == isa::Mnemonic::BAR && file == RegisterFile::predicate &&
          isa::modifier(i, isa::ModifierKind::BarMode) != 2)
        continue;
      for (uint32_t w = 0; w < isa::register_count(i, k); ++w) {
        if (a != Access::write) f(base + o.reg + w, false, false);
        if (a != Access::read) f(base + o.reg + w, true, false);
      }
    }
    if (i.guard != isa::PT) f(predicates + i.guard, false, true);
    if (isa::reads_carry(i)) f(carry_flag, false, false);
    if (isa::writes_carry(i)) f(carry_flag, true, false);
  }

  void step(uint32_t k, ScheduleState& s) {
    const isa::Instruction& i = code[k];
    const isa::Control& c = i.control;
    const Facts& facts_of = facts[k];
    const L latency = facts_of.latency;
    const std::span<const Use> of(uses.data() + facts_of.first, facts_of.end - facts_of.first);
    if (uint8_t early = c.wait_mask & s.set_before)
      report(k, fmt::format("waits for scoreboard mask {:#x} one cycle after it is set", early));
    if (c.wait_mask)
      for (uint32_t r = 0; r < used; ++r) {
        s.writes[r] &= static_cast<uint8_t>(~c.wait_mask);
        s.reads[r] &= static_cast<uint8_t>(~c.wait_mask);
      }
    for (const auto& [r, write, guard] : of) {
      if (s.writes[r])
        report(k, fmt::format("{} {} while scoreboard mask {:#x} is pending", write ? "overwrites" : "reads", name(r),
                              s.writes[r]));
      if (write) {
        if (s.reads[r])
          report(k, fmt::format("overwrites {} while it may still be read (mask {:#x})", name(r), s.reads[r]));
        for (uint32_t p = 0; p < kind_count; ++p)
          if (const uint32_t d = overtaking(static_cast<Kind>(p), r, latency); s.age(r, p) < d)
            report(k, fmt::format("overwrites {} after {} cycles, needs {}", name(r), s.age(r, p), d));
        continue;
      }
      if (is_uniform(r) ? !(s.uniforms_written >> (r - uniforms) & 1) : r == carry_flag && !s.carry_written)
        report(k, fmt::format("reads {}, which is not written before on every path", name(r)));
      for (uint32_t p = 0; p < kind_count; ++p) {
        const uint32_t age = s.age(r, p);
        if (age == old_age) continue;
        uint32_t d = needed(static_cast<Kind>(p), r, latency, guard);
        if (age < d) report(k, fmt::format("reads {} after {} cycles, needs {}", name(r), age, d));
      }
    }
    // Effects.
    const uint8_t now = static_cast<uint8_t>(s.clock);
    for (const auto& [r, write, guard] : of) {
      if (guard) continue;
      if (write) {
        if (i.guard == isa::PT) s.written[r].fill(0);
        if (is_uniform(r)) s.uniforms_written |= uint64_t{1} << (r - uniforms);
        if (r == carry_flag) s.carry_written = true;
        if (facts_of.announced) {
          s.writes[r] =
              c.write_barrier == 7 ? uint8_t{1 << 6} : static_cast<uint8_t>(s.writes[r] | 1u << c.write_barrier);
          if (latency == L::fp64) s.written[r][k_fp64] = now;  // sm_8x: distance and scoreboard
        } else {
          s.written[r][kind_of(latency)] = now;
        }
      } else if (facts_of.late && is_general(r)) {
        uint8_t mask = 0;
        if (c.read_barrier != 7)
          mask = static_cast<uint8_t>(1u << c.read_barrier);
        else if (facts_of.announced && c.write_barrier != 7)
          mask = static_cast<uint8_t>(1u << c.write_barrier);
        else
          mask = 1 << 6;
        s.reads[r] |= mask;
      }
    }
    s.set_before = 0;
    if (c.stall < 2)
      s.set_before = static_cast<uint8_t>((c.write_barrier != 7 ? 1u << c.write_barrier : 0) |
                                          (c.read_barrier != 7 ? 1u << c.read_barrier : 0));
    s.pass(c.stall);
  }

  // Whoever else set it would have to be done, too, before few enough groups are left.
  void check_groups_of_copies() {
    using M = isa::Mnemonic;
    uint32_t groups = 0, others = 0;  // sets of scoreboards
    const auto bit = [](uint32_t s) { return s < 6 ? 1u << s : 0; };
    for (const isa::Instruction& i : code) {
      const isa::Control& c = i.control;
      (i.mnemonic == M::LDGDEPBAR ? groups : others) |= bit(c.write_barrier) | bit(c.read_barrier);
    }
    for (uint32_t k = 0; k < code.size(); ++k) {
      if (code[k].mnemonic == M::LDGDEPBAR && (groups & others)) report(k, "its scoreboard is set by others too");
      if (code[k].mnemonic == M::LDGDEPBAR && code[k].control.write_barrier > 5) report(k, "sets no scoreboard");
      if (code[k].mnemonic == M::DEPBAR && groups && !(groups >> code[k].operands[0].value & 1))
        report(k, "waits for no group of copies");
    }
  }

  void run() {
    const uint32_t n = static_cast<uint32_t>(code.size());
    std::map<uint64_t, uint32_t> at;
    for (uint32_t k = 0; k < n; ++k) at[addresses[k]] = k;
    auto target = [&](uint32_t k) {
      for (uint32_t o = 0; o < code[k].operand_count; ++o)
        if (code[k].operands[o].kind == isa::OperandKind::label) {
          auto it = at.find(static_cast<uint64_t>(code[k].operands[o].value));
          if (it != at.end()) return it->second;
        }
      return UINT32_MAX;
    };
    // Blocks: cut after branches and before targets.
    std::vector<bool> leader(n + 1, false);
    leader[0] = true;
    for (uint32_t k = 0; k < n; ++k) {
      using M = isa::Mnemonic;
      M m = code[k].mnemonic;
      if (m == M::BRA || m == M::EXIT || m == M::SYNC || is_call(m)) leader[k + 1] = true;
      if (uint32_t to = target(k); to != UINT32_MAX) leader[to] = true;
    }
    std::vector<uint32_t> block_of(n), begin;
    for (uint32_t k = 0; k < n; ++k) {
      if (leader[k]) begin.push_back(k);
      block_of[k] = static_cast<uint32_t>(begin.size() - 1);
    }
    begin.push_back(n);
    const uint32_t blocks = static_cast<uint32_t>(begin.size() - 1);
    find_facts();
    ScheduleState start;
    start.used = used;
    std::vector<ScheduleState> in(blocks, start);
    std::vector<std::vector<uint32_t>> stack(
        blocks);  // Pascal: targets of the open SSYs, the same on every path to a block
    std::vector<bool> known(blocks, false);
    in[0].reached = true;
    known[0] = true;
    auto flow = [&](uint32_t b, auto&& edge) {
      ScheduleState s = in[b];
      std::vector<uint32_t> open = stack[b];
      for (uint32_t k = begin[b]; k < begin[b + 1]; ++k) {
        step(k, s);
        if (code[k].mnemonic == isa::Mnemonic::SSY) open.push_back(target(k));
      }
      s.set_back();
      const uint32_t last = begin[b + 1] - 1;
      const isa::Instruction& i = code[last];
      const bool always = i.guard == isa::PT;
      using M = isa::Mnemonic;
      if (i.mnemonic == M::BRA) edge(target(last), s, open);
      if (is_call(i.mnemonic)) {  // a straight way to its return, with branches forward (check_regions)
        std::map<uint32_t, ScheduleState> passed;
        for (uint32_t k = target(last); k < n; ++k) {
          if (const auto it = passed.find(k); it != passed.end()) s.set_back(), s.merge(it->second);
          step(k, s);
          if (code[k].mnemonic == M::RET_REL || code[k].mnemonic == M::RET) break;
          if (code[k].mnemonic != M::BRA || target(k) == UINT32_MAX) continue;
          s.set_back();
          if (const auto [it, first] = passed.try_emplace(target(k), s); !first) it->second.merge(s);
        }
        s.set_back();
      }
      if (i.mnemonic == M::SYNC) {
        if (open.empty() || open.back() == UINT32_MAX) {
          report(last, "joins no region");
        } else {
          std::vector<uint32_t> rest(open.begin(), open.end() - 1);
          edge(open.back(), s, rest);
        }
      }
      const bool falls = !(always && (i.mnemonic == M::BRA || i.mnemonic == M::EXIT || i.mnemonic == M::SYNC));
      if (falls && last + 1 < n) edge(last + 1, s, open);
    };
    std::vector<bool> queued(blocks, false);
    queued[0] = true;
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t b = 0; b < blocks; ++b) {
        if (!queued[b]) continue;
        queued[b] = false;
        flow(b, [&](uint32_t to, const ScheduleState& s, const std::vector<uint32_t>& open) {
          if (to == UINT32_MAX) return;
          uint32_t x = block_of[to];
          if (!known[x]) known[x] = true, stack[x] = open;
          if (in[x].merge(s)) queued[x] = true, changed = true;
        });
      }
    }
    reporting = true;
    if (!pascal) check_groups_of_copies();
    for (uint32_t b = 0; b < blocks; ++b)
      if (in[b].reached) flow(b, [](uint32_t, const ScheduleState&, const std::vector<uint32_t>&) {});
    if (pascal) {
      uint32_t cycles = 0;
      for (uint32_t k = 0; k < begin[1]; ++k) {
        if ((code[k].mnemonic == isa::Mnemonic::EXIT || code[k].mnemonic == isa::Mnemonic::BAR) && cycles < 49)
          report(k, fmt::format("issues {} cycles after the kernel's start, needs 49", cycles));
        cycles += code[k].control.stall;
      }
    }
  }
};

uint64_t mix(uint64_t a, uint64_t b) { return (a ^ (b + 0x9e3779b97f4a7c15)) * 0xff51afd7ed558ccd + (a >> 29); }

// An access to memory: which bytes, behind what is in the registers of its address.
struct MemoryAccess {
  uint64_t id = 0, base = 0;  // base: as a hash
  int64_t first = 0, last = 0;
  uint32_t space = 0;
  bool store = false, anywhere = false;
};
bool may_meet(const MemoryAccess& a, const MemoryAccess& b) {
  if (a.space != b.space || !(a.store || b.store)) return false;
  return a.anywhere || b.anywhere || a.base != b.base || (a.first <= b.last && b.first <= a.last);
}

// What one block's registers hold, as hashes of the instructions that wrote them in turn, and its accesses to memory.
struct Contents {
  std::array<std::vector<uint64_t>, 6> registers;          // by file and number; 0: not written
  std::vector<std::pair<RegisterFile, uint32_t>> written;  // those that are
  std::vector<MemoryAccess> accesses;                      // in order
  uint64_t since_fence = 0, fence = 0;

  uint64_t at(RegisterFile file, uint32_t reg) const {
    const std::vector<uint64_t>& of = registers[static_cast<size_t>(file)];
    return reg < of.size() ? of[reg] : 0;
  }
  uint64_t& to_write(RegisterFile file, uint32_t reg) {
    std::vector<uint64_t>& of = registers[static_cast<size_t>(file)];
    if (reg >= of.size()) of.resize(std::max<size_t>(reg + 1, 2 * of.size()));
    if (of[reg] == 0) written.emplace_back(file, reg);
    return of[reg];
  }
  void clear() {
    for (const auto& [file, reg] : written) registers[static_cast<size_t>(file)][reg] = 0;
    written.clear(), accesses.clear();
    since_fence = fence = 0;
  }
  bool holds(const Contents& o) const {  // what the other holds
    return std::all_of(o.written.begin(), o.written.end(),
                       [&](const auto& w) { return at(w.first, w.second) == o.at(w.first, w.second); });
  }
};

// LDG.CONSTANT of Volta and later, LDG.CI of Pascal, by what their rows print for these values of Order (t_order_load) and Cache (t_cache_load).
bool reads_what_nothing_writes(const isa::Instruction& i) {
  using K = isa::ModifierKind;
  constexpr uint8_t order_constant = 4, last_constant_75 = 3, cache_ci = 2;
  static const uint32_t sm_75 = isa::find_target("sm_75")->bit;
  if (i.mnemonic != isa::Mnemonic::LDG) return false;
  const uint8_t order = isa::modifier(i, K::Order);
  return isa::has_modifier(i.form, K::Order)
             ? (isa::form_targets(i.form) == sm_75 ? order <= last_constant_75 : order == order_constant)
             : isa::has_modifier(i.form, K::Cache) && isa::modifier(i, K::Cache) == cache_ci;
}

// What the instruction sees; then its effects.
uint64_t observe(const isa::Instruction& i, uint64_t id, bool in_order, Contents& c) {
  uint64_t seen = 0;
  const auto at = [&](RegisterFile file, uint32_t reg) { return c.at(file, reg); };
  struct Named {
    Access access = Access::none;
    RegisterFile file = RegisterFile::none;
    uint32_t count = 0;
  };
  std::array<Named, isa::max_operands> named;
  MemoryAccess access;
  access.anywhere = in_order;
  uint32_t words = 0, addresses = 0;
  for (uint32_t k = 0; k < i.operand_count; ++k) {
    const isa::Operand& o = i.operands[k];
    Named& n = named[k] = {isa::access(i, k), isa::register_file(i, k), isa::register_count(i, k)};
    if (n.access != Access::none) {
      if (o.kind == isa::OperandKind::address && o.uniform != isa::URZ)
        seen = mix(mix(seen, at(RegisterFile::uniform, o.uniform)), at(RegisterFile::uniform, o.uniform + 1u));
      if (o.reg == (n.file == RegisterFile::gpr ? isa::RZ : isa::PT)) n.count = 0;
      if (n.access != Access::write)
        for (uint32_t w = 0; w < n.count; ++w) seen = mix(seen, at(n.file, o.reg + w));
    }
    if (o.kind == isa::OperandKind::address) {
      ++addresses;
      access.first = o.value;
      access.base = o.reg;
      if (o.reg != isa::RZ)
        for (uint32_t w = 0; w < isa::register_count(i, k); ++w)
          access.base = mix(access.base, at(RegisterFile::gpr, o.reg + w));
      access.anywhere |= o.uniform != isa::URZ && !o.descriptor;
    } else if (o.kind == isa::OperandKind::gpr && o.reg != isa::RZ) {
      words = std::max(words, isa::register_count(i, k));
    }
  }
  access.anywhere |= addresses != 1;
  access.last = access.first + 4 * (words ? words : 4) - 1;
  if (i.guard != isa::PT)
    seen = mix(seen,
               at(isa::guard_is_uniform(i.form) ? RegisterFile::uniform_predicate : RegisterFile::predicate, i.guard));
  if (isa::reads_carry(i)) seen = mix(seen, at(RegisterFile::none, 0));
  const auto write = [&](RegisterFile file, uint32_t reg) {
    uint64_t& x = c.to_write(file, reg);
    x = i.guard == isa::PT ? mix(id, 1) : mix(x, id);
  };
  for (uint32_t k = 0; k < i.operand_count; ++k) {
    const Named& n = named[k];
    if (n.access == Access::none || n.access == Access::read) continue;
    for (uint32_t w = 0; w < n.count; ++w) write(n.file, i.operands[k].reg + w);
  }
  if (isa::writes_carry(i)) write(RegisterFile::none, 0);
  auto touch = [&](uint32_t space, bool store) {
    seen = mix(seen, c.fence);
    c.since_fence += mix(id, 2);  // in any order
    access.id = id, access.space = space, access.store = store;
    c.accesses.push_back(access);
  };
  switch (isa::latency_class(i)) {
    case L::global_load:
      if (reads_what_nothing_writes(i)) {
        seen = mix(seen, c.fence);
        c.since_fence += mix(id, 2);
      } else {
        touch(0, false);
      }
      break;
    case L::global_store:
    case L::global_atomic: touch(0, true); break;
    case L::shared_load: touch(1, false); break;
    case L::shared_store:
    case L::shared_atomic: touch(1, true); break;
    case L::local_load: touch(2, false); break;
    case L::local_store: touch(2, true); break;
    case L::async_copy:  // a copy, or the end of a group of them, which stays among them
      if (i.mnemonic == isa::Mnemonic::LDGSTS) touch(0, false);
      access.anywhere = true;
      touch(1, true);
      break;
    case L::vote:
    case L::shuffle:
    case L::to_uniform:  // of all lanes that are here: they stay between the same waits
      seen = mix(seen, c.fence);
      c.since_fence += mix(id, 2);
      break;
    case L::barrier:
    case L::fence:
    case L::branch:
    case L::convergence:
    case L::wait:
      seen = mix(seen, mix(c.since_fence, c.fence));
      c.fence = mix(c.fence, id);
      c.since_fence = 0;
      break;
    default: break;
  }
  return seen;
}

}  // namespace

std::vector<std::string> check_order(const Function& before, const Function& after) {
  std::vector<std::string> problems;
  Contents was, is;
  struct Seen {
    uint64_t what = 0;
    uint32_t block = UINT32_MAX;  // where it was before; none: nowhere, or it has come again
  };
  std::vector<Seen> seen(std::max(before.insts.size(), after.insts.size()));
  std::vector<uint32_t> place(seen.size());
  for (BlockId b : before.layout) {
    was.clear(), is.clear();
    const auto in_order = [](const Inst& i) {
      using M = isa::Mnemonic;
      const L x = isa::latency_class(i.sass);
      return i.pinned || x == L::global_atomic || x == L::shared_atomic || i.sass.mnemonic == M::LD ||
             i.sass.mnemonic == M::ST;
    };
    for (InstId i : before.blocks[b].code)
      seen[index(i)] = {observe(before[i].sass, index(i), in_order(before[i]), was), index(b)};
    if (before.blocks[b].code.size() != after.blocks[b].code.size())
      problems.push_back("scheduling changed the number of a block's instructions");
    for (InstId i : after.blocks[b].code) {
      Seen& then = seen[index(i)];
      const uint64_t now = observe(after[i].sass, index(i), in_order(after[i]), is);
      if (then.block != index(b))
        problems.push_back("scheduling moved or duplicated an instruction");
      else if (then.what != now)
        problems.push_back(fmt::format("line {} `{}`: does not read what it read before scheduling", after[i].line,
                                       isa::text(*after.target, after[i].sass)));
      then.block = UINT32_MAX;
    }
    // Accesses that have changed places.
    for (const MemoryAccess& a : was.accesses) place[a.id] = 0;  // of one that is gone
    for (size_t k = 0; k < is.accesses.size(); ++k) place[is.accesses[k].id] = static_cast<uint32_t>(k);
    uint32_t last = 0;  // of those before, in the new order
    for (size_t k = 0; k < was.accesses.size(); ++k) {
      const uint32_t here = place[was.accesses[k].id];
      for (size_t j = 0; j < k && last > here; ++j)
        if (place[was.accesses[j].id] > here && may_meet(was.accesses[j], was.accesses[k]))
          problems.push_back(fmt::format("line {}: an access to memory passes one that may be of the same bytes",
                                         after[static_cast<InstId>(was.accesses[k].id)].line));
      last = std::max(last, here);
    }
    if (!is.holds(was) || !was.holds(is) || was.since_fence != is.since_fence)
      problems.push_back("scheduling changed what a block leaves behind");
  }
  return problems;
}

uint32_t checked_distance(const isa::Target& target, const isa::Instruction& producer, const isa::Instruction& consumer,
                          uint32_t reg, RegisterFile file, bool guard) {
  const std::vector<isa::Instruction> no_code;
  const std::vector<uint64_t> no_addresses;
  Checker c{target, no_code, no_addresses};
  const L latency = isa::latency_class(producer);
  if (c.announced(latency) && latency != L::fp64) return 0;
  const uint32_t base = file == RegisterFile::gpr         ? generals
                        : file == RegisterFile::predicate ? predicates
                        : file == RegisterFile::uniform   ? uniforms
                                                          : carry_flag;
  return c.needed(kind_of(latency), base + reg, isa::latency_class(consumer), guard);
}

std::vector<std::string> check_schedule(const isa::Target& target, const std::vector<isa::Instruction>& code,
                                        const std::vector<uint64_t>& addresses) {
  Checker c{target, code, addresses};
  c.run();
  return std::move(c.problems);
}

}  // namespace rndn::assembler
