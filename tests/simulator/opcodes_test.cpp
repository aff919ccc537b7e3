// PTX opcodes one by one (opcodes.h), operations with every kind of operand (tests/support/operands.h) and the kernels of tests/corpus: ptxas's code gives
// what the PTX interpreter gives, in the simulator with the hazard checks, and on a GPU; so does our code for sm_75 and sm_90. 4608 special and random operands for each opcode, 4096 for
// each kind of operand; in the gate 1536 and 1024. Approximations are compared within their documented error.
//
// Left out: saturating integer additions (IADD.SAT and its kind are not simulated), texture and matrix operations, and what the PTX parser does not
// know: setp.f16x2, set.u32.f16x2, cvt.relu.
//
// On a GPU: `RNDN_WITNESS=DIR test_opcodes` where ptxas 11.8 is writes its sm_90 code to DIR; with the same variable on a machine with a GPU of compute
// capability 9.0, that code runs there. Without it, the ptxas there makes the code. Either way the rows that decode from the code are credited.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>

#include "assembler/assemble.h"
#include "assembler/cubin/cubin.h"
#include "assembler/isa/isa.h"
#include "ptx/interpreter/interpreter.h"
#include "ptx/parse.h"
#include "runtime/cuda/cuda_device.h"
#include "tests/simulator/opcodes.h"
#include "tests/simulator/support.h"
#include "tests/support/corpus.h"
#include "tests/support/operands.h"
#include "tests/support/rows.h"
#include "tests/support/status.h"
#include "tests/support/targets.h"

