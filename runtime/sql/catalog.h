// A data source as SQL sees it: names and SQL types of its tables, and the statistics of what
// queries read.
//
//   SqlCatalog tables(source);
//   tables.catalog();                                    // types; rows where they cost nothing
//   tables.learn({{"lineitem", {"l_shipdate"}}});        // loads the column, which a query is
//   about to read
//
// Statistics are facts of loaded columns (runtime/data/column.h); nothing is loaded for their sake
// alone. Distinct values are exact for keys and dictionaries; else the smallest bound that is
// known: the range of values, the rows of the table that a foreign key refers to, the rows of the
// column.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>

#include "frontend/sql/catalog.h"
#include "libraries/base/errors/result.h"
#include "runtime/data/source.h"

namespace rndn::runtime {

// The integer in SQL's scale that a stored 1 stands for: 1,000 for the milliseconds of `dt`.
int64_t sql_unit(hir::BasicType stored);

class SqlCatalog {
 public:
  // No source: no tables.
  explicit SqlCatalog(std::shared_ptr<data::Source> source);

  const sql::Catalog& catalog() const { return catalog_; }

  // Loads those of the columns that are not known yet, and their tables' rows. True: the catalog is
  // not what it was.
  // Another source with some of the tables, of which what is known stays, but not of `renewed`.
  void set_source(std::shared_ptr<data::Source> source, std::string_view renewed = {});
  Result<bool> learn(const std::map<std::string, std::set<std::string>>& columns);

 private:
  void add(const data::TableSchema& table);

  std::shared_ptr<data::Source> source_;
  sql::Catalog catalog_;
  std::map<std::string, std::set<std::string>> known_;
};

}  // namespace rndn::runtime
