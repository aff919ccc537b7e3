// Work on the cells of lists: on the simulator as on the reference interpreter, without a fallback,
// and with as many launches whatever the number of cells. And random programs of lists
// (RNDN_LISTS_SEEDS=N: the seeds up to N, RNDN_LISTS_FIRST=N: from N on, RNDN_LISTS_SHOW: the
// programs that fall back).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <numeric>
#include <random>

#include "runtime/engine.h"
#include "runtime/print_result.h"
#include "runtime/simulator/simulator_device.h"
#include "tests/support/every_case.h"
#include "tests/support/no_tables.h"

namespace rndn::runtime::lists_test {
namespace {

// Functions that the rows apply to cells.
constexpr const char* functions = R"(
  def twice(c:i64) : i64 { y:i64 = @mul(c, 2:i64); return y; }
  def spread(c:i64) : i64 { a:i64 = @max(c); b:i64 = @min(c); y:i64 = @minus(a, b); return y; }
  def centred(c:f64) : f64 { a:f64 = @avg(c); y:f64 = @minus(c, a); return y; }
  def different(c:i64) : i64 { u:i64 = @unique(c); y:i64 = @len(u); return y; }
  def largest_group(c:i64) : i64 {
    g:? = @group(c); r:list<i64> = @values(g); m:list<i64> = @each(@len, r);
    y:i64 = @raze(m); z:i64 = @max(y); return z; }
  def commonest(c:sym) : i64 {
    g:? = @group(c); r:list<i64> = @values(g); m:list<i64> = @each(@len, r);
    y:i64 = @raze(m); z:i64 = @max(y); return z; }
  def sums_by_rest(c:i64) : i64 {
    k:i64 = @mod(c, 3:i64); g:? = @group(k); r:list<i64> = @values(g);
    p:list<i64> = @each_right(@index, c, r);
    m:list<i64> = @each(@sum, p); y:i64 = @raze(m); return y; }
  def top_two(c:i64) : i64 { o:i64 = @order(c, 0:bool); t:i64 = @take(2:i64, o);
    n:i64 = @len(c); in:bool = @lt(t, n);
    u:i64 = @compress(in, t); y:i64 = @index(c, u); return y; }
  def shares(c:i64) : f64 { s:i64 = @sum(c); f:f64 = check_cast(c, f64); y:f64 = @div(f, s);
    return y; }
  def above(c:i64) : i64 { a:f64 = @avg(c); m:bool = @gt(c, a); y:i64 = @compress(m, c); return y; }
)";

// Columns of `rows` rows in `groups` groups: x numbers, k keys, v small numbers, w halves, q bools,
// tx texts; their groups d with `first` rows and `rows`, and the cells p, wp, qp, tp of these
// columns. `none`: no rows at all.
std::string program(const std::string& body, const std::string& results, uint64_t rows,
                    uint64_t groups, bool none = false) {
  size_t count = 1 + static_cast<size_t>(std::count(results.begin(), results.end(), ','));
  std::string types = "?";
  while (--count) types += ", ?";
  const char* cut = none ? "@lt(x0, 0:i64)" : "@geq(x0, 0:i64)";
  return fmt::format(R"(module m {{ import Builtin.*; {}
  def main() : {} {{
  x0:i64 = @range({}:i64); cut:bool = {}; x:i64 = @compress(cut, x0);
  a:i64 = @mul(x, 7919:i64); k:i64 = @mod(a, {}:i64); v:i64 = @mod(a, 13:i64);
  w:f64 = @mul(v, 0.5:f64); q:bool = @gt(v, 5:i64);
  names:sym = (`ape,`bee,`cat,`dog):sym; v4:i64 = @mod(v, 4:i64); tx:sym = @index(names, v4);
  d:? = @group(k); first:i64 = @keys(d); rows:list<i64> = @values(d);
  p:list<i64> = @each_right(@index, v, rows); wp:list<f64> = @each_right(@index, w, rows);
  qp:list<bool> = @each_right(@index, q, rows); tp:list<sym> = @each_right(@index, tx, rows);
  n:list<i64> = @each(@len, p); nv:i64 = @raze(n);
  {}
  return {}; }} }})",
                     functions, types, rows, cut, groups, body, results);
}

