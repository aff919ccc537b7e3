// Scheduling of each block, before allocation (virtual registers) and after it (physical registers).
//
// Input and output: the same instructions per block, in an order that keeps every dependence: registers (read after write, write after read,
// write after write), Pascal's condition code, memory of one space (loads pass loads, nothing passes a store to its space), fences, barriers and
// exits (nothing that touches memory or other lanes crosses them).
//
// Algorithm: operation scheduling (Fisher, Faraboschi, Young, "Embedded Computing", 8.2): instructions are taken in an order that respects all
// dependences, and each gets the first free issue slot that its dependences allow. Then no graph is needed: per register the slots of the last
// write and of the reads around it say all, and per memory space those of its loads and stores.
//
// Before allocation instructions are taken from the last to the first and placed as late as possible, so that values do not live longer than
// needed; slots count from the end of the block. Loads count with their expected latency, so they rise above independent work: a tile's loads are
// all under way before the first use. While more registers are alive than the limit (or almost all predicates), one that needs another comes in the order of the
// program instead: the first one in either order that has not been issued can always issue, since both orders respect the dependences.
// After allocation instructions are taken in their order and placed as early as possible: later ones fill the gaps of earlier ones. The exact
// distances are kept by assign_barriers; what counts here is which instructions can stand between.
// Slots are numbered through the function, each block's far enough beyond those of the block before, so that what registers remember of other
// blocks decides nothing and needs no clearing.
// Cost: O(operands) per instruction, and O(slots / 64) per block.
//
// Left out: alias analysis beyond the state space and places behind one base (memory_order.h), scheduling across blocks.
#include <algorithm>
#include <bit>

#include "assembler/backend/backend.h"
#include "assembler/machine/inst_facts.h"
#include "assembler/machine/latency.h"
#include "assembler/machine/memory_order.h"
#include "assembler/machine/options.h"

namespace rndn::assembler {
namespace {

constexpr uint32_t predicate_limit = 5;  // of 7: some are needed inside expansions
constexpr uint32_t most_latency = 512;   // of any class
// A guard is read later than data after its producer; cycles beyond the producer's expected latency.
constexpr uint32_t guard_delay = 8;

// Issue slots of one block, each taken at most once.
class Slots {
 public:
  explicit Slots(Arena& arena) : arena_(arena) {}
  // The next block; latencies in it are at most `longest`.
  void next_block(uint32_t longest) {
    base_ += 64 * words_ + longest;
    words_ = 0;
  }
  uint32_t base() const { return base_; }
  // The first free slot from `from` on (at least base()), for instruction `node`.
  uint32_t take(uint32_t from, uint32_t node) {
    from -= base_;
    uint32_t w = from / 64;
    if (w >= words_) extend(w);
    uint64_t free = ~taken_[w] & (~uint64_t{0} << from % 64);
    if (!free) {
      uint32_t next = w;
      do {
        next = next_[next];
        if (next >= words_) extend(next);
      } while (taken_[next] == ~uint64_t{0});
      if (taken_[w] == ~uint64_t{0}) next_[w] = next;
      w = next;
      free = ~taken_[w];
    }
    const uint32_t slot = 64 * w + static_cast<uint32_t>(std::countr_zero(free));
    taken_[w] |= free & -free;
    node_[slot] = node;
    return base_ + slot;
  }
  // Calls f(node) for all, from the first slot to the last or the other way.
  template <class F>
  void ascending(F&& f) const {
    for (uint32_t w = 0; w < words_; ++w)
      for (uint64_t rest = taken_[w]; rest; rest &= rest - 1)
        f(node_[64 * w + static_cast<uint32_t>(std::countr_zero(rest))]);
  }
  template <class F>
  void descending(F&& f) const {
    for (uint32_t w = words_; w-- > 0;)
      for (uint64_t rest = taken_[w]; rest;) {
        const uint32_t bit = 63 - static_cast<uint32_t>(std::countl_zero(rest));
        rest ^= uint64_t{1} << bit;
        f(node_[64 * w + bit]);
      }
  }

