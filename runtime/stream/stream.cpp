#include "runtime/stream/stream.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <set>

#include "libraries/base/numbers/running_sums.h"
#include "libraries/base/system/host_memory.h"
#include "runtime/plan/fallbacks.h"
#include "runtime/reference/reference.h"
#include "runtime/stream/row_order.h"
#include "runtime/stream/row_parts.h"

namespace rndn::runtime {

using data::Column;
using reference::Value;

namespace {

constexpr unsigned deepest = 6;       // programs cut within programs that were cut
constexpr uint64_t least_rows = 256;  // of a range
constexpr uint64_t least_to_join = 16;  // of either side: they may all be pairs
constexpr uint64_t longest_range = data::longest_vector;
constexpr uint64_t range_of_memory = 10;  // a range begins with this part of the memory for its columns

constexpr uint64_t short_of_host = 4;  // with less than this part of it left, the host gives back what it can make again

constexpr uint64_t bytes_beside_a_key = 32;  // in the tables and results of a join
constexpr unsigned most_part_bits = 12;

uint64_t width_on_device(const Column& c) { return c.is_foreign_key ? 8 : encodings::plain_bytes(c.type); }

constexpr uint64_t rows_of_a_piece = 1 << 16;  // as forms are restored (memory/column_forms.cpp)

// Bytes of a column, a piece at a time: what is still to come is made for as long as it is read.
class PieceReader {
 public:
  PieceReader(std::shared_ptr<data::Bytes> of, uint64_t width) : of_(std::move(of)), width_(width) {}
  // Valid until the next call.
  const std::byte* element(uint64_t row) {
    if (of_->are_here()) return of_->data() + row * width_;
    if (const uint64_t first = row - row % rows_of_a_piece; !piece_ || first != first_) {
      first_ = first;
      piece_ = data::Bytes::part(of_, first * width_, std::min(rows_of_a_piece * width_, of_->size() - first * width_));
    }
    return piece_->data() + (row - first_) * width_;
  }