namespace rndn::sim {
namespace {

using testing::CorpusFile;
using testing::OperandKernel;
using Words = std::vector<uint64_t>;

// A launch: `words` words of results, zero before, whose address is the second parameter; the first is the address of `in`.
struct Run {
  std::string kernel;
  uint32_t blocks, threads;
  const Words* in;
  size_t words;
  Parameters more;  // after the first two
};
using Runner = std::function<Result<Words>(const Run&)>;

std::vector<std::byte> parameters(const Run& run, uint64_t in, uint64_t out) {
  const uint64_t args[2] = {in, out};
  std::vector<std::byte> all(sizeof args + run.more.bytes().size());
  std::memcpy(all.data(), args, sizeof args);
  std::copy(run.more.bytes().begin(), run.more.bytes().end(), all.begin() + sizeof args);
  return all;
}

Result<Words> interpreted(const ptx::Module& m, const Run& run) {
  ptx::Memory memory;
  const uint64_t in = memory.allocate(run.in->size() * 8), out = memory.allocate(run.words * 8);
  memory.write(in, std::as_bytes(std::span(*run.in)));
  const auto args = parameters(run, in, out);
  ptx::Launch launch;
  launch.grid = {run.blocks, 1, 1};
  launch.block = {run.threads, 1, 1};
  launch.parameters = args;
  auto stats = ptx::interpret(m, run.kernel, launch, memory);
  if (!stats) return stats.error();
  Words results(run.words);
  memory.read(out, std::as_writable_bytes(std::span(results)));
  return results;
}

Runner simulator(const std::string& target, std::span<const std::byte> cubin, bool hazards) {
  auto machine = std::make_shared<Machine>(target, 64 << 20);
  const auto loaded = machine->load(cubin);
  EXPECT_TRUE(loaded.ok()) << loaded.error().message;
  return [=](const Run& run) -> Result<Words> {
    ASSIGN_OR_RETURN(const ModuleId module, loaded);
    ASSIGN_OR_RETURN(const uint64_t in, machine->allocate(run.in->size() * 8));
    ASSIGN_OR_RETURN(const uint64_t out, machine->allocate(run.words * 8));
    RETURN_IF_ERROR(machine->write(in, run.in->data(), run.in->size() * 8));
    RETURN_IF_ERROR(machine->fill(out, 0, run.words * 8));
    Options options;
    options.check_hazards = hazards;
    options.deterministic = true;
    options.max_warp_instructions = 10'000'000;
    const auto done = machine->launch(module, run.kernel, {run.blocks, 1, 1}, {run.threads, 1, 1}, 0,
                                      parameters(run, in, out), options);
    Words results(run.words);
    RETURN_IF_ERROR(machine->read(out, results.data(), run.words * 8));
    RETURN_IF_ERROR(machine->free(in));
    RETURN_IF_ERROR(machine->free(out));
    if (!done) return done.error();
    return results;
  };
}

Runner gpu(device::Device& device, std::span<const std::byte> cubin) {
  const auto loaded = device.load_module(cubin);
  EXPECT_TRUE(loaded.ok()) << loaded.error().message;
  return [&device, loaded](const Run& run) -> Result<Words> {
    ASSIGN_OR_RETURN(const device::ModuleHandle module, loaded);
    ASSIGN_OR_RETURN(const device::KernelHandle kernel, device.find_kernel(module, run.kernel));
    ASSIGN_OR_RETURN(const device::Address in, device.allocate(run.in->size() * 8));
    ASSIGN_OR_RETURN(const device::Address out, device.allocate(run.words * 8));
    RETURN_IF_ERROR(device.copy_to_device(in, run.in->data(), run.in->size() * 8));
    RETURN_IF_ERROR(device.fill(out, 0, run.words * 8));
    RETURN_IF_ERROR(device.launch(kernel, {run.blocks, 1, 1}, {run.threads, 1, 1}, 0, parameters(run, in, out)));
    Words results(run.words);
    RETURN_IF_ERROR(device.copy_to_host(results.data(), out, run.words * 8));
    RETURN_IF_ERROR(device.free(in));
    RETURN_IF_ERROR(device.free(out));
    return results;
  };
}

double as_double(const std::string& type, uint64_t bits) {
  if (type == "f64") return std::bit_cast<double>(bits);
  if (type == "f32") return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  const double m = static_cast<double>(bits & 0x3ff);
  const int e = static_cast<int>(bits >> 10 & 31);
  const double v = e == 31 ? (m != 0 ? NAN : INFINITY) : e == 0 ? std::ldexp(m, -24) : std::ldexp(1024 + m, e - 25);
  return bits & 0x8000 ? -v : v;
}
bool agree(const std::string& type, double relative, double absolute, uint64_t a, uint64_t b) {
  if (a == b) return true;
  const double x = as_double(type, a), y = as_double(type, b);
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  if (relative == 0) return false;
  const double tiny = type == "f32" ? 0x1p-126 : 0x1p-14;  // what is subnormal may be flushed or rounded elsewhere
  return std::fabs(x - y) <= absolute || std::fabs(x - y) <= relative * std::max(std::fabs(x), std::fabs(y)) ||
         (std::fabs(x) <= tiny && std::fabs(y) <= tiny) || (std::isinf(x) && std::fabs(y) > 3.3e38 && x * y > 0) ||
         (std::isinf(y) && std::fabs(x) > 3.3e38 && x * y > 0);
}

// Null with the first error when the parser does not take it.
std::unique_ptr<ptx::Module> parsed(const std::string& text, std::string& error) {
  SourceManager sources;
  DiagnosticSink sink;
  auto m = std::make_unique<ptx::Module>(ptx::parse(sources.add("opcodes.ptx", text), sources, sink));
  if (!sink.has_errors()) return m;
  error = render(sink, sources).substr(0, 300);
  return nullptr;
}
std::string source(const std::string& path) {
  const std::string compiled = RNDN_SOURCE_DIR;
  return (std::filesystem::exists(compiled) ? compiled : std::string(".")) + "/" + path;
}

// What is compared: PTX text, and per kernel how.
struct Suite {
  std::string name, text, options;
  std::unique_ptr<ptx::Module> module;
  std::vector<std::string> left_out;  // what the parser does not take
  // One kernel: "" when it agrees. `tested` counts results.
  std::map<std::string, std::function<std::string(const Runner&, size_t& tested)>> kernels;
  // What the interpreter gave, by kernel and input: every code that a suite is compiled to is compared with the same.
  mutable std::map<std::pair<std::string, Words>, Words> known;
};

std::string compare(const Suite& s, const Run& run, const Runner& runner, size_t& tested,
                    const std::function<std::string(const Words&, const Words&, size_t&)>& differences) {
  auto expected = s.known.find({run.kernel, *run.in});
  if (expected == s.known.end()) {
    auto computed = interpreted(*s.module, run);
    if (!computed) return "interpreter: " + computed.error().message;
    expected = s.known.emplace(std::pair(run.kernel, *run.in), *std::move(computed)).first;
  }
  const auto got = runner(run);
  if (!got) return got.error().message;
  return differences(expected->second, *got, tested);
}

void finish(Suite& s) {
  std::string error;
  s.module = parsed(s.text, error);
  EXPECT_TRUE(s.module) << error;
}

Suite opcode_suite(uint32_t sm) {
  Suite s{"opcodes", module_head(module_target(sm)), "--fmad=false", {}, {}, {}, {}};
  const char* only = std::getenv("RNDN_OPCODE");
  for (const Opcode& o : opcodes()) {
    if (o.target > sm || (only && o.name.find(only) == std::string::npos)) continue;
    std::string error;
    if (!parsed(module_head(o.target) + kernel_text(o.name, {o}), error)) {
      s.left_out.push_back(o.text);
      continue;
    }
    s.text += kernel_text(o.name, {o});
    s.kernels[o.name] = [&s, o](const Runner& runner, size_t& tested) {
      const Words in = operands(o.in);
      const Run run{o.name, operand_blocks, block_threads, &in, operand_count, {}};
      return compare(s, run, runner, tested, [&](const Words& expected, const Words& got, size_t& n) -> std::string {
        for (uint32_t i = 0; i < operand_count; ++i, ++n)
          if (!agree(o.out, o.error, o.absolute, got[i], expected[i]))
            return fmt::format("{}({:#x}, {:#x}, {:#x}) = {:#x}, the interpreter has {:#x}", o.text, in[3 * i],
                               in[3 * i + 1], in[3 * i + 2], got[i], expected[i]);
        return {};
      });
    };
  }
  finish(s);
  return s;
}

constexpr uint32_t operand_threads = 1024;
const uint32_t operand_launches = static_cast<uint32_t>(test::in_the_gate(1, 4));

Suite operand_suite() {
  const auto kernels = testing::operand_kernels(source("tests/support/operands.txt"));
  Suite s{"operands", testing::operand_module({}), "--fmad=false", {}, {}, {}, {}};
  for (const OperandKernel& k : kernels) {
    std::string error;
    if (!parsed(testing::operand_module({k}), error)) {
      s.left_out.push_back(k.operation);
      continue;
    }
    s.text += k.text;
    s.kernels[k.name] = [&s, k](const Runner& runner, size_t& tested) -> std::string {
      std::vector<Words> sources;
      Run run{k.name, 1, operand_threads, nullptr, operand_threads * 16, {}};
      for (const std::string& type : k.types) {
        sources.push_back(operands(type));
        if (type == "u64") run.more.add(uint64_t{0x8000123480005678});
        if (type == "u32") run.more.add(uint32_t{0x80001234});
        if (type == "u16" || type == "f16") run.more.add(uint16_t{0xb800});
        if (type == "f16x2") run.more.add(uint32_t{0xb8003555});
        if (type == "f32") run.more.add(-2.75f);
        if (type == "f64") run.more.add(-2.75);
      }
      const bool approximate = k.operation.find("approx") != std::string::npos;
      const bool angle = k.operation.starts_with("sin") || k.operation.starts_with("cos");
      const uint32_t bits = kind_of(k.result).bits;
      const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
      for (uint32_t launch = 0; launch < operand_launches; ++launch) {
        Words in(operand_threads * 4);
        for (uint32_t t = 0; t < operand_threads; ++t)
          for (size_t i = 0; i < 4; ++i)
            in[4 * t + i] = i < sources.size() ? sources[i][3 * (launch * operand_threads + t) + i] : t;
        run.in = &in;
        const auto differs = [&](const Words& expected, const Words& got, size_t& n) -> std::string {
          for (uint32_t t = 0; t < operand_threads; ++t)
            for (size_t c = 0; c < k.kinds.size(); ++c, ++n) {
              const uint64_t a = got[16 * t + c] & mask, b = expected[16 * t + c] & mask;
              if (angle && !(std::fabs(as_double("f32", in[4 * t])) < 3)) continue;  // the error bound holds near zero
              bool equal;
              if (k.result == "f16x2")
                equal = agree("f16", 0, 0, a & 0xffff, b & 0xffff) && agree("f16", 0, 0, a >> 16, b >> 16);
              else
                equal = k.result[0] == 'f' ? agree(k.result, approximate ? 0x1p-19 : 0, approximate ? 0x1p-19 : 0, a, b)
                                           : a == b;
              if (!equal)
                return fmt::format("{} with {} on {:#x}, {:#x}, {:#x} = {:#x}, the interpreter has {:#x}", k.operation,
                                   k.kinds[c], in[4 * t], in[4 * t + 1], in[4 * t + 2], a, b);
            }
          return {};
        };
        if (const std::string said = compare(s, run, runner, tested, differs); !said.empty()) return said;
      }
      return {};
    };
  }
  finish(s);
  return s;
}

// tests/corpus: every kernel has two arrays, three words in for each of 288 threads.
Suite corpus_suite(uint32_t sm) {
  constexpr uint32_t blocks = 3, threads = 96, words = blocks * threads * 96;
  const auto files = testing::corpus(source("tests/corpus"));
  Suite s{"corpus", testing::corpus_module(files, sm), "", {}, {}, {}, {}};
  finish(s);
  if (!s.module) return s;
  for (const CorpusFile& f : files) {
    if (f.target > sm) continue;
    std::string error;
    const auto m = parsed(f.text, error);
    EXPECT_TRUE(m) << f.name << ": " << error;
    if (!m) continue;
    for (const ptx::Function& function : m->functions) {
      if (!function.is_entry) continue;
      s.kernels[function.name] = [&s, f, kernel = function.name](const Runner& runner, size_t& tested) {
        std::mt19937_64 random(7);
        Words in(blocks * threads * 3);
        for (uint64_t& w : in) w = random() >> random() % 64;
        const Run run{kernel, blocks, threads, &in, words, {}};
        return compare(s, run, runner, tested, [&](const Words& expected, const Words& got, size_t& n) -> std::string {
          for (size_t i = 0; i < words; ++i, ++n)
            if (!testing::same_word(f, expected[i], got[i]))
              return fmt::format("word {}: {:#x}, the interpreter has {:#x}", i, got[i], expected[i]);
          return {};
        });
      };
    }
  }
  return s;
}

// Runs everything; rows of ptxas's code of kernels that agree are credited with `witness`.
void check(const Suite& s, const Runner& runner, const std::string& target, std::span<const std::byte> cubin,
           const std::string& whose, const std::string& witness) {
  size_t tested = 0;
  std::set<std::string> agreed;
  for (const auto& [name, kernel] : s.kernels) {
    const std::string said = kernel(runner, tested);
    if (said.empty())
      agreed.insert(name);
    else
      ADD_FAILURE() << name << ": " << said;
  }
  std::printf("%s %s: %zu kernels, %zu results; %zu not taken by the parser\n", target.c_str(), s.name.c_str(),
              agreed.size(), tested, s.left_out.size());
  if (std::getenv("RNDN_OPCODE")) return;
  EXPECT_GE(s.kernels.size(), s.name == "opcodes" ? 745u : s.name == "operands" ? 167u : 135u);
  EXPECT_LE(s.left_out.size(), 4u);
  testing::record_status("count", fmt::format("{} of {} code equal to the PTX interpreter: {}", s.name, whose, witness),
                         target, std::to_string(agreed.size()));
  if (whose != "ptxas's") return;
  const auto image = cubin::read(cubin);
  if (!image) return;
  for (const std::string& row : testing::rows_of(*image, agreed)) testing::record_status("form", row, target, witness);
}

class Opcodes : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Targets, Opcodes, ::testing::ValuesIn(isa::target_names()),
                         [](const auto& info) { return info.param; });

void simulate(const Suite& s, const std::string& target) {
  std::string why;
  const std::string ptxas = find_ptxas(why);
  if (ptxas.empty()) GTEST_SKIP() << "skipped: " << why;
  ASSERT_TRUE(s.module);
  const auto cubin = assemble_with_ptxas(ptxas, s.text, target, s.options);
  ASSERT_FALSE(cubin.empty());
  if (const char* folder = std::getenv("RNDN_WITNESS"); folder && target == "sm_90") {
    std::filesystem::create_directories(folder);
    EXPECT_TRUE(write_file(std::string(folder) + "/" + s.name + ".cubin",
                           std::string(reinterpret_cast<const char*>(cubin.data()), cubin.size()))
                    .ok());
  }
  check(s, simulator(target, cubin, true), target, cubin, "ptxas's", "simulated");
}
// Our code for all kernels of the suite.
std::vector<std::byte> ours(const Suite& s, int level, uint32_t registers, const std::string& target = "sm_90") {
  assembler::Options options;
  options.target = isa::find_target(target);
  options.level = level;
  options.stencils = assembler::Stencils::always;  // at -O0
  options.max_registers = registers;
  options.verify_passes = true;
  Timings timings;
  auto made = assembler::assemble(*s.module, options, timings);
  EXPECT_TRUE(made.ok()) << made.error().message;
  return made.ok() ? std::move(made->cubin) : std::vector<std::byte>();
}
struct Level {
  int level;
  uint32_t registers;  // that a kernel may have, 0: the target's limit
  const char *whose, *name;
};
constexpr Level our_levels[] = {{0, 0, "our -O0", "O0"}, {3, 0, "our -O3", "O3"}, {3, 24, "our -O3 with 24 registers", "O3_24"}};

class OurCode : public ::testing::TestWithParam<std::tuple<std::string, Level>> {};
INSTANTIATE_TEST_SUITE_P(Targets, OurCode, ::testing::Combine(::testing::Values("sm_75", "sm_90"), ::testing::ValuesIn(our_levels)),
                         [](const auto& info) { return std::get<0>(info.param) + "_" + std::get<1>(info.param).name; });
TEST_P(OurCode, GivesWhatTheInterpreterGives) {
  const auto& [target, level] = GetParam();
  const uint32_t sm = isa::find_target(target)->sm;
  for (const Suite& s : {opcode_suite(sm), operand_suite(), corpus_suite(sm)}) {
    ASSERT_TRUE(s.module);
    const auto cubin = ours(s, level.level, level.registers, target);
    check(s, simulator(target, cubin, true), target, cubin, level.whose, "simulated");
  }
}
TEST_P(Opcodes, OneByOne) { simulate(opcode_suite(isa::find_target(GetParam())->sm), GetParam()); }
TEST_P(Opcodes, EveryKindOfOperand) { simulate(operand_suite(), GetParam()); }
TEST_P(Opcodes, Corpus) { simulate(corpus_suite(isa::find_target(GetParam())->sm), GetParam()); }

class Gpu : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = cuda::open(*preparation_);
    if (!opened) GTEST_SKIP() << "skipped: " << opened.error().message;
    if ((*opened)->info().target != "sm_90") GTEST_SKIP() << "skipped: the GPU is " << (*opened)->info().target;
    device_ = *std::move(opened);
  }
  std::unique_ptr<cuda::Preparation> preparation_ = cuda::prepare();
  std::unique_ptr<device::Device> device_;
};

