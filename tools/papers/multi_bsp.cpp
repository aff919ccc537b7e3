// `rndn bench multi-bsp`: the experiments of Diamos, Wu, Lele, Wang, Yalamanchili: "Efficient
// Relational Algebra Algorithms and Data Structures for GPU" (2012), whose model is multi-BSP:
// operators beside a copy of as many bytes.
//
// Bytes of an operator are those of its arguments once and of its result once; the copy reads half
// of them and writes half. Columns are of 8 bytes. Keys that matter are uniform, normal or
// Pareto's: those of a sorted relation that refer to another one, and those that are sorted and
// grouped.
//
// Figures: 9 (operators by size), 10 to 14 (distributions), 16 (a copy by size, beside the largest
// copy's speed). Left out: PROJECT, which moves nothing here, as columns stay where they are; the
// five joins within a block, and pages in place of a gather: rndn has one merging join, and writes
// each result once (decoupled look-back).
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>

#include "libraries/operators/api.h"
#include "ptx/sums/exact_sum.h"
#include "tools/papers/made_tables.h"
#include "tools/papers/papers.h"
#include "tools/papers/slab.h"

namespace rndn::tools::papers {
namespace {

using device::Address;
using operators::Operators, operators::Relation, operators::Type, operators::Vector;
using Numbers = std::vector<int64_t>;

// Where an operator finds its data, and the operators.
struct Bench {
  device::Device& device;
  Operators& operators;
  Slab& memory;
  unsigned bits;
  Spreading spreading;

  uint64_t n() const { return uint64_t{1} << bits; }
  // A number below `most`, by the spreading: of row i of n in ascending order, and in any order.
  uint64_t ascending(uint64_t i, uint64_t most) const {
    return below(quantile(spreading, (static_cast<double>(i) + 0.5) / static_cast<double>(n())), most);
  }
  uint64_t unordered(uint64_t i, uint64_t most) const { return below(quantile(spreading, fraction_at(1, i)), most); }

  template <class T>
  Result<Vector> put(Type type, const std::vector<T>& elements) {
    Vector v{.type = type, .capacity = elements.size()};
    ASSIGN_OR_RETURN(v.data, memory.result(elements.size() * sizeof(T)));
    RETURN_IF_ERROR(device.copy_to_device(v.data, elements.data(), elements.size() * sizeof(T)));
    return v;
  }
  Result<Numbers> get(Address data, uint64_t count) {
    Numbers out(count);
    RETURN_IF_ERROR(device.copy_to_host(out.data(), data, count * 8));
    return out;
  }
  Result<Numbers> get(const Vector& v) { return get(v.data, v.capacity); }

