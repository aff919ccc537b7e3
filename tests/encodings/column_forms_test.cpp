// How columns lie on the device: the form that statistics propose, its bytes, and what is done when
// the elements are not what the statistics say.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "runtime/memory/column_forms.h"
#include "tests/operators/support.h"

namespace rndn::runtime {
namespace {

using data::Column;
using encodings::Kind;
using hir::BasicType;

template <class T>
std::shared_ptr<Column> column_of(BasicType type, const std::vector<T>& values) {
  auto column = std::make_shared<Column>(data::make_column(type, values.size()));
  if (!values.empty()) std::memcpy(column->data->data(), values.data(), values.size() * sizeof(T));
  data::compute_statistics(*column);
  return column;
}

// 200,000 values of first, first + step, .. first + (distinct - 1) * step, over and over.
template <class T>
std::vector<T> values_of(T first, T step, uint64_t distinct, double divisor = 1) {
  std::vector<T> out(200000);
  for (uint64_t i = 0; i < out.size(); ++i)
    out[i] =
        static_cast<T>((first + static_cast<T>(i % distinct) * step) / static_cast<T>(divisor));
  return out;
}

std::string form(const Column& column, Encode encode = Encode::packed, RowsReferred rows_of = {}) {
  ThreadPool pool(2);
  const ColumnForm f = form_of(column, rows_of, encode, &pool);
  EXPECT_NE(f.reason, "");
  const BasicType type = element_type(column, rows_of);
  if (f.bytes) {  // they are what the host has
    std::vector<std::byte> back(column.rows * encodings::plain_bytes(type));
    encodings::find(f.stored).restore(type, f.stored, f.bytes->data(), column.rows, back.data());
    for (uint64_t i = 0; i < column.rows; ++i) {
      uint64_t x = 0;
      std::memcpy(&x, back.data() + i * encodings::plain_bytes(type), encodings::plain_bytes(type));
      if (rows_of) {
        EXPECT_EQ(x, column.foreign_row(i));
      } else if (hir::is_text(type)) {
        EXPECT_EQ(x, column.code_at(i));
      } else {
        EXPECT_EQ(std::memcmp(&x, column.data->data() + i * column.width, column.width), 0) << i;
      }
      if (::testing::Test::HasFailure()) break;
    }
  }
  return encodings::text(f.stored);
}

TEST(ColumnForms, BitsAreTakenWhereTheySaveAQuarter) {
  EXPECT_EQ(form(*column_of(BasicType::i64, values_of<int64_t>(1, 1, 50))), "packed_6_p1");
  EXPECT_EQ(form(*column_of(BasicType::i64, values_of<int64_t>(1, 1, 100))), "narrow_s8");
  EXPECT_EQ(form(*column_of(BasicType::i64, values_of<int64_t>(1, 1, 100000))), "packed_17_p1");
  EXPECT_EQ(form(*column_of(BasicType::i64, values_of<int64_t>(0, 300000, 10000))), "narrow_u32");
  EXPECT_EQ(form(*column_of(BasicType::date, values_of<int32_t>(8036, 1, 2526))),
            "packed_12_p8036");
  EXPECT_EQ(form(*column_of(BasicType::i8, values_of<int8_t>(-100, 2, 100))), "plain");
  EXPECT_EQ(form(*column_of(BasicType::boolean, values_of<uint8_t>(0, 1, 2))), "packed_1");
  EXPECT_EQ(form(*column_of(BasicType::i64, values_of<int64_t>(5, 0, 1))), "packed_0_p5");
  EXPECT_EQ(form(*column_of(BasicType::i64, std::vector<int64_t>{})), "plain");
}

TEST(ColumnForms, DoublesAreDecimalsOrStay) {
  EXPECT_EQ(form(*column_of(BasicType::f64, values_of<double>(0, 1, 11, 100))), "packed_4_e2");
  EXPECT_EQ(form(*column_of(BasicType::f64, values_of<double>(-5, 1, 51))), "packed_6_m5");
  EXPECT_EQ(form(*column_of(BasicType::f64, values_of<double>(90001, 7, 200000, 100))),
            "packed_21_e2_p90001");
  EXPECT_EQ(form(*column_of(BasicType::f64, values_of<double>(1, 1, 100, 7))), "plain");
  // One among many, which a sample does not meet: other digits, or none.
  std::vector<double> values = values_of<double>(0, 1, 1000, 10);
  values[199999] = 0.125;
  EXPECT_EQ(form(*column_of(BasicType::f64, values)), "packed_17_e3");
  values[199999] = 1.0 / 3;
  EXPECT_EQ(form(*column_of(BasicType::f64, values)), "plain");
  values[199999] = -0.0;
  EXPECT_EQ(form(*column_of(BasicType::f64, values)), "plain");
  values[199999] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(form(*column_of(BasicType::f64, values)), "plain");
  values[199999] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(form(*column_of(BasicType::f64, values)), "plain");
}

TEST(ColumnForms, CodesAndRowNumbers) {
  Column texts = data::make_column(BasicType::sym, 100000, data::Encoding::dictionary, 1);
  texts.dictionary = std::make_shared<data::Dictionary>();
  for (int i = 0; i < 7; ++i) texts.dictionary->values.push_back(std::to_string(i));
  for (uint64_t i = 0; i < texts.rows; ++i) (*texts.data).data()[i] = static_cast<std::byte>(i % 7);
  data::compute_statistics(texts);
  EXPECT_EQ(form(texts), "packed_3");
  EXPECT_EQ(form(texts, Encode::narrow), "narrow_u8");
  EXPECT_EQ(form(texts, Encode::plain), "plain");

  Column key = data::make_column(BasicType::i64, 70000);
  key.is_foreign_key = true;
  key.foreign_rows = data::zeros(4 * key.rows);
  for (uint64_t i = 0; i < key.rows; ++i) {
    const auto row = static_cast<int32_t>(i * 7 % 1000);
    std::memcpy(key.foreign_rows->data() + 4 * i, &row, 4);
  }
  EXPECT_EQ(form(key, Encode::packed, 1000), "packed_10");
  EXPECT_EQ(form(key, Encode::narrow, 1000), "narrow_s32");
  EXPECT_EQ(form(key, Encode::plain, 1000), "plain");
}

// Statistics may come from a file that anyone has written: no element is changed by them.
TEST(ColumnForms, WrongStatisticsChangeNothing) {
  const auto column = column_of(BasicType::i64, values_of<int64_t>(0, 1, 50000));
  column->statistics.max = 1000;
  EXPECT_EQ(form(*column), "plain");
  const auto money = column_of(BasicType::f64, values_of<double>(0, 1, 50000, 100));
  money->statistics.float_max = 1;
  EXPECT_EQ(form(*money), "plain");
}

TEST(ColumnForms, AreKeptWithTheirColumn) {
  ColumnForms forms;
  auto column = column_of(BasicType::i64, values_of<int64_t>(1, 1, 50));
  const auto bytes = forms.of(column, {}, Encode::packed, nullptr).bytes;
  EXPECT_EQ(forms.of(column, {}, Encode::packed, nullptr).bytes, bytes);
  EXPECT_EQ(forms.of(column, {}, Encode::narrow, nullptr).bytes, nullptr);
  const std::weak_ptr<const data::Bytes> kept = forms.of(column, {}, Encode::packed, nullptr).bytes;
  EXPECT_FALSE(kept.expired());
  column = column_of(BasicType::i64, values_of<int64_t>(1, 1, 60));
  (void)forms.of(column, {}, Encode::packed, nullptr);
  EXPECT_TRUE(kept.expired());
}

// Elements with missing ones among them (which are zeros), and where these are: every type in every form, restored on the host and by kernels.
struct Nullable {
  Column column;
  std::vector<std::byte> plain;  // what is to be restored
};
Nullable nullable(BasicType type, uint64_t rows, uint64_t seed) {
  std::mt19937_64 random(seed);
  const bool text = hir::is_text(type);
  Nullable out{.column = text ? data::make_column(type, rows, data::Encoding::dictionary, 1)
                              : data::make_column(type, rows),
               .plain = {}};
  Column& c = out.column;
  c.validity = data::zeros(rows);
  if (text) {
    c.dictionary = std::make_shared<data::Dictionary>();
    for (const char* value : {"", "one", "two", "three"}) c.dictionary->values.emplace_back(value);
  }
  const uint32_t bytes = encodings::plain_bytes(type);
  out.plain.resize(rows * bytes);
  for (uint64_t i = 0; i < rows; ++i) {
    if (random() % 4 == 0) continue;
    c.validity->data()[i] = std::byte{1};
    uint64_t x = text ? random() % 4 : type == BasicType::boolean ? 1 : 1 + random() % 20;
    const double decimal = static_cast<double>(x) / 4;
    if (type == BasicType::f64 || type == BasicType::complex) std::memcpy(&x, &decimal, 8);
    std::memcpy(out.plain.data() + i * bytes, &x, std::min<size_t>(8, bytes));
    std::memcpy(c.data->data() + i * c.width, &x, std::min<size_t>(8, c.width));
  }
  data::compute_statistics(c);
  return out;
}

TEST(ColumnForms, MissingValues) {
  constexpr BasicType types[] = {
#define BASIC_TYPE(id, ...) BasicType::id,
#include "frontend/types.def"
#undef BASIC_TYPE
  };
  std::set<std::string> forms;
  for (const char* target : operators::test::targets) {
    operators::test::Bench bench(target);
    const auto check = [&](const Column& c, BasicType type, const std::vector<std::byte>& plain, Encode encode) {
      const ColumnForm f = form_of(c, {}, encode, nullptr);
      const std::byte* from = f.bytes ? f.bytes->data() : c.data->data();
      const uint64_t size = encodings::find(f.stored).bytes(type, f.stored, c.rows);
      std::vector<std::byte> back(plain.size());
      encodings::find(f.stored).restore(type, f.stored, from, c.rows, back.data());
      const std::string what = fmt::format("{} as {}, {} rows", hir::row(type).name, encodings::text(f.stored), c.rows);
      EXPECT_TRUE(back == plain) << what;
      operators::Vector there{.capacity = c.rows};
      there.data = *bench.memory->result(std::max<uint64_t>(1, size));
      ASSERT_TRUE(bench.device->copy_to_device(there.data, from, size).ok());
      const auto got = bench.sql->decode(there, type, f.stored, *bench.memory);
      ASSERT_TRUE(got.ok()) << got.error().message;
      back.assign(plain.size(), std::byte{0xFF});
      ASSERT_TRUE(bench.device->copy_to_host(back.data(), got->data, back.size()).ok());
      EXPECT_TRUE(back == plain) << what << ", " << target;
      forms.insert(encodings::text(f.stored));
    };
    for (const BasicType type : types)
      for (const uint64_t rows : {0, 1, 31, 1023, 1025})
        for (const Encode encode : {Encode::plain, Encode::narrow, Encode::packed}) {
          const Nullable n = nullable(type, rows, rows + static_cast<uint64_t>(type));
          check(n.column, type, n.plain, encode);
          const Column valid = data::validity_of(n.column);
          const std::vector<std::byte> flags(valid.data->data(), valid.data->data() + rows);
          check(valid, BasicType::boolean, flags, encode);
        }
  }
  for (const char* met : {"plain", "narrow_u8", "packed_1", "packed_2", "packed_5", "packed_9_e2"})
    EXPECT_TRUE(forms.contains(met)) << met;
}

// What --encode may be: every encoding that there is, and `auto`.
TEST(ColumnForms, EveryEncodingCanBeAskedFor) {
#define ENCODING(id) EXPECT_TRUE(find_encode(#id).has_value()) << #id;
#include "ptx/encodings/encodings.def"
#undef ENCODING
  EXPECT_TRUE(find_encode("auto").has_value());
  EXPECT_FALSE(find_encode("wide").has_value());
}

}  // namespace
}  // namespace rndn::runtime
