// Generated kernels as text: the verifier and the vendor's assembler accept them; their interface is as described.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "libraries/base/system/files.h"
#include "libraries/base/system/parallel.h"
#include "tests/codegen/kernel_runner.h"
#include "tests/codegen/ptxas.h"
#include "tests/support/every_case.h"

namespace rndn::test {
namespace {

using codegen::KernelParameter;
using codegen::ParameterRole;

void expect_assembles(const std::string& text) {
  std::string why;
  const std::string ptxas = find_ptxas(why);
  if (ptxas.empty()) GTEST_SKIP() << "skipped: " << why;
  for (const char* target : {"sm_60", "sm_61", "sm_75", "sm_80", "sm_86", "sm_90"})
    EXPECT_EQ(assemble_with_ptxas(ptxas, text, target), "") << target << "\n" << text;
}

std::string query6() {
  auto text = read_file(std::string(RNDN_SOURCE_DIR) + "/tpch/queries/q06.hir");
  EXPECT_TRUE(text.ok());
  return text.ok() ? *text : std::string();
}

TEST(Codegen, QuerySixInterface) {
  Generated g;
  generate(g, query6());
  ASSERT_EQ(g.code.kernels.size(), 1u);
  const codegen::KernelCode& k = g.code.kernels[0];
  EXPECT_EQ(k.name, "main_1");
  EXPECT_EQ(k.block_size, 256u);
  EXPECT_EQ(k.items_per_thread, 2u);
  EXPECT_EQ(k.floor_bits_per_element, 8 * 28u);
  EXPECT_EQ(k.scratch_fixed_bytes, 16u);
  EXPECT_EQ(k.scratch_bytes_per_block, 24u);  // three parts of a sum
  std::vector<std::pair<ParameterRole, uint32_t>> roles;
  for (const KernelParameter& p : k.parameters) roles.emplace_back(p.role, p.ordinal);
  EXPECT_THAT(
      roles, ::testing::ElementsAre(std::pair{ParameterRole::input_data, 0u}, std::pair{ParameterRole::input_size, 0u},
                                    std::pair{ParameterRole::input_data, 1u}, std::pair{ParameterRole::input_data, 2u},
                                    std::pair{ParameterRole::input_data, 3u}, std::pair{ParameterRole::output_data, 0u},
                                    std::pair{ParameterRole::output_size, 0u}, std::pair{ParameterRole::scratch, 0u},
                                    std::pair{ParameterRole::sum_flags, 0u}));
  ASSERT_EQ(g.code.module.functions.size(), 1u);
  EXPECT_EQ(g.code.module.functions[0].parameters.size(), k.parameters.size());
  EXPECT_EQ(g.code.module.functions[0].required_threads[0], 256u);
  EXPECT_THAT(g.text, ::testing::HasSubstr("ld.global.f64"));
  EXPECT_THAT(g.text, ::testing::HasSubstr("ld.global.s32"));
  EXPECT_THAT(g.text, ::testing::Not(::testing::HasSubstr("and.pred")));  // comparisons take each other in
  EXPECT_THAT(g.text, ::testing::Not(::testing::HasSubstr("fma")));
  EXPECT_THAT(g.text, ::testing::Not(::testing::HasSubstr("add.f64")));  // only add.rn: no contraction
}

TEST(Codegen, QuerySixAssembles) {
  Generated g;
  generate(g, query6());
  expect_assembles(g.text);
}

// One program per family of operations and pair of types; tests/codegen/kernel_test.cpp runs them all.
TEST(Codegen, EveryFamilyAssembles) {
  const auto columns = [](const char* x, const char* y) {
    return fmt::format(
        "t:? = @load_table(`t:sym); x:{0} = check_cast(@column_value(t, `x:sym), {0});"
        "y:{1} = check_cast(@column_value(t, `y:sym), {1}); m:bool = check_cast(@column_value(t, `m:sym), bool);\n",
        x, y);
  };
  constexpr const char* binary =
      "a:? = @plus(x, y); b:? = @minus(x, y); c:? = @mul(x, y); d:? = @div(x, y); e:? = @lt(x, y); f:? = @eq(x, y);"
      "g:? = @neg(x); h:? = @round(x); i:? = @signum(x); j:? = @sqrt(x); k:? = @pi(x); l:? = @recip(x);"
      "r:? = @list(a, b, c, d, e, f, g, h, i, j, k, l); return r;";
  constexpr const char* reductions =
      "z:? = @compress(m, x); a:? = @sum(z); b:? = @len(z); c:? = @avg(z); d:? = @min(x); e:? = @max(x); f:? = "
      "@any(m); g:? = @all(m);"
      "r:? = @list(a, b, c, d, e, f, g); return r;";
  constexpr const char* selections =
      "a:? = @compress(m, x); b:? = @where(m); n:? = @lt(x, y); c:? = @compress(n, y); d:? = @sum(c); e:? = @not(m);"
      "r:? = @list(a, b, c, d, e); return r;";
  std::string why;
  const std::string ptxas = find_ptxas(why);
  if (ptxas.empty()) GTEST_SKIP() << "skipped: " << why;
  rndn::test::Sample sample(4);
  for (auto [x, y] : {std::pair{"i32", "i64"}, {"f32", "f64"}, {"bool", "i8"}, {"i16", "char"}})
    for (const char* body : {binary, reductions, selections}) {
      Generated g;
      generate(g, program_text(columns(x, y) + body, "list<?>"));
      ASSERT_EQ(g.code.kernels.size(), 1u);
      for (const char* target : {"sm_61", "sm_86", "sm_90"})
        if (sample.has_next()) {
          EXPECT_EQ(assemble_with_ptxas(ptxas, g.text, target), "") << target << "\n" << g.text;
        }
    }
}

// Kernels that are made one after the other in one module, and side by side in modules of their own; some refused, some with a table in common.
TEST(Codegen, OneThreadAndManyMakeTheSameModule) {
  Generated g;
  generate(g, program_text("t:? = @load_table(`t:sym); x:i64 = check_cast(@column_value(t, `x:sym), i64);"
                           "a:? = @fact(x); s:? = @sum(a); m:? = @gt(a, s); b:? = @compress(m, x); n:? = @len(b);"
                           "c:? = @plus(x, n); d:? = @fact(c); e:? = @max(d); f:? = @minus(d, e);"
                           "r:? = @list(s, b, d, f); return r;",
                           "list<?>"));
  ASSERT_EQ(g.errors, "");
  const size_t kernels = g.outlined.kernels.size();
  ASSERT_GT(kernels, 3u) << g.main();
  for (size_t without = 0; without <= kernels; ++without) {
    codegen::Options options;
    options.refused.resize(kernels);
    if (without < kernels) options.refused[without] = "not wanted";
    const auto one = codegen::generate(g.outlined, options, g.timings);
    ThreadPool pool(3);
    options.pool = &pool;
    const auto many = codegen::generate(g.outlined, options, g.timings);
    ASSERT_TRUE(one.ok() && many.ok());
    EXPECT_EQ(ptx::print(one->module), ptx::print(many->module));
    ASSERT_EQ(one->kernels.size(), many->kernels.size());
    for (size_t k = 0; k < kernels; ++k) {
      EXPECT_EQ(one->kernels[k].name, many->kernels[k].name);
      EXPECT_EQ(one->kernels[k].refused, many->kernels[k].refused);
    }
  }
}

// Whatever the frontend accepts is outlined in every mode; the result is accepted again and has code for all its kernels.
TEST(Codegen, AcceptedProgramsGoThroughInEveryMode) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  for (const char* folder : {"/tests/frontend/accept", "/tpch/queries"})
    for (const auto& entry : fs::recursive_directory_iterator(std::string(RNDN_SOURCE_DIR) + folder))
      if (entry.path().extension() == ".hir") files.push_back(entry.path());
  ASSERT_GT(files.size(), 10u);
  std::sort(files.begin(), files.end());
  size_t programs = 0, kernels = 0;
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    auto text = read_file(file);
    ASSERT_TRUE(text.ok());
    for (outliner::Mode mode : {outliner::Mode::none, outliner::Mode::flow, outliner::Mode::full})
      for (bool text_codes : {false, true}) {
        Compiled c;
        compile(c, *text, {.mode = mode, .text_codes = text_codes});
        if (!c.errors.empty()) continue;  // other dialects, parser tests
        ++programs;
        kernels += c.outlined.kernels.size();
        const std::string printed = print(c.outlined.program, true);
        SourceManager sources;
        DiagnosticSink sink;
        Timings timings;
        hir::run(sources.add("outlined.hir", printed), sources, {}, sink, timings);
        EXPECT_FALSE(sink.has_errors()) << render(sink, sources) << printed;
        auto code = codegen::generate(c.outlined, {}, c.timings);
        EXPECT_TRUE(code.ok()) << code.error().message << printed;
        if (code.ok()) {
          EXPECT_THAT(ptx::verify(code->module), ::testing::IsEmpty()) << printed;
        }
      }
  }
  EXPECT_GT(programs, 20u);
  EXPECT_GT(kernels, 20u);
}

}  // namespace
}  // namespace rndn::test
