#include "runtime/reference/invariants.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "runtime/reference/builtins.h"

namespace rndn::reference {

using hir::BasicType;
using hir::Builtin;

namespace {

Held broken(std::string what) { return {.known = true, .broken = std::move(what)}; }

bool is_numbers(const Value& v) { return v.is_vector() && v.type == BasicType::i64; }

// The first row that is none of `rows`, or that was met before; else it is marked.
bool is_new(std::vector<bool>& met, int64_t row) {
  if (row < 0 || static_cast<uint64_t>(row) >= met.size() || met[static_cast<size_t>(row)]) return false;
  met[static_cast<size_t>(row)] = true;
  return true;
}

bool is_nan_at(const Value& v, uint64_t i) {
  if (v.type == BasicType::complex) {
    const std::complex<double> z = v.as<std::complex<double>>()[i];
    return std::isnan(z.real()) || std::isnan(z.imag());
  }
  if (!hir::is_float(v.type)) return false;
  return v.type == BasicType::f32 ? std::isnan(v.as<float>()[i]) : std::isnan(v.as<double>()[i]);
}

class RowOrder {
 public:
  RowOrder(std::span<const Value> columns, const Value& directions) : columns_(columns) {
    for (size_t c = 0; c < columns.size(); ++c)
      ascending_.push_back(directions.as<uint8_t>()[directions.size == 1 ? 0 : c] != 0);
  }
  // Whether row x stands before row y, equal ones by their numbers.
  bool before(uint64_t x, uint64_t y) const {
    for (size_t c = 0; c < columns_.size(); ++c) {
      const int order = compare_elements(columns_[c], x, columns_[c], y);
      if (order == 0) continue;
      if (is_nan_at(columns_[c], x) || is_nan_at(columns_[c], y)) return order < 0;  // last either way
      return ascending_[c] ? order < 0 : order > 0;
    }
    return x < y;
  }

