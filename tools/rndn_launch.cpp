// rndn-launch: runs one kernel of a cubin on the simulator.
//
//   rndn-launch F.cubin --kernel K --grid X[,Y,Z] --block X[,Y,Z] --arg … [--stats] [--check] [--seed N]
//
// Exit codes: 0 success; 1 the input is at fault (no cubin, a fault of the kernel, a hazard found by --check); 2 wrong usage; 3 output or
// memory at fault.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "assembler/cubin/cubin.h"
#include "assembler/simulator/simulator.h"
#include "libraries/base/files.h"
#include "libraries/base/version.h"

namespace {

using namespace rndn;

constexpr const char* usage =
    R"(rndn-launch: runs a kernel of a cubin

usage: rndn-launch [flags] F.cubin     (- reads standard input)

  --kernel K              which kernel; may be left out when the cubin has one
  --grid X[,Y,Z]          blocks (default 1)
  --block X[,Y,Z]         threads per block (default 1)
  --shared BYTES          dynamic shared memory
  --arg A                 next parameter, in order:
      i32:N u32:N i64:N u64:N f32:X f64:X    a value
      in:FILE                                a buffer with the file's contents
      out:BYTES:FILE                         a buffer of zeros, written to FILE afterwards (- is standard output)
      inout:FILE:FILE                        read from the first, written to the second
      buf:BYTES:zero|iota|rand=SEED          a buffer; iota: 32-bit words 0, 1, 2, ..
  --device sim            where it runs
  --target A              the simulated GPU: sm_60 sm_61 sm_80 sm_86 sm_89 sm_90; default: the cubin's
  --stats                 counts of the launch and its time on the host, on standard error
  --check                 hazard and initialisation checks, in one deterministic order
  --seed N                order of that mode (default 1); implies it
  --threads N             host threads (default: all)
  --limit N               warp instructions after which the launch is called a hang (default 0: none)
  --list                  lists the cubin's kernels and their parameters
  -h, --help              this text
  --version
)";

int fail_usage(const std::string& message) {
  std::fprintf(stderr, "rndn-launch: %s\ntry rndn-launch --help\n", message.c_str());
  return 2;
}
int fail(const Error& error) {
  std::fprintf(stderr, "rndn-launch: %s\n", error.message.c_str());
  return error.exit_code();
}

bool parse_number(const std::string& text, uint64_t& value) {
  if (text.empty()) return false;
  char* end = nullptr;
  errno = 0;
  value = text[0] == '-' ? static_cast<uint64_t>(std::strtoll(text.c_str(), &end, 0))
                         : std::strtoull(text.c_str(), &end, 0);
  return errno == 0 && *end == '\0';
}
bool parse_float(const std::string& text, double& value) {
  char* end = nullptr;
  value = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0';
}
bool parse_extents(const std::string& text, sim::Dim3& extents) {
  uint32_t* parts[] = {&extents.x, &extents.y, &extents.z};
  size_t start = 0;
  for (int i = 0; i < 3; ++i) {
    const size_t comma = text.find(',', start);
    uint64_t v;
    if (!parse_number(text.substr(start, comma - start), v) || v == 0 || v > 0xffffffff) return false;
    *parts[i] = static_cast<uint32_t>(v);
    if (comma == std::string::npos) return true;
    start = comma + 1;
  }
  return false;
}

// One --arg: bytes of a value, or a buffer whose address is passed.
struct Argument {
  std::vector<std::byte> value;
  bool buffer = false;
  uint64_t bytes = 0;
  std::vector<std::byte> contents;
  std::string output;  // file to write afterwards
  uint64_t address = 0;
};

template <class T>
std::vector<std::byte> bytes_of(T v) {
  std::vector<std::byte> b(sizeof v);
  std::memcpy(b.data(), &v, sizeof v);
  return b;
}

constexpr uint64_t memory_bytes = uint64_t{64} << 30;  // address space, not use

