// --prove: the results of a run against those of other ways to them.
//
// 1. A second path on the same device: one kernel per statement where the first had fused ones (or the
//    other way round), at -O0 where the first was optimised, over columns that are sent again, in
//    plain form, with no look-ups or groups in kernels, orders of which all rows are sorted, and
//    the other form of groups and joins. Nothing of the first run is used again but the typed
//    program's text: the engine is another one, and the code cache is left out. Results are compared
//    bit by bit, rows in their order: sums are exact, and orders, groups and joins have one answer
//    (docs/horseir.md). Only groups of `--group hash` come in any order.
// 2. Orders, groups and joins of the second path are held to what must be true of them
//    (runtime/reference/invariants.h), for their kernels may be those of the first.
// 3. The reference interpreter, over all rows where that is quick; else both it and the first run's
//    code over a sample of the largest table: its first rows, some from the middle and its last ones,
//    a row more than whole tiles.
//
// A run that the program ends, by a requirement or by numbers that are too large, must end on the other ways by such an error, too; by
// which of several statements is open. What was the same in both paths is no proof, and said. All begin with the same HorseIR: that SQL
// means this is not checked. Cost: that of the second path, unfused and slow, and of the interpreter.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <set>

#include "assembler/cubin/cubin.h"
#include "frontend/builtins.h"
#include "runtime/memory/result_memory.h"
#include "runtime/print_sql.h"
#include "runtime/session/session.h"
#include "runtime/stream/range_tables.h"

namespace rndn::runtime {

namespace {

class Clock {
 public:
  std::string text() const {
    return fmt::format("{:.2f} s", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count());
  }

