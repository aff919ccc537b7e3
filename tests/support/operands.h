// Kernels that give operations every kind of operand, made from operands.txt: what a compiler can put into registers, immediates, constant banks and
// uniform registers. Used to see that the instruction tables know each such form, and that it computes the same everywhere.
//
// .entry operands_N(in, out, p0, p1, p2): thread i of a block (x) reads four words of 64 bits at in + 32*i (three sources, and %x), and writes the result of
// the k-th combination of kinds to out + 128*i + 8*k. Parameters beyond the number of sources are left out.
#pragma once
#include <fmt/format.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace rndn::testing {

struct OperandKernel {
  std::string name;                // operands_12
  std::string operation;           // of the table
  std::string result;              // its type
  std::vector<std::string> types;  // of the sources
  std::vector<std::string> kinds;  // "RI", one letter per source
  std::string text;                // the kernel
};

namespace operands {
struct Class {
  char letter;  // of register names
  const char* type;
  uint32_t bits;
};
inline Class class_of(const std::string& type) {
  if (type == "f32") return {'f', "f32", 32};
  if (type == "f64") return {'e', "f64", 64};
  if (type == "f16x2") return {'r', "b32", 32};
  const uint32_t bits = static_cast<uint32_t>(std::stoul(type.substr(1)));
  return bits == 64 ? Class{'w', "b64", 64} : bits == 32 ? Class{'r', "b32", 32} : Class{'h', "b16", 16};
}
inline std::string immediate(const std::string& type) {
  return type == "f32"     ? "0f3FC00000"
         : type == "f64"   ? "0d3FF8000000000000"
         : type == "f16x2" ? "0x3c003e00"
         : type == "f16"   ? "0x3e00"
         : type[1] == '6'  ? "0x123456789"
         : type[1] == '3'  ? "0x1234567"
                           : "0x1235";
}
inline void replace(std::string& s, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = s.find(from, at)) != std::string::npos; at += to.size()) s.replace(at, from.size(), to);
}
}  // namespace operands

inline std::vector<OperandKernel> operand_kernels(const std::string& table = RNDN_SOURCE_DIR
                                                  "/tests/support/operands.txt") {
  using namespace operands;
  std::vector<OperandKernel> all;
  std::vector<std::string> kinds;
  std::ifstream in(table);
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream fields(line);
    std::string word;
    if (line[0] == ':') {
      fields >> word, kinds.clear();
      while (fields >> word) kinds.push_back(word);
      continue;
    }
    OperandKernel k;
    std::vector<std::string> immediates;
    fields >> k.result >> word;
    std::getline(fields >> std::ws, k.operation);
    std::istringstream types(word);
    for (std::string t; std::getline(types, t, ',');) {
      const size_t equal = t.find('=');
      immediates.push_back(equal == t.npos ? immediate(t) : t.substr(equal + 1));
      k.types.push_back(t.substr(0, equal));
    }
    k.kinds = kinds;
    k.name = fmt::format("operands_{}", all.size());
    std::string& s = k.text;
    s = fmt::format(".visible .entry {}(.param .u64 in, .param .u64 out", k.name);
    for (size_t i = 0; i < k.types.size(); ++i) s += fmt::format(", .param .{} p{}", class_of(k.types[i]).type, i);
    const Class d = class_of(k.result);
    s += fmt::format(
        ") {{\n  .reg .pred %p, %q; .reg .b32 %x, %c0, %c1, %i, %u<3>; .reg .b64 %in, %out; .reg .{} %d;\n"
        "  ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u32 %c0, %ctaid.x; mov.u32 %i, "
        "%tid.x;\n"
        "  mad.wide.u32 %in, %i, 32, %in; mad.wide.u32 %out, %i, 128, %out;\n"
        "  ld.global.u32 %x, [%in+24]; mov.u32 %c1, %ctaid.y;\n",
        d.type);
    for (size_t i = 0; i < k.types.size(); ++i) {
      const Class c = class_of(k.types[i]);
      const std::string type = c.type;
      s += fmt::format("  .reg .{0} %{1}R{2}, %{1}P{2}, %{1}C{2}, %{1}U{2}, %{1}I{2};\n", type, c.letter, i);
      s += fmt::format(
          "  ld.global.{0} %{1}R{2}, [%in+{3}]; ld.param.{0} %{1}P{2}, [p{2}]; ld.const.{0} %{1}C{2}, "
          "[operands_table+{3}];\n",
          type, c.letter, i, 8 * i);
      // Values of whole blocks, in uniform registers where there are some
      s += fmt::format("  xor.b32 %u{0}, %c{1}, {2};\n", i, i & 1,
                       c.letter == 'r' ? fmt::to_string(i + 3) : "0x40491235");
      if (c.bits == 64) s += fmt::format("  mov.b64 %{0}U{1}, {{%c0, %u{1}}};\n", c.letter, i);
      if (c.bits == 16) s += fmt::format("  cvt.u16.u32 %hU{0}, %u{0};\n", i);
      if (c.bits == 32) s += fmt::format("  mov.b32 %{0}U{1}, %u{1};\n", c.letter, i);
      if (k.types[i] == "f16x2") s += fmt::format("  mov.b32 %rI{}, {};\n", i, immediates[i]);
    }
    for (size_t n = 0; n < kinds.size(); ++n) {
      std::string operation = k.operation;
      for (size_t i = 0; i < k.types.size(); ++i) {
        const char kind = kinds[n][i];
        const bool literal = kind == 'I' && k.types[i] != "f16x2";
        replace(operation, std::string("%") + "abc"[i],
                literal ? immediates[i] : fmt::format("%{}{}{}", class_of(k.types[i]).letter, kind, i));
      }
      s += fmt::format("  {}; st.global.{} [%out+{}], %d;\n", operation, d.type, 8 * n);
    }
    s += "  ret;\n}\n";
    all.push_back(std::move(k));
  }
  return all;
}

// All of them as one module, for any target.
inline std::string operand_module(const std::vector<OperandKernel>& kernels) {
  std::string s =
      ".version 7.8\n.target sm_60\n.address_size 64\n.const .align 8 .b32 operands_table[8] = {1, 2, 3, 4, 5, 6, 7, "
      "8};\n";
  for (const OperandKernel& k : kernels) s += k.text;
  return s;
}

}  // namespace rndn::testing
