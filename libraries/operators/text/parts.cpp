// Parts of strings and their places, a string per thread (api.h): trimmed ones, those between
// separators, the last characters, where bytes stand. Handles are made anew, bytes lie where they lay.
//
// Bytes to be trimmed are a set of ASCII characters, a bit each: no byte of another character is one.
// Cost: the bytes that are looked at, once; those of a string twice where its characters are counted
// first. Leaves out: several lanes for one long string.
#include <algorithm>

#include "libraries/operators/operators.h"
#include "libraries/operators/ready.h"
#include "libraries/operators/text/rows.h"

namespace rndn::operators {

namespace {

void store_part(Builder& b, Reg<U64> out, Reg<U32> row, const Text& text, Reg<U32> begin,
                Reg<U32> end) {
  Reg<U64> offset = b.add(b.shr(text.handle, 24u), b.cvt<U64>(begin));
  b.st<U64>(Space::global, element_at(b, out, row, 8),
            b.or_(b.shl(offset, 24u), b.cvt<U64>(b.sub(end, begin))));
}

uint32_t build_trim(ptx::Module& module, std::string_view name, bool front, bool back) {
  return build_rows(module, name, {"handles", "pad", "low", "high", "out"},
                    [&](Builder& b, std::span<const Reg<U64>> p, Reg<U32> row, LabelId) {
                      const Text text = text_at(b, p[0], p[1], row);
                      Reg<U32> begin = b.constant<U32>(0), end = b.mov(text.length);
                      // Shifts by 64 and more give 0.
                      const auto is_of_set = [&](Reg<U32> at) {
                        Reg<U32> byte = load_byte(b, text.at, at);
                        Reg<U64> bits = b.or_(b.shr(p[2], byte), b.shr(p[3], b.sub(byte, 64u)));
                        return b.setp(Is::ne, b.and_(b.cvt<U32>(bits), 1u), 0u);
                      };
                      if (front) {
                        const LabelId next = b.label(), done = b.label();
                        b.bind(next);
                        b.when(b.setp(Is::ge, begin, end)).bra(done);
                        b.unless(is_of_set(begin)).bra(done);
                        b.add(begin, 1u, begin);
                        b.bra(next);
                        b.bind(done);
                      }
                      if (back) {
                        const LabelId next = b.label(), done = b.label();
                        b.bind(next);
                        b.when(b.setp(Is::ge, begin, end)).bra(done);
                        b.unless(is_of_set(b.sub(end, 1u))).bra(done);
                        b.sub(end, 1u, end);
                        b.bra(next);
                        b.bind(done);
                      }
                      store_part(b, p[4], row, text, begin, end);
                    });
}

uint32_t build_between(ptx::Module& module, std::string_view name) {
  return build_rows(module, name, {"handles", "pad", "separator", "bytes", "number", "out"},
                    [](Builder& b, std::span<const Reg<U64>> p, Reg<U32> row, LabelId) {
                      const Text text = text_at(b, p[0], p[1], row);
                      Reg<U32> size = b.cvt<U32>(p[3]), before = b.cvt<U32>(p[4]);
                      Reg<U32> begin = b.constant<U32>(0), end = b.constant<U32>(0);
                      const LabelId next = b.label(), begins = b.label(), nowhere = b.label(),
                                    last = b.label(), done = b.label();
                      b.bind(next);
                      b.when(b.setp(Is::eq, before, 0u)).bra(begins);
                      find_bytes(b, text, p[2], size, begin, nowhere);
                      b.add(begin, size, begin);
                      b.sub(before, 1u, before);
                      b.bra(next);
                      b.bind(nowhere);
                      b.mov(text.length, begin);
                      b.bra(last);
                      b.bind(begins);
                      b.mov(begin, end);
                      find_bytes(b, text, p[2], size, end, last);
                      b.bra(done);
                      b.bind(last);
                      b.mov(text.length, end);
                      b.bind(done);
                      store_part(b, p[5], row, text, begin, end);
                    });
}

// The last characters, or all but these.
uint32_t build_tail(ptx::Module& module, std::string_view name, bool without) {
  return build_rows(module, name, {"handles", "pad", "characters", "out"},
                    [&](Builder& b, std::span<const Reg<U64>> p, Reg<U32> row, LabelId) {
                      const Text text = text_at(b, p[0], p[1], row);
                      Reg<U32> at = b.constant<U32>(0), total = b.constant<U32>(0);
                      pass_characters(b, text.at, text.length, at, text.length, total);
                      Reg<U32> first = b.sub(total, b.min(total, b.cvt<U32>(p[2])));
                      Reg<U32> place = b.constant<U32>(0), passed = b.constant<U32>(0);
                      pass_characters(b, text.at, text.length, place, first, passed);
                      if (without)
                        store_part(b, p[3], row, text, b.constant<U32>(0), place);
                      else
                        store_part(b, p[3], row, text, place, text.length);
                    });
}

uint32_t build_position(ptx::Module& module, std::string_view name) {
  return build_rows(module, name, {"handles", "pad", "bytes", "size", "out"},
                    [](Builder& b, std::span<const Reg<U64>> p, Reg<U32> row, LabelId) {
                      const Text text = text_at(b, p[0], p[1], row);
                      Reg<U32> at = b.constant<U32>(0), place = b.constant<U32>(0);
                      Reg<U32> passed = b.constant<U32>(0), result = b.constant<U32>(0);
                      const LabelId nowhere = b.label();
                      find_bytes(b, text, p[2], b.cvt<U32>(p[3]), at, nowhere);
                      pass_characters(b, text.at, at, place, at, passed);
                      b.add(passed, 1u, result);
                      b.bind(nowhere);
                      b.st<U64>(Space::global, element_at(b, p[4], row, 8), b.cvt<U64>(result));
                    });
}

// out[at[row]] = bytes[row]
uint32_t build_put_bytes(ptx::Module& module, std::string_view name) {
  return build_rows(module, name, {"at", "bytes", "out"},
                    [](Builder& b, std::span<const Reg<U64>> p, Reg<U32> row, LabelId) {
                      Reg<U32> to =
                          b.cvt<U32>(b.ld<U64>(Space::global, element_at(b, p[0], row, 8)));
                      Reg<U16> byte = b.ld<U8>(Space::global, element_at(b, p[1], row, 1));
                      b.st<U8>(Space::global, element_at(b, p[2], to, 1), byte);
                    });
}

Result<Strings> part_parts_of(Library& library, const Strings& strings, const Library::Row& kernel,
                         std::vector<uint64_t> words, Memory& memory) {
  Strings out = strings;
  ASSIGN_OR_RETURN(out.handles, memory.result(8 * std::max<uint64_t>(strings.count, 1)));
  words.insert(words.begin(), {strings.handles, strings.pad});
  words.push_back(out.handles);
  RETURN_IF_ERROR(launch_rows(library, kernel, strings.count, words, 16));
  return out;
}

Library::Row trim_kernel(bool front, bool back) {
  return {std::string("text_trim") + (front ? "_front" : "") + (back ? "_back" : ""),
          [front, back](ptx::Module& m, std::string_view name) { return build_trim(m, name, front, back); }};
}
Library::Row tail_kernel(bool without) {
  return {without ? "text_without_tail" : "text_tail",
          [without](ptx::Module& m, std::string_view name) { return build_tail(m, name, without); }};
}

}  // namespace

void add_parts_of_strings(KernelRows& rows) {
  rows.insert(rows.end(), {trim_kernel(true, false), trim_kernel(false, true), trim_kernel(true, true),
                           tail_kernel(false), tail_kernel(true)});
  rows.insert(rows.end(), {{"text_between", build_between}, {"text_position", build_position}, {"put_bytes", build_put_bytes}});
}

Result<Strings> trimmed(Library& library, const Strings& strings, std::string_view set, bool front,
                        bool back, Memory& memory) {
  uint64_t bits[2] = {0, 0};
  for (const char c : set) bits[(c >> 6) & 1] |= uint64_t{1} << (c & 63);
  return part_parts_of(library, strings, trim_kernel(front, back), {bits[0], bits[1]}, memory);
}

Result<Strings> part_between(Library& library, const Strings& strings, std::string_view separator,
                             uint64_t number, Memory& memory) {
  ASSIGN_OR_RETURN(const Address bytes, send_bytes(library, separator, memory));
  return part_parts_of(library, strings, {"text_between", build_between},
                  {bytes, separator.size(), std::min<uint64_t>(number, UINT32_MAX)}, memory);
}

Result<Strings> tail(Library& library, const Strings& strings, uint64_t characters, bool without,
                     Memory& memory) {
  return part_parts_of(library, strings, tail_kernel(without), {std::min<uint64_t>(characters, UINT32_MAX)}, memory);
}

Result<Vector> positions(Library& library, const Strings& strings, std::string_view wanted,
                         Memory& memory) {
  Vector out{.type = Type::i64, .capacity = strings.count, .min = 0, .max = longest_string + 1};
  ASSIGN_OR_RETURN(out.data, memory.result(8 * std::max<uint64_t>(strings.count, 1)));
  ASSIGN_OR_RETURN(const Address bytes, send_bytes(library, wanted, memory));
  RETURN_IF_ERROR(launch_rows(library, "text_position", build_position, strings.count,
                              {strings.handles, strings.pad, bytes, wanted.size(), out.data}, 16));
  return out;
}

Result<void> put_bytes(Library& library, const Vector& at, const Vector& bytes, Address into) {
  return launch_rows(library, "put_bytes", build_put_bytes, at.capacity,
                     {at.data, bytes.data, into}, 18);
}

}  // namespace rndn::operators
