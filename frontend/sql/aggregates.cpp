// GROUP BY, aggregates and DISTINCT.
//
// Groups have as few keys as decide them: a key that is another table's unique key at row numbers
// is those row numbers, and what row numbers of a chosen key determine is no key (functional
// dependence; Paulley, Larson, ICDE 1994, for keys of tables). A nullable key is two. Aggregates
// are written as HorseIR's reductions of the rows of each group, which the runtime fuses; nulls
// count as what changes nothing. Sums that rows times bounds do not prove to fit 64 bits are made
// of two halves. Left out: aggregates of distinct values that the planner leaves, other than count
// and what distinct does not change.
#include <algorithm>
#include <limits>

#include "frontend/sql/translator.h"

namespace rndn::sql {

using hir::BasicType;

std::optional<__int128> limit_of(BasicType type, bool greatest) {
  if (type == BasicType::boolean) return greatest;
  if (type == BasicType::date) return greatest ? INT32_MAX : INT32_MIN;
  if (!hir::is_wide(type) && (!hir::is_integer(type) || type == BasicType::character))
    return std::nullopt;
  return hir::with_stored(type, [&]<class T>() -> std::optional<__int128> {
    if constexpr (std::is_integral_v<T>)
      return greatest ? std::numeric_limits<T>::max() : std::numeric_limits<T>::min();
    return std::nullopt;
  });
}

Cell (Translator::*Translator::statistic(Aggregate f))(const Expression&, const Relation&, const Groups&) {
  switch (f) {
    case Aggregate::stddev:
    case Aggregate::stddev_samp:
    case Aggregate::stddev_pop:
    case Aggregate::variance:
    case Aggregate::var_samp:
    case Aggregate::var_pop:
    case Aggregate::covar_pop:
    case Aggregate::covar_samp:
    case Aggregate::sem:
    case Aggregate::corr: return &Translator::moments;
    case Aggregate::median:
    case Aggregate::quantile:
    case Aggregate::quantile_cont:
    case Aggregate::quantile_disc: return &Translator::quantile;
    case Aggregate::arg_min:
    case Aggregate::arg_max:
    case Aggregate::argmin:
    case Aggregate::argmax:
    case Aggregate::min_by:
    case Aggregate::max_by:
    case Aggregate::arg_min_null:
    case Aggregate::arg_max_null: return &Translator::argument_at;
    case Aggregate::first:
    case Aggregate::last:
    case Aggregate::any_value:
    case Aggregate::arbitrary: return &Translator::row_at;
    case Aggregate::regr_count:
    case Aggregate::regr_avgx:
    case Aggregate::regr_avgy:
    case Aggregate::regr_sxx:
    case Aggregate::regr_syy:
    case Aggregate::regr_sxy:
    case Aggregate::regr_slope:
    case Aggregate::regr_intercept:
    case Aggregate::regr_r2: return &Translator::regression;
    case Aggregate::bit_and:
    case Aggregate::bit_or:
    case Aggregate::bit_xor: return &Translator::bits_of_all;
    case Aggregate::string_agg:
    case Aggregate::group_concat:
    case Aggregate::listagg: return &Translator::joined_texts;
    case Aggregate::product: return &Translator::product;
    case Aggregate::mode:
    case Aggregate::entropy: return &Translator::frequency;
    case Aggregate::skewness:
    case Aggregate::kurtosis:
    case Aggregate::kurtosis_pop: return &Translator::shape;
    case Aggregate::count_if:
    case Aggregate::countif: return &Translator::count_if;
    default: return nullptr;
  }
}

// Does no other row have the same cells?
bool Translator::tell_apart(SpaceId space, const std::vector<Cell>& cells) {
  std::vector<VectorId> vectors;
  for (const Cell& c : cells)
    if (is_none(c.valid)) vectors.push_back(c.value);
  return space != one_row && g_.tell_apart(space, vectors);
}

Translator::Groups Translator::group(SpaceId rows, const std::vector<Cell>& keys) {
  std::vector<VectorId> chosen;
  const auto add = [&](VectorId v) {
    if (g_[v].space == one_row) return;
    if (g_[v].kind == Vector::picked && g_[g_[v].arguments[0]].unique) v = g_[v].arguments[1];
    for (VectorId c : chosen)
      if (g_.determines(c, v)) return;
    std::erase_if(chosen, [&](VectorId c) { return g_.determines(v, c); });
    chosen.push_back(v);
  };
  for (const Cell& key : keys) {
    for (VectorId v : words_of(comparable(key).value)) add(v);
    if (!is_none(key.valid)) add(key.valid);
  }
  if (chosen.empty()) chosen.push_back(g_.spread(keys[0].value, rows));
  Groups g;
  g.rows = rows;
  g.keys = chosen;
  g.space = g_.space(g_[rows].most_rows);
  const VectorId key =
      chosen.size() == 1 ? chosen[0] : g_.call("@list(", chosen, BasicType::i64, rows, "keys");
  const VectorId groups = g_.call("@group(", {key}, BasicType::i64, one_row, "groups");
  const Bounds positions = Bounds::of(0, static_cast<__int128>(g_[rows].most_rows));
  // The same keys of the same rows are the same groups, and their first space stays.
  g.first = g_.call("@keys(", {groups}, BasicType::i64, g.space, "first", positions);
  g.space = g_[g.first].space;
  g_.change(g.first).unique = true;
  g_.set_witness(g.space, g.first);
  g.cells = g_.call("@values(", {groups}, BasicType::i64, g.space, "rows");
  if (chosen.size() == 1 && rows != one_row) g_.change(g_.pick(chosen[0], g.first)).unique = true;
  // What was chosen tells groups apart together.
  std::vector<VectorId> identity;
  for (VectorId v : chosen) identity.push_back(g_.pick(v, g.first));
  g_.add_identity(g.space, std::move(identity));
  return g;
}

bool Translator::Groups::may_be_empty() const {
  return one || (frame && !is_none(frame->some));
}

// sum, min, .. of a vector for each group.
VectorId Translator::reduce(const Groups& g, std::string_view builtin, VectorId v, Bounds bounds) {
  const BasicType type = builtin == "len" ? BasicType::i64 : g_[v].type;
  if (g.frame) return reduce_frame(*g.frame, builtin, v, bounds);
  if (g.one)
    return g_.call(fmt::format("@{}(", builtin), {g_.spread(v, g.rows)}, type, one_row, builtin,
                   bounds);
  VectorId cells = g.cells;
  if (builtin != "len")
    cells =
        g_.call("@each_right(@index, ", {g_.spread(v, g.rows), g.cells}, type, g.space, "cells");
  const VectorId each =
      g_.call(fmt::format("@each(@{}, ", builtin), {cells}, type, g.space, "each");
  return g_.call("@raze(", {each}, type, g.space, builtin, bounds);
}

// For each row the value of its group: groups are runs of the rows in their order, and where runs
// begin is counted.
VectorId Translator::of_own_group(const Groups& g, VectorId v) {
  if (g.one || g.frame || g_[v].space == one_row) return v;
  const BasicType whole = BasicType::i64;
  const Bounds numbers = Bounds::of(0, static_cast<__int128>(g_[g.rows].most_rows));
  const VectorId rows = g_.call("@raze(", {g.cells}, whole, g_.space(g_[g.rows].most_rows),
                                "rows_by_group", numbers);
  g_.change(rows).unique = true;
  g_.set_witness(g_[rows].space, rows);
  const auto everywhere = [&](SpaceId s) { return g_.spread(g_.integer(BasicType::boolean, 0), s); };
  const VectorId sizes = reduce(g, "len", nothing, numbers);
  const VectorId begins = g_.map(
      "minus", {scan("sum", sizes, everywhere(g.space), numbers), sizes}, whole, numbers);
  const VectorId heads = g_.call(
      "@index_a(", {everywhere(g_[rows].space), begins, g_.integer(BasicType::boolean, 1)},
      BasicType::boolean, g_[rows].space, "heads");
  const VectorId number =
      g_.map("minus", {scan("sum", heads, everywhere(g_[rows].space), numbers),
                       g_.integer(whole, 1)}, whole, numbers);
  return g_.pick(v, scatter(g.rows, rows, number));
}

// A sum in 128 bits: of quotients and of remainders by 2^32 (of more than 2^31 rows by 2^31, which
// no space's 2^32 rows exceed), again and again until 64 bits hold the sums, put together for each
// group. `fits`: where the sum has not left 128 bits; null: it is proved.
VectorId Translator::wide_sum(const Groups& g, VectorId v, Bounds each, Bounds counts,
                              VectorId* fits) {
  if ((each * counts).fits_i64())
    return g_.cast(reduce(g, "sum", g_.cast(v, BasicType::i64), each * counts), BasicType::i128);
  constexpr __int128 half = __int128{1} << 31;
  const __int128 word = counts.most > half ? half : half * 2;
  const Bounds rest = Bounds::of(each.least < 0 ? 1 - word : 0, each.most > 0 ? word - 1 : 0);
  const BasicType type = g_[v].type;
  const VectorId by = g_.integer(type, word);
  const Bounds quotients = Bounds::of(each.least / word, each.most / word);
  const VectorId high = g_.map("div", {v, by}, type, quotients);
  const VectorId low = hir::is_wide(type)
                           ? g_.map("minus", {v, g_.map("mul", {high, by}, type)}, type, rest)
                           : g_.map("mod", {v, by}, type, rest);
  VectorId inner = nothing;
  const VectorId above = wide_sum(g, high, quotients, counts, fits ? &inner : nullptr);
  const VectorId scaled = g_.map("mul", {above, g_.integer(BasicType::i128, word)}, BasicType::i128);
  const VectorId below = wide_sum(g, low, rest, counts);
  const VectorId sum = g_.map("plus", {scaled, below}, BasicType::i128, each * counts);
  if (fits && !(each * counts).known) {
    const __int128 most = ~(__int128{1} << 127) / word;
    *fits = g_.and_(g_.and_(inner, within(above, {}, Bounds::of(-most, most))),
                    unwrapped("plus", scaled, below, sum));
  }
  return sum;
}

Cell Translator::aggregate_cell(const Expression& e, const Relation& in, const Groups& g) {
  const PlaceScope scope(place_, e.place);
  const Aggregate f = e.aggregate_function;
  if (const auto rule = statistic(f)) {
    const bool of_frames = rule == &Translator::moments || rule == &Translator::quantile ||
                           rule == &Translator::count_if;
    if (!g.frame || of_frames) return (this->*rule)(e, in, g);
    fail("the aggregate {} of a window has no translation", name_of(f));
    return failed(e.type);
  }
  const double most_rows = g_[g.rows].most_rows;
  const Bounds counts = Bounds::of(0, static_cast<__int128>(most_rows));
  const auto refuse = [&](std::string_view why) {
    fail("the aggregate {} {} has no translation", name_of(f), why);
    return failed(e.type);
  };
  // Rows that count, in the rows of the groups; none: all.
  const VectorId filtered = is_none(e.filter) ? nothing : evaluate(e.filter, in).value;
  VectorId counted = filtered;
  if (!is_none(counted) && g.rows != in.space) counted = g_.keep(g.rows, counted);
  Cell x;
  if (f != Aggregate::count_star) {
    x = evaluate(plan_.of(e.arguments)[0], in, filtered);
    if (error_) return failed(e.type);
    if (g.rows != in.space) x = keep(x, g.rows);
    counted = g_.and_(counted, x.valid);
  }
  if (!is_none(counted) && g_.is_true(counted)) counted = nothing;
  counted = g_.and_(counted, g.once);
  const bool distinct_values = e.distinct && is_none(g.once);
  const auto number_of_counted = [&] {
    if (is_none(counted)) return g.one ? g_.count(g.rows) : reduce(g, "len", nothing, counts);
    return reduce(g, "sum", g_.cast(counted, BasicType::i64), counts);
  };
  // Null where no row counts; `is_zero`: the value is zero there by itself.
  const auto unless_empty = [&](VectorId v, bool is_zero = false) {
    if (!g.may_be_empty() && is_none(counted)) return Cell{v, nothing, e.type};
    const VectorId some =
        g_.map("gt", {number_of_counted(), g_.integer(BasicType::i64, 0)}, BasicType::boolean);
    return is_zero ? Cell{v, some, e.type} : canonical(e.type, v, some);
  };
  const auto zero_under_null = [&](VectorId v) {
    return is_none(counted) ? v : g_.select(g_.spread(counted, g.rows), v, g_.zero(g_[v].type));
  };
  const auto sum = [&](Type type) {
    if (hir::is_float(g_[x.value].type))
      return reduce(g, "sum", zero_under_null(g_.cast(x.value, BasicType::f64)), {});
    const VectorId v =
        zero_under_null(g_.cast(x.value, hir::widest(g_[x.value].type, BasicType::i64)));
    Bounds each = rndn::sql::join(g_[v].bounds, Bounds::of(0, 0));
    if (!each.known) {
      constexpr __int128 most = ~(__int128{1} << 127);
      each = hir::is_wide(g_[v].type) ? within_type(Bounds::of(-most, most), x.type)
                                      : Bounds::of(INT64_MIN, INT64_MAX);
    }
    const Bounds exact = each * counts, total = within_type(exact, type);
    if (total.fits_i64() && !hir::is_wide(g_[v].type)) return reduce(g, "sum", v, total);
    VectorId fits = nothing;
    const VectorId wide = wide_sum(g, v, each, counts, &fits);
    return checked(wide, exact, {}, type, fmt::format("the aggregate {}", name_of(f)), fits);
  };
  if (distinct_values && f != Aggregate::count && f != Aggregate::min && f != Aggregate::max)
    return refuse("of distinct values");
  switch (f) {
    case Aggregate::count_star:
    case Aggregate::count:
    case Aggregate::approx_count_distinct: {
      const bool is_distinct = distinct_values || f == Aggregate::approx_count_distinct;
      if (!is_distinct) return {number_of_counted(), nothing, e.type};
      if (g.frame) return refuse("of distinct values in a window");
      VectorId value = g_.spread(comparable(x).value, g.rows);
      if (words_of(value).size() > 1) {  // each value's number
        const Groups alike = group(g.rows, {{value, nothing, x.type}});
        value = of_own_group(alike, g_.rows(alike.space));
      }
      const VectorId v = zero_under_null(value);
      // Without the zero that only rows that do not count have.
      const auto less_zero = [&](VectorId n) {
        if (is_none(counted)) return Cell{n, nothing, e.type};
        const VectorId zeros = g_.map("eq", {v, g_.zero(g_[v].type)}, BasicType::boolean);
        const VectorId only = g_.and_(reduce(g, "any", g_.not_(g_.spread(counted, g.rows)), {}),
                                      g_.not_(reduce(g, "any", g_.and_(zeros, counted), {})));
        return Cell{g_.map("minus", {n, g_.cast(only, BasicType::i64)}, BasicType::i64, counts), nothing, e.type};
      };
      if (g.one)
        return less_zero(g_.call("@len(", {g_.call("@unique(", {v}, BasicType::i64, g_.space(most_rows), "distinct")},
                                 BasicType::i64, one_row, "count", counts));
      const VectorId cells =
          g_.call("@each_right(@index, ", {v, g.cells}, g_[v].type, g.space, "cells");
      const VectorId distinct =
          g_.call("@each(@unique, ", {cells}, BasicType::i64, g.space, "distinct");
      const VectorId each = g_.call("@each(@len, ", {distinct}, BasicType::i64, g.space, "each");
      return less_zero(g_.call("@raze(", {each}, BasicType::i64, g.space, "count", counts));
    }
    case Aggregate::sum:
    case Aggregate::sum_no_overflow:
    case Aggregate::fsum:
    case Aggregate::kahan_sum:
    case Aggregate::sumkahan: {
      if (!hir::is_ordered_number(g_[x.value].type) || x.type.id == TypeId::interval)
        return refuse(fmt::format("of {}", type_name(x.type)));
      return unless_empty(sum(e.type), true);
    }
    case Aggregate::avg:
    case Aggregate::mean:
    case Aggregate::favg: {
      if (!hir::is_ordered_number(g_[x.value].type) || e.type.id != TypeId::double_ || x.type.id == TypeId::interval)
        return refuse(fmt::format("of {}", type_name(x.type)));
      const bool exact = !hir::is_float(g_[x.value].type);
      const Cell total{exact ? sum({TypeId::hugeint}) : sum(e.type), nothing,
                       exact ? Type{TypeId::decimal, 38, x.type.scale} : e.type};
      const Cell whole = exact ? cast_cell(total, e.type) : total;
      return unless_empty(g_.map("div", {whole.value, g_.cast(number_of_counted(), BasicType::f64)},
                                 BasicType::f64));
    }
    case Aggregate::min:
    case Aggregate::max: {
      const bool is_min = f == Aggregate::min;
      const std::string_view builtin = is_min ? "min" : "max";
      const VectorId v = g_.spread(x.value, g.rows);
      const BasicType type = g_[v].type;
      if (hir::is_text(type) || hir::is_wide(type)) {
        // By ranks: the place of each row in the order, those without a value last or first of all.
        const Cell value{v, nothing, x.type};
        if (g.one) {
          const SpaceId counting = is_none(counted) ? g.rows : g_.kept(g.rows, counted);
          const VectorId values = is_none(counted) ? v : g_.keep(counting, v);
          const SortKey keys[] = {{{values, nothing, x.type}, !is_min}};
          return unless_empty(g_.call("@take(1:i64, ", {g_.pick(values, permutation(counting, keys))},
                                      type, one_row, builtin));
        }
        std::vector<SortKey> keys{{value}};
        if (!is_none(counted))
          keys.insert(keys.begin(), {{g_.spread(counted, g.rows), nothing, boolean_type}, is_min});
        const VectorId o = permutation(g.rows, keys);
        const VectorId ranks = g_.call(
            "@index_a(", {g_.spread(g_.integer(BasicType::i64, 0), g.rows), o, g_.rows(g.rows)},
            BasicType::i64, g.rows, "rank", counts);
        return unless_empty(g_.pick(g_.pick(v, o), reduce(g, builtin, ranks, counts)));
      }
      VectorId values = v;
      if (!is_none(counted)) {
        const VectorId beyond = end_of(type, is_min);
        if (is_none(beyond)) return refuse(fmt::format("of nullable {}", type_name(x.type)));
        values = g_.select(counted, v, beyond);
      }
      VectorId found = reduce(g, builtin, values, g_[v].bounds);
      if (const VectorId nan = hir::is_float(type) ? is_nan(v) : nothing; !is_none(nan)) {
        // NaN is above all numbers: the greatest where one counts, the least where all that count are.
        const VectorId nans = reduce(g, "sum", g_.cast(g_.and_(nan, is_none(counted) ? counted : g_.spread(counted, g.rows)), BasicType::i64), counts);
        const VectorId is_it =
            is_min ? g_.map("eq", {nans, number_of_counted()}, BasicType::boolean)
                   : g_.map("gt", {nans, g_.integer(BasicType::i64, 0)}, BasicType::boolean);
        found = g_.select(is_it, g_.map("div", {g_.real(type, 0), g_.real(type, 0)}, type), found);
      }
      return unless_empty(found);
    }
    case Aggregate::bool_and:
    case Aggregate::bool_or: {
      if (g_[x.value].type != BasicType::boolean)
        return refuse(fmt::format("of {}", type_name(x.type)));
      const bool all = f == Aggregate::bool_and;
      VectorId v = x.value;
      if (!is_none(counted)) v = all ? g_.or_(v, g_.not_(counted)) : g_.and_(v, counted);
      return unless_empty(reduce(g, all ? "all" : "any", g_.spread(v, g.rows), {}));
    }
    default: break;
  }
  return failed(e.type);
}

Relation Translator::aggregate_set(const Node& n, const Relation& in,
                                   std::span<const uint32_t> set) {
  const std::span<const ExpressionId> keys = plan_.of(n.groups);
  Relation out;
  std::vector<Cell> chosen;
  for (uint32_t k : set) chosen.push_back(evaluate(keys[k], in));
  // Rows that a key tells apart are groups already.
  if (n.expressions.count == 0 && n.set_count == 0 && n.grouping_count == 0 && tell_apart(in.space, chosen)) {
    out = in;
    out.columns = chosen;
    return out;
  }
  Groups g;
  const SpaceId rows = is_none(in.mask) ? in.space : g_.kept(in.space, in.mask);
  if (set.empty()) {
    g.one = true;
    g.rows = rows;
  } else {
    for (Cell& c : chosen)
      if (rows != in.space) c = keep(c, rows);
    g = group(rows, chosen);
    out.space = g.space;
  }
  for (size_t k = 0; k < keys.size(); ++k) {
    const auto at = std::find(set.begin(), set.end(), k);
    if (at == set.end()) {  // null, stored as the key is in other sets
      const Cell key = evaluate(keys[k], in);
      out.columns.push_back({g_.zero(g_[key.value].type), g_.integer(BasicType::boolean, 0), key.type});
      continue;
    }
    out.columns.push_back(pick(chosen[static_cast<size_t>(at - set.begin())], g.first));
  }
  for (ExpressionId e : plan_.of(n.expressions)) {
    const Expression& x = plan_[e];
    if (x.kind != Expression::aggregate) {
      fail("an aggregation holds what is no aggregate");
      return out;
    }
    out.columns.push_back(aggregate_cell(x, in, g));
    if (error_) return out;
  }
  // GROUPING: a bit for each of its keys, the last the lowest, which is set where the set has it not.
  std::span<const uint32_t> groupings = plan_.of(n.groupings);
  for (uint32_t i = 0; i < n.grouping_count; ++i) {
    int64_t bits = 0;
    for (uint32_t k : groupings.subspan(1, groupings[0]))
      bits = 2 * bits + (std::find(set.begin(), set.end(), k) == set.end());
    out.columns.push_back({g_.integer(BasicType::i64, bits), nothing, {TypeId::bigint}});
    groupings = groupings.subspan(1 + groupings[0]);
  }
  return out;
}

Relation Translator::aggregate(const Node& n) {
  if (std::optional<Relation> grouped = grouped_below_join(n)) return *std::move(grouped);
  if (error_) return {};
  Relation in = relation(plan_.of(n.children)[0]);
  if (!error_) reduce_rows(in, n);
  if (error_) return {};
  if (n.set_count == 0) {
    std::vector<uint32_t> all(n.groups.count);
    for (uint32_t k = 0; k < n.groups.count; ++k) all[k] = k;
    return aggregate_set(n, in, all);
  }
  std::vector<Relation> parts;
  std::span<const uint32_t> sets = plan_.of(n.sets);
  for (uint32_t s = 0; s < n.set_count; ++s) {
    parts.push_back(aggregate_set(n, in, sets.subspan(1, sets[0])));
    sets = sets.subspan(1 + sets[0]);
  }
  return append(std::move(parts));
}

// The first row of each key; DISTINCT ON's order decides which that is.
Relation Translator::distinct(const Node& n) {
  Relation r = compact(relation(plan_.of(n.children)[0]));
  if (error_ || r.space == one_row) return r;
  if (n.distinct_on && n.orders.count > 0)
    if (const VectorId rows = permutation(r, plan_.of(n.orders)); !is_none(rows)) pick(r, rows);
  std::vector<Cell> keys;
  for (ExpressionId e : plan_.of(n.groups)) keys.push_back(evaluate(e, r));
  if (keys.empty()) keys = r.columns;
  if (tell_apart(r.space, keys)) return r;
  const Groups g = group(r.space, keys);
  pick(r, g.first);
  return r;
}

}  // namespace rndn::sql
