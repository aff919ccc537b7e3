// Which rows to try for a word or a mnemonic; and the helpers that encode.cpp shares with make(). Private to this folder.
#pragma once
#include <span>
#include <vector>

#include "assembler/isa/form.h"

namespace rndn::isa {

inline constexpr size_t mnemonic_count = 0
#define MNEMONIC(name) +1
#include "assembler/isa/mnemonics.def"
#undef MNEMONIC
    ;

// Built once, on first use; immutable afterwards. Volta: candidates by the low 12 bits; Pascal: by the top byte.
class FormIndex {
 public:
  FormIndex();
  std::span<const uint32_t> by_mnemonic(Family family, Mnemonic m) const {
    return mnemonics_[family == Family::pascal][static_cast<size_t>(m)];
  }
  std::span<const uint32_t> by_word(Family family, uint64_t word) const {
    return family == Family::pascal ? pascal_[word >> 56] : volta_[word & 0xfff];
  }

 private:
  std::vector<std::vector<std::vector<uint32_t>>> mnemonics_;
  std::vector<std::vector<uint32_t>> volta_, pascal_;
};
const FormIndex& form_index();

// Writes an immediate's field; false when the value does not fit.
bool encode_immediate(const Slot& slot, int64_t value, Word& word);

}  // namespace rndn::isa
