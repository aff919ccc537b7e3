// Programs of the documentation, run as `rndn run --data examples/tutorial` runs them.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libraries/libdevice/library.h"
#include "runtime/data/tables.h"
#include "runtime/device/device.h"
#include "runtime/engine.h"

namespace rndn::docs {

enum class Where { reference, simulator };
inline constexpr Where both[] = {Where::reference, Where::simulator};
std::string_view name_of(Where where);

struct Outcome {
  std::string text;                    // what @print wrote and the results, as tables
  std::string error;                   // diagnostics or the message; empty: it ran
  std::vector<std::string> fallbacks;  // as the engine names them; simulator only
};

// Relative paths in programs start at the root of the project. One thread.
class Runner {
 public:
  Runner();
  Outcome run(Where where, const std::string& name, const std::string& program);
  bool has_math();  // libdevice is there: the functions of mathematics have device code

 private:
  std::shared_ptr<data::Source> source_;
  data::SourceTables tables_;
  libdevice::Math math_;
  std::unique_ptr<device::Device> simulator_;
  runtime::Engine engine_;
};

// The text of a file; a failed test when it cannot be read.
std::string read(const std::string& path);
// Names of the files in a folder below the root that end so, sorted, with that ending cut off.
std::vector<std::string> stems(const std::string& folder, const std::string& ending);

// The rows of printed results on one line: "1 fig, 2 pear | 3". Blanks in a row count as one, a
// result without rows is "()". `heads`: with the columns' names.
std::string rows_of(const std::string& printed, bool heads);
// Equal, but for the last digits of floats: functions of libdevice and those of the C library
// round differently, by less than 1e-12 of the value.
bool agree(std::string_view a, std::string_view b);

}  // namespace rndn::docs
