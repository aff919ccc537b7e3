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
  return Bytes::part(all, first, bytes);
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
  expect_memory(rows.size() * width);
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

// A column of these texts, with a dictionary that has each once, in the order of texts.
Column with_sorted_texts(hir::BasicType type, const std::vector<std::string_view>& texts) {
  expect_memory(texts.size() * 4);
  std::unordered_map<std::string_view, uint32_t> known;
  std::vector<std::string_view> sorted;
  for (std::string_view text : texts)
    if (known.try_emplace(text, 0).second) sorted.push_back(text);
  std::sort(sorted.begin(), sorted.end());
  auto dictionary = std::make_shared<data::Dictionary>();
  for (uint32_t code = 0; code < sorted.size(); ++code) {
    known[sorted[code]] = code;
    dictionary->values.emplace_back(sorted[code]);
  }
  Column made = data::make_column(type, texts.size(), Encoding::dictionary, 4);
  auto* codes = reinterpret_cast<uint32_t*>(made.data->data());
  for (size_t i = 0; i < texts.size(); ++i) codes[i] = known[texts[i]];
  made.dictionary = std::move(dictionary);
  return made;
}

// The same column, so.
RangeTables::ColumnPtr sort_texts(RangeTables::ColumnPtr column) {
  if (!hir::is_text(column->type) || column->is_foreign_key) return column;
  std::vector<std::string_view> texts(column->rows);
  for (uint64_t i = 0; i < column->rows; ++i)
    texts[i] = column->encoding == Encoding::dictionary
                   ? std::string_view(column->dictionary->values[column->code_at(i)])
                   : column->text_at(i);
  auto made = std::make_shared<Column>(with_sorted_texts(column->type, texts));
  made->validity = column->validity;
  data::compute_statistics(*made);
  return made;
}

}  // namespace

RangeTables::ColumnPtr with_bytes_here(const RangeTables::ColumnPtr& column) {
  const auto are_here = [](const std::shared_ptr<Bytes>& bytes) { return !bytes || bytes->are_here(); };
  if (are_here(column->data) && are_here(column->foreign_rows)) return column;
  auto made = std::make_shared<Column>(*column);
  for (auto* bytes : {&made->data, &made->foreign_rows})
    if (!are_here(*bytes)) *bytes = Bytes::part(*bytes, 0, (*bytes)->size());
  return made;
}

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

RangeTables::ColumnPtr with_own_texts(RangeTables::ColumnPtr column, uint64_t most_text_bytes) {
  if (column->encoding != Encoding::dictionary || !column->dictionary || column->is_foreign_key)
    return column;
  const std::vector<std::string>& texts = column->dictionary->values;
  if (texts.size() <= column->rows / 2) return column;
  uint64_t bytes = 0;
  for (size_t i = 0; i < texts.size() && bytes <= most_text_bytes; ++i)
    bytes += texts[i].size() + sizeof(uint64_t);
  if (bytes <= most_text_bytes) return column;
  std::vector<uint32_t> used(column->rows);
  for (uint64_t i = 0; i < column->rows; ++i) used[i] = column->code_at(i);
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  auto made = std::make_shared<Column>(*column);
  auto dictionary = std::make_shared<data::Dictionary>();
  for (uint32_t code : used) dictionary->values.push_back(texts[code]);
  std::vector<std::byte> codes(column->rows * column->width);
  for (uint64_t i = 0; i < column->rows; ++i) {
    const auto code = static_cast<uint32_t>(
        std::lower_bound(used.begin(), used.end(), column->code_at(i)) - used.begin());
    std::memcpy(codes.data() + i * column->width, &code, column->width);
  }
  made->data = std::make_shared<Bytes>(std::move(codes));
  made->dictionary = std::move(dictionary);
  data::compute_statistics(*made);
  return made;
}

RangeTables::ColumnPtr RangeTables::add(const std::string& table, const std::string& column,
                                        ColumnPtr values) {
  return std::exchange(added_[table][column], std::move(values));
}

std::vector<RangeTables::Gone> RangeTables::added() const {
  std::vector<Gone> all;
  for (const auto& [table, columns] : added_)
    for (const auto& [name, column] : columns) all.push_back({column, true});
  return all;
}

const RangeTables::ColumnPtr* RangeTables::added(std::string_view table,
                                                 std::string_view column) const {
  const auto of = added_.find(table);
  if (of == added_.end()) return nullptr;
  const auto at = of->second.find(column);
  return at == of->second.end() ? nullptr : &at->second;
}

std::vector<RangeTables::Gone> RangeTables::set_range(const std::string& table, uint64_t first,
                                                      uint64_t rows) {
  std::vector<Gone> gone;
  for (auto& [all, of] : parts_) {
    const bool texts = !of.part->dictionary || of.part->dictionary != of.all->dictionary;
    gone.push_back({std::move(of.part), texts});
  }
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
  if (order_) {
    Part& here = here_[column.get()];
    if (!here.part) here = {column, with_bytes_here(column)};
    return known.part = sort_texts(pick_rows(*here.part, std::span(*order_).subspan(first_, rows_)));
  }
  auto made = std::make_shared<Column>(*column);
  made->is_part = true;
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
  return known.part = with_own_texts(std::move(made), most_text_bytes_);
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

Result<std::shared_ptr<const Column>> column_of(const data::Value& v) {
  if (!v.is_vector() || v.size > data::longest_vector)
    return Error{Fault::internal, "what a program leaves for another is no vector"};
  Column made;
  if (hir::is_text(v.type)) {
    std::vector<std::string_view> texts(v.size);
    for (uint64_t i = 0; i < v.size; ++i) texts[i] = v.text(i);
    made = with_sorted_texts(v.type, texts);
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
