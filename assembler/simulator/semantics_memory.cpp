// Loads and stores of every space, constants with an index, cache operations and fences.
//
// A warp access first tries the usual case: all lanes active and neighbouring addresses, one bounds check and one copy. Otherwise each
// lane goes alone, in ascending order (so that of several stores to one place the highest lane wins).
// Accesses of 4 and 8 bytes are single loads and stores of the host: other threads see them whole.
#include <algorithm>
#include <array>
#include <atomic>
#include <vector>

#include "assembler/simulator/lanes.h"
#include "assembler/simulator/races.h"
#include "assembler/simulator/select.h"

namespace rndn::sim {

using isa::Mnemonic;
using isa::ModifierKind;

enum class Space : uint32_t { global, generic, shared, local };

namespace {

const char* space_name(Space s) {
  constexpr const char* names[] = {"global", "generic", "shared", "local"};
  return names[static_cast<uint32_t>(s)];
}

template <class T>
T load(const std::byte* p) {
  return __atomic_load_n(reinterpret_cast<const T*>(p), __ATOMIC_RELAXED);
}
template <class T>
void store(std::byte* p, T v) {
  __atomic_store_n(reinterpret_cast<T*>(p), v, __ATOMIC_RELAXED);
}

uint64_t lane_address(const Warp& w, const Op& op, uint32_t l, bool wide) {
  const uint64_t base = wide ? pair(row(w, op.a)[l], row(w, op.b)[l]) : static_cast<uint64_t>(row(w, op.a)[l]) << op.z;
  const uint32_t* uniform = row(w, op.c);
  const uint64_t added = wide && op.c.offset != zero_row ? pair(uniform[l], uniform[l + lanes]) : uniform[l];
  const uint64_t address = base + added + static_cast<uint64_t>(op.offset);
  return wide ? address : address & 0xffffffff;
}

// check_uninitialised: reports a read of bytes that nobody wrote (once per instruction), and notes what is written now. `address` is within
// the space; global ones are device addresses.
void touch_bytes(Warp& w, const Op& op, uint32_t l, Space space, uint64_t address, uint32_t size, Touch touch) {
  uint16_t* unit = nullptr;
  uint64_t at = address;
  switch (space) {
    case Space::shared: unit = w.block->shared_written.data() + address / 16; break;
    case Space::local:
      at = static_cast<uint64_t>(l) * w.launch->local_bytes + address;
      unit = w.local_written.data() + at / 16;
      break;
    default: unit = w.launch->memory->written_bits(address);
  }
  if (!unit) return;
  const auto bits = static_cast<uint16_t>(((1u << size) - 1) << (at & 15));
  const uint16_t missing = bits & static_cast<uint16_t>(~__atomic_load_n(unit, __ATOMIC_RELAXED));
  if (!missing) return;
  __atomic_fetch_or(unit, bits, __ATOMIC_RELAXED);  // reported once
  if (touch == Touch::write) return;
  const char* name = space == Space::generic ? "global" : space_name(space);
  const std::string start = fmt::format("reads {} memory that was never written", name);
  {
    Launch& launch = *w.launch;
    const uint64_t place = launch.program->addresses[w.pc - 1];
    const std::lock_guard lock(launch.mutex);
    for (const Report& r : launch.reports)
      if (r.address == place && r.message.starts_with(start)) return;
  }
  const uint32_t first = static_cast<uint32_t>(std::countr_zero(missing)) - static_cast<uint32_t>(at & 15);
  report(w, op, l, fmt::format("{}: byte {} of {} at {:#x}", start, first, size, address));
}

}  // namespace

// Moves shared and local accesses, and generic ones, to the block's memory.
std::byte* locate(Warp& w, const Op& op, uint32_t l, uint64_t address, uint32_t size, uint32_t space_code, Touch touch,
                  const char* what) {
  Space space = static_cast<Space>(space_code);
  const bool checked = w.launch->options.check_memory;
  if (address & (size - 1)) {
    fail(w, op, l, fmt::format("misaligned {} {} of {} bytes at {:#x}", space_name(space), what, size, address));
    return nullptr;
  }
  if (space == Space::generic) {
    if (address - shared_window < window_bytes) {
      space = Space::shared;
      address -= shared_window;
    } else if (address - local_window < window_bytes) {
      space = Space::local;
      address -= local_window;
    } else if (address - constant_window < 2 * window_bytes) {
      const uint32_t bank = address >= parameter_window ? 0 : 3;
      const uint64_t at = address - (bank ? constant_window : parameter_window);
      if (touch == Touch::read && at + size <= w.launch->bank_bytes[bank]) return w.launch->banks[bank].data() + at;
      fail(w, op, l,
           fmt::format("out-of-bounds {} of {} bytes at {:#x}: constant bank {} has {} bytes and is only read", what,
                       size, at, bank, w.launch->bank_bytes[bank]));
      return nullptr;
    }
  }
  const auto reached = [&](std::byte* p) {
    if (w.launch->options.check_uninitialised) [[unlikely]]
      touch_bytes(w, op, l, space, address, size, touch);
    return p;
  };
  switch (space) {
    case Space::shared: {
      // sm_90: bits 24 and up of a shared address are the block's rank in its cluster, 0 here.
      if (address + size <= w.block->shared_bytes) return reached(w.block->shared_memory() + address);
      fail(w, op, l,
           fmt::format("out-of-bounds shared {} of {} bytes at {:#x}: the block has {} bytes", what, size, address,
                       w.block->shared_bytes));
      return nullptr;
    }
    case Space::local:
      if (address + size <= w.launch->local_bytes)
        return reached(w.local.data() + static_cast<uint64_t>(l) * w.launch->local_bytes + address);
      fail(w, op, l,
           fmt::format("out-of-bounds local {} of {} bytes at {:#x}: a thread has {} bytes", what, size, address,
                       w.launch->local_bytes));
      return nullptr;
    default: {
      std::byte* p = w.launch->memory->translate(address, size, checked);
      if (!p)
        fail(w, op, l,
             fmt::format("out-of-bounds {} {} of {} bytes at {:#x}: {}", space_name(space), what, size, address,
                         w.launch->memory->describe(address)));
      if (p && touch == Touch::update && w.launch->weak) w.launch->weak->settle(w.block, p, size);
      return p ? reached(p) : nullptr;
    }
  }
}

namespace {

// Counts distinct 32-byte sectors.
uint32_t sectors(const uint64_t* addresses, uint32_t mask, uint32_t size) {
  uint64_t seen[lanes];
  uint32_t count = 0;
  uint64_t last = ~uint64_t{0};
  for_lanes(mask, [&](uint32_t l) {
    const uint64_t sector = addresses[l] >> 5;  // size <= 16, aligned: one sector
    if (sector == last) return;
    last = sector;
    for (uint32_t i = 0; i < count; ++i)
      if (seen[i] == sector) return;
    seen[count++] = sector;
  });
  (void)size;
  return count;
}

// at: where one of the loads is; a warp reads one array.
void count_sectors(Warp& w, Space space, bool is_store, uint32_t sector_count, uint32_t bytes, uint64_t at) {
  Counters& c = w.tally->counters;
  if (space == Space::shared) {
    ++c.shared_accesses;
  } else if (space != Space::local) {
    (is_store ? c.global_store_sectors : c.global_load_sectors) += sector_count;
    if (!is_store && at >= mapped_base) c.mapped_load_sectors += sector_count;
    (is_store ? c.global_store_bytes : c.global_load_bytes) += bytes;
  }
}

// Shared memory has 32 banks of 4 bytes. An access of 8 (16) bytes per lane is made for halves (quarters) of the warp, one after the other; each takes as
// many turns as there are different words in the bank that is wanted most. What is beyond one turn each is a conflict.
uint32_t bank_conflicts(const uint64_t* addresses, uint32_t mask, uint32_t size) {
  const uint32_t words = std::max(1u, size / 4), lanes_at_once = lanes / words;
  uint32_t conflicts = 0;
  for (uint32_t first = 0; first < lanes; first += lanes_at_once) {
    std::array<std::vector<uint64_t>, 32> wanted;
    size_t turns = 1;
    for (uint32_t l = first; l < first + lanes_at_once; ++l) {
      if (!(mask >> l & 1)) continue;
      for (uint32_t k = 0; k < words; ++k) {
        const uint64_t word = addresses[l] / 4 + k;
        std::vector<uint64_t>& of_bank = wanted[word % 32];
        if (std::find(of_bank.begin(), of_bank.end(), word) == of_bank.end()) of_bank.push_back(word);
        turns = std::max(turns, of_bank.size());
      }
    }
    conflicts += static_cast<uint32_t>(turns - 1);
  }
  return conflicts;
}

// All lanes active, addresses rising by `size`: the host address of lane 0, when the whole range is accessible. Else null.
template <Space space, uint32_t size>
std::byte* contiguous(Warp& w, const Op& op, uint32_t mask, bool wide, uint64_t& first) {
  if (mask != all_lanes || w.launch->lane_by_lane) return nullptr;
  const uint32_t *low = row(w, op.a), *high = row(w, op.b);
  uint32_t differs = 0;
  if (space == Space::global || space == Space::generic) {
    if (!wide) return nullptr;
    for (uint32_t l = 0; l < lanes; ++l) differs |= (low[l] - low[0] - l * size) | (high[l] ^ high[0]);
    if (differs || low[0] > low[31]) return nullptr;
  } else {
    for (uint32_t l = 0; l < lanes; ++l) differs |= (low[l] - low[0]) * (1u << op.z) - l * size;
    if (differs) return nullptr;
  }
  first = lane_address(w, op, 0, wide);
  if (first & (size - 1)) return nullptr;
  if (space == Space::shared)
    return first + lanes * size <= w.block->shared_bytes ? w.block->shared_memory() + first : nullptr;
  if (space == Space::local) return nullptr;
  if (space == Space::generic && first - shared_window < 2 * window_bytes) return nullptr;
  const bool checked = w.launch->options.check_memory;
  // Granules between the first and last byte: at most three, each of one allocation; guard gaps part allocations.
  std::byte* p = w.launch->memory->translate(first, size, checked);
  if (!p) return nullptr;
  for (uint64_t at = (first | 255) + 1; at < first + lanes * size; at += 256)
    if (!w.launch->memory->translate(at, size, checked)) return nullptr;
  return w.launch->memory->translate(first + (lanes - 1) * size, size, checked) ? p : nullptr;
}

// Whether weak memory has a say: not over shared and local memory.
template <Space space>
bool is_weak(const Warp& w, uint64_t address) {
  return (space == Space::global || (space == Space::generic && address - shared_window >= 4 * window_bytes)) &&
         w.launch->weak;
}

template <Space space>
bool may_race(const Warp& w) {
  return (space == Space::shared || space == Space::generic) && w.block->races;
}

// Fetches what the next execution of this load will read if it walks in even steps. Warps of a persistent grid stride over their tiles, which the
// host's own prefetchers do not follow: without this nearly half of the time of a streaming kernel was spent waiting for the host's memory.
template <uint32_t bytes>
void fetch_ahead(Warp& w, const Op& op, const std::byte* p) {
  Warp::Stream& stream = w.streams[reinterpret_cast<uintptr_t>(&op) / sizeof(Op) % std::size(w.streams)];
  const auto at = reinterpret_cast<uintptr_t>(p);
  if (stream.op == &op)
    for (uint32_t k = 0; k < bytes; k += 64)
      __builtin_prefetch(reinterpret_cast<const void*>(2 * at - stream.last + k));
  stream = {&op, at};
}

// x: 1 = 64-bit addresses; size: bytes; y: sign extension; target: L1 may have it.
template <Space space, uint32_t size, bool is_signed>
Status load_op(Warp& w, const Op& op, uint32_t mask) {
  const bool wide = op.x;
  if (!descriptor_holds(w, op)) return bad_descriptor(w, op, mask);
  uint32_t* d = row(w, op.d);
  uint64_t first;
  if (const std::byte* p = contiguous<space, size>(w, op, mask, wide, first)) {
    count_sectors(w, space, false, static_cast<uint32_t>(((first + lanes * size - 1) >> 5) - (first >> 5) + 1), lanes * size, first);
    if constexpr (space == Space::global) fetch_ahead<lanes * size>(w, op, p);
    if constexpr (size == 4) {
      std::memcpy(d, p, lanes * 4);
    } else if constexpr (size > 4) {
      for (uint32_t l = 0; l < lanes; ++l)
        for (uint32_t i = 0; i < size / 8; ++i) {
          const uint64_t v = load<uint64_t>(p + l * size + 8 * i);
          d[l + 2 * i * lanes] = static_cast<uint32_t>(v);
          d[l + (2 * i + 1) * lanes] = static_cast<uint32_t>(v >> 32);
        }
    } else {
      for (uint32_t l = 0; l < lanes; ++l) {
        if constexpr (size == 1)
          d[l] = is_signed ? static_cast<uint32_t>(static_cast<int32_t>(static_cast<int8_t>(p[l])))
                           : static_cast<uint32_t>(p[l]);
        else
          d[l] = is_signed ? static_cast<uint32_t>(static_cast<int32_t>(load<int16_t>(p + 2 * l)))
                           : load<uint16_t>(p + 2 * l);
      }
    }
    return Status::go;
  }
  uint64_t addresses[lanes], some = 0;
  for_lanes(mask, [&](uint32_t l) { addresses[l] = some = lane_address(w, op, l, wide); });
  if (may_race<space>(w)) w.block->races->step();
  for (uint32_t bits = mask; bits; bits &= bits - 1) {
    const uint32_t l = std::countr_zero(bits);
    const std::byte* p = locate(w, op, l, addresses[l], size, static_cast<uint32_t>(space), Touch::read, "load");
    if (!p) return Status::fault;
    if (may_race<space>(w)) [[unlikely]]
      note_access(w, op, l, p, size, w.launch->relaxed[w.pc - 1] ? Races::Kind::relaxed : Races::Kind::read, nullptr);
    alignas(16) std::byte seen[16];
    if (is_weak<space>(w, addresses[l])) [[unlikely]] {
      w.launch->weak->load(w.block, p, seen, size, op.target != 0);
      p = seen;
    }
    if constexpr (size == 1) {
      d[l] = is_signed ? static_cast<uint32_t>(load<int8_t>(p)) : load<uint8_t>(p);
    } else if constexpr (size == 2) {
      d[l] = is_signed ? static_cast<uint32_t>(load<int16_t>(p)) : load<uint16_t>(p);
    } else if constexpr (size == 4) {
      d[l] = load<uint32_t>(p);
    } else {
      for (uint32_t i = 0; i < size / 8; ++i) {
        const uint64_t v = load<uint64_t>(p + 8 * i);
        d[l + 2 * i * lanes] = static_cast<uint32_t>(v);
        d[l + (2 * i + 1) * lanes] = static_cast<uint32_t>(v >> 32);
      }
    }
  }
  count_sectors(w, space, false, space == Space::global || space == Space::generic ? sectors(addresses, mask, size) : 0,
        static_cast<uint32_t>(std::popcount(mask)) * size, some);
  if (space == Space::shared && w.launch->options.count_classes) [[unlikely]]
    w.tally->counters.shared_bank_conflicts += bank_conflicts(addresses, mask, size);
  return Status::go;
}

template <Space space, uint32_t size>
Status store_op(Warp& w, const Op& op, uint32_t mask) {
  const bool wide = op.x;
  if (!descriptor_holds(w, op)) return bad_descriptor(w, op, mask);
  const uint32_t* s = w.rows[op.y & 1] + op.d2;
  uint64_t first;
  if (std::byte* p = contiguous<space, size>(w, op, mask, wide, first)) {
    count_sectors(w, space, true, static_cast<uint32_t>(((first + lanes * size - 1) >> 5) - (first >> 5) + 1), lanes * size, first);
    for (uint32_t l = 0; l < lanes; ++l) {
      if constexpr (size == 1) store<uint8_t>(p + l, static_cast<uint8_t>(s[l]));
      if constexpr (size == 2) store<uint16_t>(p + 2 * l, static_cast<uint16_t>(s[l]));
      if constexpr (size == 4) store<uint32_t>(p + 4 * l, s[l]);
      if constexpr (size > 4)
        for (uint32_t i = 0; i < size / 8; ++i)
          store<uint64_t>(p + l * size + 8 * i, pair(s[l + 2 * i * lanes], s[l + (2 * i + 1) * lanes]));
    }
    return Status::go;
  }
  uint64_t addresses[lanes];
  for_lanes(mask, [&](uint32_t l) { addresses[l] = lane_address(w, op, l, wide); });
  if (may_race<space>(w)) w.block->races->step();
  for (uint32_t bits = mask; bits; bits &= bits - 1) {
    const uint32_t l = std::countr_zero(bits);
    std::byte* p = locate(w, op, l, addresses[l], size, static_cast<uint32_t>(space), Touch::write, "store");
    if (!p) return Status::fault;
    alignas(16) std::byte value[16];
    std::byte* const at = p;
    const bool weak = is_weak<space>(w, addresses[l]), racing = may_race<space>(w);
    if (weak || racing) p = value;
    if constexpr (size == 1) store<uint8_t>(p, static_cast<uint8_t>(s[l]));
    if constexpr (size == 2) store<uint16_t>(p, static_cast<uint16_t>(s[l]));
    if constexpr (size == 4) store<uint32_t>(p, s[l]);
    if constexpr (size > 4)
      for (uint32_t i = 0; i < size / 8; ++i)
        store<uint64_t>(p + 8 * i, pair(s[l + 2 * i * lanes], s[l + (2 * i + 1) * lanes]));
    if (racing) [[unlikely]]
      note_access(w, op, l, at, size, Races::Kind::write, value);
    if (weak)
      w.launch->weak->store(w.block, at, value, size);
    else if (racing)
      std::memcpy(at, value, size);
  }
  count_sectors(w, space, true, space == Space::global || space == Space::generic ? sectors(addresses, mask, size) : 0,
        static_cast<uint32_t>(std::popcount(mask)) * size, 0);
  if (space == Space::shared && w.launch->options.count_classes) [[unlikely]]
    w.tally->counters.shared_bank_conflicts += bank_conflicts(addresses, mask, size);
  return Status::go;
}

// LDSM and STSM: the 16-byte rows of x matrices of 8 x 8 halves, row r of matrix m at lane 8 m + r's address; lane l has halves 2 (l % 4) and one more of
// row l / 4, y: of column l / 4. All lanes take part (PTX ISA, ldmatrix).
template <bool loads>
Status matrices(Warp& w, const Op& op, uint32_t mask) {
  constexpr uint32_t row_bytes = 16;
  if (mask != all_lanes)
    return fail(w, op, std::countr_zero(mask), "matrices are moved by all lanes of a warp together");
  if (may_race<Space::shared>(w)) w.block->races->step();
  std::byte* rows[lanes];
  uint64_t addresses[lanes];
  const uint32_t used = op.x == 4 ? all_lanes : (1u << 8 * op.x) - 1;
  for (uint32_t l = 0; l < 8 * op.x; ++l) {
    addresses[l] = lane_address(w, op, l, false);
    rows[l] = locate(w, op, l, addresses[l], row_bytes, static_cast<uint32_t>(Space::shared),
                     loads ? Touch::read : Touch::write, loads ? "load" : "store");
    if (!rows[l]) return Status::fault;
    if (loads && may_race<Space::shared>(w)) [[unlikely]]
      note_access(w, op, l, rows[l], row_bytes, Races::Kind::read, nullptr);
  }
  const uint32_t* s = w.rows[op.size & 1] + op.d2;
  uint32_t* d = row(w, op.d);
  std::byte cells[lanes][row_bytes];
  if (loads)
    for (uint32_t l = 0; l < 8 * op.x; ++l) std::memcpy(cells[l], rows[l], row_bytes);
  for (uint32_t k = 0; k < op.x; ++k)
    for (uint32_t l = 0; l < lanes; ++l)
      for (uint32_t i = 0; i < 2; ++i) {
        const uint32_t along = 2 * (l % 4) + i, across = l / 4;
        std::byte* cell = &cells[8 * k + (op.y ? along : across)][2 * (op.y ? across : along)];
        uint16_t half;
        if (loads) {
          std::memcpy(&half, cell, 2);
          d[k * lanes + l] = i ? d[k * lanes + l] | static_cast<uint32_t>(half) << 16 : half;
        } else {
          half = static_cast<uint16_t>(s[k * lanes + l] >> 16 * i);
          std::memcpy(cell, &half, 2);
        }
      }
  if (!loads)
    for (uint32_t l = 0; l < 8 * op.x; ++l) {
      if (may_race<Space::shared>(w)) [[unlikely]]
        note_access(w, op, l, rows[l], row_bytes, Races::Kind::write, cells[l]);
      std::memcpy(rows[l], cells[l], row_bytes);
    }
  count_sectors(w, Space::shared, !loads, 0, 8 * op.x * row_bytes, 0);
  if (w.launch->options.count_classes) [[unlikely]]
    w.tally->counters.shared_bank_conflicts += bank_conflicts(addresses, used, row_bytes);
  return Status::go;
}

template <Space space>
Handler load_handler(uint32_t size) {
  constexpr Handler table[] = {load_op<space, 1, false>,  load_op<space, 1, true>,  load_op<space, 2, false>,
                               load_op<space, 2, true>,   load_op<space, 4, false>, load_op<space, 8, false>,
                               load_op<space, 16, false>, load_op<space, 16, false>};
  return table[size & 7];
}
template <Space space>
Handler store_handler(uint32_t size) {
  constexpr Handler table[] = {store_op<space, 1>, store_op<space, 1>, store_op<space, 2>,  store_op<space, 2>,
                               store_op<space, 4>, store_op<space, 8>, store_op<space, 16>, store_op<space, 16>};
  return table[size & 7];
}

// LDC with an index or a partial word. x: bank, y: Size, offset.
Status ldc(Warp& w, const Op& op, uint32_t mask) {
  const std::vector<std::byte>* bank = op.x < w.launch->banks.size() ? &w.launch->banks[op.x] : nullptr;
  const uint32_t limit = bank ? w.launch->bank_bytes[op.x] : 0;
  uint32_t* d = row(w, op.d);
  const uint32_t* index = row(w, op.a);
  for (uint32_t bits = mask; bits; bits &= bits - 1) {
    const uint32_t l = std::countr_zero(bits);
    const int64_t offset = static_cast<int64_t>(static_cast<int32_t>(index[l])) + op.offset;
    if (offset < 0 || offset + op.size > limit)
      return fail(w, op, l,
                  fmt::format("out-of-bounds constant load of {} bytes at c[{}][{:#x}]: the bank has {} bytes", op.size,
                              op.x, offset, limit));
    if (offset & (op.size - 1))
      return fail(w, op, l, fmt::format("misaligned constant load of {} bytes at c[{}][{:#x}]", op.size, op.x, offset));
    const std::byte* p = bank->data() + offset;
    uint32_t v[2] = {};
    std::memcpy(v, p, op.size);
    if (op.y == 1) v[0] = static_cast<uint32_t>(static_cast<int32_t>(static_cast<int8_t>(v[0])));
    if (op.y == 3) v[0] = static_cast<uint32_t>(static_cast<int32_t>(static_cast<int16_t>(v[0])));
    d[l] = v[0];
    if (op.size == 8) d[l + lanes] = v[1];
  }
  return Status::go;
}

// Asynchronous copy from global to shared memory. It reads at once, and the bytes arrive as late as can be: when the warp waits for the copy's group, or
// never. size: bytes; y: added to the shared address; target: the lowest bits of the global address tell how many of the last bytes are zero (.ZFILL);
// z: the bytes are there at once.
Status ldgsts(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t* shared = row(w, Source{op.d2});
  const uint32_t copying = mask & lane_mask(w, op.ps);
  if (w.block->races) w.block->races->step();
  for (uint32_t bits = mask; bits; bits &= bits - 1) {
    const uint32_t l = std::countr_zero(bits);
    std::byte* to = locate(w, op, l, (shared[l] + op.y) & 0xffffffff, op.size, static_cast<uint32_t>(Space::shared),
                           Touch::write, "asynchronous store");
    if (!to) return Status::fault;
    Copy copy{.to = to, .size = op.size, .group = w.groups_ended};
    if (copying >> l & 1) {
      uint64_t address = lane_address(w, op, l, op.x);
      const uint32_t left_out = op.target ? address & (op.size - 1u) : 0;
      address -= left_out;
      const uint32_t count = op.size - left_out, step = left_out ? 1 : op.size;  // what is left out need not be there
      for (uint32_t at = 0; at < count; at += step) {
        const std::byte* from = locate(w, op, l, address + at, step, static_cast<uint32_t>(Space::global), Touch::read,
                                       "asynchronous load");
        if (!from) return Status::fault;
        if (w.launch->weak) w.launch->weak->settle(w.block, from, step);
        std::memcpy(copy.bytes.data() + at, from, step);
      }
    }
    if (w.block->races) note_access(w, op, l, to, op.size, Races::Kind::write, copy.bytes.data());
    if (op.z)
      std::memcpy(copy.to, copy.bytes.data(), copy.size);
    else
      w.copies.push_back(copy);
  }
  return Status::go;
}
// x: the scoreboard that says when all copies so far are there; z: they are.
Status end_copies(Warp& w, const Op& op, uint32_t mask) {
  if (w.timing && op.x > 5 && !op.z) {  // nobody can wait for it
    ++w.tally->counters.hazards;
    report(w, op, std::countr_zero(mask), "hazard: ends a group of copies, which no scoreboard announces");
  }
  w.copy_groups.push_back({w.groups_ended++, op.x});
  return Status::go;
}
// Waits until at most y groups of scoreboard x are under way, and for all groups of the set z of scoreboards.
Status await_copies(Warp& w, const Op& op, uint32_t) {
  const auto concerns = [&](const Warp::CopyGroup& g) { return g.scoreboard == op.x || (op.z >> g.scoreboard & 1); };
  auto left = static_cast<uint32_t>(std::ranges::count_if(w.copy_groups, concerns));
  uint32_t complete = 0;  // groups from the first on
  for (const Warp::CopyGroup& g : w.copy_groups) {
    if (!concerns(g)) continue;
    if (left > op.y || (op.z >> g.scoreboard & 1)) complete = g.number + 1;
    --left;
  }
  std::erase_if(w.copy_groups, [&](const Warp::CopyGroup& g) { return g.number < complete; });
  std::erase_if(w.copies, [&](const Copy& c) {
    if (c.group < complete) std::memcpy(c.to, c.bytes.data(), c.size);
    return c.group < complete;
  });
  return Status::go;
}

// x: wider than the block.
Status fence(Warp& w, const Op& op, uint32_t) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (w.launch->weak && op.x) w.launch->weak->fence(w.block);
  return Status::go;
}
Status invalidate(Warp& w, const Op&, uint32_t) {
  if (w.launch->weak) w.launch->weak->invalidate(w.block);
  return Status::go;
}
Status nothing(Warp&, const Op&, uint32_t) { return Status::go; }

// Which window a generic address lies in; x: 0 global, 1 local, 2 shared. Shared memory of a block is also its cluster's, 3.
Status qspc(Warp& w, const Op& op, uint32_t mask) {
  uint32_t inside = 0;
  for_lanes(mask, [&](uint32_t l) {
    const uint64_t address = lane_address(w, op, l, true);
    const uint32_t space = address - shared_window < window_bytes ? 2 : address - local_window < window_bytes ? 1 : 0;
    inside |= (space == op.x ? 1u : 0u) << l;
  });
  commit_predicate(w, op.pd, inside, mask);
  return Status::go;
}

}  // namespace

