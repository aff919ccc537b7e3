// How columns lie on the device: the form that statistics propose, its bytes, and what is done when
// the elements are not what the statistics say.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <deque>
#include <filesystem>
#include <random>
#include <set>
#include <vector>

#include "runtime/data/cache.h"
#include "runtime/memory/column_forms.h"
#include "tests/operators/support.h"

namespace rndn::runtime {
namespace {

using data::Column;
using encodings::Kind;
using encodings::Stored;
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

class Folder {
 public:
  Folder() {
    path_ = testing::TempDir() + "rndn_forms_XXXXXX";
    if (!mkdtemp(path_.data())) ADD_FAILURE() << "cannot make a folder like " << path_;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// What a cache has of a column is sent as it lies there; what it has wrong is made anew.
TEST(ColumnForms, AreTakenFromTheCache) {
  const Folder folder;
  const auto check = [&](const std::shared_ptr<Column>& column, RowsReferred rows_of, int64_t beyond,
                         const std::string& name, const std::string& form) {
    ASSERT_TRUE(data::write_column(folder.path() + "/" + name, name, *column));
    const ColumnForm made = form_of(*column, rows_of, Encode::packed, nullptr);
    EXPECT_EQ(encodings::text(made.stored), form);
    EXPECT_EQ(made.encoded, 1u) << name;
    ThreadPool pool(2);
    const auto again = [&](uint32_t encoded, const char* when) {
      const auto read = data::read_column(folder.path() + "/" + name, name);
      ASSERT_TRUE(read);
      const ColumnForm kept = form_of(*read, rows_of, Encode::packed, &pool);
      EXPECT_EQ(kept.encoded, encoded) << name << ", " << when;
      EXPECT_EQ(kept.stored, made.stored);
      EXPECT_EQ(kept.reason, made.reason);
      ASSERT_EQ(!kept.bytes, !made.bytes);
      if (made.bytes) EXPECT_TRUE(*kept.bytes == *made.bytes) << name << ", " << when;
    };
    again(0, "kept");
    // Files with a right sum: of too few bytes, and with an element beyond the column's bounds.
    if (!made.bytes) return;
    const auto& own = rows_of ? column->foreign_rows : column->data;
    const BasicType type = element_type(*column, rows_of);
    const Stored host = rows_of              ? Stored{.kind = Kind::narrow, .bytes = 4, .is_signed = true}
                        : hir::is_text(type) ? Stored{.kind = Kind::narrow, .bytes = 1}
                                             : Stored{};
    const auto file =
        data::FormFile::of(*own, fmt::format("{}.{}.{}", hir::row(type).name, encodings::text(host), form));
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->read()) << "the name of the form is another";
    data::Bytes wrong(made.bytes->size() - 1);
    ASSERT_TRUE(file->write(&wrong));
    again(1, "too short");
    again(0, "made again");
    if (beyond < 0) return;
    std::vector<std::byte> plain(column->rows * encodings::plain_bytes(type));
    const encodings::Encoding& e = encodings::find(made.stored);
    e.restore(type, made.stored, made.bytes->data(), column->rows, plain.data());
    std::memcpy(plain.data() + (column->rows - 1) * encodings::plain_bytes(type), &beyond,
                encodings::plain_bytes(type));
    data::Bytes forged(made.bytes->size());
    ASSERT_TRUE(e.make(type, made.stored, plain.data(), column->rows, forged.data()));
    ASSERT_TRUE(file->write(&forged));
    again(1, "beyond its bounds");
    again(0, "made again");
  };
  check(column_of(BasicType::i64, values_of<int64_t>(1, 1, 100000)), {}, 100001, "keys", "packed_17_p1");
  check(column_of(BasicType::i64, values_of<int64_t>(0, 1, 64)), {}, -1, "whole", "packed_6");
  check(column_of(BasicType::i64, values_of<int64_t>(0, 300000, 10000)), {}, 0xffffffff, "bytes", "narrow_u32");
  check(column_of(BasicType::date, values_of<int32_t>(8036, 1, 2526)), {}, 8036 + 2526, "dates", "packed_12_p8036");
  check(column_of(BasicType::f64, values_of<double>(90001, 7, 200000, 100)), {}, -1, "money", "packed_21_e2_p90001");
  // A sample does not meet the double that is no decimal: no form holds it, which is kept, too.
  std::vector<double> values = values_of<double>(0, 1, 1000, 10);
  values[199999] = 1.0 / 3;
  const auto odd = column_of(BasicType::f64, values);
  ASSERT_TRUE(data::write_column(folder.path() + "/odd", "odd", *odd));
  EXPECT_EQ(form_of(*odd, {}, Encode::packed, nullptr).encoded, 4u) << "decimals of 1 to 4 digits";
  const auto read = data::read_column(folder.path() + "/odd", "odd");
  ASSERT_TRUE(read);
  const ColumnForm none = form_of(*read, {}, Encode::packed, nullptr);
  EXPECT_EQ(none.encoded, 0u);
  EXPECT_EQ(encodings::text(none.stored), "plain");
  EXPECT_EQ(none.bytes, nullptr);

  auto texts = std::make_shared<Column>(data::make_column(BasicType::sym, 100000, data::Encoding::dictionary, 1));
  for (int i = 0; i < 7; ++i) texts->dictionary->values.push_back(std::to_string(i));
  for (uint64_t i = 0; i < texts->rows; ++i) texts->data->data()[i] = static_cast<std::byte>(i % 7);
  data::compute_statistics(*texts);
  check(texts, {}, 7, "texts", "packed_3");
  auto key = std::make_shared<Column>(data::make_column(BasicType::i64, 70000));
  key->is_foreign_key = true;
  key->foreign_table = "parent";
  key->foreign_rows = data::zeros(4 * key->rows);
  for (uint64_t i = 0; i < key->rows; ++i) {
    const auto row = static_cast<int32_t>(i * 7 % 1000);
    std::memcpy(key->foreign_rows->data() + 4 * i, &row, 4);
  }
  check(key, 1000, 1000, "rows", "packed_10");
  // A form in which the column is widened is made anew: it is more than what is kept.
  EXPECT_EQ(form_of(*texts, {}, Encode::plain, nullptr).encoded, 1u);
  EXPECT_EQ(form_of(*texts, {}, Encode::narrow, nullptr).encoded, 0u);
}

// A column that comes from the same place with other elements: what the cache has of the older one is not taken.
TEST(ColumnForms, OfAPlaceAreComparedWithTheColumn) {
  const Folder folder;
  ThreadPool pool(2);
  const auto check = [&](Column older, Column newer, RowsReferred rows_of, const std::string& in) {
    for (Column* c : {&older, &newer})
      (rows_of ? c->foreign_rows : c->data)->keep_forms({folder.path(), "t.x", in + " of t.x in /data/t.parquet"});
    EXPECT_EQ(form(older, Encode::packed, rows_of), in);
    EXPECT_EQ(form_of(older, rows_of, Encode::packed, &pool).encoded, 0u) << in << ": it is kept";
    EXPECT_EQ(form(newer, Encode::packed, rows_of), in);
    EXPECT_EQ(form_of(newer, rows_of, Encode::packed, &pool).encoded, 0u) << in << ": it is kept instead";
    EXPECT_EQ(form_of(older, rows_of, Encode::packed, nullptr).encoded, 1u) << in;
  };
  const auto numbers = [&]<class T>(BasicType type, std::vector<T> values, uint64_t at, T other, const std::string& in) {
    const auto older = column_of(type, values);
    values[at] = other;
    check(std::move(*older), std::move(*column_of(type, values)), {}, in);
  };
  // Doubles that are not told apart by multiplying and shifting word by word.
  std::vector<double> older = {1, 0, 0, 0, 300000, -400000, 400000}, newer = {-1, 0, 0, 0, -300001, -400000, 400000};
  for (std::vector<double>* values : {&older, &newer})
    for (int i = 1; i <= 40; ++i) values->push_back(7 * i);
  check(std::move(*column_of(BasicType::f64, older)), std::move(*column_of(BasicType::f64, newer)), {}, "packed_20_m400000");
  numbers(BasicType::f64, values_of<double>(90001, 7, 200000, 100), 199998, 900.08, "packed_21_e2_p90001");
  numbers(BasicType::i64, values_of<int64_t>(0, 1, 64), 199998, int64_t{5}, "packed_6");
  numbers(BasicType::i64, values_of<int64_t>(0, 300000, 10000), 0, int64_t{1}, "narrow_u32");
  numbers(BasicType::date, values_of<int32_t>(8036, 1, 2526), 100, 8036, "packed_12_p8036");
  numbers(BasicType::i16, values_of<int16_t>(0, 1, 64), 3, int16_t{4}, "packed_6");
  numbers(BasicType::boolean, values_of<uint8_t>(0, 1, 2), 199998, uint8_t{1}, "packed_1");
  Column texts[2], keys[2];
  for (int k = 0; k < 2; ++k) {
    texts[k] = data::make_column(BasicType::sym, 100000, data::Encoding::dictionary, 1);
    for (int i = 0; i < 7; ++i) texts[k].dictionary->values.push_back(std::to_string(i));
    for (uint64_t i = 0; i < texts[k].rows; ++i)
      texts[k].data->data()[i] = static_cast<std::byte>((i + (i == 99999 && k)) % 7);
    data::compute_statistics(texts[k]);
    keys[k] = data::make_column(BasicType::i64, 70000);
    keys[k].is_foreign_key = true;
    keys[k].foreign_rows = data::zeros(4 * keys[k].rows);
    for (uint64_t i = 0; i < keys[k].rows; ++i) {
      const auto row = static_cast<int32_t>((i + (i == 69999 && k)) * 7 % 1000);
      std::memcpy(keys[k].foreign_rows->data() + 4 * i, &row, 4);
    }
  }
  check(std::move(texts[0]), std::move(texts[1]), {}, "packed_3");
  check(std::move(keys[0]), std::move(keys[1]), 1000, "packed_10");
}

// Versions of a file leave one form of a column, with whatever bits it has.
TEST(ColumnForms, OfAPlaceTheNewestIsKept) {
  const Folder folder;
  const auto files = [&] {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) names.push_back(entry.path().filename());
    return names;
  };
  const auto column = [&](uint64_t distinct, double divisor, const std::string& place) {
    auto c = column_of(BasicType::f64, values_of<double>(0, 1, distinct, divisor));
    c->data->keep_forms({folder.path(), "t.x", "elements of t.x in " + place});
    return c;
  };
  for (const uint64_t distinct : {50, 1000, 1000000}) {
    EXPECT_NE(form(*column(distinct, 1, "/data")), "plain");
    EXPECT_EQ(form_of(*column(distinct, 1, "/data"), {}, Encode::packed, nullptr).encoded, 0u);
    EXPECT_EQ(files().size(), 1u) << distinct;
  }
  // Nothing is kept of the forms that were tried before it.
  EXPECT_EQ(form(*column(1000, 100, "/data")), "packed_10_e2");
  EXPECT_EQ(files().size(), 1u);
  EXPECT_EQ(form(*column(1000, 100, "/data")), "packed_10_e2");
  EXPECT_EQ(form(*column(50, 1, "/other")), "packed_6");
  EXPECT_EQ(files().size(), 2u);
  EXPECT_EQ(form_of(*column(1000, 100, "/data"), {}, Encode::packed, nullptr).encoded, 0u);
}

// Where the elements of a column lie; of doubles by a power of ten, of texts the codes.
struct Spread {
  int64_t first, last;
  uint8_t digits;
  bool has_zero() const { return first <= 0 && last >= 0; }
};
// As wide as every width of an encoding: bytes, and bits in no word, one, two and three. From zero, above, below and around it.
std::vector<Spread> spreads() {
  std::vector<Spread> out;
  uint8_t digits = 0;
  for (const int64_t span : {int64_t{0}, int64_t{15}, int64_t{20}, int64_t{250}, int64_t{60000}, (int64_t{1} << 32) - 10, int64_t{1} << 40}) {
    for (const int64_t first : {int64_t{0}, int64_t{7000}, -span - 7000, -span / 2}) out.push_back({first, first + span, digits});
    digits = (digits + 1) % 5;
  }
  return out;
}

// Elements with missing ones among them, under which are zeros, or the least or greatest of all where zero is none of them.
struct Nullable {
  Column column;
  std::vector<std::byte> plain;  // what is to be restored
};
Nullable nullable(BasicType type, uint64_t rows, const Spread& spread) {
  std::mt19937_64 random(rows + static_cast<uint64_t>(type));
  const bool text = hir::is_text(type);
  const auto texts = static_cast<uint64_t>(spread.last) + 1;
  Nullable out{.column = text ? data::make_column(type, rows, data::Encoding::dictionary, texts <= 256 ? 1 : texts <= 65536 ? 2 : 4)
                              : data::make_column(type, rows),
               .plain = {}};
  Column& c = out.column;
  c.validity = data::zeros(rows);
  if (text) {
    c.dictionary = std::make_shared<data::Dictionary>();
    c.dictionary->values.resize(texts);
  }
  const uint32_t bytes = encodings::plain_bytes(type);
  out.plain.resize(rows * bytes);
  for (uint64_t i = 0; i < rows; ++i) {
    const bool missing = random() % 4 == 0;
    c.validity->data()[i] = std::byte{!missing};
    int64_t x = spread.first + static_cast<int64_t>(random() % static_cast<uint64_t>(spread.last - spread.first + 1));
    if (i < 2 || (missing && !spread.has_zero())) x = i % 2 ? spread.last : spread.first;
    else if (missing) x = 0;
    if (type == BasicType::boolean) x &= 1;
    const double decimal = static_cast<double>(x) / std::pow(10.0, spread.digits);
    const std::complex<double> both(decimal, -decimal);
    const auto single = static_cast<float>(decimal);
    const __int128 integer = x;
    const void* from = type == BasicType::f64 ? static_cast<const void*>(&decimal) : type == BasicType::f32 ? &single : type == BasicType::complex ? static_cast<const void*>(&both) : &integer;
    std::memcpy(out.plain.data() + i * bytes, from, bytes);
    std::memcpy(c.data->data() + i * c.width, from, c.width);
  }
  data::compute_statistics(c);
  return out;
}

// What sets a form apart from others in the code that reads it.
std::string family(const encodings::Stored& s) {
  std::string out(encodings::find(s).name());
  if (s.bytes) out += fmt::format("_{}{}", s.is_signed ? 's' : 'u', 8 * s.bytes);
  if (s.kind == Kind::packed) out += s.bits == 0 ? " in no word" : 32 % s.bits == 0 ? " in a word" : s.bits < 34 ? " in two words" : " in three words";
  if (s.exponent) out += fmt::format(", {} digits", s.exponent);
  if (s.reference) out += s.reference < 0 ? " below zero" : " above zero";
  return out;
}

// Every type in every form, restored on the host and by kernels, one target after the other.
TEST(ColumnForms, MissingValues) {
  constexpr BasicType types[] = {
#define BASIC_TYPE(id, ...) BasicType::id,
#include "frontend/types.def"
#undef BASIC_TYPE
  };
  std::deque<operators::test::Bench> benches;
  for (const char* target : operators::test::targets) benches.emplace_back(target);
  std::set<std::string> forms;
  size_t turn = 0;
  const auto check = [&](const Column& c, BasicType type, const std::vector<std::byte>& plain, Encode encode) {
    operators::test::Bench& bench = benches[turn % benches.size()];
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
    EXPECT_TRUE(back == plain) << what << ", " << bench.device->info().target;
    forms.insert(family(f.stored));
  };
  for (const BasicType type : types) {
    ++turn;
    for (const Spread& spread : spreads()) {
      ++turn;
      if (hir::is_text(type) && (spread.first < 0 || spread.last > 100000)) continue;
      for (const uint64_t rows : {0, 1, 31, 1023, 1025}) {
        const Nullable n = nullable(type, rows, spread);
        check(n.column, type, n.plain, Encode::packed);
        if (spread.last != 20) continue;
        check(n.column, type, n.plain, Encode::narrow);  // as the host has it
        check(n.column, type, n.plain, Encode::plain);
        const Column valid = data::validity_of(n.column);
        const std::vector<std::byte> flags(valid.data->data(), valid.data->data() + rows);
        check(valid, BasicType::boolean, flags, Encode::packed);
      }
    }
  }
  std::set<std::string> all = {"plain"};
  for (const char* sign : {"", " below zero", " above zero"}) {
    for (const char* words : {"no word", "a word", "two words", "three words"}) all.insert(fmt::format("packed in {}{}", words, sign));
    for (const char* bytes : {"u8", "u16", "u32"}) all.insert(fmt::format("narrow_{}{}", bytes, sign));
  }
  all.merge(std::set<std::string>{"narrow_s8", "narrow_s16", "narrow_s32"});
  for (const std::string& form : all) EXPECT_TRUE(forms.contains(form)) << form;
  for (int digits = 1; digits <= 4; ++digits)
    for (const char* sign : {"", " below zero", " above zero"})
      EXPECT_TRUE(std::any_of(forms.begin(), forms.end(), [&](const std::string& f) {
        return f.ends_with(fmt::format(", {} digits{}", digits, sign));
      })) << digits << " digits" << sign;
}

// What --encode may be: every encoding of a column by itself, and `auto`. Records hold several columns, which a run puts there.
TEST(ColumnForms, EveryEncodingCanBeAskedFor) {
#define ENCODING(id) EXPECT_EQ(find_encode(#id).has_value(), Kind::id != Kind::record) << #id;
#include "ptx/encodings/encodings.def"
#undef ENCODING
  EXPECT_TRUE(find_encode("auto").has_value());
  EXPECT_FALSE(find_encode("wide").has_value());
}

}  // namespace
}  // namespace rndn::runtime
