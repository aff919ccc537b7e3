// Runs of equal rows in sorted order: where they start, how many there are.
//
// runs    one pass: a position starts a run when its key differs from the one before (one word: the sorted keys; several: flags). Ballots
//         count within a warp, shared memory within a block, look-back between tiles (emit.h); whoever starts run j writes its entries.
//         Bytes per row: the key (4 or 8; its neighbour is in the cache), and 8 + 8 + 8 per run.
// count   the same without results, which are made once their number is known.
// differ  several words: flags[p], does row rows[p] differ from rows[p - 1] in any part. Gathers.
// mark    unique: flags[rows[p]] = starts a run; a second pass over the flags, in row order, writes the numbers of the rows that have it.
// The number of runs reaches the host through mapped memory.
#include "libraries/operators/groups/runs.h"

#include "libraries/operators/emit.h"
#include "libraries/operators/ready.h"

namespace rndn::operators {

namespace {

// Tiles are large because the look-back takes some 16 ns per tile on an H200, however large it is.
constexpr uint32_t run_block = 256, run_warps = run_block / 32, run_items = 16, run_tile_size = run_block * run_items;
constexpr uint64_t run_ticket_at = 4096 + 256;  // in Library::zeroed

enum class RunFrom : uint8_t { keys32, keys64, flags };  // what tells the starts
enum class To : uint8_t { groups, ranks, positions, nothing };

// Does position p start a run? Positions that are not `inside` do not.
Reg<Pred> starts_run(Builder& b, RunFrom from, Reg<U64> data, Reg<U32> position, Reg<Pred> inside) {
  if (from == RunFrom::flags) {
    Reg<U16> flag = b.constant<U16>(0);
    load_if<U8>(b, inside, Space::global, At(element_address(b, data, position, 1)), flag);
    return b.setp(Is::ne, b.cvt<U32>(flag), 0u);
  }
  Reg<Pred> has_before = b.setp(Is::ne, ptx::Combine::and_, position, 0u, inside);
  Reg<Pred> differs;
  if (from == RunFrom::keys32) {
    Reg<U64> at = element_address(b, data, position, 4);
    Reg<U32> now = b.constant<U32>(0u), before = b.constant<U32>(0u);
    load_if<U32>(b, inside, Space::global, At(at), now);
    load_if<U32>(b, has_before, Space::global, At(at, -4), before);
    differs = b.setp(Is::ne, now, before);
  } else {
    Reg<U64> at = element_address(b, data, position, 8);
    Reg<U64> now = b.constant<U64>(0), before = b.constant<U64>(0);
    load_if<U64>(b, inside, Space::global, At(at), now);
    load_if<U64>(b, has_before, Space::global, At(at, -8), before);
    differs = b.setp(Is::ne, now, before);
  }
  // Position 0 starts the first run.
  return b.and_(inside, b.or_(differs, b.setp(Is::eq, position, 0u)));
}

uint32_t build_runs(ptx::Module& module, std::string_view name, RunFrom from, To to) {
  KernelBuilder b(module, name);
  Param p_n = b.parameter<U64>("n"), p_tiles = b.parameter<U64>("tiles"), p_data = b.parameter<U64>("data"),
        p_rows = b.parameter<U64>("rows"), p_first = b.parameter<U64>("first"), p_offsets = b.parameter<U64>("offsets"),
        p_words = b.parameter<U64>("words"), p_ticket = b.parameter<U64>("ticket");
  const Answer answer = answer_parameters(b, 1);
  b.set_block_size(run_block);
  auto shared = b.shared<U64>(std::string(name) + "_shared", 8, 16);
  const Thread t = thread_of(b);
  Reg<U32> tile = take_ticket(b, t, b.ld_param(p_ticket), b.cvt<U32>(b.ld_param(p_tiles)), At(shared));
  Reg<U64> n = b.ld_param(p_n), data = b.ld_param(p_data);
  Reg<U64> start = b.mul_wide(tile, run_tile_size);
  Reg<U32> left = b.cvt<U32>(b.min(b.sub(n, start), uint64_t{run_tile_size}));
  Reg<U32> within = b.mad_lo(t.warp, 32 * run_items, t.lane);
  Reg<U32> first = b.add(b.cvt<U32>(start), within);
  std::vector<Reg<U32>> votes(run_items);
  Reg<U32> total;
  for (uint32_t i = 0; i < run_items; ++i) {
    Reg<Pred> inside = b.setp(Is::lt, b.add(within, 32 * i), left);
    votes[i] = b.ballot(starts_run(b, from, data, b.add(first, 32 * i), inside));
  }
  for (uint32_t i = 0; i < run_items; ++i) {
    Reg<U32> count = b.popc(votes[i]);
    total = i ? b.add(total, count) : count;
  }
  const BlockSum sum = block_sum(b, t, total, run_warps, shared, 16);
  Reg<U64> before = look_back(b, t, tile, sum.total, b.ld_param(p_words), At(shared, 8));
  Reg<U32> run = b.add(b.cvt<U32>(before), sum.before);  // of the warp's first start
  Reg<U32> own_lane = b.shl(b.constant<U32>(1u), t.lane), lanes_before = b.sub(own_lane, 1u);
  Reg<U64> out_first = b.ld_param(p_first), out_offsets = b.ld_param(p_offsets), rows = b.ld_param(p_rows);
  for (uint32_t i = 0; i < run_items; ++i) {
    Reg<U32> position = b.add(first, 32 * i);
    Reg<U32> own = b.add(run, b.popc(b.and_(votes[i], lanes_before)));
    Reg<Pred> starts = b.setp(Is::ne, b.and_(votes[i], own_lane), 0u);
    const auto row_of = [&](Reg<Pred> when) {
      Reg<U64> row = b.constant<U64>(0);
      load_if<U64>(b, when, Space::global, At(element_address(b, rows, position, 8)), row);
      return row;
    };
    switch (to) {
      case To::nothing: break;
      case To::groups: {
        Reg<U64> row = row_of(starts);
        store_if<U64>(b, starts, Space::global, At(element_address(b, out_first, own, 8)), row);
        store_if<U64>(b, starts, Space::global, At(element_address(b, out_offsets, own, 8)), b.cvt<U64>(position));
        break;
      }
      case To::positions:
        store_if<U64>(b, starts, Space::global, At(element_address(b, out_first, own, 8)), b.cvt<U64>(position));
        break;
      case To::ranks: {
        Reg<Pred> inside = b.setp(Is::lt, b.add(within, 32 * i), left);
        Reg<U64> row = row_of(inside);
        // The number of starts up to and including this position, less one.
        Reg<U32> rank = b.sub(b.add(own, b.select<U32>(1u, 0u, starts)), 1u);
        store_if<U32>(b, inside, Space::global, At(element_address(b, out_first, b.cvt<U32>(row), 4)), rank);
        Reg<Pred> wanted = b.setp(Is::ne, ptx::Combine::and_, out_offsets, 0, starts);
        store_if<U64>(b, wanted, Space::global, At(element_address(b, out_offsets, own, 8)), row);
        break;
      }
    }
    if (i + 1 < run_items) b.add(run, b.popc(votes[i]), run);
  }
  // The last tile knows how many there are.
  Reg<Pred> is_last = b.setp(Is::eq, b.add(tile, 1u), b.cvt<U32>(b.ld_param(p_tiles)));
  Reg<Pred> thread0 = b.setp(Is::eq, ptx::Combine::and_, t.tid, 0u, is_last);
  Reg<U64> all = b.add(before, b.cvt<U64>(sum.total));
  tell(b, answer, 0, thread0, all);
  if (to == To::groups)
    store_if<U64>(b, thread0, Space::global, At(element_address(b, out_offsets, b.cvt<U32>(all), 8)), n);
  b.ret();
  b.finish();
  return run_block;
}

// flags[p] = does row rows[p] differ from the row before it; flags[rows[p]] instead when `mark`. `more`: keeps flags that are set.
uint32_t build_flags(ptx::Module& module, std::string_view name, std::span<const Source> sources, RunFrom from, bool mark,
                     bool more) {
  KernelBuilder b(module, name);
  Param p_n = b.parameter<U64>("n"), p_rows = b.parameter<U64>("rows"), p_data = b.parameter<U64>("data"),
        p_flags = b.parameter<U64>("flags");
  std::vector<PartCode> parts;
  for (size_t k = 0; k < sources.size(); ++k) parts.push_back(declare_part(b, sources[k], static_cast<uint32_t>(k)));
  b.set_block_size(run_block);
  const Thread t = thread_of(b);
  Reg<U32> ctaid = b.special(ptx::SpecialRegister::ctaid_x), nctaid = b.special(ptx::SpecialRegister::nctaid_x);
  Reg<U64> n = b.ld_param(p_n), rows = b.ld_param(p_rows), data = b.ld_param(p_data), flags = b.ld_param(p_flags);
  Reg<U64> last = b.sub(n, 1);
  Reg<U64> start = b.mul_wide(ctaid, run_block), step = b.mul_wide(nctaid, run_block);
  const ptx::LabelId loop = b.label(), done = b.label();
  b.bind(loop);
  b.when(b.setp(Is::ge, start, n)).bra_uni(done);
  Reg<U64> at = b.add(start, b.cvt<U64>(t.tid));
  Reg<Pred> inside = b.setp(Is::lt, at, n);
  Reg<U32> position = b.cvt<U32>(b.min(at, last));
  Reg<U64> row_at = element_address(b, rows, position, 8);
  Reg<U32> row;
  if (mark || !parts.empty()) row = b.cvt<U32>(b.ld<U64>(Space::global, At(row_at)));
  Reg<Pred> starts;
  if (parts.empty()) {
    starts = starts_run(b, from, data, position, inside);
  } else {
    Reg<Pred> first = b.setp(Is::eq, position, 0u);
    Reg<U32> before = b.mov(row);
    b.unless(first).ld<U32>(Space::global, At(row_at, -8), before);  // the low half
    starts = first;
    for (const PartCode& p : parts) {
      const Bits x = load_bits(b, p, row), y = load_bits(b, p, before);
      starts = b.or_(starts, x.is_wide() ? b.setp(Is::ne, x.wide, y.wide) : b.setp(Is::ne, x.narrow, y.narrow));
    }
  }
  Reg<U64> flag_at = element_address(b, flags, mark ? row : position, 1);
  Reg<U32> flag = b.select<U32>(1u, 0u, starts);
  store_if<U8>(b, more ? b.and_(inside, starts) : inside, Space::global, At(flag_at), b.cvt<U16>(flag));
  b.add(start, step, start);
  b.bra(loop);
  b.bind(done);
  b.ret();
  b.finish();
  return run_block;
}

Library::Row flags_kernel(const std::vector<Source>& sources, RunFrom from, bool mark, bool more) {
  return {fmt::format("flags_{}_{}{}{}", static_cast<int>(from), source_letters(sources), mark ? "_mark" : "",
                      more ? "_more" : ""),
          [sources, from, mark, more](ptx::Module& m, std::string_view entry) {
            return build_flags(m, entry, sources, from, mark, more);
          }};
}

Result<void> launch_flags(Library& library, std::span<const Part> parts, RunFrom from, bool mark, bool more,
                          const Sorted& sorted, Address data, Address flags, uint64_t n) {
  std::vector<Source> sources;
  for (const Part& p : parts) sources.push_back(p.source);
  ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel(flags_kernel(sources, from, mark, more)));
  Arguments a;
  a.add(n).add(sorted.rows).add(data).add(flags);
  for (const Part& p : parts) add_part(a, p);
  return library.launch(*kernel, library.grid(*kernel, (n + run_block - 1) / run_block), a, n);
}

Library::Row runs_kernel(RunFrom from, To to) {
  return {fmt::format("runs_{}_{}", static_cast<int>(from), static_cast<int>(to)),
          [from, to](ptx::Module& m, std::string_view entry) { return build_runs(m, entry, from, to); }};
}

Result<void> launch_runs(Library& library, RunFrom from, To to, const Sorted& sorted, Address data, Address words,
                         uint64_t n, Address first, Address offsets, const Question& question) {
  ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel(runs_kernel(from, to)));
  ASSIGN_OR_RETURN(Address zeroed, library.zeroed());
  const uint64_t tiles = run_words(n), bytes = from == RunFrom::flags ? 1 : from == RunFrom::keys64 ? 8 : 4;
  Arguments a;
  a.add(n).add(tiles).add(data).add(sorted.rows).add(first).add(offsets).add(words).add(zeroed + run_ticket_at);
  add(a, question, 0, 1);
  return library.launch(*kernel, static_cast<uint32_t>(tiles), a, n * bytes);
}

