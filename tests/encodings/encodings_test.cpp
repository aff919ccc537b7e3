// Every encoding and every type: what is made of elements on the host is restored there, whole and
// in parts, and in kernels of three targets, whatever the parameters are; what an encoding cannot
// restore it says it did not make.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "ptx/encodings/encodings.h"
#include "tests/operators/support.h"
#include "tests/support/every_case.h"

namespace rndn::encodings {
namespace {

constexpr uint64_t sizes[] = {0, 1, 31, 1023, 1025};

constexpr Kind kinds[] = {
#define ENCODING(id) Kind::id,
#include "ptx/encodings/encodings.def"
#undef ENCODING
};

constexpr BasicType types[] = {
#define BASIC_TYPE(id, ...) BasicType::id,
#include "frontend/types.def"
#undef BASIC_TYPE
};

// Ranges with which the forms of every width, sign and reference are met.
constexpr std::pair<int64_t, int64_t> ranges[] = {
    {0, 0},           {0, 1},          {-3, 100},        {0, 200},
    {7, 65000},       {-30000, 30000}, {1000, 1255},     {-100000, -99000},
    {-2000000, 5},    {0, 4000000000}, {INT32_MIN, INT32_MAX},
    {int64_t{1} << 40, (int64_t{1} << 40) + 4000000000},
    {INT64_MIN, INT64_MIN + 70000},
    // Packed: bits that divide a word and that do not, one to three words, and none at all.
    {-42, -42},       {5, 8},          {-8, 7},          {-1, 29},
    {100, 4195},      {0, 8191},       {-5, 16777210},   {1, (int64_t{1} << 31) - 1},
    {0, (int64_t{1} << 33) - 1},       {-7, (int64_t{1} << 34) - 8},
    {3, (int64_t{1} << 35)},           {0, (int64_t{1} << 40) - 1},
    {-(int64_t{1} << 46), int64_t{1} << 46}, {0, (int64_t{1} << 48) - 1},
    {-(int64_t{1} << 51) + 1, (int64_t{1} << 51) - 1},
    {INT64_MIN / 2, INT64_MAX / 2 - 1}};

bool within(BasicType type, std::pair<int64_t, int64_t> range) {
  if (hir::is_text(type)) return range.first >= 0 && range.second <= UINT32_MAX;
  if (type == BasicType::boolean) return range.first >= 0 && range.second <= 1;
  const uint32_t bits = 8 * plain_bytes(type);
  if (bits >= 64) return true;
  return range.first >= -(int64_t{1} << (bits - 1)) && range.second < int64_t{1} << (bits - 1);
}

constexpr double powers[] = {1, 10, 100, 1000, 10000};

// The plain form of elements in the range, its ends among them. f64: divided by 10^exponent; other
// types that are no integers: any.
std::vector<std::byte> elements(BasicType type, std::pair<int64_t, int64_t> range, uint64_t rows,
                                uint64_t seed, uint8_t exponent = 0) {
  std::mt19937_64 random(seed);
  const uint32_t bytes = plain_bytes(type);
  std::vector<std::byte> out(rows * bytes);
  const uint64_t span = static_cast<uint64_t>(range.second) - static_cast<uint64_t>(range.first);
  for (uint64_t i = 0; i < rows; ++i) {
    const uint64_t step = i == 0 ? 0 : i == 1 ? span : span == UINT64_MAX ? random() : random() % (span + 1);
    uint64_t x = static_cast<uint64_t>(range.first) + step;
    const uint64_t sign = static_cast<int64_t>(x) < 0 ? UINT64_MAX : 0;
    if (type == BasicType::f64)
      x = std::bit_cast<uint64_t>(static_cast<double>(static_cast<int64_t>(x)) / powers[exponent]);
    std::memcpy(out.data() + i * bytes, &x, std::min(8u, bytes));
    if (bytes > 8)
      std::memcpy(out.data() + i * bytes + 8, type == BasicType::i128 ? &sign : &x, 8);
  }
  return out;
}

struct Case {
  BasicType type;
  Stored stored;
  std::pair<int64_t, int64_t> range;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (Kind kind : kinds)
    for (BasicType type : types)
      for (const auto& range : ranges)
        for (uint8_t exponent = 0; exponent < (type == BasicType::f64 ? 5 : 1); ++exponent) {
          if (!within(type, range)) continue;
          const Facts facts{.known = true,
                            .min = range.first,
                            .max = range.second,
                            .exponent = exponent};
          if (const auto stored = find(kind).fits(type, facts))
            all.push_back({type, *stored, range});
        }
  return all;
}

std::string name(const Case& c) {
  return std::string(hir::row(c.type).name) + " as " + text(c.stored);
}

// Bytes of vectors, which caches keep for other builds.
TEST(Encodings, LayoutsAreThoseOfKeptFiles) {
  const struct {
    BasicType type;
    Stored stored;
    std::vector<int64_t> elements;  // f64: times 10^exponent
    const char* bytes;
  } known[] = {
      {BasicType::i32, {}, {1, -2}, "01000000feffffff"},
      {BasicType::i64, {.kind = Kind::narrow, .bytes = 1}, {0, 200}, "00c8"},
      {BasicType::i64, {.kind = Kind::narrow, .bytes = 2, .is_signed = true}, {-300, 7}, "d4fe0700"},
      {BasicType::i64, {.kind = Kind::narrow, .bytes = 4, .reference = -1}, {0xfffffffe, 0}, "ffffffff01000000"},
      {BasicType::date, {.kind = Kind::narrow, .bytes = 1, .reference = 1000}, {1000, 1255, 1001}, "00ff01"},
      {BasicType::sym, {.kind = Kind::narrow, .bytes = 2}, {258, 3}, "02010300"},
      {BasicType::boolean, {.kind = Kind::packed, .bits = 1}, {1, 0, 0, 0, 1, 1, 0, 0, 1}, "3101000000000000"},
      {BasicType::i64, {.kind = Kind::packed, .reference = 5, .bits = 0}, {5, 5, 5}, "00000000"},
      {BasicType::i64, {.kind = Kind::packed, .bits = 3}, {1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 7}, "d1581fd10100000000000000"},
      {BasicType::i32, {.kind = Kind::packed, .reference = -8, .bits = 12}, {-7, -6, 4087}, "012000ff0f00000000000000"},
      {BasicType::i64, {.kind = Kind::packed, .bits = 40}, {0x123456789a, 0xabcdef0102}, "9a785634120201efcdab000000000000"},
      {BasicType::i128, {.kind = Kind::packed, .reference = -1, .bits = 8}, {0, 254}, "01ff000000000000"},
      {BasicType::sym, {.kind = Kind::packed, .bits = 4}, {1, 15}, "f100000000000000"},
      {BasicType::f64, {.kind = Kind::packed, .reference = -5, .bits = 4, .exponent = 1}, {-5, 0, 10}, "500f000000000000"},
      {BasicType::i64, {.kind = Kind::record, .bytes = 2, .reference = -1, .bits = 5, .begin = 6}, {0, 30}, "4000c007"},
  };
  for (const auto& k : known) {
    std::vector<std::byte> plain(k.elements.size() * plain_bytes(k.type));
    for (size_t i = 0; i < k.elements.size(); ++i) {
      const __int128 integer = k.elements[i];
      const double decimal = static_cast<double>(k.elements[i]) / powers[k.stored.exponent];
      std::memcpy(plain.data() + i * plain_bytes(k.type),
                  k.type == BasicType::f64 ? static_cast<const void*>(&decimal) : &integer, plain_bytes(k.type));
    }
    const Encoding& e = find(k.stored);
    std::vector<std::byte> made(e.bytes(k.type, k.stored, k.elements.size()));
    EXPECT_TRUE(e.make(k.type, k.stored, plain.data(), k.elements.size(), made.data()));
    std::string bytes;
    for (std::byte b : made) bytes += fmt::format("{:02x}", static_cast<unsigned>(b));
    EXPECT_EQ(bytes, k.bytes) << name({k.type, k.stored, {}})
                              << ": files of forms in caches are of another layout: give form_magic of "
                                 "runtime/data/cache.cpp its next number, so that none of them is read";
  }
  for (Kind kind : kinds)
    EXPECT_TRUE(std::any_of(std::begin(known), std::end(known), [&](const auto& k) { return k.stored.kind == kind; }))
        << find(kind).name() << " has no bytes here";
}

TEST(Encodings, EveryRowIsMet) {
  const std::vector<Case> all = cases();
  for (Kind kind : kinds)
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const Case& c) { return c.stored.kind == kind; }))
        << find(kind).name();
}

