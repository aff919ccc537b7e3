// group, gathers and reductions of groups as one operator (operators/api.h): no list of rows is built.
//
// few keys         ... are told from bounds, measured where none are known or these are wider than there are rows: tables in shared memory (few_groups.cpp), where the groups that occur fit into them
// few rows         the sort of one launch (small_sort.cpp), then a warp per group
// ascending key    no sort; one pass over the rows (segments.cpp)
// distinct values  rows sorted by the keys and the value, whatever the above
// everything else  rows sorted by the packed keys (radix_sort.cpp), or by what a hash table makes of them (hash_groups.cpp), then the same pass, which
//                  gathers the values through the rows
// Accumulators are shared: a sum and an average of one column, or a column that is given twice, are accumulated once. What is not yet in the type of
// its result (averages, narrow minima, cut sums) is finished by one more kernel over the groups.
#include <algorithm>

#include "libraries/base/errors/check.h"
#include "libraries/operators/groups/few_groups.h"
#include "libraries/operators/groups/hash_groups.h"
#include "libraries/operators/groups/runs.h"
#include "libraries/operators/groups/segments.h"
#include "libraries/operators/operators.h"
#include "libraries/operators/ready.h"
#include "libraries/operators/sort/small_sort.h"

namespace rndn::operators {

namespace {

constexpr uint32_t aggregate_block = 256;

// How a result comes from its accumulators.
struct Plan {
  uint32_t value = 0, count = 0;  // indices
  bool divide = false;
};

Held held_for(Reduce reduce, Type type) {
  switch (reduce) {
    case Reduce::distinct:
    case Reduce::len: return Held::s64;
    case Reduce::sum: return is_float(type) ? Held::f64 : Held::s64;
    case Reduce::avg:  // a sum wraps, an average must not
      return is_float(type) || type == Type::i64 ? Held::f64 : Held::s64;
    default: break;
  }
  switch (type) {
    case Type::f64: return Held::f64;
    case Type::f32: return Held::f32;
    case Type::i64: return Held::s64;
    default: return Held::s32;
  }
}

Type stored(Held held) {
  switch (held) {
    case Held::s32: return Type::i32;
    case Held::s64: return Type::i64;
    case Held::f32: return Type::f32;
    case Held::f64: break;
  }
  return Type::f64;
}

// to[k] = value[k], or value[k] / count[k], in another type.
uint32_t build_aggregate_finish(ptx::Module& module, std::string_view name, Held held, bool divide, Type type) {
  KernelBuilder b(module, name);
  Param p_n = b.parameter<U64>("n"), p_value = b.parameter<U64>("value"), p_count = b.parameter<U64>("count"),
        p_out = b.parameter<U64>("out");
  b.set_block_size(aggregate_block);
  const Thread t = thread_of(b);
  Reg<U32> n = b.cvt<U32>(b.ld_param(p_n));
  for_tiles(b, tiles_of(b, n, aggregate_block), [&](Reg<U32> tile) {
    const LabelId skip = b.label();
    Reg<U32> k = b.mad_lo(tile, aggregate_block, t.tid);
    b.when(b.setp(Is::ge, k, n)).bra(skip);
    with_held(held, [&]<class T>() {
      Reg<T> x = b.ld<T>(Space::global, element_at(b, b.ld_param(p_value), k, T::size));
      const At to = element_at(b, b.ld_param(p_out), k, width(type));
      if (divide) {
        Reg<F64> sum;
        if constexpr (std::same_as<T, F64>)
          sum = x;
        else
          sum = b.cvt<F64>(x);
        Reg<S64> count = b.ld<S64>(Space::global, element_at(b, b.ld_param(p_count), k, 8));
        Reg<F64> mean = b.div_rn(sum, b.cvt<F64>(count));
        if (type == Type::f32)
          b.st<F32>(Space::global, to, b.cvt<F32>(mean));
        else
          b.st<F64>(Space::global, to, mean);
      } else if constexpr (std::same_as<T, F64>) {  // a sum of f32
        b.st<F32>(Space::global, to, b.cvt<F32>(x));
      } else if constexpr (!ptx::FloatTag<T>) {  // cut
        Reg<U32> low;
        if constexpr (T::size == 8)
          low = b.cvt<U32>(x);
        else
          low = Builder::as<U32>(x);
        if (width(type) == 4)
          b.st<U32>(Space::global, to, low);
        else if (width(type) == 2)
          b.st<U16>(Space::global, to, b.cvt<U16>(low));
        else
          b.st<U8>(Space::global, to, b.cvt<U16>(low));
      }
    });
    b.bind(skip);
  });
  b.ret();
  b.finish();
  return aggregate_block;
}

Library::Row aggregate_finish_kernel(Held held, bool divide, Type type) {
  return {fmt::format("finish_{}_{}{}", static_cast<int>(held), type_name(type), divide ? "_divide" : ""),
          [held, divide, type](ptx::Module& m, std::string_view entry) {
            return build_aggregate_finish(m, entry, held, divide, type);
          }};
}

Vector exact(Type type, Address data, uint64_t n) { return {.type = type, .data = data, .capacity = n}; }

}  // namespace

// Averages, and sums of 32 bits.
void add_finishes(KernelRows& rows) {
  for (Held held : {Held::s64, Held::f64}) rows.push_back(aggregate_finish_kernel(held, true, Type::f64));
  rows.push_back(aggregate_finish_kernel(Held::s64, false, Type::i32));
}

bool can_aggregate(Reduce reduce, Type type, Type result) {
  const bool is_text = type == Type::u32, is_bool = type == Type::u8;
  switch (reduce) {
    case Reduce::distinct:
    case Reduce::len: return result == Type::i64;
    case Reduce::sum: return !is_text && (is_float(type) ? result == type : result == Type::i32 || result == Type::i64);
    case Reduce::avg: return !is_text && is_float(result);
    default: return !is_text && !is_bool && result == type;
  }
}

Result<Aggregates> aggregate(Library& library, std::span<const Vector> keys, std::span<const Aggregate> wanted,
                             Address sum_flags, Memory& memory) {
  if (keys.empty()) return input_error("`group` needs at least one column");
  // Accumulators.
  AggregateInput input{.sum_flags = sum_flags};
  std::vector<Plan> plans;
  const Vector* counted = nullptr;  // whose distinct values are counted
  const auto accumulator = [&](Accumulator a) {
    auto& all = input.shape.accumulators;
    const auto known = std::find(all.begin(), all.end(), a);
    const auto place = static_cast<uint32_t>(known - all.begin());
    if (known == all.end())
      do all.push_back(a);
      while (!a.completes() && ++a.part);
    return place;
  };
  for (const Aggregate& w : wanted) {
    CHECK(can_aggregate(w.reduce, w.values.type, w.result));
    Plan plan{.divide = w.reduce == Reduce::avg};
    const Accumulator count{Accumulator::count, Held::s64, 0};
    if (w.reduce == Reduce::len) {
      plan.value = accumulator(count);
    } else if (w.reduce == Reduce::distinct) {
      if (counted && counted->data != w.values.data)
        return Error{Fault::internal, "the distinct values of two columns are asked for at once"};
      counted = &w.values;
      plan.value = accumulator({Accumulator::distinct, Held::s64, 0});
    } else {
      uint32_t column = 0;
      while (column < input.columns.size() &&
             (input.columns[column] != w.values.data || input.shape.columns[column] != w.values.type))
        ++column;
      if (column == input.columns.size()) {
        input.columns.push_back(w.values.data);
        input.shape.columns.push_back(w.values.type);
      }
      const auto op = w.reduce == Reduce::min   ? Accumulator::min
                      : w.reduce == Reduce::max ? Accumulator::max
                                                : Accumulator::add;
      // A sum of f32 is made in f64, and rounded once.
      const auto round = w.reduce == Reduce::sum && w.result == Type::f32 ? sums::Round::odd : sums::Round::nearest;
      plan.value = accumulator({op, held_for(w.reduce, w.values.type), column, round});
      if (plan.divide) plan.count = accumulator(count);
    }
    plans.push_back(plan);
  }

  const uint32_t first_row = counted ? accumulator({Accumulator::row, Held::s64, 0}) : 0;

  Aggregates out;
  std::vector<Address> raw;
  Address first = 0;
  uint64_t groups = 0, n = 0;
  const auto allocate = [&](uint64_t most, Address rows = 0) -> Result<void> {
    first = rows;
    if (!first) {
      ASSIGN_OR_RETURN(first, memory.result(8 * std::max<uint64_t>(most, 1)));
    }
    raw.clear();
    for (const Accumulator& a : input.shape.accumulators) {
      Address at = 0;
      if (a.part == 0) {
        ASSIGN_OR_RETURN(at, memory.result(width(a.held) * std::max<uint64_t>(most, 1)));
      }
      raw.push_back(at);
    }
    return {};
  };

  Rows rows = rows_of(keys);
  RETURN_IF_ERROR(check_rows(rows));
  std::vector<Part> parts;
  for (const Vector& k : keys) parts.push_back(make_part(k, true));
  const Type key_type = keys[0].type;
  const bool ascending = !counted && keys.size() == 1 && keys[0].ascending &&
                         (key_type == Type::i32 || key_type == Type::u32 || key_type == Type::i64);
  const bool sorts_only = library.options.group == Options::Group::sort;
  const bool hash = library.options.group == Options::Group::hash && !library.options.ordered && !counted;
  const auto all_known = [&] {
    return std::all_of(parts.begin(), parts.end(), [](const Part& p) { return p.known(); });
  };
  bool done = rows.capacity == 0;
  // Learns the number of rows on the way; false: the groups are too many.
  const auto try_few = [&]() -> Result<bool> {
    if (sorts_only || ascending || counted || !all_known()) return false;
    const std::vector<Word> words = pack_words(parts);
    if (!may_be_few(words)) return false;
    ASSIGN_OR_RETURN(FewKeys few, number_keys(library, rows, words[0], memory));
    rows = {few.rows, 0};
    n = few.rows;
    if (n == 0) return true;
    if (!fits_few(library, input, words[0], few.groups)) return false;
    groups = few.groups;
    RETURN_IF_ERROR(allocate(groups));
    RETURN_IF_ERROR(reduce_few(library, input, words[0], few, first, raw, memory));
    return true;
  };
  if (!done) {
    ASSIGN_OR_RETURN(done, try_few());
  }
  if (!done && !hash && !counted && library.options.sort != Options::Sort::bitonic && parts.size() <= small_parts &&
      (rows.size_slot || rows.capacity <= small_rows)) {
    SmallCount few{std::min(rows.capacity, small_rows), std::min(rows.capacity, small_rows)};
    if (memory.counts_first(8 * (few.rows + 1))) {
      ASSIGN_OR_RETURN(few, count_small(library, rows, parts, memory));
      rows = {few.rows, 0};
      RETURN_IF_ERROR(check_rows(rows));
    }
    if (few.rows <= small_rows && few.rows > 0) {
      SmallResults small;
      ASSIGN_OR_RETURN(small.rows, memory.temporary(8 * few.rows));
      ASSIGN_OR_RETURN(small.first, memory.result(8 * few.groups));
      ASSIGN_OR_RETURN(small.offsets, memory.temporary(8 * (few.groups + 1)));
      ASSIGN_OR_RETURN(const Question question, library.ask("small_sort", 2, memory));
      small.question = &question;
      RETURN_IF_ERROR(sort_small(library, Small::groups, rows, parts, small));
      ASSIGN_OR_RETURN(const uint64_t* words, library.learn(question, memory));
      rows = {words[0], 0};
      RETURN_IF_ERROR(check_rows(rows));
      if (rows.capacity <= small_rows) {
        done = true;
        n = rows.capacity;
        groups = words[1];
        RETURN_IF_ERROR(allocate(groups, small.first));
        RETURN_IF_ERROR(reduce_cells(library, input, groups, small.offsets, small.rows, raw));
      }
    }
  }
  if (!done) {
    // Bounds wider than there are rows are often those of a type or a count: what keys there are is worth a pass.
    if (!ascending && !hash)
      for (Part& p : parts)
        if (p.known() && p.span() > rows.capacity) p.low = 1, p.high = 0;
    const bool unknown = !all_known();
    if (counted) parts.push_back(make_part(*counted, true));
    std::vector<Part> none;
    ASSIGN_OR_RETURN(n, find_bounds(library, rows, ascending || hash ? none : parts, memory));
    rows = {n, 0};
    done = n == 0;
    if (!done && unknown && !hash) {
      ASSIGN_OR_RETURN(done, try_few());
    }
  }
  if (!done) {
    const uint64_t words = segment_words(n);
    Sorted sorted;
    if (ascending) {
      sorted = {.keys = keys[0].data, .wide = width(key_type) == 8, .complete = true};
      ASSIGN_OR_RETURN(sorted.words, memory.temporary(8 * words));
      RETURN_IF_ERROR(library.device().fill(sorted.words, 0, 8 * words));
    } else if (hash) {
      ASSIGN_OR_RETURN(sorted, hash_rows(library, parts, n, words, memory));
    } else {
      ASSIGN_OR_RETURN(sorted, sort_rows(library, pack_words(parts), n, true, words, memory));
    }
    Address flags = 0;  // where groups begin; by all that was sorted by, a group may be several runs
    if (!sorted.complete || counted) {
      ASSIGN_OR_RETURN(flags, differing_rows(library, sorted, std::span(parts).first(keys.size()), n, memory));
    }
    uint64_t room = n;
    if (memory.counts_first(8 * n)) {
      ASSIGN_OR_RETURN(room, count_runs(library, sorted, flags, n, memory));
    }
    RETURN_IF_ERROR(allocate(room));
    ASSIGN_OR_RETURN(
        groups, reduce_runs(library, input, sorted, flags, n, first, raw, memory, counted ? &parts.back() : nullptr));
    if (counted) first = raw[first_row];
  }
  if (first == 0) RETURN_IF_ERROR(allocate(0));

  out.keys = exact(Type::i64, first, groups);
  if (groups) out.keys.min = 0, out.keys.max = static_cast<int64_t>(n) - 1;
  out.keys.ascending = ascending;
  for (size_t k = 0; k < wanted.size(); ++k) {
    const Plan& plan = plans[k];
    const Held held = input.shape.accumulators[plan.value].held;
    if (!plan.divide && stored(held) == wanted[k].result) {
      out.results.push_back(exact(wanted[k].result, raw[plan.value], groups));
      continue;
    }
    Vector v = exact(wanted[k].result, 0, groups);
    ASSIGN_OR_RETURN(v.data, memory.result(width(v.type) * std::max<uint64_t>(groups, 1)));
    out.results.push_back(v);
    if (groups == 0) continue;
    ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel(aggregate_finish_kernel(held, plan.divide, v.type)));
    Arguments a;
    a.add(groups).add(raw[plan.value]).add(raw[plan.count]).add(v.data);
    RETURN_IF_ERROR(library.launch(*kernel, library.grid(*kernel, tiles_for(groups, aggregate_block)), a,
                                   groups * (width(held) + width(v.type))));
  }
  return out;
}

}  // namespace rndn::operators
