#include "runtime/stream/range_tables.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

namespace rndn::runtime {

using data::Bytes;
using data::Column;
using data::Encoding;

namespace {

std::shared_ptr<Bytes> cut_bytes(const std::shared_ptr<Bytes>& all, uint64_t first,
                                 uint64_t bytes) {
  if (!all) return nullptr;
  CHECK(first <= all->size() && bytes <= all->size() - first);
  return std::make_shared<Bytes>(std::span(all->data() + first, bytes), all);
}

// Texts without a dictionary: where each is, from the first byte of the piece that they lie in.
void cut_texts(Column& c) {
  if (!c.rows) return;
  constexpr unsigned length_bits = 24;  // column.h
  constexpr uint64_t lengths = (uint64_t{1} << length_bits) - 1;
  uint64_t begin = UINT64_MAX, end = 0;
  std::vector<std::byte> moved(c.rows * 8);
  const uint64_t* from = c.as<uint64_t>();
  for (uint64_t i = 0; i < c.rows; ++i) {
    if ((from[i] & lengths) == 0) continue;
    begin = std::min(begin, from[i] >> length_bits);
    end = std::max(end, (from[i] >> length_bits) + (from[i] & lengths));
  }
  begin = std::min(begin, end);
  for (uint64_t i = 0; i < c.rows; ++i) {
    const uint64_t place = (from[i] & lengths) == 0 ? 0 : from[i] - (begin << length_bits);
    std::memcpy(moved.data() + 8 * i, &place, 8);
  }
  c.data = std::make_shared<Bytes>(std::move(moved));
  if (c.pad) c.pad = cut_bytes(c.pad, begin, end - begin);
}

// Elements of `width` bytes at these rows.
std::shared_ptr<Bytes> pick_bytes(const std::shared_ptr<Bytes>& all, uint64_t width,
                                  std::span<const uint32_t> rows) {
  if (!all) return nullptr;
  std::vector<std::byte> picked(rows.size() * width);
  const auto pick = [&](auto bytes) {
    for (size_t i = 0; i < rows.size(); ++i)
      std::memcpy(picked.data() + i * bytes, all->data() + rows[i] * uint64_t{bytes}, bytes);
  };
  switch (width) {
    case 1: pick(std::integral_constant<uint64_t, 1>()); break;
    case 4: pick(std::integral_constant<uint64_t, 4>()); break;
    case 8: pick(std::integral_constant<uint64_t, 8>()); break;
    default: pick(width);
  }
  return std::make_shared<Bytes>(std::move(picked));
}

// Texts without a dictionary, whose places are picked already: a pad of their own.
void pick_texts(Column& c) {
  constexpr unsigned length_bits = 24;  // column.h
  std::vector<std::byte> places(c.rows * 8);
  std::string pad;
  for (uint64_t i = 0; i < c.rows; ++i) {
    const std::string_view text = c.text_at(i);
    const uint64_t place = text.empty() ? 0 : pad.size() << length_bits | text.size();
    std::memcpy(places.data() + 8 * i, &place, 8);
    pad += text;
  }
  c.data = std::make_shared<Bytes>(std::move(places));
  c.pad = std::make_shared<Bytes>(Bytes::of(pad));
}

// What holds of all rows alone is not said of some of them.
void weaken_statistics(Column& c, bool in_order) {
  c.statistics.dense = false;
  if (!in_order) c.statistics.sorted = false;
  if (!c.statistics.sorted) c.statistics.unique = false;
  if (!c.rows) c.statistics = {};
}

}  // namespace

RangeTables::ColumnPtr pick_rows(const Column& column, std::span<const uint32_t> rows) {
  auto made = std::make_shared<Column>(column);
  made->rows = rows.size();
  made->data = pick_bytes(column.data, column.width, rows);
  made->validity = pick_bytes(column.validity, 1, rows);
  if (column.foreign_rows && column.rows)
    made->foreign_rows =
        pick_bytes(column.foreign_rows, column.foreign_rows->size() / column.rows, rows);
  if (column.encoding == Encoding::text) pick_texts(*made);
  weaken_statistics(*made, false);
  return made;
}

RangeTables::ColumnPtr RangeTables::add(const std::string& table, const std::string& column,
                                        ColumnPtr values) {
  return std::exchange(added_[table][column], std::move(values));
}

const std::vector<RangeTables::ColumnPtr> RangeTables::added() const {
  std::vector<ColumnPtr> all;
  for (const auto& [table, columns] : added_)
    for (const auto& [name, column] : columns) all.push_back(column);
  return all;
}

const RangeTables::ColumnPtr* RangeTables::added(std::string_view table,
                                                 std::string_view column) const {
  const auto of = added_.find(table);
  if (of == added_.end()) return nullptr;
  const auto at = of->second.find(column);
  return at == of->second.end() ? nullptr : &at->second;
}

std::vector<RangeTables::ColumnPtr> RangeTables::set_range(const std::string& table, uint64_t first,
                                                           uint64_t rows) {
  std::vector<ColumnPtr> gone;
  for (auto& [all, of] : parts_) gone.push_back(std::move(of.part));
  parts_.clear();
  table_ = table;
  first_ = first;
  rows_ = rows;
  return gone;
}

RangeTables::ColumnPtr RangeTables::cut(std::string_view table, const ColumnPtr& column) const {
  if (table != table_) return column;
  Part& known = parts_[column.get()];
  if (known.part) return known.part;
  known.all = column;
  if (order_)
    return known.part = pick_rows(*column, std::span(*order_).subspan(first_, rows_));
  auto made = std::make_shared<Column>(*column);
  made->rows = rows_;
  const uint64_t foreign_width =
      column->foreign_rows && column->rows ? column->foreign_rows->size() / column->rows : 4;
  made->data = cut_bytes(column->data, first_ * column->width, rows_ * column->width);
  made->validity = cut_bytes(column->validity, first_, rows_);
  if (column->foreign_rows)
    made->foreign_rows =
        cut_bytes(column->foreign_rows, first_ * foreign_width, rows_ * foreign_width);
  if (column->encoding == Encoding::text) cut_texts(*made);
  weaken_statistics(*made, true);
  return known.part = std::move(made);
}

Result<void> RangeTables::open(std::string_view table) const {
  return added_.contains(table) ? Result<void>() : all_.open(table);
}
Result<std::vector<std::string>> RangeTables::column_names(std::string_view table) const {
  return all_.column_names(table);
}
Result<uint64_t> RangeTables::rows(std::string_view table) const {
  if (table == table_) return rows_;
  const auto of = added_.find(table);
  return of == added_.end() ? all_.rows(table) : of->second.begin()->second->rows;
}
Result<RangeTables::ColumnPtr> RangeTables::column(std::string_view table,
                                                   std::string_view name) const {
  if (const ColumnPtr* own = added(table, name)) return cut(table, *own);
  ASSIGN_OR_RETURN(const ColumnPtr found, all_.column(table, name));
  return cut(table, found);
}
Result<RangeTables::ColumnPtr> RangeTables::part(std::string_view table, std::string_view name,
                                                 data::ColumnPart part) const {
  if (const ColumnPtr* own = added(table, name)) return cut(table, *own);
  ASSIGN_OR_RETURN(const ColumnPtr found, all_.part(table, name, part));
  return cut(table, found);
}
Result<void> RangeTables::prefetch(std::string_view table,
                                   std::span<const std::string> columns) const {
  std::vector<std::string> others;
  for (const std::string& name : columns)
    if (!added(table, name)) others.push_back(name);
  return others.empty() ? Result<void>() : all_.prefetch(table, others);
}

namespace {

// The texts that occur, each once, in the order of their first codes; codes into them.
Column with_dictionary(const data::Value& v) {
  std::vector<std::pair<uint32_t, uint32_t>> places(v.size);  // code in v, element
  for (uint32_t i = 0; i < v.size; ++i) places[i] = {v.codes ? (*v.codes)[i] : i, i};
  if (v.codes) std::sort(places.begin(), places.end());
  auto dictionary = std::make_shared<data::Dictionary>();
  std::unordered_map<std::string_view, uint32_t> known;
  Column made = data::make_column(v.type, v.size, Encoding::dictionary, 4);
  auto* codes = reinterpret_cast<uint32_t*>(made.data->data());
  uint32_t code = 0;
  for (size_t k = 0; k < places.size(); ++k) {
    if (k == 0 || places[k].first != places[k - 1].first) {
      const std::string& text = v.text(places[k].second);
      const auto [at, fresh] =
          known.try_emplace(text, static_cast<uint32_t>(dictionary->values.size()));
      if (fresh) dictionary->values.push_back(text);
      code = at->second;
    }
    codes[places[k].second] = code;
  }
  made.dictionary = std::move(dictionary);
  return made;
}

}  // namespace

Result<std::shared_ptr<const Column>> column_of(const data::Value& v) {
  if (!v.is_vector() || v.size > data::longest_vector)
    return Error{Fault::internal, "what a program leaves for another is no vector"};
  Column made;
  if (hir::is_text(v.type)) {
    made = with_dictionary(v);
  } else if (v.size == 0) {
    made = data::make_column(v.type, 0);
  } else {
    made.type = v.type;
    made.width = data::plain_width(v.type);
    made.rows = v.size;
    // Columns are not written to.
    made.data = std::make_shared<Bytes>(
        std::span(const_cast<std::byte*>(v.bytes->data()), v.size * made.width), v.bytes);
  }
  data::compute_statistics(made);
  return std::make_shared<const Column>(std::move(made));
}

}  // namespace rndn::runtime