// A row without a file does not link; a file without a row is found here, and one that is in no
// build is in none of the two.
TEST(Encodings, EveryFileHasARow) {
  std::set<std::string> files, rows;
  for (const auto& entry : std::filesystem::directory_iterator(RNDN_SOURCE_DIR "/ptx/encodings"))
    if (entry.path().extension() == ".cpp") files.insert(entry.path().stem());
  for (const char* shared : {"encodings", "addressed"}) EXPECT_EQ(files.erase(shared), 1u);
  for (Kind kind : kinds) rows.emplace(find(kind).name());
  EXPECT_EQ(files, rows);
}

TEST(Encodings, NothingIsStoredInMoreBits) {
  for (const Case& c : cases()) {
    const uint32_t plain = 8 * plain_bytes(c.type);
    EXPECT_LE(bits_of(c.type, c.stored), plain) << name(c);
    if (c.stored.kind != Kind::plain) {
      EXPECT_LT(bits_of(c.type, c.stored), plain) << name(c);
    }
  }
}

TEST(Encodings, NothingIsKnownWithoutBounds) {
  for (BasicType type : types) {
    EXPECT_FALSE(find(Kind::narrow).fits(type, {})) << hir::row(type).name;
    EXPECT_FALSE(find(Kind::packed).fits(type, {})) << hir::row(type).name;
  }
  for (BasicType type : {BasicType::f32, BasicType::f64, BasicType::complex, BasicType::i128})
    EXPECT_FALSE(find(Kind::narrow).fits(type, {.known = true, .min = 0, .max = 1})) << hir::row(type).name;
}

