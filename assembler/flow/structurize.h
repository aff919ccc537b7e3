// Control flow of one PTX function, recovered: blocks, structured divergent regions, uniform values.
#pragma once
#include <algorithm>
#include <span>

#include "assembler/flow/dominators.h"
#include "libraries/base/errors/result.h"
#include "ptx/ir.h"

namespace rndn::assembler {

// A PTX instruction and the guard under which it runs (its own, or one it got from an inlined branch).
struct FlowItem {
  uint32_t inst = 0;  // index in ptx::Function::instructions
  ptx::RegisterId guard = none<ptx::RegisterId>();
  bool negated = false;
  bool one_address = false;  // an atomic, at the same address for all lanes that run it together
  bool one_read = false;     // .. as far as what they have read of shared memory was read at once
};

// The items of a block, in an arena. Those of neighbouring blocks lie behind each other, so that most blocks are joined without being copied.
class FlowItems {
 public:
  FlowItems() = default;
  FlowItems(FlowItem* items, size_t n) : items_(items), size_(n), capacity_(n) {}
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  FlowItem* begin() const { return items_; }
  FlowItem* end() const { return items_ + size_; }
  // Takes the others in; they are nobody else's from then on.
  void append(Arena& arena, const FlowItems& others);
  void append(Arena& arena, FlowItem item) {
    make_room(arena, 1);
    items_[size_++] = item;
  }

 private:
  void make_room(Arena& arena, size_t n);
  FlowItem* items_ = nullptr;
  size_t size_ = 0, capacity_ = 0;
};

// What a block has that waits for other lanes.
struct Waits {
  bool barrier = false;    // a barrier of the block,
  bool unaligned = false;  // even one that the lanes of a warp may come to apart
  bool warp = false;       // an operation of the warp
  explicit operator bool() const { return barrier || warp; }
  void operator|=(const Waits& o) { barrier |= o.barrier, unaligned |= o.unaligned, warp |= o.warp; }
};

struct FlowBlock {
  FlowItems items;                                      // without the branch that ends the block
  ptx::RegisterId predicate = none<ptx::RegisterId>();  // none: the branch always goes to `next`
  bool negated = false;
  bool uniform_branch = false;
  Waits waits;
  BlockId taken = none<BlockId>(), next = none<BlockId>();  // both none: ends the thread
  uint32_t line = 0, end_line = 0;  // of the first instruction and of the branch or exit at the end
  std::span<RegionId> opens;        // outermost first; in the arena
  RegionId joins = none<RegionId>();
  RegionId innermost = none<RegionId>();
  bool convergent = true;  // every live lane of the warp runs it together
  bool split = false;      // lanes that come to it in the same round may come one after another
  uint32_t loop_depth = 0;
};

// In the arena.
class FlowBlocks {
 public:
  size_t size() const { return blocks_.size(); }
  FlowBlock& operator[](BlockId b) const { return blocks_[index(b)]; }
  void reserve(Arena& arena, size_t n) {
    if (n <= capacity_) return;
    const std::span<FlowBlock> larger = arena.make_raw<FlowBlock>(capacity_ = n);
    std::copy(blocks_.begin(), blocks_.end(), larger.begin());
    blocks_ = larger.first(blocks_.size());
  }
  // Moves the others when there is no room.
  BlockId add(Arena& arena) {
    if (blocks_.size() == capacity_) reserve(arena, 2 * capacity_ + 16);
    blocks_ = {blocks_.data(), blocks_.size() + 1};
    blocks_.back() = {};
    return static_cast<BlockId>(blocks_.size() - 1);
  }

 private:
  std::span<FlowBlock> blocks_;
  size_t capacity_ = 0;
};

struct Flow {
  FlowBlocks blocks;
  std::span<BlockId>
      layout;  // reachable blocks, entry first, otherwise as they are numbered until regions are made; in the arena
  IdVector<RegionId, Region> regions;
  uint64_t searched = 0;  // blocks and regions that searches for regions have found, all together: what they cost
  bool calls = false;     // functions of the driver
  bool loops = false;
  bool alone = false;  // one statement without the code around it: nothing is known of its registers (make_stencil.cpp)
  DominatorTree dominators;  // of blocks with items; where there are loops
};

// The items lie in the arena. optimise: without dead code; branch_inlining: small arms under guards.
Result<Flow> structure(const ptx::Module& module, const ptx::Function& function, const isa::Target& target,
                       bool optimise, bool branch_inlining, Arena& arena);

}  // namespace rndn::assembler
