// One instruction for two: an operation joins the one that reads its result.
//
// Input and output: functions over virtual registers without dead code, with their survey, which is kept up to date. Selection makes the instructions
// of every PTX statement for itself; here
//   a sum takes in a product (IMAD), a shift or a rotation to the left by a literal (LEA, LEA.HI, ISCADD), or another sum (IADD3 has three operands);
//   a sum of 64 bits, two additions, takes in a product of 32-bit factors (IMAD.WIDE) or a shift (LEA, LEA.HI.X): the addresses of arrays;
//   it also takes in the extension of a signed 32-bit value (IMAD.WIDE by one), also that of another block;
//   a logical operation takes in another while their operands are three at most (LOP3);
//   a conjunction, disjunction or difference of predicates becomes part of the comparison that makes one of them;
//   a sum of floats takes in a product where PTX leaves it free (Inst::contractible): FFMA, DFMA;
//   what is saturated takes in the saturation;
//   a float that was rounded to an integral value and becomes an integer is converted by that rounding at once (FRND, F2I: Volta and later), even where the
//   rounded one is needed too: the two then do not wait for each other.
// What is taken in has one definition, in the reader's block and at most `reach` instructions before it, without a guard or under the reader's, and what
// it reads is not written in between. It goes when nobody else reads it: so other readers forbid all but the sums of 64 bits, which lose an instruction
// in any case, and products of floats whose readers are all such sums, as in the vendor's code.
// One walk forward over each block, so that chains join from their beginnings. Cost: O(instructions) and `reach` per pair that joins.
// Extensions of other blocks, in front of a loop as a rule, keep a pair alive where the value alone would do. They join in a second walk, if all that read the
// pair are such sums. Value and extension have one write each, and the value's dominates the extension's, which dominates the sum: so the value is still the
// one that was extended, since nobody comes from its write to the sum but by the extension.
//
// Left out: other pairs in different blocks, halves, products that Pascal makes of 16-bit ones, products of floats behind a negation or with a literal beside
// a literal sum.
#include <algorithm>
#include <array>
#include <optional>

#include "assembler/flow/dominators.h"
#include "assembler/isa/make.h"
#include "assembler/machine/operands.h"
#include "assembler/optimize/optimize.h"

namespace rndn::assembler {
namespace {

using isa::Mnemonic;
using isa::ModifierKind;
using Op = isa::Operand;

constexpr size_t reach = 64;
constexpr InstId gone = none<InstId>();

// The integer with the other sign.
Op minus(Op o) {
  if (is_immediate(o))
    o.value = static_cast<int32_t>(0u - static_cast<uint32_t>(o.value));
  else
    o.negated = !o.negated;
  return o;
}

class Combiner {
 public:
  Combiner(Function& f, Survey& survey, isa::FormCache& forms)
      : f_(f),
        survey_(survey),
        uses_(survey.units),
        forms_(forms),
        volta_(f.target->family == isa::Family::volta),
        made_(*f.arena, 16),
        far_(*f.arena, 16) {}

  void run() {
    for (BlockId b : f_.layout)
      each_of(b, [&] {
        if (f_.facts[index(here())].combines) combine();
      });
    const bool dead = !far_.empty() && join_far_extensions();
    if (!made_.empty()) {
      const std::span<UnitUse> all = f_.arena->make_raw<UnitUse>(uses_.size() + made_.size());
      std::copy(uses_.begin(), uses_.end(), all.begin());
      std::ranges::copy(made_.all(), all.begin() + static_cast<std::ptrdiff_t>(uses_.size()));
      survey_.units = all;
    }
    if (dead) remove_dead_code(f_, survey_);
  }

 private:
  // The instruction that may join, by its place in the block.
  struct Maker {
    size_t place;
    const isa::Instruction& sass;
    const Inst& inst;
  };

  // Looks at the instructions of a block, `here()`, in their order.
  template <class F>
  void each_of(BlockId b, F&& look) {
    std::vector<InstId>& code = f_.blocks[b].code;
    code_ = code, block_ = index(b), holes_ = false, literal_count_ = 0;
    for (at_ = 0; at_ < code.size(); ++at_) look();
    if (holes_) std::erase(code, gone);
  }

  void combine() {
    switch (sass().mnemonic) {
      case Mnemonic::IADD3:
        if (volta_) isa::modifier(sass(), ModifierKind::X) ? wide_sum() : sum();
        return;
      case Mnemonic::IADD: return sum();
      case Mnemonic::LOP:
      case Mnemonic::LOP3:
        while (logic()) {
        }
        return;
      case Mnemonic::PLOP3:
      case Mnemonic::PSETP: return condition();
      case Mnemonic::FADD:
        if (!saturation()) float_sum(Mnemonic::FMUL, Mnemonic::FFMA, 1);
        return;
      case Mnemonic::DADD: return float_sum(Mnemonic::DMUL, Mnemonic::DFMA, 2);
      case Mnemonic::F2I: return conversion();
      default: return;
    }
  }

