#include "libraries/base/result.h"

#include "libraries/base/version.h"
#include "version_values.h"

namespace rndn {
std::string_view version() { return RNDN_VERSION; }
std::string_view commit() { return RNDN_COMMIT; }
}  // namespace rndn
