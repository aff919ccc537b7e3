// List builtins (docs/horseir.md, "Builtins: lists"): list, raze, tolist, flip, match and the each
// family.
#include "runtime/reference/builtins.h"

namespace rndn::reference {

using hir::BasicType;

namespace {

Result<Value> list_(Context&, Arguments a) { return list({a.begin(), a.end()}); }

Result<Value> raze(Context& context, Arguments a) {
  if (a[0].is_vector()) return a[0];
  if (a[0].kind != Value::list) return input_error("`raze` expects a list, got {}", describe(a[0]));
  const std::vector<Value>& cells = a[0].parts();
  if (cells.empty()) return empty_vector(context.expected ? *context.expected : BasicType::i64);
  BasicType type = cells[0].type;
  for (const Value& c : cells) {
    if (!c.is_vector()) return input_error("`raze` expects vectors as cells, got {}", describe(c));
    if (c.type == type || (hir::is_text(c.type) && hir::is_text(type))) continue;
    if (!hir::is_ordered_number(c.type) || !hir::is_ordered_number(type))
      return input_error("`raze` expects cells of one type, got {} and {}", hir::basic_type_name(type),
                         hir::basic_type_name(c.type));
    type = hir::widest(type, c.type);
  }
  if (hir::is_text(type)) {
    std::vector<std::string> out;
    GrowthTicker grown;
    for (const Value& c : cells)
      for (uint64_t i = 0; i < c.size; ++i) {
        grown(sizeof(std::string) + c.text(i).size());
        out.push_back(c.text(i));
      }
    return vector_of_texts(type, std::move(out));
  }
  if (type == BasicType::complex) {
    std::vector<std::complex<double>> out;
    for (const Value& c : cells)
      out.insert(out.end(), c.as<std::complex<double>>(), c.as<std::complex<double>>() + c.size);
    return make<std::complex<double>>(type, out);
  }
  return with_type(type, [&](auto zero) {
    using T = decltype(zero);
    std::vector<T> out;
    for (const Value& c : cells) {
      std::vector<T> part = elements<T>(c);
      out.insert(out.end(), part.begin(), part.end());
    }
    return make<T>(type, out);
  });
}

Result<Value> tolist(Context&, Arguments a) {
  if (!a[0].is_vector()) return input_error("`tolist` expects a vector, got {}", describe(a[0]));
  std::vector<Value> cells;
  for (uint64_t i = 0; i < a[0].size; ++i) cells.push_back(gather(a[0], {static_cast<int64_t>(i)}));
  return list(std::move(cells));
}

Result<Value> flip(Context&, Arguments a) {
  if (a[0].kind != Value::list) return input_error("`flip` expects a list, got {}", describe(a[0]));
  return list({a[0].parts().rbegin(), a[0].parts().rend()});
}

// Parts that are shared are equal without a look; otherwise every pair of cells takes a step.
bool equal(RunState& state, const Value& x, const Value& y) {
  if (!take_step(state)) return false;
  if (x.cells && x.cells == y.cells && x.kind == y.kind) return true;
  if (x.kind != y.kind || length(x) != length(y)) return false;
  if (x.is_vector()) {
    bool comparable = x.type == y.type || (x.is_text_vector() && y.is_text_vector()) ||
                      (hir::is_real(x.type) && hir::is_real(y.type));
    if (!comparable) return false;
    for (uint64_t i = 0; i < x.size; ++i)
      if (compare_elements(x, i, y, i) != 0) return false;
    return true;
  }
  if (x.kind == Value::functions) {
    for (size_t i = 0; i < x.functions_.size(); ++i)
      if (x.functions_[i].name != y.functions_[i].name) return false;
    return true;
  }
  if (x.kind == Value::table && (x.source != y.source || x.file != y.file)) return false;
  if (x.kind == Value::table && x.cells && *x.names != *y.names) return false;
  for (size_t c = 0; x.cells && c < x.parts().size(); ++c)
    if (!equal(state, x.parts()[c], y.parts()[c])) return false;
  return true;
}

Result<Value> match(Context& context, Arguments a) {
  bool same = equal(*context.state, a[0], a[1]);
  RETURN_IF_ERROR(take_step(*context.state));
  return make_bool({static_cast<uint8_t>(same)});
}

Result<hir::FunctionRef> one_function(std::string_view name, const Value& v) {
  if (v.kind != Value::functions || v.functions_.size() != 1)
    return input_error("`{}` expects a function first, got {}", name, describe(v));
  return v.functions_[0];
}

// The cells of a list operand. An operand that is no list counts as one cell, reused for every cell of the other.
size_t cell_count(const Value& v) { return v.kind == Value::list ? v.parts().size() : 1; }
const Value& cell(const Value& v, size_t i) {
  return v.kind == Value::list ? v.parts()[v.parts().size() == 1 ? 0 : i] : v;
}

Result<Value> each(Context& context, Arguments a) {
  ASSIGN_OR_RETURN(hir::FunctionRef f, one_function("each", a[0]));
  if (a[1].kind != Value::list) return apply(context, f, {a[1]});
  std::vector<Value> out;
  for (const Value& c : a[1].parts()) {
    ASSIGN_OR_RETURN(Value v, apply(context, f, {c}));
    out.push_back(std::move(v));
  }
  return list(std::move(out));
}

// GPU.fold(values, function, number, keys..): the function of every group's values, groups ascending by their keys.
Result<Value> fold(Context& context, Arguments a) {
  ASSIGN_OR_RETURN(const hir::FunctionRef f, one_function("GPU.fold", a[1]));
  const std::vector<Value> keys(a.begin() + 3, a.end());
  for (const Value& k : keys)
    if (!k.is_vector() || !a[0].is_vector() || k.size != a[0].size)
      return input_error("the values and the columns of `GPU.fold` differ in length");
  ASSIGN_OR_RETURN(const Value groups, invoke(context, hir::Builtin::group, std::array{list(keys)}));
  ASSIGN_OR_RETURN(const Value rows, invoke(context, hir::Builtin::values, std::array{groups}));
  std::vector<Value> out;
  for (const Value& cell : rows.parts()) {
    ASSIGN_OR_RETURN(out.emplace_back(), apply(context, f, {gather(a[0], elements<int64_t>(cell))}));
  }
  if (out.empty()) {
    const bool keeps = f.builtin_id == hir::Builtin::min || f.builtin_id == hir::Builtin::max;
    return empty_vector(keeps ? a[0].type : BasicType::i64);
  }
  return invoke(context, hir::Builtin::raze, std::array{list(std::move(out))});
}

// The lengths of cells as where they begin, and their end.
Result<std::vector<uint64_t>> offsets_of(std::string_view name, const Value& lengths) {
  if (!lengths.is_vector() || lengths.type != BasicType::i64)
    return input_error("`{}` expects lengths as i64, got {}", name, describe(lengths));
  std::vector<uint64_t> offsets{0};
  for (const int64_t n : elements<int64_t>(lengths)) {
    if (n < 0 || offsets.back() + static_cast<uint64_t>(n) > data::longest_vector)
      return input_error("`{}` got a cell of length {} behind {} elements", name, n, offsets.back());
    offsets.push_back(offsets.back() + static_cast<uint64_t>(n));
  }
  return offsets;
}

// GPU.cells(x, lengths): the elements or cells of x as cells of a list.
Result<Value> cells(Context&, Arguments a) {
  ASSIGN_OR_RETURN(const std::vector<uint64_t> offsets, offsets_of("GPU.cells", a[1]));
  if (offsets.back() != length(a[0]))
    return input_error("`GPU.cells` got lengths of {} elements for {}", offsets.back(), length(a[0]));
  std::vector<Value> out;
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    if (a[0].kind == Value::list) {
      const auto first = a[0].parts().begin();
      out.push_back(list({first + static_cast<std::ptrdiff_t>(offsets[i]), first + static_cast<std::ptrdiff_t>(offsets[i + 1])}));
      continue;
    }
    std::vector<int64_t> places;
    for (uint64_t k = offsets[i]; k < offsets[i + 1]; ++k) places.push_back(static_cast<int64_t>(k));
    out.push_back(gather(a[0], places));
  }
  return list(std::move(out));
}

// GPU.pick(numbers, list..): the cells of those numbers, which count the cells of all lists.
Result<Value> pick(Context&, Arguments a) {
  std::vector<Value> all, out;
  for (size_t k = 1; k < a.size(); ++k) {
    if (a[k].kind != Value::list) return input_error("`GPU.pick` expects lists, got {}", describe(a[k]));
    all.insert(all.end(), a[k].parts().begin(), a[k].parts().end());
  }
  if (!a[0].is_vector() || a[0].type != BasicType::i64)
    return input_error("`GPU.pick` expects numbers of cells as i64, got {}", describe(a[0]));
  for (const int64_t n : elements<int64_t>(a[0])) {
    if (n < 0 || n >= static_cast<int64_t>(all.size()))
      return input_error("`GPU.pick` expects numbers of {} cells, got {}", all.size(), n);
    out.push_back(all[static_cast<size_t>(n)]);
  }
  return list(std::move(out));
}

// GPU.cell_begins(lengths): where each of such cells begins.
Result<Value> cell_begins(Context&, Arguments a) {
  ASSIGN_OR_RETURN(const std::vector<uint64_t> offsets, offsets_of("GPU.cell_begins", a[0]));
  return make<int64_t>(BasicType::i64, std::vector<int64_t>(offsets.begin(), offsets.end() - 1));
}

// GPU.cell_numbers(lengths, like): per element of such cells, the number of its cell.
Result<Value> cell_numbers(Context&, Arguments a) {
  ASSIGN_OR_RETURN(const std::vector<uint64_t> offsets, offsets_of("GPU.cell_numbers", a[0]));
  if (a.size() == 2 && offsets.back() != length(a[1]))
    return input_error("`GPU.cell_numbers` got lengths of {} elements beside {}", offsets.back(), length(a[1]));
  std::vector<int64_t> out;
  for (size_t i = 0; i + 1 < offsets.size(); ++i)
    out.insert(out.end(), offsets[i + 1] - offsets[i], static_cast<int64_t>(i));
  return make<int64_t>(BasicType::i64, out);
}

enum class Side { item, left, right };
template <Side side>
Result<Value> each_pair(Context& context, Arguments a) {
  static constexpr std::string_view names[] = {"each_item", "each_left", "each_right"};
  std::string_view name = names[static_cast<int>(side)];
  ASSIGN_OR_RETURN(hir::FunctionRef f, one_function(name, a[0]));
  const Value &x = a[1], &y = a[2];
  bool x_cells = side != Side::right && x.kind == Value::list, y_cells = side != Side::left && y.kind == Value::list;
  if (!x_cells && !y_cells) return apply(context, f, {x, y});
  size_t n = x_cells && y_cells ? std::max(cell_count(x), cell_count(y)) : x_cells ? cell_count(x) : cell_count(y);
  if (x_cells && y_cells && cell_count(x) != cell_count(y)) {
    if (cell_count(x) != 1 && cell_count(y) != 1)
      return input_error("`{}` expects lists of one length, got {} and {} cells", name, cell_count(x), cell_count(y));
    if (cell_count(x) == 0 || cell_count(y) == 0) n = 0;
  }
  std::vector<Value> out;
  for (size_t i = 0; i < n; ++i) {
    ASSIGN_OR_RETURN(Value v, apply(context, f, {x_cells ? cell(x, i) : x, y_cells ? cell(y, i) : y}));
    out.push_back(std::move(v));
  }
  return list(std::move(out));
}

}  // namespace

std::span<const BuiltinEntry> list_builtins() {
  static constexpr BuiltinEntry entries[] = {
      {"list", list_},
      {"raze", raze},
      {"tolist", tolist},
      {"flip", flip},
      {"match", match},
      {"each", each},
      {"GPU.fold", fold},
      {"GPU.cells", cells},
      {"GPU.pick", pick},
      {"GPU.cell_begins", cell_begins},
      {"GPU.cell_numbers", cell_numbers},
      {"each_item", each_pair<Side::item>},
      {"each_left", each_pair<Side::left>},
      {"each_right", each_pair<Side::right>},
  };
  return entries;
}

}  // namespace rndn::reference
