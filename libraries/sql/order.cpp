// order, group, unique: sorts of rows and what is read off them (sql.h).
//
// order         bounds, pack, sweeps (radix_sort.cpp).
// group         the same, then the runs of equal keys (runs.cpp).
// unique        as group; the rows that start runs are marked, and the marked rows gathered in row order.
// unique_cells  unique of (cell, value); rows become positions in their cells.
#include "libraries/base/check.h"
#include "libraries/sql/operators.h"
#include "libraries/sql/runs.h"

namespace rndn::sql {

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

std::vector<Part> parts_of(std::span<const Vector> columns, std::span<const bool> ascending) {
  std::vector<Part> parts;
  for (size_t k = 0; k < columns.size(); ++k) parts.push_back(make_part(columns[k], ascending.empty() || ascending[k]));
  return parts;
}

}  // namespace

Result<Vector> order(Library& library, std::span<const Vector> columns, std::span<const bool> ascending,
                     Memory& memory) {
  CHECK(columns.size() == ascending.size());
  if (columns.empty()) return input_error("`order` needs at least one column");
  const Rows rows = rows_of(columns);
  RETURN_IF_ERROR(check_rows(rows));
  std::vector<Part> parts = parts_of(columns, ascending);
  ASSIGN_OR_RETURN(uint64_t n, find_bounds(library, rows, parts, memory));
  if (n == 0) return empty_vector(memory);
  ASSIGN_OR_RETURN(Sorted sorted, radix_sort(library, pack_words(parts), n, false, 0, memory));
  return rows_vector(sorted.rows, n);
}

Result<Groups> group(Library& library, std::span<const Vector> columns, Memory& memory) {
  if (columns.empty()) return input_error("`group` needs at least one column");
  const Rows rows = rows_of(columns);
  RETURN_IF_ERROR(check_rows(rows));
  std::vector<Part> parts = parts_of(columns, {});
  ASSIGN_OR_RETURN(uint64_t n, find_bounds(library, rows, parts, memory));
  Groups out;
  ASSIGN_OR_RETURN(out.rows.offsets, memory.result(8 * (n + 1)));
  if (n == 0) {
    RETURN_IF_ERROR(library.device().fill(out.rows.offsets, 0, 8));
    ASSIGN_OR_RETURN(out.keys, empty_vector(memory));
    ASSIGN_OR_RETURN(out.rows.elements, empty_vector(memory));
    return out;
  }
  ASSIGN_OR_RETURN(Address keys, memory.result(8 * n));
  ASSIGN_OR_RETURN(Sorted sorted, radix_sort(library, pack_words(parts), n, true, run_words(n), memory));
  ASSIGN_OR_RETURN(out.rows.count,
                   find_runs(library, Runs::groups, sorted, parts, n, keys, out.rows.offsets, 0, memory));
  out.keys = rows_vector(keys, out.rows.count);
  out.keys.max = static_cast<int64_t>(n) - 1;
  out.rows.elements = rows_vector(sorted.rows, n);
  return out;
}

Result<Vector> unique(Library& library, const Vector& column, Memory& memory) {
  const Rows rows = rows_of({&column, 1});
  RETURN_IF_ERROR(check_rows(rows));
  std::vector<Part> parts{make_part(column, true)};
  ASSIGN_OR_RETURN(uint64_t n, find_bounds(library, rows, parts, memory));
  if (n == 0) return empty_vector(memory);
  ASSIGN_OR_RETURN(Address out, memory.result(8 * n));
  ASSIGN_OR_RETURN(Sorted sorted, radix_sort(library, pack_words(parts), n, true, run_words(n), memory));
  ASSIGN_OR_RETURN(uint64_t count, first_rows(library, sorted, parts, n, out, memory));
  Vector v = rows_vector(out, count);
  v.max = static_cast<int64_t>(n) - 1;
  return v;
}

}  // namespace rndn::sql
