// Programs whose data do not fit on the device run by ranges of a table, with the same results:
// every rule of outliner/split.h by a program of its own, random programs, and the SQL of TPC-H and
// SSB with a quarter of the memory that it takes otherwise.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>

#include "libraries/base/system/files.h"
#include "outliner/split.h"
#include "runtime/engine.h"
#include "runtime/planner/statements.h"
#include "runtime/print_result.h"
#include "runtime/simulator/simulator_device.h"
#include "runtime/sql/queries.h"
#include "ssb/source.h"
#include "tests/support/every_case.h"
#include "tpch/source.h"

namespace rndn::runtime::streaming_test {
namespace {

using ::testing::HasSubstr;

// What a program gives and how much memory of the device it takes.
struct Ran {
  std::string csv, error;
  uint64_t peak = 0, stays = 0;  // bytes, at most and after the run
  std::string on_host;  // why some of it did not run on the device
  std::vector<std::string> host_work;
  bool by_ranges = false;
  std::map<std::string, uint64_t> moved;  // bytes that a launch must move, per kernel of the last run
};

// Where two texts differ, and no more than that.
std::string difference(const std::string& got, const std::string& want) {
  const size_t at = static_cast<size_t>(
      std::mismatch(got.begin(), got.end(), want.begin(), want.end()).first - got.begin());
  const size_t from = at < 40 ? 0 : at - 40;
  return fmt::format("at {} of {} and {} bytes:\n{}\ninstead of\n{}", at, got.size(), want.size(),
                     got.substr(std::min(from, got.size()), 120),
                     want.substr(std::min(from, want.size()), 120));
}

class Programs {
 public:
  explicit Programs(const data::Tables& tables, const hir::SchemaView* schema = nullptr)
      : tables_(tables), schema_(schema) {}

  Ran run(const std::string& name, const std::string& text, uint64_t limit,
          EngineOptions engine_options = {}) {
    Ran ran;
    DiagnosticSink sink;
    Timings timings;
    CompileOptions options;
    options.schema = schema_;
    auto compiled = compile(sources_.add(name, text), sources_, options, sink, timings);
    EXPECT_TRUE(compiled) << render(sink, sources_);
    if (!compiled) return ran;
    auto device = open_simulator("sm_86");
    EXPECT_TRUE(device);
    Engine engine(**device, tables_);
    engine.limit_memory(limit);
    engine_options.measure_kernels = false;
    auto plan = engine.plan(*compiled, sources_, engine_options, timings);
    EXPECT_TRUE(plan) << plan.error().message;
    for (int again = 0; again < 2; ++again) {  // the second time with what the first has learnt
      std::vector<KernelReport> kernels;
      std::vector<std::string> fallbacks;
      auto got = engine.run(**plan, timings, nullptr, &kernels, &fallbacks);
      if (!fallbacks.empty()) ran.on_host = fallbacks.front();
      ran.host_work = (*plan)->host_work();
      ran.peak = std::max(ran.peak, engine.peak_bytes());
      ran.stays = engine.device_bytes();
      if (!got) {
        ran.error = got.error().message;
        EXPECT_EQ(got.error().exit_code(), 3) << ran.error;
        return ran;
      }
      ran.moved.clear();
      for (const KernelReport& k : kernels) {
        ran.by_ranges |= k.name.find("range/") != k.name.npos;
        ran.moved[k.name] = k.floor_bytes;
      }
      std::string csv;
      for (const auto& value : *got) csv += *print_result({&value, 1}, Format::csv);
      if (again) {
        EXPECT_TRUE(csv == ran.csv) << "the second run: " << difference(csv, ran.csv);
      }
      ran.csv = std::move(csv);
    }
    return ran;
  }

 private:
  const data::Tables& tables_;
  const hir::SchemaView* schema_;
  SourceManager sources_;
};

// A table t of 20,000 rows: k ascends, with 1 to 9 rows of one value; g has 50 values; x, y are
// numbers, f is a float, s one of 40 texts, p one of 20,000, q one of as many that a dictionary has.
// A table d of 50 rows: key, v.
class SmallTables final : public data::Tables {
 public:
  explicit SmallTables(uint64_t rows = 20'000, uint64_t seed = 7) : rows_of_t(rows) {
    std::mt19937_64 random(seed);
    add("t", "k", hir::BasicType::i64, rows_of_t,
        [k = int64_t{0}, &random](uint64_t) mutable { return k += random() % 5 == 0; });
    add("t", "g", hir::BasicType::i64, rows_of_t, [&](uint64_t) { return int64_t(random() % 50); });
    add("t", "x", hir::BasicType::i64, rows_of_t,
        [&](uint64_t) { return int64_t(random() % 2000) - 1000; });
    add("t", "y", hir::BasicType::i64, rows_of_t, [&](uint64_t) { return int64_t(random()); });
    add_floats(random);
    add_texts("s", 40, random);
    add_texts("p", rows_of_t, random);
    add_long_dictionary(random);
    add("d", "key", hir::BasicType::i64, 50, [](uint64_t i) { return int64_t(i); });
    add("d", "v", hir::BasicType::i64, 50, [](uint64_t i) { return int64_t(i % 7); });
  }
  Result<void> open(std::string_view) const override { return {}; }
  Result<std::vector<std::string>> column_names(std::string_view) const override {
    return std::vector<std::string>{};
  }
  Result<uint64_t> rows(std::string_view table) const override {
    return table == "t" ? rows_of_t : uint64_t{50};
  }
  Result<std::shared_ptr<const data::Column>> column(std::string_view table,
                                                     std::string_view name) const override {
    const auto at = columns_.find(std::string(table) + "." + std::string(name));
    if (at == columns_.end()) return input_error("no column `{}`", name);
    return at->second;
  }
  Result<std::shared_ptr<const data::Column>> key_column(std::string_view) const override {
    return column("d", "key");
  }