 private:
  static uint64_t below(double part, uint64_t most) {
    return std::min(static_cast<uint64_t>(part * static_cast<double>(most)), most - 1);
  }
};

template <class F>
Numbers numbers(uint64_t n, F value) {
  Numbers out(n);
  in_ranges(n, [&](uint64_t first, uint64_t last) {
    for (uint64_t i = first; i < last; ++i) out[i] = static_cast<int64_t>(value(i));
  });
  return out;
}
// Whether it holds for every i below n.
template <class F>
bool all_of(uint64_t n, F holds) {
  std::atomic<bool> all = true;
  in_ranges(n, [&](uint64_t first, uint64_t last) {
    for (uint64_t i = first; i < last && all; ++i)
      if (!holds(i)) all = false;
  });
  return all;
}

// An operator over its data.
struct Prepared {
  std::function<Result<uint64_t>()> run;  // bytes of arguments and result
  std::function<Result<bool>()> check;    // of the last run's result
};

Result<Prepared> select_half(Bench& b) {
  const Numbers keys = numbers(b.n(), [](uint64_t i) { return random_at(1, i); });
  std::vector<uint8_t> mask(b.n());
  for (uint64_t i = 0; i < b.n(); ++i) mask[i] = random_at(2, i) & 1;
  ASSIGN_OR_RETURN(const Vector k, b.put(Type::i64, keys));
  ASSIGN_OR_RETURN(const Vector v, b.put(Type::i64, keys));
  ASSIGN_OR_RETURN(const Vector m, b.put(Type::u8, mask));
  auto got = std::make_shared<Relation>();
  return Prepared{[=, &b]() -> Result<uint64_t> {
                    ASSIGN_OR_RETURN(*got, b.operators.select({k, v}, m, b.memory));
                    return b.n() * 17 + got->at(0).capacity * 16;
                  },
                  [=, &b, keys = std::move(keys), mask = std::move(mask)]() -> Result<bool> {
                    ASSIGN_OR_RETURN(const Numbers one, b.get(got->at(0)));
                    ASSIGN_OR_RETURN(const Numbers two, b.get(got->at(1)));
                    uint64_t at = 0;
                    for (uint64_t i = 0; i < b.n(); ++i) {
                      if (!mask[i]) continue;
                      if (at == one.size() || one[at] != keys[i]) return false;
                      ++at;
                    }
                    return at == one.size() && one == two;
                  }};
}

// Every row of one side with every row of the other.
Result<Prepared> product(Bench& b) {
  const uint64_t outer = uint64_t{1} << b.bits / 3, inner = b.n() / outer;
  Numbers x = numbers(inner, [](uint64_t i) { return random_at(1, i); });
  Numbers y = numbers(outer, [](uint64_t i) { return random_at(2, i); });
  ASSIGN_OR_RETURN(const Vector left, b.put(Type::i64, x));
  ASSIGN_OR_RETURN(const Vector right, b.put(Type::i64, y));
  auto got = std::make_shared<Relation>();
  return Prepared{[=, &b]() -> Result<uint64_t> {
                    ASSIGN_OR_RETURN(*got, b.operators.product({left}, {right}, b.memory));
                    return 8 * (inner + outer) + 16 * got->at(0).capacity;
                  },
                  [=, &b, x = std::move(x), y = std::move(y)]() -> Result<bool> {
                    ASSIGN_OR_RETURN(const Numbers one, b.get(got->at(0)));
                    ASSIGN_OR_RETURN(const Numbers two, b.get(got->at(1)));
                    return one.size() == b.n() &&
                           all_of(b.n(), [&](uint64_t i) { return one[i] == x[i % inner] && two[i] == y[i / inner]; });
                  }};
}

// Key number i of a sorted relation: ascending, and even, so that a key and one more stands
// nowhere.
int64_t sorted_key(uint64_t i) { return static_cast<int64_t>(4 * i + (random_at(3, i) & 1) * 2); }
bool is_missed(uint64_t i) { return random_at(4, i) & 1; }

// Two sorted relations. The right one refers to keys of the left by the spreading; of half of these
// keys it has another in its place.
struct Sorted {
  uint64_t times;  // that every key of the left stands there
  Numbers left, right;
  std::vector<uint32_t> refers;  // the number of the key, per row of the right
  Sorted(const Bench& b, uint64_t key_times, bool right_keys_once) : times(key_times) {
    const uint64_t keys = b.n() / times, rows = right_keys_once ? keys : b.n();
    left = numbers(b.n(), [&](uint64_t i) { return sorted_key(i / times); });
    refers.resize(rows);
    in_ranges(rows, [&](uint64_t first, uint64_t last) {
      for (uint64_t i = first; i < last; ++i)
        refers[i] = static_cast<uint32_t>(right_keys_once ? i : b.ascending(i, keys));
    });
    right = numbers(rows, [&](uint64_t i) { return sorted_key(refers[i]) + is_missed(refers[i]); });
  }
};

Result<Prepared> sorted_join(Bench& b, uint64_t times, bool right_keys_once) {
  const auto data = std::make_shared<Sorted>(b, times, right_keys_once);
  ASSIGN_OR_RETURN(Vector left, b.put(Type::i64, data->left));
  ASSIGN_OR_RETURN(Vector right, b.put(Type::i64, data->right));
  left.ascending = right.ascending = true;
  auto got = std::make_shared<operators::Pairs>();
  return Prepared{[=, &b]() -> Result<uint64_t> {
                    const operators::Compare compare[] = {operators::Compare::eq};
                    ASSIGN_OR_RETURN(*got, b.operators.join(compare, {&left, 1}, {&right, 1}, b.memory));
                    return 8 * (left.capacity + right.capacity) + 16 * got->left.capacity;
                  },
                  [=, &b]() -> Result<bool> {
                    ASSIGN_OR_RETURN(const Numbers l, b.get(got->left));
                    ASSIGN_OR_RETURN(const Numbers r, b.get(got->right));
                    uint64_t at = 0;
                    for (uint64_t j = 0; j < data->right.size(); ++j) {
                      if (is_missed(data->refers[j])) continue;
                      for (uint64_t k = 0; k < times; ++k, ++at)
                        if (at >= l.size() || l[at] != static_cast<int64_t>(data->refers[j] * times + k) ||
                            r[at] != static_cast<int64_t>(j))
                          return false;
                    }
                    return at == l.size() && at == r.size();
                  }};
}

// Keys of the left in no order, each once; those of the right refer to them by the spreading.
Result<Prepared> unsorted_join(Bench& b) {
  const uint64_t keys = b.n() / 4;
  const Numbers x = numbers(keys, [&](uint64_t i) { return shuffled(5, i, b.bits - 2); });
  Numbers y = numbers(b.n(), [&](uint64_t i) { return b.unordered(i, keys); });
  Numbers row_of(keys);
  for (uint64_t i = 0; i < keys; ++i) row_of[static_cast<uint64_t>(x[i])] = static_cast<int64_t>(i);
  ASSIGN_OR_RETURN(Vector left, b.put(Type::i64, x));
  ASSIGN_OR_RETURN(const Vector right, b.put(Type::i64, y));
  left.min = 0, left.max = static_cast<int64_t>(keys) - 1;
  auto got = std::make_shared<operators::Pairs>();
  return Prepared{[=, &b]() -> Result<uint64_t> {
                    const operators::Compare compare[] = {operators::Compare::eq};
                    ASSIGN_OR_RETURN(*got, b.operators.join(compare, {&left, 1}, {&right, 1}, b.memory));
                    return 8 * (left.capacity + right.capacity) + 16 * got->left.capacity;
                  },
                  [=, &b, y = std::move(y), row_of = std::move(row_of)]() -> Result<bool> {
                    ASSIGN_OR_RETURN(const Numbers l, b.get(got->left));
                    ASSIGN_OR_RETURN(const Numbers r, b.get(got->right));
                    return l.size() == b.n() && r.size() == b.n() && all_of(b.n(), [&](uint64_t i) {
                             return r[i] == static_cast<int64_t>(i) && l[i] == row_of[static_cast<uint64_t>(y[i])];
                           });
                  }};
}

using SetOperator = Result<Relation> (Operators::*)(const Relation&, const Relation&, operators::Memory&);
template <SetOperator operation>
Result<Prepared> set(Bench& b) {
  const Sorted data(b, 1, false);
  Numbers once = data.right, expected;
  once.erase(std::unique(once.begin(), once.end()), once.end());
  auto make = [&](auto&& from) {
    from(data.left.begin(), data.left.end(), once.begin(), once.end(), std::back_inserter(expected));
  };
  if (operation == &Operators::unite) make([](auto... a) { std::set_union(a...); });
  if (operation == &Operators::intersect) make([](auto... a) { std::set_intersection(a...); });
  if (operation == &Operators::subtract) make([](auto... a) { std::set_difference(a...); });
  ASSIGN_OR_RETURN(Vector left, b.put(Type::i64, data.left));
  ASSIGN_OR_RETURN(Vector right, b.put(Type::i64, data.right));
  left.ascending = right.ascending = true;
  auto got = std::make_shared<Relation>();
  return Prepared{[=, &b]() -> Result<uint64_t> {
                    ASSIGN_OR_RETURN(*got, (b.operators.*operation)({left}, {right}, b.memory));
                    return 8 * (2 * b.n() + got->at(0).capacity);
                  },
                  [=, &b, expected = std::move(expected)]() -> Result<bool> {
                    ASSIGN_OR_RETURN(const Numbers rows, b.get(got->at(0)));
                    return rows == expected;
                  }};
}

Result<Prepared> sort(Bench& b) {
  Numbers keys = numbers(b.n(), [&](uint64_t i) { return b.unordered(i, uint64_t{1} << 40); });
  ASSIGN_OR_RETURN(const Vector column, b.put(Type::i64, keys));
  auto got = std::make_shared<Vector>();
  return Prepared{[=, &b]() -> Result<uint64_t> {
                    const bool ascending[] = {true};
                    ASSIGN_OR_RETURN(*got, b.operators.order({&column, 1}, ascending, b.memory));
                    return b.n() * 16;
                  },
                  // As many rows, each greater than the one before it by key and number: then each
                  // is there once.
                  [=, &b, keys = std::move(keys)]() -> Result<bool> {
                    ASSIGN_OR_RETURN(const Numbers rows, b.get(*got));
                    auto is_row = [&](uint64_t i) { return rows[i] >= 0 && static_cast<uint64_t>(rows[i]) < b.n(); };
                    return rows.size() == b.n() && all_of(b.n(), [&](uint64_t i) {
                             if (!is_row(i) || (i && !is_row(i - 1))) return false;
                             if (!i) return true;
                             const int64_t x = keys[static_cast<uint64_t>(rows[i - 1])],
                                           y = keys[static_cast<uint64_t>(rows[i])];
                             return x < y || (x == y && rows[i - 1] < rows[i]);
                           });
                  }};
}

// Keys of groups.
uint64_t groups_of(const Bench& b) { return std::min<uint64_t>(b.n() / 8, 1 << 20); }
Numbers group_keys(const Bench& b) {
  return numbers(b.n(), [&](uint64_t i) { return b.unordered(i, groups_of(b)); });
}

Result<Prepared> group(Bench& b) {
  Numbers keys = group_keys(b);
  ASSIGN_OR_RETURN(const Vector column, b.put(Type::i64, keys));
  auto got = std::make_shared<operators::Groups>();
  return Prepared{
      [=, &b]() -> Result<uint64_t> {
        ASSIGN_OR_RETURN(*got, b.operators.group({&column, 1}, b.memory));
        return b.n() * 16 + got->rows.count * 16;
      },
      // Rows ascend by key and number, and cells end where keys do.
      [=, &b, keys = std::move(keys)]() -> Result<bool> {
        const uint64_t count = got->rows.count;
        ASSIGN_OR_RETURN(const Numbers rows, b.get(got->rows.elements.data, b.n()));
        ASSIGN_OR_RETURN(const Numbers first, b.get(got->keys.data, count));
        ASSIGN_OR_RETURN(const Numbers ends, b.get(got->rows.offsets, count + 1));
        auto key = [&](int64_t row) { return keys[static_cast<uint64_t>(row)]; };
        auto is_row = [&](int64_t row) { return row >= 0 && static_cast<uint64_t>(row) < b.n(); };
        if (ends[0] != 0 || ends[count] != static_cast<int64_t>(b.n())) return false;
        if (!all_of(b.n(), [&](uint64_t i) { return is_row(rows[i]); })) return false;
        return all_of(count, [&](uint64_t g) {
          if (ends[g] >= ends[g + 1] || ends[g + 1] > ends[count] || first[g] != rows[static_cast<uint64_t>(ends[g])])
            return false;
          if (g && key(rows[static_cast<uint64_t>(ends[g]) - 1]) >= key(first[g])) return false;
          for (int64_t i = ends[g] + 1; i < ends[g + 1]; ++i)
            if (rows[static_cast<uint64_t>(i)] <= rows[static_cast<uint64_t>(i) - 1] ||
                key(rows[static_cast<uint64_t>(i)]) != key(first[g]))
              return false;
          return true;
        });
      }};
}

// Groups and their sums.
Result<Prepared> aggregate(Bench& b) {
  Numbers keys = group_keys(b), values = numbers(b.n(), [](uint64_t i) { return random_at(6, i) % 1000; });
  ASSIGN_OR_RETURN(Vector column, b.put(Type::i64, keys));
  ASSIGN_OR_RETURN(const Vector summed, b.put(Type::i64, values));
  column.min = 0, column.max = static_cast<int64_t>(groups_of(b)) - 1;
  Numbers sums(groups_of(b));
  std::vector<bool> seen(sums.size());
  for (uint64_t i = 0; i < b.n(); ++i) {
    sums[static_cast<uint64_t>(keys[i])] += values[i];
    seen[static_cast<uint64_t>(keys[i])] = true;
  }
  auto got = std::make_shared<operators::Aggregates>();
  return Prepared{[=, &b]() -> Result<uint64_t> {
                    const operators::Aggregate wanted[] = {{operators::Reduce::sum, summed, Type::i64}};
                    ASSIGN_OR_RETURN(const device::Mapped flags, b.memory.mapped(sums::flag_bytes));
                    ASSIGN_OR_RETURN(*got, b.operators.aggregate({&column, 1}, wanted, flags.address, b.memory));
                    return b.n() * 16 + got->keys.capacity * 16;
                  },
                  [=, &b, keys = std::move(keys), sums = std::move(sums), seen = std::move(seen)]() -> Result<bool> {
                    ASSIGN_OR_RETURN(const Numbers first, b.get(got->keys));
                    ASSIGN_OR_RETURN(const Numbers sum, b.get(got->results[0].data, first.size()));
                    auto left = seen;  // groups that have not come
                    for (uint64_t g = 0; g < first.size(); ++g) {
                      if (first[g] < 0 || static_cast<uint64_t>(first[g]) >= b.n()) return false;
                      const auto key = static_cast<uint64_t>(keys[static_cast<uint64_t>(first[g])]);
                      if (!left[key] || sum[g] != sums[key]) return false;
                      left[key] = false;
                    }
                    return std::find(left.begin(), left.end(), true) == left.end();
                  }};
}

Result<Prepared> unique(Bench& b) {
  const Numbers keys = group_keys(b);
  ASSIGN_OR_RETURN(const Vector column, b.put(Type::i64, keys));
  std::vector<bool> seen(groups_of(b));
  Numbers expected;
  for (uint64_t i = 0; i < b.n(); ++i) {
    if (seen[static_cast<uint64_t>(keys[i])]) continue;
    seen[static_cast<uint64_t>(keys[i])] = true;
    expected.push_back(static_cast<int64_t>(i));
  }
  auto got = std::make_shared<Vector>();
  return Prepared{[=, &b]() -> Result<uint64_t> {
                    ASSIGN_OR_RETURN(*got, b.operators.unique(column, b.memory));
                    return b.n() * 8 + got->capacity * 8;
                  },
                  [=, &b, expected = std::move(expected)]() -> Result<bool> {
                    ASSIGN_OR_RETURN(const Numbers rows, b.get(*got));
                    return rows == expected;
                  }};
}

// Running sums, which begin anew at a row in 1024.
Result<Prepared> scan(Bench& b) {
  Numbers values = numbers(b.n(), [](uint64_t i) { return random_at(7, i) % 1000; });
  std::vector<uint8_t> starts(b.n());
  for (uint64_t i = 0; i < b.n(); ++i) starts[i] = random_at(8, i) % 1024 == 0;
  ASSIGN_OR_RETURN(const Vector x, b.put(Type::i64, values));
  ASSIGN_OR_RETURN(const Vector s, b.put(Type::u8, starts));
  auto got = std::make_shared<Vector>();
  return Prepared{[=, &b]() -> Result<uint64_t> {
                    ASSIGN_OR_RETURN(*got, b.operators.scan(operators::Scan::sum, x, s, b.memory));
                    return b.n() * 17;
                  },
                  [=, &b, values = std::move(values), starts = std::move(starts)]() -> Result<bool> {
                    ASSIGN_OR_RETURN(const Numbers sums, b.get(got->data, b.n()));
                    int64_t sum = 0;
                    for (uint64_t i = 0; i < b.n(); ++i) {
                      sum = (starts[i] ? 0 : sum) + values[i];
                      if (sums[i] != sum) return false;
                    }
                    return true;
                  }};
}

// A row per operator. of_copy: the paper's speed beside its copy, in percent.
struct Operator {
  const char* name;
  bool is_spread;  // data differ by distribution
  const char* of_copy;
  std::optional<double> goal;
  Result<Prepared> (*prepare)(Bench&);
};
constexpr Operator all_operators[] = {
    {"select half of two columns", false, "99.3 %", {}, select_half},
    {"product", false, "99.3 %", {}, product},
    {"join, sorted", true, "53 to 67 %", {}, [](Bench& b) { return sorted_join(b, 1, false); }},
    {"join, sorted, keys twice on the left", false, "-", 50, [](Bench& b) { return sorted_join(b, 2, true); }},
    {"join, sorted, every key twice", false, "-", 50, [](Bench& b) { return sorted_join(b, 2, false); }},
    {"join, unsorted", true, "-", {}, unsorted_join},
    {"union", true, "as join", {}, set<&Operators::unite>},
    {"intersection", true, "as join", {}, set<&Operators::intersect>},
    {"difference", true, "as join", {}, set<&Operators::subtract>},
    {"sort", true, "-", {}, sort},
    {"group", true, "-", {}, group},
    {"group and sum", true, "-", {}, aggregate},
    {"unique", true, "-", {}, unique},
    {"scan by segments", false, "-", {}, scan},
};
constexpr Spreading spreadings[] = {Spreading::uniform, Spreading::normal, Spreading::pareto};
constexpr uint64_t bytes_per_row = 136;  // of device memory: arguments, results and what operators need beside them

class OperatorExperiments {
 public:
  OperatorExperiments(Harness& harness, Operators& operators, Slab& memory, Figures& figures)
      : harness_(harness), operators_(operators), memory_(memory), figures_(figures) {}

