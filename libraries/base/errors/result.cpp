#include "libraries/base/errors/result.h"

#include "libraries/base/report/version.h"
#include "version_values.h"

namespace rndn {
std::string_view version() { return RNDN_VERSION; }
std::string_view commit() { return RNDN_COMMIT; }
}  // namespace rndn
