// The library is never closed: its threads live on.
//
// RTLD_LOCAL: the symbols of Python that the wrapper defines must not reach anyone else in the
// process, who may load a real Python later. RTLD_LAZY: most of the symbols are functions, which
// nothing calls.
#include "runtime/planner/duckdb_api.h"

#include <dlfcn.h>

#include <type_traits>

#include "runtime/planner/database.h"

namespace rndn::planner {

Result<DuckdbApi> load_duckdb(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (!handle) return world_error("{}", dlerror());
  DuckdbApi api{};
  const char* missing = nullptr;
  auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
    if (!function) missing = name;
  };
#define DUCKDB(result, name, parameters) find(api.name, "duckdb_" #name);
#include "runtime/planner/duckdb_functions.def"
#undef DUCKDB
  // Another version may lack functions: the version says more.
  if (api.library_version && api.library_version() != pinned_version)
    return world_error("`{}` is DuckDB {}, not {}", path, api.library_version(), pinned_version);
  if (missing) return world_error("`{}` is no DuckDB: it has no {}", path, missing);
  return api;
}

}  // namespace rndn::planner
