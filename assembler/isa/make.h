// make() for those who make many instructions: what it found is kept by the kinds of operands that it was asked with.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <span>

#include "assembler/isa/isa.h"

namespace rndn::isa {

// What make() found, direct-mapped; for one target.
struct Plan;
class FormCache {
 public:
  struct Entry {
    uint64_t kinds[2];                         // of up to eight operands, with their signs and parts
    const Plan* plan;                          // of the form
    const Instruction* initial;                // with its own modifiers and operands
    const RowFacts* row;                       // what passes ask about it; null: no row takes such operands
    uint16_t mnemonic;                         // none: nothing is known
    uint8_t count;                             // of operands
    uint8_t by_value;                          // slots whose operands' values decide whether the form takes them
    uint8_t defaults;                          // slots that the row's own operands fill
    bool in_order;                             // operand k goes to slot k, where that is not filled by the row
    std::array<uint8_t, max_operands> source;  // by slot: the operand
  };
  static constexpr uint16_t none = 0xffff;
  FormCache() { clear(); }
  Entry& at(uint64_t hash) { return entries_[hash % entries_.size()]; }
  void clear() {
    for (Entry& e : entries_) e.mnemonic = none;
  }

 private:
  std::array<Entry, 1024> entries_;
};

// The first two bytes of an operand: kind, then sign and the like. What decides which rows take it, its value apart.
inline uint16_t head_of(const Operand& o) {
  uint16_t head;
  std::memcpy(&head, &o, sizeof head);
  return head;
}
// Fills the entry; returns whether it says what make() says for these operands, takes_values() apart.
bool remember(const Target& target, Mnemonic mnemonic, std::span<const Operand> operands, const uint64_t (&kinds)[2],
              FormCache::Entry& entry);
// Whether the form of the entry takes the values of the operands too.
bool takes_values(const FormCache::Entry& entry, const Operand* operands);
const RowFacts* make_anew(const Target& target, Mnemonic mnemonic, std::span<const Operand> operands,
                          Instruction& instruction);

// As make(), by the cache; returns what passes ask about the row, null when there is none. Operands beyond the form's stay as they are.
// Where N is known the loops over operands are none.
template <size_t N>
const RowFacts* make(const Target& target, Mnemonic mnemonic, std::span<const Operand, N> operands,
                     Instruction& instruction, FormCache& cache) {
  const size_t count = operands.size();
  if (count > max_operands) return make_anew(target, mnemonic, operands, instruction);
  uint64_t kinds[2] = {};
  for (size_t k = 0; k < count; ++k) kinds[k / 4] |= uint64_t{head_of(operands[k])} << k % 4 * 16;
  uint64_t hash = (kinds[0] + static_cast<uint64_t>(mnemonic)) * 0x9E3779B97F4A7C15ull;
  hash = (hash ^ hash >> 32 ^ kinds[1]) * 0x9E3779B97F4A7C15ull;
  FormCache::Entry& e = cache.at(hash >> 52);
  const bool known = e.mnemonic == static_cast<uint16_t>(mnemonic) && e.kinds[0] == kinds[0] &&
                     e.kinds[1] == kinds[1] && e.count == count;
  if ((!known && !remember(target, mnemonic, operands, kinds, e)) || (e.by_value && !takes_values(e, operands.data())))
      [[unlikely]]
    return make_anew(target, mnemonic, operands, instruction);
  if (!e.row) [[unlikely]]
    return nullptr;
  constexpr size_t head_size = offsetof(Instruction, operands);  // all but the operands
  std::memcpy(static_cast<void*>(&instruction), e.initial, head_size);
  Operand* const to = instruction.operands.data();
  if (e.in_order) {
    for (size_t k = 0; k < count; ++k) to[k] = operands[k];
  } else {
    for (uint32_t k = 0, n = e.initial->operand_count; k < n; ++k) to[k] = operands[e.source[k]];
  }
  for (uint32_t set = e.defaults; set; set &= set - 1) {
    const uint32_t k = static_cast<uint32_t>(std::countr_zero(set));
    to[k] = e.initial->operands[k];
  }
  return e.row;
}

}  // namespace rndn::isa
