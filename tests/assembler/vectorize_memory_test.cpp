// Accesses that ptx/transform/vectorize_memory.cpp makes one, and accesses that it must leave: our code against the PTX interpreter, on every target.
#include "assembler/isa/isa.h"
#include "tests/assembler/three_ways.h"
#include "tests/support/every_case.h"

namespace rndn::assembler::testing::vectorize_memory_test {
namespace {

// A kernel of the tests' shape: %a, %b, %c are words of the thread's input, %i its number in the block. %s and %l are addresses of 80 bytes of its own in
// shared and in local memory, at multiples of 16 and filled with words; what they hold behind the body is stored, with %x, %y and %z.
std::string kernel(const std::string& body, const std::string& declared = ".shared .align 4 .b8 room[7680];\n") {
  std::string fill, store;
  for (int k = 0; k < 20; ++k) {
    fill += fmt::format(
        "mad.lo.u32 %t0, %a, {}, %b;\nst.volatile.shared.u32 [%s+{}], %t0;\nst.local.cs.u32 [%l+{}], %t0;\n", 2 * k + 1,
        4 * k, 4 * k);
    store += fmt::format(
        "ld.volatile.shared.u32 %t0, [%s+{0}];\nst.global.u32 [%d4+{1}], %t0;\nld.local.cs.u32 %t0, "
        "[%l+{0}];\nst.global.u32 [%d4+{2}], %t0;\n",
        4 * k, 64 + 4 * k, 160 + 4 * k);
  }
  return ".version 7.0\n.target sm_60\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n" +
         declared +
         ".local .align 4 .b8 own[80];\n.reg .b32 %a, %b, %c, %x, %y, %z, %i, %s, %l, %q, %u, %t<12>;\n.reg .b32 "
         "%j<4>;\n.reg .b64 %d<8>, %w<4>;\n"
         ".reg .f32 %f<8>;\n.reg .f64 %e<4>;\n.reg .pred %p, %g;\n"
         "ld.param.u64 %d1, [in];\nld.param.u64 %d2, [out];\nmov.u32 %i, %tid.x;\nmov.u32 %j2, %ctaid.x;\n"
         "mad.lo.u32 %j3, %j2, 96, %i;\nmad.wide.u32 %d3, %j3, 24, %d1;\nmad.wide.u32 %d4, %j3, 768, %d2;\n"
         "ld.global.u32 %a, [%d3];\nld.global.u32 %b, [%d3+8];\nld.global.u32 %c, [%d3+16];\n"
         "mov.u32 %x, 7;\nmov.u32 %y, 9;\nmov.u32 %z, 0;\nand.b32 %j1, %a, 1;\nsetp.eq.u32 %p, %j1, 0;\n"
         "mov.u32 %q, room;\nmad.lo.u32 %s, %i, 80, %q;\nmov.u32 %l, own;\n" +
         fill + body + store +
         "st.global.u32 [%d4], %x;\nst.global.u32 [%d4+8], %y;\nst.global.u32 [%d4+16], %z;\nret;\n}\n";
}

std::string four_loads(const std::string& space, const std::string& base, int offset) {
  std::string text;
  for (int k = 0; k < 4; ++k) text += fmt::format("ld.{}.u32 %t{}, [{}+{}];\n", space, k + 1, base, offset + 4 * k);
  return text + "mad.lo.u32 %x, %t1, %t2, %t3;\nxor.b32 %y, %t3, %t4;\nadd.u32 %z, %t1, %t4;\n";
}
std::string four_stores(const std::string& space, const std::string& base, int offset) {
  std::string text = "mul.lo.u32 %t1, %a, 3;\nxor.b32 %t2, %b, %a;\nadd.u32 %t3, %c, %t1;\nsub.u32 %t4, %b, %c;\n";
  for (int k = 0; k < 4; ++k) text += fmt::format("st.{}.u32 [{}+{}], %t{};\n", space, base, offset + 4 * k, k + 1);
  return text;
}

struct Case {
  const char* name;
  std::string body;
  int loads = -1,
      stores = -1;  // of shared and local memory that the body has as machine instructions at -O3; -1: not counted
};
const Case cases[] = {
    {"four words", four_loads("shared", "%s", 16) + four_stores("shared", "%s", 32), 1, 1},
    {"four words of local memory", four_loads("local", "%l", 16) + four_stores("local", "%l", 48), 1, 1},
    {"two and two", four_loads("shared", "%s", 8), 2, 0},
    {"one, two and one", four_loads("shared", "%s", 4) + four_stores("shared", "%s", 12), 3, 3},
    {"of a variable", "ld.shared.u32 %x, [room];\nld.shared.u32 %y, [room+4];\n", 1, 0},  // thread 0's own, read by all
    {"two of 64 bits",
     "ld.shared.u64 %w1, [%s+16];\nld.shared.f64 %e1, [%s+24];\nmov.b64 %w2, %e1;\nadd.u64 %w1, %w1, %w2;\ncvt.u32.u64 "
     "%x, %w1;\nst.shared.u64 [%s+40], "
     "%w1;\nst.shared.u64 [%s+32], %w2;\n",
     1, 1},
    {"of several types",
     "ld.shared.f32 %f1, [%s];\nld.shared.u32 %t1, [%s+4];\nmov.b32 %t2, %f1;\nadd.u32 %x, %t1, %t2;\n", 1, 0},
    {"backwards",
     "ld.shared.u32 %x, [%s+4];\nld.shared.u32 %y, [%s];\nst.shared.u32 [%s+12], %a;\nst.shared.u32 [%s+8], %b;\n", 1,
     1},
    {"two bases by turns",
     "add.u32 %q, %s, 32;\nld.shared.u32 %t1, [%s];\nld.shared.u32 %t2, [%q];\nld.shared.u32 %t3, "
     "[%s+4];\nld.shared.u32 %t4, [%q+4];\n"
     "mad.lo.u32 %x, %t1, %t2, %t3;\nxor.b32 %y, %x, %t4;\n",
     2, 0},
    {"shared and local by turns",
     "ld.shared.u32 %t1, [%s];\nld.local.u32 %t2, [%l];\nst.local.u32 [%l+8], %a;\nld.shared.u32 %t3, "
     "[%s+4];\nst.local.u32 [%l+12], %b;\n"
     "mad.lo.u32 %x, %t1, %t2, %t3;\n",
     2, 1},
    {"a base that nothing is known of",
     "and.b32 %t1, %a, 1;\nshl.b32 %t1, %t1, 2;\nadd.u32 %q, %s, %t1;\n" + four_loads("shared", "%q", 16), 4, 0},
    {"a base at multiples of 8", "and.b32 %t9, %a, 8;\nadd.u32 %u, %s, %t9;\n" + four_loads("shared", "%u", 16), 2, 0},
    {"a base with several definitions", "mov.u32 %q, %s;\n@%p add.u32 %q, %s, 4;\n" + four_loads("shared", "%q", 16), 4,
     0},
    {"a base that changes in a loop",
     "mov.u32 %q, %s;\nmov.u32 %t5, 0;\nAGAIN:\nld.shared.u32 %t1, [%q];\nld.shared.u32 %t2, [%q+4];\nadd.u32 %q, %q, "
     "8;\nmad.lo.u32 %x, %x, %t1, "
     "%t2;\nadd.u32 %t5, %t5, %a;\nadd.u32 %y, %y, 1;\nsetp.ne.u32 %g, %y, 16;\n@%g bra AGAIN;\n"},
    {"the base is written in between",
     "mov.u32 %q, %s;\nld.shared.u32 %x, [%q];\nadd.u32 %q, %q, 16;\nld.shared.u32 %y, [%q+4];\nst.shared.u32 [%q+8], "
     "%a;\n"
     "add.u32 %q, %q, 16;\nst.shared.u32 [%q+12], %b;\n",
     2, 2},
    {"a load of its own base",
     "mov.u32 %q, %s;\nst.volatile.shared.u32 [%s+8], %s;\nld.shared.u32 %q, [%q+8];\nld.shared.u32 %y, "
     "[%q+12];\nadd.u32 %x, %q, 0;\n"
     "sub.u32 %x, %x, %s;\nst.volatile.shared.u32 [%s+8], %a;\n"},
    {"a store in between", "ld.shared.u32 %x, [%s];\nst.shared.u32 [%s+4], %a;\nld.shared.u32 %y, [%s+4];\n", 2, 1},
    {"a store elsewhere in between",
     "add.u32 %q, %s, 4;\nld.shared.u32 %x, [%s];\nst.shared.u32 [%q], %a;\nld.shared.u32 %y, [%s+4];\n", 2, 1},
    {"a generic store in between",
     "cvt.u64.u32 %w1, %s;\ncvta.shared.u64 %w1, %w1;\nld.shared.u32 %x, [%s];\nst.u32 [%w1+4], %a;\nld.shared.u32 %y, "
     "[%s+4];\n"},
    {"an atomic in between",
     "ld.shared.u32 %x, [%s];\natom.shared.add.u32 %t1, [%s+4], %a;\nld.shared.u32 %y, [%s+4];\n"},
    {"a barrier in between",
     "ld.shared.u32 %x, [%s];\nbar.sync 0;\nld.shared.u32 %y, [%s+4];\nst.shared.u32 [%s+8], %a;\nbar.sync "
     "0;\nst.shared.u32 [%s+12], %b;\n",
     2, 2},
    {"a label in between",
     "ld.shared.u32 %x, [%s];\n@%p bra OVER;\nadd.u32 %z, %z, 5;\nmul.lo.u32 %z, %z, %a;\nOVER:\nld.shared.u32 %y, "
     "[%s+4];\n",
     2, 0},
    {"a volatile load in between",
     "ld.shared.u32 %x, [%s];\nld.volatile.shared.u32 %z, [%s+8];\nld.shared.u32 %y, [%s+4];\n", 3, 0},
    {"what is loaded is read before", "ld.shared.u32 %x, [%s];\nadd.u32 %z, %y, %a;\nld.shared.u32 %y, [%s+4];\n", 2,
     0},
    {"what is loaded is written before",
     "ld.shared.u32 %x, [%s];\nmov.u32 %y, %a;\nadd.u32 %z, %y, %b;\nld.shared.u32 %y, [%s+4];\n", 2, 0},
    {"what is loaded is a guard's word before",
     "ld.shared.u32 %x, [%s];\n@%p add.u32 %y, %y, %a;\nld.shared.u32 %y, [%s+4];\n", 2, 0},
    {"both are loaded to one register", "ld.shared.u32 %x, [%s];\nadd.u32 %z, %x, 1;\nld.shared.u32 %x, [%s+4];\n", 2,
     0},
    {"what is stored changes",
     "mov.u32 %t1, %a;\nst.shared.u32 [%s], %t1;\nadd.u32 %t1, %t1, 1;\nst.shared.u32 [%s+4], %t1;\n", 0, 2},
    {"stores to one place", "st.shared.u32 [%s], %a;\nst.shared.u32 [%s+4], %b;\nst.shared.u32 [%s], %c;\n", 0, 2},
    {"stores that overlap",
     "mov.b64 %w1, {%a, %b};\nst.shared.u64 [%s], %w1;\nst.shared.u32 [%s+4], %c;\nst.shared.u32 [%s], %b;\n"},
    {"stores behind two bases",
     "add.u32 %q, %s, 4;\nst.shared.u32 [%s], %a;\nst.shared.u32 [%q], %b;\nst.shared.u32 [%s+4], %c;\n", 0, 3},
    {"a load between stores", "st.shared.u32 [%s], %a;\nld.shared.u32 %x, [%s];\nst.shared.u32 [%s+4], %b;\n", 1, 2},
    {"under a guard",
     "@%p ld.shared.u32 %x, [%s];\n@%p ld.shared.u32 %y, [%s+4];\n@%p st.shared.u32 [%s+8], %a;\n@%p st.shared.u32 "
     "[%s+12], %b;\n",
     2, 2},
    // A store that goes to the place of the last reads there; so what it reads is not written before by a load that goes to the place of the first.
    {"a store that sinks below a load that rises",
     "mov.u32 %t1, %a;\nst.shared.u32 [%s], %t1;\nld.local.u32 %x, [%l];\nst.shared.u32 [%s+4], %b;\nld.shared.u32 %y, "
     "[%s];\nld.local.u32 %t1, [%l+4];\nld.shared.u32 "
     "%t3, [%s+4];\nadd.u32 %z, %t1, %t3;\n"},
    {"the same, all at once",
     "mov.u32 %t1, %a;\nst.shared.u32 [%s], %t1;\nld.local.u32 %x, [%l];\nst.shared.u32 [%s+4], %b;\nld.local.u32 %t1, "
     "[%l+4];\nadd.u32 %z, %t1, %x;\n"},
    {"a base that a rising load writes",
     "mov.u32 %q, %s;\nst.shared.u32 [%q], %a;\nld.local.u32 %x, [%l];\nst.shared.u32 [%q+4], %b;\nld.local.u32 %q, "
     "[%l+4];\nadd.u32 %z, %q, %x;\n"},
    {"what is stored changes behind the last",
     "mov.u32 %t1, %a;\nst.shared.u32 [%s], %t1;\nst.shared.u32 [%s+4], %b;\nadd.u32 %t1, %t1, 1;\nadd.u32 %x, %t1, "
     "%a;\n",
     0, 1},
    {"bytes and halves", "ld.shared.u16 %x, [%s];\nld.shared.u16 %y, [%s+2];\nld.shared.u8 %z, [%s+4];\n"},
    {"the same word twice", "ld.shared.u32 %x, [%s];\nld.shared.u32 %y, [%s];\nld.shared.u32 %z, [%s+4];\n", 2, 0},
    {"a value of two stores",
     "st.shared.u32 [%s], %a;\nst.shared.u32 [%s+4], %a;\nst.shared.u32 [%s+8], %b;\nst.shared.u32 [%s+12], %a;\n"},
    {"far from each other",
     "ld.shared.u32 %x, [%s];\n" +
         [] {
           std::string text;
           for (int k = 0; k < 120; ++k) text += fmt::format("mad.lo.u32 %z, %z, {}, %a;\n", 2 * k + 1);
           return text;
         }() +
         "ld.shared.u32 %y, [%s+4];\n",
     2, 0},
};

// Accesses of shared and local memory, loads and stores.
std::pair<int, int> accesses(const std::vector<std::byte>& cubin, const std::string& target) {
  int loads = 0, stores = 0;
  for (const isa::Instruction& i : instructions_of(cubin, target)) {
    loads += i.mnemonic == isa::Mnemonic::LDS || i.mnemonic == isa::Mnemonic::LDL;
    stores += i.mnemonic == isa::Mnemonic::STS || i.mnemonic == isa::Mnemonic::STL;
  }
  return {loads, stores};
}

TEST(JoinWords, MeanWhatTheyMeant) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    our_code_agrees(kernel(c.body), both_families, {0, 1, 3});
  }
}

