#include "runtime/stream/row_order.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string_view>

#include "libraries/base/system/cancel.h"
#include "libraries/base/system/parallel.h"

namespace rndn::runtime {

using data::Column;
using data::Encoding;
using hir::BasicType;

namespace {

constexpr uint64_t sign = uint64_t{1} << 63;
constexpr uint64_t rows_of_a_piece = 1 << 16;  // that a thread sorts at a time

template <class F>
void each_row(uint64_t rows, F&& f) {
  parallel_for((rows + rows_of_a_piece - 1) / rows_of_a_piece, [&](size_t piece) {
    const uint64_t end = std::min(rows, (piece + 1) * rows_of_a_piece);
    for (uint64_t i = piece * rows_of_a_piece; i < end; ++i) f(i);
  });
}

uint64_t word_of(double x, bool ascending) {
  if (std::isnan(x)) return UINT64_MAX;
  const auto bits = std::bit_cast<uint64_t>(x == 0 ? 0.0 : x);
  const uint64_t word = bits & sign ? ~bits : bits | sign;
  return ascending ? word : ~word;
}

// Of each of the texts, how many of the others are less.
std::vector<uint64_t> ranks_of(const std::vector<std::string_view>& texts) {
  std::vector<uint32_t> sorted(texts.size());
  std::iota(sorted.begin(), sorted.end(), 0);
  std::sort(sorted.begin(), sorted.end(), [&](uint32_t x, uint32_t y) { return texts[x] < texts[y]; });
  std::vector<uint64_t> ranks(texts.size());
  uint64_t rank = 0;
  for (size_t k = 0; k < sorted.size(); ++k) {
    if (k && texts[sorted[k]] != texts[sorted[k - 1]]) rank = k;
    ranks[sorted[k]] = rank;
  }
  return ranks;
}

int64_t integer_at(const Column& c, uint64_t row) {
  switch (c.width) {
    case 1: return c.type == BasicType::boolean ? c.as<uint8_t>()[row] : c.as<int8_t>()[row];
    case 2: return c.as<int16_t>()[row];
    case 4: return c.as<int32_t>()[row];
    default: return c.as<int64_t>()[row];
  }
}

// The words of a column, the leading ones first.
void add_words(const RowOrder::Key& key, std::vector<std::vector<uint64_t>>& words) {
  const Column& c = *key.column;
  const uint64_t turn = key.ascending ? 0 : UINT64_MAX;
  expect_memory(c.rows * sizeof(uint64_t));
  std::vector<uint64_t>& made = words.emplace_back(c.rows);
  if (hir::is_text(c.type)) {
    std::vector<std::string_view> texts;
    if (c.encoding == Encoding::dictionary)
      texts.assign(c.dictionary->values.begin(), c.dictionary->values.end());
    else
      for (uint64_t i = 0; i < c.rows; ++i) texts.push_back(c.text_at(i));
    const std::vector<uint64_t> ranks = ranks_of(texts);
    each_row(c.rows,
             [&](uint64_t i) { made[i] = ranks[c.encoding == Encoding::dictionary ? c.code_at(i) : i] ^ turn; });
  } else if (c.type == BasicType::f64) {
    each_row(c.rows, [&](uint64_t i) { made[i] = word_of(c.as<double>()[i], key.ascending); });
  } else if (c.type == BasicType::f32) {
    each_row(c.rows, [&](uint64_t i) { made[i] = word_of(double{c.as<float>()[i]}, key.ascending); });
  } else if (hir::is_wide(c.type)) {
    std::vector<uint64_t> low(c.rows);
    each_row(c.rows, [&](uint64_t i) {
      uint64_t parts[2];
      std::memcpy(parts, c.data->data() + 16 * i, 16);
      made[i] = (parts[1] ^ sign) ^ turn;
      low[i] = parts[0] ^ turn;
    });
    words.push_back(std::move(low));
  } else {
    each_row(c.rows, [&](uint64_t i) { made[i] = (static_cast<uint64_t>(integer_at(c, i)) ^ sign) ^ turn; });
  }
}

}  // namespace

bool RowOrder::same(uint32_t x, uint32_t y) const {
  return std::all_of(words_.begin(), words_.end(), [&](const std::vector<uint64_t>& w) { return w[x] == w[y]; });
}

bool RowOrder::less(uint32_t x, uint32_t y) const {
  for (const std::vector<uint64_t>& w : words_)
    if (w[x] != w[y]) return w[x] < w[y];
  return x < y;
}

RowOrder::RowOrder(std::span<const Key> keys) {
  for (const Key& key : keys) add_words(key, words_);
  const uint64_t n = words_[0].size();
  expect_memory(n * sizeof(uint32_t));
  std::vector<uint32_t> rows(n);
  std::iota(rows.begin(), rows.end(), 0);
  const auto at = [&](uint64_t place) { return rows.begin() + static_cast<std::ptrdiff_t>(std::min(place, n)); };
  const auto before = [this](uint32_t x, uint32_t y) { return less(x, y); };
  const auto pieces = [&](uint64_t length) { return (n + length - 1) / length; };
  parallel_for(pieces(rows_of_a_piece),
               [&](size_t k) { std::sort(at(k * rows_of_a_piece), at((k + 1) * rows_of_a_piece), before); });
  for (uint64_t half = rows_of_a_piece; half < n; half *= 2)
    parallel_for(pieces(2 * half), [&](size_t k) {
      std::inplace_merge(at(2 * half * k), at(2 * half * k + half), at(2 * half * (k + 1)), before);
    });
  rows_ = std::make_shared<const std::vector<uint32_t>>(std::move(rows));
}

uint64_t RowOrder::next_change(uint64_t place) const {
  const std::vector<uint32_t>& rows = *rows_;
  uint64_t low = place, high = rows.size();  // equal rows are neighbours
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (same(rows[middle], rows[place - 1]))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

}  // namespace rndn::runtime
