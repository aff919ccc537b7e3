// Relational algebra over relations of several columns: select, project, product, join, union, intersection, difference.
//
// And index_of, which asks the same table for the row numbers themselves.
// Made of the pieces of the joins. A table over one relation (join_table.cpp) is asked for the rows of another or of itself:
//   semi   rows that are in the table            intersection
//   anti   rows that are not                     difference
//   first  rows that are the first of their kind distinct: the table keeps the smallest of equal rows
// Each is one pass over the rows that writes the numbers of those that are kept, in order, at positions from a look-back over the tiles;
// then the columns are gathered, a launch per column. `select`, which keeps the rows of a mask, is select.cpp.
// Cost: O(rows) per operator; product streams, the others pay one random access per row for the table.
// Sets that are sorted need no table: sorted_sets.cpp.
// Leaves out: keeping the columns in the pass that finds the rows.
#include <algorithm>

#include "libraries/operators/joins/join.h"
#include "libraries/operators/operators.h"

namespace rndn::operators {

namespace {

constexpr uint32_t relation_items = 4;
constexpr uint32_t relation_tile_rows = block_threads * relation_items;
constexpr uint32_t relation_warps = block_threads / 32;

enum class Keep : uint8_t { semi, anti, first };
const char* keep_name(Keep keep) {
  static constexpr const char* names[] = {"semi_", "anti_", "first_"};
  return names[static_cast<size_t>(keep)];
}

// Numbers of the rows to keep, ascending. counts: only how many there are.
uint32_t build_keep(ptx::Module& module, std::string_view name, const JoinShape& shape, JoinTable::Kind kind, Keep keep,
                    bool counts) {
  KernelBuilder b(module, name);
  b.set_block_size(block_threads);
  SideCode left = side_code(b, "left", shape, shape.left_single),
           probe = side_code(b, "probe", shape, shape.right_single);
  TableCode table = table_code(b, shape, kind);
  const Parameter ticket_at = b.parameter<U64>("ticket"), words_at = b.parameter<U64>("words");
  const Parameter out_at = b.parameter<U64>("out"), total_at = b.parameter<U64>("total");
  const ptx::SharedVariable shared = b.shared<U64>(std::string(name) + "_shared", 8, 16);
  const Thread t = thread_of(b);
  probe.start(b);
  left.start(b);
  table.start(b);
  Reg<U32> tiles = tiles_of(b, probe.rows, relation_tile_rows), last = b.sub(probe.rows, 1);
  const LabelId next = b.label(), done = b.label();
  b.bind(next);
  Reg<U32> tile = take_tile(b, shared, b.ld_param(ticket_at), t);
  b.when(b.setp(Is::ge, tile, tiles)).bra_uni(done);
  Reg<U32> first = b.add(b.mad_lo(tile, relation_tile_rows, b.mul_lo(t.warp, 32 * relation_items)), t.lane);
  std::vector<Reg<U32>> rows;
  std::vector<Reg<Pred>> kept;
  std::vector<Key> keys;
  for (uint32_t k = 0; k < relation_items; ++k) {
    Reg<U32> row = b.add(first, 32 * k);
    kept.push_back(b.setp(Is::lt, row, probe.rows));
    rows.push_back(b.min(row, last));
    keys.push_back(row_key(b, shape, table, probe, rows[k], kept[k]));
  }
  const std::vector<Found> found = find_rows(b, shape, table, left, probe, rows, keys);
  for (uint32_t k = 0; k < relation_items; ++k) {
    if (keep == Keep::semi) {
      kept[k] = found[k].hit;
    } else if (keep == Keep::anti) {
      b.and_(kept[k], b.not_(found[k].hit), kept[k]);
    } else {  // a row with a NaN equals none, not even itself
      Reg<Pred> other = b.setp(Is::ne, ptx::Combine::and_, found[k].row, rows[k], found[k].hit);
      b.and_(kept[k], b.not_(other), kept[k]);
    }
  }
  std::vector<Reg<U32>> masks;
  for (Reg<Pred> keeps : kept) masks.push_back(b.ballot(keeps));
  const BlockSum sum = count_kept(b, t, masks, relation_warps, shared, 16);
  Reg<U64> before = look_back(b, t, tile, tiles, sum.total, b.ld_param(words_at), b.ld_param(total_at), At(shared, 8));
  Reg<U64> out = b.add(b.ld_param(out_at), b.shl(b.add(before, b.cvt<U64>(sum.before)), 2));
  if (!counts)
    for_kept(b, t, masks, b.constant<U32>(0), [&](size_t k, Reg<U32> position, Reg<Pred> writes) {
      const At to = element_at(b, out, position, 4);
      store_if<U32>(b, writes, Space::global, to, rows[k]);
    });
  b.bra(next);
  b.bind(done);
  b.ret();
  b.finish();
  return block_threads;
}

// Per row of the probe side the first equal row of the left side, or the number of its rows; i64.
uint32_t build_first_row(ptx::Module& module, std::string_view name, const JoinShape& shape, JoinTable::Kind kind) {
  KernelBuilder b(module, name);
  b.set_block_size(block_threads);
  SideCode left = side_code(b, "left", shape, shape.left_single),
           probe = side_code(b, "probe", shape, shape.right_single);
  TableCode table = table_code(b, shape, kind);
  const Parameter out_at = b.parameter<U64>("out");
  const Thread t = thread_of(b);
  probe.start(b);
  left.start(b);
  table.start(b);
  Reg<U64> out = b.ld_param(out_at);
  Reg<U32> last = b.sub(probe.rows, 1);
  for_tiles(b, tiles_of(b, probe.rows, relation_tile_rows), [&](Reg<U32> tile) {
    std::vector<Reg<U32>> at, rows;
    std::vector<Key> keys;
    Reg<U32> first = b.mad_lo(tile, relation_tile_rows, t.tid);
    for (uint32_t k = 0; k < relation_items; ++k) {
      at.push_back(k ? b.add(first, k * block_threads) : first);
      rows.push_back(b.min(at[k], last));
      keys.push_back(row_key(b, shape, table, probe, rows[k], b.setp(Is::lt, at[k], probe.rows)));
    }
    const std::vector<Found> found = find_rows(b, shape, table, left, probe, rows, keys);
    for (uint32_t k = 0; k < relation_items; ++k) {
      Reg<U64> row = b.cvt<U64>(b.selp(found[k].row, left.rows, found[k].hit));
      const At to = element_at(b, out, at[k], 8);
      store_if<U64>(b, b.setp(Is::lt, at[k], probe.rows), Space::global, to, row);
    }
  });
  b.ret();
  b.finish();
  return block_threads;
}

// out[k] = column[rows[k]]. I: the type of the row numbers.
template <class I>
uint32_t build_gather(ptx::Module& module, std::string_view name, uint32_t bytes) {
  KernelBuilder b(module, name);
  b.set_block_size(block_threads);
  const Parameter column_at = b.parameter<U64>("column"), rows_at = b.parameter<U64>("rows");
  const Parameter count_at = b.parameter<U64>("count"), out_at = b.parameter<U64>("out");
  const Thread t = thread_of(b);
  Reg<U64> column = b.ld_param(column_at), rows = b.ld_param(rows_at), out = b.ld_param(out_at);
  Reg<U32> n = b.cvt<U32>(b.ld_param(count_at)), last = b.sub(n, 1);
  for_tiles(b, tiles_of(b, n, relation_tile_rows), [&](Reg<U32> tile) {
    with_width(bytes, [&]<class T>() {
      Reg<U32> at[relation_items], from[relation_items];
      Reg<ptx::RegisterTag<T>> value[relation_items];
      for (uint32_t k = 0; k < relation_items; ++k) {
        at[k] = b.add(b.mad_lo(tile, relation_tile_rows, t.tid), k * block_threads);
        auto row = b.ld_nc<I>(element_at(b, rows, b.min(at[k], last), I::size));
        if constexpr (I::size == 8)
          from[k] = b.cvt<U32>(row);
        else
          from[k] = row;
      }
      for (uint32_t k = 0; k < relation_items; ++k) value[k] = b.ld_nc<T>(element_at(b, column, from[k], bytes));
      for (uint32_t k = 0; k < relation_items; ++k) {
        const At to = element_at(b, out, at[k], bytes);
        store_if<T>(b, b.setp(Is::lt, at[k], n), Space::global, to, value[k]);
      }
    });
  });
  b.ret();
  b.finish();
  return block_threads;
}

// A column of a product with `repeat` rows on the faster side: element k of the result is column[k % repeat] (inner) or column[k / repeat].
uint32_t build_product(ptx::Module& module, std::string_view name, uint32_t bytes, bool inner) {
  KernelBuilder b(module, name);
  b.set_block_size(block_threads);
  const Parameter column_at = b.parameter<U64>("column"), repeat_at = b.parameter<U64>("repeat");
  const Parameter count_at = b.parameter<U64>("count"), out_at = b.parameter<U64>("out");
  const Thread t = thread_of(b);
  Reg<U64> column = b.ld_param(column_at), out = b.ld_param(out_at);
  Reg<U32> n = b.cvt<U32>(b.ld_param(count_at)), repeat = b.cvt<U32>(b.ld_param(repeat_at));
  for_tiles(b, tiles_of(b, n, relation_tile_rows), [&](Reg<U32> tile) {
    with_width(bytes, [&]<class T>() {
      Reg<U32> first = b.mad_lo(tile, relation_tile_rows, t.tid);
      Reg<U32> quotient = b.div(first, repeat);
      Reg<U32> rest = b.sub(first, b.mul_lo(quotient, repeat));
      for (uint32_t k = 0; k < relation_items; ++k) {
        if (k) {  // from element to element the quotient changes little, and mostly not at all
          const LabelId within = b.label();
          b.add(rest, block_threads, rest);
          b.when(b.setp(Is::lt, rest, repeat)).bra(within);
          Reg<U32> more = b.div(rest, repeat);
          b.add(quotient, more, quotient);
          b.sub(rest, b.mul_lo(more, repeat), rest);
          b.bind(within);
        }
        Reg<U32> at = b.add(first, k * block_threads);
        Reg<Pred> exists = b.setp(Is::lt, at, n);
        const At from = element_at(b, column, inner ? rest : quotient, bytes), to = element_at(b, out, at, bytes);
        auto value = b.template constant<ptx::RegisterTag<T>>(0);
        load_if<T>(b, exists, Space::global, from, value, {.cache = ptx::Cache::nc});
        store_if<T>(b, exists, Space::global, to, value);
      }
    });
  });
  b.ret();
  b.finish();
  return block_threads;
}

Result<void> check_same_types(const Relation& left, const Relation& right) {
  if (left.size() != right.size())
    return input_error("relations of {} and {} columns cannot be combined", left.size(), right.size());
  for (size_t c = 0; c < left.size(); ++c)
    if (left[c].type != right[c].type)
      return input_error("column {} of two relations has the types {} and {}", c, type_name(left[c].type),
                         type_name(right[c].type));
  return {};
}

// Rows by number; `wide`: i64 numbers, else u32.
Result<Relation> gather(Library& library, const Relation& relation, Address rows, bool wide, uint64_t count,
                        Memory& memory) {
  Relation out;
  for (const Vector& v : relation) {
    Vector made = v;
    made.size_slot = 0;
    made.capacity = count;
    ASSIGN_OR_RETURN(made.data, memory.result(count * width(v.type)));
    out.push_back(made);
    if (count == 0) continue;
    const uint32_t bytes = width(v.type);
    ASSIGN_OR_RETURN(const Kernel* kernel,
                     library.kernel(fmt::format("relation_gather_{}_{}", bytes, wide ? "i64" : "u32"),
                                    [&](ptx::Module& m, std::string_view name) {
                                      return wide ? build_gather<U64>(m, name, bytes)
                                                  : build_gather<U32>(m, name, bytes);
                                    }));
    Arguments a;
    a.add(v.data).add(rows).add(count).add(made.data);
    RETURN_IF_ERROR(library.launch(*kernel, library.grid(*kernel, tiles_for(count, relation_tile_rows)), a,
                                   count * (2 * bytes + (wide ? 8 : 4))));
  }
  return out;
}

// The rows of `relation` that the table over `other` says, and their columns.
Result<Relation> keep_rows(Library& library, const Relation& relation, const Relation& other, Keep keep,
                           Memory& memory) {
  const uint64_t n = relation[0].capacity;
  if (n == 0) return gather(library, relation, 0, false, 0, memory);
  const uint64_t tiles = tiles_for(n, relation_tile_rows), zero_bytes = 256 + tiles * 8;
  ASSIGN_OR_RETURN(Address zeroed, memory.temporary(zero_bytes));
  ASSIGN_OR_RETURN(device::Mapped total, memory.mapped(8));
  JoinShape shape;
  JoinTable table;
  const KeyLayout layout = layout_keys(other);
  shape.key = layout.shape;
  shape.left_single.assign(other.size(), false);
  shape.right_single = shape.left_single;
  Side left{other, shape.left_single, other[0].capacity}, probe{relation, shape.right_single, n};
  ASSIGN_OR_RETURN(table, build_join(library, shape, layout, left, 0, memory));
  uint64_t count = n;
  Address rows = 0;
  for (const bool counts : {true, false}) {
    if (counts && !memory.counts_first(n * 4)) continue;
    if (!counts) {
      ASSIGN_OR_RETURN(rows, memory.temporary(count * 4));
    }
    RETURN_IF_ERROR(library.device().fill(zeroed, 0, zero_bytes));
    const std::string name = std::string(counts ? "relation_count_" : "relation_") + keep_name(keep) +
                             (table.kind == JoinTable::direct ? "direct_" : "hash_") + shape.name();
    ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel(name, [&](ptx::Module& m, std::string_view called) {
      return build_keep(m, called, shape, table.kind, keep, counts);
    }));
    Arguments a;
    add(a, left);
    add(a, probe);
    add(a, table);
    a.add(zeroed).add(zeroed + 256).add(rows).add(total.address);
    RETURN_IF_ERROR(library.launch(*kernel, library.grid(*kernel, tiles), a, n * 5));
    RETURN_IF_ERROR(library.wait(memory));
    count = *static_cast<const volatile uint64_t*>(total.host);
  }
  return gather(library, relation, rows, false, count, memory);
}

}  // namespace

