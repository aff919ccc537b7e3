// Speed of the operators.
//
//   bench_operators [--device cuda|sim[:TARGET]] [--rows N] [--set-rows N] [--repeat R] [--only TEXT] [--kernels] [--group sort|hash]
//
// --only: cases whose name has the text, or one of several, each with an --only of its own.
// --set-rows: of either side of the cases on sorted columns and of the copy beside them; default: as --rows.
//
// "aggregate" cases: group, len and sum as one.
//
// Per case a line: device time from the first launch to the last (median of R runs after two warm-ups, lowest, highest), millions of rows
// per second, and GB/s of what the operator must read and write at least (columns in, results out). Every result is checked once.
// --kernels adds the time of every kernel of a run. Data comes from a fixed seed.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "assembler/assemble.h"
#include "assembler/isa/isa.h"
#include "libraries/base/errors/guarded_main.h"
#include "libraries/operators/api.h"
#include "ptx/sums/exact_sum.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/simulator/simulator_device.h"

namespace rndn::operators {
namespace {

// One piece of device memory, handed out from the front; everything is free again after a run.
class Slab final : public Memory {
 public:
  static Result<std::unique_ptr<Slab>> make(device::Device& device, uint64_t bytes) {
    std::unique_ptr<Slab> slab(new Slab(device, bytes));
    ASSIGN_OR_RETURN(slab->base_, device.allocate(bytes));
    ASSIGN_OR_RETURN(slab->mapped_, device.allocate_mapped(mapped_bytes));
    return slab;
  }
  Result<Address> temporary(uint64_t bytes) override {
    const uint64_t at = used_;
    used_ += (bytes + 255) / 256 * 256;
    if (used_ > bytes_) return world_error("the benchmark's memory of {} bytes is too small", bytes_);
    return base_ + at;
  }
  Result<Address> result(uint64_t bytes) override { return temporary(bytes); }
  Result<device::Mapped> mapped(uint64_t bytes) override {
    const uint64_t at = mapped_used_;
    mapped_used_ += (bytes + 255) / 256 * 256;
    if (mapped_used_ > mapped_bytes) return world_error("the benchmark's mapped memory is too small");
    device::Mapped m{static_cast<char*>(mapped_.host) + at, mapped_.address + at};
    std::memset(m.host, 0, bytes);
    return m;
  }
  void reset_all() { used_ = kept_ = mapped_used_ = 0; }
  void keep() { kept_ = used_; }  // what is allocated so far stays
  void reset() { used_ = kept_, mapped_used_ = 0; }

