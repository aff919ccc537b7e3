// Finding and loading the library: what is said when it is not there, and what loading it leaves
// alone.
#include <dlfcn.h>
#include <gmock/gmock.h>

#include <cstdlib>

#include "tests/planner/support.h"

namespace rndn::planner {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
namespace fs = std::filesystem;

std::string problem(const Options& options) {
  auto opened = Planner::open(options);
  if (opened) return "opened";
  EXPECT_EQ(opened.error().fault, Fault::world);
  EXPECT_THAT(opened.error().message, Not(HasSubstr("\n")));
  return opened.error().message;
}

Options only(const std::string& named) {
  Options options;
  options.named = named;
  return options;
}

TEST(Search, SaysWhatToInstall) {
  Options options;
  options.folders = {"/nonexistent"};
  options.python = "/nonexistent/python3";
  EXPECT_EQ(problem(options),
            "SQL needs DuckDB 2.0.1 as its planner: run tools/sql-planner, which installs it "
            "(cannot run `/nonexistent/python3`: No such file or directory)");
}

TEST(Search, SaysWhatIsWrongWithANamedLibrary) {
  const std::string start = "SQL needs DuckDB 2.0.1 as its planner, and RNDN_DUCKDB names ";
  EXPECT_THAT(problem(only("/nonexistent/libduckdb.so")),
              StartsWith(start + "`/nonexistent/libduckdb.so`: "));
  EXPECT_THAT(problem(only("/tmp")),
              AllOf(StartsWith(start + "`/tmp`: "), HasSubstr(wrapper_name)));
  EXPECT_EQ(problem(only("libm.so.6")),
            start + "`libm.so.6`: `libm.so.6` is no DuckDB: it has no duckdb_free");
  EXPECT_EQ(problem(only(RNDN_FAKE_DUCKDB)),
            start + fmt::format("`{0}`: `{0}` is DuckDB v1.4.5, not v2.0.1", RNDN_FAKE_DUCKDB));
  EXPECT_THAT(problem(only("python-that-is-not-there")), EndsWith("No such file or directory"));
}

// The module that Python ships needs an interpreter: that is said, not met as a crash.
TEST(Search, RefusesTheBareModule) {
  const std::string folder = installed_folder();
  if (folder.empty()) GTEST_SKIP() << "skipped: tools/sql-planner has not installed the planner";
  std::string module;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().filename().string().starts_with("_duckdb.")) module = entry.path().string();
  auto refuse = [&] {  // in a process of its own, which has not loaded it through the wrapper
    std::_Exit(problem(only(module)).find("undefined symbol: Py") == std::string::npos);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(refuse(), testing::ExitedWithCode(0), "");
}

// A helper that ends, or speaks of something else, is an error of the world.
TEST(Search, SaysThatAHelperHasEnded) {
  const std::string folder = testing::TempDir() + "rndn_planner_" + std::to_string(getpid());
  fs::create_directories(folder);
  auto program = [&](const std::string& text) {
    const std::string path = folder + "/python-fake";
    std::ofstream(path) << "#!/bin/sh\n" << text;
    fs::permissions(path, fs::perms::owner_all);
    return path;
  };
  EXPECT_THAT(problem(only(program("exit 0\n"))), HasSubstr("has ended without an answer"));
  EXPECT_THAT(problem(only(program("printf '\\007\\000\\000\\000\\000\\000\\000\\000+v1.4.5'\n"))),
              EndsWith("has DuckDB v1.4.5, not v2.0.1"));
  EXPECT_THAT(problem(only(program("printf '\\007\\000\\000\\000\\000\\000\\000\\000+v2.0.1'\n"))),
              HasSubstr("has ended without an answer"));
  fs::remove_all(folder);
}

TEST(Loading, LeavesNoSymbolOfPythonInTheProcess) {
  REQUIRE_PLANNER();
  auto planner = open_shop();
  ASSERT_NE(planner, nullptr);
  ASSERT_TRUE(plan_text(*planner, "select 1").planned);
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "PyExc_ImportError"), nullptr);
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "duckdb_open"), nullptr);
}

