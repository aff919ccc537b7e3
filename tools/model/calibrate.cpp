// What a device does in how much time: a kernel for each row of runtime/model/calibration.h, all written by one function
// and assembled by our assembler. Of each, a launch that does not count, then seven, of which the highest and the lowest
// are dropped. A kernel is timed between two marks, as runs that report times do it, and from that is taken what an empty one
// takes there. Short ones are nodes of a graph, one behind the other, since the host starts launches more slowly than the
// device ends such kernels: from their time that of an empty node is taken. Of neither more than 19 parts of 20 are.
//
// `overlap` is fitted on kernels that read and do another work at once: the least squares of (time - the longer work alone)
// over the shorter one alone. Not on gathers, which meet the reads in the second cache (runtime/model/cost.h).
#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <memory>
#include <tuple>
#include <vector>

#include "assembler/assemble.h"
#include "assembler/isa/isa.h"
#include "libraries/base/report/version.h"
#include "libraries/base/system/cancel.h"
#include "ptx/builder.h"
#include "ptx/encodings/encodings.h"
#include "tools/model/model.h"

namespace rndn::tools {
namespace {

using device::Address;
using model::Point, model::Rate;
using namespace ptx;

constexpr uint32_t block = 256, unrolled = 4;
constexpr uint32_t shared_places = 8192;
constexpr double least_share = 0.05;  // of a kernel's time that stays without the empty one

// What a kernel does for each of its elements.
struct Parts {
  bool reads = false;    // 8 bytes, in order
  uint32_t gathers = 0;  // bytes, at a random place of a table
  enum Adds : uint8_t { none, global, global_own, shared, shared_own } adds = none;  // own: no two threads at one place
  uint32_t instructions = 0;                                                         // arithmetic
  uint32_t unpacks = 0;  // bits of an element of a packed vector
  uint32_t pieces = 0;   // bytes, at a random place of the table, of which a sector each
};

struct Sizes {
  std::vector<uint64_t> bytes, tables;
  uint64_t elements, adds, packed, host;
  uint32_t queued;  // kernels of a graph, at most
  uint32_t rounds;  // that count
};
const Sizes on_gpu = {{1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 28, 1 << 30},
                      {1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 25, 1 << 26, 1 << 28, 1 << 30},
                      1 << 26,
                      1 << 24,
                      1 << 22,
                      1 << 28,
                      64,
                      7};
const Sizes on_simulator = {{1 << 12, 1 << 14}, {1 << 10, 1 << 12}, 1 << 10, 1 << 14, 1 << 12, 1 << 12, 2, 1};
constexpr uint32_t packed_bits[] = {1, 4, 8, 12, 16, 20, 24};
constexpr uint32_t sector = 32;
constexpr uint32_t piece_bytes[] = {sector, 64, 128, 256, 1024};

Reg<U32> scattered(Builder& b, Reg<U32> x) {
  Reg<U32> h = b.mul_lo(x, 0x9E3779B1u);
  h = b.xor_(h, b.shr(h, 15));
  h = b.mul_lo(h, 0x85EBCA77u);
  return b.xor_(h, b.shr(h, 13));
}

// Parameters: from, table, to, elements, mask of the table's places. What is computed is stored where it is a number that
// it is not, so that nothing is left out.
void write_kernel(Module& module, const Parts& parts) {
  Builder b(module, "calibrate");
  const auto from = b.parameter<U64>("from"), table = b.parameter<U64>("table"), to = b.parameter<U64>("to"),
             elements = b.parameter<U64>("elements"), mask = b.parameter<U64>("mask");
  b.set_block_size(block);
  const Reg<U32> tid = b.special(SpecialRegister::tid_x);
  const Reg<U32> first = b.mad_lo(b.special(SpecialRegister::ctaid_x), block, tid);
  const Reg<U32> stride = b.mul_lo(b.special(SpecialRegister::nctaid_x), block);
  const Reg<U32> n = b.cvt<U32>(b.ld_param(elements)), places = b.cvt<U32>(b.ld_param(mask));
  const Reg<U64> source = b.ld_param(from), lookup = b.ld_param(table), target = b.ld_param(to);
  std::array<Reg<U32>, unrolled> sum;
  for (Reg<U32>& s : sum) s = b.mov(tid);
  const bool uses_shared = parts.adds == Parts::shared || parts.adds == Parts::shared_own;
  Reg<U32> own;
  if (uses_shared) {
    own = b.address_of_32(b.shared<U32>("places", shared_places, 16));
    for (uint32_t k = 0; k < shared_places / block; ++k)
      b.st<U32>(Space::shared, ptx::Address(b.mad_lo(tid, 4u, own), int64_t{k} * block * 4), 0u);
    b.bar_sync();
  }
  const Reg<U32> i = b.mov(first);
  const LabelId loop = b.label(), done = b.label();
  b.bind(loop);
  b.when(b.setp(Compare::ge, i, n)).bra(done);
  std::array<Reg<U32>, unrolled> at;
  std::array<Reg<Pred>, unrolled> inside;
  for (uint32_t k = 0; k < unrolled; ++k) {
    at[k] = k == 0 ? b.mov(i) : b.add(at[k - 1], stride);
    inside[k] = b.setp(Compare::lt, at[k], n);
  }
  std::vector<Reg<U64>> loaded;
  std::vector<Reg<U32>> gathered;
  for (uint32_t k = 0; k < unrolled && parts.reads; ++k) {
    const Reg<U64> address = b.mad_wide(at[k], 8u, source), x = b.constant<U64>(0);
    b.when(inside[k]).ld<U64>(Space::global, ptx::Address(address), x);
    loaded.push_back(x);
  }
  for (uint32_t k = 0; k < unrolled && parts.gathers; ++k) {
    const Reg<U64> address = b.mad_wide(b.and_(scattered(b, at[k]), places), parts.gathers, lookup);
    Reg<U32> x = b.constant<U32>(0);
    if (parts.gathers == 1) {
      const Reg<U16> byte = b.constant<U16>(0);
      b.when(inside[k]).ld<U8>(Space::global, ptx::Address(address), byte);
      x = b.cvt<U32>(byte);
    } else if (parts.gathers == 4) {
      b.when(inside[k]).ld<U32>(Space::global, ptx::Address(address), x);
    } else {
      const Reg<U64> wide = b.constant<U64>(0);
      b.when(inside[k]).ld<U64>(Space::global, ptx::Address(address), wide);
      x = b.unpack(wide).first;
    }
    gathered.push_back(x);
  }
  for (uint32_t k = 0; k < unrolled && parts.pieces; ++k) {  // neighbours read neighbouring sectors
    const uint32_t in_piece = parts.pieces / sector, bits = static_cast<uint32_t>(std::countr_zero(in_piece));
    const Reg<U32> piece = b.and_(scattered(b, b.shr(at[k], bits)), places), of = b.and_(at[k], in_piece - 1);
    const Reg<U64> address = b.mad_wide(b.mad_lo(piece, in_piece, of), sector, lookup);
    const Reg<U32> x = b.constant<U32>(0);
    b.when(inside[k]).ld<U32>(Space::global, ptx::Address(address), x);
    gathered.push_back(x);
  }
  for (uint32_t k = 0; k < unrolled && parts.unpacks;
       ++k) {  // elements of the vector, again and again; a multiple of all that lie beyond
    const encodings::Stored stored{.kind = encodings::Kind::packed, .bits = static_cast<uint8_t>(parts.unpacks)};
    const encodings::Encoding& form = encodings::find(stored);
    const encodings::Cursor cursor = form.place(b, hir::BasicType::i32, stored, source, b.and_(at[k], places));
    encodings::Words words = form.fresh(b, hir::BasicType::i32, stored);
    form.clear(b, hir::BasicType::i32, stored, words);
    form.load(b, hir::BasicType::i32, stored, cursor, 0, inside[k], words);
    const encodings::Words element = form.decode(b, hir::BasicType::i32, stored, words);
    b.add(sum[k], Reg<U32>{element.at[0]}, sum[k]);
  }
  for (const Reg<U64>& x : loaded) {
    auto [low, high] = b.unpack(x);
    b.add(sum[0], b.xor_(low, high), sum[0]);
  }
  for (const Reg<U32>& x : gathered) b.add(sum[1], x, sum[1]);
  for (uint32_t op = 0; op < parts.instructions / unrolled; ++op)
    for (Reg<U32>& s : sum)
      if (op % 2)
        b.xor_(s, i, s);
      else
        b.mad_lo(s, 0x9E3779B1u, i, s);
  for (uint32_t k = 0; k < unrolled && parts.adds != Parts::none; ++k) {
    const bool has_own = parts.adds == Parts::global_own || parts.adds == Parts::shared_own;
    const Reg<U32> place = b.and_(has_own ? at[k] : scattered(b, at[k]), places);
    if (uses_shared) {
      const Reg<U32> address = b.mad_lo(place, 4u, own);
      b.when(inside[k]).red<U32>(AtomicOp::add, Space::shared, ptx::Address(address), 1u);
    } else {
      const Reg<U64> address = b.mad_wide(place, 4u, target);
      b.when(inside[k]).red<U32>(AtomicOp::add, Space::global, ptx::Address(address), 1u);
    }
  }
  b.mad_lo(stride, unrolled, i, i);
  b.bra(loop);
  b.bind(done);
  if (uses_shared) {
    b.bar_sync();
    b.ld<U32>(Space::shared, ptx::Address(b.mad_lo(tid, 4u, own)), sum[2]);
  }
  const Reg<U32> all = b.xor_(b.xor_(sum[0], sum[1]), b.xor_(sum[2], sum[3]));
  b.when(b.setp(Compare::eq, all, 0x2F6E2B1u)).st<U32>(Space::global, ptx::Address(target), all);
  b.ret();
  b.finish();
}

class Bench {
 public:
  static Result<std::unique_ptr<Bench>> make(device::Device& device) {
    const isa::Target* target = isa::find_target(device.info().target);
    if (!target)
      return world_error("{} is of a target that is not supported: {}", device.info().name, device.info().target);
    std::unique_ptr<Bench> bench(new Bench(device, *target));
    const Sizes& s = bench->sizes;
    const uint64_t bytes = std::max({s.bytes.back(), s.tables.back(), 8 * s.elements, 4 * s.adds});
    ASSIGN_OR_RETURN(bench->from_, device.allocate(bytes));
    ASSIGN_OR_RETURN(bench->to_, device.allocate(bytes));
    RETURN_IF_ERROR(device.fill(bench->from_, 0, bytes));
    RETURN_IF_ERROR(device.fill(bench->to_, 0, bytes));
    ASSIGN_OR_RETURN(const Kernel empty, bench->kernel({}));
    ASSIGN_OR_RETURN(const Spread launch, bench->time(empty, {.elements = 0}));
    ASSIGN_OR_RETURN(const Spread node, bench->time_as_node(empty, {.elements = 0}, s.queued));
    bench->launch_ns_ = launch.median, bench->node_ns_ = node.median;
    bench->add(Rate::launch, 0, launch);
    bench->add(Rate::graph_node, 0, node);
    bench->empty_ = empty;
    return bench;
  }
  ~Bench() {
    for (const Address a : {from_, to_})
      if (a) (void)device_.free(a);
    for (const device::ModuleHandle m : modules_) (void)device_.unload_module(m);
  }

