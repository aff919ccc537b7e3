// Keys of tables. Private to this folder; find_foreign_rows is in source.h.
#pragma once
#include <cstdint>
#include <span>

#include "runtime/data/source.h"

namespace rndn::data {

inline constexpr uint64_t no_row = UINT64_MAX;

// The first row whose values in these columns, of equal length, stand in a row above it; or no_row.
uint64_t first_repeated(std::span<const Column* const> key);
// The first row without a value, or no_row.
uint64_t first_missing(const Column& column);
// The value as a message shows it.
std::string value_text(const Column& column, uint64_t row);

}  // namespace rndn::data
