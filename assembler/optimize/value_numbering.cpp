// Common values: what has been computed already is not computed again, and what does not vary in a loop is computed in front of it.
//
// Input and output: functions over virtual registers, with their survey, which is kept up to date. The compiler that wrote the PTX has shared what PTX
// says twice and left in loops what varies there, but cannot see what selection makes of a statement: divisions by one divisor have its reciprocal in
// common, and a divisor that stays the same round a loop its reciprocal. So only functions with many expansions are looked at.
//
// Algorithm: value numbering in a walk over the tree of dominators (Briggs, Cooper, Simpson, "Value Numbering", 1997, 4), on code that is in SSA form in
// part. A result has a number: that of an instruction of the same form, with the same modifiers and operands of the same numbers, in a block that
// dominates this one, else a new one. Registers with one write have the number of its result wherever this write dominates; all others have numbers
// within one block, until they are written. No number stands for a value of another round of a loop: from a write that dominates a block to this block,
// the write does not run again. Readers of the later of two equal results read the earlier one; the later instruction is left without readers.
// Shared are results with one write each, without a guard. All readers of the later one have to be dominated by its write: others read what another
// round left. Where it is read as part of a pair, all its words have to be in one pair again.
// Invariants (Aho, Lam, Sethi, Ullman, "Compilers", 2nd ed., 9.5): of the same instructions those whose operands have their one write in front of the
// loop, or are invariant themselves, move to the end of the only block that leads into the loop. They have no effects and do not fail: to run them
// where the loop does not come to them does no harm, if nobody reads what an earlier run of the loop left.
//
// Choice. A value that is shared over a distance, or moves, takes a register on the way; what is close at hand, in the same block, is shared anyway. The
// rest has to be worth some issue cycles, with all that is computed for it alone, or one of its operands is shared already. Values that come from the
// function unit or the like are tried first, then the cheap ones, then invariants: each time the registers alive at once are counted in the order of the
// program, and it is taken back if they lose a step of occupancy, or are too many for the instructions that went.
// Cost: O(operands), and liveness up to four times where something is shared over a distance or moves.
//
// Left out: guarded instructions, memory, operands in another order, predicates over a distance and out of loops, values with several writes.
#include <algorithm>
#include <array>
#include <bit>

#include "assembler/flow/dominators.h"
#include "assembler/isa/latencies.h"
#include "assembler/machine/options.h"
#include "assembler/optimize/optimize.h"

namespace rndn::assembler {
namespace {

using L = isa::LatencyClass;
using isa::OperandKind;

constexpr uint32_t near = 64;            // instructions of a block behind which a value counts as far away
constexpr uint32_t near_predicate = 8;   // ... a predicate, of which there are seven
constexpr uint32_t dear = 8, worth = 2;  // issue cycles of values that are tried first, and at all, far away
constexpr uint32_t most_tries = 16;      // entries that are looked at for one instruction

// How values are shared: at once, or if no step of occupancy is lost.
enum Share : uint8_t { at_hand, far_dear, far_cheap, share_count };

// Issue cycles of an instruction that has a value, about; 0: it has none.
constexpr std::array<uint8_t, isa::latency_class_count> costs = [] {
  std::array<uint8_t, isa::latency_class_count> table{};
  const auto set = [&](L c, uint8_t cost) { table[static_cast<size_t>(c)] = cost; };
  set(L::alu, 1), set(L::fma, 1), set(L::half, 1), set(L::half_mma, 1), set(L::wide, 2);
  set(L::sfu, 8), set(L::fp64, 4), set(L::range_reduction, 4);
  return table;
}();

// Whether much of the code was made in expansions of statements. The rest has been looked through before.
bool expanded_much(const Function& f) {
  constexpr size_t part = 8;
  size_t temporaries = 0;
  for (const GprUnit& g : f.gprs) temporaries += g.temporary;
  return temporaries * part >= f.gprs.size();
}

class CommonValues {
 public:
  CommonValues(Function& f, Survey& survey) : f_(f), uses_(survey.units), survey_(survey) {}

  void run() {
    number_blocks();
    for (uint32_t b : walk_) visit(b);
    share();
    hoist();
  }

