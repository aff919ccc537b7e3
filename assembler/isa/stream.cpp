// Code as bytes. Volta: 16 bytes an instruction, little endian. Pascal: bundles of 32 bytes, a control word (three 21-bit fields) and three
// instructions; the first instruction of a section is at byte 8.
#include <bit>
#include <cstring>

#include "assembler/isa/form.h"

namespace rndn::isa {
namespace {

constexpr uint64_t pascal_nop = 0x50b0000000070f00, pascal_nop_control = 0x7e0;

uint64_t load(const std::byte* p) {
  uint64_t v;
  std::memcpy(&v, p, 8);
  return v;
}
void append(std::vector<std::byte>& out, uint64_t v) {
  const auto* p = reinterpret_cast<const std::byte*>(&v);
  out.insert(out.end(), p, p + 8);
}

}  // namespace

uint64_t instruction_address(const Target& target, uint64_t index) {
  return target.family == Family::volta ? 16 * index : 32 * (index / 3) + 8 * (index % 3) + 8;
}

std::vector<std::byte> pack(const Target& target, std::span<const Word> words) {
  if (target.family == Family::volta) {
    static_assert(sizeof(Word) == 16 && std::endian::native == std::endian::little);
    const auto* bytes = reinterpret_cast<const std::byte*>(words.data());
    return {bytes, bytes + words.size_bytes()};
  }
  std::vector<std::byte> out;
  out.reserve((words.size() + 2) / 3 * 32);
  for (size_t i = 0; i < words.size(); i += 3) {
    uint64_t control = 0, code[3] = {pascal_nop, pascal_nop, pascal_nop};
    for (size_t k = 0; k < 3; ++k) {
      bool present = i + k < words.size();
      control |= ((present ? words[i + k].hi : pascal_nop_control) & 0x1fffff) << (21 * k);
      if (present) code[k] = words[i + k].lo;
    }
    append(out, control);
    for (uint64_t c : code) append(out, c);
  }
  return out;
}

// Bytes beyond the last whole instruction (bundle) are ignored.
std::vector<Located> unpack(const Target& target, std::span<const std::byte> code) {
  std::vector<Located> out;
  if (target.family == Family::volta) {
    for (size_t at = 0; at + 16 <= code.size(); at += 16) out.push_back({at, {load(&code[at]), load(&code[at + 8])}});
    return out;
  }
  for (size_t at = 0; at + 32 <= code.size(); at += 32) {
    uint64_t control = load(&code[at]);
    for (size_t k = 0; k < 3; ++k)
      out.push_back({at + 8 + 8 * k, {load(&code[at + 8 + 8 * k]), control >> (21 * k) & 0x1fffff}});
  }
  return out;
}

}  // namespace rndn::isa
