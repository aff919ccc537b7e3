// The registry of loaded columns, and foreign keys made into row numbers.
//
// Foreign keys: the parent's keys become an array of rows (keys that are dense) or an open-addressed hash table, and all threads
// look their share of the child's values up. O(parent + child).
#include "runtime/data/source.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <unordered_map>

#include "libraries/base/system/parallel.h"

namespace rndn::data {

Result<uint64_t> Source::rows(std::string_view table) {
  ASSIGN_OR_RETURN(const TableSchema* schema, this->schema().table(table));
  const size_t at = schema - this->schema().tables.data();
  std::lock_guard lock(mutex_);
  if (auto known = rows_.find(at); known != rows_.end()) return known->second;
  ASSIGN_OR_RETURN(uint64_t rows, loader_->rows(at));
  rows_[at] = rows;
  return rows;
}

Result<std::shared_ptr<const Column>> Source::column(std::string_view table, std::string_view column) {
  std::string name(column);
  Result<std::vector<std::shared_ptr<const Column>>> found = columns(table, {&name, 1});
  if (!found) return found.error();
  return (*found)[0];
}

Result<std::vector<std::shared_ptr<const Column>>> Source::columns(std::string_view table,
                                                                   std::span<const std::string> names) {
  ASSIGN_OR_RETURN(const TableSchema* schema, this->schema().table(table));
  const size_t at = schema - this->schema().tables.data();
  std::vector<size_t> positions;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(const ColumnSchema* column, this->schema().column(*schema, name));
    positions.push_back(schema->position(*column));
  }
  std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(load(at, positions));
  std::vector<std::shared_ptr<const Column>> found;
  for (size_t position : positions) {
    RETURN_IF_ERROR(resolve(at, position));
    found.push_back(columns_.at({at, position}));
  }
  return found;
}

bool Source::is_loaded(std::string_view table, std::string_view column) const {
  const TableSchema* schema = this->schema().find(table);
  const ColumnSchema* found = schema ? schema->find(column) : nullptr;
  if (!found) return false;
  std::lock_guard lock(mutex_);
  return columns_.contains({schema - this->schema().tables.data(), schema->position(*found)});
}

Result<void> Source::load(size_t table, std::span<const size_t> positions) {
  std::vector<size_t> missing;
  for (size_t position : positions)
    if (!columns_.contains({table, position}) && std::find(missing.begin(), missing.end(), position) == missing.end())
      missing.push_back(position);
  if (missing.empty()) return {};
  ASSIGN_OR_RETURN(std::vector<Column> loaded, loader_->load(table, missing));
  rows_[table] = loaded[0].rows;
  for (size_t i = 0; i < missing.size(); ++i)
    columns_[{table, missing[i]}] = std::make_shared<const Column>(std::move(loaded[i]));
  return {};
}

// Gives a foreign key its row numbers. The parent's key is needed as loaded only, so that keys may refer to each other in a circle.
Result<void> Source::resolve(size_t table, size_t position) {
  const Column& child = *columns_.at({table, position});
  if (!child.is_foreign_key || child.foreign_rows) return {};
  const Schema& schema = this->schema();
  const ColumnSchema& column = schema.tables[table].columns[position];
  const TableSchema& parent = *schema.find(column.foreign_table);
  const size_t parent_table = &parent - schema.tables.data(),
               parent_key = parent.position(*parent.find(column.foreign_key));
  RETURN_IF_ERROR(load(parent_table, {&parent_key, 1}));

  std::string child_name = schema.tables[table].name + "." + column.name,
              parent_name = parent.name + "." + column.foreign_key;
  auto describe = [&](bool in_parent, uint64_t row) {
    return in_parent ? loader_->describe(parent_table, parent_key, row) : loader_->describe(table, position, row);
  };
  Column resolved = child;  // shares the data
  ASSIGN_OR_RETURN(resolved.foreign_rows, find_foreign_rows(child, *columns_.at({parent_table, parent_key}),
                                                            {child_name, parent_name}, describe));
  columns_[{table, position}] = std::make_shared<const Column>(std::move(resolved));
  return {};
}

