// Runs of sorted rows and distinct values as groups (outliner/group_forms.cpp), and element-wise work on the cells of
// groups as work on columns (outliner/group_cells.cpp), and orders that groups have anyhow (outliner/group_orders.cpp): random programs of that kind,
// of which a part says something else, give the same with and without them on the reference interpreter, and the same on
// the simulator. Floats are quarters, so that sums are exact however they are added. RNDN_RANDOM_SEEDS=N: so many
// programs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "frontend/frontend.h"
#include "outliner/outliner.h"
#include "runtime/engine.h"
#include "runtime/print_result.h"
#include "runtime/simulator/simulator_device.h"
#include "tests/support/every_case.h"
#include "tests/support/no_tables.h"

namespace rndn::runtime::group_forms_test {
namespace {

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  std::string make() {
    const int rows[] = {0, 1, 2, 9, 40};
    text_ = fmt::format(R"(  x0:i64 = @range({}:i64); cut:bool = @{}(x0, {}:i64); x:i64 = @compress(cut, x0);
  a:i64 = @mul(x, 7919:i64); n1:i64 = @mod(a, {}:i64); v:i64 = @mod(a, 13:i64);
  w:f64 = @mul(v, 0.25:f64); names:sym = (`ape,`Bee,`cat,`bee):sym; m:i64 = @mod(a, {}:i64); tx:sym = @index(names, m);
  small:i32 = (4,-1,9,4):i32; p:i64 = @mod(v, 4:i64); u:i32 = @index(small, p);
  q:bool = @gt(v, 6:i64);
)",
                        rows[pick(5)], pick(2) ? "geq" : "neq", pick(3) ? 0 : 100, 1 + pick(6), 2 + pick(3));
    const int kind = pick(9);
    kind == 0 ? distinct() : kind == 1 ? cells() : kind <= 3 ? ordered() : runs();
    std::string types = "?", results = results_[0];
    for (size_t k = 1; k < results_.size(); ++k) types += ", ?", results += ", " + results_[k];
    return fmt::format("module m {{\n import Builtin.*;\n def main() : {} {{\n{}  return {};\n }}\n}}\n", types, text_,
                       results);
  }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  bool rarely() { return pick(25) == 0; }
  std::string let(const std::string& call) {
    std::string name = fmt::format("y{}", ++count_);
    text_ += fmt::format("  {}:? = {};\n", name, call);
    if (pick(12) == 0) {
      text_ += fmt::format("  c{}:? = {};\n", count_, name);
      name = fmt::format("c{}", count_);
    }
    return name;
  }
  void result(const std::string& name) { results_.push_back(name); }