struct Outcome {
  std::string said;
  std::vector<std::string> fallbacks;  // of the plan and of the run
  uint64_t launches = 0;
};

std::string said(const Result<std::vector<reference::Value>>& got) {
  return got ? *print_result(*got, Format::csv)
             : fmt::format("{}: {}", got.error().exit_code(), got.error().message);
}

// On both; they must say the same.
Outcome run(const std::string& text, const char* target = "sm_86",
            outliner::Mode mode = outliner::Mode::full) {
  SourceManager sources;
  DiagnosticSink sink;
  Timings timings;
  CompileOptions options;
  options.target = target;
  options.outline = mode;
  Outcome out;
  auto compiled = compile(sources.add("l.hir", text), sources, options, sink, timings);
  EXPECT_TRUE(compiled.ok()) << compiled.error().message << render(sink, sources) << text;
  if (!compiled) return out;
  const rndn::test::NoTables tables;
  auto device = open_simulator(target);
  Engine engine(**device, tables);
  auto plan = engine.plan(*compiled, sources, {}, timings);
  EXPECT_TRUE(plan.ok()) << plan.error().message << text;
  if (!plan) return out;
  out.fallbacks = (*plan)->fallbacks();
  std::vector<KernelReport> kernels;
  out.said = said(engine.run(**plan, timings, nullptr, &kernels, &out.fallbacks));
  EXPECT_EQ(out.said, said(reference::run(compiled->program, tables, sources, nullptr))) << text;
  out.launches = std::accumulate(kernels.begin(), kernels.end(), uint64_t{0},
                                 [](uint64_t n, const KernelReport& k) { return n + k.launches; });
  return out;
}

