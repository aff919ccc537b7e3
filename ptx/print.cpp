// Canonical PTX text of the IR. Text that ptxas accepts, and a fixed point: print(parse(print(m))) == print(m).
//
// Registers are declared as ranges where a function's registers of one prefix and type are exactly prefix0 ..
// prefixN-1, else one by one. Modifiers come in the one order that suits every opcode (see print_mnemonic). Cost:
// linear in the text.
#include <algorithm>
#include <iterator>
#include <map>

#include "libraries/base/errors/check.h"
#include "ptx/ir.h"
#include "ptx/opcodes.h"

namespace rndn::ptx {
namespace {

void append_number(std::string& out, uint64_t value) {
  char digits[20];
  char* p = digits + 20;
  do *--p = static_cast<char>('0' + value % 10);
  while (value /= 10);
  out.append(p, digits + 20 - p);
}
void append_signed(std::string& out, int64_t value) {
  if (value < 0) out += '-';
  append_number(out, value < 0 ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value));
}
void append_hex(std::string& out, std::string_view prefix, uint64_t value, int digits) {
  out += prefix;
  for (int i = digits - 1; i >= 0; --i) out += "0123456789ABCDEF"[value >> (4 * i) & 15];
}

void append_constant(std::string& out, Type type, int64_t value) {
  if (type == Type::f32) return append_hex(out, "0f", static_cast<uint64_t>(value) & 0xFFFFFFFF, 8);
  if (type == Type::f64) return append_hex(out, "0d", static_cast<uint64_t>(value), 16);
  if (is_signed(type) || type_bytes(type) == 0) return append_signed(out, value);
  uint32_t bits = 8 * type_bytes(type);
  append_number(out,
                bits >= 64 ? static_cast<uint64_t>(value) : static_cast<uint64_t>(value) & ((uint64_t{1} << bits) - 1));
}

void dotted(std::string& out, std::string_view name) {
  if (name.empty()) return;
  out += '.';
  out += name;
}

class Printer {
 public:
  Printer(const Module& module, const Function& function, std::string& out) : m_(module), f_(function), out_(out) {}

