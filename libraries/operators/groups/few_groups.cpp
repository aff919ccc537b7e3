// Aggregates over few groups: every thread has a table of its own in shared memory, so that nothing is shared, sorted or added atomically.
//
// keys    which of the possible keys occur: blocks mark them in shared memory, then in global memory; the last block numbers them in order.
// few     a row's key gives its group's number, and the thread's accumulators of that group take the row. A place of the table is [group][accumulator]
//         [thread]: neighbouring threads use neighbouring banks, and one address reaches all accumulators of a group. At the end a warp per group and
//         accumulator combines the block's threads.
// finish  a warp per group combines the blocks.
// Of a sum of floats the table has the high and the low part; what bounds its error is a register, for all groups of a thread together.
// Costs: keys are read twice, values once. The table of a thread has 8 or 4 bytes per group and accumulator; blocks get smaller when there are more
// groups, down to one warp.
#include "libraries/operators/groups/few_groups.h"

#include <algorithm>

#include "libraries/base/numbers/gpu_limits.h"
#include "libraries/operators/ready.h"

namespace rndn::operators {

using ptx::AtomicOp;
using ptx::Combine;
using ptx::LabelId;
using ptx::RegisterId;
using ptx::SpecialRegister;

namespace {

constexpr uint32_t keys_block = 256, keys_items = 8;
constexpr uint64_t present_at = 16384, few_ticket_at = present_at + 4 * most_few_keys;  // in Library::zeroed
constexpr uint32_t few_items = 4;
constexpr uint64_t shared_bytes = shared_everywhere - (2 << 10);  // of tables; the rest is for the block's figures

uint64_t few_range_of(const Word& word) {
  uint64_t range = 1;
  for (const Part& p : word.parts) range *= p.span() + 1;
  return range;
}

struct KeyCode {
  std::vector<PartCode> parts;
  std::vector<Param> shift, low, factor;
};
KeyCode declare_key(Builder& b, std::span<const Source> sources) {
  KeyCode key;
  for (size_t k = 0; k < sources.size(); ++k) {
    const std::string number = std::to_string(k);
    key.parts.push_back(declare_part(b, sources[k], static_cast<uint32_t>(k)));
    key.shift.push_back(b.parameter<U64>("shift" + number));
    key.low.push_back(b.parameter<U64>("low" + number));
    key.factor.push_back(b.parameter<U64>("factor" + number));
  }
  return key;
}
void add_key(Arguments& a, const Word& word) {
  for (size_t k = 0; k < word.parts.size(); ++k) {
    const Part& p = word.parts[k];
    add_part(a, p);
    a.add(p.shift).add(p.low >> p.shift).add(word.factors[k]);
  }
}
// Below most_few_keys.
Reg<U32> row_key(Builder& b, const KeyCode& key, Reg<U32> row) {
  Reg<U32> sum = b.constant<U32>(0u);
  for (size_t k = 0; k < key.parts.size(); ++k) {
    const Bits bits = load_bits(b, key.parts[k], row);
    Reg<U32> shift = b.cvt<U32>(b.ld_param(key.shift[k]));
    Reg<U32> value;
    if (bits.is_wide())
      value = b.cvt<U32>(b.sub(b.shr(bits.wide, shift), b.ld_param(key.low[k])));
    else
      value = b.sub(b.shr(bits.narrow, shift), b.cvt<U32>(b.ld_param(key.low[k])));
    sum = b.mad_lo(value, b.cvt<U32>(b.ld_param(key.factor[k])), sum);
  }
  return b.min(sum, uint32_t{most_few_keys - 1});
}

std::vector<Source> few_sources_of(const Word& word) {
  std::vector<Source> sources;
  for (const Part& p : word.parts) sources.push_back(p.source);
  return sources;
}

uint32_t build_keys(ptx::Module& module, std::string_view name, std::span<const Source> sources) {
  KernelBuilder b(module, name);
  Param p_n = b.parameter<U64>("n"), p_slot = b.parameter<U64>("slot"), p_range = b.parameter<U64>("range"),
        p_present = b.parameter<U64>("present"), p_ticket = b.parameter<U64>("ticket"),
        p_numbers = b.parameter<U64>("numbers");
  const Answer answer = answer_parameters(b, 2);
  const KeyCode key = declare_key(b, sources);
  b.set_block_size(keys_block);
  auto marks = b.shared<U32>(std::string(name) + "_marks", most_few_keys + 16, 16);
  constexpr int64_t sums_at = 4 * most_few_keys, taken_at = sums_at + 32;
  const Thread t = thread_of(b);
  Reg<U32> base = b.address_of_32(marks), own = b.mad_lo(t.tid, 4u, base);
  for (uint32_t k = 0; k < most_few_keys / keys_block; ++k)
    b.st<U32>(Space::shared, At(own, 4 * int64_t{keys_block} * k), 0u);
  b.bar_sync();
  Reg<U64> n = b.ld_param(p_n), slot = b.ld_param(p_slot);
  load_if<U64>(b, b.setp(Is::ne, slot, 0), Space::global, At(slot), n);
  b.min(n, b.ld_param(p_n), n);
  Reg<U64> last = b.sub(n, 1);
  Reg<U32> nctaid = b.special(SpecialRegister::nctaid_x);
  Reg<U64> tile = b.mul_wide(b.special(SpecialRegister::ctaid_x), keys_block * keys_items);
  Reg<U64> step = b.mul_wide(nctaid, keys_block * keys_items);
  const LabelId loop = b.label(), marked = b.label();
  b.bind(loop);
  b.when(b.setp(Is::ge, tile, n)).bra_uni(marked);
  Reg<U64> first = b.add(tile, b.cvt<U64>(t.tid));
  std::vector<Reg<U32>> keys;
  for (uint32_t i = 0; i < keys_items; ++i)  // rows behind the end are the last one once more
    keys.push_back(row_key(b, key, b.cvt<U32>(b.min(b.add(first, keys_block * i), last))));
  for (Reg<U32> k : keys) b.st<U32>(Space::shared, At(b.mad_lo(k, 4u, base)), 1u);
  b.add(tile, step, tile);
  b.bra(loop);
  b.bind(marked);
  b.bar_sync();
  Reg<U64> present = b.ld_param(p_present);
  for (uint32_t k = 0; k < most_few_keys / keys_block; ++k) {
    Reg<Pred> set = b.setp(Is::ne, b.ld<U32>(Space::shared, At(own, 4 * int64_t{keys_block} * k)), 0u);
    store_if<U32>(b, set, Space::global, At(element_address(b, present, t.tid, 4), 4 * int64_t{keys_block} * k), 1u,
                  volatile_access);
  }
  b.membar(ptx::Scope::gpu);
  b.bar_sync();
  Reg<Pred> thread0 = b.setp(Is::eq, t.tid, 0u);
  const LabelId arrived = b.label(), leave = b.label();
  b.unless(thread0).bra(arrived);
  b.membar(ptx::Scope::gpu);
  b.st<U32>(Space::shared, At(marks, taken_at),
            b.atom<U32>(AtomicOp::add, Space::global, At(b.ld_param(p_ticket)), 1u));
  b.bind(arrived);
  b.bar_sync();
  b.when(b.setp(Is::ne, b.ld<U32>(Space::shared, At(marks, taken_at)), b.sub(nctaid, 1u))).bra_uni(leave);
  b.membar(ptx::Scope::gpu);
  // The last block: every thread numbers some neighbouring keys.
  constexpr uint32_t each = most_few_keys / keys_block;
  Reg<U32> range = b.cvt<U32>(b.ld_param(p_range)), from = b.mul_lo(t.tid, each);
  std::vector<Reg<U32>> occurs;
  Reg<U32> mine = b.constant<U32>(0u);
  Reg<U64> at = element_address(b, present, from, 4);
  for (uint32_t k = 0; k < each; ++k) {
    occurs.push_back(b.ld<U32>(Space::global, volatile_access, At(at, 4 * k)));
    b.add(mine, occurs[k], mine);
    b.st<U32>(Space::global, volatile_access, At(at, 4 * k), 0u);
  }
  Reg<U32> up_to = warp_sum(b, t, mine);
  const BlockSum sum = block_sum(b, t, up_to, keys_block / 32, marks, sums_at);
  Reg<U32> number = b.add(sum.before, b.sub(up_to, mine));
  Reg<U64> to = element_address(b, b.ld_param(p_numbers), from, 4);
  for (uint32_t k = 0; k < each; ++k) {
    Reg<Pred> is_there = b.setp(Is::ne, occurs[k], 0u);
    store_if<U32>(b, b.setp(Is::lt, b.add(from, k), range), Space::global, At(to, 4 * k),
                  b.selp(number, 0xFFFFFFFFu, is_there));
    b.add(number, occurs[k], number);
  }
  tell(b, answer, 0, thread0, n);
  tell(b, answer, 1, thread0, b.cvt<U64>(sum.total));
  store_if<U32>(b, thread0, Space::global, At(b.ld_param(p_ticket)), 0u);
  b.bind(leave);
  b.ret();
  b.finish();
  return keys_block;
}

// Not in the table.
bool bounds_error(const Accumulator& a) { return a.sums_floats() && a.completes(); }

// Bytes of one group in a thread's table, before accumulator `k` and, with all of them, in all; the first row comes last.
uint32_t table_offset(const AggregateShape& shape, size_t k) {
  uint32_t bytes = 0;
  for (uint32_t size : {8u, 4u})  // wide ones first, so that all are aligned
    for (size_t i = 0; i < shape.accumulators.size(); ++i) {
      if (width(shape.accumulators[i].held) != size || bounds_error(shape.accumulators[i])) continue;
      if (i == k) return bytes;
      bytes += size;
    }
  return bytes;
}
uint32_t table_bytes(const AggregateShape& shape) { return table_offset(shape, shape.accumulators.size()) + 4; }
// Of a block: the tables, and behind them a bound per sum of floats and warp.
uint64_t tables_bytes(const AggregateShape& shape, uint64_t groups, uint64_t threads) {
  const auto sums = std::count_if(shape.accumulators.begin(), shape.accumulators.end(), bounds_error);
  return threads * groups * table_bytes(shape) + threads / 32 * 8 * static_cast<uint64_t>(sums);
}
uint64_t numbers_bytes(const Word& word) { return (few_range_of(word) * 4 + 15) / 16 * 16; }

constexpr uint32_t thread_counts[] = {128, 64, 32};

uint32_t threads_for(const AggregateShape& shape, const Word& word, uint64_t groups) {
  for (uint32_t threads : thread_counts)
    if (numbers_bytes(word) + tables_bytes(shape, groups, threads) <= shared_bytes) return threads;
  return 0;
}

// Calls body(k, group's first place, accumulator's bytes, T) for all accumulators and, as the last, the first row: a U32 minimum.
template <class Body>
void for_accumulators(const AggregateShape& shape, Body&& body) {
  for (size_t k = 0; k < shape.accumulators.size(); ++k)
    with_held(shape.accumulators[k].held, [&]<class T>() {
      body.template operator()<T>(k, shape.accumulators[k].op, identity_of<T>(shape.accumulators[k].op));
    });
  body.template operator()<U32>(shape.accumulators.size(), Accumulator::min, 0xFFFFFFFFu);
}

uint32_t build_few(ptx::Module& module, std::string_view name, std::span<const Source> sources,
                   const AggregateShape& shape, uint32_t threads) {
  KernelBuilder b(module, name);
  const size_t count = shape.accumulators.size();
  Param p_n = b.parameter<U64>("n"), p_range = b.parameter<U64>("range"), p_numbers = b.parameter<U64>("numbers"),
        p_groups = b.parameter<U64>("groups"), p_tables = b.parameter<U64>("tables");
  const KeyCode key = declare_key(b, sources);
  std::vector<Param> p_columns, p_partials;
  for (size_t c = 0; c < shape.columns.size(); ++c) p_columns.push_back(b.parameter<U64>("column" + std::to_string(c)));
  for (size_t k = 0; k <= count; ++k) p_partials.push_back(b.parameter<U64>("partials" + std::to_string(k)));
  SumFlags flags = sum_flags(b, shape);
  b.set_block_size(threads);
  auto shared = b.dynamic_shared<U64>(std::string(name) + "_tables", 16);
  const Thread t = thread_of(b);
  Reg<U32> base = b.address_of_32(shared), groups = b.cvt<U32>(b.ld_param(p_groups));
  Reg<U32> tables = b.add(base, b.cvt<U32>(b.ld_param(p_tables)));
  const uint32_t of_group = table_bytes(shape) * threads;
  // Where a thread's places of a group are: of 8 bytes, and of 4.
  struct Places {
    Reg<U32> wide, narrow;
  };
  const auto places_of = [&](Reg<U32> group, Reg<U32> thread) {
    Reg<U32> from = b.mad_lo(group, of_group, tables);
    return Places{b.mad_lo(thread, 8u, from), b.mad_lo(thread, 4u, from)};
  };
  // That of accumulator `k`, so many threads further.
  const auto place_of = [&](const Places& places, size_t k, uint32_t size, uint32_t further = 0) {
    const uint32_t offset = k < count ? table_offset(shape, k) : table_bytes(shape) - 4;
    return At(size == 8 ? places.wide : places.narrow, int64_t{offset} * threads + int64_t{further} * size);
  };
  {
    const LabelId loop = b.label(), done = b.label();
    Reg<U32> k = b.mov(t.tid), range = b.cvt<U32>(b.ld_param(p_range));
    Reg<U64> numbers = b.ld_param(p_numbers);
    b.bind(loop);
    b.when(b.setp(Is::ge, k, range)).bra(done);
    b.st<U32>(Space::shared, At(b.mad_lo(k, 4u, base)), b.ld<U32>(Space::global, element_at(b, numbers, k, 4)));
    b.add(k, threads, k);
    b.bra(loop);
    b.bind(done);
  }
  start_sums(b, shape, flags);
  std::vector<Reg<F64>> errors(count);  // of the thread, per sum of floats by its last part
  for_accumulators(shape, [&]<class T>(size_t k, Accumulator::Op, auto) {
    if (k < count && bounds_error(shape.accumulators[k])) errors[k] = b.constant<F64>(0.0);
  });
  {
    const LabelId loop = b.label(), done = b.label();
    Reg<U32> group = b.constant<U32>(0u);
    b.bind(loop);
    b.when(b.setp(Is::ge, group, groups)).bra_uni(done);
    const Places own = places_of(group, t.tid);
    for_accumulators(shape, [&]<class T>(size_t k, Accumulator::Op, auto identity) {
      if (k < count && bounds_error(shape.accumulators[k])) return;
      b.st<T>(Space::shared, place_of(own, k, T::size), b.constant<T>(identity));
    });
    b.add(group, 1u, group);
    b.bra_uni(loop);
    b.bind(done);
  }
  b.bar_sync();

  Reg<U64> n = b.ld_param(p_n), last = b.sub(n, 1);
  Reg<U64> tile = b.mul_wide(b.special(SpecialRegister::ctaid_x), threads * few_items);
  Reg<U64> step = b.mul_wide(b.special(SpecialRegister::nctaid_x), threads * few_items);
  std::vector<Reg<U64>> columns;
  for (Param p : p_columns) columns.push_back(b.ld_param(p));
  const LabelId next_tile = b.label(), summed = b.label();
  b.bind(next_tile);
  b.when(b.setp(Is::ge, tile, n)).bra_uni(summed);
  Reg<U64> first = b.add(tile, b.cvt<U64>(t.tid));
  std::vector<Reg<Pred>> inside;
  std::vector<Reg<U32>> rows, keys;
  std::vector<std::vector<Element>> elements(few_items);
  for (uint32_t i = 0; i < few_items; ++i) {
    Reg<U64> row = i ? b.add(first, threads * i) : first;
    inside.push_back(b.setp(Is::lt, row, n));
    rows.push_back(b.cvt<U32>(b.min(row, last)));
    keys.push_back(row_key(b, key, rows[i]));
  }
  for (uint32_t i = 0; i < few_items; ++i)
    for (size_t c = 0; c < shape.columns.size(); ++c)
      elements[i].push_back(
          load_element(b, shape.columns[c], element_at(b, columns[c], rows[i], width(shape.columns[c]))));
  for (uint32_t i = 0; i < few_items; ++i) {
    Reg<U32> group = b.ld<U32>(Space::shared, At(b.mad_lo(keys[i], 4u, base)));
    const Places own = places_of(group, t.tid);
    const LabelId skip = b.label();
    b.unless(inside[i]).bra(skip);
    for_accumulators(shape, [&]<class T>(size_t k, Accumulator::Op, auto) {
      if (k < count && shape.accumulators[k].sums_floats()) {
        if (!bounds_error(shape.accumulators[k])) return;
        const At high = place_of(own, k - 2, 8), low = place_of(own, k - 1, 8);
        const sums::ExactSum sum{b.ld<F64>(Space::shared, high), b.ld<F64>(Space::shared, low), errors[k]};
        add_to_sum(b, shape.accumulators[k], sum, elements[i], flags, {}, sums::Errors::of_many);
        b.st<F64>(Space::shared, high, sum.high);
        b.st<F64>(Space::shared, low, sum.low);
        return;
      }
      const At at = place_of(own, k, T::size);
      Reg<T> x = b.ld<T>(Space::shared, at);
      if constexpr (std::same_as<T, U32>)
        b.min(x, rows[i], x);
      else
        accumulate(b, shape.accumulators[k], x.id, elements[i], b.constant<Pred>(true));
      b.st<T>(Space::shared, at, x);
    });
    b.bind(skip);
  }
  b.add(tile, step, tile);
  b.bra(next_tile);
  b.bind(summed);
  report_sums(b, flags);
  std::vector<Reg<U32>> bounds(count);  // of the block's warps
  Reg<U32> next_bound;
  for (size_t k = 0; k < count; ++k) {
    if (!bounds_error(shape.accumulators[k])) continue;
    bounds[k] = next_bound.valid() ? next_bound : b.mad_lo(groups, of_group, tables);
    next_bound = b.add(bounds[k], 8 * (threads / 32));
    combine_warp(b, Accumulator::add, errors[k]);
    b.st<F64>(Space::shared, At(b.mad_lo(t.warp, 8u, bounds[k])), errors[k]);  // all lanes the same
  }
  b.bar_sync();

  // A warp per group: [accumulator][group][block]
  Reg<U32> ctaid = b.special(SpecialRegister::ctaid_x), nctaid = b.special(SpecialRegister::nctaid_x);
  Reg<Pred> lane0 = b.setp(Is::eq, t.lane, 0u);
  Reg<U32> group = b.mov(t.warp);
  const LabelId next_group = b.label(), done = b.label();
  b.bind(next_group);
  b.when(b.setp(Is::ge, group, groups)).bra_uni(done);
  Reg<U32> to = b.mad_lo(group, nctaid, ctaid);
  const Places own = places_of(group, t.lane);
  Registers sums(count), others(count);
  for_accumulators(shape, [&]<class T>(size_t k, Accumulator::Op op, auto) {
    if (k < count && shape.accumulators[k].sums_floats()) {
      if (!bounds_error(shape.accumulators[k])) return;
      for (uint32_t w = 0; w < threads / 32; ++w) {
        Registers& into = w ? others : sums;
        into[k - 2] = b.ld<F64>(Space::shared, place_of(own, k - 2, 8, 32 * w)).id;
        into[k - 1] = b.ld<F64>(Space::shared, place_of(own, k - 1, 8, 32 * w)).id;
        Reg<F64> bound = b.constant<F64>(0.0);  // one lane has the warp's
        load_if<F64>(b, lane0, Space::shared, At(bounds[k], 8 * int64_t{w}), bound);
        into[k] = bound.id;
        if (w) combine(b, shape, k, sums, others, sums);
      }
      combine_warp(b, shape, k, sums);
      for_parts(shape, k, [&]<class P>(size_t part) {
        store_if<P>(b, lane0, Space::global, element_at(b, b.ld_param(p_partials[part]), to, P::size),
                    Reg<P>{sums[part]});
      });
      return;
    }
    Reg<T> x = b.ld<T>(Space::shared, place_of(own, k, T::size));
    for (uint32_t w = 1; w < threads / 32; ++w)
      combine(b, op, x, b.ld<T>(Space::shared, place_of(own, k, T::size, 32 * w)), x);
    combine_warp(b, op, x);
    store_if<T>(b, lane0, Space::global, element_at(b, b.ld_param(p_partials[k]), to, T::size), x);
  });
  b.add(group, threads / 32, group);
  b.bra(next_group);
  b.bind(done);
  b.ret();
  b.finish();
  return threads;
}

constexpr uint32_t finish_block = 128;

uint32_t build_few_finish(ptx::Module& module, std::string_view name, const AggregateShape& shape) {
  KernelBuilder b(module, name);
  const size_t count = shape.accumulators.size();
  Param p_blocks = b.parameter<U64>("blocks"), p_groups = b.parameter<U64>("groups"),
        p_first = b.parameter<U64>("first");
  std::vector<Param> p_partials, p_out;
  for (size_t k = 0; k <= count; ++k) p_partials.push_back(b.parameter<U64>("partials" + std::to_string(k)));
  for (size_t k = 0; k < count; ++k) p_out.push_back(b.parameter<U64>("out" + std::to_string(k)));
  const SumFlags flags = sum_flags(b, shape);
  b.set_block_size(finish_block);
  const Thread t = thread_of(b);
  Reg<U32> group = b.mad_lo(b.special(SpecialRegister::ctaid_x), finish_block / 32, t.warp);
  Reg<U32> blocks = b.cvt<U32>(b.ld_param(p_blocks));
  Reg<Pred> lane0 = b.setp(Is::eq, t.lane, 0u);
  const LabelId done = b.label();
  b.when(b.setp(Is::ge, group, b.cvt<U32>(b.ld_param(p_groups)))).bra_uni(done);
  Reg<U32> first = b.mul_lo(group, blocks);
  Registers sums(count), others(count);
  for_accumulators(shape, [&]<class T>(size_t k, Accumulator::Op op, auto identity) {
    if (k < count && shape.accumulators[k].sums_floats()) {
      if (!bounds_error(shape.accumulators[k])) return;
      std::vector<Reg<U64>> partials;
      for_parts(shape, k, [&]<class P>(size_t part) {
        sums[part] = identity_register(b, shape.accumulators[part]);
        partials.push_back(b.ld_param(p_partials[part]));
      });
      Reg<U32> block = b.mov(t.lane);
      const LabelId loop = b.label(), summed = b.label();
      b.bind(loop);
      b.when(b.setp(Is::ge, block, blocks)).bra(summed);
      for_parts(shape, k, [&]<class P>(size_t part) {
        const At at = element_at(b, partials[part + 2 - k], b.add(first, block), P::size);
        others[part] = b.ld<P>(Space::global, at).id;
      });
      combine(b, shape, k, sums, others, sums);
      b.add(block, 32u, block);
      b.bra(loop);
      b.bind(summed);
      b.bar_warp_sync();
      combine_warp(b, shape, k, sums);
      with_result(b, shape, k, sums, flags, lane0, [&]<class R>(size_t at, Reg<R> x) {
        store_if<R>(b, lane0, Space::global, element_at(b, b.ld_param(p_out[at]), group, R::size), x);
      });
      return;
    }
    Reg<T> x = b.constant<T>(identity);
    Reg<U32> block = b.mov(t.lane);
    Reg<U64> partials = b.ld_param(p_partials[k]);
    const LabelId loop = b.label(), summed = b.label();
    b.bind(loop);
    b.when(b.setp(Is::ge, block, blocks)).bra(summed);
    combine(b, op, x, b.ld<T>(Space::global, element_at(b, partials, b.add(first, block), T::size)), x);
    b.add(block, 32u, block);
    b.bra(loop);
    b.bind(summed);
    b.bar_warp_sync();
    combine_warp(b, op, x);
    if constexpr (std::same_as<T, U32>)
      store_if<U64>(b, lane0, Space::global, element_at(b, b.ld_param(p_first), group, 8), b.cvt<U64>(x));
    else
      store_if<T>(b, lane0, Space::global, element_at(b, b.ld_param(p_out[k]), group, T::size), x);
  });
  b.bind(done);
  b.ret();
  b.finish();
  return finish_block;
}

uint64_t key_bytes(const Word& word) {
  uint64_t bytes = 0;
  for (const Part& p : word.parts)
    bytes += p.source == Source::u8 || p.source == Source::rank8 ? 1
             : p.source == Source::u16 || p.source == Source::rank16 ? 2
             : is_wide(p.source)                                 ? 8
                                                                 : 4;
  return bytes;
}

}  // namespace

bool may_be_few(std::span<const Word> words) {
  if (words.size() != 1) return false;
  const Word& word = words[0];
  uint64_t range = 1;
  for (const Part& p : word.parts) {
    if (p.span() >= most_few_keys) return false;
    range *= p.span() + 1;
    if (range > most_few_keys) return false;
  }
  return true;
}

namespace {

Library::Row keys_kernel(const std::vector<Source>& sources) {
  return {"few_keys_" + source_letters(sources),
          [sources](ptx::Module& m, std::string_view entry) { return build_keys(m, entry, sources); }};
}
Library::Row few_kernel(const std::vector<Source>& sources, const AggregateShape& shape, uint32_t threads) {
  return {fmt::format("few{}_{}{}", threads, source_letters(sources), shape.name()),
          [sources, shape, threads](ptx::Module& m, std::string_view entry) {
            return build_few(m, entry, sources, shape, threads);
          }};
}
Library::Row few_finish_kernel(const AggregateShape& shape) {
  return {"few_finish" + shape.name(),
          [shape](ptx::Module& m, std::string_view entry) { return build_few_finish(m, entry, shape); }};
}

}  // namespace

// Counts by one column of integers.
void add_few_groups(KernelRows& rows) {
  const AggregateShape count{{}, {{Accumulator::count, Held::s64, 0}}};
  for (Source source : {Source::u8, Source::u16, Source::u32}) {
    rows.push_back(keys_kernel({source}));
    for (uint32_t threads : thread_counts) rows.push_back(few_kernel({source}, count, threads));
  }
  rows.push_back(few_finish_kernel(count));
}

Result<FewKeys> number_keys(Library& library, const Rows& rows, const Word& word, Memory& memory) {
  FewKeys out;
  ASSIGN_OR_RETURN(out.numbers, memory.temporary(4 * few_range_of(word)));
  ASSIGN_OR_RETURN(const Question question, library.ask("few_groups", 2, memory));
  ASSIGN_OR_RETURN(Address zeroed, library.zeroed());
  const std::vector<Source> sources = few_sources_of(word);
  ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel(keys_kernel(sources)));
  Arguments a;
  a.add(rows.capacity).add(rows.size_slot).add(few_range_of(word)).add(zeroed + present_at).add(zeroed + few_ticket_at);
  a.add(out.numbers);
  add(a, question, 0, 2);
  add_key(a, word);
  const uint64_t tile = keys_block * keys_items;
  RETURN_IF_ERROR(library.launch(*kernel, library.grid(*kernel, (rows.capacity + tile - 1) / tile), a,
                                 rows.capacity * key_bytes(word)));
  ASSIGN_OR_RETURN(const uint64_t* words, library.learn(question, memory));
  out.rows = words[0];
  out.groups = words[1];
  return out;
}

