// cp.async: every form by our code, by ptxas's and by the PTX interpreter; that the machine's own instructions are used, and hardly more than by ptxas; and
// that nothing but its waits waits for the copies.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "assembler/assemble.h"
#include "assembler/backend/backend.h"
#include "assembler/check/check.h"
#include "assembler/flow/structurize.h"
#include "tests/assembler/three_ways.h"

namespace rndn::assembler::testing {
namespace {

using isa::Mnemonic;
using ::testing::AnyOf;

// Copies from %d6 (a multiple of 16) and %in (of 8) to %r4, into a cell of 16 bytes of 5s; what is there then is the statement's result.
std::string copied(const std::string& copy, const std::string& wait = "cp.async.wait_all") {
  return "mov.b64 %d0, 5; mov.u32 %r4, cells; mad.lo.u32 %r4, %t, 16, %r4; and.b64 %d6, %in, -16; st.shared.v2.b64 "
         "[%r4], {%d0, %d0}; " +
         copy + "; " + wait + "; ld.shared.v2.b64 {%d4, %d5}, [%r4]; mad.lo.u64 %d0, %d4, 3, %d5";
}
std::string with_cells(const std::vector<std::string>& statements) {
  return with(kernel("7.8", "sm_80", statements),
              ".reg .pred %q<16>; .reg .b32 %n<32>; .shared .align 16 .b8 cells[1536];");
}

TEST(AsyncCopies, SizesCachesAndHints) {
  std::vector<std::string> statements;
  for (const char* hint : {"", ".L2::64B", ".L2::128B", ".L2::256B"}) {
    statements.push_back(copied(fmt::format("cp.async.cg.shared.global{} [%r4], [%d6], 16", hint)));
    statements.push_back(copied(fmt::format("cp.async.ca.shared.global{} [%r4], [%d6], 16", hint)));
    statements.push_back(copied(fmt::format("cp.async.ca.shared::cta.global{} [%r4+8], [%in], 8", hint)));
    statements.push_back(copied(fmt::format("cp.async.ca.shared.global{} [%r4+4], [%in+4], 4", hint)));
  }
  EXPECT_THAT(three_ways(with_cells(statements), newer, true), AnyOf(-1, static_cast<int>(newer.size())));
}

TEST(AsyncCopies, ModifiersInOtherOrders) {
  std::vector<std::string> statements;
  for (const char* copy : {"cp.async.shared.global.ca", "cp.async.shared.ca.global", "cp.async.L2::128B.ca.shared.global",
                           "cp.async.shared::cta.L2::64B.global.cg", "cp.async.cg.L2::256B.shared.global"})
    statements.push_back(copied(fmt::format("{} [%r4], [%d6], 16", copy)));
  EXPECT_THAT(three_ways(with_cells(statements), newer, true), AnyOf(-1, static_cast<int>(newer.size())));
}

TEST(AsyncCopies, NumbersOfBytes) {
  for (const int size : {4, 8, 16}) {
    const std::string copy = fmt::format("cp.async.{}.shared.global [%r4], [{}], {}, ", size == 16 ? "cg" : "ca",
                                         size == 16 ? "%d6" : "%in", size);
    std::vector<std::string> statements;
    for (const int bytes : {0, 1, size / 2, size - 1, size}) statements.push_back(copied(copy + std::to_string(bytes)));
    // Any number; the same under a guard.
    const std::string any = fmt::format("rem.u32 %n0, %r2, {}; ", size + 1);
    statements.push_back(copied(any + copy + "%n0"));
    statements.push_back(copied(any + "@%p1 " + copy + "%n0"));
    // None or all, by predicates with one value and with several; something else that is chosen.
    statements.push_back(copied(fmt::format("selp.b32 %n1, {}, 0, %p1; ", size) + copy + "%n1"));
    statements.push_back(copied(fmt::format("selp.b32 %n2, 0, {}, %p1; @!%p1 ", size) + copy + "%n2"));
    statements.push_back(copied(fmt::format("setp.lt.s32 %q0, %r3, 0; selp.b32 %n3, {}, 0, %q0; setp.lt.s32 %q0, %r1, "
                                            "0; ",
                                            size) +
                                copy + "%n3"));
    statements.push_back(
        copied(fmt::format("setp.lt.s32 %q0, %r2, %r1; selp.b32 %n4, {}, 0, %q0; ", size) + copy + "%n4"));
    statements.push_back(
        copied(fmt::format("selp.b32 %n5, 0, {}, %p1; selp.b32 %n5, 1, 2, %p1; ", size) + copy + "%n5"));
    statements.push_back(copied("setp.lt.s32 %q1, %r1, %r2; " + copy + "%q1"));
    statements.push_back(copied("setp.lt.s32 %q1, %r2, %r3; @%p1 " + copy + "%q1"));
    statements.push_back(copied(fmt::format("selp.b32 %n6, 3, {}, %p1; ", size) + copy + "%n6"));
    EXPECT_THAT(three_ways(with_cells(statements), newer, true), AnyOf(-1, static_cast<int>(newer.size()))) << size;
  }
}

// Copies that a selp of its own decides need nothing but a predicate.
TEST(AsyncCopies, NoneOrAllIsAPredicate) {
  const std::string text =
      with_cells({copied("selp.b32 %n1, 16, 0, %p1; cp.async.cg.shared.global [%r4], [%d6], 16, %n1"),
                  copied("setp.lt.s32 %q1, %r1, %r2; cp.async.ca.shared.global [%r4], [%in], 8, %q1")});
  EXPECT_THAT(three_ways(text, newer, true), AnyOf(-1, static_cast<int>(newer.size())));
  for (const std::string& target : newer) {
    uint32_t by_predicate = 0;
    for (const isa::Instruction& i : instructions_of(assemble_for(parse_text("k.ptx", text), target)->cubin, target))
      if (i.mnemonic == Mnemonic::LDGSTS) {
        by_predicate += i.operands[2].reg != isa::PT;
        EXPECT_EQ(isa::modifier(i, isa::ModifierKind::ZFill), 0) << target;
      }
    EXPECT_EQ(by_predicate, 2u) << target;
  }
}

TEST(AsyncCopies, AddressesGuardsAndGroups) {
  const std::string copy = "cp.async.ca.shared.global [%r4], [%in], 8";
  const std::vector<std::string> statements = {
      copied("add.u64 %d7, %d6, -65536; cp.async.cg.shared.global [%r4], [%d7+65536], 16"),
      copied("add.u64 %d7, %d6, 4096; cp.async.cg.shared.global [%r4], [%d7+-4096], 16"),
      copied("add.u64 %d7, %in, -2048; cp.async.ca.shared.global [%r4], [%d7+2048], 8"),
      copied("add.u64 %d7, %in, -2044; cp.async.ca.shared.global [%r4], [%d7+2044], 4"),
      copied("add.u32 %r5, %r4, 600000; cp.async.ca.shared.global [%r5+-600000], [%in], 8"),
      copied("add.u64 %d7, %in, -9000000; cp.async.ca.shared.global [%r4], [%d7+9000000], 8, 5"),
      copied("@%p1 " + copy),
      copied("@!%p1 " + copy, "@!%p1 cp.async.commit_group; @!%p1 cp.async.wait_group 0"),
      copied(copy, "cp.async.commit_group; @%p1 cp.async.wait_group 0; @!%p1 cp.async.wait_all"),
      copied(copy, "cp.async.commit_group; cp.async.wait_group 0"),
      // The older group, then both; what is in no group.
      copied(copy + "; cp.async.commit_group; cp.async.ca.shared.global [%r4+8], [%in], 4; cp.async.commit_group; "
                    "cp.async.wait_group 1; ld.shared.b64 %d7, [%r4]; add.u64 %d7, %d7, 1; st.shared.b64 [%r4], %d7",
             "cp.async.wait_group 0"),
      copied(copy + "; cp.async.commit_group; cp.async.commit_group; cp.async.wait_group 1; ld.shared.b64 %d7, [%r4]; "
                    "cp.async.ca.shared.global [%r4+8], [%in], 8; cp.async.wait_group 70; not.b64 %d7, %d7; "
                    "st.shared.b64 [%r4], %d7"),
      // What was read is written, what was written is copied over.
      copied("ld.shared.b64 %d7, [%r4]; " + copy +
             "; st.shared.b64 [%r4+8], %d7; cp.async.wait_all; ld.shared.b64 %d7, [%r4+8]; "
             "cp.async.ca.shared.global [%r4+8], [%in+8], 8"),
      // Lanes that copy, end groups and wait at different places.
      copied("@%p1 bra OTHER; " + copy +
             "; cp.async.commit_group; cp.async.ca.shared.global [%r4+8], [%in+16], 4; cp.async.wait_group 0; bra MET; "
             "OTHER: cp.async.ca.shared.global [%r4], [%in+8], 8; cp.async.commit_group; MET: mov.b64 %d7, 0"),
  };
  EXPECT_THAT(three_ways(with_cells(statements), newer, true), AnyOf(-1, static_cast<int>(newer.size())));
}

// The kernel of a file of tests/corpus.
ptx::Module corpus_file(const std::string& name) {
  return parse_file(RNDN_SOURCE_DIR "/tests/corpus/" + name + ".ptx");
}
const std::vector<std::string> corpus_names = {"copy_async", "copy_pipeline", "copy_parts"};

// Instructions up to the last that ends a thread.
size_t count(const std::vector<isa::Instruction>& code) {
  const auto last =
      std::find_if(code.rbegin(), code.rend(), [](const isa::Instruction& i) { return i.mnemonic == Mnemonic::EXIT; });
  return static_cast<size_t>(code.rend() - last);
}

TEST(AsyncCopies, TakeNoMoreInstructionsThanThoseOfPtxas) {
  std::string why;
  const std::string ptxas = reference_tool("ptxas", why);
  for (const std::string& target : newer)
    for (const std::string& name : corpus_names) {
      const std::vector<isa::Instruction> ours =
          instructions_of(assemble_for(corpus_file(name), target)->cubin, target);
      EXPECT_TRUE(std::ranges::any_of(ours, [](const auto& i) { return i.mnemonic == Mnemonic::LDGSTS; })) << name;
      EXPECT_TRUE(std::ranges::any_of(ours, [](const auto& i) { return i.mnemonic == Mnemonic::LDGDEPBAR; })) << name;
      if (ptxas.empty() || name == "copy_parts") continue;  // three remainders, which are longer
      std::string said;
      const auto theirs = instructions_of(
          assemble_with_ptxas(ptxas, RNDN_SOURCE_DIR "/tests/corpus/" + name + ".ptx", target, said), target);
      EXPECT_LE(static_cast<double>(count(ours)), 1.3 * static_cast<double>(count(theirs))) << name << " " << target;
    }
}

// The bytes of a copy arrive when they are waited for, and no sooner: without a wait, or with one that leaves a group more under way, the code gives
// something else. Not so where the group more has no copies (wait_all behind a branch), or where lanes that came before have waited.
TEST(AsyncCopies, MissingWaitsAreNoticed) {
  struct Waits {
    size_t all, missed_when_gone, missed_when_short;
    bool operator==(const Waits&) const = default;
  };
  const std::map<std::string, Waits> known = {
      {"copy_pipeline", {1, 1, 1}}, {"copy_async", {2, 2, 2}}, {"copy_parts", {4, 3, 2}}};
  const std::vector<uint64_t> in = input_words();
  for (const std::string& target : newer)
    for (const auto& [name, waits] : known) {
      const ptx::Module module = corpus_file(name);
      const auto expected = run_interpreter(module, name, in);
      ASSERT_TRUE(expected.ok()) << expected.error().message;
      const std::vector<std::byte> cubin = assemble_for(module, target)->cubin;
      const auto is_missed = [&, name = name](size_t at, uint64_t word) {
        std::vector<std::byte> faulty = cubin;
        std::memcpy(faulty.data() + at, &word, sizeof word);
        const auto got = run_simulator(target, faulty, name, in);
        return !got.ok() || !difference(*expected, *got, 96).empty();
      };
      Waits found{};
      for (size_t at = 0; at + 16 <= cubin.size(); at += 16) {
        constexpr uint64_t wait = 0x0000'8000'0000'791a, group = uint64_t{1} << 38, nop = 0x7918;  // DEPBAR.LE SB0, 0
        uint64_t word;
        std::memcpy(&word, cubin.data() + at, sizeof word);
        if ((word & ~(63 * group)) != wait) continue;
        ++found.all;
        found.missed_when_gone += is_missed(at, nop);
        found.missed_when_short += is_missed(at, word + group);
      }
      EXPECT_EQ(found, waits) << target << " " << name << ": " << found.all << " " << found.missed_when_gone << " "
                              << found.missed_when_short;
    }
}

// Checkers of the schedule: nothing else has the scoreboard of the groups, which has to be set.
TEST(AsyncCopies, GroupsHaveAScoreboardOfTheirOwn) {
  for (const std::string& name : newer) {
    const isa::Target& target = *isa::find_target(name);
    std::vector<isa::Instruction> code = instructions_of(assemble_for(corpus_file("copy_pipeline"), name)->cubin, name);
    std::vector<uint64_t> addresses;
    for (size_t k = 0; k < code.size(); ++k) addresses.push_back(isa::instruction_address(target, k));
    ASSERT_TRUE(check_schedule(target, code, addresses).empty()) << name;
    for (isa::Instruction& i : code) {
      const isa::Control control = i.control;
      if (i.mnemonic == Mnemonic::LDGDEPBAR) i.control.write_barrier = 7;
      if (i.mnemonic == Mnemonic::LDS && control.write_barrier != 7) i.control.write_barrier = 0;
      if (i.control != control) {
        EXPECT_FALSE(check_schedule(target, code, addresses).empty()) << name << " " << isa::text(target, i);
      }
      i.control = control;
    }
  }
}

}  // namespace
}  // namespace rndn::assembler::testing
