// The TPC-H programs on changed data and with changed parameters, where the effect on the answer is known or SQLite tells it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <map>
#include <numeric>
#include <random>

#include "libraries/base/system/files.h"
#include "runtime/data/tables.h"
#include "tests/queries/answers.h"
#include "tests/support/every_case.h"
#include "tpch/source.h"

namespace rndn::testing {
namespace {

constexpr double scale = 0.01;

std::string program_of(int query) {
  auto text = read_file(fmt::format("{}/tpch/queries/q{:02}.hir", RNDN_SOURCE_DIR, query));
  return text ? *text : "";
}
std::string sql_of(int query) {
  auto text = read_file(fmt::format("{}/tests/queries/sql/q{:02}.sql", RNDN_SOURCE_DIR, query));
  return text ? *text : "";
}

// Tables whose rows are a selection of those of other tables: row i of table t is row picks[t][i] there. A table without an entry is
// as it was. Row numbers of foreign keys follow the referenced rows; of a row that stands twice, to the first.
class PickedTables final : public reference::Tables {
 public:
  using Picks = std::map<std::string, std::vector<uint64_t>, std::less<>>;
  PickedTables(std::shared_ptr<data::Source> source, Picks picks) : base_(std::move(source)), picks_(std::move(picks)) {
    for (const auto& [table, rows] : picks_) {
      std::vector<uint64_t>& places = places_[table];
      places.resize(rows.empty() ? 0 : *std::max_element(rows.begin(), rows.end()) + 1);
      for (size_t i = rows.size(); i-- > 0;) places[rows[i]] = i;
    }
  }
  Result<void> open(std::string_view t) const override { return base_.open(t); }
  Result<std::vector<std::string>> column_names(std::string_view t) const override { return base_.column_names(t); }
  Result<uint64_t> rows(std::string_view t) const override {
    auto at = picks_.find(t);
    return at == picks_.end() ? base_.rows(t) : Result<uint64_t>(at->second.size());
  }
  Result<std::shared_ptr<const data::Column>> column(std::string_view t, std::string_view name) const override {
    Result<std::shared_ptr<const data::Column>> loaded = base_.column(t, name);
    return loaded ? picked(t, *loaded) : loaded;
  }
  Result<std::shared_ptr<const data::Column>> key_column(std::string_view t) const override {
    Result<std::shared_ptr<const data::Column>> loaded = base_.key_column(t);
    return loaded ? picked(t, *loaded) : loaded;
  }

 private:
  std::shared_ptr<const data::Column> picked(std::string_view table, std::shared_ptr<const data::Column> from) const {
    auto own = picks_.find(table);
    auto parent = from->is_foreign_key ? places_.find(from->foreign_table) : places_.end();
    if (own == picks_.end() && parent == places_.end()) return from;
    auto column = std::make_shared<data::Column>(*from);
    std::vector<uint64_t> rows;
    if (own != picks_.end()) {
      rows = own->second;
    } else {
      rows.resize(from->rows);
      std::iota(rows.begin(), rows.end(), 0);
    }
    column->rows = rows.size();
    column->data = std::make_shared<data::Bytes>(rows.size() * from->width);
    column->statistics = {};
    for (size_t i = 0; i < rows.size(); ++i)
      std::copy_n(from->data->data() + rows[i] * from->width, from->width, column->data->data() + i * from->width);
    if (from->is_foreign_key) {
      column->foreign_rows = std::make_shared<data::Bytes>(rows.size() * sizeof(int32_t));
      auto* out = reinterpret_cast<int32_t*>(column->foreign_rows->data());
      for (size_t i = 0; i < rows.size(); ++i) {
        uint64_t row = from->foreign_row(rows[i]);
        out[i] = static_cast<int32_t>(parent == places_.end() ? row : parent->second[row]);
      }
    }
    return column;
  }

