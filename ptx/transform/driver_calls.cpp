// Keeps registers in local memory across calls: of the driver's functions, which change any register, and of recursive functions, which change
// those of their one body.
//
// What it does: finds which registers are alive where a call returns, and stores them before the call and loads them behind it. A predicate is
// kept as a number. Registers of 64 bits come first, so that all are aligned.
// Invariant: the meaning is the same; labels stay where they were but for the two of each site, between which the call stands.
// Algorithm: backward data flow of live registers over blocks of instructions, bit sets, to a fixed point.
// Cost: O(instructions * registers / 64) times the rounds; only for functions with such calls.
#include "ptx/transform/driver_calls.h"

#include <algorithm>

#include "ptx/opcodes.h"

namespace rndn::ptx {
namespace {

using ptx::Opcode;
using ptx::Operand;
using ptx::Space;
using ptx::Type;

class Liveness {
 public:
  explicit Liveness(const ptx::Function& f) : f_(f), words_((f.registers.size() + 63) / 64) {
    const uint32_t n = static_cast<uint32_t>(f.instructions.size());
    std::vector<bool> begins(n + 1, false);
    begins[0] = true;
    for (const ptx::Label& l : f.labels)
      if (l.at <= n) begins[l.at] = true;
    for (uint32_t k = 0; k < n; ++k)
      if (leaves(f.instructions[k]) && k + 1 <= n) begins[k + 1] = true;
    block_of_.resize(n + 1);
    for (uint32_t k = 0; k <= n; ++k) {
      if (begins[k]) starts_.push_back(k);
      block_of_[k] = static_cast<uint32_t>(starts_.size() - 1);
    }
    in_.assign(starts_.size(), std::vector<uint64_t>(words_, 0));
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t b = static_cast<uint32_t>(starts_.size()); b-- > 0;) {
        std::vector<uint64_t> live = out(b);
        const uint32_t end = b + 1 < starts_.size() ? starts_[b + 1] : n;
        for (uint32_t k = std::min(end, n); k-- > starts_[b];) step(f.instructions[k], live);
        if (live != in_[b]) in_[b] = std::move(live), changed = true;
      }
    }
  }
  bool live_at(ptx::LabelId label, uint32_t reg) const {
    return in_[block_of_[f_.labels[label].at]][reg / 64] >> (reg % 64) & 1;  // a label begins a block
  }

 private:
  static bool leaves(const ptx::Instruction& i) {
    return i.op == Opcode::bra || i.op == Opcode::ret || i.op == Opcode::exit;
  }
  std::vector<uint64_t> out(uint32_t b) const {
    std::vector<uint64_t> live(words_, 0);
    const uint32_t n = static_cast<uint32_t>(f_.instructions.size());
    const uint32_t end = b + 1 < starts_.size() ? starts_[b + 1] : n;
    if (end == 0 || end <= starts_[b]) return live;
    auto join = [&](uint32_t at) {
      const std::vector<uint64_t>& other = in_[block_of_[at]];
      for (size_t w = 0; w < words_; ++w) live[w] |= other[w];
    };
    const ptx::Instruction& last = f_.instructions[end - 1];
    if (last.op == Opcode::bra) join(f_.labels[f_.operand(last, 0).label_id()].at);
    if (!leaves(last) || !is_none(last.guard)) join(end);
    return live;
  }
  void step(const ptx::Instruction& i, std::vector<uint64_t>& live) const {
    auto each = [&](const Operand& o, auto&& use) {
      if (o.kind == Operand::reg || o.kind == Operand::address_reg) use(o.id);
      if (o.kind == Operand::vector)
        for (uint32_t e = 0; e < o.count; ++e)
          if (f_.vector_elements[o.id + e].kind == Operand::reg) use(f_.vector_elements[o.id + e].id);
    };
    if (is_none(i.guard))
      for (uint32_t k = 0; k < i.destination_count; ++k)
        each(f_.operand(i, k), [&](uint32_t r) { live[r / 64] &= ~(uint64_t{1} << (r % 64)); });
    for (uint32_t k = i.destination_count; k < i.operand_count; ++k)
      each(f_.operand(i, k), [&](uint32_t r) { live[r / 64] |= uint64_t{1} << (r % 64); });
    if (!is_none(i.guard)) live[index(i.guard) / 64] |= uint64_t{1} << (index(i.guard) % 64);
  }

  const ptx::Function& f_;
  size_t words_;
  std::vector<uint32_t> starts_, block_of_;
  std::vector<std::vector<uint64_t>> in_;
};

Operand reg(uint32_t r) { return {Operand::reg, false, 0, r, 0}; }

}  // namespace

