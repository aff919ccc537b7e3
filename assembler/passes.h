// The passes over machine functions, in the order of pipeline.cpp. Each file's top comment says what it does and what it relies on.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <string>
#include <vector>

#include "assembler/assemble.h"
#include "assembler/cubin/cubin.h"
#include "assembler/ir.h"
#include "assembler/structure.h"
#include "libraries/base/result.h"

namespace rndn::assembler {

// Static shared memory of an entry: the variables that its code names, of the module and its own, in the order of the module.
struct SharedLayout {
  std::vector<uint32_t> offsets;  // by VariableId, without the target's reserved bytes
  uint32_t bytes = 0;             // of sized variables
  bool any = false;
};
SharedLayout lay_out_shared(const ptx::Module& module, const ptx::Function& function);
// The .const variables in bank 3, as cubin::write lays them out.
struct ConstantLayout {
  std::vector<uint32_t> offsets;  // by VariableId
  uint64_t bytes = 0;
};
ConstantLayout lay_out_constants(const ptx::Module& module);
// Its local memory: the variables of the module and its own, in the order of the module.
struct LocalLayout {
  std::vector<uint32_t> offsets;  // by VariableId, from the stack register
  uint32_t bytes = 0;
  bool dynamic = false;  // and more below, by alloca
};
LocalLayout lay_out_local(const ptx::Module& module, const ptx::Function& function);
// The parameters of an entry, in their order: use(index, offset, size), in bytes. Returns the size of them all.
template <class F>
uint32_t lay_out_parameters(const ptx::Function& function, F&& use) {
  uint32_t at = 0;
  for (uint32_t k = 0; k < function.parameters.size(); ++k) {
    const ptx::Parameter& x = function.parameters[k];
    const uint32_t bytes = ptx::type_bytes(x.type), align = x.align ? x.align : bytes, size = bytes * (x.count ? x.count : 1);
    at = (at + align - 1) / align * align;
    use(k, at, size);
    at += size;
  }
  return at;
}
// The symbol of a global or constant variable. Functions may have variables of one name: theirs get the number of the variable, as ptxas's do.
std::string symbol_of(const ptx::Module& module, ptx::VariableId variable);

// --- pipeline.cpp
// Registers that a block of the function's declared size leaves to each thread, in steps of 8.
uint32_t register_limit(const ptx::Function& p, const Options& o);

// Memory that selection uses again.
struct SelectionRoom {
  RawVector<Inst> insts;
  std::vector<std::vector<InstId>> code;  // of blocks
};
Result<Function> select(const ptx::Module& module, const ptx::Function& function, const Flow& flow,
                        const SharedLayout& shared, const Options& options, isa::FormCache& forms, Arena& arena,
                        SelectionRoom& room);

// --- facts.cpp
// What becomes of a unit in the function.
struct UnitUse {
  uint32_t readers = 0;                            // instructions and branches
  uint32_t inst = UINT32_MAX, block = UINT32_MAX;  // of the last write in the order of the code; none: never written
  bool several = false;                            // writes
  bool zero = false;                               // all of them are moves of zero
  bool crosses = false;                            // a GPR or predicate that is read in a block that did not write it before
};
struct Survey {
  std::span<UnitUse> units;  // by unit
  uint32_t crossing = 0;     // GPRs that live across blocks, about
  bool zeros = false;        // some unit is zero
};
// Gathers facts and units of all instructions. The answer lives in the function's arena.
Survey survey(Function& f);
void list_units(Function& f);  // of all instructions, anew

// --- zero_words.cpp: words that are zero are read as RZ; returns whether any was
bool spread_zeros(Function& f, Survey& survey);

// --- guarded_values.cpp: values that live under one guard become temporaries
void find_guarded_values(Function& f, const Survey& survey);

// --- liveness.cpp
// A set of units that live in several blocks, by words of 64.
class LiveSet {
 public:
  struct Word {
    uint64_t bits;
    uint32_t chunk;  // bit k stands for the unit numbers[64 * chunk + k]
  };
  class Iterator {
   public:
    Iterator(const Word* word, const Word* end, const uint32_t* numbers)
        : word_(word), end_(end), numbers_(numbers), bits_(word == end ? 0 : word->bits) {}
    uint32_t operator*() const { return numbers_[64 * word_->chunk + static_cast<uint32_t>(std::countr_zero(bits_))]; }
    Iterator& operator++() {
      bits_ &= bits_ - 1;
      if (bits_ == 0 && ++word_ != end_) bits_ = word_->bits;
      return *this;
    }
    bool operator!=(const Iterator& o) const { return word_ != o.word_; }

   private:
    const Word *word_, *end_;
    const uint32_t* numbers_;
    uint64_t bits_;
  };