  InstId here() const { return code_[at_]; }
  const isa::Instruction& sass() const { return f_[here()].sass; }
  uint32_t unit(uint32_t reg) const { return f_.units.of(Range::gpr, reg); }
  // How often the words of a register value are read; more than once each counts for all.
  uint32_t readers(const Op& o, uint32_t words) const {
    uint32_t most = 0;
    for (uint32_t w = 0; w < words; ++w) most = std::max(most, uses_[unit(o.reg) + w].readers);
    return most;
  }
  bool writes(InstId i, uint32_t u) const {
    const Units::List list = f_.units.of(i);
    return std::any_of(list.writes, list.end, [&](uint32_t w) { return (w & ~Units::lasts) == u; });
  }

  // Who alone makes the words of a value, if that may be done here as well: nothing before the place `behind` writes what it reads.
  std::optional<Maker> maker(const Op& o, uint32_t words, size_t behind) const {
    if (!is_register(o) || o.reg < isa::first_virtual) return {};
    return maker_of(unit(o.reg), words, behind);
  }
  std::optional<Maker> maker_of(uint32_t u, uint32_t words, size_t behind) const {
    if (u + words > uses_.size()) return {};
    const UnitUse& use = uses_[u];
    for (uint32_t w = 0; w < words; ++w)
      if (uses_[u + w].several || uses_[u + w].inst != use.inst) return {};
    if (use.inst == nobody || use.block != block_) return {};
    const InstId made = static_cast<InstId>(use.inst);
    const isa::Instruction &p = f_[made].sass, &x = sass();
    if (f_[made].pinned) return {};
    if (p.guard != isa::PT && (p.guard != x.guard || p.guard_negated != x.guard_negated)) return {};
    const Units::List list = f_.units.of(made);
    const size_t end = behind > reach ? behind - reach : 0;
    for (size_t k = behind; k-- > end;) {
      const InstId i = code_[k];
      if (i == gone) continue;
      if (i == made) return Maker{k, p, f_[made]};
      const Units::List between = f_.units.of(i);
      for (const uint32_t* w = between.writes; w != between.end; ++w)
        if (std::find(list.reads, list.writes, *w & ~Units::lasts) != list.writes) return {};
    }
    return {};
  }

  bool crosses_of(const Maker& p) const { return f_.facts[index(code_[p.place])].crosses; }
  void count_readers(InstId i, uint32_t change) {
    const Units::List list = f_.units.of(i);
    for (const uint32_t* r = list.reads; r != list.writes; ++r)
      if (*r < uses_.size()) uses_[*r].readers += change;
  }
  void drop(size_t place) {
    const InstId i = code_[place];
    count_readers(i, 0u - 1);
    code_[place] = gone, holes_ = true;
  }
  // The instruction at the place becomes another, with its guard; false, and nothing changes, if the target has none for these operands.
  template <class Modify>
  bool become(size_t place, bool crosses, Mnemonic m, std::span<const Op> operands, Modify&& modify) {
    isa::Instruction made;
    const isa::RowFacts* const row = isa::make(*f_.target, m, operands, made, forms_);
    if (!row) return false;
    const InstId i = code_[place];
    made.guard = f_[i].sass.guard, made.guard_negated = f_[i].sass.guard_negated;
    modify(made, *row);
    put(place, crosses, made);
    return true;
  }
  // `crosses`: of what joins it.
  void put(size_t place, bool crosses, const isa::Instruction& made) {
    const InstId i = code_[place];
    count_readers(i, 0u - 1);
    f_[i].sass = made, f_[i].contractible = false;
    Facts& facts = f_.facts[index(i)];
    crosses |= facts.crosses;
    facts = facts_of(*f_.target, f_[i]);
    facts.crosses = crosses;
    list_units(f_, i);
    count_readers(i, 1);
  }
  bool become(size_t place, bool crosses, Mnemonic m, std::initializer_list<Op> operands) {
    return become(place, crosses, m, {operands.begin(), operands.size()},
                  [](isa::Instruction&, const isa::RowFacts&) {});
  }
  // The maker goes if nobody reads it any more.
  void release(const Maker& p) {
    const InstId i = code_[p.place];
    const Units::List list = f_.units.of(i);
    const auto is_read = [&](uint32_t w) { return uses_[w & ~Units::lasts].readers != 0; };
    if (std::any_of(list.writes, list.end, is_read)) return;
    for (const uint32_t* w = list.writes; w != list.end; ++w) uses_[*w & ~Units::lasts] = {};
    drop(p.place);
  }