constexpr size_t parts_at_once = 16;

// Flags of all parts, a few at a time. Marked by row when `mark`.
Result<void> differ(Library& library, std::span<const Part> parts, bool mark, const Sorted& sorted, Address flags,
                    uint64_t n) {
  for (size_t k = 0; k < parts.size(); k += parts_at_once) {
    const auto some = parts.subspan(k, std::min(parts_at_once, parts.size() - k));
    RETURN_IF_ERROR(launch_flags(library, some, RunFrom::flags, mark, k > 0, sorted, 0, flags, n));
  }
  return {};
}

RunFrom from_keys(const Sorted& sorted) { return sorted.wide ? RunFrom::keys64 : RunFrom::keys32; }

}  // namespace

uint64_t run_words(uint64_t n) { return (n + run_tile_size - 1) / run_tile_size; }

namespace {
// Launches, waits, and says how many.
Result<uint64_t> make_runs(Library& library, RunFrom from, To to, const Sorted& sorted, Address data, Address words,
                           uint64_t n, Address first, Address offsets, Memory& memory) {
  ASSIGN_OR_RETURN(const Question question, library.ask("runs", 1, memory));
  RETURN_IF_ERROR(launch_runs(library, from, to, sorted, data, words, n, first, offsets, question));
  ASSIGN_OR_RETURN(const uint64_t* runs, library.learn(question, memory));
  return *runs;
}

// How many elements the results get: n, or what a pass of its own counts, which leaves the words zero.
Result<uint64_t> room_for_runs(Library& library, RunFrom from, const Sorted& sorted, Address data, Address words,
                               uint64_t n, Memory& memory) {
  if (!memory.counts_first(8 * (n + 1))) return n;
  ASSIGN_OR_RETURN(const uint64_t count, make_runs(library, from, To::nothing, sorted, data, words, n, 0, 0, memory));
  RETURN_IF_ERROR(library.device().fill(words, 0, 8 * run_words(n)));
  return count;
}
}  // namespace

