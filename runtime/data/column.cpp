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

template <class T>
struct Part {
  using Limits = std::numeric_limits<T>;
  T min = Limits::has_infinity ? Limits::infinity() : Limits::max();
  T max = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  bool ascending = true, strict = true;  // also against the last element of the part before
  bool any = false;                      // saw something that is not NaN
};

template <class T>
std::vector<Part<T>> scan(const Column& column, unsigned threads) {
  const T* values = column.as<T>();
  std::vector<Part<T>> parts((column.rows + rows_per_part - 1) / rows_per_part);
  auto body = [&](size_t number) {
    Part<T> part;
    uint64_t first = number * rows_per_part, last = std::min(first + rows_per_part, column.rows);
    T before = first ? values[first - 1] : values[first];
    // Comparisons with NaN are false: it changes neither minimum nor maximum, and ends `ascending`.
    bool ascending = before == before, strict = true, any = false;
    for (uint64_t i = first; i < last; ++i) {
      T value = values[i];
      any |= value == value;
      part.min = value < part.min ? value : part.min;
      part.max = value > part.max ? value : part.max;
      ascending &= before <= value;
      strict &= before < value || i == 0;
      before = value;
    }
    part.ascending = ascending;
    part.strict = strict;
    part.any = any;
    parts[number] = part;
  };
  parallel_for(parts.size(), body, threads);
  return parts;
}

template <class T>
void fill(Column& column, unsigned threads) {
  Part<T> all;
  for (const Part<T>& part : scan<T>(column, threads)) {
    all.min = std::min(all.min, part.min);
    all.max = std::max(all.max, part.max);
    all.ascending &= part.ascending;
    all.strict &= part.strict;
    all.any |= part.any;
  }
  Statistics& s = column.statistics;
  s.known = all.any;
  if (!s.known) return;
  s.sorted = all.ascending;
  if constexpr (std::is_floating_point_v<T>) {
    s.float_min = all.min;
    s.float_max = all.max;
  } else {
    s.min = static_cast<int64_t>(all.min);
    s.max = static_cast<int64_t>(all.max);
    s.unique = all.strict;
    // As many values as rows: dense if no value repeats.
    if (static_cast<uint64_t>(s.max) - static_cast<uint64_t>(s.min) != column.rows - 1) return;
    s.dense = all.strict;
    if (!all.ascending) {
      Bitset seen(column.rows);
      const T* values = column.as<T>();
      s.dense = true;
      for (uint64_t i = 0; i < column.rows && s.dense; ++i) {
        uint64_t at = static_cast<uint64_t>(values[i]) - static_cast<uint64_t>(s.min);
        s.dense = !seen.test(at);
        seen.set(at);
      }
      s.unique = s.dense;
    }
  }
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

void compute_statistics(Column& column, unsigned threads) {
  column.statistics = {};
  if (column.rows == 0 || column.encoding == Encoding::text) return;
  if (column.encoding == Encoding::dictionary) {
    switch (column.width) {
      case 1: return fill<uint8_t>(column, threads);
      case 2: return fill<uint16_t>(column, threads);
      default: return fill<uint32_t>(column, threads);
    }
  }
  if (hir::is_text(column.type)) return;
  hir::with_stored(column.type, [&]<class T>() {
    if constexpr (std::is_arithmetic_v<T> && sizeof(T) <= 8) fill<T>(column, threads);
  });
}

}  // namespace rndn::data
