// scan: running sums, minima and maxima, which begin anew where a mask says so.
//
// Reduce, then scan (Blelloch, "Prefix Sums and Their Applications", 1990). A warp has `range_rows`
// rows, whatever the device. Their reductions from the last start in each range are scanned in the
// same way, one level for every factor of `range_rows`; then each range is scanned with what was
// gathered before it. Within 32 rows: shuffles as Hillis and Steele have them ("Data Parallel
// Algorithms", CACM 1986), where a ballot of the starts tells each lane how far back it reaches. No
// block waits for another, and floats are combined in one order on every device
// (libraries/base/numbers/running_sums.h has it for the host).
// Costs: the rows are read twice and written once; up to `range_rows` of them in one launch, read
// once.
// Leaves out: 128-bit integers.
#include "libraries/base/numbers/running_sums.h"
#include "libraries/operators/groups/accumulate.h"
#include "libraries/operators/operators.h"
#include "libraries/operators/ready.h"

namespace rndn::operators {

namespace {

constexpr uint32_t scan_warps = block_threads / 32;
constexpr uint32_t range_rows = scans::range_rows;
constexpr uint32_t scan_unroll = 4;  // elements that a lane has on their way at once

struct Shape {
  Type from{}, to{};
  Held held{};
  Accumulator::Op op{};
  bool stores =
      false;  // every element; else the reduction of every range, and whether it has a start
  bool carries = false;  // elements of earlier ranges count
  std::string name() const {
    return fmt::format("scan_{}_{}_{}{}{}", type_name(from), type_name(to),
                       "anx"[static_cast<int>(op)], stores ? "_rows" : "",
                       carries ? "_carried" : "");
  }
};

Accumulator::Op op_of(Scan operation) {
  return operation == Scan::sum   ? Accumulator::add
         : operation == Scan::min ? Accumulator::min
                                  : Accumulator::max;
}
Held held_of(Scan operation, Type type) {
  if (type == Type::f64 || (type == Type::f32 && operation == Scan::sum)) return Held::f64;
  if (type == Type::f32) return Held::f32;
  return operation == Scan::sum || type == Type::i64 || type == Type::u32 ? Held::s64 : Held::s32;
}
Type type_of(Held held) {
  switch (held) {
    case Held::s32: return Type::i32;
    case Held::s64: return Type::i64;
    case Held::f32: return Type::f32;
    case Held::f64: break;
  }
  return Type::f64;
}

template <class T>
void store_as(Builder& b, Type type, Condition when, Reg<U64> to, Reg<U32> row, Reg<T> x) {
  const At at = element_at(b, to, row, width(type));
  with_type(type, [&]<class Stored>() {
    using R = ptx::RegisterTag<Stored>;
    if constexpr (std::same_as<R, T>)
      store_if<Stored>(b, when, Space::global, at, x);
    else if constexpr (ptx::FloatTag<R> && ptx::FloatTag<T>)
      store_if<Stored>(b, when, Space::global, at, b.cvt<R>(x));
    else if constexpr (!ptx::FloatTag<R> && !ptx::FloatTag<T>)
      store_if<Stored>(b, when, Space::global, at, b.cvt<R>(x));
    else
      CHECK(false, "a scan changes no numbers");
  });
}

template <class T>
void scan_ranges(Builder& b, const Shape& shape) {
  const Parameter n_at = b.parameter<U64>("n"), slot_at = b.parameter<U64>("slot"),
                  x_at = b.parameter<U64>("x"), starts_at = b.parameter<U64>("starts"),
                  ranges_at = b.parameter<U64>("ranges"), totals_at = b.parameter<U64>("totals"),
                  flags_at = b.parameter<U64>("flags"), out_at = b.parameter<U64>("out"),
                  out_slot_at = b.parameter<U64>("out_slot");
  b.set_block_size(block_threads);
  const Thread t = thread_of(b);
  Reg<U32> n = rows_of(b, slot_at, n_at);
  Reg<U64> x_from = b.ld_param(x_at), starts_from = b.ld_param(starts_at),
           totals = b.ld_param(totals_at), flags = b.ld_param(flags_at), out = b.ld_param(out_at);
  Reg<U32> range = b.mad_lo(b.special(ptx::SpecialRegister::ctaid_x), scan_warps, t.warp);
  if (shape.stores) {
    Reg<U64> out_slot = b.ld_param(out_slot_at);
    Reg<Pred> tells = b.setp(Is::eq, ptx::Combine::and_, range, 0u, b.setp(Is::ne, out_slot, 0));
    b.setp(Is::eq, ptx::Combine::and_, t.lane, 0u, tells, tells);
    store_if<U64>(b, tells, Space::global, At(out_slot), b.cvt<U64>(n));
  }
  Reg<U32> ranges = b.cvt<U32>(b.ld_param(ranges_at));
  Reg<U32> all_warps = b.mul_lo(b.special(ptx::SpecialRegister::nctaid_x), scan_warps);
  Reg<U32> last_row = b.sub(n, 1), up_to_lane = b.sub(b.shl(b.constant<U32>(2), t.lane), 1);
  const typename T::native identity = identity_of<T>(shape.op);
  const LabelId next_range = b.label(), done = b.label();
  b.bind(next_range);
  b.when(b.setp(Is::ge, range, ranges)).bra_uni(done);
  Reg<T> carry = b.constant<T>(identity);
  Reg<U32> seen = b.constant<U32>(0);
  if (shape.carries) {
    const At before = element_at(b, totals, b.sub(b.max(range, 1u), 1), T::size);
    load_if<T>(b, b.setp(Is::gt, range, 0u), Space::global, before, carry);
  }
  Reg<U32> base = b.mul_lo(range, range_rows);
  Reg<U32> left = b.min(b.sub(b.max(base, n), base), range_rows);
  Reg<U32> row = b.add(base, t.lane);
  const LabelId step = b.label(), scanned = b.label();
  b.bind(step);
  b.when(b.setp(Is::eq, left, 0u)).bra_uni(scanned);
  std::vector<Reg<T>> values;
  std::vector<Reg<U32>> ballots;
  std::vector<Reg<Pred>> exists;
  for (uint32_t u = 0; u < scan_unroll; ++u) {
    Reg<U32> own = u ? b.add(row, 32 * u) : row;
    exists.push_back(b.setp(Is::lt, b.add(t.lane, 32 * u), left));
    Reg<U32> at = b.min(own, last_row);
    const Element e = load_element(b, shape.from, element_at(b, x_from, at, width(shape.from)));
    const Element s = load_element(b, Type::u8, element_at(b, starts_from, at, 1));
    Reg<T> x;
    if constexpr (std::same_as<T, S64>)
      x = shape.from == Type::u32 ? Builder::as<S64>(b.cvt<U64>(e.u32)) : held_element<T>(b, e);
    else
      x = held_element<T>(b, e);
    if constexpr (ptx::FloatTag<T>)
      if (shape.op != Accumulator::add)
        x = combine(b, shape.op, b.constant<T>(identity), x);  // NaN is nothing
    values.push_back(b.selp(x, b.constant<T>(identity), exists[u]));
    ballots.push_back(b.ballot(b.setp(Is::ne, ptx::Combine::and_, s.u32, 0u, exists[u])));
  }
  for (uint32_t u = 0; u < scan_unroll; ++u) {
    Reg<T> x = b.mov(values[u]);
    Reg<U32> starts = b.and_(ballots[u], up_to_lane);
    Reg<Pred> open = b.setp(Is::eq, starts, 0u);  // no start up to this lane
    Reg<U32> first = b.selp(b.constant<U32>(0), b.bfind(starts), open);
    Reg<U32> reach = b.sub(t.lane, first);
    for (uint32_t distance = 1; distance < 32; distance *= 2) {
      Reg<T> earlier = shuffle(b, ShuffleMode::up, x, distance, 0u);
      Reg<Pred> reaches = b.setp(Is::ge, reach, distance);
      Reg<T> both = combine(b, shape.op, earlier, x);
      b.when(reaches).mov(both, x);
    }
    Reg<T> carried = combine(b, shape.op, carry, x);
    b.when(open).mov(carried, x);
    b.mov(shuffle(b, ShuffleMode::idx, x, 31u, 31u), carry);
    b.or_(seen, ballots[u], seen);
    if (shape.stores) store_as<T>(b, shape.to, exists[u], out, u ? b.add(row, 32 * u) : row, x);
  }
  b.add(row, 32 * scan_unroll, row);
  b.sub(left, b.min(left, 32 * scan_unroll), left);
  b.bra_uni(step);
  b.bind(scanned);
  if (!shape.stores) {
    Reg<Pred> tells = b.setp(Is::eq, t.lane, 0u);
    const At total_at = element_at(b, totals, range, T::size),
             flag_at = element_at(b, flags, range, 1);
    store_if<T>(b, tells, Space::global, total_at, carry);
    Reg<U16> flag =
        b.cvt<U16>(b.selp(b.constant<U32>(1), b.constant<U32>(0), b.setp(Is::ne, seen, 0u)));
    store_if<U8>(b, tells, Space::global, flag_at, flag);
  }
  b.add(range, all_warps, range);
  b.bra_uni(next_range);
  b.bind(done);
  b.ret();
}

Library::Row scan_kernel(const Shape& shape) {
  return {shape.name(), [shape](ptx::Module& module, std::string_view name) {
            KernelBuilder b(module, name);
            with_held(shape.held, [&]<class T>() { scan_ranges<T>(b, shape); });
            b.finish();
            return block_threads;
          }};
}

Result<void> scan_launch(Library& library, const Shape& shape, const Vector& x, const Vector& starts,
                    uint64_t ranges, Address totals, Address flags, const Vector& out) {
  ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel(scan_kernel(shape)));
  Arguments a;
  a.add(x.capacity)
      .add(x.size_slot)
      .add(x.data)
      .add(starts.data)
      .add(ranges)
      .add(totals)
      .add(flags);
  a.add(out.data).add(out.size_slot);
  return library.launch(*kernel, library.grid(*kernel, tiles_for(ranges, scan_warps)), a,
                        x.capacity * (width(x.type) + 1 + (shape.stores ? width(shape.to) : 0)));
}

// Into `out`, whose memory is there. x and starts of the same size.
Result<void> scan_into(Library& library, Shape shape, const Vector& x, const Vector& starts,
                       const Vector& out, Memory& memory) {
  const uint64_t ranges = tiles_for(x.capacity, range_rows);
  shape.from = x.type;
  shape.to = out.type;
  Vector carried{.type = type_of(shape.held), .capacity = ranges};
  if (ranges > 1) {
    Vector totals = carried, flags{.type = Type::u8, .capacity = ranges};
    ASSIGN_OR_RETURN(totals.data, memory.temporary(ranges * width(totals.type)));
    ASSIGN_OR_RETURN(flags.data, memory.temporary(ranges));
    ASSIGN_OR_RETURN(carried.data, memory.temporary(ranges * width(carried.type)));
    RETURN_IF_ERROR(scan_launch(library, shape, x, starts, ranges, totals.data, flags.data, {}));
    RETURN_IF_ERROR(scan_into(library, shape, totals, flags, carried, memory));
    shape.carries = true;
  }
  shape.stores = true;
  return scan_launch(library, shape, x, starts, ranges, carried.data, 0, out);
}

}  // namespace

