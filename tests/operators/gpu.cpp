// The operators' tests on a GPU (support.h): all of them skip, with the reason, where there is none.
#include "runtime/cuda/cuda_device.h"
#include "tests/operators/support.h"

namespace rndn::operators::test {

Result<std::unique_ptr<device::Device>> open_gpu() {
  auto preparation = cuda::prepare();
  return cuda::open(*preparation);
}

namespace {

class Gpu final : public ::testing::Environment {
 public:
  void SetUp() override {
    if (!on_gpu()) return;
    auto opened = open_gpu();
    if (!opened) GTEST_SKIP() << "skipped: " << opened.error().message;
    held_ = *std::move(opened);
  }
  void TearDown() override { held_.reset(); }

 private:
  std::unique_ptr<device::Device> held_;  // so that the context outlives the tests, which open devices of their own
};
[[maybe_unused]] const ::testing::Environment* const gpu = ::testing::AddGlobalTestEnvironment(new Gpu);

}  // namespace
}  // namespace rndn::operators::test
