// The functions of NVIDIA's nvJitLink for one PTX module (nvJitLink documentation, CUDA 13.0), over
// rndn's assembler.
//
// As there: options are read by Create, a text is compiled by AddData, logs are of the handle and the
// size of one counts its NUL, or is 0; Complete may be called once. A module that is a cubin already
// is given back as it is. What needs a linker is refused with a line in the error log: several
// modules, fat binaries, objects, libraries, LTO-IR, and results in PTX.
// Differences: a call with null data or an unknown handle is an error and no crash; completing
// without an input is an error.
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "assembler/cubin/cubin.h"
#include "assembler/nvidia/compile.h"
#include "assembler/nvidia/nvidia.h"
#include "libraries/base/system/files.h"
#include "ptx/parse.h"

using namespace rndn;

struct nvJitLink {
  nvidia::Settings settings;
  std::string errors, info;
  std::vector<std::byte> cubin;
  bool has_input = false, failed = false, is_complete = false;
};

namespace {

nvJitLinkResult link_result_of(nvidia::Status status) {
  switch (status) {
    case nvidia::Status::ok: return NVJITLINK_SUCCESS;
    case nvidia::Status::bad_option: return NVJITLINK_ERROR_UNRECOGNIZED_OPTION;
    case nvidia::Status::unknown_target: return NVJITLINK_ERROR_UNRECOGNIZED_ARCH;
    case nvidia::Status::bad_text:
    case nvidia::Status::unsupported_version: return NVJITLINK_ERROR_PTX_COMPILE;
    case nvidia::Status::internal:
    case nvidia::Status::out_of_memory: return NVJITLINK_ERROR_INTERNAL;
  }
  return NVJITLINK_ERROR_INTERNAL;
}

// Options of nvJitLink that ptxas has not, by the name before `=`.
enum class Treatment : uint8_t { left_out, refused, ptxas };
struct Option {
  std::string_view name;
  Treatment treatment;
};
constexpr Option options[] = {
    {"-time", Treatment::left_out},
    {"-no-cache", Treatment::left_out},
    {"-ftz", Treatment::left_out},  // of LTO alone, as the next
    {"-prec-div", Treatment::left_out},
    {"-prec-sqrt", Treatment::left_out},
    {"-fma", Treatment::left_out},
    {"-kernels-used", Treatment::left_out},  // others stay, which is right
    {"-variables-used", Treatment::left_out},
    {"-optimize-unused-variables", Treatment::left_out},
    {"-split-compile", Treatment::left_out},
    {"-split-compile-extended", Treatment::left_out},
    {"-jump-table-density", Treatment::left_out},
    {"-Xnvvm", Treatment::left_out},
    {"-Xptxas", Treatment::ptxas},
    {"-lto", Treatment::refused},
    {"-dlto", Treatment::refused},
    {"-ptx", Treatment::refused},
    {"-r", Treatment::refused},
};

nvJitLinkResult fail(nvJitLinkHandle handle, nvJitLinkResult result, std::string_view message) {
  handle->errors.append("error: ").append(message).append("\n");
  handle->failed = true;
  return result;
}

nvJitLinkResult read_options(nvJitLinkHandle handle, uint32_t count, const char** given) {
  std::vector<std::string> ptxas;
  for (uint32_t i = 0; i < count; ++i) {
    if (!given || !given[i]) return NVJITLINK_ERROR_NULL_INPUT;
    std::string text = given[i];
    if (text.starts_with("--")) text.erase(0, 1);
    const std::string name = text.substr(0, text.find('='));
    const Option* row = nullptr;
    for (const Option& o : options)
      if (o.name == name) row = &o;
    if (row && row->treatment == Treatment::left_out) continue;
    if (row && row->treatment == Treatment::refused) return NVJITLINK_ERROR_INCOMPATIBLE_OPTIONS;
    ptxas.push_back(row ? text.substr(std::min(text.size(), name.size() + 1)) : text);
  }
  const nvidia::Status status = nvidia::read_options(ptxas, handle->settings, handle->errors);
  if (status != nvidia::Status::ok) return link_result_of(status);
  return handle->settings.arch.empty() ? NVJITLINK_ERROR_MISSING_ARCH : NVJITLINK_SUCCESS;
}

bool is_text(std::string_view data) { return data.find('\0') == data.npos && data.find(".version") != data.npos; }

// An exception within is memory that has run out, or a mistake of ours.
template <class Body>
nvJitLinkResult guarded(Body body) noexcept {
  try {
    return body();
  } catch (...) {
    return NVJITLINK_ERROR_INTERNAL;
  }
}

nvJitLinkResult add(nvJitLinkHandle handle, nvJitLinkInputType type, std::string_view data, const std::string& name) {
  if (handle->is_complete) return fail(handle, NVJITLINK_ERROR_INTERNAL, "an input after nvJitLinkComplete");
  const auto is_ptx_or = [&](nvJitLinkInputType t) { return type == t || type == NVJITLINK_INPUT_ANY; };
  std::string_view text = data;
  while (text.ends_with('\0')) text.remove_suffix(1);
  if (handle->has_input)
    return fail(handle, NVJITLINK_ERROR_INVALID_INPUT, name + ": one module at a time is compiled; there is no linker");
  if (is_ptx_or(NVJITLINK_INPUT_PTX) && is_text(text)) {
    nvidia::Compiled made = nvidia::compile(text, name, handle->settings);
    handle->has_input = true;
    handle->failed = made.status != nvidia::Status::ok;
    handle->errors += made.errors;
    handle->info += made.info;
    handle->cubin = std::move(made.cubin);
    return link_result_of(made.status);
  }
  if (type == NVJITLINK_INPUT_PTX) return fail(handle, NVJITLINK_ERROR_INCORRECT_INPUT_TYPE, name + ": this is no PTX");
  if (is_ptx_or(NVJITLINK_INPUT_CUBIN)) {
    const auto bytes = std::as_bytes(std::span(data));
    if (const Result<cubin::Image> image = cubin::read({bytes.begin(), bytes.end()}); image) {
      handle->has_input = true;
      handle->cubin.assign(bytes.begin(), bytes.end());
      return NVJITLINK_SUCCESS;
    }
    return fail(handle, NVJITLINK_ERROR_INCORRECT_INPUT_TYPE, name + ": this is neither PTX nor a cubin");
  }
  if (type == NVJITLINK_INPUT_LTOIR)
    return fail(handle, NVJITLINK_ERROR_LTO_NOT_ENABLED, name + ": LTO-IR is not compiled; give PTX");
  return fail(handle, NVJITLINK_ERROR_UNRECOGNIZED_INPUT,
              name + ": only PTX, or one cubin, is taken; there is no linker");
}

nvJitLinkResult give_size(nvJitLinkHandle handle, std::string nvJitLink::*log, size_t* size) {
  if (!handle || !size) return NVJITLINK_ERROR_NULL_INPUT;
  const std::string& text = handle->*log;
  *size = text.empty() ? 0 : text.size() + 1;
  return NVJITLINK_SUCCESS;
}
nvJitLinkResult give(nvJitLinkHandle handle, std::string nvJitLink::*log, char* to) {
  if (!handle || !to) return NVJITLINK_ERROR_NULL_INPUT;
  const std::string& text = handle->*log;
  if (!text.empty()) std::memcpy(to, text.c_str(), text.size() + 1);
  return NVJITLINK_SUCCESS;
}

}  // namespace

