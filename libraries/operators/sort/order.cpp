// order, top, group, unique: sorts of rows and what is read off them (operators/api.h).
//
// Up to 2,048 rows: one launch (small_sort.cpp), and one wait where the host must know a size. Where the number of rows is on the device
// that launch comes first and tells it, so that more rows cost one wait more. More than 2,048 rows:
// order         bounds, pack, sweeps (radix_sort.cpp).
// top           rows are selected (top.cpp), or the order of all is cut.
// group         the same as order, then the runs of equal keys (runs.cpp); or rows by the numbers that a hash table gives their groups (hash_groups.cpp).
// unique        as group; the rows that start runs are marked, and the marked rows gathered in row order.
// unique_cells  unique of (cell, value); rows become positions in their cells.
#include "libraries/base/errors/check.h"
#include "libraries/operators/emit.h"
#include "libraries/operators/groups/hash_groups.h"
#include "libraries/operators/groups/runs.h"
#include "libraries/operators/operators.h"
#include "libraries/operators/ready.h"
#include "libraries/operators/sort/small_sort.h"
#include "libraries/operators/sort/top.h"

namespace rndn::operators {

namespace {

Vector rows_vector(Address data, uint64_t n) {
  Vector v{.type = Type::i64, .data = data, .capacity = n};
  if (n) v.min = 0, v.max = static_cast<int64_t>(n) - 1;
  return v;
}

Result<Vector> empty_vector(Memory& memory) {
  ASSIGN_OR_RETURN(Address data, memory.result(8));
  return rows_vector(data, 0);
}

// Columns whose rows are in groups as they lie: raw elements tell where runs start.
bool is_ascending(std::span<const Vector> columns) {
  if (columns.size() != 1 || !columns[0].ascending) return false;
  const Type t = columns[0].type;
  return t == Type::i32 || t == Type::u32 || t == Type::i64;
}

constexpr uint32_t numbers_block = 256, numbers_items = 4;

// numbers[i] = i, as i64; zeroes `words` u64s.
uint32_t build_order_numbers(ptx::Module& module, std::string_view name) {
  KernelBuilder b(module, name);
  Param p_n = b.parameter<U64>("n"), p_numbers = b.parameter<U64>("numbers"), p_words = b.parameter<U64>("words"),
        p_count = b.parameter<U64>("count");
  b.set_block_size(numbers_block);
  Reg<U64> at = b.cvt<U64>(
      b.mad_lo(b.special(ptx::SpecialRegister::ctaid_x), numbers_block, b.special(ptx::SpecialRegister::tid_x)));
  Reg<U64> step = b.mul_wide(b.special(ptx::SpecialRegister::nctaid_x), numbers_block);
  Reg<U64> n = b.ld_param(p_n), numbers = b.ld_param(p_numbers), words = b.ld_param(p_words),
           count = b.ld_param(p_count);
  const ptx::LabelId loop = b.label(), done = b.label();
  b.bind(loop);
  b.when(b.setp(Is::ge, at, n)).bra(done);
  b.st<U64>(Space::global, At(b.add(numbers, b.shl(at, 3u))), at);
  store_if<U64>(b, b.setp(Is::lt, at, count), Space::global, At(b.add(words, b.shl(at, 3u))), b.constant<U64>(0));
  b.add(at, step, at);
  b.bra(loop);
  b.bind(done);
  b.ret();
  b.finish();
  return numbers_block;
}

// What a sort of n >= 1 ascending rows gives, without one. There are no more scan words than rows.
Result<Sorted> take_ascending(Library& library, const Vector& column, uint64_t n, Memory& memory) {
  Sorted out{.keys = column.data, .wide = width(column.type) == 8, .complete = true};
  ASSIGN_OR_RETURN(out.rows, memory.result(8 * n));
  ASSIGN_OR_RETURN(out.words, memory.temporary(8 * run_words(n)));
  ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel("numbers", build_order_numbers));
  Arguments a;
  a.add(n).add(out.rows).add(out.words).add(run_words(n));
  const uint64_t tile = numbers_block * numbers_items;
  RETURN_IF_ERROR(library.launch(*kernel, library.grid(*kernel, (n + tile - 1) / tile), a, 8 * n));
  return out;
}

std::vector<Part> order_parts_of(std::span<const Vector> columns, std::span<const bool> ascending) {
  std::vector<Part> parts;
  for (size_t k = 0; k < columns.size(); ++k) parts.push_back(make_part(columns[k], ascending.empty() || ascending[k]));
  return parts;
}

// Few rows, or perhaps few: the number is on the device.
bool try_small(const Library& library, const Rows& rows, std::span<const Part> parts) {
  return library.options.sort != Options::Sort::bitonic && parts.size() <= small_parts &&
         (rows.size_slot || rows.capacity <= small_rows);
}

// Sorts what may be few rows, and waits. `rows` gets the number of rows, exact, whether they were few or not.
struct SmallSort {
  bool done = false;
  uint64_t found = 0;  // groups
  SmallResults results;
};
Result<SmallSort> sort_few(Library& library, Small kind, Rows& rows, std::span<const Part> parts, Memory& memory) {
  SmallSort out;
  uint64_t most = std::min(rows.capacity, small_rows), groups = most;
  if (memory.counts_first(8 * (most + 1)) && (kind != Small::order || rows.size_slot)) {
    ASSIGN_OR_RETURN(const SmallCount counted, count_small(library, rows, parts, memory));
    rows = {counted.rows, 0};
    RETURN_IF_ERROR(check_rows(rows));
    if (rows.capacity > small_rows) return out;
    most = std::max<uint64_t>(1, counted.rows), groups = std::max<uint64_t>(1, counted.groups);
  }
  if (kind != Small::unique) {
    ASSIGN_OR_RETURN(out.results.rows, memory.result(8 * most));
  }
  if (kind != Small::order) {
    ASSIGN_OR_RETURN(out.results.first, memory.result(8 * groups));
  }
  if (kind == Small::groups) {
    ASSIGN_OR_RETURN(out.results.offsets, memory.result(8 * (groups + 1)));
  }
  ASSIGN_OR_RETURN(const Question question, library.ask("small_sort", 2, memory));
  out.results.question = &question;
  RETURN_IF_ERROR(sort_small(library, kind, rows, parts, out.results));
  out.results.question = nullptr;
  ASSIGN_OR_RETURN(const uint64_t* words, library.learn(question, memory));
  rows = {words[0], 0};
  RETURN_IF_ERROR(check_rows(rows));
  out.done = rows.capacity <= small_rows;
  out.found = words[1];
  return out;
}

}  // namespace

