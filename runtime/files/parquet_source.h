// Parquet files as a table. Private to this folder.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/data/batches.h"

namespace rndn::files {

// The same files through another reader, for what this one does not take.
using OpenOther = std::function<Result<std::unique_ptr<data::BatchSource>>()>;

// `paths` are the files in their order.
Result<std::unique_ptr<data::BatchSource>> open_parquet(const std::string& place,
                                                        std::vector<std::string> paths,
                                                        OpenOther open_other);

}  // namespace rndn::files
