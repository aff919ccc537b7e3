// Tables that kernels fold groups into (ptx/codegen/sink.cpp): how large they are and where they lie, from what is known
// of the keys when the kernel is launched.
//
// A table has an entry for every combination of elements within the keys' bounds. Of a program's own groups those that
// do not fit (too wide bounds, more entries than are worth the memory, extremes that could be what an empty entry holds)
// find their entries by hashing, in tables of a size that is guessed from what is known and grows where it was too small:
// then the kernel runs again, and the next run begins with what was needed. That waits for the number of groups, unless
// they are few and their number is known from the run before: then a table that is too small is seen with the results.
// What is better sorted (few rows, more groups than caches hold) is noted in the plan, and the program is compiled again
// with it as an operator (runtime/engine.h). So is a fold in a kernel that scans many rows of which look-ups select few: it
// is compiled again as a kernel of its own, over the rows that are left.
#include <algorithm>
#include <bit>

#include "assembler/isa/isa.h"
#include "libraries/base/numbers/sum_parts.h"
#include "runtime/run/execution.h"

namespace rndn::runtime {

using hir::BasicType;

namespace {

constexpr uint64_t most_entries = 1 << 22;
constexpr uint64_t always_worth = 1 << 16;  // entries; more than that only with half as many elements
constexpr uint64_t most_copies = 32;        // of an entry in a block: one per lane
constexpr uint64_t few_copies = 4;          // so that lanes with one key often meet
constexpr uint64_t few_entries = 256;       // so that they often meet where there are no copies
constexpr uint64_t rows_per_large_entry = 8;  // of a block: what filling and emptying a large table may cost

// Extremes are compared with what an empty entry holds, words of `fill`: of one word, the end of all numbers.
bool reach_empty(const Bounds& b, uint32_t fill, uint32_t width) {
  if (width == 4) return true;
  if (!b.known()) return false;
  const auto empty = static_cast<int64_t>(uint64_t{fill} << 32 | fill);
  return empty > 0 ? b.max <= empty : b.min >= empty;
}

constexpr uint64_t few_slots = 4096;         // which every table may have
// Sorting is faster for more groups (H100: `rndn sql tpch/sql/q16.sql --data tpch:1`, `tpch:10`, with and without `--group sort`).
constexpr uint64_t least_slots = 256, most_hashed = 1 << 13;
constexpr uint64_t growth = 8;               // of a table that was too small

// Of all entries in a block's memory that all code has.
uint64_t usual_copies(const codegen::KernelCode::Sink& sink, uint64_t entries) {
  const uint64_t bytes = entries * std::max(1u, sink.entry_bytes);
  return bytes <= sink.shared_bytes ? std::bit_floor(std::min(most_copies, sink.shared_bytes / bytes)) : 0;
}

uint64_t span_of(const Bounds& b) { return static_cast<uint64_t>(b.max) - static_cast<uint64_t>(b.min); }

}  // namespace

std::string_view Run::fold_way(const codegen::KernelCode::Sink& sink, const FoldInput& in, FoldWay& way) const {
  if (in.elements > plan_.options.most_rows_of_selective_folds && sink.selected_by_gathers &&
      !may_stand_apart(sink.number))
    return "look-ups select its rows, mostly few of many";
  static_assert(data::longest_vector <= sum_parts::most_summed);
  std::vector<Bounds> keys;
  for (size_t k = 0; k < sink.keys.size(); ++k) {
    Bounds b = in.bounds[index(sink.keys[k])].bounds;
    if (in.domains[k]) {
      const Bounds codes{0, static_cast<int64_t>(in.domains[k]->count()) - 1};
      if (!b.known() || b.min < codes.min || b.max > codes.max) b = codes;
    }
    if (!b.known()) b = limits(program().types->basic_of(in.f.variables[sink.keys[k]].type));
    if (in.elements == 0 || (in.domains[k] && !b.known())) b = {0, 0};
    if (!b.known()) return "nothing is known of its keys";
    keys.push_back(b);
  }
  way.not_direct = {};
  if (plan_.options.operators.group == operators::Options::Group::hash && fold_hashed(sink, in, keys, way).empty()) return {};
  const std::string_view unfit = fold_direct(sink, in, keys, way);
  const bool direct = unfit.empty();
  if (sink.keys.size() == 1 && in.bounds[index(sink.keys[0])].ascending &&
      (!direct || way.table == codegen::KernelEncodings::large || way.words[codegen::sink_copies] == 0))
    return "its keys ascend: groups are runs";
  if (direct) return {};
  way.not_direct = unfit;
  return fold_hashed(sink, in, keys, way).empty() ? std::string_view() : unfit;
}

bool Run::may_stand_apart(int64_t number) const {
  const std::vector<uint32_t>& apart = plan_.compiled.folds_apart;
  return is_own_fold(number) && std::find(apart.begin(), apart.end(), number) == apart.end();
}

// Of a fold that has a way.
bool Run::is_better_apart(const codegen::KernelCode::Sink& sink, const FoldInput& in) const {
  return sink.selected_by_gathers && in.elements > plan_.options.most_rows_of_selective_folds;
}

// The run ends here, and the program is compiled again.
Result<void> Run::fold_apart(int64_t number) {
  plan_.apart.push_back(static_cast<uint32_t>(number));
  return Error{Fault::internal, "a fold is to stand apart"};
}

// An entry for every combination of elements within the keys' bounds.
std::string_view Run::fold_direct(const codegen::KernelCode::Sink& sink, const FoldInput& in,
                                  std::span<const Bounds> keys, FoldWay& way) const {
  uint64_t entries = 1;
  for (const Bounds& b : keys) {
    if (span_of(b) >= most_entries || entries * (span_of(b) + 1) > most_entries) return "there may be too many groups";
    entries *= span_of(b) + 1;
  }
  if (entries > always_worth && entries / 2 > in.elements) return "there may be far more groups than rows";
  for (const codegen::KernelCode::Sink::Table& t : sink.tables) {
    const BasicType type = program().types->basic_of(in.f.variables[t.values].type);
    if (t.extreme && in.elements > 0 &&
        !reach_empty(in.bounds[index(t.values)].bounds, t.fill, encodings::plain_bytes(type)))
      return "nothing is known of the values whose extreme it takes";
  }
  const uint64_t copies = usual_copies(sink, entries);
  way.table = codegen::KernelEncodings::usual;
  using Forms = codegen::KernelEncodings;
  const auto may_be = [&](Forms::Table table) { return copies <= few_copies && may_be_large(sink, in, entries, table); };
  if ((copies > 0 || entries <= few_entries) && may_be(Forms::large_and_hot))
    way.table = Forms::large_and_hot;
  else if (copies == 0 && may_be(Forms::large))
    way.table = Forms::large;
  way.words = {entries, way.table == codegen::KernelEncodings::usual ? copies : 1};
  uint64_t factor = entries;
  for (const Bounds& b : keys) {
    factor /= span_of(b) + 1;
    way.words.push_back(static_cast<uint64_t>(b.min));
    way.words.push_back(factor);
  }
  return {};
}

// Whether a block may have so much shared memory, and there are rows enough: elements of the geometry, of which a mask, or a selection before it, may
// leave few.
bool Run::may_be_large(const codegen::KernelCode::Sink& sink, const FoldInput& in, uint64_t entries,
                       codegen::KernelEncodings::Table table) const {
  const isa::Target* target = isa::find_target(device_.info().target);
  if (!target || sink.beside_large == 0) return false;
  const uint64_t needed = sink.large_bytes(entries, table);
  if (needed + sink.beside_large > target->max_dynamic_shared) return false;
  const uint64_t blocks = uint64_t{device_.info().multiprocessors} * std::max<uint64_t>(1, target->shared_per_sm / needed);
  return in.elements / rows_per_large_entry / blocks >= entries;
}

std::string Run::way_in_words(const codegen::KernelCode::Sink& sink, const FoldInput& in, FoldWay& way, bool sure) const {
  const uint64_t entries = way.entries();
  const auto table = [&](std::string_view where) {
    return fmt::format("folded by its kernel, in a table of {} {} of {} bytes, {}", entries, entries == 1 ? "entry" : "entries",
                       sink.entry_bytes, where);
  };
  if (way.hashed())
    return fmt::format("folded by its kernel, with keys hashed into {} slots at first and {} at most{}{}", entries, way.most_slots,
                       way.not_direct.empty() ? "" : ", since ", way.not_direct);
  if (!sure) return table("whose place is chosen when the number of rows is known");
  const uint64_t copies = usual_copies(sink, entries);
  std::string where = copies == 0 ? std::string("in global memory")
                                  : fmt::format("{} {} in each block's shared memory", copies, copies == 1 ? "copy" : "copies");
  if (way.table != codegen::KernelEncodings::usual)
    where = fmt::format("with up to {} resident blocks, one for each {} rows of an entry, in {} KB of shared memory of each{}; with more {}",
                        in.elements / rows_per_large_entry / entries, rows_per_large_entry, sink.large_bytes(entries, way.table) >> 10,
                        way.table == codegen::KernelEncodings::large ? "" : ", with copies of the keys that it meets first", where);
  return table(where);
}

// Neighbouring keys share a word while 64 bits hold their combinations.
std::string_view Run::fold_hashed(const codegen::KernelCode::Sink& sink, const FoldInput& in,
                                  std::span<const Bounds> keys, FoldWay& way) const {
  using Group = operators::Options::Group;
  const Group group = plan_.options.operators.group;
  if (group == Group::sort) return "groups are to be sorted";
  if (group != Group::hash && in.elements <= plan_.options.hashed_rows) return "its rows are few";
  if (!in.repeats) return "its kernel changes a vector";
  using Wide = unsigned __int128;
  constexpr Wide most = Wide{1} << 64;
  std::vector<Wide> ranges;  // of words
  Wide groups = 1;           // at most
  way.key_word.clear();
  for (const Bounds& b : keys) {
    const Wide range = Wide{span_of(b)} + 1;
    if (ranges.empty() || ranges.back() > most / range) ranges.push_back(1);
    ranges.back() *= range;
    groups = std::min(groups * range, most);
    way.key_word.push_back(static_cast<uint8_t>(ranges.size() - 1));
  }
  way.most_slots = std::min(most_hashed, std::max(few_slots, in.elements / 2));
  const uint64_t guess =
      std::max(least_slots, std::min(plan_.options.fold_slots, 2 * static_cast<uint64_t>(std::min<Wide>(groups, in.elements))));
  way.words = {std::min(way.most_slots, in.slots ? in.slots : guess), 0};
  way.greatest.clear();
  for (Wide range : ranges) way.greatest.push_back(static_cast<uint64_t>(range - 1));
  for (size_t k = 0; k < sink.keys.size(); ++k) {
    Wide& rest = ranges[way.key_word[k]];
    rest /= Wide{span_of(keys[k])} + 1;
    way.words.push_back(static_cast<uint64_t>(keys[k].min));
    way.words.push_back(static_cast<uint64_t>(rest));
  }
  way.words.resize(way.words.size() + codegen::hash_words);
  return {};
}

// Per key, null: it is no text.
std::vector<DomainPtr> Run::key_domains(const TextClasses& texts, const codegen::KernelCode::Sink& sink,
                                        std::span<const DomainPtr> domains) {
  std::vector<DomainPtr> of_keys;
  for (hir::VariableId v : sink.keys) {
    const int c = texts.of[index(v)];
    of_keys.push_back(c < 0 ? nullptr : domains[static_cast<size_t>(c)]);
  }
  return of_keys;
}

bool Run::changes_inputs(const codegen::KernelCode& code) {
  return std::any_of(code.starts_as.begin(), code.starts_as.end(), [](int32_t p) { return p >= 0; });
}

// Of the outliner's making, not of the program's own text.
bool Run::is_own_fold(int64_t number) const {
  const std::vector<uint32_t>& folds = plan_.compiled.outlined.folds;
  return std::find(folds.begin(), folds.end(), number) != folds.end();
}

// The run ends here, and the program is compiled again. A fold of the program's own text has no other way than the interpreter.
Result<void> Run::cannot_fold(const Step& s, int64_t number, std::string_view reason) {
  if (!is_own_fold(number)) return fall_back(s, reason);
  plan_.unfit.push_back(static_cast<uint32_t>(number));
  return Error{Fault::internal, fmt::format("a group is to be no fold: {}", reason)};
}

namespace {

// Hashed extremes are unsigned: nothing is beyond what an empty entry holds.
device::Filling fill_of(const codegen::KernelCode::Sink::Table& t, bool hashed) {
  return !hashed ? device::Filling::words(t.fill) : device::Filling(t.fill == 0x7FFFFFFF ? 0xFF : 0);
}

}  // namespace

Result<void> Run::fold_tables(const codegen::KernelCode::Sink& sink, const hir::Function& f, FoldWay& way,
                              std::vector<ItemPtr>& outputs) {
  const uint64_t entries = way.entries();
  struct Piece {
    uint64_t bytes = 0;
    device::Filling fill = 0;
    const codegen::KernelCode::Sink::Table* table = nullptr;  // none: of hashed keys, and their state
    uint64_t at = 0;
  };
  std::vector<Piece> pieces;
  const uint64_t keys = 8 * entries * (way.hashed() ? codegen::hash_table_count(way.key_word.back() + 1u) : 0);
  if (way.hashed()) pieces.push_back({keys + 8, 0xFF});
  for (const codegen::KernelCode::Sink::Table& t : sink.tables)
    pieces.push_back({entries * encodings::plain_bytes(program().types->basic_of(f.result_types[t.result])),
                      fill_of(t, way.hashed()), &t});
  if (pieces.empty()) return {};
  std::stable_sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.fill.word < b.fill.word; });
  uint64_t bytes = 0;
  for (Piece& p : pieces) {
    p.at = bytes;
    bytes += (p.bytes + 255) / 256 * 256;
  }
  ASSIGN_OR_RETURN(way.tables, engine_.buffers.allocate(bytes + 8 * pieces.size()));
  const device::Address base = way.tables->address;
  for (size_t k = 0; k < pieces.size(); ++k) {
    if (!pieces[k].table) {
      const size_t at = way.words.size() - codegen::hash_words;
      way.words[at + codegen::hash_tables] = base + pieces[k].at;
      way.words[at + codegen::hash_state] = base + pieces[k].at + keys;
      continue;
    }
    ItemPtr& made = outputs[pieces[k].table->result];
    if (!made) made = new_vector(program().types->basic_of(f.result_types[pieces[k].table->result]), entries, true);
    made->data_buffer = made->size_buffer = way.tables;
    made->data = base + pieces[k].at;
    made->size_slot = base + bytes + 8 * k;
  }
  for (size_t k = 0, next = 0; k < pieces.size(); k = next) {  // equal bytes side by side
    while (next < pieces.size() && pieces[next].fill == pieces[k].fill) ++next;
    const uint64_t end = next < pieces.size() ? pieces[next].at : bytes;
    RETURN_IF_ERROR(device_.fill(base + pieces[k].at, pieces[k].fill, end - pieces[k].at));
  }
  pending_ = true;
  return {};
}