 private:
  // Of a unit.
  struct Value {
    uint32_t number = 0;
    uint32_t block = nobody;  // for which the number holds, in the walk
    uint32_t same = nobody;   // the unit whose value its readers may read instead
    uint8_t cost = 0;         // of what is computed again for it alone
    Share kind = at_hand;
    bool lasting : 1 = false;    // the number holds in all blocks that this one dominates
    bool alone : 1 = false;      // the number is of no other unit, now and later
    bool in_tuple : 1 = false;   // somebody reads it with its neighbours
    bool written : 1 = false;    // before this place of the second walk
    bool elsewhere : 1 = false;  // somebody reads what another round of a loop has written
  };
  static_assert(sizeof(Value) == 16);
  struct Entry {
    uint32_t hash, next;
    uint32_t inst, block, place;  // place: of the instruction in the walk
    uint32_t number;              // of the first result; the others follow
    uint32_t count;               // of operands that are units
    const uint32_t* numbers;      // theirs
  };

  // The blocks in the order of the walk, which their numbers are from here on.
  void number_blocks() {
    Arena& arena = *f_.arena;
    const Dominators known(f_);
    const std::span<const uint32_t> order = known.order;
    const DominatorTree& tree = known.tree;
    begin_ = known.begin, edges_ = known.before;
    places_ = tree.number;
    walk_ = arena.make_raw<uint32_t>(order.size());
    dominated_ = arena.make_raw<uint32_t>(order.size());
    for (uint32_t b : order) walk_[tree.number[b]] = b, dominated_[tree.number[b]] = tree.size[b];
  }
  bool dominates(uint32_t a, uint32_t b) const { return b - a < dominated_[a]; }

  bool is_unit(Range r) const { return r.allocated() && r.reg() >= isa::first_virtual; }
  uint32_t unit(Range r) const { return f_.units.of(r.file(), r.reg()); }
  bool holds(const Value& v) const { return v.block == here_ || (v.lasting && dominates(v.block, here_)); }
  uint32_t number(uint32_t u) {
    Value& v = values_[u];
    if (!holds(v)) v.number = next_number_++, v.block = here_, v.lasting = false, v.alone = false, v.cost = 0;
    return v.number;
  }
  void write(uint32_t u, uint32_t number, uint32_t cost) {
    Value& v = values_[u];
    v.number = number, v.block = here_, v.alone = false;
    v.lasting = !uses_[u].several;
    v.cost = static_cast<uint8_t>(std::min(cost, 100u));
  }

  void visit(uint32_t block) {
    ++here_;
    const Block& b = f_.blocks[BlockId{block}];
    for (InstId i : b.code) {
      ++place_;
      const Facts& x = f_.facts[index(i)];
      const Units::List list = f_.units.of(i);
      const auto [reads, writes, end] = list;
      if (is_copy(x)) {
        write(*writes, number(*reads), 0);
        continue;
      }
      if (has_value(i, x) && !is_alone(reads, writes)) {
        look_up(i, x, list);
        continue;
      }
      for (const uint32_t* w = writes; w != end; ++w)
        if (const uint32_t u = *w & ~Units::lasts; f_.units.is_allocated(u))
          write(u, next_number_++, 0), values_[u].alone = true;
    }
  }

  bool is_copy(const Facts& x) const {
    return x.copies && !x.guarded && !x.pinned && x.read_count == 1 && x.count == 2 && is_unit(x.ranges[0]) &&
           is_unit(x.ranges[1]);
  }
  // Whether all that it names is units, none both read and written.
  bool all_units(const Facts& x) const {
    uint32_t read = 0, written = 0;
    for (Range r : x.reads())
      if (read |= 1u << r.operand(); !is_unit(r)) return false;
    for (Range r : x.writes())
      if (written |= 1u << r.operand(); !is_unit(r)) return false;
    return (read & written) == 0;
  }
  // Whether nobody else reads one of the operands, or another value of its number: then no other instruction has the same operands.
  bool is_alone(const uint32_t* reads, const uint32_t* end) const {
    return std::any_of(reads, end, [&](uint32_t u) { return values_[u].alone && uses_[u].readers == 1; });
  }
  bool has_value(InstId i, const Facts& x) const {
    return costs[static_cast<size_t>(x.latency)] != 0 &&
           !(x.ordered | x.guarded | x.reads_carry | x.writes_carry | x.writes_elsewhere) && x.count > x.read_count &&
           f_[i].call == Call::none && all_units(x);
  }

