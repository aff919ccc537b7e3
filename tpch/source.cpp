#include "tpch/source.h"

#include <charconv>

#include "runtime/data/cache.h"
#include "tpch/generate.h"
#include "tpch/text_pool.h"

namespace rndn::tpch {
namespace {

constexpr std::string_view scheme = "tpch:";

class TpchLoader : public data::TableLoader {
 public:
  TpchLoader(double scale, const SourceOptions& options)
      : scale_(scale), options_(options), schema_(data::tpch_schema()) {}

  const data::Schema& schema() const override { return schema_; }

  Result<uint64_t> rows(size_t table) override { return row_count(table_at(table), scale_); }

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

  std::string describe(size_t table, size_t column, uint64_t row) const override {
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
  const SourceOptions options_;
  const data::Schema schema_;
  std::shared_ptr<const TextPool> pool_;
};

Result<double> parse_scale(std::string_view text) {
  std::string_view number = text.substr(scheme.size());
  double scale = 0;
  auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), scale);
  if (error != std::errc() || end != number.data() + number.size() || !(scale > 0) || !(scale < 30000))
    return usage_error("`{}`: the scale factor must be a number above 0 and below 30000, such as tpch:0.01", text);
  return scale;
}

}  // namespace

Result<std::shared_ptr<data::Source>> open_source(std::string_view text, const SourceOptions& options) {
  if (!text.starts_with(scheme))
    return data::open_folder(std::string(text),
                             {.threads = options.threads, .progress = options.progress, .cache = options.cache});
  ASSIGN_OR_RETURN(double scale, parse_scale(text));
  std::unique_ptr<data::TableLoader> loader = std::make_unique<TpchLoader>(scale, options);
  if (!options.cache.empty()) loader = data::cached(std::move(loader), options.cache);
  return std::make_shared<data::Source>(std::move(loader));
}

Result<data::Schema> open_schema(std::string_view text) {
  if (text.starts_with(scheme)) {
    RETURN_IF_ERROR(parse_scale(text));
    return data::tpch_schema();
  }
  ASSIGN_OR_RETURN(std::shared_ptr<data::Source> source, data::open_folder(std::string(text)));
  return source->schema();
}

}  // namespace rndn::tpch