  // --- integers
  static bool is_plain(const isa::Instruction& s, std::initializer_list<ModifierKind> kinds) {
    return std::ranges::all_of(kinds, [&](ModifierKind kind) { return isa::modifier(s, kind) == 0; });
  }
  // A sum without carries.
  static bool is_sum(const isa::Instruction& s) {
    if (s.mnemonic == Mnemonic::IADD) return is_plain(s, {ModifierKind::X, ModifierKind::CC, ModifierKind::SAT});
    return s.mnemonic == Mnemonic::IADD3 && s.operand_count == 8 && is_true(s.operands[1]) && is_true(s.operands[2]) &&
           is_false(s.operands[6]) && is_false(s.operands[7]) && isa::modifier(s, ModifierKind::X) == 0;
  }
  struct Terms {
    std::array<Op, 3> terms;
    uint32_t count = 0;
    void add(const Op& o) {
      if (!is_zero(o)) terms[count++] = o;
    }
  };
  static Terms terms_of(const isa::Instruction& s) {
    Terms t;
    const uint32_t first = s.mnemonic == Mnemonic::IADD ? 1 : 3, last = s.mnemonic == Mnemonic::IADD ? 3 : 6;
    for (uint32_t k = first; k < last; ++k) t.add(s.operands[k]);
    return t;
  }
  static bool is_product(const isa::Instruction& s, Mnemonic m, uint32_t first) {
    return s.mnemonic == m && is_zero(s.operands[first + 2]) && is_false(s.operands[first + 3]) &&
           isa::modifier(s, ModifierKind::X) == 0 && !s.operands[first].negated && !s.operands[first + 1].negated;
  }
  static bool is_left_shift(const isa::Instruction& s) {
    return s.mnemonic == Mnemonic::SHF && is_immediate(s.operands[2]) && s.operands[2].value > 0 &&
           s.operands[2].value < 32 && is_register(s.operands[1]) && isa::modifier(s, ModifierKind::Right) == 0;
  }

  void sum() {
    if (!is_sum(sass())) return;
    const Terms t = terms_of(sass());
    if (t.count != 2) return;
    for (uint32_t k = 0; k < 2; ++k) {
      const Op s = t.terms[k], other = t.terms[1 - k];
      const std::optional<Maker> p = maker(s, 1, at_);
      if (p && readers(s, 1) == 1 && joins_sum(*p, s, other)) return release(*p);
    }
  }
  bool joins_sum(const Maker& p, const Op& s, const Op& other) {
    const Op d = sass().operands[0];
    const auto& o = p.sass.operands;
    if (is_product(p.sass, Mnemonic::IMAD, 1)) {
      if (s.negated && !is_immediate(o[2])) return false;
      return become(at_, crosses_of(p), Mnemonic::IMAD,
                    {d, o[1], s.negated ? minus(o[2]) : o[2], other, predicate(isa::PT, true)});
    }
    if (volta_ && is_left_shift(p.sass) && is_zero(o[3]) && isa::modifier(p.sass, ModifierKind::High) == 0)
      return !s.negated && become(at_, crosses_of(p), Mnemonic::LEA,
                                  {d, predicate(isa::PT), o[1], other, o[2], predicate(isa::PT, true)});
    // The upper word of a pair that is shifted to the left: a rotation, where both words are one.
    if (volta_ && is_left_shift(p.sass) && is_register(o[3]) && isa::modifier(p.sass, ModifierKind::High))
      return !s.negated && become(at_, crosses_of(p), Mnemonic::LEA_HI,
                                  {d, predicate(isa::PT), o[1], other, o[3], o[2], predicate(isa::PT, true)});
    if (p.sass.mnemonic == Mnemonic::SHL && is_immediate(o[2]) && o[2].value > 0 && o[2].value < 32 &&
        is_plain(p.sass, {ModifierKind::X, ModifierKind::CC}))
      return !s.negated && become(at_, crosses_of(p), Mnemonic::ISCADD, {d, o[1], other, o[2]});
    if (!is_sum(p.sass)) return false;
    Terms all = terms_of(p.sass);
    if (all.count != 2) return false;
    for (uint32_t k = 0; k < 2; ++k)
      if (s.negated) all.terms[k] = minus(all.terms[k]);
    all.add(other);
    // What is no register stands in the middle. Volta and later take two signs, but not on the first two (an illegal instruction on an H100; ptxas
    // never has them); on Pascal two were not seen.
    const auto first = std::partition(all.terms.begin(), all.terms.end(), [](const Op& x) { return !is_register(x); });
    if (first - all.terms.begin() > 1) return false;
    auto& [b, a, c] = all.terms;
    const int signs = a.negated + b.negated + c.negated;
    if (signs > (volta_ ? 2 : 1)) return false;
    if (signs == 2 && !c.negated) std::swap(a, c);
    const Op yes = predicate(isa::PT), no = predicate(isa::PT, true);
    return volta_ ? become(at_, crosses_of(p), Mnemonic::IADD3, {d, yes, yes, a, b, c, no, no})
                  : become(at_, crosses_of(p), Mnemonic::IADD3, {d, a, b, c});
  }

  // Two words of one value that an instruction may name as a pair.
  bool is_pair(const Op& lo, const Op& hi) const {
    if (lo.negated || hi.negated) return false;
    if (!is_register(lo) || lo.reg < isa::first_virtual || hi.reg != lo.reg + 1 || !is_register(hi)) return false;
    const uint32_t u = lo.reg - isa::first_virtual;
    return u % 2 == 0 && f_.gprs[u].width >= 2;
  }
  static bool is_constant_pair(const Op& lo, const Op& hi) {
    return lo.kind == isa::OperandKind::constant && hi.kind == lo.kind && lo.bank == hi.bank && lo.reg == isa::RZ &&
           hi.reg == isa::RZ && lo.value % 8 == 0 && hi.value == lo.value + 4 && !lo.negated && !hi.negated;
  }