  // Whether both compute the same of operands that have the same numbers.
  static bool same_operation(const Inst& a, const Inst& b) {
    const isa::Instruction &x = a.sass, &y = b.sass;
    if (x.form != y.form || x.modifiers != y.modifiers || a.contractible != b.contractible || a.symbol != b.symbol ||
        a.symbol_high != b.symbol_high)
      return false;
    for (uint32_t k = 0; k < x.operand_count; ++k) {
      isa::Operand o = x.operands[k], p = y.operands[k];
      switch (o.kind) {
        case OperandKind::gpr:
        case OperandKind::predicate:
          if (o.reg >= isa::first_virtual && p.reg >= isa::first_virtual) o.reg = p.reg;
          o.value = p.value;
          break;
        case OperandKind::constant:
          if (o.reg != isa::RZ) return false;
          break;
        case OperandKind::immediate: o.reg = p.reg; break;
        case OperandKind::none: continue;
        default: return false;
      }
      if (o != p) return false;
    }
    return true;
  }

  void look_up(InstId i, const Facts& x, const Units::List& list) {
    const isa::Instruction& s = f_[i].sass;
    const uint32_t count = static_cast<uint32_t>(list.writes - list.reads),
                   results = static_cast<uint32_t>(list.end - list.writes);
    uint64_t mixed = index(s.form);
    const auto mix = [&](uint64_t word) { mixed = (std::rotl(mixed, 5) ^ word) * 0x9e3779b97f4a7c15u; };
    for (uint32_t k = 0; k < count; ++k) numbers_[k] = number(list.reads[k]), mix(numbers_[k]);
    if (count <= 1)  // often beside a literal
      for (uint32_t k = 0; k < s.operand_count; ++k)
        if (s.operands[k].kind == OperandKind::immediate || s.operands[k].kind == OperandKind::constant)
          mix(static_cast<uint64_t>(s.operands[k].value));
    const uint32_t hash = static_cast<uint32_t>(mixed >> 32);
    uint32_t& head = heads_[hash & (heads_.size() - 1)];
    uint32_t tries = most_tries;
    for (uint32_t e = head; e != nobody && tries > 0; e = entries_[e].next, --tries) {
      Entry& entry = entries_[e];
      if (entry.hash != hash || entry.count != count ||
          !std::equal(entry.numbers, entry.numbers + count, numbers_.data()) ||
          !same_operation(f_[i], f_.insts[entry.inst]))
        continue;
      if (!dominates(entry.block, here_))
        entry.number = next_number_, next_number_ += results;
      else if (may_share(entry, x, list))
        return;
      give_numbers(entry.number, list);
      entry.inst = index(i), entry.block = here_, entry.place = place_;
      return;
    }
    uint32_t* const numbers = f_.arena->make_raw<uint32_t>(count).data();
    std::copy_n(numbers_.data(), count, numbers);
    head = entries_.push({hash, head, index(i), here_, place_, next_number_, count, numbers});
    give_numbers(next_number_, list);
    next_number_ += results;
  }
  void give_numbers(uint32_t number, const Units::List& list, uint32_t cost = 0) {
    for (const uint32_t* w = list.writes; w != list.end; ++w) write(*w, number++, cost);
  }

  // Whether the readers of the instruction's results may read those of the entry's.
  bool may_share(const Entry& entry, const Facts& x, const Units::List& list) {
    const auto [reads, writes, end] = list;
    const uint32_t* from = f_.units.of(InstId{entry.inst}).writes;
    bool possible = true, any_gpr = false, any_shared = false, dear_shared = false;
    uint32_t cost = costs[static_cast<size_t>(x.latency)];
    for (const uint32_t *w = writes, *v = from; w != end; ++w, ++v)
      possible &= !uses_[*w].several && !uses_[*v].several, any_gpr |= f_.units.is_gpr(*w);
    for (const uint32_t* u = reads; u != writes; ++u)
      if (const Value& v = values_[*u]; v.same == nobody)
        cost += v.cost;
      else
        any_shared = true, dear_shared |= v.kind == far_dear;
    const bool here = entry.block == here_, close = here && place_ - entry.place <= (any_gpr ? near : near_predicate);
    const Share kind = close ? at_hand : cost >= dear || dear_shared ? far_dear : far_cheap;
    if (!possible || x.read_count == 0 || (!close && (!any_gpr || (cost < worth && !any_shared)))) {
      give_numbers(entry.number, list, here || x.read_count == 0 ? 0 : cost);
      return false;
    }
    give_numbers(entry.number, list);
    for (const uint32_t *w = writes, *v = from; w != end; ++w, ++v)
      values_[*w].same = *v, values_[*w].kind = kind, shared_.push(*w);
    return true;
  }

