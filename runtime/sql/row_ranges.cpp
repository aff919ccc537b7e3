#include "runtime/sql/row_ranges.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace rndn::runtime {
namespace {

using sql::Constant;
using sql::Expression;
using sql::ExpressionId;
using sql::Function;
using sql::Node;
using sql::Operator;

// Whether a value between the bounds may stand so to the constant; `open`: a value above all bounds
// may be there, too.
template <class T>
bool may_compare(Function op, const std::pair<T, T>& bounds, const T& x, bool open) {
  const auto& [least, greatest] = bounds;
  switch (op) {
    case Function::equal: return least <= x && x <= greatest;
    case Function::not_equal: return open || !(least == x && greatest == x);
    case Function::less: return least < x;
    case Function::at_most: return least <= x;
    case Function::greater: return open || x < greatest;
    case Function::at_least: return open || x <= greatest;
    default: return true;
  }
}

// The comparison with its sides changed.
Function turned(Function op) {
  switch (op) {
    case Function::less: return Function::greater;
    case Function::at_most: return Function::at_least;
    case Function::greater: return Function::less;
    case Function::at_least: return Function::at_most;
    default: return op;
  }
}

class Scans {
 public:
  Scans(const sql::Plan& plan, std::span<const std::string> columns)
      : plan_(plan), columns_(columns) {}

  // Whether a row of the range may pass the scan, and the filter above it, if there is one.
  bool may_pass(const Node& scan, const Node* above, const data::RowRange& range) {
    scan_ = &scan;
    range_ = &range;
    through_ = false;
    if (!all_may(plan_.of(scan.expressions))) return false;
    through_ = scan.projects;
    return !above || all_may(plan_.of(above->expressions));
  }

 private:
  bool all_may(std::span<const ExpressionId> conjuncts) const {
    return std::all_of(conjuncts.begin(), conjuncts.end(),
                       [&](ExpressionId id) { return may_hold(id); });
  }

  // What is known of a column of the scan; null: it is none, or nothing is.
  const data::ColumnFacts* facts_of(const Expression& e) const {
    if (e.kind != Expression::column) return nullptr;
    size_t index = e.index;
    if (through_) {
      const auto kept = plan_.of(scan_->projection);
      if (index >= kept.size()) return nullptr;
      index = kept[index];
    }
    const auto read = plan_.of(scan_->columns);
    const auto names = plan_.of(scan_->names);
    if (index >= read.size() || read[index] >= names.size()) return nullptr;
    const auto at = std::find(columns_.begin(), columns_.end(), names[read[index]]);
    return at == columns_.end() ? nullptr
                                : &range_->columns[static_cast<size_t>(at - columns_.begin())];
  }

  bool may_compare_with(Function op, const Expression& column, const Expression& constant) const {
    const data::ColumnFacts* facts = facts_of(column);
    if (!facts || constant.kind != Expression::constant) return true;
    if (facts->nulls == range_->rows) return false;
    const Constant& c = plan_.constants[constant.index];
    if (c.is_null || c.type != column.type) return true;
    if (facts->integers) return may_compare(op, *facts->integers, c.integer, false);
    if (facts->texts) return may_compare(op, *facts->texts, c.text, false);
    if (facts->floats) return std::isnan(c.real) || may_compare(op, *facts->floats, c.real, true);
    return true;
  }

