// What a device can do where the design of fused probes, groups, packed columns and batches depends on it.
//
//   bench_limits [--device cuda|sim[:TARGET]] [--small] [--repeat R]
//
// One line per case: what, prediction, measured (median of R runs after one warm-up), lowest, highest, unit. The
// predictions stood here before the first run on a GPU. Every kernel's answer is checked on the host, with fewer rounds
// where a full check would take long. --small: sizes for the simulator. Two streams and the reading of host memory are
// measured on a GPU only.
//
// Kernels are PTX text made here, assembled by our assembler, so that a measurement owes nothing to the code generator.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "assembler/assemble.h"
#include "assembler/isa/isa.h"
#include "libraries/base/errors/guarded_main.h"
#include "ptx/parse.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/simulator/simulator_device.h"

namespace rndn {
namespace {

using device::Address;

// The random numbers of all kernels: a linear congruential generator per thread, whose high bits are used.
constexpr uint32_t next_random(uint32_t x) { return x * 1664525u + 1013904223u; }
constexpr uint32_t first_random(uint32_t thread) { return (thread + 1) * 2654435769u; }
constexpr uint32_t hash(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
  x = (x ^ (x >> 13)) * 0xC2B2AE35u;
  return x ^ (x >> 16);
}
constexpr uint32_t block_threads = 256, unrolled = 8;

struct Arguments {
  std::string device = "sim";
  uint32_t repeat = 5;
  bool small = false;
};

class Bench {
 public:
  Bench(device::Device& device, const isa::Target& target, const Arguments& arguments)
      : device_(device), target_(target), arguments_(arguments) {}
  device::Device& device() { return device_; }
  bool small() const { return arguments_.small; }
  uint32_t repeat() const { return arguments_.repeat; }

  Result<std::vector<std::byte>> assemble(const std::string& text) {
    SourceManager sources;
    DiagnosticSink sink;
    const ptx::Module module = ptx::parse(sources.add("<bench_limits>", text), sources, sink);
    if (sink.has_errors()) return world_error("the benchmark's PTX is wrong: {}", render(sink, sources));
    Timings timings;
    assembler::Options options;
    options.target = &target_;
    ASSIGN_OR_RETURN(assembler::Assembled made, assembler::assemble(module, options, timings));
    return std::move(made.cubin);
  }
  Result<device::KernelHandle> kernel(const std::string& text) {
    ASSIGN_OR_RETURN(const std::vector<std::byte> cubin, assemble(text));
    ASSIGN_OR_RETURN(device::ModuleHandle module, device_.load_module(cubin));
    return device_.find_kernel(module, "k");
  }
  template <class T>
  Result<Address> put(const std::vector<T>& values) {
    ASSIGN_OR_RETURN(Address to, device_.allocate(values.size() * sizeof(T)));
    RETURN_IF_ERROR(device_.copy_to_device(to, values.data(), values.size() * sizeof(T)));
    return to;
  }
  // As many blocks as are resident at once.
  Result<uint32_t> resident(device::KernelHandle kernel, uint32_t threads, uint32_t shared) {
    if (small()) return 2;
    ASSIGN_OR_RETURN(uint32_t each, device_.blocks_per_multiprocessor(kernel, threads, shared));
    return each * device_.info().multiprocessors;
  }
  Result<void> launch(device::KernelHandle kernel, uint32_t blocks, uint32_t threads, uint32_t shared,
                      std::vector<uint64_t> parameters) {
    return device_.launch(kernel, {blocks, 1, 1}, {threads, 1, 1}, shared, std::as_bytes(std::span(parameters)));
  }
  // Milliseconds of `body`, sorted.
  Result<std::vector<double>> times(const std::function<Result<void>()>& body) {
    std::vector<double> ms;
    for (uint32_t k = 0; k < repeat() + 1; ++k) {
      RETURN_IF_ERROR(device_.synchronize());
      ASSIGN_OR_RETURN(uint32_t from, device_.record_mark());
      RETURN_IF_ERROR(body());
      ASSIGN_OR_RETURN(uint32_t to, device_.record_mark());
      ASSIGN_OR_RETURN(uint64_t ns, device_.elapsed_ns(from, to));
      if (k) ms.push_back(std::max(1e-6, static_cast<double>(ns) / 1e6));
    }
    std::sort(ms.begin(), ms.end());
    return ms;
  }
  // `work` per run, in the unit's thousandths per millisecond: 1e6 for G per second.
  void print(const std::string& what, double predicted, const std::vector<double>& ms, double work, const char* unit) {
    std::printf("%s\t%.4g\t%.4g\t%.4g\t%.4g\t%s\n", what.c_str(), predicted, work / ms[ms.size() / 2] / 1e6,
                work / ms.back() / 1e6, work / ms.front() / 1e6, unit);
    std::fflush(stdout);
  }

