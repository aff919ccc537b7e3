// Tables of which one has only a range of its rows, and some have columns that a program has made.
//
//   RangeTables tables(all);
//   tables.add("@1.r3", "@1.7", column_of(value));
//   tables.set_range("lineitem", 0, 1 << 20);     // what was asked for before it is in `gone`
//   program reads tables ...
//
// A range of a column shares the column's memory: numbers, codes of texts and rows that foreign
// keys refer to are cut; of texts without a dictionary the places are copied and the texts cut.
// Where the rows are in another order they are copied.
// Its statistics are those of the column, but for what only holds of all rows.
// Cost: constant, 8 bytes per text, or the copies. Not thread-safe.
#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/data/tables.h"

namespace rndn::runtime {

class RangeTables final : public data::Tables {
 public:
  using ColumnPtr = std::shared_ptr<const data::Column>;
  // A dictionary of more bytes is not that of a range: it has one of its own texts.
  RangeTables(const data::Tables& all, uint64_t most_text_bytes)
      : all_(all), most_text_bytes_(most_text_bytes) {}
  // A column that is no longer read; `texts`: nor what was made of its texts.
  struct Gone {
    ColumnPtr column;
    bool texts;
  };

  // A column beside those of the table, if there is one of that name; in place of an earlier one.
  // Gives the earlier one.
  ColumnPtr add(const std::string& table, const std::string& column, ColumnPtr values);
  std::vector<Gone> added() const;
  // Ranges are of the table's rows in this order. Their texts get a dictionary in byte order, which
  // groups and orders take as it is.
  void set_order(std::shared_ptr<const std::vector<uint32_t>> rows) { order_ = std::move(rows); }
  // From now on the table has these rows alone. Gives the parts that were made of the range before.
  std::vector<Gone> set_range(const std::string& table, uint64_t first, uint64_t rows);

  data::Files& files() const override { return all_.files(); }
  Result<void> open(std::string_view table) const override;
  Result<std::vector<std::string>> column_names(std::string_view table) const override;
  Result<uint64_t> rows(std::string_view table) const override;
  Result<ColumnPtr> column(std::string_view table, std::string_view column) const override;
  Result<ColumnPtr> part(std::string_view table, std::string_view column,
                         data::ColumnPart part) const override;
  Result<ColumnPtr> key_column(std::string_view table) const override {
    return all_.key_column(table);
  }
  Result<void> prefetch(std::string_view table,
                        std::span<const std::string> columns) const override;

 private:
  const ColumnPtr* added(std::string_view table, std::string_view column) const;
  ColumnPtr cut(std::string_view table, const ColumnPtr& column) const;

  const data::Tables& all_;
  const uint64_t most_text_bytes_;
  std::map<std::string, std::map<std::string, ColumnPtr, std::less<>>, std::less<>> added_;
  std::string table_;
  uint64_t first_ = 0, rows_ = 0;
  std::shared_ptr<const std::vector<uint32_t>> order_;  // null: as they lie
  struct Part {
    ColumnPtr all, part;
  };
  mutable std::map<const data::Column*, Part> parts_;  // of the range; by the whole column
  mutable std::map<const data::Column*, Part> here_;   // with order_: with_bytes_here, for all ranges
};

// The column with a dictionary of the texts that occur in it alone, in the same order; the column
// itself, where its own has no more bytes than these.
RangeTables::ColumnPtr with_own_texts(RangeTables::ColumnPtr column, uint64_t most_text_bytes);

// The column with its elements there: those still to come are made for this one alone (data/bytes.h).
RangeTables::ColumnPtr with_bytes_here(const RangeTables::ColumnPtr& column);

// These rows of a column, in this order.
RangeTables::ColumnPtr pick_rows(const data::Column& column, std::span<const uint32_t> rows);

// The column of a vector. Texts get a dictionary in the order of texts.
Result<std::shared_ptr<const data::Column>> column_of(const data::Value& vector);

}  // namespace rndn::runtime