struct Row {
  const char* name;
  const char* body;
  const char* results;
  bool grows = false;  // a column for every cell, or all cells for every cell
};
constexpr Row table[] = {
    {"len cells", "", "n, nv"},
    {"elementwise", "r:? = @each(@neg, p);", "r"},
    {"left scalar", "r:? = @each_left(@plus, p, 3:i64);", "r"},
    {"right scalar", "r:? = @each_right(@minus, 3:i64, p);", "r"},
    {"item same", "r:? = @each_item(@plus, p, rows);", "r"},
    {"item scalar cells", "s:? = @each(@sum, p); r:? = @each_item(@minus, p, s);", "r"},
    {"left of scalar cells", "r:? = @each_left(@plus, n, 1:i64);", "r"},
    {"each of scalar cells", "r:? = @each(@neg, n);", "r"},
    {"item of scalar cells", "s:? = @each(@sum, p); r:? = @each_item(@minus, s, n);", "r"},
    {"left index", "r:? = @each_left(@index, p, 0:i64);", "r"},
    {"left index raze", "f:? = @each_left(@index, p, 0:i64); r:? = @raze(f);", "r"},
    {"item index", "u:? = @each(@unique, p); r:? = @each_item(@index, p, u);", "r"},
    {"unique len", "u:? = @each(@unique, p); m:? = @each(@len, u); r:? = @raze(m);", "r"},
    {"item compress", "r:? = @each_item(@compress, qp, p);", "r"},
    {"each where", "r:? = @each(@where, qp);", "r"},
    {"each reverse", "r:? = @each(@reverse, p);", "r"},
    {"each order", "r:? = @each_left(@order, p, 1:bool);", "r"},
    {"each order index", "o:? = @each_left(@order, p, 0:bool); r:? = @each_item(@index, p, o);",
     "r"},
    {"right take", "r:? = @each_right(@take, 2:i64, p);", "r"},
    {"right take neg", "r:? = @each_right(@take, -2:i64, p);", "r"},
    {"right drop", "r:? = @each_right(@drop, 1:i64, p);", "r"},
    {"item append", "r:? = @each_item(@append, p, rows);", "r"},
    {"left append", "r:? = @each_left(@append, p, 9:i64);", "r"},
    {"append lists", "r:? = @append(p, rows);", "r"},
    {"index cell", "r:? = @index(p, 0:i64);", "r"},
    {"flip", "r:? = @flip(p);", "r"},
    {"replicate", "r:? = @replicate(2:i64, p);", "r"},
    {"match lists", "r:bool = @match(p, rows); s:bool = @match(p, p);", "r, s"},
    {"raze p", "r:? = @raze(p);", "r"},
    {"each group", "r:? = @each(@group, p);", "r"},
    {"each group values", "gg:? = @each(@group, p); vv:? = @each(@values, gg);", "vv"},
    {"each group keys", "gg:? = @each(@group, p); vv:? = @each(@keys, gg);", "vv"},
    {"left member", "r:? = @each_left(@member, p, (1,2):i64);", "r"},
    {"right member", "r:? = @each_right(@member, (1,2,3):i64, p);", "r"},
    {"item member", "r:? = @each_item(@member, p, rows);", "r"},
    {"each range", "r:? = @each(@range, n);", "r"},
    {"each tolist", "r:? = @each(@tolist, p);", "r"},
    {"each scan", "m:? = @each_left(@lt, p, 0:i64); r:? = @each_item(@scan_sum, p, m);", "r"},
    {"index a scatter", "y:i64 = @index_a(v, first, nv);", "y"},
    {"each sum", "r:? = @each(@sum, p); s:? = @each(@sum, wp);", "r, s"},
    {"each avg", "r:? = @each(@avg, p);", "r"},
    {"each minmax", "r:? = @each(@min, p); s:? = @each(@max, wp);", "r, s"},
    {"each any all", "r:? = @each(@any, qp); s:? = @each(@all, qp);", "r, s"},
    {"nested group",
     "d2:? = @group(nv); r2:? = @values(d2); s:? = @each(@sum, p); sv:? = @raze(s); t:? = "
     "@each_right(@index, sv, r2); u:? = @each(@sum, t); z:? = @raze(u);",
     "z"},
    {"list results",
     "a1:? = @each(@sum, p); b1:? = @raze(a1); l:? = @list(b1, nv); d2:? = @group(l); r:? = "
     "@keys(d2);",
     "r"},
    {"list each", "l:? = @list(v, k); r:? = @each(@sum, l); s:? = @raze(r);", "s"},
    {"list raze", "l:? = @list(v, k); r:? = @raze(l);", "r"},
    {"list raze mixed", "l:? = @list(v, w); r:? = @raze(l);", "r"},
    {"list right index", "l:? = @list(v, k); r:? = @each_left(@index, l, first);", "r"},
    {"list len", "l:? = @list(v, k); r:? = @len(l);", "r"},
    {"tolist each", "l:? = @tolist(v); r:? = @each(@neg, l); s:? = @raze(r);", "s"},
    {"tolist sum", "l:? = @tolist(v); r:? = @each(@sum, l); s:? = @raze(r);", "s"},
    {"empty cells",
     "qq:list<bool> = @each_left(@gt, p, 20:i64); r:? = @each_item(@compress, qq, p); s:? = "
     "@each(@len, r); t:? = @each(@sum, r); u:? = @raze(r);",
     "r, s, t, u"},
    {"some empty",
     "qq:list<bool> = @each_left(@gt, p, 10:i64); r:? = @each_item(@compress, qq, p); s:? = "
     "@each(@sum, r); t:? = @each(@neg, r);",
     "r, s, t"},
    {"cells eq firsts", "f:? = @each_left(@index, p, 0:i64); r:? = @each_item(@eq, p, f);", "r"},
    {"left vector", "r:? = @each_left(@plus, n, (1,2,3):i64);", "r"},
    {"select item", "r:? = @each_left(@gt, wp, 2.0:f64);", "r"},
    {"table of list",
     "kk:i64 = @index(k, first); z:? = @list(kk, nv); r:? = @table((`a,`b):sym, z);", "r"},
    {"dict values", "r:? = @values(d); s:? = @keys(d);", "r, s"},
    {"raze expr", "s:? = @each(@sum, p); sv:? = @raze(s); av:? = @div(sv, nv);", "av"},
    {"text parts",
     "f:? = @each_left(@index, tp, 0:i64); r:? = @raze(f); u:? = @each(@unique, tp); m:? = "
     "@each(@len, u); b:? = @each_left(@append, tp, `eel:sym);",
     "tp, r, m, b"},
    {"text groups",
     "g2:? = @each(@group, tp); f:? = @each(@keys, g2); h:? = @each_item(@index, tp, f); i:? = "
     "@each(@len, h);",
     "i"},
    {"text take", "r:? = @each_right(@take, 3:i64, tp); s:? = @each_right(@take, -3:i64, tp);",
     "r, s"},
    {"index a of cells",
     "z:i64 = @vector(50:i64, 0:i64); i:? = @raze(rows); s:? = @raze(p); r:? = @index_a(z, i, s);",
     "r"},
    {"outer join by counting",
     "b:bool = @lt(k, 3:i64); y0:i64 = @compress(b, k); g2:? = @group(y0); f2:? = @keys(g2); "
     "r2:list<i64> = @values(g2); c2:? = @each(@len, r2); n2:? = @raze(c2); y:? = @index(y0, f2); "
     "kk:? = @index(k, first); m:bool = @member(kk, y); none:bool = @not(m); rest:? = "
     "@compress(none, kk); keys:? = @append(y, rest); zero:? = @mul(rest, 0:i64); counts:? = "
     "@append(n2, zero);",
     "keys, counts"},
    {"join of groups",
     "kk:i64 = @index(k, first); d2:? = @group(v); f2:? = @keys(d2); vk:? = @index(v, f2); j:? = "
     "@join_index(@eq, kk, vk); l:? = @index(j, 0:i64); r:? = @index(kk, l);",
     "r"},
    {"function of cells", "r:? = @each(@twice, p); s:? = @each(@spread, p);", "r, s"},
    {"function: unique", "r:? = @each(@different, p); s:? = @raze(r);", "r, s"},
    {"function: group", "r:? = @each(@largest_group, p);", "r"},
    {"function: sizes of groups of texts", "r:? = @each(@commonest, tp); s:? = @raze(r);", "r, s"},
    {"function: sums of groups",
     "r:? = @each(@sums_by_rest, p); s:? = @each(@len, r); t:? = @raze(r);", "r, s, t"},
    {"function: order, take", "r:? = @each(@top_two, p);", "r"},
    {"function: a cast", "r:? = @each(@shares, p);", "r"},
    {"function: floats", "r:? = @each(@centred, wp);", "r"},
    {"function: selection", "r:? = @each(@above, p); s:? = @each(@len, r);", "r, s"},
    {"function of columns", "l:? = @list(v, k); r:? = @each(@twice, l); s:? = @raze(r);", "s"},
    {"index of whole", "r:? = @each_left(@index_of, p, (1,2):i64);", "r"},
    {"index of cells", "s:? = @each(@unique, p); r:? = @each_item(@index_of, p, s);", "r"},
    {"right index of single cells", "r:? = @each_right(@index, x0, n);", "r"},
    {"where, index", "i:? = @each(@where, qp); r:? = @each_item(@index, p, i);", "r"},
    {"no cells selected",
     "r:? = @each(@sum, p); s:? = @each_item(@plus, p, r); u:? = @raze(s); z:? = @sum(u);", "s, z"},
    {"count of each, of groups",
     "d2:? = @group(nv); r2:? = @values(d2); c2:? = @each(@len, r2); z:? = @raze(c2); f2:? = "
     "@keys(d2); y:? = @index(nv, f2);",
     "y, z"},
    {"groups of two columns",
     "l:? = @list(k, tx); g2:? = @group(l); f2:? = @keys(g2); r2:? = @values(g2); c:? = "
     "@each_right(@index, w, r2); s:? = @each(@sum, c); z:? = @raze(s); u:? = @sum(z); m:? = "
     "@each(@max, c); y:? = @raze(m); b:? = @max(y);",
     "u, b"},
    {"replicate of a vector", "r:? = @replicate(3:i64, v4); s:? = @raze(r);", "s"},
    {"flip of single cells", "r:? = @flip(n); s:? = @raze(r);", "r, s"},
    {"reductions of literals",
     "f1:? = @sum((2,0,1):i64); f2:? = @max(3:i64); f3:? = @avg(1.5:f64); f4:? = @any(0:bool);",
     "f1, f2, f3, f4"},
    {"group and order of a list of cells",
     "m:? = @each_left(@append, p, 1:i64); t:? = @each_right(@take, 2:i64, m); g2:? = @group(t); "
     "f2:? = @keys(g2); r2:? = @values(g2); o:? = @order(t, 1:bool);",
     "f2, r2, o", true},
    {"append of whole lists",
     "f1:? = @each_right(@append, p, rows); f2:? = @each_left(@append, rows, p); f3:? = "
     "@each_left(@append, p, rows); f4:? = @each(@len, f1);",
     "f1, f2, f3, f4", true},
    {"append of vectors to whole lists",
     "f1:? = @each_left(@append, rows, n); f2:? = @each_right(@append, rows, first);", "f1, f2",
     true},
    {"cells of whole lists",
     "i:? = @each(@min, p); z:? = @each_item(@minus, i, i); r:? = @each_right(@index, p, z);", "r",
     true},
    {"member of floats",
     "z:? = @each_left(@minus, wp, 1.0:f64); y:? = @each_item(@div, z, z); r:? = "
     "@each_item(@member, y, wp); s:? = @each_item(@index_of, y, y); t:? = @each_item(@member, p, "
     "wp); u:? = @each_item(@index_of, wp, p);",
     "r, s, t, u"},
    {"lists of dicts", "r:? = @each(@group, p); s:? = @each(@group, tp); m:? = @each(@values, s);",
     "r, s, m"},
    {"a number of unknown length",
     "one:? = @min(nv); i:? = @unique(one); j:? = @plus(i, 1:i64); r:? = @each_right(@take, j, p); "
     "s:? = @each_right(@drop, j, p); z:? = @index(p, i); y:? = @replicate(j, p);",
     "r, s, z, y"},
    {"append of cells of two types",
     "r:? = @append(p, wp); s:? = @append(tp, r); a1:i64 = @len(s); b1:? = @append(s, s); c1:i64 = @len(b1);",
     "r, s, a1, b1, c1"},
    {"append of a vector of another type",
     "r:? = @append(p, w); s:? = @append(tx, p); t:? = @append(r, s); u:? = @append(n, q);",
     "r, s, t, u"},
    {"append to known cells",
     "l:? = @list(v, w); r:? = @append(l, p); s:? = @append(wp, l); t:? = @append(l, tx); a1:i64 = "
     "@len(t); b1:? = @index(t, 2:i64); u:? = @append(x, l); m:? = @append(l, l);",
     "r, s, t, a1, b1, u, m"},
    {"flip and replicate of cells of several types",
     "m:? = @append(p, wp); r:? = @flip(m); s:? = @replicate(2:i64, m); one:? = @min(nv); t:? = "
     "@replicate(one, r); u:? = @append(s, t); a1:i64 = @len(u);",
     "r, s, t, u, a1", true},
    {"append of whole lists of other cells",
     "r:? = @each_left(@append, p, wp); s:? = @each_right(@append, tp, r); t:? = @each(@len, s); "
     "u:? = @append(r, r); z:? = @each_item(@append, r, p); y:? = @each_right(@append, r, p);",
     "r, s, t, u, z, y", true},
    {"lists of lists",
     "g2:? = @each(@group, p); vv:? = @each(@values, g2); r:? = @flip(vv); s:? = @append(vv, r); "
     "t:? = @replicate(2:i64, s); u:? = @append(vv, wp); z:? = @each_item(@append, vv, wp);",
     "r, s, t, u, z"},
    {"dicts of two kinds",
     "r:? = @each(@group, p); s:? = @each(@group, wp); t:? = @append(r, s); z:? = @append(t, tp);",
     "t, z"},
    {"known cells for every cell",
     "l:? = @list(v, w); r:? = @each_left(@append, p, l); s:? = @each_right(@append, l, wp);",
     "r, s", true},
    {"group and order of cells of several types",
     "f:? = @each_left(@index, p, 0:i64); h:? = @each_left(@index, tp, 0:i64); m:? = @append(f, "
     "h); g2:? = @group(m); f2:? = @keys(g2); r2:? = @values(g2); o:? = @order(m, 1:bool);",
     "f2, r2, o", true},
    {"directions of each cell",
     "m:? = @each(@any, qp); r:? = @each_item(@order, p, m); s:? = @each_item(@order, tp, m); b1:bool = "
     "@gt(nv, 0:i64); b2:bool = @any(b1); t:? = @each_left(@order, wp, b2); u:? = @each_right(@order, "
     "0.5:f64, m); z:? = @each_right(@order, w, m);",
     "r, s, t, u, z", true},
    {"each range of each", "i:? = @each(@range, n); r:? = @each_item(@index, p, i);", "r"},
};

