#include "runtime/report.h"

#include <algorithm>

#include "libraries/base/html.h"
#include "runtime/print_result.h"

namespace rndn::runtime {
namespace {

std::string group_json(const Timings& t, PhaseGroup group) {
  std::string out = fmt::format("{{\"total_ns\":{},", t.total_ns(group));
  if (group == PhaseGroup::execute) out += fmt::format("\"overlap_ns\":{},", t.overlap_ns(group));
  out += "\"phases\":{";
  bool first = true;
  for (size_t p = 0; p < phase_count; ++p) {
    Phase phase = static_cast<Phase>(p);
    if (phase_group(phase) != group) continue;
    out += fmt::format("{}\"{}\":{}", first ? "" : ",", phase_name(phase), t.exclusive_ns(phase));
    first = false;
  }
  return out + "}}";
}

std::string run_json(const RunReport& r) {
  std::string out = fmt::format(
      "{{\"program\":{},\"run\":{},\"arch\":{},\"device\":{},\"backend\":{},\n \"compile\":{},\n \"execute\":{},\n "
      "\"kernels\":[",
      json_string(r.program), r.run, json_string(r.arch), json_string(r.device), json_string(r.backend),
      group_json(r.timings, PhaseGroup::compile), group_json(r.timings, PhaseGroup::execute));
  for (size_t i = 0; i < r.kernels.size(); ++i) {
    const KernelReport& k = r.kernels[i];
    out += fmt::format(
        "{}\n  "
        "{{\"name\":{},\"kind\":{},\"registers\":{},\"shared_bytes\":{},\"instructions\":{},\"launches\":{},\"ns\":{},"
        "\"floor_bytes\":{}}}",
        i ? "," : "", json_string(k.name), json_string(k.kind), k.registers, k.shared_bytes, k.instructions, k.launches,
        k.ns, k.floor_bytes);
  }
  out += "]";
  if (!r.fallbacks.empty()) {
    out += ",\n \"fallbacks\":[";
    for (size_t i = 0; i < r.fallbacks.size(); ++i) out += (i ? "," : "") + json_string(r.fallbacks[i]);
    out += "]";
  }
  return out + "}";
}

std::string title(const RunReport& r) {
  return fmt::format("{} run {} on {} ({}, {})", r.program, r.run, r.device, r.arch.empty() ? "no target" : r.arch,
                     r.backend);
}

std::string run_text(const RunReport& r) {
  std::string out = title(r) + '\n' + r.timings.tree();
  if (!r.kernels.empty()) {
    size_t width = 6;
    for (const KernelReport& k : r.kernels) width = std::max(width, k.name.size());
    out += fmt::format("{:<{}}  {:<8}  {:>12}  {:>8}  {:>9}  {:>6}  {:>12}  {:>8}\n", "kernel", width, "kind", "time",
                       "launches", "registers", "instr", "floor", "GB/s");
    for (const KernelReport& k : r.kernels) {
      double rate = k.ns ? static_cast<double>(k.floor_bytes) * k.launches / static_cast<double>(k.ns) : 0;
      out += fmt::format("{:<{}}  {:<8}  {:>9.3f} ms  {:>8}  {:>9}  {:>6}  {:>9.3f} MB  {:>8.1f}\n", k.name, width,
                         k.kind, static_cast<double>(k.ns) * 1e-6, k.launches, k.registers, k.instructions,
                         static_cast<double>(k.floor_bytes) * 1e-6, rate);
    }
  }
  for (const std::string& f : r.fallbacks) out += fmt::format("fallback to the reference interpreter: {}\n", f);
  return out;
}

// A flame chart of the run's events, one row per nesting depth, drawn as SVG rectangles with the phase and its time as
// tooltip.
std::string flame_chart(const Timings& t) {
  uint64_t end = 1;
  uint16_t depth = 0;
  uint64_t begin = UINT64_MAX;
  for (const Timings::Event& e : t.events()) {
    end = std::max(end, e.start_ns + e.duration_ns);
    begin = std::min(begin, e.start_ns);
    depth = std::max(depth, e.depth);
  }
  if (t.events().empty()) return "";
  constexpr double width = 1000;
  double scale = width / static_cast<double>(std::max<uint64_t>(1, end - begin));
  std::string out = fmt::format("<svg viewBox=\"0 0 {} {}\" width=\"100%\">\n", width, 20 * (depth + 1));
  for (const Timings::Event& e : t.events()) {
    unsigned hue = static_cast<unsigned>(e.phase) * 47 % 360;
    double x = static_cast<double>(e.start_ns - begin) * scale,
           w = std::max(0.5, static_cast<double>(e.duration_ns) * scale);
    std::string name(phase_name(e.phase));
    if (!e.detail.empty()) name += " " + e.detail;
    out += fmt::format(
        "<g><title>{0}: {1:.3f} ms</title><rect x=\"{2:.2f}\" y=\"{3}\" width=\"{4:.2f}\" height=\"18\" "
        "fill=\"hsl({5},60%,70%)\"/>",
        html_escape(name), static_cast<double>(e.duration_ns) * 1e-6, x, 20 * e.depth, w, hue);
    if (w > 7.0 * static_cast<double>(name.size()))
      out += fmt::format("<text x=\"{:.2f}\" y=\"{}\">{}</text>", x + 2, 20 * e.depth + 13, html_escape(name));
    out += "</g>\n";
  }
  return out + "</svg>\n";
}

std::string bars(const Timings& t, PhaseGroup group) {
  uint64_t total = std::max<uint64_t>(1, t.total_ns(group) + t.overlap_ns(group));
  std::string out = "<table>\n";
  for (size_t p = 0; p < phase_count; ++p) {
    Phase phase = static_cast<Phase>(p);
    uint64_t ns = t.exclusive_ns(phase);
    if (phase_group(phase) != group || ns == 0) continue;
    double share = 100.0 * static_cast<double>(ns) / static_cast<double>(total);
    out += fmt::format(
        "<tr><td>{}</td><td class=n>{:.3f} ms</td><td class=n>{:.1f} %</td><td class=b><div "
        "style=\"width:{:.1f}%\"></div></td><td>{}</td></tr>\n",
        phase_name(phase), static_cast<double>(ns) * 1e-6, share, share, html_escape(phase_text(phase)));
  }
  return out + fmt::format("<tr><th>{}</th><th class=n>{:.3f} ms</th></tr></table>\n",
                           group == PhaseGroup::compile ? "compile" : "execute",
                           static_cast<double>(t.total_ns(group)) * 1e-6);
}

std::string html(std::span<const RunReport> runs) {
  std::string out =
      "<!DOCTYPE html>\n<html lang=en><meta charset=utf-8><title>rndn: where the time went</title>\n<style>"
      "body{font:14px sans-serif;margin:2em;max-width:1100px}table{border-collapse:collapse;margin:.5em "
      "0}td,th{padding:2px 8px;text-align:left}"
      ".n{text-align:right;font-variant-numeric:tabular-nums}.b{width:300px}.b "
      "div{background:#6a9;height:12px}text{font:11px sans-serif}"
      "svg{border:1px solid #ccc}</style>\n";
  for (const RunReport& r : runs) {
    out += fmt::format("<h2>{}</h2>\n", html_escape(title(r)));
    out += flame_chart(r.timings) + bars(r.timings, PhaseGroup::compile) + bars(r.timings, PhaseGroup::execute);
    if (!r.kernels.empty()) {
      out +=
          "<table><tr><th>kernel<th>kind<th class=n>time<th class=n>launches<th class=n>registers<th "
          "class=n>instructions<th class=n>floor</tr>\n";
      for (const KernelReport& k : r.kernels)
        out += fmt::format(
            "<tr><td>{}<td>{}<td class=n>{:.3f} ms<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{:.3f} "
            "MB</tr>\n",
            html_escape(k.name), k.kind, static_cast<double>(k.ns) * 1e-6, k.launches, k.registers, k.instructions,
            static_cast<double>(k.floor_bytes) * 1e-6);
      out += "</table>\n";
    }
    for (const std::string& f : r.fallbacks)
      out += fmt::format("<p>Fallback to the reference interpreter: {}</p>\n", html_escape(f));
  }
  return out + "</html>\n";
}

// Chrome's trace format: one process per run.
std::string trace(std::span<const RunReport> runs) {
  std::string out = "{\"traceEvents\":[";
  bool first = true;
  for (size_t i = 0; i < runs.size(); ++i) {
    out += fmt::format("{}\n{{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":{},\"args\":{{\"name\":{}}}}}",
                       first ? "" : ",", i + 1, json_string(title(runs[i])));
    first = false;
    for (const Timings::Event& e : runs[i].timings.events()) {
      std::string name(phase_name(e.phase));
      if (!e.detail.empty()) name += ' ' + e.detail;
      out += fmt::format(
          ",\n{{\"name\":{},\"cat\":\"{}\",\"ph\":\"X\",\"pid\":{},\"tid\":1,\"ts\":{:.3f},\"dur\":{:.3f}}}",
          json_string(name), phase_group(e.phase) == PhaseGroup::compile ? "compile" : "execute", i + 1,
          static_cast<double>(e.start_ns) * 1e-3, static_cast<double>(e.duration_ns) * 1e-3);
    }
  }
  return out + "\n]}\n";
}

}  // namespace

bool find_time_format(std::string_view name, TimeFormat& format) {
  if (name == "text")
    format = TimeFormat::text;
  else if (name == "json")
    format = TimeFormat::json;
  else if (name == "html")
    format = TimeFormat::html;
  else if (name == "trace")
    format = TimeFormat::trace;
  else
    return false;
  return true;
}

std::string report(std::span<const RunReport> runs, TimeFormat format) {
  std::string out;
  switch (format) {
    case TimeFormat::text:
      for (size_t i = 0; i < runs.size(); ++i) out += (i ? "\n" : "") + run_text(runs[i]);
      return out;
    case TimeFormat::json:
      if (runs.size() == 1) return run_json(runs[0]) + "\n";
      for (size_t i = 0; i < runs.size(); ++i) out += (i ? ",\n" : "[") + run_json(runs[i]);
      return out.empty() ? "[]\n" : out + "]\n";
    case TimeFormat::html: return html(runs);
    case TimeFormat::trace: return trace(runs);
  }
  return out;
}

}  // namespace rndn::runtime