void add_row_numbers(KernelRows& rows) { rows.push_back({"numbers", build_order_numbers}); }

Result<Vector> order(Library& library, std::span<const Vector> columns, std::span<const bool> ascending,
                     Memory& memory) {
  return top(library, columns, ascending, UINT64_MAX, memory);
}

Result<Vector> top(Library& library, std::span<const Vector> columns, std::span<const bool> ascending, uint64_t most,
                   Memory& memory) {
  CHECK(columns.size() == ascending.size());
  if (columns.empty()) return input_error("`order` needs at least one column");
  Rows rows = rows_of(columns);
  RETURN_IF_ERROR(check_rows(rows));
  if (rows.capacity == 0 || most == 0) return empty_vector(memory);
  std::vector<Part> parts = order_parts_of(columns, ascending);
  const auto first = [&](Address data, uint64_t n) {
    Vector out = rows_vector(data, n);
    out.capacity = std::min(n, most);
    return out;
  };
  // The order of all n rows is no result where fewer are wanted; these are copied from it.
  Scratch scratch(memory);
  const bool sorts_apart = most < rows.capacity && memory.counts_first(8 * rows.capacity);
  Memory& of_sort = sorts_apart ? static_cast<Memory&>(scratch) : memory;
  const auto first_sorted = [&](Address data, uint64_t n) -> Result<Vector> {
    const uint64_t count = std::min(n, most);
    if (!sorts_apart) return first(data, n);
    if (count == 0) return empty_vector(memory);
    ASSIGN_OR_RETURN(const Address copied, memory.result(8 * count));
    RETURN_IF_ERROR(library.device().copy(copied, data, 8 * count));
    return first(copied, n);
  };
  const bool select_always = most < UINT64_MAX && library.options.top == Options::Top::select;
  const bool small = try_small(library, rows, parts) && !select_always;
  if (small && rows.capacity <= small_rows && !memory.counts_first(8 * rows.capacity)) {
    // Nothing to wait for: where the number of rows is on the device, it stays there.
    SmallResults results{.most = most};
    ASSIGN_OR_RETURN(results.rows, memory.result(8 * rows.capacity));
    if (rows.size_slot) {
      ASSIGN_OR_RETURN(results.size_slot, memory.result(8));
    }
    RETURN_IF_ERROR(sort_small(library, Small::order, rows, parts, results));
    Vector out = first(results.rows, rows.capacity);
    out.size_slot = results.size_slot;
    return out;
  }
  if (small) {
    ASSIGN_OR_RETURN(SmallSort few, sort_few(library, Small::order, rows, parts, of_sort));
    if (few.done) return first_sorted(few.results.rows, rows.capacity);
  }
  if (most < UINT64_MAX && library.options.top != Options::Top::sort && parts.size() <= small_parts) {
    std::vector<Part> none;
    ASSIGN_OR_RETURN(rows.capacity, find_bounds(library, rows, none, memory));
    rows.size_slot = 0;
    if (rows.capacity == 0) return empty_vector(memory);
    if (most < rows.capacity) {
      ASSIGN_OR_RETURN(const std::optional<Address> selected, select_top(library, parts, rows.capacity, most, memory));
      if (selected) return first(*selected, rows.capacity);
    }
  }
  ASSIGN_OR_RETURN(uint64_t n, find_bounds(library, rows, parts, memory));
  if (n == 0) return empty_vector(memory);
  ASSIGN_OR_RETURN(Sorted sorted, sort_rows(library, pack_words(parts), n, false, 0, of_sort));
  return first_sorted(sorted.rows, n);
}

