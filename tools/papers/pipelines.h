// HorseQC's other ways to write what a pipeline selects, for its ablations: kernels over the
// columns of `revenue of rows whose quantity is at most x`. They are the benchmark's own: rndn's
// are ordered, and keep the order of rows by decoupled look-back.
//
//   multi-pass  counts of every warp's rows, their prefix sum (the library's), then all again to write: rows in order
//   atomic      each row that is selected adds to one counter; what comes first is written first
//   local       each warp counts its rows and adds once
// Of the sum: each row adds atomically, or each thread and then each warp its own before.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tools/papers/harness.h"

namespace rndn::tools::papers {

class Pipelines {
 public:
  // Columns of i32, which go to the device.
  static Result<std::unique_ptr<Pipelines>> make(Harness& harness, const data::Column& quantity,
                                                 const data::Column& price, const data::Column& discount);
  ~Pipelines();

  struct Way {
    std::string name;  // "project, atomic"
    bool is_sum = false, keeps_order = false;
  };
  static const std::vector<Way>& ways();
  // Time of its kernels, each alone as those of other programs are measured, in milliseconds.
  Result<double> run(const Way& way, int64_t x);
  // What a run of it writes, where nothing of an earlier one is left: the selected values, or their sum.
  Result<std::vector<int64_t>> written(const Way& way, int64_t x);

 private:
  struct State;
  explicit Pipelines(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rndn::tools::papers
