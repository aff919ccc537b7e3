// same_as, places_among: strings against a few literals, byte by byte (api.h). What compares a text
// with constants needs no more, so that a column of many texts need not be ranked for it.
//
// The literals are distinct and in byte order. A thread looks for the first literal that is not
// before its string, by bisection; two texts are compared eight bytes at a time, big-endian and
// padded with zeros, and then by length (which is byte order: a text is before what it begins).
// same_as passes over lengths that no literal has. It takes two launches: the first lets the
// strings that equal a literal agree on the smallest of their numbers, the second writes it in
// their places.
//
// Cost: the handles once, and of the strings that have a fitting length the words that tell them
// from log2(literals) literals. Leaves out: hashing of many literals.
#include "libraries/operators/fragments.h"
#include "libraries/operators/keys.h"
#include "libraries/operators/operators.h"
#include "libraries/operators/ready.h"

namespace rndn::operators {

namespace {

struct LiteralText {
  Reg<U64> at;
  Reg<U32> length;
};

LiteralText text_of(Builder& b, Reg<U64> handles, Reg<U64> pad, Reg<U32> number) {
  Reg<U64> handle = b.ld<U64>(Space::global, At(element_address(b, handles, number, 8)));
  return {b.add(pad, b.shr(handle, 24u)), b.and_(b.cvt<U32>(handle), 0xFFFFFFu)};
}

// Numbers of strings that equal literal k are count + k until `settle` has run.
uint32_t build_find(ptx::Module& module, std::string_view name, bool places) {
  KernelBuilder b(module, name);
  b.set_block_size(block_threads);
  const Parameter count_at = b.parameter<U64>("count"), handles_at = b.parameter<U64>("handles");
  const Parameter pad_at = b.parameter<U64>("pad"), literals_at = b.parameter<U64>("literals");
  const Parameter literal_handles_at = b.parameter<U64>("literal_handles");
  const Parameter literal_pad_at = b.parameter<U64>("literal_pad");
  const Parameter firsts_at = b.parameter<U64>("firsts"), out_at = b.parameter<U64>("out");
  const Thread t = thread_of(b);
  Reg<U32> n = b.cvt<U32>(b.ld_param(count_at)), literals = b.cvt<U32>(b.ld_param(literals_at));
  Reg<U64> handles = b.ld_param(handles_at), pad = b.ld_param(pad_at), out = b.ld_param(out_at);
  Reg<U64> literal_handles = b.ld_param(literal_handles_at),
           literal_pad = b.ld_param(literal_pad_at);
  Reg<U64> firsts = b.ld_param(firsts_at);
  Reg<U32> shortest = b.constant<U32>(0xFFFFFFu), longest = b.constant<U32>(0);
  if (!places) {
    const LabelId next = b.label(), done = b.label();
    Reg<U32> k = b.constant<U32>(0);
    b.bind(next);
    b.when(b.setp(Is::ge, k, literals)).bra_uni(done);
    Reg<U32> length = text_of(b, literal_handles, literal_pad, k).length;
    b.min(shortest, length, shortest);
    b.max(longest, length, longest);
    b.add(k, 1u, k);
    b.bra(next);
    b.bind(done);
  }
  for_rows(b, t, n, [&](Reg<U32> row, LabelId) {
    const LiteralText text = text_of(b, handles, pad, row);
    Reg<U32> low = b.constant<U32>(0), high = b.mov(literals), equal = b.constant<U32>(0);
    const LabelId next_probe = b.label(), found = b.label();
    if (!places) {
      b.when(b.setp(Is::lt, text.length, shortest)).bra(found);
      b.when(b.setp(Is::gt, text.length, longest)).bra(found);
    }
    b.bind(next_probe);
    b.when(b.setp(Is::ge, low, high)).bra(found);
    Reg<U32> middle = b.shr(b.add(low, high), 1u);
    const LiteralText other = text_of(b, literal_handles, literal_pad, middle);
    Reg<U32> longer = b.max(text.length, other.length), first = b.constant<U32>(0);
    Reg<U64> x = b.constant<U64>(0), y = b.constant<U64>(0);
    const LabelId next_word = b.label(), words_done = b.label();
    b.bind(next_word);
    b.when(b.setp(Is::ge, first, longer)).bra(words_done);
    Reg<U64> offset = b.cvt<U64>(first);
    b.mov(load_text_word(b, b.add(text.at, offset), first, text.length), x);
    b.mov(load_text_word(b, b.add(other.at, offset), first, other.length), y);
    b.when(b.setp(Is::ne, x, y)).bra(words_done);
    b.add(first, 8u, first);
    b.bra(next_word);
    b.bind(words_done);
    // Equal words: the lengths tell.
    Reg<Pred> same_words = b.setp(Is::eq, x, y);
    Reg<U64> left = b.selp(b.cvt<U64>(text.length), x, same_words);
    Reg<U64> right = b.selp(b.cvt<U64>(other.length), y, same_words);
    b.when(b.setp(Is::eq, left, right)).constant<U32>(1, equal);
    b.when(b.setp(Is::eq, left, right)).mov(middle, low);
    b.when(b.setp(Is::eq, left, right)).bra(found);
    Reg<Pred> before = b.setp(Is::lt, left, right);
    b.when(before).mov(middle, high);
    b.unless(before).add(middle, 1u, low);
    b.bra(next_probe);
    b.bind(found);
    if (places) {
      b.st<U32>(Space::global, At(element_address(b, out, row, 4)), b.add(b.shl(low, 1u), equal));
      return;
    }
    const LabelId other_text = b.label();
    Reg<U32> number = b.mov(row);
    const At first_at(element_address(b, firsts, low, 4));
    b.when(b.setp(Is::eq, equal, 0u)).bra(other_text);
    b.add(n, low, number);
    b.atom<U32>(ptx::AtomicOp::min, Space::global, first_at, row);
    b.bind(other_text);
    b.st<U32>(Space::global, At(element_address(b, out, row, 4)), number);
  });
  b.ret();
  b.finish();
  return block_threads;
}

uint32_t build_settle(ptx::Module& module, std::string_view name) {
  KernelBuilder b(module, name);
  b.set_block_size(block_threads);
  const Parameter count_at = b.parameter<U64>("count"), firsts_at = b.parameter<U64>("firsts");
  const Parameter out_at = b.parameter<U64>("out");
  const Thread t = thread_of(b);
  Reg<U32> n = b.cvt<U32>(b.ld_param(count_at));
  Reg<U64> firsts = b.ld_param(firsts_at), out = b.ld_param(out_at);
  for_rows(b, t, n, [&](Reg<U32> row, LabelId next_row) {
    const At at(element_address(b, out, row, 4));
    Reg<U32> number = b.ld<U32>(Space::global, at);
    b.when(b.setp(Is::lt, number, n)).bra(next_row);
    Reg<U32> first = b.ld<U32>(Space::global, At(element_address(b, firsts, b.sub(number, n), 4)));
    b.st<U32>(Space::global, at, first);
  });
  b.ret();
  b.finish();
  return block_threads;
}

Library::Row find_kernel(bool places) {
  return {places ? "text_places" : "text_same",
          [places](ptx::Module& m, std::string_view name) { return build_find(m, name, places); }};
}

Result<Vector> find(Library& library, const Strings& strings, const Strings& literals,
                    Address firsts, Memory& memory) {
  if (strings.count + literals.count > max_rows)
    return input_error("a vector of {} elements is too long for an operator: at most {}",
                       strings.count, max_rows);
  Vector out{.type = Type::u32, .capacity = strings.count};
  ASSIGN_OR_RETURN(out.data, memory.result(4 * std::max<uint64_t>(strings.count, 1)));
  if (strings.count == 0) return out;
  const bool places = firsts == 0;
  ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel(find_kernel(places)));
  Arguments a;
  a.add(strings.count)
      .add(strings.handles)
      .add(strings.pad)
      .add(literals.count)
      .add(literals.handles);
  a.add(literals.pad).add(firsts).add(out.data);
  const uint32_t grid = library.grid(*kernel, tiles_for(strings.count, block_threads));
  RETURN_IF_ERROR(library.launch(*kernel, grid, a, strings.count * 12));
  return out;
}

}  // namespace

