// Windows: ranks, neighbours and aggregates over frames of rows in order.
//
// The rows are sorted once by (partition keys, order keys) for all windows whose keys are a prefix
// of one list; they stay in that order, which is no order that SQL promises. Where a partition or
// a group of peers begins is a comparison of neighbours; running sums of those heads number them,
// and the places of the heads are their first rows (segmented scans; Blelloch, "Prefix Sums and
// Their Applications", 1990). A frame is two row numbers for each row. What is made of its rows:
//   counts and sums of exact numbers   the difference of two running sums
//   from the partition's first row, or up to its last   a scan that begins anew with partitions
//   a constant number of rows          a scan from each block of as many rows forwards and one
//                                      backwards (van Herk, 1992; Gil and Werman, 1993)
//   any other          pieces of 1, 2, 4, .. rows from each row on, as the bits of its length say
// Functions that take one row of a frame are picks. IGNORE NULLS picks among the rows with values.
// Where RANGE ends at a value, a sort of the rows and of these values together counts the rows
// before each. Cost: a sort, and some passes over the rows for each window; for n rows log n passes
// for minima, maxima and sums of floats of those other frames, and for quantiles. What EXCLUDE leaves
// of a frame is two or three frames. Left out: offsets that are no constants, and DISTINCT and
// quantiles in frames with EXCLUDE, DISTINCT in those that do not begin with their partition.
#include <algorithm>

#include "frontend/sql/translator.h"

