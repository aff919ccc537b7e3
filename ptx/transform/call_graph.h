// What the functions of a module call. Private to this folder.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "ptx/ir.h"

namespace rndn::ptx {

inline uint64_t bytes_of(const ptx::Parameter& p) { return uint64_t{ptx::type_bytes(p.type)} * std::max(p.count, 1u); }
inline bool driver_resolves(const ptx::Function& f) {
  return f.name == "vprintf" || f.name == "malloc" || f.name == "free" || f.name == "__assertfail";
}

// Seen once for all entries.
struct CallGraph {
  explicit CallGraph(const ptx::Module& m) : calls(m.functions.size()), recursive(m.functions.size()) {
    auto take = [&](uint32_t f) {
      if (f < m.functions.size() && !m.functions[f].is_entry) taken.push_back(f);
    };
    for (const ptx::Variable& v : m.variables)
      for (const ptx::Variable::Address& a : v.addresses)
        if (a.function) take(a.id);
    for (const ptx::Function& f : m.functions)
      for (const ptx::Instruction& i : f.instructions)
        if (i.op == ptx::Opcode::mov && i.operand_count == 2 && f.operand(i, 1).kind == ptx::Operand::function)
          take(f.operand(i, 1).id);
    std::sort(taken.begin(), taken.end());
    taken.erase(std::unique(taken.begin(), taken.end()), taken.end());
    for (uint32_t k = 0; k < m.functions.size(); ++k)
      for (const ptx::Instruction& i : m.functions[k].instructions) {
        if (i.op != ptx::Opcode::call) continue;
        const ptx::Operand& callee = m.functions[k].operand(i, i.destination_count);
        if (callee.kind == ptx::Operand::function)
          calls[k].push_back(callee.id);
        else
          for (uint32_t c : candidates(m, m.functions[k], i)) calls[k].push_back(c);
      }
    components();
    for (const ptx::Function& f : m.functions)
      allocates.push_back(std::any_of(f.instructions.begin(), f.instructions.end(), ptx::uses_stack));
  }

  // Whether the function, or one that it calls, moves the stack's top.
  bool reaches_allocation(uint32_t function) const {
    std::vector<bool> seen(calls.size(), false);
    std::vector<uint32_t> open = {function};
    while (!open.empty()) {
      const uint32_t f = open.back();
      open.pop_back();
      if (seen[f]) continue;
      if (allocates[f]) return true;
      seen[f] = true;
      open.insert(open.end(), calls[f].begin(), calls[f].end());
    }
    return false;
  }

  // Functions that a call through a register can mean.
  std::vector<uint32_t> candidates(const ptx::Module& m, const ptx::Function& f, const ptx::Instruction& i) const {
    std::vector<uint32_t> out;
    const ptx::Prototype& p = f.prototypes[f.operand(i, i.operand_count - 1u).id];
    auto same = [](const std::vector<ptx::Parameter>& a, const std::vector<ptx::Parameter>& b) {
      return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                        [](const ptx::Parameter& x, const ptx::Parameter& y) { return bytes_of(x) == bytes_of(y); });
    };
    for (uint32_t k : taken) {
      const ptx::Function& g = m.functions[k];
      if ((!g.external || driver_resolves(g)) && same(g.parameters, p.parameters) && same(g.results, p.results))
        out.push_back(k);
    }
    return out;
  }

  std::vector<uint32_t> taken;               // functions whose address is taken
  std::vector<std::vector<uint32_t>> calls;  // by function
  std::vector<bool> recursive;               // can reach itself
  std::vector<bool> allocates;               // moves the stack's top itself

 private:
  // Tarjan's strongly connected components, without recursion.
  void components() {
    const uint32_t n = static_cast<uint32_t>(calls.size());
    std::vector<uint32_t> number(n, 0), low(n, 0), stack;
    std::vector<bool> on_stack(n, false);
    uint32_t count = 0;
    struct Visit {
      uint32_t function;
      size_t next;
    };
    std::vector<Visit> visits;
    for (uint32_t root = 0; root < n; ++root) {
      if (number[root]) continue;
      visits.push_back({root, 0});
      while (!visits.empty()) {
        const uint32_t f = visits.back().function;
        if (visits.back().next == 0) number[f] = low[f] = ++count, stack.push_back(f), on_stack[f] = true;
        if (visits.back().next < calls[f].size()) {
          const uint32_t g = calls[f][visits.back().next++];
          if (g == f) recursive[f] = true;
          if (!number[g])
            visits.push_back({g, 0});
          else if (on_stack[g])
            low[f] = std::min(low[f], number[g]);
          continue;
        }
        visits.pop_back();
        if (!visits.empty()) low[visits.back().function] = std::min(low[visits.back().function], low[f]);
        if (low[f] != number[f]) continue;
        const bool several = stack.back() != f;
        while (true) {
          const uint32_t g = stack.back();
          stack.pop_back();
          on_stack[g] = false;
          if (several) recursive[g] = true;
          if (g == f) break;
        }
      }
    }
  }
};

}  // namespace rndn::ptx
