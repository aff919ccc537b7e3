// Which memory operations keep their order, for the passes that move instructions within a block: loads pass loads, nothing passes a store to its space,
// and nothing that touches memory or other lanes passes a fence.
#pragma once
#include "assembler/ir.h"

namespace rndn::assembler {

// The spaces that an instruction reads and writes, as sets of bits. An operation that keeps its place among all others of a space (volatile,
// acquire) counts as a write. Of instructions with Facts::ordered; of others there is nothing to ask.
struct MemoryUse {
  enum Space : uint8_t { global = 1, shared = 2, local = 4 };
  static constexpr uint32_t spaces = 3;
  uint8_t loads = 0, stores = 0;
  bool fence = false;   // nothing that takes part passes it
  bool passes = false;  // takes no part: fences concern it as little as others

  static MemoryUse of(const Facts& x) {
    MemoryUse u;
    u.fence = x.memory == Memory::fence || (x.pinned && x.memory == Memory::none);
    u.passes = !u.fence && x.memory == Memory::none && !is_of_lanes(x.latency);
    const uint8_t generic = x.generic ? shared | local : 0;
    switch (x.memory) {
      case Memory::global_load: (x.pinned ? u.stores : u.loads) = global, u.loads |= generic; break;
      case Memory::global_store: u.stores = global | generic; break;
      case Memory::shared_load: (x.pinned ? u.stores : u.loads) = shared; break;
      case Memory::shared_store: u.stores = shared; break;
      case Memory::local_load: u.loads = local; break;
      case Memory::local_store: u.stores = local; break;
      case Memory::none:
      case Memory::constant_load:
      case Memory::fence: break;
    }
    return u;
  }
};

}  // namespace rndn::assembler
