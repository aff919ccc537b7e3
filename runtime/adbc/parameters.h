// Bound rows as values in SQL: the planner binds none, so that each row is a text of its own.
//
//   ASSIGN_OR_RETURN(Parameters rows, Parameters::take(std::move(stream)));
//   rows.literals(0);                       // {"CAST('1' AS BIGINT)", "'a'"}
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/sql/catalog.h"
#include "libraries/base/errors/result.h"
#include "runtime/data/arrow.h"
#include "runtime/data/value.h"

namespace rndn::adbc {

class Parameters {
 public:
  static Result<Parameters> take(data::ArrowStream rows);
  uint64_t rows() const { return rows_; }
  size_t columns() const { return columns_.size(); }
  std::vector<std::string> literals(uint64_t row) const;
  std::vector<std::string> nulls() const;  // of their types

 private:
  struct Column {
    sql::Type type;
    data::Value values;
    std::shared_ptr<data::Bytes> validity;  // null: all are there
  };
  std::vector<Column> columns_;
  uint64_t rows_ = 0;
};

}  // namespace rndn::adbc
