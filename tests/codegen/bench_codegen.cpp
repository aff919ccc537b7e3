// Speed of generated kernels on a GPU (or, for a look at the counts, the simulator).
//
//   bench_codegen [--device cuda|sim] [--elements N] [--repeat R] [--only TEXT] [--driver] [--print] [--in-flight BYTES]
//   bench_codegen --compile [--until-ptx] [--repeat R] FILE.hir...
//
// Per case a line: device time of one launch (median of R after two warm-ups), GB/s of what must move at least, its part of the H200's copy
// bandwidth (4.28 TB/s, read plus written), registers and instructions. --driver: the same PTX compiled by the driver, beside ours. --print:
// the PTX instead.
// --in-flight: codegen::Options::bytes_in_flight. --compile: microseconds of the compiler's first stages within a whole compilation, per program;
// --until-ptx: without the assembler, for counting instructions.
// N: elements of the large cases (default 2^26). Data comes from a fixed seed.
#include <algorithm>
#include <cstdio>

#include "libraries/base/system/files.h"
#include "libraries/base/errors/guarded_main.h"
#include "runtime/compiler/compile.h"
#include "runtime/cuda/cuda_device.h"
#include "tests/codegen/handmade.h"

namespace rndn::test {
namespace {

struct Options {
  std::string only;
  bool simulated = false, driver = false, print = false;
  uint64_t elements = uint64_t{1} << 26;
  int repeat = 10;
  uint32_t in_flight = 0;  // 0: the default
  bool compile = false, until_ptx = false;
  std::vector<std::string> files;
};

// What a parameter holds. rows: positions within `limit`; for lists the offsets too.
struct Column {
  std::string name;
  std::vector<std::byte> bytes;
  uint64_t size = 0;              // of a list: cells
  std::vector<uint64_t> offsets;  // of a list
};

template <class T>
Column make_column(std::string name, uint64_t n, T (*element)(uint64_t, uint64_t)) {
  Column c{std::move(name), std::vector<std::byte>(n * sizeof(T)), n, {}};
  Random random(n);
  for (uint64_t i = 0; i < n; ++i) {
    const T v = element(i, random.next() >> 11);
    std::memcpy(&c.bytes[i * sizeof(T)], &v, sizeof(T));
  }
  return c;
}

Column uniform(std::string name, uint64_t n) {
  return make_column<double>(std::move(name), n, [](uint64_t, uint64_t r) { return static_cast<double>(r) * 0x1p-53; });
}

template <class T>
T or_else(const Result<T>& result, T otherwise) {
  return result.ok() ? *result : otherwise;
}

struct Bench {
  const Options& options;
  device::Device& device;
  uint32_t blocks = 0;

  // bytes: that must move.
  void run(const std::string& name, Generated& g, const std::vector<Column>& columns, uint64_t elements,
           uint64_t capacity, uint64_t bytes) {
    if (name.find(options.only) == std::string::npos) return;
    if (options.in_flight) {
      auto code = codegen::generate(g.outlined, {.bytes_in_flight = options.in_flight}, g.timings);
      if (code.ok()) g.code = *std::move(code);
      g.text = ptx::print(g.code.module);
    }
    if (options.print) {
      std::printf("// %s\n%s\n", name.c_str(), g.text.c_str());
      return;
    }
    const codegen::KernelCode& code = g.code.kernels[0];
    if (!code.refused.empty()) {
      std::printf("%-28s %s\n", name.c_str(), code.refused.c_str());
      return;
    }
    assembler::Options assemble;
    assemble.target = isa::find_target(device.info().target);
    Timings timings;
    auto assembled = assembler::assemble(g.code.module, assemble, timings);
    if (!assembled.ok()) {
      std::printf("%-28s %s\n", name.c_str(), assembled.error().message.c_str());
      return;
    }
    const auto& report = assembled->kernels[0];
    std::printf("%-28s", name.c_str());
    auto module = device.load_module(assembled->cubin);
    if (module.ok()) time(*module, g, columns, elements, capacity, bytes);
    std::printf("  %3u registers %5u instructions", report.registers, report.instructions);
    if (options.driver) {
      auto theirs = device.load_ptx(g.text, 3);
      std::printf(" | driver");
      if (theirs.ok()) time(*theirs, g, columns, elements, capacity, bytes);
    }
    std::printf("\n");
    std::fflush(stdout);
  }