  void share() {
    if (shared_.empty()) return;
    check();
    hold(1);  // what later kinds read has to stay
    if (found_[at_hand] > 0) rename(at_hand), remove_dead_code(f_, survey_);
    if (is_much(found_[far_dear] + found_[far_cheap])) {
      pressure_ = measure(), measured_ = true;
      for (Share kind : {far_dear, far_cheap}) {
        if (found_[kind] == 0) continue;
        save();
        rename(kind);
        remove_dead_code(f_, survey_);
        keep_if(gone());
      }
    }
    if (hold(0u - 1)) remove_dead_code(f_, survey_);
  }
  // Whether a gain of so many issue cycles is worth the liveness that its measurement takes.
  bool is_much(size_t gain) const { return gain * 128 >= f_.insts.size(); }
  // Returns whether nobody reads some of them.
  bool hold(uint32_t change) {
    bool unread = false;
    for (uint32_t u : shared_.all())
      if (values_[u].same != nobody) unread |= (uses_[values_[u].same].readers += change) == 0;
    return unread;
  }

  // Of what was to be shared, what cannot be is not.
  void check() {
    find_readers();
    const uint32_t first_gpr = f_.units.first_gpr;
    for (uint32_t u : shared_.all())
      if (values_[u].elsewhere) values_[u].same = nobody;
    for (uint32_t u : shared_.all()) {
      Value& v = values_[u];
      if (!v.in_tuple || v.same == nobody) continue;
      const GprUnit& g = f_.gprs[u - first_gpr];
      const uint32_t first = g.first + first_gpr, same = values_[first].same;
      bool all = same != nobody && f_.gprs[same - first_gpr].width == g.width &&
                 f_.gprs[same - first_gpr].first == same - first_gpr;
      for (uint32_t w = 1; all && w < g.width; ++w) all = values_[first + w].same == same + w;
      if (!all) v.same = nobody;
      for (uint32_t w = 0; all && w < g.width; ++w) v.kind = std::max(v.kind, values_[first + w].kind);
    }
    for (uint32_t u : shared_.all()) found_[values_[u].kind] += values_[u].same != nobody;
  }
  // Who reads values as parts of pairs, and those of another round.
  void find_readers() {
    if (readers_known_) return;
    readers_known_ = true;
    const auto read = [&](uint32_t u) {
      Value& v = values_[u];
      v.elsewhere |= !(v.written && dominates(places_[uses_[u].block], here_));
    };
    here_ = nobody;
    for (uint32_t block : walk_) {
      ++here_;
      const Block& b = f_.blocks[BlockId{block}];
      for (InstId i : b.code) {
        const Facts& x = f_.facts[index(i)];
        const auto [reads, writes, end] = f_.units.of(i);
        if (x.crosses) std::for_each(reads, writes, read);
        for (Range r : x.reads())
          if (r.width() > 1 && is_unit(r))
            for (uint32_t w = 0; w < r.width(); ++w) values_[unit(r) + w].in_tuple = true;
        for (const uint32_t* w = writes; w != end; ++w) values_[*w & ~Units::lasts].written = true;
      }
      if (b.predicate >= isa::first_virtual) read(f_.units.of(Range::predicate, b.predicate));
    }
  }