// Weak, constant, or strong among the threads of a multiprocessor only.
bool is_of_multiprocessor(const Selector& s) {
  if (!s.volta() || !isa::has_modifier(s.in->form, ModifierKind::Order)) return false;
  const uint32_t order = s.modifier(ModifierKind::Order);
  return s.target.has(isa::Feature::orders_since_ampere) ? order < 6 : order < 10;
}

bool select_memory(Selector& s, Op& op) {
  using K = ModifierKind;
  const auto m = [&](K kind) -> uint32_t { return isa::has_modifier(s.in->form, kind) ? s.modifier(kind) : 0; };
  const auto with = [&](Handler run) {
    op.run = run;
    return true;
  };
  const Mnemonic mnemonic = s.in->mnemonic;
  // Shared and local addresses have 32 bits and maybe a scaled index; others 64 (a 32-bit register is zero-extended).
  const auto address = [&](uint32_t k, bool global) {
    s.address(op, k);
    op.x = global;
    const uint32_t scale = m(K::AddressScale);
    op.z = scale ? scale + 1 : 0;
  };
  // A load or store whose predicate operand is not simply true.
  const auto predicate_is_true = [&](uint32_t k) {
    if (k >= s.in->operand_count) return true;
    const PredicateSource p = s.predicate(k);
    return p.index == true_predicate && p.flip == 0;
  };
  const auto may_be_cached = [&] { op.target = s.volta() && is_of_multiprocessor(s); };
  const auto data = [&](uint32_t k) {
    const Source source = s.source(k, m(K::Size) >= 6 ? 4 : m(K::Size) == 5 ? 2 : 1);
    op.d2 = source.offset;
    op.y = source.pool;
  };
  switch (mnemonic) {
    case Mnemonic::LDG:
      op.d = s.destination(0);
      address(1, true);
      if (!predicate_is_true(2)) return s.unsupported("a load with a predicate operand");
      may_be_cached();
      return with(load_handler<Space::global>(m(K::Size)));
    case Mnemonic::LD:
      op.d = s.destination(0);
      address(1, true);
      may_be_cached();
      return with(load_handler<Space::generic>(m(K::Size)));
    case Mnemonic::LDS:
      op.d = s.destination(0);
      address(1, false);
      return with(load_handler<Space::shared>(m(K::Size)));
    case Mnemonic::LDSM:
    case Mnemonic::STSM: {
      const bool loads = mnemonic == Mnemonic::LDSM;
      address(loads ? 1 : 0, false);
      op.x = 1u << m(K::Matrices), op.y = m(K::Transposed);
      if (loads) {
        op.d = s.destination(0);
        return with(matrices<true>);
      }
      const Source source = s.source(1, op.x);
      op.d2 = source.offset, op.size = source.pool;
      return with(matrices<false>);
    }
    case Mnemonic::LDL:
      op.d = s.destination(0);
      address(1, false);
      return with(load_handler<Space::local>(m(K::Size)));
    case Mnemonic::STG:
      address(0, true);
      data(1);
      return with(store_handler<Space::global>(m(K::Size)));
    case Mnemonic::ST:
      address(0, true);
      data(1);
      return with(store_handler<Space::generic>(m(K::Size)));
    case Mnemonic::STS:
      address(0, false);
      data(1);
      return with(store_handler<Space::shared>(m(K::Size)));
    case Mnemonic::STL:
      address(0, false);
      data(1);
      return with(store_handler<Space::local>(m(K::Size)));
    case Mnemonic::LDC:
    case Mnemonic::ULDC: {
      const isa::Operand& o = s.operand(1);
      constexpr uint8_t sizes[] = {1, 1, 2, 2, 4, 8, 0, 0};
      op.d = s.destination(0);
      op.full = mnemonic == Mnemonic::ULDC ? all_lanes : 0;
      op.x = o.bank, op.y = m(K::Size), op.offset = o.value;
      op.size = sizes[op.y & 7];
      op.a = {o.uniform == isa::URZ ? s.register_row(o.reg) : s.uniform_row(o.uniform)};
      if (op.size == 0) return s.unsupported("a 128-bit constant load");
      if (m(K::IndexMode)) return s.unsupported("an index mode of LDC");
      return with(ldc);
    }
    case Mnemonic::LDGSTS: {
      const isa::Operand& shared = s.operand(0);
      address(1, true);
      op.d2 = s.register_row(shared.reg);
      op.y = static_cast<uint32_t>(shared.value);
      op.ps = s.predicate(2);
      op.size = static_cast<uint8_t>(m(K::Size) == 6 ? 16 : m(K::Size) == 5 ? 8 : 4);
      op.target = m(K::ZFill);
      op.z = stands_alone(s.in->control, s.target);
      return with(ldgsts);
    }
    case Mnemonic::MEMBAR: op.x = s.volta() ? m(K::Scope) >= 2 : m(K::Scope) >= 1; return with(fence);
    case Mnemonic::CCTL: return with(m(K::CacheOp) == (s.volta() ? 4u : 6u) ? invalidate : nothing);
    case Mnemonic::ERRBAR:
    case Mnemonic::CGAERRBAR:
    case Mnemonic::ACQBULK:  // one launch at a time
    case Mnemonic::PREEXIT: return with(nothing);
    case Mnemonic::LDGDEPBAR:
      op.x = s.in->control.write_barrier, op.z = stands_alone(s.in->control, s.target);
      return with(end_copies);
    case Mnemonic::DEPBAR:
      op.x = m(K::LessEqual) ? static_cast<uint32_t>(s.operand(0).value) : 7;
      op.y = static_cast<uint32_t>(s.operand(1).value), op.z = static_cast<uint32_t>(s.operand(2).value);
      return with(await_copies);
    case Mnemonic::QSPC:
      op.pd = s.predicate_destination(0);
      s.address(op, 2);
      if (s.operand(2).uniform == isa::URZ)  // a register pair, though .E may not say so
        op.b = {s.operand(2).reg == isa::RZ ? zero_row : s.register_row(s.operand(2).reg) + lanes};
      op.x = std::min<uint32_t>(m(K::AddressSpace), 2);
      return with(qspc);
    default: return false;
  }
}

}  // namespace rndn::sim
