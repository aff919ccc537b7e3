#include "runtime/self_test.h"

#include <cmath>
#include <map>

#include "runtime/engine.h"
#include "runtime/print_result.h"

namespace rndn::runtime {
namespace {

using hir::BasicType;
using reference::Value;

struct Program {
  const char* name;
  const char* text;  // reads table t: a:i32, b:i64, x:f64, y:f64, d:date
};

constexpr Program programs[] = {
    {"filter and sum of products",
     R"(module m { import Builtin.*; def main() : table {
  t:? = @load_table(`t:sym); d:date = check_cast(@column_value(t, `d:sym), date); x:f64 = check_cast(@column_value(t, `x:sym), f64);
  y:f64 = check_cast(@column_value(t, `y:sym), f64); from:? = @geq(d, 1994-01-01:date); before:? = @lt(d, 1996-01-01:date);
  m:? = @and(from, before); p:? = @compress(m, x); q:? = @compress(m, y); z:? = @mul(p, q); s:? = @sum(z);
  c:? = @list(s); r:? = @table(`s:sym, c); return r; } })"},
    {"sum of i64",
     R"(module m { import Builtin.*; def main() : table {
  t:? = @load_table(`t:sym); b:i64 = check_cast(@column_value(t, `b:sym), i64); s:? = @sum(b); c:? = @list(s); r:? = @table(`s:sym, c);
  return r; } })"},
    {"smallest and largest",
     R"(module m { import Builtin.*; def main() : table {
  t:? = @load_table(`t:sym); a:i32 = check_cast(@column_value(t, `a:sym), i32); x:f64 = check_cast(@column_value(t, `x:sym), f64);
  u:? = @min(a); v:? = @max(a); c:? = @list(u, v); r:? = @table((`u,`v):sym, c); return r; } })"},
    {"count of selected rows",
     R"(module m { import Builtin.*; def main() : table {
  t:? = @load_table(`t:sym); a:i32 = check_cast(@column_value(t, `a:sym), i32); m:? = @gt(a, 0:i32); k:? = @compress(m, a);
  n:? = @len(k); c:? = @list(n); r:? = @table(`n:sym, c); return r; } })"},
    {"element-wise arithmetic",
     R"(module m { import Builtin.*; def main() : table {
  t:? = @load_table(`t:sym); a:i32 = check_cast(@column_value(t, `a:sym), i32); x:f64 = check_cast(@column_value(t, `x:sym), f64);
  u:? = @mul(a, x); v:? = @plus(u, 1:i32); w:? = @minus(a, 7:i32); c:? = @list(v, w); r:? = @table((`v,`w):sym, c); return r; } })"},
    {"selected rows",
     R"(module m { import Builtin.*; def main() : table {
  t:? = @load_table(`t:sym); a:i32 = check_cast(@column_value(t, `a:sym), i32); x:f64 = check_cast(@column_value(t, `x:sym), f64);
  m:? = @gt(a, 0:i32); u:? = @compress(m, a); v:? = @compress(m, x); c:? = @list(u, v); r:? = @table((`u,`v):sym, c); return r; } })"},
};
constexpr uint64_t sizes[] = {0, 1, 31, 32, 33, 1023, 1025, 100000};

// Table t of `rows` rows with values that depend on the row alone.
class MadeUpTable final : public reference::Tables {
 public:
  explicit MadeUpTable(uint64_t rows) : rows_(rows) {
    add("a", BasicType::i32, [](uint64_t h) { return static_cast<int32_t>(h % 2001) - 1000; });
    add("b", BasicType::i64, [](uint64_t h) { return static_cast<int64_t>(h >> 3) - (int64_t{1} << 59); });
    add("x", BasicType::f64, [](uint64_t h) { return static_cast<double>(h % 100000) / 100.0; });
    add("y", BasicType::f64, [](uint64_t h) { return static_cast<double>((h >> 20) % 11) / 100.0; });
    add("d", BasicType::date,
        [](uint64_t h) { return static_cast<int32_t>(8035 + (h >> 7) % 2557); });  // 1992-01-01 .. 1998-12-31
  }
  Result<void> open(std::string_view table) const override {
    if (table != "t") return input_error("there is no table `{}`", table);
    return {};
  }
  Result<std::vector<std::string>> column_names(std::string_view) const override {
    return std::vector<std::string>{"a", "b", "x", "y", "d"};
  }
  Result<uint64_t> rows(std::string_view) const override { return rows_; }
  Result<std::shared_ptr<const data::Column>> column(std::string_view, std::string_view column) const override {
    auto at = columns_.find(column);
    if (at == columns_.end()) return input_error("there is no column `{}`", column);
    return at->second;
  }
  Result<std::shared_ptr<const data::Column>> key_column(std::string_view) const override {
    return input_error("table `t` has no key");
  }