  // Groups, put in the order of their keys, or of something like them.
  void ordered() {
    const char* columns[] = {"n1", "u", "tx", "q", "v"};
    std::vector<std::string> of, keys, at;
    for (int n = 1 + pick(3); n-- > 0;) {
      of.push_back(columns[pick(5)]);
      keys.push_back(pick(3) || of.back() == "tx" || of.back() == "q" ? of.back() : let(fmt::format("@mod({}, 3:i64)", of.back())));
    }
    const auto list = [&](const std::vector<std::string>& names) {
      return names.size() == 1 ? names[0] : let(fmt::format("@list({})", fmt::join(names, ", ")));
    };
    const std::string g = let(fmt::format("@group({})", list(keys))), first = let(fmt::format("@keys({})", g)),
                      rows = let(fmt::format("@values({})", g));
    for (size_t k = 0; k < keys.size(); ++k) {
      if (keys[k] == "u" && pick(2)) {  // what is gathered, at places that are taken there
        at.push_back(let(fmt::format("@index({}, {})", rarely() ? "names" : "small", let(fmt::format("@index(p, {})", first)))));
        continue;
      }
      const bool derived = keys[k] != of[k] && pick(2);
      const std::string x = let(fmt::format("@index({}, {})", rarely() ? "v" : derived ? of[k] : keys[k], first));
      at.push_back(derived ? let(fmt::format("@mod({}, {}:i64)", x, rarely() ? 2 : 3)) : x);
    }
    std::vector<std::string> by(at.begin(), at.begin() + 1 + pick(static_cast<int>(at.size())));
    if (pick(6) == 0) std::reverse(by.begin(), by.end());
    std::string ways = pick(6) ? "1" : "0";
    if (by.size() > 1 && pick(2))
      for (size_t k = 1; k < by.size(); ++k) ways += pick(9) ? ", 1" : ", 0";
    const std::string o = let(fmt::format("@order({}, {}:bool)", list(by), ways.size() > 1 ? "(" + ways + ")" : ways));
    const std::string lengths = let(fmt::format("@each(@len, {})", rows)), n = let(fmt::format("@raze({})", lengths));
    const std::string cells = let(fmt::format("@each_right(@index, w, {})", rows)), sums = let(fmt::format("@each(@sum, {})", cells)),
                      s = let(fmt::format("@raze({})", sums));
    for (const std::string& x : at) result(let(fmt::format("@index({}, {})", x, o)));
    result(let(fmt::format("@index({}, {})", n, o)));
    const std::string in_order = let(fmt::format("@index({}, {})", s, o));
    result(pick(2) ? in_order : let(fmt::format("@scan_sum({}, {})", in_order, let(fmt::format("@gt({}, 2.0:f64)", in_order)))));
    if (pick(2)) result(let(fmt::format("@index({}, {})", let(fmt::format("@index({}, {})", first, o)), let(fmt::format("@range({})", let(fmt::format("@len({})", o)))))));
    if (rarely()) result(o);
    if (rarely()) result(let(fmt::format("@index(w, {})", o)));
  }

  void distinct() {
    const char* columns[] = {"n1", "u", "tx", "q", "v", "w"};
    const std::string column = columns[pick(6)], first = let(fmt::format("@unique({})", column));
    if (pick(2)) result(let(fmt::format("@len({})", first)));
    if (pick(2)) {  // in order, of which there may be less
      const std::string values = let(fmt::format("@index({}, {})", rarely() ? "v" : column, first));
      std::string order = let(fmt::format("@order({}, {}:bool)", values, pick(2)));
      if (pick(2)) {
        const std::string n = let(fmt::format("@len({})", order)), all = let(fmt::format("@range({})", n));
        order = let(fmt::format("@compress({}, {})", let(fmt::format("@lt({}, 3:i64)", all)), order));
      }
      result(let(fmt::format("@index({}, {})", rarely() ? first : values, order)));
      if (rarely()) result(pick(2) ? values : order);
    }
    if (pick(2)) {  // rows in any order, of which there are groups
      const std::string by = let(fmt::format("@index({}, {})", columns[pick(2)], first)),
                        other = let(fmt::format("@index({}, {})", value(), first));
      const std::string keys = pick(2) ? by : let(fmt::format("@list({}, {})", by, rarely() ? other : by));
      const std::string g = let(fmt::format("@group({})", keys)), f = let(fmt::format("@keys({})", g)),
                        rows = let(fmt::format("@values({})", g));
      const std::string cells = let(fmt::format("@each_right(@index, {}, {})", other, rows));
      const char* reductions[] = {"sum", "min", "max", "len"};
      result(let(fmt::format("@raze({})", let(fmt::format("@each(@{}, {})", reductions[pick(4)], cells)))));
      result(let(fmt::format("@index({}, {})", rarely() ? other : by, f)));
      if (pick(2)) result(let(fmt::format("@raze({})", let(fmt::format("@each(@len, {})", rows)))));
      if (pick(2)) result(let(fmt::format("@sum({})", other)));
      if (rarely()) result(pick(2) ? other : f);
    }
    if (results_.empty() || rarely()) result(let(fmt::format("@index(v, {})", first)));
  }

