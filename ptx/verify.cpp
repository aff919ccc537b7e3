// The PTX verifier. Properties checked:
//   * every instruction fits a form of its opcode: types, required and allowed modifiers, operand count (opcodes.def)
//   * the module's .version and .target are high enough for that form, and for memory semantics and scopes
//   * every operand is of a kind that its place takes; ids are in range
//   * registers agree with the place's type: same width; bits agree with all, integers with integers, floats with the
//   same float;
//     in ld, st and cvt a register may be wider (PTX manual, "Operand Size Exceeding Instruction-Type Size")
//   * constants are integers for integer places; f16 places take none
//   * guards are predicates; labels are defined within the function; variables lie in the space that the instruction
//   names
//   * calls have as many arguments and results as their function
// Cost: linear; one walk over the opcode's forms per instruction. Left out: uninitialised registers, alignment of
// addresses.
#include "ptx/verify.h"

#include <fmt/format.h>

#include "ptx/opcodes.h"
#include "ptx/parse.h"

namespace rndn::ptx {
namespace {

// Where ld, st and cvt read or write a register, it may be wider than the type.
bool agrees(Type reg, Type type, bool relaxed) {
  if (reg == Type::b128) return false;  // the parser's: rewrite.cpp
  if (reg == Type::pred || type == Type::pred) return reg == type;
  uint32_t have = type_bytes(reg), want = type_bytes(type);
  if (have < want || (have > want && !relaxed)) return false;
  if (is_bits(reg)) return true;
  if (is_bits(type)) return true;
  if (is_floating(type) || is_floating(reg)) return reg == type;
  return true;
}

bool takes_wider(const Instruction& i) {
  return i.op == Opcode::ld || i.op == Opcode::st || i.op == Opcode::ldu || (i.op == Opcode::cvt && i.mods.mode == 0);
}
// The types of registers that agree with a type; made once, on first use.
TypeSet agreeing(Type type, bool relaxed) {
  constexpr uint32_t count = static_cast<uint32_t>(Type::f64) + 1;
  static const auto sets = [] {
    std::array<std::array<TypeSet, count>, 2> all{};
    for (const bool wider : {false, true})
      for (uint32_t t = 0; t < count; ++t)
        for (uint32_t r = 1; r < count; ++r)
          if (agrees(static_cast<Type>(r), static_cast<Type>(t), wider))
            all[wider][t] |= type_bit(static_cast<Type>(r));
    return all;
  }();
  return sets[relaxed][static_cast<uint32_t>(type)];
}
// Registers that hold addresses: 32 or 64 bits.
constexpr TypeSet address_types = type_bit(Type::b32) | type_bit(Type::b64) | type_bit(Type::u32) |
                                  type_bit(Type::u64) | type_bit(Type::s32) | type_bit(Type::s64);
bool takes_no_constant(Type type) {
  return type == Type::f16 || type == Type::f16x2 || type == Type::bf16 || type == Type::bf16x2;
}

class Checker {
 public:
  Checker(const Module& m, const Function& f, const Instruction& i, bool labels_known = true)
      : m_(m), f_(f), i_(i), labels_known_(labels_known) {}

  std::string check() {
    const Form* form = nullptr;
    std::string problem = head(form);
    if (!problem.empty()) return problem;
    if (form->operands[0] == '*') return call();
    Places p;
    places(*form, i_.operand_count, p);
    return operands(p);
  }

  // Everything but the operands.
  std::string head(const Form*& form) {
    if (static_cast<size_t>(i_.op) >= opcode_count) return "no such opcode";
    if (static_cast<size_t>(i_.first_operand) + i_.operand_count > f_.operands.size() ||
        i_.destination_count > i_.operand_count)
      return "its operands lie outside the function's";
    if (!is_none(i_.guard)) {
      if (index(i_.guard) >= f_.registers.size()) return "the guard is no register of the function";
      const Register& r = f_.registers[i_.guard];
      if (r.type != Type::pred)
        return fmt::format("the guard `{}` is a .{} register, expected a predicate", register_name(f_, i_.guard),
                           type_name(r.type));
    }
    if (i_.mods.scope == Scope::cluster) return "unsupported scope `cluster`";
    if (i_.mods.vector != 1 && i_.mods.vector != 2 && i_.mods.vector != 4)
      return fmt::format("unsupported vector .v{}", i_.mods.vector);
    if (i_.mods.vector * type_bytes(i_.type) > 16) return "a vector has at most 128 bits";
    form = find_form(i_);
    if (!form) return explain();
    const std::string problem = requirements(*form);
    for (const Form* other = problem.empty() ? nullptr : find_form(i_, form); other; other = find_form(i_, other))
      if (requirements(*other).empty()) {
        form = other;
        return "";
      }
    return problem;
  }