TEST(Lists, StayOnTheDevice) {
  struct Size {
    uint64_t rows, groups;
    bool none;
  };
  rndn::test::Sample sample(2);  // two of a row's four sizes in the gate
  for (const Row& row : table)
    for (const Size& size : {Size{40, 1, false}, {50, 7, false}, {40, 40, false}, {40, 7, true}}) {
      if (!sample.has_next()) continue;
      SCOPED_TRACE(fmt::format("{} of {} rows in {} groups{}", row.name, size.rows, size.groups,
                               size.none ? ", none" : ""));
      const Outcome got = run(program(row.body, row.results, size.rows, size.groups, size.none));
      for (const std::string& met : got.fallbacks) ADD_FAILURE() << met;
    }
}

// 10 cells and many, with as many rows: sorts of longer keys and longer scans take some launches
// more, cells none. RNDN_LISTS_CELLS: how many, instead of some that take less time.
TEST(Lists, LaunchesDoNotGrowWithTheCells) {
  constexpr uint64_t more = 24;
  const char* asked = std::getenv("RNDN_LISTS_CELLS");
  const uint64_t most = asked ? static_cast<uint64_t>(std::atoll(asked)) : rndn::test::in_the_gate(200, 1000);
  for (const Row& row : table) {
    if (row.grows) continue;
    SCOPED_TRACE(row.name);
    const Outcome few = run(program(row.body, row.results, most, 10));
    const Outcome many = run(program(row.body, row.results, most, most));
    EXPECT_LE(many.launches, few.launches + more);
    EXPECT_GT(few.launches, 0u);
  }
}