  // Element-wise work on cells of groups, and what is kept of them.
  void cells() {
    const std::string g = let(fmt::format("@group({})", pick(2) ? "n1" : let("@list(tx, q)"))),
                      rows = let(fmt::format("@values({})", g));
    std::vector<std::string> numbers, masks, kept;
    for (const char* x : {"v", "w", "u"}) numbers.push_back(let(fmt::format("@each_right(@index, {}, {})", x, rows)));
    const auto one_of = [&](const std::vector<std::string>& of) { return of[static_cast<size_t>(pick(static_cast<int>(of.size())))]; };
    for (int k = 2 + pick(5); k > 0; --k) {
      const char *sums[] = {"plus", "minus", "mul"}, *compares[] = {"gt", "leq", "eq"};
      switch (pick(5)) {
        case 0: numbers.push_back(let(fmt::format("@each_item(@{}, {}, {})", sums[pick(3)], one_of(numbers), one_of(numbers)))); break;
        case 1: numbers.push_back(let(fmt::format("@each_right(@{}, 3:i64, {})", sums[pick(3)], one_of(numbers)))); break;
        case 2: masks.push_back(let(fmt::format("@each_left(@{}, {}, 2:i64)", compares[pick(3)], one_of(numbers)))); break;
        case 3: masks.push_back(let(fmt::format("@each_item(@{}, {}, {})", compares[pick(3)], one_of(numbers), one_of(numbers)))); break;
        default:
          if (!masks.empty()) kept.push_back(let(fmt::format("@each_item(@compress, {}, {})", one_of(masks), one_of(numbers))));
      }
    }
    const char* reductions[] = {"sum", "len", "min", "max"};
    for (int k = 1 + pick(3); k > 0; --k) {
      const bool some = !kept.empty() && pick(3);
      const std::string of = some ? one_of(kept) : one_of(numbers);
      result(let(fmt::format("@raze({})", let(fmt::format("@each(@{}, {})", reductions[pick(some && !rarely() ? 2 : 4)], of)))));
    }
    if (rarely()) result(let(fmt::format("@raze({})", one_of(numbers))));
  }

  void runs() {
    std::vector<std::string> keys{"n1", "u", "tx", "q"};
    if (rarely()) keys.push_back("w");
    std::shuffle(keys.begin(), keys.end(), random_);
    keys.resize(static_cast<size_t>(1 + pick(3)));
    std::string columns = keys[0];
    for (size_t k = 1; k < keys.size(); ++k) columns += ", " + keys[k];
    const std::string by = keys.size() == 1 && pick(2) ? columns : let(fmt::format("@list({})", columns));
    o_ = let(fmt::format("@order({}, {}:bool)", by, rarely() ? 0 : 1));
    std::vector<std::string> sorted;
    for (const std::string& k : keys) sorted.push_back(at_order(k));
    if (keys.size() > 1 && rarely()) sorted.pop_back();
    std::string change;
    for (const std::string& s : sorted) {
      std::string sides[] = {let(fmt::format("@drop(-1:i64, {})", s)), let(fmt::format("@drop(1:i64, {})", s))};
      if (pick(4) == 0) std::swap(sides[0], sides[1]);
      const std::string one = let(fmt::format("@{}({}, {})", rarely() ? "eq" : "neq", sides[0], sides[1]));
      change = change.empty() ? one : let(fmt::format("@{}({}, {})", rarely() ? "and" : "or", change, one));
    }
    const std::string n = let(fmt::format("@len({})", pick(2) ? o_ : sorted[0]));
    const std::string starts = let(fmt::format("@take({}, {})", n, let(fmt::format("@append(1:bool, {})", change))));
    const std::string ends = let(fmt::format("@take({}, {})", n, let(fmt::format("@append({}, 1:bool)", change))));
    const std::string b = let(fmt::format("@where({})", starts)), e = let(fmt::format("@where({})", ends));
    for (int k = 1 + pick(5); k > 0; --k) {
      switch (pick(8)) {
        case 0: {
          const std::string between = let(fmt::format("@minus({}, {})", e, b));
          result(let(pick(2) ? fmt::format("@plus({}, 1:i64)", between) : fmt::format("@plus(1:i64, {})", between)));
          if (rarely()) result(between);
          break;
        }
        case 1: result(let(fmt::format("@index({}, {})", o_, rarely() ? e : b))); break;
        case 2: result(let(fmt::format("@index({}, {})", at_order(value()), rarely() ? e : b))); break;
        case 3: result(let(fmt::format("@index({}, {})", sorted[0], pick(2) ? e : b))); break;
        default: {
          const char* scans[] = {"scan_sum", "scan_min", "scan_max"};
          const std::string running =
              let(fmt::format("@{}({}, {})", scans[pick(3)], at_order(value()), rarely() ? ends : starts));
          result(let(fmt::format("@index({}, {})", running, rarely() ? b : e)));
          if (rarely()) result(running);
        }
      }
    }
    if (rarely()) result(o_);
  }
  std::string value() {
    const char* values[] = {"v", "u", "w", "x"};
    return values[pick(4)];
  }
  std::string at_order(const std::string& column) { return let(fmt::format("@index({}, {})", column, o_)); }

