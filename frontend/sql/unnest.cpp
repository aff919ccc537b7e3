// Rows made of rows: UNNEST of lists that each row makes, and joins by position.
//
// A row stands as often as its longest list has elements: where all have as many, rows and places
// are quotients and remainders of the new rows' numbers; else the places where rows begin are sums
// of the lengths before them, and rows are numbered from one begin to the next (Blelloch, Prefix
// Sums and Their Applications, 1990). Left out: lists as values, which nothing holds.
#include <algorithm>
#include <limits>

#include "frontend/sql/translator.h"

namespace rndn::sql {

using hir::BasicType;

namespace {
constexpr double most_rows_of_all = 4294967295.0;
}  // namespace

// A row without a table as all rows of a space.
Relation Translator::rows_of_one(Relation r) {
  if (r.space != one_row) return r;
  const VectorId row = g_.call("@range(", {g_.integer(whole, 1)}, whole, g_.space(1), "row", Bounds::of(0, 0));
  r.space = g_[row].space;
  g_.set_witness(r.space, row);
  for (Cell& c : r.columns) c = spread(c, r.space);
  return r;
}

// 0, 1, .. as a space of its own.
VectorId Translator::numbers_to(VectorId count, double most) {
  most = std::min(most, most_rows_of_all);
  const VectorId row =
      g_.call("@range(", {count}, whole, g_.space(most), "row", Bounds::of(0, static_cast<__int128>(most)));
  g_.set_witness(g_[row].space, row);
  return row;
}

// Row numbers of a space, each as often as `counts` says; `place`: from 0 on among those alike.
VectorId Translator::repeated(SpaceId space, VectorId counts, Bounds each, VectorId& place) {
  const double rows = g_[space].most_rows;
  const double most = each.known ? rows * static_cast<double>(each.most) : most_rows_of_all;
  if (each.known && each.least == each.most && each.least > 0) {
    const auto by = static_cast<int64_t>(each.least);
    const VectorId row = numbers_to(whole_map("mul", g_.count(space), by), most);
    place = by == 1 ? g_.zero(whole) : whole_map("mod", row, by, Bounds::of(0, by - 1));
    return by == 1 ? row : whole_map("div", row, by, Bounds::of(0, static_cast<__int128>(rows)));
  }
  counts = g_.spread(counts, space);
  const VectorId some = g_.map("gt", {counts, g_.integer(whole, 0)}, truth);
  const SpaceId kept = g_.kept(space, some);
  const VectorId sizes = g_.keep(kept, counts);
  const auto everywhere = [&](SpaceId s) { return g_.spread(g_.integer(truth, 0), s); };
  const VectorId ends = scan("sum", sizes, everywhere(kept));
  const VectorId begins = g_.map("minus", {ends, sizes}, whole);
  const VectorId row = numbers_to(g_.call("@sum(", {sizes}, whole, one_row, "count"), most);
  const SpaceId out = g_[row].space;
  const VectorId heads = g_.call("@index_a(", {everywhere(out), begins, g_.integer(truth, 1)}, truth, out, "heads");
  const Bounds numbers = Bounds::of(0, static_cast<__int128>(rows));
  const VectorId number = g_.map("minus", {scan("sum", heads, everywhere(out)), g_.integer(whole, 1)}, whole, numbers);
  place = g_.map("minus", {row, g_.pick(begins, number)}, whole,
                 Bounds::of(0, each.known ? each.most : static_cast<__int128>(most_rows_of_all)));
  return g_.pick(g_.keep(kept, g_.rows(space)), number);
}

Relation Translator::unnest(const Node& n) {
  Relation r = rows_of_one(compact(relation(plan_.of(n.children)[0])));
  if (error_) return r;
  struct List {
    Unnested kind;
    std::vector<Cell> parts;
    VectorId count = nothing;  // of elements, for each row; null lists have none
    Bounds bounds;
  };
  std::vector<List> lists;
  const std::span<const uint32_t> kinds = plan_.of(n.lists);
  std::span<const ExpressionId> expressions = plan_.of(n.expressions);
  for (size_t i = 0; i + 1 < kinds.size(); i += 2) {
    List list{static_cast<Unnested>(kinds[i]), {}, nothing, {}};
    for (uint32_t k = 0; k < kinds[i + 1]; ++k) list.parts.push_back(evaluate(expressions[k], r));
    expressions = expressions.subspan(kinds[i + 1]);
    if (error_) return r;
    VectorId valid = nothing;
    if (list.kind != Unnested::elements)
      for (const Cell& c : list.parts) valid = g_.and_(valid, c.valid);
    if (list.kind == Unnested::elements) {
      const auto size = static_cast<int64_t>(list.parts.size());
      list.count = g_.integer(whole, size);
      list.bounds = Bounds::of(size, size);
    } else if (list.kind == Unnested::parts) {
      list.count = text_cell({TypeId::bigint}, "split_count", list.parts).value;
    } else {
      const Type bigint{TypeId::bigint};
      for (const Cell& c : list.parts)
        if (!is_integral(c.type)) {
          fail("UNNEST of a series of {} has no translation", type_name(c.type));
          return r;
        }
      std::vector<Cell>& p = list.parts;
      const Cell zero{g_.integer(whole, 0), nothing, bigint}, one{g_.integer(whole, 1), nothing, bigint};
      if (p.size() == 1) p = {zero, p[0]};
      if (p.size() == 2) p.push_back(one);
      for (Cell& c : p) c.value = g_.cast(c.value, whole);
      const VectorId step = p[2].value, is_down = g_.map("lt", {step, zero.value}, truth);
      const bool closed = list.kind == Unnested::series;
      // Ends may lie further apart than 64 bits tell.
      const VectorId up = grown("minus", p[1].value, p[0].value), down = grown("minus", p[0].value, p[1].value);
      const VectorId back = grown("minus", zero.value, step);
      const BasicType type = hir::widest(hir::widest(g_[up].type, g_[down].type), g_[back].type);
      const auto of = [&](std::string_view builtin, VectorId a, VectorId b) { return g_.map(builtin, {a, b}, type); };
      const auto in = [&](VectorId v) { return g_.cast(v, type); };
      const VectorId none_of = g_.integer(type, 0), unit = g_.integer(type, 1);
      const VectorId way = g_.select(is_down, in(down), in(up)), size = g_.select(is_down, in(back), in(step));
      const VectorId safe = g_.select(g_.map("eq", {size, none_of}, truth), unit, size);
      const VectorId full =
          closed ? of("plus", of("div", way, safe), unit) : of("div", of("plus", way, of("minus", safe, unit)), safe);
      const VectorId has =
          g_.and_(g_.map(closed ? "geq" : "gt", {way, none_of}, truth), g_.map("gt", {size, none_of}, truth));
      // More than memory holds in any case.
      const VectorId most = g_.integer(type, INT64_MAX);
      const VectorId count = g_.select(has, full, none_of);
      list.count = g_.cast(g_.select(g_.map("lt", {most, count}, truth), most, count), whole);
    }
    if (!is_none(valid)) {
      list.count = g_.select(valid, list.count, g_.integer(whole, 0));
      list.bounds = {};
    }
    lists.push_back(std::move(list));
  }
  VectorId longest = lists[0].count;
  Bounds bounds = lists[0].bounds;
  for (size_t i = 1; i < lists.size(); ++i) {
    const VectorId other = lists[i].count;
    const Bounds both = lists[i].bounds;
    bounds = bounds.known && both.known
                 ? Bounds::of(std::max(bounds.least, both.least), std::max(bounds.most, both.most))
                 : Bounds{};
    longest = g_.select(g_.map("lt", {longest, other}, truth), other, longest);
  }
  VectorId place;
  const VectorId rows = repeated(r.space, longest, bounds, place);
  const SpaceId space = g_[rows].space;
  std::vector<Cell> made;
  for (const List& list : lists) {
    std::vector<Cell> parts;
    for (const Cell& c : list.parts) parts.push_back(pick(spread(c, r.space), rows));
    const VectorId count = g_.is_literal(list.count) ? list.count : g_.pick(g_.spread(list.count, r.space), rows);
    const VectorId has = g_.map("lt", {place, count}, truth);
    Cell value;
    if (list.kind == Unnested::elements) {
      value = parts.back();
      for (size_t k = parts.size() - 1; k-- > 0;) {
        const Cell here{
            g_.map("eq", {place, g_.integer(whole, static_cast<int64_t>(k))}, truth), nothing, {TypeId::boolean}};
        value = select_cells(here, parts[k], value, value.type);
      }
    } else if (list.kind == Unnested::parts) {
      const Cell from_one{whole_map("plus", place, 1), nothing, {TypeId::bigint}};
      value = text_cell({TypeId::varchar}, "split_part", {parts[0], parts[1], from_one});
    } else {
      const VectorId along = g_.map("mul", {place, parts[2].value}, whole);
      value = {g_.map("plus", {parts[0].value, along}, whole), nothing, {TypeId::bigint}};
    }
    made.push_back(canonical(value.type, g_.spread(value.value, space),
                             lists.size() == 1 ? value.valid : g_.and_(value.valid, has)));
  }
  project(r, n.projects, n.projection);
  pick(r, rows);
  r.columns.insert(r.columns.end(), made.begin(), made.end());
  return r;
}

// Rows of two relations by their numbers, nulls where one has fewer.
Relation Translator::side_by_number(const Node& n) {
  const std::span<const NodeId> children = plan_.of(n.children);
  const Relation left = rows_of_one(compact(relation(children[0]))),
                 right = rows_of_one(compact(relation(children[1])));
  if (error_) return left;
  const VectorId p = g_.count(left.space), q = g_.count(right.space);
  const VectorId more = g_.select(g_.map("lt", {p, q}, truth), q, p);
  const VectorId row = numbers_to(more, std::max(g_[left.space].most_rows, g_[right.space].most_rows));
  Relation out;
  out.space = g_[row].space;
  for (const Relation* side : {&left, &right}) {
    const VectorId has = g_.map("lt", {row, g_.count(side->space)}, truth);
    const VectorId at = g_.select(has, row, g_.integer(whole, -1));
    for (const Cell& given : side->columns) {
      const Cell c = spread(given, side->space);
      const auto there = [&](VectorId v) {
        return g_.call("@index_or(", {v, at, g_.zero(g_[v].type)}, g_[v].type, out.space, g_[v].hint,
                       rndn::sql::join(g_[v].bounds, Bounds::of(0, 0)));
      };
      out.columns.push_back({there(c.value), is_none(c.valid) ? has : there(c.valid), c.type});
    }
  }
  return out;
}

}  // namespace rndn::sql