  Result<void> measure(const Operator& op, unsigned bits, Spreading spreading) {
    FigureRow row{.figure = spreading == Spreading::uniform ? "Fig 9" : "Figs 10 to 14",
                  .what = op.is_spread ? fmt::format("{}, {}", op.name, name_of(spreading)) : op.name,
                  .rows = uint64_t{1} << bits,
                  .unit = "ms",
                  .by = Ratio::speed,
                  .paper = op.of_copy,
                  .goal = op.goal};
    return kept(std::move(row), [&](FigureRow& r) { return measure(r, op, bits, spreading); });
  }

  // Fig 16: a copy of n rows beside one that goes on for long.
  Result<void> copy(unsigned bits, double speed) {
    const uint64_t bytes = uint64_t{8} << bits;
    FigureRow row{.figure = "Fig 16",
                  .what = "copy of 8-byte rows",
                  .rows = uint64_t{1} << bits,
                  .base = speed > 0 ? exactly(2e3 * static_cast<double>(bytes) / speed) : Spread{},
                  .unit = "ms",
                  .by = Ratio::speed,
                  .paper = "above 90 % from 1 MB on"};
    return kept(std::move(row), [&](FigureRow& r) -> Result<void> {
      memory_.forget();
      ASSIGN_OR_RETURN(const Address from, memory_.temporary(bytes));
      ASSIGN_OR_RETURN(const Address to, memory_.temporary(bytes));
      const Harness::Body bodies[] = {
          [&] { return harness_.timed([&] { return harness_.device().copy(to, from, bytes); }); }};
      ASSIGN_OR_RETURN(const std::vector<Spread> ms, harness_.in_turns(bodies));
      r.ours = ms[0];
      return {};
    });
  }

