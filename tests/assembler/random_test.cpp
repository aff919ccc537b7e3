// Random programs three ways: our code at -O0 and -O3 and ptxas's code, both in the simulator with its checks on, against the PTX interpreter.
//
//   RNDN_PROGRAMS=2000 RNDN_PROGRAMS_FIRST=0 build/bin/test_random_programs      a longer run; its totals are printed
//   RNDN_PROGRAMS_TARGETS=sm_61,sm_90                                            these targets only
//   RNDN_PROGRAMS_PTXAS=1    ptxas's code too. Not by default: in about one program of a hundred it does something else than the interpreter, because
//                            the simulator or the interpreter is wrong about an instruction (docs/notes/random-programs.md lists what is open)
//
// A program that fails is reduced, and its PTX printed.
#include <chrono>
#include <map>
#include <set>

#include "ptx/verify.h"
#include "tests/assembler/random_programs.h"
#include "tests/assembler/stress_kernels.h"
#include "tests/assembler/support.h"
#include "tests/support/status.h"

namespace rndn::assembler::testing {
namespace {

using namespace rndn::testing;

using Words = std::vector<uint64_t>;

Result<Words> interpreted(const ptx::Module& module, const std::string& kernel, const Words& in, uint64_t seed = 0) {
  ptx::Memory memory;
  const uint64_t in_at = memory.allocate(program_in_bytes), out_at = memory.allocate(program_out_bytes);
  memory.write(in_at, std::as_bytes(std::span(in)));
  const auto parameters = program_parameters(in_at, out_at);
  ptx::Launch launch;
  launch.grid = {program_blocks, 1, 1};
  launch.block = {program_threads, 1, 1};
  launch.parameters = std::as_bytes(std::span(parameters));
  launch.seed = seed;
  launch.max_instructions = 20'000'000;
  auto stats = ptx::interpret(module, kernel, launch, memory);
  if (!stats) return stats.error();
  Words out(program_out_bytes / 8);
  memory.read(out_at, std::as_writable_bytes(std::span(out)));
  return out;
}

// One simulated GPU for all programs of a module.
class Bench {
 public:
  Bench(const std::string& target, const Words& in) : machine_(target, 16 << 20) {
    in_ = *machine_.allocate(program_in_bytes);
    out_ = *machine_.allocate(program_out_bytes);
    EXPECT_TRUE(machine_.write(in_, in.data(), program_in_bytes).ok());
  }
  Result<void> load(std::span<const std::byte> cubin) {
    ASSIGN_OR_RETURN(module_, machine_.load(cubin));
    return {};
  }
  Result<Words> run(const std::string& kernel, bool ours, bool hazards = true) {
    RETURN_IF_ERROR(machine_.fill(out_, 0, program_out_bytes));
    sim::Options o;
    o.check_memory = true;
    o.check_hazards = hazards;
    o.check_uninitialised = ours;  // ptxas merges halves into registers that it has never written
    o.deterministic = true;
    o.max_warp_instructions = 2'000'000;
    const auto parameters = program_parameters(in_, out_);
    RETURN_IF_ERROR(machine_.launch(module_, kernel, {program_blocks, 1, 1}, {program_threads, 1, 1}, 0,
                                    std::as_bytes(std::span(parameters)), o));
    Words out(program_out_bytes / 8);
    RETURN_IF_ERROR(machine_.read(out_, out.data(), program_out_bytes));
    return out;
  }