 private:
  device::Device& device_;
  const isa::Target& target_;
  const Arguments& arguments_;
};

std::string head(const Bench&, const std::string& target, uint32_t threads, const std::string& declarations) {
  return ".version 7.8\n.target " + target + "\n.address_size 64\n" + declarations +
         fmt::format(
             ".visible .entry k(.param .u64 table, .param .u64 out, .param .u64 shift, .param .u64 rounds, .param .u64 "
             "extra)\n.reqntid {}\n{{\n"
             ".reg .b32 %x, %t, %s, %n, %i, %m, %c, %lane, %warp, %j, %a<40>;\n.reg .b64 %base, %at, %to, %sum, "
             "%w<40>;\n"
             ".reg .f64 %d<40>;\n.reg .pred %p, %q, %g<40>;\n"
             "ld.param.u64 %base, [table];\nld.param.u64 %to, [out];\nld.param.u32 %s, [shift];\nld.param.u32 %n, "
             "[rounds];\n"
             "cvta.to.global.u64 %base, %base;\ncvta.to.global.u64 %to, %to;\n"
             "mov.u32 %t, %tid.x;\nmov.u32 %m, %ctaid.x;\nmad.lo.u32 %m, %m, {}, %t;\nadd.u32 %x, %m, 1;\n"
             "mul.lo.u32 %x, %x, 2654435769;\nmov.u64 %sum, 0;\n",
             threads, threads);
}
constexpr const char* step = "mad.lo.u32 %x, %x, 1664525, 1013904223;\n";
// The end of every kernel: a thread's sum is added to the first word of the output.
constexpr const char* tail = "red.global.add.u64 [%to], %sum;\nret;\n}\n";

// Shared memory of the block, filled from the table: `extra` words of 32 bits.
std::string fill_shared(uint32_t threads) {
  return fmt::format(
      "ld.param.u32 %c, [extra];\nmov.u32 %i, %t;\nFILL:\nsetp.ge.u32 %p, %i, %c;\n@%p bra FILLED;\n"
      "mad.wide.u32 %at, %i, 4, %base;\nld.global.u32 %a0, [%at];\nshl.b32 %a1, %i, 2;\nmov.u32 %a2, table_shared;\n"
      "add.u32 %a1, %a1, %a2;\nst.shared.u32 [%a1], %a0;\nadd.u32 %i, %i, {};\nbra FILL;\nFILLED:\nbar.sync 0;\n",
      threads);
}

// Random reads of entries of 1, 8 or 32 bits.
std::string gather_text(const Bench& bench, const std::string& target, uint32_t bits, bool shared, uint32_t threads) {
  std::string text = head(bench, target, threads, shared ? ".extern .shared .align 4 .b8 table_shared[];\n" : "");
  if (shared) text += fill_shared(threads) + "mov.u32 %c, table_shared;\n";
  text += "LOOP:\nsetp.eq.u32 %p, %n, 0;\n@%p bra END;\nsub.u32 %n, %n, 1;\n";
  for (uint32_t k = 0; k < unrolled; ++k) {
    text += step;
    text += fmt::format("shr.u32 %a{}, %x, %s;\n", k);  // the entry's number
    const char* index = bits == 1 ? "%i" : nullptr;
    if (index) text += fmt::format("shr.u32 %i, %a{}, 5;\n", k);
    const std::string number = index ? index : fmt::format("%a{}", k);
    const uint32_t width = bits == 8 ? 1 : 4;
    if (shared)
      text += fmt::format("mad.lo.u32 %j, {}, {}, %c;\nld.shared.{} %a{}, [%j];\n", number, width,
                          bits == 8 ? "u8" : "u32", k + 10);
    else
      text += fmt::format("mad.wide.u32 %w{}, {}, {}, %base;\nld.global.{} %a{}, [%w{}];\n", k, number, width,
                          bits == 8 ? "u8" : "u32", k + 10, k);
  }
  for (uint32_t k = 0; k < unrolled; ++k) {
    if (bits == 1)
      text +=
          fmt::format("and.b32 %a{0}, %a{0}, 31;\nshr.u32 %a{1}, %a{1}, %a{0};\nand.b32 %a{1}, %a{1}, 1;\n", k, k + 10);
    text += fmt::format("cvt.u64.u32 %w{0}, %a{1};\nadd.u64 %sum, %sum, %w{0};\n", k, k + 10);
  }
  return text + "bra LOOP;\nEND:\n" + tail;
}

Result<uint64_t> run_once(Bench& bench, device::KernelHandle kernel, uint32_t blocks, uint32_t threads, uint32_t shared,
                          Address table, Address out, uint64_t shift, uint64_t rounds, uint64_t extra) {
  RETURN_IF_ERROR(bench.device().fill(out, 0, 8));
  RETURN_IF_ERROR(bench.launch(kernel, blocks, threads, shared, {table, out, shift, rounds, extra}));
  uint64_t sum = 0;
  RETURN_IF_ERROR(bench.device().copy_to_host(&sum, out, 8));
  return sum;
}

Result<void> bench_gather(Bench& bench, const std::string& target, uint32_t bits, uint32_t log_bytes, bool shared,
                          uint32_t threads, double predicted) {
  const uint64_t bytes = uint64_t{1} << log_bytes;
  ASSIGN_OR_RETURN(device::KernelHandle kernel, bench.kernel(gather_text(bench, target, bits, shared, threads)));
  std::vector<uint32_t> table(bytes / 4);
  for (size_t i = 0; i < table.size(); ++i) table[i] = hash(static_cast<uint32_t>(i));
  ASSIGN_OR_RETURN(Address address, bench.put(table));
  ASSIGN_OR_RETURN(Address out, bench.device().allocate(256));
  const uint32_t shift = 32 - (log_bytes + (bits == 1 ? 3 : bits == 8 ? 0 : -2));
  const uint32_t dynamic = shared ? static_cast<uint32_t>(bytes) : 0;
  ASSIGN_OR_RETURN(const uint32_t blocks, bench.resident(kernel, threads, dynamic));
  const uint32_t check_rounds = 2;
  uint64_t expected = 0;
  for (uint32_t thread = 0; thread < blocks * threads; ++thread) {
    uint32_t x = first_random(thread);
    for (uint32_t k = 0; k < check_rounds * unrolled; ++k) {
      x = next_random(x);
      const uint32_t entry = x >> shift;
      expected += bits == 1   ? table[entry / 32] >> (entry % 32) & 1
                  : bits == 8 ? table[entry / 4] >> (entry % 4 * 8) & 255
                              : table[entry];
    }
  }
  ASSIGN_OR_RETURN(const uint64_t sum,
                   run_once(bench, kernel, blocks, threads, dynamic, address, out, shift, check_rounds, table.size()));
  if (sum != expected) return world_error("gather of {} bits: {} instead of {}", bits, sum, expected);
  const uint64_t rounds =
      bench.small() ? check_rounds : (uint64_t{1} << (log_bytes > 26 ? 30 : 32)) / (blocks * threads * unrolled);
  ASSIGN_OR_RETURN(const std::vector<double> ms, bench.times([&] {
    return bench.launch(kernel, blocks, threads, dynamic, {address, out, shift, rounds, table.size()});
  }));
  bench.print(fmt::format("reads of {} bit{} from {} KiB{}{}", bits, bits == 1 ? "" : "s", bytes >> 10,
                          shared ? " of shared memory" : "", threads != block_threads ? ", blocks of 1024" : ""),
              predicted, ms, static_cast<double>(rounds) * blocks * threads * unrolled, "G/s");
  RETURN_IF_ERROR(bench.device().free(address));
  return bench.device().free(out);
}

// The scan of query 6: rows of date (12 bits), discount (4), quantity (6), price (24), plain or packed.
// Packed: a vector of 1,024 rows is 32 lanes of 32 values; value k of a lane is row 32 k + lane; its bits start at bit
// k * b of the lane's stream, whose words lie 128 bytes apart.
enum class Scan { plain, literal, at_run_time };
constexpr uint32_t scan_bits[] = {12, 4, 6, 24};
constexpr uint32_t date_from = 1000, date_to = 1600, discount_from = 5, discount_to = 7, quantity_to = 24;

std::string scan_text(const Bench& bench, const std::string& target, Scan scan) {
  std::string text = head(bench, target, block_threads, "");
  // table: four addresses, then the four widths (which only at_run_time reads); shift unused; rounds: vectors of 1,024
  // rows. A warp takes a vector at a time.
  text +=
      "ld.global.u64 %w30, [%base];\nld.global.u64 %w31, [%base+8];\nld.global.u64 %w32, [%base+16];\n"
      "ld.global.u64 %w33, [%base+24];\nld.global.u32 %a36, [%base+32];\nld.global.u32 %a37, [%base+36];\n"
      "ld.global.u32 %a38, [%base+40];\nld.global.u32 %a39, [%base+44];\n"
      "and.b32 %lane, %m, 31;\nshr.u32 %warp, %m, 5;\nmov.u32 %c, %nctaid.x;\nshl.b32 %c, %c, 3;\n"
      "VECTOR:\nsetp.ge.u32 %p, %warp, %n;\n@%p bra END;\n";
  const auto decide = [&](const std::string& date, const std::string& discount, const std::string& quantity) {
    return fmt::format(
        "sub.u32 %a30, {}, {};\nsetp.lt.u32 %p, %a30, {};\nsub.u32 %a30, {}, {};\nsetp.le.and.u32 %p, %a30, {}, %p;\n"
        "setp.lt.and.u32 %p, {}, {}, %p;\n",
        date, date_from, date_to - date_from, discount, discount_from, discount_to - discount_from, quantity,
        quantity_to);
  };
  if (scan == Scan::plain) {
    text += "shl.b32 %i, %warp, 10;\nadd.u32 %i, %i, %lane;\nmov.u32 %j, 0;\nmov.f64 %d0, 0d0000000000000000;\nROWS:\n";
    constexpr uint32_t rows = 4;
    for (uint32_t k = 0; k < rows; ++k)
      text += fmt::format(
          "mad.wide.u32 %at, %i, 4, %w30;\nld.global.u32 %a{0}, [%at+{1}];\nmad.wide.u32 %at, %i, 8, %w31;\n"
          "ld.global.f64 %d{2}, [%at+{5}];\nmad.wide.u32 %at, %i, 8, %w32;\nld.global.f64 %d{3}, [%at+{5}];\n"
          "mad.wide.u32 %at, %i, 8, %w33;\nld.global.f64 %d{4}, [%at+{5}];\n",
          k, k * 128, 10 + k, 15 + k, 20 + k, k * 256);
    for (uint32_t k = 0; k < rows; ++k)
      text += fmt::format(
          "sub.u32 %a30, %a{0}, {1};\nsetp.lt.u32 %p, %a30, {2};\nsetp.ge.and.f64 %p, %d{3}, {4}, %p;\n"
          "setp.le.and.f64 %p, %d{3}, {5}, %p;\nsetp.lt.and.f64 %p, %d{6}, {7}, %p;\n"
          "@%p fma.rn.f64 %d0, %d{8}, %d{3}, %d0;\n",
          k, date_from, date_to - date_from, 10 + k, "0d4014000000000000", "0d401C000000000000", 15 + k,
          "0d4038000000000000", 20 + k);
    text += fmt::format(
        "add.u32 %i, %i, {};\nadd.u32 %j, %j, {};\nsetp.lt.u32 %p, %j, 32;\n@%p bra ROWS;\n"
        "cvt.rzi.u64.f64 %w0, %d0;\nadd.u64 %sum, %sum, %w0;\n",
        rows * 32, rows);
  } else if (scan == Scan::literal) {
    // Words of a column: %w<20 + c> is the lane's address; all values of the vector straight down.
    for (uint32_t c = 0; c < 4; ++c)
      text += fmt::format(
          "mul.wide.u32 %at, %warp, {};\nadd.u64 %w{}, %w{}, %at;\nmul.wide.u32 %at, %lane, 4;\nadd.u64 %w{}, %w{}, "
          "%at;\n",
          scan_bits[c] * 128, 20 + c, 30 + c, 20 + c, 20 + c);
    const auto value = [&](uint32_t c, uint32_t k) {
      const uint32_t b = scan_bits[c], bit = k * b, word = bit / 32, shift = bit % 32;
      std::string out;
      // %a<2 c>: the current word, %a<2 c + 1>: the next one, when a value crosses.
      if (shift == 0 || bit / 32 != (bit - b) / 32)
        if (shift == 0) out += fmt::format("ld.global.u32 %a{}, [%w{}+{}];\n", 2 * c, 20 + c, word * 128);
      if (shift + b > 32)
        out += fmt::format(
            "ld.global.u32 %a{0}, [%w{1}+{2}];\nshf.r.wrap.b32 %a{3}, %a{4}, %a{0}, {5};\nmov.u32 %a{4}, %a{0};\n"
            "and.b32 %a{3}, %a{3}, {6};\n",
            2 * c + 1, 20 + c, (word + 1) * 128, 10 + c, 2 * c, shift, (1u << b) - 1);
      else
        out += fmt::format("bfe.u32 %a{}, %a{}, {}, {};\n", 10 + c, 2 * c, shift, b);
      // A value that ends with its word: the next one starts a word of its own, which is loaded there (shift 0).
      return out;
    };
    for (uint32_t k = 0; k < 32; ++k) {
      for (uint32_t c = 0; c < 4; ++c) text += value(c, k);
      text += decide("%a10", "%a11", "%a12");
      text += "mul.wide.u32 %w0, %a13, %a11;\n@%p add.u64 %sum, %sum, %w0;\n";
    }
  } else {
    for (uint32_t c = 0; c < 4; ++c)
      text += fmt::format(
          "mul.lo.u32 %a30, %warp, %a{0};\nmul.wide.u32 %at, %a30, 128;\nadd.u64 %w{1}, %w{2}, %at;\n"
          "mul.wide.u32 %at, %lane, 4;\nadd.u64 %w{1}, %w{1}, %at;\nmov.u32 %a{3}, 0;\nmov.u32 %a31, 1;\n"
          "shl.b32 %a31, %a31, %a{0};\nsub.u32 %a{4}, %a31, 1;\n",
          36 + c, 20 + c, 30 + c, 20 + c, 24 + c);
    text += "mov.u32 %j, 0;\nROWS:\n";
    constexpr uint32_t rows = 4;
    for (uint32_t k = 0; k < rows; ++k) {
      for (uint32_t c = 0; c < 4; ++c)
        text += fmt::format(
            "shr.u32 %a30, %a{0}, 5;\nmad.wide.u32 %at, %a30, 128, %w{1};\nld.global.u32 %a0, [%at];\n"
            "ld.global.u32 %a1, [%at+128];\nshf.r.wrap.b32 %a{2}, %a0, %a1, %a{0};\nand.b32 %a{2}, %a{2}, %a{3};\n"
            "add.u32 %a{0}, %a{0}, %a{4};\n",
            20 + c, 20 + c, 10 + c, 24 + c, 36 + c);
      text += decide("%a10", "%a11", "%a12");
      text += "mul.wide.u32 %w0, %a13, %a11;\n@%p add.u64 %sum, %sum, %w0;\n";
    }
    text += fmt::format("add.u32 %j, %j, {};\nsetp.lt.u32 %p, %j, 32;\n@%p bra ROWS;\n", rows);
  }
  return text + "add.u32 %warp, %warp, %c;\nbra VECTOR;\nEND:\n" + tail;
}

Result<void> bench_scans(Bench& bench, const std::string& target) {
  const uint32_t vectors = bench.small() ? 5 : 1u << 16;
  const size_t n = size_t{vectors} * 1024;
  std::vector<uint32_t> packed[4], dates(n);
  std::vector<double> plain[3];
  for (uint32_t c = 0; c < 4; ++c) packed[c].resize(size_t{vectors} * scan_bits[c] * 32 + 32);
  for (auto& column : plain) column.resize(n);
  uint64_t expected = 0;
  for (size_t row = 0; row < n; ++row) {
    const size_t vector = row / 1024, lane = row % 32, k = row % 1024 / 32;
    uint32_t values[4];
    for (uint32_t c = 0; c < 4; ++c) {
      const uint32_t b = scan_bits[c];
      values[c] = hash(static_cast<uint32_t>(row) * 4 + c) >> (32 - b);
      const size_t bit = k * b, at = (vector * b + bit / 32) * 32 + lane;
      packed[c][at] |= values[c] << (bit % 32);
      if (bit % 32 + b > 32) packed[c][at + 32] |= values[c] >> (32 - bit % 32);
    }
    dates[row] = values[0];
    for (uint32_t c = 1; c < 4; ++c) plain[c - 1][row] = values[c];
    if (values[0] >= date_from && values[0] < date_to && values[1] >= discount_from && values[1] <= discount_to &&
        values[2] < quantity_to)
      expected += uint64_t{values[3]} * values[1];
  }
  std::vector<Address> memory;
  const auto put = [&](const auto& column) -> Result<Address> {
    ASSIGN_OR_RETURN(Address address, bench.put(column));
    memory.push_back(address);
    return address;
  };
  ASSIGN_OR_RETURN(Address out, put(std::vector<uint64_t>(1)));
  for (const Scan scan : {Scan::plain, Scan::literal, Scan::at_run_time}) {
    std::vector<uint64_t> table(6);
    for (uint32_t c = 0; c < 4; ++c) {
      if (scan != Scan::plain) {
        ASSIGN_OR_RETURN(table[c], put(packed[c]));
      } else if (c == 0) {
        ASSIGN_OR_RETURN(table[c], put(dates));
      } else {
        ASSIGN_OR_RETURN(table[c], put(plain[c - 1]));
      }
    }
    std::memcpy(&table[4], scan_bits, sizeof scan_bits);
    ASSIGN_OR_RETURN(Address parameters, put(table));
    ASSIGN_OR_RETURN(device::KernelHandle kernel, bench.kernel(scan_text(bench, target, scan)));
    ASSIGN_OR_RETURN(const uint32_t blocks, bench.resident(kernel, block_threads, 0));
    ASSIGN_OR_RETURN(const uint64_t sum,
                     run_once(bench, kernel, blocks, block_threads, 0, parameters, out, 0, vectors, 0));
    if (sum != expected) return world_error("scan {}: {} instead of {}", static_cast<int>(scan), sum, expected);
    ASSIGN_OR_RETURN(const std::vector<double> ms, bench.times([&] {
      return bench.launch(kernel, blocks, block_threads, 0, {parameters, out, 0, vectors, 0});
    }));
    constexpr const char* names[] = {"plain, 28 bytes a row", "packed, 46 bits a row, widths in the code",
                                     "packed, 46 bits a row, widths at run time"};
    constexpr double predicted[] = {105, 260, 160};
    bench.print(fmt::format("query 6 over {} rows, {}", n, names[static_cast<int>(scan)]),
                predicted[static_cast<int>(scan)], ms, static_cast<double>(n), "G rows/s");
  }
  for (Address address : memory) RETURN_IF_ERROR(bench.device().free(address));
  return {};
}

// Sums of 64 bits by group.
enum class Add { shared_words, shared_wide_words, shared_cas, global };

std::string add_text(const Bench& bench, const std::string& target, Add add) {
  const bool shared = add != Add::global;
  std::string text = head(bench, target, block_threads, shared ? ".extern .shared .align 8 .b8 sums[];\n" : "");
  // extra: groups. Shared: low words, then high words; for the CAS loop, 64-bit words.
  text += "ld.param.u32 %c, [extra];\n";
  if (shared)
    text += fmt::format(
        "mov.u32 %a20, sums;\nshl.b32 %a21, %c, 1;\nmov.u32 %i, %t;\nCLEAR:\nsetp.ge.u32 %p, %i, %a21;\n@%p bra "
        "CLEARED;\n"
        "mad.lo.u32 %j, %i, 4, %a20;\nst.shared.u32 [%j], 0;\nadd.u32 %i, %i, {};\nbra CLEAR;\nCLEARED:\nbar.sync 0;\n"
        "mad.lo.u32 %a21, %c, 4, %a20;\n",
        block_threads);
  text += "LOOP:\nsetp.eq.u32 %p, %n, 0;\n@%p bra END;\nsub.u32 %n, %n, 1;\n";
  for (uint32_t k = 0; k < unrolled; ++k) {
    text += step;
    // group: x >> shift; value: the low 24 bits (40 bits: the low 24, shifted by 16)
    text += "shr.u32 %i, %x, %s;\nand.b32 %a0, %x, 16777215;\n";
    if (add == Add::shared_words || add == Add::shared_wide_words) {
      const bool wide = add == Add::shared_wide_words;
      if (wide) text += "shr.u32 %a3, %a0, 16;\nshl.b32 %a0, %a0, 16;\n";
      text +=
          "mad.lo.u32 %j, %i, 4, %a20;\natom.shared.add.u32 %a1, [%j], %a0;\nadd.u32 %a2, %a1, %a0;\n"
          "setp.lt.u32 %p, %a2, %a1;\nmad.lo.u32 %j, %i, 4, %a21;\n";
      text += wide ? "selp.u32 %a4, 1, 0, %p;\nadd.u32 %a3, %a3, %a4;\nred.shared.add.u32 [%j], %a3;\n"
                   : "@%p red.shared.add.u32 [%j], 1;\n";
    } else if (add == Add::shared_cas) {
      text += "mad.lo.u32 %j, %i, 8, %a20;\ncvt.u64.u32 %w0, %a0;\natom.shared.add.u64 %w1, [%j], %w0;\n";
    } else {
      text += "mad.wide.u32 %at, %i, 8, %to;\ncvt.u64.u32 %w0, %a0;\nred.global.add.u64 [%at], %w0;\n";
    }
  }
  text += "bra LOOP;\nEND:\n";
  if (shared) {
    text += "bar.sync 0;\nmov.u32 %i, %t;\nFLUSH:\nsetp.ge.u32 %p, %i, %c;\n@%p bra FLUSHED;\n";
    if (add == Add::shared_cas)
      text += "mad.lo.u32 %j, %i, 8, %a20;\nld.shared.u64 %w0, [%j];\n";
    else
      text +=
          "mad.lo.u32 %j, %i, 4, %a20;\nld.shared.u32 %a0, [%j];\nmad.lo.u32 %j, %i, 4, %a21;\nld.shared.u32 %a1, "
          "[%j];\n"
          "mov.b64 %w0, {%a0, %a1};\n";
    text += fmt::format(
        "mad.wide.u32 %at, %i, 8, %to;\nred.global.add.u64 [%at], %w0;\nadd.u32 %i, %i, {};\nbra FLUSH;\nFLUSHED:\n",
        block_threads);
  }
  return text + "ret;\n}\n";
}

Result<void> bench_adds(Bench& bench, const std::string& target, Add add, uint32_t log_groups, double predicted) {
  const uint32_t groups = 1u << log_groups, shift = 32 - log_groups;
  ASSIGN_OR_RETURN(device::KernelHandle kernel, bench.kernel(add_text(bench, target, add)));
  ASSIGN_OR_RETURN(Address out, bench.device().allocate(groups * 8));
  const uint32_t dynamic = add == Add::global ? 0 : groups * 8;
  ASSIGN_OR_RETURN(const uint32_t blocks, bench.resident(kernel, block_threads, dynamic));
  std::vector<uint64_t> expected(groups), sums(groups);
  const uint32_t check_rounds = 2;
  for (uint32_t thread = 0; thread < blocks * block_threads; ++thread) {
    uint32_t x = first_random(thread);
    for (uint32_t k = 0; k < check_rounds * unrolled; ++k) {
      x = next_random(x);
      const uint64_t value = x & 16777215;
      expected[x >> shift] += add == Add::shared_wide_words ? value << 16 : value;
    }
  }
  RETURN_IF_ERROR(bench.device().fill(out, 0, groups * 8));
  RETURN_IF_ERROR(bench.launch(kernel, blocks, block_threads, dynamic, {out, out, shift, check_rounds, groups}));
  RETURN_IF_ERROR(bench.device().copy_to_host(sums.data(), out, groups * 8));
  constexpr const char* names[] = {"two 32-bit words of shared memory, 24-bit values",
                                   "two 32-bit words of shared memory, 40-bit values",
                                   "64 bits of shared memory by compare and swap", "64 bits of global memory"};
  if (sums != expected) return world_error("adds to {}: wrong sums", names[static_cast<int>(add)]);
  const uint64_t rounds = bench.small()
                              ? check_rounds
                              : (uint64_t{1} << (add == Add::global ? 28 : 31)) / (blocks * block_threads * unrolled);
  ASSIGN_OR_RETURN(const std::vector<double> ms, bench.times([&] {
    return bench.launch(kernel, blocks, block_threads, dynamic, {out, out, shift, rounds, groups});
  }));
  bench.print(fmt::format("adds to {} groups, {}", groups, names[static_cast<int>(add)]), predicted, ms,
              static_cast<double>(rounds) * blocks * block_threads * unrolled, "G/s");
  return bench.device().free(out);
}

// A guard that lets through `passing` of 65,536 rows, then two gathers, the second by the first one's value.
std::string guard_text(const Bench& bench, const std::string& target, bool compact) {
  std::string text =
      head(bench, target, block_threads, compact ? ".shared .align 4 .b8 kept[8192];\n" : "");  // 8 warps of 256 words
  const auto guard = [&](uint32_t k) {
    return fmt::format("mul.lo.u32 %a30, %x, 2654435769;\nshr.u32 %a30, %a30, 16;\nsetp.lt.u32 %g{}, %a30, %c;\n", k);
  };
  // The rows of item k, whose number is in %a<k>, under predicate %g<k>.
  const auto gathers = [&](uint32_t count) {
    std::string out;
    for (uint32_t k = 0; k < count; ++k)
      out += fmt::format(
          "shr.u32 %a{1}, %a{0}, %s;\nmad.wide.u32 %w{0}, %a{1}, 4, %base;\nmov.u32 %a{1}, 0;\n@%g{0} ld.global.u32 "
          "%a{1}, "
          "[%w{0}];\n",
          k, k + 10);
    for (uint32_t k = 0; k < count; ++k)
      out += fmt::format(
          "xor.b32 %a{0}, %a{0}, %a{1};\nshr.u32 %a{0}, %a{0}, %s;\nmad.wide.u32 %w{0}, %a{0}, 4, %base;\nmov.u32 "
          "%a{1}, "
          "0;\n@%g{0} ld.global.u32 %a{1}, [%w{0}];\n",
          k, k + 10);
    for (uint32_t k = 0; k < count; ++k)
      out += fmt::format("cvt.u64.u32 %w{0}, %a{1};\nadd.u64 %sum, %sum, %w{0};\n", k, k + 10);
    return out;
  };
  text += "ld.param.u32 %c, [extra];\n";
  if (compact)
    text +=
        "and.b32 %lane, %t, 31;\nshr.u32 %warp, %t, 5;\nshl.b32 %warp, %warp, 10;\nmov.u32 %a31, kept;\nadd.u32 %warp, "
        "%warp, %a31;\nmov.u32 %a32, 1;\nshl.b32 %a32, %a32, %lane;\nsub.u32 %a32, %a32, 1;\n";  // lanes before this one
  text += "LOOP:\nsetp.eq.u32 %p, %n, 0;\n@%p bra END;\nsub.u32 %n, %n, 1;\n";
  if (!compact) {
    for (uint32_t k = 0; k < unrolled; ++k) text += step + guard(k) + fmt::format("mov.u32 %a{}, %x;\n", k);
    text += gathers(unrolled);
  } else {
    text += "mov.u32 %m, 0;\n";  // kept so far
    for (uint32_t k = 0; k < unrolled; ++k)
      text += step + guard(k) +
              fmt::format(
                  "vote.sync.ballot.b32 %a33, %g{}, 0xffffffff;\nand.b32 %a34, %a33, %a32;\npopc.b32 %a34, %a34;\n"
                  "add.u32 %a34, %a34, %m;\nmad.lo.u32 %a34, %a34, 4, %warp;\n@%g{} st.shared.u32 [%a34], %x;\n"
                  "popc.b32 %a33, %a33;\nadd.u32 %m, %m, %a33;\n",
                  k, k);
    text += "bar.warp.sync 0xffffffff;\nmov.u32 %i, %lane;\nDENSE:\nsetp.ge.u32 %p, %i, %m;\n@%p bra DENSE_END;\n";
    constexpr uint32_t items = 4;
    for (uint32_t k = 0; k < items; ++k)
      text += fmt::format(
          "add.u32 %j, %i, {0};\nsetp.lt.u32 %g{1}, %j, %m;\nmad.lo.u32 %j, %j, 4, %warp;\nmov.u32 %a{1}, 0;\n"
          "@%g{1} ld.shared.u32 %a{1}, [%j];\n",
          32 * k, k);
    text += gathers(items) +
            fmt::format("add.u32 %i, %i, {};\nbra DENSE;\nDENSE_END:\nbar.warp.sync 0xffffffff;\n", 32 * items);
  }
  return text + "bra LOOP;\nEND:\n" + tail;
}

Result<void> bench_guards(Bench& bench, const std::string& target) {
  const uint32_t log_bytes = bench.small() ? 12 : 23, shift = 32 - (log_bytes - 2);
  std::vector<uint32_t> table(size_t{1} << (log_bytes - 2));
  for (size_t i = 0; i < table.size(); ++i) table[i] = hash(static_cast<uint32_t>(i));
  ASSIGN_OR_RETURN(Address address, bench.put(table));
  ASSIGN_OR_RETURN(Address out, bench.device().allocate(256));
  struct Case {
    double percent, predicted[2];  // predicated, compacted
  };
  constexpr Case cases[] = {{1, {900, 700}},  {3, {600, 650}}, {10, {250, 450}},
                            {30, {120, 220}}, {50, {90, 140}}, {100, {75, 70}}};
  for (const Case& c : cases)
    for (const bool compact : {false, true}) {
      const auto passing = static_cast<uint64_t>(c.percent * 655.36);
      ASSIGN_OR_RETURN(device::KernelHandle kernel, bench.kernel(guard_text(bench, target, compact)));
      ASSIGN_OR_RETURN(const uint32_t blocks, bench.resident(kernel, block_threads, 0));
      const uint32_t check_rounds = 2;
      uint64_t expected = 0;
      for (uint32_t thread = 0; thread < blocks * block_threads; ++thread) {
        uint32_t x = first_random(thread);
        for (uint32_t k = 0; k < check_rounds * unrolled; ++k) {
          x = next_random(x);
          if ((x * 2654435769u) >> 16 < passing) expected += table[(x ^ table[x >> shift]) >> shift];
        }
      }
      ASSIGN_OR_RETURN(const uint64_t sum,
                       run_once(bench, kernel, blocks, block_threads, 0, address, out, shift, check_rounds, passing));
      if (sum != expected) return world_error("guard of {} %: {} instead of {}", c.percent, sum, expected);
      const uint64_t rounds = bench.small() ? check_rounds : (uint64_t{1} << 31) / (blocks * block_threads * unrolled);
      ASSIGN_OR_RETURN(const std::vector<double> ms, bench.times([&] {
        return bench.launch(kernel, blocks, block_threads, 0, {address, out, shift, rounds, passing});
      }));
      bench.print(fmt::format("guard of {} %, then two gathers from {} KiB, {}", c.percent, (table.size() * 4) >> 10,
                              compact ? "rows of the warp compacted" : "predicated"),
                  c.predicted[compact], ms, static_cast<double>(rounds) * blocks * block_threads * unrolled,
                  "G rows/s");
    }
  RETURN_IF_ERROR(bench.device().free(address));
  return bench.device().free(out);
}

// Sectors of 32 bytes, one of `every`: eight lanes read the words of one.
std::string sectors_text(const Bench& bench, const std::string& target) {
  return head(bench, target, block_threads, "") +
         // rounds: words to read; shift: logarithm of `every`
         "mov.u32 %c, %nctaid.x;\nshl.b32 %c, %c, 8;\nLOOP:\nsetp.ge.u32 %p, %m, %n;\n@%p bra END;\n"
         "shr.u32 %i, %m, 3;\nshl.b32 %i, %i, %s;\nshl.b32 %i, %i, 3;\nand.b32 %j, %m, 7;\nadd.u32 %i, %i, %j;\n"
         "mad.wide.u32 %at, %i, 4, %base;\nld.global.u32 %a0, [%at];\ncvt.u64.u32 %w0, %a0;\nadd.u64 %sum, %sum, %w0;\n"
         "add.u32 %m, %m, %c;\nbra LOOP;\nEND:\n" +
         tail;
}

Result<void> bench_mapped(Bench& bench, const std::string& target) {
  const uint64_t bytes = bench.small() ? 1 << 14 : uint64_t{1} << 29;
  ASSIGN_OR_RETURN(const device::Mapped host, bench.device().allocate_mapped(bytes));
  ASSIGN_OR_RETURN(Address out, bench.device().allocate(256));
  auto* words = static_cast<uint32_t*>(host.host);
  for (uint64_t i = 0; i < bytes / 4; ++i) words[i] = static_cast<uint32_t>(i);
  ASSIGN_OR_RETURN(device::KernelHandle kernel, bench.kernel(sectors_text(bench, target)));
  ASSIGN_OR_RETURN(const uint32_t blocks, bench.resident(kernel, block_threads, 0));
  constexpr double predicted[] = {45, 40, 35, 25};
  for (uint32_t log = 0; log <= 3; ++log) {
    const uint64_t count = (bytes / 4) >> log;
    uint64_t expected = 0;
    for (uint64_t i = 0; i < count; ++i) expected += words[((i >> 3 << log) << 3) + (i & 7)];
    ASSIGN_OR_RETURN(const uint64_t sum,
                     run_once(bench, kernel, blocks, block_threads, 0, host.address, out, log, count, 0));
    if (sum != expected) return world_error("reads of host memory: {} instead of {}", sum, expected);
    ASSIGN_OR_RETURN(const std::vector<double> ms, bench.times([&] {
      return bench.launch(kernel, blocks, block_threads, 0, {host.address, out, log, count, 0});
    }));
    bench.print(fmt::format("kernel reads 1 sector in {} of host memory, bytes of sectors read", 1 << log),
                predicted[log], ms, static_cast<double>(count) * 4, "GB/s");
  }
  RETURN_IF_ERROR(bench.device().free(out));
  return bench.device().free_mapped(host);
}

// A copy from pinned memory beside a kernel in another stream: the sum of the two alone, over the two together.
Result<void> bench_streams(Bench& bench, const std::string& target) {
  using namespace cuda;
  ASSIGN_OR_RETURN(const std::shared_ptr<const Driver> driver, Driver::open());
  const Driver& d = *driver;
  ContextPointer context;
  RETURN_IF_ERROR(d.check(d.cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain"));
  RETURN_IF_ERROR(d.check(d.cuCtxSetCurrent(context), "cuCtxSetCurrent"));
  ASSIGN_OR_RETURN(const std::vector<std::byte> cubin,
                   bench.assemble(gather_text(bench, target, 32, false, block_threads)));
  ModulePointer module;
  RETURN_IF_ERROR(d.check(d.cuModuleLoadData(&module, cubin.data()), "cuModuleLoadData"));
  FunctionPointer function;
  RETURN_IF_ERROR(d.check(d.cuModuleGetFunction(&function, module, "k"), "cuModuleGetFunction"));
  StreamPointer streams[2];
  for (StreamPointer& stream : streams)
    RETURN_IF_ERROR(d.check(d.cuStreamCreate(&stream, stream_non_blocking), "cuStreamCreate"));
  constexpr size_t bytes = size_t{1} << 29, table_bytes = size_t{1} << 28;
  void* host;
  RETURN_IF_ERROR(d.check(d.cuMemHostAlloc(&host, bytes, 0), "cuMemHostAlloc"));
  std::memset(host, 1, bytes);
  DevicePointer to, table, out;
  RETURN_IF_ERROR(d.check(d.cuMemAlloc(&to, bytes), "cuMemAlloc"));
  RETURN_IF_ERROR(d.check(d.cuMemAlloc(&table, table_bytes), "cuMemAlloc"));
  RETURN_IF_ERROR(d.check(d.cuMemAlloc(&out, 256), "cuMemAlloc"));
  RETURN_IF_ERROR(d.check(d.cuMemsetD8Async(table, 1, table_bytes, streams[0]), "cuMemsetD8Async"));
  const uint32_t blocks = bench.device().info().multiprocessors * 8;
  uint64_t rounds = 300;
  uint64_t parameters[] = {table, out, 32 - 26, rounds, 0};
  void* pointers[] = {&parameters[0], &parameters[1], &parameters[2], &parameters[3], &parameters[4]};
  const auto kernel = [&] {
    return d.check(d.cuLaunchKernel(function, blocks, 1, 1, block_threads, 1, 1, 0, streams[0], pointers, nullptr),
                   "cuLaunchKernel");
  };
  const auto copy = [&] { return d.check(d.cuMemcpyHtoDAsync(to, host, bytes, streams[1]), "cuMemcpyHtoDAsync"); };
  const auto time = [&](bool with_kernel, bool with_copy) -> Result<double> {
    for (StreamPointer stream : streams) RETURN_IF_ERROR(d.check(d.cuStreamSynchronize(stream), "cuStreamSynchronize"));
    const auto start = std::chrono::steady_clock::now();
    if (with_copy) RETURN_IF_ERROR(copy());
    if (with_kernel) RETURN_IF_ERROR(kernel());
    for (StreamPointer stream : streams) RETURN_IF_ERROR(d.check(d.cuStreamSynchronize(stream), "cuStreamSynchronize"));
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  };
  RETURN_IF_ERROR(time(true, true));
  // As long a kernel as the copy takes.
  ASSIGN_OR_RETURN(const double kernel_once, time(true, false));
  ASSIGN_OR_RETURN(const double copy_once, time(false, true));
  parameters[3] = rounds =
      std::max<uint64_t>(1, static_cast<uint64_t>(static_cast<double>(rounds) * copy_once / kernel_once));
  std::vector<double> alone, kernels, together;
  for (uint32_t k = 0; k < bench.repeat(); ++k) {
    ASSIGN_OR_RETURN(const double a, time(false, true));
    ASSIGN_OR_RETURN(const double b, time(true, false));
    ASSIGN_OR_RETURN(const double c, time(true, true));
    alone.push_back(a), kernels.push_back(b), together.push_back(c);
  }
  for (auto* ms : {&alone, &kernels, &together}) std::sort(ms->begin(), ms->end());
  bench.print("copy from pinned memory, alone", 55, alone, bytes, "GB/s");
  bench.print("copy from pinned memory, a kernel beside it", 53, together, bytes, "GB/s");
  std::printf("copy and kernel one after the other, over both at once\t1.9\t%.3g\t\t\ttimes\n",
              (alone[alone.size() / 2] + kernels[kernels.size() / 2]) / together[together.size() / 2]);
  for (DevicePointer address : {to, table, out}) RETURN_IF_ERROR(d.check(d.cuMemFree(address), "cuMemFree"));
  RETURN_IF_ERROR(d.check(d.cuMemFreeHost(host), "cuMemFreeHost"));
  for (StreamPointer stream : streams) RETURN_IF_ERROR(d.check(d.cuStreamDestroy(stream), "cuStreamDestroy"));
  RETURN_IF_ERROR(d.check(d.cuModuleUnload(module), "cuModuleUnload"));
  return d.check(d.cuDevicePrimaryCtxRelease(0), "cuDevicePrimaryCtxRelease");
}

Result<void> run_all(const Arguments& arguments) {
  std::unique_ptr<device::Device> device;
  std::unique_ptr<cuda::Preparation> preparation;
  if (arguments.device == "cuda") {
    preparation = cuda::prepare();
    ASSIGN_OR_RETURN(device, cuda::open(*preparation));
  } else {
    const size_t colon = arguments.device.find(':');
    ASSIGN_OR_RETURN(
        device, runtime::open_simulator(colon == std::string::npos ? "sm_90" : arguments.device.substr(colon + 1)));
  }
  const std::string& name = device->info().target;
  const isa::Target* target = isa::find_target(name);
  if (!target) return world_error("no target {}", name);
  Bench bench(*device, *target, arguments);
  std::printf("# %s, %s; %u runs\nwhat\tpredicted\tmeasured\tlowest\thighest\tunit\n", device->info().name.c_str(),
              name.c_str(), arguments.repeat);
  struct Gather {
    uint32_t bits, log_bytes;
    bool shared;
    uint32_t threads;
    double predicted;
  };
  // First-level cache, second-level cache, memory; shared memory. The predictions are for an H100 or H200: 157 G/s from
  // the second level was known from kernels that read row numbers, too.
  constexpr Gather gathers[] = {{1, 13, false, 256, 1400}, {1, 16, false, 256, 900},  {1, 22, false, 256, 160},
                                {8, 16, false, 256, 900},  {8, 22, false, 256, 160},  {8, 24, false, 256, 150},
                                {32, 16, false, 256, 900}, {32, 22, false, 256, 160}, {32, 24, false, 256, 150},
                                {32, 30, false, 256, 25},  {1, 13, true, 256, 1800},  {1, 15, true, 256, 1800},
                                {1, 15, true, 1024, 1800}, {1, 17, true, 1024, 1500}, {32, 15, true, 256, 2000}};
  for (const Gather& g : gathers) {
    const uint32_t dynamic = g.shared ? 1u << g.log_bytes : 0;
    if (dynamic > 48 << 10 && name != "sm_90") continue;  // more than a block has by default
    if (bench.small() && g.log_bytes > 17) continue;
    RETURN_IF_ERROR(bench_gather(bench, name, g.bits, g.log_bytes, g.shared, g.threads, g.predicted));
  }
  RETURN_IF_ERROR(bench_scans(bench, name));
  struct Sum {
    Add add;
    uint32_t log_groups;
    double predicted;
  };
  constexpr Sum sums[] = {{Add::shared_words, 2, 60},
                          {Add::shared_words, 6, 250},
                          {Add::shared_words, 10, 400},
                          {Add::shared_words, 12, 400},
                          {Add::shared_wide_words, 10, 220},
                          {Add::shared_cas, 6, 30},
                          {Add::shared_cas, 10, 80},
                          {Add::global, 6, 3},
                          {Add::global, 10, 3},
                          {Add::global, 16, 30},
                          {Add::global, 20, 60}};
  for (const Sum& sum : sums) RETURN_IF_ERROR(bench_adds(bench, name, sum.add, sum.log_groups, sum.predicted));
  RETURN_IF_ERROR(bench_guards(bench, name));
  RETURN_IF_ERROR(bench_mapped(bench, name));
  if (!device->info().is_simulator) RETURN_IF_ERROR(bench_streams(bench, name));
  return {};
}

int main_of(int argc, char** argv) {
  Arguments a;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--small") {
      a.small = true;
    } else if (flag == "--device" && i + 1 < argc) {
      a.device = argv[++i];
    } else if (flag == "--repeat" && i + 1 < argc) {
      a.repeat = static_cast<uint32_t>(std::max(1ul, std::strtoul(argv[++i], nullptr, 10)));
    } else {
      std::fprintf(stderr, "usage: bench_limits [--device cuda|sim[:TARGET]] [--small] [--repeat R]\n");
      return 2;
    }
  }
  if (auto done = run_all(a); !done) {
    std::fprintf(stderr, "bench_limits: %s\n", done.error().message.c_str());
    return 3;
  }
  return 0;
}

}  // namespace
}  // namespace rndn

int main(int argc, char** argv) { return rndn::guarded_main(rndn::main_of, argc, argv); }
