// Functions sixteen times as large take about sixteen times as long, whatever their shape.
#include <time.h>

#include "tests/assembler/support.h"

namespace rndn::assembler::testing {
namespace {

struct Shape {
  const char* name;
  std::string before, piece, after;  // {0}: number of the piece, {1}: of one 300 before
};
const std::string work = "ld.global.u32 %x{0}, [%in+8];\nmad.lo.u32 %s, %s, 3, %x{0};\nsetp.eq.u32 %p{0}, %x{0}, {0};\nxor.b32 %s, %s, {0};\n";
const Shape shapes[] = {
    {"straight code", "", work + "@%p{0} add.u32 %s, %s, 7;\n", ""},
    {"arms one after another", "", work + "@%p{0} bra J{0};\n" + work + work + "st.global.u32 [%in], %s;\nJ{0}:\n", ""},
    {"loops one after another", "", "L{0}:\n" + work + "@%p{0} bra L{0};\n", ""},
    {"checks that fail to one place", "", work + "@%p{0} bra FAIL;\n", "ret;\nFAIL: st.global.u32 [%in], %s;\nst.global.u32 [%in+4], %s;\n"},
    {"cases of a choice", "", "setp.eq.u32 %p{0}, %n, {0};\n@!%p{0} bra N{0};\n" + work + work + "bra OUT;\nN{0}:\n", "OUT:\n"},
    {"cases of a choice, in a loop", "AGAIN:\n", "setp.eq.u32 %p{0}, %n, {0};\n@!%p{0} bra N{0};\n" + work + work + "bra OUT;\nN{0}:\n",
     "OUT:\nadd.u32 %n, %n, 1;\nsetp.lt.u32 %p0, %n, %s;\n@%p0 bra AGAIN;\n"},
    {"ways out of a loop", "AGAIN:\n", work + "@%p{0} bra OUT;\n", "bra AGAIN;\nOUT:\n"},
    {"checks in front of a barrier", "", work + "@%p{0} bra FAIL;\n", "bar.sync 0;\nret;\nFAIL: st.global.u32 [%in], %s;\ntrap;\n"},
    {"guarded code", "", "setp.gt.u32 %p{0}, %n, {0};\n@%p{0} mad.lo.u32 %s, %s, %n, {0};\n@%p{0} xor.b32 %x{0}, %s, %n;\n@%p{0} add.u32 %s, %s, %x{0};\n", ""},
    {"more values than registers", "", "ld.global.u32 %x{0}, [%in+8];\nmad.lo.u32 %s, %s, %x{0}, %x{1};\n", ""},
};

double thread_ms() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
}

// The best of three.
double time_of(const Shape& shape, int pieces, const std::string& target) {
  std::string text = fmt::format(
      ".version 7.0\n.target sm_60\n.address_size 64\n.visible .entry k(.param .u64 in)\n{{\n.reg .b32 %n, %s, %x<{0}>;\n.reg .b64 %in;\n"
      ".reg .pred %p<{0}>;\nld.param.u64 %in, [in];\nld.global.u32 %n, [%in];\nmov.u32 %s, %tid.x;\n",
      pieces);
  text += shape.before;
  for (int k = 0; k < pieces; ++k) text += fmt::format(fmt::runtime(shape.piece), k, std::max(0, k - 300));
  text += shape.after + "st.global.u32 [%in], %s;\nret;\n}\n";
  const ptx::Module module = parse_text(shape.name, text);
  Workspace memory;  // pages are new in the first run alone
  Options o;
  o.target = isa::find_target(target);
  o.workspace = &memory;
  double best = 1e9;
  for (int run = 0; run < 3; ++run) {
    Timings timings;
    const double start = thread_ms();
    const auto made = assemble(module, o, timings);
    best = std::min(best, thread_ms() - start);
    EXPECT_TRUE(made.ok()) << shape.name << ": " << made.error().message;
  }
  return best;
}

TEST(Scale, TimeGrowsWithTheCode) {
  constexpr int pieces = 1000;
  for (const Shape& shape : shapes)
    for (const char* target : {"sm_60", "sm_90"})
      EXPECT_LT(time_of(shape, 16 * pieces, target), 40 * time_of(shape, pieces, target)) << shape.name << " " << target;
}

}  // namespace
}  // namespace rndn::assembler::testing
