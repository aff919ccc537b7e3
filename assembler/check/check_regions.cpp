// Proves that every region is opened and joined once on every path: an independent reading of the final stream.
//
// What it does: follows all paths through the instructions with the set of open regions as the state. Pascal: the stack of SSY targets, which
// SYNC pops. Volta and later: for each B register the end of the region that BSSY opened in it, which BSYNC closes.
// What must hold: a block has the same state whichever way it is reached, a SYNC finds an entry, a BSYNC finds its own region open, a BSSY
// finds its register free, and at the last exit nothing is open. A state that differs between paths is no fault where the paths only lead to
// other exits, since exited lanes take part in nothing; there the state is unknown, and to close what is unknown is a fault.
// Lanes may leave open regions for good, for their end, where nobody waits any more (no barrier of the block, no operation of the warp), by a branch whose
// other way leads to such waits. Behind it, what is open may differ, and may stay open.
//
// A call of a subroutine of the kernel changes nothing of it: what is called leads straight to its return, which on Volta and later goes to the place
// that the caller has put into a register. On its way it branches at most forward, and only by a vote, on which all lanes that run it agree.
//
// Algorithm: forward data flow to a fixed point; the lattice of a block's state is unreached, known, unknown. The last exit is the last EXIT of
// the stream that is reached. Where an EXIT without a way to it follows (its block was copied into its branches), which exit is meant is not
// known: then some exit must have nothing open. Cost: O(instructions * depth), times the rounds (2 or 3).
//
// Left out: BREAK, BMOV and the other stack operations of Pascal (PBK, PCNT), which selection never makes; irreducible paths may differ.
#include <algorithm>
#include <map>

#include "assembler/check/check.h"
#include "assembler/machine/liveness.h"

namespace rndn::assembler {
namespace {

constexpr uint32_t closed = UINT32_MAX, unknown = UINT32_MAX - 1;
constexpr uint32_t b_registers = 16;

struct RegionCheck {
  const isa::Target& t;
  const std::vector<isa::Instruction>& code;
  const std::vector<uint64_t>& addresses;
  std::vector<std::string> problems;
  using State = std::vector<uint32_t>;  // Pascal: targets, innermost last; Volta: by B register

  uint32_t count = 0;
  bool pascal = false, reporting = false;
  std::vector<uint32_t> targets;
  std::vector<State> in;
  std::vector<bool> reached;
  std::vector<std::vector<uint32_t>> edges;

  void report(uint32_t k, const std::string& what) {
    if (reporting) problems.push_back(fmt::format("{:#06x} `{}`: {}", addresses[k], isa::text(t, code[k]), what));
  }

  // The state after instruction k, and the instructions that may follow.
  template <class F>
  void step(uint32_t k, F&& edge) {
    using M = isa::Mnemonic;
    const isa::Instruction& i = code[k];
    State s = in[k];
    const bool always = i.guard == isa::PT && !i.guard_negated;
    switch (i.mnemonic) {
      case M::BRA:
        if (targets[k] != UINT32_MAX) edge(targets[k], s);
        if (always) return;
        break;
      case M::EXIT:
        if (always) return;
        break;
      case M::SSY: s.push_back(targets[k]); break;
      case M::SYNC:
        if (s.empty() || s.back() == unknown || s.back() == UINT32_MAX) {
          report(k, s.empty() ? "joins no region" : "joins a region that depends on the path");
        } else {
          State rest(s.begin(), s.end() - 1);
          edge(s.back(), rest);
        }
        if (always) return;
        break;
      case M::BSSY:
      case M::BSYNC: {
        uint32_t b = b_registers;
        for (uint32_t o = 0; o < i.operand_count; ++o)
          if (i.operands[o].kind == isa::OperandKind::barrier) b = i.operands[o].reg;
        if (b >= b_registers) {
          report(k, "names a register that does not exist");
        } else if (i.mnemonic == M::BSSY) {
          if (s[b] != closed && s[b] != unknown) report(k, "opens a region in a register that is in use");
          s[b] = targets[k];
        } else {
          if (s[b] == unknown)
            report(k, "joins a region that depends on the path");
          else if (s[b] == closed)
            report(k, "joins no region");
          else if (s[b] != k + 1)
            report(k, "joins a region that ends elsewhere");
          s[b] = closed;
        }
        break;
      }
      case M::CALL_REL:
      case M::CAL: check_call(k); break;
      default: break;
    }
    if (k + 1 < count) edge(k + 1, s);
  }