 private:
  // The row with what `body` puts into it, or why it failed.
  template <class F>
  Result<void> kept(FigureRow row, F&& body) {
    const Result<void> done = errors_of([&] { return body(row); });
    if (!done) operators_.recover();
    const Result<void> goes_on = keep_failure(done, row.failed);
    figures_.add(std::move(row));
    return goes_on;
  }

  Result<void> measure(FigureRow& row, const Operator& op, unsigned bits, Spreading spreading) {
    memory_.forget();
    Bench bench{harness_.device(), operators_, memory_, bits, spreading};
    ASSIGN_OR_RETURN(const Prepared prepared, op.prepare(bench));
    memory_.keep();
    uint64_t bytes = 0;
    auto run = [&]() -> Result<double> {
      memory_.reset();
      harness_.device().counts = {};
      return harness_.timed([&]() -> Result<void> {
        ASSIGN_OR_RETURN(bytes, prepared.run());
        return {};
      });
    };
    auto check = [&]() -> Result<void> {
      ASSIGN_OR_RETURN(const bool is_right, prepared.check());
      if (!is_right) row.wrong = "the operator's result is wrong";
      return {};
    };
    RETURN_IF_ERROR(harness_.limited(run));
    RETURN_IF_ERROR(check());
    // Where the operator's results lie in its turn.
    const Harness::Body bodies[] = {
        [&]() -> Result<double> {
          memory_.reset();
          ASSIGN_OR_RETURN(const Address from, memory_.temporary(bytes / 2));
          ASSIGN_OR_RETURN(const Address to, memory_.temporary(bytes / 2));
          return harness_.timed([&] { return harness_.device().copy(to, from, bytes / 2); });
        },
        run};
    ASSIGN_OR_RETURN(const std::vector<Spread> ms, harness_.in_turns(bodies));
    RETURN_IF_ERROR(check());
    row.base = ms[0], row.ours = ms[1];
    if (!harness_.has_clock()) {  // bytes that must move beside those that did
      row.base = exactly(static_cast<double>(bytes) * 1e-6);
      row.ours = exactly(static_cast<double>(harness_.device().counts.sectors) * 32e-6);
      row.unit = "MB", row.goal = {};
    }
    return {};
  }