 private:
  void extend(uint32_t w) {
    if (w >= taken_.size()) {
      const size_t size = std::max<size_t>(64, 2 * size_t{w});
      std::span<uint64_t> taken = raw<uint64_t>(size);
      std::span<uint32_t> next = raw<uint32_t>(size), node = raw<uint32_t>(64 * size);
      std::copy_n(taken_.begin(), words_, taken.begin());
      std::copy_n(next_.begin(), words_, next.begin());
      std::copy_n(node_.begin(), 64 * words_, node.begin());
      taken_ = taken, next_ = next, node_ = node;
    }
    for (; words_ <= w; ++words_) taken_[words_] = 0, next_[words_] = words_ + 1;
  }
  template <class T>
  std::span<T> raw(size_t n) {
    return {static_cast<T*>(arena_.allocate(n * sizeof(T), alignof(T))), n};
  }

  Arena& arena_;
  uint32_t base_ = 0, words_ = 0;
  std::span<uint64_t> taken_;
  std::span<uint32_t> next_;  // a later word; full ones may be skipped
  std::span<uint32_t> node_;  // by slot, where taken
};

// The order of memory operations, in either direction: the slot from which an operation may be placed, given those placed before it. The last few of each
// space are told apart by their places; of those before them only the furthest slot is known.
class MemoryOrder {
 public:
  // A new block. What is remembered stays where it is: to set it up again for every block would cost more than to look at it.
  void clear() {
    for (uint32_t s = 0; s < MemoryUse::spaces; ++s) load_[s].clear(), store_[s].clear();
    fence_ = any_ = 0;
  }
  uint32_t from(MemoryUse use, const MemoryPlace& place) const {
    if (use.fence) return std::max(fence_, any_);
    if (use.passes) return 0;
    uint32_t slot = fence_;
    each(use.loads | use.stores, [&](uint32_t s) { slot = std::max(slot, store_[s].from(place)); });
    each(use.stores, [&](uint32_t s) { slot = std::max(slot, load_[s].from(place)); });
    return slot;
  }
  void place(MemoryUse use, const MemoryPlace& place, uint32_t slot) {
    if (use.passes) return;
    const uint32_t after = slot + 1;
    if (use.fence) {
      fence_ = std::max(fence_, after);
      return;
    }
    any_ = std::max(any_, after);
    each(use.loads, [&](uint32_t s) { load_[s].add(place, after); });
    each(use.stores, [&](uint32_t s) { store_[s].add(place, after); });
  }

 private:
  template <class F>
  static void each(uint32_t spaces, F&& use) {
    for (; spaces; spaces &= spaces - 1) use(static_cast<uint32_t>(std::countr_zero(spaces)));
  }
  // Operations of one kind on a space, by what comes one beyond their slots.
  class Placed {
   public:
    void clear() { count_ = others_ = 0; }
    uint32_t from(const MemoryPlace& place) const {
      uint32_t slot = others_;
      for (uint32_t k = 0; k < std::min(count_, remembered); ++k)
        if (!places_[k].apart(place)) slot = std::max(slot, after_[k]);
      return slot;
    }
    void add(const MemoryPlace& place, uint32_t after) {
      if (place.base == MemoryPlace::unknown) {
        others_ = std::max(others_, after);
        return;
      }
      const uint32_t k = count_++ % remembered;
      if (count_ > remembered) others_ = std::max(others_, after_[k]);
      places_[k] = place, after_[k] = after;
    }

   private:
    static constexpr uint32_t remembered = 16;
    uint32_t count_ = 0, others_ = 0;
    std::array<MemoryPlace, remembered> places_;
    std::array<uint32_t, remembered> after_;
  };
  std::array<Placed, MemoryUse::spaces> load_, store_;  // by space
  uint32_t fence_ = 0, any_ = 0;
};

// A mask for choices that follow no pattern: compilers would make branches of them.
constexpr uint32_t all_bits(bool b) { return 0u - uint32_t{b}; }

bool is_deciding(isa::LatencyClass consumer) {
  using L = isa::LatencyClass;
  constexpr auto bit = [](L c) { return uint64_t{1} << static_cast<unsigned>(c); };
  return (bit(L::branch) | bit(L::vote) | bit(L::barrier) | bit(L::convergence)) >> static_cast<unsigned>(consumer) & 1;
}

// Latencies that are told apart in a block of n instructions: more would only spread large blocks over more slots.
uint32_t longest_latency(size_t n) {
  return std::clamp<uint32_t>((uint32_t{4} << 20) / static_cast<uint32_t>(n), 16, most_latency);
}

// --- Before allocation

struct LateScheduler {
  const Function& f;
  const Units& lists = f.units;
  Arena& arena = *f.arena;
  const ExpectedLatencies expected{*f.target};
  // A register, predicate or the condition code.
  struct Unit {
    uint32_t need = 0;        // its value is read in this slot
    uint32_t next_write = 0;  // one beyond the slot of the next write
  };
  std::span<Unit> units = arena.make_span<Unit>(lists.count);
  Slots slots{arena};
  MemoryOrder memory;

