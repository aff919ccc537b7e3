// Calls become copies of the called function's body, so that every pass after this one sees entries only.
//
// What it does: per entry, every call of a .func is replaced by the body with registers, labels and .local variables of its own; `ret` becomes a
// branch behind the copy. Parameters and results travel in .param variables of the caller: in the copy they are named directly, since the callee
// only reads its parameters and the caller does not touch them during the call (PTX ISA, "Parameter passing").
// Then the .param variables of the entry go: one that is only read and written in pieces that do not overlap becomes a register per piece, any
// other one (a structure accessed in different ways, or whose address is taken) becomes a .local variable.
// Invariant: the result has the meaning of the input, and passes the PTX verifier.
// Cost: linear in the size of the result, which is limited (`max_instructions`).
// Left out: recursion, functions without a body (vprintf, malloc), calls through registers: errors that name the call.
#include "assembler/inline_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ptx/opcodes.h"

namespace rndn::assembler {
namespace {

using ptx::Opcode;
using ptx::Operand;
using ptx::Space;
using ptx::Type;

constexpr size_t max_instructions = 4'000'000;  // of one function with all that it calls
constexpr size_t max_depth = 200;

// A body under construction. Labels get their places as instructions are added.
struct Body {
  ptx::Function f;

  uint32_t add_operand(const Operand& o) {
    f.operands.push_back(o);
    return static_cast<uint32_t>(f.operands.size() - 1);
  }
  void add(ptx::Instruction i, std::initializer_list<Operand> operands) {
    i.first_operand = static_cast<uint32_t>(f.operands.size());
    i.operand_count = static_cast<uint8_t>(operands.size());
    f.operands.insert(f.operands.end(), operands.begin(), operands.end());
    f.instructions.push_back(i);
  }
  ptx::LabelId label(std::string name) { return f.labels.add({std::move(name), UINT32_MAX}); }
  void place(ptx::LabelId l) { f.labels[l].at = static_cast<uint32_t>(f.instructions.size()); }
  Operand reg(Type type, std::string name) {
    return {Operand::reg, false, 0, static_cast<uint32_t>(index(f.registers.add({type, std::move(name)}))), 0};
  }
  void branch(ptx::LabelId to, uint32_t line, ptx::RegisterId guard = none<ptx::RegisterId>(), bool negated = false) {
    ptx::Instruction i;
    i.op = Opcode::bra;
    i.line = line, i.guard = guard, i.guard_negated = negated;
    add(i, {{Operand::label, false, 0, static_cast<uint32_t>(index(to)), 0}});
  }
};

class Inliner {
 public:
  explicit Inliner(ptx::Module& module) : m_(module) {}

  Result<void> run(uint32_t entry) {
    entry_ = entry;
    const ptx::Function original = m_.functions[entry];
    body_.f = original;
    body_.f.registers.clear(), body_.f.labels.clear(), body_.f.instructions.clear(), body_.f.operands.clear(),
        body_.f.vector_elements.clear();
    RETURN_IF_ERROR(copy(entry, original, nullptr, nullptr, none<ptx::LabelId>()));
    replace_parameters();
    m_.functions[entry] = std::move(body_.f);
    return {};
  }

 private:
  static Error fail(const ptx::Function& f, const ptx::Instruction& i, std::string why) {
    return Error{Fault::input, fmt::format("function {}, line {}: {}", f.name, i.line, why)};
  }