// Vectors that are taken to be as long as what they meet, and have one element when the program runs: element-wise work
// takes copies of it, which results, reductions and selections of it must not see.
TEST(Lists, OneElementMeetsMany) {
  struct Case {
    const char *body, *results;
    bool stays;
  };
  for (const Case& c : {Case{"r:? = @plus(v, nv);", "r", true},
                        {"t:? = @neg(nv); u:? = @plus(t, first); r:? = @mul(w, u);", "r", true},
                        {"m:? = @lt(a, nv); r:? = @compress(m, x);", "r", true},
                        {"r:? = @plus(v, nv); t:? = @neg(nv); s:? = @sum(t);", "r, s", false},
                        {"t:? = @neg(nv); r:? = @plus(v, t);", "r, t", false},
                        {"m:? = @gt(nv, 3:i64); t:? = @compress(m, nv); r:? = @plus(v, nv); s:? = @plus(r, t);",
                         "r, s, t", false}})
    for (const outliner::Mode mode : {outliner::Mode::full, outliner::Mode::none}) {
      SCOPED_TRACE(c.body);
      const Outcome got = run(program(c.body, c.results, 40, 1), "sm_86", mode);
      if (c.stays)
        for (const std::string& met : got.fallbacks) ADD_FAILURE() << met;
    }
}

