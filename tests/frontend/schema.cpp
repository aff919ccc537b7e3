#include "tests/frontend/schema.h"

#include <algorithm>

namespace rndn::hir {

namespace {

class TestSchema final : public SchemaView {
 public:
  struct Row {
    std::string_view table, column;
    BasicType type;
    std::string_view foreign;
  };
  static constexpr Row rows[] = {
      {"lineitem", "l_orderkey", BasicType::i32, "orders"},
      {"lineitem", "l_quantity", BasicType::f64, ""},
      {"lineitem", "l_extendedprice", BasicType::f64, ""},
      {"lineitem", "l_discount", BasicType::f64, ""},
      {"lineitem", "l_linenumber", BasicType::i32, ""},
      {"lineitem", "l_returnflag", BasicType::character, ""},
      {"lineitem", "l_shipdate", BasicType::date, ""},
      {"lineitem", "l_shipmode", BasicType::sym, ""},
      {"lineitem", "l_comment", BasicType::str, ""},
      {"orders", "o_orderkey", BasicType::i32, ""},
      {"orders", "o_orderdate", BasicType::date, ""},
      {"orders", "o_totalprice", BasicType::f64, ""},
      {"orders", "o_orderstatus", BasicType::character, ""},
      {"nation", "n_nationkey", BasicType::i32, ""},
      {"nation", "n_name", BasicType::sym, ""},
      {"nation", "n_regionkey", BasicType::i32, "region"},
      {"region", "r_regionkey", BasicType::i32, ""},
      {"region", "r_name", BasicType::sym, ""},
      {"supplier", "s_nationkey", BasicType::i32, "nation"},
      {"supplier", "s_acctbal", BasicType::f64, ""},
  };
  bool has_table(std::string_view table) const override {
    return std::any_of(std::begin(rows), std::end(rows), [&](const Row& r) { return r.table == table; });
  }
  bool find_column(std::string_view table, std::string_view column, Column& out) const override {
    for (const Row& r : rows) {
      if (r.table != table || r.column != column) continue;
      out = {r.type, !r.foreign.empty(), r.foreign};
      return true;
    }
    return false;
  }
  std::vector<std::string_view> table_names() const override {
    std::vector<std::string_view> names;
    for (const Row& r : rows)
      if (names.empty() || names.back() != r.table) names.push_back(r.table);
    return names;
  }
  std::vector<std::string_view> column_names(std::string_view table) const override {
    std::vector<std::string_view> names;
    for (const Row& r : rows)
      if (r.table == table) names.push_back(r.column);
    return names;
  }
};

}  // namespace

const SchemaView& test_schema() {
  static const TestSchema schema;
  return schema;
}

}  // namespace rndn::hir
