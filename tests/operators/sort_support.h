// Columns of all types with their plain meaning: what sorted operators are compared with.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <variant>

#include "tests/operators/support.h"

namespace rndn::operators::test {

// A column on the host. Every value is held as i64, or as double for floats; `ranks` orders text codes.
struct Column {
  Type type{};
  std::vector<int64_t> integers;
  std::vector<double> floats;
  std::vector<uint32_t> ranks;
  bool bounds = false;  // min and max are told
  bool is_float() const { return type == Type::f32 || type == Type::f64; }
  size_t size() const { return is_float() ? floats.size() : integers.size(); }

  // -1, 0, 1; NaN is equal to itself and after everything.
  int compare(size_t i, size_t j) const {
    if (is_float()) {
      const double x = floats[i], y = floats[j];
      if (std::isnan(x) || std::isnan(y)) return static_cast<int>(std::isnan(x)) - static_cast<int>(std::isnan(y));
      return x < y ? -1 : x > y ? 1 : 0;
    }
    int64_t x = integers[i], y = integers[j];
    if (!ranks.empty()) x = ranks[static_cast<size_t>(x)], y = ranks[static_cast<size_t>(y)];
    return x < y ? -1 : x > y ? 1 : 0;
  }
  bool is_nan(size_t i) const { return is_float() && std::isnan(floats[i]); }

  template <class T, class From>
  static std::vector<T> as(const std::vector<From>& from) {
    std::vector<T> out;
    for (const From& x : from) out.push_back(static_cast<T>(x));
    return out;
  }
  Vector put(Bench& bench, uint64_t spare = 0) const {
    Vector v;
    switch (type) {
      case Type::u8: v = bench.put(type, as<uint8_t>(integers), spare); break;
      case Type::i8: v = bench.put(type, as<int8_t>(integers), spare); break;
      case Type::i16: v = bench.put(type, as<int16_t>(integers), spare); break;
      case Type::i32: v = bench.put(type, as<int32_t>(integers), spare); break;
      case Type::u32: v = bench.put(type, as<uint32_t>(integers), spare); break;
      case Type::i64: v = bench.put(type, integers, spare); break;
      case Type::f32: v = bench.put(type, as<float>(floats), spare); break;
      case Type::f64: v = bench.put(type, floats, spare); break;
    }
    if (bounds && !is_float() && !integers.empty()) {
      v.min = *std::min_element(integers.begin(), integers.end());
      v.max = *std::max_element(integers.begin(), integers.end());
    }
    if (!ranks.empty()) v.ranks = bench.put(Type::u32, ranks).data;
    return v;
  }
};

inline std::vector<int64_t> expected_order(const std::vector<Column>& columns, const std::vector<uint8_t>& ascending) {
  std::vector<int64_t> rows(columns[0].size());
  std::iota(rows.begin(), rows.end(), 0);
  std::stable_sort(rows.begin(), rows.end(), [&](int64_t x, int64_t y) {
    for (size_t c = 0; c < columns.size(); ++c) {
      const auto i = static_cast<size_t>(x), j = static_cast<size_t>(y);
      const int order = columns[c].compare(i, j);
      if (order) return ascending[c] || columns[c].is_nan(i) || columns[c].is_nan(j) ? order < 0 : order > 0;
    }
    return false;
  });
  return rows;
}

// The rows of every distinct value, groups ascending.
inline std::vector<std::vector<int64_t>> expected_groups(const std::vector<Column>& columns) {
  std::vector<std::vector<int64_t>> cells;
  for (int64_t row : expected_order(columns, std::vector<uint8_t>(columns.size(), 1))) {
    bool same = !cells.empty();
    for (size_t c = 0; same && c < columns.size(); ++c)
      same = columns[c].compare(static_cast<size_t>(cells.back()[0]), static_cast<size_t>(row)) == 0;
    if (!same) cells.emplace_back();
    cells.back().push_back(row);
  }
  return cells;
}

enum class Shape { random, equal, distinct, sorted, reversed, zipf, extremes };
inline constexpr Shape shapes[] = {Shape::random,   Shape::equal, Shape::distinct, Shape::sorted,
                                   Shape::reversed, Shape::zipf,  Shape::extremes};

// Integers that fit into `type`, or floats.
inline Column make(Type type, Shape shape, size_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  Column c{.type = type};
  const uint32_t bits = 8 * width(type);
  const bool is_unsigned = type == Type::u8 || type == Type::u32;
  const int64_t most = is_unsigned  ? (int64_t{1} << bits) - 1
                       : bits == 64 ? std::numeric_limits<int64_t>::max()
                                    : (int64_t{1} << (bits - 1)) - 1;
  const int64_t least = is_unsigned ? 0 : -most - 1;
  const double specials[] = {0.0,
                             -0.0,
                             std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity(),
                             std::nan(""),
                             -std::nan(""),
                             std::numeric_limits<float>::denorm_min(),
                             -std::numeric_limits<float>::denorm_min(),
                             std::numeric_limits<float>::max(),
                             std::numeric_limits<float>::lowest(),
                             1.0,
                             -1.0};
  for (size_t i = 0; i < n; ++i) {
    int64_t x = 0;
    switch (shape) {
      case Shape::random: x = static_cast<int64_t>(random()); break;
      case Shape::equal: x = 42; break;
      case Shape::distinct: x = static_cast<int64_t>((i * 7919) % n) - static_cast<int64_t>(n / 2); break;
      case Shape::sorted: x = static_cast<int64_t>(i / 3); break;
      case Shape::reversed: x = static_cast<int64_t>(n - i); break;
      case Shape::zipf: x = static_cast<int64_t>(1000.0 / (1.0 + static_cast<double>(random() % 1000))); break;
      case Shape::extremes: {
        const int64_t all[] = {least, most, 0, 1, least + 1, most - 1};
        x = all[random() % 6];
        break;
      }
    }
    if (c.is_float()) {
      double f = static_cast<double>(x) / 8;
      if (shape == Shape::extremes) f = specials[random() % 12];
      c.floats.push_back(type == Type::f32 ? static_cast<double>(static_cast<float>(f)) : f);
    } else {
      // Wraps as the type does.
      const uint64_t wrapped = static_cast<uint64_t>(x) << (64 - bits);
      c.integers.push_back(is_unsigned ? static_cast<int64_t>(wrapped >> (64 - bits))
                                       : static_cast<int64_t>(wrapped) >> (64 - bits));
    }
  }
  return c;
}

// Text codes with an order of their own.
inline Column make_text(size_t n, uint32_t distinct, uint64_t seed) {
  std::mt19937_64 random(seed);
  Column c{.type = Type::u32};
  c.ranks.resize(distinct);
  std::iota(c.ranks.begin(), c.ranks.end(), 0u);
  std::shuffle(c.ranks.begin(), c.ranks.end(), random);
  for (size_t i = 0; i < n; ++i) c.integers.push_back(static_cast<int64_t>(random() % distinct));
  return c;
}

inline std::vector<Vector> put_all(Bench& bench, const std::vector<Column>& columns, uint64_t spare = 0) {
  std::vector<Vector> v;
  for (const Column& c : columns) v.push_back(c.put(bench, spare));
  return v;
}

}  // namespace rndn::operators::test
