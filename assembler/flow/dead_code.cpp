// Dead code: statements of PTX without effect whose results nobody needs.
//
// Input and output: the graph of blocks before branches are inlined. What compilers leave behind that have one register for each variable of the source:
// values that are written over before they are read, remainders and loads among them, and those that only compute themselves, round a loop. Here, since
// statements may expand to blocks, and arms that become short are inlined. What selection makes superfluous is found behind it (peephole.cpp).
//
// Algorithm: marking from the effects (Cytron, Ferrante, Rosen, Wegman, Zadeck, "Efficiently Computing Static Single Assignment Form and the Control
// Dependence Graph", 1991, 7.1), with branches as effects. A statement that is needed needs the writes that reach its sources: of a register with one write
// this one, as in SSA form; of others the last one before it in its block, those before that as long as they are guarded, which leaves the old value to some
// lanes, and if all are, those that reach the block's beginning, by the ways that lead there. Each register goes each of these ways once, and none once all
// its writes are marked. The condition code is a register, too. One walk backwards over the code does it, but for what is needed round a loop: that is
// looked at when it is asked for behind the walk. Where arms have become empty, their branch goes, and the code is looked at again (structurize.cpp).
// Cost: O(operands), and the ways of registers with several writes between blocks.
//
// Left out: loops that compute nothing, parts of vectors, what is needed under a guard alone (optimize/partial_dce.cpp). Loops are unrolled before.
#include <algorithm>

#include "assembler/flow/flow_graph.h"

namespace rndn::assembler {
namespace {

using ptx::Opcode;
using ptx::Operand;

bool reads_condition_code(Opcode op) { return op == Opcode::addc || op == Opcode::subc || op == Opcode::madc; }

bool has_effects(const ptx::Instruction& i, const Operand* operands) {
  if (!(traits_of(i) & removable)) return true;
  if (i.op == Opcode::ld) return i.mods.semantics != ptx::Semantics::none && i.mods.semantics != ptx::Semantics::weak;
  return i.op == Opcode::mov && tells_time(operands[1]);
}

// Which items write the registers of PTX: places in the order of the layout.
struct Definitions {
  static constexpr uint32_t several = 1u << 31, nowhere = UINT32_MAX;
  struct Place {
    uint32_t inst, block;
  };
  struct List {
    uint32_t begin, end;  // of `writes`
  };
  std::span<const Place> places;
  std::span<const uint32_t>
      of;  // by register: the place of its only write, or several | its list, or nowhere; at the end the condition code
  std::span<const List> lists;       // of registers that are written several times
  std::span<const uint32_t> writes;  // places, ascending in each list