  Result<void> measure() {
    RETURN_IF_ERROR(waits());
    RETURN_IF_ERROR(bandwidth());
    RETURN_IF_ERROR(gathers());
    RETURN_IF_ERROR(adds());
    RETURN_IF_ERROR(transfers());
    RETURN_IF_ERROR(unpacking());
    RETURN_IF_ERROR(issue());
    return overlap();
  }

  model::Calibration result;
  const Sizes& sizes;

 private:
  struct Kernel {
    device::KernelHandle handle{};
    uint32_t grid = 1, instructions = 0;
  };
  struct Arguments {
    uint64_t elements = 0, places = 1;  // places: a power of two
    Address table = 0;                  // 0: `from_`
  };

  Bench(device::Device& device, const isa::Target& target)
      : sizes(device.info().is_simulator ? on_simulator : on_gpu), device_(device), target_(target) {}

  Result<Kernel> kernel(const Parts& parts) {
    Module module;
    module.version = 60;
    module.target = 60;
    write_kernel(module, parts);
    assembler::Options options;
    options.target = &target_;
    Timings timings;
    ASSIGN_OR_RETURN(const assembler::Assembled made, assembler::assemble(module, options, timings));
    ASSIGN_OR_RETURN(const device::ModuleHandle loaded, device_.load_module(made.cubin));
    modules_.push_back(loaded);
    Kernel k;
    ASSIGN_OR_RETURN(k.handle, device_.find_kernel(loaded, "calibrate"));
    ASSIGN_OR_RETURN(const uint32_t blocks, device_.blocks_per_multiprocessor(k.handle, block, 0));
    k.grid = device_.info().is_simulator ? 2 : blocks * device_.info().multiprocessors;
    k.instructions = made.kernels.at(0).instructions;
    return k;
  }

