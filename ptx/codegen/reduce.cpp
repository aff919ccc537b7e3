// Reductions (docs/horseir.md, "Builtins: reductions"): fast, and the same bits on every launch.
//
// Every thread accumulates its selected items into independent registers; then registers, lanes of a warp (butterfly shuffles), warps of
// a block (shared memory) and, in the block that finishes last, the blocks' partial results are combined.
// Finding the last block: thread 0 stores the block's partial results, fences, takes a ticket from a counter in the fixed part of the
// scratch memory. The last block fences, combines, and leaves all scratch memory zero again.
// Integer sums accumulate in 64 bits and are cut to the result's type at the end. Float sums are exact and rounded once (ptx/sums/exact_sum.h), in
// whatever order: three accumulators each. Averages divide a sum by a count, in f64.
// Without a selection, the number of elements is n and needs no accumulator.
// Scratch: 16 bytes of ticket, then per accumulator one 8-byte partial per block. Shared: 8 bytes per accumulator and warp.
#include <algorithm>
#include <bit>
#include <limits>

#include "ptx/codegen/accumulate.h"

namespace rndn::codegen {

using ptx::Access;
using ptx::Compare;
using ptx::Semantics;
using ptx::SharedVariable;

int64_t identity_bits(Accumulator::Kind kind, BasicType type) {
  const bool low = kind == Accumulator::max;
  switch (kind) {
    case Accumulator::add:
    case Accumulator::any: return 0;
    case Accumulator::all: return 1;
    default: break;
  }
  if (hir::is_float(type)) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    return float_bits(type, low ? -infinity : infinity);
  }
  const auto [least, greatest] = range_of(type);
  return low ? least : greatest;
}

namespace {

int add_accumulator(Emitter& e, Accumulator a) {
  for (size_t i = 0; i < e.accumulators.size(); ++i) {
    const Accumulator& o = e.accumulators[i];
    if (o.kind == a.kind && o.type == a.type && o.count == a.count && o.argument == a.argument && o.part == a.part)
      return static_cast<int>(i);
  }
  e.accumulators.push_back(std::move(a));
  return static_cast<int>(e.accumulators.size() - 1);
}

}  // namespace

Element finish_reduction(Emitter& e, Builtin builtin, BasicType result, const Element& value, const Element& count) {
  Builder& b = e.b;
  switch (builtin) {
    case Builtin::len: return convert(e, count, result);
    case Builtin::avg: {
      Reg<F64> sum = reg<F64>(in_register(e, convert(e, value, BasicType::f64)));
      Reg<F64> divisor = reg<F64>(convert(e, count, BasicType::f64));
      return convert(e, element(BasicType::f64, b.div_rn(sum, divisor)), result);
    }
    default: break;
  }
  if (result == BasicType::boolean) return element(BasicType::boolean, b.setp(Compare::ne, reg<S32>(value), 0));
  return convert(e, value, result);
}

std::vector<RegisterId> ids_of(std::span<const Element> x) {
  std::vector<RegisterId> ids;
  for (const Element& e : x) ids.push_back(static_cast<RegisterId>(e.value.id));
  return ids;
}

void add_to_sum(Emitter& e, const sums::ExactSum& sum, const Element& x, Reg<Pred> when) {
  Builder& b = e.b;
  if (x.type == BasicType::i64) return sums::add(b, sum, reg<S64>(in_register(e, x)), when);
  Reg<F64> value = reg<F64>(in_register(e, convert(e, x, BasicType::f64)));
  if (x.type == BasicType::f64) {
    if (when.valid()) value = b.selp(value, b.constant<F64>(0.0), when);
    sums::note_huge(b, value, e.huge);
    sums::add(b, sum, value);
  } else {
    sums::add(b, sum, value, when);
  }
}

Element finish_sum(Emitter& e, Builtin builtin, BasicType result, const sums::ExactSum& sum, Reg<Pred> counts) {
  const bool cut = builtin == Builtin::sum && result == BasicType::f32;
  const sums::Round round = cut ? sums::Round::odd : sums::Round::nearest;
  return element(BasicType::f64, sums::rounded(e.b, sum, round, e.b.ld_param(e.sum_flags), counts));
}