  void function() {
    header();
    if (f_.external) {
      out_ += ";\n";
      return;
    }
    out_ += '\n';
    bounds();
    out_ += "{\n";
    registers();
    uint32_t self = static_cast<uint32_t>(&f_ - m_.functions.data());
    for (const Variable& v : m_.variables)
      if (v.function == self) out_ += '\t', variable(v), out_ += ";\n";
    for (const Prototype& p : f_.prototypes) {
      out_ += p.name, out_ += ": .callprototype ";
      if (!p.results.empty()) parameters(p.results, " "), out_ += ' ';
      out_ += "_ ";
      if (p.parameters.empty())
        out_ += "()";
      else
        parameters(p.parameters, " ");
      out_ += ";\n";
    }
    for (const BranchTargets& t : f_.targets) {
      out_ += t.name, out_ += ": .branchtargets ";
      for (size_t k = 0; k < t.labels.size(); ++k) {
        if (k) out_ += ", ";
        out_ += index(t.labels[k]) < f_.labels.size() ? std::string_view(f_.labels[t.labels[k]].name) : "<no label>";
      }
      out_ += ";\n";
    }
    // Labels in order of their position; those of one place in order of their ids.
    std::vector<uint32_t> order(f_.labels.size());
    for (uint32_t k = 0; k < order.size(); ++k) order[k] = k;
    auto at = [&](uint32_t k) { return f_.labels[static_cast<LabelId>(k)].at; };
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return at(a) < at(b); });
    size_t next = 0, place = 0;
    for (uint32_t k = 0; k <= f_.instructions.size(); ++k) {
      for (; place < f_.locations.size() && f_.locations[place].at == k; ++place) location(f_.locations[place]);
      bool nounroll = false;
      for (; next < order.size() && at(order[next]) == k; ++next) {
        const Label& l = f_.labels[static_cast<LabelId>(order[next])];
        out_ += l.name, out_ += ":\n";
        nounroll |= l.nounroll;
      }
      if (nounroll) out_ += "\t.pragma \"nounroll\";\n";
      if (k == f_.instructions.size()) break;
      out_ += '\t';
      instruction(f_.instructions[k]);
      out_ += '\n';
    }
    out_ += "}\n";
  }

  void location(const Location& l) {
    fmt::format_to(std::back_inserter(out_), "\t.loc {} {} {}", l.file, l.line, l.column);
    if (l.inlined != Location::not_inlined)
      fmt::format_to(std::back_inserter(out_), ", function_name $L__info_string{}, inlined_at {} {} {}", l.inlined,
                     l.caller_file, l.caller_line, l.caller_column);
    out_ += '\n';
  }

  // .visible .entry name(..) without body or semicolon
  void header() {
    if (f_.external)
      out_ += ".extern ";
    else if (f_.visible)
      out_ += ".visible ";
    out_ += f_.is_entry ? ".entry " : ".func ";
    if (!f_.results.empty()) parameters(f_.results, " "), out_ += ' ';
    out_ += f_.name;
    if (f_.parameters.empty())
      out_ += "()";
    else
      parameters(f_.parameters, "\n\t");
  }

  void variable(const Variable& v) {
    if (v.external)
      out_ += ".extern ";
    else if (v.visible)
      out_ += ".visible ";
    dotted(out_, name(v.space));
    if (v.managed) out_ += " .attribute(.managed)";
    if (v.align) out_ += " .align ", append_number(out_, v.align);
    out_ += ' ';
    dotted(out_, type_name(v.type));
    out_ += ' ';
    out_ += v.name;
    if (v.count == UINT64_MAX)
      out_ += "[]";
    else if (v.count)
      out_ += '[', append_number(out_, v.count), out_ += ']';
    size_t size = type_bytes(v.type);
    if (v.initial.empty() || size == 0 || size > 8) return;
    out_ += v.count ? " = {" : " = ";
    size_t next = 0;  // of the addresses
    for (size_t k = 0; k + size <= v.initial.size(); k += size) {
      uint64_t bits = 0;
      for (size_t b = 0; b < size; ++b) bits |= static_cast<uint64_t>(v.initial[k + b]) << (8 * b);
      if (is_signed(v.type))
        bits = static_cast<uint64_t>(static_cast<int64_t>(bits << (64 - 8 * size)) >> (64 - 8 * size));
      if (k) out_ += ", ";
      if (next < v.addresses.size() && k >= v.addresses[next].offset) {
        const Variable::Address& a = v.addresses[next];
        const size_t byte = k - a.offset;
        if (size == 1) append_hex(out_, "0x", uint64_t{0xff} << (8 * byte), 16), out_ += '(';
        if (a.generic) out_ += "generic(";
        if (a.function)
          out_ += a.id < m_.functions.size() ? std::string_view(m_.functions[a.id].name) : "<no function>";
        else
          variable_name(a.id);
        if (a.generic) out_ += ')';
        offset(a.addend);
        if (size == 1) out_ += ')';
        if (size == 8 || byte == 7) ++next;
        continue;
      }
      append_constant(out_, v.type, static_cast<int64_t>(bits));
    }
    if (v.count) out_ += '}';
  }

  void instruction(const Instruction& i) {
    if (!is_none(i.guard)) {
      out_ += i.guard_negated ? "@!" : "@";
      register_name(i.guard);
      out_ += ' ';
    }
    mnemonic(i);
    const Form* form = find_form(i);
    Places p;
    if (!form || form->operands[0] == '*' || !places(*form, i.operand_count, p)) {
      p = {};
      p.destinations = i.destination_count;
    }
    if (i.op == Opcode::call) {
      call(i);
      return;
    }
    for (uint32_t k = 0; k < i.operand_count; ++k) {
      const Place place = k < 8 ? p.at[k] : Place{};
      if (k == 0)
        out_ += ' ';
      else
        out_ += place.bar ? "|" : ", ";
      const bool in_vector = moves_matrices(i) && place.kind == 'b';
      if (in_vector && (k == 0 || p.at[k - 1].kind != 'b')) out_ += '{';
      operand(i, f_.operand(i, k), place);
      if (in_vector && (k + 1u == i.operand_count || p.at[k + 1].kind != 'b')) out_ += '}';
    }
    out_ += ';';
  }

 private:
  void parameters(const std::vector<Parameter>& list, std::string_view before) {
    out_ += '(';
    for (size_t k = 0; k < list.size(); ++k) {
      if (k) out_ += ',';
      if (before != " " || k) out_ += before;
      out_ += ".param ";
      const Parameter& p = list[k];
      if (p.align) out_ += ".align ", append_number(out_, p.align), out_ += ' ';
      dotted(out_, type_name(p.type));
      out_ += ' ';
      out_ += p.name;
      if (p.count) out_ += '[', append_number(out_, p.count), out_ += ']';
    }
    out_ += before == " " ? ")" : "\n)";
  }

  void bounds() {
    auto three = [&](std::string_view directive, const std::array<uint32_t, 3>& v) {
      if (v[0] == 0) return;
      out_ += directive;
      for (int k = 0; k < 3; ++k) out_ += k ? ", " : " ", append_number(out_, std::max(v[k], 1u));
      out_ += '\n';
    };
    three(".maxntid", f_.max_threads);
    three(".reqntid", f_.required_threads);
    if (f_.min_blocks) out_ += ".minnctapersm ", append_number(out_, f_.min_blocks), out_ += '\n';
    if (f_.max_registers) out_ += ".maxnreg ", append_number(out_, f_.max_registers), out_ += '\n';
  }

  void registers() {
    struct Group {
      std::string_view prefix;
      Type type;
      bool range = true;  // all numbers distinct and below the count, by the checks below
      std::vector<std::pair<uint64_t, std::string_view>> members;
    };
    std::vector<std::string> names;
    names.reserve(f_.registers.size());
    for (uint32_t r = 0; r < f_.registers.size(); ++r)
      names.push_back(ptx::register_name(f_, static_cast<RegisterId>(r)));
    std::vector<Group> all;
    std::map<std::pair<std::string_view, Type>, size_t> by_prefix;
    size_t last = SIZE_MAX;
    for (size_t k = 0; k < names.size(); ++k) {
      const Register& r = f_.registers[static_cast<RegisterId>(k)];
      const std::string_view name = names[k];
      size_t digits = name.size();
      while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
      // A number with leading zeros, or none, or a huge one does not come from a range.
      bool numbered =
          digits < name.size() && name.size() - digits <= 7 && (name[digits] != '0' || digits + 1 == name.size());
      std::string_view prefix = numbered ? name.substr(0, digits) : name;
      uint64_t number = UINT64_MAX;
      if (numbered) {
        number = 0;
        for (char c : name.substr(digits)) number = number * 10 + static_cast<uint64_t>(c - '0');
      }
      if (last == SIZE_MAX || all[last].prefix != prefix || all[last].type != r.type) {
        auto [it, fresh] = by_prefix.try_emplace({prefix, r.type}, all.size());
        if (fresh) all.push_back({prefix, r.type, true, {}});
        last = it->second;
      }
      if (!numbered) all[last].range = false;
      all[last].members.emplace_back(number, name);
    }
    for (Group& g : all) {
      std::vector<bool> seen(g.members.size());
      for (auto& [number, name] : g.members) {
        if (number >= g.members.size() || seen[number]) {
          g.range = false;
          break;
        }
        seen[number] = true;
      }
      if (g.range) {
        out_ += "\t.reg ", dotted(out_, type_name(g.type)), out_ += ' ', out_ += g.prefix;
        out_ += '<', append_number(out_, g.members.size()), out_ += ">;\n";
        continue;
      }
      for (auto& [number, name] : g.members)
        out_ += "\t.reg ", dotted(out_, type_name(g.type)), out_ += ' ', out_ += name, out_ += ";\n";
    }
  }

  // The order suits all opcodes; where an opcode's table in the manual differs, ptxas takes this one too (tests show
  // it).
  void mnemonic(const Instruction& i) {
    const Modifiers& m = i.mods;
    out_ += opcode_name(i.op);
    if (m.to) out_ += ".to";
    if (m.uni && i.op != Opcode::brx) out_ += ".uni";
    std::string_view mode = m.mode ? mode_text(i.op, m.mode) : std::string_view();
    if (!mode_follows_type(i.op) || i.op == Opcode::barrier) {
      if (!(i.op == Opcode::barrier && m.mode == 1)) dotted(out_, mode);
    }
    if (m.uni && i.op == Opcode::brx) out_ += ".uni";
    if (m.sync) out_ += ".sync";
    if (i.op == Opcode::barrier && m.mode == 1) dotted(out_, mode);
    dotted(out_, name(m.shuffle));
    dotted(out_, name(m.vote));
    if (m.approx) out_ += ".approx";
    if (m.full) out_ += ".full";
    dotted(out_, name(m.compare));
    dotted(out_, name(m.combine));
    dotted(out_, name(m.semantics));
    dotted(out_, i.op == Opcode::membar && m.scope == Scope::gpu ? "gl" : name(m.scope));
    dotted(out_, name(m.space));
    dotted(out_, name(m.cache));
    dotted(out_, name(m.atomic));
    dotted(out_, name(m.part));
    dotted(out_, name(m.shift));
    dotted(out_, name(m.rounding));
    if (m.carry_out) out_ += ".cc";
    if (m.ftz) out_ += ".ftz";
    if (m.sat) out_ += ".sat";
    if (m.vector > 1) out_ += ".v", append_number(out_, m.vector);
    dotted(out_, type_name(i.type));
    dotted(out_, type_name(i.type2));
    if (mode_follows_type(i.op) && i.op != Opcode::barrier) dotted(out_, mode);
  }

  void call(const Instruction& i) {
    auto list = [&](uint32_t from, uint32_t to) {
      out_ += '(';
      for (uint32_t k = from; k < to; ++k) {
        if (k > from) out_ += ", ";
        operand(i, f_.operand(i, k), {});
      }
      out_ += ')';
    };
    uint32_t d = i.destination_count;
    out_ += ' ';
    if (d) list(0, d), out_ += ", ";
    if (d < i.operand_count) operand(i, f_.operand(i, d), {});
    uint32_t end = i.operand_count;
    const bool indirect = end > d + 1 && f_.operand(i, end - 1).kind == Operand::prototype;
    end -= indirect;
    if (d + 1 < end || indirect) out_ += ", ", list(d + 1, end);
    if (indirect) out_ += ", ", operand(i, f_.operand(i, end), {});
    out_ += ';';
  }

  void register_name(RegisterId r) {
    if (index(r) >= f_.registers.size()) {
      out_ += "<no register>";
    } else if (const Register& known = f_.registers[r]; known.named) {
      out_ += f_.register_names[known.number];
    } else {
      out_ += register_prefix(known.type), append_number(out_, known.number);
    }
  }
  void variable_name(uint32_t id) {
    out_ +=
        id < m_.variables.size() ? std::string_view(m_.variables[static_cast<VariableId>(id)].name) : "<no variable>";
  }
  void offset(int64_t value) {
    if (value == 0) return;
    out_ += '+';  // ptxas wants [%rd1+-8]
    append_signed(out_, value);
  }

  void operand(const Instruction& i, const Operand& o, Place place) {
    switch (o.kind) {
      case Operand::none: out_ += "<none>"; break;
      case Operand::reg:
        if (o.negated) out_ += '!';
        register_name(o.reg_id());
        break;
      case Operand::immediate: append_constant(out_, place_type(place.kind, i), o.value); break;
      case Operand::special: out_ += special_register_name(static_cast<SpecialRegister>(o.id)); break;
      case Operand::label:
        out_ += o.id < f_.labels.size() ? std::string_view(f_.labels[o.label_id()].name) : "<no label>";
        break;
      case Operand::variable:
        variable_name(o.id);
        offset(o.value);
        break;
      case Operand::parameter: {
        if (place.kind == 'a') out_ += '[';
        size_t n = f_.parameters.size();
        if (o.id < n)
          out_ += f_.parameters[o.id].name;
        else
          out_ += o.id - n < f_.results.size() ? std::string_view(f_.results[o.id - n].name) : "<no parameter>";
        offset(o.value);
        if (place.kind == 'a') out_ += ']';
        break;
      }
      case Operand::address_reg:
        out_ += '[';
        register_name(o.reg_id());
        offset(o.value);
        out_ += ']';
        break;
      case Operand::address_var:
        out_ += '[';
        variable_name(o.id);
        offset(o.value);
        out_ += ']';
        break;
      case Operand::address_imm:
        out_ += '[';
        append_signed(out_, o.value);
        out_ += ']';
        break;
      case Operand::vector:
        out_ += '{';
        for (uint32_t k = 0; k < o.count; ++k) {
          if (k) out_ += ", ";
          if (o.id + k < f_.vector_elements.size()) operand(i, f_.vector_elements[o.id + k], place);
        }
        out_ += '}';
        break;
      case Operand::sink: out_ += '_'; break;
      case Operand::function:
        out_ += o.id < m_.functions.size() ? std::string_view(m_.functions[o.id].name) : "<no function>";
        break;
      case Operand::prototype:
        out_ += o.id < f_.prototypes.size() ? std::string_view(f_.prototypes[o.id].name) : "<no prototype>";
        break;
      case Operand::targets:
        out_ += o.id < f_.targets.size() ? std::string_view(f_.targets[o.id].name) : "<no targets>";
        break;
    }
  }

  const Module& m_;
  const Function& f_;
  std::string& out_;
};

}  // namespace