  // Readers of values of this kind read the same ones.
  void rename(Share kind) {
    const auto same_of = [&](uint32_t u) { return values_[u].kind == kind ? values_[u].same : nobody; };
    for (uint32_t block : walk_) {
      Block& b = f_.blocks[BlockId{block}];
      for (InstId i : b.code) {
        const auto [reads, writes, end] = f_.units.of(i);
        bool any = false;
        for (const uint32_t* u = reads; u != writes; ++u) any |= same_of(*u) != nobody;
        if (!any) continue;
        Facts& x = f_.facts[index(i)];
        for (uint32_t* u = const_cast<uint32_t*>(reads); u != writes; ++u) {
          const uint32_t same = same_of(*u);
          if (same == nobody) continue;
          x.crosses |= move_reader(*u, same, block);
          renamed_.push({u, *u});
          *u = same;
        }
        for (uint32_t k = 0; k < x.read_count; ++k) {
          Range& r = x.ranges[k];
          if (!is_unit(r)) continue;
          const uint32_t u = unit(r), same = same_of(u);
          if (same == nobody) continue;
          operands_.push({i, k, r.reg()});
          set_register(i, r, r.reg() + same - u);
        }
      }
      if (b.predicate < isa::first_virtual) continue;
      const uint32_t u = f_.units.of(Range::predicate, b.predicate), same = same_of(u);
      if (same == nobody) continue;
      move_reader(u, same, block);
      renamed_.push({&b.predicate, b.predicate});
      b.predicate += same - u;
    }
  }
  void set_register(InstId i, Range& r, uint32_t reg) {
    r.set_reg(reg);
    (r.guard() ? f_[i].sass.guard : f_[i].sass.operands[r.operand()].reg) = reg;
  }
  // A reader of one unit, in the block, is one of another. Returns whether that one comes from elsewhere.
  bool move_reader(uint32_t from, uint32_t to, uint32_t block) {
    UnitUse& use = uses_[to];
    --uses_[from].readers, ++use.readers;
    if (use.block == block) return false;
    survey_.crossing += !use.crosses && f_.units.is_gpr(to);
    return use.crosses = true;
  }

  // --- loops
  // A unit in the loop that is looked at.
  struct Invariant {
    uint32_t loop = 0;   // the last loop in which it was found not to vary
    uint32_t place = 0;  // in candidates_
  };
  struct Candidate {
    InstId inst;
    uint32_t block, cost;  // cost: with what only it needs, while it stays
    bool moves;
  };

