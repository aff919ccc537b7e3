// SQLite as an oracle: the tables of a source in memory, and the rows that a query's SQL text gives over them. Shares no code with rndn but the
// data generator.
#pragma once
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "runtime/data/source.h"

struct sqlite3;

namespace rndn::testing {

using Cell = std::variant<int64_t, double, std::string>;  // dates are ISO texts
struct Rows {
  std::vector<std::string> names;
  std::vector<std::vector<Cell>> rows;
};

class SqliteOracle {
 public:
  // Fails the running test when SQLite does.
  explicit SqliteOracle(double scale);  // TPC-H
  // All tables, and indexes: "lineitem(l_orderkey)".
  SqliteOracle(data::Source& source, const std::vector<std::string>& indexes);
  ~SqliteOracle();
  SqliteOracle(const SqliteOracle&) = delete;
  Rows query(const std::string& sql);

 private:
  void load_tpch(double scale);
  void load(data::Source& source, const std::vector<std::string>& indexes);

  sqlite3* database_ = nullptr;
};

// "1998-09-02" from days since 1970-01-01, by the C library.
std::string iso_date(int64_t days);

}  // namespace rndn::testing