 private:
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

std::string count_of(uint64_t n, const char* what) { return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s"); }

// --- Comparing results ---

using Grids = std::vector<Grid>;

Result<Grids> grids_of(const std::vector<data::Value>& results, const Session::Outcome& like) {
  Grids grids;
  for (const data::Value& result : results) {
    if (like.is_sql && like.columns.size()) {
      ASSIGN_OR_RETURN(grids.emplace_back(), sql_grid(result, like.columns));
    } else {
      ASSIGN_OR_RETURN(grids.emplace_back(), to_grid(result));
    }
  }
  return grids;
}

uint64_t rows_of(const Grids& grids) {
  uint64_t rows = 0;
  for (const Grid& grid : grids) rows += grid.rows;
  return rows;
}

bool is_null(const Grid& grid, size_t k, uint64_t i) {
  return !grid.sql.empty() && grid.sql[k].valid && !grid.sql[k].valid->as<uint8_t>()[i];
}

std::string cell_text(const Grid& grid, size_t k, uint64_t i) {
  if (is_null(grid, k, i)) return "NULL";
  return grid.sql.empty() ? element_text(grid.columns[k], i, true) : sql_text(grid.sql[k].type, grid.columns[k], i);
}

template <class T>
bool same_float(const std::byte* x, const std::byte* y, double relative) {
  T a, b;
  std::memcpy(&a, x, sizeof a);
  std::memcpy(&b, y, sizeof b);
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (relative == 0) return std::memcmp(x, y, sizeof a) == 0;  // 0 is not -0
  return std::fabs(double{a} - double{b}) <= relative * std::max(std::fabs(double{a}), std::fabs(double{b}));
}

// Bit by bit, but for NaN; with `relative` floats so near are the same.
bool same_cell(const Grid& a, const Grid& b, size_t k, uint64_t i, double relative) {
  const bool null = is_null(a, k, i);
  if (null != is_null(b, k, i)) return false;
  const data::Value &x = a.columns[k], &y = b.columns[k];
  if (null) return true;
  if (x.is_text_vector()) return x.text(i) == y.text(i);
  const uint32_t width = data::plain_width(x.type);
  const std::byte *p = x.bytes->data() + i * width, *q = y.bytes->data() + i * width;
  if (std::memcmp(p, q, width) == 0) return true;
  if (x.type == hir::BasicType::f32) return same_float<float>(p, q, relative == 0 ? 0 : std::max(relative, 1e-6));
  if (x.type == hir::BasicType::f64) return same_float<double>(p, q, relative);
  if (x.type == hir::BasicType::complex)
    return same_float<double>(p, q, relative) && same_float<double>(p + 8, q + 8, relative);
  return false;
}

// How `a` differs from `b`, which `other` has made; empty: not at all. Where the order of rows is free,
// rows are put in that of their texts first.
std::string difference(const Grids& a, const Grids& b, std::string_view other, bool ordered, double relative) {
  if (a.size() != b.size()) return fmt::format("{}, and {} by {}", count_of(a.size(), "result"), b.size(), other);
  for (size_t g = 0; g < a.size(); ++g) {
    const Grid &x = a[g], &y = b[g];
    const std::string where = a.size() > 1 ? fmt::format("result {}: ", g + 1) : "";
    if (x.names != y.names)
      return fmt::format("{}columns {}, and {} by {}", where, fmt::join(x.names, ", "), fmt::join(y.names, ", "),
                         other);
    if (x.rows != y.rows) return fmt::format("{}{}, and {} by {}", where, count_of(x.rows, "row"), y.rows, other);
    for (size_t k = 0; k < x.columns.size(); ++k)
      if (x.columns[k].type != y.columns[k].type)
        return fmt::format("{}column `{}` is {}, and {} by {}", where, x.names[k],
                           hir::basic_type_name(x.columns[k].type), hir::basic_type_name(y.columns[k].type), other);
    std::string first;
    CancelTicker tick;
    for (uint64_t i = 0; i < x.rows && first.empty(); ++i)
      for (size_t k = 0; k < x.columns.size() && first.empty(); ++k) {
        tick();
        if (!same_cell(x, y, k, i, relative))
          first = fmt::format("{}row {}, column `{}`: {}, and {} by {}", where, i + 1, x.names[k], cell_text(x, k, i),
                              cell_text(y, k, i), other);
      }
    if (first.empty()) continue;
    if (ordered) return first;
    std::vector<std::string> rows[2];
    for (const Grid* grid : {&x, &y})
      for (uint64_t i = 0; i < grid->rows; ++i) {
        std::string row;
        for (size_t k = 0; k < grid->columns.size(); ++k) tick(), row += cell_text(*grid, k, i) + '\n';
        rows[grid == &y].push_back(std::move(row));
      }
    std::sort(rows[0].begin(), rows[0].end());
    std::sort(rows[1].begin(), rows[1].end());
    if (rows[0] != rows[1]) return first;
  }
  return "";
}

// --- What the second path is ---

void take_other_path(CompileOptions& compile, EngineOptions& engine) {
  const bool fuse = compile.outline == outliner::Mode::none;
  compile.outline = fuse ? outliner::Mode::full : outliner::Mode::none;
  compile.fuse_operators = compile.fuse_joins = compile.fuse_groups = fuse;
  compile.level = compile.level == 0 ? 3 : 0;
  compile.backend = {};
  compile.numbers_as_parameters = false;
  compile.code_cache = nullptr;
  compile.workspace = nullptr;
  compile.forecast = nullptr;
  engine.measure_kernels = engine.graphs = false;
  engine.bounded_rows = UINT64_MAX;
  engine.allow_fallback = true;
  engine.encode = engine.encode == Encode::plain ? Encode::narrow : Encode::plain;
  engine.like = engine.like == EngineOptions::Like::cpu ? EngineOptions::Like::gpu : EngineOptions::Like::cpu;
  using operators::Options;
  Options& o = engine.operators;
  o.ordered = true;
  o.sort = o.sort == Options::Sort::radix ? Options::Sort::bitonic : Options::Sort::radix;
  o.top = o.top == Options::Top::sort ? Options::Top::select : Options::Top::sort;
  o.group = o.group == Options::Group::hash ? Options::Group::sort : Options::Group::hash;
  o.join = o.join == Options::Join::hash ? Options::Join::automatic : Options::Join::hash;
  o.member = o.member == Options::Member::hash ? Options::Member::automatic : Options::Member::hash;
}

// Machine code of those kernels of the program; `unknown`: how many have none there, as of a module that the driver
// has compiled, and of runs by ranges.
struct Codes {
  std::set<cubin::Bytes> known;
  uint64_t unknown = 0;
};
Codes codes_of(const Compiled& compiled, const std::vector<std::string>& kernels) {
  Codes codes;
  codes.unknown = kernels.size();
  if (compiled.cubin.empty()) return codes;
  if (auto image = cubin::read(compiled.cubin))
    for (cubin::Kernel& kernel : image->kernels)
      if (std::find(kernels.begin(), kernels.end(), kernel.name) != kernels.end()) {
        codes.known.insert(std::move(kernel.code));
        --codes.unknown;
      }
  return codes;
}

// --- The sample for the reference interpreter ---

constexpr uint64_t most_sampled = (uint64_t{1} << 17) + 1;

// Row numbers: as many from the front, the middle and the end.
std::shared_ptr<const std::vector<uint32_t>> sample_of(uint64_t rows) {
  const uint64_t wanted = std::min(most_sampled, rows / 2 | 1), third = wanted / 3;
  auto picked = std::make_shared<std::vector<uint32_t>>();
  const auto add = [&](uint64_t first, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) picked->push_back(static_cast<uint32_t>(first + i));
  };
  add(0, third);
  add((rows - third) / 2, third);
  add(rows - (wanted - 2 * third), wanted - 2 * third);
  return picked;
}

// Does the program call a function of texts? What the host does of these is one code on every path.
bool calls_text(const hir::Program& program) {
  for (const hir::Function& f : program.functions)
    for (const hir::Expression& e : f.expressions)
      if (e.kind == hir::Expression::call && e.callee.kind == hir::FunctionRef::builtin) {
        const hir::Operator o = hir::row(e.callee.builtin_id).operation;
        if (o == hir::Operator::like || o == hir::Operator::sub_string || o == hir::Operator::text_map) return true;
      }
  return false;
}

// What the interpreter would have to read.
struct Reads {
  uint64_t elements = 0;
  std::string sampled;  // the table of most rows that no row number of another column means; empty: none
  uint64_t sampled_rows = 0;
  uint64_t sampled_elements = 0;
};
Reads reads_of(const hir::Program& program, const data::Tables& tables) {
  Reads reads;
  std::set<std::string> referenced;
  std::map<std::string, std::pair<uint64_t, uint64_t>> sizes;
  for (const auto& [table, names] : data::columns_read(program).tables) {
    const auto rows = tables.rows(table);
    if (!rows) continue;
    for (const std::string& name : names)
      if (const auto column = tables.column(table, name); column && (*column)->is_foreign_key)
        referenced.insert((*column)->foreign_table);
    reads.elements += *rows * names.size();
    sizes[table] = {*rows, *rows * names.size()};
  }
  for (const auto& [table, size] : sizes) {
    if (referenced.contains(table) || size.first <= reads.sampled_rows) continue;
    reads.sampled = table;
    std::tie(reads.sampled_rows, reads.sampled_elements) = size;
  }
  return reads;
}

}  // namespace

Result<void> Session::proven(const std::string& name, const Outcome& outcome) {
  if (outcome.differences.empty()) return {};
  return Error{Fault::internal, fmt::format("prove {}: {}", name, fmt::join(outcome.differences, "; "))}.as(
      Cause::finding);
}

// The checks of one outcome; each of its steps adds to what is told, found and left unchecked.
class Session::Proof {
 public:
  Proof(Session& session, const std::string& name, const RunOptions& options, Outcome& outcome)
      : session_(session),
        name_(name),
        options_(options),
        outcome_(outcome),
        ready_(*session.ready_.back()),
        tables_(ready_.tables ? *ready_.tables : *session.tables_),
        relative_(calls_math(ready_.compiled.program) ? 1e-9 : 0) {
    using Options = operators::Options;
    const Options& asked = options.engine.operators;
    ordered_ = asked.group != Options::Group::hash || asked.ordered;
  }

