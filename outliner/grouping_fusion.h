// Which parts of an outlined program run as one fused operator.
//
// group -> each_right(@index, v, values) -> each(@sum | @len | @min | @max | @avg) -> raze, where nothing else looks at the rows of the groups, is
// one aggregation (libraries/operators/api.h, Operators::aggregate), also with each(@unique) before each(@len): no list of rows is made, and the kernels that would reduce it get no code.
#pragma once
#include <string_view>
#include <vector>

#include "outliner/outliner.h"

namespace rndn::outliner {

// What is made of the rows of a group: their number, or of one column of them.
enum class GroupReduction : uint8_t { len, sum, avg, min, max, distinct };

// A group of main and the kernels that reduce its rows.
struct FusedGroup {
  hir::StatementId group{}, values{}, keys = none<hir::StatementId>();  // statements of main
  std::vector<hir::StatementId> launches;
  hir::StatementId
      at{};  // the operator runs before this one; its arguments exist then, and nothing has asked for its results
  hir::Operand columns;                             // of @group
  hir::VariableId first = none<hir::VariableId>();  // gets the keys; none: nobody does
  struct Reduction {
    GroupReduction reduce{};
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

// Whether one operator reduces groups of such values to such results (libraries/operators/api.h, can_aggregate).
bool has_operator(GroupReduction reduce, hir::BasicType values, hir::BasicType result);

Fusions find_fusions(const Outlined& outlined);

}  // namespace rndn::outliner
