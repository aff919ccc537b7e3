#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "libraries/base/report/json.h"
#include "libraries/base/system/files.h"
#include "tools/model/model.h"

namespace rndn::tools {
namespace {

double predicted_ms(const Predicted& p, const model::Calibration& c) { return model::kernels_ns(p.work, c) * 1e-6; }

std::string line_of(const Samples::Facts& facts) {
  std::string out = "#", separator = " ";
  for (const auto& [name, value] : facts) {
    out += separator + name + " " + value;
    separator = "; ";
  }
  return out + "\n";
}

}  // namespace

Result<model::Calibration> read_calibration(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, read_file(path));
  return model::parse_calibration(text, path);
}

double error_of(const Predicted& p, const model::Calibration& c) {
  return p.kernels.median > 0 ? (p.kernels.median - predicted_ms(p, c)) / p.kernels.median : 0;
}

std::string predictions_json(std::span<const Predicted> queries, const model::Calibration& c,
                             const Samples::Facts& facts) {
  std::string out = "{\n \"facts\": {", separator = "\n  ";
  for (const auto& [name, value] : facts) {
    out += separator + json_string(name) + ": " + json_string(value);
    separator = ",\n  ";
  }
  out += "},\n \"queries\": [";
  separator = "\n  ";
  for (const Predicted& p : queries) {
    out += separator + fmt::format("{{\"query\": {}, \"kernels_ms\": {}, \"run_ms\": {}, \"kernels\": [",
                                   json_string(p.query), predicted_ms(p, c), model::run_ns(p.work, c) * 1e-6);
    separator = ",\n  ";
    std::string comma;
    for (const model::Work& w : p.work) {
      if (w.is_kernel) {
        const model::Cost cost = model::cost_of(w, c);
        out += fmt::format(
            "{}\n   {{\"name\": {}, \"ns\": {}, \"bound\": {}, \"rows\": {}, \"bytes\": {}, \"instructions\": {}, "
            "\"memory_ns\": {}, \"gathers_ns\": {}, \"adds_ns\": {}, \"instructions_ns\": {}, \"launch_ns\": {}}}",
            comma, json_string(w.name), cost.ns, json_string(cost.bound), w.rows, model::bytes_of(w), w.instructions,
            cost.stream_ns, cost.gather_ns, cost.add_ns, cost.issue_ns, cost.launch_ns);
      } else {
        out += fmt::format("{}\n   {{\"name\": {}, \"ns\": null}}", comma, json_string(w.name));
      }
      comma = ",";
    }
    out += "]}";
  }
  return out + "]\n}\n";
}

std::string errors_tsv(std::span<const Predicted> queries, const model::Calibration& c, const Samples::Facts& facts) {
  std::string out = line_of(facts) + "query\tpredicted ms\tmeasured ms\terror\tnot predicted ms\tremark\n";
  std::vector<std::pair<double, std::string>> sizes;
  for (const Predicted& p : queries) {
    const bool counts = p.why_not.empty() && p.kernels.count > 0 && p.kernels.median > 0;
    const double error = error_of(p, c);
    if (counts) sizes.emplace_back(std::abs(error), p.query);
    out += fmt::format("{}\t{:.4f}\t{:.4f}\t{}\t{:.4f}\t{}\n", p.query, predicted_ms(p, c), p.kernels.median,
                       counts ? fmt::format("{:+.1f} %", error * 100) : "-", p.others.median,
                       p.why_not.empty() ? "-" : p.why_not);
  }
  if (sizes.empty()) return out + "median of sizes\t\t\t-\t\t\nlargest\t\t\t-\t\t\n";
  std::sort(sizes.begin(), sizes.end());
  const size_t n = sizes.size();
  const double median = (sizes[(n - 1) / 2].first + sizes[n / 2].first) / 2;
  return out + fmt::format("median of sizes\t\t\t{:.1f} %\t\t\nlargest\t\t\t{:.1f} %\t\t{}\n", median * 100,
                           sizes.back().first * 100, sizes.back().second);
}

}  // namespace rndn::tools