// The narrowest form of a range, with a reference only where it saves bytes.
TEST(Encodings, NarrowFormsOfRanges) {
  const auto form = [](BasicType type, int64_t min, int64_t max) {
    const auto s = find(Kind::narrow).fits(type, {.known = true, .min = min, .max = max});
    return s ? text(*s) : std::string("none");
  };
  EXPECT_EQ(form(BasicType::i64, 0, 100), "narrow_s8");
  EXPECT_EQ(form(BasicType::i64, 0, 255), "narrow_u8");
  EXPECT_EQ(form(BasicType::i64, 300, 555), "narrow_u8_p300");
  EXPECT_EQ(form(BasicType::i64, -1, 2147483647), "narrow_s32");
  EXPECT_EQ(form(BasicType::i64, INT64_MIN, INT64_MIN + 1), "narrow_u8_m9223372036854775808");
  EXPECT_EQ(form(BasicType::i64, INT64_MIN, INT64_MAX), "none");
  EXPECT_EQ(form(BasicType::sym, 0, 100), "narrow_u8");
  EXPECT_EQ(form(BasicType::sym, 0, 256), "narrow_u16");
  EXPECT_EQ(form(BasicType::sym, 0, 65536), "none");
  EXPECT_EQ(form(BasicType::i8, 0, 1), "none");
}

// As few bits as the range needs, whatever its place is.
TEST(Encodings, PackedFormsOfRanges) {
  const auto form = [](BasicType type, int64_t min, int64_t max, uint8_t exponent = 0) {
    const auto s = find(Kind::packed)
                       .fits(type, {.known = true, .min = min, .max = max, .exponent = exponent});
    return s ? text(*s) : std::string("none");
  };
  EXPECT_EQ(form(BasicType::i64, 1, 50), "packed_6_p1");
  EXPECT_EQ(form(BasicType::i64, 7, 7), "packed_0_p7");
  EXPECT_EQ(form(BasicType::i64, INT64_MIN, -1), "packed_63_m9223372036854775808");
  EXPECT_EQ(form(BasicType::i64, INT64_MIN, 0), "none");
  EXPECT_EQ(form(BasicType::date, 8036, 10561), "packed_12_p8036");
  EXPECT_EQ(form(BasicType::boolean, 0, 1), "packed_1");
  EXPECT_EQ(form(BasicType::sym, 0, 6), "packed_3");
  EXPECT_EQ(form(BasicType::i8, -128, 127), "none");
  EXPECT_EQ(form(BasicType::i128, -1, 1), "packed_2_m1");
  EXPECT_EQ(form(BasicType::f64, 0, 10, 2), "packed_4_e2");
  EXPECT_EQ(form(BasicType::f64, 90000, 10494950, 2), "packed_24_e2_p90000");
  EXPECT_EQ(form(BasicType::f64, 0, int64_t{1} << 51, 2), "none");
  EXPECT_EQ(form(BasicType::f64, 0, 1, 5), "none");
  EXPECT_EQ(form(BasicType::f32, 0, 1), "none");
  EXPECT_EQ(form(BasicType::i64, 0, 1, 1), "none");
}