nvJitLinkResult nvJitLinkCreate(nvJitLinkHandle* handle, uint32_t count, const char** given) {
  if (!handle) return NVJITLINK_ERROR_NULL_INPUT;
  return guarded([&] {
    *handle = new nvJitLink;  // also where options are wrong, for Destroy
    return read_options(*handle, count, given);
  });
}

nvJitLinkResult nvJitLinkDestroy(nvJitLinkHandle* handle) {
  if (!handle || !*handle) return NVJITLINK_ERROR_NULL_INPUT;
  delete *handle;
  *handle = nullptr;
  return NVJITLINK_SUCCESS;
}

nvJitLinkResult nvJitLinkAddData(nvJitLinkHandle handle, nvJitLinkInputType type, const void* data, size_t size,
                                 const char* name) {
  if (!handle || !data) return NVJITLINK_ERROR_NULL_INPUT;
  return guarded([&] { return add(handle, type, {static_cast<const char*>(data), size}, name ? name : "<ptx>"); });
}

nvJitLinkResult nvJitLinkAddFile(nvJitLinkHandle handle, nvJitLinkInputType type, const char* name) {
  if (!handle || !name) return NVJITLINK_ERROR_NULL_INPUT;
  return guarded([&] {
    const Result<std::string> data = read_file(name);
    if (!data) return fail(handle, NVJITLINK_ERROR_INVALID_INPUT, data.error().message);
    return add(handle, type, *data, name);
  });
}

