// gather, convert, decode, pair, and the parts of complex numbers: one element per thread in a grid-stride loop; each element is read and written once.
#include <string>

#include "libraries/operators/fragments.h"
#include "libraries/operators/operators.h"
#include "libraries/operators/ready.h"

namespace rndn::operators {

namespace {

constexpr uint32_t threads_per_block = 256;

// The frame that the kernels share: parameters in, capacity, slot, out, out_slot, and where `with_table` an address and a number; `body` is written once,
// for element `i`.
template <class Body>
uint32_t build_map(ptx::Module& module, std::string_view name, bool with_table, Body&& body) {
  KernelBuilder b(module, name);
  b.set_block_size(threads_per_block);
  const Param in_at = b.parameter<U64>("in"), capacity_at = b.parameter<U64>("capacity"),
              slot_at = b.parameter<U64>("slot"), out_at = b.parameter<U64>("out"),
              out_slot_at = b.parameter<U64>("out_slot");
  Reg<U64> table, entries;
  if (with_table) {
    table = b.ld_param(b.parameter<U64>("table"));
    entries = b.ld_param(b.parameter<U64>("entries"));
  }
  Reg<U64> in = b.ld_param(in_at), n = b.ld_param(capacity_at), slot = b.ld_param(slot_at), out = b.ld_param(out_at),
           out_slot = b.ld_param(out_slot_at);
  const ptx::LabelId fixed = b.label(), sized = b.label(), done = b.label(), loop = b.label();
  b.when(b.setp(Is::eq, slot, 0)).bra(fixed);
  b.min(n, b.ld<U64>(Space::global, At(slot)), n);
  b.bind(fixed);
  Reg<U32> tid = b.special(ptx::SpecialRegister::tid_x), block = b.special(ptx::SpecialRegister::ctaid_x);
  b.when(b.setp(Is::ne, b.or_(block, tid), 0u)).bra(sized);
  b.when(b.setp(Is::eq, out_slot, 0)).bra(sized);
  b.st<U64>(Space::global, At(out_slot), n);
  b.bind(sized);
  Reg<U64> i = b.mad_wide(block, threads_per_block, b.cvt<U64>(tid));
  Reg<U64> step = b.mul_wide(b.special(ptx::SpecialRegister::nctaid_x), threads_per_block);
  b.bind(loop);
  b.when(b.setp(Is::ge, i, n)).bra(done);
  body(b, in, out, i, table, entries);
  b.add(i, step, i);
  b.bra(loop);
  b.bind(done);
  b.ret();
  b.finish();
  return threads_per_block;
}

Reg<U64> at_element(Builder& b, Reg<U64> base, Reg<U64> i, uint32_t bytes) {
  return b.mad_lo(i, uint64_t{bytes}, base);
}

// The element at `at` in a register of its own kind, and f called with it.
template <class F>
void with_loaded(Builder& b, Type type, At at, F&& f) {
  switch (type) {
    case Type::u8: return f(b.cvt_byte<S32, U8>(b.ld<U8>(Space::global, at)));
    case Type::i8: return f(b.cvt_byte<S32, ptx::S8>(b.ld<ptx::S8>(Space::global, at)));
    case Type::u16: return f(b.cvt<S32>(b.ld<U16>(Space::global, at)));
    case Type::i16: return f(b.cvt<S32>(b.ld<ptx::S16>(Space::global, at)));
    case Type::i32: return f(b.ld<S32>(Space::global, at));
    case Type::u32: return f(b.cvt<S64>(b.ld<U32>(Space::global, at)));
    case Type::i64: return f(b.ld<S64>(Space::global, at));
    case Type::f32: return f(b.ld<ptx::F32>(Space::global, at));
    case Type::f64: return f(b.ld<ptx::F64>(Space::global, at));
  }
}

template <class To, class From>
Reg<To> converted(Builder& b, Reg<From> x) {
  if constexpr (std::is_same_v<To, From>)
    return x;
  else
    return b.cvt<To>(x);
}

// `bytes`: of an element of the result; 0: of its type.
Result<Vector> launch_map(Library& library, const Kernel& kernel, const Vector& in, Type type, const uint64_t* table,
                          uint64_t floor_bytes, Memory& memory, uint32_t bytes = 0) {
  Vector out{.type = type, .capacity = in.capacity};
  ASSIGN_OR_RETURN(out.data, memory.result(in.capacity * (bytes ? bytes : width(type))));
  if (in.size_slot) {
    ASSIGN_OR_RETURN(out.size_slot, memory.result(8));
  }
  Arguments a;
  a.add(in.data).add(in.capacity).add(in.size_slot).add(out.data).add(out.size_slot);
  if (table) a.add(table[0]).add(table[1]);
  const uint64_t tiles = (in.capacity + threads_per_block - 1) / threads_per_block;
  RETURN_IF_ERROR(library.launch(kernel, library.grid(kernel, tiles), a, floor_bytes));
  return out;
}

// Of elements of so many bytes, by codes.
Library::Row gather_kernel(uint32_t bytes, Type from) {
  auto build = [bytes, from](ptx::Module& module, std::string_view name) {
    return build_map(module, name, true,
                     [bytes, from](Builder& b, Reg<U64> in, Reg<U64> out, Reg<U64> i, Reg<U64> table, Reg<U64> entries) {
                       Reg<U64> code = b.cvt<U64>(load_element(b, from, At(at_element(b, in, i, width(from)))).u32);
                       Reg<Pred> known = b.setp(Is::lt, code, entries);
                       const At from(at_element(b, table, code, bytes)), to(at_element(b, out, i, bytes));
                       auto copy = [&]<class T>(T) {
                         Reg<ptx::RegisterTag<T>> x = b.constant<ptx::RegisterTag<T>>(0);
                         load_if<T>(b, known, Space::global, from, x);
                         b.st<T>(Space::global, to, x);
                       };
                       switch (bytes) {
                         case 1: return copy(U8{});
                         case 2: return copy(U16{});
                         case 4: return copy(U32{});
                         default: return copy(U64{});
                       }
                     });
  };
  return {fmt::format("gather_{}_{}", bytes, type_name(from)), build};
}

Library::Row decode_kernel(hir::BasicType type, const encodings::Stored& stored) {
  auto build = [type, stored](ptx::Module& module, std::string_view name) {
    const encodings::Encoding& form = encodings::find(stored);
    const encodings::Stored plain{};
    const encodings::Addressed& to = encodings::find_addressed(plain);
    return build_map(module, name, false, [&](Builder& b, Reg<U64> in, Reg<U64> out, Reg<U64> i, Reg<U64>, Reg<U64>) {
      encodings::Words w = form.fresh(b, type, stored);
      form.clear(b, type, stored, w);
      form.load(b, type, stored, form.place(b, type, stored, in, b.cvt<U32>(i)), 0, {}, w);
      const encodings::Words x = form.decode(b, type, stored, w);
      const At at(at_element(b, out, i, to.width(type, plain)));
      to.store(b, type, plain, Space::global, at, {}, x);
    });
  };
  return {fmt::format("decode_{}_{}", encodings::text(stored), hir::row(type).name), build};
}

Library::Row convert_kernel(Type source, Type type) {
  auto build = [source, type](ptx::Module& module, std::string_view name) {
    return build_map(module, name, false,
                     [source, type](Builder& b, Reg<U64> in, Reg<U64> out, Reg<U64> i, Reg<U64>, Reg<U64>) {
                       const At at(at_element(b, in, i, width(source))), to(at_element(b, out, i, width(type)));
                       with_loaded(b, source, at, [&](auto x) {
                         switch (type) {
                           case Type::u8:
                           case Type::i8:
                             return b.st<ptx::S8>(Space::global, to, b.cvt<ptx::S16>(converted<S32>(b, x)));
                           case Type::u16:
                           case Type::i16:
                             return b.st<ptx::S16>(Space::global, to, b.cvt<ptx::S16>(converted<S32>(b, x)));
                           case Type::i32: return b.st<S32>(Space::global, to, converted<S32>(b, x));
                           case Type::u32: return b.st<U32>(Space::global, to, b.cvt<U32>(converted<S64>(b, x)));
                           case Type::i64: return b.st<S64>(Space::global, to, converted<S64>(b, x));
                           case Type::f32: return b.st<ptx::F32>(Space::global, to, converted<ptx::F32>(b, x));
                           case Type::f64: return b.st<ptx::F64>(Space::global, to, converted<ptx::F64>(b, x));
                         }
                       });
                     });
  };
  return {fmt::format("convert_{}_{}", type_name(source), type_name(type)), build};
}

}  // namespace

// Integers to others, and to doubles.
void add_conversions(KernelRows& rows) {
  for (Type to : {Type::i32, Type::u32, Type::i64, Type::f64})
    for (Type from : {Type::i32, Type::u32, Type::i64})
      if (from != to) rows.push_back(convert_kernel(from, to));
}

// Of integers that fit into fewer bytes, and of codes.
void add_decodings(KernelRows& rows) {
  for (const hir::BasicType type : {hir::BasicType::i32, hir::BasicType::i64})
    for (uint32_t bytes = 1; bytes < encodings::plain_bytes(type); bytes *= 2)
      for (const bool is_signed : {false, true}) {
        const auto width = static_cast<uint8_t>(bytes);
        rows.push_back(decode_kernel(type, {.kind = encodings::Kind::narrow, .bytes = width, .is_signed = is_signed}));
      }
  for (const uint8_t bytes : {1, 2})
    rows.push_back(decode_kernel(hir::BasicType::str, {.kind = encodings::Kind::narrow, .bytes = bytes}));
}

void add_gathers(KernelRows& rows) {
  for (uint32_t bytes : {1, 2, 4, 8})
    for (Type codes : {Type::u8, Type::u16, Type::u32}) rows.push_back(gather_kernel(bytes, codes));
}

Result<Vector> gather(Library& library, const Vector& codes, Type type, Address table, uint64_t entries,
                      Memory& memory) {
  if (!is_unsigned(codes.type) || is_float(type))
    return Error{Fault::internal, "gather takes codes and a table of integers"};
  const uint32_t bytes = width(type);
  const Type from = codes.type;
  ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel(gather_kernel(bytes, from)));
  const uint64_t arguments[] = {table, entries};
  return launch_map(library, *kernel, codes, type, arguments, codes.capacity * (width(from) + bytes), memory);
}