  Result<void> launch(const Kernel& k, const Arguments& a) {
    const uint64_t parameters[] = {from_, a.table ? a.table : from_, to_, a.elements, a.places - 1};
    return device_.launch(k.handle, {k.grid, 1, 1}, {block, 1, 1}, 0, std::as_bytes(std::span(parameters)));
  }

  // ns of the work, as often as that between two marks.
  template <class F>
  Result<Spread> time_of(uint32_t times, F&& work) {
    std::vector<double> ns;
    for (uint32_t round = 0; round <= sizes.rounds; ++round) {
      RETURN_IF_ERROR(check_cancelled());
      ASSIGN_OR_RETURN(const uint32_t first, device_.record_mark());
      for (uint32_t k = 0; k < times; ++k) RETURN_IF_ERROR(work());
      ASSIGN_OR_RETURN(const uint32_t last, device_.record_mark());
      ASSIGN_OR_RETURN(const uint64_t took, device_.elapsed_ns(first, last));
      if (round > 0) ns.push_back(static_cast<double>(std::max<uint64_t>(took, 1)) / times);
    }
    return spread_of(std::move(ns));
  }
  Result<Spread> time(const Kernel& k, const Arguments& a) {
    return time_of(1, [&] { return launch(k, a); });
  }
  // In a graph of so many.
  Result<Spread> time_as_node(const Kernel& k, const Arguments& a, uint32_t nodes) {
    RETURN_IF_ERROR(device_.begin_graph());
    for (uint32_t n = 0; n < nodes; ++n) RETURN_IF_ERROR(launch(k, a));
    ASSIGN_OR_RETURN(const device::GraphHandle graph, device_.end_graph());
    ASSIGN_OR_RETURN(Spread node, time_of(1, [&] { return device_.launch_graph(graph); }));
    RETURN_IF_ERROR(device_.free_graph(graph));
    for (double* ns : {&node.median, &node.low, &node.high}) *ns /= nodes;
    return node;
  }
  // Without an empty kernel's.
  Result<Spread> work_time(const Kernel& k, const Arguments& a) {
    ASSIGN_OR_RETURN(Spread s, time(k, a));
    double empty = launch_ns_;
    if (const double often = 20 * launch_ns_ / s.median; often > 2) {
      ASSIGN_OR_RETURN(s, time_as_node(k, a, std::min<uint32_t>(sizes.queued, static_cast<uint32_t>(often))));
      empty = node_ns_;
    }
    for (double* ns : {&s.median, &s.low, &s.high}) *ns = std::max(*ns - empty, least_share * *ns);
    return s;
  }

