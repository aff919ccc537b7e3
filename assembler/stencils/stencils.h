// Code made of stencils, for -O0: finished machine words for one PTX statement, with holes for its registers and literals, that are copied and patched
// (Xu and Kjolstad, "Copy-and-Patch Compilation", OOPSLA 2021). There is no second table of opcodes: a stencil is what selection and the last passes
// make of the statement alone (make_stencil.cpp), kept in the workspace for statements of the same shape (copy_and_patch.cpp).
#pragma once
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "assembler/backend/backend.h"
#include "assembler/isa/make.h"
#include "assembler/machine/liveness.h"
#include "assembler/select/selection.h"

namespace rndn::assembler {

// What a statement gives its stencil: registers and literals. The guard comes first, elements of vectors are operands of their own.
inline constexpr uint32_t most_operands = 16;

// A PTX statement by operands, as stencils see it.
struct Shape {
  enum Kind : uint8_t {
    none,
    sink,
    reg,
    literal,       // any
    exact,         // this one
    address,       // register + any offset
    offset_exact,  // register + this offset
    special,
    parameter,  // an address in the constant bank
    symbol,     // of a variable, whose address the loader knows
    local,      // a place in the stack frame
    constant,   // a place in the bank of .const variables
  };
  struct Operand {
    Kind kind = none;
    ptx::Type type = ptx::Type::none;  // of the register
    bool negated = false;
    bool near = false;  // literal: an address within reach of a field for offsets
    uint8_t same = 0;   // the first operand that is the same register
    // Register; literal: low word. Literal: high word; address: offset. Special register. Variable. Place.
    uint32_t low = 0, high = 0;
    bool is_register() const { return kind == reg || kind == address || kind == offset_exact; }
  };
  const ptx::Instruction* inst = nullptr;
  bool convergent = true, one_address = false;
  uint32_t count = 0, destinations = 0;  // destinations: operands 1 .. of them
  std::array<Operand, most_operands> operands;
};

struct Stencil {
  // Numbers that the statement fills in. Of operand k: its register or low word in 2k + first_operand, its high word or offset behind it.
  enum Slot : uint8_t { scratch, scratch_predicate, barrier, literal_pool, first_operand };
  static constexpr uint8_t no_operand = UINT8_MAX;
  static constexpr uint32_t slot_count = first_operand + 2 * most_operands;
  // half word ^= (((slot ^ flip) + add) & mask) << shift; flip: all ones and add one more for the negative
  struct Patch {
    uint32_t mask, flip, add;
    uint16_t half;  // of the stencil's words, two halves each
    uint8_t slot, shift;
  };
  struct Note {
    enum What : uint8_t { exit, block_index, cooperative, symbol_low, symbol_high } what;
    uint16_t at;  // instruction
  };
  // A scoreboard that is under way at the end: of what is written to operands, or read from them.
  struct Pending {
    uint8_t operand;  // no_operand: scratch registers
    uint8_t scoreboard;
    bool reads;
  };
  // Most stencils are one word whose holes take numbers as they are, four of them in the lower half, one in the upper: half ^= slot * factor.
  struct Plain {
    isa::Word word;
    std::array<uint64_t, 5> factors{};  // powers of two; 0: no hole
    std::array<uint8_t, 5> slots{};
  };
  Plain plain;
  bool is_plain = false;
  // All others.
  const isa::Word* words = nullptr;
  const Patch* patches = nullptr;
  uint16_t size = 0, patch_count = 0;  // of words, patches
  uint8_t operands = 0;
  uint8_t scratch_mask = 0;                       // all ones: it has scratch registers
  bool unusual = false;                           // has literals, or regions inside, or ends_slowly
  bool leaves_behind = false;                     // something under way, or notes, or restarts
  uint32_t registers = 0, writes = 0, reads = 0;  // sets of operands
  uint32_t cycles = 0;                            // at least, from its first instruction to what follows
  mutable uint32_t pooled_in = 0, pooled_at = 0;  // number of the last function that has its literals, and where
  mutable uint32_t met_in = 0;                    // number of the last function that has it (StencilCache::functions)
  bool ends_slowly = false;                       // Pascal: begins with what must come late (emit.cpp)
  bool restarts = false;                          // .. and what may be such again counts from its end
  uint8_t scratch_units = 0, scratch_predicates = 0;
  uint8_t waits_behind = 0;  // scoreboards that whatever follows waits for
  uint8_t barriers = 0;      // named barriers
  uint8_t depth = 0;         // regions open at once inside
  bool descriptor = false;   // memory by the descriptor
  bool crs = false;          // BSSY
  bool block_z = false;      // reads %ctaid.z
  bool meets = false;        // waits for other lanes of the warp
  std::span<const Pending> pending;
  std::span<const Note> notes;
  std::span<const std::byte> literals;  // of bank 2
};

// Stencils by the shapes of statements; for one target, one PTX version and one thread.
class StencilCache {
 public:
  struct Key {
    uint64_t hash = 0;
    uint32_t size = 0;
    std::array<uint64_t, 3 + 2 * most_operands> words;
  };
  // What is known of a shape; `made` null: no stencil can be made of it; `exact`: only with its literals as they are.
  struct Entry {
    const Stencil* made = nullptr;
    bool exact = false;
  };
  void start(const ptx::Module& module, const isa::Target& target);
  bool find(const Key& key, Entry& entry) const {
    for (size_t at = key.hash & mask_;; at = (at + 1) & mask_) {
      const Slot x = slots_[at];
      if (x.record == 0) return false;
      if (x.tag != tag(key.hash)) continue;
      const uint64_t* const record = records_.data() + x.record;
      if (static_cast<uint32_t>(record[0]) != key.size) continue;
      bool same = true;
      for (uint32_t k = 0; k < key.size && same; ++k) same = record[2 + k] == key.words[k];
      if (!same) continue;
      std::memcpy(&entry.made, record + 1, sizeof entry.made);
      entry.exact = record[0] >> 32;
      return true;
    }
  }
  void add(const Key& key, Entry entry);
  Arena& arena() { return arena_; }  // of what stencils are made of

