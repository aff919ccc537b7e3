// Which parts of an outlined program run as one fused operator. Private to this folder.
//
// group -> each_right(@index, v, values) -> each(@sum | @len | @min | @max | @avg) -> raze, where nothing else looks at the rows of the groups, is
// one aggregation (sql.h, Operators::aggregate), also with each(@unique) before each(@len): no list of rows is made, and the kernels that would reduce it get no code.
#pragma once
#include <string_view>
#include <vector>

#include "libraries/sql/sql.h"
#include "outliner/outliner.h"

namespace rndn::runtime {

// A group of main and the kernels that reduce its rows.
struct FusedGroup {
  hir::StatementId group{}, values{}, keys = none<hir::StatementId>();  // statements of main
  std::vector<hir::StatementId> launches;
  hir::StatementId
      at{};  // the operator runs before this one; its arguments exist then, and nothing has asked for its results
  hir::Operand columns;                             // of @group
  hir::VariableId first = none<hir::VariableId>();  // gets the keys; none: nobody does
  struct Reduction {
    sql::Reduce reduce{};
    hir::Operand values;                               // not for len
    hir::BasicType type{};                             // of the result
    hir::VariableId target = none<hir::VariableId>();  // none: the result is dropped
  };
  std::vector<Reduction> reductions;
};

struct Fusions {
  std::vector<FusedGroup> groups;
  std::vector<bool> kernels;  // per outlined kernel: it is part of a fused operator
  bool fuses(size_t kernel) const { return kernel < kernels.size() && kernels[kernel]; }
};

Fusions find_fusions(const outliner::Outlined& outlined);

// How elements of a type lie on the device, as operators see them.
sql::Type type_on_device(hir::BasicType type);

}  // namespace rndn::runtime
