// The benchmarks of papers: a command each, and what it measures as a function, for tests on other
// devices.
#pragma once
#include <memory>
#include <span>

#include "runtime/model/calibration.h"
#include "tools/papers/figures.h"
#include "tools/papers/harness.h"

namespace rndn::tools::papers {

// sizes: rows of the largest table, as powers of two.
Figures kernel_weaver_table();
Result<void> measure_kernel_weaver(Harness& harness, std::span<const unsigned> sizes, Figures& figures);

Figures multi_bsp_table();
Result<void> measure_multi_bsp(Harness& harness, std::span<const unsigned> sizes, Figures& figures);

struct HorseqcSizes {
  double scale = 10;  // of SSB and TPC-H
  uint64_t rows = 60'000'000, groups = 16'384;
  std::vector<std::string> queries;  // none: all
};
// The names of those of a list such as 1.1,q06,17-19 that the wanted figures have; none: all. Fails (fault usage) for
// what there is not.
Result<std::vector<std::string>> horseqc_queries(const Settings& settings, const std::vector<std::string>& list);
Figures horseqc_table();
// transfer: bytes per second from the host; 0: nothing is said of it.
Result<void> measure_horseqc(Harness& harness, const HorseqcSizes& sizes, double transfer, Figures& figures);

struct YinYangSizes {
  double scale = 10;  // of SSB
  uint64_t rows = 60'000'000, keys = 4 << 20;
  std::vector<std::string> queries;        // of SSB
  std::vector<model::Calibration> models;  // of the device, where figures 6b and 13 to 16 are wanted, and of others
};
Figures yin_yang_table();
Result<void> measure_yin_yang(Harness& harness, const YinYangSizes& sizes, Figures& figures);

}  // namespace rndn::tools::papers

namespace rndn::tools {
std::unique_ptr<Command> bench_kernel_weaver_command(CLI::App& bench);
std::unique_ptr<Command> bench_multi_bsp_command(CLI::App& bench);
std::unique_ptr<Command> bench_horseqc_command(CLI::App& bench);
std::unique_ptr<Command> bench_yin_yang_command(CLI::App& bench);
}  // namespace rndn::tools
