#include "runtime/memory/vector_bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "ptx/codegen/codegen.h"
#include "runtime/data/cache.h"

namespace rndn::runtime {

namespace {

using codegen::bounds_rows;

constexpr uint64_t sampled_vectors = 64, vectors_at_once = 64;

// Integers of fewer bytes are bounded in 32 bits.
template <class T>
using Bound = std::conditional_t<(sizeof(T) < 4), int32_t, T>;

template <class T>
struct Extremes {
  Bound<T> least =
      std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
  Bound<T> greatest =
      std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::min();
};

template <class T>
Extremes<T> extremes_of(const T* from, uint64_t rows) {
  Extremes<T> e;
  for (uint64_t i = 0; i < rows; ++i) {  // false for NaN
    if (from[i] < e.least) e.least = from[i];
    if (from[i] > e.greatest) e.greatest = from[i];
  }
  return e;
}

// The share of the elements of some vectors in the bounds of others.
template <class T>
double spanned_by(const data::Column& c, uint64_t vectors) {
  const uint64_t count = std::min(vectors, sampled_vectors);
  if (count < 2) return 1;
  std::vector<Extremes<T>> bounds;
  std::vector<T> elements;  // three of each
  for (uint64_t k = 0; k < count; ++k) {
    const uint64_t first = k * vectors / count * bounds_rows, rows = std::min<uint64_t>(bounds_rows, c.rows - first);
    bounds.push_back(extremes_of(c.as<T>() + first, rows));
    for (uint64_t row : {first, first + rows / 2, first + rows - 1}) elements.push_back(c.as<T>()[row]);
  }
  uint64_t within = 0;
  for (uint64_t k = 0; k < count; ++k)
    for (uint64_t i = 0; i < elements.size(); ++i)
      within += i / 3 != k && elements[i] >= bounds[k].least && elements[i] <= bounds[k].greatest;
  return static_cast<double>(within) / static_cast<double>(count * (elements.size() - 3));
}

template <class T>
void make_bounds(const data::Column& c, uint64_t vectors, data::Bytes& to, ThreadPool* pool) {
  const auto vector = [&](uint64_t k) {
    const uint64_t first = std::min(k, (c.rows - 1) / bounds_rows) * bounds_rows;  // behind the last comes that again
    const uint64_t rows = std::min<uint64_t>(bounds_rows, c.rows - first);
    const T* from = c.as<T>() + first;
    Extremes<T> e;
    if (c.statistics.sorted)
      e = {from[0], from[rows - 1]};
    else
      e = extremes_of(from, rows);
    std::memcpy(to.data() + k * sizeof e, &e, sizeof e);
  };
  const uint64_t pieces = (vectors + vectors_at_once - 1) / vectors_at_once;
  const auto piece = [&](size_t p) {
    for (uint64_t k = p * vectors_at_once; k < std::min(vectors, (p + 1) * vectors_at_once); ++k) vector(k);
  };
  if (pool && pieces > 1 && !c.statistics.sorted)
    pool->run(pieces, [&](size_t p, unsigned) { piece(p); });
  else
    for (size_t p = 0; p < pieces; ++p) piece(p);
}

bool can_have_bounds(const data::Column& c) {
  const bool is_number =
      (hir::is_integer(c.type) && c.type != hir::BasicType::boolean && c.type != hir::BasicType::character) ||
      hir::is_calendar(c.type) || hir::is_float(c.type);
  return is_number && c.encoding == data::Encoding::plain && c.width == data::plain_width(c.type) &&
         !c.is_foreign_key && c.data && c.rows > 0 && c.statistics.known && (!c.is_part || c.statistics.sorted);
}

uint64_t vectors_of(const data::Column& c) { return (c.rows + bounds_rows - 1) / bounds_rows; }

// Calls f.operator()<T>() with the type of the column's elements.
template <class F>
void with_elements(const data::Column& c, F&& f) {
  hir::with_stored(c.type, [&]<class T>() {
    if constexpr (std::is_signed_v<T> && sizeof(T) <= 8) f.template operator()<T>();  // floats, too
  });
}

}  // namespace

Spanned spanned_of(const data::Column& c) {
  Spanned found;
  if (!can_have_bounds(c)) return found;
  with_elements(c, [&]<class T>() { found.share = spanned_by<T>(c, vectors_of(c)); });
  found.reason = fmt::format("tiles of {} rows span {:.0f} % of the elements: {}", bounds_rows, 100 * found.share,
                             found.share <= most_spanned ? "skipped by bounds" : "no skipping");
  return found;
}

VectorBounds vector_bounds_of(const data::Column& c, ThreadPool* pool) {
  if (spanned_of(c).share > most_spanned) return {};
  constexpr uint64_t step = codegen::most_bounds_per_tile;
  const uint64_t vectors = (vectors_of(c) + step - 1) / step * step, bytes = vectors * 2 * codegen::bound_bytes(c.type);
  auto file = data::FormFile::of(*c.data, fmt::format("{}.bounds.{}", hir::row(c.type).name, bounds_rows));
  if (file && !file->is_of_these()) file.reset();
  if (file)
    if (auto read = file->read(); read && *read && (*read)->size() == bytes) return {.bytes = *std::move(read)};
  auto made = std::make_shared<data::Bytes>(bytes);
  with_elements(c, [&]<class T>() { make_bounds<T>(c, vectors, *made, pool); });
  if (file) (void)file->write(made.get());
  return {.bytes = std::move(made), .made = true};
}

const VectorBounds& ColumnBounds::of(const std::shared_ptr<const data::Column>& column, ThreadPool* pool) {
  std::erase_if(known_, [](const auto& entry) { return entry.second.column.expired(); });
  const auto [at, fresh] = known_.try_emplace(column.get());
  if (fresh) at->second = {column, vector_bounds_of(*column, pool)};
  return at->second.bounds;
}

void ColumnBounds::move(const data::Column* from, const std::shared_ptr<const data::Column>& to) {
  if (auto node = known_.extract(from)) {
    node.key() = to.get();
    node.mapped().column = to;
    known_.insert(std::move(node));
  }
}

}  // namespace rndn::runtime
