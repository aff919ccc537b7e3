// `--data tpch:SF`: TPC-H generated in memory. Columns are generated on first use.
#pragma once
#include <memory>
#include <string_view>

#include "libraries/base/errors/result.h"
#include "runtime/data/sources.h"

namespace rndn::tpch {

// The row of the register of sources. A scale factor that is no positive number is wrong usage.
extern const data::Scheme scheme;

// The tables as HorseIR programs load them (names, types and foreign keys of the language's specification).
data::Schema schema();

// The source of `tpch:SF` alone, for tests and measurements.
Result<std::shared_ptr<data::Source>> open_source(std::string_view text, const data::SourceOptions& options = {});

}  // namespace rndn::tpch
