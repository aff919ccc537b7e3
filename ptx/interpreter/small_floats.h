// cvt to and from two numbers of 8 bits, and cvt.pack. Private to this folder.
#pragma once
#include <cstdint>

namespace rndn::ptx {

// `mode` as opcodes.def numbers them; s: the sources.
uint64_t convert_pair(uint8_t mode, const uint64_t* s);

}  // namespace rndn::ptx