  std::string requirements(const Form& form_of) {
    const Form* form = &form_of;
    if (form->ptx > m_.version)
      return fmt::format("needs .version {}.{}, the module has {}.{}", form->ptx / 10, form->ptx % 10, m_.version / 10,
                         m_.version % 10);
    if (form->sm > m_.target) return fmt::format("needs .target sm_{}, the module has sm_{}", form->sm, m_.target);
    Semantics s = i_.mods.semantics;
    if (s != Semantics::none && s != Semantics::volatile_ && s != Semantics::weak &&
        (m_.version < 60 || m_.target < 70))
      return fmt::format(".{} needs .version 6.0 and .target sm_70", name(s));
    return "";
  }

  std::string operands(const Places& p) {
    if (i_.destination_count != p.destinations)
      return fmt::format("expected {} destination operands, got {}", p.destinations, i_.destination_count);
    for (uint32_t k = 0; k < p.count; ++k) {
      std::string problem = operand(f_.operand(i_, k), p.at[k]);
      if (!problem.empty()) return fmt::format("operand {}: {}", k + 1, problem);
    }
    if (i_.op == Opcode::alloca_ && p.count == 3)
      if (const int64_t align = f_.operand(i_, 2).value; align < 1 || align > 1 << 23 || (align & (align - 1)))
        return fmt::format("operand 3: expected a power of two up to 2^23, got {}", align);
    if (i_.op == Opcode::pmevent)
      if (const int64_t v = f_.operand(i_, 0).value, most = i_.mods.mode ? 0xffff : 15; v < 0 || v > most)
        return fmt::format("operand 1: expected a number from 0 to {}, got {}", most, v);
    return "";
  }

  std::string call() {
    uint32_t d = i_.destination_count;
    if (d >= i_.operand_count) return "expected a function";
    const Operand& callee = f_.operand(i_, d);
    uint32_t end = i_.operand_count;
    const std::vector<Parameter>*results = nullptr, *parameters = nullptr;
    std::string_view name;
    if (callee.kind == Operand::reg) {
      if (std::string problem = reg(callee, Type::u64, false); !problem.empty())
        return fmt::format("operand {}: {}", d + 1, problem);
      const Operand& last = f_.operand(i_, end - 1);
      if (last.kind != Operand::prototype || last.id >= f_.prototypes.size() || end < d + 2u)
        return "expected a .callprototype after the operands of a call through a register";
      const Prototype& p = f_.prototypes[last.id];
      results = &p.results, parameters = &p.parameters, name = p.name;
      --end;
    } else {
      if (callee.kind != Operand::function || callee.id >= m_.functions.size()) return "expected a function";
      const Function& g = m_.functions[callee.id];
      if (g.is_entry) return fmt::format("`{}` is an entry and cannot be called", g.name);
      results = &g.results, parameters = &g.parameters, name = g.name;
    }
    if (d != results->size() || end - d - 1u != parameters->size())
      return fmt::format("`{}` has {} results and {} parameters, the call {} and {}", name, results->size(),
                         parameters->size(), d, end - d - 1);
    for (uint32_t k = 0; k < end; ++k) {
      if (k == d) continue;
      const Operand& o = f_.operand(i_, k);
      bool param = (o.kind == Operand::variable && o.id < m_.variables.size() &&
                    (m_.variables[o.variable_id()].space == Space::param ||
                     (labels_known_ && m_.variables[o.variable_id()].space == Space::local))) ||  // the assembler's own
                   (o.kind == Operand::parameter && o.id < f_.parameters.size() + f_.results.size());
      if (!param) return fmt::format("operand {}: unsupported argument that is not a .param variable", k + 1);
    }
    return "";
  }

