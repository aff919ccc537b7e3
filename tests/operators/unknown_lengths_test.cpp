// Memory under a limit: what an operator asks for is not much more than it turns out to need.
//
// Every operator over data of which it keeps little (few groups, few pairs, few rows), with a memory that fills what it gives out with one byte. Afterwards the last byte that is another one tells how much was needed. Results are those without a limit.
#include <random>
#include <span>

#include "tests/operators/support.h"

namespace rndn::operators::unknown_lengths_test {
namespace {

constexpr uint8_t untouched = 0xA5;

class RecordingMemory final : public Memory {
 public:
  RecordingMemory(device::Device& device, uint64_t limit) : device_(device), limit_(limit) {}
  ~RecordingMemory() override {
    for (const Piece& p : pieces_) (void)device_.free(p.address);
    for (const device::Mapped& m : mapped_) (void)device_.free_mapped(m);
  }
  Result<Address> temporary(uint64_t bytes) override {
    ASSIGN_OR_RETURN(const Address a, device_.allocate(bytes));
    pieces_.push_back({a, bytes});
    if (bytes) RETURN_IF_ERROR(device_.fill(a, untouched, bytes));
    return a;
  }
  Result<Address> result(uint64_t bytes) override {
    result_bytes_ += bytes;
    return temporary(bytes);
  }
  Result<device::Mapped> mapped(uint64_t bytes) override {
    ASSIGN_OR_RETURN(const device::Mapped m, device_.allocate_mapped(bytes));
    mapped_.push_back(m);
    return m;
  }
  uint64_t most_unknown() const override { return limit_ / 10; }
  uint64_t result_bytes() const { return result_bytes_; }

  // The allocations above a tenth of the limit that are more than so many times what was written.
  std::string too_large(uint64_t times) const {
    std::string out;
    for (const Piece& p : pieces_) {
      if (p.bytes <= limit_ / 10) continue;
      std::vector<uint8_t> bytes(p.bytes);
      EXPECT_TRUE(device_.copy_to_host(bytes.data(), p.address, p.bytes).ok());
      uint64_t used = p.bytes;
      while (used > 0 && bytes[used - 1] == untouched) --used;
      if (times * used < p.bytes) out += fmt::format(" {} bytes for {}", p.bytes, used);
    }
    return out;
  }

 private:
  struct Piece {
    Address address = 0;
    uint64_t bytes = 0;
  };
  device::Device& device_;
  const uint64_t limit_;
  uint64_t result_bytes_ = 0;
  std::vector<Piece> pieces_;
  std::vector<device::Mapped> mapped_;
};

// What an operator gave, as numbers.
using Answer = std::vector<std::vector<int64_t>>;

std::vector<int64_t> numbers(test::Bench& bench, const Vector& v) {
  const auto as = [&]<class T>(T) {
    const std::vector<T> from = bench.get<T>(v);
    return std::vector<int64_t>(from.begin(), from.end());
  };
  switch (width(v.type)) {
    case 1: return as(uint8_t{});
    case 2: return as(uint16_t{});
    case 4: return as(uint32_t{});
    default: return as(int64_t{});
  }
}
Result<Answer> answer(test::Bench& bench, std::span<const Vector> vectors) {
  Answer out;
  for (const Vector& v : vectors) out.push_back(numbers(bench, v));
  return out;
}
Result<Answer> answer(test::Bench& bench, const Cells& cells) {
  return bench.get(cells);
}

// Some keep little of many rows (over 2,048), and of few.
struct Data {
  uint64_t n = 0;
  Vector keys, ascending, wide, values, floats, mask, other, other_ascending, repeated, starts;
  Vector sized;  // few elements in much room
  Strings texts;
  Cells cells;

