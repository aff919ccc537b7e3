#include "tools/bench_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "libraries/base/report/html.h"
#include "libraries/base/report/json.h"

namespace rndn::tools {
namespace {

std::string number(double value, std::string_view unit) {
  if (unit.empty()) return fmt::format("{}", value);
  if (value == 0) return "0";
  const double size = std::abs(value);
  return fmt::format("{:.{}f}", value, size >= 100 ? 1 : size >= 10 ? 2 : size >= 0.1 ? 3 : 4);
}

// Column / base over the rows that have both.
struct Ratios {
  double mean = 0, least = 0, most = 0;  // mean: geometric
};
std::optional<Ratios> ratios(const std::map<std::pair<std::string, std::string>, std::vector<double>>& values,
                             const std::vector<std::string>& rows, const std::string& column, const std::string& base) {
  double sum = 0;
  int n = 0;
  Ratios r;
  for (const std::string& row : rows) {
    const auto a = values.find({row, column}), b = values.find({row, base});
    if (a == values.end() || b == values.end()) continue;
    const double x = spread_of(a->second).median, y = spread_of(b->second).median;
    if (!(x > 0) || !(y > 0)) continue;
    r.least = n ? std::min(r.least, x / y) : x / y;
    r.most = std::max(r.most, x / y);
    sum += std::log(x / y);
    ++n;
  }
  if (n == 0) return {};
  r.mean = std::exp(sum / n);
  return r;
}

}  // namespace

Spread spread_of(std::vector<double> values) {
  Spread s;
  if (values.empty()) return s;
  std::sort(values.begin(), values.end());
  if (values.size() >= 5) values = {values.begin() + 1, values.end() - 1};
  const size_t n = values.size();
  s.count = n;
  s.low = values.front();
  s.high = values.back();
  s.median = n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
  return s;
}

void Samples::add(std::string_view table, std::string_view row, std::string_view column, double value) {
  Table& t = tables_[std::string(table)];
  const auto note = [](std::vector<std::string>& names, std::string_view name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
  };
  note(t.rows, row);
  note(t.columns, column);
  t.values[{std::string(row), std::string(column)}].push_back(value);
}

std::string Samples::markdown(std::string_view command, std::span<const BenchTable> tables,
                              const Facts& facts) const {
  std::string out = fmt::format("# Evaluation\n\nWritten by `{}`; do not edit.\n\n", command);
  for (const auto& [name, value] : facts) out += fmt::format("- {}: {}\n", name, value);
  for (const BenchTable& shown : tables) {
    const auto at = tables_.find(shown.name);
    if (at == tables_.end()) continue;
    const Table& t = at->second;
    out += fmt::format("\n## {}\n\n{}{}\n\n| |", shown.title.substr(0, shown.title.find(':')), shown.title,
                       shown.unit.empty()
                           ? "."
                           : fmt::format(", in {}: median, and half the spread of the runs in percent.", shown.unit));
    for (const std::string& c : t.columns) out += fmt::format(" {} |", c);
    out += "\n| --- |";
    for (size_t i = 0; i < t.columns.size(); ++i) out += " ---: |";
    out += "\n";
    for (const std::string& row : t.rows) {
      out += fmt::format("| {} |", row);
      for (const std::string& c : t.columns) {
        const auto v = t.values.find({row, c});
        if (v == t.values.end()) {
          out += " – |";
          continue;
        }
        const Spread s = spread_of(v->second);
        out += " " + number(s.median, shown.unit);
        if (s.count > 1 && s.median > 0 && !shown.unit.empty())
          out += fmt::format(" ±{:.0f}%", (s.high - s.low) / 2 / s.median * 100);
        out += " |";
      }
      out += "\n";
    }
    if (shown.sum) {
      out += "| **sum** |";
      for (const std::string& c : t.columns) {
        double sum = 0;
        bool all = true;
        for (const std::string& row : t.rows) {
          const auto v = t.values.find({row, c});
          all = all && v != t.values.end();
          if (v != t.values.end()) sum += spread_of(v->second).median;
        }
        out += all ? fmt::format(" **{}** |", number(sum, shown.unit)) : " – |";
      }
      out += "\n";
    }
    const std::pair<const char*, double Ratios::*> lines[] = {
        {"geometric mean", &Ratios::mean}, {"least", &Ratios::least}, {"most", &Ratios::most}};
    for (size_t l = 0; l < (shown.base.empty() ? 0u : shown.extremes ? 3u : 1u); ++l) {
      out += fmt::format("| {}, relative to {} |", lines[l].first, shown.base);
      for (const std::string& c : t.columns) {
        const auto r = ratios(t.values, t.rows, c, std::string(shown.base));
        out += r ? fmt::format(" {:.2f}x |", (*r).*lines[l].second) : " – |";
      }
      out += "\n";
    }
  }
  return out;
}

std::string Samples::html(std::span<const BenchTable> tables, const Facts& facts) const {
  static constexpr std::string_view colours[] = {"#3366cc", "#dc8a1f", "#4a9a4a", "#b23a48",
                                                 "#7a5aa6", "#2a9d9d", "#8a6d3b", "#777777"};
  std::string out =
      "<!DOCTYPE html>\n<html lang=en><meta charset=utf-8><title>rndn: evaluation</title>\n<style>"
      "body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:70em;padding:0 1em;color:#222}"
      "table{border-collapse:collapse;margin:.6em 0}td,th{padding:.15em .7em;text-align:right;border-bottom:1px solid "
      "#ddd}td:first-child,th:first-child{text-align:left}svg text{font:11px system-ui,sans-serif}"
      "h2{margin-top:1.6em}</style>\n<h1>Evaluation</h1>\n<ul>\n";
  for (const auto& [name, value] : facts)
    out += fmt::format("<li>{}: {}</li>\n", html_escape(name), html_escape(value));
  out += "</ul>\n";
  for (const BenchTable& shown : tables) {
    const auto at = tables_.find(shown.name);
    if (at == tables_.end()) continue;
    const Table& t = at->second;
    out += fmt::format("<h2>{}</h2>\n<p>{}{}</p>\n", html_escape(shown.title.substr(0, shown.title.find(':'))),
                       html_escape(shown.title), shown.unit.empty() ? "" : fmt::format(", in {}", shown.unit));
    double most = 0;
    for (const auto& [key, values] : t.values) most = std::max(most, spread_of(values).median);
    // Bars: a group per row, a bar per column, from a common zero.
    const double height = 9, gap = 8, left = 60, width = 700;
    const double total = static_cast<double>(t.rows.size()) * (height * static_cast<double>(t.columns.size()) + gap);
    out += fmt::format("<svg width=\"{}\" height=\"{}\" role=img aria-label=\"{}\">\n", left + width + 110, total + 4,
                       html_escape(shown.title));
    double y = 2;
    for (const std::string& row : t.rows) {
      out += fmt::format("<text x=\"0\" y=\"{}\">{}</text>\n",
                         y + height * static_cast<double>(t.columns.size()) / 2 + 4, html_escape(row));
      for (size_t c = 0; c < t.columns.size(); ++c, y += height) {
        const auto v = t.values.find({row, t.columns[c]});
        if (v == t.values.end()) continue;
        const Spread s = spread_of(v->second);
        const double w = most > 0 ? s.median / most * width : 0;
        out += fmt::format(
            "<rect x=\"{}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\"><title>{} {}: {} ({} to "
            "{})</title></rect>",
            left, y, std::max(w, 0.5), height - 1, colours[c % std::size(colours)], html_escape(row),
            html_escape(t.columns[c]), number(s.median, shown.unit), number(s.low, shown.unit),
            number(s.high, shown.unit));
        out +=
            fmt::format("<text x=\"{:.1f}\" y=\"{}\">{}</text>\n", left + w + 4, y + 8, number(s.median, shown.unit));
      }
      y += gap;
    }
    out += "</svg>\n<p>";
    for (size_t c = 0; c < t.columns.size(); ++c)
      out += fmt::format("<span style=\"color:{}\">&#9632;</span> {} &nbsp; ", colours[c % std::size(colours)],
                         html_escape(t.columns[c]));
    out += "</p>\n";
    if (!shown.base.empty()) {
      out += fmt::format("<p>Geometric mean, relative to {}:", html_escape(shown.base));
      for (const std::string& c : t.columns)
        if (const auto r = ratios(t.values, t.rows, c, std::string(shown.base)))
          out += fmt::format(" {} {:.2f}x;", html_escape(c), r->mean);
      out += "</p>\n";
    }
  }
  return out + "</html>\n";
}

std::string Samples::json(const Facts& facts) const {
  std::string out = "{\n \"facts\": {", separator = "\n  ";
  for (const auto& [name, value] : facts)
    out += std::exchange(separator, ",\n  ") + json_string(name) + ": " + json_string(value);
  out += "},\n \"samples\": [";
  separator = "\n  ";
  for (const auto& [name, t] : tables_)
    for (const std::string& row : t.rows)
      for (const std::string& column : t.columns)
        if (const auto v = t.values.find({row, column}); v != t.values.end())
          out += std::exchange(separator, ",\n  ") +
                 fmt::format("{{\"table\": {}, \"row\": {}, \"column\": {}, \"values\": [{}]}}", json_string(name),
                             json_string(row), json_string(column), fmt::join(v->second, ", "));
  return out + "]\n}\n";
}

Result<Samples> Samples::parse(const std::string& text, const std::string& name, Facts* facts) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.contains("samples") || !json["samples"].is_array())
    return input_error("{}: no samples of `rndn bench`", name);
  if (facts && json.contains("facts") && json["facts"].is_object())
    for (const auto& [fact, value] : json["facts"].items())
      if (value.is_string()) facts->emplace_back(fact, value.get<std::string>());
  Samples out;
  for (const auto& s : json["samples"]) {
    if (!s.is_object() || !s.contains("table") || !s["table"].is_string() || !s.contains("row") ||
        !s["row"].is_string() || !s.contains("column") || !s["column"].is_string() || !s.contains("values") ||
        !s["values"].is_array())
      return input_error("{}: a sample lacks `table`, `row`, `column` or `values`", name);
    for (const auto& value : s["values"]) {
      if (!value.is_number()) return input_error("{}: a value is no number", name);
      out.add(s["table"].get<std::string>(), s["row"].get<std::string>(), s["column"].get<std::string>(),
              value.get<double>());
    }
  }
  return out;
}

std::string Samples::regressions(const Samples& before) const {
  std::string out;
  for (const auto& [name, t] : tables_) {
    const auto old = before.tables_.find(name);
    if (old == before.tables_.end()) continue;
    for (const auto& [key, values] : t.values) {
      const auto then = old->second.values.find(key);
      if (then == old->second.values.end()) continue;
      const Spread a = spread_of(then->second), b = spread_of(values);
      if (b.median <= a.median * 1.05 || b.low <= a.high) continue;
      out += fmt::format("{} {} {}: {} before, {} after ({:+.0f} %)\n", name, key.first, key.second,
                         number(a.median, "ms"), number(b.median, "ms"), (b.median / a.median - 1) * 100);
    }
  }
  return out;
}

}  // namespace rndn::tools