// Parts that begin at rows divisible by 64 lie side by side.
TEST(Encodings, MadeInParts) {
  constexpr uint64_t rows = 1025, part = 320;
  for (const Case& c : cases()) {
    const std::vector<std::byte> plain = elements(c.type, c.range, rows, 3, c.stored.exponent);
    const Encoding& form = find(c.stored);
    std::vector<std::byte> whole(form.bytes(c.type, c.stored, rows)), parts(whole.size());
    ASSERT_TRUE(form.make(c.type, c.stored, plain.data(), rows, whole.data())) << name(c);
    for (uint64_t first = (rows - 1) / part * part + part; first > 0;) {  // the last part first
      first -= part;
      ASSERT_TRUE(form.make(c.type, c.stored, plain.data() + first * plain_bytes(c.type),
                            std::min(part, rows - first),
                            parts.data() + first * bits_of(c.type, c.stored) / 8));
    }
    EXPECT_TRUE(parts == whole) << name(c);
  }
}

// Nothing is lost in silence: an element that the facts do not allow is told.
TEST(Encodings, TellsWhatItDoesNotHold) {
  const auto holds = [](BasicType type, const Stored& s, auto x) {
    std::vector<decltype(x)> plain(100, x);
    std::vector<std::byte> to(find(s).bytes(type, s, plain.size()));
    return find(s).make(type, s, reinterpret_cast<const std::byte*>(plain.data()), plain.size(),
                        to.data());
  };
  for (Kind kind : {Kind::narrow, Kind::packed}) {
    const Stored s = *find(kind).fits(BasicType::i64, {.known = true, .min = 1000, .max = 1200});
    EXPECT_TRUE(holds(BasicType::i64, s, int64_t{1200}));
    EXPECT_FALSE(holds(BasicType::i64, s, int64_t{999}));
    EXPECT_FALSE(holds(BasicType::i64, s, int64_t{1256}));
  }
  // Above the reference only if differences wrap at 32 bits; doubles whose integers have no place beside those of 2^52.
  const Stored high = *find(Kind::packed).fits(BasicType::i32, {.known = true, .min = INT32_MAX - 100, .max = INT32_MAX});
  EXPECT_TRUE(holds(BasicType::i32, high, int32_t{INT32_MAX}));
  for (int32_t x : {INT32_MIN, INT32_MIN + 20, 0, INT32_MAX - 101}) EXPECT_FALSE(holds(BasicType::i32, high, x)) << x;
  constexpr int64_t half = int64_t{1} << 51;
  const Stored large = *find(Kind::packed).fits(BasicType::f64, {.known = true, .min = half - 10, .max = half - 1});
  EXPECT_TRUE(holds(BasicType::f64, large, static_cast<double>(half - 1)));
  for (int64_t beyond : {2, 4, 6, 100})
    EXPECT_FALSE(holds(BasicType::f64, large, static_cast<double>(half + beyond))) << beyond;
  const Stored wide =
      *find(Kind::packed).fits(BasicType::i128, {.known = true, .min = 0, .max = 9});
  EXPECT_TRUE(holds(BasicType::i128, wide, __int128{9}));
  EXPECT_FALSE(holds(BasicType::i128, wide, (__int128{1} << 64) + 9));
  const Facts cents{.known = true, .min = -99999, .max = 1000000, .exponent = 2};
  const Stored money = *find(Kind::packed).fits(BasicType::f64, cents);
  for (double x : {0.0, 0.01, 0.29, 1234.56, -999.99, 10000.0})
    EXPECT_TRUE(holds(BasicType::f64, money, x)) << x;
  for (double x : {-0.0, 0.001, 0.1 + 0.2, std::nextafter(0.29, 1.0), -1000.0, 20000.0, 1e300,
                   std::numeric_limits<double>::infinity(),
                   std::numeric_limits<double>::quiet_NaN()})
    EXPECT_FALSE(holds(BasicType::f64, money, x)) << x;
}

