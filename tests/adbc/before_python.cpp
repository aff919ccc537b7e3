// A process without Python that runs a query by the driver, and has a Python afterwards:
//   adbc_before_python DRIVER SCRIPT    exit code 0: query, script and a second query went well
// Python is opened as a plug-in's host would: by dlopen, its symbols for everyone.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "runtime/adbc/adbc_abi.h"

namespace {

AdbcError error{};

void check(bool is_good, const char* what) {
  if (is_good) return;
  const char* loader = dlerror();
  std::fprintf(stderr, "%s: %s\n", what,
               error.message ? error.message : loader ? loader : "failed");
  std::exit(1);
}
template <class Function>
Function* find(void* library, const char* name) {
  auto* found = reinterpret_cast<Function*>(dlsym(library, name));
  check(found, name);
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  check(library, "the driver");
  AdbcDriver d{};
  check(!find<AdbcDriverInitFunc>(library, "AdbcDriverInit")(ADBC_VERSION_1_1_0, &d, &error),
        "init");
  AdbcDatabase database{};
  AdbcConnection connection{};
  AdbcStatement statement{};
  check(!d.DatabaseNew(&database, &error) &&
            !d.DatabaseSetOption(&database, "rndn.device", "cpu", &error) &&
            !d.DatabaseInit(&database, &error) && !d.ConnectionNew(&connection, &error) &&
            !d.ConnectionInit(&connection, &database, &error) &&
            !d.StatementNew(&connection, &statement, &error),
        "a statement");
  const auto run = [&] {
    ArrowArrayStream stream{};
    check(!d.StatementSetSqlQuery(&statement, "SELECT sum(a) FROM (VALUES (1), (41)) AS t(a)",
                                  &error) &&
              !d.StatementExecuteQuery(&statement, &stream, nullptr, &error),
          "a query");
    stream.release(&stream);
  };
  run();
  void* python = dlopen(PYTHON_LIBRARY, RTLD_NOW | RTLD_GLOBAL);
  check(python, "python");
  find<void()>(python, "Py_Initialize")();
  check(find<int(const char*, void*)>(python, "PyRun_SimpleStringFlags")(argv[2], nullptr) == 0,
        "the script");
  run();
  check(find<int()>(python, "Py_FinalizeEx")() == 0, "the end of Python");
  std::puts("unharmed");
  return 0;
}
