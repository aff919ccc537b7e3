// A new order of blocks in which too many values are alive at once: fewer registers, for what is waited longer.
//
// Input and output: functions over virtual registers before scheduling, the same instructions per block, every dependence kept: registers, Pascal's
// condition code, the order of memory operations (memory_order.h). Scheduling starts from the order of the program, so what is alive at once in it is
// the least that scheduling can reach; where that costs an occupancy step, or spilling, this pass looks for a better one.
//
// Algorithm: list scheduling from the last instruction to the first (bottom up, as Goodman and Hsu's for registers in "Code Scheduling and Register
// Allocation in Large Basic Blocks", 1988). Of the instructions all of whose successors are placed, the next is the one that leaves the fewest registers
// alive in front of it; values that more than `few_readers` others will still read are alive anyway and do not count, predicates beyond most_predicates
// count more. Of equals the one that opens the fewest values whose own definition must still wait for other readers; of those the one whose result has been
// asked for last, then the one with the shortest chain of results before it: both follow one expression down to its leaves before the next. Then the last
// one in the program. Of the ready ones only the `window` that became ready last are compared, about: the one taken leaves its place to the last.
// Blocks whose program needs no more than `enough` stay as they are, and so does one that would need as many or more in its new order. The block that
// needs most comes first, and an order is given up where it needs too many: mostly one block, and its end, tell that nothing helps.
// Cost: O(instructions x (operands x window + dependences)) in blocks that are ordered.
//
// Left out: rows of registers for pairs and quads; values that are written several times, whose writes keep their order (optimize/rename_webs.cpp); predicates
// when it is decided whether an order is better; that blocks between `enough` and `wanted` could stay.
#include <algorithm>
#include <array>
#include <compare>
#include <functional>

#include "assembler/backend/backend.h"
#include "assembler/backend/register_budget.h"
#include "assembler/machine/inst_facts.h"
#include "assembler/machine/memory_order.h"
#include "assembler/machine/options.h"
#include "libraries/base/errors/check.h"

namespace rndn::assembler {
namespace {

constexpr size_t window = 8;
constexpr uint32_t few_readers = 3;
constexpr uint32_t most_predicates = 5;  // of 7, as scheduling: some are needed inside expansions

class BlockOrder {
 public:
  BlockOrder(const Function& f, const Liveness& live, PressureOf& pressure)
      : f_(f), live_(live), pressure_(pressure), units_(f.units) {}

  // The block's instructions in their new order. Returns how many GPRs are alive at once in it; more than `most`: it is not complete.
  uint32_t run(BlockId b, uint32_t most, std::span<InstId> out) {
    ArenaScope scope(*f_.arena);
    const Block& block = f_.blocks[b];
    const LiveSet live_out = live_.out(b);
    code_ = block.code;
    edges_of_ = f_.arena->make_span<uint32_t>(code_.size(), nobody);
    successors_ = f_.arena->make_span<uint32_t>(code_.size(), 0);
    depth_ = f_.arena->make_span<uint32_t>(code_.size(), 0);
    ArenaList<Edge> edges(*f_.arena, 4 * code_.size());
    edges_ = &edges;
    find_dependences();
    predicates_ = 0;
    for (uint32_t u : live_out) alive_[u] = true, predicates_ += is_predicate(u);
    const uint32_t p = block.predicate >= isa::first_virtual ? units_.of(Range::predicate, block.predicate) : nobody;
    if (p != nobody) predicates_ += !alive_[p], alive_[p] = true;
    ArenaList<uint32_t> ready(*f_.arena, code_.size());
    for (uint32_t k = 0; k < code_.size(); ++k)
      if (successors_[k] == 0) ready.push(k);
    size_t left = code_.size();
    uint32_t needed = pressure_.start(b);
    for (uint32_t time = 1; !ready.empty() && needed <= most; ++time) {
      size_t best = ready.size() - 1;
      Price least = price(ready[best]);
      for (size_t r = best, end = ready.size() > window ? ready.size() - window : 0; r-- > end;)
        if (const Price p = price(ready[r]); p < least) least = p, best = r;
      const uint32_t k = ready[best];
      ready[best] = ready[ready.size() - 1];
      ready.resize_down(ready.size() - 1);
      out[--left] = code_[k];
      needed = std::max(needed, pressure_.before(code_[k]));
      place(k, time);
      for (uint32_t e = edges_of_[k]; e != nobody; e = edges[e].next)
        if (--successors_[edges[e].from] == 0) ready.push(edges[e].from);
    }
    CHECK(left == 0 || needed > most, "{} instructions wait for each other", left);
    forget(live_out);
    if (p != nobody) alive_[p] = false;
    return needed;
  }