TEST(JoinWords, AreJoinedWhereTheyMayBe) {
  for (const std::string& name : both_families) {
    const auto of = [&](const std::string& body) {
      auto made = assemble_for(parse_text("join.ptx", kernel(body)), name);
      EXPECT_TRUE(made.ok()) << made.error().message;
      return made.ok() ? accesses(made->cubin, name) : std::pair(-1, -1);
    };
    const auto [loads, stores] = of("");
    for (const Case& c : cases) {
      SCOPED_TRACE(name + ": " + c.name);
      if (c.loads < 0) continue;
      const auto [l, s] = of(c.body);
      EXPECT_EQ(l - loads, c.loads);
      EXPECT_EQ(s - stores, c.stores);
    }
  }
}

// Accesses made at random, with what may come between them.
TEST(JoinWords, AtRandomMeanWhatTheyMeant) {
  std::mt19937 random(7);
  const auto pick = [&](uint32_t n) { return static_cast<int>(random() % n); };
  int joined = 0;
  for (uint64_t n = 0; n < rndn::test::in_the_gate(24, 60); ++n) {
    std::string body = "add.u32 %q, %s, 32;\nmov.u32 %t10, %s;\n";
    for (int k = 1; k < 9; ++k) body += fmt::format("mad.lo.u32 %t{}, %b, {}, %c;\n", k, 2 * k + 3);
    int labels = 0;
    for (int k = 0; k < 40; ++k) {
      const bool local = pick(4) == 0;
      const std::string space = local ? "local" : "shared",
                        base = local ? "%l" : std::array{"%s", "%s", "%q", "%t10"}[static_cast<size_t>(pick(4))];
      const int r = 1 + pick(8), offset = 4 * pick(8);
      switch (pick(12)) {
        case 0:
        case 1:
        case 2:
        case 3: body += fmt::format("ld.{}.u32 %t{}, [{}+{}];\n", space, r, base, offset); break;
        case 4:
        case 5:
        case 6: body += fmt::format("st.{}.u32 [{}+{}], %t{};\n", space, base, offset, r); break;
        case 7: body += fmt::format("mad.lo.u32 %t{}, %t{}, {}, %t{};\n", r, 1 + pick(8), k + 2, 1 + pick(8)); break;
        case 8: body += fmt::format("@%p add.u32 %t{}, %t{}, {};\n", r, 1 + pick(8), k); break;
        case 9:
          body += fmt::format("add.u32 %t10, %s, {};\n", std::array{0, 4, 8, 16, 32}[static_cast<size_t>(pick(5))]);
          break;
        case 10: {  // a run
          const int first = 16 * pick(3);
          const bool load = pick(2) == 0;
          for (int e = 0; e < 4; ++e)
            body += load ? fmt::format("ld.{}.u32 %t{}, [{}+{}];\n", space, 1 + (r + e) % 8, base, first + 4 * e)
                         : fmt::format("st.{}.u32 [{}+{}], %t{};\n", space, base, first + 4 * e, 1 + (r + e) % 8);
          break;
        }
        default:
          body += fmt::format(
              "setp.lt.u32 %g, %t{}, %a;\n@%g bra L{};\nmul.lo.u32 %t{}, %t{}, 3;\nst.shared.u32 [%s+{}], "
              "%t{};\nL{}:\n",
              r, labels, r, r, offset, 1 + pick(8), labels);
          ++labels;
      }
    }
    for (int k = 1; k < 9; ++k) body += fmt::format("mad.lo.u32 %x, %x, 3, %t{};\n", k);
    SCOPED_TRACE(body);
    const std::string text = kernel(body);
    our_code_agrees(text, both_families, {1, 3});
    if (HasFailure()) return;
    auto all = assemble_for(parse_text("join.ptx", text), "sm_90"),
         none = assemble_for(parse_text("join.ptx", text), "sm_90", 1);
    ASSERT_TRUE(all.ok() && none.ok());
    const auto [l, s] = accesses(all->cubin, "sm_90");
    const auto [m, t] = accesses(none->cubin, "sm_90");
    joined += m + t - l - s;
  }
  EXPECT_GT(joined, 100);
}

