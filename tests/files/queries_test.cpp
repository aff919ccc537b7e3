// Files in SQL: named by a query, called for, written, changed between queries, and made tables of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>

#include "libraries/base/system/files.h"
#include "runtime/files/files.h"
#include "runtime/session/session.h"
#include "tests/planner/support.h"

namespace rndn::runtime {
namespace {

using planner::installed;
using planner::installed_folder;
using testing::HasSubstr;
namespace fs = std::filesystem;

class FileQueries : public testing::Test {
 protected:
  void SetUp() override {
    REQUIRE_PLANNER();
    folder_ = testing::TempDir() + "rndn_file_queries_" + std::to_string(getpid()) + "/";
    fs::create_directories(folder_);
    auto device = DeviceChoice::start("cpu", "", [](const std::string&) {});
    ASSERT_TRUE(device) << device.error().message;
    session_.emplace(nullptr, *std::move(device),
                     SessionOptions{.file_cache = "",
                                    .planner = planner::installed(),
                                    .say = [this](const std::string& text) { said_ += text; }});
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  // $ is the folder. The result as CSV, or what was said.
  std::string run(std::string text) {
    for (size_t at; (at = text.find('$')) != text.npos;) text.replace(at, 1, folder_);
    said_.clear();
    std::string all;
    for (const NamedSource& statement : split_sql("q", "<q>", text)) {
      auto outcome = session_->run(statement, {});
      if (!outcome) return said_ + outcome.error().message;
      auto printed = print(*outcome, Format::csv);
      if (!printed) return printed.error().message;
      all += *printed;
    }
    std::erase(all, '\r');
    return all;
  }

  std::string folder_, said_;
  std::optional<Session> session_;
};

TEST_F(FileQueries, WriteAndReadEveryKind) {
  EXPECT_EQ(run("COPY (SELECT 1 AS a, 'x' AS b UNION ALL SELECT 2, NULL) TO '$t.parquet'"), "");
  EXPECT_EQ(run("COPY (SELECT * FROM '$t.parquet') TO '$t.csv';"
                "COPY (SELECT * FROM '$t.parquet') TO '$t.jsonl';"
                "COPY (SELECT * FROM '$t.parquet') TO '$t.csv.gz' (COMPRESSION gzip)"),
            "");
  for (const char* file : {"t.parquet", "t.csv", "t.jsonl", "t.csv.gz"})
    EXPECT_EQ(run(fmt::format("SELECT a, b FROM '${}' ORDER BY a", file)), "a,b\n1,x\n2,\n")
        << file;
  EXPECT_EQ(run("SELECT count(*) AS n FROM read_parquet('$t.parquet') p JOIN read_json('$t.jsonl') j "
                "ON p.a = j.a"),
            "n\n2\n");
  EXPECT_EQ(run("SELECT * FROM read_csv('$t.csv', header = false, all_varchar = true) LIMIT 1"),
            "column0,column1\na,b\n");
}

// As decimals, so that who reads them as such can: DuckDB's reader takes no exponent for one.
TEST_F(FileQueries, SmallDecimalsAreWrittenWithoutAnExponent) {
  const std::string rows = "SELECT CAST(-0.000000698288 AS DECIMAL(12,12)) AS a, CAST(0.0000005 AS DECIMAL(9,7)) AS \"b\"\"\", "
                           "CAST(1.5 AS DECIMAL(4,1)) AS c";
  for (const char* to : {"'$t.jsonl'", "'$t.jsonl' (FORMAT json)", "'$t.jsonl' (ARRAY false)"}) {
    EXPECT_EQ(run("COPY (" + rows + ") TO " + to), "");
    EXPECT_EQ(*read_file(folder_ + "t.jsonl"),
              "{\"a\":-0.000000698288,\"b\\\"\":0.0000005,\"c\":1.5}\n");
  }
  EXPECT_EQ(run("SELECT a FROM read_json('$t.jsonl', columns = {'a': 'DECIMAL(12,12)'})"), "a\n-0.000000698288\n");
  EXPECT_EQ(run("COPY (SELECT 'x' AS d, CAST(0.25 AS DECIMAL(9,8)) AS D) TO '$t.jsonl'"), "");
  EXPECT_EQ(*read_file(folder_ + "t.jsonl"), "{\"d\":\"x\",\"D_1\":0.25}\n") << "a name may come twice";
}

// A disk that is full is the world's fault, told in its words; nothing stays, and the next one goes.
TEST_F(FileQueries, FilesThatDoNotFit) {
  std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit before {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  for (const char* file : {"t.parquet", "t.csv", "t.jsonl", "t.csv.gz", "t.arrow", "t.arrows"}) {
    const std::string path = folder_ + file, copy = "COPY (SELECT x * 12345677 % 1000003 AS x FROM "
                                                    "range(20000) AS r(x)) TO '" + path + "'";
    const struct rlimit little {2000, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &little);
    const auto full = session_->run(split_sql("q", "<q>", copy).at(0), {});
    setrlimit(RLIMIT_FSIZE, &before);
    ASSERT_FALSE(full) << file;
    EXPECT_EQ(full.error().message, "cannot write `" + path + "`: File too large");
    EXPECT_EQ(full.error().exit_code(), 3) << file;
    EXPECT_TRUE(fs::is_empty(folder_)) << file;
    EXPECT_EQ(run(copy), "");
    EXPECT_GT(fs::file_size(path), 2000u);
    fs::remove(path);
  }
}

TEST_F(FileQueries, AFileThatHasChangedIsReadAgain) {
  run("COPY (SELECT 1 AS a) TO '$t.parquet'");
  EXPECT_EQ(run("SELECT sum(a) AS s FROM '$t.parquet'"), "s\n1\n");
  run("COPY (SELECT 20 AS a UNION ALL SELECT 3) TO '$t.parquet'");
  EXPECT_EQ(run("SELECT sum(a) AS s FROM '$t.parquet'"), "s\n23\n");
}

TEST_F(FileQueries, PatternsFoldersAndCallsAreReadAgainWhenAFileIsNewOrHasChanged) {
  fs::create_directories(folder_ + "d");
  run("COPY (SELECT 1 AS a, 5 AS b) TO '$d/x.parquet'");
  run("COPY (SELECT 1 AS a, 5 AS b) TO '$d/x.csv'");
  const std::string from[] = {"'$d/*.parquet'", "read_parquet('$d/*.parquet')", "read_parquet(['$d/x.parquet'])",
                              "read_csv('$d/*.csv', header = true)", "read_csv('$d/x.csv', header = true)"};
  for (const std::string& f : from) EXPECT_EQ(run("SELECT sum(a) AS s FROM " + f), "s\n1\n") << f;
  run("COPY (SELECT 2 AS a, 7 AS b UNION ALL SELECT 3, 8) TO '$d/x.parquet'");
  run("COPY (SELECT 2 AS a, 7 AS b UNION ALL SELECT 3, 8) TO '$d/x.csv'");
  for (const std::string& f : from) {
    EXPECT_EQ(run("SELECT sum(b) AS s FROM " + f), "s\n15\n") << f << ": a column that was not read before";
    EXPECT_EQ(run("SELECT sum(a) AS s FROM " + f), "s\n5\n") << f;
  }
  run("COPY (SELECT 100 AS a, 0 AS b) TO '$d/y.parquet'");
  EXPECT_EQ(run("SELECT sum(a) AS s FROM '$d/*.parquet'"), "s\n105\n");
  EXPECT_EQ(run("SELECT sum(a) AS s FROM read_parquet('$d/*.parquet')"), "s\n105\n");
  EXPECT_EQ(run("SELECT sum(a) AS s FROM read_parquet(['$d/x.parquet'])"), "s\n5\n");
}

TEST_F(FileQueries, AFolderIsOfOneFormatAndAFunctionReadsItsOwn) {
  fs::create_directories(folder_ + "mix/sub");
  run("COPY (SELECT 1 AS a) TO '$mix/a.csv'; COPY (SELECT 2 AS a) TO '$mix/sub/b.parquet'");
  EXPECT_THAT(run("SELECT count(*) FROM '$mix/'"), HasSubstr("holds files of several formats"));
  run("COPY (SELECT 1 AS a) TO '$j.json'");
  EXPECT_EQ(run("SELECT * FROM '$j.json'"), "a\n1\n");
  EXPECT_NE(run("SELECT * FROM read_csv('$j.json')"), "a\n1\n");
}

TEST_F(FileQueries, TablesAreMadeReplacedAndDropped) {
  EXPECT_EQ(run("CREATE TABLE t AS SELECT 1 AS a UNION ALL SELECT 2; SELECT sum(a) AS s FROM t"),
            "s\n3\n");
  EXPECT_THAT(run("CREATE TABLE t AS SELECT 1 AS b"), HasSubstr("there is a table `t` already"));
  EXPECT_THAT(run("CREATE TABLE T AS SELECT 1 AS b"), HasSubstr("there is a table `T` already"));
  EXPECT_EQ(run("CREATE OR REPLACE TABLE t AS SELECT 7 AS b; SELECT * FROM t; COPY t TO '$u.csv'"),
            "b\n7\n");
  EXPECT_EQ(*read_file(folder_ + "u.csv"), "b\n7\n");
  EXPECT_EQ(run("DROP TABLE T"), "");
  EXPECT_THAT(run("SELECT * FROM t"), HasSubstr("there is no table `t`"));
  EXPECT_THAT(run("DROP TABLE t"), HasSubstr("there is no table `t`"));
}

TEST_F(FileQueries, WhatIsWrongStandsAtItsPlace) {
  EXPECT_THAT(run("SELECT 1 FROM 'no.parquet'"),
              HasSubstr("<q>:1:16: error: cannot read `no.parquet`: No such file or directory\n"
                        "  SELECT 1 FROM 'no.parquet'\n"
                        "                 ^~~~~~~~~~\n"));
  EXPECT_THAT(run("SELECT 1 FROM read_parquet('https://x.org/y.parquet')"),
              HasSubstr("`https://x.org/y.parquet` is not on this machine"));
  EXPECT_THAT(run("SELECT a, FROM read_csv('x.csv'"), HasSubstr("<q>:1:"));
  run("COPY (SELECT 1 AS a, '\\x01'::VARCHAR AS b) TO '$t.parquet'");
  EXPECT_THAT(run("SELECT c FROM '$t.parquet'"), HasSubstr("there is no column `c`"));
}

// A file that cannot be written leaves what was there, and the result is not lost in silence.
TEST_F(FileQueries, AFileIsWrittenWholeOrNotAtAll) {
  run("COPY (SELECT 1 AS a) TO '$t.csv'");
  EXPECT_THAT(run("COPY (SELECT 2 AS a) TO '$t.csv' (NONSENSE 3)"), HasSubstr("cannot write `"));
  EXPECT_EQ(*read_file(folder_ + "t.csv"), "a\n1\n");
  EXPECT_THAT(run("COPY (SELECT 2 AS a) TO '$none/t.csv'"), HasSubstr("none/t.csv"));
  EXPECT_THAT(run("COPY (SELECT 2 AS a) TO '$t.parquet' (PARTITION_BY (a))"), HasSubstr("partition_by"));
  EXPECT_EQ(run("COPY (SELECT date '2020-01-02' AS d) TO '$t.json' (DATEFORMAT '%d.%m.%Y')"), "");
  EXPECT_EQ(*read_file(folder_ + "t.json"), "{\"d\":\"02.01.2020\"}\n");
}

TEST_F(FileQueries, AreDescribedWithoutTheirRows) {
  ASSERT_TRUE(write_file(folder_ + "n.csv", "a,t\n1,2024-01-02 03:04:05.000000001\n").ok());
  const std::string read = "read_csv('$n.csv', types = {'t': 'TIMESTAMP_NS'})";
  EXPECT_EQ(run("DESCRIBE SELECT * FROM " + read),
            "column_name,column_type,key\na,BIGINT,\nt,TIMESTAMP,\n");
  EXPECT_THAT(run("SELECT * FROM " + read), HasSubstr("is no whole microsecond"));
  run("COPY (SELECT 1 AS a, 'x' AS b) TO '$t.parquet'");
  EXPECT_EQ(run("DESCRIBE '$t.parquet'"), "column_name,column_type,key\na,INTEGER,\nb,VARCHAR,\n");
  EXPECT_THAT(run("SUMMARIZE '$t.parquet'"), HasSubstr("\na,INTEGER,1,1,1,1,1,1\n"));
  EXPECT_THAT(run("DESCRIBE '$none.parquet'"), HasSubstr("none.parquet"));
}

TEST_F(FileQueries, AFileIsWrittenAsItsNameOrTheFormatSays) {
  EXPECT_THAT(run("COPY (SELECT 1 AS a) TO '$t.xlsx'"),
              HasSubstr("t.xlsx`: `.xlsx` tells no format; write (FORMAT csv), parquet, json or arrow"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "t.xlsx"));
  EXPECT_EQ(run("COPY (SELECT 1 AS a) TO '$t.xlsx' (FORMAT csv)"), "");
  EXPECT_EQ(*read_file(folder_ + "t.xlsx"), "a\n1\n");
  EXPECT_EQ(run("COPY (SELECT 1 AS a) TO '$t'"), "");
  EXPECT_EQ(*read_file(folder_ + "t"), "a\n1\n");
}

// What `rndn help sql` lists is taken.
TEST_F(FileQueries, OptionsThatAreListedAreTaken) {
  ASSERT_TRUE(write_file(folder_ + "o.csv", "a,b\n1,2.5\n2,3.5\n").ok());
  run("COPY (SELECT 1 AS a, 2.5 AS b) TO '$o.parquet'; COPY (SELECT 1 AS a, 2.5 AS b) TO '$o.json'");
  std::map<std::string, int> tried;
  for (const files::FileOption& option : files::file_options()) {
    const std::string of(option.of), value(option.value);
    const std::string kind = of.substr(of.find_first_of("_.") + 1);
    ++tried[of];
    const bool writes = of.starts_with("COPY");
    const std::string said =
        run(writes ? fmt::format("COPY (SELECT 1 AS a) TO '$w.{}' ({})", kind, value)
                   : fmt::format("SELECT count(*) FROM {}('$o.{}', {})", of, kind, value));
    EXPECT_TRUE(writes ? said.empty() : said.starts_with("count_star()\n")) << value << "\n" << said;
    EXPECT_FALSE(option.meaning.empty()) << value;
  }
  EXPECT_EQ(tried.size(), 6u);
}

}  // namespace
}  // namespace rndn::runtime