 private:
  sim::Machine machine_;
  sim::ModuleId module_{};
  uint64_t in_ = 0, out_ = 0;
};

std::string where(const Words& expected, const Words& got) {
  constexpr size_t row = program_row_bytes / 8;
  for (size_t k = 0; k < expected.size(); ++k)
    if (expected[k] != got[k]) {
      const size_t thread = k / row;
      return thread < program_blocks * program_threads
                 ? fmt::format("thread {}, byte {} of its row: expected {:#x}, got {:#x}", thread, k % row * 8,
                               expected[k], got[k])
                 : fmt::format("counter {}: expected {:#x}, got {:#x}", k % row, expected[k], got[k]);
    }
  return "";
}

struct Variant {
  std::string name;  // "-O3", "-O0", "ptxas"
  int level = 0;
  uint32_t registers = 0;
  bool ptxas = false;
};

Result<std::vector<std::byte>> code(const Variant& v, const ptx::Module& module, const std::string& text,
                                    const std::string& target, const std::string& ptxas) {
  if (!v.ptxas) {
    ASSIGN_OR_RETURN(Assembled made, assemble_for(module, target, v.level, v.registers));
    return made.cubin;
  }
  const std::string path = temporary(".ptx");
  RETURN_IF_ERROR(write_file(path, text));
  std::string said;
  std::vector<std::byte> bytes = assemble_with_ptxas(ptxas, path, target, said);
  unlink(path.c_str());
  if (bytes.empty()) return input_error("ptxas: {}", said);
  return bytes;
}

// "" when all is well, else what is wrong; `kind` tells apart ways to fail that are not the same fault.
std::string failure_of(const ptx::Module& module, const std::string& kernel, const Variant& v,
                       const std::string& target, const std::string& ptxas, const Words& in, std::string& kind) {
  kind = "interpreter";
  auto expected = interpreted(module, kernel, in);
  if (!expected.ok()) return expected.error().message;
  kind = "assembler";
  auto made = code(v, module, ptx::print(module), target, ptxas);
  if (!made.ok()) return made.error().message;
  Bench bench(target, in);
  kind = "simulator";
  if (auto loaded = bench.load(*made); !loaded.ok()) return loaded.error().message;
  auto got = bench.run(kernel, !v.ptxas, !v.ptxas);
  if (!got.ok()) return got.error().message;
  kind = "difference";
  const std::string difference = where(*expected, *got);
  if (difference.empty()) return "";
  auto again = interpreted(module, kernel, in, 1);
  if (!again.ok()) return again.error().message;
  if (*again != *expected) {
    kind = "race";
    return "the result depends on the order of threads";
  }
  return difference;
}

// Whether some way through the function reads a register that it has not set. (A guarded instruction sets nothing for sure.)
bool reads_unset(const ptx::Function& f) {
  const size_t n = f.instructions.size(), registers = f.registers.size();
  using Set = std::vector<bool>;
  std::vector<Set> at(n + 1);  // set for sure, where instructions begin that a jump reaches; empty: not reached yet
  std::vector<bool> target(n + 1);
  for (const ptx::Label& l : f.labels) target[std::min<size_t>(l.at, n)] = true;
  bool unset = false;
  for (bool changed = true; changed;) {
    changed = unset = false;
    Set now(registers);
    bool reached = true;
    const auto meet = [&](size_t place, const Set& with) {
      Set& s = at[place];
      if (s.empty()) {
        s = with, changed = true;
        return;
      }
      for (size_t r = 0; r < registers; ++r)
        if (s[r] && !with[r]) s[r] = false, changed = true;
    };
    for (size_t k = 0; k < n; ++k) {
      if (target[k]) {
        if (reached) meet(k, now);
        reached = !at[k].empty();
        now = at[k];
      }
      if (!reached) continue;
      const ptx::Instruction& i = f.instructions[k];
      const auto read = [&](const ptx::Operand& o) {
        if ((o.kind == ptx::Operand::reg || o.kind == ptx::Operand::address_reg) && !now[o.id]) unset = true;
        if (o.kind == ptx::Operand::vector)
          for (uint32_t e = 0; e < o.count; ++e) {
            const ptx::Operand& x = f.vector_elements[o.id + e];
            if (x.kind == ptx::Operand::reg && !now[x.id]) unset = true;
          }
      };
      if (!is_none(i.guard) && !now[index(i.guard)]) unset = true;
      for (uint32_t o = i.destination_count; o < i.operand_count; ++o) read(f.operand(i, o));
      for (uint32_t o = 0; o < i.destination_count && is_none(i.guard); ++o) {
        const ptx::Operand& d = f.operand(i, o);
        if (d.kind == ptx::Operand::reg) now[d.id] = true;
        if (d.kind == ptx::Operand::vector)
          for (uint32_t e = 0; e < d.count; ++e) now[f.vector_elements[d.id + e].id] = true;
      }
      if (i.op == ptx::Opcode::bra) {
        meet(f.labels[f.operand(i, 0).label_id()].at, now);
        if (is_none(i.guard)) reached = false;
      }
      if ((i.op == ptx::Opcode::ret || i.op == ptx::Opcode::exit) && is_none(i.guard)) reached = false;
    }
  }
  return unset;
}

// Instructions of `kernel` that the failure does not need become moves of zero or go away.
ptx::Module reduced(ptx::Module module, const std::string& kernel, const Variant& v, const std::string& target,
                    const std::string& ptxas, const Words& in) {
  std::string kind, now;
  failure_of(module, kernel, v, target, ptxas, in, kind);
  uint32_t which = 0;
  while (module.functions[which].name != kernel) ++which;
  const auto start = std::chrono::steady_clock::now();
  const auto fails = [&](const ptx::Module& m) {
    if (!ptx::verify(m).empty() || reads_unset(m.functions[which])) return false;
    return !failure_of(m, kernel, v, target, ptxas, in, now).empty() && now == kind;
  };
  const auto without = [&](const ptx::Function& f, size_t at, size_t count, bool zeros) {
    ptx::Function g = f;
    g.instructions.assign(f.instructions.begin(), f.instructions.begin() + static_cast<ptrdiff_t>(at));
    for (size_t k = at; zeros && k < at + count; ++k) {
      const ptx::Instruction& i = f.instructions[k];
      for (uint32_t d = 0; d < i.destination_count; ++d) {
        const ptx::Operand& o = f.operand(i, d);
        std::vector<ptx::Operand> to;
        if (o.kind == ptx::Operand::reg) to.push_back(o);
        if (o.kind == ptx::Operand::vector)
          for (uint32_t e = 0; e < o.count; ++e) to.push_back(f.vector_elements[o.id + e]);
        for (const ptx::Operand& r : to) {
          if (r.kind != ptx::Operand::reg) continue;
          ptx::Instruction move;
          move.op = ptx::Opcode::mov;
          const ptx::Type t = f.registers[r.reg_id()].type;
          move.type = t == ptx::Type::pred      ? t
                      : ptx::type_bytes(t) == 2 ? ptx::Type::b16
                      : ptx::type_bytes(t) == 4 ? ptx::Type::b32
                                                : ptx::Type::b64;
          move.operand_count = 2, move.destination_count = 1;
          move.first_operand = static_cast<uint32_t>(g.operands.size());
          g.operands.push_back(r);
          g.operands.push_back({.kind = ptx::Operand::immediate, .value = 0});
          g.instructions.push_back(move);
        }
      }
    }
    const size_t kept = g.instructions.size();
    g.instructions.insert(g.instructions.end(), f.instructions.begin() + static_cast<ptrdiff_t>(at + count),
                          f.instructions.end());
    for (ptx::Label& l : g.labels)
      if (l.at >= at + count)
        l.at = static_cast<uint32_t>(l.at - (at + count) + kept);
      else if (l.at > at)
        l.at = static_cast<uint32_t>(kept);
    return g;
  };
  for (bool again = true; again;) {
    again = false;
    for (size_t chunk = 128; chunk > 0; chunk /= 2)
      for (size_t end = module.functions[which].instructions.size(); end > 0;) {
        const size_t at = end > chunk ? end - chunk : 0;
        end = at;
        if (std::chrono::steady_clock::now() - start > std::chrono::seconds(40)) return module;
        ptx::Function& f = module.functions[which];
        const size_t count = std::min(chunk, f.instructions.size() - std::min(at, f.instructions.size()));
        if (count == 0) continue;
        bool frame = false, stores = false;
        for (size_t k = at; k < at + count; ++k)
          if (f.instructions[k].line == program_frame) frame = true, stores |= f.instructions[k].destination_count == 0;
        if (stores) continue;
        for (bool zeros : {false, true}) {
          const ptx::Instruction& first = f.instructions[at];
          if (zeros && frame) continue;
          if (zeros && chunk == 1 && first.op == ptx::Opcode::mov && first.operand_count == 2 &&
              f.operand(first, 1).kind == ptx::Operand::immediate && f.operand(first, 1).value == 0)
            continue;
          ptx::Module candidate = module;
          candidate.functions[which] = without(f, at, count, zeros);
          if (fails(candidate)) {
            module = std::move(candidate);
            again = true;
            break;
          }
        }
      }
  }
  return module;
}

// Only what the kernel needs.
ptx::Module tidy(const ptx::Module& module, const std::string& kernel) {
  ptx::Module out = module;
  for (ptx::Function& f : out.functions) {
    if (f.name != kernel) continue;
    std::vector<bool> used(f.registers.size());
    for (const ptx::Instruction& i : f.instructions) {
      if (!is_none(i.guard)) used[index(i.guard)] = true;
      for (uint32_t k = 0; k < i.operand_count; ++k) {
        const ptx::Operand& o = f.operand(i, k);
        if (o.kind == ptx::Operand::reg || o.kind == ptx::Operand::address_reg) used[o.id] = true;
        if (o.kind == ptx::Operand::vector)
          for (uint32_t e = 0; e < o.count; ++e)
            if (f.vector_elements[o.id + e].kind == ptx::Operand::reg) used[f.vector_elements[o.id + e].id] = true;
      }
    }
    // Registers of ranges print shortest when they are few: name them anew.
    std::map<ptx::Type, uint32_t> numbers;
    for (uint32_t r = 0; r < used.size(); ++r) {
      ptx::Register& reg = f.registers[static_cast<ptx::RegisterId>(r)];
      if (used[r]) reg.name = fmt::format("%{}_{}", ptx::type_name(reg.type), numbers[reg.type]++);
    }
    for (uint32_t r = 0; r < used.size(); ++r) {
      ptx::Register& reg = f.registers[static_cast<ptx::RegisterId>(r)];
      if (!used[r]) reg.name = fmt::format("%{}_{}", ptx::type_name(reg.type), numbers[reg.type]++);
    }
  }
  return out;
}

// Without labels that nothing jumps to, and without the values of tables.
std::string text_of(const ptx::Module& module) {
  const std::string text = ptx::print(module);
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line.size() > 1 && line[0] == 'L' && line.back() == ':' &&
        text.find("bra " + line.substr(0, line.size() - 1) + ";") == std::string::npos)
      continue;
    out += line + "\n";
  }
  return out;
}