  // The place of the low words of the sum of 64 bits whose high words are here.
  std::optional<size_t> low_words() const {
    const auto& high = sass().operands;
    if (!is_true(high[1]) || !is_true(high[2]) || !is_zero(high[5]) || !is_false(high[7])) return {};
    const Op carry = high[6];
    if (carry.negated || carry.reg < isa::first_virtual) return {};
    const UnitUse& use = uses_[f_.units.of(Range::predicate, carry.reg)];
    if (use.several || use.readers != 1 || use.block != block_) return {};
    size_t place = at_;
    do {
      if (place-- == 0) return {};
    } while (code_[place] == gone);
    const InstId inst = code_[place];
    if (index(inst) != use.inst) return {};
    const isa::Instruction& x = f_[inst].sass;
    const auto& low = x.operands;
    if (x.mnemonic != Mnemonic::IADD3 || x.guard != sass().guard || x.guard_negated != sass().guard_negated ||
        isa::modifier(x, ModifierKind::X) || !is_true(low[2]) || !is_zero(low[5]) || !is_false(low[6]) ||
        !is_false(low[7]) || !is_pair(low[0], high[0]))
      return {};
    return place;
  }
  void wide_sum() {
    const std::optional<size_t> low_place = low_words();
    if (!low_place) return;
    const auto &low = f_[code_[*low_place]].sass.operands, &high = sass().operands;
    for (uint32_t k = 3; k < 5; ++k) {
      const Op lo = low[k], hi = high[k];
      const std::array<Op, 2> addend = {low[7 - k], high[7 - k]};
      if (!is_register(lo) || !is_register(hi) || lo.negated || hi.negated || is_zero(lo)) continue;
      if (product_joins(*low_place, lo, hi, addend) || shift_joins(*low_place, lo, hi, addend)) return;
      if (const std::optional<Extended> x = extended(lo, hi, *low_place);
          x && fuse(*low_place, *x, immediate(1), addend))
        return;
    }
    for (uint32_t k = 3; k < 5; ++k)
      if (is_pair(low[7 - k], high[7 - k]))
        if (const std::optional<Op> value = far_extension(low[k], high[k]))
          return note_far({here(), BlockId{block_}, low[k], high[k], *value, k});
  }
  // A value of 64 bits that extends one of 32. `makers`: of its words, as far as they have any.
  struct Extended {
    Op value;
    bool is_signed = false;
    std::array<std::optional<Maker>, 2> makers;
  };
  // Whether the instruction gives the sign of a value, as a word.
  static bool is_sign(const isa::Instruction& s) {
    return s.mnemonic == Mnemonic::SHF && is_zero(s.operands[1]) && s.operands[2] == immediate(31) &&
           isa::modifier(s, ModifierKind::ShiftType) == 2 && isa::modifier(s, ModifierKind::Right) &&
           isa::modifier(s, ModifierKind::High);
  }
  std::optional<Extended> extended(const Op& lo, const Op& hi, size_t behind) const {
    if (!is_register(lo) || lo.negated) return {};
    if (is_zero(hi)) return Extended{lo};
    const std::optional<Maker> sign = maker(hi, 1, behind);
    if (!sign || !is_sign(sign->sass)) return {};
    const Op of = sign->sass.operands[3];
    if (of == lo) return Extended{lo, true, {sign}};
    const std::optional<Maker> copy = maker(lo, 1, behind);
    if (!copy || copy->sass.mnemonic != Mnemonic::MOV || copy->sass.operands[1] != of) return {};
    return Extended{of, true, {sign, copy}};
  }

