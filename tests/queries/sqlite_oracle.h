// SQLite as an oracle: the TPC-H tables in memory, and the rows that a query's SQL text gives over them. Shares no code with rndn but the
// data generator.
#pragma once
#include <memory>
#include <string>
#include <variant>
#include <vector>

struct sqlite3;

namespace rndn::testing {

using Cell = std::variant<int64_t, double, std::string>;  // dates are ISO texts
struct Rows {
  std::vector<std::string> names;
  std::vector<std::vector<Cell>> rows;
};

class SqliteOracle {
 public:
  explicit SqliteOracle(double scale);  // fails the running test when SQLite does
  ~SqliteOracle();
  SqliteOracle(const SqliteOracle&) = delete;
  Rows query(const std::string& sql);

 private:
  void load(double scale);

  sqlite3* database_ = nullptr;
};

// "1998-09-02" from days since 1970-01-01, by the C library.
std::string iso_date(int64_t days);

}  // namespace rndn::testing