  LiveSet() = default;
  LiveSet(std::span<const Word> words, const uint32_t* numbers) : words_(words), numbers_(numbers) {}
  Iterator begin() const { return {words_.data(), words_.data() + words_.size(), numbers_}; }
  Iterator end() const { return {words_.data() + words_.size(), words_.data() + words_.size(), numbers_}; }
  // use(bits of the first set, bits of the second, chunk) for every chunk of two sets.
  template <class F>
  static void for_each_word(std::span<const Word> a, std::span<const Word> b, F&& use) {
    const Word *x = a.data(), *const x_end = x + a.size(), *y = b.data(), *const y_end = y + b.size();
    while (x != x_end || y != y_end) {
      const uint32_t i = x == x_end ? UINT32_MAX : x->chunk, k = y == y_end ? UINT32_MAX : y->chunk, chunk = std::min(i, k);
      const uint64_t first = i == chunk ? (x++)->bits : 0, second = k == chunk ? (y++)->bits : 0;
      use(first, second, chunk);
    }
  }
  // use(unit) for each that is in only one of two sets of one function.
  template <class F>
  static void for_each_difference(const LiveSet& a, const LiveSet& b, F&& use) {
    const uint32_t* const numbers = b.numbers_ ? b.numbers_ : a.numbers_;
    for_each_word(a.words_, b.words_, [&](uint64_t x, uint64_t y, uint32_t chunk) {
      for (uint64_t bits = x ^ y; bits; bits &= bits - 1) use(numbers[64 * chunk + static_cast<uint32_t>(std::countr_zero(bits))]);
    });
  }

 private:
  std::span<const Word> words_;  // by chunk
  const uint32_t* numbers_ = nullptr;
};

// Live units (GPRs and predicates) at the block boundaries. Lives in the function's arena.
class Liveness {
 public:
  // The sets of all blocks: of block b words[begin[b]] .. words[begin[b + 1]].
  struct Sets {
    std::span<const uint32_t> begin;
    std::span<const LiveSet::Word> words;
  };
  Liveness() = default;
  Liveness(const uint32_t* numbers, Sets in, Sets out, Sets undefined)
      : numbers_(numbers), in_(in), out_(out), undefined_(undefined) {}
  LiveSet in(BlockId b) const { return at(in_, b); }
  LiveSet out(BlockId b) const { return at(out_, b); }
  // What would be alive where the block begins, but has no value there on any path. All that the block reads or lets live on behind it is in one of the
  // two sets.
  LiveSet undefined(BlockId b) const { return at(undefined_, b); }

 private:
  LiveSet at(const Sets& s, BlockId b) const {
    if (s.begin.empty()) return {};
    return {s.words.subspan(s.begin[index(b)], s.begin[index(b) + 1] - s.begin[index(b)]), numbers_};
  }
  const uint32_t* numbers_ = nullptr;
  Sets in_, out_, undefined_;
};
Liveness compute_liveness(Function& f);
// The largest number of GPRs alive at once in the order of the code.
uint32_t register_pressure(const Function& f, const Liveness& live);
// The same of single blocks, with their code in any order: of a whole block, or step by step from its end. Lives in the function's arena.
class PressureOf {
 public:
  PressureOf(const Function& f, const Liveness& live);
  uint32_t block(BlockId b, std::span<const InstId> code);
  uint32_t start(BlockId b);   // alive at its end
  uint32_t before(InstId i);  // ... at once at the instruction in front of the last one

