// Strings from strings, a string per thread: cut, put one after the other, measured, in another
// case, replaced by others (api.h). Handles are made anew and pads stay where they can: parts of a
// string lie within it, and upper and lower case of ASCII have the same length.
//
// Case is changed eight bytes at a time over
// the whole pad (the bytes between two bounds are found by additions that carry into the high bit
// of every byte; compare Warren, "Hacker's Delight", chapter 6); a flag tells whether any byte is
// not ASCII, and only then are the strings with such bytes listed, for who knows all characters.
//
// Leaves out: several lanes for one long string; strings that grow in place.
#include "libraries/operators/groups/runs.h"
#include "libraries/operators/operators.h"
#include "libraries/operators/ready.h"
#include "libraries/operators/text/rows.h"

namespace rndn::operators {

namespace {

constexpr uint64_t ones = 0x0101010101010101;

Reg<U32> length_of(Builder& b, Reg<U64> handle) { return b.and_(b.cvt<U32>(handle), 0xFFFFFFu); }
uint32_t build_cut(ptx::Module& module, std::string_view name, bool characters) {
  return build_rows(module, name, {"handles", "pad", "first", "most", "out"},
                    [&](Builder& b, std::span<const Reg<U64>> p, Reg<U32> row, LabelId) {
                      Reg<U64> handle = b.ld<U64>(Space::global, element_at(b, p[0], row, 8));
                      Reg<U32> length = length_of(b, handle), first = b.cvt<U32>(p[2]),
                               most = b.cvt<U32>(p[3]);
                      Reg<U32> begin = b.constant<U32>(0), end = b.reg<U32>();
                      if (characters) {
                        Reg<U64> text = b.add(p[1], b.shr(handle, 24u));
                        Reg<U32> passed = b.constant<U32>(0);
                        pass_characters(b, text, length, begin, first, passed);
                        b.mov(begin, end);
                        b.constant<U32>(0, passed);
                        pass_characters(b, text, length, end, most, passed);
                      } else {
                        b.min(first, length, begin);
                        b.add(begin, b.min(most, b.sub(length, begin)), end);
                      }
                      Reg<U64> offset = b.add(b.shr(handle, 24u), b.cvt<U64>(begin));
                      b.st<U64>(Space::global, element_at(b, p[4], row, 8),
                                b.or_(b.shl(offset, 24u), b.cvt<U64>(b.sub(end, begin))));
                    });
}

uint32_t build_move(ptx::Module& module, std::string_view name) {
  return build_rows(module, name, {"handles", "by", "out"},
                    [&](Builder& b, std::span<const Reg<U64>> p, Reg<U32> row, LabelId) {
                      Reg<U64> handle = b.ld<U64>(Space::global, element_at(b, p[0], row, 8));
                      b.st<U64>(Space::global, element_at(b, p[2], row, 8), b.add(handle, p[1]));
                    });
}

uint32_t build_string_numbers(ptx::Module& module, std::string_view name) {
  return build_rows(module, name, {"first", "out"},
                    [&](Builder& b, std::span<const Reg<U64>> p, Reg<U32> row, LabelId) {
                      b.st<U32>(Space::global, element_at(b, p[1], row, 4),
                                b.add(row, b.cvt<U32>(p[0])));
                    });
}

uint32_t build_lengths(ptx::Module& module, std::string_view name, bool characters) {
  return build_rows(module, name, {"handles", "pad", "out"},
                    [&](Builder& b, std::span<const Reg<U64>> p, Reg<U32> row, LabelId) {
                      Reg<U64> handle = b.ld<U64>(Space::global, element_at(b, p[0], row, 8));
                      Reg<U32> length = length_of(b, handle);
                      if (characters) {
                        Reg<U32> at = b.constant<U32>(0), passed = b.constant<U32>(0);
                        pass_characters(b, b.add(p[1], b.shr(handle, 24u)), length, at, length,
                                        passed);
                        length = passed;
                      }
                      b.st<U64>(Space::global, element_at(b, p[2], row, 8), b.cvt<U64>(length));
                    });
}

// 0x80 in every byte of `word`, whose high bits are clear, that is at least `least`.
Reg<U64> at_least(Builder& b, Reg<U64> word, char least) {
  return b.add(word, ones * (0x80u - static_cast<uint8_t>(least)));
}

// A word of the pad per thread; `others` is set where a byte is not ASCII.
uint32_t build_case(ptx::Module& module, std::string_view name, bool upper) {
  return build_rows(
      module, name, {"pad", "out", "others"},
      [&](Builder& b, std::span<const Reg<U64>> p, Reg<U32> row, LabelId next_row) {
        Reg<U64> word = b.ld<U64>(Space::global, element_at(b, p[0], row, 8));
        Reg<U64> low = b.and_(word, ones * 0x7f);
        Reg<U64> letters = b.xor_(at_least(b, low, upper ? 'a' : 'A'),
                                  at_least(b, low, static_cast<char>((upper ? 'z' : 'Z') + 1)));
        letters = b.and_(b.and_(letters, b.not_(word)), ones * 0x80);
        b.st<U64>(Space::global, element_at(b, p[1], row, 8), b.xor_(word, b.shr(letters, 2u)));
        b.when(b.setp(Is::eq, b.and_(word, ones * 0x80), uint64_t{0})).bra(next_row);
        b.st<U32>(Space::global, volatile_access, At(p[2]), b.constant<U32>(1));
      });
}

// u8 per string: has it a byte that is not ASCII.
uint32_t build_others(ptx::Module& module, std::string_view name) {
  return build_rows(
      module, name, {"handles", "pad", "out"},
      [&](Builder& b, std::span<const Reg<U64>> p, Reg<U32> row, LabelId) {
        Reg<U64> handle = b.ld<U64>(Space::global, element_at(b, p[0], row, 8));
        Reg<U64> text = b.add(p[1], b.shr(handle, 24u));
        Reg<U32> length = length_of(b, handle), at = b.constant<U32>(0), other = b.constant<U32>(0);
        const LabelId next = b.label(), done = b.label();
        b.bind(next);
        b.when(b.setp(Is::ge, at, length)).bra(done);
        b.and_(load_byte(b, text, at), 0x80u, other);
        b.add(at, 1u, at);
        b.when(b.setp(Is::eq, other, 0u)).bra(next);
        b.bind(done);
        b.st<U8>(Space::global, element_at(b, p[2], row, 1), b.cvt<U16>(b.shr(other, 7u)));
      });
}

// out[at[row]] = handles[row] + by
uint32_t build_put(ptx::Module& module, std::string_view name) {
  return build_rows(module, name, {"at", "handles", "by", "out"},
                    [&](Builder& b, std::span<const Reg<U64>> p, Reg<U32> row, LabelId) {
                      Reg<U32> to =
                          b.cvt<U32>(b.ld<U64>(Space::global, element_at(b, p[0], row, 8)));
                      Reg<U64> handle = b.ld<U64>(Space::global, element_at(b, p[1], row, 8));
                      b.st<U64>(Space::global, element_at(b, p[3], to, 8), b.add(handle, p[2]));
                    });
}

Library::Row cut_kernel(bool characters) {
  return {characters ? "text_cut_characters" : "text_cut",
          [characters](ptx::Module& m, std::string_view name) { return build_cut(m, name, characters); }};
}
Library::Row lengths_kernel(bool characters) {
  return {characters ? "text_characters" : "text_lengths",
          [characters](ptx::Module& m, std::string_view name) { return build_lengths(m, name, characters); }};
}
Library::Row case_kernel(bool upper) {
  return {upper ? "text_upper" : "text_lower",
          [upper](ptx::Module& m, std::string_view name) { return build_case(m, name, upper); }};
}

Result<void> move_handles(Library& library, const Strings& from, uint64_t by, Address to) {
  return launch_rows(library, "text_move", build_move, from.count, {from.handles, by << 24, to},
                     16);
}

}  // namespace

void add_strings(KernelRows& rows) {
  rows.insert(rows.end(), {{"text_numbers", build_string_numbers},
                           {"text_move", build_move},
                           {"text_others", build_others},
                           {"text_put", build_put}});
  for (bool characters : {false, true}) rows.insert(rows.end(), {cut_kernel(characters), lengths_kernel(characters)});
  for (bool upper : {false, true}) rows.push_back(case_kernel(upper));
}

Result<Vector> numbers(Library& library, uint64_t first, uint64_t count, Memory& memory) {
  Vector out{.type = Type::u32, .capacity = count, .min = static_cast<int64_t>(first)};
  out.max = static_cast<int64_t>(first + std::max<uint64_t>(count, 1)) - 1;
  ASSIGN_OR_RETURN(out.data, memory.result(4 * std::max<uint64_t>(count, 1)));
  RETURN_IF_ERROR(launch_rows(library, "text_numbers", build_string_numbers, count, {first, out.data}, 4));
  return out;
}

Result<Strings> cut(Library& library, const Strings& strings, uint64_t first, uint64_t most,
                    bool characters, Memory& memory) {
  constexpr uint64_t longest = 0xFFFFFF;  // bytes of any string
  Strings out = strings;
  ASSIGN_OR_RETURN(out.handles, memory.result(8 * std::max<uint64_t>(strings.count, 1)));
  RETURN_IF_ERROR(launch_rows(library, cut_kernel(characters), strings.count,
                              {strings.handles, strings.pad, std::min(first, longest),
                               std::min(most, longest), out.handles},
                              16));
  return out;
}

Result<Strings> concatenate(Library& library, std::span<const Strings> parts, Memory& memory) {
  uint64_t count = 0, bytes = 0;
  for (const Strings& part : parts) count += part.count, bytes += part.pad_bytes;
  ASSIGN_OR_RETURN(Strings out, room_for_strings(library, count, bytes, memory));
  Address handles = out.handles;
  uint64_t at = 0;
  for (const Strings& part : parts) {
    if (part.pad_bytes)
      RETURN_IF_ERROR(library.device().copy(out.pad + at, part.pad, part.pad_bytes));
    RETURN_IF_ERROR(move_handles(library, part, at, handles));
    handles += 8 * part.count;
    at += part.pad_bytes;
  }
  return out;
}

Result<Vector> lengths(Library& library, const Strings& strings, bool characters, Memory& memory) {
  Vector out{.type = Type::i64, .capacity = strings.count, .min = 0, .max = 0xFFFFFF};
  ASSIGN_OR_RETURN(out.data, memory.result(8 * std::max<uint64_t>(strings.count, 1)));
  RETURN_IF_ERROR(launch_rows(library, lengths_kernel(characters), strings.count,
                              {strings.handles, strings.pad, out.data}, 16));
  return out;
}

Result<Vector> not_ascii(Library& library, const Strings& strings, Memory& memory) {
  const uint64_t n = strings.count;
  Vector out{.type = Type::i64};
  if (n == 0) return out;
  ASSIGN_OR_RETURN(const Address flags, memory.temporary(n));
  RETURN_IF_ERROR(launch_rows(library, "text_others", build_others, n,
                              {strings.handles, strings.pad, flags}, 9));
  ASSIGN_OR_RETURN(const Address scan, memory.temporary(8 * run_words(n)));
  RETURN_IF_ERROR(library.device().fill(scan, 0, 8 * run_words(n)));
  ASSIGN_OR_RETURN(const Places others, flagged_places(library, flags, scan, n, memory));
  out.data = others.data, out.capacity = others.count;
  return out;
}

Result<Cased> to_case(Library& library, const Strings& strings, bool upper, Memory& memory) {
  const uint64_t words = (strings.pad_bytes + 7) / 8;
  constexpr uint64_t most = uint64_t{1} << 30;  // words of one launch
  Cased out{.strings = strings, .others = {.type = Type::i64}};
  ASSIGN_OR_RETURN(out.strings.pad, memory.result(std::max<uint64_t>(8 * words, 8)));
  ASSIGN_OR_RETURN(const Address flag, memory.temporary(4));
  RETURN_IF_ERROR(library.device().fill(flag, 0, 4));
  for (uint64_t at = 0; at < words; at += most)
    RETURN_IF_ERROR(launch_rows(library, case_kernel(upper), std::min(most, words - at),
                                {strings.pad + 8 * at, out.strings.pad + 8 * at, flag}, 16));
  uint32_t any = 0;
  RETURN_IF_ERROR(library.device().copy_to_host(&any, flag, 4));
  if (any) {
    ASSIGN_OR_RETURN(out.others, not_ascii(library, strings, memory));
  }
  return out;
}

Result<Strings> replace(Library& library, const Strings& strings, const Vector& at,
                        const Strings& others, Memory& memory) {
  ASSIGN_OR_RETURN(Strings out, room_for_strings(library, strings.count,
                                                 strings.pad_bytes + others.pad_bytes, memory));
  if (strings.pad_bytes)
    RETURN_IF_ERROR(library.device().copy(out.pad, strings.pad, strings.pad_bytes));
  if (others.pad_bytes)
    RETURN_IF_ERROR(
        library.device().copy(out.pad + strings.pad_bytes, others.pad, others.pad_bytes));
  if (strings.count)
    RETURN_IF_ERROR(library.device().copy(out.handles, strings.handles, 8 * strings.count));
  RETURN_IF_ERROR(launch_rows(library, "text_put", build_put, at.capacity,
                              {at.data, others.handles, strings.pad_bytes << 24, out.handles}, 24));
  return out;
}

}  // namespace rndn::operators
