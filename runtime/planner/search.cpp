// Where the planner's library is.
#include <link.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "runtime/planner/database.h"

namespace rndn::planner {
namespace {

namespace fs = std::filesystem;

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// The path of the duckdb module that a Python of this process has loaded; empty: none.
std::string loaded_module() {
  std::string found;
  auto look = [](dl_phdr_info* info, size_t, void* out) {
    const std::string path = info->dlpi_name ? info->dlpi_name : "";
    const std::string name = fs::path(path).filename().string();
    // That of tools/sql-planner is reached through its wrapper.
    if (!name.starts_with("_duckdb.") || exists(fs::path(path).parent_path() / wrapper_name))
      return 0;
    *static_cast<std::string*>(out) = path;
    return 1;
  };
  dl_iterate_phdr(look, &found);
  return found;
}

}  // namespace

Options Options::of_environment() {
  Options options;
  if (const char* named = std::getenv("RNDN_DUCKDB")) options.named = named;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error)
    for (const fs::path& above :
         {program.parent_path().parent_path(), program.parent_path().parent_path().parent_path()})
      options.folders.push_back((above / "share/duckdb").string());
  return options;
}

Result<std::unique_ptr<Database>> open_database(const Options& options) {
  if (!options.named.empty()) {
    const fs::path named = options.named;
    std::error_code ignored;
    auto opened = fs::is_directory(named, ignored) ? open_library((named / wrapper_name).string())
                  : named.filename().string().starts_with("python") ? open_helper(options.named, "")
                                                                    : open_library(options.named);
    if (opened) return opened;
    return world_error("SQL needs DuckDB {} as its planner, and RNDN_DUCKDB names `{}`: {}",
                       pinned_version.substr(1), options.named, opened.error().message);
  }
  std::string tried;
  auto attempt = [&](Result<std::unique_ptr<Database>> opened) {
    if (!opened) tried += (tried.empty() ? "" : "; ") + opened.error().message;
    return opened;
  };
  if (const std::string module = loaded_module(); !module.empty())
    if (auto opened = attempt(open_library(module))) return opened;
  std::string folder;
  for (const std::string& candidate : options.folders) {
    const std::string library = (fs::path(candidate) / wrapper_name).string();
    if (!exists(library)) continue;
    if (folder.empty()) folder = candidate;
    if (auto opened = attempt(open_library(library))) return opened;
  }
  if (auto opened = attempt(open_helper(options.python, folder))) return opened;
  return world_error(
      "SQL needs DuckDB {} as its planner: run tools/sql-planner, which installs it ({})",
      pinned_version.substr(1), tried);
}

std::string library_path(const Options& options) {
  std::error_code ignored;
  if (!options.named.empty()) {
    const fs::path named = options.named;
    if (fs::is_directory(named, ignored)) return (named / wrapper_name).string();
    return named.filename().string().starts_with("python") ? "" : options.named;
  }
  if (std::string module = loaded_module(); !module.empty()) return module;
  for (const std::string& folder : options.folders)
    if (std::string library = (fs::path(folder) / wrapper_name).string(); exists(library))
      return library;
  return "";
}

std::string quote_text(std::string_view text) {
  std::string out = "'";
  for (char c : text) out.append(c == '\'' ? 2 : 1, c);
  return out + '\'';
}

std::string quote_name(std::string_view name) {
  std::string out = "\"";
  for (char c : name) out.append(c == '"' ? 2 : 1, c);
  return out + '"';
}

bool is_same_name(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace rndn::planner
