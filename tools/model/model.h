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
// Before the first launch, with each kernel's parts.
std::string predictions_json(std::span<const Predicted> queries, const model::Calibration& c,
                             const Samples::Facts& facts);
// Per query predicted, measured, and measured less predicted as a share of what was measured; -: the remark says why it does not count. What many
// rows say together is tools/bench-model's.
std::string errors_tsv(const std::string& benchmark, const std::string& scale, std::span<const Predicted> queries,
                       const model::Calibration& c, const Samples::Facts& facts);

}  // namespace rndn::tools
