// Tables of a few rows for the schema of tests/frontend/schema.h, made from the positions of rows: for programs that nobody wrote.
#pragma once
#include <vector>

#include "runtime/reference/reference.h"
#include "tests/frontend/schema.h"

namespace rndn::reference::testing {

class TinyTables final : public Tables {
 public:
  explicit TinyTables(uint64_t rows = 5) : row_count_(rows) {}

  Result<void> open(std::string_view t) const override {
    if (!hir::test_schema().has_table(t)) return input_error("unknown table `{}`", t);
    return {};
  }
  Result<std::vector<std::string>> column_names(std::string_view t) const override {
    std::vector<std::string> names;
    for (std::string_view name : hir::test_schema().column_names(t)) names.emplace_back(name);
    return names;
  }
  Result<uint64_t> rows(std::string_view) const override { return row_count_; }
  Result<std::shared_ptr<const data::Column>> column(std::string_view t, std::string_view name) const override {
    hir::SchemaView::Column known{};
    if (!hir::test_schema().find_column(t, name, known)) return input_error("unknown column `{}`", name);
    const bool text = hir::is_text(known.type);
    auto c = std::make_shared<data::Column>(data::make_column(
        known.type, row_count_, text ? data::Encoding::dictionary : data::Encoding::plain, text ? 1 : 0));
    if (text) c->dictionary->values = {"a", "b", "AIR"};
    for (uint64_t i = 0; i < row_count_; ++i) {
      std::byte* at = c->data->data() + i * c->width;
      if (text)
        *at = static_cast<std::byte>(i % 3);
      else if (known.type == hir::BasicType::f64)
        reinterpret_cast<double*>(at)[0] = 0.5 * static_cast<double>(i) - 1;
      else if (c->width == 1)
        *at = static_cast<std::byte>('A' + i % 2);
      else
        reinterpret_cast<int32_t*>(at)[0] = static_cast<int32_t>(i);
    }
    if (known.is_foreign_key) {
      c->is_foreign_key = true;
      c->foreign_table = known.foreign_table;
      c->foreign_rows = std::make_shared<data::Bytes>(row_count_ * 4);
      for (uint64_t i = 0; i < row_count_; ++i)
        reinterpret_cast<int32_t*>(c->foreign_rows->data())[i] = static_cast<int32_t>(i);
    }
    return std::shared_ptr<const data::Column>(c);
  }
  // The first column of every table counts up from 0: its key.
  Result<std::shared_ptr<const data::Column>> key_column(std::string_view t) const override {
    auto key = std::make_shared<data::Column>(data::make_column(hir::BasicType::i32, row_count_));
    for (uint64_t i = 0; i < row_count_; ++i) reinterpret_cast<int32_t*>(key->data->data())[i] = static_cast<int32_t>(i);
    (void)t;
    return std::shared_ptr<const data::Column>(key);
  }

 private:
  const uint64_t row_count_;
};

}  // namespace rndn::reference::testing
