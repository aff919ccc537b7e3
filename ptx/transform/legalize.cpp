// Expansions: what an instruction means, written as PTX text (legalize_text.cpp), takes its place before anything else is done.
//
// The text names the operands %d0 (destination) and %s0, %s1, .. (sources; an address is %at without its offset, further ones %at1, ..), and declares what else
// it needs; %constant is the value of an operand that must be one. It is parsed once per kind of instruction and module. In the copy, operands are the
// instruction's own registers, everything else is fresh; a text reads no source after it has written the destination, which may be the same register. An
// immediate operand is moved to a
// register first, the guard becomes a branch around the copy, and the copy has the instruction's line.
// Invariant: the result passes the PTX verifier. Cost: linear in the result; a module without such instructions is only looked through.
#include "ptx/transform/legalize.h"

#include <fmt/format.h>

#include <map>

#include "libraries/base/errors/diagnostic.h"
#include "ptx/opcodes.h"
#include "ptx/parse.h"
#include "ptx/transform/legalize_text.h"

namespace rndn::ptx {
namespace {

using ptx::Opcode;
using ptx::Operand;
using ptx::Type;

// Registers are bits: the text's declarations must agree with the instruction's registers in width alone.
Type bits_of(Type type) {
  if (type == Type::pred) return Type::pred;
  switch (ptx::type_bytes(type)) {
    case 8: return Type::b64;
    case 4: return Type::b32;
    default: return Type::b16;
  }
}

class Expander {
 public:
  Expander(const ptx::Module& module, const ptx::Function& from) : m_(module), from_(from), to_(from) {}

  Result<ptx::Function> run(std::map<std::string, ptx::Function>& texts) {
    to_.instructions.clear();
    for (ptx::Location& l : to_.locations) l.at = 0;
    std::vector<uint32_t> moved;  // index of an instruction -> of what it became
    for (const ptx::Instruction& i : from_.instructions) {
      moved.push_back(here());
      if (!is_expanded(i))
        to_.instructions.push_back(i);
      else
        RETURN_IF_ERROR(expand(i, texts));
    }
    moved.push_back(here());
    for (uint32_t k = 0; k < from_.labels.size(); ++k)
      to_.labels[ptx::LabelId{k}].at = moved[from_.labels[ptx::LabelId{k}].at];
    for (size_t k = 0; k < from_.locations.size(); ++k) to_.locations[k].at = moved[from_.locations[k].at];
    return std::move(to_);
  }

 private:
  uint32_t here() const { return static_cast<uint32_t>(to_.instructions.size()); }
  Operand fresh(Type type) {
    const std::string name = fmt::format("%expanded{}", to_.registers.size());
    return {.kind = Operand::reg, .id = index(to_.add_register(type, name))};
  }
  void add(ptx::Instruction i, std::initializer_list<Operand> operands) {
    i.first_operand = static_cast<uint32_t>(to_.operands.size());
    i.operand_count = static_cast<uint8_t>(operands.size());
    to_.operands.append({operands.begin(), operands.size()});
    to_.instructions.push_back(i);
  }
  Operand moved_to_register(const Operand& o, Type type, uint32_t line) {
    const Operand to = fresh(bits_of(type));
    add({.op = Opcode::mov, .type = bits_of(type), .destination_count = 1, .line = line}, {to, o});
    return to;
  }
  // The address as a register of its full value.
  Operand address(const Operand& o, uint32_t line) {
    Operand value = o;
    if (o.kind == Operand::address_reg) {
      value.kind = Operand::reg, value.value = 0;
      if (o.value == 0) return value;
      const Type type = bits_of(from_.registers[o.reg_id()].type);
      const Operand to = fresh(type);
      const bool wide = type == Type::b64;
      add({.op = Opcode::add, .type = wide ? Type::u64 : Type::u32, .destination_count = 1, .line = line},
          {to, value, {.kind = Operand::immediate, .value = wide ? o.value : static_cast<int32_t>(o.value)}});
      return to;
    }
    value.kind = o.kind == Operand::address_var ? Operand::variable : Operand::immediate;
    const bool small = o.kind == Operand::address_var && m_.variables[o.variable_id()].space == ptx::Space::shared;
    return moved_to_register(value, small ? Type::u32 : Type::u64, line);
  }

