// Weak memory (Options::weak_memory): what a GPU may do with accesses to global memory that no fence orders.
//
// A block's stores reach the others late and in any order, those to one place excepted: they wait in `pending`, where the block itself sees them.
// Its plain loads (Volta and later) may take a sector from its L1 as it was when it was first read. A fence of GPU scope sends a block's
// stores off, with those of its other warps that it may have seen at a barrier; CCTL.IVALL empties its L1. Atomics act on memory at once.
// What has the scope of a block (a multiprocessor) orders nothing for others: MEMBAR.CTA and .SM send nothing off, strong loads of that scope may come
// from L1, and an atomic operation of that scope acts on what the block sees, so that those of two blocks may overwrite each other.
// The system's scope is the GPU's, as nobody else looks on.
//
// One thread runs all blocks, in short slices; `drift` after each lets some stores through. Each block counts as a multiprocessor of its own.
// Left out: loads that are late themselves.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace rndn::sim {

struct Block;

class Weak {
 public:
  explicit Weak(uint64_t seed) : random_(seed * 2 + 1) {}
  void store(const Block* block, std::byte* at, const std::byte* value, uint32_t size);
  void load(const Block* block, const std::byte* at, std::byte* value, uint32_t size, bool cached);
  void settle(const Block* block, const std::byte* at,
              uint32_t size);  // before an atomic: the block's own stores there
  void fence(const Block* block);
  void invalidate(const Block* block) {
    std::erase_if(lines_, [&](const auto& l) { return l.first.first == block; });
  }
  void drift();
  void finish();                                // everything arrives
  uint32_t slice() { return 1 + next() % 48; }  // instructions until another warp runs

 private:
  struct Pending {
    const Block* block;
    std::byte* at;
    uint32_t size;
    std::array<std::byte, 16> value;
  };
  uint32_t next();
  void arrive(const Pending& p);

  std::vector<Pending> pending_;  // oldest first
  std::map<std::pair<const Block*, uintptr_t>, std::array<std::byte, 32>>
      lines_;  // sectors in L1, by block and host address
  uint64_t random_;
};

}  // namespace rndn::sim