bool fits_few(const Library&, const AggregateInput& input, const Word& word, uint64_t groups) {
  return threads_for(input.shape, word, groups) > 0;
}

Result<void> reduce_few(Library& library, const AggregateInput& input, const Word& word, const FewKeys& keys,
                        Address first, std::span<const Address> accumulators, Memory& memory) {
  const AggregateShape& shape = input.shape;
  const uint32_t threads = threads_for(shape, word, keys.groups);
  const std::vector<Source> sources = few_sources_of(word);
  ASSIGN_OR_RETURN(const Kernel* few, library.kernel(few_kernel(sources, shape, threads)));
  const uint64_t shared = numbers_bytes(word) + tables_bytes(shape, keys.groups, threads);
  ASSIGN_OR_RETURN(uint32_t blocks,
                   library.device().blocks_per_multiprocessor(few->handle, threads, static_cast<uint32_t>(shared)));
  const uint64_t resident = uint64_t{std::max(1u, blocks)} * library.device().info().multiprocessors;
  const uint64_t tile = uint64_t{threads} * few_items;
  const uint64_t grid = std::min(resident, (keys.rows + tile - 1) / tile);
  std::vector<Address> partials;
  for (size_t k = 0; k <= shape.accumulators.size(); ++k) {
    ASSIGN_OR_RETURN(Address at, memory.temporary(8 * keys.groups * grid));
    partials.push_back(at);
  }
  Arguments a;
  a.add(keys.rows).add(few_range_of(word)).add(keys.numbers).add(keys.groups).add(numbers_bytes(word));
  add_key(a, word);
  uint64_t bytes = key_bytes(word);
  for (Address column : input.columns) a.add(column);
  for (Type type : shape.columns) bytes += width(type);
  for (Address at : partials) a.add(at);
  if (shape.sums_floats()) a.add(input.sum_flags);
  RETURN_IF_ERROR(
      library.launch(*few, static_cast<uint32_t>(grid), a, keys.rows * bytes, static_cast<uint32_t>(shared)));
  ASSIGN_OR_RETURN(const Kernel* finish, library.kernel(few_finish_kernel(shape)));
  Arguments c;
  c.add(grid).add(keys.groups).add(first);
  for (Address at : partials) c.add(at);
  for (Address at : accumulators) c.add(at);
  if (shape.sums_floats()) c.add(input.sum_flags);
  const uint64_t per_block = finish_block / 32;
  return library.launch(*finish, static_cast<uint32_t>((keys.groups + per_block - 1) / per_block), c,
                        keys.groups * grid * table_bytes(shape));
}

}  // namespace rndn::operators
