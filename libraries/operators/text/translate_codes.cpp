// translate: text codes of one dictionary to those of another, through a table. One pass, four codes per thread.
#include "libraries/operators/fragments.h"
#include "libraries/operators/operators.h"
#include "libraries/operators/ready.h"

namespace rndn::operators {

namespace {

constexpr uint32_t code_items = 4;
constexpr uint32_t code_tile_rows = block_threads * code_items;

uint32_t build_translate(ptx::Module& module, std::string_view name, Type type) {
  KernelBuilder b(module, name);
  b.set_block_size(block_threads);
  const VectorParameters codes = vector_parameters(b, "codes");
  const Parameter table_at = b.parameter<U64>("table"), entries_at = b.parameter<U64>("entries");
  const Parameter out_at = b.parameter<U64>("out"), slot_at = b.parameter<U64>("out_slot");
  const Thread t = thread_of(b);
  Reg<U32> n = rows_of(b, codes.slot, codes.capacity);
  Reg<U64> data = b.ld_param(codes.data), table = b.ld_param(table_at), out = b.ld_param(out_at);
  Reg<U64> entries = b.ld_param(entries_at), slot = b.ld_param(slot_at);
  const LabelId sized = b.label();
  b.when(b.setp(ptx::Compare::ne, b.or_(b.special(ptx::SpecialRegister::ctaid_x), t.tid), 0)).bra(sized);
  b.when(b.setp(ptx::Compare::eq, slot, 0)).bra(sized);
  b.st<U64>(Space::global, At(slot), b.cvt<U64>(n));
  b.bind(sized);
  Reg<U32> last = b.sub(n, 1);
  for_tiles(b, tiles_of(b, n, code_tile_rows), [&](Reg<U32> tile) {
    Reg<U32> first = b.mad_lo(tile, code_tile_rows, t.tid), code[code_items];
    for (uint32_t k = 0; k < code_items; ++k)
      code[k] = b.mov(load_element(b, type, element_at(b, data, b.min(b.add(first, k * block_threads), last), width(type))).u32);
    for (uint32_t k = 0; k < code_items; ++k) {
      Reg<Pred> within = b.setp(ptx::Compare::lt, b.cvt<U64>(code[k]), entries);
      const At at = element_at(b, table, code[k], 4);
      b.when(within).ld<U32>(Space::global, {.cache = ptx::Cache::nc}, at, code[k]);
    }
    for (uint32_t k = 0; k < code_items; ++k) {
      Reg<U32> row = b.add(first, k * block_threads);
      const At at = element_at(b, out, row, 4);
      b.when(b.setp(ptx::Compare::lt, row, n)).st<U32>(Space::global, at, code[k]);
    }
  });
  b.ret();
  b.finish();
  return block_threads;
}

Library::Row translation(Type codes) {
  return {std::string("translate_") + type_name(codes),
          [codes](ptx::Module& module, std::string_view name) { return build_translate(module, name, codes); }};
}

}  // namespace

void add_translations(KernelRows& rows) {
  for (Type codes : {Type::u8, Type::u16, Type::u32}) rows.push_back(translation(codes));
}

Result<Vector> translate(Library& library, const Vector& codes, Address table, uint64_t entries, Memory& memory) {
  RETURN_IF_ERROR(check_rows({&codes, 1}));
  if (!is_unsigned(codes.type)) return input_error("translate expects codes of text, got {}", type_name(codes.type));
  Vector out{.type = Type::u32, .capacity = codes.capacity};
  ASSIGN_OR_RETURN(out.data, memory.result(codes.capacity * 4));
  if (codes.size_slot) {
    ASSIGN_OR_RETURN(out.size_slot, memory.result(8));
  }
  if (codes.capacity == 0 && !codes.size_slot) return out;
  ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel(translation(codes.type)));
  Arguments a;
  add(a, codes);
  a.add(table).add(entries).add(out.data).add(out.size_slot);
  RETURN_IF_ERROR(
      library.launch(*kernel, library.grid(*kernel, tiles_for(codes.capacity, code_tile_rows)), a, codes.capacity * (4 + width(codes.type))));
  return out;
}

}  // namespace rndn::operators
