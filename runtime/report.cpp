#include "runtime/report.h"

#include <algorithm>
#include <cmath>

#include "libraries/base/report/html.h"
#include "libraries/base/report/json.h"
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
        "\"floor_bytes\":{}{}}}",
        i ? "," : "", json_string(k.name), json_string(k.kind), k.registers, k.shared_bytes, k.instructions, k.launches,
        k.ns, k.floor_bytes, k.late ? fmt::format(",\"late\":{}", k.late) : "");
  }
  out += "]";
  if (r.texts_walked) out += fmt::format(",\n \"texts_walked\":{}", r.texts_walked);
  if (r.columns_encoded) out += fmt::format(",\n \"columns_encoded\":{}", r.columns_encoded);
  if (r.column_bytes) out += fmt::format(",\n \"column_bytes\":{}", r.column_bytes);
  if (r.pinned_column_bytes) out += fmt::format(",\n \"pinned_column_bytes\":{}", r.pinned_column_bytes);
  if (r.mapped_column_bytes) out += fmt::format(",\n \"mapped_column_bytes\":{}", r.mapped_column_bytes);
  const auto phrases = [&](std::string_view key, const std::vector<std::string>& all) {
    if (all.empty()) return;
    out += fmt::format(",\n \"{}\":[", key);
    for (size_t i = 0; i < all.size(); ++i) out += (i ? "," : "") + json_string(all[i]);
    out += "]";
  };
  phrases("host_work", r.host_work);
  phrases("fallbacks", r.fallbacks);
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
      double rate = k.ns ? static_cast<double>(k.all_floor_bytes) / static_cast<double>(k.ns) : 0;
      out += fmt::format("{:<{}}  {:<8}  {:>9.3f} ms  {:>8}  {:>9}  {:>6}  {:>9.3f} MB  {:>8.1f}\n", k.name, width,
                         k.kind, static_cast<double>(k.ns) * 1e-6, k.launches, k.registers, k.instructions,
                         static_cast<double>(k.floor_bytes) * 1e-6, rate);
    }
  }
  if (r.texts_walked) out += fmt::format("texts that the host read: {}\n", r.texts_walked);
  if (r.columns_encoded) out += fmt::format("columns that the host encoded: {}\n", r.columns_encoded);
  if (r.column_bytes)
    out += fmt::format("columns to the device: {:.3f} MB{}\n", static_cast<double>(r.column_bytes) * 1e-6,
                       r.pinned_column_bytes
                           ? fmt::format(", {:.3f} MB of them from pinned memory", static_cast<double>(r.pinned_column_bytes) * 1e-6)
                           : "");
  if (r.mapped_column_bytes)
    out += fmt::format("columns that kernels read in the host's memory: {:.3f} MB\n", static_cast<double>(r.mapped_column_bytes) * 1e-6);
  for (const std::string& w : r.host_work) out += fmt::format("host work: {}\n", w);
  for (const std::string& f : r.fallbacks) out += fmt::format("fallback to the reference interpreter: {}\n", f);
  return out;
}

unsigned hue(Phase phase) { return static_cast<unsigned>(phase) * 47 % 360; }

// A line of marks for a chart `width` wide whose time is `ns`: the least of 1, 2 or 5 times a power of ten that makes at most ten.
std::string time_axis(uint64_t ns, double width, int y) {
  const double ms = static_cast<double>(ns) * 1e-6;
  double step = std::pow(10.0, std::floor(std::log10(ms / 10)));
  for (const double times : {1.0, 2.0, 5.0, 10.0})
    if (ms <= 10 * step * times) {
      step *= times;
      break;
    }
  const int digits = std::max(0, static_cast<int>(-std::floor(std::log10(step))));
  std::string out;
  for (int i = 0; i * step <= ms; ++i) {
    const double x = i * step / ms * width;
    out += fmt::format(
        "<path d=\"M{0:.2f} 0V{1}\" stroke=\"#ccc\"/><text x=\"{2:.2f}\" y=\"{3}\" "
        "text-anchor=\"{4}\">{5:.{6}f}{7}</text>",
        x, y + 4, x, y + 14,
        i == 0           ? "start"
        : x > width - 20 ? "end"
                         : "middle",
        i * step, digits, i == 0 ? " ms" : "");
  }
  return out + "\n";
}