// What orders memory orders all of it, whatever its space.
TEST(JoinWords, StayOnTheirSidesOfAcquireAndRelease) {
  const auto accesses_of = [&](const std::string& between) {
    std::string text =
        kernel("st.shared.u32 [%s], %a;\nst.shared.u32 [%s+8], %c;\n" + between +
               "st.shared.u32 [%s+4], %b;\nld.shared.u32 %x, [%s+16];\n" + between + "ld.shared.u32 %y, [%s+20];\n");
    text.replace(text.find("sm_60"), 5, "sm_70");
    auto made = assemble_for(parse_text("join.ptx", text), "sm_90");
    EXPECT_TRUE(made.ok()) << made.error().message;
    return made.ok() ? accesses(made->cubin, "sm_90") : std::pair(-1, -1);
  };
  const auto [loads, stores] = accesses_of("");
  for (const char* between : {"st.release.gpu.global.u32 [%d4+72], %a;\n", "ld.acquire.gpu.global.u32 %t1, [%d3];\n",
                              "atom.acq_rel.gpu.global.add.u32 %t1, [%d4+72], %a;\n", "fence.acq_rel.gpu;\n",
                              "bar.warp.sync 0xffffffff;\n"}) {
    const auto [l, s] = accesses_of(between);
    EXPECT_EQ(l - loads, 1) << between;
    EXPECT_EQ(s - stores, 1) << between;
  }
}

