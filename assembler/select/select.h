// Instruction selection: PTX to SASS over virtual registers. What both families share is in select.cpp; what differs is a table of primitives
// (virtual functions of Selector) that volta.cpp and pascal.cpp fill.
#pragma once
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "assembler/isa/make.h"
#include "assembler/machine/operands.h"
#include "assembler/select/selection.h"
#include "ptx/traits.h"

namespace rndn::assembler {

using ptx::expands_to_branches;

using isa::Mnemonic;
using isa::ModifierKind;
using Op = isa::Operand;

// A 64-bit source.
struct Wide {
  Op lo, hi;
};

// ISETP and FSETP comparison codes.
enum class Cmp : uint8_t { F, LT, EQ, LE, GT, NE, GE, NUM, NAN_, LTU, EQU, LEU, GTU, NEU, GEU, T };

// --- small facts of types and modifiers
inline bool is_wide(ptx::Type t) { return ptx::type_bytes(t) == 8; }
inline uint32_t float_rounding(ptx::Rounding r) {
  switch (r) {
    case ptx::Rounding::rm: return 1;
    case ptx::Rounding::rp: return 2;
    case ptx::Rounding::rz: return 3;
    default: return 0;
  }
}
inline uint32_t integral_rounding(ptx::Rounding r) {
  switch (r) {
    case ptx::Rounding::rmi: return 1;
    case ptx::Rounding::rpi: return 2;
    case ptx::Rounding::rzi: return 3;
    default: return 0;
  }
}
inline bool is_half(ptx::Type t) {
  return t == ptx::Type::f16 || t == ptx::Type::f16x2 || t == ptx::Type::bf16 || t == ptx::Type::bf16x2;
}
// PTX comparison to code and signedness. `lo ls hi hs` are the unsigned orders.
inline Cmp comparison(ptx::Compare c) {
  using C = ptx::Compare;
  switch (c) {
    case C::eq: return Cmp::EQ;
    case C::ne: return Cmp::NE;
    case C::lt:
    case C::lo: return Cmp::LT;
    case C::le:
    case C::ls: return Cmp::LE;
    case C::gt:
    case C::hi: return Cmp::GT;
    case C::ge:
    case C::hs: return Cmp::GE;
    case C::equ: return Cmp::EQU;
    case C::neu: return Cmp::NEU;
    case C::ltu: return Cmp::LTU;
    case C::leu: return Cmp::LEU;
    case C::gtu: return Cmp::GTU;
    case C::geu: return Cmp::GEU;
    case C::num: return Cmp::NUM;
    case C::nan: return Cmp::NAN_;
    default: return Cmp::F;
  }
}
inline Cmp mirrored(Cmp c) {
  switch (c) {
    case Cmp::LT: return Cmp::GT;
    case Cmp::LE: return Cmp::GE;
    case Cmp::GT: return Cmp::LT;
    case Cmp::GE: return Cmp::LE;
    case Cmp::LTU: return Cmp::GTU;
    case Cmp::LEU: return Cmp::GEU;
    case Cmp::GTU: return Cmp::LTU;
    case Cmp::GEU: return Cmp::LEU;
    default: return c;
  }
}

// The high word of two in consecutive registers; zero has no second register.
inline Op high_word(const Op& pair) { return gpr(pair.reg == isa::RZ ? isa::RZ : pair.reg + 1); }

// An instruction just emitted, for setting its modifiers.
struct Emitted {
  isa::Instruction* i = nullptr;  // null: there was no form, and an error is set
  const isa::RowFacts* row = nullptr;
  Emitted& mod(ModifierKind kind, uint32_t value) {
    if (i) isa::set_modifier(*i, *row, kind, static_cast<uint8_t>(value));
    return *this;
  }
};

class Selector {
 public:
  Selector(const ptx::Module& module, const ptx::Function& function, const Flow& flow, const ptx::SharedLayout& shared,
           const Options& options, isa::FormCache& forms, Arena& arena);
  virtual ~Selector() = default;
  Result<Function> run(SelectionRoom& room);