  void add(Rate rate, double at, const Spread& s) { result.of(rate).push_back({at, s.median, s.low, s.high}); }
  // So much in these ns.
  void add_rate(Rate rate, double at, double amount, const Spread& ns) {
    result.of(rate).push_back({at, amount / ns.median * 1e9, amount / ns.high * 1e9, amount / ns.low * 1e9});
  }

  Result<void> waits() {
    std::vector<double> waits;
    for (uint32_t round = 0; round <= sizes.rounds; ++round) {
      RETURN_IF_ERROR(device_.synchronize());
      const auto start = std::chrono::steady_clock::now();
      RETURN_IF_ERROR(launch(empty_, {}));
      RETURN_IF_ERROR(device_.synchronize());
      const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
      if (round > 0) waits.push_back(std::max(took.count(), 1.0));
    }
    add(Rate::wait, 0, spread_of(std::move(waits)));
    return {};
  }

  Result<void> bandwidth() {
    ASSIGN_OR_RETURN(const Kernel read, kernel({.reads = true}));
    for (const uint64_t bytes : sizes.bytes) {
      ASSIGN_OR_RETURN(const Spread ns, work_time(read, {.elements = bytes / 8}));
      add_rate(Rate::read, static_cast<double>(bytes), static_cast<double>(bytes), ns);
      ASSIGN_OR_RETURN(const Spread copied, time_of(4, [&] { return device_.copy(to_, from_, bytes / 2); }));
      add_rate(Rate::copy, static_cast<double>(bytes), static_cast<double>(bytes), copied);
    }
    return {};
  }