  // What does not vary in a loop moves in front of it: inner loops first. Headers of inner loops follow those of outer ones in the walk.
  void hoist() {
    const std::span<bool> in_loop = f_.arena->make_span<bool>(walk_.size(), false);
    ArenaList<uint32_t> body(*f_.arena, 64);
    for (bool moving : {false, true}) {
      size_t gain = 0;
      for (uint32_t header = static_cast<uint32_t>(walk_.size()); header-- > 0;) {
        const uint32_t front = find_loop(header, in_loop, body);
        if (front != nobody && find_candidates(front, in_loop, body.all()))
          gain += move(moving, walk_[front], body.all());
        for (uint32_t b : body.all()) in_loop[b] = false;
      }
      if (moving ? gain == 0 : !is_much(gain)) return;
      if (moving) {
        mark_crossing();
        keep_if(gain);
      } else {
        find_readers();
        save();
        if (!measured_) pressure_ = measure();
      }
    }
  }
  template <class F>
  void for_each_predecessor(uint32_t place, F&& use) const {
    for (uint32_t e = begin_[walk_[place]]; e < begin_[walk_[place] + 1]; ++e) use(places_[edges_[e]]);
  }
  // The blocks of the loop with this header, in the order of the walk, and the only one that leads to it from outside; none: nobody.
  uint32_t find_loop(uint32_t header, std::span<bool> in_loop, ArenaList<uint32_t>& body) const {
    uint32_t front = nobody, fronts = 0;
    body.clear();
    const auto add = [&](uint32_t b) {
      if (!in_loop[b]) in_loop[b] = true, body.push(b);
    };
    for_each_predecessor(header, [&](uint32_t p) {
      if (dominates(header, p))
        add(p);
      else
        front = p, ++fronts;
    });
    if (body.empty() || fronts != 1) return nobody;
    add(header);
    for (size_t k = 0; k < body.size(); ++k)
      if (body[k] != header) for_each_predecessor(body[k], add);
    std::ranges::sort(body.all());
    const std::vector<InstId>& code = f_.blocks[BlockId{walk_[front]}].code;
    return !code.empty() && f_[code.back()].call != Call::none ? nobody : front;  // calls are blocks of their own
  }
  // Finds what does not vary in the loop, and of that what is worth a register. Whether there is any.
  bool find_candidates(uint32_t front, std::span<const bool> in_loop, std::span<const uint32_t> body) {
    if (invariants_.empty()) invariants_ = f_.arena->make_span<Invariant>(uses_.size());
    candidates_.clear();
    ++loop_;
    bool any = false;
    const auto is_invariant = [&](uint32_t u) {
      const UnitUse& use = uses_[u];
      if (use.several || use.inst == nobody) return false;
      const uint32_t at = places_[use.block];
      return in_loop[at] ? invariants_[u].loop == loop_ : dominates(at, front);
    };
    for (uint32_t b : body)
      for (InstId i : f_.blocks[BlockId{walk_[b]}].code) {
        const Facts& x = f_.facts[index(i)];
        if (!has_value(i, x)) continue;
        const auto [reads, writes, end] = f_.units.of(i);
        if (!std::all_of(reads, writes, is_invariant) || !std::all_of(writes, end, [&](uint32_t w) {
              return f_.units.is_gpr(w) && !uses_[w].several && !values_[w].elsewhere;
            }))
          continue;
        uint32_t cost = costs[static_cast<size_t>(x.latency)];
        bool with_operand = false;
        for (const uint32_t* u = reads; u != writes; ++u)
          if (in_loop[places_[uses_[*u].block]]) {
            const Candidate& c = candidates_[invariants_[*u].place];
            cost += c.moves ? 0 : c.cost, with_operand |= c.moves;
          }
        const uint32_t place = candidates_.push({i, walk_[b], std::min(cost, 100u), false});
        for (const uint32_t* w = writes; w != end; ++w) invariants_[*w] = {loop_, place};
        if (cost >= dear || with_operand) let_move(place, in_loop), any = true;
      }
    return any;
  }
  void let_move(uint32_t place, std::span<const bool> in_loop) {
    candidates_[place].moves = true;
    const auto [reads, writes, end] = f_.units.of(candidates_[place].inst);
    for (const uint32_t* u = reads; u != writes; ++u)
      if (in_loop[places_[uses_[*u].block]] && !candidates_[invariants_[*u].place].moves)
        let_move(invariants_[*u].place, in_loop);
  }
  // Returns how many issue cycles a round saves, or would save.
  size_t move(bool moving, uint32_t front, std::span<const uint32_t> body) {
    if (moved_.empty()) moved_ = f_.arena->make_span<bool>(f_.insts.size(), false);
    size_t saved = 0;
    for (const Candidate& c : candidates_.all()) {
      if (!c.moves) continue;
      saved += costs[static_cast<size_t>(f_.facts[index(c.inst)].latency)];
      if (!moving) continue;
      moved_[index(c.inst)] = true;
      f_.blocks[BlockId{front}].code.push_back(c.inst);
      const auto [reads, writes, end] = f_.units.of(c.inst);
      for (const uint32_t* w = writes; w != end; ++w) uses_[*w].block = front;
    }
    if (!moving) return saved;
    for (uint32_t b : body)
      std::erase_if(f_.blocks[BlockId{walk_[b]}].code, [&](InstId i) { return moved_[index(i)]; });
    for (const Candidate& c : candidates_.all()) moved_[index(c.inst)] = false;
    return saved;
  }
  // Values that have moved are read, and what has moved reads, in other blocks.
  void mark_crossing() {
    for (uint32_t block : walk_) {
      const Block& b = f_.blocks[BlockId{block}];
      for (InstId i : b.code) {
        const auto [reads, writes, end] = f_.units.of(i);
        for (const uint32_t* u = reads; u != writes; ++u) {
          UnitUse& use = uses_[*u];
          if (use.several || use.block == block || !f_.units.is_allocated(*u)) continue;
          survey_.crossing += !use.crosses && f_.units.is_gpr(*u);
          use.crosses = f_.facts[index(i)].crosses = true;
        }
      }
    }
  }