  Harness& harness_;
  Operators& operators_;
  Slab& memory_;
  Figures& figures_;
};

class MultiBspCommand final : public Command {
 public:
  explicit MultiBspCommand(CLI::App& bench) {
    app = bench.add_subcommand("multi-bsp",
                               "the operators of the multi-BSP paper (2012) beside a copy of as many bytes: sizes, "
                               "distributions, keys that repeat");
    add_paper_flags(*app, settings_, {"9", "10-14", "16"});
    app->add_option("--sizes", sizes_,
                    "rows, as powers of two (default 13,17,20,24,27: 8 K to 128 M; 30 takes minutes)")
        ->delimiter(',')
        ->check(CLI::Range(6u, 30u))
        ->type_name("LIST");
  }

  int execute() override {
    auto done = errors_of([&] { return measure(); });
    return done ? *done : fail(done.error());
  }

 private:
  Result<int> measure() {
    Figures figures = multi_bsp_table();
    RETURN_IF_ERROR(figures.check_folder(settings_.flags.output));
    ASSIGN_OR_RETURN(DeviceChoice device, DeviceChoice::start(settings_.flags));
    ASSIGN_OR_RETURN(const auto harness, Harness::open(std::move(device), settings_));
    const Result<void> done = errors_of([&] { return measure_multi_bsp(*harness, sizes_, figures); });
    return finish(figures, settings_, harness->facts("multi-bsp", fmt::format("2^{} rows", fmt::join(sizes_, ", 2^"))),
                  done);
  }