nvJitLinkResult nvJitLinkComplete(nvJitLinkHandle handle) {
  if (!handle) return NVJITLINK_ERROR_NULL_INPUT;
  return guarded([&] {
    if (handle->is_complete) return NVJITLINK_ERROR_INTERNAL;
    if (handle->failed) return NVJITLINK_ERROR_INVALID_INPUT;
    if (!handle->has_input) return fail(handle, NVJITLINK_ERROR_NULL_INPUT, "there is no input");
    handle->is_complete = true;
    return NVJITLINK_SUCCESS;
  });
}

nvJitLinkResult nvJitLinkGetLinkedCubinSize(nvJitLinkHandle handle, size_t* size) {
  if (!handle || !size) return NVJITLINK_ERROR_NULL_INPUT;
  if (!handle->is_complete) return NVJITLINK_ERROR_INTERNAL;
  *size = handle->cubin.size();
  return NVJITLINK_SUCCESS;
}

nvJitLinkResult nvJitLinkGetLinkedCubin(nvJitLinkHandle handle, void* cubin) {
  if (!handle || !cubin) return NVJITLINK_ERROR_NULL_INPUT;
  if (!handle->is_complete) return NVJITLINK_ERROR_INTERNAL;
  if (!handle->cubin.empty()) std::memcpy(cubin, handle->cubin.data(), handle->cubin.size());
  return NVJITLINK_SUCCESS;
}

// There is none without -ptx, which is refused.
nvJitLinkResult nvJitLinkGetLinkedPtxSize(nvJitLinkHandle handle, size_t* size) {
  return handle && size ? NVJITLINK_ERROR_INVALID_INPUT : NVJITLINK_ERROR_NULL_INPUT;
}
nvJitLinkResult nvJitLinkGetLinkedPtx(nvJitLinkHandle handle, char* ptx) {
  return handle && ptx ? NVJITLINK_ERROR_INVALID_INPUT : NVJITLINK_ERROR_NULL_INPUT;
}

nvJitLinkResult nvJitLinkGetErrorLogSize(nvJitLinkHandle handle, size_t* size) {
  return give_size(handle, &nvJitLink::errors, size);
}
nvJitLinkResult nvJitLinkGetErrorLog(nvJitLinkHandle handle, char* log) {
  return give(handle, &nvJitLink::errors, log);
}
nvJitLinkResult nvJitLinkGetInfoLogSize(nvJitLinkHandle handle, size_t* size) {
  return give_size(handle, &nvJitLink::info, size);
}
nvJitLinkResult nvJitLinkGetInfoLog(nvJitLinkHandle handle, char* log) { return give(handle, &nvJitLink::info, log); }

nvJitLinkResult nvJitLinkVersion(unsigned int* major, unsigned int* minor) {
  if (!major || !minor) return NVJITLINK_ERROR_NULL_INPUT;
  *major = ptx::current_version / 10 + 4;
  *minor = ptx::current_version % 10;
  return NVJITLINK_SUCCESS;
}

// The same functions by the names of each release.
extern "C" {
#define ALIAS(release, name, parameters)                                                                      \
  RNDN_NVIDIA_EXPORT nvJitLinkResult __nvJitLink##name##_##release parameters __attribute__((alias("nvJitLin" \
                                                                                                   "k" #name)));
#define RELEASE_12_0(name, parameters) ALIAS(12_0, name, parameters)
#define RELEASE_12_1(name, parameters) ALIAS(12_1, name, parameters)
#define RELEASE_12_2(name, parameters) ALIAS(12_2, name, parameters)
#define RELEASE_12_3(name, parameters) ALIAS(12_3, name, parameters)
#define RELEASE_12_4(name, parameters) ALIAS(12_4, name, parameters)
#define RELEASE_12_5(name, parameters) ALIAS(12_5, name, parameters)
#define RELEASE_12_6(name, parameters) ALIAS(12_6, name, parameters)
#define RELEASE_12_7(name, parameters) ALIAS(12_7, name, parameters)
#define RELEASE_12_8(name, parameters) ALIAS(12_8, name, parameters)
#define RELEASE_12_9(name, parameters) ALIAS(12_9, name, parameters)
#define RELEASE_13_0(name, parameters) ALIAS(13_0, name, parameters)
#define RELEASE_13_1(name, parameters) ALIAS(13_1, name, parameters)
#define RELEASE_13_2(name, parameters) ALIAS(13_2, name, parameters)
#define RELEASE_13_3(name, parameters) ALIAS(13_3, name, parameters)
#define OF_RELEASE(release) NVJITLINK_FUNCTIONS(RELEASE_##release)
NVJITLINK_RELEASES(OF_RELEASE)
}
