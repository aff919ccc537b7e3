// Results against what they should be, for --verify.
#pragma once
#include <string>

#include "libraries/base/errors/result.h"
#include "runtime/print_result.h"

namespace rndn::tools {

// What is expected of one cell: its text as a csv file holds it.
struct Expected {
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> rows;
};
// A csv file with a header line: fields apart by `|` when the header has one, else by commas (RFC 4180).
Result<Expected> parse_expected(std::string_view text, const std::string& name);
Expected expected_of(const runtime::Grid& grid);

// Empty when the grid is as expected: names, row count, rows as a multiset; floats to a relative error, everything else exactly.
// Else a sentence on the first difference.
// Rows in another order pass as well, since ties may be broken in any way; `reordered` then gets the first row that is elsewhere, from 1 (else 0).
std::string difference(const runtime::Grid& grid, const Expected& expected, uint64_t& reordered,
                       double relative = 1e-9);

}  // namespace rndn::tools
