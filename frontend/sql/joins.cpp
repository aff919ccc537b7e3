// Joins: by row numbers where a key is unique, by value else.
//
// 1. Look-up. One side's key is unique, and the other's says at which row it stands: a foreign key
//    is the key picked at row numbers (scans.cpp), and a key that ascends by one from row to row
//    stands at `key - least`. Then the rows of the other side stay what they are: columns are
//    picked at those row numbers when they are read, filters become part of the mask.
// 2. Lifting. Where a side's key is a table's unique key picked at row numbers, such as the key of
//    a grouping, its columns are scattered over that table's rows as they are read, and 1. applies.
//    SEMI, ANTI and MARK need only the scattered mask, so the key may stand there many times.
// 3. Pairs. Else `join_index` gives pairs of rows for all comparisons of columns; keys that are
//    picked from one unique vector are compared by their row numbers. Membership of one key is
//    `member`; what is in a set that the same column made by a condition on itself alone is what
//    meets that condition (a subquery over the rows of the query around it).
//
// What is left of the condition is a mask over what was joined. Outer joins append the rows that
// found none, whose other side's columns are zeros under false. Null keys meet nothing, but nulls
// where the condition is IS NOT DISTINCT FROM.
// A scalar subquery is LEFT of which each row finds one row at most, which is required where keys
// do not prove it.
#include <algorithm>

#include "frontend/sql/translator.h"