  uint32_t measure() const {
    ArenaScope scope(*f_.arena);
    return register_pressure(f_, compute_liveness(f_));
  }
  // Whether fewer warps may be resident with `now` registers alive at once than with `before`, or more is spilled. Later passes make some registers less
  // of either: it has to be true of both.
  bool loses_a_step(uint32_t before, uint32_t now) const {
    if (now <= before) return false;
    if (now > f_.max_registers) return true;
    const uint32_t extra = f_.target->reported_registers_extra, free = full_occupancy_registers(*f_.target);
    const auto step = [&](uint32_t pressure) { return std::max((pressure + extra + 7) / 8 * 8, free); };
    constexpr uint32_t relief = 3;
    return step(now) > step(before) || step(now - relief) > step(std::max(before, relief) - relief);
  }
  // Takes back what has changed since save() if it costs too many registers. `gain`: issue cycles, about.
  void keep_if(size_t gain) {
    constexpr size_t per_register = 8;  // beyond those of full occupancy
    const uint32_t now = measure();
    const bool free =
        now <= pressure_ || now + f_.target->reported_registers_extra <= full_occupancy_registers(*f_.target);
    if (loses_a_step(pressure_, now) || (!free && gain < (now - pressure_) * per_register))
      restore();
    else
      pressure_ = now;
  }
  // Instructions that went since save().
  size_t gone() const {
    size_t left = 0;
    for (BlockId b : f_.layout) left += f_.blocks[b].code.size();
    return code_.size() - left;
  }
  // What rename() and remove_dead_code() change, to be restored if it does not pay.
  void save() {
    renamed_.clear(), operands_.clear(), code_.clear();
    for (BlockId b : f_.layout)
      for (InstId i : f_.blocks[b].code) code_.push(i);
    saved_uses_ = f_.arena->copy<UnitUse>(uses_), saved_crossing_ = survey_.crossing;
    sizes_ = f_.arena->make_raw<uint32_t>(f_.layout.size());
    for (size_t k = 0; k < f_.layout.size(); ++k)
      sizes_[k] = static_cast<uint32_t>(f_.blocks[f_.layout[k]].code.size());
  }
  void restore() {
    std::ranges::copy(saved_uses_, uses_.begin()), survey_.crossing = saved_crossing_;
    for (const Word& w : renamed_.all()) *w.at = w.old;
    for (const Operand& o : operands_.all()) set_register(o.inst, f_.facts[index(o.inst)].ranges[o.range], o.reg);
    size_t at = 0;
    for (size_t k = 0; k < f_.layout.size(); at += sizes_[k++])
      f_.blocks[f_.layout[k]].code.assign(&code_[at], &code_[at] + sizes_[k]);
  }

  Function& f_;
  const std::span<UnitUse> uses_;
  Survey& survey_;
  std::span<uint32_t> walk_, dominated_;  // by place in the walk: the block, how many it dominates
  std::span<uint32_t> places_;            // by block
  std::span<uint32_t> begin_, edges_;     // predecessors of block b: edges_[begin_[b]] .. edges_[begin_[b + 1]]
  std::span<Value> values_ = f_.arena->make_span<Value>(uses_.size());
  std::span<uint32_t> heads_ = f_.arena->make_span<uint32_t>(std::bit_ceil(f_.insts.size() + 1), nobody);
  ArenaList<Entry> entries_{*f_.arena, f_.insts.size()};
  ArenaList<uint32_t> shared_{*f_.arena, 64};
  std::array<uint32_t, share_count> found_{};  // units that are shared, by kind
  bool readers_known_ = false, measured_ = false;
  uint32_t pressure_ = 0;  // GPRs alive at once
  std::span<Invariant> invariants_;
  ArenaList<Candidate> candidates_{*f_.arena, 64};
  std::span<bool> moved_;  // by instruction
  uint32_t loop_ = 0;      // counts those that were looked at
  struct Word {
    uint32_t *at, old;
  };
  struct Operand {
    InstId inst;
    uint32_t range, reg;
  };
  ArenaList<Word> renamed_{*f_.arena, 64};  // units in lists, predicates of branches
  ArenaList<Operand> operands_{*f_.arena, 64};
  ArenaList<InstId> code_{*f_.arena, 64};
  std::span<uint32_t> sizes_;
  std::span<UnitUse> saved_uses_;
  uint32_t saved_crossing_ = 0;
  std::array<uint32_t, 4 * isa::max_operands> numbers_;   // of the operands
  uint32_t here_ = nobody, place_ = 0, next_number_ = 0;  // the block in the walk, the instruction
};

}  // namespace

void number_values(Function& f, Survey& survey) {
  if (!expanded_much(f)) return;
  ArenaScope scope(*f.arena);
  CommonValues(f, survey).run();
}

}  // namespace rndn::assembler
