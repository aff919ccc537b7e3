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
#include <span>
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
  // `shown`, if there is one, hears of columns while others are loaded (Source::columns).
  Result<bool> learn(const std::map<std::string, std::set<std::string>>& columns, const data::Shown& shown = {});
  // What is known of the columns before they are read, of all ranges of the table; they are not
  // loaded, and learn() still does it.
  void take_facts(const std::string& table, std::span<const std::string> columns,
                  std::span<const data::RowRange> ranges);
  const data::Source* source() const { return source_.get(); }  // null: no tables

 private:
  void add(const data::TableSchema& table);

  std::shared_ptr<data::Source> source_;
  sql::Catalog catalog_;
  std::map<std::string, std::set<std::string>> known_;
};

}  // namespace rndn::runtime