Result<Argument> parse_argument(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return usage_error("--arg {}: expected KIND:VALUE", text);
  const std::string kind = text.substr(0, colon), rest = text.substr(colon + 1);
  const auto bad = [&] { return usage_error("--arg {}: not a value of kind `{}`", text, kind); };
  Argument a;
  uint64_t n;
  double f;
  if (kind == "i32" || kind == "u32") {
    if (!parse_number(rest, n)) return bad();
    a.value = bytes_of(static_cast<uint32_t>(n));
    return a;
  }
  if (kind == "i64" || kind == "u64") {
    if (!parse_number(rest, n)) return bad();
    a.value = bytes_of(n);
    return a;
  }
  if (kind == "f32" || kind == "f64") {
    if (!parse_float(rest, f)) return bad();
    a.value = kind == "f32" ? bytes_of(static_cast<float>(f)) : bytes_of(f);
    return a;
  }
  a.buffer = true;
  const auto load = [&](const std::string& file) -> Result<void> {
    ASSIGN_OR_RETURN(const std::string contents, read_file(file));
    a.contents.resize(contents.size());
    std::memcpy(a.contents.data(), contents.data(), contents.size());
    a.bytes = contents.size();
    return {};
  };
  const size_t second = rest.find(':');
  if (kind == "in") {
    RETURN_IF_ERROR(load(rest));
    return a;
  }
  if (second == std::string::npos && (kind == "out" || kind == "inout" || kind == "buf")) return bad();
  const std::string first = rest.substr(0, second), last = second == std::string::npos ? "" : rest.substr(second + 1);
  if (kind == "inout") {
    RETURN_IF_ERROR(load(first));
    a.output = last;
    return a;
  }
  if (kind == "out" || kind == "buf") {
    if (!parse_number(first, a.bytes) || a.bytes > memory_bytes) return bad();
    if (kind == "out") {
      a.output = last;
      return a;
    }
    if (last == "zero") return a;
    a.contents.resize(a.bytes);
    if (last == "iota") {
      for (uint64_t i = 0; i + 4 <= a.bytes; i += 4) {
        const uint32_t word = static_cast<uint32_t>(i / 4);
        std::memcpy(a.contents.data() + i, &word, 4);
      }
      return a;
    }
    if (last.starts_with("rand=") && parse_number(last.substr(5), n)) {
      std::mt19937_64 engine(n);
      for (uint64_t i = 0; i < a.bytes; ++i) a.contents[i] = static_cast<std::byte>(engine());
      return a;
    }
    return bad();
  }
  return usage_error("--arg {}: no such kind; kinds are i32 u32 i64 u64 f32 f64 in out inout buf", text);
}

void list_kernels(const cubin::Image& image) {
  for (const cubin::Kernel& k : image.kernels) {
    std::printf("%s registers %u shared %u local %u parameters", k.name.c_str(), k.registers, k.shared_bytes,
                k.local_bytes);
    for (const cubin::Parameter& p : k.parameters) std::printf(" %u", p.size);
    std::printf("\n");
  }
}