 private:
  template <class F>
  void add(const char* table, const char* name, hir::BasicType type, uint64_t rows, F&& element) {
    data::Column c = data::make_column(type, rows);
    for (uint64_t i = 0; i < rows; ++i) reinterpret_cast<int64_t*>(c.data->data())[i] = element(i);
    compute_statistics(c);
    columns_[std::string(table) + "." + name] = std::make_shared<data::Column>(std::move(c));
  }
  void add_floats(std::mt19937_64& random) {
    data::Column c = data::make_column(hir::BasicType::f64, rows_of_t);
    for (uint64_t i = 0; i < rows_of_t; ++i)
      reinterpret_cast<double*>(c.data->data())[i] = double(random() % 1000) / 7;
    compute_statistics(c);
    columns_["t.f"] = std::make_shared<data::Column>(std::move(c));
  }
  void add_texts(const char* name, uint64_t values, std::mt19937_64& random) {
    const bool many = values == rows_of_t;
    data::Column c =
        data::make_column(hir::BasicType::str, rows_of_t,
                          many ? data::Encoding::text : data::Encoding::dictionary, many ? 8 : 1);
    std::string pad;
    auto dictionary = std::make_shared<data::Dictionary>();
    for (uint64_t i = 0; i < rows_of_t; ++i) {
      const uint64_t value = many ? i : random() % values;
      const std::string text = fmt::format("{} of {}", value * 7919 % 1000, name);
      if (many) {
        reinterpret_cast<uint64_t*>(c.data->data())[i] = pad.size() << 24 | text.size();
        pad += text;
      } else {
        (*c.data)[i] = static_cast<std::byte>(value);
      }
    }
    for (uint64_t value = 0; !many && value < values; ++value)
      dictionary->values.push_back(fmt::format("{} of {}", value * 7919 % 1000, name));
    if (many)
      c.pad = std::make_shared<data::Bytes>(data::Bytes::of(pad));
    else
      c.dictionary = dictionary;
    compute_statistics(c);
    columns_[std::string("t.") + name] = std::make_shared<data::Column>(std::move(c));
  }
  void add_long_dictionary(std::mt19937_64& random) {
    data::Column c = data::make_column(hir::BasicType::str, rows_of_t, data::Encoding::dictionary, 4);
    auto dictionary = std::make_shared<data::Dictionary>();
    for (uint64_t i = 0; i < rows_of_t; ++i) {
      reinterpret_cast<uint32_t*>(c.data->data())[i] = static_cast<uint32_t>(random() % rows_of_t);
      dictionary->values.push_back(fmt::format("{} of q, {}", i * 7919 % 1000, i));
    }
    c.dictionary = dictionary;
    compute_statistics(c);
    columns_["t.q"] = std::make_shared<data::Column>(std::move(c));
  }
  const uint64_t rows_of_t;
  std::map<std::string, std::shared_ptr<const data::Column>, std::less<>> columns_;
};

constexpr const char* columns = R"(
  t:table = @load_table(`t:sym); d:table = @load_table(`d:sym);
  k:i64 = check_cast(@column_value(t, `k:sym), i64);
  g:i64 = check_cast(@column_value(t, `g:sym), i64);
  x:i64 = check_cast(@column_value(t, `x:sym), i64);
  y:i64 = check_cast(@column_value(t, `y:sym), i64);
  f:f64 = check_cast(@column_value(t, `f:sym), f64);
  s:str = check_cast(@column_value(t, `s:sym), str);
  p:str = check_cast(@column_value(t, `p:sym), str);
  key:i64 = check_cast(@column_value(d, `key:sym), i64);
  v:i64 = check_cast(@column_value(d, `v:sym), i64);
  m:bool = @lt(x, 300:i64);
  few:bool = @lt(x, -900:i64);
)";

struct Rule {
  const char* name;
  const char* results;  // types
  const char* body;
};
void PrintTo(const Rule& rule, std::ostream* out) { *out << rule.name; }

constexpr Rule rules[] = {
    // Both sides are all rows of t: by parts, with and without an equality, and of one key alone.
    {"a_join_of_all_rows", "i64, i64, i64, bool",
     R"(ys:? = @abs(y); h:? = @mod(ys, 30011:i64); z:? = @mul(x, 17:i64); zs:? = @abs(z);
        l1:? = @list(h, x); l2:? = @list(zs, g); j:? = @join_index(@eq, @lt, l1, l2);
        a:? = @index(j, 0:i64); b:? = @index(j, 1:i64); ya:i64 = @index(y, a); xb:i64 = @index(x, b);
        c:i64 = @mul(xb, 3:i64); n:? = @len(x); none:? = @vector(n, 0:bool);
        found:bool = @index_a(none, a, 1:bool); return ya, xb, c, found;)"},
    {"a_join_of_texts", "i64, str",
     R"(big:? = @gt(x, 700:i64); pf:? = @compress(few, p); pb:? = @compress(big, p); yb:? = @compress(big, y);
        j:? = @join_index(@eq, pb, pf); a:? = @index(j, 0:i64); b:? = @index(j, 1:i64);
        ya:i64 = @index(yb, a); t1:str = @index(pf, b); return ya, t1;)"},
    {"a_join_by_one_key", "i64, i64",
     R"(top:? = @gt(x, 996:i64); hx:? = @compress(top, x); one:? = @mul(hx, 0:i64); yt:? = @compress(top, y);
        all:? = @mul(g, 0:i64); j:? = @join_index(@eq, all, one); b:? = @index(j, 1:i64);
        a:? = @index(j, 0:i64); ya:? = @index(y, a); yb:? = @index(yt, b); z:? = @minus(ya, yb);
        s1:i64 = @sum(z); n:i64 = @len(z); return s1, n;)"},
    {"look_ups_in_all_rows", "bool, i64",
     R"(ys:? = @abs(y); h:? = @mod(ys, 90001:i64); z:? = @mul(x, 41:i64); zs:? = @abs(z);
        in:bool = @member(zs, h); at:i64 = @index_of(zs, h); return in, at;)"},
    {"running_values", "i64, i64, i64, i64, i64, i64",
     R"(z:? = @plus(y, x); starts:? = @lt(x, -995:i64); n:? = @len(x); none:? = @vector(n, 0:bool);
        r:? = @range(n); a:i64 = @scan_sum(z, starts); b:i64 = @scan_sum(x, none);
        c:i64 = @scan_min(z, starts); e:i64 = @scan_max(z, none); runs:? = @scan_sum(starts, none);
        back:? = @reverse(z); w:? = @where(starts); u:? = @minus(runs, 1:i64); v2:? = @select(starts, u, 0:i64);
        first:i64 = @index(w, v2); both:i64 = @append(back, r); return a, b, c, e, first, both;)"},
    // Bit for bit: the sums depend on the order in which they are added up; -0.0 is among the rest.
    {"running_doubles", "f64, f64, f64, f64",
     R"(z:? = @mul(f, x); starts:? = @lt(x, -995:i64); n:? = @len(x); none:? = @vector(n, 0:bool);
        a:f64 = @scan_sum(z, starts); b:f64 = @scan_sum(f, none); c:f64 = @scan_min(z, starts);
        e:f64 = @scan_max(z, none); return a, b, c, e;)"},
    // The dictionary has more bytes than there are: each range has its own.
    {"texts_of_a_long_dictionary", "str, i64, i64, str, i64",
     R"(q:str = check_cast(@column_value(t, `q:sym), str); d1:? = @group(q); first:? = @keys(d1);
        rows:? = @values(d1); aq:? = @index(q, first); c1:? = @each_right(@index, x, rows);
        e1:? = @each(@sum, c1); each:? = @raze(e1); o1:? = @order(aq, 1:bool); a:str = @index(aq, o1);
        sum:i64 = @index(each, o1); with:? = @like(q, "%99%":str);
        xs:? = @compress(with, x); n:i64 = @sum(xs); qf:? = @compress(few, q);
        o:? = @order(qf, 1:bool); b:str = @index(qf, o); z:? = @gt(q, "5":str);
        xz:? = @compress(z, x); n2:i64 = @sum(xz); return a, sum, n, b, n2;)"},
    // Groups ascend by their texts: those of a dictionary in another order, and of columns without one.
    {"groups_of_texts", "str, i64, str, str, i64",
     R"(q:str = check_cast(@column_value(t, `q:sym), str); d1:? = @group(s); k1:? = @keys(d1); r1:? = @values(d1);
        a:str = @index(s, k1); e1:? = @each(@len, r1); n1:i64 = @raze(e1);
        l2:? = @list(s, p); d2:? = @group(l2); k2:? = @keys(d2); b:str = @index(p, k2);
        qf:? = @compress(few, q); gf:? = @compress(few, g); l3:? = @list(gf, qf); d3:? = @group(l3); k3:? = @keys(d3);
        c:str = @index(qf, k3); z:i64 = @index(gf, k3); return a, n1, b, c, z;)"},
    // The same of pieces of texts, and of literals among texts.
    {"groups_of_made_texts", "i64, str, i64",
     R"(u:? = @sub_string(p, (1, 2):i64); d1:? = @group(u); r1:? = @values(d1);
        e1:? = @each_right(@index, x, r1); f1:? = @each(@sum, e1); n1:i64 = @raze(f1);
        w:? = @select(m, s, "5 of none":str); d2:? = @group(w); k2:? = @keys(d2); a:str = @index(w, k2);
        r2:? = @values(d2); e2:? = @each_right(@index, y, r2); f2:? = @each(@max, e2); n2:i64 = @raze(f2);
        return n1, a, n2;)"},
    // The sums of groups of texts do not depend on ranges either.
    {"floats_by_texts", "str, f64, f64",
     R"(q:str = check_cast(@column_value(t, `q:sym), str); d1:? = @group(q); first:? = @keys(d1);
        rows:? = @values(d1); a:? = @index(q, first); c1:? = @each_right(@index, f, rows);
        e1:? = @each(@sum, c1); sum:? = @raze(e1); e2:? = @each(@avg, c1); mean:? = @raze(e2);
        o:? = @order(a, 1:bool); fo:? = @index(first, o); b:str = @index(q, fo);
        c:f64 = @index(sum, o); e:f64 = @index(mean, o); return b, c, e;)"},
    // Once more by numbers of rows that were put in the order of the first group's keys.
    {"groups_of_groups", "i64, i64, i64, i64",
     R"(gm:? = @compress(m, g); xm:? = @compress(m, x); l1:? = @list(gm, xm); d1:? = @group(l1);
        first:? = @keys(d1); a:? = @index(gm, first); d2:? = @group(a); first2:? = @keys(d2);
        rows2:? = @values(d2); e2:? = @each(@len, rows2); n:? = @raze(e2);
        f3:? = @index(first, first2); g3:? = @index(gm, f3); l3:? = @list(n, g3);
        o:? = @order(l3, (0, 1):bool); n4:i64 = @index(n, o); f4:? = @index(f3, o);
        g4:i64 = @index(gm, f4); x4:i64 = @index(xm, f4); y4:? = @compress(m, y);
        z4:i64 = @index(y4, f4); return n4, g4, x4, z4;)"},
    {"reductions", "i64, i64, i64, i64, i64, bool, f64",
     R"(xm:? = @compress(m, x); ym:? = @compress(m, y); fm:? = @compress(m, f);
        a:i64 = @sum(xm); b:i64 = @sum(ym); c:i64 = @min(ym); e:i64 = @max(xm); n:i64 = @len(xm);
        q:? = @eq(xm, 5:i64); any:bool = @any(q); h:f64 = @max(fm);
        return a, b, c, e, n, any, h;)"},
    {"an_empty_selection", "i64, i64, i64",
     R"(none:? = @gt(x, 5000:i64); xm:? = @compress(none, x);
        a:i64 = @sum(xm); b:i64 = @min(xm); n:i64 = @len(xm); return a, b, n;)"},
    {"a_selection", "i64, str, str",
     R"(a:i64 = @compress(few, y); b:str = @compress(few, s); c:str = @compress(few, p);
        return a, b, c;)"},
    {"row_numbers", "i64, i64, i64",
     R"(w:i64 = @where(few); n:? = @len(x); r:? = @range(n); rf:i64 = @compress(few, r);
        e:? = @index(y, w); z:? = @plus(e, rf); return w, rf, z;)"},
    {"sums_of_floats", "f64, f64",
     R"(fm:? = @compress(few, f); a:f64 = @sum(fm); b:f64 = @avg(fm); return a, b;)"},
    {"groups", "i64, i64, i64, i64, i64",
     R"(gm:? = @compress(m, g); xm:? = @compress(m, x); ym:? = @compress(m, y);
        d1:? = @group(gm); first:? = @keys(d1); rows:? = @values(d1);
        kg:i64 = @index(gm, first);
        c1:? = @each_right(@index, xm, rows); e1:? = @each(@sum, c1); sum:i64 = @raze(e1);
        c2:? = @each_right(@index, ym, rows); e2:? = @each(@min, c2); low:i64 = @raze(e2);
        e3:? = @each(@len, rows); n:i64 = @raze(e3);
        o:? = @order(sum, 1:bool); fo:? = @index(first, o); ko:i64 = @index(ym, fo);
        return kg, sum, low, n, ko;)"},
    {"groups_of_two_columns", "i64, str, i64",
     R"(gm:? = @compress(m, g); sm:? = @compress(m, s); l:? = @list(gm, sm);
        d1:? = @group(l); first:? = @keys(d1); rows:? = @values(d1);
        a:? = @index(gm, first); b:? = @index(sm, first); e3:? = @each(@len, rows); n:? = @raze(e3);
        l2:? = @list(a, b); o:? = @order(l2, (1, 1):bool);
        a2:i64 = @index(a, o); b2:str = @index(b, o); n2:i64 = @index(n, o); return a2, b2, n2;)"},
    {"groups_as_rows", "i64, list<i64>",
     R"(gm:? = @compress(few, g); ym:? = @compress(few, y);
        d1:? = @group(gm); first:? = @keys(d1); rows:? = @values(d1); kg:i64 = @index(gm, first);
        c1:list<i64> = @each_right(@index, ym, rows); return kg, c1;)"},
    {"groups_by_an_ascending_key", "i64, i64, f64, i64, i64",
     R"(d1:? = @group(k); first:? = @keys(d1); rows:? = @values(d1);
        c1:? = @each_right(@index, x, rows); e1:? = @each(@sum, c1); sum:? = @raze(e1);
        c2:? = @each_right(@index, f, rows); e2:? = @each(@max, c2); a:? = @raze(e2);
        big:? = @gt(sum, 3500:i64); fb:? = @compress(big, first); kb:i64 = @index(k, fb);
        sb:i64 = @compress(big, sum); ab:f64 = @compress(big, a);
        o:? = @order(sb, 0:bool); fo:? = @index(fb, o); yo:i64 = @index(y, fo);
        some:? = @gt(kb, 5000:i64);
        fs:? = @compress(some, fo); xs:i64 = @index(x, fs);
        return kb, sb, ab, yo, xs;)"},
    {"floats_by_an_ascending_key", "i64, f64, f64",
     R"(d1:? = @group(k); first:? = @keys(d1); rows:? = @values(d1);
        c1:? = @each_right(@index, f, rows); e1:? = @each(@sum, c1); sum:? = @raze(e1);
        e2:? = @each(@avg, c1); mean:? = @raze(e2);
        big:? = @gt(sum, 900:f64); fb:? = @compress(big, first); kb:i64 = @index(k, fb);
        sb:f64 = @compress(big, sum); mb:f64 = @compress(big, mean);
        return kb, sb, mb;)"},
    {"floats_by_any_key", "i64, f64, f64, f64, i64",
     R"(gm:? = @compress(m, g); fm:? = @compress(m, f); half:? = @mul(fm, 0.5:f64);
        d1:? = @group(gm); first:? = @keys(d1); rows:? = @values(d1); kg:i64 = @index(gm, first);
        c1:? = @each_right(@index, fm, rows); e1:? = @each(@sum, c1); sum:? = @raze(e1);
        e2:? = @each(@avg, c1); mean:f64 = @raze(e2);
        c2:? = @each_right(@index, half, rows); e3:? = @each(@sum, c2); low:f64 = @raze(e3);
        e4:? = @each(@len, rows); n:i64 = @raze(e4); own:? = @div(sum, n); z:f64 = @plus(own, low);
        return kg, mean, low, z, n;)"},
    {"floats_of_many_groups", "i64, f64, f64",
     R"(ys:? = @abs(y); h:? = @mod(ys, 9000:i64); w:? = @mul(f, 1e-9:f64);
        d1:? = @group(h); first:? = @keys(d1); rows:? = @values(d1); kh:i64 = @index(h, first);
        c1:? = @each_right(@index, f, rows); e1:? = @each(@sum, c1); sum:f64 = @raze(e1);
        c2:? = @each_right(@index, w, rows); e2:? = @each(@avg, c2); mean:f64 = @raze(e2);
        return kh, sum, mean;)"},
    // No three parts hold these: the groups are made whole, by their keys.
    {"floats_of_all_magnitudes", "f64, f64",
     R"(sign:? = @mod(y, 2:i64); far:? = @mul(sign, 1e280:f64); by:? = @plus(far, 1e-280:f64);
        z:? = @mul(f, by); d1:? = @group(g); rows:? = @values(d1);
        c1:? = @each_right(@index, z, rows); e1:? = @each(@sum, c1); sums:f64 = @raze(e1);
        e2:? = @each(@avg, c1); means:f64 = @raze(e2); return sums, means;)"},
    {"an_order_of_all_rows", "i64, f64, str, str",
     R"(l:? = @list(g, f); o:? = @order(l, (1, 0):bool); a:i64 = @index(g, o); b:f64 = @index(f, o);
        c:str = @index(s, o); e:str = @index(p, o); return a, b, c, e;)"},
    {"an_order_of_texts", "str, i64, i64",
     R"(q:? = @compress(m, s); ym:? = @compress(m, y); z:? = @plus(y, x); zm:? = @compress(m, z);
        l:? = @list(q, ym); o:? = @order(l, (0, 1):bool); a:str = @index(q, o);
        b:i64 = @index(ym, o); c:i64 = @index(zm, o); return a, b, c;)"},
    {"groups_of_nearly_every_row", "i64, str, i64, f64",
     R"(z:? = @plus(y, x); l:? = @list(z, p); d1:? = @group(l); first:? = @keys(d1);
        rows:? = @values(d1); a:i64 = @index(z, first); b:str = @index(p, first);
        c1:? = @each_right(@index, x, rows); e1:? = @each(@sum, c1); sum:i64 = @raze(e1);
        c2:? = @each_right(@index, f, rows); e2:? = @each(@max, c2); most:f64 = @raze(e2);
        return a, b, sum, most;)"},
    {"a_join_by_an_ascending_key", "i64, i64",
     R"(kf:? = @compress(few, k); yf:? = @compress(few, y); km:? = @compress(m, k);
        xm:? = @compress(m, x);
        j:? = @join_index(@eq, kf, km); a:? = @index(j, 0:i64); b:? = @index(j, 1:i64);
        ya:? = @index(yf, a); xb:? = @index(xm, b); n:i64 = @len(ya); z:? = @mul(ya, xb);
        t1:i64 = @sum(z); return n, t1;)"},
    {"a_join_with_other_rows", "i64, i64",
     R"(vm:? = @gt(v, 2:i64); kd:? = @compress(vm, key); vd:? = @compress(vm, v);
        gf:? = @compress(few, g); yf:? = @compress(few, y);
        j:? = @join_index(@eq, kd, gf); a:? = @index(j, 0:i64); b:? = @index(j, 1:i64);
        va:i64 = @index(vd, a); yb:i64 = @index(yf, b); return va, yb;)"},
    {"look_ups", "i64, i64",
     R"(vg:? = @index(v, g); gm:? = @gt(vg, 3:i64); three:? = @member(g, (3, 5, 8):i64);
        q:? = @and(gm, three);
        xs:? = @compress(q, x); a:i64 = @sum(xs); n:i64 = @len(xs); return a, n;)"},
    {"marks_of_other_rows", "bool",
     R"(n:? = @len(key); none:? = @vector(n, 0:bool);
        low:? = @lt(x, -990:i64); gl:? = @compress(low, g);
        found:bool = @index_a(none, gl, 1:bool); return found;)"},
    {"marks_of_own_rows", "i64",
     R"(n:? = @len(x); none:? = @vector(n, 0:bool); w:? = @where(few);
        mark:? = @index_a(none, w, 1:bool);
        not:? = @not(mark); xs:? = @compress(not, x); a:i64 = @sum(xs); return a;)"},
    {"patterns", "i64, i64",
     R"(a:? = @like(s, "%7 of%":str); b:? = @like(p, "%99%":str); q:? = @and(a, b);
        xs:? = @compress(q, x);
        n:i64 = @len(xs); t1:i64 = @sum(xs); return n, t1;)"},
    {"the_first_of_an_order", "i64, i64",
     R"(xf:? = @compress(few, x); yf:? = @compress(few, y); l:? = @list(xf, yf);
        o:? = @order(l, (1, 0):bool);
        top:? = @take(20:i64, o); a:i64 = @index(xf, top); b:i64 = @index(yf, top); return a, b;)"},
    {"a_value_of_all_rows", "i64, i64",
     R"(h:? = @max(y); q:? = @eq(y, h); w:i64 = @where(q); kw:i64 = @index(k, w); return w, kw;)"},
};

