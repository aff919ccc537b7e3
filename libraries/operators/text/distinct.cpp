// distinct_strings: strings that are equal get one number, by a hash table (api.h).
//
// A string is hashed in 64 bits, a word of eight bytes at a time. The table is that of hash_groups.h: a
// slot is {tag, ~row}, both from the hash; strings of one tag are the same only when their bytes are,
// which the lengths tell first, so that no hash has to be good for the answer to be right. Numbers
// go to the distinct strings in order of the first row that has them.
//
// Cost: the strings once, a random slot per string twice, and the bytes of an equal string for all
// but the first of each. Pays beside a sort of all strings (rank.cpp) where most have another one
// that is equal, and order is not asked for. Leaves out: several lanes for one long string.
#include "libraries/operators/groups/hash_groups.h"
#include "libraries/operators/keys.h"
#include "libraries/operators/operators.h"
#include "libraries/operators/ready.h"
#include "libraries/operators/text/rows.h"

namespace rndn::operators {

namespace {

Reg<U64> hash_text(Builder& b, const Text& text) {
  constexpr uint64_t factor = 0x9E3779B97F4A7C15u;  // 2^64 divided by the golden ratio
  Reg<U64> key = b.mul_lo(b.cvt<U64>(b.add(text.length, 1u)), factor);
  Reg<U32> first = b.constant<U32>(0);
  const LabelId next = b.label(), done = b.label();
  b.bind(next);
  b.when(b.setp(Is::ge, first, text.length)).bra(done);
  Reg<U64> word = load_bytes(b, b.add(text.at, b.cvt<U64>(first)), first, text.length);
  Reg<U64> mixed = b.mul_lo(b.xor_(key, word), factor);
  b.xor_(mixed, b.shr(mixed, 29u), key);
  b.add(first, 8u, first);
  b.bra(next);
  b.bind(done);
  return b.xor_(key, b.shr(key, 32u));
}

// Jumps to `other` unless the bytes are equal.
void compare_texts(Builder& b, const Text& x, const Text& y, LabelId other) {
  const LabelId next = b.label(), same = b.label();
  b.when(b.setp(Is::eq, x.handle, y.handle)).bra(same);
  b.when(b.setp(Is::ne, x.length, y.length)).bra(other);
  Reg<U32> first = b.constant<U32>(0);
  b.bind(next);
  b.when(b.setp(Is::ge, first, x.length)).bra(same);
  Reg<U64> offset = b.cvt<U64>(first);
  Reg<U64> left = load_bytes(b, b.add(x.at, offset), first, x.length);
  Reg<U64> right = load_bytes(b, b.add(y.at, offset), first, y.length);
  b.when(b.setp(Is::ne, left, right)).bra(other);
  b.add(first, 8u, first);
  b.bra(next);
  b.bind(same);
}

uint32_t build_distinct_enter(ptx::Module& module, std::string_view name) {
  return build_rows(
      module, name, {"handles", "pad", "mask", "table", "slots", "probes", "places", "full"},
      [](Builder& b, std::span<const Reg<U64>> p, Reg<U32> row, LabelId next_row) {
        Reg<U64> mask = p[2], table = p[3], places = p[6], full = p[7];
        Reg<U32> slots = b.cvt<U32>(p[4]);
        // A table that is full needs no more rows.
        Reg<U32> is_full = b.ld<U32>(Space::global, volatile_access, At(full));
        b.when(b.setp(Is::ne, is_full, 0u)).bra(next_row);
        const Text text = text_at(b, p[0], p[1], row);
        Reg<U64> key = b.and_(hash_text(b, text), mask);
        const SlotSearch search{table,       full,        slots, b.cvt<U32>(p[5]), place_of(b, hash(b, key), slots),
                                b.not_(row), tag(b, key)};
        find_slot(b, search, next_row, [&](Reg<U32> mark, LabelId other) {
          compare_texts(b, text, text_at(b, p[0], p[1], b.not_(mark)), other);
        });
        b.st<U32>(Space::global, element_at(b, places, row, 4), search.place);
      });
}

// first[numbers[slot]] = the row of the slot
uint32_t build_first(ptx::Module& module, std::string_view name) {
  return build_rows(module, name, {"table", "numbers", "first"},
                    [](Builder& b, std::span<const Reg<U64>> p, Reg<U32> slot, LabelId next_slot) {
                      Reg<U64> word = b.ld<U64>(Space::global, element_at(b, p[0], slot, 8));
                      b.when(b.setp(Is::eq, word, 0)).bra(next_slot);
                      Reg<U32> number = b.ld<U32>(Space::global, element_at(b, p[1], slot, 4));
                      b.st<U32>(Space::global, element_at(b, p[2], number, 4),
                                b.not_(b.unpack(word).first));
                    });
}

}  // namespace

void add_distinct_strings(KernelRows& rows) {
  rows.insert(rows.end(), {{"text_enter", build_distinct_enter}, {"text_first", build_first}});
}

Result<DistinctStrings> distinct_strings(Library& library, const Strings& strings, uint64_t most,
                                         Memory& memory) {
  const uint64_t n = strings.count;
  if (n > max_rows)
    return input_error("a vector of {} elements is too long for an operator: at most {}", n,
                       max_rows);
  DistinctStrings out{.of = {.type = Type::u32, .capacity = n}, .first = {.type = Type::u32}};
  if (n == 0) {
    ASSIGN_OR_RETURN(out.of.data, memory.result(4));
    ASSIGN_OR_RETURN(out.first.data, memory.result(4));
    return out;
  }
  constexpr uint64_t growth = 16;  // of tables that were too small
  const uint32_t bits = library.options.text_hash_bits;
  const uint64_t mask = bits < 64 ? (uint64_t{1} << bits) - 1 : UINT64_MAX;
  const auto fill = [&](const SlotTable& t) -> Result<void> {
    return launch_rows(
        library, "text_enter", build_distinct_enter, n,
        {strings.handles, strings.pad, mask, t.slots, t.count, t.probes, t.places, t.full},
        12 + strings.pad_bytes / n);
  };
  ASSIGN_OR_RETURN(const NumberedSlots found, number_slots(library, n, most, growth, fill, memory));
  if (!found.numbers) return out;  // more than wanted
  const Vector places{.type = Type::u32, .data = found.places, .capacity = n};
  ASSIGN_OR_RETURN(out.of, translate(library, places, found.numbers, found.count, memory));
  out.of.min = out.first.min = 0;
  out.of.max = static_cast<int64_t>(found.groups) - 1;
  out.first.max = static_cast<int64_t>(n) - 1;
  out.first.capacity = found.groups;
  ASSIGN_OR_RETURN(out.first.data, memory.result(4 * found.groups));
  RETURN_IF_ERROR(launch_rows(library, "text_first", build_first, found.count,
                              {found.slots, found.numbers, out.first.data}, 12));
  return out;
}

}  // namespace rndn::operators
