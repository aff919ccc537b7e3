// The build side of a join: rows of the left side into a table by key.
//
// Two launches: one clears what the left side's actual size needs, one enters the rows. A row enters with one atomic operation where its
// slot is free; a row whose key is there already says so and takes the slot over when it is smaller. No lane waits for another.
// With a filter (ptx/lookup/lookup.h) each row sets its bit as well, where at most one row in least_absent is there; how large it is by then
// the clearing kernel decides, which knows how many are: 8 to 16 bits for each, or 64 to 128 where these fit the first caches.
// Cost: O(rows), one random access each, two with a filter; memory 4 bytes per possible key (direct) or 16 per row (hash), and for a filter
// at most half a byte per row that there may be, or 64 KB.
// Leaves out: partitioning of tables beyond the caches.
#include <algorithm>

#include "libraries/operators/joins/join.h"
#include "libraries/operators/operators.h"
#include "libraries/operators/ready.h"

namespace rndn::operators {

using ptx::Combine;

namespace {

constexpr uint32_t table_items = 4;
constexpr uint32_t table_tile_rows = block_threads * table_items;
constexpr ptx::Access read_only{.cache = ptx::Cache::nc};
// Bits of a filter for each row, before they are rounded up to a power of two: 8, and up to 64 while all of it stays in the first caches.
constexpr uint32_t least_per_row_log2 = 3, most_per_row_log2 = 6, cached_filter_log2 = 19;
constexpr uint32_t least_filter_log2 = 10, most_filter_log2 = 31;

uint32_t build_clear(ptx::Module& module, std::string_view name) {
  KernelBuilder b(module, name);
  b.set_block_size(block_threads);
  const Parameter slot = b.parameter<U64>("slot"), capacity = b.parameter<U64>("capacity");
  const Parameter control_at = b.parameter<U64>("control"), fixed_at = b.parameter<U64>("fixed");
  const Parameter slots_at = b.parameter<U64>("slots"), slot_bytes = b.parameter<U64>("slot_bytes");
  const Parameter range = b.parameter<U64>("range");
  const Parameter filter_at = b.parameter<U64>("filter"), filter_log2 = b.parameter<U64>("filter_log2");
  const Parameter filter_rows = b.parameter<U64>("filter_rows");
  const Thread t = thread_of(b);
  Reg<U32> n = rows_of(b, slot, capacity);
  // Direct: as many slots as there are keys. Hash: two per row and one more.
  Reg<U64> count = b.min(b.add(b.shl(b.cvt<U64>(n), 1), 1), UINT32_MAX);
  Reg<U64> keys = b.ld_param(range);
  count = b.selp(count, keys, b.setp(Is::eq, keys, 0));
  Reg<U32> thread = b.mad_lo(b.special(ptx::SpecialRegister::ctaid_x), block_threads, t.tid);
  Reg<U32> threads = b.mul_lo(b.special(ptx::SpecialRegister::nctaid_x), block_threads);
  Reg<U64> first = b.shl(b.cvt<U64>(thread), 4), stride = b.shl(b.cvt<U64>(threads), 4);
  const auto clear = [&](Reg<U64> base, Reg<U64> bytes) {  // 16 at a time
    const LabelId loop = b.label(), done = b.label();
    Reg<U64> at = b.mov(first);
    b.bind(loop);
    b.when(b.setp(Is::ge, at, bytes)).bra(done);
    b.st_v4<U32>(Space::global, At(b.add(base, at)), 0, 0, 0, 0);
    b.add(at, stride, at);
    b.bra(loop);
    b.bind(done);
  };
  Reg<U64> control = b.ld_param(control_at);
  clear(control, b.ld_param(fixed_at));
  clear(b.ld_param(slots_at), b.mul_lo(count, b.ld_param(slot_bytes)));
  Reg<U32> most = b.cvt<U32>(b.ld_param(filter_log2));
  Reg<U32> log2 = b.sub(b.constant<U32>(32), b.clz(b.sub(b.max(n, 1), 1)));  // of the rows, rounded up
  log2 = b.max(b.add(log2, least_per_row_log2), b.min(b.add(log2, most_per_row_log2), cached_filter_log2));
  log2 = b.min(b.max(log2, least_filter_log2), most);
  Reg<Pred> filters = b.setp(Is::le, Combine::and_, n, b.cvt<U32>(b.ld_param(filter_rows)), b.setp(Is::ne, most, 0));
  Reg<U32> filter_bytes = b.selp<U32>(b.shr(b.shl(b.constant<U32>(1), log2), 3), 0u, filters);
  clear(b.ld_param(filter_at), b.cvt<U64>(filter_bytes));
  // By the thread that zeroed it.
  Reg<U32> count32 = b.cvt<U32>(count), shift = b.selp<U32>(b.sub(b.constant<U32>(32), log2), lookup::no_filter, filters);
  Reg<Pred> is_first = b.setp(Is::eq, thread, 0);
  store_if<U32>(b, is_first, Space::global, At(control, control_slots), count32);
  store_if<U32>(b, is_first, Space::global, At(control, control_shift), shift);
  b.ret();
  b.finish();
  return block_threads;
}

uint32_t build_table_enter(ptx::Module& module, std::string_view name, const JoinShape& shape, JoinTable::Kind kind) {
  KernelBuilder b(module, name);
  b.set_block_size(block_threads);
  SideCode left = side_code(b, "left", shape, shape.left_single);
  TableCode table = table_code(b, shape, kind);
  const Parameter duplicates_at = b.parameter<U64>("duplicates");
  const Thread t = thread_of(b);
  left.start(b);
  table.start(b);
  Reg<U32> last = b.sub(left.rows, 1);
  Reg<U32> repeated = b.constant<U32>(0);  // 1: this thread met a key that is there already
  Reg<U32> shift = b.ld<U32>(Space::global, At(table.control_at, control_shift));
  Reg<U64> filter = b.add(table.control_at, lookup::filter_words);
  const auto set_bit = [&](Reg<U32> bit, Reg<Pred> valid) {
    Reg<U32> set = b.shl(b.constant<U32>(1), b.and_(bit, 31));
    const At at = element_at(b, filter, b.shr(bit, 5), 4);
    b.when(b.setp(Is::ne, Combine::and_, shift, lookup::no_filter, valid)).red<U32>(ptx::AtomicOp::or_, Space::global, at, set);
  };
  for_tiles(b, tiles_of(b, left.rows, table_tile_rows), [&](Reg<U32> tile) {
    Reg<U32> rows[table_items];
    Key keys[table_items];
    for (uint32_t k = 0; k < table_items; ++k) {
      Reg<U32> row = b.add(b.mad_lo(tile, table_tile_rows, t.tid), k * block_threads);
      Reg<Pred> exists = b.setp(Is::lt, row, left.rows);
      rows[k] = b.min(row, last);
      keys[k] = row_key(b, shape, table, left, rows[k], exists);
    }
    for (uint32_t k = 0; k < table_items; ++k) {
      Reg<U32> mark = b.not_(rows[k]);
      const LabelId done = b.label();
      if (kind == JoinTable::direct) {
        const At at = element_at(b, table.slots_at, keys[k].narrow, 4);
        set_bit(lookup::filter_bit_of_key(b, keys[k].narrow, shift), keys[k].valid);
        b.unless(keys[k].valid).bra(done);
        Reg<U32> old = b.atom<U32>(ptx::AtomicOp::max, Space::global, at, mark);
        b.when(b.setp(Is::ne, old, 0)).constant<U32>(1, repeated);
        b.bind(done);
        continue;
      }
      const LabelId probe = b.label(), other = b.label();
      const bool narrow = shape.key.form == KeyForm::narrow;
      Reg<U32> own_tag = narrow ? keys[k].narrow : tag(b, keys[k].wide);
      Reg<U64> word = b.pack<U64>(mark, own_tag);
      Reg<U32> hashed = narrow ? hash(b, keys[k].narrow) : hash(b, keys[k].wide);
      Reg<U32> place = place_of(b, hashed, table.count);
      set_bit(lookup::filter_bit_of_hash(b, hashed, shift), keys[k].valid);
      b.unless(keys[k].valid).bra(done);
      b.bind(probe);
      const At at = element_at(b, table.slots_at, place, 8);
      Reg<U64> old = b.atom_cas<U64>(Space::global, at, 0, word);
      b.when(b.setp(Is::eq, old, 0)).bra(done);
      auto [old_mark, old_tag] = b.unpack(old);
      b.when(b.setp(Is::ne, old_tag, own_tag)).bra(other);
      if (!narrow) {
        Reg<Pred> same = b.constant<Pred>(true);
        Reg<U32> old_row = b.not_(old_mark);
        for (size_t c = 0; c < shape.key.columns.size(); ++c)
          compare_elements(b, Compare::eq, load_element(b, left.types[c], left.at(b, c, old_row)),
                           load_element(b, left.types[c], left.at(b, c, rows[k])), Combine::and_, same, same);
        b.unless(same).bra(other);
      }
      b.constant<U32>(1, repeated);
      b.red<U32>(ptx::AtomicOp::max, Space::global, at, mark);  // the low half; the tag stays
      b.bra(done);
      b.bind(other);
      next_place(b, place, table.count);
      b.bra(probe);
      b.bind(done);
    }
  });
  // Once per warp: the word may be the host's.
  Reg<U32> met = b.ballot(b.setp(Is::ne, repeated, 0));
  Reg<Pred> says = b.setp(Is::ne, ptx::Combine::and_, met, 0, b.setp(Is::eq, t.lane, 0));
  store_if<U32>(b, says, Space::global, At(b.ld_param(duplicates_at)), 1);
  b.ret();
  b.finish();
  return block_threads;
}

const char* table_kind_name(JoinTable::Kind kind) { return kind == JoinTable::direct ? "direct_" : "hash_"; }

std::string single_name(const std::vector<bool>& single) {
  std::string out;
  for (bool s : single) out += s ? '1' : 'n';
  return out;
}

const char* compare_name(Compare compare) {
  static constexpr const char* names[] = {"eq", "neq", "lt", "gt", "leq", "geq"};
  return names[static_cast<size_t>(compare)];
}

}  // namespace

Result<Side> make_side(std::vector<Vector> columns) {
  Side side;
  RETURN_IF_ERROR(check_rows(columns));
  // Numbers of elements may be known on the device alone, and then only up to a bound, which differs from column to column:
  // what is exact counts, else the least bound.
  const Vector* rows = &columns[0];
  for (const Vector& v : columns)
    if (v.capacity != 1 && (rows->capacity == 1 || (!v.size_slot && rows->size_slot) ||
                            (!v.size_slot == !rows->size_slot && v.capacity < rows->capacity)))
      rows = &v;
  side.capacity = rows->capacity;
  side.size_slot = rows->size_slot;
  for (const Vector& v : columns) {
    if (v.capacity != 1 && (v.size_slot ? v.capacity < side.capacity : v.capacity != side.capacity))
      return input_error("the columns of one side of a join have {} and {} elements", v.capacity, side.capacity);
    side.single.push_back(v.capacity == 1 && side.capacity != 1);
  }
  side.columns = std::move(columns);
  return side;
}

void add(Arguments& a, const Side& side) {
  a.add(side.size_slot).add(side.capacity);
  for (const Vector& v : side.columns) a.add(v.data);
  for (const Vector& v : side.columns) a.add(v.ranks);
}

std::string JoinShape::name() const {
  std::string out = key.columns.empty() ? "all" : key.name();
  for (const Residual& r : rest)
    out += std::string("_") + compare_name(r.compare) + "_" + type_name(r.type) + (r.ranked ? "k" : "");
  return out + "_" + single_name(left_single) + "_" + single_name(right_single);
}

static Library::Row table_builder(const JoinShape& shape, JoinTable::Kind kind) {
  return {"join_build_" + std::string(table_kind_name(kind)) + shape.name(),
          [shape, kind](ptx::Module& m, std::string_view name) { return build_table_enter(m, name, shape, kind); }};
}

// Of one key, of two, and of one that may be missing, which is a flag and a key.
void add_join_tables(KernelRows& rows) {
  rows.push_back({"join_clear", build_clear});
  const auto rebased = [](Type type) { return KeyColumn{.type = type, .rebased = true}; };
  const KeyColumn narrow = rebased(Type::i32), wide = rebased(Type::i64), code = rebased(Type::u32),
                  flag = rebased(Type::u8);
  const auto add = [&](KeyForm form, std::vector<KeyColumn> columns, JoinTable::Kind kind) {
    JoinShape shape{.key = {.form = form, .columns = std::move(columns)}};
    shape.left_single.resize(shape.key.columns.size());
    rows.push_back(table_builder(shape, kind));
  };
  for (JoinTable::Kind kind : {JoinTable::direct, JoinTable::hash}) {
    for (const KeyColumn& column : {narrow, wide, code}) add(KeyForm::narrow, {column}, kind);
    for (const KeyColumn& first : {narrow, flag}) add(KeyForm::narrow, {first, narrow}, kind);
    add(KeyForm::narrow, {flag, code}, kind);
  }
  add(KeyForm::wide, {narrow, narrow}, JoinTable::hash);
  add(KeyForm::wide, {flag, wide}, JoinTable::hash);
}

Result<JoinTable> build_join(Library& library, const JoinShape& shape, const KeyLayout& layout, const Side& left,
                             uint64_t word_count, Memory& memory, Address duplicates, bool filters) {
  JoinTable table;
  table.layout = layout;
  const bool narrow = layout.shape.form == KeyForm::narrow;
  bool floats = false;
  for (const KeyColumn& c : layout.shape.columns) floats |= is_float(c.type);
  // A direct table takes no more memory than a hash table would, or little.
  const bool direct = narrow && !floats && layout.range &&
                      layout.range <= most_direct_slots(left.capacity);
  table.kind = direct ? JoinTable::direct : JoinTable::hash;
  table.slot_capacity = direct ? layout.range : std::min<uint64_t>(2 * left.capacity + 1, UINT32_MAX);
  table.word_count = word_count;
  const uint64_t slot_bytes = direct ? 4 : 8;
  const uint64_t fixed = (control_bytes + word_count * 8 + 255) / 256 * 256;
  const uint64_t slots = (table.slot_capacity * slot_bytes + 255) / 256 * 256;
  const uint32_t filter_log2 = filters ? filter_bits_log2(left.capacity / least_absent, direct ? layout.range : 0) : 0;
  const uint64_t filter_bytes = filters ? ((uint64_t{1} << filter_log2) / 8 + 255) / 256 * 256 : 0;
  CHECK(!filters || fixed == lookup::filter_words, "a filter does not stand behind the control memory");
  ASSIGN_OR_RETURN(table.control, memory.temporary(fixed + filter_bytes + slots));
  table.words = table.control + control_bytes;
  table.slots = table.control + fixed + filter_bytes;
  ASSIGN_OR_RETURN(const Kernel* clear, library.kernel("join_clear", build_clear));
  Arguments c;
  c.add(left.size_slot).add(left.capacity).add(table.control).add(fixed).add(table.slots).add(slot_bytes);
  c.add(direct ? layout.range : 0).add(table.control + fixed).add(filter_log2).add(left.capacity / least_absent);
  RETURN_IF_ERROR(
      library.launch(*clear, library.grid(*clear, tiles_for(fixed + slots, block_threads * 16)), c, fixed + slots));
  JoinShape own{.key = shape.key, .left_single = shape.left_single};  // the residual columns do not matter here
  own.left_single.resize(shape.key.columns.size());
  Side keys = left;
  keys.columns.resize(shape.key.columns.size());
  const JoinTable::Kind kind = table.kind;
  ASSIGN_OR_RETURN(const Kernel* enter, library.kernel(table_builder(own, kind)));
  Arguments a;
  add(a, keys);
  add(a, table);
  a.add(duplicates ? duplicates : table.control + control_duplicates);
  uint64_t bytes = 0;
  for (const Vector& v : keys.columns) bytes += width(v.type);
  RETURN_IF_ERROR(library.launch(*enter, library.grid(*enter, tiles_for(left.capacity, table_tile_rows)), a,
                                 left.capacity * (bytes + slot_bytes)));
  return table;
}

// As a kernel has it that clears one (build_clear), whose rows are counted there.
uint32_t filter_bits_log2(uint64_t rows, uint64_t keys) {
  const auto log2 = [](uint64_t n) { return n ? static_cast<uint32_t>(std::bit_width(n - 1)) : 0; };
  uint32_t bits = std::max(log2(rows) + least_per_row_log2, std::min(log2(rows) + most_per_row_log2, cached_filter_log2));
  if (keys) bits = std::min(bits, log2(keys));
  return std::clamp(bits, least_filter_log2, most_filter_log2);
}

uint64_t most_direct_slots(uint64_t rows) {
  return std::min<uint64_t>(std::max<uint64_t>(8 * rows, 1 << 16), UINT32_MAX);
}

Result<Lookup> lookup_table(Library& library, std::span<const Vector> columns, Address duplicates, bool filters,
                            bool hashed, Memory& memory) {
  ASSIGN_OR_RETURN(const Side left, make_side({columns.begin(), columns.end()}));
  KeyLayout layout = layout_keys(columns);
  if (columns.size() > lookup::most_shifted)
    layout.shape.form = KeyForm::hashed, layout.range = 0;
  else if (layout.shape.form == KeyForm::hashed)
    return Lookup{};
  if (hashed) layout.range = 0;
  // Kernels that ask compute keys in 64 bits, whatever the type: a contribution is the distance from the type's least number.
  for (size_t c = 0; c < columns.size(); ++c) {
    if (layout.shape.columns[c].rebased || is_wide(columns[c].type)) continue;
    layout.shape.columns[c].rebased = true;
    layout.min[c] = columns[c].type == Type::i32 ? static_cast<uint64_t>(int64_t{INT32_MIN}) : 0;
  }
  const JoinShape shape{.key = layout.shape, .left_single = left.single};
  ASSIGN_OR_RETURN(const JoinTable table, build_join(library, shape, layout, left, 0, memory, duplicates, filters));
  const uint64_t form = table.kind == JoinTable::direct             ? lookup::direct
                        : layout.shape.form == KeyForm::narrow ? lookup::exact
                                                                    : lookup::compared;
  Lookup out{.words = {table.slots, table.control, form}, .filters = filters};
  for (size_t c = 0; c < columns.size(); ++c)
    out.words.insert(out.words.end(), {layout.min[c], layout.span[c], layout.shift[c]});
  return out;
}

void add(Arguments& a, const JoinTable& table) {
  a.add(table.control).add(table.slots);
  add(a, table.layout);
}

void SideCode::start(Builder& b) {
  rows = rows_of(b, slot, capacity);
  for (Parameter p : data) bases.push_back(b.ld_param(p));
}
At SideCode::at(Builder& b, size_t column, Reg<U32> row) const {
  return single[column] ? At(bases[column]) : element_at(b, bases[column], row, width(types[column]));
}

SideCode side_code(Builder& b, const std::string& name, const JoinShape& shape, const std::vector<bool>& single) {
  SideCode s;
  s.slot = b.parameter<U64>(name + "_slot");
  s.capacity = b.parameter<U64>(name + "_capacity");
  for (const KeyColumn& c : shape.key.columns) s.types.push_back(c.type);
  for (const Residual& r : shape.rest) s.types.push_back(r.type);
  s.single = single;
  for (size_t c = 0; c < s.types.size(); ++c) s.data.push_back(b.parameter<U64>(name + std::to_string(c)));
  for (size_t c = 0; c < s.types.size(); ++c) s.ranks.push_back(b.parameter<U64>(name + "_ranks" + std::to_string(c)));
  return s;
}

TableCode table_code(Builder& b, const JoinShape& shape, JoinTable::Kind kind) {
  TableCode t;
  t.kind = kind;
  t.control = b.parameter<U64>("control");
  t.slots = b.parameter<U64>("slots");
  t.key = key_parameters(b, shape.key);
  return t;
}

void TableCode::start(Builder& b) {
  control_at = b.ld_param(control);
  slots_at = b.ld_param(slots);
  count = b.ld<U32>(Space::global, At(control_at, control_slots));
}

Key row_key(Builder& b, const JoinShape& shape, const TableCode& table, const SideCode& side, Reg<U32> row,
            Condition exists) {
  std::vector<At> at;
  for (size_t c = 0; c < shape.key.columns.size(); ++c) at.push_back(side.at(b, c, row));
  return make_key(b, shape.key, table.key, at, exists);
}

std::vector<Found> find_rows(Builder& b, const JoinShape& shape, const TableCode& table, const SideCode& left,
                             const SideCode& probe, std::span<const Reg<U32>> rows, std::span<const Key> keys) {
  const size_t n = keys.size();
  std::vector<Found> found(n);
  if (table.kind == JoinTable::direct) {
    std::vector<Reg<U32>> marks(n);
    for (size_t k = 0; k < n; ++k) {
      const At at = element_at(b, table.slots_at, keys[k].narrow, 4);
      marks[k] = b.constant<U32>(0);
      load_if<U32>(b, keys[k].valid, Space::global, at, marks[k], read_only);
    }
    for (size_t k = 0; k < n; ++k) found[k] = {b.not_(marks[k]), keys[k].narrow, b.setp(Is::ne, marks[k], 0)};
    return found;
  }
  const bool narrow = shape.key.form == KeyForm::narrow;
  std::vector<Reg<U64>> words(n);
  for (size_t k = 0; k < n; ++k) {
    found[k].place = place_of(b, narrow ? hash(b, keys[k].narrow) : hash(b, keys[k].wide), table.count);
    const At at = element_at(b, table.slots_at, found[k].place, 8);
    words[k] = b.constant<U64>(0);
    load_if<U64>(b, keys[k].valid, Space::global, at, words[k], read_only);
  }
  for (size_t k = 0; k < n; ++k) {
    const LabelId done = b.label(), again = b.label();
    Reg<U32> own_tag = narrow ? keys[k].narrow : tag(b, keys[k].wide);
    b.bind(again);
    b.when(b.setp(Is::eq, words[k], 0)).bra(done);
    auto [mark, its_tag] = b.unpack(words[k]);
    if (narrow) {
      b.when(b.setp(Is::eq, its_tag, own_tag)).bra(done);
    } else {
      const LabelId other = b.label();
      b.when(b.setp(Is::ne, its_tag, own_tag)).bra(other);
      Reg<U32> row = b.not_(mark);
      Reg<Pred> same = b.constant<Pred>(true);
      for (size_t c = 0; c < shape.key.columns.size(); ++c)
        compare_elements(b, Compare::eq, load_element(b, left.types[c], left.at(b, c, row)),
                         load_element(b, probe.types[c], probe.at(b, c, rows[k])), Combine::and_, same, same);
      b.when(same).bra(done);
      b.bind(other);
    }
    next_place(b, found[k].place, table.count);
    b.ld<U64>(Space::global, read_only, element_at(b, table.slots_at, found[k].place, 8), words[k]);
    b.bra(again);
    b.bind(done);
    found[k].row = b.not_(b.cvt<U32>(words[k]));
    found[k].hit = b.setp(Is::ne, words[k], 0);
  }
  return found;
}

void test_residuals(Builder& b, const JoinShape& shape, const SideCode& left, Reg<U32> left_row, const SideCode& right,
                    Reg<U32> right_row, Reg<Pred> into) {
  for (size_t r = 0; r < shape.rest.size(); ++r) {
    const size_t c = shape.key.columns.size() + r;
    const Residual& rest = shape.rest[r];
    Element x = load_element(b, rest.type, left.at(b, c, left_row));
    Element y = load_element(b, rest.type, right.at(b, c, right_row));
    if (rest.ranked) {
      x.u32 = b.ld_nc<U32>(element_at(b, b.ld_param(left.ranks[c]), x.u32, 4));
      y.u32 = b.ld_nc<U32>(element_at(b, b.ld_param(right.ranks[c]), y.u32, 4));
      x.type = y.type = Type::u32;
    }
    compare_elements(b, rest.compare, x, y, Combine::and_, into, into);
  }
}

}  // namespace rndn::operators
