// DuckDB as the other side of a comparison: what goes in comes out.
#include "runtime/planner/duckdb.h"

#include <gtest/gtest.h>

#include "tests/planner/support.h"

namespace rndn::planner {
namespace {

class LoadedDuckdb : public testing::Test {
 protected:
  void SetUp() override {
    REQUIRE_PLANNER();
    auto opened = Duckdb::open(installed(), 2);
    ASSERT_TRUE(opened) << opened.error().message;
    duckdb_ = *std::move(opened);
  }
  std::unique_ptr<Duckdb> duckdb_;
};

TEST_F(LoadedDuckdb, TakesColumnsOfEveryKind) {
  constexpr uint64_t rows = 5000;  // three chunks
  std::vector<std::byte> validity(rows, std::byte{1});
  validity[4999] = std::byte{0};
  const std::string text = "a text of more than twelve bytes, which DuckDB keeps apart";
  std::vector<Duckdb::Column> columns = {
      {.name = "n",
       .type = {sql::TypeId::bigint},
       .numbers =
           [](uint64_t first, uint64_t count, void* to) {
             for (uint64_t i = 0; i < count; ++i)
               static_cast<int64_t*>(to)[i] = static_cast<int64_t>(first + i);
           }},
      {.name = "d",
       .type = {sql::TypeId::decimal, 9, 2},
       .numbers =
           [](uint64_t first, uint64_t count, void* to) {
             for (uint64_t i = 0; i < count; ++i)
               static_cast<int32_t*>(to)[i] = static_cast<int32_t>(first + i);
           },
       .validity = validity.data()},
      {.name = "s",
       .type = {sql::TypeId::varchar},
       .text = [&](uint64_t row) { return std::string_view(text).substr(0, row % text.size()); }},
      {.name = "unread", .type = {sql::TypeId::date}, .validity = nullptr}};
  auto loaded = duckdb_->load("a \"table", rows, columns);
  ASSERT_TRUE(loaded) << loaded.error().message;
  auto answer = duckdb_->run(
      "select count(*), sum(n), sum(d), count(d), sum(length(s)), count(unread) as none from \"a "
      "\"\"table\"");
  ASSERT_TRUE(answer) << answer.error().message;
  int64_t characters = 0;
  for (uint64_t row = 0; row < rows; ++row) characters += static_cast<int64_t>(row % text.size());
  EXPECT_EQ(answer->names.back(), "none");
  EXPECT_EQ(answer->rows,
            (std::vector<std::vector<std::string>>{
                {"5000", "12497500", "124925.01", "4999", std::to_string(characters), "0"}}));
  EXPECT_GT(answer->ms, 0);
  EXPECT_EQ(duckdb_->run("select null")->rows[0][0], "NULL");
}

TEST_F(LoadedDuckdb, SaysWhatItRefuses) {
  auto answer = duckdb_->run("select nothing");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().fault, Fault::input);
  ASSERT_TRUE(duckdb_->load("t", 0, {{.name = "n", .type = {sql::TypeId::bigint}}}));
  auto twice = duckdb_->load("t", 0, {{.name = "n", .type = {sql::TypeId::bigint}}});
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().fault, Fault::world);
}

TEST(LoadedDuckdbMissing, IsTheWorldsFault) {
  auto opened = Duckdb::open({.named = "python3"}, 1);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().fault, Fault::world);
  EXPECT_NE(opened.error().message.find("tools/sql-planner"), std::string::npos);
}

}  // namespace
}  // namespace rndn::planner
