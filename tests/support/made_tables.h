// Tables that a test puts together column by column, without files.
#pragma once
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/data/column.h"
#include "runtime/reference/reference.h"

namespace rndn::test {

class MadeTables final : public reference::Tables {
 public:
  void put(const std::string& table, const std::string& name, hir::BasicType type, const std::vector<int64_t>& values) {
    data::Column c = data::make_column(type, values.size());
    const uint32_t width = data::plain_width(type);
    for (size_t i = 0; i < values.size(); ++i) std::memcpy(c.data->data() + width * i, &values[i], width);
    add(table, name, std::move(c));
  }
  // A dictionary, or texts one by one.
  void put(const std::string& table, const std::string& name, bool dictionary, const std::vector<std::string>& values) {
    if (dictionary) {
      data::Column c = data::make_column(hir::BasicType::sym, values.size(), data::Encoding::dictionary, 1);
      std::vector<std::string> distinct;
      for (size_t i = 0; i < values.size(); ++i) {
        const auto at = std::find(distinct.begin(), distinct.end(), values[i]);
        (*c.data)[i] = static_cast<std::byte>(at - distinct.begin());
        if (at == distinct.end()) distinct.push_back(values[i]);
      }
      c.dictionary->values = std::move(distinct);
      return add(table, name, std::move(c));
    }
    data::Column c = data::make_column(hir::BasicType::str, values.size(), data::Encoding::text);
    std::string pad;
    for (size_t i = 0; i < values.size(); ++i) {
      const uint64_t handle = pad.size() << 24 | values[i].size();
      std::memcpy(c.data->data() + 8 * i, &handle, 8);
      pad += values[i];
    }
    c.pad = std::make_shared<data::Bytes>(data::Bytes::of(std::move(pad)));
    add(table, name, std::move(c));
  }
  void put(const std::string& table, const std::string& name, data::Column column) { add(table, name, std::move(column)); }
  Result<void> open(std::string_view) const override { return {}; }
  Result<std::vector<std::string>> column_names(std::string_view) const override { return std::vector<std::string>{}; }
  Result<uint64_t> rows(std::string_view table) const override {
    return tables_.find(table)->second.begin()->second->rows;
  }
  Result<std::shared_ptr<const data::Column>> column(std::string_view table, std::string_view name) const override {
    return tables_.find(table)->second.find(name)->second;
  }
  bool is_loaded(std::string_view, std::string_view) const override { return true; }
  Result<std::shared_ptr<const data::Column>> key_column(std::string_view) const override {
    return input_error("there are no keys");
  }

 private:
  void add(const std::string& table, const std::string& name, data::Column column) {
    data::compute_statistics(column);
    tables_[table][name] = std::make_shared<const data::Column>(std::move(column));
  }
  std::map<std::string, std::map<std::string, std::shared_ptr<const data::Column>, std::less<>>, std::less<>> tables_;
};

}  // namespace rndn::test