// A flame chart of the run's events, one row per nesting depth, drawn as SVG rectangles with the phase and its time as
// tooltip; then what the device did, and an axis.
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
  const bool device = !t.device_spans().empty();
  const int rows = 20 * (depth + 1) + (device ? 24 : 0);
  std::string out = fmt::format("<svg viewBox=\"0 0 {} {}\" width=\"100%\">\n", width, rows + 18) +
                    time_axis(std::max<uint64_t>(1, end - begin), width, rows);
  const auto box = [&](Phase phase, uint64_t start, uint64_t duration, int y, const std::string& name) {
    double x = (static_cast<double>(start) - static_cast<double>(begin)) * scale,
           w = std::max(0.5, static_cast<double>(duration) * scale);
    out += fmt::format(
        "<g><title>{0}: {1:.3f} ms</title><rect x=\"{2:.2f}\" y=\"{3}\" width=\"{4:.2f}\" height=\"18\" "
        "fill=\"hsl({5},60%,70%)\"/>",
        html_escape(name), static_cast<double>(duration) * 1e-6, x, y, w, hue(phase));
    if (w > 7.0 * static_cast<double>(name.size()))
      out += fmt::format("<text x=\"{:.2f}\" y=\"{}\">{}</text>", x + 2, y + 13, html_escape(name));
    out += "</g>\n";
  };
  for (const Timings::Event& e : t.events()) {
    // What holds others is no overhead as a whole: only what none of them covers.
    std::string name(e.phase == Phase::overhead && !e.detail.empty() ? "" : phase_name(e.phase));
    if (!e.detail.empty()) name += (name.empty() ? "" : " ") + e.detail;
    box(e.phase, e.start_ns, e.duration_ns, 20 * e.depth, name);
  }
  for (const Timings::DeviceSpan& s : t.device_spans())
    box(s.phase, s.start_ns, s.duration_ns, 20 * (depth + 1) + 4, "device: " + s.name);
  return out + "</svg>\n";
}

// A bar per run, of the parts that its phases take; one scale for all, so that runs can be compared.
std::string stacked_bars(std::span<const RunReport> runs, PhaseGroup group) {
  uint64_t most = 0;
  size_t shown = 0, longest = 0;
  for (const RunReport& r : runs) {
    const uint64_t total = r.timings.total_ns(group) + r.timings.overlap_ns(group);
    most = std::max(most, total), shown += total > 0;
    longest = std::max(longest, fmt::formatted_size("{} run {}", r.program, r.run));
  }
  // Labels stand before the bars and totals behind them.
  const double left = std::min(600.0, 10 + 6.5 * static_cast<double>(longest)), width = 890 - left;
  if (most == 0) return "";
  std::string out = fmt::format("<h3>{}</h3>\n<svg viewBox=\"0 0 1000 {}\" width=\"100%\">\n",
                                group == PhaseGroup::compile ? "Compile" : "Execute", 16 * shown);
  size_t y = 0;
  for (const RunReport& r : runs) {
    const uint64_t total = r.timings.total_ns(group) + r.timings.overlap_ns(group);
    if (total == 0) continue;
    out += fmt::format("<text x=\"2\" y=\"{}\">{} run {}</text>", y + 11, html_escape(r.program), r.run);
    double x = left;
    for (size_t p = 0; p < phase_count; ++p) {
      const Phase phase = static_cast<Phase>(p);
      const uint64_t ns = r.timings.exclusive_ns(phase);
      if (phase_group(phase) != group || ns == 0) continue;
      const double w = static_cast<double>(ns) / static_cast<double>(most) * width;
      out += fmt::format(
          "<g><title>{}: {:.3f} ms</title><rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"14\" "
          "fill=\"hsl({},60%,70%)\"/></g>",
          phase_name(phase), static_cast<double>(ns) * 1e-6, x, y, w, hue(phase));
      x += w;
    }
    out +=
        fmt::format("<text x=\"{:.2f}\" y=\"{}\">{:.3f} ms</text>\n", x + 4, y + 11, static_cast<double>(total) * 1e-6);
    y += 16;
  }
  out += "</svg>\n<p>";
  for (size_t p = 0; p < phase_count; ++p)
    if (phase_group(static_cast<Phase>(p)) == group)
      out += fmt::format("<span style=\"color:hsl({},60%,70%)\">&#9632;</span> {} &nbsp; ", hue(static_cast<Phase>(p)),
                         phase_name(static_cast<Phase>(p)));
  return out + "</p>\n";
}

