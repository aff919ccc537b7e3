#include "ptx/lookup/lookup.h"

namespace rndn::lookup {

using ptx::Builder;
using ptx::Reg;
using ptx::U32;
using ptx::U64;

Reg<U32> hash(Builder& b, Reg<U32> key) {
  Reg<U32> h = b.mul_lo(key, 0x9E3779B1u);
  h = b.xor_(h, b.shr(h, 15));
  return b.mul_lo(h, 0x85EBCA77u);
}

Reg<U32> hash(Builder& b, Reg<U64> key) {
  auto [low, high] = b.unpack(key);
  Reg<U32> h = b.mad_lo(low, 0x9E3779B1u, b.mul_lo(high, 0xC2B2AE3Du));
  h = b.xor_(h, b.shr(h, 15));
  return b.mul_lo(h, 0x85EBCA77u);
}

Reg<U64> mix(Builder& b, Reg<U64> key, Reg<U64> contribution) {
  if (key.valid()) contribution = b.xor_(contribution, key);
  Reg<U64> product = b.mul_lo(contribution, 0x9E3779B97F4A7C15u);
  return b.xor_(product, b.shr(product, 29));
}

Reg<U32> tag(Builder& b, Reg<U64> key) {
  auto [low, high] = b.unpack(key);
  return b.mad_lo(high, 0x27D4EB2Fu, low);
}

Reg<U32> place_of(Builder& b, Reg<U32> hash, Reg<U32> slots) { return b.mul_hi(hash, slots); }

Reg<U32> filter_bit_of_key(Builder& b, Reg<U32> key, Reg<U32> shift) { return b.shr(b.shl(key, shift), shift); }

Reg<U32> filter_bit_of_hash(Builder& b, Reg<U32> hash, Reg<U32> shift) { return b.shr(hash, shift); }

void next_place(Builder& b, Reg<U32> place, Reg<U32> slots) {
  b.add(place, 1, place);
  b.when(b.setp(ptx::Compare::eq, place, slots)).constant<U32>(0, place);
}

}  // namespace rndn::lookup
