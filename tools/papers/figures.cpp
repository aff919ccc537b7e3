#include "tools/papers/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "libraries/base/report/json.h"
#include "libraries/base/system/files.h"
#include "tools/rndn.h"

namespace rndn::tools::papers {
namespace {

// Four significant digits; counts whole.
std::string digits(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e15) return fmt::format("{:.0f}", value);
  const double size = std::abs(value);
  return fmt::format("{:.{}f}", value, size >= 100 ? 1 : size >= 10 ? 2 : size >= 1 ? 3 : 4);
}
std::string text_of(const Spread& spread) {
  if (!spread.count) return "-";
  if (spread.count == 1) return digits(spread.median);
  return fmt::format("{} ({} to {})", digits(spread.median), digits(spread.low), digits(spread.high));
}
std::string json_of(const Spread& spread) {
  if (!spread.count) return "null";
  return fmt::format(R"({{"median":{},"low":{},"high":{}}})", spread.median, spread.low, spread.high);
}
// A cell of one line.
std::string answer_of(const FigureRow& r) {
  std::string out = r.wrong;
  if (!r.failed.empty()) out += (out.empty() ? "failed: " : "; failed: ") + r.failed;
  if (out.empty()) out = r.left_out.empty() ? "right" : "left out: " + r.left_out;
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c == '\n' || c == '\t' || c == '\r'; }, ' ');
  return out;
}

}  // namespace

Spread exactly(double value) { return {.median = value, .low = value, .high = value, .count = 1}; }

std::optional<double> FigureRow::ratio() const {
  if (!base.count || !ours.count || !(base.median > 0) || !(ours.median > 0)) return {};
  if (by == Ratio::error) return (ours.median - base.median) / ours.median * 100;
  if (by == Ratio::share) return ours.median / base.median * 100;
  return base.median / ours.median * (by == Ratio::speed ? 100 : 1);
}

bool FigureRow::meets_goal() const {
  const std::optional<double> reached = ratio();
  return goal && reached && wrong.empty() && failed.empty() &&
         (by == Ratio::error   ? std::abs(*reached) <= *goal
          : by == Ratio::share ? *reached <= *goal
                               : *reached >= *goal);
}

bool Figures::all_right() const {
  return std::all_of(rows_.begin(), rows_.end(), [](const FigureRow& r) { return r.wrong.empty(); });
}

bool Figures::all_measured() const {
  return std::all_of(rows_.begin(), rows_.end(), [](const FigureRow& r) { return r.failed.empty(); });
}

std::string Figures::tsv(const Facts& facts) const {
  std::string out = "#", separator = " ";
  for (const auto& [name, value] : facts) out += std::exchange(separator, "; ") + name + " " + value;
  out +=
      fmt::format(".\nfigure\tcase\trows\t{}\t{}\tunit\tratio\tpaper\tgoal\tmet\tanswer\n", names_.base, names_.ours);
  for (const FigureRow& r : rows_) {
    const std::optional<double> ratio = r.ratio();
    const char* const unit = r.by == Ratio::speedup ? "" : " %";
    out += fmt::format(
        "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", r.figure, r.what, r.rows, text_of(r.base), text_of(r.ours),
        r.unit, ratio ? fmt::format("{:.2f}{}", *ratio, unit) : "-", r.paper,
        r.goal ? fmt::format("{} {}{}", r.by == Ratio::share || r.by == Ratio::error ? "<=" : ">=", *r.goal, unit)
               : "-",
        !r.goal || !ratio ? "-"
        : r.meets_goal()  ? "yes"
                          : "no",
        answer_of(r));
  }
  return out;
}

std::string Figures::json(const Facts& facts) const {
  std::string out = "{\"facts\":{", separator;
  for (const auto& [name, value] : facts)
    out += std::exchange(separator, ",") + json_string(name) + ":" + json_string(value);
  out += "},\"rows\":[";
  separator = "\n";
  for (const FigureRow& r : rows_) {
    const std::optional<double> ratio = r.ratio();
    out += std::exchange(separator, ",\n") +
           fmt::format(R"({{"figure":{},"case":{},"rows":{},"base":{},"ours":{},"unit":{},"ratio":{},"paper":{},)"
                       R"("goal":{},"met":{},"right":{},"wrong":{}{}}})",
                       json_string(r.figure), json_string(r.what), r.rows, json_of(r.base), json_of(r.ours),
                       json_string(r.unit), ratio ? fmt::format("{}", *ratio) : "null", json_string(r.paper),
                       r.goal ? fmt::format("{}", *r.goal) : "null",
                       !r.goal || !ratio ? "null"
                       : r.meets_goal()  ? "true"
                                         : "false",
                       r.wrong.empty() && r.failed.empty() && r.left_out.empty(), json_string(r.wrong),
                       (r.failed.empty() ? "" : ",\"failed\":" + json_string(r.failed)) +
                           (r.left_out.empty() ? "" : ",\"left_out\":" + json_string(r.left_out)));
  }
  return out + "\n]}\n";
}

std::string Figures::path(const std::string& folder, const char* end) const {
  return fmt::format("{}/{}.{}", folder, names_.command, end);
}

Result<void> Figures::check_folder(const std::string& folder) const {
  if (folder == "-") return {};
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return world_error("cannot make folder `{}`: {}", folder, error.message());
  for (const char* end : {"tsv", "json"}) RETURN_IF_ERROR(check_writable(path(folder, end)));
  return {};
}

Result<void> Figures::write(const std::string& folder, const Facts& facts) const {
  if (folder == "-") return write_file("-", tsv(facts));
  RETURN_IF_ERROR(write_file(path(folder, "tsv"), tsv(facts)));
  return write_file(path(folder, "json"), json(facts));
}

}  // namespace rndn::tools::papers