Result<Relation> exact(Library& library, const Relation& relation) {
  if (relation.empty()) return input_error("a relation needs at least one column");
  RETURN_IF_ERROR(check_rows(relation));
  Relation out = relation;
  uint64_t rows = relation[0].capacity;
  if (relation[0].size_slot) {
    RETURN_IF_ERROR(library.device().copy_to_host(&rows, relation[0].size_slot, 8));
    rows = std::min(rows, relation[0].capacity);
  }
  for (Vector& v : out) {
    if (v.capacity != relation[0].capacity)
      return input_error("the columns of a relation have {} and {} elements", v.capacity, relation[0].capacity);
    v.capacity = rows;
    v.size_slot = 0;
  }
  return out;
}

Result<Relation> project(const Relation& relation, std::span<const uint32_t> columns) {
  Relation out;
  for (uint32_t c : columns) {
    if (c >= relation.size()) return input_error("project to column {} of a relation of {}", c, relation.size());
    out.push_back(relation[c]);
  }
  if (out.empty()) return input_error("a relation needs at least one column");
  return out;
}

Result<Vector> index_of(Library& library, const Vector& x, const Vector& y, Memory& memory) {
  ASSIGN_OR_RETURN(const Relation probe, exact(library, {x}));
  ASSIGN_OR_RETURN(const Relation in, exact(library, {y}));
  RETURN_IF_ERROR(check_same_types(in, probe));
  const uint64_t n = probe[0].capacity, m = in[0].capacity;
  Vector out{.type = Type::i64, .capacity = n, .min = 0, .max = static_cast<int64_t>(m)};
  ASSIGN_OR_RETURN(out.data, memory.result(n * 8));
  if (n == 0) return out;
  if (m == 0) {
    RETURN_IF_ERROR(library.device().fill(out.data, 0, n * 8));
    return out;
  }
  const KeyLayout layout = layout_keys(in);
  JoinShape shape{.key = layout.shape, .rest = {}, .left_single = {false}, .right_single = {false}};
  const Side left{in, shape.left_single, m}, right{probe, shape.right_single, n};
  ASSIGN_OR_RETURN(const JoinTable table, build_join(library, shape, layout, left, 0, memory));
  const std::string name = (table.kind == JoinTable::direct ? "index_of_direct_" : "index_of_hash_") + shape.name();
  ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel(name, [&](ptx::Module& to, std::string_view called) {
    return build_first_row(to, called, shape, table.kind);
  }));
  Arguments a;
  add(a, left);
  add(a, right);
  add(a, table);
  a.add(out.data);
  RETURN_IF_ERROR(library.launch(*kernel, library.grid(*kernel, tiles_for(n, relation_tile_rows)), a, n * (8 + width(x.type))));
  return out;
}