// What runs in a Python that meets two copies of DuckDB.
constexpr const char* use_of_module =
    "import duckdb\n"
    "con = duckdb.connect()\n"
    "con.execute('create table t as select i, i * 2 as k from range(100000) r(i)')\n"
    "assert con.execute('select sum(k) from t').fetchone()[0] == 9999900000\n"
    "try:\n"
    "    con.execute('selec')\n"
    "    raise SystemExit('no error')\n"
    "except duckdb.ParserException:\n"
    "    pass\n";

// The other copy of the package, as a user has it: another file, so that the loader does not take
// it for ours.
std::string copied_package(const std::string& folder) {
  const std::string copy = testing::TempDir() + "rndn_duckdb_" + std::to_string(getpid());
  fs::remove_all(copy);
  fs::copy(folder, copy, fs::copy_options::recursive);
  return copy;
}

TEST(Loading, InAPythonThatImportsDuckdbAfterwards) {
  const std::string folder = installed_folder();
  if (folder.empty()) GTEST_SKIP() << "skipped: tools/sql-planner has not installed the planner";
  if (const std::string misfit = python_misfit(folder); !misfit.empty()) GTEST_SKIP() << misfit;
  const std::string copy = copied_package(folder);
  std::ofstream(copy + "/use.py") << "import ctypes, sys\n"
                                     "ours = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_LOCAL)\n"
                                     "ours.duckdb_library_version.restype = ctypes.c_char_p\n"
                                     "database = ctypes.c_void_p()\n"
                                     "assert ours.duckdb_open(None, ctypes.byref(database)) == 0\n"
                                  << use_of_module
                                  << "assert ours.duckdb_library_version() == b'v2.0.1'\n"
                                     "ours.duckdb_close(ctypes.byref(database))\n";
  const std::string command =
      fmt::format("PYTHONPATH='{0}' python3 '{0}/use.py' '{1}/{2}'", copy, folder, wrapper_name);
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  fs::remove_all(copy);
}

// This process has no Python when it plans; then it loads one, which imports its own copy.
TEST(Loading, BeforePythonIsEmbedded) {
  const std::string folder = installed_folder();
  if (folder.empty()) GTEST_SKIP() << "skipped: tools/sql-planner has not installed the planner";
  const bool is_311 = fs::exists(folder + "/_duckdb.cpython-311-x86_64-linux-gnu.so");
  const char* name = nullptr;
  for (const char* candidate :
       {"libpython3.11.so.1.0", "libpython3.12.so.1.0", "libpython3.13.so.1.0"})
    if (is_311 == (std::string_view(candidate).find("3.11") != std::string_view::npos) && !name)
      if (void* found = dlopen(candidate, RTLD_LAZY | RTLD_LOCAL)) {
        dlclose(found);
        name = candidate;
      }
  if (!name) GTEST_SKIP() << "skipped: there is no libpython3 that the package fits";
  const std::string copy = copied_package(folder);
  auto embed = [&] {
    auto planner = open_shop();
    if (!planner || !plan_text(*planner, "select 1").planned) std::_Exit(2);
    void* python = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
    if (!python) std::_Exit(3);
    setenv("PYTHONHOME", "/usr", 1);
    setenv("PYTHONPATH", copy.c_str(), 1);
    reinterpret_cast<void (*)()>(dlsym(python, "Py_Initialize"))();
    const auto run = reinterpret_cast<int (*)(const char*)>(dlsym(python, "PyRun_SimpleString"));
    if (run(use_of_module) != 0) std::_Exit(4);
    if (!plan_text(*planner, "select count(*) from orders").planned) std::_Exit(5);
    std::_Exit(0);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(embed(), testing::ExitedWithCode(0), "");
  fs::remove_all(copy);
}

}  // namespace
}  // namespace rndn::planner
