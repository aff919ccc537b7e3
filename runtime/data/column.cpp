// Host columns: allocation, access to text, statistics.
#include "runtime/data/column.h"

#include <sys/mman.h>

#include <algorithm>
#include <limits>
#include <new>

#include "libraries/base/containers/bitset.h"
#include "libraries/base/errors/check.h"
#include "libraries/base/containers/huge_pages.h"
#include "libraries/base/system/parallel.h"

namespace rndn::data {

using hir::BasicType;

uint32_t plain_width(BasicType type) { return hir::row(type).width; }

uint32_t code_width(uint64_t distinct_values) {
  return distinct_values <= 1u << 8 ? 1 : distinct_values <= 1u << 16 ? 2 : 4;
}

uint32_t foreign_row_width(uint64_t referenced_rows) { return referenced_rows < uint64_t{1} << 31 ? 4 : 8; }

std::shared_ptr<Bytes> zeros(size_t size) {
  constexpr size_t large = size_t{1} << 20;
  if (size < large) return std::make_shared<Bytes>(size);
  expect_memory(size);
  MemoryCharge charge(size);
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  prefer_huge_pages(memory, size);
  const std::shared_ptr<const void> owner(
      memory, [size, held = std::make_shared<MemoryCharge>(std::move(charge))](void* m) { munmap(m, size); });
  return std::make_shared<Bytes>(std::span(static_cast<std::byte*>(memory), size), owner);
}

Column make_column(BasicType type, uint64_t rows, Encoding encoding, uint32_t width) {
  Column column;
  column.type = type;
  column.encoding = encoding;
  column.width = width ? width : plain_width(type);
  column.rows = rows;
  column.data = zeros(rows * column.width);
  if (encoding == Encoding::dictionary) column.dictionary = std::make_shared<Dictionary>();
  if (encoding == Encoding::text) column.pad = std::make_shared<Bytes>();
  return column;
}

uint32_t Column::code_at(uint64_t row) const {
  switch (width) {
    case 1: return as<uint8_t>()[row];
    case 2: return as<uint16_t>()[row];
    default: return as<uint32_t>()[row];
  }
}

namespace {

constexpr uint64_t rows_per_part = 1 << 20;

// Comparisons with NaN are false: it changes neither minimum nor maximum, and ends `ascending`.
template <class T>
RangeStatistics scan(const T* values, uint64_t rows) {
  using Limits = std::numeric_limits<T>;
  constexpr uint64_t block = 1 << 12;  // in the nearest cache
  RangeStatistics out{.rows = rows};
  if (rows == 0) return out;
  T min = Limits::has_infinity ? Limits::infinity() : Limits::max();
  T max = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  out.ascending = values[0] == values[0];
  for (uint64_t begin = 0; begin < rows; begin += block) {
    const uint64_t end = std::min(begin + block, rows);
    bool any = false;
    for (uint64_t i = begin; i < end; ++i) {
      any |= values[i] == values[i];
      min = values[i] < min ? values[i] : min;
      max = values[i] > max ? values[i] : max;
    }
    out.any |= any;
    if (!out.ascending) continue;
    bool ascending = true, strict = true;
    for (uint64_t i = std::max<uint64_t>(begin, 1); i < end; ++i) {
      ascending &= values[i - 1] <= values[i];
      strict &= values[i - 1] < values[i];
    }
    out.ascending = ascending;
    out.strict &= strict;
  }
  out.strict &= out.ascending;
  if constexpr (std::is_floating_point_v<T>) {
    out.float_min = min, out.float_max = max, out.float_first = values[0], out.float_last = values[rows - 1];
  } else {
    out.min = static_cast<int64_t>(min), out.max = static_cast<int64_t>(max);
    out.first = static_cast<int64_t>(values[0]), out.last = static_cast<int64_t>(values[rows - 1]);
  }
  return out;
}

// Calls use(elements) with the elements as they are stored, if these have statistics.
RangeStatistics scan(const __int128* values, uint64_t rows) {
  RangeStatistics out{.rows = rows, .any = rows > 0};
  if (rows > 0) out.wide_min = out.wide_max = values[0];
  for (uint64_t i = 0; i < rows; ++i) {
    out.wide_min = std::min(out.wide_min, values[i]);
    out.wide_max = std::max(out.wide_max, values[i]);
  }
  return out;
}

template <class Use>
void with_elements(const Column& column, Use&& use) {
  if (column.encoding == Encoding::text) return;
  if (column.encoding == Encoding::dictionary) {
    switch (column.width) {
      case 1: return use(column.as<uint8_t>());
      case 2: return use(column.as<uint16_t>());
      default: return use(column.as<uint32_t>());
    }
  }
  if (hir::is_text(column.type)) return;
  hir::with_stored(column.type, [&]<class T>() {
    if constexpr (std::is_arithmetic_v<T> && sizeof(T) <= 8) use(column.as<T>());
  });
}

}  // namespace

std::string_view Column::text_at(uint64_t row) const {
  DCHECK(row < rows);
  if (encoding == Encoding::dictionary) return dictionary->values[code_at(row)];
  CHECK(encoding == Encoding::text, "column is no text");
  uint64_t word = as<uint64_t>()[row];
  return pad->text().substr(word >> 24, word & 0xffffff);
}

uint64_t Column::foreign_row(uint64_t row) const {
  DCHECK(row < rows && foreign_rows);
  if (foreign_rows->size() == rows * 4) return reinterpret_cast<const uint32_t*>(foreign_rows->data())[row];
  return reinterpret_cast<const uint64_t*>(foreign_rows->data())[row];
}

Column validity_of(const Column& column, unsigned threads) {
  Column valid = make_column(BasicType::boolean, column.validity ? 0 : column.rows);
  valid.rows = column.rows;
  if (column.validity)
    valid.data = column.validity;
  else
    std::fill_n(valid.data->data(), valid.data->size(), std::byte{1});
  compute_statistics(valid, threads);
  return valid;
}

RangeStatistics scan_range(const Column& column, uint64_t first, uint64_t last) {
  if (column.type == BasicType::i128) return scan(column.as<__int128>() + first, last - first);
  RangeStatistics found;
  with_elements(column, [&](const auto* elements) { found = scan(elements + first, last - first); });
  return found;
}

void join_statistics(Column& column, const std::vector<RangeStatistics>& ranges) {
  column.statistics = {};
  const RangeStatistics* before = nullptr;
  RangeStatistics all;
  for (const RangeStatistics& range : ranges) {
    if (range.rows == 0) continue;
    if (!before) {
      all = range;
    } else {
      all.any |= range.any;
      all.ascending &= range.ascending && before->last <= range.first && before->float_last <= range.float_first;
      all.strict &= range.strict && (before->last < range.first || before->float_last < range.float_first);
      all.min = std::min(all.min, range.min), all.max = std::max(all.max, range.max);
      all.wide_min = std::min(all.wide_min, range.wide_min), all.wide_max = std::max(all.wide_max, range.wide_max);
      all.float_min = std::min(all.float_min, range.float_min), all.float_max = std::max(all.float_max, range.float_max);
    }
    before = &range;
  }
  Statistics& s = column.statistics;
  if (column.type == BasicType::i128) {
    s.wide_known = all.any;
    s.wide_min = all.wide_min, s.wide_max = all.wide_max;
    return;
  }
  s.known = all.any;
  if (!s.known) return;
  s.sorted = all.ascending;
  if (hir::is_float(column.type)) {
    s.float_min = all.float_min;
    s.float_max = all.float_max;
    return;
  }
  s.min = all.min;
  s.max = all.max;
  s.unique = all.ascending && all.strict;
  // As many values as rows: dense if no value repeats.
  if (static_cast<uint64_t>(s.max) - static_cast<uint64_t>(s.min) != column.rows - 1) return;
  s.dense = s.unique;
  if (s.sorted) return;
  with_elements(column, [&](const auto* elements) {
    Bitset seen(column.rows);
    s.dense = true;
    for (uint64_t i = 0; i < column.rows && s.dense; ++i) {
      const uint64_t at = static_cast<uint64_t>(elements[i]) - static_cast<uint64_t>(s.min);
      s.dense = !seen.test(at);
      seen.set(at);
    }
    s.unique = s.dense;
  });
}

void compute_statistics(Column& column, unsigned threads) {
  std::vector<RangeStatistics> ranges((column.rows + rows_per_part - 1) / rows_per_part);
  parallel_for(
      ranges.size(),
      [&](size_t number) {
        const uint64_t first = number * rows_per_part;
        ranges[number] = scan_range(column, first, std::min(first + rows_per_part, column.rows));
      },
      threads);
  join_statistics(column, ranges);
}

}  // namespace rndn::data
