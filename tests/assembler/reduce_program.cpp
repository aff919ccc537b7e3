#include "tests/assembler/reduce_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "ptx/parse.h"
#include "tests/assembler/random_programs.h"

namespace rndn::testing {

// Whether some way through the function reads a register that it has not set. (A guarded instruction sets nothing for sure.)
bool reads_unset(const ptx::Function& f) {
  const size_t n = f.instructions.size(), carry = f.registers.size(), registers = carry + 1;
  using Set = std::vector<bool>;
  std::vector<Set> at(n + 1);  // set for sure, where instructions begin that a jump reaches; empty: not reached yet
  std::vector<bool> target(n + 1);
  for (const ptx::Label& l : f.labels) target[std::min<size_t>(l.at, n)] = true;
  bool unset = false;
  for (bool changed = true; changed;) {
    changed = unset = false;
    Set now(registers);
    bool reached = true;
    const auto meet = [&](size_t place, const Set& with) {
      Set& s = at[place];
      if (s.empty()) {
        s = with, changed = true;
        return;
      }
      for (size_t r = 0; r < registers; ++r)
        if (s[r] && !with[r]) s[r] = false, changed = true;
    };
    for (size_t k = 0; k < n; ++k) {
      if (target[k]) {
        if (reached) meet(k, now);
        reached = !at[k].empty();
        now = at[k];
      }
      if (!reached) continue;
      const ptx::Instruction& i = f.instructions[k];
      const auto read = [&](const ptx::Operand& o) {
        if ((o.kind == ptx::Operand::reg || o.kind == ptx::Operand::address_reg) && !now[o.id]) unset = true;
        if (o.kind == ptx::Operand::vector)
          for (uint32_t e = 0; e < o.count; ++e) {
            const ptx::Operand& x = f.vector_elements[o.id + e];
            if (x.kind == ptx::Operand::reg && !now[x.id]) unset = true;
          }
      };
      if (!is_none(i.guard) && !now[index(i.guard)]) unset = true;
      // A carry is for the next instruction of its chain only.
      const bool takes = i.op == ptx::Opcode::addc || i.op == ptx::Opcode::subc || i.op == ptx::Opcode::madc;
      if (takes && !now[carry]) unset = true;
      now[carry] = i.mods.carry_out;
      for (uint32_t o = i.destination_count; o < i.operand_count; ++o) read(f.operand(i, o));
      for (uint32_t o = 0; o < i.destination_count && is_none(i.guard); ++o) {
        const ptx::Operand& d = f.operand(i, o);
        if (d.kind == ptx::Operand::reg) now[d.id] = true;
        if (d.kind == ptx::Operand::vector)
          for (uint32_t e = 0; e < d.count; ++e) now[f.vector_elements[d.id + e].id] = true;
      }
      if (i.op == ptx::Opcode::bra) {
        meet(f.labels[f.operand(i, 0).label_id()].at, now);
        if (is_none(i.guard)) reached = false;
      }
      if ((i.op == ptx::Opcode::ret || i.op == ptx::Opcode::exit) && is_none(i.guard)) reached = false;
    }
  }
  return unset;
}

namespace {

// Which instructions may go, and which only as a move of zero.
bool makes_defined(const ptx::Instruction& i) {
  if (i.line != program_frame) return false;
  switch (i.op) {  // NaNs become one, divisors are not zero, threads have places of their own
    case ptx::Opcode::setp:
    case ptx::Opcode::selp:
    case ptx::Opcode::and_:
    case ptx::Opcode::or_:
    case ptx::Opcode::mov:
    case ptx::Opcode::mad:
    case ptx::Opcode::cvta: return true;
    default: return false;
  }
}
// Stacks, blocks and arguments have the values that are read from them; a row of the output need not be written.
bool must_stay(const ptx::Instruction& i) {
  if (i.op == ptx::Opcode::st && i.mods.space == ptx::Space::param) return true;
  return i.line == program_frame && i.destination_count == 0 && i.mods.space != ptx::Space::global;
}

}  // namespace

ptx::Module reduced(ptx::Module module, const std::string& kernel, const std::function<bool(const ptx::Module&)>& fails,
                    std::chrono::seconds limit) {
  uint32_t which = 0;
  while (module.functions[which].name != kernel) ++which;
  const auto start = std::chrono::steady_clock::now();
  const auto still_fails = [&](const ptx::Module& m) {
    return ptx::verify(m).empty() && !reads_unset(m.functions[which]) && fails(m);
  };
  const auto without = [&](const ptx::Function& f, size_t at, size_t count, bool zeros) {
    ptx::Function g = f;
    g.instructions.resize(at);
    for (size_t k = at; zeros && k < at + count; ++k) {
      const ptx::Instruction& i = f.instructions[k];
      for (uint32_t d = 0; d < i.destination_count; ++d) {
        const ptx::Operand& o = f.operand(i, d);
        std::vector<ptx::Operand> to;
        if (o.kind == ptx::Operand::reg) to.push_back(o);
        if (o.kind == ptx::Operand::vector)
          for (uint32_t e = 0; e < o.count; ++e) to.push_back(f.vector_elements[o.id + e]);
        for (const ptx::Operand& r : to) {
          if (r.kind != ptx::Operand::reg) continue;
          ptx::Instruction move;
          move.op = ptx::Opcode::mov;
          const ptx::Type t = f.registers[r.reg_id()].type;
          move.type = t == ptx::Type::pred      ? t
                      : ptx::type_bytes(t) == 2 ? ptx::Type::b16
                      : ptx::type_bytes(t) == 4 ? ptx::Type::b32
                                                : ptx::Type::b64;
          move.operand_count = 2, move.destination_count = 1;
          move.first_operand = static_cast<uint32_t>(g.operands.size());
          g.operands.push_back(r);
          g.operands.push_back({.kind = ptx::Operand::immediate, .value = 0});
          g.instructions.push_back(move);
        }
      }
    }
    const size_t kept = g.instructions.size();
    g.instructions.append(std::span(f.instructions).subspan(at + count));
    for (ptx::Label& l : g.labels)
      if (l.at >= at + count)
        l.at = static_cast<uint32_t>(l.at - (at + count) + kept);
      else if (l.at > at)
        l.at = static_cast<uint32_t>(kept);
    return g;
  };
  // The values that the checksum at the end takes in go one by one: a step of it becomes what it adds to, or what it adds.
  const auto passed_through = [&](const ptx::Function& f, size_t at, uint32_t source) {
    const ptx::Instruction& i = f.instructions[at];
    if (i.op != ptx::Opcode::mad || i.mods.part != ptx::MulPart::lo || f.operand(i, 2).value != checksum_factor)
      return std::optional<ptx::Function>();
    const ptx::Operand from = f.operand(i, source);
    if (from.kind != ptx::Operand::reg) return std::optional<ptx::Function>();
    ptx::Function g = f;
    ptx::Instruction& move = g.instructions[at];
    move.op = ptx::Opcode::mov, move.type = ptx::Type::b32, move.mods = {};
    move.operand_count = 2;
    move.first_operand = static_cast<uint32_t>(g.operands.size());
    g.operands.push_back(f.operand(i, 0));
    g.operands.push_back(from);
    return std::optional(std::move(g));
  };
  for (bool again = true; again;) {
    again = false;
    for (size_t at = module.functions[which].instructions.size(); at-- > 0;)
      for (uint32_t source : {1u, 3u}) {
        if (std::chrono::steady_clock::now() - start > limit) return module;
        auto simpler = passed_through(module.functions[which], at, source);
        if (!simpler) continue;
        ptx::Module candidate = module;
        candidate.functions[which] = *std::move(simpler);
        if (!still_fails(candidate)) continue;
        module = std::move(candidate);
        again = true;
      }
    for (size_t chunk = 128; chunk > 0; chunk /= 2)
      for (size_t end = module.functions[which].instructions.size(); end > 0;) {
        const size_t at = end > chunk ? end - chunk : 0;
        end = at;
        if (std::chrono::steady_clock::now() - start > limit) return module;
        ptx::Function& f = module.functions[which];
        const size_t count = std::min(chunk, f.instructions.size() - std::min(at, f.instructions.size()));
        if (count == 0) continue;
        const auto begin = f.instructions.begin() + static_cast<ptrdiff_t>(at),
                   stop = begin + static_cast<ptrdiff_t>(count);
        if (std::any_of(begin, stop, must_stay)) continue;
        const bool frame = std::any_of(begin, stop, makes_defined);
        for (bool zeros : {false, true}) {
          const ptx::Instruction& first = f.instructions[at];
          if (zeros && frame) continue;
          if (zeros && chunk == 1 && first.op == ptx::Opcode::mov && first.operand_count == 2 &&
              f.operand(first, 1).kind == ptx::Operand::immediate && f.operand(first, 1).value == 0)
            continue;
          ptx::Module candidate = module;
          candidate.functions[which] = without(f, at, count, zeros);
          if (still_fails(candidate)) {
            module = std::move(candidate);
            again = true;
            break;
          }
        }
      }
  }
  return module;
}

// Only what the kernel needs.
ptx::Module tidy(const ptx::Module& module, const std::string& kernel) {
  ptx::Module out = module;
  for (ptx::Function& f : out.functions) {
    if (f.name != kernel) continue;
    std::vector<bool> used(f.registers.size());
    for (const ptx::Instruction& i : f.instructions) {
      if (!is_none(i.guard)) used[index(i.guard)] = true;
      for (uint32_t k = 0; k < i.operand_count; ++k) {
        const ptx::Operand& o = f.operand(i, k);
        if (o.kind == ptx::Operand::reg || o.kind == ptx::Operand::address_reg) used[o.id] = true;
        if (o.kind == ptx::Operand::vector)
          for (uint32_t e = 0; e < o.count; ++e)
            if (f.vector_elements[o.id + e].kind == ptx::Operand::reg) used[f.vector_elements[o.id + e].id] = true;
      }
    }
    // Registers of ranges print shortest when they are few: name them anew.
    std::map<ptx::Type, uint32_t> numbers;
    f.register_names.clear();
    for (bool first : {true, false})
      for (uint32_t r = 0; r < used.size(); ++r) {
        if (used[r] != first) continue;
        ptx::Register& reg = f.registers[static_cast<ptx::RegisterId>(r)];
        reg.named = true;
        reg.number = static_cast<uint32_t>(f.register_names.size());
        f.register_names.push_back(fmt::format("%{}_{}", ptx::type_name(reg.type), numbers[reg.type]++));
      }
  }
  return out;
}

// Without labels that nothing jumps to, and without the values of tables.
std::string text_of(const ptx::Module& module) {
  const std::string text = ptx::print(module);
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line.size() > 1 && line[0] == 'L' && line.back() == ':' &&
        text.find("bra " + line.substr(0, line.size() - 1) + ";") == std::string::npos)
      continue;
    out += line + "\n";
  }
  return out;
}

}  // namespace rndn::testing
