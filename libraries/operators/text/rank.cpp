// rank: the place of every string among the distinct ones in byte order, and where each of these is
// first (api.h).
//
// Strings sort by words of eight bytes, big-endian and padded with zeros, and then by length. The
// first word that is not equal in all strings is sorted first; the next one sorts only the strings
// that it leaves undecided, within their runs, and so on (a radix sort from the most significant
// word on, each word by radix_sort.cpp). Equal strings are no reason to look at further words:
//
// ties   compares neighbours of a run byte by byte from the words that are sorted. A run with two
//        different neighbours is open; the lowest word in which any two differ is sorted next, so
//        that a common prefix of any length costs one look.
// mark   flags the places of open runs; scans of runs.cpp number runs and list the flagged places.
// next   gathers handles, rows, places and run numbers of the open runs' strings.
// place  writes the sorted rows back to the places that their runs have.
//
// Cost: the sort of one word of all strings (8 sweeps at most), one more per word that decides, of
// those left; two gathers of the equal neighbours' bytes; three waits per round. Memory of a round
// serves the next. Leaves out: hashing, which would spare sorts where most strings are equal.
#include "libraries/operators/fragments.h"
#include "libraries/operators/groups/runs.h"
#include "libraries/operators/operators.h"
#include "libraries/operators/ready.h"

namespace rndn::operators {

namespace {

// For the rounds of one operator: what a round took, results too, the next one takes again after reset(). Larger requests come first.
class Reused final : public Memory {
 public:
  explicit Reused(Memory& from) : from_(from) {}
  void reset() {
    for (Piece& p : pieces_) p.is_used = false;
  }
  Result<Address> temporary(uint64_t bytes) override {
    Piece* best = nullptr;
    for (Piece& p : pieces_)
      if (!p.is_used && p.bytes >= bytes && (!best || p.bytes < best->bytes)) best = &p;
    if (!best) {
      ASSIGN_OR_RETURN(const Address address, from_.temporary(bytes));
      best = &pieces_.emplace_back(Piece{address, bytes, false});
    }
    best->is_used = true;
    return best->address;
  }
  Result<Address> result(uint64_t bytes) override { return temporary(bytes); }
  Result<device::Mapped> mapped(uint64_t bytes) override { return from_.mapped(bytes); }
  Result<void> waited() override { return from_.waited(); }
  uint64_t most_unknown() const override { return from_.most_unknown(); }

