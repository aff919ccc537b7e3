// Columns of many texts through the engine, against the reference interpreter, on three targets:
// compared with literals and with each other, joined, grouped, ordered, appended, cut and searched.
// Repeats read no text on the host. The texts are what comparisons may get wrong: empty ones, long
// ones, equal first bytes and words, bytes above 127, missing ones.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "runtime/engine.h"
#include "runtime/print_result.h"
#include "runtime/simulator/simulator_device.h"

namespace rndn::runtime {
namespace {

using hir::BasicType;

std::string some_text(std::mt19937_64& random) {
  std::string text;
  switch (random() % 8) {
    case 0: return text;
    case 1: text = "equal to the eighth"; break;
    case 2: text = std::string(random() % 3 + 1, '\xff'); break;
    case 3: text = std::string(random() % 60, 'x'); break;
    case 4: text = "abcdefgh"; break;
    default: break;
  }
  for (uint64_t n = random() % 12; n > 0; --n) text += static_cast<char>("ab\x01\x7f\x80\xff z"[random() % 8]);
  return text;
}

// Table `t`: a:sym and b:sym are different columns of many texts that have some in common, few:sym
// is a dictionary with texts of both, c:sym has many texts of ASCII, k:i32 numbers.
class Texts final : public reference::Tables {
 public:
  explicit Texts(uint64_t rows) : rows_(rows) {
    std::mt19937_64 random(rows + 7);
    std::vector<std::string> a, b;
    for (uint64_t i = 0; i < rows; ++i) a.push_back(some_text(random));
    for (uint64_t i = 0; i < rows; ++i) b.push_back(random() % 3 ? some_text(random) : a[random() % rows]);
    add("a", texts(a, true));
    add("b", texts(b, false));
    for (std::string& text : b)
      for (char& byte : text) byte = static_cast<char>(byte & 0x7f);
    add("c", texts(b, false));
    data::Column few = data::make_column(BasicType::sym, rows, data::Encoding::dictionary, 1);
    few.dictionary->values = {"abcdefgh", "", "\xff", "nowhere"};
    for (uint64_t i = 0; i < rows; ++i) (*few.data)[i] = static_cast<std::byte>(random() % 4);
    add("few", std::move(few));
    data::Column k = data::make_column(BasicType::i32, rows);
    for (uint64_t i = 0; i < rows; ++i) {
      const auto x = static_cast<int32_t>(random() % 10);
      std::memcpy(k.data->data() + 4 * i, &x, 4);
    }
    add("k", std::move(k));
  }
  Result<void> open(std::string_view) const override { return {}; }
  Result<std::vector<std::string>> column_names(std::string_view) const override { return std::vector<std::string>{}; }
  Result<uint64_t> rows(std::string_view) const override { return rows_; }
  Result<std::shared_ptr<const data::Column>> column(std::string_view, std::string_view name) const override {
    auto at = columns_.find(name);
    if (at == columns_.end()) return input_error("table `t` has no column `{}`", name);
    return at->second;
  }
  Result<std::shared_ptr<const data::Column>> key_column(std::string_view) const override {
    return input_error("table `t` has no key");
  }