void add_literals(KernelRows& rows) {
  for (bool places : {true, false}) rows.push_back(find_kernel(places));
  rows.push_back({"text_settle", build_settle});
}

Result<Same> same_as(Library& library, const Strings& strings, const Strings& literals,
                     Memory& memory) {
  Same out;
  ASSIGN_OR_RETURN(out.literals, memory.result(4 * literals.count));
  RETURN_IF_ERROR(library.device().fill(out.literals, 0xff, 4 * literals.count));
  ASSIGN_OR_RETURN(out.numbers, find(library, strings, literals, out.literals, memory));
  if (strings.count == 0) return out;
  out.numbers.min = 0;
  out.numbers.max = static_cast<int64_t>(strings.count) - 1;
  ASSIGN_OR_RETURN(const Kernel* settle, library.kernel("text_settle", build_settle));
  Arguments a;
  a.add(strings.count).add(out.literals).add(out.numbers.data);
  const uint32_t grid = library.grid(*settle, tiles_for(strings.count, block_threads));
  RETURN_IF_ERROR(library.launch(*settle, grid, a, strings.count * 4));
  return out;
}

Result<Vector> places_among(Library& library, const Strings& strings, const Strings& literals,
                            Memory& memory) {
  ASSIGN_OR_RETURN(Vector out, find(library, strings, literals, 0, memory));
  out.min = 0;
  out.max = static_cast<int64_t>(2 * literals.count);
  return out;
}

}  // namespace rndn::operators
