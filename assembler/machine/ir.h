// The machine function: blocks of SASS instructions over virtual registers, and what the passes share about it.
//
// Registers. Before allocation an operand names virtual registers: GPRs and predicates are two separate number spaces, both starting at
// isa::first_virtual. A 32-bit unit of a wide value has a number of its own: the pair of a 64-bit value is v, v + 1, so that either half can be
// named. `gprs[v - first_virtual]` says to which value (its first unit) a unit belongs and how wide the value is. After allocation the same
// operands hold physical registers, and values wider than a register are aligned to their width.
//
// Uniform registers: only UR4, UR5 are used, for the memory descriptor of Volta and later; written once at entry, never allocated.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "assembler/isa/isa.h"
#include "libraries/base/containers/arena.h"
#include "libraries/base/containers/bitset.h"
#include "libraries/base/containers/id.h"
#include "libraries/base/containers/inline_vector.h"
#include "libraries/base/containers/raw_vector.h"
#include "ptx/ir.h"

namespace rndn::assembler {

enum class BlockId : uint32_t {};
enum class RegionId : uint32_t {};
enum class InstId : uint32_t {};

inline constexpr uint32_t descriptor_register = 4;  // UR4, UR5
inline constexpr uint32_t scratch_uniform = 6;      // UR6: of a few instructions that follow each other
inline constexpr uint32_t called_descriptor_register =
    36;  // the same where functions of the driver are called: they keep UR36, UR37
inline constexpr uint32_t barrier_registers = 16;    // B0 .. B15
inline constexpr uint32_t first_called_barrier = 6;  // B registers that they keep
inline constexpr uint32_t stack_register = 1;        // R1

// Votes, shuffles, MATCH, REDUX: of all lanes that are here, so that they stay between the waits that bring the lanes together.
constexpr bool is_of_lanes(isa::LatencyClass x) {
  using L = isa::LatencyClass;
  return x == L::vote || x == L::shuffle || x == L::to_uniform;
}

// What memory an instruction touches, for the order of memory operations.
enum class Memory : uint8_t {
  none,
  global_load,
  global_store,
  shared_load,
  shared_store,
  copy,  // from global to shared memory, at some time
  local_load,
  local_store,
  constant_load,
  fence
};

// Parts of a call of a function that the driver has (Selector::call_driver), which a relocation fills in; parts of a call of a subroutine
// (select/subroutine.cpp): the move of the place behind the call, the call, and the return at its end.
enum class Call : uint8_t { none, return_low, return_high, function, behind, subroutine, back };

struct Inst {
  uint32_t line = 0;      // of the PTX source
  ptx::VariableId symbol =
      none<ptx::VariableId>();  // its immediate is the low or high word of this variable's address, set by the loader
  uint32_t callee = 0;  // of Call::function: index into Module::functions; of Call::subroutine and back: into Function::subroutines
  bool symbol_high = false;
  bool pinned = false;       // has an effect besides its registers: never removed
  bool cooperative = false;  // comes from a .sync operation of PTX (attribute COOP_GROUP_INSTR_OFFSETS)
  bool read_only = false;    // a load of what nothing writes while the kernel runs (ld.global.nc)
  bool contractible = false;  // of floats: PTX lets a product and a sum be one operation with one rounding
  Call call = Call::none;
  isa::Instruction sass;  // last, since its last operands are hardly ever used; those beyond the form's are undefined
};

// A range of registers that an instruction reads or writes, in one word.
class Range {
 public:
  enum File : uint32_t { gpr, predicate, uniform, uniform_predicate };
  static constexpr uint32_t guard_operand = 15;
  static constexpr uint32_t max_register = (1u << 22) - 1;
  Range() = default;
  // operand: index of the operand that names it; guard_operand: the guard.
  constexpr Range(uint32_t reg, uint32_t width, File file, uint32_t operand)
      : bits_(reg | (width - 1) << 22 | uint32_t{file} << 24 | operand << 28) {}
  uint32_t reg() const { return bits_ & max_register; }
  uint32_t width() const { return (bits_ >> 22 & 3) + 1; }
  File file() const { return static_cast<File>(bits_ >> 24 & 3); }
  uint32_t operand() const { return bits_ >> 28; }
  bool guard() const { return operand() == guard_operand; }
  bool allocated() const { return !(bits_ >> 25 & 1); }  // of a file that the allocator hands out: GPRs, predicates
  void set_reg(uint32_t reg) { bits_ = (bits_ & ~max_register) | reg; }
  // The same of another register, or of another width; of a range of register 0, or of one register.
  Range of_register(uint32_t reg) const { return from_bits(bits_ | reg); }
  Range of_width(uint32_t width) const { return from_bits(bits_ | (width - 1) << 22); }