  Result<void> make() {
    if (ready_.plan->device_kernels() == 0 && outcome_.fallbacks > 0) {
      tell("nothing is checked: the reference interpreter ran it, and there is no second path to that");
      return {};
    }
    ASSIGN_OR_RETURN(first_, grids_of(outcome_.results, outcome_));
    RETURN_IF_ERROR(take_second_path());
    const Reads reads = reads_of(ready_.compiled.program, tables_);
    if (reads.elements <= options_.prove_elements)
      RETURN_IF_ERROR(interpret_all());
    else if (reads.sampled.empty() || reads.elements - reads.sampled_elements > options_.prove_elements)
      leave(fmt::format("the reference interpreter, for which {} elements of columns are too many", reads.elements));
    else
      RETURN_IF_ERROR(interpret_sample(reads));
    if (calls_text(ready_.compiled.program))
      leave("what the host does of functions of texts, on every path by one code");
    leave(outcome_.is_sql
              ? "what all of these begin with: the plan, its translation to HorseIR, and the data as they were read"
              : "what all of these begin with: the data as they were read");
    tell(fmt::format("not checked: {}", fmt::join(unchecked_, "; ")));
    if (is_different_) {
      const bool other = reference_ || second_;
      tell(fmt::format("the result is that of {}", reference_ ? "the reference interpreter"
                                                   : second_  ? "the second path"
                                                              : "the run"));
      if (other) outcome_.results = reference_ ? *std::move(reference_) : *std::move(second_);
    }
    return {};
  }

