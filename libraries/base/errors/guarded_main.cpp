#include "libraries/base/errors/guarded_main.h"

#include <cxxabi.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <typeinfo>

#include "libraries/base/errors/result.h"
#include "libraries/base/system/cancel.h"

namespace rndn {

namespace {

// Freed memory stays with the process: a compilation takes the pages of the one before it, instead of having the kernel clear them again. Large blocks,
// such as columns, still go back at once.
void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
  mallopt(M_MMAP_THRESHOLD, 4 << 20);
#endif
}

}  // namespace

// Nothing here may allocate before the message is out: memory may be what is missing.
int guarded_main(int (*body)(int, char**), int argc, char** argv) {
  keep_freed_memory();
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of its write
  try {
    const int code = body(argc, argv);
    errno = 0;
    if (code == 0 && (std::fflush(stdout) != 0 || std::ferror(stdout))) {  // what was printed is not lost in silence
      std::fprintf(stderr, "error: cannot write `stdout`: %s\n", std::strerror(errno ? errno : EIO));
      return static_cast<int>(Fault::world);
    }
    return code;
  } catch (const Cancelled& cancelled) {
    std::fprintf(stderr, "%s%s\n", cancelled.error.fault == Fault::interrupted ? "" : "error: ",
                 cancelled.error.message.c_str());
    return cancelled.error.exit_code();
  } catch (const std::bad_alloc&) {
    std::fputs("error: not enough memory\n", stderr);
    return static_cast<int>(Fault::world);
  } catch (...) {
    const std::type_info* type = abi::__cxa_current_exception_type();
    const char* name = type ? type->name() : "unknown";
    int status = 0;
    char* readable = abi::__cxa_demangle(name, nullptr, nullptr, &status);
    try {
      throw;
    } catch (const std::exception& e) {
      std::fprintf(stderr, "internal error: exception %s: %s\n", readable ? readable : name, e.what());
    } catch (...) {
      std::fprintf(stderr, "internal error: exception %s\n", readable ? readable : name);
    }
    std::fputs("this is a bug in rndn; please report it with the input\n", stderr);
    std::free(readable);
    return static_cast<int>(Fault::internal);
  }
}

}  // namespace rndn