 private:
  static Range from_bits(uint32_t bits) {
    Range r;
    r.bits_ = bits;
    return r;
  }
  uint32_t bits_ = 0;
};

// What the passes ask about an instruction, gathered once (facts_of): they stream over these records, a cache line each, and leave the
// instructions alone until emission. Zero and true registers are left out of the ranges. An address also reads its uniform register (the memory
// descriptor: a pair); a read-write operand has two ranges; the guard is the last read. Pascal's condition code is apart (reads_carry,
// writes_carry). Selection makes no instruction that names predicates by a mask.
struct Facts {
  std::array<Range, 11> ranges;
  uint8_t read_count = 0, count = 0;  // ranges: reads, then writes
  isa::LatencyClass latency{};
  Memory memory = Memory::none;
  bool pinned = false;           // has an effect besides its registers: never removed
  bool guarded = false;          // runs under a guard
  bool announced = false;        // a scoreboard announces its result
  bool late = false;             // reads its sources after issue
  bool copies = false;           // MOV between GPRs
  bool cooperative : 1 = false;  // comes from a .sync operation of PTX
  bool reads_carry : 1 = false, writes_carry : 1 = false;
  bool generic : 1 = false;           // memory of any space
  bool late_carry : 1 = false;        // its condition code takes longer (IMNMX)
  bool writes_elsewhere : 1 = false;  // writes a file that is not allocated
  bool ordered : 1 = false;           // has to do with memory or other lanes: scheduling keeps its order
  bool crosses : 1 = true;            // before allocation: may read a register that its block has not written before it
  bool combines : 1 = false;          // combine.cpp looks at it
  bool read_only : 1 = false;         // a load of what nothing writes while the kernel runs
  uint8_t least_stall = 1;            // issue cycles before the next instruction
  isa::Control control;               // filled by assign_barriers

  std::span<const Range> reads() const { return {ranges.data(), read_count}; }
  std::span<const Range> writes() const { return {ranges.data() + read_count, size_t{count} - read_count}; }
  std::span<const Range> all() const { return {ranges.data(), count}; }
  // At least as many as a list of its registers takes, with those of the condition code and one word more.
  uint32_t most_units() const { return uint32_t{4} * count + 3; }
};
static_assert(sizeof(Facts) <= 64);

// What the instructions of an allocated function read and write, register by register, for the passes that follow each register: faster than
// ranges. Pascal's condition code is left out.
class RegisterLists {
  static_assert(std::endian::native == std::endian::little);