void save_registers(ptx::Module& module, uint32_t entry, ptx::Function& f, const std::vector<Site>& sites) {
  if (sites.empty()) return;
  const Liveness liveness(f);
  const uint32_t registers = static_cast<uint32_t>(f.registers.size());
  // What to add in front of each instruction, in order of the places.
  struct Added {
    uint32_t at;
    bool behind;  // what stands before: labels there lead past it
    std::vector<ptx::Instruction> code;
  };
  std::vector<Added> added;
  uint64_t shared_bytes = 0;
  uint32_t variable = UINT32_MAX;
  uint32_t flag = UINT32_MAX, bit = UINT32_MAX;
  auto make = [&](Opcode op, Type type, Space space, uint32_t destinations, std::initializer_list<Operand> operands) {
    ptx::Instruction i;
    i.op = op, i.type = type, i.mods.space = space;
    i.destination_count = static_cast<uint8_t>(destinations);
    i.operand_count = static_cast<uint8_t>(operands.size());
    i.first_operand = static_cast<uint32_t>(f.operands.size());
    f.operands.append({operands.begin(), operands.size()});
    return i;
  };
  for (const Site& s : sites) {
    Added before{f.labels[s.save].at, false, {}}, after{f.labels[s.restore].at, true, {}};
    const bool in_frame = s.frame.kind == Operand::reg;
    uint64_t at = in_frame ? (*s.frame_bytes + 7) / 8 * 8 : 0;
    for (const uint32_t bytes : {8u, 4u, 0u, 2u})  // 0: predicates, which take 4
      for (uint32_t r = s.first_register; r < std::min(s.end_register, registers); ++r) {
        const Type type = f.registers[ptx::RegisterId{r}].type;
        const uint32_t own = ptx::type_bytes(type);
        if (own != bytes || (in_frame && r == s.frame.id) || !liveness.live_at(s.restore, r)) continue;
        Operand place;
        if (in_frame) {
          place = {Operand::address_reg, false, 0, s.frame.id, static_cast<int64_t>(at)};
        } else {
          if (variable == UINT32_MAX) {
            ptx::Variable v;
            v.space = Space::local, v.type = Type::b8, v.align = 8, v.count = 8, v.function = entry;
            v.name = "$saved_" + f.name;
            variable = static_cast<uint32_t>(module.variables.size());
            module.variables.add(std::move(v));
          }
          place = {Operand::address_var, false, 0, variable, static_cast<int64_t>(at)};
        }
        if (own == 0) {  // a predicate
          if (flag == UINT32_MAX) {
            flag = static_cast<uint32_t>(index(f.add_register(Type::b32, "%saved_flag")));
            bit = static_cast<uint32_t>(index(f.add_register(Type::b32, "%saved_bit")));
          }
          before.code.push_back(make(Opcode::selp, Type::b32, Space::generic, 1,
                                     {reg(flag), {Operand::immediate, false, 0, 0, 1}, {Operand::immediate}, reg(r)}));
          before.code.push_back(make(Opcode::st, Type::b32, Space::local, 0, {place, reg(flag)}));
          after.code.push_back(make(Opcode::ld, Type::b32, Space::local, 1, {reg(bit), place}));
          after.code.push_back(
              make(Opcode::setp, Type::b32, Space::generic, 1, {reg(r), reg(bit), {Operand::immediate}}));
          after.code.back().mods.compare = ptx::Compare::ne;
          at += 4;
          continue;
        }
        const Type bits = own == 8 ? Type::b64 : own == 4 ? Type::b32 : Type::b16;
        before.code.push_back(make(Opcode::st, bits, Space::local, 0, {place, reg(r)}));
        after.code.push_back(make(Opcode::ld, bits, Space::local, 1, {reg(r), place}));
        at += own;
      }
    at = (at + 7) / 8 * 8;
    if (in_frame)
      *s.frame_bytes = std::max(*s.frame_bytes, at);
    else
      shared_bytes = std::max(shared_bytes, at);
    added.push_back(std::move(before));
    added.push_back(std::move(after));
  }
  if (variable != UINT32_MAX) module.variables[ptx::VariableId{variable}].count = std::max<uint64_t>(shared_bytes, 8);

  std::stable_sort(added.begin(), added.end(), [](const Added& a, const Added& b) {
    return std::pair(a.at, !a.behind) < std::pair(b.at, !b.behind);
  });
  const RawVector<ptx::Instruction> old = std::exchange(f.instructions, {});
  std::vector<uint32_t> moved(old.size() + 1);
  size_t next = 0;
  for (uint32_t k = 0; k <= old.size(); ++k) {
    auto add = [&](bool behind) {
      for (; next < added.size() && added[next].at == k && added[next].behind == behind; ++next)
        for (ptx::Instruction& i : added[next].code) {
          i.line = k < old.size() ? old[k].line : 0;
          f.instructions.push_back(i);
        }
    };
    add(true);
    moved[k] = static_cast<uint32_t>(f.instructions.size());
    add(false);
    if (k < old.size()) f.instructions.push_back(old[k]);
  }
  for (ptx::Label& l : f.labels)
    if (l.at <= old.size()) l.at = moved[l.at];
}

}  // namespace rndn::ptx
