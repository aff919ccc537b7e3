// Strings from strings, a string per thread: cut, put one after the other, measured, in another
// case, replaced by others (api.h). Handles are made anew and pads stay where they can: parts of a
// string lie within it, and upper and lower case of ASCII have the same length.
//
// Characters are those of runtime/text/utf8.h: a byte that begins none of them is one by itself.
// They are passed over one by one, O(bytes) per string. Case is changed eight bytes at a time over
// the whole pad (the bytes between two bounds are found by additions that carry into the high bit
// of every byte; compare Warren, "Hacker's Delight", chapter 6); a flag tells whether any byte is
// not ASCII, and only then are the strings with such bytes listed, for who knows all characters.
//
// Leaves out: several lanes for one long string; strings that grow in place.
#include "libraries/operators/fragments.h"
#include "libraries/operators/groups/runs.h"
#include "libraries/operators/operators.h"

namespace rndn::operators {

namespace {

constexpr uint64_t ones = 0x0101010101010101;

// The frame of the kernels: parameters by name, in order; body(parameters, row, next_row).
template <class Body>
uint32_t build_rows(ptx::Module& module, std::string_view name,
                    std::initializer_list<const char*> names, Body&& body) {
  Builder b(module, std::string(name));
  b.set_block_size(block_threads);
  std::vector<Parameter> declared{b.parameter<U64>("count")};
  for (const char* p : names) declared.push_back(b.parameter<U64>(p));
  const Thread t = thread_of(b);
  Reg<U32> n = b.cvt<U32>(b.ld_param(declared[0]));
  std::vector<Reg<U64>> values;
  for (size_t k = 1; k < declared.size(); ++k) values.push_back(b.ld_param(declared[k]));
  for_rows(b, t, n, [&](Reg<U32> row, LabelId next_row) {
    body(b, std::span<const Reg<U64>>(values), row, next_row);
  });
  b.ret();
  b.finish();
  return block_threads;
}

Result<void> launch(Library& library, std::string_view name, const Library::Build& build,
                    uint64_t rows, std::initializer_list<uint64_t> words, uint64_t bytes_per_row) {
  if (rows == 0) return {};
  if (rows > max_rows)
    return input_error("a vector of {} elements is too long for an operator: at most {}", rows,
                       max_rows);
  ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel(name, build));
  Arguments a;
  a.add(rows);
  for (uint64_t word : words) a.add(word);
  return library.launch(*kernel, library.grid(*kernel, tiles_for(rows, block_threads)), a,
                        rows * bytes_per_row);
}

Reg<U32> length_of(Builder& b, Reg<U64> handle) { return b.and_(b.cvt<U32>(handle), 0xFFFFFFu); }
Reg<U32> load_byte(Builder& b, Reg<U64> text, Reg<U32> at) {
  return b.cvt<U32>(b.ld<U8>(Space::global, At(b.add(text, b.cvt<U64>(at)))));
}

// Moves `at` over at most `most` characters of the text, and adds them to `passed`.
void pass_characters(Builder& b, Reg<U64> text, Reg<U32> length, Reg<U32> at, Reg<U32> most,
                     Reg<U32> passed) {
  const LabelId next = b.label(), done = b.label(), next_byte = b.label(), whole = b.label(),
                single = b.label();
  Reg<U32> end = b.add(passed, most);
  b.bind(next);
  b.when(b.setp(Is::ge, at, length)).bra(done);
  b.when(b.setp(Is::ge, passed, end)).bra(done);
  Reg<U32> first = load_byte(b, text, at), wanted = b.constant<U32>(1);
  b.when(b.setp(Is::ge, first, 0xc2u)).constant<U32>(2, wanted);
  b.when(b.setp(Is::ge, first, 0xe0u)).constant<U32>(3, wanted);
  b.when(b.setp(Is::ge, first, 0xf0u)).constant<U32>(4, wanted);
  b.when(b.setp(Is::ge, first, 0xf5u)).constant<U32>(1, wanted);
  b.when(b.setp(Is::gt, b.add(at, wanted), length)).bra(single);
  Reg<U32> k = b.constant<U32>(1);
  b.bind(next_byte);
  b.when(b.setp(Is::ge, k, wanted)).bra(whole);
  Reg<U32> byte = load_byte(b, text, b.add(at, k));
  b.add(k, 1u, k);
  b.when(b.setp(Is::eq, b.and_(byte, 0xc0u), 0x80u)).bra(next_byte);
  b.bind(single);
  b.constant<U32>(1, wanted);
  b.bind(whole);
  b.add(at, wanted, at);
  b.add(passed, 1u, passed);
  b.bra(next);
  b.bind(done);
}

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

uint32_t build_numbers(ptx::Module& module, std::string_view name) {
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

Result<Strings> room_for(Library& library, uint64_t count, uint64_t pad_bytes, Memory& memory) {
  Strings out{.count = count, .pad_bytes = pad_bytes};
  if (pad_bytes > uint64_t{1} << 40)
    return input_error("texts of {} bytes in one vector are too many", pad_bytes);
  ASSIGN_OR_RETURN(out.handles, memory.result(8 * std::max<uint64_t>(count, 1)));
  const uint64_t whole = (std::max<uint64_t>(pad_bytes, 1) + 7) / 8 * 8;
  ASSIGN_OR_RETURN(out.pad, memory.result(whole));
  RETURN_IF_ERROR(library.device().fill(out.pad + whole - 8, 0, 8));
  return out;
}

Result<void> move_handles(Library& library, const Strings& from, uint64_t by, Address to) {
  return launch(library, "text_move", build_move, from.count, {from.handles, by << 24, to}, 16);
}

}  // namespace

Result<Vector> numbers(Library& library, uint64_t first, uint64_t count, Memory& memory) {
  Vector out{.type = Type::u32, .capacity = count, .min = static_cast<int64_t>(first)};
  out.max = static_cast<int64_t>(first + std::max<uint64_t>(count, 1)) - 1;
  ASSIGN_OR_RETURN(out.data, memory.result(4 * std::max<uint64_t>(count, 1)));
  RETURN_IF_ERROR(launch(library, "text_numbers", build_numbers, count, {first, out.data}, 4));
  return out;
}

Result<Strings> cut(Library& library, const Strings& strings, uint64_t first, uint64_t most,
                    bool characters, Memory& memory) {
  constexpr uint64_t longest = 0xFFFFFF;  // bytes of any string
  Strings out = strings;
  ASSIGN_OR_RETURN(out.handles, memory.result(8 * std::max<uint64_t>(strings.count, 1)));
  const auto build = [&](ptx::Module& m, std::string_view name) {
    return build_cut(m, name, characters);
  };
  RETURN_IF_ERROR(launch(library, characters ? "text_cut_characters" : "text_cut", build,
                         strings.count,
                         {strings.handles, strings.pad, std::min(first, longest),
                          std::min(most, longest), out.handles},
                         16));
  return out;
}

Result<Strings> concatenate(Library& library, std::span<const Strings> parts, Memory& memory) {
  uint64_t count = 0, bytes = 0;
  for (const Strings& part : parts) count += part.count, bytes += part.pad_bytes;
  ASSIGN_OR_RETURN(Strings out, room_for(library, count, bytes, memory));
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
  const auto build = [&](ptx::Module& m, std::string_view name) {
    return build_lengths(m, name, characters);
  };
  RETURN_IF_ERROR(launch(library, characters ? "text_characters" : "text_lengths", build,
                         strings.count, {strings.handles, strings.pad, out.data}, 16));
  return out;
}

Result<Cased> to_case(Library& library, const Strings& strings, bool upper, Memory& memory) {
  const uint64_t words = (strings.pad_bytes + 7) / 8;
  constexpr uint64_t most = uint64_t{1} << 30;  // words of one launch
  Cased out{.strings = strings, .others = {.type = Type::i64}};
  ASSIGN_OR_RETURN(out.strings.pad, memory.result(std::max<uint64_t>(8 * words, 8)));
  ASSIGN_OR_RETURN(const Address flag, memory.temporary(4));
  RETURN_IF_ERROR(library.device().fill(flag, 0, 4));
  const auto build = [&](ptx::Module& m, std::string_view name) {
    return build_case(m, name, upper);
  };
  for (uint64_t at = 0; at < words; at += most)
    RETURN_IF_ERROR(launch(library, upper ? "text_upper" : "text_lower", build,
                           std::min(most, words - at),
                           {strings.pad + 8 * at, out.strings.pad + 8 * at, flag}, 16));
  uint32_t any = 0;
  RETURN_IF_ERROR(library.device().copy_to_host(&any, flag, 4));
  if (!any || strings.count == 0) return out;
  const uint64_t n = strings.count;
  ASSIGN_OR_RETURN(const Address flags, memory.temporary(n));
  RETURN_IF_ERROR(
      launch(library, "text_others", build_others, n, {strings.handles, strings.pad, flags}, 9));
  ASSIGN_OR_RETURN(const Address scan, memory.temporary(8 * run_words(n)));
  RETURN_IF_ERROR(library.device().fill(scan, 0, 8 * run_words(n)));
  ASSIGN_OR_RETURN(out.others.data, memory.result(8 * n));
  ASSIGN_OR_RETURN(out.others.capacity,
                   flagged_places(library, flags, scan, n, out.others.data, memory));
  return out;
}

Result<Strings> replace(Library& library, const Strings& strings, const Vector& at,
                        const Strings& others, Memory& memory) {
  ASSIGN_OR_RETURN(Strings out,
                   room_for(library, strings.count, strings.pad_bytes + others.pad_bytes, memory));
  if (strings.pad_bytes)
    RETURN_IF_ERROR(library.device().copy(out.pad, strings.pad, strings.pad_bytes));
  if (others.pad_bytes)
    RETURN_IF_ERROR(
        library.device().copy(out.pad + strings.pad_bytes, others.pad, others.pad_bytes));
  if (strings.count)
    RETURN_IF_ERROR(library.device().copy(out.handles, strings.handles, 8 * strings.count));
  RETURN_IF_ERROR(launch(library, "text_put", build_put, at.capacity,
                         {at.data, others.handles, strings.pad_bytes << 24, out.handles}, 24));
  return out;
}

}  // namespace rndn::operators
