// Reports of where the time went: --time=text|json|html|trace. Keys of the JSON are the contract of the command line.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libraries/base/report/timing.h"

namespace rndn::runtime {

struct KernelReport {
  std::string name;
  std::string kind = "outlined";                               // outlined | fused | library
  uint32_t registers = 0, shared_bytes = 0, instructions = 0;  // instructions: 0 when another compiler made the code
  uint32_t launches = 0;
  uint64_t ns = 0;           // device time of all launches
  uint64_t floor_bytes = 0;  // bytes that one launch must move at least: the largest launch of the library, else the last
  uint64_t all_floor_bytes = 0;  // the same of all launches together
  uint32_t late = 0;         // codes that launches of the run made: outlined, for forms of vectors that were not foreseen
};

// One run of one program.
struct RunReport {
  std::string program;  // "q06"
  uint32_t run = 1;     // from 1
  std::string arch, device, backend;
  Timings timings;  // compile: only of the first run, zero afterwards
  std::vector<KernelReport> kernels;
  uint64_t texts_walked = 0;           // texts that the host read before the results (Engine::run)
  uint64_t columns_encoded = 0;        // that the host put in another form for the device (Engine::columns_encoded)
  uint64_t column_bytes = 0;           // that went to the device in this run (Engine::column_bytes)
  uint64_t pinned_column_bytes = 0;    // of these, from pinned memory
  uint64_t mapped_column_bytes = 0;    // beside these: of columns that kernels were given in the host's memory
  std::vector<std::string> host_work{};  // in host memory, of what does not fit on the device
  std::vector<std::string> fallbacks;  // builtins that ran on the reference interpreter though the device was another
};

enum class TimeFormat : uint8_t { text, json, html, trace };
bool find_time_format(std::string_view name, TimeFormat& format);

// The whole report. json: one object for one run of one program, else an array. Within each group the phases add up to
// total_ns + overlap_ns exactly.
std::string report(std::span<const RunReport> runs, TimeFormat format);

}  // namespace rndn::runtime