 protected:
  // --- what the families fill in. d: first virtual register of the destination. Sources are any operand unless said.
  virtual void mov(uint32_t d, Op a) = 0;
  virtual void mov64(uint32_t d, Wide a) { mov(d, a.lo), mov(d + 1, a.hi); }
  virtual void add(uint32_t d, Op a, Op b) = 0;  // either may be negated, not both
  virtual void add64(uint32_t d, Wide a, Wide b, bool subtract) = 0;
  virtual void mad(uint32_t d, Op a, Op b, Op c) = 0;                         // low 32 bits of a * b + c
  virtual void mad_wide(uint32_t d, Op a, Op b, Wide c, bool is_signed) = 0;  // 64 bits
  virtual void multiply_words(uint32_t d, Wide a, Wide b) = 0;                // low 64 bits; d is none of the sources
  virtual void mul_hi(uint32_t d, Op a, Op b, bool is_signed) = 0;
  virtual void logic(uint32_t d, Op a, Op b, uint8_t lut) = 0;  // lut as LOP3 with C = 0: 0xc0 and, 0xfc or, 0x3c xor
  virtual void logic3(uint32_t d, Op a, Op b, Op c, uint8_t lut) = 0;
  virtual void invert(uint32_t d, Op a) = 0;
  virtual void shift_left(uint32_t d, Op a, Op n) = 0;  // amounts of 32 and more give 0
  virtual void shift_right(uint32_t d, Op a, Op n, bool is_signed) = 0;
  virtual void shift_left64(uint32_t d, Wide a, Op n) = 0;
  virtual void shift_right64(uint32_t d, Wide a, Op n, bool is_signed) = 0;
  virtual void funnel(uint32_t d, Op lo, Op hi, Op n, bool right, bool wrap) = 0;
  virtual void setp(uint32_t p, uint32_t q, Cmp c, Op a, Op b, bool is_signed, uint32_t combine, Op with) = 0;
  virtual void setp64(uint32_t p, uint32_t q, Cmp c, Wide a, Wide b, bool is_signed, uint32_t combine, Op with) = 0;
  virtual void select(uint32_t d, Op a, Op b, Op p) = 0;  // p ? a : b
  virtual void min_max(uint32_t d, Op a, Op b, bool max, bool is_signed) = 0;
  virtual void abs32(uint32_t d, Op a) = 0;
  virtual void predicate_logic(uint32_t p, Op a, Op b, char op) = 0;  // '&' '|' '^'
  virtual void popc(uint32_t d, Op a) = 0;
  virtual void find_leading(uint32_t d, Op a, bool is_signed, bool shift_amount) = 0;
  virtual void reverse(uint32_t d, Op a) = 0;
  virtual void permute(uint32_t d, Op a, Op b, Op selector, uint32_t mode) = 0;
  virtual void bit_extract(uint32_t d, Op a, Op position, Op length, bool is_signed) = 0;
  virtual void bit_insert(uint32_t d, Op value, Op base, Op position, Op length) = 0;
  virtual void extend(uint32_t d, Op a, uint32_t bits, bool is_signed) = 0;  // low 8 or 16 bits to 32
  virtual void int_to_float(uint32_t d, uint32_t float_bits, Op a, uint32_t int_bits, bool is_signed,
                            uint32_t rounding) = 0;
  // Whether float_to_int goes to 8 or 16 bits, saturating; always to 32 and 64.
  virtual bool converts_to_narrow(uint32_t int_bits, uint32_t float_bits) const = 0;
  virtual void float_to_int(uint32_t d, uint32_t int_bits, bool is_signed, Op a, uint32_t float_bits, uint32_t rounding,
                            bool ftz) = 0;
  virtual void float_to_float(uint32_t d, uint32_t to_bits, Op a, uint32_t from_bits, uint32_t rounding, bool ftz) = 0;
  virtual void round_to_integral(uint32_t d, Op a, uint32_t bits, uint32_t rounding, bool ftz) = 0;
  virtual void min_max_f64(uint32_t d, Op a, Op b, bool max) = 0;
  virtual Op mufu_argument(Op a, uint32_t function) = 0;                 // Pascal: range reduction
  virtual void family_register(uint32_t d, ptx::SpecialRegister r) = 0;  // special registers that differ
  virtual void load(const ptx::Instruction& i, uint32_t d, uint32_t size, Op at) = 0;
  virtual void store(const ptx::Instruction& i, Op at, Op data, uint32_t size) = 0;
  virtual void atomic(const ptx::Instruction& i, uint32_t d, Op at, Op data, Op swap) = 0;  // d RZ: no result
  virtual void shared_compare_and_swap(uint32_t d, Op at, Op compare, Op swap, bool wide) = 0;
  virtual void fence(ptx::Scope scope, bool sequential) = 0;
  virtual void barrier(Op id, Op count) = 0;
  virtual void converge(Op mask) = 0;                               // before a .sync operation in divergent code
  virtual void call_absolute() = 0;                                 // to a place that a relocation fills in
  virtual void call_subroutine() = 0;                               // to a place that lay_out fills in
  virtual void return_from_subroutine(Op place) = 0;                // a pair: to this offset in the kernel's code
  virtual void mov_symbol(uint32_t d) = 0;                          // MOV of an immediate that a relocation fills in
  virtual void family_cvta_base(ptx::Space space, Wide& base) = 0;  // start of the generic window of .shared or .local
  virtual void is_space(uint32_t p, Wide a, ptx::Space space) = 0;  // generic address to predicate
  virtual void barrier_reduce(uint32_t d, uint32_t p, Op id, Op count, Op value, uint32_t reduction) = 0;
  virtual void barrier_arrive(Op id, Op count) = 0;
  virtual void generic_atomic(const ptx::Instruction& i, uint32_t d, Op at, Op data, Op swap) = 0;

