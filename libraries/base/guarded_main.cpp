#include "libraries/base/guarded_main.h"

#include <cxxabi.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <typeinfo>

#include "libraries/base/result.h"

namespace rndn {

// Nothing here may allocate before the message is out: memory may be what is missing.
int guarded_main(int (*body)(int, char**), int argc, char** argv) {
  try {
    return body(argc, argv);
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
