#include "runtime/device/device.h"

namespace rndn::device {

Result<ModuleHandle> Device::load_ptx(const std::string&, int) {
  return usage_error("`--backend driver` needs a GPU: {} has no PTX compiler", info().name);
}

}  // namespace rndn::device
