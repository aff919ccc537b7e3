// The Star Schema Benchmark's data: sizes and keys, what TPC-H's streams have in common with it,
// and how many rows its 13 queries select, beside the filter factors of the paper.
#include "ssb/source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <set>

#include "libraries/base/system/files.h"
#include "tests/tpch/md5.h"
#include "tpch/source.h"

namespace rndn::ssb {
namespace {

using testing::ElementsAre;

std::shared_ptr<data::Source> open_ssb(const std::string& scale, unsigned threads = 2,
                                       const data::Scheme& of = scheme) {
  const data::SourceOptions options{.threads = threads, .progress = false};
  auto source = data::open_source({.data = fmt::format("{}:{}", of.name, scale)}, {&of, 1}, options);
  EXPECT_TRUE(source) << source.error().message;
  return *source;
}
std::shared_ptr<const data::Column> column(data::Source& source, const std::string& table,
                                           const std::string& name) {
  auto loaded = source.column(table, name);
  EXPECT_TRUE(loaded) << loaded.error().message;
  return *loaded;
}

TEST(Ssb, HasTheSizesOfTheBenchmark) {
  const std::map<std::string, std::vector<uint64_t>> rows = {
      // customer, supplier, part, date, lineorder
      {"0.01", {300, 20, 2'000, 2'556, 60'175}},
      {"1", {30'000, 2'000, 200'000, 2'556, 6'001'215}},
      {"10", {300'000, 20'000, 800'000, 2'556, 59'986'052}}};
  for (const auto& [scale, wanted] : rows) {
    auto source = open_ssb(scale);
    std::vector<uint64_t> got;
    for (const char* table : {"customer", "supplier", "part", "date", "lineorder"})
      got.push_back(*source->rows(table));
    EXPECT_EQ(got, wanted) << scale;
  }
  EXPECT_EQ(*open_ssb("100")->rows("lineorder"), 600'037'902u);
}

// MD5 sums of the files that the benchmark's own generator writes at scale 1, a table at a time
// (`dbgen -s 1 -T c` and so on; its variant with 2,556 dates).
constexpr std::pair<const char*, const char*> official[] = {
    {"customer", "51de4bf3c1cef46a19b20df19a91516a"},
    {"date", "32f6cb2cc1dda6977842e6324102a2ff"},
    {"part", "93df6e50e9919386ef1e7573eefe93d0"},
    {"supplier", "68a6debb31bc6999336ef41414bbc0d6"},
    {"lineorder", "0807c8393b2cdde9fbf3264242a6f57f"}};

// What a file of a table holds, made of its columns in memory.
std::string file_text(data::Source& source, const data::TableSchema& table) {
  std::vector<std::shared_ptr<const data::Column>> columns;
  for (const data::ColumnSchema& c : table.columns)
    columns.push_back(column(source, table.name, c.name));
  std::string text;
  for (uint64_t row = 0; row < columns[0]->rows; ++row) {
    for (const auto& c : columns) {
      if (hir::is_text(c->type))
        text += c->text_at(row);
      else
        text += std::to_string(c->type == hir::BasicType::boolean ? c->as<uint8_t>()[row]
                                                                  : c->as<int32_t>()[row]);
      text += '|';
    }
    text += '\n';
  }
  return text;
}

TEST(Ssb, DimensionsAreThoseOfTheBenchmark) {
  auto source = open_ssb("1");
  for (const auto& [table, sum] : official)
    if (table != std::string_view("lineorder")) {
      EXPECT_EQ(md5(file_text(*source, *source->schema().find(table))), sum) << table;
    }
}

class Folder {
 public:
  Folder() {
    path_ = testing::TempDir() + "rndn_ssb_XXXXXX";
    if (!mkdtemp(path_.data())) ADD_FAILURE() << "cannot make a folder like " << path_;
  }
  ~Folder() {
    for (const auto& [table, sum] : official) unlink(file(table).c_str());
    unlink((path_ + "/schema.json").c_str());
    rmdir(path_.c_str());
  }
  std::string file(const std::string& table) const { return fmt::format("{}/{}.tbl", path_, table); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(Ssb, FilesHoldWhatIsInMemory) {
  Folder folder;
  ASSERT_TRUE(write_tables(0.01, folder.path(), 3, false));
  auto source = open_ssb("0.01");
  for (const data::TableSchema& table : source->schema().tables) {
    const Result<std::string> text = read_file(folder.file(table.name));
    ASSERT_TRUE(text) << text.error().message;
    EXPECT_TRUE(*text == file_text(*source, table)) << table.name;
  }
  auto read = data::open_source({.data = folder.path()}, {}, {.progress = false});
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ((*read)->schema().find("lineorder")->columns[2].foreign_table, "customer");
  EXPECT_EQ(*(*read)->rows("lineorder"), 60'175u);
}

TEST(Ssb, FilesAreThoseOfTheBenchmark) {
  Folder folder;
  ASSERT_TRUE(write_tables(1, folder.path(), 0, false));
  for (const auto& [table, sum] : official) {
    const Result<std::string> text = read_file(folder.file(table));
    ASSERT_TRUE(text) << text.error().message;
    EXPECT_EQ(md5(*text), sum) << table;
  }
}

TEST(Ssb, JoinsHaveTheSameTablesWithoutForeignKeys) {
  auto keys = open_ssb("0.01"), joins = open_ssb("0.01", 2, joins_scheme);
  size_t dropped = 0;
  for (const data::TableSchema& table : keys->schema().tables)
    for (const data::ColumnSchema& c : table.columns) {
      auto a = column(*keys, table.name, c.name), b = column(*joins, table.name, c.name);
      ASSERT_TRUE(*a->data == *b->data) << c.name;
      EXPECT_FALSE(b->is_foreign_key) << c.name;
      dropped += a->is_foreign_key;
    }
  EXPECT_EQ(dropped, 5u);
  for (const data::TableSchema& table : joins->schema().tables)
    for (const data::ColumnSchema& c : table.columns) EXPECT_FALSE(c.is_foreign_key()) << c.name;
}

TEST(Ssb, EveryColumnIsThereAndKeysHold) {
  auto source = open_ssb("0.01");
  for (const data::TableSchema& table : source->schema().tables) {
    for (const data::ColumnSchema& c : table.columns) {
      auto data = column(*source, table.name, c.name);
      EXPECT_EQ(data->rows, *source->rows(table.name)) << c.name;
      EXPECT_EQ(data->type, c.type) << c.name;
      if (!table.primary.empty() && table.primary[0] == c.name) {
        EXPECT_TRUE(data->statistics.unique) << c.name;
      }
      if (!c.is_foreign_key()) continue;
      auto key = column(*source, c.foreign_table, c.foreign_key);
      for (uint64_t row = 0; row < data->rows; ++row)
        ASSERT_EQ(key->as<int32_t>()[data->foreign_row(row)], data->as<int32_t>()[row])
            << c.name << " row " << row;
    }
  }
}

TEST(Ssb, DoesNotDependOnThreads) {
  auto one = open_ssb("0.01", 1), four = open_ssb("0.01", 4);
  for (const data::TableSchema& table : one->schema().tables)
    for (const data::ColumnSchema& c : table.columns) {
      auto a = column(*one, table.name, c.name), b = column(*four, table.name, c.name);
      ASSERT_TRUE(*a->data == *b->data) << c.name;
      if (a->dictionary) {
        ASSERT_EQ(a->dictionary->values, b->dictionary->values) << c.name;
      }
      if (a->pad) {
        ASSERT_TRUE(*a->pad == *b->pad) << c.name;
      }
    }
}

TEST(Ssb, SharesLinesWithTpch) {
  auto ssb = open_ssb("0.01");
  auto tpch = tpch::open_source("tpch:0.01", {.threads = 2, .progress = false});
  ASSERT_TRUE(tpch);
  for (const auto& [ours, theirs] : {std::pair{"lo_quantity", "l_quantity"},
                                     {"lo_linenumber", "l_linenumber"},
                                     {"lo_orderkey", "l_orderkey"}}) {
    auto a = column(*ssb, "lineorder", ours), b = column(**tpch, "lineitem", theirs);
    ASSERT_EQ(a->rows, b->rows);
    for (uint64_t row = 0; row < a->rows; ++row)
      ASSERT_EQ(a->as<int32_t>()[row], b->type == hir::BasicType::f64
                                           ? static_cast<int32_t>(b->as<double>()[row])
                                           : b->as<int32_t>()[row])
          << ours << " row " << row;
  }
}

TEST(Ssb, ComputesMoneyInWholeCents) {
  auto source = open_ssb("0.01");
  auto values = [&](const char* name) { return column(*source, "lineorder", name); };
  auto price = values("lo_extendedprice"), quantity = values("lo_quantity"),
       discount = values("lo_discount"), revenue = values("lo_revenue"),
       cost = values("lo_supplycost"), part = values("lo_partkey"), tax = values("lo_tax"),
       total = values("lo_ordtotalprice"), line = values("lo_linenumber");
  auto at = [](const auto& c, uint64_t row) { return int64_t{c->template as<int32_t>()[row]}; };
  for (uint64_t row = 0, first = 0; row < price->rows; ++row) {
    const int64_t key = at(part, row), unit = 90000 + key / 10 % 20001 + key % 1000 * 100;
    ASSERT_EQ(at(price, row), unit * at(quantity, row)) << row;
    ASSERT_EQ(at(revenue, row), at(price, row) * (100 - at(discount, row)) / 100) << row;
    ASSERT_EQ(at(cost, row), 6 * unit / 10) << row;
    if (at(line, row) == 1) first = row;
    if (row + 1 < price->rows && at(line, row + 1) != 1) continue;
    int64_t sum = 0;
    for (uint64_t i = first; i <= row; ++i)
      sum += at(price, i) * (100 - at(discount, i)) / 100 * (100 + at(tax, i)) / 100;
    for (uint64_t i = first; i <= row; ++i) ASSERT_EQ(at(total, i), sum) << i;
  }
}

TEST(Ssb, HasTheTextsOfTheBenchmark) {
  auto source = open_ssb("0.01");
  auto text = [&](const char* table, const char* name, uint64_t row) {
    return std::string(column(*source, table, name)->text_at(row));
  };
  auto number = [&](const char* name, uint64_t row) {
    return column(*source, "date", name)->as<int32_t>()[row];
  };
  EXPECT_EQ(text("date", "d_date", 0), "January 1, 1992");
  EXPECT_EQ(text("date", "d_dayofweek", 0), "Thursday");  // it was a Wednesday
  EXPECT_EQ(text("date", "d_yearmonth", 2555), "Dec1998");
  EXPECT_EQ(text("date", "d_sellingseason", 2555), "Christmas");
  EXPECT_EQ(number("d_datekey", 0), 19920101);
  EXPECT_EQ(number("d_datekey", 2555), 19981230);
  EXPECT_EQ(number("d_datekey", 59), 19920229);
  EXPECT_EQ(number("d_daynuminyear", 2555), 364);
  EXPECT_EQ(number("d_weeknuminyear", 40), 41 / 7 + 1);
  EXPECT_EQ(number("d_daynuminweek", 0), 5);
  auto flag = [&](const char* name, uint64_t row) {
    return column(*source, "date", name)->as<uint8_t>()[row];
  };
  EXPECT_TRUE(flag("d_holidayfl", 0) && flag("d_weekdayfl", 0) && flag("d_lastdayinmonthfl", 0));
  EXPECT_TRUE(!flag("d_lastdayinmonthfl", 59) && flag("d_lastdayinweekfl", 58));
  // A nation's cities begin with nine letters of it; a region has its nations.
  auto city = column(*source, "customer", "c_city"),
       nation = column(*source, "customer", "c_nation");
  for (uint64_t row = 0; row < city->rows; ++row) {
    const std::string c(city->text_at(row)), n = fmt::format("{:<9}", nation->text_at(row));
    ASSERT_EQ(c.size(), 10u);
    ASSERT_EQ(c.substr(0, 9), n.substr(0, 9));
  }
  // Brands are in their category, categories of their maker.
  for (uint64_t row = 0; row < 2000; ++row) {
    const std::string maker = text("part", "p_mfgr", row),
                      category = text("part", "p_category", row);
    ASSERT_TRUE(category.starts_with(maker)) << category;
    ASSERT_TRUE(text("part", "p_brand1", row).starts_with(category));
  }
  EXPECT_TRUE(text("part", "p_name", 0).find(' ') != std::string::npos);
  std::set<std::string> addresses;
  for (uint64_t row = 0; row < 300; ++row) addresses.insert(text("customer", "c_address", row));
  EXPECT_EQ(addresses.size(), 300u);
}

TEST(Ssb, NoScaleIsWrongUsage) {
  for (const char* scale : {"", "0", "-1", "x", "1x", "30000"}) {
    auto source = data::open_source({.data = fmt::format("ssb:{}", scale)}, {&scheme, 1}, {});
    ASSERT_FALSE(source) << scale;
    EXPECT_EQ(source.error().fault, Fault::usage) << scale;
    EXPECT_NE(source.error().message.find("such as ssb:0.01"), std::string::npos);
  }
}

// Which rows of a table satisfy a condition, by row.
class Chosen {
 public:
  Chosen(data::Source& source, const char* table) : source_(source), table_(table) {
    rows_.assign(*source.rows(table), true);
  }
  Chosen& number(const char* name, int32_t low, int32_t high) {
    auto c = column(source_, table_, name);
    for (size_t i = 0; i < rows_.size(); ++i)
      rows_[i] = rows_[i] && c->as<int32_t>()[i] >= low && c->as<int32_t>()[i] <= high;
    return *this;
  }
  Chosen& text(const char* name, const std::string& low, const std::string& high) {
    auto c = column(source_, table_, name);
    for (size_t i = 0; i < rows_.size(); ++i)
      rows_[i] = rows_[i] && c->text_at(i) >= low && c->text_at(i) <= high;
    return *this;
  }
  Chosen& text(const char* name, const std::set<std::string, std::less<>>& values) {
    auto c = column(source_, table_, name);
    for (size_t i = 0; i < rows_.size(); ++i) rows_[i] = rows_[i] && values.contains(c->text_at(i));
    return *this;
  }
  // Facts whose row of the dimension is chosen.
  Chosen& through(const char* key, const Chosen& dimension) {
    auto c = column(source_, table_, key);
    for (size_t i = 0; i < rows_.size(); ++i)
      rows_[i] = rows_[i] && dimension.rows_[c->foreign_row(i)];
    return *this;
  }
  double share() const {
    return static_cast<double>(std::count(rows_.begin(), rows_.end(), true)) /
           static_cast<double>(rows_.size());
  }

 private:
  data::Source& source_;
  const char* table_;
  std::vector<bool> rows_;
};

// At scale 1 each query selects rows, and about as many as the paper's filter factors say.
TEST(Ssb, QueriesSelectWhatThePaperSays) {
  auto source = open_ssb("1", 0);
  data::Source& s = *source;
  auto facts = [&] { return Chosen(s, "lineorder"); };
  auto dates = [&](const char* name, int32_t low, int32_t high) {
    return Chosen(s, "date").number(name, low, high);
  };
  auto of = [&](const char* table, const char* name, std::set<std::string, std::less<>> values) {
    return Chosen(s, table).text(name, values);
  };
  const std::set<std::string, std::less<>> cities = {"UNITED KI1", "UNITED KI5"};
  auto flight1 = [&](Chosen date, int d0, int d1, int q0, int q1) {
    return facts()
        .number("lo_discount", d0, d1)
        .number("lo_quantity", q0, q1)
        .through("lo_orderdate", date);
  };
  auto flight2 = [&](Chosen part, const char* region) {
    return facts()
        .through("lo_partkey", part)
        .through("lo_suppkey", of("supplier", "s_region", {region}));
  };
  auto flight3 = [&](const char* customer, const char* supplier,
                     std::set<std::string, std::less<>> values, Chosen date) {
    return facts()
        .through("lo_custkey", of("customer", customer, values))
        .through("lo_suppkey", of("supplier", supplier, values))
        .through("lo_orderdate", date);
  };
  auto flight4 = [&](Chosen supplier, Chosen part, Chosen date) {
    return facts()
        .through("lo_custkey", of("customer", "c_region", {"AMERICA"}))
        .through("lo_suppkey", supplier)
        .through("lo_partkey", part)
        .through("lo_orderdate", date);
  };
  const Chosen to_1997 = dates("d_year", 1992, 1997), late = dates("d_year", 1997, 1998),
               always = dates("d_year", 1992, 1998),
               america = of("supplier", "s_region", {"AMERICA"}),
               makers = of("part", "p_mfgr", {"MFGR#1", "MFGR#2"});
  struct Case {
    const char* query;
    double paper;
    Chosen rows;
  };
  const Case cases[] = {
      {"1.1", 0.0195, flight1(dates("d_year", 1993, 1993), 1, 3, 1, 24)},
      {"1.2", 0.00065, flight1(dates("d_yearmonthnum", 199401, 199401), 4, 6, 26, 35)},
      {"1.3", 0.00015,
       flight1(dates("d_year", 1994, 1994).number("d_weeknuminyear", 6, 6), 5, 7, 26, 35)},
      {"2.1", 0.008, flight2(of("part", "p_category", {"MFGR#12"}), "AMERICA")},
      {"2.2", 0.0016,
       flight2(Chosen(s, "part").text("p_brand1", "MFGR#2221", "MFGR#2228"), "ASIA")},
      {"2.3", 0.0002, flight2(of("part", "p_brand1", {"MFGR#2239"}), "EUROPE")},
      {"3.1", 0.034, flight3("c_region", "s_region", {"ASIA"}, to_1997)},
      {"3.2", 0.0014, flight3("c_nation", "s_nation", {"UNITED STATES"}, to_1997)},
      {"3.3", 0.000055, flight3("c_city", "s_city", cities, to_1997)},
      {"3.4", 0.00000076,
       flight3("c_city", "s_city", cities, of("date", "d_yearmonth", {"Dec1997"}))},
      {"4.1", 0.016, flight4(america, makers, always)},
      {"4.2", 0.0046, flight4(america, makers, late)},
      {"4.3", 0.000091,
       flight4(of("supplier", "s_nation", {"UNITED STATES"}), of("part", "p_category", {"MFGR#14"}),
               late)}};
  for (const Case& c : cases) {
    EXPECT_GT(c.rows.share(), 0) << c.query;
    const double slack = c.paper < 1e-5 ? 3 : 1.4;  // the rarest has five rows
    EXPECT_GT(c.rows.share(), c.paper / slack) << c.query;
    EXPECT_LT(c.rows.share(), c.paper * slack) << c.query;
  }
}

}  // namespace
}  // namespace rndn::ssb
