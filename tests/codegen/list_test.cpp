// Kernels over texts, scatters and lists: on the PTX interpreter in several orders of blocks, and assembled on the simulator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/print_result.h"
#include "tests/codegen/handmade.h"
#include "tests/support/every_case.h"

namespace rndn::test::list_test {
namespace {

using hir::BasicType;

constexpr const char* targets[] = {"sm_61", "sm_86", "sm_90"};

// On the PTX interpreter, and on the simulator of one target, which `turn` chooses.
void check_everywhere(const Generated& g, const Columns& columns, size_t turn) {
  check_program(g, columns, {.grid = static_cast<uint32_t>(1 + turn % 4), .seed = turn, .launches = 2});
  SCOPED_TRACE(targets[turn % 3]);
  check_program(g, columns, {.grid = 5, .launches = 2, .target = targets[turn % 3]});
}

// A program over columns of one table, through the outliner.
std::string columns_program(std::initializer_list<std::pair<const char*, BasicType>> columns, std::string_view body,
                            std::string_view results) {
  std::string text = "t:? = @load_table(`t:sym);\n";
  for (auto [name, type] : columns)
    text += fmt::format("{0}:{1} = check_cast(@column_value(t, `{0}:sym), {1});\n", name, basic_type_name(type));
  return program_text(fmt::format("{}{}\nresults:? = @list({});\nreturn results;", text, body, results), "list<?>");
}

// Random positions within `limit`.
std::vector<int64_t> positions(uint64_t n, uint64_t limit, uint64_t seed) {
  Random random(seed);
  std::vector<int64_t> out(n);
  for (int64_t& p : out) p = static_cast<int64_t>(random.next() % std::max<uint64_t>(limit, 1));
  return out;
}
Value as_vector(BasicType type, const std::vector<int64_t>& values) {
  std::vector<std::byte> bytes(values.size() * data::plain_width(type));
  const uint32_t width = data::plain_width(type);
  for (size_t i = 0; i < values.size(); ++i) std::memcpy(&bytes[i * width], &values[i], width);
  return reference::vector_from_bytes(type, values.size(), std::move(bytes));
}

TEST(Texts, ComparedMovedAndSelectedAsCodes) {
  for (BasicType type : {BasicType::sym, BasicType::str}) {
    Generated g;
    generate(g,
             columns_program({{"x", type}, {"y", type}, {"rows", BasicType::i64}},
                             fmt::format("a:? = @eq(x, \"text 3\":str); b:? = @neq(x, y); c:? = @compress(a, y);"
                                         "d:? = @index(y, rows); e:? = @compress(b, d); n:? = @len(c);",
                                         basic_type_name(type)),
                             "a, b, c, e, n"),
             {.text_codes = true});
    ASSERT_EQ(g.outlined.kernels.size(), 1u) << g.main();
    EXPECT_THAT(g.kernel(0), ::testing::Not(::testing::HasSubstr("text 3")));
    for (uint64_t n : {0, 1, 33, 1025, 5000}) {
      Columns columns{{"x", column(type, n, 1)}, {"y", column(type, n, 2)}};
      columns["rows"] = as_vector(BasicType::i64, positions(n, n, 3));
      for (const char* literal : {"literal_1", "literal_2"})
        columns[literal] = reference::vector_of_texts(BasicType::str, {"text 3"});
      check_program(g, columns, {.seed = n});
      if (n == 1025)
        for (const char* target : targets) check_program(g, columns, {.target = target});
    }
  }
}

// --- index_a --------------------------------------------------------------------------------------------------------------------

TEST(Scatters, VectorsAndScalarsOfAllTypes) {
  for (BasicType type :
       {BasicType::boolean, BasicType::character, BasicType::i8, BasicType::i16, BasicType::i32, BasicType::i64,
        BasicType::f32, BasicType::f64, BasicType::sym, BasicType::date, BasicType::dt}) {
    SCOPED_TRACE(basic_type_name(type));
    for (BasicType p : {BasicType::i32, BasicType::i64}) {
      Generated g;
      generate(g, Handmade{.parameters =
                               fmt::format("x:{0}, k:{1}, m:{0}, one:{0}", basic_type_name(type), basic_type_name(p)),
                           .results = fmt::format("{0}, {0}, {1}", basic_type_name(type), basic_type_name(p)),
                           .body = fmt::format("a:{0} = @index_a(x, k, m); b:{0} = @index_a(x, k, one);"
                                               "c:{1} = @plus(k, k); return a, b, c;",
                                               basic_type_name(type), basic_type_name(p)),
                           .geometry = "k",
                           .alike = {"m"},
                           .scalars = {"one"}});
      ASSERT_EQ(g.code.kernels[0].refused, "");
      EXPECT_THAT(g.code.kernels[0].starts_as, ::testing::ElementsAre(0, 0, -1));
      for (uint64_t n : {0, 1, 33, 1025}) {
        const uint64_t wide = 2 * n + 1;
        // Positions without duplicates: any of several writers may win.
        std::vector<int64_t> k(n);
        for (uint64_t i = 0; i < n; ++i) k[i] = static_cast<int64_t>((i * 2 + 1) % wide);
        const Columns columns{{"x", column(type, wide, 4)},
                              {"k", as_vector(p, k)},
                              {"m", column(type, n, 5)},
                              {"one", column(type, 1, 6)}};
        check_program(g, columns, {.launches = 2});
        if (n == 1025 && p == BasicType::i64)
          for (const char* target : targets) check_program(g, columns, {.launches = 2, .target = target});
      }
    }
  }
}

TEST(Scatters, NarrowerValuesAndDuplicatesOfOneScalar) {
  Generated g;
  generate(g, Handmade{.parameters = "x:f64, k:i64, m:i32",
                       .results = "f64, f64",
                       .body = "a:f64 = @index_a(x, k, 7:i16); d:i64 = @mul(k, 0:i64);"
                               "b:f64 = @index_a(x, d, 1:i32); return a, b;",
                       .geometry = "k",
                       .alike = {"m"}});
  ASSERT_EQ(g.code.kernels[0].refused, "");
  for (uint64_t n : {1, 5000})
    check_everywhere(g,
                     {{"x", column(BasicType::f64, 100, 7)},
                      {"k", as_vector(BasicType::i64, positions(n, 100, 8))},
                      {"m", column(BasicType::i32, n, 9)}},
                     n);
}

TEST(Scatters, PositionsOutOfRangeAreReported) {
  Generated g;
  generate(g, Handmade{.parameters = "x:i32, k:i64",
                       .results = "i32",
                       .body = "a:i32 = @index_a(x, k, 7:i32); return a;",
                       .geometry = "k"});
  for (int64_t bad : {int64_t{-1}, int64_t{100}, INT64_MIN, INT64_MAX}) {
    std::vector<int64_t> k = positions(3000, 100, 10);
    k[2900] = bad;
    const KernelRun run =
        run_kernel(g, 0, {{"x", column(BasicType::i32, 100, 11)}, {"k", as_vector(BasicType::i64, k)}}, {});
    EXPECT_EQ(codegen::ErrorWord::of(run.error).code, codegen::RuntimeError::index_out_of_range);
  }
}

// --- Lists ----------------------------------------------------------------------------------------------------------------------

// Cells of the given lengths, cut from `elements` in order.
Value cut(const Value& elements, const std::vector<uint64_t>& lengths) {
  std::vector<Value> cells;
  uint64_t at = 0;
  const uint32_t width = data::plain_width(elements.type);
  for (uint64_t n : lengths) {
    std::vector<std::byte> bytes(n * width);
    if (n) std::memcpy(bytes.data(), elements.bytes->data() + at * width, n * width);
    cells.push_back(reference::vector_from_bytes(elements.type, n, std::move(bytes)));
    at += n;
  }
  return reference::list(std::move(cells));
}

uint64_t total(const std::vector<uint64_t>& lengths) {
  uint64_t n = 0;
  for (uint64_t x : lengths) n += x;
  return n;
}

// Distributions of cell lengths around threads' shares, tiles and blocks' ranges (a tile is 2048 elements and ends).
std::vector<std::vector<uint64_t>> distributions() {
  std::vector<std::vector<uint64_t>> out{{},     {0},    {1},     {7},       {8},          {2047},
                                         {2048}, {2049}, {13000}, {0, 0, 0}, {0, 4500, 0}, {2500, 4100, 1, 0, 3400}};
  out.push_back(std::vector<uint64_t>(4500, 0));  // nothing but ends
  out.push_back(std::vector<uint64_t>(4200, 1));  // one element each
  out.push_back(std::vector<uint64_t>(1100, 4));  // as the items of orders
  std::vector<uint64_t> mixed, ragged{2500};
  Random random(77);
  for (int i = 0; i < 800; ++i) mixed.push_back(random.next() % 7 == 0 ? 0 : random.next() % 20);
  for (int i = 0; i < 2500; ++i) ragged.push_back(random.next() % 3 == 0);
  ragged.push_back(4200);
  for (int i = 0; i < 2300; ++i) ragged.push_back(0);
  ragged.push_back(1);
  out.push_back(mixed);
  out.push_back(ragged);
  return out;
}

// Small whole numbers: every sum is exact, in any order.
Value whole_numbers(BasicType type, uint64_t n, uint64_t seed) {
  Random random(seed);
  std::vector<int64_t> v(n);
  for (int64_t& x : v) x = static_cast<int64_t>(random.next() % 17) - 8;
  if (type == BasicType::boolean)
    for (int64_t& x : v) x = x > -8;
  if (type == BasicType::f64) {
    std::vector<double> d(v.begin(), v.end());
    return reference::vector_of<double>(type, std::span<const double>(d));
  }
  if (type == BasicType::f32) {
    std::vector<float> d(v.begin(), v.end());
    return reference::vector_of<float>(type, std::span<const float>(d));
  }
  return as_vector(type, v);
}

constexpr BasicType reals[] = {BasicType::boolean, BasicType::character, BasicType::i8,  BasicType::i16,
                               BasicType::i32,     BasicType::i64,       BasicType::f32, BasicType::f64};

// Group aggregates as the queries have them: gather by row lists, reduce every cell.
TEST(Lists, AggregatesOfGatheredColumns) {
  Generated g;
  generate(g, Handmade{.parameters = "x:f64, rows:list<i64>, y:i32",
                       .results = "f64, f64, i32, i32, i64, f64, list<f64>",
                       .body = "c:list<f64> = @each_right(@index, x, rows); d:list<i32> = @each_right(@index, y, rows);"
                               "s:list<f64> = @each(@sum, c); a:f64 = @raze(s); t:list<f64> = @each(@avg, c);"
                               "b:f64 = @raze(t); u:list<i32> = @each(@min, d); e:i32 = @raze(u);"
                               "v:list<i32> = @each(@max, d); f:i32 = @raze(v); w:list<i64> = @each(@len, rows);"
                               "h:i64 = @raze(w); z:list<f64> = @each(@max, c); q:f64 = @raze(z);"
                               "return a, b, e, f, h, q, s;",
                       .geometry = "rows"});
  ASSERT_EQ(g.code.kernels[0].refused, "");
  size_t turn = 0;
  rndn::test::Sample sample(3);
  for (const std::vector<uint64_t>& lengths : distributions()) {
    if (!sample.has_next()) continue;
    SCOPED_TRACE(fmt::format("{} cells, {} elements", lengths.size(), total(lengths)));
    const uint64_t n = total(lengths);
    check_everywhere(g,
                     {{"x", whole_numbers(BasicType::f64, 500, 12)},
                      {"y", column(BasicType::i32, 500, 13)},
                      {"rows", cut(as_vector(BasicType::i64, positions(n, 500, 14)), lengths)}},
                     turn++);
  }
}

TEST(Lists, AllReductionsOfAllTypes) {
  for (BasicType type : reals) {
    SCOPED_TRACE(basic_type_name(type));
    const std::string name(basic_type_name(type));
    const bool boolean = type == BasicType::boolean;
    const std::string sum = hir::is_float(type) || type == BasicType::i64 ? name : "i32",
                      avg = type == BasicType::i64 || type == BasicType::f64 ? "f64" : "f32";
    Generated g;
    generate(
        g, Handmade{.parameters = fmt::format("x:list<{}>", name),
                    .results = fmt::format("{1}, {2}, {0}, {0}, i64{3}", name, sum, avg, boolean ? ", bool, bool" : ""),
                    .body = fmt::format(
                        "a1:list<{1}> = @each(@sum, x); a:{1} = @raze(a1); b1:list<{2}> = @each(@avg, x);"
                        "b:{2} = @raze(b1); c1:list<{0}> = @each(@min, x); c:{0} = @raze(c1);"
                        "d1:list<{0}> = @each(@max, x); d:{0} = @raze(d1); e1:list<i64> = @each(@len, x);"
                        "e:i64 = @raze(e1); {3}",
                        name, sum, avg,
                        boolean ? "f1:list<bool> = @each(@any, x); f:bool = @raze(f1);"
                                  "h1:list<bool> = @each(@all, x); h:bool = @raze(h1); return a, b, c, d, e, f, h;"
                                : "return a, b, c, d, e;"),
                    .geometry = "x"});
    ASSERT_EQ(g.code.kernels[0].refused, "");
    size_t turn = index(hir::TypeId(type));
    for (const std::vector<uint64_t>& lengths : distributions())
      if (++turn % rndn::test::in_the_gate(8, 3) == 0) check_everywhere(g, {{"x", cut(whole_numbers(type, total(lengths), 15), lengths)}}, turn);
  }
}

// Element-wise work on cells, its flat result, its result as a list, reductions of a selection within cells.
TEST(Lists, ElementsSelectionsAndLists) {
  Generated g;
  generate(
      g, Handmade{.parameters = "x:list<f64>, y:list<i32>, k:f64",
                  .results = "f64, list<f64>, f64, f64, i64, i64",
                  .body = "p:list<f64> = @each_item(@mul, x, y); q:list<f64> = @each_left(@plus, p, k);"
                          "flat:f64 = @raze(q); m:list<bool> = @each_left(@gt, x, 0:f64);"
                          "c:list<f64> = @each_item(@compress, m, q); s1:list<f64> = @each(@sum, c); s:f64 = @raze(s1);"
                          "a1:list<f64> = @each(@avg, c); a:f64 = @raze(a1); n1:list<i64> = @each(@len, c);"
                          "n:i64 = @raze(n1); cells:i64 = @len(x); return flat, q, s, a, n, cells;",
                  .geometry = "x",
                  .scalars = {"k", "cells"}});
  ASSERT_EQ(g.code.kernels[0].refused, "");
  EXPECT_THAT(g.code.kernels[0].cells_of, ::testing::ElementsAre(-1, 0, -1, -1, -1, -1));
  size_t turn = 1;
  rndn::test::Sample sample(4);
  for (const std::vector<uint64_t>& lengths : distributions()) {
    if (!sample.has_next()) continue;
    SCOPED_TRACE(fmt::format("{} cells, {} elements", lengths.size(), total(lengths)));
    check_everywhere(g,
                     {{"x", cut(whole_numbers(BasicType::f64, total(lengths), 16), lengths)},
                      {"y", cut(whole_numbers(BasicType::i32, total(lengths), 17), lengths)},
                      {"k", reference::vector_of<double>(BasicType::f64, {3})}},
                     turn++);
  }
}

TEST(Lists, StoredSelectionsWithinCells) {
  Generated g;
  generate(g, Handmade{.parameters = "x:list<i32>",
                       .results = "i32",
                       .body = "m:list<bool> = @each_left(@gt, x, 0:i32); c:list<i32> = @each_item(@compress, m, x);"
                               "flat:i32 = @raze(c); return flat;",
                       .geometry = "x"});
  ASSERT_EQ(g.code.kernels[0].refused, "");
  for (const std::vector<uint64_t>& lengths : distributions())
    check_program(g, {{"x", cut(whole_numbers(BasicType::i32, total(lengths), 18), lengths)}}, {.launches = 2});
}

// Elements change places with their mirror images, within cells of all lengths; what is computed from them follows.
TEST(Lists, ReversedCells) {
  for (BasicType type : {BasicType::boolean, BasicType::i16, BasicType::i32, BasicType::f64}) {
    Generated g;
    generate(g, Handmade{.parameters = fmt::format("x:list<{0}>, y:list<{0}>", basic_type_name(type)),
                         .results = fmt::format("list<{0}>, {0}, list<bool>, bool", basic_type_name(type)),
                         .body = fmt::format("r:list<{0}> = @each(@reverse, x); flat:{0} = @raze(r);"
                                             "e:list<bool> = @each_item(@eq, r, y); a:list<bool> = @each(@all, e);"
                                             "same:bool = @raze(a); return r, flat, e, same;",
                                             basic_type_name(type)),
                         .geometry = "x",
                         .alike = {"y"}});
    ASSERT_EQ(g.code.kernels[0].refused, "");
    size_t turn = index(hir::TypeId(type));
    for (const std::vector<uint64_t>& lengths : distributions()) {
      if (++turn % rndn::test::in_the_gate(5, 2)) continue;
      SCOPED_TRACE(fmt::format("{}, {} cells, {} elements", basic_type_name(type), lengths.size(), total(lengths)));
      const Value x = cut(whole_numbers(type, total(lengths), 21), lengths);
      check_everywhere(g, {{"x", x}, {"y", x}}, turn);
    }
  }
}

TEST(Lists, LengthsOnly) {
  Generated g;
  generate(g, Handmade{.parameters = "rows:list<i64>",
                       .results = "i64, list<i64>",
                       .body = "l:list<i64> = @each(@len, rows); n:i64 = @raze(l); return n, l;",
                       .geometry = "rows"});
  ASSERT_EQ(g.code.kernels[0].refused, "");
  EXPECT_EQ(g.code.kernels[0].scratch_fixed_bytes, 0u);
  size_t turn = 2;
  for (const std::vector<uint64_t>& lengths : distributions())
    check_everywhere(g, {{"rows", cut(as_vector(BasicType::i64, positions(total(lengths), 9, 19)), lengths)}}, turn++);
}

// Sums whose bits depend on the order of additions repeat, whichever block is the last one.
TEST(Lists, FloatSumsRepeat) {
  Generated g;
  generate(g, Handmade{.parameters = "x:f64, rows:list<i64>",
                       .results = "f64",
                       .body = "c:list<f64> = @each_right(@index, x, rows); s1:list<f64> = @each(@sum, c);"
                               "s:f64 = @raze(s1); return s;",
                       .geometry = "rows"});
  const std::vector<uint64_t> lengths{9000, 3, 0, 12000, 5000};
  Columns columns{{"x", column(BasicType::f64, 3000, 20, Values::tame)}};
  std::vector<double> scaled(3000);
  for (size_t i = 0; i < scaled.size(); ++i) scaled[i] = columns["x"].as<double>()[i] / 3;
  columns["x"] = reference::vector_of<double>(BasicType::f64, std::span<const double>(scaled));
  columns["rows"] = cut(as_vector(BasicType::i64, positions(total(lengths), 3000, 21)), lengths);
  const KernelRun first = run_kernel(g, 0, columns, {.grid = 5});
  for (uint64_t seed : {1, 2, 3, 4}) {
    const KernelRun again = run_kernel(g, 0, columns, {.grid = 5, .seed = seed, .launches = 2});
    EXPECT_EQ(std::memcmp(first.results[0].bytes->data(), again.results[0].bytes->data(), lengths.size() * 8), 0);
  }
  for (const char* target : targets) {
    const KernelRun machine = run_kernel(g, 0, columns, {.grid = 5, .target = target});
    ASSERT_EQ(machine.results.size(), 1u);
    EXPECT_EQ(std::memcmp(first.results[0].bytes->data(), machine.results[0].bytes->data(), lengths.size() * 8), 0);
  }
}

// Lists of cells of several types as the outliner makes them: the outlined program gives what the program gives, and
// each of its kernels what the reference interpreter says, on what that gives for everything else.
TEST(Lists, CellsOfSeveralTypes) {
  const std::string text = program_text(R"(
    k:i64 = @range(83:i64); a:i64 = @mul(k, 7919:i64); g:i64 = @mod(a, 9:i64); v:i64 = @mod(a, 13:i64);
    w:f64 = @mul(v, 0.5:f64); b:bool = @gt(v, 5:i64);
    d:? = @group(g); rows:list<i64> = @values(d);
    p:list<i64> = @each_right(@index, v, rows); q:list<f64> = @each_right(@index, w, rows);
    t:list<bool> = @each_right(@index, b, rows);
    m:? = @append(p, q); n:? = @append(t, m); f:? = @flip(n); r:? = @replicate(3:i64, f);
    whole:? = @each_left(@append, p, m); counts:? = @each(@len, whole); c:i64 = @raze(counts);
    any:? = @each(@any, t); o:? = @each_item(@order, q, any);
    return n, r, whole, c, o;)", "?, ?, ?, ?, ?");
  Generated g;
  generate(g, text);
  ASSERT_TRUE(g.outlined.flattened);
  EXPECT_THAT(g.main(), ::testing::HasSubstr("@GPU.pick("));
  ASSERT_GT(g.outlined.kernels.size(), 5u);
  const NoTables tables;
  const auto given = reference::run(g.program, tables, g.sources, nullptr),
             got = reference::run(g.outlined.program, tables, g.sources, nullptr);
  ASSERT_TRUE(given.ok() && got.ok());
  EXPECT_EQ(*runtime::print_result(*got, runtime::Format::csv), *runtime::print_result(*given, runtime::Format::csv));
  // The same program, with everything in main as results.
  hir::Program all = g.outlined.program;
  hir::Function& main = all.functions[all.main];
  std::vector<std::string> names;
  hir::Statement& ret = main.statements[main.blocks[main.body].statements.back()];
  ret.results.clear();
  main.result_types.clear();
  for (hir::StatementId id : main.blocks[main.body].statements)
    for (const hir::Target& target : main.statements[id].targets) {
      const hir::Variable& variable = main.variables[target.variable_id()];
      names.emplace_back(all.text(variable.name));
      ret.results.push_back({.kind = hir::Operand::variable, .id = target.id, .name = variable.name});
      main.result_types.push_back(variable.type);
    }
  const auto values = reference::run(all, tables, g.sources, nullptr);
  ASSERT_TRUE(values.ok());
  Columns columns;
  for (size_t k = 0; k < names.size(); ++k) columns[names[k]] = (*values)[k];
  for (uint64_t seed : {1, 2}) check_program(g, columns, {.grid = 3, .seed = seed, .launches = 2});
  for (const char* target : targets) check_program(g, columns, {.grid = 5, .target = target});
}

// Whoever reads the elements: a reduction, one that needs only their number, nobody.
TEST(Lists, RowsOutOfRangeAreReported) {
  for (const auto& [reduced, type] :
       {std::pair{"@each(@sum, c)", "f64"}, {"@each(@len, c)", "i64"}, {"@each(@len, rows)", "i64"}}) {
    SCOPED_TRACE(reduced);
    Generated g;
    generate(g, Handmade{.parameters = "x:f64, rows:list<i64>",
                         .results = type,
                         .body = fmt::format("c:list<f64> = @each_right(@index, x, rows); s1:list<{0}> = {1};"
                                             "s:{0} = @raze(s1); return s;",
                                             type, reduced),
                         .geometry = "rows"});
    ASSERT_EQ(g.code.kernels[0].refused, "");
    for (const std::vector<uint64_t>& lengths : {std::vector<uint64_t>{9000}, std::vector<uint64_t>(3000, 3)})
      for (int64_t bad : {int64_t{-1}, int64_t{499}, int64_t{500}}) {
        std::vector<int64_t> rows = positions(9000, 500, 22);
        rows[8000] = bad;
        const KernelRun run = run_kernel(
            g, 0, {{"x", column(BasicType::f64, 500, 23)}, {"rows", cut(as_vector(BasicType::i64, rows), lengths)}},
            {});
        EXPECT_EQ(codegen::ErrorWord::of(run.error).code,
                  bad == 499 ? codegen::RuntimeError::none : codegen::RuntimeError::index_out_of_range);
      }
  }
}

}  // namespace
}  // namespace rndn::test::list_test
