// What is expected of a kernel's elements before it runs: how many a selection leaves, and how often a condition holds. What a launch decides by it
// (Run::collects) and what is predicted of it (runtime/model) hang on the same figures. Private to this folder.
//
// From what is known of columns (least and greatest element, texts of a dictionary): elements are taken to be spread
// evenly between them, texts of a dictionary to be equally frequent, and conditions on different columns to be independent; conditions on one column
// meet in an interval. Keys that a table is asked for are taken to be among those of the rows that its rows were selected from. Where nothing is known: a tenth are equal, a third are less, as in P. G. Selinger et al., "Access path
// selection in a relational database management system", SIGMOD 1979, table 1. One walk over the statements.
#pragma once
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "frontend/ir.h"
#include "runtime/memory/bounds.h"

namespace rndn::runtime {

// Of a vector that a step gives.
struct Expected {
  double rows = 0;
  double chance = -1;  // bool: that an element holds; below 0: unknown
};

class Estimate {
 public:
  // elements: expected of the geometry. inputs, expected: by parameter; of what `expected` has not nothing is known but the input. bounds: bounds_in of
  // them.
  Estimate(const hir::Program& program, const hir::Function& f, double elements, std::span<const ItemPtr> inputs,
           std::span<const Expected> expected, std::span<const VariableBounds> bounds);
  // That all of them hold.
  double chance(std::span<const hir::VariableId> conditions) const;
  // Of the geometry's elements those that the selection has.
  double share(hir::VariableId v) const { return of_[index(v)].share; }
  Expected result(hir::VariableId v) const;
  // Of the rows that a table is asked for, where that is the result of a look-up; below 0: it is none.
  double hit(hir::VariableId v) const { return of_[index(v)].hit; }

 private:
  // A condition: variables that lie in a part of where their elements lie, and others that hold by chance.
  struct Condition {
    struct Part {
      uint32_t variable;
      double low, high;  // of 0..1
    };
    std::vector<Part> parts;
    std::vector<std::pair<uint32_t, double>> others;  // by the variable that holds
    double chance() const;
    void meet(const Condition& other);
  };
  struct Variable {
    double low = 1, high = 0;  // elements lie between; unknown: low > high
    double distinct = 0;       // 0: unknown
    double step = 0;           // 1: integers
    uint32_t root = 0;         // whose elements, or a selection of them, it has
    double share = 1;
    double hit = -1;  // of rows that a table was asked for: that there is one
    Condition condition;
  };
  std::optional<double> number(const hir::Operand& o) const;
  Condition compare(hir::Builtin builtin, const hir::Operand& a, const hir::Operand& b, uint32_t target) const;
  Condition condition_of(const hir::Operand& o) const;
  void assign(uint32_t target, const hir::Expression& e);

  const hir::Program& program_;
  const hir::Function& f_;
  double elements_;
  std::span<const ItemPtr> inputs_;
  std::span<const Expected> expected_;
  std::vector<Variable> of_;
};

}  // namespace rndn::runtime
