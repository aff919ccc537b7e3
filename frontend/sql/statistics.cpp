// Aggregates beyond sums and extremes: moments, quantiles, rows chosen by an order, texts joined.
//
// Variances and covariances are of sums of products. Those of integers and decimals are exact, in
// 128 bits, where bounds prove that they fit; all else is floats less the mean of their group, or of
// their window's partition (two passes; Chan, Golub, LeVeque, The American Statistician 37, 1983).
// Quantiles and the row of an extreme come from one order of all rows by group, by whether they
// count, and by value: a group's least place in it is where its rows begin; in windows the ranks of
// a frame's rows are searched (windows.cpp). Left out: frames of floats whose means lie thousands of
// their deviations from their partition's lose digits of their variances.
#include <algorithm>
#include <cmath>

#include "frontend/sql/translator.h"

namespace rndn::sql {

using hir::BasicType;

// The cells of the arguments in the rows of the groups, and the rows that count: where the filter
// holds and no argument among the first `needed` is null.
Translator::Counted Translator::counted_of(const Expression& e, const Relation& in, const Groups& g, size_t needed) {
  Counted out;
  const VectorId filter = is_none(e.filter) ? nothing : evaluate(e.filter, in).value;
  if (!is_none(filter)) out.rows = g.rows == in.space ? filter : g_.keep(g.rows, filter);
  for (ExpressionId id : plan_.of(e.arguments)) {
    Cell c = evaluate(id, in, filter);
    if (error_) return out;
    if (g.rows != in.space) c = keep(c, g.rows);
    if (out.cells.size() < needed) out.rows = g_.and_(out.rows, c.valid);
    out.cells.push_back(c);
  }
  if (!is_none(out.rows) && g_.is_true(out.rows)) out.rows = nothing;
  if (is_none(out.rows))
    out.number = g.one ? g_.count(g.rows) : reduce(g, "len", nothing, {});
  else
    out.number = reduce(g, "sum", g_.cast(g_.spread(out.rows, g.rows), whole), Bounds::of(0, static_cast<__int128>(g_[g.rows].most_rows)));
  return out;
}

// The argument without the cast to a float that the planner puts around exact numbers.
static ExpressionId exact_part(const Plan& plan, ExpressionId id) {
  const Expression& e = plan[id];
  if (e.kind != Expression::call || e.function != Function::cast || e.type.id != TypeId::double_) return id;
  const ExpressionId inner = plan.of(e.arguments)[0];
  const Type from = plan[inner].type;
  return is_exact(from) && from.id != TypeId::hugeint ? inner : id;
}

// For each row the mean of the rows that count of its group, in a window of its partition: a number
// near to what it is taken from. Zero where the mean is no number.
VectorId Translator::mean_of(const Groups& g, const Counted& c, VectorId v) {
  Groups all = g;
  Frame partition;
  VectorId number = c.number;
  if (g.frame) {
    partition = *g.frame;
    partition.begin = partition.partition.first;
    partition.end = partition.partition.end;
    partition.some = nothing;
    partition.parts.clear();
    partition.from_head = partition.to_end = true;
    all.frame = &partition;
    const VectorId counted = is_none(c.rows) ? g_.integer(truth, 1) : c.rows;
    number = reduce(all, "sum", g_.cast(g_.spread(counted, g.rows), whole), {});
  }
  const VectorId safe = g_.select(g_.map("gt", {number, g_.integer(whole, 0)}, truth),
                                  g_.cast(number, real), g_.real(real, 1));
  const VectorId mean = g_.map("div", {reduce(all, "sum", v, {}), safe}, real);
  const VectorId finite = g_.map("lt", {g_.map("abs", {mean}, real), end_of(real, true)}, truth);
  return of_own_group(all, g_.select(finite, mean, g_.real(real, 0)));
}

// n times the covariance: the sum of products of what lies apart from the means.
VectorId Translator::co_moment(const Groups& g, const Counted& c, const Cell& x, const Cell& y) {
  const Bounds counts = Bounds::of(0, static_cast<__int128>(g_[g.rows].most_rows));
  const auto counting = [&](VectorId v) {
    v = g_.spread(v, g.rows);
    return is_none(c.rows) ? v : g_.select(g_.spread(c.rows, g.rows), v, g_.zero(g_[v].type));
  };
  const VectorId n = g_.cast(c.number, real);
  const auto divided = [&](VectorId a, VectorId b) { return g_.map("div", {a, b}, real); };
  if (is_exact(x.type) && is_exact(y.type)) {
    const Bounds p = rndn::sql::join(g_[x.value].bounds, Bounds::of(0, 0)), q = rndn::sql::join(g_[y.value].bounds, Bounds::of(0, 0));
    const Bounds all = p * q * counts * counts;
    if (all.known && (p * counts).fits_i64() && (q * counts).fits_i64()) {
      const auto sum = [&](VectorId v, Bounds each) { return wide_sum(g, v, each, counts); };
      const VectorId a = counting(g_.cast(x.value, whole)), b = counting(g_.cast(y.value, whole));
      const BasicType type = holding(whole, p * q);
      const VectorId products = g_.map("mul", {g_.cast(a, type), g_.cast(b, type)}, type, p * q);
      const BasicType wide = BasicType::i128;
      const VectorId left = g_.map("mul", {sum(products, p * q), g_.cast(c.number, wide)}, wide, all);
      const VectorId right = g_.map("mul", {sum(a, p), sum(b, q)}, wide, all);
      const VectorId apart = g_.cast(g_.map("minus", {left, right}, wide), real);
      const double unit = std::pow(10.0, scale_of(x.type) + scale_of(y.type));
      return divided(apart, g_.map("mul", {n, g_.real(real, unit)}, real));
    }
  }
  const auto centred = [&](const Cell& cell) {
    const VectorId v = counting(cast_cell(cell, {TypeId::double_}).value);
    return counting(g_.map("minus", {v, mean_of(g, c, v)}, real));
  };
  const VectorId a = centred(x), b = centred(y);
  const VectorId products = reduce(g, "sum", g_.map("mul", {a, b}, real), {});
  const VectorId sums = g_.map("mul", {reduce(g, "sum", a, {}), reduce(g, "sum", b, {})}, real);
  const VectorId safe = g_.select(g_.map("gt", {n, g_.real(real, 0)}, truth), n, g_.real(real, 1));
  return g_.map("minus", {products, divided(sums, safe)}, real);
}

// The arguments as they are, without the planner's casts to floats: exact numbers or floats.
std::vector<Cell> Translator::numbers_of(const Expression& e, const Relation& in, const Groups& g, const Counted& c) {
  std::vector<Cell> x;
  for (size_t i = 0; i < c.cells.size(); ++i) {
    const ExpressionId id = plan_.of(e.arguments)[i], inner = exact_part(plan_, id);
    Cell cell = c.cells[i];
    if (inner != id) {
      cell = evaluate(inner, in);
      if (g.rows != in.space) cell = keep(cell, g.rows);
    }
    if (!is_exact(cell.type) && !is_floating(cell.type))
      fail("the aggregate {} of {} has no translation", name_of(e.aggregate_function), type_name(cell.type));
    x.push_back(cell);
  }
  return x;
}

Cell Translator::moments(const Expression& e, const Relation& in, const Groups& g) {
  const Counted c = counted_of(e, in, g, 2);
  if (error_) return failed(e.type);
  const std::vector<Cell> x = numbers_of(e, in, g, c);
  if (error_) return failed(e.type);
  const Aggregate f = e.aggregate_function;
  const bool sample = f == Aggregate::stddev || f == Aggregate::stddev_samp || f == Aggregate::variance ||
                      f == Aggregate::var_samp || f == Aggregate::covar_samp;
  const bool root = f == Aggregate::stddev || f == Aggregate::stddev_samp || f == Aggregate::stddev_pop;
  const VectorId n = g_.cast(c.number, real);
  const VectorId one = g_.real(real, 1), zero = g_.real(real, 0);
  const VectorId enough = g_.map("gt", {n, sample ? one : zero}, truth);
  const auto not_below = [&](VectorId v) { return g_.select(g_.map("lt", {v, zero}, truth), zero, v); };
  VectorId v = co_moment(g, c, x[0], x.back());
  if (f == Aggregate::corr) {
    const VectorId p = not_below(co_moment(g, c, x[0], x[0])), q = not_below(co_moment(g, c, x[1], x[1]));
    const VectorId roots = g_.map("mul", {g_.map("sqrt", {p}, real), g_.map("sqrt", {q}, real)}, real);
    return canonical(e.type, g_.map("div", {v, roots}, real), enough);
  }
  if (x.size() == 1) v = not_below(v);
  if (x.size() == 1 && !sample)  // of one value that is no number, too
    v = g_.select(g_.map("gt", {n, one}, truth), v, zero);
  const VectorId by = sample ? g_.map("minus", {n, one}, real) : n;
  v = g_.map("div", {v, g_.select(enough, by, one)}, real);
  if (root || f == Aggregate::sem) v = g_.map("sqrt", {v}, real);
  if (f == Aggregate::sem) v = g_.map("div", {v, g_.map("sqrt", {g_.select(enough, n, one)}, real)}, real);
  return canonical(e.type, v, enough);
}

// The regression of the first argument on the second, from the sums of products of what lies apart
// from the means: where all of the second are one value there is no line.
Cell Translator::regression(const Expression& e, const Relation& in, const Groups& g) {
  const Aggregate f = e.aggregate_function;
  const Counted c = counted_of(e, in, g, 2);
  if (error_) return failed(e.type);
  if (f == Aggregate::regr_count) return {c.number, nothing, e.type};
  const std::vector<Cell> all = numbers_of(e, in, g, c);
  if (error_) return failed(e.type);
  const Cell &y = all[0], &x = all[1];
  const VectorId zero = g_.real(real, 0), one = g_.real(real, 1);
  const VectorId some = g_.map("gt", {c.number, g_.integer(whole, 0)}, truth);
  const auto by = [&](std::string_view builtin, VectorId a, VectorId b) { return g_.map(builtin, {a, b}, real); };
  const auto mean = [&](const Cell& cell) {
    VectorId v = g_.spread(cast_cell(cell, {TypeId::double_}).value, g.rows);
    if (!is_none(c.rows)) v = g_.select(g_.spread(c.rows, g.rows), v, g_.zero(real));
    return by("div", reduce(g, "sum", v, {}), g_.select(some, g_.cast(c.number, real), one));
  };
  const auto result = [&](VectorId v) { return canonical(e.type, v, some); };
  switch (f) {
    case Aggregate::regr_avgx: return result(mean(x));
    case Aggregate::regr_avgy: return result(mean(y));
    case Aggregate::regr_sxx: return result(co_moment(g, c, x, x));
    case Aggregate::regr_syy: return result(co_moment(g, c, y, y));
    case Aggregate::regr_sxy: return result(co_moment(g, c, x, y));
    default: break;
  }
  const VectorId sxx = co_moment(g, c, x, x), sxy = co_moment(g, c, x, y);
  const VectorId slope = by("div", sxy, sxx);
  if (f == Aggregate::regr_slope) return result(slope);
  const VectorId has_line = g_.and_(some, g_.map("neq", {sxx, zero}, truth));
  if (f == Aggregate::regr_intercept)
    return canonical(e.type, by("minus", mean(y), by("mul", slope, mean(x))), has_line);
  const VectorId syy = co_moment(g, c, y, y);
  const VectorId r2 = by("div", by("mul", slope, sxy), syy);
  return canonical(e.type, g_.select(g_.map("eq", {syy, zero}, truth), one, r2), has_line);
}

// bit_and, bit_or, bit_xor: bit by bit, as many as bounds need.
Cell Translator::bits_of_all(const Expression& e, const Relation& in, const Groups& g) {
  const Aggregate f = e.aggregate_function;
  const Counted c = counted_of(e, in, g, 1);
  if (error_) return failed(e.type);
  const Cell& x = c.cells[0];
  if (!is_integral(x.type) || x.type.id == TypeId::hugeint) {
    fail("the aggregate {} of {} has no translation", name_of(f), type_name(x.type));
    return failed(e.type);
  }
  const Cell one[] = {x};
  const VectorId v = of_bits(one, [&](std::span<const VectorId> bit) {
    VectorId b = g_.spread(bit[0], g.rows);
    if (f == Aggregate::bit_and)
      return reduce(g, "all", is_none(c.rows) ? b : g_.or_(b, g_.not_(g_.spread(c.rows, g.rows))), {});
    if (!is_none(c.rows)) b = g_.and_(b, g_.spread(c.rows, g.rows));
    if (f == Aggregate::bit_or) return reduce(g, "any", b, {});
    const Bounds counts = Bounds::of(0, static_cast<__int128>(g_[g.rows].most_rows));
    const VectorId ones = reduce(g, "sum", g_.cast(b, whole), counts);
    return g_.map("eq", {g_.map("mod", {ones, g_.integer(whole, 2)}, whole, Bounds::of(0, 1)), g_.integer(whole, 1)},
                  truth);
  });
  return canonical(e.type, v, g_.map("gt", {c.number, g_.integer(whole, 0)}, truth));
}

// --- Rows by order -------------------------------------------------------------------------------

// ORDER BY within the arguments, in the rows of the groups.
std::vector<Translator::SortKey> Translator::keys_within(const Expression& e, const Relation& in, const Groups& g) {
  const VectorId filter = is_none(e.filter) ? nothing : evaluate(e.filter, in).value;
  std::vector<SortKey> out;
  for (const OrderKey& key : plan_.of(e.orders)) {
    Cell c = evaluate(key.expression, in, filter);
    if (error_) return {};
    if (g.rows != in.space) c = keep(c, g.rows);
    out.push_back({c, key.descending, key.nulls_first});
  }
  return out;
}

// Rows in the order of their groups, those that count first, then by values; and the place of each.
Translator::Ordered Translator::ordered_rows(const Groups& g, VectorId counted, std::span<const SortKey> values) {
  Ordered out;
  std::vector<SortKey> keys;
  for (VectorId k : g.keys) keys.push_back({{k, nothing, {}}});
  if (!is_none(counted)) keys.push_back({{counted, nothing, {TypeId::boolean}}, true});
  keys.insert(keys.end(), values.begin(), values.end());
  for (SortKey& k : keys) k.cell = spread(k.cell, g.rows);
  const Bounds places = Bounds::of(0, static_cast<__int128>(g_[g.rows].most_rows));
  out.rows = permutation(g.rows, keys);
  if (is_none(out.rows)) out.rows = g_.rows(g.rows);
  out.ranks =
      g_.call("@index_a(", {g_.spread(g_.integer(whole, 0), g.rows), out.rows, g_.rows(g.rows)}, whole, g.rows, "rank", places);
  out.first = g.one || g.frame ? g_.integer(whole, 0) : reduce(g, "min", out.ranks, places);
  return out;
}

// A vector's elements at places of an order, zeros where there is none.
VectorId Translator::at_place(const Ordered& o, VectorId v, const Groups& g, VectorId place) {
  v = g_.spread(v, g.rows);
  const VectorId sorted = g_.pick(v, o.rows);
  return g_.call("@index_or(", {sorted, place, g_.zero(g_[v].type)}, g_[v].type, g_[place].space, "at", g_[v].bounds);
}

Cell Translator::quantile(const Expression& e, const Relation& in, const Groups& g) {
  const Aggregate f = e.aggregate_function;
  const Counted c = counted_of(e, in, g, 1);
  if (g.frame && !g.frame->parts.empty())
    fail("the aggregate {} in a frame with EXCLUDE has no translation", name_of(f));
  if (error_) return failed(e.type);
  const Cell& x = c.cells[0];
  const bool text = x.type.id == TypeId::varchar;
  const bool discrete = f == Aggregate::quantile_disc || f == Aggregate::quantile || text;
  const SortKey by_value[] = {{{x.value, nothing, x.type}}};
  const Ordered o = ordered_rows(g, c.rows, by_value);
  const VectorId some = g_.map("gt", {c.number, g_.integer(whole, 0)}, truth);
  const auto at = [&](VectorId place) {
    const VectorId in_order = g_.map("plus", {o.first, place}, whole);
    return at_place(o, x.value, g, g.frame ? kth_of_frame(*g.frame, o.ranks, in_order) : in_order);
  };
  const auto number = [&](int64_t n) { return g_.integer(whole, n); };
  if (discrete) {
    // n - floor((1 - q) n), from 1 on, exactly.
    const int64_t unit = 1000000000, part = std::llround(e.quantile * static_cast<double>(unit));
    const VectorId rest = whole_map("div", whole_map("mul", c.number, unit - part), unit);
    const VectorId last = g_.map("minus", {c.number, rest}, whole);
    const VectorId from_one = g_.select(g_.map("lt", {last, number(1)}, truth), number(1), last);
    return canonical(e.type, at(whole_map("minus", from_one, 1)), some);
  }
  const VectorId n = g_.select(some, whole_map("minus", c.number, 1), number(0));
  const VectorId place = g_.map("mul", {g_.cast(n, real), g_.real(real, e.quantile)}, real);
  const VectorId low = g_.cast(g_.map("floor", {place}, real), whole);
  const VectorId high = g_.cast(g_.map("ceil", {place}, real), whole);
  const VectorId part = g_.map("minus", {place, g_.cast(low, real)}, real);
  Cell a{at(low), nothing, x.type}, b{at(high), nothing, x.type};
  if (x.type.id == TypeId::date) {
    a = {micros_of(a), nothing, {TypeId::timestamp}};
    b = {micros_of(b), nothing, {TypeId::timestamp}};
  }
  if (is_floating(e.type)) {
    // The difference in the result's type, which may be FLOAT, all else in DOUBLE.
    const VectorId p = cast_cell(a, e.type).value, q = cast_cell(b, e.type).value;
    const VectorId apart = g_.cast(g_.map("minus", {q, p}, basic_of(e.type)), real);
    const VectorId step = g_.map("mul", {apart, part}, real);
    const VectorId between = g_.map("plus", {g_.cast(p, real), step}, real);
    // Infinite ends have no difference: of DOUBLE, ends that are equal, and the least number of all,
    // stay; of FLOAT only what is no step apart does.
    const BasicType made = basic_of(e.type);
    VectorId stays = g_.map("eq", {part, g_.real(real, 0)}, truth);
    if (made == BasicType::f64) {
      const VectorId is_least = g_.map("eq", {p, end_of(made, false)}, truth);
      stays = g_.or_(g_.map("eq", {p, q}, truth), g_.and_(is_least, g_.map("lt", {q, end_of(made, true)}, truth)));
    }
    const VectorId v = g_.select(stays, p, g_.cast(between, made));
    return canonical(e.type, v, some);
  }
  const bool counts = (x.type.id == TypeId::decimal && x.type == e.type) || is_timestamp(e.type) ||
                      (x.type.id == TypeId::time && x.type == e.type);
  if (!counts) {
    fail("the aggregate {} of {} has no translation", name_of(f), type_name(x.type));
    return failed(e.type);
  }
  const VectorId from = g_.cast(a.value, real), to = g_.cast(b.value, real);
  const VectorId step = g_.map("mul", {g_.map("minus", {to, from}, real), part}, real);
  const BasicType kept = g_[a.value].type;
  VectorId cut = g_.cast(g_.map("plus", {from, step}, real), kept);  // towards zero
  if (x.type.id == TypeId::decimal && x.type.width > 18) {
    // DuckDB's HUGEINT, however few bits hold them here: the difference is exact, unless it does not
    // fit, and what is cut is a part of it.
    const BasicType wide = BasicType::i128;
    const VectorId p = g_.cast(a.value, wide), q = g_.cast(b.value, wide);
    const VectorId apart = g_.map("minus", {q, p}, wide);
    const VectorId exact = g_.map("mul", {g_.cast(apart, real), part}, real);
    cut = g_.select(g_.map("lt", {apart, g_.zero(wide)}, truth), g_.cast(cut, wide),
                    g_.map("plus", {p, g_.cast(exact, wide)}, wide));
  }
  const VectorId is_one = g_.map("eq", {part, g_.real(real, 0)}, truth);
  const VectorId v = g_.select(is_one, g_.cast(a.value, g_[cut].type), cut);
  g_.change(v).bounds = x.type == e.type ? g_[x.value].bounds : Bounds{};
  return canonical(e.type, v, some);
}

// arg_min and arg_max: the first argument where the second is least or greatest, or the first or
// last of an order.
Cell Translator::argument_at(const Expression& e, const Relation& in, const Groups& g) {
  const Aggregate f = e.aggregate_function;
  const bool most = f == Aggregate::arg_max || f == Aggregate::argmax || f == Aggregate::max_by ||
                    f == Aggregate::arg_max_null;
  const bool keeps_null = f == Aggregate::arg_max_null || f == Aggregate::arg_min_null;
  Counted c = counted_of(e, in, g, keeps_null ? 0 : 2);
  if (error_) return failed(e.type);
  std::vector<SortKey> keys = keys_within(e, in, g);
  if (error_) return failed(e.type);
  if (keys.empty()) keys.push_back({{c.cells[1].value, nothing, c.cells[1].type}});
  for (SortKey& k : keys) {
    k.descending ^= most;
    k.nulls_first ^= most;
  }
  if (keeps_null && c.cells.size() == 2 && !is_none(c.cells[1].valid)) {
    c.rows = g_.and_(c.rows, c.cells[1].valid);
    c.number = reduce(g, "sum", g_.cast(g_.spread(c.rows, g.rows), whole), {});
  }
  const Ordered o = ordered_rows(g, c.rows, keys);
  VectorId valid = g_.map("gt", {c.number, g_.integer(whole, 0)}, truth);
  if (keeps_null && !is_none(c.cells[0].valid)) valid = g_.and_(valid, at_place(o, c.cells[0].valid, g, o.first));
  return canonical(e.type, at_place(o, c.cells[0].value, g, o.first), valid);
}

// first, last, any_value: the argument in the first or last row that counts.
Cell Translator::row_at(const Expression& e, const Relation& in, const Groups& g) {
  const Aggregate f = e.aggregate_function;
  const bool last = f == Aggregate::last;
  const bool keeps_null = f == Aggregate::first || f == Aggregate::arbitrary || last;
  const Counted c = counted_of(e, in, g, keeps_null ? 0 : 1);
  if (error_) return failed(e.type);
  if (f != Aggregate::last && is_none(c.rows) && !g.one) {
    const Cell x = pick(spread(c.cells[0], g.rows), g.first);
    return {x.value, x.valid, e.type};
  }
  const Bounds rows = Bounds::of(-1, static_cast<__int128>(g_[g.rows].most_rows));
  const VectorId none = g_.integer(whole, last ? int64_t{-1} : static_cast<int64_t>(g_[g.rows].most_rows));
  const VectorId numbers = g_.rows(g.rows);
  const VectorId counting = is_none(c.rows) ? numbers : g_.select(g_.spread(c.rows, g.rows), numbers, none);
  const VectorId some = g_.map("gt", {c.number, g_.integer(whole, 0)}, truth);
  const VectorId row = g_.select(some, reduce(g, last ? "max" : "min", counting, rows), g_.integer(whole, -1));
  const auto at = [&](VectorId v) {
    v = g_.spread(v, g.rows);
    return g_.call("@index_or(", {v, row, g_.zero(g_[v].type)}, g_[v].type, g_[row].space, "at", g_[v].bounds);
  };
  VectorId valid = some;
  if (keeps_null && !is_none(c.cells[0].valid)) valid = g_.and_(valid, at(c.cells[0].valid));
  return canonical(e.type, at(c.cells[0].value), valid);
}

Cell Translator::joined_texts(const Expression& e, const Relation& in, const Groups& g) {
  Expression first = e;
  first.arguments.count = 1;
  std::string separator = ",";
  if (e.arguments.count == 2) {
    const Expression& by = plan_[plan_.of(e.arguments)[1]];
    if (by.kind != Expression::constant || plan_.constants[by.index].type.id != TypeId::varchar) {
      fail("the aggregate {} has a translation with a constant separator alone", name_of(e.aggregate_function));
      return failed(e.type);
    }
    separator = plan_.constants[by.index].text;
  }
  const Counted c = counted_of(first, in, g, 1);
  if (error_) return failed(e.type);
  Cell x = c.cells[0];
  if (x.type.id != TypeId::varchar) {
    fail("the aggregate {} of {} has no translation", name_of(e.aggregate_function), type_name(x.type));
    return failed(e.type);
  }
  if (!hir::is_text(g_[x.value].type)) x = text_cell(x.type, "concat", {x});
  const std::vector<SortKey> keys = keys_within(e, in, g);
  if (error_) return failed(e.type);
  const VectorId o = permutation(g.rows, keys);
  const BasicType type = g_[x.value].type;
  VectorId texts = g_.spread(x.value, g.rows);
  VectorId counted = is_none(c.rows) ? g_.integer(truth, 1) : g_.spread(c.rows, g.rows);
  const auto join = [&](VectorId rows, SpaceId space) {
    return g_.call("@text_join(", {texts, counted, rows, g_.text(BasicType::str, separator)}, type, space, "joined");
  };
  VectorId v;
  if (g.one) {
    v = join(g_.call("@list(", {is_none(o) ? g_.rows(g.rows) : o}, whole, g_.space(1), "rows"), one_row);
  } else if (is_none(o)) {
    v = join(g.cells, g.space);
  } else {
    // Groups anew, of the rows in their order, by the numbers of their groups.
    const VectorId numbers = g_.pick(of_own_group(g, g_.rows(g.space)), o);
    texts = g_.pick(texts, o);
    counted = g_.pick(g_.spread(counted, g.rows), o);
    const Groups sorted = group(g_[o].space, {{numbers, nothing, {TypeId::bigint}}});
    const VectorId parts = join(sorted.cells, sorted.space);
    v = g_.pick(parts, scatter(g.space, g_.pick(numbers, sorted.first), g_.rows(sorted.space)));
  }
  return {v, g_.map("gt", {c.number, g_.integer(whole, 0)}, truth), e.type};
}

// The product of floats: the exponential of the sum of logarithms, whose own sum is exact, with the
// sign of as many as are below zero. Of whole numbers it is one, as far as doubles tell them apart.
Cell Translator::product(const Expression& e, const Relation& in, const Groups& g) {
  const Counted c = counted_of(e, in, g, 1);
  if (error_) return failed(e.type);
  const std::vector<Cell> given = numbers_of(e, in, g, c);
  if (error_) return failed(e.type);
  const VectorId one = g_.real(real, 1), zero = g_.real(real, 0);
  VectorId v = g_.spread(cast_cell(given[0], {TypeId::double_}).value, g.rows);
  if (!is_none(c.rows)) v = g_.select(g_.spread(c.rows, g.rows), v, one);
  const VectorId size = g_.map("exp", {reduce(g, "sum", g_.map("log", {g_.map("abs", {v}, real)}, real), {})}, real);
  // Below zero is -0.0, too, as its inverse is.
  const VectorId inverse = g_.map("div", {one, v}, real);
  const VectorId negative = g_.or_(g_.map("lt", {v, zero}, truth), g_.map("lt", {inverse, zero}, truth));
  const Bounds counts = Bounds::of(0, static_cast<__int128>(g_[g.rows].most_rows));
  const VectorId signs = whole_map("mod", reduce(g, "sum", g_.cast(g_.spread(negative, g.rows), whole), counts), 2);
  VectorId out = size;
  if (is_exact(given[0].type) && scale_of(given[0].type) == 0)
    out = g_.select(g_.map("lt", {size, g_.real(real, 0x1p52)}, truth), g_.map("round", {size}, real), size);
  out = g_.select(g_.map("eq", {signs, g_.integer(whole, 1)}, truth), g_.map("neg", {out}, real), out);
  return canonical(e.type, out, g_.map("gt", {c.number, g_.integer(whole, 0)}, truth));
}

// mode: the value that most rows of a group have, of several the one that stands first; entropy: of
// the shares that the values have, in bits. Rows alike within a group are groups of their own.
Cell Translator::frequency(const Expression& e, const Relation& in, const Groups& g) {
  const Counted c = counted_of(e, in, g, 1);
  if (error_) return failed(e.type);
  const Cell x = spread(c.cells[0], g.rows);
  std::vector<Cell> keys;
  for (VectorId k : g.keys) keys.push_back({k, nothing, {TypeId::bigint}});
  keys.push_back({x.value, nothing, x.type});
  if (!is_none(c.rows)) keys.push_back({g_.spread(c.rows, g.rows), nothing, {TypeId::boolean}});
  const Groups alike = group(g.rows, keys);
  const Bounds counts = Bounds::of(0, static_cast<__int128>(g_[g.rows].most_rows));
  const VectorId number = of_own_group(alike, reduce(alike, "len", nothing, counts));
  if (e.aggregate_function == Aggregate::mode) {
    const SortKey by[] = {{{number, nothing, {TypeId::bigint}}, true}, {{g_.rows(g.rows), nothing, {TypeId::bigint}}}};
    const Ordered o = ordered_rows(g, c.rows, by);
    return canonical(e.type, at_place(o, x.value, g, o.first), g_.map("gt", {c.number, g_.integer(whole, 0)}, truth));
  }
  // Each row has its value's part: log2(n / rows alike) / n.
  const VectorId n = g_.cast(c.number, real), all = of_own_group(g, n);
  VectorId part = g_.map("log2", {g_.map("div", {all, g_.cast(number, real)}, real)}, real);
  if (!is_none(c.rows)) part = g_.select(g_.spread(c.rows, g.rows), part, g_.real(real, 0));
  const VectorId some = g_.map("gt", {c.number, g_.integer(whole, 0)}, truth);
  const VectorId safe = g_.select(some, n, g_.real(real, 1));
  return {g_.map("div", {reduce(g, "sum", part, {}), safe}, real), nothing, e.type};
}

// Skewness and kurtosis: of powers of what lies apart from the mean, without the bias of a sample
// but for kurtosis_pop.
Cell Translator::shape(const Expression& e, const Relation& in, const Groups& g) {
  const Counted c = counted_of(e, in, g, 1);
  if (error_) return failed(e.type);
  const std::vector<Cell> given = numbers_of(e, in, g, c);
  if (error_) return failed(e.type);
  const auto number = [&](double value) { return g_.real(real, value); };
  const auto by = [&](std::string_view builtin, VectorId a, VectorId b) { return g_.map(builtin, {a, b}, real); };
  const auto counting = [&](VectorId v) {
    return is_none(c.rows) ? v : g_.select(g_.spread(c.rows, g.rows), v, number(0));
  };
  const VectorId v = counting(g_.spread(cast_cell(given[0], {TypeId::double_}).value, g.rows));
  const VectorId apart = counting(by("minus", v, mean_of(g, c, v))), square = by("mul", apart, apart);
  const bool is_skew = e.aggregate_function == Aggregate::skewness, is_sample = e.aggregate_function == Aggregate::kurtosis;
  const int64_t least = is_skew ? 3 : is_sample ? 4 : 1;
  const VectorId enough = g_.map("geq", {c.number, g_.integer(whole, least)}, truth);
  const VectorId n = g_.select(enough, g_.cast(c.number, real), number(5));
  const auto moment = [&](VectorId power) { return by("div", reduce(g, "sum", power, {}), n); };
  const VectorId m2 = moment(square), m = moment(by("mul", square, is_skew ? apart : square));
  const auto less = [&](double k) { return by("minus", n, number(k)); };
  if (is_skew) {
    const VectorId factor = by("div", g_.map("sqrt", {by("mul", n, less(1))}, real), less(2));
    const VectorId spread_out = g_.map("sqrt", {by("mul", by("mul", m2, m2), m2)}, real);
    return canonical(e.type, by("div", by("mul", factor, m), spread_out), enough);
  }
  const VectorId varies = g_.and_(enough, g_.map("gt", {m2, number(0)}, truth));
  VectorId out = by("div", m, by("mul", m2, m2));
  if (is_sample) {
    const VectorId inner = by("minus", by("mul", by("plus", n, number(1)), out), by("mul", number(3), less(1)));
    out = by("div", by("mul", less(1), inner), by("mul", less(2), less(3)));
  } else {
    out = by("minus", out, number(3));
  }
  return canonical(e.type, out, varies);
}

// count_if: null of no rows at all.
Cell Translator::count_if(const Expression& e, const Relation& in, const Groups& g) {
  const Counted c = counted_of(e, in, g, 1);
  if (error_) return failed(e.type);
  const VectorId v = g_.cast(g_.spread(g_.and_(c.rows, c.cells[0].value), g.rows), whole);
  return {reduce(g, "sum", v, Bounds::of(0, static_cast<__int128>(g_[g.rows].most_rows))),
          g_.map("gt", {c.number, g_.integer(whole, 0)}, truth), e.type};
}

}  // namespace rndn::sql
