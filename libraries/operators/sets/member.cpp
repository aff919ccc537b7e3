// member: for every element of x, does it occur in y.
//
// Three ways, by what is known of y before any of it is read:
//   loop    y has few elements: blocks keep them in shared memory, four at a time are compared with four elements of x per thread
//   bitmap  the range of y is small: one bit per value in global memory
//   set     open addressing, the slots are the keys themselves (4 or 8 bytes), claimed by one compare-and-swap each, at most half of
//           them taken; 0 marks an empty slot, so the key 0 has a flag of its own
// Bitmap and set are a build over y and a probe over x, with nothing but the table between them: a MemberTable says all that a probe needs.
// Cost: O(|x| * |y|) for the loop, O(|x| + |y|) else; a probe reads one word per element of x.
// Leaves out: finding the range of y when it is not known, and partitioning for sets beyond the caches.
#include <algorithm>

#include "libraries/operators/sets/member.h"
#include "libraries/operators/operators.h"

namespace rndn::operators {

using ptx::Combine;

namespace {

constexpr uint32_t member_items = 4;
constexpr uint32_t member_tile_rows = block_threads * member_items;
constexpr uint32_t chunk = 256;         // elements of y in shared memory
constexpr uint64_t largest_loop = 32;   // elements of y, for `automatic`
constexpr uint32_t stored_bytes = 256;  // counters before the slots, so that slots are aligned

// Rows of this thread in a tile: tile * tile_rows + k * block_threads + tid, so that neighbours read neighbours.
struct TileRows {
  Reg<U32> row[member_items];  // clamped to the last
  Reg<Pred> exists[member_items];
};
TileRows tile_rows_of(Builder& b, Reg<U32> tile, Reg<U32> n, Reg<U32> tid) {
  TileRows r;
  Reg<U32> last = b.sub(n, 1);
  Reg<U32> first = b.mad_lo(tile, member_tile_rows, tid);
  for (uint32_t k = 0; k < member_items; ++k) {
    Reg<U32> row = k ? b.add(first, k * block_threads) : first;
    r.exists[k] = b.setp(ptx::Compare::lt, row, n);
    r.row[k] = b.min(row, last);
  }
  return r;
}

// The size of the result, by the first thread of the grid, when it is on the device.
void store_size(Builder& b, Parameter slot, Reg<U32> n, Reg<U32> tid) {
  Reg<U64> at = b.ld_param(slot);
  LabelId skip = b.label();
  Reg<U32> number = b.or_(b.special(ptx::SpecialRegister::ctaid_x), tid);
  b.when(b.setp(ptx::Compare::ne, number, 0)).bra(skip);
  b.when(b.setp(ptx::Compare::eq, at, 0)).bra(skip);
  b.st<U64>(Space::global, At(at), b.cvt<U64>(n));
  b.bind(skip);
}

void store_bool(Builder& b, Reg<U64> out, Reg<U32> row, Reg<U32> value, Condition exists) {
  At at = element_at(b, out, row, 1);
  Reg<ptx::U16> byte = b.cvt<ptx::U16>(value);
  b.when(exists).st<ptx::U8>(Space::global, at, byte);
}

// The four elements of y at a shared address, as the registers that compare_elements takes.
std::array<Element, 4> shared_quad(Builder& b, Type type, Reg<U32> at) {
  std::array<Element, 4> quad;
  const auto fill = [&](auto registers, uint32_t first, auto member) {
    for (size_t k = 0; k < registers.size(); ++k) quad[first + k].*member = registers[k], quad[first + k].type = type;
  };
  switch (type) {
    case Type::f32: fill(b.ld_v4<F32>(Space::shared, At(at)), 0, &Element::f32); break;
    case Type::f64:
      for (uint32_t k = 0; k < 4; k += 2) fill(b.ld_v2<F64>(Space::shared, At(at, 8 * k)), k, &Element::f64);
      break;
    case Type::i64:
      for (uint32_t k = 0; k < 4; k += 2) fill(b.ld_v2<U64>(Space::shared, At(at, 8 * k)), k, &Element::u64);
      break;
    default: fill(b.ld_v4<U32>(Space::shared, At(at)), 0, &Element::u32);
  }
  return quad;
}

void store_shared(Builder& b, const Element& e, At at) {
  switch (e.type) {
    case Type::f32: return b.st<F32>(Space::shared, at, e.f32);
    case Type::f64: return b.st<F64>(Space::shared, at, e.f64);
    case Type::i64: return b.st<U64>(Space::shared, at, e.u64);
    default: return b.st<U32>(Space::shared, at, e.u32);
  }
}

uint32_t build_member_loop(ptx::Module& module, std::string_view name, Type type, Type y_type) {
  KernelBuilder b(module, name);
  b.set_block_size(block_threads);
  const VectorParameters x = vector_parameters(b, "x"), y = vector_parameters(b, "y");
  const Parameter out = b.parameter<U64>("out"), out_slot = b.parameter<U64>("out_slot");
  const uint32_t held = is_wide(type) ? 8 : 4;
  const ptx::SharedVariable shared = b.shared<ptx::U8>(std::string(name) + "_y", chunk * held, 16);
  const Thread t = thread_of(b);
  Reg<U32> n = rows_of(b, x.slot, x.capacity), m = rows_of(b, y.slot, y.capacity);
  store_size(b, out_slot, n, t.tid);
  Reg<U64> x_data = b.ld_param(x.data), y_data = b.ld_param(y.data), out_data = b.ld_param(out);
  Reg<Pred> no_y = b.setp(ptx::Compare::eq, m, 0);
  Reg<U32> fresh = b.constant<U32>(1);  // shared memory holds nothing yet
  for_tiles(b, tiles_of(b, n, member_tile_rows), [&](Reg<U32> tile) {
    const TileRows rows = tile_rows_of(b, tile, n, t.tid);
    Element e[member_items];
    Reg<Pred> found[member_items];
    for (uint32_t k = 0; k < member_items; ++k) {
      e[k] = load_element(b, type, element_at(b, x_data, rows.row[k], width(type)));
      found[k] = b.constant<Pred>(false);
    }
    const LabelId compared = b.label(), chunks = b.label(), loaded = b.label(), quads = b.label();
    b.when(no_y).bra(compared);
    Reg<U32> begin = b.constant<U32>(0);
    b.bind(chunks);
    // One chunk stays in shared memory from tile to tile. The places beyond y repeat its last element.
    Reg<U32> reload = b.or_(fresh, b.select<U32>(1, 0, b.setp(ptx::Compare::gt, m, chunk)));
    b.when(b.setp(ptx::Compare::eq, reload, 0)).bra(loaded);
    b.bar_sync();
    Reg<U32> from = b.min(b.add(begin, t.tid), b.sub(m, 1));
    store_shared(b, load_element(b, y_type, element_at(b, y_data, from, width(y_type))),
                 At(b.mad_lo(t.tid, held, b.address_of_32(shared))));
    b.bar_sync();
    b.assign(fresh, 0);
    b.bind(loaded);
    Reg<U32> at = b.address_of_32(shared);
    Reg<U32> end = b.mad_lo(b.min(b.sub(m, begin), chunk), held, at);
    b.bind(quads);
    for (const Element& c : shared_quad(b, type, at))
      for (uint32_t k = 0; k < member_items; ++k) compare_elements(b, Compare::eq, e[k], c, Combine::or_, found[k], found[k]);
    b.add(at, 4 * held, at);
    b.when(b.setp(ptx::Compare::lt, at, end)).bra(quads);
    b.add(begin, chunk, begin);
    b.when(b.setp(ptx::Compare::lt, begin, m)).bra(chunks);
    b.bind(compared);
    for (uint32_t k = 0; k < member_items; ++k)
      store_bool(b, out_data, rows.row[k], b.select<U32>(1, 0, found[k]), rows.exists[k]);
  });
  b.ret();
  b.finish();
  return block_threads;
}

// How many slots a set of n keys gets, on host and device alike.
constexpr uint64_t slots_for(uint64_t n) { return std::min<uint64_t>(2 * n + 1, UINT32_MAX); }

struct TableParameters {
  Parameter flags, slots, capacity, slot;
  KeyParameters key;
};
TableParameters table_parameters(Builder& b, const KeyShape& shape) {
  TableParameters p;
  p.flags = b.parameter<U64>("flags");
  p.slots = b.parameter<U64>("slots");
  p.key = key_parameters(b, shape);
  return p;
}
void add(Arguments& a, const MemberTable& t) {
  a.add(t.flags).add(t.slots);
  add(a, t.layout);
}

uint32_t build_bitmap(ptx::Module& module, std::string_view name, const KeyShape& shape) {
  KernelBuilder b(module, name);
  b.set_block_size(block_threads);
  const VectorParameters y = vector_parameters(b, "y");
  const TableParameters table = table_parameters(b, shape);
  const Thread t = thread_of(b);
  Reg<U32> m = rows_of(b, y.slot, y.capacity);
  Reg<U64> y_data = b.ld_param(y.data), slots = b.ld_param(table.slots);
  const Type type = shape.columns[0].type;
  for_tiles(b, tiles_of(b, m, member_tile_rows), [&](Reg<U32> tile) {
    const TileRows rows = tile_rows_of(b, tile, m, t.tid);
    Key key[member_items];
    for (uint32_t k = 0; k < member_items; ++k) {
      const At at = element_at(b, y_data, rows.row[k], width(type));
      key[k] = make_key(b, shape, table.key, {&at, 1}, rows.exists[k]);
    }
    for (uint32_t k = 0; k < member_items; ++k) {
      Reg<U32> bit = b.shl(b.constant<U32>(1), b.and_(key[k].narrow, 31));
      const At word = element_at(b, slots, b.shr(key[k].narrow, 5), 4);
      b.when(key[k].valid).red<U32>(ptx::AtomicOp::or_, Space::global, word, bit);
    }
  });
  b.ret();
  b.finish();
  return block_threads;
}

uint32_t probe_bitmap(ptx::Module& module, std::string_view name, const KeyShape& shape) {
  KernelBuilder b(module, name);
  b.set_block_size(block_threads);
  const VectorParameters x = vector_parameters(b, "x");
  const TableParameters table = table_parameters(b, shape);
  const Parameter out = b.parameter<U64>("out"), out_slot = b.parameter<U64>("out_slot");
  const Thread t = thread_of(b);
  Reg<U32> n = rows_of(b, x.slot, x.capacity);
  store_size(b, out_slot, n, t.tid);
  Reg<U64> x_data = b.ld_param(x.data), slots = b.ld_param(table.slots), out_data = b.ld_param(out);
  const Type type = shape.columns[0].type;
  for_tiles(b, tiles_of(b, n, member_tile_rows), [&](Reg<U32> tile) {
    const TileRows rows = tile_rows_of(b, tile, n, t.tid);
    Key key[member_items];
    for (uint32_t k = 0; k < member_items; ++k) {
      const At at = element_at(b, x_data, rows.row[k], width(type));
      key[k] = make_key(b, shape, table.key, {&at, 1}, rows.exists[k]);
    }
    Reg<U32> word[member_items];
    for (uint32_t k = 0; k < member_items; ++k) {
      word[k] = b.constant<U32>(0);
      const At at = element_at(b, slots, b.shr(key[k].narrow, 5), 4);
      b.when(key[k].valid).ld<U32>(Space::global, {.cache = ptx::Cache::nc}, at, word[k]);
    }
    for (uint32_t k = 0; k < member_items; ++k) {
      Reg<U32> bit = b.and_(b.shr(word[k], b.and_(key[k].narrow, 31)), 1);
      store_bool(b, out_data, rows.row[k], bit, rows.exists[k]);
    }
  });
  b.ret();
  b.finish();
  return block_threads;
}

// Slots of a set whose keys are T.
template <class T>
Reg<T> key_of(const Key& key) {
  if constexpr (T::size == 4)
    return key.narrow;
  else
    return key.wide;
}

template <class T>
uint32_t build_member_set(ptx::Module& module, std::string_view name, const KeyShape& shape) {
  KernelBuilder b(module, name);
  b.set_block_size(block_threads);
  const VectorParameters y = vector_parameters(b, "y");
  const TableParameters table = table_parameters(b, shape);
  const Thread t = thread_of(b);
  Reg<U32> m = rows_of(b, y.slot, y.capacity);
  Reg<U64> y_data = b.ld_param(y.data), flags = b.ld_param(table.flags), slots = b.ld_param(table.slots);
  Reg<U32> count = b.ld<U32>(Space::global, At(flags, 4));
  const Type type = shape.columns[0].type;
  for_tiles(b, tiles_of(b, m, member_tile_rows), [&](Reg<U32> tile) {
    const TileRows rows = tile_rows_of(b, tile, m, t.tid);
    Key key[member_items];
    for (uint32_t k = 0; k < member_items; ++k) {
      const At at = element_at(b, y_data, rows.row[k], width(type));
      key[k] = make_key(b, shape, table.key, {&at, 1}, rows.exists[k]);
    }
    for (uint32_t k = 0; k < member_items; ++k) {
      const LabelId done = b.label(), probe = b.label();
      Reg<T> own = key_of<T>(key[k]);
      Reg<Pred> zero = b.setp(ptx::Compare::eq, Combine::and_, own, 0, key[k].valid);
      b.when(zero).template st<U32>(Space::global, At(flags), 1);
      b.unless(key[k].valid).bra(done);
      b.when(zero).bra(done);
      Reg<U32> place = place_of(b, hash(b, own), count);
      b.bind(probe);
      const At at = element_at(b, slots, place, T::size);
      Reg<T> old = b.template atom_cas<T>(Space::global, at, 0, own);
      b.when(b.setp(ptx::Compare::eq, old, 0)).bra(done);
      b.when(b.setp(ptx::Compare::eq, old, own)).bra(done);
      next_place(b, place, count);
      b.bra(probe);
      b.bind(done);
    }
  });
  b.ret();
  b.finish();
  return block_threads;
}

template <class T>
uint32_t probe_set(ptx::Module& module, std::string_view name, const KeyShape& shape) {
  KernelBuilder b(module, name);
  b.set_block_size(block_threads);
  const VectorParameters x = vector_parameters(b, "x");
  const TableParameters table = table_parameters(b, shape);
  const Parameter out = b.parameter<U64>("out"), out_slot = b.parameter<U64>("out_slot");
  const Thread t = thread_of(b);
  Reg<U32> n = rows_of(b, x.slot, x.capacity);
  store_size(b, out_slot, n, t.tid);
  Reg<U64> x_data = b.ld_param(x.data), out_data = b.ld_param(out);
  Reg<U64> flags = b.ld_param(table.flags), slots = b.ld_param(table.slots);
  Reg<U32> zero_present = b.ld_nc<U32>(At(flags)), count = b.ld_nc<U32>(At(flags, 4));
  const Type type = shape.columns[0].type;
  for_tiles(b, tiles_of(b, n, member_tile_rows), [&](Reg<U32> tile) {
    const TileRows rows = tile_rows_of(b, tile, n, t.tid);
    Key key[member_items];
    Reg<U32> place[member_items];
    Reg<T> seen[member_items];
    for (uint32_t k = 0; k < member_items; ++k) {
      const At at = element_at(b, x_data, rows.row[k], width(type));
      key[k] = make_key(b, shape, table.key, {&at, 1}, rows.exists[k]);
    }
    // The first probes of all items are under way together; the few that meet another key go on alone.
    for (uint32_t k = 0; k < member_items; ++k) {
      place[k] = place_of(b, hash(b, key_of<T>(key[k])), count);
      seen[k] = b.template constant<T>(0);
      const At at = element_at(b, slots, place[k], T::size);
      b.when(key[k].valid).template ld<T>(Space::global, {.cache = ptx::Cache::nc}, at, seen[k]);
    }
    for (uint32_t k = 0; k < member_items; ++k) {
      const LabelId done = b.label(), probe = b.label();
      Reg<T> own = key_of<T>(key[k]);
      b.bind(probe);
      b.when(b.setp(ptx::Compare::eq, seen[k], 0)).bra(done);
      b.when(b.setp(ptx::Compare::eq, seen[k], own)).bra(done);
      next_place(b, place[k], count);
      b.template ld<T>(Space::global, {.cache = ptx::Cache::nc}, element_at(b, slots, place[k], T::size), seen[k]);
      b.bra(probe);
      b.bind(done);
      Reg<U32> found = b.select<U32>(1, 0, b.setp(ptx::Compare::ne, seen[k], 0));
      Reg<Pred> zero = b.setp(ptx::Compare::eq, Combine::and_, own, 0, key[k].valid);
      found = b.selp(zero_present, found, zero);
      store_bool(b, out_data, rows.row[k], found, rows.exists[k]);
    }
  });
  b.ret();
  b.finish();
  return block_threads;
}

// Zeroes what a set over y needs and leaves the number of its slots: work by the elements that there are, not by the capacity.
uint32_t clear_set(ptx::Module& module, std::string_view name) {
  KernelBuilder b(module, name);
  b.set_block_size(block_threads);
  const VectorParameters y = vector_parameters(b, "y");
  const Parameter flags_at = b.parameter<U64>("flags"), slots_at = b.parameter<U64>("slots");
  const Parameter slot_bytes = b.parameter<U64>("slot_bytes");
  const Thread t = thread_of(b);
  Reg<U32> m = rows_of(b, y.slot, y.capacity);
  Reg<U64> flags = b.ld_param(flags_at), slots = b.ld_param(slots_at);
  Reg<U64> count = b.min(b.add(b.shl(b.cvt<U64>(m), 1), 1), UINT32_MAX);
  Reg<U32> thread = b.mad_lo(b.special(ptx::SpecialRegister::ctaid_x), block_threads, t.tid);
  Reg<U32> step = b.mul_lo(b.special(ptx::SpecialRegister::nctaid_x), block_threads);
  const LabelId loop = b.label(), done = b.label();
  Reg<U32> count32 = b.cvt<U32>(count);
  Reg<Pred> one = b.setp(ptx::Compare::eq, thread, 0);
  b.when(one).st<U32>(Space::global, At(flags), 0);
  b.when(one).st<U32>(Space::global, At(flags, 4), count32);
  // 16 bytes at a time; the memory is rounded up to them.
  Reg<U64> bytes = b.mul_lo(count, b.ld_param(slot_bytes));
  Reg<U64> at = b.shl(b.cvt<U64>(thread), 4), stride = b.shl(b.cvt<U64>(step), 4);
  b.bind(loop);
  b.when(b.setp(ptx::Compare::ge, at, bytes)).bra(done);
  b.st_v4<U32>(Space::global, At(b.add(slots, at)), 0, 0, 0, 0);
  b.add(at, stride, at);
  b.bra(loop);
  b.bind(done);
  b.ret();
  b.finish();
  return block_threads;
}

}  // namespace

Result<MemberTable> build_member(Library& library, const Vector& y, Memory& memory) {
  MemberTable table;
  table.layout = layout_keys({&y, 1});
  const KeyShape& shape = table.layout.shape;
  const uint64_t slot_bytes = shape.form == KeyForm::narrow ? 4 : 8;
  const uint64_t set_bytes = slots_for(y.capacity) * slot_bytes;
  // A bitmap when it is no larger than the set, or small anyway.
  const uint64_t range = shape.form == KeyForm::narrow && !is_float(y.type) ? table.layout.range : 0;
  table.kind = range && range / 8 <= std::max<uint64_t>(set_bytes, 1 << 20) ? MemberTable::bitmap : MemberTable::set;
  const uint64_t tiles = tiles_for(y.capacity, member_tile_rows);
  const std::string suffix = shape.name();
  if (table.kind == MemberTable::bitmap) {
    const uint64_t bytes = (range + 31) / 32 * 4;
    ASSIGN_OR_RETURN(table.slots, memory.temporary(bytes));
    table.flags = table.slots;
    RETURN_IF_ERROR(library.device().fill(table.slots, 0, bytes));
    ASSIGN_OR_RETURN(const Kernel* build,
                     library.kernel("member_bitmap_build_" + suffix, [&](ptx::Module& m, std::string_view name) {
                       return build_bitmap(m, name, shape);
                     }));
    Arguments a;
    add(a, y);
    add(a, table);
    RETURN_IF_ERROR(library.launch(*build, library.grid(*build, tiles), a, y.capacity * width(y.type)));
    return table;
  }
  ASSIGN_OR_RETURN(table.flags, memory.temporary(stored_bytes + (set_bytes + 15) / 16 * 16));
  table.slots = table.flags + stored_bytes;
  ASSIGN_OR_RETURN(const Kernel* clear, library.kernel("member_set_clear", clear_set));
  Arguments c;
  add(c, y);
  c.add(table.flags).add(table.slots).add(slot_bytes);
  RETURN_IF_ERROR(library.launch(*clear, library.grid(*clear, tiles_for(set_bytes, block_threads * 16)), c, set_bytes));
  ASSIGN_OR_RETURN(const Kernel* build,
                   library.kernel("member_set_build_" + suffix, [&](ptx::Module& m, std::string_view name) {
                     return slot_bytes == 4 ? build_member_set<U32>(m, name, shape) : build_member_set<U64>(m, name, shape);
                   }));
  Arguments a;
  add(a, y);
  add(a, table);
  RETURN_IF_ERROR(library.launch(*build, library.grid(*build, tiles), a, y.capacity * width(y.type)));
  return table;
}

Result<Vector> member(Library& library, const Options& options, const Vector& x, const Vector& y, Memory& memory) {
  const Vector both[] = {x, y};
  RETURN_IF_ERROR(check_rows(both));
  if (!are_comparable(x.type, y.type))
    return input_error("member compares elements of one type, got {} and {}", type_name(x.type), type_name(y.type));
  Vector out{.type = Type::u8, .capacity = x.capacity, .min = 0, .max = 1};
  ASSIGN_OR_RETURN(out.data, memory.result(x.capacity));
  if (x.size_slot) {
    ASSIGN_OR_RETURN(out.size_slot, memory.result(8));
  }
  if (x.capacity == 0 && !x.size_slot) return out;
  const uint64_t tiles = tiles_for(x.capacity, member_tile_rows), floor = x.capacity * (width(x.type) + 1);
  Arguments a;
  const bool loop = options.member == Options::Member::loop ||
                    (options.member == Options::Member::automatic && y.capacity <= largest_loop);
  if (loop || y.capacity == 0) {
    ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel(fmt::format("member_loop_{}_{}", type_name(x.type), type_name(y.type)),
                                                          [&](ptx::Module& m, std::string_view name) {
                                                            return build_member_loop(m, name, x.type, y.type);
                                                          }));
    add(a, x);
    add(a, y);
    a.add(out.data).add(out.size_slot);
    RETURN_IF_ERROR(library.launch(*kernel, library.grid(*kernel, tiles), a, floor));
    return out;
  }
  ASSIGN_OR_RETURN(const MemberTable table, build_member(library, y, memory));
  KeyShape shape = table.layout.shape;
  shape.columns[0].type = x.type;
  const std::string suffix = shape.name();
  const bool bitmap = table.kind == MemberTable::bitmap;
  ASSIGN_OR_RETURN(const Kernel* probe, library.kernel((bitmap ? "member_bitmap_probe_" : "member_set_probe_") + suffix,
                                                       [&](ptx::Module& m, std::string_view name) {
                                                         if (bitmap) return probe_bitmap(m, name, shape);
                                                         return shape.form == KeyForm::narrow
                                                                    ? probe_set<U32>(m, name, shape)
                                                                    : probe_set<U64>(m, name, shape);
                                                       }));
  add(a, x);
  add(a, table);
  a.add(out.data).add(out.size_slot);
  RETURN_IF_ERROR(library.launch(*probe, library.grid(*probe, tiles), a, floor));
  return out;
}

}  // namespace rndn::operators