 private:
  // No form fits: the nearest reason, in the order types, modifiers, operand count.
  std::string explain() {
    bool type_fits = false, type2_fits = false;
    ModifierSet present = modifier_set(i_.mods);
    const Form* best = nullptr;
    for (const Form& f : forms(i_.op)) {
      if (!(f.types & type_bit(i_.type))) continue;
      // Modes that name the types themselves (add.s16x2) are no reason to go without a type.
      if (i_.type == Type::none && i_.mods.mode == 0 && f.types == type_bit(Type::none) &&
          forms(i_.op).front().types != f.types)
        continue;
      type_fits = true;
      if (!(f.types2 & type_bit(i_.type2))) continue;
      type2_fits = true;
      if (!(present & ~f.allowed) && !(f.required & ~modifier_groups(present) & modifier_groups(f.required))) best = &f;
    }
    if (!type_fits)
      return i_.type == Type::none ? fmt::format("`{}` needs a type", opcode_name(i_.op))
                                   : fmt::format("`{}` has no type .{}", opcode_name(i_.op), type_name(i_.type));
    if (!type2_fits)
      return i_.type2 == Type::none ? fmt::format("`{}.{}` needs a second type", opcode_name(i_.op), type_name(i_.type))
                                    : fmt::format("`{}.{}` does not go with .{}", opcode_name(i_.op),
                                                  type_name(i_.type), type_name(i_.type2));
    if (best && (i_.op == Opcode::min || i_.op == Opcode::max) && i_.type == Type::f32 && i_.operand_count == 4)
      return fmt::format("unsupported `{}.f32` of three values, which needs .target sm_100 or higher",
                         opcode_name(i_.op));
    if (best) return fmt::format("`{}` cannot have {} operands", opcode_name(i_.op), i_.operand_count);
    return fmt::format("the modifiers of `{}` do not go with each other and with .{}", opcode_name(i_.op),
                       type_name(i_.type));
  }

  std::string reg(const Operand& o, Type type, bool relaxed) {
    if (o.id >= f_.registers.size()) return "no register of the function";
    const Register& r = f_.registers[o.reg_id()];
    if (!agrees(r.type, type, relaxed))
      return fmt::format("`{}` is a .{} register, expected .{}", register_name(f_, o.reg_id()), type_name(r.type),
                         type_name(type));
    return "";
  }

  std::string constant(const Operand& o, Type type) {
    uint32_t size = type_bytes(type);
    if (takes_no_constant(type)) return fmt::format("a constant cannot be .{}", type_name(type));
    if (size > 0 && size < 8 && !is_floating(type)) {
      int64_t limit = int64_t{1} << (8 * size);
      if (o.value >= limit || o.value < -limit / 2) return fmt::format("{} does not fit .{}", o.value, type_name(type));
    }
    return "";
  }

  std::string space_of(VariableId v) {
    Space s = m_.variables[v].space, want = i_.mods.space;
    if (want != Space::generic && s != want)
      return fmt::format("`{}` lies in .{}, the instruction accesses .{}", m_.variables[v].name, name(s), name(want));
    return "";
  }

  std::string address(const Operand& o) {
    switch (o.kind) {
      case Operand::address_reg: {
        if (o.id >= f_.registers.size()) return "no register of the function";
        const Register& r = f_.registers[o.reg_id()];
        if (!(address_types & type_bit(r.type)))
          return fmt::format("`{}` is a .{} register, expected an address of 32 or 64 bits",
                             register_name(f_, o.reg_id()), type_name(r.type));
        return "";
      }
      case Operand::address_var:
        if (o.id >= m_.variables.size()) return "no variable of the module";
        return space_of(o.variable_id());
      case Operand::address_imm: return "";
      case Operand::parameter:
        if (o.id >= f_.parameters.size() + f_.results.size()) return "no parameter of the function";
        if (i_.mods.space != Space::param) return "a parameter needs .param";
        return "";
      default: return "expected an address";
    }
  }