  std::mt19937_64 random_;
  std::string text_, o_;
  std::vector<std::string> results_;
  int count_ = 0;
};

std::string said(const Result<std::vector<reference::Value>>& got) {
  return got ? *print_result(*got, Format::csv) : "fails: " + got.error().message;
}

TEST(GroupForms, GiveWhatRunsGive) {
  const char* seeds = std::getenv("RNDN_RANDOM_SEEDS");
  const uint64_t last = seeds ? std::strtoull(seeds, nullptr, 10) : rndn::test::in_the_gate(700, 1500);
  const rndn::test::NoTables tables;
  size_t programs = 0, groups = 0, orders = 0;
  for (uint64_t seed = 0; seed < last; ++seed) {
    const std::string text = Generator(seed).make();
    std::string got[2];
    bool grouped = false;
    bool relies = false;
    size_t ordered[2] = {};
    for (const bool with : {false, true}) {
      SourceManager sources;
      DiagnosticSink sink;
      Timings timings;
      const hir::Program program = hir::run(sources.add("t.hir", text), sources, {}, sink, timings);
      ASSERT_FALSE(sink.has_errors()) << render(sink, sources) << text;
      const outliner::Outlined outlined =
          outliner::run(program, {.tops = with, .lists = with, .sinks = with && seed % 2}, sink, timings);
      ASSERT_FALSE(sink.has_errors()) << render(sink, sources) << text;
      const std::string made = print(outlined.program, true);
      grouped |= made.find("@group(") != std::string::npos || made.find("@GPU.fold(") != std::string::npos;
      for (size_t at = 0; (at = made.find("@order(", at)) != made.npos; ++at) ++ordered[with];
      relies |= with && outlined.groups_ascend;
      got[with] = said(reference::run(outlined.program, tables, sources, nullptr));
    }
    orders += relies && text.find("@group(") != text.npos && ordered[1] < ordered[0];
    ++programs;
    groups += grouped;
    ASSERT_EQ(got[1], got[0]) << "seed " << seed << "\n" << text;
  }
  std::printf("%zu programs, %zu with a group, %zu without an order that they had\n", programs, groups, orders);
  EXPECT_GE(groups, last / 3);
  EXPECT_GE(orders, last / 12);
}