// Wherever it lies: each row is looked at, in whole blocks and in the rest.
TEST(Encodings, TellsOfOneElementAmongMany) {
  constexpr uint64_t rows = 700;
  for (const Case& c : cases()) {
    if (c.stored.kind == Kind::plain || rep_of(c.type) == Rep::complex) continue;
    std::vector<std::byte> plain = elements(c.type, c.range, rows, 5, c.stored.exponent);
    std::vector<std::byte> to(find(c.stored).bytes(c.type, c.stored, rows));
    const uint32_t bytes = plain_bytes(c.type);
    const int64_t low = std::min(c.stored.reference, c.range.first);
    if (c.type == BasicType::boolean || hir::is_text(c.type) || low == (bytes < 8 ? -(int64_t{1} << (8 * bytes - 1)) : INT64_MIN)) continue;
    if (c.stored.kind == Kind::narrow && c.stored.reference == 0) continue;  // it holds more than the range
    for (const uint64_t at : {uint64_t{0}, uint64_t{255}, uint64_t{256}, uint64_t{511}, uint64_t{512}, rows - 1}) {
      std::vector<std::byte> changed = plain;
      const std::vector<std::byte> below = elements(c.type, {low - 1, low - 1}, 1, 1, c.stored.exponent);
      std::memcpy(changed.data() + at * bytes, below.data(), bytes);
      EXPECT_FALSE(find(c.stored).make(c.type, c.stored, changed.data(), rows, to.data())) << name(c) << ", row " << at;
    }
  }
}

// Kernels divide by a product and a correction: equal to the quotient, by the theorem that
// packed.cpp names and for a sample of all that may be stored.
TEST(Encodings, DecimalsAreQuotients) {
  std::mt19937_64 random(11);
  for (double power : powers)
    for (int i = 0; i < 200000; ++i) {
      const auto n = static_cast<double>(static_cast<int64_t>(random() >> 12 >> random() % 52) -
                                         static_cast<int64_t>(random() >> 12 >> random() % 52));
      const double inverse = 1 / power, q = n * inverse;
      ASSERT_EQ(std::fma(std::fma(q, -power, n), inverse, q), n / power) << n << " / " << power;
    }
}

TEST(Encodings, RestoredOnTheHost) {
  for (const Case& c : cases())
    for (uint64_t rows : sizes) {
      const std::vector<std::byte> plain = elements(c.type, c.range, rows, rows, c.stored.exponent);
      const Encoding& form = find(c.stored);
      std::vector<std::byte> stored(form.bytes(c.type, c.stored, rows)), back(plain.size());
      EXPECT_TRUE(form.make(c.type, c.stored, plain.data(), rows, stored.data())) << name(c);
      form.restore(c.type, c.stored, stored.data(), rows, back.data());
      EXPECT_TRUE(back == plain) << name(c) << ", " << rows << " rows";
    }
}

TEST(Encodings, RestoredInKernels) {
  rndn::test::Sample sample(6);
  for (const char* target : operators::test::targets) {
    operators::test::Bench bench(target);
    std::set<std::pair<Kind, uint64_t>> restored;  // how many rows of which encoding
    for (const Case& c : cases())
      for (uint64_t rows : sizes) {
        if (!sample.has_next()) continue;
        restored.emplace(c.stored.kind, rows);
        const std::vector<std::byte> plain =
            elements(c.type, c.range, rows, rows + 7, c.stored.exponent);
        const Encoding& form = find(c.stored);
        std::vector<std::byte> stored(form.bytes(c.type, c.stored, rows)), back(plain.size());
        ASSERT_TRUE(form.make(c.type, c.stored, plain.data(), rows, stored.data())) << name(c);
        operators::Vector from{.capacity = rows};
        from.data = *bench.memory->result(std::max<uint64_t>(1, stored.size()));
        ASSERT_TRUE(bench.device->copy_to_device(from.data, stored.data(), stored.size()).ok());
        auto got = bench.sql->decode(from, c.type, c.stored, *bench.memory);
        ASSERT_TRUE(got.ok()) << got.error().message;
        ASSERT_TRUE(bench.device->synchronize().ok());
        ASSERT_TRUE(bench.device->copy_to_host(back.data(), got->data, back.size()).ok());
        EXPECT_TRUE(back == plain) << name(c) << ", " << rows << " rows, " << target;
      }
    EXPECT_EQ(restored.size(), std::size(kinds) * std::size(sizes)) << target;
  }
}

