#include "libraries/base/errors/check.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace rndn {
void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  std::fflush(stdout);
  std::fprintf(stderr, "internal error: %s:%d: %s%s%s\nthis is a bug in rndn; please report it with the input\n", file,
               line, condition, message.empty() ? "" : ": ", message.c_str());
  std::fflush(stderr);
#ifdef RNDN_FUZZ
  std::abort();  // libFuzzer keeps the input
#endif
  _exit(70);
}
}  // namespace rndn