std::string environment(const char* name, const std::string& otherwise) {
  const char* v = std::getenv(name);
  return v ? v : otherwise;
}

struct Totals {
  size_t programs = 0, ours = 0, theirs = 0, refused = 0, unknown = 0, hazards = 0, failures = 0;
  std::map<std::string, size_t> refusals;
};

// `count` programs from `first` on, of what the lowest target has; on each of the targets.
void run_programs(uint64_t first, uint64_t count, uint32_t sm, const std::vector<std::string>& on,
                  const std::string& ptxas, std::map<std::string, Totals>& totals) {
  constexpr uint64_t per_module = 100;
  const Words in = program_input(77);
  size_t shown = 0;
  for (uint64_t at = first; at < first + count; at += per_module) {
    const uint64_t n = std::min(per_module, first + count - at);
    ptx::Module made = program_module(sm);
    for (uint64_t k = 0; k < n; ++k) add_random_kernel(made, (at + k) * 100 + sm, fmt::format("k{}", k));
    const std::string text = ptx::print(made);
    const ptx::Module module = parse_text("programs.ptx", text);
    if (auto problems = ptx::verify(made); !problems.empty()) {
      ADD_FAILURE() << at << ": " << problems[0];
      return;
    }
    std::vector<Words> expected(n);
    std::vector<bool> runs(n, true);
    for (const ptx::Function& f : module.functions) EXPECT_FALSE(reads_unset(f)) << at << " " << f.name;
    for (uint64_t k = 0; k < n; ++k) {
      auto out = interpreted(module, fmt::format("k{}", k), in);
      if (!out.ok()) {
        ADD_FAILURE() << "program " << at + k << " (of sm_" << sm << "): " << out.error().message;
        runs[k] = false;
        continue;
      }
      expected[k] = *std::move(out);
    }
    const auto single = [&](uint64_t k) {
      ptx::Module m = program_module(sm);
      add_random_kernel(m, (at + k) * 100 + sm, fmt::format("k{}", k));
      return m;
    };
    for (const std::string& target : on) {
      Totals& t = totals[target];
      t.programs += n;
      std::vector<Variant> variants = {{"-O3", 3}, {"-O0", 0}};
      if (at / per_module % 2 == 0) variants.push_back({"-O3 with 24 registers", 3, 24});
      if (!ptxas.empty()) variants.push_back({"ptxas", 3, 0, true});
      for (const Variant& v : variants) {
        const auto report = [&](uint64_t k, const std::string& what) {
          ++t.failures;
          if (++shown > 4) {
            ADD_FAILURE() << "program " << at + k << " (of sm_" << sm << ") " << target << " " << v.name << ": "
                          << what;
            return;
          }
          const ptx::Module m = single(k);
          const std::string name = fmt::format("k{}", k);
          const bool small = environment("RNDN_PROGRAMS_REDUCE", "1") == "1";
          const ptx::Module least = small ? tidy(reduced(m, name, v, target, ptxas, in), name) : m;
          std::string kind;
          const std::string again = failure_of(least, name, v, target, ptxas, in, kind);
          ADD_FAILURE() << "program " << at + k << " (of sm_" << sm << ") " << target << " " << v.name << ": " << what
                        << "\nreduced: " << kind << ": " << again << "\n"
                        << (small ? text_of(least) : "");
        };
        auto whole = code(v, module, text, target, ptxas);
        Bench bench(target, in);
        bool loaded = false;
        if (whole.ok()) {
          if (auto r = bench.load(*whole); !r.ok())
            ADD_FAILURE() << at << " " << target << " " << v.name << ": " << r.error().message;
          else
            loaded = true;
        } else if (v.ptxas) {
          ADD_FAILURE() << at << " " << target << ": " << whole.error().message;
        }
        for (uint64_t k = 0; k < n; ++k) {
          if (!runs[k]) continue;
          const std::string name = fmt::format("k{}", k);
          Result<Words> got = Words{};
          if (loaded) {
            got = bench.run(name, !v.ptxas);
            // The simulator is stricter than ptxas in places: counted, and run without the check.
            if (!got.ok() && v.ptxas && got.error().message.find("hazard:") != std::string::npos) {
              ++t.hazards;
              got = bench.run(name, false, false);
            }
          } else {
            if (v.ptxas) break;
            const ptx::Module m = single(k);
            auto own = code(v, m, "", target, ptxas);
            if (!own.ok() && own.error().message.find("unsupported") != std::string::npos) {
              ++t.refused;
              std::string m2 = own.error().message;
              const size_t from = m2.find("unsupported");
              ++t.refusals[m2.substr(from, 60)];
              continue;
            }
            if (!own.ok()) {
              report(k, own.error().message);
              continue;
            }
            Bench alone(target, in);
            if (auto r = alone.load(*own); !r.ok()) {
              report(k, r.error().message);
              continue;
            }
            got = alone.run(name, true);
          }
          if (!got.ok() && v.ptxas &&
              (got.error().message.find("is no known instruction") != std::string::npos ||
               got.error().message.find("has no meaning in the simulator yet") != std::string::npos ||
               got.error().message.find("`: IADD.SAT") != std::string::npos)) {
            ++t.unknown;
            ++t.refusals[got.error().message.substr(0, 200)];
            continue;
          }
          (v.ptxas ? t.theirs : t.ours) += 1;
          if (!got.ok())
            report(k, got.error().message);
          else if (const std::string d = where(expected[k], *got); !d.empty())
            report(k, d);
        }
      }
    }
  }
}