namespace rndn::sql {

using hir::BasicType;

namespace {

constexpr int64_t longest_frame = int64_t{1} << 32;  // rows that a frame may reach, in either direction

}  // namespace

VectorId Translator::scan(std::string_view builtin, VectorId v, VectorId starts, Bounds bounds) {
  const SpaceId rows = g_[starts].space;
  const BasicType type = builtin == "sum" && !hir::is_float(g_[v].type) && !hir::is_wide(g_[v].type)
                             ? BasicType::i64
                             : g_[v].type;
  return g_.call(fmt::format("@scan_{}(", builtin), {g_.spread(v, rows), starts}, type, rows,
                 "running", bounds);
}

// From the last row of each run of `heads` towards its first.
VectorId Translator::backwards(std::string_view builtin, VectorId v, VectorId heads) {
  const SpaceId rows = g_[heads].space;
  const VectorId next =
      g_.map("plus", {g_.rows(rows), g_.integer(BasicType::i64, 1)}, BasicType::i64);
  const VectorId tails = at_or(heads, next, g_.integer(BasicType::boolean, 1));
  const SpaceId turned = g_.space(g_[rows].most_rows);
  const auto reverse = [&](VectorId x, SpaceId s) {
    return g_.call("@reverse(", {x}, g_[x].type, s, "reversed", g_[x].bounds);
  };
  const VectorId starts = reverse(tails, turned);
  const SpaceId s = g_[starts].space;
  return reverse(scan(builtin, reverse(g_.spread(v, rows), s), starts), rows);
}

// The element at a row, or `otherwise` where no row has that number.
VectorId Translator::at_or(VectorId v, VectorId row, VectorId otherwise) {
  return g_.call("@index_or(", {v, row, otherwise}, g_[v].type, g_[row].space, g_[v].hint,
                 rndn::sql::join(g_[v].bounds, g_[otherwise].bounds));
}

// Neighbours with equal keys, which end where `also` begins something.
Translator::Run Translator::run_of(SpaceId rows, std::span<const Cell> keys, VectorId also) {
  const VectorId row = g_.rows(rows), zero = g_.integer(BasicType::i64, 0),
                 one = g_.integer(BasicType::i64, 1);
  const VectorId is_first = g_.map("eq", {row, zero}, BasicType::boolean);
  const Bounds numbers = Bounds::of(0, static_cast<__int128>(g_[rows].most_rows));
  const VectorId before =
      g_.select(is_first, zero, g_.map("minus", {row, one}, BasicType::i64, numbers));
  Run run;
  run.head = is_none(also) ? is_first : also;
  for (const Cell& key : keys) {
    if (g_[key.value].space == one_row) continue;
    const Cell last = pick(key, before);
    VectorId same = equal_cells(key, last).value;
    if (hir::is_float(g_[key.value].type)) {  // NaN is NaN's equal
      const auto is_nan = [&](VectorId v) { return g_.map("neq", {v, v}, BasicType::boolean); };
      same = g_.or_(same, g_.and_(is_nan(key.value), is_nan(last.value)));
    }
    run.head = g_.or_(run.head, g_.not_(same));
  }
  const VectorId everywhere = g_.spread(g_.integer(BasicType::boolean, 0), rows);
  run.number =
      g_.map("minus", {scan("sum", run.head, everywhere, numbers), one}, BasicType::i64, numbers);
  run.heads = g_.keep(g_.kept(rows, run.head), row);
  run.first = g_.pick(run.heads, run.number);
  run.end =
      at_or(run.heads, g_.map("plus", {run.number, one}, BasicType::i64, numbers), g_.count(rows));
  return run;
}

// A constant integer; `is_null`: it is null. None: an error.
std::optional<int64_t> Translator::constant_of(ExpressionId id, std::string_view what,
                                               bool& is_null) {
  const Expression& e = plan_[id];
  if (e.kind != Expression::constant) {
    fail("{} that is no constant has no translation", what);
    return std::nullopt;
  }
  const Constant& c = plan_.constants[e.index];
  is_null = c.is_null;
  return static_cast<int64_t>(std::clamp<__int128>(c.is_null ? 0 : c.integer, -longest_frame, longest_frame));
}

// Where a frame begins, or the row behind its last. `offset`: in rows, where that is constant.
VectorId Translator::frame_end(const Frame& f, const Window& w, const Relation& in, bool is_start,
                               std::optional<int64_t>& offset) {
  const FrameEnd& end = is_start ? w.start : w.end;
  const Bounds numbers = Bounds::of(0, static_cast<__int128>(g_[f.rows].most_rows));
  const auto within = [&](VectorId row) {
    const auto less = [&](VectorId x, VectorId y) {
      return g_.map("lt", {x, y}, BasicType::boolean);
    };
    row = g_.select(less(row, f.partition.first), f.partition.first, row);
    row = g_.select(less(f.partition.end, row), f.partition.end, row);
    g_.change(row).bounds = numbers;
    return row;
  };
  if (end.kind == FrameEnd::unbounded) return is_start ? f.partition.first : f.partition.end;
  if (end.kind == FrameEnd::values) {
    const Cell bound = evaluate(end.offset, in.columns);
    return error_ ? f.partition.first
                  : row_at_value(f, sort_keys(in, plan_.of(w.orders))[0], bound, is_start);
  }
  int64_t by = 0;
  if (!is_none(end.offset)) {
    bool is_null = false;
    const std::optional<int64_t> n = constant_of(end.offset, "the offset of a window", is_null);
    if (!n) return f.partition.first;
    if (is_null || *n < 0) {
      fail("the offset of a window's frame is {}", is_null ? "NULL" : "negative");
      return f.partition.first;
    }
    by = end.following ? *n : -*n;
  }
  const auto moved = [&](VectorId x, int64_t n) {
    return n == 0 ? x : g_.map("plus", {x, g_.integer(BasicType::i64, n)}, BasicType::i64);
  };
  if (end.kind == FrameEnd::rows) {
    offset = by;
    const VectorId row = moved(g_.rows(f.rows), by + !is_start);
    return by == 0 ? row : within(row);
  }
  if (by == 0) return is_start ? f.peers.first : f.peers.end;
  const VectorId zero = g_.integer(BasicType::i64, 0),
                 number = moved(f.peers.number, by + !is_start);
  const VectorId known = g_.select(g_.map("lt", {number, zero}, BasicType::boolean), zero, number);
  return within(at_or(f.peers.heads, known, g_.count(f.rows)));
}

// How many rows stand before a value for each row in its partition, or before what is behind it: of
// rows and values in one order, as many as precede the value. Beside null stand its peers.
VectorId Translator::row_at_value(const Frame& f, SortKey key, Cell bound, bool is_start) {
  unify(key.cell, bound);
  const Cell partition{f.partition.number, nothing, {TypeId::bigint}};
  const auto side = [&](const Cell& value, bool is_row) {
    const Cell flag{g_.integer(BasicType::boolean, is_row), nothing, {TypeId::boolean}};
    return Relation{f.rows, nothing, {partition, value, flag}};
  };
  Relation both = append({side(key.cell, true), side(bound, false)});
  if (error_) return f.partition.first;
  const SortKey keys[] = {{both.columns[0]},
                          {both.columns[1], key.descending, key.nulls_first},
                          {both.columns[2], !is_start}};
  const VectorId order = permutation(both.space, keys);
  const SpaceId sorted = g_[order].space;
  const VectorId running = scan("sum", g_.pick(both.columns[2].value, order),
                                g_.spread(g_.integer(BasicType::boolean, 0), sorted));
  const VectorId place = g_.call(
      "@index_a(", {g_.spread(g_.integer(BasicType::i64, 0), both.space), order, g_.rows(sorted)},
      BasicType::i64, both.space, "place", g_[order].bounds);
  const VectorId own =
      g_.map("plus", {g_.rows(f.rows), g_.count(f.rows)}, BasicType::i64, g_[order].bounds);
  const VectorId before = g_.pick(running, g_.pick(place, own));
  return g_.select(key.cell.valid, before, is_start ? f.peers.first : f.peers.end);
}

void Translator::set_frame(Frame& f, const Window& w, const Relation& in) {
  std::optional<int64_t> from, to;
  f.begin = frame_end(f, w, in, true, from);
  f.end = frame_end(f, w, in, false, to);
  f.from_head = w.start.kind == FrameEnd::unbounded;
  f.to_end = w.end.kind == FrameEnd::unbounded;
  if (from && to) f.offsets.emplace(*from, *to);
  const bool has_row =
      (is_none(w.start.offset) || !w.start.following) && (is_none(w.end.offset) || w.end.following);
  if (!has_row) f.some = g_.map("lt", {f.begin, f.end}, BasicType::boolean);
  if (w.exclude != Window::no_others) exclude(f, w.exclude);
}

// A frame without the row itself, or its peers, is what stands before them, what stands behind them
// and, of TIES, the row itself.
void Translator::exclude(Frame& f, Window::Exclude what) {
  const Bounds numbers = Bounds::of(0, static_cast<__int128>(g_[f.rows].most_rows));
  const VectorId row = g_.rows(f.rows);
  const VectorId next = g_.map("plus", {row, g_.integer(BasicType::i64, 1)}, BasicType::i64, numbers);
  const VectorId from = what == Window::current_row ? row : f.peers.first;
  const VectorId to = what == Window::current_row ? next : f.peers.end;
  const auto less = [&](VectorId x, VectorId y) { return g_.map("lt", {x, y}, BasicType::boolean); };
  const auto least = [&](VectorId x, VectorId y) { return g_.select(less(y, x), y, x); };
  const auto most = [&](VectorId x, VectorId y) { return g_.select(less(x, y), y, x); };
  VectorId some = nothing;
  const auto add = [&](VectorId begin, VectorId end, bool from_head, bool to_end) {
    Frame part = f;
    part.parts.clear();
    part.offsets.reset();
    part.begin = begin;
    part.end = most(begin, end);
    part.from_head = from_head;
    part.to_end = to_end;
    part.some = less(begin, end);
    some = is_none(some) ? part.some : g_.or_(some, part.some);
    f.parts.push_back(std::move(part));
  };
  f.parts.clear();
  add(f.begin, least(f.end, from), f.from_head, false);
  if (what == Window::ties) add(most(f.begin, row), least(f.end, next), false, false);
  add(most(f.begin, to), f.end, false, f.to_end);
  f.some = some;
}

// sum, min, .. of the rows of each row's frame; zero where there are none.
VectorId Translator::reduce_frame(const Frame& f, std::string_view builtin, VectorId v,
                                  Bounds bounds) {
  if (!f.parts.empty()) {
    if (builtin == "any" || builtin == "all") return reduce_ones(f, builtin, v);
    VectorId out = nothing, some = nothing;
    for (const Frame& part : f.parts) {
      const VectorId own = reduce_frame(part, builtin, v, bounds);
      if (is_none(out)) {
        out = own;
        some = part.some;
        continue;
      }
      const bool adds = builtin == "sum" || builtin == "len";
      const VectorId both = combined(adds ? "sum" : builtin, out, own);
      // Zero where there are no rows, which is what sums begin with.
      out = adds ? both : g_.select(part.some, g_.select(some, both, own), out);
      some = g_.or_(some, part.some);
    }
    g_.change(out).bounds = bounds;
    return out;
  }
  const VectorId one = g_.integer(BasicType::i64, 1);
  const auto less_one = [&](VectorId row) {
    return g_.map("minus", {row, one}, BasicType::i64,
                  Bounds::of(-1, static_cast<__int128>(g_[f.rows].most_rows)));
  };
  const auto or_zero = [&](VectorId x) {
    return is_none(f.some) ? x : g_.select(f.some, x, g_.zero(g_[x].type));
  };
  const auto at = [&](VectorId x, VectorId row) {
    if (is_none(f.some)) return g_.pick(x, row);
    return at_or(x, g_.select(f.some, row, g_.integer(BasicType::i64, -1)), g_.zero(g_[x].type));
  };
  if (builtin == "len") return or_zero(g_.map("minus", {f.end, f.begin}, BasicType::i64, bounds));
  if (builtin == "any" || builtin == "all") return reduce_ones(f, builtin, v);
  if (f.from_head) return at(scan(builtin, v, f.partition.head, bounds), less_one(f.end));
  if (builtin == "sum" && !hir::is_float(g_[v].type)) {
    const VectorId running = scan(builtin, v, g_.spread(g_.integer(BasicType::boolean, 0), f.rows));
    const VectorId zero = g_.zero(g_[running].type);
    return or_zero(g_.map(
        "minus", {at_or(running, less_one(f.end), zero), at_or(running, less_one(f.begin), zero)},
        g_[running].type, bounds));
  }
  if (f.to_end) return at(backwards(builtin, v, f.partition.head), f.begin);
  if (f.offsets) return reduce_sliding(f, builtin, v);
  return reduce_powers(f, builtin, v);
}

// any and all: how many rows of the frame say so.
VectorId Translator::reduce_ones(const Frame& f, std::string_view builtin, VectorId v) {
  const bool any = builtin == "any";
  const VectorId found = reduce_frame(f, "sum", g_.cast(any ? v : g_.not_(v), BasicType::i64),
                                      Bounds::of(0, static_cast<__int128>(g_[f.rows].most_rows)));
  return g_.map(any ? "gt" : "eq", {found, g_.integer(BasicType::i64, 0)}, BasicType::boolean);
}

// x, then y behind it.
VectorId Translator::combined(std::string_view builtin, VectorId x, VectorId y) {
  if (builtin == "sum") return g_.map("plus", {x, y}, g_[x].type);
  const std::string_view first = builtin == "min" ? "lt" : "gt";
  return g_.select(hir::is_float(g_[x].type) ? compare_floats(first, y, x)
                                             : g_.map(first, {y, x}, BasicType::boolean),
                   y, x);
}

// The k-th least, from 0, of what a frame's rows have of unique ranks: bit by bit from the highest,
// rows are parted by it, those without it first, which of them a frame has is the difference of two
// running counts, and k says on which side to go on (the wavelet matrix; Claude, Navarro, SPIRE
// 2012). Any number where the frame has no such row.
VectorId Translator::kth_of_frame(const Frame& f, VectorId ranks, VectorId k) {
  const VectorId zero = g_.integer(BasicType::i64, 0), one = g_.integer(BasicType::i64, 1),
                 row = g_.rows(f.rows),
                 nowhere = g_.spread(g_.integer(BasicType::boolean, 0), f.rows);
  const Bounds numbers = Bounds::of(0, static_cast<__int128>(g_[f.rows].most_rows));
  const auto of = [&](std::string_view builtin, VectorId x, VectorId y) {
    return g_.map(builtin, {x, y}, BasicType::i64);
  };
  VectorId begin = f.begin, end = f.end, found = zero;
  int64_t bit = 1;
  while (static_cast<double>(bit) * 2 < g_[f.rows].most_rows) bit *= 2;
  for (; bit > 0; bit /= 2) {
    const VectorId digit = of("mod", of("div", ranks, g_.integer(BasicType::i64, bit)),
                              g_.integer(BasicType::i64, 2));
    const VectorId low = g_.map("eq", {digit, zero}, BasicType::boolean);
    const VectorId running = scan("sum", low, nowhere, numbers);
    const auto before = [&](VectorId at) { return at_or(running, of("minus", at, one), zero); };
    const VectorId lows = before(g_.count(f.rows)), first = before(begin), last = before(end);
    const VectorId here = of("minus", last, first);
    const VectorId goes_low = g_.map("lt", {k, here}, BasicType::boolean);
    const auto moved = [&](VectorId at, VectorId lows_before) {
      return g_.select(goes_low, lows_before, of("plus", lows, of("minus", at, lows_before)));
    };
    begin = moved(begin, first);
    end = moved(end, last);
    k = g_.select(goes_low, k, of("minus", k, here));
    found = of("plus", found, g_.select(goes_low, zero, g_.integer(BasicType::i64, bit)));
    const VectorId to = g_.select(low, of("minus", running, one),
                                  of("plus", lows, of("minus", row, running)));
    g_.change(to).bounds = numbers;
    if (bit > 1)
      ranks = g_.call("@index_a(", {g_.spread(zero, f.rows), to, ranks}, BasicType::i64, f.rows,
                      "ranks", numbers);
  }
  return found;
}

// Of any frames: what is made of 1, 2, 4, .. rows from each row on, and of these the pieces that
// the bits of a frame's length name.
VectorId Translator::reduce_powers(const Frame& f, std::string_view builtin, VectorId v) {
  const VectorId row = g_.rows(f.rows), zero = g_.integer(BasicType::i64, 0),
                 none = g_.integer(BasicType::i64, -1), two = g_.integer(BasicType::i64, 2);
  const VectorId nothing_yet = g_.zero(g_[v].type);
  VectorId left = g_.map("minus", {f.end, f.begin}, BasicType::i64);
  if (!is_none(f.some)) left = g_.select(f.some, left, zero);
  VectorId piece = g_.spread(v, f.rows), at = f.begin, out = nothing_yet, started = nothing;
  for (int64_t size = 1; static_cast<double>(size) <= g_[f.rows].most_rows; size *= 2) {
    const VectorId by = g_.integer(BasicType::i64, size);
    const VectorId has =
        g_.map("eq", {g_.map("mod", {left, two}, BasicType::i64), g_.integer(BasicType::i64, 1)},
               BasicType::boolean);
    const VectorId own = at_or(piece, g_.select(has, at, none), nothing_yet);
    const VectorId more =
        is_none(started) ? own : g_.select(started, combined(builtin, out, own), own);
    out = g_.select(has, more, out);
    started = is_none(started) ? has : g_.or_(started, has);
    at = g_.map("plus", {at, g_.select(has, by, zero)}, BasicType::i64);
    left = g_.map("div", {left, two}, BasicType::i64);
    const VectorId next = g_.map("plus", {row, by}, BasicType::i64);
    const VectorId is_there = g_.map("lt", {next, g_.count(f.rows)}, BasicType::boolean);
    piece = g_.select(is_there, combined(builtin, piece, at_or(piece, next, nothing_yet)), piece);
  }
  return g_.spread(out, f.rows);
}

// Of frames of a constant number of rows, cut where the partition ends. Blocks of as many rows
// begin anew with each partition: a frame lies in one block, and then begins or ends with it, or
// in two.
VectorId Translator::reduce_sliding(const Frame& f, std::string_view builtin, VectorId v) {
  const auto [from, to] = *f.offsets;
  const VectorId row = g_.rows(f.rows), zero = g_.integer(BasicType::i64, 0),
                 one = g_.integer(BasicType::i64, 1);
  if (to < from) return g_.spread(g_.zero(g_[v].type), f.rows);
  const VectorId place =
      g_.map("mod", {row, g_.integer(BasicType::i64, to - from + 1)}, BasicType::i64);
  const VectorId heads = g_.or_(f.partition.head, g_.map("eq", {place, zero}, BasicType::boolean));
  const VectorId block = scan("sum", heads, g_.spread(g_.integer(BasicType::boolean, 0), f.rows));
  const auto there = [&](VectorId x) { return is_none(f.some) ? x : g_.select(f.some, x, zero); };
  const VectorId first = there(f.begin),
                 last = there(g_.map("minus", {f.end, one}, BasicType::i64));
  const VectorId before = g_.pick(scan(builtin, v, heads), last),
                 behind = g_.pick(backwards(builtin, v, heads), first);
  const VectorId both = combined(builtin, behind, before);
  const VectorId in_one =
      g_.map("eq", {g_.pick(block, first), g_.pick(block, last)}, BasicType::boolean);
  const VectorId out = g_.select(in_one, g_.select(g_.pick(heads, first), before, behind), both);
  return is_none(f.some) ? out : g_.select(f.some, out, g_.zero(g_[out].type));
}

// The value at one row of the frame, or so many rows before or behind in the partition.
Cell Translator::value_at(const Expression& e, const Relation& in, const Frame& f,
                          bool ignores_nulls, WindowFunction function) {
  const std::span<const ExpressionId> arguments = plan_.of(e.arguments);
  Cell x = evaluate(arguments[0], in);
  if (error_) return failed(e.type);
  x = spread(x, f.rows);
  int64_t n = 1;
  if (arguments.size() > 1) {
    bool is_null = false;
    const std::optional<int64_t> given =
        constant_of(arguments[1], "the offset of a window's function", is_null);
    if (!given) return failed(e.type);
    if (is_null) return null_of(e.type);
    n = *given;
  }
  const bool shifts = function == WindowFunction::lag || function == WindowFunction::lead;
  if (shifts && n == 0) ignores_nulls = false;
  Candidates c;
  if (ignores_nulls && !is_none(x.valid)) {
    c.counts = scan("sum", x.valid, g_.spread(g_.integer(BasicType::boolean, 0), f.rows));
    c.rows = g_.keep(g_.kept(f.rows, x.valid), g_.rows(f.rows));
  }
  const VectorId zero = g_.integer(BasicType::i64, 0);
  const auto moved = [&](VectorId v, int64_t by) {
    return by == 0 ? v : g_.map("plus", {v, g_.integer(BasicType::i64, by)}, BasicType::i64);
  };
  const auto before = [&](VectorId row) {  // candidates above a row
    return is_none(c.counts) ? row : at_or(c.counts, moved(row, -1), zero);
  };
  const VectorId own = g_.rows(f.rows);
  VectorId least = before(shifts ? f.partition.first : f.begin),
           end = before(shifts ? f.partition.end : f.end);
  const int64_t down = function == WindowFunction::lead ? n : -n;
  VectorId at = least;
  if (function == WindowFunction::nth_value) at = moved(least, n - 1);
  if (function == WindowFunction::last_value) at = moved(end, -1);
  if (shifts) at = down > 0 ? moved(before(moved(own, 1)), down - 1) : moved(before(own), down);
  if (!f.parts.empty() && !shifts) {
    // The candidate with that number among those of all parts.
    const auto of = [&](std::string_view builtin, VectorId x, VectorId y) {
      return g_.map(builtin, {x, y}, BasicType::i64);
    };
    VectorId count = zero;
    std::vector<std::pair<VectorId, VectorId>> parts;  // where each begins, and how many it has
    for (const Frame& part : f.parts) {
      const VectorId first = before(part.begin);
      parts.emplace_back(first, of("minus", before(part.end), first));
      count = of("plus", count, parts.back().second);
    }
    VectorId number = zero;
    if (function == WindowFunction::nth_value) number = g_.integer(BasicType::i64, n - 1);
    if (function == WindowFunction::last_value) number = moved(count, -1);
    VectorId rest = number;
    at = g_.integer(BasicType::i64, -1);
    VectorId found = g_.integer(BasicType::boolean, 0);
    for (const auto& [first, length] : parts) {
      const VectorId here = g_.and_(
          g_.not_(found), g_.and_(g_.map("geq", {rest, zero}, BasicType::boolean),
                                  g_.map("lt", {rest, length}, BasicType::boolean)));
      at = g_.select(here, of("plus", first, rest), at);
      found = g_.or_(found, here);
      rest = of("minus", rest, length);
    }
    least = zero;
    end = g_.select(found, moved(at, 1), zero);
  }
  VectorId there = nothing;
  const bool surely =
      !shifts && function != WindowFunction::nth_value && is_none(f.some) && is_none(c.counts);
  if (!surely)
    there = g_.and_(g_.map("geq", {at, least}, BasicType::boolean),
                    g_.map("lt", {at, end}, BasicType::boolean));
  if (function == WindowFunction::nth_value && n < 1) return null_of(e.type);
  const VectorId none = g_.integer(BasicType::i64, -1);
  VectorId row = at;
  if (!is_none(c.rows))
    row = at_or(c.rows, g_.select(there, at, none), zero);
  else if (!is_none(there))
    row = g_.select(there, at, zero);
  const Cell found = pick(x, row);
  Cell out = canonical(e.type, found.value, g_.and_(there, found.valid));
  if (arguments.size() > 2) {
    const Cell otherwise = evaluate(arguments[2], in);
    if (error_) return out;
    out = select_cells({there, nothing, {TypeId::boolean}}, out, otherwise, e.type);
    out.type = e.type;
  }
  return out;
}

Cell Translator::window_cell(const Expression& e, const Relation& in, Frame f) {
  const PlaceScope scope(place_, e.place);
  const Window& w = plan_.windows[e.index];
  const double most_rows = g_[f.rows].most_rows;
  const Bounds numbers = Bounds::of(0, static_cast<__int128>(most_rows));
  const VectorId one = g_.integer(BasicType::i64, 1);
  const auto plus = [&](VectorId x, VectorId y) {
    return g_.map("plus", {x, y}, BasicType::i64, numbers);
  };
  const auto minus = [&](VectorId x, VectorId y) {
    return g_.map("minus", {x, y}, BasicType::i64, numbers);
  };
  const auto ratio = [&](VectorId x, VectorId y) {
    return Cell{
        g_.map("div", {g_.cast(x, BasicType::f64), g_.cast(y, BasicType::f64)}, BasicType::f64),
        nothing, e.type};
  };
  const auto number = [&](VectorId x) { return Cell{x, nothing, e.type}; };
  const VectorId count = minus(f.partition.end, f.partition.first),
                 before = minus(g_.rows(f.rows), f.partition.first),
                 above = minus(f.peers.first, f.partition.first);
  switch (w.function) {
    case WindowFunction::row_number: return number(plus(before, one));
    case WindowFunction::rank: return number(plus(above, one));
    case WindowFunction::dense_rank:
      return number(plus(minus(f.peers.number, g_.pick(f.peers.number, f.partition.first)), one));
    case WindowFunction::percent_rank: {
      const VectorId others = minus(count, one);
      const VectorId is_alone = g_.map("lt", {others, one}, BasicType::boolean);
      return ratio(above, g_.select(is_alone, one, others));
    }
    case WindowFunction::cume_dist: return ratio(minus(f.peers.end, f.partition.first), count);
    case WindowFunction::ntile: {
      bool is_null = false;
      const std::optional<int64_t> n =
          constant_of(plan_.of(e.arguments)[0], "the argument of ntile", is_null);
      if (is_null) return null_of(e.type);
      if (!n || *n < 1) {
        fail("the argument of ntile is not above 0");
        return failed(e.type);
      }
      // The first `more` parts have one row more than the others.
      const VectorId wanted = g_.integer(BasicType::i64, *n);
      const VectorId parts =
          g_.select(g_.map("lt", {count, wanted}, BasicType::boolean), count, wanted);
      const auto over = [&](std::string_view builtin, VectorId x, VectorId y) {
        return g_.map(builtin, {x, y}, BasicType::i64, numbers);
      };
      const VectorId each = over("div", count, parts), more = over("mod", count, parts);
      const VectorId larger = plus(each, one), within = over("mul", more, larger);
      const VectorId part =
          g_.select(g_.map("lt", {before, within}, BasicType::boolean), over("div", before, larger),
                    plus(more, over("div", minus(before, within), each)));
      return number(plus(part, one));
    }
    case WindowFunction::lag:
    case WindowFunction::lead: return value_at(e, in, f, w.ignores_nulls, w.function);
    case WindowFunction::first_value:
    case WindowFunction::last_value:
    case WindowFunction::nth_value:
    case WindowFunction::aggregate: break;
  }
  set_frame(f, w, in);
  if (error_) return failed(e.type);
  if (w.function != WindowFunction::aggregate)
    return value_at(e, in, f, w.ignores_nulls, w.function);
  const Aggregate a = e.aggregate_function;
  if ((a == Aggregate::first || a == Aggregate::any_value) && is_none(e.filter))
    return value_at(e, in, f, a == Aggregate::any_value, WindowFunction::first_value);
  Groups g;
  g.rows = g.space = f.rows;
  g.frame = &f;
  if (e.distinct && a != Aggregate::min && a != Aggregate::max)
    g.once = first_of_their_like(e, in, f);
  return error_ ? failed(e.type) : aggregate_cell(e, in, g);
}

// Of the rows that an aggregate of distinct values counts the first with each value in its
// partition: those that frames from the partition's first row on have to count.
VectorId Translator::first_of_their_like(const Expression& e, const Relation& in, const Frame& f) {
  if (!f.parts.empty()) {
    fail("the aggregate {} of distinct values in a frame with EXCLUDE has no translation",
         name_of(e.aggregate_function));
    return nothing;
  }
  if (!f.from_head) {
    fail(
        "the aggregate {} of distinct values in a frame that begins behind its partition's first "
        "row has no translation",
        name_of(e.aggregate_function));
    return nothing;
  }
  const Type truth{TypeId::boolean};
  VectorId counted = nothing;
  if (!is_none(e.filter)) counted = evaluate(e.filter, in).value;
  const Cell x = evaluate(plan_.of(e.arguments)[0], in, counted);
  if (error_) return nothing;
  counted = g_.and_(counted, x.valid);
  std::vector<Cell> cells{{f.partition.number, nothing, {TypeId::bigint}},
                          {x.value, nothing, x.type}};
  if (!is_none(counted)) cells.push_back({counted, nothing, truth});
  std::vector<SortKey> keys;
  for (const Cell& c : cells) keys.push_back({c});
  const VectorId order = permutation(f.rows, keys);  // which keeps rows alike in their order
  for (Cell& c : cells) c = pick(c, order);
  return scatter(f.rows, order, run_of(g_[order].space, cells, nothing).head);
}

Relation Translator::window(const Node& n) {
  Relation r = compact(relation(plan_.of(n.children)[0]));
  if (error_) return {};
  if (r.space == one_row) {
    const VectorId row = g_.call("@range(", {g_.integer(BasicType::i64, 1)}, BasicType::i64,
                                 g_.space(1), "row", Bounds::of(0, 0));
    r.space = g_[row].space;
    g_.set_witness(r.space, row);
  }
  const std::span<const ExpressionId> expressions = plan_.of(n.expressions);
  const size_t before = r.columns.size();
  const auto partition_keys = [&](const Window& w, const Relation& in) {
    std::vector<SortKey> keys;
    for (ExpressionId key : plan_.of(w.partitions)) keys.push_back({evaluate(key, in)});
    return keys;
  };
  const auto keys_of_window = [&](const Window& w, const Relation& in) {
    std::vector<SortKey> keys = partition_keys(w, in);
    for (SortKey& key : sort_keys(in, plan_.of(w.orders))) keys.push_back(key);
    return keys;
  };
  const auto alike = [](const SortKey& x, const SortKey& y) {
    return x.cell.value == y.cell.value && x.cell.valid == y.cell.valid &&
           x.descending == y.descending &&
           (is_none(x.cell.valid) || x.nulls_first == y.nulls_first);
  };
  // Windows whose keys begin another's list are made in its order.
  struct Sorting {
    std::vector<SortKey> keys;
    std::vector<size_t> members;
  };
  std::vector<size_t> longest_first(expressions.size());
  std::vector<std::vector<SortKey>> keys;
  for (size_t i = 0; i < expressions.size(); ++i) {
    const Expression& e = plan_[expressions[i]];
    if (e.kind != Expression::window) fail("a window holds what is no window function");
    if (error_) return {};
    longest_first[i] = i;
    keys.push_back(keys_of_window(plan_.windows[e.index], r));
  }
  std::stable_sort(longest_first.begin(), longest_first.end(),
                   [&](size_t a, size_t b) { return keys[a].size() > keys[b].size(); });
  std::vector<Sorting> sortings;
  for (size_t i : longest_first) {
    auto at = std::find_if(sortings.begin(), sortings.end(), [&](const Sorting& s) {
      return std::equal(keys[i].begin(), keys[i].end(), s.keys.begin(),
                        s.keys.begin() + static_cast<ptrdiff_t>(keys[i].size()), alike);
    });
    if (at == sortings.end()) at = sortings.insert(at, {keys[i], {}});
    at->members.push_back(i);
  }
  std::vector<size_t> made(expressions.size());
  for (const Sorting& s : sortings) {
    const Window& longest_window = plan_.windows[plan_[expressions[s.members[0]]].index];
    if (const VectorId order = permutation(r.space, keys_of_window(longest_window, r));
        !is_none(order))
      pick(r, order);
    for (size_t i : s.members) {
      const Expression& e = plan_[expressions[i]];
      const Window& w = plan_.windows[e.index];
      const auto cells = [](const std::vector<SortKey>& from) {
        std::vector<Cell> out;
        for (const SortKey& key : from) out.push_back(key.cell);
        return out;
      };
      Frame f;
      f.rows = r.space;
      f.partition = run_of(r.space, cells(partition_keys(w, r)), nothing);
      f.peers = run_of(r.space, cells(sort_keys(r, plan_.of(w.orders))), f.partition.head);
      made[i] = r.columns.size();
      r.columns.push_back(window_cell(e, r, std::move(f)));
      if (error_) return {};
    }
  }
  std::vector<Cell> columns(r.columns.begin(), r.columns.begin() + static_cast<ptrdiff_t>(before));
  for (size_t at : made) columns.push_back(r.columns[at]);
  r.columns = std::move(columns);
  return r;
}

}  // namespace rndn::sql
