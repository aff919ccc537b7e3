// Executes outlined programs: a flat launch plan made once per program, run as often as wanted.
//
//   Engine engine(device, tables);
//   Result<std::unique_ptr<Engine::Plan>> plan = engine.plan(compiled, sources, options, timings);   // loads the module
//   for (run...) Result<std::vector<reference::Value>> results = engine.run(**plan, timings, &kernels);
//
// Columns are loaded when a step first needs them and stay on the device, for all plans of the engine, until its memory is short. Memory of a run
// is reused after the last use of a value and stays with the plan, so that repeats allocate nothing.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "libraries/base/errors/result.h"
#include "libraries/base/errors/source.h"
#include "libraries/base/report/timing.h"
#include "libraries/operators/api.h"
#include "runtime/compiler/compile.h"
#include "runtime/device/device.h"
#include "runtime/memory/column_forms.h"
#include "runtime/memory/vector_bounds.h"
#include "runtime/model/cost.h"
#include "runtime/reference/reference.h"
#include "runtime/report.h"

namespace rndn::runtime {

// What was looked at of the orders, groupings and joins that operators made (runtime/reference/invariants.h).
struct OperatorChecks {
  struct Row {
    hir::Builtin builtin{};
    uint64_t calls = 0, rows = 0, incomplete = 0;
  };
  std::vector<Row> rows;  // one per builtin
};

struct EngineOptions {
  bool strict = false;  // check_cast in strict mode
  bool allow_fallback =
      true;  // else a builtin or program that only the reference interpreter can run is an error (fault input)
  bool measure_kernels = true;  // device time per kernel, two marks around each launch
  bool timeline = true;  // then: also when each began, for reports that draw it
  operators::Options operators;       // --sort, --group, --join, --member
  // --like: on the host; on the device, strings sent every time; on the device, where they stay
  enum class Like : uint8_t { cpu, gpu, gpu_cached } like = Like::gpu_cached;
  bool graphs =
      true;  // repeats whose kernels are not measured run as a graph of the device's, where the host has nothing to decide in between
  // --alloc: memory of a run from pages that are kept, or each buffer from the driver.
  enum class Alloc : uint8_t { pages, driver } alloc = Alloc::pages;
  // Runs by ranges of so many rows of a table, whether it fits or not, where one can be cut; 0: only what does not fit.
  uint64_t range_rows = 0;
  bool in_two = false;          // then: in two programs, and these in two, down to single statements
  bool ranges_by_keys = false;  // of rows that are put in the order of keys first, where that can be, and not only where nothing else does
  // Rows up to which groups of rows that look-ups select are made in the kernel that scans them. Of more rows few are left in most queries, and it
  // is faster to store these, for a kernel of their own, than to add them where single lanes of a warp have any
  // (H100: `rndn sql ssb/sql/q2.1.sql --data ssb:10 --time`, with `--group sort` 0.73 ms for 1.34).
  uint64_t most_rows_of_selective_folds = 4 << 20;
  // Groups of so many rows or fewer are sorted, not hashed: launches cost more than both.
  uint64_t hashed_rows = 1 << 17;
  // Slots of the first table for groups whose keys are hashed in a kernel, where nothing says that there are fewer groups.
  uint64_t fold_slots = 1 << 16;
  // Of so many rows or more, of which conditions leave this share or less, as columns' bounds tell, kernels collect what is left before they ask tables
  // (ptx/codegen/collect.cpp). Where more are left, few lanes are idle.
  uint64_t collected_rows = 1 << 17;
  double most_collected = 0.25;
  // Columns of so many rows or more have bounds of their vectors, by which kernels skip tiles; UINT64_MAX: none has.
  uint64_t bounded_rows = least_bounded_rows;
  // Tables of selected rows, of which there may be so many or more, have a filter: bits, which are read before the table is
  // (ptx/lookup/lookup.h). Smaller tables are in the first caches themselves. UINT64_MAX: none has.
  uint64_t filtered_rows = 1 << 16;
  // Columns that are read at rows which a key tells, of so many rows or more, lie in records by that key (run/lookups.cpp). Smaller ones are in the
  // first caches themselves. UINT64_MAX: none does.
  uint64_t recorded_rows = 1 << 16;
  bool hashed_lookups = false;  // all tables of rows by key are hashed; else those have a slot for each possible key that need little more memory so
  uint64_t longest_vector = data::longest_vector;  // of one kernel; what is longer runs by ranges
  bool cache = true;  // else columns and strings leave the device after each run
  Encode encode = Encode::narrow;  // --encode
  Transfer transfer = Transfer::automatic;  // --transfer
  const model::Calibration* model = nullptr;  // of the device, by which that is decided; outlives the plan; null: what is assumed of all
  // Results of operators are looked at on the host; what does not hold ends the run (Cause::finding). Outlives the plan; null: none are.
  OperatorChecks* checks = nullptr;
};

// What a run decides by its columns, for people: a line each, with the place and with what would be done with other figures.
struct DataChoices {
  std::vector<std::string> again;  // for which the program is compiled again
  std::vector<std::string> kept;   // of the program as it is
  std::vector<model::Work> work;   // what the run does in turn, as far as columns tell: of a program that was compiled for them
  // Columns of numbers that kernels read, by model::Work's numbers.
  struct Column {
    std::shared_ptr<const data::Column> column;
    std::string name;             // "lineorder.lo_revenue"; empty: of no table
    bool of_rows = false;         // its rows in the table that the foreign key refers to
    uint64_t bytes = 0;           // as it is sent
    bool is_read_whole = false;   // by something of which `work` tells nothing
  };
  std::vector<Column> columns;
  model::Transfer transfer(size_t column, const model::Calibration& c) const {
    return model::transfer_of(work, static_cast<uint32_t>(column), static_cast<double>(columns[column].bytes), c);
  }
  // Whether kernels read it in the host's memory, where it does not stay on the device.
  bool maps(size_t column, const model::Calibration& c) const {
    return !columns[column].is_read_whole && transfer(column, c).is_better_read();
  }
};

class Engine {
 public:
  // Both outlive the engine. Not thread-safe.
  // code_cache (may be null, outlives the engine): of the library's kernels. pool (the same): makes these, and the texts of results, side by side.
  Engine(device::Device& device, const reference::Tables& tables, CodeCache* code_cache = nullptr,
         ThreadPool* pool = nullptr);
  ~Engine();
  Engine(const Engine&) = delete;

