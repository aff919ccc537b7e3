// The long tail: every full opcode of ordinary CUDA programs (ptx-usage.tsv) is taken or refused as `unsupported`; rare instructions of newer targets
// do what ptxas's code does.
#include "ptx/mnemonic.h"
#include "ptx/opcodes.h"
#include "tests/assembler/support.h"

namespace rndn::assembler::testing {
namespace {

// A kernel with the opcode once and operands that fit its places; empty when no form has so many.
std::string kernel_with(std::string_view opcode, const ptx::Instruction& i, uint32_t count, const std::string& target) {
  ptx::Instruction with = i;
  with.operand_count = static_cast<uint8_t>(count);
  const ptx::Form* form = ptx::find_form(with);
  ptx::Places p;
  if (!form || form->operands[0] == '*' || !ptx::places(*form, count, p)) return {};
  std::string declared, text(opcode);
  for (uint32_t k = 0; k < p.count; ++k) {
    const ptx::Place place = p.at[k];
    std::string operand;
    auto reg = [&](ptx::Type type) {
      if (ptx::type_bytes(type) == 1) type = ptx::Type::b16;
      if (type == ptx::Type::bf16) type = ptx::Type::b16;
      if (type == ptx::Type::bf16x2) type = ptx::Type::b32;
      const std::string name = fmt::format("%v{}_{}", declared.size(), k);
      declared += fmt::format(".reg .{} {};\n", ptx::type_name(type), name);
      return name;
    };
    switch (place.kind) {
      case 'a':
        operand = i.mods.space == ptx::Space::param      ? "[p]"
                  : i.mods.space == ptx::Space::constant ? "[c]"
                                                         : "[" + reg(ptx::Type::b64) + "]";
        break;
      case 'l': operand = "END"; break;
      case 'x': operand = "targets"; break;
      case 'i': operand = "4"; break;
      case 'v':
        if (i.mods.vector > 1) {
          operand = "{";
          for (uint32_t e = 0; e < i.mods.vector; ++e) operand += (e ? ", " : "") + reg(i.type);
          operand += "}";
          break;
        }
        [[fallthrough]];
      default: operand = reg(ptx::place_type(place.kind, i));
    }
    text += (k == 0 ? " " : place.bar ? "|" : ", ") + operand;
  }
  return fmt::format(
      ".version 7.8\n.target {}\n.address_size 64\n.const .align 16 .b8 c[64];\n.visible .entry k(.param .align 16 .b8 "
      "p[64])\n"
      "{{\n{}targets: .branchtargets END;\n{};\nEND:\nret;\n}}\n",
      target, declared, text);
}

enum class Verdict { taken, unsupported, broken };
Verdict judge(std::string_view opcode, const std::string& target, std::string& why) {
  const ptx::Mnemonic m = ptx::read_mnemonic(opcode, 80, 90);
  if (!m.problem.empty()) {
    why = m.problem;
    return m.kind == "unsupported" ? Verdict::unsupported : Verdict::broken;
  }
  const bool argument = m.instruction.op == ptx::Opcode::st && m.instruction.mods.space == ptx::Space::param;
  if (m.instruction.op == ptx::Opcode::call || argument) return Verdict::taken;  // calls_test.cpp, ptx/recursion.ptx
  Verdict verdict = Verdict::broken;
  for (uint32_t count = 0; count <= 6; ++count) {
    const std::string text = kernel_with(opcode, m.instruction, count, target);
    if (text.empty()) continue;
    SourceManager sources;
    DiagnosticSink sink;
    const ptx::Module module = ptx::parse(sources.add("opcode.ptx", text), sources, sink);
    if (sink.has_errors()) {
      why = render(sink, sources);
      return Verdict::broken;
    }
    auto result = assemble_for(module, target);
    if (result.ok()) {
      verdict = Verdict::taken;
      continue;
    }
    why = result.error().message;
    return why.find("unsupported") != std::string::npos ? Verdict::unsupported : Verdict::broken;
  }
  return verdict;
}

// The count is a ratchet. docs/ptx-opcodes.md is the result; RNDN_WRITE_DOCS=1 writes it anew.
TEST(LongTail, OpcodesOfOrdinaryProgramsAreTakenOrRefusedByName) {
  Result<std::string> table = read_file(RNDN_SOURCE_DIR "/tests/assembler/ptx-usage.tsv");
  ASSERT_TRUE(table.ok());
  size_t opcodes = 0, taken = 0, unsupported = 0;
  uint64_t uses = 0, uses_taken = 0;
  std::string refused, broken;
  for (size_t at = table->find('\n') + 1; at < table->size();) {
    const size_t end = table->find('\n', at);
    const std::string line = table->substr(at, end - at);
    at = end + 1;
    const size_t tab = line.find('\t');
    const std::string opcode = line.substr(0, tab);
    const uint64_t count = std::strtoull(line.c_str() + tab + 1, nullptr, 10);
    std::string why;
    const Verdict v = judge(opcode, "sm_90", why);
    ++opcodes, uses += count;
    if (v == Verdict::taken)
      ++taken, uses_taken += count;
    else if (v == Verdict::unsupported)
      ++unsupported, refused += fmt::format("| `{}` | {} |\n", opcode, count);
    else
      broken += fmt::format("{}: {}\n", opcode, why);
  }
  EXPECT_EQ(broken, "");
  const std::string report = fmt::format(
      "# Opcodes of ordinary CUDA programs\n\n"
      "Of {} full opcodes (mnemonic with all suffixes) in the PTX of 543 CUDA files, `rndn-as` takes {}: {} of {} "
      "uses. "
      "The others are refused as `unsupported`:\n\n| opcode | uses |\n| --- | --- |\n{}\n"
      "`test_assembler --gtest_filter=LongTail.*` checks this page and the counts; RNDN_WRITE_DOCS=1 writes it anew.\n",
      opcodes, taken, uses_taken, uses, refused);
  const std::string page = RNDN_SOURCE_DIR "/docs/ptx-opcodes.md";
  if (std::getenv("RNDN_WRITE_DOCS")) {
    ASSERT_TRUE(write_file(page, report).ok());
  }
  Result<std::string> written = read_file(page);
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(*written, report);
  EXPECT_EQ(taken + unsupported, opcodes);
  EXPECT_GE(taken, 543u);
}

// `size`: sets %r11, the bytes that are copied; `few`: the same of a copy of four.
void newer_targets(const std::string& size, const std::string& few) {
  const std::string text =
      ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
      ".reg .b32 %r<20>;\n.reg .b64 %d<8>;\n.reg .b16 %h<6>;\n.reg .pred %p;\n.shared .align 16 .b8 s[1536];\n"
      "ld.param.u64 %d0, [in];\nld.param.u64 %d1, [out];\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, %ctaid.x;\n"
      "mov.u32 %r2, %ntid.x;\nmad.lo.u32 %r3, %r1, %r2, %r0;\nmad.wide.u32 %d2, %r3, 24, %d0;\n"
      "mad.wide.u32 %d3, %r3, 768, %d1;\nld.global.u32 %r4, [%d2];\nld.global.u32 %r5, [%d2+8];\n"
      "mov.b32 {%h0, %h1}, %r4;\nmov.b32 {%h2, %h3}, %r5;\nset.lt.u32.f16x2 %r6, %r4, %r5;\n"
      "set.equ.s32.f16x2 %r7, %r4, %r5;\nset.ge.u32.f16 %r8, %h0, %h2;\nst.global.u32 [%d3], %r6;\n"
      "st.global.u32 [%d3+8], %r7;\nst.global.u32 [%d3+16], %r8;\n"
      // Copies of 0 to 16 bytes: the rest is zero.
      "mov.u32 %r9, s;\nmad.lo.u32 %r10, %r0, 16, %r9;\n" +
      size +
      "\n"
      "mad.wide.u32 %d4, %r0, 16, %d0;\ncp.async.cg.shared.global [%r10], [%d4], 16, %r11;\ncp.async.wait_all;\n"
      "ld.shared.v4.u32 {%r12, %r13, %r14, %r15}, [%r10];\nst.global.v4.u32 [%d3+32], {%r12, %r13, %r14, %r15};\n"
      "setp.gt.u32 %p, %r0, 40;\n@%p cp.async.ca.shared.global [%r10], [%d4], 4, " +
      few +
      ";\ncp.async.wait_all;\n"
      "ld.shared.u32 %r12, [%r10];\nst.global.u32 [%d3+48], %r12;\nret;\n}\n";
  const ptx::Module module = parse_text("newer.ptx", text);
  const std::vector<uint64_t> in = input_words();
  auto expected = run_interpreter(module, "k", in);
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  std::string why, ptxas = reference_tool("ptxas", why);
  const std::string path = temporary(".ptx");
  ASSERT_TRUE(write_file(path, text).ok());
  for (const std::string target : {"sm_80", "sm_86", "sm_89", "sm_90"}) {
    auto ours = assemble_for(module, target);
    ASSERT_TRUE(ours.ok()) << ours.error().message;
    auto got = run_simulator(target, ours->cubin, "k", in);
    ASSERT_TRUE(got.ok()) << target << ": " << got.error().message;
    EXPECT_EQ(difference(*expected, *got, 96), "") << target;
    if (ptxas.empty()) continue;
    std::string said;
    auto theirs = run_simulator(target, assemble_with_ptxas(ptxas, path, target, said), "k", in, true, nullptr, false);
    ASSERT_TRUE(theirs.ok()) << target << " (ptxas): " << theirs.error().message;
    EXPECT_EQ(difference(*theirs, *got, 96), "") << target;
  }
  unlink(path.c_str());
}

TEST(LongTail, InstructionsOfNewerTargetsDoWhatPtxasCodeDoes) {
  newer_targets("and.b32 %r11, %r0, 16;", "4");
  newer_targets("rem.u32 %r11, %r0, 17;", "2");
  newer_targets("rem.u32 %r11, %r0, 17;", "0");
}

// ptxas's code for these has instructions that the simulator does not know: against the PTX interpreter alone.
TEST(LongTail, RareInstructionsDoWhatThePtxMeans) {
  const ptx::Module module = parse_file(RNDN_SOURCE_DIR "/tests/assembler/long_tail.ptx");
  const std::vector<uint64_t> in = input_words();
  auto expected = run_interpreter(module, "k", in);
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  for (const std::string& target : targets) {
    auto ours = assemble_for(module, target);
    ASSERT_TRUE(ours.ok()) << ours.error().message;
    auto got = run_simulator(target, ours->cubin, "k", in);
    ASSERT_TRUE(got.ok()) << target << ": " << got.error().message;
    EXPECT_EQ(difference(*expected, *got, 96), "") << target;
  }
}

}  // namespace
}  // namespace rndn::assembler::testing