  // Of a run that the program has ended by that error: the other ways must end, too, be it by another statement's.
  Result<void> fail_too(const Error& error) {
    failure_ = &error;
    if (!ready_.plan || (ready_.plan->device_kernels() == 0 && !ready_.plan->fallbacks().empty())) {
      tell("nothing is checked: the reference interpreter ran it, and there is no second path to that");
      return {};
    }
    RETURN_IF_ERROR(take_second_path());
    const Reads reads = reads_of(ready_.compiled.program, tables_);
    if (reads.elements <= options_.prove_elements)
      RETURN_IF_ERROR(interpret_all());
    else
      leave(fmt::format("the reference interpreter, for which {} elements of columns are too many", reads.elements));
    if (!unchecked_.empty()) tell(fmt::format("not checked: {}", fmt::join(unchecked_, "; ")));
    return {};
  }

 private:
  using Values = std::vector<data::Value>;

  void tell(const std::string& line) {
    const std::string text = fmt::format("prove {}: {}\n", name_, line);
    options_.told_of_proof ? options_.told_of_proof(text) : session_.say(text);
  }
  // Of a run that has failed: what another way to it gave.
  void compare_failures(const std::string& way, const Result<Values>& ran) {
    if (ran)
      find(fmt::format("{}: a result, and the run fails: {}", way, failure_->message));
    else if (ran.error().fault == Fault::input)
      tell(fmt::format("{}: it fails, too: {}", way, ran.error().message));
    else
      find(fmt::format("{}: {}, and the run fails: {}", way, ran.error().message, failure_->message));
  }
  void leave(std::string what) { unchecked_.push_back(std::move(what)); }
  void find(std::string what) {
    tell("DIFFERENT: " + what);
    is_different_ = true;
    outcome_.differences.push_back(what);
    session_.differences_.push_back(std::move(what));
  }

  Result<void> take_second_path() {
    const Clock clock;
    CompileOptions compile_options = ready_.compiled.options;
    EngineOptions engine_options = options_.engine;
    take_other_path(compile_options, engine_options);
    OperatorChecks checks;
    engine_options.checks = &checks;
    Timings timings;
    DiagnosticSink sink;
    ASSIGN_OR_RETURN(device::Device * device, session_.choice_->open());
    const auto compiled = compile(ready_.file, session_.sources_, compile_options, sink, timings);
    if (!compiled && compiled.error().cause == Cause::cancelled) return compiled.error();
    if (!compiled) {
      find("second path: it does not compile: " + render(sink, session_.sources_) + compiled.error().message);
      return {};
    }
    std::vector<KernelReport> kernels;
    std::vector<std::string> fallbacks;
    Engine engine(*device, tables_, nullptr, session_.pool_.get());
    engine.limit_memory(session_.choice_->memory_limit());
    std::unique_ptr<Engine::Plan> plan;
    auto ran = errors_of([&]() -> Result<Values> {
      ASSIGN_OR_RETURN(plan, engine.plan(*compiled, session_.sources_, engine_options, timings, &tables_));
      fallbacks = plan->fallbacks();
      return engine.run(*plan, timings, nullptr, &kernels, &fallbacks);
    });
    if (!ran && ran.error().cause == Cause::cancelled) return ran.error();
    for (const std::string& f : fallbacks) leave(f + ", on the reference interpreter in the second path");
    if (failure_ && (ran || ran.error().fault != Fault::world)) {
      compare_failures("second path", ran);
    } else if (ran) {
      RETURN_IF_ERROR(compare_with_second(*ran, plan->compiled(), kernels, clock));
      second_ = *std::move(ran);
    } else if (ran.error().fault != Fault::world) {
      find("second path: " + ran.error().message);
    } else {
      leave("the second path, which failed: " + ran.error().message);
    }
    tell_of_operators(checks);
    return {};
  }