  data::SourceTables base_;
  Picks picks_;
  std::map<std::string, std::vector<uint64_t>, std::less<>> places_;
};

class Metamorphic : public ::testing::Test {
 protected:
  void SetUp() override {
    auto source = tpch::open_source(fmt::format("tpch:{}", scale));
    ASSERT_TRUE(source.ok()) << source.error().message;
    source_ = *source;
  }
  Rows answer(const std::string& program, const reference::Tables& tables) {
    Result<Rows> rows = run_program(program, source_->schema(), tables);
    EXPECT_TRUE(rows.ok()) << rows.error().message << "\n" << program;
    return rows ? *rows : Rows{};
  }
  Rows answer(int query) { return answer(program_of(query), data::SourceTables(source_)); }
  std::vector<uint64_t> all_rows(const std::string& table) {
    std::vector<uint64_t> rows(*source_->rows(table));
    std::iota(rows.begin(), rows.end(), 0);
    return rows;
  }
  std::vector<std::string> tables() {
    std::vector<std::string> names;
    for (const data::TableSchema& t : source_->schema().tables) names.push_back(t.name);
    return names;
  }
  std::shared_ptr<data::Source> source_;
};

// The order of rows means nothing to SQL: every table shuffled.
TEST_F(Metamorphic, ShuffledRowsGiveTheSameAnswers) {
  std::mt19937 random(1);
  PickedTables::Picks picks;
  for (const std::string& table : tables()) {
    picks[table] = all_rows(table);
    std::shuffle(picks[table].begin(), picks[table].end(), random);
  }
  PickedTables shuffled(source_, picks);
  for (int query = 1; query <= 22; ++query)
    EXPECT_EQ(difference(answer(program_of(query), shuffled), answer(query), sql_of(query)), "") << "query " << query;
}

// Every table cut in two by a random choice of rows, the second part appended to the first.
TEST_F(Metamorphic, TablesCutInTwoAndAppendedGiveTheSameAnswers) {
  std::mt19937 random(2);
  PickedTables::Picks picks;
  for (const std::string& table : tables()) {
    std::vector<uint64_t> second;
    for (uint64_t row : all_rows(table)) (random() % 3 ? picks[table] : second).push_back(row);
    picks[table].insert(picks[table].end(), second.begin(), second.end());
  }
  PickedTables appended(source_, picks);
  for (int query = 1; query <= 22; ++query)
    EXPECT_EQ(difference(answer(program_of(query), appended), answer(query), sql_of(query)), "") << "query " << query;
}

// Every row of lineitem twice: sums and counts over them double, means, shares, minima and existence stay. Queries 18 and 20 compare
// such a sum with a constant or another table: no simple effect.
TEST_F(Metamorphic, DoubledLineitemsDoubleSumsAndCounts) {
  PickedTables::Picks picks;
  for (uint64_t row : all_rows("lineitem")) picks["lineitem"].insert(picks["lineitem"].end(), 2, row);
  PickedTables doubled(source_, picks);
  const std::map<int, std::vector<std::string>> doubles = {
      {1, {"sum_qty", "sum_base_price", "sum_disc_price", "sum_charge", "count_order"}},
      {2, {}},
      {3, {"revenue"}},
      {4, {}},
      {5, {"revenue"}},
      {6, {"revenue"}},
      {7, {"revenue"}},
      {8, {}},
      {9, {"sum_profit"}},
      {10, {"revenue"}},
      {11, {}},
      {12, {"high_line_count", "low_line_count"}},
      {13, {}},
      {14, {}},
      {15, {"total_revenue"}},
      {16, {}},
      {17, {"avg_yearly"}},
      {19, {"revenue"}},
      {21, {"numwait"}},
      {22, {}}};
  for (const auto& [query, columns] : doubles) {
    Rows wanted = answer(query);
    size_t found = 0;
    for (size_t c = 0; c < wanted.names.size(); ++c) {
      if (std::find(columns.begin(), columns.end(), wanted.names[c]) == columns.end()) continue;
      ++found;
      for (auto& row : wanted.rows)
        std::visit(
            [](auto& x) {
              if constexpr (std::is_arithmetic_v<std::decay_t<decltype(x)>>) x *= 2;
            },
            row[c]);
    }
    ASSERT_EQ(found, columns.size()) << "query " << query;
    EXPECT_EQ(difference(answer(program_of(query), doubled), wanted, sql_of(query)), "") << "query " << query;
  }
}

// --- Random parameters, in both texts ------------------------------------------------------------------------------------------

struct Texts {  // a text literal of the query, and what may stand for it
  int query;
  const char* text;
  std::vector<const char*> choices;
};
const std::vector<const char*> regions = {"AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"};
const std::vector<const char*> nations = {"ALGERIA", "CHINA",          "FRANCE",  "IRAN",
                                          "PERU",    "UNITED KINGDOM", "VIETNAM", "KENYA"};
const std::vector<const char*> others = {"ARGENTINA", "CANADA", "EGYPT", "INDIA", "JAPAN", "ROMANIA", "UNITED STATES"};
const std::vector<const char*> brands = {"Brand#11", "Brand#24", "Brand#32", "Brand#43", "Brand#55"};
const Texts text_slots[] = {
    {2, "EUROPE", regions},
    {2, "%BRASS", {"%TIN", "%STEEL", "%COPPER", "%NICKEL", "STANDARD%"}},
    {3, "BUILDING", {"AUTOMOBILE", "FURNITURE", "HOUSEHOLD", "MACHINERY"}},
    {5, "ASIA", regions},
    {7, "FRANCE", nations},
    {7, "GERMANY", others},
    {8, "AMERICA", regions},
    {8, "BRAZIL", nations},
    {8, "ECONOMY ANODIZED STEEL", {"STANDARD BRUSHED TIN", "PROMO PLATED NICKEL", "SMALL POLISHED BRASS"}},
    {9, "%green%", {"%red%", "%azure%", "%lemon%", "a%"}},
    {11, "GERMANY", nations},
    {12, "MAIL", {"AIR", "FOB", "RAIL"}},
    {12, "SHIP", {"TRUCK", "REG AIR"}},
    {13, "%special%requests%", {"%pending%deposits%", "%express%", "%furious%accounts%"}},
    {14, "PROMO%", {"ECONOMY%", "%STEEL", "SMALL%BRASS"}},
    {16, "Brand#45", brands},
    {16, "MEDIUM POLISHED%", {"SMALL%", "PROMO BRUSHED%", "LARGE PLATED%"}},
    {17, "Brand#23", brands},
    {17, "MED BOX", {"LG CASE", "JUMBO PKG", "SM BAG"}},
    {19, "Brand#12", brands},
    {19, "Brand#34", {"Brand#13", "Brand#51"}},
    {20, "CANADA", nations},
    {20, "forest%", {"azure%", "b%", "%e%"}},
    {21, "SAUDI ARABIA", nations},
};
struct Number {  // a number: its text in either program, with {} for the value, and its range
  int query;
  const char *hir, *sql;
  int value, low, high;
};
const Number number_slots[] = {
    {2, ", {}:i32", "p_size = {}", 15, 1, 50},
    {6, ", {}:f64", "l_quantity < {}", 24, 5, 50},
    {18, ", {}:f64", "> {}", 300, 150, 310},
};

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) text.replace(at, from.size(), to);
}

