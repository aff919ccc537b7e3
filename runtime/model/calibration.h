// What a device does in how much time, as `rndn devices --calibrate` measured it: a file of JSON.
#pragma once
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libraries/base/errors/result.h"

namespace rndn::model {

// What is measured. Of kernels, times are without what an empty one takes. cost.h reads what kernels, their launches and
// transfers are made of; copies and unpacking (whose instructions count in kernels) are for decisions yet to be made by it.
enum class Rate : uint8_t {
  read,         // bytes per second, by the bytes of all
  copy,         // the same of a copy on the device: read and written
  launch,       // ns of an empty kernel between two marks
  graph_node,   // of one as a node of a graph, behind another
  wait,         // ns until the host knows that an empty kernel is done
  gather_1,     // elements of 1 byte at random places per second, by the bytes of the table
  gather_4,     // of 4
  gather_8,     // of 8
  add_global,   // integers of 4 bytes added to memory per second, by the number of places
  add_shared,   // the same to shared memory
  host_pinned,  // bytes per second to the device, from pinned memory by its address
  host_staged,  // from other memory
  host_mapped,  // bytes per second that kernels read of pinned memory, by how many they read in a piece; sectors of 32 bytes each
  unpack,       // elements of bit-packed vectors per second, by their bits
  issue,        // instructions of threads per second
  overlap,  // what the shorter of two works of a kernel adds to its time, as a share of it: fitted on kernels that read and add or compute
};
struct RateRow {
  Rate rate;
  std::string_view name, unit, by;  // by: what points are of; empty: there is one point
  bool may_lack = false;            // files from before it was measured are read all the same
};
inline constexpr RateRow rate_rows[] = {
    {Rate::read, "read", "B/s", "bytes"},
    {Rate::copy, "copy", "B/s", "bytes"},
    {Rate::launch, "launch", "ns", ""},
    {Rate::graph_node, "graph node", "ns", ""},
    {Rate::wait, "wait", "ns", ""},
    {Rate::gather_1, "gather of 1 byte", "1/s", "bytes of the table"},
    {Rate::gather_4, "gather of 4 bytes", "1/s", "bytes of the table"},
    {Rate::gather_8, "gather of 8 bytes", "1/s", "bytes of the table"},
    {Rate::add_global, "add in global memory", "1/s", "places"},
    {Rate::add_shared, "add in shared memory", "1/s", "places"},
    {Rate::host_pinned, "host to device, pinned", "B/s", ""},
    {Rate::host_staged, "host to device, staged", "B/s", ""},
    {Rate::host_mapped, "host memory read by kernels", "B/s", "bytes in a piece", true},
    {Rate::unpack, "unpack", "1/s", "bits"},
    {Rate::issue, "issue", "1/s", ""},
    {Rate::overlap, "overlap", "share", ""},
};
inline constexpr size_t rate_count = std::size(rate_rows);

struct Point {
  double at = 0;  // by what the row says
  double median = 0, low = 0, high = 0;
};

struct Calibration {
  std::vector<std::pair<std::string, std::string>> facts;  // device, driver, ..
  std::array<std::vector<Point>, rate_count> points;       // by Rate, ascending

  std::vector<Point>& of(Rate r) { return points[static_cast<size_t>(r)]; }
  const std::vector<Point>& of(Rate r) const { return points[static_cast<size_t>(r)]; }
  // The value there: on a straight line between the logarithms of its neighbours; beyond the ends that of the end.
  double value(Rate r, double at = 0) const;
};

std::string to_json(const Calibration& c);
// Fault input, with what was expected and found, and where: no such file, another one's, a damaged one. `name`: the file's.
Result<Calibration> parse_calibration(const std::string& text, const std::string& name);

}  // namespace rndn::model
