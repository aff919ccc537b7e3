// What the build side of `member` leaves on the device for whoever tests elements against it. Private to this folder.
#pragma once
#include "libraries/operators/fragments.h"
#include "libraries/operators/library.h"
#include "libraries/operators/api.h"

namespace rndn::operators {

// A probe makes the element's key by `layout` (make_key; rows that are not valid are no members) and then
//   bitmap  tests bit key % 32 of u32 word key / 32 of `slots`
//   set     goes from place_of(hash(key), count) on, until it meets the key or 0; the key 0 is a member when flags[0] is 1.
//           flags: {u32 key 0 is there, u32 count of slots}. Slots have 4 bytes when the key is narrow, else 8.
struct MemberTable {
  enum Kind : uint8_t { bitmap, set } kind{};
  KeyLayout layout;
  Address flags = 0, slots = 0;
};

// Queues the build over y, which has at most max_rows elements.
Result<MemberTable> build_member(Library& library, const Vector& y, Memory& memory);

}  // namespace rndn::operators
