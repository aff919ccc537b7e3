// Records by key: what a kernel reads of the rows of a table that it looks up, side by side (ptx/encodings/record.cpp), a record per key, in the order
// of keys. The number of a key is then that of its record: no table is asked, and what is read is one sector, where there would be one for the row
// and one for each column.
//
// Every key in a range is there once (data::Statistics::dense), so that all records are written, each by one thread, and nothing is cleared. A key
// beyond the range, which bounds that do not hold could leave, writes nothing.
// Cost: O(rows), columns read in order, one random access per row. Left out: gaps between keys, which would need a bit of the record.
#include <algorithm>

#include "libraries/operators/emit.h"
#include "libraries/operators/operators.h"

namespace rndn::operators {

namespace {

constexpr uint32_t threads_per_block = 256;

uint32_t build_put(ptx::Module& module, std::string_view name, const Field& keys, const std::vector<Field>& fields) {
  using encodings::Words;
  KernelBuilder b(module, name);
  b.set_block_size(threads_per_block);
  const Param rows_at = b.parameter<U64>("rows"), least_at = b.parameter<U64>("least"), records_at = b.parameter<U64>("records"),
              keys_at = b.parameter<U64>("keys");
  std::vector<Param> data;
  for (size_t k = 0; k < fields.size(); ++k) data.push_back(b.parameter<U64>("field" + std::to_string(k)));
  Reg<U32> rows = b.cvt<U32>(b.ld_param(rows_at));
  Reg<U64> least = b.ld_param(least_at), records = b.ld_param(records_at);
  Reg<U32> row = b.mad_lo(b.special(ptx::SpecialRegister::ctaid_x), threads_per_block, b.special(ptx::SpecialRegister::tid_x));
  Reg<U32> step = b.mul_lo(b.special(ptx::SpecialRegister::nctaid_x), threads_per_block);
  const auto element = [&](const Field& f, Param at) {
    const encodings::Encoding& form = encodings::find(f.from);
    Words w = form.fresh(b, f.type, f.from);
    form.clear(b, f.type, f.from, w);
    form.load(b, f.type, f.from, form.place(b, f.type, f.from, b.ld_param(at), row), 0, {}, w);
    return form.decode(b, f.type, f.from, w);
  };
  const ptx::LabelId loop = b.label(), done = b.label();
  b.bind(loop);
  b.when(b.setp(Is::ge, row, rows)).bra(done);
  const Words key = element(keys, keys_at);
  Reg<S64> number = encodings::rep_of(keys.type) == encodings::Rep::s64 ? Reg<S64>{key.at[0]} : b.cvt<S64>(Reg<S32>{key.at[0]});
  Reg<U64> place = b.sub(Builder::as<U64>(number), least);
  const uint32_t bytes = fields[0].to.bytes;
  std::vector<Reg<U64>> words((bytes + 7) / 8);
  for (size_t k = 0; k < fields.size(); ++k) {
    const Field& f = fields[k];
    if (f.to.bits == 0) continue;
    Reg<U64> bits = encodings::record_bits(b, f.type, f.to, element(f, data[k]));
    Reg<U64>& word = words[f.to.begin / 64];
    word = word.valid() ? b.or_(word, bits) : bits;
  }
  Reg<Pred> inside = b.setp(Is::lt, place, b.cvt<U64>(rows));
  Reg<U64> at = b.mad_wide(b.cvt<U32>(place), bytes, records);
  for (size_t w = 0; w < words.size(); ++w) {
    if (!words[w].valid()) words[w] = b.constant<U64>(0);
    const At to(at, static_cast<int64_t>(8 * w));
    if (bytes >= 8) {
      store_if<U64>(b, inside, Space::global, to, words[w]);
      continue;
    }
    Reg<U32> low = b.cvt<U32>(words[w]);
    b.when(inside).emit(ptx::Opcode::st, bytes == 1 ? ptx::Type::u8 : bytes == 2 ? ptx::Type::u16 : ptx::Type::u32, {.space = Space::global}, {},
                        {to.operand, Builder::use(low)});
  }
  b.add(row, step, row);
  b.bra(loop);
  b.bind(done);
  b.ret();
  b.finish();
  return threads_per_block;
}

}  // namespace

Result<void> put_records(Library& library, const Field& keys, uint64_t rows, int64_t least, std::span<const Field> fields, Address records) {
  const auto form = [](const Field& f, const encodings::Stored& s) { return fmt::format("_{}_{}", hir::row(f.type).name, encodings::text(s)); };
  std::string name = "records" + form(keys, keys.from);
  std::vector<Field> forms(fields.begin(), fields.end());
  uint64_t bits = encodings::bits_of(keys.type, keys.from) + encodings::bits_of(forms[0].type, forms[0].to);
  for (const Field& f : forms) {
    name += form(f, f.from) + "_" + encodings::text(f.to);
    bits += encodings::bits_of(f.type, f.from);
  }
  ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel(name, [keys, forms](ptx::Module& module, std::string_view of) {
    return build_put(module, of, keys, forms);
  }));
  Arguments a;
  a.add(rows).add(static_cast<uint64_t>(least)).add(records).add(keys.data);
  for (const Field& f : forms) a.add(f.data);
  return library.launch(*kernel, library.grid(*kernel, (rows + threads_per_block - 1) / threads_per_block), a, rows * bits / 8);
}

}  // namespace rndn::operators