  // A move of zero, as a product too.
  static bool makes_zero(const isa::Instruction& s) {
    const auto all_zero = [&](uint32_t first, uint32_t count) {
      return std::all_of(&s.operands[first], &s.operands[first + count],
                         [](const isa::Operand& o) { return o.kind == isa::OperandKind::gpr && o.reg == isa::RZ; });
    };
    return s.mnemonic == isa::Mnemonic::MOV ? all_zero(1, 1) : s.mnemonic == isa::Mnemonic::IMAD && all_zero(1, 3);
  }
  void check_call(uint32_t k) {
    using M = isa::Mnemonic;
    const auto moves_control = [&](uint32_t i) {
      const isa::LatencyClass c = isa::latency_class(code[i]);
      return c == isa::LatencyClass::branch || c == isa::LatencyClass::convergence || c == isa::LatencyClass::barrier;
    };
    if (code[k].guard != isa::PT) report(k, "calls under a guard");
    // Whether the branch's guard is what the vote before it says, on every way to it: none passes over up to behind the vote.
    const auto voted = [&](uint32_t branch, uint32_t passed) {
      for (uint32_t i = branch; i-- > targets[k];)
        for (uint32_t o = 0; o < code[i].operand_count; ++o)
          if (isa::register_file(code[i], o) == isa::RegisterFile::predicate &&
              isa::access(code[i], o) == isa::Access::write && code[i].operands[o].reg == code[branch].guard)
            return code[i].mnemonic == M::VOTE && code[i].guard == isa::PT && passed <= i;
      return false;
    };
    uint32_t end = targets[k], passed = end;  // up to where a branch may have passed over
    for (; end < count; ++end) {
      if (!moves_control(end)) continue;
      if (code[end].mnemonic != M::BRA || code[end].guard == isa::PT || targets[end] == UINT32_MAX ||
          targets[end] <= end || !voted(end, passed))
        break;
      passed = std::max(passed, targets[end]);
    }
    const M back = pascal ? M::RET : M::RET_REL;
    if (end >= count || code[end].mnemonic != back || code[end].guard != isa::PT || passed > end)
      return report(k, "calls what does not lead straight to a return");
    if (pascal) return;
    // The return's operands: a predicate, the register of the place, from the kernel's beginning, and its beginning.
    const uint32_t place = code[end].operands[1].reg;
    if (code[end].operands[2].value != 0) report(end, "returns to a place that does not count from the beginning");
    const auto writes = [&](uint32_t i, uint32_t reg) {
      for (uint32_t o = 0; o < code[i].operand_count; ++o)
        if (isa::register_file(code[i], o) == isa::RegisterFile::gpr && isa::access(code[i], o) != isa::Access::read &&
            isa::access(code[i], o) != isa::Access::none &&
            reg - code[i].operands[o].reg < isa::register_count(code[i], o))
          return true;
      return false;
    };
    uint32_t set = k, high = end;
    while (set > 0 && !moves_control(set - 1) && !writes(set - 1, place)) --set;
    const isa::Instruction& move = code[set > 0 ? set - 1 : 0];
    if (set == 0 || move.mnemonic != M::MOV || move.guard != isa::PT ||
        move.operands[1].kind != isa::OperandKind::immediate ||
        move.operands[1].value != static_cast<int64_t>(addresses[k] + 16))
      report(k, "has not said where to return to");
    for (uint32_t i = targets[k]; i < end; ++i)
      if (writes(i, place)) report(i, "loses the place to return to");
    while (high > targets[k] && !writes(high - 1, place + 1)) --high;
    if (high <= passed || !makes_zero(code[high - 1])) report(end, "returns to a place of more than 32 bits");
  }

  bool open(const State& s) {
    return std::any_of(s.begin(), s.end(), [](uint32_t x) { return x != closed; });
  }

