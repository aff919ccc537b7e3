// rndn-launch: runs one kernel of a cubin on the simulator or on a GPU.
//
//   rndn-launch F.cubin --kernel K --grid X[,Y,Z] --block X[,Y,Z] --arg … [--device D] [--stats] [--check] [--check-races]
//               [--weak-memory] [--seed N]
//
// Exit codes: 0 success; 1 the input is at fault (no cubin, a fault of the kernel, a hazard found by --check, a race by --check-races); 2 wrong
// usage; 3 output or memory at fault; 70 internal error.
#include <cctype>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "assembler/cubin/cubin.h"
#include "assembler/isa/isa.h"
#include "assembler/simulator/simulator.h"
#include "libraries/base/errors/guarded_main.h"
#include "libraries/base/report/version.h"
#include "libraries/base/system/files.h"
#include "runtime/cuda/cuda_device.h"
#include "tools/program.h"

namespace {

using namespace rndn;

// False for what is no number, and for numbers too large for the type; inf and nan are numbers.
template <class T>
bool parse_float(const std::string& text, T& value) {
  if (text.empty() || std::isspace(static_cast<unsigned char>(text[0]))) return false;
  char* end = nullptr;
  if constexpr (sizeof(T) == 4)
    value = std::strtof(text.c_str(), &end);
  else
    value = std::strtod(text.c_str(), &end);
  // An overflow gives an infinity that was not asked for.
  const bool spelled = text.find_first_of("iI") != std::string::npos;
  return end == text.c_str() + text.size() && (!std::isinf(value) || spelled);
}
bool parse_extents(const std::string& text, sim::Dim3& extents) {
  uint32_t* parts[] = {&extents.x, &extents.y, &extents.z};
  size_t start = 0;
  for (int i = 0; i < 3; ++i) {
    const size_t comma = text.find(',', start);
    if (!tools::parse_integer(std::string_view(text).substr(start, comma - start), *parts[i]) || *parts[i] == 0)
      return false;
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
  bool read_back = false;  // written to `output` afterwards, or to that of -o when it is empty
  std::string output;
  uint64_t address = 0;
};

template <class T>
std::vector<std::byte> bytes_of(T v) {
  std::vector<std::byte> b(sizeof v);
  std::memcpy(b.data(), &v, sizeof v);
  return b;
}

constexpr uint64_t memory_bytes = uint64_t{64} << 30;  // address space, not use

template <class T>
bool parse_value(const std::string& text, std::vector<std::byte>& bytes) {
  T value;
  bool ok;
  if constexpr (std::is_floating_point_v<T>)
    ok = parse_float(text, value);
  else
    ok = tools::parse_integer(text, value);
  if (ok) bytes = bytes_of(value);
  return ok;
}

constexpr struct {
  std::string_view name;
  bool (*parse)(const std::string&, std::vector<std::byte>&);
} value_kinds[] = {{"i32", parse_value<int32_t>},  {"u32", parse_value<uint32_t>}, {"i64", parse_value<int64_t>},
                   {"u64", parse_value<uint64_t>}, {"f32", parse_value<float>},    {"f64", parse_value<double>}};

Result<Argument> parse_argument(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return usage_error("--arg {}: expected KIND:VALUE", text);
  const std::string kind = text.substr(0, colon), rest = text.substr(colon + 1);
  const auto bad = [&] { return usage_error("--arg {}: not a value of kind `{}`", text, kind); };
  Argument a;
  for (const auto& row : value_kinds) {
    if (row.name != kind) continue;
    if (!row.parse(rest, a.value)) return bad();
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
  if (second == std::string::npos && (kind == "inout" || kind == "buf")) return bad();
  const std::string first = rest.substr(0, second), last = second == std::string::npos ? "" : rest.substr(second + 1);
  if (kind == "inout") {
    if (last.empty()) return bad();
    RETURN_IF_ERROR(load(first));
    a.read_back = true;
    a.output = last;
    return a;
  }
  if (kind == "out" || kind == "buf") {
    if (!tools::parse_integer(first, a.bytes) || a.bytes > memory_bytes) return bad();
    if (kind == "out") {
      if (second != std::string::npos && last.empty()) return bad();
      a.read_back = true;
      a.output = last;
      return a;
    }
    if (last == "zero") return a;
    if (last == "iota") {
      a.contents.resize(a.bytes);
      for (uint64_t i = 0; i + 4 <= a.bytes; i += 4) {
        const uint32_t word = static_cast<uint32_t>(i / 4);
        std::memcpy(a.contents.data() + i, &word, 4);
      }
      return a;
    }
    if (uint64_t seed; last.starts_with("rand=") && tools::parse_integer(last.substr(5), seed)) {
      a.contents.resize(a.bytes);
      std::mt19937_64 engine(seed);
      for (uint64_t i = 0; i < a.bytes; ++i) a.contents[i] = static_cast<std::byte>(engine());
      return a;
    }
    return bad();
  }
  return usage_error("--arg {}: no such kind; kinds are i32 u32 i64 u64 f32 f64 in out inout buf", text);
}

std::string kernel_list(const cubin::Image& image) {
  std::string out;
  for (const cubin::Kernel& k : image.kernels) {
    if (k.role != cubin::Kernel::entry) continue;
    out += fmt::format("{} registers {} shared {} local {} parameters", k.name, k.registers, k.shared_bytes,
                       k.local_bytes);
    for (const cubin::Parameter& p : k.parameters) out += fmt::format(" {}", p.size);
    out += "\n";
  }
  return out;
}

// A GPU with the simulator's names for what this program does with memory.
struct Gpu {
  device::Device& device;
  Result<uint64_t> allocate(uint64_t bytes) { return device.allocate(bytes); }
  Result<void> write(uint64_t to, const void* from, uint64_t bytes) { return device.copy_to_device(to, from, bytes); }
  Result<void> read(uint64_t from, void* to, uint64_t bytes) { return device.copy_to_host(to, from, bytes); }
};

// Buffers to the machine; the parameter area.
template <class Machine>
Result<std::vector<std::byte>> place(Machine& machine, const cubin::Kernel& kernel, std::vector<Argument>& arguments) {
  std::vector<std::byte> parameters(kernel.parameter_bytes);
  for (size_t i = 0; i < arguments.size(); ++i) {
    Argument& a = arguments[i];
    if (a.buffer) {
      ASSIGN_OR_RETURN(a.address, machine.allocate(a.bytes));
      a.contents.resize(a.bytes);
      RETURN_IF_ERROR(machine.write(a.address, a.contents.data(), a.bytes));
      a.value = bytes_of(a.address);
    }
    const cubin::Parameter& p = kernel.parameters[i];
    if (a.value.size() != p.size || uint64_t{p.offset} + p.size > parameters.size())
      return usage_error("parameter {} of kernel `{}` has {} bytes, the argument has {}", i + 1, kernel.name, p.size,
                         a.value.size());
    std::memcpy(parameters.data() + p.offset, a.value.data(), a.value.size());
  }
  return parameters;
}

// Buffers from the machine to their files.
template <class Machine>
Result<void> collect(Machine& machine, const std::vector<Argument>& arguments, const std::string& output) {
  std::string unnamed;
  bool any_unnamed = false;
  for (const Argument& a : arguments) {
    if (!a.read_back) continue;
    std::string out(a.bytes, '\0');
    RETURN_IF_ERROR(machine.read(a.address, out.data(), a.bytes));
    if (a.output.empty()) {
      any_unnamed = true;
      unnamed += out;
    } else {
      RETURN_IF_ERROR(write_file(a.output, out));
    }
  }
  if (any_unnamed) RETURN_IF_ERROR(write_file(output, unnamed));
  return {};
}

// "name value" lines, on standard error.
void print_counts(const sim::Counters& c, const sim::KernelInfo& kernel, const isa::Target& target, sim::Dim3 block,
                  uint32_t dynamic_shared, double elapsed_ns, double cpu_ns) {
  const uint32_t threads = block.x * block.y * block.z;
  const uint32_t resident = sim::resident_blocks(target, kernel, threads, dynamic_shared);
  const uint32_t warps = std::min(resident * ((threads + 31) / 32), target.warps_per_sm);
  fmt::print(stderr, "blocks {}\nregisters {}\nshared_bytes {}\nresident_blocks {}\noccupancy {:.3f}\n", c.blocks,
             kernel.registers, kernel.shared_bytes + dynamic_shared, resident,
             static_cast<double>(warps) / target.warps_per_sm);
  fmt::print(stderr, "warp_instructions {}\nthread_instructions {}\n", c.warp_instructions, c.thread_instructions);
  for (size_t k = 0; k < sim::instruction_classes; ++k)
    if (c.warp_by_class[k] != 0)
      fmt::print(stderr, "warp_instructions.{0} {1}\nthread_instructions.{0} {2}\n", sim::instruction_class_name(k),
                 c.warp_by_class[k], c.thread_by_class[k]);
  fmt::print(
      stderr,
      "issue_cycles {}\nglobal_load_sectors {}\nglobal_store_sectors {}\nglobal_load_bytes {}\nglobal_store_bytes {}\n"
      "shared_accesses {}\nshared_bank_conflicts {}\ndivergent_branches {}\nhazards {}\n",
      c.issue_cycles, c.global_load_sectors, c.global_store_sectors, c.global_load_bytes, c.global_store_bytes,
      c.shared_accesses, c.shared_bank_conflicts, c.divergent_branches, c.hazards);
  if (c.spin_iterations)  // beyond the counts above
    fmt::print(stderr,
               "spin_iterations {}\nspin_warp_instructions {}\nspin_thread_instructions {}\nspin_issue_cycles {}\n"
               "spin_global_load_sectors {}\n",
               c.spin_iterations, c.spinning.warp_instructions, c.spinning.thread_instructions, c.spinning.issue_cycles,
               c.spinning.global_load_sectors);
  fmt::print(stderr, "elapsed_ns {:.0f}\ncpu_ns {:.0f}\n", elapsed_ns, cpu_ns);
}

Result<void> run_on_gpu(int ordinal, std::span<const std::byte> cubin, const cubin::Kernel& kernel, sim::Dim3 grid,
                        sim::Dim3 block, uint32_t dynamic_shared, std::vector<Argument>& arguments,
                        const std::string& output, bool stats) {
  const auto preparation = cuda::prepare(ordinal);
  ASSIGN_OR_RETURN(const std::unique_ptr<device::Device> device, cuda::open(*preparation));
  Gpu gpu{*device};
  ASSIGN_OR_RETURN(const device::ModuleHandle module, device->load_module(cubin));
  ASSIGN_OR_RETURN(const device::KernelHandle found, device->find_kernel(module, kernel.name));
  ASSIGN_OR_RETURN(const std::vector<std::byte> parameters, place(gpu, kernel, arguments));
  ASSIGN_OR_RETURN(const uint32_t start, device->record_mark());
  RETURN_IF_ERROR(
      device->launch(found, {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, dynamic_shared, parameters));
  ASSIGN_OR_RETURN(const uint32_t end, device->record_mark());
  RETURN_IF_ERROR(device->synchronize());
  if (stats) {
    ASSIGN_OR_RETURN(const uint64_t ns, device->elapsed_ns(start, end));
    std::fprintf(stderr, "elapsed_ns %llu\n", static_cast<unsigned long long>(ns));
  }
  return collect(gpu, arguments, output);
}

int run(int argc, char** argv) {
  std::string file, kernel_name, target, device = "sim", output = "-";
  sim::Dim3 grid, block;
  sim::Options options;
  uint32_t dynamic_shared = 0, threads = 0;
  bool stats = false, list = false, check = false;
  std::vector<std::string> texts;
  CLI::App app("Runs a kernel of a cubin on the simulator or on a GPU.", "rndn-launch");
  app.set_version_flag("--version", fmt::format("rndn-launch {}", version()));
  app.add_option("F.cubin", file, "the cubin; - reads standard input")->required();
  app.add_option("--kernel", kernel_name, "which kernel; may be left out when the cubin has one")->type_name("K");
  const auto extents = [](const char* flag, sim::Dim3& value) {
    return [flag, &value](const std::string& text) {
      if (!parse_extents(text, value))
        throw CLI::ValidationError(flag, "expected X[,Y,Z], each from 1 to 4294967295, got `" + text + "`");
    };
  };
  app.add_option_function<std::string>("--grid", extents("--grid", grid), "blocks (default 1)")->type_name("X[,Y,Z]");
  app.add_option_function<std::string>("--block", extents("--block", block), "threads per block (default 1)")
      ->type_name("X[,Y,Z]");
  // More than a multiprocessor has is refused by the launch.
  tools::add_number(app, "--shared", dynamic_shared, 0u, 1u << 20, "bytes of dynamic shared memory");
  app.add_option("--arg", texts,
                 "next parameter, in order:\n"
                 "i32:N u32:N i64:N u64:N f32:X f64:X  a value;\n"
                 "in:FILE  a buffer with the file's contents;\n"
                 "out:BYTES[:FILE]  a buffer of zeros, written to FILE afterwards (default: to -o);\n"
                 "inout:FILE:FILE  read from the first, written to the second;\n"
                 "buf:BYTES:zero|iota|rand=SEED  a buffer; iota: 32-bit words 0, 1, 2, ..")
      ->type_name("A")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  int ordinal = -1;
  app.add_option_function<std::string>(
         "--device",
         [&](const std::string& text) {
           device = text;
           if (text == "sim" || text == "cuda") return;
           if (text.rfind("cuda:", 0) != 0 || !tools::parse_integer(std::string_view(text).substr(5), ordinal) ||
               ordinal < 0)
             throw CLI::ValidationError("--device", "expected sim, cuda or cuda:N, got `" + text + "`");
         },
         "where it runs: sim (default), cuda or cuda:N; checks, --weak-memory, --seed, --threads and --limit are the "
         "simulator's")
      ->type_name("D");
  std::vector<std::string> targets;
  std::string all_targets;
  for (const isa::Target& t : isa::targets()) targets.emplace_back(t.name), all_targets += std::string(t.name) + " ";
  app.add_option("--target,--arch", target, fmt::format("the simulated GPU: {}(default: the cubin's)", all_targets))
      ->check(CLI::IsMember(targets))
      ->type_name("A");
  app.add_option("-o", output, "where --list and buffers without a file go; - is standard output (default)")
      ->type_name("FILE");
  app.add_flag("--stats", stats, "counts of the launch and its time on the host, on standard error");
  app.add_flag("--check", check, "hazard and initialisation checks, in one deterministic order; races: --check-races");
  app.add_flag("--weak-memory", options.weak_memory,
               "stores arrive late, plain loads may be old, but for fences; one order");
  app.add_flag("--hazards", options.check_hazards, "the hazard checks of --check alone");
  app.add_flag("--check-races", options.check_races,
               "accesses to shared memory that no barrier orders, in one deterministic order");
  CLI::Option* seed = tools::add_number(app, "--seed", options.seed, decltype(options.seed){0},
                                        std::numeric_limits<decltype(options.seed)>::max(),
                                        "which deterministic order (default 1); asks for one");
  tools::add_number(app, "--threads", threads, 0u, 1024u, "host threads; 0: all (default)");
  tools::add_number(app, "--limit", options.max_warp_instructions, decltype(options.max_warp_instructions){0},
                    std::numeric_limits<decltype(options.max_warp_instructions)>::max(),
                    "warp instructions after which the launch is called a hang; 0: none (default)");
  app.add_flag("--list", list, "lists the cubin's kernels and their parameters");
  if (auto code = tools::parse_command_line(app, {argv + 1, argv + argc})) return *code;
  options.threads = threads;
  if (device != "sim" && (check || options.check_hazards || options.check_races || options.weak_memory ||
                          seed->count() || options.max_warp_instructions))
    return tools::report(
        usage_error("--device {}: --check, --hazards, --check-races, --weak-memory, --seed and --limit are "
                    "the simulator's",
                    device));
  if (check) options.check_hazards = options.check_uninitialised = true;
  options.deterministic = check || options.check_hazards || options.check_races || seed->count() > 0;
  std::vector<Argument> arguments;
  for (const std::string& text : texts) {
    auto a = parse_argument(text);
    if (!a) return tools::report(a.error());
    arguments.push_back(*std::move(a));
  }

  auto contents = read_file(file);
  if (!contents) return tools::report(contents.error());
  const auto bytes = std::as_bytes(std::span<const char>(contents->data(), contents->size()));
  auto image = cubin::read(bytes);
  if (!image) return tools::report({image.error().fault, file + ": " + image.error().message});
  if (list) {
    auto written = write_file(output, kernel_list(*image));
    return written ? 0 : tools::report(written.error());
  }
  if (kernel_name.empty() && image->kernels.size() == 1) kernel_name = image->kernels[0].name;
  const cubin::Kernel* kernel = nullptr;
  for (const cubin::Kernel& k : image->kernels)
    if (k.name == kernel_name) kernel = &k;
  if (!kernel)
    return tools::report(kernel_name.empty()
                             ? usage_error("{} has {} kernels: say which with --kernel", file, image->kernels.size())
                             : input_error("{} has no kernel `{}`", file, kernel_name));
  if (arguments.size() != kernel->parameters.size())
    return tools::report(usage_error("kernel `{}` takes {} parameters, {} given with --arg", kernel_name,
                                     kernel->parameters.size(), arguments.size()));

  if (device != "sim") {
    auto ran = run_on_gpu(ordinal, bytes, *kernel, grid, block, dynamic_shared, arguments, output, stats);
    return ran ? 0 : tools::report(ran.error());
  }
  const std::string simulated = target.empty() ? fmt::format("sm_{}", image->sm) : target;
  sim::Machine machine(simulated, memory_bytes);
  auto module = machine.load(bytes);
  if (!module) return tools::report(module.error());
  const auto parameters = place(machine, *kernel, arguments);
  if (!parameters) return tools::report(parameters.error());
  std::vector<sim::Report> reports;
  const auto start = std::chrono::steady_clock::now();
  const std::clock_t cpu_start = std::clock();
  std::string printed;
  options.output = &printed;
  options.count_classes = stats;
  auto counters = machine.launch(*module, kernel_name, grid, block, dynamic_shared, *parameters, options, &reports);
  const double cpu_ns = static_cast<double>(std::clock() - cpu_start) * (1e9 / CLOCKS_PER_SEC);
  const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
  std::fwrite(printed.data(), 1, printed.size(), stdout);
  for (const sim::Report& r : reports) std::fprintf(stderr, "error: %s\n", r.text().c_str());
  if (!counters) {
    if (reports.empty()) return tools::report(counters.error());
    return 1;
  }
  if (stats) {
    const auto info = machine.kernel(*module, kernel_name);
    if (!info) return tools::report(info.error());
    print_counts(*counters, *info, *isa::find_target(simulated), block, dynamic_shared, elapsed.count(), cpu_ns);
  }
  auto collected = collect(machine, arguments, output);
  return collected ? 0 : tools::report(collected.error());
}

}  // namespace

int main(int argc, char** argv) { return guarded_main(run, argc, argv); }