void add_runs(KernelRows& rows) {
  for (RunFrom from : {RunFrom::keys32, RunFrom::keys64, RunFrom::flags})
    for (To to : {To::groups, To::ranks, To::positions}) rows.push_back(runs_kernel(from, to));
  for (RunFrom from : {RunFrom::keys32, RunFrom::keys64})
    for (bool mark : {false, true}) rows.push_back(flags_kernel({}, from, mark, false));
}

Result<Runs> find_runs(Library& library, const Sorted& sorted, std::span<const Part> parts, uint64_t n,
                       Memory& memory) {
  RunFrom from = from_keys(sorted);
  Address data = sorted.keys;
  if (!sorted.complete) {
    ASSIGN_OR_RETURN(data, differing_rows(library, sorted, parts, n, memory));
    from = RunFrom::flags;
  }
  ASSIGN_OR_RETURN(const uint64_t room, room_for_runs(library, from, sorted, data, sorted.words, n, memory));
  Runs out;
  ASSIGN_OR_RETURN(out.offsets, memory.result(8 * (room + 1)));
  ASSIGN_OR_RETURN(out.first, memory.result(8 * room));
  ASSIGN_OR_RETURN(out.count,
                   make_runs(library, from, To::groups, sorted, data, sorted.words, n, out.first, out.offsets, memory));
  return out;
}