Result<Relation> distinct(Library& library, const Relation& relation, Memory& memory) {
  ASSIGN_OR_RETURN(const Relation r, exact(library, relation));
  return keep_rows(library, r, r, Keep::first, memory);
}

Result<Relation> product(Library& library, const Relation& left, const Relation& right, Memory& memory) {
  ASSIGN_OR_RETURN(const Relation l, exact(library, left));
  ASSIGN_OR_RETURN(const Relation r, exact(library, right));
  const uint64_t inner_rows = l[0].capacity, outer_rows = r[0].capacity;
  if (inner_rows && outer_rows > max_rows / inner_rows)
    return input_error("a product of {} and {} rows has more than {}", inner_rows, outer_rows, max_rows);
  const uint64_t count = inner_rows * outer_rows;
  Relation out;
  for (const Relation* side : {&l, &r})
    for (const Vector& v : *side) {
      const bool inner = side == &l;
      const uint32_t bytes = width(v.type);
      Vector made = v;
      made.capacity = count;
      ASSIGN_OR_RETURN(made.data, memory.result(count * bytes));
      out.push_back(made);
      if (count == 0) continue;
      ASSIGN_OR_RETURN(
          const Kernel* kernel,
          library.kernel(fmt::format("relation_product_{}_{}", bytes, inner ? "inner" : "outer"),
                         [&](ptx::Module& m, std::string_view name) { return build_product(m, name, bytes, inner); }));
      Arguments a;
      a.add(v.data).add(inner_rows).add(count).add(made.data);
      RETURN_IF_ERROR(
          library.launch(*kernel, library.grid(*kernel, tiles_for(count, relation_tile_rows)), a, (count + v.capacity) * bytes));
    }
  return out;
}

