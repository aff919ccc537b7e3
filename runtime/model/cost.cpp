#include "runtime/model/cost.h"

#include <algorithm>
#include <cmath>

namespace rndn::model {
namespace {

constexpr double sector_bits = 256;
constexpr double piece_bytes = 1024;  // of Rate::host_mapped, the largest
constexpr double in_second_cache = 4 << 20;  // bytes of a table that no first cache holds, and the second ones of most targets do

// Of so many bytes in order. More never take less: between two points time, and not bandwidth, is on a straight line,
// and it does not fall from a point to a larger one.
double stream_ns(double bytes, const std::vector<Point>& read) {
  if (bytes <= 0 || read.empty()) return 0;
  double at = 0, ns = 0;
  for (const Point& p : read) {
    const double here = std::max(ns, p.at / p.median * 1e9);
    if (bytes <= p.at) return ns + (here - ns) * (bytes - at) / (p.at - at);
    at = p.at, ns = here;
  }
  return ns + (bytes - at) / read.back().median * 1e9;
}

Rate gather_rate(double bytes) { return bytes <= 1 ? Rate::gather_1 : bytes <= 4 ? Rate::gather_4 : Rate::gather_8; }

}  // namespace

double bytes_of(const Work::Stream& s) {
  if (s.bits <= 0 || s.rows <= 0) return 0;
  const double alive = std::clamp(s.alive, 0.0, 1.0), in_sector = std::max(1.0, sector_bits / s.bits);
  return s.rows * s.bits / 8 * (1 - std::pow(1 - alive, in_sector));
}

double bytes_of(const Work& w) {
  double bytes = 0;
  for (const Work::Stream& s : w.streams) bytes += bytes_of(s);
  return bytes;
}

Cost cost_of(const Work& w, const Calibration& c) {
  Cost out;
  if (!w.is_kernel) return out;
  out.stream_ns = stream_ns(bytes_of(w), c.of(Rate::read));
  // An element of a table that is read faster than the second cache gives sectors is so much less than one.
  double sectors = bytes_of(w) / (sector_bits / 8);
  const double sector_rate = c.value(Rate::gather_4, in_second_cache);
  for (const Work::Gather& g : w.gathers) {
    const double rate = c.value(gather_rate(g.bytes), g.table_bytes);
    out.gather_ns += g.count / rate * 1e9;
    sectors += g.count * std::min(1.0, sector_rate / rate);
  }
  const double cache_ns = sector_rate > 0 ? sectors / sector_rate * 1e9 : 0;
  for (const Work::Add& a : w.adds)
    out.add_ns += a.count / c.value(a.is_shared ? Rate::add_shared : Rate::add_global, a.places) * 1e9;
  out.issue_ns = w.instructions / c.value(Rate::issue) * 1e9;
  out.launch_ns = c.value(Rate::launch);
  std::pair<double, std::string_view> memory = {out.stream_ns, "memory"};
  if (out.gather_ns > memory.first) memory = {out.gather_ns, "gathers"};
  if (cache_ns > memory.first) memory = {cache_ns, "second cache"};
  const std::pair<double, std::string_view> parts[] = {memory, {out.add_ns, "adds"}, {out.issue_ns, "instructions"}};
  double most = 0, all = 0;
  for (const auto& [ns, name] : parts) {
    if (ns > most) out.bound = name;
    most = std::max(most, ns), all += ns;
  }
  if (out.launch_ns >= most) out.bound = "launch";
  out.ns = most + c.value(Rate::overlap) * (all - most) + out.launch_ns;
  return out;
}

Transfer transfer_of(std::span<const Work> work, uint32_t column, double bytes, const Calibration& c) {
  const double copies = c.of(Rate::host_pinned).empty() ? 1 : c.value(Rate::host_pinned);
  const std::vector<Point>& measured = c.of(Rate::host_mapped);
  const auto speed = [&](double piece) {
    if (!measured.empty()) return c.value(Rate::host_mapped, piece);
    return copies * std::min(0.95, 0.4 * piece / 32);
  };
  Transfer out{.sent_bytes = bytes, .sent_ns = bytes / copies * 1e9};
  const auto read = [&](double of, double piece) {
    out.read_bytes += of;
    out.read_ns += of / speed(piece) * 1e9;
  };
  for (const Work& w : work) {
    for (const Work::Stream& s : w.streams)
      if (s.column == column && s.rows > 0) {
        const double all = s.rows * s.bits / 8, wanted = bytes_of(s);
        if (wanted > 0) read(wanted, std::max(32.0, piece_bytes * wanted / all));
      }
    for (const Work::Gather& g : w.gathers)
      if (g.column == column) read(32 * g.count, 32);
  }
  return out;
}

double kernels_ns(std::span<const Work> work, const Calibration& c) {
  double ns = 0;
  for (const Work& w : work) ns += cost_of(w, c).ns;
  return ns;
}

double run_ns(std::span<const Work> work, const Calibration& c) {
  double ns = c.value(Rate::wait);
  for (const Work& w : work)
    if (w.is_kernel) {
      const Cost cost = cost_of(w, c);
      ns += cost.ns - cost.launch_ns + c.value(Rate::graph_node);
    }
  return ns;
}

}  // namespace rndn::model