TEST_F(Gpu, OurCodeGivesWhatTheInterpreterGives) {
  for (const Suite& s : {opcode_suite(90), operand_suite(), corpus_suite(90)})
    for (const auto& [level, registers, whose, name] : our_levels) {
      ASSERT_TRUE(s.module);
      const auto cubin = ours(s, level, registers);
      check(s, gpu(*device_, cubin), "sm_90", cubin, whose, "H200");
    }
}

TEST_F(Gpu, PtxasCodeGivesWhatTheInterpreterGives) {
  for (const Suite& s : {opcode_suite(90), operand_suite(), corpus_suite(90)}) {
    ASSERT_TRUE(s.module);
    std::vector<std::byte> cubin;
    if (const char* folder = std::getenv("RNDN_WITNESS")) {
      const auto bytes = read_file(std::string(folder) + "/" + s.name + ".cubin");
      ASSERT_TRUE(bytes.ok()) << bytes.error().message;
      cubin.assign(reinterpret_cast<const std::byte*>(bytes->data()),
                   reinterpret_cast<const std::byte*>(bytes->data()) + bytes->size());
    } else {
      cubin = assemble_with_ptxas("ptxas", s.text, "sm_90", s.options);
    }
    ASSERT_FALSE(cubin.empty());
    check(s, gpu(*device_, cubin), "sm_90", cubin, "ptxas's", "H200");
  }
}