// What is in order is what it was when it was put in order.
TEST(GroupForms, OfVariablesThatAreAssignedAgain) {
  const std::string text = R"(module m { import Builtin.*; def main() : ?, ?, ? {
    k:i64 = (2,1,2,1):i64;  x:i64 = (10,20,30,40):i64;
    o:i64 = @order(k, 1:bool); sk:i64 = @index(k, o); s:i64 = @index(x, o);
    x = (0,0,0,0):i64;
    d1:i64 = @drop(-1:i64, sk); d2:i64 = @drop(1:i64, sk); c:bool = @neq(d1, d2);
    ac:bool = @append(1:bool, c); n:i64 = @len(o); t:bool = @take(n, ac); b:i64 = @where(t);
    r:i64 = @index(s, b); q:i64 = @index(sk, b); z:i64 = @scan_sum(s, t);
    return r, q, z; } })";
  SourceManager sources;
  DiagnosticSink sink;
  Timings timings;
  const hir::Program program = hir::run(sources.add("t.hir", text), sources, {}, sink, timings);
  const outliner::Outlined outlined = outliner::run(program, {}, sink, timings);
  ASSERT_FALSE(sink.has_errors()) << render(sink, sources);
  const rndn::test::NoTables tables;
  EXPECT_EQ(said(reference::run(outlined.program, tables, sources, nullptr)),
            said(reference::run(program, tables, sources, nullptr)));
}

// Sums of floats are those of groups: exact, where running sums would have lost the small one.
TEST(GroupForms, SumsOfFloatsAreExact) {
  const std::string text = R"(module m { import Builtin.*; def main() : ?, ? {
    k:i64 = (2,1,2,1,2):i64;  x:f64 = (1e17,0.5,1.0,0.25,-1e17):f64;
    o:i64 = @order(k, 1:bool); sk:i64 = @index(k, o); s:f64 = @index(x, o);
    d1:i64 = @drop(-1:i64, sk); d2:i64 = @drop(1:i64, sk); c:bool = @neq(d1, d2); n:i64 = @len(o);
    ac:bool = @append(1:bool, c); t:bool = @take(n, ac); b:i64 = @where(t);
    ca:bool = @append(c, 1:bool); u:bool = @take(n, ca); e:i64 = @where(u);
    q:i64 = @index(sk, b); z:f64 = @scan_sum(s, t); r:f64 = @index(z, e);
    return q, r; } })";
  SourceManager sources;
  DiagnosticSink sink;
  Timings timings;
  const rndn::test::NoTables tables;
  const hir::Program program = hir::run(sources.add("t.hir", text), sources, {}, sink, timings);
  const outliner::Outlined outlined = outliner::run(program, {}, sink, timings);
  ASSERT_FALSE(sink.has_errors()) << render(sink, sources);
  EXPECT_EQ(print(outlined.program, true).find("@scan_sum("), std::string::npos);
  const auto got = reference::run(outlined.program, tables, sources, nullptr);
  ASSERT_TRUE(got.ok()) << got.error().message;
  EXPECT_EQ((*got)[1].as<double>()[0], 0.75);
  EXPECT_EQ((*got)[1].as<double>()[1], 1);
}

// What is kept of a group's cells is summed and counted without a list of rows.
TEST(GroupForms, KeptElementsOfCells) {
  const std::string text = R"(module m { import Builtin.*; def main() : ?, ? {
    k:i64 = (2,1,2,1,2):i64;  x:f64 = (0.5,4.0,2.5,1.0,8.0):f64;
    g:dict<i64,i64> = @group(k); rows:list<i64> = @values(g); cells:list<f64> = @each_right(@index, x, rows);
    m:list<bool> = @each_left(@gt, cells, 2.0:f64); twice:list<f64> = @each_item(@plus, cells, cells);
    kept:list<f64> = @each_item(@compress, m, twice);
    a:list<i64> = @each(@len, kept); b:list<f64> = @each(@sum, kept);
    n:i64 = @raze(a); s:f64 = @raze(b);
    return n, s; } })";
  SourceManager sources;
  DiagnosticSink sink;
  Timings timings;
  const rndn::test::NoTables tables;
  const hir::Program program = hir::run(sources.add("t.hir", text), sources, {}, sink, timings);
  const outliner::Outlined outlined = outliner::run(program, {}, sink, timings);
  ASSERT_FALSE(sink.has_errors()) << render(sink, sources);
  const std::string made = print(outlined.program, true);
  EXPECT_EQ(made.find("@GPU.cell"), std::string::npos) << made;
  EXPECT_EQ(made.find("@compress"), std::string::npos) << made;
  EXPECT_FALSE(outlined.flattened);
  EXPECT_EQ(said(reference::run(outlined.program, tables, sources, nullptr)),
            said(reference::run(program, tables, sources, nullptr)));
}

