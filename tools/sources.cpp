// The sources of tables that `rndn` knows beside files and folders: a row each.
#include <array>

#include "runtime/data/cache.h"
#include "runtime/files/files.h"
#include "ssb/source.h"
#include "tools/rndn.h"
#include "tpch/source.h"

namespace rndn::tools {

std::span<const data::Scheme> schemes() {
  static const std::array rows = {tpch::scheme, ssb::scheme, ssb::joins_scheme};
  return rows;
}

data::SourceOptions source_options() {
  data::SourceOptions options;
  options.formats = files::formats();
  return options;
}

data::SourceNames source_names(const Flags& flags) {
  return {.data = flags.data, .tables = flags.tables};
}

std::string file_cache(const Flags& flags) {
  return flags.no_cache ? "" : flags.cache.empty() ? data::default_cache_directory() : flags.cache;
}

Result<std::shared_ptr<data::Source>> open_data(const data::SourceNames& names,
                                                const Flags& flags) {
  if (names.empty()) return std::shared_ptr<data::Source>();
  data::SourceOptions options = source_options();
  options.cache = flags.cache;
  const CancelToken token(flags.limits, CancelToken::current());
  const CancelScope scope(token);
  return errors_of([&] { return data::open_source(names, schemes(), options, file_cache(flags)); });
}

Result<data::Schema> open_schema(const Flags& flags) {
  const data::SourceNames names = source_names(flags);
  if (names.empty()) {
    data::Schema schema = tpch::schema();
    schema.assumed =
        "without --data the tables are TPC-H's: --data FILE or FOLDER, or --table NAME=FILE, names yours";
    return schema;
  }
  return data::open_schema(names, schemes(), source_options(), file_cache(flags));
}

}  // namespace rndn::tools
