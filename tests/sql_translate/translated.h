// Plans translated to HorseIR and run: what the tests of the translator share.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "frontend/sql/translate.h"
#include "runtime/data/source.h"
#include "runtime/engine.h"
#include "runtime/reference/reference.h"
#include "tests/queries/sqlite_oracle.h"

namespace rndn::testing {

// Tables of the source with the statistics of the columns that `plan` reads; money (f64) is
// DECIMAL(15,2).
Result<sql::Catalog> catalog_of(data::Source& source, const sql::Plan& plan);

// The program's results as SQL has them: decimals at their scale. A null is what the oracle reads
// for one.
Rows rows_of(const sql::Translation& translation, const reference::Value& table,
             const Cell& null = 0.0);

// Runs the program on the reference interpreter; a diagnostic of any kind is an error.
Result<Rows> run_on_reference(const sql::Translation& translation, const data::Schema& schema,
                              const reference::Tables& tables, const Cell& null = 0.0);

// The same on the simulator, without fallback to the interpreter for what belongs on the device.
// With `walked_again` it runs twice, and that gets the texts that the host read the second time;
// `kernels` gets what ran last.
Result<Rows> run_on_simulator(const sql::Translation& translation, const data::Schema& schema,
                              const reference::Tables& tables, std::string_view target,
                              const Cell& null = 0.0, uint64_t* walked_again = nullptr,
                              std::vector<runtime::KernelReport>* kernels = nullptr,
                              runtime::Encode encode = runtime::Encode::narrow);

}  // namespace rndn::testing