class EveryRule : public ::testing::TestWithParam<Rule> {};

TEST_P(EveryRule, GivesTheSameByRanges) {
  const uint64_t rows = rndn::test::in_the_gate(6'000, 20'000);
  static const SmallTables tables(rows);
  const Rule& rule = GetParam();
  const std::string text =
      fmt::format("module m {{ import Builtin.*; def main() : {} {{ {} {} }} }}", rule.results,
                  columns, rule.body);
  Programs programs(tables);
  const Ran free = programs.run("t.hir", text, UINT64_MAX);
  ASSERT_EQ(free.error, "");
  ASSERT_FALSE(free.by_ranges);
  const uint64_t limit = rows * 15 / 2;  // a column of t has 8 bytes of each row on the device
  const Ran limited = programs.run("t.hir", text, limit);
  EXPECT_EQ(limited.error, "");
  EXPECT_TRUE(limited.csv == free.csv) << difference(limited.csv, free.csv);
  EXPECT_TRUE(limited.by_ranges);
  EXPECT_EQ(limited.on_host, "");
  EXPECT_LE(limited.peak, limit);
  if (rndn::test::every_case() || std::strlen(rule.name) % 2 == 0) {
    const Ran in_two = programs.run("t.hir", text, UINT64_MAX, {.in_two = true});
    EXPECT_EQ(in_two.error, "");
    EXPECT_EQ(in_two.on_host, "");
    EXPECT_TRUE(in_two.csv == free.csv) << "in two, " << difference(in_two.csv, free.csv);
  }
  // By ranges though it fits, of rows as they lie and in the order of keys; in the gate some of the rules, each in one of the two ways (and half of them as two programs, above).
  const size_t in_the_gate = std::strlen(rule.name) % 4;
  for (bool by_keys : {false, true}) {
    if (!rndn::test::every_case() && in_the_gate != by_keys) continue;
    const Ran asked = programs.run("t.hir", text, UINT64_MAX,
                                   {.range_rows = rndn::test::in_the_gate(1'500, 2'000), .ranges_by_keys = by_keys});
    EXPECT_EQ(asked.error, "");
    EXPECT_TRUE(asked.csv == free.csv) << by_keys << difference(asked.csv, free.csv);
  }
}

