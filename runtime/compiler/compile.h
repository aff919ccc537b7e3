// The compiler as one call: HorseIR text to a cubin, entirely in memory.
//
//   SourceManager sources; DiagnosticSink sink; Timings timings;
//   CompileOptions options; options.target = "sm_86";
//   Result<Compiled> compiled = compile(sources.add("q06.hir", text), sources, options, sink, timings);
//
// Reentrant: everything is in the arguments; two threads may compile different programs for different targets at once.
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "assembler/assemble.h"
#include "frontend/frontend.h"
#include "libraries/base/errors/diagnostic.h"
#include "libraries/base/errors/result.h"
#include "libraries/base/report/timing.h"
#include "libraries/libdevice/library.h"
#include "outliner/outliner.h"
#include "ptx/codegen/codegen.h"
#include "outliner/grouping_fusion.h"

namespace rndn::runtime {

class CodeCache;

// Where compilation stops; the names of --emit.
enum class Stage : uint8_t { hir, typed, outline, ptx, sass, cubin };
std::string_view stage_name(Stage stage);
bool find_stage(std::string_view name, Stage& stage);

// Who makes the cubin.
struct Backend {
  enum Kind : uint8_t { rndn, ptxas, driver } kind = rndn;
  std::string path = "ptxas";  // ptxas: the program to run, looked up on PATH when it has no slash
  std::string text() const;    // as given to --backend
};
bool parse_backend(std::string_view text, Backend& backend);

// What is to be expected of a program's runs.
struct Forecast {
  std::vector<codegen::KernelEncodings> forms;  // per kernel: how the elements that it gets and gives will lie
  std::vector<uint32_t> not_folded;             // groups that will be no folds
  std::vector<uint32_t> folds_apart;            // folds that will stand apart (outliner::Options)
  std::vector<uint32_t> not_whole;              // joins among all rows of a column whose elements may repeat
};
struct Compiled;

struct CompileOptions {
  std::string target = "sm_86";
  const hir::SchemaView* schema = nullptr;
  bool strict = false;
  bool dialect_v0 = false;
  outliner::Mode outline = outliner::Mode::full;
  bool fuse_operators = true;  // --fuse-operators: what runs as a fused operator has no kernel (outliner/grouping_fusion.h)
  bool fuse_joins = true;      // joins by unique keys, and membership, are look-ups of kernels (outliner/joins.cpp)
  bool fuse_groups = true;     // groups that are only reduced are part of the kernels of their keys (outliner/sinks.cpp)
  bool text_codes = true;      // text reaches kernels as codes (codegen.h)
  bool numbers_as_parameters = false;  // outliner::Options: for programs that come again with other numbers
  int level = 3;               // -O
  assembler::Scheduler scheduler = assembler::Scheduler::list;
  bool branch_inlining = true;
  uint32_t max_registers = 0;  // --limit-regs; 0: the target's limit
  bool verify_passes = false;
  Backend backend;
  Stage until = Stage::cubin;
  CodeCache* code_cache = nullptr;            // of our own assembler's code; null: none
  ThreadPool* pool = nullptr;                 // assembles kernels side by side; null: one thread
  assembler::Workspace* workspace = nullptr;  // memory that the assembler takes again; null: its own
  libdevice::Math* math = nullptr;            // read when a program needs it; null: the default one, for this call only
  // Asked when kernels have their plain PTX, for Stage::cubin: machine code is made for what it says, and for nothing else. None: for plain elements.
  std::function<Forecast(const Compiled&)> forecast;
  bool notes_work = false;  // codegen::Options: for estimates of kernels' times
};

struct Compiled {
  hir::Program program;          // typed (or as parsed, with until = hir)
  outliner::Outlined outlined;   // from Stage::outline on
  outliner::Fusions fusions;               // the same; none without fuse_operators
  codegen::ModuleCode code;      // from Stage::ptx on; no kernels when the program has none
  std::string ptx;               // Stage::ptx, and backends other than rndn: the module as text
  std::vector<std::byte> cubin;  // Stage::sass and cubin, but for the backend `driver`; empty without kernels
  std::vector<assembler::KernelReport> kernels;  // of our own assembler
  // Kernels without code that are no part of a fused operator, a sentence each, joined by `; `: code.kernels[k].refused says which and why. Empty: all have code.
  std::string no_gpu_code;
  std::string no_math;  // why the program's functions of libdevice have no code; empty: they have, or there are none
  std::string backend;  // who made the cubin
  int level = 3;        // -O, for a device that compiles the PTX itself
  CompileOptions options;             // that it was made with
  bool exact_sums = false;            // no kernel sums floats (outliner::Options)
  std::vector<uint32_t> not_unique;  // joins whose left keys are known to repeat (outliner::Options)
  std::vector<uint32_t> not_whole;   // joins that are not among all rows of a table (outliner::Options)
  std::vector<uint32_t> not_folded;  // groups that are known to be no folds
  std::vector<codegen::KernelEncodings> forms;  // per kernel, what its code is for; none: all plain
  std::vector<uint32_t> folds_apart;            // folds that stand apart
};

// Fails with an empty message when `sink` says what is wrong. A kernel that code generation or our assembler cannot take yet is left out of
// the module: the caller runs it on the reference interpreter and says so, or refuses.
Result<Compiled> compile(FileId file, const SourceManager& sources, const CompileOptions& options, DiagnosticSink& sink,
                         Timings& timings);

// What a run has found out that its program is to be compiled with: joins and folds by number (outliner::Options), those known before among them.
struct Findings {
  std::vector<uint32_t> not_unique, not_whole, not_folded, folds_apart;
  bool exact_sums = false;
};

// The same program again, where keys of more joins turned out to repeat, more groups are to be operators or to stand apart, or sums of floats by an
// operator that needs no rounding. What the options of `compiled` point to is still there.
Result<Compiled> compile_again(const Compiled& compiled, Findings findings, Timings& timings);

// Does the program call a function of libdevice, or may it?
bool calls_math(const hir::Program& program);

// Another typed program, with the options of `like`, for ranges of rows: without tables of all possible groups.
Result<Compiled> compile_program(hir::Program program, const Compiled& like, Timings& timings);

// One kernel of `compiled` again, for elements that lie in memory as `encodings` says, in a module of its own.
struct CompiledKernel {
  codegen::KernelCode code;
  std::string ptx;               // as in Compiled
  std::vector<std::byte> cubin;  // the same
  std::vector<assembler::KernelReport> reports;
};
Result<CompiledKernel> compile_kernel(const Compiled& compiled, size_t kernel, const codegen::KernelEncodings& encodings,
                                      Timings& timings);

// The stage as text (cubin: the bytes), valid input for the program that reads that stage.
Result<std::string> emit(const Compiled& compiled, Stage stage);

}  // namespace rndn::runtime