  Settings settings_;
  std::vector<unsigned> sizes_ = {13, 17, 20, 24, 27};
};

}  // namespace

Figures multi_bsp_table() { return Figures({"multi-bsp", "copy", "operator"}); }

Result<void> measure_multi_bsp(Harness& harness, std::span<const unsigned> sizes, Figures& figures) {
  device::Device& device = harness.device();
  ASSIGN_OR_RETURN(const std::unique_ptr<Operators> all, harness.operators());
  const Settings& wants = harness.settings();
  double speed = 0;
  if (wants.wants("16")) {
    ASSIGN_OR_RETURN(speed, harness.copy_speed());
  }
  Progress progress("measuring operators", sizes.size() * std::size(all_operators));
  bool fits = false;
  std::string too_large;
  for (const unsigned bits : sizes) {
    const uint64_t bytes = (bytes_per_row << bits) + (uint64_t{64} << 20);
    too_large = fmt::format("2^{} rows do not fit: {} bytes of device memory are wanted, {} are there", bits, bytes,
                            device.info().memory_bytes);
    if (!device.info().is_simulator && bytes > device.info().memory_bytes) {
      note(too_large);
      continue;
    }
    const Result<std::unique_ptr<Slab>> memory = Slab::make(device, bytes);
    if (!memory) {
      RETURN_IF_ERROR(
          keep_failure(memory.error(), figures, {.figure = "all", .what = "memory", .rows = uint64_t{1} << bits}));
      continue;
    }
    fits = true;
    OperatorExperiments experiments(harness, *all, **memory, figures);
    if (wants.wants("16")) RETURN_IF_ERROR(experiments.copy(bits, speed));
    for (const Operator& op : all_operators) {
      progress.advance(1);
      for (const Spreading spreading : spreadings) {
        const bool is_first = spreading == Spreading::uniform;
        if (is_first ? wants.wants("9") : op.is_spread && wants.wants("10-14"))
          RETURN_IF_ERROR(experiments.measure(op, bits, spreading));
      }
    }
  }
  if (!fits && figures.rows().empty()) return world_error("no size fits: {}", too_large);
  return {};
}

}  // namespace rndn::tools::papers

namespace rndn::tools {
std::unique_ptr<Command> bench_multi_bsp_command(CLI::App& bench) {
  return std::make_unique<papers::MultiBspCommand>(bench);
}
}  // namespace rndn::tools
