// For programs that read no table.
#pragma once
#include "runtime/reference/reference.h"

namespace rndn::test {

class NoTables final : public reference::Tables {
 public:
  Result<void> open(std::string_view) const override { return refused<void>(); }
  Result<std::vector<std::string>> column_names(std::string_view) const override {
    return refused<std::vector<std::string>>();
  }
  Result<uint64_t> rows(std::string_view) const override { return refused<uint64_t>(); }
  Result<std::shared_ptr<const data::Column>> column(std::string_view, std::string_view) const override {
    return refused<std::shared_ptr<const data::Column>>();
  }
  Result<std::shared_ptr<const data::Column>> key_column(std::string_view) const override {
    return refused<std::shared_ptr<const data::Column>>();
  }

 private:
  template <class T>
  static Result<T> refused() {
    return input_error("there are no tables");
  }
};

}  // namespace rndn::test
