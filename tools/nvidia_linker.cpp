#include "tools/nvidia_linker.h"

#include <dlfcn.h>

namespace rndn::tools {

// nvJitLink API documentation, CUDA 13.0. The library exports its functions under versioned names as well.
struct NvidiaLinker::Functions {
  using Handle = void*;
  int (*create)(Handle*, uint32_t, const char**) = nullptr;
  int (*destroy)(Handle*) = nullptr;
  int (*add_data)(Handle, int, const void*, size_t, const char*) = nullptr;
  int (*complete)(Handle) = nullptr;
  int (*cubin_size)(Handle, size_t*) = nullptr;
  int (*cubin)(Handle, void*) = nullptr;
  int (*log_size)(Handle, size_t*) = nullptr;
  int (*log)(Handle, char*) = nullptr;
};

Result<std::unique_ptr<NvidiaLinker>> NvidiaLinker::open(const std::string& path) {
  std::unique_ptr<NvidiaLinker> linker(new NvidiaLinker());
  linker->functions_ = std::make_unique<Functions>();
  std::vector<std::string> names = {"libnvJitLink.so.13", "libnvJitLink.so.12", "libnvJitLink.so",
                                    "/usr/local/cuda/lib64/libnvJitLink.so"};
  if (!path.empty()) names = {path};
  std::string tried;
  for (const std::string& name : names) {
    linker->library_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    linker->name_ = name;
    if (linker->library_) break;
    tried += (tried.empty() ? "" : ", ") + name;
  }
  if (!linker->library_) return world_error("NVIDIA's PTX compiler is not here (tried {})", tried);
  const auto find = [&](auto& function, const std::string& name) {
    void* symbol = dlsym(linker->library_, name.c_str());
    for (int major = 13; !symbol && major >= 12; --major)
      for (int minor = 9; !symbol && minor >= 0; --minor)
        symbol = dlsym(linker->library_, fmt::format("__{}_{}_{}", name, major, minor).c_str());
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
    return symbol != nullptr;
  };
  Functions& f = *linker->functions_;
  if (!find(f.create, "nvJitLinkCreate") || !find(f.destroy, "nvJitLinkDestroy") ||
      !find(f.add_data, "nvJitLinkAddData") || !find(f.complete, "nvJitLinkComplete") ||
      !find(f.cubin_size, "nvJitLinkGetLinkedCubinSize") || !find(f.cubin, "nvJitLinkGetLinkedCubin") ||
      !find(f.log_size, "nvJitLinkGetErrorLogSize") || !find(f.log, "nvJitLinkGetErrorLog"))
    return world_error("{} lacks functions of nvJitLink", linker->name_);
  return linker;
}

NvidiaLinker::~NvidiaLinker() {
  if (library_) dlclose(library_);
}

Result<std::vector<std::byte>> NvidiaLinker::compile(const std::string& ptx,
                                                     const std::vector<std::string>& options) const {
  constexpr int input_ptx = 2;
  const Functions& f = *functions_;
  std::vector<const char*> texts;
  for (const std::string& option : options) texts.push_back(option.c_str());
  Functions::Handle handle = nullptr;
  if (int code = f.create(&handle, static_cast<uint32_t>(texts.size()), texts.data()))
    return world_error("nvJitLinkCreate fails with code {}", code);
  const auto failed = [&](const char* what, int code) {
    size_t size = 0;
    std::string log;
    if (f.log_size(handle, &size) == 0 && size > 1) {
      log.resize(size);
      f.log(handle, log.data());
      log.resize(size - 1);
    }
    f.destroy(&handle);
    return world_error("{} fails with code {}: {}", what, code, log);
  };
  if (int code = f.add_data(handle, input_ptx, ptx.c_str(), ptx.size() + 1, "query.ptx"))
    return failed("nvJitLinkAddData", code);
  if (int code = f.complete(handle)) return failed("nvJitLinkComplete", code);
  size_t size = 0;
  if (int code = f.cubin_size(handle, &size)) return failed("nvJitLinkGetLinkedCubinSize", code);
  std::vector<std::byte> cubin(size);
  if (int code = f.cubin(handle, cubin.data())) return failed("nvJitLinkGetLinkedCubin", code);
  f.destroy(&handle);
  return cubin;
}

}  // namespace rndn::tools
