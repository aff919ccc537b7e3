// A stream is the length (a varint) and elements: a literal and its bytes, or a copy of what was
// written `offset` bytes before. Short elements, which are most, are moved 16 bytes at a time
// without a look at their length, since both buffers have room behind them. Cost: one pass over
// what comes out, 1 to 5 GB/s.
#include "runtime/files/snappy.h"

#include <cstdint>
#include <cstring>

namespace rndn::files {
namespace {

uint32_t word_at(const std::byte* at) {
  uint32_t word;
  std::memcpy(&word, at, 4);
  return word;
}

void move_16(std::byte* to, const std::byte* from) {
  std::byte block[16];
  std::memcpy(block, from, 16);
  std::memcpy(to, block, 16);
}

}  // namespace

bool decompress_snappy(std::span<const std::byte> from, std::span<std::byte> to) {
  const std::byte *in = from.data(), *const end = in + from.size();
  std::byte *out = to.data(), *const begin = out, *const limit = out + to.size();
  uint64_t length = 0;
  for (unsigned shift = 0;; shift += 7) {
    if (in == end || shift > 28) return false;
    const auto byte = static_cast<uint8_t>(*in++);
    length |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  if (length != to.size()) return false;
  while (in < end) {
    const auto tag = static_cast<uint8_t>(*in++);
    size_t size = (tag >> 2) + 1, offset = 0;
    switch (tag & 3) {
      case 0: {
        if (size > 60) {  // the length less one follows in 1 to 4 bytes
          const size_t bytes = size - 60;
          if (static_cast<size_t>(end - in) < bytes) return false;
          size = (word_at(in) & (bytes == 4 ? ~0u : (1u << bytes * 8) - 1)) + size_t{1};
          in += bytes;
        }
        if (static_cast<size_t>(end - in) < size || static_cast<size_t>(limit - out) < size)
          return false;
        if (size <= 16)
          move_16(out, in);
        else
          std::memcpy(out, in, size);
        in += size;
        out += size;
        continue;
      }
      case 1:
        if (in == end) return false;
        size = (tag >> 2 & 7) + 4;
        offset = static_cast<size_t>(tag >> 5) << 8 | static_cast<uint8_t>(*in++);
        break;
      case 2:
        if (end - in < 2) return false;
        offset = word_at(in) & 0xffff;
        in += 2;
        break;
      default:
        if (end - in < 4) return false;
        offset = word_at(in);
        in += 4;
    }
    if (offset == 0 || offset > static_cast<size_t>(out - begin) ||
        size > static_cast<size_t>(limit - out))
      return false;
    const std::byte* source = out - offset;
    if (offset >= 16) {
      for (size_t done = 0; done < size; done += 16) move_16(out + done, source + done);
    } else {  // the pattern repeats itself
      for (size_t done = 0; done < size; ++done) out[done] = source[done];
    }
    out += size;
  }
  return out == limit;
}

}  // namespace rndn::files