std::vector<Accumulator> value_accumulators(const AccumulatorPlan& plan, hir::VariableId argument) {
  std::vector<Accumulator> all{{.kind = plan.kind, .type = plan.type, .argument = argument}};
  for (uint8_t part = 1; part < parts_of(all[0]); ++part) {
    all.push_back(all[0]);
    all.back().part = part;
  }
  return all;
}

AccumulatorPlan accumulators_of(Builtin builtin, BasicType type, bool selected) {
  AccumulatorPlan plan;
  plan.value = builtin != Builtin::len;
  plan.count = selected && (builtin == Builtin::len || builtin == Builtin::avg);
  plan.type = type;
  switch (builtin) {
    case Builtin::sum:
    case Builtin::avg:
      // A sum wraps, an average must not: 64-bit integers are averaged as f64. Narrower ones cannot overflow 64 bits.
      plan.kind = Accumulator::add;
      plan.type =
          hir::is_float(type) || (builtin == Builtin::avg && type == BasicType::i64) ? BasicType::f64 : BasicType::i64;
      break;
    case Builtin::min: plan.kind = Accumulator::min; break;
    case Builtin::max: plan.kind = Accumulator::max; break;
    case Builtin::any: plan.kind = Accumulator::any; break;
    case Builtin::all: plan.kind = Accumulator::all; break;
    default: break;
  }
  return plan;
}

void plan_reduction(Emitter& e, hir::VariableId result, hir::VariableId argument, Builtin builtin,
                    bool argument_masked) {
  Reduction r{.result = result, .argument = argument, .builtin = builtin, .type = e.type_of(result)};
  const AccumulatorPlan plan = accumulators_of(builtin, e.type_of(argument), argument_masked);
  if (plan.count)
    r.counter =
        add_accumulator(e, {.kind = Accumulator::add, .type = BasicType::i32, .count = true, .argument = argument});
  if (plan.value)
    for (const Accumulator& a : value_accumulators(plan, argument)) {
      const int at = add_accumulator(e, a);
      if (a.part == 0) r.sum = at;
    }
  e.reductions.push_back(r);
}

void start_accumulators(Emitter& e) {
  if (sums_floats(e)) e.huge = e.b.constant<Pred>(false);
  const size_t count = e.accumulators.size();
  const uint32_t independent = count <= 2 ? 2 : 1;
  for (Accumulator& a : e.accumulators) {
    const BasicType type = held_type(a.type);
    const Element identity = constant_element(type, identity_bits(a.kind, a.type));
    for (uint32_t k = 0; k < independent; ++k)
      with_number(rep_of(type), [&]<class T>() { a.registers.push_back(e.b.constant<T>(immediate<T>(identity)).id); });
  }
}

void accumulate(Emitter& e) {
  Builder& b = e.b;
  for (size_t k = 0; k < e.accumulators.size(); k += parts_of(e.accumulators[k])) {
    Accumulator& a = e.accumulators[k];
    const Element& value = e.values[index(a.argument)];
    Reg<Pred> selected = active(e, value.mask);
    RegisterId into = a.registers[e.item % a.registers.size()];
    if (a.count) {
      Reg<S32> n{into};
      b.when(selected).add(n, 1, n);
      continue;
    }
    if (sums_floats(a)) {
      add_to_sum(e, {{a.registers[0]}, {e.accumulators[k + 1].registers[0]}, {e.accumulators[k + 2].registers[0]}},
                 value, selected);
      continue;
    }
    const Element x = in_register(e, convert(e, value, held_type(a.type)));
    with_number(rep_of(x.type), [&]<class T>() {
      b.when(selected);
      combine<T>(b, a.kind, Reg<T>{into}, reg<T>(x), Reg<T>{into});
    });
  }
}

bool sums_floats(const Emitter& e) {
  const auto of = [](std::span<const Accumulator> all) {
    return std::any_of(all.begin(), all.end(), [](const Accumulator& a) { return sums_floats(a); });
  };
  return of(e.accumulators) || std::any_of(e.cell_reductions.begin(), e.cell_reductions.end(),
                                           [&](const CellReduction& r) { return of(r.accumulators); });
}