 private:
  struct Edge {
    uint32_t from, next;  // an instruction that comes before; of the same later one
  };
  // The lower the better, compared from the first on.
  struct Price {
    int registers;      // more that are alive
    uint32_t waiting;   // values that become alive though their definitions cannot come next
    uint32_t asked;     // how long ago the result was asked for
    uint32_t depth;     // of the longest chain of results that it needs
    uint32_t position;  // from the end of the program
    auto operator<=>(const Price&) const = default;
  };
  struct Unit {
    uint32_t written = nobody;  // the last write so far
    uint32_t readers = nobody;  // since then: links
    uint32_t asked = 0;         // when its reader was placed
    uint32_t to_come = 0;       // readers that are not placed
  };
  struct Link {
    uint32_t reader, next;
  };

  bool is_predicate(uint32_t u) const { return u < units_.predicates; }

  void depend(uint32_t later, uint32_t earlier) {
    if (earlier == nobody || earlier == later) return;
    if (const uint32_t last = edges_of_[later]; last != nobody && (*edges_)[last].from == earlier) return;
    edges_of_[later] = edges_->push({earlier, edges_of_[later]});
    ++successors_[earlier];
  }

  void find_dependences() {
    const uint32_t n = static_cast<uint32_t>(code_.size());
    ArenaList<Link> links(*f_.arena, 4 * n);
    ArenaList<uint32_t> since_fence(*f_.arena, n);
    std::array<uint32_t, MemoryUse::spaces> store;
    store.fill(nobody);
    std::array<uint32_t, MemoryUse::spaces> loads;  // since the store: links
    loads.fill(nobody);
    uint32_t fence = nobody;
    for (uint32_t k = 0; k < n; ++k) {
      const auto [reads, writes, end] = units_.of(code_[k]);
      for (const uint32_t* u = reads; u != writes; ++u) {
        Unit& x = unit_[*u];
        depend(k, x.written);
        if (x.written != nobody) depth_[k] = std::max(depth_[k], depth_[x.written] + 1);
        x.readers = links.push({k, x.readers});
        ++x.to_come;
      }
      for (const uint32_t* w = writes; w != end; ++w) {
        Unit& x = unit_[*w & ~Units::lasts];
        for (uint32_t l = x.readers; l != nobody; l = links[l].next) depend(k, links[l].reader);
        depend(k, x.written);
        x.written = k, x.readers = nobody;
      }
      const Facts& facts = f_.facts[index(code_[k])];
      if (!facts.ordered) continue;
      const MemoryUse use = MemoryUse::of(facts);
      if (use.passes) continue;
      depend(k, fence);
      if (use.fence) {
        for (uint32_t before : since_fence.all()) depend(k, before);
        since_fence.clear();
        fence = k;
        continue;
      }
      since_fence.push(k);
      for (uint32_t s = 0; s < MemoryUse::spaces; ++s) {
        if (use.stores >> s & 1) {
          for (uint32_t l = loads[s]; l != nobody; l = links[l].next) depend(k, links[l].reader);
          depend(k, store[s]);
          store[s] = k, loads[s] = nobody;
        } else if (use.loads >> s & 1) {
          depend(k, store[s]);
          loads[s] = links.push({k, loads[s]});
        }
      }
    }
  }

  Price price(uint32_t k) const {
    const auto [reads, writes, end] = units_.of(code_[k]);
    Price p{0, 0, nobody, depth_[k], static_cast<uint32_t>(code_.size()) - k};
    for (const uint32_t* w = writes; w != end; ++w) {
      const uint32_t u = *w & ~Units::lasts;
      if (!units_.is_allocated(u)) continue;
      p.asked = std::min(p.asked, nobody - unit_[u].asked);
      if (!(*w & Units::lasts)) p.registers -= alive_[u];
    }
    uint32_t opened = 0;
    for (const uint32_t* u = reads; u != writes; ++u) {
      if (alive_[*u] || !units_.is_allocated(*u) || std::find(reads, u, *u) != u) continue;
      p.registers += unit_[*u].to_come <= few_readers;
      opened += is_predicate(*u);
      const uint32_t definition = unit_[*u].written;
      p.waiting += definition != nobody && definition < k && successors_[definition] > 1;
    }
    if (predicates_ + opened > most_predicates) p.registers += static_cast<int>(4 * opened);
    return p;
  }

