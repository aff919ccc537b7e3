#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

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

// What a kernel does, an array for each kind.
std::string parts_of(const model::Work& w) {
  std::string out = "\"streams\": [", comma;
  for (const model::Work::Stream& s : w.streams) {
    out += fmt::format("{}{{\"rows\": {}, \"bits\": {}, \"alive\": {}}}", comma, s.rows, s.bits, s.alive);
    comma = ", ";
  }
  out += "], \"gathers\": [", comma.clear();
  for (const model::Work::Gather& g : w.gathers) {
    out += fmt::format("{}{{\"count\": {}, \"table_bytes\": {}, \"bytes\": {}}}", comma, g.count, g.table_bytes, g.bytes);
    comma = ", ";
  }
  out += "], \"adds\": [", comma.clear();
  for (const model::Work::Add& a : w.adds) {
    out += fmt::format("{}{{\"count\": {}, \"places\": {}, \"shared\": {}}}", comma, a.count, a.places, a.is_shared);
    comma = ", ";
  }
  return out + "]";
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
            "\"memory_ns\": {}, \"gathers_ns\": {}, \"adds_ns\": {}, \"instructions_ns\": {}, \"launch_ns\": {}, {}}}",
            comma, json_string(w.name), cost.ns, json_string(cost.bound), w.rows, model::bytes_of(w), w.instructions,
            cost.stream_ns, cost.gather_ns, cost.add_ns, cost.issue_ns, cost.launch_ns, parts_of(w));
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
  double logs = 0;
  for (const Predicted& p : queries) {
    const bool counts = p.why_not.empty() && p.kernels.count > 0 && p.kernels.median > 0;
    const double error = error_of(p, c);
    if (counts) {
      sizes.emplace_back(std::abs(error), p.query);
      logs += std::abs(std::log(predicted_ms(p, c) / p.kernels.median));
    }
    out += fmt::format("{}\t{:.4f}\t{:.4f}\t{}\t{:.4f}\t{}\n", p.query, predicted_ms(p, c), p.kernels.median,
                       counts ? fmt::format("{:+.1f} %", error * 100) : "-", p.others.median,
                       p.why_not.empty() ? "-" : p.why_not);
  }
  if (sizes.empty()) return out;
  std::sort(sizes.begin(), sizes.end());
  const size_t n = sizes.size();
  const double median = (sizes[(n - 1) / 2].first + sizes[n / 2].first) / 2;
  const auto within = [&](double most) {
    return std::count_if(sizes.begin(), sizes.end(), [&](const auto& size) { return size.first <= most; });
  };
  out += fmt::format("geometric mean\t\t\t{:.2f}\t\tof the larger over the smaller, {} of {}\n",
                     std::exp(logs / static_cast<double>(n)), n, queries.size());
  out += fmt::format("median of sizes\t\t\t{:.1f} %\t\t\nlargest\t\t\t{:.1f} %\t\t{}\n", median * 100,
                     sizes.back().first * 100, sizes.back().second);
  for (const double most : {0.1, 0.25, 0.5})
    out += fmt::format("within {:.0f} %\t\t\t{} of {}\t\t\n", most * 100, within(most), n);
  return out;
}

}  // namespace rndn::tools
