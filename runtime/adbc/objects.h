// What ADBC's catalog calls answer, in the forms that the specification has for them: one catalog
// `rndn` with one schema `main`, in it tables and views. Patterns are LIKE's (% and _); null: all.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/adbc/adbc_abi.h"
#include "runtime/session/session.h"

namespace rndn::adbc {

// The codes that are known among these; none: all of them.
ArrowArrayStream info(std::span<const uint32_t> codes);
ArrowArrayStream table_types();
ArrowArrayStream statistic_names();

struct Filter {
  const char *catalog = nullptr, *schema = nullptr, *table = nullptr, *column = nullptr;
  std::optional<std::vector<std::string>> types = {};  // "TABLE", "VIEW"
};
// Depth as ADBC has it: 0 columns, 1 catalogs, 2 schemas, 3 tables.
Result<ArrowArrayStream> objects(runtime::Session& session, int depth, const Filter& filter);
// Rows, and of columns least and greatest values, distinct ones and missing ones. `at_hand`: of what
// is loaded; else columns are loaded for it.
Result<ArrowArrayStream> statistics(runtime::Session& session, const Filter& filter, bool at_hand);
// The columns of a table or a view; none: there is no such.
Result<std::optional<std::vector<sql::ResultColumn>>> table_columns(runtime::Session& session,
                                                                    const std::string& name);

}  // namespace rndn::adbc
