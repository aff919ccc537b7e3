// What `--data` means: TPC-H generated in memory, or a folder.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "libraries/base/errors/result.h"
#include "runtime/data/source.h"

namespace rndn::tpch {

struct SourceOptions {
  unsigned threads = 0;  // 0: all cores
  bool progress = true;  // a line on stderr when it takes longer than a second
  std::string cache;     // folder for columns in binary form (runtime/data/cache.h); empty: none
};

// `tpch:SF`, such as tpch:0.01 (columns are generated on first use), else a folder with schema.json (runtime/data/source.h).
// A scale factor that is no positive number is wrong usage.
Result<std::shared_ptr<data::Source>> open_source(std::string_view text, const SourceOptions& options = {});
// The schema alone, for commands that read no data.
Result<data::Schema> open_schema(std::string_view text);

}  // namespace rndn::tpch
