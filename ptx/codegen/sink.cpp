// Groups inside kernels: `GPU.fold` reduces values per key into tables with an entry for every key that there may be.
//
// A key's entry is the sum of (element - least) * factor over its columns: mixed radix, by bounds that the runtime knows
// (runtime/run/folds.cpp), so that entries ascend as keys do. The results are tables in global memory, which the launch
// finds filled with what an empty entry holds. Two ways, chosen at the launch, a uniform branch:
//   block    the entries fit into shared memory: every block has some copies of them, lanes take turns, so that threads
//            with one key seldom meet; at the end a thread per entry combines the copies and adds what occurs to the
//            global table. More entries than 24 KB hold take what a block of the GPU may ask for, in code of their own.
//            Where so many entries leave no room for copies, but few of them may occur, the first ones that a block meets
//            get slots with copies beside the table: a word per entry tells the slot
//   global   atomics on the global table itself
// Keys that have too wide a range for that find their entries by hashing, in code of its own (sink_hash.cpp): in a small table of the block while
// that has room, else in the global one. Extremes are then kept as unsigned numbers in their order, so that any value differs from none; the runtime
// turns them back when it brings the entries into order.
// The words of an entry lie side by side, at constant distances.
// Shared memory adds 32 bits at once: a 64-bit sum is two words, the second one with the carry that the old value of the
// first one tells. 64-bit extremes compare and swap, where they improve what is there.
// All of it is exact and takes any order, so that results repeat: floats come as integers (GPU.sum_part, GPU.order_key).
// Cost: per item an addition per column of the key, and one atomic (sums: one or two) per reduction.
// Measured on an H100 (docs/measurements/limits.tsv): 770 to 2150 G adds/s in shared memory, 82 to 90 in global memory
// with 65,536 entries, 5 with 64.
#include <algorithm>
#include <limits>
#include <utility>

#include "libraries/base/numbers/gpu_limits.h"
#include "libraries/base/numbers/sum_parts.h"
#include "ptx/codegen/emitter.h"
#include "ptx/sums/sum_parts.h"

