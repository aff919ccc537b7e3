// Helpers of the assembler's tests: kernels of one shape, run by the PTX interpreter and by the simulator on code of ours or of ptxas.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "assembler/assemble.h"
#include "assembler/cubin/cubin.h"
#include "assembler/simulator/simulator.h"
#include "libraries/base/errors/diagnostic.h"
#include "libraries/base/system/files.h"
#include "ptx/interpreter/interpreter.h"
#include "ptx/parse.h"
#include "tests/support/reference_tools.h"
#include "tests/support/targets.h"

namespace rndn::assembler::testing {

inline const std::vector<std::string> targets = isa::tested_targets();

inline std::vector<std::string> ptx_files() {
  std::vector<std::string> files;
  for (const auto& e : std::filesystem::directory_iterator(RNDN_SOURCE_DIR "/tests/assembler/ptx"))
    if (e.path().extension() == ".ptx") files.push_back(e.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

inline ptx::Module parse_text(const std::string& name, const std::string& text) {
  SourceManager sources;
  DiagnosticSink sink;
  FileId file = sources.add(name, text);
  ptx::Module module = ptx::parse(file, sources, sink);
  EXPECT_FALSE(sink.has_errors()) << render(sink, sources);
  return module;
}
inline ptx::Module parse_file(const std::string& path) {
  Result<std::string> text = read_file(path);
  EXPECT_TRUE(text.ok()) << path;
  return parse_text(path, *text);
}

// The machine instructions of a cubin's first kernel, in order.
inline std::vector<isa::Instruction> instructions_of(const std::vector<std::byte>& cubin, const std::string& target) {
  std::vector<isa::Instruction> code;
  const isa::Target& t = *isa::find_target(target);
  for (const isa::Located& l : isa::unpack(t, cubin::read(cubin)->kernels[0].code)) {
    code.emplace_back();
    EXPECT_TRUE(isa::decode(t, l.word, l.address, code.back())) << target << " at " << l.address;
  }
  return code;
}

// At -O0 by stencils where there are any, and by the passes on every other target of a family.
inline Stencils stencils_of(const std::string& target) {
  return target == "sm_60" || target == "sm_80" || target == "sm_89" ? Stencils::off : Stencils::always;
}
inline Result<Assembled> assemble_for(const ptx::Module& module, const std::string& target, int level = 3,
                                      uint32_t max_registers = 0, bool line_tables = false,
                                      std::optional<Stencils> stencils = {}) {
  Options o;
  o.target = isa::find_target(target);
  o.level = level;
  o.max_registers = max_registers;
  o.line_tables = line_tables;
  o.stencils = stencils.value_or(stencils_of(target));
  o.verify_passes = true;
  Timings timings;
  return assemble(module, o, timings);
}

using rndn::test::reference_tool;
using rndn::test::run_command;

inline std::string temporary(const std::string& suffix) {
  static int counter = 0;
  return ::testing::TempDir() + "rndn_as_" + std::to_string(getpid()) + "_" + std::to_string(counter++) + suffix;
}

// Empty on failure, with the tool's words in `said`.
inline std::vector<std::byte> assemble_with_ptxas(const std::string& ptxas, const std::string& path,
                                                  const std::string& target, std::string& said, int level = 3) {
  std::string out = temporary(".cubin");
  int status = 0;
  said = run_command("'" + ptxas + "' --fmad=false -O" + std::to_string(level) + " -arch=" + target + " -o " + out + " " + path, status);
  std::vector<std::byte> bytes;
  if (status == 0) {
    Result<std::string> contents = read_file(out);
    if (contents.ok()) bytes.resize(contents->size()), std::memcpy(bytes.data(), contents->data(), bytes.size());
  }
  unlink(out.c_str());
  return bytes;
}

// The shape of the test kernels: .entry k(in, out), `blocks` x `threads`; in: words of 64 bits, random and special; out: zeros.
inline constexpr uint32_t blocks = 3, threads = 96, out_words = blocks * threads * 96;

inline std::vector<uint64_t> input_words() {
  std::vector<uint64_t> words(blocks * threads * 3);
  const uint64_t special[] = {0,
                              1,
                              2,
                              7,
                              31,
                              32,
                              33,
                              63,
                              64,
                              0x7f,
                              0x80,
                              0xff,
                              0x7fff,
                              0x8000,
                              0xffff,
                              0x10000,
                              0x7fffffff,
                              0x80000000,
                              0xffffffff,
                              0x100000000,
                              0x7fffffffffffffff,
                              0x8000000000000000,
                              0xffffffffffffffff,
                              0x3ff0000000000000,
                              0xbff0000000000000,
                              0x7ff0000000000000,
                              0xfff0000000000000,
                              0x7ff8000000000000,
                              0x0000000000000001,
                              0x8000000000000001,
                              0x0010000000000000,
                              0x7fefffffffffffff,
                              0x3f800000,
                              0xbf800000,
                              0x7f800000,
                              0xff800000,
                              0x7fc00000,
                              0x00000001,
                              0x00800000,
                              0x007fffff,
                              0x7f7fffff,
                              0x4effffff,
                              0x4f000000,
                              0x4f800000,
                              0x5f000000,
                              0x3f000000,
                              0xbf000000,
                              0x3fc00000,
                              0x40200000,
                              0x43e0000000000000,
                              0x41dfffffffc00000,
                              0x41efffffffe00000,
                              0x3fe0000000000000,
                              0x3ff8000000000000,
                              0x4004000000000000,
                              0x3fdfffffffffffff};
  std::mt19937_64 random(20240607);
  const size_t n = std::size(special);
  for (size_t k = 0; k < words.size(); ++k) {
    switch (random() % 6) {
      case 0:
      case 1: words[k] = special[random() % n]; break;
      case 2: words[k] = random(); break;
      case 3: words[k] = random() >> (random() % 64); break;
      case 4: {
        double d = static_cast<double>(static_cast<int64_t>(random() % 2000001) - 1000000) / 64;
        std::memcpy(&words[k], &d, 8);
        break;
      }
      default: {
        float a = static_cast<float>(static_cast<int64_t>(random() % 2000001) - 1000000) / 64;
        uint32_t u;
        std::memcpy(&u, &a, 4);
        words[k] = random() << 32 | u;
      }
    }
  }
  return words;
}

inline Result<std::vector<uint64_t>> run_interpreter(const ptx::Module& module, const std::string& kernel,
                                                     const std::vector<uint64_t>& in) {
  ptx::Memory memory;
  uint64_t args[2] = {memory.allocate(in.size() * 8), memory.allocate(out_words * 8)};
  memory.write(args[0], std::as_bytes(std::span(in)));
  ptx::Launch launch;
  launch.grid = {blocks, 1, 1};
  launch.block = {threads, 1, 1};
  launch.parameters = std::as_bytes(std::span(args));
  auto stats = ptx::interpret(module, kernel, launch, memory);
  if (!stats) return stats.error();
  std::vector<uint64_t> out(out_words);
  memory.read(args[1], std::as_writable_bytes(std::span(out)));
  return out;
}

inline Result<std::vector<uint64_t>> run_simulator(const std::string& target, std::span<const std::byte> cubin,
                                                   const std::string& kernel, const std::vector<uint64_t>& in,
                                                   const sim::Options& o, uint64_t memory_bytes,
                                                   sim::Counters* counters = nullptr) {
  sim::Machine machine(target, memory_bytes);
  ASSIGN_OR_RETURN(sim::ModuleId module, machine.load(cubin));
  uint64_t args[2];
  ASSIGN_OR_RETURN(args[0], machine.allocate(in.size() * 8));
  ASSIGN_OR_RETURN(args[1], machine.allocate(out_words * 8));
  RETURN_IF_ERROR(machine.write(args[0], in.data(), in.size() * 8));
  RETURN_IF_ERROR(machine.fill(args[1], 0, out_words * 8));
  ASSIGN_OR_RETURN(sim::Counters c, machine.launch(module, kernel, {blocks, 1, 1}, {threads, 1, 1}, 0,
                                                   std::as_bytes(std::span(args)), o));
  if (counters) *counters = c;
  std::vector<uint64_t> out(out_words);
  RETURN_IF_ERROR(machine.read(args[1], out.data(), out_words * 8));
  return out;
}
inline Result<std::vector<uint64_t>> run_simulator(const std::string& target, std::span<const std::byte> cubin,
                                                   const std::string& kernel, const std::vector<uint64_t>& in,
                                                   bool hazards = true, sim::Counters* counters = nullptr,
                                                   bool ours = true) {
  sim::Options o;
  o.check_memory = true;
  o.check_hazards = hazards;
  o.check_uninitialised = ours;  // what the vendor's code does not keep to
  o.joins_wait_for_all = ours;
  o.deterministic = true;
  o.max_warp_instructions = 3'000'000;
  return run_simulator(target, cubin, kernel, in, o, 64 << 20, counters);
}

// "" when equal, else the first difference.
inline std::string difference(const std::vector<uint64_t>& expected, const std::vector<uint64_t>& got,
                              uint32_t per_thread) {
  for (size_t k = 0; k < expected.size(); ++k)
    if (expected[k] != got[k]) {
      size_t count = 0;
      for (size_t j = 0; j < expected.size(); ++j) count += expected[j] != got[j];
      return fmt::format("word {} (thread {}, row {}): expected {:#x}, got {:#x}; {} words differ", k,
                         per_thread ? k / per_thread : k, per_thread ? k % per_thread : 0, expected[k], got[k], count);
    }
  return {};
}

}  // namespace rndn::assembler::testing
