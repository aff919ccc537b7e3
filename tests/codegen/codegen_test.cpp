// Generated kernels as text: the verifier and the vendor's assembler accept them; their interface is as described.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libraries/base/files.h"
#include "ptx/codegen/codegen.h"
#include "ptx/parse.h"
#include "tests/codegen/ptxas.h"
#include "tests/outliner/compile.h"

namespace rndn::test {
namespace {

using codegen::KernelParameter;
using codegen::ParameterRole;

struct Generated : Compiled {
  codegen::ModuleCode code;
  std::string text;
};

void generate(Generated& g, std::string program, outliner::Mode mode = outliner::Mode::full) {
  compile(g, std::move(program), mode);
  ASSERT_EQ(g.errors, "");
  auto code = codegen::generate(g.outlined, {}, g.timings);
  ASSERT_TRUE(code.ok()) << code.error().message;
  g.code = *std::move(code);
  EXPECT_THAT(ptx::verify(g.code.module), ::testing::IsEmpty());
  g.text = ptx::print(g.code.module);
}

void expect_assembles(const std::string& text) {
  std::string why;
  const std::string ptxas = find_ptxas(why);
  if (ptxas.empty()) GTEST_SKIP() << "skipped: " << why;
  for (const char* target : {"sm_60", "sm_61", "sm_80", "sm_86", "sm_90"})
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
  EXPECT_EQ(k.items_per_thread, 4u);
  EXPECT_EQ(k.floor_bytes_per_element, 28u);
  EXPECT_EQ(k.scratch_fixed_bytes, 16u);
  EXPECT_EQ(k.scratch_bytes_per_block, 8u);
  std::vector<std::pair<ParameterRole, uint32_t>> roles;
  for (const KernelParameter& p : k.parameters) roles.emplace_back(p.role, p.ordinal);
  EXPECT_THAT(
      roles, ::testing::ElementsAre(std::pair{ParameterRole::input_data, 0u}, std::pair{ParameterRole::input_size, 0u},
                                    std::pair{ParameterRole::input_data, 1u}, std::pair{ParameterRole::input_data, 2u},
                                    std::pair{ParameterRole::input_data, 3u}, std::pair{ParameterRole::output_data, 0u},
                                    std::pair{ParameterRole::output_size, 0u}, std::pair{ParameterRole::scratch, 0u}));
  ASSERT_EQ(g.code.module.functions.size(), 1u);
  EXPECT_EQ(g.code.module.functions[0].parameters.size(), k.parameters.size());
  EXPECT_EQ(g.code.module.functions[0].required_threads[0], 256u);
  // Every load of a full tile is 16 bytes of f64 or 8 bytes of dates, and precedes the first comparison.
  EXPECT_THAT(g.text, ::testing::HasSubstr("ld.global.v2.f64"));
  EXPECT_THAT(g.text, ::testing::HasSubstr("ld.global.v2.s32"));
  EXPECT_THAT(g.text, ::testing::Not(::testing::HasSubstr("fma")));
  EXPECT_THAT(g.text, ::testing::Not(::testing::HasSubstr("add.f64")));  // only add.rn: no contraction
}

TEST(Codegen, QuerySixAssembles) {
  Generated g;
  generate(g, query6());
  expect_assembles(g.text);
}

}  // namespace
}  // namespace rndn::test