  Result<void> compare_with_second(const Values& results, const Compiled& compiled,
                                   const std::vector<KernelReport>& kernels, const Clock& clock) {
    std::vector<std::string> outlined;
    std::set<std::string> library, both;
    for (const KernelReport& k : kernels)
      if (k.launches && k.kind == "outlined")
        outlined.push_back(k.name);
      else if (k.launches)
        library.insert(k.name);
    const Codes firsts = codes_of(ready_.plan->compiled(), outcome_.outlined), seconds = codes_of(compiled, outlined);
    const auto own = static_cast<uint64_t>(std::count_if(
        seconds.known.begin(), seconds.known.end(), [&](const auto& code) { return !firsts.known.contains(code); }));
    for (const std::string& kernel : outcome_.library)
      if (library.contains(kernel)) both.insert(kernel);
    if (own < seconds.known.size())
      leave(fmt::format("{} of the program that both paths ran", count_of(seconds.known.size() - own, "kernel")));
    if (seconds.unknown)
      leave(fmt::format("whether {} of the second path, whose code is not at hand, are others",
                        count_of(seconds.unknown, "kernel")));
    if (!both.empty()) {
      constexpr size_t most_named = 5;
      std::vector<std::string> named(
          both.begin(), std::next(both.begin(), static_cast<ptrdiff_t>(std::min(both.size(), most_named))));
      if (both.size() > most_named)
        named.push_back(fmt::format("{} more kernels of operators", both.size() - most_named));
      leave(fmt::format("what {} do alike in both paths and no check of an operator sees", fmt::join(named, ", ")));
    }
    std::string how = fmt::format("second path: {} of -O{}, {}", count_of(own, "other kernel"), compiled.level,
                                  compiled.options.outline == outliner::Mode::none ? "one per statement" : "all fused");
    if (!library.empty())
      how += fmt::format(", and {} for operators, {} of them the first run's", library.size(),
                         both.empty() ? "none" : std::to_string(both.size()));
    ASSIGN_OR_RETURN(const Grids grids, grids_of(results, outcome_));
    std::string what = difference(first_, grids, "the second path", ordered_, 0);
    if (!what.empty())
      find(how + ": " + what);
    else if (own == 0 && seconds.unknown == 0 && library.size() == both.size())
      tell("second path: none, for every kernel of it is the first run's");
    else
      tell(fmt::format("{}: {} the same ({})", how, count_of(rows_of(grids), "row"), clock.text()));
    return {};
  }

  void tell_of_operators(const OperatorChecks& checks) {
    if (checks.rows.empty()) return;
    std::vector<std::string> kinds;
    uint64_t rows = 0;
    for (const OperatorChecks::Row& row : checks.rows) {
      kinds.push_back(fmt::format("{} `{}`", row.calls, hir::row(row.builtin).name));
      rows += row.rows;
      if (row.incomplete)
        leave(fmt::format("pairs that {} of `{}` may lack", row.incomplete, hir::row(row.builtin).name));
    }
    tell(fmt::format("operators of the second path: {}: {} right", fmt::join(kinds, ", "), count_of(rows, "row")));
  }