std::string bars(const Timings& t, PhaseGroup group) {
  uint64_t total = std::max<uint64_t>(1, t.total_ns(group) + t.overlap_ns(group));
  std::string out = "<div class=t><table>\n";
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
  return out + fmt::format("<tr><th>{}</th><th class=n>{:.3f} ms</th></tr></table></div>\n",
                           group == PhaseGroup::compile ? "compile" : "execute",
                           static_cast<double>(t.total_ns(group)) * 1e-6);
}

std::string html(std::span<const RunReport> runs) {
  std::string out =
      "<!DOCTYPE html>\n<html lang=en><meta charset=utf-8><meta name=viewport "
      "content=\"width=device-width\"><title>rndn: where the time went</title>\n<style>"
      "body{font:14px sans-serif;margin:1em;max-width:1100px}table{border-collapse:collapse;margin:.5em "
      "0}td,th{padding:2px 8px;text-align:left}"
      ".n{text-align:right;font-variant-numeric:tabular-nums}.b{width:300px}.t{overflow-x:auto}.b "
      "div{background:#6a9;height:12px}text{font:11px sans-serif}"
      "svg{border:1px solid #ccc}</style>\n";
  if (runs.size() > 1) out += stacked_bars(runs, PhaseGroup::compile) + stacked_bars(runs, PhaseGroup::execute);
  for (const RunReport& r : runs) {
    out += fmt::format(
        "<h2>{}</h2>\n<p>Total: {:.3f} ms</p>\n", html_escape(title(r)),
        static_cast<double>(r.timings.total_ns(PhaseGroup::compile) + r.timings.total_ns(PhaseGroup::execute)) * 1e-6);
    out += flame_chart(r.timings) + bars(r.timings, PhaseGroup::compile) + bars(r.timings, PhaseGroup::execute);
    if (!r.kernels.empty()) {
      out +=
          "<div class=t><table><tr><th>kernel<th>kind<th class=n>time<th class=n>launches<th class=n>registers<th "
          "class=n>instructions<th class=n title=\"bytes that it must read and write at least\">floor</tr>\n";
      for (const KernelReport& k : r.kernels)
        out += fmt::format(
            "<tr><td>{}<td>{}<td class=n>{:.3f} ms<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{:.3f} "
            "MB</tr>\n",
            html_escape(k.name), k.kind, static_cast<double>(k.ns) * 1e-6, k.launches, k.registers, k.instructions,
            static_cast<double>(k.floor_bytes) * 1e-6);
      out += "</table></div>\n";
    }
    for (const std::string& w : r.host_work) out += fmt::format("<p>Host work: {}</p>\n", html_escape(w));
    for (const std::string& f : r.fallbacks)
      out += fmt::format("<p>Fallback to the reference interpreter: {}</p>\n", html_escape(f));
  }
  return out + "</html>\n";
}

// Chrome's trace format: one process per run; its first thread is the host, its second the device.
std::string trace(std::span<const RunReport> runs) {
  std::string out = "{\"traceEvents\":[";
  bool first = true;
  for (size_t i = 0; i < runs.size(); ++i) {
    out += fmt::format("{}\n{{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":{},\"args\":{{\"name\":{}}}}}",
                       first ? "" : ",", i + 1, json_string(title(runs[i])));
    first = false;
    const auto thread = [&](int id, const char* name) {
      out +=
          fmt::format(",\n{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":\"{}\"}}}}",
                      i + 1, id, name);
    };
    const auto event = [&](int id, const std::string& name, const char* category, uint64_t start, uint64_t duration) {
      out += fmt::format(
          ",\n{{\"name\":{},\"cat\":\"{}\",\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f}}}",
          json_string(name), category, i + 1, id, static_cast<double>(start) * 1e-3,
          static_cast<double>(duration) * 1e-3);
    };
    thread(1, "host");
    for (const Timings::Event& e : runs[i].timings.events()) {
      std::string name(phase_name(e.phase));
      if (!e.detail.empty()) name += ' ' + e.detail;
      event(1, name, phase_group(e.phase) == PhaseGroup::compile ? "compile" : "execute", e.start_ns, e.duration_ns);
    }
    if (runs[i].timings.device_spans().empty()) continue;
    thread(2, "device");
    for (const Timings::DeviceSpan& s : runs[i].timings.device_spans())
      event(2, s.name, phase_name(s.phase).data(), s.start_ns, s.duration_ns);
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
