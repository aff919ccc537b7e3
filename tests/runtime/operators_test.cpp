// SQL operators, lists and text through the engine, against the reference interpreter: every row of every result, on an old and a recent target,
// from no rows to several tiles. Also that memory is reused and nothing is lost.
#include <gtest/gtest.h>

#include <map>

#include "outliner/grouping_fusion.h"
#include "runtime/engine.h"
#include "runtime/memory/device_value.h"
#include "runtime/print_result.h"
#include "runtime/simulator/simulator_device.h"
#include "tests/runtime/forwarding_device.h"

namespace rndn::runtime {
namespace {

using hir::BasicType;

// Table `t` of n rows: k:i32 and j:i64 with few values, x:f64, c:char, d:date, few:sym (a dictionary), other:sym (another dictionary, with texts of
// its own), many:str (no dictionary, texts repeat), f: a foreign key into itself.
class MixedTables final : public reference::Tables {
 public:
  explicit MixedTables(uint64_t n) : rows_(n) {
    put<int32_t>("k", BasicType::i32, [](uint64_t i) { return static_cast<int32_t>(i * 7919 % 13) - 5; });
    put<int64_t>("j", BasicType::i64, [](uint64_t i) { return static_cast<int64_t>(i * 104729 % 7) - 2; });
    put<double>("x", BasicType::f64, [](uint64_t i) { return static_cast<double>(i * 31 % 101) / 4 - 3; });
    put<int8_t>("c", BasicType::character, [](uint64_t i) { return static_cast<int8_t>("NARN"[i * 3 % 4]); });
    put<int32_t>("d", BasicType::date, [](uint64_t i) { return static_cast<int32_t>(8000 + i * 37 % 900); });
    put<int32_t>("id", BasicType::i32, [](uint64_t i) { return static_cast<int32_t>(i); });
    dictionary("few", {"EUROPE", "ASIA", "AFRICA", "", "AMERICA"}, 11);
    dictionary("other", {"ASIA", "OCEANIA", "EUROPE"}, 5, 2);
    data::Column many = data::make_column(BasicType::str, n, data::Encoding::text);
    std::string many_pad;
    for (uint64_t i = 0; i < n; ++i) {
      const std::string text = fmt::format("{:02} special of {} requests", i * 17 % 23, i % 5);
      const uint64_t handle = many_pad.size() << 24 | text.size();
      std::memcpy(many.data->data() + 8 * i, &handle, 8);
      many_pad += text;
    }
    many.pad = std::make_shared<data::Bytes>(data::Bytes::of(std::move(many_pad)));
    add("many", std::move(many));
    data::Column f = data::make_column(BasicType::i32, n);
    for (uint64_t i = 0; i < n; ++i) {
      const auto row = static_cast<int32_t>(i * 5 % n);
      std::memcpy(f.data->data() + 4 * i, &row, 4);
    }
    f.is_foreign_key = true;
    f.foreign_table = "t";
    f.foreign_rows = f.data;
    add("f", std::move(f));
  }
  Result<void> open(std::string_view) const override { return {}; }
  Result<std::vector<std::string>> column_names(std::string_view) const override { return std::vector<std::string>{}; }
  Result<uint64_t> rows(std::string_view) const override { return rows_; }
  Result<std::shared_ptr<const data::Column>> column(std::string_view, std::string_view name) const override {
    auto at = columns_.find(name);
    if (at == columns_.end()) return input_error("table `t` has no column `{}`", name);
    return at->second;
  }
  Result<std::shared_ptr<const data::Column>> key_column(std::string_view) const override { return columns_.at("id"); }

