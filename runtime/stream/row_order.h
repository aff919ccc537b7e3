// Rows of columns in the order of keys, as HorseIR's `order` has them, on the host.
//
//   RowOrder order({{price, false}, {name, true}});       // column, ascending
//   order.rows();                                         // 2 0 1
//   order.next_change(1);                                 // where the keys are others than before
//
// Every element becomes one or two words whose order is that of the elements: numbers with their
// sign turned round, NaN last either way, codes of texts as their ranks. Rows of equal keys stay in
// their order. Cost: the words, and n log n comparisons of mostly one word, on all cores.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/data/column.h"

namespace rndn::runtime {

class RowOrder {
 public:
  struct Key {
    std::shared_ptr<const data::Column> column;  // no complex numbers
    bool ascending = true;
  };
  // As many rows in each column, at least one column.
  explicit RowOrder(std::span<const Key> keys);

  const std::shared_ptr<const std::vector<uint32_t>>& rows() const { return rows_; }
  // The first place from `place` (above 0) on whose row has other keys than the row before it; the
  // number of rows where there is none.
  uint64_t next_change(uint64_t place) const;

 private:
  bool same(uint32_t x, uint32_t y) const;
  bool less(uint32_t x, uint32_t y) const;

  std::vector<std::vector<uint64_t>> words_;
  std::shared_ptr<const std::vector<uint32_t>> rows_;
};

}  // namespace rndn::runtime
