// Arrow IPC files and streams as tables. Private to this folder.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/data/source.h"

namespace rndn::files {

// Files in their order, all of one schema.
Result<std::unique_ptr<data::TableLoader>> open_arrow_files(const std::string& place,
                                                            std::vector<std::string> paths,
                                                            const std::string& table);

}  // namespace rndn::files
