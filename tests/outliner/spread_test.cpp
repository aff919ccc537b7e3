// Which parameters of kernels may be copies of one element.
#include "outliner/spread.h"
#include "tests/outliner/compile.h"

namespace rndn::outliner::spread_test {
namespace {

// Of kernels of columns a, b, c of one table, as if those named had one element.
TEST(Spread, OnlyElementWiseWorkTakesCopies) {
  struct Case {
    const char *body, *result;
    std::vector<std::string_view> single;
    bool may;
  };
  const Case cases[] = {
      {"y:? = @plus(a, b);", "y", {"a"}, true},
      {"n:? = @neg(a); m:? = @mul(n, 3:i64); y:? = @plus(b, m);", "y", {"a"}, true},
      {"n:? = @plus(a, b); y:? = @mul(n, c);", "y", {"a", "b"}, true},
      {"n:? = @lt(a, b); y:? = @compress(n, c);", "y", {"a"}, true},
      {"n:? = @plus(a, b); y:? = @sum(n);", "y", {"a"}, true},
      {"y:? = @neg(a);", "y", {"a"}, false},
      {"n:? = @neg(a); z:? = @plus(n, b); y:? = @list(n, z);", "y", {"a"}, false},
      {"y:? = @plus(a, b);", "y", {"a", "b"}, false},
      {"n:? = @neg(a); s:? = @sum(n); z:? = @plus(n, b); y:? = @list(s, z);", "y", {"a"}, false},
      {"n:? = @lt(b, 3:i64); y:? = @compress(n, a);", "y", {"a"}, false},
      {"n:? = @lt(a, 3:i64); y:? = @compress(n, b);", "y", {"a"}, false},
      {"n:? = @mod(b, 3:i64); y:? = @index(a, n);", "y", {"a"}, false},
      {"r:? = @reverse(a); y:? = @plus(r, b);", "y", {"a"}, false},
  };
  for (const Case& k : cases) {
    SCOPED_TRACE(k.body);
    test::Compiled c;
    std::string text = "t:? = @load_table(`t:sym);\n";
    for (const char* name : {"a", "b", "c"})
      text += fmt::format("{0}:i64 = check_cast(@column_value(t, `{0}:sym), i64);\n", name);
    test::compile(c, test::program_text(fmt::format("{}{}\nreturn {};", text, k.body, k.result), "?"));
    ASSERT_EQ(c.errors, "");
    bool may = true, asked = false;
    for (const Kernel& kernel : c.outlined.kernels) {
      const hir::Program& program = c.outlined.program;
      const hir::Function& f = program.functions[kernel.function];
      std::vector<hir::VariableId> single;
      for (hir::VariableId p : f.parameters)
        if (std::find(k.single.begin(), k.single.end(), program.text(f.variables[p].name)) != k.single.end())
          single.push_back(p);
      asked |= single.size() == k.single.size();
      may &= single.empty() || may_be_spread(program, kernel, c.outlined.shapes, single);
    }
    EXPECT_TRUE(asked) << c.main();
    EXPECT_EQ(may, k.may) << c.main() << c.kernel(0);
  }
}

}  // namespace
}  // namespace rndn::outliner::spread_test