  bool may_hold(ExpressionId id) const {
    const Expression& e = plan_[id];
    if (e.kind != Expression::call) return true;
    const auto arguments = plan_.of(e.arguments);
    const auto argument = [&](size_t i) -> const Expression& { return plan_[arguments[i]]; };
    switch (e.function) {
      case Function::and_: return all_may(arguments);
      case Function::or_:
        return std::any_of(arguments.begin(), arguments.end(),
                           [&](ExpressionId part) { return may_hold(part); });
      case Function::equal:
      case Function::not_equal:
      case Function::less:
      case Function::at_most:
      case Function::greater:
      case Function::at_least:
        return may_compare_with(e.function, argument(0), argument(1)) &&
               may_compare_with(turned(e.function), argument(1), argument(0));
      case Function::between:
        return may_compare_with(e.lower_inclusive ? Function::at_least : Function::greater,
                                argument(0), argument(1)) &&
               may_compare_with(e.upper_inclusive ? Function::at_most : Function::less, argument(0),
                                argument(2));
      case Function::in:
        return std::any_of(arguments.begin() + 1, arguments.end(), [&](ExpressionId value) {
          return may_compare_with(Function::equal, argument(0), plan_[value]);
        });
      case Function::is_null: {
        const data::ColumnFacts* facts = facts_of(argument(0));
        return !facts || facts->nulls != uint64_t{0};
      }
      case Function::is_not_null: {
        const data::ColumnFacts* facts = facts_of(argument(0));
        return !facts || facts->nulls != range_->rows;
      }
      default: return true;
    }
  }

  const sql::Plan& plan_;
  std::span<const std::string> columns_;
  const Node* scan_ = nullptr;
  const data::RowRange* range_ = nullptr;
  bool through_ = false;  // columns are those that leave the scan
};

bool numbers_rows(const sql::Plan& plan, const Node& scan) {
  const auto read = plan.of(scan.columns);
  return std::any_of(read.begin(), read.end(),
                     [](uint32_t c) { return c == sql::row_id || c == sql::row_number; });
}

}  // namespace

std::vector<size_t> ranges_needed(const sql::Plan& plan, std::string_view table,
                                  std::span<const std::string> columns,
                                  std::span<const data::RowRange> ranges) {
  std::vector<const Node*> above(plan.nodes.size());
  for (const Node& node : plan.nodes)
    if (node.op == Operator::filter)
      for (sql::NodeId child : plan.of(node.children)) above[static_cast<size_t>(child)] = &node;
  std::vector<bool> needed(ranges.size());
  Scans scans(plan, columns);
  for (size_t n = 0; n < plan.nodes.size(); ++n) {
    const Node& scan = plan.nodes[static_cast<sql::NodeId>(n)];
    if (scan.op != Operator::scan || scan.table != table) continue;
    const bool all = numbers_rows(plan, scan);
    for (size_t r = 0; r < ranges.size(); ++r)
      if (!needed[r]) needed[r] = all || scans.may_pass(scan, above[n], ranges[r]);
  }
  std::vector<size_t> positions;
  for (size_t r = 0; r < ranges.size(); ++r)
    if (needed[r]) positions.push_back(r);
  return positions;
}

bool RangeReads::has_choice(const data::Source& source, const std::string& table,
                            std::span<const std::string> columns) {
  if (columns.empty()) return false;
  for (const std::string& column : columns)
    if (source.is_loaded(table, column)) return false;
  const auto ranges = source.ranges(table, {});
  return ranges && ranges->size() > 1;
}

Result<std::optional<RangeReads::Choice>> RangeReads::choose(const data::Source& source,
                                                             const sql::Plan& plan,
                                                             const std::string& table,
                                                             std::span<const std::string> columns) {
  Choice choice;
  ASSIGN_OR_RETURN(choice.ranges, source.ranges(table, columns));
  if (choice.ranges.empty()) return std::optional<Choice>();
  const std::vector<size_t> needed = ranges_needed(plan, table, columns, choice.ranges);
  std::vector<uint64_t> bytes;
  for (const data::RowRange& range : choice.ranges) {
    bytes.push_back(0);
    for (const data::ColumnFacts& facts : range.columns) bytes.back() += facts.bytes;
  }
  const uint64_t whole = std::accumulate(bytes.begin(), bytes.end(), uint64_t{0});
  uint64_t some = 0;
  for (size_t r : needed) some += bytes[r];
  uint64_t& spent = spent_[table];
  if (whole - some < least_saved_ || needed.size() == bytes.size() || spent + some > whole)
    return std::optional<Choice>();
  spent += some;
  ASSIGN_OR_RETURN(choice.some, source.of_ranges(table, needed));
  choice.needed = needed.size();
  return std::optional(std::move(choice));
}

}  // namespace rndn::runtime