  class Plan {
   public:
    ~Plan();
    // What runs on the reference interpreter though it should not, a phrase each, beginning with its position: builtins whose device is the GPU
    // or the library, and kernels without code. Complete after plan().
    const std::vector<std::string>& fallbacks() const;
    // What the last run did in host memory because it does not fit on the device, a phrase each.
    std::vector<std::string> host_work() const;
    // Kernels of the program that run on the device; operators of the library come on top.
    size_t device_kernels() const;
    // What runs: the program, or what a run has compiled it to again.
    const Compiled& compiled() const;

    struct State;  // state.h

   private:
    friend class Engine;
    friend class Stream;
    Plan();
    std::unique_ptr<State> state_;
  };

  // `compiled`, `sources`, `tables` and the engine outlive the plan. `tables`: others than the engine's; null: these.
  Result<std::unique_ptr<Plan>> plan(const Compiled& compiled, const SourceManager& sources,
                                     const EngineOptions& options, Timings& timings,
                                     const reference::Tables* tables = nullptr);
  // CompileOptions::forecast, of runs over those tables; nothing where a column that the program reads is not in memory. What was told before
  // in `choices` (may be null) stays where the program is compiled again for it.
  Forecast forecast(const Compiled& compiled, const SourceManager& sources, const EngineOptions& options,
                    const reference::Tables& tables, DataChoices* choices = nullptr);
  // Sends a column that a program is about to read, if it goes as the host has it and there is room; the run that reads it
  // finds it there. What goes wrong is met again, and said, by that run.
  void send_ahead(const data::Column& column, Encode encode);
  // These columns will not be read again: what the device has of them goes.
  void forget(std::span<const std::shared_ptr<const data::Column>> columns);

  // Runs the program and brings back what main returns. Run-time errors of the program are the input's fault, with the position of the
  // statement. `printed` (may be null) receives what @print writes; `kernels` (may be null) one report per kernel; `fallbacks` (may be null)
  // gets, like Plan::fallbacks() and besides those, the steps that turned out in this run to need the reference interpreter; `texts_walked` (may
  // be null) how many texts the host read, or made codes of, before the results: none when all that a program needs of its columns is kept.
  Result<std::vector<reference::Value>> run(Plan& plan, Timings& timings, std::string* printed = nullptr,
                                            std::vector<KernelReport>* kernels = nullptr,
                                            std::vector<std::string>* fallbacks = nullptr,
                                            uint64_t* texts_walked = nullptr);

  // Device memory in use by columns, plans and a run, in bytes; without the pages that wait for the next run.
  uint64_t device_bytes() const;
  // The most that was in use at once, pages included, since the last run began.
  uint64_t peak_bytes() const;
  // How often the host has put a column in another form for the device, since the engine was made.
  uint64_t columns_encoded() const;
  // Bytes of columns that have gone to the device since then, in their forms, those of texts and of the bounds of vectors included; and how many of
  // them from pinned memory (runtime/memory/pinned_bytes.h).
  uint64_t column_bytes() const;
  uint64_t pinned_column_bytes() const;
  // Bytes of columns that kernels were given in the host's memory, each time that one was; they are not among column_bytes.
  uint64_t mapped_column_bytes() const;
  // Device memory that may be in use at once, pages included. Not the code of kernels, nor host memory that the device reaches.
  void limit_memory(uint64_t bytes);

  struct State;  // state.h

 private:
  Result<std::unique_ptr<Plan>> make_plan(const Compiled& compiled, const SourceManager& sources,
                                          const EngineOptions& options, Timings& timings);
  friend class Stream;
  // It is not run again when the host has too little memory.
  Result<std::vector<reference::Value>> run_once(Plan& plan, Timings& timings, std::string* printed,
                                                 std::vector<KernelReport>* kernels,
                                                 std::vector<std::string>* fallbacks, uint64_t* texts_walked);
  // Without streaming (runtime/stream/stream.h).
  Result<std::vector<reference::Value>> run_whole(Plan& plan, Timings& timings, std::string* printed,
                                                  std::vector<KernelReport>* kernels,
                                                  std::vector<std::string>* fallbacks, uint64_t* texts_walked);
  std::unique_ptr<State> state_;
};

}  // namespace rndn::runtime
