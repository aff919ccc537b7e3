// Keys: foreign keys made into row numbers, and the check that keys repeat nowhere.
//
// Foreign keys: the parent's keys become an array of rows (keys that are dense) or an open-addressed hash table, and all threads
// look their share of the child's values up. O(parent + child). Repeated keys: a hash table of rows that compares the keys of those
// that meet; 8 bytes per row at most, O(rows).
#include "runtime/data/keys.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <functional>
#include <tuple>
#include <unordered_map>

#include "libraries/base/system/parallel.h"

namespace rndn::data {

namespace {

int64_t integer_at(const Column& column, uint64_t row) {
  switch (column.width) {
    case 1: return column.as<int8_t>()[row];
    case 2: return column.as<int16_t>()[row];
    case 4: return column.as<int32_t>()[row];
    default: return column.as<int64_t>()[row];
  }
}

}  // namespace

std::string value_text(const Column& column, uint64_t row) {
  if (column.encoding != Encoding::plain) return fmt::format("`{}`", column.text_at(row));
  if (column.type == hir::BasicType::f32) return fmt::format("{}", column.as<float>()[row]);
  if (column.type == hir::BasicType::f64) return fmt::format("{}", column.as<double>()[row]);
  return fmt::format("{}", integer_at(column, row));
}

uint64_t first_missing(const Column& column) {
  if (!column.validity || hir::is_text(column.type)) return no_row;
  const Bytes& valid = *column.validity;
  const auto at = std::find(valid.begin(), valid.end(), std::byte{0});
  return at == valid.end() ? no_row : static_cast<uint64_t>(at - valid.begin());
}

namespace {

// Rows by integer key. Keys repeat nowhere.
class IntegerKeys {
 public:
  // The row of a repeated key, or none.
  uint64_t build(const Column& parent) {
    const Statistics& s = parent.statistics;
    dense_ = s.known && s.dense;
    first_ = s.min;
    if (dense_) {
      rows_.resize(parent.rows);
      for (uint64_t row = 0; row < parent.rows; ++row)
        rows_[static_cast<uint64_t>(integer_at(parent, row) - first_)] = row;
      return no_row;
    }
    size_t slots = 16;
    while (slots < parent.rows * 2) slots *= 2;
    keys_.resize(slots);
    rows_.assign(slots, no_row);
    for (uint64_t row = 0; row < parent.rows; ++row) {
      int64_t key = integer_at(parent, row);
      size_t slot = slot_of(key);
      if (rows_[slot] != no_row) return row;
      keys_[slot] = key;
      rows_[slot] = row;
    }
    return no_row;
  }
  uint64_t find(int64_t key) const {
    if (!dense_) return rows_[slot_of(key)];
    uint64_t at = static_cast<uint64_t>(key) - static_cast<uint64_t>(first_);
    return at < rows_.size() ? rows_[at] : no_row;
  }

 private:
  // The slot of the key, or the free one where it would go.
  size_t slot_of(int64_t key) const {
    size_t mask = rows_.size() - 1;
    uint64_t hash = static_cast<uint64_t>(key) * 0x9e3779b97f4a7c15u;
    size_t slot = (hash ^ hash >> 32) & mask;
    while (rows_[slot] != no_row && keys_[slot] != key) slot = (slot + 1) & mask;
    return slot;
  }
  bool dense_ = false;
  int64_t first_ = 0;
  std::vector<int64_t> keys_;
  std::vector<uint64_t> rows_;  // none: free
};

class TextKeys {
 public:
  uint64_t build(const Column& parent) {
    for (uint64_t row = 0; row < parent.rows; ++row)
      if (!rows_.emplace(parent.text_at(row), row).second) return row;
    return no_row;
  }
  uint64_t find(std::string_view key) const {
    auto it = rows_.find(key);
    return it == rows_.end() ? no_row : it->second;
  }

