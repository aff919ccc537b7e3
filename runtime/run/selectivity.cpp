// How many of its elements a kernel's conditions leave, for the choice of its code (ptx/codegen/collect.cpp).
//
// Numbers and dates are taken to lie evenly between a column's bounds, texts to be equally frequent, columns to be independent. Two sides of one
// column are a range. What is compared with something that only the run knows, or has no bounds, may leave all. An estimate: a wrong one costs time.
// Cost: O(comparisons).
#include <algorithm>
#include <map>

#include "runtime/run/execution.h"

namespace rndn::runtime {

using codegen::Selecting;
using hir::Builtin;

namespace {

double share_of_equals(const Item& column) {
  if (column.domain) return 1.0 / static_cast<double>(std::max<uint64_t>(1, column.domain->count()));
  if (!column.bounds.known()) return 1;
  return 1 / (1 + static_cast<double>(column.bounds.max) - static_cast<double>(column.bounds.min));
}

// Of the elements below that number.
double share_below(const Bounds& b, double number) {
  const double least = static_cast<double>(b.min), span = 1 + static_cast<double>(b.max) - least;
  return std::clamp((number - least) / span, 0.0, 1.0);
}

// The whole number or the date that it compares with; none: it is no such, or only the run knows it.
std::optional<int64_t> number_of(const Selecting& test, std::span<const ItemPtr> inputs) {
  if (!test.value) return test.number;
  const std::optional<data::Value>& value = inputs[*test.value]->host;
  if (!value || value->size != 1 || !(hir::is_integer(value->type) || hir::is_calendar(value->type))) return std::nullopt;
  return static_cast<int64_t>(word_of(*value, 0));
}

double share_of_comparison(const Selecting& test, std::span<const ItemPtr> inputs) {
  const Item& column = *inputs[test.parameter];
  if (test.builtin == Builtin::eq) return share_of_equals(column);
  if (column.domain || !column.bounds.known()) return 1;
  const std::optional<int64_t> with = number_of(test, inputs);
  if (!with) return 1;
  const double number = static_cast<double>(*with);
  switch (test.builtin) {
    case Builtin::lt: return share_below(column.bounds, number);
    case Builtin::leq: return share_below(column.bounds, number + 1);
    case Builtin::gt: return 1 - share_below(column.bounds, number + 1);
    default: return 1 - share_below(column.bounds, number);
  }
}

}  // namespace

double Run::share_of(const Selecting& test, std::span<const ItemPtr> inputs) {
  double share = 1;
  switch (test.kind) {
    case Selecting::compares: return share_of_comparison(test, inputs);
    case Selecting::any:
      share = 0;
      for (const Selecting& part : test.parts) share += share_of(part, inputs);
      return std::min(share, 1.0);
    case Selecting::all: break;
  }
  struct Range {
    double below = 0, above = 0;  // shares that are left out
  };
  std::map<uint32_t, Range> ranges;
  for (const Selecting& part : test.parts) {
    const double of_part = share_of(part, inputs);
    if (part.kind != Selecting::compares || part.builtin == Builtin::eq) {
      share *= of_part;
      continue;
    }
    Range& range = ranges[part.parameter];
    double& out = part.builtin == Builtin::lt || part.builtin == Builtin::leq ? range.above : range.below;
    out = std::max(out, 1 - of_part);
  }
  for (const auto& [parameter, range] : ranges) share *= std::max(0.0, 1 - range.below - range.above);
  return share;
}

bool Run::collects(const codegen::KernelCode& code, uint64_t elements, std::span<const ItemPtr> inputs) const {
  return code.collected && elements >= plan_.options.collected_rows &&
         share_of(*code.collected, inputs) <= plan_.options.most_collected;
}

}  // namespace rndn::runtime