Result<Vector> convert(Library& library, const Vector& from, Type type, Memory& memory) {
  if (from.type == type) return from;
  const Type source = from.type;
  ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel(convert_kernel(source, type)));
  ASSIGN_OR_RETURN(Vector out, launch_map(library, *kernel, from, type, nullptr,
                                          from.capacity * (width(source) + width(type)), memory));
  // Bounds hold where the conversion keeps every value.
  const bool wider = width(type) > width(source) && type != Type::f32 && type != Type::f64;
  if (from.known() && wider) out.min = from.min, out.max = from.max;
  return out;
}

Result<Vector> decode(Library& library, const Vector& from, hir::BasicType type, const encodings::Stored& stored,
                      Memory& memory) {
  ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel(decode_kernel(type, stored)));
  const encodings::Encoding& form = encodings::find(stored);
  const encodings::Stored plain{};
  const uint32_t bytes = encodings::plain_bytes(type);
  const uint64_t moved = from.capacity * bytes + form.bytes(type, stored, from.capacity);
  ASSIGN_OR_RETURN(Vector out, launch_map(library, *kernel, from, *type_of(type, plain), nullptr, moved, memory, bytes));
  out.min = from.min, out.max = from.max, out.ascending = from.ascending;
  return out;
}

Result<Vector> complex_part(Library& library, const Vector& complex, bool imaginary, Memory& memory) {
  const int64_t offset = imaginary ? 8 : 0;
  auto build = [offset](ptx::Module& module, std::string_view name) {
    return build_map(module, name, false,
                     [offset](Builder& b, Reg<U64> in, Reg<U64> out, Reg<U64> i, Reg<U64>, Reg<U64>) {
                       Reg<U64> x = b.ld<U64>(Space::global, At(at_element(b, in, i, 16), offset));
                       b.st<U64>(Space::global, At(at_element(b, out, i, 8)), x);
                     });
  };
  ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel(imaginary ? "imaginary_parts" : "real_parts", build));
  return launch_map(library, *kernel, complex, Type::f64, nullptr, complex.capacity * (16 + 8), memory);
}