  std::string vector(const Operand& o, uint32_t count, Type element, Place place, bool relaxed) {
    if (o.kind != Operand::vector || o.count != count) return fmt::format("expected a vector of {}", count);
    if (o.id > f_.vector_elements.size() || f_.vector_elements.size() - o.id < o.count)
      return "its elements lie outside the function's";
    for (uint32_t k = 0; k < count; ++k) {
      const Operand& e = f_.vector_elements[o.id + k];
      std::string problem;
      if (e.kind == Operand::reg)
        problem = e.negated ? "only a predicate can be negated" : reg(e, element, relaxed);
      else if (e.kind == Operand::immediate && !place.destination)
        problem = constant(e, element);
      else if (e.kind == Operand::sink && place.destination)
        continue;
      else
        problem = "expected a register";
      if (!problem.empty()) return fmt::format("element {}: {}", k + 1, problem);
    }
    return "";
  }

  std::string operand(const Operand& o, Place place) {
    const Type type = place_type(place.kind, i_);
    const bool relaxed = takes_wider(i_);
    if (o.negated && (o.kind != Operand::reg || place.destination || type != Type::pred))
      return "only a predicate that is read can be negated";
    switch (place.kind) {
      case 'a': return address(o);
      case 'l':
        if (o.kind != Operand::label) return "expected a label";
        if (o.id >= f_.labels.size()) return "no label of the function";
        if (labels_known_ && f_.labels[o.label_id()].at > f_.instructions.size())
          return fmt::format("the label `{}` is not defined", f_.labels[o.label_id()].name);
        return "";
      case 'x':
        if (o.kind != Operand::targets || o.id >= f_.targets.size()) return "expected a list of .branchtargets";
        if (labels_known_)
          for (LabelId l : f_.targets[o.id].labels)
            if (index(l) >= f_.labels.size() || f_.labels[l].at > f_.instructions.size())
              return fmt::format("a target of `{}` is not defined", f_.targets[o.id].name);
        return "";
      case 'i': return o.kind == Operand::immediate ? constant(o, type) : "expected an integer constant";
      case 'v':
        if (i_.mods.vector > 1) return vector(o, i_.mods.vector, type, place, true);
        break;
      case 'm':
        if (o.kind == Operand::vector) {
          uint32_t size = o.count ? type_bytes(type) / o.count : 0;
          Type element = size == 1 ? Type::b8 : size == 2 ? Type::b16 : size == 4 ? Type::b32 : Type::none;
          if (!is_bits(type) || element == Type::none || size * o.count != type_bytes(type))
            return fmt::format("a vector of {} does not make a .{}", o.count, type_name(type));
          return vector(o, o.count, element, place, size == 1);  // registers of 8 bits are kept as of 16
        }
        if (place.destination) break;
        if (o.kind == Operand::special) return special(o, type);
        if (o.kind == Operand::variable) {
          if (o.id >= m_.variables.size()) return "no variable of the module";
          if (type_bytes(type) < 4 || is_floating(type))
            return fmt::format("an address cannot be .{}", type_name(type));
          return i_.op == Opcode::cvta ? space_of(o.variable_id()) : "";
        }
        if (o.kind == Operand::parameter)
          return o.id < f_.parameters.size() + f_.results.size() ? "" : "no parameter of the function";
        if (o.kind == Operand::function) {
          if (o.id >= m_.functions.size() || m_.functions[o.id].is_entry) return "unsupported address of an entry";
          return i_.op == Opcode::mov && type_bytes(type) == 8 && !is_floating(type)
                     ? ""
                     : "a function's address has 64 bits";
        }
        break;
      default: break;
    }
    if (o.kind == Operand::reg) return reg(o, type, relaxed);
    if (o.kind == Operand::immediate && !place.destination) {
      if (type == Type::pred && (o.value & 1) != o.value) return "a constant predicate is 0 or 1";  // the parser's work
      return constant(o, type);
    }
    if (o.kind == Operand::sink && place.destination &&
        (place.kind == 'p' || i_.op == Opcode::atom || i_.op == Opcode::elect || is_barrier_object(i_)))
      return "";
    return place.destination ? "expected a register" : "expected a register or a constant";
  }

  std::string special(const Operand& o, Type type) {
    if (o.id == 0 || o.id >= special_register_count) return "no special register";
    auto r = static_cast<SpecialRegister>(o.id);
    if (r == SpecialRegister::gridid && type_bytes(type) == 4 && !is_floating(type)) return "";  // as before PTX 3.0
    const uint32_t size = special_register_bytes(r);
    if (is_floating(type) || type_bytes(type) != size)
      return fmt::format("`{}` has {} bits, the instruction .{}", special_register_name(r), 8 * size, type_name(type));
    return "";
  }