int run(const std::vector<std::string>& args) {
  std::string file, kernel_name, target;
  sim::Dim3 grid, block;
  sim::Options options;
  uint64_t dynamic_shared = 0;
  bool stats = false, list = false;
  std::vector<Argument> arguments;
  for (size_t i = 0; i < args.size(); ++i) {
    std::string flag = args[i], value;
    bool has_value = false;
    if (flag.starts_with("--") && flag.find('=') != std::string::npos) {
      value = flag.substr(flag.find('=') + 1);
      flag.resize(flag.find('='));
      has_value = true;
    }
    const auto take = [&] {
      if (!has_value && i + 1 < args.size()) {
        value = args[++i];
        has_value = true;
      }
      return has_value;
    };
    if (flag == "-h" || flag == "--help") {
      std::fputs(usage, stdout);
      return 0;
    }
    if (flag == "--version") {
      std::printf("rndn-launch %s\n", std::string(version()).c_str());
      return 0;
    }
    if (flag == "--stats") {
      stats = true;
    } else if (flag == "--list") {
      list = true;
    } else if (flag == "--check") {
      options.check_hazards = options.check_uninitialised = options.deterministic = true;
    } else if (flag == "--kernel" || flag == "--grid" || flag == "--block" || flag == "--shared" || flag == "--arg" ||
               flag == "--device" || flag == "--target" || flag == "--seed" || flag == "--limit" ||
               flag == "--threads") {
      if (!take()) return fail_usage(flag + " needs a value");
      uint64_t n = 0;
      if (flag == "--kernel") {
        kernel_name = value;
      } else if (flag == "--target") {
        target = value;
      } else if (flag == "--grid" || flag == "--block") {
        if (!parse_extents(value, flag == "--grid" ? grid : block))
          return fail_usage(flag + " " + value + ": expected X[,Y,Z], each at least 1");
      } else if (flag == "--arg") {
        auto a = parse_argument(value);
        if (!a) return fail(a.error());
        arguments.push_back(*std::move(a));
      } else if (flag == "--device") {
        if (value != "sim")
          return fail_usage("--device " + value + ": rndn-launch runs kernels on the simulator only; use --device sim");
      } else {
        if (!parse_number(value, n)) return fail_usage(flag + " " + value + ": not a number");
        if (flag == "--shared") dynamic_shared = n;
        if (flag == "--threads") options.threads = static_cast<unsigned>(n);
        if (flag == "--limit") options.max_warp_instructions = n;
        if (flag == "--seed") options.seed = n, options.deterministic = true;
      }
    } else if (flag.starts_with("-") && flag != "-") {
      return fail_usage("unknown flag " + flag);
    } else if (file.empty()) {
      file = flag;
    } else {
      return fail_usage("more than one cubin: " + file + ", " + flag);
    }
  }
  if (file.empty()) return fail_usage("no cubin given");
  if (dynamic_shared > 1 << 20) return fail_usage("--shared: more than a multiprocessor has");

  auto contents = read_file(file);
  if (!contents) return fail(contents.error());
  const auto bytes = std::as_bytes(std::span<const char>(contents->data(), contents->size()));
  auto image = cubin::read(bytes);
  if (!image) return fail({image.error().fault, file + ": " + image.error().message});
  if (list) {
    list_kernels(*image);
    return 0;
  }
  if (kernel_name.empty() && image->kernels.size() == 1) kernel_name = image->kernels[0].name;
  const cubin::Kernel* kernel = nullptr;
  for (const cubin::Kernel& k : image->kernels)
    if (k.name == kernel_name) kernel = &k;
  if (!kernel)
    return fail(kernel_name.empty()
                    ? usage_error("{} has {} kernels: say which with --kernel", file, image->kernels.size())
                    : input_error("{} has no kernel `{}`", file, kernel_name));
  if (arguments.size() != kernel->parameters.size())
    return fail(usage_error("kernel `{}` takes {} parameters, {} given with --arg", kernel_name,
                            kernel->parameters.size(), arguments.size()));

  sim::Machine machine(target.empty() ? fmt::format("sm_{}", image->sm) : target, memory_bytes);
  auto module = machine.load(bytes);
  if (!module) return fail(module.error());
  std::vector<std::byte> parameters(kernel->parameter_bytes);
  for (size_t i = 0; i < arguments.size(); ++i) {
    Argument& a = arguments[i];
    if (a.buffer) {
      auto address = machine.allocate(a.bytes);
      if (!address) return fail(address.error());
      a.address = *address;
      a.contents.resize(a.bytes);
      if (auto written = machine.write(a.address, a.contents.data(), a.bytes); !written) return fail(written.error());
      a.value = bytes_of(a.address);
    }
    const cubin::Parameter& p = kernel->parameters[i];
    if (a.value.size() != p.size || uint64_t{p.offset} + p.size > parameters.size())
      return fail(usage_error("parameter {} of kernel `{}` has {} bytes, the argument has {}", i + 1, kernel_name,
                              p.size, a.value.size()));
    std::memcpy(parameters.data() + p.offset, a.value.data(), a.value.size());
  }
  std::vector<sim::Report> reports;
  const auto start = std::chrono::steady_clock::now();
  const std::clock_t cpu_start = std::clock();
  auto counters = machine.launch(*module, kernel_name, grid, block, static_cast<uint32_t>(dynamic_shared), parameters,
                                 options, &reports);
  const double cpu_ns = static_cast<double>(std::clock() - cpu_start) * (1e9 / CLOCKS_PER_SEC);
  const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
  for (const sim::Report& r : reports) std::fprintf(stderr, "rndn-launch: %s\n", r.text().c_str());
  if (!counters) {
    if (reports.empty()) return fail(counters.error());
    return 1;
  }
  if (stats)
    std::fprintf(stderr,
                 "warp_instructions %llu\nthread_instructions %llu\nissue_cycles %llu\nglobal_load_sectors "
                 "%llu\nglobal_store_sectors %llu\n"
                 "shared_accesses %llu\ndivergent_branches %llu\nhazards %llu\nelapsed_ns %.0f\ncpu_ns %.0f\n",
                 static_cast<unsigned long long>(counters->warp_instructions),
                 static_cast<unsigned long long>(counters->thread_instructions),
                 static_cast<unsigned long long>(counters->issue_cycles),
                 static_cast<unsigned long long>(counters->global_load_sectors),
                 static_cast<unsigned long long>(counters->global_store_sectors),
                 static_cast<unsigned long long>(counters->shared_accesses),
                 static_cast<unsigned long long>(counters->divergent_branches),
                 static_cast<unsigned long long>(counters->hazards), elapsed.count(), cpu_ns);
  for (Argument& a : arguments) {
    if (a.output.empty()) continue;
    std::string out(a.bytes, '\0');
    if (auto read = machine.read(a.address, out.data(), a.bytes); !read) return fail(read.error());
    if (auto written = write_file(a.output, out); !written) return fail(written.error());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return run({argv + 1, argv + argc}); }