Result<Vector> to_complex(Library& library, const Vector& reals, Memory& memory) {
  auto build = [](ptx::Module& module, std::string_view name) {
    return build_map(module, name, false, [](Builder& b, Reg<U64> in, Reg<U64> out, Reg<U64> i, Reg<U64>, Reg<U64>) {
      Reg<U64> x = b.ld<U64>(Space::global, At(at_element(b, in, i, 8)));
      b.st_v2<U64>(Space::global, At(at_element(b, out, i, 16)), x, b.constant<U64>(0));
    });
  };
  ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel("to_complex", build));
  return launch_map(library, *kernel, reals, Type::f64, nullptr, reals.capacity * (8 + 16), memory, 16);
}

Result<Vector> pair(Library& library, const Vector& high, const Vector& low, uint64_t radix, int64_t nowhere,
                    Memory& memory) {
  if (high.type != Type::i64 || low.type != Type::i64) return Error{Fault::internal, "pair takes two vectors of i64"};
  auto build = [nowhere](ptx::Module& module, std::string_view name) {
    return build_map(module, name, true,
                     [nowhere](Builder& b, Reg<U64> in, Reg<U64> out, Reg<U64> i, Reg<U64> other, Reg<U64> radix) {
                       Reg<U64> x = b.ld<U64>(Space::global, At(at_element(b, in, i, 8)));
                       Reg<U64> y = b.ld<U64>(Space::global, At(at_element(b, other, i, 8)));
                       Reg<U64> both = b.mad_lo(x, radix, y);
                       if (nowhere) {
                         Reg<U64> last = b.sub(radix, 1);
                         Reg<U64> none = b.constant<U64>(static_cast<uint64_t>(nowhere));
                         both = b.selp(none, both, b.setp(Is::eq, x, last));
                         both = b.selp(none, both, b.setp(Is::eq, y, last));
                       }
                       b.st<U64>(Space::global, At(at_element(b, out, i, 8)), both);
                     });
  };
  ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel(fmt::format("pair_{}", nowhere < 0 ? -nowhere : 0), build));
  const uint64_t arguments[] = {low.data, radix};
  return launch_map(library, *kernel, high, Type::i64, arguments, high.capacity * 24, memory);
}

}  // namespace rndn::operators