  Data(test::Bench& bench, uint64_t rows) : n(rows) {
    std::mt19937_64 random(rows);
    std::vector<int32_t> k(n), sorted(n), v(n), probe(n), sorted_probe(n), twice(n);
    std::vector<int64_t> w(n);
    std::vector<double> f(n);
    std::vector<uint8_t> m(n), s(n);
    std::vector<std::string> t;
    const auto i32 = [](uint64_t x) { return static_cast<int32_t>(x); };
    for (uint64_t i = 0; i < n; ++i) {
      k[i] = i32(random() % 5), sorted[i] = i32(7 * i / n), v[i] = i32(random() % 1000);
      w[i] = static_cast<int64_t>((random() % 3) << 40);
      f[i] = v[i] * 0.5;
      m[i] = i % 300 == 0, s[i] = i % 50 == 0;
      probe[i] = i32(n + i - 9), sorted_probe[i] = i32(i + n - 4), twice[i] = i32(i / 2);
      t.push_back(fmt::format("text {}{}", random() % 4, i % 500 == 0 ? "\u00e4" : ""));
    }
    keys = bench.put(Type::i32, k), values = bench.put(Type::i32, v), wide = bench.put(Type::i64, w);
    ascending = bench.put(Type::i32, sorted), ascending.ascending = true;
    floats = bench.put(Type::f64, f), mask = bench.put(Type::u8, m), starts = bench.put(Type::u8, s);
    std::vector<int32_t> all(n);
    for (uint64_t i = 0; i < n; ++i) all[i] = i32((i * 7919) % n);
    repeated = bench.put(Type::i32, twice), other = bench.put(Type::i32, probe);
    other_ascending = bench.put(Type::i32, sorted_probe), other_ascending.ascending = true;
    sized = bench.put(Type::i32, std::vector<int32_t>{3, 1, 3, 2, 1}, n);
    texts = bench.put(t);
    cells.elements = keys;
    cells.count = 10;
    std::vector<int64_t> offsets;
    for (uint64_t c = 0; c <= cells.count; ++c) offsets.push_back(static_cast<int64_t>(c * n / cells.count));
    cells.offsets = bench.put(Type::i64, offsets).data;
    std::vector<int32_t> rising(n);
    for (uint64_t i = 0; i < n; ++i) rising[i] = i32(i);
    rows_ascending = bench.put(Type::i32, rising), rows_ascending.ascending = true;
    shuffled = bench.put(Type::i32, all);
  }
  Vector rows_ascending, shuffled;  // 0 .. n - 1
};

struct Case {
  const char* name;
  Result<Answer> (*run)(test::Bench&, const Data&, Memory&);
  Options options{};
  uint64_t times = 2;  // what is taken, by what is needed, at most
};

Result<Answer> grouped(test::Bench& b, std::span<const Vector> columns, Memory& memory) {
  ASSIGN_OR_RETURN(const Groups made, b.sql->group(columns, memory));
  Answer out = b.get(made.rows);
  out.push_back(numbers(b, made.keys));
  return out;
}
Result<Answer> aggregated(test::Bench& b, std::span<const Vector> columns, std::span<const Aggregate> wanted,
                          Memory& memory) {
  ASSIGN_OR_RETURN(const Aggregates made, b.sql->aggregate(columns, wanted, b.sum_flags.address, memory));
  Answer out;
  for (const Vector& v : made.results) out.push_back(numbers(b, v));
  out.push_back(numbers(b, made.keys));
  return out;
}
Result<Answer> joined(test::Bench& b, Compare compare, const Vector& left, const Vector& right, Memory& memory) {
  const Compare all[] = {compare};
  ASSIGN_OR_RETURN(const Pairs made, b.sql->join(all, {&left, 1}, {&right, 1}, memory));
  return answer(b, std::vector{made.left, made.right});
}
Result<Answer> ordered(test::Bench& b, const Vector& column, uint64_t most, Memory& memory) {
  const bool up[] = {true};
  ASSIGN_OR_RETURN(const Vector made, most ? b.sql->top({&column, 1}, up, most, memory) : b.sql->order({&column, 1}, up, memory));
  return answer(b, {&made, 1});
}
std::vector<Aggregate> sums(const Data& d) {
  return {{Reduce::sum, d.values, Type::i64}, {Reduce::len, {}, Type::i64}, {Reduce::avg, d.floats, Type::f64}};
}

#define RUN(...) [](test::Bench& b, const Data& d, Memory& memory) -> Result<Answer> { __VA_ARGS__ }
#define ONE(...)                                   \
  RUN(ASSIGN_OR_RETURN(const Vector v, __VA_ARGS__); \
      return answer(b, {&v, 1});)
#define RELATION(...)                                \
  RUN(ASSIGN_OR_RETURN(const Relation r, __VA_ARGS__); \
      return answer(b, r);)

const Case cases[] = {
    {"order", RUN(return ordered(b, d.keys, 0, memory);)},
    {"order_sized", RUN(return ordered(b, d.sized, 0, memory);)},
    {"top", RUN(return ordered(b, d.keys, 3, memory);), {}, 3},  // samples tell how many rows there may be
    {"top_sorted", RUN(return ordered(b, d.keys, 3, memory);), {.top = Options::Top::sort}},
    {"top_sized", RUN(return ordered(b, d.sized, 3, memory);)},
    {"group", RUN(return grouped(b, {&d.keys, 1}, memory);)},
    {"group_sized", RUN(return grouped(b, {&d.sized, 1}, memory);)},
    {"group_ascending", RUN(return grouped(b, {&d.ascending, 1}, memory);)},
    {"group_wide", RUN(return grouped(b, std::vector{d.wide, d.floats, d.values}, memory);)},
    {"group_by_hash", RUN(return grouped(b, {&d.keys, 1}, memory);), {.group = Options::Group::hash}},
    {"unique", ONE(b.sql->unique(d.keys, memory))},
    {"unique_sized", ONE(b.sql->unique(d.sized, memory))},
    {"unique_ascending", ONE(b.sql->unique(d.ascending, memory))},
    {"unique_of_cells", RUN(ASSIGN_OR_RETURN(const Cells c, b.sql->unique_cells(d.cells, memory)); return answer(b, c);)},
    {"aggregate", RUN(return aggregated(b, {&d.keys, 1}, sums(d), memory);)},
    {"aggregate_sorted", RUN(return aggregated(b, {&d.keys, 1}, sums(d), memory);), {.group = Options::Group::sort}},
    {"aggregate_by_hash", RUN(return aggregated(b, {&d.keys, 1}, sums(d), memory);), {.group = Options::Group::hash}},
    {"aggregate_ascending", RUN(return aggregated(b, {&d.ascending, 1}, sums(d), memory);)},
    {"aggregate_wide", RUN(return aggregated(b, std::vector{d.wide, d.keys}, sums(d), memory);),
     {.group = Options::Group::sort}},
    {"count_distinct", RUN(const Aggregate of[] = {{Reduce::distinct, d.values, Type::i64}};
                           return aggregated(b, {&d.keys, 1}, of, memory);)},
    {"join", RUN(return joined(b, Compare::eq, d.shuffled, d.other, memory);)},
    {"join_repeated", RUN(return joined(b, Compare::eq, d.repeated, d.other, memory);)},
    {"join_ascending", RUN(return joined(b, Compare::eq, d.rows_ascending, d.other_ascending, memory);)},
    {"join_by_loop", RUN(const Vector few = b.put(Type::i32, std::vector<int32_t>{2, 4, 5});
                         return joined(b, Compare::lt, d.other, few, memory);)},
    {"member", ONE(b.sql->member(d.keys, d.other, memory))},
    {"index_of", ONE(b.sql->index_of(d.keys, d.other, memory))},
    {"scan", ONE(b.sql->scan(Scan::sum, d.values, d.starts, memory))},
    {"offsets", ONE(b.sql->offsets(d.values, memory))},
    {"exact_sums", ONE(b.sql->exact_sums({d.floats, 0, 1}, false, Type::f64, memory))},
    {"like", ONE(b.sql->like(d.texts, "%1", memory))},
    {"rank", RUN(ASSIGN_OR_RETURN(const Ranks r, b.sql->rank(d.texts, memory)); return answer(b, std::vector{r.of, r.first});)},
    {"distinct_strings",
     RUN(ASSIGN_OR_RETURN(const DistinctStrings s, b.sql->distinct_strings(d.texts, 1000, memory));
         return answer(b, std::vector{s.of, s.first});)},
    {"not_ascii", ONE(b.sql->not_ascii(d.texts, memory))},
    {"text_lengths", ONE(b.sql->lengths(d.texts, true, memory))},
    {"select", RELATION(b.sql->select({d.keys, d.wide, d.values, d.floats, d.shuffled}, d.mask, memory))},
    {"distinct", RELATION(b.sql->distinct({d.keys, d.wide}, memory))},
    {"unite", RELATION(b.sql->unite({d.keys, d.wide}, {d.keys, d.wide}, memory))},
    {"intersect", RELATION(b.sql->intersect({d.shuffled}, {d.other}, memory))},
    {"subtract", RELATION(b.sql->subtract({d.keys}, {d.other}, memory))},
    {"unite_ascending", RELATION(b.sql->unite({d.ascending}, {d.ascending}, memory))},
    {"intersect_ascending", RELATION(b.sql->intersect({d.rows_ascending}, {d.other_ascending}, memory))},
    {"subtract_ascending", RELATION(b.sql->subtract({d.ascending}, {d.other_ascending}, memory))},
    {"product", RELATION(b.sql->product({d.keys}, {b.put(Type::i64, std::vector<int64_t>{1, 2})}, memory))},
    {"join_relations", RUN(const JoinCondition on[] = {{Compare::eq, 0, 0}};
                           ASSIGN_OR_RETURN(const Relation r,
                                            b.sql->join_relations(on, {d.shuffled, d.wide}, {d.other, d.values}, memory));
                           return answer(b, r);)},
};

// How many passes tell where rows differ from those before them.
size_t passes_of_flags(test::Bench& bench) {
  const std::vector<Launch> all = bench.sql->take_launches();
  return static_cast<size_t>(std::count_if(all.begin(), all.end(), [](const Launch& l) { return l.kernel.starts_with("flags_"); }));
}

class UnknownLengths : public testing::TestWithParam<size_t> {};

TEST_P(UnknownLengths, TakeATenthOfALimit) {
  const Case& c = cases[GetParam()];
  test::Bench bench(test::on_gpu() ? "cuda" : "sm_90", c.options);
  for (const uint64_t n : {uint64_t{1000}, uint64_t{2600}}) {
    const Data data(bench, n);
    RecordingMemory free(*bench.device, UINT64_MAX);
    (void)bench.sql->take_launches();
    const auto wanted = c.run(bench, data, free);
    ASSERT_TRUE(wanted.ok()) << wanted.error().message;
    const size_t passes = passes_of_flags(bench);
    RecordingMemory memory(*bench.device, 8 << 10);
    const auto got = c.run(bench, data, memory);
    ASSERT_TRUE(got.ok()) << got.error().message;
    EXPECT_TRUE(*got == *wanted) << n << " rows";
    EXPECT_EQ(memory.too_large(c.times), "") << n << " rows";
    EXPECT_LE(passes_of_flags(bench), passes) << n << " rows: what is counted first is not looked at twice";
  }
}

// A join without a key makes its pairs once: no first try stays beside them.
TEST(LoopJoins, MakeTheirPairsOnce) {
  test::Bench bench(test::on_gpu() ? "cuda" : "sm_90");
  const Data data(bench, 1000);
  const Vector one = bench.put(Type::i32, std::vector<int32_t>{700});
  for (const uint64_t limit : {uint64_t{UINT64_MAX}, uint64_t{8 << 10}}) {
    RecordingMemory memory(*bench.device, limit);
    const auto pairs = joined(bench, Compare::lt, data.shuffled, one, memory);
    ASSERT_TRUE(pairs.ok()) << pairs.error().message;
    EXPECT_EQ((*pairs)[0].size(), 700u);
    EXPECT_EQ(memory.result_bytes(), 16 * (limit == UINT64_MAX ? 1000u : 700u));
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, UnknownLengths, testing::Range(size_t{0}, std::size(cases)),
                         [](const auto& info) { return std::string(cases[info.param].name); });

}  // namespace
}  // namespace rndn::operators::unknown_lengths_test