  Result<void> gathers() {
    for (const auto& [rate, width] : {std::pair{Rate::gather_1, 1u}, {Rate::gather_4, 4u}, {Rate::gather_8, 8u}}) {
      ASSIGN_OR_RETURN(const Kernel k, kernel({.gathers = width}));
      for (const uint64_t bytes : sizes.tables) {
        ASSIGN_OR_RETURN(const Spread ns, work_time(k, {.elements = sizes.elements, .places = bytes / width}));
        add_rate(rate, static_cast<double>(bytes), static_cast<double>(sizes.elements), ns);
      }
    }
    return {};
  }

  Result<void> adds() {
    const uint64_t n = sizes.adds;
    for (const auto& [rate, kind, own, most] :
         {std::tuple{Rate::add_global, Parts::global, Parts::global_own, n},
          {Rate::add_shared, Parts::shared, Parts::shared_own, uint64_t{shared_places}}}) {
      ASSIGN_OR_RETURN(const Kernel some, kernel({.adds = kind}));
      ASSIGN_OR_RETURN(const Kernel each, kernel({.adds = own}));
      for (const uint64_t places : {uint64_t{1}, uint64_t{64}, uint64_t{4096}, most}) {
        ASSIGN_OR_RETURN(const Spread ns, work_time(places == most ? each : some, {.elements = n, .places = places}));
        add_rate(rate, static_cast<double>(places), static_cast<double>(n), ns);
      }
    }
    return {};
  }

  Result<void> transfers() {
    const uint64_t bytes = sizes.host;
    ASSIGN_OR_RETURN(const device::Mapped pinned, device_.allocate_mapped(bytes));
    std::vector<std::byte> pageable(bytes);
    // By the host's clock, since parts of a staged copy are its own.
    const auto timed = [&](Rate rate, auto&& copy) -> Result<void> {
      std::vector<double> ns;
      for (uint32_t round = 0; round <= sizes.rounds; ++round) {
        RETURN_IF_ERROR(device_.synchronize());
        const auto start = std::chrono::steady_clock::now();
        RETURN_IF_ERROR(copy());
        RETURN_IF_ERROR(device_.synchronize());
        const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
        if (round > 0) ns.push_back(std::max(took.count(), 1.0));
      }
      add_rate(rate, 0, static_cast<double>(bytes), spread_of(std::move(ns)));
      return {};
    };
    RETURN_IF_ERROR(timed(Rate::host_pinned, [&] { return device_.copy_to_device(to_, pinned.host, bytes); }));
    RETURN_IF_ERROR(timed(Rate::host_staged, [&] { return device_.copy_to_device(to_, pageable.data(), bytes); }));
    // Few enough that hardly a sector is read twice.
    const uint64_t sectors = std::max<uint64_t>(bytes / sector / 8, piece_bytes[std::size(piece_bytes) - 1] / sector);
    for (const uint32_t piece : piece_bytes) {
      ASSIGN_OR_RETURN(const Kernel k, kernel({.pieces = piece}));
      ASSIGN_OR_RETURN(const Spread ns, work_time(k, {.elements = sectors, .places = bytes / piece, .table = pinned.address}));
      add_rate(Rate::host_mapped, piece, static_cast<double>(sectors * sector), ns);
    }
    return device_.free_mapped(pinned);
  }

