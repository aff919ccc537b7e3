// Strings with bytes of their own, from strings and integers: put together, padded, turned around, with parts replaced
// (api.h). A string per thread.
//
// A function is written once, as what it appends (`Out`), and becomes two kernels: `measure` adds up
// the bytes that each string will have, a scan tells where each lies, and `write` puts them there, in
// aligned words of eight bytes where there are that many. Places are found from left to right, which
// is right for UTF-8: no character begins within another one. `reversed` turns bytes, and is for
// strings of ASCII.
//
// Cost: the bytes read twice and written once; one wait, for their number. Leaves out: several lanes
// for one long string; parts of an earlier pad, which would spare the copies of unchanged strings.
#include <algorithm>

#include "libraries/operators/keys.h"
#include "libraries/operators/operators.h"
#include "libraries/operators/text/rows.h"

namespace rndn::operators {

namespace {

// What a string of the result has, from its front on.
class Out {
 public:
  Out(Builder& b, bool writes, Reg<U64> at) : b_(b), writes_(writes), at_(at) {}
  void bytes(Reg<U64> from, Reg<U32> count) {
    if (!writes_) {
      b_.add(at_, b_.cvt<U64>(count), at_);
      return;
    }
    Reg<U32> done = b_.constant<U32>(0);
    const LabelId next = b_.label(), by_word = b_.label(), end = b_.label();
    b_.bind(next);
    b_.when(b_.setp(Is::ge, done, count)).bra(end);
    Reg<U32> left = b_.sub(count, done);
    Reg<U64> source = b_.add(from, b_.cvt<U64>(done));
    Reg<Pred> is_word = b_.setp(Is::ge, left, 8u);
    b_.setp(Is::eq, ptx::Combine::and_, b_.and_(b_.cvt<U32>(at_), 7u), 0u, is_word, is_word);
    b_.when(is_word).bra(by_word);
    b_.st<U8>(Space::global, At(at_), b_.ld<U8>(Space::global, At(source)));
    b_.add(at_, 1u, at_);
    b_.add(done, 1u, done);
    b_.bra(next);
    b_.bind(by_word);
    b_.st<U64>(Space::global, At(at_), load_bytes(b_, source, done, count));
    b_.add(at_, 8u, at_);
    b_.add(done, 8u, done);
    b_.bra(next);
    b_.bind(end);
  }
  void byte(Reg<U16> value) {
    if (writes_) b_.st<U8>(Space::global, At(at_), value);
    b_.add(at_, 1u, at_);
  }