 private:
  void time(device::ModuleHandle module, const Generated& g, const std::vector<Column>& columns, uint64_t elements,
            uint64_t capacity, uint64_t bytes) {
    const codegen::KernelCode& code = g.code.kernels[0];
    const hir::Function& function = g.outlined.program.functions[g.outlined.kernels[0].function];
    auto kernel = device.find_kernel(module, code.name);
    if (!kernel.ok()) return;
    const uint32_t per = or_else(device.blocks_per_multiprocessor(*kernel, code.block_size, 0), 1u);
    const uint64_t tile = uint64_t{code.block_size} * code.items_per_thread;
    const uint32_t grid = static_cast<uint32_t>(std::min<uint64_t>(
        uint64_t{device.info().multiprocessors} * per, std::max<uint64_t>((elements + tile - 1) / tile, 1)));
    std::vector<uint64_t> arguments, owned;
    const auto allocate = [&](uint64_t size) {
      owned.push_back(*device.allocate(std::max<uint64_t>(size, 256)));
      return owned.back();
    };
    const auto put = [&](const void* from, uint64_t size) {
      const uint64_t at = allocate(size);
      if (size) (void)device.copy_to_device(at, from, size);
      return at;
    };
    for (const codegen::KernelParameter& p : code.parameters) {
      const Column* c = nullptr;
      if (p.role <= codegen::ParameterRole::input_offsets)
        for (const Column& x : columns)
          if (x.name == g.outlined.program.text(function.variables[function.parameters[p.ordinal]].name)) c = &x;
      switch (p.role) {
        case codegen::ParameterRole::input_data: arguments.push_back(put(c->bytes.data(), c->bytes.size())); break;
        case codegen::ParameterRole::input_size: arguments.push_back(put(&c->size, 8)); break;
        case codegen::ParameterRole::input_offsets:
          arguments.push_back(put(c->offsets.data(), c->offsets.size() * 8));
          break;
        case codegen::ParameterRole::output_data: arguments.push_back(allocate(capacity * 8)); break;
        case codegen::ParameterRole::scratch: {
          const uint64_t size = codegen::scratch_bytes(code, elements, grid);
          arguments.push_back(allocate(size));
          (void)device.fill(arguments.back(), 0, size);
          break;
        }
        default:
          arguments.push_back(allocate(256));
          (void)device.fill(arguments.back(), 0, 256);
          break;
      }
    }
    std::vector<uint64_t> times;
    for (int k = 0; k < options.repeat + 2; ++k) {
      auto from = device.record_mark();
      auto launched =
          device.launch(*kernel, {grid, 1, 1}, {code.block_size, 1, 1}, 0, std::as_bytes(std::span(arguments)));
      auto to = device.record_mark();
      if (launched.ok()) launched = device.synchronize();
      if (!launched.ok()) {
        std::printf(" %s\n", launched.error().message.c_str());
        return;
      }
      if (k >= 2) times.push_back(or_else(device.elapsed_ns(*from, *to), uint64_t{0}));
    }
    std::sort(times.begin(), times.end());
    const double ns = static_cast<double>(times[times.size() / 2]);
    std::printf(" %9.1f us %7.0f GB/s %5.1f%%", ns / 1e3, static_cast<double>(bytes) / ns,
                static_cast<double>(bytes) / ns / 42.80);
    for (uint64_t at : owned) (void)device.free(at);
  }
};

std::string source(const std::string& columns, const std::string& body, const std::string& results) {
  return program_text(
      "t:? = @load_table(`t:sym);\n" + columns + body + "results:? = @list(" + results + ");\nreturn results;",
      "list<?>");
}
std::string f64_column(const std::string& name) {
  return fmt::format("{0}:f64 = check_cast(@column_value(t, `{0}:sym), f64);\n", name);
}
std::string i64_column(const std::string& name) {
  return fmt::format("{0}:i64 = check_cast(@column_value(t, `{0}:sym), i64);\n", name);
}

void run_all(const Options& options, device::Device& device) {
  Bench bench{options, device};
  const uint64_t n = options.elements;
  {
    Generated g;
    generate(g, source(f64_column("x") + f64_column("y") + f64_column("z"),
                       "m:? = @lt(x, 0.5:f64); p:? = @mul(y, z); q:? = @compress(m, p); s:? = @sum(q);", "s"));
    const std::vector<Column> columns{uniform("x", n), uniform("y", n), uniform("z", n)};
    bench.run("filter-map-reduce", g, columns, n, 1, 24 * n);
    for (uint64_t small : {300, 10000, 100000})
      bench.run(fmt::format("filter-map-reduce {}", small), g,
                {uniform("x", small), uniform("y", small), uniform("z", small)}, small, 1, 24 * small);
  }
  {
    Generated g;
    generate(g, source(f64_column("x") + f64_column("y"), "m:? = @lt(x, 0.5:f64); q:? = @compress(m, y);", "q"));
    bench.run("compress f64 50%", g, {uniform("x", n), uniform("y", n)}, n, n, 20 * n);
    Generated one;
    generate(one, source(f64_column("x"), "m:? = @lt(x, 0.5:f64); q:? = @compress(m, x);", "q"));
    bench.run("compress f64 by itself 50%", one, {uniform("x", n)}, n, n, 12 * n);
    Generated where;
    generate(where, source(f64_column("x"), "m:? = @lt(x, 0.1:f64); q:? = @where(m);", "q"));
    bench.run("where 10%", where, {uniform("x", n)}, n, n, 8 * n + n / 10 * 8);
  }
  {
    Generated g;
    generate(g, source(f64_column("x") + i64_column("r") + i64_column("k"),
                       "a:? = @index(k, r); b:? = @index(x, a); s:? = @sum(b);", "s"));
    const uint64_t rows = 6'000'000;
    const auto local = [](uint64_t i, uint64_t r) { return static_cast<int64_t>(i / 4 + r % 4) % 1'000'000; };
    Column r = make_column<int64_t>("r", rows, +local),
           k = make_column<int64_t>(
               "k", 1'000'000, +[](uint64_t, uint64_t v) { return static_cast<int64_t>(v % 1'000'000); });
    bench.run("gather of gather", g, {uniform("x", 1'000'000), r, k}, rows, 1, 8 * rows + 16 * 1'000'000);
  }
  const uint64_t items = std::min<uint64_t>(6'000'000, n);
  // Group 0..3 as in query 1: rows ascending within a group.
  {
    Column rows{"rows", std::vector<std::byte>(items * 8), 4, {0}};
    std::vector<std::vector<int64_t>> cells(4);
    Random random(5);
    for (uint64_t i = 0; i < items; ++i) cells[(random.next() >> 20) % 4].push_back(static_cast<int64_t>(i));
    uint64_t at = 0;
    for (const auto& cell : cells) {
      std::memcpy(&rows.bytes[at * 8], cell.data(), cell.size() * 8);
      at += cell.size();
      rows.offsets.push_back(at);
    }
    std::string parameters = "rows:list<i64>", results, body, returned;
    std::vector<Column> columns{rows};
    for (const char* name : {"a", "b", "c", "d", "e"}) {
      parameters += fmt::format(", {}:f64", name);
      body += fmt::format(
          "c{0}:list<f64> = @each_right(@index, {0}, rows); e{0}:list<f64> = @each(@sum, c{0});"
          "s{0}:f64 = @raze(e{0});",
          name);
      results += "f64, ";
      returned += fmt::format("s{}, ", name);
      columns.push_back(uniform(name, items));
    }
    body += "el:list<i64> = @each(@len, rows); l:i64 = @raze(el); return " + returned + "l;";
    Generated g;
    generate(g, Handmade{.parameters = parameters, .results = results + "i64", .body = body, .geometry = "rows"});
    bench.run("cells: query 1", g, columns, items, 8, items * 48);
    Generated lone;
    generate(lone, Handmade{.parameters = "rows:list<i64>, a:f64",
                            .results = "f64",
                            .body = "c:list<f64> = @each_right(@index, a, rows); e:list<f64> = @each(@sum, c);"
                                    "s:f64 = @raze(e); return s;",
                            .geometry = "rows"});
    bench.run("cells: 4 cells, one sum", lone, columns, items, 8, items * 16);
    Column many = rows;
    many.size = items / 4;
    many.offsets = {0};
    for (uint64_t c = 0; c < many.size; ++c) many.offsets.push_back((c + 1) * 4);
    for (uint64_t i = 0; i < items; ++i) std::memcpy(&many.bytes[i * 8], &i, 8);
    bench.run("cells: query 18", lone, {many, columns[1]}, items + many.size, many.size, items * 16 + many.size * 16);
    Generated lengths;
    generate(lengths, Handmade{.parameters = "rows:list<i64>",
                               .results = "i64",
                               .body = "e:list<i64> = @each(@len, rows); s:i64 = @raze(e); return s;",
                               .geometry = "rows"});
    bench.run("cells: lengths", lengths, {many}, many.size, many.size, many.size * 16);
  }
}

// The whole compiler as the product calls it, so that each stage starts with the caches that the one before leaves behind.
int compile_files(const Options& options) {
  constexpr std::pair<const char*, Phase> columns[] = {
      {"frontend", Phase::frontend}, {"outliner", Phase::outliner}, {"PTX", Phase::ptx}};
  std::printf("%-40s %8s %12s %12s %12s\n", "us, medians", "kernels", "frontend", "outliner", "PTX");
  double all[std::size(columns)] = {}, worst = 0;
  assembler::Workspace workspace;
  for (const std::string& path : options.files) {
    auto text = read_file(path);
    if (!text.ok()) {
      std::fprintf(stderr, "%s\n", text.error().message.c_str());
      return 1;
    }
    runtime::CompileOptions to{.target = "sm_90", .workspace = &workspace};
    if (options.until_ptx) to.until = runtime::Stage::ptx;
    std::vector<double> runs[std::size(columns)];
    size_t kernels = 0;
    for (int k = 0; k < options.repeat; ++k) {
      SourceManager sources;
      DiagnosticSink sink;
      Timings timings;
      const auto compiled = runtime::compile(sources.add(path, *text), sources, to, sink, timings);
      if (!compiled.ok()) {
        std::fprintf(stderr, "%s%s\n", render(sink, sources).c_str(), compiled.error().message.c_str());
        return 1;
      }
      kernels = compiled->outlined.kernels.size();
      for (size_t c = 0; c < std::size(columns); ++c)
        runs[c].push_back(static_cast<double>(timings.exclusive_ns(columns[c].second)) / 1e3);
    }
    double median[std::size(columns)];
    for (size_t c = 0; c < std::size(columns); ++c) {
      std::sort(runs[c].begin(), runs[c].end());
      all[c] += median[c] = runs[c][runs[c].size() / 2];
    }
    std::printf("%-40s %8zu %12.0f %12.0f %12.0f\n", path.c_str(), kernels, median[0], median[1], median[2]);
    worst = std::max(worst, median[1] + median[2]);
  }
  std::printf("%-40s %8s %12.0f %12.0f %12.0f\nworst sum of outliner and PTX %.0f\n", "all", "", all[0], all[1], all[2],
              worst);
  return 0;
}

}  // namespace
}  // namespace rndn::test