  const Module& m_;
  const Function& f_;
  const Instruction& i_;
  const bool labels_known_;
};

}  // namespace

std::string check_instruction(const Module& module, const Function& function, const Instruction& instruction) {
  return Checker(module, function, instruction).check();
}

std::string check_head(const Module& module, const Function& function, const Instruction& instruction,
                       const Form*& form) {
  return Checker(module, function, instruction).head(form);
}

PlainOperands plain_operands(const Instruction& i, const Places& places) {
  const auto kinds = [](std::initializer_list<Operand::Kind> list) {
    uint16_t set = 0;
    for (Operand::Kind k : list) set |= static_cast<uint16_t>(1u << k);
    return set;
  };
  PlainOperands plain;
  for (uint32_t k = 0; k < places.count; ++k) {
    const Place& place = places.at[k];
    PlainOperands::Place& p = plain.at[k];
    const Type type = p.type = place_type(place.kind, i);
    const bool read = !place.destination, constants = read && !takes_no_constant(type);
    if (place.kind == 'a') {
      p.kinds = kinds({Operand::address_reg, Operand::address_var, Operand::address_imm});
      if (i.mods.space == Space::param) p.kinds |= kinds({Operand::parameter});
      p.addresses = address_types;
      p.space = i.mods.space;
    } else if (place.kind == 'l') {
      p.kinds = kinds({Operand::label});
    } else if (place.kind == 'i') {
      const bool bounded = i.op == Opcode::alloca_ || i.op == Opcode::pmevent;  // beyond what the type takes
      if (constants && !bounded) p.kinds = kinds({Operand::immediate});
    } else if (place.kind != 'x') {
      p.kinds = kinds({Operand::reg});
      if (constants) p.kinds |= kinds({Operand::immediate});
      p.registers = agreeing(type, takes_wider(i));
      p.negated = read && type == Type::pred;
      if (place.kind == 'm' && read && type_bytes(type) >= 4 && !is_floating(type)) {
        p.kinds |= kinds({Operand::special});
        if (i.op != Opcode::cvta) p.kinds |= kinds({Operand::variable});
      }
      if (place.kind == 'm' && read) p.kinds |= kinds({Operand::parameter});
      if (place.kind == 'v') {
        plain.element = p;
        if (i.mods.vector == 1) continue;
        p.kinds = 0, p.registers = 0;
        plain.element.registers = agreeing(type, true);
        if (place.destination) plain.element.kinds |= kinds({Operand::sink});
      }
    }
  }
  return plain;
}

std::string check_operands(const Module& module, const Function& function, const Instruction& instruction,
                           const Form& form, const Places& places) {
  Checker checker(module, function, instruction, false);
  return form.operands[0] == '*' ? checker.call() : checker.operands(places);
}

std::vector<std::string> verify(const Module& module) {
  std::vector<std::string> out;
  for (const Variable& v : module.variables)
    for (const Variable::Address& x : v.addresses)
      if (x.offset + uint64_t{8} > v.initial.size() ||
          x.id >= (x.function ? module.functions.size() : module.variables.size()))
        out.push_back(fmt::format("variable {}: an address of its initial value names nothing", v.name));
  for (const Function& f : module.functions) {
    for (size_t k = 0; k < f.instructions.size(); ++k) {
      const Instruction& i = f.instructions[k];
      std::string problem = check_instruction(module, f, i);
      if (problem.empty()) continue;
      bool printable = static_cast<size_t>(i.first_operand) + i.operand_count <= f.operands.size() &&
                       static_cast<size_t>(i.op) < opcode_count;
      out.push_back(fmt::format("function {}, instruction {}{}: {}{}", f.name, k,
                                i.line ? fmt::format(" (line {})", i.line) : "",
                                printable ? "`" + print(module, f, i) + "`: " : "", problem));
    }
    for (const Label& l : f.labels)
      if (l.at > f.instructions.size())
        out.push_back(fmt::format("function {}: the label `{}` is not defined", f.name, l.name));
  }
  return out;
}

}  // namespace rndn::ptx