INSTANTIATE_TEST_SUITE_P(Split, EveryRule, ::testing::ValuesIn(rules),
                         [](const auto& info) { return std::string(info.param.name); });

// What a selection leaves is not known before it is made: its result is not as long as all rows unless that is a tenth
// of the memory at most.
TEST(Streaming, ResultsOfUnknownLengthTakeATenth) {
  static const SmallTables tables;
  Programs programs(tables);
  const std::string text = fmt::format(
      "module m {{ import Builtin.*; def main() : i64, i64 {{ {}\n a:? = @compress(few, y); z:i64 = @plus(a, 1:i64);\n"
      "n:? = @len(z); r:i64 = @range(n); return z, r; }} }}",
      columns);
  constexpr uint64_t column = 160'000;
  const Ran free = programs.run("t.hir", text, UINT64_MAX);
  // All of it fits: two columns and a result.
  const Ran limited = programs.run("t.hir", text, 9 * column);
  EXPECT_TRUE(limited.csv == free.csv) << difference(limited.csv, free.csv);
  EXPECT_EQ(limited.on_host, "");
  EXPECT_TRUE(limited.by_ranges);
  EXPECT_LT(limited.peak, 3 * column);
  const Ran enough = programs.run("t.hir", text, 11 * column);
  EXPECT_TRUE(enough.csv == free.csv) << difference(enough.csv, free.csv);
  EXPECT_FALSE(enough.by_ranges);
}

