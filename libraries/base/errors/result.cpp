#include "libraries/base/errors/result.h"

#include <atomic>

#include "libraries/base/report/version.h"
#include "version_values.h"

namespace rndn {

struct SharedError::Shared {
  explicit Shared(Error e) : error(std::move(e)) {}
  const Error error;
  std::atomic<uint32_t> owners{1};
};

SharedError::SharedError(const Error& error) : shared_(new Shared(error)) {}
SharedError::SharedError(Error&& error) : shared_(new Shared(std::move(error))) {}
void SharedError::share() noexcept { shared_->owners.fetch_add(1, std::memory_order_relaxed); }
void SharedError::release() noexcept {
  if (shared_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete shared_;
}
const Error& SharedError::error_of() const { return shared_->error; }
void SharedError::no_value() const { check_failed(__FILE__, __LINE__, "the result has a value", error().message); }
void SharedError::no_error() { check_failed(__FILE__, __LINE__, "the result has an error", ""); }

std::string_view version() { return RNDN_VERSION; }
std::string_view commit() { return RNDN_COMMIT; }

}  // namespace rndn