std::string print(const Module& module) {
  std::string out;
  size_t instructions = 0;
  for (const Function& f : module.functions) instructions += f.instructions.size();
  out.reserve(1024 + 40 * instructions);
  out += ".version ";
  append_number(out, module.version / 10);
  out += '.';
  append_number(out, module.version % 10);
  out += "\n.target sm_";
  append_number(out, module.target);
  out += "\n.address_size ";
  append_number(out, module.address_size);
  out += "\n\n";
  static const Function no_function;
  bool functions_first = false;  // initial values name them
  for (const Variable& v : module.variables)
    for (const Variable::Address& a : v.addresses) functions_first |= a.function;
  if (functions_first)
    for (const Function& f : module.functions)
      if (!f.is_entry) Printer(module, f, out).header(), out += ";\n";
  for (const Variable& v : module.variables)
    if (v.function == UINT32_MAX) Printer(module, no_function, out).variable(v), out += ";\n";
  // A function may be called before its body: declare those that are no entries first.
  for (const Function& f : module.functions)
    if (!f.is_entry && !f.external && !functions_first) Printer(module, f, out).header(), out += ";\n";
  for (const Function& f : module.functions) out += '\n', Printer(module, f, out).function();
  for (const SourceFile& f : module.files) {
    fmt::format_to(std::back_inserter(out), ".file {} \"{}\"", f.number, f.name);
    if (f.time || f.bytes) fmt::format_to(std::back_inserter(out), ", {}, {}", f.time, f.bytes);
    out += '\n';
  }
  if (!module.inlined.empty()) {
    out += ".section .debug_str\n{\n";
    for (size_t k = 0; k < module.inlined.size(); ++k) {
      fmt::format_to(std::back_inserter(out), "$L__info_string{}:\n.b8 ", k);
      for (char c : module.inlined[k])
        fmt::format_to(std::back_inserter(out), "{}, ", static_cast<unsigned>(static_cast<unsigned char>(c)));
      out += "0\n";
    }
    out += "}\n";
  }
  return out;
}

std::string print(const Module& module, const Function& function) {
  std::string out;
  Printer(module, function, out).function();
  return out;
}

std::string print(const Module& module, const Function& function, const Instruction& instruction) {
  std::string out;
  Printer(module, function, out).instruction(instruction);
  return out;
}

}  // namespace rndn::ptx
