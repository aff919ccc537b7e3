// The rows of the table, one function per file. Private to this folder.
#pragma once
#include "ptx/encodings/encodings.h"

namespace rndn::encodings::rows {

#define ENCODING(id) const Encoding& id();
#include "ptx/encodings/encodings.def"
#undef ENCODING

// Calls f.operator()<T>() with the C++ type of an integer of that many bytes.
template <class F>
decltype(auto) with_integer(uint32_t bytes, bool is_signed, F&& f) {
  switch (bytes) {
    case 1: return is_signed ? f.template operator()<int8_t>() : f.template operator()<uint8_t>();
    case 2: return is_signed ? f.template operator()<int16_t>() : f.template operator()<uint16_t>();
    case 4: return is_signed ? f.template operator()<int32_t>() : f.template operator()<uint32_t>();
    default: return is_signed ? f.template operator()<int64_t>() : f.template operator()<uint64_t>();
  }
}

}  // namespace rndn::encodings::rows