 private:
  void add(const std::string& name, data::Column column) {
    data::compute_statistics(column);
    columns_[name] = std::make_shared<const data::Column>(std::move(column));
  }
  template <class T, class F>
  void put(const std::string& name, BasicType type, F&& f) {
    data::Column c = data::make_column(type, rows_);
    for (uint64_t i = 0; i < rows_; ++i) {
      const T x = f(i);
      std::memcpy(c.data->data() + sizeof(T) * i, &x, sizeof(T));
    }
    add(name, std::move(c));
  }
  void dictionary(const std::string& name, std::vector<std::string> values, uint64_t step, uint32_t width = 1) {
    data::Column c = data::make_column(BasicType::sym, rows_, data::Encoding::dictionary, width);
    for (uint64_t i = 0; i < rows_; ++i) (*c.data)[i * width] = static_cast<std::byte>(i * step % values.size());
    c.dictionary->values = std::move(values);
    add(name, std::move(c));
  }
  uint64_t rows_;
  std::map<std::string, std::shared_ptr<const data::Column>, std::less<>> columns_;
};

// Counts what is asked of a device.
class CountingDevice final : public test::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  size_t allocations = 0, uploads = 0;
  Result<device::Address> allocate(uint64_t n) override { return ++allocations, to_.allocate(n); }
  Result<device::Mapped> allocate_mapped(uint64_t n) override { return ++allocations, to_.allocate_mapped(n); }
  Result<void> copy_to_device(device::Address a, const void* from, uint64_t n) override {
    uploads += n >= 512;  // the pattern of a `like` is less, and sent every time
    return to_.copy_to_device(a, from, n);
  }
};

struct Program {
  const char* name;
  const char* text;      // statements after the columns are there
  const char* columns;   // of the result, in `list`
  size_t fallbacks = 0;  // that are left
};

constexpr Program programs[] = {
    {"order_mixed",
     "o:? = @order(@list(few, x, k), (0,1,0):bool); r1:? = @index(few, o); r2:? = @index(x, o); r3:? = @index(k, o);",
     "r1, r2, r3"},
    {"order_many", "o:? = @order(many, 1:bool); r1:? = @index(many, o);", "r1, o"},
    {"group_sum",
     "m:? = @gt(k, 0:i32); s:? = @compress(m, few); y:? = @compress(m, x); g:? = @group(@list(s, @compress(m, c))); "
     "w:? = @keys(g);"
     "v:? = @values(g); n:? = @raze(@each(@len, v)); t1:? = @raze(@each(@sum, @each_right(@index, y, v)));"
     "t2:? = @raze(@each(@max, @each_right(@index, y, v))); e:? = @index(s, w); o:? = @order(@list(e, t1, n), "
     "(1,1,1):bool);"
     "r1:? = @index(e, o); r2:? = @index(t1, o); r3:? = @index(n, o); r4:? = @index(t2, o);",
     "r1, r2, r3, r4"},
    {"group_many",
     "g:? = @group(many); w:? = @keys(g); n:? = @raze(@each(@len, @values(g))); e:? = @index(many, w); o:? = @order(e, "
     "1:bool);"
     "r1:? = @index(e, o); r2:? = @index(n, o);",
     "r1, r2"},
    {"group_reductions",
     "g:? = @group(@list(c, k)); w:? = @keys(g); v:? = @values(g); e1:? = @index(c, w); e2:? = @index(k, w);"
     "r1:? = @raze(@each(@avg, @each_right(@index, j, v))); r2:? = @raze(@each(@min, @each_right(@index, c, v)));"
     "r3:? = @raze(@each(@max, @each_right(@index, d, v))); r4:? = @raze(@each(@sum, @each_right(@index, k, v)));"
     "r5:? = @raze(@each(@avg, @each_right(@index, x, v))); r6:? = @raze(@each(@len, v));"
     "r7:? = @raze(@each(@sum, @each_right(@index, x, v))); r8:? = @raze(@each(@min, @each_right(@index, j, v)));",
     "e1, e2, r1, r2, r3, r4, r5, r6, r7, r8"},
    {"group_beside_cells",
     "g:? = @group(@list(k, c)); w:? = @keys(g); v:? = @values(g); e:? = @index(x, w); r1:? = @mul(e, 2:f64);"
     "r2:? = @plus(@index(j, w), @index(k, w)); m:? = @lt(r2, 3:i64); r3:? = @and(m, @gt(e, 1:f64)); r4:? = "
     "@index(few, w);"
     "r5:? = @raze(@each(@sum, @each_right(@index, x, v))); r6:? = @raze(@each(@len, v));",
     "r1, r2, r3, r4, r5, r6"},
    {"group_ascending",
     "a:? = @div(id, 3:i32); i:? = @where(@geq(k, -2:i32)); g:? = @group(i); w:? = @keys(g); v:? = @values(g); y:? = "
     "@index(x, i);"
     "r1:? = @raze(@each(@sum, @each_right(@index, y, v))); r2:? = @raze(@each(@len, v)); r3:? = @index(i, w);"
     "h:? = @group(@index(a, i)); r4:? = @raze(@each(@len, @values(h)));",
     "r1, r2, r3"},
    {"group_of_longer_values",
     "m:? = @gt(id, 1:i32); s:? = @compress(m, k); g:? = @group(s); v:? = @values(g);"
     "r1:? = @raze(@each(@sum, @each_right(@index, x, v))); r2:? = @index(s, @keys(g));",
     "r1, r2"},
    {"group_distinct",
     "g:? = @group(@list(k, c)); v:? = @values(g); y:? = @each_right(@index, many, v); n:? = @raze(@each(@len, "
     "@each(@unique, y)));"
     "r1:? = @index(c, @keys(g)); r2:? = @raze(@each(@sum, @each_right(@index, j, v)));",
     "r1, n, r2"},
    {"group_rows_wanted_too",
     "g:? = @group(k); v:? = @values(g); r1:? = @raze(@each(@sum, @each_right(@index, x, v))); r2:? = @raze(v);", "r1",
     0},
    {"unique_cells",
     "g:? = @group(k); v:? = @values(g); y:? = @each_right(@index, j, v); n:? = @raze(@each(@len, @each(@unique, y)));"
     "e:? = @index(k, @keys(g)); o:? = @order(e, 1:bool); r1:? = @index(e, o); r2:? = @index(n, o);",
     "r1, r2"},
    {"unique_text", "u:? = @unique(few); r1:? = @index(few, u);", "u, r1"},
    {"join_numbers",
     "m:? = @lt(id, 40:i32); a:? = @compress(m, k); b:? = @compress(m, j); p:? = @join_index(@eq, a, b); r1:? = "
     "@index(p, 0:i64);"
     "r2:? = @index(p, 1:i64);",
     "r1, r2"},
    {"join_texts",
     "m:? = @lt(id, 30:i32); a:? = @compress(m, few); b:? = @compress(m, other); e:? = @compress(m, k);"
     "p:? = @join_index(@eq@neq, @list(a, e), @list(b, e)); r1:? = @index(p, 0:i64); r2:? = @index(p, 1:i64);",
     "r1, r2"},
    {"signed_characters", "y:? = @neg(c); o:? = @order(y, 1:bool); r1:? = @index(y, o); r2:? = @member(y, -82:i16);",
     "r1, r2"},
    {"join_signed_characters",
     "m:? = @lt(id, 20:i32); a:? = @compress(m, @neg(c)); b:? = @compress(m, @mul(k, 20:i32)); p:? = @join_index(@lt, "
     "a, b);"
     "r1:? = @index(p, 0:i64); r2:? = @index(p, 1:i64);",
     "r1, r2"},
    {"member_numbers",
     "r1:? = @member(k, (1,3,100):i64); r2:? = @member(k, (1,3,100,5,7,11,12,200,201,202):i64); r3:? = @member(c, (65,300,-190):i64);"
     "r4:? = @member(k, 3:i16);",
     "r1, r2, r3, r4, k"},
    {"member_texts",
     "r1:? = @member(few, other); r2:? = @member(many, few); r3:? = @member(few, (`ASIA,`ATLANTIS):sym);"
     "r4:? = @member(few, (`ASIA,`A,`B,`C,`D,`E,`F,`G,`EUROPE):sym);",
     "r1, r2, r3, r4"},
    {"equal_texts", "r1:? = @eq(few, `AFRICA:sym); r2:? = @neq(few, `ATLANTIS:sym); r3:? = @eq(few, other);",
     "r1, r2, r3"},
    {"like",
     "r1:? = @like(many, \"0%special%3_req%\":str); r2:? = @like(few, \"A%\":str); y:? = @index(many, id); r3:? = "
     "@like(y, \"%requests\":str);",
     "r1, r2, r3"},
    {"sub_string",
     "s:? = @sub_string(many, (1,2):i32); r1:? = @member(s, (`\"03\",`\"17\"):sym); m:? = @compress(r1, s); g:? = "
     "@group(m);"
     "e:? = @index(m, @keys(g)); n:? = @raze(@each(@len, @values(g))); o:? = @order(e, 0:bool); r2:? = @index(e, o); "
     "r3:? = @index(n, o);",
     "r2, r3"},
    {"foreign",
     "w:? = @values(f); q:? = @fetch(f); r1:? = @index(x, w); r2:? = @index(few, w); n:? = @len(x); z:? = @vector(n, "
     "0:i64);"
     "g:? = @group(@index(k, w)); a:? = @index_a(z, @keys(g), 5:i64); b:? = @plus(a, z);",
     "r1, r2, q, a, b"},
    {"append_texts", "r1:? = @append(few, other); r2:? = @append(other, few);", "r1, r2"},
    {"texts_of_the_program",
     "n:? = @len(k); r1:? = @vector(n, `ATLANTIS:sym); m:? = @gt(k, 3:i32); w:? = @where(m); r2:? = @index_a(few, w, "
     "`ATLANTIS:sym);"
     "r3:? = @index_a(other, w, `EUROPE:sym); r4:? = @index(r2, id);",
     "r1, r2, r3, r4, other"},
    {"lengths",
     "g:? = @group(few); v:? = @values(g); w:? = @keys(g); p:? = @list(k, j, x); r1:? = @len(g); r2:? = @len(v); r3:? "
     "= @len(w); r4:? = @len(p);"
     "r5:? = @len(f); y:? = @compress(@gt(k, 2:i32), x); r6:? = @len(y); z:? = @plus(r6, 1:i64);",
     "r1, r2, r3, r4, r5, r6, z"},
    {"top",
     "o:? = @order(@list(x, few, d), (0,1,0):bool); n:? = @len(o); p:? = @range(n); m:? = @lt(p, 7:i64); w:? = "
     "@where(m); q:? = @index(o, w); r1:? = @index(x, q); r2:? = @index(few, q); r3:? = @index(id, q);",
     "r1, r2, r3"},
    {"top_of_a_selection",
     "z:? = @gt(k, 0:i32); y:? = @compress(z, x); i:? = @compress(z, id); o:? = @order(@list(y, i), (1,0):bool); "
     "n:? = @len(o); p:? = @range(n); m:? = @lt(p, 7:i64); w:? = @where(m); q:? = @index(o, w); r1:? = @index(y, q); "
     "r2:? = @index(i, q);",
     "r1, r2"},
    {"tops_of_a_number_that_the_run_knows",
     "a:? = @max(k); o:? = @order(many, 0:bool); s:? = @index(many, o); n:? = @len(s); p:? = @range(n); m:? = @lt(p, a);"
     "r1:? = @compress(m, s); w:? = @where(m); r2:? = @index(o, w);",
     "r1, r2"},
    {"tops_of_two_numbers",
     "o:? = @order(d, 0:bool); n:? = @len(o); p:? = @range(n); m:? = @lt(p, 40:i64); w:? = @where(m);"
     "q:? = @index(o, w); l:? = @leq(p, 2:i64); h:? = @compress(l, o); y:? = @sum(@index(x, h)); r1:? = @plus(@index(x, q), y); "
     "t1:? = @take(40:i64, o); r2:? = @index(id, q);",
     "r1, r2"},
    {"text_columns_kept",
     "m:? = @like(many, \"%2%\":str); r1:? = @compress(m, few); r2:? = @compress(m, many); r3:? = @compress(m, other);",
     "r1, r2, r3"},
};

class EngineOperators : public testing::TestWithParam<std::tuple<const char*, Program>> {
 protected:
  Result<Compiled> compile_program(const Program& p, bool fuse_operators = true) {
    std::string text = "module m { import Builtin.*; def main() : table { t:? = @load_table(`t:sym);\n";
    for (const auto& [name, type] : std::initializer_list<std::pair<const char*, const char*>>{{"k", "i32"},
                                                                                               {"j", "i64"},
                                                                                               {"x", "f64"},
                                                                                               {"c", "char"},
                                                                                               {"d", "date"},
                                                                                               {"id", "i32"},
                                                                                               {"few", "sym"},
                                                                                               {"other", "sym"},
                                                                                               {"many", "str"},
                                                                                               {"f", "enum<i32>"}})
      text += fmt::format("{0}:{1} = check_cast(@column_value(t, `{0}:sym), {1});\n", name, type);
    std::string body = p.text;
    // Calls within calls become statements of their own: HorseIR has none.
    text += unnest(body);
    std::string names;
    size_t columns = 1;
    for (char ch : std::string_view(p.columns)) columns += ch == ',';
    for (size_t i = 0; i < columns; ++i) names += fmt::format("{}`r{}", i ? "," : "", i);
    text += fmt::format("\nlast:? = @list({}); result:? = @table({}:sym, last); return result; }} }}", p.columns,
                        columns == 1 ? names : "(" + names + ")");
    DiagnosticSink sink;
    CompileOptions options;
    options.target = std::get<0>(GetParam());
    options.fuse_operators = fuse_operators;
    auto compiled = compile(sources_.add("t.hir", text), sources_, options, sink, timings_);
    if (!compiled) return input_error("{}{}", compiled.error().message, render(sink, sources_));
    return compiled;
  }
  // @f(@g(x), y) into n1:? = @g(x); @f(n1, y)
  std::string unnest(std::string body) {
    int made = 0;
    for (size_t at = 0; (at = body.find('@', at)) != std::string::npos;) {
      size_t before = body.find_last_not_of(' ', at - 1);
      size_t open = body.find_first_not_of("@abcdefghijklmnopqrstuvwxyz_", at);
      if (open == std::string::npos || body[open] != '(' || body[before] == '=') {
        ++at;
        continue;
      }
      size_t close = open, depth = 0;
      do {
        depth += body[close] == '(';
        depth -= body[close] == ')';
      } while (++close < body.size() && depth);
      const std::string call = body.substr(at, close - at), name = fmt::format("nested{}", made++);
      size_t start = body.rfind(';', at);
      start = start == std::string::npos ? 0 : start + 1;
      body.replace(at, close - at, name);
      body.insert(start, fmt::format("{}:? = {};", name, call));
      at = start;
    }
    return body;
  }
  SourceManager sources_;
  Timings timings_;
};

TEST_P(EngineOperators, AgreeWithTheReferenceInterpreter) {
  const auto& [target, program] = GetParam();
  auto compiled = compile_program(program);
  ASSERT_TRUE(compiled.ok()) << compiled.error().message;
  EXPECT_EQ(compiled->no_gpu_code, "");
  for (uint64_t rows : {0, 1, 33, 3000}) {
    if (rows == 3000 && std::string_view(target) == "sm_61") continue;  // time
    MixedTables tables(rows);
    sim::Options checks;
    checks.check_hazards = checks.check_races = true;
    auto simulator = open_simulator(target, checks);
    ASSERT_TRUE(simulator.ok());
    CountingDevice device(**simulator);
    Engine engine(device, tables);
    auto plan = engine.plan(*compiled, sources_, {}, timings_);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_EQ((*plan)->fallbacks().size(), program.fallbacks)
        << fmt::format("{}", fmt::join((*plan)->fallbacks(), "\n"));
    auto want = reference::run(compiled->program, tables, sources_, nullptr);
    ASSERT_TRUE(want.ok()) << want.error().message;
    const std::string right = *print_result(*want, Format::csv);
    uint64_t bytes = 0;
    size_t allocations = 0, uploads = 0;
    for (int run = 0; run < 3; ++run) {
      auto got = engine.run(**plan, timings_);
      ASSERT_TRUE(got.ok()) << rows << " rows: " << got.error().message;
      ASSERT_EQ(*print_result(*got, Format::csv), right) << rows << " rows, run " << run;
      if (run == 0) {
        bytes = engine.device_bytes();
        allocations = device.allocations;
        uploads = device.uploads;
      }
      EXPECT_EQ(engine.device_bytes(), bytes) << rows << " rows: a repeat needs no more memory";
      EXPECT_EQ(device.allocations, allocations) << rows << " rows: repeats allocate nothing";
      if (program.fallbacks == 0) {
        EXPECT_EQ(device.uploads, uploads) << rows << " rows: repeats send nothing";
      }
    }
  }
}

// With groups and their reductions one by one.
TEST_P(EngineOperators, AgreeWithoutFusion) {
  const auto& [target, program] = GetParam();
  if (!std::string_view(program.name).starts_with("group")) return;  // nothing is fused
  auto compiled = compile_program(program, false);
  ASSERT_TRUE(compiled.ok()) << compiled.error().message;
  EXPECT_TRUE(compiled->fusions.groups.empty());
  EXPECT_EQ(compiled->no_gpu_code, "");
  for (uint64_t rows : {33, 2500}) {
    MixedTables tables(rows);
    auto device = open_simulator(target);
    ASSERT_TRUE(device.ok());
    Engine engine(**device, tables);
    auto plan = engine.plan(*compiled, sources_, {.allow_fallback = false}, timings_);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    auto got = engine.run(**plan, timings_), want = reference::run(compiled->program, tables, sources_, nullptr);
    ASSERT_TRUE(got.ok()) << got.error().message;
    ASSERT_TRUE(want.ok());
    EXPECT_EQ(*print_result(*got, Format::csv), *print_result(*want, Format::csv)) << rows << " rows";
  }
}

// Repeats that are not measured run as graphs where they can, also when other programs use the memory in between.
TEST_P(EngineOperators, AgreeAsGraphs) {
  const auto& [target, program] = GetParam();
  if (std::string_view(target) == "sm_61") return;  // time
  auto compiled = compile_program(program), other = compile_program(programs[0]);
  ASSERT_TRUE(compiled.ok() && other.ok());
  MixedTables tables(500);
  auto device = open_simulator(target);
  ASSERT_TRUE(device.ok());
  Engine engine(**device, tables);
  const EngineOptions options{.measure_kernels = false};
  auto plan = engine.plan(*compiled, sources_, options, timings_),
       between = engine.plan(*other, sources_, options, timings_);
  ASSERT_TRUE(plan.ok() && between.ok());
  auto want = reference::run(compiled->program, tables, sources_, nullptr);
  ASSERT_TRUE(want.ok());
  const std::string right = *print_result(*want, Format::csv);
  for (int run = 0; run < 6; ++run) {
    auto got = engine.run(**plan, timings_);
    ASSERT_TRUE(got.ok()) << "run " << run << ": " << got.error().message;
    ASSERT_EQ(*print_result(*got, Format::csv), right) << "run " << run;
    if (run == 4) {
      ASSERT_TRUE(engine.run(**between, timings_).ok());
    }
  }
}

// Without the cache nothing but the plan's own pages stays; without a plan, nothing but the library.
TEST_P(EngineOperators, GiveTheirMemoryBack) {
  const auto& [target, program] = GetParam();
  auto compiled = compile_program(program);
  ASSERT_TRUE(compiled.ok()) << compiled.error().message;
  MixedTables tables(200);
  auto device = open_simulator(target);
  ASSERT_TRUE(device.ok());
  Engine engine(**device, tables);
  {
    auto plan = engine.plan(*compiled, sources_, {.cache = false}, timings_);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    auto got = engine.run(**plan, timings_);
    ASSERT_TRUE(got.ok()) << got.error().message;
  }
  EXPECT_EQ(engine.device_bytes(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Targets, EngineOperators,
                         testing::Combine(testing::Values("sm_61", "sm_86"), testing::ValuesIn(programs)),
                         [](const auto& info) {
                           return fmt::format("{}_{}", std::get<0>(info.param), std::get<1>(info.param).name);
                         });

// Groups ascend as those of the reference interpreter, by texts too; by hashing with --ordered.
TEST(OrderedGroups, AscendByTheirKeys) {
  const std::string head =
      "module m { import Builtin.*; def main() : table { t:? = @load_table(`t:sym);\n"
      "few:sym = check_cast(@column_value(t, `few:sym), sym); other:sym = check_cast(@column_value(t, `other:sym), sym);\n"
      "many:str = check_cast(@column_value(t, `many:sym), str); k:i32 = check_cast(@column_value(t, `k:sym), i32);\n";
  const std::string tail = "c:? = @list(r, s); result:? = @table((`r,`s):sym, c); return result; } }";
  const std::string groups = "keys:? = @keys(d); cells:? = @values(d); ";
  const std::string sums = "e:? = @each_right(@index, k, cells); f:? = @each(@sum, e); s:? = @raze(f); ";
  for (const std::string& body :
       {"d:? = @group(few); " + groups + sums + "r:? = @index(few, keys); ",
        "d:? = @group(many); " + groups + sums + "r:? = @index(many, keys); ",
        "both:? = @list(other, many); d:? = @group(both); " + groups + sums + "r:? = @index(many, keys); ",
        "m:? = @geq(k, 0:i32); x:? = @compress(m, few); d:? = @group(x); " + groups +
            "f:? = @each(@len, cells); s:? = @raze(f); r:? = @index(x, keys); "}) {
    SourceManager sources;
    DiagnosticSink sink;
    Timings timings;
    auto compiled = compile(sources.add("t.hir", head + body + tail), sources, {}, sink, timings);
    ASSERT_TRUE(compiled.ok()) << compiled.error().message << render(sink, sources);
    const MixedTables tables(1000);
    auto want = reference::run(compiled->program, tables, sources, nullptr);
    ASSERT_TRUE(want.ok()) << want.error().message;
    using Group = operators::Options::Group;
    for (Group group : {Group::automatic, Group::sort, Group::hash}) {
      auto device = open_simulator("sm_86");
      ASSERT_TRUE(device.ok());
      Engine engine(**device, tables);
      EngineOptions options{.allow_fallback = false};
      options.operators.ordered = group == Group::hash;
      options.operators.group = group;
      auto plan = engine.plan(*compiled, sources, options, timings);
      ASSERT_TRUE(plan.ok()) << plan.error().message;
      auto got = engine.run(**plan, timings);
      ASSERT_TRUE(got.ok()) << got.error().message;
      EXPECT_EQ(*print_result(*got, Format::csv), *print_result(*want, Format::csv)) << body;
    }
  }
}

// What the outliner fuses with a group is what the operator reduces: its rule is in types of the language, the
// operator's in those of the device.
TEST(Operators, WhatIsFusedWithAGroupHasAnOperator) {
  using outliner::GroupReduction;
  constexpr std::pair<GroupReduction, operators::Reduce> reductions[] = {
      {GroupReduction::len, operators::Reduce::len}, {GroupReduction::sum, operators::Reduce::sum},
      {GroupReduction::avg, operators::Reduce::avg}, {GroupReduction::min, operators::Reduce::min},
      {GroupReduction::max, operators::Reduce::max}, {GroupReduction::distinct, operators::Reduce::distinct}};
  size_t fused = 0;
  for (const auto& [reduction, reduce] : reductions)
    for (size_t v = 0; v < hir::basic_type_count; ++v)
      for (size_t r = 0; r < hir::basic_type_count; ++r) {
        const auto values = static_cast<BasicType>(v), result = static_cast<BasicType>(r);
        if (!outliner::has_operator(reduction, values, result)) continue;
        ++fused;
        EXPECT_TRUE(operators::can_aggregate(reduce, type_on_device(values), type_on_device(result)))
            << static_cast<int>(reduction) << " of " << hir::basic_type_name(values) << " to "
            << hir::basic_type_name(result);
      }
  EXPECT_GT(fused, 50u);
}

}  // namespace
}  // namespace rndn::runtime