TEST(RandomPrograms, DoWhatThePtxMeans) {
  const uint64_t count = std::stoull(environment("RNDN_PROGRAMS", "60")),
                 first = std::stoull(environment("RNDN_PROGRAMS_FIRST", "0"));
  const std::string only = environment("RNDN_PROGRAMS_TARGETS", "sm_61,sm_86,sm_90");
  std::string why;
  const std::string ptxas = environment("RNDN_PROGRAMS_PTXAS", "0") == "1" ? reference_tool("ptxas", why) : "";
  std::map<std::string, Totals> totals;
  // A third of the programs each of what every target has, of sm_80's and of sm_90's operations.
  for (uint32_t sm : {61u, 80u, 90u}) {
    std::vector<std::string> on;
    for (const char* t : {"sm_61", "sm_86", "sm_90"})
      if (only.find(t) != std::string::npos && isa::find_target(t)->sm >= sm) on.push_back(t);
    if (!on.empty()) run_programs(first, count / 3, sm, on, ptxas, totals);
  }
  for (const auto& [target, t] : totals) {
    std::printf(
        "%s: %zu programs, %zu runs of our code, %zu of ptxas's; %zu refused, %zu with instructions unknown to the "
        "simulator, %zu with hazards that it suspects, %zu failures\n",
        target.c_str(), t.programs, t.ours, t.theirs, t.refused, t.unknown, t.hazards, t.failures);
    if (!HasFailure() && !ptxas.empty())
      rndn::testing::record_status("count",
                                   "random programs whose results agree with ptxas's code and the PTX interpreter",
                                   target, std::to_string(t.programs));
    for (const auto& [what, n] : t.refusals) std::printf("  %zu %s\n", n, what.c_str());
  }
}