  // --- the same on both families, made of the above
  void min_max64(uint32_t d, Wide a, Wide b, bool max, bool is_signed);  // d is none of the sources
  static constexpr uint32_t no_bank = UINT32_MAX;
  uint32_t bank_of(ptx::SpecialRegister r) const;  // its offset in bank 0, or no_bank
  void special_register(uint32_t d, ptx::SpecialRegister r);
  void shuffle(uint32_t d, uint32_t p, Op a, Op lane, Op clamp, uint32_t mode);
  void vote(const ptx::Instruction& i, uint32_t d, Op p);
  void vote_of(Op members, const ptx::Instruction& i, uint32_t d, Op p);
  void variable_address(uint32_t d, ptx::VariableId v);  // of a .global variable, filled in by the loader
  void load_constant(uint32_t d, uint32_t bank, int64_t offset, Op index, uint32_t size);
  // Shifts of 64 bits by a known amount of 32 and more; false for others.
  bool shift_left_words(uint32_t d, Wide a, Op n);
  bool shift_right_words(uint32_t d, Wide a, Op n, bool is_signed);

  // --- services
  static Op none() { return {}; }
  static Op pt(bool negated = false) { return predicate(isa::PT, negated); }
  const Op rz = gpr(isa::RZ);
  static uint32_t amount(Op n) { return is_immediate(n) ? static_cast<uint32_t>(n.value) : 0; }
  static bool literal(Op n) { return is_immediate(n) || (is_register(n) && n.reg == isa::RZ); }
  static uint32_t atom_op(ptx::AtomicOp op);  // code of ATOM, RED, ATOMS
  Op keep_register(Op o);                     // a register, with its sign; constants and immediates are copied
  template <size_t N>
  Emitted emit(Mnemonic m, const Op (&operands)[N]) {
    return emit_list(m, std::span<const Op, N>(operands));
  }
  Emitted emit(Mnemonic m) { return emit_list(m, std::span<const Op, 0>()); }
  Op temp(uint32_t width = 1) { return gpr(new_gpr(f_, width, true)); }
  uint32_t temp_predicate() { return new_predicate(f_, true); }
  Inst& add_blank();
  template <size_t N>
  Emitted emit_list(Mnemonic m, std::span<const Op, N> operands);
  Emitted emit_with_copies(Mnemonic m, std::span<const Op> operands);
  Emitted place(Inst& inst, const isa::RowFacts& row);
  void guard(Inst& inst, const isa::RowFacts& row);
  void split_atomic(const ptx::Instruction& i, uint32_t d, Op at, Op data, Op swap);
  void compare_and_swap_loop(const ptx::Instruction& i, uint32_t d, Op at, Op data);
  void combine(const ptx::Instruction& i, uint32_t d, Op a, Op b);
  Op as_register(Op o) { return is_register(o) ? o : copied(o); }  // a GPR with the same value; keeps its sign
  Op copied(Op o);
  static bool is_zero(const Op& o) {
    return (is_immediate(o) && static_cast<uint32_t>(o.value) == 0) || (is_register(o) && o.reg == isa::RZ);
  }
  static Op plain(Op o);  // folds a negation into an immediate
  // Whether the comparison with b asks for the sign alone.
  static bool is_sign(Cmp c, const Wide& b, bool is_signed) {
    return is_signed && is_zero(b.lo) && is_zero(b.hi) && (c == Cmp::LT || c == Cmp::GE);
  }
  Op pair_register(Wide w);                                  // as one register pair
  Op compare_and_swap_data(Op compare, Op swap, bool wide);  // in consecutive registers, for rows that take them so
  void unsupported(const ptx::Instruction& i, std::string_view why = {});
  void unsupported_here(std::string_view why);