 private:
  std::span<const Value> columns_;
  std::vector<bool> ascending_;
};

Held check_order(std::span<const Value> arguments, const Value& result) {
  if (arguments.size() < 2 || !arguments[1].is_vector() || arguments[1].type != BasicType::boolean) return {};
  const auto columns = key_columns("order", arguments[0]);
  if (!columns || (arguments[1].size != 1 && arguments[1].size != columns->size())) return {};
  const uint64_t rows = (*columns)[0].size;
  uint64_t wanted = rows;
  if (arguments.size() == 3) {
    if (!arguments[2].is_vector() || arguments[2].size != 1 || !hir::is_integer(arguments[2].type)) return {};
    wanted = std::min<uint64_t>(rows, static_cast<uint64_t>(std::max<int64_t>(0, elements<int64_t>(arguments[2])[0])));
  }
  if (!is_numbers(result)) return broken("the order is no vector of i64");
  if (result.size != wanted) return broken(fmt::format("{} rows are ordered, and not {}", result.size, wanted));
  const int64_t* const at = result.as<int64_t>();
  const RowOrder order(*columns, arguments[1]);
  std::vector<bool> met(rows);
  CancelTicker tick;
  for (uint64_t i = 0; i < wanted; ++i) {
    tick();
    if (!is_new(met, at[i]))
      return broken(fmt::format("place {} has row {}, which stands before it or is not there", i, at[i]));
    if (i > 0 && !order.before(static_cast<uint64_t>(at[i - 1]), static_cast<uint64_t>(at[i])))
      return broken(fmt::format("rows {} and {}, at place {}, stand in the wrong order", at[i - 1], at[i], i));
  }
  for (uint64_t row = 0; wanted > 0 && wanted < rows && row < rows; ++row) {
    tick();
    if (!met[row] && order.before(row, static_cast<uint64_t>(at[wanted - 1])))
      return broken(fmt::format("row {} is not among the first {} and comes before row {}, which is", row, wanted,
                                at[wanted - 1]));
  }
  return {.known = true, .rows = wanted};
}

Held check_group(std::span<const Value> arguments, const Value& result) {
  const auto columns = key_columns("group", arguments[0]);
  if (!columns) return {};
  if (result.kind != Value::dict || !is_numbers(result.parts()[0]) || result.parts()[1].kind != Value::list)
    return broken("the groups are no dict of rows");
  const Value& keys = result.parts()[0];
  const std::vector<Value>& cells = result.parts()[1].parts();
  if (keys.size != cells.size()) return broken(fmt::format("{} groups have {} cells", keys.size, cells.size()));
  const auto compare = [&](int64_t x, int64_t y) {
    for (const Value& c : *columns)
      if (const int order = compare_elements(c, static_cast<uint64_t>(x), c, static_cast<uint64_t>(y))) return order;
    return 0;
  };
  std::vector<bool> met((*columns)[0].size);
  uint64_t rows = 0;
  CancelTicker tick;
  for (uint64_t g = 0; g < cells.size(); ++g) {
    const int64_t key = keys.as<int64_t>()[g];
    const Value& cell = cells[g];
    if (!is_numbers(cell) || cell.size == 0 || cell.as<int64_t>()[0] != key)
      return broken(fmt::format("group {} does not begin with its key, row {}", g, key));
    rows += cell.size;
    for (uint64_t i = 0; i < cell.size; ++i) {
      tick();
      const int64_t row = cell.as<int64_t>()[i];
      if (!is_new(met, row)) return broken(fmt::format("row {} of group {} is in another group or not there", row, g));
      if (i > 0 && row < cell.as<int64_t>()[i - 1]) return broken(fmt::format("the rows of group {} do not ascend", g));
      if (i > 0 && compare(key, row) != 0) return broken(fmt::format("rows {} and {} of group {} differ", key, row, g));
    }
    if (g > 0 && compare(keys.as<int64_t>()[g - 1], key) >= 0)
      return broken(fmt::format("groups {} and {} do not ascend", g - 1, g));
  }
  if (rows != met.size()) return broken(fmt::format("{} of {} rows are in groups", rows, met.size()));
  return {.known = true, .rows = rows};
}

class JoinConditions {
 public:
  // False: these are no arguments of a join.
  bool read(std::span<const Value> arguments) {
    if (arguments.size() < 3) return false;
    for (const Value& f : arguments.first(arguments.size() - 2)) {
      if (f.kind != Value::functions) return false;
      for (const hir::FunctionRef& ref : f.functions_) {
        if (ref.kind != hir::FunctionRef::builtin) return false;
        compare_.push_back(ref.builtin_id);
      }
    }
    auto left = key_columns("join_index", arguments[arguments.size() - 2]);
    auto right = key_columns("join_index", arguments[arguments.size() - 1]);
    if (!left || !right || left->size() != right->size()) return false;
    if (compare_.size() == 1) compare_.resize(left->size(), compare_[0]);
    if (compare_.size() != left->size()) return false;
    left_ = *std::move(left), right_ = *std::move(right);
    return true;
  }
  uint64_t left_rows() const { return left_[0].size; }
  uint64_t right_rows() const { return right_[0].size; }
  bool all_equal() const {
    return std::all_of(compare_.begin(), compare_.end(), [](Builtin b) { return b == Builtin::eq; });
  }
  bool match(uint64_t i, uint64_t j) const {
    for (size_t c = 0; c < compare_.size(); ++c) {
      const bool unordered = is_nan_at(left_[c], i) || is_nan_at(right_[c], j);
      const int order = unordered ? 0 : compare_elements(left_[c], i, right_[c], j);
      bool holds = false;
      switch (compare_[c]) {
        case Builtin::eq: holds = !unordered && order == 0; break;
        case Builtin::neq: holds = unordered || order != 0; break;
        case Builtin::lt: holds = !unordered && order < 0; break;
        case Builtin::gt: holds = !unordered && order > 0; break;
        case Builtin::leq: holds = !unordered && order <= 0; break;
        default: holds = !unordered && order >= 0; break;
      }
      if (!holds) return false;
    }
    return true;
  }
  // Pairs that there must be; none: too many would have to be looked at.
  std::optional<uint64_t> pairs() const {
    std::vector<Value> left, right;
    std::vector<BasicType> as;
    for (size_t c = 0; c < compare_.size(); ++c) {
      if (compare_[c] != Builtin::eq) continue;
      left.push_back(left_[c]), right.push_back(right_[c]);
      as.push_back(left_[c].type == right_[c].type || left_[c].is_text_vector()
                       ? left_[c].type
                       : hir::widest(left_[c].type, right_[c].type));
    }
    CancelTicker tick;
    uint64_t found = 0;
    if (as.empty()) {
      if (left_rows() && right_rows() > most_candidates / left_rows()) return std::nullopt;
      for (uint64_t j = 0; j < right_rows(); ++j)
        for (uint64_t i = 0; i < left_rows(); ++i) tick(), found += match(i, j);
      return found;
    }
    std::vector<uint8_t> left_nan, right_nan;
    const std::vector<std::string> left_keys = row_keys(left, as, &left_nan),
                                   right_keys = row_keys(right, as, &right_nan);
    std::unordered_map<std::string_view, std::vector<uint32_t>> rows;
    for (uint64_t i = 0; i < left_rows(); ++i)
      if (!left_nan[i]) tick(), rows[left_keys[i]].push_back(static_cast<uint32_t>(i));
    const bool counted = all_equal();
    uint64_t candidates = 0;
    for (uint64_t j = 0; j < right_rows(); ++j) {
      tick();
      const auto of = right_nan[j] ? rows.end() : rows.find(right_keys[j]);
      if (of == rows.end()) continue;
      if (counted) {
        found += of->second.size();
        continue;
      }
      candidates += of->second.size();
      if (candidates > most_candidates) return std::nullopt;
      for (const uint32_t i : of->second) found += match(i, j);
    }
    return found;
  }

