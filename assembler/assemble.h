// PTX to cubin in one call (assemble.cpp). pipeline.cpp shows a kernel's passes: structure, select, peephole,
// allocate, schedule, encode.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "assembler/isa/isa.h"
#include "assembler/machine/options.h"
#include "libraries/base/errors/diagnostic.h"
#include "libraries/base/errors/result.h"
#include "libraries/base/report/timing.h"
#include "ptx/ir.h"

namespace rndn::assembler {

// Memory that compilations take again, one after the other: whoever assembles often keeps one. Not for two threads at
// once.
class Workspace {
 public:
  struct Worker;  // pipeline.h
  Workspace();
  ~Workspace();
  Workspace(Workspace&&) noexcept;
  Workspace& operator=(Workspace&&) noexcept;
  std::vector<std::unique_ptr<Worker>> workers;  // one per thread of a compilation
};

struct Assembled {
  std::vector<std::byte> cubin;
  std::vector<KernelReport> kernels;
};

// Fails (fault input) with a sentence that names function and line for what is not supported. Reentrant: no global
// state.
Result<Assembled> assemble(const ptx::Module& module, const Options& options, Timings& timings);

}  // namespace rndn::assembler