// --- Random programs ---

// A program is made of statements with a builtin, and arguments that are drawn from everything that
// there is, whatever their types: what the compiler or the interpreter refuses is drawn anew. So a
// program has what the language lets pass.
class RandomLists {
 public:
  explicit RandomLists(uint32_t seed) : random_(seed) {}

  std::string make(size_t statements) {
    const uint64_t rows = pick({0, 1, 7, 23, 60}), groups = pick({1, 2, 7, 50});
    std::string body = fmt::format(
        "s0:i64 = @range({}:i64); s1:i64 = @mul(s0, {}:i64); s2:i64 = @mod(s1, {}:i64); s3:i64 = "
        "@mod(s1, 5:i64);\n"
        "    s4:f64 = @mul(s3, 0.25:f64); s5:bool = @gt(s3, 2:i64); d0:? = @group(s2); s6:i64 = "
        "@keys(d0); l0:list<i64> = @values(d0);\n",
        rows, pick({7, 31, 7919}), groups);
    names_ = {"s0", "s1", "s2", "s3", "s4", "s5", "d0", "s6", "l0", "l0", "l0"};
    for (const char* column : {"s3", "s4", "s5"})
      add(body, fmt::format("@each_right(@index, {}, l0)", column));
    for (size_t tries = 0; made_ < statements && tries < 40 * statements; ++tries)
      add(body, call());
    std::string results = names_.back();
    for (int k = 0; k < 3; ++k) results += ", " + names_[draw(names_.size())];
    return text(body, results, 4);
  }