namespace rndn::codegen {

using ptx::AtomicOp;
using ptx::Compare;
using ptx::LabelId;

namespace {

constexpr uint32_t shared_alone = shared_everywhere / 2, shared_beside_scans = shared_everywhere / 3;
constexpr uint32_t flags_beside = 1 << 10;  // of static shared memory beside a large table: flags, and what is aligned
// Hot entries: those that a block meets first. Their slots have copies enough that lanes with one key do not meet.
constexpr uint32_t hot_room = 24 << 10, most_hot_copies = 32, least_hot_slots = 4, most_hot_slots = 64;
constexpr uint32_t no_slot = UINT32_MAX, never_hot = UINT32_MAX - 1;
constexpr uint32_t unread = UINT32_MAX;

// Of a copy of an entry in shared memory: what begins `at` bytes into it.
struct Words {
  const Fold* fold = nullptr;
  enum Part : uint8_t { whole, low, high } part = whole;
  uint32_t bytes = 4;
  uint32_t at = 0;
};

bool is_wide(const Fold& f) { return rep_of(f.type) == Rep::s64; }
bool sums_numbers(const Sink& sink) {
  return std::any_of(sink.folds.begin(), sink.folds.end(), [](const Fold& f) { return f.part.has_value(); });
}

// Wide ones first, so that all are aligned.
std::vector<Words> entry_words(const Sink& sink) {
  std::vector<Words> out;
  out.reserve(2 * sink.folds.size());
  for (const Fold& f : sink.folds)
    if (f.output != unread && f.reduce != Builtin::sum && f.reduce != Builtin::len && !f.position && is_wide(f))
      out.push_back({&f, Words::whole, 8});
  for (const Fold& f : sink.folds) {
    if (f.output == unread) continue;
    if (f.reduce == Builtin::sum && is_wide(f)) {
      out.push_back({&f, Words::low});
      out.push_back({&f, Words::high});
    } else if (f.reduce == Builtin::len || f.position || !is_wide(f)) {
      out.push_back({&f, Words::whole});
    }
  }
  uint32_t at = 0;
  for (Words& w : out) w.at = std::exchange(at, at + w.bytes);
  return out;
}

// An odd number of words, so that what lanes add to the same word of different copies lies in different banks; with wide extremes, which are
// aligned, an odd number of two words.
uint32_t entry_bytes(const Sink& sink) {
  const std::vector<Words> words = entry_words(sink);
  if (words.empty()) return 0;
  const uint32_t unit = words.front().bytes;
  return unit * ((words.back().at + words.back().bytes + unit - 1) / unit | 1);
}

// What is combined with nothing changes nothing.
int64_t identity(const Words& w) {
  if (w.fold->position) return UINT32_MAX;
  if (w.fold->reduce == Builtin::len || w.fold->reduce == Builtin::sum) return 0;
  const bool min = w.fold->reduce == Builtin::min;
  if (w.bytes == 8) return min ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
  return min ? std::numeric_limits<int32_t>::max() : std::numeric_limits<int32_t>::min();
}

// The vector's elements are numbers of items, or a selection of such.
bool is_position(const Emitter& e, hir::VariableId v) {
  for (;;) {
    const auto step = std::find_if(e.steps.begin(), e.steps.end(), [&](const Step& s) { return s.target == v; });
    if (step == e.steps.end() || !step->casts.empty() || e.definitions[index(v)] != 1) return false;
    if (!step->call) {
      if (step->operands[0].kind != hir::Operand::variable) return false;
      v = step->operands[0].variable_id();
    } else if (step->builtin == Builtin::where || step->builtin == Builtin::range) {
      return true;
    } else if (step->builtin == Builtin::compress && step->operands[1].kind == hir::Operand::variable) {
      v = step->operands[1].variable_id();
    } else {
      return false;
    }
  }
}

// Which part of numbers the vector is; none: it is none.
std::optional<size_t> part_of(const Emitter& e, hir::VariableId v) {
  for (const Step& s : e.steps)
    if (s.target == v && s.call && s.builtin == Builtin::gpu_sum_part)
      return static_cast<size_t>(
          std::get<std::vector<int64_t>>(e.program.literals[s.operands[1].literal_id()].values).front());
  return {};
}

Reg<U32> word32(Emitter& e, const Sink& sink, uint32_t word) { return e.b.cvt<U32>(e.b.ld_param(sink.words[word])); }

// Of the block: copies of all entries, and where the sink's part of shared memory begins.
struct Place {
  Reg<U32> entries, copies, base;
};

struct HotSlots {
  uint32_t copies = most_hot_copies, slots = 0;
  uint32_t bytes(uint32_t each) const { return (copies * slots * each + 15) / 16 * 16; }
};
HotSlots hot_slots(uint32_t each) {
  HotSlots hot;
  each = std::max(1u, each);
  while (hot.copies > 1 && hot_room / (hot.copies * each) < least_hot_slots) hot.copies /= 2;
  hot.slots = std::min(most_hot_slots, hot_room / (hot.copies * each));
  return hot;
}

bool has_hot_slots(const Emitter& e) {
  return has_large_table(e) && e.encodings.table == KernelEncodings::large_and_hot;
}
Place place_of(Emitter& e, const Sink& sink) {
  Place p;
  const uint32_t base = static_cast<uint32_t>(sink.shared_at) + (sink.hashed() ? 8 * sink.slots : 0);
  if (sink.hashed()) {
    p.entries = e.b.constant<U32>(sink.slots);
    p.copies = e.b.constant<U32>(1u);
    p.base = e.b.add(e.b.address_of_32(e.sink_shared), base);
    return p;
  }
  p.entries = word32(e, sink, sink_entries);
  p.copies = word32(e, sink, sink_copies);
  p.base = e.b.add(e.b.address_of_32(e.sink_shared), base);
  return p;
}

// The hot slots lie first, then a copy of all entries, the slot of each, the entry of each slot, and the number of slots that are taken.
struct HotPlace {
  HotSlots of;
  Place slots, all;
  Reg<U32> slot_of, owner_of, taken;  // addresses
};
HotPlace hot_place_of(Emitter& e, const Sink& sink) {
  Builder& b = e.b;
  const uint32_t each = entry_bytes(sink);
  HotPlace p{.of = hot_slots(each)};
  p.slots = {b.constant<U32>(p.of.slots), b.constant<U32>(p.of.copies), b.address_of_32(e.sink_shared)};
  Reg<U32> entries = word32(e, sink, sink_entries);
  p.all = {entries, b.constant<U32>(1u), b.add(p.slots.base, p.of.bytes(each))};
  p.slot_of = b.mad_lo(entries, each, p.all.base);
  p.owner_of = b.mad_lo(entries, 4u, p.slot_of);
  p.taken = b.add(p.owner_of, 4 * p.of.slots);
  return p;
}
// Slots where `hot`, else all entries; how many there are is not asked.
Place either(Builder& b, Reg<Pred> hot, const Place& slots, const Place& all) {
  return {{}, b.selp(slots.copies, all.copies, hot), b.selp(slots.base, all.base, hot)};
}

// Where the keys of the block's own table begin.
Reg<U32> block_keys(Emitter& e, const Sink& sink) {
  return e.b.add(e.b.address_of_32(e.sink_shared), static_cast<uint32_t>(sink.shared_at));
}

// from, from + step, .. below `end`
template <class Body>
void count_up(Builder& b, Reg<U32> from, ptx::Value<U32> step, Reg<U32> end, Body&& body) {
  const LabelId loop = b.label(), done = b.label();
  Reg<U32> k = b.mov(from);
  b.bind(loop);
  b.when(b.setp(Compare::ge, k, end)).bra(done);
  body(k);
  b.add(k, step, k);
  b.bra(loop);
  b.bind(done);
}

AtomicOp atomic_of(const Fold& f) {
  return f.reduce == Builtin::min ? AtomicOp::min : f.reduce == Builtin::max ? AtomicOp::max : AtomicOp::add;
}

void add_narrow(Builder& b, const Fold& f, Space space, Address at, Reg<S32> x) {
  if (f.reduce == Builtin::sum)
    b.red<U32>(AtomicOp::add, space, at, Builder::as<U32>(x));
  else
    b.red<S32>(atomic_of(f), space, at, x);
}

// What an item adds to its entry: 64 bits of sums and wide extremes, else 32; of a part the number; nothing of counts.
struct Contribution {
  Reg<S64> wide;
  Reg<S32> narrow;
  Reg<F64> number;
};

// A number of which parts are added, and what the parts so far leave of it.
struct PartedNumber {
  Reg<F64> number, rest;
};

// Adds the parts of the items' numbers by add(number, part, value), which may put off what waits for the old sum until finish(). Most parts are the
// second and the third: others are of large numbers and of many digits. So those of a few numbers are added at once, without branches: more would take
// more registers.
template <class Add, class Finish>
void add_numbers(Emitter& e, std::span<const Contribution> items, Add&& add, Finish&& finish) {
  Builder& b = e.b;
  std::vector<PartedNumber> numbers;
  for (const Contribution& x : items)
    if (x.number.valid() && std::none_of(numbers.begin(), numbers.end(), [&](const PartedNumber& n) { return n.number == x.number; }))
      numbers.push_back({x.number, b.mov(x.number)});
  if (numbers.empty()) return;
  const auto take = [&](PartedNumber& n, size_t part) {
    Reg<F64> rest = n.rest;
    const Reg<S32> taken = sums::take_part(b, part, rest);
    b.mov(rest, n.rest);
    add(n.number, part, taken);
  };
  constexpr size_t at_once = 2;
  const LabelId all_small = b.label();
  Reg<Pred> large = b.constant<Pred>(false);
  for (const PartedNumber& n : numbers) sums::note_first_part(b, n.number, large);
  b.unless(large).bra(all_small);
  const auto& code = b.function().instructions;
  const auto seldom = [&](size_t from) { e.noted_instructions += code.size() - from; };  // estimates pass them by
  size_t first = code.size();
  for (PartedNumber& n : numbers) {
    const LabelId small = b.label();
    Reg<Pred> own = b.constant<Pred>(false);
    sums::note_first_part(b, n.number, own);
    b.unless(own).bra(small);
    take(n, 0);
    finish();
    sums::note_large(b, n.number, e.no_parts);
    b.bind(small);
  }
  seldom(first);
  b.bind(all_small);
  for (size_t k = 0; k < numbers.size(); ++k) {
    for (const size_t part : {1u, 2u}) take(numbers[k], part);
    if (k % at_once + 1 == at_once || k + 1 == numbers.size()) finish();
  }
  for (PartedNumber& n : numbers) {
    const LabelId none = b.label();
    b.when(b.setp(Compare::equ, n.rest, 0.0)).bra(none);
    first = code.size();
    take(n, 3);
    finish();
    sums::note_rest(b, n.rest, e.no_parts);
    seldom(first);
    b.bind(none);
  }
}

void add_to_global(Emitter& e, const Sink& sink, const Fold& f, Reg<U32> entry, const Contribution& x) {
  Builder& b = e.b;
  const uint32_t bytes = is_wide(f) ? 8 : 4;
  const Address at(b.mad_wide(entry, bytes, b.ld_param(e.outputs[f.output].data)));
  if (f.reduce == Builtin::len)
    b.red<U64>(AtomicOp::add, Space::global, at, 1);
  else if (f.position)
    b.red<U64>(AtomicOp::min, Space::global, at, b.cvt<U64>(Builder::as<U32>(x.narrow)));
  else if (sink.hashed() && f.reduce != Builtin::sum && bytes == 8)
    b.red<U64>(atomic_of(f), Space::global, at, b.xor_(Builder::as<U64>(x.wide), uint64_t{1} << 63));
  else if (sink.hashed() && f.reduce != Builtin::sum)
    b.red<U32>(atomic_of(f), Space::global, at, b.xor_(Builder::as<U32>(x.narrow), 1u << 31));
  else if (f.part) {
    b.when(b.setp(Compare::ne, x.wide, 0)).red<U64>(AtomicOp::add, Space::global, at, Builder::as<U64>(x.wide));
  } else if (bytes == 8)
    b.red<S64>(atomic_of(f), Space::global, at, x.wide);
  else
    add_narrow(b, f, Space::global, at, x.narrow);
}

// Where x improves the 64-bit extreme there.
void improve(Emitter& e, const Fold& f, Address at, Reg<S64> x) {
  Builder& b = e.b;
  const LabelId again = b.label(), done = b.label();
  b.bind(again);
  Reg<U64> there = b.ld<U64>(Space::shared, volatile_access, at);
  b.when(b.setp(f.reduce == Builtin::min ? Compare::ge : Compare::le, x, Builder::as<S64>(there))).bra(done);
  Reg<U64> old = b.atom_cas<U64>(Space::shared, at, there, Builder::as<U64>(x));
  b.when(b.setp(Compare::ne, old, there)).bra(again);
  b.bind(done);
}

// A part that was added to the low word of a sum, and what that was before.
struct AddedPart {
  Address high;
  Reg<U32> old;
  Reg<S32> part;
};
AddedPart add_part(Builder& b, Address low, Address high, Reg<S32> part) {
  const Reg<U32> old = b.mov(b.constant<U32>(0u));
  const Reg<Pred> counts = b.setp(Compare::ne, part, 0);
  b.when(counts).atom<U32>(AtomicOp::add, Space::shared, low, Builder::as<U32>(part), {}, old);
  return {high, old, part};
}
// What is to be added to the high word: of the sum in 64 bits.
void carry(Builder& b, const AddedPart& x) {
  Reg<U32> upper = b.unpack(b.add(b.cvt<U64>(x.old), Builder::as<U64>(b.cvt<S64>(x.part)))).second;
  b.when(b.setp(Compare::ne, upper, 0u)).red<U32>(AtomicOp::add, Space::shared, x.high, upper);
}

// Address `at` of a copy of the item's entry.
void add_to_block(Emitter& e, const Sink& sink, Reg<U32> at, std::span<const Contribution> items) {
  Builder& b = e.b;
  const std::vector<Words> words = entry_words(sink);
  const auto item = [&](const Words& w) -> const Contribution& { return items[static_cast<size_t>(w.fold - sink.folds.data())]; };
  Reg<U32> high;  // of a sum whose low word was added
  LabelId next{};  // behind a part of a sum that is 0
  for (const Words& w : words) {
    const Fold& f = *w.fold;
    const Contribution& x = item(w);
    if (x.number.valid()) continue;
    const Address to(at, w.at);
    if (w.part == Words::low) {
      if (f.part) {
        next = b.label();
        b.when(b.setp(Compare::eq, x.wide, 0)).bra(next);
      }
      auto [low, upper] = b.unpack(Builder::as<U64>(x.wide));
      Reg<U32> old = b.atom<U32>(AtomicOp::add, Space::shared, to, low);
      Reg<Pred> carry = b.setp(Compare::lt, b.add(old, low), low);
      high = b.add(upper, b.selp(b.constant<U32>(1u), 0u, carry));
    } else if (w.part == Words::high) {
      b.when(b.setp(Compare::ne, high, 0u)).red<U32>(AtomicOp::add, Space::shared, to, high);
      if (f.part) b.bind(next);
    } else if (f.reduce == Builtin::len) {
      b.red<U32>(AtomicOp::add, Space::shared, to, 1u);
    } else if (f.position) {
      b.red<U32>(AtomicOp::min, Space::shared, to, Builder::as<U32>(x.narrow));
    } else if (w.bytes == 8) {
      improve(e, f, to, x.wide);
    } else {
      add_narrow(b, f, Space::shared, to, x.narrow);
    }
  }
  std::vector<AddedPart> added;
  add_numbers(
      e, items,
      [&](Reg<F64> number, size_t part, Reg<S32> value) {
        for (const Words& w : words)
          if (w.part == Words::low && item(w).number == number && w.fold->part == part)
            added.push_back(add_part(b, Address(at, w.at), Address(at, w.at + 4), value));
      },
      [&] {
        for (const AddedPart& x : std::exchange(added, {})) carry(b, x);
      });
}

// The key's entry; within the table, whatever the registers hold.
Reg<U32> entry_of(Emitter& e, const Sink& sink, Reg<U32> entries) {
  Builder& b = e.b;
  Reg<U32> entry;
  for (size_t k = 0; k < sink.keys.size(); ++k) {
    Element x = e.values[index(sink.keys[k])];
    if (rep_of(x.type) == Rep::pred) x = convert(e, x, BasicType::i32);
    x = in_register(e, x);
    const uint32_t word = sink_keys + words_per_key * static_cast<uint32_t>(k);
    Reg<U64> least = b.ld_param(sink.words[word + key_least]);
    Reg<U32> step = rep_of(x.type) == Rep::s64 ? b.cvt<U32>(b.sub(Builder::as<U64>(reg<S64>(x)), least))
                                               : b.sub(Builder::as<U32>(reg<S32>(x)), b.cvt<U32>(least));
    Reg<U32> factor = word32(e, sink, word + key_factor);
    entry = entry.valid() ? b.mad_lo(step, factor, entry) : b.mul_lo(step, factor);
  }
  return b.min(entry, b.sub(entries, 1));
}

Contribution contribution(Emitter& e, const Fold& f) {
  Contribution x;
  if (f.output == unread || f.reduce == Builtin::len) return x;
  const Element& value = e.values[index(f.values)];
  if (f.position) {
    x.narrow = Builder::as<S32>(e.b.cvt<U32>(Builder::as<U64>(reg<S64>(in_register(e, convert(e, value, BasicType::i64))))));
  } else if (f.part && value.type == BasicType::f64) {
    x.number = reg<F64>(value);
  } else if (is_wide(f)) {
    x.wide = reg<S64>(in_register(e, convert(e, value, f.type)));
  } else {
    x.narrow = reg<S32>(in_register(e, convert(e, value, f.type)));
  }
  return x;
}

// Every copy of every entry holds nothing.
void clear(Emitter& e, const Sink& sink, const Place& p) {
  Builder& b = e.b;
  const std::vector<Words> words = entry_words(sink);
  if (words.empty()) return;
  count_up(b, e.tid, e.block_size, b.mul_lo(p.entries, p.copies), [&](Reg<U32> slot) {
    Reg<U32> at = b.mad_lo(slot, entry_bytes(sink), p.base);
    for (const Words& w : words)
      if (w.bytes == 8)
        b.st<S64>(Space::shared, Address(at, w.at), b.constant<S64>(identity(w)));
      else
        b.st<U32>(Space::shared, Address(at, w.at), b.constant<U32>(static_cast<uint32_t>(identity(w))));
  });
}

// The entry's hot slot, if it has one; the first item of an entry takes one for those that follow.
Reg<U32> hot_slot(Emitter& e, const HotPlace& hot, Reg<U32> entry) {
  Builder& b = e.b;
  const LabelId known = b.label();
  const Address at(b.mad_lo(entry, 4u, hot.slot_of));
  Reg<U32> slot = b.ld<U32>(Space::shared, volatile_access, at);
  b.when(b.setp(Compare::ne, slot, no_slot)).bra(known);
  Reg<U32> before = b.atom_cas<U32>(Space::shared, at, b.constant<U32>(no_slot), b.constant<U32>(never_hot));
  b.when(b.setp(Compare::ne, before, no_slot)).bra(known);
  Reg<U32> taken = b.atom<U32>(AtomicOp::add, Space::shared, Address(hot.taken), 1u);
  b.when(b.setp(Compare::ge, taken, hot.of.slots)).bra(known);
  b.st<U32>(Space::shared, Address(b.mad_lo(taken, 4u, hot.owner_of)), entry);
  b.atom<U32>(AtomicOp::exch, Space::shared, at, taken);
  b.bind(known);
  return slot;
}

// Do masks of the variables follow from gathers or look-ups?
bool are_selected_by_gathers(const Emitter& e, std::span<const hir::VariableId> variables) {
  std::vector<std::pair<hir::VariableId, bool>> open;  // whether it is part of a mask
  std::vector<uint8_t> seen(2 * e.function.variables.size());
  for (hir::VariableId v : variables) open.emplace_back(v, false);
  while (!open.empty()) {
    const auto [v, in_mask] = open.back();
    open.pop_back();
    if (std::exchange(seen[2 * index(v) + in_mask], true)) continue;
    for (const Step& s : e.steps) {
      if (s.target != v) continue;
      const bool gathers = s.call && (s.builtin == Builtin::index || s.builtin == Builtin::index_or ||
                                      s.builtin == Builtin::gpu_probe);
      if (in_mask && gathers) return true;
      for (size_t k = 0; k < s.operands.size(); ++k)
        if (s.operands[k].kind == hir::Operand::variable && !reads_whole(s, k))
          open.emplace_back(s.operands[k].variable_id(), in_mask || masks(s, k));
    }
  }
  return false;
}

}  // namespace

uint64_t KernelCode::Sink::large_bytes(uint64_t entries, KernelEncodings::Table table) const {
  if (table == KernelEncodings::usual) return 0;
  const uint64_t beside = table == KernelEncodings::large_and_hot ? beside_hot + 4 * entries : 0;
  return (entries * std::max(1u, entry_bytes) + beside + 15) / 16 * 16;
}

void plan_fold(Emitter& e, const Step& step) {
  const auto literal = [&](size_t k) -> const hir::Literal& {
    return e.program.literals[step.operands[k].literal_id()];
  };
  const Builtin reduce = std::get<std::vector<hir::FunctionRef>>(literal(1).values).front().builtin_id;
  const int64_t number = std::get<std::vector<int64_t>>(literal(2).values).front();
  std::vector<hir::VariableId> keys;
  for (size_t k = 3; k < step.operands.size(); ++k) keys.push_back(step.operands[k].variable_id());
  if (!step.casts.empty()) return refuse(e, "a converted GPU.fold", step.id);
  auto sink = std::find_if(e.sinks.begin(), e.sinks.end(),
                           [&](const Sink& s) { return s.number == number && s.keys == keys; });
  if (sink == e.sinks.end()) sink = e.sinks.insert(sink, {.number = number, .keys = keys});
  const hir::VariableId values = step.operands[0].variable_id();
  const std::optional<size_t> part = reduce == Builtin::sum ? part_of(e, values) : std::nullopt;
  sink->folds.push_back({.result = step.target,
                         .values = values,
                         .reduce = reduce,
                         .type = step.result,
                         .position = reduce == Builtin::min && is_position(e, values),
                         .part = part,
                         .output = unread});
}

bool is_part_of_folds(const Emitter& e, const Step& step) {
  if (!step.casts.empty()) return false;
  uint32_t folds = 0;
  for (const Sink& sink : e.sinks)
    for (const Fold& f : sink.folds) folds += f.values == step.target && f.part;
  return folds > 0 && folds == e.reads[index(step.target)];
}

// Of a single sink: others would share what the launch gives.
bool has_large_table(const Emitter& e) {
  return e.encodings.table != KernelEncodings::usual && e.sinks.size() == 1 && e.scans.empty() && !e.sinks[0].hashed();
}

uint32_t sink_bytes(const Emitter& e) {
  if (e.sinks.empty()) return 0;
  return e.scans.empty() ? shared_alone : shared_beside_scans;
}

void place_sinks(Emitter& e) {
  const uint32_t each = e.sinks.empty() ? 0 : sink_bytes(e) / static_cast<uint32_t>(e.sinks.size()) / 16 * 16;
  for (size_t s = 0; s < e.sinks.size(); ++s) {
    Sink& sink = e.sinks[s];
    sink.shared_at = static_cast<int64_t>(s) * each;
    KernelCode::Sink code{.number = sink.number, .keys = sink.keys, .shared_bytes = each};
    for (Fold& f : sink.folds)
      for (uint32_t o = 0; o < e.outputs.size(); ++o) {
        if (e.outputs[o].kind != Output::folded || e.outputs[o].variable != f.result) continue;
        if (f.output != unread) return refuse(e, "a GPU.fold that is two results", none<hir::StatementId>());
        f.output = o;
        const bool min = f.reduce == Builtin::min, max = f.reduce == Builtin::max;
        code.tables.push_back({.result = e.outputs[o].ordinal,
                               .fill = min ? 0x7FFFFFFF : max ? 0x80000000 : 0,
                               .extreme = (min || max) && !f.position,
                               .values = f.values});
      }
    code.entry_bytes = entry_bytes(sink);
    if (s < e.encodings.hashed.size()) sink.key_word = e.encodings.hashed[s];
    if (sink.hashed()) sink.slots = each / (8 + code.entry_bytes);
    if (e.sinks.size() == 1 && e.scans.empty()) {
      const HotSlots hot = hot_slots(code.entry_bytes);
      code.beside_large = flags_beside + static_cast<uint32_t>(e.accumulators.size()) * (e.block_size / 32) * 8;
      code.beside_hot = hot.bytes(code.entry_bytes) + 4 * (hot.slots + 1);
    }
    code.selected_by_gathers = are_selected_by_gathers(e, sink.keys);
    e.code.sinks.push_back(std::move(code));
  }
}

void start_sinks(Emitter& e) {
  if (e.sinks.empty()) return;
  Builder& b = e.b;
  if (std::any_of(e.sinks.begin(), e.sinks.end(), sums_numbers)) e.no_parts = b.constant<Pred>(false);
  std::string name = e.code.name + "_sink";
  e.sink_shared = has_large_table(e) ? b.dynamic_shared<U64>(std::move(name)) : b.shared<U64>(std::move(name), sink_bytes(e) / 8, 16);
  for (const Sink& sink : e.sinks) {
    if (has_hot_slots(e)) {
      const HotPlace hot = hot_place_of(e, sink);
      clear(e, sink, hot.slots);
      clear(e, sink, hot.all);
      count_up(b, e.tid, e.block_size, b.add(hot.all.entries, hot.of.slots), [&](Reg<U32> k) {
        b.st<U32>(Space::shared, Address(b.mad_lo(k, 4u, hot.slot_of)), b.constant<U32>(no_slot));
      });
      b.when(b.setp(Compare::eq, e.tid, 0u)).st<U32>(Space::shared, Address(hot.taken), 0u);
      continue;
    }
    const Place p = place_of(e, sink);
    if (sink.hashed()) {
      Reg<U32> keys = block_keys(e, sink);
      count_up(b, e.tid, e.block_size, p.entries, [&](Reg<U32> slot) {
        b.st<U64>(Space::shared, Address(b.mad_lo(slot, 8u, keys)), b.constant<U64>(free_slot));
      });
    }
    clear(e, sink, p);
  }
  b.bar_sync();
}

void fold_item(Emitter& e) {
  Builder& b = e.b;
  for (const Sink& sink : e.sinks) {
    Reg<Pred> mask;
    for (hir::VariableId k : sink.keys)
      if (!mask.valid()) mask = e.values[index(k)].mask;
    Reg<Pred> wanted = active(e, mask);
    const bool is_hot = has_hot_slots(e);
    const Place p = is_hot ? Place{} : place_of(e, sink);
    Reg<U32> entry;
    if (!sink.hashed()) entry = entry_of(e, sink, is_hot ? word32(e, sink, sink_entries) : p.entries);
    std::vector<Contribution> items;
    for (const Fold& f : sink.folds) items.push_back(contribution(e, f));
    const LabelId done = b.label();
    if (wanted.valid()) b.unless(wanted).bra(done);
    if (is_hot) {
      const HotPlace hot = hot_place_of(e, sink);
      Reg<U32> slot = hot_slot(e, hot, entry);
      Reg<Pred> has_slot = b.setp(Compare::lt, slot, hot.of.slots);
      Reg<U32> number = b.mad_lo(slot, hot.of.copies, b.and_(e.tid, hot.of.copies - 1));
      add_to_block(e, sink,
                   b.mad_lo(b.selp(number, entry, has_slot), entry_bytes(sink), b.selp(hot.slots.base, hot.all.base, has_slot)),
                   items);
      b.bind(done);
      continue;
    }
    const LabelId global = b.label();
    Reg<U64> key;
    if (sink.hashed()) {
      key = hashed_key(e, sink, done);
      if (sink.slots > 0) entry = slot_in_block(e, sink, block_keys(e, sink), key, global);
    } else {
      b.when(b.setp(Compare::eq, p.copies, 0u)).bra(global);
    }
    if (!sink.hashed() || sink.slots > 0) {  // none where many groupings share the block's memory
      Reg<U32> number = b.mad_lo(entry, p.copies, b.and_(e.tid, b.sub(p.copies, 1)));
      add_to_block(e, sink, b.mad_lo(number, entry_bytes(sink), p.base), items);
      b.bra(done);
    }
    b.bind(global);
    if (sink.hashed()) entry = hashed_entry(e, sink, key, done);
    for (size_t k = 0; k < sink.folds.size(); ++k)
      if (sink.folds[k].output != unread && !items[k].number.valid()) add_to_global(e, sink, sink.folds[k], entry, items[k]);
    const auto add = [&](Reg<F64> number, size_t part, Reg<S32> value) {
      for (size_t k = 0; k < sink.folds.size(); ++k)
        if (sink.folds[k].output != unread && items[k].number == number && sink.folds[k].part == part)
          add_to_global(e, sink, sink.folds[k], entry, {.wide = b.cvt<S64>(value)});
    };
    add_numbers(e, items, add, [] {});
    b.bind(done);
  }
}

void finish_sinks(Emitter& e) {
  if (e.sinks.empty()) return;
  Builder& b = e.b;
  b.bar_sync();
  for (const Sink& sink : e.sinks) {
    const bool is_hot = has_hot_slots(e);
    const HotPlace hot = is_hot ? hot_place_of(e, sink) : HotPlace{};
    const Place usual = is_hot ? Place{} : place_of(e, sink);
    const std::vector<Words> arrays = entry_words(sink);
    // Sums of parts are many: all at once would take more registers than the loop over the items.
    const size_t at_once = sums_numbers(sink) ? 4 : sink.folds.size();
    const LabelId none = b.label();
    if (!sink.hashed() && !is_hot) b.when(b.setp(Compare::eq, usual.copies, 0u)).bra_uni(none);
    Reg<U32> places = is_hot ? b.add(hot.all.entries, hot.of.slots) : usual.entries;
    count_up(b, e.tid, e.block_size, places, [&](Reg<U32> number) {
      const LabelId empty = b.label();
      Place p = usual;
      Reg<U32> entry = number, at_place = number;
      if (is_hot) {  // hot slots behind all entries
        Reg<Pred> is_slot = b.setp(Compare::ge, number, hot.all.entries);
        at_place = b.selp(b.sub(number, hot.all.entries), number, is_slot);
        p = either(b, is_slot, hot.slots, hot.all);
        entry = b.mov(number);
        const Address owner(b.mad_lo(at_place, 4u, hot.owner_of));
        b.when(is_slot).ld<U32>(Space::shared, owner, entry);
        b.when(b.setp(Compare::eq, entry, no_slot)).bra(empty);
      }
      Reg<U64> key;
      if (sink.hashed()) {
        key = b.ld<U64>(Space::shared, Address(b.mad_lo(number, 8u, block_keys(e, sink))));
        b.when(b.setp(Compare::eq, key, free_slot)).bra(empty);
      }
      // The copies' combination, by fold, of some folds at once.
      for (size_t from = 0; from < sink.folds.size(); from += at_once) {
        const size_t to = std::min(sink.folds.size(), from + at_once);
        const auto is_now = [&](const Words& w) {
          return w.fold >= &sink.folds[from] && w.fold < sink.folds.data() + to;
        };
        std::vector<Contribution> total(sink.folds.size());
        for (const Words& w : arrays) {
          if (!is_now(w)) continue;
          Contribution& t = total[static_cast<size_t>(w.fold - sink.folds.data())];
          if (w.part != Words::whole || w.fold->reduce == Builtin::len || w.bytes == 8)
            t.wide = w.part == Words::high ? t.wide : b.constant<S64>(identity(w));
          else
            t.narrow = Builder::as<S32>(b.constant<U32>(static_cast<uint32_t>(identity(w))));
        }
        Reg<U32> first = b.mul_lo(at_place, p.copies), end = b.add(first, p.copies);
        count_up(b, first, 1u, end, [&](Reg<U32> slot) {
          Reg<U32> low;
          Reg<U32> slot_at = b.mad_lo(slot, entry_bytes(sink), p.base);
          for (const Words& w : arrays) {
            const Fold& f = *w.fold;
            Contribution& t = total[static_cast<size_t>(w.fold - sink.folds.data())];
            if (!is_now(w)) continue;
            const Address at(slot_at, w.at);
            if (w.bytes == 8) {
              Reg<S64> x = b.ld<S64>(Space::shared, at);
              f.reduce == Builtin::min ? b.min(t.wide, x, t.wide) : b.max(t.wide, x, t.wide);
              continue;
            }
            Reg<U32> x = b.ld<U32>(Space::shared, at);
            if (w.part == Words::low)
              low = x;
            else if (w.part == Words::high)
              b.add(t.wide, Builder::as<S64>(b.pack<U64>(low, x)), t.wide);
            else if (f.reduce == Builtin::len)
              b.add(t.wide, Builder::as<S64>(b.cvt<U64>(x)), t.wide);
            else if (f.position)
              b.min(Builder::as<U32>(t.narrow), x, Builder::as<U32>(t.narrow));
            else if (f.reduce == Builtin::sum)
              b.add(t.narrow, Builder::as<S32>(x), t.narrow);
            else
              f.reduce == Builtin::min ? b.min(t.narrow, Builder::as<S32>(x), t.narrow)
                                       : b.max(t.narrow, Builder::as<S32>(x), t.narrow);
          }
        });
        // What no row has changes nothing; the first row says so where there is one.
        if (sink.hashed() && from == 0) entry = hashed_entry(e, sink, key, empty);
        for (size_t k = from; k < to && !sink.hashed(); ++k)
          if (sink.folds[k].position && sink.folds[k].output != unread) {
            b.when(b.setp(Compare::eq, Builder::as<U32>(total[k].narrow), UINT32_MAX)).bra(empty);
            break;
          }
        for (size_t k = from; k < to; ++k) {
          const Fold& f = sink.folds[k];
          if (f.output == unread) continue;
          if (f.reduce != Builtin::len) {
            add_to_global(e, sink, f, entry, total[k]);
            continue;
          }
          const Address at(b.mad_wide(entry, 8u, b.ld_param(e.outputs[f.output].data)));
          b.red<U64>(AtomicOp::add, Space::global, at, Builder::as<U64>(total[k].wide));
        }
      }
      b.bind(empty);
    });
    b.bind(none);
  }
}

void store_sink_sizes(Emitter& e) {
  for (const Sink& sink : e.sinks)
    for (const Fold& f : sink.folds)
      if (f.output != unread && !sink.hashed())  // the runtime counts what is taken
        e.b.st<U64>(Space::global, Address(e.b.ld_param(e.outputs[f.output].size)),
                    e.b.ld_param(sink.words[sink_entries]));
}

}  // namespace rndn::codegen