// A kernel k(in, out): its body with %v0 to %v63 of the thread's input, and where to store.
std::string with_values(const std::string& registers, const std::string& body, uint32_t values) {
  std::string s =
      ".version 7.0\n.target sm_60\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
      ".reg .b32 %v<64>;\n.reg .b32 %r<16>;\n.reg .b64 %d<8>;\n" +
      registers +
      "ld.param.u64 %d1, [in];\nld.param.u64 %d2, [out];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\n"
      "mad.lo.u32 %r3, %r2, 96, %r1;\nmad.wide.u32 %d3, %r3, 24, %d1;\nmad.wide.u32 %d4, %r3, 768, %d2;\n"
      "ld.global.u32 %v0, [%d3];\nld.global.u32 %r4, [%d3+8];\n";
  for (uint32_t k = 1; k < values; ++k)
    s += fmt::format("mad.lo.u32 %v{0}, %v{1}, 1664525, %r4;\nshr.u32 %r5, %v{1}, 7;\nxor.b32 %v{0}, %v{0}, %r5;\n", k,
                     k - 1);
  return s + body + "ret;\n}\n";
}

void agree(std::string text, const std::vector<std::string>& on, isa::Mnemonic present = isa::Mnemonic::NOP) {
  const Words in = input_words();
  const ptx::Module module = parse_text("found.ptx", text);
  auto expected = run_interpreter(module, "k", in);
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  for (const std::string& target : on)
    for (auto [level, registers] : {std::pair{3, 0u}, {0, 0u}, {3, 24u}}) {
      auto made = assemble_for(module, target, level, registers);
      ASSERT_TRUE(made.ok()) << made.error().message;
      auto got = run_simulator(target, made->cubin, "k", in);
      ASSERT_TRUE(got.ok()) << target << " -O" << level << " " << registers << ": " << got.error().message;
      EXPECT_EQ(difference(*expected, *got, 96), "") << target << " -O" << level << " " << registers;
      if (present == isa::Mnemonic::NOP || level == 0 || registers == 24) continue;
      auto image = cubin::read(made->cubin);
      ASSERT_TRUE(image.ok());
      bool found = false;
      for (const isa::Located& l : isa::unpack(*isa::find_target(target), image->kernels[0].code)) {
        isa::Instruction i;
        found |= isa::decode(*isa::find_target(target), l.word, l.address, i) && i.mnemonic == present;
      }
      EXPECT_TRUE(found) << target << " does not come to what this test is about";
    }
}

