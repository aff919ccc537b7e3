// Entries of groups by hashing: keys of any width and number, where a table of all that there may
// be would be too large (sink.cpp).
//
// A key is one word where 64 bits hold what its columns can be, by bounds that the runtime knows;
// else several. A table has a slot of 64 bits per word: the word itself, or free_slot. So a key is
// compared whole, a slot is claimed by one compare-and-swap, and nobody waits for anybody. Of
// several words each has a table of its own, and the numbers of two slots are a word of the next
// table, until one is left: its slots are the entries. Which rows claim which slots is chance; the
// runtime orders the entries by their keys (libraries/operators/groups/folded_groups.cpp).
// A block has a small table of its own in shared memory, so that few groups do not meet in global
// memory; where a key finds no place there within a few slots, it goes to the global one.
// A table that is too small is noted in the sink's state, and the kernel runs again with a larger
// one.
// Cost: an access to shared memory per item; where that has no place, one to global memory per
// table, and what stands in the way. Open addressing with linear probing: Knuth, "The Art of
// Computer Programming", vol. 3, 6.4.
// Leaves out: a word of 64 bits whose greatest value occurs, which is free_slot. The state tells.
#include "ptx/codegen/emitter.h"
#include "ptx/lookup/lookup.h"

namespace rndn::codegen {

using ptx::Compare;
using ptx::LabelId;

namespace {

constexpr uint32_t probes_in_block = 4, most_probes = 128, sure_probes = 8;

Address slot_at(Builder& b, Reg<U32> base, Reg<U32> slot) {
  return Address(b.mad_lo(slot, 8u, base));
}
Address slot_at(Builder& b, Reg<U64> base, Reg<U32> slot) {
  return Address(b.mad_wide(slot, 8u, base));
}

// The slot of the key, claimed if need be. No more than that many are looked at; state: of a table
// in global memory, where that is noted, and seen after a few of them.
template <class Base>
Reg<U32> find_slot(Builder& b, Space space, Base base, Reg<U32> slots, Reg<U64> key, uint32_t most,
                   LabelId missing, Reg<U64> state = {}) {
  const LabelId again = b.label(), other = b.label(), found = b.label();
  Reg<U32> slot = lookup::place_of(b, lookup::hash(b, key), slots),
           left = b.mov(b.constant<U32>(most));
  b.bind(again);
  const Address at = slot_at(b, base, slot);
  Reg<U64> old = b.ld<U64>(space, volatile_access, at);
  b.when(b.setp(Compare::eq, old, key)).bra(found);
  b.when(b.setp(Compare::ne, old, free_slot)).bra(other);
  b.atom_cas<U64>(space, at, free_slot, key, {}, old);
  b.when(b.setp(Compare::eq, old, free_slot)).bra(found);
  b.when(b.setp(Compare::eq, old, key)).bra(found);
  b.bind(other);
  lookup::next_place(b, slot, slots);
  b.sub(left, 1u, left);
  if (state.valid()) {
    b.when(b.setp(Compare::gt, left, most - sure_probes)).bra(again);
    b.when(b.setp(Compare::ne, b.ld<U32>(Space::global, volatile_access, Address(state)),
                  uint32_t{fold_fits}))
        .bra(missing);
  }
  b.when(b.setp(Compare::ne, left, 0u)).bra(again);
  if (state.valid())
    b.st<U32>(Space::global, volatile_access, Address(state), b.constant<U32>(uint32_t{fold_full}));
  b.bra(missing);
  b.bind(found);
  return slot;
}

Reg<U32> slot_in_table(Emitter& e, const Sink& sink, uint32_t table, Reg<U64> key,
                       LabelId missing) {
  Builder& b = e.b;
  Reg<U64> tables = b.ld_param(sink.words[sink.hash_word(hash_tables)]);
  Reg<U64> slots = b.ld_param(sink.words[sink_entries]);
  Reg<U64> base = table ? b.mad_lo(slots, uint64_t{8} * table, tables) : tables;
  return find_slot(b, Space::global, base, b.cvt<U32>(slots), key, most_probes, missing,
                   b.ld_param(sink.words[sink.hash_word(hash_state)]));
}

uint32_t words_of(const Sink& sink) { return sink.key_word.back() + 1u; }

}  // namespace

Reg<U64> wide_step(Emitter& e, const Sink& sink, size_t key) {
  Element x = e.values[index(sink.keys[key])];
  if (rep_of(x.type) == Rep::pred) x = convert(e, x, BasicType::i32);
  x = in_register(e, x);
  const uint32_t word = sink_keys + words_per_key * static_cast<uint32_t>(key) + key_least;
  Reg<S64> wide = rep_of(x.type) == Rep::s64 ? reg<S64>(x) : e.b.cvt<S64>(reg<S32>(x));
  return e.b.sub(Builder::as<U64>(wide), e.b.ld_param(sink.words[word]));
}

Reg<U64> hashed_key(Emitter& e, const Sink& sink, LabelId missing) {
  Builder& b = e.b;
  const uint32_t count = words_of(sink);
  std::vector<Reg<U64>> words(count);
  for (size_t k = 0; k < sink.keys.size(); ++k) {
    const uint32_t factor = sink_keys + words_per_key * static_cast<uint32_t>(k) + key_factor;
    Reg<U64> step = wide_step(e, sink, k), scale = b.ld_param(sink.words[factor]);
    Reg<U64>& word = words[sink.key_word[k]];
    word = word.valid() ? b.mad_lo(step, scale, word) : b.mul_lo(step, scale);
  }
  const LabelId impossible = b.label(), fits = b.label();
  for (Reg<U64> word : words) b.when(b.setp(Compare::eq, word, free_slot)).bra(impossible);
  b.bra(fits);
  b.bind(impossible);
  b.st<U32>(Space::global, volatile_access,
            Address(b.ld_param(sink.words[sink.hash_word(hash_state)])),
            b.constant<U32>(uint32_t{fold_impossible}));
  b.bra(missing);
  b.bind(fits);
  Reg<U64> key = words[0];
  for (uint32_t w = 1; w < count; ++w) {
    Reg<U32> first = slot_in_table(e, sink, w == 1 ? 0 : count + w - 2, key, missing);
    Reg<U32> second = slot_in_table(e, sink, w, words[w], missing);
    key = b.pack<U64>(first, second);
  }
  return key;
}

Reg<U32> hashed_entry(Emitter& e, const Sink& sink, Reg<U64> key, LabelId missing) {
  return slot_in_table(e, sink, hash_table_count(words_of(sink)) - 1, key, missing);
}

Reg<U32> slot_in_block(Emitter& e, const Sink& sink, Reg<U32> keys, Reg<U64> key, LabelId missing) {
  return find_slot(e.b, Space::shared, keys, e.b.constant<U32>(sink.slots), key, probes_in_block,
                   missing);
}

}  // namespace rndn::codegen