 public:
  // Numbers: GPRs, predicates, uniform registers, uniform predicates.
  static constexpr std::array<uint16_t, 4> base = {0, 256, 272, 336};
  static constexpr uint32_t condition_code = 264, count = 344;
  static constexpr std::array<uint8_t, count> files = [] {  // by number
    std::array<uint8_t, count> table{};
    for (uint32_t number = 0; number < count; ++number)
      table[number] = static_cast<uint8_t>((number >= base[1]) + (number >= base[2]) + (number >= base[3]));
    return table;
  }();
  static Range::File file_of(uint32_t number) { return static_cast<Range::File>(files[number]); }
  struct List {
    const uint16_t *reads, *writes, *end;  // the guard is the last read
    std::span<const uint16_t> all_reads() const { return {reads, writes}; }
    std::span<const uint16_t> all_writes() const { return {writes, end}; }
    std::span<const uint16_t> all() const { return {reads, end}; }
    // Without the guard.
    std::span<const uint16_t> sources(const Facts& x) const { return {reads, writes - x.guarded}; }
  };
  List of(InstId i) const {
    const uint16_t* list = items_.data() + begin_[index(i)];
    const uint16_t* writes = list + 1 + (*list & 0xff);
    return {list + 1, writes, writes + (*list >> 8)};
  }
  // Forgets all; room for so many instructions and what they name together.
  void start(size_t insts, size_t registers) {
    begin_.resize(insts), items_.resize(registers + insts);
    used_ = 0;
  }
  // Lists what the instruction names, after settle(range) has had its way with every range.
  template <class F>
  void set(InstId i, Facts& x, F&& settle) {
    if (begin_.size() <= index(i)) begin_.resize(index(i) + 1);
    if (used_ + x.most_units() > items_.size()) items_.resize(2 * (used_ + x.most_units()));
    begin_[index(i)] = static_cast<uint32_t>(used_);
    uint16_t *const list = items_.data() + used_, *next = list + 1;
    const uint16_t* writes = nullptr;
    Range* r = x.ranges.data();
    const Range *const first_write = r + x.read_count, *const end = r + x.count;
    for (;; ++r) {
      if (r == first_write) writes = next;
      if (r == end) break;
      settle(*r);
      // Its registers and those behind them, four at once; the list goes on behind the last of its own.
      const uint64_t number = base[r->file()] + r->reg(), four = number * 0x0001000100010001u + 0x0003000200010000u;
      std::memcpy(next, &four, sizeof four);
      next += r->width();
    }
    *list = static_cast<uint16_t>((writes - list - 1) | (next - writes) << 8);
    used_ = static_cast<size_t>(next - items_.data());
  }

 private:
  RawVector<uint32_t> begin_;
  RawVector<uint16_t> items_;  // by InstId, from begin_[i]: the number of reads | that of writes << 8, reads, writes
  size_t used_ = 0;            // of items_
};

// What the instructions of a function over virtual registers read and write, unit by unit: one list per instruction, for the passes between
// selection and allocation, which all ask the same. Made by survey(); passes that change an instruction list it again.
//
// Units are numbered from 0: predicates, then what is not allocated (uniform registers, uniform predicates, Pascal's condition code), then GPRs,
// which become more while passes work. Physical registers have none: before allocation only the prologue writes R1.
struct Units {
  // On a written unit: the write is guarded, and for other lanes the old value lives on.
  static constexpr uint32_t lasts = 1u << 31;
  static constexpr uint32_t others = isa::URZ + isa::PT + 1;
  struct List {
    const uint32_t *reads, *writes, *end;  // the guard is the last read
  };
  uint32_t predicates = 0, first_gpr = others, count = others;
  RawVector<uint32_t> begin,
      items;  // of instruction i from items[begin[i]]: number of reads | of writes << 16, reads, writes

