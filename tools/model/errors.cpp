#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "libraries/base/system/files.h"
#include "tools/model/model.h"

namespace rndn::tools {
namespace {

using Json = nlohmann::ordered_json;

double predicted_ms(const Predicted& p, const model::Calibration& c) { return model::kernels_ns(p.work, c) * 1e-6; }

std::string line_of(const Samples::Facts& facts) {
  std::string out = "#", separator = " ";
  for (const auto& [name, value] : facts) {
    out += separator + name + " " + value;
    separator = "; ";
  }
  return out + "\n";
}

// What a kernel does and what that is predicted to take.
Json json_of(const model::Work& w, const model::Calibration& c) {
  if (!w.is_kernel) return {{"name", w.name}, {"ns", nullptr}};
  const model::Cost cost = model::cost_of(w, c);
  Json out = {{"name", w.name},
              {"ns", cost.ns},
              {"bound", std::string(cost.bound)},
              {"rows", w.rows},
              {"bytes", model::bytes_of(w)},
              {"instructions", w.instructions},
              {"memory_ns", cost.stream_ns},
              {"gathers_ns", cost.gather_ns},
              {"adds_ns", cost.add_ns},
              {"instructions_ns", cost.issue_ns},
              {"launch_ns", cost.launch_ns},
              {"streams", Json::array()},
              {"gathers", Json::array()},
              {"adds", Json::array()}};
  for (const model::Work::Stream& s : w.streams) out["streams"].push_back({{"rows", s.rows}, {"bits", s.bits}, {"alive", s.alive}});
  for (const model::Work::Gather& g : w.gathers)
    out["gathers"].push_back({{"count", g.count}, {"table_bytes", g.table_bytes}, {"bytes", g.bytes}});
  for (const model::Work::Add& a : w.adds)
    out["adds"].push_back({{"count", a.count}, {"places", a.places}, {"shared", a.is_shared}});
  return out;
}

}  // namespace

Result<model::Calibration> read_calibration(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, read_file(path));
  return model::parse_calibration(text, path);
}

Result<std::map<std::string, double>> read_measured(const std::string& path, const std::string& benchmark,
                                                    const std::string& scale) {
  ASSIGN_OR_RETURN(const std::string text, read_file(path));
  std::map<std::string, double> out;
  constexpr std::string_view wanted[] = {"benchmark", "scale", "query", "measured ms"};
  size_t at[std::size(wanted)] = {}, number = 0;
  bool has_header = false;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    ++number;
    if (line.empty() || line[0] == '#') continue;
    std::vector<std::string_view> cells;
    for (size_t from = 0; from <= line.size();) {
      const size_t end = std::min(line.find('\t', from), line.size());
      cells.push_back(line.substr(from, end - from));
      from = end + 1;
    }
    const auto cell = [&](size_t k) { return at[k] < cells.size() ? cells[at[k]] : std::string_view(); };
    if (!has_header) {
      for (size_t k = 0; k < std::size(wanted); ++k) {
        const auto found = std::find(cells.begin(), cells.end(), wanted[k]);
        if (found == cells.end()) return input_error("{}:{}: expected a column `{}`, found none", path, number, wanted[k]);
        at[k] = static_cast<size_t>(found - cells.begin());
      }
      has_header = true;
    } else if (cell(0) == benchmark && cell(1) == scale) {
      const std::string ms(cell(3));
      char* end = nullptr;
      const double value = std::strtod(ms.c_str(), &end);
      if (ms.empty() || *end || !(value > 0) || !std::isfinite(value))
        return input_error("{}:{}: expected milliseconds above 0 as `measured ms`, found `{}`", path, number, ms);
      out[std::string(cell(2))] = value;
    }
  }
  if (out.empty()) return input_error("{}: expected rows of {} at scale {}, found none", path, benchmark, scale);
  return out;
}

std::string predictions_json(std::span<const Predicted> queries, const model::Calibration& c,
                             const Samples::Facts& facts) {
  Json out = {{"facts", Json::object()}, {"queries", Json::array()}};
  for (const auto& [name, value] : facts) out["facts"][name] = value;
  for (const Predicted& p : queries) {
    Json kernels = Json::array();
    for (const model::Work& w : p.work) kernels.push_back(json_of(w, c));
    out["queries"].push_back({{"query", p.query},
                              {"kernels_ms", predicted_ms(p, c)},
                              {"run_ms", model::run_ns(p.work, c) * 1e-6},
                              {"kernels", std::move(kernels)}});
  }
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string errors_tsv(const std::string& benchmark, const std::string& scale, std::span<const Predicted> queries,
                       const model::Calibration& c, const Samples::Facts& facts) {
  std::string out = line_of(facts) + "benchmark\tscale\tquery\tpredicted ms\tmeasured ms\terror\tnot predicted ms\tremark\n";
  for (const Predicted& p : queries) {
    const double predicted = predicted_ms(p, c), measured = p.kernels.median;
    const bool counts = p.why_not.empty() && p.kernels.count > 0 && measured > 0;
    out += fmt::format("{}\t{}\t{}\t{:.4f}\t{:.4f}\t{}\t{:.4f}\t{}\n", benchmark, scale, p.query, predicted, measured,
                       counts ? fmt::format("{:+.1f} %", 100 * (measured - predicted) / measured) : "-", p.others.median,
                       p.why_not.empty() ? "-" : p.why_not);
  }
  return out;
}

}  // namespace rndn::tools