// Element-wise work on the cells of a group that is only reduced is work on columns: nothing lists the group's rows.
TEST(GroupForms, WorkOnCellsThatAreReduced) {
  const std::string text = R"(module m { import Builtin.*; def main() : ?, ?, ? {
    k0:i64 = @range(500:i64); k:i64 = @mod(k0, 7:i64); x0:f64 = @mul(k0, 0.25:f64); x:f64 = @minus(x0, 3.0:f64);
    y:i64 = @mul(k0, k0);
    g:dict<i64,i64> = @group(k); first:i64 = @keys(g); rows:list<i64> = @values(g);
    xs:list<f64> = @each_right(@index, x, rows); ys:list<i64> = @each_right(@index, y, rows);
    products:list<f64> = @each_item(@mul, xs, ys); shifted:list<i64> = @each_left(@plus, ys, 3:i64);
    a:list<f64> = @each(@sum, products); b:list<i64> = @each(@max, shifted);
    s:f64 = @raze(a); m:i64 = @raze(b); by:i64 = @index(k, first);
    return by, s, m; } })";
  SourceManager sources;
  DiagnosticSink sink;
  Timings timings;
  auto compiled = compile(sources.add("t.hir", text), sources, {.target = "sm_86"}, sink, timings);
  ASSERT_TRUE(compiled.ok()) << render(sink, sources);
  const std::string made = print(compiled->outlined.program, true);
  EXPECT_EQ(made.find("@each_item"), std::string::npos) << made;
  EXPECT_EQ(made.find("@each_left"), std::string::npos) << made;
  const rndn::test::NoTables tables;
  auto device = open_simulator("sm_86");
  Engine engine(**device, tables);
  auto plan = engine.plan(*compiled, sources, {.allow_fallback = false}, timings);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  std::vector<KernelReport> kernels;
  EXPECT_EQ(said(engine.run(**plan, timings, nullptr, &kernels, nullptr)),
            said(reference::run(compiled->program, tables, sources, nullptr)));
  for (const KernelReport& k : kernels) EXPECT_EQ(k.name.find("rows"), std::string::npos) << k.name;
}

TEST(GroupForms, OnTheDevice) {
  const rndn::test::NoTables tables;
  int hashed = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const std::string text = Generator(seed).make();
    SourceManager sources;
    DiagnosticSink sink;
    Timings timings;
    CompileOptions options;
    options.target = seed % 2 ? "sm_61" : "sm_90";
    auto compiled = compile(sources.add("t.hir", text), sources, options, sink, timings);
    ASSERT_TRUE(compiled.ok()) << compiled.error().message << text;
    auto device = open_simulator(options.target);
    Engine engine(**device, tables);
    EngineOptions how{.allow_fallback = false};
    // Groups that are hashed come in any order, unless the program was made to rely on it.
    if (compiled->outlined.groups_ascend) how.operators.group = operators::Options::Group::hash, ++hashed;
    auto plan = engine.plan(*compiled, sources, how, timings);
    ASSERT_TRUE(plan.ok()) << plan.error().message << text;
    ASSERT_EQ(said(engine.run(**plan, timings, nullptr, nullptr, nullptr)),
              said(reference::run(compiled->program, tables, sources, nullptr)))
        << "seed " << seed << "\n"
        << text;
  }
  EXPECT_GE(hashed, 10);
}

}  // namespace
}  // namespace rndn::runtime::group_forms_test
