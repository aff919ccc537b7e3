// Which orders become GPU.top_lib: what the TPC-H programs write and its relatives; and that every other use of an order keeps all of it.
// That both give the same rows is for tests/runtime/operators_test.cpp, which runs such programs.
#include <gmock/gmock.h>

#include "outliner/explain.h"
#include "tests/outliner/compile.h"

namespace rndn::test::top_test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* load = R"(
    t:? = @load_table(`t:sym);
    v:f64 = check_cast(@column_value(t, `v:sym), f64);
    w:f64 = check_cast(@column_value(t, `w:sym), f64);
    u:? = @load_table(`u:sym);
    other:f64 = check_cast(@column_value(u, `other:sym), f64);
    b:? = @list(v, w);
    o:? = @order(b, (0,1):bool);
    n:? = @len(o);
    p:? = @range(n);
)";

struct Case {
  const char* name;
  const char* text;  // after `load`; the result is `r`
};

std::string outlined(const Case& c, bool tops = true) {
  Compiled compiled;
  compile(compiled, program_text(std::string(load) + c.text + "\nx:? = @list(r); y:? = @table(`r:sym, x); return y;"),
          {.tops = tops});
  EXPECT_EQ(compiled.errors, "") << c.name;
  std::string text = compiled.main();
  for (size_t k = 0; k < compiled.outlined.kernels.size(); ++k) text += compiled.kernel(k);
  return text;
}

constexpr const char* head = "m:? = @lt(p, 10:i64); f:? = @where(m); top:? = @index(o, f);";

TEST(Top, IsFoundInItsForms) {
  const Case whole[] = {
      {"TPC-H", "m:? = @lt(p, 10:i64); f:? = @where(m); top:? = @index(o, f); r:? = @index(v, top);"},
      {"mirrored", "m:? = @gt(10:i64, p); f:? = @where(m); top:? = @index(o, f); r:? = @index(v, top);"},
      {"up to the ninth", "m:? = @leq(p, 9:i32); f:? = @where(m); top:? = @index(o, f); r:? = @index(v, top);"},
      {"up to the ninth, mirrored", "m:? = @geq(9:i64, p); f:? = @where(m); r:? = @index(o, f);"},
      {"compressed", "m:? = @lt(p, 10:i64); r:? = @compress(m, o);"},
      {"copies", "c:? = o; q:? = p; m:? = @lt(q, 10:i64); f:? = @where(m); r:? = @index(c, f);"},
      {"sorted, then cut", "s:? = @index(v, o); m:? = @lt(p, 10:i64); f:? = @where(m); r:? = @index(s, f);"},
      {"sorted and cut by its own length",
       "s:? = @index(v, o); l:? = @len(s); q:? = @range(l); m:? = @lt(q, 10:i64); r:? = @compress(m, s);"},
      {"no more than there are", "m:? = @lt(n, 10:i64); k:? = @select(m, n, 10:i64); r:? = @take(k, o);"},
      {"no more than there are, mirrored",
       "m:? = @leq(10:i64, n); k:? = @select(m, 10:i64, n); top:? = @take(k, o); r:? = @index(v, top);"},
      {"casts",
       "m:? = @lt(p, 10:i64); f:? = @where(m); top:i64 = check_cast(@index(o, f), i64); r:? = @index(v, top);"},
  };
  for (const Case& c : whole) {
    SCOPED_TRACE(c.name);
    const std::string text = outlined(c);
    EXPECT_THAT(text, HasSubstr("o:i64 = @GPU.top_lib(b, (0, 1):bool, 10:i64);"));
    EXPECT_THAT(text, Not(HasSubstr("@where"))) << "the ten rows are all that there are";
    EXPECT_THAT(text, Not(HasSubstr("@lt(")));
    EXPECT_THAT(outlined(c, false), HasSubstr("o:i64 = @order(b, (0, 1):bool);"));
  }
  const Case parts[] = {
      // what selects stays
      {"the largest of two",
       "m:? = @lt(p, 3:i64); f:? = @where(m); a:? = @index(o, f); m2:? = @lt(p, 10:i64); g:? = @where(m2); "
       "c:? = @index(o, g); d:? = @sum(c); r:? = @plus(a, d);"},
      {"take, which pads", "r:? = @take(10:i64, o);"},
      {"compared with one, cut at another",
       "m:? = @leq(n, 9:i64); k:? = @select(m, n, 4:i64); r:? = @take(k, o);"},
      {"the positions themselves", "m:? = @lt(p, 10:i64); r:? = @where(m);"},
  };
  for (const Case& c : parts) {
    SCOPED_TRACE(c.name);
    EXPECT_THAT(outlined(c), HasSubstr("o:i64 = @GPU.top_lib(b, (0, 1):bool, 10:i64);"));
  }
}