Result<uint64_t> count_runs(Library& library, const Sorted& sorted, Address flags, uint64_t n, Memory& memory) {
  const RunFrom from = flags ? RunFrom::flags : from_keys(sorted);
  const Address data = flags ? flags : sorted.keys;
  ASSIGN_OR_RETURN(const Address words, memory.temporary(8 * run_words(n)));
  RETURN_IF_ERROR(library.device().fill(words, 0, 8 * run_words(n)));
  return make_runs(library, from, To::nothing, sorted, data, words, n, 0, 0, memory);
}

Result<uint64_t> number_runs(Library& library, Address rows, Address flags, Address words, uint64_t n, Address numbers,
                             Memory& memory) {
  return make_runs(library, RunFrom::flags, To::ranks, {.rows = rows}, flags, words, n, numbers, 0, memory);
}

Result<Places> first_of_runs(Library& library, Address rows, Address flags, Address words, uint64_t n, Address numbers,
                             Memory& memory) {
  const Sorted sorted{.rows = rows};
  ASSIGN_OR_RETURN(const uint64_t room, room_for_runs(library, RunFrom::flags, sorted, flags, words, n, memory));
  Places out;
  ASSIGN_OR_RETURN(out.data, memory.result(8 * room));
  ASSIGN_OR_RETURN(out.count,
                   make_runs(library, RunFrom::flags, To::ranks, sorted, flags, words, n, numbers, out.data, memory));
  return out;
}