// Divisions, roots and approximations begin with an estimate of the function unit, which the simulator has exact: only a GPU shows whether the steps
// behind it round right. Of one operand all 2^32 are tried, of two or of doubles 2^32 random ones, every second with an exponent near 0; NaNs are one.
// Each thread's sum of all results is what ptxas's code gives.
TEST_F(Gpu, DivisionsRootsAndApproximationsAreThoseOfPtxas) {
  struct Operation {
    const char* name;
    const char* type;
    int operands;
  };
  const Operation operations[] = {
      {"sqrt.rn.f32", "f32", 1},      {"sqrt.rn.ftz.f32", "f32", 1}, {"rcp.rn.f32", "f32", 1},
      {"rcp.rn.ftz.f32", "f32", 1},   {"rcp.approx.f32", "f32", 1},  {"sqrt.approx.f32", "f32", 1},
      {"rsqrt.approx.f32", "f32", 1}, {"lg2.approx.f32", "f32", 1},  {"ex2.approx.f32", "f32", 1},
      {"div.rn.f32", "f32", 2},       {"div.rn.ftz.f32", "f32", 2},  {"div.full.f32", "f32", 2},
      {"div.approx.f32", "f32", 2},   {"rcp.rz.f32", "f32", 1},      {"sqrt.rp.f32", "f32", 1},
      {"sqrt.rn.f64", "f64", 1},      {"rcp.rn.f64", "f64", 1},      {"div.rn.f64", "f64", 2},
      {"div.rm.f64", "f64", 2}};
  std::string text = ".version 7.8\n.target sm_60\n.address_size 64\n";
  for (size_t k = 0; k < std::size(operations); ++k) {
    const auto& [name, type, operands] = operations[k];
    const bool wide = type[1] == '6', all = !wide && operands == 1;
    text += fmt::format(
        ".visible .entry k{}(.param .u64 in, .param .u64 out) {{\n.reg .b64 %a, %i, %n, %x, %y, %s, %out;\n"
        ".reg .b32 %t, %g, %b, %xl, %xh, %yl, %yh, %o;\n.reg .f32 %f32a, %f32b, %f32d;\n.reg .f64 %f64a, %f64b, "
        "%f64d;\n.reg .pred %p, %q;\n"
        "ld.param.u64 %out, [out];\nmov.u32 %t, %ctaid.x;\nmov.u32 %g, %ntid.x;\nmov.u32 %b, %tid.x;\nmad.lo.u32 %t, "
        "%t, %g, %b;\n"
        "mov.u32 %b, %nctaid.x;\nmul.lo.u32 %g, %g, %b;\nmul.wide.u32 %a, %t, 8;\nadd.u64 %out, %out, %a;\n"
        "cvt.u64.u32 %i, %t;\ncvt.u64.u32 %n, %g;\nmov.u64 %s, 0;\n"
        "L: setp.ge.u64 %p, %i, 0x100000000;\n@%p bra E;\n",
        k);
    if (all) {
      text += "cvt.u32.u64 %xl, %i;\nmov.b32 %f32a, %xl;\n";
    } else {  // two mixed words, and two more
      text +=
          "mul.lo.u64 %x, %i, 0x9E3779B97F4A7C15;\nshr.u64 %y, %x, 29;\nxor.b64 %x, %x, %y;\nmul.lo.u64 %x, %x, "
          "0xBF58476D1CE4E5B9;\n"
          "shr.u64 %y, %x, 32;\nxor.b64 %x, %x, %y;\nadd.u64 %y, %x, %i;\nmul.lo.u64 %y, %y, "
          "0x94D049BB133111EB;\nmov.b64 {%xl, %xh}, %x;\n"
          "mov.b64 {%yl, %yh}, %y;\nand.b64 %a, %i, 1;\nsetp.ne.u64 %q, %a, 0;\n";
      for (const char* word : {"xl", "xh", "yh"})
        text += fmt::format("@%q and.b32 %{0}, %{0}, {1};\n@%q or.b32 %{0}, %{0}, {2};\n", word,
                            wide ? "0x80ffffff" : "0x87ffffff", wide ? "0x3f000000" : "0x38000000");
      text += wide ? "mov.b64 %f64a, {%xl, %xh};\nmov.b64 %f64b, {%yl, %yh};\n"
                   : "mov.b32 %f32a, %xl;\nmov.b32 %f32b, %yh;\n";
    }
    text += fmt::format(
        "{0} %{1}d, %{1}a{2};\nmov.b{3} %{4}, %{1}d;\nsetp.nan.{1} %q, %{1}d, %{1}d;\n@%q mov.b{3} %{4}, 0x7f;\n", name,
        type, operands == 2 ? fmt::format(", %{}b", type) : "", wide ? 64 : 32, wide ? "x" : "o");
    if (!wide) text += "cvt.u64.u32 %x, %o;\n";
    text +=
        "xor.b64 %x, %x, %i;\nmad.lo.u64 %s, %x, 0x9E3779B97F4A7C15, %s;\nadd.u64 %i, %i, %n;\nbra L;\nE: "
        "st.global.u64 [%out], %s;\nret;\n}\n";
  }
  std::string error;
  const auto module = parsed(text, error);
  ASSERT_TRUE(module) << error;
  const std::vector<std::byte> theirs = assemble_with_ptxas("ptxas", text, "sm_90", "--fmad=false");
  ASSERT_FALSE(theirs.empty());
  assembler::Options options;
  options.target = isa::find_target("sm_90");
  options.verify_passes = true;
  Timings timings;
  const auto our = assembler::assemble(*module, options, timings);
  ASSERT_TRUE(our.ok()) << our.error().message;
  const Words in(1);
  constexpr uint32_t blocks = 1056, threads = 256;
  for (size_t k = 0; k < std::size(operations); ++k) {
    const struct Run run {
      fmt::format("k{}", k), blocks, threads, &in, blocks* threads, {}
    };
    const Result<Words> got = gpu(*device_, our->cubin)(run), expected = gpu(*device_, theirs)(run);
    ASSERT_TRUE(got.ok()) << operations[k].name << ": " << got.error().message;
    ASSERT_TRUE(expected.ok()) << operations[k].name << ": " << expected.error().message;
    size_t different = 0;
    for (size_t t = 0; t < got->size(); ++t) different += (*got)[t] != (*expected)[t];
    EXPECT_EQ(different, 0u) << operations[k].name << ": so many of " << got->size() << " sums";
    std::printf("%s: 2^32 operands, %zu sums differ\n", operations[k].name, different);
  }
}

}  // namespace
}  // namespace rndn::sim