 private:
  std::unordered_map<std::string_view, uint64_t> rows_;
};

// Looks every row of `child` up; the first that has no match, or none.
template <class Find>
uint64_t look_up(const Column& child, uint64_t parent_rows, Bytes& out, Find&& find,
                 unsigned threads) {
  const bool narrow = foreign_row_width(parent_rows) == 4;
  constexpr uint64_t rows_per_part = 1 << 18;
  std::atomic<uint64_t> first_missing{no_row};
  auto body = [&](size_t part) {
    for (uint64_t row = part * rows_per_part, end = std::min(row + rows_per_part, child.rows); row < end; ++row) {
      uint64_t found = find(row);
      if (found == no_row) {
        for (uint64_t seen = first_missing; row < seen && !first_missing.compare_exchange_weak(seen, row);) {
        }
        return;
      }
      if (narrow)
        reinterpret_cast<uint32_t*>(out.data())[row] = static_cast<uint32_t>(found);
      else
        reinterpret_cast<uint64_t*>(out.data())[row] = found;
    }
  };
  parallel_for((child.rows + rows_per_part - 1) / rows_per_part, body, threads);
  return first_missing;
}

}  // namespace

Result<std::shared_ptr<Bytes>> find_foreign_rows(const Column& child, const Column& parent,
                                                                  const ForeignKeyNames& names,
                                                                  const Describe& describe, unsigned threads) {
  for (const auto& [column, name, in_parent] :
       {std::tuple(&parent, names.parent, true), std::tuple(&child, names.child, false)})
    if (const uint64_t row = first_missing(*column); row != no_row)
      return input_error("{}: `{}` has no value here; keys need one", describe(in_parent, row), name);
  auto rows = std::make_shared<Bytes>(child.rows * foreign_row_width(parent.rows));
  uint64_t repeated, missing = no_row;
  if (child.encoding == Encoding::plain) {
    IntegerKeys keys;
    repeated = keys.build(parent);
    if (repeated == no_row)
      missing = look_up(
          child, parent.rows, *rows, [&](uint64_t row) { return keys.find(integer_at(child, row)); }, threads);
  } else {
    TextKeys keys;
    repeated = keys.build(parent);
    if (repeated == no_row)
      missing = look_up(
          child, parent.rows, *rows, [&](uint64_t row) { return keys.find(child.text_at(row)); }, threads);
  }
  if (repeated != no_row)
    return input_error("{}: {} stands a second time in `{}`, which `{}` refers to", describe(true, repeated),
                       value_text(parent, repeated), names.parent, names.child);
  if (missing != no_row)
    return input_error("{}: {} of `{}` is not in `{}`, to which schema.json says that it refers: without that "
                       "foreign key an outer join keeps the row", describe(false, missing), value_text(child, missing),
                       names.child, names.parent);
  return rows;
}

namespace {

// Bits that are equal exactly where elements of a column that is no text are.
uint64_t bits_at(const Column& column, uint64_t row) {
  if (column.type == hir::BasicType::f32) return std::bit_cast<uint32_t>(column.as<float>()[row] + 0.0f);
  if (column.type == hir::BasicType::f64) return std::bit_cast<uint64_t>(column.as<double>()[row] + 0.0);
  return static_cast<uint64_t>(integer_at(column, row));
}

bool is_bare_text(const Column& column) { return column.encoding == Encoding::text; }

uint64_t hash_at(std::span<const Column* const> key, uint64_t row) {
  uint64_t hash = 0;
  for (const Column* column : key) {
    const uint64_t own = is_bare_text(*column) ? std::hash<std::string_view>()(column->text_at(row))
                         : column->encoding == Encoding::dictionary
                             ? std::hash<const char*>()(column->text_at(row).data())  // equal texts are one
                             : bits_at(*column, row);
    hash = (hash ^ own) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  }
  return hash;
}

bool equal_at(std::span<const Column* const> key, uint64_t a, uint64_t b) {
  return std::all_of(key.begin(), key.end(), [&](const Column* column) {
    return column->encoding == Encoding::plain ? bits_at(*column, a) == bits_at(*column, b)
                                               : column->text_at(a) == column->text_at(b);
  });
}

}  // namespace

uint64_t first_repeated(std::span<const Column* const> key) {
  if (std::any_of(key.begin(), key.end(), [](const Column* c) { return c->statistics.unique; })) return no_row;
  const uint64_t rows = key[0]->rows;
  std::vector<uint32_t> slots(std::bit_ceil(std::max<uint64_t>(rows, 8) * 2), UINT32_MAX);
  const uint64_t mask = slots.size() - 1;
  for (uint64_t row = 0; row < rows; ++row) {
    uint64_t at = hash_at(key, row) & mask;
    for (; slots[at] != UINT32_MAX; at = (at + 1) & mask)
      if (equal_at(key, slots[at], row)) return row;
    slots[at] = static_cast<uint32_t>(row);  // below longest_vector
  }
  return no_row;
}

}  // namespace rndn::data
