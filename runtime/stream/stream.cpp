#include "runtime/stream/stream.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <set>

#include "runtime/plan/fallbacks.h"
#include "runtime/reference/reference.h"
#include "runtime/stream/row_order.h"

namespace rndn::runtime {

using data::Column;
using reference::Value;

namespace {

constexpr unsigned deepest = 6;       // programs cut within programs that were cut
constexpr uint64_t least_rows = 256;  // of a range
constexpr uint64_t longest_range = data::longest_vector;
constexpr uint64_t range_of_memory =
    8;  // a range begins with this part of the memory for its columns

uint64_t width_on_device(const Column& c) { return c.is_foreign_key ? 8 : encodings::plain_bytes(c.type); }

// Do the rows that a foreign key refers to ascend?
bool rows_ascend(const Column& c) {
  if (!c.foreign_rows) return false;
  for (uint64_t i = 1; i < c.rows; ++i)
    if (c.foreign_row(i) < c.foreign_row(i - 1)) return false;
  return true;
}

// A table that a program reads.
struct Candidate {
  std::string table;
  uint64_t bytes = 0, rows = 0;
  std::vector<outliner::SplitOptions::Ascending> ascending;
};

Result<std::vector<Candidate>> candidates(const hir::Program& program, const data::Tables& tables,
                                          uint64_t fewest) {
  std::vector<Candidate> found;
  for (const auto& [table, columns] : data::columns_read(program).tables) {
    Candidate c{.table = table};
    ASSIGN_OR_RETURN(c.rows, tables.rows(table));
    std::set<std::string> seen;
    for (const std::string& name : columns) {
      if (!seen.insert(name).second) continue;
      auto column = tables.part(table, name, data::ColumnPart::values);
      if (!column) column = tables.part(table, name, data::ColumnPart::values_with_zeros);
      if (!column) return column.error();
      c.bytes += c.rows * width_on_device(**column);
      if ((*column)->is_foreign_key
              ? rows_ascend(**column)
              : (*column)->statistics.sorted && hir::is_integer((*column)->type))
        c.ascending.push_back(
            {name, (*column)->is_foreign_key ? std::nullopt : std::optional((*column)->type)});
    }
    if (c.rows > fewest) found.push_back(std::move(c));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Candidate& a, const Candidate& b) { return a.bytes > b.bytes; });
  return found;
}

Result<RowOrder::Key> key_of(const data::Tables& tables, const std::string& table,
                             const outliner::SplitKey& key) {
  using data::ColumnPart;
  auto column =
      tables.part(table, key.column, key.valid ? ColumnPart::validity : ColumnPart::values);
  if (!column && !key.valid) column = tables.part(table, key.column, ColumnPart::values_with_zeros);
  if (!column) return column.error();
  return RowOrder::Key{*column, key.ascending};
}

// Are the columns of the types that the program takes their elements in?
Result<bool> can_order(const data::Tables& tables, const std::string& table,
                       const std::vector<outliner::SplitKey>& keys) {
  for (const outliner::SplitKey& key : keys) {
    ASSIGN_OR_RETURN(const RowOrder::Key at, key_of(tables, table, key));
    if (at.column->type != key.type || at.column->is_foreign_key ||
        key.type == hir::BasicType::complex)
      return false;
  }
  return true;
}

// The first row from `row` on before which the elements change: where a range may end.
uint64_t next_change(const Column& c, uint64_t row) {
  const auto same = [&](uint64_t i) {
    if (c.is_foreign_key) return c.foreign_row(i) == c.foreign_row(row - 1);
    return std::memcmp(c.data->data() + i * c.width, c.data->data() + (row - 1) * c.width,
                       c.width) == 0;
  };
  uint64_t low = row, high = c.rows;  // ascending: equal elements are neighbours
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (same(middle))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

}  // namespace

// Results of one kind of all ranges, put together.
class Stream::Pieces {
 public:
  uint64_t size() const { return size_; }
  // Numbers of rows of the range that begins at `first`.
  void add_places(const Value& v, std::span<const uint32_t> order, uint64_t first) {
    std::vector<int64_t> rows(v.size);
    for (uint64_t i = 0; i < v.size; ++i)
      rows[i] = order[first + static_cast<uint64_t>(v.as<int64_t>()[i])];
    add(data::vector_of<int64_t>(v.type, rows), 0);
  }
  void add(const Value& v, int64_t rebase) {
    if (!first_) first_ = v;
    size_ += v.size;
    if (hir::is_text(v.type))
      add_texts(v);
    else if (v.size)
      add_bytes(v, rebase);
  }
  Value take() {
    if (hir::is_text(first_->type)) {
      if (!codes_.empty()) return data::vector_of_codes(first_->type, texts_, std::move(codes_));
      return data::vector_of_texts(first_->type, std::move(plain_));
    }
    return data::vector_from_bytes(first_->type, size_, std::move(bytes_));
  }