  // --- extensions of other blocks
  // A sum of 64 bits with one.
  struct Far {
    InstId high;  // of its high words
    BlockId block;
    Op lo, hi;      // words of the extension
    Op value;       // that is extended
    uint32_t term;  // operand of the sum, of either half
  };
  // Where a register is written, if that is one place, without a guard.
  const UnitUse* one_write(const Op& o) const {
    if (!is_register(o) || o.reg < isa::first_virtual || o.negated || unit(o.reg) >= uses_.size()) return nullptr;
    const UnitUse& use = uses_[unit(o.reg)];
    if (use.several || use.inst == nobody) return nullptr;
    const Inst& made = f_.insts[use.inst];
    return made.sass.guard == isa::PT && !made.pinned ? &use : nullptr;
  }
  // The value of which lo and hi are the extension, made in another block.
  std::optional<Op> far_extension(const Op& lo, const Op& hi) const {
    const UnitUse* const sign = one_write(hi);
    if (!sign || sign->block == block_ || !is_sign(f_.insts[sign->inst].sass)) return {};
    const Op of = f_.insts[sign->inst].sass.operands[3];
    if (of.reg < isa::first_virtual || of.negated || of.reg == hi.reg) return {};
    if (of == lo) return of;
    const UnitUse* const copy = one_write(lo);
    if (!copy || f_.insts[copy->inst].sass.mnemonic != Mnemonic::MOV || f_.insts[copy->inst].sass.operands[1] != of)
      return {};
    return of;
  }
  void note_far(const Far& x) {
    if (far_.empty()) far_sums_ = f_.arena->make_span<uint32_t>(uses_.size(), 0);
    far_.push(x);
    ++far_sums_[unit(x.hi.reg)];
  }
  // Returns whether any have joined. Extensions are left without readers.
  bool join_far_extensions() {
    const Dominators dominators(f_);
    // Whether the write comes before the instruction on every way to it.
    const auto precedes = [&](const UnitUse& write, uint32_t inst, uint32_t block) {
      return write.block == block ? !f_.facts[inst].crosses : dominators.tree.dominates(write.block, block);
    };
    const auto joins = [&](const Far& x) {
      const UnitUse &sign = uses_[unit(x.hi.reg)], &low = uses_[unit(x.lo.reg)];
      const UnitUse* const value = one_write(x.value);
      if (!value || sign.readers != far_sums_[unit(x.hi.reg)]) return false;
      if (!precedes(*value, sign.inst, sign.block) || !dominators.tree.dominates(sign.block, index(x.block)))
        return false;
      return x.value == x.lo || (low.readers == sign.readers && precedes(*value, low.inst, low.block) &&
                                 low.block != index(x.block) && dominators.tree.dominates(low.block, index(x.block)));
    };
    for (const Far& x : far_.all())
      if (!joins(x)) far_sums_[unit(x.hi.reg)] = nobody;
    size_t kept = 0, next = 0;
    for (const Far& x : far_.all())
      if (far_sums_[unit(x.hi.reg)] != nobody) far_[kept++] = x;
    while (next < kept)
      each_of(far_[next].block, [&] {
        if (next < kept && here() == far_[next].high) join_far_extension(far_[next++]);
      });
    return kept != 0;
  }
  void join_far_extension(const Far& x) {
    const std::optional<size_t> low_place = low_words();
    CHECK(low_place.has_value(), "no sum of 64 bits");
    const auto &low = f_[code_[*low_place]].sass.operands, &high = sass().operands;
    const bool made = fuse(*low_place, {x.value, true, {}}, immediate(1), {low[7 - x.term], high[7 - x.term]});
    CHECK(made, "no sum with the extension of a register");
    f_.facts[index(here())].crosses = true;
    UnitUse& use = uses_[unit(x.value.reg)];
    survey_.crossing += !use.crosses, use.crosses = true;
  }
  // The 32-bit value times y, and an addend of two words, make the sum whose low word is made at low_place.
  bool fuse(size_t low_place, const Extended& x, Op y, std::array<Op, 2> addend) {
    const bool in_bank = is_constant_pair(addend[0], addend[1]);
    if (!in_bank && !is_pair(addend[0], addend[1])) return false;
    if (!is_register(x.value) || (in_bank && !is_register(y) && !is_immediate(y))) return false;
    if (in_bank && is_immediate(y) && !x.makers[0] && !literal(y.value))
      return false;  // would take as many instructions
    const Op d = f_[code_[low_place]].sass.operands[0];
    bool crosses = f_.facts[index(code_[low_place])].crosses;
    for (const std::optional<Maker>& m : x.makers) crosses |= m && crosses_of(*m);
    // A literal beside a constant has to be in a register: it gets the place of the lower sum.
    std::optional<Inst> move;
    if (in_bank && is_immediate(y)) {
      std::optional<uint32_t> reg = literal(y.value);
      if (!reg) {
        reg = new_gpr(f_, 1, false);
        move = make_inst(*f_.target, Mnemonic::MOV, {gpr(*reg), y}, &forms_);
        move->line = f_[here()].line;
        literals_[literal_count_++ % literals_.size()] = {y.value, *reg};
        made_.push({.block = block_});
      }
      y = gpr(*reg);
      ++made_[unit(*reg) - uses_.size()].readers;
    }
    const std::array<Op, 6> operands = {d, predicate(isa::PT), x.value, y, addend[0], predicate(isa::PT, true)};
    const bool made =
        become(at_, crosses, Mnemonic::IMAD_WIDE, operands, [&](isa::Instruction& i, const isa::RowFacts& row) {
          isa::set_modifier(i, row, ModifierKind::Signed, x.is_signed);
        });
    CHECK(made, "no IMAD.WIDE with this addend");
    uses_[unit(d.reg)].inst = index(here());
    drop(low_place);
    if (move) {
      const InstId id = add_inst(f_, *move);
      list_units(f_, id);
      code_[low_place] = id;
      made_[made_.size() - 1].inst = index(id);
    }
    for (const std::optional<Maker>& m : x.makers)
      if (m) release(*m);
    return true;
  }
  // The product whose words are lo and hi.
  bool product_joins(size_t low_place, const Op& lo, const Op& hi, std::array<Op, 2> addend) {
    if (hi.reg != lo.reg + 1) return false;
    const std::optional<Maker> p = maker(lo, 2, low_place);
    if (!p || !is_product(p->sass, Mnemonic::IMAD_WIDE, 2) || p->sass.operands[0].reg != lo.reg) return false;
    return fuse(low_place, {p->sass.operands[2], isa::modifier(p->sass, ModifierKind::Signed) != 0, {p}},
                p->sass.operands[3], addend);
  }
  // A register of this block that holds the literal.
  std::optional<uint32_t> literal(int64_t value) const {
    for (size_t k = 0; k < std::min(literal_count_, literals_.size()); ++k)
      if (literals_[k].value == value) return literals_[k].reg;
    return {};
  }
  // A shift to the left of 64 bits: its low and its high word.
  bool shift_joins(size_t low_place, const Op& lo, const Op& hi, std::array<Op, 2> addend) {
    const std::optional<Maker> low = maker(lo, 1, low_place), high = maker(hi, 1, low_place);
    if (!low || !high || !is_left_shift(low->sass) || !is_left_shift(high->sass)) return false;
    const isa::Instruction &l = low->sass, &h = high->sass;
    const Op x = l.operands[1], y = h.operands[3], n = l.operands[2];
    if (!is_zero(l.operands[3]) || isa::modifier(l, ModifierKind::High) || !isa::modifier(h, ModifierKind::High) ||
        isa::modifier(h, ModifierKind::ShiftType) != 1 || h.operands[1] != x || h.operands[2] != n || !is_register(y))
      return false;
    // Of a value of 32 bits it is a product.
    if (std::optional<Extended> narrow =
            n.value < 31 ? extended(x, y, std::min(low->place, high->place)) : std::nullopt;
        narrow && stays(narrow->value, std::min(low->place, high->place), low_place)) {
      const bool crosses = crosses_of(*low) || crosses_of(*high);
      if (fuse(low_place, *narrow, immediate(int64_t{1} << n.value), addend)) {
        f_.facts[index(here())].crosses |= crosses;
        release(*high), release(*low);
        for (const std::optional<Maker>& m : narrow->makers)
          if (m && code_[m->place] != gone) release(*m);
        return true;
      }
    }
    const InstId sum = code_[low_place];
    const Op d = f_[sum].sass.operands[0], e = sass().operands[0];
    if (x.reg == d.reg || y.reg == d.reg) return false;  // the high word is made after the low one
    const Op carry = sass().operands[6], no = predicate(isa::PT, true);
    if (!become(low_place, crosses_of(*low), Mnemonic::LEA, {d, carry, x, addend[0], n, no})) return false;
    const std::array<Op, 7> operands = {e, predicate(isa::PT), x, addend[1], y, n, carry};
    const bool made =
        become(at_, crosses_of(*high), Mnemonic::LEA_HI, operands,
               [](isa::Instruction& i, const isa::RowFacts& row) { isa::set_modifier(i, row, ModifierKind::X, 1); });
    CHECK(made, "no LEA.HI beside the LEA");
    release(*low), release(*high);
    return true;
  }
  // Whether the value is not written between two places.
  bool stays(const Op& o, size_t from, size_t to) const {
    if (!is_register(o) || o.reg < isa::first_virtual) return true;
    for (size_t k = from; k < to; ++k)
      if (code_[k] != gone && writes(code_[k], unit(o.reg))) return false;
    return true;
  }

