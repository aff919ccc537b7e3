// Results as Arrow IPC. Private to this folder.
#pragma once
#include <string>

#include "libraries/base/errors/result.h"
#include "libraries/base/system/files.h"
#include "runtime/data/arrow_abi.h"

namespace rndn::files {

// As a file, or as a stream without marks. Columns are not nested and have no dictionary; each
// array of the stream is a batch.
Result<void> write_arrow(data::ArrowStream stream, bool as_file, NewFile& file);

}  // namespace rndn::files