  // Tells of `ours` against what the interpreter gave.
  Result<void> compare_with_reference(const Grids& ours, const Values& results, const std::string& over,
                                      const Clock& clock) {
    ASSIGN_OR_RETURN(const Grids grids, grids_of(results, outcome_));
    std::string what = difference(ours, grids, "the reference interpreter", ordered_, relative_);
    if (!what.empty() && relative_ > 0)
      leave(fmt::format("the reference interpreter, whose functions of mathematics round otherwise: over {}, {}", over,
                        what));
    else if (!what.empty())
      find(fmt::format("over {}: {}", over, what));
    else
      tell(fmt::format("reference interpreter, over {}: {} the same{} ({})", over, count_of(rows_of(grids), "row"),
                       relative_ > 0 ? ", floats to 1e-9" : "", clock.text()));
    return {};
  }

  Result<void> interpret_all() {
    const Clock clock;
    auto ran = errors_of([&] { return reference::run(ready_.compiled.program, tables_, session_.sources_, nullptr); });
    if (!ran && ran.error().cause == Cause::cancelled) return ran.error();
    if (!ran && ran.error().fault == Fault::world) {
      leave("the reference interpreter, which failed: " + ran.error().message);
      return {};
    }
    if (failure_) {
      compare_failures("reference interpreter", ran);
      return {};
    }
    if (!ran) {
      find("reference interpreter: " + ran.error().message);
      return {};
    }
    RETURN_IF_ERROR(compare_with_reference(first_, *ran, "all rows", clock));
    reference_ = *std::move(ran);
    return {};
  }

  // The first run's code and the interpreter, over the same rows.
  Result<void> interpret_sample(const Reads& reads) {
    const Clock clock;
    const auto rows = sample_of(reads.sampled_rows);
    RangeTables sample(tables_, UINT64_MAX);
    sample.set_order(rows);
    sample.set_range(reads.sampled, 0, rows->size());
    EngineOptions as_first = options_.engine;
    as_first.measure_kernels = as_first.graphs = false;
    Timings timings;
    Engine& engine = *session_.engine_;
    const auto on_device = errors_of([&]() -> Result<Values> {
      ASSIGN_OR_RETURN(const auto plan, engine.plan(ready_.compiled, session_.sources_, as_first, timings, &sample));
      return engine.run(*plan, timings);
    });
    const auto on_host =
        errors_of([&] { return reference::run(ready_.compiled.program, sample, session_.sources_, nullptr); });
    std::vector<std::shared_ptr<const data::Column>> gone;
    for (RangeTables::Gone& part : sample.set_range(reads.sampled, 0, 0)) gone.push_back(std::move(part.column));
    engine.forget(gone);
    for (const auto* ran : {&on_device, &on_host})
      if (!*ran && ran->error().cause == Cause::cancelled) return ran->error();
    const std::string over = fmt::format("{} of {} rows of `{}`, the first and the last ones among them", rows->size(),
                                         reads.sampled_rows, reads.sampled);
    if (on_device && on_host) {
      ASSIGN_OR_RETURN(const Grids ours, grids_of(*on_device, outcome_));
      return compare_with_reference(ours, *on_host, over, clock);
    }
    const Error& error = on_device ? on_host.error() : on_device.error();
    if (on_device.ok() == on_host.ok() || error.fault == Fault::world)
      leave(fmt::format("the reference interpreter: a run over {} fails: {}", over, error.message));
    else
      find(fmt::format("over {}: {} fails: {}", over, on_device ? "the reference interpreter" : "the device",
                       error.message));
    return {};
  }

  Session& session_;
  const std::string& name_;
  const RunOptions& options_;
  Outcome& outcome_;
  const Ready& ready_;
  const reference::Tables& tables_;
  const double relative_;  // of floats, against the interpreter's functions of mathematics
  bool ordered_ = true;    // rows have an order
  Grids first_;
  std::optional<Values> second_, reference_;
  bool is_different_ = false;
  const Error* failure_ = nullptr;  // of the run
  std::vector<std::string> unchecked_;
};

Result<void> Session::prove(const std::string& name, const RunOptions& options, Outcome& outcome) {
  const ResultMemory::OnHost read_here;
  return Proof(*this, name, options, outcome).make();
}

Error Session::prove_failure(const std::string& name, const RunOptions& options, Error error) {
  Outcome outcome;
  if (const auto done = Proof(*this, name, options, outcome).fail_too(error); !done) return done.error();
  return outcome.differences.empty() ? error : proven(name, outcome).error();
}

}  // namespace rndn::runtime
