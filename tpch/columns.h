// What the generator knows of every column: its table and what its numbers stand for. Expanded from columns.def.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "tpch/distributions.h"
#include "tpch/generate.h"

namespace rndn::tpch {

enum class ColumnId : uint32_t {
#define COLUMN(table, name, form) name,
#include "tpch/columns.def"
#undef COLUMN
};

// Every value is made as one 64-bit number; this says which text it is in a file.
enum class Form : uint8_t {
  integer,   // the number
  cents,     // 1234 is 12.34
  date,      // days since 1970-01-01
  flag,      // one character
  choice,    // position in `words`
  numbered,  // `prefix` and the number with at least `digits` digits
  phone,     // 12 digits: country 2, local numbers 3, 3, 4
  colors,    // five positions in part_colors, a byte each, the first in the low byte
  comment,   // a piece of the text pool: offset << 24 | length
  made,      // a piece of the chunk's own text: offset << 24 | length
};

struct ColumnInfo {
  Table table;
  std::string_view name;
  Form form;
  std::string_view prefix;                                   // numbered
  int digits = 0;                                            // numbered
  const std::span<const std::string_view>* words = nullptr;  // choice
};

const ColumnInfo& column_info(ColumnId id);
std::span<const ColumnId> columns_of(Table table);
inline bool is_text(Form form) { return form >= Form::choice; }

}  // namespace rndn::tpch
