// Which memory operations keep their order, for the passes that move instructions within a block: loads pass loads, nothing passes a store to its space
// but what has another place in it and loads of what nothing writes (PTX ISA, ld.global.nc: read-only for the lifetime of the kernel), and nothing that
// touches memory or other lanes passes a fence.
#pragma once
#include <algorithm>
#include <bit>

#include "assembler/machine/ir.h"

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
      case Memory::global_load:
        if (x.read_only) break;
        (x.pinned ? u.stores : u.loads) = global, u.loads |= generic;
        break;
      case Memory::global_store: u.stores = global | generic; break;
      case Memory::shared_load: (x.pinned ? u.stores : u.loads) = shared; break;
      case Memory::shared_store: u.stores = shared; break;
      case Memory::copy: u.loads = global, u.stores = shared; break;
      case Memory::local_load: u.loads = local; break;
      case Memory::local_store: u.stores = local; break;
      case Memory::none:
      case Memory::constant_load:
      case Memory::fence: break;
    }
    return u;
  }
};

// The bytes that an operation touches, as far as two operations can be told apart by them: from `first` up to `last` behind what a base register holds.
// Threads are asked for nothing but the order of their own accesses: those of other lanes, at other bases, are ordered by fences and barriers alone.
struct MemoryPlace {
  static constexpr uint32_t unknown = UINT32_MAX;
  uint32_t base = unknown;  // register of the address, RZ for none
  uint64_t version = 0;     // of what it holds, for the caller to say
  int64_t first = 0, last = 0;
  bool apart(const MemoryPlace& x) const {
    return base == x.base && version == x.version && base != unknown && (last < x.first || x.last < first);
  }

  // Without the version. Unknown: what keeps its place among all others (volatile and stronger), atomics, generic addresses, those that add a uniform register.
  static MemoryPlace of(const Facts& x, const Inst& inst) {
    MemoryPlace p;
    using M = Memory;
    const bool access = x.memory == M::global_load || x.memory == M::global_store || x.memory == M::shared_load ||
                        x.memory == M::shared_store || x.memory == M::local_load || x.memory == M::local_store;
    if (!access || inst.pinned || x.generic || x.latency == isa::LatencyClass::global_atomic ||
        x.latency == isa::LatencyClass::shared_atomic)
      return p;
    const uint8_t addresses = isa::row_facts(inst.sass.form).addresses;
    if (std::popcount(addresses) != 1) return p;
    const uint32_t k = static_cast<uint32_t>(std::countr_zero(addresses));
    const isa::Operand& o = inst.sass.operands[k];
    if (o.kind != isa::OperandKind::address || (o.uniform != isa::URZ && !o.descriptor)) return p;
    uint32_t words = 0;  // of the data; none: a zero, of any width
    for (Range r : x.all())
      if (r.file() == Range::gpr && r.operand() != k && !r.guard()) words = std::max(words, r.width());
    p.base = o.reg;
    p.first = o.value, p.last = o.value + 4 * (words ? words : 4) - 1;
    return p;
  }
};

}  // namespace rndn::assembler
