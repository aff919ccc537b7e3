#include "tools/papers/made_tables.h"

#include <algorithm>
#include <cmath>

#include "libraries/base/system/parallel.h"

namespace rndn::tools::papers {
namespace {

using hir::BasicType;

class MadeLoader final : public data::TableLoader {
 public:
  explicit MadeLoader(std::vector<MadeTable> tables) : tables_(std::move(tables)) {
    for (const MadeTable& t : tables_) {
      data::TableSchema& schema = schema_.tables.emplace_back(data::TableSchema{.name = t.name});
      for (const MadeColumn& c : t.columns) schema.columns.push_back({.name = c.name, .type = c.type});
    }
  }
  const data::Schema& schema() const override { return schema_; }
  Result<uint64_t> rows(size_t table) override { return tables_[table].rows; }
  std::optional<uint64_t> rows_at_hand(size_t table) const override { return tables_[table].rows; }
  Result<std::vector<data::Column>> load(size_t table, std::span<const size_t> columns) override {
    std::vector<data::Column> out;
    for (const size_t c : columns) out.push_back(make(tables_[table].columns[c], tables_[table].rows));
    return out;
  }
  std::string fingerprint(size_t, size_t) const override { return ""; }
  std::string describe(size_t table, size_t column, uint64_t row) override {
    return fmt::format("{}.{}[{}]", tables_[table].name, tables_[table].columns[column].name, row);
  }

 private:
  static data::Column make(const MadeColumn& made, uint64_t rows) {
    data::Column column = data::make_column(made.type, rows);
    in_ranges(rows, [&](uint64_t first, uint64_t last) {
      auto fill = [&]<class T>(T, double unit) {
        T* const to = reinterpret_cast<T*>(column.data->data());
        for (uint64_t i = first; i < last; ++i) {
          if constexpr (std::is_floating_point_v<T>)
            to[i] = static_cast<double>(made.value(i)) / unit;
          else
            to[i] = static_cast<T>(made.value(i));
        }
      };
      if (made.type == BasicType::f64) return fill(double{}, 100);
      CHECK(made.type == BasicType::i32 || made.type == BasicType::i64);
      made.type == BasicType::i32 ? fill(int32_t{}, 1) : fill(int64_t{}, 1);
    });
    data::compute_statistics(column);
    return column;
  }

  std::vector<MadeTable> tables_;
  data::Schema schema_;
};

// Of the standard normal distribution, by Acklam's rational approximation: relative error 1.2e-9.
double normal_quantile(double p) {
  constexpr double a[] = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                          1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
  constexpr double b[] = {-5.447609879822406e+01, 1.615858368580409e+02, -1.556989798598866e+02, 6.680131188771972e+01,
                          -1.328068155288572e+01};
  constexpr double c[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                          -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  constexpr double d[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00, 3.754408661907416e+00};
  constexpr double low = 0.02425;
  auto tail = [&](double q) {
    return (((((c[0] * q + c[1]) * q + c[2]) * q + c[3]) * q + c[4]) * q + c[5]) /
           ((((d[0] * q + d[1]) * q + d[2]) * q + d[3]) * q + 1);
  };
  if (p < low) return tail(std::sqrt(-2 * std::log(p)));
  if (p > 1 - low) return -tail(std::sqrt(-2 * std::log(1 - p)));
  const double q = p - 0.5, r = q * q;
  return (((((a[0] * r + a[1]) * r + a[2]) * r + a[3]) * r + a[4]) * r + a[5]) * q /
         (((((b[0] * r + b[1]) * r + b[2]) * r + b[3]) * r + b[4]) * r + 1);
}

}  // namespace

uint64_t random_at(uint64_t seed, uint64_t i) {
  uint64_t z = (seed + 1) * 0xD1B54A32D192ED03u + (i + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

double fraction_at(uint64_t seed, uint64_t i) { return static_cast<double>(random_at(seed, i) >> 11) * 0x1p-53; }

std::string_view name_of(Spreading spreading) {
  constexpr std::string_view names[] = {"uniform", "normal", "Pareto"};
  return names[static_cast<size_t>(spreading)];
}

double quantile(Spreading spreading, double part) {
  constexpr double below_one = 1 - 0x1p-53;
  if (spreading == Spreading::uniform) return part;
  if (spreading == Spreading::normal)
    return std::clamp(0.5 + normal_quantile(std::clamp(part, 0x1p-53, below_one)) / 8, 0.0, below_one);
  // A part x of all values reaches x of 1 - (1 - x)^k; k such that 4/5 lie below 1/5.
  const double exponent = std::log(0.8) / std::log(0.2);
  return std::min(1 - std::pow(1 - part, exponent), below_one);
}

// Four rounds of a Feistel network over the bits, which are split as evenly as they can be.
uint64_t shuffled(uint64_t seed, uint64_t i, unsigned bits) {
  if (bits < 2) return bits ? i ^ (random_at(seed, 0) & 1) : 0;
  unsigned low = bits / 2, high = bits - low;
  for (uint64_t round = 0; round < 4; ++round) {
    const uint64_t right = i & ((uint64_t{1} << low) - 1), left = i >> low;
    const uint64_t mixed = (left ^ random_at(seed + round, right)) & ((uint64_t{1} << high) - 1);
    i = right << high | mixed;
    std::swap(low, high);
  }
  return i;
}

std::shared_ptr<data::Source> source_of(std::vector<MadeTable> tables) {
  return std::make_shared<data::Source>(std::make_unique<MadeLoader>(std::move(tables)));
}

void in_ranges(uint64_t n, const std::function<void(uint64_t first, uint64_t last)>& body) {
  constexpr uint64_t range = 1 << 18;
  if (n <= range) return body(0, n);
  parallel_for((n + range - 1) / range, [&](size_t k) { body(k * range, std::min(n, (k + 1) * range)); });
}

}  // namespace rndn::tools::papers
