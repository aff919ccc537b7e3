#include "runtime/device/device.h"

namespace rndn::device {

Result<ModuleHandle> Device::load_ptx(const std::string&, int) {
  return usage_error("`--backend driver` needs a GPU: {} has no PTX compiler", info().name);
}

namespace {
Error no_graphs(const Info& info) { return {Fault::internal, fmt::format("{} has no graphs", info.name)}; }
}  // namespace

Result<void> Device::begin_graph() { return no_graphs(info()); }
Result<GraphHandle> Device::end_graph() { return no_graphs(info()); }
Result<void> Device::launch_graph(GraphHandle) { return no_graphs(info()); }
Result<void> Device::free_graph(GraphHandle) { return no_graphs(info()); }

}  // namespace rndn::device
