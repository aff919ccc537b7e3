#include "tpch/source.h"

#include <algorithm>
#include <charconv>

#include "tpch/generate.h"
#include "tpch/text_pool.h"

namespace rndn::tpch {
namespace {

class Loader : public data::TableLoader {
 public:
  Loader(Generator generator, double scale) : generator_(std::move(generator)), scale_(scale) {}

  const data::Schema& schema() const override { return generator_.schema; }
  bool keys_hold(size_t) const override { return true; }
  Result<uint64_t> rows(size_t table) override { return generator_.rows(name(table)); }
  std::optional<uint64_t> rows_at_hand(size_t table) const override { return generator_.rows(name(table)); }

  Result<std::vector<data::Column>> load(size_t table, std::span<const size_t> columns) override {
    std::vector<std::string> names;
    for (size_t c : columns) names.push_back(column(table, c));
    return generator_.columns(name(table), names);
  }
  std::string fingerprint(size_t table, size_t c) const override {
    return fmt::format("{} 1 scale {} {}", generator_.name, scale_, column(table, c));
  }
  std::string describe(size_t table, size_t c, uint64_t row) override {
    return fmt::format("{}:{}: {}.{}, row {}", generator_.name, scale_, name(table), column(table, c), row);
  }

 private:
  const std::string& name(size_t table) const { return generator_.schema.tables[table].name; }
  const std::string& column(size_t table, size_t c) const { return generator_.schema.tables[table].columns[c].name; }

  const Generator generator_;
  const double scale_;
};

Table table_of(const std::string& name) {
  Table table;
  CHECK(find_table(name, table));
  return table;
}

Result<std::unique_ptr<data::TableLoader>> open(std::string_view what, const data::SourceOptions& options) {
  ASSIGN_OR_RETURN(double scale, parse_scale("tpch", what));
  // The pool stays for the comments of other tables.
  auto columns = [scale, options, pool = std::shared_ptr<const TextPool>()](
                     const std::string& table, std::span<const std::string> names) mutable {
    auto is_comment = [](const std::string& name) { return name.ends_with("_comment"); };
    if (!pool && std::any_of(names.begin(), names.end(), is_comment)) pool = TextPool::get(options.threads);
    return generate_columns(table_of(table), names, scale, options.threads, options.progress);
  };
  auto rows = [scale](const std::string& table) { return row_count(table_of(table), scale); };
  return make_loader({.name = "tpch", .schema = schema(), .rows = rows, .columns = columns}, scale);
}

Result<data::Schema> schema_of(std::string_view what) {
  RETURN_IF_ERROR(parse_scale("tpch", what));
  return schema();
}

}  // namespace

const data::Scheme scheme = {.name = "tpch", .form = "tpch:SF", .open = open, .schema = schema_of};

std::unique_ptr<data::TableLoader> make_loader(Generator generator, double scale) {
  return std::make_unique<Loader>(std::move(generator), scale);
}

Result<double> parse_scale(std::string_view scheme, std::string_view number) {
  double scale = 0;
  auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), scale);
  if (error != std::errc() || end != number.data() + number.size() || !(scale > 0) || !(scale < 30000))
    return usage_error("`{0}:{1}`: the scale factor must be a number above 0 and below 30000, such as {0}:0.01",
                       scheme, number);
  return scale;
}

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
