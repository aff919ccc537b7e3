// Relational builtins (docs/horseir.md): unique, group, order, member, index_of, join_index.
//
// All of them compare rows through keys.cpp. Orders are the specification's choices: groups ascending, rows within a
// group ascending, sort stable, join pairs by right row, then left row.
#include <algorithm>
#include <complex>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "runtime/reference/builtins.h"

namespace rndn::reference {

using hir::BasicType;

namespace {

std::vector<BasicType> own_types(const std::vector<Value>& columns) {
  std::vector<BasicType> types;
  for (const Value& c : columns) types.push_back(c.type);
  return types;
}

// The type in which two columns are compared, or an error when their types do not go together.
Result<BasicType> common_type(std::string_view function, const Value& x, const Value& y) {
  if (x.type == y.type || (x.is_text_vector() && y.is_text_vector())) return x.type;
  const bool numbers = hir::is_numeric(x.type) && hir::is_numeric(y.type);
  if (numbers || (hir::is_ordered_number(x.type) && hir::is_ordered_number(y.type)))
    return hir::widest(x.type, y.type);
  return input_error("`{}` cannot compare {} with {}", function, describe(x), describe(y));
}

Result<Value> unique(Context&, Arguments a) {
  ASSIGN_OR_RETURN(std::vector<Value> columns, key_columns("unique", a[0]));
  std::vector<std::string> keys = row_keys(columns, own_types(columns), nullptr);
  std::unordered_set<std::string_view> seen;
  std::vector<int64_t> first;
  for (size_t i = 0; i < keys.size(); ++i)
    if (seen.insert(keys[i]).second) first.push_back(static_cast<int64_t>(i));
  return make<int64_t>(BasicType::i64, first);
}

Result<Value> group(Context&, Arguments a) {
  ASSIGN_OR_RETURN(std::vector<Value> columns, key_columns("group", a[0]));
  std::vector<std::string> keys = row_keys(columns, own_types(columns), nullptr);
  std::unordered_map<std::string_view, size_t> group_of;
  std::vector<std::vector<int64_t>> cells;
  CancelTicker tick;
  for (size_t i = 0; i < keys.size(); ++i) {
    tick();
    size_t g = group_of.emplace(keys[i], cells.size()).first->second;
    if (g == cells.size()) cells.emplace_back();
    cells[g].push_back(static_cast<int64_t>(i));
  }
  std::sort(cells.begin(), cells.end(), [&](const auto& x, const auto& y) {
    tick();
    for (const Value& c : columns)
      if (int order = compare_elements(c, static_cast<uint64_t>(x[0]), c, static_cast<uint64_t>(y[0])))
        return order < 0;
    return x[0] < y[0];
  });
  std::vector<int64_t> representatives;
  std::vector<Value> values;
  for (const auto& cell : cells) {
    representatives.push_back(cell[0]);
    values.push_back(make<int64_t>(BasicType::i64, cell));
  }
  return dict(make<int64_t>(BasicType::i64, representatives), list(std::move(values)));
}

Result<Value> order(Context&, Arguments a) {
  ASSIGN_OR_RETURN(std::vector<Value> columns, key_columns("order", a[0]));
  if (!a[1].is_vector() || a[1].type != BasicType::boolean)
    return input_error("`order` expects bools as directions, got {}", describe(a[1]));
  std::vector<uint8_t> ascending = elements<uint8_t>(a[1]);
  if (ascending.size() == 1) ascending.resize(columns.size(), ascending[0]);
  if (ascending.size() != columns.size())
    return input_error("`order` expects one direction per column, got {} columns and {} directions", columns.size(),
                       ascending.size());
  for (const Value& c : columns)
    if (c.type == BasicType::complex) return input_error("`order` is not defined for complex numbers");
  std::vector<int64_t> rows(columns[0].size);
  std::iota(rows.begin(), rows.end(), 0);
  auto is_nan = [](const Value& c, int64_t row) {
    return hir::is_float(c.type) &&
           with_type(c.type, [&](auto zero) { return std::isnan(static_cast<double>(c.as<decltype(zero)>()[row])); });
  };
  CancelTicker tick;
  std::stable_sort(rows.begin(), rows.end(), [&](int64_t x, int64_t y) {
    tick();
    for (size_t c = 0; c < columns.size(); ++c) {
      int order = compare_elements(columns[c], static_cast<uint64_t>(x), columns[c], static_cast<uint64_t>(y));
      bool nan = order && (is_nan(columns[c], x) || is_nan(columns[c], y));  // NaN last in both directions
      if (order) return (ascending[c] || nan) ? order < 0 : order > 0;
    }
    return false;
  });
  return make<int64_t>(BasicType::i64, rows);
}

Result<Value> member(Context&, Arguments a) {
  ASSIGN_OR_RETURN(std::vector<Value> x, key_columns("member", a[0]));
  ASSIGN_OR_RETURN(std::vector<Value> set, key_columns("member", a[1]));
  if (x.size() != 1 || set.size() != 1) return input_error("`member` expects two vectors");
  ASSIGN_OR_RETURN(BasicType type, common_type("member", x[0], set[0]));
  std::vector<uint8_t> x_nan, set_nan;
  std::vector<std::string> tested = row_keys(x, {&type, 1}, &x_nan), keys = row_keys(set, {&type, 1}, &set_nan);
  std::unordered_set<std::string_view> present;
  for (size_t i = 0; i < keys.size(); ++i)
    if (!set_nan[i]) present.insert(keys[i]);
  std::vector<uint8_t> out(tested.size());
  for (size_t i = 0; i < tested.size(); ++i) out[i] = !x_nan[i] && present.count(tested[i]);
  return make_bool(out);
}

// Per row of x the first row of y that equals it, or `missing`.
std::vector<int64_t> first_rows(std::span<const Value> x, std::span<const Value> y, std::span<const BasicType> types,
                                int64_t missing) {
  std::vector<uint8_t> x_nan, y_nan;
  std::vector<std::string> needles = row_keys(x, types, &x_nan), haystack = row_keys(y, types, &y_nan);
  std::unordered_map<std::string_view, int64_t> first;
  for (size_t i = 0; i < haystack.size(); ++i)
    if (!y_nan[i]) first.emplace(haystack[i], static_cast<int64_t>(i));
  std::vector<int64_t> out(needles.size(), missing);
  for (size_t i = 0; i < needles.size(); ++i) {
    auto it = first.find(needles[i]);
    if (it != first.end() && !x_nan[i]) out[i] = it->second;
  }
  return out;
}

Result<Value> index_of(Context&, Arguments a) {
  ASSIGN_OR_RETURN(std::vector<Value> x, key_columns("index_of", a[0]));
  ASSIGN_OR_RETURN(std::vector<Value> y, key_columns("index_of", a[1]));
  if (x.size() != 1 || y.size() != 1) return input_error("`index_of` expects two vectors");
  ASSIGN_OR_RETURN(BasicType type, common_type("index_of", x[0], y[0]));
  return make<int64_t>(BasicType::i64, first_rows(x, y, {&type, 1}, static_cast<int64_t>(y[0].size)));
}

// GPU.probe(number, left columns.., right columns..): per row on the right the first equal one on the left, or -1. With a mask
// between them: -1 where that row's mask is 0.
Result<Value> probe(Context&, Arguments a) {
  const size_t columns = (a.size() - 1) / 2, first_right = a.size() / 2;
  std::vector<Value> left, right;
  std::vector<BasicType> types;
  for (size_t k = 1; k <= columns; ++k) {
    ASSIGN_OR_RETURN(const std::vector<Value> x, key_columns("GPU.probe", a[k]));
    ASSIGN_OR_RETURN(const std::vector<Value> y, key_columns("GPU.probe", a[k + first_right]));
    if (x.size() != 1 || y.size() != 1) return input_error("`GPU.probe` expects vectors");
    ASSIGN_OR_RETURN(const BasicType type, common_type("GPU.probe", x[0], y[0]));
    if (k > 1 && (x[0].size != left[0].size || y[0].size != right[0].size))
      return input_error("the columns of one side of `GPU.probe` differ in length");
    left.push_back(x[0]);
    right.push_back(y[0]);
    types.push_back(type);
  }
  std::vector<int64_t> rows = first_rows(right, left, types, -1);
  if (first_right > columns) {
    const Value& mask = a[first_right];
    if (mask.kind != Value::vector || mask.type != BasicType::boolean || mask.size != left[0].size)
      return input_error("the mask of `GPU.probe` is no mask of the left side");
    for (int64_t& row : rows)
      if (row >= 0 && !mask.as<uint8_t>()[row]) row = -1;
  }
  return make<int64_t>(BasicType::i64, std::move(rows));
}

enum class Predicate { eq, neq, lt, gt, leq, geq };

// join_index(f1, ..., fm, x, y). Rows that agree in the eq columns are found by hashing, the other predicates tested
// per pair.
Result<Value> join_index(Context& context, Arguments a) {
  std::vector<Predicate> predicates;
  for (const Value& f : a.first(a.size() - 2)) {
    if (f.kind != Value::functions)
      return input_error("`join_index` expects comparison functions before its two columns, got {}", describe(f));
    for (const hir::FunctionRef& ref : f.functions_) {
      static constexpr std::string_view names[] = {"eq", "neq", "lt", "gt", "leq", "geq"};
      std::string_view name = ref.kind == hir::FunctionRef::builtin ? hir::row(ref.builtin_id).name : "";
      auto at = std::find(std::begin(names), std::end(names), name);
      if (at == std::end(names))
        return input_error("`join_index` accepts the functions eq, neq, lt, gt, leq and geq only");
      predicates.push_back(static_cast<Predicate>(at - std::begin(names)));
    }
  }
  ASSIGN_OR_RETURN(std::vector<Value> x, key_columns("join_index", a[a.size() - 2]));
  ASSIGN_OR_RETURN(std::vector<Value> y, key_columns("join_index", a[a.size() - 1]));
  size_t columns = std::max(x.size(), y.size());
  auto widen = [&](auto& v) {
    if (v.size() == 1) v.resize(columns, v[0]);
    return v.size() == columns;
  };
  if (!widen(x) || !widen(y) || !widen(predicates))
    return input_error(
        "`join_index` expects as many functions and columns on both sides, got {} functions, {} and {} columns",
        predicates.size(), x.size(), y.size());

  std::vector<Value> left_keys, right_keys, left_rest, right_rest;
  std::vector<BasicType> key_types;
  std::vector<Predicate> rest;
  for (size_t c = 0; c < columns; ++c) {
    ASSIGN_OR_RETURN(BasicType type, common_type("join_index", x[c], y[c]));
    if (predicates[c] == Predicate::eq) {
      left_keys.push_back(x[c]), right_keys.push_back(y[c]), key_types.push_back(type);
    } else {
      if (type == BasicType::complex && predicates[c] != Predicate::neq)
        return input_error("`join_index` cannot order complex numbers");
      left_rest.push_back(x[c]), right_rest.push_back(y[c]), rest.push_back(predicates[c]);
    }
  }
  auto is_nan = [](const Value& v, uint64_t i) {
    if (v.type == BasicType::complex) {
      const std::complex<double> z = v.as<std::complex<double>>()[i];
      return std::isnan(z.real()) || std::isnan(z.imag());
    }
    return hir::is_float(v.type) &&
           with_type(v.type, [&](auto zero) { return std::isnan(static_cast<double>(v.as<decltype(zero)>()[i])); });
  };
  auto matches = [&](uint64_t i, uint64_t j) {
    for (size_t c = 0; c < rest.size(); ++c) {
      bool unordered = is_nan(left_rest[c], i) || is_nan(right_rest[c], j);
      int order = compare_elements(left_rest[c], i, right_rest[c], j);
      bool holds = rest[c] == Predicate::neq   ? unordered || order != 0
                   : unordered                 ? false
                   : rest[c] == Predicate::lt  ? order < 0
                   : rest[c] == Predicate::gt  ? order > 0
                   : rest[c] == Predicate::leq ? order <= 0
                                               : order >= 0;
      if (!holds) return false;
    }
    return true;
  };
  uint64_t left_rows = x[0].size, right_rows = y[0].size;
  std::vector<int64_t> left, right;
  auto pair = [&](uint64_t i, uint64_t j) {
    if (matches(i, j)) left.push_back(static_cast<int64_t>(i)), right.push_back(static_cast<int64_t>(j));
  };
  CancelTicker tick;
  // More pairs than a vector may hold end the join at once.
  auto full = [&] { return left.size() > context.state->longest; };
  if (key_types.empty()) {
    for (uint64_t j = 0; j < right_rows && !full(); ++j)
      for (uint64_t i = 0; i < left_rows; ++i) tick(), pair(i, j);
  } else {
    std::vector<uint8_t> left_nan, right_nan;
    std::vector<std::string> lk = row_keys(left_keys, key_types, &left_nan),
                             rk = row_keys(right_keys, key_types, &right_nan);
    std::unordered_map<std::string_view, std::vector<uint64_t>> rows_of;
    for (uint64_t i = 0; i < left_rows; ++i)
      if (!left_nan[i]) rows_of[lk[i]].push_back(i);
    for (uint64_t j = 0; j < right_rows && !full(); ++j) {
      auto it = right_nan[j] ? rows_of.end() : rows_of.find(rk[j]);
      if (it == rows_of.end()) continue;
      for (uint64_t i : it->second) tick(), pair(i, j);
    }
  }
  if (full())
    return input_error("`join_index` gives more than the {} pairs that one vector may have", context.state->longest);
  return list({make<int64_t>(BasicType::i64, left), make<int64_t>(BasicType::i64, right)});
}

}  // namespace

std::span<const BuiltinEntry> relational_builtins() {
  static constexpr BuiltinEntry entries[] = {{"unique", unique}, {"group", group},       {"order", order},
                                             {"member", member}, {"index_of", index_of}, {"join_index", join_index},
                                             {"GPU.probe", probe}};
  return entries;
}

}  // namespace rndn::reference
