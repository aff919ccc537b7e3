#include "tpch/source.h"

#include <charconv>

#include "tpch/generate.h"
#include "tpch/text_pool.h"

namespace rndn::tpch {
namespace {

class TpchLoader : public data::TableLoader {
 public:
  TpchLoader(double scale, const data::SourceOptions& options)
      : scale_(scale), options_(options), schema_(tpch::schema()) {}

  const data::Schema& schema() const override { return schema_; }

  bool keys_hold(size_t) const override { return true; }

  Result<uint64_t> rows(size_t table) override { return row_count(table_at(table), scale_); }

  std::optional<uint64_t> rows_at_hand(size_t table) const override { return row_count(table_at(table), scale_); }

  Result<std::vector<data::Column>> load(size_t table, std::span<const size_t> columns) override {
    std::vector<std::string> names;
    for (size_t column : columns) {
      names.push_back(schema_.tables[table].columns[column].name);
      // The pool stays for the comments of other tables.
      if (!pool_ && names.back().ends_with("_comment")) pool_ = TextPool::get(options_.threads);
    }
    return generate_columns(table_at(table), names, scale_, options_.threads, options_.progress);
  }

  std::string fingerprint(size_t table, size_t column) const override {
    return fmt::format("tpch 1 scale {} {}", scale_, schema_.tables[table].columns[column].name);
  }

  std::string describe(size_t table, size_t column, uint64_t row) override {
    return fmt::format("tpch:{}: {}.{}, row {}", scale_, schema_.tables[table].name,
                       schema_.tables[table].columns[column].name, row);
  }

 private:
  Table table_at(size_t position) const {
    Table table;
    CHECK(find_table(schema_.tables[position].name, table));
    return table;
  }

  const double scale_;
  const data::SourceOptions options_;
  const data::Schema schema_;
  std::shared_ptr<const TextPool> pool_;
};

Result<double> parse_scale(std::string_view number) {
  double scale = 0;
  auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), scale);
  if (error != std::errc() || end != number.data() + number.size() || !(scale > 0) || !(scale < 30000))
    return usage_error("`tpch:{}`: the scale factor must be a number above 0 and below 30000, such as tpch:0.01",
                       number);
  return scale;
}

Result<std::unique_ptr<data::TableLoader>> open(std::string_view what, const data::SourceOptions& options) {
  ASSIGN_OR_RETURN(double scale, parse_scale(what));
  return std::unique_ptr<data::TableLoader>(std::make_unique<TpchLoader>(scale, options));
}

Result<data::Schema> schema_of(std::string_view what) {
  RETURN_IF_ERROR(parse_scale(what));
  return schema();
}

}  // namespace

const data::Scheme scheme = {.name = "tpch", .form = "tpch:SF", .open = open, .schema = schema_of};

data::Schema schema() {
  data::Schema schema;
#define TABLE(n) schema.tables.push_back({.name = #n, .file = #n ".tbl"});
#define COLUMN(n, t) schema.tables.back().columns.push_back({.name = #n, .type = hir::BasicType::t});
#define MONEY(n)                          \
  schema.tables.back().columns.push_back( \
      {.name = #n, .type = hir::BasicType::f64, .decimal = data::Decimal{.precision = 15, .scale = 2}});
#define KEY(n, t) COLUMN(n, t) schema.tables.back().primary.push_back(#n);
#define FOREIGN(n, t, to, key)            \
  schema.tables.back().columns.push_back( \
      {.name = #n, .type = hir::BasicType::t, .foreign_table = #to, .foreign_key = #key});
#include "tpch/schema.def"
#undef TABLE
#undef COLUMN
#undef MONEY
#undef KEY
#undef FOREIGN
  return schema;
}

Result<std::shared_ptr<data::Source>> open_source(std::string_view text, const data::SourceOptions& options) {
  return data::open_source({.data = std::string(text)}, {&scheme, 1}, options);
}

}  // namespace rndn::tpch