 private:
  void add_bytes(const Value& v, int64_t rebase) {
    const size_t at = bytes_.size();
    const auto* from = v.bytes->data();
    bytes_.insert(bytes_.end(), from, from + v.size * data::plain_width(v.type));
    if (!rebase) return;
    for (size_t i = at; i < bytes_.size(); i += 8) {
      int64_t row = 0;
      std::memcpy(&row, bytes_.data() + i, 8);
      row += rebase;
      std::memcpy(bytes_.data() + i, &row, 8);
    }
  }
  // Codes stay codes as long as all pieces have the same dictionary.
  void add_texts(const Value& v) {
    if (!v.size) return;
    if (v.codes && plain_.empty() && (codes_.empty() || texts_ == v.texts)) {
      texts_ = v.texts;
      codes_.insert(codes_.end(), v.codes->begin(),
                    v.codes->begin() + static_cast<std::ptrdiff_t>(v.size));
      return;
    }
    for (uint32_t code : codes_) plain_.push_back((*texts_)[code]);
    codes_.clear();
    for (uint64_t i = 0; i < v.size; ++i) plain_.push_back(v.text(i));
  }

  std::optional<Value> first_;
  uint64_t size_ = 0;
  std::vector<std::byte> bytes_;
  std::shared_ptr<const std::vector<std::string>> texts_;
  std::vector<uint32_t> codes_;
  std::vector<std::string> plain_;
};

Result<std::unique_ptr<Stream>> Stream::make(Engine& engine, Engine::State& state,
                                             Engine::Plan& plan, const Error& full,
                                             Timings& timings) {
  auto made = std::unique_ptr<Stream>(new Stream(engine, state));
  made->root_.compiled = &plan.state_->compiled;
  made->root_.plan = &plan;
  RETURN_IF_ERROR(made->cut(made->root_, *plan.state_->tables, full, timings));
  return made;
}

Result<void> Stream::cut(Node& node, const data::Tables& tables, const Error& full,
                         Timings& timings) {
  std::string reasons;
  node.full = full;
  node.table.clear();
  for (auto* part : {&node.before, &node.range, &node.after}) part->reset();
  if (node.depth >= deepest) return full;
  const uint64_t asked = node.plan->state_->options.range_rows;
  ASSIGN_OR_RETURN(const std::vector<Candidate> all,
                   candidates(node.compiled->program, tables, asked ? asked : least_rows));
  const std::string prefix = fmt::format("@{}.", ++programs_);
  // What comes after ranges has been cut once: by keys it is cut better.
  const bool keys_first =
      node.name.ends_with("after") || node.plan->state_->options.ranges_by_keys;
  for (bool by_keys : {keys_first, !keys_first})
    for (const Candidate& c : all) {
      outliner::Split split =
          outliner::split(node.compiled->program, {.table = c.table,
                                                   .prefix = prefix,
                                                   .ascending = c.ascending,
                                                   .by_keys = by_keys,
                                                   .float_sums = node.float_sums});
      if (split.refused.empty()) {
        ASSIGN_OR_RETURN(const bool orders, can_order(tables, c.table, split.keys));
        if (!orders) split.refused = "a key is of another type than its column";
      }
      if (!split.refused.empty()) {
        reasons +=
            fmt::format("{} by {} of `{}`: {}", reasons.empty() ? "; it does not run" : ", nor",
                        by_keys ? "keys" : "ranges", c.table, split.refused);
        continue;
      }
      return cut(node, std::move(split), c.table, c.bytes / c.rows, timings);
    }
  Error error = full;
  error.message += reasons;
  return error;
}

Result<void> Stream::cut(Node& node, outliner::Split split, const std::string& table,
                         uint64_t row_bytes, Timings& timings) {
  if (!split.before_results.empty()) {
    ASSIGN_OR_RETURN(node.before, compile(node, "before", std::move(split.before), timings));
  }
  ASSIGN_OR_RETURN(node.range, compile(node, "range", std::move(split.range), timings));
  ASSIGN_OR_RETURN(node.after, compile(node, "after", std::move(split.after), timings));
  node.merges.clear();
  for (outliner::Split::Merge& merge : split.merges) {
    ASSIGN_OR_RETURN(auto made, compile(node, "merge", std::move(merge.program), timings));
    node.merges.push_back(std::move(made));
  }
  node.table = table;
  node.split = std::move(split);
  const uint64_t memory = std::min(state_.memory.limit(), state_.device.info().memory_bytes);
  const uint64_t asked = node.plan->state_->options.range_rows;
  node.range_rows = asked ? asked
                          : std::clamp<uint64_t>(memory / range_of_memory /
                                                     std::max<uint64_t>(1, row_bytes),
                                                 least_rows, longest_range);
  return {};
}

Result<std::unique_ptr<Stream::Node>> Stream::compile(const Node& parent, std::string name,
                                                      hir::Program program, Timings& timings) {
  auto node = std::make_unique<Node>();
  node->name = parent.name.empty() ? std::move(name) : parent.name + "/" + name;
  node->depth = parent.depth + 1;
  ASSIGN_OR_RETURN(Compiled compiled,
                   compile_program(std::move(program), *parent.compiled, timings));
  node->own_compiled = std::make_unique<Compiled>(std::move(compiled));
  const Engine::Plan::State& like = *parent.plan->state_;
  EngineOptions options = like.options;
  options.graphs = false;  // every range has addresses of its own
  options.range_rows = 0;
  ASSIGN_OR_RETURN(node->own_plan,
                   engine_.plan(*node->own_compiled, like.sources, options, timings));
  node->compiled = node->own_compiled.get();
  node->plan = node->own_plan.get();
  return node;
}

Result<std::vector<Value>> Stream::run(Timings& timings, std::vector<KernelReport>* kernels,
                                       std::vector<std::string>* fallbacks,
                                       uint64_t* texts_walked) {
  fallbacks_.clear();
  texts_walked_ = 0;
  auto results = run(root_, *root_.plan->state_->tables, timings);
  if (fallbacks) fallbacks->insert(fallbacks->end(), fallbacks_.begin(), fallbacks_.end());
  if (texts_walked) *texts_walked = texts_walked_;
  const std::function<void(Node&)> report = [&](Node& node) {
    for (KernelReport& r : node.reports) {
      r.name = node.name + "/" + r.name;
      if (kernels) kernels->push_back(std::move(r));
    }
    node.reports.clear();
    for (Node* part : {node.before.get(), node.range.get(), node.after.get()})
      if (part) report(*part);
    for (const auto& merge : node.merges) report(*merge);
  };
  report(root_);
  return results;
}

Result<std::vector<Value>> Stream::run(Node& node, const data::Tables& tables, Timings& timings) {
  auto results = run_on_device(node, tables, timings);
  if (results || results.error().cause != Cause::device_full) return results;
  node.plan->state_->tables = &tables;
  return run_on_host(*node.plan->state_, results.error(), timings, nullptr, &fallbacks_);
}

Result<std::vector<Value>> run_on_host(const Engine::Plan::State& plan, const Error& full,
                                       Timings& timings, std::string* printed,
                                       std::vector<std::string>* fallbacks) {
  if (full.cause != Cause::device_full || !plan.options.allow_fallback) return full;
  auto scope = timings.measure(Phase::cpu, "reference interpreter");
  auto results = errors_of([&] {
    return reference::run(plan.compiled.program, *plan.tables, plan.sources, printed);
  });
  if (results && fallbacks) fallbacks->push_back(whole_program_fallback(full.message));
  return results;
}

Result<std::vector<Value>> Stream::run_on_device(Node& node, const data::Tables& tables,
                                                 Timings& timings) {
  if (node.table.empty()) {
    auto results = run_whole(node, tables, timings);
    if (results || results.error().cause != Cause::device_full) return results;
    RETURN_IF_ERROR(cut(node, tables, results.error(), timings));
  }
  ASSIGN_OR_RETURN(std::optional<Values> results, run_cut(node, tables, timings));
  if (results) return *std::move(results);
  node.float_sums = false;
  const Error full = node.full;
  if (auto again = cut(node, tables, full, timings); !again) {
    // Ranges were asked for, and it may well fit.
    if (full.fault == Fault::usage) return run_whole(node, tables, timings);
    return again.error();
  }
  ASSIGN_OR_RETURN(results, run_cut(node, tables, timings));
  CHECK(results.has_value());
  return *std::move(results);
}

Result<std::vector<Value>> Stream::run_whole(Node& node, const data::Tables& tables,
                                             Timings& timings) {
  node.plan->state_->tables = &tables;
  std::vector<KernelReport> kernels;
  std::vector<std::string> fallbacks;
  uint64_t walked = 0;
  auto results = engine_.run_whole(*node.plan, timings, nullptr, &kernels, &fallbacks, &walked);
  texts_walked_ += walked;
  for (KernelReport& r : kernels) {
    const auto known =
        std::find_if(node.reports.begin(), node.reports.end(),
                     [&](const KernelReport& k) { return k.name == r.name && k.kind == r.kind; });
    if (known == node.reports.end()) {
      node.reports.push_back(std::move(r));
      continue;
    }
    known->launches += r.launches;
    known->ns += r.ns;
    known->floor_bytes += r.floor_bytes;
  }
  for (std::string& f : fallbacks)
    if (std::find(fallbacks_.begin(), fallbacks_.end(), f) == fallbacks_.end())
      fallbacks_.push_back(std::move(f));
  return results;
}

// Their memory on the device goes; of columns of their own also what was made of their texts.
void Stream::forget(const std::vector<RangeTables::ColumnPtr>& columns, bool texts) {
  for (const auto& c : columns) {
    state_.forget(c.get());
    if (texts || !c->dictionary) state_.forget_domain(domain_key(*c));
  }
}

// Tables with columns of their own, of which nothing stays with the engine, however a run ends.
struct Stream::OwnTables {
  OwnTables(Stream& s, const data::Tables& all) : stream(s), tables(all) {}
  ~OwnTables() {
    stream.forget(tables.set_range("", 0, 0), false);
    stream.forget(tables.added(), true);
  }
  OwnTables(const OwnTables&) = delete;
  Stream& stream;
  RangeTables tables;
};

Result<std::optional<Stream::Values>> Stream::run_cut(Node& node, const data::Tables& tables,
                                                      Timings& timings) {
  OwnTables all(*this, tables);
  {
    OwnTables given(*this, tables);
    Values first;
    if (node.before) {
      ASSIGN_OR_RETURN(first, run(*node.before, tables, timings));
      for (size_t i = 0; i < first.size(); ++i) {
        const outliner::SplitResult& r = node.split.before_results[i];
        ASSIGN_OR_RETURN(auto column, column_of(first[i]));
        given.tables.add(r.table, r.column, std::move(column));
      }
    }
    ASSIGN_OR_RETURN(const bool holds, run_ranges(node, given.tables, first, all.tables, timings));
    if (!holds) return std::optional<Values>();
  }
  auto results = run(*node.after, all.tables, timings);
  if (!results && results.error().cause == Cause::device_full && !node.split.whole.empty()) {
    Error error = results.error();
    std::set<std::string> said;
    std::string statements;
    for (const auto& [builtin, span] : node.split.whole) {
      std::string one =
          fmt::format("`{}` ({})", builtin, node.plan->state_->sources.describe(span));
      if (said.size() < 8 && said.insert(one).second)
        statements += (statements.empty() ? "" : ", ") + one;
    }
    error.message += fmt::format(
        "; this is after ranges of `{}`, all of whose selected rows are needed at once by {}",
        node.table, statements);
    return error;
  }
  if (!results) return results.error();
  return std::optional(*std::move(results));
}

struct Stream::Gathered {
  std::vector<Pieces> pieces;    // of each result of the range program
  std::vector<uint64_t> merged;  // rows of each merge's results when they were last merged
};

// Groups of several ranges become those of one when there are twice as many as the last time.
Result<bool> Stream::merge_groups(Node& node, Gathered& so_far, const data::Tables& tables,
                                  Timings& timings) {
  for (size_t k = 0; k < node.merges.size(); ++k) {
    const std::vector<size_t>& results = node.split.merges[k].results;
    if (so_far.pieces[results[0]].size() < std::max<uint64_t>(2 * so_far.merged[k], least_rows))
      continue;
    OwnTables parts(*this, tables);
    Values all;
    for (size_t r : results) {
      all.push_back(so_far.pieces[r].take());
      ASSIGN_OR_RETURN(auto column, column_of(all.back()));
      parts.tables.add(node.split.range_results[r].table, node.split.range_results[r].column,
                std::move(column));
    }
    auto merged = run_whole(*node.merges[k], parts.tables, timings);
    if (!merged && merged.error().cause != Cause::device_full) return merged.error();
    const bool fits = static_cast<bool>(merged);
    if (!fits) merged = std::move(all);  // `after` merges them, by keys
    for (size_t i = results.size(); i < merged->size(); ++i)
      if ((*merged)[i].as<uint8_t>()[0]) return false;
    for (size_t i = 0; i < results.size(); ++i) {
      so_far.pieces[results[i]] = {};
      so_far.pieces[results[i]].add((*merged)[i], 0);
    }
    so_far.merged[k] = fits ? so_far.pieces[results[0]].size() : data::longest_vector;
  }
  return true;
}

Result<bool> Stream::run_ranges(Node& node, RangeTables& tables, const Values& first,
                                RangeTables& all, Timings& timings) {
  using outliner::SplitResult;
  const std::vector<SplitResult>& made = node.split.range_results;
  Gathered so_far{std::vector<Pieces>(made.size()), std::vector<uint64_t>(node.merges.size())};
  std::vector<Pieces>& pieces = so_far.pieces;
  std::vector<int64_t> counted(
      made.size());  // rows of the ranges before, by the result that has their number
  const auto set_carried = [&](const SplitResult& r, const Value& v) -> Result<void> {
    ASSIGN_OR_RETURN(auto column, column_of(v));
    if (auto gone = tables.add(r.table, r.column, std::move(column))) forget({gone}, true);
    return {};
  };
  for (const SplitResult& r : made)
    if (r.merge == SplitResult::carry) RETURN_IF_ERROR(set_carried(r, first[r.first]));
  ASSIGN_OR_RETURN(const uint64_t total, tables.rows(node.table));
  std::shared_ptr<const Column> cut;
  if (!node.split.cut.empty()) {
    auto key = tables.part(node.table, node.split.cut, data::ColumnPart::values);
    if (!key) key = tables.part(node.table, node.split.cut, data::ColumnPart::values_with_zeros);
    if (!key) return key.error();
    cut = *key;
  }
  std::optional<RowOrder> order;
  if (!node.split.keys.empty()) {
    std::vector<RowOrder::Key> keys;
    for (const outliner::SplitKey& key : node.split.keys) {
      ASSIGN_OR_RETURN(keys.emplace_back(), key_of(tables, node.table, key));
    }
    auto scope = timings.measure(Phase::cpu, "order of rows");
    order.emplace(keys);
    tables.set_order(order->rows());
  }
  uint64_t row = 0;
  do {
    uint64_t end = row + std::min(node.range_rows, total - row);
    if (cut && end < total) end = next_change(*cut, end);
    if (order && end < total) end = order->next_change(end);
    forget(tables.set_range(node.table, row, end - row), false);
    auto results = run_whole(*node.range, tables, timings);
    if (!results) {
      if (results.error().cause != Cause::device_full) return results.error();
      if (node.range_rows <= least_rows) {
        Error error = results.error();
        error.message += fmt::format("; a range of {} rows of `{}` is as small as one gets",
                                     end - row, node.table);
        return error;
      }
      node.range_rows = std::max(least_rows, std::min(node.range_rows, end - row) / 2);
      continue;
    }
    std::vector<int64_t> rows(made.size());
    for (size_t i = 0; i < made.size(); ++i) {
      const SplitResult& r = made[i];
      if (r.merge == SplitResult::refutes) {
        if ((*results)[i].as<uint8_t>()[0]) return false;
        continue;
      }
      if (r.merge == SplitResult::carry) {
        RETURN_IF_ERROR(set_carried(r, (*results)[i]));
        if (end == total) pieces[i].add((*results)[i], 0);
        continue;
      }
      if (r.merge == SplitResult::place) {
        pieces[i].add_places((*results)[i], *order->rows(), row);
        continue;
      }
      pieces[i].add((*results)[i], r.merge == SplitResult::rebase ? counted[r.rows] : 0);
      if (r.merge == SplitResult::rebase) rows[r.rows] = (*results)[r.rows].as<int64_t>()[0];
    }
    for (size_t i = 0; i < made.size(); ++i) counted[i] += rows[i];
    row = end;
    if (row == total) break;
    ASSIGN_OR_RETURN(const bool holds, merge_groups(node, so_far, tables, timings));
    if (!holds) return false;
  } while (row < total);
  for (size_t i = 0; i < made.size(); ++i) {
    if (made[i].merge == SplitResult::refutes) continue;
    ASSIGN_OR_RETURN(auto column, column_of(pieces[i].take()));
    all.add(made[i].table, made[i].column, std::move(column));
  }
  return true;
}

}  // namespace rndn::runtime
