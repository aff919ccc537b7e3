// NVIDIA's PTX compiler in process, for comparison: nvJitLink, opened at run time (CUDA 12 and later). Part of the benchmark only.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "libraries/base/errors/result.h"

namespace rndn::tools {

class NvidiaLinker {
 public:
  // path: of libnvJitLink.so, or empty: where the loader finds it. Fails (fault world) with what was tried.
  static Result<std::unique_ptr<NvidiaLinker>> open(const std::string& path);
  ~NvidiaLinker();
  NvidiaLinker(const NvidiaLinker&) = delete;

  // PTX to cubin with the options given, such as {"-arch=sm_90", "-O3"}.
  Result<std::vector<std::byte>> compile(const std::string& ptx, const std::vector<std::string>& options) const;
  const std::string& name() const { return name_; }

 private:
  NvidiaLinker() = default;
  struct Functions;
  std::unique_ptr<Functions> functions_;
  void* library_ = nullptr;
  std::string name_;
};

}  // namespace rndn::tools