  // Accesses above one write of the base and below another are of one version: that of the write below, which comes first here.
  MemoryPlace place_of(const Facts& x, const Inst& inst) const {
    MemoryPlace p = MemoryPlace::of(x, inst);
    if (p.base == MemoryPlace::unknown || p.base == isa::RZ) return p;
    if (p.base < isa::first_virtual) return f.dynamic_stack ? MemoryPlace() : p;
    const uint32_t u = lists.of(Range::gpr, p.base), width = f.gprs[p.base - isa::first_virtual].width;
    p.version = units[u].next_write;
    if (width > 1 && u + 1 < units.size()) p.version |= uint64_t{units[u + 1].next_write} << 32;
    for (Range r : x.writes())  // a load of its own base, which it reads before
      if (r.file() == Range::gpr && r.reg() < p.base + 2 && p.base < r.reg() + r.width()) p.base = MemoryPlace::unknown;
    return p;
  }
  // The block's instructions as late as possible, as places in its code, to `late`.
  void run(const Block& block, uint32_t* late) {
    const std::vector<InstId>& code = block.code;
    const uint32_t n = static_cast<uint32_t>(code.size());
    const uint32_t longest = longest_latency(n);
    slots.next_block(most_latency + guard_delay);
    memory.clear();
    // The branch at the end waits for its predicate.
    if (block.predicate != isa::PT && !block.uniform_branch && block.predicate >= isa::first_virtual)
      units[lists.of(Range::predicate, block.predicate)].need = slots.base() + guard_delay;
    for (uint32_t k = n; k-- > 0;) {
      const Facts& x = f.facts[index(code[k])];
      const auto [reads, writes, end] = lists.of(code[k]);
      const uint32_t latency = std::min<uint32_t>(expected(x), longest);
      uint32_t from = slots.base() + 1 + latency / 8;
      for (const uint32_t* u = writes; u != end; ++u) {
        const Unit& w = units[*u & ~Units::lasts];
        from = std::max({from, w.next_write, w.need + latency});
      }
      for (const uint32_t* u = reads; u != writes; ++u) from = std::max(from, units[*u].next_write);
      MemoryUse use;
      MemoryPlace place;
      if (x.ordered) {
        use = MemoryUse::of(x), place = place_of(x, f[code[k]]);
        from = std::max(from, memory.from(use, place));
      }
      const uint32_t slot = slots.take(from, k);
      if (x.ordered) memory.place(use, place, slot);
      for (const uint32_t* u = writes; u != end; ++u) units[*u & ~Units::lasts] = {0, slot + 1};
      for (const uint32_t* u = reads; u != writes; ++u) units[*u].need = std::max(units[*u].need, slot);
      if (x.guarded) units[writes[-1]].need = std::max(units[writes[-1]].need, slot + guard_delay);
    }
    slots.descending([&](uint32_t k) { *late++ = k; });
  }
};

// Puts the instructions of a block into their late order, or into that of the program where too many registers are alive.
struct PressureScheduler {
  const Units& units;
  uint32_t limit = 0;
  // By unit: readers to come (the end of the block counts as one when the value lives on), and whether it is alive now. All zero between blocks.
  static constexpr uint32_t alive_flag = 1u << 31;
  std::span<uint32_t> left;
  std::span<bool> issued;
  uint32_t pressure = 0, most = 0;  // GPRs, and predicates in units of `predicate`; most: GPRs of the block
  static constexpr uint32_t predicate = 1u << 20;

  uint32_t weight(uint32_t u) const { return uint32_t{units.is_gpr(u)} + uint32_t{u < units.predicates} * predicate; }
  static uint32_t gprs(uint32_t pressure) { return pressure % predicate; }