  // --- logic
  struct Logic {
    Op result, predicate;
    std::array<Op, 3> sources;
    uint32_t lut;  // as LOP3's: bit 4 a + 2 b + c
  };
  std::optional<Logic> logic_of(const isa::Instruction& s) const {
    const auto& o = s.operands;
    const uint32_t d = o[0].kind == isa::OperandKind::predicate ? 1 : 0;
    Logic l{o[d], d ? o[0] : predicate(isa::PT), {o[d + 1], o[d + 2], gpr(isa::RZ)}, 0};
    if (s.mnemonic == Mnemonic::LOP3) {
      l.sources[2] = o[d + 3], l.lut = static_cast<uint32_t>(o[d + 4].value);
      if (volta_ ? !is_false(o[6]) : !is_plain(s, {ModifierKind::X, ModifierKind::CC})) return {};
    } else if (s.mnemonic == Mnemonic::LOP) {
      if (!is_plain(s, {ModifierKind::X, ModifierKind::CC})) return {};
      constexpr std::array<uint32_t, 4> luts = {0xc0, 0xfc, 0x3c, 0xcc};  // and, or, xor, the second
      uint32_t inverted = 0;
      for (uint32_t k = 0; k < 2; ++k)
        if (l.sources[k].negated) inverted |= 4u >> k, l.sources[k].negated = false;
      for (uint32_t v = 0; v < 8; ++v)
        l.lut |= (luts[isa::modifier(s, ModifierKind::LogicOp)] >> (v ^ inverted) & 1) << v;
    } else {
      return {};
    }
    if (!volta_ && l.predicate.reg != isa::PT) return {};
    for (const Op& x : l.sources)
      if (x.negated || x.absolute) return {};
    return l;
  }
  // Whether an operand joined.
  bool logic() {
    const std::optional<Logic> x = logic_of(sass());
    if (!x) return false;
    for (const Op& s : x->sources) {
      if (is_zero(s)) continue;
      const std::optional<Maker> p = maker(s, 1, at_);
      const std::optional<Logic> made = p ? logic_of(p->sass) : std::nullopt;
      if (!made || made->predicate.reg != isa::PT) continue;
      const auto reads = std::count(x->sources.begin(), x->sources.end(), s);
      if (readers(s, 1) == static_cast<uint32_t>(reads) && logic_joins(*p, *x, *made, s)) {
        release(*p);
        return true;
      }
    }
    return false;
  }
  bool logic_joins(const Maker& p, const Logic& x, const Logic& made, const Op& s) {
    std::array<Op, 3> in;
    uint32_t count = 0;
    const auto gather = [&](const Op& o) {
      if (is_zero(o) || o == s || std::find(in.begin(), in.begin() + count, o) != in.begin() + count) return true;
      if (count == 3) return false;
      in[count++] = o;
      return true;
    };
    for (const Op& o : made.sources)
      if (!gather(o)) return false;
    for (const Op& o : x.sources)
      if (!gather(o)) return false;
    std::fill(in.begin() + count, in.end(), gpr(isa::RZ));
    // What is no register stands in the middle.
    if (std::count_if(in.begin(), in.end(), is_register) < 2) return false;
    if (!is_register(in[0])) std::swap(in[0], in[1]);
    if (!is_register(in[2])) std::swap(in[2], in[1]);
    uint32_t lut = 0;
    for (uint32_t v = 0; v < 8; ++v) {
      const auto value = [&](const Op& o) -> uint32_t {
        for (uint32_t k = 0; k < 3; ++k)
          if (!is_zero(o) && o == in[k]) return v >> (2 - k) & 1;
        return 0;
      };
      const auto of = [&](const Logic& l, auto&& bit) {
        return l.lut >> (bit(l.sources[0]) << 2 | bit(l.sources[1]) << 1 | bit(l.sources[2])) & 1;
      };
      const uint32_t inner = of(made, value);
      lut |= of(x, [&](const Op& o) { return o == s ? inner : value(o); }) << v;
    }
    if (volta_)
      return become(at_, crosses_of(p), Mnemonic::LOP3,
                    {x.predicate, x.result, in[0], in[1], in[2], immediate(lut), predicate(isa::PT, true)});
    if (is_register(in[1]))
      return become(at_, crosses_of(p), Mnemonic::LOP3, {Op{}, x.result, in[0], in[1], in[2], immediate(lut)});
    return become(at_, crosses_of(p), Mnemonic::LOP3, {x.result, in[0], in[1], in[2], immediate(lut)});
  }

