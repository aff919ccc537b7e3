// The generator against the official one: row counts and MD5 of every table, and columns in memory against the text of
// the files.
#include "tpch/generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <set>
#include <unordered_map>

#include "libraries/base/system/files.h"
#include "runtime/data/schema.h"
#include "tests/tpch/md5.h"
#include "tpch/columns.h"
#include "tpch/random.h"
#include "tpch/source.h"
#include "tpch/text_pool.h"

namespace rndn::tpch {
namespace {

using testing::HasSubstr;

constexpr Table all_tables[] = {Table::region,   Table::nation,   Table::supplier, Table::part,
                                Table::partsupp, Table::customer, Table::orders,   Table::lineitem};

class Folder {
 public:
  Folder() {
    path_ = testing::TempDir() + "rndn_tpch_XXXXXX";
    if (!mkdtemp(path_.data())) ADD_FAILURE() << "cannot make a folder like " << path_;
  }
  ~Folder() {
    for (Table table : all_tables) unlink(file(table).c_str());
    unlink((path_ + "/schema.json").c_str());
    rmdir(path_.c_str());
  }
  const std::string& path() const { return path_; }
  std::string file(Table table) const { return fmt::format("{}/{}.tbl", path_, table_name(table)); }

 private:
  std::string path_;
};

// For tests that need the pool more than once.
class Tpch : public testing::Test {
 protected:
  static void SetUpTestSuite() { pool_ = new std::shared_ptr<const TextPool>(TextPool::get()); }
  static void TearDownTestSuite() { delete pool_; }
  static std::shared_ptr<const TextPool>* pool_;
};
std::shared_ptr<const TextPool>* Tpch::pool_ = nullptr;

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (size_t end; (end = text.find(at)) != text.npos; text.remove_prefix(end + 1))
    parts.push_back(text.substr(0, end));
  EXPECT_TRUE(text.empty()) << "text behind the last " << at;
  return parts;
}

struct Published {
  double scale;
  Table table;
  uint64_t rows;
  const char* md5;
};
constexpr Published published[] = {
    {0.001, Table::customer, 150, "4838fb47418882a3d617564c5a583641"},
    {0.01, Table::customer, 1500, "a8aa97edad6d47b183a569759fbd3eec"},
    {0.001, Table::lineitem, 6005, "c9aec6ed54586bfca91ab61af604c177"},
    {0.01, Table::lineitem, 60175, "4c6d44350a1f7974f56f5d3d7091c2be"},
    {0.001, Table::nation, 25, "2f588e0b7fa72939b498c2abecd9fbbe"},
    {0.01, Table::nation, 25, "2f588e0b7fa72939b498c2abecd9fbbe"},
    {0.001, Table::orders, 1500, "2ebaccf1735e9b7641e4791fca0ad6de"},
    {0.01, Table::orders, 15000, "c8d2008fb47f47f9e56543d4cb0f4e6a"},
    {0.001, Table::part, 200, "a07f0ea884e63b0c209efa3a75a3c4f7"},
    {0.01, Table::part, 2000, "9cce16188c241c25617ca5ed6191e37e"},
    {0.001, Table::partsupp, 800, "bd0cfd8dcb384f75f27f2383da27fed6"},
    {0.01, Table::partsupp, 8000, "c6889c3ed0939ca02475f7fb410cbb50"},
    {0.001, Table::region, 5, "c235841b00d29ad4f817771fcc851207"},
    {0.01, Table::region, 5, "c235841b00d29ad4f817771fcc851207"},
    {0.001, Table::supplier, 10, "f0f59eaf71d314ab0bc605ede1d89e0f"},
    {0.01, Table::supplier, 100, "56e0621c472064c2a998757c70b44043"},
};

TEST(Md5, KnowsTheVectorsOfItsSpecification) {
  EXPECT_EQ(md5(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(md5("message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
  EXPECT_EQ(md5("12345678901234567890123456789012345678901234567890123456789012345678901234567890"),
            "57edf4a22be3c955ac49da2e2107b67a");
}

TEST_F(Tpch, FilesAreThoseOfTheOfficialGenerator) {
  std::set<std::pair<double, Table>> seen;
  for (double scale : {0.001, 0.01}) {
    Folder folder;
    Result<void> written = write_tables(scale, folder.path(), 0, false);
    ASSERT_TRUE(written) << written.error().message;
    for (const Published& p : published) {
      if (p.scale != scale) continue;
      seen.insert({scale, p.table});
      Result<std::string> text = read_file(folder.file(p.table));
      ASSERT_TRUE(text) << text.error().message;
      EXPECT_EQ(static_cast<uint64_t>(std::count(text->begin(), text->end(), '\n')), p.rows)
          << table_name(p.table) << " at " << scale;
      EXPECT_EQ(row_count(p.table, scale), p.rows) << table_name(p.table) << " at " << scale;
      EXPECT_EQ(md5(*text), p.md5) << table_name(p.table) << " at " << scale;
    }
  }
  EXPECT_EQ(seen.size(), 16u);
}

// Several chunks per table, so that threads really take turns.
TEST_F(Tpch, ThreadsChangeNothing) {
  constexpr double scale = 0.02;
  for (Table table : all_tables) {
    Folder folder;
    std::string first;
    for (unsigned threads : {1u, 2u, 7u}) {
      Result<void> written = write_table(table, scale, folder.file(table), threads, false);
      ASSERT_TRUE(written) << written.error().message;
      Result<std::string> text = read_file(folder.file(table));
      ASSERT_TRUE(text) << text.error().message;
      if (threads == 1)
        first = std::move(*text);
      else
        EXPECT_TRUE(*text == first) << table_name(table) << " with " << threads << " threads";
    }
    EXPECT_EQ(static_cast<uint64_t>(std::count(first.begin(), first.end(), '\n')), row_count(table, scale))
        << table_name(table);
  }
}

TEST_F(Tpch, ThePoolIsTheSameHoweverItIsCut) {
  // Small chunks fall into step more often; one thread joins what it has just written.
  TextPool other(1, 1 << 14);
  EXPECT_TRUE(other.view() == (*pool_)->view());
}

TEST_F(Tpch, ThePoolIsSharedWhileHeld) { EXPECT_EQ(TextPool::get(), *pool_); }

int64_t days_since_1970(int year, int month, int day) {
  static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
  int64_t days = 0;
  for (int y = 1970; y < year; ++y) days += y % 4 == 0 ? 366 : 365;  // no century in range
  return days + before[month - 1] + (month > 2 && year % 4 == 0) + day - 1;
}

// One element of a column as the text that stands in the file.
void expect_cell(const data::Column& column, uint64_t row, std::string_view cell, std::string_view name) {
  using hir::BasicType;
  std::string text(cell);
  switch (column.type) {
    case BasicType::i32: ASSERT_EQ(column.as<int32_t>()[row], std::atoi(text.c_str())) << name << " row " << row; break;
    case BasicType::f64:
      ASSERT_EQ(column.as<double>()[row], std::strtod(text.c_str(), nullptr)) << name << " row " << row;
      break;
    case BasicType::character: ASSERT_EQ(std::string(1, column.as<char>()[row]), text) << name << " row " << row; break;
    case BasicType::date: {
      int y, m, d;
      ASSERT_EQ(std::sscanf(text.c_str(), "%d-%d-%d", &y, &m, &d), 3);
      ASSERT_EQ(column.as<int32_t>()[row], days_since_1970(y, m, d)) << name << " row " << row;
      break;
    }
    case BasicType::sym:
    case BasicType::str: ASSERT_EQ(column.text_at(row), text) << name << " row " << row; break;
    default: FAIL() << name << " has an unexpected type";
  }
}

TEST_F(Tpch, ColumnsAreTheTextOfTheFiles) {
  constexpr double scale = 0.001;
  const data::Schema schema = tpch::schema();
  size_t columns_seen = 0;
  std::unordered_map<std::string, std::vector<int32_t>> keys;  // of "table.column"
  for (Table table : all_tables) {
    Folder folder;
    ASSERT_TRUE(write_table(table, scale, folder.file(table), 2, false));
    Result<std::string> text = read_file(folder.file(table));
    ASSERT_TRUE(text);
    std::vector<std::string_view> lines = split(*text, '\n');

    const data::TableSchema& table_schema = *schema.find(table_name(table));
    std::vector<std::string> names;
    for (const data::ColumnSchema& column : table_schema.columns) names.push_back(column.name);
    Result<std::vector<data::Column>> columns = generate_columns(table, names, scale, 2, false);
    ASSERT_TRUE(columns) << columns.error().message;
    ASSERT_EQ(columns->size(), names.size());
    for (size_t c = 0; c < names.size(); ++c) {
      const data::Column& column = (*columns)[c];
      ++columns_seen;
      ASSERT_EQ(column.rows, lines.size()) << names[c];
      ASSERT_EQ(column.data->size(), column.rows * column.width) << names[c];
      ASSERT_EQ(column.type, table_schema.columns[c].type) << names[c];
      for (uint64_t row = 0; row < column.rows; ++row) {
        std::vector<std::string_view> cells = split(lines[row], '|');
        ASSERT_EQ(cells.size(), names.size());
        expect_cell(column, row, cells[c], names[c]);
        if (HasFatalFailure()) return;
      }
      if (column.encoding == data::Encoding::dictionary) {
        // Every value once, in byte order.
        std::set<std::string> expected;
        for (uint64_t row = 0; row < column.rows; ++row) expected.emplace(column.text_at(row));
        EXPECT_THAT(column.dictionary->values, testing::ElementsAreArray(expected)) << names[c];
      }
      if (column.type == hir::BasicType::i32)
        keys[table_schema.name + "." + names[c]].assign(column.as<int32_t>(), column.as<int32_t>() + column.rows);
      // Tables come after those that they refer to.
      EXPECT_EQ(column.is_foreign_key, table_schema.columns[c].is_foreign_key()) << names[c];
      if (column.is_foreign_key) {
        EXPECT_EQ(column.foreign_table, table_schema.columns[c].foreign_table);
        const std::vector<int32_t>& target = keys.at(column.foreign_table + "." + table_schema.columns[c].foreign_key);
        ASSERT_EQ(column.foreign_rows->size(), column.rows * 4);
        for (uint64_t row = 0; row < column.rows; ++row) {
          ASSERT_LT(column.foreign_row(row), target.size()) << names[c];
          ASSERT_EQ(target[column.foreign_row(row)], column.as<int32_t>()[row]) << names[c] << " row " << row;
        }
      }
    }
  }
  EXPECT_EQ(columns_seen, 61u);
}

TEST(Columns, OfSeveralChunksAreTheFirstRowsOfOne) {
  // A larger scale has other keys but the same quantities, dates and flags at the start: chunks join without a gap.
  std::vector<std::string> names = {"l_quantity", "l_shipdate", "l_linenumber", "l_shipmode", "l_orderkey"};
  for (unsigned threads : {1u, 2u, 7u}) {
    Result<std::vector<data::Column>> small = generate_columns(Table::lineitem, names, 0.0005, threads, false);
    Result<std::vector<data::Column>> large = generate_columns(Table::lineitem, names, 0.02, threads, false);
    ASSERT_TRUE(small && large);
    ASSERT_LT((*small)[0].rows * 30, (*large)[0].rows);
    for (uint64_t row = 0; row < (*small)[0].rows; ++row) {
      ASSERT_EQ((*small)[0].as<double>()[row], (*large)[0].as<double>()[row]);
      ASSERT_EQ((*small)[1].as<int32_t>()[row], (*large)[1].as<int32_t>()[row]);
      ASSERT_EQ((*small)[2].as<int32_t>()[row], (*large)[2].as<int32_t>()[row]);
      ASSERT_EQ((*small)[3].text_at(row), (*large)[3].text_at(row));
      ASSERT_EQ((*small)[4].as<int32_t>()[row], (*large)[4].as<int32_t>()[row]);
    }
    // Line numbers start again exactly where the order changes.
    const int32_t *line = (*large)[2].as<int32_t>(), *order = (*large)[4].as<int32_t>();
    for (uint64_t row = 1; row < (*large)[2].rows; ++row)
      ASSERT_EQ(line[row] == 1, order[row] != order[row - 1]) << row;
  }
}

TEST(Columns, GiveTheAnswerOfQuerySix) {
  std::vector<std::string> names = {"l_quantity", "l_extendedprice", "l_discount", "l_shipdate"};
  Result<std::vector<data::Column>> columns = generate_columns(Table::lineitem, names, 0.01, 0, false);
  ASSERT_TRUE(columns);
  const double *quantity = (*columns)[0].as<double>(), *price = (*columns)[1].as<double>(),
               *discount = (*columns)[2].as<double>();
  const int32_t* date = (*columns)[3].as<int32_t>();
  double revenue = 0;
  for (uint64_t row = 0; row < (*columns)[0].rows; ++row)
    if (date[row] >= days_since_1970(1994, 1, 1) && date[row] < days_since_1970(1995, 1, 1) && discount[row] >= 0.05 &&
        discount[row] <= 0.07 && quantity[row] < 24)
      revenue += price[row] * discount[row];
  EXPECT_NEAR(revenue, 1193053.2253, 1193053.2253e-9);  // the published answer at this scale
}

TEST(Columns, HaveTheStatisticsOfTheirData) {
  std::vector<std::string> names = {"o_orderkey", "o_orderdate", "o_totalprice", "o_orderpriority", "o_comment"};
  Result<std::vector<data::Column>> orders = generate_columns(Table::orders, names, 0.001, 0, false);
  ASSERT_TRUE(orders);
  const data::Statistics& key = (*orders)[0].statistics;
  EXPECT_TRUE(key.known && key.sorted && !key.dense);
  EXPECT_EQ(key.min, 1);
  EXPECT_EQ(key.max, 5988);
  const data::Statistics& date = (*orders)[1].statistics;
  EXPECT_TRUE(date.known && !date.sorted && !date.dense);
  EXPECT_GE(date.min, days_since_1970(1992, 1, 1));
  EXPECT_LE(date.max, days_since_1970(1998, 8, 2));
  const data::Statistics& price = (*orders)[2].statistics;
  EXPECT_TRUE(price.known);
  EXPECT_GT(price.float_min, 800);
  EXPECT_LT(price.float_max, 600'000);
  EXPECT_EQ((*orders)[3].statistics.max, 4);
  EXPECT_FALSE((*orders)[4].statistics.known);
  std::vector<std::string> part = {"p_partkey"};
  EXPECT_TRUE((*generate_columns(Table::part, part, 0.001, 0, false))[0].statistics.dense);
}

TEST(Random, SkippingIsStepping) {
  uint32_t seed = 19620718, stepped = seed;
  for (uint64_t n = 0; n < 5000; ++n, stepped = step(stepped)) ASSERT_EQ(skip(seed, n), stepped) << n;
  // The period is 2^31 - 2 and a skip over two parts is the skip over their sum.
  EXPECT_EQ(skip(seed, lehmer_modulus - 1), seed);
  EXPECT_EQ(skip(skip(seed, 123'456'789'012), 987'654'321), skip(seed, 123'456'789'012 + 987'654'321));
  // The minimal standard generator: the 10,000th number after 1 (Park and Miller, 1988).
  EXPECT_EQ(skip(1, 10'000), 1043618065u);
  EXPECT_EQ((Stream{seed, 7}.at(1000)), skip(seed, 7000));
}

TEST(Random, IntegersScaleAsDoublesDo) {
  uint32_t seed = 1;
  for (uint32_t range : {1u, 2u, 7u, 50u, 2406u, 9900u, 99901u, exact_range - 1, exact_range}) {
    for (int i = 0; i < 20000; ++i) {
      seed = step(seed);
      ASSERT_EQ(scaled(seed, range), scaled_in_double(seed, range)) << seed << " in " << range;
    }
    // The seeds on both sides of every step are the hardest.
    for (uint64_t k = 1; k < std::min(range, 5000u); ++k) {
      uint32_t at = static_cast<uint32_t>(k * lehmer_modulus / range);
      for (uint32_t near : {at, at + 1})
        ASSERT_EQ(scaled(near, range), scaled_in_double(near, range)) << near << " in " << range;
    }
    ASSERT_EQ(scaled(lehmer_modulus - 1, range), range - 1);
  }
}

TEST(Errors, UnknownNamesAndScales) {
  auto message = [](Table table, std::vector<std::string> names, double scale) {
    Result<std::vector<data::Column>> columns = generate_columns(table, names, scale, 1, false);
    return columns ? "success" : columns.error().message;
  };
  EXPECT_EQ(message(Table::lineitem, {"l_quantitty"}, 0.001),
            "table `lineitem` has no column `l_quantitty`; did you mean `l_quantity`?");
  EXPECT_EQ(message(Table::region, {"xyz"}, 0.001),
            "table `region` has no column `xyz`; there are `r_regionkey`, `r_name`, `r_comment`");
  EXPECT_EQ(message(Table::region, {"r_name"}, 0), "the TPC-H scale factor must be above 0, got 0");
  EXPECT_EQ(message(Table::region, {"r_name"}, std::nan("")), "the TPC-H scale factor must be above 0, got nan");
  EXPECT_EQ(message(Table::region, {"r_name"}, INFINITY), "the TPC-H scale factor must be below 30000, got inf");
  EXPECT_EQ(message(Table::orders, {"o_orderkey"}, 358),
            "table `orders` at scale 358 has order keys beyond 32 bits; the largest scale factor for it is 357");
  EXPECT_THAT(message(Table::partsupp, {"ps_comment"}, 29999),
              HasSubstr("1 columns of table `partsupp` at scale 29999 need 1152"));
  EXPECT_EQ(write_table(Table::region, -1, "/nowhere", 1, false).error().message,
            "the TPC-H scale factor must be above 0, got -1");
}

TEST_F(Tpch, FilesThatCannotBeWritten) {
  Result<void> written = write_table(Table::region, 1, "/does-not-exist/region.tbl", 1, false);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().fault, Fault::world);
  EXPECT_EQ(written.error().message, "cannot write `/does-not-exist/region.tbl`: No such file or directory");
  if (access("/dev/full", W_OK) == 0) {
    // Through a link, so that a writer that removes what it could not write takes the link and not the device.
    std::string full = testing::TempDir() + "rndn_tpch_full_" + std::to_string(getpid());
    ASSERT_EQ(symlink("/dev/full", full.c_str()), 0);
    EXPECT_FALSE(write_table(Table::region, 1, full, 1, false));
    EXPECT_EQ(unlink(full.c_str()), 0) << "the writer removed a device";
  }
}

TEST(Scale, FractionsOfRowsAreCutOffButNothingIsEmpty) {
  EXPECT_EQ(row_count(Table::supplier, 0.29), 2900u);  // 0.29 is a little less in binary
  EXPECT_EQ(row_count(Table::part, 0.0000001), 1u);
  EXPECT_EQ(row_count(Table::partsupp, 0.0000001), 4u);
  EXPECT_EQ(row_count(Table::lineitem, 1), 6001215u);
  EXPECT_EQ(row_count(Table::orders, 1.5), 2250000u);
  EXPECT_EQ(row_count(Table::orders, -1), 0u);
}

TEST_F(Tpch, TheSmallestScaleWorks) {
  Folder folder;
  ASSERT_TRUE(write_tables(1e-9, folder.path(), 3, false));
  for (Table table : all_tables) {
    std::string text = *read_file(folder.file(table));
    EXPECT_EQ(static_cast<uint64_t>(std::count(text.begin(), text.end(), '\n')), row_count(table, 1e-9))
        << table_name(table);
  }
}

}  // namespace
}  // namespace rndn::tpch
