// `rndn devices`: GPUs, driver, the simulator's targets. With --self-test, runs a kernel of each kind on the GPU and on the simulator.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "assembler/isa/isa.h"
#include "libraries/base/system/files.h"
#include "runtime/self_test.h"
#include "runtime/simulator/simulator_device.h"
#include "tools/model/model.h"
#include "tools/rndn.h"

namespace rndn::tools {
namespace {

class DevicesCommand final : public Command {
 public:
  explicit DevicesCommand(CLI::App& program) {
    app = program.add_subcommand("devices", "GPUs, driver, and the simulator's targets");
    app->add_flag("--self-test", self_test_, "run a kernel of each kind on the GPU and compare with the simulator");
    app->add_flag("--calibrate", calibrate_,
                  "measure what the device does in how much time, a minute, and write it as JSON: for --model of explain and bench")
        ->excludes("--self-test");
    app->add_option(
           "--device", device_,
           "of the self-test and --calibrate: cuda (default), cuda:N, or sim (the simulator against the reference "
           "interpreter; sizes are tiny then, and times mean nothing)")
        ->type_name("D");
    app->add_option("-o", output_, "a file, - for stdout")->type_name("FILE");
  }

  int execute() override {
    if (calibrate_) return calibrate();
    std::string out;
    auto driver = cuda::Driver::open();
    if (!driver) {
      out += fmt::format("cuda   none: {}\n", driver.error().message);
    } else {
      auto list = cuda::list_devices(**driver);
      if (!list) return fail(list.error());
      out += fmt::format("cuda   driver {}, {} GPU{}\n", (*driver)->version_text(), list->size(),
                         list->size() == 1 ? "" : "s");
      for (const cuda::Description& d : *list)
        out += fmt::format("cuda:{} {}, compute capability {}.{}, {} multiprocessors, {:.1f} GiB, {}\n", d.ordinal,
                           d.name, d.major, d.minor, d.multiprocessors, static_cast<double>(d.memory_bytes) / (1 << 30),
                           d.target.empty() ? "not supported" : "runs code for " + d.target);
    }
    out += "sim    simulator for";
    for (const isa::Target& t : isa::targets()) out += fmt::format(" {}", t.name);
    out += "\ncpu    reference interpreter\n";
    if (auto written = write_file(output_, out); !written) return fail(written.error());
    return self_test_ ? self_test() : 0;
  }

 private:
  int calibrate() {
    Flags flags;
    flags.device = device_;
    if (device_ == "auto" || device_ == "cpu") return fail(usage_error("--calibrate runs on cuda, cuda:N or sim"));
    if (auto writable = check_writable(output_); output_ != "-" && !writable) return fail(writable.error());
    auto choice = DeviceChoice::start(flags);
    if (!choice) return fail(choice.error());
    auto device = choice->open();
    if (!device) return fail(device.error());
    const CancelScope scope(*interrupts);
    auto measured = errors_of([&] { return tools::calibrate(**device); });
    if (!measured) return fail(measured.error());
    if (auto written = write_file(output_, model::to_json(*measured)); !written) return fail(written.error());
    return 0;
  }

  int self_test() {
    Flags flags;
    flags.device = device_;
    if (device_ == "auto" || device_ == "cpu") return fail(usage_error("--self-test runs on cuda, cuda:N or sim"));
    auto choice = DeviceChoice::start(flags);
    if (!choice) return fail(choice.error());
    auto device = choice->open();
    if (!device) return fail(device.error());
    std::unique_ptr<device::Device> simulator;
    if (!(*device)->info().is_simulator) {
      auto opened = runtime::open_simulator((*device)->info().target);
      if (!opened) return fail(opened.error());
      simulator = *std::move(opened);
    }
    std::string report;
    auto passed = runtime::self_test(**device, simulator.get(), report);
    std::fputs(report.c_str(), stderr);
    return passed ? 0 : fail(passed.error());
  }

  bool self_test_ = false, calibrate_ = false;
  std::string device_ = "cuda", output_ = "-";
};

}  // namespace

std::unique_ptr<Command> devices_command(CLI::App& program) { return std::make_unique<DevicesCommand>(program); }

}  // namespace rndn::tools