  bool is_gpr(uint32_t u) const { return u >= first_gpr; }
  bool is_allocated(uint32_t u) const { return u - predicates >= others; }  // a GPR or a predicate
  uint32_t of(Range::File file, uint32_t reg) const {
    return reg - isa::first_virtual + (file == Range::gpr ? first_gpr : 0);
  }
  List of(InstId i) const {
    const uint32_t* list = items.data() + begin[index(i)];
    const uint32_t* writes = list + 1 + (*list & 0xffff);
    return {list + 1, writes, writes + (*list >> 16)};
  }
};

using RegionList = InlineVector<RegionId, 2>;  // hardly ever more

// A block of machine code. Branches are not instructions until emission: they are the block's terminator.
struct Block {
  std::vector<InstId> code;  // in order of execution
  // Terminator: `predicate` (virtual, later physical; PT = always) leads to `taken`, else to `next`. Both none: the block ends the thread.
  uint32_t predicate = isa::PT;
  bool negated = false;
  bool uniform_branch = false;
  BlockId taken = none<BlockId>();
  BlockId next = none<BlockId>();
  uint32_t line = 0, end_line = 0;  // of the first instruction and of the branch or exit at the end
  // Reconvergence: regions opened (outermost first) after `code`, before the branch; the region that this block joins before `code`.
  RegionList opens;
  RegionId joins = none<RegionId>();
  RegionId innermost = none<RegionId>();  // open region inside which the block runs
  uint32_t loop_depth = 0;
  bool convergent = false;  // known: every live lane of the warp runs it together
};

// A divergent piece of the graph, from the end of `entry` to the landing block `join`, where its lanes meet again.
struct Region {
  BlockId entry{}, join{};
  RegionId parent = none<RegionId>();
  uint32_t depth = 0;  // nesting, 0 = outermost: the B register on Volta and later
};

// Code that several places of a function call (select/subroutine.cpp): its blocks follow each other from `body` on by `next`, and branch at most to a later
// one of them. No register of it is a value of the places': a call reads and writes what is listed here.
struct Subroutine {
  BlockId body = none<BlockId>();
  std::vector<Range> reads, writes, results;  // results: of the writes, what is read behind the call
  size_t words() const { return 4 * (reads.size() + writes.size() + results.size()); }  // at least as many as their units
};

struct GprUnit {
  uint32_t first = 0;      // unit number of the value's first unit
  uint8_t width = 1;       // units of the value: 1, 2, 4
  bool temporary = false;  // a guarded write begins its life: within the expansion of one PTX instruction, or under one guard
  bool unspillable = false;
};

struct PredicateUnit {
  bool temporary = false, unspillable = false;  // as a GPR's
};

struct Function {
  const isa::Target* target = nullptr;
  const ptx::Function* source = nullptr;
  Arena* arena = nullptr;  // scratch memory of the compilation
  RawVector<Inst> insts;
  RawVector<Facts> facts;   // by InstId, from the end of selection on
  Units units;              // from the end of selection to the end of allocation
  RegisterLists registers;  // from the end of allocation on
  IdVector<BlockId, Block> blocks;
  std::vector<BlockId> layout;  // order of emission; layout[0] is the entry
  std::vector<Subroutine> subroutines;
  IdVector<RegionId, Region> regions;
  std::vector<GprUnit> gprs;              // by unit number
  std::vector<PredicateUnit> predicates;  // by virtual predicate number
  bool allocated = false;
  uint32_t registers_used = 0;  // R0 .. of values, after allocation

  uint32_t local_bytes = 0;  // .local variables, then spill slots
  bool dynamic_stack = false;  // the thread takes memory below them; the first word says how far down
  uint32_t spill_bytes = 0;    // of them: slots
  uint32_t spill_store_bytes = 0, spill_load_bytes = 0;  // what the instructions that spilling adds move, each once
  bool uses_stack = false;    // R1 holds the frame
  uint32_t shared_bytes = 0;  // static, without the target's reserved bytes
  bool uses_shared = false;
  uint32_t barriers = 0;  // named barriers used
  bool uses_ctaid_z = false;
  bool calls = false;       // functions of the driver
  bool alone = false;       // other code goes before and behind it (make_stencil.cpp)
  bool collective = false;  // lanes meet by WARPSYNC.COLLECTIVE (select/warp.cpp)
  uint32_t max_registers = 255;
  std::vector<std::byte> constants;  // bank 2

  const Inst& operator[](InstId i) const { return insts[index(i)]; }
  Inst& operator[](InstId i) { return insts[index(i)]; }
};

Facts facts_of(const isa::Target& target, const Inst& inst);
// Lists the units of an instruction that has changed, before allocation.
void list_units(Function& f, InstId i);
// Appends the instruction with its facts and, after allocation, its registers; the caller puts the id into a block and, before, lists its units.
InstId add_inst(Function& f, const Inst& inst);

// Successors of a block: up to two.
template <class F>
void for_each_successor(const Block& b, F&& f) {
  if (!is_none(b.taken)) f(b.taken);
  if (!is_none(b.next) && b.next != b.taken) f(b.next);
}

}  // namespace rndn::assembler