 private:
  struct Piece {
    Address address = 0;
    uint64_t bytes = 0;
    bool is_used = false;
  };
  Memory& from_;
  std::vector<Piece> pieces_;
};

// What a round sorts. Without rows, places and runs: all strings, as they lie, in one run.
struct RankRound {
  uint64_t size = 0;
  Address handles = 0;           // u64
  Address rows = 0, places = 0;  // u32: the strings' numbers, and their places in the order, ascending
  Address runs = 0;              // u32: the numbers of their runs
  uint64_t run_count = 0;
};

Reg<U32> load_row(Builder& b, Reg<U64> rows, Reg<U32> place) {  // the low half of an i64
  return b.ld<U32>(Space::global, At(element_at(b, rows, place, 8)));
}

// open[run] = 1 where neighbours differ, and *lowest the first word of all in which some do.
// `all`: the strings as they lie are one run, and nothing is marked.
uint32_t build_ties(ptx::Module& module, std::string_view name, bool all) {
  KernelBuilder b(module, name);
  b.set_block_size(block_threads);
  const Parameter count = b.parameter<U64>("count"), handles_at = b.parameter<U64>("handles");
  const Parameter pad_at = b.parameter<U64>("pad"), from_at = b.parameter<U64>("from");
  const Parameter words_at = b.parameter<U64>("words"), lowest_at = b.parameter<U64>("lowest");
  const Parameter rows_at = b.parameter<U64>("rows"), starts_at = b.parameter<U64>("starts");
  const Parameter runs_at = b.parameter<U64>("runs"), open_at = b.parameter<U64>("open");
  const Thread t = thread_of(b);
  Reg<U32> n = b.cvt<U32>(b.ld_param(count)), from = b.cvt<U32>(b.ld_param(from_at));
  Reg<U32> words = b.cvt<U32>(b.ld_param(words_at));
  Reg<U64> handles = b.ld_param(handles_at), pad = b.ld_param(pad_at);
  Reg<U64> lowest = b.ld_param(lowest_at), rows = b.ld_param(rows_at);
  Reg<U64> starts = b.ld_param(starts_at), runs = b.ld_param(runs_at), open = b.ld_param(open_at);
  for_rows(b, t, n, [&](Reg<U32> place, LabelId next_row) {
    b.when(b.setp(Is::eq, place, 0u)).bra(next_row);
    Reg<U32> row = place, before = b.sub(place, 1u);
    if (!all) {
      Reg<U16> start = b.ld<U8>(Space::global, At(element_at(b, starts, place, 1)));
      b.when(b.setp(Is::ne, b.cvt<U32>(start), 0u)).bra(next_row);
      row = load_row(b, rows, place);
      before = load_row(b, rows, before);
    }
    const auto text_of = [&](Reg<U32> of) {
      Reg<U64> handle = b.ld<U64>(Space::global, At(element_at(b, handles, of, 8)));
      return std::pair(b.add(pad, b.shr(handle, 24u)), b.and_(b.cvt<U32>(handle), 0xFFFFFFu));
    };
    const auto [text, length] = text_of(row);
    const auto [other, other_length] = text_of(before);
    Reg<U32> longer = b.max(length, other_length), word = b.mov(from);
    const LabelId next_word = b.label(), bytes_equal = b.label(), differs = b.label();
    b.bind(next_word);
    Reg<U32> first = b.shl(word, 3u);
    b.when(b.setp(Is::ge, first, longer)).bra(bytes_equal);
    Reg<U64> offset = b.cvt<U64>(first);
    Reg<U64> x = load_text_word(b, b.add(text, offset), first, length);
    Reg<U64> y = load_text_word(b, b.add(other, offset), first, other_length);
    b.when(b.setp(Is::ne, x, y)).bra(differs);
    b.add(word, 1u, word);
    b.bra(next_word);
    b.bind(bytes_equal);
    b.when(b.setp(Is::eq, length, other_length)).bra(next_row);
    b.mov(words, word);
    b.bind(differs);
    if (!all) {
      Reg<U32> run = b.ld<U32>(Space::global, At(element_at(b, runs, row, 4)));
      b.st<U8>(Space::global, At(element_at(b, open, run, 1)), b.constant<U16>(1));
    }
    Reg<U32> known = b.ld<U32>(Space::global, volatile_access, At(lowest));
    b.when(b.setp(Is::le, known, word)).bra(next_row);
    b.atom<U32>(ptx::AtomicOp::min, Space::global, At(lowest), word);
  });
  b.ret();
  b.finish();
  return block_threads;
}

// marks[place] = is its run open.
uint32_t build_mark(ptx::Module& module, std::string_view name) {
  KernelBuilder b(module, name);
  b.set_block_size(block_threads);
  const Parameter count = b.parameter<U64>("count"), rows_at = b.parameter<U64>("rows");
  const Parameter runs_at = b.parameter<U64>("runs"), open_at = b.parameter<U64>("open");
  const Parameter marks_at = b.parameter<U64>("marks");
  const Thread t = thread_of(b);
  Reg<U32> n = b.cvt<U32>(b.ld_param(count));
  Reg<U64> rows = b.ld_param(rows_at), runs = b.ld_param(runs_at), open = b.ld_param(open_at);
  Reg<U64> marks = b.ld_param(marks_at);
  for_rows(b, t, n, [&](Reg<U32> place, LabelId) {
    Reg<U32> row = load_row(b, rows, place);
    Reg<U32> run = b.ld<U32>(Space::global, At(element_at(b, runs, row, 4)));
    Reg<U16> is_open = b.ld<U8>(Space::global, At(element_at(b, open, run, 1)));
    b.st<U8>(Space::global, At(element_at(b, marks, place, 1)), is_open);
  });
  b.ret();
  b.finish();
  return block_threads;
}

// The arrays of the next round, of the listed places of this one. `all`: this one has no rows and
// places of its own.
uint32_t build_next(ptx::Module& module, std::string_view name, bool all) {
  KernelBuilder b(module, name);
  b.set_block_size(block_threads);
  const Parameter count = b.parameter<U64>("count"), list_at = b.parameter<U64>("list");
  const Parameter sorted_at = b.parameter<U64>("sorted"), handles_at = b.parameter<U64>("handles");
  const Parameter runs_at = b.parameter<U64>("runs"), rows_at = b.parameter<U64>("rows");
  const Parameter places_at = b.parameter<U64>("places"), to_at = b.parameter<U64>("to_handles");
  const Parameter to_runs_at = b.parameter<U64>("to_runs"), to_rows_at = b.parameter<U64>("to_rows");
  const Parameter to_places_at = b.parameter<U64>("to_places");
  const Thread t = thread_of(b);
  Reg<U32> n = b.cvt<U32>(b.ld_param(count));
  Reg<U64> list = b.ld_param(list_at), sorted = b.ld_param(sorted_at);
  Reg<U64> handles = b.ld_param(handles_at), runs = b.ld_param(runs_at);
  Reg<U64> rows = b.ld_param(rows_at), places = b.ld_param(places_at), to = b.ld_param(to_at);
  Reg<U64> to_runs = b.ld_param(to_runs_at), to_rows = b.ld_param(to_rows_at);
  Reg<U64> to_places = b.ld_param(to_places_at);
  for_rows(b, t, n, [&](Reg<U32> at, LabelId) {
    Reg<U32> place = load_row(b, list, at);
    Reg<U32> row = load_row(b, sorted, place);
    Reg<U64> handle = b.ld<U64>(Space::global, At(element_at(b, handles, row, 8)));
    Reg<U32> run = b.ld<U32>(Space::global, At(element_at(b, runs, row, 4)));
    if (!all) {
      place = b.ld<U32>(Space::global, At(element_at(b, places, place, 4)));
      row = b.ld<U32>(Space::global, At(element_at(b, rows, row, 4)));
    }
    b.st<U64>(Space::global, At(element_at(b, to, at, 8)), handle);
    b.st<U32>(Space::global, At(element_at(b, to_runs, at, 4)), run);
    b.st<U32>(Space::global, At(element_at(b, to_rows, at, 4)), row);
    b.st<U32>(Space::global, At(element_at(b, to_places, at, 4)), place);
  });
  b.ret();
  b.finish();
  return block_threads;
}

// order[places[k]] = rows[sorted[k]], and starts[places[k]] = differs[k].
uint32_t build_place(ptx::Module& module, std::string_view name) {
  KernelBuilder b(module, name);
  b.set_block_size(block_threads);
  const Parameter count = b.parameter<U64>("count"), sorted_at = b.parameter<U64>("sorted");
  const Parameter differs_at = b.parameter<U64>("differs"), rows_at = b.parameter<U64>("rows");
  const Parameter places_at = b.parameter<U64>("places"), order_at = b.parameter<U64>("order");
  const Parameter starts_at = b.parameter<U64>("starts");
  const Thread t = thread_of(b);
  Reg<U32> n = b.cvt<U32>(b.ld_param(count));
  Reg<U64> sorted = b.ld_param(sorted_at), differs = b.ld_param(differs_at);
  Reg<U64> rows = b.ld_param(rows_at), places = b.ld_param(places_at);
  Reg<U64> order = b.ld_param(order_at), starts = b.ld_param(starts_at);
  for_rows(b, t, n, [&](Reg<U32> at, LabelId) {
    Reg<U32> place = b.ld<U32>(Space::global, At(element_at(b, places, at, 4)));
    Reg<U32> index = load_row(b, sorted, at);
    Reg<U32> row = b.ld<U32>(Space::global, At(element_at(b, rows, index, 4)));
    Reg<U16> start = b.ld<U8>(Space::global, At(element_at(b, differs, at, 1)));
    b.st<U64>(Space::global, At(element_at(b, order, place, 8)), b.cvt<U64>(row));
    b.st<U8>(Space::global, At(element_at(b, starts, place, 1)), start);
  });
  b.ret();
  b.finish();
  return block_threads;
}

// all: no round has left any out.
Library::Row ties_kernel(bool all) {
  return {all ? "text_ties_all" : "text_ties",
          [all](ptx::Module& m, std::string_view name) { return build_ties(m, name, all); }};
}
Library::Row next_kernel(bool all) {
  return {all ? "text_next_all" : "text_next",
          [all](ptx::Module& m, std::string_view name) { return build_next(m, name, all); }};
}

Result<void> rank_launch(Library& library, const Library::Row& row, uint64_t rows, const Arguments& a,
                    uint64_t bytes_per_row) {
  ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel(row));
  return library.launch(*kernel, library.grid(*kernel, tiles_for(rows, block_threads)), a, rows * bytes_per_row);
}

constexpr uint32_t no_word = UINT32_MAX;

// Launches `ties`; `lowest` gets its answer with the next wait. Without `sorted`: all strings.
Result<device::Mapped> find_ties(Library& library, const Strings& strings, uint64_t words, const RankRound& round,
                                 const Sorted* sorted, Address starts, Address runs, Address open, uint64_t from,
                                 Memory& work) {
  ASSIGN_OR_RETURN(const Address lowest, work.temporary(8));
  RETURN_IF_ERROR(library.device().fill(lowest, 0xff, 8));
  Arguments a;
  a.add(round.size).add(round.handles).add(strings.pad).add(from).add(words).add(lowest);
  a.add(sorted ? sorted->rows : 0).add(starts).add(runs).add(open);
  RETURN_IF_ERROR(rank_launch(library, ties_kernel(sorted == nullptr), round.size, a, sorted ? 9 : 8));
  ASSIGN_OR_RETURN(const device::Mapped answer, work.mapped(8));
  RETURN_IF_ERROR(library.device().copy(answer.address, lowest, 8));
  return answer;
}
uint32_t word_of(const device::Mapped& answer) { return *static_cast<const uint32_t*>(answer.host); }

}  // namespace