 private:
  const std::shared_ptr<data::Bytes> of_;
  const uint64_t width_;
  uint64_t first_ = 0;
  std::shared_ptr<data::Bytes> piece_;
};

// Do the rows that a foreign key refers to ascend?
bool rows_ascend(const Column& c) {
  if (!c.foreign_rows) return false;
  if (c.rows == 0) return true;
  const auto ascend = [&]<class T>(T last) {
    for (uint64_t first = 0; first < c.rows; first += rows_of_a_piece) {
      const uint64_t count = std::min(rows_of_a_piece, c.rows - first);
      const auto piece = data::Bytes::part(c.foreign_rows, first * sizeof(T), count * sizeof(T));
      const T* rows = reinterpret_cast<const T*>(piece->data());
      if (rows[0] < last || !std::is_sorted(rows, rows + count)) return false;
      last = rows[count - 1];
    }
    return true;
  };
  return c.foreign_rows->size() == c.rows * 4 ? ascend(uint32_t{0}) : ascend(uint64_t{0});
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

// Its builtins, each once, but for those that read columns.
std::string builtins_of(const hir::Program& program) {
  const hir::Function& f = program.functions[program.main];
  std::vector<std::string> names;
  for (hir::StatementId id : f.blocks[f.body].statements) {
    hir::ExpressionId at = f.statements[id].value;
    while (!is_none(at) && f.expressions[at].kind == hir::Expression::cast)
      at = f.expressions[at].inner;
    if (is_none(at) || f.expressions[at].kind != hir::Expression::call) continue;
    const hir::Builtin b = f.expressions[at].callee.builtin_id;
    if (b == hir::Builtin::load_table || b == hir::Builtin::column_value || b == hir::Builtin::list)
      continue;
    std::string name = fmt::format("`{}`", hir::row(b).name);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

// The first row from `row` on before which the elements change: where a range may end.
uint64_t next_change(const Column& c, uint64_t row) {
  const uint64_t width = c.is_foreign_key ? c.foreign_rows->size() / c.rows : c.width;
  PieceReader elements(c.is_foreign_key ? c.foreign_rows : c.data, width);
  const std::byte* const at = elements.element(row - 1);
  const std::vector<std::byte> before(at, at + width);
  const auto same = [&](uint64_t i) { return std::memcmp(elements.element(i), before.data(), width) == 0; };
  uint64_t low = row, high = c.rows;  // ascending: equal elements are neighbours, and mostly few
  for (uint64_t step = 1; low + step < high; step *= 2) {
    if (!same(low + step)) {
      high = low + step;
      break;
    }
    low += step + 1;
  }
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
    expect_memory(v.size * sizeof(int64_t));
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
    charge_ = {};
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
    make_room(bytes_, v.size * data::plain_width(v.type));
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
      make_room(codes_, v.size);
      codes_.insert(codes_.end(), v.codes->begin(),
                    v.codes->begin() + static_cast<std::ptrdiff_t>(v.size));
      return;
    }
    make_room(plain_, codes_.size() + v.size);
    for (uint32_t code : codes_) plain_.push_back((*texts_)[code]);
    codes_.clear();
    for (uint64_t i = 0; i < v.size; ++i) plain_.push_back(v.text(i));
  }
  template <class T>
  void make_room(std::vector<T>& of, uint64_t more) {
    if (of.size() + more <= of.capacity()) return;
    const uint64_t elements = std::max<uint64_t>(of.size() + more, 2 * of.capacity());
    expect_memory(elements * sizeof(T));
    charge_ = MemoryCharge(elements * sizeof(T));
    of.reserve(elements);
  }

  MemoryCharge charge_;
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

// The ways, in this order: by ranges of each table, the largest first; by keys of each; in two. Of
// what comes after ranges by keys first: by ranges it has been cut once.
Result<void> Stream::cut(Node& node, const data::Tables& tables, const Error& full,
                         Timings& timings) {
  const EngineOptions& options = node.plan->state_->options;
  std::string reasons;
  node.full = full;
  node.whole = true;
  for (auto* part : {&node.before, &node.range, &node.after}) part->reset();
  node.merges.clear();
  ASSIGN_OR_RETURN(const std::vector<Candidate> all,
                   candidates(node.compiled->program, tables,
                              options.range_rows ? options.range_rows : node.least()));
  const std::string prefix = fmt::format("@{}.", ++programs_);
  const auto refused = [&](const std::string& how, const std::string& why) {
    reasons += fmt::format("{} {}: {}", reasons.empty() ? "; it does not run" : ", nor", how, why);
  };
  const bool keys_first = node.of_ranges || options.ranges_by_keys;
  for (; node.way < 2 * all.size(); ++node.way) {
    if (node.depth >= deepest || options.in_two) continue;
    const bool by_keys = (node.way < all.size()) == keys_first;
    const Candidate& c = all[node.way % all.size()];
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
    if (split.refused.empty()) {
      RETURN_IF_ERROR(take(node, std::move(split), timings));
      set_table(node, c.table, c.bytes / c.rows);
      return {};
    }
    refused(fmt::format("by {} of `{}`", by_keys ? "keys" : "ranges", c.table), split.refused);
  }
  if (node.way == 2 * all.size() && (!options.range_rows || options.in_two) &&
      !node.of_operation) {
    outliner::Split split = outliner::divide(node.compiled->program, prefix);
    if (split.refused.empty() || split.operation.kind != outliner::Split::Operation::none) {
      RETURN_IF_ERROR(take(node, std::move(split), timings));
      node.in_two = true;
      return {};
    }
    refused("in two", split.refused);
  }
  Error error = full;
  error.message += reasons;
  return error;
}

Result<void> Stream::take(Node& node, outliner::Split split, Timings& timings) {
  const auto make = [&](std::unique_ptr<Node>& part, const char* name,
                        hir::Program& program) -> Result<void> {
    if (is_none(program.main)) return {};
    ASSIGN_OR_RETURN(part, compile(node, name, std::move(program), timings));
    return {};
  };
  RETURN_IF_ERROR(make(node.before, "before", split.before));
  RETURN_IF_ERROR(make(node.range, "range", split.range));
  RETURN_IF_ERROR(make(node.after, "after", split.after));
  for (outliner::Split::Merge& merge : split.merges) {
    ASSIGN_OR_RETURN(auto made, compile(node, "merge", std::move(merge.program), timings));
    node.merges.push_back(std::move(made));
  }
  if (split.operation.kind != outliner::Split::Operation::none) {
    if (node.range) node.range->of_operation = true;
  } else if (node.range) {
    for (Node* part : {node.before.get(), node.range.get(), node.after.get()})
      if (part) ++part->depth;
    node.after->of_ranges = true;
  }
  node.whole = false;
  node.in_two = false;
  node.split = std::move(split);
  return {};
}

void Stream::set_table(Node& node, const std::string& table, uint64_t row_bytes) {
  node.table = table;
  const uint64_t memory = most_of_memory();
  const uint64_t asked = node.plan->state_->options.range_rows;
  node.range_rows = asked ? asked
                          : std::clamp<uint64_t>(memory / range_of_memory /
                                                     std::max<uint64_t>(1, row_bytes),
                                                 node.least(), longest_range);
}

uint64_t Stream::Node::least() const { return of_operation ? least_to_join : least_rows; }

Result<std::unique_ptr<Stream::Node>> Stream::compile(const Node& parent, std::string name,
                                                      hir::Program program, Timings& timings) {
  auto node = std::make_unique<Node>();
  node->name = parent.name.empty() ? std::move(name) : parent.name + "/" + name;
  node->depth = parent.depth;
  node->of_ranges = parent.of_ranges;
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
  if (memory_available() < memory_of_host() / short_of_host) (void)state_.give_back_host();
  fallbacks_.clear();
  host_work_.clear();
  texts_walked_ = 0;
  given_up_ = false;
  give_back(root_);
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

// What the programs of a node keep on the device between runs: there may be many of them.
void Stream::give_back(Node& node) {
  node.plan->state_->give_back();
  for (Node* part : {node.before.get(), node.range.get(), node.after.get()})
    if (part) give_back(*part);
  for (const auto& merge : node.merges) give_back(*merge);
}

Result<std::vector<Value>> Stream::run(Node& node, const data::Tables& tables, Timings& timings) {
  auto results = run_on_device(node, tables, timings);
  give_back(node);
  if (results || results.error().cause != Cause::device_full) return results;
  node.plan->state_->tables = &tables;
  given_up_ = !node.plan->state_->options.allow_fallback;
  return run_on_host(*node.plan->state_, results.error(), timings, nullptr, &fallbacks_);
}

Result<std::vector<Value>> run_on_host(const Engine::Plan::State& plan, const Error& full,
                                       Timings& timings, std::string* printed,
                                       std::vector<std::string>* fallbacks) {
  if (full.cause != Cause::device_full || !plan.options.allow_fallback) return full;
  if (full.fault == Fault::input) return full;  // a vector is too long there, too
  auto scope = timings.measure(Phase::cpu, "reference interpreter");
  auto results = errors_of([&] {
    return reference::run(plan.compiled.program, *plan.tables, plan.sources, printed);
  });
  if (results && fallbacks) fallbacks->push_back(whole_program_fallback(full.message));
  return results;
}

Result<std::vector<Value>> Stream::run_on_device(Node& node, const data::Tables& tables,
                                                 Timings& timings) {
  if (node.whole) {
    // To be in two though it fits: where it can be.
    const bool asked = node.plan->state_->options.in_two && !node.of_operation;
    auto results = asked ? Result<Values>(Error{Fault::usage, "it is to be in two"})
                         : run_whole(node, tables, timings);
    give_back(node);
    if (results || (results.error().cause != Cause::device_full && !asked)) return results;
    if (auto made = cut(node, tables, results.error(), timings); !made)
      return asked ? run_whole(node, tables, timings) : Result<Values>(made.error());
  }
  for (;;) {
    auto results = run_cut(node, tables, timings);
    if (!results && (results.error().cause != Cause::device_full || given_up_))
      return results.error();
    if (results && *results) return **std::move(results);
    Error full = node.full;
    if (results) {
      CHECK(node.float_sums);
      node.float_sums = false;
    } else {
      full = results.error();
      ++node.way;
    }
    if (auto again = cut(node, tables, full, timings); !again) {
      // Ranges were asked for, and it may well fit.
      if (full.fault == Fault::usage) return run_whole(node, tables, timings);
      return again.error();
    }
  }
}

Result<std::vector<Value>> Stream::move(Node& node, const data::Tables& tables, Timings& timings) {
  auto scope = timings.measure(Phase::cpu, "elements moved in host memory");
  if (const std::string moved = builtins_of(node.compiled->program); !moved.empty())
    worked_on_host("elements moved: " + moved);
  return errors_of([&] {
    return reference::run(node.compiled->program, tables, node.plan->state_->sources, nullptr);
  });
}

Result<std::vector<Value>> Stream::run_whole(Node& node, const data::Tables& tables,
                                             Timings& timings) {
  node.plan->state_->tables = &tables;
  node.plan->state_->foresees = false;
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
    known->floor_bytes = std::max(known->floor_bytes, r.floor_bytes);
    known->all_floor_bytes += r.all_floor_bytes;
  }
  for (std::string& f : fallbacks)
    if (std::find(fallbacks_.begin(), fallbacks_.end(), f) == fallbacks_.end())
      fallbacks_.push_back(std::move(f));
  return results;
}

// Their memory on the device goes; of columns of their own also what was made of their texts.
void Stream::forget(const std::vector<RangeTables::Gone>& columns) {
  for (const auto& [column, texts] : columns) {
    state_.forget(column.get());
    if (texts) state_.forget_domain(domain_key(*column));
  }
}

void Stream::worked_on_host(std::string what) {
  if (std::find(host_work_.begin(), host_work_.end(), what) == host_work_.end())
    host_work_.push_back(std::move(what));
}

uint64_t Stream::most_of_memory() const {
  return std::min(state_.memory.limit(), state_.device.info().memory_bytes);
}
uint64_t Stream::most_text_bytes() const { return most_of_memory() / range_of_memory; }

// Tables with columns of their own, of which nothing stays with the engine, however a run ends.
struct Stream::OwnTables {
  OwnTables(Stream& s, const data::Tables& all)
      : stream(s), tables(all, s.most_text_bytes()) {}
  ~OwnTables() {
    stream.forget(tables.set_range("", 0, 0));
    stream.forget(tables.added());
  }
  OwnTables(const OwnTables&) = delete;
  Stream& stream;
  RangeTables tables;
};

Result<std::optional<Stream::Values>> Stream::run_cut(Node& node, const data::Tables& tables,
                                                      Timings& timings) {
  using Operation = outliner::Split::Operation;
  if (node.in_two && node.split.operation.kind == Operation::moves) {
    ASSIGN_OR_RETURN(Values moved, move(node, tables, timings));
    return std::optional(std::move(moved));
  }
  OwnTables all(*this, tables);
  if (node.in_two && node.split.operation.kind != Operation::none) {
    RETURN_IF_ERROR(run_operation(node, tables, all.tables, timings));
  } else if (node.in_two) {
    ASSIGN_OR_RETURN(const Values first, run(*node.before, tables, timings));
    for (size_t i = 0; i < first.size(); ++i) {
      const outliner::SplitResult& r = node.split.before_results[i];
      ASSIGN_OR_RETURN(auto column, column_of(first[i]));
      all.tables.add(r.table, r.column, std::move(column));
    }
  } else {
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
  // `after` may be many programs deep, and needs nothing of theirs.
  if (node.range) give_back(*node.range);
  for (const auto& merge : node.merges) give_back(*merge);
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

// --- Single operations ---

struct Stream::Sides {
  std::array<Values, 2> values;
  std::array<std::vector<RangeTables::ColumnPtr>, 2> columns;
  uint64_t rows(size_t side) const {
    return values[side].empty() ? 0 : values[side][0].size;
  }
};

Result<void> Stream::run_operation(Node& node, const data::Tables& tables, RangeTables& all,
                                   Timings& timings) {
  using Operation = outliner::Split::Operation;
  const Operation& operation = node.split.operation;
  ASSIGN_OR_RETURN(Values given, move(*node.before, tables, timings));
  Sides sides;
  auto at = given.begin();
  for (size_t side : {0, 1})
    for (size_t k = 0; k < operation.names[side].size(); ++k, ++at) {
      if (!sides.values[side].empty() && at->size != sides.rows(side)) {
        Error error = node.full;  // the statement's error, or one value for all
        error.message += "; its vectors differ in length";
        return error;
      }
      ASSIGN_OR_RETURN(sides.columns[side].emplace_back(), column_of(*at));
      sides.values[side].push_back(std::move(*at));
    }
  const auto add = [&](const outliner::SplitResult& r, const Value& v) -> Result<void> {
    ASSIGN_OR_RETURN(auto column, column_of(v));
    all.add(r.table, r.column, std::move(column));
    return {};
  };
  for (const outliner::SplitResult& r : node.split.before_results)
    RETURN_IF_ERROR(add(r, *at++));
  auto results = operation.kind == Operation::scans  ? run_scan(node, tables, sides, timings)
                 : operation.kind == Operation::zips ? run_zip(node, tables, sides, timings)
                                                     : run_parts(node, tables, sides, timings);
  if (!results) return results.error();
  for (size_t i = 0; i < operation.cells.size(); ++i)
    RETURN_IF_ERROR(add(node.split.range_results[i], (*results)[operation.cells[i]]));
  return {};
}

// The results of parts, as they are of all rows.
class Stream::Joined {
 public:
  Joined(hir::Builtin b, uint64_t x_rows, uint64_t y_rows) : builtin_(b), x_rows_(x_rows) {
    if (b == hir::Builtin::join_index)
      begins_.resize(y_rows + 1);
    else if (b == hir::Builtin::member)
      found_.resize(y_rows);
    else
      first_.resize(y_rows, static_cast<int64_t>(x_rows));
  }
  // What a part gives whose rows are these.
  Result<void> add(const Values& results, std::span<const uint32_t> x,
                   std::span<const uint32_t> y) {
    const Value& v = results[0];
    if (builtin_ == hir::Builtin::join_index) {
      if (pairs_.size() + v.size > data::longest_vector)
        return input_error("`join_index` gives more than the {} pairs that one vector may have",
                           data::longest_vector);
      if (pairs_.size() + v.size > pairs_.capacity()) {
        const uint64_t pairs = std::max<uint64_t>(pairs_.size() + v.size, 2 * pairs_.capacity());
        expect_memory(pairs * sizeof(pairs_[0]));
        pairs_.reserve(pairs);
      }
      for (uint64_t i = 0; i < v.size; ++i) {
        const uint32_t row = y[static_cast<size_t>(results[1].as<int64_t>()[i])];
        pairs_.push_back({x[static_cast<size_t>(v.as<int64_t>()[i])], row});
        ++begins_[row + 1];
      }
    } else if (builtin_ == hir::Builtin::member) {
      for (uint64_t i = 0; i < v.size; ++i) found_[y[i]] |= v.as<uint8_t>()[i];
    } else {
      for (uint64_t i = 0; i < v.size; ++i)
        if (const auto row = static_cast<uint64_t>(v.as<int64_t>()[i]); row < x.size())
          first_[y[i]] = std::min<int64_t>(first_[y[i]], x[row]);
    }
    return {};
  }
  // Pairs ascend by the row of y, then of x: those of one y are in the order that they came in.
  Values take() {
    using hir::BasicType;
    if (builtin_ == hir::Builtin::member)
      return {data::vector_of<uint8_t>(BasicType::boolean, std::span<const uint8_t>(found_))};
    if (builtin_ != hir::Builtin::join_index)
      return {data::vector_of<int64_t>(BasicType::i64, std::span<const int64_t>(first_))};
    for (size_t i = 1; i < begins_.size(); ++i) begins_[i] += begins_[i - 1];
    expect_memory(2 * pairs_.size() * sizeof(int64_t));
    std::vector<int64_t> left(pairs_.size()), right(pairs_.size());
    for (const auto& [x, y] : pairs_) {
      const uint64_t at = begins_[y]++;
      left[at] = x;
      right[at] = y;
    }
    return {data::vector_of<int64_t>(BasicType::i64, std::span<const int64_t>(left)),
            data::vector_of<int64_t>(BasicType::i64, std::span<const int64_t>(right))};
  }

 private:
  hir::Builtin builtin_;
  uint64_t x_rows_;
  std::vector<std::pair<uint32_t, uint32_t>> pairs_;
  std::vector<uint64_t> begins_;  // of the pairs of each row of y
  std::vector<uint8_t> found_;
  std::vector<int64_t> first_;
};

// x and y by the same hash; of a part of x that does not fit beside ranges of y pieces.
Result<Stream::Values> Stream::run_parts(Node& node, const data::Tables& tables,
                                         const Sides& sides, Timings& timings) {
  const outliner::Split::Operation& operation = node.split.operation;
  const std::array<uint64_t, 2> rows{sides.rows(0), sides.rows(1)};
  std::array<Values, 2> keys;
  std::vector<hir::BasicType> as;
  for (size_t k : operation.equal) {
    const Value &x = sides.values[0][k], &y = sides.values[1][k];
    if (x.type == hir::BasicType::complex || y.type == hir::BasicType::complex) continue;
    keys[0].push_back(x);
    keys[1].push_back(y);
    as.push_back(hir::widest(x.type, y.type));
  }
  uint64_t row_bytes = bytes_beside_a_key;
  for (const RangeTables::ColumnPtr& c : sides.columns[0]) row_bytes += width_on_device(*c);
  const uint64_t memory = most_of_memory();
  unsigned bits = node.plan->state_->options.in_two ? 2 : 0;
  while (bits < most_part_bits && (rows[0] * row_bytes >> bits) > memory / range_of_memory &&
         (rows[0] >> bits) > least_rows)
    ++bits;
  std::optional<RowParts> x_parts, y_parts;
  {
    auto scope = timings.measure(Phase::cpu, "rows put into parts");
    worked_on_host(fmt::format("rows put into parts, and results together: `{}`",
                               hir::row(operation.builtin).name));
    x_parts.emplace(keys[0], as, rows[0], bits);
    y_parts.emplace(keys[1], as, rows[1], bits);
  }
  Joined joined(operation.builtin, rows[0], rows[1]);
  uint64_t piece = std::max<uint64_t>(rows[0], 1);
  for (size_t part = 0; part < size_t{1} << bits; ++part) {
    const std::span<const uint32_t> y = y_parts->rows(part);
    std::span<const uint32_t> x = x_parts->rows(part);
    OwnTables own(*this, tables);
    const auto add = [&](size_t side, std::span<const uint32_t> of) {
      for (size_t k = 0; k < sides.columns[side].size(); ++k)
        if (auto gone = own.tables.add(operation.sides[side], operation.names[side][k],
                                       with_own_texts(pick_rows(*sides.columns[side][k], of),
                                                      most_text_bytes())))
          forget({{gone, true}});
    };
    if (x.empty() || y.empty()) continue;
    add(1, y);
    while (!x.empty()) {
      const std::span<const uint32_t> some = x.first(std::min<uint64_t>(piece, x.size()));
      add(0, some);
      auto results = run_on_device(*node.range, own.tables, timings);
      if (!results) {
        if (results.error().cause != Cause::device_full || some.size() <= least_to_join)
          return results.error();
        piece = std::max<uint64_t>(least_to_join, some.size() / 2);
        node.range->whole = true;  // and then by ranges of y
        node.range->way = 0;
        continue;
      }
      RETURN_IF_ERROR(joined.add(*results, some, y));
      x = x.subspan(some.size());
    }
  }
  return joined.take();
}

// The operands become columns of one table, whose rows can be cut or ordered.
Result<Stream::Values> Stream::run_zip(Node& node, const data::Tables& tables, const Sides& sides,
                                       Timings& timings) {
  const outliner::Split::Operation& operation = node.split.operation;
  OwnTables own(*this, tables);
  for (size_t side : {0, 1})
    for (size_t k = 0; k < sides.columns[side].size(); ++k)
      own.tables.add(operation.sides[side], operation.names[side][k], sides.columns[side][k]);
  return run(*node.range, own.tables, timings);
}

namespace {

// -0.0 is less than 0.0, as on devices. Running values have no NaN.
template <class T>
bool is_less(T x, T y) {
  if constexpr (std::is_floating_point_v<T>)
    if (x == y) return std::signbit(x) && !std::signbit(y);
  return x < y;
}

// The rows up to the first start go on with what is before them.
template <class T>
void carry_on(Value& v, const T& before, const uint8_t* starts, hir::Builtin how) {
  auto* x = reinterpret_cast<T*>(const_cast<std::byte*>(v.bytes->data()));
  for (uint64_t i = 0; i < v.size && !starts[i]; ++i) {
    if (how == hir::Builtin::scan_sum) {
      if constexpr (std::is_integral_v<T>)  // sums wrap
        x[i] = static_cast<T>(static_cast<std::make_unsigned_t<T>>(x[i]) +
                              static_cast<std::make_unsigned_t<T>>(before));
    } else if (how == hir::Builtin::scan_min ? is_less(before, x[i]) : is_less(x[i], before)) {
      x[i] = before;
    }
  }
}

// Where running sums begin anew, and every 32 rows besides.
Value with_more_starts(const Value& starts) {
  std::vector<uint8_t> more(starts.as<uint8_t>(), starts.as<uint8_t>() + starts.size);
  for (size_t i = 0; i < more.size(); i += scans::lanes) more[i] = 1;
  return data::vector_of<uint8_t>(hir::BasicType::boolean, std::span<const uint8_t>(more));
}

}  // namespace

Result<Stream::Values> Stream::run_scan(Node& node, const data::Tables& tables,
                                        const Sides& sides, Timings& timings) {
  const outliner::Split::Operation& operation = node.split.operation;
  const uint64_t total = sides.rows(0);
  const uint8_t* starts = sides.values[0][1].as<uint8_t>();
  const bool adds_floats = operation.builtin == hir::Builtin::scan_sum &&
                           sides.values[0][0].type == hir::BasicType::f64;
  worked_on_host(fmt::format("{}: `{}`",
                             adds_floats ? "sums of 32 rows added up"
                                         : "values before a range carried on",
                             hir::row(operation.builtin).name));
  OwnTables own(*this, tables);
  own.tables.add(operation.sides[0], operation.names[0][0], sides.columns[0][0]);
  auto starts_column = Result<RangeTables::ColumnPtr>(sides.columns[0][1]);
  if (adds_floats) starts_column = column_of(with_more_starts(sides.values[0][1]));
  if (!starts_column) return starts_column.error();
  own.tables.add(operation.sides[0], operation.names[0][1], *starts_column);
  static_assert(least_rows % scans::lanes == 0);
  const auto whole_lanes = [](uint64_t n) {
    return std::max(least_rows, n / scans::lanes * scans::lanes);
  };
  const uint64_t memory = most_of_memory();
  uint64_t rows = std::clamp<uint64_t>(memory / range_of_memory / bytes_beside_a_key, least_rows,
                                       longest_range);
  rows = node.plan->state_->options.in_two ? least_rows : whole_lanes(rows);
  Pieces pieces;
  Value last;  // the running value so far
  uint64_t row = 0;
  do {
    const uint64_t end = row + std::min(rows, total - row);
    forget(own.tables.set_range(operation.sides[0], row, end - row));
    auto results = run_whole(*node.range, own.tables, timings);
    if (!results) {
      if (results.error().cause != Cause::device_full || rows <= least_rows)
        return results.error();
      rows = whole_lanes(rows / 2);
      continue;
    }
    Value& made = (*results)[0];
    if (row && made.size && !adds_floats) {
      // Of its own: results may share what the engine keeps.
      made = data::vector_from_bytes(
          made.type, made.size,
          std::vector<std::byte>(made.bytes->data(),
                                 made.bytes->data() + made.size * data::plain_width(made.type)));
      const auto carry = [&](auto zero) {
        using T = decltype(zero);
        carry_on<T>(made, last.as<T>()[last.size - 1], starts + row, operation.builtin);
      };
      if (made.type == hir::BasicType::f32)
        carry(float{});
      else if (made.type == hir::BasicType::f64)
        carry(double{});
      else switch (data::plain_width(made.type)) {
        case 1: carry(int8_t{}); break;
        case 2: carry(int16_t{}); break;
        case 4: carry(int32_t{}); break;
        case 8: carry(int64_t{}); break;
        default: return Error{Fault::internal, "running values of an unknown width"};
      }
    }
    pieces.add(made, 0);
    last = made;
    row = end;
  } while (row < total);
  Value all = pieces.take();
  if (adds_floats) {
    auto scope = timings.measure(Phase::cpu, "sums of 32 rows added up");
    auto* sums = reinterpret_cast<double*>(const_cast<std::byte*>(all.bytes->data()));
    running_sums(std::span(sums, all.size), std::span(starts, all.size), false);
  }
  return Values{std::move(all)};
}

// --- Ranges ---

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
    if (auto gone = tables.add(r.table, r.column, std::move(column))) forget({{gone, true}});
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
      keys.back().column = with_bytes_here(keys.back().column);
    }
    auto scope = timings.measure(Phase::cpu, "order of rows");
    worked_on_host(fmt::format("rows of `{}` put in the order of keys", node.table));
    order.emplace(keys);
    tables.set_order(order->rows());
  }
  uint64_t row = 0;
  do {
    uint64_t end = row + std::min(node.range_rows, total - row);
    if (cut && end < total) end = next_change(*cut, end);
    if (order && end < total) end = order->next_change(end);
    forget(tables.set_range(node.table, row, end - row));
    auto results = run_whole(*node.range, tables, timings);
    if (!results) {
      if (results.error().cause != Cause::device_full) return results.error();
      if (node.range_rows <= node.least()) {
        Error error = results.error();
        error.message += fmt::format("; a range of {} rows of `{}` is as small as one gets",
                                     end - row, node.table);
        return error;
      }
      node.range_rows = std::max(node.least(), std::min(node.range_rows, end - row) / 2);
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
