// The cost model's commands: a calibration measured or read, and predictions beside measurements.
#pragma once
#include <map>
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
// By query, milliseconds of its kernels: of the table's columns benchmark, scale, query, measured ms. Lines of # do not count.
Result<std::map<std::string, double>> read_measured(const std::string& path, const std::string& benchmark,
                                                    const std::string& scale);

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
// Query, predicted, measured, error; then of those that count the geometric mean of the larger over the smaller, the median
// of the errors' sizes, the largest, and how many are within 10, 25 and 50 %.
std::string errors_tsv(std::span<const Predicted> queries, const model::Calibration& c, const Samples::Facts& facts);

}  // namespace rndn::tools