  // Appends a copy of g's body. `call` (in `caller_operands`, already in terms of the entry): the arguments; null for the entry itself.
  Result<void> copy(uint32_t function, const ptx::Function& g, const ptx::Instruction* call, const Operand* arguments,
                    ptx::LabelId end) {
    stack_.push_back(function);
    const bool inlined = call != nullptr;
    const std::string suffix = inlined ? fmt::format("_i{}", ++copies_) : std::string();
    const uint32_t first_register = static_cast<uint32_t>(body_.f.registers.size());
    for (const ptx::Register& r : g.registers) body_.f.registers.add({r.type, r.name + suffix});
    const uint32_t first_label = static_cast<uint32_t>(body_.f.labels.size());
    for (const ptx::Label& l : g.labels) body_.f.labels.add({l.name + suffix, UINT32_MAX});
    // Labels by place, to set them as instructions come out.
    std::vector<std::pair<uint32_t, uint32_t>> labels;
    for (uint32_t k = 0; k < g.labels.size(); ++k) labels.push_back({g.labels[ptx::LabelId{k}].at, k});
    std::sort(labels.begin(), labels.end());
    size_t next_label = 0;

    auto map = [&](Operand o) {
      switch (o.kind) {
        case Operand::reg:
        case Operand::address_reg: o.id += first_register; break;
        case Operand::label: o.id += first_label; break;
        case Operand::variable:
        case Operand::address_var: o.id = variable(function, o.id, inlined); break;
        case Operand::parameter:
          if (inlined) {
            const Operand& a = o.id < g.parameters.size() ? arguments[call->destination_count + 1 + o.id]
                                                          : arguments[o.id - g.parameters.size()];
            const int64_t offset = o.value;
            o = a;
            o.value += offset;
            if (o.kind == Operand::variable) o.kind = Operand::address_var;
          }
          break;
        default: break;
      }
      return o;
    };
    for (uint32_t k = 0; k <= g.instructions.size(); ++k) {
      for (; next_label < labels.size() && labels[next_label].first <= k; ++next_label)
        body_.place(ptx::LabelId{first_label + labels[next_label].second});
      if (k == g.instructions.size()) break;
      ptx::Instruction i = g.instructions[k];
      if (!is_none(i.guard)) i.guard = ptx::RegisterId{static_cast<uint32_t>(index(i.guard)) + first_register};
      if (inlined && i.op == Opcode::ret) {
        body_.branch(end, i.line, i.guard, i.guard_negated);
        continue;
      }
      if (body_.f.instructions.size() > max_instructions)
        return fail(g, i, fmt::format("more than {} instructions once its calls are inlined", max_instructions));
      std::vector<Operand> operands;
      for (uint32_t o = 0; o < i.operand_count; ++o) {
        Operand x = map(g.operand(i, o));
        if (x.kind == Operand::vector) {
          const uint32_t first = static_cast<uint32_t>(body_.f.vector_elements.size());
          for (uint32_t e = 0; e < x.count; ++e)
            body_.f.vector_elements.push_back(map(g.vector_elements[g.operand(i, o).id + e]));
          x.id = first;
        }
        // `mov %rd, param`: the address, not what lies there.
        if (x.kind == Operand::address_var && i.op == Opcode::mov) x.kind = Operand::variable;
        operands.push_back(x);
      }
      if (i.op == Opcode::call) {
        RETURN_IF_ERROR(expand(g, i, operands));
        continue;
      }
      // Through a register, a .func reaches its parameters where the caller put them.
      if (inlined && (i.op == Opcode::ld || i.op == Opcode::st) && i.mods.space == Space::param)
        for (const Operand& o : operands)
          if (o.kind == Operand::address_reg) i.mods.space = Space::local;
      i.first_operand = static_cast<uint32_t>(body_.f.operands.size());
      body_.f.operands.insert(body_.f.operands.end(), operands.begin(), operands.end());
      body_.f.instructions.push_back(i);
    }
    stack_.pop_back();
    return {};
  }

  Result<void> expand(const ptx::Function& caller, const ptx::Instruction& i, const std::vector<Operand>& operands) {
    const Operand& callee = operands[i.destination_count];
    if (callee.kind != Operand::function || callee.id >= m_.functions.size())
      return fail(caller, i, "unsupported call through a register: only direct calls are assembled");
    const ptx::Function& g = m_.functions[callee.id];
    if (g.external)
      return fail(caller, i, fmt::format("unsupported call of `{}`, which has no body in this module", g.name));
    if (std::find(stack_.begin(), stack_.end(), callee.id) != stack_.end())
      return fail(caller, i,
                  fmt::format("unsupported recursion: `{}` calls itself, directly or through others", g.name));
    if (stack_.size() > max_depth) return fail(caller, i, fmt::format("calls nested deeper than {}", max_depth));
    const ptx::LabelId end = body_.label(fmt::format("$end_{}_{}", g.name, copies_ + 1));
    if (!is_none(i.guard)) body_.branch(end, i.line, i.guard, !i.guard_negated);
    RETURN_IF_ERROR(copy(callee.id, g, &i, operands.data(), end));
    body_.place(end);
    return {};
  }