// Few values of many rows: an operator that counts them first makes its result no longer than that.
TEST(Streaming, OperatorsCountBeforeTheyTakeATenth) {
  static const SmallTables tables;
  Programs programs(tables);
  const std::string text = fmt::format(
      "module m {{ import Builtin.*; def main() : i64, i64 {{ {}\n u:i64 = @unique(g); z:i64 = @index(g, u);\n"
      "return u, z; }} }}",
      columns);
  constexpr uint64_t column = 160'000;  // and what the rows of all could be
  const Ran roomy = programs.run("t.hir", text, 12 * column);
  const Ran tight = programs.run("t.hir", text, 9 * column);
  EXPECT_TRUE(tight.csv == roomy.csv) << difference(tight.csv, roomy.csv);
  EXPECT_EQ(tight.on_host, "");
  EXPECT_FALSE(roomy.by_ranges);
  EXPECT_FALSE(tight.by_ranges);
  EXPECT_LT(tight.peak + column / 2, roomy.peak);
}

// The operators of running sums make as many elements as their input has room for: that is asked for first how long
// it is.
TEST(Streaming, OperatorsReadWhatASelectionLeft) {
  static const SmallTables tables;
  Programs programs(tables);
  const std::string text = fmt::format(
      "module m {{ import Builtin.*; def main() : i64 {{ {}\n a:? = @compress(few, x); starts:? = @compress(few, m);\n"
      "z:i64 = @scan_sum(a, starts); return z; }} }}",
      columns);
  constexpr uint64_t column = 160'000;
  const Ran free = programs.run("t.hir", text, UINT64_MAX);
  const Ran limited = programs.run("t.hir", text, 7 * column);
  EXPECT_TRUE(limited.csv == free.csv) << difference(limited.csv, free.csv);
  EXPECT_EQ(limited.on_host, "");
  EXPECT_FALSE(limited.by_ranges);
  EXPECT_LT(limited.peak, 5 * column / 2);  // x, and the selection in half the bytes; with room for all, one more
}