// Vectors whose elements of a row share a record: made on the host one after the other, and at once by a kernel, by keys in any order.
TEST(Encodings, VectorsShareRecords) {
  constexpr uint64_t rows = 301;
  constexpr int64_t least = -40;
  std::mt19937_64 random(3);
  std::vector<BasicType> shared;
  for (BasicType type : types)
    if (const Vector alone{type, {}}; record_of({&alone, 1})) shared.push_back(type);
  EXPECT_EQ(std::size(types) - shared.size(), 2u);  // complex numbers and i128
  std::vector<int64_t> numbers(rows);
  std::iota(numbers.begin(), numbers.end(), least);
  std::set<uint32_t> met;  // bytes of records
  size_t beyond = 0;       // sets that no record holds
  for (const char* target : operators::test::targets) {
    operators::test::Bench bench(target);
    const auto sent = [&](const auto& bytes) {
      const auto span = std::as_bytes(std::span(bytes));
      const auto at = *bench.memory->result(std::max<size_t>(1, span.size()));
      EXPECT_TRUE(bench.device->copy_to_device(at, span.data(), span.size()).ok());
      return at;
    };
    for (int turn = 0; turn < 24; ++turn) {
      std::vector<Vector> vectors;
      std::vector<std::vector<std::byte>> plain;
      for (size_t k = 1 + random() % 7; k > 0; --k) {
        const BasicType type = shared[random() % shared.size()];
        auto range = ranges[random() % std::size(ranges)];
        const bool known = within(type, range) && random() % 4;
        if (!known) range = type == BasicType::boolean ? std::pair<int64_t, int64_t>{0, 1} : std::pair<int64_t, int64_t>{INT64_MIN, INT64_MAX};
        vectors.push_back({type, {.known = known, .min = range.first, .max = range.second}});
        plain.push_back(elements(type, range, rows, random(), 0));
      }
      const auto forms = record_of(vectors);
      if (!forms) {
        ++beyond;
        continue;
      }
      const uint32_t bytes = forms->front().bytes;
      met.insert(bytes);
      std::vector<int64_t> keys = numbers;
      std::shuffle(keys.begin(), keys.end(), random);
      std::vector<std::byte> made(rows * bytes), got(rows * bytes), back;
      std::vector<operators::Field> fields;
      for (size_t k = 0; k < vectors.size(); ++k) {
        const uint32_t width = plain_bytes(vectors[k].type);
        std::vector<std::byte> by_key(plain[k].size());
        for (uint64_t i = 0; i < rows; ++i)
          std::memcpy(by_key.data() + static_cast<uint64_t>(keys[i] - least) * width, plain[k].data() + i * width, width);
        EXPECT_TRUE(find(Kind::record).make(vectors[k].type, (*forms)[k], by_key.data(), rows, made.data()));
        fields.push_back({vectors[k].type, {}, (*forms)[k], sent(plain[k])});
        plain[k] = std::move(by_key);
      }
      const auto at = sent(got);
      ASSERT_TRUE(bench.sql->put_records({BasicType::i64, {}, {}, sent(keys)}, rows, least, fields, at).ok());
      ASSERT_TRUE(bench.device->synchronize().ok());
      ASSERT_TRUE(bench.device->copy_to_host(got.data(), at, got.size()).ok());
      EXPECT_TRUE(got == made) << target;
      for (size_t k = 0; k < vectors.size(); ++k) {
        SCOPED_TRACE(fmt::format("{}, {}", name({vectors[k].type, (*forms)[k], {}}), target));
        back.assign(plain[k].size(), {});
        find(Kind::record).restore(vectors[k].type, (*forms)[k], made.data(), rows, back.data());
        EXPECT_TRUE(back == plain[k]);
        operators::Vector from{.capacity = rows};
        from.data = at;
        const auto restored = bench.sql->decode(from, vectors[k].type, (*forms)[k], *bench.memory);
        ASSERT_TRUE(restored.ok()) << restored.error().message;
        ASSERT_TRUE(bench.device->synchronize().ok());
        ASSERT_TRUE(bench.device->copy_to_host(back.data(), restored->data, back.size()).ok());
        EXPECT_TRUE(back == plain[k]);
      }
    }
  }
  EXPECT_EQ(met, (std::set<uint32_t>{1, 2, 4, 8, 16, 32}));
  EXPECT_GT(beyond, 0u);
}

// Operators take a form as a type of theirs exactly where its bytes are numbers of that type.
TEST(Encodings, OperatorsKnowNumbersWithoutReference) {
  for (const Case& c : cases()) {
    const auto type = operators::type_of(c.type, c.stored);
    EXPECT_EQ(type.has_value(), find(c.stored).addressed() && c.stored.reference == 0) << name(c);
    if (type && c.type != BasicType::complex && c.type != BasicType::i128) {
      EXPECT_EQ(8 * operators::width(*type), bits_of(c.type, c.stored)) << name(c);
      EXPECT_EQ(operators::stored_of(c.type, *type), c.stored) << name(c);
    }
  }
}

}  // namespace
}  // namespace rndn::encodings
