// Kernels with a string per thread, and what they share (rows.h).
//
// Characters are those of runtime/text/utf8.h: a byte that begins none of them is one by itself.
// They are passed over one by one, and bytes are looked for place by place: O(bytes) per string, and
// O(bytes * count) where most places agree at first.
#include "libraries/operators/text/rows.h"

namespace rndn::operators {

Text text_at(Builder& b, Reg<U64> handles, Reg<U64> pad, Reg<U32> row) {
  Text t;
  t.handle = b.ld<U64>(Space::global, element_at(b, handles, row, 8));
  t.at = b.add(pad, b.shr(t.handle, 24u));
  t.length = b.and_(b.cvt<U32>(t.handle), longest_string);
  return t;
}

uint32_t build_rows(ptx::Module& module, std::string_view name,
                    const std::vector<std::string>& names, const RowBody& body) {
  KernelBuilder b(module, name);
  b.set_block_size(block_threads);
  std::vector<Parameter> declared{b.parameter<U64>("count")};
  for (const std::string& p : names) declared.push_back(b.parameter<U64>(p));
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

Result<void> launch_rows(Library& library, std::string_view name, const Library::Build& build,
                         uint64_t rows, const std::vector<uint64_t>& words,
                         uint64_t bytes_per_row) {
  if (rows == 0) return {};
  if (rows > max_rows)
    return input_error("a vector of {} elements is too long for an operator: at most {}", rows,
                       max_rows);
  ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel(name, build));
  Arguments a;
  a.add(rows);
  for (const uint64_t word : words) a.add(word);
  return library.launch(*kernel, library.grid(*kernel, tiles_for(rows, block_threads)), a,
                        rows * bytes_per_row);
}

Reg<U32> load_byte(Builder& b, Reg<U64> text, Reg<U32> at) {
  return b.cvt<U32>(b.ld<U8>(Space::global, At(b.add(text, b.cvt<U64>(at)))));
}

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

void find_bytes(Builder& b, const Text& text, Reg<U64> bytes, Reg<U32> count, Reg<U32> at,
                LabelId nowhere) {
  const LabelId next_place = b.label(), next_byte = b.label(), differs = b.label(),
                there = b.label();
  b.bind(next_place);
  b.when(b.setp(Is::gt, b.add(at, count), text.length)).bra(nowhere);
  Reg<U64> here = b.add(text.at, b.cvt<U64>(at));
  Reg<U32> k = b.constant<U32>(0);
  b.bind(next_byte);
  b.when(b.setp(Is::ge, k, count)).bra(there);
  Reg<U32> own = load_byte(b, here, k), wanted = load_byte(b, bytes, k);
  b.when(b.setp(Is::ne, own, wanted)).bra(differs);
  b.add(k, 1u, k);
  b.bra(next_byte);
  b.bind(differs);
  b.add(at, 1u, at);
  b.bra(next_place);
  b.bind(there);
}

Result<Address> send_bytes(Library& library, std::string_view bytes, Memory& memory) {
  const uint64_t whole = (std::max<uint64_t>(bytes.size(), 1) + 7) / 8 * 8;
  std::string words(bytes);
  words.resize(whole);
  ASSIGN_OR_RETURN(const Address address, memory.temporary(whole));
  RETURN_IF_ERROR(library.device().copy_to_device(address, words.data(), whole));
  return address;
}

Result<Strings> room_for_strings(Library& library, uint64_t count, uint64_t pad_bytes,
                                 Memory& memory) {
  Strings out{.count = count, .pad_bytes = pad_bytes};
  if (pad_bytes > uint64_t{1} << 40)
    return input_error("texts of {} bytes in one vector are too many", pad_bytes);
  ASSIGN_OR_RETURN(out.handles, memory.result(8 * std::max<uint64_t>(count, 1)));
  const uint64_t whole = (std::max<uint64_t>(pad_bytes, 1) + 7) / 8 * 8;
  ASSIGN_OR_RETURN(out.pad, memory.result(whole));
  RETURN_IF_ERROR(library.device().fill(out.pad + whole - 8, 0, 8));
  return out;
}

}  // namespace rndn::operators