bool sums_parts(const Emitter& e) {
  return std::any_of(e.steps.begin(), e.steps.end(), [](const Step& s) {
    return s.call && (s.builtin == Builtin::gpu_sum_part || s.builtin == Builtin::gpu_sum_of_parts);
  });
}

void finish_kernel(Emitter& e) {
  if (e.reductions.empty() && e.scans.empty()) return;
  Builder& b = e.b;
  const uint32_t warps = e.block_size / 32;
  const uint32_t count = static_cast<uint32_t>(e.accumulators.size());
  SharedVariable shared = b.shared<U64>(e.code.name + "_partials", uint64_t{count} * warps + 1, 8);
  const int64_t flag_offset = int64_t{count} * warps * 8;

  Reg<U32> warp_address, lane_address;
  Reg<Pred> lane0;
  if (count > 0) {
    Reg<U32> shared_base = b.address_of_32(shared);
    warp_address = b.mad_lo(b.shr(e.tid, 5), 8, shared_base);
    lane_address = b.mad_lo(b.and_(e.tid, warps - 1), 8, shared_base);
    lane0 = b.setp(Compare::eq, b.and_(e.tid, 31), 0);
  }
  Reg<Pred> thread0 = b.setp(Compare::eq, e.tid, 0);
  Reg<U64> scratch = b.ld_param(e.scratch);
  Reg<U64> words_at = b.add(scratch, scratch_fixed_bytes), partials = words_at;
  Reg<U32> words;  // status words of all scans
  if (!e.scans.empty()) {
    words = b.add(e.tiles, b.shr(b.add(e.tiles, 31), 5));  // of tiles, then of groups of 32
    if (e.scans.size() > 1) words = b.mul_lo(words, static_cast<uint32_t>(e.scans.size()));
    if (count > 0) partials = b.mad_wide(words, 8u, words_at);
  }

  // Thread to block.
  std::vector<RegisterId> of_thread;
  for (uint32_t k = 0; k < count; ++k) {
    Accumulator& a = e.accumulators[k];
    with_number(rep_of(held_type(a.type)), [&]<class T>() {
      std::vector<Reg<T>> r;
      for (RegisterId id : a.registers) r.push_back({id});
      for (size_t n = r.size(); n > 1; n = (n + 1) / 2)
        for (size_t i = 0; i < n / 2; ++i) r[i] = combine(b, a.kind, r[i], r[i + (n + 1) / 2]);
      const Element x = convert(e, element(held_type(a.type), r[0]), partial_type(a));
      with_number(rep_of(x.type), [&]<class P>() { of_thread.push_back(reg<P>(x).id); });
    });
  }
  to_shared(e, e.accumulators, of_thread, warp_address, lane0);
  b.bar_sync();
  std::vector<Element> block_results;
  const std::vector<RegisterId> of_block = from_shared(e, e.accumulators, lane_address);
  for (uint32_t k = 0; k < count; ++k)
    with_partial(e.accumulators[k], [&]<class P>() {
      block_results.push_back(element(partial_type(e.accumulators[k]), Reg<P>{of_block[k]}));
    });

  // Block to grid: publish, take a ticket.
  const ptx::LabelId waiting = b.label(), done = b.label();
  b.unless(thread0).bra(waiting);
  for (uint32_t k = 0; k < count; ++k) {
    Reg<U32> slot = k ? b.mad_lo(e.nctaid, k, e.ctaid) : e.ctaid;
    Reg<U64> at = b.mad_wide(slot, 8u, partials);
    with_number(rep_of(block_results[k].type),
                [&]<class P>() { b.st<P>(Space::global, Address(at), reg<P>(block_results[k])); });
  }
  b.membar(ptx::Scope::gpu);
  Reg<U32> ticket = b.atom<U32>(ptx::AtomicOp::add, Space::global, Address(scratch, finished_counter), 1);
  b.st<U32>(Space::shared, Address(shared, flag_offset), ticket);
  b.bind(waiting);
  b.bar_sync();
  Reg<U32> mine = b.ld<U32>(Space::shared, Address(shared, flag_offset));
  b.when(b.setp(Compare::ne, mine, b.sub(e.nctaid, 1))).bra_uni(done);
  b.membar(ptx::Scope::gpu);

  // The last block: all partial results are visible behind the fence, and nobody reads a status word any more.
  if (!e.scans.empty()) {
    const ptx::LabelId clean = b.label(), cleaned = b.label();
    Reg<U32> word = b.mov(e.tid);
    b.bind(clean);
    b.when(b.setp(Compare::ge, word, words)).bra(cleaned);
    Reg<U64> at = b.mad_wide(word, 8u, words_at);
    b.st<U64>(Space::global, Address(at), 0);
    b.add(word, e.block_size, word);
    b.bra(clean);
    b.bind(cleaned);
  }
  if (count > 0) {
    // Volatile loads, so that no stale cache line is read.
    const ptx::LabelId sum_up = b.label(), summed = b.label();
    std::vector<RegisterId> sums;
    for (const Accumulator& a : e.accumulators) {
      const BasicType type = partial_type(a);
      with_number(rep_of(type), [&]<class P>() {
        sums.push_back(b.constant<P>(immediate<P>(constant_element(type, identity_bits(a.kind, a.type)))).id);
      });
    }
    Reg<U32> block = b.mov(e.tid);
    b.bind(sum_up);
    b.when(b.setp(Compare::ge, block, e.nctaid)).bra(summed);
    // A few loads before the first is waited for: nothing else runs any more that would hide it. All of many would take registers from the scan.
    constexpr uint32_t most_at_once = 4;
    std::vector<RegisterId> others(count);
    for (uint32_t first = 0, end; first < count; first = end) {
      std::vector<Reg<U64>> at;
      for (end = first; end < count && (end == first || end - first + parts_of(e.accumulators[end]) <= most_at_once);)
        for (const size_t last = end + parts_of(e.accumulators[end]); end < last; ++end) {
          at.push_back(b.mad_wide(end ? b.mad_lo(e.nctaid, end, block) : block, 8u, partials));
          with_partial(e.accumulators[end], [&]<class P>() {
            others[end] = b.ld<P>(Space::global, Access{.semantics = Semantics::volatile_}, Address(at.back())).id;
          });
        }
      for (Reg<U64> to : at) b.st<U64>(Space::global, Address(to), 0);
      for (uint32_t k = first; k < end; ++k) combine(b, e.accumulators, k, sums, others, sums);
    }
    b.add(block, e.block_size, block);
    b.bra(sum_up);
    b.bind(summed);
    to_shared(e, e.accumulators, sums, warp_address, lane0);
    b.bar_sync();
    const std::vector<RegisterId> totals = from_shared(e, e.accumulators, lane_address);
    for (uint32_t k = 0; k < count; ++k)
      with_partial(e.accumulators[k], [&]<class P>() {
        e.accumulators[k].total = element(partial_type(e.accumulators[k]), Reg<P>{totals[k]});
      });
  }
  b.unless(thread0).bra(done);
  for (const Reduction& r : e.reductions) {
    const Element count =
        r.counter >= 0 ? e.accumulators[r.counter].total : element(BasicType::i64, Builder::as<S64>(e.n));
    Element value = r.sum >= 0 ? e.accumulators[r.sum].total : count;
    if (r.sum >= 0 && sums_floats(e.accumulators[r.sum])) {
      const auto part = [&](int k) { return reg<F64>(e.accumulators[r.sum + k].total); };
      value = finish_sum(e, r.builtin, r.type, {part(0), part(1), part(2)}, {});
    }
    const Element x = storable(e, finish_reduction(e, r.builtin, r.type, value, count));
    for (const Output& out : e.outputs) {
      if (out.kind != Output::reduced || out.variable != r.result) continue;
      store_element(e, x, b.ld_param(out.data), {});
      b.st<U64>(Space::global, Address(b.ld_param(out.size)), 1);
    }
  }
  b.st<U32>(Space::global, Address(scratch, finished_counter),
            0);  // the next launch finds the counters as this one did
  if (!e.scans.empty()) b.st<U32>(Space::global, Address(scratch, tile_counter), 0);
  b.bind(done);
}

}  // namespace rndn::codegen