  Result<void> expand(const ptx::Instruction& i, std::map<std::string, ptx::Function>& texts) {
    // Where each name of the text comes from, and the declarations of those registers.
    std::vector<std::pair<std::string, Operand>> operands;
    ptx::Instruction plain = i;  // an address in a variable has the variable's space
    ptx::LabelId skip = none<ptx::LabelId>();
    if (!is_none(i.guard)) {
      skip = to_.labels.add({fmt::format("$expanded{}", to_.labels.size()), 0});
      ptx::Instruction branch{.op = Opcode::bra, .guard_negated = !i.guard_negated, .guard = i.guard, .line = i.line};
      add(branch, {{.kind = Operand::label, .id = index(skip)}});
    }
    uint32_t source = 0, addresses = 0;
    std::string constant;  // of an operand that must be one
    ptx::Places places;
    if (const ptx::Form* form = ptx::find_form(i)) ptx::places(*form, i.operand_count, places);
    for (uint32_t k = 0; k < i.operand_count; ++k) {
      const Operand& o = from_.operand(i, k);
      const Type type = ptx::operand_type(i, k);
      if (places.at[k].kind == 'i') {
        constant = std::to_string(o.value);
      } else if (k < i.destination_count) {
        operands.push_back({fmt::format("%d{}", k), o.kind == Operand::reg ? o : fresh(bits_of(type))});
      } else if (o.kind == Operand::address_reg || o.kind == Operand::address_var || o.kind == Operand::address_imm) {
        if (o.kind == Operand::address_var) plain.mods.space = m_.variables[o.variable_id()].space;
        operands.push_back({addresses ? fmt::format("%at{}", addresses) : "%at", address(o, i.line)});
        ++addresses;
      } else {
        const bool direct = o.kind == Operand::reg && !o.negated;
        operands.push_back({fmt::format("%s{}", source++), direct ? o : moved_to_register(o, type, i.line)});
      }
    }
    std::string declared;
    std::vector<Type> types;
    for (const auto& [name, o] : operands) {
      types.push_back(bits_of(to_.registers[o.reg_id()].type));
      declared += fmt::format(".reg .{} {};\n", ptx::type_name(types.back()), name);
    }
    std::string body = expansion(plain, types);
    for (size_t at; (at = body.find("%constant")) != std::string::npos;) body.replace(at, 9, constant);
    if (body.empty())
      return input_error("function {}, line {}: unsupported instruction `{}`", from_.name, i.line,
                         ptx::print(m_, from_, i))
          .about(from_.name)
          .at(i.line);
    const std::string text = declared + body;
    auto at = texts.find(text);
    if (at == texts.end()) at = texts.emplace(text, parse(text)).first;
    copy(at->second, operands, i.line);
    if (!is_none(skip)) to_.labels[skip].at = here();
    return {};
  }

  static ptx::Function parse(const std::string& text) {
    SourceManager sources;
    DiagnosticSink sink;
    ptx::Module module = ptx::parse(
        sources.add("expansion", ".version 7.8\n.target sm_90\n.address_size 64\n.entry k()\n{\n" + text + "}\n"),
        sources, sink);
    CHECK(!sink.has_errors(), "expansion:\n{}{}", text, render(sink, sources));
    return std::move(module.functions.front());
  }

  void copy(const ptx::Function& f, const std::vector<std::pair<std::string, Operand>>& operands, uint32_t line) {
    std::vector<uint32_t> registers, labels;
    for (uint32_t k = 0; k < f.registers.size(); ++k) {
      const ptx::Register& r = f.registers[ptx::RegisterId{k}];
      registers.push_back(UINT32_MAX);
      const std::string own = ptx::register_name(f, ptx::RegisterId{k});
      for (const auto& [name, o] : operands)
        if (name == own) registers.back() = o.id;
      if (registers.back() == UINT32_MAX) registers.back() = fresh(r.type).id;
    }
    for (uint32_t k = 0; k < f.labels.size(); ++k)
      labels.push_back(index(to_.labels.add({fmt::format("$expanded{}", to_.labels.size()), 0})));
    auto renamed = [&](Operand o) {
      if (o.kind == Operand::reg || o.kind == Operand::address_reg) o.id = registers[o.id];
      if (o.kind == Operand::label) o.id = labels[o.id];
      return o;
    };
    const uint32_t begin = here();
    for (ptx::Instruction i : f.instructions) {
      const uint32_t first = i.first_operand;
      i.first_operand = static_cast<uint32_t>(to_.operands.size());
      i.line = line;
      if (!is_none(i.guard)) i.guard = ptx::RegisterId{registers[index(i.guard)]};
      for (uint32_t k = 0; k < i.operand_count; ++k) {
        Operand o = renamed(f.operands[first + k]);
        if (o.kind == Operand::vector) {
          const uint32_t elements = o.id;
          o.id = static_cast<uint32_t>(to_.vector_elements.size());
          for (uint32_t e = 0; e < o.count; ++e)
            to_.vector_elements.push_back(renamed(f.vector_elements[elements + e]));
        }
        to_.operands.push_back(o);
      }
      to_.instructions.push_back(i);
    }
    for (uint32_t k = 0; k < f.labels.size(); ++k)
      to_.labels[ptx::LabelId{labels[k]}].at = begin + f.labels[ptx::LabelId{k}].at;
  }

  const ptx::Module& m_;
  const ptx::Function& from_;
  ptx::Function to_;
};

}  // namespace

Result<std::optional<ptx::Module>> expand(const ptx::Module& module) {
  std::optional<ptx::Module> result;
  std::map<std::string, ptx::Function> texts;
  for (size_t k = 0; k < module.functions.size(); ++k) {
    if (!has_expansions(module.functions[k])) continue;
    if (!result) result = module;
    ASSIGN_OR_RETURN(result->functions[k], Expander(module, module.functions[k]).run(texts));
  }
  return result;
}

}  // namespace rndn::ptx
