// CHECK in the shared library: a mistake of ours must not end somebody else's process. This definition takes the place of the one in
// libraries/base/errors/check.cpp, which ends the program: the linker takes an object of an archive only for what is still undefined.
#include <stdexcept>

#include "libraries/base/errors/check.h"

namespace rndn {
void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  throw std::logic_error(fmt::format("{}:{}: {}{}{}", file, line, condition, message.empty() ? "" : ": ", message));
}
}  // namespace rndn
