// Code of more than one section, as `ptxas -g` writes it: functions that any code may call, by name or by address. And instructions that the
// simulator does not execute. Built by hand; runs without any outside tool.
#include "assembler/cubin/cubin.h"
#include "assembler/isa/isa.h"
#include "tests/simulator/support.h"

namespace rndn::sim::functions_test {
namespace {

using isa::Instruction;
using isa::Mnemonic;
using isa::ModifierKind;
using isa::Operand;
using isa::OperandKind;

Operand R(uint32_t r) { return {.kind = OperandKind::gpr, .reg = r}; }
Operand I(int64_t v) { return {.kind = OperandKind::immediate, .value = v}; }
Operand C(uint32_t offset) { return {.kind = OperandKind::constant, .value = offset}; }
const Operand RZ = R(isa::RZ);

// A section: its instructions, and what relocations put into them.
struct Section {
  const isa::Target& target;
  cubin::Kernel kernel;
  std::vector<isa::Word> words;

  Section(const isa::Target& t, std::string name, cubin::Kernel::Role role) : target(t) {
    kernel.name = std::move(name), kernel.role = role;
    kernel.registers = 40;
  }
  uint64_t next() const { return isa::instruction_address(target, words.size()); }
  void add(Mnemonic m, const std::vector<Operand>& operands,
           std::initializer_list<std::pair<ModifierKind, uint8_t>> modifiers = {}) {
    Instruction in;
    ASSERT_TRUE(isa::make(target, m, operands, in)) << isa::mnemonic_name(m);
    for (const auto& [kind, value] : modifiers) isa::set_modifier(in, kind, value);
    in.control.stall = 15;
    isa::Word w;
    ASSERT_TRUE(isa::encode(target, in, next(), w)) << isa::text(target, in);
    words.push_back(w);
  }
  void relocate(cubin::Relocation::Kind kind, std::string symbol, uint64_t addend = 0) {
    kernel.relocations.push_back({kind, next(), std::move(symbol), static_cast<int64_t>(addend)});
  }
  // The address of a place in code, in the register or (Volta) the pair.
  void address(uint32_t reg, const std::string& symbol, uint64_t place) {
    const bool volta = target.family == isa::Family::volta;
    relocate(cubin::Relocation::absolute_low_32, symbol, place);
    add(volta ? Mnemonic::MOV : Mnemonic::MOV32I, {R(reg), I(0)});
    if (!volta) return;
    relocate(cubin::Relocation::absolute_high_32, symbol, place);
    add(Mnemonic::MOV, {R(reg + 1), I(0)});
  }
  cubin::Kernel done() {
    kernel.code = isa::pack(target, words);
    return kernel;
  }
};

// k(u64 out): *out = g(f(20)), f called by name and g by an address; f adds 22, g multiplies by three.
std::vector<std::byte> calls(const isa::Target& t) {
  const bool volta = t.family == isa::Family::volta;
  Section k(t, "k", cubin::Kernel::entry), f(t, "f", cubin::Kernel::local), g(t, "g", cubin::Kernel::global);
  for (const uint32_t i : {0u, 1u}) k.add(Mnemonic::MOV, {R(2 + i), C(t.parameter_base + 4 * i)});
  if (t.descriptor_offset)
    k.add(Mnemonic::ULDC, {{.kind = OperandKind::uniform, .reg = 4}, C(t.descriptor_offset)},
          {{ModifierKind::Size, 5}});
  k.add(Mnemonic::MOV, {R(8), volta ? I(20) : RZ});
  if (volta) {
    k.address(20, "k", k.next() + 3 * t.instruction_bytes);
    k.relocate(cubin::Relocation::call, "f");
    k.add(Mnemonic::CALL_ABS, {I(0)});
    k.address(20, "k", k.next() + 5 * t.instruction_bytes);
    k.address(22, "g", 0);
    k.add(Mnemonic::CALL_ABS_R, {R(22)});
  } else {
    k.add(Mnemonic::IADD, {R(8), R(8), I(20)});
    k.relocate(cubin::Relocation::call, "f");
    k.add(Mnemonic::JCAL, {{.kind = OperandKind::label, .value = 0}});
    // JMX goes on behind the place that PRET names.
    const uint64_t back = isa::instruction_address(t, k.words.size() + 3);
    k.add(Mnemonic::PRET, {{.kind = OperandKind::label, .value = static_cast<int64_t>(back)}});
    k.address(22, "g", 0);
    k.add(Mnemonic::JMX, {R(22)});
  }
  const bool descriptor = t.descriptor_offset != 0;
  k.add(Mnemonic::STG, {{.kind = OperandKind::address,
                         .wide = true,
                         .descriptor = descriptor,
                         .uniform = static_cast<uint8_t>(descriptor ? 4 : 63),
                         .reg = 2},
                        R(8)});
  k.add(Mnemonic::EXIT, {});
  if (volta) {
    f.add(Mnemonic::IADD3, {R(8), R(8), I(22), RZ});
    g.add(Mnemonic::IMAD, {R(8), R(8), I(3), RZ});
    for (Section* s : {&f, &g}) s->add(Mnemonic::RET_ABS, {R(20), I(0)});
  } else {
    f.add(Mnemonic::IADD, {R(8), R(8), I(22)});
    g.add(Mnemonic::ISCADD, {R(8), R(8), R(8), I(1)});
    for (Section* s : {&f, &g}) s->add(Mnemonic::RET, {});
  }
  k.kernel.parameters = {{0, 8}}, k.kernel.parameter_bytes = 8;
  cubin::Image image;
  image.sm = image.ptx_target = t.sm;
  for (Section* s : {&k, &f, &g}) image.kernels.push_back(s->done());
  return cubin::write(image);
}

TEST(Functions, OfSectionsOfTheirOwnAreCalled) {
  for (const std::string& name : all_targets) {
    Machine m(name, 1 << 20);
    const auto module = m.load(calls(*isa::find_target(name)));
    ASSERT_TRUE(module.ok()) << name << ": " << module.error().message;
    const uint64_t out = upload(m, std::vector<uint32_t>(1));
    const auto ran = m.launch(*module, "k", {1, 1, 1}, {1, 1, 1}, 0, Parameters().add(out).bytes(), {});
    ASSERT_TRUE(ran.ok()) << name << ": " << ran.error().message;
    EXPECT_EQ(download<uint32_t>(m, out, 1), std::vector<uint32_t>{(20 + 22) * 3}) << name;
    EXPECT_FALSE(m.launch(*module, "f", {1, 1, 1}, {1, 1, 1}, 0, {}, {}).ok()) << name << ": a function is no kernel";
  }
}

// What has rows that print but no meaning in the simulator ends the launch with its text and place, where it is reached.
TEST(Functions, InstructionsWithoutMeaningAreNamed) {
  const std::string name = "sm_90";
  const isa::Target& t = *isa::find_target(name);
  for (const auto& [word, text] : std::vector<std::pair<isa::Word, std::string>>{
           {{0x01e000000c1879f0, 0x000fe20008701818}, "HGMMA.64x128x16.F32.BF16 R24, gdesc[UR12], R24"},
           {{0x000000060818723c, 0x000fe20000001818}, "HMMA.16816.F32 R24, R8, R6, R24"},
           {{0x0000000c0a0075b4, 0x000fe20008008000}, "UTMALDG.2D [UR12], [UR10]"},
           {{0x0180000c103f75b2, 0x0087220008000100}, "SYNCS.EXCH.64 URZ, [UR16+0x18000], UR12"},
           {{0x00000000020579a4, 0x001ea2000801417f}, "LDGMC.E.ADD.32.STRONG.SYS R5, [R2.64+URZ]"},
           {{0x000000080c007dbd, 0x000fe8000c00083f}, "STAS [R12.64], R8"},
           {{0x000000080c007dbe, 0x000fe8000800013f}, "REDAS.ADD [R12.64], R8"},
           {{0x0000000080097353, 0x000fc80000000000}, "RPCMOV.32 R9, Rpc.HI"},
           {{0x0000000100047547, 0x000fea000b800000}, "BRA.U UP0, "}}) {
    for (const bool reached : {true, false}) {
      Section k(t, "k", cubin::Kernel::entry);
      if (!reached) k.add(Mnemonic::EXIT, {});
      const uint64_t place = k.next();
      k.words.push_back(word);
      k.add(Mnemonic::EXIT, {});
      cubin::Image image;
      image.sm = image.ptx_target = t.sm;
      image.kernels.push_back(k.done());
      Machine m(name, 1 << 20);
      const auto module = m.load(cubin::write(image));
      ASSERT_TRUE(module.ok()) << module.error().message;
      const auto ran = m.launch(*module, "k", {1, 1, 1}, {32, 1, 1}, 0, {}, {});
      ASSERT_EQ(ran.ok(), !reached) << text;
      if (!reached) continue;
      EXPECT_NE(ran.error().message.find(text), std::string::npos) << ran.error().message;
      EXPECT_NE(ran.error().message.find(fmt::format("{:#x}", place)), std::string::npos) << ran.error().message;
      EXPECT_NE(ran.error().message.find("no meaning in the simulator"), std::string::npos) << ran.error().message;
    }
  }
}

}  // namespace
}  // namespace rndn::sim::functions_test