  enum Extension : uint8_t { by_zeros = 1, by_sign = 2 };
  // A PTX register: where it lies, and what stands for it where it is read.
  struct alignas(64) Register {
    uint32_t first = UINT32_MAX;                           // virtual register; of a wide value the first
    uint32_t copy_of = UINT32_MAX;                         // PTX register
    ptx::RegisterId base = rndn::none<ptx::RegisterId>();  // this one = base + offset
    int32_t offset = 0;
    uint32_t sign_of =
        UINT32_MAX;           // PTX register of which this is the negative, the absolute value, as a float of this size
    uint32_t defined_in = 0;  // block of the last definition
    enum Alias : uint8_t { none, value32, value64, f64 } alias = none;  // what lo, hi are, when not the register itself
    uint8_t bytes = 0;
    uint8_t extends = 0;          // of 64 bits, its low word: by zeros, by the sign, or 0
    uint8_t definitions : 2 = 0;  // in the code; 2: or more
    bool pointer : 1 = false;     // an address, or a factor: not from the constant bank
    bool read : 1 = false;        // by some instruction, guard or branch
    bool read_early : 1 =
        false;  // of one with a single definition: somewhere it may still be what a round of a loop before left
    bool negates : 1 = false, absolute : 1 = false,
                   flushes : 1 = false;  // of sign_of; flushes: subnormal numbers become zero
    uint32_t low_word = UINT32_MAX;      // of one that extends a word: a PTX register that is this word
    Op lo, hi;                           // its words; of f64: as its instructions take it
  };
  static_assert(sizeof(Register) == 64);  // a cache line: operands ask for them in any order

  // Source operands of the PTX instruction.
  Op source(const ptx::Operand& o, ptx::Type type) {  // 32 bits or less; immediates as 32-bit patterns
    return o.kind == ptx::Operand::reg ? registers_[o.id].lo : other_source(o, type);
  }
  Op other_source(const ptx::Operand& o, ptx::Type type);
  static Wide words_of(const Register& r) {
    return r.alias == Register::f64 ? Wide{gpr(r.first), gpr(r.first + 1)} : Wide{r.lo, r.hi};
  }
  Wide source64(const ptx::Operand& o) {
    return o.kind == ptx::Operand::reg ? words_of(registers_[o.id]) : other_source64(o);
  }
  Wide other_source64(const ptx::Operand& o);
  Op source_f64(const ptx::Operand& o);  // pair register, immediate (high word) or constant
  // The same of a float (f32, f64) where the instruction has room for signs: a register that is the negative (or, if wanted, the absolute value) of
  // another is the other with a sign. `flushes`: so does the instruction.
  Op source_float(const ptx::Operand& o, ptx::Type type, bool flushes, bool absolute = false);
  Op source_predicate(const ptx::Operand& o);
  Op extended(const ptx::Operand& o, ptx::Type type) {  // 16-bit sources extended to 32 bits
    return ptx::type_bytes(type) >= 4 ? source(o, type) : extended_narrow(o, type);
  }
  Op extended_narrow(const ptx::Operand& o, ptx::Type type);
  uint32_t destination(const ptx::Operand& o);  // RZ / PT for `_`

  uint32_t bank2(uint64_t bits, uint32_t bytes);  // offset of a literal in constant bank 2

  std::span<Register> registers_;  // by PTX register; in the arena
  // Who reads a special register first, in the order of the code.
  struct Reader {
    uint32_t reg = UINT32_MAX;  // PTX register
    BlockId block{};
  };
  std::array<Reader, ptx::special_register_count> first_reader_;  // of those that never change

  // Control flow inside an expansion. `branch_out`: the current block ends; its lanes with p go to `to`.
  BlockId new_block();
  SelectionRoom* room_ = nullptr;
  // Memory of a block of an earlier kernel, where there is some left.
  void take_room(std::vector<InstId>& code);
  void enter(BlockId b);    // makes it the current block
  void seal(BlockId next);  // current block goes on to `next`
  void seal_branch(Op p, BlockId taken, BlockId next);
  RegionId open_region(BlockId landing);  // at the end of the current block
  void start(BlockId b, RegionId innermost);
  void join(BlockId landing, RegionId region);  // landing of `region` becomes the current block