// Under a limit the length of what a selection left is asked for before what takes room for all of it: a column is put in
// the plain form, elements get the numbers of their cells, groups leave their table. What a kernel moves tells for how many.
TEST(Streaming, LengthsAreLearntBeforeRoomIsTaken) {
  struct Case {
    const char *kernel, *results, *body;
    uint64_t rows, limit;  // bytes: a tenth of them is less than 8 bytes for each row, or slot of the table
    uint64_t all, most;    // bytes that the kernel moves without a limit, at least, and with it, at most
    EngineOptions options{};
  };
  const Case cases[] = {
      {"decode", "i64, i64",
       R"(h:? = @mul(x, 1000003:i64); hm:? = @compress(few, h); gm:? = @compress(few, g); d1:? = @group(hm);
        first:? = @keys(d1); rows:? = @values(d1); k1:i64 = @index(hm, first); c1:? = @each_right(@index, gm, rows);
        e1:? = @each(@max, c1); most:i64 = @raze(e1); return k1, most;)",
       20'000, 1'440'000, 240'000, 16'000},
      {"cell_numbers", "i64, i64",
       "a:i64 = @compress(few, x); n:? = @len(a); z:i64 = @GPU.cell_numbers(n, a); return a, z;", 20'000, 1'440'000,
       80'000, 5'000},
      {"fold_take", "i64, i64",
       R"(few_of:? = @mod(x, 450:i64); h:? = @mul(few_of, 1000000007:i64); d1:? = @group(h); first:? = @keys(d1); rows:? = @values(d1);
        k1:i64 = @index(h, first); c1:? = @each_right(@index, x, rows); e1:? = @each(@sum, c1); sums:i64 = @raze(e1);
        return k1, sums;)",
       2'000, 115'000, 69'000, 35'000, {.hashed_rows = 100, .fold_slots = 1024}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.kernel);
    const SmallTables tables(c.rows);
    Programs programs(tables);
    const std::string text = fmt::format("module m {{ import Builtin.*; def main() : {} {{ {}\n {} }} }}", c.results,
                                         columns, c.body);
    const Ran free = programs.run("t.hir", text, UINT64_MAX, c.options);
    const Ran limited = programs.run("t.hir", text, c.limit, c.options);
    EXPECT_TRUE(limited.csv == free.csv) << difference(limited.csv, free.csv);
    EXPECT_EQ(limited.on_host, "");
    EXPECT_FALSE(limited.by_ranges);
    const auto moved = [&](const Ran& ran) {
      for (const auto& [name, bytes] : ran.moved)
        if (name.find(c.kernel) != name.npos) return bytes;
      std::string all;
      for (const auto& [name, bytes] : ran.moved) all += fmt::format(" {} {}", name, bytes);
      ADD_FAILURE() << "no such kernel among" << all;
      return uint64_t{0};
    };
    EXPECT_GE(moved(free), c.all) << "nothing is learnt where there is room";
    EXPECT_LE(moved(limited), c.most);
  }
}

// Texts of a selection get the codes of another domain for a group: as many as the selection turned out to have, which
// is asked for on the way.
TEST(Streaming, TextsOfASelectionInAnotherDomain) {
  static const SmallTables tables;
  Programs programs(tables);
  const std::string text = fmt::format(
      "module m {{ import Builtin.*; def main() : str, i64 {{ {}\n a:? = @compress(few, s); h:? = @mul(x, 1000003:i64); b:? = @compress(few, h);\n"
      "l:? = @list(a, b); d1:? = @group(l); first:? = @keys(d1); z:str = @index(a, first); c1:? = @values(d1);\n"
      "e1:? = @each(@len, c1); n:i64 = @raze(e1); return z, n; }} }}",
      columns);
  constexpr uint64_t column = 160'000;
  const Ran free = programs.run("t.hir", text, UINT64_MAX);
  const Ran limited = programs.run("t.hir", text, 9 * column);
  EXPECT_EQ(limited.error, "");
  EXPECT_TRUE(limited.csv == free.csv) << difference(limited.csv, free.csv);
  EXPECT_EQ(limited.on_host, "");
  EXPECT_FALSE(limited.by_ranges);
}