namespace {

constexpr uint64_t none = UINT64_MAX;

int64_t integer_at(const Column& column, uint64_t row) {
  switch (column.width) {
    case 1: return column.as<int8_t>()[row];
    case 2: return column.as<int16_t>()[row];
    case 4: return column.as<int32_t>()[row];
    default: return column.as<int64_t>()[row];
  }
}

std::string value_text(const Column& column, uint64_t row) {
  return column.encoding == Encoding::plain ? fmt::format("{}", integer_at(column, row))
                                            : fmt::format("`{}`", column.text_at(row));
}

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
      return none;
    }
    size_t slots = 16;
    while (slots < parent.rows * 2) slots *= 2;
    keys_.resize(slots);
    rows_.assign(slots, none);
    for (uint64_t row = 0; row < parent.rows; ++row) {
      int64_t key = integer_at(parent, row);
      size_t slot = slot_of(key);
      if (rows_[slot] != none) return row;
      keys_[slot] = key;
      rows_[slot] = row;
    }
    return none;
  }
  uint64_t find(int64_t key) const {
    if (!dense_) return rows_[slot_of(key)];
    uint64_t at = static_cast<uint64_t>(key) - static_cast<uint64_t>(first_);
    return at < rows_.size() ? rows_[at] : none;
  }

 private:
  // The slot of the key, or the free one where it would go.
  size_t slot_of(int64_t key) const {
    size_t mask = rows_.size() - 1;
    uint64_t hash = static_cast<uint64_t>(key) * 0x9e3779b97f4a7c15u;
    size_t slot = (hash ^ hash >> 32) & mask;
    while (rows_[slot] != none && keys_[slot] != key) slot = (slot + 1) & mask;
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
    return none;
  }
  uint64_t find(std::string_view key) const {
    auto it = rows_.find(key);
    return it == rows_.end() ? none : it->second;
  }

 private:
  std::unordered_map<std::string_view, uint64_t> rows_;
};