  const ptx::Module& m_;
  const ptx::Function& p_;
  const Flow& flow_;
  const ptx::SharedLayout& shared_;
  const Options& options_;
  const isa::Target& t_;
  isa::FormCache& forms_;
  Arena& arena_;
  Function f_;
  BlockId block_{};
  const ptx::Instruction* current_ = nullptr;
  bool convergent_ = true, split_ = false;    // of the block
  BlockId together_ = rndn::none<BlockId>();  // its lanes have come together in it
  bool one_address_ = false;                  // of the current instruction (FlowItem)
  std::string error_;
  uint32_t error_line_ = 0;  // of its statement
  Op guard_ = predicate(isa::PT);
  bool uses_descriptor_ = false;
  uint32_t descriptor_ = descriptor_register;
  uint32_t placed_ = 0;  // instructions that are in the code of a block; the others are the current block's
  // Registers of the block that were written under a guard: 2 r, predicates 2 p + 1.
  std::vector<uint32_t> conditional_;
  std::vector<uint64_t> is_conditional_;  // the same as a set of bits; grows with what is in it
  void mark_conditional(uint32_t r) {
    if (r / 64 >= is_conditional_.size()) is_conditional_.resize(r / 32 + 1);
    is_conditional_[r / 64] |= uint64_t{1} << r % 64;
    conditional_.push_back(r);
  }

