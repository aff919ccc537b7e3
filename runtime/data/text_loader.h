// Loaders of delimited files. Private to this folder.
#pragma once
#include <memory>
#include <string>

#include "runtime/data/source.h"

namespace rndn::data {

// The tables of a schema whose files lie below `folder`. Checks that they do.
Result<std::unique_ptr<TableLoader>> open_text_schema(const std::string& folder, Schema schema,
                                                      const std::string& schema_path,
                                                      const SourceOptions& options);
// One file as the table `table`, with the schema that it shows (guess.h).
Result<std::unique_ptr<TableLoader>> open_text_file(const std::string& path,
                                                    const std::string& table,
                                                    const SourceOptions& options);

}  // namespace rndn::data
