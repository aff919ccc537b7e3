// Tables that kernels fold groups into (ptx/codegen/sink.cpp): how large they are and where they lie, from what is known
// of the keys when the kernel is launched. No wait.
//
// A table has an entry for every combination of elements within the keys' bounds. Of a program's own groups those that
// do not fit (bounds unknown or too wide, more entries than are worth the memory, extremes that could be what an empty
// entry holds) are noted in the plan, and the program is compiled again with them as operators (runtime/engine.h).
#include <algorithm>
#include <bit>

#include "runtime/run/execution.h"

namespace rndn::runtime {

using hir::BasicType;

namespace {

constexpr uint64_t most_entries = 1 << 22;
constexpr uint64_t always_worth = 1 << 16;  // entries; more than that only with half as many elements
constexpr uint64_t most_copies = 32;        // of an entry in a block: one per lane

// Extremes are compared with what an empty entry holds, whose bytes are all `fill`.
bool beyond_empty(const Bounds& b, uint8_t fill, uint32_t width) {
  if (!b.known()) return false;
  const uint64_t bytes = 0x0101010101010101u * fill;
  const int64_t empty = width == 4 ? int64_t{static_cast<int32_t>(bytes)} : static_cast<int64_t>(bytes);
  return empty > 0 ? b.max < empty : b.min > empty;
}

}  // namespace

std::string_view Run::fold_words(const codegen::KernelCode::Sink& sink, const hir::Function& f, uint64_t elements,
                                 std::span<const VariableBounds> bounds, std::span<const DomainPtr> key_domains,
                                 std::vector<uint64_t>& words) const {
  if (sink.selected_by_gathers && elements > plan_.options.most_rows_of_selective_folds)
    return "look-ups select its rows, mostly few of many";
  uint64_t entries = 1;
  std::vector<Bounds> keys;
  for (size_t k = 0; k < sink.keys.size(); ++k) {
    Bounds b = bounds[index(sink.keys[k])].bounds;
    if (key_domains[k]) {
      if (plan_.options.operators.ordered) return "its texts are to be in order";
      const Bounds codes{0, static_cast<int64_t>(key_domains[k]->count()) - 1};
      if (!b.known() || b.min < codes.min || b.max > codes.max) b = codes;
    }
    if (!b.known()) b = limits(program().types->basic_of(f.variables[sink.keys[k]].type));
    if (elements == 0 || (key_domains[k] && !b.known())) b = {0, 0};
    if (!b.known()) return "nothing is known of its keys";
    const uint64_t span = static_cast<uint64_t>(b.max) - static_cast<uint64_t>(b.min);
    if (span >= most_entries || entries * (span + 1) > most_entries) return "there may be too many groups";
    entries *= span + 1;
    keys.push_back(b);
  }
  if (entries > always_worth && entries / 2 > elements) return "there may be far more groups than rows";
  for (const codegen::KernelCode::Sink::Table& t : sink.tables) {
    const BasicType type = program().types->basic_of(f.variables[t.values].type);
    if (t.extreme && elements > 0 && !beyond_empty(bounds[index(t.values)].bounds, t.fill, encodings::plain_bytes(type)))
      return "nothing is known of the values whose extreme it takes";
  }
  const uint64_t bytes = entries * std::max(1u, sink.entry_bytes);
  const uint64_t copies = bytes <= sink.shared_bytes ? std::bit_floor(std::min(most_copies, sink.shared_bytes / bytes)) : 0;
  if (copies == 0 && sink.keys.size() == 1 && bounds[index(sink.keys[0])].ascending)
    return "its keys ascend: groups are runs";
  words = {entries, copies};
  uint64_t factor = entries;
  for (const Bounds& b : keys) {
    factor /= static_cast<uint64_t>(b.max) - static_cast<uint64_t>(b.min) + 1;
    words.push_back(static_cast<uint64_t>(b.min));
    words.push_back(factor);
  }
  return {};
}

// The run ends here, and the program is compiled again. A fold of the program's own text has no other way than the interpreter.
Result<void> Run::cannot_fold(const Step& s, int64_t number, std::string_view reason) {
  const std::vector<uint32_t>& folds = plan_.compiled.outlined.folds;
  if (std::find(folds.begin(), folds.end(), number) == folds.end()) return fall_back(s, reason);
  plan_.unfit.push_back(static_cast<uint32_t>(number));
  return Error{Fault::internal, fmt::format("a group is to be no fold: {}", reason)};
}

Result<void> Run::fold_tables(const codegen::KernelCode::Sink& sink, const hir::Function& f, uint64_t entries,
                              std::vector<ItemPtr>& outputs) {
  std::vector<codegen::KernelCode::Sink::Table> tables = sink.tables;
  std::stable_sort(tables.begin(), tables.end(), [](const auto& a, const auto& b) { return a.fill < b.fill; });
  std::vector<uint64_t> ends;  // of the tables' bytes
  for (const auto& t : tables) {
    const uint32_t width = encodings::plain_bytes(program().types->basic_of(f.result_types[t.result]));
    ends.push_back((ends.empty() ? 0 : ends.back()) + (entries * width + 255) / 256 * 256);
  }
  if (ends.empty()) return {};
  ASSIGN_OR_RETURN(const BufferPtr buffer, engine_.buffers.allocate(ends.back() + 8 * tables.size()));
  for (size_t k = 0; k < tables.size(); ++k) {
    ItemPtr made = new_vector(program().types->basic_of(f.result_types[tables[k].result]), entries, true);
    made->data_buffer = made->size_buffer = buffer;
    made->data = buffer->address + (k ? ends[k - 1] : 0);
    made->size_slot = buffer->address + ends.back() + 8 * k;
    outputs[tables[k].result] = std::move(made);
  }
  for (size_t k = 0, next = 0; k < tables.size(); k = next) {  // equal bytes side by side
    while (next < tables.size() && tables[next].fill == tables[k].fill) ++next;
    const uint64_t from = k ? ends[k - 1] : 0;
    RETURN_IF_ERROR(device_.fill(buffer->address + from, tables[k].fill, ends[next - 1] - from));
  }
  pending_ = true;
  return {};
}

}  // namespace rndn::runtime