  size_t condition_code() const { return of.size() - 1; }
  std::span<const uint32_t> writes_of(uint32_t list) const {
    return writes.subspan(lists[list].begin, lists[list].end - lists[list].begin);
  }
};

Definitions find_definitions(FlowGraph& g) {
  const ptx::Function& f = g.f;
  size_t n = 0;
  for (BlockId b : g.flow.layout) n += g.block(b).items.size();
  const std::span<Definitions::Place> places = g.arena.make_raw<Definitions::Place>(n);
  const std::span<uint32_t> of = g.numbers(f.registers.size() + 1, Definitions::nowhere);
  struct Again {
    uint32_t list, place;
  };
  ArenaList<Again> again(g.arena, 64);
  ArenaList<uint32_t> ends(g.arena, 16);  // by list: how many writes it has; then where they end
  uint32_t place = 0;
  const auto define = [&](uint32_t reg) {
    uint32_t& d = of[reg];
    if (d == Definitions::nowhere) {
      d = place;
      return;
    }
    if (d < Definitions::several) {
      const uint32_t list = ends.push(1);
      again.push({list, d});
      d = list | Definitions::several;
    }
    const uint32_t list = d - Definitions::several;
    again.push({list, place}), ++ends[list];
  };
  for (BlockId b : g.flow.layout)
    for (const FlowItem& item : g.block(b).items) {
      const ptx::Instruction& i = f.instructions[item.inst];
      places[place] = {item.inst, index(b)};
      const ptx::Operand *o = f.operands.data() + i.first_operand, *const end = o + i.destination_count;
      for (; o != end; ++o)
        if (o->kind == ptx::Operand::reg) {
          define(o->id);
        } else if (o->kind == ptx::Operand::vector) {
          for (uint32_t e = 0; e < o->count; ++e)
            if (const ptx::Operand& part = f.vector_elements[o->id + e]; part.kind == ptx::Operand::reg)
              define(part.id);
        }
      if (i.mods.carry_out) define(static_cast<uint32_t>(f.registers.size()));
      ++place;
    }
  const std::span<Definitions::List> lists = g.arena.make_raw<Definitions::List>(ends.size());
  for (uint32_t l = 0, at = 0; l < ends.size(); ++l) lists[l] = {at, at}, at += ends[l];
  const std::span<uint32_t> writes = g.arena.make_raw<uint32_t>(again.size());
  for (const Again& a : again.all()) writes[lists[a.list].end++] = a.place;
  return {places, of, lists, writes};
}

class Marking {
 public:
  explicit Marking(FlowGraph& g)
      : g_(g),
        f_(g.f),
        definitions_(find_definitions(g)),
        state_(g.arena.make_span<State>(definitions_.places.size(), unseen)),
        begin_(g.arena.make_raw<uint32_t>(g.flow.blocks.size())),
        end_(g.arena.make_raw<uint32_t>(g.flow.blocks.size())),
        lists_(g.arena.make_span<List>(definitions_.lists.size())),
        late_(g.arena, 16),
        ways_(g.arena, 16) {
    for (uint32_t l = 0; l < lists_.size(); ++l) {
      const std::span<const uint32_t> writes = definitions_.writes_of(l);
      lists_[l] = {writes.data(), writes.data() + writes.size(), writes.data() + writes.size(),
                   static_cast<uint32_t>(writes.size())};
    }
  }

  // Whether some statements are not needed.
  bool run() {
    uint32_t place = 0;
    for (BlockId b : g_.flow.layout) {
      begin_[index(b)] = place;
      place += static_cast<uint32_t>(g_.block(b).items.size());
      end_[index(b)] = place;
    }
    uint32_t left = 0;
    for (size_t k = g_.flow.layout.size(); k-- > 0;) {
      const uint32_t b = index(g_.flow.layout[k]);
      if (const ptx::RegisterId p = g_.block(BlockId{b}).predicate; !is_none(p)) demand(index(p), end_[b], b);
      for (uint32_t at = end_[b], first = begin_[b]; at-- > first;) {
        const ptx::Instruction& i = f_.instructions[definitions_.places[at].inst];
        const Operand* const operands = f_.operands.data() + i.first_operand;
        if (state_[at] == unseen && !has_effects(i, operands)) {
          state_[at] = passed;
          ++left;
        } else {
          state_[at] = needed;
          demand_sources(i, operands, at, b);
        }
      }
    }
    while (!late_.empty()) {
      const uint32_t at = late_[late_.size() - 1];
      late_.resize_down(late_.size() - 1);
      --left;
      const ptx::Instruction& i = f_.instructions[definitions_.places[at].inst];
      demand_sources(i, f_.operands.data() + i.first_operand, at, definitions_.places[at].block);
    }
    return left != 0;
  }
  void remove() {
    uint32_t at = 0;
    for (BlockId b : g_.flow.layout) {
      FlowItems& items = g_.block(b).items;
      FlowItem* kept = items.begin();
      for (const FlowItem& item : items)
        if (state_[at++] == needed) *kept++ = item;
      items = FlowItems(items.begin(), static_cast<size_t>(kept - items.begin()));
    }
  }