 private:
  size_t draw(size_t below) { return std::uniform_int_distribution<size_t>(0, below - 1)(random_); }
  uint64_t pick(std::initializer_list<uint64_t> of) { return of.begin()[draw(of.size())]; }

  static std::string text(const std::string& body, const std::string& results, size_t count) {
    std::string types = "?";
    while (--count) types += ", ?";
    return fmt::format(
        "module m {{ import Builtin.*; {}\n  def main() : {} {{\n    {}\n    return {}; }} }}",
        functions, types, body, results);
  }
  // Later names are more likely.
  std::string argument() {
    if (draw(8) == 0) {
      static constexpr const char* literals[] = {"0:i64",   "1:i64",     "-2:i64",
                                                 "3:i64",   "1:bool",    "0:bool",
                                                 "0.5:f64", "(1,2):i64", "(2,0,1):i64"};
      return literals[draw(std::size(literals))];
    }
    return names_[std::max(draw(names_.size()), draw(names_.size()))];
  }
  std::string function() {
    static constexpr const char* any[] = {
        "neg",      "abs",    "not",      "plus",      "minus",         "mul",          "lt",
        "geq",      "eq",     "and",      "or",        "len",           "sum",          "min",
        "max",      "any",    "all",      "index",     "compress",      "where",        "reverse",
        "take",     "drop",   "append",   "unique",    "order",         "group",        "keys",
        "values",   "member", "index_of", "range",     "tolist",        "raze",         "scan_sum",
        "scan_max", "twice",  "spread",   "different", "largest_group", "sums_by_rest", "top_two",
        "above",    "index",  "sum",      "len"};
    return std::string("@") + any[draw(std::size(any))];
  }
  std::string call() {
    if (draw(4) == 0) {
      static constexpr std::pair<const char*, int> on_lists[] = {
          {"raze", 1},     {"raze", 1},   {"append", 2}, {"flip", 1},      {"index", 2},
          {"list", 2},     {"tolist", 1}, {"len", 1},    {"replicate", 2}, {"sum", 1},
          {"group", 1},    {"keys", 1},   {"values", 1}, {"order", 2},     {"plus", 2},
          {"compress", 2}, {"lt", 2},     {"match", 2},
      };
      const auto& [name, arity] = on_lists[draw(std::size(on_lists))];
      std::string out = fmt::format("@{}({}", name, argument());
      for (int k = 1; k < arity; ++k) out += ", " + argument();
      return out + ")";
    }
    static constexpr const char* forms[] = {"each", "each", "each_item", "each_left", "each_right"};
    const std::string form = forms[draw(std::size(forms))];
    std::string out = fmt::format("@{}({}, {}", form, function(), argument());
    if (form != "each") out += ", " + argument();
    return out + ")";
  }