 private:
  // With missing ones, every seventh is.
  data::Column texts(const std::vector<std::string>& of, bool with_missing) const {
    data::Column c = data::make_column(BasicType::sym, rows_, data::Encoding::text);
    std::string pad;
    std::string valid(rows_, '\1');
    for (uint64_t i = 0; i < rows_; ++i) {
      const bool missing = with_missing && i % 7 == 3;
      const uint64_t handle = pad.size() << 24 | (missing ? 0 : of[i].size());
      std::memcpy(c.data->data() + 8 * i, &handle, 8);
      if (missing) valid[i] = 0;
      if (!missing) pad += of[i];
    }
    c.pad = std::make_shared<data::Bytes>(data::Bytes::of(std::move(pad)));
    if (with_missing) c.validity = std::make_shared<data::Bytes>(data::Bytes::of(std::move(valid)));
    return c;
  }
  void add(const std::string& name, data::Column column) {
    data::compute_statistics(column);
    columns_[name] = std::make_shared<const data::Column>(std::move(column));
  }
  uint64_t rows_;
  std::map<std::string, std::shared_ptr<const data::Column>, std::less<>> columns_;
};

struct TextProgram {
  const char* name;
  const char* text;     // statements after the columns are there
  const char* columns;  // of the result
  bool host = false;  // small domains, and texts that are not ASCII in another case, are the host's
};

constexpr TextProgram text_programs[] = {
    {"less_than_literals",
     "r1:? = @lt(a, `\"abcdefgh \":sym); r2:? = @leq(a, `\"abcdefgh\":sym);"
     "r3:? = @lt(a, `\"\":sym); r4:? = @leq(a, `\"\":sym); r5:? = @lt(a, `\"zzz\":sym);",
     "r1, r2, r3, r4, r5"},
    {"greater_than_literals",
     "r1:? = @gt(a, `\"nowhere at all\":sym); r2:? = @geq(a, `\"xxxxxxxxx\":sym);"
     "r3:? = @gt(a, `\" \":sym); r4:? = @geq(few, `\"b\":sym);",
     "r1, r2, r3, r4"},
    {"between_literals",
     "l:? = @geq(a, `\"abcd\":sym); h:? = @lt(a, `\"b\":sym); m:? = @and(l, h);"
     "r1:? = @compress(m, a); r2:? = @compress(m, k);",
     "r1, r2"},
    {"equal_to_literals",
     "r1:? = @eq(a, `\"abcdefgh\":sym); r2:? = @neq(a, `\"nowhere at all\":sym);"
     "r3:? = @eq(a, `\"\":sym);",
     "r1, r2, r3"},
    {"columns_with_each_other",
     "r1:? = @lt(a, b); r2:? = @geq(a, b); r3:? = @eq(a, b); r4:? = @neq(b, few);"
     "r5:? = @leq(few, a);",
     "r1, r2, r3, r4, r5"},
    {"columns_and_a_literal",
     "r1:? = @lt(a, b); l:? = @gt(b, `\"m\":sym); r2:? = @and(r1, l); r3:? = @lt(a, `\"m\":sym);", "r1, r2, r3"},
    {"joined",
     "l:? = @lt(k, 2:i32); x:? = @compress(l, a); h:? = @lt(k, 3:i32); y:? = @compress(h, b);"
     "p:? = @join_index(@eq, x, y); r1:? = @index(p, 0:i64); r2:? = @index(p, 1:i64);"
     "r3:? = @index(x, r1);",
     "r1, r2, r3"},
    {"members",
     "r1:? = @member(a, b); r2:? = @member(b, a); r3:? = @member(few, a);"
     "r4:? = @member(a, (`\"abcdefgh\",`\"\",`\"no\"):sym); r5:? = @index_of(a, b);",
     "r1, r2, r3, r4, r5"},
    {"appended", "x:? = @append(a, b); y:? = @append(few, a); r1:? = @append(x, few); r2:? = @append(y, b);", "r1, r2"},
    {"distinct_of_both", "s:? = @append(a, b); u:? = @unique(s); r1:? = @index(s, u); r2:? = @like(r1, \"%x%a%\":str);",
     "r1, r2"},
    {"grouped",
     "g:? = @group(b); w:? = @keys(g); v:? = @values(g); e:? = @index(b, w);"
     "c:? = @each_right(@index, k, v); d:? = @each(@sum, c); s:? = @raze(d);"
     "o:? = @order(e, 0:bool); r1:? = @index(e, o); r2:? = @index(s, o);",
     "r1, r2"},
    {"ordered",
     "c:? = @list(few, a, b); o:? = @order(c, (0,1,0):bool); r1:? = @index(a, o);"
     "r2:? = @index(b, o); r3:? = @index(few, o);",
     "r1, r2, r3, o"},
    {"cut",
     "s:? = @sub_string(a, (2,5):i32); r1:? = @eq(s, `\"bcdef\":sym); r2:? = @lt(s, b);"
     "o:? = @order(s, 1:bool); r3:? = @index(s, o); r4:? = @member(s, b);",
     "r1, r2, r3, r4"},
    {"equal_and_carried",
     "m:? = @eq(a, `\"abcdefgh\":sym); r1:? = @compress(m, a); r2:? = @compress(m, k);"
     "r3:? = @eq(r1, `\"abcdefgh\":sym);",
     "r1, r2, r3"},
    {"unequal_and_carried",
     "m:? = @neq(b, `\"no text\":sym); r1:? = @compress(m, b); r2:? = @compress(m, k);"
     "o:? = @order(r1, 1:bool); r3:? = @index(r1, o); r4:? = @eq(r3, `\"\":sym);",
     "r1, r2, r3, r4"},
    {"ordered_and_carried",
     "m:? = @lt(a, `\"abcdefgh\":sym); r1:? = @compress(m, a); r2:? = @compress(m, k);", "r1, r2"},
    {"parts_with_literals",
     "s:? = @sub_string(b, (2,4):i32); r1:? = @geq(s, `\"a\":sym); r2:? = @eq(s, `\"bcde\":sym);"
     "r3:? = @lt(s, `\"z\":sym);",
     "r1, r2, r3"},
    {"in_another_case",
     "u:? = @text_map(`upper:sym, a); l:? = @text_map(`lower:sym, b); r1:? = @eq(u, `\"ABCDEFGH\":sym);"
     "r2:? = @eq(u, l); o:? = @order(l, 1:bool); r3:? = @index(l, o); r4:? = @like(u, \"%X%A%\":str);"
     "r5:? = @text_map(`lower:sym, r3);",
     "r1, r2, r3, r4, r5", true},
    {"grouped_in_another_case",
     "u:? = @text_map(`upper:sym, a); g:? = @group(u); w:? = @keys(g); x:? = @index(u, w);"
     "o:? = @order(x, 1:bool); r1:? = @index(x, o); r2:? = @text_map(`length:sym, r1);",
     "r1, r2", true},
    {"ascii_in_another_case",
     "u:? = @text_map(`upper:sym, c); r1:? = @eq(u, `\"ABCDEFGH\":sym); l:? = @text_map(`lower:sym, u);"
     "o:? = @order(l, 1:bool); r2:? = @index(l, o); x:? = @text_map(`substring:sym, u, 2:i64);"
     "r3:? = @member(x, (`\"BCDEFGH\",`\"nowhere\"):sym); r4:? = @text_map(`length:sym, x);",
     "r1, r2, r3, r4"},
    {"parts_and_lengths",
     "s:? = @text_map(`substring:sym, a, 2:i64, 3:i64); t:? = @text_map(`left:sym, b, 1:i64);"
     "r1:? = @eq(s, t); r2:? = @lt(t, `\"b\":sym); r3:? = @text_map(`length:sym, a);"
     "r4:? = @text_map(`strlen:sym, b); r5:? = @text_map(`contains:sym, a, \"a\":str);"
     "r6:? = @text_map(`prefix:sym, b, \"abc\":str); r7:? = @text_map(`suffix:sym, b, \"\":str);",
     "r1, r2, r3, r4, r5, r6, r7", true},
    {"grouped_parts",
     "s:? = @text_map(`substring:sym, c, 2:i64, 3:i64); g:? = @group(s); w:? = @keys(g); x:? = @index(s, w);"
     "o:? = @order(x, 1:bool); r1:? = @index(x, o);",
     "r1"},
    {"trimmed_and_padded",
     "x:? = @text_map(`trim:sym, a); y:? = @text_map(`ltrim:sym, b, \"ab \":str);"
     "z:? = @text_map(`rtrim:sym, c, \"zx\":str); r1:? = @eq(x, y); r2:? = @lt(z, `\"b\":sym);"
     "p:? = @text_map(`lpad:sym, b, 7:i64, \"+-\":str); q:? = @text_map(`rpad:sym, c, 3:i64, \".\":str);"
     "r3:? = @member(p, q); r4:? = @text_map(`length:sym, p); o:? = @order(q, 1:bool); r5:? = @index(q, o);"
     "r6:? = @index(x, o);",
     "r1, r2, r3, r4, r5, r6", true},
    {"parts_of_all_kinds",
     "x:? = @text_map(`right:sym, a, 3:i64); y:? = @text_map(`right:sym, b, -2:i64);"
     "z:? = @text_map(`left:sym, b, -3:i64); w:? = @text_map(`split_part:sym, b, \"a\":str, 2:i64);"
     "r1:? = @eq(x, y); r2:? = @lt(z, `\"b\":sym); o:? = @order(w, 1:bool); r3:? = @index(w, o);"
     "r4:? = @index(x, o); r5:? = @index(y, o); r6:? = @index(z, o); r7:? = @text_map(`position:sym, b, \"bz\":str);"
     "r8:? = @text_map(`contains:sym, b, \"_\":str);",
     "r1, r2, r3, r4, r5, r6, r7, r8", true},
    {"replaced_and_grouped",
     "x:? = @text_map(`replace:sym, b, \"ab\":str, \"<b>\":str); g:? = @group(x); w:? = @keys(g);"
     "y:? = @index(x, w); o:? = @order(y, 1:bool); r1:? = @index(y, o);",
     "r1"},
    {"turned_around",
     "y:? = @text_map(`reverse:sym, c); v:? = @text_valid(`reverse:sym, c); p:? = @order(y, 0:bool);"
     "r2:? = @index(y, p);",
     "r2, v"},
    {"put_together",
     "x:? = @text_map(`concat:sym, a, `\", \":sym, b); y:? = @text_map(`concat:sym, `\"<\":sym, few, c);"
     "z:? = @text_map(`concat:sym, `\"(\":sym, c, `\")\":sym); r1:? = @like(x, \"%x, a%\":str);"
     "o:? = @order(x, 1:bool); r2:? = @index(x, o); r4:? = @text_map(`length:sym, y);"
     "r5:? = @index(z, o); r6:? = @eq(z, `\"()\":sym);",
     "r1, r2, r4, r5, r6"},
    {"put_together_after_a_filter",
     "m:? = @lt(k, 10:i32); x:? = @compress(m, a); y:? = @compress(m, few); z:? = @text_map(`concat:sym, y, x);"
     "g:? = @group(z); w:? = @keys(g); v:? = @index(z, w); o:? = @order(v, 1:bool); r1:? = @index(v, o);",
     "r1", true},
    {"numbers_put_together",
     "n:? = @text_map(`of_integer:sym, k); x:? = @text_map(`concat:sym, b, `\"#\":sym, n); o:? = @order(x, 1:bool);"
     "r1:? = @index(x, o); r2:? = @index(n, o); r3:? = @eq(n, \"7\":str);",
     "r1, r2, r3"},
    {"patterns_of_characters",
     "r1:? = @text_map(`ilike:sym, b, \"%A_%\":str); r2:? = @text_map(`like:sym, b, \"_b%\":str);"
     "r3:? = @text_map(`like:sym, b, \"%z!%%\":str, \"!\":str); r4:? = @text_valid(`like:sym, b, \"a%\":str);"
     "r5:? = @text_map(`ilike:sym, c, \"ABC%\":str);",
     "r1, r2, r3, r4, r5", true},
    {"joined_after_functions",
     "x:? = @text_map(`lower:sym, c); y:? = @text_map(`concat:sym, c, `\"\":sym); m:? = @lt(k, 1:i32);"
     "z:? = @compress(m, y); p:? = @join_index(@eq, x, z); r1:? = @index(p, 0:i64); r2:? = @index(p, 1:i64);",
     "r1, r2"},
    {"members_of_functions",
     "x:? = @text_map(`lower:sym, c); y:? = @text_map(`concat:sym, b, c); z:? = @text_map(`concat:sym, c, b);"
     "r1:? = @member(y, z); r2:? = @member(x, c); r3:? = @eq(y, z);",
     "r1, r2, r3"},
    {"searched",
     "r1:? = @like(a, \"%\":str); r2:? = @like(a, \"abcd%\":str); r3:? = @like(a, \"%a\":str);"
     "r4:? = @like(a, \"%x%a_%\":str); r5:? = @like(b, \"\":str); r6:? = @like(b, \"_%_\":str);",
     "r1, r2, r3, r4, r5, r6"},
};

class TextColumns : public testing::TestWithParam<std::tuple<const char*, TextProgram>> {
 protected:
  Result<Compiled> compile_program() {
    const auto& [target, program] = GetParam();
    std::string text = "module m { import Builtin.*; def main() : table { t:? = @load_table(`t:sym);\n";
    for (const auto& [name, type] : std::initializer_list<std::pair<const char*, const char*>>{
             {"a", "sym"}, {"b", "sym"}, {"c", "sym"}, {"few", "sym"}, {"k", "i32"}})
      text += fmt::format("{0}:{1} = check_cast(@column_value(t, `{0}:sym), {1});\n", name, type);
    std::string names;
    size_t columns = 1;
    for (char c : std::string_view(program.columns)) columns += c == ',';
    for (size_t i = 0; i < columns; ++i) names += fmt::format("{}`r{}", i ? "," : "", i);
    text += fmt::format(
        "{}\nlast:? = @list({}); result:? = @table({}:sym, last);"
        " return result; }} }}",
        program.text, program.columns, columns == 1 ? names : "(" + names + ")");
    DiagnosticSink sink;
    CompileOptions options;
    options.target = target;
    auto compiled = compile(sources_.add("t.hir", text), sources_, options, sink, timings_);
    if (!compiled) return input_error("{}{}", compiled.error().message, render(sink, sources_));
    return compiled;
  }
  SourceManager sources_;
  Timings timings_;
};

TEST_P(TextColumns, AgreeWithTheReferenceInterpreterAndAreReadOnce) {
  auto compiled = compile_program();
  ASSERT_TRUE(compiled.ok()) << compiled.error().message;
  const char* const target = std::get<0>(GetParam());
  // From 4,097 texts on the device ranks them.
  for (const uint64_t rows : {1, 40, 4500}) {
    if (rows == 4500 && std::string_view(target) != "sm_90") continue;  // time
    const Texts tables(rows);
    auto want = reference::run(compiled->program, tables, sources_, nullptr);
    ASSERT_TRUE(want.ok()) << want.error().message;
    const std::string right = *print_result(*want, Format::csv);
    for (const bool measured : {true, false}) {  // false: the later ones as graphs, where they can
      if (rows == 4500 && measured) continue;
      sim::Options checks;
      checks.check_hazards = checks.check_races = true;
      auto device = open_simulator(target, checks);
      ASSERT_TRUE(device.ok());
      Engine engine(**device, tables);
      auto plan = engine.plan(*compiled, sources_, {.allow_fallback = false, .measure_kernels = measured}, timings_);
      ASSERT_TRUE(plan.ok()) << plan.error().message;
      for (int run = 0; run < (measured ? 2 : 4); ++run) {
        std::vector<std::string> fallbacks;
        uint64_t walked = 0;
        auto got = engine.run(**plan, timings_, nullptr, nullptr, &fallbacks, &walked);
        ASSERT_TRUE(got.ok()) << rows << " rows: " << got.error().message;
        ASSERT_EQ(*print_result(*got, Format::csv), right) << rows << " rows, run " << run;
        EXPECT_EQ(fallbacks, std::vector<std::string>{});
        // Small domains are the host's in the first run; of large ones it reads no text even then.
        constexpr uint64_t uses_of_few = 16, texts_of_few = 4;
        const TextProgram& program = std::get<1>(GetParam());
        if (run > 0) {
          // Small domains that a function made are not put together for good.
          if (rows == 4500 || std::string_view(program.text).find("text_map") == std::string_view::npos) {
            EXPECT_EQ(walked, 0u) << rows << " rows, run " << run;
          }
        } else if (rows == 4500 && !program.host) {
          const bool has_few = std::string_view(program.text).find("few") != std::string_view::npos;
          EXPECT_LE(walked, has_few ? uses_of_few * texts_of_few : 0u);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, TextColumns,
                         testing::Combine(testing::Values("sm_61", "sm_86", "sm_90"), testing::ValuesIn(text_programs)),
                         [](const auto& info) {
                           return fmt::format("{}_{}", std::get<0>(info.param), std::get<1>(info.param).name);
                         });

}  // namespace
}  // namespace rndn::runtime
