// What the outliner found out about a program and why it made these kernels: text for people, or a graph for `dot`.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "frontend/column_reads.h"
#include "libraries/base/errors/result.h"
#include "outliner/outliner.h"

namespace rndn::outliner {

struct ExplainOptions {
  bool dot = false;
  // Rows of a table, where they are known: turns bytes per element into bytes. May be empty.
  std::function<std::optional<uint64_t>(std::string_view table)> rows;
  // Bits of an element of a column, or of its validity, on the device, where they are known; else those of its type. May be empty.
  std::function<std::optional<uint32_t>(std::string_view table, const hir::ColumnRead& column)> bits;
};

// `sources` are those of `program`. Fails with an empty message when `sink` says what is wrong.
Result<std::string> explain(const hir::Program& program, const SourceManager& sources, const Options& options,
                            const ExplainOptions& how, DiagnosticSink& sink);

// Kernels in the modes none, flow and full: "q01   43   30    5".
struct KernelCounts {
  size_t none = 0, flow = 0, full = 0;
};
Result<KernelCounts> count_kernels(const hir::Program& program, const Options& options, DiagnosticSink& sink);

}  // namespace rndn::outliner
