// A plan whose columns and intermediate results do not fit on the device runs as several: by ranges
// of a table's rows, whose results are put together (outliner/split.h: how, and that it is exact).
//
//   auto stream = Stream::make(engine, state, plan, error, timings);   // after the plan has failed
//   results = (*stream)->run(timings, kernels, fallbacks, texts_walked);
//
// The table is the one with the most bytes on the device of those that can be cut. What runs before
// and after the ranges is cut in turn when it does not fit either. The columns of a range have an
// eighth of the memory at first; a range is halved until it fits. Groups of ranges are merged when
// they have become twice as many. What no table can be cut for is an error (fault world) that says
// what did not fit, which statements need all rows, and why.
// What the programs leave for each other goes by way of the host. Compiled once per plan.
// Left out: transfers while kernels run; groups and joins that are themselves larger than memory.
#pragma once
#include <memory>
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

 private:
  using Values = std::vector<reference::Value>;
  // A program; once it did not fit, its three parts in its place.
  struct Node {
    std::string name;  // "range": as reports name it
    unsigned depth = 0;
    const Compiled* compiled = nullptr;
    Engine::Plan* plan = nullptr;
    std::unique_ptr<Compiled> own_compiled;
    std::unique_ptr<Engine::Plan> own_plan;
    std::string table;  // that is cut; empty: the program is whole
    outliner::Split split;
    uint64_t range_rows = 0;  // that fitted last; 0: none yet
    std::unique_ptr<Node> before, range, after;
    std::vector<std::unique_ptr<Node>> merges;  // one for each of the split's
    std::vector<KernelReport> reports;
  };
  Stream(Engine& engine, Engine::State& state) : engine_(engine), state_(state) {}

  Result<void> cut(Node& node, const data::Tables& tables, const Error& full, Timings& timings);
  Result<std::unique_ptr<Node>> compile(const Node& parent, std::string name, hir::Program program,
                                        Timings& timings);
  Result<Values> run(Node& node, const data::Tables& tables, Timings& timings);
  Result<Values> run_whole(Node& node, const data::Tables& tables, Timings& timings);
  Result<Values> run_cut(Node& node, const data::Tables& tables, Timings& timings);
  // The results of all ranges as columns of `all`.
  Result<void> run_ranges(Node& node, RangeTables& tables, const Values& first, RangeTables& all,
                          Timings& timings);
  struct OwnTables;
  struct Gathered;  // the results of the ranges so far
  Result<void> merge_groups(Node& node, Gathered& so_far, const data::Tables& tables,
                            Timings& timings);
  void forget(const std::vector<RangeTables::ColumnPtr>& columns, bool texts);

  Engine& engine_;
  Engine::State& state_;
  Node root_;
  std::vector<std::string> fallbacks_;
  uint64_t texts_walked_ = 0;
  uint64_t programs_ = 0;  // that were cut: their columns have names of their own
};

}  // namespace rndn::runtime
