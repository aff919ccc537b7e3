// Every encoding and every type: what is made of elements on the host is restored there, and in
// kernels of three targets, whatever the parameters are; kernels can store what they can address.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "ptx/encodings/encodings.h"
#include "tests/operators/support.h"

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
    {INT64_MIN, INT64_MIN + 70000}};

bool within(BasicType type, std::pair<int64_t, int64_t> range) {
  if (hir::is_text(type)) return range.first >= 0 && range.second <= UINT32_MAX;
  if (type == BasicType::boolean) return range.first >= 0 && range.second <= 1;
  const uint32_t bits = 8 * plain_bytes(type);
  if (bits >= 64) return true;
  return range.first >= -(int64_t{1} << (bits - 1)) && range.second < int64_t{1} << (bits - 1);
}

// The plain form of elements in the range, its ends among them; of types that are no integers: any.
std::vector<std::byte> elements(BasicType type, std::pair<int64_t, int64_t> range, uint64_t rows,
                                uint64_t seed) {
  std::mt19937_64 random(seed);
  const uint32_t bytes = plain_bytes(type);
  std::vector<std::byte> out(rows * bytes);
  const uint64_t span = static_cast<uint64_t>(range.second) - static_cast<uint64_t>(range.first);
  for (uint64_t i = 0; i < rows; ++i) {
    const uint64_t step = i == 0 ? 0 : i == 1 || span == 0 ? span : random() % (span + 1);
    const uint64_t x = static_cast<uint64_t>(range.first) + (span == UINT64_MAX ? random() : step);
    for (uint32_t k = 0; k < bytes; k += 8)
      std::memcpy(out.data() + i * bytes + k, &x, std::min(8u, bytes));
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
      for (const auto& range : ranges) {
        if (!within(type, range)) continue;
        const Facts facts{.known = true, .min = range.first, .max = range.second};
        if (const auto stored = find(kind).fits(type, facts)) all.push_back({type, *stored, range});
      }
  return all;
}

std::string name(const Case& c) {
  return std::string(hir::row(c.type).name) + " as " + text(c.stored);
}

TEST(Encodings, EveryRowIsMet) {
  const std::vector<Case> all = cases();
  for (Kind kind : kinds)
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const Case& c) { return c.stored.kind == kind; }))
        << find(kind).name();
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
  for (BasicType type : types) EXPECT_FALSE(find(Kind::narrow).fits(type, {})) << hir::row(type).name;
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

TEST(Encodings, RestoredOnTheHost) {
  for (const Case& c : cases())
    for (uint64_t rows : sizes) {
      const std::vector<std::byte> plain = elements(c.type, c.range, rows, rows);
      const Encoding& form = find(c.stored);
      std::vector<std::byte> stored(form.bytes(c.type, c.stored, rows)), back(plain.size());
      form.make(c.type, c.stored, plain.data(), rows, stored.data());
      form.restore(c.type, c.stored, stored.data(), rows, back.data());
      EXPECT_TRUE(back == plain) << name(c) << ", " << rows << " rows";
    }
}

TEST(Encodings, RestoredInKernels) {
  for (const char* target : operators::test::targets) {
    operators::test::Bench bench(target);
    for (const Case& c : cases())
      for (uint64_t rows : sizes) {
        const std::vector<std::byte> plain = elements(c.type, c.range, rows, rows + 7);
        const Encoding& form = find(c.stored);
        std::vector<std::byte> stored(form.bytes(c.type, c.stored, rows)), back(plain.size());
        form.make(c.type, c.stored, plain.data(), rows, stored.data());
        operators::Vector from{.capacity = rows};
        from.data = *bench.memory->result(std::max<uint64_t>(1, stored.size()));
        ASSERT_TRUE(bench.device->copy_to_device(from.data, stored.data(), stored.size()).ok());
        auto got = bench.sql->decode(from, c.type, c.stored, *bench.memory);
        ASSERT_TRUE(got.ok()) << got.error().message;
        ASSERT_TRUE(bench.device->synchronize().ok());
        ASSERT_TRUE(bench.device->copy_to_host(back.data(), got->data, back.size()).ok());
        EXPECT_TRUE(back == plain) << name(c) << ", " << rows << " rows, " << target;
      }
  }
}

// Operators take a form as a type of theirs exactly where its bytes are numbers of that type.
TEST(Encodings, OperatorsKnowNumbersWithoutReference) {
  for (const Case& c : cases()) {
    const auto type = operators::type_of(c.type, c.stored);
    EXPECT_EQ(type.has_value(), c.stored.reference == 0) << name(c);
    if (type && c.type != BasicType::complex && c.type != BasicType::i128) {
      EXPECT_EQ(8 * operators::width(*type), bits_of(c.type, c.stored)) << name(c);
      EXPECT_EQ(operators::stored_of(c.type, *type), c.stored) << name(c);
    }
  }
}

}  // namespace
}  // namespace rndn::encodings