 private:
  std::vector<Builtin> compare_;
  std::vector<Value> left_, right_;
};

Held check_join(std::span<const Value> arguments, const Value& result) {
  JoinConditions conditions;
  if (!conditions.read(arguments)) return {};
  if (result.kind != Value::list || result.parts().size() != 2 || !is_numbers(result.parts()[0]) ||
      !is_numbers(result.parts()[1]) || result.parts()[0].size != result.parts()[1].size)
    return broken("the pairs are no two vectors of i64 of one length");
  const uint64_t pairs = result.parts()[0].size;
  const int64_t *const left = result.parts()[0].as<int64_t>(), *const right = result.parts()[1].as<int64_t>();
  CancelTicker tick;
  for (uint64_t k = 0; k < pairs; ++k) {
    tick();
    if (left[k] < 0 || static_cast<uint64_t>(left[k]) >= conditions.left_rows() || right[k] < 0 ||
        static_cast<uint64_t>(right[k]) >= conditions.right_rows())
      return broken(fmt::format("pair {} has rows {} and {}, which are not there", k, left[k], right[k]));
    if (!conditions.match(static_cast<uint64_t>(left[k]), static_cast<uint64_t>(right[k])))
      return broken(fmt::format("pair {} has rows {} and {}, which do not match", k, left[k], right[k]));
    if (k > 0 && std::pair(right[k - 1], left[k - 1]) >= std::pair(right[k], left[k]))
      return broken(fmt::format("pairs {} and {} do not ascend", k - 1, k));
  }
  const std::optional<uint64_t> wanted = conditions.pairs();
  if (wanted && *wanted != pairs) return broken(fmt::format("there are {} pairs, and {} match", pairs, *wanted));
  return {.known = true, .complete = wanted.has_value(), .rows = pairs};
}

}  // namespace

Held check_operator(Builtin builtin, std::span<const Value> arguments, const Value& result) {
  switch (builtin) {
    case Builtin::order:
    case Builtin::gpu_top_lib: return check_order(arguments, result);
    case Builtin::group: return check_group(arguments, result);
    case Builtin::join_index: return check_join(arguments, result);
    default: return {};
  }
}

}  // namespace rndn::reference