 private:
  Slab(device::Device& device, uint64_t bytes) : device_(device), bytes_(bytes) {}
  static constexpr uint64_t mapped_bytes = 64 << 10;
  [[maybe_unused]] device::Device& device_;
  Address base_ = 0;
  uint64_t bytes_, used_ = 0, kept_ = 0, mapped_used_ = 0;
  device::Mapped mapped_;
};

struct BenchArguments {
  Options options;
  std::string device = "sim";
  std::vector<std::string> only;  // parts of the names of cases; none: all
  uint64_t rows = 100000, set_rows = 0;
  uint32_t repeat = 5;
  bool kernels = false;
};

struct Run {
  device::Device& device;
  Operators& sql;
  Slab& memory;
  const BenchArguments& arguments;
  std::mt19937_64 random{1};
};

// Whether the case is to be measured. Asked before its data are made.
bool is_wanted(const Run& run, const std::string& name) {
  const auto& only = run.arguments.only;
  return only.empty() || std::any_of(only.begin(), only.end(),
                                     [&](const std::string& part) { return name.find(part) != std::string::npos; });
}

template <class T>
Result<Vector> put(Run& run, Type type, const std::vector<T>& elements) {
  Vector v{.type = type, .capacity = elements.size()};
  ASSIGN_OR_RETURN(v.data, run.memory.result(elements.size() * sizeof(T)));
  RETURN_IF_ERROR(run.device.copy_to_device(v.data, elements.data(), elements.size() * sizeof(T)));
  return v;
}
template <class T>
Result<std::vector<T>> get(Run& run, Address data, uint64_t count) {
  std::vector<T> out(count);
  RETURN_IF_ERROR(run.device.copy_to_host(out.data(), data, count * sizeof(T)));
  return out;
}

// Runs `body` repeatedly and prints a line. `bytes`: moved at least. `check`: of the last result.
Result<void> measure(Run& run, const std::string& name, uint64_t rows, const std::function<Result<uint64_t>()>& body,
                     const std::function<Result<bool>()>& check) {
  std::vector<double> ms;
  uint64_t bytes = 0;
  run.memory.keep();
  for (uint32_t k = 0; k < run.arguments.repeat + 2; ++k) {
    run.memory.reset();
    RETURN_IF_ERROR(run.device.synchronize());
    ASSIGN_OR_RETURN(uint32_t from, run.device.record_mark());
    ASSIGN_OR_RETURN(bytes, body());
    ASSIGN_OR_RETURN(uint32_t to, run.device.record_mark());
    ASSIGN_OR_RETURN(uint64_t ns, run.device.elapsed_ns(from, to));
    if (k >= 2) ms.push_back(static_cast<double>(ns) / 1e6);
  }
  ASSIGN_OR_RETURN(bool right, check());
  if (!right) return world_error("{}: the result is wrong", name);
  std::sort(ms.begin(), ms.end());
  const double median = ms[ms.size() / 2];
  std::printf("%-34s %11llu %10.4f %10.4f %10.4f %10.1f %9.1f\n", name.c_str(), static_cast<unsigned long long>(rows),
              median, ms.front(), ms.back(), static_cast<double>(rows) / median / 1e3,
              static_cast<double>(bytes) / median / 1e6);
  std::fflush(stdout);
  if (run.arguments.kernels) {
    run.memory.reset();
    run.sql.measure(true);
    (void)run.sql.take_launches();
    RETURN_IF_ERROR(body());
    run.sql.measure(false);
    for (const Launch& launch : run.sql.take_launches()) {
      ASSIGN_OR_RETURN(uint64_t ns, run.device.elapsed_ns(launch.first_mark, launch.last_mark));
      std::printf("    %-40s %10.1f us %9.1f GB/s\n", std::string(launch.kernel).c_str(), static_cast<double>(ns) / 1e3,
                  static_cast<double>(launch.floor_bytes) / static_cast<double>(std::max<uint64_t>(ns, 1)));
    }
    std::fflush(stdout);
  }
  (void)run.sql.take_launches();
  return {};
}

template <class T>
Result<void> bench_order(Run& run, const std::string& name, Type type, uint64_t n, uint64_t values) {
  if (!is_wanted(run, name)) return {};
  run.memory.reset();
  std::vector<T> keys(n);
  for (T& k : keys) k = static_cast<T>(values ? run.random() % values : run.random());
  ASSIGN_OR_RETURN(Vector column, put(run, type, keys));
  Vector got;
  const bool ascending[] = {true};
  return measure(
      run, name, n,
      [&]() -> Result<uint64_t> {
        ASSIGN_OR_RETURN(got, run.sql.order({&column, 1}, ascending, run.memory));
        return n * (sizeof(T) + 8);
      },
      [&]() -> Result<bool> {
        ASSIGN_OR_RETURN(std::vector<int64_t> rows, get<int64_t>(run, got.data, got.capacity));
        std::vector<bool> seen(n);
        for (uint64_t i = 0; i < n; ++i) {
          const auto row = static_cast<uint64_t>(rows[i]);
          if (row >= n || seen[row]) return false;
          seen[row] = true;
          if (i == 0) continue;
          const T a = keys[static_cast<uint64_t>(rows[i - 1])], z = keys[row];
          if (a > z || (a == z && rows[i - 1] > rows[i])) return false;
        }
        return rows.size() == n;
      });
}

// The first `most` rows by a descending f64 of so many values and an ascending i32, as queries 3 and 10 want them; 0: all of them.
Result<void> bench_top(Run& run, uint64_t n, uint64_t most, uint64_t values) {
  const std::string name = fmt::format("{} of f64, i32{}{}", most ? fmt::format("top {}", most) : "order",
                                       values < 10000 ? ", few values" : "", n < 100000 ? ", few rows" : "");
  if (!is_wanted(run, name)) return {};
  run.memory.reset();
  std::vector<double> prices(n);
  std::vector<int32_t> days(n);
  for (double& x : prices) x = static_cast<double>(run.random() % values) / 100;
  for (int32_t& x : days) x = static_cast<int32_t>(run.random() % 2500);
  ASSIGN_OR_RETURN(const Vector price, put(run, Type::f64, prices));
  ASSIGN_OR_RETURN(const Vector day, put(run, Type::i32, days));
  const Vector columns[] = {price, day};
  const bool ascending[] = {false, true};
  Vector got;
  return measure(
      run, name, n,
      [&]() -> Result<uint64_t> {
        ASSIGN_OR_RETURN(got, most ? run.sql.top(columns, ascending, most, run.memory)
                                   : run.sql.order(columns, ascending, run.memory));
        return n * (8 + (most ? 0 : 4 + 8)) + 8 * most;
      },
      [&]() -> Result<bool> {
        ASSIGN_OR_RETURN(std::vector<int64_t> rows, get<int64_t>(run, got.data, got.capacity));
        const uint64_t wanted = most ? std::min(most, n) : n;
        const auto before = [&](int64_t a, int64_t z) {
          const auto i = static_cast<uint64_t>(a), j = static_cast<uint64_t>(z);
          return std::tuple(-prices[i], days[i], a) < std::tuple(-prices[j], days[j], z);
        };
        // Rows in strict order of which the last one has as many before it as it should: those that are wanted, without sorting here.
        if (rows.size() != wanted) return false;
        for (uint64_t i = 0; i < wanted; ++i) {
          if (static_cast<uint64_t>(rows[i]) >= n) return false;
          if (i && !before(rows[i - 1], rows[i])) return false;
        }
        uint64_t earlier = 0;
        for (uint64_t i = 0; i < n; ++i) earlier += before(static_cast<int64_t>(i), rows.back());
        return earlier + 1 == wanted;
      });
}

// spread: the values of the keys need all of their bits.
template <class T>
Result<void> bench_group(Run& run, const std::string& name, Type type, uint64_t n, uint64_t groups,
                         bool spread = false) {
  if (!is_wanted(run, name)) return {};
  run.memory.reset();
  std::vector<T> keys(n);
  const uint64_t factor = spread ? 0x9E3779B97F4A7C15u : 1;
  for (T& k : keys) k = static_cast<T>(run.random() % groups * factor);
  ASSIGN_OR_RETURN(Vector column, put(run, type, keys));
  Groups got;
  return measure(
      run, name, n,
      [&]() -> Result<uint64_t> {
        ASSIGN_OR_RETURN(got, run.sql.group({&column, 1}, run.memory));
        return n * (sizeof(T) + 8) + got.rows.count * 16;
      },
      [&]() -> Result<bool> {
        const uint64_t k = got.rows.count;
        ASSIGN_OR_RETURN(std::vector<int64_t> rows, get<int64_t>(run, got.rows.elements.data, n));
        ASSIGN_OR_RETURN(std::vector<int64_t> first, get<int64_t>(run, got.keys.data, k));
        ASSIGN_OR_RETURN(std::vector<uint64_t> offsets, get<uint64_t>(run, got.rows.offsets, k + 1));
        if (offsets[0] != 0 || offsets[k] != n) return false;
        for (uint64_t j = 0; j < k; ++j) {
          if (offsets[j] >= offsets[j + 1] || rows[offsets[j]] != first[j]) return false;
          const T *before = j ? &keys[static_cast<uint64_t>(first[j - 1])] : nullptr,
                  *key = &keys[static_cast<uint64_t>(first[j])];
          if (run.arguments.options.group == Options::Group::hash ? j && first[j - 1] >= first[j]
                                                                  : j && *before >= *key)
            return false;
          for (uint64_t p = offsets[j] + 1; p < offsets[j + 1]; ++p)
            if (rows[p - 1] >= rows[p] || keys[static_cast<uint64_t>(rows[p])] != keys[static_cast<uint64_t>(first[j])])
              return false;
        }
        return true;
      });
}

// Length and sum of a f64 column per group, without a list of rows. ascending: as a foreign key of a table that is stored by it.
Result<void> bench_aggregate(Run& run, const std::string& name, uint64_t n, uint64_t groups, bool ascending,
                             bool bounds) {
  if (!is_wanted(run, name)) return {};
  run.memory.reset();
  std::vector<int32_t> keys(n);
  std::vector<double> values(n), sums(groups);
  std::vector<int64_t> sizes(groups);
  for (uint64_t i = 0; i < n; ++i) {
    keys[i] = static_cast<int32_t>(ascending ? i * groups / n : run.random() % groups);
    values[i] = static_cast<double>(run.random() % 1000);
    sums[static_cast<size_t>(keys[i])] += values[i];
    ++sizes[static_cast<size_t>(keys[i])];
  }
  ASSIGN_OR_RETURN(Vector column, put(run, Type::i32, keys));
  ASSIGN_OR_RETURN(Vector summed, put(run, Type::f64, values));
  column.ascending = ascending;
  if (bounds) column.min = 0, column.max = static_cast<int64_t>(groups) - 1;
  const Aggregate wanted[] = {{Reduce::sum, summed, Type::f64}, {Reduce::len, {}, Type::i64}};
  Aggregates got;
  return measure(
      run, name, n,
      [&]() -> Result<uint64_t> {
        ASSIGN_OR_RETURN(const device::Mapped flags, run.memory.mapped(sums::flag_bytes));
        ASSIGN_OR_RETURN(got, run.sql.aggregate({&column, 1}, wanted, flags.address, run.memory));
        return n * 12 + got.keys.capacity * 24;
      },
      [&]() -> Result<bool> {
        const uint64_t k = got.keys.capacity;
        ASSIGN_OR_RETURN(std::vector<int64_t> first, get<int64_t>(run, got.keys.data, k));
        ASSIGN_OR_RETURN(std::vector<double> sum, get<double>(run, got.results[0].data, k));
        ASSIGN_OR_RETURN(std::vector<int64_t> size, get<int64_t>(run, got.results[1].data, k));
        uint64_t rows = 0;
        for (uint64_t j = 0; j < k; ++j) {
          const auto key = static_cast<size_t>(keys[static_cast<size_t>(first[j])]);
          if (sum[j] != sums[key] || size[j] != sizes[key]) return false;  // whole numbers: exact
          rows += static_cast<uint64_t>(size[j]);
        }
        return rows == n;
      });
}

// The keys of the left side of a join, and whether they repeat.
enum class Keys { dense, unbounded, sparse, repeated };

template <class T>
Result<void> bench_join(Run& run, const std::string& name, Type type, uint64_t n, uint64_t left_rows, Keys kind) {
  if (!is_wanted(run, name)) return {};
  run.memory.reset();
  std::vector<T> left(left_rows), right(n);
  for (uint64_t i = 0; i < left_rows; ++i)
    left[i] = static_cast<T>(kind == Keys::sparse     ? i * 0x9E3779B97F4A7C15u
                             : kind == Keys::repeated ? run.random() % (left_rows / 4 + 1)
                                                      : i + 1);
  if (kind != Keys::repeated) std::shuffle(left.begin(), left.end(), run.random);
  for (T& v : right) v = left[run.random() % left_rows];
  ASSIGN_OR_RETURN(Vector x, put(run, type, left));
  ASSIGN_OR_RETURN(Vector y, put(run, type, right));
  if (kind == Keys::dense || kind == Keys::repeated) x.min = 0, x.max = static_cast<int64_t>(left_rows);
  Pairs got;
  const Compare compare[] = {Compare::eq};
  return measure(
      run, name, n,
      [&]() -> Result<uint64_t> {
        ASSIGN_OR_RETURN(got, run.sql.join(compare, {&x, 1}, {&y, 1}, run.memory));
        return (n + left_rows) * sizeof(T) + got.left.capacity * 16;
      },
      [&]() -> Result<bool> {
        ASSIGN_OR_RETURN(std::vector<int64_t> l, get<int64_t>(run, got.left.data, got.left.capacity));
        ASSIGN_OR_RETURN(std::vector<int64_t> r, get<int64_t>(run, got.right.data, got.right.capacity));
        if (kind != Keys::repeated && l.size() != n) return false;
        std::vector<uint32_t> times(kind == Keys::repeated ? left_rows / 4 + 2 : 0);
        if (kind == Keys::repeated) {
          for (T v : left) ++times[static_cast<size_t>(v)];
          uint64_t pairs = 0;
          for (T v : right) pairs += times[static_cast<size_t>(v)];
          if (pairs != l.size()) return false;
        }
        for (uint64_t i = 0; i < l.size(); ++i) {
          if (left[static_cast<uint64_t>(l[i])] != right[static_cast<uint64_t>(r[i])]) return false;
          if (i && (r[i - 1] > r[i] || (r[i - 1] == r[i] && l[i - 1] >= l[i]))) return false;
        }
        return true;
      });
}

template <class T>
Result<void> bench_member(Run& run, const std::string& name, Type type, uint64_t n, uint64_t set, Keys kind) {
  if (!is_wanted(run, name)) return {};
  run.memory.reset();
  std::vector<T> x(n), y(set);
  const auto value = [&](uint64_t i) { return static_cast<T>(kind == Keys::sparse ? i * 0x9E3779B97F4A7C15u : i); };
  for (uint64_t i = 0; i < set; ++i) y[i] = value(2 * i);
  std::shuffle(y.begin(), y.end(), run.random);
  std::vector<uint8_t> expected(n);
  for (uint64_t i = 0; i < n; ++i) {
    const uint64_t v = run.random() % (2 * set);
    x[i] = value(v), expected[i] = v % 2 == 0;
  }
  ASSIGN_OR_RETURN(Vector a, put(run, type, x));
  ASSIGN_OR_RETURN(Vector s, put(run, type, y));
  if (kind == Keys::dense) s.min = 0, s.max = static_cast<int64_t>(2 * set);
  Vector got;
  return measure(
      run, name, n,
      [&]() -> Result<uint64_t> {
        ASSIGN_OR_RETURN(got, run.sql.member(a, s, run.memory));
        return n * (sizeof(T) + 1) + set * sizeof(T);
      },
      [&]() -> Result<bool> {
        ASSIGN_OR_RETURN(std::vector<uint8_t> flags, get<uint8_t>(run, got.data, n));
        return flags == expected;
      });
}

Result<void> bench_like(Run& run, const std::string& name, uint64_t n, std::string_view pattern, uint64_t words) {
  if (!is_wanted(run, name)) return {};
  run.memory.reset();
  static constexpr std::string_view vocabulary[] = {
      "furiously", "requests", "special", "packages", "blithely", "ironic",  "deposits", "PROMO",
      "carefully", "accounts", "express", "final",    "slyly",    "pending", "quickly",  "bold"};
  std::string pad;
  std::vector<uint64_t> handles(n);
  std::vector<uint8_t> expected(n);
  const size_t inner = pattern.find('%', 1);
  for (uint64_t i = 0; i < n; ++i) {
    const size_t start = pad.size();
    for (uint64_t k = 0; k < words; ++k) {
      if (k) pad += ' ';
      pad += vocabulary[run.random() % 16];
    }
    handles[i] = start << 24 | (pad.size() - start);
    const std::string_view text(pad.data() + start, pad.size() - start);
    if (pattern[0] != '%') {
      expected[i] = text.starts_with(pattern.substr(0, pattern.size() - 1));
    } else {
      const size_t at = text.find(pattern.substr(1, inner - 1));
      expected[i] = at != text.npos &&
                    text.find(pattern.substr(inner + 1, pattern.size() - inner - 2), at + inner - 1) != text.npos;
    }
  }
  Strings strings{.count = n};
  ASSIGN_OR_RETURN(strings.handles, run.memory.result(n * 8));
  ASSIGN_OR_RETURN(strings.pad, run.memory.result(pad.size()));
  RETURN_IF_ERROR(run.device.copy_to_device(strings.handles, handles.data(), n * 8));
  RETURN_IF_ERROR(run.device.copy_to_device(strings.pad, pad.data(), pad.size()));
  Vector got;
  return measure(
      run, name, n,
      [&]() -> Result<uint64_t> {
        ASSIGN_OR_RETURN(got, run.sql.like(strings, pattern, run.memory));
        return n * 9 + (pattern[0] == '%' ? pad.size() : n * pattern.size());
      },
      [&]() -> Result<bool> {
        ASSIGN_OR_RETURN(std::vector<uint8_t> flags, get<uint8_t>(run, got.data, n));
        return flags == expected;
      });
}

// A copy on the device, which the others are held against: n elements of 8 bytes.
Result<void> bench_copy(Run& run, uint64_t n) {
  if (!is_wanted(run, "copy")) return {};
  run.memory.reset();
  std::vector<uint64_t> values(n);
  for (uint64_t& v : values) v = run.random();
  ASSIGN_OR_RETURN(const Vector from, put(run, Type::i64, values));
  ASSIGN_OR_RETURN(const Address to, run.memory.result(n * 8));
  return measure(
      run, "copy", n,
      [&]() -> Result<uint64_t> {
        RETURN_IF_ERROR(run.device.copy(to, from.data, n * 8));
        return 16 * n;
      },
      [&]() -> Result<bool> {
        ASSIGN_OR_RETURN(std::vector<uint64_t> got, get<uint64_t>(run, to, n));
        return got == values;
      });
}

// Relations of `columns` columns of 8 bytes; bytes are those of the arguments once and of the result once.
Result<void> bench_select(Run& run, uint64_t n, uint32_t columns) {
  if (!is_wanted(run, fmt::format("select half of {} columns", columns))) return {};
  run.memory.reset();
  Relation r;
  std::vector<uint8_t> mask(n);
  std::vector<uint64_t> values(n), expected;
  for (uint64_t i = 0; i < n; ++i) mask[i] = run.random() & 1, values[i] = run.random();
  for (uint64_t i = 0; i < n; ++i)
    if (mask[i]) expected.push_back(values[i]);
  for (uint32_t c = 0; c < columns; ++c) {
    ASSIGN_OR_RETURN(r.emplace_back(), put(run, Type::i64, values));
  }
  ASSIGN_OR_RETURN(const Vector m, put(run, Type::u8, mask));
  Relation got;
  return measure(
      run, fmt::format("select half of {} columns", columns), n,
      [&]() -> Result<uint64_t> {
        ASSIGN_OR_RETURN(got, run.sql.select(r, m, run.memory));
        return n + (n + expected.size()) * 8 * columns;
      },
      [&]() -> Result<bool> {
        for (const Vector& v : got) {
          ASSIGN_OR_RETURN(std::vector<uint64_t> column, get<uint64_t>(run, v.data, v.capacity));
          if (column != expected) return false;
        }
        return true;
      });
}

// n rows of two columns, from n / 1000 rows and 1000.
Result<void> bench_product(Run& run, uint64_t n) {
  if (!is_wanted(run, "product")) return {};
  run.memory.reset();
  const uint64_t inner = n / 1000, outer = 1000;
  std::vector<uint64_t> x(inner), y(outer);
  for (uint64_t& v : x) v = run.random();
  for (uint64_t& v : y) v = run.random();
  ASSIGN_OR_RETURN(const Vector left, put(run, Type::i64, x));
  ASSIGN_OR_RETURN(const Vector right, put(run, Type::i64, y));
  Relation got;
  return measure(
      run, "product", inner * outer,
      [&]() -> Result<uint64_t> {
        ASSIGN_OR_RETURN(got, run.sql.product({left}, {right}, run.memory));
        return 8 * (inner + outer) + 16 * inner * outer;
      },
      [&]() -> Result<bool> {
        ASSIGN_OR_RETURN(std::vector<uint64_t> a, get<uint64_t>(run, got[0].data, inner * outer));
        ASSIGN_OR_RETURN(std::vector<uint64_t> b, get<uint64_t>(run, got[1].data, inner * outer));
        for (uint64_t i = 0; i < inner * outer; ++i)
          if (a[i] != x[i % inner] || b[i] != y[i / inner]) return false;
        return true;
      });
}

// Two columns of n ascending numbers, half of which the other has: evenly, or each number by chance in one of them or in both.
std::pair<std::vector<int64_t>, std::vector<int64_t>> sorted_columns(Run& run, uint64_t n, bool even) {
  std::vector<int64_t> x, y;
  x.reserve(n), y.reserve(n);
  for (int64_t i = 0; x.size() < n || y.size() < n; ++i) {
    const uint64_t which = even ? 3 : run.random() % 3;
    if (even && i % 2) {
      x.push_back(2 * i), y.push_back(2 * i + 1);
      continue;
    }
    const int64_t value = even ? 2 * i : i;
    if (which != 1 && x.size() < n) x.push_back(value);
    if (which != 0 && y.size() < n) y.push_back(value);
  }
  return {x, y};
}

// Sets of n numbers, ascending.
Result<void> bench_set(Run& run, const std::string& name, uint64_t n, bool even,
                       Result<Relation> (Operators::*operation)(const Relation&, const Relation&, Memory&)) {
  if (!is_wanted(run, name)) return {};
  run.memory.reset();
  const auto [x, y] = sorted_columns(run, n, even);
  std::vector<int64_t> expected;
  const auto compute = [&, &x = x, &y = y](auto&& set_operation) {
    set_operation(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(expected));
  };
  if (name.starts_with("intersection"))
    compute([](auto... a) { std::set_intersection(a...); });
  else if (name.starts_with("difference"))
    compute([](auto... a) { std::set_difference(a...); });
  else
    compute([](auto... a) { std::set_union(a...); });
  ASSIGN_OR_RETURN(Vector left, put(run, Type::i64, x));
  ASSIGN_OR_RETURN(Vector right, put(run, Type::i64, y));
  for (Vector* v : {&left, &right}) v->min = 0, v->max = std::max(x.back(), y.back()), v->ascending = true;
  Relation got;
  return measure(
      run, name, n,
      [&]() -> Result<uint64_t> {
        ASSIGN_OR_RETURN(got, (run.sql.*operation)({left}, {right}, run.memory));
        return 8 * (2 * n + expected.size());
      },
      [&]() -> Result<bool> {
        if (got[0].capacity != expected.size()) return false;
        ASSIGN_OR_RETURN(std::vector<int64_t> elements, get<int64_t>(run, got[0].data, expected.size()));
        return elements == expected;
      });
}

// The same columns joined; `repeated`: every key twice on the left side.
Result<void> bench_sorted_join(Run& run, const std::string& name, uint64_t n, bool repeated) {
  if (!is_wanted(run, name)) return {};
  run.memory.reset();
  std::vector<int64_t> x(n), y(n);
  for (uint64_t i = 0; i < n; ++i)
    x[i] = static_cast<int64_t>(2 * (repeated ? i / 2 : i)), y[i] = static_cast<int64_t>(2 * i + i % 2);
  ASSIGN_OR_RETURN(Vector left, put(run, Type::i64, x));
  ASSIGN_OR_RETURN(Vector right, put(run, Type::i64, y));
  left.ascending = right.ascending = true;
  Pairs got;
  const Compare compare[] = {Compare::eq};
  return measure(
      run, name, n,
      [&]() -> Result<uint64_t> {
        ASSIGN_OR_RETURN(got, run.sql.join(compare, {&left, 1}, {&right, 1}, run.memory));
        return 8 * (2 * n) + 16 * got.left.capacity;
      },
      [&]() -> Result<bool> {
        ASSIGN_OR_RETURN(std::vector<int64_t> l, get<int64_t>(run, got.left.data, got.left.capacity));
        ASSIGN_OR_RETURN(std::vector<int64_t> r, get<int64_t>(run, got.right.data, got.right.capacity));
        std::vector<int64_t> expected_left, expected_right;
        for (uint64_t j = 0; j < n; j += 2)  // y[j] = 2 j
          for (uint64_t i = repeated ? 2 * j : j; i < (repeated ? 2 * j + 2 : j + 1) && i < n; ++i)
            expected_left.push_back(static_cast<int64_t>(i)), expected_right.push_back(static_cast<int64_t>(j));
        return l == expected_left && r == expected_right;
      });
}

Result<void> run_all(const BenchArguments& arguments) {
  std::unique_ptr<device::Device> device;
  std::unique_ptr<cuda::Preparation> preparation;
  if (arguments.device == "cuda") {
    preparation = cuda::prepare();
    ASSIGN_OR_RETURN(device, cuda::open(*preparation));
  } else {
    const size_t colon = arguments.device.find(':');
    ASSIGN_OR_RETURN(
        device, runtime::open_simulator(colon == std::string::npos ? "sm_90" : arguments.device.substr(colon + 1)));
  }
  const isa::Target* target = isa::find_target(device->info().target);
  if (!target) return world_error("no target {}", device->info().target);
  const auto assemble = [&](const ptx::Module& module) -> Result<std::vector<std::byte>> {
    Timings timings;
    assembler::Options options;
    options.target = target;
    ASSIGN_OR_RETURN(assembler::Assembled made, assembler::assemble(module, options, timings));
    return std::move(made.cubin);
  };
  Operators sql(*device, assemble, arguments.options);
  const uint64_t n = arguments.rows;
  ASSIGN_OR_RETURN(std::unique_ptr<Slab> slab,
                   Slab::make(*device, 120 * std::max(n, arguments.set_rows) + (uint64_t{64} << 20)));
  std::printf("%s, %s\n%-34s %11s %10s %10s %10s %10s %9s\n", device->info().name.c_str(),
              device->info().target.c_str(), "case", "rows", "ms", "lowest", "highest", "Mrows/s", "GB/s");
  const auto fresh = [&] { return Run{*device, sql, *slab, arguments}; };
  // Every case starts with empty memory.
  const auto run_case = [&](auto&& body) -> Result<void> {
    slab->reset_all();
    Run run = fresh();
    return body(run);
  };
  RETURN_IF_ERROR(
      run_case([&](Run& r) { return bench_order<uint64_t>(r, "order 64-bit keys", Type::i64, n, uint64_t{1} << 63); }));
  RETURN_IF_ERROR(
      run_case([&](Run& r) { return bench_order<int32_t>(r, "order 31-bit keys", Type::i32, n, uint64_t{1} << 31); }));
  RETURN_IF_ERROR(run_case([&](Run& r) { return bench_order<int32_t>(r, "order 12-bit keys", Type::i32, n, 4096); }));
  for (uint64_t rows : {n, uint64_t{37967}, uint64_t{11620}})  // and as many as queries 10 and 3 have at scale 1
    for (uint64_t most : {uint64_t{10}, uint64_t{100}, uint64_t{1000}, uint64_t{0}})
      RETURN_IF_ERROR(run_case([&](Run& r) { return bench_top(r, rows, most, 60000000); }));
  RETURN_IF_ERROR(run_case([&](Run& r) { return bench_top(r, n, 100, 20); }));
  for (uint64_t groups : {uint64_t{4}, uint64_t{1000}, uint64_t{100000}, uint64_t{10000000}})
    if (groups <= n)
      RETURN_IF_ERROR(run_case([&](Run& r) {
        return bench_group<int64_t>(r, "group into " + std::to_string(groups), Type::i64, n, groups);
      }));
  for (uint64_t groups : {uint64_t{1000}, uint64_t{100000}, uint64_t{10000000}})
    if (groups <= n)
      RETURN_IF_ERROR(run_case([&](Run& r) {
        return bench_group<int64_t>(r, "group spread into " + std::to_string(groups), Type::i64, n, groups, true);
      }));
  for (uint64_t groups : {uint64_t{4}, uint64_t{32}, uint64_t{1000}, uint64_t{100000}, uint64_t{10000000}})
    if (groups <= n)
      RETURN_IF_ERROR(run_case([&](Run& r) {
        return bench_aggregate(r, "aggregate into " + std::to_string(groups), n, groups, false, true);
      }));
  RETURN_IF_ERROR(run_case(
      [&](Run& r) { return bench_aggregate(r, "aggregate ascending, 4 rows each", n, n / 4 + 1, true, true); }));
  RETURN_IF_ERROR(run_case([&](Run& r) {
    return bench_aggregate(r, "aggregate ascending, 100 groups", n, std::min<uint64_t>(n, 100), true, true);
  }));
  const uint64_t tenth = n / 10 + 1;
  using enum Keys;
  RETURN_IF_ERROR(
      run_case([&](Run& r) { return bench_join<int64_t>(r, "join dense i64", Type::i64, n, tenth, dense); }));
  RETURN_IF_ERROR(
      run_case([&](Run& r) { return bench_join<int32_t>(r, "join dense i32", Type::i32, n, tenth, dense); }));
  RETURN_IF_ERROR(
      run_case([&](Run& r) { return bench_join<int32_t>(r, "join i32, no bounds", Type::i32, n, tenth, unbounded); }));
  RETURN_IF_ERROR(
      run_case([&](Run& r) { return bench_join<int32_t>(r, "join sparse i32", Type::i32, n, tenth, sparse); }));
  RETURN_IF_ERROR(
      run_case([&](Run& r) { return bench_join<int64_t>(r, "join sparse i64", Type::i64, n, tenth, sparse); }));
  RETURN_IF_ERROR(run_case([&](Run& r) {
    return bench_join<int32_t>(r, "join, four rows per key", Type::i32, n / 4 + 1, tenth, repeated);
  }));
  RETURN_IF_ERROR(
      run_case([&](Run& r) { return bench_join<int32_t>(r, "join 1000 with 100", Type::i32, 1000, 100, dense); }));
  RETURN_IF_ERROR(
      run_case([&](Run& r) { return bench_member<int32_t>(r, "member of 8, i32", Type::i32, n, 8, dense); }));
  RETURN_IF_ERROR(
      run_case([&](Run& r) { return bench_member<int64_t>(r, "member of 30, i64", Type::i64, n, 30, dense); }));
  RETURN_IF_ERROR(
      run_case([&](Run& r) { return bench_member<int32_t>(r, "member, bitmap", Type::i32, n, tenth, dense); }));
  RETURN_IF_ERROR(
      run_case([&](Run& r) { return bench_member<int32_t>(r, "member, set of i32", Type::i32, n, tenth, sparse); }));
  RETURN_IF_ERROR(
      run_case([&](Run& r) { return bench_member<int64_t>(r, "member, set of i64", Type::i64, n, tenth, sparse); }));
  RETURN_IF_ERROR(
      run_case([&](Run& r) { return bench_like(r, "like %special%requests%", tenth, "%special%requests%", 6); }));
  RETURN_IF_ERROR(run_case([&](Run& r) { return bench_like(r, "like PROMO%", tenth, "PROMO%", 3); }));
  RETURN_IF_ERROR(run_case([&](Run& r) { return bench_copy(r, n); }));
  for (uint32_t columns : {1u, 2u, 4u}) RETURN_IF_ERROR(run_case([&](Run& r) { return bench_select(r, n, columns); }));
  RETURN_IF_ERROR(run_case([&](Run& r) { return bench_product(r, n); }));
  const uint64_t s = arguments.set_rows ? arguments.set_rows : n;
  if (s != n) RETURN_IF_ERROR(run_case([&](Run& r) { return bench_copy(r, s); }));
  for (bool even : {true, false}) {
    const std::string how = even ? ", sorted" : ", sorted, by chance";
    RETURN_IF_ERROR(
        run_case([&](Run& r) { return bench_set(r, "intersection" + how, s, even, &Operators::intersect); }));
    RETURN_IF_ERROR(run_case([&](Run& r) { return bench_set(r, "difference" + how, s, even, &Operators::subtract); }));
    RETURN_IF_ERROR(run_case([&](Run& r) { return bench_set(r, "union" + how, s, even, &Operators::unite); }));
  }
  RETURN_IF_ERROR(run_case([&](Run& r) { return bench_sorted_join(r, "join, sorted", s, false); }));
  RETURN_IF_ERROR(run_case([&](Run& r) { return bench_sorted_join(r, "join, sorted, keys twice", s, true); }));
  for (uint64_t few : {uint64_t{10}, uint64_t{1000}, uint64_t{2000}, uint64_t{20000}}) {
    RETURN_IF_ERROR(run_case([&](Run& r) {
      return bench_order<int32_t>(r, "order " + std::to_string(few) + " rows", Type::i32, few, uint64_t{1} << 20);
    }));
    RETURN_IF_ERROR(run_case([&](Run& r) {
      return bench_group<int32_t>(r, "group " + std::to_string(few) + " rows", Type::i32, few, few / 4 + 1);
    }));
  }
  return {};
}

int main_of(int argc, char** argv) {
  BenchArguments a;
  const auto usage = [] {
    std::fprintf(stderr,
                 "usage: bench_operators [--device cuda|sim[:TARGET]] [--rows N] [--set-rows N] [--repeat R] [--only TEXT] "
                 "[--kernels] [--group sort|hash]\n");
    return 2;
  };
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--kernels") {
      a.kernels = true;
      continue;
    }
    if (i + 1 >= argc) return usage();
    const char* value = argv[++i];
    if (flag == "--device")
      a.device = value;
    else if (flag == "--group" && (std::strcmp(value, "sort") == 0 || std::strcmp(value, "hash") == 0))
      a.options.group = value[0] == 's' ? Options::Group::sort : Options::Group::hash;
    else if (flag == "--rows")
      a.rows = std::max(1ull, std::strtoull(value, nullptr, 10));
    else if (flag == "--set-rows")
      a.set_rows = std::max(1ull, std::strtoull(value, nullptr, 10));
    else if (flag == "--repeat")
      a.repeat = static_cast<uint32_t>(std::max(1ul, std::strtoul(value, nullptr, 10)));
    else if (flag == "--only")
      a.only.push_back(value);
    else
      return usage();
  }
  auto done = run_all(a);
  if (!done) {
    std::fprintf(stderr, "bench_operators: %s\n", done.error().message.c_str());
    return 3;
  }
  return 0;
}

}  // namespace
}  // namespace rndn::operators

int main(int argc, char** argv) { return rndn::guarded_main(rndn::operators::main_of, argc, argv); }
