// The statements that random programs consist of: registers and their kinds, values, operations of ptx/opcodes.def, memory. What order they come in,
// who comes to them, and what stands around them: random_programs.cpp.
#pragma once
#include <array>
#include <bit>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ptx/ir.h"
#include "ptx/opcodes.h"

namespace rndn::testing::random_ptx {

using namespace ptx;
using Operands = std::vector<Operand>;

// Kinds of registers: those of one kind can stand for each other. x2: two halves in 32 bits.
enum Kind : uint8_t { P, I16, I32, I64, H, H2, B, B2, F, D, kinds };
constexpr Type kind_type[kinds] = {Type::pred,  Type::b16,  Type::b32,    Type::b64, Type::f16,
                                   Type::f16x2, Type::bf16, Type::bf16x2, Type::f32, Type::f64};

Kind kind_of(Type t);
inline bool is_integer(Type t) { return is_bits(t) || is_signed(t) || is_unsigned(t); }
inline Type bits_type(uint32_t bytes) {
  return bytes == 1 ? Type::b8 : bytes == 2 ? Type::b16 : bytes == 4 ? Type::b32 : Type::b64;
}
inline Operand reg(uint32_t id) { return {.kind = Operand::reg, .id = id}; }
inline Operand imm(int64_t value) { return {.kind = Operand::immediate, .value = value}; }

struct Choice {
  Opcode op;
  const Form* form;
};

// Writes statements into a function; every value that a statement takes is chosen among those of its kind.
class Statements {
 public:
  Statements(Module& module, uint64_t seed, std::string name);

 protected:
  struct Var {
    uint32_t reg;
    bool fixed = false;    // not to be written again: addresses, counters of loops
    bool uniform = false;  // the same in all lanes of a block
  };
  struct Region {
    Space space;
    uint32_t base, generic;        // registers with its address
    uint32_t base32 = UINT32_MAX;  // shared: the address in 32 bits
    uint32_t variable = UINT32_MAX;
    uint32_t bytes = 0;  // a power of two
    bool writable = false;
  };
  struct Loop {
    uint32_t again, out;
    bool meet;
    uint32_t tile;
  };
  struct Counter {
    AtomicOp op;
    Type type;
    int64_t bound;
  };
  struct Callee {
    uint32_t index;
    std::vector<Type> parameters;
    Type result;
  };
  using Pools = std::array<std::vector<Var>, kinds>;

  // ---- chance
  uint64_t next();
  uint32_t pick(size_t n) { return static_cast<uint32_t>(next() % n); }
  bool chance(uint32_t of) { return pick(of) == 0; }
  template <class T>
  T any(std::initializer_list<T> list) {
    return list.begin()[pick(list.size())];
  }
  uint32_t bit_of(uint64_t set);
  Type type_of(TypeSet set) { return static_cast<Type>(bit_of(set)); }

  // ---- functions, registers, instructions
  void begin(bool entry, const std::string& name);
  void end();
  uint32_t fresh(Type type);
  Type declared_type(Kind k);
  uint32_t add_variable(Space space, Type type, uint64_t count, uint32_t align, bool own);
  void emit(Opcode op, Type type, const Modifiers& mods, const Operands& destinations, const Operands& sources,
            Type type2 = Type::none);
  // A temporary with the result.
  uint32_t make(Opcode op, Type type, const Modifiers& mods, const Operands& sources, Type result = Type::none,
                Type type2 = Type::none);
  uint32_t compare(Compare c, Type type, const Operand& a, const Operand& b);
  Operand vector(const Operands& elements);
  uint32_t label();
  void place(uint32_t label) { placed_[label] = static_cast<uint32_t>(f_.instructions.size()); }
  void branch(uint32_t to, uint32_t guard = UINT32_MAX, bool negated = false);
  Type declared(uint32_t r) const { return f_.registers[static_cast<RegisterId>(r)].type; }
  // Elements of a vector have one type.
  Operand uniform_vector(Operands elements);

  // ---- values
  uint32_t source(Kind k);
  // A new register with a constant, or of predicates one that is the same in all lanes.
  uint32_t constant_register(Kind k);
  Operand constant(Type type);
  // A source of the type; in ld, st and cvt (`wider`) the register may be wider.
  Operand value(Type type, bool constants, bool wider);
  // Where a result of the kind goes: a variable that lives on, or a new one that add() makes known.
  uint32_t target(Kind k, bool must_live);
  void add_targets();
  void know(Kind k, uint32_t r, bool fixed = false, bool uniform = false) { pool_[k].push_back({r, fixed, uniform}); }
  // The bits of a value as an integer register, NaNs made one.
  uint32_t bits_of(Kind k, uint32_t r);

  // ---- operations of the table
  void operation();
  Modifiers modifiers(Opcode op, const Form& form);
  // Operands for which PTX does not say what happens are replaced.
  void define(const Instruction& i, Operands& sources);

  // ---- moves between kinds
  void pack();
  void result(Kind k, Type type, const Operands& sources);
  void halves(Kind from, Kind to, Type type);
  void change_kind();
  void special();

  // ---- memory
  // An address of `bytes` bytes in the region, aligned so.
  Operand address(const Region& r, bool generic, uint32_t bytes);
  const Region& region(bool written);
  // Modifiers of an access, for its space or for a generic address.
  bool access(Opcode op, const Region& r, Modifiers& m, Type& type, bool& generic);
  Kind memory_kind(Type type);
  void load();
  void store();
  // Atomics on words of the thread's own, whose old values count.
  void atomic();
  // Atomics on words that all threads share: one operation per word, results not used.
  void count();
  void carry_chain();
  void order();

  Module& m_;
  const std::string name_;
  uint64_t state_;
  const std::vector<std::vector<Choice>>* table_ = nullptr;
  Function f_;
  uint32_t index_ = 0;
  Pools pool_;
  std::vector<std::pair<Kind, Var>> pending_;
  std::array<uint32_t, 32> numbers_{};
  std::map<uint32_t, uint32_t> placed_;
  std::vector<Region> regions_;
  std::vector<Loop> loops_;
  std::vector<Counter> counters_;
  std::vector<Callee> callees_;
  RegisterId guard_ = rndn::none<RegisterId>();
  bool guard_negated_ = false, frame_ = false, uniform_only_ = false, has_block_counters_ = false;
  bool meet_ = false;  // all lanes of the block come here
  uint32_t tile_ = 1;  // aligned groups of so many lanes come together, where not all of the block do (meet_)
  uint32_t mask_ = 0;  // the lanes of every warp that come, where that is known
  uint32_t left_ = 0, weight_ = 1;
  uint32_t a_ = 0, tid_ = 0, row_ = 0, counter_words_ = 0, counters_generic_ = 0, float_words_ = 0, exchange32_ = 0,
           block_counters_ = 0, block_counters_generic_ = 0, row_region_ = 0, shared_region_ = 0;
};

}  // namespace rndn::testing::random_ptx
