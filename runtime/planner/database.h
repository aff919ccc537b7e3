// A private DuckDB in memory that answers texts: the one seam to the library, whichever way it was
// reached.
//
//   ASSIGN_OR_RETURN(std::unique_ptr<Database> db, open_database(Options::of_environment()));
//   db->ask("SELECT 'abc'");   // abc
//
// Ways: a shared library that exports the C API (that of tools/sql-planner, DuckDB's own
// libduckdb.so, or the module that a Python process has loaded), or a `python3` that imports
// duckdb, at the other end of a socket. All of them are the pinned version, and all give the same
// answers. No header of DuckDB is used: the ten functions of its C API that are called are declared
// in library.cpp.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libraries/base/errors/result.h"

namespace rndn::planner {

// The version whose plans frontend/sql reads: the format of plans is no promise of DuckDB's.
inline constexpr std::string_view pinned_version = "v2.0.1";

// The file that tools/sql-planner makes, in its folder.
inline constexpr const char* wrapper_name = "libduckdb-planner.so";

struct Options {
  std::string named;  // by $RNDN_DUCKDB: a library, a folder of tools/sql-planner, or a python3
  std::vector<std::string> folders;  // where tools/sql-planner may have put it
  std::string python = "python3";    // asked last
  // $RNDN_DUCKDB; share/duckdb beside the folder of this program, and one above (build/asan/bin
  // finds build/share).
  static Options of_environment();
};

class Database {
 public:
  virtual ~Database() = default;
  // Runs the statements; the first cell of the last one's result as text, empty where there is
  // none. What the library refuses is the input's fault, with its message; a library that does not
  // answer is the world's.
  virtual Result<std::string> ask(const std::string& statements) = 0;
  // The same database once more, for another thread, while this one lives; null: there is but one.
  virtual std::unique_ptr<Database> another() { return nullptr; }
};

// A library by its path.
Result<std::unique_ptr<Database>> open_library(const std::string& path);
// A Python by its name or path; `folder` (may be empty) is where it looks for duckdb when it has
// none of its own.
Result<std::unique_ptr<Database>> open_helper(const std::string& python, const std::string& folder);

// The first of: what is `named` (and nothing else then); the module that this process has loaded;
// the folders; the Python. When there is none: one line (fault world) that says what to install and
// what was tried.
Result<std::unique_ptr<Database>> open_database(const Options& options);

// The library among these, where there is one; empty: none.
std::string library_path(const Options& options);

// 'text' with its quotes doubled; "name" likewise.
std::string quote_text(std::string_view text);
std::string quote_name(std::string_view name);
// As SQL compares names: without the case of ASCII letters.
bool is_same_name(std::string_view a, std::string_view b);

}  // namespace rndn::planner
