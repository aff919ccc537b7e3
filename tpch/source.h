// `--data tpch:SF`: TPC-H generated in memory. Columns are generated on first use.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "libraries/base/errors/result.h"
#include "runtime/data/sources.h"

namespace rndn::tpch {

// The row of the register of sources. A scale factor that is no positive number is wrong usage.
extern const data::Scheme scheme;

// The tables as HorseIR programs load them (names, types and foreign keys of the language's specification).
data::Schema schema();

// What makes tables of a scale factor in memory, as a source has them; ssb/ is another one.
struct Generator {
  std::string_view name;  // of its scheme
  data::Schema schema;
  std::function<uint64_t(const std::string& table)> rows;
  std::function<Result<std::vector<data::Column>>(const std::string& table, std::span<const std::string> columns)>
      columns;
};
std::unique_ptr<data::TableLoader> make_loader(Generator generator, double scale);
// What follows the colon of `scheme`; no positive number is wrong usage.
Result<double> parse_scale(std::string_view scheme, std::string_view number);

// The source of `tpch:SF` alone, for tests and measurements.
Result<std::shared_ptr<data::Source>> open_source(std::string_view text, const data::SourceOptions& options = {});

}  // namespace rndn::tpch