  // Of a vector that the second cache holds, so that decoding counts and not the bytes.
  Result<void> unpacking() {
    for (const uint32_t bits : packed_bits) {
      ASSIGN_OR_RETURN(const Kernel k, kernel({.unpacks = bits}));
      ASSIGN_OR_RETURN(const Spread ns, work_time(k, {.elements = sizes.elements, .places = sizes.packed}));
      add_rate(Rate::unpack, bits, static_cast<double>(sizes.elements), ns);
    }
    return {};
  }

  // Instructions of the loop, of which nearly all are arithmetic: half of it products, half not.
  static constexpr uint32_t arithmetic = 512;
  Result<void> issue() {
    ASSIGN_OR_RETURN(const Kernel k, kernel({.instructions = arithmetic}));
    const double loops = std::ceil(static_cast<double>(sizes.elements) / unrolled);
    ASSIGN_OR_RETURN(const Spread ns, work_time(k, {.elements = sizes.elements}));
    add_rate(Rate::issue, 0, loops * k.instructions, ns);
    return {};
  }

  Result<void> overlap() {
    struct Pair {
      Parts other;
      uint64_t places;
    };
    const Pair pairs[] = {{{.adds = Parts::shared}, 64}, {{.adds = Parts::global}, 4096}, {{.instructions = 64}, 1}, {{.instructions = 256}, 1}};
    ASSIGN_OR_RETURN(const Kernel reading, kernel({.reads = true}));
    const uint64_t n = std::min(sizes.elements, sizes.bytes.back() / 8);
    ASSIGN_OR_RETURN(const Spread read, work_time(reading, {.elements = n}));
    double product = 0, square = 0, low = 1, high = 0;
    for (const Pair& p : pairs) {
      Parts both = p.other;
      both.reads = true;
      ASSIGN_OR_RETURN(const Kernel one, kernel(p.other));
      ASSIGN_OR_RETURN(const Kernel two, kernel(both));
      ASSIGN_OR_RETURN(const Spread alone, work_time(one, {.elements = n, .places = p.places}));
      ASSIGN_OR_RETURN(const Spread together, work_time(two, {.elements = n, .places = p.places}));
      const double more = std::max(read.median, alone.median), less = std::min(read.median, alone.median);
      const double share = std::clamp((together.median - more) / less, 0.0, 1.0);
      product += (together.median - more) * less, square += less * less;
      low = std::min(low, share), high = std::max(high, share);
    }
    const double fitted = std::clamp(product / square, 0.0, 1.0);
    result.of(Rate::overlap).push_back({0, fitted, std::min(low, fitted), std::max(high, fitted)});
    return {};
  }

  device::Device& device_;
  const isa::Target& target_;
  Address from_ = 0, to_ = 0;
  std::vector<device::ModuleHandle> modules_;
  Kernel empty_;
  double launch_ns_ = 0, node_ns_ = 0;
};

}  // namespace

Result<model::Calibration> calibrate(device::Device& device) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Bench> bench, Bench::make(device));
  const device::Info& info = device.info();
  bench->result.facts = {
      {"device", info.name},
      {"target", info.target},
      {"driver", info.driver.empty() ? "none" : info.driver},
      {"multiprocessors", fmt::format("{}", info.multiprocessors)},
      {"rndn", fmt::format("{} (commit {})", version(), commit())},
      {"runs", fmt::format("{} after one that does not count; highest and lowest dropped", bench->sizes.rounds)}};
  RETURN_IF_ERROR(bench->measure());
  return std::move(bench->result);
}

}  // namespace rndn::tools