 private:
  template <class Make>
  void add(const char* name, BasicType type, Make make) {
    data::Column c;
    c.type = type;
    c.width = data::plain_width(type);
    c.rows = rows_;
    c.data = std::make_shared<data::Bytes>(rows_ * c.width);
    uint64_t salt = columns_.size();
    for (uint64_t i = 0; i < rows_; ++i) {
      uint64_t h = (i + 1) * 0x9e3779b97f4a7c15u + salt;  // splitmix64 (Steele, Lea, Flood 2014)
      h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
      h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
      auto value = make(h ^ (h >> 31));
      std::memcpy(c.data->data() + i * c.width, &value, sizeof value);
    }
    columns_[name] = std::make_shared<const data::Column>(std::move(c));
  }
  uint64_t rows_;
  std::map<std::string, std::shared_ptr<const data::Column>, std::less<>> columns_;
};

// The first difference of two results, or empty.
Result<std::string> difference(const std::vector<Value>& got, const std::vector<Value>& want) {
  if (got.size() != 1 || want.size() != 1) return fmt::format("{} results, expected {}", got.size(), want.size());
  ASSIGN_OR_RETURN(Grid a, to_grid(got[0]));
  ASSIGN_OR_RETURN(Grid b, to_grid(want[0]));
  if (a.types != b.types) return std::string("other column types");
  if (a.rows != b.rows) return fmt::format("{} rows, expected {}", a.rows, b.rows);
  for (size_t k = 0; k < a.columns.size(); ++k)
    for (uint64_t i = 0; i < a.rows; ++i) {
      std::string s = element_text(a.columns[k], i, true), t = element_text(b.columns[k], i, true);
      if (s == t) continue;
      if (a.columns[k].type == BasicType::f64) {
        double u = a.columns[k].as<double>()[i], v = b.columns[k].as<double>()[i];
        if (std::fabs(u - v) <= 1e-12 * std::fmax(std::fabs(u), std::fabs(v))) continue;
      }
      return fmt::format("row {} of `{}` is {}, expected {}", i, a.names[k], s, t);
    }
  return std::string();
}

Result<std::vector<Value>> run_on(device::Device& device, const Compiled& compiled, const SourceManager& sources,
                                  const reference::Tables& tables) {
  Engine engine(device, tables);
  Timings timings;
  ASSIGN_OR_RETURN(auto plan,
                   engine.plan(compiled, sources, {.allow_fallback = false, .measure_kernels = false}, timings));
  return engine.run(*plan, timings);
}

}  // namespace

Result<void> self_test(device::Device& device, device::Device* simulator, std::string& report) {
  size_t failures = 0;
  for (const Program& p : programs) {
    SourceManager sources;
    DiagnosticSink sink;
    Timings timings;
    CompileOptions options;
    options.target = device.info().target;
    FileId file = sources.add(p.name, p.text);
    auto compiled = compile(file, sources, options, sink, timings);
    if (!compiled)
      return Error{Fault::internal, fmt::format("self-test `{}` does not compile: {}{}", p.name,
                                                compiled.error().message, render(sink, sources))};
    if (!compiled->no_gpu_code.empty()) {
      report += fmt::format("skipped: {}: {}\n", p.name, compiled->no_gpu_code);
      continue;
    }
    std::string wrong;
    for (uint64_t n : sizes) {
      MadeUpTable tables(n);
      ASSIGN_OR_RETURN(std::vector<Value> want, reference::run(compiled->program, tables, sources, nullptr));
      for (device::Device* d : {&device, simulator}) {
        if (!d) continue;
        auto got = run_on(*d, *compiled, sources, tables);
        if (!got) {
          if (got.error().fault == Fault::world) return got.error();
          wrong = fmt::format("{} rows on {}: {}", n, d->info().name, got.error().message);
        } else {
          ASSIGN_OR_RETURN(std::string what, difference(*got, want));
          if (!what.empty()) wrong = fmt::format("{} rows on {}: {}", n, d->info().name, what);
        }
      }
      if (!wrong.empty()) break;
    }
    failures += !wrong.empty();
    report += wrong.empty() ? fmt::format("ok: {}\n", p.name) : fmt::format("FAILED: {}: {}\n", p.name, wrong);
  }
  if (failures) return Error{Fault::internal, fmt::format("{} of {} self-tests failed", failures, std::size(programs))};
  return {};
}

}  // namespace rndn::runtime