  // --- predicates
  // A comparison that gives one predicate, of nothing else.
  static bool is_comparison(const isa::Instruction& s) {
    return (s.mnemonic == Mnemonic::ISETP || s.mnemonic == Mnemonic::FSETP || s.mnemonic == Mnemonic::DSETP) &&
           is_true(s.operands[1]) && is_true(s.operands[4]) && isa::modifier(s, ModifierKind::Bool) == 0;
  }
  void condition() {
    const isa::Instruction x = sass();
    if (!is_true(x.operands[1]) || !is_true(x.operands[4]) || x.operands[2].kind != isa::OperandKind::predicate) return;
    uint32_t operation = 0;  // and, or, xor
    if (volta_) {
      const int64_t lut = x.operands[5].value;
      operation = lut == 0xc0 ? 0 : lut == 0xfc ? 1 : lut == 0x3c ? 2 : 3;
    } else {
      operation = isa::modifier(x, ModifierKind::Bool2);
      if (isa::modifier(x, ModifierKind::Bool) != 0) return;
    }
    if (operation > 2) return;
    for (uint32_t k = 2; k < 4; ++k) {
      const Op s = x.operands[k], other = x.operands[5 - k];
      if (s.reg < isa::first_virtual || s.reg == other.reg) continue;
      const uint32_t u = f_.units.of(Range::predicate, s.reg);
      if (u >= uses_.size() || uses_[u].readers != 1) continue;
      const std::optional<Maker> p = maker_of(u, 1, at_);
      if (!p || !is_comparison(p->sass) || p->sass.operands[0].reg != s.reg) continue;
      isa::Instruction made = p->sass;
      const bool of_floats = made.mnemonic != Mnemonic::ISETP;
      if (!volta_ && !of_floats && isa::modifier(made, ModifierKind::X)) continue;  // reads the condition code
      if (s.negated) {                                                              // the opposite comparison
        if (of_floats)
          isa::set_modifier(made, ModifierKind::FloatCompare, 15 - isa::modifier(made, ModifierKind::FloatCompare));
        else if (volta_ && isa::modifier(made, ModifierKind::EX))
          continue;
        else
          isa::set_modifier(made, ModifierKind::Compare, 7 - isa::modifier(made, ModifierKind::Compare));
      }
      made.operands[0] = x.operands[0], made.operands[4] = other;
      made.guard = x.guard, made.guard_negated = x.guard_negated;
      isa::set_modifier(made, ModifierKind::Bool, static_cast<uint8_t>(operation));
      put(at_, crosses_of(*p), made);
      return release(*p);
    }
  }

