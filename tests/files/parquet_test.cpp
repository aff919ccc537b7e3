// The reader of Parquet files beside DuckDB's, which reads the same files: random tables of every
// type, with and without nulls, in both page versions and with dictionaries of all sizes; and files
// with wrong bytes, of which no more may be read than DuckDB reads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "libraries/base/system/files.h"
#include "runtime/data/sources.h"
#include "runtime/files/files.h"
#include "runtime/files/parquet_source.h"
#include "runtime/files/snappy.h"
#include "runtime/planner/duckdb.h"
#include "tests/planner/support.h"

namespace rndn::files {
namespace {

using data::Column;
using planner::installed;
using planner::installed_folder;
using testing::HasSubstr;
namespace fs = std::filesystem;

class Parquet : public testing::Test {
 protected:
  void SetUp() override {
    REQUIRE_PLANNER();
    auto opened = planner::Duckdb::open(planner::installed(), 2, planner::Duckdb::Access::files);
    ASSERT_TRUE(opened) << opened.error().message;
    duckdb_ = *std::move(opened);
    folder_ = testing::TempDir() + "rndn_parquet_" + std::to_string(getpid()) + "/";
    fs::create_directories(folder_);
    options_.progress = false;
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  void write(const std::string& path, const std::string& query, const std::string& how = "") {
    auto done = duckdb_->run(fmt::format("COPY ({}) TO '{}' (FORMAT parquet{}{})", query, path,
                                         how.empty() ? "" : ", ", how));
    ASSERT_TRUE(done) << done.error().message;
  }
  // By this reader alone; none: it leaves the table to another.
  std::shared_ptr<data::Source> alone(const std::string& path) {
    auto source = open_parquet(path, {path}, []() -> Result<std::unique_ptr<data::BatchSource>> {
      return world_error("there is no other reader");
    });
    if (!source) return nullptr;
    auto loader = data::open_batches("t", *std::move(source));
    return loader ? std::make_shared<data::Source>(*std::move(loader)) : nullptr;
  }
  // As SQL reads it, which is DuckDB's affair.
  std::shared_ptr<data::Source> by_duckdb(const std::string& path) {
    auto source = open_call("read_parquet", "'" + path + "'", "t", options_);
    return source ? *source : nullptr;
  }

  static bool is_there(const Column& c, uint64_t row) {
    return !c.validity || (*c.validity)[row] == std::byte{1};
  }
  // Where the footer says that 64 bits hold what DuckDB's reader gives 128 for.
  static void expect_equal_integers(const Column& a, const Column& b, const std::string& name) {
    ASSERT_EQ(a.has_nulls(), b.has_nulls()) << name;
    for (uint64_t i = 0; i < a.rows; ++i) {
      ASSERT_EQ(is_there(a, i), is_there(b, i)) << name << " row " << i;
      int64_t own;
      __int128 its;
      std::memcpy(&own, a.data->data() + 8 * i, sizeof own);
      std::memcpy(&its, b.data->data() + 16 * i, sizeof its);
      ASSERT_TRUE(own == its) << name << " row " << i;
    }
  }
  static void expect_equal(const Column& a, const Column& b, const std::string& name) {
    ASSERT_EQ(a.rows, b.rows) << name;
    if (a.type == hir::BasicType::i64 && b.type == hir::BasicType::i128)
      return expect_equal_integers(a, b, name);
    ASSERT_EQ(a.type, b.type) << name;
    ASSERT_EQ(a.encoding, b.encoding) << name;
    ASSERT_EQ(a.has_nulls(), b.has_nulls()) << name;
    for (uint64_t i = 0; i < a.rows; ++i) {
      ASSERT_EQ(is_there(a, i), is_there(b, i)) << name << " row " << i;
      if (hir::is_text(a.type)) {
        ASSERT_EQ(a.text_at(i), b.text_at(i)) << name << " row " << i;
      }
    }
    const bool is_coded = a.encoding == data::Encoding::dictionary;
    ASSERT_TRUE(!is_coded || a.dictionary->values == b.dictionary->values) << name;
    ASSERT_TRUE(a.encoding == data::Encoding::text || *a.data == *b.data) << name;
    const data::Statistics &s = a.statistics, &t = b.statistics;
    EXPECT_EQ(s.known, t.known) << name;
    EXPECT_TRUE(s.min == t.min && s.max == t.max && s.float_min == t.float_min &&
                s.float_max == t.float_max)
        << name;
    EXPECT_TRUE(s.sorted == t.sorted && s.dense == t.dense && s.unique == t.unique) << name;
  }

  std::unique_ptr<planner::Duckdb> duckdb_;
  std::string folder_;
  data::SourceOptions options_;
};

// Columns of every type that the reader takes; `{}` is the number of distinct values.
constexpr const char* every_type =
    "SELECT i % 2 = 0 AS truth, (i % 120)::TINYINT AS i8, (i % 3000 * 7)::SMALLINT AS i16, (i % "
    "{0})::INTEGER AS "
    "i32, i::BIGINT * 1000003 AS i64, (i % 250)::UTINYINT AS u8, (i % 60000)::USMALLINT AS u16, "
    "(i * 40000)::UINTEGER AS u32, i::UBIGINT * 5000000000 AS u64, (i % {0})::FLOAT / 4 AS f32, "
    "i / 3.0::DOUBLE AS f64, (i % 900 - 3)::DECIMAL(4,1) AS d4, (i % 5000)::DECIMAL(9,2) AS d9, "
    "(i * 11)::DECIMAL(18,3) AS d18, (-i * 12345)::DECIMAL(38,2) AS d38, DATE '1969-12-01' + "
    "(i % {0})::INTEGER AS day, TIMESTAMP '2024-01-01' + to_microseconds(i * 1001) AS ts, "
    "make_timestamptz(i * 1000001) AS tz, 'name ' || (i % {0}) AS few, 'a text of its own, number "
    "' || i AS many, CASE WHEN i % 4 = 0 THEN '' WHEN i % 4 = 1 THEN 'grün ' || i % {0} END AS s, "
    "CASE WHEN i % 1000 < 500 THEN i % {0} END AS runs FROM range({1}) r(i)";

TEST_F(Parquet, ReadsAsDuckdbDoes) {
  struct Case {
    uint64_t distinct, rows;
    const char* how;
    bool with_nulls;
  };
  constexpr Case cases[] = {
      {5, 120, "", false},
      {90, 3, "COMPRESSION uncompressed", false},
      {300, 120, "", true},
      {100, 0, "", false},
      {100, 5000, "COMPRESSION zstd", true},
      {700, 30'000, "ROW_GROUP_SIZE 4096", true},
      {90, 30'000, "ROW_GROUP_SIZE 10240, COMPRESSION uncompressed", false},
      {9000, 40'000, "ROW_GROUP_SIZE 20480, DICTIONARY_SIZE_LIMIT 1", true},
      {9000, 40'000, "ROW_GROUP_SIZE 20480, DICTIONARY_SIZE_LIMIT 100000", true},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(fmt::format("{} rows, {} distinct, {}", c.rows, c.distinct, c.how));
    std::string query = fmt::format(every_type, c.distinct, c.rows);
    if (c.with_nulls)
      query = "SELECT * REPLACE (" +
              [&] {
                std::string list;
                for (const char* name : {"truth", "i8", "i32", "i64", "u64", "f32", "f64", "d9",
                                         "d38", "day", "tz", "few", "many"})
                  list +=
                      fmt::format("{}CASE WHEN hash({}::VARCHAR || i64) % 3 > 0 THEN {} END AS {}",
                                  list.empty() ? "" : ", ", name, name, name);
                return list;
              }() +
              ") FROM (" + query + ")";
    const std::string path = folder_ + "t.parquet";
    write(path, query, c.how);
    const auto mine = alone(path), its = by_duckdb(path);
    ASSERT_TRUE(mine && its);
    ASSERT_EQ(*mine->rows("t"), c.rows);
    std::vector<std::string> names;
    for (const auto& column : mine->schema().tables[0].columns) names.push_back(column.name);
    ASSERT_EQ(names.size(), its->schema().tables[0].columns.size());
    auto a = mine->columns("t", names), b = its->columns("t", names);
    ASSERT_TRUE(a) << a.error().message;
    ASSERT_TRUE(b) << b.error().message;
    for (size_t i = 0; i < names.size(); ++i) {
      const auto &own = mine->schema().tables[0].columns[i],
                 &other = its->schema().tables[0].columns[i];
      const bool is_wider = own.type == hir::BasicType::i64 && other.type == hir::BasicType::i128;
      EXPECT_TRUE((own.type == other.type || is_wider) && own.meaning == other.meaning &&
                  own.decimal == other.decimal && own.name == other.name)
          << names[i];
      expect_equal(*(*a)[i], *(*b)[i], names[i]);
    }
  }
}

TEST_F(Parquet, WhatItDoesNotTakeIsReadByDuckdb) {
  const std::string path = folder_ + "o.parquet";
  write(path,
        "SELECT i AS a, [i] AS list, {'x': i, 'y': [i]} AS pair, i::DOUBLE AS b, TIME "
        "'01:00:00' AS c FROM range(1000) r(i)");
  EXPECT_EQ(alone(path), nullptr);
  auto source = data::open_table("t", path, {.progress = false, .formats = formats()});
  ASSERT_TRUE(source);
  for (const char* how : {"COMPRESSION gzip", "PARQUET_VERSION v2"}) {
    auto columns = (*source)->columns("t", std::vector<std::string>{"a", "b", "c"});
    ASSERT_TRUE(columns) << columns.error().message;
    EXPECT_EQ((*columns)[0]->as<int64_t>()[999], 999);
    EXPECT_EQ((*columns)[1]->as<double>()[999], 999);
    EXPECT_EQ((*columns)[2]->as<int64_t>()[999], 3'600'000'000);
    write(path, "SELECT i AS a, i::DOUBLE AS b, TIME '01:00:00' AS c FROM range(1000) r(i)", how);
    source = data::open_table("t", path, {.progress = false, .formats = formats()});
    ASSERT_TRUE(source);
  }
}

// Values that bounds do not prove to fit 64 bits are kept in 128, whichever reader has them.
TEST_F(Parquet, ValuesBeyond64BitsAreKept) {
  const std::string path = folder_ + "w.parquet";
  for (const char* how : {"ROW_GROUP_SIZE 2048", "COMPRESSION gzip"}) {
    SCOPED_TRACE(how);
    write(path,
          "SELECT CASE WHEN i % 5 > 0 THEN (i * 1234567890123456789012345678::HUGEINT)"
          "::DECIMAL(38,3) END AS d, 18446744073709551615 - i::UBIGINT AS u, i::UBIGINT AS small, "
          "(-i)::DECIMAL(38,3) AS low FROM range(6000) r(i)",
          how);
    const auto source = data::open_table("t", path, {.progress = false, .formats = formats()});
    ASSERT_TRUE(source);
    auto columns =
        (*source)->columns("t", std::vector<std::string>{"d", "u", "small", "low"});
    ASSERT_TRUE(columns) << columns.error().message;
    const Column &d = *(*columns)[0], &u = *(*columns)[1];
    ASSERT_EQ(d.type, hir::BasicType::i128);
    ASSERT_EQ(u.type, hir::BasicType::i128);
    EXPECT_EQ((*columns)[2]->type, hir::BasicType::i64);
    EXPECT_EQ((*columns)[3]->type, hir::BasicType::i64);
    __int128 each = 1'234'567'890'123'456;
    each = (each * 1'000'000 + 789'012) * 1'000'000 + 345'678;
    for (int i = 0; i < 6000; ++i) {
      ASSERT_EQ(is_there(d, i), i % 5 > 0);
      ASSERT_TRUE(d.as<__int128>()[i] == (i % 5 > 0 ? each * i * 1000 : 0)) << i;
      ASSERT_TRUE(u.as<__int128>()[i] == (__int128{1} << 64) - 1 - i) << i;
      ASSERT_EQ((*columns)[3]->as<int64_t>()[i], -1000 * i);
    }
    EXPECT_TRUE(d.statistics.wide_known && d.statistics.wide_min == 0);
    EXPECT_TRUE(d.statistics.wide_max == each * 5999 * 1000);
    EXPECT_TRUE(u.statistics.wide_min == (__int128{1} << 64) - 6000);
  }
}

// Without the other reader the place is named all the same.
TEST_F(Parquet, DamageIsNamed) {
  const std::string path = folder_ + "d.parquet";
  write(path, "SELECT i * 7919 % 10007 AS a FROM range(30000) r(i)", "ROW_GROUP_SIZE 10240");
  auto where = duckdb_->run("SELECT data_page_offset FROM parquet_metadata('" + path +
                            "') WHERE row_group_id = 1");
  ASSERT_TRUE(where);
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary)
      .seekp(std::stol(where->rows[0][0]))
      .write(std::string(64, '\xff').data(), 64);
  const auto source = alone(path);
  ASSERT_NE(source, nullptr);
  auto column = source->column("t", "a");
  ASSERT_FALSE(column);
  EXPECT_EQ(column.error().fault, Fault::input);
  EXPECT_THAT(column.error().message, HasSubstr("d.parquet: column `a`, row group 1: a page is"));
}

TEST_F(Parquet, WrongBytesAreNoOtherValuesThanDuckdbReads) {
  const std::string path = folder_ + "f.parquet";
  write(path,
        "SELECT i AS a, i % 7 AS b, 'text ' || i % 9 AS c, 'long text number ' || i AS d, CASE "
        "WHEN i "
        "% 3 > 0 THEN i / 4 END AS e FROM range(500) r(i)",
        "ROW_GROUP_SIZE 2048");
  const std::string good = *read_file(path);
  std::mt19937 random(7);
  unsigned read = 0, refused = 0;
  for (int round = 0; round < 150; ++round) {
    std::string bad = good;
    for (unsigned k = 0; k <= random() % 3; ++k)
      bad[4 + random() % (bad.size() - 12)] = static_cast<char>(random());
    ASSERT_TRUE(write_file(path, bad));
    const auto mine = alone(path);
    if (!mine) {
      ++refused;
      continue;
    }
    const auto its = by_duckdb(path);
    for (const auto& c : mine->schema().tables[0].columns) {
      auto a = mine->column("t", c.name);
      if (!a) {
        ++refused;
        continue;
      }
      ++read;
      for (uint64_t i = 0; i < (*a)->rows; ++i)
        if (hir::is_text((*a)->type)) (void)(*a)->text_at(i);
      if (!its) continue;
      auto b = its->column("t", c.name);
      if (b && (*b)->type == (*a)->type)
        expect_equal(**a, **b, c.name + " of round " + std::to_string(round));
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(read, 50u);
  EXPECT_GT(refused, 50u);
}

TEST(Snappy, KnownBytes) {
  auto run = [](std::string from, size_t size) {
    const size_t given = from.size();
    from.resize(given + snappy_slack);
    std::string to(size + snappy_slack, '?');
    const bool ok = decompress_snappy(std::as_bytes(std::span(from)).first(given),
                                      std::as_writable_bytes(std::span(to)).first(size));
    return ok ? to.substr(0, size) : "damaged";
  };
  using namespace std::string_literals;
  EXPECT_EQ(run("\x00"s, 0), "");
  EXPECT_EQ(run("\x05\x10hello"s, 5), "hello");
  EXPECT_EQ(run("\x0a\x08"
                "abc"
                "\x0d\x03"s,
                10),
            "abcabcabca");  // a copy that reads itself
  EXPECT_EQ(run("\x06\x08"
                "abc\x0a\x03\x00"s,
                6),
            "abcabc");  // an offset of two bytes
  EXPECT_EQ(run("\x06\x08"
                "abc\x0b\x03\x00\x00\x00"s,
                6),
            "abcabc");
  EXPECT_EQ(run("\x46\xf0\x45"s + std::string(70, 'x'), 70), std::string(70, 'x'));
  for (const std::string& bad :
       {""s, "\x05"s, "\x05\x10hell"s, "\x05\x14hello!"s, "\x05\x0chell"s, "\x04\x01\x00"s,
        "\x06\x08"
        "abc\x0d\x04"s,
        "\x06\x08"
        "abc\x0d"s,
        "\x06\x08"
        "abc\x0a\x03"s,
        "\x05\xf4\x04"s, "\x05\x10hello\x00"s, "\xff\xff\xff\xff\xff\x01"s})
    EXPECT_EQ(run(bad, 5), "damaged") << bad.size();
}

}  // namespace
}  // namespace rndn::files