  // Whether issuing the instruction leaves more values alive, of those that `counts`.
  template <class F>
  bool needs(InstId i, F&& counts) const {
    const auto [reads, writes, end] = units.of(i);
    int change = 0;
    for (const uint32_t* w = writes; w != end; ++w) {
      const uint32_t u = *w & ~Units::lasts;
      change += counts(u) && left[u] < alive_flag;
    }
    if (change == 0) return false;
    for (const uint32_t* u = reads; u != writes; ++u) change -= counts(*u) && left[*u] == (alive_flag | 1);
    return change > 0;
  }
  // Whether that is too much: in need of what there is too much of already.
  bool too_much(InstId i) const {
    return (gprs(pressure) > limit && needs(i, [&](uint32_t u) { return units.is_gpr(u); })) ||
           (pressure > predicate * (predicate_limit + 1) && needs(i, [&](uint32_t u) { return u < units.predicates; }));
  }
  // Whether a value ends or begins its life here follows no pattern: no branches.
  void issue(InstId i) {
    const auto [reads, writes, end] = units.of(i);
    for (const uint32_t* p = reads; p != end; ++p) {
      const uint32_t u = *p & ~Units::lasts, written = p >= writes, rest = left[u] - (1 - written);
      const uint32_t ends = uint32_t{rest == alive_flag} & (1 - written),
                     begins = uint32_t{rest - 1 < alive_flag - 1} & written;
      left[u] = (rest & (ends - 1)) | begins * alive_flag;
      pressure += weight(u) * (begins - ends);
    }
    most = std::max(most, gprs(pressure));
  }
  void run(std::span<const InstId> program, const uint32_t* late, const LiveSet& live_in, const LiveSet& live_out,
           std::vector<InstId>& code) {
    const uint32_t n = static_cast<uint32_t>(program.size());
    pressure = 0;
    for (uint32_t u : live_in) left[u] = alive_flag, pressure += weight(u);
    for (uint32_t u : live_out) ++left[u];
    for (InstId i : program) {
      const auto [reads, writes, end] = units.of(i);
      for (const uint32_t* u = reads; u != writes; ++u) ++left[*u];
    }
    most = gprs(pressure);
    std::fill_n(issued.begin(), n, false);
    const uint32_t* next_late = late;
    uint32_t next = 0;  // of the program
    for (uint32_t done = 0; done < n; ++done) {
      while (issued[*next_late]) ++next_late;
      uint32_t k = *next_late;
      if (pressure > limit && too_much(program[k])) {
        while (issued[next]) ++next;
        k = next;
      }
      issued[k] = true;
      code[done] = program[k];
      issue(program[k]);
    }
    for (uint32_t u : live_out) left[u] = 0;
  }
};

// --- After allocation

struct EarlyScheduler {
  Function& f;
  Arena& arena = *f.arena;
  const ExpectedLatencies expected{*f.target};
  static constexpr uint32_t carry = RegisterLists::condition_code;
  struct Register {
    uint32_t ready = 0;       // slot in which its value can be read
    uint32_t next_write = 0;  // one beyond the slots of the last write and of all reads since
    uint32_t written = 0;     // one beyond the slot of the last write
  };
  std::array<Register, RegisterLists::count> registers{};
  Slots slots{arena};
  MemoryOrder memory;

  const bool pascal = f.target->family == isa::Family::pascal;

  // A version of a base is its last write.
  MemoryPlace place_of(const Facts& x, const Inst& inst) const {
    MemoryPlace p = MemoryPlace::of(x, inst);
    if (p.base == MemoryPlace::unknown || p.base == isa::RZ) return p;
    if (p.base == stack_register && f.dynamic_stack) return {};
    p.version = registers[p.base].written;
    if (x.memory == Memory::global_load || x.memory == Memory::global_store)
      p.version |= uint64_t{registers[p.base + 1].written} << 32;
    return p;
  }