// Looks every row of `child` up; the first that has no match, or none.
template <class Find>
uint64_t look_up(const Column& child, uint64_t parent_rows, std::vector<std::byte>& out, Find&& find,
                 unsigned threads) {
  const bool narrow = foreign_row_width(parent_rows) == 4;
  constexpr uint64_t rows_per_part = 1 << 18;
  std::atomic<uint64_t> first_missing{none};
  auto body = [&](size_t part) {
    for (uint64_t row = part * rows_per_part, end = std::min(row + rows_per_part, child.rows); row < end; ++row) {
      uint64_t found = find(row);
      if (found == none) {
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

Result<std::shared_ptr<std::vector<std::byte>>> find_foreign_rows(const Column& child, const Column& parent,
                                                                  const ForeignKeyNames& names,
                                                                  const Describe& describe, unsigned threads) {
  auto rows = std::make_shared<std::vector<std::byte>>(child.rows * foreign_row_width(parent.rows));
  uint64_t repeated, missing = none;
  if (child.encoding == Encoding::plain) {
    IntegerKeys keys;
    repeated = keys.build(parent);
    if (repeated == none)
      missing = look_up(
          child, parent.rows, *rows, [&](uint64_t row) { return keys.find(integer_at(child, row)); }, threads);
  } else {
    TextKeys keys;
    repeated = keys.build(parent);
    if (repeated == none)
      missing = look_up(
          child, parent.rows, *rows, [&](uint64_t row) { return keys.find(child.text_at(row)); }, threads);
  }
  if (repeated != none)
    return input_error("{}: {} stands a second time in `{}`, which `{}` refers to", describe(true, repeated),
                       value_text(parent, repeated), names.parent, names.child);
  if (missing != none)
    return input_error("{}: {} of `{}` is not in `{}`", describe(false, missing), value_text(child, missing),
                       names.child, names.parent);
  return rows;
}

namespace {

// Distinct texts, numbered in the order of their first occurrence. Open addressing: 8 bytes per slot, at most half of them taken.
class TextCodes {
 public:
  uint32_t add(std::string_view text) {
    const auto hash = static_cast<uint32_t>(hash_of(text));
    for (size_t at = hash & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
      Slot& slot = slots_[at];
      if (slot.code == free) {
        const auto code = static_cast<uint32_t>(texts_.size());
        slot = {hash, code};
        texts_.push_back(text);
        if (texts_.size() * 2 > slots_.size()) grow();
        return code;
      }
      if (slot.hash == hash && texts_[slot.code] == text) return slot.code;
    }
  }
  const std::vector<std::string_view>& texts() const { return texts_; }

 private:
  static constexpr uint32_t free = UINT32_MAX;
  struct Slot {
    uint32_t hash = 0, code = free;
  };

  static uint64_t hash_of(std::string_view text) {
    constexpr uint64_t odd = 0x9e3779b97f4a7c15;
    auto mix = [](uint64_t h, uint64_t word) {
      h = (h ^ word) * odd;
      return h ^ h >> 32;
    };
    uint64_t h = text.size() * odd, word = 0;
    for (; text.size() > 8; text.remove_prefix(8)) {
      std::memcpy(&word, text.data(), 8);
      h = mix(h, word);
    }
    word = 0;
    for (char c : text) word = word << 8 | static_cast<uint8_t>(c);
    return mix(h, word);
  }

  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.code == free) continue;
      size_t at = slot.hash & (slots_.size() - 1);
      while (slots_[at].code != free) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = slot;
    }
  }

  std::vector<Slot> slots_ = std::vector<Slot>(64);
  std::vector<std::string_view> texts_;
};

}  // namespace

void encode_dictionary(Column& column, uint64_t limit, unsigned threads) {
  CHECK(column.encoding == Encoding::text, "only text becomes a dictionary");
  // Every part numbers its own values in order of first occurrence; joined in order of the parts they are in order for the column.
  constexpr uint64_t rows_per_part = 1 << 16;
  struct Part {
    TextCodes values;
    std::vector<uint32_t> codes;  // of the rows
  };
  std::vector<Part> parts((column.rows + rows_per_part - 1) / rows_per_part);
  std::atomic<bool> too_many{false};
  auto number = [&](size_t p) {
    Part& part = parts[p];
    uint64_t first = p * rows_per_part, last = std::min(first + rows_per_part, column.rows);
    part.codes.reserve(last - first);
    for (uint64_t row = first; row < last && !too_many; ++row) {
      part.codes.push_back(part.values.add(column.text_at(row)));
      if (part.values.texts().size() > limit) too_many = true;
    }
  };
  TextCodes values;
  std::vector<std::vector<uint32_t>> code_of_value(parts.size());
  // The first parts alone mostly tell that the values are too many: a comment is no work for the rest.
  constexpr size_t first_parts = 4;
  const size_t first = std::min(first_parts, parts.size());
  for (const std::pair<size_t, size_t>& range : {std::pair(size_t{0}, first), std::pair(first, parts.size())}) {
    const size_t begin = range.first, end = range.second;
    parallel_for(
        end - begin, [&](size_t p) { number(begin + p); }, threads);
    if (too_many) return;
    for (size_t p = begin; p < end; ++p) {
      for (std::string_view value : parts[p].values.texts()) {
        code_of_value[p].push_back(values.add(value));
        if (values.texts().size() > limit) return;
      }
    }
  }
  auto dictionary = std::make_shared<Dictionary>();
  dictionary->values.assign(values.texts().begin(), values.texts().end());

  Column encoded = make_column(column.type, column.rows, Encoding::dictionary, code_width(dictionary->values.size()));
  auto store = [&](size_t p) {
    std::byte* out = encoded.data->data() + p * rows_per_part * encoded.width;
    for (uint32_t local : parts[p].codes) {
      uint32_t code = code_of_value[p][local];
      switch (encoded.width) {
        case 1: *reinterpret_cast<uint8_t*>(out) = static_cast<uint8_t>(code); break;
        case 2: *reinterpret_cast<uint16_t*>(out) = static_cast<uint16_t>(code); break;
        default: *reinterpret_cast<uint32_t*>(out) = code;
      }
      out += encoded.width;
    }
  };
  parallel_for(parts.size(), store, threads);
  column.encoding = Encoding::dictionary;
  column.width = encoded.width;
  column.data = encoded.data;
  column.dictionary = dictionary;
  column.pad = nullptr;
}

}  // namespace rndn::data