 private:
  Builder& b_;
  bool writes_;
  Reg<U64> at_;  // the length so far, or where the next byte goes
};

// append(builder, parameters, row, out)
using Append = std::function<void(Builder&, std::span<const Reg<U64>>, Reg<U32>, Out&)>;

struct Edit {
  std::string name;
  std::vector<std::string> parameters;
  std::vector<uint64_t> words;  // their values
  Append append;
};

uint32_t build_measure(ptx::Module& module, std::string_view name, const Edit& edit) {
  std::vector<std::string> names = edit.parameters;
  names.push_back("lengths");
  return build_rows(module, name, names,
                    [&](Builder& b, std::span<const Reg<U64>> p, Reg<U32> row, LabelId) {
                      Reg<U64> length = b.constant<U64>(0);
                      Out out(b, false, length);
                      edit.append(b, p.first(p.size() - 1), row, out);
                      b.st<U64>(Space::global, element_at(b, p.back(), row, 8), length);
                    });
}

// `longest`: of a u32 that is set where a string has more bytes than a handle can tell.
uint32_t build_write(ptx::Module& module, std::string_view name, const Edit& edit) {
  std::vector<std::string> names = edit.parameters;
  for (const char* more : {"places", "pad_out", "handles_out", "longest"}) names.push_back(more);
  const size_t own = edit.parameters.size();
  return build_rows(module, name, names,
                    [&](Builder& b, std::span<const Reg<U64>> p, Reg<U32> row, LabelId next_row) {
                      Reg<U64> place = b.ld<U64>(Space::global, element_at(b, p[own], row, 8));
                      Reg<U64> end =
                          b.ld<U64>(Space::global, At(element_address(b, p[own], row, 8), 8));
                      Reg<U64> length = b.sub(end, place);
                      const LabelId fits = b.label();
                      b.when(b.setp(Is::le, length, uint64_t{longest_string})).bra(fits);
                      b.st<U32>(Space::global, volatile_access, At(p[own + 3]), b.constant<U32>(1));
                      b.bra(next_row);
                      b.bind(fits);
                      b.st<U64>(Space::global, element_at(b, p[own + 2], row, 8),
                                b.or_(b.shl(place, 24u), length));
                      Out out(b, true, b.add(p[own + 1], place));
                      edit.append(b, p.first(own), row, out);
                    });
}

Result<Strings> run(Library& library, uint64_t count, uint64_t read_bytes, const Edit& edit,
                    Memory& memory) {
  if (count == 0) return room_for_strings(library, 0, 0, memory);
  Vector lengths{.type = Type::i64, .capacity = count, .min = 0, .max = INT64_MAX};
  ASSIGN_OR_RETURN(lengths.data, memory.temporary(8 * count));
  std::vector<uint64_t> words = edit.words;
  words.push_back(lengths.data);
  RETURN_IF_ERROR(launch_rows(
      library, edit.name + "_measure",
      [&](ptx::Module& m, std::string_view name) { return build_measure(m, name, edit); }, count,
      words, 16 + read_bytes / count));
  ASSIGN_OR_RETURN(const Vector places, offsets(library, lengths, memory));
  uint64_t bytes = 0;
  RETURN_IF_ERROR(library.device().copy_to_host(&bytes, places.data + 8 * count, 8));
  ASSIGN_OR_RETURN(Strings out, room_for_strings(library, count, bytes, memory));
  ASSIGN_OR_RETURN(const Address longest, memory.temporary(4));
  RETURN_IF_ERROR(library.device().fill(longest, 0, 4));
  words.pop_back();
  for (const uint64_t word : {places.data, out.pad, out.handles, longest}) words.push_back(word);
  RETURN_IF_ERROR(launch_rows(
      library, edit.name + "_write",
      [&](ptx::Module& m, std::string_view name) { return build_write(m, name, edit); }, count,
      words, 24 + (read_bytes + bytes) / count));
  uint32_t is_too_long = 0;
  RETURN_IF_ERROR(library.device().copy_to_host(&is_too_long, longest, 4));
  if (is_too_long) return input_error("a text is longer than 16 MiB");
  return out;
}

}  // namespace

Result<Strings> join_strings(Library& library, std::span<const Strings> parts, uint64_t count,
                             Memory& memory) {
  Edit edit{.name = "text_join_", .parameters = {}, .words = {}, .append = {}};
  std::vector<bool> is_one;
  uint64_t read = 0;
  for (const Strings& part : parts) {
    is_one.push_back(part.count == 1 && count != 1);
    edit.name += is_one.back() ? '1' : 'n';
    for (const char* what : {"handles", "pad"})
      edit.parameters.push_back(fmt::format("{}{}", what, is_one.size()));
    edit.words.push_back(part.handles);
    edit.words.push_back(part.pad);
    read += part.pad_bytes;
  }
  edit.append = [&](Builder& b, std::span<const Reg<U64>> p, Reg<U32> row, Out& out) {
    for (size_t k = 0; k < is_one.size(); ++k) {
      const Text text = text_at(b, p[2 * k], p[2 * k + 1], is_one[k] ? b.constant<U32>(0) : row);
      out.bytes(text.at, text.length);
    }
  };
  return run(library, count, read, edit, memory);
}

Result<Strings> replace_parts(Library& library, const Strings& strings, std::string_view what,
                              std::string_view by, Memory& memory) {
  ASSIGN_OR_RETURN(const Address what_at, send_bytes(library, what, memory));
  ASSIGN_OR_RETURN(const Address by_at, send_bytes(library, by, memory));
  Edit edit{.name = "text_replace",
            .parameters = {"handles", "pad", "what", "what_bytes", "by", "by_bytes"},
            .words = {strings.handles, strings.pad, what_at, what.size(), by_at, by.size()},
            .append = [](Builder& b, std::span<const Reg<U64>> p, Reg<U32> row, Out& out) {
              const Text text = text_at(b, p[0], p[1], row);
              Reg<U32> size = b.cvt<U32>(p[3]), new_size = b.cvt<U32>(p[5]);
              Reg<U32> from = b.constant<U32>(0), at = b.constant<U32>(0);
              const LabelId next = b.label(), done = b.label();
              b.bind(next);
              find_bytes(b, text, p[2], size, at, done);
              out.bytes(b.add(text.at, b.cvt<U64>(from)), b.sub(at, from));
              out.bytes(p[4], new_size);
              b.add(at, size, at);
              b.mov(at, from);
              b.bra(next);
              b.bind(done);
              out.bytes(b.add(text.at, b.cvt<U64>(from)), b.sub(text.length, from));
            }};
  return run(library, strings.count, strings.pad_bytes, edit, memory);
}

Result<Strings> pad_strings(Library& library, const Strings& strings, uint64_t wanted,
                            std::string_view by, bool front, Memory& memory) {
  ASSIGN_OR_RETURN(const Address by_at, send_bytes(library, by, memory));
  Edit edit{.name = front ? "text_pad_front" : "text_pad_back",
            .parameters = {"handles", "pad", "wanted", "by", "by_bytes"},
            .words = {strings.handles, strings.pad, std::min<uint64_t>(wanted, longest_string + 1),
                      by_at, by.size()},
            .append = [=](Builder& b, std::span<const Reg<U64>> p, Reg<U32> row, Out& out) {
              const Text text = text_at(b, p[0], p[1], row);
              Reg<U32> goal = b.cvt<U32>(p[2]), period = b.cvt<U32>(p[4]);
              Reg<U32> end = b.constant<U32>(0), characters = b.constant<U32>(0);
              pass_characters(b, text.at, text.length, end, goal, characters);
              if (!front) out.bytes(text.at, end);
              Reg<U32> at = b.constant<U32>(0);
              const LabelId next = b.label(), done = b.label();
              b.bind(next);
              b.when(b.setp(Is::ge, characters, goal)).bra(done);
              out.byte(b.ld<U8>(Space::global, At(b.add(p[3], b.cvt<U64>(at)))));
              b.add(at, 1u, at);
              b.when(b.setp(Is::eq, at, period)).constant<U32>(0, at);
              b.add(characters, 1u, characters);
              b.bra(next);
              b.bind(done);
              if (front) out.bytes(text.at, end);
            }};
  return run(library, strings.count, strings.pad_bytes, edit, memory);
}

Result<Strings> reversed(Library& library, const Strings& strings, Memory& memory) {
  constexpr std::string_view one = "\r\n";
  ASSIGN_OR_RETURN(const Address one_at, send_bytes(library, one, memory));
  Edit edit{.name = "text_reverse",
            .parameters = {"handles", "pad", "one", "one_bytes"},
            .words = {strings.handles, strings.pad, one_at, one.size()},
            .append = [](Builder& b, std::span<const Reg<U64>> p, Reg<U32> row, Out& out) {
              const Text text = text_at(b, p[0], p[1], row);
              Reg<U32> at = b.constant<U32>(0);
              const LabelId next = b.label(), plain = b.label(), done = b.label();
              find_bytes(b, text, p[2], b.cvt<U32>(p[3]), at, plain);
              b.bra(done);
              b.bind(plain);
              b.mov(text.length, at);
              b.bind(next);
              b.when(b.setp(Is::eq, at, 0u)).bra(done);
              b.sub(at, 1u, at);
              out.byte(b.ld<U8>(Space::global, At(b.add(text.at, b.cvt<U64>(at)))));
              b.bra(next);
              b.bind(done);
            }};
  return run(library, strings.count, strings.pad_bytes, edit, memory);
}

Result<Strings> integer_texts(Library& library, const Vector& integers, uint64_t count,
                              Memory& memory) {
  const Type type = integers.type;
  Edit edit{.name = std::string("text_of_") + type_name(type),
            .parameters = {"integers"},
            .words = {integers.data},
            .append = [type](Builder& b, std::span<const Reg<U64>> p, Reg<U32> row, Out& out) {
              const Element e = load_element(b, type, element_at(b, p[0], row, width(type)));
              Reg<S64> value = is_wide(type)       ? Builder::as<S64>(e.u64)
                               : is_unsigned(type) ? Builder::as<S64>(b.cvt<U64>(e.u32))
                                                   : b.cvt<S64>(Builder::as<S32>(e.u32));
              Reg<U64> left = b.mov(Builder::as<U64>(value)), power = b.constant<U64>(1);
              const LabelId positive = b.label(), next_power = b.label(), next_digit = b.label();
              b.when(b.setp(Is::ge, value, 0)).bra(positive);
              out.byte(b.constant<U16>('-'));
              b.sub(b.constant<U64>(0), left, left);
              b.bind(positive);
              Reg<U64> tenth = b.div(left, 10u);
              const LabelId is_highest = b.label();
              b.bind(next_power);
              b.when(b.setp(Is::gt, power, tenth)).bra(is_highest);
              b.mul_lo(power, 10u, power);
              b.bra(next_power);
              b.bind(is_highest);
              b.bind(next_digit);
              Reg<U64> digit = b.div(left, power);
              out.byte(b.cvt<U16>(b.add(b.cvt<U32>(digit), static_cast<uint32_t>('0'))));
              b.sub(left, b.mul_lo(digit, power), left);
              b.div(power, 10u, power);
              b.when(b.setp(Is::ne, power, 0u)).bra(next_digit);
            }};
  return run(library, count, count * width(type), edit, memory);
}

}  // namespace rndn::operators
