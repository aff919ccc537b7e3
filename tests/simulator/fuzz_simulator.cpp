// libFuzzer on the simulator: the kernels of any cubin that loads run for a few thousand instructions, with every check on. Whatever the code does, the launch
// ends, with a report or without. Seeds: cubins, of rndn-as or ptxas.
#include <cstdint>
#include <cstring>
#include <span>

#include "assembler/cubin/cubin.h"
#include "assembler/simulator/simulator.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rndn;
  const auto bytes = std::as_bytes(std::span(data, size));
  auto image = cubin::read(bytes);
  if (!image.ok()) return 0;
  sim::Machine machine("sm_" + std::to_string(image->sm), 1 << 20);
  auto module = machine.load(bytes);
  if (!module.ok()) return 0;
  auto buffer = machine.allocate(4096);
  if (!buffer.ok() || !machine.fill(*buffer, 1, 4096).ok()) return 0;
  size_t runs = 0;
  for (const cubin::Kernel& k : image->kernels) {
    if (k.parameter_bytes > 4096 || ++runs > 4) continue;
    std::vector<std::byte> parameters(k.parameter_bytes);
    for (size_t at = 0; at + 8 <= parameters.size(); at += 8) std::memcpy(parameters.data() + at, &*buffer, 8);
    sim::Options options;
    options.check_hazards = options.check_uninitialised = options.check_races = options.deterministic = true;
    options.max_warp_instructions = 2000;
    std::vector<sim::Report> reports;
    (void)machine.launch(*module, k.name, {2, 1, 1}, {40, 1, 1}, 0, parameters, options, &reports);
    for (const sim::Report& r : reports) (void)r.text();
  }
  return 0;
}