TEST(Top, NumbersThatTheRunKnows) {
  Compiled c;
  compile(c, program_text(R"(
    t:? = @load_table(`t:sym);
    v:f64 = check_cast(@column_value(t, `v:sym), f64);
    d:i64 = check_cast(@column_value(t, `d:sym), i64);
    k:? = @max(d);
    o:? = @order(v, 0:bool);
    n:? = @len(o);
    p:? = @range(n);
    m:? = @lt(p, k);
    f:? = @where(m);
    top:? = @index(o, f);
    r:? = @index(v, top);
    return r;)",
                          "f64"));
  ASSERT_EQ(c.errors, "");
  EXPECT_THAT(c.main(), HasSubstr("o:i64 = @GPU.top_lib(v, 0:bool, k);"));
}

TEST(Top, IsNotWhatIsReadElsewhere) {
  const std::string head_and = head;
  const std::pair<const char*, std::string> cases[] = {
      {"sorted as a whole", head_and + "r:? = @index(v, o);"},
      {"a result of its own", head_and + "r:? = o;"},
      {"gathered from", head_and + "z:? = @index(o, p); r:? = z;"},
      {"the last of it", head_and + "r:? = @take(-3:i64, o);"},
      {"the others", head_and + "z:? = @not(m); r:? = @compress(z, o);"},
      {"another vector", "m:? = @lt(p, 10:i64); r:? = @compress(m, v);"},
      {"the length", head_and + "z:? = @plus(n, 1:i64); r:? = @index(top, z);"},
      {"positions", head_and + "z:? = @sum(p); r:? = @plus(top, z);"},
      {"a mask", head_and + "z:? = @sum(m); r:? = @plus(top, z);"},
      {"an index that may be out of range", "s:? = @index(other, o); m:? = @lt(p, 10:i64); r:? = @compress(m, s);"},
      {"an index out of another vector",
       "s:? = @index(p, o); z:? = @index(v, s); m:? = @lt(p, 10:i64); r:? = @compress(m, z);"},
      {"a number per position", "m:? = @lt(p, v); f:? = @where(m); r:? = @index(o, f);"},
      {"two numbers of the run",
       "a:? = @len(b); s:? = @max(v); i:? = @round(s); m:? = @lt(p, i); r:? = @compress(m, o);"},
      {"the larger of its length and a number",
       "m:? = @gt(n, 10:i64); k:? = @select(m, n, 10:i64); r:? = @take(k, o);"},
      {"a negative number of rows", "m:? = @lt(n, -3:i64); k:? = @select(m, n, -3:i64); r:? = @take(k, o);"},
      {"the smaller length elsewhere",
       "m:? = @lt(n, 10:i64); k:? = @select(m, n, 10:i64); z:? = @take(k, o); r:? = @plus(z, k);"},
      {"no first rows", "m:? = @gt(p, 10:i64); f:? = @where(m); r:? = @index(o, f);"},
      {"a number that is made of it", "z:? = @max(o); m:? = @lt(p, z); f:? = @where(m); r:? = @index(o, f);"},
      {"control flow", "if (1:bool) { z:? = @len(o); } " + head_and + "r:? = @index(v, top);"},
  };
  for (const auto& [name, text] : cases) {
    SCOPED_TRACE(name);
    EXPECT_THAT(outlined({name, text.c_str()}), HasSubstr("o:i64 = @order(b, (0, 1):bool);"));
  }
}

TEST(Top, IsExplained) {
  const auto explained = [](const std::string& text) {
    Compiled c;
    compile(c, program_text(std::string(load) + text + "\nx:? = @list(r); y:? = @table(`r:sym, x); return y;"));
    auto made = outliner::explain(c.program, c.sources, {}, {}, c.sink);
    return made ? *made : made.error().message;
  };
  EXPECT_THAT(explained(std::string(head) + "r:? = @index(v, top);"), HasSubstr("top-k: only its first rows are read"));
  EXPECT_THAT(explained(std::string(head) + "\nr:? = @index(v, o);"),
              HasSubstr("no top-k: it is read beyond its first rows (x, line 16)"));
  EXPECT_THAT(explained("r:? = @index(v, o);"), Not(HasSubstr("top-k")));
}

}  // namespace
}  // namespace rndn::test::top_test
