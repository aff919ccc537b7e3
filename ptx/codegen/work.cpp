// What a kernel does for each element, for estimates of its time (runtime/model): which columns it reads in order and
// which at computed places, under which conditions (guards.cpp), what it stores and folds, and how many instructions of
// PTX its loops have for an element. Noted where the loops are written, so that it is what the code does.
//
// Left out: list kernels' offsets and cells, scalars, the look-back of scans, and that a branch passes instructions by, but for
// parts of sums that few numbers have (sink.cpp).
#include <algorithm>

#include "ptx/codegen/emitter.h"

namespace rndn::codegen {

using hir::VariableId;
using Work = KernelCode::Work;

void note_reads(Emitter& e, const Marks& wanted, std::optional<VariableId> selected) {
  if (!e.notes_work) return;
  const auto where = [&](std::optional<uint32_t> guard) {
    Conditions conditions = e.given;  // of collected elements
    if (guard)
      for (VariableId v : e.guards[*guard].conditions)
        if (std::find(conditions.begin(), conditions.end(), v) == conditions.end()) conditions.push_back(v);
    return conditions;
  };
  if (e.code.work.empty()) e.code.work.reserve(e.inputs.size() + e.steps.size() + 2);
  for (const Input& in : e.inputs)
    if (in.wanted)
      e.code.work.push_back({.kind = Work::load,
                             .variable = in.variable,
                             .bits = encodings::bits_of(in.type, in.stored),
                             .where = where(in.guard),
                             .selected = selected});
  for (size_t k = 0; k < e.steps.size(); ++k) {
    const Step& s = e.steps[k];
    if (!wanted[k] || !s.call || s.scalar || s.reduction) continue;
    std::optional<uint32_t> guard;
    if (const auto at = e.guard_of.find(s.id); at != e.guard_of.end()) guard = at->second;
    const auto place = [&](size_t operand) -> std::optional<VariableId> {
      if (operand >= s.operands.size() || s.operands[operand].kind != hir::Operand::variable) return std::nullopt;
      return s.operands[operand].variable_id();
    };
    if (s.builtin == Builtin::gpu_probe) {
      e.code.work.push_back({.kind = Work::probe,
                             .variable = s.target,
                             .at = place(s.operands.size() - 1),
                             .number = static_cast<uint32_t>(&lookup_of(e, s) - e.lookups.data()),
                             .where = where(guard),
                             .selected = selected});
      continue;
    }
    for (size_t o = 0; o < s.operands.size(); ++o)
      if (s.operands[o].kind == hir::Operand::variable && reads_whole(s, o)) {
        const VariableId v = s.operands[o].variable_id();
        e.code.work.push_back({.kind = Work::gather,
                               .variable = v,
                               .at = place(o + 1),
                               .bits = encodings::bits_of(e.type_of(v), e.stored(v)),
                               .where = where(guard),
                               .selected = selected});
      }
  }
}

void note_instructions(Emitter& e, size_t first, size_t noted, uint32_t elements, std::optional<VariableId> selected) {
  if (!e.notes_work) return;
  const size_t count = e.b.function().instructions.size() - first - (e.noted_instructions - noted);
  e.noted_instructions += count;
  e.code.work.push_back(
      {.kind = Work::instructions, .count = static_cast<double>(count) / std::max(1u, elements), .where = e.given, .selected = selected});
}

void note_results(Emitter& e) {
  if (!e.notes_work) return;
  for (const Output& out : e.outputs) {
    const bool is_selection = out.kind == Output::compressed;
    if (is_selection || out.kind == Output::vector || out.kind == Output::scattered)
      e.code.work.push_back({.kind = Work::store,
                             .variable = out.variable,
                             .bits = encodings::bits_of(out.type, out.stored),
                             .selected = is_selection ? std::optional(out.variable) : std::nullopt});
  }
  for (uint32_t k = 0; k < e.sinks.size(); ++k)
    e.code.work.push_back({.kind = Work::fold,
                           .number = k,
                           .count = static_cast<double>(e.sinks[k].folds.size()),
                           .selected = e.sinks[k].keys.empty() ? std::nullopt : std::optional(e.sinks[k].keys[0])});
}

}  // namespace rndn::codegen