Result<Groups> group(Library& library, std::span<const Vector> columns, Memory& memory) {
  if (columns.empty()) return input_error("`group` needs at least one column");
  Rows rows = rows_of(columns);
  RETURN_IF_ERROR(check_rows(rows));
  std::vector<Part> parts = order_parts_of(columns, {});
  Groups out;
  const auto finish = [&](Address keys, Address elements, uint64_t n) {
    out.keys = rows_vector(keys, out.rows.count);
    if (out.rows.count) out.keys.max = static_cast<int64_t>(n) - 1;
    out.rows.elements = rows_vector(elements, n);
  };
  const bool hash = library.options.group == Options::Group::hash && !library.options.ordered;
  if (rows.capacity > 0 && !hash && try_small(library, rows, parts)) {
    ASSIGN_OR_RETURN(SmallSort small, sort_few(library, Small::groups, rows, parts, memory));
    if (small.done) {
      out.rows.offsets = small.results.offsets;
      out.rows.count = small.found;
      finish(small.results.first, small.results.rows, rows.capacity);
      return out;
    }
  }
  std::vector<Part> none;  // an ascending column and a hash table need no bounds
  const bool needs_bounds = !hash && !is_ascending(columns);
  ASSIGN_OR_RETURN(uint64_t n, find_bounds(library, rows, needs_bounds ? parts : none, memory));
  if (n == 0) {
    ASSIGN_OR_RETURN(out.rows.offsets, memory.result(8));
    RETURN_IF_ERROR(library.device().fill(out.rows.offsets, 0, 8));
    ASSIGN_OR_RETURN(out.keys, empty_vector(memory));
    ASSIGN_OR_RETURN(out.rows.elements, empty_vector(memory));
    return out;
  }
  Sorted sorted;
  if (is_ascending(columns)) {
    ASSIGN_OR_RETURN(sorted, take_ascending(library, columns[0], n, memory));
  } else if (hash) {
    ASSIGN_OR_RETURN(sorted, hash_rows(library, parts, n, run_words(n), memory));
  } else {
    ASSIGN_OR_RETURN(sorted, sort_rows(library, pack_words(parts), n, true, run_words(n), memory));
  }
  ASSIGN_OR_RETURN(const Runs runs, find_runs(library, sorted, parts, n, memory));
  out.rows.offsets = runs.offsets, out.rows.count = runs.count;
  finish(runs.first, sorted.rows, n);
  out.keys.ascending = out.rows.elements.ascending = is_ascending(columns);
  return out;
}

Result<Vector> unique(Library& library, const Vector& column, Memory& memory) {
  Rows rows = rows_of({&column, 1});
  RETURN_IF_ERROR(check_rows(rows));
  std::vector<Part> parts{make_part(column, true)};
  const auto finish = [](Address data, uint64_t count, uint64_t n) {
    Vector v = rows_vector(data, count);
    if (count) v.max = static_cast<int64_t>(n) - 1;
    v.ascending = true;
    return v;
  };
  if (rows.capacity > 0 && try_small(library, rows, parts)) {
    ASSIGN_OR_RETURN(SmallSort small, sort_few(library, Small::unique, rows, parts, memory));
    if (small.done) return finish(small.results.first, small.found, rows.capacity);
  }
  if (is_ascending({&column, 1})) parts.clear();
  ASSIGN_OR_RETURN(uint64_t n, find_bounds(library, rows, parts, memory));
  if (n == 0) return empty_vector(memory);
  Scratch scratch(memory);  // the rows in order are no result
  Sorted sorted;
  if (is_ascending({&column, 1})) {
    ASSIGN_OR_RETURN(sorted, take_ascending(library, column, n, scratch));
  } else {
    ASSIGN_OR_RETURN(sorted, sort_rows(library, pack_words(parts), n, true, run_words(n), scratch));
  }
  ASSIGN_OR_RETURN(const Places found, first_rows(library, sorted, parts, n, memory));
  return finish(found.data, found.count, n);
}

}  // namespace rndn::operators