  // A word that is not 0 to a predicate; a predicate to 1 or 0. Null: not made yet.
  const Stencil *bring = nullptr, *keep = nullptr;

  // Control flow, as instructions that say nothing of places yet.
  enum class Branch : uint8_t { go, clear, open, join, exit, nothing, count };
  std::array<std::optional<isa::Instruction>, static_cast<size_t>(Branch::count)> branches;

  uint32_t functions = 0;  // made, or tried
  // Memory of the last function.
  RawVector<isa::Word> words;

 private:
  struct Slot {
    uint32_t tag = 0, record = 0;  // index of the record; 0: none
  };
  static uint32_t tag(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }
  Arena arena_;
  std::vector<Slot> slots_;  // open addressing, a power of two; empty until start()
  size_t mask_ = 0, count_ = 0;
  // Records: the key's size, and whether `exact`, in its high half; the stencil; the words of the key; its hash.
  std::vector<uint64_t> records_;
  const isa::Target* target_ = nullptr;
  std::array<uint32_t, 3> head_{};  // of the module: version, target, size of addresses
};

// The stencil of the shape, in the cache's arena; null: the statement is none that a stencil can be made of, `exact` set: not with open literals.
const Stencil* make_stencil(const ptx::Module& module, const ptx::Function& function, const Shape& shape,
                            const Options& options, isa::FormCache& forms, Arena& scratch, SelectionRoom& room,
                            StencilCache& cache, bool& exact);

// The function as a kernel made of stencils; false: it is none that can be, and `kernel` as it was.
Result<bool> copy_and_patch(const ptx::Module& module, const ptx::Function& function, const Flow& flow,
                            const Options& options, isa::FormCache& forms, Arena& arena, SelectionRoom& room,
                            StencilCache& cache, cubin::Kernel& kernel, KernelReport& report);

}  // namespace rndn::assembler
