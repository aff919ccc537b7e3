// Races in shared memory (Options::check_races): two accesses of one block to a byte, by different threads, at least one of them a store, not both
// atomic, that no barrier orders. See races.cpp.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "assembler/simulator/warp.h"

namespace rndn::sim {

// Of one block.
class Races {
 public:
  // relaxed: a load that belongs to a loop of compare-and-swap, which expects that others change what it reads.
  enum class Kind : uint8_t { read, relaxed, write, atomic };

  // The block begins.
  void start(const Block& block, uint32_t shared_bytes);

  // A warp begins a memory instruction.
  void step() { ++now_; }
  // Lane's access to `size` bytes at `offset` of shared memory, before it is made. value: what a store writes, else null. Reports what it races with.
  void access(Warp& w, const Op& op, uint32_t lane, uint32_t offset, uint32_t size, Kind kind, const std::byte* value);

  // Lanes of a warp wait for one another.
  void synchronise(const Warp& w, uint32_t mask);
  // Lanes arrive at a barrier of the block; lanes that waited there go on.
  void arrive(const Warp& w, uint32_t mask, uint32_t barrier);
  void leave(const Warp& w, uint32_t mask, uint32_t barrier);
  void open(uint32_t barrier) { arrived_[barrier].reset(); }  // all have left

 private:
  struct Clocks {
    std::vector<uint32_t> of;  // per thread: its accesses before that time are ordered before
    uint32_t all = 0;          // the least of them
  };
  // Lanes of a warp that made an access by one instruction, since the warp's last barrier; stamp: of the last.
  struct Entry {
    uint32_t stamp, mask, pc;
    uint16_t warp;
    Kind kind;
  };
  struct Cell {
    uint32_t stamp = 0, pc = 0;  // of the last store; 0: none
    uint16_t thread = 0;
    uint16_t kinds = 0;         // a bit for each kind that others may have
    uint32_t latest = 0;        // which of others changed last
    std::vector<Entry> others;  // loads and atomic operations since then
  };
  struct Place {
    bool used = false;  // by this block
    Cell whole;
    std::unique_ptr<std::array<Cell, 4>> bytes;  // once a part of the word was accessed
  };

  void visit(Cell& cell, Warp& w, const Op& op, uint32_t lane, uint32_t offset, uint32_t size, Kind kind,
             const std::byte* value);
  bool is_before(uint32_t thread, uint32_t stamp, uint32_t reader) const;
  void merge(std::shared_ptr<const Clocks>& into, const Warp& w, uint32_t mask);
  void complain(Warp& w, const Op& op, uint32_t lane, uint32_t offset, Kind kind, uint32_t other, uint32_t other_pc,
                Kind other_kind);

  const Block* block_ = nullptr;
  bool lockstep_ = false;                             // Pascal
  uint32_t now_ = 1;                                  // memory instructions so far
  std::vector<std::shared_ptr<const Clocks>> known_;  // per thread; never null
  std::vector<uint32_t> since_;                       // per warp: when one of its lanes last arrived or synchronised
  std::array<std::shared_ptr<const Clocks>, 16> arrived_;
  std::vector<Place> places_;   // per word
  std::vector<uint32_t> used_;  // places that are
};

// With Block::races: an access at `p`, which may lie outside of shared memory.
inline void note_access(Warp& w, const Op& op, uint32_t lane, const std::byte* p, uint32_t size, Races::Kind kind,
                        const std::byte* value) {
  const std::byte* shared = w.block->shared_memory();
  if (p >= shared && p < shared + w.block->shared_bytes)
    w.block->races->access(w, op, lane, static_cast<uint32_t>(p - shared), size, kind, value);
}

// Which instructions are `relaxed` loads.
std::vector<bool> relaxed_loads(const Program& program);

}  // namespace rndn::sim
