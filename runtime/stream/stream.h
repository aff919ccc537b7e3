// A plan whose columns and intermediate results do not fit on the device runs as several: by ranges
// of a table's rows, whose results are put together (outliner/split.h: how, and that it is exact).
//
//   auto stream = Stream::make(engine, state, plan, error, timings);   // after the plan has failed
//   results = (*stream)->run(timings, kernels, fallbacks, texts_walked);
//
// Ways are tried in turn, until one neither is refused nor too large: by ranges of each table, the
// one with the most bytes first; by ranges of rows that the host has put in the order of keys
// (row_order.h), for groups and orders that are larger than memory; in two programs, each of which
// is cut in turn when it does not fit. The columns of a range have a tenth of the memory at
// first; a range is halved until it fits. Groups of ranges are merged when they have become twice
// as many. Of single statements: joins and look-ups run by parts of equal hashes of both sides
// (row_parts.h), of a part that does not fit pieces of one side beside ranges of the other;
// running values by ranges, with what is before them carried on; what computes rows of vectors
// that are in no table by ranges of one made of these; what only moves elements moves them in host
// memory. What is left runs on the reference interpreter, as a fallback that says what did not fit
// and why; without fallbacks that is an error (fault world).
// What the programs leave for each other goes by way of the host, which has whole columns in bits alone (--encode packed)
// and makes the elements of a range when it is sent; what it allocates it asks for first (host_memory.h). Compiled once per plan. A range has
// a dictionary of its own texts where that of all is long. Of running sums of f64 the device adds up
// 32 rows at a time, and the host these, in the order of libraries/base/numbers/running_sums.h.
// Left out: transfers while kernels run; running sums of f32, `unique`, texts that are joined, and
// lists that are larger than memory.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "outliner/split.h"
#include "runtime/run/state.h"
#include "runtime/stream/range_tables.h"

namespace rndn::runtime {

class Stream {
 public:
  // `full`: how the plan failed.
  static Result<std::unique_ptr<Stream>> make(Engine& engine, Engine::State& state,
                                              Engine::Plan& plan, const Error& full,
                                              Timings& timings);
  Result<std::vector<reference::Value>> run(Timings& timings, std::vector<KernelReport>* kernels,
                                            std::vector<std::string>* fallbacks,
                                            uint64_t* texts_walked);
  // What the last run did in host memory beside the programs, a phrase each: it moved elements,
  // put rows in order or in parts, carried running values on. Not the pieces that ranges give.
  const std::vector<std::string>& host_work() const { return host_work_; }

 private:
  using Values = std::vector<reference::Value>;
  // A program; once it did not fit, its three parts in its place.
  struct Node {
    std::string name;  // "range": as reports name it
    unsigned depth = 0;        // ranges of ranges
    bool of_ranges = false;    // it is what comes after ranges
    bool in_two = false;       // no table is cut: `before` and `after` alone, or an operation
    bool of_operation = false; // the program of parts: not divided again
    size_t way = 0;            // of cutting it: those before this one are refused or did not fit
    const Compiled* compiled = nullptr;
    Engine::Plan* plan = nullptr;
    std::unique_ptr<Compiled> own_compiled;
    std::unique_ptr<Engine::Plan> own_plan;
    bool whole = true;         // it is not cut
    std::string table;         // that is cut
    Error full;         // why it is
    bool float_sums = true;  // false: their parts turned out not to be exact
    outliner::Split split;
    uint64_t least() const;   // rows of a range
    uint64_t range_rows = 0;  // that fitted last; 0: none yet
    std::unique_ptr<Node> before, range, after;
    std::vector<std::unique_ptr<Node>> merges;  // one for each of the split's
    std::vector<KernelReport> reports;
  };
  Stream(Engine& engine, Engine::State& state) : engine_(engine), state_(state) {}

  Result<void> cut(Node& node, const data::Tables& tables, const Error& full, Timings& timings);
  Result<void> take(Node& node, outliner::Split split, Timings& timings);
  void set_table(Node& node, const std::string& table, uint64_t row_bytes);
  Result<std::unique_ptr<Node>> compile(const Node& parent, std::string name, hir::Program program,
                                        Timings& timings);
  Result<Values> run(Node& node, const data::Tables& tables, Timings& timings);
  Result<Values> run_on_device(Node& node, const data::Tables& tables, Timings& timings);
  Result<Values> run_whole(Node& node, const data::Tables& tables, Timings& timings);
  // A join or look-up, by parts of rows; running sums and extremes, by ranges. Its results are
  // columns of `all`, and so is what else `after` reads.
  Result<void> run_operation(Node& node, const data::Tables& tables, RangeTables& all,
                             Timings& timings);
  struct Sides;  // the columns of an operation
  class Joined;  // its results so far
  Result<Values> run_parts(Node& node, const data::Tables& tables, const Sides& sides,
                           Timings& timings);
  Result<Values> run_scan(Node& node, const data::Tables& tables, const Sides& sides,
                          Timings& timings);
  Result<Values> run_zip(Node& node, const data::Tables& tables, const Sides& sides,
                         Timings& timings);
  // A single operation that only moves elements.
  Result<Values> move(Node& node, const data::Tables& tables, Timings& timings);
  // Nothing: sums of floats do not come out exactly by ranges.
  Result<std::optional<Values>> run_cut(Node& node, const data::Tables& tables, Timings& timings);
  // The results of all ranges as columns of `all`. False: as run_cut.
  Result<bool> run_ranges(Node& node, RangeTables& tables, const Values& first, RangeTables& all,
                          Timings& timings);
  struct OwnTables;
  class Pieces;
  struct Gathered;  // the results of the ranges so far
  Result<bool> merge_groups(Node& node, Gathered& so_far, const data::Tables& tables,
                            Timings& timings);
  void give_back(Node& node);
  void forget(const std::vector<RangeTables::Gone>& columns);
  void worked_on_host(std::string what);
  uint64_t most_of_memory() const;  // the limit, or what the device has
  uint64_t most_text_bytes() const;  // of the dictionary of a range

  Engine& engine_;
  Engine::State& state_;
  Node root_;
  std::vector<std::string> fallbacks_, host_work_;
  uint64_t texts_walked_ = 0;
  bool given_up_ = false;  // a part neither fits nor may run on the host: other ways have it too
  uint64_t programs_ = 0;  // that were cut: their columns have names of their own
};

// What neither fits nor can be cut, on the reference interpreter; `full` where it must not run there.
Result<std::vector<reference::Value>> run_on_host(const Engine::Plan::State& plan,
                                                  const Error& full, Timings& timings,
                                                  std::string* printed,
                                                  std::vector<std::string>* fallbacks);

}  // namespace rndn::runtime