  // The entry's own copy of a function's .local and .param variables.
  uint32_t variable(uint32_t function, uint32_t id, bool inlined) {
    const ptx::Variable& v = m_.variables[ptx::VariableId{id}];
    if (!inlined || v.function != function || (v.space != Space::local && v.space != Space::param)) return id;
    auto [at, fresh] = variables_.try_emplace(id, static_cast<uint32_t>(m_.variables.size()));
    if (fresh) {
      ptx::Variable copy = v;
      copy.function = entry_;
      copy.name = fmt::format("{}_{}", copy.name, m_.functions[entry_].name);
      m_.variables.add(std::move(copy));
    }
    return at->second;
  }

  // --- .param variables of the entry to registers or .local variables

  struct Storage {
    bool memory = false;
    std::map<uint64_t, std::pair<uint32_t, Operand>> pieces;  // offset -> bytes, register
    void access(uint64_t offset, uint32_t bytes) {
      auto [at, fresh] = pieces.try_emplace(offset, bytes, Operand{});
      if (!fresh) memory |= at->second.first != bytes;
    }
    void finish() {
      uint64_t end = 0;
      for (const auto& [offset, piece] : pieces) {
        if (offset < end) memory = true;
        end = offset + piece.first;
      }
    }
  };

  bool is_parameter(const Operand& o) const {
    return (o.kind == Operand::address_var || o.kind == Operand::variable) &&
           m_.variables[o.variable_id()].space == Space::param;
  }

  void replace_parameters() {
    std::map<uint32_t, Storage> storage;
    for (const ptx::Instruction& i : body_.f.instructions)
      for (uint32_t k = 0; k < i.operand_count; ++k) {
        const Operand& o = body_.f.operand(i, k);
        if (!is_parameter(o)) continue;
        Storage& s = storage[o.id];
        const uint32_t bytes = ptx::type_bytes(i.type);
        const uint64_t total = static_cast<uint64_t>(bytes) * i.mods.vector;
        const ptx::Variable& v = m_.variables[o.variable_id()];
        const uint64_t size = uint64_t{ptx::type_bytes(v.type)} * std::max<uint64_t>(v.count, 1);
        if ((i.op != Opcode::ld && i.op != Opcode::st) || o.value < 0 || bytes > 8 ||
            static_cast<uint64_t>(o.value) + total > size) {
          s.memory = true;
          continue;
        }
        for (uint32_t e = 0; e < i.mods.vector; ++e) s.access(static_cast<uint64_t>(o.value) + e * bytes, bytes);
      }
    if (storage.empty()) return;
    uint32_t number = 0;
    for (auto& [id, s] : storage) {
      s.finish();
      if (s.memory) {
        m_.variables[ptx::VariableId{id}].space = Space::local;
        m_.variables[ptx::VariableId{id}].function = entry_;
        continue;
      }
      for (auto& [offset, piece] : s.pieces)
        piece.second = body_.reg(piece.first == 8   ? Type::b64
                                 : piece.first == 4 ? Type::b32
                                                    : Type::b16,
                                 fmt::format("%param_{}", number++));
    }
    // Instructions that access registers become moves; labels follow.
    std::vector<ptx::Instruction> old;
    old.swap(body_.f.instructions);
    std::vector<uint32_t> moved(old.size() + 1);
    for (uint32_t k = 0; k < old.size(); ++k) {
      moved[k] = static_cast<uint32_t>(body_.f.instructions.size());
      ptx::Instruction i = old[k];
      const uint32_t at = i.op == Opcode::st ? 0 : 1;
      if ((i.op != Opcode::ld && i.op != Opcode::st) || i.operand_count < 2) {
        body_.f.instructions.push_back(i);
        continue;
      }
      const Operand address = body_.f.operand(i, at), data = body_.f.operand(i, 1 - at);
      auto s = address.kind == Operand::address_var ? storage.find(address.id) : storage.end();
      if (s == storage.end()) {
        body_.f.instructions.push_back(i);
        continue;
      }
      if (s->second.memory) {
        i.mods.space = Space::local;
        body_.f.instructions.push_back(i);
        continue;
      }
      const uint32_t bytes = ptx::type_bytes(i.type);
      for (uint32_t e = 0; e < i.mods.vector; ++e) {
        const Operand& piece = s->second.pieces.at(static_cast<uint64_t>(address.value) + e * bytes).second;
        const Operand value = data.kind == Operand::vector ? body_.f.vector_elements[data.id + e] : data;
        i.op == Opcode::st ? move(i, piece, value, bytes, true) : move(i, value, piece, bytes, false);
      }
    }
    moved[old.size()] = static_cast<uint32_t>(body_.f.instructions.size());
    for (ptx::Label& l : body_.f.labels)
      if (l.at <= old.size()) l.at = moved[l.at];
  }