 private:
  const Units& units_;
  const Liveness& live_;
  std::span<uint32_t> alive_;  // by unit: number of the block in which it is alive
  uint32_t number_ = 0, now_ = 0;
};

// --- peephole.cpp
void remove_dead_code(Function& f, Survey& survey);  // over virtual registers
void peephole_allocated(Function& f);                // MOV R, R; loads to RZ

// --- balance_pipes.cpp: over physical registers; sums, shifts and moves become products where the ALU has more to do than the multiplier
void balance_pipes(Function& f, isa::FormCache& forms);

// --- place_blocks.cpp: after scheduling; another order of blocks, where it has fewer jumps
void place_blocks(Function& f);

// --- copies.cpp: over virtual registers; copies within a block
void join_copies(Function& f, Survey& survey);

// --- combine.cpp: over virtual registers; one instruction for two of a block
void combine(Function& f, Survey& survey, isa::FormCache& forms);

// --- common_values.cpp: over virtual registers; what has been computed already is not computed again, invariants in front of loops
void share_values(Function& f, Survey& survey);

// --- uniform_values.cpp: loop invariants to uniform registers; returns whether anything changed
bool move_uniform_values(Function& f, Survey& survey, isa::FormCache& forms);

// --- rematerialise.cpp: values made again where they are used; returns whether anything changed. The survey knows of the readers that either pass
// moves, and of no new units.
bool rematerialise(Function& f, Survey& survey);

// --- partly_dead_code.cpp: what only instructions under one guard need gets this guard, what nobody needs goes, if about `worth` GPRs then live around
// fewer blocks; returns whether anything changed
bool remove_partly_dead_code(Function& f, const Liveness& live, uint32_t worth);

// --- order_for_registers.cpp: another order of blocks with more than `enough` GPRs alive at once, if then at most `wanted` are alive at once in the
// function, else nothing changes. Returns how many are, UINT32_MAX: unchanged.
uint32_t order_for_registers(Function& f, const Liveness& live, uint32_t enough, uint32_t wanted);

// --- split_values.cpp: what a block writes several times becomes several values. The answer lives in the function's arena.
struct Renamed {
  InstId inst;
  uint32_t range, reg;  // index of the range in its facts; the register that it named
};
std::span<const Renamed> split_values(Function& f, const Liveness& live);
void join_values(Function& f, std::span<const Renamed> renamed);  // takes the names back

// --- schedule.cpp: new order of each block's code
// What scheduling before allocation knows of a function apart from the limit on registers; lives in the function's arena.
struct SchedulePlan {
  std::span<InstId> program;  // the code of all blocks in the order of the program
  std::span<uint32_t> late;   // the same as late as possible: places within the block
  std::span<uint32_t> most;   // by place in the layout: GPRs alive at once in the block's last schedule, 0 before the first
};
SchedulePlan plan_schedule(const Function& f);
// Orders the code so that about `limit` GPRs are alive at once, about `crowded` in blocks where the last schedule had more than `limit`. Returns whether
// now some blocks have more than the limit while others keep within it. Can be repeated.
bool schedule(Function& f, const SchedulePlan& plan, const Liveness& live, uint32_t limit, uint32_t crowded);
void schedule_allocated(Function& f);  // over physical registers

// Registers per thread with which every warp of a multiprocessor can be resident.
inline uint32_t full_occupancy_registers(const isa::Target& t) { return t.registers_per_sm / (32 * t.warps_per_sm); }

// --- allocate_registers.cpp: virtual to physical registers. Takes at most `wanted` of them if it can (0: any number); if it cannot, as few as it can, or,
// with only_wanted, none: then it returns false, and nothing is changed. Fails when even spilling does not help.
Result<bool> allocate_registers(Function& f, const Liveness& live, uint32_t wanted, bool only_wanted);

// --- emit.cpp, assign_barriers.cpp: the final stream of one kernel
struct CodeBlock {
  uint32_t begin = 0, end = 0;  // instructions
  std::array<uint32_t, 2> successor{};
  uint32_t successor_count = 0;
  bool loop_entry = false;  // some predecessor comes later in the stream
  std::span<const uint32_t> successors() const { return {successor.data(), successor_count}; }
};
struct Code {
  std::vector<InstId> order;
  std::vector<uint32_t> targets;    // per instruction: position of the instruction its label names; UINT32_MAX = none
  std::vector<CodeBlock> blocks;    // in order of the stream, without gaps
  std::vector<uint64_t> addresses;  // per instruction, after emit
  void clear() { order.clear(), targets.clear(), blocks.clear(), addresses.clear(); }
};
// Branches, reconvergence and exits become instructions. `room`: code whose memory is used again.
Code lay_out(Function& f, isa::FormCache& forms, Code room);
void assign_barriers(Function& f, Code& code);  // fills Facts::control
Result<cubin::Kernel> emit(const ptx::Module& module, Function& f, Code& code);
// What the kernel takes from its declaration in PTX.
void declare(cubin::Kernel& kernel, const ptx::Function& function);
// Instructions of a section that holds n: the rest are NOPs.
uint32_t padded_size(const isa::Target& target, uint32_t n);
// Pascal's stack of code with regions so deep, so many guarded branches, and perhaps loops.
uint32_t divergence_stack_bytes(uint32_t depth, uint32_t branches, bool loops);

// --- independent checkers: one message per violation, empty when all is well
std::vector<std::string> check_allocation(const Function& before, const Function& after);
std::vector<std::string> check_schedule(const isa::Target& target, const std::vector<isa::Instruction>& code,
                                        const std::vector<uint64_t>& addresses);
// Every region is opened and joined once on every path (SSY and SYNC, BSSY and BSYNC).
std::vector<std::string> check_regions(const isa::Target& target, const std::vector<isa::Instruction>& code,
                                       const std::vector<uint64_t>& addresses);
// The same instructions in each block, and each reads what it read before.
std::vector<std::string> check_order(const Function& before, const Function& after);
// The distance that check_schedule demands from a producer to a reader of its result (file none: Pascal's condition code); 0: none.
uint32_t checked_distance(const isa::Target& target, const isa::Instruction& producer, const isa::Instruction& consumer,
                          uint32_t reg, isa::RegisterFile file, bool guard);

}  // namespace rndn::assembler