Result<Places> flagged_places(Library& library, Address flags, Address words, uint64_t n, Memory& memory) {
  ASSIGN_OR_RETURN(const uint64_t room, room_for_runs(library, RunFrom::flags, {}, flags, words, n, memory));
  Places out;
  ASSIGN_OR_RETURN(out.data, memory.result(8 * std::max<uint64_t>(room, 1)));
  ASSIGN_OR_RETURN(out.count,
                   make_runs(library, RunFrom::flags, To::positions, {}, flags, words, n, out.data, 0, memory));
  return out;
}

Result<Address> differing_rows(Library& library, const Sorted& sorted, std::span<const Part> parts, uint64_t n,
                               Memory& memory) {
  ASSIGN_OR_RETURN(Address flags, memory.temporary(n));
  RETURN_IF_ERROR(differ(library, parts, false, sorted, flags, n));
  return flags;
}

Result<Address> differing_keys(Library& library, const Sorted& sorted, std::span<const Part> parts, uint64_t n,
                               Memory& memory) {
  if (!sorted.complete) return differing_rows(library, sorted, parts, n, memory);
  ASSIGN_OR_RETURN(Address flags, memory.temporary(n));
  RETURN_IF_ERROR(launch_flags(library, {}, from_keys(sorted), false, false, sorted, sorted.keys, flags, n));
  return flags;
}

Result<Places> first_rows(Library& library, const Sorted& sorted, std::span<const Part> parts, uint64_t n,
                          Memory& memory) {
  ASSIGN_OR_RETURN(Address flags, memory.temporary(n));
  if (sorted.complete) {
    RETURN_IF_ERROR(launch_flags(library, {}, from_keys(sorted), true, false, sorted, sorted.keys, flags, n));
  } else {
    RETURN_IF_ERROR(differ(library, parts, true, sorted, flags, n));
  }
  return flagged_places(library, flags, sorted.words, n, memory);
}

}  // namespace rndn::operators