// More predicates than there are, each of which guards its own next definition.
TEST(FoundByRandomPrograms, SpilledPredicateGuardsItsOwnDefinition) {
  std::string body;
  for (int k = 0; k < 20; ++k) body += fmt::format("setp.lt.s32 %p{}, %v{}, 0;\n", k, k);
  for (int k = 0; k < 20; ++k)
    body += fmt::format("@{}%p{} setp.lt.s32 %p{}, %v{}, 77;\n", k % 2 ? "!" : "", k, k, (k + 7) % 20);
  for (int k = 0; k < 20; ++k)
    body += fmt::format("@%p{} setp.lt.s32 %p{}|%p{}, %v{}, 1234567;\n", k, k, (k + 5) % 20, (k + 11) % 20);
  for (int k = 0; k < 20; ++k)
    body += fmt::format("selp.u32 %r6, {}, 0, %p{};\nst.global.u32 [%d4+{}], %r6;\n", k + 1, k, 4 * k);
  agree(with_values(".reg .pred %p<24>;\n", body, 20), {"sm_61", "sm_86", "sm_90"});
}

// The uniform register of REDUX is none of those that hold values across a loop.
TEST(FoundByRandomPrograms, ReductionOfAWarpBesideUniformValues) {
  std::string body =
      "ld.param.u32 %r6, [in];\nmad.lo.u32 %r7, %r2, 77, 5;\nmul.lo.u32 %r10, %r7, 31;\nxor.b32 %r11, %r10, "
      "12345;\nmov.u32 %r8, 0;\nLOOP:\nredux.sync.add.u32 %r9, %v3, 0xffffffff;\n";
  for (int k = 0; k < 50; ++k)
    body += fmt::format("mad.lo.u32 %v{0}, %v{0}, {1}, %r9;\nadd.u32 %v{0}, %v{0}, {2};\n", k, 2 * k + 3,
                        k % 3 == 0   ? "%r7"
                        : k % 3 == 1 ? "%r10"
                                     : "%r11");
  body += "add.u32 %r8, %r8, 1;\nsetp.lt.u32 %p1, %r8, 3;\n@%p1 bra LOOP;\n";
  for (int k = 0; k < 50; ++k) body += fmt::format("st.global.u32 [%d4+{}], %v{};\n", 4 * k, k);
  std::string text = with_values(".reg .pred %p<2>;\n", body, 50);
  text.replace(text.find("sm_60"), 5, "sm_80");
  agree(text, {"sm_86", "sm_90"}, isa::Mnemonic::R2UR);
}

