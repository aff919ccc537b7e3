// The operators as free functions over the library of kernels, one file each. Private to this folder; sql.h says what they do.
#pragma once
#include "libraries/sql/library.h"
#include "libraries/sql/sql.h"

namespace rndn::sql {

// order.cpp
Result<Vector> order(Library& library, std::span<const Vector> columns, std::span<const bool> ascending,
                     Memory& memory);
Result<Groups> group(Library& library, std::span<const Vector> columns, Memory& memory);
Result<Vector> unique(Library& library, const Vector& column, Memory& memory);

}  // namespace rndn::sql