  static bool is_wait(isa::Mnemonic m) {
    using M = isa::Mnemonic;
    return m == M::BAR || m == M::SHFL || m == M::VOTE || m == M::MATCH || m == M::REDUX || m == M::WARPSYNC ||
           m == M::WARPSYNC_ALL;
  }
  // By instruction: whether it leads to one for which `is` holds, or is one.
  template <class F>
  std::vector<bool> leading_to(F&& is) {
    std::vector<bool> leads(count, false);
    for (uint32_t k = 0; k < count; ++k) leads[k] = reached[k] && is(k);
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t k = count; k-- > 0;)
        for (uint32_t to : edges[k])
          if (leads[to] && !leads[k]) leads[k] = true, changed = true;
    }
    return leads;
  }
  // By instruction: whether lanes may have come to it by leaving others that go on to a wait.
  std::vector<bool> behind_leaving(const std::vector<bool>& waits) {
    std::vector<bool> left(count, false);
    std::vector<uint32_t> work;
    for (uint32_t k = 0; k < count; ++k)
      if (edges[k].size() > 1 && waits[k])
        for (uint32_t to : edges[k])
          if (!waits[to] && !left[to]) left[to] = true, work.push_back(to);
    for (size_t at = 0; at < work.size(); ++at)
      for (uint32_t to : edges[work[at]])
        if (!left[to]) left[to] = true, work.push_back(to);
    return left;
  }

  void run() {
    count = static_cast<uint32_t>(code.size());
    if (count == 0) return;
    pascal = t.family == isa::Family::pascal;
    std::map<uint64_t, uint32_t> at;
    for (uint32_t k = 0; k < count; ++k) at[addresses[k]] = k;
    targets.assign(count, UINT32_MAX);
    for (uint32_t k = 0; k < count; ++k)
      for (uint32_t o = 0; o < code[k].operand_count; ++o)
        if (code[k].operands[o].kind == isa::OperandKind::label)
          if (auto it = at.find(static_cast<uint64_t>(code[k].operands[o].value)); it != at.end())
            targets[k] = it->second;

    in.assign(count, {});
    reached.assign(count, false);
    edges.assign(count, {});
    std::vector<bool> differs(count, false);
    if (!pascal) in[0].assign(b_registers, closed);
    reached[0] = true;
    std::vector<uint32_t> work{0};
    while (!work.empty()) {
      const uint32_t k = work.back();
      work.pop_back();
      step(k, [&](uint32_t to, const State& s) {
        if (std::find(edges[k].begin(), edges[k].end(), to) == edges[k].end()) edges[k].push_back(to);
        if (!reached[to]) {
          reached[to] = true, in[to] = s;
          work.push_back(to);
          return;
        }
        State merged = s;
        if (pascal) {
          if (s != in[to]) {
            size_t same = 0;  // from the top
            while (same < std::min(s.size(), in[to].size()) && s.rbegin()[same] == in[to].rbegin()[same]) ++same;
            merged.assign(1, unknown), differs[to] = true;
            merged.insert(merged.end(), s.end() - static_cast<ptrdiff_t>(same), s.end());
            if (same && merged[1] == unknown) merged.erase(merged.begin());
          }
        } else {
          for (uint32_t b = 0; b < b_registers; ++b)
            if (s[b] != in[to][b]) merged[b] = unknown, differs[to] = true;
        }
        if (merged != in[to]) in[to] = merged, work.push_back(to);
      });
    }
    // The last exit, and what leads to it.
    uint32_t last = UINT32_MAX;
    bool copied = false, level = false, ends = false;  // ends: by an exit without a guard
    for (uint32_t k = 0; k < count; ++k) {
      if (code[k].mnemonic != isa::Mnemonic::EXIT) continue;
      copied = !reached[k];
      if (!reached[k]) continue;
      last = k;
      level |= !open(in[k]);
      ends |= code[k].guard == isa::PT;
    }
    reporting = true;
    for (uint32_t k = 0; k < count; ++k)
      if (reached[k]) step(k, [](uint32_t, const State&) {});
    if (last == UINT32_MAX) return;
    if (copied) {
      if (!level) report(last, "no exit has all regions joined");
      return;
    }
    const std::vector<bool> leads = leading_to([&](uint32_t k) { return k == last; }),
                            waits = leading_to([&](uint32_t k) { return is_wait(code[k].mnemonic); }),
                            left = behind_leaving(waits);
    for (uint32_t k = 0; k < count; ++k)
      if (differs[k] && leads[k] && !left[k]) report(k, "the open regions differ between the paths that lead here");
    // Behind a guarded exit others go on: to a wait, or round a loop to an exit where nothing is open, or that there is none.
    const bool leaves = code[last].guard != isa::PT && (waits[last] || level || !ends);
    if (open(in[last]) && !left[last] && !leaves) report(last, "the last exit has a region open");
  }
};

}  // namespace

std::vector<std::string> check_regions(const isa::Target& target, const std::vector<isa::Instruction>& code,
                                       const std::vector<uint64_t>& addresses) {
  RegionCheck check{target, code, addresses, {}};
  check.run();
  return std::move(check.problems);
}

}  // namespace rndn::assembler