Result<codegen::FoldState> Run::fold_results(const codegen::KernelCode::Sink& sink, FoldWay& way,
                                             std::vector<ItemPtr>& outputs, KernelState::Hashed& known) {
  const size_t at = way.words.size() - codegen::hash_words;
  operators::Folded folded{.tables = way.words[at + codegen::hash_tables],
                           .slots = way.entries(),
                           .greatest = way.greatest,
                           .state = way.words[at + codegen::hash_state],
                           .columns = {}};
  for (const codegen::KernelCode::Sink::Table& t : sink.tables) {
    const Item& column = *outputs[t.result];
    folded.columns.push_back({column.data, encodings::plain_bytes(column.type), t.extreme});
  }
  // A table that was large enough before probably is: whether it was is seen with the results.
  const bool waits = way.entries() != known.slots || known.slots > operators::Folded::most_unwaited ||
                     engine_.memory.limits_unknown(8 * known.slots);
  if (!waits) {
    if (!known.report) {
      ASSIGN_OR_RETURN(known.report, engine_.flags.allocate(16));
      static_cast<uint64_t*>(known.report->host)[1] = codegen::fold_fits;
    }
    folded.report = known.report->address;
  }
  note_library_launches();
  OperatorMemory memory(*this, engine_.buffers);
  auto scope = timings_.measure(library_phase(), "group");
  auto found = sql_->folded_groups(folded, memory);
  note_library_launches(true);
  if (!found) return found.error();
  if (found->state != codegen::fold_fits) {
    if (found->state == codegen::fold_impossible || way.entries() == way.most_slots) return codegen::fold_impossible;
    way.entries() = std::min(way.most_slots, growth * way.entries());
    return codegen::fold_full;
  }
  for (size_t k = 0; k < sink.tables.size(); ++k) {
    Item& column = *outputs[sink.tables[k].result];
    column.capacity = found->groups;
    column.exact = waits;
    column.data = found->columns[k];
    column.data_buffer = memory.buffer(column.data);
    column.size_slot = found->size_slot;
    column.size_buffer = memory.buffer(found->size_slot);
  }
  if (waits) known.slots = std::min(way.most_slots, std::max(least_slots, 2 * found->groups));
  return codegen::fold_fits;
}

}  // namespace rndn::runtime