static int bench_main(int argc, char** argv) {
  using namespace rndn;
  test::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view a = argv[i];
    const auto value = [&] { return i + 1 < argc ? std::string(argv[++i]) : std::string(); };
    if (a == "--device") {
      options.simulated = value() == "sim";
    } else if (a == "--elements") {
      options.elements = std::strtoull(value().c_str(), nullptr, 10);
    } else if (a == "--repeat") {
      options.repeat = std::max(1, std::atoi(value().c_str()));
    } else if (a == "--only") {
      options.only = value();
    } else if (a == "--driver") {
      options.driver = true;
    } else if (a == "--print") {
      options.print = true;
    } else if (a == "--in-flight") {
      options.in_flight = static_cast<uint32_t>(std::strtoul(value().c_str(), nullptr, 10));
    } else if (a == "--compile") {
      options.compile = true;
    } else if (a == "--until-ptx") {
      options.until_ptx = true;
    } else if (!a.starts_with("-")) {
      options.files.emplace_back(a);
    } else {
      std::fprintf(stderr,
                   "usage: bench_codegen [--device cuda|sim] [--elements N] [--repeat R] [--only TEXT] "
                   "[--driver] [--print] [--in-flight BYTES]\n       bench_codegen --compile [--until-ptx] [--repeat "
                   "R] FILE.hir...\n");
      return 2;
    }
  }
  if (options.compile) return test::compile_files(options);
  auto preparation = options.simulated ? nullptr : cuda::prepare(0);
  auto device = options.simulated ? runtime::open_simulator("sm_90") : cuda::open(*preparation);
  if (!device.ok()) {
    std::fprintf(stderr, "%s\n", device.error().message.c_str());
    return 3;
  }
  test::run_all(options, **device);
  return 0;
}

int main(int argc, char** argv) { return rndn::guarded_main(bench_main, argc, argv); }
