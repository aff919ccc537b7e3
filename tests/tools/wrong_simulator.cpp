// In place of open_simulator in the program `rndn_wrong`, which is rndn otherwise: in the first column that
// is sent to the device some bits are wrong, once. The linker puts it there: --wrap, by the symbol's name, which CMakeLists.txt has and
// another signature changes. A program that ends without it ends with exit code 70 and says so.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "runtime/simulator/simulator_device.h"
#include "tests/session/wrong_device.h"

namespace rndn::runtime {

using Opened = Result<std::unique_ptr<device::Device>>;
Opened right_simulator(const std::string& target, const sim::Options& options) asm("__real_" OPEN_SIMULATOR);
Opened wrong_simulator(const std::string& target, const sim::Options& options) asm("__wrap_" OPEN_SIMULATOR);

static bool was_opened = false;
static const int is_watched = std::atexit([] {
  if (was_opened) return;
  std::fflush(nullptr);
  std::fputs("rndn_wrong: nothing was wrong: no simulator was opened, or open_simulator has another symbol than " OPEN_SIMULATOR "\n", stderr);
  _exit(70);
});

Opened wrong_simulator(const std::string& target, const sim::Options& options) {
  was_opened = true;
  static std::unique_ptr<device::Device> right;
  ASSIGN_OR_RETURN(right, right_simulator(target, options));
  auto wrong = std::make_unique<test::WrongDevice>(*right);
  wrong->on_copy = [is_right = true](std::vector<std::byte>& bytes) mutable {
    if (bytes.size() < 4'000 || !std::exchange(is_right, false)) return;
    for (size_t k = 0; k < bytes.size(); k += 64) bytes[k] ^= std::byte{1};
  };
  return std::unique_ptr<device::Device>(std::move(wrong));
}

}  // namespace rndn::runtime
