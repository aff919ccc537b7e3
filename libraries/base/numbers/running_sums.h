// Running sums of floats, in the one order in which every device adds them.
//
//   running_sums(x, starts);   // x becomes its running sums, which begin anew where starts says so
//
// The order of libraries/operators/scan.cpp: ranges of `range_rows` are added up, their sums are
// scanned in the same way, and each range is scanned after what stands before it. Within 32 rows an
// element and those before it are added in halves (Hillis, Steele, "Data Parallel Algorithms", CACM
// 1986). An element is added at most 64 times on each of L levels, n <= 512^L: no sum is farther
// from the exact one than 2^-47 L times the sum of the absolute values, where that is finite.
// Cost: one pass for each level, on the host.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rndn {

namespace scans {

inline constexpr size_t range_rows = 512, lanes = 32;

struct Total {
  double sum = 0;  // of the elements from the last start on
  bool has_start = false;
};

// One range: x becomes its running sums after `before`. `halves`: not where they are there already.
inline Total add_up(std::span<double> x, std::span<const uint8_t> starts, double before,
                    bool halves = true) {
  Total total{before};
  for (size_t base = 0; base < x.size(); base += lanes) {
    const size_t here = std::min(lanes, x.size() - base);
    double sums[lanes] = {}, earlier[lanes];
    size_t reach[lanes];  // how many elements before a lane's belong to its sum
    bool open[lanes];     // no start up to this lane
    for (size_t lane = 0; lane < lanes; ++lane) {
      const bool begins = lane < here && starts[base + lane] != 0;
      if (lane < here) sums[lane] = x[base + lane];
      open[lane] = !begins && (lane == 0 || open[lane - 1]);
      reach[lane] = begins || lane == 0 ? 0 : reach[lane - 1] + 1;
      total.has_start |= begins;
    }
    for (size_t distance = 1; halves && distance < lanes; distance *= 2) {
      std::copy(std::begin(sums), std::end(sums), earlier);
      for (size_t lane = distance; lane < lanes; ++lane)
        if (reach[lane] >= distance) sums[lane] = earlier[lane - distance] + earlier[lane];
    }
    for (size_t lane = 0; lane < lanes; ++lane)
      if (open[lane]) sums[lane] = total.sum + sums[lane];
    std::copy(sums, sums + here, x.begin() + static_cast<ptrdiff_t>(base));
    total.sum = sums[lanes - 1];
  }
  return total;
}

}  // namespace scans

// `halves` is false where x has the running sums of each 32 elements, from a start before the first
// of them: they are only put together. So a device does the most of it for a few rows at a time.
inline void running_sums(std::span<double> x, std::span<const uint8_t> starts, bool halves = true) {
  const size_t ranges = (x.size() + scans::range_rows - 1) / scans::range_rows;
  const auto part = [](auto of, size_t r) {
    const size_t from = r * scans::range_rows;
    return of.subspan(from, std::min(scans::range_rows, of.size() - from));
  };
  std::vector<double> totals;
  if (ranges > 1) {
    std::vector<uint8_t> has_start;
    for (size_t r = 0; r < ranges; ++r) {
      const auto own = part(x, r);
      std::vector<double> copy(own.begin(), own.end());
      const scans::Total total = scans::add_up(copy, part(starts, r), 0, halves);
      totals.push_back(total.sum);
      has_start.push_back(total.has_start);
    }
    running_sums(totals, has_start);
  }
  for (size_t r = 0; r < ranges; ++r)
    scans::add_up(part(x, r), part(starts, r), r > 0 ? totals[r - 1] : 0, halves);
}

}  // namespace rndn