// Sums of flags, integers and doubles, bounds of integers: of many rows, and of few.
void add_scans(KernelRows& rows) {
  const auto add = [&](Scan operation, Type from, Type to) {
    for (const auto& [stores, carries] : {std::pair(false, false), {true, false}, {true, true}})
      rows.push_back(scan_kernel({from, to, held_of(operation, from), op_of(operation), stores, carries}));
  };
  for (Type from : {Type::u8, Type::i32, Type::i64}) add(Scan::sum, from, Type::i64);
  add(Scan::sum, Type::f64, Type::f64);
  for (Scan operation : {Scan::min, Scan::max})
    for (Type type : {Type::i32, Type::i64}) add(operation, type, type);
}

Result<void> scan_sums(Library& library, const Vector& x, const Vector& starts, const Vector& out,
                       Memory& memory) {
  const Shape shape{.held = held_of(Scan::sum, x.type), .op = Accumulator::add};
  return scan_into(library, shape, x, starts, out, memory);
}

Result<Vector> scan(Library& library, Scan operation, const Vector& x, const Vector& starts,
                    Memory& memory) {
  const Vector both[] = {x, starts};
  RETURN_IF_ERROR(check_rows(both));
  const Shape shape{.held = held_of(operation, x.type), .op = op_of(operation)};
  const bool sum_of_integers = operation == Scan::sum && !is_float(x.type);
  Vector out{.type = sum_of_integers ? Type::i64 : x.type, .capacity = x.capacity};
  if (operation != Scan::sum) out.min = x.min, out.max = x.max;
  ASSIGN_OR_RETURN(out.data, memory.result(std::max<uint64_t>(1, x.capacity) * width(out.type)));
  if (x.size_slot) {
    ASSIGN_OR_RETURN(out.size_slot, memory.result(8));
  }
  RETURN_IF_ERROR(scan_into(library, shape, x, starts, out, memory));
  return out;
}

}  // namespace rndn::operators