  // --- floats
  // Of a value that nobody else reads: what makes it saturates.
  bool saturation() {
    const isa::Instruction x = sass();
    const Op &s = x.operands[1], &zero = x.operands[2];
    if (!isa::modifier(x, ModifierKind::SAT) || s.negated || s.absolute || !is_register(zero) || zero.reg != isa::RZ ||
        !zero.negated)
      return false;
    const std::optional<Maker> p = maker(s, 1, at_);
    if (!p || readers(s, 1) != 1 ||
        (p->sass.mnemonic != Mnemonic::FADD && p->sass.mnemonic != Mnemonic::FMUL &&
         p->sass.mnemonic != Mnemonic::FFMA) ||
        !isa::has_modifier(p->sass.form, ModifierKind::SAT) ||  // Pascal's with a literal of 32 bits
        isa::modifier(p->sass, ModifierKind::FTZ) != isa::modifier(x, ModifierKind::FTZ))
      return false;
    isa::Instruction made = p->sass;
    made.operands[0] = x.operands[0];
    made.guard = x.guard, made.guard_negated = x.guard_negated;
    isa::set_modifier(made, ModifierKind::SAT, 1);
    put(at_, crosses_of(*p), made);
    release(*p);
    return true;
  }
  void conversion() {
    isa::Instruction made = sass();
    Op& s = made.operands[1];
    const std::optional<Maker> p = maker(s, isa::register_count(made, 1), at_);
    if (!p || p->sass.mnemonic != Mnemonic::FRND || s.negated || s.absolute || s.part != 0) return;
    const Op& from = p->sass.operands[1];
    if (!is_register(from) || from.part != 0) return;
    const uint8_t format = isa::modifier(made, ModifierKind::SourceFormat);
    if (isa::modifier(p->sass, ModifierKind::SourceFormat) != format ||
        isa::modifier(p->sass, ModifierKind::DestFormat) != format)
      return;
    s = from;
    for (ModifierKind kind : {ModifierKind::Rounding, ModifierKind::FTZ})
      isa::set_modifier(made, kind, isa::modifier(p->sass, kind));
    put(at_, crosses_of(*p), made);
    release(*p);
  }
  void float_sum(Mnemonic multiply, Mnemonic fuse, uint32_t words) {
    if (!f_[here()].contractible) return;
    const isa::Instruction x = sass();
    const auto flag = [](const isa::Instruction& s, ModifierKind kind) -> uint8_t {
      return isa::has_modifier(s.form, kind) ? isa::modifier(s, kind) : 0;
    };
    for (uint32_t k = 1; k < 3; ++k) {
      const Op s = x.operands[k], other = x.operands[3 - k];
      if (s.absolute || other.absolute) continue;
      const std::optional<Maker> p = maker(s, words, at_);
      if (!p || p->sass.mnemonic != multiply || !p->inst.contractible || flag(p->sass, ModifierKind::SAT) ||
          flag(p->sass, ModifierKind::FTZ) != flag(x, ModifierKind::FTZ) || !all_sums(s, words, x.mnemonic))
        continue;
      const Op a = p->sass.operands[1];
      Op b = p->sass.operands[2];
      if (a.absolute || b.absolute) continue;
      if (s.negated && is_immediate(b))  // its sign is in its bits
        b.value = static_cast<int32_t>(static_cast<uint32_t>(b.value) ^ 0x80000000u);
      else if (s.negated)  // Pascal's products have the sign of both there
        b.negated = !b.negated;
      const std::array<Op, 4> operands = {x.operands[0], a, b, other};
      if (become(at_, crosses_of(*p), fuse, operands, [&](isa::Instruction& i, const isa::RowFacts& row) {
            for (ModifierKind kind : {ModifierKind::FTZ, ModifierKind::SAT})
              if (const uint8_t value = flag(x, kind)) isa::set_modifier(i, row, kind, value);
          }))
        return release(*p);
    }
  }
  // Whether all that read the product are sums that may take it in, from here on.
  bool all_sums(const Op& s, uint32_t words, Mnemonic add) const {
    const uint32_t u = unit(s.reg), all = readers(s, words);
    uint32_t found = 0;
    for (size_t k = at_; found < all && k < std::min(code_.size(), at_ + reach); ++k) {
      const InstId i = code_[k];
      const Units::List list = f_.units.of(i);
      const auto reads = std::count(list.reads, list.writes, u);
      if (reads && (f_[i].sass.mnemonic != add || !f_[i].contractible || reads > 1)) return false;
      found += static_cast<uint32_t>(reads);
    }
    return found == all;
  }

  Function& f_;
  Survey& survey_;
  const std::span<UnitUse> uses_;  // of the units that were there before
  isa::FormCache& forms_;
  const bool volta_;
  ArenaList<UnitUse> made_;  // units that were made: registers of literals
  ArenaList<Far> far_;
  std::span<uint32_t> far_sums_;  // by unit: how many of them have it as their extension's high word; nobody: they stay
  std::span<InstId> code_;        // of the block; what is gone leaves a hole until the block is done
  uint32_t block_ = 0;
  size_t at_ = 0;
  bool holes_ = false;
  struct Literal {
    int64_t value;
    uint32_t reg;
  };
  std::array<Literal, 8> literals_{};  // that the block has in registers, the last ones
  size_t literal_count_ = 0;
};

}  // namespace

void combine(Function& f, Survey& survey, isa::FormCache& forms) { Combiner(f, survey, forms).run(); }

}  // namespace rndn::assembler