  // Takes the statement in when the program still runs.
  void add(std::string& body, const std::string& call) {
    const std::string name = fmt::format("x{}", made_),
                      more = body + fmt::format("    {}:? = {};\n", name, call);
    SourceManager sources;
    DiagnosticSink sink;
    Timings timings;
    CompileOptions options;
    options.until = Stage::typed;
    auto compiled =
        compile(sources.add("l.hir", text(more, name, 1)), sources, options, sink, timings);
    if (!compiled) return;
    const rndn::test::NoTables tables;
    const auto got = reference::run(compiled->program, tables, sources, nullptr);
    if (!got || said(got).size() > 20000) return;
    body = more;
    names_.push_back(name);
    ++made_;
  }

  std::mt19937 random_;
  std::vector<std::string> names_;
  size_t made_ = 0;
};

TEST(Lists, RandomPrograms) {
  const char *seeds = std::getenv("RNDN_LISTS_SEEDS"), *from = std::getenv("RNDN_LISTS_FIRST");
  const uint32_t first = from ? static_cast<uint32_t>(std::atoi(from)) : 1,
                 last = seeds ? static_cast<uint32_t>(std::atoi(seeds)) : 60;
  constexpr const char* targets[] = {"sm_61", "sm_86", "sm_90"};
  constexpr outliner::Mode modes[] = {outliner::Mode::full, outliner::Mode::full,
                                      outliner::Mode::flow, outliner::Mode::none};
  size_t with_fallback = 0;
  std::map<std::string, size_t> met;
  for (uint32_t seed = first; seed <= last && !HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const std::string text = RandomLists(seed).make(10);
    const Outcome got = run(text, targets[seed % 3], modes[seed / 3 % 4]);
    with_fallback += !got.fallbacks.empty();
    if (std::getenv("RNDN_LISTS_SHOW"))
      for (const std::string& f : got.fallbacks) fmt::print("seed {}: {}\n{}\n", seed, f, text);
    for (const std::string& f : got.fallbacks)
      ++met[f.substr(std::min(f.find('`'), f.find("the whole")))];
  }
  for (const auto& [what, times] : met) fmt::print("{} times {}\n", times, what);
  fmt::print("{} programs, {} with a fallback\n", last - first + 1, with_fallback);
  // Ratchets. What is left in more programs: known cells beside unknown ones, single values, lists of other lengths.
  if (first == 1 && last == 60) {
    EXPECT_EQ(with_fallback, 0u);
  }
  if (first == 1 && last >= 200) {
    EXPECT_LE(100 * with_fallback, 3u * last);
  }
}

}  // namespace
}  // namespace rndn::runtime::lists_test