 private:
  void statement(const FlowItem& item);
  void statement(const ptx::Instruction& i);
  void arithmetic(const ptx::Instruction& i);
  void float_arithmetic(const ptx::Instruction& i);
  void multiply(const ptx::Instruction& i);
  void mul64(uint32_t d, Wide a, Wide b);  // low 64 bits; d is none of the sources
  // The low word of a value of 64 bits, and how the value extends it: a set of Extension.
  struct Factor {
    Op low;
    uint32_t extends = 0;
  };
  Factor factor(const ptx::Operand& o);
  void divide(const ptx::Instruction& i);
  void divide32(uint32_t quotient, uint32_t remainder, Op a, Op b, bool is_signed);
  void divide64(Op result, Op a, Op b, bool remainder, bool is_signed);
  void add_saturated(uint32_t d, Op a, Op b);
  void mul_hi64(uint32_t d, Wide a, Wide b, bool is_signed);
  // extended.cpp
  void extended_arithmetic(const ptx::Instruction& i);
  bool mixes_carries() const;
  void add_with_carry(const ptx::Instruction& i);
  void multiply24(const ptx::Instruction& i);
  void sum_absolute_difference(const ptx::Instruction& i);
  void dot_product(const ptx::Instruction& i);
  void byte_differences(const ptx::Instruction& i);
  void fill_high_word(uint32_t d, ptx::Type type);
  void bit_extract64(uint32_t d, Wide a, Op position, Op length, bool is_signed);
  void bit_insert64(uint32_t d, Wide value, Wide base, Op position, Op length);
  // division.cpp
  bool divide_or_root(const ptx::Instruction& i);
  void divide_f64(uint32_t d, Op a, Op b);
  void divide_f64_slow(Op q, Op a, Op b);
  void divide_f32_slow(Op q, Op a, Op b, bool ftz);
  void root_f64(Op root, Op x);
  void root_f64_slow(Op root, Op x);
  void root_f32(Op root, Op x);
  void root_f32_slow(Op root, Op x, bool ftz);
  void divide_f32(uint32_t d, Op a, Op b, bool ftz);
  void sqrt_f64(uint32_t d, Op x);
  void sqrt_f32(uint32_t d, Op x, bool ftz);
  void quotient_f64(Op q, Op a, Op b);
  void round_directed(Op q, Op a, Op b, bool wide, ptx::Rounding rounding, bool root);
  void reciprocal_f32(uint32_t d, Op b, bool ftz);
  void reciprocal_f64(uint32_t d, Op b);
  template <class F>
  void only_where(Op p, F&& body);
  template <class F>
  void where_any(Op p, F&& body);
  Op lasting(Op o, uint32_t width);
  Op source_pair(const ptx::Operand& o);
  Op f64_literal(uint32_t high);
  Op f64_addend(uint32_t high);
  // subroutine.cpp
  // Long code that several places may need.
  enum class Shared : uint8_t {
    divide_f64,
    root_f64,
    divide_f32,
    divide_f32_ftz,
    root_f32,
    root_f32_ftz,
    quotient_u64,
    quotient_s64,
    remainder_u64,
    remainder_s64,
    none
  };
  struct SharedCode {
    uint32_t places = 0;
    uint32_t subroutine = UINT32_MAX;         // once it is called
    const ptx::Instruction* first = nullptr;  // that calls it
  };
  std::array<SharedCode, static_cast<size_t>(Shared::none)> shared_code_;
  std::vector<uint32_t> fixed_pairs_, fixed_predicates_;  // registers of all subroutines
  struct SharedShape {
    uint32_t words, operands;  // of each operand and of the result; how many operands
  };
  static constexpr SharedShape shared_shapes[static_cast<size_t>(Shared::none)] = {
      {2, 2},                          // divide_f64
      {2, 1},                          // root_f64
      {1, 2}, {1, 2},                  // divide_f32, divide_f32_ftz
      {1, 1}, {1, 1},                  // root_f32, root_f32_ftz
      {2, 2}, {2, 2}, {2, 2}, {2, 2},  // quotients and remainders of 64 bits
  };
  static SharedShape shape(Shared x) { return shared_shapes[static_cast<size_t>(x)]; }
  static bool is_flushing(const ptx::Instruction& i) {  // directed roundings flush for themselves
    return i.mods.ftz && (i.mods.rounding == ptx::Rounding::rn || i.mods.approx);
  }
  static Shared integer_division(bool remainder, bool is_signed) {
    if (remainder) return is_signed ? Shared::remainder_s64 : Shared::remainder_u64;
    return is_signed ? Shared::quotient_s64 : Shared::quotient_u64;
  }
  void find_shared_code();
  void shared_code(Shared what, Op result, Op a, Op b);  // b: none() where there is but one operand
  void make_subroutines();
  void write_code(Shared what, Op result, Op a, Op b);
  void share_registers(size_t inst, size_t gprs, size_t predicates, size_t blocks, Subroutine& s);
  Op fixed_pair(uint32_t k);
  Op operand_register(Shared what, uint32_t k);
  void bits(const ptx::Instruction& i);
  // half.cpp
  Op half_source(const ptx::Operand& o, ptx::Type type);
  void half_modifiers(Emitted e, const ptx::Instruction& i);
  void half_arithmetic(const ptx::Instruction& i);
  void half_compare(const ptx::Instruction& i);
  void pack_halves(const ptx::Instruction& i);
  void compare(const ptx::Instruction& i);
  void convert(const ptx::Instruction& i);
  void convert_address(const ptx::Instruction& i);
  Wide generic_base(ptx::Space space);
  void is_in_bank(const ptx::Instruction& i);
  void pack(uint32_t d, const ptx::Operand& elements, uint32_t bytes);
  void unpack(const ptx::Operand& elements, const ptx::Operand& from, ptx::Type type);
  void saturate_float(uint32_t d, Op a, ptx::Type type, bool ftz);
  bool saturate_wide(const ptx::Instruction& i, uint32_t d);
  void memory(const ptx::Instruction& i);
  struct Leader {
    BlockId block = rndn::none<BlockId>();
    Op here, lane;       // the lanes as a mask; the leader's number
    uint32_t leads = 0;  // a predicate of the leader
  };
  Leader leader_;
  // The angle whose argument for the function unit was made last, in this block.
  struct Reduced {
    BlockId block = rndn::none<BlockId>();
    uint32_t angle = 0;  // PTX register
    Op argument;
  };
  Reduced reduced_;
  Leader leader_of(Op guard);
  bool is_read(const ptx::Operand& o) const { return o.kind == ptx::Operand::reg && registers_[o.id].read; }
  bool atomic_of_warp(const ptx::Instruction& i, uint32_t d, const ptx::Operand& place, const ptx::Operand& operand);
  void cooperate(const ptx::Instruction& i);
  void block_barrier(const ptx::Instruction& i);
  void transcendental(const ptx::Instruction& i);
  // f32 numbers that keep the function unit's operands and results normal, as bits.
  static constexpr int32_t least_normal = 0x00800000, most_inverted = 0x7e800000 /* 2^126 */, two_24 = 0x4b800000,
                           quarter = 0x3e800000;
  // Values of FloatCompare.
  static constexpr uint32_t less = 1, greater = 4, greater_equal = 6, greater_or_nan = 12, not_less = 14;
  void compare_magnitude(uint32_t p, Op a, uint32_t code, int32_t bound);  // p = |a| code bound
  Op changeable(Op o);
  void only_if(Op p);
  void load_bank(const ptx::Instruction& i);
  void call_driver(const ptx::Instruction& i);
  std::vector<const ptx::Instruction*> choices_;  // all selp, once a copy has asked for them
  bool knows_choices_ = false;
  void copy_to_shared(const ptx::Instruction& i);
  const ptx::Instruction* choice_for(const ptx::Instruction& copy);
  bool chooses(const ptx::Instruction& selp, const ptx::Instruction& copy) const;
  bool copies_since_group() const;
  void part_from_shared();
  void prefetch(const ptx::Instruction& i);
  void test_class(const ptx::Instruction& i);
  void integer_extras(const ptx::Instruction& i);
  // warp.cpp
  // Operations of one kind that lanes of one mask may come to at different places, and the registers over which all places do them.
  struct Meeting {
    const ptx::Instruction* kind = nullptr;  // one of them
    uint32_t places = 0;
    Op members;  // the mask
    std::array<Op, 3> sources{};
    uint32_t result = 0;  // 0: not made yet
  };
  std::vector<Meeting> meetings_;
  uint32_t meeting_condition_ = 0, meeting_result_ = 0;  // predicates of every kind, since a lane is at one at a time
  void find_meetings();
  Meeting* same_kind(const ptx::Instruction& i);
  Meeting* meeting(const ptx::Instruction& i);
  struct Brought {
    std::initializer_list<Op> sources;
    uint32_t width = 1;  // of the sources
    Op condition;        // a predicate source
  };
  bool come_together(Op members);
  const ptx::Operand& members_of(const ptx::Instruction& i) const;
  size_t meet_as_one(std::span<const FlowItem> items);
  void meet_once(std::span<const FlowItem> items);
  Op lasting_members(Op members);
  uint32_t absent(Op members, Op guard);
  template <class F>
  void meet(Meeting& m, Op members, Op guard, const Brought& brought, uint32_t d, uint32_t p, F&& operate);
  void match(const ptx::Instruction& i);
  void reduce_warp(const ptx::Instruction& i);
  void reduce_lanes(uint32_t to, Op from, ptx::AtomicOp op, bool is_signed);
  template <class F>
  void exclusively(const ptx::Operand& mask, F&& body);
  Op address_of(const ptx::Instruction& i, const ptx::Operand& o);
  void prepare();
  void forward(const ptx::Instruction& i, BlockId block);
  uint8_t extension_of(const ptx::Instruction& i) const;
  void place_registers();
  void finish();

