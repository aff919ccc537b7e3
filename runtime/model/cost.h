// What kernels will take, from what they do (work) and from what a device does in how much time
// (calibration.h). Pure functions of both.
//
//   T = max(M, A, I) + overlap * (the sum of the other two) + launch, with M = max(S, G, L)
//     S  bytes read and written in order, at the bandwidth that so many have. Of a vector of which a share a of the elements
//        is wanted, sectors of 32 bytes, 256/w elements of w bits each: n w/8 (1 - (1 - a)^(256/w))
//     G  elements read at computed places, by the bytes of what they are read of
//     L  sectors of both, at the rate of elements of a table that the second cache holds and the first does not. Elements that
//        come faster count as so much less of a sector, those of tables that the first cache holds, too: too much for small tables
//     A, I  additions to tables of groups, by the number of their entries; instructions of all threads
// The same in: S. B. Yao, "Approximating block accesses in database organizations", CACM 20(4), 1977 (the sectors), and
// the maximum of what a device does side by side: S. Williams, A. Waterman, D. Patterson, "Roofline", CACM 52(4), 2009.
//
// Left out: operators of the library, waits for earlier tiles, conflicts of banks, occupancy, the difference of reading and writing.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/model/calibration.h"

namespace rndn::model {

inline constexpr uint32_t no_column = UINT32_MAX;

// What one launch does. Counts are expectations, and no integers.
struct Work {
  std::string name;
  bool is_kernel = true;  // else an operator of the library or work of the host, of which only the name is known
  double rows = 0;
  struct Stream {
    double rows = 0, bits = 0, alive = 1;  // alive: the share of the rows whose elements are wanted
    uint32_t column = no_column;           // what is read, by the caller's numbers
  };
  struct Gather {
    double count = 0, table_bytes = 0, bytes = 4;
    uint32_t column = no_column;
  };
  struct Add {
    double count = 0, places = 1;
    bool is_shared = false;
  };
  std::vector<Stream> streams;
  std::vector<Gather> gathers;
  std::vector<Add> adds;
  double instructions = 0;  // of all threads
};

struct Cost {
  double stream_ns = 0, gather_ns = 0, add_ns = 0, issue_ns = 0, launch_ns = 0;
  double ns = 0;
  std::string_view bound;  // what the maximum is: memory, gathers, second cache, adds, instructions, launch
};

// Bytes of all sectors that the stream touches.
double bytes_of(const Work::Stream& s);
double bytes_of(const Work& w);
Cost cost_of(const Work& w, const Calibration& c);
// The kernels alone; and as a graph that the host waits for.
double kernels_ns(std::span<const Work> work, const Calibration& c);
double run_ns(std::span<const Work> work, const Calibration& c);

// What a column costs the bus: sent whole before its first use, or read by kernels in the host's memory, sector by sector, each time anew. A piece
// is what is wanted of 1,024 bytes around an element, at least a sector. Where kernels' reads were not measured, single sectors are taken to come
// at 0.4 of the speed of copies, pieces at as much more as they are longer, up to 0.95 of it: an H200's (docs/measurements/limits.tsv).
// Of no use as a time where copies were not measured either: that speed is 1 then.
struct Transfer {
  double sent_bytes = 0, read_bytes = 0;
  double sent_ns = 0, read_ns = 0;
  // By a quarter at least: selections are estimates.
  bool is_better_read() const { return read_ns <= 0.75 * sent_ns; }
};
Transfer transfer_of(std::span<const Work> work, uint32_t column, double bytes, const Calibration& c);

}  // namespace rndn::model
