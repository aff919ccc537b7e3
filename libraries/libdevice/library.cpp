// Finding, making and reading the PTX of libdevice. Making it is a matter of once per bitcode, reading it of once per Math.
#include "libraries/libdevice/library.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "libraries/base/errors/diagnostic.h"
#include "libraries/base/system/files.h"
#include "libraries/base/system/process.h"
#include "libraries/libdevice/functions.h"
#include "ptx/parse.h"

namespace rndn::libdevice {
namespace {

namespace fs = std::filesystem;

bool exists(const std::string& path) {
  std::error_code ignored;
  return !path.empty() && fs::is_regular_file(path, ignored);
}

uint64_t hash(std::string_view text, uint64_t h) {  // FNV-1a
  for (unsigned char c : text) h = (h ^ c) * 0x100000001b3;
  return h;
}

// The file with the PTX; made if need be.
Result<std::string> find_or_make(const Places& places) {
  if (exists(places.file)) return places.file;
  const std::string needed = "the math functions need libdevice as PTX";
  const auto bitcode = std::find_if(places.bitcode.begin(), places.bitcode.end(), exists);
  if (bitcode == places.bitcode.end())
    return world_error("{}: there is neither {} nor NVIDIA's libdevice.10.bc to make it from", needed, places.file);
  if (places.cache.empty())
    return world_error("{}: {} is not there, and no cache folder to make it in", needed, places.file);
  ASSIGN_OR_RETURN(std::string bytes, read_file(*bitcode));
  uint64_t h = hash(bytes, 0xcbf29ce484222325);
  for (std::string_view name : function_names) h = hash(name, h);
  const std::string made = fmt::format("{}/libdevice-{:016x}.ptx", places.cache, h);
  if (exists(made)) return made;
  if (!exists(places.program))
    return world_error("{}: {} is not there, and neither is {}, which would make it (built where LLVM is)", needed,
                       places.file, places.program);
  std::error_code ignored;
  fs::create_directories(places.cache, ignored);
  const std::string own = fmt::format("{}.{}", made, getpid());
  Result<void> ran = run_program({places.program, *bitcode, "-o", own});
  if (!ran) ran = world_error("could not make PTX of {}: {}", *bitcode, ran.error().message);
  std::error_code failed;
  if (ran) fs::rename(own, made, failed);
  if (!ran || failed) fs::remove(own, ignored);
  RETURN_IF_ERROR(std::move(ran));
  if (failed) return world_error("cannot write {}: {}", made, failed.message());
  return made;
}

Result<void> read(const Places& places, ptx::Module& module) {
  ASSIGN_OR_RETURN(std::string file, find_or_make(places));
  ASSIGN_OR_RETURN(std::string text, read_file(file));
  SourceManager sources;
  DiagnosticSink sink;
  module = ptx::parse(sources.add(file, std::move(text)), sources, sink);
  if (sink.has_errors()) return world_error("{}", render(sink, sources));
  for (std::string_view name : function_names)
    for (const char* suffix : {"", "f"})
      if (std::none_of(module.functions.begin(), module.functions.end(), [&](const ptx::Function& f) {
            return f.name == fmt::format("{}{}", name, suffix) && !f.external;
          }))
        return world_error("{} has no function `{}{}`", file, name, suffix);
  return {};
}

}  // namespace

Places default_places(std::string cache) {
  Places p;
  std::error_code failed;
  const fs::path self = fs::read_symlink("/proc/self/exe", failed);
  if (!failed) {
    p.file = (self.parent_path().parent_path() / "share/rndn/libdevice.ptx").string();
    p.program = (self.parent_path() / "rndn-libdevice").string();
  }
  if (const char* own = std::getenv("RNDN_LIBDEVICE"); own && *own) {
    p.bitcode = {own};
  } else {
    if (const char* cuda = std::getenv("CUDA_HOME"); cuda && *cuda)
      p.bitcode.push_back(std::string(cuda) + "/nvvm/libdevice/libdevice.10.bc");
    p.bitcode.push_back("/usr/local/cuda/nvvm/libdevice/libdevice.10.bc");
    p.bitcode.push_back("/usr/lib/nvidia-cuda-toolkit/libdevice/libdevice.10.bc");
  }
  p.cache = std::move(cache);
  return p;
}

Result<const ptx::Module*> Math::module() {
  std::call_once(once_, [&] {
    if (auto done = read(places_, module_); !done) problem_ = done.error();
  });
  if (problem_) return *problem_;
  return &module_;
}

}  // namespace rndn::libdevice