Result<Relation> join_relations(Library& library, const Options& options, std::span<const JoinCondition> conditions,
                                const Relation& left, const Relation& right, Memory& memory) {
  ASSIGN_OR_RETURN(const Relation l, exact(library, left));
  ASSIGN_OR_RETURN(const Relation r, exact(library, right));
  std::vector<Compare> compare;
  Relation x, y;
  for (const JoinCondition& c : conditions) {
    if (c.left >= l.size() || c.right >= r.size())
      return input_error("a join by columns {} and {} of relations with {} and {}", c.left, c.right, l.size(),
                         r.size());
    compare.push_back(c.compare);
    x.push_back(l[c.left]);
    y.push_back(r[c.right]);
  }
  Scratch scratch(memory);
  ASSIGN_OR_RETURN(const Pairs pairs, join(library, options, compare, x, y, scratch));
  const uint64_t count = pairs.left.capacity;
  ASSIGN_OR_RETURN(Relation out, gather(library, l, pairs.left.data, true, count, memory));
  ASSIGN_OR_RETURN(const Relation more, gather(library, r, pairs.right.data, true, count, memory));
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

Result<Relation> unite(Library& library, const Relation& left, const Relation& right, Memory& memory) {
  ASSIGN_OR_RETURN(const Relation l, exact(library, left));
  ASSIGN_OR_RETURN(const Relation r, exact(library, right));
  RETURN_IF_ERROR(check_same_types(l, r));
  if (is_sorted_set(l) && is_sorted_set(r)) return sorted_set(library, SetOperation::unite, l, r, memory);
  Relation both;
  for (size_t c = 0; c < l.size(); ++c) {
    const uint64_t bytes = width(l[c].type), split = l[c].capacity * bytes;
    Vector v{.type = l[c].type, .capacity = l[c].capacity + r[c].capacity};
    if (l[c].known() && r[c].known()) v.min = std::min(l[c].min, r[c].min), v.max = std::max(l[c].max, r[c].max);
    ASSIGN_OR_RETURN(v.data, memory.temporary(v.capacity * bytes));
    RETURN_IF_ERROR(library.device().copy(v.data, l[c].data, split));
    RETURN_IF_ERROR(library.device().copy(v.data + split, r[c].data, r[c].capacity * bytes));
    both.push_back(v);
  }
  RETURN_IF_ERROR(check_rows(both));
  return keep_rows(library, both, both, Keep::first, memory);
}

Result<Relation> intersect(Library& library, const Relation& left, const Relation& right, Memory& memory) {
  ASSIGN_OR_RETURN(const Relation l, exact(library, left));
  ASSIGN_OR_RETURN(const Relation r, exact(library, right));
  RETURN_IF_ERROR(check_same_types(l, r));
  if (is_sorted_set(l) && is_sorted_set(r)) return sorted_set(library, SetOperation::intersect, l, r, memory);
  Scratch scratch(memory);
  ASSIGN_OR_RETURN(const Relation common, keep_rows(library, l, r, Keep::semi, scratch));
  return keep_rows(library, common, common, Keep::first, memory);
}

Result<Relation> subtract(Library& library, const Relation& left, const Relation& right, Memory& memory) {
  ASSIGN_OR_RETURN(const Relation l, exact(library, left));
  ASSIGN_OR_RETURN(const Relation r, exact(library, right));
  RETURN_IF_ERROR(check_same_types(l, r));
  if (is_sorted_set(l) && is_sorted_set(r)) return sorted_set(library, SetOperation::subtract, l, r, memory);
  Scratch scratch(memory);
  ASSIGN_OR_RETURN(const Relation rest, keep_rows(library, l, r, Keep::anti, scratch));
  return keep_rows(library, rest, rest, Keep::first, memory);
}

}  // namespace rndn::operators
