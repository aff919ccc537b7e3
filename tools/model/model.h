// The cost model's commands: a calibration measured or read, and predictions beside measurements.
#pragma once
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/model/cost.h"
#include "tools/bench_samples.h"

namespace rndn::tools {

// `rndn devices --calibrate`: about a minute on a GPU; on the simulator tiny sizes, of which only the rows mean something.
Result<model::Calibration> calibrate(device::Device& device);
Result<model::Calibration> read_calibration(const std::string& path);

// `rndn bench tpch --model`, `rndn bench ssb --model`: what was predicted of a query, and what was measured then.
struct Predicted {
  std::string query;
  std::vector<model::Work> work;
  // Afterwards, in milliseconds: of the kernels that were predicted, and of all others, operators of the library above all.
  Spread kernels, others;
  std::string why_not;  // it was compiled again in the run: for other kernels than these; empty: it was not
};
// Measured less predicted, as a share of what was measured.
double error_of(const Predicted& p, const model::Calibration& c);
// Before the first launch, with each kernel's parts.
std::string predictions_json(std::span<const Predicted> queries, const model::Calibration& c,
                             const Samples::Facts& facts);
// Query, predicted, measured, error; then the median of the errors' sizes, and the largest.
std::string errors_tsv(std::span<const Predicted> queries, const model::Calibration& c, const Samples::Facts& facts);

}  // namespace rndn::tools
