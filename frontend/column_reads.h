// Which columns of which tables main reads. In: a program; what is said is that of literal names,
// in the order of the statements. Cost: linear in main.
#pragma once
#include <string>
#include <vector>

#include "frontend/ir.h"

namespace rndn::hir {

struct ColumnRead {
  VariableId to;          // what the column, or whether its values are there, is assigned to
  bool validity = false;  // column_valid
  uint32_t table = 0;     // of ColumnReads::tables
  std::string column;
};
struct ColumnReads {
  struct Table {
    std::string name;      // or path
    bool is_file = false;  // load_csv
  };
  std::vector<Table> tables;  // one per load
  std::vector<ColumnRead> columns;
};
ColumnReads column_reads(const Program& program);

}  // namespace rndn::hir