// A vector that would be too long for one kernel is made in parts.
TEST(Streaming, VectorsThatWouldBeTooLong) {
  static const SmallTables tables;
  Programs programs(tables);
  constexpr size_t every = 9;  // they take seconds
  for (size_t i = 0; i < std::size(rules); i += every) {
    const Rule& rule = rules[i];
    const std::string text = fmt::format("module m {{ import Builtin.*; def main() : {} {{ {} {} }} }}", rule.results,
                                         columns, rule.body);
    const Ran whole = programs.run("t.hir", text, UINT64_MAX);
    const Ran parts = programs.run("t.hir", text, UINT64_MAX, {.longest_vector = 10'000});
    EXPECT_EQ(parts.error, "") << rule.name;
    EXPECT_EQ(parts.on_host, "") << rule.name;
    EXPECT_TRUE(parts.by_ranges) << rule.name;
    EXPECT_TRUE(parts.csv == whole.csv) << rule.name << difference(parts.csv, whole.csv);
  }
}

// What needs all rows at once runs on the host; without fallbacks it is an error that says which
// statement it is.
TEST(Streaming, RefusalNamesTheStatement) {
  static const SmallTables tables;
  Programs programs(tables);
  const std::string text = fmt::format(
      "module m {{ import Builtin.*; def main() : i64 {{ {}\n  z:? = @plus(y, x);\n  o:i64 = "
      "@unique(z);\n  "
      "return o; }} }}",
      columns);
  const Ran whole = programs.run("t.hir", text, UINT64_MAX);
  const Ran on_host = programs.run("t.hir", text, 600'000);
  EXPECT_EQ(on_host.error, "");
  EXPECT_THAT(on_host.on_host, HasSubstr("more bytes do not fit on simulator"));
  EXPECT_TRUE(on_host.csv == whole.csv) << difference(on_host.csv, whole.csv);
  const Ran ran = programs.run("t.hir", text, 600'000, {.allow_fallback = false});
  EXPECT_THAT(ran.error, HasSubstr("more bytes do not fit on simulator"));
  EXPECT_THAT(ran.error, HasSubstr("the limit of device memory is 600000 bytes"));
  EXPECT_THAT(ran.error, HasSubstr("this is after ranges of `t`, all of whose selected rows are "
                                   "needed at once by `unique` (t.hir:16:3)"));
}

// Neither the programs that ran nor their literals, which texts were compared with, keep memory: what comes
// after them has it, and without a cache all of it is free in the end.
TEST(Streaming, ProgramsThatRanKeepNoMemory) {
  static const SmallTables tables(3000);
  Programs programs(tables);
  const std::string text = fmt::format(
      "module m {{ import Builtin.*; def main() : i64, i64, str {{ {}\n"
      "  q:str = check_cast(@column_value(t, `q:sym), str);\n"
      "  a:? = @gt(s, \"5\":str); b:? = @eq(q, \"7 of q, 1\":str); c:? = @or(a, b); z:? = @compress(c, y);\n"
      "  w:? = @compress(c, s); e:? = @lt(w, \"9 of s\":str); z2:? = @compress(e, z); w2:? = @compress(e, w);\n"
      "  o:? = @order(z2, 1:bool); r:i64 = @index(z2, o); t2:? = @index(w2, o); u:? = @neq(t2, \"567 of s\":str);\n"
      "  r2:i64 = @compress(u, r); t3:str = @compress(u, t2); return r, r2, t3; }} }}",
      columns);
  const Ran free = programs.run("t.hir", text, UINT64_MAX, {.cache = false});
  for (uint64_t limit : {10'000, 11'000, 30'000}) {
    const Ran limited = programs.run("t.hir", text, limit, {.cache = false});
    EXPECT_TRUE(limited.csv == free.csv) << difference(limited.csv, free.csv);
    EXPECT_TRUE(limited.by_ranges);
    EXPECT_EQ(limited.on_host, "");
    EXPECT_EQ(limited.stays, 0u);
  }
}

// What the host does beside the programs is said, and nothing where all of it fits.
TEST(Streaming, HostWorkIsNamed) {
  static const SmallTables tables;
  Programs programs(tables);
  const std::string text = fmt::format(
      "module m {{ import Builtin.*; def main() : i64, f64, i64, i64 {{ {}\n"
      "  n:? = @len(x); none:? = @vector(n, 0:bool); z:? = @plus(y, x); l:? = @list(z, x);\n"
      "  o:? = @order(l, (1, 0):bool); a:i64 = @index(y, o); b:f64 = @scan_sum(f, none);\n"
      "  c:i64 = @scan_max(z, none); back:i64 = @reverse(z); return a, b, c, back; }} }}",
      columns);
  EXPECT_THAT(programs.run("t.hir", text, UINT64_MAX).host_work, ::testing::IsEmpty());
  const Ran limited = programs.run("t.hir", text, 150'000);
  EXPECT_EQ(limited.error, "");
  EXPECT_EQ(limited.on_host, "");
  using ::testing::Contains, ::testing::MatchesRegex, ::testing::StartsWith;
  EXPECT_THAT(limited.host_work, Contains(MatchesRegex("rows of `.+` put in the order of keys")));
  EXPECT_THAT(limited.host_work, Contains("sums of 32 rows added up: `scan_sum`"));
  EXPECT_THAT(limited.host_work, Contains("values before a range carried on: `scan_max`"));
  EXPECT_THAT(limited.host_work, Contains(StartsWith("elements moved: ")));
}

// --- Random programs ---

// A straight-line program over t and d whose statements are drawn: element-wise work, selections,
// numbers of rows and what is gathered by them, look-ups in d, groups, joins, orders, reductions.
// Some variables are results.
class RandomProgram {
 public:
  explicit RandomProgram(uint64_t seed) : random_(seed) {
    spaces_ = {{{"k", "g", "x", "y"}, {"m", "few"}, {"g"}, {}}, {{"key", "v"}, {}, {"key"}, {}}};
    const unsigned statements = 6 + draw(14);
    for (unsigned i = 0; i < statements; ++i) statement();
    std::string types, results;
    for (unsigned i = 0; i < 5; ++i) {
      const auto& [name, type] =
          made_[made_.size() - 1 - draw(std::min<uint64_t>(made_.size(), 12))];
      types += (i ? ", " : "") + type;
      results += (i ? ", " : "") + name;
    }
    text = fmt::format("module m {{ import Builtin.*; def main() : {} {{ {} {} return {}; }} }}",
                       types, columns, body_, results);
  }
  std::string text;

 private:
  struct Space {  // vectors of one length
    std::vector<std::string> values, masks;
    std::vector<std::string> keys;       // of the values: rows of d
    std::map<std::string, size_t> rows;  // numbers of rows of another space; no values
  };
  uint64_t draw(uint64_t n) { return random_() % n; }
  template <class T>
  const T& any(const std::vector<T>& of) {
    return of[draw(of.size())];
  }
  std::string add(const std::string& expression, const char* type) {
    std::string name = fmt::format("z{}", ++names_);
    body_ += fmt::format("\n  {}:{} = {};", name, type, expression);
    made_.push_back({name, type});
    return name;
  }
  size_t add_space() {
    spaces_.emplace_back();
    return spaces_.size() - 1;
  }
  // What is `expression(x)` for some of the vectors of a space.
  template <class F>
  void carry(size_t from, size_t to, F&& expression) {
    const Space s = spaces_[from];
    for (unsigned i = 0; i < 2; ++i) {
      const std::string& x = any(s.values);
      const std::string made = add(expression(x), "i64");
      spaces_[to].values.push_back(made);
      if (std::find(s.keys.begin(), s.keys.end(), x) != s.keys.end())
        spaces_[to].keys.push_back(made);
    }
    for (const auto& [rows, of] : s.rows)
      if (draw(2)) spaces_[to].rows[add(expression(rows), "i64")] = of;
  }
  std::string mask(size_t space) {
    Space& s = spaces_[space];
    if (!s.masks.empty() && draw(2)) return any(s.masks);
    const char* compare = any(std::vector<const char*>{"lt", "gt", "neq"});
    s.masks.push_back(add(
        fmt::format("@{}({}, {}:i64)", compare, any(s.values), int64_t(draw(1200)) - 600), "bool"));
    return s.masks.back();
  }
  void statement() {
    const size_t at = draw(3) ? spaces_.size() - 1 - draw(std::min<size_t>(3, spaces_.size()))
                              : draw(spaces_.size());
    if (spaces_[at].values.empty()) return;
    const Space s = spaces_[at];
    switch (draw(11)) {
      case 0:
        spaces_[at].values.push_back(
            add(fmt::format("@{}({}, {})", any(std::vector<const char*>{"plus", "minus", "mul"}),
                            any(s.values), any(s.values)),
                "i64"));
        return;
      case 1:
        if (s.masks.size() < 2) return void(mask(at));
        spaces_[at].masks.push_back(
            add(fmt::format("@{}({}, {})", draw(2) ? "and" : "or", any(s.masks), any(s.masks)),
                "bool"));
        return;
      case 2:
      case 3: {
        const std::string m = mask(at);
        const size_t to = add_space();
        carry(at, to, [&](const std::string& x) { return fmt::format("@compress({}, {})", m, x); });
        if (draw(2)) spaces_[to].rows[add(fmt::format("@where({})", m), "i64")] = at;
        return;
      }
      case 4:
        for (const auto& [rows, of] : s.rows)
          spaces_[at].values.push_back(
              add(fmt::format("@index({}, {})", any(spaces_[of].values), rows), "i64"));
        return;
      case 5:
        if (!s.keys.empty())
          spaces_[at].values.push_back(add(fmt::format("@index(v, {})", any(s.keys)), "i64"));
        return;
      case 6: {
        const std::string n = add(fmt::format("@len({})", any(s.values)), "i64");
        if (draw(2)) spaces_[at].rows[add(fmt::format("@range({})", n), "i64")] = at;
        return;
      }
      case 7: {
        std::string key = any(s.values);
        if (draw(2))
          key = add(fmt::format("@list({}, {})", key, any(s.values)), "?"), made_.pop_back();
        const std::string groups = add(fmt::format("@group({})", key), "?");
        const std::string first = add(fmt::format("@keys({})", groups), "i64"),
                          rows = add(fmt::format("@values({})", groups), "?");
        std::erase_if(made_, [](const auto& m) { return m.second == "?"; });
        if (draw(4)) std::erase_if(made_, [&](const auto& m) { return m.first == first; });
        const size_t to = add_space();
        spaces_[to].rows[first] = at;
        spaces_[to].values.push_back(
            add(fmt::format("@index({}, {})", any(s.values), first), "i64"));
        const char* reduce = any(std::vector<const char*>{"sum", "min", "max", "len"});
        const std::string x = any(s.values);
        body_ +=
            fmt::format("\n  c{0}:? = @each_right(@index, {1}, {2}); e{0}:? = @each(@{3}, c{0});",
                        names_, x, rows, reduce);
        spaces_[to].values.push_back(add(fmt::format("@raze(e{})", names_), "i64"));
        return;
      }
      case 8: {
        const std::string o =
            add(fmt::format("@order({}, {}:bool)", any(s.values), draw(2)), "i64");
        const size_t to = add_space();
        carry(at, to, [&](const std::string& x) { return fmt::format("@index({}, {})", x, o); });
        spaces_[to].rows[o] = at;
        return;
      }
      case 9: {
        const char* reduce = any(std::vector<const char*>{"sum", "min", "max"});
        add(fmt::format("@{}({})", reduce, any(s.values)), "i64");
        return;
      }
      default: {
        if (joins_++ > 1) return;
        const size_t other = draw(2) ? 1 : at;
        const bool by_k = at == 0 && draw(2);
        const std::string x = other == 1 ? "key"
                              : by_k     ? "k"
                                         : any(s.values),
                          y = by_k && other != 1 ? "k" : any(s.values);
        const std::string j = fmt::format("j{}", ++names_);
        body_ += fmt::format("\n  {}:? = @join_index(@eq, {}, {});", j, x, y);
        const size_t to = add_space();
        for (const auto& [cell, of] : {std::pair<int, size_t>{0, other}, {1, at}}) {
          const std::string rows = add(fmt::format("@index({}, {}:i64)", j, cell), "i64");
          spaces_[to].rows[rows] = of;
          spaces_[to].values.push_back(
              add(fmt::format("@index({}, {})", any(spaces_[of].values), rows), "i64"));
        }
        return;
      }
    }
  }
  std::mt19937_64 random_;
  std::vector<Space> spaces_;
  std::vector<std::pair<std::string, std::string>> made_{{"x", "i64"}};
  std::string body_;
  unsigned names_ = 0, joins_ = 0;
};

// RNDN_RANDOM_SEEDS=N: so many programs.
TEST(Streaming, RandomProgramsGiveTheSameByRanges) {
  const char* seeds = std::getenv("RNDN_RANDOM_SEEDS");
  const uint64_t last = seeds ? std::strtoull(seeds, nullptr, 10) : rndn::test::in_the_gate(20, 60);
  uint64_t by_ranges = 0;
  for (uint64_t seed = 1; seed <= last && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    const SmallTables tables(60 + seed % 400, seed);
    Programs programs(tables);
    const RandomProgram program(seed);
    SCOPED_TRACE(program.text);
    const Ran whole = programs.run("t.hir", program.text, UINT64_MAX);
    const Ran ranges = programs.run("t.hir", program.text, UINT64_MAX,
                                    {.range_rows = 5 + seed % 90,
                                     .encode = seed % 2 ? Encode::packed : Encode::narrow,
                                     .transfer = seed % 3 ? Transfer::copied : Transfer::mapped});
    EXPECT_EQ(ranges.error, whole.error);
    EXPECT_TRUE(ranges.csv == whole.csv) << difference(ranges.csv, whole.csv);
    by_ranges += ranges.by_ranges;
    const Ran keys = programs.run("t.hir", program.text, UINT64_MAX,
                                  {.range_rows = 5 + seed % 90, .ranges_by_keys = true});
    const Ran in_two = programs.run("t.hir", program.text, UINT64_MAX, {.in_two = true});
    EXPECT_EQ(in_two.error, whole.error);
    EXPECT_TRUE(in_two.csv == whole.csv) << "in two, " << difference(in_two.csv, whole.csv);
    EXPECT_EQ(keys.error, whole.error);
    EXPECT_TRUE(keys.csv == whole.csv) << "by keys, " << difference(keys.csv, whole.csv);
  }
  EXPECT_GT(by_ranges, last / 3) << "programs that run by ranges";
}

// --- The SQL of TPC-H and SSB ---

struct Query {
  const char* suite;
  std::string name;
};
void PrintTo(const Query& query, std::ostream* out) { *out << query.suite << query.name; }

std::vector<Query> all_queries() {
  std::vector<Query> all;
  for (int q = 1; q <= 22; ++q) all.push_back({"tpch", fmt::format("q{:02}", q)});
  for (const char* q :
       {"1.1", "1.2", "1.3", "2.1", "2.2", "2.3", "3.1", "3.2", "3.3", "3.4", "4.1", "4.2", "4.3"})
    all.push_back({"ssb", std::string("q") + q});
  return all;
}

class EveryQuery : public ::testing::TestWithParam<Query> {
 protected:
  void SetUp() override {
    options_ = planner::Options::of_environment();
    options_.folders = {RNDN_BIN_DIR "/../share/duckdb", RNDN_BIN_DIR "/../../share/duckdb"};
    bool there = !options_.named.empty();
    for (const std::string& folder : options_.folders)
      there |= std::filesystem::exists(folder + "/" + planner::wrapper_name);
    if (!there)
      GTEST_SKIP() << "skipped: the planner of SQL is not installed (tools/sql-planner does that)";
  }
  planner::Options options_;
};

TEST_P(EveryQuery, TakesAQuarterOfItsMemory) {
  const auto& [suite, name] = GetParam();
  // Opened once, since the text that comments are cut from takes longer than a query.
  static const auto of_tpch = tpch::open_source("tpch:0.02", {.progress = false});
  static const auto of_ssb = data::open_source({.data = "ssb:0.02"}, {&ssb::scheme, 1}, {.progress = false});
  const auto& source = std::string(suite) == "tpch" ? of_tpch : of_ssb;
  ASSERT_TRUE(source) << source.error().message;
  const std::string path = fmt::format("{}/{}/sql/{}.sql", RNDN_SOURCE_DIR, suite, name);
  auto sql = read_file(path);
  ASSERT_TRUE(sql);
  SourceManager sources;
  DiagnosticSink sink;
  Timings timings;
  SqlQueries queries(*source, options_);
  const FileId file = sources.add(path, *sql);
  const auto statements = planner::split_statements(*sql);
  ASSERT_EQ(statements.size(), 1u);
  auto query = queries.prepare(
      {file, static_cast<uint32_t>(statements[0].begin), static_cast<uint32_t>(statements[0].end)},
      sources, SqlQueries::Until::program, sink, timings);
  ASSERT_TRUE(query) << render(sink, sources) << query.error().message;
  const data::SourceTables tables(*source);
  Programs programs(tables, &(*source)->schema());
  const Ran free = programs.run(name, (*query)->translation->program, 32 << 20);
  ASSERT_EQ(free.error, "");
  ASSERT_FALSE(free.by_ranges);
  const Ran limited = programs.run(name, (*query)->translation->program, free.peak / 4);
  EXPECT_EQ(limited.error, "");
  EXPECT_TRUE(limited.csv == free.csv) << difference(limited.csv, free.csv);
  EXPECT_EQ(limited.on_host, "");
  EXPECT_LE(limited.peak, free.peak / 4);
}

INSTANTIATE_TEST_SUITE_P(Sql, EveryQuery, ::testing::ValuesIn(all_queries()), [](const auto& info) {
  std::string name = info.param.suite + info.param.name;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

}  // namespace
}  // namespace rndn::runtime::streaming_test
