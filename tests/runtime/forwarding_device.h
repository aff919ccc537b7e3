// The base of devices that tests watch or restrict.
#pragma once
#include "runtime/device/forwarding_device.h"

namespace rndn::runtime::test {
using device::ForwardingDevice;
}
