// In place of open_simulator in the program `rndn_wrong`, which is rndn otherwise: in the first column that
// is sent to the device some bits are wrong, once. The linker puts it there (--wrap, by the symbol's name).
#include <utility>

#include "runtime/simulator/simulator_device.h"
#include "tests/session/wrong_device.h"

#define OPEN_SIMULATOR \
  "_ZN4rndn7runtime14open_simulatorERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEERKNS_3sim7OptionsE"

namespace rndn::runtime {

using Opened = Result<std::unique_ptr<device::Device>>;
Opened right_simulator(const std::string& target, const sim::Options& options) asm("__real_" OPEN_SIMULATOR);
Opened wrong_simulator(const std::string& target, const sim::Options& options) asm("__wrap_" OPEN_SIMULATOR);

Opened wrong_simulator(const std::string& target, const sim::Options& options) {
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
