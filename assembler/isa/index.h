// Which rows to try for a word or a mnemonic; and the helpers that encode.cpp shares with make(). Private to this folder.
#pragma once
#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "assembler/isa/form.h"
#include "assembler/isa/make.h"
#include "libraries/base/containers/lazy_table.h"

namespace rndn::isa {

inline constexpr size_t mnemonic_count = 0
#define MNEMONIC(name) +1
#include "assembler/isa/mnemonics.def"
#undef MNEMONIC
    ;

// A row as make() sees it.
struct Plan {
  struct Slot {
    uint32_t kinds = 0;      // set of OperandKind that the slot takes, apart from signs and sizes of immediates
    bool negatable = false;  // where the kind has a sign at all
    bool absolute = false, part = false;
    bool optional = false, mandatory = false;
    bool has_uniform = false, has_descriptor = false;
    uint8_t must = 0;  // mandatory slots from this one on
    // Immediates that are whole numbers within limits: all but the kinds that drop bits.
    bool ranged = false;
    int64_t least = 0, most = 0;
  };
  const Form* form = nullptr;
  Instruction initial;  // with the row's own modifiers and what slots that are left out hold
  std::array<Slot, max_operands> slots;
  std::array<uint8_t, modifier_kinds> position{};  // of a modifier in the row, 255: it has none
  FormId other_width = none<FormId>();             // Volta's conversions: the row for the other operand width
  bool wide = false;                               // ... which of the two this one is
};

// What encode() needs of a row, apart from the slots that hold no plain register and the modifiers that differ from the row's own: two cache lines.
struct alignas(64) FormEncoding {
  // A slot that holds nothing but a register and perhaps its sign: its number goes into the word, with the bits of `flip` inverted.
  struct Register {
    uint16_t head =
        0xffff;  // the first two bytes of an operand that fits, its sign apart; no operand begins so: ask the slot
    uint16_t sign = 0;            // the bit of `head` that may be set: the sign, which goes to `negation`
    uint8_t lo = 0;               // of the word, where the number goes
    uint8_t highest = 0, flip = 0, negation = 0;
  };
  const Form* form = nullptr;
  uint32_t targets = 0;  // and so on, as the form has them
  uint8_t slot_count = 0, mod_count = 0;
  bool pascal = false, no_guard = false;
  Word bits;                                       // fixed bits, and the initial modifiers
  std::array<uint8_t, max_modifiers> modifiers{};  // initial values
  std::array<Register, max_operands> registers{};  // by slot
};

// A row that a word may match.
struct Candidate {
  Word match, mask;
  uint32_t targets;
  FormId form;
};

// What making and encoding ask. Built on first use, row by row; immutable afterwards.
class FormIndex {
 public:
  FormIndex();
  const Plan& plan(FormId form) const { return row(form).plan; }
  const FormEncoding& encoding(FormId form) const { return row(form).encoding; }
  size_t size() const { return rows_.size(); }
  const RowFacts& facts(FormId form) const { return row(form).facts; }
  std::span<const uint32_t> by_mnemonic(Family family, Mnemonic m) const {
    const uint32_t* begin = &first_row_[family == Family::pascal][static_cast<size_t>(m)];
    return {rows_.data() + begin[0], rows_.data() + begin[1]};
  }

 private:
  struct Row {
    Plan plan;
    RowFacts facts;
    FormEncoding encoding;
  };
  const Row& row(FormId form) const {
    return made_.get(static_cast<uint32_t>(form), [&] { return make(form); });
  }
  Row make(FormId form) const;

  std::array<std::array<uint32_t, mnemonic_count + 1>, 2> first_row_{};  // of a mnemonic in rows_
  std::vector<uint32_t> rows_;
  LazyTable<Row> made_;  // by form
};
inline const FormIndex& form_index() {
  static const FormIndex index;
  return index;
}

// What decoding asks: rows by the low (Volta) or top (Pascal) 12 bits of the word. Built and kept in the same way.
class WordIndex {
 public:
  WordIndex();
  std::span<const Candidate> by_word(Family family, uint64_t word) const {
    const bool pascal = family == Family::pascal;
    const uint32_t* begin = &first_[pascal][pascal ? word >> 52 : word & 0xfff];
    return {candidates_.data() + begin[0], candidates_.data() + begin[1]};
  }

 private:
  std::array<std::array<uint32_t, 4097>, 2> first_{};  // of a bucket in candidates_
  std::vector<Candidate> candidates_;
};
inline const WordIndex& word_index() {
  static const WordIndex index;
  return index;
}

// Writes an immediate's field; false when the value does not fit.
bool encode_immediate(const Slot& slot, int64_t value, Word& word);

}  // namespace rndn::isa