  void place(uint32_t k, uint32_t time) {
    const auto [reads, writes, end] = units_.of(code_[k]);
    for (const uint32_t* w = writes; w != end; ++w) {
      const uint32_t u = *w & ~Units::lasts;
      if (*w & Units::lasts || !alive_[u]) continue;
      alive_[u] = false, predicates_ -= is_predicate(u);
    }
    for (const uint32_t* u = reads; u != writes; ++u) {
      if (!alive_[*u]) predicates_ += is_predicate(*u);
      alive_[*u] = true, unit_[*u].asked = time, --unit_[*u].to_come;
    }
  }

  // What is known of units, for the next block.
  void forget(const LiveSet& live_out) {
    for (uint32_t u : live_out) alive_[u] = false;
    for (InstId i : code_) {
      const auto [reads, writes, end] = units_.of(i);
      for (const uint32_t* u = reads; u != end; ++u) unit_[*u & ~Units::lasts] = {}, alive_[*u & ~Units::lasts] = false;
    }
  }

  const Function& f_;
  const Liveness& live_;
  PressureOf& pressure_;
  const Units& units_;
  std::span<Unit> unit_ = f_.arena->make_span<Unit>(units_.count);
  std::span<bool> alive_ = f_.arena->make_span<bool>(units_.count);
  // Of the block.
  std::span<const InstId> code_;
  // By instruction: edges to what comes before; how many that come later are not placed; the longest chain of results before it.
  std::span<uint32_t> edges_of_, successors_, depth_;
  ArenaList<Edge>* edges_ = nullptr;
  uint32_t predicates_ = 0;  // alive
};

// Blocks with more than `enough` alive at once get another order if then at most `wanted` are alive at once in the function. Returns how many are; nobody: nothing
// changed.
uint32_t order_blocks(Function& f, const Liveness& live, uint32_t enough, uint32_t wanted) {
  ArenaScope scope(*f.arena);
  const auto gprs = [&](const LiveSet& units) {
    uint32_t n = 0;
    for (uint32_t u : units) n += f.units.is_gpr(u);
    return n;
  };
  for (BlockId b : f.layout)  // what no order changes
    if (std::max(gprs(live.in(b)), gprs(live.out(b))) > wanted) return nobody;
  PressureOf pressure(f, live);
  BlockOrder order(f, live, pressure);
  struct Needed {
    uint32_t alive;  // at once
    BlockId block;
  };
  const std::span<Needed> blocks = f.arena->make_raw<Needed>(f.layout.size());
  for (size_t k = 0; k < blocks.size(); ++k)
    blocks[k] = {pressure.block(f.layout[k], f.blocks[f.layout[k]].code), f.layout[k]};
  std::ranges::sort(blocks, std::greater(), &Needed::alive);
  struct Changed {
    BlockId block;
    std::span<InstId> code;
  };
  ArenaList<Changed> changed(*f.arena, 16);
  uint32_t most = 0;
  for (auto [alive, b] : blocks) {
    if (alive > enough) {
      const std::span<InstId> code = f.arena->make_raw<InstId>(f.blocks[b].code.size());
      const uint32_t useful = std::min(alive - 1, wanted);
      if (const uint32_t then = order.run(b, useful, code); then <= useful) alive = then, changed.push({b, code});
    }
    if (alive > wanted) return nobody;
    most = std::max(most, alive);
  }
  for (const Changed& x : changed.all()) std::ranges::copy(x.code, f.blocks[x.block].code.begin());
  return most;
}

}  // namespace

uint32_t schedule_for_pressure(Function& f, const Liveness& live, uint32_t pressure) {
  const uint32_t enough = occupancy_budget(f);
  if (pressure <= enough) return pressure;
  const uint32_t wanted = std::max(enough, pressure - beyond_the_step(f, pressure));
  return std::min(pressure, order_blocks(f, live, enough, wanted));
}

}  // namespace rndn::assembler