 private:
  enum State : uint8_t { unseen, needed, passed };  // passed: by the walk, and not needed
  // The writes of a register.
  struct List {
    const uint32_t *begin = nullptr, *end = nullptr;
    const uint32_t* next = nullptr;  // behind those that the walk still comes to, about
    uint32_t unmarked = 0;           // those that it has not marked; 0: there is nothing to look for
    uint64_t* met = nullptr;         // bits of blocks at whose beginning what the register holds is needed
  };

  // Whether it was not needed before.
  bool mark(uint32_t place) {
    const State s = state_[place];
    state_[place] = needed;
    if (s == passed) late_.push(place);
    return s != needed;
  }
  void demand_sources(const ptx::Instruction& i, const Operand* operands, uint32_t place, uint32_t block) {
    if (!is_none(i.guard)) demand(index(i.guard), place, block);
    for (const Operand *o = operands + i.destination_count, *const end = operands + i.operand_count; o != end; ++o)
      if (o->kind == Operand::reg || o->kind == Operand::address_reg) {
        demand(o->id, place, block);
      } else if (o->kind == Operand::vector) {
        for (uint32_t e = 0; e < o->count; ++e)
          if (const Operand& part = f_.vector_elements[o->id + e]; part.kind == Operand::reg)
            demand(part.id, place, block);
      }
    if (reads_condition_code(i.op)) demand(definitions_.condition_code(), place, block);
  }
  // What the register holds at the place of the block is needed.
  void demand(size_t reg, uint32_t place, uint32_t block) {
    const uint32_t d = definitions_.of[reg];
    if (d < Definitions::several) [[likely]] {
      mark(d);
    } else if (d != Definitions::nowhere) {
      List& l = lists_[d - Definitions::several];
      if (l.unmarked == 0) return;
      while (l.next != l.begin && l.next[-1] >= place) --l.next;  // the walk goes backwards
      if (l.next != l.begin && l.next[-1] >= begin_[block] && (l.next == l.end || *l.next >= place) &&
          marks_last(l, l.next[-1]))
        return;
      demand_before(l, place, block);
    }
  }
  // Marks a write of the register. Whether nobody gets there what the register held before.
  bool marks_last(List& l, uint32_t write) {
    l.unmarked -= mark(write);
    return is_none(f_.instructions[definitions_.places[write].inst].guard);
  }
  [[gnu::noinline]] void demand_before(List& l, uint32_t place, uint32_t block) {
    // Marks the writes of the block before the place; what was there at its beginning is looked for if they may leave it.
    const auto look = [&](uint32_t at, uint32_t b) {
      for (const uint32_t* w = std::lower_bound(l.begin, l.end, at); w != l.begin && w[-1] >= begin_[b]; --w)
        if (marks_last(l, w[-1])) return;
      if (!l.met) l.met = g_.arena.make_span<uint64_t>((begin_.size() + 63) / 64, 0).data();
      const uint64_t bit = uint64_t{1} << b % 64;
      if (l.met[b / 64] & bit) return;
      l.met[b / 64] |= bit;
      ways_.push(b);
    };
    look(place, block);
    while (!ways_.empty() && l.unmarked != 0) {
      const uint32_t to = ways_[ways_.size() - 1];
      ways_.resize_down(ways_.size() - 1);
      for (BlockId p : g_.predecessors[to]) look(end_[index(p)], index(p));
    }
    ways_.clear();
  }

  FlowGraph& g_;
  const ptx::Function& f_;
  const Definitions definitions_;
  const std::span<State> state_;           // by place
  const std::span<uint32_t> begin_, end_;  // by block: its places
  const std::span<List> lists_;
  ArenaList<uint32_t> late_;  // places that the walk has passed
  ArenaList<uint32_t> ways_;  // to the beginnings of these blocks
};

}  // namespace

bool FlowGraph::remove_dead_code() {
  ArenaScope scope(arena);
  Marking marking(*this);
  if (!marking.run()) return false;
  marking.remove();
  return true;
}

}  // namespace rndn::assembler