  Op carry_, borrow_;  // PTX's CC.CF, once it is used, and its opposite
  bool mixes_carries_ = false;
  // In the arena.
  std::span<uint32_t> parameter_offsets_;
  ptx::LocalLayout local_;
  ptx::ConstantLayout constants_;
};

// Appends an instruction that says nothing yet.
inline Inst& Selector::add_blank() {
  Inst& inst = f_.insts.push();
  static constexpr Inst blank;
  constexpr size_t own = offsetof(Inst, sass);  // in front of the instruction itself
  static_assert(own + sizeof(isa::Instruction) == sizeof(Inst));
  std::memcpy(static_cast<void*>(&inst), &blank, own);
  return inst;
}
template <size_t N>
Emitted Selector::emit_list(Mnemonic m, std::span<const Op, N> operands) {
  Inst& inst = add_blank();
  const isa::RowFacts* const row = isa::make(t_, m, operands, inst.sass, forms_);
  if (!row) [[unlikely]] {
    f_.insts.pop_back();
    return emit_with_copies(m, operands);
  }
  return place(inst, *row);
}

Result<Function> select_volta(const ptx::Module& m, const ptx::Function& p, const Flow& flow,
                              const ptx::SharedLayout& shared, const Options& o, isa::FormCache& forms, Arena& arena,
                              SelectionRoom& room);
Result<Function> select_pascal(const ptx::Module& m, const ptx::Function& p, const Flow& flow,
                               const ptx::SharedLayout& shared, const Options& o, isa::FormCache& forms, Arena& arena,
                               SelectionRoom& room);

}  // namespace rndn::assembler