// Words of constant memory that have to be loaded: two at once, whatever else the code does, if they are known to lie at multiples of 8.
TEST(JoinWords, OfConstantMemory) {
  std::string table = ".const .align 4 .b32 first[3] = {77, 78, 79};\n.const .align 4 .b32 table[48] = {";
  for (uint32_t k = 0; k < 48; ++k) table += fmt::format("{}{}", k ? ", " : "", k * 2654435761u);
  table += "};\n";
  struct Constants {
    const char* name;
    std::string body;
    int one, two;  // LDC of one word, of two
  };
  const std::string index = "and.b32 %t9, %a, 3;\nmad.lo.u32 %q, %t9, 32, %u;\n";
  const Constants cases[] = {
      {"four words", "mov.u32 %u, table+4;\n" + index + four_loads("const", "%q", 0), 0, 2},
      {"four words at no multiple of 8", "mov.u32 %u, table;\n" + index + four_loads("const", "%q", 0), 4, 0},
      {"an index of 12 bytes",
       "mov.u32 %u, table;\nand.b32 %t9, %a, 3;\nmad.lo.u32 %q, %t9, 12, %u;\n" + four_loads("const", "%q", 4), 4, 0},
      {"across stores",
       "mov.u32 %u, table+4;\n" + index +
           "ld.const.u32 %t1, [%q];\nst.shared.u32 [%s], %t1;\nst.local.u32 [%l], %b;\nld.const.u32 %t2, [%q+4];\n"
           "add.u32 %x, %t1, %t2;\n",
       0, 1},
      {"the address changes",
       "mov.u32 %u, table+4;\n" + index +
           "ld.const.u32 %t1, [%q];\nadd.u32 %q, %q, 8;\nld.const.u32 %t2, [%q+-4];\nadd.u32 %x, %t1, %t2;\n",
       2, 0},
      {"a vector over its own address",
       "mov.u32 %u, table+4;\n" + index +
           "ld.const.v4.u32 {%q, %t1, %t2, %t3}, [%q];\nmad.lo.u32 %x, %t1, %t2, %q;\nmov.u32 %y, %t3;\n",
       -1, -1},
      {"known places",
       "mov.u64 %w1, table;\nadd.u64 %w2, %w1, 4;\nld.const.u32 %t1, [%w2];\nld.const.u32 %t2, [%w2+4];\nadd.u32 %x, "
       "%t1, "
       "%t2;\n",
       0, 0},
      {"round a loop",
       "mov.u64 %w1, table;\nadd.u64 %w1, %w1, 4;\nmov.u32 %q, 0;\nT:\nld.const.u32 %t1, [%w1];\nmad.lo.u32 %x, %x, 3, "
       "%t1;\nld.const.u32 %t2, [%w1+4];\n"
       "xor.b32 %x, %x, %t2;\nadd.u64 %w1, %w1, 16;\nadd.u32 %q, %q, 1;\nsetp.lt.u32 %p, %q, 9;\n@%p bra T;\n.pragma "
       "\"nounroll\";\n",
       -1, -1},
  };
  for (const Constants& c : cases) {
    SCOPED_TRACE(c.name);
    std::string text = kernel(c.body);
    text.insert(text.find(".visible"), table);
    our_code_agrees(text, both_families, {0, 1, 3});
    for (const std::string& target : both_families) {
      if (c.one < 0) continue;
      auto made = assemble_for(parse_text("join.ptx", text), target);
      ASSERT_TRUE(made.ok()) << made.error().message;
      std::array<int, 2> loads{};
      for (const isa::Instruction& i : instructions_of(made->cubin, target))
        if (i.mnemonic == isa::Mnemonic::LDC && i.operands[1].bank == 3)
          ++loads[isa::modifier(i, isa::ModifierKind::Size) == 5];
      EXPECT_EQ(loads, (std::array{c.one, c.two})) << target;
    }
  }
}

// A variable is where the layout has it: behind one of four bytes, neighbours are no multiple of 8.
TEST(JoinWords, ConcernsWhereVariablesLie) {
  const std::string body = "ld.shared.u32 %t1, [small];\nadd.u32 %z, %t1, 0;\n" + four_loads("shared", "%s", 0);
  for (const bool first : {false, true}) {
    const std::string small = ".shared .align 4 .b8 small[4];\n", room = ".shared .align 4 .b8 room[7680];\n";
    const std::string text =
        kernel("st.shared.u32 [small], 5;\nbar.sync 0;\n" + body, first ? small + room : room + small);
    our_code_agrees(text, both_families, {0, 3});
    auto made = assemble_for(parse_text("join.ptx", text), "sm_86"),
         none = assemble_for(parse_text("join.ptx", text), "sm_86", 1);
    ASSERT_TRUE(made.ok() && none.ok());
    EXPECT_EQ(accesses(none->cubin, "sm_86").first - accesses(made->cubin, "sm_86").first, first ? 0 : 3);
  }
}

}  // namespace
}  // namespace rndn::assembler::testing::vectorize_memory_test
