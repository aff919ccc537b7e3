// The instruction tables without any tool: every row round-trips, words seen in the vendor's code print as its disassembler prints them,
// make() finds the forms that selection relies on, and what does not fit is refused.
#include "assembler/isa/isa.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include "assembler/isa/latencies.h"
#include "assembler/isa/make.h"

namespace rndn::isa {
namespace {

const Target& target(const char* name) { return *find_target(name); }
Operand gpr(uint32_t r) {
  Operand o;
  o.kind = OperandKind::gpr;
  o.reg = r;
  return o;
}
Operand pred(uint32_t p, bool negated = false) {
  Operand o;
  o.kind = OperandKind::predicate;
  o.reg = p;
  o.negated = negated;
  return o;
}
Operand imm(int64_t v) {
  Operand o;
  o.kind = OperandKind::immediate;
  o.value = v;
  return o;
}
Operand constant(uint8_t bank, int64_t offset) {
  Operand o;
  o.kind = OperandKind::constant;
  o.bank = bank;
  o.value = offset;
  return o;
}
Operand label(int64_t at) {
  Operand o;
  o.kind = OperandKind::label;
  o.value = at;
  return o;
}
Operand memory(uint32_t reg, int64_t offset, int uniform = -1) {
  Operand o;
  o.kind = OperandKind::address;
  o.reg = reg;
  o.value = offset;
  o.wide = true;
  if (uniform >= 0) {
    o.uniform = static_cast<uint16_t>(uniform);
    o.descriptor = true;
  }
  return o;
}

Instruction built(const Target& t, Mnemonic m, std::vector<Operand> operands) {
  Instruction in;
  EXPECT_TRUE(make(t, m, operands, in)) << mnemonic_name(m) << " on " << t.name;
  return in;
}
std::string hex(const Target& t, const Instruction& in, uint64_t address = 0) {
  Word w;
  if (!encode(t, in, address, w)) return "refused";
  return t.family == Family::volta ? fmt::format("{:016x}_{:016x}", w.hi, w.lo) : fmt::format("{:016x}", w.lo);
}

bool same(const Instruction& a, const Instruction& b) {
  return a.form == b.form && a.mnemonic == b.mnemonic && a.operand_count == b.operand_count && a.guard == b.guard &&
         a.guard_negated == b.guard_negated && a.control == b.control && a.modifiers == b.modifiers &&
         a.operands == b.operands;
}

// For every row of every target: an instruction with random fields encodes, and the word decodes to the same instruction.
TEST(Rows, EncodeThenDecodeIsTheIdentity) {
  std::mt19937_64 random(20261120);
  for (const Target& t : targets()) {
    std::set<uint32_t> seen;
    size_t words = 0;
    for (uint32_t f = 0; f < form_count(); ++f) {
      auto form = static_cast<FormId>(f);
      if (!(form_targets(form) & t.bit)) continue;
      for (int round = 0; round < 40; ++round) {
        Instruction in = random_instruction(form, random());
        uint64_t address = instruction_address(t, random() % 4096);
        for (Operand& o : in.operands)
          if (o.kind == OperandKind::label) o.value = static_cast<int64_t>(instruction_address(t, random() % 4096));
        Word w;
        ASSERT_TRUE(encode(t, in, address, w)) << form_name(form) << " on " << t.name << ": " << text(t, in);
        Instruction back;
        ASSERT_TRUE(decode(t, w, address, back))
            << form_name(form) << " on " << t.name << fmt::format(" {:016x}_{:016x}", w.hi, w.lo);
        ASSERT_TRUE(same(in, back)) << form_name(form) << " on " << t.name << ": " << text(t, in) << " became "
                                    << text(t, back);
        Word again;
        ASSERT_TRUE(encode(t, back, address, again));
        ASSERT_EQ(w, again);
        seen.insert(f);
        ++words;
      }
    }
    std::printf("%s: %zu rows, %zu words\n", std::string(t.name).c_str(), seen.size(), words);
    EXPECT_GT(seen.size(), t.family == Family::volta ? 250u : 150u);
  }
}

// Text of words with all scheduling fields zero.
void check_words(const char* file, size_t at_least) {
  std::ifstream in(std::string(RNDN_SOURCE_DIR) + "/tests/isa/corpus/" + file);
  ASSERT_TRUE(in);
  size_t words = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream fields(line);
    std::string name, hi, lo, expected;
    fields >> name >> hi >> lo;
    std::getline(fields, expected);
    expected.erase(0, 1);
    Word w{std::stoull(lo, nullptr, 16), std::stoull(hi, nullptr, 16)};
    const Target& t = target(name.c_str());
    Instruction d;
    if (!decode(t, w, 0, d)) {
      ADD_FAILURE() << "does not decode: " << line;
      continue;
    }
    std::string printed = text(t, d);
    while (!expected.empty() && expected.back() == ' ') expected.pop_back();
    while (!printed.empty() && printed.back() == ' ') printed.pop_back();
    EXPECT_EQ(printed, expected) << line;
    Word back;
    EXPECT_TRUE(encode(t, d, 0, back)) << line;
    EXPECT_EQ(back, w) << line;
    ++words;
  }
  EXPECT_GE(words, at_least);
}
TEST(Words, VoltaPrintsAsTheVendor) { check_words("words_volta.txt", 500); }
TEST(Words, PascalPrintsAsTheVendor) { check_words("words_pascal.txt", 300); }

// The worked example of a whole kernel, field by field.
TEST(Make, AmpereKernel) {
  const Target& t = target("sm_86");
  EXPECT_EQ(hex(t, built(t, Mnemonic::IMAD, {gpr(4), gpr(4), constant(0, 0), gpr(3)})),
            "000fc000078e0203_0000000004047a24");
  Instruction compare = built(t, Mnemonic::ISETP, {pred(0), gpr(4), constant(0, 0x170)});
  set_modifier(compare, ModifierKind::Compare, 6);
  set_modifier(compare, ModifierKind::Signed, 0);
  compare.control.stall = 13;
  EXPECT_EQ(hex(t, compare), "000fda0003f06070_00005c0004007a0c");
  EXPECT_EQ(text(t, compare), "ISETP.GE.U32.AND P0, PT, R4, c[0x0][0x170], PT");
  Instruction load = built(t, Mnemonic::LDG, {gpr(2), memory(2, 0, 4)});
  load.control = {1, true, 2, 7, 0, 0};
  EXPECT_EQ(hex(t, load), "000ea2000c1e1900_0000000402027981");
  Instruction store = built(t, Mnemonic::STG, {memory(4, 0, 4), gpr(7)});
  store.control = {1, true, 7, 7, 0, 0};
  EXPECT_EQ(hex(t, store), "000fe2000c101904_0000000704007986");
  Instruction branch = built(t, Mnemonic::BRA, {label(0xe0)});
  EXPECT_EQ(hex(t, branch, 0xe0), "000fc0000383ffff_fffffff000007947");
  const Target& hopper = target("sm_90");
  Instruction self = built(hopper, Mnemonic::BRA, {label(0x110)});
  EXPECT_EQ(hex(hopper, self, 0x110), "000fc0000383ffff_fffffffc00fc7947");
}

TEST(Make, OptionalOperandsMayBeLeftOut) {
  const Target& t = target("sm_80");
  EXPECT_EQ(text(t, built(t, Mnemonic::IADD3, {gpr(1), gpr(2), imm(-4), gpr(RZ)})), "IADD3 R1, R2, -0x4, RZ");
  EXPECT_EQ(text(t, built(t, Mnemonic::IADD3, {gpr(1), pred(3), gpr(2), gpr(4), gpr(RZ)})), "IADD3 R1, P3, R2, R4, RZ");
  Instruction x = built(t, Mnemonic::IADD3, {gpr(1), gpr(2), gpr(4), gpr(RZ), pred(3)});
  set_modifier(x, ModifierKind::X, 1);
  EXPECT_EQ(text(t, x), "IADD3.X R1, R2, R4, RZ, P3, !PT");
  EXPECT_EQ(text(t, built(t, Mnemonic::SEL, {gpr(1), gpr(2), imm(7), pred(1, true)})), "SEL R1, R2, 0x7, !P1");
  EXPECT_EQ(text(t, built(t, Mnemonic::EXIT, {})), "EXIT");
  Instruction none;
  EXPECT_FALSE(make(t, Mnemonic::VIMNMX, std::vector<Operand>{gpr(1), gpr(2), gpr(3)}, none))
      << "VIMNMX exists on sm_90 only";
  EXPECT_TRUE(make(target("sm_90"), Mnemonic::VIMNMX, std::vector<Operand>{gpr(1), gpr(2), gpr(3)}, none));
  EXPECT_FALSE(make(t, Mnemonic::IADD3, std::vector<Operand>{gpr(1), gpr(2), imm(1), imm(2)}, none))
      << "one immediate only";
}

TEST(Make, ConversionsTakeTheOpcodeOfTheirFormats) {
  const Target& t = target("sm_86");
  Instruction in = built(t, Mnemonic::I2F, {gpr(7), gpr(2)});
  EXPECT_EQ(hex(t, in), "000fc00000201400_0000000200077306");
  set_modifier(in, ModifierKind::Signed, 0);
  set_modifier(in, ModifierKind::SourceSize, 3);
  EXPECT_EQ(hex(t, in), "000fc00000301000_0000000200077312");
  EXPECT_EQ(register_count(in, 1), 2u);
  set_modifier(in, ModifierKind::SourceSize, 2);
  EXPECT_EQ(hex(t, in), "000fc00000201000_0000000200077306");
  Instruction narrow = built(t, Mnemonic::F2F, {gpr(7), gpr(2)});
  set_modifier(narrow, ModifierKind::SourceFormat, 3);
  EXPECT_EQ(hex(t, narrow), "000fc00000301000_0000000200077310");
}

// One cache sees operands of every row, as they are and with one changed: in its value, its kind, its sign, an address in its uniform register, or left out.
// What it knows of kinds of operands from one list must not mislead it with another.
TEST(Make, TheCacheFindsWhatASearchFinds) {
  std::mt19937_64 random(20261123);
  for (const Target& t : targets()) {
    FormCache cache;
    size_t found = 0, refused = 0;
    for (int round = 0; round < 8; ++round)
      for (uint32_t f = 0; f < form_count(); ++f) {
        const auto form = static_cast<FormId>(f);
        if (!(form_targets(form) & t.bit)) continue;
        const Instruction in = random_instruction(form, random());
        std::vector<Operand> operands(in.operands.begin(), in.operands.begin() + in.operand_count);
        if (!operands.empty()) {
          Operand& o = operands[random() % operands.size()];
          switch (random() % 7) {
            case 0: o.value = static_cast<int64_t>(random()) >> random() % 63; break;
            case 1: o = imm(static_cast<int32_t>(random())); break;
            case 2: o = gpr(random() % 255); break;
            case 3: o.negated = !o.negated; break;
            case 4: o.uniform = random() % 2 ? URZ : 4; break;
            case 5: o = {}; break;
            default: break;
          }
        }
        Instruction searched, made;
        const bool any = make(t, in.mnemonic, operands, searched);
        const RowFacts* row = make(t, in.mnemonic, std::span<const Operand>(operands), made, cache);
        ASSERT_EQ(row != nullptr, any) << form_name(form) << " on " << t.name;
        ++(any ? found : refused);
        if (!any) continue;
        ASSERT_TRUE(same(made, searched))
            << form_name(form) << " on " << t.name << ": " << text(t, searched) << ", not " << text(t, made);
        ASSERT_EQ(row, &row_facts(made.form));
      }
    EXPECT_GT(found, 1000u) << t.name;
    EXPECT_GT(refused, 300u) << t.name;
  }
}

// nvdisasm 11.8's text of the same words: the literal is a half, or the upper half of a double.
TEST(Text, LiteralsOfPascalsConversions) {
  const Target& t = target("sm_61");
  const std::pair<uint64_t, const char*> words[] = {
      {0x38a8000387d70605, "F2F.F32.F16 R5, 0.56103515625"},
      {0x39a8000387d70605, "F2F.F32.F16 R5, 0.56103515625"},
      {0x38a8000387d70a05, "F2F.F32.F32 R5, 7.9823413260525961088e-37"},
      {0x39a80003ff070e05, "F2F.F32.F64 R5, -1.9881350131289009958e-289"},
      {0x38b0000387d70605, "F2I.U32.F16 R5, 0.56103515625"},
  };
  for (const auto& [bits, expected] : words) {
    Instruction in;
    ASSERT_TRUE(decode(t, {bits, 0}, 0, in)) << expected;
    EXPECT_EQ(text(t, in), expected);
  }
}

TEST(Make, Pascal) {
  const Target& t = target("sm_61");
  EXPECT_EQ(hex(t, built(t, Mnemonic::MOV, {gpr(1), constant(0, 0x20)})), "4c98078000870001");
  Instruction load = built(t, Mnemonic::LDG, {gpr(2), memory(2, 0)});
  EXPECT_EQ(hex(t, load), "eed4200000070202");
  EXPECT_EQ(register_count(load, 1), 2u);
  Instruction sync = built(t, Mnemonic::SSY, {label(0xe8)});
  EXPECT_EQ(hex(t, sync, 0x30), "e29000000a800000") << "the head of a bundle is addressed by the bundle";
  Instruction big;
  EXPECT_FALSE(make(t, Mnemonic::IADD, std::vector<Operand>{gpr(1), gpr(2), imm(0x123456)}, big)) << "20 bits";
  EXPECT_TRUE(make(t, Mnemonic::IADD32I, std::vector<Operand>{gpr(1), gpr(2), imm(0x123456)}, big));
  Instruction add = built(t, Mnemonic::IADD, {gpr(1), gpr(2), gpr(3)});
  EXPECT_FALSE(writes_carry(add) || reads_carry(add));
  set_modifier(add, ModifierKind::CC, 1);
  EXPECT_TRUE(writes_carry(add));
  set_modifier(add, ModifierKind::X, 1);
  EXPECT_TRUE(reads_carry(add));
}

// I2FP and F2IP round to nearest or towards zero; the codes between are words that the vendor's disassembler calls invalid.
TEST(Decode, RefusesInvalidRoundings) {
  for (uint64_t rounding = 0; rounding < 4; ++rounding) {
    const bool valid = rounding == 0 || rounding == 3;
    Instruction in;
    EXPECT_EQ(decode(target("sm_86"), {0x0000001600197245, 0x000fca0000201000 | rounding << 14}, 0, in), valid);
    EXPECT_EQ(decode(target("sm_90"), {0x00000020ff137243, 0x001fcc00000004ff | rounding << 14}, 0, in), valid);
  }
}

TEST(Encode, RefusesWhatDoesNotFit) {
  const Target& t = target("sm_86");
  Instruction in = built(t, Mnemonic::IADD3, {gpr(1), gpr(2), gpr(4), gpr(RZ)});
  EXPECT_NE(hex(t, in), "refused");
  in.operands[0].reg = first_virtual;
  EXPECT_EQ(hex(t, in), "refused") << "a virtual register";
  in.operands[0].reg = 1;
  in.guard = 8;
  EXPECT_EQ(hex(t, in), "refused") << "no such guard";
  in.guard = 0;
  EXPECT_EQ(hex(target("sm_61"), in), "refused") << "another family";
  in.control.stall = 16;
  EXPECT_EQ(hex(t, in), "refused") << "no such stall";
  Instruction load = built(t, Mnemonic::LDG, {gpr(2), memory(2, 0x7fffff, 4)});
  EXPECT_NE(hex(t, load), "refused");
  load.operands[1].value = 0x800000;
  EXPECT_EQ(hex(t, load), "refused") << "24 bits of offset";
  Instruction branch = built(t, Mnemonic::BRA, {label(0x22)});
  EXPECT_EQ(hex(t, branch), "refused") << "a target between instructions";
}

// nvdisasm reads no RZ as the first of ATOMG.CAS on sm_75.
TEST(Encode, CompareAndSwapOfTuring) {
  const Target& t = target("sm_75");
  const auto cas = [&](uint32_t compare, uint32_t swap, uint8_t type) {
    Instruction in = built(t, Mnemonic::ATOMG_CAS, {pred(PT), gpr(2), memory(2, 0), gpr(compare), gpr(swap)});
    set_modifier(in, ModifierKind::AtomType, type);
    return hex(t, in);
  };
  EXPECT_EQ(cas(24, 25, 0), "000fc000001f4119_00000018020273a9");
  EXPECT_EQ(cas(24, 26, 2), "000fc000001f451a_00000018020273a9");
  EXPECT_EQ(cas(24, 26, 0), "000fc000001f411a_00000018020273a9");
  EXPECT_EQ(cas(24, RZ, 2), "000fc000001f45ff_00000018020273a9");
  EXPECT_EQ(cas(RZ, 24, 0), "refused");
  Instruction back;
  ASSERT_TRUE(decode(t, {0x00000018020273a9, 0x00000000001f451c}, 0, back)) << "64 bits, R24, R28";
  EXPECT_EQ(back.operand_count, 5u);
  EXPECT_EQ(register_count(back, 3), 2u);
  EXPECT_EQ(register_count(back, 4), 2u);
  EXPECT_FALSE(decode(t, {0x000000ff020273a9, 0x00000000001f41ff}, 0, back)) << "RZ, RZ";
}

TEST(Access, WidthsFollowModifiers) {
  const Target& t = target("sm_86");
  Instruction load = built(t, Mnemonic::LDG, {gpr(4), memory(2, 0, 4)});
  EXPECT_EQ(access(load, 0), Access::write);
  EXPECT_EQ(access(load, 1), Access::read);
  EXPECT_EQ(register_file(load, 1), RegisterFile::gpr);
  EXPECT_EQ(register_count(load, 0), 1u);
  EXPECT_EQ(register_count(load, 1), 2u);
  set_modifier(load, ModifierKind::Size, 6);
  EXPECT_EQ(register_count(load, 0), 4u);
  Instruction wide = built(t, Mnemonic::IMAD_WIDE, {gpr(4), gpr(1), gpr(2), gpr(6)});
  EXPECT_EQ(register_count(wide, 0), 2u);
  EXPECT_EQ(register_count(wide, 2), 1u);
  EXPECT_EQ(register_count(wide, 4), 2u);
  Instruction r2p = built(t, Mnemonic::R2P, {gpr(4), imm(5)});
  EXPECT_EQ(implicit_predicate_writes(r2p), 5u);
}

TEST(Access, RowsTellWidthsAsInstructionsDo) {
  std::mt19937_64 random(20261124);
  size_t varying = 0;
  for (uint32_t f = 0; f < form_count(); ++f)
    for (int round = 0; round < 40; ++round) {
      const Instruction in = random_instruction(static_cast<FormId>(f), random());
      const RowFacts& row = row_facts(in.form);
      for (uint32_t k = 0; k < in.operand_count; ++k) {
        if (register_file(in, k) == RegisterFile::none || row.widths[k].ask) continue;
        ASSERT_EQ(row.widths[k].of(in), register_count(in, k)) << form_name(in.form) << ", operand " << k;
        varying += row.widths[k].varies;
        if (!row.widths[k].varies) {
          ASSERT_EQ(row.widths[k].of({}), register_count(in, k));
        }
      }
    }
  EXPECT_GT(varying, 1000u);
}

TEST(Latencies, AgreeWithTheMeasurements) {
  auto cycles = [](const char* name, LatencyClass p, LatencyClass c, Role role) {
    return static_cast<int>(issue_distance(target(name), p, c, role).cycles);
  };
  using L = LatencyClass;
  EXPECT_EQ(cycles("sm_90", L::alu, L::alu, Role::gpr), 4);
  EXPECT_EQ(cycles("sm_90", L::alu, L::fma, Role::gpr), 5);
  EXPECT_EQ(cycles("sm_90", L::fp64, L::fp64, Role::gpr), 8);
  EXPECT_EQ(cycles("sm_90", L::fp64, L::alu, Role::gpr), 10);
  EXPECT_EQ(cycles("sm_86", L::alu, L::branch, Role::guard), 13);
  EXPECT_EQ(cycles("sm_86", L::fp64, L::branch, Role::guard), 14);
  EXPECT_EQ(cycles("sm_75", L::alu, L::alu, Role::gpr), 4);
  EXPECT_EQ(cycles("sm_75", L::alu, L::global_store, Role::gpr), 8);
  EXPECT_EQ(cycles("sm_75", L::wide, L::shared_load, Role::gpr), 8);
  EXPECT_EQ(cycles("sm_75", L::half, L::half, Role::gpr), 6);
  EXPECT_EQ(cycles("sm_75", L::fp64, L::branch, Role::guard), 15);
  EXPECT_EQ(cycles("sm_61", L::alu, L::alu, Role::gpr), 6);
  EXPECT_EQ(cycles("sm_61", L::alu, L::alu, Role::predicate), 13);
  EXPECT_TRUE(scoreboards(target("sm_86"), L::fp64).write);
  EXPECT_FALSE(scoreboards(target("sm_90"), L::fp64).write);
  EXPECT_TRUE(scoreboards(target("sm_61"), L::fp64).write);
  // What is not known is the largest of its role, never zero.
  for (const Target& t : targets())
    for (int p = 0; p <= static_cast<int>(L::nop); ++p)
      for (int c = 0; c <= static_cast<int>(L::nop); ++c)
        for (Role role : {Role::gpr, Role::predicate, Role::guard, Role::carry, Role::uniform, Role::uniform_predicate,
                          Role::uniform_guard}) {
          Distance d = issue_distance(t, static_cast<L>(p), static_cast<L>(c), role);
          EXPECT_GE(d.cycles, 1);
          if (role == Role::guard) {
            EXPECT_GE(d.cycles, 13);
          }
        }
}

TEST(Stream, PackAndUnpackAreInverse) {
  std::mt19937_64 random(7);
  for (const Target& t : targets())
    for (size_t n : {0u, 1u, 2u, 3u, 4u, 50u}) {
      std::vector<Word> words(n);
      for (Word& w : words) w = {random(), t.family == Family::volta ? random() : random() & 0x1fffff};
      auto bytes = pack(t, words);
      auto back = unpack(t, bytes);
      ASSERT_GE(back.size(), n);
      for (size_t i = 0; i < n; ++i) {
        EXPECT_EQ(back[i].word, words[i]);
        EXPECT_EQ(back[i].address, instruction_address(t, i));
      }
      EXPECT_LT(back.size(), n + 3);
    }
}

}  // namespace
}  // namespace rndn::isa