  void run(std::vector<InstId>& code) {
    const uint32_t n = static_cast<uint32_t>(code.size());
    if (n < 2) return;
    const uint32_t longest = longest_latency(n);
    slots.next_block(most_latency + guard_delay);
    memory.clear();
    for (InstId id : code) {
      const uint32_t inst = index(id);
      const Facts& x = f.facts[inst];
      const RegisterLists::List list = f.registers.of(id);
      uint32_t from = slots.base();
      // Sources and results in one loop: how many there are of each follows no pattern.
      for (const uint16_t* r = list.reads; r != list.end; ++r) {
        const Register& x = registers[*r];
        from = std::max(from, x.ready ^ ((x.ready ^ x.next_write) & all_bits(r >= list.writes)));
      }
      // Predicates that decide whether something happens are read later than data; on Pascal all are.
      const auto read_late = [&](uint32_t r) {
        if (RegisterLists::file_of(r) == Range::predicate) from = std::max(from, registers[r].ready + guard_delay);
      };
      if (pascal || is_deciding(x.latency))
        for (uint32_t r : list.all_reads()) read_late(r);
      if (x.guarded) read_late(list.writes[-1]);
      if (x.reads_carry) from = std::max(from, registers[carry].ready);
      if (x.writes_carry) from = std::max(from, registers[carry].next_write);
      MemoryUse use;
      MemoryPlace place;
      if (x.ordered) {
        use = MemoryUse::of(x), place = place_of(x, f[id]);
        from = std::max(from, memory.from(use, place));
      }
      const uint32_t slot = slots.take(from, inst), after = slot + 1;
      if (x.ordered) memory.place(use, place, slot);
      const Register result{slot + std::min<uint32_t>(expected(x), longest), after, after};
      for (const uint16_t* r = list.reads; r != list.end; ++r) {
        Register& x = registers[*r];
        x.ready ^= (x.ready ^ result.ready) & all_bits(r >= list.writes);
        x.next_write = std::max(x.next_write, after);
        x.written ^= (x.written ^ after) & all_bits(r >= list.writes);
      }
      if (x.reads_carry) registers[carry].next_write = std::max(registers[carry].next_write, after);
      if (x.writes_carry) registers[carry] = result;
    }
    uint32_t count = 0;
    slots.ascending([&](uint32_t inst) { code[count++] = static_cast<InstId>(inst); });
  }
};

}  // namespace

SchedulePlan plan_schedule(const Function& f) {
  SchedulePlan plan;
  size_t n = 0;
  for (BlockId b : f.layout) n += f.blocks[b].code.size();
  plan.program = f.arena->make_raw<InstId>(n);
  plan.late = f.arena->make_raw<uint32_t>(n);
  plan.most = f.arena->make_span<uint32_t>(f.layout.size(), 0);
  ArenaScope scope(*f.arena);
  LateScheduler s{.f = f};
  size_t at = 0;
  for (BlockId b : f.layout) {
    const Block& block = f.blocks[b];
    if (block.code.empty()) continue;
    std::copy(block.code.begin(), block.code.end(), plan.program.begin() + static_cast<ptrdiff_t>(at));
    s.run(block, plan.late.data() + at);
    at += block.code.size();
  }
  return plan;
}

bool schedule(Function& f, const SchedulePlan& plan, const Liveness& live, uint32_t limit, uint32_t crowded) {
  ArenaScope scope(*f.arena);
  size_t largest = 0;
  for (BlockId b : f.layout) largest = std::max(largest, f.blocks[b].code.size());
  PressureScheduler s{.units = f.units,
                      .left = f.arena->make_span<uint32_t>(f.units.count),
                      .issued = f.arena->make_span<bool>(largest)};
  size_t at = 0;
  bool some_above = false, some_within = false;
  for (size_t k = 0; k < f.layout.size(); ++k) {
    const BlockId b = f.layout[k];
    std::vector<InstId>& code = f.blocks[b].code;
    s.limit = plan.most[k] > limit ? crowded : limit;
    s.run(plan.program.subspan(at, code.size()), plan.late.data() + at, live.in(b), live.out(b), code);
    plan.most[k] = s.most;
    if (!code.empty()) (s.most > limit ? some_above : some_within) = true;
    at += code.size();
  }
  return some_above && some_within;
}

void schedule_allocated(Function& f) {
  ArenaScope scope(*f.arena);
  EarlyScheduler s{.f = f};
  for (BlockId b : f.layout) s.run(f.blocks[b].code);
}

}  // namespace rndn::assembler
