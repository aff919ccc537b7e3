// Files as tables: what DuckDB has written comes back as it says itself, type by type, with nulls;
// folders, patterns and calls; and what is said of files that are damaged, cut, changed or absent.
#include "runtime/files/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "runtime/data/sources.h"
#include "runtime/planner/duckdb.h"
#include "tests/planner/support.h"

namespace rndn::files {
namespace {

using data::Column;
using planner::installed;
using planner::installed_folder;
using data::Source;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
namespace fs = std::filesystem;

class Files : public testing::Test {
 protected:
  void SetUp() override {
    REQUIRE_PLANNER();
    auto opened = planner::Duckdb::open(planner::installed(), 2, planner::Duckdb::Access::files);
    ASSERT_TRUE(opened) << opened.error().message;
    duckdb_ = *std::move(opened);
    folder_ = testing::TempDir() + "rndn_files_" + std::to_string(getpid()) + "/";
    fs::create_directories(folder_);
    options_.formats = formats();
    options_.progress = false;
    options_.note = [this](const std::string& text) { notes_ += text + "\n"; };
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  void run(const std::string& statement) {
    auto done = duckdb_->run(statement);
    ASSERT_TRUE(done) << statement << ": " << done.error().message;
  }
  // The file, as the query's rows.
  void write(const std::string& file, const std::string& query, const std::string& how = "") {
    fs::create_directories(fs::path(folder_ + file).parent_path());
    run(fmt::format("COPY ({}) TO '{}' {}", query, folder_ + file, how));
  }
  std::shared_ptr<Source> open(const std::string& path, const std::string& table = "t") {
    auto source = data::open_table(table, path, options_);
    EXPECT_TRUE(source) << source.error().message;
    return source ? *source : nullptr;
  }
  Error refused(const std::string& path) {
    auto source = data::open_table("t", path, options_);
    return source ? Error{} : source.error();
  }
  static std::vector<std::string> texts(const Column& c) {
    std::vector<std::string> all;
    for (uint64_t i = 0; i < c.rows; ++i)
      all.push_back(c.validity && (*c.validity)[i] == std::byte{0} ? "NULL"
                                                                    : std::string(c.text_at(i)));
    return all;
  }

  std::unique_ptr<planner::Duckdb> duckdb_;
  std::string folder_, notes_;
  data::SourceOptions options_;
};

// Numbers are compared where they lie; DuckDB says what they are.
TEST_F(Files, ParquetHasItsRowsInTheirOrder) {
  write("n.parquet",
        "SELECT i, i * 7 % 1000 AS m, 'text ' || (i % 10) AS s, 'a long text, number ' || i AS l, "
        "CASE WHEN i % 3 > 0 THEN i / 4 END AS d FROM range(300000) r(i)",
        "(ROW_GROUP_SIZE 20480)");
  const auto source = open(folder_ + "n.parquet");
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(source->rows_at_hand("t"), 300000u);
  auto columns = source->columns("t", std::vector<std::string>{"i", "m", "s", "l", "d"});
  ASSERT_TRUE(columns) << columns.error().message;
  const auto &i = *(*columns)[0], &m = *(*columns)[1], &s = *(*columns)[2], &l = *(*columns)[3],
             &d = *(*columns)[4];
  EXPECT_EQ(s.encoding, data::Encoding::dictionary);
  EXPECT_EQ(l.encoding, data::Encoding::text);
  const std::vector<std::string>& texts = s.dictionary->values;
  EXPECT_TRUE(std::is_sorted(texts.begin(), texts.end()));
  EXPECT_TRUE(i.statistics.dense && !i.has_nulls() && d.has_nulls());
  for (int64_t row = 0; row < 300000; ++row) {
    ASSERT_EQ(i.as<int64_t>()[row], row);
    ASSERT_EQ(m.as<int64_t>()[row], row * 7 % 1000);
    ASSERT_EQ(s.text_at(row), "text " + std::to_string(row % 10));
    ASSERT_EQ(l.text_at(row), "a long text, number " + std::to_string(row));
    ASSERT_EQ((*d.validity)[row], std::byte{row % 3 > 0});
    ASSERT_EQ(d.as<double>()[row], row % 3 > 0 ? static_cast<double>(row) / 4 : 0);
  }
}

// Texts that are too many for a dictionary only late, after batches have got codes.
TEST_F(Files, TextChangesItsEncodingOnTheWay) {
  write("c.parquet",
        "SELECT CASE WHEN i < 150000 THEN 'few ' || (i % 5) WHEN i % 9 = 0 THEN NULL ELSE 'many ' "
        "|| i END AS s FROM range(300000) r(i)",
        "(ROW_GROUP_SIZE 20480)");
  auto column = open(folder_ + "c.parquet")->column("t", "s");
  ASSERT_TRUE(column) << column.error().message;
  EXPECT_EQ((*column)->encoding, data::Encoding::text);
  const std::vector<std::string> got = texts(**column);
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(got[i], i < 150000   ? "few " + std::to_string(i % 5)
                      : i % 9 == 0 ? "NULL"
                                   : "many " + std::to_string(i));
}

TEST_F(Files, TypesAreThoseOfColumns) {
  write("z.parquet",
        "SELECT true AS b, 200::UTINYINT AS u8, 60000::USMALLINT AS u16, 4000000000::UINTEGER AS "
        "u32, 9000000000000000000::UBIGINT AS u64, 12.5::DECIMAL(4,1) AS d4, -1.25::DECIMAL(9,2) "
        "AS d9, 99.125::DECIMAL(18,3) AS d18, -7.5::DECIMAL(38,2) AS d38, 1.5::FLOAT AS f, TIME "
        "'01:02:03.000004' AS t, TIMESTAMP '2024-02-29 10:00:00.5' AS ts, '2024-02-29 "
        "10:00:00'::TIMESTAMP_S AS s, '2024-02-29 10:00:00.001'::TIMESTAMP_MS AS ms, '2024-02-29 "
        "10:00:00.000001'::TIMESTAMP_NS AS ns, '2024-02-29 10:00:00+02'::TIMESTAMPTZ AS tz, DATE "
        "'1970-01-02' AS day, 'x'::ENUM('x', 'y') AS e, '\\x00'::BLOB AS blob, [1] AS list, {'a': "
        "1} AS struct, uuid() AS uuid");
  const auto source = open(folder_ + "z.parquet");
  ASSERT_NE(source, nullptr);
  const data::TableSchema& table = source->schema().tables[0];
  std::string refused;
  for (const auto& c : table.refused) refused += c.name + " is " + c.type + "; ";
  EXPECT_EQ(refused, "blob is BLOB; list is INTEGER[]; struct is STRUCT(a INTEGER); uuid is UUID; ");
  constexpr int64_t morning = 1'709'200'800'000'000;  // 2024-02-29 10:00, in microseconds
  const std::vector<std::pair<std::string, int64_t>> wanted = {
      {"b", 1},           {"u8", 200},        {"u16", 60000},
      {"u32", 4000000000}, {"u64", 9000000000000000000}, {"d4", 125},
      {"d9", -125},       {"d18", 99125},     {"d38", -750},
      {"t", 3'723'000'004}, {"ts", morning + 500'000}, {"s", morning},
      {"ms", morning + 1000}, {"ns", morning + 1}, {"tz", morning - 7'200'000'000},
      {"day", 1}};
  for (const auto& [name, value] : wanted) {
    auto column = source->column("t", name);
    ASSERT_TRUE(column) << column.error().message;
    const Column& c = **column;
    const int64_t got = c.width == 1   ? c.as<int8_t>()[0]
                        : c.width == 2 ? c.as<int16_t>()[0]
                        : c.width == 4 ? c.as<int32_t>()[0]
                                       : c.as<int64_t>()[0];
    EXPECT_EQ(got, value) << name;
  }
  EXPECT_EQ((*source->column("t", "f"))->as<float>()[0], 1.5f);
  EXPECT_EQ((*source->column("t", "e"))->text_at(0), "x");
  EXPECT_EQ(table.find("d38")->decimal, (data::Decimal{38, 2}));
  EXPECT_EQ(table.find("u64")->meaning, data::Meaning::u64);
}

TEST_F(Files, IntegersBeyond64BitsAreKept) {
  write("v.json",
        "SELECT CASE WHEN i < 2 THEN i ELSE 9223372036854775808 END AS h FROM range(3) r(i)");
  const auto source = open(folder_ + "v.json");
  ASSERT_NE(source, nullptr);
  auto loaded = source->column("t", "h");
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ((*loaded)->type, hir::BasicType::i128);
  EXPECT_TRUE((*loaded)->as<__int128>()[2] == __int128{1} << 63);
}

TEST_F(Files, ValuesThatDoNotFitAreNamedByFileAndRow) {
  write("v.parquet", "SELECT i, make_timestamp_ns(i) AS ns FROM range(3) r(i)");
  for (const auto& [file, column, what] : std::vector<std::array<std::string, 3>>{
           {"v.parquet", "ns",
            "v.parquet: row 2 of column `ns` is no whole microsecond (TIMESTAMP_NS)"}}) {
    const auto source = open(folder_ + file);
    ASSERT_NE(source, nullptr) << file;
    auto loaded = source->column("t", column);
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().fault, Fault::input);
    EXPECT_THAT(loaded.error().message, HasSubstr(what));
    EXPECT_FALSE(source->is_loaded("t", column));
  }
}

TEST_F(Files, OtherKindsOfFilesAreTablesToo) {
  const std::string query =
      "SELECT i, 'n' || i AS name, DATE '2024-01-01' + i::INTEGER AS day FROM range(5000) r(i)";
  write("a.csv.gz", query, "(FORMAT csv, COMPRESSION gzip)");
  write("b.tsv.zst", query, "(FORMAT csv, DELIMITER '\t', COMPRESSION zstd)");
  write("c.json", query, "(FORMAT json, ARRAY true)");
  write("d.jsonl", query, "(FORMAT json)");
  write("e.ndjson.gz", query, "(FORMAT json, COMPRESSION gzip)");
  auto source = data::open_source({.data = folder_}, {}, options_);
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ(notes_, "");
  for (const char* table : {"a", "b", "c", "d", "e"}) {
    auto columns = (*source)->columns(table, std::vector<std::string>{"i", "name", "day"});
    ASSERT_TRUE(columns) << table << columns.error().message;
    EXPECT_EQ(*(*source)->rows(table), 5000u);
    for (int64_t row = 0; row < 5000; ++row) {
      ASSERT_EQ((*columns)[0]->as<int64_t>()[row], row) << table;
      ASSERT_EQ((*columns)[1]->text_at(row), "n" + std::to_string(row)) << table;
      ASSERT_EQ((*columns)[2]->as<int32_t>()[row], 19723 + row) << table;
    }
  }
}

TEST_F(Files, FoldersAndPatternsAreOneTable) {
  write("many/b.parquet", "SELECT 10 AS x");
  write("many/a.parquet", "SELECT 20 AS x UNION ALL SELECT 30");
  run(fmt::format("COPY (SELECT i AS x, i % 2 AS k FROM range(6) r(i)) TO '{}hive' (FORMAT parquet, "
                  "PARTITION_BY k)",
                  folder_));
  auto numbers = [](const Column& c) {
    std::vector<int64_t> all;
    for (uint64_t i = 0; i < c.rows; ++i)
      all.push_back(c.width == 4 ? c.as<int32_t>()[i] : c.as<int64_t>()[i]);
    return all;
  };
  for (const std::string path : {"many", "many/*.parquet", "many/?.parquet"}) {
    auto column = open(folder_ + path)->column("t", "x");
    ASSERT_TRUE(column) << column.error().message;
    EXPECT_THAT(numbers(**column), ElementsAre(20, 30, 10)) << path;
  }
  for (const std::string path : {"hive", "hive/*/*.parquet"}) {
    const auto source = open(folder_ + path);
    ASSERT_NE(source, nullptr);
    EXPECT_THAT(numbers(**source->column("t", "x")), ElementsAre(0, 2, 4, 1, 3, 5)) << path;
    EXPECT_THAT(numbers(**source->column("t", "k")), ElementsAre(0, 0, 0, 1, 1, 1)) << path;
  }
  auto both = data::open_source({.data = folder_}, {}, options_);
  ASSERT_TRUE(both) << both.error().message;
  EXPECT_EQ((*both)->rows_at_hand("many"), 3u);
  EXPECT_EQ((*both)->rows_at_hand("hive"), 6u);
  auto alone = data::open_source({.data = folder_ + "hive"}, {}, options_);
  ASSERT_TRUE(alone) << alone.error().message;
  EXPECT_EQ((*alone)->rows_at_hand("hive"), 6u);
  auto pattern = data::open_source({.data = folder_ + "many/*.parquet"}, {}, options_);
  ASSERT_FALSE(pattern);
  EXPECT_THAT(pattern.error().message, HasSubstr("--table NAME=PATTERN"));
}

TEST_F(Files, CallsHaveTheirOwnOptions) {
  write("o.csv", "SELECT 1 AS a, 'x' AS b", "(HEADER false, DELIMITER ';')");
  auto source = open_call("read_csv", "'" + folder_ + "o.csv', header = false, delim = ';'", "t",
                          options_);
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ((*source)->schema().tables[0].columns[1].name, "column1");
  write("p.parquet", "SELECT 5 AS a");
  write("q.parquet", "SELECT 6 AS a");
  source = open_call("read_parquet", fmt::format("['{0}q.parquet', '{0}p.parquet']", folder_), "t",
                     options_);
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ((*(*source)->column("t", "a"))->as<int32_t>()[0], 6);
  source = open_call("read_csv", "'" + folder_ + "o.csv', nonsense = 1", "t", options_);
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().fault, Fault::input);
}

TEST_F(Files, NamesOfColumnsMayBeAnything) {
  write("q.parquet", "SELECT 1 AS \"a b\", 2 AS \"c\"\"d\", 3 AS \"select\", 4 AS file_row_number");
  const auto source = open(folder_ + "q.parquet");
  ASSERT_NE(source, nullptr);
  int32_t wanted = 1;
  for (const char* name : {"a b", "c\"d", "select", "file_row_number"})
    EXPECT_EQ((*source->column("t", name))->as<int32_t>()[0], wanted++) << name;
}

TEST_F(Files, TwoFilesOfOneTableAreAnError) {
  write("t.parquet", "SELECT 1 AS x");
  std::ofstream(folder_ + "t.csv") << "x\n1\n";
  auto source = data::open_source({.data = folder_}, {}, options_);
  ASSERT_FALSE(source);
  EXPECT_THAT(source.error().message,
              AllOf(HasSubstr("t.csv` and `"), HasSubstr("t.parquet` would both be the table `t`")));
}

TEST_F(Files, WhatCannotBeReadIsNamed) {
  EXPECT_THAT(refused(folder_ + "none.parquet").message,
              AllOf(StartsWith("cannot read `"), HasSubstr("none.parquet`: No such file")));
  EXPECT_THAT(refused(folder_ + "x*.parquet").message, HasSubstr("there is no such file"));
  std::ofstream(folder_ + "bad.parquet") << "this is no Parquet file at all";
  EXPECT_THAT(refused(folder_ + "bad.parquet").message, HasSubstr("bad.parquet: no magic bytes"));
  EXPECT_EQ(refused(folder_ + "bad.parquet").fault, Fault::input);
  for (const char* remote : {"s3://bucket/x.parquet", "https://example.org/x.parquet"})
    EXPECT_THAT(refused(remote).message, HasSubstr("is not on this machine"));
}

TEST_F(Files, DamageIsNamedByFileColumnAndRowGroup) {
  write("d.parquet",
        "SELECT i AS good, i * 7 AS bad FROM range(100000) r(i)", "(ROW_GROUP_SIZE 20480)");
  const std::string path = folder_ + "d.parquet";
  auto where = duckdb_->run("SELECT data_page_offset, total_compressed_size FROM parquet_metadata('" +
                            path + "') WHERE path_in_schema = 'bad' AND row_group_id = 3");
  ASSERT_TRUE(where && where->rows.size() == 1);
  const auto source = open(path);
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(std::stol(where->rows[0][0]));
    file << std::string(64, '\xff');
  }
  // Opened before it was damaged: it has changed. Opened again, the place is named.
  auto before = source->column("t", "bad");
  ASSERT_FALSE(before);
  EXPECT_THAT(before.error().message, HasSubstr("d.parquet: it has changed since it was opened"));
  const auto again = open(path);
  auto after = again->column("t", "bad");
  ASSERT_FALSE(after);
  EXPECT_EQ(after.error().fault, Fault::input);
  EXPECT_THAT(after.error().message, HasSubstr("d.parquet: column `bad`, row group 3: "));
  EXPECT_FALSE(again->is_loaded("t", "bad"));
  EXPECT_TRUE(again->column("t", "good"));

  fs::resize_file(path, fs::file_size(path) / 2);
  EXPECT_THAT(refused(path).message, HasSubstr("d.parquet: "));
}

}  // namespace
}  // namespace rndn::files