  // to = from; the access had i's type of `bytes` bytes. Registers may be wider than the access.
  void move(const ptx::Instruction& i, const Operand& to, const Operand& from, uint32_t bytes, bool store) {
    if (to.kind == Operand::sink) return;
    ptx::Instruction out;
    out.line = i.line, out.guard = i.guard, out.guard_negated = i.guard_negated, out.destination_count = 1;
    const uint32_t width =
        ptx::type_bytes(body_.f.registers[(store && from.kind == Operand::reg ? from : to).reg_id()].type);
    static constexpr Type unsigned_of[] = {Type::u8, Type::u16, Type::u32, Type::u64},
                          signed_of[] = {Type::s8, Type::s16, Type::s32, Type::s64},
                          bits_of[] = {Type::b8, Type::b16, Type::b32, Type::b64};
    auto log2 = [](uint32_t n) { return n == 8 ? 3u : n == 4 ? 2u : n == 2 ? 1u : 0u; };
    if (bytes == width || (from.kind == Operand::immediate && bytes > 1)) {
      out.op = Opcode::mov;
      out.type = bits_of[log2(bytes)];
    } else if (from.kind == Operand::immediate) {  // one byte
      out.op = Opcode::mov;
      out.type = Type::b16;
      body_.add(out, {to, {Operand::immediate, false, 0, 0, from.value & 0xff}});
      return;
    } else if (store) {  // the low bytes
      out.op = Opcode::cvt;
      out.type = unsigned_of[log2(bytes)];
      out.type2 = unsigned_of[log2(width)];
    } else {
      const bool s = ptx::is_signed(i.type);
      out.op = Opcode::cvt;
      out.type = (s ? signed_of : unsigned_of)[log2(width)];
      out.type2 = (s ? signed_of : unsigned_of)[log2(bytes)];
    }
    body_.add(out, {to, from});
  }

  ptx::Module& m_;
  uint32_t entry_ = 0, copies_ = 0;
  Body body_;
  std::vector<uint32_t> stack_;             // functions being copied, outermost first
  std::map<uint32_t, uint32_t> variables_;  // of callees -> the entry's copies
};

}  // namespace

bool has_calls(const ptx::Module& module) {
  for (const ptx::Variable& v : module.variables)
    if (v.space == Space::param) return true;  // where calls put their arguments
  for (const ptx::Function& f : module.functions) {
    if (!f.is_entry) continue;
    for (const ptx::Instruction& i : f.instructions)
      if (i.op == Opcode::call) return true;
  }
  return false;
}

Result<ptx::Module> inline_calls(const ptx::Module& module) {
  ptx::Module out = module;
  for (uint32_t k = 0; k < out.functions.size(); ++k)
    if (out.functions[k].is_entry && !out.functions[k].external) RETURN_IF_ERROR(Inliner(out).run(k));
  return out;
}

}  // namespace rndn::assembler