// Moves every date of both texts by the same number of days.
void move_dates(std::string& hir, std::string& sql, int days) {
  std::map<std::string, std::string> moved;
  for (size_t at = 0; at + 10 <= hir.size(); ++at) {
    std::string word = hir.substr(at, 10);
    int year, month, day;
    char rest;
    if (word[4] != '-' || std::sscanf(word.c_str(), "%4d-%2d-%2d%c", &year, &month, &day, &rest) != 3) continue;
    std::tm parts{};
    parts.tm_year = year - 1900, parts.tm_mon = month - 1, parts.tm_mday = day;
    moved[word] = iso_date(timegm(&parts) / 86400 + days);
  }
  // Through names that are no dates, so that none is moved twice.
  for (auto* text : {&hir, &sql}) {
    for (const auto& [from, to] : moved) replace_all(*text, from, "<" + from.substr(0, 4) + "/" + from.substr(5) + ">");
    for (const auto& [from, to] : moved) replace_all(*text, "<" + from.substr(0, 4) + "/" + from.substr(5) + ">", to);
  }
}

TEST_F(Metamorphic, RandomParametersGiveTheAnswersOfSqlite) {
  SqliteOracle oracle(scale);
  data::SourceTables tables(source_);
  std::mt19937 random(3);
  size_t changed = 0, rows = 0;
  const int rounds = static_cast<int>(rndn::test::in_the_gate(1, 3));
  for (int round = 0; round < rounds; ++round)
    for (int query = 1; query <= 22; ++query) {
      std::string hir = program_of(query), sql = sql_of(query);
      const std::string original = hir;
      move_dates(hir, sql, static_cast<int>(random() % 241) - 120);
      for (const Texts& slot : text_slots) {
        if (slot.query != query) continue;
        std::string from = slot.text, to = slot.choices[random() % slot.choices.size()];
        for (const char* end : {":", ",", ")"}) replace_all(hir, "`" + from + end, "`\"" + from + "\"" + end);
        std::string before = hir;
        replace_all(hir, "\"" + from + "\"", "\"" + to + "\"");
        ASSERT_TRUE(to == from || hir != before) << "query " << query << ": " << from;
        replace_all(sql, "'" + from + "'", "'" + to + "'");
      }
      for (const Number& slot : number_slots) {
        if (slot.query != query) continue;
        int to = slot.low + static_cast<int>(random() % static_cast<unsigned>(slot.high - slot.low + 1));
        std::string before = sql;
        replace_all(hir, fmt::format(fmt::runtime(slot.hir), slot.value), fmt::format(fmt::runtime(slot.hir), to));
        replace_all(sql, fmt::format(fmt::runtime(slot.sql), slot.value), fmt::format(fmt::runtime(slot.sql), to));
        ASSERT_TRUE(sql != before || to == slot.value) << "query " << query << ": " << slot.sql;
      }
      changed += hir != original;
      Rows wanted = oracle.query(sql);
      rows += wanted.rows.size();
      EXPECT_EQ(difference(answer(hir, tables), wanted, sql), "") << "round " << round << ", query " << query << ":\n"
                                                                  << sql;
    }
  EXPECT_GE(changed, static_cast<size_t>(rounds) * 20);  // all but query 22, and by chance
  EXPECT_GT(rows, static_cast<size_t>(rounds) * 100);
}

}  // namespace
}  // namespace rndn::testing