namespace rndn::sql {

using hir::BasicType;

namespace {

std::string_view comparison_of(Function f) {
  switch (f) {
    case Function::equal:
    case Function::not_distinct_from: return "eq";
    case Function::not_equal: return "neq";
    case Function::less: return "lt";
    case Function::greater: return "gt";
    case Function::at_most: return "leq";
    case Function::at_least: return "geq";
    default: return "";
  }
}

// NaN is above all numbers and equal to itself, which `join_index` does not know: such orders are filters.
bool may_be_nan(const Cell& x, const Cell& y) { return is_floating(x.type) || is_floating(y.type); }

}  // namespace

Function Translator::mirror_of(Function f) {
  switch (f) {
    case Function::less: return Function::greater;
    case Function::greater: return Function::less;
    case Function::at_most: return Function::at_least;
    case Function::at_least: return Function::at_most;
    default: return f;
  }
}

// The same condition with its sides exchanged.
Translator::On Translator::swapped(const On& on) {
  On out = on;
  std::swap(out.left, out.right);
  out.swapped = !on.swapped;
  for (Condition& c : out.conditions) {
    std::swap(c.left, c.right);
    c.comparison = mirror_of(c.comparison);
  }
  return out;
}

// Does the relation have rows? None: always.
VectorId Translator::has_rows(const Relation& r) {
  if (is_none(r.mask))
    return r.space == one_row ? nothing
                              : g_.map("gt", {g_.count(r.space), g_.integer(BasicType::i64, 0)}, BasicType::boolean);
  return g_[r.mask].space == one_row ? g_.and_(r.mask, has_rows({r.space, nothing, {}}))
                                     : g_.call("@any(", {r.mask}, BasicType::boolean, one_row, "any");
}

// What a condition compares, over the columns of each side. Nothing of a side fails where the other
// has no rows. (In DuckDB nothing of the side that it looks rows up for; estimates choose it.)
std::pair<Cell, Cell> Translator::compared(const Condition& c, const Relation& left, const Relation& right) {
  const auto value = [&](ExpressionId e, const Relation& own, const Relation& other) {
    const size_t before = demands_;
    const Cell all = evaluate(e, own);
    return demands_ == before || error_ ? all : evaluate(e, own, has_rows(other));
  };
  const Cell x = value(c.left, left, right);
  return {x, value(c.right, right, left)};
}

// The conditions that are equalities, over the columns of each side.
std::vector<Translator::Key> Translator::keys_of(const On& on, const Relation& left,
                                                 const Relation& right) {
  std::vector<Key> keys;
  if (on.every_column)
    for (size_t c = 0; c < on.left; ++c) keys.push_back({left.columns[c], right.columns[c], true});
  for (const Condition& c : on.conditions) {
    if (!is_equality(c.comparison)) continue;
    const auto [x, y] = compared(c, left, right);
    Key key{x, y, c.comparison == Function::not_distinct_from};
    if (error_) return keys;
    keys.push_back(key);
  }
  for (Key& k : keys) {
    k.left = comparable(k.left);
    k.right = comparable(k.right);
    if (g_[k.left.value].type != g_[k.right.value].type) unify(k.left, k.right);
  }
  if (error_) return keys;
  // NaN meets NaN: zeros that a key beside them tells from other zeros.
  for (size_t k = 0, all = keys.size(); k < all; ++k) {
    if (!hir::is_float(g_[keys[k].left.value].type)) continue;
    const VectorId nans[] = {is_nan(keys[k].left.value), is_nan(keys[k].right.value)};
    if (is_none(nans[0]) || is_none(nans[1])) continue;
    Key flags{{nans[0], keys[k].left.valid, boolean_type},
              {nans[1], keys[k].right.valid, boolean_type},
              keys[k].nulls_equal};
    for (Cell* c : {&keys[k].left, &keys[k].right}) {
      const VectorId nan = nans[c == &keys[k].right];
      c->value = g_.select(nan, g_.zero(g_[c->value].type), c->value);
    }
    keys.push_back(flags);
  }
  return keys;
}

// The condition, but the equality `but` and what `join_index` has looked at where `paired`, as
// filters of what is joined: left's columns, then right's. `counted`: rows that may fail, of those
// that are joined; none: all.
void Translator::residual(Relation& joined, const On& on, size_t but, bool paired,
                          VectorId counted) {
  const std::span<const Cell> all = joined.columns;
  // Of rows that are joined so far.
  const auto value = [&](ExpressionId e, std::span<const Cell> columns) {
    return evaluate(e, Relation{joined.space, joined.mask, {columns.begin(), columns.end()}},
                    counted);
  };
  size_t at = 0;
  for (const Condition& c : on.conditions) {
    if (is_equality(c.comparison) && (at++ == but || paired)) continue;
    const std::string_view builtin = comparison_of(c.comparison);
    const Cell x = value(c.left, all.first(on.left)), y = value(c.right, all.subspan(on.left));
    if (error_) return;
    if (paired && !builtin.empty() && !may_be_nan(x, y)) continue;
    if (c.comparison == Function::not_distinct_from)
      filter(joined, equal_cells(x, y));
    else if (c.comparison == Function::distinct_from)
      filter(joined, {g_.not_(equal_cells(x, y).value), nothing, boolean_type});
    else if (!builtin.empty())
      filter(joined, compare_cells(builtin, x, y));
    else
      fail("the join condition {} has no translation", name_of(c.comparison));
  }
  std::vector<Cell> columns = joined.columns;  // as the plan counts them
  if (on.swapped)
    std::rotate(columns.begin(), columns.begin() + static_cast<ptrdiff_t>(on.left), columns.end());
  filter(joined, on.others, columns, counted);
}

// If `value` is a unique vector picked at row numbers (or such a vector itself): that vector, and
// the row numbers (none: all rows).
VectorId Translator::base_key(VectorId value, VectorId& rows) const {
  rows = nothing;
  value = narrow(value);
  const Vector& v = g_[value];
  if (v.kind == Vector::picked && g_[v.arguments[0]].unique) {
    rows = v.arguments[1];
    return v.arguments[0];
  }
  return v.unique ? value : nothing;
}

// Where `set` has the values that x itself has at the rows of a mask, and the mask is a function of
// x: that mask, which then holds for a row where x is in the set. NaN and -0.0 equal what they are not.
VectorId Translator::own_mask(VectorId x, VectorId set) const {
  if (hir::is_float(g_[x].type)) return nothing;
  if (g_[set].kind == Vector::picked && g_[g_[set].arguments[1]].head == "@keys(") {
    // Keys of groups have every value of what is grouped.
    const VectorId groups = g_[g_[set].arguments[1]].arguments[0];
    set = g_[set].arguments[0];
    if (g_[groups].arguments[0] != set) return nothing;
  }
  if (g_[set].kind != Vector::kept || g_[set].arguments[1] != x) return nothing;
  const VectorId mask = g_[set].arguments[0];
  return g_.determines(x, mask) ? mask : nothing;
}

// The integers before they were made wider.
VectorId Translator::narrow(VectorId value) const {
  const auto is_cast = [&](const Vector& v) {
    return v.head == "check_cast(" && hir::is_integer(v.type) &&
           hir::is_integer(g_[v.arguments[0]].type) &&
           g_[v.arguments[0]].type != BasicType::boolean;
  };
  while (is_cast(g_[value])) value = g_[value].arguments[0];
  return value;
}

// At which row of `key`'s space each element of `value` stands; none where that is not known
// without a search. `matched`: where it stands at any.
std::optional<Lookup> Translator::rows_of_key(VectorId value, VectorId key) {
  Lookup out;
  value = narrow(value);
  key = narrow(key);
  if (value == key) return out;
  const Vector k = g_[key];
  if (g_[value].kind == Vector::picked && g_[value].arguments[0] == key) {
    out.rows = g_[value].arguments[1];
    return out;
  }
  if (!k.dense || !hir::is_integer(g_[value].type) || g_[value].space == one_row)
    return std::nullopt;
  // In a type that has the key's bounds.
  if (!k.bounds.within(limit_of(g_[value].type, false).value_or(0),
                       limit_of(g_[value].type, true).value_or(0)))
    value = g_.cast(value, hir::widest(g_[value].type, k.type));
  const Vector v = g_[value];
  const Bounds places = Bounds::of(0, k.bounds.most - k.bounds.least);
  const BasicType type = hir::widest(v.type, hir::widest(fitting(k.bounds), fitting(places)));
  value = g_.cast(value, type);
  const VectorId least = g_.integer(type, k.bounds.least), most = g_.integer(type, k.bounds.most);
  if (!v.bounds.known || v.bounds.least < k.bounds.least || v.bounds.most > k.bounds.most)
    out.matched = g_.and_(g_.map("geq", {value, least}, BasicType::boolean),
                          g_.map("leq", {value, most}, BasicType::boolean));
  VectorId rows = g_.map("minus", {value, least}, type, places);
  if (!is_none(out.matched)) rows = g_.select(out.matched, rows, g_.integer(type, 0));
  out.rows = rows;
  return out;
}

// For the rows of `from`, where `to`'s key is unique.
std::optional<Lookup> Translator::look_up(const Cell& key, const Cell& to_key) {
  if (!g_[to_key.value].unique || !is_none(to_key.valid)) return std::nullopt;
  std::optional<Lookup> l = rows_of_key(key.value, to_key.value);
  if (l) l->matched = g_.and_(l->matched, key.valid);
  return l;
}

VectorId Translator::scatter(SpaceId table, VectorId rows, VectorId value) {
  const VectorId zeros = g_.spread(g_.zero(g_[value].type), table);
  return g_.call("@index_a(", {zeros, rows, value}, g_[value].type, table, g_[value].hint,
                 rndn::sql::join(g_[value].bounds, Bounds::of(0, 0)));
}

// Which rows of the table stand in `rows`, row numbers of a space, where the mask holds (none: everywhere).
VectorId Translator::marks(SpaceId table, SpaceId space, VectorId mask, VectorId rows) {
  const SpaceId kept = is_none(mask) ? space : g_.kept(space, mask);
  if (kept != space) rows = g_.keep(kept, rows);
  return scatter(table, rows, g_.integer(BasicType::boolean, 1));
}

// The unique key of a table at whose rows both keys are known to stand, and those rows; none: there
// is no such table.
VectorId Translator::common_base(VectorId x, VectorId y, Lookup& x_rows, Lookup& y_rows) {
  VectorId rows = nothing;
  for (VectorId base : {base_key(x, rows), base_key(y, rows)}) {
    if (is_none(base) || g_[base].space == one_row) continue;
    const std::optional<Lookup> a = rows_of_key(x, base), b = rows_of_key(y, base);
    if (!a || !b) continue;
    x_rows = *a;
    y_rows = *b;
    return base;
  }
  return nothing;
}

// Makes `to` a relation of the table of whose unique key its own key takes values; false: it is
// not, or stands there twice.
bool Translator::lift(Relation& to, Cell& key, const Cell& from_key) {
  if (!g_[key.value].unique || !is_none(key.valid) || to.space == one_row) return false;
  Lookup at, from;
  const VectorId base = common_base(key.value, from_key.value, at, from);
  if (is_none(base) || is_none(at.rows)) return false;
  to.mask = g_.and_(to.mask, at.matched);
  const Relation close = compact(to);
  const VectorId rows = close.space == to.space ? at.rows : g_.keep(close.space, at.rows);
  Relation out;
  out.space = g_[base].space;
  out.mask = scatter(out.space, rows, g_.integer(BasicType::boolean, 1));
  for (const Cell& c : close.columns) {
    const auto scattered = [&](VectorId v) {
      return g_[v].space == one_row ? v : scatter(out.space, rows, v);
    };
    out.columns.push_back(
        {scattered(c.value), is_none(c.valid) ? nothing : scattered(c.valid), c.type});
  }
  to = std::move(out);
  key.value = base;
  return true;
}

// `to` for the rows of the other side.
void Translator::looked_up(Relation& to, const Lookup& l) {
  if (!is_none(l.rows)) {
    if (!is_none(to.mask)) to.mask = g_.pick(to.mask, l.rows);
    pick(to, l.rows);
  }
  to.mask = g_.and_(to.mask, l.matched);
}

// Finds a key by which the rows of `to` are looked up for those of `from`; `to` becomes what it
// gives for them. `at`: which key.
bool Translator::look_up_any(Relation& to, std::vector<Key>& keys, bool swapped, bool lifting,
                             size_t& at) {
  for (at = 0; at < keys.size(); ++at) {
    const Cell& from_key = swapped ? keys[at].right : keys[at].left;
    Cell to_key = swapped ? keys[at].left : keys[at].right;
    if (keys[at].nulls_equal && (!is_none(from_key.valid) || !is_none(to_key.valid))) continue;
    if (lifting && !lift(to, to_key, from_key)) continue;
    if (const std::optional<Lookup> l = look_up(from_key, to_key)) {
      looked_up(to, *l);
      return true;
    }
  }
  return false;
}

Relation Translator::cross(const Relation& a, const Relation& b) {
  if (a.space == one_row || b.space == one_row) return side_by_side(a, b);
  Relation left = compact(a), right = compact(b);
  const Pairs all = pairs(left, right, {}, {});
  if (error_) return {};
  pick(left, all.left);
  pick(right, all.right);
  return side_by_side(left, right);
}

// Pairs of rows of two compact relations for which all comparisons of columns hold; without
// comparisons all pairs.
Translator::Pairs Translator::pairs(const Relation& left, const Relation& right,
                                    const std::vector<Key>& keys, const On& on) {
  struct Column {
    std::string_view builtin;
    VectorId left, right;
  };
  std::vector<Column> columns;
  VectorId left_valid = nothing,
           right_valid = nothing;  // where keys that nulls do not meet are there
  const auto compare = [&](std::string_view builtin, Cell x, Cell y, bool nulls_equal) {
    if (nulls_equal && !(is_none(x.valid) && is_none(y.valid))) {
      columns.push_back({"eq", valid_of(x), valid_of(y)});
    } else {
      left_valid = g_.and_(left_valid, x.valid);
      right_valid = g_.and_(right_valid, y.valid);
    }
    VectorId p = nothing, q = nothing;
    const VectorId base = base_key(x.value, p);
    if (builtin == "eq" && !is_none(base) && base == base_key(y.value, q) && !is_none(p) &&
        !is_none(q)) {
      columns.push_back({builtin, p, q});
    } else if (builtin == "eq") {
      const std::vector<VectorId> a = words_of(x.value), b = words_of(y.value);
      if (a.size() == b.size())
        for (size_t i = 0; i < a.size(); ++i) columns.push_back({builtin, a[i], b[i]});
      else
        columns.push_back({builtin, x.value, y.value});
    } else {
      columns.push_back({builtin, x.value, y.value});
    }
  };
  for (const Key& k : keys) {
    Cell x = k.left, y = k.right;
    unify(x, y);
    compare("eq", x, y, k.nulls_equal);
  }
  for (const Condition& c : on.conditions) {
    const std::string_view builtin = comparison_of(c.comparison);
    if (is_equality(c.comparison) || builtin.empty()) continue;
    auto [x, y] = compared(c, left, right);
    if (error_) return {};
    if (may_be_nan(x, y)) continue;
    unify(x, y);
    compare(builtin, x, y, false);
  }
  Pairs out;
  if (error_) return out;
  if (columns.empty()) {  // all pairs: of one key
    const VectorId one = g_.integer(BasicType::i32, 0);
    columns.push_back({"eq", g_.spread(one, left.space), g_.spread(one, right.space)});
  }
  if (columns.size() == 1 && keys.size() == 1) {
    // One side's rows are looked up in the other: the pairs are that side's rows.
    Cell x = keys[0].left, y = keys[0].right;
    for (const bool of_right : {true, false}) {
      const Cell &from = of_right ? y : x, &to = of_right ? x : y;
      const SpaceId space = of_right ? right.space : left.space;
      if (g_[from.value].space != space || space == one_row) continue;
      const std::optional<Lookup> l = look_up(from, to);
      if (!l) continue;
      out.space = is_none(l->matched) ? space : g_.kept(space, l->matched);
      const VectorId own = g_.rows(space), others = is_none(l->rows) ? own : l->rows;
      (of_right ? out.right : out.left) = out.space == space ? own : g_.keep(out.space, own);
      (of_right ? out.left : out.right) = out.space == space ? others : g_.keep(out.space, others);
      return out;
    }
  }
  const SpaceId left_space = is_none(left_valid) ? left.space : g_.kept(left.space, left_valid);
  const SpaceId right_space =
      is_none(right_valid) ? right.space : g_.kept(right.space, right_valid);
  std::string functions;
  std::vector<VectorId> p, q;
  std::vector<VectorId> left_equal, right_equal;
  for (const Column& c : columns) {
    const VectorId x = left_space == left.space ? c.left : g_.keep(left_space, c.left);
    const VectorId y = right_space == right.space ? c.right : g_.keep(right_space, c.right);
    functions += fmt::format("@{}, ", c.builtin);
    if (c.builtin == "eq") {
      left_equal.push_back(x);
      right_equal.push_back(y);
    }
    p.push_back(g_.spread(x, left_space));
    q.push_back(g_.spread(y, right_space));
  }
  const auto listed = [&](const std::vector<VectorId>& v, SpaceId s, std::string_view hint) {
    return v.size() == 1 ? v[0] : g_.call("@list(", v, BasicType::i64, s, hint);
  };
  const bool left_unique = g_.tell_apart(left_space, left_equal),
             right_unique = g_.tell_apart(right_space, right_equal);
  const double m = g_[left_space].most_rows, k = g_[right_space].most_rows;
  const double most = left_unique && right_unique ? std::min(m, k)
                      : right_unique              ? m
                      : left_unique               ? k
                                                  : m * k;
  // The first operand is the one whose keys are looked up in: of equalities, where one side's keys
  // do not repeat, that side, else the planner's build side.
  const bool equal = left_equal.size() == columns.size();
  const bool swap = equal && (right_unique || !left_unique);
  std::vector<VectorId> sides{listed(p, left_space, "left_keys"),
                              listed(q, right_space, "right_keys")};
  if (swap) std::swap(sides[0], sides[1]);
  const VectorId joined =
      g_.call("@join_index(" + functions, sides, BasicType::i64, one_row, "pairs");
  const SpaceId space = g_.space(most);
  out.left = g_.call("@index(", {joined}, BasicType::i64, space, "left_row",
                     Bounds::of(0, static_cast<__int128>(m)), swap ? ", 1:i64)" : ", 0:i64)");
  out.space = g_[out.left].space;
  out.right = g_.call("@index(", {joined}, BasicType::i64, out.space, "right_row",
                      Bounds::of(0, static_cast<__int128>(k)), swap ? ", 0:i64)" : ", 1:i64)");
  g_.set_witness(out.space, out.left);
  if (right_unique) g_.change(out.left).unique = true;
  if (left_unique) g_.change(out.right).unique = true;
  g_.add_identity(out.space, {out.left, out.right});
  if (left_space != left.space)
    out.left = g_.pick(g_.keep(left_space, g_.rows(left.space)), out.left);
  if (right_space != right.space)
    out.right = g_.pick(g_.keep(right_space, g_.rows(right.space)), out.right);
  if (right_unique) g_.inherit_identities(out.space, left.space, out.left);
  if (left_unique) g_.inherit_identities(out.space, right.space, out.right);
  return out;
}

Relation Translator::inner(const Relation& left, const Relation& right, std::vector<Key> keys,
                           const On& on) {
  if (left.space == one_row || right.space == one_row) {
    Relation joined = side_by_side(left, right);
    residual(joined, on, SIZE_MAX, false);
    return joined;
  }
  size_t at = 0;
  for (bool lifting : {false, true}) {
    Relation to = right;
    if (look_up_any(to, keys, false, lifting, at)) {
      Relation joined = side_by_side(left, to);
      residual(joined, on, at, false);
      return joined;
    }
    to = left;
    if (look_up_any(to, keys, true, lifting, at)) {
      Relation joined = side_by_side(to, right);
      joined.space = right.space;
      residual(joined, on, at, false);
      return joined;
    }
  }
  Relation p = compact(left), q = compact(right);
  const Pairs pair = pairs(p, q, keys_of(on, p, q), on);
  if (error_) return {};
  pick(p, pair.left);
  pick(q, pair.right);
  Relation joined = side_by_side(p, q);
  joined.space = pair.space;
  residual(joined, on, SIZE_MAX, true);
  return joined;
}

// Row numbers of a space, of which none stands twice, or the query ends with an error: each is the
// last to write its own place at its row.
VectorId Translator::once_each(VectorId rows, SpaceId of) {
  const BasicType whole = BasicType::i64;
  const VectorId place = g_.rows(g_[rows].space);
  const VectorId nowhere =
      g_.call("@vector(", {g_.count(of), g_.integer(whole, 0)}, whole, of, "nowhere");
  const VectorId last = g_.call("@index_a(", {nowhere, rows, place}, whole, of, "last");
  const VectorId own = g_.map("eq", {g_.pick(last, rows), place}, BasicType::boolean);
  const VectorId out = g_.require(own, rows, several_rows, place_);
  g_.change(out).unique = true;
  return out;
}

// LEFT, or FULL where `keeps_right`: pairs, then the rows that found none.
Relation Translator::outer(const Relation& left, const Relation& right, std::vector<Key> keys,
                           const On& on, bool keeps_right, bool is_single) {
  const auto under = [&](Relation& r, VectorId there) {
    for (Cell& c : r.columns) {
      const VectorId valid = g_.and_(c.valid, there);
      c = canonical(c.type, c.value, valid);
    }
  };
  if (!keeps_right) {
    // Each row on the left finds one row at most: it stays where it is.
    for (bool lifting : {false, true}) {
      size_t at = SIZE_MAX;  // of a single row every equality is asked
      Relation to = right;
      if (right.space != one_row &&
          (left.space == one_row || !look_up_any(to, keys, false, lifting, at)))
        continue;
      Relation joined = side_by_side({left.space, nothing, left.columns}, to);
      residual(joined, on, at, false, left.mask);
      Relation found{
          left.space,
          nothing,
          {joined.columns.begin() + static_cast<ptrdiff_t>(on.left), joined.columns.end()}};
      if (!is_none(joined.mask)) under(found, g_.spread(joined.mask, left.space));
      Relation out = side_by_side(left, found);
      return out;
    }
  }
  Relation p = compact(left), q = compact(right);
  // One row is a vector here, so that its row numbers are, too.
  const Pairs pair = pairs(p, q, keys_of(on, p, q), on);
  if (error_) return {};
  Relation a = p, b = q;
  pick(a, pair.left);
  pick(b, pair.right);
  Relation joined = side_by_side(a, b);
  joined.space = pair.space;
  residual(joined, on, SIZE_MAX, true);
  const SpaceId matched = is_none(joined.mask) ? pair.space : g_.kept(pair.space, joined.mask);
  VectorId left_rows = matched == pair.space ? pair.left : g_.keep(matched, pair.left);
  if (is_single && !g_[left_rows].unique) left_rows = once_each(left_rows, p.space);
  const VectorId right_rows = matched == pair.space ? pair.right : g_.keep(matched, pair.right);
  const auto lonely = [&](SpaceId space, VectorId rows) {
    const VectorId found =
        g_.call("@index_a(",
                {g_.call("@vector(", {g_.count(space), g_.integer(BasicType::boolean, 0)},
                         BasicType::boolean, space, "none"),
                 rows, g_.integer(BasicType::boolean, 1)},
                BasicType::boolean, space, "found");
    const VectorId where = g_.call("@where(", {g_.not_(found)}, BasicType::i64,
                                   g_.space(g_[space].most_rows), "alone");
    g_.set_witness(g_[where].space, where);
    return where;
  };
  // Row numbers of both sides, -1 for none.
  const VectorId none_row = g_.integer(BasicType::i64, -1);
  VectorId all_left = left_rows, all_right = right_rows;
  double most = g_[pair.space].most_rows + g_[p.space].most_rows + g_[q.space].most_rows;
  const SpaceId space = g_.space(most);
  const auto attach = [&](VectorId rows, VectorId more) {
    const Bounds bounds = rndn::sql::join(g_[rows].bounds, g_[more].bounds);
    return g_.call("@append(", {rows, more}, BasicType::i64, space, "rows", bounds);
  };
  const VectorId alone = lonely(p.space, left_rows);
  all_left = attach(all_left, alone);
  all_right = attach(all_right, g_.call("@vector(", {g_.count(g_[alone].space), none_row},
                                        BasicType::i64, g_[alone].space, "none"));
  if (keeps_right) {
    const VectorId others = lonely(q.space, right_rows);
    all_left = attach(all_left, g_.call("@vector(", {g_.count(g_[others].space), none_row},
                                        BasicType::i64, g_[others].space, "none"));
    all_right = attach(all_right, others);
  }
  g_.set_witness(g_[all_left].space, all_left);
  // Each row on the left stands there once where it finds one at most.
  const bool once = !keeps_right && (is_single || g_[pair.left].unique);
  if (once) g_.change(all_left).unique = true;
  g_.add_identity(g_[all_left].space, {all_left, all_right});
  if (once) g_.inherit_identities(g_[all_left].space, p.space, all_left);
  const auto taken = [&](Relation& r, VectorId rows, bool nullable) {
    const VectorId there =
        nullable ? g_.map("geq", {rows, g_.integer(BasicType::i64, 0)}, BasicType::boolean)
                 : nothing;
    for (Cell& c : r.columns) {
      if (!nullable) {
        c = pick(spread(c, r.space), rows);
        continue;
      }
      const auto picked = [&](VectorId v) {
        if (g_[v].space == one_row && r.space != one_row)
          return g_.select(there, v, g_.zero(g_[v].type));
        return g_.call("@index_or(", {v, rows, g_.zero(g_[v].type)}, g_[v].type, g_[rows].space,
                       g_[v].hint, rndn::sql::join(g_[v].bounds, Bounds::of(0, 0)));
      };
      const VectorId valid = is_none(c.valid) ? there : picked(c.valid);
      c.value = picked(c.value);
      c.valid = valid;
    }
    r.space = g_[rows].space;
  };
  taken(p, all_left, keeps_right);
  taken(q, all_right, true);
  Relation out = side_by_side(p, q);
  out.space = g_[all_left].space;
  return out;
}

// For each row on the left whether nulls leave open that one on the right meets it: of each pair
// with equal keys that are never null, or that compare nulls, whether no condition is false.
VectorId Translator::left_open(const Relation& left, const Relation& right, const On& on) {
  Relation p = compact(left), q = compact(right);
  std::vector<Key> keys = keys_of(on, p, q), nullable;
  const auto may_be_null = [](const Key& k) {
    return !k.nulls_equal && !(is_none(k.left.valid) && is_none(k.right.valid));
  };
  std::copy_if(keys.begin(), keys.end(), std::back_inserter(nullable), may_be_null);
  std::erase_if(keys, may_be_null);
  constexpr size_t few = 3;
  if (on.others.empty() && keys.size() + nullable.size() == on.conditions.size() &&
      nullable.size() <= few && q.space != one_row)
    return left_open_by_keys(left, p, q, keys, nullable);
  const Pairs pair = pairs(p, q, keys, {});
  if (error_) return nothing;
  Relation a = p, b = q;
  pick(a, pair.left);
  pick(b, pair.right);
  Relation joined = side_by_side(a, b);
  joined.space = pair.space;
  const auto unless_false = [&](const Cell& c) {
    const VectorId maybe = is_none(c.valid) ? c.value : g_.or_(c.value, g_.not_(c.valid));
    filter(joined, {maybe, nothing, boolean_type});
  };
  const std::vector<Cell> columns = joined.columns;
  const std::span<const Cell> all = columns;
  const auto value = [&](ExpressionId e, std::span<const Cell> of) {
    return evaluate(e, Relation{joined.space, joined.mask, {of.begin(), of.end()}});
  };
  for (const Condition& c : on.conditions) {
    const Cell x = value(c.left, all.first(on.left)), y = value(c.right, all.subspan(on.left));
    if (error_) return nothing;
    const bool two_valued = c.comparison == Function::not_distinct_from;
    const std::string_view builtin = comparison_of(c.comparison);
    if (builtin.empty()) fail("the join condition {} has no translation", name_of(c.comparison));
    unless_false(two_valued ? equal_cells(x, y) : compare_cells(builtin, x, y));
  }
  for (ExpressionId e : on.others) unless_false(value(e, all));
  return rows_met(left, p, joined, pair);
}

// The same where the condition is equalities alone. A pair is open where some keys are equal, and of
// each of the others one side is null: for each choice of the former, equalities and patterns of
// nulls, of which the right has each but once.
VectorId Translator::left_open_by_keys(const Relation& left, const Relation& p, const Relation& q,
                                       const std::vector<Key>& always,
                                       const std::vector<Key>& nullable) {
  VectorId open = nothing;
  const size_t all = (size_t{1} << nullable.size()) - 1;
  for (size_t equal = 0; equal < all; ++equal) {
    std::vector<Key> keys = always, others;
    for (size_t k = 0; k < nullable.size(); ++k)
      (equal >> k & 1 ? keys : others).push_back(nullable[k]);
    std::vector<Cell> parts;
    for (const Key& k : keys) parts.push_back(k.right);
    for (const Key& k : others) parts.push_back({valid_of(k.right), nothing, boolean_type});
    const VectorId first = group(q.space, parts).first;
    for (Key& k : keys) k.right = pick(k.right, first);
    const Pairs pair = pairs(p, {g_[first].space, nothing, {}}, keys, {});
    if (error_) return nothing;
    Relation joined{pair.space, nothing, {}};
    for (const Key& k : others) {
      const VectorId there = g_.and_(g_.pick(valid_of(k.left), pair.left),
                                     g_.pick(g_.pick(valid_of(k.right), first), pair.right));
      joined.mask = g_.and_(joined.mask, g_.not_(there));
    }
    const VectorId met = rows_met(left, p, joined, pair);
    open = is_none(open) ? met : g_.or_(open, met);
  }
  return open;
}

// Which rows on the left stand in the pairs of `joined`; `p` is the left, compact.
VectorId Translator::rows_met(const Relation& left, const Relation& p, const Relation& joined, const Pairs& pair) {
  const SpaceId matched = is_none(joined.mask) ? pair.space : g_.kept(pair.space, joined.mask);
  VectorId rows = matched == pair.space ? pair.left : g_.keep(matched, pair.left);
  if (p.space != left.space) rows = g_.pick(g_.keep(p.space, g_.rows(left.space)), rows);
  return g_.call("@index_a(",
                 {g_.call("@vector(", {g_.count(left.space), g_.integer(BasicType::boolean, 0)}, BasicType::boolean,
                          left.space, "none"),
                  rows, g_.integer(BasicType::boolean, 1)},
                 BasicType::boolean, left.space, "found");
}

// For each row on the left whether the right has one for which the condition holds; null where
// nulls leave it open (IN).
Cell Translator::mark(const Relation& left, const Relation& right, std::vector<Key> keys,
                      const On& on) {
  const bool only_keys =
      on.others.empty() && (on.every_column || keys.size() == on.conditions.size());
  const SpaceId space = left.space;
  bool nullable = false;
  for (const Key& k : keys)
    nullable = nullable || (!k.nulls_equal && !(is_none(k.left.valid) && is_none(k.right.valid)));
  if (on.is_mark) {  // `x = ALL (..)` is no row with `<>`, which a null leaves open
    nullable = nullable || !on.others.empty();
    for (const Condition& c : on.conditions) {
      if (is_equality(c.comparison) || c.comparison == Function::distinct_from) continue;
      const auto [x, y] = compared(c, left, right);
      if (error_) return failed(boolean_type);
      nullable = nullable || !(is_none(x.valid) && is_none(y.valid));
    }
  }
  const bool one_key = only_keys && keys.size() == 1 && !hir::is_wide(g_[keys[0].left.value].type);
  VectorId found = nothing;
  if (one_key &&
      (!keys[0].nulls_equal || (is_none(keys[0].left.valid) && is_none(keys[0].right.valid)))) {
    Cell x = keys[0].left, y = keys[0].right;
    unify(x, y);
    if (error_) return failed(boolean_type);
    const VectorId right_mask = g_.and_(right.mask, y.valid);
    Lookup from, to;
    VectorId base = nothing;
    const VectorId own = is_none(right_mask) ? own_mask(x.value, y.value) : nothing;
    if (is_none(own) && right.space != one_row && space != one_row)
      base = common_base(x.value, y.value, from, to);
    if (!is_none(own)) {
      found = g_.and_(own, x.valid);
    } else if (!is_none(base)) {
      VectorId there = g_.and_(right_mask, to.matched);  // over the rows of the base
      if (!is_none(to.rows)) there = marks(g_[base].space, right.space, there, to.rows);
      found = g_.and_(from.matched, x.valid);
      if (!is_none(there))
        found = g_.and_(found, is_none(from.rows)
                                   ? there
                                   : g_.pick(g_.spread(there, g_[base].space), from.rows));
      if (is_none(found)) found = g_.integer(BasicType::boolean, 1);
    } else {
      const SpaceId kept = is_none(right_mask) ? right.space : g_.kept(right.space, right_mask);
      const VectorId set = kept == right.space ? y.value : g_.keep(kept, y.value);
      found = g_.and_(
          g_.call("@member(", {x.value, set}, BasicType::boolean, g_[x.value].space, "member"),
          x.valid);
    }
  } else {
    found = met_by_another(left, right, keys, on);
  }
  if (error_) return failed(boolean_type);
  if (is_none(found)) {
    // By pairs of the rows on the left, with their numbers among all rows there.
    Relation p = compact(left), q = compact(right);
    std::vector<Key> equal = keys_of(on, p, q);
    std::vector<VectorId> values;
    for (const Key& k : equal) values.push_back(k.right.value);
    Relation joined;
    Pairs pair;
    if (only_keys && !equal.empty() && q.space != one_row && !g_.tell_apart(q.space, values)) {
      // Of rows alike on the right one will do: each row on the left is in one pair at most.
      std::vector<Cell> parts;
      for (const Key& k : equal) parts.push_back(k.right);
      const VectorId first = group(q.space, parts).first;
      for (Key& k : equal) k.right = pick(k.right, first);
      pair = pairs(p, {g_[first].space, nothing, {}}, equal, {});
      if (error_) return failed(boolean_type);
      joined = {pair.space, nothing, {}};
    } else {
      pair = pairs(p, q, equal, on);
      if (error_) return failed(boolean_type);
      Relation a = p, b = q;
      pick(a, pair.left);
      pick(b, pair.right);
      joined = side_by_side(a, b);
      joined.space = pair.space;
      residual(joined, on, SIZE_MAX, true);
    }
    found = rows_met(left, p, joined, pair);
  }
  Cell out{found, nothing, boolean_type};
  if (!nullable || on.two_valued) return out;
  if (!one_key) {
    if (on.is_mark) out.valid = g_.or_(found, g_.not_(left_open(left, right, on)));
    return out;
  }
  // Known: found; the right has no rows; or neither this key nor any there is null.
  const Key& k = keys[0];
  const SpaceId kept = is_none(right.mask) ? right.space : g_.kept(right.space, right.mask);
  const VectorId no_rows =
      g_.map("eq", {g_.count(kept), g_.integer(BasicType::i64, 0)}, BasicType::boolean);
  VectorId none_null = nothing;
  if (!is_none(k.right.valid))
    none_null = g_.call(
        "@all(",
        {g_.spread(kept == right.space ? k.right.valid : g_.keep(kept, k.right.valid), kept)},
        BasicType::boolean, one_row, "all");
  const VectorId both = g_.and_(k.left.valid, none_null);
  out.valid = g_.or_(found, g_.or_(no_rows, both));
  return out;
}

Relation Translator::join(const Node& n) {
  const std::span<const NodeId> children = plan_.of(n.children);
  JoinType type = n.join;
  On on;
  on.conditions.assign(plan_.of(n.conditions).begin(), plan_.of(n.conditions).end());
  NodeId sides[2] = {children[0], children[1]};
  if (std::optional<Direct> own = direct(n)) {
    const bool is_right = type == JoinType::right_semi || type == JoinType::right_anti;
    sides[is_right ? 0 : 1] = own->rows;
    on.conditions = std::move(own->conditions);
    on.two_valued = true;
    if (is_right)
      for (Condition& c : on.conditions) {
        std::swap(c.left, c.right);
        c.comparison = mirror_of(c.comparison);
      }
  }
  Relation left = relation(sides[0]), right = relation(sides[1]);
  if (error_) return {};
  if (type == JoinType::inner) reduce_groups(left, sides[0], right, on, true);
  if (type == JoinType::inner || type == JoinType::left) reduce_groups(right, sides[1], left, on, false);
  if (error_) return {};
  on.others = plan_.of(n.expressions);
  on.left = left.columns.size();
  on.right = right.columns.size();
  on.is_mark = type == JoinType::mark;
  // RIGHT and its kin are their mirror images.
  const bool is_swapped =
      type == JoinType::right || type == JoinType::right_semi || type == JoinType::right_anti;
  if (is_swapped) {
    std::swap(left, right);
    on = swapped(on);
    type = type == JoinType::right        ? JoinType::left
           : type == JoinType::right_semi ? JoinType::semi
                                          : JoinType::anti;
  }
  const bool is_semi = type == JoinType::semi || type == JoinType::anti || type == JoinType::mark;
  std::vector<Key> keys = keys_of(on, left, right);
  if (error_) return {};
  // Rows that another table's rows are looked up for, under a comparison: several kernels would find
  // out anew which they are.
  const auto is_picked = [&](const Key& k) {
    VectorId rows = nothing;
    return !is_none(base_key(k.left.value, rows)) && !is_none(rows);
  };
  if (is_semi && left.space != one_row && !is_none(left.mask) && keys.size() < on.conditions.size() &&
      std::any_of(keys.begin(), keys.end(), is_picked)) {
    left = compact(left);
    keys = keys_of(on, left, right);
    if (error_) return {};
  }

  if (is_semi) {
    Cell there = mark(left, right, std::move(keys), on);
    if (error_) return {};
    if (type == JoinType::mark) {
      project(left, n.projects, n.projection);
      left.columns.push_back(canonical(boolean_type, there.value, there.valid));
      return left;
    }
    // ANTI lets rows pass of which it is not known that one meets them.
    if (type == JoinType::anti) there.value = g_.not_(there.value);
    filter(left, {there.value, nothing, boolean_type});
    project(left, is_swapped ? n.right_projects : n.projects,
            is_swapped ? n.right_projection : n.projection);
    return left;
  }

  Relation joined;
  if (type == JoinType::inner) {
    joined = inner(left, right, std::move(keys), on);
  } else {
    joined = outer(left, right, std::move(keys), on, type == JoinType::full,
                   type == JoinType::single);
  }
  if (error_) return {};
  if (is_swapped)
    std::rotate(joined.columns.begin(), joined.columns.begin() + static_cast<ptrdiff_t>(on.left),
                joined.columns.end());
  const auto middle =
      joined.columns.begin() + static_cast<ptrdiff_t>(is_swapped ? on.right : on.left);
  Relation a{joined.space, joined.mask, {joined.columns.begin(), middle}};
  Relation b{joined.space, nothing, {middle, joined.columns.end()}};
  project(a, n.projects, n.projection);
  project(b, n.right_projects, n.right_projection);
  a.columns.insert(a.columns.end(), b.columns.begin(), b.columns.end());
  return a;
}

}  // namespace rndn::sql