void add_ranks(KernelRows& rows) {
  rows.insert(rows.end(), {{"text_place", build_place}, {"text_mark", build_mark}});
  for (bool all : {false, true}) rows.insert(rows.end(), {ties_kernel(all), next_kernel(all)});
}

Result<Ranks> rank(Library& library, const Strings& strings, Memory& memory) {
  const uint64_t n = strings.count;
  RETURN_IF_ERROR(check_rows({n, 0}));
  Ranks out;
  out.of = {.type = Type::u32, .capacity = n};
  out.first = {.type = Type::i64};
  ASSIGN_OR_RETURN(out.of.data, memory.result(4 * std::max<uint64_t>(n, 1)));
  if (n == 0) {
    ASSIGN_OR_RETURN(out.first.data, memory.result(8));
    return out;
  }

  Reused work(memory), kept[2] = {Reused(memory), Reused(memory)};
  RankRound round{.size = n, .handles = strings.handles};
  std::vector<Part> lengths{{.source = Source::length, .data = strings.handles}};
  RETURN_IF_ERROR(find_bounds(library, {n, 0}, lengths, work));
  const uint64_t words = (lengths[0].high + 7) / 8;
  ASSIGN_OR_RETURN(const device::Mapped common,
                   find_ties(library, strings, words, round, nullptr, 0, 0, 0, 0, work));
  RETURN_IF_ERROR(library.wait(memory));
  uint64_t word = word_of(common);
  Address order = 0, starts = 0;      // of all strings
  if (word == no_word) word = words;  // all are equal, which their lengths tell
  for (uint32_t turn = 0;; turn ^= 1) {
    // One word, or the rest of the same machine word with the next one.
    std::vector<Part> parts;
    if (round.runs) parts.push_back({.source = Source::u32, .data = round.runs, .low = 0, .high = round.run_count - 1});
    for (uint64_t w = word; w <= std::min(word + 1, words); ++w)
      parts.push_back(w < words ? Part{.source = Source::word, .data = round.handles, .extra = strings.pad, .number = w}
                                : Part{.source = Source::length, .data = round.handles});
    RETURN_IF_ERROR(find_bounds(library, {round.size, 0}, parts, work));
    const std::span<const Part> without_last(parts.data(), parts.size() - 1);
    uint64_t next_word = std::min(word + 1, words) + 1;
    if (word < words && pack_words(parts).size() > pack_words(without_last).size()) parts.pop_back(), --next_word;
    std::erase_if(parts, [](const Part& p) { return p.span() == 0; });

    // Rows that all rounds need come from `memory`.
    Memory& to = round.rows ? static_cast<Memory&>(work) : memory;
    ASSIGN_OR_RETURN(const Sorted sorted,
                     sort_rows(library, pack_words(parts), round.size, true, 2 * run_words(round.size), to));
    ASSIGN_OR_RETURN(const Address differs, differing_keys(library, sorted, parts, round.size, to));
    if (round.rows) {
      Arguments a;
      a.add(round.size).add(sorted.rows).add(differs).add(round.rows).add(round.places);
      a.add(order).add(starts);
      RETURN_IF_ERROR(rank_launch(library, {"text_place", build_place}, round.size, a, 26));
    } else {
      order = sorted.rows, starts = differs;
    }
    if (next_word > words) break;

    ASSIGN_OR_RETURN(const Address runs, work.temporary(4 * round.size));
    ASSIGN_OR_RETURN(const uint64_t run_count,
                     number_runs(library, sorted.rows, differs, sorted.words, round.size, runs, work));
    if (run_count == round.size) break;
    ASSIGN_OR_RETURN(const Address open, work.temporary(run_count));
    RETURN_IF_ERROR(library.device().fill(open, 0, run_count));
    ASSIGN_OR_RETURN(const device::Mapped lowest,
                     find_ties(library, strings, words, round, &sorted, differs, runs, open, next_word, work));
    ASSIGN_OR_RETURN(const Address marks, work.temporary(round.size));
    Arguments m;
    m.add(round.size).add(sorted.rows).add(runs).add(open).add(marks);
    RETURN_IF_ERROR(rank_launch(library, {"text_mark", build_mark}, round.size, m, 14));
    ASSIGN_OR_RETURN(const Places list,
                     flagged_places(library, marks, sorted.words + 8 * run_words(round.size), round.size, work));
    const uint64_t left = list.count;
    if (left == 0) break;
    word = word_of(lowest);

    Reused& pool = kept[turn];
    pool.reset();
    RankRound next{.size = left, .run_count = run_count};
    ASSIGN_OR_RETURN(next.handles, pool.temporary(8 * left));
    for (Address* array : {&next.rows, &next.places, &next.runs}) {
      ASSIGN_OR_RETURN(*array, pool.temporary(4 * left));
    }
    Arguments a;
    a.add(left).add(list.data).add(sorted.rows).add(round.handles).add(runs).add(round.rows);
    a.add(round.places).add(next.handles).add(next.runs).add(next.rows).add(next.places);
    const bool all = round.rows == 0;
    RETURN_IF_ERROR(rank_launch(library, next_kernel(all), left, a, all ? 48 : 56));
    round = next;
    work.reset();
  }
  ASSIGN_OR_RETURN(const Address scan, memory.temporary(8 * run_words(n)));
  RETURN_IF_ERROR(library.device().fill(scan, 0, 8 * run_words(n)));
  ASSIGN_OR_RETURN(const Places first, first_of_runs(library, order, starts, scan, n, out.of.data, memory));
  out.first.data = first.data, out.first.capacity = first.count;
  out.of.min = out.first.min = 0;
  out.of.max = static_cast<int64_t>(out.first.capacity) - 1;
  out.first.max = static_cast<int64_t>(n) - 1;
  return out;
}

}  // namespace rndn::operators