// Longer stalls than the schedule asks for change nothing: a scan whose blocks wait for each other, and a kernel that spills.
TEST(Stalls, LongerOnesChangeNothing) {
  for (const std::string target : {"sm_80", "sm_90"})
    for (bool scan : {true, false})
      for (uint64_t variant = 0; variant < 4; ++variant) {
        const ptx::Module module = parse_text("stress.ptx", scan ? stress::scan_text : stress::spill_text());
        Options o;
        o.target = isa::find_target(target);
        o.max_registers = scan ? 0 : 24;
        o.verify_passes = true;
        o.stalls = static_cast<Stalls>(std::min<uint64_t>(variant, 2));
        o.stall_seed = variant;
        Timings timings;
        auto made = assemble(module, o, timings);
        ASSERT_TRUE(made.ok()) << made.error().message;
        EXPECT_TRUE(scan || made->kernels[0].spill_bytes > 0);
        constexpr uint32_t blocks = 5, n = blocks * 256;
        std::vector<uint32_t> in(stress::spill_mask + 1), expected(n), got(n);
        uint32_t sum = 0, state = 1;
        for (uint32_t& x : in) x = state = state * 1664525 + 1013904223;
        for (uint32_t k = 0; k < n; ++k) expected[k] = scan ? (sum += in[k]) : stress::spilled(in, k);
        sim::Machine machine(target, 16 << 20);
        auto loaded = machine.load(made->cubin);
        ASSERT_TRUE(loaded.ok());
        const uint64_t in_at = *machine.allocate(in.size() * 4), out_at = *machine.allocate(n * 4),
                       states = *machine.allocate(blocks * 8), ticket = *machine.allocate(8);
        ASSERT_TRUE(machine.write(in_at, in.data(), in.size() * 4).ok() && machine.fill(states, 0, blocks * 8).ok() &&
                    machine.fill(ticket, 0, 8).ok());
        sim::Options so;
        so.check_hazards = so.check_uninitialised = so.deterministic = true;
        so.max_warp_instructions = 1'000'000;
        for (uint64_t epoch = 1; epoch <= 2; ++epoch) {
          const uint64_t parameters[6] = {in_at, out_at, states, ticket, epoch, blocks};
          auto ran = machine.launch(*loaded, scan ? "scan" : "spill", {blocks, 1, 1}, {256, 1, 1}, 0,
                                    std::as_bytes(std::span(parameters)).first(scan ? 48 : 16), so);
          ASSERT_TRUE(ran.ok()) << target << " " << scan << " " << variant << ": " << ran.error().message;
          ASSERT_TRUE(machine.read(out_at, got.data(), n * 4).ok());
          EXPECT_EQ(got, expected) << target << " " << scan << " " << variant;
        }
      }
}

}  // namespace
}  // namespace rndn::assembler::testing
