// A frame of LZ4 is blocks, each of sequences: literals, and a copy of what was written up to 64
// KiB before, in this block or an earlier one. Checksums are passed by: the bounds of every copy are
// checked, and who reads the values checks these.
#include "runtime/files/decompress.h"

#include <dlfcn.h>

#include <cstdint>
#include <cstring>

namespace rndn::files {
namespace {

constexpr const char* damaged_buffer = "a buffer's compressed bytes are damaged";

class Lz4Frame {
 public:
  Lz4Frame(std::span<const std::byte> from, std::span<std::byte> to)
      : in_(from.data()),
        end_(in_ + from.size()),
        begin_(to.data()),
        out_(begin_),
        limit_(out_ + to.size()) {}

  bool read() {
    uint32_t magic, size;
    if (!take(magic) || magic != 0x184d2204 || left() < 3) return false;
    const auto flags = static_cast<uint8_t>(in_[0]);
    if (flags >> 6 != 1 || flags & 1) return false;  // version 1, without a dictionary
    const size_t header = 3 + (flags & 8 ? 8 : 0);   // flags, block size, content size, checksum
    if (left() < header) return false;
    in_ += header;
    while (take(size) && size != 0) {
      const bool is_plain = size >> 31;
      size &= 0x7fffffff;
      if (left() < size) return false;
      const std::byte* block = in_;
      in_ += size;
      if (is_plain ? !copy_plain(block, size) : !read_block(block, block + size)) return false;
      if (flags & 16) {  // a checksum of the block
        if (left() < 4) return false;
        in_ += 4;
      }
    }
    return out_ == limit_;
  }

 private:
  size_t left() const { return static_cast<size_t>(end_ - in_); }
  size_t room() const { return static_cast<size_t>(limit_ - out_); }
  bool take(uint32_t& value) {
    if (left() < sizeof value) return false;
    std::memcpy(&value, in_, sizeof value);
    in_ += sizeof value;
    return true;
  }
  bool copy_plain(const std::byte* from, size_t size) {
    if (size > room()) return false;
    if (size) std::memcpy(out_, from, size);
    out_ += size;
    return true;
  }
  // A length of 15 goes on in the bytes that follow.
  static bool lengthen(const std::byte*& in, const std::byte* end, size_t& length) {
    for (uint8_t byte = 255; byte == 255; length += byte) {
      if (in == end) return false;
      byte = static_cast<uint8_t>(*in++);
    }
    return true;
  }
  bool read_block(const std::byte* in, const std::byte* end) {
    while (in < end) {
      const auto token = static_cast<uint8_t>(*in++);
      size_t literals = token >> 4, size = token & 15;
      if (literals == 15 && !lengthen(in, end, literals)) return false;
      if (literals > static_cast<size_t>(end - in) || !copy_plain(in, literals)) return false;
      in += literals;
      if (in == end) return true;  // the last sequence is literals only
      if (end - in < 2) return false;
      const size_t offset = static_cast<size_t>(in[0]) | static_cast<size_t>(in[1]) << 8;
      in += 2;
      if (size == 15 && !lengthen(in, end, size)) return false;
      size += 4;
      if (offset == 0 || offset > static_cast<size_t>(out_ - begin_) || size > room()) return false;
      const std::byte* from = out_ - offset;
      if (offset >= size)
        std::memcpy(out_, from, size);
      else
        for (size_t i = 0; i < size; ++i) out_[i] = from[i];
      out_ += size;
    }
    return false;
  }

  const std::byte *in_, *end_;
  std::byte *begin_, *out_, *limit_;
};

using Decompress = size_t (*)(void*, size_t, const void*, size_t);

}  // namespace

const char* decompress_lz4_frame(std::span<const std::byte> from, std::span<std::byte> to) {
  return Lz4Frame(from, to).read() ? nullptr : damaged_buffer;
}

const char* decompress_zstd(std::span<const std::byte> from, std::span<std::byte> to) {
  static const auto decompress = [] {
    void* library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
    return library ? reinterpret_cast<Decompress>(dlsym(library, "ZSTD_decompress")) : nullptr;
  }();
  if (!decompress) return "it is compressed by ZSTD, and there is no libzstd.so.1";
  // An error is a number beyond every size.
  return decompress(to.data(), to.size(), from.data(), from.size()) == to.size() ? nullptr
                                                                                 : damaged_buffer;
}

}  // namespace rndn::files
